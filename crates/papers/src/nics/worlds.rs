//! Worlds of the paper on several NICs.

use crate::plausible::PlausibleKey;
use crate::world::{PaperWorld, WorldSetting};

const INTERRUPTS: WorldSetting = WorldSetting {
    part: "wide-acks",
    key: "interrupts",
    value: "{ delay = \"87 us\" }",
    printed: "nothing",
    fitted: Some("143 Mbit/s without order"),
    plausible: "NICs of the year 2000 gathered interrupts for some 100 us",
};

/// All of them, the best first.
pub const WORLDS: &[PaperWorld] = &[PaperWorld {
    name: "late-interrupts",
    about: "The sender's NICs interrupt once for the ACKs of 87 us.",
    settings: &[INTERRUPTS, WorldSetting { part: "narrow-acks", ..INTERRUPTS }],
    fitted: &["fig9/90-10/s0/goodput", "gain"],
    fitted_to_claims: false,
    result: "The claim on the gain holds, which literally fails. It follows from the number that was fitted.",
}];

/// What it leaves open.
pub const PLAUSIBLE: &[PlausibleKey] = &[
    PlausibleKey {
        part: "wide-acks",
        key: "interrupts.delay",
        range: "10us..150us",
        reason: "NICs of the year 2000 gathered interrupts for up to 150 us; the setting is not printed",
    },
    PlausibleKey {
        part: "narrow-acks",
        key: "interrupts.delay",
        range: "10us..150us",
        reason: "as for the wide NIC",
    },
    PlausibleKey {
        part: "narrow-data",
        key: "jitter",
        range: "20us..300us*log",
        reason: "nothing is printed about how evenly the narrow NIC sends",
    },
    PlausibleKey {
        part: "sender-host",
        key: "processor.send",
        range: "10us..16us",
        reason: "714 Mbit/s by one NIC are one frame in 17 us, of which the host took most",
    },
    PlausibleKey {
        part: "sender-host",
        key: "processor.receive_ack",
        range: "5us..13us",
        reason: "an ACK costs less than a frame with data, and not less than its interrupt",
    },
    PlausibleKey {
        part: "sender",
        key: "profile",
        range: "rfc6675,newreno",
        reason: "Linux 2.2.17 is printed; which of its recoveries counted is not",
    },
];
