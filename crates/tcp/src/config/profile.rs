//! Profiles: sets of choices with a name.

use super::{
    Abc, Congestion, Detection, DsackScope, Hint, Linux26, LostRtx, Modern, Reduction, SackSort,
    TimeoutProcedure,
};
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
    /// What BSD/OS 2.1 and others had of 4.3BSD Net/2: Reno by ACKs, clocks of 500 ms, ACKs at the ticks of 200 ms.
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
    /// For far paths: the modern recovery with AEN, and a congestion control that knows bit errors from congestion.
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

    /// The first slow-start threshold that the kernel's BIC had; 2.6.22 took it away.
    pub(super) const fn initial_ssthresh(self, congestion: Congestion) -> Option<Packets> {
        match (self, congestion) {
            (Profile::Linux2617 | Profile::Linux2617Ab, Congestion::Bic) => Some(Packets::new(100)),
            _ => None,
        }
    }

    /// The switches of the historical profiles; none for the others.
    pub const fn linux26(self) -> Option<Linux26> {
        let k2617 = Linux26 {
            abc: Abc::Buggy,
            sack_sort: SackSort::Buggy,
            hint: Hint::EveryBlock,
            dsack_scope: DsackScope::Ack,
            lost_rtx: LostRtx::PerBlock,
            reordering: Packets::new(3),
            reduction: Reduction::RateHalving,
        };
        let k2622 = Linux26 {
            abc: Abc::Off,
            sack_sort: SackSort::Ok,
            hint: Hint::FirstBlock,
            dsack_scope: DsackScope::FirstBlock,
            ..k2617
        };
        Some(match self {
            Profile::Linux2617 => k2617,
            Profile::Linux2617Ab => Linux26 { abc: Abc::Fixed, sack_sort: SackSort::Ok, ..k2617 },
            Profile::Linux2622 => k2622,
            Profile::AistFix => Linux26 { hint: Hint::None, lost_rtx: LostRtx::NewBlocks, ..k2622 },
            Profile::AistFixMaxEnd => Linux26 { hint: Hint::None, lost_rtx: LostRtx::MaxEnd, ..k2622 },
            Profile::Linux2624 => {
                Linux26 { lost_rtx: LostRtx::NewlySacked, reduction: Reduction::RateHalvingProgress, ..k2622 }
            }
            _ => return None,
        })
    }

    /// The switches of the modern profiles; none for the others.
    pub const fn modern(self) -> Option<Modern> {
        let full = Modern {
            detection: Detection::Rack,
            reduction: Reduction::Prr,
            tail_loss_probe: true,
            timeout: TimeoutProcedure::FRto,
            undo: true,
        };
        let counting = Modern {
            detection: Detection::Rfc6675,
            tail_loss_probe: false,
            timeout: TimeoutProcedure::Conventional,
            undo: false,
            ..full
        };
        Some(match self {
            Profile::Rfc6675 => Modern { reduction: Reduction::AtOnce, ..counting },
            Profile::Prr => counting,
            Profile::RackTlp | Profile::Modern => full,
            Profile::Farpace => Modern { timeout: TimeoutProcedure::Aen, ..full },
            _ => return None,
        })
    }
}
