//! One run: a scenario, what is turned in it, and what comes of it.

use super::host::Host;
use crate::interrupt;
use anyhow::{Result, anyhow, bail};
use farpace_events::Cause;
use farpace_lab::scenario::Scenario;
use farpace_lab::{FlowSample, Inputs, Run, VerifyError};
use farpace_units::{ByteCount, Instant, Rate, Span};
use std::fmt;

/// The paper's testbed.
pub const TESTBED: &str = include_str!("../../../../../scenarios/papers/nics.toml");
/// Its file.
pub const FILE: &str = "scenarios/papers/nics.toml";
/// Beside datagrams, transfers begin so long before the end: a run lasts until all of them are done.
const AFTERWARDS: Span = Span::from_millis(1);
/// Datagrams begin when cards know each other.
const DATAGRAMS_BEGIN: Span = Span::from_millis(100);

/// What a run is for: how long it takes follows from that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The paper's testbed.
    Paper,
    /// The same, with something turned.
    Turned,
    /// Cards on a switch.
    Wired,
    /// Lines of a house.
    Wan,
    /// A card fails and returns.
    Failure,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    /// For what.
    pub kind: Kind,
    /// In words.
    pub name: String,
    text: String,
    settings: Vec<(String, String)>,
    curves: bool,
    datagrams: bool,
}

impl Case {
    /// The testbed: a ratio, a skip number, and what frames cost the sender. The window is never below S + 1 segments.
    pub fn paper(ratio: &str, skip: u16, host: Host) -> Case {
        let case = Case::of(Kind::Paper, format!("{ratio}, S = {skip}"), TESTBED.to_owned());
        let mut case = case
            .with("hosts.a.multi_nic.ratio", ratio)
            .with("hosts.b.multi_nic.ratio", ratio)
            .with("hosts.a.multi_nic.skip", &skip.to_string())
            .with("flows.bulk.sender.cwnd_floor", &format!("{} packets", skip.saturating_add(1)));
        case.settings.extend(host.settings());
        case
    }
    /// TCP over the wide card of the testbed alone.
    pub fn alone(host: Host) -> Case {
        let mut case = Case::paper("90/10", 0, host).with("hosts.a.multi_nic.extended_arp", "false");
        case.name = "the wide card alone".to_owned();
        case
    }
    /// Datagrams over both cards of the testbed, as fast as the sender can.
    pub fn udp(ratio: &str, host: Host) -> Case {
        let mut case = Case::paper(ratio, 0, host).with_datagrams("1200 Mbit/s");
        case.name = format!("UDP, {ratio}");
        case
    }
    /// A scenario of its own.
    pub fn of(kind: Kind, name: String, text: String) -> Case {
        Case { kind, name, text, settings: Vec::new(), curves: false, datagrams: false }
    }
    /// The same with a setting.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> Case {
        self.settings.push((key.to_owned(), value.to_owned()));
        self
    }
    /// The same, drawn over time.
    #[must_use]
    pub fn drawn(mut self) -> Case {
        self.curves = true;
        self
    }
    /// The same with a stream of full datagrams from `a` to `b` in place of transfers.
    #[must_use]
    pub fn with_datagrams(mut self, rate: &str) -> Case {
        self.datagrams = true;
        self.text.push_str(&format!(
            "\n[[datagrams]]\nname = \"stream\"\nfrom = \"a\"\nto = \"b\"\nrate = \"{rate}\"\npayload = \"1472 B\"\nstart = \
             \"{DATAGRAMS_BEGIN}\"\n"
        ));
        self
    }
    /// The scenario as text, without settings.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The scenario, run for `time`, with `set` on top.
    ///
    /// # Errors
    /// What the settings make impossible.
    pub fn scenario(&self, time: Span, set: &[(String, String)]) -> Result<Scenario> {
        let mut all = vec![("duration".to_owned(), time.to_string())];
        if self.datagrams {
            all.push(("flows.*.start".to_owned(), (time - AFTERWARDS).to_string()));
        }
        all.extend(self.settings.iter().chain(set).cloned());
        let name = if self.text.starts_with(TESTBED) { FILE } else { self.name.as_str() };
        Scenario::parse_with(&self.text, name, &all).map_err(|e| anyhow!("{e}"))
    }

    /// Makes the run; none if interrupted. What comes in the first part of it, `skipped`, does not count as goodput.
    ///
    /// # Errors
    /// A defect of the lab, or bytes that arrive other than they were sent.
    pub fn measure(&self, time: Span, skipped: Span, set: &[(String, String)]) -> Result<Option<Measured>> {
        let scenario = self.scenario(time, set)?;
        let mut run = Run::new(&scenario, Inputs::default())?;
        let mut readings = Readings::new(scenario.flows.len(), Instant::ZERO + skipped, self.curves);
        loop {
            let progress = run.advance(None)?;
            if interrupt::asked() {
                return Ok(None);
            }
            run.samples().iter().for_each(|sample| readings.take(sample));
            if progress.finished {
                break;
            }
        }
        let outcome = run.finish()?;
        let counted = time - skipped;
        let mut m = readings.summary(counted);
        for flow in &outcome.flows {
            match &flow.verified {
                // The run ends by its time.
                Ok(_) | Err(VerifyError::Short { .. }) => {}
                Err(error) => bail!("flow `{}`: {error}", flow.name),
            }
            let data = |cause: Cause| {
                cause == Cause::NewData || (cause.is_retransmission() && cause != Cause::SynRetransmit)
            };
            m.sent += flow.sent().filter(|(cause, _)| data(*cause)).map(|(_, n)| n).sum::<u64>();
            m.resent += flow.retransmissions();
            m.again += flow.receiver.duplicates;
            m.timeouts += flow.timeouts;
        }
        if let Some(udp) = outcome.datagrams.first() {
            let lasted = time - DATAGRAMS_BEGIN;
            m.udp = Some(Rate::of(udp.bytes, lasted).as_mbit_f64());
            m.late = udp.late as f64 / udp.received.max(1) as f64;
        }
        Ok(Some(m))
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}

