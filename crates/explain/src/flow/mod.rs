//! Connections of a capture, each followed in both directions.

mod acks;
mod duplicates;
mod half;
mod identification;
mod loss;
mod outstanding;
mod owd;
mod refills;
mod round_trips;
mod segment_size;
mod stall;
mod table;
mod timeline;

pub use acks::{AT_SENDER, MAX_ACKS, MAX_ECHOES};
pub use half::{AfterTimeout, Counts, Half, Trips};
pub use loss::{FlowLoss, Losses, MAX_LOSSES, MAX_PASSES, Pass, Passes, Trigger};
pub use outstanding::{MAX_OUTSTANDING, MAX_WORK, WORK_PER_SEGMENT};
pub use stall::{MAX_STALLS, Stall, Stalls};
pub use table::{FlowTable, MAX_FLOWS, MAX_MEMORY};
pub use timeline::{MAX_SLICES, Slice, Stat, Timeline, Wait};

use crate::bucket::Policing;
use crate::frame::{CapturedSegment, Flags};
use duplicates::{Copied, Copies};
use farpace_units::{Instant, Span};
use half::PeerState;
use std::net::SocketAddr;

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The end that sent the SYN; without one, the end that was seen first.
    Client,
    /// The other.
    Server,
}

impl Side {
    /// The other end.
    #[must_use]
    pub const fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Side::Client => "client",
            Side::Server => "server",
        }
    }
}

/// What an end said in its SYN.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hello {
    /// When, first, and in which frame.
    pub first: Option<(Instant, u64)>,
    /// The last of several.
    pub last: Option<(Instant, u64)>,
    /// SYNs seen.
    pub count: u32,
    /// The maximum segment size.
    pub mss: Option<u16>,
    /// The window scale.
    pub scale: Option<u8>,
    /// SACK permitted.
    pub sack: bool,
    /// Timestamps.
    pub timestamps: bool,
    /// The unscaled window.
    pub window: u32,
    /// ECN was offered or accepted.
    pub ecn: bool,
    /// Options may be missing, because the snap length cut them.
    pub cut: bool,
}

/// A reset.
#[derive(Clone, Copy, Debug)]
pub struct Reset {
    /// When.
    pub time: Instant,
    /// Its frame.
    pub frame: u64,
    /// From which end it says it comes.
    pub from: Side,
    /// Its time to live differs from that of the end's other segments by so much.
    pub ttl_differs: u8,
    /// It is larger: it was sent nearer than that end is.
    pub is_nearer: bool,
    /// Data was outstanding, or the connection was not yet closed by both ends.
    pub in_use: bool,
    /// It answers a SYN: nobody listens.
    pub refused: bool,
}

/// A message of a router that packets are too big.
#[derive(Clone, Copy, Debug)]
pub struct TooBig {
    /// When.
    pub time: Instant,
    /// Its frame.
    pub frame: u64,
    /// What the next hop takes.
    pub mtu: u32,
}

/// A connection.
#[derive(Debug)]
pub struct Flow {
    /// Addresses: the client's, the server's.
    pub ends: [SocketAddr; 2],
    /// First packet.
    pub start: Instant,
    /// Its frame.
    pub first_frame: u64,
    /// Last packet.
    pub end: Instant,
    /// Its frame.
    pub last_frame: u64,
    /// Packets of both directions.
    pub packets: u64,
    /// What the ends said in their SYNs.
    pub hello: [Hello; 2],
    /// The third segment of the handshake, or the first data.
    pub established: Option<(Instant, u64)>,
    /// Data of each end.
    pub halves: [Half; 2],
    /// Resets, the first few.
    pub resets: Vec<Reset>,
    /// ICMP: packet too big.
    pub too_big: Vec<TooBig>,
    /// Packets that were captured twice at two places, and at one.
    pub copies: [u64; 2],
    /// Frame of the first copy.
    pub first_copy: Option<u64>,
    /// The capture has two points, and what passed the one nearest to this end was followed.
    pub nearest: Option<Side>,
    /// Many times of the capture are wrong or out of order.
    pub is_misdated: bool,
    /// It was followed until here only, because there was no memory for more ([`MAX_MEMORY`]).
    pub stopped: Option<Instant>,
    /// Its memory as the table has counted it.
    counted: usize,
    duplicates: Copies,
    ttl: [Option<u8>; 2],
    syn_seen: bool,
    spoke: [Option<Instant>; 2],
    /// The policers that it shares with other connections of the capture, by the end that sends.
    shared_policing: [Option<Policing>; 2],
    /// Segments with data that are not ECN-capable although ECN was agreed, by end.
    pub not_capable: [u64; 2],
    /// Segments of which the snap length cut options, by end.
    pub cut_options: [u64; 2],
    /// Segments without timestamps after the handshake agreed on them, by end.
    pub without_timestamps: [u64; 2],
}

/// Resets and ICMP messages of one connection that are kept.
const MAX_NOTES: usize = 16;
/// After so long without data, with all of it acknowledged, a reset ends no transfer.
const IDLE: Span = Span::from_secs(1);

