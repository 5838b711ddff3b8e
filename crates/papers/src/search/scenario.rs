//! A path of the space as a scenario.

use super::space::{Gene, PathPoint};
use crate::bulk::endless;
use crate::contender::Contender;
use crate::experiment::MeasureError;
use farpace_lab::scenario::Scenario;
use farpace_tcp::config::Congestion;
use farpace_units::{Rate, Span};
use std::fmt::Write as _;

/// Bytes of a full packet on the line.
const FULL: f64 = 1538.0;

/// Who sends over a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathSenders {
    /// The first flow.
    pub first: Congestion,
    /// Whose kind a neighbour called `itself` has.
    pub itself: Congestion,
}

impl PathPoint {
    /// How long a run takes: a hundred round trips, from 20 s to a minute; a minute beside a neighbour.
    pub fn duration(&self) -> Span {
        let rtts = self.of(Gene::Rtt) / 1e3 * 100.0;
        let least = if self.get(Gene::Neighbour).is_some() { 60.0 } else { 20.0 };
        Span::from_secs(rtts.clamp(least, 60.0) as u64)
    }

    /// When the only change comes, for [`Objective::Recovery`](super::Objective::Recovery).
    pub(super) fn change(&self) -> Span {
        self.duration() / 2
    }

    /// The scenario as text. `once`: rate and delay change once, and the path is down once, in the middle of
    /// the run.
    pub fn scenario_text(&self, senders: PathSenders, once: bool, title: &str, description: &str) -> String {
        let text = Emitter { point: self, once };
        text.scenario(senders, title, description)
    }

    /// The scenario.
    ///
    /// # Errors
    /// What the lab refuses: a defect of the space.
    pub fn scenario(&self, senders: PathSenders, once: bool) -> Result<Scenario, MeasureError> {
        let text = self.scenario_text(senders, once, "A path of a search", "");
        Scenario::parse(&text, "search.toml")
            .map_err(|error| MeasureError::Invalid(format!("path `{self}`: {error}")))
    }
}

struct Emitter<'a> {
    point: &'a PathPoint,
    once: bool,
}

