//! The runs over the paper's testbed, and what they have in common with all others.

use crate::assumptions::WorldAssumptions;
use crate::experiment::MeasureError;
use crate::observe::{Setting, scenario, set};
use farpace_lab::scenario::Scenario;
use farpace_units::Span;
use std::fmt;

/// The testbed of the paper.
pub const TESTBED: &str = include_str!("../../../../scenarios/papers/nics.toml");
/// Its file.
pub const FILE: &str = "scenarios/papers/nics.toml";
/// In runs with datagrams, transfers begin so long before the end: a run lasts until all of them are done.
const AFTERWARDS: Span = Span::from_millis(1);
/// Datagrams begin when NICs know each other.
pub const DATAGRAMS_BEGIN: Span = Span::from_millis(100);

/// Ratios of the paper.
pub const RATIOS: [&str; 2] = ["90/10", "99.6/0.4"];
/// Skip numbers of Fig. 10.
pub const FIG_10: [u16; 2] = [0, 8];

/// What a run is for, which decides how long it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NicsRunKind {
    /// The testbed of the paper.
    Published,
    /// The same with another assumption.
    Swept,
    /// NICs on a switch.
    Switched,
    /// The access lines of a house.
    Wan,
    /// A NIC fails and returns.
    Failure,
}

impl NicsRunKind {
    /// True for runs over the testbed of the paper.
    pub const fn is_published(self) -> bool {
        matches!(self, NicsRunKind::Published | NicsRunKind::Swept)
    }
}

/// What frames cost the sending host, in microseconds.
///
/// The paper names a "Pentium III, 1 GHz". Costs follow from the speeds that it prints. UDP at 914 Mbit/s is
/// a datagram of 1472 B each 12.9 us. TCP over the wide NIC alone at 689 Mbit/s is a segment of 1448 B each
/// 16.8 us: 3.9 us more, which is half of an ACK. While a program observed retransmissions, the best was 373
/// Mbit/s, a segment each 31.1 us. If the program looks at each frame sent and each ACK, it takes 9.5 us for
/// each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FrameCosts {
    /// A frame that is sent.
    pub send: f64,
    /// An ACK that is received.
    pub ack: f64,
}

/// No program observes.
pub const IDLE: FrameCosts = FrameCosts { send: 12.9, ack: 7.8 };
/// Retransmissions are observed, as in Figs. 9 and 10 of the paper.
pub const OBSERVED: FrameCosts = IDLE.with_observer(9.5);

impl FrameCosts {
    /// An observing program takes so long for each frame.
    pub const fn with_observer(self, each: f64) -> Self {
        FrameCosts { send: self.send + each, ack: self.ack + each }
    }
    /// As settings of the paper's scenario.
    fn settings(self) -> [Setting; 2] {
        [("send", self.send), ("receive_ack", self.ack)].map(|(key, micros)| {
            set(format!("hosts.a.processor.{key}"), format!("{} ns", (micros * 1e3).round() as u64))
        })
    }
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NicsCase {
    pub kind: NicsRunKind,
    /// For people.
    pub name: String,
    /// The scenario, without settings.
    pub text: String,
    settings: Vec<Setting>,
    /// Rates and windows over time are kept.
    pub curves: bool,
    datagrams: bool,
}

impl NicsCase {
    /// A scenario of its own.
    pub fn of(kind: NicsRunKind, name: String, text: String) -> Self {
        NicsCase { kind, name, text, settings: Vec::new(), curves: false, datagrams: false }
    }
    /// The testbed: a ratio, a skip number, and costs of frames. The window is never below S + 1 segments.
    pub fn published(ratio: &str, skip: u16, costs: FrameCosts) -> Self {
        let name = format!("{ratio}, S = {skip}");
        let mut case = NicsCase::of(NicsRunKind::Published, name, TESTBED.to_owned())
            .with("hosts.a.multi_nic.ratio", ratio)
            .with("hosts.b.multi_nic.ratio", ratio)
            .with("hosts.a.multi_nic.skip", &skip.to_string())
            .with("flows.bulk.sender.cwnd_floor", &format!("{} packets", skip.saturating_add(1)));
        case.settings.extend(costs.settings());
        case
    }
    /// Fig. 9: 90/10, retransmissions are observed.
    pub fn at_90(skip: u16) -> Self {
        NicsCase::published(RATIOS[0], skip, OBSERVED)
    }
    /// 99.6/0.4, not observed.
    pub fn at_99(skip: u16) -> Self {
        NicsCase::published(RATIOS[1], skip, IDLE)
    }
    /// Fig. 10: 90/10 with the receive window that Linux 2.2 had by default, 32,120 B, and finer bins.
    pub fn fig_10(skip: u16) -> Self {
        let case = NicsCase::at_90(skip).with("flows.bulk.receiver.window", "22 packets");
        case.with("trace.bin", "1 ms").drawn()
    }
    /// TCP over the wide NIC of the testbed alone.
    pub fn alone(costs: FrameCosts) -> Self {
        let case = NicsCase::published("90/10", 0, costs).with("hosts.a.multi_nic.extended_arp", "false");
        case.called("the wide NIC alone")
    }
    /// Datagrams over both NICs of the testbed, as fast as the sender can.
    pub fn udp(ratio: &str, costs: FrameCosts) -> Self {
        let case = NicsCase::published(ratio, 0, costs).with_datagrams("1200 Mbit/s");
        case.called(&format!("UDP, {ratio}"))
    }
    /// The same with another name.
    pub fn called(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }
    /// The same with a setting.
    pub fn with(mut self, key: &str, value: &str) -> Self {
        self.settings.push(set(key, value));
        self
    }
    /// The same with rates and windows over time.
    pub fn drawn(mut self) -> Self {
        self.curves = true;
        self
    }
    /// The same with a stream of full datagrams from `a` to `b` in place of transfers.
    pub fn with_datagrams(mut self, rate: &str) -> Self {
        self.datagrams = true;
        self.text.push_str(&format!(
            "\n[[datagrams]]\nname = \"stream\"\nfrom = \"a\"\nto = \"b\"\nrate = \"{rate}\"\n\
             payload = \"1472 B\"\nstart = \"{DATAGRAMS_BEGIN}\"\n"
        ));
        self
    }

