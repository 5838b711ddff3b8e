//! Serves what comes to a port: who has a place, for how long, and what is said of those who have none.

use crate::{TransferListener, TransferStream};
use anyhow::Result;
use farpace_process::interrupt;
use farpace_process::stopwatch::Stopwatch;
use farpace_transfer::admission::TransferAdmission;
use farpace_transfer::{Code, LineProgress, Session, Timeouts, TransferError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

/// Lines about connections that came to nothing, in a minute; strangers cannot fill a log.
const MAX_COMPLAINTS: u32 = 20;
const MINUTE: Duration = Duration::from_secs(60);

/// How connections are served.
pub struct RecvServer<'a> {
    /// The secret; empty: everybody is a stranger, unless connections are secured.
    pub token: &'a [u8],
    /// Connections are encrypted, and whoever makes one has a ticket.
    pub secured: bool,
    /// Transfers at once.
    pub transfers: usize,
    /// How long a peer may be silent.
    pub timeouts: Timeouts,
    /// Called while nothing comes: true ends it.
    pub idle: &'a (dyn Fn() -> bool + Sync),
    /// The first sender that was admitted is the only one, however its transfer ends: it does not come again.
    pub one_sender: bool,
    /// Called with a line about a connection that came to nothing.
    pub complain: &'a (dyn Fn(&str) + Sync),
}

/// Serves one connection. True: everything was transferred.
pub type ServeTransfer<'a> = dyn Fn(TransferStream, &Session<'_>) -> Result<bool, TransferError> + Sync + 'a;

/// How a transfer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferEnd {
    /// All of it was transferred.
    Complete,
    /// Something was not, or it came to nothing.
    Failed,
    /// It was stopped here.
    Interrupted,
}

impl TransferEnd {
    /// The end of a transfer with this result.
    pub const fn of(result: &Result<bool, TransferError>) -> Self {
        match result {
            Ok(true) => TransferEnd::Complete,
            Err(TransferError::Interrupted) => TransferEnd::Interrupted,
            Ok(false) | Err(_) => TransferEnd::Failed,
        }
    }
}

/// A connection that came to its end, in order or told why not: not a scan of ports, and not one that broke,
/// whose sender will come again.
fn is_complete(result: &Result<bool, TransferError>) -> bool {
    !matches!(
        result,
        Err(TransferError::Protocol(_)
            | TransferError::Closed
            | TransferError::Line(_)
            | TransferError::Silent(_))
    )
}

