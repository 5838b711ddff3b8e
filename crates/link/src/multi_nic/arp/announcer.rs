//! Adds NIC lists to a stack's address resolution, and learns from those of neighbours.

use crate::multi_nic::arp::message::{ArpMessage, announcement, list, strip_list, with_sender};
use crate::multi_nic::arp::{ArpRefusal, ArpStats, Cache, Learned};
use farpace_units::{Instant, Span};
use farpace_wire::{Extension, MAX_LISTED_NICS, MacAddr, NicFlags, NicKind, NicList, Packet};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

/// Delays after which an announcement is repeated, one after the other. Announcements are broadcast and not
/// acknowledged.
pub const REPEAT_DELAYS: [Span; 2] = [Span::from_millis(40), Span::from_secs(2)];
/// Maximum number of own addresses that are announced: those that the stack used last.
pub const MAX_OWN_ADDRESSES: usize = 16;

/// An action for the caller.
#[derive(Clone, Debug)]
pub enum AnnouncerAction {
    /// Send this frame on all working NICs. Duplicates are harmless.
    Send(Packet),
    /// The NICs of a neighbour have changed.
    Learned(Learned),
}

/// Adds the list of the host's NICs to the address resolution messages of its stack, and learns the lists of
/// neighbours.
///
/// After every call that takes the time, call [`poll`](Self::poll) until it returns none.
///
/// Neighbours that do not know lists see the host at its first working NIC. The stack always sees the MAC
/// address that it writes into its messages.
///
/// The first message from an address is sent without a list, as broadcast. So neighbours forget the list and
/// the generation from before a restart. An announcement with the list follows immediately.
///
/// The announcer does not probe for IPv6 addresses. The stack does (RFC 4862 §5.4), in messages that contain
/// no link-layer address and pass unchanged.
#[derive(Debug)]
pub struct ArpAnnouncer {
    stack_mac: MacAddr,
    nics: NicList,
    /// All NICs that the host has ever had. A failed NIC still does not belong to a neighbour.
    ours: BTreeSet<MacAddr>,
    flags: NicFlags,
    generation: u16,
    /// Addresses of the stack, with the time of their last use.
    own: BTreeMap<IpAddr, Instant>,
    cache: Cache,
    unsent: VecDeque<Packet>,
    /// Time of the next repetition of the announcement, and the number of repetitions so far.
    repeat: Option<(Instant, usize)>,
}

impl ArpAnnouncer {
    /// An announcer for a stack with MAC address `stack_mac`, on a host with these NICs, first NIC first. The
    /// generation of the list counts up from `generation`. It should increase with each start, for example a
    /// clock in minutes. NICs beyond [`MAX_LISTED_NICS`] are ignored.
    pub fn new(
        stack_mac: MacAddr,
        nics: &[(MacAddr, NicKind)],
        flags: NicFlags,
        generation: u16,
    ) -> ArpAnnouncer {
        ArpAnnouncer {
            stack_mac,
            nics: nics.iter().copied().take(MAX_LISTED_NICS).collect(),
            ours: nics.iter().map(|(mac, _)| *mac).chain([stack_mac]).collect(),
            flags,
            generation,
            own: BTreeMap::new(),
            cache: Cache::default(),
            unsent: VecDeque::new(),
            repeat: None,
        }
    }

    /// Sets the NICs that work now. A change is announced immediately. Without any NIC, messages pass
    /// unchanged.
    pub fn set_nics(&mut self, now: Instant, nics: &[(MacAddr, NicKind)]) {
        let nics: NicList = nics.iter().copied().take(MAX_LISTED_NICS).collect();
        if nics != self.nics {
            self.ours.extend(nics.iter().map(|(mac, _)| *mac));
            self.nics = nics;
            self.generation = self.generation.wrapping_add(1);
            self.announce(now);
        }
    }

    /// Announces all addresses of the host, now and twice more.
    pub fn announce(&mut self, now: Instant) {
        self.repeat = (!self.own.is_empty()).then_some((now, 0));
        self.on_deadline(now);
    }

    /// The stack may not use an address at present, for example during a new probe. It is not announced until
    /// the stack uses it.
    pub fn withdraw(&mut self, own: IpAddr) {
        self.own.remove(&own);
    }

