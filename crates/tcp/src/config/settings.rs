//! Settings: a profile and what differs from it, as people write them.

use super::{
    Abc, AbeConfig, AbeFilter, AckControlMode, AckRequests, BufferSize, Config, Congestion, DEFAULT_BIT,
    DelayedAck, Detection, DsackScope, EcnMode, Hint, KeepAlive, Linux, Linux26, LostRtx, MAX_MSS,
    MAX_WINDOW, MIN_MSS, Modern, MtuProbing, Pacing, Profile, Recovery, Reduction, RequestRule, Rto,
    SackSort, TimeoutProcedure,
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
    /// Congestion control (default: cubic for modern and linux, farpace for farpace, bic for the historical profiles, else reno).
    pub congestion: Option<Congestion>,
    /// Retransmission timeout.
    pub rto: Option<Rto>,
    /// Smallest retransmission timeout for rfc6298 (default 200 ms).
    pub min_rto: Option<Span>,
    /// Receiver's acknowledgments.
    pub delayed_ack: Option<DelayedAck>,
    /// Longest time for which an acknowledgment is held back, 1 to 500 ms (with delayed_ack rfc5681 and stretch, default 40 ms; bsd:
    /// the tick at which they leave, default 200 ms).
    pub ack_delay: Option<Span>,
    /// Segments for each acknowledgment (with delayed_ack stretch; default 8).
    pub ack_every: Option<Packets>,
    /// How this end asks for ACKs that are not held back, and answers such requests (default: off).
    pub ack_control: Option<AckControlMode>,
    /// Which segments ask (default, with ack_control: auto).
    pub ask_for: Option<Vec<RequestRule>>,
    /// Besides, every so many segments ask.
    pub ask_every: Option<Packets>,
    /// The reserved header bit of ack_control classic and flag: 4, 5 or 6 (default 4).
    pub cdl_bit: Option<u8>,
    /// Tick of the clocks of round trips, timestamps and the retransmission timer, 1 us to 1 s (default: exact, timestamps 1 ms;
    /// net2: 500 ms).
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
    /// Receive buffer of fixed size in bytes, where `window` is not given (default: autotuned from 4 MiB to 1 GiB; linux: from
    /// 64 KiB to 6 MiB; the historical profiles and net2: 4 MB).
    pub receive_buffer: Option<ByteCount>,
    /// Upper limit of an autotuned receive buffer.
    pub receive_buffer_max: Option<ByteCount>,
    /// Send buffer of fixed size in bytes (default: autotuned from 256 KiB to 3 GiB by the congestion window; linux: from 16 KiB
    /// to 4 MiB; the historical profiles and net2: 16 MB).
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
    /// Lower limit of the congestion window (default: 1): what a layer below holds back, and one more. For paths of one's own.
    pub cwnd_floor: Option<Packets>,
    /// Less than a full segment waits while anything is outstanding (default true).
    pub nagle: Option<bool>,
    /// Explicit congestion notification (default: off; dctcp with congestion control dctcp).
    pub ecn: Option<EcnMode>,
    /// Probing for the path's segment size (default: black-hole; off for linux, net2 and the historical profiles).
    pub mtu_probing: Option<MtuProbing>,
    /// A connection without a segment from the peer for so long is probed (default: never).
    pub keep_alive: Option<Span>,
    /// Time between such probes (default 75 s).
    pub keep_alive_interval: Option<Span>,
    /// Unanswered probes that end the connection (default 9).
    pub keep_alive_count: Option<u32>,
    /// The connection ends when what waits to be sent has made no progress for so long (default: no such limit).
    pub user_timeout: Option<Span>,
    /// How long a connection whose program has closed both directions waits for the peer's FIN (default 60 s).
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
    /// What a retransmission timeout does first (modern profiles; default: aen-literal with star, aen with star-robust).
    pub timeout: Option<TimeoutProcedure>,
    /// Taking reductions back for losses that were none (modern profiles).
    pub undo: Option<bool>,
    /// HyStart++ in the first slow start (modern profiles; default: with cubic in the profiles modern and linux).
    pub hystart: Option<bool>,
    /// Most segments by which one ACK raises the window in slow start (modern profiles; default: as many as it
    /// acknowledges).
    pub slow_start_limit: Option<Packets>,
    /// How bandwidth samples become an estimate (tcp-j, star, star-robust; default: none, for star-robust tsw).
    pub abe_filter: Option<AbeFilter>,
    /// The interval taken for the first ACK, which has no predecessor; 0 s: the handshake's round trip (tcp-j: 1 us,
    /// star: 1 ms, star-robust: 0 s).
    pub abe_first_interval: Option<Span>,
    /// The window is at most so many times the measured bandwidth-delay product; 0: no such bound (star: 0,
    /// star-robust: 2).
    pub abe_cap: Option<f64>,
    /// Faster than doubling in the first slow start, while the window is far below what the first flight has told of the path
    /// (modern profiles, paced; default: with cubic in profile modern).
    pub fast_start: Option<bool>,
    /// Segments leave at a rate, not as the window allows (modern profiles; default: with cubic in profile modern, and with bbr1,
    /// bbr3, farpace and star-robust).
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
            ack_delay,
            ack_every,
            ack_control,
            ask_for,
            ask_every,
            cdl_bit,
            clock,
            mss,
            sack,
            timestamps,
            window_scale,
            window,
            receive_buffer,
            receive_buffer_max,
            send_buffer,
            send_buffer_max,
            initial_window,
            initial_ssthresh,
            cwnd_clamp,
            cwnd_floor,
            nagle,
            ecn,
            mtu_probing,
            keep_alive,
            keep_alive_interval,
            keep_alive_count,
            user_timeout,
            fin_timeout,
            abc,
            sack_sort,
            hint,
            dsack_scope,
            lost_rtx,
            reordering,
            reduction,
            detection,
            tail_loss_probe,
            timeout,
            undo,
            hystart,
            slow_start_limit,
            abe_filter,
            abe_first_interval,
            abe_cap,
            fast_start,
            pacing,
        } = self;
        let profile = profile.unwrap_or_default();
        let foreign = |recovery, given: &[(&'static str, bool)]| match given.iter().find(|g| g.1) {
            Some(&(key, _)) => Err(SettingsError::Foreign { key, recovery, profile: profile.name() }),
            None => Ok(()),
        };
        let of_linux26 = [
            ("abc", abc.is_some()),
            ("sack_sort", sack_sort.is_some()),
            ("hint", hint.is_some()),
            ("dsack_scope", dsack_scope.is_some()),
            ("lost_rtx", lost_rtx.is_some()),
            ("reordering", reordering.is_some()),
        ];
        let of_modern = [
            ("detection", detection.is_some()),
            ("tail_loss_probe", tail_loss_probe.is_some()),
            ("timeout", timeout.is_some()),
            ("undo", undo.is_some()),
            ("hystart", hystart.is_some()),
            ("slow_start_limit", slow_start_limit.is_some()),
            ("fast_start", fast_start.is_some()),
            ("pacing", pacing.is_some()),
        ];
        let recovery = if let Some(base) = profile.linux26() {
            foreign("modern", &of_modern)?;
            if matches!(reduction, Some(Reduction::AtOnce | Reduction::Prr)) {
                return Err(SettingsError::Range {
                    key: "reduction",
                    expected: "a kind of rate halving here",
                });
            }
            Recovery::Linux26(Linux26 {
                abc: abc.unwrap_or(base.abc),
                sack_sort: sack_sort.unwrap_or(base.sack_sort),
                hint: hint.unwrap_or(base.hint),
                dsack_scope: dsack_scope.unwrap_or(base.dsack_scope),
                lost_rtx: lost_rtx.unwrap_or(base.lost_rtx),
                reordering: reordering.unwrap_or(base.reordering),
                reduction: reduction.unwrap_or(base.reduction),
            })
        } else if profile == Profile::Linux {
            let base = Linux::default();
            let of_modern = [
                ("detection", detection.is_some()),
                ("reduction", reduction.is_some()),
                ("timeout", timeout.is_some()),
                ("undo", undo.is_some()),
                ("slow_start_limit", slow_start_limit.is_some()),
                ("fast_start", fast_start.is_some()),
            ];
            foreign("modern", &of_modern)?;
            let of_linux26 = of_linux26.map(|(key, given)| (key, given && key != "reordering"));
            foreign("linux-2.6", &of_linux26)?;
            Recovery::Linux(Linux {
                tail_loss_probe: tail_loss_probe.unwrap_or(base.tail_loss_probe),
                reordering: reordering.unwrap_or(base.reordering),
                ..base
            })
        } else {
            foreign("linux-2.6", &of_linux26)?;
            if let Some(base) = profile.modern() {
                if matches!(reduction, Some(Reduction::RateHalving | Reduction::RateHalvingProgress)) {
                    return Err(SettingsError::Range {
                        key: "reduction",
                        expected: "`at-once` or `prr` here",
                    });
                }
                Recovery::Modern(Modern {
                    detection: detection.unwrap_or(base.detection),
                    reduction: reduction.unwrap_or(base.reduction),
                    tail_loss_probe: tail_loss_probe.unwrap_or(base.tail_loss_probe),
                    timeout: timeout.unwrap_or(match congestion {
                        Some(Congestion::Star) => TimeoutProcedure::AenLiteral,
                        Some(Congestion::StarRobust) => TimeoutProcedure::Aen,
                        _ => base.timeout,
                    }),
                    undo: undo.unwrap_or(base.undo),
                })
            } else {
                foreign("modern", &of_modern)?;
                foreign("linux-2.6", &[("reduction", reduction.is_some())])?;
                Recovery::NewReno
            }
        };
        let historical = matches!(recovery, Recovery::Linux26(_));
        let mss = mss.unwrap_or(1460);
        if !(MIN_MSS..=MAX_MSS).contains(&mss) {
            return Err(SettingsError::Range { key: "mss", expected: "from 88 to 65495 bytes" });
        }
        let net2 = profile == Profile::Net2;
        let timestamps = timestamps.unwrap_or(!net2);
        let payload = u64::from(mss) - if timestamps { 12 } else { 0 };
        let buffers = profile.buffers();
        let window = window.map(|w| w.in_bytes(ByteCount::new(payload))).or(*receive_buffer);
        let receive_buffer = buffer("receive_buffer_max", buffers.receive, window, *receive_buffer_max)?;
        if receive_buffer.initial.get() < payload || receive_buffer.max > MAX_WINDOW {
            let key = if window.is_some() { "window" } else { "receive_buffer_max" };
            return Err(SettingsError::Range { key, expected: "from one segment to 1 GiB" });
        }
        let send_buffer = buffer("send_buffer_max", buffers.send, *send_buffer, *send_buffer_max)?;
        if send_buffer.initial.is_zero() {
            return Err(SettingsError::Range { key: "send_buffer", expected: "at least 1 B" });
        }
        if initial_window.is_some_and(Packets::is_zero) {
            return Err(SettingsError::Range { key: "initial_window", expected: "at least 1 packet" });
        }
        // Windows without scaling, and the first threshold, are at most 65535 bytes.
        let unscaled = net2.then(|| Packets::new(u32::from(u16::MAX) / payload.max(1) as u32));
        let cwnd_clamp = cwnd_clamp.or(unscaled).unwrap_or(Packets::MAX);
        if cwnd_clamp.is_zero() {
            return Err(SettingsError::Range { key: "cwnd_clamp", expected: "at least 1 packet" });
        }
        let cwnd_floor = cwnd_floor.unwrap_or(Packets::new(1));
        if cwnd_floor.is_zero() || cwnd_floor > cwnd_clamp {
            return Err(SettingsError::Range { key: "cwnd_floor", expected: "from 1 packet to cwnd_clamp" });
        }
        if slow_start_limit.is_some_and(Packets::is_zero) {
            return Err(SettingsError::Range { key: "slow_start_limit", expected: "at least 1 packet" });
        }
        if keep_alive.is_none() && (keep_alive_interval.is_some() || keep_alive_count.is_some()) {
            return Err(SettingsError::Range { key: "keep_alive", expected: "given with its other keys" });
        }
        let spans = [
            ("keep_alive", keep_alive),
            ("keep_alive_interval", keep_alive_interval),
            ("user_timeout", user_timeout),
            ("fin_timeout", fin_timeout),
        ];
        if let Some((key, _)) = spans.iter().find(|(_, s)| s.is_some_and(|s| s < Span::from_millis(1))) {
            return Err(SettingsError::Range { key, expected: "at least 1 ms" });
        }
        let congestion = congestion.unwrap_or(match profile {
            _ if historical => Congestion::Bic,
            Profile::Modern | Profile::Linux => Congestion::Cubic,
            Profile::Farpace => Congestion::Farpace,
            _ => Congestion::Reno,
        });
        if congestion.is_model_based() {
            if !matches!(recovery, Recovery::Modern(_) | Recovery::Linux(_)) {
                foreign("modern", &[("congestion = bbr1, bbr3 or farpace", true)])?;
            }
            if *pacing == Some(false) {
                return Err(SettingsError::Range {
                    key: "pacing",
                    expected: "true, or not given, for bbr1, bbr3 and farpace",
                });
            }
        }
        if !congestion.slow_starts() && (*hystart == Some(true) || slow_start_limit.is_some()) {
            let key = if slow_start_limit.is_some() { "slow_start_limit" } else { "hystart" };
            return Err(SettingsError::Range {
                key,
                expected: "used with a congestion control that has the common slow start",
            });
        }
        let abe = abe(congestion, *abe_filter, *abe_first_interval, *abe_cap)?;
        let asking = asking(*ack_control, ask_for.as_deref(), *ask_every, *cdl_bit)?;
        let delayed_ack = delayed_ack.unwrap_or(match profile {
            _ if historical => DelayedAck::Linux26,
            Profile::Net2 => DelayedAck::Bsd,
            Profile::Linux => DelayedAck::Linux,
            _ => DelayedAck::Rfc5681,
        });
        check_delays(delayed_ack, *ack_delay, *ack_every)?;
        let rto = rto.unwrap_or(match profile {
            _ if historical => Rto::Linux26,
            Profile::Linux => Rto::Linux,
            Profile::Net2 => Rto::Net2,
            _ => Rto::Rfc6298,
        });
        if clock.is_some_and(|tick| tick < Span::from_micros(1) || tick > Span::from_secs(1)) {
            return Err(SettingsError::Range { key: "clock", expected: "from 1 us to 1 s" });
        }
        let clock = clock.or((net2 || rto == Rto::Net2).then_some(SLOW_TICK));
        let opens_carefully = matches!(profile, Profile::Modern | Profile::Linux);
        let hystart = hystart.unwrap_or(opens_carefully && congestion == Congestion::Cubic);
        let own = profile == Profile::Modern && congestion == Congestion::Cubic;
        let paced = pacing.unwrap_or(
            own || congestion.is_model_based()
                || (congestion == Congestion::StarRobust && matches!(recovery, Recovery::Modern(_))),
        );
        let pacing = match paced {
            false => Pacing::Off,
            true if own => Pacing::Growth,
            true => Pacing::Fixed,
        };
        if *fast_start == Some(true) && pacing != Pacing::Growth {
            return Err(SettingsError::Range {
                key: "fast_start",
                expected: "used with cubic in profile modern, and with pacing",
            });
        }
        let fast_start = fast_start.unwrap_or(pacing == Pacing::Growth && slow_start_limit.is_none());
        Ok(Config {
            recovery,
            congestion,
            rto,
            min_rto: min_rto.unwrap_or(Span::from_millis(200)),
            delayed_ack,
            ack_delay: *ack_delay,
            ack_every: *ack_every,
            asking,
            clock,
            mss,
            sack: sack.unwrap_or(recovery != Recovery::NewReno),
            timestamps,
            window_scale: window_scale.unwrap_or(!net2),
            receive_buffer,
            window_growth: buffers.growth,
            send_buffer,
            initial_window: initial_window.or(net2.then_some(Packets::new(1))),
            initial_ssthresh: initial_ssthresh.or(profile.initial_ssthresh(congestion)).or(unscaled),
            cwnd_clamp,
            cwnd_floor,
            hystart,
            slow_start_limit: *slow_start_limit,
            abe,
            fast_start,
            pacing,
            nagle: nagle.unwrap_or(true),
            ecn: ecn.unwrap_or(match profile {
                _ if congestion == Congestion::Dctcp => EcnMode::Dctcp,
                Profile::Linux => EcnMode::Passive,
                _ => EcnMode::Off,
            }),
            mtu_probing: mtu_probing.unwrap_or(if historical || net2 || profile == Profile::Linux {
                MtuProbing::Off
            } else {
                MtuProbing::BlackHole
            }),
            keep_alive: keep_alive.map(|idle| KeepAlive {
                idle,
                interval: keep_alive_interval.unwrap_or(Span::from_secs(75)),
                count: keep_alive_count.unwrap_or(9),
            }),
            user_timeout: *user_timeout,
            network_header: 20,
            super_segment: 0,
            fin_timeout: fin_timeout.unwrap_or(super::FIN_TIMEOUT),
            time_wait: Span::from_secs(60),
            tuning: super::Tuning::default(),
        })
    }
}

