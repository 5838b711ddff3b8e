//! A hop with an MTU: a longer packet is dropped or fragmented.

use crate::{Cx, DropReason, Duplex, ElementDirection, Inspection, Port};
use farpace_units::{ByteCount, Instant};
use farpace_wire::{AddressPair, Below, Icmp, IpView, Packet, fragment};
use std::net::{Ipv4Addr, Ipv6Addr};
use thiserror::Error;

/// An MTU in each direction.
pub type Mtu = Duplex<MtuDirection>;

/// Another MTU from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MtuChange {
    /// When it begins to hold.
    pub at: Instant,
    /// The longest IP packet, header included.
    pub mtu: ByteCount,
}

/// Why an MTU is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MtuError {
    /// Below [`MtuDirection::MIN`].
    #[error("an MTU of {0} is below the {min} that every IPv4 hop must carry", min = MtuDirection::MIN)]
    TooSmall(ByteCount),
    /// A change at or before the previous one.
    #[error("the change of MTU at {0} is not later than the one before it")]
    OutOfOrder(Instant),
    /// More than [`MtuDirection::MAX`].
    #[error("{0} changes of MTU are more than the {max} allowed", max = MtuDirection::MAX)]
    TooMany(usize),
}

/// One direction of an [`Mtu`].
///
/// An IPv4 packet that is too long and may be fragmented is (RFC 791 §3.2). Any other is dropped, and an ICMP
/// message goes to its sender (RFC 1191, RFC 8201). If the hop is [`silent`](MtuDirection::silent), no
/// message goes out: a black hole for senders that depend on them (RFC 2923 §2.1).
#[derive(Clone, Debug)]
pub struct MtuDirection {
    mtu: ByteCount,
    changes: Vec<MtuChange>,
    /// So many of `changes` hold already.
    past: usize,
    answers: bool,
    too_big: u64,
    answered: u64,
}

/// Source address of our messages over IPv4: the dummy address for nodes without one (RFC 7600 §4.8).
const HOP_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 8);
/// The same as an IPv6 address (RFC 6052).
const HOP_V6: Ipv6Addr = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0xc000, 8);
/// Length limit of our messages over IPv4: no hop may refuse them as too big (RFC 1812 §4.3.2.3).
const LONGEST_V4: usize = 576;
/// The same over IPv6 (RFC 4443 §3.2).
const LONGEST_V6: usize = 1_280;
const ICMP_LEN: usize = 8;

impl MtuDirection {
    /// Most changes of one direction.
    pub const MAX: usize = 100_000;
    /// Every hop carries IPv4 packets of this length (RFC 791 §3.2).
    pub const MIN: ByteCount = ByteCount::new(68);

    /// IP packets of up to `mtu` pass; later the limits of `changes` hold, in order of time.
    ///
    /// # Errors
    /// An MTU that is too small, changes out of order, or too many of them.
    pub fn new(mtu: ByteCount, changes: Vec<MtuChange>) -> Result<Self, MtuError> {
        if changes.len() > Self::MAX {
            return Err(MtuError::TooMany(changes.len()));
        }
        if let Some(small) =
            std::iter::once(mtu).chain(changes.iter().map(|c| c.mtu)).find(|m| *m < Self::MIN)
        {
            return Err(MtuError::TooSmall(small));
        }
        if let Some(pair) = changes.windows(2).find(|pair| pair[1].at <= pair[0].at) {
            return Err(MtuError::OutOfOrder(pair[1].at));
        }
        Ok(MtuDirection { mtu, changes, past: 0, answers: true, too_big: 0, answered: 0 })
    }
    /// The same hop, without ICMP messages about dropped packets.
    #[must_use]
    pub fn silent(self) -> Self {
        MtuDirection { answers: false, ..self }
    }
    /// Packets that were too long so far.
    pub const fn too_big(&self) -> u64 {
        self.too_big
    }
    /// Messages sent so far.
    pub const fn answered(&self) -> u64 {
        self.answered
    }
    /// The MTU at `now`. Time must not go back.
    fn at(&mut self, now: Instant) -> ByteCount {
        while let Some(change) = self.changes.get(self.past).filter(|c| c.at <= now) {
            self.mtu = change.mtu;
            self.past += 1;
        }
        self.mtu
    }
}

