//! TCP without SACK: `newreno` and `net2`.

use super::ProfileDefaults;
use super::modern::RACK_TLP;
use crate::config::{
    BufferSize, Config, DelayedAck, FirstWindow, MtuProbing, Quirks, Recovery, Rto, SLOW_TICK,
};
use farpace_units::{ByteCount, Packets};

/// `newreno`.
pub(super) const NEWRENO: ProfileDefaults = ProfileDefaults {
    config: Config {
        recovery: Recovery::NewReno,
        sack: false,
        quirks: Quirks { first_window: FirstWindow::Rfc3390, reno_per_ack: true, ..RACK_TLP.config.quirks },
        ..RACK_TLP.config
    },
    ..RACK_TLP
};

/// `net2`: no option but the MSS, clocks of 500 ms, and a first window of one segment.
pub(super) const NET2: ProfileDefaults = ProfileDefaults {
    config: Config {
        rto: Rto::Net2,
        delayed_ack: DelayedAck::Bsd,
        clock: Some(SLOW_TICK),
        timestamps: false,
        window_scale: false,
        receive_buffer: BufferSize::fixed(ByteCount::new(4_000_000)),
        send_buffer: BufferSize::fixed(ByteCount::new(16_000_000)),
        initial_window: Some(Packets::new(1)),
        mtu_probing: MtuProbing::Off,
        ..NEWRENO.config
    },
    unscaled: true,
    ..NEWRENO
};
