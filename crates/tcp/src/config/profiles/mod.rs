//! Profiles: configurations with a name.

mod linux;
mod linux26;
mod modern;
mod newreno;

use super::Config;
use farpace_units::Packets;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A named set of choices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Profile {
    /// The paper's patient: all three defects.
    #[serde(rename = "linux-2.6.17")]
    Linux2617,
    /// 2.6.17 with byte counting and block sort repaired, the third defect left.
    #[serde(rename = "linux-2.6.17+ab")]
    Linux2617Ab,
    /// 2.6.22: the third defect left.
    #[serde(rename = "linux-2.6.22")]
    Linux2622,
    /// 2.6.22 with the paper's remedy B: the one it proposes.
    #[serde(rename = "aist-fix")]
    AistFix,
    /// 2.6.22 with the paper's remedy A.
    #[serde(rename = "aist-fix-max-end")]
    AistFixMaxEnd,
    /// 2.6.24: the remedy that Linux took.
    #[serde(rename = "linux-2.6.24")]
    Linux2624,
    /// RFC 5681 and 6582 without SACK.
    #[serde(rename = "newreno")]
    NewReno,
    /// What BSD/OS 2.1 and others had of 4.3BSD Net/2: Reno by ACKs, clocks of 500 ms, ACKs at the ticks of
    /// 200 ms.
    #[serde(rename = "net2")]
    Net2,
    /// RFC 6675 as written: SACK, the window halved at once.
    #[serde(rename = "rfc6675")]
    Rfc6675,
    /// RFC 6675 with proportional rate reduction (RFC 9937).
    #[serde(rename = "prr")]
    Prr,
    /// RACK-TLP (RFC 8985) with PRR, F-RTO and undo; Reno.
    #[serde(rename = "rack-tlp")]
    RackTlp,
    /// What a good TCP does today: RACK-TLP, PRR, F-RTO, undo and CUBIC.
    #[default]
    #[serde(rename = "modern")]
    Modern,
    /// On the wire as Linux 6.x: its SYN options, ACKs and timers, RACK-TLP, PRR and CUBIC.
    #[serde(rename = "linux")]
    Linux,
    /// For far paths: the modern recovery with AEN, and a congestion control that knows bit errors from
    /// congestion.
    #[serde(rename = "farpace")]
    Farpace,
}

impl Profile {
    /// All of them.
    pub const ALL: [Profile; 14] = [
        Profile::Linux2617,
        Profile::Linux2617Ab,
        Profile::Linux2622,
        Profile::AistFix,
        Profile::AistFixMaxEnd,
        Profile::Linux2624,
        Profile::NewReno,
        Profile::Net2,
        Profile::Rfc6675,
        Profile::Prr,
        Profile::RackTlp,
        Profile::Modern,
        Profile::Linux,
        Profile::Farpace,
    ];

    /// The name as scenarios write it.
    pub const fn name(self) -> &'static str {
        match self {
            Profile::Linux2617 => "linux-2.6.17",
            Profile::Linux2617Ab => "linux-2.6.17+ab",
            Profile::Linux2622 => "linux-2.6.22",
            Profile::AistFix => "aist-fix",
            Profile::AistFixMaxEnd => "aist-fix-max-end",
            Profile::Linux2624 => "linux-2.6.24",
            Profile::NewReno => "newreno",
            Profile::Net2 => "net2",
            Profile::Rfc6675 => "rfc6675",
            Profile::Prr => "prr",
            Profile::RackTlp => "rack-tlp",
            Profile::Modern => "modern",
            Profile::Linux => "linux",
            Profile::Farpace => "farpace",
        }
    }

    /// What connections of this profile are made with where nothing else is set.
    ///
    /// Congestion controls other than the profile's own may change some of it: see
    /// [`Settings`](crate::config::Settings).
    pub fn config(self) -> Config {
        self.defaults().config
    }

    pub(super) const fn defaults(self) -> ProfileDefaults {
        match self {
            Profile::Linux2617 => linux26::LINUX_2_6_17,
            Profile::Linux2617Ab => linux26::LINUX_2_6_17_AB,
            Profile::Linux2622 => linux26::LINUX_2_6_22,
            Profile::AistFix => linux26::AIST_FIX,
            Profile::AistFixMaxEnd => linux26::AIST_FIX_MAX_END,
            Profile::Linux2624 => linux26::LINUX_2_6_24,
            Profile::NewReno => newreno::NEWRENO,
            Profile::Net2 => newreno::NET2,
            Profile::Rfc6675 => modern::RFC6675,
            Profile::Prr => modern::PRR,
            Profile::RackTlp => modern::RACK_TLP,
            Profile::Modern => modern::MODERN,
            Profile::Linux => linux::LINUX,
            Profile::Farpace => modern::FARPACE,
        }
    }
}

/// A profile: its configuration, and what follows from other settings where nothing is said of it.
pub(super) struct ProfileDefaults {
    pub config: Config,
    /// First slow-start threshold with BIC.
    pub bic_ssthresh: Option<Packets>,
    /// HyStart++ with CUBIC.
    pub hystart_with_cubic: bool,
    /// With CUBIC, segments leave a little faster than the window grows.
    pub growth_pacing_with_cubic: bool,
    /// Window and first threshold are at most 65535 bytes.
    pub unscaled: bool,
}
