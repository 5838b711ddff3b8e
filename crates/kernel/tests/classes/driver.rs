//! The arithmetic of classes in C, compiled for user space, in a process of its own.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

/// The program, compiled once in a run of the tests.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = PROGRAM.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("classes");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf/user/classes.c");
        let cc = std::env::var("CC").unwrap_or_else(|_| "cc".into());
        let mut command = Command::new(cc);
        // Undefined behaviour ends the program.
        command.args(["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=undefined"]);
        command.arg("-fno-sanitize-recover=undefined").arg("-o").arg(&program).arg(source);
        assert!(command.status().unwrap().success(), "the C compiler refuses classes.c");
        (folder, program)
    });
    path
}

/// One class in C.
pub struct InC {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl InC {
    pub fn start() -> Self {
        let mut child = Command::new(program()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        InC { child, to, from: BufReader::new(from) }
    }

    fn ask(&mut self, line: &str) -> Vec<u64> {
        writeln!(self.to, "{line}").unwrap();
        let mut answer = String::new();
        self.from.read_line(&mut answer).unwrap();
        answer.split_whitespace().map(|word| word.parse().unwrap()).collect()
    }

    /// The class begins anew.
    pub fn reset(&mut self) {
        assert!(self.ask("R").is_empty());
    }

    /// When the next frame leaves, nanoseconds; or its verdict: 1, beyond the limit; 2, beyond the horizon.
    pub fn depart(&mut self, now: u64, rate: u64, bytes: u64, limit: u64, horizon: u64) -> Result<u64, u64> {
        match self.ask(&format!("D {now} {rate} {bytes} {limit} {horizon}"))[..] {
            [0, at] => Ok(at),
            [verdict, _] => Err(verdict),
            ref other => panic!("{other:?}"),
        }
    }

    /// Bytes of layer 2 of a super-segment.
    pub fn layer_2(&mut self, len: u32, whole: u32, segments: u32, size: u32) -> u64 {
        self.ask(&format!("L {len} {whole} {segments} {size}"))[0]
    }

    /// The key of a frame.
    pub fn key(&mut self, frame: &[u8]) -> Vec<u64> {
        let hex: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
        self.ask(&format!("K {hex}"))
    }
}

impl Drop for InC {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
