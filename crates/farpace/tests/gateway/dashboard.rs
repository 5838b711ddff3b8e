//! The dashboard, in a real browser and under requests of strangers.

use crate::common;
use crate::harness::*;
use crate::process::GatewayProcess;
use nix::sys::signal::Signal;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

fn connect(net: &Net, at: &str) -> TcpStream {
    let at: SocketAddr = at.parse().unwrap();
    let stream = net.router.within(|| TcpStream::connect_timeout(&at, STEP_TIMEOUT)).unwrap().unwrap();
    stream.set_read_timeout(Some(STEP_TIMEOUT)).unwrap();
    stream
}

/// What a server on the router answers: the head, and the body as far as it comes at once.
pub fn ask(net: &Net, at: &str, request: &str) -> String {
    let mut stream = connect(net, at);
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = Vec::new();
    let mut room = [0; 65_536];
    loop {
        let n = stream.read(&mut room).unwrap();
        text.extend_from_slice(&room[..n]);
        let seen = String::from_utf8_lossy(&text);
        let has_body = seen.split_once("\r\n\r\n").is_some_and(|(_, body)| body.ends_with('\n'));
        if n == 0 || has_body {
            return seen.into_owned();
        }
    }
}

/// A request for `path`.
pub fn get(host: &str, path: &str, more: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}Connection: close\r\n\r\n")
}

/// The token of a dashboard, which is in a file for its user alone and nowhere in what was printed.
fn token(gateway: &GatewayProcess) -> String {
    let up = &gateway.up["up"];
    let path = up["web_token_file"].as_str().unwrap();
    assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    let token = std::fs::read_to_string(path).unwrap().trim().to_owned();
    assert!(token.len() == 32 && !up.to_string().contains(&token), "{up}");
    token
}

fn authorization(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

/// Breaks: strangers see the status without the token, by another name, or from another host.
#[test]
fn strangers_see_nothing() {
    if !has_rights() {
        return;
    }
    let net = Net::new();
    net.router.configure("link set lo up\n").unwrap();
    let gateway = net.gateway(&["--web", "8080"]);
    assert_eq!(gateway.up["up"]["web"], "http://127.0.0.1:8080/");
    assert!(gateway.up["up"]["web_token_file"].is_null());
    let local = |request: &str| ask(&net, "127.0.0.1:8080", request);
    let page = local(&get("localhost:8080", "/", ""));
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("default-src 'none'"), "{page}");
    let events = local(&get("127.0.0.1:8080", "/events", ""));
    assert!(events.contains("text/event-stream") && events.contains("data: {"), "{events}");
    for (request, code) in [
        (get("evil.example:8080", "/events", ""), "403"),
        (get("localhost", "/etc/passwd", ""), "404"),
        (get("localhost", "/../Cargo.toml", ""), "404"),
        ("POST /events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n".to_owned(), "405"),
    ] {
        let answer = local(&request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {code}")), "{request}: {answer}");
        assert!(!answer.contains("totals"));
    }
    gateway.end();

    let gateway = net.gateway(&["--web", "10.9.0.1:8080"]);
    assert_eq!(gateway.up["up"]["web"], "http://10.9.0.1:8080/");
    let token = token(&gateway);
    let wide = |request: &str| ask(&net, "10.9.0.1:8080", request);
    for more in
        ["", "Authorization: Bearer \r\n", "Authorization: Bearer 00000000000000000000000000000000\r\n"]
    {
        let answer = wide(&get("10.9.0.1", "/events", more));
        assert!(answer.starts_with("HTTP/1.1 401") && !answer.contains("totals"), "{answer}");
    }
    let answer = wide(&get("10.9.0.1", "/events", &authorization(&token)));
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"totals\""), "{answer}");
    gateway.end();
    net.assert_clean();
}

/// Breaks: the URL of a dashboard at all addresses leads nowhere, or a token outlives a killed gateway.
#[test]
fn a_dashboard_at_all_addresses_is_found() {
    if !has_rights() {
        return;
    }
    let net = Net::new();
    net.router.configure("link set lo up\n").unwrap();
    for at in ["0.0.0.0:8080", "[::]:8080"] {
        let gateway = net.gateway(&["--web", at]);
        let url = gateway.up["up"]["web"].as_str().unwrap();
        let authority = url.strip_prefix("http://").and_then(|url| url.strip_suffix('/')).unwrap();
        let own = authority.parse::<SocketAddr>().unwrap().ip();
        assert!(
            ["10.9.0.1", "192.0.2.1", "fd09::1", "2001:db8::1"].contains(&own.to_string().as_str()),
            "{url}"
        );
        let answer = ask(&net, authority, &get(authority, "/events", &authorization(&token(&gateway))));
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"totals\""), "{answer}");
        gateway.signal(Signal::SIGKILL);
        gateway.wait();
        net.assert_clean();
    }
}

