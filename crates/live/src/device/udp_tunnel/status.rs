//! What others see of a tunnel while it is at work.

use super::DeviceCounters;
use super::keys::PublicKey;
use super::peer::TunnelPeer;
use farpace_units::Instant;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What was not accepted, by its cause. None of it reached the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RejectedDatagrams {
    /// No message of WireGuard, or cut.
    pub malformed: u64,
    /// For keys that do not exist any more, or never did.
    pub unknown: u64,
    /// Forged, damaged, or sealed with other keys.
    pub forged: u64,
    /// Sent before, or too old: replays.
    pub replayed: u64,
    /// Handshakes that were answered with a cookie, or not at all, because there were too many.
    pub flooded: u64,
    /// From an address inside that is not the sender's.
    pub foreign: u64,
    /// Marked as having met congestion though its sender takes no part (RFC 6040 §4.2).
    pub marked: u64,
}

/// One peer, as it was a moment ago.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerStatus {
    /// Who it is.
    pub key: PublicKey,
    /// Where it was heard last.
    pub endpoint: Option<SocketAddr>,
    /// It has sent an authentic packet.
    pub proven: bool,
    /// The longest packet inside, in bytes.
    pub mtu: u16,
    /// The last round trip of a probe.
    pub rtt: Option<Duration>,
    /// How long ago the first packet left since it was heard last. None: nothing has left since.
    pub unanswered: Option<Duration>,
    /// Bytes of packets inside that came, and that left.
    pub received: u64,
    /// The same.
    pub sent: u64,
    /// Handshakes that were completed.
    pub handshakes: u64,
    /// How often its address outside has changed.
    pub moves: u64,
}

/// A handle by which another thread looks at a tunnel. It is renewed four times a second.
#[derive(Clone, Debug, Default)]
pub struct TunnelStatus(Arc<Mutex<TunnelSnapshot>>);

#[derive(Clone, Debug, Default)]
struct TunnelSnapshot {
    peers: Vec<PeerStatus>,
    rejected: RejectedDatagrams,
    counters: DeviceCounters,
}

impl TunnelStatus {
    pub(super) fn set<'a>(
        &self,
        now: Instant,
        peers: impl Iterator<Item = &'a TunnelPeer>,
        rejected: RejectedDatagrams,
        counters: DeviceCounters,
    ) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.peers.clear();
        seen.peers.extend(peers.map(|peer| PeerStatus {
            key: peer.key,
            endpoint: peer.endpoint,
            proven: peer.proven,
            mtu: peer.pmtu.mtu(),
            rtt: peer.pmtu.rtt().map(|rtt| Duration::from_nanos(rtt.as_nanos())),
            unanswered: peer.asked.map(|at| Duration::from_nanos(now.since(at).as_nanos())),
            received: peer.received,
            sent: peer.sent,
            handshakes: peer.handshakes,
            moves: peer.moves,
        }));
        (seen.rejected, seen.counters) = (rejected, counters);
    }
    /// All peers.
    pub fn peers(&self) -> Vec<PeerStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).peers.clone()
    }
    /// What was not accepted.
    pub fn rejected(&self) -> RejectedDatagrams {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).rejected
    }
    /// What went over the device.
    pub fn counters(&self) -> DeviceCounters {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).counters
    }
}
