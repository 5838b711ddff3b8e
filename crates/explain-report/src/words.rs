//! Verdicts in words, and the table of where the time went.

use crate::cure::Cured;
use crate::examine::{CapturePair, ExaminedFile, FileSource, continued};
use crate::transfer::Transfer;
use farpace_explain::cause::{Cause, Kind};
use farpace_explain::pair::Between;
use farpace_explain::words::{count, seconds};
use farpace_explain::{Diagnosis, Finding};
use farpace_report::{Table, TableCell, TableColumn};
use farpace_units::Span;
use std::fmt::Write;

/// Longest line of running text.
const MAX_TEXT_WIDTH: usize = 100;
/// Before the lines below an event.
const INDENT: &str = "   ";

/// Everything, for a terminal with `width` columns; none: no table is wrapped.
pub fn text(all: &[ExaminedFile], pair: Option<&CapturePair>, width: Option<usize>) -> String {
    let fill = |text: &str| fill(text, width);
    let mut text = String::new();
    for examined in all {
        let _ = writeln!(text, "{}", capture(examined));
        for transfer in &examined.transfers {
            let d = &transfer.diagnosis;
            let _ = write!(text, "\n{}\n{}\n\n", title(transfer), fill(&paragraph(d)));
            text.push_str(&times(d).to_text_for(width));
            for (n, finding) in told(d).enumerate() {
                let _ = write!(text, "\n{}", event(n + 1, finding, d, width));
            }
            if let Some(cured) = &transfer.cured {
                let _ = write!(text, "\n{}\n", fill(&cure(cured)));
            } else if transfer.cure_asked {
                let _ = write!(text, "\nThe lab has no cure to try for this: {}.\n", d.dominant.info().title);
            }
            let _ = write!(text, "\n{}\n", fill(&control(d)));
            for line in &d.unknowable {
                let _ = write!(text, "\n{}\n", fill(&format!("Not known: {line}")));
            }
        }
        if examined.transfers.is_empty() {
            let _ =
                writeln!(text, "\nNothing to explain: no connection is in it, or none that --flow asks for.");
        }
        if examined.others > 0 {
            let _ = writeln!(text, "\n{} more; --top or --flow shows them", connections(examined.others));
        }
    }
    if let Some(pair) = pair {
        let _ = write!(text, "\n{}\n", fill(&both(pair)));
    }
    for (before, after) in continued(all) {
        let _ = write!(
            text,
            "\n{}\n",
            fill(&format!(
                "{} goes on where {} ends, and each was judged alone. For one verdict: \
                 mergecap -w whole.pcap {} {}",
                after.display(),
                before.display(),
                before.display(),
                after.display()
            ))
        );
    }
    text
}

/// What two captures tell together.
pub(crate) fn both(CapturePair { client, server, pair }: &CapturePair) -> String {
    let way = |b: &Between| {
        format!(
            "{} packets in both captures, {} lost between them, {} in queues on average and {} at most",
            b.both,
            b.lost,
            seconds(b.queued.mean()),
            seconds(b.queued.max)
        )
    };
    format!(
        "Both captures of {client} and {server}: the second clock is ahead by {:.6} s and gains {:.1} \
         parts in a million; the least \
         round trip between the captures is {}. From the first to the second: {}. Back: {}.",
        pair.offset,
        pair.drift,
        seconds(pair.round),
        way(&pair.forward),
        way(&pair.backward)
    )
}

/// What a cure would bring.
pub(crate) fn cure(cured: &Cured) -> String {
    let time = |span: Option<Span>| span.map_or("no end within the lab's time".to_owned(), seconds);
    let mut text = format!(
        "In the lab, on the path that was measured, this transfer takes {} as it was (captured: {}), and \
         {} with {}.",
        time(cured.as_measured),
        seconds(cured.captured),
        time(cured.cured),
        cured.scenarios.change
    );
    if !cured.reproduces() {
        text.push_str(" The lab does not reproduce the capture's time well, so this is a rough guide.");
    }
    text
}

