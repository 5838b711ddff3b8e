//! The two directions of one stream, as its program and its station both see them.

use super::shared::{Readiness, Ready};
use bytes::{Bytes, BytesMut};
use farpace_host::{ConnectionId, SocketEnds};
use farpace_tcp::config::Config;
use farpace_units::Rate;
use nix::errno::Errno;
use std::collections::VecDeque;

/// Bytes of each direction that lie between the program and the engine at most, besides the engine's own buffers.
pub(super) const BETWEEN: usize = 512 << 10;
/// More than [`BETWEEN`] lies there for a program that wants it at once (SO_RCVLOWAT), at most so much.
const MAX_WANTED: usize = 16 << 20;
/// Shorter writes are gathered into pieces.
pub(super) const SMALL_WRITE: usize = 8 << 10;
/// The first piece that is gathered, in bytes; each further one that is filled before the engine has come for it is twice as
/// long, up to [`LONGEST_PIECE`]. So a program that says little needs little memory.
const FIRST_PIECE: usize = 1 << 10;
const LONGEST_PIECE: usize = 64 << 10;

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DuplexPhase {
    Opening,
    Open,
    Over,
}

/// How its program has left it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Farewell {
    /// What was written is sent, then a FIN.
    Close,
    /// A reset, now.
    Abort,
}

/// How a write is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Manner {
    /// More will follow (MSG_MORE).
    pub more: bool,
    /// The last byte is urgent (MSG_OOB).
    pub urgent: bool,
}

/// What lies between a program and the engine, and what each has told the other.
pub(super) struct Duplex {
    pub phase: DuplexPhase,
    /// It was open once.
    pub was_open: bool,
    pub id: Option<ConnectionId>,
    pub ends: Option<SocketEnds>,
    // To the program
    pub incoming: VecDeque<Bytes>,
    pub incoming_bytes: usize,
    incoming_limit: usize,
    /// Bytes that the reading thread has fetched and not handed out.
    pub reader_bytes: usize,
    /// Bytes that came so far, and how often some came.
    pub came: u64,
    pub arrivals: u64,
    pub reads: u64,
    /// The engine wants to know what the program has read.
    pub wants_reads: bool,
    /// A program that waits wants at least so many bytes (SO_RCVLOWAT).
    pub wanted: usize,
    /// Place of the peer's urgent byte in the stream, the byte until it is read, and whether it was.
    pub urgent_mark: Option<u64>,
    pub urgent_byte: Option<u8>,
    pub urgent_read: bool,
    /// The urgent byte stands in line with the others (SO_OOBINLINE).
    pub urgent_inline: bool,
    /// The engine has more.
    pub more: bool,
    /// The peer's FIN has come.
    pub peer_closed: bool,
    /// The program reads no more.
    pub deaf: bool,
    // From the program
    outgoing: VecDeque<Bytes>,
    tail: BytesMut,
    /// Bytes of the next piece that is gathered.
    gather: usize,
    pub outgoing_bytes: usize,
    outgoing_limit: usize,
    /// Bytes written so far, and up to which of them they are urgent.
    written: u64,
    urgent_until: Option<u64>,
    /// The last write said whether more will come.
    pub more_coming: Option<bool>,
    /// The program found no room. There is some again when half of it is free.
    full: bool,
    /// The engine has no room: it says when it has.
    pub stuck: bool,
    /// The program writes no more.
    pub fin: bool,
    pub fin_sent: bool,
    /// The peer has everything.
    pub flushed: bool,
    // Of both
    pub farewell: Option<Farewell>,
    /// The station knows that there is something to do.
    pub kicked: bool,
    pub rate_cap: Option<Rate>,
    /// To be told to the program once.
    pub error: Option<Errno>,
}

impl Duplex {
    pub fn new(config: &Config) -> Self {
        Duplex {
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
            deaf: false,
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
            farewell: None,
            kicked: false,
            rate_cap: None,
            error: None,
        }
    }

    /// Everything that came was handed out, or will never be.
    pub fn at_end(&self) -> bool {
        let empty = self.incoming.is_empty() && self.reader_bytes == 0;
        empty && (self.deaf || self.phase == DuplexPhase::Over || (self.peer_closed && !self.more))
    }
    /// Bytes that the program has read.
    pub fn read(&self) -> u64 {
        self.came.saturating_sub((self.incoming_bytes + self.reader_bytes) as u64)
    }
    /// Nothing can be written any more.
    pub fn write_ended(&self) -> bool {
        self.fin || self.phase == DuplexPhase::Over
    }
    /// Bytes that may come from the engine now.
    pub fn incoming_room(&self) -> usize {
        self.incoming_limit.saturating_sub(self.incoming_bytes)
    }
    /// Bytes that the program may write now; if there are none, it is told when there are.
    pub fn outgoing_room(&mut self) -> usize {
        let room = self.outgoing_limit.saturating_sub(self.outgoing_bytes);
        self.full |= room == 0;
        room
    }
    /// The program writes a piece; its bytes are counted already.
    pub fn push(&mut self, piece: Bytes) {
        self.seal();
        self.written += piece.len() as u64;
        self.outgoing.push_back(piece);
    }
    /// The program writes a few bytes; they are counted already.
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
    /// Gives what was written to `take`, which leaves what it does not want. True: nothing is left.
    pub fn drain(&mut self, mut take: impl FnMut(&mut Bytes)) -> bool {
        self.seal();
        // What is left of it would keep the memory of all of it.
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
    /// All that was written and not taken.
    pub fn take_outgoing(&mut self) -> VecDeque<Bytes> {
        self.seal();
        (self.tail, self.gather, self.outgoing_bytes) = (BytesMut::new(), FIRST_PIECE, 0);
        self.full = false;
        std::mem::take(&mut self.outgoing)
    }
    /// How the last write was meant.
    pub fn note_manner(&mut self, manner: Manner) {
        // What was written before and is on its way must not wait for what follows this.
        let under_way = self.kicked && self.more_coming != Some(true);
        self.more_coming = Some(manner.more && !under_way);
        if manner.urgent {
            self.urgent_until = Some(self.written);
        }
    }
    /// Bytes that were written after the urgent ones, if all of these have been taken; once.
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
    /// A program that waits wants so many bytes.
    pub fn want(&mut self, bytes: usize) {
        self.wanted = bytes.max(1);
        self.incoming_limit = self.incoming_limit.max(bytes.min(MAX_WANTED));
    }
    /// Something has come to be read.
    pub fn note_arrival(&mut self, bytes: usize) {
        if bytes > 0 {
            self.came += bytes as u64;
            self.arrivals += 1;
        }
        // The urgent byte is kept for whoever asks for it.
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

impl Ready for Duplex {
    fn readiness(&self) -> Readiness {
        let failed = self.error.is_some();
        let ended = self.phase == DuplexPhase::Over;
        let there = self.reader_bytes + self.incoming_bytes;
        // No more than lies between the engine and the program can be waited for.
        let enough = there >= self.wanted || (there > 0 && self.incoming_room() == 0);
        let read_ended = ended || self.peer_closed || self.deaf;
        Readiness {
            readable: failed || (there > 0 && (enough || read_ended)) || self.at_end(),
            writable: failed || self.write_ended() || (self.phase == DuplexPhase::Open && !self.full),
            read_ended,
            over: ended || (self.fin && (self.peer_closed || self.deaf)),
            failed,
            urgent: self.urgent_byte.is_some() && !self.urgent_inline,
            arrivals: self.arrivals,
            reads: self.reads,
        }
    }
}
