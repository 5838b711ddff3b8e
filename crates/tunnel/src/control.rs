//! The far end of what ssh starts: it says on standard output with which ticket it can be reached, and hears
//! on standard input which way was found.
//!
//! ```text
//! it says   farpace-copy 2 TICKET     over ssh, which keeps the ticket's secret
//! it hears  ticket                    whoever has the ticket comes
//!           through                   what follows on standard input and output is the transfer itself
//! ```

use crate::server::{self, RecvServer, ServeTransfer, TransferEnd};
use crate::{
    CarrierChoice, Gate, GateArgs, Service, Ticket, TicketIdentity, TransferListener, TransferProbe,
    TransferStream,
};
use anyhow::{Context, Result, bail};
use farpace_live::socket::SocketOptions;
use farpace_process::interrupt;
use farpace_process::stopwatch::Stopwatch;
use farpace_transfer::{LineProgress, Session, Timeouts, TransferError, kernel};
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use std::time::Duration;

/// The first words of what it says.
pub const GREETING: &str = "farpace-copy 2";
/// So long after it has heard how, somebody who has the ticket must have come.
const ARRIVAL: Duration = Duration::from_secs(60);
/// After ssh has ended a transfer on which nothing moves for so long is over: its near end was killed, and
/// may come again. One that moves has only lost ssh, as at a change of networks.
const ALONE: Duration = Duration::from_secs(5);
/// Lines that a login script may print before it says anything.
pub(crate) const MAX_LINES: u32 = 1_000;
/// Longest word that it hears.
const MAX_WORD: usize = 16;

/// Opens the ways for one near end.
///
/// # Errors
/// There are no random numbers, or no port can be opened.
pub fn open_gate(port: u16, services: &[Service], options: &SocketOptions) -> Result<Gate> {
    let identity = TicketIdentity::generate().context("no random numbers")?;
    // "client port server port"
    let connection = std::env::var("SSH_CONNECTION").unwrap_or_default();
    let address = connection.split(' ').nth(2).filter(|address| address.parse::<IpAddr>().is_ok());
    let advertise = address.map(str::to_owned).into_iter().collect();
    // The near end chooses its way before it says a word, so TLS must answer before that.
    let ways = CarrierChoice::default();
    let args = GateArgs { address: None, port, advertise, ways, shakes_early: true };
    Gate::open(&identity, &args, services, options)
}

/// The line that tells the near end the ticket; none: that it can come through ssh alone.
pub fn greeting(gate: Option<&Gate>) -> String {
    match gate {
        Some(gate) => format!("{GREETING} {}\n", gate.ticket()),
        None => format!("{GREETING} -\n"),
    }
}

/// The next word on standard input; empty at its end.
///
/// # Errors
/// It cannot be read.
pub fn hear_word() -> Result<String> {
    let mut word = String::new();
    // Byte by byte and without a buffer: the transfer itself may come through it.
    let mut input = File::from(own(&io::stdin())?);
    let mut byte = [0];
    while word.len() < MAX_WORD && input.read(&mut byte).context("cannot read standard input")? == 1 {
        match byte {
            [b'\n'] => break,
            [byte] => word.push(char::from(byte)),
        }
    }
    Ok(word)
}

/// Becomes true when the near end, or ssh, is gone: standard input ends.
fn near_end_leaves() -> Result<Arc<AtomicBool>> {
    let is_left = Arc::new(AtomicBool::new(false));
    let left = is_left.clone();
    let listen = move || {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        left.store(true, Ordering::Relaxed);
    };
    // It ends with the process.
    Builder::new().spawn(listen).context("cannot start a thread")?;
    Ok(is_left)
}

/// A descriptor of a stream of this process.
fn own(stream: &impl AsFd) -> Result<OwnedFd> {
    stream.as_fd().try_clone_to_owned().context("no descriptors are left")
}

