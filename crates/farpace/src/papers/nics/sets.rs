//! Sets of cards other than the paper's: on one switch, and lines of a house.

use super::case::{Case, Kind};

/// A line with a card at both ends.
#[derive(Clone, Copy, Debug)]
pub struct Wire {
    /// Its name.
    pub name: &'static str,
    /// Mbit/s.
    pub mbit: u32,
    /// One way, in ms.
    pub delay_ms: u32,
    /// Towards the sender, Mbit/s.
    pub back_mbit: u32,
}

const fn card(name: &'static str, mbit: u32) -> Wire {
    Wire { name, mbit, delay_ms: 0, back_mbit: mbit }
}

/// Two hosts and what lies between.
#[derive(Clone, Copy, Debug)]
pub struct Set {
    /// For rows.
    pub id: &'static str,
    /// In words.
    pub name: &'static str,
    /// In the order of cards.
    pub wires: &'static [Wire],
    /// Buffers of both TCPs.
    pub buffer: &'static str,
    /// Bins of readings.
    bin: &'static str,
    /// Jitter of the last card's receive interrupts in microseconds.
    pub jitter_us: u32,
}

const fn wired(id: &'static str, name: &'static str, wires: &'static [Wire]) -> Set {
    Set { id, name, wires, buffer: "2 MB", bin: "1 ms", jitter_us: 0 }
}

const PAIR: &[Wire] = &[card("wide", 1_000), card("narrow", 100)];

/// Cards on one switch.
pub const WIRED: [Set; 5] = [
    wired("1000-100", "1000 + 100", PAIR),
    wired("1000-1000", "1000 + 1000", &[card("first", 1_000), card("second", 1_000)]),
    wired("1000-100-10", "1000 + 100 + 10", &[card("wide", 1_000), card("narrow", 100), card("least", 10)]),
    wired("10g-1g", "10G + 1G", &[card("wide", 10_000), card("narrow", 1_000)]),
    wired(
        "2.5g-1g-100",
        "2.5G + 1G + 100",
        &[card("wide", 2_500), card("middle", 1_000), card("narrow", 100)],
    ),
];

const fn jittered(id: &'static str, name: &'static str, jitter_us: u32) -> Set {
    Set { jitter_us, ..wired(id, name, PAIR) }
}

/// The first with jitter on the narrow card.
pub const JITTERED: [Set; 3] = [
    jittered("1000-100-j20", "1000 + 100, jitter 20 us", 20),
    jittered("1000-100-j50", "1000 + 100, jitter 50 us", 50),
    jittered("1000-100-j100", "1000 + 100, jitter 100 us", 100),
];

/// Lines of a house, at the other end of which stands a server that knows of all.
pub const WAN: Set = Set {
    id: "wan",
    name: "DSL 80 + satellite 180 + mobile 150",
    wires: &[
        Wire { name: "dsl", mbit: 80, delay_ms: 20, back_mbit: 20 },
        Wire { name: "satellite", mbit: 180, delay_ms: 45, back_mbit: 20 },
        Wire { name: "mobile", mbit: 150, delay_ms: 30, back_mbit: 30 },
    ],
    buffer: "16 MB",
    bin: "20 ms",
    jitter_us: 0,
};

/// Orders in the tables.
pub const ORDERS: [&str; 7] = ["earliest", "skip", "round-robin", "flow-hash", "min-rtt", "blest", "ecf"];

/// TCPs besides that of today: those that count duplicates, and one that learns of reordering.
pub const TCPS: [&str; 3] = ["newreno", "rfc6675", "linux-2.6.24"];

/// Whether the receiving host puts frames in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// TCP sees frames as they come.
    Stock,
    /// It does.
    Resequences,
}

impl Receiver {
    /// Both.
    pub const BOTH: [Receiver; 2] = [Receiver::Stock, Receiver::Resequences];
    /// In rows.
    pub const fn id(self) -> &'static str {
        match self {
            Receiver::Stock => "stock",
            Receiver::Resequences => "resequenced",
        }
    }
}

