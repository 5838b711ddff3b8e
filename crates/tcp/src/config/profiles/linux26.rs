//! Linux 2.6.15 to 2.6.24, with the defects of the first paper and their repairs.

use super::ProfileDefaults;
use super::modern::RACK_TLP;
use crate::config::{
    Abc, BufferSize, Config, Congestion, DelayedAck, DsackScope, FirstWindow, Hint, Linux26, LostRtx,
    MtuProbing, Quirks, Recovery, Reduction, Rto, SackSort, WindowUpdates,
};
use farpace_units::{ByteCount, Packets};

/// All three defects.
const K2617: Linux26 = Linux26 {
    abc: Abc::Buggy,
    sack_sort: SackSort::Buggy,
    hint: Hint::EveryBlock,
    dsack_scope: DsackScope::Ack,
    lost_rtx: LostRtx::PerBlock,
    reordering: Packets::new(3),
    reduction: Reduction::RateHalving,
};

/// The third defect left.
const K2622: Linux26 = Linux26 {
    abc: Abc::Off,
    sack_sort: SackSort::Ok,
    hint: Hint::FirstBlock,
    dsack_scope: DsackScope::FirstBlock,
    ..K2617
};

/// First slow-start threshold with BIC of the first of them.
const BIC_SSTHRESH: Packets = Packets::new(100);

/// `linux-2.6.17`.
pub(super) const LINUX_2_6_17: ProfileDefaults = kernel(K2617, Some(BIC_SSTHRESH));

/// `linux-2.6.17+ab`.
pub(super) const LINUX_2_6_17_AB: ProfileDefaults =
    kernel(Linux26 { abc: Abc::Fixed, sack_sort: SackSort::Ok, ..K2617 }, Some(BIC_SSTHRESH));

/// `linux-2.6.22`.
pub(super) const LINUX_2_6_22: ProfileDefaults = kernel(K2622, None);

/// `aist-fix`.
pub(super) const AIST_FIX: ProfileDefaults =
    kernel(Linux26 { hint: Hint::None, lost_rtx: LostRtx::NewBlocks, ..K2622 }, None);

/// `aist-fix-max-end`.
pub(super) const AIST_FIX_MAX_END: ProfileDefaults =
    kernel(Linux26 { hint: Hint::None, lost_rtx: LostRtx::MaxEnd, ..K2622 }, None);

/// `linux-2.6.24`.
pub(super) const LINUX_2_6_24: ProfileDefaults = kernel(
    Linux26 { lost_rtx: LostRtx::NewlySacked, reduction: Reduction::RateHalvingProgress, ..K2622 },
    None,
);

/// What these kernels have in common. The paper states windows, not autotuning.
const fn kernel(switches: Linux26, bic_ssthresh: Option<Packets>) -> ProfileDefaults {
    ProfileDefaults {
        bic_ssthresh,
        config: Config {
            recovery: Recovery::Linux26(switches),
            congestion: Congestion::Bic,
            external: None,
            rto: Rto::Linux26,
            delayed_ack: DelayedAck::Linux26,
            receive_buffer: BufferSize::fixed(ByteCount::new(4_000_000)),
            send_buffer: BufferSize::fixed(ByteCount::new(16_000_000)),
            mtu_probing: MtuProbing::Off,
            quirks: Quirks {
                first_window: FirstWindow::Rfc3390,
                window_updates: WindowUpdates::Larger,
                keeps_window_after_syn_timeout: true,
                keeps_window_when_idle: true,
                reno_per_ack: true,
                ..RACK_TLP.config.quirks
            },
            ..RACK_TLP.config
        },
        ..RACK_TLP
    }
}
