//! The neighbour cache: which MAC address a next hop has, found by ARP (RFC 826, RFC 1122 §2.3.2) or
//! neighbour discovery (RFC 4861 §7), with the states of the latter for both.
//!
//! The cache decides when to ask and what to believe; [`discovery`](super::discovery) reads and writes the
//! messages.

use crate::is_host_address;
use farpace_units::{Instant, Span};
use farpace_wire::{MacAddr, Packet};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

/// Neighbours that are remembered at most. The least useful one makes room for a new one.
pub const MAX_NEIGHBOURS: usize = 1024;
/// Packets that wait for the address of one neighbour at most. A new one takes the place of the oldest
/// (RFC 4861 §7.2.2).
pub const MAX_WAITING: usize = 16;
/// Questions without an answer after which a neighbour is given up: `MAX_MULTICAST_SOLICIT` and
/// `MAX_UNICAST_SOLICIT` of RFC 4861 §10.
pub const MAX_QUESTIONS: u8 = 3;
/// From one question to the next: `RETRANS_TIMER`.
pub const RETRANS_TIMER: Span = Span::from_secs(1);
/// How long a neighbour that has shown itself is believed to be there: `REACHABLE_TIME`, not varied.
pub const REACHABLE_TIME: Span = Span::from_secs(30);
/// How long the layers above have to confirm a stale neighbour that is used, before it is asked:
/// `DELAY_FIRST_PROBE_TIME`.
pub const DELAY_FIRST_PROBE_TIME: Span = Span::from_secs(5);
/// How long packets for a neighbour that nobody answered for are refused at once, before it is asked for
/// again.
pub const FAILED_TIME: Span = Span::from_secs(3);

/// What the cache wants done.
#[derive(Debug)]
pub enum NeighbourAction {
    /// Send a question; [`discovery::question`](super::discovery::question) writes it.
    Ask {
        /// Whose MAC address is wanted.
        target: IpAddr,
        /// Where it was last. None: ask everybody.
        to: Option<MacAddr>,
    },
    /// A packet waited, and now it can go out.
    Send {
        /// It; its Ethernet addresses are still to be set ([`Packet::set_macs`]).
        packet: Packet,
        /// To whom.
        to: MacAddr,
    },
    /// A packet waited, and nobody answered or its neighbour was forgotten. To a connection this is "host
    /// unreachable"; for a packet of somebody else, a router says so.
    Failed {
        /// Who did not answer.
        target: IpAddr,
        /// What cannot be delivered.
        packet: Packet,
    },
}

/// What becomes of a packet for a neighbour.
#[derive(Debug)]
pub enum Resolved {
    /// It can go out, to this MAC address.
    Known(MacAddr, Packet),
    /// It waits; an [`NeighbourAction`] will come.
    Waits,
    /// It waits, but this older one, which waited for the same neighbour, no longer does. Or there is no room
    /// in the cache and this is the packet itself.
    Dropped(Packet),
    /// Nobody answered for this neighbour a moment ago.
    Failed(Packet),
}

/// How a neighbour has shown its MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeighbourFact {
    /// It asked for one of our addresses. Whoever asks will be talked to: a neighbour that is not known yet
    /// is remembered (RFC 826, RFC 4861 §7.2.3).
    AskedUs,
    /// It answered, or told everybody. Only what is known already changes: nobody can fill the cache with
    /// answers to questions that were not asked (RFC 4861 §7.2.5).
    Answered {
        /// It says that it was asked. This counts only while it is being asked.
        solicited: bool,
        /// It says that this replaces a MAC address that is known. ARP always does.
        overrides: bool,
    },
}

/// The state of a neighbour, as RFC 4861 §7.3.2 names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeighbourState {
    /// Being asked for, for the first time.
    Incomplete,
    /// There, as far as we know.
    Reachable,
    /// It has not been heard of for [`REACHABLE_TIME`]. Its address is used nevertheless, and then checked.
    Stale,
    /// Stale, and used: the layers above may yet confirm it.
    Delay,
    /// Being asked whether it is still there.
    Probe,
    /// Nobody answered.
    Failed,
    /// Entered by hand; does not age and is never replaced.
    Static,
}

#[derive(Debug)]
struct NeighbourEntry {
    mac: MacAddr,
    state: NeighbourState,
    /// Reachable or failed until then. Looked at when the entry is used, so that nobody is woken for it.
    until: Instant,
    /// Questions asked in this state.
    asked: u8,
    /// When there is something to do, as in [`Neighbours::timers`].
    timer: Option<Instant>,
    /// Last use.
    used: Instant,
    waiting: VecDeque<Packet>,
}

/// The cache. After every call that takes the time, [`poll`](Self::poll) until there is nothing more to be
/// done.
#[derive(Debug, Default)]
pub struct Neighbours {
    entries: BTreeMap<IpAddr, NeighbourEntry>,
    timers: BTreeSet<(Instant, IpAddr)>,
    actions: VecDeque<NeighbourAction>,
    waiting: u64,
    forgotten: u64,
}

