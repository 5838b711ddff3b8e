//! The contract between an element and its runner.

use farpace_units::{Instant, RandomStream};
use farpace_wire::Packet;
use serde::Serialize;
use std::any::Any;

/// One side of an element: a link has ports 0 and 1, a host one for each NIC, a router one for each link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub u16);

/// Something that packets go through or end in.
///
/// The contract:
/// * The runner calls [`on_packet`](Element::on_packet) when a packet arrives and
///   [`on_wake`](Element::on_wake) once `now` has reached [`deadline`](Element::deadline). After `on_wake` at
///   `now`, the deadline is later than `now`, or none.
/// * `deadline` is pure: it changes only through the calls above.
/// * Every packet that came in or was made has left through [`Cx::emit`], was given to [`Cx::drop`] or
///   [`Cx::consume`], or is counted by [`held`](Element::held). The runner checks this after every call in
///   debug builds (conservation: received + made = emitted + dropped + consumed + held).
/// * Random numbers come only from [`Cx::rng`]: the element's own stream, which its name determines.
pub trait Element: Any {
    /// The number of ports. They are numbered from 0, and a runner connects each of them.
    fn ports(&self) -> u16 {
        1
    }
    /// True if it acts only when packets arrive: its deadline is always none, and a runner need not ask for
    /// it.
    fn is_passive(&self) -> bool {
        false
    }
    /// A packet arrives at `port`.
    fn on_packet(&mut self, port: Port, packet: Packet, cx: &mut Cx<'_>);
    /// The deadline has come.
    fn on_wake(&mut self, cx: &mut Cx<'_>);
    /// When the element wants to be woken. Pure.
    fn deadline(&self) -> Option<Instant>;
    /// Packets inside.
    fn held(&self) -> u64;
    /// Readings for reports and debugging.
    fn inspect(&self) -> Inspection;
}

/// Named readings of an element, in a fixed order.
pub type Inspection = Vec<(&'static str, String)>;

/// Why a packet ended before its destination. It reaches the trace and the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DropReason {
    /// A queue was at its limit.
    QueueFull,
    /// The policer had no tokens left.
    Policed,
    /// Random loss.
    Loss,
    /// Random loss in bursts.
    BurstLoss,
    /// A bit was wrong, and the link noticed.
    BitErrors,
    /// RED dropped it early.
    Red,
    /// CoDel dropped it: packets had waited too long.
    #[serde(rename = "codel")]
    CoDel,
    /// A link was down.
    Outage,
    /// No route to the destination.
    NoRoute,
    /// A checksum was wrong.
    BadChecksum,
    /// The time to live ran out in a router.
    TtlExpired,
    /// Not a well-formed packet.
    Malformed,
    /// No listener on the port.
    NoListener,
    /// A limit of the host was reached.
    HostLimit,
    /// Larger than the MTU of a hop.
    TooBig,
    /// Addresses that no valid packet has: the host itself as source, a group as source, no destination.
    Martian,
    /// A fragment whose packet could not be reassembled.
    Fragment,
    /// No node on the link answered for the next hop.
    Unresolved,
    /// A middlebox refused a TCP segment without ACK, SYN and RST.
    NoAck,
    /// A middlebox sent a newer acknowledgment in its place.
    AckThinned,
}

impl DropReason {
    /// The number of reasons.
    pub const COUNT: usize = 20;
    /// All of them, in the order of reports.
    pub const ALL: [DropReason; Self::COUNT] = [
        DropReason::QueueFull,
        DropReason::Policed,
        DropReason::Loss,
        DropReason::BurstLoss,
        DropReason::BitErrors,
        DropReason::Red,
        DropReason::CoDel,
        DropReason::Outage,
        DropReason::NoRoute,
        DropReason::BadChecksum,
        DropReason::TtlExpired,
        DropReason::Malformed,
        DropReason::NoListener,
        DropReason::HostLimit,
        DropReason::TooBig,
        DropReason::Martian,
        DropReason::Fragment,
        DropReason::Unresolved,
        DropReason::NoAck,
        DropReason::AckThinned,
    ];
    /// The index in [`ALL`](Self::ALL), for tables of counters.
    pub const fn index(self) -> usize {
        self as usize
    }
    /// The name in traces and tables, snake_case.
    pub const fn name(self) -> &'static str {
        match self {
            DropReason::QueueFull => "queue_full",
            DropReason::Policed => "policed",
            DropReason::Loss => "loss",
            DropReason::BurstLoss => "burst_loss",
            DropReason::BitErrors => "bit_errors",
            DropReason::Red => "red",
            DropReason::CoDel => "codel",
            DropReason::Outage => "outage",
            DropReason::NoRoute => "no_route",
            DropReason::BadChecksum => "bad_checksum",
            DropReason::TtlExpired => "ttl_expired",
            DropReason::Malformed => "malformed",
            DropReason::NoListener => "no_listener",
            DropReason::HostLimit => "host_limit",
            DropReason::TooBig => "too_big",
            DropReason::Martian => "martian",
            DropReason::Fragment => "fragment",
            DropReason::Unresolved => "unresolved",
            DropReason::NoAck => "no_ack",
            DropReason::AckThinned => "ack_thinned",
        }
    }
}

/// What an element did during one call. The runner empties it afterwards and keeps its memory.
#[derive(Debug, Default)]
pub struct Effects {
    /// Packets that leave, in order.
    pub emitted: Vec<(Port, Packet)>,
    /// Packets that ended.
    pub dropped: Vec<(Packet, DropReason)>,
    /// Packets that reached their destination here.
    pub consumed: u64,
    /// Packets created here (sent by a host, or duplicated).
    pub made: u64,
}

/// What an element may use during one call.
pub struct Cx<'a> {
    now: Instant,
    effects: &'a mut Effects,
    rng: &'a mut RandomStream,
}

