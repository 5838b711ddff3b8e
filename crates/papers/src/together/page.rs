//! The report: text, tables, figures and JSON for each path.

use super::{
    ChosenPath, DeviceRun, Era, PATHS, Solution, SolutionSender, SolutionSet, SolvedTransfer, Together,
    TogetherCase,
};
use crate::experiment::Measured;
use crate::report::ExperimentReport;
use crate::statistics::Summary;
use farpace_report::{
    ComparedEstimate, ComparisonRow, Figure, Page, Sides, Table, TableCell, TimeLine, cells, comparison_of,
    lines,
};
use serde_json::{Value, json};

/// Key of the JSON, head of the table, decimals, and its number of a run.
type Quantity = (&'static str, &'static str, usize, fn(&SolvedTransfer) -> f64);

const QUANTITIES: [Quantity; 6] = [
    ("goodput_mbit_s", "goodput [Mbit/s] | of the ceiling [%]", 2, |m| m.goodput),
    ("longest_silence_s", "longest silence [s]", 1, |m| m.silence),
    ("lost_to_congestion_per_1000", "lost to congestion [of 1,000]", 2, |m| m.congestion_lost),
    ("lost_to_errors_per_1000", "to bit errors [of 1,000]", 2, |m| m.errors_lost),
    ("sent_again_for_nothing_per_1000", "sent again for nothing [of 1,000]", 2, |m| m.spurious),
    ("acks_per_100", "ACKs [for 100 segments]", 1, |m| m.acks),
];

/// Senders over one path.
struct PathResults<'m> {
    m: &'m Measured<'m, Together>,
    path: &'m ChosenPath,
}

/// The whole report.
pub fn report(m: &Measured<'_, Together>, command: &str) -> ExperimentReport {
    let mut page = Page::new("Five solutions on one path");
    page.paragraph(
        "Five papers each solved one reason why TCP fails on far networks, each on a path with that one \
         impairment. Here are paths with all of them. Every solution is there as its paper publishes it, in \
         a Linux 2.6.17, and with what is known now; each alone, all but one, and all. Some stand in each \
         other's way.",
    );
    let all: Vec<PathResults<'_>> = m.of.paths.iter().map(|path| PathResults { m, path }).collect();
    all.iter().for_each(|path| path.add_to(&mut page));
    page.paragraph(
        "Goodput counts from connecting, so that the time in which the window opens is in it. The ceiling is \
         what the contracts let pass, as payload. Silence is the longest time without a byte after the first \
         one. Lost to congestion: by a policer or a full queue.",
    );
    page.heading("How to repeat this").command(command);
    for path in &m.of.paths {
        page.details(&format!("The scenario: {}", path.file()), PATHS[path.place].2);
    }
    let json = json!({
        "format": "farpace-together/1",
        "paths": all.iter().map(PathResults::json).collect::<Vec<Value>>(),
    });
    ExperimentReport::new(page, format!("Five solutions on one path: {} runs", m.count()), json)
}

