//! Limits on the connections of a receiver: silent, slow or many connections cannot occupy all of its slots.
//!
//! An unproven connection (its handshake is not complete) occupies one of [`MAX_UNPROVEN`] slots, and one
//! address at most [`MAX_UNPROVEN_EACH`] of them. If none is free, the oldest such connection is closed; a
//! handshake takes two round trips. After the handshake a connection requests a slot for a transfer. With a
//! token it gets one if one is free. Without a token every peer is unauthenticated, a stranger: one address
//! has at most half of the slots, and if none is free, the slowest stranger is closed if it is below
//! [`MIN_RATE_OF_STRANGERS`] and has had its slot for [`MIN_TIME_OF_STRANGERS`].

use crate::fault::{Code, TransferFault};
use crate::limits::{MAX_UNPROVEN, MAX_UNPROVEN_EACH, MIN_RATE_OF_STRANGERS, MIN_TIME_OF_STRANGERS};
use crate::line::FramedStream;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The slots of a receiver.
#[derive(Clone)]
pub struct TransferAdmission(Arc<AdmissionInner>);

struct AdmissionInner {
    transfers: usize,
    table: Mutex<AdmissionTable>,
}

#[derive(Default)]
struct AdmissionTable {
    next: u64,
    /// In order of arrival.
    unproven: BTreeMap<u64, Arc<AdmittedConnection>>,
    transfers: BTreeMap<u64, Arc<AdmittedConnection>>,
}

struct AdmittedConnection {
    from: Option<IpAddr>,
    since: Mutex<Instant>,
    work: AtomicU64,
    stranger: AtomicBool,
    displaced: AtomicBool,
    close: Arc<dyn Fn() + Send + Sync>,
}

impl AdmittedConnection {
    fn displace(&self) {
        self.displaced.store(true, Ordering::Relaxed);
        (self.close)();
    }
    /// Byte/s since it has its slot, for a stranger after the minimum time.
    fn rate(&self) -> Option<u64> {
        let age = self.since.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
        let has_had = self.stranger.load(Ordering::Relaxed) && age >= MIN_TIME_OF_STRANGERS;
        has_had.then(|| self.work.load(Ordering::Relaxed) / age.as_secs().max(1))
    }
}

/// The slot of one connection; it is released when this is dropped.
pub struct Admission {
    inner: Arc<AdmissionInner>,
    number: u64,
    connection: Arc<AdmittedConnection>,
}

impl TransferAdmission {
    /// Slots for this many simultaneous transfers; at least one.
    pub fn new(transfers: usize) -> Self {
        TransferAdmission(Arc::new(AdmissionInner { transfers: transfers.max(1), table: Mutex::default() }))
    }

    /// Admits a connection from this address. Another one may be closed for it. The returned stream is this
    /// one.
    pub fn arrive(&self, from: Option<IpAddr>, line: FramedStream) -> (Admission, FramedStream) {
        let FramedStream { reader, writer, close } = line;
        let close: Arc<dyn Fn() + Send + Sync> = close.into();
        let connection = Arc::new(AdmittedConnection {
            from: from.map(source),
            since: Mutex::new(Instant::now()),
            work: AtomicU64::new(0),
            stranger: AtomicBool::new(true),
            displaced: AtomicBool::new(false),
            close: Arc::clone(&close),
        });
        let mut table = self.0.table();
        let same: Vec<u64> = numbers(&table.unproven, connection.from);
        let oldest = match same.first() {
            Some(oldest) if same.len() >= MAX_UNPROVEN_EACH => Some(*oldest),
            _ if table.unproven.len() >= MAX_UNPROVEN => table.unproven.keys().next().copied(),
            _ => None,
        };
        let displaced = oldest.and_then(|number| table.unproven.remove(&number));
        let number = table.next;
        table.next += 1;
        table.unproven.insert(number, Arc::clone(&connection));
        drop(table);
        if let Some(displaced) = displaced {
            displaced.displace();
        }
        let line = FramedStream { reader, writer, close: Box::new(move || close()) };
        (Admission { inner: Arc::clone(&self.0), number, connection }, line)
    }

    /// Number of unproven connections, and of transfers.
    pub fn taken(&self) -> (usize, usize) {
        let table = self.0.table();
        (table.unproven.len(), table.transfers.len())
    }
}

impl AdmissionInner {
    fn table(&self) -> MutexGuard<'_, AdmissionTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Admission {
    /// Requests a slot for a transfer. `stranger`: the peer is unauthenticated, because there is no token.
    ///
    /// # Errors
    /// No slot is free.
    pub fn admit(&self, stranger: bool) -> Result<(), TransferFault> {
        let full = |text: &str| Err(TransferFault::new(Code::Busy, text));
        let mut table = self.inner.table();
        if self.connection.displaced.load(Ordering::Relaxed) {
            return full("others took its place");
        }
        let most = self.inner.transfers;
        let same = numbers(&table.transfers, self.connection.from);
        let among: Vec<u64> = if stranger && same.len() >= most.div_ceil(2) {
            same
        } else if table.transfers.len() >= most {
            table.transfers.keys().copied().collect()
        } else {
            Vec::new()
        };
        let mut displaced = None;
        if !among.is_empty() {
            let rates =
                among.iter().filter_map(|number| Some((table.transfers.get(number)?.rate()?, *number)));
            let slowest = rates.min().filter(|(rate, _)| *rate < MIN_RATE_OF_STRANGERS);
            let Some((_, number)) = slowest else {
                return full("as many transfers as allowed are running; try again later");
            };
            displaced = table.transfers.remove(&number);
        }
        table.unproven.remove(&self.number);
        self.connection.stranger.store(stranger, Ordering::Relaxed);
        *self.connection.since.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        table.transfers.insert(self.number, Arc::clone(&self.connection));
        drop(table);
        if let Some(displaced) = displaced {
            displaced.displace();
        }
        Ok(())
    }

