//! Address conflict detection for IPv4 (RFC 5227): probe, announce, defend.

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

/// An action for the caller.
#[derive(Clone, Debug)]
pub enum ConflictAction {
    /// Broadcast this packet through [`ArpAnnouncer::outgoing`](super::ArpAnnouncer::outgoing), like a
    /// message of the stack, so that announcements carry the list.
    Send(Packet),
    /// The address may be used from now on.
    Usable(Ipv4Addr),
    /// Another host uses or probes for the address. During probing, the address is not usable, and is tried
    /// again later. In use, it is defended.
    Conflict {
        /// The address.
        address: Ipv4Addr,
        /// The NIC of the other host.
        mac: MacAddr,
    },
    /// The address must not be used any more (RFC 5227 §2.4 b), because another host insists on it. The
    /// caller should reset its connections. It is tried again later.
    Abandoned(Ipv4Addr),
}

/// Conflict detection for one IPv4 address.
///
/// Sans-IO: after every call that takes the time, call [`poll`](Self::poll) until it returns none. The
/// address is configured and has no alternative, so after a conflict it is tried again after 10 s, and after
/// 10 conflicts every minute.
#[derive(Debug)]
pub struct ConflictDetection {
    address: Ipv4Addr,
    mac: MacAddr,
    rng: RandomStream,
    phase: AcdPhase,
    conflicts: u32,
    /// When it was last defended.
    defended: Option<Instant>,
    actions: VecDeque<ConflictAction>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AcdPhase {
    /// Number of probes sent; at `next` the next one is due, or the last one has remained unanswered.
    Probing { sent: u8, next: Instant },
    /// Number of announcements sent; at `next` the next one is due.
    Announcing { sent: u8, next: Instant },
    /// In use.
    InUse,
    /// In use by another host; probed again at `until`.
    Conflicting { until: Instant },
}

impl ConflictDetection {
    /// Begins to probe for `address`, for a stack with MAC address `mac`.
    pub fn new(now: Instant, address: Ipv4Addr, mac: MacAddr, rng: RandomStream) -> ConflictDetection {
        let phase = AcdPhase::InUse;
        let mut detection = ConflictDetection {
            address,
            mac,
            rng,
            phase,
            conflicts: 0,
            defended: None,
            actions: VecDeque::new(),
        };
        detection.restart(now);
        detection
    }

    /// Probes again, for example when a NIC regains its carrier after all had lost theirs (RFC 5227 §2.1).
    /// The address is not usable during the probes.
    pub fn restart(&mut self, now: Instant) {
        let wait = self.between(Span::ZERO, PROBE_WAIT);
        self.phase = AcdPhase::Probing { sent: 0, next: now + wait };
    }

    /// True if the stack may use the address. Otherwise no packet may carry it.
    pub const fn is_usable(&self) -> bool {
        matches!(self.phase, AcdPhase::Announcing { .. } | AcdPhase::InUse)
    }
    /// The address.
    pub const fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Handles a received ARP packet. `is_ours` recognises own packets that arrive on another NIC; they are
    /// ignored.
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
                self.phase = AcdPhase::Conflicting { until: now + self.retry_interval() };
            }
            AcdPhase::Announcing { .. } | AcdPhase::InUse if has_it => {
                self.conflict(mac);
                if self.defended.is_some_and(|at| now.since(at) <= DEFEND_INTERVAL) {
                    self.phase = AcdPhase::Conflicting { until: now + RATE_LIMIT_INTERVAL };
                    self.actions.push_back(ConflictAction::Abandoned(self.address));
                } else {
                    self.defended = Some(now);
                    self.announce();
                }
            }
            _ => {}
        }
    }

    /// The next action.
    pub fn poll(&mut self) -> Option<ConflictAction> {
        self.actions.pop_front()
    }
    /// When to call [`on_deadline`](Self::on_deadline).
    pub const fn deadline(&self) -> Option<Instant> {
        match self.phase {
            AcdPhase::Probing { next, .. }
            | AcdPhase::Announcing { next, .. }
            | AcdPhase::Conflicting { until: next } => Some(next),
            AcdPhase::InUse => None,
        }
    }
    /// Sends the next probe or announcement, or begins a new probe.
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
                    _ => AcdPhase::InUse,
                }
            }
            AcdPhase::Conflicting { .. } => {
                let wait = self.between(Span::from_nanos(1), PROBE_WAIT);
                AcdPhase::Probing { sent: 0, next: now + wait }
            }
            AcdPhase::InUse => AcdPhase::InUse,
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
    /// Delay before the next probe after a conflict.
    const fn retry_interval(&self) -> Span {
        if self.conflicts < MAX_CONFLICTS { DEFEND_INTERVAL } else { RATE_LIMIT_INTERVAL }
    }
    fn between(&mut self, min: Span, max: Span) -> Span {
        min + Span::from_nanos(self.rng.below((max - min).as_nanos().saturating_add(1)))
    }
}

#[cfg(test)]
mod tests;