impl PathResults<'_> {
    fn case(&self, sender: SolutionSender) -> TogetherCase {
        TogetherCase { path: self.path.place, sender }
    }
    fn over(&self, sender: SolutionSender, of: fn(&SolvedTransfer) -> f64) -> Summary {
        self.m.over(&self.case(sender), of)
    }
    fn goodput(&self, sender: SolutionSender) -> Summary {
        self.over(sender, |m| m.goodput)
    }
    fn outsiders() -> impl Iterator<Item = SolutionSender> {
        SolutionSender::all().into_iter().filter(|s| matches!(s, SolutionSender::Outsider { .. }))
    }
    fn devices(&self) -> impl Iterator<Item = (SolutionSender, &DeviceRun)> {
        let here = |(case, _): &&(TogetherCase, DeviceRun)| case.path == self.path.place;
        self.m.of.devices.iter().filter(here).map(|(case, run)| (case.sender, run))
    }

    fn add_to(&self, page: &mut Page) {
        let base = &self.path.base;
        page.heading(&base.title).paragraph(base.description.trim()).finding(&self.verdict());
        page.figure(&self.combinations()).figure(&self.arrived());
        let has_devices = self.devices().next().is_some();
        if has_devices {
            page.figure(&self.device_figure());
        }
        let (name, time, seeds) = (self.path.name(), self.path.time, self.m.of.seeds);
        let plural = if seeds == 1 { "" } else { "s, mean ± 95 % confidence" };
        let of = format!("({time} each, {seeds} seed{plural})");
        for era in Era::BOTH {
            let senders = SolutionSet::compared().map(|set| SolutionSender::Solved(era, set));
            page.table(&self.table(&format!("{name}: solutions {} {of}", era.name()), senders));
        }
        page.table(&self.table(&format!("{name}: outsiders {of}"), Self::outsiders()));
        if has_devices {
            page.table(&self.device_table());
        }
        for era in Era::BOTH {
            let all = self.goodput(SolutionSender::Solved(era, SolutionSet::ALL));
            for (solution, without) in self.in_the_way(era) {
                page.finding(&format!(
                    "Without {} the other four, {}, carry more: {} Mbit/s, with it {}. It stands in their \
                     way.",
                    solution.name(),
                    era.name(),
                    without.text(2),
                    all.text(2)
                ));
            }
        }
    }

    /// The solutions of an era without which all others [clearly](clearly_more) carry more than with it.
    fn in_the_way(&self, era: Era) -> Vec<(Solution, Summary)> {
        let goodput = |set| self.goodput(SolutionSender::Solved(era, set));
        let all = goodput(SolutionSet::ALL);
        let without = Solution::ALL.map(|solution| (solution, goodput(SolutionSet::ALL.without(solution))));
        without.into_iter().filter(|(_, mbit)| clearly_more(mbit, &all)).collect()
    }

    /// The best in a sentence.
    fn verdict(&self) -> String {
        let of = |era, set| self.goodput(SolutionSender::Solved(era, set)).mean;
        let outsiders = Self::outsiders().map(|sender| (self.goodput(sender).mean, sender.to_string()));
        let (other, name) = outsiders.fold((0.0, String::new()), |a, b| if b.0 > a.0 { b } else { a });
        format!(
            "{}: all five modern solutions carry {:.1} of {:.1} Mbit/s, none of them {:.1}; all five as \
             published {:.1}; the best outsider ({name}) {other:.1}.",
            self.path.base.title,
            of(Era::Modern, SolutionSet::ALL),
            self.path.ceiling(),
            of(Era::Modern, SolutionSet::NONE),
            of(Era::Published, SolutionSet::ALL),
        )
    }

    fn table(&self, title: &str, senders: impl Iterator<Item = SolutionSender>) -> Table {
        let heads = QUANTITIES.map(|(_, head, ..)| head).join(" | ");
        let mut table = Table::with(title, &format!("cures | {heads}"));
        for sender in senders.filter(|sender| self.m.has(&self.case(*sender))) {
            let mut row: Vec<TableCell> = vec![sender.to_string().into()];
            row.extend(QUANTITIES.map(|(.., decimals, of)| self.over(sender, of).text(decimals).into()));
            let part = self.goodput(sender).mean * 100.0 / self.path.ceiling();
            row.insert(2, format!("{part:.0}").into());
            table.row(row);
        }
        table
    }

    /// Goodput of all combinations.
    fn combinations(&self) -> Figure {
        let estimate = |sender| {
            let goodput = self.goodput(sender);
            let range = (self.m.of.seeds > 1).then_some((goodput.min, goodput.max));
            goodput.mean.is_finite().then_some(ComparedEstimate { mean: goodput.mean, range })
        };
        let solved = SolutionSet::compared().map(|set| {
            let [published, modern] = Era::BOTH.map(|era| SolutionSender::Solved(era, set));
            (modern.to_string(), [estimate(published), estimate(modern)])
        });
        let others = Self::outsiders().map(|sender| (sender.to_string(), [None, estimate(sender)]));
        let all: Vec<_> = solved.chain(others).collect();
        let rows: Vec<ComparisonRow<'_>> =
            all.iter().map(|(label, values)| ComparisonRow { label, values: *values }).collect();
        let name = self.path.name();
        let sides = Sides { names: ["as published", "modern, and outsiders"], missing: ["", ""] };
        let runs = match self.m.of.seeds {
            1 => "One run each".to_owned(),
            n => format!("Means and ranges of {n} runs each"),
        };
        let title = format!("What each cure brings ({name})");
        comparison_of(&title, "goodput (Mbit/s)", sides, &rows).figure(
            &format!("figures/{name}-goodput.svg"),
            &format!("{runs}. The path can carry {:.1} Mbit/s.", self.path.ceiling()),
        )
    }

    /// What has arrived over time with some of the senders.
    fn arrived(&self) -> Figure {
        let shown = [
            ("all five, modern", SolutionSender::Solved(Era::Modern, SolutionSet::ALL)),
            ("all five, as published", SolutionSender::Solved(Era::Published, SolutionSet::ALL)),
            ("no solution, modern", SolutionSender::Solved(Era::Modern, SolutionSet::NONE)),
            ("Linux, BBRv3", SolutionSender::Outsider { congestion: "bbr3", below: false }),
            ("Linux, CUBIC", SolutionSender::Outsider { congestion: "cubic", below: false }),
        ];
        let line = |(label, sender): &(&'static str, SolutionSender)| {
            let first = self.m.first(&self.case(*sender))?;
            let mut sum = 0.0;
            let points = first.bins.iter().map(|(at, bytes)| {
                sum += *bytes as f64 / 1e6;
                (*at, sum)
            });
            Some(TimeLine { label, points: points.collect() })
        };
        let all: Vec<TimeLine<'_>> = shown.iter().filter_map(line).collect();
        let name = self.path.name();
        lines(&format!("What has arrived ({name})"), "payload (MB)", &all, None).figure(
            &format!("figures/{name}-arrived.svg"),
            "Everything that has arrived since the connection was opened: the slope is the goodput, a level \
             stretch a silence.",
        )
    }

    /// Devices beside virtual time.
    fn device_table(&self) -> Table {
        let title = format!(
            "{}: in virtual time ({} runs) and on devices (one run), {} each",
            self.path.name(),
            self.m.of.seeds,
            self.path.time
        );
        let mut table = Table::with(
            title,
            "modern solutions, and outsiders | virtual time [Mbit/s] | least to most [Mbit/s] | devices \
             [Mbit/s] | devices / virtual [] | 99 % of packets late by less than [ms]",
        );
        for (sender, run) in self.devices() {
            let goodput = self.goodput(sender);
            let range = format!("{:.2}-{:.2}", goodput.min, goodput.max);
            let ratio = (run.goodput / goodput.mean, 3);
            table.row(cells![
                sender.to_string(),
                (goodput.mean, 2),
                range,
                (run.goodput, 2),
                ratio,
                (run.late_ms, 2)
            ]);
        }
        table
    }

    /// The same as a picture.
    fn device_figure(&self) -> Figure {
        let all: Vec<_> = self.devices().map(|(sender, run)| (sender.to_string(), sender, run)).collect();
        let rows: Vec<ComparisonRow<'_>> = all
            .iter()
            .map(|(label, sender, run)| {
                let on_devices = ComparedEstimate { mean: run.goodput, range: None };
                let values = [Some(self.goodput(*sender).with_range()), Some(on_devices)];
                ComparisonRow { label, values }
            })
            .collect();
        let name = self.path.name();
        let sides = Sides { names: ["in virtual time", "on devices"], missing: ["", ""] };
        comparison_of(&format!("Lab and devices ({name})"), "goodput (Mbit/s)", sides, &rows).figure(
            &format!("figures/{name}-devices.svg"),
            "The same TCP, the same pacing and the same elements. On devices other packets meet bit errors, \
             and packets leave as late as the machine lets them.",
        )
    }

    fn json(&self) -> Value {
        let senders = SolutionSender::all().into_iter().filter(|sender| self.m.has(&self.case(*sender)));
        let senders = senders.map(|sender| {
            let mut json = identity(sender);
            for (key, _, _, of) in QUANTITIES {
                json[key] = json!(self.over(sender, of));
            }
            json
        });
        let devices = self.devices().map(|(sender, run)| {
            let mut json = identity(sender);
            json["run"] = run.json.clone();
            json
        });
        json!({
            "path": self.path.name(),
            "title": self.path.base.title,
            "time_s": self.path.time.as_secs_f64(),
            "seeds": self.m.of.seeds,
            "ceiling_mbit_s": self.path.ceiling(),
            "senders": senders.collect::<Vec<Value>>(),
            "on_devices": devices.collect::<Vec<Value>>(),
        })
    }
}