impl Neighbours {
    /// A neighbour entered by hand. Packets that wait for it can go.
    pub fn insert_static(&mut self, now: Instant, address: IpAddr, mac: MacAddr) {
        let entry = NeighbourEntry {
            mac,
            state: NeighbourState::Static,
            until: now,
            asked: 0,
            timer: None,
            used: now,
            waiting: VecDeque::new(),
        };
        if let Some(old) = self.entries.insert(address, entry) {
            if let Some(at) = old.timer {
                self.timers.remove(&(at, address));
            }
            self.release(old.waiting, mac);
        }
    }

    /// The MAC address of `to`, if it is known; using it may set a check going.
    pub fn lookup(&mut self, now: Instant, to: IpAddr) -> Option<MacAddr> {
        let entry = self.entries.get_mut(&to)?;
        entry.used = now;
        match entry.state {
            NeighbourState::Incomplete | NeighbourState::Failed => return None,
            NeighbourState::Reachable if now < entry.until => {}
            NeighbourState::Static | NeighbourState::Delay | NeighbourState::Probe => {}
            NeighbourState::Reachable | NeighbourState::Stale => {
                entry.state = NeighbourState::Delay;
                set_timer(&mut self.timers, to, entry, Some(now + DELAY_FIRST_PROBE_TIME));
            }
        }
        Some(entry.mac)
    }

    /// Where `packet` for the next hop `to` shall go. If that is not known, the packet waits and the
    /// neighbour is asked for.
    pub fn resolve(&mut self, now: Instant, to: IpAddr, packet: Packet) -> Resolved {
        if let Some(mac) = self.lookup(now, to) {
            return Resolved::Known(mac, packet);
        }
        match self.entries.get_mut(&to) {
            Some(entry) if entry.state == NeighbourState::Failed && now < entry.until => {
                return Resolved::Failed(packet);
            }
            Some(entry) if entry.state == NeighbourState::Incomplete => {
                entry.waiting.push_back(packet);
                if entry.waiting.len() <= MAX_WAITING {
                    self.waiting += 1;
                    return Resolved::Waits;
                }
                return entry.waiting.pop_front().map_or(Resolved::Waits, Resolved::Dropped);
            }
            // Failed long ago: from the beginning.
            Some(_) => {}
            None => {
                if !is_host_address(to) || !self.make_room() {
                    return Resolved::Dropped(packet);
                }
            }
        }
        let mut entry = NeighbourEntry {
            mac: MacAddr::default(),
            state: NeighbourState::Incomplete,
            until: now,
            asked: 1,
            timer: None,
            used: now,
            waiting: VecDeque::from([packet]),
        };
        set_timer(&mut self.timers, to, &mut entry, Some(now + RETRANS_TIMER));
        self.entries.insert(to, entry);
        self.waiting += 1;
        self.actions.push_back(NeighbourAction::Ask { target: to, to: None });
        Resolved::Waits
    }

    /// `from` has shown its MAC address. What nobody can be is not believed: group addresses of either kind.
    pub fn on_heard(&mut self, now: Instant, from: IpAddr, mac: MacAddr, heard: NeighbourFact) {
        if !is_host_address(from) || mac.is_multicast() || mac == MacAddr::default() {
            return;
        }
        let Some(entry) = self.entries.get_mut(&from) else {
            if heard == NeighbourFact::AskedUs && self.make_room() {
                let entry = NeighbourEntry {
                    mac,
                    state: NeighbourState::Stale,
                    until: now,
                    asked: 0,
                    timer: None,
                    used: now,
                    waiting: VecDeque::new(),
                };
                self.entries.insert(from, entry);
            }
            return;
        };
        let was_asked = matches!(entry.state, NeighbourState::Incomplete | NeighbourState::Probe);
        let (solicited, overrides) = match heard {
            NeighbourFact::AskedUs => (false, true),
            NeighbourFact::Answered { solicited, overrides } => (solicited && was_asked, overrides),
        };
        let knows_mac = !matches!(entry.state, NeighbourState::Incomplete | NeighbourState::Failed);
        let is_new = entry.mac != mac;
        if entry.state == NeighbourState::Static {
            return;
        }
        // RFC 4861 §7.2.5: somebody else says it is there. Doubt, but keep what we have.
        if knows_mac && is_new && !overrides {
            if entry.state == NeighbourState::Reachable {
                entry.state = NeighbourState::Stale;
            }
            return;
        }
        entry.mac = mac;
        if solicited {
            entry.state = NeighbourState::Reachable;
            entry.until = now + REACHABLE_TIME;
            set_timer(&mut self.timers, from, entry, None);
        } else if !knows_mac || is_new {
            entry.state = NeighbourState::Stale;
            set_timer(&mut self.timers, from, entry, None);
        }
        let waiting = std::mem::take(&mut entry.waiting);
        if !waiting.is_empty() {
            self.lookup(now, from); // they use it
            self.release(waiting, mac);
        }
    }

