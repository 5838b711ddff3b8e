//! The congestion controls.

use serde::Serialize;
use std::fmt;

/// A congestion control that runs in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KernelControl {
    /// The control of the profile `farpace`.
    Farpace,
    /// TCP-STAR in the robust form (`star-robust` in scenarios).
    Star,
}

impl KernelControl {
    /// All of them.
    pub const ALL: [KernelControl; 2] = [KernelControl::Farpace, KernelControl::Star];

    /// The name that the kernel knows it by: `setsockopt(TCP_CONGESTION)`, `sysctl`, `ip route ... congctl`,
    /// `ss`.
    pub const fn name(self) -> &'static str {
        match self {
            KernelControl::Farpace => "farpace",
            KernelControl::Star => "star",
        }
    }

    /// The control with this number in rows (`enum kind` in `bpf/maps.h`).
    pub(crate) const fn of_kind(kind: u8) -> Option<Self> {
        match kind {
            1 => Some(KernelControl::Farpace),
            2 => Some(KernelControl::Star),
            _ => None,
        }
    }
}

impl fmt::Display for KernelControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
