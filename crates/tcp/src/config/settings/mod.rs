//! Settings: a profile and what differs from it, as people write them.

mod derive;
mod overlay;
mod validate;

use super::{
    Abc, AbeFilter, AckControlMode, Config, Congestion, DelayedAck, Detection, DsackScope, EcnMode,
    ExternalControl, Hint, LostRtx, MtuProbing, Profile, Reduction, RequestRule, Rto, SackSort,
    TimeoutProcedure,
};
use farpace_units::{Amount, ByteCount, Packets, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// TCP settings as a scenario writes them: a profile, and whatever differs from it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The named set of choices to begin with (default: modern).
    pub profile: Option<Profile>,
    /// Congestion control (default: cubic for modern and linux, farpace for farpace, bic for the historical
    /// profiles, else reno).
    pub congestion: Option<Congestion>,
    /// A congestion control that the program supplies, in place of `congestion`. It cannot be written.
    #[serde(skip)]
    pub external: Option<ExternalControl>,
    /// Retransmission timeout.
    pub rto: Option<Rto>,
    /// Smallest retransmission timeout for rfc6298 (default 200 ms).
    pub min_rto: Option<Span>,
    /// Receiver's acknowledgments.
    pub delayed_ack: Option<DelayedAck>,
    /// Longest time for which an acknowledgment is held back, 1 to 500 ms (with delayed_ack rfc5681 and
    /// stretch, default 40 ms; bsd: the tick at which they leave, default 200 ms).
    pub ack_delay: Option<Span>,
    /// Segments for each acknowledgment (with delayed_ack stretch; default 8).
    pub ack_every: Option<Packets>,
    /// How this end requests ACKs that are not delayed, and answers such requests (default: off).
    pub ack_control: Option<AckControlMode>,
    /// Which segments request an ACK (default, with ack_control: auto).
    #[serde(alias = "ask_for")]
    pub ack_requests: Option<Vec<RequestRule>>,
    /// Besides, one of so many segments requests an ACK.
    #[serde(alias = "ask_every")]
    pub ack_request_every: Option<Packets>,
    /// The reserved header bit of ack_control classic and flag: 4, 5 or 6 (default 4).
    pub cdl_bit: Option<u8>,
    /// Tick of the clocks of round trips, timestamps and the retransmission timer, 1 us to 1 s (default:
    /// exact, timestamps 1 ms; net2: 500 ms).
    pub clock: Option<Span>,
    /// Maximum segment size in bytes, without options (default 1460).
    pub mss: Option<u16>,
    /// Selective acknowledgments (default: true, but for newreno and net2).
    pub sack: Option<bool>,
    /// Timestamps (default: true, but for net2).
    pub timestamps: Option<bool>,
    /// Window scaling (default: true, but for net2).
    pub window_scale: Option<bool>,
    /// Receive window, in full-size segments or in bytes: a receive buffer of fixed size.
    pub window: Option<Amount>,
    /// Receive buffer of fixed size in bytes, where `window` is not given (default: autotuned from 4 MiB to 1
    /// GiB; linux: from 64 KiB to 6 MiB; the historical profiles and net2: 4 MB).
    pub receive_buffer: Option<ByteCount>,
    /// Upper limit of an autotuned receive buffer.
    pub receive_buffer_max: Option<ByteCount>,
    /// Send buffer of fixed size in bytes (default: autotuned from 256 KiB to 3 GiB by the congestion window;
    /// linux: from 16 KiB to 4 MiB; the historical profiles and net2: 16 MB).
    pub send_buffer: Option<ByteCount>,
    /// Upper limit of an autotuned send buffer.
    pub send_buffer_max: Option<ByteCount>,
    /// First congestion window (default: ten segments, RFC 6928; RFC 3390 for newreno and
    /// the historical profiles; net2: 1).
    pub initial_window: Option<Packets>,
    /// First slow-start threshold (default: 100 packets for BIC in the linux-2.6.17 profiles; net2: 65535
    /// bytes; else unlimited).
    pub initial_ssthresh: Option<Packets>,
    /// Upper limit of the congestion window (default: none; net2: 65535 bytes).
    pub cwnd_clamp: Option<Packets>,
    /// Lower limit of the congestion window (default: 1): what a layer below holds back, and one more. For
    /// paths of one's own.
    pub cwnd_floor: Option<Packets>,
    /// Less than a full segment waits while anything is outstanding (default true).
    pub nagle: Option<bool>,
    /// Explicit congestion notification (default: off; dctcp with congestion control dctcp).
    pub ecn: Option<EcnMode>,
    /// Probing for the path's segment size (default: black-hole; off for linux, net2 and the historical
    /// profiles).
    pub mtu_probing: Option<MtuProbing>,
    /// A connection without a segment from the peer for so long is probed (default: never).
    pub keep_alive: Option<Span>,
    /// Time between such probes (default 75 s).
    pub keep_alive_interval: Option<Span>,
    /// Unanswered probes that end the connection (default 9).
    pub keep_alive_count: Option<u32>,
    /// The connection ends when what waits to be sent has made no progress for so long (default: no such
    /// limit).
    pub user_timeout: Option<Span>,
    /// How long a connection whose program has closed both directions waits for the peer's FIN (default 60
    /// s).
    pub fin_timeout: Option<Span>,
    /// Byte counting in slow start (linux-2.6 profiles).
    pub abc: Option<Abc>,
    /// Block sort (linux-2.6 profiles).
    pub sack_sort: Option<SackSort>,
    /// Walk position (linux-2.6 profiles).
    pub hint: Option<Hint>,
    /// D-SACK reach (linux-2.6 profiles).
    pub dsack_scope: Option<DsackScope>,
    /// Detection of lost retransmissions (linux-2.6 profiles).
    pub lost_rtx: Option<LostRtx>,
    /// Initial degree of reordering (linux-2.6 profiles, default 3).
    pub reordering: Option<Packets>,
    /// Window reduction in recovery (linux-2.6 profiles: rate halving; modern ones: at once, or PRR).
    pub reduction: Option<Reduction>,
    /// Loss detection (modern profiles).
    pub detection: Option<Detection>,
    /// Tail loss probes (modern profiles).
    pub tail_loss_probe: Option<bool>,
    /// What a retransmission timeout does first (modern profiles; default: aen-literal with star, aen with
    /// star-robust).
    pub timeout: Option<TimeoutProcedure>,
    /// Taking reductions back for losses that were none (modern profiles).
    pub undo: Option<bool>,
    /// HyStart++ in the first slow start (modern profiles; default: with cubic in the profiles modern and
    /// linux).
    pub hystart: Option<bool>,
    /// Most segments by which one ACK raises the window in slow start (not profile linux; default: as many as
    /// it acknowledges).
    pub slow_start_limit: Option<Packets>,
    /// How bandwidth samples become an estimate (tcp-j, star, star-robust; default: none, for star-robust
    /// tsw).
    pub abe_filter: Option<AbeFilter>,
    /// The interval taken for the first ACK, which has no predecessor; 0 s: the handshake's round trip
    /// (tcp-j: 1 us, star: 1 ms, star-robust: 0 s).
    pub abe_first_interval: Option<Span>,
    /// The window is at most so many times the measured bandwidth-delay product; 0: no such bound (star: 0,
    /// star-robust: 2).
    pub abe_cap: Option<f64>,
    /// A loss sets the Reno part of the window to zero, as TCP-STAR's `cwnd = cwnd_abe` can be read (star;
    /// default: false).
    pub cws_reset: Option<bool>,
    /// Faster than doubling in the first slow start, while the window is far below what the first flight has
    /// told of the path (modern profiles, paced; default: with cubic in profile modern).
    pub fast_start: Option<bool>,
    /// Segments leave at a rate, not as the window allows (modern profiles; default: with cubic in profile
    /// modern, and with bbr1, bbr3, farpace and star-robust).
    pub pacing: Option<bool>,
}

/// A setting that contradicts the profile or is out of range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A switch of one recovery on a profile that has another.
    #[error("`{key}` belongs to the {recovery} recovery, which profile `{profile}` does not use")]
    Foreign {
        /// The setting.
        key: &'static str,
        /// The recovery it belongs to.
        recovery: &'static str,
        /// The profile.
        profile: &'static str,
    },
    /// Out of range.
    #[error("`{key}` must be {expected}")]
    Range {
        /// The setting.
        key: &'static str,
        /// The allowed values, in words.
        expected: &'static str,
    },
}

impl Settings {
    /// The configuration these settings mean: the profile's, with what is set in place of its own, and what
    /// follows from both.
    ///
    /// # Errors
    /// A switch that the profile does not have, or a value out of range.
    pub fn resolve(&self) -> Result<Config, SettingsError> {
        self.validate_switches()?;
        self.validate_ranges()?;
        let mut config = self.profile().config();
        self.overlay(&mut config);
        self.derive(&mut config)?;
        self.validate(&config)?;
        Ok(config)
    }

    fn profile(&self) -> Profile {
        self.profile.unwrap_or_default()
    }
}
