//! A server under hostile requests. No test waits for a time to pass: what must happen is waited for, and a
//! client that would wait for ever fails after [`STEP_TIMEOUT`].

use super::places::{MAX_CLOSING, MAX_CONNECTIONS};
use super::*;
use std::collections::VecDeque;
use std::io::Write;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};

/// No step takes so long, on a busy machine either.
const STEP_TIMEOUT: Duration = Duration::from_secs(120);
/// A timeout that tests can wait for.
const SHORT: Duration = Duration::from_millis(100);
/// More than the socket buffers of both ends hold.
const LONG_ANSWER: usize = 64 << 20;

/// A server, which goes on to the end of the tests.
struct TestSite {
    at: SocketAddr,
    places: Arc<HttpPlaces>,
    /// What was asked.
    asked: Arc<Mutex<Vec<String>>>,
    /// How long answers ended.
    ends: Receiver<io::Result<()>>,
}

impl TestSite {
    fn with(timeouts: HttpTimeouts, hosts: HostRule) -> Self {
        let server = HttpServer::listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let at = server.address();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (ended, ends) = channel();
        let seen = asked.clone();
        let answer = move |request: &HttpRequest| {
            seen.lock().unwrap().push(request.target().to_owned());
            match request.path() {
                "/panic" => panic!("as the test wants"),
                "/long" => {
                    let ended = ended.clone();
                    let write = move |out: &mut HttpWriter<'_>| {
                        let piece = [b'x'; 64 << 10];
                        let mut pieces = 0..LONG_ANSWER / piece.len();
                        let written = pieces.try_for_each(|_| out.write_all(&piece));
                        let kind = written.as_ref().map_err(io::Error::kind).copied();
                        let _ = ended.send(kind.map_err(io::Error::from));
                        written
                    };
                    HttpResponse::ok("text/plain", HttpBody::Stream(Box::new(write)))
                }
                _ => HttpResponse::ok("text/plain", "fine\n"),
            }
        };
        let rules = HttpRules { name: "test", hosts, other_method: 405 };
        let places = server.serve_with(timeouts, rules, answer).unwrap();
        TestSite { at, places, asked, ends }
    }

    fn new() -> Self {
        Self::with(HttpTimeouts { head: STEP_TIMEOUT, write: STEP_TIMEOUT }, HostRule::Local)
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.at).unwrap();
        stream.set_read_timeout(Some(STEP_TIMEOUT)).unwrap();
        stream.set_write_timeout(Some(STEP_TIMEOUT)).unwrap();
        stream
    }

    /// All that comes for a request, which may be part of one.
    fn ask(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        String::from_utf8(all_of(&mut stream)).unwrap()
    }

    fn assert_status(&self, request: &str, status: u16) {
        let answer = self.ask(request);
        let shown: String = request.chars().take(200).collect();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{shown}: {answer}");
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{shown}: {answer}");
    }

    fn assert_alive(&self) {
        self.assert_status(&get("/"), 200);
    }

    /// Waits until so many connections are open.
    fn wait_for_open(&self, count: usize) {
        let since = Instant::now();
        while self.places.open() != count {
            assert!(since.elapsed() < STEP_TIMEOUT, "{} are open", self.places.open());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Reads to the end, which may be a reset.
fn all_of(stream: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    let mut room = [0; 4096];
    loop {
        match stream.read(&mut room) {
            Ok(0) => return all,
            Ok(n) => all.extend_from_slice(&room[..n]),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return all,
            Err(error) => panic!("the connection does not end: {error}"),
        }
    }
}

fn get_with(path: &str, lines: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n")
}

fn get(path: &str) -> String {
    get_with(path, "")
}

/// Breaks: a length that a client claims makes the server take memory, abort, panic or wait.
#[test]
fn lengths_that_clients_claim_are_not_believed() {
    let site = TestSite::new();
    for lines in [
        "Content-Length: 100000000000\r\n",
        "Content-Length: 18446744073709551615\r\n",
        "Content-Length: 18446744073709551616\r\n",
        "Content-Length: 99999999999999999999999999999999999999999999\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 2000\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
        "Expect: 100-continue\r\nContent-Length: 3\r\n",
        "Connection: keep-alive\r\n",
        "Connection: Upgrade\r\nUpgrade: websocket\r\n",
    ] {
        site.assert_status(&get_with("/", lines), 200);
        // With a beginning of what is claimed.
        site.assert_status(&(get_with("/", lines) + "ffffffffffffffff\r\nabc"), 200);
    }
    site.assert_status(&format!("{}{}", get_with("/", "Content-Length: 20000\r\n"), "a".repeat(20_000)), 200);
    site.wait_for_open(0);
}

/// Breaks: a head can be as large as a client likes, or mean two things.
#[test]
fn heads_are_bounded() {
    let site = TestSite::new();
    for (request, status) in [
        (get(&format!("/{}", "a".repeat(request::MAX_HEAD))), 431),
        (get_with("/", &format!("Cookie: {}\r\n", "a".repeat(1 << 20))), 431),
        (get_with("/", &"a: b\r\n".repeat(1_000)), 431),
        ("\r\n".repeat(request::MAX_HEAD), 431),
        ("\u{0}\u{1}\u{2}\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/9.9\r\n\r\n".to_owned(), 505),
    ] {
        let mut stream = site.connect();
        // The server may end the connection before it has all.
        let _ = stream.write_all(request.as_bytes());
        let answer = String::from_utf8(all_of(&mut stream)).unwrap();
        let is_refused = answer.starts_with(&format!("HTTP/1.1 {status} "));
        // Much that is not read makes the kernel reset the connection, which takes the answer away.
        let is_reset = answer.is_empty() && request.len() > MAX_DISCARDED;
        assert!(is_refused || is_reset, "{status}: {answer}");
    }
    assert!(site.asked.lock().unwrap().is_empty());
    // A head of the greatest length.
    let empty = get_with("/", "Cookie: \r\n").len();
    let line = |len: usize| format!("Cookie: {}\r\n", "a".repeat(len - empty));
    site.assert_status(&get_with("/", &line(request::MAX_HEAD)), 200);
    site.assert_status(&get_with("/", &line(request::MAX_HEAD + 1)), 431);
    site.wait_for_open(0);
}

/// Breaks: clients that send a head slowly, or never to its end, hold the server.
#[test]
fn a_head_that_does_not_end_loses_its_connection() {
    let site = TestSite::with(HttpTimeouts { head: SHORT, write: STEP_TIMEOUT }, HostRule::Local);
    for beginning in ["", "GET / HTTP/1.1\r\nHost: localhost\r\n"] {
        assert_eq!(site.ask(beginning), "");
    }
    // Byte by byte: each of them is in time, and 8 KiB would take minutes.
    let mut stream = site.connect();
    while stream.write_all(b"G").is_ok() {
        std::thread::sleep(SHORT / 5);
    }
    assert!(all_of(&mut stream).is_empty(), "the head ended by its length");
    // One that ends its side.
    let stream = site.connect();
    stream.shutdown(Shutdown::Write).unwrap();
    site.wait_for_open(0);
    assert!(site.asked.lock().unwrap().is_empty());
}

/// Breaks: connections without number, or a place that is lost when its connection ends.
#[test]
fn places_are_bounded_and_given_back() {
    let site = TestSite::new();
    for _ in 0..2 {
        let mut all: Vec<_> = (0..MAX_CONNECTIONS).map(|_| site.connect()).collect();
        site.wait_for_open(MAX_CONNECTIONS);
        // The last one is served still, and one place is enough for all who come.
        let mut last = all.pop().unwrap();
        last.write_all(get("/").as_bytes()).unwrap();
        assert!(all_of(&mut last).ends_with(b"fine\n"));
        drop(last);
        for _ in 0..3 {
            site.wait_for_open(MAX_CONNECTIONS - 1);
            site.assert_alive();
        }
        drop(all);
        site.wait_for_open(0);
    }
}

/// Breaks: strangers that connect and send nothing, or part of a head, keep others out.
#[test]
fn who_sends_no_request_gives_way() {
    let site = TestSite::new();
    let mut silent: VecDeque<_> = (0..MAX_CONNECTIONS).map(|_| site.connect()).collect();
    silent[0].write_all(b"GET / HTTP/1.1\r\n").unwrap();
    for _ in 0..3 {
        site.wait_for_open(MAX_CONNECTIONS);
        site.assert_alive();
        let mut oldest = silent.pop_front().unwrap();
        assert!(all_of(&mut oldest).is_empty(), "the oldest one goes");
        assert!(site.places.open() <= MAX_CONNECTIONS + MAX_CLOSING);
        // What was answered has left: all places are taken again.
        site.wait_for_open(MAX_CONNECTIONS - 1);
        silent.push_back(site.connect());
    }
    // Those that came later have their places.
    site.wait_for_open(MAX_CONNECTIONS);
    let mut last = silent.pop_back().unwrap();
    last.write_all(get("/").as_bytes()).unwrap();
    assert!(all_of(&mut last).ends_with(b"fine\n"));
}

/// Breaks: a connection whose answer is under way gives way, or more than the limit are answered at once.
#[test]
fn who_is_being_answered_keeps_its_place() {
    let site = TestSite::new();
    let ask = |_| {
        let mut stream = site.connect();
        stream.write_all(get("/long").as_bytes()).unwrap();
        // The answer has begun.
        assert_eq!(stream.read(&mut [0; 1]).unwrap(), 1);
        stream
    };
    let mut all: Vec<_> = (0..MAX_CONNECTIONS).map(ask).collect();
    for _ in 0..3 {
        let mut more = site.connect();
        let _ = more.write_all(get("/").as_bytes());
        assert!(all_of(&mut more).is_empty(), "more than the limit");
    }
    let mut first = all.remove(0);
    assert!(all_of(&mut first).len() > LONG_ANSWER, "its answer is whole");
    site.wait_for_open(MAX_CONNECTIONS - 1);
    site.assert_alive();
}

/// Breaks: an error of the program ends the server, or takes a place away for ever.
#[test]
fn a_panic_ends_its_own_connection_alone() {
    let site = TestSite::new();
    for _ in 0..3 {
        assert_eq!(site.ask(&get("/panic")), "");
    }
    site.wait_for_open(0);
    site.assert_alive();
}

/// Breaks: a reader that stops reading holds a thread and its answer for ever.
#[test]
fn a_reader_that_stops_loses_its_connection() {
    let site = TestSite::with(HttpTimeouts { head: STEP_TIMEOUT, write: SHORT }, HostRule::Local);
    let mut stream = site.connect();
    stream.write_all(get("/long").as_bytes()).unwrap();
    let error = site.ends.recv_timeout(STEP_TIMEOUT).unwrap().unwrap_err();
    let kinds = [io::ErrorKind::TimedOut, io::ErrorKind::WouldBlock];
    assert!(kinds.contains(&error.kind()), "{error:?}");
    site.wait_for_open(0);
    assert!(all_of(&mut stream).len() < LONG_ANSWER);
    // One that goes away.
    let mut stream = site.connect();
    stream.write_all(get("/long").as_bytes()).unwrap();
    drop(stream);
    assert!(site.ends.recv_timeout(STEP_TIMEOUT).unwrap().is_err());
    site.wait_for_open(0);
    // Who reads has all of it.
    let patient = TestSite::new();
    let whole = patient.ask(&get("/long"));
    assert!(whole.ends_with("xxx") && whole.len() > LONG_ANSWER);
    assert!(patient.ends.recv_timeout(STEP_TIMEOUT).unwrap().is_ok());
}

/// Breaks: a page of a stranger reads by a name of its own that leads here, or something else than reading
/// is answered.
#[test]
fn other_methods_and_hosts_are_refused() {
    let site = TestSite::new();
    let by = |method: &str, host: &str| format!("{method} / HTTP/1.1\r\nHost: {host}\r\n\r\n");
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "PRI", "get"] {
        site.assert_status(&by(method, "localhost"), 405);
    }
    let head = site.ask(&by("HEAD", "localhost"));
    assert!(head.starts_with("HTTP/1.1 405 ") && head.ends_with("\r\n\r\n"), "{head}");
    for host in ["evil.example", "localhost.evil.example", "10.0.0.1", "0.0.0.0", "", "\u{fc}"] {
        site.assert_status(&by("GET", host), 403);
    }
    site.assert_status("GET / HTTP/1.0\r\n\r\n", 403);
    site.assert_status("GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", 400);
    site.assert_status("GET / HTTP/1.1\r\nHost: localhost\r\nhost: localhost\r\n\r\n", 400);
    assert!(site.asked.lock().unwrap().is_empty());
    let own = TestSite::with(HttpTimeouts::default(), HostRule::Exactly("localhost:1".to_owned()));
    own.assert_status(&by("GET", "localhost"), 403);
    own.assert_status(&by("GET", "localhost:1"), 200);
}

/// Breaks: a second request in a connection is answered, which nothing has counted (request smuggling).
#[test]
fn a_connection_has_one_answer() {
    let site = TestSite::new();
    site.assert_status(&(get("/first") + &get("/second")), 200);
    site.assert_status(&(get_with("/third", "Content-Length: 0\r\n") + &get("/fourth")), 200);
    let asked = site.asked.lock().unwrap().clone();
    assert_eq!(asked, ["/first", "/third"]);
}
