//! Every congestion control on the paper's grid: bit error rates, queues, one or two flows, and a CUBIC
//! neighbour.

use super::cases::{Ber, RouterQueue, SatelliteCase, SatelliteRuns};
use crate::bulk::BulkRun;
use crate::contender::{Contender, chosen_controls, congestion_name};
use crate::experiment::{CaseRun, Experiment, MeasureError, Measured, StopRequest};
use crate::observe::Setting;
use crate::report::ExperimentReport;
use farpace_report::{Page, Table, TableCell, cells};
use farpace_tcp::config::Congestion;
use farpace_units::Span;
use serde_json::{Value, json};

/// Seeds, if not given.
const SEEDS: u64 = 3;
/// Losses and delays are compared with those of controls that have at least this part of the best goodput.
const NEAR: f64 = 0.9;
/// Added to losses (in percent) and delays (in ms) before they are compared. Below, they are all alike.
const ALIKE: (f64, f64) = (0.01, 1.0);
const NOTE: &str = "Loss and delay are compared with the least of those who get at least 90 % of the best \
                    goodput at the same place; 0.01 % of loss and 1 ms of delay are added on both sides, so \
                    that nothing can be compared with nothing. CUBIC keeps: what a CUBIC flow gets beside \
                    it, of what it gets beside another CUBIC.";

/// Every congestion control on the paper's grid.
pub struct Frontier {
    controls: Vec<Congestion>,
    runs: SatelliteRuns,
}

impl Frontier {
    /// The controls named in `only`, or all of them, with so many seeds if not the usual number.
    ///
    /// # Errors
    /// A name that no control has, or a time that is too short or too long.
    pub fn new(
        only: &[String],
        seeds: Option<u64>,
        time: Span,
        set: &[Setting],
    ) -> Result<Self, MeasureError> {
        let runs = SatelliteRuns::new(seeds.unwrap_or(SEEDS), time, set, false)?;
        Ok(Frontier { controls: chosen_controls(only)?, runs })
    }
}

impl Experiment for Frontier {
    type Case = SatelliteCase;
    type Measurement = BulkRun;

    fn plan(&self) -> Vec<CaseRun<SatelliteCase>> {
        let mut controls = self.controls.clone();
        if !controls.contains(&Congestion::Cubic) {
            // What the neighbours of others are compared with.
            controls.push(Congestion::Cubic);
        }
        let cases = controls.into_iter().flat_map(|control| {
            let places = GridPlace::all().into_iter();
            places.flat_map(move |place| [place.case(control), place.beside_cubic(control)])
        });
        self.runs.plan(cases)
    }
    fn inputs(&self) -> String {
        self.runs.inputs()
    }
    fn check(&self, case: &SatelliteCase) -> Result<(), MeasureError> {
        self.runs.scenario(case, 1).map(drop)
    }
    fn measure(&self, run: &CaseRun<SatelliteCase>, stop: &StopRequest<'_>) -> Result<BulkRun, MeasureError> {
        self.runs.measure(run, stop)
    }
    fn report(&self, measured: &Measured<'_, Self>, command: &str) -> ExperimentReport {
        let places: Vec<PlaceResult> =
            GridPlace::all().into_iter().map(|p| PlaceResult::of(measured, p)).collect();
        let title = "Every congestion control over the satellite grid";
        let mut page = Page::new(title);
        page.paragraph(&format!(
            "{} runs of {} each over 10 Mbit/s with a round trip of 500 ms: five bit error rates, a router \
             queue of 625 kB and of 15 kB, one flow and two of a kind, and one beside CUBIC. Windows are at \
             most 625 kB. The TCP around the congestion control is modern.",
            measured.count(),
            self.runs.time
        ));
        page.table(&self.worst(&places));
        for flows in [1, 2] {
            for queue in RouterQueue::BOTH {
                page.table(&by_rate(&places, flows, queue));
            }
        }
        page.paragraph(NOTE).heading("How to repeat this").command(command);
        let json = json!({
            "format": "farpace-satellite-frontier/1",
            "time_s": self.runs.time.as_secs_f64(),
            "seeds": self.runs.seeds,
            "places": places.iter().map(PlaceResult::json).collect::<Vec<Value>>(),
        });
        ExperimentReport::new(page, format!("{title}: {} runs", measured.count()), json)
    }
}

impl Frontier {
    /// The worst of each control over all places.
    fn worst(&self, places: &[PlaceResult]) -> Table {
        let mut table = Table::with(
            "The worst of each over all places",
            "congestion control | goodput [least, of best] | goodput [mean, of best] | loss [most, of least] \
             | delay [most, of least] | fairness [least Jain] | CUBIC keeps [least, %]",
        );
        for (i, control) in self.controls.iter().enumerate() {
            let all = |value: fn(&PlaceResult, &ControlResult) -> f64| {
                places.iter().filter_map(move |p| Some(value(p, p.controls.get(i)?)))
            };
            let min = |value| all(value).fold(f64::INFINITY, f64::min);
            let max = |value| all(value).fold(f64::NEG_INFINITY, f64::max);
            table.row(cells![
                congestion_name(*control),
                (min(PlaceResult::ratio), 3),
                (all(PlaceResult::ratio).sum::<f64>() / places.len() as f64, 3),
                (max(PlaceResult::lost_ratio), 2),
                (max(PlaceResult::delay_ratio), 2),
                (min(|_, c| c.jain), 3),
                (min(|_, c| c.cubic_keeps), 0),
            ]);
        }
        table
    }
}

/// A place of the grid.
#[derive(Clone, Copy)]
struct GridPlace {
    flows: usize,
    queue: RouterQueue,
    ber: Ber,
}

