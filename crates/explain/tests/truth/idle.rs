//! When the sending program had nothing to send, by the lab's records of the sender.

use crate::generator::Program;
use crate::truth::Seen;
use farpace_events::{Record, RecordDirection};
use farpace_explain::cause::Cause;
use farpace_units::Span;

/// A delayed ACK comes so much later than one that is not.
const DELAYED: Span = Span::from_millis(20);

/// What each record of a sender says of its program: the cause if the sender waits for a program, and none if
/// there is more to send.
pub fn idle(seen: &Seen<'_>) -> Vec<Option<Cause>> {
    match &seen.case.program {
        Program::AtOnce => vec![None; seen.records.len()],
        Program::Writes { portion, every_ms } => {
            let left = |at: usize| left_of_writes(seen, &seen.records[at], *portion, *every_ms);
            let cause = |at: usize| match left(at)? {
                left if left > 0.0 && waits_for_delayed_ack(seen, at) => Some(Cause::DelayedAck),
                // A paced sender may have room in its window although the program has written more.
                left if left < f64::from(seen.mss) => Some(Cause::SenderApplication),
                _ => None,
            };
            (0..seen.records.len()).map(cause).collect()
        }
        Program::Exchanges(all) => exchanging(seen, all),
    }
}

fn is_data(row: &&Record) -> bool {
    row.direction == RecordDirection::Sent && row.len.get() > 0
}

/// The bytes that the program has written until then, and that have not been sent.
fn left_of_writes(seen: &Seen<'_>, row: &Record, portion: f64, every_ms: f64) -> Option<f64> {
    let first = seen.records.iter().find(is_data)?;
    if first.time > row.time {
        return None;
    }
    let writes = libm::floor(row.time.since(first.time).as_secs_f64() * 1e3 / every_ms) + 1.0;
    Some(writes * portion - f64::from(row.snd_nxt.bytes_since(first.seq)))
}

/// Nagle's algorithm keeps the end of what was written until all before it is acknowledged, and the receiver
/// delays the ACK of a segment that came alone.
fn waits_for_delayed_ack(seen: &Seen<'_>, at: usize) -> bool {
    let row = &seen.records[at];
    let next = seen.records.get(at + 1).map_or(row.time, |next| next.time);
    let outstanding = row.snd_nxt.bytes_since(row.snd_una);
    (1..=seen.mss).contains(&outstanding) && row.in_flight < row.cwnd && next.since(row.time) > DELAYED
}

/// The sender cannot have sent more than the requests whose turn has come. If it has sent the whole of the
/// newest, it waits for the answer, or thinks.
fn exchanging(seen: &Seen<'_>, all: &[(f64, f64)]) -> Vec<Option<Cause>> {
    let Some(first) = seen.records.iter().find(is_data) else { return vec![None; seen.records.len()] };
    let base = Span::from_nanos((seen.case.rtt_ms * 1e6) as u64);
    let answered = |r: &&Record| r.direction == RecordDirection::Received && r.len.get() > 0;
    let asked = seen.records.iter().find(answered).map(|r| r.seq);
    let (mut turn, mut requests, mut answers) = (0, all[0].0, all[0].1);
    let mut heard = 0.0f64;
    let mut idle = Vec::with_capacity(seen.records.len());
    for (at, row) in seen.records.iter().enumerate() {
        if answered(&row)
            && let Some(asked) = asked
        {
            heard = heard.max(f64::from(row.seq.bytes_since(asked)) + row.len.get() as f64);
        }
        if row.time < first.time {
            idle.push(None);
            continue;
        }
        let sent = f64::from(row.snd_nxt.bytes_since(first.seq));
        while sent > requests {
            turn += 1;
            let (request, answer) = all[turn % all.len()];
            requests += request;
            answers += answer;
        }
        let left = requests - sent;
        let next = seen.records.get(at + 1).map_or(row.time, |next| next.time);
        // Nagle's algorithm keeps the end of a request until all before it is acknowledged.
        let kept = left < f64::from(seen.mss) && row.snd_una != row.snd_nxt && row.in_flight < row.cwnd;
        idle.push(match () {
            () if left <= 0.0 && heard >= answers => Some(Cause::SenderApplication),
            () if left <= 0.0 => Some(Cause::PeerApplication),
            () if kept && next.since(row.time) > base + DELAYED => Some(Cause::DelayedAck),
            () if kept && waits_for_delayed_ack(seen, at) => Some(Cause::DelayedAck),
            () => None,
        });
    }
    idle
}
