//! The ledger of a gateway, in memory that the watchdog has as well: what is left when the gateway has died.
//!
//! An entry has eight words: ports with a mark that it is one; the addresses of both hosts, two words each;
//! and three with the numbers of both legs. The mark is written last, and removed first.

use farpace_gateway::{FlowLedger, LedgerEntry, LegNumbers};
use farpace_live::SharedWords;
use farpace_units::Seq;
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::FileExt;

/// Words and bytes of an entry.
const WORDS: usize = 8;
const ENTRY: usize = WORDS * 8;
/// Entries that are read at once.
const BATCH: usize = 1_024;
/// Marks: it is an entry; of IPv6; the host on the WAN side can be reached from here.
const VALID: u64 = 1 << 63;
const IPV6: u64 = 1 << 62;
const BOTH: u64 = 1 << 61;

/// A part of the ledger, for one thread.
pub struct SharedLedger {
    words: SharedWords,
    /// Its first slot, and the one behind its last.
    first: usize,
    end: usize,
    marks: u64,
}

/// What was left of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftFlow {
    pub entry: LedgerEntry,
    /// Both hosts can be reached from here, and not only that of the LAN.
    pub both: bool,
}

impl SharedLedger {
    /// The parts of so many threads, with so many slots each; `both`: both hosts of a connection are reached
    /// from here, as without a peer.
    ///
    /// # Errors
    /// The system refuses.
    pub fn parts(threads: usize, slots: usize, both: bool) -> io::Result<(SharedWords, Vec<SharedLedger>)> {
        let words = SharedWords::new(threads * slots * WORDS)?;
        let part = |thread: usize| SharedLedger {
            words: words.clone(),
            first: thread * slots,
            end: (thread + 1) * slots,
            marks: VALID | if both { BOTH } else { 0 },
        };
        let parts = (0..threads).map(part).collect();
        Ok((words, parts))
    }
}

impl FlowLedger for SharedLedger {
    fn set(&mut self, slot: usize, entry: Option<LedgerEntry>) {
        let at = self.first + slot;
        if at >= self.end {
            return; // there are no more connections than slots
        }
        let at = at * WORDS;
        let Some(LedgerEntry { hosts, legs }) = entry else { return self.words.store(at, 0) };
        let bits = |host: SocketAddr| match host.ip() {
            IpAddr::V4(v4) => u128::from(v4.to_bits()),
            IpAddr::V6(v6) => v6.to_bits(),
        };
        for (at, host) in [at + 1, at + 3].into_iter().zip(hosts) {
            self.words.store(at, (bits(host) >> 64) as u64);
            self.words.store(at + 1, bits(host) as u64);
        }
        let pair = |a: Seq, b: Seq| u64::from(a.get()) << 32 | u64::from(b.get());
        let [lan, wan] = legs;
        self.words.store(at + 5, pair(lan.unacknowledged, lan.next));
        self.words.store(at + 6, pair(wan.unacknowledged, wan.next));
        self.words.store(at + 7, pair(lan.expected, wan.expected));
        let [lan, wan] = hosts;
        let family = if lan.is_ipv6() { IPV6 } else { 0 };
        let ports = u64::from(lan.port()) << 16 | u64::from(wan.port());
        self.words.store(at, self.marks | family | ports);
    }
}

/// The connections that were left in the ledger of a gateway that has died.
///
/// # Errors
/// It cannot be read.
pub fn left_flows(file: &File, mut each: impl FnMut(LeftFlow)) -> io::Result<()> {
    let mut buffer = vec![0; BATCH * ENTRY];
    let mut at = 0;
    loop {
        let read = file.read_at(&mut buffer, at)?;
        let (entries, _) = buffer[..read].as_chunks::<ENTRY>();
        if entries.is_empty() {
            return Ok(());
        }
        entries.iter().filter_map(left_flow).for_each(&mut each);
        at += (entries.len() * ENTRY) as u64;
    }
}

fn left_flow(bytes: &[u8; ENTRY]) -> Option<LeftFlow> {
    let mut words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word));
    let mut word = || words.next();
    let head = word()?;
    if head & VALID == 0 {
        return None;
    }
    let mut address = || -> Option<IpAddr> {
        let bits = u128::from(word()?) << 64 | u128::from(word()?);
        Some(match head & IPV6 == 0 {
            true => Ipv4Addr::from_bits(bits as u32).into(),
            false => Ipv6Addr::from_bits(bits).into(),
        })
    };
    let hosts = [address()?, address()?];
    let mut pair = || word().map(|word| [Seq::new((word >> 32) as u32), Seq::new(word as u32)]);
    let ([lan_una, lan_next], [wan_una, wan_next], [lan, wan]) = (pair()?, pair()?, pair()?);
    let ports = [(head >> 16) as u16, head as u16];
    Some(LeftFlow {
        entry: LedgerEntry {
            hosts: [SocketAddr::new(hosts[0], ports[0]), SocketAddr::new(hosts[1], ports[1])],
            legs: [
                LegNumbers { unacknowledged: lan_una, next: lan_next, expected: lan },
                LegNumbers { unacknowledged: wan_una, next: wan_next, expected: wan },
            ],
        },
        both: head & BOTH != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(lan: &str, wan: &str, from: u32) -> LedgerEntry {
        let leg = |from: u32| LegNumbers {
            unacknowledged: Seq::new(from),
            next: Seq::new(from.wrapping_add(1)),
            expected: Seq::new(from.wrapping_add(2)),
        };
        LedgerEntry { hosts: [lan.parse().unwrap(), wan.parse().unwrap()], legs: [leg(from), leg(!from)] }
    }

    /// Breaks: the watchdog resets other connections than those that were left, or with other numbers.
    #[test]
    fn what_was_written_is_left() {
        let (words, mut parts) = SharedLedger::parts(2, 3_000, true).unwrap();
        let file = words.file().unwrap();
        let v4 = entry("10.0.0.1:65535", "192.0.2.1:80", u32::MAX);
        let v6 = entry("[fd00::1]:1", "[2001:db8::ffff:1]:65535", 7);
        parts[0].set(2_999, Some(v4));
        parts[0].set(3_000, Some(v4)); // it has no such slot
        parts[1].set(0, Some(v4));
        parts[1].set(2_999, Some(v6));
        parts[1].set(0, None);
        parts[0].set(5, None);
        drop((words, parts));
        let mut left = Vec::new();
        left_flows(&file, |flow| left.push(flow)).unwrap();
        assert_eq!(left, [v4, v6].map(|entry| LeftFlow { entry, both: true }));
    }
}
