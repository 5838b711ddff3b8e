//! Sets of NICs other than the paper's: on one switch, and the access lines of a house; and a NIC that fails.

use super::cases::{NicsCase, NicsRunKind};
use super::striped::StripedRun;
use farpace_units::Span;

/// A link with a NIC at both ends.
#[derive(Clone, Copy, Debug)]
pub struct NicLink {
    pub name: &'static str,
    /// Rate in Mbit/s.
    pub mbit: u32,
    /// One-way delay, in ms.
    delay_ms: u32,
    /// Rate towards the sender, in Mbit/s.
    back_mbit: u32,
}

const fn nic(name: &'static str, mbit: u32) -> NicLink {
    NicLink { name, mbit, delay_ms: 0, back_mbit: mbit }
}

/// Two hosts and the links between them.
#[derive(Clone, Copy, Debug)]
pub struct NicSet {
    /// For programs.
    pub id: &'static str,
    /// For people.
    pub name: &'static str,
    /// In the order of NICs.
    pub links: &'static [NicLink],
    /// Buffers of both TCPs.
    buffer: &'static str,
    /// Width of bins.
    bin: &'static str,
    /// Jitter of the last NIC's receive interrupts, in us.
    pub jitter_us: u32,
}

const fn switched(id: &'static str, name: &'static str, links: &'static [NicLink]) -> NicSet {
    NicSet { id, name, links, buffer: "2 MB", bin: "1 ms", jitter_us: 0 }
}

const PAIR: &[NicLink] = &[nic("wide", 1_000), nic("narrow", 100)];

/// NICs on one switch.
pub const SWITCHED: [NicSet; 5] = [
    switched("1000-100", "1000 + 100", PAIR),
    switched("1000-1000", "1000 + 1000", &[nic("first", 1_000), nic("second", 1_000)]),
    switched("1000-100-10", "1000 + 100 + 10", &[nic("wide", 1_000), nic("narrow", 100), nic("least", 10)]),
    switched("10g-1g", "10G + 1G", &[nic("wide", 10_000), nic("narrow", 1_000)]),
    switched(
        "2.5g-1g-100",
        "2.5G + 1G + 100",
        &[nic("wide", 2_500), nic("middle", 1_000), nic("narrow", 100)],
    ),
];

/// The first one with jitter on the narrow NIC.
pub const JITTERED: [NicSet; 3] = [
    NicSet { jitter_us: 20, ..switched("1000-100-j20", "1000 + 100, jitter 20 us", PAIR) },
    NicSet { jitter_us: 50, ..switched("1000-100-j50", "1000 + 100, jitter 50 us", PAIR) },
    NicSet { jitter_us: 100, ..switched("1000-100-j100", "1000 + 100, jitter 100 us", PAIR) },
];

/// The access lines of a house. The server at the other end knows all of them.
pub const WAN: NicSet = NicSet {
    id: "wan",
    name: "DSL 80 + satellite 180 + mobile 150",
    links: &[
        NicLink { name: "dsl", mbit: 80, delay_ms: 20, back_mbit: 20 },
        NicLink { name: "satellite", mbit: 180, delay_ms: 45, back_mbit: 20 },
        NicLink { name: "mobile", mbit: 150, delay_ms: 30, back_mbit: 30 },
    ],
    buffer: "16 MB",
    bin: "20 ms",
    jitter_us: 0,
};

/// Send orders in the tables.
pub const ORDERS: [&str; 7] = ["earliest", "skip", "round-robin", "flow-hash", "min-rtt", "blest", "ecf"];

/// TCPs besides the modern one: those that count duplicate ACKs, and one that learns of reordering.
pub const TCPS: [&str; 3] = ["newreno", "rfc6675", "linux-2.6.24"];

/// What the receiving host does with frames that overtook others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceivingHost {
    /// TCP sees frames as they come.
    Stock,
    /// They are put in order below TCP.
    Resequences,
}

