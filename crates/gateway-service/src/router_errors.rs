//! ICMP errors "too big" of the router itself about packets of legs. They go to the hosts, in whose name the
//! legs have sent, and pass no device of the gateway.

use crate::Note;
use anyhow::{Context, Result};
use farpace_gateway::SharedFlows;
use farpace_live::device::TooBigErrors;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

/// Between two looks whether an interface was made anew.
const LOOK_MILLISECONDS: u16 = 1_000;

/// A thread that tells a gateway of these errors.
pub struct RouterErrors {
    /// The thread ends when this is closed.
    end: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl RouterErrors {
    /// Listens at the interfaces by which the errors leave.
    ///
    /// # Errors
    /// The system refuses.
    pub fn listen(interfaces: &[String], gateway: SharedFlows, note: Note) -> Result<Self> {
        let open = |name: &String| {
            TooBigErrors::open(name).with_context(|| format!("cannot listen for ICMP errors at {name}"))
        };
        let mut sources = interfaces.iter().map(open).collect::<Result<Vec<_>>>()?;
        let (end, ended) = UnixStream::pair().context("cannot end a thread")?;
        let run = move || {
            let mut failed = None;
            while !is_over(&ended, &sources) {
                for source in &mut sources {
                    std::iter::from_fn(|| source.next()).for_each(|error| gateway.tell_of(error));
                    // An interface may be gone for a while.
                    let error = source.follow().err().map(|error| error.kind());
                    if error.is_some() && error != failed {
                        note(
                            "ICMP errors of this router are not heard for a while: an interface has changed",
                        );
                        failed = error;
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name("icmp-errors".to_owned());
        let thread = thread.spawn(run).context("cannot start a thread")?;
        Ok(RouterErrors { end: Some(end), thread: Some(thread) })
    }
}

/// Waits for errors. True: the end has come.
fn is_over(ended: &UnixStream, sources: &[TooBigErrors]) -> bool {
    let mut all = vec![PollFd::new(ended.as_fd(), PollFlags::POLLIN)];
    all.extend(sources.iter().map(|source| PollFd::new(source.fd(), PollFlags::POLLIN)));
    let _ = poll(&mut all, PollTimeout::from(LOOK_MILLISECONDS));
    all.first().and_then(PollFd::any).unwrap_or(true)
}

impl Drop for RouterErrors {
    fn drop(&mut self) {
        drop(self.end.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
