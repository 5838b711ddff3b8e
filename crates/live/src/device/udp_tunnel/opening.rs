//! Datagrams from outside: from peers, from whoever wants to become one, and from strangers.

use super::framing::{Framed, WireguardFraming};
use super::keys::PublicKey;
use super::peer::TunnelPeer;
use super::socket::{OutgoingBatch, TunnelSocket};
use super::{PeerConfig, UdpTunnel, probe};
use boringtun::noise::errors::WireGuardError;
use boringtun::noise::handshake::parse_handshake_anon;
use boringtun::noise::{Packet as Message, TunnResult};
use farpace_units::{Instant, Span};
use farpace_wire::Packet;
use quinn_udp::{EcnCodepoint, RecvMeta};
use std::net::IpAddr;

/// Peers at most, configured ones included.
pub const MAX_PEERS: usize = 1_024;
/// Of them, so many that were admitted and have not yet proved that they know all keys. A newer one displaces
/// the oldest.
pub const MAX_UNPROVEN: usize = 64;
/// For so long they may.
pub const UNPROVEN_TIME: Span = Span::from_secs(10);
/// Handshakes that are answered in a second, at most; each takes about 0.2 ms.
pub const MAX_HANDSHAKES: u32 = 200;
/// Peers that were admitted and are silent for so long are forgotten: no key of theirs is valid any more by
/// then.
pub(super) const SILENT_TIME: Span = Span::from_secs(540);

const INITIATION: u8 = 1;
const RESPONSE: u8 = 2;
const COOKIE: u8 = 3;
const DATA: u8 = 4;

impl UdpTunnel {
    /// One datagram.
    pub(super) fn open_datagram(
        &mut self,
        now: Instant,
        datagram: &[u8],
        meta: &RecvMeta,
        into: &mut Vec<Packet>,
    ) {
        match datagram.first() {
            Some(&DATA) => self.open_data(now, datagram, meta, into),
            Some(&(INITIATION | RESPONSE | COOKIE)) => self.open_handshake(now, datagram, meta),
            _ => self.rejected.malformed += 1,
        }
    }

    fn open_data(&mut self, now: Instant, datagram: &[u8], meta: &RecvMeta, into: &mut Vec<Packet>) {
        let index = datagram
            .get(4..8)
            .and_then(|bytes| bytes.first_chunk())
            .map(|bytes| u32::from_le_bytes(*bytes) >> 8);
        let Some(index) = index else {
            self.rejected.malformed += 1;
            return;
        };
        let Some(peer) = self.peers.get_mut(&index) else {
            let is_passed = self.inlet.is_none() && self.socket.pass_index(index, datagram, meta);
            self.rejected.unknown += u64::from(!is_passed);
            return;
        };
        let outcome = peer.tunn.decapsulate(Some(meta.addr.ip()), datagram, &mut self.scratch);
        let (packet, from) = match outcome {
            TunnResult::WriteToTunnelV4(packet, from) => (packet, IpAddr::V4(from)),
            TunnResult::WriteToTunnelV6(packet, from) => (packet, IpAddr::V6(from)),
            // An empty packet: it is there.
            TunnResult::Done => {
                if Self::authentic(&self.socket, self.cap, peer, now, meta) {
                    self.next_tick = now;
                }
                return;
            }
            TunnResult::Err(error) => return self.reject(&error),
            TunnResult::WriteToNetwork(_) => return,
        };
        if Self::authentic(&self.socket, self.cap, peer, now, meta) {
            self.next_tick = now;
        }
        peer.received += packet.len() as u64;
        if peer.allows(from).is_none() {
            self.rejected.foreign += 1;
            return;
        }
        // Hosts behind the peer do not speak for it.
        let is_end = peer.host() == Some(from);
        if is_end && let Some(seq) = probe::reply(packet, peer.echo) {
            // The probe may have left since this round began.
            return peer.pmtu.on_reply(self.clock.now(), seq);
        }
        if let Some(framing) = self.framing.filter(|_| is_end) {
            if probe::is_request(packet) {
                return self.answer(index);
            }
            match framing.unwrap(packet) {
                Framed::Frame(frame) => {
                    self.counters.received += 1;
                    into.push(frame);
                    return;
                }
                Framed::Bad => {
                    self.rejected.foreign += 1;
                    return;
                }
                Framed::Ip => {}
            }
        }
        let ce = meta.ecn == Some(EcnCodepoint::Ce);
        // RFC 6040 §4.2: a mark that its sender would not understand is a loss.
        if ce && !takes_part(packet) {
            self.rejected.marked += 1;
            return;
        }
        self.counters.bytes_received += packet.len() as u64;
        self.counters.segments_received += 1;
        let before = into.len();
        if !self.coalescer.push(packet, ce, into) {
            self.counters.malformed += 1;
        }
        self.counters.received += (into.len() - before) as u64;
        if let Some(WireguardFraming { own, peer }) = self.framing {
            into.iter_mut().skip(before).for_each(|packet| packet.set_macs(peer, own));
        }
    }

    /// A packet was sealed with the keys of `peer`: it is there, and knows everything. True: that, or where
    /// it is, is news, which the status shows at once.
    fn authentic(
        socket: &TunnelSocket,
        cap: u16,
        peer: &mut TunnelPeer,
        now: Instant,
        meta: &RecvMeta,
    ) -> bool {
        let moved = peer.heard_at(now, meta.addr, meta.dst_ip);
        let is_news = moved || !peer.proven;
        if is_news {
            peer.new_path(now, socket.interface_mtu(meta.addr), cap);
        }
        peer.proven = true;
        peer.retry_at = None;
        is_news
    }

