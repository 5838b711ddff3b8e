//! The host: from frames to connections and back. What its methods in `host/` are about, they say by name.

mod below;
mod binding;
mod frames;
mod memory;
mod orphans;
mod time_wait;
mod udp;

use crate::application::{Application, SocketEnds};
use crate::binds::{Bind, BindId, Binds, PortError};
use crate::connection_id::ConnectionId;
use crate::connections::{ConnectionEntry, Connections, ServicePlan};
use crate::datagrams::DatagramPrograms;
use crate::internet::{Internet, LocalLink, fitted, is_host};
use crate::isn::{isn, timestamp_offset};
use crate::limiter::Limiter;
use crate::listener::{ListenError, ListenSettings, Listeners};
use crate::memory::HostBudget;
use crate::orphans::Orphans;
use crate::ports::EphemeralPorts;
use crate::secret::{Purpose, Secret, Tuple};
use crate::time_wait::TimeWaits;
use crate::timers::Timers;
use farpace_events::Record;
use farpace_path::{Cx, Element, Inspection, Port, PortFrames, ProcessorWork};
use farpace_tcp::config::{Config, Tuning};
use farpace_tcp::{Connection, ConnectionEvent, ConnectionState, OutgoingSegment, Ports, Segment, Transmit};
use farpace_units::{ByteCount, Instant, Rate};
use farpace_wire::{Below, Departures, MacAddr, Packet};
use std::any::Any;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use thiserror::Error;

/// Segments taken from a connection at a time.
const BATCH: usize = 64;

/// Why a connection cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// Not the address of another machine (RFC 9293 §3.9.2.3).
    #[error("{0} is not the address of another machine")]
    BadAddress(IpAddr),
    /// The host has no address of that family.
    #[error("there is no address to reach {0} from")]
    NoAddress(IpAddr),
    /// All local ports have a connection to that place already.
    #[error("all local ports are in use towards port {port} of {address}")]
    NoPort {
        /// The other end.
        address: IpAddr,
        /// Its port.
        port: u16,
    },
    /// The local port that was asked for has a connection to that place.
    #[error("local port {0} has a connection to that place already")]
    PortInUse(u16),
    /// More than [`MAX_CONNECTIONS`](crate::MAX_CONNECTIONS).
    #[error("the host has as many connections as it can have")]
    TooMany,
    /// The connections of the host hold nearly all of the memory that they may hold.
    #[error("the host is out of memory for connections: {0} of {1} are held")]
    NoMemory(ByteCount, ByteCount),
    /// After [`Host::shutdown`].
    #[error("the host is shutting down")]
    ShutDown,
}

/// What a program wants of its own end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalAddress {
    /// Its address; none: the host chooses.
    pub address: Option<IpAddr>,
    /// Its port; 0: the host chooses.
    pub port: u16,
    /// Sockets that bear it may be bound to its port (SO_REUSEADDR).
    pub reuse_address: bool,
}

impl Default for LocalAddress {
    fn default() -> Self {
        LocalAddress { address: None, port: 0, reuse_address: true }
    }
}

