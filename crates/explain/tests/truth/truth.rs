//! What the lab itself knows: where the time of a transfer went.

use crate::generator::Case;
use crate::idle::idle;
use farpace_events::{Cause as Why, Record, RecordDirection};
use farpace_explain::cause::Cause;
use farpace_explain::frame::{self, Found};
use farpace_trace::CaptureReader;
use farpace_units::{Instant, Packets, Seq, Span};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// A packet that the lab dropped.
#[derive(Clone, Debug)]
pub struct Drop {
    pub time: Instant,
    pub seq: u32,
    pub len: u32,
    pub reason: String,
    /// It was going to the receiver.
    pub data: bool,
}

/// Timeouts for the same segment while nothing arrives, which make an outage of a burst of losses.
const MIN_OUTAGE: usize = 3;
/// The share of the line's payload rate that is all of it.
const ALL_OF_THE_LINE: f64 = 0.95;

/// The port of the first flow's receiver.
pub const PORT: u16 = 5001;

/// Reads the first flow's packets from the lab's file of drops.
pub fn drops(path: &Path) -> Vec<Drop> {
    let mut reader = CaptureReader::new(BufReader::new(File::open(path).unwrap())).unwrap();
    let mut all = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        let reason = packet.comment.as_deref().and_then(|c| c.rsplit(": ").next()).unwrap_or("").to_owned();
        if let Found::Tcp(s) = frame::read(1, packet.data, packet.original_len.get())
            && [s.src_port, s.dst_port].contains(&PORT)
        {
            all.push(Drop { time: packet.time, seq: s.seq, len: s.len, reason, data: s.dst_port == PORT });
        }
    }
    all
}

/// Time by cause, as the sender's own variables and the lab's drops have it.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    pub times: BTreeMap<Cause, Span>,
    pub total: Span,
}

impl Truth {
    fn add(&mut self, cause: Cause, span: Span) {
        *self.times.entry(cause).or_default() += span;
        self.total += span;
    }

    pub fn remove(&mut self, cause: Cause) {
        if let Some(span) = self.times.remove(&cause) {
            self.total -= span;
        }
    }

    pub fn of(&self, cause: Cause) -> Span {
        self.times.get(&cause).copied().unwrap_or_default()
    }

    /// The cause with most time, and its share.
    pub fn dominant(&self) -> (Cause, f64) {
        let most = self
            .times
            .iter()
            .max_by_key(|(_, t)| **t)
            .map_or((Cause::Unknown, Span::ZERO), |(c, t)| (*c, *t));
        (most.0, most.1.as_secs_f64() / self.total.as_secs_f64().max(1e-9))
    }
}

/// What the lab saw.
pub struct Seen<'a> {
    pub case: &'a Case,
    pub records: &'a [Record],
    pub drops: &'a [Drop],
    /// Delay in the queue of the path, by time.
    pub queue: &'a [(Instant, Span)],
    pub mss: u32,
    /// The largest window that the receiver offered.
    pub window: u64,
}

impl Seen<'_> {
    /// What the line leaves for the payload of this flow, in bytes per second.
    fn line(&self, at: Instant) -> f64 {
        let steps = &self.case.line;
        let step = steps.partition_point(|(from, _)| *from <= at.as_secs_f64());
        steps[step.saturating_sub(1)].1
    }
}