impl Set {
    /// True if the cards are on one switch.
    pub fn is_switched(&self) -> bool {
        self.wires.iter().all(|wire| wire.delay_ms == 0)
    }
    /// The sum of what the lines carry of TCP's payload, Mbit/s: 1448 of each 1538 B.
    pub fn payload(&self) -> f64 {
        self.wires.iter().map(|wire| f64::from(wire.mbit)).sum::<f64>() * 1_448.0 / 1_538.0
    }
    /// The same of datagrams: 1472 of 1538 B.
    pub fn datagrams(&self) -> f64 {
        self.payload() * 1_472.0 / 1_448.0
    }
    /// The widest card.
    fn widest(&self) -> Option<&'static Wire> {
        self.wires.iter().max_by_key(|wire| wire.mbit)
    }
    /// The skip number that two lines after one another ask for.
    fn skip(&self) -> u32 {
        let narrowest = self.wires.iter().map(|wire| wire.mbit).min().unwrap_or(1);
        2 * (self.widest().map_or(0, |wire| wire.mbit) / narrowest.max(1)).saturating_sub(1)
    }
    fn kind(&self) -> Kind {
        if self.is_switched() { Kind::Wired } else { Kind::Wan }
    }

    /// One transfer with an order.
    pub fn case(&self, order: &str, receiver: Receiver) -> Case {
        let name = format!("{}, {order}, {}", self.name, receiver.id());
        Case::of(self.kind(), name, self.text(self.wires, order, receiver, &["first"]))
    }
    /// One transfer with the order `earliest` and another TCP.
    pub fn tcp(&self, profile: &str) -> Case {
        let mut case = self.case("earliest", Receiver::Stock);
        case.name = format!("{}, earliest, {profile}", self.name);
        let keys = ["flows.first.sender.profile", "flows.first.receiver.profile"];
        keys.into_iter().fold(case, |case, key| case.with(key, profile))
    }
    /// One transfer by the widest card alone.
    pub fn single(&self) -> Case {
        let name = format!("{}, the widest alone", self.name);
        let wires: Vec<Wire> = self.widest().copied().into_iter().collect();
        Case::of(self.kind(), name, self.text(&wires, "earliest", Receiver::Stock, &["first"]))
    }
    /// Two transfers at once.
    pub fn two(&self, order: &str, receiver: Receiver) -> Case {
        let name = format!("{}, {order}, two transfers", self.name);
        Case::of(self.kind(), name, self.text(self.wires, order, receiver, &["first", "second"]))
    }
    /// Datagrams, a little more than the cards carry.
    pub fn udp(&self, order: &str) -> Case {
        let name = format!("{}, {order}, datagrams", self.name);
        let text = self.text(self.wires, order, Receiver::Stock, &["first"]);
        let rate = format!("{} kbit/s", (self.datagrams() * 1_020.0) as u64);
        Case::of(self.kind(), name, text).with_datagrams(&rate)
    }

    /// The scenario.
    fn text(&self, wires: &[Wire], order: &str, receiver: Receiver, flows: &[&str]) -> String {
        let switched = self.is_switched();
        let hops = if switched { 2 } else { 1 };
        let mut text = format!(
            "title = \"{}\"\n\n[hosts.a.multi_nic]\norder = \"{order}\"\nhops = {hops}\n\n[hosts.b.multi_nic]\norder = \
             \"{order}\"\nhops = {hops}\n",
            self.name
        );
        if receiver == Receiver::Resequences {
            let time = if switched { "5 ms" } else { "100 ms" };
            text.push_str(&format!("resequence = {{ time = \"{time}\", bytes = \"{}\" }}\n", self.buffer));
        }
        if switched {
            text.push_str("\n[switches.sw]\n");
        }
        for (n, wire) in wires.iter().enumerate() {
            let Wire { name, mbit, delay_ms, back_mbit } = wire;
            if switched {
                let jitter = if self.jitter_us > 0 && n + 1 == wires.len() {
                    format!("forward = {{ interrupts = {{ jitter = \"{} us\" }} }}\n", self.jitter_us)
                } else {
                    String::new()
                };
                for (link, between, more) in [("a", "\"a\", \"sw\"", ""), ("b", "\"sw\", \"b\"", &jitter)] {
                    text.push_str(&format!(
                        "\n[[links]]\nname = \"{link}-{name}\"\nbetween = [{between}]\nrate = \"{mbit} Mbit/s\"\ndelay = \"500 \
                         ns\"\n{more}"
                    ));
                }
            } else {
                text.push_str(&format!(
                    "\n[[links]]\nname = \"{name}\"\nbetween = [\"a\", \"b\"]\nrate = \"{mbit} Mbit/s\"\ndelay = \"{delay_ms} \
                     ms\"\nbackward = {{ rate = \"{back_mbit} Mbit/s\" }}\n"
                ));
            }
        }
        // What is held back by its skip number must not be all that the window allows.
        let floor = match order {
            "skip" => format!(", cwnd_floor = \"{} packets\"", 2 * self.skip() + 2),
            _ => String::new(),
        };
        for flow in flows {
            text.push_str(&format!(
                "\n[[flows]]\nname = \"{flow}\"\nfrom = \"a\"\nto = \"b\"\nsize = \"400 GB\"\nsender = {{ send_buffer = \"{0}\"{floor} }}\n\
                 receiver = {{ receive_buffer = \"{0}\" }}\n",
                self.buffer
            ));
        }
        text.push_str(&format!("\n[trace]\nbin = \"{}\"\n", self.bin));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::nics::failure;
    use crate::papers::nics::turns;
    use farpace_units::Span;

    /// Breaks: a case is refused by the scenario reader in the middle of a long measurement.
    #[test]
    fn every_case_has_a_scenario() {
        let mut cases = turns::cases();
        cases.extend([failure::case(true), failure::case(false)]);
        for set in WIRED.iter().chain(&JITTERED).chain([&WAN]) {
            for order in ORDERS {
                cases.extend(Receiver::BOTH.map(|receiver| set.case(order, receiver)));
            }
            let two = set.two("earliest", Receiver::Resequences);
            cases.extend([set.single(), two, set.udp("earliest")]);
        }
        for case in cases {
            let scenario = case.scenario(Span::from_secs(10), &[]);
            assert!(scenario.is_ok(), "{case}: {scenario:?}");
        }
    }

    /// Breaks: what shares are shares of.
    #[test]
    fn the_sum_is_payload() {
        assert!((WIRED[0].payload() - 1_100.0 * 1_448.0 / 1_538.0).abs() < 1e-9);
        assert!((WAN.datagrams() - 410.0 * 1_472.0 / 1_538.0).abs() < 1e-9);
        assert!(WIRED[0].is_switched() && !WAN.is_switched());
    }
}
