//! Worlds of the paper on pacing by gap packets.

use crate::world::{PaperWorld, WorldSetting};

const QUEUE: WorldSetting = WorldSetting {
    part: "unpaced-nic",
    key: "queue",
    value: "20000 packets",
    printed: "an interface queue of 10,000 packets, long enough",
    fitted: Some("two PSPacer flows that lose nothing (Fig. 9)"),
    plausible: "longer than a window of 25 MB, as the paper says of its queue",
};

/// All of them, the best first.
pub const WORLDS: &[PaperWorld] = &[PaperWorld {
    name: "deep-bucket",
    about: "The token bucket holds 1.04 MB, queues of NICs never overflow, and receivers acknowledge as \
            Linux does.",
    settings: &[
        WorldSetting {
            part: "token-bucket",
            key: "burst",
            value: "1040 kB",
            printed: "nothing: not what the bucket holds",
            fitted: Some("1 MB overflows and loses 12 packets, 4 MB do not (Table 5)"),
            plausible: "a bucket of 1 MB and what a tick adds",
        },
        QUEUE,
        WorldSetting { part: "paced-nic", key: "limit", ..QUEUE },
        WorldSetting {
            part: "receiver",
            key: "delayed_ack",
            value: "linux",
            printed: "nothing",
            fitted: Some("the first loss in slow start, 2.5 s (Fig. 8)"),
            plausible: "Linux acknowledges each segment at the start of a transfer",
        },
    ],
    fitted: &["table5/token-bucket/1024kB/lost", "table5/token-bucket/4096kB/lost"],
    fitted_to_claims: false,
    result: "TODO",
}];
