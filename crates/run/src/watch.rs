//! What is gathered while a run goes on: windows, rows around the first loss, goodput, and where the time
//! went.

use crate::places::{FlowDrops, PlacesWatch};
use farpace_events::{Record, RecordSink, RecoveryState};
use farpace_lab::scenario::{FlowSpec, Scenario};
use farpace_lab::{FlowSample, QuietStretch, Run, RunError, SilenceMeter};
use farpace_path::Meter;
use farpace_report::{FlightRecorder, WindowHistory};
use farpace_tcp::ConnectionState;
use farpace_units::{ByteCount, Instant, Span};
use serde::Serialize;

/// Flows that get figures; of the others there are numbers.
pub const MAX_SHOWN: usize = 8;
/// Around the first loss, in round trips.
const BEFORE: u64 = FlightRecorder::ROUND_TRIPS_AHEAD;
const AFTER: u64 = 20;

/// One part in so many of what the path can carry is a crawl.
const CRAWL: u64 = 100;

/// Where the time of a transfer went, from connecting to the last byte. Each bin counts for one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RunTime {
    /// Before the handshake was over: a SYN or its answer may have been lost.
    #[serde(rename = "connecting_s", serialize_with = "seconds")]
    pub connecting: Span,
    /// In silences: at most one packet arrived per round trip, although there was something to send.
    #[serde(rename = "silent_s", serialize_with = "seconds")]
    pub silent: Span,
    /// In stretches as long as a silence in which less than 1 % of what the path can carry arrived.
    #[serde(rename = "crawling_s", serialize_with = "seconds")]
    pub crawling: Span,
    /// In Recovery, Loss or CWR, but neither of these.
    #[serde(rename = "recovering_s", serialize_with = "seconds")]
    pub recovering: Span,
    /// As much in flight as the receiver's window allows.
    #[serde(rename = "receiver_window_s", serialize_with = "seconds")]
    pub receiver_window: Span,
    /// As much in flight as the congestion window allows.
    #[serde(rename = "congestion_window_s", serialize_with = "seconds")]
    pub congestion_window: Span,
    /// Less in flight than the windows allow, and more to send: pacing held it, or the sender's own NIC.
    #[serde(rename = "pacing_s", serialize_with = "seconds")]
    pub pacing: Span,
    /// Less in flight than the windows allow: the sender had nothing more to send, or no room to hold it.
    #[serde(rename = "other_s", serialize_with = "seconds")]
    pub other: Span,
}

pub fn seconds<S: serde::Serializer>(span: &Span, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_f64(span.as_secs_f64())
}

impl RunTime {
    fn parts(&mut self) -> [&mut Span; 8] {
        let RunTime {
            connecting,
            silent,
            crawling,
            recovering,
            receiver_window,
            congestion_window,
            pacing,
            other,
        } = self;
        [connecting, silent, crawling, recovering, receiver_window, congestion_window, pacing, other]
    }
    fn add(&mut self, mut more: RunTime) {
        for (part, more) in self.parts().into_iter().zip(more.parts()) {
            *part += *more;
        }
    }
    /// The same, not longer than the transfer took: what bins have beyond their ends goes from the largest
    /// part.
    pub(crate) fn within(mut self, most: Span) -> RunTime {
        let mut over = self.total() - most;
        let mut parts = self.parts();
        parts.sort_by_key(|part| std::cmp::Reverse(**part));
        for part in parts {
            let less = over.min(*part);
            (*part, over) = (*part - less, over - less);
        }
        self
    }
    /// All of it.
    pub fn total(mut self) -> Span {
        self.parts().into_iter().fold(Span::ZERO, |sum, part| sum + *part)
    }
}

/// One flow, watched for the summary.
struct FlowWatch {
    silence: SilenceMeter,
    /// Segments in a bin, at or below which a transfer crawls.
    crawl: u64,
    spent: RunTime,
    /// A slow stretch that is not known yet to be a crawl, without the silences in it.
    slow: RunTime,
    /// A quiet stretch that is not known yet to be a silence.
    quiet: RunTime,
    stretch: QuietStretch,
    size: ByteCount,
    delivered: ByteCount,
    begun: bool,
}

/// What is known of where a flow's time went.
#[derive(Default)]
enum FlowTime {
    /// It has not begun.
    #[default]
    Unknown,
    Watched(Box<FlowWatch>),
    /// It has delivered everything.
    Over(RunTime),
}

