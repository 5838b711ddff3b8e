//! Worlds of the paper on communication stops.

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

/// All of them, the best first.
pub const WORLDS: &[PaperWorld] = &[PaperWorld {
    name: "sender-processor",
    about: "The sending host's processor takes time for each frame, and the window is that of the printed \
            buffers.",
    settings: &[
        PRINTED_WINDOW,
        WorldSetting {
            part: "sender-host",
            key: "processor",
            value: "{ send = \"4 us\", receive_ack = \"17 us\", receive = \"17 us\" }",
            printed: "the kernel is busy for up to 100 ms while it repairs a loss",
            fitted: Some("the mean time of 2.6.22, 21.3 s, and the rate of the fix, 483 Mbit/s"),
            plausible: "4 and 17 us are about the time of a packet at 500 Mbit/s, what a host of 2006 needs",
        },
    ],
    fitted: &["table2/window-1554/linux-2.6.22/time-mean", "table2/window-1554/aist-fix/goodput"],
}];
