//! One direction of a connection as a whole: what is said of it before the time gets its causes.

use crate::flow::{Flow, FlowLoss, Half, Side, Slice, Trigger, Wait};
use farpace_units::{Instant, Span};

/// Where the capture was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vantage {
    /// At the sender of the data, or near it.
    Sender,
    /// Between the two.
    Middle,
    /// At the receiver, or near it.
    Receiver,
    /// The capture does not tell.
    Unknown,
}

impl Vantage {
    /// The name in JSON and in sentences.
    pub const fn name(self) -> &'static str {
        match self {
            Vantage::Sender => "sender",
            Vantage::Middle => "middle",
            Vantage::Receiver => "receiver",
            Vantage::Unknown => "unknown",
        }
    }
}

/// Losses that belong together: sent within one round trip.
#[derive(Clone, Copy, Debug)]
pub struct Episode {
    /// The first of them was sent.
    pub start: Instant,
    /// The last of them was sent.
    pub end: Instant,
    /// End of the highest of them in the stream.
    pub last: u64,
    /// The first was sent again.
    pub resent: Instant,
    /// The last was sent again.
    pub repaired: Instant,
    /// Losses.
    pub losses: u32,
    /// Longest run of segments without one that arrived between.
    pub run: u32,
    /// Time between the first and the last segment of the longest run, as they were sent.
    pub run_time: Span,
    /// Runs.
    pub runs: u32,
    /// Mean delay in queues when they were sent.
    pub queued: Span,
    /// The share of round trips, 0 to 1, that are shorter than that at the first loss of which it is known.
    pub rank: Option<f64>,
    /// Mean number of packets sent back to back before them.
    pub burst: f64,
    /// The same before the first of them.
    pub first_burst: f64,
    /// Of the losses: repaired by a timeout.
    pub timeouts: u32,
    /// Of the losses: sent again as a probe (RFC 8985, section 7).
    pub probes: u32,
    /// All of them were sent again needlessly.
    pub spurious: bool,
    /// Frames: of the first loss as it was sent, and as it was sent again.
    pub frames: (u64, u64),
    /// Bytes in flight when the first of them was sent.
    pub flight: u32,
    /// Data that had passed the capture point before the first of them.
    pub passed: u64,
    /// The same before the last of them.
    pub passed_last: u64,
    /// Bytes lost.
    pub bytes: u64,
    /// Bytes of the longest segment that was lost.
    pub longest: u32,
    /// Retransmissions lost again.
    pub again: u32,
    /// The last of them was the end of what had been sent.
    pub tail: bool,
    /// Lost before the capture point.
    pub upstream: bool,
    /// Nothing of the sender passed for so long before the loss was repaired, or seen.
    pub silence: Span,
}

/// A slice with what follows from it.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    /// The slice.
    pub slice: Slice,
    /// Bytes per second acknowledged, without the time in which only a timer ran.
    pub rate: f64,
    /// Bytes per second that passed the capture point in the same time.
    pub passed: f64,
    /// The least delay in queues in it, if there were samples.
    pub queued: Option<Span>,
    /// The largest.
    pub peak: Option<Span>,
}

/// A part of a transfer with its neighbours: long against a round trip and against what a loss changes.
#[derive(Clone, Copy, Debug)]
struct TransferPart {
    end: Instant,
    capacity: f64,
    deep: Span,
}

/// Parts have so many round trips at least, and there are no more than so many.
const PART: u64 = 40;
const MAX_PARTS: u64 = 16;

/// Round trips about a loss in which queues are compared with the one at it, and the share of the longest
/// that counts as the whole.
const ROUNDS_ABOUT: u64 = 2;
const LONGEST: f64 = 0.8;

/// One direction of a connection.
pub struct View<'a> {
    /// The connection.
    pub flow: &'a Flow,
    /// The end that sends.
    pub side: Side,
    /// Its data.
    pub half: &'a Half,
    /// Where the capture was taken.
    pub vantage: Vantage,
    /// The least round trip between the ends.
    pub base: Span,
    /// Begin and end of the transfer: first packet to the ACK of the last byte.
    pub start: Instant,
    /// See `start`.
    pub end: Instant,
    /// Full segment.
    pub mss: u32,
    /// The slices.
    pub stretches: Vec<Stretch>,
    /// Losses by episodes, in order of time.
    pub episodes: Vec<Episode>,
    /// The rate of the path in bytes per second, as far as the transfer shows it.
    pub capacity: f64,
    /// Large delay in queues: the 95th percentile of the slices' peaks.
    pub deep: Span,
    /// Parts of the transfer, in order: a path may change its rate.
    parts: Vec<TransferPart>,
    /// The most that stood in the queue of the path, in bytes, by the rate and the large delay of each part.
    pub(crate) longest_queue: f64,
    /// The same as `deep` for queues between the sender and the capture point alone.
    pub deep_near: Span,
}

