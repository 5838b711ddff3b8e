//! Putting fragments together (RFC 791 §3.2, RFC 8200 §4.5), with limits on everything that a sender
//! controls.

use farpace_units::{Instant, Span};
use farpace_wire::ip::PROTOCOL_TCP;
use farpace_wire::{AddressPair, Ecn, Packet, join};
use std::collections::{BTreeMap, BTreeSet};

/// How long a datagram may take to come together.
pub const REASSEMBLY_TIME: Span = Span::from_secs(30);
/// Datagrams in the making at most.
pub const MAX_DATAGRAMS: usize = 256;
/// Fragments of one datagram at most: enough for 65535 bytes in fragments of 552.
pub const MAX_FRAGMENTS: usize = 128;
/// Bytes of all fragments inside at most, each counted with [`FRAGMENT_COST`].
pub const MAX_FRAGMENT_BYTES: usize = 4 << 20;
/// What a fragment costs besides its bytes, so that many small ones do not come cheap.
pub const FRAGMENT_COST: usize = 256;
/// Bytes of TCP that a first fragment must have: the header without options (RFC 1858 §3.1, RFC 7112).
pub const MIN_TCP: usize = 20;
/// Bytes of an IP packet at most.
const LONGEST: usize = 65_535;

/// Why a fragment was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FragmentDrop {
    /// It is there already.
    Duplicate,
    /// It overlaps another one, has other bytes at the same place, or reaches beyond the end: all of its
    /// datagram goes, also what is still to come (RFC 5722, RFC 8200 §4.5).
    Overlap,
    /// Its datagram would be longer than an IP packet can be.
    TooLong,
    /// It is empty, or not the last one and no multiple of 8 bytes long; or the datagram begins with a header
    /// that cannot be.
    Malformed,
    /// The first fragment does not have the whole TCP header.
    Tiny,
    /// Some of a datagram's fragments were marked by routers that should have seen that others may not be
    /// (RFC 3168 §5.3).
    EcnMix,
    /// Its datagram has more fragments than [`MAX_FRAGMENTS`].
    TooMany,
    /// Its datagram was the oldest when there was no room.
    Evicted,
    /// Its datagram did not come together in time.
    Expired,
}

impl FragmentDrop {
    /// How many there are.
    pub const COUNT: usize = 9;
    /// All of them, in the order of reports.
    pub const ALL: [FragmentDrop; Self::COUNT] = [
        FragmentDrop::Duplicate,
        FragmentDrop::Overlap,
        FragmentDrop::TooLong,
        FragmentDrop::Malformed,
        FragmentDrop::Tiny,
        FragmentDrop::EcnMix,
        FragmentDrop::TooMany,
        FragmentDrop::Evicted,
        FragmentDrop::Expired,
    ];
    /// The name in reports, snake_case.
    pub const fn name(self) -> &'static str {
        match self {
            FragmentDrop::Duplicate => "duplicate",
            FragmentDrop::Overlap => "overlap",
            FragmentDrop::TooLong => "too_long",
            FragmentDrop::Malformed => "malformed",
            FragmentDrop::Tiny => "tiny",
            FragmentDrop::EcnMix => "ecn_mix",
            FragmentDrop::TooMany => "too_many",
            FragmentDrop::Evicted => "evicted",
            FragmentDrop::Expired => "expired",
        }
    }
}

/// A datagram that came together.
#[derive(Debug)]
pub struct Whole {
    /// The datagram as it was before it was cut. Its transport checksum is still to be verified.
    pub packet: Packet,
    /// The fragments it was made of, in order, for whoever counts packets.
    pub parts: Vec<Packet>,
}

/// What the fragments of one datagram have in common. IPv6 leaves the protocol out (RFC 8200 §4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FragmentKey {
    addresses: AddressPair,
    ident: u32,
    protocol: Option<u8>,
}

#[derive(Debug)]
struct FragmentedDatagram {
    expires: Instant,
    /// By offset.
    parts: BTreeMap<usize, Packet>,
    /// Bytes of data in `parts`.
    bytes: usize,
    /// Bytes of data in all, once the last fragment is there.
    end: Option<usize>,
    /// Refused: fragments that still come are dropped.
    refused: Option<FragmentDrop>,
}

