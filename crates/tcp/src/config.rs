//! What can be chosen per connection: profiles by name, and every switch on its own.

use farpace_units::{ByteCount, Packets, Span};
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

/// Loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Recovery {
    /// The historical scoreboard, with its switches.
    Linux26(Linux26),
    /// NewReno without SACK (RFC 6582, RFC 5681).
    NewReno,
}

/// Congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Congestion {
    /// Reno (RFC 5681): the simplest, fair, slow on long paths.
    Reno,
    /// BIC with the constants of Linux 2.6.17.
    Bic,
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
    /// Every segment at once.
    None,
}

/// A named set of choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Profile {
    /// The paper's patient: all three defects.
    #[serde(rename = "linux-2.6.17")]
    Linux2617,
    /// 2.6.17 with byte counting and block sort repaired, the third defect left.
    #[serde(rename = "linux-2.6.17+ab")]
    Linux2617Ab,
    /// 2.6.22: the third defect left.
    #[serde(rename = "linux-2.6.22")]
    Linux2622,
    /// 2.6.22 with the paper's remedy B: the one it proposes.
    #[serde(rename = "aist-fix")]
    AistFix,
    /// 2.6.22 with the paper's remedy A.
    #[serde(rename = "aist-fix-max-end")]
    AistFixMaxEnd,
    /// 2.6.24: the remedy that Linux took.
    #[serde(rename = "linux-2.6.24")]
    Linux2624,
    /// RFC 5681 and 6582 without SACK.
    #[serde(rename = "newreno")]
    NewReno,
}

impl Profile {
    /// All of them.
    pub const ALL: [Profile; 7] = [
        Profile::Linux2617,
        Profile::Linux2617Ab,
        Profile::Linux2622,
        Profile::AistFix,
        Profile::AistFixMaxEnd,
        Profile::Linux2624,
        Profile::NewReno,
    ];

    /// The name as scenarios write it.
    pub const fn name(self) -> &'static str {
        match self {
            Profile::Linux2617 => "linux-2.6.17",
            Profile::Linux2617Ab => "linux-2.6.17+ab",
            Profile::Linux2622 => "linux-2.6.22",
            Profile::AistFix => "aist-fix",
            Profile::AistFixMaxEnd => "aist-fix-max-end",
            Profile::Linux2624 => "linux-2.6.24",
            Profile::NewReno => "newreno",
        }
    }

    /// The first slow-start threshold that the kernel's BIC had; 2.6.22 took it away.
    const fn initial_ssthresh(self, congestion: Congestion) -> Option<Packets> {
        match (self, congestion) {
            (Profile::Linux2617 | Profile::Linux2617Ab, Congestion::Bic) => Some(Packets::new(100)),
            _ => None,
        }
    }

    /// The switches of the historical profiles; none for the others.
    pub const fn linux26(self) -> Option<Linux26> {
        let k2617 = Linux26 {
            abc: Abc::Buggy,
            sack_sort: SackSort::Buggy,
            hint: Hint::EveryBlock,
            dsack_scope: DsackScope::Ack,
            lost_rtx: LostRtx::PerBlock,
            reordering: Packets::new(3),
            reduction: Reduction::RateHalving,
        };
        let k2622 = Linux26 {
            abc: Abc::Off,
            sack_sort: SackSort::Ok,
            hint: Hint::FirstBlock,
            dsack_scope: DsackScope::FirstBlock,
            ..k2617
        };
        Some(match self {
            Profile::Linux2617 => k2617,
            Profile::Linux2617Ab => Linux26 { abc: Abc::Fixed, sack_sort: SackSort::Ok, ..k2617 },
            Profile::Linux2622 => k2622,
            Profile::AistFix => Linux26 { hint: Hint::None, lost_rtx: LostRtx::NewBlocks, ..k2622 },
            Profile::AistFixMaxEnd => Linux26 { hint: Hint::None, lost_rtx: LostRtx::MaxEnd, ..k2622 },
            Profile::Linux2624 => {
                Linux26 { lost_rtx: LostRtx::NewlySacked, reduction: Reduction::RateHalvingProgress, ..k2622 }
            }
            Profile::NewReno => return None,
        })
    }
}