    /// Handles a packet from the stack. Returns the packet to send, with the list if it is a message with the
    /// sender's address. It must be sent before the actions of [`poll`](Self::poll).
    pub fn outgoing(&mut self, now: Instant, packet: Packet) -> Packet {
        let (Some(message), Some(&(first, _))) = (ArpMessage::read(&packet), self.nics.first()) else {
            return packet;
        };
        let Some((own, mac)) = message.from else {
            // An address probe. The sender must be a NIC that receives the reply.
            return if packet.macs().0 == self.stack_mac { with_sender(packet, first, None) } else { packet };
        };
        if mac != self.stack_mac {
            return packet;
        }
        match message.is_request {
            true if own != message.target => self.cache.on_request(now, message.target),
            false if !message.is_unsolicited() => {
                self.cache.on_answer(now, message.target, packet.macs().1, &self.ours);
            }
            _ => {}
        }
        if self.uses(now, own) {
            if packet.macs().1 != MacAddr::BROADCAST {
                self.unsent.extend(announcement(own, first));
            }
            self.announce(now);
            return with_sender(packet, first, None);
        }
        self.cache.stats.lists_sent += 1;
        let mut ours = self.list(own);
        let peer = self.cache.host(message.target);
        ours.targets = peer.map_or_else(NicList::new, |host| host.nics.clone());
        with_sender(packet, first, Some(&ours))
    }

    /// Handles a packet from the network. Returns the packet for the stack.
    pub fn incoming(&mut self, now: Instant, packet: Packet) -> Packet {
        let Some(message) = ArpMessage::read(&packet) else { return packet };
        let Some((address, mac)) = message.from else { return packet };
        let list = list(&packet);
        let is_plain = list == Ok(None);
        if self.ours.contains(&mac) {
            if !is_plain {
                self.cache.stats.refuse(ArpRefusal::OwnNic);
            }
        } else {
            // Another host uses the address now. Do not announce it until the stack uses it again.
            self.own.remove(&address);
            self.cache.on_message(now, (address, mac), message.is_request, list, &self.ours);
        }
        if is_plain { packet } else { strip_list(packet) }
    }

    /// The host with the NIC `mac` has sent a frame of another protocol: its list does not expire.
    pub fn confirm(&mut self, now: Instant, mac: MacAddr) {
        self.cache.confirm(now, mac);
    }

    /// The next action.
    pub fn poll(&mut self) -> Option<AnnouncerAction> {
        let learned = self.cache.poll().map(AnnouncerAction::Learned);
        learned.or_else(|| self.unsent.pop_front().map(AnnouncerAction::Send))
    }

    /// When to call [`on_deadline`](Self::on_deadline).
    pub fn deadline(&self) -> Option<Instant> {
        self.repeat.map(|(at, _)| at).into_iter().chain(self.cache.deadline()).min()
    }
    /// Repeats announcements and expires neighbours.
    pub fn on_deadline(&mut self, now: Instant) {
        self.cache.on_deadline(now);
        let Some((_, times)) = self.repeat.filter(|(at, _)| *at <= now) else { return };
        self.repeat = REPEAT_DELAYS.get(times).map(|wait| (now + *wait, times + 1));
        let Some(&(first, _)) = self.nics.first() else { return };
        for own in self.own.keys() {
            let said =
                announcement(*own, first).map(|plain| with_sender(plain, first, Some(&self.list(*own))));
            self.cache.stats.lists_sent += 1;
            self.cache.stats.announced += 1;
            self.unsent.extend(said);
        }
    }

    /// The generation of the host's list.
    pub const fn generation(&self) -> u16 {
        self.generation
    }
    /// The known neighbours.
    pub const fn cache(&self) -> &Cache {
        &self.cache
    }
    /// The counters.
    pub const fn stats(&self) -> &ArpStats {
        self.cache.stats()
    }

    fn list(&self, own: IpAddr) -> Extension {
        Extension::new(own, &self.nics, self.flags, self.generation)
    }

    /// Records that the stack uses an address. True if it did not before.
    fn uses(&mut self, now: Instant, own: IpAddr) -> bool {
        let is_new = self.own.insert(own, now).is_none();
        if self.own.len() > MAX_OWN_ADDRESSES
            && let Some((oldest, _)) = self.own.iter().min_by_key(|(_, used)| **used).map(|(a, b)| (*a, *b))
        {
            self.own.remove(&oldest);
        }
        is_new
    }
}

#[cfg(test)]
mod tests;
