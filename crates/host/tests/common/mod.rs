//! One host on a bench: packets in, packets out, by hand.

#![allow(dead_code, reason = "each test program uses its part")]

use bytes::Bytes;
use farpace_host::{Application, Host, Secret};
use farpace_path::{Cx, DropReason, Effects, Element, Port};
use farpace_tcp::config::{Config, Settings};
use farpace_tcp::{CloseReason, Connection, ConnectionEvent};
use farpace_units::{Instant, RandomStream, Seq};
use farpace_wire::tcp::{TcpFlags, TcpHeader};
use farpace_wire::{AddressPair, Below, MacAddr, Packet};
use std::net::{IpAddr, Ipv4Addr};

/// Who calls.
pub const A: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
/// Who is called.
pub const B: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

/// The default configuration.
pub fn config() -> Config {
    Settings::default().resolve().unwrap()
}

/// Sends a text on connecting and closes; keeps what it reads.
#[derive(Default)]
pub struct Talker {
    pub say: &'static [u8],
    /// Closes when the text is said; if not, when the peer does.
    pub stays: bool,
    pub heard: Vec<u8>,
    pub ended: Option<CloseReason>,
}

impl Talker {
    pub fn boxed(say: &'static [u8]) -> Box<dyn Application> {
        Box::new(Talker { say, ..Talker::default() })
    }
    pub fn that_stays() -> Box<dyn Application> {
        Box::new(Talker { stays: true, ..Talker::default() })
    }
}

impl Application for Talker {
    fn on_event(&mut self, _: Instant, connection: &mut Connection, event: ConnectionEvent) {
        match event {
            ConnectionEvent::Connected => {
                connection.write(&mut Bytes::from_static(self.say));
                if !self.stays {
                    connection.close();
                }
            }
            ConnectionEvent::Readable => _ = connection.read(|b| self.heard.extend_from_slice(&b)),
            ConnectionEvent::PeerClosed => connection.close(),
            ConnectionEvent::Closed(reason) => self.ended = Some(reason),
            _ => {}
        }
    }
}

/// Calls a host and collects what it does.
pub struct Bench {
    pub host: Host,
    pub now: Instant,
    rng: RandomStream,
    effects: Effects,
}

impl Bench {
    pub fn new(address: IpAddr) -> Self {
        let secret = Secret::from_stream(&mut RandomStream::new(1, &address.to_string()));
        Bench {
            host: Host::new(address, secret),
            now: Instant::ZERO,
            rng: RandomStream::new(1, &address.to_string()),
            effects: Effects::default(),
        }
    }
    /// A packet comes in.
    pub fn packet(&mut self, packet: Packet) {
        self.host.on_packet(Port(0), packet, &mut Cx::new(self.now, &mut self.effects, &mut self.rng));
    }
    /// The deadline has come, whether it has or not.
    pub fn wake(&mut self) {
        self.host.on_wake(&mut Cx::new(self.now, &mut self.effects, &mut self.rng));
    }
    /// Time passes; the host is woken as often as it wants.
    pub fn run_until(&mut self, end: Instant) {
        while let Some(at) = self.host.deadline().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.wake();
            assert!(self.host.deadline().is_none_or(|next| next > self.now), "the deadline law");
        }
        self.now = end;
    }
    /// Everything it has sent since the last question.
    pub fn sent(&mut self) -> Vec<Packet> {
        self.effects.emitted.drain(..).map(|(_, p)| p).collect()
    }
    /// Of what it has sent, the TCP headers.
    pub fn headers(&mut self) -> Vec<TcpHeader> {
        self.sent().iter().map(|p| p.tcp().unwrap().header()).collect()
    }
    /// The only segment it has sent.
    pub fn header(&mut self) -> TcpHeader {
        let mut headers = self.headers();
        assert_eq!(headers.len(), 1, "{headers:?}");
        headers.remove(0)
    }
    /// Why it has dropped packets.
    pub fn drops(&mut self) -> Vec<DropReason> {
        self.effects.dropped.drain(..).map(|(_, r)| r).collect()
    }
    /// What it has sent and nobody has taken.
    pub fn look(&self) -> impl Iterator<Item = &Packet> {
        self.effects.emitted.iter().map(|(_, p)| p)
    }
    /// Packets that left or ended here so far, and packets that were made here; of what nobody has taken.
    pub fn account(&self) -> (u64, u64) {
        let Effects { emitted, dropped, consumed, made } = &self.effects;
        (emitted.len() as u64 + dropped.len() as u64 + consumed, *made)
    }
    /// `Cx` for the calls that want one.
    pub fn with<R>(&mut self, work: impl FnOnce(&mut Host, &mut Cx<'_>) -> R) -> R {
        work(&mut self.host, &mut Cx::new(self.now, &mut self.effects, &mut self.rng))
    }
}

/// Carries packets between two hosts without delay until both are silent.
pub fn settle(a: &mut Bench, b: &mut Bench) {
    for _ in 0..1_000 {
        let (from_a, from_b) = (a.sent(), b.sent());
        if from_a.is_empty() && from_b.is_empty() {
            return;
        }
        from_a.into_iter().for_each(|p| b.packet(p));
        from_b.into_iter().for_each(|p| a.packet(p));
    }
    panic!("the two never stop talking");
}

/// A segment between any two.
pub fn between(src: IpAddr, dst: IpAddr, header: &TcpHeader, payload: &'static [u8]) -> Packet {
    let pair = AddressPair::new(src, dst).unwrap();
    Below::new(MacAddr([2; 6]), MacAddr([4; 6]), pair, 9).tcp(1, header, Bytes::from_static(payload))
}

/// A segment from [`A`] to [`B`].
pub fn segment(flags: TcpFlags, src_port: u16, dst_port: u16) -> Packet {
    segment_at(100, Seq::new(700), flags, src_port, dst_port)
}

/// The same, with numbers.
pub fn segment_at(seq: u32, ack: Seq, flags: TcpFlags, src_port: u16, dst_port: u16) -> Packet {
    let window = 65_535;
    let header =
        TcpHeader { src_port, dst_port, seq: Seq::new(seq), ack, flags, window, ..TcpHeader::default() };
    between(A, B, &header, b"")
}
