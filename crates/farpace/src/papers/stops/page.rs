//! The report, for a reader who has not heard of farpace or of the paper.

use super::claims::state_name;
use super::measure::{self, Measurement};
use super::payload::Source;
use super::plan::{Job, Key, MAIN_WINDOW, PAPER, Plan, SCENARIO, SMALL_WINDOW, TABLE_2, Variant as V};
use super::results::{POLICED, Results, crawls};
use super::rows::{self, printed};
use super::{Args, tables};
use crate::papers::Report;
use anyhow::Result;
use farpace_events::{Record, RecordSink};
use farpace_report::{
    BandwidthSeries, BinInterval, ComparedEstimate, ComparisonRow, Drawing, Figure, FlightRecorder, Page,
    RateLimit, Reproduction, WindowHistory, bandwidth, comparison, time_sequence, variables, window,
};
use farpace_units::{ByteCount, Span};

/// Around the first loss of the figures' transfer.
const BEFORE: Span = Span::from_millis(40);
const AFTER: Span = Span::from_millis(160);
/// Payload of a packet.
const MSS: ByteCount = ByteCount::new(1448);

/// What the figures are drawn from besides the results: one transfer in full.
pub struct Figures {
    phase: u32,
    window: WindowHistory,
    recorder: FlightRecorder,
}

impl RecordSink for Figures {
    fn record(&mut self, record: &Record) {
        self.window.record(record);
        if !self.recorder.done() {
            self.recorder.record(record);
        }
    }
}

impl Figures {
    /// Makes the typical transfer of 2.6.17 once more, with all records.
    ///
    /// # Errors
    /// As the first time.
    pub fn measure(plan: &Plan, results: &Results, payload: &Source) -> Result<Figures> {
        let key = Key::deep(V::Linux2617, MAIN_WINDOW);
        let phase = results.group(key).typical().unwrap_or(0);
        let mut figures =
            Figures { phase, window: WindowHistory::new(0), recorder: FlightRecorder::new(0, BEFORE, AFTER) };
        measure::record(&plan.scenario(&Job { key, phase })?, payload.payload(), &mut figures)?;
        Ok(figures)
    }
}

/// The report.
pub fn report(args: &Args, results: &Results, reproduction: &Reproduction, figures: &Figures) -> Report {
    let drawn = draw(results, figures);
    Report {
        html: page(args, results, reproduction, &drawn),
        figures: drawn.all().into_iter().cloned().collect(),
        telling: &["figures/bandwidth-2.6.17.svg", "figures/bandwidth-cured.svg"],
        verdict: verdict(results, reproduction).0,
        table: tables::table_2(results, MAIN_WINDOW),
    }
}

struct Drawn {
    comparison: Figure,
    patient: Figure,
    window: Figure,
    sequence: Figure,
    variables: Figure,
    cured: Figure,
}

impl Drawn {
    fn all(&self) -> [&Figure; 6] {
        let Drawn { comparison, patient, window, sequence, variables, cured } = self;
        [comparison, patient, window, sequence, variables, cured]
    }
}

fn draw(results: &Results, figures: &Figures) -> Drawn {
    let typical = results.main(V::Linux2617).runs.get(&figures.phase).cloned();
    let records = figures.recorder.clone().into_records();
    let origin = figures.recorder.origin().unwrap_or_default();
    Drawn {
        comparison: compare(results),
        patient: patient(typical.as_ref()),
        window: window("Window of the same transfer of linux-2.6.17", &figures.window).figure(
            "figures/window.svg",
            "What the sender allowed itself, in packets (the paper's Fig. 4). After a loss the congestion window falls \
             to one or a few packets and stays there for seconds: in Recovery, because nothing raises it there, and \
             after a timeout in Loss, because the byte counter that should raise it is not fed.",
        ),
        sequence: time_sequence("The first loss, packet by packet", &records, origin, None).figure(
            "figures/time-sequence.svg",
            "The beginning of the first stop (the paper's Fig. 5). The bucket has run dry and about half of a window is \
             dropped, twenty packets at a time; the receiver reports what came (SACK). The sender repeats what is \
             missing, and part of this is dropped as well. It does not notice in time, and from then on sends single \
             packets, a round trip apart.",
        ),
        variables: variables("What the sender believed meanwhile", &records, MSS, None).figure(
            "figures/variables.svg",
            "The sender's own variables at each ACK of the same moments (the paper's Fig. 6). Repeated packets that \
             were dropped stay in retrans_out: they are believed to be under way. When they are given up at last, all \
             at once, next to nothing is in flight. The window is not more than in_flight + 1, and in Recovery nothing \
             raises it: some packets per round trip, for hundreds of losses.",
        ),
        cured: cured(results),
    }
}

