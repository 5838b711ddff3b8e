//! The switches: one enum for each thing that a TCP may do in several ways.

use farpace_units::{Packets, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Appropriate byte counting in slow start (RFC 3465) as Linux had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Abc {
    /// One packet per ACK (2.6.18 and later).
    Off,
    /// L = 1, and not fed after a timeout: the window stays at one packet (2.6.15 to 2.6.17).
    Buggy,
    /// L = 1, fed after a timeout too (the repair of 2.6.18).
    Fixed,
    /// L = 2, fed after a timeout too.
    Two,
}

/// How the blocks of an ACK are sorted before the scoreboard walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SackSort {
    /// As in 2.6.15 to 2.6.19: swaps copy from the unsorted cache, so blocks get lost.
    Buggy,
    /// Right.
    Ok,
}

/// Which blocks move the stored position at which the next scoreboard walk begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Hint {
    /// Every block (2.6.15 to 2.6.20).
    EveryBlock,
    /// Only the block that was first on the wire (2.6.21 to 2.6.24).
    FirstBlock,
    /// None: each walk begins at the head of the queue.
    None,
}

/// Which blocks of an ACK a D-SACK turns into duplicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DsackScope {
    /// All blocks of the ACK (until 2.6.21).
    Ack,
    /// Only the first one on the wire (2.6.22).
    FirstBlock,
}

/// How the loss of a retransmission is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LostRtx {
    /// Each segment is compared only with the block that is being walked (until 2.6.23): the defect.
    PerBlock,
    /// Each segment is compared with the greatest block end of the ACK: the paper's remedy A.
    MaxEnd,
    /// Blocks that the last ACK had too are passed over, so that new ones are walked from the head: the
    /// paper's remedy B.
    NewBlocks,
    /// The queue is searched up to the highest newly SACKed end (2.6.24).
    NewlySacked,
}

/// How the window comes down in recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reduction {
    /// One packet for every two ACKs (until 2.6.22).
    RateHalving,
    /// The same, but only for ACKs that make progress (2.6.23).
    RateHalvingProgress,
    /// To the threshold at once (RFC 6675 §5).
    AtOnce,
    /// In proportion to what arrives (PRR, RFC 9937).
    Prr,
}

/// How a segment is found lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Detection {
    /// By counting what arrived above it (RFC 6675 IsLost). The loss of a retransmission is never found.
    Rfc6675,
    /// By time: a segment sent later has arrived, and a reordering window has passed (RACK, RFC 8985).
    Rack,
}

/// How bandwidth samples become an estimate (TCP-J and TCP-STAR do not say).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AbeFilter {
    /// The latest sample.
    None,
    /// An eighth of each sample.
    EwmaAck,
    /// Tustin's filter with 0.9, as in the first Westwood.
    Tustin,
    /// One sample a round trip, through two stages of 7/8, as in Westwood+.
    WestwoodPlus,
    /// A sliding window of one round trip, as in TCP-Jersey.
    Tsw,
    /// The highest delivery rate of the last ten round trips, as BBR measures it.
    DeliveryRate,
}

/// Available bandwidth estimation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AbeConfig {
    /// Filter.
    pub filter: AbeFilter,
    /// The interval that is taken for the first ACK, which has no predecessor; zero: the handshake's round
    /// trip.
    pub first_interval: Span,
    /// The window is at most so many times the measured bandwidth-delay product (TCP-STAR); none: no such
    /// bound.
    pub cap: Option<f64>,
    /// A loss sets the Reno part of the window to zero (TCP-STAR, read literally: `cwnd = cwnd_abe`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reset: bool,
}

/// What a retransmission timeout does first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TimeoutProcedure {
    /// The head is sent again, and slow start follows (RFC 6298 §5).
    Conventional,
    /// The same, but new data tells whether the timeout was spurious (F-RTO, RFC 5682).
    FRto,
    /// The newest segment is sent again, and its answer tells whether data or only ACKs were lost (TCP-STAR's
    /// AEN).
    Aen,
    /// AEN as the paper prints it: any ACK counts as the answer.
    AenLiteral,
}

/// The switches of the modern recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Modern {
    /// Loss detection.
    pub detection: Detection,
    /// Window reduction: at once, or PRR.
    pub reduction: Reduction,
    /// Tail loss probes (RFC 8985 §7).
    pub tail_loss_probe: bool,
    /// Timeouts.
    pub timeout: TimeoutProcedure,
    /// Reductions for losses that were none are taken back (Eifel, D-SACK; RFC 3522, 4015, 2883).
    pub undo: bool,
}

/// The independent switches of the Linux 2.6 recovery (spec of the paper's §4, kernels 2.6.15 to 2.6.24).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Linux26 {
    /// Byte counting in slow start.
    pub abc: Abc,
    /// Block sort.
    pub sack_sort: SackSort,
    /// Walk position.
    pub hint: Hint,
    /// D-SACK reach.
    pub dsack_scope: DsackScope,
    /// Detection of lost retransmissions.
    pub lost_rtx: LostRtx,
    /// Initial degree of reordering in packets: 3 in Linux, 0 in the paper's figures.
    pub reordering: Packets,
    /// Window reduction.
    pub reduction: Reduction,
}

