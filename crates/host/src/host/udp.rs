//! UDP sockets of a host.

use super::Host;
use crate::binds::Bind;
use crate::datagrams::DatagramProgram;
use crate::ip::icmp::IcmpError;
use crate::ip::udp::{BindError, Delivery, SendError, UdpId, UdpSockets};
use crate::secret::{Purpose, Tuple};
use farpace_path::{Cx, DropReason};
use farpace_units::ByteCount;
use farpace_wire::Packet;
use std::any::Any;
use std::net::{IpAddr, SocketAddr};

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
        let nobody = Tuple { local: bind.address, remote: bind.address, local_port: 0, remote_port: 0 };
        let sockets = self.datagrams.sockets().len() as u64;
        let random = self.secret.hash(Purpose::Port, &nobody, sockets);
        self.datagrams.open(bind, random, program)
    }

    /// Closes a UDP socket and ends its program.
    pub fn close_udp(&mut self, id: UdpId) {
        self.datagrams.close(id);
    }

    /// From now on a UDP socket hears `remote` alone, and others can have its port; none: it hears everybody
    /// again.
    ///
    /// # Errors
    /// See [`UdpSockets::connect`].
    pub fn connect_udp(&mut self, id: UdpId, remote: Option<SocketAddr>) -> Result<(), SendError> {
        match remote {
            Some(remote) => self.datagrams.sockets_mut().connect(id, remote),
            None => {
                self.datagrams.sockets_mut().disconnect(id);
                Ok(())
            }
        }
    }

    /// What may wait in a UDP socket to be read.
    pub fn set_udp_buffer(&mut self, id: UdpId, buffer: ByteCount) {
        self.datagrams.sockets_mut().set_receive_buffer(id, buffer);
    }

    /// Changes whom a UDP socket bears beside it at its port.
    pub fn set_udp_reuse(&mut self, id: UdpId, reuse_address: bool, reuse_port: bool) {
        self.datagrams.sockets_mut().set_reuse(id, reuse_address, reuse_port);
    }

    /// The UDP sockets, to look at.
    pub fn udp(&self) -> &UdpSockets {
        self.datagrams.sockets()
    }

    /// Calls the program of a UDP socket between datagrams, and sends what it has to send then.
    pub fn run_udp(&mut self, id: UdpId, cx: &mut Cx<'_>) {
        self.datagrams.run(cx.now(), id);
        self.run_ready(cx);
    }

    /// Where a UDP socket is; the address is unspecified if it is at all of them.
    pub fn udp_local(&self, id: UdpId) -> Option<SocketAddr> {
        self.datagrams.sockets().local(id)
    }

    /// The program of a UDP socket, if it is a `T`.
    pub fn datagram_program<T: DatagramProgram>(&self, id: UdpId) -> Option<&T> {
        let program: &dyn Any = self.datagrams.program(id)?;
        program.downcast_ref()
    }

    /// A UDP datagram for one of our addresses.
    pub(super) fn on_udp(&mut self, packet: Packet, cx: &mut Cx<'_>) {
        match self.datagrams.sockets_mut().on_packet(cx.now(), &packet) {
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
    pub(super) fn wake_datagrams(&mut self, cx: &mut Cx<'_>) {
        self.datagrams.run_due(&mut self.internet, cx);
    }

    /// Calls the programs that have something to read, and sends what there is to send.
    pub(super) fn run_ready(&mut self, cx: &mut Cx<'_>) {
        self.datagrams.run_ready(&mut self.internet, cx);
    }
}
