//! Process attributes.

/// Makes sleeps of this thread precise, instead of up to 50 us late.
pub fn sharpen_timers() {
    // If it fails, sleeps are only less precise.
    let _ = nix::sys::prctl::set_timerslack(1);
}

/// Raises the limit of descriptors of this process, and of programs that it executes, as far as it may, so
/// that each socket can have another descriptor above the former limit. Returns the former limit; none: it is
/// the maximum.
///
/// # Errors
/// The system refuses.
pub fn make_room_for_descriptors() -> std::io::Result<Option<u64>> {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    /// A socket has up to two more: its link, and what replaces this after an error.
    const EACH: u64 = 3;
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let wanted = soft.saturating_mul(EACH).min(hard);
    if wanted <= soft {
        return Ok(None);
    }
    setrlimit(Resource::RLIMIT_NOFILE, wanted, hard)?;
    Ok(Some(soft))
}

/// Detaches from the terminal, so that closing it does not end this process. Without effect on a process
/// group leader.
pub fn leave_terminal() {
    let _ = nix::unistd::setsid();
}

/// A process, distinguished from later ones with the same PID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Process ID.
    pub pid: i32,
    /// Start time, in ticks of the system.
    pub started: u64,
}

impl Process {
    /// This process.
    pub fn own() -> Self {
        let pid = i32::try_from(std::process::id()).unwrap_or(0);
        Process { pid, started: start_of(pid).unwrap_or(0) }
    }
    /// True while it runs.
    pub fn is_alive(self) -> bool {
        start_of(self.pid) == Some(self.started)
    }
    /// Asks it to end; with `at_once` it is killed. False: it has ended already, or must not be ended.
    pub fn end(self, at_once: bool) -> bool {
        use nix::sys::signal::{Signal, kill};
        let signal = if at_once { Signal::SIGKILL } else { Signal::SIGTERM };
        self.is_alive() && kill(nix::unistd::Pid::from_raw(self.pid), signal).is_ok()
    }
}

/// Field 22 of `/proc/PID/stat` (proc_pid_stat(5)); the name before it may contain any characters.
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