impl ReceivingHost {
    pub const BOTH: [ReceivingHost; 2] = [ReceivingHost::Stock, ReceivingHost::Resequences];

    /// For programs.
    pub const fn id(self) -> &'static str {
        match self {
            ReceivingHost::Stock => "stock",
            ReceivingHost::Resequences => "resequenced",
        }
    }
}

impl NicSet {
    /// True if the NICs are on one switch.
    pub fn is_switched(&self) -> bool {
        self.links.iter().all(|link| link.delay_ms == 0)
    }
    /// The sum of the rates, in Mbit/s.
    fn mbit(&self) -> f64 {
        self.links.iter().map(|link| f64::from(link.mbit)).sum()
    }
    /// The sum of what the links carry of TCP's payload, in Mbit/s: 1448 of each 1538 B.
    pub fn payload(&self) -> f64 {
        self.mbit() * 1_448.0 / 1_538.0
    }
    /// The same of datagrams: 1472 of 1538 B.
    pub fn datagrams(&self) -> f64 {
        self.payload() * 1_472.0 / 1_448.0
    }
    fn widest(&self) -> Option<&'static NicLink> {
        self.links.iter().max_by_key(|link| link.mbit)
    }
    /// The skip number that two links in a row need.
    fn skip(&self) -> u32 {
        let narrowest = self.links.iter().map(|link| link.mbit).min().unwrap_or(1);
        2 * (self.widest().map_or(0, |link| link.mbit) / narrowest.max(1)).saturating_sub(1)
    }

    fn of(
        &self,
        what: &str,
        links: &[NicLink],
        order: &str,
        receiver: ReceivingHost,
        flows: &[&str],
    ) -> NicsCase {
        let kind = if self.is_switched() { NicsRunKind::Switched } else { NicsRunKind::Wan };
        NicsCase::of(kind, format!("{}, {what}", self.name), self.text(links, order, receiver, flows))
    }
    /// One transfer with a send order.
    pub fn case(&self, order: &str, receiver: ReceivingHost) -> NicsCase {
        self.of(&format!("{order}, {}", receiver.id()), self.links, order, receiver, &["first"])
    }
    /// One transfer with the order `earliest` and another TCP.
    pub fn tcp(&self, profile: &str) -> NicsCase {
        let case = self.case("earliest", ReceivingHost::Stock);
        let case = case.called(&format!("{}, earliest, {profile}", self.name));
        case.with("flows.first.sender.profile", profile).with("flows.first.receiver.profile", profile)
    }
    /// One transfer by the widest NIC alone.
    pub fn single(&self) -> NicsCase {
        let links: Vec<NicLink> = self.widest().copied().into_iter().collect();
        self.of("the widest alone", &links, "earliest", ReceivingHost::Stock, &["first"])
    }
    /// Two transfers at once.
    pub fn two(&self, order: &str, receiver: ReceivingHost) -> NicsCase {
        self.of(&format!("{order}, two transfers"), self.links, order, receiver, &["first", "second"])
    }
    /// Datagrams, a little more than the NICs carry.
    pub fn udp(&self, order: &str) -> NicsCase {
        let case =
            self.of(&format!("{order}, datagrams"), self.links, order, ReceivingHost::Stock, &["first"]);
        case.with_datagrams(&format!("{} kbit/s", (self.datagrams() * 1_020.0) as u64))
    }

    /// The scenario.
    fn text(&self, links: &[NicLink], order: &str, receiver: ReceivingHost, flows: &[&str]) -> String {
        let switched = self.is_switched();
        let hops = if switched { 2 } else { 1 };
        let host = |name: &str| format!("\n[hosts.{name}.multi_nic]\norder = \"{order}\"\nhops = {hops}\n");
        let mut text = format!("title = \"{}\"\n{}{}", self.name, host("a"), host("b"));
        if receiver == ReceivingHost::Resequences {
            let time = if switched { "5 ms" } else { "100 ms" };
            text += &format!("resequence = {{ time = \"{time}\", bytes = \"{}\" }}\n", self.buffer);
        }
        if switched {
            text += "\n[switches.sw]\n";
        }
        for (n, &NicLink { name, mbit, delay_ms, back_mbit }) in links.iter().enumerate() {
            let mut add = |name: &str, between: &str, delay: &str, more: &str| {
                text += &format!(
                    "\n[[links]]\nname = \"{name}\"\nbetween = [{between}]\nrate = \"{mbit} Mbit/s\"\n\
                     delay = \"{delay}\"\n{more}"
                );
            };
            if switched {
                let jitters = self.jitter_us > 0 && n + 1 == links.len();
                let jitter =
                    format!("forward = {{ interrupts = {{ jitter = \"{} us\" }} }}\n", self.jitter_us);
                add(&format!("a-{name}"), "\"a\", \"sw\"", "500 ns", "");
                add(&format!("b-{name}"), "\"sw\", \"b\"", "500 ns", if jitters { &jitter } else { "" });
            } else {
                let back = format!("backward = {{ rate = \"{back_mbit} Mbit/s\" }}\n");
                add(name, "\"a\", \"b\"", &format!("{delay_ms} ms"), &back);
            }
        }
        // What waits for its skip number must not be all that the window allows.
        let floor = match order {
            "skip" => format!(", cwnd_floor = \"{} packets\"", 2 * self.skip() + 2),
            _ => String::new(),
        };
        for flow in flows {
            text += &format!(
                "\n[[flows]]\nname = \"{flow}\"\nfrom = \"a\"\nto = \"b\"\nsize = \"400 GB\"\n\
                 sender = {{ send_buffer = \"{0}\"{floor} }}\nreceiver = {{ receive_buffer = \"{0}\" }}\n",
                self.buffer
            );
        }
        text + &format!("\n[trace]\nbin = \"{}\"\n", self.bin)
    }
}

