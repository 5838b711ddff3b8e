//! A LAN: layers under small stacks, NICs, and a learning switch.

use crate::multi_nic::{MultiNic, MultiNicConfig, NeighbourId, NicId, NicPath, NicSpec};
use bytes::Bytes;
use farpace_path::{Cx, DropReason, Effects, Element, Port};
use farpace_units::{Instant, RandomStream, Rate, Span};
use farpace_wire::{AddressPair, Arp, ArpOperation, Below, EtherType, MacAddr, NicKind, Packet, UdpHeader};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// Delay from one NIC through the switch to another.
const LATENCY: Span = Span::from_micros(10);
/// Payload of a datagram.
const LEN: usize = 1_472;

pub fn ms(n: u64) -> Instant {
    Instant::ZERO + Span::from_millis(n)
}
pub fn ip(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host as u8 + 1)
}
pub fn mac(host: usize, nic: usize) -> MacAddr {
    MacAddr([2, 0, 0, 0, host as u8 + 1, nic as u8])
}

/// An event at a host.
enum Event {
    /// A NIC receives a frame.
    Link(usize, Packet),
    /// The stack sends a frame.
    Stack(Packet),
}

/// A host. An ordinary one has no layer and one NIC.
pub struct Host {
    pub layer: Option<MultiNic>,
    /// When each datagram reached the stack, with the source host and the number.
    pub received: Vec<(Instant, usize, u32)>,
    /// The ARP cache.
    arp: BTreeMap<Ipv4Addr, MacAddr>,
    /// Datagrams that the layer dropped.
    pub dropped: Vec<DropReason>,
    /// When each NIC last sent a datagram.
    pub last_sent: BTreeMap<usize, Instant>,
    rng: RandomStream,
}

pub struct Net {
    pub now: Instant,
    pub hosts: Vec<Host>,
    /// NICs whose frames are lost in both directions, without a carrier loss.
    pub blackholed: BTreeSet<(usize, usize)>,
    /// When datagrams were lost at such a NIC.
    pub lost: Vec<Instant>,
    /// The latest frame of each EtherType to each NIC.
    pub last: BTreeMap<(usize, usize, u16), Packet>,
    switch_table: BTreeMap<MacAddr, (usize, usize)>,
    nics: Vec<usize>,
    agenda: BTreeMap<(Instant, u64), (usize, Event)>,
    count: u64,
}

impl Net {
    /// Hosts with these numbers of NICs of 1 Gbit/s. Hosts with one NIC are ordinary.
    pub fn new(nics: &[usize], config: &MultiNicConfig) -> Net {
        let rate = Rate::from_mbit(1_000);
        let host = |(n, count): (usize, &usize)| {
            let nics: Vec<NicSpec> = (0..*count)
                .map(|nic| NicSpec { mac: mac(n, nic), rate, kind: NicKind::of_rate(rate) })
                .collect();
            let layer = |nics: &[NicSpec]| {
                let rng = RandomStream::new(n as u64, "layer");
                MultiNic::new(Instant::ZERO, config, nics, &[ip(n).into()], rng)
            };
            Host {
                layer: (*count > 1).then(|| layer(&nics)),
                received: Vec::new(),
                dropped: Vec::new(),
                arp: BTreeMap::new(),
                last_sent: BTreeMap::new(),
                rng: RandomStream::new(n as u64, "host"),
            }
        };
        Net {
            now: Instant::ZERO,
            hosts: nics.iter().enumerate().map(host).collect(),
            blackholed: BTreeSet::new(),
            lost: Vec::new(),
            last: BTreeMap::new(),
            switch_table: BTreeMap::new(),
            nics: nics.to_vec(),
            agenda: BTreeMap::new(),
            count: 0,
        }
    }
    pub fn layer(&self, host: usize) -> &MultiNic {
        self.hosts[host].layer.as_ref().unwrap()
    }
    /// The paths of `host` to its first neighbour.
    pub fn paths(&self, host: usize) -> Vec<(NicId, NicPath)> {
        self.layer(host).paths().working(NeighbourId(1)).map(|(nic, path)| (nic, *path)).collect()
    }
    /// `host` sends an ARP request for `other`.
    pub fn request(&mut self, at: Instant, host: usize, other: usize) {
        let request = Arp::request(mac(host, 0), ip(host), ip(other));
        self.schedule(at, host, Event::Stack(request.packet(MacAddr::BROADCAST)));
    }
    /// `from` sends datagrams to `to` at intervals of `every`, numbered from `first`. Returns the number
    /// after the last.
    pub fn load(&mut self, (from, to): (usize, usize), first: u32, span: [Instant; 2], every: Span) -> u32 {
        let (mut at, mut number) = (span[0], first);
        let addresses = AddressPair::V4(ip(from), ip(to));
        while at < span[1] {
            let mut payload = vec![0; LEN];
            payload[..4].copy_from_slice(&number.to_be_bytes());
            let ports = UdpHeader { src_port: 7, dst_port: 9 };
            let below = Below::new(mac(from, 0), mac(to, 0), addresses, 64);
            let packet = below.udp(0, ports, Bytes::from(payload)).unwrap();
            self.schedule(at, from, Event::Stack(packet));
            (at, number) = (at + every, number + 1);
        }
        number
    }
    /// A NIC receives a frame, from anywhere.
    pub fn inject(&mut self, at: Instant, (host, nic): (usize, usize), packet: Packet) {
        self.schedule(at, host, Event::Link(nic, packet));
    }
    pub fn set_carrier(&mut self, host: usize, nic: usize, up: bool) {
        self.with(host, |layer, cx| layer.set_carrier(NicId(nic as u8), up, cx));
    }
    /// Numbers of datagrams that reached `to` from `from`, with their counts.
    pub fn numbers(&self, from: usize, to: usize) -> BTreeMap<u32, usize> {
        let mut numbers = BTreeMap::new();
        for (_, _, number) in self.hosts[to].received.iter().filter(|(_, source, _)| *source == from) {
            *numbers.entry(*number).or_default() += 1;
        }
        numbers
    }
    /// Runs until `then`.
    pub fn run(&mut self, then: Instant) {
        loop {
            let deadlines = self.hosts.iter().enumerate();
            let wake = deadlines.filter_map(|(n, host)| Some((host.layer.as_ref()?.deadline()?, n))).min();
            let event = self.agenda.first_key_value().map(|((at, _), _)| *at);
            match (wake, event) {
                (Some((at, host)), event) if at <= then && event.is_none_or(|event| at < event) => {
                    assert!(at >= self.now, "a deadline in the past");
                    self.now = at;
                    self.with(host, |layer, cx| layer.on_wake(cx));
                }
                (_, Some(at)) if at <= then => {
                    self.now = at;
                    let (_, (host, event)) = self.agenda.pop_first().unwrap();
                    let event = match event {
                        Event::Stack(packet) => Event::Stack(self.addressed(host, packet)),
                        other => other,
                    };
                    match event {
                        Event::Link(nic, packet) if self.hosts[host].layer.is_some() => {
                            let port = Port(nic as u16 + 1);
                            self.with(host, |layer, cx| layer.on_packet(port, packet, cx));
                        }
                        Event::Stack(packet) if self.hosts[host].layer.is_some() => {
                            self.with(host, |layer, cx| layer.on_packet(Port(0), packet, cx));
                        }
                        Event::Link(_, packet) => self.deliver_to_stack(host, packet),
                        Event::Stack(packet) => self.transmit(host, 0, packet),
                    }
                }
                _ => break,
            }
        }
        self.now = then;
    }

