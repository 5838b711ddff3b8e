//! The list of all NICs of a host, behind an ARP packet or in neighbour discovery (Kato and Higaki,
//! *Reduction of TCP Retransmission for Higher Throughput with Multiple-Route Transmission in Ethernet LAN*;
//! the paper does not define the format).

use crate::arp::{ARP_LEN, Arp, ArpOperation, PREFIX};
use crate::ethernet::MacAddr;
use crate::nic_kind::NicKind;
use arrayvec::ArrayVec;
use crc::{CRC_32_ISCSI, Crc};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

/// Maximum number of NICs of a host in a list.
pub const MAX_LISTED_NICS: usize = 16;

/// NICs with their kinds, in the order of their host.
pub type NicList = ArrayVec<(MacAddr, NicKind), MAX_LISTED_NICS>;

/// All NICs of the host with an IP address.
///
/// # On the wire
/// Big-endian: number of senders, number of targets (a byte each), the owner's address (4 bytes, 16 for
/// IPv6), the kind of the first sender, whose MAC address is in the message itself; then six bytes of MAC
/// address and one of kind for each other sender and each target; then `0xe5a1`, version 1, flags, generation
/// (2 bytes), the total length (2 bytes), and a CRC-32C over all preceding bytes.
///
/// Behind an ARP packet it begins at byte [`ARP_AT`](Self::ARP_AT), the end of a minimum frame, after zeros.
/// A host without this extension takes it for padding. In neighbour discovery it is an option (see
/// [`ND_OPTION`](Self::ND_OPTION)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// The owner of the senders: the sender of the ARP packet.
    pub owner: IpAddr,
    /// All NICs of the owner, first the one that the message itself names. Between 1 and [`MAX_LISTED_NICS`]:
    /// an empty list is invalid.
    pub senders: NicList,
    /// The NICs of the peer, as far as the owner knows them.
    pub targets: NicList,
    /// Capabilities of the owner.
    pub flags: NicFlags,
    /// Incremented (RFC 1982) with each change of the owner's NICs.
    pub generation: u16,
}

/// Capabilities of a host with several NICs. Unknown bits are preserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NicFlags(pub u8);

impl NicFlags {
    /// It replies to probes of paths between NICs.
    pub const ANSWERS_PROBES: NicFlags = NicFlags(1);
    /// It puts reordered frames in order.
    pub const RESEQUENCES: NicFlags = NicFlags(2);
    /// It requests missing frames, and retransmits frames on request.
    pub const REPAIRS: NicFlags = NicFlags(4);

    /// The union of both.
    #[must_use]
    pub const fn with(self, other: NicFlags) -> NicFlags {
        NicFlags(self.0 | other.0)
    }
    /// True if all of `other` is among them.
    pub const fn contains(self, other: NicFlags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Why a list of NICs is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum ExtensionError {
    /// The ARP packet is for other networks than IPv4 over Ethernet.
    #[error("ARP for something other than IPv4 over Ethernet")]
    ForeignArp,
    /// The ARP packet is neither a request nor a reply.
    #[error("neither a request nor a reply")]
    Operation,
    /// No sender.
    #[error("a list without NICs")]
    NoNics,
    /// More than [`MAX_LISTED_NICS`] senders, or targets.
    #[error("a list of more than {MAX_LISTED_NICS} NICs")]
    TooManyNics,
    /// The frame ends before the list does.
    #[error("the frame is shorter than its list")]
    Truncated,
    /// The magic number of a list is missing.
    #[error("the magic number of a list is missing")]
    Magic,
    /// The version is unknown.
    #[error("unknown version")]
    Version,
    /// The length field does not match the numbers of NICs.
    #[error("the length field is wrong")]
    Length,
    /// The CRC is wrong.
    #[error("the CRC is wrong")]
    Checksum,
    /// The owner is not the sender of the message, or is not one host's address.
    #[error("the owner is not the sender, or not one host")]
    Owner,
    /// A MAC address is a group address or zero.
    #[error("a MAC address that is a group address or zero")]
    GroupMac,
    /// The list contains a MAC address twice.
    #[error("a repeated MAC address")]
    RepeatedMac,
}

/// Bytes of a MAC address and a kind.
const NIC_LEN: usize = 7;
/// Length of the part after the NICs: magic number, version, flags, generation, length, CRC.
const TAIL_LEN: usize = 12;
/// Bytes of the CRC.
const CRC_LEN: usize = 4;
const MAGIC: [u8; 2] = [0xe5, 0xa1];
const VERSION: u8 = 1;
const CRC_32C: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);

impl Extension {
    /// Offset in the bytes after the Ethernet header of an ARP packet: the end of a minimum frame.
    pub const ARP_AT: usize = 46;
    /// Kind of the neighbour discovery option: the first that RFC 4727 §5 reserves for experiments. After
    /// kind and length follow the list, with the 16 bytes of the owner's IPv6 address, and zeros up to a
    /// multiple of 8. The link-layer address of the message is that of the first NIC. The owner is the source
    /// of a solicitation and the target of an advertisement.
    pub const ND_OPTION: u8 = 253;

