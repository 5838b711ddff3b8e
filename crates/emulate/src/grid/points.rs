//! Lists of points: every combination of the values of each `[[points]]` in a TOML file.

use super::point::{GridPoint, GridQueue};
use crate::compare::congestion_of;
use anyhow::{Context, Result, bail, ensure};
use farpace_tcp::config::Congestion;
use farpace_units::{ByteCount, Rate, Span};
use serde::Deserialize;

/// The grid that is run if nothing else is said.
pub const FULL: &str = include_str!("full.toml");
/// A short one, for a first look.
pub const QUICK: &str = include_str!("quick.toml");

/// The smallest FIFO: that of a multiple of the BDP is at least this large.
const MIN_FIFO: ByteCount = ByteCount::new(8_000);
/// Points of a grid at most.
const MAX_POINTS: usize = 10_000;

/// A file with points.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PointFile {
    points: Vec<PointAxes>,
}

/// Values of which every combination is a point.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PointAxes {
    rate: Vec<Rate>,
    rtt: Vec<Span>,
    /// Sizes of FIFOs, or multiples of the BDP as in `0.5 BDP`.
    #[serde(default)]
    queue: Vec<String>,
    /// Sizes of token buckets.
    #[serde(default)]
    policer: Vec<ByteCount>,
    /// Probabilities.
    #[serde(default = "no_loss")]
    loss: Vec<f64>,
    /// Those of the command, if none are named.
    #[serde(default)]
    congestion: Vec<String>,
}

fn no_loss() -> Vec<f64> {
    vec![0.0]
}

/// The points of a TOML file, each with each of `controls` unless the file names its own. A point that
/// appears twice is taken once.
///
/// # Errors
/// What is no list of points, and where; no points, or more than 10,000.
pub fn parse(text: &str, name: &str, controls: &[Congestion]) -> Result<Vec<GridPoint>> {
    let file: PointFile = toml::from_str(text).with_context(|| format!("no list of points: `{name}`"))?;
    let mut points = Vec::new();
    for axes in &file.points {
        let named = axes.congestion.iter().map(|name| congestion_of(name).map_err(anyhow::Error::msg));
        let named: Vec<Congestion> = named.collect::<Result<_>>()?;
        let controls = if named.is_empty() { controls } else { &named };
        for (rate, rtt) in axes.rate.iter().flat_map(|rate| axes.rtt.iter().map(move |rtt| (*rate, *rtt))) {
            let fifos = axes.queue.iter().map(|text| fifo(text, rate.bytes_in(rtt)).map(GridQueue::Fifo));
            let policers = axes.policer.iter().map(|burst| Ok(GridQueue::Policer(*burst)));
            for queue in fifos.chain(policers) {
                let queue = queue?;
                for loss in axes.loss.iter().copied() {
                    ensure!((0.0..1.0).contains(&loss), "`{name}`: a loss of {loss} is no probability");
                    for congestion in controls.iter().copied() {
                        let point = GridPoint { rate, rtt, queue, loss, congestion };
                        if !points.contains(&point) {
                            points.push(point);
                        }
                        ensure!(points.len() <= MAX_POINTS, "`{name}` has more than {MAX_POINTS} points");
                    }
                }
            }
        }
    }
    if points.is_empty() {
        bail!("`{name}` has no points: each needs `rate`, `rtt`, and `queue` or `policer`");
    }
    for point in &points {
        point.scenario().with_context(|| format!("`{name}`: {}", point.key()))?;
    }
    Ok(points)
}