impl<'a> Cx<'a> {
    /// For runners: a call at `now`.
    pub fn new(now: Instant, effects: &'a mut Effects, rng: &'a mut RandomStream) -> Self {
        Cx { now, effects, rng }
    }
    /// The present.
    pub fn now(&self) -> Instant {
        self.now
    }
    /// The element's own random stream.
    pub fn rng(&mut self) -> &mut RandomStream {
        self.rng
    }
    /// Sends `packet` out of `port`, now.
    pub fn emit(&mut self, port: Port, packet: Packet) {
        self.effects.emitted.push((port, packet));
    }
    /// Ends `packet` for `reason`.
    pub fn drop(&mut self, packet: Packet, reason: DropReason) {
        self.effects.dropped.push((packet, reason));
    }
    /// `packet` has reached its destination.
    pub fn consume(&mut self, packet: Packet) {
        self.effects.consumed += 1;
        drop(packet);
    }
    /// `packet` has reached its destination. Returns its payload.
    #[inline]
    pub fn take(&mut self, packet: Packet) -> bytes::Bytes {
        self.effects.consumed += 1;
        packet.into_payload()
    }
    /// `packet` has reached its destination in the world and goes on outside of it.
    pub fn hand_over(&mut self, packet: Packet) -> Packet {
        self.effects.consumed += 1;
        packet
    }
    /// Counts a packet that was created here. The element then emits or holds it.
    pub fn made(&mut self) {
        self.effects.made += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::DropReason;
    use std::collections::BTreeSet;

    /// Breaks: drops are counted under the wrong reason.
    #[test]
    fn every_reason_has_its_own_place_and_name() {
        for (at, reason) in DropReason::ALL.iter().enumerate() {
            assert_eq!(reason.index(), at);
        }
        let names: BTreeSet<_> = DropReason::ALL.iter().map(|r| r.name()).collect();
        assert_eq!(names.len(), DropReason::COUNT);
    }
}