/// Datagrams in the making.
#[derive(Debug, Default)]
pub struct FragmentReassembly {
    datagrams: BTreeMap<FragmentKey, FragmentedDatagram>,
    /// Which expires next.
    timers: BTreeSet<(Instant, FragmentKey)>,
    held: u64,
    cost: usize,
    drops: [u64; FragmentDrop::COUNT],
    completed: u64,
}

impl FragmentReassembly {
    /// A fragment has come ([`IpView::fragment`](farpace_wire::IpView::fragment) says that it is one); its
    /// IPv4 header has been verified. Gives the datagram that it completes. Fragments that end here, this one
    /// or others, are appended to `dropped`.
    pub fn on_fragment(
        &mut self,
        now: Instant,
        packet: Packet,
        dropped: &mut Vec<(Packet, FragmentDrop)>,
    ) -> Option<Whole> {
        let mut drop = |drops: &mut [u64; FragmentDrop::COUNT], packet, why| {
            drops[why as usize] += 1;
            dropped.push((packet, why));
        };
        let Some((key, part)) = part_of(&packet) else {
            drop(&mut self.drops, packet, FragmentDrop::Malformed);
            return None;
        };
        if let Err(why) = part.check() {
            drop(&mut self.drops, packet, why);
            return None;
        }
        if !self.datagrams.contains_key(&key) {
            if self.datagrams.len() >= MAX_DATAGRAMS {
                self.drop_oldest(dropped);
            }
            let expires = now + REASSEMBLY_TIME;
            self.timers.insert((expires, key));
            let parts = BTreeMap::new();
            self.datagrams
                .insert(key, FragmentedDatagram { expires, parts, bytes: 0, end: None, refused: None });
        }
        let datagram = self.datagrams.get_mut(&key)?;
        match datagram.add(&part, &packet) {
            Ok(()) => {
                self.held += 1;
                self.cost += cost(&packet);
                datagram.bytes += part.len;
                datagram.parts.insert(part.offset, packet);
            }
            Err(why) => {
                self.drops[why as usize] += 1;
                dropped.push((packet, why));
                if why != FragmentDrop::Duplicate {
                    datagram.refused = Some(why);
                    let parts = std::mem::take(&mut datagram.parts);
                    self.let_go(parts, why, dropped);
                }
                return None;
            }
        }
        if datagram.end == Some(datagram.bytes) {
            return self.complete(key, dropped);
        }
        while self.cost > MAX_FRAGMENT_BYTES {
            self.drop_oldest(dropped);
        }
        None
    }

    /// Fragments inside.
    pub const fn held(&self) -> u64 {
        self.held
    }
    /// Datagrams that came together so far.
    pub const fn completed(&self) -> u64 {
        self.completed
    }
    /// Fragments dropped so far for this reason.
    pub const fn dropped(&self, why: FragmentDrop) -> u64 {
        self.drops[why as usize]
    }