/// What the file is.
pub(crate) fn capture(examined: &ExaminedFile) -> String {
    let name = examined.file.display();
    let c = match &examined.source {
        FileSource::Log(logged) => return format!("{name}: a log of ss, {}", connections(logged.len())),
        FileSource::Trace(capture) | FileSource::Capture { capture, .. } => capture,
    };
    let what = if matches!(examined.source, FileSource::Trace(_)) { "rows of a trace" } else { "frames" };
    let mut text =
        format!("{name}: {} {what}, {} TCP segments, {}", c.frames, c.segments, connections(c.flows.len()));
    if let Some((first, last)) = c.time {
        let _ = write!(text, ", {}", seconds(last.since(first)));
    }
    if let Some(damaged) = &c.damaged {
        let _ = write!(text, "\nThe capture is damaged: {damaged}. What came before was used.");
    }
    if c.too_short > 0 {
        let frames = count(c.too_short, "frame was", "frames were");
        let _ = write!(text, "\n{frames} cut too short to see whether TCP is in them.");
    }
    if c.backwards > 0 {
        let frames = count(c.backwards, "frame is", "frames are");
        let _ = write!(text, "\n{frames} earlier than the one before.");
    }
    if c.misdated > 0 {
        let segments = count(c.misdated, "segment has", "segments have");
        let _ = write!(text, "\n{segments} a time that does not fit the place in the file.");
    }
    if let (frames @ 1.., link_type) = c.foreign {
        let frames = count(frames, "frame has", "frames have");
        let _ = write!(text, "\n{frames} link type {link_type}, which is not read.");
    }
    if c.left_out > 0 {
        let segments = count(c.left_out, "segment", "segments");
        let _ = write!(text, "\nLeft out: {segments} of connections beyond the limit.");
    }
    text
}

fn connections(n: usize) -> String {
    count(n as u64, "connection", "connections")
}

/// Between whom.
pub(crate) fn title(transfer: &Transfer) -> String {
    format!("{} -> {}", transfer.from, transfer.to)
}

/// One paragraph that a manager understands.
pub(crate) fn paragraph(d: &Diagnosis) -> String {
    let info = d.dominant.info();
    let share = d.share_of(d.dominant) * 100.0;
    if d.is_one_way && !d.has_data {
        return format!(
            "{} were acknowledged in {}: {}. The data is not in the capture: what limited the transfer, it \
             does not tell.",
            bytes(d.bytes.get()),
            seconds(d.duration()),
            rate(d.goodput.bits_per_sec() as f64)
        );
    }
    if d.is_one_way {
        return format!(
            "About {} were sent in {}. Their ACKs are not in the capture: what arrived, and what limited the \
             transfer, it does not tell.",
            bytes(d.bytes.get()),
            seconds(d.duration())
        );
    }
    let mut text = format!(
        "{} in {}: {}. ",
        bytes(d.bytes.get()),
        seconds(d.duration()),
        rate(d.goodput.bits_per_sec() as f64)
    );
    let sent = bytes(d.unacknowledged.get());
    if d.unacknowledged.is_zero() && d.bytes.is_zero() {
        text.push_str("No data was acknowledged. ");
    } else if d.bytes.is_zero() {
        let _ = write!(text, "No data was acknowledged of {sent} that were sent. ");
    } else if !d.unacknowledged.is_zero() {
        let _ = write!(text, "{sent} more were sent, and not acknowledged by the end. ");
    }
    let reset = d.findings.iter().find(|f| f.cause == Cause::Reset && f.cause != d.dominant);
    if let Some(reset) = reset {
        let _ =
            write!(text, "A reset ended it: {}. What helps: {}. Before that: ", reset.evidence, reset.cure);
    }
    if d.healthy {
        text.push_str(&match program(d.dominant) {
            Some(who) => {
                format!("The network is not at fault: {who} bounds this transfer most ({}). ", info.title)
            }
            None => format!("Nothing is wrong with this transfer. What bounds it most is: {}. ", info.title),
        });
    } else if info.kind == Kind::Fault {
        let _ = write!(text, "The main reason is: {}, with {share:.0} % of the time. ", info.title);
    } else {
        let _ = write!(text, "{} takes most of the time ({share:.0} %). ", capital(info.title));
    }
    let _ = write!(text, "{} ", info.what);
    let faults: Vec<&Finding> = d
        .findings
        .iter()
        .filter(|f| f.cause != d.dominant && f.cause != Cause::Reset && f.cause.info().kind == Kind::Fault)
        .filter(|f| f.time.as_secs_f64() >= 0.05 * d.duration().as_secs_f64())
        .collect();
    for fault in faults.iter().take(3) {
        let took = fault.time.as_secs_f64() / d.duration().as_secs_f64() * 100.0;
        let _ = write!(text, "{} took {took:.0} % as well. ", capital(fault.cause.info().title));
    }
    // Where the reset is all that is wrong, nothing else needs a cure. A limit that every transfer has needs
    // none where something is wrong besides it.
    let dominant = d.findings.iter().find(|f| f.cause == d.dominant);
    let cured = if info.kind == Kind::Fault { dominant } else { faults.first().copied().or(dominant) };
    if let Some(finding) = cured
        && !d.healthy
        && (reset.is_none() || finding.cause.info().kind == Kind::Fault)
    {
        let against = match finding.cause == d.dominant {
            true => String::new(),
            false => format!(" against {}", finding.cause.info().title),
        };
        let _ = write!(text, "What helps{against}: {}.", finding.cure);
    }
    text.trim_end().to_owned()
}

