//! A process beside the gateway that ends it when it hangs, and takes away what it has left when it has died.

#![allow(clippy::disallowed_methods, reason = "it waits in real time")]

use super::control;
use super::host_resets::reset_left;
use crate::Note;
use anyhow::{Context, Result};
use farpace_live::Process;
use farpace_live::system::{Journal, clean, journals};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Between two signs of life at least.
const BEAT: Duration = Duration::from_millis(200);
/// A gateway that gives no sign of life for so long is suspected, ...
const SILENCE: u16 = 1_200;
/// ... and is killed after so much longer, in ms. When the whole machine has stood still, its sign comes in
/// this time.
const GRACE: u16 = 400;
/// A sign of life.
const SIGN: u8 = b'.';
/// What the gateway says when it has taken away all that it has set.
const FAREWELL: u8 = b'e';
/// For a killed gateway to be gone.
const GONE: Duration = Duration::from_secs(5);

/// The side of the gateway.
pub struct Watchdog {
    child: Child,
    last: Instant,
    broken: bool,
    note: Note,
}

impl Watchdog {
    /// Starts the process: this program with `gateway watchdog`, whose standard output is the ledger of
    /// connections. `note` says that it has ended.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(ledger: File, note: Note) -> Result<Self> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let own = Process::own();
        let mut command = Command::new(program);
        command.args(["gateway", "watchdog", &own.pid.to_string(), &own.started.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::from(ledger)).stderr(Stdio::inherit());
        // Ctrl-C is for the gateway alone.
        command.process_group(0);
        let child = command.spawn().context("cannot start the watchdog")?;
        Ok(Watchdog { child, last: Instant::now(), broken: false, note })
    }

    /// A sign of life. To be called at least each 500 ms.
    pub fn beat(&mut self) {
        if self.last.elapsed() < BEAT || self.broken {
            return;
        }
        self.last = Instant::now();
        let written = self.child.stdin.as_mut().map(|pipe| pipe.write_all(&[SIGN]));
        if matches!(written, Some(Err(_)) | None) {
            self.broken = true;
            (self.note)("note: the watchdog has ended; a gateway that hangs is not killed any more");
        }
    }
}

impl Watchdog {
    /// Nothing is left to take away: the process ends, and this waits for it. Dropped without this it takes
    /// away what it finds when the gateway is gone.
    pub fn end(mut self) {
        // Where it has ended already there is nobody to tell.
        let _ = self.child.stdin.take().map(|mut pipe| pipe.write_all(&[FAREWELL]));
        let _ = self.child.wait();
    }
}

/// The side of the watchdog: reads signs of life from standard input until the gateway has ended, and takes
/// away what it has left.
///
/// # Errors
/// It cannot wait.
pub fn run(pid: i32, started: u64, note: Note) -> Result<()> {
    let gateway = Process { pid, started };
    let mut input = io::stdin();
    let mut bytes = [0; 64];
    loop {
        let heard = waits(&input, SILENCE)? || waits(&input, GRACE)?;
        if !heard {
            note("the gateway hangs: killed, connections pass by the kernel");
            gateway.end(true);
            break;
        }
        match input.read(&mut bytes).unwrap_or(0) {
            0 => break, // it has ended, or is about to
            count if bytes.iter().take(count).any(|byte| *byte == FAREWELL) => return Ok(()),
            _ => {}
        }
    }
    let since = Instant::now();
    while gateway.is_alive() && since.elapsed() < GONE {
        std::thread::sleep(Duration::from_millis(10));
    }
    reset_hosts(note);
    take_away(pid, started, note);
    Ok(())
}

/// True if there is something to read, or the other end is closed, before the time is over.
fn waits(input: &io::Stdin, milliseconds: u16) -> Result<bool> {
    let until = Instant::now() + Duration::from_millis(milliseconds.into());
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let time = PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO);
        match poll(&mut [PollFd::new(input.as_fd(), PollFlags::POLLIN)], time) {
            Err(Errno::EINTR) => {}
            done => return Ok(done.context("cannot wait for the gateway")? > 0),
        }
    }
}

/// Hosts of connections that cannot go on are told so. The ledger is in place of standard output: it lives as
/// long as it is open somewhere.
fn reset_hosts(note: Note) {
    let ledger = io::stdout().as_fd().try_clone_to_owned().map(File::from);
    match ledger.and_then(|ledger| reset_left(&ledger)) {
        Ok(0) => {}
        Ok(1) => note("the gateway has died with undelivered bytes of 1 connection: its hosts were reset"),
        Ok(count) => note(&format!(
            "the gateway has died with undelivered bytes of {count} connections: their hosts were reset"
        )),
        Err(error) => note(&format!(
            "the gateway has died, and hosts of connections with undelivered bytes were not reset: {error}"
        )),
    }
}

/// Takes away what the gateway has set, if it has not done so itself.
fn take_away(pid: i32, started: u64, note: Note) {
    let its = |journal: &Journal| journal.pid == pid.unsigned_abs() && journal.began == started;
    for mut journal in journals().into_iter().filter(|journal| its(journal) && journal.is_left_over()) {
        if let Err(errors) = clean(&mut journal) {
            let all: Vec<_> = errors.iter().map(ToString::to_string).collect();
            note(&format!("left over: {}; `farpace doctor --clean` tries again", all.join("; ")));
        }
    }
    control::remove_files_of(pid.unsigned_abs());
}
