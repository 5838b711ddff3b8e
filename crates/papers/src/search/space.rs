//! The space of paths: its dimensions with their bounds, and a point in it.

use crate::experiment::MeasureError;
use farpace_units::{RandomStream, number};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use toml::Spanned;

/// A dimension of the space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gene {
    /// Rate of the bottleneck.
    Rate,
    /// Round trip of the empty path.
    Rtt,
    /// Length of the bottleneck's queue.
    Queue,
    /// Its discipline; off: first in, first out.
    Discipline,
    /// Random loss of data.
    Loss,
    /// Loss of data in bursts of ten packets.
    BurstLoss,
    /// Bit errors in the direction of data.
    BitErrors,
    /// Random delay of data, in order.
    Jitter,
    /// Data that is late by a quarter of the round trip.
    Reorder,
    /// The rate alternates between itself and this part of it.
    RateStep,
    /// The delay alternates between itself and this part of the round trip more.
    DelayStep,
    /// How long each step of rate or delay lasts.
    StepTime,
    /// The path is down for so long, twice.
    Outage,
    /// A policer drops what exceeds the rate after a burst; the link is four times as fast.
    Policer,
    /// The way back is so many times slower.
    Back,
    /// Queue of a slower way back.
    BackQueue,
    /// Of so many ACKs one goes on.
    Thinning,
    /// The receiver acknowledges every so many-th segment.
    Stretch,
    /// The receiver holds an acknowledgment back for at most so long.
    AckDelay,
    /// Datagrams at a constant rate cross the bottleneck.
    Load,
    /// Who else sends over the bottleneck.
    Neighbour,
    /// When the neighbour or the datagrams begin.
    NeighbourStart,
    /// The neighbour's round trip, in those of the path.
    NeighbourRtt,
}

/// What is known of a dimension.
#[derive(Clone, Copy, Debug)]
pub struct Dimension {
    /// Which one.
    pub gene: Gene,
    /// The key in files, with its unit.
    pub key: &'static str,
    /// The bounds, without a file.
    pub bounds: (f64, f64),
    /// Values are spread over the logarithm.
    pub logarithmic: bool,
    /// What holds where nothing is said. None: an impairment, which may be off.
    pub usual: Option<f64>,
    /// What whole numbers mean, from 1.
    pub words: &'static [&'static str],
}

/// The words of [`Gene::Discipline`].
const DISCIPLINES: &[&str] = &["codel", "fq_codel", "red"];
/// The words of [`Gene::Neighbour`].
const NEIGHBOURS: &[&str] = &["itself", "cubic", "reno", "bbr3", "vegas"];

/// A number that is always there.
const fn base(gene: Gene, key: &'static str, bounds: (f64, f64), usual: f64) -> Dimension {
    Dimension { gene, key, bounds, logarithmic: true, usual: Some(usual), words: &[] }
}
/// An impairment.
const fn impairment(gene: Gene, key: &'static str, bounds: (f64, f64)) -> Dimension {
    Dimension { gene, key, bounds, logarithmic: true, usual: None, words: &[] }
}