/// True if `a` is above `b` by at least 2 % and by more than chance explains: the confidence intervals of
/// both means do not meet. A single run says nothing about chance.
fn clearly_more(a: &Summary, b: &Summary) -> bool {
    a.runs > 1 && b.runs > 1 && a.mean > b.mean * 1.02 && a.mean - a.ci95 > b.mean + b.ci95
}

/// Who sends, for programs.
fn identity(sender: SolutionSender) -> Value {
    let (name, era) = match sender {
        SolutionSender::Solved(era, _) => ("farpace", Some(era.id())),
        SolutionSender::Outsider { congestion, .. } => (congestion, None),
    };
    json!({ "sender": name, "era": era, "cures": sender.solutions().names() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: the page judges by a difference that is smaller than the spread, or by a single run.
    #[test]
    fn chance_is_no_judgement() {
        let of = |values: &[f64]| Summary::of(values.iter().copied());
        assert!(clearly_more(&of(&[178.0, 177.0, 179.0]), &of(&[172.0, 171.5, 172.5])));
        assert!(!clearly_more(&of(&[170.0, 178.0, 185.0]), &of(&[172.0, 165.0, 179.0])), "the spread");
        assert!(!clearly_more(&of(&[178.0]), &of(&[172.0])), "one run each");
        assert!(!clearly_more(&of(&[173.0, 173.1]), &of(&[172.0, 172.0])), "less than 2 %");
    }
}
