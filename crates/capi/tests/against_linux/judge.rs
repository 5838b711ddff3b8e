//! Whether two records are of stacks that agree.

use super::info::{self, Compare};
use super::kernel::Record;
use super::peer::Sent;
use super::program::{Action, Op, Program};
use super::text::letters;
use super::wire::TcpOption;
use std::fmt::Write;

const MS: i64 = 1_000_000;
/// What is sent at once may be so late.
const LATE: i64 = 3 * MS;

/// No program lasts so long (ms).
const UPTIME: i64 = 100_000;

/// Clocks for timestamps go with the time, but for so many ticks.
const CLOCK: u32 = 4;

/// Largest receive buffer of the namespace (`tcp_rmem`).
const MAX_RECEIVE: i64 = 6_291_456;

/// Where they differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What differs, without numbers: the same in a repetition.
    pub kind: String,
    /// In full.
    pub text: String,
    /// When it shows.
    pub at: i64,
}

fn differs(kind: impl Into<String>, text: impl Into<String>) -> Option<Difference> {
    Some(Difference { kind: kind.into(), text: text.into(), at: 0 })
}

/// The kernel sends challenge ACKs of a connection at least so far apart (`tcp_invalid_ratelimit`, RFC 5961
/// section 7).
const CHALLENGE_INTERVAL: i64 = 500 * MS;

/// Whether `difference` says nothing because the kernel measures the time between two challenge ACKs in its
/// ticks: an ACK is missing, extra, or at another time, and a tick decides whether the kernel may send it.
pub fn is_within_a_tick(difference: &Difference, kernel: &Record, ours: &Record) -> bool {
    if !["missing .", "extra .", "time of ."].contains(&difference.kind.as_str()) {
        return false;
    }
    let mut acks = kernel.sent.iter().chain(&ours.sent).filter(|s| shape(s) == ".");
    acks.any(|s| (difference.at - s.at - CHALLENGE_INTERVAL).abs() <= super::ours::TICK)
}

/// The first difference.
pub fn compare(program: &Program, kernel: &Record, ours: &Record) -> Option<Difference> {
    let calls = compare_calls(program, kernel, ours);
    let segments = compare_segments(kernel, ours);
    // What came first is the cause of the other.
    let (at, difference) = match (segments, calls) {
        (Some((a, segment)), Some((b, call))) => Some(if b < a { (b, call) } else { (a, segment) }),
        (segment, call) => segment.or(call),
    }?;
    Some(Difference { at, ..difference })
}

fn compare_segments(kernel: &Record, ours: &Record) -> Option<(i64, Difference)> {
    let mut base: [Option<(u32, u32)>; 256] = [None; 256];
    for n in 0.. {
        let (k, o) = match (kernel.sent.get(n), ours.sent.get(n)) {
            (None, None) => return None,
            (Some(k), None) => {
                return differs(
                    format!("missing {}", shape(k)),
                    format!("segment {n}: the kernel sends {}", line(k)),
                )
                .map(|d| (k.at, d));
            }
            (None, Some(o)) => {
                // It may have been about to send it.
                if kernel.end - o.at < super::ours::grain(o.at) + LATE {
                    return None;
                }
                return differs(
                    format!("extra {}", shape(o)),
                    format!("segment {n}: the kernel does not send {}", line(o)),
                )
                .map(|d| (o.at, d));
            }
            (Some(k), Some(o)) => (k, o),
        };
        if let Some(d) = compare_pair(n, k, o, &mut base[usize::from(k.conn)]) {
            return Some((k.at.min(o.at), d));
        }
    }
    None
}