    fn schedule(&mut self, at: Instant, host: usize, event: Event) {
        self.count += 1;
        self.agenda.insert((at, self.count), (host, event));
    }
    fn with(&mut self, host: usize, call: impl FnOnce(&mut MultiNic, &mut Cx<'_>)) {
        let mut effects = Effects::default();
        let this = &mut self.hosts[host];
        call(this.layer.as_mut().unwrap(), &mut Cx::new(self.now, &mut effects, &mut this.rng));
        let dropped = effects.dropped.into_iter().filter(|(packet, _)| packet.udp().is_ok());
        this.dropped.extend(dropped.map(|(_, why)| why));
        for (port, packet) in effects.emitted {
            match port {
                Port(0) => self.deliver_to_stack(host, packet),
                Port(n) => self.transmit(host, usize::from(n) - 1, packet),
            }
        }
    }
    /// Addresses a datagram according to the ARP cache.
    fn addressed(&self, host: usize, mut packet: Packet) -> Packet {
        let to = packet.ipv4().and_then(|ip| self.hosts[host].arp.get(&ip.dst()).copied());
        if let Some(to) = to {
            packet.set_macs(packet.macs().0, to);
        }
        packet
    }
    /// A NIC sends a frame. The switch learns, and forwards or floods.
    fn transmit(&mut self, host: usize, nic: usize, packet: Packet) {
        let (from, to) = packet.macs();
        let is_data = packet.udp().is_ok();
        if is_data {
            self.hosts[host].last_sent.insert(nic, self.now);
        }
        if self.blackholed.contains(&(host, nic)) {
            self.lost.extend(is_data.then_some(self.now));
            return;
        }
        self.switch_table.insert(from, (host, nic));
        let all = self.nics.iter().enumerate().flat_map(|(h, nics)| (0..*nics).map(move |c| (h, c)));
        let ends: Vec<(usize, usize)> = match self.switch_table.get(&to).filter(|_| !to.is_multicast()) {
            Some(end) => vec![*end],
            None => all.filter(|end| *end != (host, nic)).collect(),
        };
        let kind = packet.ethernet().map_or(0, |header| header.ether_type.0);
        for (host, nic) in ends {
            let up = self.hosts[host].layer.as_ref();
            let up = up.is_none_or(|layer| layer.paths().nic(NicId(nic as u8)).is_some_and(|nic| nic.up));
            if !up || self.blackholed.contains(&(host, nic)) {
                self.lost.extend(is_data.then_some(self.now));
                continue;
            }
            self.last.insert((host, nic, kind), packet.clone());
            self.schedule(self.now + LATENCY, host, Event::Link(nic, packet.clone()));
        }
    }
    /// A small stack: it answers ARP requests, and accepts datagrams.
    fn deliver_to_stack(&mut self, host: usize, packet: Packet) {
        if let Ok(arp) = packet.arp() {
            self.hosts[host].arp.insert(arp.sender, arp.sender_mac);
        }
        if let Ok(arp) = packet.arp()
            && arp.operation == ArpOperation::Request
            && arp.target == ip(host)
            && arp.sender != ip(host)
        {
            let answer = arp.reply(mac(host, 0)).packet(arp.sender_mac);
            return self.schedule(self.now, host, Event::Stack(answer));
        }
        let Some(view) = packet.ipv4().filter(|_| packet.udp().is_ok()) else { return };
        let from = usize::from(view.src().octets()[3]) - 1;
        assert_eq!(packet.macs().1, mac(host, 0), "the stack knows one address");
        let number = packet.payload().first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
        if view.dst() == ip(host) {
            self.hosts[host].received.push((self.now, from, number));
        }
    }
}

/// The EtherType of probes and replies.
pub const PROBES: u16 = EtherType::EXPERIMENTAL.0;