/// Sums up.
pub fn truth(seen: &Seen<'_>) -> Truth {
    let has = |c: Cause| seen.case.causes.contains(&c);
    let mut truth = Truth::default();
    let rows = seen.records;
    let base = Span::from_nanos((seen.case.rtt_ms * 1e6) as u64);
    let first_policed = seen
        .drops
        .iter()
        .filter(|d| d.reason == "policed")
        .map(|d| d.time)
        .min()
        .unwrap_or(Instant::FAR_FUTURE);
    let mut cut: Option<Cause> = None;
    let mut last_cut = Instant::ZERO;
    // What the last cut took the place of, and when the receive window was full.
    let mut before_cut: Option<Cause> = None;
    let mut window: Option<(Instant, Cause)> = None;
    let mut connected = false;
    let idle = idle(seen);
    // How long the path has been full.
    let mut full = Span::ZERO;
    // How long the programs have paused.
    let mut pause = Span::ZERO;
    let last_data =
        rows.iter().rposition(|r| r.direction == RecordDirection::Sent && r.len.get() > 0).unwrap_or(0);
    let done = rows[last_data].seq + u32::try_from(rows[last_data].len.get()).unwrap();
    let end = rows
        .iter()
        .position(|r| {
            r.direction == RecordDirection::Received
                && r.snd_una.after_eq(done)
                && r.time >= rows[last_data].time
        })
        // A transfer that was given up ends with its last record.
        .unwrap_or(rows.len() - 1);
    for at in 0..end {
        let (row, next) = (&rows[at], &rows[at + 1]);
        if matches!(
            row.cause,
            Some(Why::CutFastRetransmit | Why::CutTimeout | Why::CutEcn | Why::CutTailLoss)
        ) {
            let timer = if row.cause == Some(Why::CutTimeout) { row.rto } else { Span::ZERO };
            let class = class_of(seen, last_cut, row.time, cut, base, timer);
            before_cut = cut;
            cut = Some(class);
            last_cut = row.time;
        }
        if matches!(row.cause, Some(Why::Undo | Why::UndoTimestamp | Why::UndoDsack | Why::UndoFRto))
            && has(Cause::SpuriousTimeout)
        {
            // The window is again as it was.
            cut = before_cut;
        }
        let span = next.time.since(row.time);
        if span.is_zero() {
            continue;
        }
        if !connected {
            connected = row.direction == RecordDirection::Sent && row.len.get() > 0;
        }
        if !connected {
            let again = next.cause == Some(Why::SynRetransmit) || next.cause == Some(Why::TimerRto);
            truth.add(if again && has(Cause::SynLoss) { Cause::SynLoss } else { Cause::Connect }, span);
            continue;
        }
        let limit = limit(seen, rows, at, cut, first_policed, base, idle[at]);
        full += if limit == Cause::Congestion { span } else { Span::ZERO };
        let cause = match (limit, window) {
            // A window that follows the path's rate grows again when that rises.
            (Cause::SlowStart, None) if full >= base * 4 && seen.case.line.len() > 1 => Cause::Congestion,
            (cause @ (Cause::ReceiverApplication | Cause::ReceiveWindow | Cause::WindowScale), _) => {
                window = Some((next.time, cause));
                cause
            }
            // A paced sender leaves a part of the window open for a moment.
            (Cause::SlowStart, Some((at, by))) if has_room(row) && row.time.since(at) < base => by,
            (cause, _) => cause,
        };
        pause = if idle[at].is_some() { pause + span } else { Span::ZERO };
        if pause > row.rto {
            // The sender begins anew (RFC 9293 and 5681, section 4.1).
            cut = None;
            full = Span::ZERO;
        }
        if cause == Cause::TailLoss {
            // Its repair takes a round trip more.
            cut = Some(cause);
        }
        truth.add(cause, span);
    }
    truth
}

/// The congestion window is not what holds the sender back.
fn has_room(row: &Record) -> bool {
    row.cwnd.get() > row.in_flight.get() + row.in_flight.get() / 3 + 2
}

/// Why the window was cut at `now`: by what was dropped since the last cut. What a timer repairs was dropped
/// before it was set, and the least timer is far longer than some round trips.
fn class_of(
    seen: &Seen<'_>,
    since: Instant,
    now: Instant,
    cut: Option<Cause>,
    base: Span,
    timer: Span,
) -> Cause {
    let longest = (base * 6).max(timer + base);
    let from = if now.since(since) > longest {
        Instant::from_nanos(now.as_nanos().saturating_sub(longest.as_nanos()))
    } else {
        since
    };
    let mut counts: BTreeMap<Cause, u32> = BTreeMap::new();
    let long_ago = Instant::from_nanos(from.as_nanos().saturating_sub(base.as_nanos()));
    for drop in seen.drops.iter().filter(|d| d.data && d.time >= long_ago && d.time <= now) {
        *counts.entry(reason(seen, drop)).or_default() += 1;
    }
    if let Some((cause, _)) = counts.into_iter().max_by_key(|(_, n)| *n) {
        return cause;
    }
    // Only ACKs were lost.
    if let Some(drop) = seen.drops.iter().rev().find(|d| !d.data && d.time >= long_ago && d.time <= now) {
        return reason(seen, drop);
    }
    match cut {
        _ if seen.case.causes.contains(&Cause::Reordering) => Cause::Reordering,
        // Timeouts that follow each other still repair what was lost before the first of them.
        Some(cause) if !seen.case.causes.contains(&Cause::SpuriousTimeout) => cause,
        _ => Cause::SpuriousTimeout,
    }
}

