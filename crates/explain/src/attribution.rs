//! Where the time went: every stretch of a transfer gets one cause, so that the times add up.
//!
//! What the sender waited for is known gap by gap ([`Wait`]). Waits for ACKs, which are waits for the
//! congestion window, get their cause from what bounds that window: the path that is full, slow start, or
//! the last loss.

mod full_path;
mod stall_cause;

use crate::bucket::Policing;
use crate::cause::Cause;
use crate::flow::{Side, Slice, Wait};
use crate::losses::{self, Pattern};
use crate::policing::policing;
use crate::statistics::median;
use crate::view::{Stretch, Vantage, View};
use farpace_units::{Instant, Span};
use full_path::{FULL, MAX_BETWEEN, MIN_FILLED, NEARLY};
use full_path::{brief_queues, is_filled, keeps_full, leaves_path_idle, path_rate, undiminished};

/// Time by cause, and what it rests on.
#[derive(Clone, Debug, Default)]
pub struct Attribution {
    times: Vec<Span>,
    /// The cause that bounds the window, by stretch.
    pub labels: Vec<Cause>,
    /// The cause of each episode of losses.
    pub classes: Vec<Cause>,
    /// A policer, if the losses look like one.
    pub policing: Option<Policing>,
    /// How losses lie.
    pub pattern: Pattern,
    /// A buffer of the sender bounds the whole transfer.
    pub steady: bool,
    /// The cause of each stall that is kept.
    pub stalls: Vec<Cause>,
}

impl Attribution {
    /// Time of one cause.
    pub fn of(&self, cause: Cause) -> Span {
        self.times.get(cause as usize).copied().unwrap_or_default()
    }

    fn add(&mut self, cause: Cause, time: Span) {
        if let Some(slot) = self.times.get_mut(cause as usize) {
            *slot += time;
        }
    }

    fn whole(&self) -> Span {
        self.times.iter().fold(Span::ZERO, |sum, t| sum + *t)
    }
}

/// What losses look like that checksums explain.
const DAMAGED: [Cause; 3] = [Cause::RandomLoss, Cause::BurstLoss, Cause::SmallQueue];

/// Goes through a transfer.
pub(crate) fn attribute(view: &View<'_>) -> Attribution {
    if view.is_one_way() {
        return without_acks(view);
    }
    let mut time = Attribution {
        times: vec![Span::ZERO; Cause::COUNT],
        policing: policing(view),
        ..Attribution::default()
    };
    time.pattern = Pattern::of(view);
    // Segments that passed here with a wrong checksum were dropped for it, by no bucket and no queue.
    let damaged = view.half.counts.damaged * 2 > view.losses().count() as u64;
    // What a bucket drops comes at any delay. Once or twice it may be that of a start before it.
    let full_queue = time.pattern.full_queue && time.pattern.same_queue && time.pattern.pervasive;
    let others = damaged || full_queue && time.policing.as_ref().is_some_and(|all| all.connections == 1);
    time.policing = time.policing.filter(|_| !others);
    time.classes = losses::classify(view, time.policing.as_ref(), &time.pattern);
    if damaged {
        let bits = |class: &&mut Cause| DAMAGED.contains(class);
        time.classes.iter_mut().filter(bits).for_each(|class| *class = Cause::BitErrors);
    }
    if leaves_path_idle(view) {
        for class in time.classes.iter_mut().filter(|class| **class == Cause::Congestion) {
            *class = Cause::SmallQueue;
        }
    }
    time.pattern.main = main_class(view, &time.classes);
    stall_cause::spread_outages(view, &mut time);
    time.pattern.main = main_class(view, &time.classes);
    time.steady = is_steady(view);
    time.labels = labels(view, &time);
    connect(view, &mut time);
    stall_cause::stalls(view, &mut time);
    stall_cause::repairs(view, &mut time);
    waits(view, &mut time);
    rest(view, &mut time);
    time
}

/// Without ACKs nothing is known of what the sender waited for.
fn without_acks(view: &View<'_>) -> Attribution {
    let mut time = Attribution {
        times: vec![Span::ZERO; Cause::COUNT],
        labels: vec![Cause::Unknown; view.stretches.len()],
        classes: vec![Cause::Unknown; view.episodes.len()],
        stalls: vec![Cause::Unknown; view.half.stalls.kept().len()],
        ..Attribution::default()
    };
    time.add(Cause::Unknown, view.duration());
    time
}

/// The commonest cause of losses.
fn main_class(view: &View<'_>, classes: &[Cause]) -> Option<Cause> {
    let mut counts = [0u32; Cause::COUNT];
    for (e, class) in view.episodes.iter().zip(classes) {
        counts[*class as usize] += u32::from(!e.spurious);
    }
    let most = Cause::ALL.iter().max_by_key(|c| counts[**c as usize])?;
    (counts[*most as usize] > 0).then_some(*most)
}

