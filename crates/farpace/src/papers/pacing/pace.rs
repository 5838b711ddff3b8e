//! What paces.

use anyhow::{Result, anyhow, bail};
use farpace_link::pacing::{
    ClassId, ClassKind, ClassSpec, Edf, FifoScheduler, Fq, Gaps, PacingConfig, Psp, SaturatingFrame,
    Scheduler, TokenBucket,
};
use farpace_path::QueueLimit;
use farpace_units::{ByteCount, Packets, Rate, Span};
use std::fmt;

/// The line of all hosts: Gigabit Ethernet.
pub const LINE: Rate = Rate::from_mbit(1_000);
/// The longest IP packet.
pub const MTU: ByteCount = ByteCount::new(1_500);
/// A full frame in memory: without its check sequence, as the paper's meter counts.
pub const FRAME: ByteCount = ByteCount::new(1_514);

/// What decides when a host's packets leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pace {
    /// Nothing: the paper's "no limit".
    None,
    /// A token bucket refilled by a timer of 1 ms: the paper's TBF.
    TokenBucket,
    /// The paper's scheduler.
    Psp,
    /// farpace's default.
    Edf,
    /// A timer per flow, like Linux's fq.
    Fq,
    /// [`Edf`](Pace::Edf) with a class that has the rate of its connection, which nobody has to know.
    Connection,
}

impl Pace {
    /// A stable name for programs.
    pub const fn id(self) -> &'static str {
        match self {
            Pace::None => "none",
            Pace::TokenBucket => "token-bucket",
            Pace::Psp => "psp",
            Pace::Edf => "edf",
            Pace::Fq => "fq",
            Pace::Connection => "edf-connection",
        }
    }

    /// For people.
    pub const fn label(self) -> &'static str {
        match self {
            Pace::None => "no limit",
            Pace::TokenBucket => "token bucket",
            Pace::Psp => "PSPacer",
            Pace::Edf => "edf",
            Pace::Fq => "fq",
            Pace::Connection => "edf, rate of the connection",
        }
    }

    /// The table that a scenario has for it in `links.NIC.forward.pacing`; none: a NIC that does not pace.
    pub fn table(self, rate: Rate) -> Option<String> {
        let rate = format!("{} bit/s", rate.bits_per_sec());
        let (scheduler, rate) = match self {
            Pace::None => return None,
            Pace::TokenBucket => ("token-bucket", rate.as_str()),
            Pace::Psp => ("psp", rate.as_str()),
            Pace::Edf => ("edf", rate.as_str()),
            Pace::Fq => ("fq", rate.as_str()),
            Pace::Connection => ("edf", "connection"),
        };
        Some(format!(
            "{{ scheduler = \"{scheduler}\", limit = \"10000 packets\", default = \"all\", \
             classes = [{{ name = \"all\", rate = \"{rate}\" }}] }}"
        ))
    }

    /// The scheduler with a class for each of `rates`, on [`LINE`].
    ///
    /// # Errors
    /// Rates that do not fit; a pacing that has no rates.
    pub fn scheduler(self, rates: &[u64]) -> Result<(Box<dyn Scheduler<SaturatingFrame>>, Vec<ClassId>)> {
        let refused = |error| anyhow!("{self}: {error}");
        let mut scheduler: Box<dyn Scheduler<SaturatingFrame>> = match self {
            Pace::None => Box::new(FifoScheduler::new(LINE, MTU).map_err(refused)?),
            Pace::Psp => Box::new(Psp::new(LINE, MTU).map_err(refused)?),
            Pace::Edf => Box::new(Edf::new(LINE, MTU, Gaps::Frames, Span::ZERO).map_err(refused)?),
            Pace::TokenBucket => {
                let tick = PacingConfig::default().tick;
                Box::new(TokenBucket::new(LINE, MTU, tick, None).map_err(refused)?)
            }
            Pace::Fq => {
                let slack = PacingConfig::default().slack;
                Box::new(Fq::new(LINE, MTU, slack, None).map_err(refused)?)
            }
            Pace::Connection => bail!("{self}: without a connection there is no rate"),
        };
        let mut classes = Vec::new();
        for rate in rates {
            let kind = ClassKind::Paced(Rate::from_bits_per_sec(*rate));
            let limit = QueueLimit::Packets(Packets::new(4));
            classes.push(scheduler.add_class(ClassSpec { kind, limit }).map_err(refused)?);
        }
        Ok((scheduler, classes))
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}
