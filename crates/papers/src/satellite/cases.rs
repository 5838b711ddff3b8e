//! The satellite path with one or two flows, and numbers over the runs of a case.

use crate::assumptions::{RunPart, WorldAssumptions};
use crate::bulk::{BulkRun, FlowReading};
use crate::contender::Contender;
use crate::experiment::{CaseRun, Experiment, MeasureError, Measured, StopRequest};
use crate::observe::{Setting, scenario, set};
use crate::statistics::{Summary, jain};
use farpace_lab::scenario::Scenario;
use farpace_units::{ByteCount, Span};
use std::fmt;

/// One sender, one receiver; `farpace run` takes the file as well.
pub const ONE: &str = include_str!("../../../../scenarios/papers/satellite.toml");
/// Two senders behind one satellite router.
pub const TWO: &str = include_str!("../../../../scenarios/papers/satellite-two.toml");

/// Payload of a full segment.
pub const SEGMENT: ByteCount = ByteCount::new(1448);
/// The bandwidth-delay product, which is also the limit of both windows.
pub const WINDOW: ByteCount = ByteCount::new(625_000);
/// The usual rate of access links, in Mbit/s.
const ACCESS: u32 = 1_000;
/// The second flow starts so much later from seed to seed, in ms.
const STEP_MS: u64 = 37;

/// Bit error rate of the satellite link in the direction of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ber {
    Zero,
    E8,
    E7,
    E6,
    E5,
}

impl Ber {
    /// All of the paper, from a clear sky to a typhoon.
    pub const ALL: [Ber; 5] = [Ber::Zero, Ber::E8, Ber::E7, Ber::E6, Ber::E5];
    /// Their names.
    pub const NAMES: [&str; 5] = ["0", "1e-8", "1e-7", "1e-6", "1e-5"];

    pub const fn name(self) -> &'static str {
        Ber::NAMES[self as usize]
    }
}

/// Queue of the satellite router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RouterQueue {
    /// That of the single flow. The windows keep it below 625 kB.
    Unlimited,
    /// 625 kB: hardly any congestion.
    Large,
    /// 15 kB: heavy congestion.
    Small,
}

impl RouterQueue {
    /// The two of the paper.
    pub const BOTH: [RouterQueue; 2] = [RouterQueue::Large, RouterQueue::Small];

    /// As a scenario writes it.
    pub const fn name(self) -> &'static str {
        match self {
            RouterQueue::Unlimited => "10000 packets",
            RouterQueue::Large => "625 kB",
            RouterQueue::Small => "15 kB",
        }
    }
}

/// Who sends over which link.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SatelliteCase {
    /// One or two. (More than two count as two.)
    pub senders: Vec<Contender>,
    pub ber: Ber,
    pub queue: RouterQueue,
    /// All ACKs are lost for a second, after three quarters of the time.
    pub blackout: bool,
    /// Rate of the link between each sender and the router, in Mbit/s.
    pub access: u32,
}

impl SatelliteCase {
    /// A single flow, as in the first testbed of the paper.
    pub fn single(sender: Contender, ber: Ber) -> Self {
        let queue = RouterQueue::Unlimited;
        SatelliteCase { senders: vec![sender], ber, queue, blackout: false, access: ACCESS }
    }
    /// Two flows through a router.
    pub fn pair(first: Contender, second: Contender, ber: Ber, queue: RouterQueue) -> Self {
        SatelliteCase { senders: vec![first, second], ber, queue, blackout: false, access: ACCESS }
    }
    /// True if the seed has no effect: nothing is drawn, and no second flow starts at a time of its own.
    fn is_certain(&self) -> bool {
        self.ber == Ber::Zero && self.senders.len() < 2
    }
}

impl fmt::Display for SatelliteCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.senders.iter().map(|s| s.name.as_str()).collect();
        write!(f, "{}, BER {}", names.join(" beside "), self.ber.name())?;
        if self.queue != RouterQueue::Unlimited {
            write!(f, ", queue {}", self.queue.name())?;
        }
        if self.access != ACCESS {
            write!(f, ", access {} Mbit/s", self.access)?;
        }
        if self.blackout { write!(f, ", ACKs lost") } else { Ok(()) }
    }
}