/// The size of a FIFO, as bytes or as a multiple of `bdp`.
fn fifo(text: &str, bdp: ByteCount) -> Result<ByteCount> {
    let Some(times) = text.strip_suffix("BDP") else {
        return text.parse().with_context(|| format!("no size of a queue: `{text}`"));
    };
    let times: f64 = times.trim().parse().with_context(|| format!("no multiple of the BDP: `{text}`"))?;
    ensure!(times > 0.0 && times <= 100.0, "a queue of {times} BDP: expected 0 to 100");
    Ok(ByteCount::new((bdp.get() as f64 * times).round() as u64).max(MIN_FIFO))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Result<Vec<String>, String> {
        let points = parse(text, "list", &[Congestion::Cubic, Congestion::Reno]);
        points.map(|points| points.iter().map(GridPoint::key).collect()).map_err(|error| format!("{error:#}"))
    }

    /// Breaks: a list of points is read as other points, or a wrong one is not refused with a reason.
    #[test]
    fn lists_are_every_combination() {
        let text = "[[points]]\nrate = [\"10 Mbit/s\"]\nrtt = [\"1 ms\", \"40 ms\"]\n\
                    queue = [\"1 BDP\", \"8 kB\"]\n\
                    [[points]]\nrate = [\"5 Mbit/s\"]\nrtt = [\"10 ms\"]\npolicer = [\"30 kB\"]\n\
                    loss = [0.0, 0.01]\ncongestion = [\"bbr\"]\n";
        let expected = [
            "10 Mbit/s, 1 ms, 8 kB, no loss, cubic",
            "10 Mbit/s, 1 ms, 8 kB, no loss, reno",
            "10 Mbit/s, 40 ms, 50 kB, no loss, cubic",
            "10 Mbit/s, 40 ms, 50 kB, no loss, reno",
            "10 Mbit/s, 40 ms, 8 kB, no loss, cubic",
            "10 Mbit/s, 40 ms, 8 kB, no loss, reno",
            "5 Mbit/s, 10 ms, policer, 30 kB, no loss, bbr1",
            "5 Mbit/s, 10 ms, policer, 30 kB, loss 0.01, bbr1",
        ];
        assert_eq!(keys(text).unwrap(), expected);
        let axes = "[[points]]\nrate = [\"5 Mbit/s\"]\nrtt = [\"10 ms\"]\n";
        for (more, why) in [
            ("", "has no points"),
            ("queue = [\"0 BDP\"]", "expected 0 to 100"),
            ("queue = [\"x BDP\"]", "no multiple of the BDP"),
            ("queue = [\"much\"]", "no size of a queue"),
            ("queue = [\"8 kB\"]\nloss = [1.5]", "no probability"),
            ("queue = [\"8 kB\"]\ncongestion = [\"fast\"]", "no congestion control `fast`"),
            ("queues = [\"8 kB\"]", "unknown field `queues`"),
        ] {
            let error = keys(&format!("{axes}{more}")).unwrap_err();
            assert!(error.contains(why), "{more}: {error}");
        }
    }

    /// Breaks: the lists that the command has built in, or what they are promised to cover.
    #[test]
    fn built_in_lists_cover_what_they_promise() {
        let controls = [Congestion::Cubic, Congestion::Reno, Congestion::Bbr1];
        let full = parse(FULL, "full", &controls).unwrap();
        let quick = parse(QUICK, "quick", &[Congestion::Cubic]).unwrap();
        assert!((10..=20).contains(&quick.len()), "{}", quick.len());
        assert!((150..=400).contains(&full.len()), "{}", full.len());
        let has = |what: &dyn Fn(&GridPoint) -> bool| full.iter().any(what);
        for mbit in [1, 10, 100, 500] {
            assert!(has(&|point| point.rate == Rate::from_mbit(mbit)), "{mbit} Mbit/s");
        }
        for ms in [1, 10, 40, 100, 300] {
            assert!(has(&|point| point.rtt == Span::from_millis(ms)), "{ms} ms");
        }
        for loss in [0.0001, 0.001, 0.01] {
            assert!(has(&|point| point.loss == loss), "{loss}");
        }
        for control in controls {
            assert!(
                has(&|point| point.congestion == control && matches!(point.queue, GridQueue::Policer(_)))
            );
            assert!(has(&|point| point.congestion == control && point.queue.size() == MIN_FIFO));
            let four = |point: &GridPoint| point.queue.size().get() == 4 * point.bdp().get();
            assert!(has(&|point| point.congestion == control && four(point)));
        }
    }
}
