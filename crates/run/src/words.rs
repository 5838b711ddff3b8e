//! What came of a run, in plain words: the verdict.

use crate::summary::{BottleneckSummary, FlowSummary, RunSummary, Status};
use crate::watch::RunTime;
use farpace_lab::scenario::DatagramFlow;
use farpace_report::number;
use farpace_units::{ByteCount, Instant, Span, grouped};

/// Goodput from this share of the possible on fills the path.
const FULL: f64 = 0.95;
/// Flows that are told of one by one.
const MAX_REPORTED: usize = 4;

/// The whole run in a few sentences.
pub fn verdict(summary: &RunSummary) -> String {
    let mut text = String::new();
    if summary.status == Status::Interrupted {
        text.push_str(&format!(
            "Interrupted at {} of virtual time: results are partial. ",
            moment(summary.ended)
        ));
    }
    let several = summary.flows.len() > 1;
    for flow in summary.flows.iter().take(MAX_REPORTED) {
        // Of one of several, only the outcome; the report has a section for each.
        let told = if several { outcome(flow) + &stops(flow) } else { flow_verdict(flow) };
        let name = if several { format!("{}: ", flow.name) } else { String::new() };
        text.push_str(&format!("{name}{told} "));
    }
    if summary.flows.len() > MAX_REPORTED {
        let intact = summary.flows.iter().filter(|f| f.intact).count();
        text.push_str(&format!("Of all {} flows, {intact} are complete and intact. ", summary.flows.len()));
    }
    text.push_str(&drops(summary));
    text.trim_end().to_owned()
}

/// Which streams of datagrams the end of the run, with its last flow, has cut off; none if all were sent.
pub fn unsent(datagrams: &[DatagramFlow], ended: Instant) -> Option<String> {
    let ended = ended.since(Instant::ZERO);
    let named = |cut: &dyn Fn(&DatagramFlow) -> bool| -> String {
        let names: Vec<&str> = datagrams.iter().filter(|d| cut(d)).map(|d| d.name.as_str()).collect();
        names.join(", ")
    };
    let never = named(&|d| d.start >= ended);
    let partly = named(&|d| d.start < ended && d.lasts.is_some_and(|lasts| d.start + lasts > ended));
    let mut parts = Vec::new();
    if !never.is_empty() {
        parts.push(format!("before the datagrams of {never} had begun"));
    }
    if !partly.is_empty() {
        parts.push(format!("before all datagrams of {partly} were sent"));
    }
    (!parts.is_empty()).then(|| format!("The run ended {}.", parts.join(" and ")))
}

/// True if nothing is to be complained of.
pub fn is_good(summary: &RunSummary) -> bool {
    summary.status == Status::Complete
        && summary.flows.iter().all(|f| f.silence.count == 0 && f.spent.crawling.is_zero())
}

/// One flow: what it delivered, how that compares with the path, and what held it back.
pub fn flow_verdict(flow: &FlowSummary) -> String {
    let mut text = outcome(flow);
    text.push_str(&held_back(flow));
    text.push_str(&stops(flow));
    if flow.retransmissions > 0 {
        text.push_str(&format!(
            " {} sent again",
            counted(flow.retransmissions, "segment was", "segments were")
        ));
        text.push_str(&match flow.timeouts {
            0 => ", without a timeout.".to_owned(),
            n => format!(", with {}.", counted(n, "timeout", "timeouts")),
        });
    }
    if flow.transmit_queue_full > 0 {
        text.push_str(&format!(
            " The transmit queue of its host was full {}: that is no loss, but brings the window down.",
            counted(flow.transmit_queue_full, "time", "times")
        ));
    }
    text.push_str(&asking(flow));
    text
}

/// What became of asking for ACKs; nothing if nothing was asked.
fn asking(flow: &FlowSummary) -> String {
    let acks = &flow.acks;
    match (acks.asked, acks.confirmed) {
        (0, _) => String::new(),
        (asked @ 4.., 0) => format!(
            " {} for an ACK at once, and none was answered: the other end does not know how, or something on \
             the way takes the requests out.",
            counted(asked, "segment asked", "segments asked")
        ),
        (asked, confirmed) => format!(
            " {} for an ACK at once; {}.",
            counted(asked, "segment asked", "segments asked"),
            counted(confirmed, "was answered", "were answered") + " before the last byte had arrived"
        ),
    }
}

fn outcome(flow: &FlowSummary) -> String {
    let rate = rate(flow.goodput);
    match (&flow.problem, flow.completion) {
        (None, Some(time)) => {
            let share = match (flow.efficiency, &flow.bottleneck) {
                (Some(e), Some(b)) => {
                    format!(", {} of the rate of {} ({})", percent(e), place(b), self::rate(b.rate))
                }
                _ => String::new(),
            };
            format!("All {} arrived intact in {}: {rate} of payload{share}.", size(flow.size), span(time))
        }
        (Some(problem), _) => format!(
            "{} of {} arrived in {} ({rate}): {problem}.",
            size(flow.delivered),
            size(flow.size),
            span(flow.elapsed)
        ),
        (None, None) => format!(
            "{} of {} arrived in {} ({rate}).",
            size(flow.delivered),
            size(flow.size),
            span(flow.elapsed)
        ),
    }
}

