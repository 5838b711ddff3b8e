//! Packets of many connections that leave by several NICs.

use bytes::Bytes;
use farpace_link::multi_nic::{MultiNic, MultiNicConfig, NicSpec, OrderKind};
use farpace_path::{Cx, Effects, Element, Port, QueueLimit};
use farpace_units::{Instant, Packets, RandomStream, Rate};
use farpace_wire::tcp::{TcpFlags, TcpHeader};
use farpace_wire::{AddressPair, Arp, Below, EtherType, Extension, MacAddr, NicFlags, NicKind, Packet};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// NICs of different rates under one stack, whose queue always holds the same number of packets.
pub struct NicsLoad {
    layer: MultiNic,
    effects: Effects,
    rng: RandomStream,
    now: Instant,
    /// Packets of all connections in turn, those that have left at the end.
    waiting: VecDeque<Packet>,
}

/// Packets that wait at all times.
const WAIT: u64 = 1_000;
const TO: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
/// What the neighbour's first NIC has for an address.
const NEIGHBOUR: MacAddr = MacAddr([2, 0, 0, 0, 1, 0]);

impl NicsLoad {
    /// So many NICs, of 10 Gbit/s, 2.5 Gbit/s, 1 Gbit/s and 100 Mbit/s in turn, with one full packet of each
    /// of so many connections; `repairs`: copies are kept of what leaves.
    pub fn new(order: OrderKind, nics: usize, connections: u32, repairs: bool) -> Self {
        let rates = [10_000, 2_500, 1_000, 100].map(Rate::from_mbit);
        let mac = |machine: u8, i: usize| MacAddr([2, 0, 0, 0, machine, i as u8]);
        let rate = |i: usize| rates[i % rates.len()];
        let nics: Vec<NicSpec> = (0..nics)
            .map(|i| NicSpec { mac: mac(0, i), rate: rate(i), kind: NicKind::of_rate(rate(i)) })
            .collect();
        let config = MultiNicConfig {
            order,
            queue: Some(QueueLimit::Packets(Packets::new(100_000))),
            // The neighbour answers no probes, so none are sent.
            probe: repairs,
            ..MultiNicConfig::default()
        };
        let theirs: Vec<_> = nics.iter().enumerate().map(|(i, nic)| (mac(1, i), nic.kind)).collect();
        let mut load = NicsLoad {
            layer: MultiNic::new(Instant::ZERO, &config, &nics, &[], RandomStream::new(1, "lists")),
            effects: Effects::default(),
            rng: RandomStream::new(1, "NICs"),
            now: Instant::ZERO,
            waiting: (0..connections).map(packet).collect(),
        };
        load.introduce(mac(0, 0), &theirs);
        load
    }

    /// Our stack asks for the neighbour, and it answers with its list.
    fn introduce(&mut self, ours: MacAddr, theirs: &[(MacAddr, NicKind)]) {
        let question = Arp::request(ours, Ipv4Addr::new(10, 0, 0, 1), TO);
        let list = Extension::new(TO.into(), theirs, NicFlags::default(), 1);
        let answer = question.reply(NEIGHBOUR).encode_with(&list);
        let answer = Packet::from_link(NEIGHBOUR, ours, EtherType::ARP, answer.into());
        for (port, packet) in [(Port(0), question.packet(MacAddr::BROADCAST)), (Port(1), answer)] {
            self.layer.on_packet(port, packet, &mut Cx::new(self.now, &mut self.effects, &mut self.rng));
        }
        self.effects.emitted.clear();
    }

    /// A NIC falls idle and is given a frame; then packets come until as many wait as before. Returns how
    /// many left.
    pub fn step(&mut self) -> usize {
        if let Some(at) = self.layer.deadline() {
            self.now = at;
            self.layer.on_wake(&mut Cx::new(at, &mut self.effects, &mut self.rng));
        }
        let mut left = self.collect();
        while self.layer.held() < WAIT
            && let Some(packet) = self.waiting.pop_front()
        {
            self.layer.on_packet(Port(0), packet, &mut Cx::new(self.now, &mut self.effects, &mut self.rng));
            left += self.collect();
        }
        left
    }

    fn collect(&mut self) -> usize {
        let left = self.effects.emitted.len();
        for (_, mut packet) in self.effects.emitted.drain(..) {
            packet.set_macs(MacAddr::default(), NEIGHBOUR);
            self.waiting.push_back(packet);
        }
        left
    }
}

fn packet(n: u32) -> Packet {
    let from = Ipv4Addr::from(0x0a00_0001 + (n >> 14));
    let below = Below::new(MacAddr::default(), NEIGHBOUR, AddressPair::V4(from, TO), 64);
    let header = TcpHeader {
        src_port: 1_024 + (n & 0x3fff) as u16,
        dst_port: 80,
        flags: TcpFlags::ACK,
        ..TcpHeader::default()
    };
    below.tcp(n as u16, &header, Bytes::from_static(&[0; 1_448]))
}
