//! What a run was worth.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::time::Instant;

/// The way of the data, as the one in user space sees it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// To the kernel.
    Out,
    /// From the kernel.
    In,
}

impl Way {
    pub const fn name(self) -> &'static str {
        match self {
            Way::Out => "out",
            Way::In => "in",
        }
    }
}

/// Bytes, time and processor time.
pub struct Measure {
    pub bytes: u64,
    pub seconds: f64,
    /// Processor time of the whole process, both ends and the kernel's share included.
    pub cpu: f64,
    /// Segments and system calls of the end in user space.
    pub per_call: Option<(u64, u64)>,
}

impl Measure {
    pub fn gbits(&self) -> f64 {
        self.bytes as f64 * 8e-9 / self.seconds
    }
    pub fn cpu_per_gb(&self) -> f64 {
        self.cpu / (self.bytes as f64 * 1e-9)
    }
}

/// Measures from now on.
pub struct Meter {
    begin: Instant,
    cpu: f64,
}

impl Meter {
    pub fn start() -> anyhow::Result<Self> {
        Ok(Meter { begin: Instant::now(), cpu: cpu()? })
    }
    pub fn stop(self, bytes: u64) -> anyhow::Result<Measure> {
        let seconds = self.begin.elapsed().as_secs_f64();
        Ok(Measure { bytes, seconds, cpu: cpu()? - self.cpu, per_call: None })
    }
}

fn cpu() -> anyhow::Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(micros as f64 * 1e-6)
}
