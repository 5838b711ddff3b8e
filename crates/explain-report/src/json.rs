//! What came out as JSON: `farpace-explain/1`.

use crate::cure::Cured;
use crate::error::ExamineError;
use crate::examine::{CapturePair, ExaminedFile, FileSource, FlowSelection, examine, pair};
use crate::transfer::Transfer;
use crate::words;
use farpace_explain::flow::Flow;
use farpace_explain::pair::Between;
use farpace_explain::{Diagnosis, Finding};
use serde_json::{Value, json};
use std::path::PathBuf;

/// The report of files that are not examined yet, of the ten connections with most data of each.
///
/// # Errors
/// A file that cannot be read.
pub fn report_of(files: &[PathBuf]) -> Result<Value, ExamineError> {
    let selection = FlowSelection { flows: Vec::new(), top: 10 };
    let examined = files.iter().map(|file| examine(file, &selection)).collect::<Result<Vec<_>, _>>()?;
    let pair = pair(&examined)?;
    Ok(report(&examined, pair.as_ref()))
}

/// The whole report.
pub fn report(all: &[ExaminedFile], pair: Option<&CapturePair>) -> Value {
    json!({
        "format": "farpace-explain/1",
        "farpace": env!("CARGO_PKG_VERSION"),
        "captures": all.iter().map(capture).collect::<Value>(),
        "both": pair.map(both),
    })
}

fn both(CapturePair { client, server, pair }: &CapturePair) -> Value {
    let way = |b: &Between| {
        json!({
            "packets": b.both,
            "lost": b.lost,
            "queued_mean_s": b.queued.mean().as_secs_f64(),
            "queued_max_s": b.queued.max.as_secs_f64(),
        })
    };
    json!({
        "client": client.to_string(),
        "server": server.to_string(),
        "clock_offset_s": pair.offset,
        "clock_drift_ppm": pair.drift,
        "round_trip_s": pair.round.as_secs_f64(),
        "first_to_second": way(&pair.forward),
        "second_to_first": way(&pair.backward),
    })
}

fn capture(examined: &ExaminedFile) -> Value {
    let (kind, compression) = match &examined.source {
        FileSource::Capture { compression, .. } => {
            ("capture", Some(format!("{compression:?}").to_lowercase()))
        }
        FileSource::Trace(_) => ("trace", None),
        FileSource::Log(_) => ("ss", None),
    };
    let c = examined.capture();
    json!({
        "file": examined.file.to_string_lossy(),
        "kind": kind,
        "compression": compression,
        "frames": c.map(|c| c.frames),
        "segments": c.map(|c| c.segments),
        "connections": c.map(|c| c.flows.len()),
        "others": examined.others,
        "duration_s": c.and_then(|c| c.time).map(|(first, last)| last.since(first).as_secs_f64()),
        "cut_frames": c.map(|c| c.cut),
        "too_short_frames": c.map(|c| c.too_short),
        "fragments": c.map(|c| c.fragments),
        "backwards": c.map(|c| c.backwards),
        "misdated": c.map(|c| c.misdated),
        "unread_frames": c.map(|c| c.foreign.0),
        "unread_link_type": c.filter(|c| c.foreign.0 > 0).map(|c| c.foreign.1),
        "left_out_segments": c.map(|c| c.left_out),
        "damaged": c.and_then(|c| c.damaged.as_deref()),
        "flows": examined.transfers.iter().map(|t| transfer(examined, t)).collect::<Value>(),
    })
}

fn transfer(examined: &ExaminedFile, transfer: &Transfer) -> Value {
    let d = &transfer.diagnosis;
    let flow = examined.flow(transfer);
    let mut value = verdict(d);
    let more = json!({
        "from": transfer.from.to_string(),
        "to": transfer.to.to_string(),
        "cure": transfer.cured.as_ref().map(cure),
        "counts": flow.map(|flow| counts(flow, d)),
        "handshake": flow.map(handshake),
    });
    if let (Value::Object(fields), Value::Object(more)) = (&mut value, more) {
        fields.extend(more);
    }
    value
}

