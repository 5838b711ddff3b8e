//! An IPv4 address is probed for before it is used, announced, and defended (RFC 5227).

use farpace_units::{Instant, RandomStream, Span};
use farpace_wire::{Arp, ArpOperation, MacAddr, Packet};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

// RFC 5227 §1.1.
const PROBE_WAIT: Span = Span::from_secs(1);
const PROBE_NUM: u8 = 3;
const PROBE_MIN: Span = Span::from_secs(1);
const PROBE_MAX: Span = Span::from_secs(2);
const ANNOUNCE_WAIT: Span = Span::from_secs(2);
const ANNOUNCE_NUM: u8 = 2;
const ANNOUNCE_INTERVAL: Span = Span::from_secs(2);
const MAX_CONFLICTS: u32 = 10;
const RATE_LIMIT_INTERVAL: Span = Span::from_secs(60);
const DEFEND_INTERVAL: Span = Span::from_secs(10);

/// What is to be done.
#[derive(Clone, Debug)]
pub enum ConflictAction {
    /// Send this to everybody, by way of [`ArpAnnouncer::outgoing`](super::ArpAnnouncer::outgoing) as the stack's own messages, so that
    /// announcements carry our list.
    Send(Packet),
    /// The address may be used from now on.
    Usable(Ipv4Addr),
    /// Somebody else uses the address, or wants it, too. While it was being probed for it is not usable, and is tried again later;
    /// if it was in use it is defended.
    Conflict {
        /// Which.
        address: Ipv4Addr,
        /// Whose.
        mac: MacAddr,
    },
    /// The address must not be used any more (RFC 5227 §2.4 b): somebody else insists on it. Connections from it should be
    /// reset. It is tried again later.
    Abandoned(Ipv4Addr),
}

/// One IPv4 address: may it be used?
///
/// Sans-IO: after every call that takes the time, [`poll`](Self::poll) until there is nothing more. As the address was given by
/// people and there is no other to try, one that is taken is tried again after 10 s, and after 10 conflicts each minute.
#[derive(Debug)]
pub struct ConflictDetection {
    address: Ipv4Addr,
    mac: MacAddr,
    dice: RandomStream,
    phase: AcdPhase,
    conflicts: u32,
    /// When it was last defended.
    defended: Option<Instant>,
    actions: VecDeque<ConflictAction>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AcdPhase {
    /// So many probes have been sent; at this time comes the next, or all have gone unanswered.
    Probing { sent: u8, next: Instant },
    /// So many announcements have been sent; at this time comes the next.
    Announcing { sent: u8, next: Instant },
    /// In use.
    Held,
    /// Somebody else's, until it is tried again.
    Taken { until: Instant },
}

impl ConflictDetection {
    /// Begins to probe for `address`, for a stack that sends by `mac`.
    pub fn new(now: Instant, address: Ipv4Addr, mac: MacAddr, dice: RandomStream) -> ConflictDetection {
        let phase = AcdPhase::Held;
        let mut claim = ConflictDetection {
            address,
            mac,
            dice,
            phase,
            conflicts: 0,
            defended: None,
            actions: VecDeque::new(),
        };
        claim.restart(now);
        claim
    }

    /// Probes anew, as after the last of our cards had lost its carrier and one has it again (RFC 5227 §2.1). The address is not
    /// usable until then.
    pub fn restart(&mut self, now: Instant) {
        let wait = self.between(Span::ZERO, PROBE_WAIT);
        self.phase = AcdPhase::Probing { sent: 0, next: now + wait };
    }

