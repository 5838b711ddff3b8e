//! The secret of a host, and the keyed hash that everything hard to guess is made with: initial sequence
//! numbers, ports, SYN cookies.

use farpace_units::RandomStream;
use siphasher::sip::SipHasher24;
use std::cmp::Ordering;
use std::fmt;
use std::net::IpAddr;

/// The key of a host's hash (SipHash-2-4 with 128 bits). Whoever runs the host makes it: the lab from the
/// seed, so that runs can be repeated; a host on a real network from the system's source of randomness, anew
/// at every start.
#[derive(Clone)]
pub struct Secret(SipHasher24);

impl Secret {
    /// The secret with this key.
    pub fn new(key: [u8; 16]) -> Self {
        Secret(SipHasher24::new_with_key(&key))
    }

    /// A secret whose key is drawn from `dice`.
    pub fn from_stream(rng: &mut RandomStream) -> Self {
        let mut key = [0; 16];
        rng.fill(&mut key);
        Secret::new(key)
    }

    /// 64 bits that nobody can tell without the key. Different purposes give unrelated values.
    pub(crate) fn hash(&self, purpose: Purpose, tuple: &Tuple, more: u64) -> u64 {
        let mut message = [0; 46];
        message[0] = purpose as u8;
        message[1] = u8::from(tuple.local.is_ipv6());
        message[2..18].copy_from_slice(&octets(tuple.local));
        message[18..34].copy_from_slice(&octets(tuple.remote));
        message[34..36].copy_from_slice(&tuple.local_port.to_be_bytes());
        message[36..38].copy_from_slice(&tuple.remote_port.to_be_bytes());
        message[38..46].copy_from_slice(&more.to_be_bytes());
        self.0.hash(&message)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// What a hash is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// Initial sequence numbers.
    Isn = 1,
    /// Where the sequence of ports to a destination begins.
    Port = 2,
    /// Where the sequences of all destinations begin.
    FirstPort = 3,
    /// Where a connection begins to number its IPv4 packets.
    Ident = 4,
    /// What hides a SYN cookie's fields.
    CookieMask = 5,
    /// What proves that a SYN cookie is ours.
    CookieProof = 6,
    /// Which of several listeners at one place gets a connection.
    Listener = 7,
    /// Where a connection in TIME-WAIT stands in its table.
    TimeWait = 8,
    /// Where the clock of timestamps begins that a peer sees.
    Timestamps = 9,
}

/// Both ends of a connection: what tells one from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tuple {
    /// Their address.
    pub remote: IpAddr,
    /// Their port.
    pub remote_port: u16,
    /// Our port.
    pub local_port: u16,
    /// Our address.
    pub local: IpAddr,
}

/// By remote address, remote port, local port and local address. Each segment that arrives is looked up by
/// it, and whole numbers compare faster than arrays of bytes.
impl Ord for Tuple {
    fn cmp(&self, other: &Tuple) -> Ordering {
        let ports = |t: &Tuple| u32::from(t.remote_port) << 16 | u32::from(t.local_port);
        address_order(&self.remote, &other.remote)
            .then_with(|| ports(self).cmp(&ports(other)))
            .then_with(|| address_order(&self.local, &other.local))
    }
}

impl PartialOrd for Tuple {
    fn partial_cmp(&self, other: &Tuple) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn address_order(a: &IpAddr, b: &IpAddr) -> Ordering {
    match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => a.to_bits().cmp(&b.to_bits()),
        (IpAddr::V6(a), IpAddr::V6(b)) => a.to_bits().cmp(&b.to_bits()),
        _ => a.is_ipv6().cmp(&b.is_ipv6()),
    }
}
