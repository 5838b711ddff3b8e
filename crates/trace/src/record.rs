//! One row per segment sent, ACK processed, window cut and timer.

use farpace_units::{ByteCount, Instant, Packets, Rate, Seq, Span};
use farpace_wire::tcp::SackBlocks;

/// Which way a segment went, or that there was none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordDirection {
    /// The connection sent it.
    Sent,
    /// The connection received and processed it.
    Received,
    /// No segment: a timer fired or the window was cut.
    Internal,
}

impl RecordDirection {
    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            RecordDirection::Sent => "sent",
            RecordDirection::Received => "received",
            RecordDirection::Internal => "internal",
        }
    }
}

/// The congestion state of Linux, which the paper names in §2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub enum RecoveryState {
    /// Nothing is wrong.
    #[default]
    Open,
    /// Duplicate ACKs or SACKs have been seen.
    Disorder,
    /// The window is being reduced for another reason than loss.
    Cwr,
    /// Fast retransmit is under way.
    Recovery,
    /// A retransmission timeout has happened.
    Loss,
}

impl RecoveryState {
    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            RecoveryState::Open => "open",
            RecoveryState::Disorder => "disorder",
            RecoveryState::Cwr => "cwr",
            RecoveryState::Recovery => "recovery",
            RecoveryState::Loss => "loss",
        }
    }
}

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

/// One row: a segment sent or an ACK processed, with the connection's variables *after* it. The columns are
/// the paper's (§3.5 "epool") and more.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// When.
    pub time: Instant,
    /// Which connection (index within the run).
    pub connection: u32,
    /// Sent, received, or internal.
    pub direction: RecordDirection,
    /// SEG.SEQ (internal rows: SND.NXT).
    pub seq: Seq,
    /// Payload bytes.
    pub len: ByteCount,
    /// SEG.ACK (internal rows: RCV.NXT).
    pub ack: Seq,
    /// SACK blocks of the segment, in wire order.
    pub sack: SackBlocks,
    /// SND.UNA.
    pub snd_una: Seq,
    /// SND.NXT.
    pub snd_nxt: Seq,
    /// Congestion window.
    pub cwnd: Packets,
    /// Slow-start threshold; [`Packets::MAX`] while there is none.
    pub ssthresh: Packets,
    /// packets_out - (sacked_out + lost_out) + retrans_out.
    pub in_flight: Packets,
    /// Segments sent and not cumulatively acknowledged.
    pub packets_out: Packets,
    /// Segments believed lost.
    pub lost_out: Packets,
    /// Segments SACKed.
    pub sacked_out: Packets,
    /// Segments from SND.UNA up to the highest SACKed one.
    pub fackets_out: Packets,
    /// Retransmissions believed in flight.
    pub retrans_out: Packets,
    /// Congestion state.
    pub state: RecoveryState,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Span,
    /// Its variation, in the same form as the algorithm in use keeps it.
    pub rttvar: Span,
    /// Retransmission timeout in force, back-off included.
    pub rto: Span,
    /// The peer's receive window.
    pub rwnd: ByteCount,
    /// Bandwidth that congestion control has estimated; zero if it estimates none.
    pub bandwidth: Rate,
    /// Why; none for a received segment.
    pub cause: Option<Cause>,
}

/// Where records go.
pub trait RecordSink {
    /// Takes one record. A sink that can fail remembers its first error and reports it when it is finished.
    fn record(&mut self, record: &Record);
}
