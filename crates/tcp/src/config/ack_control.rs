//! Asking the peer for acknowledgments that are not held back.

use farpace_units::Packets;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the sender asks for ACKs at once, and how the receiver answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AckControl {
    /// Neither asks nor answers.
    #[default]
    Off,
    /// CDL as the thesis has it: a flag bit in place of ACK asks, and beside ACK confirms. Both ends must be set to it; most
    /// firewalls drop such segments.
    Classic,
    /// CDL by options, ACK always set: the form for everywhere.
    Safe,
    /// The same with the flag bit in place of the option where the peer can, else `safe`.
    Flag,
    /// The TCP ACK rate request option (draft-ietf-tcpm-ack-rate-request), for peers of other make.
    Tarr,
    /// Nothing is agreed on: an old byte follows, which every TCP answers at once.
    Unilateral,
}

/// Which segments ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AskFor {
    /// The one whose round trip is timed: one at a time.
    Rtt,
    /// All in slow start.
    SlowStart,
    /// The one that fills the window.
    WindowEnd,
    /// The last one for which there is data.
    FlightEnd,
    /// The first ones after a pause.
    AfterIdle,
    /// All while the congestion control measures the empty path (BBR's ProbeRTT).
    ProbeRtt,
    /// Every one.
    Everything,
    /// The timed one, and those of slow start, of the end of a flight and after a pause, as long as it pays.
    Auto,
}

impl AskFor {
    /// All of them.
    pub const ALL: [AskFor; 8] = [
        AskFor::Rtt,
        AskFor::SlowStart,
        AskFor::WindowEnd,
        AskFor::FlightEnd,
        AskFor::AfterIdle,
        AskFor::ProbeRtt,
        AskFor::Everything,
        AskFor::Auto,
    ];
}

/// A set of [`AskFor`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AskSet(u8);

impl AskSet {
    /// True if `when` is one of them.
    pub const fn has(self, when: AskFor) -> bool {
        self.0 >> when as u8 & 1 == 1
    }
    /// True if there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<AskFor> for AskSet {
    fn from_iter<I: IntoIterator<Item = AskFor>>(all: I) -> Self {
        AskSet(all.into_iter().fold(0, |set, when| set | 1 << when as u8))
    }
}

/// The sender's and the receiver's part in the control of ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asking {
    /// How.
    pub control: AckControl,
    /// When.
    pub when: AskSet,
    /// And every so many segments; none: no such rule.
    pub every: Option<Packets>,
    /// The flag bit of `classic` and `flag`, counted from the most significant bit of the header's 13th byte: 4, 5 or 6.
    pub bit: u8,
}

impl Default for Asking {
    fn default() -> Self {
        Asking { control: AckControl::Off, when: AskSet::default(), every: None, bit: DEFAULT_BIT }
    }
}

/// The first of the three reserved bits.
pub const DEFAULT_BIT: u8 = 4;
