//! Classes of single connections, created with the first packet of a connection and removed when it is idle.

use super::{ClassId, ClassKind, ClassSpec, ClassStats, Scheduler};
use farpace_path::{Backlog, QueueLimit};
use farpace_units::{Instant, Rate, Span};
use farpace_wire::Packet;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Maximum number of connections with classes of their own. Further connections share the parent class.
pub const MAX_FLOWS: usize = 65_536;
/// A class is removed after the connection has been idle for this time.
const IDLE_TIMEOUT: Span = Span::from_secs(30);
/// Interval between searches for idle connections.
const SWEEP_INTERVAL: Span = Span::from_secs(10);

/// Source and destination address, protocol, source and destination port.
type PacedFlowKey = (IpAddr, IpAddr, u8, u16, u16);

struct PacedFlow {
    class: ClassId,
    used: Instant,
}

/// The connections of a class with `rate = "connection"`.
pub(super) struct Flows {
    limit: QueueLimit,
    flows: BTreeMap<PacedFlowKey, PacedFlow>,
    next_sweep: Instant,
    /// Counters of removed classes.
    ended: ClassStats,
}

impl Flows {
    /// No connections. Each will have a queue with this limit.
    pub fn new(limit: QueueLimit) -> Self {
        Flows {
            limit,
            flows: BTreeMap::new(),
            next_sweep: Instant::ZERO + SWEEP_INTERVAL,
            ended: ClassStats::default(),
        }
    }

    /// The class of the connection of `packet`; none if the packet is not part of a connection, or there are
    /// too many.
    ///
    /// Pure ACKs have no class of their own: the rate of a connection is that of its data. An ACK that waited
    /// behind the data would delay the peer's data and lengthen round trips. fq in Linux does not pace pure
    /// ACKs either.
    pub fn class(
        &mut self,
        now: Instant,
        packet: &Packet,
        scheduler: &mut dyn Scheduler<Packet>,
    ) -> Option<ClassId> {
        if packet.is_pure_ack() {
            return None;
        }
        let key = key_of(packet)?;
        if now >= self.next_sweep {
            self.next_sweep = now + SWEEP_INTERVAL;
            self.sweep(now, scheduler);
        }
        if let Some(flow) = self.flows.get_mut(&key) {
            flow.used = now;
            return Some(flow.class);
        }
        if self.flows.len() >= MAX_FLOWS {
            return None;
        }
        let spec = ClassSpec { kind: ClassKind::Follows, limit: self.limit };
        let class = scheduler.add_class(spec).ok()?;
        self.flows.insert(key, PacedFlow { class, used: now });
        Some(class)
    }

    fn sweep(&mut self, now: Instant, scheduler: &mut dyn Scheduler<Packet>) {
        let ended = &mut self.ended;
        self.flows.retain(|_, flow| {
            let stats = scheduler.stats(flow.class).unwrap_or_default();
            if now.since(flow.used) < IDLE_TIMEOUT || stats.backlog.packets > 0 {
                return true;
            }
            add(ended, &ClassStats { rate: Rate::default(), ..stats });
            // The queue is empty, so no packets are returned.
            _ = scheduler.remove_class(flow.class);
            false
        });
    }

    /// Adds the counters of all connections, including removed ones. The rate is the sum of current rates.
    pub fn add_to(&self, stats: &mut ClassStats, scheduler: &dyn Scheduler<Packet>) {
        add(stats, &self.ended);
        for flow in self.flows.values() {
            add(stats, &scheduler.stats(flow.class).unwrap_or_default());
        }
    }
}

fn add(sum: &mut ClassStats, one: &ClassStats) {
    let ClassStats { packets, bytes, dropped, backlog, latest, rate } = *one;
    sum.packets += packets;
    sum.bytes += bytes;
    sum.dropped += dropped;
    sum.backlog =
        Backlog { packets: sum.backlog.packets + backlog.packets, bytes: sum.backlog.bytes + backlog.bytes };
    sum.latest = sum.latest.max(latest);
    let all = sum.rate.bits_per_sec().saturating_add(rate.bits_per_sec());
    sum.rate = Rate::from_bits_per_sec(all);
}

fn key_of(packet: &Packet) -> Option<PacedFlowKey> {
    let ip = packet.ip()?;
    let ports = packet.tcp().map(|tcp| (tcp.src_port(), tcp.dst_port()));
    let (src, dst) = ports.or_else(|_| packet.udp().map(|udp| (udp.src_port(), udp.dst_port()))).ok()?;
    Some((ip.src(), ip.dst(), ip.protocol(), src, dst))
}

#[cfg(test)]
mod tests {
    use super::super::{ClassConfig, ClassRate, Edf, Gaps, Next, Pacer, PacingConfig};
    use super::*;
    use farpace_units::{ByteCount, Packets};
    use farpace_wire::{AddressPair, Below, MacAddr, TcpFlags, TcpHeader};

