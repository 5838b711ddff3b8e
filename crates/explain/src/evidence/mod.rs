//! What shows that a cause was at work in a transfer: a file for each, with what is known of the cause, its
//! evidence and its cure.

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

use crate::attributed_view::AttributedView;
use crate::cause::{Cause, Info, Kind};
use crate::finding::Finding;
use crate::view::View;

/// The most that is known where queues before the capture point are not seen, and may be the cause.
const BLIND: f64 = 0.5;

macro_rules! evidence {
    ($($variant:ident = $module:ident),* $(,)?) => {
        impl Cause {
            /// What is known of it.
            pub const fn info(self) -> &'static Info {
                match self { $(Cause::$variant => &$module::INFO),* }
            }
        }

        /// Looks for the evidence of a cause in a transfer. None where there is none.
        pub(crate) fn find(cause: Cause, transfer: &AttributedView<'_>) -> Option<Finding> {
            match cause { $(Cause::$variant => $module::find(transfer)),* }
        }
    };
}

evidence! {
    Connect = connect,
    SynLoss = syn_loss,
    SenderApplication = sender_application,
    PeerApplication = peer_application,
    ReceiverApplication = receiver_application,
    ReceiveWindow = receive_window,
    WindowScale = window_scale,
    ZeroWindow = zero_window,
    SendBuffer = send_buffer,
    SenderProcessor = sender_processor,
    SlowStart = slow_start,
    Congestion = congestion,
    Policer = policer,
    RandomLoss = random_loss,
    BitErrors = bit_errors,
    BurstLoss = burst_loss,
    Outage = outage,
    SmallQueue = small_queue,
    Reordering = reordering,
    LostRetransmission = lost_retransmission,
    Linux2617 = linux_2_6_17,
    TailLoss = tail_loss,
    SpuriousTimeout = spurious_timeout,
    AckLoss = ack_loss,
    AckThinning = ack_thinning,
    DelayedAck = delayed_ack,
    MtuBlackHole = mtu_black_hole,
    EcnBleaching = ecn_bleaching,
    OptionsStripped = options_stripped,
    Reset = reset,
    DuplicateCapture = duplicate_capture,
    CaptureDrops = capture_drops,
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

impl AttributedView<'_> {
    /// A finding with the cause's time and its usual cure.
    fn finding(&self, cause: Cause, confidence: f64, evidence: String, frames: Vec<u64>) -> Finding {
        let mut frames = frames;
        frames.sort_unstable();
        frames.dedup();
        let filter = match View::frames_filter(&frames) {
            none if none.is_empty() => self.view.filter(),
            some => some,
        };
        Finding {
            cause,
            time: self.time.of(cause),
            confidence,
            evidence,
            filter,
            first: self.first_of(cause),
            frames,
            cure: cause.info().cure.to_owned(),
        }
    }
}
