//! The two directions of one stream, as its program and its station both see them.

use super::shared::{Readiness, Ready};
use bytes::{Bytes, BytesMut};
use farpace_host::{ConnectionId, Ends};
use farpace_tcp::config::Config;
use farpace_units::Rate;
use nix::errno::Errno;
use std::collections::VecDeque;

/// Bytes of each direction that lie between the program and the engine at most, besides the engine's own buffers.
pub(super) const BETWEEN: usize = 512 << 10;
/// Shorter writes are gathered into pieces.
pub(super) const SMALL_WRITE: usize = 8 << 10;
/// The first piece that is gathered, in bytes; each further one that is filled before the engine has come for it is twice as
/// long, up to [`LONGEST_PIECE`]. So a program that says little needs little memory.
const FIRST_PIECE: usize = 1 << 10;
const LONGEST_PIECE: usize = 64 << 10;

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
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

/// What lies between a program and the engine, and what each has told the other.
pub(super) struct Duplex {
    pub phase: Phase,
    pub id: Option<ConnectionId>,
    pub ends: Option<Ends>,
    // To the program
    pub incoming: VecDeque<Bytes>,
    pub incoming_bytes: usize,
    incoming_limit: usize,
    /// The reading thread has bytes of its own that it has not handed out.
    pub reader_holds: bool,
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
            phase: Phase::Opening,
            id: None,
            ends: None,
            incoming: VecDeque::new(),
            incoming_bytes: 0,
            incoming_limit: config.receive_buffer.as_len().min(BETWEEN),
            reader_holds: false,
            more: false,
            peer_closed: false,
            deaf: false,
            outgoing: VecDeque::new(),
            tail: BytesMut::new(),
            gather: FIRST_PIECE,
            outgoing_bytes: 0,
            outgoing_limit: config.send_buffer.as_len().clamp(1, BETWEEN),
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
        let empty = self.incoming.is_empty() && !self.reader_holds;
        empty && (self.deaf || self.phase == Phase::Over || (self.peer_closed && !self.more))
    }
    /// Nothing can be written any more.
    pub fn write_ended(&self) -> bool {
        self.fin || self.phase == Phase::Over
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
        self.outgoing.push_back(piece);
    }
    /// The program writes a few bytes; they are counted already.
    pub fn append(&mut self, bytes: &[u8]) {
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
    /// It is over; `error` tells the program why, unless everything went well.
    pub fn end(&mut self, error: Option<Errno>) {
        if self.phase != Phase::Over {
            self.phase = Phase::Over;
            self.error = error.or(self.error);
            self.more = false;
            self.flushed = error.is_none() && self.outgoing.is_empty() && self.tail.is_empty();
            self.outgoing.clear();
            self.tail = BytesMut::new();
            self.outgoing_bytes = 0;
            self.full = false;
        }
    }
}

impl Ready for Duplex {
    fn readiness(&self) -> Readiness {
        let failed = self.error.is_some();
        let ended = self.phase == Phase::Over;
        Readiness {
            readable: failed || self.reader_holds || !self.incoming.is_empty() || self.at_end(),
            writable: failed || self.write_ended() || (self.phase == Phase::Open && !self.full),
            read_ended: ended || self.peer_closed || self.deaf,
            over: ended || (self.fin && (self.peer_closed || self.deaf)),
            failed,
        }
    }
}
