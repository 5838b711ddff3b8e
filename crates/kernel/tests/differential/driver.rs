//! The controls in C, compiled for user space, in a process of their own.

use farpace_kernel::KernelControl;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

/// The program, compiled once in a run of the tests.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = PROGRAM.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("drive");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf/user/drive.c");
        let cc = std::env::var("CC").unwrap_or_else(|_| "cc".into());
        let mut command = Command::new(cc);
        // Undefined behaviour ends the program.
        command.args(["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=undefined"]);
        command.arg("-fno-sanitize-recover=undefined").arg("-o").arg(&program).arg(source);
        let status = command.status().unwrap();
        assert!(status.success(), "the C compiler refuses drive.c");
        (folder, program)
    });
    path
}

/// What a control says after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    pub cwnd: u64,
    pub ssthresh: u64,
    /// Bytes a second; 0: none.
    pub pacing: u64,
}

/// A control that runs.
pub struct InC {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl InC {
    /// `delivered`: what its counter of segments begins with.
    pub fn start(control: KernelControl, cwnd: u32, mss: u32, delivered: u32) -> Self {
        let mut command = Command::new(program());
        command.args([control.name(), &cwnd.to_string(), &mss.to_string(), &delivered.to_string()]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        InC { child, to, from: BufReader::new(from) }
    }

    /// Tells it of an event in the words of drive.c.
    pub fn tell(&mut self, event: &str) -> Answer {
        writeln!(self.to, "{event}").unwrap();
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        let numbers: Vec<u64> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
        let [cwnd, ssthresh, pacing] = numbers[..] else { panic!("after `{event}`: `{line}`") };
        Answer { cwnd, ssthresh, pacing }
    }
}

impl Drop for InC {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
