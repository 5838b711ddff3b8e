//! Why bytes are not what they claim to be.

use std::fmt;

/// The part of a frame that an error is about.
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

/// Bytes that are not a well-formed header, or a header that is not the one asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The bytes end inside the header.
    #[error("{layer} header needs {need} bytes, there are {have}")]
    Truncated {
        /// Where.
        layer: Layer,
        /// Bytes the header needs, as far as it can be known.
        need: usize,
        /// Bytes there are.
        have: usize,
    },
    /// The version nibble is not the one the EtherType promised.
    #[error("{layer} header says version {version}")]
    Version {
        /// Where.
        layer: Layer,
        /// What the header says.
        version: u8,
    },
    /// The header length field is below the least one, or no longer where the payload begins.
    #[error("{layer} header length of {len} bytes is impossible here")]
    HeaderLength {
        /// Where.
        layer: Layer,
        /// What the header says, in bytes.
        len: usize,
    },
    /// The length field of the IP or UDP header does not agree with the bytes there are.
    #[error("{layer} length field says {says} bytes, there are {have}")]
    TotalLength {
        /// Where.
        layer: Layer,
        /// What the header says, in bytes.
        says: usize,
        /// Bytes there are.
        have: usize,
    },
    /// A header written with options that are not whole 32-bit words or do not fit, or with a payload beyond
    /// what the length field can say.
    #[error("{layer} header cannot be written with these lengths")]
    CannotEncode {
        /// Where.
        layer: Layer,
    },
    /// A TCP option whose length is below 2 or reaches past the header (RFC 9293 §3.1, MUST-7).
    #[error("TCP option {kind} has a bad length")]
    Option {
        /// The option's kind.
        kind: u8,
    },
    /// The frame carries no IP.
    #[error("EtherType {0:#06x} is not IP")]
    NotIp(u16),
    /// The IP packet carries no TCP.
    #[error("IP protocol {0} is not TCP")]
    NotTcp(u8),
    /// The IP packet carries no UDP.
    #[error("IP protocol {0} is not UDP")]
    NotUdp(u8),
    /// The IP packet carries no ICMP of its own IP version.
    #[error("IP protocol {0} is not ICMP")]
    NotIcmp(u8),
    /// The frame carries no ARP.
    #[error("EtherType {0:#06x} is not ARP")]
    NotArp(u16),
    /// The frame carries no MAC control.
    #[error("EtherType {0:#06x} is not MAC control")]
    NotMacControl(u16),
    /// ARP for other networks than Ethernet and IPv4.
    #[error("ARP for something other than IPv4 over Ethernet")]
    ForeignArp,
    /// An option of neighbour discovery whose length is zero or reaches past the message (RFC 4861 §4.6).
    #[error("neighbour discovery option {kind} has a bad length")]
    NeighbourOption {
        /// The option's kind.
        kind: u8,
    },
    /// The IP packet is a fragment where a whole one is needed, or the other way round.
    #[error("a fragment of an IP packet")]
    Fragment,
    /// A checksum is wrong.
    #[error("{layer} checksum is wrong")]
    Checksum {
        /// Where.
        layer: Layer,
    },
}
