//! Reasons why a transfer takes the time it takes: the list, and what is known of each before any capture.

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
    ($($(#[$doc:meta])* $variant:ident),* $(,)?) => {
        /// A reason.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Cause { $($(#[$doc])* $variant),* }

        impl Cause {
            /// All of them, in the order of reports.
            pub const ALL: &'static [Cause] = &[$(Cause::$variant),*];
            /// How many there are.
            pub const COUNT: usize = Cause::ALL.len();
        }
    };
}

causes! {
    /// The three-way handshake.
    Connect,
    /// SYNs were lost.
    SynLoss,
    /// The sending program had nothing to send.
    SenderApplication,
    /// The other side's program had to speak first.
    PeerApplication,
    /// The receiving program reads too slowly.
    ReceiverApplication,
    /// The receive window is too small for the path.
    ReceiveWindow,
    /// Without window scaling no window exceeds 64 KiB.
    WindowScale,
    /// The receiver closed its window.
    ZeroWindow,
    /// The send buffer is too small for the path.
    SendBuffer,
    /// The sender's host is too slow.
    SenderProcessor,
    /// The window was still growing.
    SlowStart,
    /// The path was full.
    Congestion,
    /// A token bucket drops what exceeds its rate.
    Policer,
    /// Random loss.
    RandomLoss,
    /// Bit errors hit long frames.
    BitErrors,
    /// Losses come in bursts.
    BurstLoss,
    /// Nothing passes for a time.
    Outage,
    /// Bursts overflow a queue that is small against the path.
    SmallQueue,
    /// Packets overtake each other.
    Reordering,
    /// A retransmission was lost, and the sender did not notice.
    LostRetransmission,
    /// The recovery of Linux 2.6.17 and its defects.
    Linux2617,
    /// The last segments of a flight were lost.
    TailLoss,
    /// The timer fired although nothing was lost.
    SpuriousTimeout,
    /// ACKs are lost.
    AckLoss,
    /// Something on the path drops or delays ACKs.
    AckThinning,
    /// The receiver delayed ACKs that the sender waited for.
    DelayedAck,
    /// Large packets vanish.
    MtuBlackHole,
    /// A box clears ECN.
    EcnBleaching,
    /// A box removes TCP options.
    OptionsStripped,
    /// The connection was reset.
    Reset,
    /// Packets were captured twice.
    DuplicateCapture,
    /// The capture misses packets.
    CaptureDrops,
    /// What the capture does not tell.
    Unknown,
}
