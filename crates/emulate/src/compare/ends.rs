//! The two ends of a connection in real time: the kernel's, or ours on packet sockets.

use super::backend_run::CompareSample;
use super::plan::{AUTOTUNED_ROOM, Plan, kernel_name};
use super::virtual_time::{is_data, reading};
use crate::INTERFACE;
use anyhow::{Context, Result, bail};
use farpace_events::Cause;
use farpace_host::LocalLink;
use farpace_lab::BoundaryInfo;
use farpace_live::device::{PacketConfig, PacketSocket};
use farpace_live::socket::{LiveListener, SocketOptions, Stack, Stream};
use farpace_live::{KernelTcp, Namespace, Wait, connect_kernel};
use farpace_process::stopwatch::Stopwatch;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// How long a connection may take to open.
const CONNECT: Duration = Duration::from_secs(20);
/// A read waits no longer, so that whoever reads can look whether to stop.
const LOOK: Duration = Duration::from_millis(200);
/// Between two looks for a connection of the kernel, in nanoseconds.
const ACCEPT_STEP: u64 = 200_000;
const PORT: u16 = 5001;
/// The kernel keeps more for a packet than its payload: so many times the window for its buffers, which then
/// never limit.
const KERNEL_ROOM: u64 = 4;

/// A host of the site: its namespace, and what the network takes it to be.
pub struct EndPlace {
    /// The namespace.
    pub namespace: Namespace,
    /// Address and MAC address.
    pub boundary: BoundaryInfo,
}

/// Both ends, not connected yet.
pub enum CompareEnds {
    /// The kernel's.
    Kernel {
        /// The sender's host.
        from: EndPlace,
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
        options: Box<SocketOptions>,
        /// The receiver's stack, which lives as long as its sockets.
        to: Stack,
        /// Where the receiver waits.
        listener: LiveListener,
    },
}

/// One end of a connection.
pub enum CompareEnd {
    /// Of the kernel.
    Kernel(TcpStream),
    /// Ours.
    Ours(Stream),
}

impl CompareEnds {
    /// The kernel's, with congestion control and buffers of the plan.
    ///
    /// # Errors
    /// No such congestion control, or no rights.
    pub fn kernel(plan: &Plan, from: EndPlace, to: &EndPlace) -> Result<Self> {
        let room =
            plan.window.map_or(AUTOTUNED_ROOM, |window| window.saturating_mul(KERNEL_ROOM).max(6_291_456));
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
        if let Some(window) = plan.window {
            let address = from.boundary.address;
            let bits = if address.is_ipv4() { 32 } else { 128 };
            to.namespace
                .configure(&format!("route replace {address}/{bits} dev {INTERFACE} window {window}\n"))?;
        }
        let at = SocketAddr::new(to.boundary.address, PORT);
        let listener = to.namespace.within(|| TcpListener::bind(at))?.context("cannot listen")?;
        listener.set_nonblocking(true)?;
        Ok(CompareEnds::Kernel { from, congestion: kernel_name(&plan.congestion).to_owned(), listener })
    }
    /// Ours.
    ///
    /// # Errors
    /// No rights, or settings that sockets do not take.
    pub fn ours(plan: &Plan, from: &EndPlace, to: &EndPlace) -> Result<Self> {
        let [sender, receiver] = plan.settings.clone().map(SocketOptions::of);
        let (a, b) = (stack(from)?, stack(to)?);
        let listener = b.listen(SocketAddr::new(to.boundary.address, PORT), &receiver)?;
        let options = Box::new(sender.connect_timeout(Some(CONNECT)));
        Ok(CompareEnds::Ours { from: a, options, to: b, listener })
    }
    /// Connects: the sender's end.
    ///
    /// # Errors
    /// The network lets nothing through.
    pub fn connect(&self) -> Result<CompareEnd> {
        match self {
            CompareEnds::Kernel { from, congestion, listener } => {
                let at = listener.local_addr()?;
                let out = from.namespace.within(|| connect_kernel(at, congestion, CONNECT))?;
                let cannot = || format!("cannot connect with the kernel's congestion control `{congestion}`");
                Ok(CompareEnd::Kernel(out.with_context(cannot)?))
            }
            CompareEnds::Ours { from, options, listener, .. } => {
                let out = from.connect(listener.local_addr(), options).context("cannot connect")?;
                Ok(CompareEnd::Ours(out))
            }
        }
    }
    /// The receiver's end. It is there half a round trip after the sender's, which does not wait for it.
    ///
    /// # Errors
    /// Nobody has connected, or the network has stopped before: then `is_over` is true.
    pub fn accept(&self, is_over: impl Fn() -> bool) -> Result<CompareEnd> {
        match self {
            CompareEnds::Kernel { listener, .. } => {
                let clock = Stopwatch::start();
                let stream = loop {
                    match listener.accept() {
                        Ok((stream, _)) => break stream,
                        Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                            return Err(error).context("cannot accept");
                        }
                        Err(_) if is_over() || clock.elapsed() > CONNECT => bail!("nobody has connected"),
                        Err(_) => Stopwatch::start().wait_until(ACCEPT_STEP, || false),
                    };
                };
                stream.set_nonblocking(false)?;
                stream.set_read_timeout(Some(LOOK))?;
                Ok(CompareEnd::Kernel(stream))
            }
            CompareEnds::Ours { listener, .. } => {
                listener.set_timeout(Some(CONNECT));
                let stream = listener.accept().context("cannot accept")?.0;
                stream.set_read_timeout(Some(LOOK))?;
                Ok(CompareEnd::Ours(stream))
            }
        }
    }
    /// Ends the stacks. What went wrong with them, if anything did.
    ///
    /// # Errors
    /// A device has failed.
    pub fn stop(self) -> Result<()> {
        if let CompareEnds::Ours { from, to, .. } = self {
            from.stop().context("the sender's stack")?;
            to.stop().context("the receiver's stack")?;
        }
        Ok(())
    }
}