impl<'a> View<'a> {
    /// Looks at what `side` sent.
    pub fn new(flow: &'a Flow, side: Side) -> Self {
        let half = flow.half(side);
        let base = half.base_rtt().unwrap_or_default();
        let start = flow.start;
        let end = half.last_ack.max(half.last_data).map_or(flow.end, |(time, _)| time);
        let mss = if half.mss > 0 && half.largest_delivered > 0 {
            half.mss.min(half.counts.largest.max(1))
        } else {
            half.mss.max(half.counts.largest.min(1_460)).max(1)
        };
        let mut view = View {
            flow,
            side,
            half,
            vantage: vantage(half),
            base,
            start,
            end,
            mss,
            stretches: stretches(half, 0.0, mss),
            episodes: Vec::new(),
            capacity: 0.0,
            deep: Span::ZERO,
            parts: Vec::new(),
            longest_queue: 0.0,
            deep_near: Span::ZERO,
        };
        view.capacity = capacity(&view.stretches, base);
        view.stretches = stretches(half, view.capacity, mss);
        view.deep = deep(view.stretches.iter().filter_map(|s| s.peak));
        view.parts = parts(&view.stretches, base, end.since(start));
        let queues = view.parts.iter().map(|part| part.capacity * part.deep.as_secs_f64());
        view.longest_queue = queues.fold(0.0, f64::max);
        let near = view.half.trips.near.min;
        view.deep_near =
            deep(view.stretches.iter().filter(|s| s.slice.near.n > 0).map(|s| s.slice.near.max - near));
        view.episodes = episodes(half, base, mss);
        view
    }

    /// The ACKs of the data are not in the capture, or the data of the ACKs is not.
    pub(crate) fn is_one_way(&self) -> bool {
        let (acks, data) = (self.half.counts.acks > 0, self.half.counts.data_segments > 0);
        data != acks && (data || self.half.acknowledged() > 0)
    }

    /// There is data in the capture.
    pub(crate) fn has_data(&self) -> bool {
        self.half.counts.data_segments > 0
    }

    /// How long the transfer took.
    pub fn duration(&self) -> Span {
        self.end.since(self.start)
    }

    /// Payload acknowledged per second.
    pub fn goodput(&self) -> f64 {
        let seconds = self.duration().as_secs_f64();
        if seconds > 0.0 { self.half.acknowledged() as f64 / seconds } else { 0.0 }
    }

    /// Time spent waiting for one thing.
    pub fn waited(&self, wait: Wait) -> Span {
        self.stretches.iter().fold(Span::ZERO, |sum, s| sum + s.slice.waited(wait))
    }

    /// The rate of the path about a time, in bytes per second, and the large delay in queues.
    pub(crate) fn about(&self, at: Instant) -> (f64, Span) {
        let n = self.parts.partition_point(|part| part.end < at);
        self.parts.get(n).or(self.parts.last()).map_or((self.capacity, self.deep), |p| (p.capacity, p.deep))
    }

    /// A queue of this length counts, and is about the longest within a few round trips of this time.
    pub(crate) fn is_longest_queue(&self, at: Instant, queued: Span) -> bool {
        let about = self.base * ROUNDS_ABOUT;
        let from = self.stretches.partition_point(|s| s.slice.end + about < at);
        let near = self.stretches.iter().skip(from).take_while(|s| s.slice.start <= at + about);
        let longest = near.filter_map(|s| s.peak).max().unwrap_or_default();
        longest > self.threshold() && queued.as_secs_f64() >= LONGEST * longest.as_secs_f64()
    }

    /// Losses that were none of reordering or delay.
    pub fn losses(&self) -> impl Iterator<Item = &FlowLoss> {
        self.half.losses.kept().iter().filter(|l| !l.spurious)
    }

    /// Losses over data segments.
    pub fn loss_rate(&self) -> f64 {
        let lost = self.losses().count() as f64 * self.half.losses.stride() as f64;
        let sent = (self.half.counts.data_segments as f64).max(1.0);
        lost / sent.max(self.segments())
    }

    /// Mean length of runs of lost segments.
    pub(crate) fn mean_run(&self) -> f64 {
        let real = self.episodes.iter().filter(|e| !e.spurious);
        let (losses, runs) =
            real.fold((0.0, 0.0), |(l, r), e| (l + f64::from(e.losses), r + f64::from(e.runs)));
        if runs > 0.0 { losses / runs } else { 0.0 }
    }

    /// Segments of full size that the payload makes: super-segments count as what they become.
    pub fn segments(&self) -> f64 {
        (self.half.counts.bytes as f64 / f64::from(self.mss.max(1))).max(1.0)
    }

