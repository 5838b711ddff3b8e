//! A TCP segment as people and programs want it: numbers from the start of the connection, and what it asks
//! or confirms.

use crate::connections::ShownConnections;
use crate::options::{TcpOption, options, relative};
use farpace_units::Seq;
use farpace_wire::tcp::Tarr;
use farpace_wire::{Packet, TcpFlags, TcpHeader};
use serde::{Serialize, Serializer};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// What is shown of a segment.
#[derive(Serialize)]
pub struct ShownSegment {
    connection: u64,
    src: IpAddr,
    src_port: u16,
    dst: IpAddr,
    dst_port: u16,
    #[serde(serialize_with = "names")]
    flags: TcpFlags,
    /// It asks for an ACK at once.
    asks: bool,
    /// It answers such a segment.
    confirms: bool,
    seq: u32,
    raw_seq: u32,
    payload_bytes: usize,
    /// None if it does not acknowledge.
    ack: Option<u32>,
    raw_ack: Option<u32>,
    window: u16,
    /// None without URG.
    urgent: Option<u16>,
    options: Vec<TcpOption>,
    /// CDL's flag, if it is set and means something here.
    #[serde(skip)]
    cdl: TcpFlags,
}

fn names<S: Serializer>(flags: &TcpFlags, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(flags)
}

const SYN_OR_RST: TcpFlags = TcpFlags::SYN.with(TcpFlags::RST);

impl ShownSegment {
    /// None if the packet is no whole TCP segment. `cdl`: the flag that CDL uses.
    pub fn of(packet: &Packet, connections: &mut ShownConnections, cdl: TcpFlags) -> Option<ShownSegment> {
        let (ip, tcp) = packet.ip_tcp().ok()?;
        let (header, payload) = (tcp.header(), packet.payload().len());
        let from = SocketAddr::new(ip.src(), header.src_port);
        let to = SocketAddr::new(ip.dst(), header.dst_port);
        let marked = header.flags.contains(cdl) && !header.flags.intersects(SYN_OR_RST);
        // Classic CDL: the number counts although ACK is not set.
        let acks = marked || header.flags.contains(TcpFlags::ACK);
        let place = connections.place(from, to, &header, acks);
        let (asks, confirms) = control(&header, payload, marked, place.classic);
        Some(ShownSegment {
            connection: place.connection,
            src: from.ip(),
            src_port: from.port(),
            dst: to.ip(),
            dst_port: to.port(),
            flags: header.flags,
            asks,
            confirms,
            seq: relative(header.seq, place.sender),
            raw_seq: header.seq.get(),
            payload_bytes: payload,
            ack: acks.then(|| relative(header.ack, place.receiver)),
            raw_ack: acks.then_some(header.ack.get()),
            window: header.window,
            urgent: header.flags.contains(TcpFlags::URG).then_some(header.urgent),
            options: options(&tcp, place.receiver),
            cdl: if marked { cdl } else { TcpFlags::NONE },
        })
    }

    /// S F R P W E and e, then D and C; a dot if there is none.
    fn letters(&self) -> String {
        const LETTERS: [(TcpFlags, char); 7] = [
            (TcpFlags::SYN, 'S'),
            (TcpFlags::FIN, 'F'),
            (TcpFlags::RST, 'R'),
            (TcpFlags::PSH, 'P'),
            (TcpFlags::CWR, 'W'),
            (TcpFlags::ECE, 'E'),
            (TcpFlags::AE, 'e'),
        ];
        let set =
            LETTERS.into_iter().filter(|(flag, _)| self.flags.contains(*flag)).map(|(_, letter)| letter);
        let mut text: String = set.collect();
        text.extend(self.asks.then_some('D'));
        text.extend(self.confirms.then_some('C'));
        if text.is_empty() { ".".to_owned() } else { text }
    }
}

/// Whether a segment asks for an ACK at once, and whether it confirms that it is one. `marked`: it has CDL's
/// flag.
fn control(header: &TcpHeader, payload: usize, marked: bool, classic: bool) -> (bool, bool) {
    let (control, data) = (&header.options.ack_control, payload > 0);
    let by_option = control.request || control.tarr == Some(Tarr::Rate(0));
    // Classic: the flag in place of ACK asks, beside ACK it confirms. Else ACK is always there: data ask,
    // ACKs confirm.
    let flag_asks = !header.flags.contains(TcpFlags::ACK) || data && !classic;
    (marked && flag_asks || data && by_option, marked && !flag_asks || control.confirmation.is_some())
}

impl fmt::Display for ShownSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ShownSegment { src, src_port, dst, dst_port, .. } = self;
        write!(f, "{src}.{src_port} > {dst}.{dst_port}: {}", self.letters())?;
        let syn = self.flags.contains(TcpFlags::SYN);
        if self.payload_bytes > 0 || self.flags.intersects(SYN_OR_RST | TcpFlags::FIN) {
            let seq = if syn { self.raw_seq } else { self.seq };
            let end = Seq::new(seq) + self.payload_bytes as u32;
            write!(f, " {seq}:{end}({})", self.payload_bytes)?;
        }
        if let Some(ack) = if syn { self.raw_ack } else { self.ack } {
            write!(f, " ack {ack}")?;
        }
        write!(f, " win {}", self.window)?;
        if let Some(urgent) = self.urgent {
            write!(f, " urg {urgent}")?;
        }
        let reserved = TcpFlags::RESERVED_4 | TcpFlags::RESERVED_5 | TcpFlags::RESERVED_6;
        let unexplained = TcpFlags::from_bits(self.flags.bits() & reserved.bits()).without(self.cdl);
        if !unexplained.is_empty() {
            write!(f, " [{unexplained}]")?;
        }
        let options: Vec<String> = self.options.iter().map(TcpOption::to_string).collect();
        if options.is_empty() { Ok(()) } else { write!(f, " <{}>", options.join(",")) }
    }
}