/// All dimensions, in the order of [`Gene`].
pub const DIMENSIONS: [Dimension; 23] = [
    base(Gene::Rate, "rate_mbit_s", (1.0, 200.0), 20.0),
    base(Gene::Rtt, "rtt_ms", (5.0, 600.0), 50.0),
    base(Gene::Queue, "queue_bdp", (0.1, 4.0), 1.0),
    Dimension {
        words: DISCIPLINES,
        logarithmic: false,
        ..impairment(Gene::Discipline, "discipline", (1.0, 3.0))
    },
    impairment(Gene::Loss, "loss_percent", (0.01, 3.0)),
    impairment(Gene::BurstLoss, "burst_loss_percent", (0.01, 3.0)),
    impairment(Gene::BitErrors, "bit_errors", (1e-9, 1e-6)),
    impairment(Gene::Jitter, "jitter_of_rtt", (0.02, 0.5)),
    impairment(Gene::Reorder, "reorder_percent", (0.1, 10.0)),
    impairment(Gene::RateStep, "rate_step", (0.1, 0.9)),
    impairment(Gene::DelayStep, "delay_step_of_rtt", (0.05, 1.0)),
    base(Gene::StepTime, "step_s", (0.5, 20.0), 5.0),
    impairment(Gene::Outage, "outage_ms", (50.0, 3000.0)),
    impairment(Gene::Policer, "policer_ms", (2.0, 500.0)),
    impairment(Gene::Back, "back_slower", (2.0, 200.0)),
    base(Gene::BackQueue, "back_queue_packets", (5.0, 1000.0), 100.0),
    impairment(Gene::Thinning, "ack_thinning", (2.0, 16.0)),
    impairment(Gene::Stretch, "ack_every", (3.0, 16.0)),
    impairment(Gene::AckDelay, "ack_delay_ms", (41.0, 200.0)),
    impairment(Gene::Load, "load", (0.05, 0.5)),
    Dimension {
        words: NEIGHBOURS,
        logarithmic: false,
        ..impairment(Gene::Neighbour, "neighbour", (1.0, 5.0))
    },
    base(Gene::NeighbourStart, "neighbour_start_s", (0.1, 10.0), 1.0),
    base(Gene::NeighbourRtt, "neighbour_rtt", (1.0, 4.0), 1.0),
];

impl Dimension {
    /// From 0 to 1 within `bounds`.
    fn place(&self, bounds: (f64, f64), value: f64) -> f64 {
        let (from, to) = self.scaled(bounds);
        let value = if self.logarithmic { libm::log(value) } else { value };
        if to > from { ((value - from) / (to - from)).clamp(0.0, 1.0) } else { 0.0 }
    }
    fn value(&self, bounds: (f64, f64), place: f64) -> f64 {
        let (from, to) = self.scaled(bounds);
        let value = from + (to - from) * place.clamp(0.0, 1.0);
        let value = if self.logarithmic { libm::exp(value) } else { value };
        self.rounded(value, 3).clamp(bounds.0, bounds.1)
    }
    fn scaled(&self, (from, to): (f64, f64)) -> (f64, f64) {
        if self.logarithmic { (libm::log(from), libm::log(to)) } else { (from, to) }
    }
    /// To so many significant digits; words and counts are whole.
    pub fn rounded(&self, value: f64, digits: i32) -> f64 {
        let is_count = matches!(self.gene, Gene::BackQueue | Gene::Thinning | Gene::Stretch);
        if !self.words.is_empty() || is_count {
            return value.round();
        }
        if value == 0.0 || !value.is_finite() {
            return value;
        }
        // By decimal digits, so that the same number is printed.
        let text = format!("{value:.*e}", (digits - 1).max(0) as usize);
        text.parse().unwrap_or(value)
    }
}

/// A point of the space: a path. Off is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathPoint {
    values: [Option<f64>; DIMENSIONS.len()],
}

impl Default for PathPoint {
    /// The usual path, without impairments.
    fn default() -> Self {
        PathPoint { values: DIMENSIONS.map(|d| d.usual) }
    }
}

