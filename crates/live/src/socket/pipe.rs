//! The program's side of a stream: reads and writes that do not wait. Waiting is in `shared.rs`.

use super::duplex::{CloseMode, DuplexPhase, SMALL_WRITE, StreamDuplex, WriteFlags};
use super::engine::{Engine, ended};
use super::pump::pump;
use super::registry::{Interrupt, Registry};
use super::shared::SharedState;
use bytes::{Bytes, BytesMut};
use farpace_tcp::config::Config;
use farpace_units::Rate;
use nix::errno::Errno;
use std::any::Any;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A stream between a program and the engine.
///
/// Locks are taken in this order: `reader` or `writer`, then `shared`; the driver takes `shared` only. Bytes
/// are copied without holding `shared`, except for short writes.
pub(super) struct Pipe {
    pub shared: SharedState<StreamDuplex>,
    reader: Mutex<PipeReader>,
    writer: Mutex<()>,
    engine: Arc<dyn Engine>,
    registry: Arc<Registry>,
    place: u64,
    extra: Option<Extra>,
}

/// A value that a listener attaches to its streams, for the creator of the listener.
pub(super) type Extra = Arc<dyn Any + Send + Sync>;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Data that was fetched and not returned.
#[derive(Default)]
struct PipeReader {
    pieces: VecDeque<Bytes>,
    /// Stream offset of the first byte held, or of the next byte.
    offset: u64,
    /// Stream offset of the peer's urgent byte, if it is between others.
    mark: Option<u64>,
    inline: bool,
}

/// The result of a fetch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PipeStatus {
    Data,
    End,
}

impl PipeReader {
    fn buffered(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }
    /// Number of bytes before the urgent one, which a read does not cross; none: no limit.
    fn before_mark(&self) -> Option<usize> {
        let ahead = self.mark?.checked_sub(self.offset).filter(|ahead| *ahead > 0)?;
        usize::try_from(ahead).ok()
    }
    /// Takes `n` bytes from the first piece.
    fn take(&mut self, n: usize) -> Bytes {
        let Some(front) = self.pieces.front_mut() else { return Bytes::new() };
        let piece = front.split_to(n.min(front.len()));
        if front.is_empty() {
            self.pieces.pop_front();
        }
        self.offset += piece.len() as u64;
        piece
    }
    /// Skips the urgent byte, which is read separately.
    fn skip_urgent(&mut self) {
        if !self.inline && self.mark == Some(self.offset) && !self.pieces.is_empty() {
            self.take(1);
        }
    }
}

impl Pipe {
    pub fn new(engine: Arc<dyn Engine>, registry: Arc<Registry>, config: &Config) -> Arc<Self> {
        Pipe::with_extra(engine, registry, config, None)
    }

    /// A pipe with an attached value.
    pub fn with_extra(
        engine: Arc<dyn Engine>,
        registry: Arc<Registry>,
        config: &Config,
        extra: Option<Extra>,
    ) -> Arc<Self> {
        let place = registry.reserve();
        let pipe = Arc::new(Pipe {
            shared: SharedState::new(StreamDuplex::new(config)),
            reader: Mutex::default(),
            writer: Mutex::default(),
            engine,
            registry,
            place,
            extra,
        });
        let weak: Weak<dyn Interrupt> = Arc::<Pipe>::downgrade(&pipe);
        pipe.registry.enter(place, weak);
        pipe
    }

    pub fn engine(&self) -> &dyn Engine {
        &*self.engine
    }
    /// The value attached by its listener.
    pub fn extra(&self) -> Option<&Extra> {
        self.extra.as_ref()
    }

