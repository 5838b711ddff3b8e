//! Captures, byte by byte.

/// A transfer without impairments: in each round trip of 20 ms a flight goes out, and every second segment is
/// acknowledged.
#[derive(Clone, Copy)]
pub struct Transfer {
    pub rounds: u32,
    /// Segments in a flight.
    pub flight: u32,
    /// Segments in a super-segment.
    pub segments_each: u32,
}

impl Default for Transfer {
    fn default() -> Self {
        Transfer { rounds: 40, flight: 20, segments_each: 1 }
    }
}

const MSS: u32 = 1_448;
const ROUND: u64 = 20_000_000;
const WIRE: u64 = 120_000;

impl Transfer {
    pub fn bytes(&self) -> u64 {
        u64::from(self.rounds * self.flight * MSS)
    }

    /// IP packets with their times, as a capture at the sender has them.
    pub fn packets(&self) -> Vec<(u64, Vec<u8>)> {
        let mut packets = Vec::new();
        let start = 1_000_000_000u64;
        let (iss, irs) = (1_000u32, 9_000u32);
        packets.push((start, segment(false, iss, 0, 2, 0, 0, 0, 1)));
        packets.push((start + ROUND, segment(true, irs, iss + 1, 18, 0, 0, 0, 1)));
        packets.push((start + ROUND + 10_000, segment(false, iss + 1, irs + 1, 16, 0, 20, 20, 2)));
        let (mut id, mut back_id) = (3u16, 2u16);
        let mut seq = iss + 1;
        for round in 0..u64::from(self.rounds) {
            let begin = start + ROUND + 100_000 + round * (ROUND + 3_000_000);
            let mut n = 0;
            while n < self.flight {
                let many = self.segments_each.min(self.flight - n);
                let time = begin + u64::from(n) * WIRE / 4;
                let ts = (time / 1_000_000) as u32;
                packets
                    .push((time, segment(false, seq, irs + 1, 16, many * MSS, ts, ts.wrapping_sub(20), id)));
                id = id.wrapping_add(1);
                seq = seq.wrapping_add(many * MSS);
                n += many;
            }
            let first = seq.wrapping_sub(self.flight * MSS);
            for n in (1..self.flight).step_by(2) {
                let time = begin + ROUND + u64::from(n) * WIRE;
                let ts = (time / 1_000_000) as u32;
                let ack = first.wrapping_add((n + 1) * MSS);
                packets.push((time, segment(true, irs + 1, ack, 16, 0, ts, ts.wrapping_sub(20), back_id)));
                back_id = back_id.wrapping_add(1);
            }
        }
        packets.sort_by_key(|(time, _)| *time);
        packets
    }
}

/// An IPv4 packet with a TCP segment between 10.0.0.1:40000 and 10.0.0.2:80.
#[allow(clippy::too_many_arguments, reason = "the fields of a header")]
pub fn segment(
    back: bool,
    seq: u32,
    ack: u32,
    flags: u8,
    len: u32,
    tsval: u32,
    tsecr: u32,
    id: u16,
) -> Vec<u8> {
    let (a, b) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    let (src, dst) = if back { (b, a) } else { (a, b) };
    let (from, to) = if back { (80u16, 40_000u16) } else { (40_000, 80) };
    let syn = flags & 2 != 0;
    let options: Vec<u8> = if syn {
        [&[2, 4, 5, 180, 1, 3, 3, 7, 4, 2, 8, 10][..], &tsval.to_be_bytes(), &tsecr.to_be_bytes()].concat()
    } else {
        [&[1, 1, 8, 10][..], &tsval.to_be_bytes(), &tsecr.to_be_bytes()].concat()
    };
    let total = 40 + options.len() + len as usize;
    let mut p = vec![0x45, 0];
    p.extend((total as u16).to_be_bytes());
    p.extend(id.to_be_bytes());
    p.extend([0x40, 0, 64, 6, 0, 0]);
    p.extend(src);
    p.extend(dst);
    p.extend(from.to_be_bytes());
    p.extend(to.to_be_bytes());
    p.extend(seq.to_be_bytes());
    p.extend(ack.to_be_bytes());
    p.extend([(((20 + options.len()) / 4) << 4) as u8, flags]);
    p.extend(60_000u16.to_be_bytes());
    p.extend([0; 4]);
    p.extend(options);
    p.resize(total, 0x2a);
    p
}

/// A classic pcap file with nanoseconds.
pub fn pcap(link_type: u32, packets: &[(u64, Vec<u8>)], snaplen: usize) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 262_144, link_type] {
        file.extend(word.to_le_bytes());
    }
    for (nanos, packet) in packets {
        let kept = packet.len().min(snaplen);
        let head = [
            (nanos / 1_000_000_000) as u32,
            (nanos % 1_000_000_000) as u32,
            kept as u32,
            packet.len() as u32,
        ];
        head.iter().for_each(|word| file.extend(word.to_le_bytes()));
        file.extend(&packet[..kept]);
    }
    file
}

type Wrap = fn(&[u8]) -> Vec<u8>;