/// Serves one transfer, after the near end was told of `gate`. None: the near end has said nothing.
///
/// # Errors
/// The near end says nothing that makes sense, or nobody comes.
pub fn serve_near_end(
    gate: Option<Gate>,
    timeouts: Timeouts,
    complain: &(dyn Fn(&str) + Sync),
    transfer: &ServeTransfer<'_>,
) -> Result<Option<TransferEnd>> {
    match (hear_word()?.as_str(), gate) {
        ("through", _) => {
            let line = kernel::line_of_pipes(own(&io::stdin())?, own(&io::stdout())?);
            let call = TransferStream {
                line,
                peer: "ssh".to_owned(),
                address: None,
                probe: TransferProbe::Through,
                finish: Box::new(|| ()),
            };
            let tick = |_: &_| interrupt::asked();
            let session =
                Session { secured: true, connected: false, timeouts, tick: &tick, ..Session::default() };
            // The near end tells its user why.
            Ok(Some(TransferEnd::of(&transfer(call, &session))))
        }
        ("ticket", Some(gate)) => {
            let begun = Stopwatch::start();
            let came = AtomicBool::new(false);
            let idle = || !came.load(Ordering::Relaxed) && begun.elapsed() > ARRIVAL;
            let server = RecvServer {
                token: b"",
                secured: true,
                transfers: 1,
                timeouts,
                idle: &idle,
                one_sender: true,
                complain,
            };
            let is_left = near_end_leaves()?;
            let end = server::serve(&TransferListener::Gate(gate), &server, true, &|call, session| {
                let admit = || {
                    came.store(true, Ordering::Relaxed);
                    (session.admit)()
                };
                let is_alone = AtomicBool::new(false);
                let tick = |progress: &LineProgress| {
                    let alone = is_left.load(Ordering::Relaxed) && progress.silent > ALONE;
                    is_alone.fetch_or(alone, Ordering::Relaxed);
                    (session.tick)(progress) || alone
                };
                let result = transfer(call, &Session { admit: &admit, tick: &tick, ..*session });
                match result {
                    // Nobody has interrupted this end.
                    Err(TransferError::Interrupted) if is_alone.load(Ordering::Relaxed) => {
                        let text = format!("ssh has ended, and nothing moved for {} s", ALONE.as_secs());
                        Err(TransferError::Line(io::Error::new(io::ErrorKind::ConnectionAborted, text)))
                    }
                    result => result,
                }
            })?;
            match end {
                Some(end) => Ok(Some(end)),
                None if interrupt::asked() => Ok(Some(TransferEnd::Interrupted)),
                None => bail!("nobody who has the ticket came to the port within {} s", ARRIVAL.as_secs()),
            }
        }
        ("", _) => Ok(None),
        (word, _) => bail!("`{word}` is not understood: use the same version of farpace at both ends"),
    }
}

/// What the far end has said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Greeting {
    /// With this ticket it can be reached.
    Ticket(Box<Ticket>),
    /// It can be reached through ssh alone.
    Nowhere,
}

/// Why there is no far end after ssh was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoFarEnd {
    /// ssh has ended, with this exit code; none: by a signal.
    Ended(Option<i32>),
    /// Too many lines came before farpace said anything.
    Noise,
    /// The user did not want to wait any longer.
    Interrupted,
}

/// Reads what the far end says, after what the shell there may say first.
///
/// # Errors
/// It ended, whose exit code is not known here, or said something else.
pub(crate) fn hear(from: &mut impl BufRead) -> Result<Greeting, NoFarEnd> {
    // What a login script prints is borne, within limits.
    for _ in 0..MAX_LINES {
        let mut line = Vec::new();
        let n = from.take(8_192).read_until(b'\n', &mut line);
        n.ok().filter(|n| *n > 0).ok_or(NoFarEnd::Ended(None))?;
        let text = String::from_utf8_lossy(&line);
        let Some(rest) = text.trim_end().strip_prefix(GREETING) else { continue };
        return match rest.trim() {
            "-" => Ok(Greeting::Nowhere),
            ticket => Ok(Greeting::Ticket(Box::new(ticket.parse().map_err(|_| NoFarEnd::Ended(None))?))),
        };
    }
    Err(NoFarEnd::Noise)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a login script that prints something spoils every copy.
    #[test]
    fn a_greeting_is_found_behind_other_lines() {
        let ticket =
            TicketIdentity::generate().unwrap().ticket(vec!["10.0.0.5:4711".parse().unwrap()], b"key");
        let said = format!("Welcome!\nfarpace-copy 2 {ticket}\nrest");
        let mut said = said.as_bytes();
        assert_eq!(hear(&mut said), Ok(Greeting::Ticket(Box::new(ticket))));
        assert_eq!(said, b"rest");
        assert_eq!(hear(&mut &b"farpace-copy 2 -\n"[..]), Ok(Greeting::Nowhere));
        assert_eq!(hear(&mut &b"sh: farpace: not found\n"[..]), Err(NoFarEnd::Ended(None)));
        assert_eq!(hear(&mut &b"farpace-copy 2 farpace:h:1#AAAA\n"[..]), Err(NoFarEnd::Ended(None)));
        assert_eq!(hear(&mut &b"farpace-copy 1 4711 abc 10.0.0.5\n"[..]), Err(NoFarEnd::Ended(None)));
    }
}
