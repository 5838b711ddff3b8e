//! What can be chosen per connection: profiles by name, and every switch on its own.

mod ack_control;
mod buffers;
mod congestion;
mod external;
mod profiles;
mod quirks;
mod settings;
mod switches;
mod tuning;

pub use ack_control::{AckControlMode, AckRequests, RequestRule, RequestRules};
pub use buffers::{BufferSize, WindowGrowth};
pub use congestion::Congestion;
pub use external::{ExternalControl, ExternalOpening};
pub use profiles::Profile;
pub use quirks::{FirstWindow, Quirks, WindowUpdates};
pub use settings::{Settings, SettingsError};
pub use switches::*;
pub use tuning::Tuning;

use farpace_units::{ByteCount, Packets, Span};

/// Everything a connection is made with.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Loss recovery.
    pub recovery: Recovery,
    /// Congestion control.
    pub congestion: Congestion,
    /// One that the program supplies, in its place.
    pub external: Option<ExternalControl>,
    /// Timeout.
    pub rto: Rto,
    /// Smallest retransmission timeout (RFC 6298 §2.4; Linux 2.6 has its own floor).
    pub min_rto: Span,
    /// Receiver's acknowledgments.
    pub delayed_ack: DelayedAck,
    /// Longest time for which an acknowledgment is held back; `bsd`: the tick at which they all leave. None:
    /// the policy's own.
    pub ack_delay: Option<Span>,
    /// Segments for each acknowledgment (`stretch`); none: the policy's own.
    pub ack_every: Option<Packets>,
    /// Asking the peer for acknowledgments, and answering when it asks.
    pub ack_requests: AckRequests,
    /// Tick of the clocks: round trips are measured in whole ticks, timestamps count them, and the
    /// retransmission timer fires at one. None: round trips and timers are exact, timestamps count
    /// milliseconds.
    pub clock: Option<Span>,
    /// Largest payload of a received segment without options, announced in the SYN (RFC 9293 §3.7.1).
    pub mss: u16,
    /// Offer SACK (RFC 2018).
    pub sack: bool,
    /// Offer timestamps (RFC 7323).
    pub timestamps: bool,
    /// Offer window scaling (RFC 7323).
    pub window_scale: bool,
    /// Bytes the receiver holds for the application and for reassembly; bounds the window announced.
    pub receive_buffer: BufferSize,
    /// How that grows, where it is autotuned.
    pub window_growth: WindowGrowth,
    /// Bytes the application may have written that are not acknowledged yet. An autotuned one follows the
    /// congestion window.
    pub send_buffer: BufferSize,
    /// First congestion window; none: see [`first_window`](Config::first_window).
    pub initial_window: Option<Packets>,
    /// First slow-start threshold; none: unlimited.
    pub initial_ssthresh: Option<Packets>,
    /// Upper limit of the congestion window.
    pub cwnd_clamp: Packets,
    /// Lower limit of the congestion window.
    pub cwnd_floor: Packets,
    /// HyStart++ in the first slow start (RFC 9406).
    pub hystart: bool,
    /// Most segments by which one ACK raises the window in slow start (L of RFC 3465); none: what it
    /// acknowledges.
    pub slow_start_limit: Option<Packets>,
    /// Bandwidth estimation of TCP-J and TCP-STAR.
    pub abe: AbeConfig,
    /// Fast start: the first slow start is faster while the window is far below what the path holds.
    pub fast_start: bool,
    /// Segments leave at a rate, or as the window allows.
    pub pacing: Pacing,
    /// Less than a full segment waits while anything is outstanding (RFC 9293 §3.7.4).
    pub nagle: bool,
    /// Explicit congestion notification.
    pub ecn: EcnMode,
    /// Probing for the path's segment size.
    pub mtu_probing: MtuProbing,
    /// Probing of idle connections; none: they last as long as both ends (RFC 9293 MUST-25: off by default).
    pub keep_alive: Option<KeepAlive>,
    /// The connection ends when what waits to be sent or acknowledged has made no progress for so long, also
    /// where the peer has closed its window (RFC 5482, RFC 9293 §3.8.3); none: only unanswered
    /// retransmissions end it.
    pub user_timeout: Option<Span>,
    /// Bytes of the IP header that each segment will get: 20 for IPv4, 40 for IPv6. Hosts set it.
    pub network_header: u16,
    /// Most payload bytes that may leave as one super-segment, for a device that cuts it (TSO); zero: every
    /// segment leaves on its own. Hosts set it. More than [`MAX_SUPER_SEGMENT`] counts as that.
    pub super_segment: u32,
    /// How long a connection whose program has closed both directions waits for the peer's FIN (FIN-WAIT-2);
    /// see [`Connection::is_orphan`](crate::Connection::is_orphan).
    pub fin_timeout: Span,
    /// How long TIME-WAIT lasts (twice the MSL).
    pub time_wait: Span,
    /// What the program has chosen by socket options.
    pub tuning: Tuning,
    /// Departures from RFCs.
    pub quirks: Quirks,
}

impl Config {
    /// Where RFCs leave something open, or Linux departs from them, this is as Linux 6 does.
    pub const fn is_linux(&self) -> bool {
        self.quirks.linux
    }

    /// The congestion control follows a model of the path: it needs the modern recovery, and sizes the window
    /// in every state.
    pub const fn is_model_based(&self) -> bool {
        self.external.is_some() || self.congestion.is_model_based()
    }

    /// The first congestion window for segments of `mss` bytes.
    pub fn first_window(&self, mss: u32) -> Packets {
        self.initial_window.unwrap_or(Packets::new(self.quirks.first_window.segments(mss)))
    }

    /// Appropriate byte counting of the recovery that has it as a switch.
    pub const fn byte_counting(&self) -> Abc {
        match self.recovery {
            Recovery::Linux26(switches) => switches.abc,
            Recovery::Linux(_) | Recovery::Modern(_) | Recovery::NewReno => Abc::Off,
        }
    }
}

/// How long FIN-WAIT-2 lasts when the program has gone, unless settings say otherwise (as in Linux:
/// tcp_fin_timeout).
pub const FIN_TIMEOUT: Span = Span::from_secs(60);
/// How long TIME-WAIT lasts: twice the MSL of 30 s (as in Linux).
pub const TIME_WAIT: Span = Span::from_secs(60);
/// Tick of BSD's slow timer.
const SLOW_TICK: Span = Span::from_millis(500);
/// Smallest MSS of our own that settings may ask for (Linux: TCP_MIN_MSS). RFC 791's 68-byte packet without
/// its IP and TCP headers would be 28.
pub const MIN_MSS: u16 = 88;
/// What a peer's announcement counts at least. RFC 9293 §3.7.1: nothing longer than announced is sent; below
/// this the work that tiny segments cause would be the peer's to choose (Linux: net.ipv4.tcp_min_snd_mss).
pub const MIN_SEND_MSS: u16 = 48;
/// Largest MSS: an IPv4 packet of 65535 bytes.
pub const MAX_MSS: u16 = 65_495;
/// Largest payload of a super-segment: an IP packet of 65535 bytes with the longest headers, and room for
/// those of a link.
pub const MAX_SUPER_SEGMENT: u32 = 65_400;
/// Largest window that RFC 7323 can announce.
pub const MAX_WINDOW: ByteCount = ByteCount::new(1 << 30);