/// Our stack on the interface of a host.
fn stack(place: &EndPlace) -> Result<Stack> {
    let device = place.namespace.within(|| PacketSocket::open(&PacketConfig::new(INTERFACE)))??;
    let stack = Stack::on_device(Box::new(device), &[place.boundary.address], Wait::Sleep)?;
    if place.boundary.resolves {
        let mac = place.boundary.mac;
        stack.call(move |host, _| host.join_link(mac, LocalLink::default()))?;
    }
    Ok(stack)
}

impl CompareEnd {
    /// Writes some.
    ///
    /// # Errors
    /// It has been closed.
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            CompareEnd::Kernel(stream) => (&*stream).write(bytes),
            CompareEnd::Ours(stream) => (&*stream).write(bytes),
        }
    }
    /// Reads some; none, if nothing comes for a while.
    ///
    /// # Errors
    /// It has been closed.
    pub fn read(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        let read = match self {
            CompareEnd::Kernel(stream) => (&*stream).read(into),
            CompareEnd::Ours(stream) => (&*stream).read(into),
        };
        match read {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => Ok(Some(n)),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => Ok(None),
            Err(e) => Err(e),
        }
    }
    /// The sender's end at this moment, and how many data segments it has sent.
    ///
    /// # Errors
    /// It is gone.
    pub fn look(&self, at: f64, delivered: u64) -> Result<(CompareSample, u64)> {
        match self {
            CompareEnd::Kernel(stream) => {
                let seen = KernelTcp::of(stream).context("the kernel says nothing of its connection")?;
                let (cwnd, ssthresh, again) = (seen.cwnd, seen.ssthresh, seen.retransmitted);
                let srtt = seen.rtt.as_secs_f64() * 1e3;
                Ok((CompareSample { at, cwnd, ssthresh, srtt, delivered, again }, seen.sent))
            }
            CompareEnd::Ours(stream) => {
                let seen = stream.inspect()?;
                let sent = Cause::ALL.iter().zip(seen.counters.sent);
                let sent = sent.filter(|(cause, _)| is_data(**cause)).map(|(_, n)| n).sum();
                Ok((reading(at, &seen.inspection, delivered, seen.retransmitted), sent))
            }
        }
    }
    /// Whoever reads or writes stops; the other end hears of it.
    pub fn close(&self) {
        match self {
            CompareEnd::Kernel(stream) => _ = stream.shutdown(Shutdown::Both),
            CompareEnd::Ours(stream) => stream.abort(),
        }
    }
}