fn compare_pair(n: usize, k: &Sent, o: &Sent, base: &mut Option<(u32, u32)>) -> Option<Difference> {
    let of = |what: &str| {
        differs(
            format!("{what} of {}", shape(k)),
            format!("segment {n}, {what}:\n  kernel {}\n  ours   {}", line(k), line(o)),
        )
    };
    if (k.conn, k.flags) != (o.conn, o.flags) {
        return of("flags");
    }
    if (k.seq, k.len) != (o.seq, o.len) {
        return of("bytes");
    }
    if k.ack != o.ack {
        return of("ack");
    }
    if k.sack != o.sack {
        return of("sack");
    }
    if k.options != o.options {
        return of("options");
    }
    if k.urgent != o.urgent {
        return of("urgent pointer");
    }
    if (k.tos, k.ttl) != (o.tos, o.ttl) {
        return of("IP header");
    }
    let both_zero = (k.flags | o.flags) & super::program::RST != 0;
    if !both_zero && k.window != o.window {
        return of("window");
    }
    if k.intact != o.intact {
        return of("payload");
    }
    if (k.at - o.at).abs() > LATE {
        return of("time");
    }
    if let (Some(kt), Some(ot)) = (k.times, o.times) {
        let clock = |s: &Sent, value: u32| value.wrapping_sub((s.left / MS) as u32);
        let (k, o) = (clock(k, kt.0), clock(o, ot.0));
        let (k0, o0) = *base.get_or_insert((k, o));
        // Both may stand still: what a report of the network makes the kernel send has an older time.
        let gone = k.wrapping_sub(k0).wrapping_sub(o.wrapping_sub(o0));
        if gone.wrapping_add(CLOCK) > 2 * CLOCK {
            return of("TSval");
        }
        if kt.1 != ot.1 {
            return of("TSecr");
        }
    }
    None
}

fn shape(s: &Sent) -> String {
    format!("{}{}", letters(s.flags), if s.len > 0 { " with data" } else { "" })
}

fn compare_calls(program: &Program, kernel: &Record, ours: &Record) -> Option<(i64, Difference)> {
    for (n, step) in program.steps.iter().enumerate() {
        let Action::Call(c) = &step.what else { continue };
        let name = || format!("{c}").split_once(' ').map_or_else(String::new, |(_, call)| call.to_owned());
        match (kernel.results.get(&n), ours.results.get(&n)) {
            (None, None) => {}
            (Some((k, at)), Some((o, ours_at))) => {
                if (k.ret, k.errno) != (o.ret, o.errno) {
                    let d = differs(format!("result of {}", name()), format!("{c}: kernel {k}, ours {o}"));
                    return d.map(|d| (*at, d));
                }
                if c.op == Op::Info {
                    if let Some((field, k, o)) =
                        compare_info(&k.values, &o.values, ours.behind.get(&n).copied().unwrap_or(0))
                    {
                        let d = differs(
                            format!("tcpi_{field}"),
                            format!("{c}: tcpi_{field}: kernel {k}, ours {o}"),
                        );
                        return d.map(|d| (*at, d));
                    }
                } else if k.values != o.values && !is_bound_by_memory(&c.op, &k.values) {
                    let d = differs(format!("values of {}", name()), format!("{c}: kernel {k}, ours {o}"));
                    return d.map(|d| (*at, d));
                }
                if (at - ours_at).abs() > LATE * 3 {
                    let text = format!("{c}: kernel at {} ms, ours at {} ms", at / MS, ours_at / MS);
                    return differs(format!("time of {}", name()), text).map(|d| (*at, d));
                }
            }
            (Some((k, at)), None) => {
                let d = differs(
                    format!("{} waits", name()),
                    format!("{c}: kernel {k} at {} ms, ours waits", at / MS),
                );
                return d.map(|d| (*at, d));
            }
            (None, Some((o, at))) => {
                let d =
                    differs(format!("{} does not wait", name()), format!("{c}: the kernel waits, ours {o}"));
                return d.map(|d| (*at, d));
            }
        }
    }
    None
}

/// The most that SO_RCVLOWAT takes is half of the largest receive buffer, which the namespace sets for its
/// own sake.
fn is_bound_by_memory(op: &Op, values: &[(String, i64)]) -> bool {
    matches!(op, Op::Get(o) if o.name == "SO_RCVLOWAT") && values.iter().any(|(_, v)| *v == MAX_RECEIVE / 2)
}

