//! The cache of neighbours and their NICs.

use crate::multi_nic::arp::{ArpRefusal, ArpStats};
use farpace_units::{Instant, Span};
use farpace_wire::{Extension, ExtensionError, MacAddr, NicFlags, NicList};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

/// Maximum number of neighbour addresses in the cache. The one with the oldest message is evicted
/// first, neighbours without a list before those with one.
pub const MAX_NEIGHBOURS: usize = 1024;
/// A neighbour without messages for this time is removed.
pub const NEIGHBOUR_TIMEOUT: Span = Span::from_secs(30 * 60);
/// How long an answer to a request is accepted.
pub const ANSWER_TIMEOUT: Span = Span::from_secs(3);
/// Maximum number of lists of unknown neighbours that wait for the stack to answer the request they came
/// with.
pub const MAX_PENDING_LISTS: usize = 16;

/// A change of a neighbour's NICs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Learned {
    /// It has these NICs now.
    Extended {
        /// Address of the first NIC, to which stacks send.
        first: MacAddr,
        /// The previous address of the first NIC, if it was another.
        replaces: Option<MacAddr>,
        /// All NICs, including the first.
        nics: NicList,
        /// Its capabilities.
        flags: NicFlags,
    },
    /// It is an ordinary neighbour from now on, or has been removed.
    Ordinary {
        /// Address of its former first NIC.
        first: MacAddr,
    },
}

/// A host with a list of NICs. It may have several IP addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultiNicHost {
    /// Its NICs, first NIC first.
    pub nics: NicList,
    /// Its capabilities.
    pub flags: NicFlags,
    /// The generation of the list.
    pub generation: u16,
    /// When its last message was received.
    pub last_heard: Instant,
}

