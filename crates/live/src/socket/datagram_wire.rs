//! The state that a UDP socket of a program shares with the driver.

use super::engine::Engine;
use super::registry::{Interrupt, Registry};
use super::shared::{Readiness, Ready, SharedState};
use bytes::Bytes;
use farpace_host::ip::udp::{IpFields, UdpDatagram, UdpId};
use nix::errno::Errno;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Weak};

/// Maximum number of unread datagrams in the program's part of a socket; the host's part holds more.
pub(super) const MAX_INCOMING: usize = 256;
/// Maximum number of datagrams to send; beyond it sending waits.
pub(super) const MAX_OUTGOING: usize = 256;

/// The state that a socket and the driver share.
pub(super) struct DatagramWire {
    pub shared: SharedState<DatagramQueue>,
    engine: Arc<dyn Engine>,
    registry: Arc<Registry>,
    place: u64,
}

#[derive(Default)]
pub(super) struct DatagramQueue {
    pub incoming: VecDeque<UdpDatagram>,
    pub outgoing: VecDeque<OutgoingDatagram>,
    pub kicked: bool,
    /// The host's socket has more datagrams than were moved.
    pub starved: bool,
    arrivals: u64,
    pub reads: u64,
    /// The program reads no more, or writes no more.
    pub read_shutdown: bool,
    pub write_shutdown: bool,
    pub closed: bool,
    /// The error that ended the socket.
    pub error: Option<Errno>,
    /// A pending error of the network; reported once.
    pub soft_error: Option<Errno>,
}

/// A datagram to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingDatagram {
    /// Destination.
    pub to: SocketAddr,
    /// Source address of the host; none: that of the socket, or selected by the host.
    pub from: Option<IpAddr>,
    /// Fields of its IP header.
    pub ip: IpFields,
    /// Payload.
    pub payload: Bytes,
}

impl DatagramQueue {
    pub fn has_room(&mut self) -> bool {
        self.starved = self.incoming.len() >= MAX_INCOMING;
        !self.starved
    }
    pub fn push(&mut self, datagram: UdpDatagram) {
        self.incoming.push_back(datagram);
        self.arrivals += 1;
    }
}

impl Ready for DatagramQueue {
    fn readiness(&self) -> Readiness {
        let failed = self.error.is_some();
        let has_soft_error = self.soft_error.is_some();
        Readiness {
            readable: failed
                || has_soft_error
                || self.closed
                || self.read_shutdown
                || !self.incoming.is_empty(),
            writable: failed || has_soft_error || self.closed || self.outgoing.len() < MAX_OUTGOING,
            read_ended: self.closed || self.read_shutdown,
            over: self.closed || (self.read_shutdown && self.write_shutdown),
            // A temporary error leaves the socket open, and must not look like its end.
            failed,
            urgent: false,
            arrivals: self.arrivals + u64::from(has_soft_error),
            reads: self.reads,
        }
    }
}

impl Interrupt for DatagramWire {
    fn interrupt(&self) {
        self.shared.interrupt();
    }
}

impl Drop for DatagramWire {
    fn drop(&mut self) {
        self.registry.leave(self.place);
    }
}

impl DatagramWire {
    /// The state of a new socket, which is registered.
    pub fn new(engine: &Arc<dyn Engine>, registry: &Arc<Registry>) -> Arc<Self> {
        let place = registry.reserve();
        let (engine, registry) = (engine.clone(), registry.clone());
        let shared = SharedState::new(DatagramQueue::default());
        let wire = Arc::new(DatagramWire { shared, engine, registry, place });
        let weak: Weak<dyn Interrupt> = Arc::<DatagramWire>::downgrade(&wire);
        wire.registry.enter(place, weak);
        wire
    }
    /// The engine of its host.
    pub fn engine(&self) -> &dyn Engine {
        &*self.engine
    }
    /// Bytes to read, and bytes to send.
    pub fn waiting(&self) -> (usize, usize) {
        self.shared.with(|box_| {
            let outgoing = box_.outgoing.iter().map(|datagram| datagram.payload.len()).sum();
            (box_.incoming.iter().map(|datagram| datagram.payload.len()).sum(), outgoing)
        })
    }
    /// Notifies the driver of work on this socket.
    pub fn kick(self: &Arc<Self>, id: UdpId) {
        let ended = self.engine.run(Box::new(move |host, cx| host.run_udp(id, cx))).is_err();
        if ended {
            self.shared.with(|box_| (box_.closed, box_.error) = (true, Some(Errno::ENETDOWN)));
        }
    }
}