/// What all flows send together leaves the path idle for less than a fifth of the second before and after.
fn is_kept_busy(seen: &Seen<'_>, at: Instant) -> bool {
    let second = Span::from_secs(1);
    let from = seen.queue.partition_point(|(t, _)| *t + second < at);
    let to = seen.queue.partition_point(|(t, _)| *t <= at + second);
    let about = &seen.queue[from..to];
    about.iter().filter(|(_, queued)| !queued.is_zero()).count() * 5 >= about.len() * 4
}

fn reason(seen: &Seen<'_>, drop: &Drop) -> Cause {
    let has = |c: Cause| seen.case.causes.contains(&c);
    match drop.reason.as_str() {
        "policed" if has(Cause::Linux2617) => Cause::Linux2617,
        "policed" => Cause::Policer,
        "loss" => Cause::RandomLoss,
        "bit_errors" => Cause::BitErrors,
        "burst_loss" => Cause::BurstLoss,
        "outage" if has(Cause::TailLoss) && !has(Cause::Outage) => Cause::TailLoss,
        "outage" => Cause::Outage,
        "queue_full" if seen.case.shared && is_kept_busy(seen, drop.time) => Cause::Congestion,
        "queue_full" if has(Cause::SmallQueue) => Cause::SmallQueue,
        "queue_full" if has(Cause::SenderProcessor) => Cause::SenderProcessor,
        "queue_full" => Cause::Congestion,
        "too_big" => Cause::MtuBlackHole,
        _ => Cause::Unknown,
    }
}

/// When the segment that begins with `head` was last sent.
fn last_sent(rows: &[Record], head: Seq) -> Instant {
    let has = |r: &&Record| {
        let end = r.seq + u32::try_from(r.len.get()).unwrap();
        r.direction == RecordDirection::Sent && !r.len.is_zero() && r.seq.before_eq(head) && end.after(head)
    };
    rows.iter().rev().find(has).map_or(Instant::ZERO, |r| r.time)
}

/// How often the timer fired for the same segment.
fn timers_in_vain(rows: &[Record], head: Seq) -> usize {
    rows.iter().filter(|r| r.cause == Some(Why::TimerRto) && r.snd_una == head).count()
}

