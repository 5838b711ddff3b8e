//! Worlds of the paper on TCP-STAR.

use crate::plausible::PlausibleKey;
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

/// All of them, the best first.
pub const WORLDS: &[PaperWorld] = &[PaperWorld {
    name: "two-systems",
    about: "STAR and TCP-J filter their estimate, HSTCP and Scalable run on Linux, NewReno has no SACK and \
            counts ACKs, CWS sets cwnd_reno to zero, access links carry 10 Mbit/s, and both windows fit the \
            large queue.",
    settings: &[
        FILTER,
        WorldSetting { part: "tcp-j", ..FILTER },
        WorldSetting {
            part: "star",
            key: "cws_reset",
            value: "true",
            printed: "cwnd = cwnd_reno + cwnd_abe (Fig. 1), and after a loss cwnd = cwnd_abe (Fig. 2)",
            fitted: None,
            plausible: "both equations hold only if cwnd_reno is zero after a loss",
        },
        LINUX,
        WorldSetting { part: "scalable", ..LINUX },
        WorldSetting {
            part: "reno",
            key: "profile",
            value: "newreno",
            printed: "NewReno of NetBSD 1.6.2",
            fitted: None,
            plausible: "NetBSD 1.6 has no SACK, and its NewReno grows with each ACK",
        },
        WorldSetting {
            part: "reno",
            key: "slow_start_limit",
            value: "",
            printed: "nothing",
            fitted: None,
            plausible: "that profile counts ACKs by itself",
        },
        WorldSetting {
            part: "access",
            key: "rate",
            value: "10 Mbit/s",
            printed: "nothing",
            fitted: Some("two STAR flows behind 15 kB (Fig. 11)"),
            plausible: "hosts of the time on an Ethernet of 10 Mbit/s",
        },
        WorldSetting {
            part: "large-queue",
            key: "queue",
            value: "432 packets",
            printed: "a queue of 625 kB",
            fitted: Some("two STAR flows that lose nothing without errors (Fig. 10)"),
            plausible: "625 kB of payload, a window, are 432 segments of 1448 B",
        },
    ],
    fitted: &["gain/tcp-j"],
    // Its fits to Fig. 10 and 11 are what two claims state.
    fitted_to_claims: true,
    result: "More claims hold, two of them because the world is fitted to what they state (Fig. 10 and 11). \
             The numbers are not nearer.",
}];

/// What it leaves open.
pub const PLAUSIBLE: &[PlausibleKey] = &[
    PlausibleKey {
        part: "star",
        key: "abe_filter",
        range: "none,ewma-ack,tustin",
        reason: "the estimate is printed without a filter; systems of the time smoothed",
    },
    PlausibleKey { part: "tcp-j", key: "abe_filter", range: "none,ewma-ack,tustin", reason: "as for STAR" },
    PlausibleKey {
        part: "star",
        key: "cws_reset",
        range: "false,true",
        reason: "two printed equations hold together only if CWS resets the Reno part",
    },
    PlausibleKey {
        part: "highspeed",
        key: "profile",
        range: "rfc6675,linux-2.6.17",
        reason: "footnote 2: it ran on Linux; the version is not printed",
    },
    PlausibleKey { part: "scalable", key: "profile", range: "rfc6675,linux-2.6.17", reason: "as for HSTCP" },
    PlausibleKey {
        part: "access",
        key: "rate",
        range: "10Mbit/s..1000Mbit/s*log",
        reason: "Ethernets of 10, 100 and 1000 Mbit/s were in use; none is printed",
    },
    PlausibleKey {
        part: "large-queue",
        key: "queue",
        range: "400 packets..500 packets",
        reason: "625 kB are 412 frames of 1514 B, or 432 segments, and queues were counted in packets",
    },
];