    /// Records the progress of the transfer: [`LineProgress::work`](crate::LineProgress).
    pub fn worked(&self, work: u64) {
        self.connection.work.store(work, Ordering::Relaxed);
    }

    /// True if it was closed for another.
    pub fn is_displaced(&self) -> bool {
        self.connection.displaced.load(Ordering::Relaxed)
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let mut table = self.inner.table();
        table.unproven.remove(&self.number);
        table.transfers.remove(&self.number);
    }
}

/// The unit of addresses in limits: for IPv6 the /64 network of the peer.
fn source(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from(u128::from(v6) >> 64 << 64)),
        v4 => v4,
    }
}

/// The connections of one source, the oldest first. A connection of unknown source has its own.
fn numbers(connections: &BTreeMap<u64, Arc<AdmittedConnection>>, from: Option<IpAddr>) -> Vec<u64> {
    let same = |connection: &AdmittedConnection| from.is_some() && connection.from == from;
    connections.iter().filter(|(_, connection)| same(connection)).map(|(number, _)| *number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Client {
        ticket: Admission,
        closed: Arc<AtomicBool>,
    }

    impl Client {
        fn is_gone(&self) -> bool {
            self.closed.load(Ordering::Relaxed)
        }
        /// Makes the connections a minute older.
        fn age(&self) {
            let minute = std::time::Duration::from_secs(60);
            let mut since = self.ticket.connection.since.lock().unwrap();
            *since = since.checked_sub(minute).unwrap();
        }
    }

    fn come(to: &TransferAdmission, from: &str) -> Client {
        let closed = Arc::new(AtomicBool::new(false));
        let close = Arc::clone(&closed);
        let line = FramedStream {
            reader: Box::new(std::io::empty()),
            writer: Box::new(std::io::sink()),
            close: Box::new(move || close.store(true, Ordering::Relaxed)),
        };
        Client { ticket: to.arrive(Some(from.parse().unwrap()), line).0, closed }
    }

    /// Breaks: silent connections do not prevent others from completing their handshake.
    #[test]
    fn the_oldest_of_the_unproven_goes() {
        let places = TransferAdmission::new(1);
        let flood: Vec<_> = (0..20).map(|_| come(&places, "192.0.2.1")).collect();
        assert_eq!(places.taken(), (MAX_UNPROVEN_EACH, 0));
        assert!(flood[..12].iter().all(Client::is_gone) && !flood[12..].iter().any(Client::is_gone));
        let other = come(&places, "192.0.2.2");
        assert!(!other.is_gone(), "one address does not take the places of others");
        let many: Vec<_> = (0..MAX_UNPROVEN).map(|n| come(&places, &format!("10.0.0.{n}"))).collect();
        assert_eq!(places.taken().0, MAX_UNPROVEN);
        assert!(other.is_gone() && !many.last().unwrap().is_gone());
        assert!(other.ticket.admit(false).is_err() && other.ticket.is_displaced());
        assert!(many.last().unwrap().ticket.admit(false).is_ok());
        drop((flood, other, many));
        assert_eq!(places.taken(), (0, 0));
    }

    /// Breaks: the addresses of an IPv6 network count as one.
    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let places = TransferAdmission::new(1);
        let flood: Vec<_> = (0..10).map(|n| come(&places, &format!("2001:db8::{n}"))).collect();
        assert_eq!(places.taken().0, MAX_UNPROVEN_EACH);
        assert!(!come(&places, "2001:db8:0:1::1").is_gone() && flood[0].is_gone());
        assert_eq!(source("::ffff:192.0.2.1".parse().unwrap()), source("192.0.2.1".parse().unwrap()));
    }

    /// Breaks: idle strangers, and those that only claim to be busy, cannot occupy all slots.
    #[test]
    fn the_slowest_stranger_goes_when_places_are_short() {
        let places = TransferAdmission::new(4);
        let ask = |from: &str| {
            let client = come(&places, from);
            let admitted = client.ticket.admit(true);
            (client, admitted)
        };
        let (slow, first) = ask("192.0.2.1");
        let (fast, second) = ask("192.0.2.1");
        assert!(first.is_ok() && second.is_ok());
        assert_eq!(ask("192.0.2.1").1.unwrap_err().code, Code::Busy, "half of the places for one address");
        slow.ticket.worked(100);
        fast.ticket.worked(1 << 30);
        slow.age();
        fast.age();
        let (third, admitted) = ask("192.0.2.1");
        assert!(admitted.is_ok() && slow.is_gone() && !fast.is_gone());
        let others = [ask("192.0.2.2"), ask("192.0.2.3")];
        assert!(others.iter().all(|other| other.1.is_ok()));
        assert!(ask("192.0.2.4").1.is_err(), "nobody has had its time");
        third.age();
        let (last, admitted) = ask("192.0.2.4");
        assert!(admitted.is_ok() && third.is_gone() && !last.is_gone());
        drop(slow);
        assert_eq!(places.taken(), (0, 4), "who had to go frees no place of another");
    }

    /// Breaks: a peer with the token keeps its slot even if it is slow, and can use all slots.
    #[test]
    fn who_has_proved_the_token_stays() {
        let places = TransferAdmission::new(2);
        let clients: Vec<_> = (0..3).map(|_| come(&places, "192.0.2.1")).collect();
        assert!(clients[..2].iter().all(|client| client.ticket.admit(false).is_ok()));
        clients.iter().for_each(Client::age);
        assert_eq!(clients[2].ticket.admit(false).unwrap_err().code, Code::Busy);
        assert!(!clients.iter().any(Client::is_gone));
    }
}
