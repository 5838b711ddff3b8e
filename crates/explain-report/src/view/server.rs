//! Answers to the browser: on the loopback interface, to those who know the secret in the address.

use super::error::ViewError;
use super::library::ViewLibrary;
use farpace_http::{HostRule, HttpBody, HttpRequest, HttpResponse, HttpRules, HttpServer};
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};

/// Longest address that is read.
const MAX_ADDRESS: usize = 1_024;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ViewRequest {
    Index,
    Page(usize),
    Slice { file: usize, figure: usize, from: f64, to: f64 },
}

/// Serves on a port of 127.0.0.1, on a free one for 0, and returns the address for the browser.
///
/// # Errors
/// A port that is in use, or a system without random numbers.
pub fn serve(port: u16, library: ViewLibrary) -> Result<String, ViewError> {
    let server = HttpServer::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
        .map_err(|source| ViewError::Port { port, source })?;
    let authority = server.address().to_string();
    // The beginning of all addresses.
    let root = format!("/{}/", farpace_http::secret().map_err(ViewError::NoRandomNumbers)?);
    let url = format!("http://{authority}{root}");
    let library = Mutex::new(library);
    let answer = move |request: &HttpRequest| answer(request, &library, &root);
    let rules = HttpRules { name: "view", hosts: HostRule::Exactly(authority), other_method: 405 };
    server.serve(rules, answer).map_err(ViewError::NoThread)?;
    Ok(url)
}

fn answer(request: &HttpRequest, library: &Mutex<ViewLibrary>, root: &str) -> HttpResponse {
    let Some(wanted) = wanted(request.target(), root) else { return HttpResponse::text(404, "not found\n") };
    // Pages are made one after the other: they may need much memory.
    let mut library = library.lock().unwrap_or_else(PoisonError::into_inner);
    const HTML: &str = "text/html; charset=utf-8";
    let answer = match wanted {
        ViewRequest::Index => library.index(root).map(|html| (HTML, html)),
        ViewRequest::Page(at) => library.page(at, root).map(|html| (HTML, html)),
        ViewRequest::Slice { file, figure, from, to } => library
            .slice(file, figure, from, to, root)
            .map(|json| ("application/json", HttpBody::from(json.to_string()))),
    };
    match answer {
        Ok((kind, body)) => HttpResponse::ok(kind, body),
        Err(error) => HttpResponse::text(404, with_causes(&error) + "\n"),
    }
}

/// An error and its causes in one line.
fn with_causes(error: &ViewError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// What an address asks for; none if it is no address of ours.
fn wanted(address: &str, root: &str) -> Option<ViewRequest> {
    if address.len() > MAX_ADDRESS {
        return None;
    }
    let rest = farpace_http::without_secret(address, root)?;
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let parts: Vec<&str> = path.split('/').collect();
    let value = |name: &str| {
        let pair = query.split('&').filter_map(|pair| pair.split_once('=')).find(|(n, _)| *n == name);
        pair.and_then(|(_, value)| value.parse::<f64>().ok()).filter(|v| v.is_finite())
    };
    match parts.as_slice() {
        [""] => Some(ViewRequest::Index),
        ["open", at] => Some(ViewRequest::Page(at.parse().ok()?)),
        ["slice", file, figure] => Some(ViewRequest::Slice {
            file: file.parse().ok()?,
            figure: figure.parse().ok()?,
            from: value("from")?,
            to: value("to")?,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: addresses without the secret, or with anything else than our numbers, get nothing.
    #[test]
    fn only_our_addresses_are_answered() {
        let root = "/secret/";
        assert_eq!(wanted("/secret/", root), Some(ViewRequest::Index));
        assert_eq!(wanted("/secret/open/3", root), Some(ViewRequest::Page(3)));
        let slice = ViewRequest::Slice { file: 1, figure: 2, from: 0.5, to: 1.5 };
        assert_eq!(wanted("/secret/slice/1/2?&from=0.5&to=1.5", root), Some(slice));
        for bad in [
            "/",
            "/other/",
            "/secret",
            "/secret/open/../../etc/passwd",
            "/secret/open/-1",
            "/secret/slice/1/2?from=NaN&to=1",
            "/secret/slice/1/2?from=1",
            "/secret/report.html",
        ] {
            assert_eq!(wanted(bad, root), None, "{bad}");
        }
        assert_eq!(wanted(&("/secret/open/1?".to_owned() + &"x".repeat(2_000)), root), None);
    }
}