/// From the first packet to the first data.
fn connect(view: &View<'_>, time: &mut Attribution) {
    let flow = view.flow;
    let first = view.half.first_data.map_or(view.end, |(at, _)| at);
    let mut until = first;
    if let Some((established, _)) = flow.established
        && flow.saw_syn()
        && established <= first
    {
        until = established;
        // The server's first data comes a part of a round trip after the client's ACK has passed.
        let round = view.base.min(first.since(established));
        time.add(Cause::Connect, round);
        let waited = first.since(established) - round;
        // A server has to be asked first.
        let asked = view.half.asked.map_or(Span::ZERO, |at| at.since(established)).min(waited);
        time.add(Cause::PeerApplication, asked);
        let hole = losses::is_black_hole(view);
        time.add(if hole { Cause::MtuBlackHole } else { Cause::SenderApplication }, waited - asked);
    }
    let whole = until.since(view.start);
    if flow.refusal().is_some() {
        time.add(Cause::Reset, whole);
        return;
    }
    let needless = syn_was_answered(view);
    let lost = flow
        .hello
        .iter()
        .filter(|_| !needless)
        .filter(|h| h.count > 1)
        .filter_map(|h| Some(h.last?.0.since(h.first?.0)))
        .max()
        .unwrap_or_default();
    let lost = lost.min(whole);
    // Only the answer was sent again: the client's ACK came with data, which the hole took.
    let is_answer = view.side == Side::Client && flow.hello[0].count == 1;
    let hole = is_answer && losses::is_black_hole(view);
    time.add(if hole { Cause::MtuBlackHole } else { Cause::SynLoss }, lost);
    time.add(Cause::Connect, whole - lost);
}

/// A SYN was sent again although the first one and its answer arrived: the initial timer of the sender is
/// shorter than the round trip. A handshake with a loss takes that timer longer.
pub(crate) fn syn_was_answered(view: &View<'_>) -> bool {
    let flow = view.flow;
    let [client, server] = &flow.hello;
    if client.count.max(server.count) < 2 || view.base.is_zero() {
        return false;
    }
    let took = client.first.zip(flow.established).map(|((asked, _), (done, _))| done.since(asked));
    took.is_some_and(|took| took < view.base * 5 / 4 + SYN_SLACK)
}

/// Queues before the first data, beyond the quarter of a round trip.
const SYN_SLACK: Span = Span::from_millis(100);

/// Controls that measure the path's rate probe for more once in so many round trips (BBR: in eight).
const ROUNDS_OF_PROBES: usize = 10;
/// The part of the largest window that is all of it.
const WHOLE_WINDOW: f64 = 0.9;
/// A program that reads at once leaves less than this share unread when it is acknowledged.
const MIN_UNREAD: f64 = 0.2;

/// What a full receive window means in a stretch.
fn window(view: &View<'_>, at: usize) -> Cause {
    match all_windows(view) {
        Cause::ReceiverApplication if is_read_at_once(view, at) => small_window(view),
        cause => cause,
    }
}

/// A program that stops again and again reads at once in between: the window is as large as ever then, and
/// each ACK moves its edge on.
fn is_read_at_once(view: &View<'_>, at: usize) -> bool {
    let most = |stretches: &[Stretch]| {
        stretches.iter().map(|s| s.slice.window).filter(|w| *w < u64::MAX).max().unwrap_or_default()
    };
    let Some((own, before)) = view.stretches.get(..=at).and_then(<[Stretch]>::split_last) else {
        return false;
    };
    let slice = &own.slice;
    slice.delivered > 0
        && slice.window < u64::MAX
        && slice.window as f64 >= WHOLE_WINDOW * most(before) as f64
        && slice.unread as f64 <= MIN_UNREAD * slice.delivered as f64
        && !(is_late(view, own) && is_acked_at_once(own))
}

