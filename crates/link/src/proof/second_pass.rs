//! The second pass: each flow at a bottleneck of its rate.

use super::first_pass::{FirstPass, FlowTotals};
use super::rates::RateFacts;
use super::trains::Trains;
use super::{
    CaptureTrain, CapturedFrame, ClockError, Doubt, Intervals, LinkModel, MAX_TIMELINES, MIN_PACKETS,
    PerPackets, ProofTimeline, ProofVerdict, RATE_WINDOWS,
};
use crate::pacing::{Burstiness, FCS, layer_2};
use farpace_units::{ByteCount, Instant, Rate};

/// The longest standard Ethernet frame in memory, without VLAN tags.
const STANDARD_FRAME: ByteCount = ByteCount::new(1_514);
/// The MTU of common jumbo frames.
const JUMBO_MTU: ByteCount = ByteCount::new(9_216);
/// Number of bins of the queue over time: more than the width of a figure.
const QUEUE_BINS: usize = 1_000;
/// Maximum number of bins of the rate over time, and minimum mean number of packets per bin, for a smooth
/// curve.
const RATE_BINS: u64 = 500;
const PACKETS_PER_BIN: u64 = 20;

/// The maximum queue of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// The rate of the bottleneck.
    pub rate: Rate,
    /// The maximum queue, including the packet that has just arrived.
    pub queue: ByteCount,
    /// When it was first reached.
    pub time: Instant,
    /// The number of that packet in the capture.
    pub number: u64,
}

/// All results about a flow.
#[derive(Clone, Debug)]
pub struct FlowProof {
    /// Its frames.
    pub totals: FlowTotals,
    /// Its mean rate of layer 2: all packets but the last, over the time from the first to the last. None
    /// without duration.
    pub mean: Option<Rate>,
    /// The mean rate of IP packets.
    pub goodput: Option<Rate>,
    /// Layer 2 length of a full frame: the longest of the flow, or that of the configured MTU.
    pub full_frame: ByteCount,
    /// The queue at a bottleneck of its mean rate.
    pub at_mean: Option<Peak>,
    /// The queue at a bottleneck of the configured rate.
    pub at_rate: Option<Peak>,
    /// The rate per n packets.
    pub per_packets: [PerPackets; RATE_WINDOWS.len()],
    /// Intervals between frames.
    pub intervals: Intervals,
    /// The longest train.
    pub train: CaptureTrain,
    /// The link, on which trains depend.
    pub link: Option<LinkModel>,
    /// Errors due to the resolution of the clock.
    pub clock: ClockError,
    /// The queue over time, maximum per bin, at a bottleneck of the configured or mean rate; of the largest
    /// flows.
    pub queue_over_time: Option<ProofTimeline>,
    /// Bytes of layer 2 over time; of the largest flows.
    pub bytes_over_time: Option<ProofTimeline>,
    /// The conclusion.
    pub verdict: ProofVerdict,
}

impl FlowProof {
    /// The queue on which the verdict is based.
    pub fn peak(&self) -> Option<&Peak> {
        self.at_rate.as_ref().or(self.at_mean.as_ref())
    }
    /// The same in full frames.
    pub fn peak_frames(&self) -> Option<f64> {
        Some(self.peak()?.queue.get() as f64 / self.full_frame.get().max(1) as f64)
    }
}

/// The second pass over a capture.
pub struct SecondPass {
    first_pass: FirstPass,
    flows: Vec<FlowState>,
}

/// The state of a flow.
struct FlowState {
    mean: Option<LeakyBucket>,
    given: Option<LeakyBucket>,
    rates: RateFacts,
    intervals: Intervals,
    trains: Trains,
    /// The latest time.
    now: Option<Instant>,
    bytes_over_time: Option<ProofTimeline>,
}

