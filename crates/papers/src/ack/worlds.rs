//! Worlds of the thesis on CDL.

use crate::plausible::PlausibleKey;
use crate::world::{PaperWorld, WorldSetting};

const FIVE: WorldSetting = WorldSetting {
    part: "receiver",
    key: "receive_buffer",
    value: "7300 B",
    printed: "a receive window of 8760 B, six segments",
    fitted: Some("the 104 segments that were timed in 10 s"),
    plausible: "BSD's sosend writes clusters of 2048 B and sleeps while less than that is free, so that \
                at most five segments of a buffer of 8760 B are in flight; the lab has no clusters, and a \
                window of five segments stands for them",
};

/// All of them, the best first.
pub const WORLDS: &[PaperWorld] = &[
    PaperWorld {
        name: "five-segments",
        about: "Five segments are in flight, not the six of the printed window.",
        settings: &[FIVE],
        fitted: &["table5.1/rtt/cdl", "table5.1/rtt/cdlack", "table5.2/rtt/cdl", "table5.2/rtt/cdlack"],
        fitted_to_claims: false,
        result: "The same claims hold as literally, and more printed numbers are within 10 %.",
    },
    PaperWorld {
        name: "four-segments",
        about: "Four segments are in flight: what 2048 B clusters leave of a send buffer of 8 kB.",
        settings: &[WorldSetting {
            value: "5840 B",
            fitted: Some("568 kB in 10 s without CDL"),
            plausible: "four clusters of 2048 B fill 8 kB, and only full segments leave",
            ..FIVE
        }],
        fitted: &["table5.1/none/bytes", "table5.2/none/bytes"],
        fitted_to_claims: false,
        result: "Worse than literally: the claim on samples without CDL (`srtt-nearer`) is lost.",
    },
];

/// What it leaves open.
pub const PLAUSIBLE: &[PlausibleKey] = &[
    PlausibleKey {
        part: "receiver",
        key: "receive_buffer",
        range: "5840B..8760B",
        reason: "8760 B are printed; clusters of 2048 B and low-water marks leave four to six segments of it",
    },
    PlausibleKey {
        part: "line",
        key: "forward.delay",
        range: "20ms..30ms",
        reason: "a line of 512 kbit/s is printed, not its length; its round trip without load is about 50 ms",
    },
    PlausibleKey {
        part: "line",
        key: "overhead",
        range: "0B..24B",
        reason: "what the line adds to a packet is not printed; HDLC, PPP and frames of ATM differ by this",
    },
    PlausibleKey {
        part: "sender-host",
        key: "processor.send",
        range: "10us..500us",
        reason: "a 486 or Pentium of the time took this long for a frame",
    },
];
