//! Elements with two ports: a packet that enters at one port leaves by the other, and each direction has its
//! own state.

use crate::{Cx, Element, Inspection, Port};
use farpace_units::Instant;
use farpace_wire::Packet;

/// One direction of a [`Duplex`]. The contract is that of [`Element`]; `out` is the port by which packets
/// of this direction leave.
pub trait ElementDirection: 'static {
    /// It acts only when packets arrive: it never has a deadline.
    const PASSIVE: bool;
    /// A packet enters.
    fn on_packet(&mut self, packet: Packet, out: Port, cx: &mut Cx<'_>);
    /// The deadline of one of the two directions has come, perhaps not that of this one.
    fn on_wake(&mut self, _out: Port, _cx: &mut Cx<'_>) {}
    /// When this direction wants to be woken. Pure.
    fn deadline(&self) -> Option<Instant> {
        None
    }
    /// Packets inside.
    fn held(&self) -> u64 {
        0
    }
    /// Readings, in a fixed order.
    fn inspect(&self) -> Inspection;
}

/// `None` is a plain wire: packets pass unchanged. It makes elements that work in one direction only.
impl<W: ElementDirection> ElementDirection for Option<W> {
    const PASSIVE: bool = W::PASSIVE;
    fn on_packet(&mut self, packet: Packet, out: Port, cx: &mut Cx<'_>) {
        match self {
            Some(direction) => direction.on_packet(packet, out, cx),
            None => cx.emit(out, packet),
        }
    }
    fn on_wake(&mut self, out: Port, cx: &mut Cx<'_>) {
        if let Some(direction) = self {
            direction.on_wake(out, cx);
        }
    }
    fn deadline(&self) -> Option<Instant> {
        self.as_ref().and_then(W::deadline)
    }
    fn held(&self) -> u64 {
        self.as_ref().map_or(0, W::held)
    }
    fn inspect(&self) -> Inspection {
        self.as_ref().map(W::inspect).unwrap_or_default()
    }
}

/// An element with two ports and one [`ElementDirection`] from each to the other.
#[derive(Clone, Debug)]
pub struct Duplex<W> {
    /// By the port at which packets enter.
    directions: [W; 2],
}

impl<W: ElementDirection> Duplex<W> {
    /// `forward` leads from port 0 to port 1, `backward` from port 1 to port 0.
    pub const fn new(forward: W, backward: W) -> Self {
        Duplex { directions: [forward, backward] }
    }
    /// The direction of packets that enter at `from` (port 0 or 1).
    pub const fn direction(&self, from: Port) -> &W {
        &self.directions[side(from)]
    }
    /// The same, to change it while it runs. The packets inside must stay.
    pub const fn direction_mut(&mut self, from: Port) -> &mut W {
        &mut self.directions[side(from)]
    }
}

/// A runner connects only ports 0 and 1. Any other number counts as one of them.
const fn side(port: Port) -> usize {
    (port.0 & 1) as usize
}

impl<W: ElementDirection> Element for Duplex<W> {
    fn ports(&self) -> u16 {
        2
    }
    fn is_passive(&self) -> bool {
        W::PASSIVE
    }
    fn on_packet(&mut self, port: Port, packet: Packet, cx: &mut Cx<'_>) {
        let from = side(port);
        self.directions[from].on_packet(packet, Port(1 - from as u16), cx);
    }
    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        let [forward, backward] = &mut self.directions;
        forward.on_wake(Port(1), cx);
        backward.on_wake(Port(0), cx);
    }
    #[inline]
    fn deadline(&self) -> Option<Instant> {
        let [forward, backward] = &self.directions;
        match (forward.deadline(), backward.deadline()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
    fn held(&self) -> u64 {
        self.directions.iter().map(W::held).sum()
    }
    /// The readings of both directions, `0→1: a, 1→0: b`.
    fn inspect(&self) -> Inspection {
        let [forward, backward] = &self.directions;
        let (forward, backward) = (forward.inspect(), backward.inspect());
        let names = if forward.is_empty() { &backward } else { &forward }.iter().map(|(name, _)| *name);
        let read = |readings: &Inspection, name| {
            readings.iter().find(|(n, _)| *n == name).map_or("-".to_owned(), |(_, value)| value.clone())
        };
        names.map(|n| (n, format!("0→1: {}, 1→0: {}", read(&forward, n), read(&backward, n)))).collect()
    }
}
