//! All congestion controls on one path: each alone, beside itself, and beside CUBIC.

use crate::bulk::{self, BulkRun, endless};
use crate::contender::congestion_name;
use crate::experiment::{CaseRun, Experiment, MeasureError, Measured, StopRequest};
use crate::observe::{Setting, scenario};
use crate::report::ExperimentReport;
use crate::statistics::{Summary, jain};
use farpace_lab::scenario::{FlowSpec, MAX_DURATION, Scenario};
use farpace_report::{Dot, Figure, Page, Table, TableCell, scatter};
use farpace_tcp::config::Congestion;
use farpace_units::Span;
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;

/// The paths that have a name; `farpace run` takes the files as well.
const PATHS: [(&str, &str); 4] = [
    ("satellite", include_str!("../../../scenarios/paths/satellite.toml")),
    ("lfn", include_str!("../../../scenarios/paths/lfn.toml")),
    ("policed", include_str!("../../../scenarios/paths/policed.toml")),
    ("lossy", include_str!("../../../scenarios/paths/lossy.toml")),
];

/// The longest run over a path from a file, unless asked for.
const LONGEST: Span = Span::from_secs(60);
/// The second flow starts so much later from seed to seed.
const STEP: Span = Span::from_millis(37);

/// Who else sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Neighbour {
    /// Nobody.
    None,
    /// A second flow of the same kind.
    Twin,
    /// A flow of CUBIC.
    Cubic,
}

/// A congestion control, and who else sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ControlCase {
    congestion: Congestion,
    neighbour: Neighbour,
}

impl fmt::Display for ControlCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let neighbour = ["alone", "beside itself", "beside cubic"][self.neighbour as usize];
        write!(f, "{} {neighbour}", congestion_name(self.congestion))
    }
}

/// All congestion controls on one path.
pub struct ControlComparison {
    /// The path, as it was asked for.
    path: String,
    /// The scenario that all runs are made from.
    base: Scenario,
    controls: Vec<Congestion>,
    left_out: Vec<String>,
    seeds: u64,
    time: Span,
}

impl ControlComparison {
    /// The scenario of the path with this name, with `set` on top; none if no path has it.
    ///
    /// # Errors
    /// Values that the scenario does not take.
    pub fn named_path(name: &str, set: &[Setting]) -> Result<Option<Scenario>, MeasureError> {
        let Some((_, text)) = PATHS.iter().find(|(word, _)| *word == name) else { return Ok(None) };
        scenario(text, &format!("scenarios/paths/{name}.toml"), set).map(Some)
    }
    /// The names of paths.
    pub fn path_names() -> Vec<&'static str> {
        PATHS.iter().map(|(word, _)| *word).collect()
    }

    /// The controls over the path `base`, which was asked for as `path`, with so many seeds each.
    ///
    /// # Errors
    /// A scenario without a flow or whose TCP takes none of the controls, or a time that is too short or too
    /// long.
    pub fn new(
        path: &str,
        base: Scenario,
        controls: Vec<Congestion>,
        seeds: u64,
        time: Option<Span>,
    ) -> Result<Self, MeasureError> {
        let invalid = |text: &str| Err(MeasureError::Invalid(text.to_owned()));
        let is_file = PATHS.iter().all(|(word, _)| *word != path);
        let default = if is_file { base.duration.min(LONGEST) } else { base.duration };
        let time = time.unwrap_or(default);
        if time < Span::from_secs(1) || time > MAX_DURATION {
            return invalid("--time must be from 1 s to 30 days");
        }
        let Some(first) = base.flows.first() else { return invalid("the scenario has no flow") };
        let takes = |c: &Congestion| with(first, *c).sender.resolve().is_ok();
        let (controls, refused): (Vec<Congestion>, Vec<Congestion>) = controls.into_iter().partition(takes);
        if controls.is_empty() {
            return invalid("no congestion control is left to compare");
        }
        let left_out = refused.into_iter().map(congestion_name).collect();
        Ok(ControlComparison { path: path.to_owned(), base, controls, left_out, seeds, time })
    }

    /// The controls that the TCP of the scenario does not take.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// What the scenario sends besides its first flow: it stays in all runs.
    fn company(&self) -> Vec<String> {
        let flows = self.base.flows.iter().skip(1).map(|f| format!("flow {}", f.name));
        flows.chain(self.base.datagrams.iter().map(|d| format!("datagrams {}", d.name))).collect()
    }

    /// The first flow is replaced, the neighbour's is the last.
    fn scenario(&self, case: ControlCase, seed: u64) -> Scenario {
        let mut scenario = Scenario { seed, duration: self.time, ..self.base.clone() };
        scenario.trace.bin = scenario.trace.bin.max(Span::from_millis(10));
        let Some(flow) = self.base.flows.first() else { return scenario };
        let rate = self.base.bottleneck(flow).map(|b| b.rate);
        let mut flow = with(flow, case.congestion);
        flow.size = endless(rate, self.time);
        if case.neighbour != Neighbour::None {
            let mut second = match case.neighbour {
                Neighbour::Cubic => with(&flow, Congestion::Cubic),
                Neighbour::None | Neighbour::Twin => flow.clone(),
            };
            let is_free = |name: &String| !self.base.flows.iter().any(|f| f.name == *name);
            let names = (2..).map(|n| format!("second-{n}")).take(self.base.flows.len() + 1);
            second.name = names.into_iter().find(is_free).unwrap_or_default();
            second.port = None;
            second.start += STEP * (seed.saturating_sub(1) % 100);
            scenario.flows.push(second);
        }
        if let Some(first) = scenario.flows.first_mut() {
            *first = flow;
        }
        scenario
    }
}

