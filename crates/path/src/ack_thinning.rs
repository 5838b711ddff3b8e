//! ACK thinning (RFC 3449 §5.2.1): of several pure ACKs of a connection only the newest goes on, as in cable
//! modems and satellite terminals that save upstream capacity.

use crate::{Cx, DropReason, Duplex, ElementDirection, Inspection, Port};
use farpace_units::{Instant, Seq, Span};
use farpace_wire::tcp::TcpFlags;
use farpace_wire::{AddressPair, Packet};
use std::collections::{BTreeMap, BTreeSet};

/// Thinning in each direction.
pub type AckThinning = Duplex<AckThinningDirection>;

/// One direction of an [`AckThinning`].
///
/// It gathers pure ACKs that advance. Each replaces the one before it, and the last goes on when `every` of
/// them have come, or `hold` after the first of them, whichever is earlier. So the newest ACK always gets
/// through, at most `hold` late. Other segments of the connection go on at once, after the ACK that waits:
/// data, SYN, FIN, RST, urgent data, ACKs with SACK blocks, duplicate ACKs and window updates. Other options
/// of a replaced ACK are lost with it.
#[derive(Clone, Debug)]
pub struct AckThinningDirection {
    every: u32,
    hold: Span,
    connections: BTreeMap<ThinnedConnection, SeenAck>,
    /// The ACKs that wait, by the time at which they go on.
    due: BTreeSet<(Instant, ThinnedConnection)>,
    thinned: u64,
}

/// One direction of a connection: addresses, ports.
type ThinnedConnection = (AddressPair, u16, u16);

#[derive(Clone, Debug)]
struct SeenAck {
    /// Greatest acknowledgment number so far.
    ack: Seq,
    waiting: Option<WaitingAck>,
}

#[derive(Clone, Debug)]
struct WaitingAck {
    packet: Packet,
    due: Instant,
    /// ACKs gathered, this one included.
    gathered: u32,
}

/// The parts of a segment that matter here.
struct PureAck {
    connection: ThinnedConnection,
    /// None without ACK.
    ack: Option<Seq>,
    /// It carries only an acknowledgment.
    is_pure: bool,
    /// The connection begins or ends with it.
    is_due: bool,
}

const SACK: u8 = 5;

/// None if the packet is not a whole TCP segment.
fn look(packet: &Packet) -> Option<PureAck> {
    let (ip, tcp) = packet.ip_tcp().ok()?;
    let flags = tcp.flags();
    let due = TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST;
    let ack = flags.contains(TcpFlags::ACK).then_some(tcp.ack());
    let plain = ack.is_some() && !flags.intersects(due | TcpFlags::URG);
    let has_sack = || tcp.raw_options().map_while(Result::ok).any(|(kind, _)| kind == SACK);
    Some(PureAck {
        connection: (ip.addresses(), tcp.src_port(), tcp.dst_port()),
        ack,
        is_pure: plain && packet.payload().is_empty() && !has_sack(),
        is_due: flags.intersects(due),
    })
}

impl AckThinningDirection {
    /// Most connections that are thinned in one direction. Packets of further ones pass unchanged.
    pub const MAX: usize = 1_024;

    /// One of `every` ACKs goes on, none later than `hold` after its arrival. If `every` is below 2 or `hold`
    /// is zero, nothing is thinned.
    pub const fn new(every: u32, hold: Span) -> Self {
        AckThinningDirection { every, hold, connections: BTreeMap::new(), due: BTreeSet::new(), thinned: 0 }
    }
    /// ACKs that newer ones replaced so far.
    pub const fn thinned(&self) -> u64 {
        self.thinned
    }

    /// Emits the ACK of a connection that waits.
    fn flush(&mut self, connection: ThinnedConnection, out: Port, cx: &mut Cx<'_>) {
        if let Some(waiting) = self.connections.get_mut(&connection).and_then(|seen| seen.waiting.take()) {
            self.due.remove(&(waiting.due, connection));
            cx.emit(out, waiting.packet);
        }
    }

    /// An ACK that advances replaces the one before it.
    fn gather(&mut self, connection: ThinnedConnection, packet: Packet, out: Port, cx: &mut Cx<'_>) {
        let Some(seen) = self.connections.get_mut(&connection) else { return cx.emit(out, packet) };
        let (due, gathered) = match seen.waiting.take() {
            Some(old) => {
                self.due.remove(&(old.due, connection));
                self.thinned += 1;
                cx.drop(old.packet, DropReason::AckThinned);
                (old.due, old.gathered + 1)
            }
            None => (cx.now() + self.hold, 1),
        };
        if gathered >= self.every || due <= cx.now() {
            return cx.emit(out, packet);
        }
        seen.waiting = Some(WaitingAck { packet, due, gathered });
        self.due.insert((due, connection));
    }
}

impl ElementDirection for AckThinningDirection {
    const PASSIVE: bool = false;
    fn on_packet(&mut self, packet: Packet, out: Port, cx: &mut Cx<'_>) {
        let Some(PureAck { connection, ack, is_pure, is_due }) = look(&packet) else {
            return cx.emit(out, packet);
        };
        let has_room = self.connections.len() < Self::MAX;
        if let Some(ack) = ack {
            match self.connections.get_mut(&connection) {
                Some(seen) => {
                    let advances = ack.after(seen.ack);
                    seen.ack = seen.ack.later(ack);
                    if is_pure && advances {
                        return self.gather(connection, packet, out, cx);
                    }
                }
                None if is_pure && has_room => {
                    self.connections.insert(connection, SeenAck { ack, waiting: None });
                }
                None => {}
            }
        }
        self.flush(connection, out, cx);
        if is_due {
            self.connections.remove(&connection);
        }
        cx.emit(out, packet);
    }
    fn on_wake(&mut self, out: Port, cx: &mut Cx<'_>) {
        while let Some(&(due, connection)) = self.due.first()
            && due <= cx.now()
        {
            self.due.pop_first();
            self.flush(connection, out, cx);
        }
    }
    fn deadline(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }
    fn held(&self) -> u64 {
        self.due.len() as u64
    }
    fn inspect(&self) -> Inspection {
        vec![
            ("every", self.every.to_string()),
            ("hold", self.hold.to_string()),
            ("connections", self.connections.len().to_string()),
            ("thinned", self.thinned.to_string()),
        ]
    }
}

#[cfg(test)]
mod tests;
