//! What is run: one flow of a scenario, without end.

use super::Args;
use crate::realtime::LateTolerance;
use crate::scenario;
use anyhow::{Context, Result, bail};
use farpace_lab::scenario::Scenario;
use farpace_papers::congestion_name;
use farpace_papers::endless;
use farpace_tcp::config::{Config, Settings};
use farpace_units::Span;
use serde::Serialize;

/// Between two samples.
pub const STEP: Span = Span::from_millis(10);

/// A way to run a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// farpace's TCP in virtual time
    Lab,
    /// farpace's TCP on devices, in real time
    Farpace,
    /// The kernel's TCP, in real time
    Kernel,
}

impl Backend {
    /// As tables and legends have it.
    pub const fn name(self) -> &'static str {
        match self {
            Backend::Lab => "lab",
            Backend::Farpace => "farpace, real time",
            Backend::Kernel => "kernel",
        }
    }
}

/// What is run.
pub struct Plan {
    /// The ways, in the order in which they are shown. The others are held against the first.
    pub ways: Vec<Backend>,
    /// The scenario with its first flow alone.
    base: Scenario,
    /// How long each run lasts.
    pub lasts: Span,
    /// Congestion control, as the kernel names it, too.
    pub congestion: String,
    /// The receiving end's window in bytes, if it has a fixed one.
    pub window: Option<u64>,
    /// How the network in real time waits.
    pub late_tolerance: LateTolerance,
    /// The scenario's file.
    pub file: String,
    /// Its sender and receiver, as settings of sockets.
    pub settings: [Settings; 2],
}

impl Plan {
    /// # Errors
    /// A scenario without flows, or settings that contradict each other.
    pub fn new(args: &Args) -> Result<Self> {
        let mut base = scenario::load(&args.scenario, &args.set)?;
        let mut ways = args.ways.clone();
        ways.sort_unstable();
        ways.dedup();
        for settings in base.flows.iter_mut().flat_map(|flow| [&mut flow.sender, &mut flow.receiver]) {
            settings.profile = Some(args.profile);
            settings.congestion = Some(args.congestion);
        }
        let plan =
            Plan::of(base, Span::from_secs(args.seconds), args.wait, &args.scenario.display().to_string())?;
        Ok(Plan { ways, congestion: congestion_name(args.congestion), ..plan })
    }
    /// The first flow of a scenario with the TCP that it names, on devices.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn of(mut base: Scenario, lasts: Span, late_tolerance: LateTolerance, file: &str) -> Result<Self> {
        let Some(flow) = base.flows.first() else { bail!("the scenario has no flow to run") };
        let mut flow = flow.clone();
        flow.start = Span::ZERO;
        flow.size = endless(base.bottleneck(&flow).map(|bottleneck| bottleneck.rate), lasts);
        let resolve = |settings: &Settings, which| -> Result<Config> {
            settings.resolve().with_context(|| format!("the {which} of flow `{}`", flow.name))
        };
        let congestion = congestion_name(resolve(&flow.sender, "sender")?.congestion);
        let buffer = resolve(&flow.receiver, "receiver")?.receive_buffer;
        let window = buffer.is_fixed().then(|| buffer.max.get());
        let settings = [flow.sender.clone(), flow.receiver.clone()];
        base.flows = vec![flow];
        base.datagrams.clear();
        base.duration = lasts;
        base.trace.bin = STEP;
        Ok(Plan {
            ways: vec![Backend::Farpace],
            base,
            lasts,
            congestion,
            window,
            late_tolerance,
            file: file.to_owned(),
            settings,
        })
    }
    /// The scenario of run `number`.
    pub fn scenario(&self, number: u64) -> Scenario {
        Scenario { seed: self.base.seed.saturating_add(number), ..self.base.clone() }
    }
    /// The same of the first.
    pub const fn base(&self) -> &Scenario {
        &self.base
    }
}