impl MultiNicHost {
    fn has(&self, mac: MacAddr) -> bool {
        self.nics.iter().any(|(nic, _)| *nic == mac)
    }
    fn first(&self) -> MacAddr {
        self.nics.first().map_or(MacAddr::default(), |(mac, _)| *mac)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MultiNicHostId(u64);

/// The host at an IP address that was requested or answered.
#[derive(Clone, Copy, Debug)]
struct Known {
    mac: MacAddr,
    host: Option<MultiNicHostId>,
    /// When the last message of a host without a list was received.
    last_heard: Instant,
}

/// The known neighbours, and the NICs of those that have sent lists.
///
/// # Accepted lists
/// A list is accepted from an IP address that was requested within [`ANSWER_TIMEOUT`], or that is known: it
/// answered, or it sent a request that was answered (a host that asks will soon communicate, RFC 826). None
/// of its NICs may belong to this host or to another neighbour. Its generation must be newer than that of the
/// known list (serial numbers of 16 bits, RFC 1982), or it must be the same list. A generation exactly half
/// the number space away counts as older.
///
/// # Removal
/// A list is removed by a message without a list from one of the host's NICs; by a message from another NIC
/// for its address, which then belongs to another host, whose list is handled as that of a new host; and by
/// silence for [`NEIGHBOUR_TIMEOUT`]. Removal forgets the generation, so that any is accepted. That is why a
/// restarted host first sends a message without a list.
#[derive(Debug, Default)]
pub struct Cache {
    addresses: BTreeMap<IpAddr, Known>,
    hosts: BTreeMap<MultiNicHostId, MultiNicHost>,
    /// The owner of each NIC.
    owners: BTreeMap<MacAddr, MultiNicHostId>,
    /// Number of hosts ever known, for new identifiers.
    count: u64,
    /// Time of the last request for each address.
    requested: BTreeMap<IpAddr, Instant>,
    /// Valid lists in requests of unknown neighbours, which may be for this host.
    pending_lists: VecDeque<(Instant, Extension)>,
    learned: VecDeque<Learned>,
    /// No neighbour expires earlier.
    sweep_at: Option<Instant>,
    pub(super) stats: ArpStats,
}

impl Cache {
    /// Records a request of the local stack for `target`. Answers are accepted for a while.
    pub fn on_request(&mut self, now: Instant, target: IpAddr) {
        if self.requested.len() >= MAX_NEIGHBOURS && !self.requested.contains_key(&target) {
            self.requested.retain(|_, at| now.since(*at) <= ANSWER_TIMEOUT);
            if self.requested.len() >= MAX_NEIGHBOURS {
                // The local stack floods the LAN with requests. It will repeat them.
                self.requested.clear();
            }
        }
        self.requested.insert(target, now);
    }

    /// Records an answer of the local stack to `from`, which is at `mac`. The neighbour is known from now on,
    /// and the list in its request is judged.
    pub fn on_answer(&mut self, now: Instant, from: IpAddr, mac: MacAddr, ours: &BTreeSet<MacAddr>) {
        self.touch(now, from, mac);
        self.pending_lists.retain(|(at, _)| now.since(*at) <= ANSWER_TIMEOUT);
        let is_this = |(_, list): &(Instant, Extension)| list.owner == from;
        if let Some(at) = self.pending_lists.iter().rposition(is_this)
            && let Some((_, list)) = self.pending_lists.remove(at)
            && let Some(&(first, _)) = list.senders.first()
        {
            self.on_message(now, (from, first), false, Ok(Some(list)), ours);
        }
    }

    /// Handles a message that maps `address` to `mac` and carries this list. A request may be one to this
    /// host.
    pub fn on_message(
        &mut self,
        now: Instant,
        (address, mac): (IpAddr, MacAddr),
        is_request: bool,
        list: Result<Option<Extension>, ExtensionError>,
        ours: &BTreeSet<MacAddr>,
    ) {
        if let Some((id, host)) = self.host_at(address) {
            let is_it = match &list {
                Ok(Some(list)) => list.senders.iter().any(|(nic, _)| host.has(*nic)),
                Ok(None) => false,
                Err(_) => host.has(mac),
            };
            if !is_it {
                self.release(address, mac, id);
            }
        }
        let list = match list {
            Ok(Some(list)) => list,
            other => {
                if let Err(why) = other {
                    self.stats.refuse(why.into());
                }
                if self.is_expected(now, address) {
                    self.touch(now, address, mac);
                }
                return;
            }
        };
        match self.validate(now, &list, ours) {
            Ok(()) => self.learn(now, list),
            Err(ArpRefusal::Unsolicited) if is_request => {
                if self.pending_lists.len() >= MAX_PENDING_LISTS {
                    self.pending_lists.pop_front();
                }
                self.pending_lists.push_back((now, list));
            }
            Err(why) => self.stats.refuse(why),
        }
    }

    /// The host with the NIC `mac` has sent a frame of another protocol.
    pub fn confirm(&mut self, now: Instant, mac: MacAddr) {
        if let Some(host) = self.owners.get(&mac).and_then(|id| self.hosts.get_mut(id)) {
            host.last_heard = now;
        }
    }

    /// The next change.
    pub fn poll(&mut self) -> Option<Learned> {
        self.learned.pop_front()
    }
    /// When to call [`on_deadline`](Self::on_deadline).
    pub const fn deadline(&self) -> Option<Instant> {
        self.sweep_at
    }
    /// Removes neighbours without messages for too long.
    pub fn on_deadline(&mut self, now: Instant) {
        if self.sweep_at.is_none_or(|at| now < at) {
            return;
        }
        let is_old = |known: &Known| now.since(self.last_heard(known)) >= NEIGHBOUR_TIMEOUT;
        let old = self.addresses.iter().filter(|(_, known)| is_old(known));
        let old: Vec<_> = old.map(|(address, _)| *address).collect();
        self.stats.expired += old.len() as u64;
        for address in old {
            self.forget(address);
        }
        let oldest = self.addresses.values().map(|known| self.last_heard(known)).min();
        self.sweep_at = oldest.map(|oldest| oldest + NEIGHBOUR_TIMEOUT);
    }

    /// The host at an address, if it has sent a list.
    pub fn host(&self, address: IpAddr) -> Option<&MultiNicHost> {
        self.host_at(address).map(|(_, host)| host)
    }
    /// All known addresses in order, each with its MAC address, and its host if it has sent a list.
    pub fn neighbours(&self) -> impl Iterator<Item = (IpAddr, MacAddr, Option<&MultiNicHost>)> {
        self.addresses
            .iter()
            .map(|(address, known)| (*address, known.mac, known.host.and_then(|id| self.hosts.get(&id))))
    }
    /// The counters. Those of other types are zero.
    pub const fn stats(&self) -> &ArpStats {
        &self.stats
    }

    fn validate(&self, now: Instant, list: &Extension, ours: &BTreeSet<MacAddr>) -> Result<(), ArpRefusal> {
        if list.senders.iter().any(|(mac, _)| ours.contains(mac)) {
            return Err(ArpRefusal::OwnNic);
        }
        if !self.is_expected(now, list.owner) {
            return Err(ArpRefusal::Unsolicited);
        }
        let id = self.host_of(list);
        let is_another = |mac: &MacAddr| self.owners.get(mac).is_some_and(|owner| Some(*owner) != id);
        if list.senders.iter().any(|(mac, _)| is_another(mac)) {
            return Err(ArpRefusal::NicOfOther);
        }
        if let Some(known) = id.and_then(|id| self.hosts.get(&id)) {
            if known.generation == list.generation {
                let is_same = known.nics == list.senders && known.flags == list.flags;
                return if is_same { Ok(()) } else { Err(ArpRefusal::SameGeneration) };
            }
            if !is_newer(list.generation, known.generation) {
                return Err(ArpRefusal::OlderGeneration);
            }
        }
        // A NIC of an ordinary neighbour does not belong to another host. The first NIC is an exception: the
        // host may have sent a message without a list from another of its addresses.
        let is_ordinary = |mac: &MacAddr| {
            let mut known = self.addresses.iter();
            known.any(|(at, known)| known.host.is_none() && known.mac == *mac && *at != list.owner)
        };
        let mut new = list.senders.iter().skip(1).filter(|(mac, _)| !self.owners.contains_key(mac));
        if new.any(|(mac, _)| is_ordinary(mac)) {
            return Err(ArpRefusal::NicOfOther);
        }
        Ok(())
    }

    /// Stores a list that has been accepted.
    fn learn(&mut self, now: Instant, list: Extension) {
        let Some(&(first, _)) = list.senders.first() else { return };
        self.touch(now, list.owner, first);
        let id = self.host_of(&list).unwrap_or(MultiNicHostId(self.count));
        if let Some(address) = self.addresses.get_mut(&list.owner) {
            address.host = Some(id);
        }
        let host = MultiNicHost {
            nics: list.senders,
            flags: list.flags,
            generation: list.generation,
            last_heard: now,
        };
        let was = self.hosts.insert(id, host.clone());
        if was.as_ref().is_some_and(|was| was.generation == host.generation) {
            return;
        }
        if was.is_none() {
            self.count += 1;
        }
        for (mac, _) in was.iter().flat_map(|was| &was.nics) {
            self.owners.remove(mac);
        }
        self.owners.extend(host.nics.iter().map(|(mac, _)| (*mac, id)));
        self.stats.learned += 1;
        let replaces = was.map(|was| was.first()).filter(|was| *was != first);
        let MultiNicHost { nics, flags, .. } = host;
        self.learned.push_back(Learned::Extended { first, replaces, nics, flags });
    }

    /// `address` is no longer an address of host `id`, or the host no longer has a list.
    fn release(&mut self, address: IpAddr, mac: MacAddr, id: MultiNicHostId) {
        if let Some(known) = self.addresses.get_mut(&address) {
            known.host = None;
        }
        let is_own = self.hosts.get(&id).is_some_and(|host| host.has(mac));
        if is_own || !self.has_address(id) {
            self.stats.evicted += 1;
            self.remove(id);
        }
    }

    /// Adds a neighbour, or updates its MAC address and time.
    fn touch(&mut self, now: Instant, address: IpAddr, mac: MacAddr) {
        if !self.addresses.contains_key(&address) && self.addresses.len() >= MAX_NEIGHBOURS {
            let rank = |(address, known): (&IpAddr, &Known)| {
                (known.host.is_some(), self.last_heard(known), *address)
            };
            if let Some((.., victim)) = self.addresses.iter().map(rank).min() {
                self.stats.replaced += 1;
                self.forget(victim);
            }
        }
        let known = self.addresses.entry(address).or_insert(Known { mac, host: None, last_heard: now });
        (known.mac, known.last_heard) = (mac, now);
        self.sweep_at.get_or_insert(now + NEIGHBOUR_TIMEOUT);
    }

    fn forget(&mut self, address: IpAddr) {
        if let Some(id) = self.addresses.remove(&address).and_then(|known| known.host)
            && !self.has_address(id)
        {
            self.remove(id);
        }
    }

    fn remove(&mut self, id: MultiNicHostId) {
        let Some(host) = self.hosts.remove(&id) else { return };
        for (mac, _) in &host.nics {
            self.owners.remove(mac);
        }
        for known in self.addresses.values_mut().filter(|known| known.host == Some(id)) {
            (known.host, known.last_heard) = (None, host.last_heard);
        }
        self.learned.push_back(Learned::Ordinary { first: host.first() });
    }

    /// The host of a list: the one at its address, or the one with its first NIC, which then has one more
    /// address.
    fn host_of(&self, list: &Extension) -> Option<MultiNicHostId> {
        let at_address = self.addresses.get(&list.owner).and_then(|known| known.host);
        at_address.or_else(|| self.owners.get(&list.senders.first()?.0).copied())
    }
    fn has_address(&self, id: MultiNicHostId) -> bool {
        self.addresses.values().any(|known| known.host == Some(id))
    }
    fn host_at(&self, address: IpAddr) -> Option<(MultiNicHostId, &MultiNicHost)> {
        let id = self.addresses.get(&address)?.host?;
        Some((id, self.hosts.get(&id)?))
    }
    fn last_heard(&self, known: &Known) -> Instant {
        known.host.and_then(|id| self.hosts.get(&id)).map_or(known.last_heard, |host| host.last_heard)
    }
    fn is_expected(&self, now: Instant, address: IpAddr) -> bool {
        let is_requested = self.requested.get(&address).is_some_and(|at| now.since(*at) <= ANSWER_TIMEOUT);
        is_requested || self.addresses.contains_key(&address)
    }
}

/// Serial numbers of 16 bits (RFC 1982 §3.2).
const fn is_newer(new: u16, old: u16) -> bool {
    matches!(new.wrapping_sub(old), 1..0x8000)
}

#[cfg(test)]
mod tests;
