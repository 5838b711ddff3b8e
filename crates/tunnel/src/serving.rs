//! Threads of the end that waits, and the loop in which each of them accepts streams.

use anyhow::{Context, Result};
use farpace_live::socket::{LiveListener, Stream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Between two looks at whether to stop.
pub(crate) const LOOK: Duration = Duration::from_millis(100);

/// Starts a thread of the gate.
///
/// # Errors
/// The system has no more threads.
pub(crate) fn spawn(work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    Builder::new().name("farpace-gate".into()).spawn(work).context("cannot start a thread")
}

/// Gives what comes to `take`, until that says no.
pub(crate) fn accept_inside(
    listener: &LiveListener,
    stop: &AtomicBool,
    take: &mut dyn FnMut(Stream) -> bool,
) {
    use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    listener.set_timeout(Some(LOOK));
    while !stop.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, _)) => {
                if !take(stream) {
                    return;
                }
            }
            Err(error) if matches!(error.kind(), TimedOut | WouldBlock | Interrupted) => {}
            Err(_) => return,
        }
    }
}
