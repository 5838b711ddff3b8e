//! What came out, in sentences.

use super::ExaminedCapture;
use farpace_link::proof::{FlowProof, LinkModel, ProofVerdict};
use farpace_report::number;
use farpace_units::grouped;
use farpace_units::{Rate, Span};

/// A flow with its interface, if the capture has several.
pub fn flow(examined: &ExaminedCapture, flow: &FlowProof) -> String {
    let key = flow.totals.key;
    match examined.interfaces.len() {
        0 | 1 => key.to_string(),
        _ => format!("{key} at {}", examined.interface(key.interface)),
    }
}

/// Bit/s in the unit that suits it.
pub fn rate(rate: Rate) -> String {
    rate.rounded()
}

/// A time in the unit that suits it.
pub fn time(span: Span) -> String {
    span.rounded()
}

/// A line, and whether somebody has said it.
pub fn line(line: Option<LinkModel>) -> String {
    match line {
        Some(LinkModel { rate, assumed: false }) => rate.to_string(),
        Some(LinkModel { rate, assumed: true }) => {
            format!("{rate} (assumed: the slowest common one that fits)")
        }
        None => "unknown".to_owned(),
    }
}

/// What the capture is.
pub fn capture(examined: &ExaminedCapture) -> String {
    let all = examined.first_pass.all();
    let mut text = format!(
        "{} packets in {} of {}",
        grouped(all.packets),
        time(all.duration()),
        counted(examined.flows.len() as u64, "flow")
    );
    if examined.outside > 0 {
        text.push_str(&format!("; {} outside of the time asked for", grouped(examined.outside)));
    }
    text + "."
}

/// `1 flow`, `2 flows`.
fn counted(n: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(n), if n == 1 { "" } else { "s" })
}

/// What came out of all captures, and whether that is good.
pub fn verdict(all: &[ExaminedCapture]) -> (String, bool) {
    let flows = || all.iter().flat_map(|e| e.flows.iter().map(move |flow| (e, flow)));
    let count = |wanted: &str| flows().filter(|(_, f)| f.verdict.name() == wanted).count() as u64;
    let (precise, not, unknown) = (count("precise"), count("not_precise"), count("cannot_tell"));
    let parts = [(precise, "precise"), (not, "not precise"), (unknown, "cannot be told")];
    let parts: Vec<String> =
        parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}", grouped(*n))).collect();
    let mut text = counted(precise + not + unknown, "flow");
    if !parts.is_empty() {
        text.push_str(&format!(": {}", parts.join(", ")));
    }
    text.push('.');
    let worst = flows().filter(|(_, f)| f.verdict == ProofVerdict::NotPrecise);
    let worst =
        worst.max_by(|a, b| a.1.peak_frames().unwrap_or(0.0).total_cmp(&b.1.peak_frames().unwrap_or(0.0)));
    if let Some((examined, flow)) = worst {
        text.push_str(&format!(
            " {}: {}",
            if not == 1 { "That one" } else { "The burstiest" },
            peak(examined, flow)
        ));
    }
    (text, not == 0 && precise > 0)
}

/// The greatest queue of a flow, in a sentence.
pub fn peak(examined: &ExaminedCapture, proof: &FlowProof) -> String {
    let (Some(peak), Some(frames)) = (proof.peak(), proof.peak_frames()) else {
        return format!("{} has no duration.", flow(examined, proof));
    };
    format!(
        "{} makes a queue of {} full frames ({}, known to {}) before a line of {}, at {:.6} s with packet \
         {}.",
        flow(examined, proof),
        number(frames),
        bytes(peak.queue.get()),
        bytes(proof.clock.queue.get()),
        rate(peak.rate),
        examined.seconds(peak.time),
        peak.number
    )
}

/// `12,345 B`.
pub fn bytes(n: u64) -> String {
    format!("{} B", grouped(n))
}

/// What a reader must know of the capture, a sentence each.
pub fn notes(examined: &ExaminedCapture) -> Vec<String> {
    let first_pass = &examined.first_pass;
    let mut notes = Vec::new();
    if let Some(cut) = &examined.cut {
        notes.push(format!("The capture is not whole: {cut}. What is before that was judged."));
    }
    let all = first_pass.all();
    for (id, interface) in first_pass.interfaces() {
        let at = if examined.interfaces.len() > 1 {
            format!("{}: ", examined.interface(id))
        } else {
            String::new()
        };
        if interface.total.backwards > 0 {
            notes.push(format!(
                "{at}Time goes backwards: {} packets are earlier than one before them, by up to {}. That \
                 counts as an error of the clock.",
                grouped(interface.total.backwards),
                time(interface.total.furthest_back)
            ));
        }
        let gaps = interface.gaps;
        if gaps.frames > 0 {
            let share = gaps.line_bytes.get() as f64 / interface.line_bytes.get().max(1) as f64 * 100.0;
            notes.push(format!(
                "{at}{} gap frames (PAUSE for no time), {} with their check sequences: {} % of what the line \
                 carried. They end at the first switch, so this is the sender's own wire.",
                grouped(gaps.frames),
                bytes(gaps.bytes.get()),
                number(share)
            ));
        }
        if gaps.others > 0 {
            notes.push(format!(
                "{at}{} other frames of MAC control, such as requests to pause.",
                grouped(gaps.others)
            ));
        }
    }
    let made_up = examined.interfaces.iter().filter(|i| i.link_type != 1).count();
    if made_up > 0 {
        notes.push(
            "The capture is not of Ethernet: rates of layer 2 are those that its packets would have there."
                .to_owned(),
        );
    }
    if first_pass.other().packets > 0 {
        notes.push(format!(
            "{} packets belong to flows beyond the first {}: these are not looked at one by one.",
            grouped(first_pass.other().packets),
            grouped(farpace_link::proof::MAX_FLOWS as u64)
        ));
    }
    if first_pass.unreadable().packets > 0 {
        notes.push(format!(
            "Of {} packets not even the Ethernet header was captured.",
            grouped(first_pass.unreadable().packets)
        ));
    }
    if all.packets == 0 {
        notes.push("There are no packets.".to_owned());
    }
    notes
}