/// Who bounds a transfer that the network does not.
fn program(cause: Cause) -> Option<&'static str> {
    match cause {
        Cause::ReceiverApplication | Cause::ZeroWindow => Some("the receiving program"),
        Cause::SenderApplication => Some("the sending program"),
        Cause::PeerApplication => Some("the program that the sender waits for"),
        Cause::SenderProcessor => Some("the sending host"),
        _ => None,
    }
}

/// Where the time went.
pub(crate) fn times(d: &Diagnosis) -> Table {
    let columns = vec![
        TableColumn::text("where the time went"),
        TableColumn::number("time", "s"),
        TableColumn::number("share", "%"),
    ];
    let mut table = Table::new("", columns);
    for share in &d.shares {
        let time = share.time.as_secs_f64();
        table.row(vec![
            share.cause.info().title.into(),
            TableCell::Number(time, Some(3)),
            TableCell::Number(d.share_of(share.cause) * 100.0, Some(1)),
        ]);
    }
    table.row(vec![
        "all".into(),
        TableCell::Number(d.duration().as_secs_f64(), Some(3)),
        TableCell::Number(100.0, Some(1)),
    ]);
    table
}

/// Findings that are told, in the order in which they first mattered.
pub(crate) fn told(d: &Diagnosis) -> impl Iterator<Item = &Finding> {
    let mut all: Vec<&Finding> = d.findings.iter().collect();
    all.sort_by_key(|f| f.first.unwrap_or(d.start));
    all.into_iter()
}

/// One event with its evidence.
pub(crate) fn event(number: usize, f: &Finding, d: &Diagnosis, width: Option<usize>) -> String {
    let fill = |text: &str| fill(text, width);
    let at = f.first.map_or(String::new(), |t| format!(" from {}", seconds(t.since(d.start))));
    let took = if f.time.is_zero() { String::new() } else { format!(", {}", seconds(f.time)) };
    let mut text = fill(&format!(
        "{number}. {}{at}{took} ({:.0} % sure): {}.",
        capital(f.cause.info().title),
        f.confidence * 100.0,
        f.evidence
    ));
    if !f.frames.is_empty() {
        let frames: Vec<String> = f.frames.iter().take(12).map(|n| format!("#{n}")).collect();
        let more = if f.frames.len() > 12 { ", ..." } else { "" };
        let _ = write!(text, "\n{INDENT}Packets: {}{more}", frames.join(" "));
    }
    if !f.filter.is_empty() {
        let _ = write!(text, "\n{INDENT}Wireshark: {}", f.filter);
    }
    let within = width.unwrap_or(MAX_TEXT_WIDTH).min(MAX_TEXT_WIDTH).saturating_sub(INDENT.len());
    let cure = farpace_report::fill(&format!("Cure: {}", f.cure), within);
    let _ = write!(text, "\n{INDENT}{}\n", cure.replace('\n', &format!("\n{INDENT}")));
    text
}

