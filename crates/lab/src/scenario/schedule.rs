//! `schedule` of a link: rate and delay over time, in the scenario or in a CSV file beside it.

use super::spec::{ResolvedDirection, Scenario};
use farpace_path as path;
use farpace_units::{ByteCount, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most steps of one schedule.
pub const MAX_STEPS: usize = 10_000;

/// Steps of rate and delay. A frame has the rate at the beginning of its transmission. Packets keep their
/// order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScheduleSpec {
    /// The steps begin anew after this time; omitted: the last one holds to the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<Span>,
    /// After a step to a shorter delay, packets overtake those in propagation.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reorders: bool,
    /// Name of a CSV file in the scenario's directory that holds the steps: `at,rate,delay`, then a line for
    /// each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Name of a trace of Mahimahi in the scenario's directory, in place of steps and rates: a line for each
    /// delivery opportunity of 1500 B, in milliseconds from the start; the last line is the period.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mahimahi: Option<String>,
    /// The delivery opportunities, in milliseconds from the start, as `mahimahi` has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub opportunities: Vec<u64>,
    /// The steps, in order of time. Before the first one the link's own values hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<ScheduleStep>,
}

/// Rate and delay from a time on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleStep {
    /// From the start of the run, or of the period.
    pub at: Span,
    /// Rate from then on; omitted: as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Delay from then on; omitted: as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
}

/// Most bytes of a trace of Mahimahi.
pub const MAX_TRACE: ByteCount = ByteCount::new(16 << 20);

/// Reads a trace of Mahimahi: a whole number of milliseconds on each line, in order. Lines that are empty or
/// begin with `#` are skipped.
pub(super) fn from_mahimahi(text: &str) -> Result<Vec<u64>, String> {
    let mut all: Vec<u64> = Vec::new();
    for (n, line) in text.lines().enumerate().map(|(n, line)| (n + 1, line.trim())) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if all.len() == path::Opportunities::MAX {
            return Err(format!(
                "line {n}: the limit is {} delivery opportunities",
                path::Opportunities::MAX
            ));
        }
        let at: u64 = line.parse().map_err(|_| {
            format!(
                "line {n}: `{}` is no whole number of milliseconds",
                line.chars().take(20).collect::<String>()
            )
        })?;
        if at > MAX_MS {
            return Err(format!("line {n}: {at} ms is more than the {MAX_MS} ms allowed"));
        }
        if all.last().is_some_and(|last| at < *last) {
            return Err(format!("line {n}: {at} ms is earlier than the line before it"));
        }
        all.push(at);
    }
    match all.last() {
        None => Err("there is nothing in it: expected a line for each delivery opportunity".to_owned()),
        Some(0) => Err("the last delivery opportunity must be later than 0 ms".to_owned()),
        Some(_) => Ok(all),
    }
}

/// The latest delivery opportunity: 30 days.
const MAX_MS: u64 = 30 * 24 * 3_600_000;

const HEADER: &str = "at,rate,delay";

/// Reads steps from CSV: the line `at,rate,delay`, then values with their units. An empty value is as before.
/// Lines that are empty or begin with `#` are skipped.
pub(super) fn from_csv(text: &str) -> Result<Vec<ScheduleStep>, String> {
    let lines = text.lines().enumerate().map(|(n, line)| (n + 1, line.trim()));
    let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    match lines.next() {
        Some((_, header)) if header.split(',').map(str::trim).eq(HEADER.split(',')) => {}
        Some((n, _)) => return Err(format!("line {n}: expected `{HEADER}`")),
        None => return Err(format!("there is nothing in it: expected `{HEADER}`")),
    }
    let mut steps = Vec::new();
    for (n, line) in lines {
        if steps.len() == MAX_STEPS {
            return Err(format!("line {n}: the limit is {MAX_STEPS} steps"));
        }
        let values: Vec<&str> = line.split(',').map(str::trim).collect();
        let [at, rate, delay] = values[..] else {
            return Err(format!("line {n}: {} values, expected 3: `{HEADER}`", values.len()));
        };
        let bad = |error: farpace_units::UnitError| format!("line {n}: {error}");
        let given = |text: &str| !text.is_empty();
        steps.push(ScheduleStep {
            at: at.parse().map_err(bad)?,
            rate: given(rate).then(|| rate.parse()).transpose().map_err(bad)?,
            delay: given(delay).then(|| delay.parse()).transpose().map_err(bad)?,
        });
    }
    Ok(steps)
}

impl Scenario {
    /// All schedules, and the keys that lead to them: the number of the link, and `forward` or `backward` if
    /// it is not that of both directions.
    pub(super) fn schedules(
        &mut self,
    ) -> impl Iterator<Item = (usize, Option<&'static str>, &mut ScheduleSpec)> {
        self.links.iter_mut().enumerate().flat_map(|(i, link)| {
            let [both, forward, backward] =
                [&mut link.schedule, &mut link.forward.schedule, &mut link.backward.schedule];
            [(None, both), (Some("forward"), forward), (Some("backward"), backward)]
                .into_iter()
                .filter_map(move |(direction, schedule)| schedule.as_mut().map(|s| (i, direction, s)))
        })
    }
}

