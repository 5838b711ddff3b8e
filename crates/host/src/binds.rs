//! Which local ports TCP sockets have, and who may share one: bind(2) with SO_REUSEADDR and SO_REUSEPORT as
//! Linux has them.

use crate::FIRST_EPHEMERAL;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use thiserror::Error;

/// Sockets of one host that are bound at most.
pub const MAX_BOUND: usize = 65_536;

/// Where a socket is to be bound, and whom it bears beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bind {
    /// An address of the host, or all of a family (`0.0.0.0`, `::`).
    pub address: IpAddr,
    /// The port; 0: the host chooses a free one.
    pub port: u16,
    /// With `::`, all addresses of IPv4 as well.
    pub both_families: bool,
    /// Bears sockets that bear it and do not listen (SO_REUSEADDR), and connections of a listener that was
    /// there before.
    pub reuse_address: bool,
    /// Bears all that bear it (SO_REUSEPORT); listeners at one place then share the connections.
    pub reuse_port: bool,
    /// The address need not be one of the host (IP_FREEBIND).
    pub any_address: bool,
}

impl Bind {
    /// Alone at `address` and `port`, but beside connections of listeners that were there before.
    pub fn new(address: IpAddr, port: u16) -> Self {
        Bind {
            address,
            port,
            both_families: true,
            reuse_address: true,
            reuse_port: false,
            any_address: false,
        }
    }

    /// The same, and beside nobody.
    pub fn alone(address: IpAddr, port: u16) -> Self {
        Bind { reuse_address: false, both_families: false, ..Bind::new(address, port) }
    }

    /// What is sent to `to` is for this socket.
    pub(crate) fn covers(&self, to: IpAddr) -> bool {
        match self.address {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED) => to.is_ipv4(),
            IpAddr::V6(Ipv6Addr::UNSPECIFIED) => to.is_ipv6() || self.both_families,
            own => own == to,
        }
    }

    /// There are addresses that both cover.
    pub(crate) fn overlaps(&self, other: &Bind) -> bool {
        let wide = |bind: &Bind| bind.address.is_unspecified();
        match (wide(self), wide(other)) {
            (_, false) => self.covers(other.address),
            (false, true) => other.covers(self.address),
            (true, true) => {
                self.covers(Ipv4Addr::LOCALHOST.into()) && other.covers(Ipv4Addr::LOCALHOST.into())
                    || self.covers(Ipv6Addr::LOCALHOST.into()) && other.covers(Ipv6Addr::LOCALHOST.into())
            }
        }
    }
}

/// Why a socket cannot be bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PortError {
    /// Somebody has the port and does not share it.
    #[error("port {0} is taken already")]
    Taken(u16),
    /// Not an address of the host.
    #[error("{0} is not an address of this host")]
    NotOurs(IpAddr),
    /// All ports are taken, or [`MAX_BOUND`] sockets are bound.
    #[error("no port is left")]
    NoneLeft,
}

/// A socket that is bound. It never means another one after [`Host::unbind`](crate::Host::unbind).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BindId {
    pub(crate) port: u16,
    number: u64,
}

#[derive(Clone, Copy, Debug)]
struct BoundPort {
    number: u64,
    bind: Bind,
    listening: bool,
}

/// Connections that have a local port, by whether they bear others there.
#[derive(Clone, Copy, Debug, Default)]
struct Users {
    all: usize,
    /// Those that bear nobody.
    strict: usize,
}

/// The bound sockets of a host, and the ports of its connections.
#[derive(Debug, Default)]
pub(crate) struct Binds {
    by_port: BTreeMap<u16, Vec<BoundPort>>,
    count: usize,
    made: u64,
    users: BTreeMap<(u16, IpAddr), Users>,
}

impl Binds {
    /// A connection has a local port, until [`leave`](Self::leave).
    pub fn enter(&mut self, port: u16, local: IpAddr, reuse_address: bool) {
        let users = self.users.entry((port, local)).or_default();
        users.all += 1;
        users.strict += usize::from(!reuse_address);
    }

