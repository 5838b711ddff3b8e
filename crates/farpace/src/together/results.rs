//! What came out: a line for each kind of sender.

use super::cures::{Cure, Cures, Era, Sender};
use super::devices::{self, Device};
use super::measure::Measurement;
use super::plan::{Plan, combinations, senders};
use crate::statistics::Summary;
use farpace_report::{Table, TableCell, TableColumn};
use serde_json::{Value, json};

/// One kind of sender.
#[derive(Clone, Debug)]
pub struct Line {
    /// Who sends.
    pub sender: Sender,
    /// Mbit/s.
    pub goodput: Summary,
    /// Seconds.
    pub silence: Summary,
    /// Of 1,000 data segments.
    pub congestion_lost: Summary,
    /// Of 1,000 data segments.
    pub errors_lost: Summary,
    /// Of 1,000 data segments.
    pub spurious: Summary,
    /// ACKs for 100 data segments.
    pub acks: Summary,
    /// Its smallest and largest value.
    pub range: (f64, f64),
    /// The first run, for pictures.
    pub first: Measurement,
}

/// All lines of one path.
#[derive(Clone, Debug)]
pub struct Results {
    /// What was to be measured.
    pub plan: Plan,
    /// In the order of the plan.
    pub lines: Vec<Line>,
    /// The same on devices, if that was asked for.
    pub devices: Vec<Device>,
}

