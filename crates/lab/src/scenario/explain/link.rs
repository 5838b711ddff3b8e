//! What a link does in each direction.

use super::super::aqm::{Aqm, CoDelSpec, FqCoDelSpec, RedSpec};
use super::super::figures::{SegmentSizes, transmission_time};
use super::super::impairment::ImpairmentText;
use super::super::number::{percent, time};
use super::super::spec::{Direction, LinkSpec, ResolvedDirection, Scenario};
use super::pacing;
use super::page::ExplainPage;
use farpace_path::QueueLimit;
use farpace_units::{ByteCount, Span};

/// One link: a paragraph for each direction, or one for both if they do the same.
pub(super) fn write(page: &mut ExplainPage, s: &Scenario, link: &LinkSpec) {
    let segments = s.flows.iter().map(|f| s.segment(f));
    let segment = segments.max_by_key(|g| g.frame);
    let [forward, backward] = Direction::BOTH.map(|direction| link.direction(direction));
    let alike = forward.is_like(&backward);
    let both = if alike { " and back" } else { "" };
    let directions = if alike { vec![forward] } else { vec![forward, backward] };
    for d in directions {
        page.item(1, &properties(&link.name, &d, both, segment));
        for words in [schedule(&d), aqm(&d), pacing::pacing(&d)].into_iter().flatten() {
            page.item(2, &words);
        }
        impairments(page, &d);
    }
}

/// Rate, delay and queue, and what they mean for the largest segment of all flows.
fn properties(name: &str, d: &ResolvedDirection<'_>, both: &str, segment: Option<SegmentSizes>) -> String {
    let rate = d.max_rate().map_or("infinitely fast".to_string(), |r| r.to_string());
    let queue =
        if d.pacing.is_some() { "queues of classes".to_owned() } else { format!("queue {}", d.queue) };
    let mut text = format!("{name}, {} to {}{both}: {rate}, delay {}, {queue}", d.from, d.to, d.min_delay());
    if let (Some(r), Some(g)) = (d.max_rate(), segment) {
        let (data, ack) = (transmission_time(d, g.frame), transmission_time(d, g.ack_frame));
        text.push_str(&format!(
            ". A full {} of {} takes {} on the link, an ACK of {} {}",
            if d.is_recorded() { "packet" } else { "frame" },
            d.counted(g.frame),
            time(data),
            d.counted(g.ack_frame),
            time(ack)
        ));
        if d.pacing.is_none() {
            let drain = r.time_for(full_queue(d, &g));
            text.push_str(&format!("; a full queue of full frames takes {}", time(drain)));
        }
    }
    text.push('.');
    text
}

/// The impairments, in the order in which packets meet them.
fn impairments(page: &mut ExplainPage, d: &ResolvedDirection<'_>) {
    let mut clauses = Vec::new();
    for impairment in d.impairments() {
        match impairment.value.explain(d) {
            ImpairmentText::Sentence(text) => page.item(2, &text),
            ImpairmentText::Clause(text) => clauses.push(text),
        }
    }
    if !clauses.is_empty() {
        page.item(2, &format!("Impairments: {}.", clauses.join(", ")));
    }
}

/// The bytes that the rate has to carry for a full queue of full frames.
fn full_queue(d: &ResolvedDirection<'_>, g: &SegmentSizes) -> ByteCount {
    let frames = match d.queue {
        QueueLimit::Packets(p) => u64::from(p.get()),
        QueueLimit::Bytes(b) => b.get() / g.frame.get().max(1),
        QueueLimit::Unlimited => u64::from(QueueLimit::CAP.get()),
    };
    if d.is_recorded() {
        return ByteCount::new(frames.saturating_mul(d.counted(g.frame).get()));
    }
    d.queue.in_bytes(g.frame) + ByteCount::new(frames.saturating_mul(d.overhead.get()))
}

/// What manages the queue; none for a plain one.
fn aqm(d: &ResolvedDirection<'_>) -> Option<String> {
    let ecn = |ecn: bool| if ecn { "marks (of senders that take part in ECN) or drops" } else { "drops" };
    match d.aqm? {
        Aqm { red: Some(red), .. } => {
            let RedSpec { min, max, max_p, weight: _, gentle, ecn: marks } = red;
            let beyond = if *gentle {
                format!("and up to all of them at {} more", max)
            } else {
                "and all of them beyond".into()
            };
            Some(format!(
                "Its queue is under RED: from a mean of {min} on it {} packets at random, {} of them at \
                 {max}, {beyond}.",
                ecn(*marks),
                percent(*max_p)
            ))
        }
        Aqm { codel: Some(CoDelSpec { target, interval, ecn: marks }), .. } => Some(format!(
            "Its queue is under CoDel: it {} when packets have waited for more than {target} throughout \
             {interval}.",
            ecn(*marks)
        )),
        Aqm { fq_codel: Some(FqCoDelSpec { target, interval, ecn: marks, quantum, flows }), .. } => {
            Some(format!(
                "Its queue is under FQ-CoDel: {flows} queues for the flows, {quantum} of each in turn. It \
                 {} in those whose packets have waited for more than {target} throughout {interval}.",
                ecn(*marks)
            ))
        }
        Aqm { red: None, codel: None, fq_codel: None } => None,
    }
}

/// The steps of rate and delay; none for a constant link.
fn schedule(d: &ResolvedDirection<'_>) -> Option<String> {
    let schedule = d.schedule?;
    if let Ok(Some(opportunities)) = d.opportunities() {
        let (n, last) = (schedule.opportunities.len(), schedule.opportunities.last().copied().unwrap_or(0));
        return Some(format!(
            "It is recorded: {n} delivery opportunities of 1500 B in {}, and then again. All figures hold \
             for {} in the mean.",
            Span::from_millis(last),
            opportunities.mean()
        ));
    }
    let steps = d.steps();
    let rates = steps.iter().filter_map(|s| s.rate);
    let rate = match (rates.clone().min(), rates.max()) {
        (Some(low), Some(high)) if low < high => format!("{low} to {high}"),
        (Some(low), _) => low.to_string(),
        (None, _) => "no limit".to_string(),
    };
    let delays = steps.iter().map(|s| s.delay);
    let delay = match (delays.clone().min(), delays.max()) {
        (Some(low), Some(high)) if low < high => format!("{low} to {high}"),
        (low, _) => low.unwrap_or(Span::ZERO).to_string(),
    };
    let again = schedule.period.map_or(String::new(), |period| format!(", again after each {period}"));
    let overtake = if schedule.reorders { " Packets may overtake others after a step." } else { "" };
    Some(format!(
        "It changes with time: {} steps{again}; rates of {rate}, delays of {delay}. All figures hold for \
         the highest rate and the shortest delay.{overtake}",
        schedule.steps.len()
    ))
}
