//! Reasons why a transfer takes the time it takes: the list, and a file for each with its evidence and cure.

mod ack_loss;
mod ack_thinning;
mod bit_errors;
mod burst_loss;
mod capture_drops;
mod congestion;
mod connect;
mod delayed_ack;
mod duplicate_capture;
mod ecn_bleaching;
mod linux_2_6_17;
mod lost_retransmission;
mod mtu_black_hole;
mod options_stripped;
mod outage;
mod peer_application;
mod policer;
mod random_loss;
mod receive_window;
mod receiver_application;
mod reordering;
mod reset;
mod send_buffer;
mod sender_application;
mod sender_processor;
mod slow_start;
mod small_queue;
mod spurious_timeout;
mod syn_loss;
mod tail_loss;
mod unknown;
mod window_scale;
mod zero_window;

pub use policer::{Policing, policing};

use crate::diagnosis::Finding;
use crate::view::View;

/// What kind of reason it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Something must limit every transfer; this is one of the normal limits.
    Limit,
    /// Something is wrong, or could be better.
    Fault,
    /// The capture is at fault, not the transfer.
    Capture,
}

impl Kind {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Limit => "limit",
            Kind::Fault => "fault",
            Kind::Capture => "capture",
        }
    }
}

/// What is known of a cause before any capture.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// The name in JSON, snake_case.
    pub id: &'static str,
    /// A few words for tables.
    pub title: &'static str,
    /// One sentence that says what happens.
    pub what: &'static str,
    /// What would help.
    pub cure: &'static str,
    /// Its kind.
    pub kind: Kind,
}

macro_rules! causes {
    ($($(#[$doc:meta])* $variant:ident = $module:ident),* $(,)?) => {
        /// A reason.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Cause { $($(#[$doc])* $variant),* }

        impl Cause {
            /// All of them, in the order of reports.
            pub const ALL: &'static [Cause] = &[$(Cause::$variant),*];
            /// How many there are.
            pub const COUNT: usize = Cause::ALL.len();

            /// What is known of it.
            pub const fn info(self) -> &'static Info {
                match self { $(Cause::$variant => &$module::INFO),* }
            }

            /// Looks for its evidence in a transfer. None where there is none.
            pub(crate) fn find(self, view: &View<'_>) -> Option<Finding> {
                match self { $(Cause::$variant => $module::find(view)),* }
            }
        }
    };
}

causes! {
    /// The three-way handshake.
    Connect = connect,
    /// SYNs were lost.
    SynLoss = syn_loss,
    /// The sending program had nothing to send.
    SenderApplication = sender_application,
    /// The other side's program had to speak first.
    PeerApplication = peer_application,
    /// The receiving program reads too slowly.
    ReceiverApplication = receiver_application,
    /// The receive window is too small for the path.
    ReceiveWindow = receive_window,
    /// Without window scaling no window exceeds 64 KiB.
    WindowScale = window_scale,
    /// The receiver closed its window.
    ZeroWindow = zero_window,
    /// The send buffer is too small for the path.
    SendBuffer = send_buffer,
    /// The sender's host is too slow.
    SenderProcessor = sender_processor,
    /// The window was still growing.
    SlowStart = slow_start,
    /// The path was full.
    Congestion = congestion,
    /// A token bucket drops what exceeds its rate.
    Policer = policer,
    /// Random loss.
    RandomLoss = random_loss,
    /// Bit errors hit long frames.
    BitErrors = bit_errors,
    /// Losses come in bursts.
    BurstLoss = burst_loss,
    /// Nothing passes for a time.
    Outage = outage,
    /// Bursts overflow a queue that is small against the path.
    SmallQueue = small_queue,
    /// Packets overtake each other.
    Reordering = reordering,
    /// A retransmission was lost, and the sender did not notice.
    LostRetransmission = lost_retransmission,
    /// The recovery of Linux 2.6.17 and its defects.
    Linux2617 = linux_2_6_17,
    /// The last segments of a flight were lost.
    TailLoss = tail_loss,
    /// The timer fired although nothing was lost.
    SpuriousTimeout = spurious_timeout,
    /// ACKs are lost.
    AckLoss = ack_loss,
    /// Something on the path drops or delays ACKs.
    AckThinning = ack_thinning,
    /// The receiver delayed ACKs that the sender waited for.
    DelayedAck = delayed_ack,
    /// Large packets vanish.
    MtuBlackHole = mtu_black_hole,
    /// A box clears ECN.
    EcnBleaching = ecn_bleaching,
    /// A box removes TCP options.
    OptionsStripped = options_stripped,
    /// The connection was reset.
    Reset = reset,
    /// Packets were captured twice.
    DuplicateCapture = duplicate_capture,
    /// The capture misses packets.
    CaptureDrops = capture_drops,
    /// What the capture does not tell.
    Unknown = unknown,
}

impl Cause {
    /// The name in JSON.
    pub const fn id(self) -> &'static str {
        self.info().id
    }

    /// The cause with a name.
    pub fn from_id(id: &str) -> Option<Cause> {
        Cause::ALL.iter().copied().find(|c| c.id() == id)
    }
}