impl Emitter<'_> {
    fn scenario(&self, senders: PathSenders, title: &str, description: &str) -> String {
        let p = self.point;
        let duration = p.duration();
        let mut text = format!("title = {title:?}\n");
        if !description.is_empty() {
            let _ = writeln!(text, "description = {description:?}");
        }
        let _ = writeln!(text, "duration = \"{duration}\"\ntrace = {{ bin = \"100 ms\" }}\n");
        text.push_str("[hosts.a]\n[hosts.b]\n[hosts.c]\n[hosts.d]\n[routers.west]\n[routers.east]\n\n");
        for (name, ends) in [("access", ["a", "west"]), ("second-access", ["c", "west"])] {
            let [from, to] = ends;
            let _ = writeln!(
                text,
                "[[links]]\nname = \"{name}\"\nbetween = [\"{from}\", \"{to}\"]\nrate = \"1 \
                 Gbit/s\"\nqueue = \"100000 packets\"\n"
            );
        }
        text.push_str(&self.bottleneck());
        text.push_str("[[links]]\nname = \"near\"\nbetween = [\"east\", \"b\"]\n\n");
        let farther = p.of(Gene::Rtt) * (p.of(Gene::NeighbourRtt) - 1.0) / 2.0;
        let _ = writeln!(
            text,
            "[[links]]\nname = \"second-near\"\nbetween = [\"east\", \"d\"]\ndelay = \"{}\"\n",
            ms(farther)
        );
        text.push_str(&self.flow("first", ["a", "b"], senders.first, Span::ZERO));
        let start = Span::from_micros((p.of(Gene::NeighbourStart) * 1e6) as u64);
        if let Some(word) = p.word(Gene::Neighbour) {
            let control = match word {
                "cubic" => Congestion::Cubic,
                "reno" => Congestion::Reno,
                "bbr3" => Congestion::Bbr3,
                "vegas" => Congestion::Vegas,
                _ => senders.itself,
            };
            text.push_str(&self.flow("second", ["c", "d"], control, start));
        }
        if let Some(load) = p.get(Gene::Load) {
            let _ = writeln!(
                text,
                "[[datagrams]]\nname = \"load\"\nfrom = \"c\"\nto = \"d\"\nstart = \"{start}\"\nrate = \
                 \"{}\"\n",
                self.rate(load)
            );
        }
        text
    }

    /// This part of the rate.
    fn rate(&self, part: f64) -> String {
        format!("{} kbit/s", (self.point.of(Gene::Rate) * part * 1e3).round().max(1.0))
    }

    fn bottleneck(&self) -> String {
        let p = self.point;
        let rtt = p.of(Gene::Rtt);
        let faster = if p.get(Gene::Policer).is_some() { 4.0 } else { 1.0 };
        let queue = (p.of(Gene::Rate) * 1e6 / 8.0 * rtt / 1e3 * p.of(Gene::Queue)).max(10.0 * FULL);
        let mut text = format!(
            "[[links]]\nname = \"bottleneck\"\nbetween = [\"west\", \"east\"]\nrate = \"{}\"\ndelay = \
             \"{}\"\nqueue = \"{queue:.0} B\"\n",
            self.rate(faster),
            ms(rtt / 2.0)
        );
        let _ = match p.word(Gene::Discipline) {
            Some(word) => {
                writeln!(text, "forward = {{ aqm = {{ {word} = {{}} }}, {} }}", self.forward(faster))
            }
            None => writeln!(text, "forward = {{ {} }}", self.forward(faster)),
        };
        let _ = writeln!(text, "backward = {{ {} }}\n", self.backward());
        text
    }

    fn forward(&self, faster: f64) -> String {
        let p = self.point;
        let rtt = p.of(Gene::Rtt);
        let mut keys = Vec::new();
        if let Some(percent) = p.get(Gene::Loss) {
            keys.push(format!("loss = {}", exact(percent / 100.0)));
        }
        if let Some(percent) = p.get(Gene::BurstLoss) {
            // Bursts of ten packets: end = 0.1, and begin so that the mean is right.
            let part = percent / 100.0;
            keys.push(format!("burst_loss = {{ begin = {}, end = 0.1 }}", exact(0.1 * part / (1.0 - part))));
        }
        if let Some(rate) = p.get(Gene::BitErrors) {
            keys.push(format!("bit_errors = {rate:e}"));
        }
        if let Some(part) = p.get(Gene::Jitter) {
            keys.push(format!("jitter = \"{}\"", ms(rtt * part)));
        }
        if let Some(percent) = p.get(Gene::Reorder) {
            let chance = exact(percent / 100.0);
            keys.push(format!("reorder = {{ chance = {chance}, extra = \"{}\" }}", ms(rtt / 4.0)));
        }
        if let Some(burst) = p.get(Gene::Policer) {
            let bytes = (p.of(Gene::Rate) * 1e6 / 8.0 * burst / 1e3).max(3.0 * FULL);
            keys.push(format!("policer = {{ rate = \"{}\", burst = \"{bytes:.0} B\" }}", self.rate(1.0)));
        }
        if let Some(lasts) = p.get(Gene::Outage) {
            let whole = p.duration().as_secs_f64() * 1e3;
            let at = |part: f64| format!("{{ at = \"{}\", lasts = \"{}\" }}", ms(whole * part), ms(lasts));
            let all = if self.once { at(0.5) } else { format!("{}, {}", at(0.3), at(0.6)) };
            keys.push(format!("outages = [{all}]"));
        }
        let (rate, delay) = (p.get(Gene::RateStep), p.get(Gene::DelayStep));
        if rate.is_some() || delay.is_some() {
            let step = if self.once { p.change().as_secs_f64() * 1e3 } else { p.of(Gene::StepTime) * 1e3 };
            let values = |at: f64, rate: f64, delay: f64| {
                format!(
                    "{{ at = \"{}\", rate = \"{}\", delay = \"{}\" }}",
                    ms(at),
                    self.rate(rate),
                    ms(delay)
                )
            };
            let first = values(0.0, faster, rtt / 2.0);
            let later = rtt / 2.0 + rtt * delay.unwrap_or_default();
            let second = values(step, faster * rate.unwrap_or(1.0), later);
            let period = if self.once { String::new() } else { format!("period = \"{}\", ", ms(step * 2.0)) };
            keys.push(format!("schedule = {{ {period}steps = [{first}, {second}] }}"));
        }
        keys.join(", ")
    }

    fn backward(&self) -> String {
        let p = self.point;
        let mut keys = Vec::new();
        match p.get(Gene::Back) {
            Some(slower) => {
                keys.push(format!("rate = \"{}\"", self.rate(1.0 / slower)));
                keys.push(format!("queue = \"{} packets\"", p.of(Gene::BackQueue)));
            }
            None => keys.push("queue = \"10000 packets\"".to_owned()),
        }
        if let Some(every) = p.get(Gene::Thinning) {
            keys.push(format!("ack_thinning = {{ every = {every} }}"));
        }
        keys.join(", ")
    }

    fn flow(&self, name: &str, [from, to]: [&str; 2], control: Congestion, start: Span) -> String {
        let p = self.point;
        let rate = Rate::from_bits_per_sec((p.of(Gene::Rate) * 1e6) as u64);
        let size = endless(Some(rate), p.duration());
        let contender = Contender::modern(control);
        let sender: Vec<String> = contender
            .overrides(name)
            .map(|(key, value)| format!("{} = {value:?}", key.rsplit('.').next().unwrap_or_default()))
            .collect();
        let mut receiver = "profile = \"modern\"".to_owned();
        if p.get(Gene::Stretch).is_some() || p.get(Gene::AckDelay).is_some() {
            let (every, delay) = (p.get(Gene::Stretch).unwrap_or(2.0), p.get(Gene::AckDelay).unwrap_or(40.0));
            let _ = write!(
                receiver,
                ", delayed_ack = \"stretch\", ack_every = \"{every} packets\", ack_delay = \"{}\"",
                ms(delay)
            );
        }
        format!(
            "[[flows]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\nstart = \"{start}\"\nsize = \
             \"{} B\"\nsender = {{ {} }}\n\
             receiver = {{ {receiver} }}\n\n",
            size.get(),
            sender.join(", ")
        )
    }
}

