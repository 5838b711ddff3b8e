//! Finds the flow of a frame.

use farpace_wire::ip::{PROTOCOL_TCP, PROTOCOL_UDP};
use farpace_wire::{EtherType, EthernetHeader, IpView, Ipv4View, Ipv6View, MacAddr, TcpFlags, TcpView};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use thiserror::Error;

/// One direction of a conversation at one interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowKey {
    /// The interface of the capture.
    pub interface: u32,
    /// VLAN identifiers, outermost first.
    pub vlans: [Option<u16>; 2],
    /// The end points.
    pub carries: Carries,
}

/// The end points of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Carries {
    /// TCP or UDP.
    Ports {
        /// Protocol number.
        protocol: u8,
        /// Source.
        src: SocketAddr,
        /// Destination.
        dst: SocketAddr,
    },
    /// Other protocols over IP, and packets whose ports were not captured.
    Addresses {
        /// Protocol number.
        protocol: u8,
        /// Source.
        src: IpAddr,
        /// Destination.
        dst: IpAddr,
        /// True for fragments.
        fragments: bool,
    },
    /// Frames that are not IP, or whose IP header was not captured.
    Frames {
        /// Source.
        src: MacAddr,
        /// Destination.
        dst: MacAddr,
        /// The EtherType.
        ether_type: EtherType,
    },
}

/// Length of a TCP header without options. Options count as part of a segment for the MSS (RFC 6691).
const MIN_TCP_LEN: usize = 20;

/// What the headers of a frame contain.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenFlows {
    pub key: FlowKey,
    /// The kind of a MAC control frame; none for other frames.
    pub control: Option<ControlFrame>,
    /// Bytes before the IP header.
    pub link_header: usize,
    /// Length of headers without TCP options, for TCP frames with a complete header.
    pub tcp_headers: Option<usize>,
    /// The MSS option of a SYN.
    pub mss: Option<u16>,
}

/// A MAC control frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ControlFrame {
    /// PAUSE with a time of zero: a gap frame.
    Gap,
    /// Any other: PAUSE with a time, or another opcode.
    Other,
}

/// Parses as much as was captured. None if the Ethernet header is incomplete.
pub(super) fn look(interface: u32, bytes: &[u8]) -> Option<SeenFlows> {
    let (ethernet, link_header) = EthernetHeader::parse(bytes).ok()?;
    let mut vlans = [None; 2];
    for (vlan, tag) in vlans.iter_mut().zip(&ethernet.tags) {
        *vlan = Some(tag.control & 0x0fff);
    }
    let rest = bytes.get(link_header..).unwrap_or_default();
    let ip = match ethernet.ether_type {
        EtherType::IPV4 => Ipv4View::parse(rest).ok().map(IpView::V4),
        EtherType::IPV6 => Ipv6View::parse(rest).ok().map(IpView::V6),
        _ => None,
    };
    let (src, dst, ether_type) = (ethernet.src, ethernet.dst, ethernet.ether_type);
    let mut seen = SeenFlows {
        key: FlowKey { interface, vlans, carries: Carries::Frames { src, dst, ether_type } },
        control: (ether_type == EtherType::MAC_CONTROL).then(|| control(rest)),
        link_header,
        tcp_headers: None,
        mss: None,
    };
    if let Some(ip) = ip {
        look_into(&mut seen, &ip, rest.get(ip.header_len()..).unwrap_or_default());
    }
    Some(seen)
}

/// IEEE 802.3 §31B: an opcode of two bytes, 1 for PAUSE, and the time.
fn control(bytes: &[u8]) -> ControlFrame {
    if bytes.starts_with(&[0, 1, 0, 0]) { ControlFrame::Gap } else { ControlFrame::Other }
}

fn look_into(seen: &mut SeenFlows, ip: &IpView<'_>, transport: &[u8]) {
    let (protocol, fragments) = (ip.protocol(), ip.is_fragment());
    let ports = transport.first_chunk::<4>().filter(|_| !fragments);
    seen.key.carries = match (protocol, ports) {
        (PROTOCOL_TCP | PROTOCOL_UDP, Some([a, b, c, d])) => Carries::Ports {
            protocol,
            src: SocketAddr::new(ip.src(), u16::from_be_bytes([*a, *b])),
            dst: SocketAddr::new(ip.dst(), u16::from_be_bytes([*c, *d])),
        },
        _ => Carries::Addresses { protocol, src: ip.src(), dst: ip.dst(), fragments },
    };
    if protocol == PROTOCOL_TCP
        && !fragments
        && let Ok(tcp) = TcpView::parse(transport)
    {
        seen.tcp_headers = Some(seen.link_header + ip.header_len() + MIN_TCP_LEN);
        if tcp.flags().contains(TcpFlags::SYN) {
            seen.mss = tcp.header().options.mss;
        }
    }
}

