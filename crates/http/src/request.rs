//! The head of a request. Its body is not read.

use std::io::{self, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Length of a head at most, in bytes.
pub(crate) const MAX_HEAD: usize = 8 << 10;
/// Header lines of a head at most.
const MAX_LINES: usize = 64;

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
}

impl HttpRequest {
    /// Path and query, as they came.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The target without its query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The value of the first header line of this name, in any case; none if it is no UTF-8.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The method, as it came.
    pub(crate) fn method(&self) -> &str {
        &self.method
    }
}

/// Reads a head within a time, or the status that refuses it.
///
/// # Errors
/// The client goes, or its head is not whole in time: it gets no answer.
pub(crate) fn read(mut stream: &TcpStream, max_time: Duration) -> io::Result<Result<HttpRequest, u16>> {
    let deadline = Instant::now() + max_time;
    let mut head = vec![0; MAX_HEAD];
    let mut len = 0;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let n = match stream.read(&mut head[len..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let may_end = head[len..len + n].contains(&b'\n');
        len += n;
        if may_end && let Some(parsed) = parse(&head[..len]) {
            return Ok(parsed);
        }
        if len == head.len() {
            return Ok(Err(431));
        }
    }
}

/// Parses a head, whatever follows it; none while it is not whole.
fn parse(bytes: &[u8]) -> Option<Result<HttpRequest, u16>> {
    let mut lines = [httparse::EMPTY_HEADER; MAX_LINES];
    let mut request = httparse::Request::new(&mut lines);
    match request.parse(bytes) {
        Ok(httparse::Status::Partial) => return None,
        Ok(httparse::Status::Complete(_)) => {}
        Err(httparse::Error::TooManyHeaders) => return Some(Err(431)),
        Err(httparse::Error::Version) => return Some(Err(505)),
        Err(_) => return Some(Err(400)),
    }
    // Which of two hosts is meant cannot be known, and HTTP/1.1 needs one (RFC 9112, section 3.2).
    let hosts = request.headers.iter().filter(|line| line.name.eq_ignore_ascii_case("Host")).count();
    if hosts > 1 || (hosts == 0 && request.version == Some(1)) {
        return Some(Err(400));
    }
    let text = |line: &httparse::Header<'_>| {
        let value = std::str::from_utf8(line.value).ok()?;
        Some((line.name.to_owned(), value.to_owned()))
    };
    Some(Ok(HttpRequest {
        method: request.method.unwrap_or_default().to_owned(),
        target: request.path.unwrap_or_default().to_owned(),
        headers: request.headers.iter().filter_map(text).collect(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a request is answered before it is whole, or misread.
    #[test]
    fn heads_are_read_when_they_are_whole() {
        let text = "GET /a/b?c=d HTTP/1.1\r\nHost: x:1\r\nauthorization: Bearer  t\r\nOdd: \u{e9}\r\n\r\nGET";
        let whole = text.len() - 3;
        for len in 0..whole {
            assert_eq!(parse(&text.as_bytes()[..len]), None, "{len}");
        }
        let request = parse(text.as_bytes()).unwrap().unwrap();
        assert_eq!(request.method(), "GET");
        assert_eq!((request.target(), request.path()), ("/a/b?c=d", "/a/b"));
        assert_eq!(request.header("HOST"), Some("x:1"));
        assert_eq!(request.header("Authorization"), Some("Bearer  t"));
        assert_eq!(request.header("Cookie"), None);
    }

    /// Breaks: heads that could mean two things are answered.
    #[test]
    fn what_is_no_request_is_refused() {
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(MAX_LINES + 1));
        for (text, status) in [
            ("GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", 400),
            ("GET /\r\n\r\n", 400),
            ("\u{0}\u{1}\u{2}\n", 400),
            ("GET / HTTP/1.1\r\nno line\r\n\r\n", 400),
            ("GET / HTTP/2.0\r\n\r\n", 505),
            (many.as_str(), 431),
        ] {
            assert_eq!(parse(text.as_bytes()), Some(Err(status)), "{text:?}");
        }
        // HTTP/1.0 needs no host. Methods are in capitals.
        assert_eq!(parse(b"get / HTTP/1.0\r\n\r\n").unwrap().unwrap().method(), "get");
    }
}