impl PathPoint {
    /// The value in a dimension, if it is not off.
    pub fn get(&self, gene: Gene) -> Option<f64> {
        self.values.get(gene as usize).copied().flatten()
    }
    /// The value of a dimension that is always there; 0 for an impairment that is off.
    pub fn of(&self, gene: Gene) -> f64 {
        self.get(gene).unwrap_or_default()
    }
    /// The same with another value.
    #[must_use]
    pub fn with(mut self, gene: Gene, value: impl Into<Option<f64>>) -> Self {
        if let Some(place) = self.values.get_mut(gene as usize) {
            *place = value.into();
        }
        self
    }
    /// The word in a dimension that has words.
    pub fn word(&self, gene: Gene) -> Option<&'static str> {
        let value = self.get(gene)?;
        DIMENSIONS.get(gene as usize)?.words.get((value as usize).checked_sub(1)?).copied()
    }
    /// The impairments that are not off.
    pub fn impairments(&self) -> impl Iterator<Item = Gene> + '_ {
        DIMENSIONS.iter().filter(|d| d.usual.is_none() && self.get(d.gene).is_some()).map(|d| d.gene)
    }
    /// Dimensions with an effect: those that are always there and have no impairment to belong to,
    /// impairments, and what belongs to them.
    pub fn effective(&self) -> impl Iterator<Item = &'static Dimension> + '_ {
        DIMENSIONS.iter().filter(|d| {
            let on = |gene| self.get(gene).is_some();
            match d.gene {
                Gene::StepTime => on(Gene::RateStep) || on(Gene::DelayStep),
                Gene::BackQueue => on(Gene::Back),
                Gene::NeighbourStart => on(Gene::Neighbour) || on(Gene::Load),
                Gene::NeighbourRtt => on(Gene::Neighbour),
                gene => on(gene),
            }
        })
    }
    /// All that has an effect as `key=value`. `once`: as in
    /// [`scenario_text`](PathPoint::scenario_text), where the length of steps has none.
    pub fn keys(&self, once: bool) -> String {
        let effective = self.effective().filter(|d| !(once && d.gene == Gene::StepTime));
        let text = effective.map(|d| match self.word(d.gene) {
            Some(word) => format!("{}={word}", d.key),
            None => format!("{}={}", d.key, short(self.of(d.gene))),
        });
        text.collect::<Vec<_>>().join(" ")
    }
    /// Points that differ only in numbers have the same kind.
    pub fn kind(&self) -> String {
        let names = self.impairments().map(|gene| match self.word(gene) {
            Some(word) => word.to_owned(),
            None => format!("{gene:?}"),
        });
        names.collect::<Vec<_>>().join("+")
    }
}

impl fmt::Display for PathPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.keys(false))
    }
}

impl FromStr for PathPoint {
    type Err = String;

    /// The form of [`Display`](fmt::Display): `key=value` with spaces between. What is not named is as usual.
    fn from_str(text: &str) -> Result<Self, String> {
        text.split_whitespace().try_fold(PathPoint::default(), |point, word| {
            let (key, value) = word.split_once('=').ok_or_else(|| format!("`{word}` is no key=value"))?;
            let d = DIMENSIONS.iter().find(|d| d.key == key);
            let d = d.ok_or_else(|| format!("there is no dimension `{key}`"))?;
            let number = match d.words.iter().position(|known| *known == value) {
                Some(place) => (place + 1) as f64,
                None => value.parse().map_err(|_| format!("`{key}`: `{value}` is no value of it"))?,
            };
            if !(d.bounds.0..=d.bounds.1).contains(&number) {
                return Err(format!("`{key}` is from {} to {}", short(d.bounds.0), short(d.bounds.1)));
            }
            Ok(point.with(d.gene, number))
        })
    }
}

/// A number with an exponent where it is small.
fn short(value: f64) -> String {
    if value != 0.0 && value.abs() < 1e-3 { format!("{value:e}") } else { number(value) }
}

/// The bounds of a search: each dimension has two, and impairments may be left out.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchSpace {
    /// None: always off.
    bounds: [Option<(f64, f64)>; DIMENSIONS.len()],
    /// Words that may be taken.
    words: BTreeMap<Gene, Vec<f64>>,
}

impl Default for SearchSpace {
    fn default() -> Self {
        let words = DIMENSIONS.iter().filter(|d| !d.words.is_empty());
        SearchSpace {
            bounds: DIMENSIONS.map(|d| Some(d.bounds)),
            words: words.map(|d| (d.gene, (1..=d.words.len()).map(|n| n as f64).collect())).collect(),
        }
    }
}

/// A value of a file that narrows the space.
#[derive(Debug)]
enum SpaceValue {
    Off(bool),
    Bounds([f64; 2]),
    Words(Vec<String>),
}

