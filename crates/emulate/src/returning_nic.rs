//! A NIC that may vanish and return, while the others of the host carry the traffic.

use crate::below::{self, TakenInterfaces};
use anyhow::{Context, Result};
use farpace_live::device::PacketSocket;
use farpace_live::{Device, DeviceCounters, DeviceInfo};
use farpace_process::stopwatch::Stopwatch;
use farpace_units::Span;
use farpace_wire::Packet;
use nix::net::if_::if_nametoindex;
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// A missing NIC is looked for this often.
const LOOK: Span = Span::from_secs(1);

/// A socket on a NIC. While the NIC is missing, nothing arrives and packets to it are dropped. When an
/// interface of the same name with the same MAC address appears, it is taken from the kernel and used.
pub struct ReturningNic {
    socket: Option<PacketSocket>,
    /// The settings of an interface that has returned; those of the first are the caller's.
    taken: Option<TakenInterfaces>,
    info: DeviceInfo,
    /// Counters of the interfaces that have vanished.
    past: DeviceCounters,
    /// Never readable: what is waited for while the NIC is missing.
    idle: EventFd,
    /// Since it was looked for last.
    looked: Stopwatch,
    /// What was said last of an interface that cannot be used.
    unusable: String,
    changes: Sender<String>,
}

impl ReturningNic {
    /// A NIC on `socket`. Its changes are received as lines for the user.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn new(socket: PacketSocket) -> Result<(Self, Receiver<String>)> {
        let idle = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC);
        let idle = idle.context("cannot make an event descriptor")?;
        let (changes, receiver) = channel();
        let nic = ReturningNic {
            info: socket.info().clone(),
            socket: Some(socket),
            taken: None,
            past: DeviceCounters::default(),
            idle,
            looked: Stopwatch::start(),
            unusable: String::new(),
            changes,
        };
        Ok((nic, receiver))
    }

    fn tell(&self, line: String) {
        // Without a receiver nobody wants to know.
        let _ = self.changes.send(line);
    }

    /// Ends the use of an interface that was removed. Other errors are passed on.
    fn note_error(&mut self, error: io::Error) -> io::Result<()> {
        if error.kind() != ErrorKind::NotFound {
            return Err(error);
        }
        if let Some(socket) = self.socket.take() {
            self.past = self.past + socket.counters();
        }
        self.taken = None;
        self.unusable.clear();
        self.looked = Stopwatch::start();
        let name = &self.info.name;
        self.tell(format!(
            "`{name}` has been removed: the other NICs go on, and `{name}` is used again when an interface \
             with this name and MAC address appears"
        ));
        Ok(())
    }

    /// Looks for the interface.
    fn look(&mut self) {
        if self.looked.elapsed() < Duration::from_nanos(LOOK.as_nanos()) {
            return;
        }
        self.looked = Stopwatch::start();
        if if_nametoindex(self.info.name.as_str()).is_err() {
            return;
        }
        match self.take() {
            Ok(()) => {
                self.unusable.clear();
                self.tell(format!("`{}` is back, and carries frames again", self.info.name));
            }
            Err(error) => {
                let line = format!("`{}` is back, but cannot be used: {error:#}", self.info.name);
                if self.unusable != line {
                    self.tell(line.clone());
                    self.unusable = line;
                }
            }
        }
    }

    fn take(&mut self) -> Result<()> {
        let name = self.info.name.clone();
        let socket = below::socket(&name)?;
        let (mac, before) = (below::mac(socket.info())?, below::mac(&self.info)?);
        anyhow::ensure!(
            mac == before,
            "its MAC address is {mac}, and was {before}, which the neighbours know: set it with `ip link set \
             dev {name} address {before}`, or start farpace again"
        );
        anyhow::ensure!(
            socket.info().mtu >= self.info.mtu,
            "its MTU is {} B, and was {} B: set it with `ip link set dev {name} mtu {1}`",
            socket.info().mtu,
            self.info.mtu
        );
        self.taken = Some(below::take(&[&name])?);
        self.socket = Some(socket);
        Ok(())
    }
}

impl Device for ReturningNic {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }
    fn receive(&mut self, budget: usize, into: &mut Vec<Packet>) -> io::Result<()> {
        if self.socket.is_none() {
            self.look();
        }
        match self.socket.as_mut().map_or(Ok(()), |socket| socket.receive(budget, into)) {
            Ok(()) => Ok(()),
            Err(error) => self.note_error(error),
        }
    }
    fn send(&mut self, packets: &mut VecDeque<Packet>) -> io::Result<()> {
        let sent = self.socket.as_mut().map_or(Ok(()), |socket| socket.send(packets));
        if let Err(error) = sent {
            self.note_error(error)?;
        }
        if self.socket.is_none() {
            self.past.refused += packets.len() as u64;
            packets.clear();
        }
        Ok(())
    }
    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_ref().map_or_else(|| self.idle.as_fd(), |socket| socket.fd())
    }
    fn counters(&self) -> DeviceCounters {
        self.past + self.socket.as_ref().map(Device::counters).unwrap_or_default()
    }
    fn due_in(&self) -> Option<Span> {
        match &self.socket {
            Some(socket) => socket.due_in(),
            None => Some(LOOK),
        }
    }
}