/// What came of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Goodput of each flow, Mbit/s.
    pub goodput: Vec<f64>,
    /// Payload of datagrams that arrived, Mbit/s.
    pub udp: Option<f64>,
    /// Datagrams that came after one that was sent later, of all: 0 to 1.
    pub late: f64,
    /// Segments with data that were sent, of all flows.
    pub sent: u64,
    /// Of these: sent before.
    pub resent: u64,
    /// Segments that came to the receiving TCP though their data was there: sent again for nothing.
    pub again: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Mean of what may be in flight, the smaller of congestion and receive window, in segments; of the first flow.
    pub window: f64,
    /// By how much the smoothed round trip is above its least: the mean, and what it exceeds in 1 % of bins, in ms; of the
    /// first flow.
    pub delay: [f64; 2],
    /// If drawn: time and goodput of each bin, all flows together, Mbit/s.
    pub rates: Vec<(f64, f64)>,
    /// If drawn: time and window of the first flow, in segments.
    pub windows: Vec<(f64, f64)>,
}

impl Measured {
    /// Goodput of all flows, Mbit/s.
    pub fn total(&self) -> f64 {
        self.goodput.iter().sum()
    }
    /// Segments sent again, in percent of all.
    pub fn resent_percent(&self) -> f64 {
        self.resent as f64 * 100.0 / self.sent.max(1) as f64
    }
    /// Segments sent again for nothing, in percent of all.
    pub fn spurious_percent(&self) -> f64 {
        self.again as f64 * 100.0 / self.sent.max(1) as f64
    }
}

/// What samples say.
struct Readings {
    from: Instant,
    curves: bool,
    delivered: Vec<ByteCount>,
    windows: Vec<(f64, f64)>,
    trips: Vec<f64>,
    least: f64,
    rates: Vec<(f64, f64)>,
    last: Instant,
}