    /// A list of `owner`'s NICs, without targets. NICs beyond [`MAX_LISTED_NICS`] are ignored.
    pub fn new(owner: IpAddr, nics: &[(MacAddr, NicKind)], flags: NicFlags, generation: u16) -> Extension {
        let senders = nics.iter().copied().take(MAX_LISTED_NICS).collect();
        Extension { owner, senders, targets: NicList::new(), flags, generation }
    }

    /// The bytes of the list alone.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![self.senders.len() as u8, self.targets.len() as u8];
        match self.owner {
            IpAddr::V4(owner) => out.extend_from_slice(&owner.octets()),
            IpAddr::V6(owner) => out.extend_from_slice(&owner.octets()),
        }
        out.push(self.senders.first().map_or(0, |(_, kind)| kind.0));
        for (mac, kind) in self.senders.iter().skip(1).chain(&self.targets) {
            out.extend_from_slice(&mac.0);
            out.push(kind.0);
        }
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[VERSION, self.flags.0]);
        out.extend_from_slice(&self.generation.to_be_bytes());
        out.extend_from_slice(&((out.len() + 2 + CRC_LEN) as u16).to_be_bytes());
        let crc = CRC_32C.checksum(&out);
        out.extend_from_slice(&crc.to_be_bytes());
        out
    }

    /// Parses the list at the beginning of `bytes`, in a message that maps `owner` to `first`. None if there
    /// is no list: neither the owner's address nor the magic number is in its place. Bytes after the list are
    /// ignored.
    ///
    /// # Errors
    /// The list is invalid; no part of it may be used. Checks that depend on the receiver (own NICs, old
    /// generations) are left to the caller.
    pub fn parse(owner: IpAddr, first: MacAddr, bytes: &[u8]) -> Result<Option<Extension>, ExtensionError> {
        let owner_len = if owner.is_ipv4() { 4 } else { 16 };
        let (Some(&[n_s, n_t]), Some(owner_bytes)) = (bytes.first_chunk(), bytes.get(2..2 + owner_len))
        else {
            return Ok(None);
        };
        let is_owner = match owner {
            IpAddr::V4(owner) => owner_bytes == owner.octets(),
            IpAddr::V6(owner) => owner_bytes == owner.octets(),
        };
        let nics_at = 2 + owner_len + 1;
        let others = usize::from(n_s).saturating_sub(1);
        let tail_at = nics_at + NIC_LEN * (others + usize::from(n_t));
        let magic = bytes.get(tail_at..tail_at + MAGIC.len());
        let has_magic = n_s > 0 && magic == Some(&MAGIC);
        // An ARP probe has an unspecified sender and zeros as padding.
        if !has_magic && (!is_owner || owner.is_unspecified()) {
            return Ok(None);
        }
        if n_s == 0 {
            return Err(ExtensionError::NoNics);
        }
        if usize::from(n_s.max(n_t)) > MAX_LISTED_NICS {
            return Err(ExtensionError::TooManyNics);
        }
        let whole = bytes.get(..tail_at + TAIL_LEN).ok_or(ExtensionError::Truncated)?;
        if !has_magic {
            return Err(ExtensionError::Magic);
        }
        let (nics, tail) = whole.split_at(tail_at);
        let &[_, _, version, flags, g0, g1, l0, l1, c0, c1, c2, c3] = tail else {
            return Err(ExtensionError::Truncated);
        };
        if version != VERSION {
            return Err(ExtensionError::Version);
        }
        if usize::from(u16::from_be_bytes([l0, l1])) != whole.len() {
            return Err(ExtensionError::Length);
        }
        if CRC_32C.checksum(&whole[..whole.len() - CRC_LEN]) != u32::from_be_bytes([c0, c1, c2, c3]) {
            return Err(ExtensionError::Checksum);
        }
        if !is_owner || !is_one_host(owner) {
            return Err(ExtensionError::Owner);
        }
        let (listed, _) = nics.get(nics_at..).unwrap_or_default().as_chunks::<NIC_LEN>();
        let listed =
            listed.iter().map(|&[a, b, c, d, e, f, kind]| (MacAddr([a, b, c, d, e, f]), NicKind(kind)));
        let first = (first, NicKind(nics.get(nics_at - 1).copied().unwrap_or_default()));
        let all: ArrayVec<_, { 2 * MAX_LISTED_NICS }> = std::iter::once(first).chain(listed).collect();
        for (at, (mac, _)) in all.iter().enumerate() {
            if mac.is_multicast() || *mac == MacAddr::default() {
                return Err(ExtensionError::GroupMac);
            }
            if all.iter().take(at).any(|(before, _)| before == mac) {
                return Err(ExtensionError::RepeatedMac);
            }
        }
        Ok(Some(Extension {
            owner,
            senders: all.iter().copied().take(usize::from(n_s)).collect(),
            targets: all.iter().copied().skip(usize::from(n_s)).collect(),
            flags: NicFlags(flags),
            generation: u16::from_be_bytes([g0, g1]),
        }))
    }

    /// The list behind the ARP packet in `bytes`, the bytes after the Ethernet header. None if there is no
    /// list.
    ///
    /// # Errors
    /// The list is invalid; the ARP packet before it may be valid.
    pub fn parse_arp(bytes: &[u8]) -> Result<Option<Extension>, ExtensionError> {
        let Some(&[h0, h1, p0, p1, hln, pln, o0, o1, a, b, c, d, e, f, s0, s1, s2, s3]) = bytes.first_chunk()
        else {
            return Ok(None);
        };
        let (owner, first) = (Ipv4Addr::new(s0, s1, s2, s3), MacAddr([a, b, c, d, e, f]));
        let found = Extension::parse(owner.into(), first, bytes.get(Self::ARP_AT..).unwrap_or_default());
        if found == Ok(None) {
            return found;
        }
        if [h0, h1, p0, p1, hln, pln] != PREFIX {
            return Err(ExtensionError::ForeignArp);
        }
        match ArpOperation::from_number(u16::from_be_bytes([o0, o1])) {
            ArpOperation::Request | ArpOperation::Reply => found,
            ArpOperation::Other(_) => Err(ExtensionError::Operation),
        }
    }

    /// The neighbour discovery option, with kind, length and padding.
    pub fn encode_option(&self) -> Vec<u8> {
        let mut out = vec![Self::ND_OPTION, 0];
        out.extend_from_slice(&self.encode());
        out.resize(out.len().next_multiple_of(8), 0);
        out[1] = (out.len() / 8) as u8;
        out
    }
}

impl Arp {
    /// The bytes after the Ethernet header, followed by a list of NICs.
    pub fn encode_with(&self, extension: &Extension) -> Vec<u8> {
        let mut out = Vec::from(self.encode());
        debug_assert!(out.len() == ARP_LEN);
        out.resize(Extension::ARP_AT, 0);
        out.extend_from_slice(&extension.encode());
        out
    }
}

fn is_one_host(address: IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    !(is_broadcast || address.is_multicast() || address.is_unspecified() || address.is_loopback())
}

impl fmt::Display for NicFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = [
            (NicFlags::ANSWERS_PROBES, "answers probes"),
            (NicFlags::RESEQUENCES, "resequences"),
            (NicFlags::REPAIRS, "repairs"),
        ];
        let mut words: Vec<_> = named
            .iter()
            .filter(|(flag, _)| self.contains(*flag))
            .map(|(_, name)| (*name).to_owned())
            .collect();
        let rest = named.iter().fold(self.0, |rest, (flag, _)| rest & !flag.0);
        if rest != 0 {
            words.push(format!("{rest:#04x}"));
        }
        f.write_str(if words.is_empty() { "none" } else { "" })?;
        f.write_str(&words.join(", "))
    }
}