    /// The scenario, run for `time`, with `more` on top.
    ///
    /// # Errors
    /// What the settings make impossible.
    pub(crate) fn scenario(&self, time: Span, more: &WorldAssumptions) -> Result<Scenario, MeasureError> {
        let mut all = vec![set("duration", time.to_string())];
        if self.datagrams {
            all.push(set("flows.*.start", (time - AFTERWARDS).to_string()));
        }
        all.extend(self.settings.iter().cloned());
        let parts = [
            ("sender-host", "hosts.a"),
            ("receiver-host", "hosts.b"),
            ("wide-acks", "links.a-wide.backward"),
            ("narrow-acks", "links.a-narrow.backward"),
            ("wide-data", "links.b-wide.forward"),
            ("narrow-data", "links.b-narrow.forward"),
            ("sender", "flows.bulk.sender"),
            ("receiver", "flows.bulk.receiver"),
        ];
        more.apply(&mut all, &parts.map(|(name, table)| (name, table.to_owned())));
        let name = if self.text.starts_with(TESTBED) { FILE } else { self.name.as_str() };
        scenario(&self.text, name, &all)
    }
}

impl fmt::Display for NicsCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}

/// A measurement of TCP that the paper prints. Its figures are not readable: only what the text says.
pub struct PublishedSkip {
    /// Shares of the wide and the narrow NIC.
    pub ratio: &'static str,
    pub skip: u16,
    /// Mbit/s.
    pub goodput: f64,
    /// Retransmissions in percent; none: not observed.
    pub resent: Option<f64>,
}

/// Without order, at 90/10; with the best skip number; and with the best ratio and skip number, not observed.
pub const PUBLISHED: [PublishedSkip; 3] = [
    PublishedSkip { ratio: RATIOS[0], skip: 0, goodput: 143.0, resent: Some(9.79) },
    PublishedSkip { ratio: RATIOS[0], skip: 8, goodput: 373.0, resent: Some(7.17) },
    PublishedSkip { ratio: RATIOS[1], skip: 18, goodput: 714.0, resent: None },
];
/// How much faster it gets at 90/10: 373/143.
pub const GAIN: f64 = 2.6;
/// By how much fewer segments are retransmitted, in percent.
pub const FEWER: f64 = 26.8;
/// How much larger the window is (Fig. 10).
pub const WINDOW: f64 = 3.0;
/// UDP at 90/10, in Mbit/s.
pub const UDP: f64 = 914.0;
/// TCP over the NIC of 1 Gbit/s alone, in Mbit/s.
pub const ALONE: f64 = 689.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: costs that do not explain the speeds from which they are said to follow.
    #[test]
    fn costs_explain_the_printed_speeds() {
        // The most that TCP can reach with an ACK for every two segments.
        let tcp = |costs: FrameCosts| 1_448.0 * 8.0 / (costs.send + costs.ack / 2.0);
        assert!((tcp(IDLE) / ALONE - 1.0).abs() < 0.002, "{}", tcp(IDLE));
        assert!((1_472.0 * 8.0 / IDLE.send / UDP - 1.0).abs() < 0.002);
        assert!((tcp(OBSERVED) / PUBLISHED[1].goodput - 1.0).abs() < 0.002, "{}", tcp(OBSERVED));
        assert_eq!(OBSERVED.settings()[0].1, "22400 ns");
    }

    /// Breaks: a setting does not reach the scenario, or a floor is below S + 1.
    #[test]
    fn settings_reach_the_scenario() {
        let case = NicsCase::published("99.6/0.4", 18, IDLE).with("hosts.a.multi_nic.hold", "1 ms");
        let time = Span::from_secs(2);
        let scenario =
            case.scenario(time, &WorldAssumptions::literal(&[set("hosts.a.multi_nic.hops", "3")])).unwrap();
        let config = scenario.multi_nic("a").unwrap();
        assert_eq!((config.skip, config.hold, config.hops), (Some(18), Span::from_millis(1), 3));
        assert_eq!(scenario.duration, time);
        assert_eq!(scenario.flows[0].sender.cwnd_floor.unwrap().get(), 19);
        let udp = NicsCase::udp("90/10", IDLE).scenario(time, &WorldAssumptions::default()).unwrap();
        assert_eq!((udp.datagrams.len(), udp.flows[0].start), (1, time - AFTERWARDS));
    }
}
