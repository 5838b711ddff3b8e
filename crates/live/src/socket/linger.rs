//! How a stream ends when its program lets go of it.

use super::duplex::{DuplexPhase, Farewell};
use super::pipe::Pipe;
use super::shared::deadline;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// So often one who lingers looks whether the peer has everything.
const LOOK: Duration = Duration::from_millis(2);

/// Lets go of a stream as BSD does (SO_LINGER): without `linger` in the background, with zero by a reset, else waiting so
/// long for the peer to have everything. True: it has, or nobody waited for that.
pub(super) fn leave(pipe: &Arc<Pipe>, linger: Option<Duration>) -> bool {
    match linger {
        None => {
            pipe.leave(Farewell::Close);
            true
        }
        Some(Duration::ZERO) => {
            pipe.leave(Farewell::Abort);
            true
        }
        Some(time) => {
            pipe.finish();
            pipe.leave(Farewell::Close);
            let end = deadline(Some(time));
            loop {
                let (done, over) =
                    pipe.shared.with(|duplex| (duplex.flushed, duplex.phase == DuplexPhase::Over));
                if done || over {
                    return done;
                }
                if end.is_some_and(|end| Instant::now() >= end) {
                    return false;
                }
                // Nobody tells of single acknowledgments; this is rare enough to ask.
                std::thread::sleep(LOOK);
                pipe.kick();
            }
        }
    }
}
