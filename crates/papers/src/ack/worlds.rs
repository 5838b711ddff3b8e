//! Worlds of the thesis on CDL.

use crate::world::{PaperWorld, WorldSetting};

/// All of them, the best first.
pub const WORLDS: &[PaperWorld] = &[PaperWorld {
    name: "four-segments",
    about: "Four segments are in flight, not the six of the printed window.",
    settings: &[WorldSetting {
        part: "receiver",
        key: "receive_buffer",
        value: "5840 B",
        printed: "a receive window of 8760 B, six segments",
        fitted: Some("the 104 segments that were timed in 10 s"),
        plausible: "BSD's sosend fills a send buffer of 8 kB in clusters of 2 kB; the lab has no clusters, and \
                    a window of four segments stands for them",
    }],
    fitted: &["table5.2/rtt/cdl", "table5.2/rtt/cdlack"],
}];