/// One machine with one NIC (port 0).
///
/// Connections are opened with [`connect`](Host::connect) at a time of the future, or accepted by a
/// [`listen`](Host::listen)er. Each has an [`Application`] and a configuration of its own. The host answers
/// segments that belong to nobody with a reset (RFC 9293 §3.10.7.1), but no more than
/// [`MAX_RESETS_PER_SECOND`](crate::MAX_RESETS_PER_SECOND).
pub struct Host {
    pub(crate) internet: Internet,
    pub(crate) secret: Secret,
    pub(crate) listeners: Listeners,
    pub(crate) binds: Binds,
    pub(crate) connections: Connections,
    pub(crate) datagrams: DatagramPrograms,
    pub(crate) resets: Limiter,
    pub(crate) orphans: Orphans,
    pub(crate) budget: HostBudget,
    pub(crate) time_waits: TimeWaits,
    /// Frames that ended at its NIC.
    pub(crate) frames: PortFrames,
    /// Other stations are behind its NIC; their frames are passed over.
    pub(crate) shares_line: bool,
    /// How many were.
    pub(crate) passed_over: u64,
    /// Slots of connections to be opened, by time and the order in which they were asked for.
    plans: BTreeMap<(Instant, u64), usize>,
    planned: u64,
    timers: Timers,
    ports: EphemeralPorts,
    shutdown_at: Option<Instant>,
    /// In a burst: slots of the connections that are to be serviced at its end.
    pub(crate) touched: Option<Vec<usize>>,
    /// Data packets say at what rate their connections want to send.
    says_rates: bool,
    /// Connections know which of their packets have left the queues below.
    knows_departures: bool,
    /// The processor below is charged for what connections search.
    processor: Option<ProcessorWork>,
    batch: Vec<OutgoingSegment>,
    /// That of the latest connection.
    config: Option<Arc<Config>>,
}

impl Host {
    /// A host without connections. From `secret` come its sequence numbers, ports and cookies.
    pub fn new(address: impl Into<IpAddr>, secret: Secret) -> Self {
        let address = address.into();
        let nobody = Tuple { local: address, remote: address, local_port: 0, remote_port: 0 };
        Host {
            internet: Internet::new(address, secret.hash(Purpose::Ident, &nobody, 0) as u32),
            datagrams: DatagramPrograms::default(),
            ports: EphemeralPorts::new(&secret),
            secret,
            listeners: Listeners::default(),
            binds: Binds::default(),
            connections: Connections::default(),
            resets: Limiter::new(crate::MAX_RESETS_PER_SECOND),
            orphans: Orphans::default(),
            budget: HostBudget::default(),
            time_waits: TimeWaits::default(),
            frames: PortFrames::default(),
            shares_line: false,
            passed_over: 0,
            plans: BTreeMap::new(),
            planned: 0,
            timers: Timers::default(),
            shutdown_at: None,
            touched: None,
            says_rates: false,
            knows_departures: false,
            processor: None,
            batch: Vec::with_capacity(BATCH),
            config: None,
        }
    }

    /// One more address, of either family.
    pub fn add_address(&mut self, address: impl Into<IpAddr>) {
        let address = address.into();
        if !self.internet.is_ours(address) {
            self.internet.addresses.push(address);
        }
    }

    /// Puts the host on an Ethernet with others: with the MAC address `mac`, it asks for theirs (ARP, RFC
    /// 826; neighbour discovery, RFC 4861). Without this, the MAC address of everybody follows from the IP
    /// address, as among hosts of the lab. To be called before there are connections.
    pub fn join_link(&mut self, mac: MacAddr, link: LocalLink) {
        self.internet.join(mac, link);
    }

    /// From now on data packets carry the rate at which their connections want to send
    /// ([`Packet::pacing_rate`]), for a NIC that paces connections by it.
    pub fn say_rates(&mut self) {
        self.says_rates = true;
    }

    /// From now on the connections that begin know which of their packets still wait in the queues below the
    /// host, and do not send these again ([`Connection::set_departed`]). What is below must let packets
    /// [depart](Packet::depart) when they leave the machine, as lines do, or drop them.
    pub fn know_departures(&mut self) {
        self.knows_departures = true;
    }

    /// Takes packets that a device has handed up together. Each connection among them is serviced once, at
    /// the end, where that is allowed (see [`Connection::may_wait`]): so there is one ACK for a burst, not
    /// one for each packet.
    ///
    /// The packets come into being here, so far as the account of the element goes ([`Cx::made`]).
    pub fn on_burst(&mut self, packets: impl IntoIterator<Item = Packet>, cx: &mut Cx<'_>) {
        self.touched = Some(Vec::new());
        for packet in packets {
            cx.made();
            self.on_frame(packet, cx);
        }
        let mut touched = self.touched.take().unwrap_or_default();
        touched.sort_unstable();
        touched.dedup();
        for slot in touched {
            self.service(slot, cx);
        }
        self.reopen_windows(cx);
        self.report_given_up(cx);
    }

