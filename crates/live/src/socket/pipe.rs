//! The program's side of a stream: reads and writes that never wait. Whoever may wait does so in [`Shared`].

use super::bridge::pump;
use super::duplex::{Duplex, Farewell, Phase, SMALL_WRITE};
use super::engine::{Engine, ended};
use super::registry::{Interrupt, Registry};
use super::shared::Shared;
use bytes::Bytes;
use farpace_tcp::config::Config;
use farpace_units::Rate;
use nix::errno::Errno;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A stream between a program and the engine.
///
/// Locks, always in this order: `reader` or `writer`, then `shared`; and `shared` alone is taken by the station. Bytes are
/// copied with `shared` free, but for short writes.
pub(super) struct Pipe {
    pub shared: Shared<Duplex>,
    /// What was fetched and not handed out.
    reader: Mutex<VecDeque<Bytes>>,
    writer: Mutex<()>,
    engine: Arc<dyn Engine>,
    registry: Arc<Registry>,
    place: u64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What there is to read.
enum Found {
    Data,
    End,
}

impl Pipe {
    pub fn new(engine: Arc<dyn Engine>, registry: Arc<Registry>, config: &Config) -> Arc<Self> {
        let place = registry.reserve();
        let pipe = Arc::new(Pipe {
            shared: Shared::new(Duplex::new(config)),
            reader: Mutex::default(),
            writer: Mutex::default(),
            engine,
            registry,
            place,
        });
        let weak: Weak<dyn Interrupt> = Arc::<Pipe>::downgrade(&pipe);
        pipe.registry.enter(place, weak);
        pipe
    }

    pub fn engine(&self) -> &dyn Engine {
        &*self.engine
    }

    /// Lets the station look at this stream soon.
    pub fn kick(self: &Arc<Self>) {
        let pipe = self.clone();
        let job = self.engine.run(Box::new(move |host, cx| {
            let id = pipe.shared.with(|duplex| duplex.id);
            let found = id.and_then(|id| {
                host.with_connection(id, cx, |connection| {
                    pipe.shared.with(|duplex| match duplex.phase {
                        Phase::Over => duplex.kicked = false,
                        Phase::Opening | Phase::Open => pump(duplex, connection),
                    })
                })
            });
            if found.is_none() {
                pipe.shared.with(|duplex| duplex.kicked = false);
            }
        }));
        if job.is_err() {
            self.shared.with(|duplex| duplex.end(Some(Errno::ENETDOWN)));
        }
    }

    /// Fetches what has come, if nothing is left of what was fetched before, or if that is not enough. `again`: the call
    /// has something to return, so errors can wait.
    fn fetch(self: &Arc<Self>, held: &mut VecDeque<Bytes>, more: bool, again: bool) -> io::Result<Found> {
        if !held.is_empty() && !more {
            return Ok(Found::Data);
        }
        let (found, kick) = self.shared.with(|duplex| {
            held.append(&mut duplex.incoming);
            duplex.incoming_bytes = 0;
            duplex.reader_holds = !held.is_empty();
            let kick = duplex.more && !duplex.kicked;
            duplex.kicked |= kick;
            let found = if !held.is_empty() {
                Ok(Found::Data)
            } else if again {
                Err(io::ErrorKind::WouldBlock.into())
            } else if let Some(error) = duplex.error.take() {
                Err(error.into())
            } else if duplex.at_end() {
                Ok(Found::End)
            } else {
                Err(io::ErrorKind::WouldBlock.into())
            };
            (found, kick)
        });
        if kick {
            self.kick();
        }
        found
    }

