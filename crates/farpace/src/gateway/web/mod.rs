//! The dashboard in the browser: a page, and the status once a second as server-sent events.
//!
//! At an address of this host alone everybody here may look, but only by a name of this host: pages of
//! others, whose names lead here, get nothing. At any other address a token is asked for. The page holds
//! nothing of the gateway.

#![allow(clippy::disallowed_methods, reason = "it sends in real time")]

use super::control::{Asker, Question};
use anyhow::{Context, Result, anyhow};
use farpace_live::device::udp_tunnel::SecretKey;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tiny_http::{Header, Method, Request, Response, Server};

/// Viewers at once at most.
const MAX_VIEWERS: usize = 16;
/// Between two events.
const EVERY: Duration = Duration::from_secs(1);
/// Bytes of a token.
const TOKEN: usize = 16;
/// No page of others frames this one, and it loads nothing from elsewhere.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// The resources: path, type, text.
const FILES: [(&str, &str, &str); 3] = [
    ("/", "text/html; charset=utf-8", include_str!("index.html")),
    ("/dashboard.css", "text/css; charset=utf-8", include_str!("dashboard.css")),
    ("/dashboard.js", "text/javascript; charset=utf-8", include_str!("dashboard.js")),
];

/// Who may look.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Access {
    /// Whoever comes by a name of this host.
    Local,
    /// Whoever has this token.
    Token(String),
}

/// Reads an address; a port alone is one of this host.
///
/// # Errors
/// It is none.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse().map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    let bad = |_| format!("`{text}` is neither a port nor ADDRESS:PORT, as in 8080 or 192.0.2.1:8080");
    port.or_else(|_| text.parse()).map_err(bad)
}

/// Serves the dashboard, and returns where a browser finds it.
///
/// # Errors
/// The address cannot be listened at, or there are no random numbers.
pub fn serve(address: SocketAddr, asker: Asker) -> Result<String> {
    let server = Server::http(address).map_err(|error| {
        anyhow!("cannot serve the dashboard at {address}: {error}; say another address with --web")
    })?;
    let at = server.server_addr().to_ip().unwrap_or(address);
    let (access, url) = match at.ip().is_loopback() {
        true => (Access::Local, format!("http://{at}/")),
        false => {
            let token = token()?;
            let url = format!("http://{at}/#token={token}");
            (Access::Token(token), url)
        }
    };
    let viewers = Arc::new(AtomicUsize::new(0));
    let work = move || {
        for request in server.incoming_requests() {
            // An error of a viewer does not matter here.
            let _ = answer(request, &access, &asker, &viewers);
        }
    };
    std::thread::Builder::new().name("web".to_owned()).spawn(work).context("cannot start a thread")?;
    Ok(url)
}

fn token() -> Result<String> {
    let random = SecretKey::generate().context("no random numbers")?.to_bytes();
    let mut text = String::new();
    for byte in random.iter().take(TOKEN) {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

fn header_of<'a>(request: &'a Request, name: &'static str) -> Option<&'a str> {
    request.headers().iter().find(|header| header.field.equiv(name)).map(|header| header.value.as_str())
}

/// True if a request came by a name of this host. A page of another name that leads here is somebody else's.
fn is_local_name(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    matches!(name, "localhost" | "127.0.0.1" | "[::1]")
}

/// Compares in a time that does not tell how much is right.
fn is_same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

fn answer(request: Request, access: &Access, asker: &Asker, viewers: &Arc<AtomicUsize>) -> io::Result<()> {
    let refuse = |request: Request, code: u16, text: &str| {
        request.respond(Response::from_string(text.to_owned()).with_status_code(code))
    };
    if *access == Access::Local && !header_of(&request, "Host").is_some_and(is_local_name) {
        return refuse(request, 403, "ask by a name of this host: localhost\n");
    }
    if *request.method() != Method::Get {
        return refuse(request, 405, "GET alone\n");
    }
    let path = request.url().split('?').next().unwrap_or_default().to_owned();
    if path == "/events" {
        let given = header_of(&request, "Authorization").and_then(|value| value.strip_prefix("Bearer "));
        if let Access::Token(token) = access
            && !given.is_some_and(|given| is_same(given, token))
        {
            return refuse(request, 401, "the token is missing or wrong\n");
        }
        if viewers.fetch_add(1, Ordering::SeqCst) >= MAX_VIEWERS {
            viewers.fetch_sub(1, Ordering::SeqCst);
            return refuse(request, 503, "too many viewers\n");
        }
        let (asker, viewers) = (asker.clone(), viewers.clone());
        let send = move || {
            let _ = send_events(request, &asker);
            viewers.fetch_sub(1, Ordering::SeqCst);
        };
        std::thread::Builder::new().name("viewer".to_owned()).spawn(send)?;
        return Ok(());
    }
    let Some((_, kind, text)) = FILES.iter().find(|(name, ..)| *name == path) else {
        return refuse(request, 404, "there is nothing here\n");
    };
    let mut response = Response::from_string(*text);
    for (name, value) in [
        ("Content-Type", *kind),
        ("Content-Security-Policy", POLICY),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
        ("Cache-Control", "no-store"),
    ] {
        if let Ok(header) = Header::from_bytes(name, value) {
            response.add_header(header);
        }
    }
    request.respond(response)
}

/// Sends the status until the viewer is gone, or the gateway.
fn send_events(request: Request, asker: &Asker) -> io::Result<()> {
    let mut out = request.into_writer();
    out.write_all(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n\
          X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
    )?;
    while let Some(status) = asker.ask(Question::Status) {
        write!(out, "data: {status}\n\n")?;
        out.flush()?;
        std::thread::sleep(EVERY);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a page of a stranger reads the status through the browser of a user of this host, or a token
    /// can be left out.
    #[test]
    fn only_names_of_this_host_are_local() {
        for host in ["localhost", "localhost:8080", "127.0.0.1:1", "[::1]:8080", "[::1]"] {
            assert!(is_local_name(host), "{host}");
        }
        for host in ["", "evil.example", "localhost.evil.example:80", "127.0.0.1.evil.example", "10.0.0.1:80"]
        {
            assert!(!is_local_name(host), "{host}");
        }
        assert!(
            is_same("abc", "abc") && !is_same("abc", "abd") && !is_same("abc", "abcd") && !is_same("", "a")
        );
        assert_eq!(token().unwrap().len(), 2 * TOKEN);
        assert_ne!(token().unwrap(), token().unwrap());
    }

    /// Breaks: a port alone is served to the whole network.
    #[test]
    fn a_port_alone_is_of_this_host() {
        assert_eq!(address("8080").unwrap().to_string(), "127.0.0.1:8080");
        assert_eq!(address("[::]:80").unwrap().to_string(), "[::]:80");
        assert!(address("eth0").unwrap_err().contains("8080"));
    }

    /// Breaks: the page needs something from elsewhere, or markup can come with the data.
    #[test]
    fn the_page_is_complete() {
        for (path, _, text) in FILES {
            let elsewhere = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!elsewhere.contains("http://") && !elsewhere.contains("https://"), "{path}");
            assert!(!text.contains("innerHTML") && !text.contains("eval("), "{path}");
        }
        let page = FILES[0].2;
        for (path, ..) in &FILES[1..] {
            assert!(page.contains(&path[1..]), "{path}");
        }
    }
}