    /// Notifies the driver of work on this stream.
    pub fn kick(self: &Arc<Self>) {
        let pipe = self.clone();
        let job = self.engine.run(Box::new(move |host, cx| {
            let id = pipe.shared.with(|duplex| duplex.id);
            let found = id.and_then(|id| {
                let now = cx.now();
                host.with_connection(id, cx, |connection| {
                    pipe.shared.with(|duplex| match duplex.phase {
                        DuplexPhase::Over => duplex.kicked = false,
                        DuplexPhase::Opening | DuplexPhase::Open => pump(duplex, connection, now),
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

    /// Fetches received data, if all fetched data was returned or if more is needed. `again`: the call has
    /// data to return, so errors are deferred.
    fn fetch(self: &Arc<Self>, reader: &mut PipeReader, more: bool, again: bool) -> io::Result<PipeStatus> {
        reader.skip_urgent();
        if !reader.pieces.is_empty() && !more {
            return Ok(PipeStatus::Data);
        }
        let (found, kick) = self.shared.with(|duplex| {
            reader.pieces.append(&mut duplex.incoming);
            (reader.mark, reader.inline) = (duplex.urgent_mark, duplex.urgent_inline);
            reader.skip_urgent();
            duplex.incoming_bytes = 0;
            duplex.reader_bytes = reader.buffered();
            let kick = duplex.more && !duplex.kicked;
            duplex.kicked |= kick;
            let found = if !reader.pieces.is_empty() {
                Ok(PipeStatus::Data)
            } else if again {
                Err(io::ErrorKind::WouldBlock.into())
            } else if duplex.peer_closed && duplex.at_end() {
                Ok(PipeStatus::End) // it stays the end whatever happens to the other direction
            } else if let Some(error) = duplex.error.take() {
                Err(error.into())
            } else if duplex.at_end() {
                Ok(PipeStatus::End)
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

    /// Reads at most `buffer` bytes. Zero: the end.
    pub fn try_read(self: &Arc<Self>, buffers: &mut [io::IoSliceMut<'_>]) -> io::Result<usize> {
        self.read_pieces(buffers.iter().map(|buffer| buffer.len()).sum(), |at, piece| {
            let mut skip = at;
            let mut rest = piece;
            for buffer in buffers.iter_mut() {
                if skip >= buffer.len() {
                    skip -= buffer.len();
                    continue;
                }
                let n = rest.len().min(buffer.len() - skip);
                buffer[skip..skip + n].copy_from_slice(&rest[..n]);
                (skip, rest) = (0, &rest[n..]);
                if rest.is_empty() {
                    break;
                }
            }
        })
    }

    /// Reads and discards at most `limit` bytes (MSG_TRUNC). Zero: the end.
    pub fn try_discard(self: &Arc<Self>, limit: usize) -> io::Result<usize> {
        self.read_pieces(limit, |_, _| {})
    }

    /// Passes at most `limit` bytes to `consume`, each piece with the number of bytes before it in this call.
    fn read_pieces(
        self: &Arc<Self>,
        limit: usize,
        mut consume: impl FnMut(usize, &[u8]),
    ) -> io::Result<usize> {
        let mut reader = locked(&self.reader);
        let mut read = 0;
        while read < limit {
            if reader.mark == Some(reader.offset) && read > 0 {
                break; // a read ends at the urgent byte; fetching would skip it
            }
            match self.fetch(&mut reader, false, read > 0) {
                Ok(PipeStatus::Data) => {}
                Ok(PipeStatus::End) => return Ok(read),
                Err(_) if read > 0 => return Ok(read),
                Err(error) => return Err(error),
            }
            let until_mark = reader.before_mark();
            let mut n = limit - read;
            if reader.mark == Some(reader.offset) && read > 0 {
                break; // a read ends at the urgent byte
            }
            n = until_mark.map_or(n, |ahead| n.min(ahead));
            while n > 0 && !reader.pieces.is_empty() {
                let piece = reader.take(n);
                consume(read, &piece);
                (read, n) = (read + piece.len(), n - piece.len());
            }
            self.update_buffered(&reader);
        }
        Ok(read)
    }

    /// The next piece, at most `limit` bytes, without a copy. None: the end.
    pub fn try_read_bytes(self: &Arc<Self>, limit: usize) -> io::Result<Option<Bytes>> {
        let mut reader = locked(&self.reader);
        match self.fetch(&mut reader, false, false)? {
            PipeStatus::End => Ok(None),
            PipeStatus::Data => {
                let limit = reader.before_mark().map_or(limit, |ahead| limit.min(ahead));
                let piece = reader.take(limit);
                self.update_buffered(&reader);
                Ok(Some(piece))
            }
        }
    }

    /// Copies data from offset `skip` on, without consuming it. Zero: the end, or no data at this offset.
    pub fn try_peek(self: &Arc<Self>, buffer: &mut [u8], skip: usize) -> io::Result<usize> {
        let mut reader = locked(&self.reader);
        let more = reader.buffered() < skip.saturating_add(buffer.len());
        if self.fetch(&mut reader, more, false)? == PipeStatus::End {
            return Ok(0);
        }
        let (mut at, mut skip) = (0, skip);
        for piece in &reader.pieces {
            let piece = piece.get(skip..).unwrap_or_else(|| {
                skip -= piece.len();
                &[]
            });
            if !piece.is_empty() {
                skip = 0;
            }
            let n = piece.len().min(buffer.len() - at);
            buffer[at..at + n].copy_from_slice(&piece[..n]);
            at += n;
        }
        Ok(at)
    }

    /// The peer's urgent byte (MSG_OOB); `peek` keeps it. None: it was announced and has not arrived.
    ///
    /// # Errors
    /// `EINVAL`: there is none, or it is read in order with the others.
    pub fn try_urgent(&self, peek: bool) -> io::Result<Option<u8>> {
        self.shared.with(|duplex| match (duplex.urgent_mark, duplex.urgent_byte) {
            _ if duplex.urgent_inline => Err(Errno::EINVAL.into()),
            (_, Some(byte)) => {
                if !peek {
                    duplex.urgent_byte = None;
                    duplex.urgent_read = true;
                }
                Ok(Some(byte))
            }
            (Some(_), None) if !duplex.urgent_read => Ok(None),
            _ => Err(Errno::EINVAL.into()),
        })
    }

    /// True if the urgent byte is next (SIOCATMARK).
    pub fn is_at_mark(&self) -> bool {
        let mut reader = locked(&self.reader);
        self.shared.with(|duplex| (reader.mark, reader.inline) = (duplex.urgent_mark, duplex.urgent_inline));
        reader.mark == Some(reader.offset)
    }

    fn update_buffered(self: &Arc<Self>, reader: &PipeReader) {
        let bytes = reader.buffered();
        let kick = self.shared.with(|duplex| {
            duplex.reader_bytes = bytes;
            duplex.reads += 1;
            duplex.wants_reads
                && duplex.phase == DuplexPhase::Open
                && !std::mem::replace(&mut duplex.kicked, true)
        });
        if kick {
            self.kick();
        }
    }

    /// Number of bytes that can be read without waiting.
    pub fn available(&self) -> usize {
        let mut reader = locked(&self.reader);
        let waiting = self.shared.with(|duplex| {
            (reader.mark, reader.inline) = (duplex.urgent_mark, duplex.urgent_inline);
            duplex.incoming_bytes
        });
        let all = reader.buffered() + waiting;
        let first = usize::from(!reader.inline && reader.mark == Some(reader.offset) && all > 0);
        reader.before_mark().map_or(all - first, |ahead| all.min(ahead))
    }

    /// Number of written bytes that the engine has not taken.
    pub fn waiting_to_leave(&self) -> usize {
        self.shared.with(|duplex| duplex.outgoing_bytes)
    }

    /// Writes as many bytes as possible without waiting.
    pub fn try_write(self: &Arc<Self>, bytes: &[u8]) -> io::Result<usize> {
        self.try_write_parts(&[io::IoSlice::new(bytes)], WriteFlags::default())
    }

    /// Writes as many bytes of several buffers as possible without waiting.
    pub fn try_write_parts(
        self: &Arc<Self>,
        parts: &[io::IoSlice<'_>],
        write_flags: WriteFlags,
    ) -> io::Result<usize> {
        let _turn = locked(&self.writer);
        let wanted = parts.iter().map(|part| part.len()).fold(0, usize::saturating_add);
        let within = |len: usize| {
            let mut left = len;
            parts.iter().map_while(move |part| {
                let n = part.len().min(left);
                left -= n;
                (n > 0 || left > 0).then(|| &part[..n])
            })
        };
        let len = self.shared.with(|duplex| {
            let len = duplex.reserve(wanted)?;
            if len <= SMALL_WRITE {
                within(len).for_each(|part| duplex.append(part));
            }
            io::Result::Ok(len)
        })?;
        let piece = (len > SMALL_WRITE).then(|| {
            let mut all = BytesMut::with_capacity(len);
            within(len).for_each(|part| all.extend_from_slice(part));
            all.freeze()
        });
        self.written(piece, WriteFlags { urgent: write_flags.urgent && len == wanted, ..write_flags });
        Ok(len)
    }

    /// Writes without a copy; `bytes` keeps the rest.
    pub fn try_write_bytes(self: &Arc<Self>, bytes: &mut Bytes) -> io::Result<usize> {
        let _turn = locked(&self.writer);
        let len = self.shared.with(|duplex| duplex.reserve(bytes.len()))?;
        self.written(Some(bytes.split_to(len)), WriteFlags::default());
        Ok(len)
    }

    fn written(self: &Arc<Self>, piece: Option<Bytes>, write_flags: WriteFlags) {
        let kick = self.shared.with(|duplex| {
            if duplex.phase == DuplexPhase::Over {
                return false;
            }
            if let Some(piece) = piece {
                duplex.push(piece);
            }
            duplex.note_flags(write_flags);
            !duplex.stuck && !std::mem::replace(&mut duplex.kicked, true)
        });
        if kick {
            self.kick();
        }
    }

    /// The error that a write would return.
    pub fn check_writable(&self) -> io::Result<()> {
        self.shared.with(|duplex| duplex.reserve(0).map(drop))
    }

    /// Ends the written direction: a FIN follows the data.
    pub fn finish(self: &Arc<Self>) {
        if self.shared.with(|duplex| {
            duplex.fin = true;
            duplex.phase != DuplexPhase::Over && !std::mem::replace(&mut duplex.kicked, true)
        }) {
            self.kick();
        }
    }

    /// Nothing will be read any more, but for what is there.
    pub fn stop_reading(self: &Arc<Self>) {
        if self.shared.with(|duplex| {
            duplex.read_shutdown = true;
            duplex.phase == DuplexPhase::Open && !std::mem::replace(&mut duplex.kicked, true)
        }) {
            self.kick();
        }
    }

    /// Closes the stream. Unread data causes a reset (RFC 2525 §2.17).
    pub fn leave(self: &Arc<Self>, how: CloseMode) {
        let mut reader = locked(&self.reader);
        let kick = self.shared.with(|duplex| {
            let unread = !reader.pieces.is_empty() || !duplex.incoming.is_empty() || duplex.more;
            reader.pieces.clear();
            (duplex.incoming, duplex.reader_bytes) = (VecDeque::new(), 0);
            (duplex.incoming_bytes, duplex.fin) = (0, true);
            let how = if unread { CloseMode::Abort } else { how };
            duplex.close_mode = Some(how);
            duplex.phase != DuplexPhase::Over && !std::mem::replace(&mut duplex.kicked, true)
        });
        drop(reader);
        if kick {
            self.kick();
        }
    }

    /// Sets the maximum rate of sent payload.
    pub fn cap_rate(&self, cap: Option<Rate>) {
        self.shared.with(|duplex| duplex.rate_cap = cap);
    }

    /// The pending error; returned once.
    pub fn take_error(&self) -> Option<io::Error> {
        self.shared.with(|duplex| duplex.error.take()).map(Into::into)
    }

    /// The identifier of its connection.
    pub fn connection(&self) -> io::Result<farpace_host::ConnectionId> {
        self.shared.with(|duplex| duplex.id).ok_or_else(ended)
    }
}

impl StreamDuplex {
    /// Reserves space for at most `wanted` bytes.
    fn reserve(&mut self, wanted: usize) -> io::Result<usize> {
        if let Some(error) = self.error.take() {
            return Err(error.into());
        }
        if self.write_ended() {
            return Err(Errno::EPIPE.into());
        }
        if self.phase == DuplexPhase::Opening {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let room = self.outgoing_room();
        if room == 0 && wanted > 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let len = wanted.min(room);
        self.outgoing_bytes += len;
        // Checked now, so that a program that waits for space does not have to fail first.
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