    /// Reads what there is, at most `buffer`. Zero: the end.
    pub fn try_read(self: &Arc<Self>, buffers: &mut [io::IoSliceMut<'_>]) -> io::Result<usize> {
        let mut held = locked(&self.reader);
        let mut read = 0;
        for buffer in buffers {
            let mut at = 0;
            while at < buffer.len() {
                match self.fetch(&mut held, false, read > 0) {
                    Ok(Found::Data) => {}
                    Ok(Found::End) => return Ok(read),
                    Err(_) if read > 0 => return Ok(read),
                    Err(error) => return Err(error),
                }
                while let Some(piece) = held.front_mut() {
                    let n = piece.len().min(buffer.len() - at);
                    buffer[at..at + n].copy_from_slice(&piece.split_to(n));
                    (at, read) = (at + n, read + n);
                    if !piece.is_empty() {
                        break;
                    }
                    held.pop_front();
                }
                self.note_held(&held);
            }
        }
        Ok(read)
    }

    /// The next piece, at most `limit` bytes of it, without copying. None: the end.
    pub fn try_read_bytes(self: &Arc<Self>, limit: usize) -> io::Result<Option<Bytes>> {
        let mut held = locked(&self.reader);
        match self.fetch(&mut held, false, false)? {
            Found::End => Ok(None),
            Found::Data => {
                let Some(front) = held.front_mut() else { return Ok(None) };
                let piece = front.split_to(front.len().min(limit));
                if front.is_empty() {
                    held.pop_front();
                }
                self.note_held(&held);
                Ok(Some(piece))
            }
        }
    }

    /// Copies what there is, and leaves it there. Zero: the end.
    pub fn try_peek(self: &Arc<Self>, buffer: &mut [u8]) -> io::Result<usize> {
        let mut held = locked(&self.reader);
        let there: usize = held.iter().map(Bytes::len).sum();
        if matches!(self.fetch(&mut held, there < buffer.len(), false)?, Found::End) {
            return Ok(0);
        }
        let mut at = 0;
        for piece in held.iter() {
            let n = piece.len().min(buffer.len() - at);
            buffer[at..at + n].copy_from_slice(&piece[..n]);
            at += n;
        }
        Ok(at)
    }

    fn note_held(&self, held: &VecDeque<Bytes>) {
        if held.is_empty() {
            self.shared.with(|duplex| duplex.reader_holds = false);
        }
    }

    /// Bytes that can be read without waiting.
    pub fn available(&self) -> usize {
        let held: usize = locked(&self.reader).iter().map(Bytes::len).sum();
        held + self.shared.with(|duplex| duplex.incoming_bytes)
    }

    /// Bytes written that the engine has not taken.
    pub fn waiting_to_leave(&self) -> usize {
        self.shared.with(|duplex| duplex.outgoing_bytes)
    }

    /// Writes as much as there is room for.
    pub fn try_write(self: &Arc<Self>, bytes: &[u8]) -> io::Result<usize> {
        let _turn = locked(&self.writer);
        let len = self.shared.with(|duplex| {
            let len = duplex.reserve(bytes.len())?;
            if len <= SMALL_WRITE {
                duplex.append(&bytes[..len]);
            }
            io::Result::Ok(len)
        })?;
        let piece = (len > SMALL_WRITE).then(|| Bytes::copy_from_slice(&bytes[..len]));
        self.written(piece);
        Ok(len)
    }

    /// The same without copying; `bytes` keeps what there was no room for.
    pub fn try_write_bytes(self: &Arc<Self>, bytes: &mut Bytes) -> io::Result<usize> {
        let _turn = locked(&self.writer);
        let len = self.shared.with(|duplex| duplex.reserve(bytes.len()))?;
        self.written(Some(bytes.split_to(len)));
        Ok(len)
    }

    fn written(self: &Arc<Self>, piece: Option<Bytes>) {
        let kick = self.shared.with(|duplex| {
            if duplex.phase == Phase::Over {
                return false;
            }
            if let Some(piece) = piece {
                duplex.push(piece);
            }
            !duplex.stuck && !std::mem::replace(&mut duplex.kicked, true)
        });
        if kick {
            self.kick();
        }
    }

    /// Nothing will be written any more: a FIN follows what was.
    pub fn finish(self: &Arc<Self>) {
        if self.shared.with(|duplex| {
            duplex.fin = true;
            duplex.phase != Phase::Over && !std::mem::replace(&mut duplex.kicked, true)
        }) {
            self.kick();
        }
    }

    /// Nothing will be read any more, but for what is there.
    pub fn stop_reading(&self) {
        self.shared.with(|duplex| duplex.deaf = true);
    }

    /// The program leaves. What it has not read makes it a reset (RFC 2525 §2.17).
    pub fn leave(self: &Arc<Self>, how: Farewell) {
        let mut held = locked(&self.reader);
        let kick = self.shared.with(|duplex| {
            let unread = !held.is_empty() || !duplex.incoming.is_empty() || duplex.more;
            held.clear();
            (duplex.incoming, duplex.reader_holds) = (VecDeque::new(), false);
            (duplex.incoming_bytes, duplex.fin) = (0, true);
            let how = if unread { Farewell::Abort } else { how };
            duplex.farewell = Some(how);
            duplex.phase != Phase::Over && !std::mem::replace(&mut duplex.kicked, true)
        });
        drop(held);
        if kick {
            self.kick();
        }
    }

    /// Payload leaves at this rate at most.
    pub fn cap_rate(&self, cap: Option<Rate>) {
        self.shared.with(|duplex| duplex.rate_cap = cap);
    }

    /// The error that waits, once.
    pub fn take_error(&self) -> Option<io::Error> {
        self.shared.with(|duplex| duplex.error.take()).map(Into::into)
    }

    /// The id of its connection.
    pub fn connection(&self) -> io::Result<farpace_host::ConnectionId> {
        self.shared.with(|duplex| duplex.id).ok_or_else(ended)
    }
}

impl Duplex {
    /// Counts what is about to be written: as much of `wanted` as there is room for.
    fn reserve(&mut self, wanted: usize) -> io::Result<usize> {
        if let Some(error) = self.error.take() {
            return Err(error.into());
        }
        if self.write_ended() {
            return Err(Errno::EPIPE.into());
        }
        if self.phase == Phase::Opening {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let room = self.outgoing_room();
        if room == 0 && wanted > 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let len = wanted.min(room);
        self.outgoing_bytes += len;
        // Now, so that nobody who waits for room has to try in vain first.
        self.outgoing_room();
        Ok(len)
    }
}

impl Interrupt for Pipe {
    fn interrupt(&self) {
        self.shared.interrupt();
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.registry.leave(self.place);
    }
}