/// The switches of the recovery of Linux 6, under the names of its sysctls where these differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Linux {
    /// Tail loss probes (`tcp_early_retrans`).
    pub tail_loss_probe: bool,
    /// F-RTO (`tcp_frto`).
    pub frto: bool,
    /// Duplicates that prove a loss, as long as no reordering was seen (`tcp_reordering`).
    pub reordering: Packets,
    /// Most that reordering may raise that to (`tcp_max_reordering`).
    pub max_reordering: Packets,
    /// D-SACKs do not widen the reordering window (`tcp_recovery`, 2).
    pub static_reordering_window: bool,
    /// Duplicates do not close it (`tcp_recovery`, 4).
    pub no_duplicate_threshold: bool,
    /// The window begins anew after a pause (`tcp_slow_start_after_idle`).
    pub restart_after_idle: bool,
}

/// Loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Recovery {
    /// That of Linux 6, with its switches.
    Linux(Linux),
    /// The historical scoreboard, with its switches.
    Linux26(Linux26),
    /// SACK recovery of today, with its switches.
    Modern(Modern),
    /// NewReno without SACK (RFC 6582, RFC 5681).
    NewReno,
}

/// Round-trip estimation and retransmission timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rto {
    /// RFC 6298 with the configured minimum.
    Rfc6298,
    /// Linux 2.6: srtt + at least 200 ms.
    #[serde(rename = "linux-2.6")]
    Linux26,
    /// Linux of today: the same in microseconds, and 1 s before the first sample.
    Linux,
    /// 4.3BSD-Reno to Net/2: scaled integers of ticks, one segment timed at a time, at least two ticks.
    Net2,
    /// From ACKs that were not held back, plus what the receiver may hold back (the thesis's RTO of CDL);
    /// `rfc6298` where there are none.
    Cdl,
}

/// When the receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DelayedAck {
    /// RFC 5681 §4.2: every second full-size segment, 40 ms at the latest.
    Rfc5681,
    /// Linux 2.6: quick ACKs at first, then every second segment, with a timer of 40 to 200 ms.
    #[serde(rename = "linux-2.6")]
    Linux26,
    /// Linux of today: as `linux-2.6`, with a receiver that answers at once where data goes both ways no
    /// more, and with compressed SACKs.
    Linux,
    /// Linux up to 4.17: as `linux`, but whatever is out of order is acknowledged at once.
    #[serde(rename = "linux-4.17")]
    Linux417,
    /// 4.3BSD to Net/2: every second segment, and at the ticks of a clock of 200 ms whatever waits.
    Bsd,
    /// Every n-th segment (`ack_every`), 40 ms at the latest.
    Stretch,
    /// Every segment at once.
    None,
}

impl DelayedAck {
    /// The receiver of Linux 3 and later, in which a window that opens has its ACKs at once.
    pub(crate) fn is_modern_linux(self) -> bool {
        matches!(self, DelayedAck::Linux | DelayedAck::Linux417)
    }

    /// All of them.
    pub const ALL: [DelayedAck; 7] = [
        DelayedAck::Rfc5681,
        DelayedAck::Linux26,
        DelayedAck::Linux,
        DelayedAck::Linux417,
        DelayedAck::Bsd,
        DelayedAck::Stretch,
        DelayedAck::None,
    ];
}

/// Explicit congestion notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EcnMode {
    /// Neither offered nor accepted.
    Off,
    /// Accepted, but not offered (Linux: tcp_ecn = 2).
    Passive,
    /// Offered and accepted (RFC 3168).
    On,
    /// Offered and accepted with a count of the marks (AccECN, RFC 9768); with peers that cannot count, as
    /// `on`.
    Accurate,
    /// As `on`, but the receiver echoes each mark and no more (RFC 8257 §3.2), so that the sender learns the
    /// marked part. Nothing in the handshake tells it from `on`: both ends must be set to it.
    Dctcp,
}

/// How the segment size follows the path without ICMP (RFC 4821).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MtuProbing {
    /// Not at all.
    Off,
    /// Segments become smaller when full-size ones vanish; then larger ones are tried again.
    BlackHole,
    /// From the beginning: small segments first, then larger ones.
    Always,
}

/// How segments leave, where congestion control does not set the rate itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// As the window opens.
    Off,
    /// At two windows a round trip in slow start, and 1.2 later.
    Fixed,
    /// A little faster than the window grows, where a burst could fill a queue.
    Growth,
}

/// Probing of a connection on which nothing happens (RFC 9293 §3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// After so long without a segment from the peer.
    pub idle: Span,
    /// Between probes.
    pub interval: Span,
    /// So many probes without an answer end the connection.
    pub count: u32,
}