    fn open_handshake(&mut self, now: Instant, datagram: &[u8], meta: &RecvMeta) {
        let mut room = [0; 256];
        let message = match self.limiter.verify_packet(Some(meta.addr.ip()), datagram, &mut room) {
            Ok(message) => message,
            Err(TunnResult::WriteToNetwork(cookie)) => {
                self.rejected.flooded += 1;
                let segment = cookie.len();
                self.socket.send(&OutgoingBatch {
                    to: meta.addr,
                    from: meta.dst_ip,
                    ecn: None,
                    segment,
                    bytes: cookie,
                });
                return;
            }
            Err(TunnResult::Err(error)) => return self.reject(&error),
            Err(_) => return,
        };
        let index = match &message {
            Message::HandshakeInit(init) => {
                if !self.has_time(now) {
                    self.rejected.flooded += 1;
                    return;
                }
                match parse_handshake_anon(self.key.secret(), &self.key.public().point(), init) {
                    Ok(half) => {
                        let key = PublicKey::from_bytes(half.peer_static_public);
                        if self.inlet.is_none() && self.socket.pass_key(key, datagram, meta) {
                            return;
                        }
                        self.peer_of(now, key)
                    }
                    Err(error) => return self.reject(&error),
                }
            }
            Message::HandshakeResponse(response) => Some(response.receiver_idx >> 8),
            Message::PacketCookieReply(reply) => Some(reply.receiver_idx >> 8),
            Message::PacketData(_) => None,
        };
        let Some((index, peer)) = index.and_then(|index| Some((index, self.peers.get_mut(&index)?))) else {
            let pass = |index| self.inlet.is_none() && self.socket.pass_index(index, datagram, meta);
            let is_passed = index.is_some_and(pass);
            self.rejected.unknown += u64::from(!is_passed);
            return;
        };
        let response = matches!(message, Message::HandshakeResponse(_));
        match peer.tunn.decapsulate(Some(meta.addr.ip()), datagram, &mut self.scratch) {
            TunnResult::WriteToNetwork(answer) => {
                let segment = answer.len();
                self.socket.send(&OutgoingBatch {
                    to: meta.addr,
                    from: meta.dst_ip,
                    ecn: None,
                    segment,
                    bytes: answer,
                });
            }
            TunnResult::Err(error) => return self.reject(&error),
            _ => return,
        }
        peer.handshakes += 1;
        if response {
            // It knows our key and its own, and has mixed in all secrets.
            if Self::authentic(&self.socket, self.cap, peer, now, meta) {
                self.next_tick = now;
            }
        } else if peer.endpoint.is_none() {
            (peer.endpoint, peer.from) = (Some(meta.addr), meta.dst_ip);
        }
        self.send_queued(index);
    }

    /// What was kept until there were keys.
    fn send_queued(&mut self, index: u32) {
        let Some(peer) = self.peers.get_mut(&index) else { return };
        let Some(to) = peer.endpoint.filter(|_| peer.is_ready()) else { return };
        while let TunnResult::WriteToNetwork(datagram) = peer.tunn.decapsulate(None, &[], &mut self.scratch) {
            let segment = datagram.len();
            self.socket.send(&OutgoingBatch { to, from: peer.from, ecn: None, segment, bytes: datagram });
        }
    }

    /// False if enough handshakes were answered in this second.
    fn has_time(&mut self, now: Instant) -> bool {
        let (since, count) = &mut self.handshakes;
        if now.since(*since) >= Span::from_secs(1) {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        *count <= MAX_HANDSHAKES
    }

    /// The peer with this key; one that is not known is admitted, if any may be.
    fn peer_of(&mut self, now: Instant, key: PublicKey) -> Option<u32> {
        if let Some(index) = self.by_key.get(&key) {
            return Some(*index);
        }
        let admit = self.admit.clone()?;
        let address = IpAddr::from(key.inner_address());
        let taken = self.addresses.contains(&address)
            || self.peers.values().any(|peer| peer.proven && peer.allows(address).is_some());
        if taken {
            return None;
        }
        let unproven = || self.peers.iter().filter(|(_, peer)| !peer.configured && !peer.proven);
        if unproven().count() >= MAX_UNPROVEN || self.peers.len() >= MAX_PEERS {
            let oldest = unproven().min_by_key(|(_, peer)| peer.born).map(|(index, _)| *index)?;
            self.remove_peer(oldest);
        }
        let config = PeerConfig::at(key, Some(admit), Vec::new());
        let index = self.add_peer(now, &config).ok()?;
        if let Some(peer) = self.peers.get_mut(&index) {
            peer.configured = false;
        }
        Some(index)
    }

    fn reject(&mut self, error: &WireGuardError) {
        let count = match error {
            WireGuardError::InvalidCounter
            | WireGuardError::DuplicateCounter
            | WireGuardError::WrongTai64nTimestamp => &mut self.rejected.replayed,
            WireGuardError::InvalidMac
            | WireGuardError::InvalidAeadTag
            | WireGuardError::WrongKey
            | WireGuardError::InvalidTai64nTimestamp => &mut self.rejected.forged,
            WireGuardError::NoCurrentSession
            | WireGuardError::WrongIndex
            | WireGuardError::UnexpectedPacket => &mut self.rejected.unknown,
            WireGuardError::UnderLoad => &mut self.rejected.flooded,
            _ => &mut self.rejected.malformed,
        };
        *count += 1;
    }
}

/// True if the sender of an IP packet understands marks.
fn takes_part(packet: &[u8]) -> bool {
    match packet {
        [first, tos, ..] if first >> 4 == 4 => tos & 3 != 0,
        [first, second, ..] if first >> 4 == 6 => (second >> 4) & 3 != 0,
        _ => false,
    }
}
