//! Packets as bytes, written and read by code of the tests' own.

use std::net::Ipv4Addr;

const IP_LEN: usize = 20;
const TCP_LEN: usize = 20;

/// A TCP segment in an IPv4 packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tcp {
    pub src_port: u16,
    pub dst_port: u16,
    pub seq: u32,
    pub ack: u32,
    pub flags: u16,
    pub window: u16,
    pub urgent: u16,
    pub options: Vec<u8>,
    pub payload: Vec<u8>,
    /// The byte that holds DSCP and ECN.
    pub tos: u8,
    pub ttl: u8,
}

fn sum(bytes: &[u8], begin: u32) -> u32 {
    bytes.chunks(2).fold(begin, |sum, c| sum + u32::from(c[0]) * 256 + c.get(1).map_or(0, |b| u32::from(*b)))
}

fn folded(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn ip_header(from: Ipv4Addr, to: Ipv4Addr, protocol: u8, tos: u8, len: usize) -> Vec<u8> {
    let mut ip = vec![0x45, tos];
    ip.extend(((IP_LEN + len) as u16).to_be_bytes());
    ip.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
    ip.extend(from.octets());
    ip.extend(to.octets());
    let check = folded(sum(&ip, 0));
    ip[10..12].copy_from_slice(&check.to_be_bytes());
    ip
}

impl Tcp {
    pub fn encode(&self, from: Ipv4Addr, to: Ipv4Addr) -> Vec<u8> {
        let mut options = self.options.clone();
        options.resize(options.len().next_multiple_of(4), 0);
        let mut tcp = Vec::new();
        tcp.extend(self.src_port.to_be_bytes());
        tcp.extend(self.dst_port.to_be_bytes());
        tcp.extend(self.seq.to_be_bytes());
        tcp.extend(self.ack.to_be_bytes());
        let words = ((TCP_LEN + options.len()) / 4) as u16;
        tcp.extend((words << 12 | self.flags).to_be_bytes());
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0, 0]);
        tcp.extend(self.urgent.to_be_bytes());
        tcp.extend(options);
        tcp.extend(&self.payload);
        let pseudo = sum(&from.octets(), sum(&to.octets(), 6 + tcp.len() as u32));
        let check = folded(sum(&tcp, pseudo));
        tcp[16..18].copy_from_slice(&check.to_be_bytes());
        let mut packet = ip_header(from, to, 6, self.tos, tcp.len());
        packet.extend(tcp);
        packet
    }

    /// The segment in an IPv4 packet, and where it goes; none: it is none.
    pub fn decode(packet: &[u8]) -> Option<(Tcp, Ipv4Addr)> {
        let ihl = usize::from(packet.first()? & 15) * 4;
        if packet[0] >> 4 != 4 || *packet.get(9)? != 6 {
            return None;
        }
        let total = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
        let to = Ipv4Addr::new(*packet.get(16)?, packet[17], packet[18], packet[19]);
        let tcp = packet.get(ihl..total)?;
        let word = |at: usize| Some(u16::from_be_bytes([*tcp.get(at)?, *tcp.get(at + 1)?]));
        let long = |at: usize| Some(u32::from(word(at)?) << 16 | u32::from(word(at + 2)?));
        let offset = usize::from(tcp.get(12)? >> 4) * 4;
        let segment = Tcp {
            src_port: word(0)?,
            dst_port: word(2)?,
            seq: long(4)?,
            ack: long(8)?,
            flags: word(12)? & 0x1ff,
            window: word(14)?,
            urgent: word(18)?,
            options: tcp.get(TCP_LEN..offset)?.to_vec(),
            payload: tcp.get(offset..)?.to_vec(),
            tos: packet[1],
            ttl: packet[8],
        };
        Some((segment, to))
    }

    /// An ICMP error about this segment, from its destination `from`, where it was sent by `to`.
    pub fn icmp_error(&self, kind: u8, code: u8, mtu: u16, from: Ipv4Addr, to: Ipv4Addr) -> Vec<u8> {
        let quoted = self.encode(to, from);
        let mut icmp = vec![kind, code, 0, 0, 0, 0];
        icmp.extend(mtu.to_be_bytes());
        icmp.extend(&quoted[..quoted.len().min(IP_LEN + 20)]);
        let check = folded(sum(&icmp, 0));
        icmp[2..4].copy_from_slice(&check.to_be_bytes());
        let mut packet = ip_header(from, to, 1, 0, icmp.len());
        packet.extend(icmp);
        packet
    }
}

/// An option of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TcpOption {
    End,
    Nop,
    Mss(u16),
    Scale(u8),
    SackOk,
    Sack(Vec<(u32, u32)>),
    Times(u32, u32),
    Other(u8, Vec<u8>),
}

pub fn options(mut bytes: &[u8]) -> Vec<TcpOption> {
    let mut all = Vec::new();
    while let Some(&kind) = bytes.first() {
        if kind < 2 {
            all.push(if kind == 0 { TcpOption::End } else { TcpOption::Nop });
            bytes = &bytes[1..];
            continue;
        }
        let len = bytes.get(1).map_or(0, |l| usize::from(*l));
        let Some(data) = bytes.get(2..len).filter(|_| len >= 2) else {
            all.push(TcpOption::Other(kind, bytes.to_vec()));
            break;
        };
        let long = |at: usize| u32::from_be_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]]);
        all.push(match (kind, data.len()) {
            (2, 2) => TcpOption::Mss(u16::from_be_bytes([data[0], data[1]])),
            (3, 1) => TcpOption::Scale(data[0]),
            (4, 0) => TcpOption::SackOk,
            (5, n) if n % 8 == 0 => {
                TcpOption::Sack((0..n / 8).map(|i| (long(i * 8), long(i * 8 + 4))).collect())
            }
            (8, 8) => TcpOption::Times(long(0), long(4)),
            _ => TcpOption::Other(kind, data.to_vec()),
        });
        bytes = &bytes[len..];
    }
    all
}
