//! A host under test: many connections, each with its program, and each call checked against the contract.
//!
//! It takes the place of `Host`, because it has what that lacks: programs that sleep, and access to every
//! connection.

use super::knobs::Program;
use super::paced::FIRST_PORT;
use super::program::Running;
use farpace_events::Cause;
use farpace_lab::Payload;
use farpace_path::{Cx, DropReason, Element, Inspection, Port, PortFrames};
use farpace_tcp::config::Config;
use farpace_tcp::{Connection, ConnectionState, OutgoingSegment, PathError, Ports, Segment, Transmit};
use farpace_units::{Instant, Rate, Seq, Span};
use farpace_wire::tcp::{TcpFlags, TcpHeader};
use farpace_wire::{AddressPair, Below, Departure, Departures, Icmp, MacAddr, Packet, Quoted};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

const SERVER_PORT: u16 = 80;
/// Most segments of one call.
const STORM: usize = 100_000;

/// One connection, alive or ended.
pub struct TestConnection {
    pub connection: Connection,
    pub program: Running,
    /// Right edge of the peer's window, as far as received.
    edge: Option<Seq>,
    shift: u8,
    /// The peer's SYN, which may arrive again.
    syn: Option<Seq>,
    /// Which of its packets have left the NIC.
    departures: Departures,
}

impl TestConnection {
    /// The connection, after it has been told which packets have left by now.
    fn connection(&mut self) -> &mut Connection {
        self.connection.set_departed(self.departures.latest());
        &mut self.connection
    }
}

pub struct TestHost {
    side: usize,
    config: Config,
    budget: usize,
    does: [Program; 2],
    streams: [Payload; 2],
    /// When the client opens its next connection, how many remain, and the time between them.
    next_open: Option<Instant>,
    left: u32,
    opened: u32,
    every: Span,
    /// By number, all attempts to connect: a server may take a closed connection for a new one.
    pub connections: BTreeMap<(u32, u32), TestConnection>,
    /// The present attempt, by number.
    alive: BTreeMap<u32, u32>,
    ident: u16,
    /// Its NIC needs the rates that connections want.
    says_rates: bool,
    frames: PortFrames,
    pub segments: u64,
    /// Resets sent to segments without a connection.
    pub strangers: u64,
}

impl TestHost {
    pub fn new(
        side: usize,
        config: Config,
        budget: usize,
        does: [Program; 2],
        streams: [Payload; 2],
    ) -> Self {
        TestHost {
            side,
            config,
            budget,
            does,
            streams,
            next_open: None,
            left: 0,
            opened: 0,
            every: Span::ZERO,
            connections: BTreeMap::new(),
            alive: BTreeMap::new(),
            ident: 0,
            says_rates: false,
            frames: PortFrames::default(),
            segments: 0,
            strangers: 0,
        }
    }
    /// Opens this number of connections, one after the other.
    pub fn open(mut self, number: u32, every: Span) -> Self {
        (self.next_open, self.left, self.every) = (Some(Instant::ZERO), number, every);
        self
    }

    /// Each packet carries the rate that its connection wants.
    pub fn say_rates(mut self, says: bool) -> Self {
        self.says_rates = says;
        self
    }

    fn ports(&self, number: u32) -> Ports {
        let client = FIRST_PORT + number as u16;
        match self.side {
            0 => Ports { local: client, remote: SERVER_PORT },
            _ => Ports { local: SERVER_PORT, remote: client },
        }
    }

    fn install(&mut self, number: u32, connection: Connection, syn: Option<&Segment>) {
        let attempt = self.connections.range((number, 0)..(number + 1, 0)).count() as u32;
        let program = Running::new(self.does, self.side, number, &self.streams);
        let syn_seq = syn.map(|s| s.header.seq);
        let departures = Departures::default();
        let entry = TestConnection { connection, program, edge: None, shift: 0, syn: syn_seq, departures };
        self.connections.insert((number, attempt), entry);
        self.alive.insert(number, attempt);
        if let Some(syn) = syn {
            self.hear(number, &syn.header);
        }
    }

    /// Tracks the right edge of the peer's window.
    fn hear(&mut self, number: u32, header: &TcpHeader) {
        let ours = self.config.window_scale;
        // A classic request contains the acknowledgment, and the bit instead of the flag.
        let classic = self.config.ack_requests.control.is_classic();
        let bare =
            classic && header.flags.contains(TcpFlags::RESERVED_4) && !header.flags.contains(TcpFlags::RST);
        let Some(entry) = self.live(number) else { return };
        let syn = header.flags.contains(TcpFlags::SYN);
        if syn {
            entry.shift = header.options.window_scale.filter(|_| ours).unwrap_or(0).min(14);
        }
        if header.flags.contains(TcpFlags::ACK) || bare {
            let shift = if syn { 0 } else { entry.shift };
            let edge = header.ack + (u32::from(header.window) << shift);
            entry.edge = Some(entry.edge.map_or(edge, |e| e.later(edge)));
        }
    }