    /// Accepts connections to `port` of all addresses; `factory` makes the application of each when its
    /// handshake is complete.
    ///
    /// # Errors
    /// The port is taken.
    pub fn listen(
        &mut self,
        port: u16,
        settings: ListenSettings,
        factory: impl FnMut() -> Box<dyn Application> + 'static,
    ) -> Result<(), ListenError> {
        let everywhere = Bind::new(IpAddr::from([0; 16]), port);
        let id = self.bind(everywhere).map_err(|_| ListenError::Taken(port))?;
        self.listen_on(id, settings, factory).inspect_err(|_| self.unbind(id))
    }

    /// No more connections to `port` are accepted; half-open ones are reset when they would open. True if
    /// somebody listened there.
    pub fn stop_listening(&mut self, port: u16) -> bool {
        let all = self.listeners.at_port(port);
        all.iter().for_each(|id| self.unbind(*id));
        !all.is_empty()
    }

    /// Accepts connections to where a socket is [bound](Self::bind).
    ///
    /// # Errors
    /// Another listens there already.
    pub fn listen_on(
        &mut self,
        id: BindId,
        settings: ListenSettings,
        factory: impl FnMut() -> Box<dyn Application> + 'static,
    ) -> Result<(), ListenError> {
        let bind = self.binds.listen(id).map_err(|error| match error {
            PortError::Taken(port) => ListenError::Taken(port),
            PortError::NotOurs(_) | PortError::NoneLeft => ListenError::NotBound,
        })?;
        self.listeners.remove(id);
        self.listeners.add(id, bind, settings, Box::new(factory));
        Ok(())
    }

    /// From now on `room` is asked before the listener establishes a connection. While it says no, SYNs and
    /// the last segments of handshakes are dropped, and their senders try again. False: it is no listener.
    pub fn ask_for_room(&mut self, id: BindId, room: impl FnMut() -> bool + 'static) -> bool {
        self.listeners.get(id).map(|listener| listener.ask(Box::new(room))).is_some()
    }

    /// The socket stays bound and accepts no more connections; those whose handshake is not complete end.
    /// True if it did.
    pub fn stop_listening_on(&mut self, id: BindId) -> bool {
        self.binds.stop_listening(id);
        let listened = self.listeners.remove(id);
        // Whoever was about to connect is told nothing, as by Linux; what comes of it later is for nobody.
        for slot in self.connections.half_open_of(id) {
            if let Some(entry) = self.connections.at(slot) {
                entry.connection.forget();
            }
            self.forget_orphan(slot);
            self.retire(slot, false);
        }
        listened
    }

    /// Connections that a listener accepts from now on have this configuration. False: it is no listener.
    pub fn set_listener_config(&mut self, id: BindId, config: Config) -> bool {
        self.listeners.get(id).map(|listener| listener.set_config(config)).is_some()
    }

