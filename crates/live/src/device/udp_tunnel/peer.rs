//! Another end of a tunnel.

use super::PeerConfig;
use super::keys::{PublicKey, SecretKey};
use super::pmtu::Pmtu;
use boringtun::noise::Tunn;
use boringtun::noise::rate_limiter::RateLimiter;
use farpace_units::{Instant, Span};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Bytes that WireGuard adds to a packet: type 4, receiver 4, counter 8, tag 16.
pub(super) const OVERHEAD: usize = 32;
/// Outside of that: UDP 8, and IP of either version.
const OUTER_V4: u16 = 28;
const OUTER_V6: u16 = 48;
/// After this a handshake that is not answered is begun anew while a tunnel is being opened; it doubles each
/// time. (The protocol's own time, for later handshakes, is 5 s.) An answer to any but the last two is of no
/// use, so a path by a geostationary satellite must have its answer before the third.
const FIRST_RETRY: Span = Span::from_millis(400);
/// Longer than this a peer that answers is not silent.
const SILENCE: Span = Span::from_secs(2);
/// What a peer without a route or an endpoint is taken to reach.
const USUAL_MTU: u16 = 1_500;

/// Another end of a tunnel.
pub(super) struct TunnelPeer {
    pub key: PublicKey,
    pub tunn: Tunn,
    /// Where it was heard last; before that where it is said to be.
    pub endpoint: Option<SocketAddr>,
    /// By which of our addresses it reaches us; none: routes decide.
    pub from: Option<IpAddr>,
    /// Where else it may be, until it has answered.
    pub candidates: Vec<SocketAddr>,
    /// Which addresses inside are its own.
    pub allowed: Vec<(IpAddr, u8)>,
    /// It was not admitted, but configured: it stays.
    pub configured: bool,
    /// It has sent a packet that only somebody with all keys can send.
    pub proven: bool,
    pub born: Instant,
    pub heard: Instant,
    /// When the first packet left since it was heard last.
    pub asked: Option<Instant>,
    /// It was heard again after a silence, which nobody knows yet.
    pub is_back: bool,
    pub pmtu: Pmtu,
    pub echo: u16,
    pub retry_at: Option<(Instant, Span)>,
    /// Bytes of packets inside.
    pub received: u64,
    pub sent: u64,
    pub handshakes: u64,
    /// The address outside has changed so many times.
    pub moves: u64,
}

impl TunnelPeer {
    pub fn new(
        now: Instant,
        own: &SecretKey,
        config: &PeerConfig,
        index: u32,
        limiter: Arc<RateLimiter>,
    ) -> Self {
        let preshared = config.preshared.as_ref().map(|key| key.to_bytes());
        let tunn = Tunn::new(
            own.secret().clone(),
            config.key.point(),
            preshared,
            config.keepalive,
            index,
            Some(limiter),
        );
        let v6 = config.endpoints.first().is_some_and(SocketAddr::is_ipv6);
        TunnelPeer {
            key: config.key,
            tunn,
            endpoint: config.endpoints.first().copied(),
            from: None,
            candidates: config.endpoints.clone(),
            allowed: config.allowed.clone(),
            configured: true,
            proven: false,
            born: now,
            heard: now,
            asked: None,
            is_back: false,
            pmtu: Pmtu::new(now, overhead(v6), inner_mtu(USUAL_MTU, v6)),
            echo: index as u16,
            retry_at: None,
            received: 0,
            sent: 0,
            handshakes: 0,
            moves: 0,
        }
    }

    /// True if a packet inside may come from there, or go there; with how many bits it says so.
    pub fn allows(&self, address: IpAddr) -> Option<u8> {
        let matches = |(network, bits): &(IpAddr, u8)| contains(*network, *bits, address).then_some(*bits);
        self.allowed.iter().filter_map(matches).max()
    }
    /// Its own address inside, if it is one alone.
    pub fn host(&self) -> Option<IpAddr> {
        self.allowed.iter().find(|(ip, bits)| *bits == if ip.is_ipv4() { 32 } else { 128 }).map(|(ip, _)| *ip)
    }
    /// There are keys with which packets can be sent.
    pub fn is_ready(&self) -> bool {
        self.tunn.time_since_last_handshake().is_some()
    }

    /// An authentic packet has come from there. True: that is news.
    pub fn heard_at(&mut self, now: Instant, from: SocketAddr, by: Option<IpAddr>) -> bool {
        self.is_back |= now.since(self.heard) > SILENCE;
        (self.heard, self.asked) = (now, None);
        let fixed = self.configured && !self.candidates.is_empty();
        // Who began must be free to change its own address; who answers does so by the address that was
        // asked.
        self.from = if fixed { None } else { by };
        let moved = self.endpoint != Some(from);
        let first = self.endpoint.is_none() || !self.proven;
        self.endpoint = Some(from);
        self.moves += u64::from(moved && !first);
        moved
    }

    /// What is to be found out about the path towards the endpoint, anew.
    pub fn new_path(&mut self, now: Instant, interface: Option<u16>, cap: u16) {
        let v6 = self.endpoint.is_some_and(|to| to.ip().to_canonical().is_ipv6());
        self.pmtu = Pmtu::new(now, overhead(v6), inner_mtu(interface.unwrap_or(USUAL_MTU), v6).min(cap));
    }

    /// When the next attempt to open the tunnel is to be made.
    pub fn attempt(&mut self, now: Instant) {
        let wait = self.retry_at.map_or(FIRST_RETRY, |(_, wait)| (wait * 2).min(Span::from_secs(5)));
        self.retry_at = Some((now + wait, wait));
    }
}

const fn overhead(v6: bool) -> u16 {
    OVERHEAD as u16 + if v6 { OUTER_V6 } else { OUTER_V4 }
}

/// The longest packet inside where the longest outside is `outer`. What a datagram can carry is the limit,
/// too.
pub(super) const fn inner_mtu(outer: u16, v6: bool) -> u16 {
    outer.saturating_sub(overhead(v6))
}

fn contains(network: IpAddr, bits: u8, address: IpAddr) -> bool {
    match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            let differ = u32::from(network) ^ u32::from(address);
            differ.leading_zeros() >= bits.into()
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            let differ = u128::from(network) ^ u128::from(address);
            differ.leading_zeros() >= bits.into()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a peer may use addresses of others, or not its own.
    #[test]
    fn networks_contain_what_they_say() {
        let has = |network: &str, bits, address: &str| {
            contains(network.parse().unwrap(), bits, address.parse().unwrap())
        };
        assert!(has("10.0.0.0", 8, "10.255.0.1") && !has("10.0.0.0", 8, "11.0.0.1"));
        assert!(has("10.1.2.3", 32, "10.1.2.3") && !has("10.1.2.3", 32, "10.1.2.2"));
        assert!(has("0.0.0.0", 0, "255.1.1.1") && !has("0.0.0.0", 0, "::1"));
        assert!(has("fd00::", 8, "fdff::1") && !has("fd00::1", 128, "fd00::2") && has("::", 0, "fd00::2"));
    }
}