    /// It has it no more.
    pub fn leave(&mut self, port: u16, local: IpAddr, reuse_address: bool) {
        if let Some(users) = self.users.get_mut(&(port, local)) {
            users.all = users.all.saturating_sub(1);
            users.strict = users.strict.saturating_sub(usize::from(!reuse_address));
            if users.all == 0 {
                self.users.remove(&(port, local));
            }
        }
    }

    /// True if `bind` cannot be beside what is there.
    fn conflicts(&self, bind: &Bind, own: Option<u64>) -> bool {
        let bears = |other: &BoundPort| {
            let by_address = bind.reuse_address && other.bind.reuse_address && !other.listening;
            by_address || (bind.reuse_port && other.bind.reuse_port)
        };
        let mut at_port = self.by_port.get(&bind.port).into_iter().flatten();
        if at_port.any(|other| Some(other.number) != own && bind.overlaps(&other.bind) && !bears(other)) {
            return true;
        }
        let first = (bind.port, IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let mut users = self.users.range(first..).take_while(|((port, _), _)| *port == bind.port);
        own.is_none()
            && users
                .any(|((_, local), users)| bind.covers(*local) && (users.strict > 0 || !bind.reuse_address))
    }

    /// Nobody at all has this port.
    pub fn is_free(&self, port: u16) -> bool {
        let first = (port, IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let used = self.users.range(first..).next().is_some_and(|((other, _), _)| *other == port);
        !used && !self.by_port.contains_key(&port)
    }

    /// True if a socket is bound to this port.
    pub fn is_bound(&self, port: u16) -> bool {
        self.by_port.contains_key(&port)
    }

    /// Binds a socket, if there is nobody whom it does not bear.
    pub fn add(&mut self, bind: Bind) -> Result<BindId, PortError> {
        if self.count >= MAX_BOUND {
            return Err(PortError::NoneLeft);
        }
        if self.conflicts(&bind, None) {
            return Err(PortError::Taken(bind.port));
        }
        self.made += 1;
        self.count += 1;
        let bound = BoundPort { number: self.made, bind, listening: false };
        self.by_port.entry(bind.port).or_default().push(bound);
        Ok(BindId { port: bind.port, number: self.made })
    }

    /// The same at a port that nobody has: the first from that on which `random` chooses.
    pub fn add_anywhere(&mut self, bind: Bind, random: u64) -> Result<BindId, PortError> {
        let count = u64::from(u16::MAX - FIRST_EPHEMERAL) + 1;
        let port = |n: u64| FIRST_EPHEMERAL + ((random % count + n) % count) as u16;
        let free = (0..count).map(port).find(|port| self.is_free(*port));
        self.add(Bind { port: free.ok_or(PortError::NoneLeft)?, ..bind })
    }

    /// Sockets that were ever bound.
    pub const fn made(&self) -> u64 {
        self.made
    }

    /// Where a socket is bound; none: it is not any more.
    pub fn bound(&mut self, id: BindId) -> Option<SocketAddr> {
        self.get(id).map(|bound| SocketAddr::new(bound.bind.address, bound.bind.port))
    }

    /// Changes whom a bound socket bears beside it.
    pub fn set_reuse(&mut self, id: BindId, reuse_address: bool, reuse_port: bool) {
        if let Some(bound) = self.get(id) {
            (bound.bind.reuse_address, bound.bind.reuse_port) = (reuse_address, reuse_port);
        }
    }

    fn get(&mut self, id: BindId) -> Option<&mut BoundPort> {
        self.by_port.get_mut(&id.port)?.iter_mut().find(|bound| bound.number == id.number)
    }

    /// The socket listens from now on.
    ///
    /// # Errors
    /// Another listens there already.
    pub fn listen(&mut self, id: BindId) -> Result<Bind, PortError> {
        let bind = self.get(id).map(|bound| bound.bind).ok_or(PortError::NoneLeft)?;
        if self.conflicts(&bind, Some(id.number)) {
            return Err(PortError::Taken(bind.port));
        }
        if let Some(bound) = self.get(id) {
            bound.listening = true;
        }
        Ok(bind)
    }

    /// The socket listens no more.
    pub fn stop_listening(&mut self, id: BindId) {
        if let Some(bound) = self.get(id) {
            bound.listening = false;
        }
    }

    /// The socket is closed.
    pub fn remove(&mut self, id: BindId) {
        let Some(at_port) = self.by_port.get_mut(&id.port) else { return };
        let before = at_port.len();
        at_port.retain(|bound| bound.number != id.number);
        self.count -= before - at_port.len();
        if at_port.is_empty() {
            self.by_port.remove(&id.port);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bind(address: &str, port: u16, reuse_address: bool, reuse_port: bool) -> Bind {
        let address = address.parse().unwrap();
        Bind { reuse_address, reuse_port, ..Bind::new(address, port) }
    }

    /// Breaks: two sockets with one port, or a port that cannot be shared though both bear it.
    #[test]
    fn ports_are_shared_as_linux_shares_them() {
        let taken = |there: &[(Bind, bool)], new: Bind| {
            let mut binds = Binds::default();
            for (bind, listening) in there {
                let id = binds.add(*bind).unwrap();
                if *listening {
                    binds.listen(id).unwrap();
                }
            }
            binds.add(new).is_err()
        };
        let (none, address, port) = ((false, false), (true, false), (false, true));
        let table = [
            // What is there, whether it listens, what is new, and whether that is refused.
            (("10.0.0.1", none), false, ("10.0.0.1", none), true),
            (("10.0.0.1", none), false, ("10.0.0.2", none), false),
            (("0.0.0.0", none), false, ("10.0.0.2", none), true),
            (("10.0.0.2", none), false, ("0.0.0.0", none), true),
            (("10.0.0.1", address), false, ("10.0.0.1", address), false),
            (("10.0.0.1", address), true, ("10.0.0.1", address), true),
            (("10.0.0.1", address), false, ("10.0.0.1", none), true),
            (("10.0.0.1", port), true, ("10.0.0.1", port), false),
            (("10.0.0.1", port), true, ("10.0.0.1", address), true),
            (("::", none), false, ("0.0.0.0", none), true),
            (("fd00::1", none), false, ("0.0.0.0", none), false),
            (("::", none), false, ("10.0.0.1", none), true),
        ];
        for ((there, (a, p)), listening, (new, (b, q)), refused) in table {
            let outcome = taken(&[(bind(there, 80, a, p), listening)], bind(new, 80, b, q));
            assert_eq!(outcome, refused, "{new} beside {there}, listening: {listening}");
            assert!(!taken(&[(bind(there, 80, a, p), listening)], bind(new, 81, b, q)));
        }
        let only_v6 = Bind { both_families: false, ..bind("::", 80, false, false) };
        assert!(!taken(&[(only_v6, true)], bind("0.0.0.0", 80, false, false)));
        // Of two that bear each other, one can listen.
        let mut binds = Binds::default();
        let ids = [(); 2].map(|()| binds.add(bind("0.0.0.0", 80, true, false)).unwrap());
        binds.listen(ids[0]).unwrap();
        assert_eq!(binds.listen(ids[1]), Err(PortError::Taken(80)));
        binds.remove(ids[0]);
        binds.listen(ids[1]).unwrap();
    }

    /// Breaks: a server cannot have its port again after a restart, or takes it from connections that bear
    /// nobody.
    #[test]
    fn connections_keep_a_port_from_those_who_do_not_share_it() {
        let mut binds = Binds::default();
        let local = "10.0.0.1".parse().unwrap();
        binds.enter(80, local, true);
        assert!(binds.add(bind("0.0.0.0", 80, false, false)).is_err());
        let id = binds.add(bind("0.0.0.0", 80, true, false)).unwrap();
        binds.remove(id);
        binds.enter(80, local, false);
        assert!(binds.add(bind("0.0.0.0", 80, true, false)).is_err());
        assert!(binds.add(bind("10.0.0.2", 80, false, false)).is_ok());
        binds.leave(80, local, false);
        binds.leave(80, local, true);
        assert!(binds.add(bind("0.0.0.0", 80, false, false)).is_err(), "10.0.0.2 has it");
        assert!(binds.users.is_empty() && binds.count == 1);
    }
}