impl FlowKey {
    /// The key of the other direction.
    #[must_use]
    pub fn reversed(self) -> FlowKey {
        let carries = match self.carries {
            Carries::Ports { protocol, src, dst } => Carries::Ports { protocol, src: dst, dst: src },
            Carries::Addresses { protocol, src, dst, fragments } => {
                Carries::Addresses { protocol, src: dst, dst: src, fragments }
            }
            Carries::Frames { src, dst, ether_type } => Carries::Frames { src: dst, dst: src, ether_type },
        };
        FlowKey { carries, ..self }
    }
    /// Name of the protocol: `TCP`, `UDP`, `ICMP`, `IP 47`, `0x0806`.
    pub fn protocol(&self) -> String {
        match self.carries {
            Carries::Ports { protocol, .. } | Carries::Addresses { protocol, .. } => match protocol {
                1 => "ICMP".to_owned(),
                6 => "TCP".to_owned(),
                17 => "UDP".to_owned(),
                58 => "ICMPv6".to_owned(),
                n => format!("IP {n}"),
            },
            Carries::Frames { ether_type: EtherType::ARP, .. } => "ARP".to_owned(),
            Carries::Frames { ether_type, .. } => format!("{ether_type:?}"),
        }
    }
}

impl fmt::Display for FlowKey {
    /// `UDP 10.0.0.1:5001 > 10.0.0.2:5001 vlan 7`, without the interface.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.protocol())?;
        match self.carries {
            Carries::Ports { src, dst, .. } => write!(f, "{src} > {dst}")?,
            Carries::Addresses { src, dst, fragments, .. } => {
                write!(f, "{src} > {dst}{}", if fragments { " fragments" } else { "" })?;
            }
            Carries::Frames { src, dst, .. } => write!(f, "{src} > {dst}")?,
        }
        self.vlans.iter().flatten().try_for_each(|vlan| write!(f, " vlan {vlan}"))
    }
}

/// Selects flows by address, port, or both, of either end or of a given end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProofFilter {
    end: EndFilter,
    address: Option<IpAddr>,
    port: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndFilter {
    Source,
    Destination,
    Either,
}

/// The text is not a valid [`ProofFilter`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` is not a flow filter: expected an address, a port, or both, like \"10.0.0.1\", \"5001\", \
     \"10.0.0.1:5001\" or \"[2001:db8::1]:5001\""
)]
pub struct ProofFilterError(String);

impl FromStr for ProofFilter {
    type Err = ProofFilterError;
    fn from_str(text: &str) -> Result<Self, ProofFilterError> {
        let (end, what) = match text.split_once(' ') {
            Some(("src", rest)) => (EndFilter::Source, rest.trim()),
            Some(("dst", rest)) => (EndFilter::Destination, rest.trim()),
            _ => (EndFilter::Either, text),
        };
        let (address, port) = if let Ok(both) = what.parse::<SocketAddr>() {
            (Some(both.ip()), Some(both.port()))
        } else if let Ok(address) = what.parse() {
            (Some(address), None)
        } else {
            let port = what.strip_prefix(':').unwrap_or(what).parse();
            (None, Some(port.map_err(|_| ProofFilterError(text.to_owned()))?))
        };
        Ok(ProofFilter { end, address, port })
    }
}

impl fmt::Display for ProofFilter {
    /// In the syntax of `FromStr`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.end {
            EndFilter::Source => "src ",
            EndFilter::Destination => "dst ",
            EndFilter::Either => "",
        })?;
        match (self.address, self.port) {
            (Some(address), Some(port)) => SocketAddr::new(address, port).fmt(f),
            (Some(address), None) => address.fmt(f),
            (None, port) => port.unwrap_or(0).fmt(f),
        }
    }
}