impl FlowTime {
    /// A bin of a flow has this sample.
    fn sample(&mut self, scenario: &Scenario, bin: Span, s: &FlowSample) {
        if matches!(self, FlowTime::Unknown) {
            let Some(flow) = scenario.flows.get(s.flow) else { return };
            *self = FlowTime::Watched(Box::new(FlowWatch::new(scenario, flow)));
        }
        let FlowTime::Watched(watch) = self else { return };
        watch.sample(bin, s);
        if watch.delivered >= watch.size {
            *self = FlowTime::Over(watch.end());
        }
    }
    fn is_over(&self) -> bool {
        matches!(self, FlowTime::Over(_))
    }
}

impl FlowWatch {
    fn new(scenario: &Scenario, flow: &FlowSpec) -> Self {
        let bin = scenario.trace.bin;
        let carries = scenario.bottleneck(flow).map(|b| b.goodput.bytes_in(bin).get() / CRAWL);
        FlowWatch {
            silence: SilenceMeter::new(bin, scenario.base_rtt(flow), scenario.packets_in(bin, flow)),
            crawl: carries.unwrap_or(0) / scenario.segment(flow).payload.get().max(1),
            spent: RunTime::default(),
            slow: RunTime::default(),
            quiet: RunTime::default(),
            stretch: QuietStretch::default(),
            size: flow.size,
            delivered: ByteCount::ZERO,
            begun: false,
        }
    }
    fn sample(&mut self, bin: Span, s: &FlowSample) {
        self.begun |= s.sender.state != ConnectionState::SynSent;
        if self.delivered >= self.size {
            return;
        }
        if !self.begun {
            self.spent.connecting += bin;
            return;
        }
        self.delivered += s.delivered;
        let now = spent(bin, s);
        if s.idle {
            self.end_quiet();
            self.end_slow();
            self.spent.other += bin;
        } else if self.silence.is_quiet(s.arrived) {
            self.quiet.add(now);
            self.stretch.add(bin, s.arrived, self.silence.round_trip(s.sender.srtt));
        } else {
            self.end_quiet();
            if s.arrived <= self.crawl {
                self.slow.add(now);
            } else {
                self.end_slow();
                self.spent.add(now);
            }
        }
    }
    /// What is open ends.
    fn end(&mut self) -> RunTime {
        self.end_quiet();
        self.end_slow();
        self.spent
    }
    fn end_quiet(&mut self) {
        let quiet = std::mem::take(&mut self.quiet);
        if self.silence.is_silence(&std::mem::take(&mut self.stretch)) {
            self.spent.silent += quiet.total();
        } else {
            self.slow.add(quiet);
        }
    }
    fn end_slow(&mut self) {
        let slow = std::mem::take(&mut self.slow);
        if slow.total() >= self.silence.at_least() {
            self.spent.crawling += slow.total();
        } else {
            self.spent.add(slow);
        }
    }
}

/// What a bin was spent on, silences aside.
fn spent(bin: Span, s: &FlowSample) -> RunTime {
    let mut spent = RunTime::default();
    let sender = &s.sender;
    let receiver = sender.rwnd.get() / u64::from(sender.mss.max(1));
    let congestion = u64::from(sender.cwnd.get());
    let (in_flight, window) = (u64::from(sender.in_flight.get()), receiver.min(congestion));
    // Delayed ACKs and the moment of the reading make "full" inexact.
    let full = in_flight + 3 >= window || in_flight * 10 >= window * 9;
    let to = match sender.recovery {
        // No window is known before the handshake.
        _ if sender.rwnd.is_zero() && sender.acknowledged.is_zero() => &mut spent.other,
        RecoveryState::Recovery | RecoveryState::Loss | RecoveryState::Cwr => &mut spent.recovering,
        _ if full && receiver <= congestion => &mut spent.receiver_window,
        _ if full => &mut spent.congestion_window,
        _ if !sender.unsent.is_zero() => &mut spent.pacing,
        _ => &mut spent.other,
    };
    *to = bin;
    spent
}

/// What the figures of one flow are drawn from.
pub struct Pictures {
    pub window: WindowHistory,
    pub recorder: FlightRecorder,
    /// Payload delivered per bin.
    pub goodput: Meter,
    pub mss: ByteCount,
    /// Dropped data around the first loss.
    pub drops: FlowDrops,
    /// How long before the first loss the figure begins.
    before: Span,
}

