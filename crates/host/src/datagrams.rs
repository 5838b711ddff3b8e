//! UDP at a host: programs with sockets, and how their datagrams come and go.

use crate::binds::Bind;
use crate::host::Host;
use crate::internet::Internet;
use crate::ip::icmp::{IcmpError, SoftError};
use crate::ip::udp::{BindError, Delivery, IpFields, SendError, UdpDatagram, UdpId, UdpSockets};
use crate::secret::{Purpose, Tuple};
use bytes::Bytes;
use farpace_path::{Cx, DropReason};
use farpace_units::{ByteCount, Instant, Span};
use farpace_wire::udp::UdpHeader;
use farpace_wire::{Below, Packet};
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

/// A program with one UDP socket. The host calls it when something waits in its socket, and when its deadline
/// comes.
pub trait DatagramProgram: Any {
    /// Reads and sends what it likes.
    fn run(&mut self, now: Instant, socket: &mut UdpSocket<'_>);
    /// When it wants to be called next. Pure; after `run` at `now` it is later than `now`, or none.
    fn deadline(&self) -> Option<Instant>;
}

/// The socket of a program, while it runs.
pub struct UdpSocket<'a> {
    sockets: &'a mut UdpSockets,
    id: UdpId,
    now: Instant,
}

impl UdpSocket<'_> {
    /// The next datagram that waits.
    pub fn receive(&mut self) -> Option<UdpDatagram> {
        self.sockets.receive(self.id)
    }

    /// Sends a datagram.
    ///
    /// # Errors
    /// See [`SendError`].
    pub fn send_to(&mut self, to: SocketAddr, payload: Bytes) -> Result<(), SendError> {
        self.sockets.send_to(self.now, self.id, to, payload)
    }

    /// The same from one of the host's addresses, if that is given, and with more to say in the IP header.
    ///
    /// # Errors
    /// See [`SendError`].
    pub fn send_with(
        &mut self,
        to: SocketAddr,
        from: Option<IpAddr>,
        ip: IpFields,
        payload: Bytes,
    ) -> Result<(), SendError> {
        self.sockets.send_with(self.now, self.id, to, from, ip, payload)
    }

    /// What went wrong on the way to where the socket is connected, once.
    pub fn take_soft_error(&mut self) -> Option<SoftError> {
        self.sockets.take_soft_error(self.id)
    }
}

struct RunningProgram {
    program: Box<dyn DatagramProgram>,
    /// As in [`DatagramPrograms::timers`].
    due: Option<Instant>,
}

/// The programs of a host, and when they want to be called.
#[derive(Default)]
pub(crate) struct DatagramPrograms {
    sockets: UdpSockets,
    programs: BTreeMap<UdpId, RunningProgram>,
    timers: BTreeSet<(Instant, UdpId)>,
}

impl DatagramPrograms {
    /// When a program is to be called.
    pub fn deadline(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// The sockets, for what comes in.
    pub fn sockets(&mut self) -> &mut UdpSockets {
        &mut self.sockets
    }

    fn run(&mut self, now: Instant, id: UdpId) {
        let Some(running) = self.programs.get_mut(&id) else { return };
        running.program.run(now, &mut UdpSocket { sockets: &mut self.sockets, id, now });
        // A program that wants to be called at once would be called for ever.
        let due = running.program.deadline().map(|at| at.max(now + Span::from_nanos(1)));
        if let Some(at) = std::mem::replace(&mut running.due, due) {
            self.timers.remove(&(at, id));
        }
        if let Some(at) = due {
            self.timers.insert((at, id));
        }
    }
}

impl Host {
    /// Opens a UDP socket at `port` (0: at any free one) of all addresses of the family of `like`, for
    /// `program`.
    ///
    /// # Errors
    /// The port is taken, or there are too many.
    pub fn open_udp(
        &mut self,
        like: IpAddr,
        port: u16,
        program: Box<dyn DatagramProgram>,
    ) -> Result<UdpId, BindError> {
        let all = if like.is_ipv4() { IpAddr::from([0; 4]) } else { IpAddr::from([0; 16]) };
        self.open_udp_at(Bind::alone(all, port), program)
    }

    /// The same where `bind` says.
    ///
    /// # Errors
    /// The port is taken and not shared, the address is not the host's, or there are too many sockets.
    pub fn open_udp_at(&mut self, bind: Bind, program: Box<dyn DatagramProgram>) -> Result<UdpId, BindError> {
        if !(bind.address.is_unspecified() || bind.any_address || self.internet.is_ours(bind.address)) {
            return Err(BindError::NotOurs(bind.address));
        }
        let sockets = &mut self.datagrams.sockets;
        let id = if bind.port == 0 {
            let nobody = Tuple { local: bind.address, remote: bind.address, local_port: 0, remote_port: 0 };
            sockets.bind_any(bind, self.secret.hash(Purpose::Port, &nobody, sockets.len() as u64))?
        } else {
            sockets.bind(bind)?
        };
        let due = program.deadline();
        if let Some(at) = due {
            self.datagrams.timers.insert((at, id));
        }
        self.datagrams.programs.insert(id, RunningProgram { program, due });
        Ok(id)
    }

