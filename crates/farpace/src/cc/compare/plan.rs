//! Which runs are made, and over which path.

use super::Args;
use crate::grid::contender::name;
use crate::grid::measure::endless;
use crate::scenario::load;
use anyhow::{Result, anyhow, bail};
use farpace_lab::scenario::{FlowSpec, Scenario};
use farpace_tcp::config::Congestion;
use farpace_units::Span;
use std::fmt;
use std::path::Path;

/// The paths that have a name; `farpace run` takes the files as well.
pub const PATHS: [(&str, &str); 4] = [
    ("satellite", include_str!("../../../../../scenarios/paths/satellite.toml")),
    ("lfn", include_str!("../../../../../scenarios/paths/lfn.toml")),
    ("policed", include_str!("../../../../../scenarios/paths/policed.toml")),
    ("lossy", include_str!("../../../../../scenarios/paths/lossy.toml")),
];

/// Longest run over a path from a file, unless asked for.
const LONGEST: Span = Span::from_secs(60);
/// From seed to seed the second flow starts so much later.
const STEP: Span = Span::from_millis(37);

/// Who else sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Company {
    /// Nobody.
    Alone,
    /// A second flow of the same kind.
    Twin,
    /// A flow of CUBIC.
    Cubic,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Job {
    /// The congestion control.
    pub congestion: Congestion,
    /// Who else sends.
    pub company: Company,
    /// From 1.
    pub seed: u64,
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let company = match self.company {
            Company::Alone => "alone",
            Company::Twin => "beside itself",
            Company::Cubic => "beside cubic",
        };
        write!(f, "{} {company}, seed {}", name(self.congestion), self.seed)
    }
}

/// All runs.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The path, as it was asked for.
    pub path: String,
    /// The scenario that all runs are made from.
    pub base: Scenario,
    /// Compared are these.
    pub contenders: Vec<Congestion>,
    /// Left out, because the scenario's TCP does not take them.
    pub refused: Vec<String>,
    /// Runs of each kind.
    pub seeds: u64,
    /// Virtual time of each.
    pub time: Span,
}

impl Plan {
    /// All runs for `wanted`.
    ///
    /// # Errors
    /// A path that cannot be read, or has no flow.
    pub fn new(args: &Args, wanted: &[Congestion]) -> Result<Plan> {
        let (base, default) = match PATHS.iter().find(|(word, _)| *word == args.path) {
            Some((word, text)) => {
                let file = format!("scenarios/paths/{word}.toml");
                let base = Scenario::parse_with(text, &file, &args.set).map_err(|e| anyhow!("{e}"))?;
                let time = base.duration;
                (base, time)
            }
            None => {
                let file = Path::new(&args.path);
                if !file.exists() && file.extension().is_none() {
                    let words: Vec<&str> = PATHS.iter().map(|(word, _)| *word).collect();
                    bail!("there is no path `{}`: {}, or a scenario file", args.path, words.join(", "));
                }
                let base = load(file, &args.set)?;
                let time = base.duration.min(LONGEST);
                (base, time)
            }
        };
        let time = args.time.unwrap_or(default);
        if time < Span::from_secs(1) || time > farpace_lab::scenario::MAX_DURATION {
            bail!("--time must be from 1 s to 30 days");
        }
        let Some(first) = base.flows.first() else { bail!("the scenario has no flow") };
        let takes = |c: &Congestion| with(first, *c).sender.resolve().is_ok();
        let (contenders, refused): (Vec<Congestion>, Vec<Congestion>) =
            wanted.iter().copied().partition(takes);
        let refused = refused.into_iter().map(name).collect();
        Ok(Plan { path: args.path.clone(), base, contenders, refused, seeds: args.seeds, time })
    }

    /// All runs, in order.
    pub fn jobs(&self) -> Vec<Job> {
        let mut jobs = Vec::new();
        let mut add = |congestion, company| {
            jobs.extend((1..=self.seeds).map(|seed| Job { congestion, company, seed }));
        };
        for congestion in &self.contenders {
            add(*congestion, Company::Alone);
            add(*congestion, Company::Twin);
            if *congestion != Congestion::Cubic {
                add(*congestion, Company::Cubic);
            }
        }
        // What CUBIC gets beside itself is the measure for its neighbours.
        if !self.contenders.contains(&Congestion::Cubic) {
            add(Congestion::Cubic, Company::Twin);
        }
        jobs
    }

    /// The scenario of one run: the first flow is replaced, the second sender's is the last.
    pub fn scenario(&self, job: &Job) -> Scenario {
        let mut scenario = Scenario { seed: job.seed, duration: self.time, ..self.base.clone() };
        scenario.trace.bin = scenario.trace.bin.max(Span::from_millis(10));
        let Some(flow) = self.base.flows.first() else { return scenario };
        let rate = self.base.bottleneck(flow).map(|b| b.rate);
        let mut flow = with(flow, job.congestion);
        flow.size = endless(rate, self.time);
        if job.company != Company::Alone {
            let mut second = match job.company {
                Company::Cubic => with(&flow, Congestion::Cubic),
                Company::Alone | Company::Twin => flow.clone(),
            };
            second.name = self.free_name();
            second.port = None;
            second.start += STEP * (job.seed.saturating_sub(1) % 100);
            scenario.flows.push(second);
        }
        if let Some(first) = scenario.flows.first_mut() {
            *first = flow;
        }
        scenario
    }

    fn free_name(&self) -> String {
        let names = (2..).map(|n| format!("second-{n}"));
        let free = |name: &String| !self.base.flows.iter().any(|f| f.name == *name);
        names.take(self.base.flows.len() + 1).find(free).unwrap_or_default()
    }
}

fn with(flow: &FlowSpec, congestion: Congestion) -> FlowSpec {
    let mut flow = flow.clone();
    flow.sender.congestion = Some(congestion);
    flow
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a path that `--path` names cannot be read, has nothing that limits it, or is short of data.
    #[test]
    fn every_path_can_be_run() {
        for (word, text) in PATHS {
            let scenario = Scenario::parse(text, word).unwrap_or_else(|e| panic!("{e}"));
            let flow = &scenario.flows[0];
            let bottleneck = scenario.bottleneck(flow).unwrap();
            let bdp = bottleneck.rate.bytes_in(scenario.base_rtt(flow));
            let window = flow.receiver.resolve().unwrap().receive_buffer.max;
            assert!(window.get() >= 2 * bdp.get(), "{word}: the window of {window} limits, {bdp} in flight");
            assert!(
                endless(Some(bottleneck.rate), scenario.duration)
                    > bottleneck.rate.bytes_in(scenario.duration)
            );
        }
    }
}
