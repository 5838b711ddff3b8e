//! Between a stack's address resolution and the wire.

use crate::multi_nic::arp::message::{ArpMessage, announcement, cut, list, said_by};
use crate::multi_nic::arp::{ArpRefusal, ArpStats, Cache, Learned};
use farpace_units::{Instant, Span};
use farpace_wire::{Extension, MAX_LISTED_NICS, MacAddr, NicFlags, NicKind, NicList, Packet};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

/// After an announcement it is repeated after each of these, one after the other: it is broadcast, and nobody confirms it.
pub const ANNOUNCE_AGAIN: [Span; 2] = [Span::from_millis(40), Span::from_secs(2)];
/// Own addresses that are announced at most: those that the stack used last.
pub const MAX_OWN_ADDRESSES: usize = 16;

/// What is to be done.
#[derive(Clone, Debug)]
pub enum AnnouncerAction {
    /// Send this to everybody, by all cards that work. Whoever gets it twice learns nothing new.
    Send(Packet),
    /// A neighbour has other cards.
    Learned(Learned),
}

/// Adds the list of our cards to what a stack says of its addresses, and learns from what neighbours say.
///
/// After every call that takes the time, [`poll`](Self::poll) until there is nothing more.
///
/// To neighbours that do not know of lists we are at the first of our cards that works. To the stack we are always at the same
/// address: the one that it writes into its messages.
///
/// The first message from an address has no list, and everybody gets one without: so what is known of an earlier life of this
/// machine is forgotten, with its generation. An announcement with the list follows at once.
///
/// IPv6 addresses are not probed for here: a stack does so itself (RFC 4862 §5.4), in messages that do not say where it is and pass
/// as they are.
#[derive(Debug)]
pub struct ArpAnnouncer {
    stack_mac: MacAddr,
    cards: NicList,
    /// All cards that we have ever had: one that has failed is still not a neighbour's.
    ours: BTreeSet<MacAddr>,
    flags: NicFlags,
    generation: u16,
    /// Addresses of the stack, and when it last used them.
    own: BTreeMap<IpAddr, Instant>,
    cache: Cache,
    unsent: VecDeque<Packet>,
    /// When our list is announced again, and how often it has been.
    again: Option<(Instant, usize)>,
}

impl ArpAnnouncer {
    /// For a stack that sends by `stack_mac`, on a machine with these cards, the first first. The number of its list counts up from
    /// `generation`; take another after each start, best a later one, as of a clock in minutes. Of more than [`MAX_LISTED_NICS`]
    /// cards the rest is left out.
    pub fn new(
        stack_mac: MacAddr,
        cards: &[(MacAddr, NicKind)],
        flags: NicFlags,
        generation: u16,
    ) -> ArpAnnouncer {
        ArpAnnouncer {
            stack_mac,
            cards: cards.iter().copied().take(MAX_LISTED_NICS).collect(),
            ours: cards.iter().map(|(mac, _)| *mac).chain([stack_mac]).collect(),
            flags,
            generation,
            own: BTreeMap::new(),
            cache: Cache::default(),
            unsent: VecDeque::new(),
            again: None,
        }
    }

    /// These cards work now. If they are others than before, everybody is told at once. Without any, messages pass as they are.
    pub fn set_cards(&mut self, now: Instant, cards: &[(MacAddr, NicKind)]) {
        let cards: NicList = cards.iter().copied().take(MAX_LISTED_NICS).collect();
        if cards != self.cards {
            self.ours.extend(cards.iter().map(|(mac, _)| *mac));
            self.cards = cards;
            self.generation = self.generation.wrapping_add(1);
            self.announce(now);
        }
    }

    /// Tells everybody of all our addresses, now and twice more.
    pub fn announce(&mut self, now: Instant) {
        self.again = (!self.own.is_empty()).then_some((now, 0));
        self.on_deadline(now);
    }

    /// The stack may not use an address for now, as when it is probed for anew: it is not announced until the stack uses it again.
    pub fn withdraw(&mut self, own: IpAddr) {
        self.own.remove(&own);
    }

