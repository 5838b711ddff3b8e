//! How two gateways agree on the orderly end of one of them.
//!
//! A gateway that ends says so to its peer, again and again, and the peer hands its connections over to their
//! hosts, too. Otherwise bytes that the peer has acknowledged could not be delivered any more. Both messages
//! are ARP packets between the gateways with experimental operations (RFC 5494), which gateways without this
//! ignore. Hosts cannot send them: they come authenticated by the tunnels only.

use farpace_units::{Instant, Span};
use farpace_wire::{Arp, ArpOperation, MacAddr};

/// Asks for the connections that the peer has: the sender ends.
const ENDS: ArpOperation = ArpOperation::Other(24);
/// Answers with their number, in the last four bytes of the target's MAC address.
const LEFT: ArpOperation = ArpOperation::Other(25);
/// Between two questions.
const INTERVAL: Span = Span::from_millis(200);
/// For so long after the last question of a peer it is about to end: five questions may be lost.
const MAX_SILENCE: Span = Span::from_millis(1_200);
/// For so long after it paths that fail are taken for its end: longer than it takes for them to fail.
const LATELY: Span = Span::from_secs(5);
/// For so long an answer is waited for; longer than the round trip of two satellite links.
const MAX_WAIT: Span = Span::from_secs(2);

/// What a gateway knows of its own end and of that of its peer.
#[derive(Debug, Default)]
pub struct PeerEnd {
    /// None: this gateway does not end.
    own: Option<OwnEnd>,
    /// When the peer was last heard to end.
    peer: Option<Instant>,
    /// Connections of this gateway.
    left: u32,
}

#[derive(Clone, Copy, Debug)]
struct OwnEnd {
    /// When to ask again.
    next: Instant,
    /// When an answer was last heard; before that, when the end began.
    heard: Instant,
    /// Connections of the peer.
    left: Option<u32>,
}

impl PeerEnd {
    /// This gateway ends.
    pub fn begin(&mut self, now: Instant) {
        self.own.get_or_insert(OwnEnd { next: now, heard: now, left: None });
    }
    /// The peer need not be waited for: it has no connections left, or does not answer.
    pub fn is_done(&self, now: Instant) -> bool {
        self.own.is_some_and(|own| own.left == Some(0) || now.since(own.heard) >= MAX_WAIT)
    }
    /// The peer is about to end.
    pub fn peer_ends(&self, now: Instant) -> bool {
        self.peer.is_some_and(|heard| now.since(heard) < MAX_SILENCE)
    }
    /// The peer was about to end not long ago.
    pub fn peer_ended_lately(&self, now: Instant) -> bool {
        self.peer.is_some_and(|heard| now.since(heard) < LATELY)
    }
    /// This gateway has so many connections.
    pub fn set_left(&mut self, left: usize) {
        self.left = u32::try_from(left).unwrap_or(u32::MAX);
    }
    /// When to call [`question`](PeerEnd::question).
    pub fn deadline(&self) -> Option<Instant> {
        self.own.map(|own| own.next)
    }
    /// Makes the question that is due from `request`, an ARP request to the peer.
    pub fn question(&mut self, now: Instant, request: Arp) -> Option<Arp> {
        let own = self.own.as_mut().filter(|own| own.next <= now)?;
        own.next = now + INTERVAL;
        Some(Arp { operation: ENDS, ..request })
    }
    /// Takes an ARP packet of the peer in; the answer, from `request`, an ARP request to it.
    pub fn on_arp(&mut self, now: Instant, arp: &Arp, request: Arp) -> Option<Arp> {
        let MacAddr([_, _, left @ ..]) = arp.target_mac;
        match arp.operation {
            ENDS => {
                self.peer = Some(now);
                let [a, b, c, d] = self.left.to_be_bytes();
                return Some(Arp { operation: LEFT, target_mac: MacAddr([0, 0, a, b, c, d]), ..request });
            }
            LEFT => {
                if let Some(own) = &mut self.own {
                    (own.heard, own.left) = (now, Some(u32::from_be_bytes(left)));
                }
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }
    fn request() -> Arp {
        Arp::request(MacAddr([2; 6]), Ipv4Addr::new(100, 64, 0, 1), Ipv4Addr::new(100, 64, 0, 2))
    }

    /// Breaks: a gateway ends while its peer has connections, waits for ever for a peer that does not answer,
    /// or a peer that has heard of an end waits for ever for it.
    #[test]
    fn an_end_waits_for_the_connections_of_the_peer() {
        let (mut own, mut peer) = (PeerEnd::default(), PeerEnd::default());
        assert!(
            own.deadline().is_none() && own.question(at(0), request()).is_none() && !own.is_done(at(9_999))
        );
        own.begin(at(0));
        peer.set_left(3);
        for (ms, left, done) in [(0, 70_000, false), (200, 1, false), (400, 0, true)] {
            assert_eq!(own.deadline(), Some(at(ms)));
            let question = own.question(at(ms), request()).unwrap();
            assert!(own.question(at(ms), request()).is_none());
            peer.set_left(left);
            let answer = peer.on_arp(at(ms), &question, request()).unwrap();
            assert!(own.on_arp(at(ms + 50), &answer, request()).is_none());
            assert_eq!(own.is_done(at(ms + 50)), done, "{ms}");
        }
        assert!(peer.peer_ends(at(1_500)) && !peer.peer_ends(at(1_600)));
        assert!(peer.peer_ended_lately(at(5_399)) && !peer.peer_ended_lately(at(5_400)));
        assert!(!own.peer_ended_lately(at(400)) && !own.peer_ends(at(0)) && !peer.is_done(at(9_999)));
        // Silence, from the beginning or after an answer.
        let mut alone = PeerEnd::default();
        alone.begin(at(100));
        assert!(!alone.is_done(at(2_000)) && alone.is_done(at(2_100)));
        let answer = peer.on_arp(at(0), &alone.question(at(100), request()).unwrap(), request());
        assert_eq!(answer.unwrap().target_mac, MacAddr([0; 6]));
        peer.set_left(1);
        let question = alone.question(at(300), request()).unwrap();
        alone.on_arp(at(1_000), &peer.on_arp(at(900), &question, request()).unwrap(), request());
        assert!(!alone.is_done(at(2_900)) && alone.is_done(at(3_000)));
    }
}
