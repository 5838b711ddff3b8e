//! Gateways in several threads that share the connections of a router: each connection is in one of them.
//!
//! The kernel gives all packets of a connection to the same queue of a device, and so to the same thread. It
//! does not always: an ICMP error has no ports, and packets of IPv6 have a flow label in one direction only.
//! A gateway that gets a packet of a connection of another one hands it over.

use crate::Gateway;
use farpace_path::Port;
use farpace_wire::Packet;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Parts of the table of all connections, each with a lock of its own.
const PARTS: usize = 64;
/// Packets from other gateways that wait for one at most. Further packets are dropped.
pub const MAX_HANDED_OVER: usize = 4096;

/// Both ends of a connection, the lesser first.
pub(crate) type ConnectionKey = (SocketAddr, SocketAddr);

/// The key of the connection between `a` and `b`.
pub(crate) fn connection_key(a: SocketAddr, b: SocketAddr) -> ConnectionKey {
    if a <= b { (a, b) } else { (b, a) }
}

/// Two hosts, the lesser first.
type HostPair = (IpAddr, IpAddr);

/// The connections that the gateways of several threads share, as one of these gateways sees them. Clones
/// belong to the same gateway.
#[derive(Clone)]
pub struct SharedFlows {
    all: Arc<Shards>,
    own: usize,
}

/// What the gateways share.
struct Shards {
    /// Which gateway has a connection. Empty if there is one gateway.
    owners: Vec<Mutex<BTreeMap<ConnectionKey, usize>>>,
    /// How many connections there are between two hosts: their fragments belong to them.
    pairs: Vec<Mutex<BTreeMap<HostPair, usize>>>,
    inboxes: Vec<Inbox>,
    account: Account,
}

/// Packets that other gateways have handed over.
#[derive(Default)]
struct Inbox {
    packets: Mutex<VecDeque<(Port, Packet)>>,
    /// Wakes the thread.
    wake: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// What limits apply to, of all gateways together.
#[derive(Debug, Default)]
pub(crate) struct Account {
    /// Memory in bytes, and the most that it was.
    pub held: AtomicU64,
    pub peak: AtomicU64,
    /// Split connections, and those of them whose handshake is not complete.
    pub connections: AtomicUsize,
    pub half_open: AtomicUsize,
}

impl Shards {
    fn new(count: usize) -> Self {
        let parts = if count > 1 { PARTS } else { 0 };
        Shards {
            owners: (0..parts).map(|_| Mutex::default()).collect(),
            pairs: (0..PARTS).map(|_| Mutex::default()).collect(),
            inboxes: (0..count).map(|_| Inbox::default()).collect(),
            account: Account::default(),
        }
    }
}

impl SharedFlows {
    /// So many gateways that share connections.
    pub fn all(count: usize) -> Vec<SharedFlows> {
        let all = Arc::new(Shards::new(count));
        (0..count).map(|own| SharedFlows { all: all.clone(), own }).collect()
    }

    /// A gateway that shares with no other.
    pub fn alone() -> SharedFlows {
        SharedFlows { all: Arc::new(Shards::new(1)), own: 0 }
    }

    /// `wake` is called, in any thread, when packets wait for this gateway: see
    /// [`handed_over`](SharedFlows::handed_over). Only the first call has an effect.
    pub fn wake_by(&self, wake: impl Fn() + Send + Sync + 'static) {
        let _ = self.all.inboxes[self.own].wake.set(Box::new(wake));
    }

    /// The packets that were handed over to this gateway, with their ports, for
    /// [`Gateway::take_over`](crate::Gateway::take_over).
    pub fn handed_over(&self) -> VecDeque<(Port, Packet)> {
        std::mem::take(&mut *lock(&self.all.inboxes[self.own].packets))
    }

    /// Hands an ICMP error over to this gateway that the router itself has sent, in any thread. It is lost if
    /// too many wait.
    pub fn tell_of(&self, error: Packet) {
        let _ = self.hand_over(self.own, Gateway::ROUTER, error);
    }

    /// Connections that all gateways have.
    pub fn connections(&self) -> usize {
        self.account().connections.load(Ordering::Relaxed)
    }

    pub(crate) fn account(&self) -> &Account {
        &self.all.account
    }

    /// Takes a connection that no gateway has.
    ///
    /// # Errors
    /// The other gateway that has it.
    pub(crate) fn claim(&self, key: &ConnectionKey) -> Result<(), usize> {
        if let Some(part) = self.part(key) {
            let owner = *lock(part).entry(*key).or_insert(self.own);
            if owner != self.own {
                return Err(owner);
            }
        }
        let (part, pair) = self.pair(key.0.ip(), key.1.ip());
        *lock(part).entry(pair).or_insert(0) += 1;
        Ok(())
    }

    /// Some gateway has a connection between these hosts.
    pub(crate) fn is_between(&self, a: IpAddr, b: IpAddr) -> bool {
        let (part, pair) = self.pair(a, b);
        lock(part).contains_key(&pair)
    }

    fn pair(&self, a: IpAddr, b: IpAddr) -> (&Mutex<BTreeMap<HostPair, usize>>, HostPair) {
        let mix = |ip: IpAddr| match ip {
            IpAddr::V4(v4) => v4.to_bits() as usize,
            IpAddr::V6(v6) => v6
                .segments()
                .into_iter()
                .fold(0usize, |sum, word| sum.wrapping_mul(31).wrapping_add(usize::from(word))),
        };
        let part = &self.all.pairs[(mix(a) ^ mix(b)) % PARTS];
        (part, if a <= b { (a, b) } else { (b, a) })
    }

    /// Another gateway that has this connection.
    pub(crate) fn other_owner(&self, key: &ConnectionKey) -> Option<usize> {
        let owner = lock(self.part(key)?).get(key).copied();
        owner.filter(|owner| *owner != self.own)
    }

    /// The connection is over.
    pub(crate) fn release(&self, key: &ConnectionKey) {
        if let Some(part) = self.part(key) {
            lock(part).remove(key);
        }
        let (part, pair) = self.pair(key.0.ip(), key.1.ip());
        let mut pairs = lock(part);
        if let Some(count) = pairs.get_mut(&pair) {
            *count -= 1;
            if *count == 0 {
                pairs.remove(&pair);
            }
        }
    }

    /// Gives a packet to another gateway.
    ///
    /// # Errors
    /// The packet, if too many wait for that gateway.
    pub(crate) fn hand_over(&self, to: usize, port: Port, packet: Packet) -> Result<(), Packet> {
        let Some(inbox) = self.all.inboxes.get(to) else { return Err(packet) };
        let was_empty = {
            let mut packets = lock(&inbox.packets);
            if packets.len() >= MAX_HANDED_OVER {
                return Err(packet);
            }
            packets.push_back((port, packet));
            packets.len() == 1
        };
        if was_empty && let Some(wake) = inbox.wake.get() {
            wake();
        }
        Ok(())
    }

    fn part(&self, key: &ConnectionKey) -> Option<&Mutex<BTreeMap<ConnectionKey, usize>>> {
        let parts = self.all.owners.len();
        let mixed = usize::from(key.0.port() ^ key.1.port().rotate_left(3));
        self.all.owners.get(mixed.checked_rem(parts)?)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