fn with(flow: &FlowSpec, congestion: Congestion) -> FlowSpec {
    let mut flow = flow.clone();
    Arc::make_mut(&mut flow.sender).congestion = Some(congestion);
    flow
}

impl Experiment for ControlComparison {
    type Case = ControlCase;
    type Measurement = BulkRun;

    fn plan(&self) -> Vec<CaseRun<ControlCase>> {
        let mut cases = Vec::new();
        for &congestion in &self.controls {
            cases
                .extend([Neighbour::None, Neighbour::Twin].map(|n| ControlCase { congestion, neighbour: n }));
            if congestion != Congestion::Cubic {
                cases.push(ControlCase { congestion, neighbour: Neighbour::Cubic });
            }
        }
        // What CUBIC gets beside itself is the measure for its neighbours.
        let twins = ControlCase { congestion: Congestion::Cubic, neighbour: Neighbour::Twin };
        if !cases.contains(&twins) {
            cases.push(twins);
        }
        let runs = |case| (1..=self.seeds).map(move |number| CaseRun { case, number });
        cases.into_iter().flat_map(runs).collect()
    }
    fn inputs(&self) -> String {
        format!("{} {}", self.time, self.base.to_toml().unwrap_or_default())
    }
    fn measure(&self, run: &CaseRun<ControlCase>, stop: &StopRequest<'_>) -> Result<BulkRun, MeasureError> {
        bulk::measure(&self.scenario(run.case, run.number), false, stop)
    }
    fn report(&self, m: &Measured<'_, Self>, command: &str) -> ExperimentReport {
        let title = format!("Congestion controls compared: {}", self.base.title);
        let mut page = Page::new(&title);
        if !self.base.description.is_empty() {
            page.paragraph(self.base.description.trim());
        }
        if let Some(flow) = self.base.flows.first()
            && let Some(b) = self.base.bottleneck(flow)
        {
            page.paragraph(&format!(
                "The path carries at most {:.2} Mbit/s of payload; its round trip with empty queues is {}.",
                b.goodput.as_mbit_f64(),
                self.base.base_rtt(flow).rounded()
            ));
        }
        let company = self.company();
        if !company.is_empty() {
            page.finding(&format!(
                "What else the scenario sends is on the path in all runs: {}. \"Alone\" means that no second \
                 flow is added.",
                company.join(", ")
            ));
        }
        let controls: Vec<ControlNumbers> = self.controls.iter().map(|c| ControlNumbers::of(m, *c)).collect();
        page.figure(&self.figure(&controls)).table(&self.table(&controls)).paragraph(
            "Goodput, delay and retransmissions are those of the first flow without a second one. Delay is \
             the time that the packets which arrived had spent in queues of links, in the direction of \
             data. Fairness is Jain's index of two flows of the same kind: 1 is equal, 0.5 is all for one. \
             The last column is what a flow of CUBIC gets beside it, in percent of what it gets beside \
             another CUBIC. The second flow starts up to some seconds later, from seed to seed.",
        );
        if !self.left_out.is_empty() {
            page.paragraph(&format!(
                "Left out, because the TCP profile of this scenario does not take them: {}.",
                self.left_out.join(", ")
            ));
        }
        page.heading("How to repeat this").command(command);
        if let Ok(text) = self.base.to_toml() {
            page.details("The scenario all runs are made from", &text);
        }
        let json = json!({
            "format": "farpace-cc-compare/1",
            "path": self.path,
            "title": self.base.title,
            "others": company,
            "time_s": self.time.as_secs_f64(),
            "seeds": self.seeds,
            "left_out": self.left_out,
            "congestion": controls.iter().map(ControlNumbers::json).collect::<Vec<Value>>(),
        });
        ExperimentReport::new(page, title, json)
    }
}

