//! What a run was worth.

use anyhow::Context;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::unistd::{SysconfVar, sysconf};
use std::sync::atomic::{AtomicU32, Ordering};
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

/// A process whose time counts as well; zero: none.
static CHILD: AtomicU32 = AtomicU32::new(0);

/// From now on the time of this process counts as well.
pub fn watch_child(id: Option<u32>) {
    CHILD.store(id.unwrap_or(0), Ordering::Relaxed);
}

fn cpu() -> anyhow::Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(micros as f64 * 1e-6 + cpu_of_child()?)
}

/// From /proc, in ticks of 10 ms.
fn cpu_of_child() -> anyhow::Result<f64> {
    let id = CHILD.load(Ordering::Relaxed);
    if id == 0 {
        return Ok(0.0);
    }
    let text = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
    let (_, fields) = text.rsplit_once(')').context("no such form of /proc/stat is known")?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u64>).sum::<Result<u64, _>>()?;
    let per_second = sysconf(SysconfVar::CLK_TCK)?.context("the length of a tick is not known")?;
    Ok(ticks as f64 / per_second as f64)
}