/// Everything a connection is made with.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Loss recovery.
    pub recovery: Recovery,
    /// Congestion control.
    pub congestion: Congestion,
    /// Timeout.
    pub rto: Rto,
    /// Smallest retransmission timeout (RFC 6298 §2.4; Linux 2.6 has its own floor).
    pub min_rto: Span,
    /// Receiver's acknowledgments.
    pub delayed_ack: DelayedAck,
    /// Largest payload of a received segment without options, announced in the SYN (RFC 9293 §3.7.1).
    pub mss: u16,
    /// Offer SACK (RFC 2018).
    pub sack: bool,
    /// Offer timestamps (RFC 7323).
    pub timestamps: bool,
    /// Offer window scaling (RFC 7323).
    pub window_scale: bool,
    /// Bytes the receiver holds for the application and for reassembly; bounds the window announced.
    pub receive_buffer: ByteCount,
    /// Bytes the application may have written that are not acknowledged yet.
    pub send_buffer: ByteCount,
    /// First congestion window; none: RFC 3390 (2 to 4 segments).
    pub initial_window: Option<Packets>,
    /// First slow-start threshold; none: unlimited.
    pub initial_ssthresh: Option<Packets>,
    /// Upper limit of the congestion window.
    pub cwnd_clamp: Packets,
    /// How long TIME-WAIT lasts (twice the MSL).
    pub time_wait: Span,
}

/// TCP settings as a scenario writes them: a profile, and whatever differs from it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The named set of choices to begin with (default: aist-fix).
    pub profile: Option<Profile>,
    /// Congestion control (historical profiles: bic, newreno: reno).
    pub congestion: Option<Congestion>,
    /// Retransmission timeout.
    pub rto: Option<Rto>,
    /// Smallest retransmission timeout for rfc6298 (default 200 ms).
    pub min_rto: Option<Span>,
    /// Receiver's acknowledgments.
    pub delayed_ack: Option<DelayedAck>,
    /// Maximum segment size in bytes, without options (default 1460).
    pub mss: Option<u16>,
    /// Selective acknowledgments (default true; newreno: false).
    pub sack: Option<bool>,
    /// Timestamps (default true).
    pub timestamps: Option<bool>,
    /// Window scaling (default true).
    pub window_scale: Option<bool>,
    /// Receive window in full-size segments. Sets the receive buffer.
    pub window: Option<Packets>,
    /// Receive buffer in bytes, where `window` is not given (default 4 MB).
    pub receive_buffer: Option<ByteCount>,
    /// Send buffer in bytes (default 16 MB).
    pub send_buffer: Option<ByteCount>,
    /// First congestion window (default: RFC 3390).
    pub initial_window: Option<Packets>,
    /// First slow-start threshold (default: 100 packets for BIC in the linux-2.6.17 profiles, else unlimited).
    pub initial_ssthresh: Option<Packets>,
    /// Upper limit of the congestion window.
    pub cwnd_clamp: Option<Packets>,
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
    /// Window reduction in recovery (linux-2.6 profiles).
    pub reduction: Option<Reduction>,
}