impl GridPlace {
    fn all() -> Vec<GridPlace> {
        let of = |flows, queue| Ber::ALL.map(|ber| GridPlace { flows, queue, ber });
        [1, 2].into_iter().flat_map(|n| RouterQueue::BOTH.into_iter().flat_map(move |q| of(n, q))).collect()
    }
    fn case(&self, control: Congestion) -> SatelliteCase {
        let sender = Contender::modern(control);
        let single = SatelliteCase::single(sender.clone(), self.ber);
        SatelliteCase { senders: vec![sender; self.flows], queue: self.queue, ..single }
    }
    fn beside_cubic(&self, control: Congestion) -> SatelliteCase {
        let [first, second] = [control, Congestion::Cubic].map(Contender::modern);
        SatelliteCase::pair(first, second, self.ber, self.queue)
    }
    fn name(&self) -> String {
        format!("{}, BER {}", named(self.flows, self.queue), self.ber.name())
    }
}

fn named(flows: usize, queue: RouterQueue) -> String {
    format!("{flows} flow{}, queue {}", if flows == 1 { "" } else { "s" }, queue.name())
}

/// What one control has at one place.
struct ControlResult {
    control: Congestion,
    /// Of all flows together, in Mbit/s.
    goodput: f64,
    /// Percent of segments sent that were dropped.
    lost: f64,
    /// Queueing delay, mean, in ms.
    delay: f64,
    /// Jain's index; NaN for one flow.
    jain: f64,
    /// What a CUBIC beside it keeps, in percent; NaN for one flow.
    cubic_keeps: f64,
}

impl ControlResult {
    fn of(m: &Measured<'_, Frontier>, control: Congestion, place: GridPlace) -> Self {
        let case = place.case(control);
        let two = place.flows > 1;
        let alone = m.total(&place.beside_cubic(Congestion::Cubic)).mean / 2.0;
        let kept = match control {
            Congestion::Cubic => alone,
            _ => m.flow_goodput(&place.beside_cubic(control), 1).mean,
        };
        ControlResult {
            control,
            goodput: m.total(&case).mean,
            lost: m.over(&case, |m| m.lost).mean,
            delay: m.over(&case, |m| m.delay_mean).mean,
            jain: if two { m.fairness(&case).mean } else { f64::NAN },
            cubic_keeps: if two { kept / alone * 100.0 } else { f64::NAN },
        }
    }
}

/// The controls at one place, and the best of each number.
struct PlaceResult {
    place: GridPlace,
    controls: Vec<ControlResult>,
    best: f64,
    min_lost: f64,
    min_delay: f64,
}

impl PlaceResult {
    fn of(m: &Measured<'_, Frontier>, place: GridPlace) -> Self {
        let controls: Vec<_> = m.of.controls.iter().map(|c| ControlResult::of(m, *c, place)).collect();
        let best = controls.iter().map(|c| c.goodput).fold(0.0, f64::max);
        let near = || controls.iter().filter(|c| c.goodput >= NEAR * best);
        let min_lost = near().map(|c| c.lost).fold(f64::MAX, f64::min);
        let min_delay = near().map(|c| c.delay).fold(f64::MAX, f64::min);
        PlaceResult { place, best, min_lost, min_delay, controls }
    }
    fn ratio(&self, c: &ControlResult) -> f64 {
        c.goodput / self.best
    }
    fn lost_ratio(&self, c: &ControlResult) -> f64 {
        (c.lost + ALIKE.0) / (self.min_lost + ALIKE.0)
    }
    fn delay_ratio(&self, c: &ControlResult) -> f64 {
        (c.delay + ALIKE.1) / (self.min_delay + ALIKE.1)
    }
    fn json(&self) -> Value {
        let control = |c: &ControlResult| {
            json!({
                "name": congestion_name(c.control),
                "goodput_mbit_s": c.goodput,
                "of_best": self.ratio(c),
                "lost_percent": c.lost,
                "lost_of_least": self.lost_ratio(c),
                "delay_mean_ms": c.delay,
                "delay_of_least": self.delay_ratio(c),
                "jain": c.jain,
                "cubic_keeps_percent": c.cubic_keeps,
            })
        };
        json!({
            "place": self.place.name(),
            "ber": self.place.ber.name(),
            "queue": self.place.queue.name(),
            "flows": self.place.flows,
            "best_mbit_s": self.best,
            "congestion": self.controls.iter().map(control).collect::<Vec<Value>>(),
        })
    }
}

/// Goodput, loss and delay of all controls with one queue and so many flows.
fn by_rate(places: &[PlaceResult], flows: usize, queue: RouterQueue) -> Table {
    let here = || places.iter().filter(move |p| (p.place.flows, p.place.queue) == (flows, queue));
    let mut table = Table::with(named(flows, queue), "congestion control");
    for p in here() {
        table.column(&format!("BER {}", p.place.ber.name()), "of best, loss %, ms");
    }
    let row = |head: String, cells: Vec<TableCell>| [head.into()].into_iter().chain(cells);
    table.row(row("best, Mbit/s".into(), here().map(|p| (p.best, 2).into()).collect()));
    let controls = here().next().map_or(&[][..], |p| &p.controls);
    for (i, control) in controls.iter().enumerate() {
        let cells = here().map(|p| {
            let of = p.controls.get(i).filter(|c| c.goodput.is_finite());
            of.map(|c| format!("{:.3} {:.2} {:.0}", p.ratio(c), c.lost, c.delay)).into()
        });
        table.row(row(congestion_name(control.control), cells.collect()));
    }
    table
}