impl SecondPass {
    /// A second pass for the flows of the first.
    pub fn new(first_pass: FirstPass) -> Self {
        let mut by_bytes: Vec<(usize, ByteCount)> =
            first_pass.flows.iter().map(|flow| flow.total.bytes).enumerate().collect();
        by_bytes.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        let mut drawn = vec![false; first_pass.flows.len()];
        for (index, _) in by_bytes.iter().take(MAX_TIMELINES) {
            if let Some(drawn) = drawn.get_mut(*index) {
                *drawn = true;
            }
        }
        let flows = first_pass
            .flows
            .iter()
            .zip(&drawn)
            .map(|(flow, drawn)| FlowState::new(&first_pass, flow, *drawn));
        SecondPass { flows: flows.collect(), first_pass }
    }

    /// Handles a frame. The frames must be those of the first pass, in the same order.
    pub fn see(&mut self, frame: &CapturedFrame<'_>) {
        if let Some(flow) = self.first_pass.known(frame).and_then(|index| self.flows.get_mut(index)) {
            flow.see(frame);
        }
    }

    /// The results, flows with the most bytes first, and the counters of the first pass.
    pub fn finish(self) -> (Vec<FlowProof>, FirstPass) {
        let SecondPass { mut first_pass, flows } = self;
        let totals = std::mem::take(&mut first_pass.flows);
        let reverse_mss = |flow: &FlowTotals| -> Option<u16> {
            totals.get(*first_pass.indices.get(&flow.key.reversed())?)?.mss
        };
        let proofs =
            totals.iter().zip(flows).map(|(total, flow)| flow.finish(&first_pass, total, reverse_mss(total)));
        let mut proofs: Vec<FlowProof> = proofs.collect();
        first_pass.flows = totals;
        proofs.sort_by_key(|proof| std::cmp::Reverse(proof.totals.total.bytes));
        (proofs, first_pass)
    }
}

impl FlowState {
    fn new(first_pass: &FirstPass, totals: &FlowTotals, drawn: bool) -> Self {
        let total = &totals.total;
        let (interface, given) = (totals.key.interface, first_pass.question.rate);
        let means = FirstPass::means(totals);
        let timeline = |bins: usize| ProofTimeline::new(total.first, total.last, bins);
        let queue = |rate, q, is_judged: bool| {
            let over_time = (drawn && is_judged).then(|| timeline(QUEUE_BINS));
            LeakyBucket { origin: total.first, q, over_time, bin: 0, peak: Peak { rate, ..Peak::default() } }
        };
        let mean = means.map(|(rate, _)| {
            let bytes = total.bytes - totals.final_bytes.0;
            queue(rate, Burstiness::new(bytes, total.duration().as_nanos()), given.is_none())
        });
        let rate_bins = (total.packets / PACKETS_PER_BIN).clamp(1, RATE_BINS);
        FlowState {
            mean,
            given: given.map(|rate| queue(rate, Burstiness::at(rate), true)),
            rates: RateFacts::default(),
            intervals: Intervals::default(),
            trains: Trains::new(first_pass.link(interface).map(|link| link.rate), first_pass.tick(interface)),
            now: None,
            bytes_over_time: drawn.then(|| timeline(rate_bins as usize)),
        }
    }

    fn see(&mut self, frame: &CapturedFrame<'_>) {
        let bytes = layer_2(frame.len);
        let time = self.now.map_or(frame.time, |now| now.max(frame.time));
        if let Some(before) = self.now {
            self.intervals.add(time.since(before));
        }
        self.now = Some(time);
        self.rates.packet(time, bytes);
        self.trains.packet(frame.number, time, bytes);
        for queue in [&mut self.mean, &mut self.given].into_iter().flatten() {
            queue.arrive(frame.number, time, bytes);
        }
        if let Some(timeline) = &mut self.bytes_over_time {
            timeline.add(timeline.bin(time), bytes.get());
        }
    }

