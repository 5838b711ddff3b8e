//! What a good TCP does today, and the stages on the way there.

use super::ProfileDefaults;
use crate::config::{
    AckRequests, BufferSize, Config, Congestion, DelayedAck, Detection, EcnMode, FIN_TIMEOUT, FirstWindow,
    MAX_WINDOW, Modern, MtuProbing, Pacing, Quirks, Recovery, Reduction, Rto, TIME_WAIT, TimeoutProcedure,
    Tuning, WindowGrowth, WindowUpdates,
};
use farpace_units::{ByteCount, Packets, Span};

/// RFC 8985, 9937, 5682 and 3522.
const FULL: Modern = Modern {
    detection: Detection::Rack,
    reduction: Reduction::Prr,
    tail_loss_probe: true,
    timeout: TimeoutProcedure::FRto,
    undo: true,
};

/// RFC 6675 with PRR.
const COUNTING: Modern = Modern {
    detection: Detection::Rfc6675,
    reduction: Reduction::Prr,
    tail_loss_probe: false,
    timeout: TimeoutProcedure::Conventional,
    undo: false,
};

/// `rack-tlp`: all of today's recovery, with Reno.
pub(super) const RACK_TLP: ProfileDefaults = ProfileDefaults {
    config: Config {
        recovery: Recovery::Modern(FULL),
        congestion: Congestion::Reno,
        external: None,
        rto: Rto::Rfc6298,
        min_rto: Span::from_millis(200),
        delayed_ack: DelayedAck::Rfc5681,
        ack_delay: None,
        ack_every: None,
        ack_requests: AckRequests::OFF,
        clock: None,
        mss: 1460,
        sack: true,
        timestamps: true,
        window_scale: true,
        // Most paths never need more than the first size, and a window is no memory before the peer has
        // filled it.
        receive_buffer: BufferSize::auto(ByteCount::new(4 << 20), MAX_WINDOW),
        window_growth: WindowGrowth::Ahead,
        // At most one window in flight, one behind a hole, and one to be sent next.
        send_buffer: BufferSize::auto(ByteCount::new(256 << 10), ByteCount::new(3 << 30)),
        initial_window: None,
        initial_ssthresh: None,
        cwnd_clamp: Packets::MAX,
        cwnd_floor: Packets::new(1),
        hystart: false,
        slow_start_limit: None,
        abe: Congestion::Reno.abe(),
        fast_start: false,
        pacing: Pacing::Off,
        nagle: true,
        ecn: EcnMode::Off,
        mtu_probing: MtuProbing::BlackHole,
        keep_alive: None,
        user_timeout: None,
        network_header: 20,
        super_segment: 0,
        fin_timeout: FIN_TIMEOUT,
        time_wait: TIME_WAIT,
        tuning: Tuning::UNSET,
        quirks: Quirks {
            linux: false,
            first_window: FirstWindow::Rfc6928,
            window_updates: WindowUpdates::Any,
            keeps_window_after_syn_timeout: false,
            keeps_window_when_idle: false,
            reno_per_ack: false,
        },
    },
    bic_ssthresh: None,
    hystart_with_cubic: false,
    growth_pacing_with_cubic: false,
    unscaled: false,
};

/// `modern`.
pub(super) const MODERN: ProfileDefaults = ProfileDefaults {
    config: Config { congestion: Congestion::Cubic, ..RACK_TLP.config },
    hystart_with_cubic: true,
    growth_pacing_with_cubic: true,
    ..RACK_TLP
};

/// `prr`.
pub(super) const PRR: ProfileDefaults = ProfileDefaults {
    config: Config { recovery: Recovery::Modern(COUNTING), ..RACK_TLP.config },
    ..RACK_TLP
};

/// `rfc6675`.
pub(super) const RFC6675: ProfileDefaults = ProfileDefaults {
    config: Config {
        recovery: Recovery::Modern(Modern { reduction: Reduction::AtOnce, ..COUNTING }),
        ..RACK_TLP.config
    },
    ..RACK_TLP
};

/// `farpace`.
pub(super) const FARPACE: ProfileDefaults = ProfileDefaults {
    config: Config {
        recovery: Recovery::Modern(Modern { timeout: TimeoutProcedure::Aen, ..FULL }),
        congestion: Congestion::Farpace,
        ..RACK_TLP.config
    },
    ..RACK_TLP
};