    /// When the oldest datagram expires. Pure.
    pub fn deadline(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// The deadline has come: fragments of datagrams whose time is over are appended to `dropped`, in order.
    /// Where the first of a datagram is among them, its sender is told (ICMP time exceeded, RFC 1122 §3.3.2).
    pub fn on_deadline(&mut self, now: Instant, dropped: &mut Vec<(Packet, FragmentDrop)>) {
        while let Some((at, key)) = self.timers.first().copied()
            && at <= now
        {
            self.timers.pop_first();
            if let Some(datagram) = self.datagrams.remove(&key) {
                self.let_go(datagram.parts, FragmentDrop::Expired, dropped);
            }
        }
    }

    /// All fragments are there.
    fn complete(&mut self, key: FragmentKey, dropped: &mut Vec<(Packet, FragmentDrop)>) -> Option<Whole> {
        let datagram = self.datagrams.remove(&key)?;
        self.timers.remove(&(datagram.expires, key));
        let mut data = Vec::with_capacity(datagram.bytes);
        let (mut marked, mut incapable) = (false, false);
        for part in datagram.parts.values() {
            data.extend_from_slice(part.payload());
            let ecn = part.ip().map_or(Ecn::NotEct, |ip| ip.ecn());
            marked |= ecn == Ecn::Ce;
            incapable |= !ecn.is_capable();
        }
        if marked && incapable {
            self.let_go(datagram.parts, FragmentDrop::EcnMix, dropped);
            return None;
        }
        let whole = datagram.parts.get(&0).and_then(|first| join(first, &data).ok());
        let Some(mut packet) = whole else {
            self.let_go(datagram.parts, FragmentDrop::Malformed, dropped);
            return None;
        };
        if marked {
            packet.set_ecn(Ecn::Ce);
        }
        self.held -= datagram.parts.len() as u64;
        self.cost -= datagram.parts.values().map(cost).sum::<usize>();
        self.completed += 1;
        Some(Whole { packet, parts: datagram.parts.into_values().collect() })
    }

    fn drop_oldest(&mut self, dropped: &mut Vec<(Packet, FragmentDrop)>) {
        if let Some((_, key)) = self.timers.pop_first()
            && let Some(datagram) = self.datagrams.remove(&key)
        {
            self.let_go(datagram.parts, FragmentDrop::Evicted, dropped);
        }
    }

    /// Fragments that were inside are dropped.
    fn let_go(
        &mut self,
        parts: BTreeMap<usize, Packet>,
        why: FragmentDrop,
        dropped: &mut Vec<(Packet, FragmentDrop)>,
    ) {
        for part in parts.into_values() {
            self.held -= 1;
            self.cost -= cost(&part);
            self.drops[why as usize] += 1;
            dropped.push((part, why));
        }
    }
}

fn cost(packet: &Packet) -> usize {
    packet.len().as_len() + FRAGMENT_COST
}

/// What a fragment says about itself.
struct Part {
    offset: usize,
    len: usize,
    /// Bytes of the IP header before the data.
    header_len: usize,
    more: bool,
    protocol: u8,
}

fn part_of(packet: &Packet) -> Option<(FragmentKey, Part)> {
    let ip = packet.ip()?;
    let fragment = ip.fragment()?;
    let (addresses, protocol) = (ip.addresses(), ip.protocol());
    let (of_key, header_len) = match addresses {
        AddressPair::V4(..) => (Some(protocol), ip.header_len()),
        // The length field of IPv6 counts what follows the fixed header; the fragment header goes.
        AddressPair::V6(..) => (None, ip.header_len().saturating_sub(40 + 8)),
    };
    let key = FragmentKey { addresses, ident: fragment.ident, protocol: of_key };
    let (offset, len) = (fragment.offset as usize, packet.payload().len());
    Some((key, Part { offset, len, header_len, more: fragment.more, protocol }))
}

impl Part {
    /// Whether an honest sender can have made it.
    fn check(&self) -> Result<(), FragmentDrop> {
        if self.len == 0 || (self.more && !self.len.is_multiple_of(8)) {
            return Err(FragmentDrop::Malformed);
        }
        if self.header_len + self.offset + self.len > LONGEST {
            return Err(FragmentDrop::TooLong);
        }
        // RFC 1858: nor may what belongs to the header come in the second fragment.
        let header_is_cut = match self.offset {
            0 => self.len < MIN_TCP,
            offset => offset < MIN_TCP,
        };
        if self.protocol == PROTOCOL_TCP && header_is_cut { Err(FragmentDrop::Tiny) } else { Ok(()) }
    }
}

impl FragmentedDatagram {
    /// Whether this fragment fits to the others; remembers where the end is.
    fn add(&mut self, part: &Part, packet: &Packet) -> Result<(), FragmentDrop> {
        if let Some(why) = self.refused {
            return Err(why);
        }
        let (start, end) = (part.offset, part.offset + part.len);
        if let Some(same) = self.parts.get(&start)
            && same.payload() == packet.payload()
            && same.ip().and_then(|ip| ip.fragment()).is_some_and(|fragment| fragment.more == part.more)
        {
            return Err(FragmentDrop::Duplicate);
        }
        let before = self.parts.range(..=start).next_back();
        let after = self.parts.range(start..).next();
        let overlaps = before.is_some_and(|(at, p)| at + p.payload().len() > start)
            || after.is_some_and(|(at, _)| *at < end)
            || self.end.is_some_and(|last| end > last)
            // The last fragment, and there is something behind it.
            || (!part.more && after.is_some());
        if overlaps {
            return Err(FragmentDrop::Overlap);
        }
        if self.parts.len() >= MAX_FRAGMENTS {
            return Err(FragmentDrop::TooMany);
        }
        if !part.more {
            self.end = Some(end);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