    /// A queue that counts: delay beyond what the path itself varies by.
    pub fn threshold(&self) -> Span {
        let segments = 4.0 * f64::from(self.mss) / self.capacity.max(1.0);
        (self.base / 16).max(Span::from_micros(300)).max(Span::from_nanos((segments * 1e9) as u64))
    }

    /// Queues between the sender and the capture point are seen: there are none, or timestamps tell of them.
    pub(crate) fn sees_near_queues(&self) -> bool {
        self.vantage == Vantage::Sender || self.stretches.iter().any(|s| s.slice.near.n > 0)
    }

    /// A Wireshark display filter for this connection.
    pub fn filter(&self) -> String {
        let [a, b] = self.flow.ends;
        let ip = if a.is_ipv4() { "ip" } else { "ipv6" };
        format!(
            "{ip}.addr == {} && {ip}.addr == {} && tcp.port == {} && tcp.port == {}",
            a.ip(),
            b.ip(),
            a.port(),
            b.port()
        )
    }

    /// A Wireshark filter for exactly these frames; for the first 40 where there are more.
    pub fn frames_filter(frames: &[u64]) -> String {
        const MAX_NAMED: usize = 40;
        let mut sorted = frames.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        match sorted.as_slice() {
            [] => String::new(),
            [one] => format!("frame.number == {one}"),
            some => {
                let kept: Vec<String> = some.iter().take(MAX_NAMED).map(u64::to_string).collect();
                format!("frame.number in {{{}}}", kept.join(", "))
            }
        }
    }
}

/// Where the capture was taken, by the shares of the round trip to both ends.
fn vantage(half: &Half) -> Vantage {
    let (Some(near), Some(far)) = (half.near(), half.far()) else { return Vantage::Unknown };
    let (near, far) = (near.as_nanos() as f64, far.as_nanos() as f64);
    let whole = near + far;
    if whole <= 0.0 {
        return Vantage::Unknown;
    }
    match near / whole {
        share if share < 0.15 => Vantage::Sender,
        share if share > 0.85 => Vantage::Receiver,
        _ => Vantage::Middle,
    }
}

/// The least time there and back that data can have: the handshake's, and what full segments take longer on
/// slow lines.
fn least(data: Span, hello: Option<Span>, capacity: f64, mss: u32) -> Span {
    let Some(hello) = hello.filter(|_| capacity > 0.0) else { return data };
    let longer = Span::from_nanos((3.0 * f64::from(mss) / capacity * 1e9) as u64);
    data.min(hello + longer)
}

fn stretches(half: &Half, capacity: f64, mss: u32) -> Vec<Stretch> {
    let far = least(half.trips.far.min, half.trips.hello, capacity, mss);
    let near = least(half.trips.near.min, half.near(), capacity, mss);
    let sum = |a: Option<Span>, b: Option<Span>| match (a, b) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or_default() + b.unwrap_or_default()),
    };
    let stretch = |slice: &Slice| {
        let seconds = (slice.duration() - slice.waited(Wait::Timer)).as_secs_f64();
        let per_second = |bytes: u64| if seconds > 0.0 { bytes as f64 / seconds } else { 0.0 };
        let near_least = (slice.near.n > 0).then(|| slice.near.min - near);
        let far_least = (slice.far.n > 0).then(|| slice.far.min - far);
        let near_most = (slice.near.n > 0).then(|| slice.near.max - near);
        let far_most = (slice.far.n > 0).then(|| slice.far.max - far);
        Stretch {
            slice: *slice,
            rate: per_second(slice.delivered),
            passed: per_second(slice.sent),
            queued: sum(near_least, far_least),
            peak: sum(near_most, far_most),
        }
    };
    half.timeline.slices().iter().map(stretch).collect()
}

/// Each with the parts before and behind it.
fn parts(stretches: &[Stretch], base: Span, whole: Span) -> Vec<TransferPart> {
    let (Some(first), Some(last)) = (stretches.first(), stretches.last()) else { return Vec::new() };
    let long = (base * PART).max(whole / MAX_PARTS).max(Span::from_millis(1));
    let mut all = Vec::new();
    let mut start = first.slice.start;
    while start < last.slice.end {
        let end = start + long;
        let from = stretches.partition_point(|s| s.slice.end + long < start);
        let to = stretches.partition_point(|s| s.slice.start <= end + long);
        let about = stretches.get(from..to).unwrap_or_default();
        let deep = deep(about.iter().filter_map(|s| s.peak));
        all.push(TransferPart { end, capacity: capacity(about, base), deep });
        start = end;
    }
    all
}

/// The same from some time on.
pub(crate) fn capacity_since(stretches: &[Stretch], base: Span, since: Instant) -> f64 {
    let from = stretches.partition_point(|s| s.slice.end < since);
    capacity(stretches.get(from..).unwrap_or_default(), base)
}

