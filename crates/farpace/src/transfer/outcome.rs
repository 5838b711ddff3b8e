//! How a transfer ended, for people, for programs, and as an exit code.

use super::options::SendingOptions;
use crate::terminal;
use anyhow::Result;
use farpace_transfer::{ReceiveReport, SendReport, TransferError, TransferProblem};
use farpace_tunnel::server::{self, TransferEnd};
use farpace_tunnel::{Explanation, PathFacts, explain, size, speed};
use farpace_units::Rate;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;

/// Problems that are printed; of more, the number is.
const SHOWN: usize = 20;

/// What is the same on both sides.
struct TransferCounts<'a> {
    files: u64,
    unchanged: u64,
    bytes: u64,
    spared: u64,
    failed: u64,
    elapsed: Duration,
    problems: &'a [TransferProblem],
}

impl TransferCounts<'_> {
    fn line(&self, verb: &str) -> String {
        let plural = if self.files == 1 { "" } else { "s" };
        let mut line = format!(
            "{verb} {} file{plural}, {} in {:.2} s ({})",
            self.files,
            size(self.bytes),
            self.elapsed.as_secs_f64(),
            speed(self.bytes, self.elapsed)
        );
        if self.spared > 0 {
            line += &format!(", {} were there or are holes", size(self.spared));
        }
        if self.unchanged > 0 {
            line += &format!(", {} unchanged", self.unchanged);
        }
        if self.failed > 0 {
            line += &format!(", {} NOT transferred", self.failed);
        }
        line + "; all that arrived is verified"
    }
    fn tell_problems(&self) {
        for TransferProblem { path, fault } in self.problems.iter().take(SHOWN) {
            terminal::note(&format!("not transferred: {path}: {fault}"));
        }
        if self.failed > SHOWN as u64 {
            terminal::note(&format!("... and {} more", self.failed - SHOWN as u64));
        }
    }
    fn problems(&self) -> Vec<Value> {
        let problem = |p: &TransferProblem| json!({ "path": p.path, "why": p.fault.text });
        self.problems.iter().map(problem).collect()
    }
    fn json(&self) -> Value {
        json!({
            "complete": self.failed == 0,
            "files": self.files,
            "unchanged": self.unchanged,
            "bytes": self.bytes,
            "spared_bytes": self.spared,
            "elapsed_s": self.elapsed.as_secs_f64(),
            "rate_bit_s": self.bytes as f64 * 8.0 / self.elapsed.as_secs_f64().max(1e-9),
            "failed": self.failed,
            "problems": self.problems(),
        })
    }
    fn code(&self) -> ExitCode {
        ExitCode::from(if self.failed == 0 { terminal::OK } else { terminal::FAILED })
    }
}

/// The exit code of a transfer.
pub fn code(end: TransferEnd) -> ExitCode {
    ExitCode::from(match end {
        TransferEnd::Complete => terminal::OK,
        TransferEnd::Failed => terminal::FAILED,
        TransferEnd::Interrupted => terminal::INTERRUPTED,
    })
}

/// Says what was deleted, or would be.
pub fn deleted(paths: &[String], dry_run: bool) {
    let verb = if dry_run { "would delete" } else { "deleted" };
    for path in paths {
        terminal::note(&format!("{verb}: {path}"));
    }
}

/// Adds what was deleted, or would be. A sender does not know it.
fn insert_deleted(value: &mut Value, gone: &[String]) {
    if !gone.is_empty() {
        value["deleted"] = json!(gone);
    }
}