    /// Opens a connection to `port` of `to` when the time `at` comes. With `log_as`, records are made of it
    /// under that number.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect(
        &mut self,
        at: Instant,
        to: impl Into<IpAddr>,
        port: u16,
        config: Config,
        log_as: Option<u32>,
        application: Box<dyn Application>,
    ) -> Result<ConnectionId, ConnectError> {
        self.connect_from(None, at, to, port, config, log_as, application)
    }

    /// The same from a local port of one's own choice. With `from` none, or port 0, the host chooses.
    ///
    /// # Errors
    /// See [`ConnectError`].
    #[allow(clippy::too_many_arguments, reason = "the ends, the time, and what `connect` takes")]
    pub fn connect_from(
        &mut self,
        from: Option<u16>,
        at: Instant,
        to: impl Into<IpAddr>,
        port: u16,
        config: Config,
        log_as: Option<u32>,
        application: Box<dyn Application>,
    ) -> Result<ConnectionId, ConnectError> {
        self.connect_with(
            LocalAddress { port: from.unwrap_or(0), ..LocalAddress::default() },
            at,
            to,
            port,
            config,
            log_as,
            application,
        )
    }

    /// The same with more to say about its own end.
    ///
    /// # Errors
    /// See [`ConnectError`].
    #[allow(clippy::too_many_arguments, reason = "the ends, the time, and what `connect` takes")]
    pub fn connect_with(
        &mut self,
        from: LocalAddress,
        at: Instant,
        to: impl Into<IpAddr>,
        port: u16,
        config: Config,
        log_as: Option<u32>,
        application: Box<dyn Application>,
    ) -> Result<ConnectionId, ConnectError> {
        let address = to.into();
        if self.shutdown_at.is_some() {
            return Err(ConnectError::ShutDown);
        }
        if !is_host(address) || self.internet.is_ours(address) {
            return Err(ConnectError::BadAddress(address));
        }
        if !self.connections.has_room() {
            return Err(ConnectError::TooMany);
        }
        if self.budget.refuses_connection() {
            let memory = self.memory();
            return Err(ConnectError::NoMemory(memory.held, memory.limit));
        }
        let local = match from.address {
            Some(local) if !self.internet.is_ours(local) || local.is_ipv4() != address.is_ipv4() => None,
            Some(local) => Some(local),
            None => self.internet.source_for(address),
        };
        let local = local.ok_or(ConnectError::NoAddress(address))?;
        let (connections, binds, waits, secret) =
            (&self.connections, &self.binds, &self.time_waits, &self.secret);
        let uses = |tuple: &Tuple| connections.uses(tuple) || waits.has(secret, tuple);
        let tuple = match from.port {
            0 => self
                .ports
                .choose(secret, local, address, port, |t| uses(t) || binds.is_bound(t.local_port))
                .ok_or(ConnectError::NoPort { address, port })?,
            local_port => {
                let tuple = Tuple { local, remote: address, local_port, remote_port: port };
                (!uses(&tuple)).then_some(tuple).ok_or(ConnectError::PortInUse(local_port))?
            }
        };
        let reuse_address = from.reuse_address;
        self.binds.enter(tuple.local_port, tuple.local, reuse_address);
        let (slot, id) =
            self.connections.plan(ServicePlan { config, tuple, application, log_as, reuse_address });
        self.plans.insert((at, self.planned), slot);
        self.planned += 1;
        Ok(id)
    }

    /// Connections whose time has come are opened now, not when the host is next woken.
    pub fn open_due(&mut self, cx: &mut Cx<'_>) {
        while let Some(first) = self.plans.first_entry()
            && first.key().0 <= cx.now()
        {
            let slot = first.remove();
            self.open(slot, cx);
        }
    }

    /// Closes everything in good order when the time `at` comes: listeners take nobody any more, planned
    /// connections are not opened, half-open ones are reset, UDP sockets are closed with their programs, and
    /// of all other connections this side is closed. The peers may take their time: the host is done when
    /// [`open_connections`](Host::open_connections) is zero.
    pub fn shutdown(&mut self, at: Instant) {
        self.shutdown_at = Some(self.shutdown_at.map_or(at, |earlier| earlier.min(at)));
    }

    /// Connections planned or open, those in TIME-WAIT included.
    pub fn open_connections(&self) -> usize {
        self.connections.len() + self.time_waits()
    }

    /// Connections whose handshake a peer has begun and not ended.
    pub fn half_open_connections(&self) -> usize {
        self.listeners.half_open()
    }

    /// A connection, once it has been opened.
    pub fn connection(&self, id: ConnectionId) -> Option<&Connection> {
        self.connections.get(id).map(|e| &e.connection)
    }

    /// Lets `work` write to, read from, close or abort a connection between its events, and sends what it has
    /// to send then. None: there is no such connection (any more).
    pub fn with_connection<R>(
        &mut self,
        id: ConnectionId,
        cx: &mut Cx<'_>,
        work: impl FnOnce(&mut Connection) -> R,
    ) -> Option<R> {
        let slot = self.connections.slot(id)?;
        let result = work(&mut self.connections.at(slot)?.connection);
        self.service(slot, cx);
        self.reopen_windows(cx);
        Some(result)
    }

    /// The same with the connection's application, for programs that do something of their own accord. None
    /// also if the application is not a `T`.
    pub fn with_application<T: Application, R>(
        &mut self,
        id: ConnectionId,
        cx: &mut Cx<'_>,
        work: impl FnOnce(&mut T, &mut Connection) -> R,
    ) -> Option<R> {
        let slot = self.connections.slot(id)?;
        let entry = self.connections.at(slot)?;
        let application: &mut dyn Any = entry.application.as_deref_mut()?;
        let result = work(application.downcast_mut()?, &mut entry.connection);
        self.service(slot, cx);
        self.reopen_windows(cx);
        Some(result)
    }

    /// The application of a connection, if it is a `T`.
    pub fn application<T: Application>(&self, id: ConnectionId) -> Option<&T> {
        let application: &dyn Any = self.connections.get(id)?.application.as_deref()?;
        application.downcast_ref()
    }

    /// The same, to change it between events.
    pub fn application_mut<T: Application>(&mut self, id: ConnectionId) -> Option<&mut T> {
        let slot = self.connections.slot(id)?;
        let application: &mut dyn Any = self.connections.at(slot)?.application.as_deref_mut()?;
        application.downcast_mut()
    }

    /// All connections, opened or accepted, the closed ones that are kept included.
    pub fn connections(&self) -> impl Iterator<Item = (ConnectionId, &Connection)> {
        self.connections.iter().map(|(id, entry)| (id, &entry.connection))
    }

    /// Hands the records of all connections since the last call to `take`, connection by connection.
    pub fn take_records(&mut self, mut take: impl FnMut(Record)) {
        for entry in self.connections.logged() {
            entry.connection.take_records(&mut take);
        }
    }

    /// Stops making records of all connections.
    pub fn stop_log(&mut self) {
        for entry in self.connections.logged() {
            entry.connection.stop_log();
        }
    }

    fn open(&mut self, slot: usize, cx: &mut Cx<'_>) {
        let Some(plan) = self.connections.take_plan(slot) else { return };
        let ServicePlan { config, tuple, application, log_as, reuse_address } = plan;
        let ports = Ports { local: tuple.local_port, remote: tuple.remote_port };
        let iss = isn(&self.secret, &tuple, cx.now());
        let mut connection =
            Connection::connect(cx.now(), &fitted(&config, &tuple, self.internet.limits), ports, iss);
        connection.set_timestamp_offset(timestamp_offset(&self.secret, &tuple));
        let Some(mut entry) = self.entry(connection, tuple) else { return };
        (entry.application, entry.reuse_address) = (Some(application), reuse_address);
        self.connections.open(slot, entry);
        self.introduce(slot);
        self.begin(slot, log_as, cx);
    }

    /// Tells the application of a connection which one it has got.
    pub(crate) fn introduce(&mut self, slot: usize) {
        let id = self.connections.id(slot);
        if let (Some(id), Some(entry)) = (id, self.connections.at(slot)) {
            let Tuple { local, remote, local_port, remote_port } = entry.tuple;
            let (local, remote) = (SocketAddr::new(local, local_port), SocketAddr::new(remote, remote_port));
            if let Some(application) = &mut entry.application {
                application.on_begin(id, SocketEnds { local, remote });
            }
        }
    }
    /// A connection with what belongs to it, but for its application.
    pub(crate) fn entry(&mut self, mut connection: Connection, tuple: Tuple) -> Option<ConnectionEntry> {
        connection.share_config(&mut self.config);
        let below = self.internet.below(tuple.local, tuple.remote)?;
        let ident = self.secret.hash(Purpose::Ident, &tuple, 0) as u16;
        Some(ConnectionEntry {
            connection,
            application: None,
            tuple,
            below,
            ident,
            accepted_by: None,
            half_open: false,
            orphan: None,
            reuse_address: true,
            weight: 0,
            refused: 0,
            departures: self.knows_departures.then(Departures::default),
        })
    }

    /// The first words of a connection.
    pub(crate) fn begin(&mut self, slot: usize, log_as: Option<u32>, cx: &mut Cx<'_>) {
        if let Some(number) = log_as
            && let Some(entry) = self.connections.at(slot)
        {
            entry.connection.start_log(number);
            self.connections.set_logged(slot);
        }
        self.service(slot, cx);
    }

    /// Tells the application what happened, sends what the connection has to send, and books what has become
    /// of it.
    pub(crate) fn service(&mut self, slot: usize, cx: &mut Cx<'_>) {
        self.end_handshake(slot);
        if !self.exchange(slot, cx) {
            return;
        }
        let Some(entry) = self.connections.at(slot) else { return };
        self.budget.weigh(slot, entry);
        let over = matches!(entry.connection.state(), ConnectionState::TimeWait | ConnectionState::Closed);
        if over || entry.connection.is_orphan() != entry.orphan.is_some() {
            return self.end_service(slot, cx);
        }
        let deadline = entry.connection.deadline().map(|(at, _)| at);
        self.timers.set(slot, deadline);
    }

    /// The program has left the connection in `slot`, or it is over.
    #[cold]
    fn end_service(&mut self, slot: usize, cx: &mut Cx<'_>) {
        let waits = self.become_time_wait(slot, cx.now());
        self.note_orphan(slot, cx);
        let Some(entry) = self.connections.at(slot) else { return };
        if entry.connection.state() == ConnectionState::Closed {
            self.retire(slot, waits);
        } else {
            let deadline = entry.connection.deadline().map(|(at, _)| at);
            self.timers.set(slot, deadline);
        }
    }

    /// A connection whose handshake is complete gets its application.
    fn end_handshake(&mut self, slot: usize) {
        let Some(entry) = self.connections.at(slot) else { return };
        if !entry.half_open || entry.connection.state() == ConnectionState::SynReceived {
            return;
        }
        entry.half_open = false;
        let listener = entry.accepted_by.and_then(|id| self.listeners.not_half_open(id));
        if entry.connection.state() != ConnectionState::Closed {
            match listener {
                Some(listener) => entry.application = Some(listener.application()),
                None => entry.connection.abort(), // nobody wants it any more
            }
            self.introduce(slot);
        }
    }

    /// Events to the application, segments to the network, until there are no more. False: there is no such
    /// connection.
    fn exchange(&mut self, slot: usize, cx: &mut Cx<'_>) -> bool {
        let pressure = self.budget.pressure(self.connections.len());
        let Some(entry) = self.connections.at(slot) else { return false };
        let now = cx.now();
        entry.note_departures();
        if let Some(work) = &self.processor {
            work.visited(now, entry.connection.take_visited());
        }
        entry.connection.set_pressure(pressure);
        loop {
            while let Some(event) = entry.connection.poll_event() {
                if let Some(application) = &mut entry.application {
                    application.on_event(now, &mut entry.connection, event);
                }
            }
            if let Some(queue) = &self.internet.transmit_queue {
                entry.connection.set_transmit_room(Some(below::room(queue, now, entry.tuple.local)));
            }
            let sent = entry.connection.poll_transmit(now, &mut self.batch, BATCH);
            let loss_tolerant = entry.connection.loss_tolerant();
            let wanted = if self.says_rates { entry.connection.wanted_rate() } else { None };
            for out in self.batch.drain(..) {
                entry.ident = entry.ident.wrapping_add(1);
                let segments = out.segment.segments();
                let Segment { header, payload, ecn, segment_size } = out.segment;
                let Tuning { dscp, hops, may_be_cut, .. } = entry.connection.config().tuning;
                let (tos, ttl) = (dscp & !3 | ecn.bits(), hops.unwrap_or(entry.below.ttl));
                let below = Below { tos, ttl, dont_fragment: !may_be_cut, ..entry.below };
                let mut packet = below.tcp(entry.ident, &header, payload);
                packet.set_segment_size(segment_size);
                packet.set_loss_tolerant(loss_tolerant);
                // The parts of a super-segment are numbered on when it is cut.
                entry.ident = entry.ident.wrapping_add((segments - 1) as u16);
                if let (Some(departures), Some(number)) = (&entry.departures, out.number) {
                    packet.set_departure(Some(departures.expect(number)));
                }
                if let Some(rate) = wanted {
                    packet.set_pacing_rate(rate_of_frames(rate, &packet));
                }
                self.internet.send(packet, entry.tuple.remote, cx);
            }
            // A batch that was not filled was ended by the windows or by the data.
            if sent != Transmit::Sent(BATCH) && !entry.connection.has_events() {
                return true;
            }
        }
    }

    /// A connection is over. Its ends are free again, unless it `waits` as a row of the table.
    fn retire(&mut self, slot: usize, waits: bool) {
        self.timers.forget(slot);
        let Some(entry) = self.connections.at(slot) else { return };
        self.budget.weigh(slot, entry);
        let (accepted_by, known) = (entry.accepted_by, entry.application.is_some());
        // Others may have the same ends already.
        if let Some((tuple, reuse_address)) = self.connections.release(slot) {
            if !waits {
                self.binds.leave(tuple.local_port, tuple.local, reuse_address);
            }
            if let Some(id) = accepted_by {
                self.listeners.gone(id);
            }
            // A handshake that came to nothing is of no interest to anybody.
            if known { self.connections.retire(slot) } else { self.connections.forget(slot) }
        }
    }

    /// Connections whose windows were closed for want of memory open them, once there is some.
    #[inline]
    fn reopen_windows(&mut self, cx: &mut Cx<'_>) {
        if self.budget.may_reopen() {
            for slot in self.budget.take_closed() {
                self.service(slot, cx);
            }
        }
    }

    /// A connection in TIME-WAIT that nobody needs whole closes, and a row takes its place. True: there is
    /// such a row.
    fn become_time_wait(&mut self, slot: usize, now: Instant) -> bool {
        let Some(entry) = self.connections.at(slot) else { return false };
        if entry.connection.state() != ConnectionState::TimeWait || self.connections.is_logged(slot) {
            return false;
        }
        let Some(entry) = self.connections.at(slot) else { return false };
        let Some(wait) = entry.connection.take_time_wait() else { return false };
        while let Some(event) = entry.connection.poll_event() {
            if let Some(application) = &mut entry.application {
                application.on_event(now, &mut entry.connection, event);
            }
        }
        let (tuple, reuse_address) = (entry.tuple, entry.reuse_address);
        self.keep_time_wait(&tuple, wait, reuse_address)
    }

    /// A connection in TIME-WAIT ends before its time.
    pub(crate) fn end_time_wait(&mut self, slot: usize, cx: &mut Cx<'_>) {
        if let Some(entry) = self.connections.at(slot) {
            entry.connection.abort();
            while entry.connection.poll_event().is_some() {}
            if let Some(application) = &mut entry.application {
                let finished = ConnectionEvent::Closed(farpace_tcp::CloseReason::Finished);
                application.on_event(cx.now(), &mut entry.connection, finished);
            }
        }
        self.service(slot, cx);
    }

    fn close_everything(&mut self, cx: &mut Cx<'_>) {
        self.listeners.clear();
        self.binds = Binds::default();
        self.datagrams = DatagramPrograms::default();
        for slot in std::mem::take(&mut self.plans).into_values() {
            if let Some((tuple, reuse_address)) = self.connections.release(slot) {
                self.binds.leave(tuple.local_port, tuple.local, reuse_address);
            }
            self.connections.forget(slot);
        }
        for slot in self.connections.slots() {
            let Some(entry) = self.connections.at(slot) else { continue };
            if entry.half_open {
                entry.connection.abort()
            } else {
                entry.connection.close()
            }
            self.service(slot, cx);
        }
    }
}