impl ControlComparison {
    fn table(&self, controls: &[ControlNumbers]) -> Table {
        let (seeds, plural) = (self.seeds, if self.seeds == 1 { "" } else { "s" });
        let beside = match self.company().as_slice() {
            [] => String::new(),
            others => format!(", beside {}", others.join(", ")),
        };
        let title = format!(
            "{}{beside}: {} each, {seeds} seed{plural} (mean ± 95 % confidence)",
            self.base.title, self.time
        );
        let heads = QUANTITIES.map(|(_, head, _)| head).join(" | ");
        let mut table = Table::with(title, &format!("congestion control | {heads}"));
        for control in controls {
            let cells = control.numbers.iter().zip(QUANTITIES);
            let cells = cells.map(|(number, (.., decimals))| TableCell::from(number.text(decimals)));
            table.row([control.name.as_str().into()].into_iter().chain(cells));
        }
        table
    }

    fn figure(&self, controls: &[ControlNumbers]) -> Figure {
        fn dot(c: &ControlNumbers) -> Dot<'_> {
            let [goodput, delay, ..] = &c.numbers;
            Dot::new(&c.name, delay.mean, goodput.mean)
                .with_ranges(delay.estimate().range, goodput.estimate().range)
        }
        let dots: Vec<Dot<'_>> = controls.iter().map(dot).collect();
        let title = format!("Goodput against delay: {}", self.base.title);
        scatter(&title, "mean time in queues (ms)", "goodput (Mbit/s)", &dots).figure(
            "figures/goodput-delay.svg",
            &format!(
                "Each congestion control {}. Up is more payload, left is less waiting for everybody who \
                 shares the queue: the upper left corner is best. Whiskers: 95 % confidence.",
                match self.company().as_slice() {
                    [] => "alone on the path".to_owned(),
                    others => format!("beside {} of the scenario", others.join(", ")),
                }
            ),
        )
    }
}

/// Key of the JSON, head of the table, decimals: of [`ControlNumbers`].
const QUANTITIES: [(&str, &str, usize); 7] = [
    ("goodput_mbit_s", "goodput [Mbit/s]", 2),
    ("delay_mean_ms", "delay [ms, mean]", 1),
    ("delay_95_ms", "[ms, 95 %]", 1),
    ("delay_99_ms", "[ms, 99 %]", 1),
    ("retransmitted_percent", "retransmitted [%]", 2),
    ("jain", "fairness [Jain]", 3),
    ("cubic_keeps_percent", "CUBIC keeps [%]", 0),
];

