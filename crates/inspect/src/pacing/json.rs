//! What came out as JSON: `farpace-pacing-report/1`.

use super::ExaminedCapture;
use super::words;
use farpace_link::proof::{FlowKey, FlowProof, LinkModel, MAX_TIMELINES, Peak, ProofVerdict, Totals};
use farpace_units::Rate;
use serde_json::{Value, json};

/// The whole report.
pub fn report(all: &[ExaminedCapture]) -> Value {
    json!({
        "format": "farpace-pacing-report/1",
        "farpace": env!("CARGO_PKG_VERSION"),
        "verdict": words::verdict(all).0,
        "captures": all.iter().map(capture).collect::<Value>(),
    })
}

fn capture(examined: &ExaminedCapture) -> Value {
    let first_pass = &examined.first_pass;
    let all = first_pass.all();
    let interfaces = first_pass.interfaces().map(|(number, interface)| {
        let total = &interface.total;
        json!({
            "interface": number,
            "name": examined.interfaces.get(number as usize).and_then(|i| i.name.as_deref()),
            "packets": total.packets,
            "bytes": total.bytes.get(),
            "line_bytes": interface.line_bytes.get(),
            "line": line(first_pass.link(number)),
            "tick_ns": first_pass.tick(number).as_nanos(),
            "backwards": total.backwards,
            "furthest_back_ns": total.furthest_back.as_nanos(),
            "gap_frames": interface.gaps.frames,
            "gap_bytes": interface.gaps.bytes.get(),
            "gap_line_bytes": interface.gaps.line_bytes.get(),
            "other_control_frames": interface.gaps.others,
        })
    });
    let flows = examined.flows.iter().enumerate().map(|(i, f)| flow(examined, f, i < MAX_TIMELINES));
    json!({
        "file": examined.file.to_string_lossy(),
        "packets": all.packets,
        "outside": examined.outside,
        "duration_s": all.duration().as_secs_f64(),
        "first_ns": examined.start.as_nanos(),
        "cut": examined.cut,
        "unreadable_packets": first_pass.unreadable().packets,
        "other_packets": first_pass.other().packets,
        "interfaces": interfaces.collect::<Value>(),
        "flows": flows.collect::<Value>(),
    })
}

fn flow(examined: &ExaminedCapture, proof: &FlowProof, with_bins: bool) -> Value {
    let FlowKey { interface, vlans, .. } = proof.totals.key;
    let total: &Totals = &proof.totals.total;
    let peak = |peak: &Peak| {
        json!({
            "rate_bit_s": peak.rate.bits_per_sec(),
            "bytes": peak.queue.get(),
            "frames": peak.queue.get() as f64 / proof.full_frame.get().max(1) as f64,
            "at_s": examined.seconds(peak.time),
            "packet": peak.number,
        })
    };
    let bits = |rate: Option<Rate>| rate.map(Rate::bits_per_sec);
    let per = proof.per_packets.iter().zip(proof.clock.per_packets).map(|(per, error)| {
        json!({
            "n": per.n,
            "count": per.count,
            "least_bit_s": bits(per.min),
            "mean_bit_s": bits(per.mean()),
            "most_bit_s": bits(per.max),
            "error_bit_s": bits(error),
            "at_once": per.at_once,
        })
    });
    let intervals = &proof.intervals;
    let range = intervals.range();
    let distinct = intervals.distinct().map(|all| {
        all.iter().map(|(span, n)| json!({ "ns": span.as_nanos(), "count": n })).collect::<Value>()
    });
    let bins = with_bins.then(|| {
        let bin = |(from, to, n): (farpace_units::Span, farpace_units::Span, u64)| {
            json!({ "from_ns": from.as_nanos(), "to_ns": to.as_nanos(), "count": n })
        };
        intervals.bins().map(bin).collect::<Value>()
    });
    let (doubt, reason) = match &proof.verdict {
        ProofVerdict::CannotTell(doubt) => (Some(doubt.name()), Some(doubt.to_string())),
        ProofVerdict::Precise | ProofVerdict::NotPrecise => (None, None),
    };
    json!({
        "flow": proof.totals.key.to_string(),
        "protocol": proof.totals.key.protocol(),
        "interface": interface,
        "vlans": vlans.iter().flatten().collect::<Vec<_>>(),
        "packets": total.packets,
        "bytes": total.bytes.get(),
        "network_bytes": proof.totals.network_bytes.get(),
        "first_s": examined.seconds(total.first),
        "duration_s": total.duration().as_secs_f64(),
        "mean_bit_s": bits(proof.mean),
        "network_bit_s": bits(proof.goodput),
        "full_frame_bytes": proof.full_frame.get(),
        "burstiness": proof.at_mean.as_ref().map(peak),
        "burstiness_at_rate": proof.at_rate.as_ref().map(peak),
        "per_packets": per.collect::<Value>(),
        "intervals": {
            "count": intervals.count(),
            "least_ns": range.map(|r| r.0.as_nanos()),
            "median_ns": intervals.median().map(|m| m.as_nanos()),
            "most_ns": range.map(|r| r.1.as_nanos()),
            "distinct": distinct,
            "bins": bins,
        },
        "longest_train": {
            "packets": proof.train.packets,
            "bytes": proof.train.bytes.get(),
            "at_s": examined.seconds(proof.train.time),
            "packet": proof.train.number,
            "line": line(proof.link),
        },
        "clock": {
            "tick_ns": proof.clock.tick.as_nanos(),
            "mean_error_bit_s": bits(proof.clock.mean),
            "queue_error_bytes": proof.clock.queue.get(),
            "backwards": total.backwards,
        },
        "verdict": proof.verdict.name(),
        "doubt": doubt,
        "reason": reason,
    })
}

fn line(line: Option<LinkModel>) -> Value {
    json!(line.map(|line| json!({ "rate_bit_s": line.rate.bits_per_sec(), "assumed": line.assumed })))
}
