//! A far end that ssh starts, and the ticket that it tells.

use super::{CarrierChoice, ReachedEnd, Service, TicketPlace, Via, reach};
use crate::{Greeting, hear};
use anyhow::{Context, Result, bail};
use farpace_live::socket::SocketOptions;
use farpace_transfer::kernel;
use std::io::{BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

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
    /// What it has said; none: it has ended.
    pub greeting: Option<Greeting>,
    host: String,
}

/// `[user@][ADDRESS]` as ssh wants it: an IPv6 address without brackets.
fn without_brackets(host: &str) -> String {
    let (user, address) = host.rsplit_once('@').map_or(("", host), |(user, address)| (user, address));
    let bare = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(address);
    if user.is_empty() { bare.to_owned() } else { format!("{user}@{bare}") }
}

impl SshProgram<'_> {
    /// Starts `command` of farpace on `host`, and hears what it says first.
    ///
    /// # Errors
    /// ssh cannot be started.
    pub fn start(&self, host: &str, command: &str) -> Result<SshEnd> {
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
        let greeting = hear(&mut output);
        Ok(SshEnd { child, input, output, greeting, host: host.to_owned() })
    }
    /// Why a far end that has said nothing has ended: its exit code tells.
    pub fn why_not(&self, host: &str, code: Option<i32>) -> String {
        match code {
            Some(127) => format!(
                "`{}` is not there on {host}: install it, or name it with --remote-command",
                self.remote_command
            ),
            Some(255) => format!("ssh does not reach {host}"),
            _ => format!("farpace did not start on {host}; what it said is above"),
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
        let Some(Greeting::Ticket(ticket)) = &self.greeting else { bail!("the far end cannot open a port") };
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
    /// Ends it: it hears the end of its input, and is killed if that is not enough.
    pub fn end(mut self) {
        drop(self.input);
        kernel::end_child(&mut self.child);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