/// Looks on during a run.
pub struct RunWatch {
    flows: Vec<FlowTime>,
    /// Of the first flows.
    pictures: Vec<Pictures>,
    /// None without pictures, or before the run is known.
    places: Option<PlacesWatch>,
}

impl RunWatch {
    /// For the flows of `scenario`; with `pictures`, also what figures need.
    pub fn new(scenario: &Scenario, pictures: bool) -> Self {
        let bin = scenario.trace.bin;
        let flows = std::iter::repeat_with(FlowTime::default).take(scenario.flows.len()).collect();
        let shown = if pictures { MAX_SHOWN } else { 0 };
        let pictured = (0u32..).zip(&scenario.flows).take(shown).map(|(index, flow)| {
            let rtt = scenario.base_rtt(flow).max(Span::from_micros(100));
            Pictures {
                window: WindowHistory::new(index),
                recorder: FlightRecorder::new(index, rtt * BEFORE, rtt * AFTER),
                goodput: Meter::new(bin),
                mss: ByteCount::ZERO,
                drops: FlowDrops::default(),
                before: rtt * BEFORE,
            }
        });
        RunWatch { flows, pictures: pictured.collect(), places: None }
    }

    /// The run is about to begin: queues, drops and NICs are watched if there are pictures.
    ///
    /// # Errors
    /// A defect of the network.
    pub fn begin(&mut self, run: &mut Run) -> Result<(), RunError> {
        if !self.pictures.is_empty() {
            run.watch_places()?;
            self.places = Some(PlacesWatch::new(run.queue_names()));
        }
        Ok(())
    }

    /// A bin that began at `start` is over.
    pub fn bin(&mut self, run: &mut Run, start: Instant) {
        if let Some(places) = &mut self.places {
            places.readings(start, run.now(), &run.queue_readings());
        }
        for (flow, segment) in run.take_dropped() {
            let Some(pictures) = flow.and_then(|flow| self.pictures.get_mut(flow)) else { continue };
            // What is dropped is not yet known to be lost: it is kept until the recorder is done.
            let begun = pictures.recorder.trigger().unwrap_or(segment.time);
            if !pictures.recorder.done() {
                let since = Instant::from_nanos(begun.since(Instant::ZERO + pictures.before).as_nanos());
                pictures.drops.add(run.place_name(segment.element), segment, since);
            }
        }
        let lasted = run.now().since(start);
        self.samples(run.scenario(), run.samples(), lasted);
    }

    /// The readings of one bin, which lasted so long: the last one of a run may be cut.
    fn samples(&mut self, scenario: &Scenario, samples: &[FlowSample], lasted: Span) {
        for s in samples {
            let Some(flow) = self.flows.get_mut(s.flow) else { continue };
            let active = !flow.is_over();
            flow.sample(scenario, lasted, s);
            let Some(pictures) = self.pictures.get_mut(s.flow) else { continue };
            if active {
                let x = &s.sender;
                pictures.window.sample(s.time, x.cwnd, x.ssthresh, x.recovery, x.timeouts);
                pictures.mss = ByteCount::new(u64::from(x.mss));
                // Inside the bin, which has its start and not its end.
                let within = Instant::from_nanos(s.time.as_nanos().saturating_sub(1));
                pictures.goodput.record(within, s.delivered);
            }
        }
    }

    /// No recorder wants more records.
    pub fn has_enough_records(&self) -> bool {
        self.pictures.iter().all(|p| p.recorder.done())
    }
    /// The run is over: what was open ends.
    ///
    /// # Errors
    /// A defect of the network.
    pub fn finish(&mut self, run: &mut Run) -> Result<(), RunError> {
        self.end_stretches();
        self.places.as_mut().map_or(Ok(()), |places| places.finish(run))
    }
    fn end_stretches(&mut self) {
        for flow in &mut self.flows {
            if let FlowTime::Watched(watch) = flow {
                *flow = FlowTime::Over(watch.end());
            }
        }
    }
    /// What the places of the network showed.
    pub(crate) fn places(&self) -> Option<&PlacesWatch> {
        self.places.as_ref()
    }
    /// Where the time of flow `index` went; after [`finish`](RunWatch::finish).
    pub fn spent(&self, index: usize) -> RunTime {
        match self.flows.get(index) {
            Some(FlowTime::Over(spent)) => *spent,
            _ => RunTime::default(),
        }
    }
    /// What the figures of the first flows are drawn from.
    pub fn pictures(&self) -> &[Pictures] {
        &self.pictures
    }
}