/// A setting that contradicts the profile or is out of range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A switch of the Linux 2.6 recovery on another profile.
    #[error("`{key}` belongs to the linux-2.6 recovery, which profile `{profile}` does not use")]
    NotLinux26 {
        /// The setting.
        key: &'static str,
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
    /// The configuration these settings mean.
    ///
    /// # Errors
    /// A switch that the profile does not have, or a value out of range.
    pub fn resolve(&self) -> Result<Config, SettingsError> {
        // Every field is named, so that a new one cannot be forgotten.
        let Settings {
            profile,
            congestion,
            rto,
            min_rto,
            delayed_ack,
            mss,
            sack,
            timestamps,
            window_scale,
            window,
            receive_buffer,
            send_buffer,
            initial_window,
            initial_ssthresh,
            cwnd_clamp,
            abc,
            sack_sort,
            hint,
            dsack_scope,
            lost_rtx,
            reordering,
            reduction,
        } = self;
        let profile = profile.unwrap_or(Profile::AistFix);
        let recovery = match profile.linux26() {
            Some(base) => Recovery::Linux26(Linux26 {
                abc: abc.unwrap_or(base.abc),
                sack_sort: sack_sort.unwrap_or(base.sack_sort),
                hint: hint.unwrap_or(base.hint),
                dsack_scope: dsack_scope.unwrap_or(base.dsack_scope),
                lost_rtx: lost_rtx.unwrap_or(base.lost_rtx),
                reordering: reordering.unwrap_or(base.reordering),
                reduction: reduction.unwrap_or(base.reduction),
            }),
            None => {
                let given = [
                    ("abc", abc.is_some()),
                    ("sack_sort", sack_sort.is_some()),
                    ("hint", hint.is_some()),
                    ("dsack_scope", dsack_scope.is_some()),
                    ("lost_rtx", lost_rtx.is_some()),
                    ("reordering", reordering.is_some()),
                    ("reduction", reduction.is_some()),
                ];
                if let Some((key, _)) = given.iter().find(|g| g.1) {
                    return Err(SettingsError::NotLinux26 { key, profile: profile.name() });
                }
                Recovery::NewReno
            }
        };
        let historical = matches!(recovery, Recovery::Linux26(_));
        let mss = mss.unwrap_or(1460);
        if !(MIN_MSS..=MAX_MSS).contains(&mss) {
            return Err(SettingsError::Range { key: "mss", expected: "from 88 to 65495 bytes" });
        }
        let timestamps = timestamps.unwrap_or(true);
        let payload = u64::from(mss) - if timestamps { 12 } else { 0 };
        let receive_buffer = match window {
            Some(w) => ByteCount::new(u64::from(w.get()) * payload),
            None => receive_buffer.unwrap_or(ByteCount::new(4_000_000)),
        };
        if receive_buffer.get() < payload || receive_buffer > MAX_WINDOW {
            return Err(SettingsError::Range { key: "window", expected: "from one segment to 1 GiB" });
        }
        let send_buffer = send_buffer.unwrap_or(ByteCount::new(16_000_000));
        if send_buffer.is_zero() {
            return Err(SettingsError::Range { key: "send_buffer", expected: "at least 1 B" });
        }
        if initial_window.is_some_and(Packets::is_zero) {
            return Err(SettingsError::Range { key: "initial_window", expected: "at least 1 packet" });
        }
        let cwnd_clamp = cwnd_clamp.unwrap_or(Packets::MAX);
        if cwnd_clamp.is_zero() {
            return Err(SettingsError::Range { key: "cwnd_clamp", expected: "at least 1 packet" });
        }
        let congestion = congestion.unwrap_or(if historical { Congestion::Bic } else { Congestion::Reno });
        Ok(Config {
            recovery,
            congestion,
            rto: rto.unwrap_or(if historical { Rto::Linux26 } else { Rto::Rfc6298 }),
            min_rto: min_rto.unwrap_or(Span::from_millis(200)),
            delayed_ack: delayed_ack.unwrap_or(if historical {
                DelayedAck::Linux26
            } else {
                DelayedAck::Rfc5681
            }),
            mss,
            sack: sack.unwrap_or(historical),
            timestamps,
            window_scale: window_scale.unwrap_or(true),
            receive_buffer,
            send_buffer,
            initial_window: *initial_window,
            initial_ssthresh: initial_ssthresh.or(profile.initial_ssthresh(congestion)),
            cwnd_clamp,
            time_wait: Span::from_secs(60),
        })
    }
}

/// Smallest MSS that is accepted: RFC 791's 68-byte packet without its IP and TCP headers would be 28;
/// Linux uses 88 to bound the work that tiny segments cause.
pub const MIN_MSS: u16 = 88;
/// Largest MSS: an IPv4 packet of 65535 bytes.
pub const MAX_MSS: u16 = 65_495;
/// Largest window that RFC 7323 can announce.
pub const MAX_WINDOW: ByteCount = ByteCount::new(1 << 30);
