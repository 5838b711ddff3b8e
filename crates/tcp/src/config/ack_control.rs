//! Asking the peer for acknowledgments that are not held back.

use farpace_units::Packets;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the sender asks for ACKs at once, and how the receiver answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AckControlMode {
    /// Neither asks nor answers.
    #[default]
    Off,
    /// CDL with the thesis's flag bit: in place of ACK it asks, beside ACK it confirms. Both ends must be set
    /// to a classic form; most firewalls drop segments without ACK, so the path is tried out first.
    Classic,
    /// The same as the thesis prints it: the first data segment already goes without ACK.
    ClassicLiteral,
    /// CDL by options, ACK always set: the form for everywhere. A peer that knows TARR only is asked by that.
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
pub enum RequestRule {
    /// The one whose round trip is timed: one at a time.
    Rtt,
    /// All in slow start.
    SlowStart,
    /// The one that fills the window.
    WindowEnd,
    /// The last one for which there is data.
    FlightEnd,
    /// The first one after a pause, and of all.
    AfterIdle,
    /// All while the congestion control measures the empty path (BBR's ProbeRTT).
    ProbeRtt,
    /// Every one.
    Everything,
    /// The timed one, and those after which the sender has to wait: at the end of a flight, at the end of the
    /// window in slow start, after a pause. Now and then one does not ask, which tells whether it pays.
    Auto,
}

impl AckControlMode {
    /// All of them.
    pub const ALL: [AckControlMode; 7] = [
        AckControlMode::Off,
        AckControlMode::Classic,
        AckControlMode::ClassicLiteral,
        AckControlMode::Safe,
        AckControlMode::Flag,
        AckControlMode::Tarr,
        AckControlMode::Unilateral,
    ];

    /// One of the two forms with segments that have no ACK flag.
    pub const fn is_classic(self) -> bool {
        matches!(self, AckControlMode::Classic | AckControlMode::ClassicLiteral)
    }
}

impl RequestRule {
    /// All of them.
    pub const ALL: [RequestRule; 8] = [
        RequestRule::Rtt,
        RequestRule::SlowStart,
        RequestRule::WindowEnd,
        RequestRule::FlightEnd,
        RequestRule::AfterIdle,
        RequestRule::ProbeRtt,
        RequestRule::Everything,
        RequestRule::Auto,
    ];
}

/// A set of [`RequestRule`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestRules(u8);

impl RequestRules {
    /// True if `when` is one of them.
    pub const fn has(self, when: RequestRule) -> bool {
        self.0 >> when as u8 & 1 == 1
    }
    /// True if there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<RequestRule> for RequestRules {
    fn from_iter<I: IntoIterator<Item = RequestRule>>(all: I) -> Self {
        RequestRules(all.into_iter().fold(0, |set, when| set | 1 << when as u8))
    }
}

/// The sender's and the receiver's part in the control of ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckRequests {
    /// How.
    pub control: AckControlMode,
    /// When.
    pub when: RequestRules,
    /// And every so many segments; none: no such rule.
    pub every: Option<Packets>,
    /// The flag bit of `classic` and `flag`, counted from the most significant bit of the header's 13th byte:
    /// 4, 5 or 6.
    pub bit: u8,
}

impl AckRequests {
    /// None.
    pub const OFF: AckRequests =
        AckRequests { control: AckControlMode::Off, when: RequestRules(0), every: None, bit: DEFAULT_BIT };
}

impl Default for AckRequests {
    fn default() -> Self {
        AckRequests::OFF
    }
}

/// The first of the three reserved bits.
pub(super) const DEFAULT_BIT: u8 = 4;
