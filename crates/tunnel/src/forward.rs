//! TCP ports of this machine that lead to hosts which another machine reaches, as `ssh
//! -L`, with farpace's TCP between.
//!
//! A stream says `forward 2 HOST:PORT` in a line. The answer is a line: `ok`, or why not. Frames of `relay`
//! follow both.

use crate::relay::{RelayEnd, relay, reset_at_end};
use crate::{CONNECT_TIME, OutageNews, ReachedEnd, SecureStream, Service, TransferStream, named_at};
use anyhow::{Context, Result, anyhow, bail, ensure};
use farpace_transfer::FramedStream;
use std::io::{self, BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::str::FromStr;
use std::time::Duration;

/// Longest line of this.
const MAX_LINE: u64 = 1_024;
/// How long the far end may take to connect.
const CONNECT: Duration = Duration::from_secs(20);
/// What stands before the host in a request.
const REQUEST: &str = "forward 2 ";

/// A port here, and where it leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardRule {
    /// Where connections come in.
    pub at: SocketAddr,
    /// The host that the far end connects to.
    pub host: String,
    /// Its port.
    pub port: u16,
}

impl FromStr for ForwardRule {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let form = || {
            format!("`{text}` is not [ADDR:]PORT:HOST:PORT, like 8080:intranet:80 or [::1]:8080:[fd00::5]:80")
        };
        // Addresses of IPv6 stand in brackets.
        let mut parts = vec![String::new()];
        let mut inside = false;
        for c in text.chars() {
            match c {
                '[' | ']' => inside = c == '[',
                ':' if !inside => parts.push(String::new()),
                c => parts.last_mut().ok_or_else(form)?.push(c),
            }
        }
        let (address, rest) = match parts.as_slice() {
            [_, _, _] => (Ok(Ipv4Addr::LOCALHOST.into()), &parts[..]),
            [address, rest @ ..] if rest.len() == 3 => (address.parse(), rest),
            _ => return Err(form()),
        };
        let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(form);
        let [local, host, remote] = rest else { return Err(form()) };
        // A name, or an address with its zone.
        let belongs = |c: char| c.is_alphanumeric() || "-_.:%".contains(c);
        let is_host = !host.is_empty() && host.len() < 256 && host.chars().all(belongs);
        if !is_host {
            return Err(form());
        }
        Ok(ForwardRule {
            at: SocketAddr::new(address.map_err(|_| form())?, port(local)?),
            host: host.clone(),
            port: port(remote)?,
        })
    }
}

/// Carries one connection to the far end, until both ends have closed it or one was reset. A connection that
/// cannot be carried is reset.
///
/// # Errors
/// The far end is gone, or cannot reach the host.
pub fn carry(tcp: TcpStream, reached: &ReachedEnd, rule: &ForwardRule) -> Result<()> {
    reset_at_end(&tcp)?;
    let mut far = reached.open(Service::Forward)?;
    far.line.writer.write_all(format!("{REQUEST}{}\n", named_at(&rule.host, rule.port)).as_bytes())?;
    far.line.writer.flush()?;
    // What the client says goes with the request: it takes no round trip more.
    let ended = relay(tcp, far, |reader| {
        let answer = line(reader)?;
        ensure!(answer == "ok", "{answer}");
        Ok(())
    })?;
    ensure!(ended != RelayEnd::Cut, "the connection to the far end broke, and the client was reset");
    Ok(())
}

/// An outage of the tunnel, and what it means for connections.
pub fn outage(host: &str, news: OutageNews) -> String {
    match news {
        OutageNews::Began(silent) => format!(
            "No answer from {host} for {} s: open connections wait, and new ones are reset after {} s.",
            silent.as_secs(),
            CONNECT_TIME.as_secs()
        ),
        OutageNews::Ended(silent) => format!("{host} answers again, after {} s.", silent.as_secs()),
    }
}

/// Resets a connection that there is no place for.
pub fn refuse(tcp: TcpStream) {
    // Without the option it ends in order, which says less.
    let _ = reset_at_end(&tcp);
    drop(tcp);
}

/// The far end of one connection.
///
/// # Errors
/// The near end says nothing that makes sense, or the host cannot be reached; the near end is told.
pub fn serve(stream: TransferStream) -> Result<()> {
    let TransferStream { line: FramedStream { mut reader, mut writer, close }, peer, probe, finish, .. } =
        stream;
    let request = line(&mut reader)?;
    let tcp = match request.strip_prefix(REQUEST) {
        Some(to) => connect(to),
        None => Err(anyhow!("`{request}` is not understood: use the same version of farpace at both ends")),
    };
    let said = match &tcp {
        Ok(_) => "ok\n".to_owned(),
        Err(error) => format!("{error:#}").replace('\n', " ") + "\n",
    };
    writer.write_all(said.as_bytes())?;
    writer.flush()?;
    let tcp = match tcp {
        Ok(tcp) => tcp,
        Err(error) => {
            // What the client has sent is read until the near end has heard why: closed before, the
            // connection would be reset, and the answer lost.
            finish();
            let _ = io::copy(&mut reader, &mut io::sink());
            return Err(error);
        }
    };
    let near = SecureStream { line: FramedStream { reader, writer, close }, finish, peer, probe };
    relay(tcp, near, |_| Ok(()))?;
    Ok(())
}

fn connect(to: &str) -> Result<TcpStream> {
    let mut last = anyhow!("`{to}` has no address");
    for address in to.to_socket_addrs().with_context(|| format!("cannot find the host of {to}"))? {
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(tcp) => return Ok(tcp),
            Err(error) => last = anyhow!("cannot connect to {address}: {error}"),
        }
    }
    Err(last)
}

/// One line, without its end. Nothing behind it is read.
fn line(reader: &mut dyn Read) -> Result<String> {
    let mut text = Vec::new();
    // A byte at a time: what follows belongs to the connection.
    BufReader::with_capacity(1, reader.take(MAX_LINE)).read_until(b'\n', &mut text)?;
    let Some(text) = text.strip_suffix(b"\n") else { bail!("the other end is gone") };
    Ok(String::from_utf8_lossy(text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a rule as ssh takes it leads elsewhere, or opens a port to others that was not asked for.
    #[test]
    fn rules_are_read_as_ssh_does() {
        let rule =
            |at: &str, host: &str, port| Ok(ForwardRule { at: at.parse().unwrap(), host: host.into(), port });
        assert_eq!("8080:intranet:80".parse(), rule("127.0.0.1:8080", "intranet", 80));
        assert_eq!("0.0.0.0:8080:10.0.0.5:80".parse(), rule("0.0.0.0:8080", "10.0.0.5", 80));
        assert_eq!("[::1]:8080:[fd00::5]:80".parse(), rule("[::1]:8080", "fd00::5", 80));
        for wrong in [
            "",
            "8080",
            "8080:intranet",
            "0:intranet:80",
            "8080:intranet:0",
            "8080::80",
            "8080:/x:80",
            "8080:a b:80",
            "x:intranet:80",
            "a:1:b:2:c",
        ] {
            assert!(wrong.parse::<ForwardRule>().is_err(), "{wrong}");
        }
    }
}
