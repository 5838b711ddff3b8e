//! Words for what makes a line: the discipline of its queue and its schedule.

use super::super::aqm::{Aqm, CoDelSpec, FqCoDelSpec, RedSpec};
use super::super::spec::ResolvedDirection;
use super::{Span, percent};

/// What manages the queue; none for a plain one.
pub(super) fn aqm(d: &ResolvedDirection<'_>) -> Option<String> {
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
                "Its queue is under RED: from a mean of {min} on it {} packets at random, {} of them at {max}, {beyond}.",
                ecn(*marks),
                percent(*max_p)
            ))
        }
        Aqm { codel: Some(CoDelSpec { target, interval, ecn: marks }), .. } => Some(format!(
            "Its queue is under CoDel: it {} when packets have waited for more than {target} throughout {interval}.",
            ecn(*marks)
        )),
        Aqm { fq_codel: Some(FqCoDelSpec { target, interval, ecn: marks, quantum, flows }), .. } => {
            Some(format!(
                "Its queue is under FQ-CoDel: {flows} queues for the flows, {quantum} of each in turn. It {} in those whose \
             packets have waited for more than {target} throughout {interval}.",
                ecn(*marks)
            ))
        }
        Aqm { red: None, codel: None, fq_codel: None } => None,
    }
}

/// The steps of rate and delay; none for a constant line.
pub(super) fn schedule(d: &ResolvedDirection<'_>) -> Option<String> {
    let schedule = d.schedule?;
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
        "It changes with time: {} steps{again}; rates of {rate}, delays of {delay}. All figures hold for the highest \
         rate and the shortest delay.{overtake}",
        schedule.steps.len()
    ))
}
