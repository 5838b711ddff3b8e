//! Datagrams that precede TCP.

use super::bench::{ip, mac, ms};
use crate::multi_nic::{MAX_PRIORITY_FRAMES, MultiNic, MultiNicConfig, NicSpec};
use bytes::Bytes;
use farpace_path::{Cx, DropReason, Effects, Element, Port};
use farpace_units::{Instant, RandomStream, Rate, Seq};
use farpace_wire::tcp::{TcpFlags, TcpHeader};
use farpace_wire::{AddressPair, Below, NicKind, Packet, UdpHeader};

/// A layer with one NIC of 10 Mbit/s, for which a full frame takes 1.2 ms.
struct Slow {
    layer: MultiNic,
    rng: RandomStream,
    sent: Vec<Packet>,
    dropped: Vec<DropReason>,
}

impl Slow {
    fn new() -> Slow {
        let rate = Rate::from_mbit(10);
        let nics = [NicSpec { mac: mac(0, 0), rate, kind: NicKind::of_rate(rate) }];
        let config = MultiNicConfig { probe: false, extended_arp: false, ..MultiNicConfig::default() };
        let lists = RandomStream::new(1, "lists");
        let mut layer = MultiNic::new(Instant::ZERO, &config, &nics, &[ip(0).into()], lists);
        layer.prioritise_datagrams();
        Slow { layer, rng: RandomStream::new(1, "slow"), sent: Vec::new(), dropped: Vec::new() }
    }
    fn with(&mut self, at: Instant, call: impl FnOnce(&mut MultiNic, &mut Cx<'_>)) {
        let mut effects = Effects::default();
        call(&mut self.layer, &mut Cx::new(at, &mut effects, &mut self.rng));
        self.sent.extend(effects.emitted.into_iter().map(|(_, packet)| packet));
        self.dropped.extend(effects.dropped.into_iter().map(|(_, why)| why));
    }
    fn push(&mut self, at: Instant, packet: Packet) {
        self.with(at, |layer, cx| layer.on_packet(Port(0), packet, cx));
    }
    fn run(&mut self, until: Instant) {
        while let Some(at) = self.layer.deadline().filter(|at| *at <= until) {
            self.with(at, |layer, cx| layer.on_wake(cx));
        }
    }
    fn kinds(&self) -> String {
        self.sent.iter().map(|packet| if packet.udp().is_ok() { 'u' } else { 't' }).collect()
    }
}

fn below() -> Below {
    Below::new(mac(0, 0), mac(1, 0), AddressPair::V4(ip(0), ip(1)), 64)
}
fn datagram(len: usize) -> Packet {
    below().udp(0, UdpHeader { src_port: 5, dst_port: 6 }, Bytes::from(vec![0; len])).unwrap()
}
fn segment(number: u32) -> Packet {
    let header = TcpHeader {
        src_port: 1,
        dst_port: 2,
        seq: Seq::new(number * 1_400),
        flags: TcpFlags::ACK,
        ..TcpHeader::default()
    };
    below().tcp(0, &header, Bytes::from(vec![0; 1_400]))
}

/// Breaks: a voice call waits behind a download.
#[test]
fn a_datagram_precedes_segments_that_wait() {
    let mut slow = Slow::new();
    (0..20).for_each(|number| slow.push(ms(1), segment(number)));
    slow.push(ms(2), datagram(160));
    slow.run(ms(100));
    let place = slow.kinds().find('u').unwrap();
    assert!(place <= 2, "{}", slow.kinds());
    assert_eq!((slow.sent.len(), slow.layer.priority_counts(), slow.layer.held()), (21, (1, 0), 0));
}

/// Breaks: a flood of datagrams stops TCP, or is kept without limit.
#[test]
fn a_flood_of_datagrams_leaves_something_to_tcp() {
    let mut slow = Slow::new();
    (0..40).for_each(|number| slow.push(ms(1), segment(number)));
    let flood = MAX_PRIORITY_FRAMES + 50;
    (0..flood).for_each(|_| slow.push(ms(1), datagram(1_400)));
    assert_eq!(slow.dropped, vec![DropReason::QueueFull; 50]);
    slow.run(ms(1) + farpace_units::Span::from_millis(150));
    let segments = slow.kinds().matches('t').count();
    let datagrams = slow.kinds().matches('u').count();
    assert!((10..=16).contains(&segments) && datagrams >= 90, "{segments} and {datagrams}");
    slow.run(ms(2_000));
    assert_eq!((slow.sent.len(), slow.layer.held()), (40 + MAX_PRIORITY_FRAMES, 0));
}
