//! Listeners: which SYNs become connections, and what happens when there are too many of them.

use crate::application::Application;
use crate::binds::{Bind, BindId};
use crate::cookies::{self, COOKIE_LIFETIME};
use crate::internet::{ConnectionLimits, fitted};
use crate::secret::{Purpose, Secret, Tuple};
use farpace_tcp::config::Config;
use farpace_tcp::{Connection, Ports, ResumedConnection, Segment};
use farpace_units::{Instant, Seq};
use farpace_wire::{TcpFlags, TcpHeader, Timestamps};
use std::collections::BTreeMap;
use thiserror::Error;

/// Half-open connections of one listener, unless it says otherwise. SYNs beyond it are answered with cookies.
pub const DEFAULT_BACKLOG: usize = 1024;

/// Connections that one listener has accepted and that are not closed, unless it says otherwise. SYNs beyond
/// it are dropped: their senders try again.
pub const DEFAULT_ACCEPTED: usize = 1 << 18;

/// Why a port cannot be listened on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ListenError {
    /// Somebody listens there already.
    #[error("port {0} is taken already")]
    Taken(u16),
    /// The socket is not bound.
    #[error("the socket is not bound to a port")]
    NotBound,
}

/// What a listener does with those who knock.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenSettings {
    /// TCP of the connections.
    pub config: Config,
    /// Records of accepted connections are made under this number.
    pub log_as: Option<u32>,
    /// Connections whose handshake is not complete. Each takes the memory of a connection.
    pub backlog: usize,
    /// Answer SYNs beyond the backlog with cookies (RFC 4987); if not, they are dropped.
    pub cookies: bool,
    /// Connections at once, half-open ones included.
    pub accepted: usize,
}

impl ListenSettings {
    /// With the default limits, and without records.
    pub fn new(config: Config) -> Self {
        ListenSettings {
            config,
            log_as: None,
            backlog: DEFAULT_BACKLOG,
            cookies: true,
            accepted: DEFAULT_ACCEPTED,
        }
    }
}

type Factory = Box<dyn FnMut() -> Box<dyn Application>>;

/// Whether connections may be established: false while the program has not accepted the earlier ones.
type AcceptRoom = Box<dyn FnMut() -> bool>;

pub(crate) struct Listener {
    /// Whose it is, for as long as it is there; a later one at the same port is another.
    pub id: BindId,
    bind: Bind,
    pub settings: ListenSettings,
    factory: Factory,
    room: Option<AcceptRoom>,
    half_open: usize,
    accepted: usize,
    /// Until when a cookie may come back.
    cookies_until: Option<Instant>,
    /// SYN-ACKs for IPv4 and IPv6, but for what each SYN makes different.
    templates: [Option<TcpHeader>; 2],
}

/// What is to be done with a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListenAdmission {
    /// Make a connection.
    Keep,
    /// Answer it with a cookie.
    Cookie,
    /// Drop it.
    Refuse,
}

impl Listener {
    /// Where it listens.
    pub const fn bind(&self) -> &Bind {
        &self.bind
    }

    /// Connections whose handshake is not complete.
    pub const fn half_open(&self) -> usize {
        self.half_open
    }

    /// Connections that begin from now on have this configuration.
    pub fn set_config(&mut self, config: Config) {
        self.settings.config = config;
        self.templates = [None, None];
    }

    /// Asks `room` before a connection is established.
    pub fn ask(&mut self, room: AcceptRoom) {
        self.room = Some(room);
    }

    /// True while the program has too many connections to accept. As in Linux (`tcp_abort_on_overflow` 0),
    /// what would establish another one is dropped then, and the peer sends it again.
    pub fn is_full(&mut self) -> bool {
        self.room.as_mut().is_some_and(|room| !room())
    }

    /// What is to be done with a SYN; `room` is whether the host has any.
    pub fn admit(&mut self, room: bool) -> ListenAdmission {
        if !room || self.is_full() || self.accepted >= self.settings.accepted {
            ListenAdmission::Refuse
        } else if self.half_open < self.settings.backlog {
            ListenAdmission::Keep
        } else if self.settings.cookies {
            ListenAdmission::Cookie
        } else {
            ListenAdmission::Refuse
        }
    }

    /// A connection was made for a SYN.
    pub fn count_half_open(&mut self) {
        self.half_open += 1;
        self.accepted += 1;
    }

    /// A connection was made from a cookie.
    pub fn count_accepted(&mut self) {
        self.accepted += 1;
    }

    /// The application of a connection whose handshake is complete.
    pub fn application(&mut self) -> Box<dyn Application> {
        (self.factory)()
    }

    /// The answer to a SYN that nothing is kept of.
    pub fn cookie(
        &mut self,
        secret: &Secret,
        tuple: &Tuple,
        syn: &TcpHeader,
        limits: ConnectionLimits,
        now: Instant,
    ) -> Option<TcpHeader> {
        self.cookies_until = Some(now + COOKIE_LIFETIME);
        let mut header = self.template(tuple, limits, now)?;
        let iss = cookies::cookie(secret, tuple, syn, now);
        (header.src_port, header.dst_port) = (tuple.local_port, tuple.remote_port);
        (header.seq, header.ack) = (iss, syn.seq + 1);
        // What would come back nowhere is not agreed on.
        let (ours, theirs) = (&mut header.options, &syn.options);
        let stamped = ours.timestamps.and(theirs.timestamps);
        let scale = theirs.window_scale.filter(|_| stamped.is_some() && ours.window_scale.is_some());
        ours.window_scale = ours.window_scale.filter(|_| scale.is_some());
        ours.sack_permitted &= stamped.is_some() && theirs.sack_permitted;
        ours.timestamps = stamped.map(|theirs| {
            // From here on the connection's clock goes on, if there will be one.
            let clock = iss + (now.as_nanos() / 1_000_000) as u32;
            Timestamps { value: cookies::stamp(clock.get(), scale, ours.sack_permitted), echo: theirs.value }
        });
        Some(header)
    }

