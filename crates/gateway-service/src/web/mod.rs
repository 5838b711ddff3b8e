//! The dashboard in the browser: a page, and the status once a second as server-sent events.
//!
//! At an address of this host alone everybody here may look, but only by a name of this host: pages of
//! others, whose names lead here, get nothing. At any other address a token is asked for. The page holds
//! nothing of the gateway.
//!
//! `feed` makes the events, `token_file` keeps the token where it must not be printed.

mod feed;
mod token_file;

use super::control::Asker;
use anyhow::{Context, Result};
use farpace_http::{HostRule, HttpBody, HttpRequest, HttpResponse, HttpRules, HttpServer};
use farpace_tunnel::own_addresses;
use feed::StatusFeed;
use std::io::IsTerminal;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
pub(crate) use token_file::TokenFile;

/// No page of others frames this one, and it loads nothing from elsewhere.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// The resources: path, type, text.
const FILES: [(&str, &str, &str); 3] = [
    ("/", "text/html; charset=utf-8", include_str!("index.html")),
    ("/dashboard.css", "text/css; charset=utf-8", include_str!("dashboard.css")),
    ("/dashboard.js", "text/javascript; charset=utf-8", include_str!("dashboard.js")),
];

/// A dashboard that is served until the process ends.
pub(crate) struct Dashboard {
    /// Where a browser finds it, with the token if that may be printed.
    pub url: String,
    /// Where the token is otherwise.
    pub token_file: Option<TokenFile>,
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

/// Serves the dashboard. Its URL is for standard output: it has the token only if that is a terminal.
///
/// # Errors
/// The address cannot be listened at, there are no random numbers, or the token cannot be kept.
pub(crate) fn serve(address: SocketAddr, asker: Asker) -> Result<Dashboard> {
    let server = HttpServer::listen(address).with_context(|| {
        format!("cannot serve the dashboard at {address}; say another address with --web")
    })?;
    let at = server.address();
    let is_local = at.ip().is_loopback();
    let token = match is_local {
        true => None,
        false => Some(farpace_http::secret().context("no random numbers")?),
    };
    let (token_file, fragment) = match &token {
        Some(token) if std::io::stdout().is_terminal() => (None, format!("#token={token}")),
        Some(token) => (Some(TokenFile::write(token)?), String::new()),
        None => (None, String::new()),
    };
    let hosts = if is_local { HostRule::Local } else { HostRule::Any };
    let rules = HttpRules { name: "web", hosts, other_method: 405 };
    let feed = StatusFeed::start(asker)?;
    let answer = move |request: &HttpRequest| answer(request, token.as_deref(), &feed);
    server.serve(rules, answer).context("cannot start a thread")?;
    let url = format!("http://{}/{fragment}", reachable(at, own_addresses));
    Ok(Dashboard { url, token_file })
}

/// Where a browser reaches a listener. It cannot connect to an unspecified address: the first address of this
/// host stands for all, of the same family if there is one.
fn reachable(at: SocketAddr, own: impl FnOnce() -> Vec<IpAddr>) -> SocketAddr {
    if !at.ip().is_unspecified() {
        return at;
    }
    let own = own();
    let is_same = |ip: &&IpAddr| ip.is_ipv4() == at.is_ipv4();
    // A listener of IPv6 hears IPv4 too, as Linux is set by default.
    let found = own.iter().find(is_same).or_else(|| own.first().filter(|_| at.is_ipv6()));
    let loopback = match at {
        SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(found.copied().unwrap_or(loopback), at.port())
}

fn answer(request: &HttpRequest, token: Option<&str>, feed: &Arc<StatusFeed>) -> HttpResponse {
    if request.path() == "/events" {
        return events(request, token, feed);
    }
    match FILES.iter().find(|(name, ..)| *name == request.path()) {
        Some((_, kind, text)) => HttpResponse::ok(kind, *text).with_policy(POLICY),
        None => HttpResponse::text(404, "there is nothing here\n"),
    }
}

fn events(request: &HttpRequest, token: Option<&str>, feed: &Arc<StatusFeed>) -> HttpResponse {
    let given = request.header("Authorization").and_then(|value| value.strip_prefix("Bearer "));
    if let Some(token) = token
        && !given.is_some_and(|given| farpace_http::is_same(given, token))
    {
        return HttpResponse::text(401, "the token is missing or wrong\n");
    }
    match feed.enter() {
        Some(viewer) => {
            HttpResponse::ok("text/event-stream", HttpBody::Stream(Box::new(move |out| viewer.watch(out))))
        }
        None => HttpResponse::text(503, "too many viewers\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a port alone is served to the whole network.
    #[test]
    fn a_port_alone_is_of_this_host() {
        assert_eq!(address("8080").unwrap().to_string(), "127.0.0.1:8080");
        assert_eq!(address("[::]:80").unwrap().to_string(), "[::]:80");
        assert!(address("eth0").unwrap_err().contains("8080"));
    }

    /// Breaks: the URL that is printed leads nowhere.
    #[test]
    fn a_url_names_an_address_that_can_be_reached() {
        let shown = |at: &str, own: &[&str]| {
            let own = || own.iter().map(|ip| ip.parse().unwrap()).collect();
            reachable(address(at).unwrap(), own).to_string()
        };
        let both = ["192.0.2.1", "2001:db8::1"];
        assert_eq!(shown("[::1]:80", &both), "[::1]:80");
        assert_eq!(shown("0.0.0.0:80", &both), "192.0.2.1:80");
        assert_eq!(shown("[::]:80", &both), "[2001:db8::1]:80");
        assert_eq!(shown("[::]:80", &both[..1]), "192.0.2.1:80");
        assert_eq!(shown("0.0.0.0:80", &both[1..]), "127.0.0.1:80");
        assert_eq!(shown("[::]:80", &[]), "[::1]:80");
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