/// What full receive windows mean in all.
fn all_windows(view: &View<'_>) -> Cause {
    let half = view.half;
    // A program that reads slowly lets the offered window shrink while data comes; a small one stays as it
    // is, and one that is autotuned grows.
    let mut largest = 0.0f64;
    let mut offered: Vec<f64> = view
        .stretches
        .iter()
        .filter(|s| s.slice.window < u64::MAX)
        .filter_map(|s| {
            largest = largest.max(s.slice.window as f64);
            let waited = s.slice.waited(Wait::Window) > Span::ZERO;
            waited.then_some(s.slice.window as f64 / largest.max(1.0))
        })
        .collect();
    offered.sort_by(f64::total_cmp);
    let low = offered.get(offered.len() / 10).copied().unwrap_or_default();
    let usual = median(offered);
    // What an ACK acknowledges and does not add to the window has not been read yet.
    let unread = half.counts.unread_bytes as f64 > MIN_UNREAD * half.acknowledged() as f64;
    let pressed = || view.stretches.iter().filter(|s| s.slice.waited(Wait::Window) > Span::ZERO);
    let held = pressed().filter(|s| is_late(view, s) && is_acked_at_once(s)).count();
    // A window that is as large as ever, to a segment, has room for all that was read: what an ACK leaves out
    // the next one adds.
    let whole = low >= WHOLE_WINDOW || (1.0 - low) * largest <= f64::from(view.mss);
    if unread && !whole
        || held * 2 > pressed().count()
        || low < 0.5 && usual < 0.7
        || half.counts.zero_windows > 2 && view.waited(Wait::ZeroWindow) * 4 > view.waited(Wait::Window)
    {
        return Cause::ReceiverApplication;
    }
    small_window(view)
}

/// What a window that is all that there is means.
fn small_window(view: &View<'_>) -> Cause {
    let scaled = view.flow.hello.iter().all(|h| h.scale.is_some());
    if view.flow.saw_syn() && !scaled && view.half.largest_window >= 32_768 {
        return Cause::WindowScale;
    }
    Cause::ReceiveWindow
}

/// What a closed window means: the program on the other side does not read. If it did so once or twice,
/// that is an event of its own; otherwise it reads slowly.
fn zero_window(view: &View<'_>) -> Cause {
    let closed = view.waited(Wait::ZeroWindow);
    let long = view.half.stalls.kept().iter().filter(|s| s.wait == Wait::ZeroWindow).count();
    let (few, alone) = (long <= 3, view.waited(Wait::Window) * 4 < closed);
    if few && alone && long > 0 { Cause::ZeroWindow } else { Cause::ReceiverApplication }
}

fn label_at(view: &View<'_>, time: &Attribution, at: Instant) -> Cause {
    let place = view.stretches.partition_point(|s| s.slice.end < at);
    time.labels.get(place).or(time.labels.last()).copied().unwrap_or(Cause::Unknown)
}

/// Sums the waits of all slices.
fn waits(view: &View<'_>, time: &mut Attribution) {
    // Timeouts by the stalls that are kept, the shares of which also hold for those that are not.
    let timed: Vec<(Cause, Span)> = view
        .half
        .stalls
        .kept()
        .iter()
        .zip(&time.stalls)
        .filter(|(s, _)| s.wait == Wait::Timer)
        .flat_map(|(s, cause)| {
            // Without its loss, the ACK of a tail would have come a round trip after it.
            let passed = *cause == Cause::TailLoss && s.unseen == 0 && !s.upstream;
            let usual = if passed { s.round.min(s.duration()) } else { Span::ZERO };
            [(*cause, s.duration() - usual), (label_at(view, time, s.start), usual)]
        })
        .collect();
    let known = timed.iter().fold(Span::ZERO, |sum, (_, t)| sum + *t);
    let timer = view.waited(Wait::Timer);
    if known.is_zero() {
        time.add(time.pattern.main.unwrap_or(Cause::TailLoss), timer);
    } else {
        let scale = timer.as_secs_f64() / known.as_secs_f64();
        for (cause, span) in timed {
            time.add(cause, Span::from_nanos((span.as_nanos() as f64 * scale) as u64));
        }
    }
    // Pauses of the path lie within waits for ACKs, and within what looks like waits for the program.
    let mut paused: Vec<(Instant, Span, Wait, Cause)> = Vec::new();
    for (stall, cause) in view.half.stalls.kept().iter().zip(time.stalls.clone()) {
        let idles = stall.wait == Wait::Program;
        let waits = idles || matches!(stall.wait, Wait::Ack | Wait::Sender | Wait::Window);
        if waits && cause == Cause::SpuriousTimeout || idles && cause == Cause::Outage {
            paused.push((stall.start, stall.duration(), stall.wait, cause));
        }
    }
    let mut next = 0;
    paused.sort_unstable();
    for (at, stretch) in view.stretches.iter().enumerate() {
        let slice = &stretch.slice;
        let label = time.labels.get(at).copied().unwrap_or(Cause::Unknown);
        let mut window_time = slice.waited(Wait::Ack) + slice.waited(Wait::Sender);
        let mut program_time = slice.waited(Wait::Program);
        // A window that holds back where the path is full anyway is not what limits.
        let mut pressed = slice.waited(Wait::Window);
        while let Some((start, span, wait, cause)) = paused.get(next).filter(|p| p.0 < slice.end) {
            if *start >= slice.start {
                let left = match wait {
                    Wait::Program => &mut program_time,
                    Wait::Window => &mut pressed,
                    _ => &mut window_time,
                };
                let pause = (*span).min(*left);
                *left -= pause;
                time.add(*cause, pause);
            }
            next += 1;
        }
        time.add(label, window_time);
        let buffered = time.steady && label == Cause::SendBuffer;
        let program = if buffered { Cause::SendBuffer } else { Cause::SenderApplication };
        time.add(program, program_time);
        time.add(Cause::PeerApplication, slice.waited(Wait::Peer));
        time.add(Cause::DelayedAck, slice.waited(Wait::DelayedAck));
        if !pressed.is_zero() {
            let full = label == Cause::Congestion && queue_is_ours(view, at);
            let pauses = slice.short > 0 && slice.waited(Wait::Program) * 2 > pressed;
            let limit = match () {
                () if full => Cause::Congestion,
                () if grows(view, at) => Cause::SlowStart,
                () => match window(view, at) {
                    // A window of unknown scale is at least what was sent. A program that pauses meanwhile
                    // does not fill one.
                    Cause::ReceiveWindow if !view.half.knows_windows() && pauses => label,
                    cause => cause,
                },
            };
            time.add(limit, pressed);
        }
        time.add(zero_window(view), slice.waited(Wait::ZeroWindow));
    }
}