    /// A packet leaves the stack. Returns it as it is to be sent, with our list if it is a message that says where we are. It is to
    /// leave before what [`poll`](Self::poll) gives.
    pub fn outgoing(&mut self, now: Instant, packet: Packet) -> Packet {
        let (Some(message), Some(&(first, _))) = (ArpMessage::read(&packet), self.cards.first()) else {
            return packet;
        };
        let Some((own, mac)) = message.from else {
            // It asks whether an address is free, and wants to be answered.
            return if packet.macs().0 == self.stack_mac { said_by(packet, first, None) } else { packet };
        };
        if mac != self.stack_mac {
            return packet;
        }
        match message.is_question {
            true if own != message.target => self.cache.ask(now, message.target),
            false if !message.is_to_everybody() => {
                self.cache.answer(now, message.target, packet.macs().1, &self.ours);
            }
            _ => {}
        }
        if self.uses(now, own) {
            if packet.macs().1 != MacAddr::BROADCAST {
                self.unsent.extend(announcement(own, first));
            }
            self.announce(now);
            return said_by(packet, first, None);
        }
        self.cache.stats.told += 1;
        let mut ours = self.list(own);
        let theirs = self.cache.machine(message.target);
        ours.targets = theirs.map_or_else(NicList::new, |machine| machine.cards.clone());
        said_by(packet, first, Some(&ours))
    }

    /// A packet comes in. Returns it as the stack shall see it.
    pub fn incoming(&mut self, now: Instant, packet: Packet) -> Packet {
        let Some(message) = ArpMessage::read(&packet) else { return packet };
        let Some((address, mac)) = message.from else { return packet };
        let list = list(&packet);
        let is_plain = list == Ok(None);
        if self.ours.contains(&mac) {
            if !is_plain {
                self.cache.stats.refuse(ArpRefusal::OurCard);
            }
        } else {
            // If somebody else has an address of ours now, it is not ours to announce until the stack uses it again.
            self.own.remove(&address);
            self.cache.hear(now, (address, mac), message.is_question, list, &self.ours);
        }
        if is_plain { packet } else { cut(packet) }
    }

    /// The machine with the card `mac` has been heard of by other means: its list does not expire.
    pub fn confirm(&mut self, now: Instant, mac: MacAddr) {
        self.cache.confirm(now, mac);
    }

    /// What is to be done.
    pub fn poll(&mut self) -> Option<AnnouncerAction> {
        let learned = self.cache.poll().map(AnnouncerAction::Learned);
        learned.or_else(|| self.unsent.pop_front().map(AnnouncerAction::Send))
    }

    /// When [`on_deadline`](Self::on_deadline) is to be called.
    pub fn deadline(&self) -> Option<Instant> {
        self.again.map(|(at, _)| at).into_iter().chain(self.cache.deadline()).min()
    }
    /// Repeats announcements, and forgets neighbours.
    pub fn on_deadline(&mut self, now: Instant) {
        self.cache.on_deadline(now);
        let Some((_, times)) = self.again.filter(|(at, _)| *at <= now) else { return };
        self.again = ANNOUNCE_AGAIN.get(times).map(|wait| (now + *wait, times + 1));
        let Some(&(first, _)) = self.cards.first() else { return };
        for own in self.own.keys() {
            let said = announcement(*own, first).map(|plain| said_by(plain, first, Some(&self.list(*own))));
            self.cache.stats.told += 1;
            self.cache.stats.announced += 1;
            self.unsent.extend(said);
        }
    }

    /// The number of our list.
    pub const fn generation(&self) -> u16 {
        self.generation
    }
    /// What is known of neighbours.
    pub const fn cache(&self) -> &Cache {
        &self.cache
    }
    /// What has happened so far.
    pub const fn stats(&self) -> &ArpStats {
        self.cache.stats()
    }

    fn list(&self, own: IpAddr) -> Extension {
        Extension::new(own, &self.cards, self.flags, self.generation)
    }

    /// The stack uses an address. True if it did not before.
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
