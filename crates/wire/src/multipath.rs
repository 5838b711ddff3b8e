//! What a layer that sends a connection over several paths tells its transport.

use farpace_units::{Rate, Span};
use std::num::NonZeroU32;

/// The paths to a peer together, as a transport sees them: their round trip, and how far they reorder. A
/// layer below IP that sends packets of one connection over several paths writes it into packets that it
/// passes up.
///
/// Both numbers have a resolution of a microsecond, and saturate: at 71 minutes, and at 65 ms. A round trip
/// is a microsecond at least.
///
/// ```
/// use farpace_units::Span;
/// use farpace_wire::MultipathInfo;
/// let info = MultipathInfo::new(Span::from_millis(90), Span::from_millis(100));
/// assert_eq!(info.base_rtt(), Span::from_millis(90));
/// assert_eq!(info.reordering(), Span::from_micros(65_535));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultipathInfo {
    base_rtt_us: NonZeroU32,
    reordering_us: u16,
    moves: u8,
    paths: u8,
    rate_kbit: u32,
}

impl MultipathInfo {
    /// `base_rtt`: the round trip of a packet while all paths carry what they can and no queue stands on
    /// them: that of the longest path, because packets arrive, or are passed on, in order. `reordering`: by
    /// how much packets of different paths may be out of order at the peer's transport; zero if the peer puts
    /// them in order.
    pub fn new(base_rtt: Span, reordering: Span) -> MultipathInfo {
        let micros = u32::try_from(base_rtt.as_micros()).unwrap_or(u32::MAX);
        MultipathInfo {
            base_rtt_us: NonZeroU32::new(micros).unwrap_or(NonZeroU32::MIN),
            reordering_us: u16::try_from(reordering.as_micros()).unwrap_or(u16::MAX),
            moves: 0,
            paths: 0,
            rate_kbit: 0,
        }
    }
    /// The same with the number of paths in use, what they carry together, and how often packets have moved
    /// to another path that carries most, modulo 256.
    #[must_use]
    pub fn with_paths(self, paths: usize, rate: Rate, moves: u8) -> MultipathInfo {
        MultipathInfo {
            moves,
            paths: u8::try_from(paths).unwrap_or(u8::MAX),
            rate_kbit: u32::try_from(rate.bits_per_sec() / 1_000).unwrap_or(u32::MAX),
            ..self
        }
    }
    /// How often packets have moved to another path that carries most, modulo 256. What a transport has
    /// learned of the path before is of little use on it.
    pub const fn moves(self) -> u8 {
        self.moves
    }
    /// Packets go by more than one path.
    pub const fn is_several(self) -> bool {
        self.paths > 1
    }
    /// What the paths carry together, as far as it is known, with a resolution of 1 kbit/s.
    pub fn rate(self) -> Rate {
        Rate::from_bits_per_sec(u64::from(self.rate_kbit) * 1_000)
    }
    /// The round trip of all paths together, without queues.
    pub const fn base_rtt(self) -> Span {
        Span::from_micros(self.base_rtt_us.get() as u64)
    }
    /// By how much packets may be out of order.
    pub const fn reordering(self) -> Span {
        Span::from_micros(self.reordering_us as u64)
    }
}