    /// True if the stack may use the address: nothing may leave with it before.
    pub const fn is_usable(&self) -> bool {
        matches!(self.phase, AcdPhase::Announcing { .. } | AcdPhase::Held)
    }
    /// The address.
    pub const fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// An ARP packet came in. Our own, which come back by others of our cards, do not count: `is_ours` knows them.
    pub fn on_arp(&mut self, now: Instant, arp: &Arp, is_ours: impl Fn(MacAddr) -> bool) {
        let mac = arp.sender_mac;
        let has_it = arp.sender == self.address;
        let is_probe = arp.sender.is_unspecified() && arp.operation == ArpOperation::Request;
        let wants_it = is_probe && arp.target == self.address;
        if is_ours(mac) {
            return;
        }
        match self.phase {
            AcdPhase::Probing { .. } if has_it || wants_it => {
                self.conflict(mac);
                self.phase = AcdPhase::Taken { until: now + self.patience() };
            }
            AcdPhase::Announcing { .. } | AcdPhase::Held if has_it => {
                self.conflict(mac);
                if self.defended.is_some_and(|at| now.since(at) <= DEFEND_INTERVAL) {
                    self.phase = AcdPhase::Taken { until: now + RATE_LIMIT_INTERVAL };
                    self.actions.push_back(ConflictAction::Abandoned(self.address));
                } else {
                    self.defended = Some(now);
                    self.announce();
                }
            }
            _ => {}
        }
    }

    /// What is to be done.
    pub fn poll(&mut self) -> Option<ConflictAction> {
        self.actions.pop_front()
    }
    /// When [`on_deadline`](Self::on_deadline) is to be called.
    pub const fn deadline(&self) -> Option<Instant> {
        match self.phase {
            AcdPhase::Probing { next, .. }
            | AcdPhase::Announcing { next, .. }
            | AcdPhase::Taken { until: next } => Some(next),
            AcdPhase::Held => None,
        }
    }
    /// Sends the next probe or announcement, or begins anew.
    pub fn on_deadline(&mut self, now: Instant) {
        if self.deadline().is_none_or(|at| now < at) {
            return;
        }
        self.phase = match self.phase {
            AcdPhase::Probing { sent, .. } if sent < PROBE_NUM => {
                let probe = Arp::request(self.mac, Ipv4Addr::UNSPECIFIED, self.address);
                self.actions.push_back(ConflictAction::Send(probe.packet(MacAddr::BROADCAST)));
                let sent = sent + 1;
                let wait = match sent < PROBE_NUM {
                    true => self.between(PROBE_MIN, PROBE_MAX),
                    false => ANNOUNCE_WAIT,
                };
                AcdPhase::Probing { sent, next: now + wait }
            }
            AcdPhase::Probing { .. } => {
                self.defended = None;
                self.actions.push_back(ConflictAction::Usable(self.address));
                self.announce();
                AcdPhase::Announcing { sent: 1, next: now + ANNOUNCE_INTERVAL }
            }
            AcdPhase::Announcing { sent, .. } => {
                self.announce();
                match sent + 1 {
                    sent if sent < ANNOUNCE_NUM => {
                        AcdPhase::Announcing { sent, next: now + ANNOUNCE_INTERVAL }
                    }
                    _ => AcdPhase::Held,
                }
            }
            AcdPhase::Taken { .. } => {
                let wait = self.between(Span::from_nanos(1), PROBE_WAIT);
                AcdPhase::Probing { sent: 0, next: now + wait }
            }
            AcdPhase::Held => AcdPhase::Held,
        };
    }

    fn announce(&mut self) {
        let announcement = Arp::request(self.mac, self.address, self.address);
        self.actions.push_back(ConflictAction::Send(announcement.packet(MacAddr::BROADCAST)));
    }
    fn conflict(&mut self, mac: MacAddr) {
        self.conflicts = self.conflicts.saturating_add(1);
        self.actions.push_back(ConflictAction::Conflict { address: self.address, mac });
    }
    /// Until an address that was taken is tried again.
    const fn patience(&self) -> Span {
        if self.conflicts < MAX_CONFLICTS { DEFEND_INTERVAL } else { RATE_LIMIT_INTERVAL }
    }
    fn between(&mut self, least: Span, most: Span) -> Span {
        least + Span::from_nanos(self.dice.below((most - least).as_nanos().saturating_add(1)))
    }
}

#[cfg(test)]
mod tests;
