//! Rules of links: rates, queues and their management, schedules. Impairments have their rules in their own
//! files.

use super::super::aqm::{Aqm, CoDelSpec, FqCoDelSpec, RedSpec};
use super::super::document::{DocumentStep, below};
use super::super::schedule::{MAX_STEPS, ScheduleSpec};
use super::super::spec::{Direction, DirectionSpec, LinkSpec};
use super::{Checker, steps};
use farpace_path::{FqCoDelConfig, Opportunities};
use farpace_units::{ByteCount, Span};

/// Most bytes of `overhead`.
const MAX_OVERHEAD: ByteCount = ByteCount::new(65_535);

impl Checker<'_> {
    /// The values of a link and of its directions.
    pub(super) fn link(&mut self, i: usize, link: &LinkSpec) {
        // Every field is named, so that a new one cannot be forgotten.
        let LinkSpec {
            name: _,
            between: _,
            rate,
            delay: _,
            queue,
            aqm,
            schedule,
            overhead,
            forward,
            backward,
        } = link;
        self.rate(steps!["links", i, "rate"], *rate);
        self.queue(steps!["links", i, "queue"], *queue);
        if *overhead > MAX_OVERHEAD {
            self.value(steps!["links", i, "overhead"], format!("an overhead of {overhead} is not possible"))
                .hint("it is the part of a frame that is not in the packet: 24 B for Ethernet");
        }
        self.shape(&["links".into(), i.into()], aqm.as_ref(), schedule.as_ref());
        self.managed_queues(i, link);
        self.pacing(i, link);
        for (key, direction) in [("forward", forward), ("backward", backward)] {
            self.direction(&["links".into(), i.into(), key.into()], direction);
        }
    }

    fn direction(&mut self, at: &[DocumentStep], direction: &DirectionSpec) {
        let DirectionSpec { rate, delay: _, queue, aqm, schedule, pacing: _, .. } = direction;
        for impairment in direction.all_impairments() {
            impairment.value.check(&below(at, &[impairment.key]), self);
        }
        self.shape(at, aqm.as_ref(), schedule.as_ref());
        self.rate(below(at, &["rate"]), *rate);
        if let Some(queue) = queue {
            self.queue(below(at, &["queue"]), *queue);
        }
    }

    fn shape(&mut self, at: &[DocumentStep], aqm: Option<&Aqm>, schedule: Option<&ScheduleSpec>) {
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
            if d.aqm.is_some() && d.max_rate().is_none() {
                let at = [DocumentStep::from("links"), DocumentStep::from(i)];
                let at = if own.aqm.is_some() { below(&at, &[key, "aqm"]) } else { below(&at, &["aqm"]) };
                self.key(at, "on an infinitely fast link nothing queues").hint("give the link a `rate`");
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
                self.value(below(&at, &["quantum"]), "with a quantum of 0 B no flow may send");
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
        let ScheduleSpec { period, reorders: _, file: _, mahimahi: _, opportunities, steps } = schedule;
        if !opportunities.is_empty() {
            if !steps.is_empty() || period.is_some() {
                self.value(at.to_vec(), "delivery opportunities have no steps and no period of their own")
                    .hint("leave out `steps`, `file` and `period`: the last opportunity is the period");
            }
            let at_spans = opportunities.iter().map(|ms| Span::from_millis(*ms)).collect();
            if let Err(error) = Opportunities::new(at_spans) {
                self.value(below(at, &["opportunities"]), error.to_string());
            }
            return;
        }
        if steps.is_empty() {
            self.value(at.to_vec(), "a schedule without steps changes nothing")
                .hint("give it `steps`, a `file` that holds them, or a trace (`mahimahi`)");
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