    fn live(&mut self, number: u32) -> Option<&mut TestConnection> {
        let attempt = *self.alive.get(&number)?;
        self.connections.get_mut(&(number, attempt))
    }

    fn below(&self) -> Below {
        let mac = |side: usize| MacAddr([2, 0, 0, 0, 0, side as u8]);
        Below::new(mac(self.side), mac(1 - self.side), self.addresses(), 64)
    }

    fn addresses(&self) -> AddressPair {
        let address = |side: usize| Ipv4Addr::new(10, 0, 0, side as u8 + 1);
        AddressPair::V4(address(self.side), address(1 - self.side))
    }

    fn emit(
        &mut self,
        segment: Segment,
        wanted: Option<Rate>,
        departure: Option<Departure>,
        cx: &mut Cx<'_>,
    ) {
        self.ident = self.ident.wrapping_add(1);
        self.segments += 1;
        cx.made();
        let below = Below { tos: segment.ecn.bits(), ..self.below() };
        let mut packet = below.tcp(self.ident, &segment.header, segment.payload);
        packet.set_departure(departure);
        // The report is about frames, the connection counts payload; the network may report anything in
        // between.
        if let (Some(rate), 1..) = (wanted, packet.payload().len() as u64) {
            let frames = rate.bits_per_sec().saturating_mul(packet.len().get() + 4);
            packet.set_pacing_rate(Some(Rate::from_bits_per_sec(frames / packet.payload().len() as u64)));
        }
        cx.emit(Port(0), packet);
    }

    /// After every call: the program runs, then everything is sent.
    fn service(&mut self, number: u32, cx: &mut Cx<'_>) {
        let (now, budget) = (cx.now(), self.budget);
        let Some(entry) = self.live(number) else { return };
        let mut out: Vec<OutgoingSegment> = Vec::new();
        loop {
            entry.program.act(now, &mut entry.connection);
            let before = out.len();
            let sent = entry.connection().poll_transmit(now, &mut out, budget);
            let new = out.len() - before;
            match sent {
                Transmit::Sent(n) => assert!(n == new && (1..=budget).contains(&n), "{n} of {new}, {budget}"),
                _ => assert_eq!(new, 0),
            }
            assert!(out.len() < STORM, "poll_transmit does not end");
            if new == 0 {
                break;
            }
        }
        for o in &out {
            inspect(o, entry.edge, &entry.connection);
        }
        let wanted = entry.connection.wanted_rate();
        let departures = entry.departures.clone();
        assert_eq!(entry.connection.deadline(), entry.connection.deadline(), "the deadline is pure");
        if entry.connection.state() == ConnectionState::Closed {
            entry.program.act(now, &mut entry.connection);
            assert_eq!(entry.connection.deadline(), None, "a closed connection waits for nothing");
            self.alive.remove(&number);
        }
        for o in out {
            let departure = o.number.map(|number| departures.expect(number));
            self.emit(o.segment, wanted.filter(|_| self.says_rates), departure, cx);
        }
    }

    fn on_segment(&mut self, segment: Segment, cx: &mut Cx<'_>) {
        let h = &segment.header;
        let client = if self.side == 0 { h.dst_port } else { h.src_port };
        let number = u32::from(client.wrapping_sub(FIRST_PORT));
        let flags = h.flags;
        if self.live(number).is_some() {
            self.hear(number, h);
            if let Some(entry) = self.live(number) {
                entry.connection().on_segment(cx.now(), segment);
                debug_assert!(entry.syn.is_none() || entry.edge.is_some() || self.side == 1);
            }
            return self.service(number, cx);
        }
        let opens = flags.contains(TcpFlags::SYN) && !flags.intersects(TcpFlags::ACK.with(TcpFlags::RST));
        if self.side == 1 && opens {
            let iss = Self::iss(cx);
            let c = Connection::accept(cx.now(), &self.config, self.ports(number), iss, &segment);
            self.install(number, c, Some(&segment));
            return self.service(number, cx);
        }
        if !flags.contains(TcpFlags::RST) {
            self.strangers += 1;
            self.emit(reset_for(&segment), None, None, cx);
        }
    }

    /// A hop reports that one of our packets was too big.
    fn on_too_big(&mut self, mtu: u32, quoted: Option<Quoted>, cx: &mut Cx<'_>) {
        let Some(Quoted { ports: Some((src, dst)), seq: Some(seq), .. }) = quoted else { return };
        let number = u32::from((if self.side == 0 { src } else { dst }).wrapping_sub(FIRST_PORT));
        if let Some(entry) = self.live(number) {
            entry.connection.on_path_error(cx.now(), PathError::TooBig { mtu }, seq);
            self.service(number, cx);
        }
    }

