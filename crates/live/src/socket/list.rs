//! Lists of the sockets of a host, like the output of `ss -tuni`.

use super::bridge::Bridge;
use super::datagram_bridge::DatagramBridge;
use super::posix::TcpInfo;
use super::registry::Backlogs;
use super::snapshot::ConnectionSnapshot;
use farpace_host::Host;
use farpace_units::Instant;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// Maximum number of sockets in a list. Further sockets are only counted.
pub const MAX_ROWS: usize = 4096;

/// ACK requests of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acks {
    /// Segments sent with a request for an immediate ACK.
    pub asked: u64,
    /// ACKs received that confirm a request.
    pub confirmed: u64,
    /// Segments received with a request.
    pub requests: u64,
    /// Confirmations sent.
    pub confirmations: u64,
}

/// The protocol of a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ListedProtocol {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
}

impl ListedProtocol {
    /// Its name in the output of `ss`.
    pub const fn name(self) -> &'static str {
        match self {
            ListedProtocol::Tcp => "tcp",
            ListedProtocol::Udp => "udp",
        }
    }
}

/// A socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketRow {
    /// TCP or UDP.
    pub protocol: ListedProtocol,
    /// The state in the output of `ss`: `ESTAB`, `LISTEN`; for UDP `UNCONN` and `ESTAB`.
    pub state: String,
    /// Unread bytes; for a listener, connections that wait to be accepted.
    pub recv_q: u64,
    /// Bytes that the peer has not acknowledged, or for UDP that were not sent; for a listener, the backlog.
    pub send_q: u64,
    /// Local address and port.
    pub local: SocketAddr,
    /// Address and port of the peer; none: a listener, or an unconnected UDP socket.
    pub peer: Option<SocketAddr>,
    /// Datagrams dropped because the buffer of a UDP socket was full.
    pub dropped: u64,
    /// Congestion control; none: a listener, or UDP.
    pub congestion: Option<String>,
    /// What limits the sender: `program`, `receive window`, `congestion window`, `nothing`.
    pub limit: Option<String>,
    /// ACK requests.
    pub acks: Acks,
    /// `struct tcp_info`; none: UDP.
    pub info: Option<TcpInfo>,
}

/// The sockets of a host at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// Purpose of the host: a command, or the name of a program.
    pub name: String,
    /// Process ID.
    pub pid: u32,
    /// Addresses of the host.
    pub addresses: Vec<IpAddr>,
    /// Its listeners, connections and UDP sockets.
    pub sockets: Vec<SocketRow>,
    /// Number of sockets beyond [`MAX_ROWS`].
    pub left_out: u64,
}

impl Listing {
    /// Lists the sockets of `host`. `backlogs`: of listeners whose connections programs accept.
    pub(crate) fn of(host: &Host, now: Instant, backlogs: &Backlogs) -> Self {
        let mut listing = Listing { addresses: host.addresses().to_vec(), ..Listing::default() };
        for listener in host.listening() {
            let (waiting, max) = backlogs.get(&listener.id).copied().unwrap_or((0, listener.backlog));
            let small = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
            let info = TcpInfo::listening(small(waiting), small(max));
            let (recv_q, send_q) = (waiting as u64, max as u64);
            let (local, state) = (listener.at, info.state_name().to_owned());
            let (peer, congestion, limit, acks) = (None, None, None, Acks::default());
            let (protocol, dropped, info) = (ListedProtocol::Tcp, 0, Some(info));
            listing.push(|| SocketRow {
                protocol,
                state,
                recv_q,
                send_q,
                local,
                peer,
                dropped,
                congestion,
                limit,
                acks,
                info,
            });
        }
        for (id, ends, connection) in host.live_connections() {
            listing.push(|| {
                let between = host.application::<Bridge>(id).map(Bridge::between);
                let (unread, waiting) = between.unwrap_or_default();
                let seen = ConnectionSnapshot::of(connection, now, waiting);
                let info = TcpInfo::of(&seen);
                let counters = &seen.counters;
                SocketRow {
                    protocol: ListedProtocol::Tcp,
                    state: info.state_name().to_owned(),
                    recv_q: connection.readable().get().saturating_add(unread as u64),
                    send_q: connection.unacknowledged().get().saturating_add(waiting as u64),
                    local: ends.local,
                    peer: Some(ends.remote),
                    dropped: 0,
                    congestion: Some(seen.congestion.name().to_owned()),
                    limit: Some(seen.limit.name().to_owned()),
                    acks: Acks {
                        asked: counters.asked,
                        confirmed: counters.confirmed,
                        requests: counters.requests,
                        confirmations: counters.confirmations,
                    },
                    info: Some(info),
                }
            });
        }
        for id in host.udp().ids() {
            let Some(local) = host.udp_local(id) else { continue };
            listing.push(|| {
                let bridge = host.datagram_program::<DatagramBridge>(id);
                let (unread, unsent) = bridge.map(|bridge| bridge.0.waiting()).unwrap_or_default();
                let peer = host.udp().remote(id);
                // For a connected socket, the source address of its datagrams.
                let own = peer.filter(|_| local.ip().is_unspecified());
                let own = own.and_then(|peer| host.source_for(peer.ip()));
                let local = own.map_or(local, |own| SocketAddr::new(own, local.port()));
                SocketRow {
                    protocol: ListedProtocol::Udp,
                    state: if peer.is_some() { "ESTAB" } else { "UNCONN" }.to_owned(),
                    recv_q: host.udp().queued(id).get().saturating_add(unread as u64),
                    send_q: unsent as u64,
                    local,
                    peer,
                    dropped: host.udp().dropped(id),
                    congestion: None,
                    limit: None,
                    acks: Acks::default(),
                    info: None,
                }
            });
        }
        listing
    }

    fn push(&mut self, row: impl FnOnce() -> SocketRow) {
        match self.sockets.len() < MAX_ROWS {
            true => self.sockets.push(row()),
            false => self.left_out += 1,
        }
    }
}
