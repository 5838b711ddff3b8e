//! The dashboard, in a real browser and under requests of strangers.

use crate::common;
use crate::harness::*;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

/// What a server on the router answers: the head, and the body as far as it comes at once.
fn ask(net: &Net, at: &str, request: &str) -> String {
    let at: SocketAddr = at.parse().unwrap();
    let mut stream = net.router.within(|| TcpStream::connect_timeout(&at, STEP_TIMEOUT)).unwrap().unwrap();
    stream.set_read_timeout(Some(STEP_TIMEOUT)).unwrap();
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

fn get(host: &str, path: &str, more: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}Connection: close\r\n\r\n")
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
    let url = gateway.up["up"]["web"].as_str().unwrap().to_owned();
    let token = url.split_once("#token=").unwrap().1;
    assert_eq!(token.len(), 32, "{url}");
    let wide = |request: &str| ask(&net, "10.9.0.1:8080", request);
    for more in
        ["", "Authorization: Bearer \r\n", "Authorization: Bearer 00000000000000000000000000000000\r\n"]
    {
        let answer = wide(&get("10.9.0.1", "/events", more));
        assert!(answer.starts_with("HTTP/1.1 401") && !answer.contains("totals"), "{answer}");
    }
    let answer = wide(&get("10.9.0.1", "/events", &format!("Authorization: Bearer {token}\r\n")));
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"totals\""), "{answer}");
    gateway.end();
}

/// Breaks: the dashboard in a browser: links and connections appear, on a phone and by night, accessible,
/// without errors and without anything from elsewhere.
#[test]
fn a_browser_shows_links_and_connections() {
    if !has_rights() {
        return;
    }
    let net = Net::new();
    net.router.configure("link set lo up\n").unwrap();
    let gateway = net.gateway(&["--web", "10.9.0.1:8080"]);
    let listener = net.listen(SERVER);
    let (near, far) = net.connect(&listener);
    exchange(&near, &far, 0, 100_000);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gateway/dashboard.py");
    let url = gateway.up["up"]["web"].as_str().unwrap();
    let python = common::python();
    let words = [python.to_str().unwrap(), script.to_str().unwrap(), url, "wan0"];
    common::browser_checks(&mut net.on_router(&words));
    drop((near, far));
    gateway.end();
}