/// Breaks: requests of strangers end the gateway, stop its dashboard, metrics or traffic, or take places away
/// for ever.
#[test]
fn hostile_requests_harm_nothing() {
    if !has_rights() {
        return;
    }
    let net = Net::new();
    net.router.configure("link set lo up\n").unwrap();
    let (web, metrics) = ("10.9.0.1:8080", "127.0.0.1:9745");
    let gateway = net.gateway(&["--web", web, "--metrics", metrics]);
    let own = authorization(&token(&gateway));
    let watch = get(web, "/events", &own);
    let listener = net.listen(SERVER);
    let (near, far) = net.connect(&listener);
    let mut at = 0;
    let mut forwards = || {
        exchange(&near, &far, at, 100_000);
        at += 100_000;
    };
    let large = "a".repeat(1 << 20);
    for lines in [
        "Content-Length: 100000000000\r\n",
        "Content-Length: 18446744073709551615\r\n",
        "Content-Length: 99999999999999999999999\r\n",
        "Content-Length: 2000\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Host: twice\r\n",
        &format!("Cookie: {large}\r\n"),
        &"a: b\r\n".repeat(10_000),
        "\u{0}\r\n",
    ] {
        for (at, path) in [(web, "/"), (web, "/events"), (metrics, "/metrics")] {
            let mut stream = connect(&net, at);
            // The gateway may end it before it has all.
            let _ = stream.write_all(get(at, path, lines).as_bytes());
            let mut answer = Vec::new();
            let error = stream.read_to_end(&mut answer).err().map(|error| error.kind());
            assert!(matches!(error, None | Some(std::io::ErrorKind::ConnectionReset)), "{lines}: {error:?}");
            assert!(!String::from_utf8_lossy(&answer).contains("data: {"), "{lines}");
        }
        assert!(ask(&net, web, &watch).contains("\"totals\""));
        assert!(
            ask(&net, metrics, &get(metrics, "/metrics", "")).contains("farpace_gateway_split_total 1\n")
        );
    }
    forwards();

    // More silent clients than places.
    let silent: Vec<_> = [web, metrics].iter().flat_map(|at| (0..80).map(|_| connect(&net, at))).collect();
    forwards();
    assert_eq!(net.split(), 1);
    drop(silent);
    // As many viewers as there may be, and the next one after they have gone.
    let is_let_in = |stream: &mut TcpStream| {
        let mut beginning = [0; 12];
        let asked = stream.write_all(watch.as_bytes());
        asked.and_then(|()| stream.read_exact(&mut beginning)).is_ok() && &beginning == b"HTTP/1.1 200"
    };
    for _ in 0..2 {
        let since = Instant::now();
        let mut viewers = Vec::new();
        while viewers.len() < 16 {
            let mut stream = connect(&net, web);
            match is_let_in(&mut stream) {
                true => viewers.push(stream),
                // Those before are not all gone yet.
                false => {
                    assert!(since.elapsed() < STEP_TIMEOUT, "{} viewers", viewers.len());
                    std::thread::sleep(Duration::from_millis(100));
                }
            }
        }
        assert!(ask(&net, web, &watch).starts_with("HTTP/1.1 503"));
        forwards();
    }
    gateway.end();
    net.assert_clean();
}

/// Breaks: the dashboard in a browser: links, connections and what splitting gains appear, on a phone and by
/// night, accessible, without errors and without anything from elsewhere.
#[test]
fn a_browser_shows_links_and_connections() {
    if !has_rights() {
        return;
    }
    let net = Net::new();
    net.router.configure("link set lo up\n").unwrap();
    let gateway = net.gateway(&["--web", "10.9.0.1:8080", "--control-group", "0.5"]);
    let listener = net.listen(SERVER);
    let (near, far) = crate::gain::carry(&net, &listener);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gateway/dashboard.py");
    let url = format!("{}#token={}", gateway.up["up"]["web"].as_str().unwrap(), token(&gateway));
    let python = common::python();
    let words = [python.to_str().unwrap(), script.to_str().unwrap(), &url, "wan0"];
    common::browser_checks(&mut net.on_router(&words));
    drop((near, far));
    gateway.end();
}