/// What limited the transfer.
fn held_back(flow: &FlowSummary) -> String {
    let best = flow.bottleneck.as_ref().map(|b| b.best);
    if let Some(best) = best
        && flow.goodput as f64 >= FULL * best as f64
    {
        return format!(" It filled the path, which can carry {} of payload.", rate(best));
    }
    let could = best.map_or_else(String::new, |best| {
        let least = farpace_units::Rate::from_bits_per_sec(best).time_for(flow.size);
        format!(" The path can carry {} of payload, {} in {}.", rate(best), size(flow.size), span(least))
    });
    let total = flow.spent.total();
    let mut parts = parts(&flow.spent);
    parts.retain(|(part, _)| *part * 20 >= total && !part.is_zero());
    parts.sort_by_key(|(part, _)| std::cmp::Reverse(*part));
    let told = parts
        .iter()
        .map(|(part, what)| format!("{:.0} % {what}", 100.0 * part.as_secs_f64() / total.as_secs_f64()));
    let told = told.collect::<Vec<_>>().join(", ");
    if told.is_empty() { could } else { format!("{could} Where its time went: {told}.") }
}

/// The parts of a transfer's time, in a few words.
fn parts(spent: &RunTime) -> Vec<(Span, &'static str)> {
    let RunTime {
        connecting,
        silent,
        crawling,
        recovering,
        receiver_window,
        congestion_window,
        pacing,
        other,
    } = *spent;
    vec![
        (connecting, "connecting"),
        (silent, "standing still"),
        (crawling, "crawling (below 1 % of what the path can carry)"),
        (recovering, "recovering from losses"),
        (receiver_window, "limited by the receiver's window"),
        (congestion_window, "limited by the congestion window"),
        (pacing, "limited by pacing or the sender's NIC"),
        (other, "with nothing more to send, or a full send buffer"),
    ]
}

fn stops(flow: &FlowSummary) -> String {
    let s = &flow.silence;
    let Some(longest) = s.longest else { return String::new() };
    let at = format!("from {} on, mostly in {} state", moment(longest.start), capital(longest.state));
    match s.count {
        1 => format!(" It stood still once, for {} {at}.", span(s.total)),
        n => format!(
            " It stood still {n} times, {} in all; the longest stop lasted {} {at}.",
            span(s.total),
            span(longest.duration)
        ),
    }
}

fn drops(summary: &RunSummary) -> String {
    let all: u64 = summary.drops.iter().map(|d| d.packets).sum();
    let mut by_number: Vec<_> = summary.drops.iter().collect();
    by_number.sort_by_key(|d| std::cmp::Reverse(d.packets));
    match by_number[..] {
        [] => "No packet was dropped.".to_owned(),
        [one] => format!("{} dropped, all at {} ({}).", were(all), one.place, cause(one.cause)),
        [first, ..] => format!(
            "{} dropped, most of them ({}) at {} ({}).",
            were(all),
            grouped(first.packets),
            first.place,
            cause(first.cause)
        ),
    }
}

fn were(packets: u64) -> String {
    counted(packets, "packet was", "packets were")
}

/// A cause as words: `queue_full` is `queue full`.
pub fn cause(name: &str) -> String {
    name.replace('_', " ")
}

/// `the policer of wan`.
pub fn place(b: &BottleneckSummary) -> String {
    format!("the {} of {}", b.kind, b.link)
}

/// First letter upper case.
pub fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// About three digits and a unit: `1 GB`, `690 MB`, `12.3 kB`.
pub fn size(bytes: ByteCount) -> String {
    scaled(bytes.get() as f64, &[(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")])
}

/// `485.8 Mbit/s`.
pub fn rate(bits: u64) -> String {
    scaled(bits as f64, &[(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")])
}

/// `16.47 s`, `230 ms`.
pub fn span(span: Span) -> String {
    scaled(span.as_nanos() as f64, &[(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")])
}

fn moment(at: Instant) -> String {
    format!("{:.2} s", at.as_secs_f64())
}

fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let fitting = units.iter().find(|(unit, _)| value >= *unit).or(units.last());
    let (unit, name) = fitting.copied().unwrap_or((1.0, ""));
    let value = value / unit;
    let digits = match value {
        v if (v - v.round()).abs() < 1e-9 => 0,
        v if v >= 100.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {name}")
}

/// `44.3 %`.
pub fn percent(share: f64) -> String {
    format!("{} %", number((share * 1000.0).round() / 10.0))
}

/// `1 packet`, `23,414 packets`.
fn counted(n: u64, one: &str, many: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{} {many}", grouped(n)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a run that ends before a stream of datagrams begins passes for one that sent it.
    #[test]
    fn datagrams_that_were_not_sent_are_named() {
        let stream = |name: &str, start: u64, lasts: Option<u64>| {
            let spec = serde_json::json!({ "name": name, "from": "a", "to": "b", "rate": "1 Mbit/s" });
            let mut flow: DatagramFlow = serde_json::from_value(spec).unwrap();
            (flow.start, flow.lasts) = (Span::from_secs(start), lasts.map(Span::from_secs));
            flow
        };
        let all = [stream("late", 5, None), stream("cut", 1, Some(4)), stream("whole", 0, Some(1))];
        let at = |seconds| unsent(&all, Instant::ZERO + Span::from_secs(seconds));
        assert_eq!(
            at(3).as_deref(),
            Some(
                "The run ended before the datagrams of late had begun and before all datagrams of cut were \
                 sent."
            )
        );
        assert_eq!(at(6), None);
        assert_eq!(unsent(&[], Instant::ZERO), None);
    }

    /// Breaks: numbers in sentences that nobody can read, or that are off by a unit.
    #[test]
    fn quantities_are_written_for_people() {
        assert_eq!(size(ByteCount::new(1_000_000_000)), "1 GB");
        assert_eq!(size(ByteCount::new(690_608_123)), "690.6 MB");
        assert_eq!(size(ByteCount::ZERO), "0 B");
        assert_eq!(rate(485_776_000), "485.8 Mbit/s");
        assert_eq!(span(Span::from_millis(16_469)), "16.47 s");
        assert_eq!(span(Span::from_millis(230)), "230 ms");
        assert_eq!(percent(0.4434), "44.3 %");
    }
}