    /// Initial sequence numbers: half of them a little before the two places where comparisons wrap around.
    fn iss(cx: &mut Cx<'_>) -> Seq {
        let near = cx.rng().below(200_000) as u32;
        Seq::new(match cx.rng().below(4) {
            0 => near.wrapping_neg(),
            1 => (1u32 << 31).wrapping_sub(near),
            _ => cx.rng().next_u64() as u32,
        })
    }

    /// When this host has something to do next.
    fn next(&self) -> Option<Instant> {
        let entries = self.alive.iter().filter_map(|(number, attempt)| {
            let entry = self.connections.get(&(*number, *attempt))?;
            let timer = entry.connection.deadline().map(|(at, _)| at);
            timer.into_iter().chain(entry.program.wake()).min()
        });
        entries.chain(self.next_open).min()
    }
}

/// The rules for every segment, whatever was received from the peer.
fn inspect(out: &OutgoingSegment, edge: Option<Seq>, connection: &Connection) {
    let Segment { header, payload, .. } = &out.segment;
    // Segments beyond a window that the peer shrank, probes of it, and resets are exempt.
    let bound = !payload.is_empty() && out.cause != Cause::WindowProbe && out.cause != Cause::Reset;
    if bound {
        let end = header.seq + payload.len() as u32;
        assert!(edge.is_some_and(|edge| !end.after(edge)), "{end} is beyond the peer's window {edge:?}");
        // A probe may be larger than the present segment size.
        let max = connection.inspect().largest_mss;
        assert!(payload.len() as u32 <= max, "{} bytes in a segment, at most {max} allowed", payload.len());
    }
    let blocks = header.options.sack.len();
    assert!(blocks <= 4 && reads_back(header), "options that do not read back: {:?}", header.options);
}

/// Written and parsed, it is the same.
fn reads_back(header: &TcpHeader) -> bool {
    let mut bytes = [0; farpace_wire::tcp::MAX_TCP_LEN];
    let len = header.encode(&mut bytes);
    TcpHeader::parse(&bytes[..len]).is_ok_and(|(same, _)| same == *header)
}

/// RFC 9293 §3.10.7.1
fn reset_for(segment: &Segment) -> Segment {
    let h = &segment.header;
    let (seq, ack, flags) = if h.flags.contains(TcpFlags::ACK) {
        (h.ack, Seq::default(), TcpFlags::RST)
    } else {
        (Seq::default(), h.seq + segment.sequence_length(), TcpFlags::RST | TcpFlags::ACK)
    };
    let (src_port, dst_port) = (h.dst_port, h.src_port);
    let header = TcpHeader { src_port, dst_port, seq, ack, flags, ..TcpHeader::default() };
    Segment { header, ..Segment::default() }
}

impl Element for TestHost {
    fn on_packet(&mut self, _: Port, packet: Packet, cx: &mut Cx<'_>) {
        let Some(packet) = self.frames.take(packet, cx) else { return };
        if packet.verify_checksums().is_err() {
            return cx.drop(packet, DropReason::BadChecksum);
        }
        if let Ok(Icmp::TooBig { mtu, quoted }) = packet.icmp() {
            let quoted = Quoted::parse(quoted).ok();
            cx.consume(packet);
            return self.on_too_big(mtu, quoted, cx);
        }
        let Ok((ip, tcp)) = packet.ip_tcp() else { return cx.drop(packet, DropReason::Malformed) };
        // A flipped bit is always found in bytes that a checksum covers.
        assert_eq!(ip.addresses(), self.addresses().reversed());
        let (header, ecn) = (tcp.header(), ip.ecn());
        let payload = cx.take(packet);
        self.on_segment(Segment { header, payload, ecn, ..Segment::default() }, cx);
    }

    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now();
        while self.next_open.is_some_and(|at| at <= now) {
            let number = self.opened;
            let iss = Self::iss(cx);
            let c = Connection::connect(now, &self.config, self.ports(number), iss);
            self.install(number, c, None);
            self.opened += 1;
            self.left -= 1;
            self.next_open = (self.left > 0).then_some(now + self.every);
            self.service(number, cx);
        }
        let numbers: Vec<u32> = self.alive.keys().copied().collect();
        for number in numbers {
            let Some(entry) = self.live(number) else { continue };
            let timer = entry.connection.deadline().is_some_and(|(at, _)| at <= now);
            if timer {
                entry.connection().on_deadline(now);
            }
            if timer || entry.program.wake().is_some_and(|at| at <= now) {
                self.service(number, cx);
            }
            let Some(entry) = self.live(number) else { continue };
            let next = entry.connection.deadline();
            let state = entry.connection.state();
            assert!(next.is_none_or(|(at, _)| at > now), "deadline law: {next:?} at {now:?} in {state:?}");
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.next()
    }
    fn held(&self) -> u64 {
        0
    }
    fn inspect(&self) -> Inspection {
        vec![("connections", self.connections.len().to_string())]
    }
}
