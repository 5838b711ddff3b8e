//! Errors of parsing and building packets.

use std::fmt;

/// The layer that an error is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// Ethernet, with its VLAN tags.
    Ethernet,
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// ICMP for IPv4 or IPv6.
    Icmp,
    /// ARP.
    Arp,
    /// MAC control: PAUSE.
    MacControl,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Layer::Ethernet => "Ethernet",
            Layer::Ipv4 => "IPv4",
            Layer::Ipv6 => "IPv6",
            Layer::Tcp => "TCP",
            Layer::Udp => "UDP",
            Layer::Icmp => "ICMP",
            Layer::Arp => "ARP",
            Layer::MacControl => "MAC control",
        })
    }
}

/// Bytes that are not a well-formed header, or an unexpected header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The bytes end inside the header.
    #[error("{layer} header needs {need} bytes, there are {have}")]
    Truncated {
        /// The layer.
        layer: Layer,
        /// Required bytes, as far as known.
        need: usize,
        /// Available bytes.
        have: usize,
    },
    /// The version field contradicts the EtherType.
    #[error("{layer} header has version {version}")]
    Version {
        /// The layer.
        layer: Layer,
        /// The version field.
        version: u8,
    },
    /// The header length field is below the minimum, or inconsistent with the position of the payload.
    #[error("{layer} header length of {len} bytes is impossible here")]
    HeaderLength {
        /// The layer.
        layer: Layer,
        /// The header length field, in bytes.
        len: usize,
    },
    /// The length field of the IP or UDP header contradicts the number of bytes.
    #[error("{layer} length field is {length} bytes, but {have} are present")]
    TotalLength {
        /// The layer.
        layer: Layer,
        /// The length field, in bytes.
        length: usize,
        /// Available bytes.
        have: usize,
    },
    /// The header cannot be written: options are not whole 32-bit words or do not fit, or the payload exceeds
    /// the length field.
    #[error("{layer} header cannot be written with these lengths")]
    CannotEncode {
        /// The layer.
        layer: Layer,
    },
    /// A TCP option whose length is below 2 or reaches past the header (RFC 9293 §3.1, MUST-7).
    #[error("TCP option {kind} has a bad length")]
    Option {
        /// The kind of the option.
        kind: u8,
    },
    /// The frame does not carry IP.
    #[error("EtherType {0:#06x} is not IP")]
    NotIp(u16),
    /// The IP packet does not carry TCP.
    #[error("IP protocol {0} is not TCP")]
    NotTcp(u8),
    /// The IP packet does not carry UDP.
    #[error("IP protocol {0} is not UDP")]
    NotUdp(u8),
    /// The IP packet does not carry the ICMP of its IP version.
    #[error("IP protocol {0} is not ICMP")]
    NotIcmp(u8),
    /// The frame does not carry ARP.
    #[error("EtherType {0:#06x} is not ARP")]
    NotArp(u16),
    /// The frame does not carry MAC control.
    #[error("EtherType {0:#06x} is not MAC control")]
    NotMacControl(u16),
    /// ARP for networks other than IPv4 over Ethernet.
    #[error("ARP for something other than IPv4 over Ethernet")]
    ForeignArp,
    /// The length of a neighbour discovery option is zero or exceeds the message (RFC 4861 §4.6).
    #[error("neighbour discovery option {kind} has a bad length")]
    NeighbourOption {
        /// The kind of the option.
        kind: u8,
    },
    /// The IP packet is a fragment where a whole packet is required, or the reverse.
    #[error("a fragment of an IP packet")]
    Fragment,
    /// A checksum is wrong.
    #[error("{layer} checksum is wrong")]
    Checksum {
        /// The layer.
        layer: Layer,
    },
}