impl ProofFilter {
    /// True if a selected end has the address and the port.
    pub fn matches(&self, flow: &FlowKey) -> bool {
        let ends = match flow.carries {
            Carries::Ports { src, dst, .. } => [src, dst].map(|end| (end.ip(), Some(end.port()))),
            Carries::Addresses { src, dst, .. } => [(src, None), (dst, None)],
            Carries::Frames { .. } => return false,
        };
        let selected = match self.end {
            EndFilter::Source => ends.get(..1),
            EndFilter::Destination => ends.get(1..),
            EndFilter::Either => ends.get(..),
        };
        selected.unwrap_or_default().iter().any(|(address, port)| {
            self.address.is_none_or(|wanted| wanted == *address)
                && self.port.is_none_or(|wanted| Some(wanted) == *port)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_wire::{AddressPair, Below, TcpHeader, UdpHeader};

    fn frame(tcp: bool) -> Vec<u8> {
        let addresses = AddressPair::V4([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let below = Below::new(MacAddr([2; 6]), MacAddr([4; 6]), addresses, 64);
        let payload = bytes::Bytes::from_static(&[0; 50]);
        let packet = if tcp {
            let mut header =
                TcpHeader { src_port: 7, dst_port: 9, flags: TcpFlags::SYN, ..TcpHeader::default() };
            header.options.mss = Some(1_460);
            below.tcp(1, &header, payload)
        } else {
            below.udp(1, UdpHeader { src_port: 7, dst_port: 9 }, payload).unwrap()
        };
        let mut bytes = Vec::new();
        packet.write_frame(&mut bytes);
        bytes
    }

    /// Breaks: captures with truncated frames yield the right flows, as far as the headers reach.
    #[test]
    fn truncated_frames_are_parsed_as_far_as_possible() {
        let whole = frame(false);
        let shown = |len: usize| look(0, &whole[..len]).map(|seen| seen.key.to_string());
        assert_eq!(shown(whole.len()).as_deref(), Some("UDP 10.0.0.1:7 > 10.0.0.2:9"));
        assert_eq!(shown(38), shown(whole.len()), "the ports were captured");
        assert_eq!(shown(37).as_deref(), Some("UDP 10.0.0.1 > 10.0.0.2"));
        assert_eq!(shown(33).as_deref(), Some("0x0800 02:02:02:02:02:02 > 04:04:04:04:04:04"));
        assert_eq!(shown(13), None);
        let syn = look(0, &frame(true)).unwrap();
        assert_eq!((syn.mss, syn.tcp_headers), (Some(1_460), Some(14 + 20 + 20)));
    }

    /// Breaks: gap frames are distinguished from requests to pause, and VLANs from each other.
    #[test]
    fn control_frames_and_vlans_are_distinguished() {
        let mut pause = [[1, 0x80, 0xc2, 0, 0, 1], [2; 6]].concat();
        pause.extend([0x88, 0x08, 0, 1, 0, 0]);
        assert_eq!(look(0, &pause).unwrap().control, Some(ControlFrame::Gap));
        pause[17] = 9;
        assert_eq!(look(0, &pause).unwrap().control, Some(ControlFrame::Other));
        let mut tagged = frame(false);
        tagged.splice(12..12, [0x81, 0, 0xe0, 7]);
        let seen = look(3, &tagged).unwrap();
        assert_eq!(seen.key.to_string(), "UDP 10.0.0.1:7 > 10.0.0.2:9 vlan 7");
        assert_eq!(seen.key.reversed().to_string(), "UDP 10.0.0.2:9 > 10.0.0.1:7 vlan 7");
        assert_eq!(seen.control, None);
    }

    /// Breaks: `--flow` selects exactly the named flows, and refuses invalid filters.
    #[test]
    fn filters_match_either_end() {
        let key = look(0, &frame(false)).unwrap().key;
        for (text, expected) in [
            ("10.0.0.1", true),
            ("10.0.0.2", true),
            ("10.0.0.3", false),
            ("9", true),
            (":7", true),
            ("8", false),
            ("10.0.0.2:9", true),
            ("10.0.0.1:9", false),
            ("[::1]:9", false),
            ("src 10.0.0.1", true),
            ("dst 10.0.0.1", false),
            ("src 9", false),
            ("dst 10.0.0.2:9", true),
        ] {
            let filter: ProofFilter = text.parse().unwrap();
            assert_eq!(filter.matches(&key), expected, "{text}");
            assert_eq!(filter.to_string().parse(), Ok(filter), "{text}");
        }
        for text in ["", "10.0.0", "70000", "host", "10.0.0.1:x", "src", "from 7"] {
            assert!(text.parse::<ProofFilter>().unwrap_err().to_string().contains("like"), "{text}");
        }
    }
}