impl RecordSink for RunWatch {
    fn record(&mut self, record: &Record) {
        if let Some(p) = self.pictures.get_mut(record.connection as usize) {
            p.recorder.record(record);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_tcp::ConnectionInspection;
    use farpace_units::Packets;

    const SCENARIO: &str = r#"
        title = "t"
        hosts = { a = {}, b = {} }
        links = [{ name = "w", between = ["a", "b"], rate = "1 Gbit/s", delay = "5 ms" }]
        flows = [{ name = "f", from = "a", to = "b", size = "1 GB" }]
    "#;

    fn sample(arrived: u64, in_flight: u32, recovery: RecoveryState) -> FlowSample {
        let sender = ConnectionInspection {
            state: ConnectionState::Established,
            recovery,
            cwnd: Packets::new(500),
            ssthresh: Packets::MAX,
            in_flight: Packets::new(in_flight),
            acknowledged: ByteCount::ZERO,
            timeouts: 0,
            srtt: Span::from_millis(10),
            undelayed_srtt: None,
            rto: Span::from_millis(210),
            rwnd: ByteCount::new(144_800),
            mss: 1_448,
            largest_mss: 1_448,
            unsent: ByteCount::ZERO,
            bandwidth: None,
            min_rtt: None,
        };
        FlowSample {
            flow: 0,
            time: Instant::ZERO,
            sender,
            delivered: ByteCount::new(1),
            arrived,
            retransmitted: 0,
            idle: false,
        }
    }

    /// Breaks: with bins longer than the transfer, more time is spent than there was.
    #[test]
    fn no_more_is_spent_than_there_was() {
        let ms = |n| Span::from_millis(n);
        let spent = RunTime { silent: ms(3), other: ms(10), ..RunTime::default() };
        assert_eq!(spent.within(ms(20)), spent);
        assert_eq!(spent.within(ms(8)), RunTime { silent: ms(3), other: ms(5), ..RunTime::default() });
        assert_eq!(spent.within(ms(1)).total(), ms(1));
    }

    /// Breaks: before a connection stands, the window of the receiver counts as what limits it.
    #[test]
    fn nothing_limits_before_the_handshake() {
        let mut s = sample(1, 0, RecoveryState::Open);
        s.sender.rwnd = ByteCount::ZERO;
        assert_eq!(spent(Span::from_millis(10), &s).other, Span::from_millis(10));
    }

    /// Breaks: the report lays the time of a transfer to the wrong cause, or leaves some of it out.
    #[test]
    fn every_bin_counts_once() {
        let scenario = Scenario::parse(SCENARIO, "t").unwrap();
        let mut watch = RunWatch::new(&scenario, false);
        let (open, recovery) = (RecoveryState::Open, RecoveryState::Recovery);
        let mut connecting = sample(0, 0, open);
        connecting.sender.state = ConnectionState::SynSent;
        let idle = FlowSample { idle: true, ..sample(0, 0, open) };
        // A full path carries about 800 segments per bin of 10 ms, a crawl 8 at most.
        for (bins, s) in [
            (5, connecting),
            (7, sample(400, 99, open)),
            (20, sample(1, 5, recovery)),
            (30, sample(2, 5, recovery)),
            (3, sample(9, 5, recovery)),
            (4, sample(2, 5, recovery)), // too short for a crawl
            (2, sample(400, 20, open)),
            (40, idle),                   // the program writes nothing
            (10, sample(1, 5, recovery)), // two halves of a silence make none
            (1, idle),
            (10, sample(1, 5, recovery)),
        ] {
            for _ in 0..bins {
                watch.samples(&scenario, &[s], scenario.trace.bin);
            }
        }
        watch.end_stretches();
        let ms = |n| Span::from_millis(n);
        let expected = RunTime {
            connecting: ms(50),
            silent: ms(200),
            crawling: ms(300),
            recovering: ms(270),
            receiver_window: ms(70),
            congestion_window: ms(0),
            pacing: ms(0),
            other: ms(430),
        };
        assert_eq!(watch.spent(0), expected);
    }
}