fn compare(results: &Results) -> Figure {
    let groups = TABLE_2.map(|v| (v, results.main(v)));
    let rows: Vec<ComparisonRow<'_>> = groups
        .iter()
        .map(|(variant, group)| {
            let time = group.time();
            let paper = printed(*variant);
            ComparisonRow {
                label: variant.label(),
                values: [
                    paper.map(|p| ComparedEstimate { mean: p.time[0], range: Some((p.time[2], p.time[1])) }),
                    Some(ComparedEstimate { mean: time.mean, range: Some((time.min, time.max)) }),
                ],
            }
        })
        .collect();
    let title = format!("Time for {}, window of {MAIN_WINDOW} packets", results.size);
    comparison(&title, "completion time (s)", &rows).figure(
        "figures/comparison.svg",
        &format!(
            "Less is better. The policer lets {} pass in {:.1} s at best, so the cure leaves hardly anything to gain.",
            results.size,
            results.least_seconds()
        ),
    )
}

const LIMITS: [RateLimit<'static>; 1] = [RateLimit { label: "policed rate", rate: POLICED }];

fn patient(run: Option<&Measurement>) -> Figure {
    let silences = run.map(crawls).unwrap_or_default();
    let series =
        run.map(|m| BandwidthSeries { label: "linux-2.6.17", bins: &m.bandwidth, silences: &silences });
    let series: Vec<BandwidthSeries<'_>> = series.into_iter().collect();
    let drawing = bandwidth("A typical transfer with linux-2.6.17: it stops", &series, &LIMITS);
    let longest = run.and_then(|m| m.longest).map_or_else(String::new, |s| {
        format!(" The longest stop took {:.1} s, in state {}.", s.span.as_secs_f64(), state_name(s.state))
    });
    drawing.figure(
        "figures/bandwidth-2.6.17.svg",
        &format!(
            "What arrives at the receiver per 10 ms (the paper's Fig. 1). Nothing is wrong with the path. In the \
             shaded stretches less than 2 % of the policed rate passes, in the longest of them one packet per round \
             trip.{longest}"
        ),
    )
}

fn cured(results: &Results) -> Figure {
    let groups = [V::Linux2622, V::Fix].map(|v| (v.label(), results.main(v)));
    let runs: Vec<(&str, &Measurement, Vec<BinInterval>)> =
        groups.iter().filter_map(|(label, group)| group.slowest().map(|m| (*label, m, crawls(m)))).collect();
    let series: Vec<BandwidthSeries<'_>> = runs
        .iter()
        .map(|(label, m, silences)| BandwidthSeries { label, bins: &m.bandwidth, silences })
        .collect();
    let drawing: Drawing =
        bandwidth("The slowest transfers of linux-2.6.22 and of the fix", &series, &LIMITS);
    drawing.figure(
        "figures/bandwidth-cured.svg",
        "The same for two cures (the paper's Fig. 8). 2.6.22 swings between nothing and the line rate: it still \
         overlooks lost retransmissions and waits 0.2 s for its timer, and where it finds them late its window stays \
         at 2 or 3 packets for seconds (shaded, if that happened). The fix notices them at once and stays near the \
         policed rate.",
    )
}

fn page(args: &Args, results: &Results, reproduction: &Reproduction, drawn: &Drawn) -> String {
    let mut page = Page::new("Why transfers behind a policer stop for seconds, and what cures it");
    let (verdict, good) = verdict(results, reproduction);
    page.verdict(&verdict, good);
    page.paragraph(
        "A transfer over a long, fast path runs through a router that polices: it passes 500 Mbit/s and drops the rest. \
         The router's bucket of 16 MB hides the limit at first. By the time it is empty, thousands of packets are under \
         way, and half of them are dropped at once, and then part of what is sent again. TCP has to notice that its \
         retransmissions were lost as well. Linux 2.6.17 did not, for three reasons: it lost some of what the receiver \
         reported when it sorted the report (the sort defect); it looked through its list of packets only once per \
         ACK and compared each with the wrong part of the report (the one-pass defect); and after a timeout it did not \
         let its window grow (the ABC defect). Linux 2.6.22 had the first and the last repaired. The paper cured the \
         one-pass defect.",
    );
    page.paragraph(&format!(
        "Here the same transfers run in virtual time: {} of them, {} each, through a model of the same path, with the \
         historical loss recovery rebuilt defect by defect. Every byte received was compared with the byte sent.",
        results.transfers(),
        results.size,
    ));
    page.heading("The paper's Table 2, beside what was measured");
    page.table(&tables::table_2(results, MAIN_WINDOW)).figure(&drawn.comparison);
    page.heading("A transfer that stops");
    page.figure(&drawn.patient).figure(&drawn.window).figure(&drawn.sequence).figure(&drawn.variables);
    page.heading("The cures").figure(&drawn.cured);
    page.heading("Claims").claims(&reproduction.claims);
    page.heading("Which defect does what").paragraph(
        "Single defects put back into the fix, or single repairs made to 2.6.17, and other ways to repair. Rows of one \
         table ran with the same policer phases.",
    );
    for window in tables::switch_windows(results) {
        page.table(&tables::switches(results, window));
    }
    if results.windows.len() > 1 {
        page.heading("Other receive windows").paragraph(
            "The paper does not state its receive window, and the outcome depends on it. Its buffers of 3,000,000 bytes \
             would announce 1554 packets; with 2500 the model comes closest to the paper.",
        );
        for window in results.windows.iter().filter(|w| **w != MAIN_WINDOW) {
            page.table(&tables::table_2(results, *window));
        }
    }
    page.heading("A shallow bucket").paragraph(
        "With 256 kB the bucket is empty long before a window is large. Few packets are lost at a time, and 2.6.17 does \
         not stop.",
    );
    page.table(&tables::shallow(results));
    page.heading("What the paper leaves open, and what it changes");
    page.table(&open_points(results));
    page.heading("How to repeat this").command(&command(args)).paragraph(
        "The result does not depend on the machine or on the number of threads. A single transfer, with captures and a \
         table of every ACK:",
    );
    page.command("farpace run scenarios/papers/stops.toml --set flows.bulk.sender.profile=linux-2.6.17 --out stops-2.6.17");
    page.details("The scenario all transfers are made from", SCENARIO);
    page.paragraph(&format!("The paper: {PAPER}."));
    page.render()
}

/// What came out, in a sentence or two, and whether it is what the paper says.
fn verdict(results: &Results, reproduction: &Reproduction) -> (String, bool) {
    let [old, newer, fix] = TABLE_2.map(|v| results.main(v));
    let failed = reproduction.claims.iter().filter(|c| !c.holds).count();
    let key = ["order/window-2500", "fix-saturates", "patient-stops", "cured-do-not-stop"];
    let good = reproduction.claims.iter().filter(|c| key.contains(&c.id.as_str())).all(|c| c.holds);
    let verdict = format!(
        "The paper's result {}: {:.1} s with linux-2.6.17, {:.1} s with linux-2.6.22, {:.1} s with the paper's fix \
             for {} (means; paper, for 1 GB: 52.4, 21.3 and 16.6 s). Of {} claims {} hold{}.",
        if good { "is confirmed" } else { "is not confirmed" },
        old.time().mean,
        newer.time().mean,
        fix.time().mean,
        results.size,
        reproduction.claims.len(),
        reproduction.claims.len() - failed,
        if failed == 0 { "" } else { "; those that fail say why" },
    );
    (verdict, good)
}

/// Assumptions and their effect.
fn open_points(results: &Results) -> farpace_report::Table {
    use farpace_report::{Table, TableColumn};
    let mut table = Table::new("", vec![TableColumn::text("assumed"), TableColumn::text("effect")]);
    let means = |variant: V| {
        let means =
            results.windows.iter().map(|w| format!("{:.1} s at {w}", results.deep(variant, *w).time().mean));
        means.collect::<Vec<String>>().join(", ")
    };
    let spread = |variant: V| {
        let time = results.main(variant).time();
        format!("{:.1} to {:.1} s", time.min, time.max)
    };
    let mut points = rows::assumptions(results).into_iter();
    let mut add = |assumed: String, effect: String| {
        table.row(vec![assumed.into(), effect.into()]);
    };
    add(
        format!("The receive window: {} packets; not stated in the paper", list(&results.windows)),
        format!(
            "Large for the defects, small for the fix. 2.6.17: {}; fix: {}",
            means(V::Linux2617),
            means(V::Fix)
        ),
    );
    add(points.next().unwrap_or_default(), "None.".to_owned());
    add(
        points.next().unwrap_or_default(),
        format!(
            "The phase alone moves 2.6.17 from {} and the fix from {} (window {MAIN_WINDOW}). At window \
             {SMALL_WINDOW} it decides how many timeouts the fix has.",
            spread(V::Linux2617),
            spread(V::Fix)
        ),
    );
    add(
        points.next().unwrap_or_default(),
        "2.6.17 and 2.6.22 are faster here than they were; the paper's spread (26 to 103 s) is wider than ours.".to_owned(),
    );
    table
}

fn list(windows: &[u32]) -> String {
    windows.iter().map(u32::to_string).collect::<Vec<String>>().join(", ")
}

fn command(args: &Args) -> String {
    let mut line = "farpace papers stops".to_owned();
    if args.quick {
        line.push_str(" --quick");
    }
    if let Some(phases) = args.phases {
        line.push_str(&format!(" --phases {phases}"));
    }
    for (key, value) in &args.set {
        line.push_str(&format!(" --set {key}=\"{value}\""));
    }
    line
}
