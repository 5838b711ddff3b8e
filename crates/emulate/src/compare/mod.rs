//! The lab against reality.
//!
//! One bulk transfer over the network of a scenario, in up to three ways: `lab` (virtual time), `farpace`
//! (our engine at both ends, on devices in real time), `kernel` (the kernel's TCP at both ends of the same).
//! `plan` says what is run, `virtual_time` and `real_time` run it (`ends` are the ends in real time),
//! `results` holds them against each other, `page` shows them.

mod backend_run;
mod ends;
pub mod page;
mod plan;
mod real_time;
mod results;
mod virtual_time;

pub use backend_run::{BackendRun, CompareSample};
pub use plan::{Backend, Plan, congestion_of};
pub use results::Results;

use anyhow::Result;
use farpace_explain::input::RecordFollower;
use farpace_lab::scenario::Scenario;
use farpace_live::Wait;

/// The first flow of a scenario, without end and with the TCP that it names, on devices. `file` names the
/// scenario.
///
/// # Errors
/// A scenario without flows, or what the system does not allow.
pub fn on_devices(scenario: Scenario, file: &str, wait: Wait) -> Result<BackendRun> {
    let (lasts, seed) = (scenario.duration, scenario.seed);
    let plan = Plan::of(scenario, lasts, wait, file)?;
    Ok(BackendRun { seed, ..real_time::run(&plan, plan.base(), Backend::Farpace)? })
}

/// Runs a scenario of `plan` by one way. In the lab `follower` gets the records of its connections.
///
/// # Errors
/// What the system does not allow, or a connection that breaks.
pub fn run_by(
    plan: &Plan,
    scenario: &Scenario,
    way: Backend,
    follower: &mut RecordFollower,
) -> Result<BackendRun> {
    let run = match way {
        Backend::Lab => virtual_time::run(plan, scenario, follower)?,
        Backend::Farpace | Backend::Kernel => real_time::run(plan, scenario, way)?,
    };
    Ok(BackendRun { seed: scenario.seed, ..run })
}