/// The NICs of which each fails in turn.
pub const FAILING: &NicSet = &SWITCHED[0];

/// A failure: of which NIC, when, and until when, in ms.
#[derive(Clone, Copy, Debug)]
pub struct NicFailure {
    nic: usize,
    pub at_ms: u32,
    pub back_ms: u32,
}

/// The failures.
pub const fn failures(quick: bool) -> [NicFailure; 2] {
    let [at, back, then, until] = if quick { [400, 800, 1_200, 1_600] } else { [2_000, 4_000, 6_000, 8_000] };
    [NicFailure { nic: 0, at_ms: at, back_ms: back }, NicFailure { nic: 1, at_ms: then, back_ms: until }]
}

/// How long the run with failures takes.
pub fn failure_time(quick: bool) -> Span {
    let [_, last] = failures(quick);
    Span::from_millis(u64::from(last.back_ms + last.at_ms / 6))
}

/// The run in which each NIC fails and returns under load.
pub fn failure_case(quick: bool) -> NicsCase {
    let mut case = FAILING.case("earliest", ReceivingHost::Stock);
    case.kind = NicsRunKind::Failure;
    case.name = format!("{}, a NIC dies and returns", FAILING.name);
    for f in failures(quick) {
        let lasts = f.back_ms.saturating_sub(f.at_ms);
        let outage = format!("[{{ at = \"{} ms\", lasts = \"{lasts} ms\" }}]", f.at_ms);
        for direction in ["forward", "backward"] {
            case = case.with(&format!("links.a-{}.{direction}.outages", f.name()), &outage);
        }
    }
    case.with("trace.bin", "2 ms").drawn()
}

