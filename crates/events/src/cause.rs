//! Causes of segments, window reductions and timers.

macro_rules! causes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),* $(,)?) => {
        /// Why a segment was sent, the congestion window was reduced, or a timer fired.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Cause { $($(#[$doc])* $variant),* }
        impl Cause {
            /// All causes, in the order of reports.
            pub const ALL: &'static [Cause] = &[$(Cause::$variant),*];
            /// The name in files and tables, in snake_case.
            pub const fn name(self) -> &'static str {
                match self { $(Cause::$variant => $name),* }
            }
        }
    };
}

causes! {
    // Segments with new data or control flags
    /// SYN or SYN-ACK, first transmission.
    Syn = "syn",
    /// FIN, first transmission.
    Fin = "fin",
    /// RST.
    Reset = "reset",
    /// Data or FIN sent for the first time.
    NewData = "new_data",
    // Retransmissions
    /// SYN or SYN-ACK, retransmitted.
    SynRetransmit = "syn_retransmit",
    /// Marked lost by duplicate ACKs or SACK, and retransmitted for the first time.
    FastRetransmit = "fast_retransmit",
    /// A hole below the highest SACK that is not marked lost (Linux 2.6 forward retransmission).
    ForwardRetransmit = "forward_retransmit",
    /// A lost retransmission, retransmitted again.
    LostRetransmission = "lost_retransmission",
    /// The first unacknowledged segment, when the retransmission timer fires.
    TimeoutRetransmit = "timeout_retransmit",
    /// Marked lost by a timeout, and retransmitted after it.
    LossRetransmit = "loss_retransmit",
    /// The last segment, after two round trips without an ACK (RFC 8985 §7).
    TailLossProbe = "tail_loss_probe",
    /// The newest segment, when the retransmission timer fires. The answer reveals what was lost (TCP-STAR,
    /// AEN).
    AenProbe = "aen_probe",
    /// One byte or segment beyond a zero window.
    WindowProbe = "window_probe",
    /// New data in a segment that probes a larger MTU (RFC 4821 §7).
    MtuProbe = "mtu_probe",
    /// Keep-alive: an old sequence number on an idle connection (RFC 9293 §3.8.4).
    KeepAlive = "keep_alive",
    /// An old byte, so that the peer does not delay its ACK (CDL with a peer without CDL).
    AckProbe = "ack_probe",
    // Pure acknowledgments
    /// Immediate ACK: every second segment, or quick-ACK mode.
    AckNow = "ack_now",
    /// ACK because of out-of-order or duplicate data.
    AckOutOfOrder = "ack_out_of_order",
    /// ACK because the delayed-ACK timer fired.
    AckDelayed = "ack_delayed",
    /// ACK because the receive window opened.
    AckWindow = "ack_window",
    /// ACK to an unacceptable segment (RFC 9293 §3.10.7.4).
    AckUnacceptable = "ack_unacceptable",
    /// Immediate ACK that the peer requested (CDL, TARR).
    AckRequested = "ack_requested",
    // Window reductions
    /// ssthresh reduced on entering fast recovery.
    CutFastRetransmit = "cut_fast_retransmit",
    /// Window reduced by a retransmission timeout.
    CutTimeout = "cut_timeout",
    /// Window reduced by ECN.
    CutEcn = "cut_ecn",
    /// Window reduced because a tail loss probe repaired a loss (RFC 8985 §7.4.2).
    CutTailLoss = "cut_tail_loss",
    /// Window reduced because the transmit queue of the own host was full.
    CutTransmitQueue = "cut_transmit_queue",
    /// A reduction undone: the retransmission was spurious.
    Undo = "undo",
    /// A reduction undone because of a timestamp (Eifel, RFC 3522).
    UndoTimestamp = "undo_timestamp",
    /// A reduction undone because D-SACKs reported all retransmissions as duplicates (RFC 2883).
    UndoDsack = "undo_d_sack",
    /// A timeout undone: data sent before it was acknowledged after it (F-RTO, RFC 5682).
    UndoFRto = "undo_f_rto",
    /// AEN: a timeout without lost data; the window stays.
    AenAcksLost = "aen_acks_lost",
    /// AEN: only the newest segment was lost, and the probe has repaired it.
    AenTailLost = "aen_tail_lost",
    /// AEN: data was lost; recovery begins.
    AenDataLost = "aen_data_lost",
    /// AEN: the probe was lost; recovery begins.
    AenProbeLost = "aen_probe_lost",
    /// The peer has discarded SACKed data.
    Reneging = "reneging",
    /// An MTU probe was lost, which does not indicate congestion.
    MtuProbeLost = "mtu_probe_lost",
    // Timers
    /// Retransmission timeout.
    TimerRto = "timer_rto",
    /// The reordering window of a segment has passed (RFC 8985 §6.2).
    TimerReordering = "timer_reordering",
    /// Tail loss probe (RFC 8985 §7).
    TimerTailLossProbe = "timer_tail_loss_probe",
    /// Delayed ACK.
    TimerDelayedAck = "timer_delayed_ack",
    /// Zero-window probe.
    TimerPersist = "timer_persist",
    /// Keep-alive: nothing has been received for the keep-alive time.
    TimerKeepAlive = "timer_keep_alive",
    /// Data was not acknowledged for as long as the application allows (RFC 5482).
    TimerUserTimeout = "timer_user_timeout",
    /// The application has closed the connection, and the peer made no progress for too long.
    TimerOrphan = "timer_orphan",
    /// The application has closed the connection, and the host has too many of these: the oldest is aborted.
    OrphanLimit = "orphan_limit",
    /// End of TIME-WAIT.
    TimerTimeWait = "timer_time_wait",
}

impl Cause {
    /// True for a segment that only acknowledges.
    pub const fn is_acknowledgment(self) -> bool {
        matches!(
            self,
            Cause::AckNow
                | Cause::AckOutOfOrder
                | Cause::AckDelayed
                | Cause::AckWindow
                | Cause::AckUnacceptable
                | Cause::AckRequested
        )
    }

    /// True for a retransmitted segment.
    pub const fn is_retransmission(self) -> bool {
        matches!(
            self,
            Cause::SynRetransmit
                | Cause::FastRetransmit
                | Cause::ForwardRetransmit
                | Cause::LostRetransmission
                | Cause::TimeoutRetransmit
                | Cause::LossRetransmit
                | Cause::TailLossProbe
                | Cause::AenProbe
        )
    }
}