/// The rate of frames, with their check sequences, whose payload comes at `payload_rate`; none for a packet
/// without.
fn rate_of_frames(payload_rate: Rate, packet: &Packet) -> Option<Rate> {
    const FCS: u64 = 4;
    let payload = u128::try_from(packet.payload().len()).ok().filter(|len| *len > 0)?;
    let frame = u128::from(packet.len().get() + FCS);
    let rate = u128::from(payload_rate.bits_per_sec()) * frame / payload;
    Some(Rate::from_bits_per_sec(u64::try_from(rate).unwrap_or(u64::MAX)))
}

impl Element for Host {
    fn on_packet(&mut self, _: Port, packet: Packet, cx: &mut Cx<'_>) {
        self.on_frame(packet, cx);
        self.reopen_windows(cx);
        self.report_given_up(cx);
    }

    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now();
        if self.shutdown_at.is_some_and(|at| at <= now) {
            self.shutdown_at = Some(Instant::FAR_FUTURE);
            self.close_everything(cx);
        }
        self.open_due(cx);
        while let Some(slot) = self.timers.pop(now) {
            if let Some(entry) = self.connections.at(slot) {
                entry.note_departures();
                entry.connection.on_deadline(now);
            }
            self.service(slot, cx);
        }
        self.end_time_waits(now);
        self.reopen_windows(cx);
        self.wake_datagrams(cx);
        self.internet.on_deadline(cx);
        self.report_given_up(cx);
    }

    fn deadline(&self) -> Option<Instant> {
        // Asked after every packet, and most of these are none: no iterator here.
        let mut next = Instant::FAR_FUTURE;
        let mut consider = |at: Option<Instant>| next = at.map_or(next, |at| at.min(next));
        consider(self.timers.next());
        if !self.plans.is_empty() {
            consider(self.plans.first_key_value().map(|((at, _), _)| *at));
        }
        consider(self.shutdown_at);
        consider(self.internet.deadline());
        consider(self.datagrams.deadline());
        consider(self.time_wait_deadline());
        (next != Instant::FAR_FUTURE).then_some(next)
    }

    fn held(&self) -> u64 {
        self.internet.held() // the NIC's queue belongs to the link
    }

    fn inspect(&self) -> Inspection {
        let memory = self.memory();
        let addresses: Vec<_> = self.addresses().iter().map(IpAddr::to_string).collect();
        vec![
            ("address", addresses.join(" ")),
            ("connections", self.open_connections().to_string()),
            ("half_open", self.half_open_connections().to_string()),
            ("orphans", self.orphans().to_string()),
            ("orphans ended", self.orphans_ended().to_string()),
            ("time-wait", self.time_waits().to_string()),
            ("memory", memory.held.to_string()),
            ("memory limit", memory.limit.to_string()),
            ("memory level", memory.level.name().to_owned()),
            ("memory segments refused", memory.segments_refused.to_string()),
            ("memory connections refused", memory.connections_refused.to_string()),
            ("time-wait ended early", self.time_waits_ended_early().to_string()),
            ("listeners", self.listeners.len().to_string()),
            ("frames of the line", self.frames.total().to_string()),
            ("frames for others", self.passed_over.to_string()),
        ]
    }
}
