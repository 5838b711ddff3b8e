//! Answers, and how they are written.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Bytes that a client has to take within [`super::MAX_WRITE_TIME`].
pub(crate) const PIECE: usize = 64 << 10;

/// What an answer contains.
pub enum HttpBody {
    /// These bytes.
    Bytes(Cow<'static, [u8]>),
    /// So many bytes of a file, which is not in memory as a whole.
    File(File, u64),
    /// What this writes, until it returns.
    Stream(StreamWriter),
}

type StreamWriter = Box<dyn FnOnce(&mut HttpWriter<'_>) -> io::Result<()> + Send>;

/// An answer.
pub struct HttpResponse {
    status: u16,
    kind: &'static str,
    policy: Option<&'static str>,
    body: HttpBody,
}

impl From<String> for HttpBody {
    fn from(text: String) -> Self {
        HttpBody::Bytes(text.into_bytes().into())
    }
}

impl From<&'static str> for HttpBody {
    fn from(text: &'static str) -> Self {
        HttpBody::Bytes(text.as_bytes().into())
    }
}

impl HttpResponse {
    /// An answer with status 200 and this media type.
    pub fn ok(kind: &'static str, body: impl Into<HttpBody>) -> Self {
        HttpResponse { status: 200, kind, policy: None, body: body.into() }
    }

    /// Plain text.
    pub fn text(status: u16, text: impl Into<HttpBody>) -> Self {
        HttpResponse { status, ..HttpResponse::ok("text/plain; charset=utf-8", text) }
    }

    /// With this Content-Security-Policy.
    pub fn with_policy(self, policy: &'static str) -> Self {
        HttpResponse { policy: Some(policy), ..self }
    }

    fn head(&self) -> String {
        let HttpResponse { status, kind, .. } = self;
        let mut head = format!("HTTP/1.1 {status} {}\r\nContent-Type: {kind}\r\n", reason(*status));
        let len = match &self.body {
            HttpBody::Bytes(bytes) => Some(bytes.len() as u64),
            HttpBody::File(_, len) => Some(*len),
            HttpBody::Stream(_) => None,
        };
        if let Some(len) = len {
            let _ = write!(head, "Content-Length: {len}\r\n");
        }
        if *status == 405 {
            head += "Allow: GET\r\n";
        }
        if let Some(policy) = self.policy {
            let _ = write!(head, "Content-Security-Policy: {policy}\r\n");
        }
        head += "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
                 Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n";
        head
    }

    /// Writes it.
    ///
    /// # Errors
    /// The client is gone, or does not read; a file is shorter than it was.
    pub(crate) fn send(self, out: &mut HttpWriter<'_>) -> io::Result<()> {
        let mut head = self.head().into_bytes();
        match self.body {
            HttpBody::Bytes(bytes) if bytes.len() <= PIECE => {
                head.extend_from_slice(&bytes);
                out.write_all(&head)
            }
            HttpBody::Bytes(bytes) => {
                out.write_all(&head)?;
                out.write_all(&bytes)
            }
            HttpBody::File(mut file, len) => {
                out.write_all(&head)?;
                let mut piece = vec![0; PIECE];
                let mut left = len;
                while left > 0 {
                    let most = left.min(PIECE as u64) as usize;
                    file.read_exact(&mut piece[..most])?;
                    out.write_all(&piece[..most])?;
                    left -= most as u64;
                }
                Ok(())
            }
            HttpBody::Stream(write) => {
                out.write_all(&head)?;
                write(out)
            }
        }
    }
}

/// The reason phrase of a status (RFC 9110, section 15).
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}

/// Writes to a client that has to read.
pub struct HttpWriter<'a> {
    stream: &'a TcpStream,
    /// For each [`PIECE`].
    max_time: Duration,
}

impl<'a> HttpWriter<'a> {
    pub(crate) fn new(stream: &'a TcpStream, max_time: Duration) -> Self {
        HttpWriter { stream, max_time }
    }

    /// Writes bytes. A client that does not take 64 KiB of them within 5 s loses its connection.
    ///
    /// # Errors
    /// The client is gone, or does not read.
    pub fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        bytes.chunks(PIECE).try_for_each(|piece| self.write_piece(piece))
    }

    fn write_piece(&mut self, mut piece: &[u8]) -> io::Result<()> {
        let mut stream = self.stream;
        let deadline = Instant::now() + self.max_time;
        while !piece.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            stream.set_write_timeout(Some(left))?;
            match stream.write(piece) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => piece = &piece[n..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