/// What bounds the sender from one row to the next.
fn limit(
    seen: &Seen<'_>,
    rows: &[Record],
    at: usize,
    cut: Option<Cause>,
    first_policed: Instant,
    base: Span,
    idle: Option<Cause>,
) -> Cause {
    let has = |c: Cause| seen.case.causes.contains(&c);
    let (row, next) = (&rows[at], &rows[at + 1]);
    let span = next.time.since(row.time);
    // A pause that a timer ends.
    let timer = matches!(next.cause, Some(Why::TimerRto | Why::TimerTailLossProbe | Why::TailLossProbe))
        || matches!(next.cause, Some(Why::TimeoutRetransmit | Why::AenProbe));
    // What a timer repairs does not wait for an ACK that the receiver delays.
    let dropped_in = |d: &Drop| d.time + base >= row.time && d.time <= next.time;
    if has(Cause::DelayedAck) && !(timer && seen.drops.iter().any(dropped_in)) {
        return if span > base + Span::from_millis(20) {
            Cause::DelayedAck
        } else {
            cut.unwrap_or(Cause::SendBuffer)
        };
    }
    if timer && span > base / 2 && row.snd_una != row.snd_nxt {
        let head = row.snd_una;
        // A drop before that was repaired by a copy.
        let newest = last_sent(&rows[..=at], head);
        let dropped = seen.drops.iter().rev().find(|d| {
            d.data
                && d.time <= row.time + base
                && d.time >= newest
                && Seq::new(d.seq).before_eq(head)
                && Seq::new(d.seq.wrapping_add(d.len)).after(head)
        });
        // A tail: the last segment, not the head.
        let any = seen
            .drops
            .iter()
            .rev()
            .find(|d| d.data && d.time <= row.time + base && Seq::new(d.seq).after_eq(head));
        // Its retransmission was lost as well.
        let again =
            dropped.is_some_and(|d| seen.drops.iter().filter(|o| o.data && o.seq == d.seq).count() > 1);
        return match dropped.or(any).map(|d| reason(seen, d)) {
            Some(Cause::TailLoss) if again => Cause::LostRetransmission,
            // A burst that outlasts several timers is an outage to everybody.
            Some(Cause::BurstLoss) if timers_in_vain(rows, head) >= MIN_OUTAGE => Cause::Outage,
            Some(cause) => cause,
            None => {
                let acks = |d: &&Drop| !d.data && d.time <= next.time && d.time + span + base >= row.time;
                seen.drops.iter().rev().find(acks).map_or(Cause::SpuriousTimeout, |d| reason(seen, d))
            }
        };
    }
    // A pause without a timer, longer than queues explain.
    let queue = seen.queue.partition_point(|(t, _)| *t < row.time);
    let queued = seen.queue.get(queue).map_or(Span::ZERO, |(_, q)| *q);
    if span > base + base / 2 + queued + Span::from_millis(10)
        && has(Cause::SpuriousTimeout)
        && row.snd_una != row.snd_nxt
    {
        return Cause::SpuriousTimeout;
    }
    let outstanding = row.snd_nxt.bytes_since(row.snd_una);
    let window = row.rwnd.get();
    // Some senders do not fill the last part of it with less than a burst.
    let close = u64::from(outstanding) + window / 8 > window && has_room(row);
    let full = u64::from(outstanding) + u64::from(seen.mss) > window || close;
    let first = rows[..=at].partition_point(|r| r.time + base < row.time);
    let delivered_in = |time: Span| {
        let first = rows[..=at].partition_point(|r| r.time + time < row.time);
        f64::from(row.snd_una.bytes_since(rows[first].snd_una)) / time.as_secs_f64().max(1e-6)
    };
    // A buffer that holds as much as the path does, or more, bounds nothing.
    let fills = || delivered_in(base * 8) >= ALL_OF_THE_LINE * seen.line(row.time);
    let buffered = has(Cause::SendBuffer) && !fills();
    if buffered && seen.case.send_buffer.is_some_and(|buffer| outstanding + seen.mss >= buffer) {
        return Cause::SendBuffer;
    }
    if full && (has(Cause::ReceiverApplication) || has(Cause::ReceiveWindow) || has(Cause::WindowScale)) {
        // A program that reads slowly lets the window shrink.
        let shrunk = window * 10 < seen.window * 9;
        return if has(Cause::ReceiverApplication) && shrunk {
            Cause::ReceiverApplication
        } else if has(Cause::WindowScale) {
            Cause::WindowScale
        } else {
            Cause::ReceiveWindow
        };
    }
    if let Some(program) = idle {
        return program;
    }
    if buffered && (row.in_flight < row.cwnd || row.snd_una == row.snd_nxt) {
        // Not bound by the window.
        return Cause::SendBuffer;
    }
    // Unless the window was cut last for something else.
    let other = matches!(cut, Some(Cause::RandomLoss | Cause::BurstLoss | Cause::Outage));
    if row.time >= first_policed && has(Cause::Policer) && !other {
        return Cause::Policer;
    }
    if has(Cause::Linux2617) && row.time >= first_policed {
        return if cut == Some(Cause::Linux2617) && row.cwnd.get() <= 3 {
            Cause::Linux2617
        } else {
            Cause::Policer
        };
    }
    // The sender's own queue has stood for a round trip.
    let own = |r: &Record| r.srtt > base + base / 8 + Span::from_millis(1);
    if has(Cause::SenderProcessor) && own(row) && own(&rows[first]) {
        return Cause::SenderProcessor;
    }
    // The line is busy, if only with a short queue.
    let busy = delivered_in(base) >= 0.9 * seen.line(row.time);
    if busy && !(has(Cause::SmallQueue) && cut.is_some()) && cut != Some(Cause::Policer) {
        return Cause::Congestion;
    }
    // It has stood for a round trip: a burst that the line takes a moment for is no full path.
    let round = seen.queue.partition_point(|(t, _)| *t + base < row.time);
    let stood = seen.queue.get(round..queue).and_then(|q| q.iter().map(|(_, q)| *q).min()).unwrap_or(queued);
    if stood.min(queued) > Span::from_micros(300) + base / 20 && !(has(Cause::SmallQueue) && cut.is_some()) {
        return Cause::Congestion;
    }
    match cut {
        Some(cause) => cause,
        None if row.ssthresh == Packets::MAX => Cause::SlowStart,
        None => Cause::SlowStart,
    }
}
