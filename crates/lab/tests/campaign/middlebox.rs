//! Middleboxes that do more than drop segments: they split them, with or without overlap, and mark them.

use farpace_path::{Cx, ElementDirection, Inspection, Port};
use farpace_wire::tcp::{TcpFlags, TcpHeader};
use farpace_wire::{Below, Ecn, Packet};

/// The packet with another header, payload or ECN field. The packet must be valid.
fn rebuilt(packet: &Packet, header: &TcpHeader, payload: bytes::Bytes, ecn: Ecn) -> Option<Packet> {
    let (ip, ethernet) = (packet.ip()?, packet.ethernet().ok()?);
    let tos = ip.tos() & !3 | ecn.bits();
    let below = Below { tos, ..Below::new(ethernet.src, ethernet.dst, ip.addresses(), ip.ttl()) };
    Some(below.tcp(packet.ipv4().map_or(0, |ip| ip.ident()), header, payload))
}

/// Splits segments. The second part may begin before the first one ends, so that boundaries and bytes overlap
/// with earlier and later transmissions.
#[derive(Clone, Debug)]
pub struct Split(pub f64);

impl ElementDirection for Split {
    const PASSIVE: bool = true;
    fn on_packet(&mut self, packet: Packet, out: Port, cx: &mut Cx<'_>) {
        let len = packet.payload().len();
        let cut = 1 + cx.rng().below(len.max(2) as u64 - 1) as usize;
        let overlap = cx.rng().below(2 * cut as u64).saturating_sub(cut as u64) as usize;
        let parts = cx.rng().chance(self.0) && len > 1;
        let halves = parts.then(|| {
            let whole = packet.tcp().ok()?.header();
            let ecn = packet.ip()?.ecn();
            let mut first = whole.clone();
            first.flags = first.flags.without(TcpFlags::FIN | TcpFlags::PSH);
            let mut second = whole;
            let from = cut - overlap;
            second.seq += from as u32;
            Some([
                rebuilt(&packet, &first, packet.payload().slice(..cut), ecn)?,
                rebuilt(&packet, &second, packet.payload().slice(from..), ecn)?,
            ])
        });
        match halves.flatten() {
            Some([first, second]) => {
                cx.made();
                cx.emit(out, first);
                cx.emit(out, second);
            }
            None => cx.emit(out, packet),
        }
    }
    fn inspect(&self) -> Inspection {
        vec![("probability", self.0.to_string())]
    }
}

/// Marks packets with ECN as CE (RFC 3168), or removes the mark, as broken middleboxes do.
#[derive(Clone, Debug)]
pub struct Mark {
    pub congested: f64,
    pub bleached: f64,
}

impl ElementDirection for Mark {
    const PASSIVE: bool = true;
    fn on_packet(&mut self, packet: Packet, out: Port, cx: &mut Cx<'_>) {
        let (congested, bleached) = (cx.rng().chance(self.congested), cx.rng().chance(self.bleached));
        let ecn = packet.ip().map_or(Ecn::NotEct, |ip| ip.ecn());
        let new = match () {
            () if bleached => Ecn::NotEct,
            () if congested && ecn.is_capable() => Ecn::Ce,
            () => ecn,
        };
        let marked = (new != ecn).then(|| {
            let header = packet.tcp().ok()?.header();
            rebuilt(&packet, &header, packet.payload().clone(), new)
        });
        cx.emit(out, marked.flatten().unwrap_or(packet));
    }
    fn inspect(&self) -> Inspection {
        vec![("congested", self.congested.to_string()), ("bleached", self.bleached.to_string())]
    }
}