/// What the engine of reasons says of one direction.
pub(crate) fn verdict(d: &Diagnosis) -> Value {
    json!({
        "sender": d.side.name(),
        "captured_at": d.vantage.name(),
        "verdict": words::paragraph(d),
        "dominant": d.dominant.id(),
        "confidence": d.confidence,
        "healthy": d.healthy,
        "start_ns": d.start.as_nanos(),
        "duration_s": d.duration().as_secs_f64(),
        "bytes": d.bytes.get(),
        "unacknowledged_bytes": d.unacknowledged.get(),
        "goodput_bit_s": (!d.is_one_way || !d.has_data).then(|| d.goodput.bits_per_sec()),
        "path_rate_bit_s": d.path_rate.bits_per_sec(),
        "base_rtt_s": d.base_rtt.map(|s| s.as_secs_f64()),
        "times": d.shares.iter().map(|s| json!({
            "cause": s.cause.id(),
            "kind": s.cause.info().kind.name(),
            "time_s": s.time.as_secs_f64(),
            "share": d.share_of(s.cause),
        })).collect::<Value>(),
        "findings": d.findings.iter().map(|f| finding(f, d)).collect::<Value>(),
        "congestion_control": {
            "name": d.control.name,
            "confidence": d.control.confidence,
            "evidence": d.control.evidence,
        },
        "not_known": d.unknowable,
    })
}

fn cure(cured: &Cured) -> Value {
    json!({
        "change": cured.scenarios.change,
        "against": cured.scenarios.cause.id(),
        "bytes": cured.scenarios.bytes,
        "captured_s": cured.captured.as_secs_f64(),
        "as_captured_s": cured.as_measured.map(|s| s.as_secs_f64()),
        "cured_s": cured.cured.map(|s| s.as_secs_f64()),
        "reproduces": cured.reproduces(),
        "scenarios": cured.files,
    })
}

fn counts(flow: &Flow, d: &Diagnosis) -> Value {
    let half = flow.half(d.side);
    let counts = &half.counts;
    json!({
        "segments": counts.segments,
        "data_segments": counts.data_segments,
        "retransmissions": counts.retransmissions,
        "retransmitted_bytes": counts.retransmitted_bytes,
        "spurious": counts.spurious,
        "timeouts": counts.timeouts,
        "tail_loss_probes": counts.probes,
        "out_of_order": counts.reordered,
        "holes": counts.holes,
        "not_captured": counts.unseen,
        "duplicate_acks": counts.duplicate_acks,
        "d_sacks": counts.dsacks,
        "zero_windows": counts.zero_windows,
        "rtt_samples": half.trips.far.n,
        "rtt_min_s": half.trips.far.min.as_secs_f64(),
        "rtt_mean_s": half.trips.far.mean().as_secs_f64(),
        "rtt_max_s": half.trips.far.max.as_secs_f64(),
        "window_max_bytes": half.largest_window,
        "copies": flow.copies.iter().sum::<u64>(),
    })
}

fn finding(f: &Finding, d: &Diagnosis) -> Value {
    json!({
        "cause": f.cause.id(),
        "title": f.cause.info().title,
        "kind": f.cause.info().kind.name(),
        "time_s": f.time.as_secs_f64(),
        "first_s": f.first.map(|t| t.since(d.start).as_secs_f64()),
        "confidence": f.confidence,
        "evidence": f.evidence,
        "packets": f.frames,
        "wireshark": f.filter,
        "cure": f.cure,
    })
}

fn handshake(flow: &Flow) -> Value {
    let [client, server] = &flow.hello;
    let hello = |h: &farpace_explain::flow::Hello| {
        json!({
            "syns": h.count,
            "mss": h.mss,
            "window_scale": h.scale,
            "sack": h.sack,
            "timestamps": h.timestamps,
            "ecn": h.ecn,
        })
    };
    json!({ "client": hello(client), "server": hello(server) })
}
