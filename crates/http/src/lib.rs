//! An HTTP/1.1 server (RFC 9112) for the pages, events and metrics of commands.
//!
//! It answers one GET request for each connection, and never reads a body, whatever `Content-Length` or
//! `Transfer-Encoding` say: the connection ends after the answer. A stranger can make it hold 64 threads
//! with a head of 8 KiB each, and as many that are about to end: a head that is not whole within 5 s, or
//! when a new connection needs the place, and a reader that stops reading for 5 s, lose their connection.
//!
//! Start reading at [`HttpServer`]. `request` reads heads, `access` judges who asks, `response` writes
//! answers, `places` has the number of connections; this file has a connection from its beginning to its end.

#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "it serves in real time")]

mod access;
mod places;
mod request;
mod response;
#[cfg(test)]
mod tests;

pub use access::{HostRule, is_same, own_name, secret, without_secret};
use places::{ConnectionPlace, HttpPlaces};
pub use request::HttpRequest;
pub use response::{HttpBody, HttpResponse, HttpWriter};

use nix::sys::socket::{setsockopt, sockopt};
use std::io::{self, Read};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time for a whole head at most.
const MAX_HEAD_TIME: Duration = Duration::from_secs(5);
/// Time in which a client takes [`PIECE`](response::PIECE) bytes of an answer at least.
const MAX_WRITE_TIME: Duration = Duration::from_secs(5);
/// Time after an error of `accept`, such as EMFILE.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Send buffer of a connection, in bytes; the kernel doubles it.
const SEND_BUFFER: usize = 64 << 10;
/// Bytes after the head that are thrown away at most, so that the answer is not lost with a reset.
const MAX_DISCARDED: usize = 64 << 10;
/// Time for that at most.
const MAX_LINGER: Duration = Duration::from_secs(1);

/// What a server asks of requests.
#[derive(Clone, Debug)]
pub struct HttpRules {
    /// Name of its threads.
    pub name: &'static str,
    /// Which `Host` is answered.
    pub hosts: HostRule,
    /// Status for methods other than GET: 405, or 404 of a server that tells nothing of its resources.
    pub other_method: u16,
}

/// A listener without its answers.
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
}

/// How long a server waits for its clients.
#[derive(Clone, Copy, Debug)]
struct HttpTimeouts {
    head: Duration,
    /// For each piece of an answer.
    write: Duration,
}

impl Default for HttpTimeouts {
    fn default() -> Self {
        HttpTimeouts { head: MAX_HEAD_TIME, write: MAX_WRITE_TIME }
    }
}

/// What answers.
struct HttpSite {
    rules: HttpRules,
    timeouts: HttpTimeouts,
    answer: Box<dyn Fn(&HttpRequest) -> HttpResponse + Send + Sync>,
}

impl HttpServer {
    /// Listens at an address; port 0 is a free one.
    ///
    /// # Errors
    /// The address is not of this host, or in use.
    pub fn listen(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        Ok(HttpServer { listener, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers in threads of its own until the process ends. `answer` is called in the thread of the
    /// connection.
    ///
    /// # Errors
    /// There is no thread.
    pub fn serve(
        self,
        rules: HttpRules,
        answer: impl Fn(&HttpRequest) -> HttpResponse + Send + Sync + 'static,
    ) -> io::Result<()> {
        self.serve_with(HttpTimeouts::default(), rules, answer).map(drop)
    }

    /// As [`HttpServer::serve`], with other timeouts. Returns the places of its connections.
    fn serve_with(
        self,
        timeouts: HttpTimeouts,
        rules: HttpRules,
        answer: impl Fn(&HttpRequest) -> HttpResponse + Send + Sync + 'static,
    ) -> io::Result<Arc<HttpPlaces>> {
        let name = rules.name.to_owned();
        let site = Arc::new(HttpSite { rules, timeouts, answer: Box::new(answer) });
        let places = Arc::new(HttpPlaces::default());
        let taken = places.clone();
        let accept = move || {
            loop {
                match self.listener.accept() {
                    Ok((stream, _)) => site.begin(stream, &taken),
                    Err(_) => std::thread::sleep(ACCEPT_PAUSE),
                }
            }
        };
        std::thread::Builder::new().name(name).spawn(accept)?;
        Ok(places)
    }
}

impl HttpSite {
    /// Serves a connection in a thread of its own. Without a place or a thread it is closed.
    fn begin(self: &Arc<Self>, stream: TcpStream, places: &Arc<HttpPlaces>) {
        let Some(place) = places.take(stream) else { return };
        let site = self.clone();
        // The place is free when the connection has ended. An error of a client does not matter here.
        let work = move || {
            let _ = site.converse(&place);
        };
        let _ = std::thread::Builder::new().name(self.rules.name.to_owned()).spawn(work);
    }

    /// Reads a request, answers it, and ends the connection.
    fn converse(&self, place: &ConnectionPlace) -> io::Result<()> {
        let stream = &*place.stream;
        stream.set_nodelay(true)?;
        setsockopt(stream, sockopt::SndBuf, &SEND_BUFFER)?;
        // A reader that stops, or is gone, while the send buffer has room.
        setsockopt(stream, sockopt::TcpUserTimeout, &(self.timeouts.write.as_millis() as u32))?;
        let request = request::read(stream, self.timeouts.head)?;
        place.answers();
        let response = match request {
            Ok(request) => self.judge(&request),
            Err(status) => HttpResponse::text(status, "no request that is understood here\n"),
        };
        response.send(&mut HttpWriter::new(stream, self.timeouts.write))?;
        place.waits();
        linger(stream)
    }

    fn judge(&self, request: &HttpRequest) -> HttpResponse {
        let HttpRules { hosts, other_method, .. } = &self.rules;
        if let Some(refusal) = hosts.refusal(request.header("Host")) {
            return HttpResponse::text(403, refusal);
        }
        match request.method() {
            "GET" => (self.answer)(request),
            // Its answers have no body (RFC 9110, section 9.3.2).
            "HEAD" => HttpResponse::text(*other_method, ""),
            _ => HttpResponse::text(*other_method, "GET alone\n"),
        }
    }
}

/// Ends a connection (RFC 9112, section 9.6): what still comes would make the kernel reset it, and the client
/// lose the answer.
fn linger(mut stream: &TcpStream) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    let deadline = Instant::now() + MAX_LINGER;
    let mut room = [0; 4096];
    let mut discarded = 0;
    while discarded < MAX_DISCARDED {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut room)? {
            0 => break,
            n => discarded += n,
        }
    }
    Ok(())
}