/// What all runs over the path have in common.
#[derive(Clone)]
pub struct SatelliteRuns {
    /// Runs of each case that the seed changes.
    pub seeds: u64,
    /// Virtual time of each run.
    pub time: Span,
    /// A world, and replaced values of the scenarios.
    pub assumed: WorldAssumptions,
    /// Every bin of the first run of each case is kept.
    pub readings: bool,
}

impl SatelliteRuns {
    /// # Errors
    /// A time that is too short or too long.
    pub fn new(seeds: u64, time: Span, set: &[Setting], readings: bool) -> Result<Self, MeasureError> {
        if time < Span::from_secs(4) || time > Span::from_secs(3600) {
            return Err(MeasureError::Invalid("--time must be from 4 s to 3600 s".into()));
        }
        let assumed = WorldAssumptions::literal(set);
        Ok(SatelliteRuns { seeds, time, assumed, readings })
    }
    /// All runs of `cases`, each case once. Seeds count from 1.
    pub fn plan(&self, cases: impl IntoIterator<Item = SatelliteCase>) -> Vec<CaseRun<SatelliteCase>> {
        let (mut seen, mut plan) = (std::collections::BTreeSet::new(), Vec::new());
        for case in cases.into_iter().filter(|case| seen.insert(case.clone())) {
            let seeds = if case.is_certain() { 1 } else { self.seeds };
            plan.extend((1..=seeds).map(|number| CaseRun { case: case.clone(), number }));
        }
        plan
    }
    /// When ACKs begin to be lost in a blackout.
    pub fn blackout_at(&self) -> Span {
        self.time / 4 * 3
    }
    /// The scenario of one run.
    ///
    /// # Errors
    /// What the replaced values make impossible.
    pub fn scenario(&self, case: &SatelliteCase, seed: u64) -> Result<Scenario, MeasureError> {
        let two = case.senders.len() > 1;
        let (text, name, flows, links): (_, _, &[&str], &[&str]) = if two {
            (TWO, "scenarios/papers/satellite-two.toml", &["first", "second"], &["left", "right"])
        } else {
            (ONE, "scenarios/papers/satellite.toml", &["bulk"], &["access"])
        };
        let ber = if case.ber == Ber::Zero { "0.0" } else { case.ber.name() };
        let mut all = vec![
            set("seed", seed.to_string()),
            set("duration", self.time.to_string()),
            set("links.satellite.queue", case.queue.name()),
            // Each packet is lost by its length: one of 1500 bytes with 1 - (1 - BER)^12000.
            set("links.satellite.forward.bit_errors", ber),
        ];
        if case.blackout {
            let outage = format!("[{{ at = \"{}\", lasts = \"1 s\" }}]", self.blackout_at());
            all.push(set("links.satellite.backward.outages", outage));
        }
        if two {
            // Runs without bit errors differ in this alone.
            let start = seed.saturating_sub(1) % 100 * STEP_MS;
            all.push(set("flows.second.start", format!("{start} ms")));
        }
        all.extend(
            links.iter().map(|link| set(format!("links.{link}.rate"), format!("{} Mbit/s", case.access))),
        );
        all.extend(flows.iter().zip(&case.senders).flat_map(|(flow, sender)| sender.overrides(flow)));
        let mut parts: Vec<RunPart<'_>> = vec![("satellite", "links.satellite".to_owned())];
        if case.queue == RouterQueue::Large {
            parts.push(("large-queue", "links.satellite".to_owned()));
        }
        if case.access == ACCESS {
            parts.extend(links.iter().map(|link| ("access", format!("links.{link}"))));
        }
        for (flow, sender) in flows.iter().zip(&case.senders) {
            parts.push((&sender.name, format!("flows.{flow}.sender")));
            parts.push(("receiver", format!("flows.{flow}.receiver")));
        }
        self.assumed.apply(&mut all, &parts);
        scenario(text, name, &all)
    }
    /// Makes one run.
    ///
    /// # Errors
    /// See [`MeasureError`].
    pub fn measure(
        &self,
        run: &CaseRun<SatelliteCase>,
        stop: &StopRequest<'_>,
    ) -> Result<BulkRun, MeasureError> {
        let readings = self.readings && run.number == 1;
        crate::bulk::measure(&self.scenario(&run.case, run.number)?, readings, stop)
    }
    /// What decides a measurement besides its case.
    pub fn inputs(&self) -> String {
        format!("{} {} {}", self.time, self.assumed.inputs(), self.readings)
    }
}

