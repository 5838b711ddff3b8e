//! The two directions of a stream, shared by its program and its driver.

use super::shared::{Readiness, Ready};
use bytes::{Bytes, BytesMut};
use farpace_host::{ConnectionId, SocketEnds};
use farpace_tcp::config::Config;
use farpace_units::Rate;
use nix::errno::Errno;
use std::collections::VecDeque;

/// Maximum number of bytes per direction between program and engine, in addition to the engine's buffers.
pub(super) const BETWEEN: usize = 512 << 10;
/// Maximum for a program that wants more than [`BETWEEN`] at once (SO_RCVLOWAT).
const MAX_WANTED: usize = 16 << 20;
/// Shorter writes are collected into larger pieces.
pub(super) const SMALL_WRITE: usize = 8 << 10;
/// Length of the first collected piece, in bytes. A piece that is full before the engine takes it doubles the
/// length of the next, up to [`LONGEST_PIECE`]. So a program that writes little needs little memory.
const FIRST_PIECE: usize = 1 << 10;
const LONGEST_PIECE: usize = 64 << 10;

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DuplexPhase {
    Opening,
    Open,
    Over,
}

/// How its program has closed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CloseMode {
    /// Send the written data, then a FIN.
    Close,
    /// Send a reset now.
    Abort,
}

/// Flags of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WriteFlags {
    /// More data will follow (MSG_MORE).
    pub more: bool,
    /// The last byte is urgent (MSG_OOB).
    pub urgent: bool,
}

/// The state between a program and the engine.
pub(super) struct StreamDuplex {
    pub phase: DuplexPhase,
    /// It has been established.
    pub was_open: bool,
    pub id: Option<ConnectionId>,
    pub ends: Option<SocketEnds>,
    // To the program
    pub incoming: VecDeque<Bytes>,
    pub incoming_bytes: usize,
    incoming_limit: usize,
    /// Bytes that the reading thread has fetched and not returned.
    pub reader_bytes: usize,
    /// Number of bytes received, and of arrivals.
    pub came: u64,
    pub arrivals: u64,
    pub reads: u64,
    /// The engine wants to know what the program has read.
    pub wants_reads: bool,
    /// A program that waits wants at least so many bytes (SO_RCVLOWAT).
    pub wanted: usize,
    /// Stream offset of the peer's urgent byte, the byte until it is read, and whether it was read.
    pub urgent_mark: Option<u64>,
    pub urgent_byte: Option<u8>,
    pub urgent_read: bool,
    /// The urgent byte is read in order with the others (SO_OOBINLINE).
    pub urgent_inline: bool,
    /// The engine has more data.
    pub more: bool,
    /// The peer's FIN was received.
    pub peer_closed: bool,
    /// The program reads no more.
    pub read_shutdown: bool,
    // From the program
    outgoing: VecDeque<Bytes>,
    tail: BytesMut,
    /// Length of the next collected piece, in bytes.
    gather: usize,
    pub outgoing_bytes: usize,
    outgoing_limit: usize,
    /// Bytes written, and the offset up to which they are urgent.
    written: u64,
    urgent_until: Option<u64>,
    /// The last write announced whether more data follows.
    pub more_coming: Option<bool>,
    /// The program found no space. It is notified when half of the space is free.
    full: bool,
    /// The engine has no space; it notifies when it has.
    pub stuck: bool,
    /// The program writes no more.
    pub fin: bool,
    pub fin_sent: bool,
    /// The peer has acknowledged everything.
    pub flushed: bool,
    // Of both directions
    pub close_mode: Option<CloseMode>,
    /// The driver has been notified of work.
    pub kicked: bool,
    pub rate_cap: Option<Rate>,
    /// A pending error; reported once.
    pub error: Option<Errno>,
}

impl StreamDuplex {
    pub fn new(config: &Config) -> Self {
        StreamDuplex {
            phase: DuplexPhase::Opening,
            was_open: false,
            id: None,
            ends: None,
            incoming: VecDeque::new(),
            incoming_bytes: 0,
            incoming_limit: config.receive_buffer.max.as_len().min(BETWEEN),
            reader_bytes: 0,
            came: 0,
            arrivals: 0,
            reads: 0,
            wants_reads: false,
            wanted: 1,
            urgent_mark: None,
            urgent_byte: None,
            urgent_read: false,
            urgent_inline: false,
            more: false,
            peer_closed: false,
            read_shutdown: false,
            outgoing: VecDeque::new(),
            tail: BytesMut::new(),
            gather: FIRST_PIECE,
            outgoing_bytes: 0,
            outgoing_limit: config.send_buffer.max.as_len().clamp(1, BETWEEN),
            written: 0,
            urgent_until: None,
            more_coming: None,
            full: false,
            stuck: false,
            fin: false,
            fin_sent: false,
            flushed: false,
            close_mode: None,
            kicked: false,
            rate_cap: None,
            error: None,
        }
    }

