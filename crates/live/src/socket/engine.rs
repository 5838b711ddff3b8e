//! Engines: they run the host behind the sockets.

use crate::driver::{Ended, Handle, HostJob};
use farpace_host::Host;
use farpace_path::Cx;
use nix::errno::Errno;
use std::io;
use std::sync::mpsc;

/// Owns a host and does work on it: a [`Driver`](crate::Driver) in its thread, or a program that supplies
/// packets and time itself.
///
/// The contract: jobs are done in order, or dropped when the engine ends. `run` is never called while a lock
/// of a socket is held, so it may do the job at once.
pub trait Engine: Send + Sync {
    /// Does `job` now or soon.
    ///
    /// # Errors
    /// The engine has ended, and the job was dropped.
    fn run(&self, job: HostJob) -> Result<(), Ended>;
    /// The program supplies the time, which is not the time of day.
    fn is_driven(&self) -> bool {
        false
    }
}

impl Engine for Handle {
    fn run(&self, job: HostJob) -> Result<(), Ended> {
        Handle::run(self, job)
    }
}

/// The error of calls after the end of an engine.
pub(super) fn ended() -> io::Error {
    Errno::ENETDOWN.into()
}

/// Does `work` on the host and waits for its result.
pub(super) fn call_host<R: Send + 'static>(
    engine: &dyn Engine,
    work: impl FnOnce(&mut Host, &mut Cx<'_>) -> R + Send + 'static,
) -> io::Result<R> {
    let (sender, receiver) = mpsc::channel();
    let job = move |host: &mut Host, cx: &mut Cx<'_>| {
        // The receiver is gone if the caller has stopped waiting.
        let _ = sender.send(work(host, cx));
    };
    engine.run(Box::new(job)).map_err(|_| ended())?;
    receiver.recv().map_err(|_| ended())
}
