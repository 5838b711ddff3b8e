//! `farpace run` as a function, for programs that want its numbers and no files.

use crate::RunInput;
use crate::summarize::summarize;
use crate::summary::RunSummary;
use crate::watch::RunWatch;
use anyhow::{Result, bail};
use farpace_events::{Record, RecordSink};
use farpace_lab::scenario::Scenario;
use farpace_lab::{Inputs, Run, RunProgress};
use std::path::Path;

/// What came of a run.
#[derive(Debug)]
pub struct RunResult {
    /// What `farpace run --json` prints, without files and wall time.
    pub summary: RunSummary,
    /// A record for each segment and ACK of the senders, if asked for; flows are connections 0, 1, ...
    pub records: Vec<Record>,
}

/// Collects records.
struct KeptRecords(Vec<Record>);

impl RecordSink for KeptRecords {
    fn record(&mut self, record: &Record) {
        self.0.push(record.clone());
    }
}

/// Runs a scenario to its end. `file` is its name in the summary, `set` what was replaced in it. After every
/// bin of virtual time `go_on` says whether the run goes on.
///
/// # Errors
/// A network that cannot be built, a defect of the lab, or `go_on` said no.
pub fn run_scenario(
    scenario: &Scenario,
    file: &Path,
    set: &[(String, String)],
    records: bool,
    mut go_on: impl FnMut(RunProgress) -> bool,
) -> Result<RunResult> {
    let scenario = scenario.drawn(scenario.seed);
    let mut run = Run::new(&scenario, Inputs { records, ..Inputs::default() })?;
    let mut watch = RunWatch::new(&scenario, false);
    let mut kept = KeptRecords(Vec::new());
    loop {
        let start = run.now();
        let progress = if records { run.advance(Some(&mut kept))? } else { run.advance(None)? };
        watch.bin(&mut run, start);
        if progress.finished {
            break;
        }
        if !go_on(progress) {
            bail!("interrupted at {} of virtual time", progress.now);
        }
    }
    watch.finish(&mut run)?;
    let outcome = run.finish()?;
    let input = RunInput { scenario, file: file.to_owned(), set: set.to_vec(), command: String::new() };
    Ok(RunResult { summary: summarize(&input, &outcome, &watch, false), records: kept.0 })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]
mod tests {
    use super::*;

    fn run(text: &str) -> RunSummary {
        let scenario = Scenario::parse(text, "t").unwrap();
        run_scenario(&scenario, Path::new("t.toml"), &[], false, |_| true).unwrap().summary
    }

    /// The path of a flow is cut at this time, for as long as the run lasts.
    fn cut_at(at: &str, more: &str) -> RunSummary {
        run(&format!(
            r#"
            title = "t"
            duration = "60 s"
            hosts = {{ a = {{}}, b = {{}} }}
            links = [{{ name = "w", between = ["a", "b"], rate = "10 Mbit/s", delay = "20 ms",
                        forward = {{ outages = [{{ at = "{at}", lasts = "100 s" }}] }} }}]
            flows = [{{ name = "f", from = "a", to = "b", size = "10 MB" }}]
            {more}
            "#
        ))
    }

    /// Breaks: a transfer that stands still to the end is told to have stopped for a moment, or the report
    /// lays its time elsewhere than the silences do.
    #[test]
    fn silences_and_time_spent_in_silence_agree() {
        // After the handshake; in mid-transfer.
        for (at, least) in [("50 ms", 59.5), ("1 s", 58.5)] {
            let summary = cut_at(at, "");
            let flow = &summary.flows[0];
            assert_eq!(flow.silence.total, flow.spent.silent, "{at}");
            assert!(flow.silence.total.as_secs_f64() >= least, "{at}: {:?}", flow.silence.total);
            assert_eq!(flow.spent.total(), flow.elapsed);
        }
    }

    /// Breaks: the time before a connection stands is nobody's, as the second that a lost SYN costs.
    #[test]
    fn a_lost_syn_is_time_of_connecting() {
        let text = r#"
            title = "t"
            hosts = { a = {}, b = {} }
            links = [{ name = "w", between = ["a", "b"], rate = "100 Mbit/s", delay = "10 ms",
                       DIRECTION = { outages = [{ at = "0 s", lasts = "500 ms" }] } }]
            flows = [{ name = "f", from = "a", to = "b", size = "2 MB" }]
        "#;
        // The SYN, or its answer.
        for direction in ["forward", "backward"] {
            let summary = run(&text.replace("DIRECTION", direction));
            let flow = &summary.flows[0];
            let connecting = flow.spent.connecting.as_secs_f64();
            assert!((1.0..1.1).contains(&connecting), "{direction}: {connecting}");
            assert_eq!(flow.silence.count, 0, "{direction}");
            assert!(crate::words::flow_verdict(flow).contains(" % connecting"), "{}", summary.verdict);
        }
    }

    /// Breaks: what came of datagrams is shown nowhere.
    #[test]
    fn datagrams_are_in_the_summary() {
        let datagrams = r#"
            [[datagrams]]
            name = "video"
            from = "a"
            to = "b"
            rate = "1 Mbit/s"
        "#;
        let summary = cut_at("1 s", datagrams);
        let video = &summary.datagrams[0];
        assert!(video.received > 0 && video.sent > 10 * video.received, "{video:?}");
        let json = serde_json::to_value(&summary).unwrap();
        assert_eq!(json["datagrams"][0]["received_bytes"], video.received_bytes);
        let table = crate::tables::text(&summary, None);
        assert!(table.contains("Datagrams") && table.contains("video"), "{table}");
    }
}
