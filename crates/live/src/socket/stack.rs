//! A TCP/IP stack: a host on a device in a thread, with sockets.

use super::bound::BoundSocket;
use super::bridge::Bridge;
use super::datagram::LiveUdpSocket;
use super::engine::{Engine, call_host};
use super::list::Listing;
use super::listener::{Listening, LiveListener};
use super::options::{DEFAULT_BACKLOG, SocketOptions};
use super::pipe::Pipe;
use super::posix::wall_now;
use super::registry::Registry;
use super::stream::Stream;
use crate::control::{ControlError, ControlSocket};
use crate::device::udp_tunnel::random_bytes;
use crate::device::{Device, DeviceError, Tun, TunConfig};
use crate::driver::{Driver, DriverError, Ended, Handle, HostJob, Stats, Wait};
use crate::host_addresses::{InterfacePrefix, broadcast_of};
use crate::system::default_memory;
use crate::{LiveCapture, LiveCaptureError};
use farpace_host::{Bind, ConnectError, Host, LocalAddress, LocalLink, Secret};
use farpace_tcp::config::Config;
use farpace_tcp::{Connection, ConnectionState};
use farpace_units::{ByteCount, Rate};
use farpace_wire::MacAddr;
use nix::errno::Errno;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Maximum time to list sockets.
const MAX_LIST_TIME: Duration = Duration::from_secs(2);