/// The rate that the transfer exceeds for a tenth of the time, over spans of at least two round trips.
fn capacity(stretches: &[Stretch], base: Span) -> f64 {
    let mut rates: Vec<(f64, Span)> = Vec::new();
    for from in 0..stretches.len() {
        let (mut bytes, mut time) = (0u64, Span::ZERO);
        for stretch in stretches.iter().skip(from).take(16) {
            bytes += stretch.slice.delivered;
            time += stretch.slice.duration();
            if time >= base * 2 && time > Span::ZERO {
                break;
            }
        }
        if time > Span::ZERO && bytes > 0 {
            rates.push((bytes as f64 / time.as_secs_f64(), stretches[from].slice.duration()));
        }
    }
    rates.sort_by(|a, b| b.0.total_cmp(&a.0));
    let whole = rates.iter().fold(Span::ZERO, |sum, r| sum + r.1);
    let mut above = Span::ZERO;
    for (rate, time) in &rates {
        above += *time;
        if above * 10 >= whole {
            return *rate;
        }
    }
    0.0
}

/// The 95th percentile.
fn deep(peaks: impl Iterator<Item = Span>) -> Span {
    let mut peaks: Vec<Span> = peaks.collect();
    peaks.sort_unstable();
    peaks.get(peaks.len() * 95 / 100).copied().unwrap_or_default()
}

fn episodes(half: &Half, base: Span, mss: u32) -> Vec<Episode> {
    let mut sorted: Vec<&FlowLoss> = half.losses.kept().iter().collect();
    if sorted.is_empty() {
        return Vec::new();
    }
    let trips = half.round_trips.sorted();
    let rank = |loss: &FlowLoss| trips.rank(loss.far?);
    sorted.sort_by_key(|l| (l.sent, l.offset));
    let mut all: Vec<Episode> = Vec::new();
    let mut last_end = 0u64;
    // Of the run: segments, and when its first was sent. Nothing passed between.
    let (mut run, mut run_start) = (0u32, Instant::ZERO);
    let mut passed_end = 0u64;
    let gap = base.max(Span::from_millis(1));
    for loss in sorted {
        let segments = loss.len.div_ceil(mss.max(1)).max(1);
        let joins = all.last().is_some_and(|e| {
            e.spurious == loss.spurious
                && (loss.sent.since(e.start) <= gap || loss.sent.since(e.end) < gap / 4)
        });
        let follows = loss.offset == last_end;
        let alone = loss.passed != passed_end;
        last_end = loss.offset + u64::from(loss.len);
        passed_end = loss.passed + u64::from(loss.len);
        if !joins || !follows || alone {
            run_start = loss.sent;
        }
        if joins && let Some(e) = all.last_mut() {
            run = if follows { run + segments } else { segments };
            e.runs += u32::from(!follows);
            e.run = e.run.max(run);
            e.run_time = e.run_time.max(loss.sent.since(run_start));
            let n = f64::from(e.losses);
            e.queued = Span::from_nanos(
                ((e.queued.as_nanos() as f64 * n + loss.queued.as_nanos() as f64) / (n + 1.0)) as u64,
            );
            // The first is the one that found it full.
            e.rank = e.rank.or(rank(loss));
            e.burst = (e.burst * n + f64::from(loss.burst)) / (n + 1.0);
            e.losses += 1;
            e.end = loss.sent;
            e.passed_last = loss.passed;
            e.last = e.last.max(loss.offset + u64::from(loss.len));
            e.resent = if loss.resent < e.resent { loss.resent } else { e.resent };
            e.repaired = e.repaired.max(loss.resent);
            e.timeouts += u32::from(loss.trigger == Trigger::Timeout);
            e.probes += u32::from(loss.trigger == Trigger::Probe);
            e.bytes += u64::from(loss.len);
            e.longest = e.longest.max(loss.len);
            e.again += u32::from(loss.copy);
            e.tail |= loss.tail;
            e.silence = e.silence.max(loss.silence);
            continue;
        }
        run = segments;
        all.push(Episode {
            start: loss.sent,
            end: loss.sent,
            last: loss.offset + u64::from(loss.len),
            resent: loss.resent,
            repaired: loss.resent,
            losses: 1,
            run,
            run_time: Span::ZERO,
            runs: 1,
            queued: loss.queued,
            rank: rank(loss),
            burst: f64::from(loss.burst),
            first_burst: f64::from(loss.burst),
            timeouts: u32::from(loss.trigger == Trigger::Timeout),
            probes: u32::from(loss.trigger == Trigger::Probe),
            spurious: loss.spurious,
            frames: (loss.frame, loss.resent_frame),
            flight: loss.flight,
            passed: loss.passed,
            passed_last: loss.passed,
            bytes: u64::from(loss.len),
            longest: loss.len,
            again: u32::from(loss.copy),
            tail: loss.tail,
            upstream: loss.upstream,
            silence: loss.silence,
        });
    }
    all
}