    /// Closes a UDP socket and ends its program.
    pub fn close_udp(&mut self, id: UdpId) {
        if let Some(at) = self.datagrams.programs.remove(&id).and_then(|running| running.due) {
            self.datagrams.timers.remove(&(at, id));
        }
        self.datagrams.sockets.close(id);
    }

    /// From now on a UDP socket hears `remote` alone, and others can have its port; none: it hears everybody
    /// again.
    ///
    /// # Errors
    /// See [`UdpSockets::connect`].
    pub fn connect_udp(&mut self, id: UdpId, remote: Option<SocketAddr>) -> Result<(), SendError> {
        match remote {
            Some(remote) => self.datagrams.sockets.connect(id, remote),
            None => {
                self.datagrams.sockets.disconnect(id);
                Ok(())
            }
        }
    }

    /// What may wait in a UDP socket to be read.
    pub fn set_udp_buffer(&mut self, id: UdpId, buffer: ByteCount) {
        self.datagrams.sockets.set_receive_buffer(id, buffer);
    }

    /// Changes whom a UDP socket bears beside it at its port.
    pub fn set_udp_reuse(&mut self, id: UdpId, reuse_address: bool, reuse_port: bool) {
        self.datagrams.sockets.set_reuse(id, reuse_address, reuse_port);
    }

    /// The UDP sockets, to look at.
    pub fn udp(&self) -> &UdpSockets {
        &self.datagrams.sockets
    }

    /// Calls the program of a UDP socket between datagrams, and sends what it has to send then.
    pub fn run_udp(&mut self, id: UdpId, cx: &mut Cx<'_>) {
        self.datagrams.run(cx.now(), id);
        self.run_ready(cx);
    }

    /// Where a UDP socket is; the address is unspecified if it is at all of them.
    pub fn udp_local(&self, id: UdpId) -> Option<SocketAddr> {
        self.datagrams.sockets.local(id)
    }

    /// The program of a UDP socket, if it is a `T`.
    pub fn datagram_program<T: DatagramProgram>(&self, id: UdpId) -> Option<&T> {
        let program: &dyn Any = self.datagrams.programs.get(&id)?.program.as_ref();
        program.downcast_ref()
    }

    /// A UDP datagram for one of our addresses.
    pub(crate) fn on_udp(&mut self, packet: Packet, cx: &mut Cx<'_>) {
        match self.datagrams.sockets.on_packet(cx.now(), &packet) {
            Delivery::Queued(_) => cx.consume(packet),
            Delivery::Full(_) => cx.drop(packet, DropReason::HostLimit),
            Delivery::Malformed => cx.drop(packet, DropReason::Malformed),
            Delivery::NoSocket => {
                self.internet.complain(IcmpError::PortUnreachable, &packet, cx);
                cx.drop(packet, DropReason::NoListener);
            }
        }
        self.run_ready(cx);
    }

    /// Calls the programs whose time has come.
    pub(crate) fn wake_datagrams(&mut self, cx: &mut Cx<'_>) {
        while let Some(&(at, id)) = self.datagrams.timers.first()
            && at <= cx.now()
        {
            self.datagrams.run(cx.now(), id);
        }
        self.run_ready(cx);
    }

    /// Calls the programs that have something to read, and sends what there is to send.
    pub(crate) fn run_ready(&mut self, cx: &mut Cx<'_>) {
        while let Some(id) = self.datagrams.sockets.poll_ready() {
            self.datagrams.run(cx.now(), id);
        }
        while let Some(datagram) = self.datagrams.sockets.poll_transmit() {
            send(&mut self.internet, datagram, cx);
        }
    }
}

/// Puts a datagram on its way, in fragments if it is longer than a packet may be.
fn send(internet: &mut Internet, datagram: UdpDatagram, cx: &mut Cx<'_>) {
    let UdpDatagram { from, to, ecn, ip, payload, .. } = datagram;
    let local = if from.ip().is_unspecified() { internet.source_for(to.ip()) } else { Some(from.ip()) };
    // Where there is no way, UDP promises nothing.
    let Some(below) = local.and_then(|local| internet.below(local, to.ip())) else { return };
    let (tos, ttl) = (ip.dscp & !3 | ecn.bits(), ip.hops.unwrap_or(below.ttl));
    let below = Below { tos, ttl, dont_fragment: ip.whole, ..below };
    let header = UdpHeader { src_port: from.port(), dst_port: to.port() };
    let ident = internet.next_ident();
    if let Ok(packet) = below.udp(ident as u16, header, payload) {
        internet.send_in_parts(packet, ident, to.ip(), cx);
    }
}