impl ElementDirection for MtuDirection {
    const PASSIVE: bool = true;
    fn on_packet(&mut self, packet: Packet, out: Port, cx: &mut Cx<'_>) {
        if packet.network_len() <= self.at(cx.now()) {
            return cx.emit(out, packet);
        }
        self.too_big += 1;
        if packet.ipv4().is_some_and(|ip| !ip.dont_fragment())
            && let Ok(parts) = fragment(packet.clone(), self.mtu.as_len(), 0)
        {
            for (n, part) in parts.into_iter().enumerate() {
                if n > 0 {
                    cx.made();
                }
                cx.emit(out, part);
            }
            return;
        }
        if self.answers
            && let Some(message) = message(&packet, self.mtu)
        {
            self.answered += 1;
            cx.made();
            cx.emit(Port(1 - (out.0 & 1)), message);
        }
        cx.drop(packet, DropReason::TooBig);
    }
    fn inspect(&self) -> Inspection {
        vec![
            ("mtu", self.mtu.to_string()),
            ("too big", self.too_big.to_string()),
            ("answered", self.answered.to_string()),
        ]
    }
}

/// "Fragmentation needed" or "packet too big" for the sender of `packet`. None for a packet that must not be
/// answered: ICMP messages themselves, and later fragments (RFC 1122 §3.2.2).
fn message(packet: &Packet, mtu: ByteCount) -> Option<Packet> {
    let ip = packet.ip()?;
    let later = ip.fragment().is_some_and(|fragment| fragment.offset != 0);
    if later || ip.protocol() == ip.icmp_protocol() {
        return None;
    }
    let (addresses, longest) = match ip {
        IpView::V4(v4) => (AddressPair::V4(HOP_V4, v4.src()), LONGEST_V4),
        IpView::V6(v6) => (AddressPair::V6(HOP_V6, v6.src()), LONGEST_V6),
    };
    let ethernet = packet.ethernet().ok()?;
    let mut frame = Vec::with_capacity(packet.len().as_len());
    packet.write_frame(&mut frame);
    let whole = frame.get(frame.len().checked_sub(packet.network_len().as_len())?..)?;
    let room = longest - addresses.ip_header_len() - ICMP_LEN;
    let message = Icmp::TooBig {
        mtu: u32::try_from(mtu.get()).unwrap_or(u32::MAX),
        quoted: &whole[..whole.len().min(room)],
    };
    Below::new(ethernet.dst, ethernet.src, addresses, TTL).icmp(0, &message).ok()
}

