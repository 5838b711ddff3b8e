//! A far end that ssh starts, and the ticket that it tells.

use super::{CarrierChoice, ReachedEnd, Service, TicketPlace, Via, reach};
use crate::control::{Greeting, MAX_LINES, NoFarEnd, hear};
use anyhow::{Context, Result, bail};
use farpace_live::socket::SocketOptions;
use farpace_process::interrupt;
use farpace_transfer::kernel;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Between two looks at whether the user has stopped the command.
const LOOK: Duration = Duration::from_millis(100);
/// After the end of its input, ssh has so long to exit.
const GRACE: Duration = Duration::from_secs(3);

/// How the far end is started.
#[derive(Clone, Copy, Debug)]
pub struct SshProgram<'a> {
    /// What starts a command on another machine, with its options.
    pub ssh_command: &'a str,
    /// farpace on the other machine.
    pub remote_command: &'a str,
}

/// A far end that was started.
pub struct SshEnd {
    /// ssh.
    pub child: Child,
    /// What the far end hears.
    pub input: ChildStdin,
    /// What it says.
    pub output: BufReader<ChildStdout>,
    greeting: Greeting,
    host: String,
}

/// What ssh says, waited for until the user stops the command.
struct AwaitedOutput<'a>(&'a mut BufReader<ChildStdout>);

impl BufRead for AwaitedOutput<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.0.buffer().is_empty() {
            if interrupt::asked() {
                // Not `Interrupted`, after which readers try again.
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            let mut fds = [PollFd::new(self.0.get_ref(), PollFlags::IN)];
            let wait = Timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
            match poll(&mut fds, Some(&wait)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => break,
                Err(errno) => return Err(errno.into()),
            }
        }
        self.0.fill_buf()
    }
    fn consume(&mut self, amount: usize) {
        self.0.consume(amount);
    }
}

impl Read for AwaitedOutput<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.fill_buf()?.read(into)?;
        self.consume(n);
        Ok(n)
    }
}

/// `[user@][ADDRESS]` as ssh wants it: an IPv6 address without brackets.
fn without_brackets(host: &str) -> String {
    let (user, address) = host.rsplit_once('@').map_or(("", host), |(user, address)| (user, address));
    let bare = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(address);
    if user.is_empty() { bare.to_owned() } else { format!("{user}@{bare}") }
}

impl SshProgram<'_> {
    /// Starts `command` of farpace on `host`, and hears what it says first. ssh may wait for a password as
    /// long as it likes.
    ///
    /// # Errors
    /// ssh cannot be started.
    pub fn start(&self, host: &str, command: &str) -> Result<Result<SshEnd, NoFarEnd>> {
        let mut words = self.ssh_command.split_whitespace();
        let program = words.next().context("--ssh-command is empty")?;
        let bare = without_brackets(host);
        let mut child = Command::new(program)
            .args(words)
            .arg(bare)
            .arg(format!("{} {command}", self.remote_command))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| {
                format!("cannot start `{program}`; install it, or name another with --ssh-command")
            })?;
        let (Some(output), Some(input)) = (child.stdout.take(), child.stdin.take()) else {
            bail!("`{program}` has no standard input and output");
        };
        let mut output = BufReader::new(output);
        let why = match hear(&mut AwaitedOutput(&mut output)) {
            Ok(greeting) => return Ok(Ok(SshEnd { child, input, output, greeting, host: host.to_owned() })),
            Err(why) => why,
        };
        // Without a reader a program that goes on printing would wait for one, and ssh with it.
        drop((input, output));
        let why = if interrupt::asked() { NoFarEnd::Interrupted } else { why };
        kernel::end_child(&mut child, GRACE);
        Ok(Err(match why {
            NoFarEnd::Ended(_) => NoFarEnd::Ended(child.wait().ok().and_then(|status| status.code())),
            other => other,
        }))
    }
    /// Why there is no far end, for people, and what mends it.
    pub fn why_not(&self, host: &str, why: NoFarEnd) -> String {
        match why {
            NoFarEnd::Ended(Some(127)) => format!(
                "`{}` is not there on {host}: install it, or name it with --remote-command",
                self.remote_command
            ),
            NoFarEnd::Ended(Some(255)) => format!("ssh does not reach {host}"),
            NoFarEnd::Ended(_) => format!("farpace did not start on {host}; what it said is above"),
            NoFarEnd::Noise => format!(
                "a login script on {host} printed {MAX_LINES} lines before farpace said anything: let it \
                 print nothing where standard output is no terminal"
            ),
            NoFarEnd::Interrupted => "interrupted".to_owned(),
        }
    }
}

impl SshEnd {
    /// A way of its own to the far end, which is told of it.
    ///
    /// # Errors
    /// No way leads there.
    pub fn reach(
        &mut self,
        service: Service,
        choice: CarrierChoice,
        options: &SocketOptions,
        via: &[Via],
    ) -> Result<ReachedEnd> {
        let Greeting::Ticket(ticket) = &self.greeting else { bail!("the far end cannot open a port") };
        let mut ticket = ticket.clone();
        // As ssh has reached it; behind address translation the name may be better.
        let bare = self.host.rsplit_once('@').map_or(self.host.as_str(), |(_, host)| host);
        let bare = bare.trim_start_matches('[').trim_end_matches(']');
        if let Some(port) = ticket.places.first().map(|place| place.port) {
            ticket.add(TicketPlace { host: bare.to_owned(), port });
        }
        let reached = reach(&ticket, service, choice, options, via)?;
        self.input.write_all(b"ticket\n").context("the connection of ssh broke")?;
        Ok(reached)
    }
    /// True if ssh has ended, as it does when the far end has.
    pub fn is_gone(end: &Mutex<Option<SshEnd>>) -> bool {
        let mut end = end.lock().unwrap_or_else(PoisonError::into_inner);
        end.as_mut().is_some_and(|end| !matches!(end.child.try_wait(), Ok(None)))
    }
    /// Ends it: it hears the end of its input, and is killed if that is not enough.
    pub fn end(mut self) {
        drop(self.input);
        kernel::end_child(&mut self.child, GRACE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_process::stopwatch::Stopwatch;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn start(script: &str) -> NoFarEnd {
        let place = tempfile::tempdir().unwrap();
        let ssh = place.path().join("ssh");
        fs::write(&ssh, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
        let program = SshProgram { ssh_command: ssh.to_str().unwrap(), remote_command: "farpace" };
        program.start("far", "recv").unwrap().err().unwrap()
    }

    /// Breaks: a login script that prints more than a pipe holds makes the command wait for ever, or nobody
    /// is told that it is the script.
    #[test]
    fn a_far_end_that_prints_too_much_is_not_waited_for() {
        let begun = Stopwatch::start();
        assert_eq!(start("yes motd | head -c 1000000; exit 3"), NoFarEnd::Noise);
        assert_eq!(start("exec yes motd"), NoFarEnd::Noise);
        assert_eq!(start("echo motd; exit 255"), NoFarEnd::Ended(Some(255)));
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    }

    /// Breaks: ssh gets an address with half of its brackets, and looks for a host of that name.
    #[test]
    fn ssh_gets_an_address_without_brackets() {
        for (host, bare) in
            [("[fd00::1]", "fd00::1"), ("anna@[::1]", "anna@::1"), ("anna@far", "anna@far"), ("far", "far")]
        {
            assert_eq!(without_brackets(host), bare);
        }
    }
}