/// Says what a dry run has found.
fn planned(
    counts: &TransferCounts<'_>,
    files: &[(String, u64)],
    gone: &[String],
    verb: &str,
    json: bool,
) -> Result<()> {
    let bytes = files.iter().fold(0_u64, |all, (_, bytes)| all.saturating_add(*bytes));
    if json {
        let list: Vec<_> =
            files.iter().map(|(path, bytes)| json!({ "path": path, "bytes": bytes })).collect();
        let mut value = json!({
            "dry_run": true,
            "files": files.len(),
            "bytes": bytes,
            "planned": list,
            "failed": counts.failed,
            "problems": counts.problems(),
        });
        insert_deleted(&mut value, gone);
        return terminal::print_json(&value);
    }
    let mut text = String::new();
    for (path, bytes) in files {
        text += &format!("would {verb}: {path} ({})\n", size(*bytes));
    }
    let plural = if files.len() == 1 { "" } else { "s" };
    terminal::print(&format!("{text}would {verb} {} file{plural}, {}\n", files.len(), size(bytes)))
}

/// Tells what came of sending.
///
/// # Errors
/// Standard output cannot be written.
pub fn sent(
    sent: &SendReport,
    how: &SendingOptions,
    stack: &str,
    cap: Option<Rate>,
    path: Option<PathFacts>,
) -> Result<ExitCode> {
    let SendReport { files, unchanged, bytes, spared, failed, elapsed, ref problems, .. } = *sent;
    let counts = TransferCounts { files, unchanged, bytes, spared, failed, elapsed, problems };
    counts.tell_problems();
    if how.dry_run {
        planned(&counts, &sent.planned, &[], "send", how.json)?;
        return Ok(counts.code());
    }
    let explanation: Explanation = explain(sent, cap, path);
    if how.json {
        let mut value = counts.json();
        if let Some(fields) = value.as_object_mut() {
            fields.insert("stack".to_owned(), json!(stack));
            fields.insert("explanation".to_owned(), json!(explanation));
        }
        terminal::print_json(&value)?;
        return Ok(counts.code());
    }
    if !how.quiet {
        terminal::print(&format!("{}\n", counts.line("sent")))?;
    }
    if how.explain {
        terminal::print(&format!("{}\n{}", explanation.sentence, explanation.evidence.lines()))?;
    }
    Ok(counts.code())
}

/// Tells what came of receiving from `peer`.
///
/// # Errors
/// Standard output cannot be written.
pub fn received(
    received: &ReceiveReport,
    peer: &str,
    json: bool,
    quiet: bool,
    dry_run: bool,
) -> Result<ExitCode> {
    let ReceiveReport { files, bytes, spared, failed, elapsed, ref problems, .. } = *received;
    let counts = TransferCounts { files, unchanged: 0, bytes, spared, failed, elapsed, problems };
    counts.tell_problems();
    deleted(&received.deleted, dry_run);
    if dry_run {
        planned(&counts, &received.planned, &received.deleted, "receive", json)?;
        return Ok(counts.code());
    }
    if json {
        let mut value = counts.json();
        if let Some(fields) = value.as_object_mut() {
            fields.insert("from".to_owned(), json!(peer));
        }
        insert_deleted(&mut value, &received.deleted);
        // One line each, for those who read them one by one.
        terminal::print(&format!("{value}\n"))?;
    } else if !quiet {
        terminal::print(&format!("{peer}: {}\n", counts.line("received")))?;
    }
    Ok(counts.code())
}

/// Tells programs that a transfer from `peer` ended early.
pub fn ended_early(error: &TransferError, peer: &str) {
    let value = json!({ "complete": false, "error": error.to_string(), "from": peer });
    // Whoever does not read it is told on standard error.
    let _ = terminal::print(&format!("{value}\n"));
}

/// Tells why a transfer ended early, and what to do. 130 if it was stopped here, otherwise 1.
pub fn failure(error: &TransferError, peer: &str, json: bool) -> ExitCode {
    terminal::note(&server::why(error, peer));
    if json {
        // Who does not read it has the exit code.
        let _ = terminal::print_json(&json!({ "complete": false, "error": error.to_string() }));
    }
    let interrupted = matches!(error, TransferError::Interrupted);
    ExitCode::from(if interrupted { terminal::INTERRUPTED } else { terminal::FAILED })
}