impl SpaceValue {
    /// None: it is something else.
    fn of(value: &toml::Value) -> Option<SpaceValue> {
        let number = |v: &toml::Value| v.as_float().or_else(|| v.as_integer().map(|n| n as f64));
        if let Some(is_on) = value.as_bool() {
            return Some(SpaceValue::Off(is_on));
        }
        let all = value.as_array()?;
        let words: Option<Vec<String>> = all.iter().map(|v| v.as_str().map(str::to_owned)).collect();
        match (words, all.as_slice()) {
            (Some(words), _) => Some(SpaceValue::Words(words)),
            (None, [from, to]) => Some(SpaceValue::Bounds([number(from)?, number(to)?])),
            (None, _) => None,
        }
    }
}

/// What a dimension takes in a file.
fn takes(d: &Dimension) -> String {
    match (d.words.is_empty(), d.usual) {
        (false, _) => {
            format!("it takes words, as in `{} = {:?}`, or false", d.key, d.words.get(..2).unwrap_or(d.words))
        }
        (true, Some(_)) => {
            format!(
                "it takes two numbers, as in `{} = [{}, {}]`",
                d.key,
                short(d.bounds.0),
                short(d.bounds.1)
            )
        }
        (true, None) => format!(
            "it takes two numbers, as in `{} = [{}, {}]`, or false",
            d.key,
            short(d.bounds.0),
            short(d.bounds.1)
        ),
    }
}

/// The longest file that narrows a space.
const MAX_FILE: usize = 64 * 1024;

impl SearchSpace {
    /// The default space, narrowed by a TOML file: `key = [least, most]`, `key = ["word", ...]`, or `key =
    /// false` for an impairment that is always off.
    ///
    /// # Errors
    /// A file that is too long or no TOML, a key that no dimension has, or bounds outside of those of the
    /// default space.
    pub fn parse(text: &str) -> Result<Self, MeasureError> {
        let invalid = |text: String| MeasureError::Invalid(format!("the space: {text}"));
        if text.len() > MAX_FILE {
            return Err(invalid(format!("the file is longer than {MAX_FILE} B")));
        }
        let read: BTreeMap<String, Spanned<toml::Value>> =
            toml::from_str(text).map_err(|error| invalid(error.to_string()))?;
        let mut read: Vec<(String, Spanned<toml::Value>)> = read.into_iter().collect();
        read.sort_by_key(|(_, value)| value.span().start);
        let mut space = SearchSpace::default();
        for (key, value) in read {
            let before = text.get(..value.span().start).unwrap_or(text);
            let line = before.matches('\n').count() + 1;
            let wrong = |why: String| invalid(format!("line {line}: `{key}`: {why}"));
            let Some(d) = DIMENSIONS.iter().find(|d| d.key == key) else {
                let keys: Vec<&str> = DIMENSIONS.iter().map(|d| d.key).collect();
                return Err(wrong(format!("there is no such dimension; there are {}", keys.join(", "))));
            };
            let value = SpaceValue::of(value.get_ref()).ok_or_else(|| wrong(takes(d)))?;
            space.narrow(d, value).map_err(wrong)?;
        }
        Ok(space)
    }

    fn narrow(&mut self, d: &Dimension, value: SpaceValue) -> Result<(), String> {
        let Some(bounds) = self.bounds.get_mut(d.gene as usize) else { return Ok(()) };
        match value {
            SpaceValue::Off(true) => {}
            SpaceValue::Off(false) if d.usual.is_some() => {
                return Err("it is in every path; give it two bounds".to_owned());
            }
            SpaceValue::Off(false) => *bounds = None,
            SpaceValue::Bounds([from, to]) if d.words.is_empty() => {
                let (least, most) = d.bounds;
                if !(least <= from && from <= to && to <= most) {
                    return Err(format!("bounds are in order and from {} to {}", short(least), short(most)));
                }
                *bounds = Some((from, to));
            }
            SpaceValue::Words(words) if !d.words.is_empty() => {
                let place = |word: &String| {
                    let at = d.words.iter().position(|known| known == word);
                    at.map(|n| (n + 1) as f64)
                        .ok_or_else(|| format!("`{word}` is none of {}", d.words.join(", ")))
                };
                let places = words.iter().map(place).collect::<Result<Vec<_>, _>>()?;
                if places.is_empty() {
                    *bounds = None;
                }
                self.words.insert(d.gene, places);
            }
            SpaceValue::Bounds(_) | SpaceValue::Words(_) => return Err(takes(d)),
        }
        Ok(())
    }

