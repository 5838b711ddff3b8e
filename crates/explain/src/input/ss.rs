//! Logs of `ss -tin`: what the kernel says about its own connections, as text.
//!
//! The kernel counts for how long a sender was busy, and for how much of that the receive window or the
//! send buffer held it back (`busy`, `rwnd_limited`, `sndbuf_limited`). The rest is the congestion window.

use super::Reading;
use crate::diagnosis::Diagnosis;
use farpace_units::Span;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Connections of a log that are kept.
pub const MAX_CONNECTIONS: usize = 100_000;

/// A connection of a log, by its newest entry.
#[derive(Clone, Debug)]
pub struct Logged {
    /// Its own address.
    pub local: SocketAddr,
    /// The peer's.
    pub peer: SocketAddr,
    /// What follows.
    pub diagnosis: Diagnosis,
    /// Entries of it.
    pub entries: u64,
}

/// The values of an entry, by name.
#[derive(Clone, Debug, Default)]
struct Values {
    words: BTreeMap<String, String>,
    control: Option<String>,
}

/// True if a text looks like such a log.
pub fn is_log(start: &str) -> bool {
    start.contains("cwnd:") && (start.contains("ESTAB") || start.contains("State") || start.contains("rtt:"))
}

/// Reads a log: blocks of two lines, any number of times. The newest entry of a connection holds.
pub fn read(text: &str) -> Vec<Logged> {
    let mut found: BTreeMap<(SocketAddr, SocketAddr), (Values, u64)> = BTreeMap::new();
    let mut ends: Option<(SocketAddr, SocketAddr)> = None;
    for line in text.lines() {
        if !line.starts_with([' ', '\t']) || ends.is_none() {
            ends = addresses(line).or(ends.filter(|_| line.starts_with([' ', '\t'])));
        }
        // `-O` puts both on one line.
        if let Some(key) = ends
            && line.contains("cwnd:")
            && (found.len() < MAX_CONNECTIONS || found.contains_key(&key))
        {
            let slot = found.entry(key).or_default();
            slot.0 = values(line);
            slot.1 += 1;
            ends = None;
        }
    }
    found
        .into_iter()
        .map(|((local, peer), (values, entries))| Logged {
            local,
            peer,
            diagnosis: values.reading().diagnosis(),
            entries,
        })
        .collect()
}

/// Local and peer address: the first two words of the line that are addresses with ports.
fn addresses(line: &str) -> Option<(SocketAddr, SocketAddr)> {
    let parse = |word: &str| {
        // `[::ffff:10.0.0.1]:80` and `10.0.0.1%eth0:80`.
        let word = match (word.find('%'), word.rfind(':')) {
            (Some(from), Some(to)) if from < to => format!("{}{}", &word[..from], &word[to..]),
            _ => word.to_owned(),
        };
        word.parse::<SocketAddr>().ok()
    };
    let mut found = line.split_whitespace().filter_map(parse);
    Some((found.next()?, found.next()?))
}

fn values(line: &str) -> Values {
    let mut values = Values::default();
    for word in line.split_whitespace() {
        match word.split_once(':') {
            Some((name, value)) if name.chars().all(|c| c.is_ascii_alphabetic() || c == '_') => {
                values.words.insert(name.to_owned(), value.to_owned());
            }
            None if ["cubic", "reno", "bbr", "bbr2", "bbr3", "dctcp", "vegas", "westwood", "htcp", "bic"]
                .contains(&word) =>
            {
                values.control = Some(word.to_owned());
            }
            _ => {}
        }
    }
    values
}

impl Values {
    /// A time like `1234ms` or `1234ms(12.3%)`.
    fn time(&self, name: &str) -> Span {
        let Some(text) = self.words.get(name) else { return Span::ZERO };
        let text = text.split('(').next().unwrap_or_default();
        let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let ms: f64 = number.parse().unwrap_or_default();
        let unit = match &text[number.len()..] {
            "us" => 1e-3,
            "s" => 1e3,
            _ => 1.0,
        };
        Span::from_nanos((ms * unit * 1e6).clamp(0.0, 1e18) as u64)
    }

    /// A whole number, or the first or second of two divided by a slash.
    fn number(&self, name: &str, second: bool) -> f64 {
        let Some(text) = self.words.get(name) else { return 0.0 };
        let mut parts = text.split(['/', ',']);
        let part = if second { parts.nth(1) } else { parts.next() };
        part.and_then(|p| p.parse().ok()).unwrap_or_default()
    }
}

impl Values {
    /// What the entry says, as numbers.
    fn reading(&self) -> Reading {
        Reading {
            busy: self.time("busy"),
            receive_window: self.time("rwnd_limited"),
            send_buffer: self.time("sndbuf_limited"),
            retransmitted: self.number("retrans", true),
            sent: self.number("segs_out", false).max(self.number("data_segs_out", false)),
            rtt_ms: self.number("rtt", false),
            min_rtt_ms: self.number("minrtt", false),
            reordered: self.number("reord_seen", false),
            cwnd: self.number("cwnd", false),
            reduced: self.words.contains_key("ssthresh"),
            acknowledged: self.number("bytes_acked", false),
            control: self.control.as_deref().map(leak),
            // ss counts no silence, and what a control of its own makes of losses is not known.
            ..Reading::default()
        }
    }
}

/// The names that ss can say, as constants.
fn leak(name: &str) -> &'static str {
    ["cubic", "reno", "bbr", "bbr2", "bbr3", "dctcp", "vegas", "westwood", "htcp", "bic"]
        .into_iter()
        .find(|known| *known == name)
        .unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::Cause;

    const LOG: &str = "\
State  Recv-Q Send-Q Local Address:Port  Peer Address:Port Process
ESTAB  0      262144 10.0.0.1:43210      10.0.0.2:5001
\t cubic wscale:7,7 rto:241 rtt:40.5/0.2 mss:1448 pmtu:1500 rcvmss:536 advmss:1448 cwnd:30 ssthresh:25 \
bytes_sent:4000000 \
bytes_acked:3900000 segs_out:2800 segs_in:1400 data_segs_out:2790 send 8.6Mbps lastsnd:4 lastrcv:9000 \
lastack:4 pacing_rate \
10Mbps delivery_rate 8Mbps delivered:2700 busy:9000ms rwnd_limited:7000ms(77.8%) \
sndbuf_limited:500ms(5.6%) retrans:0/3 \
rcv_space:14480 minrtt:40.1
";

    /// Breaks: logs of ss, which people have who cannot capture.
    #[test]
    fn the_times_that_the_kernel_counts_are_read() {
        assert!(is_log(LOG));
        let all = read(&LOG.repeat(2));
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].local.port(), all[0].peer.port(), all[0].entries), (43210, 5001, 2));
        let d = &all[0].diagnosis;
        assert_eq!(d.dominant, Cause::ReceiveWindow);
        assert_eq!(d.time_of(Cause::ReceiveWindow), Span::from_secs(7));
        assert_eq!(d.time_of(Cause::SendBuffer), Span::from_millis(500));
        assert_eq!(d.duration(), Span::from_secs(9));
        assert_eq!(d.control.name, "cubic");
        assert!(!d.healthy);
    }

    /// Breaks: any text crashes the program.
    #[test]
    fn other_text_is_no_log() {
        for text in [
            "",
            "ESTAB",
            "\t cwnd:x busy:ms rtt:/",
            "1.2.3.4:5 6.7.8.9:1 cwnd:1 busy:99999999999999s(",
            "::1%lo:4 a:b",
        ] {
            let _ = read(text);
        }
        assert!(!is_log("hello"));
    }
}
