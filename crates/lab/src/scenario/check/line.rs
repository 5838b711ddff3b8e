//! Rules of what makes a line: `aqm`, `schedule`, and the files beside the scenario that schedules come from.

use super::super::aqm::{Aqm, CoDelSpec, FqCoDelSpec, RedSpec};
use super::super::document::DocumentStep;
use super::super::schedule::{MAX_STEPS, ScheduleSpec, from_csv};
use super::super::spec::{Direction, LinkSpec, Scenario};
use super::super::{Beside, MAX_TEXT};
use super::{CheckFinding, Checker};
use farpace_path::FqCoDelConfig;
use farpace_units::{ByteCount, Span};

/// Puts the steps of all files in the place of the files.
pub(in super::super) fn fetch(scenario: &mut Scenario, beside: Beside<'_>) -> Vec<CheckFinding> {
    let mut found = Vec::new();
    for (i, way, schedule) in scenario.schedules() {
        let Some(file) = schedule.file.clone() else { continue };
        let steps = if !schedule.steps.is_empty() {
            Err("`file` and `steps` are two ways to say the same".to_owned())
        } else if file.contains(['/', '\\']) || file.starts_with('.') {
            Err(format!("`{file}` is not the name of a file in the scenario's folder"))
        } else {
            beside(&file)
                .and_then(|text| match text.len() > MAX_TEXT.as_len() {
                    true => Err("it is longer than 1 MiB".to_owned()),
                    false => from_csv(&text),
                })
                .map_err(|why| format!("{file}: {why}"))
        };
        match steps {
            Ok(steps) => (schedule.file, schedule.steps) = (None, steps),
            Err(message) => {
                let way = way.map(DocumentStep::from);
                let path = [DocumentStep::from("links"), DocumentStep::from(i)].into_iter().chain(way);
                let path = path.chain(["schedule".into(), "file".into()]).collect();
                found.push(CheckFinding { path, at_key: false, message, hint: None });
            }
        }
    }
    found
}

