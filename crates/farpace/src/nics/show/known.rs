//! What the hosts of a scenario know of each other's NICs.

use super::Args;
use crate::{scenario, terminal};
use anyhow::{Result, bail};
use farpace_inspect::nics_known::{host_json, host_text};
use farpace_lab::{Inputs, Run};
use farpace_units::{Instant, Span};
use serde_json::json;

/// How long a scenario is run unless somebody says.
const TIME: Span = Span::from_millis(200);

/// Runs and prints.
pub fn show(args: &Args) -> Result<()> {
    let mut scenario = scenario::load(&args.file, &args.set)?;
    let time = args.time.unwrap_or(TIME);
    if time.is_zero() {
        bail!("--for must be more than nothing");
    }
    scenario.duration = time;
    let mut run = Run::new(&scenario, Inputs::default())?;
    if run.multi_nics().next().is_none() {
        bail!(
            "scenario `{}` has no host with several NICs: [hosts.NAME.multi_nic] in docs/scenarios.md",
            args.file.display()
        );
    }
    while !run.advance(None)?.finished {}
    if args.json {
        let hosts = run.multi_nics().map(|(host, nics)| host_json(host, nics)).collect::<Vec<_>>();
        return terminal::print_json(&json!({
            "format": "farpace-nics-known/2", "time_s": run.now().since(Instant::ZERO).as_secs_f64(), "hosts": hosts,
        }));
    }
    let mut text = format!("After {}:\n", run.now().since(Instant::ZERO));
    for (host, nics) in run.multi_nics() {
        text += "\n";
        text += &host_text(host, nics, terminal::width());
    }
    terminal::print(&text)
}