    fn finish(self, first_pass: &FirstPass, totals: &FlowTotals, peer_mss: Option<u16>) -> FlowProof {
        let FlowState { mean, given, rates, intervals, trains, now: _, bytes_over_time } = self;
        let question = &first_pass.question;
        let (mean_rate, goodput) = FirstPass::means(totals).unzip();
        let full_frame = match question.mtu {
            Some(mtu) => mtu + totals.link_header + FCS,
            None => layer_2(totals.longest),
        };
        let tick = first_pass.tick(totals.key.interface).max(totals.total.furthest_back);
        let judged_by = question.rate.or(mean_rate).unwrap_or_default();
        let total = &totals.total;
        let clock = ClockError::new(tick, total.packets, total.duration(), judged_by, question.rate);
        let peak = given.as_ref().or(mean.as_ref()).map(|queue| queue.peak);
        let verdict = match doubt(totals, peer_mss, question.mtu, judged_by, &clock) {
            Some(doubt) => ProofVerdict::CannotTell(doubt),
            None => peak.map_or(ProofVerdict::CannotTell(Doubt::NoDuration), |peak| {
                ProofVerdict::of(peak.queue, full_frame, clock.queue)
            }),
        };
        let (at_mean, mean_over_time) = mean.map(|queue| (queue.peak, queue.over_time)).unzip();
        let (at_rate, rate_over_time) = given.map(|queue| (queue.peak, queue.over_time)).unzip();
        FlowProof {
            totals: totals.clone(),
            mean: mean_rate,
            goodput,
            full_frame,
            at_mean,
            at_rate,
            per_packets: rates.per,
            intervals,
            train: trains.longest(),
            link: first_pass.link(totals.key.interface),
            clock,
            queue_over_time: rate_over_time.flatten().or(mean_over_time.flatten()),
            bytes_over_time,
            verdict,
        }
    }
}

/// Why no conclusion about a flow is possible; none if one is.
fn doubt(
    totals: &FlowTotals,
    peer_mss: Option<u16>,
    mtu: Option<ByteCount>,
    rate: Rate,
    clock: &ClockError,
) -> Option<Doubt> {
    let tags = totals.link_header - ByteCount::new(14);
    let longest = totals.longest;
    let super_segments =
        |limit: ByteCount| (longest > limit).then_some(Doubt::SuperSegments { longest, limit });
    let by_length = match (mtu, peer_mss) {
        (Some(mtu), _) => super_segments(mtu + totals.link_header),
        (None, Some(mss)) if !totals.longest_segment.is_zero() => {
            let headers = longest - totals.longest_segment;
            let mss = ByteCount::new(u64::from(mss));
            (totals.longest_segment > mss).then(|| Doubt::SuperSegments { longest, limit: mss + headers })
        }
        _ => super_segments(JUMBO_MTU + totals.link_header)
            .or((longest > STANDARD_FRAME + tags).then_some(Doubt::LongFrames(longest))),
    };
    let packets = totals.total.packets;
    None.or((packets < MIN_PACKETS).then_some(Doubt::FewPackets(packets)))
        .or(by_length)
        .or(totals.total.duration().is_zero().then_some(Doubt::NoDuration))
        .or_else(|| {
            let bytes = rate.bytes_in(clock.tick);
            clock
                .is_too_coarse(rate, layer_2(longest))
                .then_some(Doubt::CoarseClock { tick: clock.tick, bytes })
        })
}

/// A queue with its maximum, and over time.
struct LeakyBucket {
    origin: Instant,
    q: Burstiness,
    peak: Peak,
    over_time: Option<ProofTimeline>,
    /// The current bin. Earlier bins are complete.
    bin: usize,
}

impl LeakyBucket {
    fn arrive(&mut self, number: u64, time: Instant, bytes: ByteCount) {
        if let Some(timeline) = &mut self.over_time {
            // Each bin that has begun since then starts with the remaining queue.
            let bin = timeline.bin(time);
            while self.bin < bin {
                self.bin += 1;
                let tick = timeline.start_of(self.bin).since(self.origin).as_nanos();
                timeline.at_least(self.bin, self.q.queue_at(tick).get());
            }
        }
        self.q.arrive(time.since(self.origin).as_nanos(), bytes);
        let queue = self.q.queue();
        if queue > self.peak.queue {
            self.peak = Peak { queue, time, number, ..self.peak };
        }
        if let Some(timeline) = &mut self.over_time {
            timeline.at_least(self.bin, queue.get());
        }
    }
}