    /// What this listener says to a SYN that offers everything.
    fn template(&mut self, tuple: &Tuple, limits: ConnectionLimits, now: Instant) -> Option<TcpHeader> {
        let template = &mut self.templates[usize::from(tuple.local.is_ipv6())];
        if template.is_none() {
            let mut syn = Segment::default();
            syn.header.flags = TcpFlags::SYN;
            let options = &mut syn.header.options;
            (options.window_scale, options.sack_permitted) = (Some(0), true);
            options.timestamps = Some(Timestamps::default());
            let ports = Ports { local: tuple.local_port, remote: tuple.remote_port };
            let config = fitted(&self.settings.config, tuple, limits);
            // A connection that lives for this one segment knows best.
            let mut connection = Connection::accept(now, &config, ports, Seq::default(), &syn);
            let mut out = Vec::with_capacity(1);
            connection.poll_transmit(now, &mut out, 1);
            *template = out.pop().map(|out| out.segment.header);
        }
        template.clone()
    }

    /// What is known from a cookie that came back; none if it is none of ours, or if there is no room.
    pub fn redeem(
        &self,
        secret: &Secret,
        tuple: &Tuple,
        ack: &TcpHeader,
        now: Instant,
        room: bool,
    ) -> Option<ResumedConnection> {
        self.cookies_until.filter(|until| now <= *until)?;
        if !room || self.accepted >= self.settings.accepted {
            return None;
        }
        cookies::check(secret, tuple, ack, now)
    }
}

/// The listeners of a host, by port: several where each has addresses of its own, or where they share the
/// connections.
#[derive(Default)]
pub(crate) struct Listeners {
    by_port: BTreeMap<u16, Vec<Listener>>,
}

impl Listeners {
    /// Adds one, whose place nobody else has.
    pub fn add(&mut self, id: BindId, bind: Bind, settings: ListenSettings, factory: Factory) {
        let listener = Listener {
            id,
            bind,
            settings,
            factory,
            room: None,
            half_open: 0,
            accepted: 0,
            cookies_until: None,
            templates: [None, None],
        };
        // A port has one listener for each address: seldom more than one.
        self.by_port.entry(id.port).or_insert_with(|| Vec::with_capacity(1)).push(listener);
    }

    /// Ends one. True if there was one.
    pub fn remove(&mut self, id: BindId) -> bool {
        let Some(at_port) = self.by_port.get_mut(&id.port) else { return false };
        let before = at_port.len();
        at_port.retain(|listener| listener.id != id);
        let removed = at_port.len() < before;
        if at_port.is_empty() {
            self.by_port.remove(&id.port);
        }
        removed
    }

    /// Those that listen at `port`, for [`remove`](Self::remove).
    pub fn at_port(&self, port: u16) -> Vec<BindId> {
        self.by_port.get(&port).into_iter().flatten().map(|listener| listener.id).collect()
    }

    /// Ends all.
    pub fn clear(&mut self) {
        self.by_port.clear();
    }

    /// What connections may have has changed.
    pub fn forget_templates(&mut self) {
        self.by_port.values_mut().flatten().for_each(|listener| listener.templates = [None, None]);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_port.values().map(Vec::len).sum()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Listener> {
        self.by_port.values().flatten()
    }

    /// True if somebody listens for connections with these ends.
    pub fn has(&self, tuple: &Tuple) -> bool {
        let at_port = self.by_port.get(&tuple.local_port);
        at_port.into_iter().flatten().any(|listener| listener.bind.covers(tuple.local))
    }

    /// The one for connections with these ends: at the address itself before one at all of its family, and
    /// that before one of both families. Of several alike the ends decide, so that a connection stays with
    /// one of them.
    pub fn find(&mut self, secret: &Secret, tuple: &Tuple) -> Option<&mut Listener> {
        let rank = |listener: &Listener| match listener.bind.address {
            _ if !listener.bind.covers(tuple.local) => 0,
            address if !address.is_unspecified() => 3,
            address if address.is_ipv4() == tuple.local.is_ipv4() => 2,
            _ => 1,
        };
        let at_port = self.by_port.get_mut(&tuple.local_port)?;
        let best = at_port.iter().map(rank).max().filter(|best| *best > 0)?;
        let alike = at_port.iter().filter(|listener| rank(listener) == best).count() as u64;
        let turn = if alike > 1 { secret.hash(Purpose::Listener, tuple, 0) % alike } else { 0 };
        at_port.iter_mut().filter(|listener| rank(listener) == best).nth(turn as usize)
    }

    /// The one that has accepted a connection, if it is still there.
    pub fn get(&mut self, id: BindId) -> Option<&mut Listener> {
        self.by_port.get_mut(&id.port)?.iter_mut().find(|listener| listener.id == id)
    }

    /// The handshake of a connection is over, for good or bad.
    pub fn not_half_open(&mut self, id: BindId) -> Option<&mut Listener> {
        let listener = self.get(id)?;
        listener.half_open = listener.half_open.saturating_sub(1);
        Some(listener)
    }

    /// An accepted connection is over.
    pub fn gone(&mut self, id: BindId) {
        if let Some(listener) = self.get(id) {
            listener.accepted = listener.accepted.saturating_sub(1);
        }
    }

    /// Half-open connections of all.
    pub fn half_open(&self) -> usize {
        self.iter().map(|listener| listener.half_open).sum()
    }
}