/// Why a stack cannot be created.
#[derive(Debug, Error)]
pub enum StackError {
    /// The device cannot be opened.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The driver cannot start.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The capture cannot be started.
    #[error(transparent)]
    Capture(#[from] LiveCaptureError),
    /// The system provides no random numbers.
    #[error("no random numbers: {0}")]
    Random(#[source] io::Error),
}

/// Further options of a stack on a device.
#[derive(Clone, Debug, Default)]
pub struct StackOptions {
    /// MAC address and configuration of the link; none: the device carries IP packets.
    pub ethernet: Option<(MacAddr, LocalLink)>,
    /// File for a capture of all packets.
    pub capture: Option<PathBuf>,
    /// Memory limit of the connections; none: [`default_memory`].
    pub memory: Option<ByteCount>,
    /// The addresses with their networks: datagrams to the broadcast addresses of these need SO_BROADCAST.
    pub networks: Vec<InterfacePrefix>,
}

/// A host on a device, run by a thread of its own, and the sockets of that host.
///
/// Clones are handles of the same stack. [`stop`](Stack::stop) ends it at once: its sockets fail with
/// "network is down". Otherwise it ends when its last handle and its last socket are dropped and all closed
/// connections have ended, so that written data still reaches the peer.
///
/// ```no_run
/// use farpace_live::device::TunConfig;
/// use farpace_live::socket::{SocketOptions, Stack};
/// use std::io::{Read, Write};
///
/// // The kernel is 10.77.0.1 on the device, and the stack is 10.77.0.2.
/// let kernel = "10.77.0.1".parse()?;
/// let tun = TunConfig { addresses: vec![(kernel, 24)], ..TunConfig::new("fp0") };
/// let stack = Stack::on_tun(tun, &["10.77.0.2".parse()?])?;
/// let mut stream = stack.connect((kernel, 7), &SocketOptions::default())?;
/// stream.write_all(b"hello")?;
/// let mut answer = [0; 5];
/// stream.read_exact(&mut answer)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Stack(Arc<StackInner>);

struct StackInner {
    engine: Arc<dyn Engine>,
    registry: Arc<Registry>,
    mtu: u16,
    /// The broadcast addresses of its networks, if it knows these.
    broadcasts: OnceLock<Vec<IpAddr>>,
    /// The thread of a driver, to be stopped with the stack.
    thread: Mutex<Option<RunningStack>>,
    control: Mutex<Option<ControlSocket>>,
}

struct RunningStack {
    handle: Handle,
    thread: JoinHandle<Result<Stats, DriverError>>,
}

/// A driver that ends when this is dropped.
struct OnDriver(Handle);

impl Engine for OnDriver {
    fn run(&self, job: HostJob) -> Result<(), Ended> {
        self.0.run(job)
    }
}

impl Drop for OnDriver {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// A random secret and a random seed.
///
/// # Errors
/// The system provides no random numbers.
pub(crate) fn secret_and_seed() -> io::Result<(Secret, u64)> {
    Ok((secret()?, u64::from_be_bytes(random_bytes()?)))
}

/// A random secret.
///
/// # Errors
/// The system provides no random numbers.
fn secret() -> io::Result<Secret> {
    Ok(Secret::new(random_bytes()?))
}

fn first(to: impl ToSocketAddrs) -> io::Result<SocketAddr> {
    let none = || io::Error::new(io::ErrorKind::InvalidInput, "the name has no address");
    to.to_socket_addrs()?.next().ok_or_else(none)
}

impl Stack {
    /// A host with these addresses (at least one) on `device`.
    ///
    /// # Errors
    /// See [`StackError`].
    pub fn on_device(device: Box<dyn Device>, addresses: &[IpAddr], wait: Wait) -> Result<Self, StackError> {
        Stack::on_device_with(device, addresses, wait, StackOptions::default())
    }
    /// Like [`on_device`](Stack::on_device), with further options.
    ///
    /// # Errors
    /// See [`StackError`].
    pub fn on_device_with(
        device: Box<dyn Device>,
        addresses: &[IpAddr],
        wait: Wait,
        options: StackOptions,
    ) -> Result<Self, StackError> {
        let secret = secret().map_err(StackError::Random)?;
        let Some((address, more)) = addresses.split_first() else {
            let none = io::Error::new(io::ErrorKind::InvalidInput, "a host needs an address");
            return Err(StackError::Driver(DriverError::Wait(none)));
        };
        let (address, more, mtu) = (*address, more.to_vec(), device.info().mtu);
        let broadcasts = options.networks.iter().copied().filter_map(broadcast_of).collect();
        let stack = Stack::start("farpace-stack", mtu, move || {
            let mut host = Host::new(address, secret);
            host.set_memory_limit(options.memory.unwrap_or_else(default_memory));
            more.into_iter().for_each(|address| host.add_address(address));
            if let Some((mac, link)) = options.ethernet {
                host.join_link(mac, link);
                host.share_link();
            }
            let mut driver = Driver::of_host(host, device, wait)?;
            if let Some(path) = options.capture {
                LiveCapture::begin(&path, "farpace", &mut driver)?;
            }
            Ok::<_, StackError>(driver)
        })?;
        // It is new, so it has none yet.
        let _ = stack.0.broadcasts.set(broadcasts);
        Ok(stack)
    }
    /// True if this address is that of all hosts of a network.
    pub(super) fn is_broadcast(&self, to: IpAddr) -> bool {
        let own = self.0.broadcasts.get();
        to == IpAddr::V4(Ipv4Addr::BROADCAST) || own.is_some_and(|own| own.contains(&to))
    }
    /// Like [`on_device`](Stack::on_device), on a new TUN device.
    ///
    /// # Errors
    /// See [`StackError`].
    pub fn on_tun(tun: TunConfig, addresses: &[IpAddr]) -> Result<Self, StackError> {
        Stack::on_device(Box::new(Tun::open(&tun)?), addresses, Wait::Sleep)
    }
    /// A stack on any driver with a host ([`Driver::set_host`]): `make` runs in its thread. `mtu` is that of
    /// the device that most packets use.
    ///
    /// # Errors
    /// The error of `make`, or the thread cannot be started.
    pub fn start<E: From<DriverError> + Send + 'static>(
        name: &str,
        mtu: u16,
        make: impl FnOnce() -> Result<Driver, E> + Send + 'static,
    ) -> Result<Self, E> {
        let (handle, thread) = Driver::spawn(name, make)?;
        let running = RunningStack { handle: handle.clone(), thread };
        let stack = Stack::over(Arc::new(OnDriver(handle)), mtu);
        *stack.0.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(running);
        Ok(stack)
    }
    /// A stack on an engine of the caller.
    pub fn over(engine: Arc<dyn Engine>, mtu: u16) -> Self {
        let registry = Arc::default();
        Stack(Arc::new(StackInner {
            broadcasts: OnceLock::new(),
            engine,
            registry,
            mtu,
            thread: Mutex::default(),
            control: Mutex::default(),
        }))
    }

    /// Listens on a port of an address, or of all addresses if it is unspecified (`::`: of both families).
    /// Port 0: selected by the host.
    ///
    /// # Errors
    /// `AddrInUse`; `AddrNotAvailable`: not an address of the host; `InvalidInput`: contradictory settings.
    pub fn listen(&self, at: impl ToSocketAddrs, options: &SocketOptions) -> io::Result<LiveListener> {
        let at = first(at)?;
        let how = Listening {
            config: self.config(options)?,
            rate_cap: options.rate_cap,
            cookies: options.cookies,
            backlog: options.backlog.unwrap_or(DEFAULT_BACKLOG).max(1),
            extra: None,
        };
        self.listen_at(Arc::new(self.bind(Bind::new(at.ip(), at.port()))?), how, options.linger)
    }
    /// Binds a TCP port, for a listener or an outgoing connection.
    ///
    /// # Errors
    /// `AddrInUse`; `AddrNotAvailable`: not an address of the host, or no port is left.
    pub fn bind(&self, bind: Bind) -> io::Result<BoundSocket> {
        BoundSocket::open(&self.0.engine, bind)
    }
    /// Listens on a bound port.
    ///
    /// # Errors
    /// `AddrInUse`: another socket that shares the port listens.
    pub fn listen_at(
        &self,
        bound: Arc<BoundSocket>,
        how: Listening,
        linger: Option<Duration>,
    ) -> io::Result<LiveListener> {
        LiveListener::open(&self.0.engine, &self.0.registry, bound, how, linger)
    }
    /// Opens a connection and waits until it is established.
    ///
    /// # Errors
    /// `ConnectionRefused`, `TimedOut`, `HostUnreachable`, `NetworkUnreachable`, `AddrInUse`, `InvalidInput`.
    pub fn connect(&self, to: impl ToSocketAddrs, options: &SocketOptions) -> io::Result<Stream> {
        let stream = self.begin_connect(to, options)?;
        stream.finish_connect(options.connect_timeout)?;
        Ok(stream)
    }
    /// Opens a connection without waiting: the stream becomes writable when it is established or has failed.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), as far as known at once.
    pub fn begin_connect(&self, to: impl ToSocketAddrs, options: &SocketOptions) -> io::Result<Stream> {
        let to = first(to)?;
        let config = self.config(options)?;
        let from = LocalAddress { port: options.local_port, ..LocalAddress::default() };
        let stream = self.begin_connect_from(from, to, config, options.rate_cap)?;
        stream.set_linger(options.linger);
        Ok(stream)
    }
    /// Like [`begin_connect`](Self::begin_connect), from a bound port and with a whole configuration.
    ///
    /// # Errors
    /// As [`begin_connect`](Self::begin_connect).
    pub fn begin_connect_from(
        &self,
        from: LocalAddress,
        to: SocketAddr,
        config: Config,
        rate_cap: Option<Rate>,
    ) -> io::Result<Stream> {
        let pipe = Pipe::new(self.0.engine.clone(), self.0.registry.clone(), &config);
        pipe.cap_rate(rate_cap);
        let bridge = pipe.clone();
        let id = call_host(&*self.0.engine, move |host, cx| {
            let bridge = Box::new(Bridge::new(bridge));
            let id = host.connect_with(from, cx.now(), to.ip(), to.port(), config, None, bridge);
            // Later changes must find the connection.
            host.open_due(cx);
            id
        })?;
        match id {
            Ok(id) => {
                pipe.shared.with(|duplex| duplex.id = Some(id));
                Ok(Stream::new(pipe, None))
            }
            Err(error) => Err(io::Error::from(match error {
                ConnectError::BadAddress(_) | ConnectError::NoAddress(_) => Errno::ENETUNREACH,
                ConnectError::PortInUse(_) | ConnectError::NoPort { .. } => Errno::EADDRNOTAVAIL,
                ConnectError::TooMany | ConnectError::NoMemory(..) => Errno::ENOBUFS,
                ConnectError::ShutDown => Errno::ENETDOWN,
            })),
        }
    }
    /// Binds a UDP socket to a port of an address, or of all addresses if it is unspecified (`::`: of both
    /// families). Port 0: selected by the host.
    ///
    /// # Errors
    /// `AddrInUse`; `AddrNotAvailable`: not an address of the host.
    pub fn bind_udp(&self, at: impl ToSocketAddrs) -> io::Result<LiveUdpSocket> {
        let at = first(at)?;
        self.bind_udp_at(Bind { both_families: true, ..Bind::alone(at.ip(), at.port()) })
    }
    /// Like [`bind_udp`](Self::bind_udp), with SO_REUSEADDR and SO_REUSEPORT.
    ///
    /// # Errors
    /// As [`bind_udp`](Self::bind_udp).
    pub fn bind_udp_at(&self, bind: Bind) -> io::Result<LiveUdpSocket> {
        LiveUdpSocket::open(&self.0.engine, &self.0.registry, bind)
    }

    /// The local address of a UDP socket. For a connected socket on all addresses, the source address in use.
    pub(super) fn local_of(&self, udp: &LiveUdpSocket) -> SocketAddr {
        let local = udp.local_addr();
        let Some(peer) = udp.peer_addr().filter(|_| local.ip().is_unspecified()) else { return local };
        let own = self.call(move |host, _| host.source_for(peer.ip())).ok().flatten();
        own.map_or(local, |own| SocketAddr::new(own, local.port()))
    }
    /// The time of day at a time of its host, if known: a program that supplies the time has its own.
    pub(super) fn wall_time(&self, at: farpace_units::Instant) -> Duration {
        let since_begin = Duration::from_nanos(at.as_nanos());
        if self.0.engine.is_driven() {
            return since_begin;
        }
        let age = self.call(move |_, cx| cx.now().since(at)).map_or(0, |age| age.as_nanos());
        wall_now().saturating_sub(Duration::from_nanos(age))
    }
    /// The MTU of its device, in bytes.
    pub fn mtu(&self) -> u16 {
        self.0.mtu
    }
    fn config(&self, options: &SocketOptions) -> io::Result<Config> {
        options.resolve(self.0.mtu).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
    }
    /// Does `work` on its host, in order of the calls, and returns its result.
    ///
    /// # Errors
    /// Network down: the stack has ended.
    pub fn call<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Host, &mut farpace_path::Cx<'_>) -> R + Send + 'static,
    ) -> io::Result<R> {
        call_host(&*self.0.engine, work)
    }
    /// Publishes its sockets for `farpace ss` under this name, until the stack ends.
    ///
    /// # Errors
    /// The control socket cannot be created.
    pub fn offer_list(&self, name: &str) -> Result<(), ControlError> {
        let (engine, registry) = (Arc::downgrade(&self.0.engine), Arc::downgrade(&self.0.registry));
        let request = move || {
            let (engine, backlogs) = (engine.upgrade()?, registry.upgrade()?.backlogs());
            let (sender, receiver) = mpsc::channel();
            let job = move |host: &mut Host, cx: &mut farpace_path::Cx<'_>| {
                // The receiver is gone if the answer is late.
                let _ = sender.send(Listing::of(host, cx.now(), &backlogs));
            };
            engine.run(Box::new(job)).ok()?;
            drop(engine);
            receiver.recv_timeout(MAX_LIST_TIME).ok()
        };
        let control = ControlSocket::with_request(name, Box::new(request))?;
        *self.0.control.lock().unwrap_or_else(PoisonError::into_inner) = Some(control);
        Ok(())
    }
    /// All threads that wait in a socket of this stack get [`Interrupted`](super::Interrupted).
    pub fn interrupt(&self) {
        self.0.registry.interrupt_all();
    }
    /// Registers a call of [`interrupt`](Stack::interrupt), for threads that wait elsewhere, for example for
    /// a descriptor. It must be quick, and must not call this.
    pub fn on_interrupt(&self, call: impl Fn() + Send + Sync + 'static) {
        self.0.registry.on_interrupt(Box::new(call));
    }
    /// Number of sockets.
    pub fn sockets(&self) -> usize {
        self.0.registry.len()
    }
    /// Waits until the peers of all connections have acknowledged the written data and the FIN of closed
    /// ones, at most `max`. For programs that exit, because nothing is sent after that. True: nothing is
    /// left to be sent.
    ///
    /// It does not wait for open connections without data to send, nor for TIME-WAIT.
    pub fn flush(&self, max: Duration) -> bool {
        const POLL_INTERVAL: Duration = Duration::from_millis(2);
        let until = Instant::now().checked_add(max);
        loop {
            let left = self.call(|host, _| {
                let busy = |c: &Connection| match c.state() {
                    ConnectionState::TimeWait | ConnectionState::FinWait2 | ConnectionState::Closed => false,
                    ConnectionState::FinWait1 | ConnectionState::Closing | ConnectionState::LastAck => true,
                    ConnectionState::SynSent | ConnectionState::SynReceived => false,
                    ConnectionState::Established | ConnectionState::CloseWait => {
                        !c.memory().send_bytes.is_zero()
                    }
                };
                host.connections().any(|(_, connection)| busy(connection))
            });
            if !left.unwrap_or(false) {
                return true;
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return false;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
    /// Ends the stack: its sockets fail, and its device is closed. Returns the counters, unless it was
    /// stopped before.
    ///
    /// # Errors
    /// The error that had ended the driver.
    pub fn stop(&self) -> Result<Stats, DriverError> {
        drop(self.0.control.lock().unwrap_or_else(PoisonError::into_inner).take());
        let running = self.0.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(RunningStack { handle, thread }) = running else { return Ok(Stats::default()) };
        handle.stop();
        thread.join().unwrap_or_else(|_| Err(DriverError::Wait(io::Error::other("the thread has panicked"))))
    }
}
