//! Results of earlier calls, as `--json` has written them.

use crate::cell::Outcome;
use crate::plan::{Cell, Sender};
use anyhow::{Context, Result, anyhow};
use farpace_units::{Rate, Span};
use serde_json::Value;
use std::path::PathBuf;

/// The cells of all files, in the order of a grid.
///
/// # Errors
/// A file that cannot be read, or is none of ours.
pub fn read(files: &[PathBuf]) -> Result<Vec<(Cell, Outcome)>> {
    let mut all = Vec::new();
    for path in files {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let json: Value = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        let cells = json["cells"].as_array().ok_or_else(|| anyhow!("{} has no cells", path.display()))?;
        for value in cells {
            let cell = cell(value).with_context(|| format!("a cell of {}", path.display()))?;
            all.push((cell, outcome(value)?));
        }
    }
    let name = Cell::name;
    all.sort_by(|(a, _), (b, _)| {
        name(a)
            .cmp(&name(b))
            .then(a.loss.total_cmp(&b.loss))
            .then(a.rate.cmp(&b.rate))
            .then(a.rtt.cmp(&b.rtt))
    });
    Ok(all)
}

fn number(value: &Value, key: &str) -> Result<f64> {
    value[key].as_f64().ok_or_else(|| anyhow!("`{key}` is not a number"))
}

fn whole(value: &Value, key: &str) -> Result<u64> {
    value[key].as_u64().ok_or_else(|| anyhow!("`{key}` is not a whole number"))
}

fn text(value: &Value, key: &str) -> Result<String> {
    Ok(value[key].as_str().ok_or_else(|| anyhow!("`{key}` is not a text"))?.to_owned())
}

fn cell(value: &Value) -> Result<Cell> {
    Ok(Cell {
        sender: Sender { name: text(value, "sender")?, settings: Vec::new() },
        rival: value["beside"].as_str().map(|name| Sender { name: name.to_owned(), settings: Vec::new() }),
        rate: Rate::from_bits_per_sec(whole(value, "rate_bits_per_sec")?),
        rtt: Span::from_millis(whole(value, "rtt_ms")?),
        loss: number(value, "loss")?,
        queue: text(value, "queue")?,
    })
}

fn outcome(value: &Value) -> Result<Outcome> {
    Ok(Outcome {
        reached: number(value, "reached_percent")?,
        start: number(value, "start_percent")?,
        started: value["started_s"].as_f64(),
        memory: whole(value, "memory_bytes")?,
        send_memory: whole(value, "send_memory_bytes")?,
        lost: number(value, "dropped_by_queue_percent")?,
        again: number(value, "retransmitted_percent")?,
        timeouts: whole(value, "timeouts")?,
        completed: value["completed_ms"].as_f64(),
        share: number(value, "share_of_first_percent")?,
    })
}