impl NicFailure {
    /// The name of the NIC.
    pub fn name(&self) -> &'static str {
        FAILING.links.get(self.nic).map_or("", |link| link.name)
    }
    /// From the failure until the other NICs carry what they can, and from the return until all do, in ms;
    /// none: not in time.
    pub fn moved(&self, measured: Option<&StripedRun>) -> [Option<f64>; 2] {
        let Some(measured) = measured else { return [None; 2] };
        let others = FAILING.links.iter().enumerate().filter(|(n, _)| *n != self.nic);
        let others: f64 = others.map(|(_, link)| f64::from(link.mbit)).sum();
        let (at, back) = (f64::from(self.at_ms) / 1e3, f64::from(self.back_ms) / 1e3);
        let share = FAILING.payload() / FAILING.mbit();
        [
            reached(&measured.rates, at, back, others * share),
            reached(&measured.rates, back, back + 1.0, FAILING.payload()),
        ]
    }
}

/// How long after `from` 20 ms begin in which 90 % of `mbit` arrives, in ms. What comes faster than `mbit`
/// does not count: a burst after a gap does not fill the gap.
fn reached(rates: &[(f64, f64)], from: f64, to: f64, mbit: f64) -> Option<f64> {
    const LASTS: f64 = 0.02;
    const ENOUGH: f64 = 0.9;
    let begins = rates.iter().enumerate().filter(|(_, (at, _))| *at + 1e-9 >= from && *at < to);
    for (n, (at, _)) in begins {
        let stretch = rates.iter().skip(n).take_while(|(later, _)| *later < at + LASTS - 1e-9);
        let (sum, count) =
            stretch.fold((0.0, 0_u32), |(sum, count), (_, rate)| (sum + rate.min(mbit), count + 1));
        if sum / f64::from(count.max(1)) >= ENOUGH * mbit {
            return Some((at - from) * 1e3);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assumptions::WorldAssumptions;

    /// Breaks: a case is refused by the scenario reader in the middle of a long measurement.
    #[test]
    fn every_case_has_a_scenario() {
        let mut cases = vec![failure_case(true), failure_case(false)];
        for set in SWITCHED.iter().chain(&JITTERED).chain([&WAN]) {
            for order in ORDERS {
                cases.extend(ReceivingHost::BOTH.map(|receiver| set.case(order, receiver)));
            }
            let two = set.two("earliest", ReceivingHost::Resequences);
            cases.extend([set.single(), two, set.udp("earliest")]);
        }
        for case in cases {
            let scenario = case.scenario(Span::from_secs(10), &WorldAssumptions::default());
            assert!(scenario.is_ok(), "{case}: {scenario:?}");
        }
    }

    /// Breaks: what shares are shares of.
    #[test]
    fn the_sum_is_payload() {
        assert!((SWITCHED[0].payload() - 1_100.0 * 1_448.0 / 1_538.0).abs() < 1e-9);
        assert!((WAN.datagrams() - 410.0 * 1_472.0 / 1_538.0).abs() < 1e-9);
        assert!(SWITCHED[0].is_switched() && !WAN.is_switched());
    }

    /// Breaks: the time that a failure takes is read wrongly from the curve.
    #[test]
    fn the_first_good_stretch_counts() {
        let rate = |ms: u32| match ms {
            0..=99 => 1_000.0,
            100..=159 => 0.0,
            160..=165 => 500.0,
            166..=189 => 0.0,
            _ => 95.0,
        };
        let rates: Vec<(f64, f64)> = (0..400).map(|ms| (f64::from(ms) / 1e3, rate(ms))).collect();
        let after = reached(&rates, 0.1, 0.4, 100.0).unwrap();
        // A burst of 6 ms is no more than 6 ms at that rate: 20 ms are good from two bins before 190 ms on.
        assert!((after - 89.0).abs() < 3.0, "{after}");
        let hole = |ms: u32| match ms {
            0..=101 => 100.0,
            102..=107 => 0.0,
            _ => 200.0,
        };
        let rates: Vec<(f64, f64)> = (0..400).map(|ms| (f64::from(ms) / 1e3, hole(ms))).collect();
        let after = reached(&rates, 0.1, 0.4, 100.0).unwrap();
        assert!((after - 6.0).abs() < 3.0, "a hole of 6 ms, and then a burst: {after}");
        assert_eq!(reached(&rates, 0.2, 0.4, 1_000.0), None);
    }
}
