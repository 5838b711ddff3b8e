//! Worlds of the paper on TCP-STAR.

use crate::world::{PaperWorld, WorldSetting};

/// A filter in STAR's and TCP-J's estimator.
const FILTER: WorldSetting = WorldSetting {
    part: "star",
    key: "abe_filter",
    value: "ewma-ack",
    printed: "a bandwidth is estimated from each ACK; no filter is printed",
    fitted: Some("the gain over TCP-J, 13.5 %"),
    plausible: "an eighth of each sample is how TCP smooths its round trip; both have the same estimator",
};

/// HSTCP and Scalable ran on Linux.
const LINUX: WorldSetting = WorldSetting {
    part: "highspeed",
    key: "profile",
    value: "linux-2.6.17",
    printed: "HSTCP and Scalable ran on Linux (its footnote 2)",
    fitted: None,
    plausible: "the Linux of 2006",
};

/// A key of the usual stack that Linux does not have.
const NOT_OF_LINUX: WorldSetting =
    WorldSetting { key: "slow_start_limit", value: "", printed: "nothing", ..LINUX };

/// All of them, the best first.
pub const WORLDS: &[PaperWorld] = &[PaperWorld {
    name: "two-systems",
    about: "STAR and TCP-J filter their estimate, HSTCP and Scalable run on Linux, NewReno counts ACKs, \
            access links carry 10 Mbit/s.",
    settings: &[
        FILTER,
        WorldSetting { part: "tcp-j", ..FILTER },
        LINUX,
        NOT_OF_LINUX,
        WorldSetting { part: "scalable", ..LINUX },
        WorldSetting { part: "scalable", ..NOT_OF_LINUX },
        WorldSetting {
            part: "reno",
            key: "profile",
            value: "newreno",
            printed: "NewReno of NetBSD 1.6.2",
            fitted: None,
            plausible: "NetBSD 1.6 has no SACK, and its NewReno grows with each ACK",
        },
        WorldSetting { part: "reno", ..NOT_OF_LINUX },
        WorldSetting {
            part: "access",
            key: "rate",
            value: "10 Mbit/s",
            printed: "nothing",
            fitted: Some("two STAR flows behind 15 kB"),
            plausible: "hosts of the time on an Ethernet of 10 Mbit/s",
        },
    ],
    fitted: &["gain/tcp-j"],
}];