/// The estimator of `congestion` with these changes.
fn abe(
    congestion: Congestion,
    filter: Option<AbeFilter>,
    first_interval: Option<Span>,
    cap: Option<f64>,
) -> Result<AbeConfig, SettingsError> {
    let keys = [
        ("abe_filter", filter.is_some()),
        ("abe_first_interval", first_interval.is_some()),
        ("abe_cap", cap.is_some()),
    ];
    if let Some((key, _)) = keys.iter().find(|(_, given)| *given && !congestion.has_abe()) {
        return Err(SettingsError::Range { key, expected: "used with tcp-j, star or star-robust" });
    }
    if cap.is_some_and(|cap| !(0.0..=1e6).contains(&cap)) {
        return Err(SettingsError::Range { key: "abe_cap", expected: "from 0 to 1000000" });
    }
    let own = congestion.abe();
    Ok(AbeConfig {
        filter: filter.unwrap_or(own.filter),
        first_interval: first_interval.unwrap_or(own.first_interval),
        cap: cap.or(own.cap).filter(|cap| *cap > 0.0),
    })
}

/// Tick of BSD's slow timer.
const SLOW_TICK: Span = Span::from_millis(500);

/// A buffer of the profile's size, or as settings want it.
fn buffer(
    max_key: &'static str,
    profile: BufferSize,
    fixed: Option<ByteCount>,
    max: Option<ByteCount>,
) -> Result<BufferSize, SettingsError> {
    match (fixed, max) {
        (Some(_), Some(_)) => {
            Err(SettingsError::Range { key: max_key, expected: "left out where the size is fixed" })
        }
        (Some(size), None) => Ok(BufferSize::fixed(size)),
        (None, Some(max)) => Ok(BufferSize::auto(profile.initial.min(max), max)),
        (None, None) => Ok(profile),
    }
}

