//! What a process asks of the system for itself.

/// Lets sleeps of this thread end when they are to, not up to 50 us later.
pub fn sharpen_timers() {
    // Without it sleeps are longer, no more.
    let _ = nix::sys::prctl::set_timerslack(1);
}

/// Leaves the terminal: its end does not end this process. Nothing happens to a process that leads others.
pub fn leave_terminal() {
    let _ = nix::unistd::setsid();
}

/// A process, told from later ones with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// When it started, in the system's own count.
    pub started: u64,
}

impl Process {
    /// This one.
    pub fn own() -> Self {
        let pid = i32::try_from(std::process::id()).unwrap_or(0);
        Process { pid, started: start_of(pid).unwrap_or(0) }
    }
    /// True while it runs.
    pub fn is_alive(self) -> bool {
        start_of(self.pid) == Some(self.started)
    }
    /// Asks it to end; with `at_once` it is not asked. False: it has ended before, or must not be ended.
    pub fn end(self, at_once: bool) -> bool {
        use nix::sys::signal::{Signal, kill};
        let signal = if at_once { Signal::SIGKILL } else { Signal::SIGTERM };
        self.is_alive() && kill(nix::unistd::Pid::from_raw(self.pid), signal).is_ok()
    }
}

/// Field 22 of `/proc/PID/stat` (proc_pid_stat(5)); the name before it may hold anything.
fn start_of(pid: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let rest = text.rsplit_once(')')?.1;
    let mut fields = rest.split_whitespace();
    // A zombie has ended.
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}