/// An autotuned window (`tcp_moderate_rcvbuf`) grows as data comes: what it holds back is a part of the
/// start.
fn grows(view: &View<'_>, at: usize) -> bool {
    let most = |stretches: &[Stretch]| {
        stretches.iter().map(|s| s.slice.window).filter(|w| *w < u64::MAX).max().unwrap_or_default()
    };
    let (before, after) = view.stretches.split_at((at + 1).min(view.stretches.len()));
    let soon = match after.get(..GROWN_AFTER) {
        Some(soon) => most(soon),
        // ACKs of the last data tell of the window when no data is left to fill it.
        None => view.half.largest_window,
    };
    soon as f64 >= GROWTH * most(before) as f64
}

/// The path is full although the window holds the sender back: its window is larger than the path.
fn queue_is_ours(view: &View<'_>, at: usize) -> bool {
    view.stretches.get(at).is_some_and(|s| is_late(view, s) && !is_acked_at_once(s))
}

/// ACKs come later than those of the path alone, by a good part of the round trip.
fn is_late(view: &View<'_>, stretch: &Stretch) -> bool {
    stretch.queued.is_some_and(|q| q > view.base / 4 + view.threshold())
}

/// Each ACK stands for most of what is in flight. From a queue segments come one by one; a receiver that
/// has not read yet keeps its ACK, and with it the window (Linux: `tcp_cleanup_rbuf`).
fn is_acked_at_once(stretch: &Stretch) -> bool {
    let slice = &stretch.slice;
    slice.far.n > 0 && slice.delivered as f64 / f64::from(slice.far.n) >= AT_ONCE * slice.flight as f64
}

/// After the last segment, and what rounding has left.
fn rest(view: &View<'_>, time: &mut Attribution) {
    let whole = view.duration();
    let missing = whole - time.whole();
    // A pause of the path in which the timer fired goes on until the ACKs come.
    let paused = view.half.stalls.kept().iter().zip(&time.stalls).next_back();
    let paused = paused.is_some_and(|(stall, cause)| {
        *cause == Cause::SpuriousTimeout && view.half.last_data.is_some_and(|(at, _)| at == stall.end)
    });
    let last = time.labels.last().copied().unwrap_or(Cause::Connect);
    time.add(if paused { Cause::SpuriousTimeout } else { last }, missing);
    let over = time.whole() - whole;
    if !over.is_zero()
        && let Some(largest) = time.times.iter_mut().max()
    {
        *largest -= over;
    }
}

/// The share of what is in flight that one ACK stands for.
const AT_ONCE: f64 = 0.6;
/// A window that grows has so many times its size after so many slices.
const GROWTH: f64 = 1.1;
const GROWN_AFTER: usize = 4;
/// Full segments for each short one, from which on a buffer may have given them.
const MAX_FULL: u64 = 6;

/// The option of timestamps, in bytes.
const TIMESTAMPS: u32 = 12;
/// No processor takes longer for a segment; programs do.
const MAX_PER_SEGMENT: Span = Span::from_millis(2);

/// Within a host a round trip without queues takes less, also if its processor is slow.
const MAX_IN_HOST: Span = Span::from_millis(5);

