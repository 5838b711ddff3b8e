//! The two ends of a connection in real time: the kernel's, or ours on packet sockets.

use super::plan::Plan;
use super::trial::Sample;
use super::virtual_time::{is_data, reading};
use crate::netlab::INTERFACE;
use anyhow::{Context, Result};
use farpace_host::LocalLink;
use farpace_lab::DoorInfo;
use farpace_live::device::{PacketConfig, PacketSocket};
use farpace_live::socket::{Listener, Options, Stack, Stream};
use farpace_live::{KernelTcp, Namespace, Wait, connect_kernel};
use farpace_trace::Cause;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// How long a connection may take to open.
const CONNECT: Duration = Duration::from_secs(20);
const PORT: u16 = 5001;
/// The kernel keeps more for a packet than its payload: so many times the window for its buffers, which then never limit.
const KERNEL_ROOM: u64 = 4;

/// A host of the site: its namespace, and what the network takes it to be.
pub struct Place {
    /// The namespace.
    pub namespace: Namespace,
    /// Address and MAC address.
    pub door: DoorInfo,
}

/// Both ends, not connected yet.
pub enum Ends {
    /// The kernel's.
    Kernel {
        /// The sender's host.
        from: Place,
        /// Its congestion control.
        congestion: String,
        /// Where the receiver waits.
        listener: TcpListener,
    },
    /// Ours.
    Ours {
        /// The sender's stack.
        from: Stack,
        /// Of its sockets.
        options: Box<Options>,
        /// The receiver's stack, which lives as long as its sockets.
        to: Stack,
        /// Where the receiver waits.
        listener: Listener,
    },
}

/// A connection.
pub enum Line {
    /// Of the kernel: the sender's end, the receiver's.
    Kernel(TcpStream, TcpStream),
    /// Ours.
    Ours(Stream, Stream),
}

impl Ends {
    /// The kernel's, with congestion control and buffers of the plan.
    ///
    /// # Errors
    /// No such congestion control, or no rights.
    pub fn kernel(plan: &Plan, from: Place, to: &Place) -> Result<Self> {
        let room = plan.window.saturating_mul(KERNEL_ROOM).max(6_291_456);
        let memory = format!("4096 131072 {room}");
        let set = || -> io::Result<()> {
            let set = |key: &str, value: &str| std::fs::write(format!("/proc/sys/net/ipv4/{key}"), value);
            set("tcp_rmem", &memory)?;
            set("tcp_wmem", &memory)
        };
        let refused = || format!("the kernel does not take buffers of {room} B");
        from.namespace.within(set)?.with_context(refused)?;
        to.namespace.within(set)?.with_context(refused)?;
        // The largest window is the same as ours.
        let (address, window) = (from.door.address, plan.window);
        let bits = if address.is_ipv4() { 32 } else { 128 };
        to.namespace
            .configure(&format!("route replace {address}/{bits} dev {INTERFACE} window {window}\n"))?;
        let at = SocketAddr::new(to.door.address, PORT);
        let listener = to.namespace.within(|| TcpListener::bind(at))?.context("cannot listen")?;
        Ok(Ends::Kernel { from, congestion: plan.congestion.clone(), listener })
    }
    /// Ours.
    ///
    /// # Errors
    /// No rights, or settings that sockets do not take.
    pub fn ours(plan: &Plan, from: &Place, to: &Place) -> Result<Self> {
        let [sender, receiver] = plan.settings.clone().map(Options::of);
        let (a, b) = (stack(from)?, stack(to)?);
        let listener = b.listen(SocketAddr::new(to.door.address, PORT), &receiver)?;
        let options = Box::new(sender.connect_timeout(Some(CONNECT)));
        Ok(Ends::Ours { from: a, options, to: b, listener })
    }
    /// Connects.
    ///
    /// # Errors
    /// The network lets nothing through.
    pub fn connect(&self) -> Result<Line> {
        match self {
            Ends::Kernel { from, congestion, listener } => {
                let at = listener.local_addr()?;
                let out = from.namespace.within(|| connect_kernel(at, congestion, CONNECT))?;
                let out = out.with_context(|| {
                    format!("cannot connect with the kernel's congestion control `{congestion}`")
                })?;
                Ok(Line::Kernel(out, listener.accept().context("cannot accept")?.0))
            }
            Ends::Ours { from, options, listener, .. } => {
                let out = from.connect(listener.local_addr(), options).context("cannot connect")?;
                listener.set_timeout(Some(CONNECT));
                Ok(Line::Ours(out, listener.accept().context("cannot accept")?.0))
            }
        }
    }
    /// Ends the stacks. What went wrong with them, if anything did.
    ///
    /// # Errors
    /// A device has failed.
    pub fn stop(self) -> Result<()> {
        if let Ends::Ours { from, to, .. } = self {
            from.stop().context("the sender's stack")?;
            to.stop().context("the receiver's stack")?;
        }
        Ok(())
    }
}

/// Our stack on the interface of a host.
fn stack(place: &Place) -> Result<Stack> {
    let device = place.namespace.within(|| PacketSocket::open(&PacketConfig::new(INTERFACE)))??;
    let stack = Stack::on_device(Box::new(device), &[place.door.address], Wait::Sleep)?;
    if place.door.resolves {
        let mac = place.door.mac;
        stack.call(move |host, _| host.join_link(mac, LocalLink::default()))?;
    }
    Ok(stack)
}

impl Line {
    /// Writes some.
    ///
    /// # Errors
    /// It has been closed.
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Line::Kernel(out, _) => (&*out).write(bytes),
            Line::Ours(out, _) => (&*out).write(bytes),
        }
    }
    /// Reads some.
    ///
    /// # Errors
    /// It has been closed.
    pub fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Line::Kernel(_, arrives) => (&*arrives).read(into),
            Line::Ours(_, arrives) => (&*arrives).read(into),
        }
    }
    /// The sender's end at this moment, and how many data segments it has sent.
    ///
    /// # Errors
    /// It is gone.
    pub fn look(&self, at: f64, delivered: u64) -> Result<(Sample, u64)> {
        match self {
            Line::Kernel(out, _) => {
                let seen = KernelTcp::of(out).context("the kernel says nothing of its connection")?;
                let (cwnd, ssthresh, again) = (seen.cwnd, seen.ssthresh, seen.retransmitted);
                let srtt = seen.rtt.as_secs_f64() * 1e3;
                Ok((Sample { at, cwnd, ssthresh, srtt, delivered, again }, seen.sent))
            }
            Line::Ours(out, _) => {
                let seen = out.inspect()?;
                let sent = Cause::ALL.iter().zip(seen.counters.sent);
                let sent = sent.filter(|(cause, _)| is_data(**cause)).map(|(_, n)| n).sum();
                Ok((reading(at, &seen.inspection, delivered, seen.retransmitted), sent))
            }
        }
    }
    /// Whoever reads or writes stops.
    pub fn close(&self) {
        match self {
            Line::Kernel(out, arrives) => {
                let _ = arrives.shutdown(Shutdown::Both);
                let _ = out.shutdown(Shutdown::Both);
            }
            Line::Ours(out, arrives) => {
                arrives.abort();
                out.abort();
            }
        }
    }
}