    /// All received data was returned, or was discarded.
    pub fn at_end(&self) -> bool {
        let empty = self.incoming.is_empty() && self.reader_bytes == 0;
        empty && (self.read_shutdown || self.phase == DuplexPhase::Over || (self.peer_closed && !self.more))
    }
    /// Bytes that the program has read.
    pub fn read(&self) -> u64 {
        self.came.saturating_sub((self.incoming_bytes + self.reader_bytes) as u64)
    }
    /// Nothing can be written any more.
    pub fn write_ended(&self) -> bool {
        self.fin || self.phase == DuplexPhase::Over
    }
    /// Number of bytes that the engine may deliver now.
    pub fn incoming_room(&self) -> usize {
        self.incoming_limit.saturating_sub(self.incoming_bytes)
    }
    /// Number of bytes that the program may write now. If zero, the program is notified later.
    pub fn outgoing_room(&mut self) -> usize {
        let room = self.outgoing_limit.saturating_sub(self.outgoing_bytes);
        self.full |= room == 0;
        room
    }
    /// Queues a written piece; its bytes are counted already.
    pub fn push(&mut self, piece: Bytes) {
        self.seal();
        self.written += piece.len() as u64;
        self.outgoing.push_back(piece);
    }
    /// Queues a few written bytes; they are counted already.
    pub fn append(&mut self, bytes: &[u8]) {
        self.written += bytes.len() as u64;
        if self.tail.capacity() - self.tail.len() < bytes.len() {
            self.seal();
            self.tail = BytesMut::with_capacity(self.gather.max(bytes.len()));
            self.gather = (2 * self.gather).min(LONGEST_PIECE);
        }
        self.tail.extend_from_slice(bytes);
    }
    fn seal(&mut self) {
        if !self.tail.is_empty() {
            self.outgoing.push_back(self.tail.split().freeze());
        }
    }
    /// Passes the written data to `take`, which leaves what it does not accept. True: nothing is left.
    pub fn drain(&mut self, mut take: impl FnMut(&mut Bytes)) -> bool {
        self.seal();
        // A rest of the piece would keep the memory of all of it.
        (self.tail, self.gather) = (BytesMut::new(), FIRST_PIECE);
        while let Some(front) = self.outgoing.front_mut() {
            let before = front.len();
            take(front);
            let (after, rest) = (front.len(), !front.is_empty());
            self.outgoing_bytes = self.outgoing_bytes.saturating_sub(before - after);
            if rest {
                break;
            }
            self.outgoing.pop_front();
        }
        if self.outgoing_bytes <= self.outgoing_limit / 2 {
            self.full = false;
        }
        self.outgoing.is_empty()
    }
    /// All written data that was not taken.
    pub fn take_outgoing(&mut self) -> VecDeque<Bytes> {
        self.seal();
        (self.tail, self.gather, self.outgoing_bytes) = (BytesMut::new(), FIRST_PIECE, 0);
        self.full = false;
        std::mem::take(&mut self.outgoing)
    }
    /// Records the flags of the last write.
    pub fn note_flags(&mut self, write_flags: WriteFlags) {
        // Data written before and already reported to the driver must not wait for data after this write.
        let under_way = self.kicked && self.more_coming != Some(true);
        self.more_coming = Some(write_flags.more && !under_way);
        if write_flags.urgent {
            self.urgent_until = Some(self.written);
        }
    }
    /// Number of bytes written after the urgent ones, once all urgent bytes have been taken; reported once.
    pub fn take_urgent(&mut self) -> Option<u64> {
        let until = self.urgent_until?;
        let left: u64 = self.outgoing.iter().map(|piece| piece.len() as u64).sum();
        let taken = self.written - left;
        if until > taken {
            return None;
        }
        self.urgent_until = None;
        Some(taken - until)
    }
    /// A waiting program needs this number of bytes.
    pub fn want(&mut self, bytes: usize) {
        self.wanted = bytes.max(1);
        self.incoming_limit = self.incoming_limit.max(bytes.min(MAX_WANTED));
    }
    /// Records the arrival of data.
    pub fn note_arrival(&mut self, bytes: usize) {
        if bytes > 0 {
            self.came += bytes as u64;
            self.arrivals += 1;
        }
        // The urgent byte is kept until the program reads it.
        if let Some(mark) = self.urgent_mark.filter(|_| self.urgent_byte.is_none() && !self.urgent_read)
            && let Some(behind) = self.came.checked_sub(mark).filter(|behind| *behind > 0)
        {
            let mut behind = usize::try_from(behind).unwrap_or(usize::MAX);
            for piece in self.incoming.iter().rev() {
                if behind <= piece.len() {
                    self.urgent_byte = piece.get(piece.len() - behind).copied();
                    break;
                }
                behind -= piece.len();
            }
        }
    }
    /// The network has reported something that the program wants to hear of.
    pub fn fail(&mut self, error: Errno) {
        if self.phase != DuplexPhase::Over {
            self.error = Some(error);
        }
    }
    /// It is over; `error` tells the program why, unless everything went well.
    pub fn end(&mut self, error: Option<Errno>) {
        if self.phase != DuplexPhase::Over {
            self.phase = DuplexPhase::Over;
            self.error = error.or(self.error);
            self.more = false;
            drop(self.take_outgoing());
        }
    }
}

impl Ready for StreamDuplex {
    fn readiness(&self) -> Readiness {
        let failed = self.error.is_some();
        let ended = self.phase == DuplexPhase::Over;
        let there = self.reader_bytes + self.incoming_bytes;
        // A program cannot wait for more than the maximum between engine and program.
        let enough = there >= self.wanted || (there > 0 && self.incoming_room() == 0);
        let read_ended = ended || self.peer_closed || self.read_shutdown;
        Readiness {
            readable: failed || (there > 0 && (enough || read_ended)) || self.at_end(),
            writable: failed || self.write_ended() || (self.phase == DuplexPhase::Open && !self.full),
            read_ended,
            over: ended || (self.fin && (self.peer_closed || self.read_shutdown)),
            failed,
            urgent: self.urgent_byte.is_some() && !self.urgent_inline,
            arrivals: self.arrivals,
            reads: self.reads,
        }
    }
}