/// Serves until one transfer that counts has ended, if `once`; otherwise until it is told to stop. How
/// that transfer ended, none if it was stopped.
///
/// # Errors
/// No more connections can come.
pub fn serve(
    listener: &TransferListener,
    server: &RecvServer<'_>,
    once: bool,
    transfer: &ServeTransfer<'_>,
) -> Result<Option<TransferEnd>> {
    let places = TransferAdmission::new(server.transfers);
    let done = AtomicBool::new(false);
    let last = Mutex::new(None);
    let complaints = Complaints::default();
    std::thread::scope(|scope| {
        let stop = || interrupt::asked() || done.load(Ordering::Relaxed) || (server.idle)();
        while let Some(TransferStream { line, peer, address, probe, finish }) = listener.accept(stop)? {
            let (ticket, line) = places.arrive(address, line);
            let (done, last, complaints) = (&done, &last, &complaints);
            let serve = move || {
                let admitted = AtomicBool::new(false);
                let over = || once && done.load(Ordering::Relaxed) && !admitted.load(Ordering::Relaxed);
                let session = Session {
                    token: server.token,
                    secured: server.secured,
                    connected: false,
                    timeouts: server.timeouts,
                    tick: &|progress: &LineProgress| {
                        ticket.worked(progress.work);
                        interrupt::asked() || over()
                    },
                    admit: &|| {
                        ticket.admit(server.token.is_empty() && !server.secured)?;
                        admitted.store(true, Ordering::Relaxed);
                        Ok(())
                    },
                    ..Session::default()
                };
                let result =
                    transfer(TransferStream { line, peer: peer.clone(), address, probe, finish }, &session);
                let is_last = server.one_sender || is_complete(&result);
                let peer = listener.name_of(&peer);
                let counts = admitted.load(Ordering::Relaxed) && is_last && !ticket.is_displaced();
                match &result {
                    Err(TransferError::Interrupted) if over() => {}
                    // Senders try all ways at once, and leave those that they do not take.
                    Err(TransferError::Closed | TransferError::Line(_))
                        if server.secured && !admitted.load(Ordering::Relaxed) => {}
                    Err(_) if ticket.is_displaced() => {
                        let text = format!("error: {peer}: too slow or silent; another one got its place");
                        complaints.tell(server.complain, &text, counts);
                    }
                    Err(error) => complaints.tell(server.complain, &why(error, &peer), counts),
                    Ok(_) => {}
                }
                if once && counts && !done.swap(true, Ordering::Relaxed) {
                    *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(TransferEnd::of(&result));
                }
            };
            // Without a thread for it the connection is closed, and those that are served go on.
            let _ = Builder::new().spawn_scoped(scope, serve);
        }
        anyhow::Ok(())
    })?;
    Ok(last.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Says what came to nothing, but not without end.
#[derive(Default)]
struct Complaints(Mutex<Option<(Stopwatch, u32)>>);

impl Complaints {
    fn tell(&self, complain: &dyn Fn(&str), line: &str, counts: bool) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, said) = state.get_or_insert_with(|| (Stopwatch::start(), 0));
        if since.elapsed() > MINUTE {
            if let Some(more @ 1..) = said.checked_sub(MAX_COMPLAINTS) {
                complain(&format!("... and {more} more connections that came to nothing"));
            }
            (*since, *said) = (Stopwatch::start(), 0);
        }
        *said += u32::from(!counts);
        if counts || *said <= MAX_COMPLAINTS {
            complain(line);
        }
    }
}

/// What has to be done before another attempt can succeed; none: nothing.
const fn mend(code: Code) -> Option<&'static str> {
    match code {
        Code::NoSpace => Some("free some space"),
        Code::Permission => Some("give the permission"),
        Code::Exists | Code::Path => Some("move what is in the way"),
        Code::Special => Some("leave it out"),
        Code::Limit => Some("send less at once"),
        _ => None,
    }
}

/// Why a transfer ended early, and what to do.
pub fn why(error: &TransferError, peer: &str) -> String {
    let resume = "what has arrived is kept: run the same command again to go on from there";
    match error {
        TransferError::Interrupted => format!("interrupted; {resume}"),
        TransferError::Own(fault) | TransferError::Peer(fault)
            if matches!(fault.code, Code::Token | Code::Version | Code::Busy | Code::Role) =>
        {
            format!("error: {peer}: {error}")
        }
        TransferError::Own(fault) | TransferError::Peer(fault) => match mend(fault.code) {
            Some(first) => format!("error: {peer}: {error}; {first}: {resume}"),
            None => format!("error: {peer}: {error}; {resume}"),
        },
        TransferError::Protocol(_) | TransferError::Unanswered => format!("error: {peer}: {error}"),
        _ => format!("error: {peer}: {error}; {resume}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_transfer::TransferFault;

    /// Breaks: the user is told to repeat a command that must fail again, and not what to do first.
    #[test]
    fn what_has_to_be_mended_is_said_first() {
        let said =
            |code| why(&TransferError::Own(TransferFault { code, text: "file `a`".to_owned() }), "far");
        for code in [Code::Permission, Code::Exists, Code::Path, Code::Special, Code::NoSpace, Code::Limit] {
            let first = mend(code).expect("something has to be done");
            assert!(
                said(code).contains(&format!("; {first}: what has arrived is kept: run")),
                "{}",
                said(code)
            );
        }
        for code in [Code::Other, Code::Changed, Code::Vanished, Code::Mismatch, Code::Interrupted] {
            assert!(said(code).contains("; what has arrived is kept: run"), "{}", said(code));
        }
        for code in [Code::Token, Code::Version, Code::Busy, Code::Role] {
            assert!(!said(code).contains("again"), "{}", said(code));
        }
    }
}
