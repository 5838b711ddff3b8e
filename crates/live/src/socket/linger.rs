//! Closing of streams (SO_LINGER).

use super::duplex::{CloseMode, DuplexPhase};
use super::pipe::Pipe;
use super::shared::deadline;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Interval at which a lingering close checks whether the peer has acknowledged everything.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Closes a stream as in BSD (SO_LINGER): without `linger` in the background; with zero by a reset; otherwise
/// it waits up to this time for the peer to acknowledge everything, or, if that is known to be `delivered`,
/// for the peer's FIN. True: the peer has, or the close did not wait.
pub(super) fn leave(pipe: &Arc<Pipe>, linger: Option<Duration>, delivered: bool) -> bool {
    match linger {
        None => {
            pipe.leave(CloseMode::Close);
            true
        }
        Some(Duration::ZERO) => {
            pipe.leave(CloseMode::Abort);
            true
        }
        Some(time) => {
            pipe.finish();
            pipe.leave(CloseMode::Close);
            let end = deadline(Some(time));
            loop {
                let (done, ended, over) = pipe
                    .shared
                    .with(|duplex| (duplex.flushed, duplex.peer_closed, duplex.phase == DuplexPhase::Over));
                if done || over {
                    return done;
                }
                if delivered && ended {
                    // The FIN and the ACK of the peer's leave meanwhile.
                    std::thread::sleep(POLL_INTERVAL);
                    return true;
                }
                if end.is_some_and(|end| Instant::now() >= end) {
                    return false;
                }
                // Single ACKs cause no notification. Lingering is rare enough to poll.
                std::thread::sleep(POLL_INTERVAL);
                pipe.kick();
            }
        }
    }
}