fn index(side: Side) -> usize {
    match side {
        Side::Client => 0,
        Side::Server => 1,
    }
}

impl Flow {
    /// The policer that what an end sends shares with other connections of the capture.
    pub fn shared_policing(&self, side: Side) -> Option<&Policing> {
        self.shared_policing[index(side)].as_ref()
    }

    pub(crate) fn shared_policing_mut(&mut self, side: Side) -> &mut Option<Policing> {
        &mut self.shared_policing[index(side)]
    }

    fn new(segment: &CapturedSegment) -> Self {
        let (src, dst) =
            (SocketAddr::new(segment.src, segment.src_port), SocketAddr::new(segment.dst, segment.dst_port));
        // A SYN with ACK comes from the server.
        let from_server = segment.flags.has(Flags::SYN | Flags::ACK);
        Flow {
            ends: if from_server { [dst, src] } else { [src, dst] },
            start: segment.time,
            first_frame: segment.frame,
            end: segment.time,
            last_frame: segment.frame,
            packets: 0,
            hello: [Hello::default(); 2],
            established: None,
            halves: [Half::default(), Half::default()],
            resets: Vec::new(),
            too_big: Vec::new(),
            copies: [0; 2],
            first_copy: None,
            nearest: None,
            is_misdated: false,
            stopped: None,
            counted: 0,
            duplicates: Copies::default(),
            ttl: [None; 2],
            syn_seen: false,
            shared_policing: [None, None],
            spoke: [None; 2],
            not_capable: [0; 2],
            cut_options: [0; 2],
            without_timestamps: [0; 2],
        }
    }

    /// Its memory, in bytes.
    pub fn memory(&self) -> usize {
        let [client, server] = &self.halves;
        size_of::<Flow>() + client.memory() + server.memory() + self.duplicates.memory()
    }

    /// No further segment is taken, and what only they would need goes.
    fn stop(&mut self) {
        self.stopped = Some(self.end);
        self.halves.iter_mut().for_each(Half::stop);
        self.duplicates = Copies::default();
    }

    /// The direction in which `side` sends.
    pub fn half(&self, side: Side) -> &Half {
        &self.halves[index(side)]
    }

    /// What `side` said in its SYN.
    pub fn said(&self, side: Side) -> &Hello {
        &self.hello[index(side)]
    }

    /// The end with this address.
    pub fn address(&self, side: Side) -> SocketAddr {
        self.ends[index(side)]
    }

    /// The end that sent most data.
    pub fn sender(&self) -> Side {
        let [client, server] = &self.halves;
        if server.counts.bytes > client.counts.bytes { Side::Server } else { Side::Client }
    }

    /// Both ends have closed, or one has reset.
    pub fn is_closed(&self) -> bool {
        !self.resets.is_empty() || self.halves.iter().all(|h| h.fin.is_some())
    }

    /// The reset that answered a SYN: nobody listens.
    pub fn refusal(&self) -> Option<&Reset> {
        let nothing = self.halves.iter().all(|half| half.first_data.is_none());
        self.resets.iter().find(|reset| reset.refused && reset.from == Side::Server && nothing)
    }

    /// The handshake was captured.
    pub fn saw_syn(&self) -> bool {
        self.hello.iter().any(|h| h.first.is_some())
    }

    /// The snap length cut options off: SACK blocks of ACKs, or more.
    pub fn lacks_options(&self) -> bool {
        self.hello.iter().any(|hello| hello.cut) || self.cut_options.iter().any(|n| *n > 0)
    }

    /// A new SYN that cannot belong to this connection: the ports are used again.
    fn is_another(&self, segment: &CapturedSegment, side: Side) -> bool {
        if !segment.flags.has(Flags::SYN) || segment.flags.has(Flags::ACK) {
            return false;
        }
        let hello = self.said(side);
        let quiet = segment.time.since(self.end) > Span::from_secs(60);
        let same = self.halves[index(side)].starts_at(segment.seq.wrapping_add(1));
        !same && (self.is_closed() || quiet || (hello.count > 0 && self.established.is_some()))
    }

    fn side_of(&self, segment: &CapturedSegment) -> Side {
        let client = self.ends[0];
        if client.port() == segment.src_port && client.ip() == segment.src {
            Side::Client
        } else {
            Side::Server
        }
    }

    /// Takes the next segment.
    pub(crate) fn take(&mut self, segment: &CapturedSegment) {
        let side = self.side_of(segment);
        let (own, other) = (index(side), index(side.other()));
        self.packets += 1;
        self.end = self.end.max(segment.time);
        self.last_frame = segment.frame;
        let tolerance = self.halves[own].base_rtt().map_or(Span::from_micros(500), |rtt| rtt / 4);
        let copied = self.duplicates.see(segment, side, tolerance, self.syn_seen);
        if copied != Copied::No {
            self.copies = [self.duplicates.elsewhere, self.duplicates.here];
            self.nearest = self.duplicates.nearest();
            self.first_copy.get_or_insert(segment.frame);
            let answer = Flags::SYN | Flags::ACK;
            let again = copied == Copied::Instead && segment.flags.has(answer) && side == Side::Server;
            if !again || self.halves[own].counts.data_segments > 0 {
                return;
            }
            // At the point that is followed the handshake's answer passes now.
            (self.hello[own], self.halves[own]) = (Hello::default(), Half::default());
        }
        if segment.flags.has(Flags::RST) {
            self.reset(segment, side);
            return;
        }
        self.ttl[own].get_or_insert(segment.ttl);
        if segment.flags.has(Flags::SYN) {
            self.syn(segment, side);
        } else {
            self.settle(segment, side);
        }
        let has_data = segment.len > 0;
        self.halves[other].acked(segment, has_data);
        if has_data {
            self.spoke[own] = Some(segment.time);
        }
        let peer = PeerState { spoke: self.spoke[other] };
        self.halves[own].sent(segment, &peer);
    }

