//! Which port an outgoing connection takes (RFC 6056 §3.3.3, algorithm 3).

use crate::secret::{Purpose, Secret, Tuple};
use std::net::IpAddr;

/// First of the ports that outgoing connections take; the last is 65,535 (RFC 6056 §3.2: as many as
/// possible).
pub const FIRST_EPHEMERAL: u16 = 1024;
const COUNT: u32 = u16::MAX as u32 - FIRST_EPHEMERAL as u32 + 1;

/// The allocator of a host. For each destination the ports are a sequence of their own, whose beginning only
/// the secret tells; within it a port comes again as late as possible.
#[derive(Debug, Default)]
pub(crate) struct EphemeralPorts {
    /// One for all destinations, so that no table is needed. It tells a peer how many connections lie between
    /// two of its own, and nothing else.
    next: u32,
}

impl EphemeralPorts {
    /// An allocator that begins where the secret says.
    pub fn new(secret: &Secret) -> Self {
        let nobody = IpAddr::from([0, 0, 0, 0]);
        let tuple = Tuple { local: nobody, remote: nobody, local_port: 0, remote_port: 0 };
        EphemeralPorts { next: secret.hash(Purpose::FirstPort, &tuple, 0) as u32 }
    }

    /// The two ends of a new connection to `remote`, with a local port for which `in_use` is false. None:
    /// there is no such port.
    pub fn choose(
        &mut self,
        secret: &Secret,
        local: IpAddr,
        remote: IpAddr,
        remote_port: u16,
        mut in_use: impl FnMut(&Tuple) -> bool,
    ) -> Option<Tuple> {
        let mut tuple = Tuple { local, remote, local_port: 0, remote_port };
        let offset = secret.hash(Purpose::Port, &tuple, 0) as u32;
        for _ in 0..COUNT {
            let place = self.next.wrapping_add(offset) % COUNT;
            self.next = self.next.wrapping_add(1);
            tuple.local_port = FIRST_EPHEMERAL.saturating_add(place as u16);
            if !in_use(&tuple) {
                return Some(tuple);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{COUNT, EphemeralPorts, FIRST_EPHEMERAL};
    use crate::secret::{Secret, Tuple};
    use std::collections::BTreeSet;
    use std::net::IpAddr;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    fn there(n: u8) -> IpAddr {
        IpAddr::from([10, 0, 1, n])
    }

    fn choose(ports: &mut EphemeralPorts, secret: &Secret, n: u8, used: &BTreeSet<Tuple>) -> Option<Tuple> {
        ports.choose(secret, HERE, there(n), 80, |t| used.contains(t))
    }

    /// Breaks: two connections with the same ends, or an endless search when all ports are taken.
    #[test]
    fn every_port_is_given_once_and_then_none() {
        let secret = Secret::new([1; 16]);
        let mut ports = EphemeralPorts::new(&secret);
        let mut used = BTreeSet::new();
        while let Some(tuple) = choose(&mut ports, &secret, 1, &used) {
            assert!(tuple.local_port >= FIRST_EPHEMERAL);
            assert!(used.insert(tuple), "{tuple:?} twice");
        }
        assert_eq!(used.len(), COUNT as usize);
        assert!(choose(&mut ports, &secret, 2, &used).is_some(), "another destination has its own ports");
        let one = *used.iter().nth(777).unwrap();
        used.remove(&one);
        assert_eq!(choose(&mut ports, &secret, 1, &used), Some(one), "the only free one is found");
    }

    /// Breaks: RFC 6056's aim: whoever sees the ports of connections to himself knows those to others. Over
    /// 256 destinations the next port differs from "the last one and one" nearly always, and lies all over
    /// the range.
    #[test]
    fn the_port_to_one_destination_does_not_tell_the_next_one() {
        let secret = Secret::new([2; 16]);
        let mut ports = EphemeralPorts::new(&secret);
        let none = BTreeSet::new();
        let mut predictable = 0;
        let mut quarters = [0; 4];
        let mut last = 0u16;
        for n in 0..=255 {
            let port = choose(&mut ports, &secret, n, &none).unwrap().local_port;
            predictable += u32::from(port.abs_diff(last) < 64);
            quarters[usize::from(port >> 14)] += 1;
            last = port;
        }
        assert!(predictable < 8, "{predictable} of 256 near the one before");
        assert!(quarters.iter().all(|q| (35..100).contains(q)), "{quarters:?}");
    }

    /// Breaks: RFC 6056's other aim: a port to the same destination comes again as late as possible.
    #[test]
    fn the_same_destination_gets_ports_in_turn() {
        let secret = Secret::new([3; 16]);
        let mut ports = EphemeralPorts::new(&secret);
        let none = BTreeSet::new();
        let seen: BTreeSet<_> =
            (0..COUNT).map(|_| choose(&mut ports, &secret, 9, &none).unwrap().local_port).collect();
        assert_eq!(seen.len(), COUNT as usize);
    }

    /// Breaks: repeatable runs of the lab, or hosts that all choose alike.
    #[test]
    fn the_secret_decides() {
        let sequence = |key| {
            let secret = Secret::new([key; 16]);
            let mut ports = EphemeralPorts::new(&secret);
            (0..9).map(|n| choose(&mut ports, &secret, n, &BTreeSet::new()).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(sequence(4), sequence(4));
        assert_ne!(sequence(4), sequence(5));
    }
}