/// A pause of the programs after which a sender begins anew: the least retransmission timeout of Linux, and a
/// little more.
const RESTART: Span = Span::from_millis(250);

/// What bounds the congestion window in each stretch.
fn labels(view: &View<'_>, time: &Attribution) -> Vec<Cause> {
    let threshold = view.threshold();
    let first_loss = view.episodes.iter().position(|e| !e.spurious);
    let mut episode = 0;
    // The newest loss, and whether the window was cut for it.
    let mut cut: Option<Cause> = None;
    let in_order = view.half.counts.reordered == 0;
    // Until when the losses seen so far are being repaired.
    let mut repaired: Option<Instant> = None;
    // How long the path has been full. A window that follows its rate falls and grows with it.
    let (mut filled, mut begun) = (Span::ZERO, view.start);
    let restart = RESTART.max(view.base * 4);
    // How long a send buffer bounded the flight before the first loss, and the largest flight in that time.
    let (mut buffered, mut held) = (Span::ZERO, 0);
    let mut labels: Vec<Cause> = Vec::with_capacity(view.stretches.len());
    let peaks = rising(view);
    let brief = brief_queues(view);
    let path = path_rate(view);
    let steady = time.steady;
    let kept_full = keeps_full(view);
    let (brief, path) = if steady { (false, None) } else { (brief, path) };
    // The queue stands between the sender's stack and a capture at the sender, not at a router near it.
    let at_host = view.vantage == Vantage::Sender && view.half.near().is_some_and(|near| near < MAX_IN_HOST);
    let instead = undiminished(view).unwrap_or(|class| class);
    // What passes behind a queue has the rate of the path, also while no ACKs come.
    let behind = view.vantage != Vantage::Sender && view.deep_near > threshold;
    let near_queue = at_host && view.deep_near > threshold && view.deep_near * 10 > view.deep * 6;
    for (at, stretch) in view.stretches.iter().enumerate() {
        let slice = &stretch.slice;
        // What was found lost at the end of a slice did not bound it.
        let middle = slice.start + slice.duration() / 2;
        while let Some(e) = view.episodes.get(episode).filter(|e| e.resent <= middle) {
            let class = time.classes.get(episode).copied().unwrap_or(Cause::Unknown);
            // Spurious retransmissions that modern senders undo bound nothing for long.
            // Neither do those that are sent while a loss is repaired, for which the window was cut.
            let within = e.spurious && in_order && repaired.is_some_and(|until| e.resent <= until);
            if !(within || e.spurious && class == Cause::SpuriousTimeout) {
                cut = Some(class);
            }
            if !e.spurious {
                repaired = repaired.max(Some(e.repaired + view.base * 2));
            }
            episode += 1;
        }
        // After a pause the window is what the sender makes of it then (RFC 9293 and 5681, section 4.1), and
        // a loss before it bounds no more.
        let paused = slice.waited(Wait::Program) + slice.waited(Wait::Peer);
        if paused > restart {
            cut = None;
            (filled, begun) = (Span::ZERO, slice.end);
        }
        let policed = time.policing.as_ref().filter(|p| slice.end >= p.since).is_some();
        let rate = if behind { stretch.rate.max(stretch.passed) } else { stretch.rate };
        let stands = is_filled(view, stretch)
            || stretch.queued.is_some_and(|q| q > threshold) && rate >= 0.5 * view.about(middle).0;
        let full = stands && !steady
            || brief
            || path.is_some_and(|path| rate >= FULL * path)
            || kept_full && rate >= FULL * view.about(middle).0;
        filled += if full { slice.duration() } else { Span::ZERO };
        let writes = app_paced(stretch);
        let label = match () {
            () if policed => Cause::Policer,
            () if writes && !steady => Cause::SenderApplication,
            () if full && near_queue => Cause::SenderProcessor,
            () if full => Cause::Congestion,
            () => match cut {
                Some(_) if buffered >= view.base * MIN_BUFFERED && is_as_large(view, slice, held) => {
                    Cause::SendBuffer
                }
                Some(cause) => instead(cause),
                None => {
                    let bound = uncut(view, at, &peaks, &labels, first_loss.is_some(), steady);
                    // A control that paces sends evenly, in full segments. So does a program on a path that
                    // it does not fill again and again.
                    let often = filled * MAX_BETWEEN >= slice.end.since(begun);
                    let own = match bound {
                        Cause::SlowStart => true,
                        Cause::SenderApplication | Cause::SenderProcessor => often,
                        _ => false,
                    };
                    let follows = own && slice.short == 0 && slice.waited(Wait::Program).is_zero();
                    if follows && filled >= view.base * MIN_FILLED { Cause::Congestion } else { bound }
                }
            },
        };
        if label == Cause::SendBuffer && cut.is_none() {
            buffered += slice.duration();
            held = held.max(slice.flight);
        }
        labels.push(label);
    }
    settle(view, &mut labels);
    crawl(view, &mut labels);
    labels
}

