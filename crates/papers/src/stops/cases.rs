//! Which transfers are made: senders with and without single defects, receive windows, bursts of the policer.

use std::fmt;

/// Receive windows in packets. The paper's buffers would announce the first one. With the last one the model
/// is nearest to the paper.
pub const WINDOWS: [u32; 3] = [SMALL_WINDOW, 2071, MAIN_WINDOW];
/// The window of the figures.
pub const MAIN_WINDOW: u32 = 2500;
/// The window at which the fix still has timeouts.
pub const SMALL_WINDOW: u32 = 1554;

/// Burst size of the policer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Burst {
    /// 16 MB, the default of the router, with which transfers stop.
    Deep,
    /// 256 kB.
    Shallow,
}

impl Burst {
    /// As a scenario writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Burst::Deep => "16 MB",
            Burst::Shallow => "256 kB",
        }
    }
}

/// The recovery of a Linux version, or the same with single switches changed. [`VARIANTS`] describes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KernelVariant {
    Linux2617,
    Linux2622,
    Fix,
    FixAbcBuggy,
    FixSortBuggy,
    Linux2624SortBuggy,
    Linux2617AbcFixed,
    Linux2617SortOk,
    Linux2617NewBlocks,
    Linux2617Ab,
    FixMaxEnd,
    Linux2624,
}

use KernelVariant as V;

/// A variant, its name for programs and for people, and the settings of its sender.
type VariantRow = (V, &'static str, &'static str, &'static [(&'static str, &'static str)]);

const PROFILE_2617: (&str, &str) = ("profile", "linux-2.6.17");
const PROFILE_2624: (&str, &str) = ("profile", "linux-2.6.24");
const PROFILE_FIX: (&str, &str) = ("profile", "aist-fix");

/// All variants, in their order. `aist-fix` is the paper's solution (remedy B), `aist-fix-max-end` its remedy
/// A.
const VARIANTS: [VariantRow; 12] = [
    (V::Linux2617, "linux-2.6.17", "linux-2.6.17", &[PROFILE_2617]),
    (V::Linux2622, "linux-2.6.22", "linux-2.6.22", &[("profile", "linux-2.6.22")]),
    (V::Fix, "aist-fix", "aist-fix", &[PROFILE_FIX]),
    (
        V::FixAbcBuggy,
        "aist-fix+abc-defect",
        "aist-fix, ABC defect put back",
        &[PROFILE_FIX, ("abc", "buggy")],
    ),
    (
        V::FixSortBuggy,
        "aist-fix+sort-defect",
        "aist-fix, sort defect put back",
        &[PROFILE_FIX, ("sack_sort", "buggy")],
    ),
    (
        V::Linux2624SortBuggy,
        "linux-2.6.24+sort-defect",
        "linux-2.6.24, sort defect put back",
        &[PROFILE_2624, ("sack_sort", "buggy")],
    ),
    (
        V::Linux2617AbcFixed,
        "linux-2.6.17-abc-defect",
        "linux-2.6.17, only ABC repaired",
        &[PROFILE_2617, ("abc", "fixed")],
    ),
    (
        V::Linux2617SortOk,
        "linux-2.6.17-sort-defect",
        "linux-2.6.17, only the sort repaired",
        &[PROFILE_2617, ("sack_sort", "ok")],
    ),
    (
        V::Linux2617NewBlocks,
        "linux-2.6.17-one-pass-defect",
        "linux-2.6.17, only one-pass repaired",
        &[PROFILE_2617, ("lost_rtx", "new-blocks"), ("hint", "none")],
    ),
    (
        V::Linux2617Ab,
        "linux-2.6.17+ab",
        "linux-2.6.17+ab, both bugs repaired",
        &[("profile", "linux-2.6.17+ab")],
    ),
    (V::FixMaxEnd, "aist-fix-max-end", "aist-fix-max-end (remedy A)", &[("profile", "aist-fix-max-end")]),
    (V::Linux2624, "linux-2.6.24", "linux-2.6.24", &[PROFILE_2624]),
];

impl KernelVariant {
    /// A name for programs.
    pub const fn id(self) -> &'static str {
        VARIANTS[self as usize].1
    }
    /// A name for people.
    pub const fn label(self) -> &'static str {
        VARIANTS[self as usize].2
    }
    /// Settings of the sender.
    pub const fn settings(self) -> &'static [(&'static str, &'static str)] {
        VARIANTS[self as usize].3
    }
}