    /// The layers above make progress with `to`: it is there (RFC 4861 §7.3.1).
    pub fn confirm(&mut self, now: Instant, to: IpAddr) {
        let Some(entry) = self.entries.get_mut(&to) else { return };
        if !matches!(
            entry.state,
            NeighbourState::Incomplete | NeighbourState::Failed | NeighbourState::Static
        ) {
            entry.state = NeighbourState::Reachable;
            entry.until = now + REACHABLE_TIME;
            set_timer(&mut self.timers, to, entry, None);
        }
    }

    /// What is known of `address`, as far as it has been looked at.
    pub fn state(&self, address: IpAddr) -> Option<NeighbourState> {
        self.entries.get(&address).map(|entry| entry.state)
    }
    /// Neighbours that are remembered.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    /// True if nobody is.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    /// Neighbours that had to make room for others so far.
    pub const fn forgotten(&self) -> u64 {
        self.forgotten
    }
    /// Packets inside: those that wait, and those in actions that were not yet polled.
    pub const fn held(&self) -> u64 {
        self.waiting
    }

    /// When there is something to do. Pure.
    pub fn deadline(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// The deadline has come.
    pub fn on_deadline(&mut self, now: Instant) {
        while let Some(&(at, address)) = self.timers.first()
            && at <= now
        {
            self.timers.pop_first();
            let Some(entry) = self.entries.get_mut(&address) else { continue };
            entry.timer = None;
            let again = entry.state == NeighbourState::Delay || entry.asked < MAX_QUESTIONS;
            match entry.state {
                NeighbourState::Incomplete | NeighbourState::Probe | NeighbourState::Delay if again => {
                    if entry.state == NeighbourState::Delay {
                        entry.state = NeighbourState::Probe;
                        entry.asked = 0;
                    }
                    entry.asked += 1;
                    set_timer(&mut self.timers, address, entry, Some(now + RETRANS_TIMER));
                    let to = (entry.state == NeighbourState::Probe).then_some(entry.mac);
                    self.actions.push_back(NeighbourAction::Ask { target: address, to });
                }
                NeighbourState::Incomplete => {
                    entry.state = NeighbourState::Failed;
                    entry.until = now + FAILED_TIME;
                    let waiting = std::mem::take(&mut entry.waiting);
                    self.fail(address, waiting);
                }
                // RFC 4861 §7.3.3: forgotten, so that the next packet asks everybody.
                NeighbourState::Probe => {
                    self.entries.remove(&address);
                }
                NeighbourState::Reachable
                | NeighbourState::Stale
                | NeighbourState::Delay
                | NeighbourState::Failed
                | NeighbourState::Static => {}
            }
        }
    }

    /// What is to be done now.
    pub fn poll(&mut self) -> Option<NeighbourAction> {
        let action = self.actions.pop_front()?;
        if matches!(action, NeighbourAction::Send { .. } | NeighbourAction::Failed { .. }) {
            self.waiting -= 1;
        }
        Some(action)
    }

    fn release(&mut self, waiting: VecDeque<Packet>, to: MacAddr) {
        self.actions.extend(waiting.into_iter().map(|packet| NeighbourAction::Send { packet, to }));
    }

    fn fail(&mut self, target: IpAddr, waiting: VecDeque<Packet>) {
        self.actions.extend(waiting.into_iter().map(|packet| NeighbourAction::Failed { target, packet }));
    }

    /// Forgets the least useful neighbour if the cache is full. Those that answered are more useful than
    /// those that did not: a scan through an empty network evicts its own entries (RFC 6583 §7.2). False if
    /// all were entered by hand.
    fn make_room(&mut self) -> bool {
        if self.entries.len() < MAX_NEIGHBOURS {
            return true;
        }
        let use_of = |entry: &NeighbourEntry| match entry.state {
            NeighbourState::Failed => Some(0),
            NeighbourState::Incomplete => Some(1),
            NeighbourState::Stale => Some(2),
            NeighbourState::Delay | NeighbourState::Probe | NeighbourState::Reachable => Some(3),
            NeighbourState::Static => None,
        };
        let ranked = self.entries.iter().filter_map(|(a, entry)| Some((use_of(entry)?, entry.used, *a)));
        let Some((_, _, address)) = ranked.min() else { return false };
        if let Some(entry) = self.entries.remove(&address) {
            if let Some(at) = entry.timer {
                self.timers.remove(&(at, address));
            }
            self.forgotten += 1;
            self.fail(address, entry.waiting);
        }
        true
    }
}

fn set_timer(
    timers: &mut BTreeSet<(Instant, IpAddr)>,
    address: IpAddr,
    entry: &mut NeighbourEntry,
    at: Option<Instant>,
) {
    if let Some(old) = entry.timer {
        timers.remove(&(old, address));
    }
    entry.timer = at;
    if let Some(at) = at {
        timers.insert((at, address));
    }
}

#[cfg(test)]
mod tests;