/// Round trips for which a buffer bounds the flight at least.
const MIN_BUFFERED: u64 = 4;

/// A send buffer that bounded the flight before a loss bounds it again once it is as large. A congestion
/// window that grows back does not stop at the same size.
fn is_as_large(view: &View<'_>, slice: &Slice, held: u64) -> bool {
    let segment = u64::from(view.mss);
    slice.flight + segment >= held && slice.flight <= held + segment
}

/// Round trips in a row in which a sender with SACK does no more than send a few segments again.
const MIN_CRAWL: u64 = 16;
/// Segments outstanding when it begins: with fewer there is nothing else to do.
const MIN_LEFT: u64 = 8;

/// Linux 2.6.15 to 2.6.17 lets its window sink to a segment or two while it recovers with SACK, and repairs
/// as many in a round trip, however much is outstanding.
fn crawl(view: &View<'_>, labels: &mut [Cause]) {
    if view.half.counts.sack_acks == 0 {
        return;
    }
    let crawls = |s: &Stretch, least: u64| {
        let slice = &s.slice;
        let rounds = (slice.duration().as_secs_f64() / view.base.as_secs_f64().max(1e-6)).max(1.0);
        let few = f64::from(slice.segments) <= 3.0 * rounds && slice.segments > 0;
        few && slice.resent >= slice.sent && slice.flight > least * u64::from(view.mss)
    };
    let mut from = 0;
    while from < labels.len() {
        let many = view.stretches.iter().skip(from).take_while(|s| crawls(s, MIN_LEFT)).count();
        let rest = view.stretches.iter().skip(from + many).take_while(|s| crawls(s, 1)).count();
        let to = (from + many + rest).min(labels.len());
        let lasts = view.stretches[from..to].iter().fold(Span::ZERO, |sum, s| sum + s.slice.duration());
        if many > 0 && lasts >= view.base * MIN_CRAWL {
            labels[from..to].fill(Cause::Linux2617);
        }
        from = to + 1;
    }
}

/// A window that fills the path at some time is not bounded by a buffer at others.
fn settle(view: &View<'_>, labels: &mut [Cause]) {
    let time_of = |wanted: Cause, labels: &[Cause]| {
        let of = view.stretches.iter().zip(labels).filter(|(_, l)| **l == wanted);
        of.fold(Span::ZERO, |sum, (s, _)| sum + s.slice.duration())
    };
    // A buffer bounds for many round trips, or it is none.
    let mut from = 0;
    while from < labels.len() {
        let label = labels[from];
        let run = labels[from..].iter().take_while(|l| **l == label).count();
        let to = from + run;
        let lasts = view.stretches[to - 1].slice.end.since(view.stretches[from].slice.start);
        let steady = matches!(label, Cause::SendBuffer | Cause::SenderProcessor);
        if steady
            && lasts < view.base * MIN_BUFFERED
            && let Some(before) = from.checked_sub(1).and_then(|at| labels.get(at)).copied()
        {
            labels[from..to].fill(before);
        }
        from = to;
    }
    let buffer = time_of(Cause::SendBuffer, labels);
    let full = time_of(Cause::Congestion, labels);
    if full * 4 > buffer {
        let mut next = Cause::Congestion;
        for label in labels.iter_mut().rev() {
            if *label == Cause::SendBuffer {
                *label = next;
            } else if matches!(*label, Cause::Congestion | Cause::SlowStart) {
                next = *label;
            }
        }
    }
}

