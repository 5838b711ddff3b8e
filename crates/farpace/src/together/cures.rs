//! The cures, and what each changes in a scenario.

use std::fmt;

/// What one paper cures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cure {
    /// Lost retransmissions are found (stops).
    Recovery,
    /// Bit errors are told from congestion (satellite).
    Control,
    /// ACKs that the receiver holds back are asked for (ack).
    Asking,
    /// Cards send evenly, at the rate of their contracts (pacing).
    Pacing,
    /// Frames of one connection go by all cards (nics).
    Cards,
}

impl Cure {
    /// All of them, in the order of the papers.
    pub const ALL: [Cure; 5] = [Cure::Recovery, Cure::Control, Cure::Asking, Cure::Pacing, Cure::Cards];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Cure::Recovery => "recovery",
            Cure::Control => "control",
            Cure::Asking => "asking",
            Cure::Pacing => "pacing",
            Cure::Cards => "cards",
        }
    }
    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Some of the cures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cures(u8);

impl Cures {
    /// None of them.
    pub const NONE: Cures = Cures(0);

    /// Every one.
    pub fn all() -> Cures {
        Cure::ALL.into_iter().fold(Cures::NONE, Cures::with)
    }
    /// These and one more.
    #[must_use]
    pub const fn with(self, cure: Cure) -> Cures {
        Cures(self.0 | cure.bit())
    }
    /// These but one.
    #[must_use]
    pub const fn without(self, cure: Cure) -> Cures {
        Cures(self.0 & !cure.bit())
    }
    /// True if `cure` is among them.
    pub const fn has(self, cure: Cure) -> bool {
        self.0 & cure.bit() != 0
    }
}

/// How cures are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Era {
    /// As the papers print them, in a Linux 2.6.17.
    Printed,
    /// As one would do it today; without a cure, as RFCs 5681 and 6675 say.
    Today,
}

impl Era {
    /// Both.
    pub const ALL: [Era; 2] = [Era::Printed, Era::Today];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Era::Printed => "as printed",
            Era::Today => "of today",
        }
    }
    /// The values of a scenario (one with hosts `ship` and `shore`, links `wide` and `narrow` and the flow `bulk`) that make it one with
    /// these cures and no others.
    pub fn sets(self, cures: Cures) -> Vec<(String, String)> {
        let printed = self == Era::Printed;
        let pick = |cure: Cure, [old, new]: [&'static str; 2], off: &'static str| match () {
            () if !cures.has(cure) => off,
            () if printed => old,
            () => new,
        };
        let before = if printed { "linux-2.6.17" } else { "rfc6675" };
        let asking = pick(Cure::Asking, ["classic", "tarr"], "off");
        let scheduler = pick(Cure::Pacing, ["psp", "edf"], "fifo");
        let mut sets = vec![
            ("flows.bulk.sender.profile", pick(Cure::Recovery, ["aist-fix", "modern"], before)),
            ("flows.bulk.sender.congestion", pick(Cure::Control, ["star", "farpace"], "reno")),
            ("flows.bulk.sender.ack_control", asking),
            ("flows.bulk.receiver.ack_control", asking),
            ("links.wide.forward.pacing.scheduler", scheduler),
            ("links.narrow.forward.pacing.scheduler", scheduler),
        ];
        if printed {
            sets.push(("hosts.ship.multi_nic.order", "skip"));
        }
        let quoted = |(key, value): (&str, &str)| (key.to_owned(), format!("{value:?}"));
        let mut sets: Vec<(String, String)> = sets.into_iter().map(quoted).collect();
        if !cures.has(Cure::Cards) {
            sets.push(("hosts.ship.multi_nic.extended_arp".to_owned(), "false".to_owned()));
        }
        if printed {
            // The paper's receiver takes frames as they come.
            sets.push(("hosts.shore.multi_nic".to_owned(), "{}".to_owned()));
        }
        sets
    }
}

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sender {
    /// farpace, with some of the cures.
    Cured(Era, Cures),
    /// A TCP as in Linux 6.x with this congestion control, from cards with or without the cures of the link layer.
    Outsider {
        /// `cubic` or `bbr3`.
        congestion: &'static str,
        /// Cards are paced and used together, as of today.
        cards: bool,
    },
}

impl Sender {
    /// The values of a scenario, as with [`Era::sets`].
    pub fn sets(self) -> Vec<(String, String)> {
        let (congestion, cards) = match self {
            Sender::Cured(era, cures) => return era.sets(cures),
            Sender::Outsider { congestion, cards } => (congestion, cards),
        };
        let below = if cards { Cures::NONE.with(Cure::Pacing).with(Cure::Cards) } else { Cures::NONE };
        let mut sets = Era::Today.sets(below);
        for (key, value) in &mut sets {
            match key.as_str() {
                "flows.bulk.sender.profile" => *value = "\"linux\"".to_owned(),
                "flows.bulk.sender.congestion" => *value = format!("{congestion:?}"),
                _ => {}
            }
        }
        sets
    }
}

impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Sender::Cured(_, Cures::NONE) => f.write_str("no cure"),
            Sender::Cured(_, cures) if cures == Cures::all() => f.write_str("all five"),
            Sender::Cured(_, cures) => {
                let of = |has: bool| Cure::ALL.into_iter().filter(move |cure| cures.has(*cure) == has);
                let (on, off): (Vec<Cure>, Vec<Cure>) = (of(true).collect(), of(false).collect());
                match (on.as_slice(), off.as_slice()) {
                    ([only], _) => write!(f, "{} alone", only.name()),
                    (_, [but]) => write!(f, "all but {}", but.name()),
                    (some, _) => f.write_str(&some.iter().map(|c| c.name()).collect::<Vec<_>>().join(" + ")),
                }
            }
            Sender::Outsider { congestion, cards } => {
                let name = if congestion == "cubic" { "Linux, CUBIC" } else { "Linux, BBRv3" };
                write!(f, "{name}{}", if cards { ", with pacing and cards" } else { "" })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a cure that is said to be out is in, or two kinds of runs are called the same.
    #[test]
    fn every_combination_has_its_own_values_and_name() {
        for era in Era::ALL {
            let combination = |bits: u8| {
                let has = |cure: &Cure| bits & cure.bit() != 0;
                Cure::ALL.into_iter().filter(has).fold(Cures::NONE, Cures::with)
            };
            let mut sets: Vec<_> = (0..32).map(|bits| era.sets(combination(bits))).collect();
            let mut names: Vec<_> =
                (0..32).map(|bits| Sender::Cured(era, combination(bits)).to_string()).collect();
            sets.sort();
            sets.dedup();
            names.sort();
            names.dedup();
            assert_eq!((sets.len(), names.len()), (32, 32), "{era:?}");
        }
        assert_eq!(
            Sender::Cured(Era::Today, Cures::all().without(Cure::Pacing)).to_string(),
            "all but pacing"
        );
        assert_eq!(Sender::Cured(Era::Today, Cures::NONE.with(Cure::Cards)).to_string(), "cards alone");
    }
}
