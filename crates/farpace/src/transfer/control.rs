//! The far end of `farpace copy`: started over ssh, it says on standard output where it listens and with which token, and
//! hears on standard input how the files will come.
//!
//! ```text
//! it says   farpace-copy 1 PORT TOKEN ADDRESS     ADDRESS: of this machine as ssh has reached it, or -
//! it hears  direct        a connection comes to that port
//!           through       what follows on standard input and output is the transfer itself
//! ```

use super::explain::TransferProbe;
use super::options::patience;
use super::server::{self, RecvServer};
use super::stack::{Net, TransferStream};
use crate::stopwatch::Stopwatch;
use crate::{interrupt, terminal};
use anyhow::{Context, Result, anyhow, bail};
use farpace_transfer::{FramedStream, Session, TransferError, Walk, kernel, walk};
use std::io::{self, BufRead, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The first word of what it says.
pub const GREETING: &str = "farpace-copy 1";
/// So long after it has heard how, somebody who knows the token must have come.
const ARRIVAL: Duration = Duration::from_secs(60);

/// What there is to send.
///
/// # Errors
/// Something is not there.
pub fn walk_or_tell(files: &[PathBuf]) -> Result<Walk> {
    walk(files).map_err(|fault| anyhow!(fault))
}

/// Serves one transfer.
///
/// # Errors
/// No port, or the near end says nothing that makes sense.
pub fn serve(
    timeout: u64,
    transfer: &(dyn Fn(TransferStream, &Session<'_>) -> Result<u8, TransferError> + Sync),
) -> Result<ExitCode> {
    let token = kernel::one_time_token().context("no random numbers")?;
    let any = [IpAddr::V6(Ipv6Addr::UNSPECIFIED), IpAddr::V4(Ipv4Addr::UNSPECIFIED)];
    let door = any.iter().find_map(|any| Net::Kernel.listen(SocketAddr::new(*any, 0)).ok());
    let port = door.as_ref().and_then(|door| door.address()).map_or(0, |at| at.port());
    // "client port server port"
    let connection = std::env::var("SSH_CONNECTION").unwrap_or_default();
    let address = connection.split(' ').nth(2).filter(|a| a.parse::<IpAddr>().is_ok()).unwrap_or("-");
    terminal::print(&format!("{GREETING} {port} {token} {address}\n"))?;
    let mut word = String::new();
    // Not locked for long: the transfer itself may come through it. Byte by byte, so that nothing of it is read too early.
    for byte in io::stdin().lock().bytes().take(16) {
        match byte.context("cannot read standard input")? {
            b'\n' => break,
            byte => word.push(char::from(byte)),
        }
    }
    let (token, patience) = (token.as_bytes(), patience(timeout));
    match (word.as_str(), door) {
        ("through", _) => {
            let line = FramedStream {
                reader: Box::new(io::stdin()),
                writer: Box::new(Flushed(io::stdout())),
                close: Box::new(|| ()),
            };
            let call =
                TransferStream { line, peer: "ssh".to_owned(), address: None, probe: TransferProbe::Through };
            let tick = |_: &_| interrupt::asked();
            let session = Session { token, connected: false, patience, tick: &tick, ..Session::default() };
            // The near end tells its user why.
            Ok(ExitCode::from(server::code(&transfer(call, &session))))
        }
        ("direct", Some(door)) => {
            let begun = Stopwatch::start();
            let came = AtomicBool::new(false);
            let idle = || !came.load(Ordering::Relaxed) && begun.elapsed() > ARRIVAL;
            let server = RecvServer { token, transfers: 1, patience, idle: &idle };
            let code = server::serve(&door, &server, true, &|call, session| {
                let admit = || {
                    came.store(true, Ordering::Relaxed);
                    (session.admit)()
                };
                transfer(call, &Session { admit: &admit, ..*session })
            })?;
            match code {
                Some(code) => Ok(ExitCode::from(code)),
                None if interrupt::asked() => Ok(ExitCode::from(terminal::INTERRUPTED)),
                None => bail!("nobody who knows the token came to the port within {} s", ARRIVAL.as_secs()),
            }
        }
        ("", _) => Ok(ExitCode::from(terminal::FAILED)),
        _ => bail!("`{word}` is not understood: use the same version of farpace at both ends"),
    }
}

/// Standard output keeps the last line back otherwise.
struct Flushed(io::Stdout);

impl Write for Flushed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut out = self.0.lock();
        let n = out.write(bytes)?;
        out.flush()?;
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// What the far end has said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// Where it listens; 0: nowhere.
    pub port: u16,
    /// The token of this one transfer.
    pub token: String,
    /// Its address as ssh has reached it.
    pub address: Option<IpAddr>,
}

/// Reads what the far end says, after what the shell there may say first. None: it ended, or said something else.
pub fn hear(from: &mut impl BufRead) -> Option<Greeting> {
    // What a login script prints is borne, within limits.
    for _ in 0..1_000 {
        let mut line = Vec::new();
        from.take(4_096).read_until(b'\n', &mut line).ok().filter(|n| *n > 0)?;
        let text = String::from_utf8_lossy(&line);
        let Some(rest) = text.trim_end().strip_prefix(GREETING) else { continue };
        let mut words = rest.split_whitespace();
        let port = words.next()?.parse().ok()?;
        let token = words.next()?.to_owned();
        let address = words.next()?.parse().ok();
        return Some(Greeting { port, token, address });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a login script that prints something spoils every copy.
    #[test]
    fn a_greeting_is_found_behind_other_lines() {
        let mut said = &b"Welcome!\nfarpace-copy 1 4711 abc 10.0.0.5\nrest"[..];
        let heard = hear(&mut said).unwrap();
        assert_eq!((heard.port, heard.token.as_str()), (4711, "abc"));
        assert_eq!(heard.address, Some(IpAddr::from([10, 0, 0, 5])));
        assert_eq!(said, b"rest");
        assert_eq!(hear(&mut &b"sh: farpace: not found\n"[..]), None);
        assert_eq!(hear(&mut &b"farpace-copy 1 99999 abc -\n"[..]), None);
    }
}