/// Milliseconds in whole microseconds.
fn ms(value: f64) -> String {
    let us = (value * 1e3).round().max(0.0) as u64;
    if us.is_multiple_of(1_000) { format!("{} ms", us / 1_000) } else { format!("{us} us") }
}

/// A probability without the dust of binary fractions.
fn exact(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::space::{DIMENSIONS, SearchSpace};
    use super::*;
    use farpace_units::RandomStream;

    /// Breaks: a point of the space cannot be run, at its bounds or anywhere inside.
    #[test]
    fn every_point_is_a_scenario() {
        let senders = PathSenders { first: Congestion::Farpace, itself: Congestion::Farpace };
        let mut random = RandomStream::new(7, "test");
        let space = SearchSpace::default();
        let drawn = (0..300).map(|_| space.random(&mut random)).collect::<Vec<_>>();
        let bounds = DIMENSIONS
            .iter()
            .flat_map(|d| [d.bounds.0, d.bounds.1].map(|value| PathPoint::default().with(d.gene, value)));
        let all = DIMENSIONS.iter().fold(PathPoint::default(), |p, d| p.with(d.gene, d.bounds.1));
        for point in drawn.into_iter().chain(bounds).chain([all]) {
            for once in [false, true] {
                let scenario = point.scenario(senders, once).unwrap();
                assert_eq!(scenario.flows.len(), 1 + usize::from(point.get(Gene::Neighbour).is_some()));
            }
        }
    }
}
