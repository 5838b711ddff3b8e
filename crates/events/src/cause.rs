//! Why a segment was sent, the congestion window was cut, or a timer fired.

macro_rules! causes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),* $(,)?) => {
        /// Why a segment was sent, a window cut, or a timer fired.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Cause { $($(#[$doc])* $variant),* }
        impl Cause {
            /// All of them, in the order of reports.
            pub const ALL: &'static [Cause] = &[$(Cause::$variant),*];
            /// The name in files and tables, snake_case.
            pub const fn name(self) -> &'static str {
                match self { $(Cause::$variant => $name),* }
            }
        }
    };
}

causes! {
    // Segments that carry nothing new
    /// SYN or SYN-ACK, first transmission.
    Syn = "syn",
    /// FIN, first transmission.
    Fin = "fin",
    /// RST.
    Reset = "reset",
    /// Data or FIN sent for the first time.
    NewData = "new_data",
    // Retransmissions
    /// SYN or SYN-ACK again.
    SynRetransmit = "syn_retransmit",
    /// Marked lost by duplicate ACKs or SACK, sent again for the first time.
    FastRetransmit = "fast_retransmit",
    /// A hole below the highest SACK that is not marked lost (Linux 2.6 forward retransmission).
    ForwardRetransmit = "forward_retransmit",
    /// A retransmission found lost and sent once more.
    LostRetransmission = "lost_retransmission",
    /// The head, because the retransmission timer fired.
    TimeoutRetransmit = "timeout_retransmit",
    /// Marked lost by a timeout, sent again after it.
    LossRetransmit = "loss_retransmit",
    /// The last segment, because nothing was heard for two round trips (RFC 8985 §7).
    TailLossProbe = "tail_loss_probe",
    /// The newest segment, because the retransmission timer fired: what comes back tells what was lost (TCP-STAR, AEN).
    AenProbe = "aen_probe",
    /// One byte or segment into a closed window.
    WindowProbe = "window_probe",
    /// New data in a segment that tries a larger size (RFC 4821 §7).
    MtuProbe = "mtu_probe",
    /// An old number on an idle connection, to see whether the peer is still there (RFC 9293 §3.8.4).
    KeepAlive = "keep_alive",
    /// An old byte, so that the peer does not hold its ACK back (CDL with a peer that knows nothing of it).
    AckProbe = "ack_probe",
    // Pure acknowledgments
    /// ACK at once: every second segment, or quick-ACK mode.
    AckNow = "ack_now",
    /// ACK because of out-of-order or duplicate data.
    AckOutOfOrder = "ack_out_of_order",
    /// ACK because the delayed-ACK timer fired.
    AckDelayed = "ack_delayed",
    /// ACK because the receive window opened.
    AckWindow = "ack_window",
    /// ACK to an unacceptable segment (RFC 9293 §3.10.7.4).
    AckUnacceptable = "ack_unacceptable",
    /// ACK at once because the peer asked for it (CDL, TARR).
    AckAsked = "ack_asked",
    // Window cuts
    /// ssthresh cut on entering fast recovery.
    CutFastRetransmit = "cut_fast_retransmit",
    /// Window cut by a retransmission timeout.
    CutTimeout = "cut_timeout",
    /// Window cut by ECN.
    CutEcn = "cut_ecn",
    /// Window cut because a tail loss probe repaired a loss (RFC 8985 §7.4.2).
    CutTailLoss = "cut_tail_loss",
    /// A cut was taken back: the loss was none.
    Undo = "undo",
    /// The same, proved by a timestamp (Eifel, RFC 3522).
    UndoTimestamp = "undo_timestamp",
    /// The same, proved by D-SACKs for all that was sent again (RFC 2883).
    UndoDsack = "undo_d_sack",
    /// A timeout was taken back: data sent before it arrived after it (F-RTO, RFC 5682).
    UndoFRto = "undo_f_rto",
    /// AEN: a timeout without any data lost; the window stays.
    AenAcksLost = "aen_acks_lost",
    /// AEN: the newest segment alone was lost, and the probe has repaired it.
    AenTailLost = "aen_tail_lost",
    /// AEN: data was lost; repair begins.
    AenDataLost = "aen_data_lost",
    /// AEN: the probe was not answered; repair begins.
    AenProbeLost = "aen_probe_lost",
    /// The peer has dropped data it had SACKed.
    Reneging = "reneging",
    /// A probe of a larger size was lost, which is no sign of congestion.
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
    /// Nothing was heard of an idle peer for so long that it is asked.
    TimerKeepAlive = "timer_keep_alive",
    /// What waits made no progress for as long as the application allows (RFC 5482).
    TimerUserTimeout = "timer_user_timeout",
    /// The program has left the connection, and the peer made no progress for too long.
    TimerOrphan = "timer_orphan",
    /// The program has left the connection, and the host has too many such: the oldest ends.
    OrphanLimit = "orphan_limit",
    /// End of TIME-WAIT.
    TimerTimeWait = "timer_time_wait",
}

impl Cause {
    /// True for a segment that does nothing but acknowledge.
    pub const fn is_acknowledgment(self) -> bool {
        matches!(
            self,
            Cause::AckNow
                | Cause::AckOutOfOrder
                | Cause::AckDelayed
                | Cause::AckWindow
                | Cause::AckUnacceptable
                | Cause::AckAsked
        )
    }

    /// True for a segment that had been sent before.
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
