//! Every congestion control on the paper's grid: bit error rate x queue x one or two flows, and a CUBIC neighbour.

use super::plan::{Plan, SEEDS};
use super::results::Results;
use super::{Args, page::command};
use crate::grid::contender::name;
use crate::grid::{Ber, Contender, Queue, Satellite};
use crate::outdir::OutDir;
use crate::terminal;
use anyhow::Result;
use farpace_report::{Page, Table, TableCell as Shown, TableColumn};
use farpace_tcp::config::Congestion;
use serde_json::{Value, json};

/// Losses and delays are compared with those who get at least so much of the best goodput.
const NEAR: f64 = 0.9;
/// Added to losses (in percent) and delays (in milliseconds) before they are compared: below, they are all alike.
const ALIKE: (f64, f64) = (0.01, 1.0);

/// One place of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    ber: Ber,
    queue: Queue,
    flows: usize,
}

impl Place {
    fn all() -> Vec<Place> {
        let mut all = Vec::new();
        for flows in [1, 2] {
            for queue in Queue::ROUTER {
                all.extend(Ber::ALL.map(|ber| Place { ber, queue, flows }));
            }
        }
        all
    }
    fn cell(&self, c: Congestion) -> Satellite {
        let single = Satellite::single(Contender::modern(c), self.ber);
        Satellite { senders: vec![Contender::modern(c); self.flows], queue: self.queue, ..single }
    }
    fn name(&self) -> String {
        let plural = if self.flows == 1 { "" } else { "s" };
        format!("{} flow{plural}, queue {}, BER {}", self.flows, self.queue.name(), self.ber.name())
    }
}

fn beside_cubic(c: Congestion, ber: Ber, queue: Queue) -> Satellite {
    Satellite::pair(Contender::modern(c), Contender::modern(Congestion::Cubic), ber, queue)
}

/// All runs for these.
pub fn plan(args: &Args, wanted: &[Congestion]) -> Plan {
    let mut plan = Plan::new(args, SEEDS.2);
    let mut all = wanted.to_vec();
    // The measure for neighbours.
    if !all.contains(&Congestion::Cubic) {
        all.push(Congestion::Cubic);
    }
    for c in all {
        for place in Place::all() {
            plan.add(place.cell(c), false);
        }
        if c != Congestion::Cubic {
            for queue in Queue::ROUTER {
                for ber in Ber::ALL {
                    plan.add(beside_cubic(c, ber, queue), false);
                }
            }
        }
    }
    plan
}

/// What one congestion control has at one place.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    /// Of all flows together, Mbit/s.
    goodput: f64,
    /// Percent of segments sent that were dropped.
    lost: f64,
    /// Milliseconds in queues, mean.
    delay: f64,
    /// Jain's index, for two flows.
    jain: f64,
    /// What a CUBIC beside it keeps, in percent, for two flows.
    cubic_keeps: f64,
}

impl Point {
    fn of(results: &Results, c: Congestion, place: Place) -> Point {
        let runs = results.cell(&place.cell(c));
        let two = place.flows > 1;
        let cubic = || {
            let measure =
                results.cell(&beside_cubic(Congestion::Cubic, place.ber, place.queue)).total().mean / 2.0;
            let neighbour = results.cell(&beside_cubic(c, place.ber, place.queue));
            let kept = if c == Congestion::Cubic { measure } else { neighbour.goodput(1).mean };
            kept / measure * 100.0
        };
        Point {
            goodput: runs.total().mean,
            lost: runs.over(|m| m.lost).mean,
            delay: runs.over(|m| m.delay_mean).mean,
            jain: if two { runs.fairness().mean } else { f64::NAN },
            cubic_keeps: if two { cubic() } else { f64::NAN },
        }
    }
}

/// The points of one place, and the best of them.
struct Compared {
    place: Place,
    points: Vec<(Congestion, Point)>,
    best: f64,
    least_lost: f64,
    least_delay: f64,
}

impl Compared {
    fn of(results: &Results, wanted: &[Congestion], place: Place) -> Compared {
        let points: Vec<(Congestion, Point)> =
            wanted.iter().map(|c| (*c, Point::of(results, *c, place))).collect();
        let best = points.iter().map(|p| p.1.goodput).fold(0.0, f64::max);
        let near = || points.iter().map(|p| p.1).filter(|p| p.goodput >= NEAR * best);
        let least_lost = near().map(|p| p.lost).fold(f64::MAX, f64::min);
        let least_delay = near().map(|p| p.delay).fold(f64::MAX, f64::min);
        Compared { place, points, best, least_lost, least_delay }
    }
    fn ratio(&self, p: &Point) -> f64 {
        p.goodput / self.best
    }
    fn lost_ratio(&self, p: &Point) -> f64 {
        (p.lost + ALIKE.0) / (self.least_lost + ALIKE.0)
    }
    fn delay_ratio(&self, p: &Point) -> f64 {
        (p.delay + ALIKE.1) / (self.least_delay + ALIKE.1)
    }
}

