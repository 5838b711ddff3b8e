//! UDP at a host: programs with sockets, and how their datagrams come and go.

use crate::binds::Bind;
use crate::internet::Internet;
use crate::ip::icmp::SoftError;
use crate::ip::udp::{BindError, IpFields, SendError, UdpDatagram, UdpId, UdpSockets};
use bytes::Bytes;
use farpace_path::Cx;
use farpace_units::{Instant, Span};
use farpace_wire::Below;
use farpace_wire::udp::UdpHeader;
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

    /// The sockets, to look at.
    pub const fn sockets(&self) -> &UdpSockets {
        &self.sockets
    }

    /// The sockets, for what comes in.
    pub fn sockets_mut(&mut self) -> &mut UdpSockets {
        &mut self.sockets
    }

    /// Opens a socket for `program`; at a port that `random` chooses, if `bind` names none.
    pub fn open(
        &mut self,
        bind: Bind,
        random: u64,
        program: Box<dyn DatagramProgram>,
    ) -> Result<UdpId, BindError> {
        let id =
            if bind.port == 0 { self.sockets.bind_any(bind, random)? } else { self.sockets.bind(bind)? };
        let due = program.deadline();
        if let Some(at) = due {
            self.timers.insert((at, id));
        }
        self.programs.insert(id, RunningProgram { program, due });
        Ok(id)
    }

    /// Closes a socket and ends its program.
    pub fn close(&mut self, id: UdpId) {
        if let Some(at) = self.programs.remove(&id).and_then(|running| running.due) {
            self.timers.remove(&(at, id));
        }
        self.sockets.close(id);
    }

    /// The program of a socket.
    pub fn program(&self, id: UdpId) -> Option<&dyn DatagramProgram> {
        Some(self.programs.get(&id)?.program.as_ref())
    }

    /// Calls the programs whose time has come.
    pub fn run_due(&mut self, internet: &mut Internet, cx: &mut Cx<'_>) {
        while let Some(&(at, id)) = self.timers.first()
            && at <= cx.now()
        {
            self.run(cx.now(), id);
        }
        self.run_ready(internet, cx);
    }

    /// Calls the programs that have something to read, and sends what there is to send.
    pub fn run_ready(&mut self, internet: &mut Internet, cx: &mut Cx<'_>) {
        while let Some(id) = self.sockets.poll_ready() {
            self.run(cx.now(), id);
        }
        while let Some(datagram) = self.sockets.poll_transmit() {
            send(internet, datagram, cx);
        }
    }

    /// Calls the program of a socket.
    pub fn run(&mut self, now: Instant, id: UdpId) {
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