    /// Only these words of a dimension; none of them: it is off.
    #[must_use]
    pub(super) fn only(mut self, gene: Gene, allowed: &[&str]) -> Self {
        let Some(d) = DIMENSIONS.get(gene as usize) else { return self };
        let places = self.words.entry(gene).or_default();
        places.retain(|n| d.words.get(*n as usize - 1).is_some_and(|word| allowed.contains(word)));
        if places.is_empty()
            && let Some(bounds) = self.bounds.get_mut(gene as usize)
        {
            *bounds = None;
        }
        self
    }

    /// The words that a dimension may have.
    pub(super) fn words_of(&self, gene: Gene) -> Vec<&'static str> {
        let known = DIMENSIONS.get(gene as usize).map_or(&[][..], |d| d.words);
        let places = self.words.get(&gene).into_iter().flatten();
        places.filter_map(|n| known.get(*n as usize - 1).copied()).collect()
    }

    /// True if an impairment may be on.
    pub fn has(&self, gene: Gene) -> bool {
        self.bounds.get(gene as usize).copied().flatten().is_some()
    }

    fn draw(&self, d: &Dimension, random: &mut RandomStream) -> Option<f64> {
        let bounds = self.bounds.get(d.gene as usize).copied().flatten()?;
        if let Some(words) = self.words.get(&d.gene) {
            return words.get(random.below(words.len() as u64) as usize).copied();
        }
        Some(d.value(bounds, random.unit()))
    }

    /// A point at random, with few impairments.
    pub fn random(&self, random: &mut RandomStream) -> PathPoint {
        let possible = DIMENSIONS.iter().filter(|d| d.usual.is_none() && self.has(d.gene)).count();
        // Two of them in the mean: a path with all of them says nothing.
        let chance = 2.0 / possible.max(1) as f64;
        let mut point = PathPoint::default();
        for d in &DIMENSIONS {
            let value = self.draw(d, random);
            let is_on = random.chance(chance);
            point = match d.usual {
                Some(usual) => point.with(d.gene, value.unwrap_or(usual)),
                None => point.with(d.gene, value.filter(|_| is_on)),
            };
        }
        point
    }

    /// A point near `point`: numbers move by `step` of their range in the mean, and an impairment may come
    /// or go.
    pub fn mutated(&self, point: &PathPoint, step: f64, random: &mut RandomStream) -> PathPoint {
        let mut next = point.clone();
        let effective = point.effective().count().max(1) as f64;
        for d in &DIMENSIONS {
            let (moves, toggles) =
                (random.chance(2.0 / effective), random.chance(0.6 / DIMENSIONS.len() as f64));
            let (fresh, by) = (self.draw(d, random), normal(random) * step);
            let Some(bounds) = self.bounds.get(d.gene as usize).copied().flatten() else { continue };
            let value = match point.get(d.gene) {
                Some(_) if toggles && d.usual.is_none() => None,
                None if toggles => fresh,
                Some(_) if moves && !d.words.is_empty() => fresh,
                Some(value) if moves => Some(d.value(bounds, d.place(bounds, value) + by)),
                value => value,
            };
            next = next.with(d.gene, value);
        }
        next
    }

    /// A child of two points: each dimension from one of them.
    pub fn crossed(&self, a: &PathPoint, b: &PathPoint, random: &mut RandomStream) -> PathPoint {
        DIMENSIONS.iter().fold(a.clone(), |child, d| {
            if random.chance(0.5) { child.with(d.gene, b.get(d.gene)) } else { child }
        })
    }
}