/// The congestion control, in words.
pub(crate) fn control(d: &Diagnosis) -> String {
    match d.control.name {
        "unknown" => format!("The sender's congestion control is not known: {}.", d.control.evidence),
        name => format!(
            "The sender runs {name}, with {:.0} % confidence: {}.",
            d.control.confidence * 100.0,
            d.control.evidence
        ),
    }
}

/// Lines of at most a hundred columns, and no wider than the terminal.
pub(crate) fn fill(text: &str, width: Option<usize>) -> String {
    farpace_report::fill(text, width.map_or(MAX_TEXT_WIDTH, |width| width.min(MAX_TEXT_WIDTH)))
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |c| c.to_uppercase().collect::<String>() + chars.as_str())
}

fn bytes(n: u64) -> String {
    match n {
        n if n >= 1_000_000_000 => format!("{:.2} GB", n as f64 / 1e9),
        n if n >= 1_000_000 => format!("{:.2} MB", n as f64 / 1e6),
        n if n >= 1_000 => format!("{:.1} kB", n as f64 / 1e3),
        n => format!("{n} B"),
    }
}

/// A rate with the unit that fits it.
pub(crate) fn rate(bits: f64) -> String {
    match bits {
        b if b >= 1e9 => format!("{:.2} Gbit/s", b / 1e9),
        b if b >= 1e6 => format!("{:.2} Mbit/s", b / 1e6),
        b => format!("{:.1} kbit/s", b / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_explain::input::Reading;

    fn verdict(dominant: Cause, healthy: bool) -> Diagnosis {
        let mut d = Reading::default().diagnosis();
        (d.dominant, d.healthy) = (dominant, healthy);
        d.findings.clear();
        d
    }

    /// Breaks: where a program bounds a transfer, the report says that nothing is wrong.
    #[test]
    fn a_program_that_bounds_a_transfer_is_named() {
        let text = paragraph(&verdict(Cause::ZeroWindow, true));
        assert!(text.contains("The network is not at fault: the receiving program"), "{text}");
        assert!(paragraph(&verdict(Cause::Congestion, true)).contains("Nothing is wrong"));
    }

    fn finding(cause: Cause, time: Span, cure: &str) -> Finding {
        Finding {
            cause,
            time,
            confidence: 0.9,
            evidence: "frame 7".to_owned(),
            frames: Vec::new(),
            filter: String::new(),
            cure: cure.to_owned(),
            first: None,
        }
    }

    /// Breaks: where a fault takes a part of a transfer that a limit bounds, the paragraph advises what helps
    /// against the limit and is silent about the fault; or a cure is wider than the text.
    #[test]
    fn the_cure_is_that_of_the_fault() {
        let mut d = verdict(Cause::Congestion, false);
        d.end = d.start + Span::from_secs(10);
        d.findings = vec![
            finding(Cause::Congestion, Span::from_secs(8), "a faster path"),
            finding(Cause::SmallQueue, Span::from_secs(2), &"pace ".repeat(40)),
        ];
        let text = paragraph(&d);
        assert!(
            text.contains("Small queue took 20 % as well. What helps against small queue: pace"),
            "{text}"
        );
        assert!(!text.contains("a faster path"), "{text}");
        let told = event(1, &d.findings[1], &d, None);
        assert!(told.lines().all(|line| line.len() <= MAX_TEXT_WIDTH), "{told}");
    }

    /// Breaks: a reset that ended a transfer is told last, without a cure, or with that of the path.
    #[test]
    fn a_reset_is_told_first_with_its_own_cure() {
        let mut d = verdict(Cause::Congestion, false);
        d.findings = vec![
            finding(Cause::Congestion, Span::ZERO, "a faster path"),
            finding(Cause::Reset, Span::ZERO, "the box"),
        ];
        let text = paragraph(&d);
        assert!(
            text.contains("A reset ended it: frame 7. What helps: the box. Before that: Path full"),
            "{text}"
        );
        assert!(!text.contains("a faster path") && !text.contains("as well"), "{text}");
    }
}
