//! The status as events: made once a second for all viewers, and not at all without one.

#![allow(clippy::disallowed_methods, reason = "it sends in real time")]

use crate::control::{Asker, Question};
use anyhow::{Context, Result};
use farpace_http::HttpWriter;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Viewers at once at most.
const MAX_VIEWERS: usize = 16;
/// Between two events.
const EVERY: Duration = Duration::from_secs(1);

/// What viewers are sent.
#[derive(Default)]
pub(crate) struct StatusFeed {
    state: Mutex<FeedState>,
    changed: Condvar,
}

#[derive(Default)]
struct FeedState {
    viewers: usize,
    /// The last event; none while nobody looks.
    event: Option<Arc<str>>,
    /// Events so far.
    number: u64,
    /// So often there was no answer. Who has seen one less ends.
    failures: u64,
}

/// A viewer; its place is free again when this is dropped.
pub(crate) struct Viewer {
    feed: Arc<StatusFeed>,
    failures: u64,
    /// Number of the last event that it has.
    seen: u64,
}

impl StatusFeed {
    /// Begins to ask, in a thread of its own, while somebody looks.
    ///
    /// # Errors
    /// There is no thread.
    pub(crate) fn start(asker: Asker) -> Result<Arc<Self>> {
        let feed = Arc::new(StatusFeed::default());
        let publisher = feed.clone();
        let publish = move || {
            loop {
                publisher.wait_for_viewer();
                publisher.publish(asker.ask(Question::Status));
                std::thread::sleep(EVERY);
            }
        };
        std::thread::Builder::new()
            .name("web-feed".to_owned())
            .spawn(publish)
            .context("cannot start a thread")?;
        Ok(feed)
    }

    fn lock(&self) -> MutexGuard<'_, FeedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_for_viewer(&self) {
        let idle = |state: &mut FeedState| state.viewers == 0;
        drop(self.changed.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner));
    }

    /// Takes the status for all viewers; without one they end.
    fn publish(&self, status: Option<String>) {
        let mut state = self.lock();
        match status {
            // Who comes later is to see no old one.
            Some(_) if state.viewers == 0 => {}
            Some(status) => {
                state.event = Some(format!("data: {status}\n\n").into());
                state.number += 1;
            }
            None => state.failures += 1,
        }
        self.changed.notify_all();
    }

    /// A place for a viewer; none if there are [`MAX_VIEWERS`].
    pub(crate) fn enter(self: &Arc<Self>) -> Option<Viewer> {
        let mut state = self.lock();
        if state.viewers >= MAX_VIEWERS {
            return None;
        }
        state.viewers += 1;
        self.changed.notify_all();
        // The last event, if there is one, is news to it.
        let seen = state.number - u64::from(state.event.is_some());
        Some(Viewer { feed: self.clone(), failures: state.failures, seen })
    }
}

impl Viewer {
    /// The next event; none if the gateway ends, or does not answer.
    fn next(&mut self) -> Option<Arc<str>> {
        let Viewer { feed, failures, seen } = self;
        let old = |state: &mut FeedState| state.number == *seen && state.failures == *failures;
        let state = feed.changed.wait_while(feed.lock(), old).unwrap_or_else(PoisonError::into_inner);
        *seen = state.number;
        state.event.clone().filter(|_| state.failures == *failures)
    }

    /// Writes events until the viewer is gone, or the gateway.
    ///
    /// # Errors
    /// The viewer is gone, or does not read.
    pub(crate) fn watch(mut self, out: &mut HttpWriter<'_>) -> io::Result<()> {
        while let Some(event) = self.next() {
            out.write_all(event.as_bytes())?;
        }
        Ok(())
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let mut state = self.feed.lock();
        state.viewers -= 1;
        if state.viewers == 0 {
            state.event = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: viewers are counted wrongly after a while and nobody can look any more, or see what is old.
    #[test]
    fn viewers_share_events_and_give_their_places_back() {
        let feed = Arc::new(StatusFeed::default());
        for _ in 0..3 {
            let mut viewers: Vec<_> = (0..MAX_VIEWERS).map(|_| feed.enter().unwrap()).collect();
            assert!(feed.enter().is_none());
            feed.publish(Some("1".to_owned()));
            let events: Vec<_> = viewers.iter_mut().map(|viewer| viewer.next().unwrap()).collect();
            assert!(events.iter().all(|event| &**event == "data: 1\n\n" && Arc::ptr_eq(event, &events[0])));
            viewers.pop();
            // Who comes between two events has the last one at once.
            let mut late = feed.enter().unwrap();
            assert_eq!(&*late.next().unwrap(), "data: 1\n\n");
            feed.publish(Some("2".to_owned()));
            assert_eq!(&*late.next().unwrap(), "data: 2\n\n");
            feed.publish(None);
            assert!(late.next().is_none() && viewers.iter_mut().all(|viewer| viewer.next().is_none()));
            drop((viewers, late));
            feed.publish(Some("of nobody".to_owned()));
            assert!(feed.lock().event.is_none() && feed.lock().viewers == 0);
        }
    }
}