impl Checker<'_> {
    pub(super) fn line(&mut self, at: &[DocumentStep], aqm: Option<&Aqm>, schedule: Option<&ScheduleSpec>) {
        if let Some(aqm) = aqm {
            self.aqm(&below(at, &["aqm"]), aqm);
        }
        if let Some(schedule) = schedule {
            self.schedule(&below(at, &["schedule"]), schedule);
        }
    }

    /// A queue is managed only where there is one.
    pub(super) fn managed_queues(&mut self, i: usize, link: &LinkSpec) {
        for (key, way, own) in [
            ("forward", Direction::Forward, &link.forward),
            ("backward", Direction::Backward, &link.backward),
        ] {
            let d = link.direction(way);
            if d.aqm.is_some() && d.fastest().is_none() {
                let at = [DocumentStep::from("links"), DocumentStep::from(i)];
                let at = if own.aqm.is_some() { below(&at, &[key, "aqm"]) } else { below(&at, &["aqm"]) };
                self.key(at, "on an infinitely fast line nothing queues").hint("give the link a `rate`");
                return;
            }
        }
    }

    fn aqm(&mut self, at: &[DocumentStep], aqm: &Aqm) {
        // Every field is named, so that a new one cannot be forgotten.
        let Aqm { red, codel, fq_codel } = aqm;
        match [red.is_some(), codel.is_some(), fq_codel.is_some()].iter().filter(|given| **given).count() {
            0 => {
                self.value(at.to_vec(), "this manages nothing")
                    .hint("name one: red, codel or fq_codel, like { codel = {} }");
            }
            1 => {}
            _ => {
                self.value(at.to_vec(), "a queue has one discipline")
                    .hint("leave one of red, codel and fq_codel");
            }
        }
        if let Some(red) = red {
            self.red(&below(at, &["red"]), red);
        }
        if let Some(CoDelSpec { target, interval, ecn: _ }) = codel {
            self.times(&below(at, &["codel"]), *target, *interval);
        }
        if let Some(FqCoDelSpec { target, interval, ecn: _, quantum, flows }) = fq_codel {
            let at = below(at, &["fq_codel"]);
            self.times(&at, *target, *interval);
            if *quantum == ByteCount::ZERO {
                self.value(below(&at, &["quantum"]), "with a quantum of 0 B nobody's turn ever comes");
            }
            if !(1..=FqCoDelConfig::MAX_FLOWS).contains(flows) {
                self.value(below(&at, &["flows"]), format!("{flows} queues are not possible"))
                    .hint(format!("it must be from 1 to {}", FqCoDelConfig::MAX_FLOWS));
            }
        }
    }

    fn red(&mut self, at: &[DocumentStep], red: &RedSpec) {
        let RedSpec { min, max, max_p, weight, gentle: _, ecn: _ } = red;
        if min.is_zero() {
            self.value(below(at, &["min"]), "a lower threshold of 0 packets is not possible");
        } else if max <= min {
            self.value(
                below(at, &["max"]),
                format!("the upper threshold of {max} is not above the lower one of {min}"),
            )
            .hint("three times `min` is usual");
        }
        for (key, share) in [("max_p", *max_p), ("weight", *weight)] {
            if !(share > 0.0 && share <= 1.0) {
                self.value(below(at, &[key]), format!("{share} is not possible"))
                    .hint("it must be above 0 and at most 1");
            }
        }
    }

    fn times(&mut self, at: &[DocumentStep], target: Span, interval: Span) {
        if target.is_zero() {
            self.value(below(at, &["target"]), "a target of 0 s is never met").hint("5 ms is usual");
        } else if target >= interval {
            self.value(
                below(at, &["interval"]),
                format!("an interval of {interval} is not above the target of {target}"),
            )
            .hint("a round trip is usual, 100 ms in the Internet, and a twentieth of it for the target");
        }
    }

    fn schedule(&mut self, at: &[DocumentStep], schedule: &ScheduleSpec) {
        let ScheduleSpec { period, reorders: _, file: _, steps } = schedule;
        if steps.is_empty() {
            self.value(at.to_vec(), "a schedule without steps changes nothing")
                .hint("give it `steps`, or a `file` that holds them");
        }
        if period.is_some_and(Span::is_zero) {
            self.value(below(at, &["period"]), "a period of 0 s never ends")
                .hint("leave it out for steps that do not repeat");
            return;
        }
        if steps.len() > MAX_STEPS {
            let n = steps.len();
            self.value(below(at, &["steps"]), format!("{n} steps; the limit is {MAX_STEPS}"));
            return;
        }
        let mut last: Option<Span> = None;
        for (n, step) in steps.iter().enumerate() {
            let step_at = |key: &str| {
                [below(at, &["steps"]), vec![DocumentStep::from(n), DocumentStep::from(key)]].concat()
            };
            if last.is_some_and(|last| step.at <= last) {
                self.value(
                    step_at("at"),
                    format!("the step at {} is not later than the one before it", step.at),
                )
                .hint("write steps in order of time");
            } else if let Some(period) = period.filter(|period| step.at >= *period) {
                self.value(
                    step_at("at"),
                    format!("the step at {} is not within the period of {period}", step.at),
                );
            }
            last = Some(step.at);
            if step.rate.is_none() && step.delay.is_none() {
                self.value(step_at("at"), "this step changes nothing")
                    .hint("give it a `rate`, a `delay` or both");
            }
            if step.rate.is_some_and(|rate| rate.bits_per_sec() == 0) {
                self.value(step_at("rate"), "a rate of 0 lets nothing pass")
                    .hint("use `outages` for a broken link");
            }
        }
    }
}

fn below(at: &[DocumentStep], keys: &[&str]) -> Vec<DocumentStep> {
    at.iter().cloned().chain(keys.iter().map(|key| DocumentStep::from(*key))).collect()
}