/// The three of Table 2.
pub const TABLE_2: [V; 3] = [V::Linux2617, V::Linux2622, V::Fix];

/// What runs besides Table 2, by window. Each variant is there with what it is compared with.
pub const DEFECTS: [(u32, &[V]); 2] = [
    (
        SMALL_WINDOW,
        &[
            V::Linux2617,
            V::Linux2617AbcFixed,
            V::Linux2617SortOk,
            V::Linux2622,
            V::Fix,
            V::FixAbcBuggy,
            V::FixSortBuggy,
            V::FixMaxEnd,
            V::Linux2624,
        ],
    ),
    (
        MAIN_WINDOW,
        &[
            V::Linux2617,
            V::Linux2617AbcFixed,
            V::Linux2617SortOk,
            V::Linux2617NewBlocks,
            V::Linux2617Ab,
            V::Linux2622,
            V::Fix,
            V::FixAbcBuggy,
            V::FixSortBuggy,
            V::FixMaxEnd,
            V::Linux2624,
            V::Linux2624SortBuggy,
        ],
    ),
];

/// A policer, a receive window and a sender. Runs differ in the phase of the policer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PolicedCase {
    pub burst: Burst,
    /// In packets.
    pub window: u32,
    pub variant: V,
}

impl PolicedCase {
    pub const fn deep(variant: V, window: u32) -> Self {
        PolicedCase { burst: Burst::Deep, window, variant }
    }
    pub const fn shallow(variant: V) -> Self {
        PolicedCase { burst: Burst::Shallow, window: SMALL_WINDOW, variant }
    }
    /// True for a sender that is not in Table 2.
    pub fn is_defect(&self) -> bool {
        self.burst == Burst::Deep && !TABLE_2.contains(&self.variant)
    }
}

impl fmt::Display for PolicedCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, window {}, burst {}", self.variant.label(), self.window, self.burst.name())
    }
}

/// A line of the paper's Table 2.
pub struct PublishedTransfers {
    /// Seconds: mean, largest, smallest, standard deviation.
    pub time: [f64; 4],
    /// Mbit/s.
    pub goodput: f64,
    /// Timeouts per run.
    pub timeouts: f64,
    /// The smallest efficiency, in percent.
    pub min_efficiency: f64,
}

/// Table 2 of the paper.
pub const fn published(variant: V) -> Option<PublishedTransfers> {
    let (time, goodput, timeouts, min_efficiency) = match variant {
        V::Linux2617 => ([52.4, 103.3, 26.3, 27.0], 187.0, 5.6, 15.0),
        V::Linux2622 => ([21.3, 22.2, 20.7, 0.5], 376.0, 28.3, 72.0),
        V::Fix => ([16.6, 16.8, 16.5, 0.1], 483.0, 0.0, 96.0),
        _ => return None,
    };
    Some(PublishedTransfers { time, goodput, timeouts, min_efficiency })
}

/// §3.1 of the paper, with the kernel of its §3, 2.6.17: seconds ("about") and percent.
pub const SHALLOW: (f64, f64) = (25.0, 64.0);
/// §5: how much faster than 2.6.22 the fix is.
pub const GAIN: f64 = 1.28;

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: names and settings of one variant are taken for those of another.
    #[test]
    fn variants_stand_in_their_order() {
        for (n, row) in VARIANTS.iter().enumerate() {
            assert_eq!(row.0 as usize, n);
        }
    }

    /// Breaks: a number of the paper is copied wrongly, or 1 GB is taken for 2^30 bytes. The efficiency of
    /// the paper is that of the slowest run: 10^9 bytes in its time, over 500 Mbit/s.
    #[test]
    fn the_numbers_of_the_paper_fit_each_other() {
        let [.., newer, fix] = TABLE_2.map(|variant| {
            let p = published(variant).unwrap();
            let efficiency = 8e9 / p.time[1] / 500e6 * 100.0;
            assert!((efficiency - p.min_efficiency).abs() < 1.0, "{variant:?}: {efficiency}");
            // The mean of rates is at least the rate of the mean time.
            assert!(p.goodput * 1.01 >= 8e3 / p.time[0], "{variant:?}");
            p.goodput
        });
        assert!((8e9 / SHALLOW.0 / 500e6 * 100.0 - SHALLOW.1).abs() < 0.1);
        assert!((fix / newer - GAIN).abs() < 0.01);
    }
}