/// What carries IP packets: name, link type, and how.
pub const CARRIERS: &[(&str, u32, Wrap)] = &[
    ("Ethernet", 1, ethernet),
    ("VLAN", 1, |p| [&MACS[..], &[0x81, 0, 0, 5, 8, 0], p].concat()),
    ("QinQ", 1, |p| [&MACS[..], &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 5, 8, 0], p].concat()),
    ("MPLS", 1, |p| [&MACS[..], &[0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64], p].concat()),
    ("PPPoE", 1, |p| [&MACS[..], &[0x88, 0x64, 0x11, 0, 0, 1, 0, 0, 0, 0x21], p].concat()),
    ("LLC and SNAP", 1, |p| [&MACS[..], &[0, 200, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0], p].concat()),
    ("cooked", 113, |p| [&[0, 4, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 8, 0][..], p].concat()),
    ("cooked, version 2", 276, |p| {
        [&[8, 0, 0, 0, 0, 0, 0, 2, 0, 1, 4, 6, 1, 2, 3, 4, 5, 6, 0, 0][..], p].concat()
    }),
    ("loopback of BSD", 0, |p| [&[2, 0, 0, 0][..], p].concat()),
    ("IP in IP", 101, |p| outer(4, p)),
    ("GRE", 101, |p| outer(47, &[&[0, 0, 8, 0][..], p].concat())),
    ("GRE with a key and a number", 101, |p| {
        outer(47, &[&[0x30, 0, 8, 0, 0, 0, 0, 9, 0, 0, 0, 1][..], p].concat())
    }),
    ("GRE with Ethernet", 101, |p| outer(47, &[&[0, 0, 0x65, 0x58][..], &ethernet(p)].concat())),
    ("VXLAN", 1, |p| {
        let udp = [&[0xc0, 1, 0x12, 0xb5, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 42, 0][..], &ethernet(p)].concat();
        ethernet(&outer(17, &udp))
    }),
    ("Geneve", 1, |p| {
        let udp =
            [&[0xc0, 1, 0x17, 0xc1, 0, 0, 0, 0, 1, 0, 0x65, 0x58, 0, 0, 42, 0, 1, 2, 3, 4][..], &ethernet(p)]
                .concat();
        ethernet(&outer(17, &udp))
    }),
    ("IPv4 in IPv6 behind options", 101, |p| {
        let mut v6 = vec![0x60, 0, 0, 0];
        v6.extend((p.len() as u16 + 8).to_be_bytes());
        v6.extend([0, 64]);
        v6.extend([0x20; 32]);
        v6.extend([4, 0, 1, 4, 0, 0, 0, 0]);
        [v6.as_slice(), p].concat()
    }),
];

const MACS: [u8; 12] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];

pub fn ethernet(packet: &[u8]) -> Vec<u8> {
    [&MACS[..], &[8, 0], packet].concat()
}

/// An IPv4 header around a payload.
pub fn outer(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let total = 20 + payload.len() as u16;
    let header = [
        0x45,
        0,
        (total >> 8) as u8,
        total as u8,
        0,
        1,
        0,
        0,
        64,
        protocol,
        0,
        0,
        192,
        0,
        2,
        1,
        192,
        0,
        2,
        2,
    ];
    [&header[..], payload].concat()
}

/// Flights as a sender with a congestion window has them, a round trip each, as a capture at the sender has
/// them. Before a smaller flight the first segment of a flight is lost: duplicate ACKs come, and it is sent
/// again.
pub fn flights(flights: &[u32]) -> Vec<(u64, Vec<u8>)> {
    let (iss, irs, start) = (1_000u32, 9_000u32, 1_000_000_000u64);
    let mut packets = vec![
        (start, segment(false, iss, 0, 2, 0, 0, 0, 1)),
        (start + ROUND, segment(true, irs, iss + 1, 18, 0, 0, 0, 1)),
        (start + ROUND + 10_000, segment(false, iss + 1, irs + 1, 16, 0, 20, 20, 2)),
    ];
    let (mut seq, mut id, mut begin) = (iss + 1, 3u16, start + ROUND + 100_000);
    let mut send = |time: u64, seq: u32, packets: &mut Vec<(u64, Vec<u8>)>| {
        let ts = (time / 1_000_000) as u32;
        packets.push((time, segment(false, seq, irs + 1, 16, MSS, ts, ts, id)));
        id = id.wrapping_add(1);
    };
    let answer = |time: u64, ack: u32, packets: &mut Vec<(u64, Vec<u8>)>| {
        let ts = (time / 1_000_000) as u32;
        packets.push((time, segment(true, irs + 1, ack, 16, 0, ts, ts.wrapping_sub(20), 0)));
    };
    for (at, flight) in flights.iter().enumerate() {
        let lost = flights.get(at + 1).is_some_and(|next| next < flight);
        for n in 0..*flight {
            let time = begin + u64::from(n) * WIRE;
            send(time, seq + n * MSS, &mut packets);
            let acked = if lost { seq } else { seq + (n + 1) * MSS };
            if !(lost && n == 0) {
                answer(time + ROUND, acked, &mut packets);
            }
        }
        if lost {
            begin += ROUND + u64::from(*flight) * WIRE;
            send(begin, seq, &mut packets);
            answer(begin + ROUND, seq + flight * MSS, &mut packets);
        }
        seq += flight * MSS;
        begin += ROUND + 10_000;
    }
    packets.sort_by_key(|(time, _)| *time);
    packets
}