    fn packet(src_port: u16, rate: u64) -> Packet {
        let addresses = AddressPair::V4([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let header = TcpHeader { src_port, dst_port: 80, ..TcpHeader::default() };
        let below = Below::new(MacAddr([2; 6]), MacAddr([4; 6]), addresses, 64);
        let mut packet = below.tcp(1, &header, vec![0; 1_460].into());
        packet.set_pacing_rate(Some(Rate::from_mbit(rate)));
        packet
    }

    /// Breaks: each connection has a queue and a rate of its own, loses its class when idle, and its counters
    /// remain.
    #[test]
    fn each_connection_has_a_class_while_it_lives() {
        let mut edf =
            Edf::new(Rate::from_mbit(1_000), ByteCount::new(1_500), Gaps::Frames, Span::ZERO).unwrap();
        let mut flows = Flows::new(QueueLimit::Packets(Packets::new(9)));
        let mut now = Instant::ZERO;
        let mut send = |now: Instant, port: u16, edf: &mut Edf<Packet>| {
            let packet = packet(port, 100);
            let class = flows.class(now, &packet, edf).unwrap();
            edf.enqueue(now, class, packet).unwrap();
            class
        };
        let (a, b) = (send(now, 1, &mut edf), send(now, 2, &mut edf));
        assert!(a != b && send(now, 1, &mut edf) == a);
        while let Next::Packet { .. } | Next::Gap(_) = edf.dequeue(now) {}
        now += Span::from_secs(31);
        send(now, 2, &mut edf);
        now += Span::from_secs(11);
        send(now, 2, &mut edf);
        assert!(edf.stats(a).is_none(), "port 1 was idle for 30 s");
        let mut all = ClassStats::default();
        flows.add_to(&mut all, &edf);
        assert_eq!((all.packets, all.backlog.packets), (3, 2));
        assert_eq!(all.rate, Rate::from_mbit(100), "the rate of port 2");
    }

    /// Breaks: with data in both directions, pure ACKs do not wait behind data, which would lengthen round
    /// trips and lower both rates further.
    #[test]
    fn pure_acks_are_not_paced_with_the_data() {
        let rate = Rate::from_mbit(1_000);
        let config = PacingConfig {
            default: Some("all".to_owned()),
            gaps: Gaps::Timers,
            classes: vec![ClassConfig {
                name: "all".to_owned(),
                rate: Some(ClassRate::Connection),
                limit: None,
            }],
            ..PacingConfig::default()
        };
        let mut pacer = Pacer::new(&config, rate).unwrap_or_else(|e| panic!("{e:?}"));
        let mut slow = packet(1, 1);
        slow.set_pacing_rate(Some(Rate::from_bits_per_sec(100)));
        (0..3).for_each(|_| pacer.enqueue(Instant::ZERO, slow.clone()).unwrap());
        let mut sent = Vec::new();
        let mut send = |pacer: &mut Pacer, now| {
            while let Next::Packet { packet, .. } = pacer.dequeue(now) {
                sent.push(packet.payload().len());
            }
        };
        send(&mut pacer, Instant::ZERO);
        let header = TcpHeader { src_port: 1, dst_port: 80, flags: TcpFlags::ACK, ..TcpHeader::default() };
        let addresses = AddressPair::V4([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let below = Below::new(MacAddr([2; 6]), MacAddr([4; 6]), addresses, 64);
        let later = Instant::ZERO + Span::from_millis(1);
        let with = |flags| below.tcp(1, &TcpHeader { flags, ..header.clone() }, Vec::new().into());
        pacer.enqueue(later, with(TcpFlags::ACK | TcpFlags::FIN)).unwrap();
        pacer.enqueue(later, with(TcpFlags::ACK)).unwrap();
        send(&mut pacer, later);
        assert_eq!(sent, [1_460, 0], "the data waits, and the FIN behind it; the ACK does not");
        assert_eq!(pacer.backlog().packets, 3);
    }

    /// Breaks: a connection whose packets are queued for longer than the idle timeout keeps its class and
    /// packets.
    #[test]
    fn connections_with_queued_packets_are_not_idle() {
        let mut edf =
            Edf::new(Rate::from_mbit(1_000), ByteCount::new(1_500), Gaps::Timers, Span::ZERO).unwrap();
        let mut flows = Flows::new(QueueLimit::Unlimited);
        let (slow, other) = (packet(1, 1), packet(2, 1));
        let class = flows.class(Instant::ZERO, &slow, &mut edf).unwrap();
        for _ in 0..2 {
            edf.enqueue(Instant::ZERO, class, slow.clone()).unwrap();
        }
        let later = Instant::ZERO + IDLE_TIMEOUT * 4;
        flows.class(later, &other, &mut edf).unwrap();
        assert_eq!(edf.stats(class).unwrap().backlog.packets, 2);
        assert_eq!(flows.class(later, &slow, &mut edf), Some(class));
    }

    /// Breaks: the number of classes is bounded when packets of ever new connections arrive.
    #[test]
    fn the_number_of_connections_is_limited() {
        let mut edf =
            Edf::new(Rate::from_mbit(1_000), ByteCount::new(1_500), Gaps::Timers, Span::ZERO).unwrap();
        let mut flows = Flows::new(QueueLimit::Unlimited);
        for port in 0..=u16::MAX {
            assert!(flows.class(Instant::ZERO, &packet(port, 1), &mut edf).is_some());
        }
        let addresses = AddressPair::V4([10, 9, 9, 9].into(), [10, 0, 0, 2].into());
        let below = Below::new(MacAddr([2; 6]), MacAddr([4; 6]), addresses, 64);
        let more = below.tcp(1, &TcpHeader::default(), vec![0; 10].into());
        assert_eq!(flows.class(Instant::ZERO, &more, &mut edf), None);
        let later = Instant::ZERO + IDLE_TIMEOUT * 2;
        assert!(flows.class(later, &more, &mut edf).is_some(), "all other connections are idle");
    }
}
