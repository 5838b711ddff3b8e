//! Where a peer is, by its name. When a router starts, names may not be found yet: its link is not up. So
//! they are looked for again and again, beside the gateway.

#![allow(clippy::disallowed_methods, reason = "it waits in real time")]

use anyhow::{Context, Result};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// After this a name that was not found is looked for again; the time doubles with each attempt, ...
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// ... up to this.
const MAX_RETRY: Duration = Duration::from_secs(60);
/// A start waits for the first answers for so long at most.
const MAX_FIRST_ANSWER: Duration = Duration::from_secs(2);

type LookupAnswer = Result<Vec<SocketAddr>, String>;

/// The endpoint of a path, which is found, or looked for.
pub struct EndpointName {
    name: String,
    /// From the thread that looks; none: there is nothing to look for any more.
    answers: Option<Receiver<LookupAnswer>>,
    error: Option<String>,
}

impl EndpointName {
    /// Begins to look for `HOST:PORT`.
    ///
    /// # Errors
    /// It is not of this form, or there can be no thread.
    pub fn look_for(endpoint: &str) -> Result<Self> {
        let is_place = endpoint
            .rsplit_once(':')
            .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0));
        anyhow::ensure!(is_place, "endpoint `{endpoint}` is not HOST:PORT, as in 192.0.2.1:51820");
        let (sender, answers) = channel();
        let name = endpoint.to_owned();
        let look = move || {
            let mut wait = FIRST_RETRY;
            loop {
                let found = name.to_socket_addrs();
                let is_found = found.is_ok();
                let answer = found.map(Iterator::collect).map_err(|error| error.to_string());
                // Nobody may listen any more.
                if sender.send(answer).is_err() || is_found {
                    return;
                }
                std::thread::sleep(wait);
                wait = (wait * 2).min(MAX_RETRY);
            }
        };
        let thread = std::thread::Builder::new().name("endpoint".to_owned());
        thread.spawn(look).context("cannot start a thread")?;
        let error = Some("no answer yet".to_owned());
        Ok(EndpointName { name: endpoint.to_owned(), answers: Some(answers), error })
    }

    /// The places, if they are found by then.
    fn wait(&mut self, until: Instant) -> Option<Vec<SocketAddr>> {
        let left = until.saturating_duration_since(Instant::now());
        let answer = self.answers.as_ref()?.recv_timeout(left).ok()?;
        self.take(answer)
    }

    /// The places, if they were found since.
    pub fn news(&mut self) -> Option<Vec<SocketAddr>> {
        while let Ok(answer) = self.answers.as_ref()?.try_recv() {
            if let Some(found) = self.take(answer) {
                return Some(found);
            }
        }
        None
    }

    fn take(&mut self, answer: LookupAnswer) -> Option<Vec<SocketAddr>> {
        match answer {
            Ok(found) => {
                (self.answers, self.error) = (None, None);
                Some(found)
            }
            Err(error) => {
                self.error = Some(error);
                None
            }
        }
    }

    /// Why it is not found, while it is not.
    pub fn error(&self) -> Option<String> {
        self.error.as_ref().map(|error| format!("endpoint `{}` is not found: {error}", self.name))
    }
}

/// The places of all names, after a moment at most; empty where a name is none, or is not found yet.
pub fn first_answers(names: &mut [Option<EndpointName>]) -> Vec<Vec<SocketAddr>> {
    let until = Instant::now() + MAX_FIRST_ANSWER;
    let wait = |name: &mut EndpointName| name.wait(until);
    names.iter_mut().map(|name| name.as_mut().and_then(wait).unwrap_or_default()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: an address is taken for a name that is not found, or what can never be found is looked for.
    #[test]
    fn addresses_are_found_at_once() {
        let mut name = EndpointName::look_for("[2001:db8::1]:51820").unwrap();
        assert!(name.error().is_some());
        let found = name.wait(Instant::now() + Duration::from_secs(20));
        assert_eq!(found, Some(vec!["[2001:db8::1]:51820".parse().unwrap()]));
        assert_eq!((name.error(), name.news()), (None, None));
        for wrong in ["192.0.2.1", "192.0.2.1:", ":51820", "192.0.2.1:0", "a:b"] {
            assert!(EndpointName::look_for(wrong).is_err(), "{wrong}");
        }
    }
}
