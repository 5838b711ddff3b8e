//! Answers to the browser: on the loopback interface, to those who know the secret in the address.

use super::library::Library;
use anyhow::{Context, Result, anyhow};
use std::fs::File;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tiny_http::{Header, Method, Request, Response, Server};

/// Longest address that is read.
const MAX_ADDRESS: usize = 1_024;
/// How long to wait for a request before looking whether to end.
const WAIT: Duration = Duration::from_millis(200);

/// A server for one browser.
pub(super) struct ViewServer {
    server: Server,
    library: Library,
    authority: String,
    /// The beginning of all addresses: a slash, the secret, a slash.
    root: String,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ViewRequest {
    Index,
    Page(usize),
    Slice { file: usize, figure: usize, from: f64, to: f64 },
}

impl ViewServer {
    /// Listens on a port of 127.0.0.1; on a free one for 0.
    ///
    /// # Errors
    /// A port that is in use, or a system without random numbers.
    pub(super) fn listen(port: u16, library: Library) -> Result<Self> {
        let server = Server::http(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).map_err(|error| {
            anyhow!("cannot listen on port {port} of 127.0.0.1: {error}; --port chooses another")
        })?;
        let address = server.server_addr().to_ip().context("the server has no address")?;
        let mut secret = [0u8; 16];
        File::open("/dev/urandom")
            .and_then(|mut f| f.read_exact(&mut secret))
            .context("no random numbers")?;
        let root = secret.iter().fold("/".to_owned(), |root, byte| root + &format!("{byte:02x}")) + "/";
        Ok(ViewServer { server, library, authority: address.to_string(), root })
    }

    /// The address for the browser.
    pub(super) fn url(&self) -> String {
        format!("http://{}{}", self.authority, self.root)
    }

    /// Answers a request, or waits for a moment.
    ///
    /// # Errors
    /// A socket that no longer works.
    pub(super) fn answer_next(&mut self) -> Result<()> {
        let Some(request) = self.server.recv_timeout(WAIT).context("cannot receive requests")? else {
            return Ok(());
        };
        let (status, kind, body) = self.answer(&request);
        let mut response = Response::from_data(body).with_status_code(status);
        for (name, value) in [
            ("Content-Type", kind),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
        ] {
            if let Ok(header) = Header::from_bytes(name, value) {
                response.add_header(header);
            }
        }
        // A browser that went away needs no answer.
        let _ = request.respond(response);
        Ok(())
    }

    fn answer(&mut self, request: &Request) -> (u16, &'static str, Vec<u8>) {
        const TEXT: &str = "text/plain; charset=utf-8";
        const HTML: &str = "text/html; charset=utf-8";
        let said = |status, text: &str| (status, TEXT, text.as_bytes().to_vec());
        if *request.method() != Method::Get {
            return said(405, "only GET");
        }
        // Another site's name that leads to this machine is not ours.
        let host = request.headers().iter().find(|h| h.field.equiv("Host")).map(|h| h.value.as_str());
        if host != Some(self.authority.as_str()) {
            return said(403, "wrong host");
        }
        let Some(wanted) = wanted(request.url(), &self.root) else { return said(404, "not found") };
        let root = self.root.clone();
        let answer = match wanted {
            ViewRequest::Index => self.library.index(&root).map(|html| (HTML, html)),
            ViewRequest::Page(at) => self.library.page(at, &root).map(|html| (HTML, html)),
            ViewRequest::Slice { file, figure, from, to } => self
                .library
                .slice(file, figure, from, to, &root)
                .map(|json| ("application/json", json.to_string())),
        };
        match answer {
            Ok((kind, body)) => (200, kind, body.into_bytes()),
            Err(error) => said(404, &format!("{error:#}")),
        }
    }
}

/// What an address asks for; none if it is no address of ours.
fn wanted(address: &str, root: &str) -> Option<ViewRequest> {
    if address.len() > MAX_ADDRESS {
        return None;
    }
    let rest = address.strip_prefix(root)?;
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
