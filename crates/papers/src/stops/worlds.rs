//! Worlds of the paper on communication stops.

use crate::plausible::{PlausibleKey, SCENARIO};
use crate::world::{CHOICE, PaperWorld, WorldSetting};

/// The receive window in packets.
pub const WINDOW: &str = "window";

/// The window that the printed buffers announce.
const PRINTED_WINDOW: WorldSetting = WorldSetting {
    part: CHOICE,
    key: WINDOW,
    value: "1554",
    printed: "buffers of 3,000,000 bytes",
    fitted: None,
    plausible: "it is the window that Linux 2.6 announces from such a buffer; all runs have this one",
};

const PROCESSOR: WorldSetting = WorldSetting {
    part: "sender-host",
    key: "processor",
    value: "{ send = \"2 us\", receive_ack = \"6 us\", receive = \"6 us\" }",
    printed: "the kernel is busy for up to 100 ms while it repairs a loss",
    fitted: Some("the best of four processors that were tried, by the claims that hold"),
    plausible: "a host of 2006 that sends 500 Mbit/s and has time left",
};

/// All of them, the best first.
pub const WORLDS: &[PaperWorld] = &[
    PaperWorld {
        name: "light-processor",
        about: "The sending host's processor takes 2 us for a frame that it sends and 6 us for one that it \
                receives; windows are as literally.",
        settings: &[PROCESSOR],
        fitted: &[],
        fitted_to_claims: true,
        result: "More claims hold than literally with the three phases by which it was chosen, but fewer \
                 printed numbers are within 10 %.",
    },
    PaperWorld {
        name: "sender-processor",
        about: "The sending host's processor is the limit, and the window is that of the printed buffers.",
        settings: &[
            PRINTED_WINDOW,
            WorldSetting {
                value: "{ send = \"4 us\", receive_ack = \"17 us\", receive = \"17 us\" }",
                fitted: Some("the mean time of 2.6.22, 21.3 s, and the rate of the fix, 483 Mbit/s"),
                plausible: "4 and 17 us are about the time of a packet at 500 Mbit/s, as of a host of 2006",
                ..PROCESSOR
            },
        ],
        fitted: &["table2/window-1554/linux-2.6.22/time-mean", "table2/window-1554/aist-fix/goodput"],
        fitted_to_claims: false,
        result: "Worse than literally: fewer claims hold with three phases.",
    },
];

/// What it leaves open.
pub const PLAUSIBLE: &[PlausibleKey] = &[
    PlausibleKey {
        part: CHOICE,
        key: "window",
        range: "1400..3000*17",
        reason: "a buffer of 3,000,000 bytes is printed; what it announces depends on how much of it \
                 the system keeps for overhead, a quarter to nothing, and on the units",
    },
    PlausibleKey {
        part: "sender-host",
        key: "processor.send",
        range: "1us..6us",
        reason: "hosts of 2006 sent 160,000 to 1,000,000 frames in a second; the paper's sends 500 \
                 Mbit/s, one frame in 24 us",
    },
    PlausibleKey {
        part: "sender-host",
        key: "processor.receive_ack",
        range: "2us..20us",
        reason: "more than the time of a frame at 500 Mbit/s would limit the rate by itself; less \
                 than 2 us was not possible with interrupts",
    },
    PlausibleKey {
        part: "sender-host",
        key: "processor.per_entry",
        range: "0ns..100ns",
        reason: "the kernel is busy for up to 100 ms while it repairs a loss; an entry of a list that \
                 is not in the cache took 50 to 100 ns in 2006",
    },
    PlausibleKey {
        part: SCENARIO,
        key: "links.wan.backward.loss",
        range: "1e-4..1e-2*log",
        reason: "the path was shared; the paper measures the loss of data alone",
    },
    PlausibleKey {
        part: "receiver",
        key: "delayed_ack",
        range: "linux-2.6,none",
        reason: "the receiver's system is not printed",
    },
];
