//! Answers to the browser: on the loopback interface, to those who know the secret in the address.

use super::library::Library;
use anyhow::{Context, Result};
use farpace_http::{HostRule, HttpBody, HttpRequest, HttpResponse, HttpRules, HttpServer};
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
pub(super) fn serve(port: u16, library: Library) -> Result<String> {
    let server = HttpServer::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
        .with_context(|| format!("cannot listen on port {port} of 127.0.0.1; --port chooses another"))?;
    let authority = server.address().to_string();
    // The beginning of all addresses.
    let root = format!("/{}/", farpace_http::secret().context("no random numbers")?);
    let url = format!("http://{authority}{root}");
    let library = Mutex::new(library);
    let answer = move |request: &HttpRequest| answer(request, &library, &root);
    let rules = HttpRules { name: "view", hosts: HostRule::Exactly(authority), other_method: 405 };
    server.serve(rules, answer).context("cannot start a thread")?;
    Ok(url)
}

fn answer(request: &HttpRequest, library: &Mutex<Library>, root: &str) -> HttpResponse {
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
        Err(error) => HttpResponse::text(404, format!("{error:#}\n")),
    }
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
