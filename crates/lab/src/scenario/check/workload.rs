//! Rules of workloads: flows that are drawn.

use super::super::document::DocumentStep;
use super::super::spec::FlowSpec;
use super::super::workload::{
    CdfPoint, MAX_DRAWN_FLOWS, MAX_WORKLOAD_POINTS, MixSpec, SizesSpec, StartsSpec,
};
use super::{Checker, steps};
use farpace_units::ByteCount;

/// How far from 1 the sum of shares may be.
const ROUNDING: f64 = 1e-6;

impl Checker<'_> {
    /// True if there are too many flows, which is a finding then.
    pub(super) fn too_many_flows(&mut self) -> bool {
        let count: usize = self.scenario().flows.iter().map(FlowSpec::flows).fold(0, usize::saturating_add);
        if count > MAX_DRAWN_FLOWS {
            self.key(steps!["flows"], format!("{count} flows, with `count`; the limit is {MAX_DRAWN_FLOWS}"));
        }
        count > MAX_DRAWN_FLOWS
    }

    /// The keys of flow `i` that make many of it.
    pub(super) fn workload(&mut self, i: usize, flow: &FlowSpec) {
        if flow.count == Some(0) {
            self.value(steps!["flows", i, "count"], "there must be 1 flow at least");
        }
        let flows = &self.scenario().flows;
        if flow.is_workload() {
            if let Some(port) = flows.iter().position(|flow| flow.port.is_some()) {
                self.key(
                    steps!["flows", port, "port"],
                    "where flows are drawn, they choose their ports themselves",
                )
                .hint("leave `port` out");
            }
            let drawn = |other: &&FlowSpec| {
                let number = other.name.strip_prefix(&flow.name).and_then(|rest| rest.strip_prefix('-'));
                number.and_then(|n| n.parse::<usize>().ok()).is_some_and(|n| (1..=flow.flows()).contains(&n))
            };
            if let Some(other) = flows.iter().find(drawn) {
                let message = format!("one of its flows would have the name of flow `{}`", other.name);
                self.value(steps!["flows", i, "name"], message);
            }
        }
        match &flow.sizes {
            Some(sizes) => self.sizes(i, flow, sizes),
            None if flow.size.is_zero() => {
                self.value(steps!["flows", i, "size"], "a flow of 0 B sends nothing")
                    .hint("give it a `size`, like \"1 MB\", or `sizes` to draw it from");
            }
            None => {}
        }
        if let Some(starts) = &flow.starts {
            self.starts(i, flow, starts);
        }
        self.mix(i, &flow.mix);
    }

    fn sizes(&mut self, i: usize, flow: &FlowSpec, sizes: &SizesSpec) {
        let path = || steps!["flows", i, "sizes"];
        if !flow.size.is_zero() {
            self.key(path(), "`size` and `sizes` are two ways to say the same").hint("leave one of them out");
        }
        if sizes.kinds() != 1 {
            self.key(path(), format!("{} distributions, expected one", sizes.kinds()))
                .hint("one of `exponential`, `pareto`, `log_normal`, `named`, `cdf` and `file`");
        }
        if sizes.exponential.is_some_and(ByteCount::is_zero) {
            self.value(steps!["flows", i, "sizes", "exponential"], "a mean of 0 B sends nothing");
        }
        if let Some(pareto) = sizes.pareto
            && !(pareto.shape > 1.0 && pareto.shape <= 100.0)
        {
            self.value(
                steps!["flows", i, "sizes", "pareto", "shape"],
                format!("{} has no mean", pareto.shape),
            )
            .hint("it must be above 1, and at most 100");
        }
        if let Some(normal) = sizes.log_normal
            && !(normal.sigma >= 0.0 && normal.sigma <= 10.0)
        {
            self.value(
                steps!["flows", i, "sizes", "log_normal", "sigma"],
                format!("{} is not a standard deviation", normal.sigma),
            )
            .hint("it must be from 0 to 10");
        }
        if !sizes.cdf.is_empty()
            && let Err(why) = is_cdf(&sizes.cdf)
        {
            self.value(steps!["flows", i, "sizes", "cdf"], why);
        }
        if let (Some(least), Some(most)) = (sizes.at_least, sizes.at_most)
            && least > most
        {
            self.value(
                steps!["flows", i, "sizes", "at_least"],
                format!("{least} is above `at_most`, {most}"),
            );
        }
    }

    fn starts(&mut self, i: usize, flow: &FlowSpec, starts: &StartsSpec) {
        let path = || steps!["flows", i, "starts"];
        if starts.kinds() != 1 {
            self.key(path(), format!("{} ways to start, expected one", starts.kinds()))
                .hint("one of `every`, `poisson`, `within`, `at` with a time at least, and `file`");
        }
        if starts.at.len() > MAX_WORKLOAD_POINTS {
            self.value(path(), format!("{} times; the limit is {MAX_WORKLOAD_POINTS}", starts.at.len()));
        }
        if flow.flows() > starts.at.len() && !starts.at.is_empty() {
            let (count, times) = (flow.flows(), starts.at.len());
            self.value(steps!["flows", i, "count"], format!("{count} flows, and {times} times to start"));
        }
    }

    fn mix(&mut self, i: usize, mix: &[MixSpec]) {
        if mix.is_empty() {
            return;
        }
        let sum: f64 = mix.iter().map(|part| part.share).sum();
        if mix.iter().any(|part| !(part.share > 0.0 && part.share <= 1.0)) || (sum - 1.0).abs() > ROUNDING {
            self.key(steps!["flows", i, "mix"], format!("the shares are {sum} together"))
                .hint("each is above 0, and together they are 1: 70 % is 0.7");
        }
        for (n, part) in mix.iter().enumerate() {
            for (side, settings) in [("sender", Some(&part.sender)), ("receiver", part.receiver.as_ref())] {
                if let Some(Err(error)) = settings.map(|settings| settings.resolve()) {
                    self.key(steps!["flows", i, "mix", n, side], error.to_string());
                }
            }
        }
    }
}

fn is_cdf(points: &[CdfPoint]) -> Result<(), String> {
    if points.len() > MAX_WORKLOAD_POINTS {
        return Err(format!("{} points; the limit is {MAX_WORKLOAD_POINTS}", points.len()));
    }
    let grows = points.windows(2).all(|two| two[0].size <= two[1].size && two[0].share <= two[1].share);
    if !grows || points.iter().any(|point| !(0.0..=1.0).contains(&point.share)) {
        return Err("sizes and shares must not fall, and shares are from 0 to 1".into());
    }
    match points.last() {
        Some(last) if (last.share - 1.0).abs() <= ROUNDING => Ok(()),
        _ => Err("the share of the last point must be 1".into()),
    }
}