/// Only some policies can be changed, and none beyond what the RFC allows.
fn check_delays(
    policy: DelayedAck,
    delay: Option<Span>,
    every: Option<Packets>,
) -> Result<(), SettingsError> {
    let fixed = matches!(policy, DelayedAck::None | DelayedAck::Linux | DelayedAck::Linux26);
    if delay.is_some() && fixed {
        return Err(SettingsError::Range {
            key: "ack_delay",
            expected: "used with delayed_ack rfc5681, bsd or stretch",
        });
    }
    if delay.is_some_and(|delay| delay < Span::from_millis(1) || delay > Span::from_millis(500)) {
        // RFC 5681 §4.2 has the upper limit.
        return Err(SettingsError::Range { key: "ack_delay", expected: "from 1 ms to 500 ms" });
    }
    if every.is_some() && policy != DelayedAck::Stretch {
        return Err(SettingsError::Range { key: "ack_every", expected: "used with delayed_ack stretch" });
    }
    if every.is_some_and(Packets::is_zero) {
        return Err(SettingsError::Range { key: "ack_every", expected: "at least 1 packet" });
    }
    Ok(())
}

/// The control of ACKs with these changes.
fn asking(
    control: Option<AckControlMode>,
    when: Option<&[RequestRule]>,
    every: Option<Packets>,
    bit: Option<u8>,
) -> Result<AckRequests, SettingsError> {
    let control = control.unwrap_or_default();
    let keys = [("ask_for", when.is_some()), ("ask_every", every.is_some()), ("cdl_bit", bit.is_some())];
    if let Some((key, _)) = keys.iter().find(|(_, given)| *given && control == AckControlMode::Off) {
        return Err(SettingsError::Range { key, expected: "used with an ack_control" });
    }
    if bit.is_some() && !control.is_classic() && control != AckControlMode::Flag {
        return Err(SettingsError::Range {
            key: "cdl_bit",
            expected: "used with ack_control classic, classic-literal or flag",
        });
    }
    if bit.is_some_and(|bit| !(4..=6).contains(&bit)) {
        return Err(SettingsError::Range { key: "cdl_bit", expected: "4, 5 or 6" });
    }
    if every.is_some_and(Packets::is_zero) {
        return Err(SettingsError::Range { key: "ask_every", expected: "at least 1 packet" });
    }
    let default =
        if control == AckControlMode::Off || every.is_some() { &[][..] } else { &[RequestRule::Auto] };
    Ok(AckRequests {
        control,
        when: when.unwrap_or(default).iter().copied().collect(),
        every,
        bit: bit.unwrap_or(DEFAULT_BIT),
    })
}
