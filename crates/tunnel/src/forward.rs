//! TCP ports of this machine that lead to hosts which another machine reaches, as `ssh
//! -L`, with farpace's TCP between.
//!
//! A stream says `HOST:PORT` in a line. The answer is a line: `ok`, or why not; then bytes pass in both
//! directions.

use crate::{ReachedEnd, SecureStream, Service, TransferStream, named_at};
use anyhow::{Context, Result, anyhow, bail, ensure};
use farpace_transfer::FramedStream;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::str::FromStr;
use std::thread::Builder;
use std::time::Duration;

/// Longest line of this.
const MAX_LINE: u64 = 1_024;
/// How long the far end may take to connect.
const CONNECT: Duration = Duration::from_secs(20);
/// Bytes that are passed on at once.
const ROOM: usize = 256 << 10;

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
        let is_host = !host.is_empty() && host.len() < 256 && !host.contains(char::is_whitespace);
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

/// Carries one connection to the far end, until both ends have closed it.
///
/// # Errors
/// The far end is gone, or cannot reach the host.
pub fn carry(tcp: TcpStream, reached: &ReachedEnd, rule: &ForwardRule) -> Result<()> {
    let mut far = reached.open(Service::Forward)?;
    far.line.writer.write_all(format!("{}\n", named_at(&rule.host, rule.port)).as_bytes())?;
    far.line.writer.flush()?;
    let answer = line(&mut far.line.reader)?;
    ensure!(answer == "ok", "{answer}");
    relay(SecureStream::of_kernel(tcp)?, far);
    Ok(())
}

/// The far end of one connection.
///
/// # Errors
/// The near end says nothing that makes sense, or the host cannot be reached; the near end is told.
pub fn serve(stream: TransferStream) -> Result<()> {
    let TransferStream { line: FramedStream { mut reader, mut writer, close }, peer, probe, finish, .. } =
        stream;
    let to = line(&mut reader)?;
    let tcp = connect(&to);
    let said = match &tcp {
        Ok(_) => "ok\n".to_owned(),
        Err(error) => format!("{error:#}\n").replace('\n', " ") + "\n",
    };
    writer.write_all(said.as_bytes())?;
    writer.flush()?;
    let near = SecureStream { line: FramedStream { reader, writer, close }, finish, peer, probe };
    relay(SecureStream::of_kernel(tcp?)?, near);
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

/// Passes bytes on in both directions until both have ended.
fn relay(a: SecureStream, b: SecureStream) {
    let SecureStream {
        line: FramedStream { reader: from_a, writer: to_a, close: close_a },
        finish: finish_a,
        ..
    } = a;
    let SecureStream {
        line: FramedStream { reader: from_b, writer: to_b, close: close_b },
        finish: finish_b,
        ..
    } = b;
    std::thread::scope(|scope| {
        let there = || {
            let done = pass(from_a, to_b);
            finish_b();
            // An error in one direction ends both.
            if done.is_err() {
                close_a();
                close_b();
            }
        };
        let started = Builder::new().spawn_scoped(scope, there).is_ok();
        if started {
            let done = pass(from_b, to_a);
            finish_a();
            if done.is_err() {
                close_a();
                close_b();
            }
        }
    });
    close_a();
    close_b();
}

fn pass(mut from: Box<dyn Read + Send>, mut to: Box<dyn Write + Send>) -> io::Result<()> {
    let mut room = vec![0; ROOM];
    loop {
        match from.read(&mut room) {
            Ok(0) => return to.flush(),
            Ok(n) => {
                to.write_all(room.get(..n).unwrap_or_default())?;
                to.flush()?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
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
            "x:intranet:80",
            "a:1:b:2:c",
        ] {
            assert!(wrong.parse::<ForwardRule>().is_err(), "{wrong}");
        }
    }
}