/// One congestion control: alone, goodput, time in queues (mean, 95 %, 99 %) and retransmissions; Jain's
/// index of two of its kind; what a CUBIC beside it gets, in percent of what it gets beside another CUBIC.
struct ControlNumbers {
    name: String,
    numbers: [Summary; 7],
}

/// Goodput of the first flow and of the one that was added, which is the last.
fn shares(m: &BulkRun) -> [f64; 2] {
    [m.goodput(0), m.goodput(m.flows.len().saturating_sub(1))]
}

impl ControlNumbers {
    fn of(m: &Measured<'_, ControlComparison>, congestion: Congestion) -> Self {
        let case = |congestion, neighbour| ControlCase { congestion, neighbour };
        let alone = |of: fn(&BulkRun) -> f64| m.over(&case(congestion, Neighbour::None), of);
        // Both flows of both kinds have the same chances.
        let twins = case(Congestion::Cubic, Neighbour::Twin);
        let measure = Summary::of(m.runs(&twins).flat_map(shares)).mean;
        let kept: Vec<f64> = match congestion {
            Congestion::Cubic => m.runs(&twins).flat_map(shares).collect(),
            _ => m.runs(&case(congestion, Neighbour::Cubic)).map(|m| shares(m)[1]).collect(),
        };
        let numbers = [
            alone(|m| m.goodput(0)),
            alone(|m| m.delay_mean),
            alone(|m| m.delay_95),
            alone(|m| m.delay_99),
            alone(|m| m.flows.first().map_or(f64::NAN, |f| f.retransmitted)),
            m.over(&case(congestion, Neighbour::Twin), |m| jain(&shares(m))),
            Summary::of(kept.into_iter().map(|g| g / measure * 100.0)),
        ];
        ControlNumbers { name: congestion_name(congestion), numbers }
    }
    fn json(&self) -> Value {
        let mut json = json!({ "name": self.name });
        for ((key, ..), number) in QUANTITIES.into_iter().zip(&self.numbers) {
            json[key] = json!(number);
        }
        json
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a path that `--path` names cannot be read, has nothing that limits it, or is short of data.
    #[test]
    fn every_path_can_be_run() {
        for (word, text) in PATHS {
            let scenario = Scenario::parse(text, word).unwrap_or_else(|e| panic!("{e}"));
            let flow = &scenario.flows[0];
            let rate = scenario.bottleneck(flow).unwrap().rate;
            let bdp = rate.bytes_in(scenario.base_rtt(flow));
            let window = flow.receiver.resolve().unwrap().receive_buffer.max;
            assert!(window.get() >= 2 * bdp.get(), "{word}: the window of {window} limits, {bdp} in flight");
            assert!(endless(Some(rate), scenario.duration) > rate.bytes_in(scenario.duration));
        }
    }

    /// Breaks: a table says "alone" of a flow that is beside others of its scenario, or a round trip is
    /// printed in nanoseconds.
    #[test]
    fn other_flows_of_a_scenario_are_told() {
        let mut base = ControlComparison::named_path("lossy", &[]).unwrap().unwrap();
        let of = |base: &Scenario| {
            let controls = vec![Congestion::Cubic];
            ControlComparison::new("lossy", base.clone(), controls, 1, None).unwrap()
        };
        assert!(of(&base).company().is_empty());
        let mut late = base.flows[0].clone();
        late.name = "late".into();
        base.flows.push(late);
        let comparison = of(&base);
        assert_eq!(comparison.company(), ["flow late"]);
        let alone = ControlCase { congestion: Congestion::Cubic, neighbour: Neighbour::None };
        assert_eq!(comparison.scenario(alone, 1).flows.len(), 2);
        let page = comparison.report(&Measured::new(&comparison, []), "c").page.render();
        assert!(page.contains("flow late") && page.contains("beside flow late"), "{page}");
        let (_, after) = page.split_once("round trip with empty queues is ").unwrap();
        assert!(after.split_once('.').is_some_and(|_| after.contains(" ms.")), "{after}");
        assert!(!after[..40].contains(" ns"), "{}", &after[..40]);
    }
}