impl<E: Experiment<Case = SatelliteCase, Measurement = BulkRun>> Measured<'_, E> {
    /// Goodput of all flows together, in Mbit/s.
    pub fn total(&self, case: &SatelliteCase) -> Summary {
        self.over(case, BulkRun::total)
    }
    /// Goodput of one flow, in Mbit/s.
    pub fn flow_goodput(&self, case: &SatelliteCase, flow: usize) -> Summary {
        self.over(case, |m| m.goodput(flow))
    }
    /// Jain's index of two flows.
    pub fn fairness(&self, case: &SatelliteCase) -> Summary {
        self.over(case, |m| jain(&[m.goodput(0), m.goodput(1)]))
    }
    /// Readings of a flow in the first run.
    pub fn readings(&self, case: &SatelliteCase, flow: usize) -> &[FlowReading] {
        self.first(case).and_then(|m| m.flows.get(flow)).map_or(&[], |f| &f.readings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_tcp::config::Congestion;

    fn scenario(case: &SatelliteCase, seed: u64) -> Scenario {
        let runs = SatelliteRuns::new(10, Span::from_secs(60), &[], false).unwrap();
        runs.scenario(case, seed).unwrap_or_else(|e| panic!("{case}: {e}"))
    }

    /// Breaks: a case is refused by the scenario reader, in the middle of a long measurement.
    #[test]
    fn every_case_has_a_scenario() {
        let star = [Contender::published("star"), Contender::star("tsw", None, Some("2"))];
        for sender in Congestion::ALL.into_iter().map(Contender::modern).chain(star) {
            for ber in Ber::ALL {
                let mut cases = vec![SatelliteCase::single(sender.clone(), ber)];
                cases[0].blackout = true;
                let pair = |queue| SatelliteCase::pair(sender.clone(), sender.clone(), ber, queue);
                cases.extend(RouterQueue::BOTH.map(pair));
                for case in cases {
                    assert!(scenario(&case, 3).flows.iter().all(|f| f.sender.resolve().is_ok()), "{case}");
                }
            }
        }
    }

    /// Breaks: the path is not the paper's: round trip, bandwidth-delay product, sizes, window limits, and
    /// which direction loses what when.
    #[test]
    fn the_path_is_the_papers() {
        let mut case = SatelliteCase::single(Contender::published("reno"), Ber::E5);
        case.blackout = true;
        let one = scenario(&case, 1);
        let flow = &one.flows[0];
        let segment = one.segment(flow);
        assert_eq!((segment.payload, segment.ip), (SEGMENT, ByteCount::new(1500)));
        let rtt = one.base_rtt(flow);
        assert!(rtt >= Span::from_millis(500) && rtt < Span::from_millis(502), "{rtt}");
        let config = flow.sender.resolve().unwrap();
        assert_eq!(config.congestion, Congestion::Reno);
        assert!(config.send_buffer.max.get() > 2 * WINDOW.get(), "it limits what is in flight");
        assert_eq!(flow.receiver.resolve().unwrap().receive_buffer.max, WINDOW);
        let link = &one.links[1];
        assert_eq!((link.forward.outages.0.len(), link.backward.outages.0.len()), (0, 1));
        assert_eq!((link.backward.outages.0[0].at, link.backward.bit_errors.0), (Span::from_secs(45), 0.0));
        assert_eq!(link.forward.bit_errors.0, 1e-5);
        let star = Contender::published("star");
        let two = scenario(&SatelliteCase::pair(star.clone(), star, Ber::Zero, RouterQueue::Small), 2);
        assert!(two.base_rtt(&two.flows[1]) < Span::from_millis(503));
        assert_eq!(two.flows[1].start, Span::from_millis(STEP_MS));
    }

    /// Breaks: cases whose outcome the seed changes are run once only.
    #[test]
    fn only_what_is_certain_is_run_once() {
        let star = Contender::published("star");
        assert!(SatelliteCase::single(star.clone(), Ber::Zero).is_certain());
        assert!(!SatelliteCase::single(star.clone(), Ber::E8).is_certain());
        assert!(!SatelliteCase::pair(star.clone(), star, Ber::Zero, RouterQueue::Large).is_certain());
    }
}