/// `behind`: ours was told of the call so many nanoseconds before it was made.
fn compare_info(k: &[(String, i64)], o: &[(String, i64)], behind: i64) -> Option<(String, i64, i64)> {
    // Before there is a connection and after it the kernel shows what is left of others.
    let state_is_closed = k.first().is_some_and(|(_, state)| [2, 3, 7, 10].contains(state));
    let unknown = k.iter().any(|(name, v)| name == "rtt" && *v == 0);
    for (name, k) in k {
        let o = o.iter().find(|(n, _)| n == name).map_or(0, |(_, v)| *v);
        let near = |slack: i64| (k - o).abs() <= slack;
        let equal = match info::compare(name) {
            Compare::Exact => *k == o,
            Compare::Time => near(6_000 + k / 8 + behind / 1000),
            Compare::Millis => near(12 + behind / MS),
            Compare::Rate => near(k / 5),
            Compare::Not => true,
        };
        // Where two SYNs crossed the kernel's time of the last data is that of its own start.
        let never = name == "last_data_recv" && *k > UPTIME;
        let meaningless = (state_is_closed && name != "state") || (unknown && name == "rttvar") || never;
        if !equal && !meaningless {
            return Some((name.clone(), *k, o));
        }
    }
    None
}

/// A segment as a line.
pub fn line(s: &Sent) -> String {
    let mut text = format!("{:.1} c{} {} seq {}", s.at as f64 / 1e6, s.conn, letters(s.flags), s.seq);
    if s.len > 0 {
        _ = write!(text, " len {}", s.len);
    }
    if s.flags & super::program::ACK != 0 || s.ack != 0 {
        _ = write!(text, " ack {}", s.ack);
    }
    _ = write!(text, " win {}", s.window);
    if s.urgent != 0 {
        _ = write!(text, " urg {}", s.urgent);
    }
    for option in &s.options {
        match option {
            TcpOption::Nop => text.push_str(" nop"),
            TcpOption::End => text.push_str(" eol"),
            TcpOption::Mss(n) => _ = write!(text, " mss {n}"),
            TcpOption::Scale(n) => _ = write!(text, " wscale {n}"),
            TcpOption::SackOk => text.push_str(" sackok"),
            TcpOption::Sack(_) => s.sack.iter().for_each(|(a, b)| _ = write!(text, " sack {a} {b}")),
            TcpOption::Times(..) => {
                let (value, echo) = s.times.unwrap_or_default();
                _ = write!(text, " ts {value} {echo}");
            }
            TcpOption::Other(kind, data) => _ = write!(text, " option {kind} {data:?}"),
        }
    }
    if s.tos != 0 {
        _ = write!(text, " tos {}", s.tos);
    }
    text
}

/// What happened, as a time line of each side.
pub fn columns(program: &Program, kernel: &Record, ours: &Record) -> String {
    let side = |record: &Record| {
        let mut lines: Vec<(i64, usize, String)> = Vec::new();
        for (n, step) in program.steps.iter().enumerate() {
            let at = record.times.get(n).copied().unwrap_or(0);
            let text = format!("{step}");
            let (_, what) = text.split_once(' ').unwrap_or_default();
            let result = match (&step.what, record.results.get(&n)) {
                (Action::Call(c), Some((outcome, _))) if c.op == Op::Info => {
                    format!(" {}", info_line(&outcome.values))
                }
                (Action::Call(c), Some((outcome, done))) if c.blocking => {
                    format!(" {outcome} at {:.1}", *done as f64 / 1e6)
                }
                (Action::Call(_), Some((outcome, _))) => format!(" {outcome}"),
                (Action::Call(_), None) => " waits".to_owned(),
                _ => String::new(),
            };
            lines.push((at, n, format!("{:>9.1} < {what}{result}", at as f64 / 1e6)));
        }
        for s in &record.sent {
            lines.push((s.at, usize::MAX, format!("          > {}", line(s))));
        }
        lines.sort_by_key(|l| (l.0, l.1));
        lines.into_iter().map(|l| l.2).collect::<Vec<_>>().join("\n")
    };
    format!("--- kernel\n{}\n--- ours\n{}\n", side(kernel), side(ours))
}

fn info_line(values: &[(String, i64)]) -> String {
    let shown = values.iter().filter(|(_, v)| *v != 0);
    shown.map(|(name, v)| format!("{name}={v}")).collect::<Vec<_>>().join(" ")
}