impl Results {
    /// `measured` in the order of the plan's jobs.
    pub fn new(plan: Plan, measured: Vec<Measurement>) -> Results {
        let mut lines = Vec::new();
        let runs = measured.chunks(usize::try_from(plan.seeds).unwrap_or(usize::MAX).max(1));
        for (sender, runs) in senders().into_iter().zip(runs) {
            let Some(first) = runs.first() else { continue };
            let of = |value: fn(&Measurement) -> f64| Summary::of(runs.iter().map(value));
            lines.push(Line {
                sender,
                goodput: of(|m| m.goodput),
                silence: of(|m| m.silence),
                congestion_lost: of(|m| m.congestion_lost),
                errors_lost: of(|m| m.errors_lost),
                spurious: of(|m| m.spurious),
                acks: of(|m| m.acks),
                range: runs
                    .iter()
                    .fold((f64::MAX, 0.0), |(lo, hi), m| (m.goodput.min(lo), m.goodput.max(hi))),
                first: first.clone(),
            });
        }
        Results { plan, lines, devices: Vec::new() }
    }
    /// The line of a sender.
    pub fn line(&self, sender: Sender) -> Option<&Line> {
        self.lines.iter().find(|line| line.sender == sender)
    }
    /// Mean goodput in Mbit/s; NaN if it was not measured.
    pub fn goodput(&self, sender: Sender) -> f64 {
        self.line(sender).map_or(f64::NAN, |line| line.goodput.mean)
    }
    /// Those of an era.
    pub fn of(&self, era: Era) -> impl Iterator<Item = &Line> {
        combinations().filter_map(move |cures| self.line(Sender::Cured(era, cures)))
    }
    /// Those from elsewhere.
    pub fn outsiders(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| matches!(line.sender, Sender::Outsider { .. }))
    }
    /// What the path carries, in Mbit/s of payload, without what a window needs to open and errors cost.
    pub fn ceiling(&self) -> f64 {
        let base = &self.plan.base;
        let bottleneck = base.flows.first().and_then(|flow| base.bottleneck(flow));
        bottleneck.map_or(f64::NAN, |b| b.goodput.as_mbit_f64())
    }
    /// The cures of an era without which all others together carry more than with it, by at least 2 %: it stands in their way.
    pub fn hinder(&self, era: Era) -> Vec<(Cure, f64)> {
        let all = self.goodput(Sender::Cured(era, Cures::all()));
        let without = |cure: Cure| self.goodput(Sender::Cured(era, Cures::all().without(cure)));
        Cure::ALL.into_iter().map(|cure| (cure, without(cure))).filter(|(_, g)| *g > all * 1.02).collect()
    }
    /// The best in a sentence.
    pub fn verdict(&self) -> String {
        let of = |sender: Sender| self.goodput(sender);
        let today = of(Sender::Cured(Era::Today, Cures::all()));
        let best_other = self.outsiders().map(|l| (l.goodput.mean, l.sender.to_string()));
        let (other, name) = best_other.fold((0.0, String::new()), |a, b| if b.0 > a.0 { b } else { a });
        format!(
            "{}: all five cures of today carry {today:.1} of {:.1} Mbit/s, none of them {:.1}; all five as printed {:.1}; the best outsider \
             ({name}) {other:.1}.",
            self.plan.base.title,
            self.ceiling(),
            of(Sender::Cured(Era::Today, Cures::NONE)),
            of(Sender::Cured(Era::Printed, Cures::all())),
        )
    }
    /// A table of some lines.
    pub fn table<'a>(&self, title: &str, lines: impl Iterator<Item = &'a Line>) -> Table {
        let columns = vec![
            TableColumn::text("cures"),
            TableColumn::number("goodput", "Mbit/s"),
            TableColumn::number("of the ceiling", "%"),
            TableColumn::number("longest silence", "s"),
            TableColumn::number("lost to congestion", "of 1,000"),
            TableColumn::number("to bit errors", "of 1,000"),
            TableColumn::number("sent again for nothing", "of 1,000"),
            TableColumn::number("ACKs", "for 100 segments"),
        ];
        let mut table = Table::new(title, columns);
        for line in lines {
            let cell = |s: &Summary, decimals| TableCell::from(s.text(decimals));
            table.row(vec![
                line.sender.to_string().into(),
                cell(&line.goodput, 2),
                format!("{:.0}", line.goodput.mean * 100.0 / self.ceiling()).into(),
                cell(&line.silence, 1),
                cell(&line.congestion_lost, 2),
                cell(&line.errors_lost, 2),
                cell(&line.spurious, 2),
                cell(&line.acks, 1),
            ]);
        }
        table
    }
    /// The tables with their titles.
    pub fn tables(&self) -> Vec<Table> {
        let (time, seeds) = (self.plan.time, self.plan.seeds);
        let of =
            format!("{time} each, {seeds} seed{}", if seeds == 1 { "" } else { "s, mean ± 95 % confidence" });
        let name = self.plan.meeting.name;
        let mut tables: Vec<Table> = Era::ALL
            .map(|era| self.table(&format!("{name}: cures {} ({of})", era.name()), self.of(era)))
            .into();
        tables.push(self.table(&format!("{name}: outsiders ({of})"), self.outsiders()));
        tables.extend((!self.devices.is_empty()).then(|| devices::table(self)));
        tables
    }
    /// For a terminal.
    pub fn text(&self) -> String {
        let mut out = format!("{}\n\n", self.verdict());
        for table in self.tables() {
            out.push_str(&table.to_text());
            out.push('\n');
        }
        for era in Era::ALL {
            for (cure, without) in self.hinder(era) {
                out.push_str(&format!(
                    "Without {} the other four, {}, carry more: {without:.2} Mbit/s.\n",
                    cure.name(),
                    era.name()
                ));
            }
        }
        out
    }
    fn json(&self) -> Value {
        let line = |l: &Line| {
            let mut line = identity(l.sender);
            line["goodput_mbit_s"] = json!(l.goodput);
            line["longest_silence_s"] = json!(l.silence);
            line["lost_to_congestion_per_1000"] = json!(l.congestion_lost);
            line["lost_to_errors_per_1000"] = json!(l.errors_lost);
            line["sent_again_for_nothing_per_1000"] = json!(l.spurious);
            line["acks_per_100"] = json!(l.acks);
            line
        };
        json!({
            "path": self.plan.meeting.name,
            "title": self.plan.base.title,
            "time_s": self.plan.time.as_secs_f64(),
            "seeds": self.plan.seeds,
            "ceiling_mbit_s": self.ceiling(),
            "senders": self.lines.iter().map(line).collect::<Vec<Value>>(),
            "on_devices": devices::json(&self.devices),
        })
    }
}

/// Who sends, for programs.
pub fn identity(sender: Sender) -> Value {
    let (era, cures, who) = match sender {
        Sender::Cured(era, cures) => {
            let on: Vec<&str> =
                Cure::ALL.into_iter().filter(|cure| cures.has(*cure)).map(Cure::name).collect();
            (Some(if era == Era::Printed { "printed" } else { "today" }), on, "farpace")
        }
        Sender::Outsider { congestion, cards } => {
            (None, if cards { vec!["pacing", "cards"] } else { Vec::new() }, congestion)
        }
    };
    json!({ "sender": who, "era": era, "cures": cures })
}

/// For programs; docs/json.md describes it.
pub fn json(all: &[Results]) -> Value {
    json!({ "format": "farpace-together/1", "paths": all.iter().map(Results::json).collect::<Vec<Value>>() })
}