impl ResolvedDirection<'_> {
    /// Every rate and delay of this direction, with omitted values filled in; the first is at 0 s.
    pub fn steps(&self) -> Vec<path::RateStep> {
        let mut last = path::RateStep { at: Span::ZERO, rate: self.rate, delay: self.delay };
        let mut steps = Vec::new();
        for step in self.schedule.into_iter().flat_map(|s| &s.steps) {
            if steps.is_empty() && !step.at.is_zero() {
                steps.push(last);
            }
            last = path::RateStep {
                at: step.at,
                rate: step.rate.or(last.rate),
                delay: step.delay.unwrap_or(last.delay),
            };
            steps.push(last);
        }
        if steps.is_empty() {
            steps.push(last);
        }
        steps
    }
    /// True if it has delivery opportunities in place of a rate.
    pub fn is_recorded(&self) -> bool {
        self.schedule.is_some_and(|s| !s.opportunities.is_empty())
    }
    /// The delivery opportunities of this direction, if it has some.
    ///
    /// # Errors
    /// What a checked scenario does not have: a list out of order.
    pub fn opportunities(&self) -> Result<Option<path::Opportunities>, path::OpportunityError> {
        let at = self.schedule.map_or(&[][..], |s| &s.opportunities);
        if at.is_empty() {
            return Ok(None);
        }
        path::Opportunities::new(at.iter().map(|ms| Span::from_millis(*ms)).collect()).map(Some)
    }
    /// Rate, the highest if it changes, that of delivery opportunities in the mean; none is infinitely fast.
    pub fn max_rate(&self) -> Option<Rate> {
        if let Ok(Some(opportunities)) = self.opportunities() {
            return Some(opportunities.mean());
        }
        match self.schedule {
            None => self.rate,
            Some(_) => self.steps().iter().map(|s| s.rate).try_fold(Rate::default(), |a, b| Some(a.max(b?))),
        }
    }
    /// Propagation time, the shortest if it changes.
    pub fn min_delay(&self) -> Span {
        match self.schedule {
            None => self.delay,
            Some(_) => self.steps().iter().map(|s| s.delay).min().unwrap_or(self.delay),
        }
    }
    /// Rate and delay over time, as an element is made with them. A NIC that paces has the rate itself: then
    /// the link has only the delay.
    ///
    /// # Errors
    /// What a checked scenario does not have: steps out of order.
    pub fn link_schedule(&self) -> Result<path::Schedule, path::ScheduleError> {
        if self.pacing.is_some() {
            return path::Schedule::constant(None, self.delay);
        }
        path::Schedule::new(self.steps(), self.schedule.and_then(|s| s.period))
    }
    /// True if rate or delay change or the queue is managed: then a plain link is not enough.
    pub const fn is_managed(&self) -> bool {
        self.schedule.is_some() || self.aqm.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a recorded link differs from its file, or a wrong file is accepted.
    #[test]
    fn traces_of_mahimahi_are_read_strictly() {
        assert_eq!(from_mahimahi("0\n\n# up\n3\n3\r\n 7 \n"), Ok(vec![0, 3, 3, 7]));
        for (text, part) in [
            ("", "there is nothing in it"),
            ("0\n0\n", "later than 0 ms"),
            ("5\n4\n", "line 2: 4 ms is earlier"),
            ("5\n-4\n", "line 2: `-4` is no whole number"),
            ("1.5\n", "line 1: `1.5` is no whole number"),
            ("99999999999\n", "line 1: 99999999999 ms is more"),
        ] {
            let error = from_mahimahi(text).unwrap_err();
            assert!(error.contains(part), "{text:?}: {error}");
        }
        let long = "1\n".repeat(path::Opportunities::MAX + 1);
        assert!(from_mahimahi(&long).unwrap_err().contains("line 2000001: the limit is 2000000"));
    }

    /// Breaks: steps from a file differ from the file, or a wrong file is accepted.
    #[test]
    fn csv_is_read_strictly() {
        let good = "# a pass\nat, rate, delay\n0 s, 10 Mbit/s, 30 ms\n\n15 s,,25 ms\n30 s,4 Mbit/s,\n";
        let step = |at, mbit: Option<u64>, ms: Option<u64>| ScheduleStep {
            at: Span::from_secs(at),
            rate: mbit.map(Rate::from_mbit),
            delay: ms.map(Span::from_millis),
        };
        let steps = vec![step(0, Some(10), Some(30)), step(15, None, Some(25)), step(30, Some(4), None)];
        assert_eq!(from_csv(good), Ok(steps));
        for (text, part) in [
            ("", "there is nothing in it"),
            ("\n0 s,1 Mbit/s,1 ms\n", "line 2: expected `at,rate,delay`"),
            ("at,rate,delay\n0 s,1 Mbit/s\n", "line 2: 2 values, expected 3"),
            ("at,rate,delay\n0 s,1 Mbps,1 ms\n", "line 2: unknown unit `Mbps`"),
            ("at,rate,delay\n15,1 Mbit/s,1 ms\n", "line 2: `15` has no unit"),
        ] {
            let error = from_csv(text).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        let long = format!("{HEADER}\n{}", "1 s,1 Mbit/s,1 ms\n".repeat(MAX_STEPS + 1));
        assert_eq!(from_csv(&long), Err(format!("line {}: the limit is {MAX_STEPS} steps", MAX_STEPS + 2)));
    }
}