/// Time to live of our messages.
const TTL: u8 = 255;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{Harness, packet};

    const fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }
    fn direction(mtu: u64, changes: &[(u64, u64)]) -> Result<MtuDirection, MtuError> {
        let changes = changes.iter().map(|(ns, mtu)| MtuChange { at: at(*ns), mtu: ByteCount::new(*mtu) });
        MtuDirection::new(ByteCount::new(mtu), changes.collect())
    }

    /// Breaks: the MTU counts other bytes than the IP packet, or a change comes at the wrong nanosecond.
    #[test]
    fn packets_above_the_present_mtu_are_dropped() {
        let mut harness = Harness::new(Mtu::new(
            direction(140, &[(10, 139), (20, 141)]).unwrap().silent(),
            direction(10_000, &[]).unwrap(),
        ));
        // 100 B of payload make an IP packet of 140 B.
        for (ident, ns, payload) in [(1, 0, 100), (2, 0, 101), (3, 10, 100), (4, 19, 99), (5, 20, 101)] {
            harness.packet(at(ns), Port(0), packet(ident, payload));
            harness.packet(at(ns), Port(1), packet(ident, payload));
        }
        assert_eq!(harness.idents(Port(1)), [1, 4, 5]);
        assert_eq!(harness.idents(Port(0)), [1, 2, 3, 4, 5], "the other direction has its own");
        assert_eq!(harness.dropped, [(at(0), DropReason::TooBig), (at(10), DropReason::TooBig)]);
        assert_eq!(harness.element.direction(Port(0)).too_big(), 2);
    }

    /// Breaks: path MTU discovery: the sender gets no message or one about the wrong packet, or messages are
    /// answered.
    #[test]
    fn the_sender_gets_one_message() {
        let mut harness =
            Harness::new(Mtu::new(direction(800, &[]).unwrap(), direction(68, &[]).unwrap().silent()));
        harness.packet(at(5), Port(0), packet(9, 1_000));
        harness.packet(at(5), Port(1), packet(9, 1_000));
        assert_eq!((harness.emitted.len(), harness.dropped.len()), (1, 2), "the silent hop sends no message");
        let (when, port, answer) = harness.emitted[0].clone();
        assert_eq!((when, port), (at(5), Port(0)), "back to where it came from");
        answer.verify_checksums().unwrap();
        let (ip, lost) = (answer.ipv4().unwrap(), packet(9, 1_000));
        assert_eq!((ip.src(), ip.dst()), (HOP_V4, lost.ipv4().unwrap().src()));
        let Ok(Icmp::TooBig { mtu: 800, quoted }) = answer.icmp() else { panic!("{answer:?}") };
        let mut frame = Vec::new();
        lost.write_frame(&mut frame);
        assert_eq!(quoted, &frame[14..][..548], "what fits into 576 B");
        let mut narrow = Harness::new(Mtu::new(direction(500, &[]).unwrap(), direction(500, &[]).unwrap()));
        narrow.packet(at(6), Port(1), answer);
        assert_eq!((narrow.emitted.len(), narrow.dropped.len()), (0, 1), "messages are not answered");
    }

    /// Breaks: fragmentation on the path: fragments are too long, missing, or not counted.
    #[test]
    fn fragmentable_packets_are_fragmented() {
        let addresses = AddressPair::V4([10, 0, 0, 1].into(), [10, 0, 1, 2].into());
        let mac = farpace_wire::MacAddr([2, 0, 0, 0, 0, 1]);
        let below = Below { dont_fragment: false, ..Below::new(mac, mac, addresses, 64) };
        let whole = below.icmp(7, &Icmp::EchoRequest { ident: 1, seq: 2, data: &[3; 1_000] }).unwrap();
        let mut harness = Harness::new(Mtu::new(direction(500, &[]).unwrap(), direction(500, &[]).unwrap()));
        harness.packet(at(1), Port(0), whole);
        let lengths: Vec<_> = harness.emitted.iter().map(|(_, _, p)| p.network_len().get()).collect();
        // 1008 B of payload in fragments of a multiple of 8 B.
        assert_eq!(lengths, [500, 500, 68]);
        assert!(harness.emitted.iter().all(|(_, port, _)| *port == Port(1)));
    }

    /// Breaks: impossible MTUs and changes out of order are accepted.
    #[test]
    fn impossible_mtus_are_refused() {
        assert_eq!(direction(67, &[]).map(drop), Err(MtuError::TooSmall(ByteCount::new(67))));
        assert_eq!(direction(68, &[(1, 0)]).map(drop), Err(MtuError::TooSmall(ByteCount::ZERO)));
        assert_eq!(direction(68, &[(5, 90), (5, 91)]).map(drop), Err(MtuError::OutOfOrder(at(5))));
        let many: Vec<_> = (0..100_001).map(|n| (n, 100)).collect();
        assert_eq!(direction(68, &many).map(drop), Err(MtuError::TooMany(100_001)));
    }
}