/// Prints the frontier and writes its report.
///
/// # Errors
/// A file that cannot be written.
pub fn show(args: &Args, results: &Results, out: OutDir) -> Result<()> {
    let wanted = crate::cc::chosen(&args.only)?;
    let places: Vec<Compared> = Place::all().into_iter().map(|p| Compared::of(results, &wanted, p)).collect();
    let tables = tables(&wanted, &places);
    if args.json {
        terminal::print_json(&json(results, &places))?;
    } else {
        let text: Vec<String> = tables.iter().map(Table::to_text).collect();
        terminal::print(&text.join("\n"))?;
    }
    let mut page = Page::new("Every congestion control over the satellite grid");
    page.paragraph(&format!(
        "{} runs of {} each over 10 Mbit/s with a round trip of 500 ms: five bit error rates, a router queue of 625 kB and \
         of 15 kB, one flow and two of a kind, and one beside CUBIC. Windows are at most 625 kB; the TCP around the \
         congestion control is that of today.",
        results.runs(),
        results.time
    ));
    tables.iter().for_each(|t| {
        page.table(t);
    });
    page.paragraph(NOTE).heading("How to repeat this").command(&command(args));
    out.write("report.html", page.render().as_bytes())?;
    out.commit().map(drop)
}

const NOTE: &str = "Loss and delay are compared with the least of those who get at least 90 % of the best goodput at the \
                    same place; 0.01 % of loss and 1 ms of delay are added on both sides, so that nothing can be compared \
                    with nothing. CUBIC keeps: what a CUBIC flow gets beside it, of what it gets beside another CUBIC.";

fn fixed(value: f64, decimals: u8) -> Shown {
    if value.is_finite() { Shown::Number(value, Some(decimals)) } else { Shown::Missing }
}

/// The worst of each, then goodput by place.
fn tables(wanted: &[Congestion], places: &[Compared]) -> Vec<Table> {
    let columns = vec![
        TableColumn::text("congestion control"),
        TableColumn::number("goodput", "least, of best"),
        TableColumn::number("goodput", "mean, of best"),
        TableColumn::number("loss", "most, of least"),
        TableColumn::number("delay", "most, of least"),
        TableColumn::number("fairness", "least Jain"),
        TableColumn::number("CUBIC keeps", "least, %"),
    ];
    let mut worst = Table::new("The worst of each over all places", columns);
    for c in wanted {
        let mine = || places.iter().filter_map(|p| Some((p, p.points.iter().find(|(n, _)| n == c)?.1)));
        let least = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::INFINITY, f64::min);
        let most = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::NEG_INFINITY, f64::max);
        let ratios: Vec<f64> = mine().map(|(place, p)| place.ratio(&p)).collect();
        worst.row(vec![
            name(*c).into(),
            fixed(least(&mut ratios.iter().copied()), 3),
            fixed(ratios.iter().sum::<f64>() / ratios.len() as f64, 3),
            fixed(most(&mut mine().map(|(place, p)| place.lost_ratio(&p))), 2),
            fixed(most(&mut mine().map(|(place, p)| place.delay_ratio(&p))), 2),
            fixed(least(&mut mine().map(|(_, p)| p.jain)), 3),
            fixed(least(&mut mine().map(|(_, p)| p.cubic_keeps)), 0),
        ]);
    }
    let mut all = vec![worst];
    for flows in [1, 2] {
        for queue in Queue::ROUTER {
            let here = || places.iter().filter(|p| p.place.flows == flows && p.place.queue == queue);
            let mut columns = vec![TableColumn::text("congestion control")];
            let unit = "of best, loss %, ms";
            columns.extend(here().map(|p| TableColumn::number(&format!("BER {}", p.place.ber.name()), unit)));
            let plural = if flows == 1 { "" } else { "s" };
            let mut table = Table::new(&format!("{flows} flow{plural}, queue {}", queue.name()), columns);
            let mut best: Vec<Shown> = vec!["best, Mbit/s".into()];
            best.extend(here().map(|p| fixed(p.best, 2)));
            table.row(best);
            for (i, c) in wanted.iter().enumerate() {
                let mut row: Vec<Shown> = vec![name(*c).into()];
                row.extend(here().map(|p| match p.points.get(i) {
                    Some((_, point)) if point.goodput.is_finite() => {
                        let ratio = p.ratio(point);
                        format!("{ratio:.3} {:.2} {:.0}", point.lost, point.delay).into()
                    }
                    _ => Shown::Missing,
                }));
                table.row(row);
            }
            all.push(table);
        }
    }
    all
}

fn json(results: &Results, places: &[Compared]) -> Value {
    let place = |p: &Compared| {
        let point = |(c, point): &(Congestion, Point)| {
            json!({
                "name": name(*c),
                "goodput_mbit_s": point.goodput,
                "of_best": p.ratio(point),
                "lost_percent": point.lost,
                "lost_of_least": p.lost_ratio(point),
                "delay_mean_ms": point.delay,
                "delay_of_least": p.delay_ratio(point),
                "jain": point.jain,
                "cubic_keeps_percent": point.cubic_keeps,
            })
        };
        json!({
            "place": p.place.name(),
            "ber": p.place.ber.name(),
            "queue": p.place.queue.name(),
            "flows": p.place.flows,
            "best_mbit_s": p.best,
            "congestion": p.points.iter().map(point).collect::<Vec<Value>>(),
        })
    };
    json!({
        "format": "farpace-satellite-frontier/1",
        "time_s": results.time.as_secs_f64(),
        "seeds": results.seeds,
        "places": places.iter().map(place).collect::<Vec<Value>>(),
    })
}