/// The flight is the same all the time after it has grown, ACKs release what is sent, nothing is lost, and
/// in most round trips nothing queues: a buffer bounds it, whatever delays come and go on the path.
fn is_steady(view: &View<'_>) -> bool {
    if view.episodes.iter().any(|e| !e.spurious) || writes_messages(view) {
        return false;
    }
    let most = view.stretches.iter().map(|s| s.slice.flight).max().unwrap_or_default() as f64;
    let begun = view.stretches.iter().position(|s| s.slice.flight as f64 >= 0.9 * most);
    let rest = view.stretches.get(begun.unwrap_or_default()..).unwrap_or_default();
    if rest.len() < 10 || keeps_full(view) {
        return false;
    }
    let n = rest.len();
    let same = rest.iter().filter(|s| s.slice.flight as f64 >= 0.9 * most).count();
    let quiet = rest.iter().filter(|s| s.queued.is_some_and(|q| q <= view.threshold())).count();
    let wait = |wait| rest.iter().fold(Span::ZERO, |sum, s| sum + s.slice.waited(wait));
    let (acks, own, idle) = (wait(Wait::Ack), wait(Wait::Sender), wait(Wait::Program));
    // Who fills a buffer sends full segments, when ACKs make room for them.
    let sum = |what: fn(&Slice) -> u32| rest.iter().fold(0, |sum, s| sum + what(&s.slice));
    let (short, prompt, all) = (sum(|s| s.short), sum(|s| s.prompt), sum(|s| s.segments));
    same * 10 >= n * 8
        && short * 6 < all.max(1)
        && prompt * 2 >= all
        && quiet * 2 >= n
        && acks >= own
        // Who fills a buffer has always something to send.
        && idle * 12 <= acks + own + idle
}

/// The program writes less than the path takes: short segments, and times that no ACK explains.
fn app_paced(stretch: &Stretch) -> bool {
    let slice = &stretch.slice;
    let waited = slice.waited(Wait::Ack) + slice.waited(Wait::Sender);
    let own = slice.waited(Wait::Sender) + slice.waited(Wait::Program);
    slice.segments >= 2
        && slice.short * 24 >= slice.segments
        && own * 3 >= waited + slice.waited(Wait::Program)
}

/// Many segments end what the program has written at once. A buffer that is always full gives full segments,
/// and a short one where its size ends.
fn writes_messages(view: &View<'_>) -> bool {
    view.half.counts.short_segments * MAX_FULL > view.half.counts.data_segments
}

/// For each stretch, the largest flight from there to the next loss.
fn rising(view: &View<'_>) -> Vec<u64> {
    let mut losses = view.episodes.iter().filter(|e| !e.spurious).map(|e| e.resent).rev().peekable();
    let mut most = 0;
    let mut peaks: Vec<u64> = view
        .stretches
        .iter()
        .rev()
        .map(|s| {
            while losses.peek().is_some_and(|at| *at >= s.slice.start) {
                losses.next();
                most = 0;
            }
            most = most.max(s.slice.flight);
            most
        })
        .collect();
    peaks.reverse();
    peaks
}

/// Segments leave one by one, not in bursts, and all of them full.
fn even(view: &View<'_>) -> bool {
    let all: u64 = view.half.bursts.iter().sum();
    let alone = view.half.bursts.first().copied().unwrap_or_default();
    // Who writes the same again and again sends segments of the same length, and shorter than agreed.
    let full = view.half.mss == 0 || view.mss + TIMESTAMPS >= view.half.mss;
    full && alone * 10 >= all * 8 && view.half.counts.short_segments * 50 < view.half.counts.data_segments
}

/// Round trips before and behind one over which the flight is compared, how many there are at least, and by
/// how many segments, and by which part, it grows in them.
const ROUNDS_OF_CREEPING: usize = 6;
const MIN_CREEPING: usize = 5;
const MIN_CREPT: f64 = 3.0;
const CREPT_OF: f64 = 64.0;
/// Flights that differ by more are not compared: there was a pause, or a start.
const COMPARABLE: f64 = 0.25;
/// Of pairs of flights, so many have the larger one later where it grows.
const MIN_LATER: f64 = 0.8;

/// The flight grows all the time, by little: the congestion window does where it avoids congestion, or near
/// CUBIC's plateau. A buffer is as large as ever.
fn creeps(view: &View<'_>, at: usize) -> bool {
    let Some(own) = view.stretches.get(at).map(|s| s.slice.flight as f64) else { return false };
    let flight = |s: &Stretch| s.slice.flight as f64;
    let near = |flight: &f64| (flight - own).abs() <= COMPARABLE * own;
    let (before, behind) = view.stretches.split_at(at);
    let mut flights: Vec<f64> =
        before.iter().rev().take(ROUNDS_OF_CREEPING).map(flight).take_while(near).collect();
    flights.reverse();
    flights.extend(behind.iter().take(ROUNDS_OF_CREEPING + 1).map(flight).take_while(near));
    let n = flights.len();
    if n < MIN_CREEPING {
        return false;
    }
    let pairs = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
    let (later, all) = pairs.fold((0.0, 0.0), |(later, all), (i, j)| {
        let larger = f64::from(u8::from(flights[j] > flights[i]) + u8::from(flights[j] >= flights[i])) / 2.0;
        (later + larger, all + 1.0)
    });
    let grown = median(flights[n - n / 3..].to_vec()) - median(flights[..n / 3].to_vec());
    // The flight is known to a few segments.
    later >= MIN_LATER * all && grown >= (MIN_CREPT * f64::from(view.mss)).max(own / CREPT_OF)
}

