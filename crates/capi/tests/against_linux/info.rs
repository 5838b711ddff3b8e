//! `struct tcp_info` (Linux 6.18), field by field, and how each is compared.

/// How a field is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// Equal.
    Exact,
    /// Microseconds: within 4 ms and an eighth. (`rto`, `ato` are told in ticks of 4 ms by the kernel.)
    Time,
    /// Milliseconds: within 8 ms.
    Millis,
    /// Bytes a second, which are of a measured round trip: within a fifth.
    Rate,
    /// Not compared, with the reason in docs/conformance.md.
    Not,
}

use Compare::{Exact, Millis, Not, Rate, Time};

/// Name, offset, size in bytes (0: a nibble).
pub const FIELDS: &[(&str, usize, usize, Compare)] = &[
    ("state", 0, 1, Exact),
    ("ca_state", 1, 1, Exact),
    ("retransmits", 2, 1, Exact),
    ("probes", 3, 1, Exact),
    ("backoff", 4, 1, Exact),
    ("options", 5, 1, Exact),
    ("wscales", 6, 1, Exact),
    ("rto", 8, 4, Time),
    ("ato", 12, 4, Time),
    ("snd_mss", 16, 4, Exact),
    ("rcv_mss", 20, 4, Exact),
    ("unacked", 24, 4, Exact),
    ("sacked", 28, 4, Exact),
    ("lost", 32, 4, Exact),
    ("retrans", 36, 4, Exact),
    ("last_data_sent", 44, 4, Millis),
    ("last_data_recv", 52, 4, Millis),
    ("last_ack_recv", 56, 4, Not),
    ("pmtu", 60, 4, Exact),
    ("rcv_ssthresh", 64, 4, Exact),
    ("rtt", 68, 4, Time),
    ("rttvar", 72, 4, Time),
    ("snd_ssthresh", 76, 4, Exact),
    ("snd_cwnd", 80, 4, Exact),
    ("advmss", 84, 4, Exact),
    ("reordering", 88, 4, Exact),
    ("rcv_rtt", 92, 4, Time),
    ("rcv_space", 96, 4, Exact),
    ("total_retrans", 100, 4, Exact),
    ("pacing_rate", 104, 8, Rate),
    ("max_pacing_rate", 112, 8, Exact),
    ("bytes_acked", 120, 8, Exact),
    ("bytes_received", 128, 8, Exact),
    ("segs_out", 136, 4, Exact),
    ("segs_in", 140, 4, Exact),
    ("notsent_bytes", 144, 4, Exact),
    ("min_rtt", 148, 4, Time),
    ("data_segs_in", 152, 4, Exact),
    ("data_segs_out", 156, 4, Exact),
    ("delivery_rate", 160, 8, Not),
    ("busy_time", 168, 8, Time),
    ("rwnd_limited", 176, 8, Time),
    ("sndbuf_limited", 184, 8, Time),
    ("delivered", 192, 4, Exact),
    ("delivered_ce", 196, 4, Exact),
    ("bytes_sent", 200, 8, Exact),
    ("bytes_retrans", 208, 8, Exact),
    ("dsack_dups", 216, 4, Exact),
    ("reord_seen", 220, 4, Exact),
    ("rcv_ooopack", 224, 4, Exact),
    ("snd_wnd", 228, 4, Exact),
    ("rcv_wnd", 232, 4, Exact),
    ("total_rto", 240, 2, Exact),
    ("total_rto_recoveries", 242, 2, Exact),
    ("total_rto_time", 244, 4, Millis),
];

pub fn decode(bytes: &[u8]) -> Vec<(String, i64)> {
    let field = |at: usize, size: usize| {
        let field = bytes.get(at..at + size)?;
        let mut whole = [0; 8];
        whole[..size].copy_from_slice(field);
        Some(u64::from_ne_bytes(whole) as i64)
    };
    FIELDS.iter().filter_map(|(name, at, size, _)| Some(((*name).to_owned(), field(*at, *size)?))).collect()
}

pub fn compare(name: &str) -> Compare {
    FIELDS.iter().find(|f| f.0 == name).map_or(Exact, |f| f.3)
}
