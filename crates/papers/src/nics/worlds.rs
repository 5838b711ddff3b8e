//! Worlds of the paper on several NICs.

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