/// What bounds the window before anything was lost.
fn uncut(
    view: &View<'_>,
    at: usize,
    peaks: &[u64],
    labels: &[Cause],
    lost_later: bool,
    steady: bool,
) -> Cause {
    let Some(stretch) = view.stretches.get(at) else { return Cause::Unknown };
    let slice = &stretch.slice;
    let peak = peaks.get(at).copied().unwrap_or_default();
    let flight = |n: usize| view.stretches.get(at + n).map(|s| s.slice.flight as f64);
    let own = slice.flight as f64;
    let mss = f64::from(view.mss);
    // A higher flight than ever before, by much; or soon; or one that stays higher.
    let record = view.stretches.iter().take(at).map(|s| s.slice.flight).max().unwrap_or_default() as f64;
    let grown = record > 0.0 && own >= record * 1.3 + mss;
    let soon = (1..=3).filter_map(flight).any(|f| f >= own * 1.4 + mss);
    let later = median((4..=8).filter_map(flight).collect());
    let growing =
        peak as f64 >= own * 1.15 + mss && (soon || later >= own * 1.1 + mss || flight(4).is_none());
    if growing || grown || lost_later && view.stretches.len() - at <= 2 {
        return Cause::SlowStart;
    }
    // The last rounds of a transfer that was growing have nothing left to grow with.
    let later = view.end.since(slice.start);
    let last = labels.last().copied();
    if later < view.base * 3 + Span::from_millis(2) {
        return last.unwrap_or(Cause::SlowStart);
    }
    // It had filled the window at some time in this slice, and nearly does at its peak.
    let pressed = slice.waited(Wait::Window) + slice.waited(Wait::ZeroWindow);
    let close = slice.window < u64::MAX && own >= 0.9 * slice.window as f64;
    let offered = || if grows(view, at) { Cause::SlowStart } else { window(view, at) };
    if close && pressed * 5 > slice.duration() {
        return offered();
    }
    if creeps(view, at) {
        return Cause::SlowStart;
    }
    // A control that measures rates takes a small window for the path's, and fills it only when it probes.
    let from = at.saturating_sub(ROUNDS_OF_PROBES);
    let about = view.stretches.get(from..at).unwrap_or_default().iter().rev();
    let same = about.take_while(|s| s.slice.window as f64 >= WHOLE_WINDOW * slice.window as f64);
    let probed = same.filter(|s| s.slice.waited(Wait::Window) * 5 > s.slice.duration()).count();
    let nearly = slice.window < u64::MAX && own >= NEARLY * slice.window as f64;
    let all_full = slice.short == 0 && slice.waited(Wait::Program).is_zero();
    if probed > 0 && nearly && all_full && view.half.knows_windows() {
        return offered();
    }
    // Constant flight, no queue, no loss: something at the sender.
    let sender = slice.waited(Wait::Sender);
    let acks = slice.waited(Wait::Ack);
    if !steady && slice.waited(Wait::Program) * 6 > slice.duration() {
        return Cause::SenderApplication;
    }
    if writes_messages(view) {
        return Cause::SenderApplication;
    }
    // The program goes on when an ACK makes room for it, whoever paces what it writes.
    let idle = view.waited(Wait::Program);
    if view.half.is_refilled_by_acks() && idle * 8 < view.duration() && own * 1.15 + mss >= record {
        return Cause::SendBuffer;
    }
    // Who is released by ACKs sends when they come. At other places than the sender's that is known less
    // exactly.
    let share = if view.vantage == Vantage::Sender { 4 } else { 3 };
    if !steady && sender * share > sender + acks {
        // Full segments at a constant rate: without timestamps a full path is the likelier cause.
        let constant = slice.short == 0 && stretch.passed >= NEARLY * view.capacity;
        if constant && !view.sees_near_queues() {
            return Cause::Congestion;
        }
        let slow = slice.duration() > MAX_PER_SEGMENT * u64::from(slice.segments);
        let own = slow || !even(view);
        return if own { Cause::SenderApplication } else { Cause::SenderProcessor };
    }
    // Nearly all of the offered window is used.
    if close && view.half.knows_windows() {
        return offered();
    }
    // ACKs release what waits in a buffer, and it gives full segments.
    if !steady && (slice.prompt * 2 < slice.segments || slice.short * 2 > slice.segments) {
        return Cause::SenderApplication;
    }
    // A buffer that held more before holds it again.
    if !steady && slice.short > 0 && record >= own * 1.3 + mss {
        return Cause::SenderApplication;
    }
    Cause::SendBuffer
}
