//! `linux`: Linux 6.x.

use super::ProfileDefaults;
use super::modern::RACK_TLP;
use crate::config::{
    BufferSize, Config, Congestion, DelayedAck, EcnMode, FirstWindow, Linux, MtuProbing, Quirks, Recovery,
    Rto, WindowGrowth, WindowUpdates,
};
use crate::receive::LINUX_INITIAL_WINDOW;
use farpace_units::{ByteCount, Packets};

/// `linux`, with the defaults of its sysctls.
pub(super) const LINUX: ProfileDefaults = ProfileDefaults {
    config: Config {
        recovery: Recovery::Linux(Linux {
            tail_loss_probe: true,
            frto: true,
            reordering: Packets::new(3),
            max_reordering: Packets::new(300),
            static_reordering_window: false,
            no_duplicate_threshold: false,
            restart_after_idle: true,
        }),
        congestion: Congestion::Cubic,
        external: None,
        rto: Rto::Linux,
        delayed_ack: DelayedAck::Linux,
        // tcp_rmem up to 6.15, and tcp_wmem.
        receive_buffer: BufferSize::auto(
            ByteCount::new(LINUX_INITIAL_WINDOW as u64),
            ByteCount::new(6 << 20),
        ),
        window_growth: WindowGrowth::Linux,
        send_buffer: BufferSize::auto(ByteCount::new(16_384), ByteCount::new(4 << 20)),
        ecn: EcnMode::Passive,
        mtu_probing: MtuProbing::Off,
        quirks: Quirks {
            linux: true,
            first_window: FirstWindow::TenSegments,
            window_updates: WindowUpdates::LargerOrZero,
            ..RACK_TLP.config.quirks
        },
        ..RACK_TLP.config
    },
    hystart_with_cubic: true,
    ..RACK_TLP
};
