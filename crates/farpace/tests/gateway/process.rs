//! A gateway that runs.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// `farpace gateway up --json`, which has said that it is up.
pub struct GatewayProcess {
    child: Child,
    out: BufReader<ChildStdout>,
    pub up: Value,
}

impl GatewayProcess {
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        if line.is_empty() {
            let mut error = String::new();
            child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
            panic!("{command:?} does not start: {error}");
        }
        GatewayProcess { child, out, up: serde_json::from_str(&line).unwrap() }
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it in order; what it says at the end.
    pub fn end(self) -> Value {
        self.end_with_notes().0
    }

    /// Ends it in order; what it says at the end, and what it has said on standard error.
    pub fn end_with_notes(mut self) -> (Value, String) {
        self.signal(Signal::SIGTERM);
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success());
        let mut notes = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut notes).unwrap();
        (serde_json::from_str::<Value>(&rest).unwrap()["end"].clone(), notes)
    }

    /// Waits until it is gone; how long that took.
    pub fn wait(mut self) -> Duration {
        let since = Instant::now();
        self.child.wait().unwrap();
        since.elapsed()
    }
}

impl Drop for GatewayProcess {
    /// A test that fails leaves no process, and shows what the gateway said.
    fn drop(&mut self) {
        let ended = self.child.try_wait();
        if matches!(ended, Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        if std::thread::panicking() {
            let mut notes = String::new();
            let _ = self.child.stderr.take().map(|mut error| error.read_to_string(&mut notes));
            println!("a gateway, {ended:?} when the test failed, said:\n{notes}");
        }
    }
}