/// A normal number (Box and Muller).
pub(super) fn normal(random: &mut RandomStream) -> f64 {
    let (a, b) = (random.unit().max(1e-12), random.unit());
    (-2.0 * libm::log(a)).sqrt() * libm::cos(std::f64::consts::TAU * b)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: the table of dimensions and the list of genes disagree, so that a value means another one.
    #[test]
    fn dimensions_are_in_order() {
        for (n, d) in DIMENSIONS.iter().enumerate() {
            assert_eq!(d.gene as usize, n, "{}", d.key);
            assert!(d.bounds.0 < d.bounds.1 && d.bounds.0 > 0.0, "{}", d.key);
            assert!(d.words.is_empty() || d.words.len() as f64 == d.bounds.1, "{}", d.key);
        }
    }

    /// Breaks: points leave the bounds, or an impairment that a file has switched off comes back.
    #[test]
    fn points_stay_in_the_space() {
        let space = SearchSpace::parse(
            "rate_mbit_s = [5, 10]\nloss_percent = false\nneighbour = [\"cubic\"]\ndiscipline = []\n",
        )
        .unwrap();
        let mut random = RandomStream::new(1, "test");
        let mut point = space.random(&mut random);
        for n in 0..2_000 {
            let other = space.random(&mut random);
            point = space.mutated(&point, 0.5, &mut random);
            if n % 3 == 0 {
                point = space.crossed(&point, &other, &mut random);
            }
            assert!((5.0..=10.0).contains(&point.of(Gene::Rate)), "{point}");
            assert_eq!((point.get(Gene::Loss), point.word(Gene::Discipline)), (None, None), "{point}");
            assert!(matches!(point.word(Gene::Neighbour), None | Some("cubic")), "{point}");
            for d in &DIMENSIONS {
                assert!(point.get(d.gene).is_none_or(|v| v >= d.bounds.0 && v <= d.bounds.1), "{point}");
            }
        }
    }

    /// Breaks: a printed path is read as another one, or a wrong one is accepted.
    #[test]
    fn printed_points_are_read_again() {
        let mut random = RandomStream::new(5, "test");
        let space = SearchSpace::default();
        for _ in 0..200 {
            let text = space.random(&mut random).to_string();
            assert_eq!(text.parse::<PathPoint>().unwrap().to_string(), text);
        }
        for (text, part) in [
            ("rate_mbit_s", "no key=value"),
            ("rate=3", "no dimension"),
            ("neighbour=tahoe", "no value"),
            ("rtt_ms=0", "from 5 to 600"),
            ("rtt_ms=NaN", "from 5 to 600"),
        ] {
            let error = text.parse::<PathPoint>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    /// Breaks: a wrong file is accepted, or the message does not say what is wrong.
    #[test]
    fn wrong_files_are_refused() {
        for (text, part) in [
            ("rate = [1, 2]", "line 1: `rate`: there is no such dimension"),
            (
                "\n# a\nrate_mbit_s = [1, 1000]",
                "line 3: `rate_mbit_s`: bounds are in order and from 1 to 200",
            ),
            ("rate_mbit_s = 5", "as in `rate_mbit_s = [1, 200]`"),
            ("loss_percent = [1]", "as in `loss_percent = [0.010, 3]`, or false"),
            ("neighbour = \"cubic\"", "as in `neighbour = [\"itself\", \"cubic\"]`"),
            ("rate_mbit_s = [9, 3]", "in order"),
            ("rate_mbit_s = false", "every path"),
            ("rate_mbit_s = [\"a\"]", "two numbers"),
            ("rtt_ms = [9, 10]\nneighbour = [1, 2]", "line 2: `neighbour`: it takes words"),
            ("neighbour = [\"dctcp\"]", "none of itself"),
            ("x", "TOML"),
        ] {
            let error = SearchSpace::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert!(SearchSpace::parse(&"#".repeat(MAX_FILE + 1)).is_err());
    }
}