impl Readings {
    fn new(flows: usize, from: Instant, curves: bool) -> Readings {
        let delivered = vec![ByteCount::ZERO; flows];
        let (windows, trips, rates) = (Vec::new(), Vec::new(), Vec::new());
        Readings { from, curves, delivered, windows, trips, least: f64::MAX, rates, last: Instant::ZERO }
    }
    fn take(&mut self, sample: &FlowSample) {
        let at = sample.time.as_secs_f64();
        if sample.time > self.from
            && let Some(delivered) = self.delivered.get_mut(sample.flow)
        {
            *delivered += sample.delivered;
        }
        if self.curves {
            let bin = if sample.flow == 0 { sample.time.since(self.last) } else { Span::ZERO };
            match self.rates.last_mut() {
                Some(rate) if bin.is_zero() => {
                    let width = (at - rate.0).max(1e-9);
                    rate.1 += sample.delivered.get() as f64 * 8e-6 / width;
                }
                _ => {
                    let begin = self.last.as_secs_f64();
                    self.rates.push((begin, Rate::of(sample.delivered, bin).as_mbit_f64()));
                }
            }
            self.last = sample.time;
        }
        if sample.flow != 0 {
            return;
        }
        let s = &sample.sender;
        let receiver = s.rwnd.get() / u64::from(s.mss.max(1));
        let window = u64::from(s.cwnd.get()).min(receiver) as f64;
        self.windows.push((at, window));
        let trip = s.srtt.as_secs_f64() * 1e3;
        if trip > 0.0 {
            self.least = self.least.min(trip);
            if sample.time > self.from {
                self.trips.push(trip);
            }
        }
    }
    fn summary(mut self, counted: Span) -> Measured {
        let from = self.from.as_secs_f64();
        let later: Vec<f64> = self.windows.iter().filter(|w| w.0 > from).map(|w| w.1).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let average = mean(&self.trips) - self.least;
        let high = crate::statistics::percentile(&mut self.trips, 99.0).map_or(f64::NAN, |t| t - self.least);
        Measured {
            goodput: self.delivered.iter().map(|d| Rate::of(*d, counted).as_mbit_f64()).collect(),
            window: mean(&later),
            delay: [average, high],
            rates: self.rates,
            windows: if self.curves { self.windows } else { Vec::new() },
            ..Measured::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::nics::host::IDLE;

    /// Breaks: what is said to be turned is not, or a floor is below S + 1.
    #[test]
    fn settings_reach_the_scenario() {
        let case = Case::paper("99.6/0.4", 18, IDLE).with("hosts.a.multi_nic.hold", "1 ms");
        let time = Span::from_secs(2);
        let more = [("hosts.a.multi_nic.hops".to_owned(), "3".to_owned())];
        let scenario = case.scenario(time, &more).unwrap();
        let config = scenario.multi_nic("a").unwrap();
        assert_eq!((config.skip, config.hold, config.hops), (Some(18), Span::from_millis(1), 3));
        assert_eq!(scenario.duration, time);
        let floor = scenario.flows[0].sender.cwnd_floor.unwrap();
        assert_eq!(floor.get(), 19);
        let udp = Case::udp("90/10", IDLE).scenario(time, &[]).unwrap();
        assert_eq!((udp.datagrams.len(), udp.flows[0].start), (1, time - AFTERWARDS));
    }

    /// Breaks: goodput counts the beginning, or the window is not what may be in flight.
    #[test]
    fn the_beginning_does_not_count() {
        let (time, skipped) = (Span::from_millis(300), Span::from_millis(100));
        let case = Case::paper("90/10", 0, IDLE).with("flows.bulk.receiver.window", "10 packets").drawn();
        let all = case.measure(time, Span::ZERO, &[]).unwrap().unwrap();
        let later = case.measure(time, skipped, &[]).unwrap().unwrap();
        assert_eq!((all.sent, &all.rates), (later.sent, &later.rates));
        let mean = |from: f64| {
            let rates = all.rates.iter().filter(|(at, _)| *at >= from - 1e-9).map(|(_, rate)| *rate);
            rates.clone().sum::<f64>() / rates.count() as f64
        };
        assert!((all.total() / mean(0.0) - 1.0).abs() < 1e-3, "{} {}", all.total(), mean(0.0));
        assert!((later.total() / mean(0.1) - 1.0).abs() < 1e-3, "{} {}", later.total(), mean(0.1));
        assert!(all.windows.iter().all(|(_, window)| *window <= 10.0));
        assert!(all.resent > 0 && all.again > 0 && all.again <= all.resent);
    }
}