    fn syn(&mut self, segment: &CapturedSegment, side: Side) {
        self.syn_seen = true;
        let options = &segment.options;
        let hello = &mut self.hello[index(side)];
        hello.count += 1;
        let at = (segment.time, segment.frame);
        hello.first.get_or_insert(at);
        hello.last = Some(at);
        hello.mss = options.mss;
        hello.scale = options.window_scale;
        hello.sack = options.sack_permitted;
        hello.timestamps = options.timestamps.is_some();
        hello.window = segment.window;
        hello.cut = options.cut;
        let answer = segment.flags.has(Flags::ACK);
        hello.ecn = if answer {
            segment.flags.has(Flags::ECE) && !segment.flags.has(128)
        } else {
            segment.flags.has(Flags::ECE | 128)
        };
        if hello.count == 1 {
            self.halves[index(side)].syn(segment);
        }
        if let (true, Some((asked, _))) = (answer, self.hello[0].last) {
            // From the capture point to the server and back.
            let there = segment.time.since(asked);
            if self.hello[0].count == 1 && self.hello[1].count == 1 {
                self.halves[0].set_far(there);
                self.halves[1].set_near(there);
            }
        }
        let [client, server] = self.hello;
        if client.first.is_some() && server.first.is_some() {
            // Scaling holds only if both ends offer it (RFC 7323 §2.2).
            if !client.cut && !server.cut {
                let scales = client.scale.zip(server.scale).unwrap_or_default();
                self.halves[0].set_scale(scales.1);
                self.halves[1].set_scale(scales.0);
            }
            let options = if client.timestamps && server.timestamps { 12 } else { 0 };
            let mss = client.mss.unwrap_or(536).min(server.mss.unwrap_or(536));
            // What the snap length cut was not refused: lengths tell then.
            if [client, server].iter().all(|hello| !hello.cut || hello.mss.is_some() && hello.timestamps) {
                for half in &mut self.halves {
                    half.agree_on(u32::from(mss).saturating_sub(options).max(64));
                }
            }
        }
    }

    /// The first segment after the SYNs, and what holds for all later ones.
    fn settle(&mut self, segment: &CapturedSegment, side: Side) {
        let [client, server] = &self.hello;
        if self.established.is_none() && (side == Side::Client || segment.len > 0) {
            self.established = Some((segment.time, segment.frame));
            if let (Some((answered, _)), 1, 1, Side::Client) = (server.last, client.count, server.count, side)
            {
                let there = segment.time.since(answered);
                self.halves[0].set_near(there);
                self.halves[1].set_far(there);
            }
        }
        self.cut_options[index(side)] += u64::from(segment.options.cut);
        if client.timestamps
            && server.timestamps
            && !segment.options.cut
            && segment.options.timestamps.is_none()
        {
            self.without_timestamps[index(side)] += 1;
        }
        if client.ecn && server.ecn && segment.len > 0 && segment.ecn == 0 {
            self.not_capable[index(side)] += 1;
        }
    }

    fn reset(&mut self, segment: &CapturedSegment, side: Side) {
        if self.resets.len() >= MAX_NOTES {
            return;
        }
        let closed = self.halves.iter().all(|h| h.fin.is_some());
        let outstanding = self.halves.iter().any(|h| h.outstanding() > 1);
        let usual = self.ttl[index(side)];
        let is_nearer = usual.is_some_and(|ttl| segment.ttl > ttl);
        // Many programs close that way once they have what they want.
        let last = self.halves.iter().filter_map(|h| h.last_ack.max(h.last_data)).map(|(time, _)| time).max();
        let idle = last.is_some_and(|last| segment.time.since(last) > IDLE);
        self.resets.push(Reset {
            time: segment.time,
            frame: segment.frame,
            from: side,
            ttl_differs: usual.map_or(0, |ttl| ttl.abs_diff(segment.ttl)),
            is_nearer,
            in_use: !closed
                && (outstanding || is_nearer || !idle && self.halves.iter().all(|h| h.fin.is_none())),
            refused: self.established.is_none(),
        });
    }

    pub(crate) fn icmp(&mut self, note: TooBig) {
        if self.too_big.len() < MAX_NOTES {
            self.too_big.push(note);
        }
    }

    pub(crate) fn finish(&mut self) {
        for half in &mut self.halves {
            half.finish();
        }
    }
}
