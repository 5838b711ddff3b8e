//! What must be remembered of connections to count their numbers from the start.

use farpace_units::Seq;
use farpace_wire::{TcpFlags, TcpHeader};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// Connections that are remembered; then the oldest is forgotten, and is a new one should it go on.
pub const MAX_CONNECTIONS: usize = 65_536;

type ShownEnds = [SocketAddr; 2];

/// The connections of a capture.
#[derive(Default)]
pub struct ShownConnections {
    by_ends: BTreeMap<ShownEnds, ShownConnection>,
    /// The same, in the order in which they were met.
    oldest_first: VecDeque<ShownEnds>,
    seen: u64,
}

#[derive(Clone, Copy)]
struct ShownConnection {
    number: u64,
    /// First number of each end, in the order of [`HostKind`].
    first: [Option<Seq>; 2],
    classic: bool,
}

/// What a segment's connection says about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbering {
    /// Connections are counted from 0.
    pub connection: u64,
    /// From where its sender's numbers count; none if only resets were seen of it.
    pub sender: Option<Seq>,
    /// The same for its receiver.
    pub receiver: Option<Seq>,
    /// Its SYN said that it uses CDL as the thesis has it.
    pub classic: bool,
}

impl ShownConnections {
    /// Takes in a segment. `acks`: its acknowledgment number counts.
    pub fn place(&mut self, from: SocketAddr, to: SocketAddr, header: &TcpHeader, acks: bool) -> Numbering {
        let (ends, me) = if from <= to { ([from, to], 0) } else { ([to, from], 1) };
        let syn = header.flags.contains(TcpFlags::SYN);
        let known = self.by_ends.get(&ends).copied();
        // A SYN with another number than before: the ports are used again.
        let again =
            |c: &ShownConnection| syn && !acks && c.first.get(me).is_some_and(|f| *f != Some(header.seq));
        let mut connection = match known.filter(|c| !again(c)) {
            Some(connection) => connection,
            None => {
                self.seen += 1;
                ShownConnection { number: self.seen - 1, first: [None; 2], classic: false }
            }
        };
        let ShownConnection { number, first: [a, b], classic } = &mut connection;
        let (mine, yours) = if me == 0 { (a, b) } else { (b, a) };
        if syn {
            *mine = Some(header.seq);
            *classic |= header.options.ack_control.cdl_allow;
        } else if !header.flags.contains(TcpFlags::RST) {
            *mine = mine.or(Some(header.seq - 1));
            *yours = yours.or(acks.then_some(header.ack - 1));
        }
        if syn && acks {
            *yours = yours.or(Some(header.ack - 1));
        }
        let place = Numbering { connection: *number, sender: *mine, receiver: *yours, classic: *classic };
        if known.is_none() {
            self.oldest_first.push_back(ends);
        }
        self.by_ends.insert(ends, connection);
        if self.oldest_first.len() > MAX_CONNECTIONS
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.by_ends.remove(&oldest);
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    /// Breaks: memory, by a capture with a connection per packet.
    #[test]
    fn the_oldest_is_forgotten() {
        let mut connections = ShownConnections::default();
        let header = TcpHeader { seq: Seq::new(5), flags: TcpFlags::ACK, ..TcpHeader::default() };
        let mut place = |n: u32, seq: u32| {
            let from = SocketAddr::from(([10, 0, (n >> 8) as u8, n as u8], 1 + (n >> 16) as u16));
            connections.place(from, end(9), &TcpHeader { seq: Seq::new(seq), ..header.clone() }, true)
        };
        for n in 0..=MAX_CONNECTIONS as u32 {
            assert_eq!(place(n, 5).connection, u64::from(n));
        }
        // The second is still known, the first is not: its numbers count from here.
        let second = place(1, 100);
        assert_eq!((second.connection, second.sender), (1, Some(Seq::new(4))));
        let first = place(0, 100);
        assert_eq!((first.connection, first.sender), (MAX_CONNECTIONS as u64 + 1, Some(Seq::new(99))));
        assert_eq!(connections.by_ends.len(), MAX_CONNECTIONS);
    }

    /// Breaks: numbers of a second connection between the same ports are counted from the first one's SYN, or
    /// a SYN that is sent again begins a connection.
    #[test]
    fn ports_are_used_again() {
        let mut connections = ShownConnections::default();
        let mut syn = |seq| {
            let header = TcpHeader { seq: Seq::new(seq), flags: TcpFlags::SYN, ..TcpHeader::default() };
            connections.place(end(1), end(2), &header, false).connection
        };
        assert_eq!([syn(7), syn(7), syn(8), syn(8)], [0, 0, 1, 1]);
    }
}
