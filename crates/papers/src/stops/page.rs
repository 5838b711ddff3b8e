//! The report: text, tables and figures.

use super::cases::{KernelVariant as V, PolicedCase, SHALLOW, SMALL_WINDOW, TABLE_2, published};
use super::transfer::{POLICED, PolicedGroup, PolicedTransfer};
use super::{StopsPaper, rows};
use crate::experiment::{MeasureError, Measured, StopRequest};
use crate::observe::{PaperObserver, observe};
use crate::statistics::Summary;
use farpace_events::{Record, RecordSink};
use farpace_lab::scenario::Scenario;
use farpace_lab::{Inputs, Payload};
use farpace_report::{
    BandwidthSeries, ComparedEstimate, ComparisonRow, Figure, FlightRecorder, Page, RateLimit,
    ReproductionClaim, Table, TableCell, WindowHistory, bandwidth, cells, comparison, time_sequence,
    variables, window,
};
use farpace_units::{ByteCount, Span};
use std::collections::BTreeSet;

/// Payload of a packet.
const MSS: ByteCount = ByteCount::new(1448);
const LIMITS: [RateLimit<'static>; 1] = [RateLimit { label: "policed rate (of IP bytes)", rate: POLICED }];

/// One transfer in full, for figures.
pub struct Closeup {
    phase: u64,
    window: WindowHistory,
    /// Around the first loss.
    recorder: FlightRecorder,
}

impl PaperObserver for Closeup {
    fn record(&mut self, record: &Record) {
        self.window.record(record);
        if !self.recorder.done() {
            self.recorder.record(record);
        }
    }
}

impl Closeup {
    /// Makes the transfer of `phase` again, with all records.
    ///
    /// # Errors
    /// As the first time.
    pub fn record(
        scenario: &Scenario,
        payload: Option<Payload>,
        phase: u64,
        stop: &StopRequest<'_>,
    ) -> Result<Self, MeasureError> {
        let recorder = FlightRecorder::new(0, Span::from_millis(40), Span::from_millis(160));
        let mut closeup = Closeup { phase, window: WindowHistory::new(0), recorder };
        observe(scenario, Inputs { payload, records: true, ..Inputs::default() }, &mut closeup, stop)?;
        Ok(closeup)
    }
}

/// The page between verdict and assumptions.
pub fn body(m: &Measured<'_, StopsPaper>, claims: &[ReproductionClaim], page: &mut Page) {
    page.paragraph(
        "A transfer over a long, fast path runs through a router that polices: it passes 500 Mbit/s and \
         drops the rest. The bucket of 16 MB hides the limit at first. By the time it is empty, thousands of \
         packets are in flight, and half of them are dropped at once, and then part of the retransmissions. \
         TCP has to notice that its retransmissions were lost as well. Linux 2.6.17 did not, for three \
         reasons. It lost some of what the receiver reported when it sorted the report (the sort defect). It \
         walked its list of packets only once per ACK and compared each with the wrong part of the report \
         (the one-pass defect). After a timeout it did not let its window grow (the ABC defect). Linux \
         2.6.22 had the first and the last repaired. The paper repaired the one-pass defect.",
    );
    page.paragraph(&format!(
        "Here the same transfers run in virtual time: {} of them, {} each, through a model of the same path, \
         with the historical loss recovery rebuilt defect by defect. Every byte received was compared with \
         the byte sent.",
        m.count(),
        m.of.size,
    ));
    page.heading("The paper's Table 2, beside what was measured");
    page.table(&table_2(m, m.of.main)).figure(&compared(m));
    page.heading("A transfer that stops");
    typical(m, page);
    page.heading("With repairs").figure(&repaired(m));
    page.heading("Claims").claims(claims);
    page.heading("Which defect does what").paragraph(
        "Single defects put back into the fix, or single repairs made to 2.6.17, and other ways to repair. \
         Rows of one table ran with the same policer phases.",
    );
    let defects: BTreeSet<u32> =
        m.cases().filter(|(case, _)| case.is_defect()).map(|(case, _)| case.window).collect();
    for window in defects {
        page.table(&switches(m, window));
    }
    let others: Vec<u32> = m.of.windows.iter().copied().filter(|w| *w != m.of.main).collect();
    if !others.is_empty() {
        page.heading("Other receive windows").paragraph(
            "The paper does not state its receive window, and the outcome depends on it. Its buffers of \
             3,000,000 bytes would announce 1554 packets. With 2500 the model is nearest to the paper.",
        );
        for window in others {
            page.table(&table_2(m, window));
        }
    }
    page.heading("A shallow bucket").paragraph(
        "With 256 kB the bucket is empty long before a window is large. Few packets are lost at a time, and \
         2.6.17 does not stop.",
    );
    page.table(&shallow(m)).heading("What the paper leaves open, and what it changes").table(&open_points(m));
}

/// Table 2 with one window: paper beside measurement.
pub fn table_2(m: &Measured<'_, StopsPaper>, window: u32) -> Table {
    let runs = m.deep(V::Fix, window).len();
    let mut table = Table::with(
        format!("Receive window of {window} packets, {runs} runs each; paper | measured"),
        "profile | time: paper [mean/max/min/sd, s] | measured [mean/max/min/sd, s] | goodput [Mbit/s] | \
         timeouts [mean] | least efficiency [%]",
    );
    let times = |of: [f64; 4]| of.map(|t| format!("{t:.1}")).join("/");
    let beside = |paper: Option<f64>, measured: f64, decimals: usize| {
        let paper = paper.map_or_else(|| "–".to_owned(), |p| format!("{p:.decimals$}"));
        format!("{paper} | {measured:.decimals$}")
    };
    for variant in TABLE_2 {
        let group = m.deep(variant, window);
        let p = published(variant);
        let p = p.as_ref();
        let Summary { mean, max, min, sd, .. } = group.time();
        table.row(cells![
            variant.label(),
            p.map(|p| times(p.time)),
            times([mean, max, min, sd]),
            beside(p.map(|p| p.goodput), group.goodput().mean, 0),
            beside(p.map(|p| p.timeouts), group.timeouts().mean, 1),
            beside(p.map(|p| p.min_efficiency), group.efficiency().min, 0),
        ]);
    }
    table
}

fn shallow(m: &Measured<'_, StopsPaper>) -> Table {
    let mut table = Table::with(
        "Bucket of 256 kB, receive window of 1554 packets",
        "profile | time: paper [s] | measured [mean, s] | efficiency: paper [%] | measured [mean, %] | \
         timeouts [mean] | longest silence [s]",
    );
    for (n, variant) in TABLE_2.into_iter().enumerate() {
        let group = m.group(PolicedCase::shallow(variant));
        table.row(cells![
            variant.label(),
            (n == 0).then(|| format!("about {:.0}", SHALLOW.0)),
            (group.time().mean, 1),
            (n == 0).then_some(SHALLOW.1),
            (group.efficiency().mean, 1),
            (group.timeouts().mean, 1),
            silence(&group),
        ]);
    }
    table
}

/// Every variant with one window, over the same phases.
fn switches(m: &Measured<'_, StopsPaper>, window: u32) -> Table {
    let all = m.cases().map(|(case, _)| *case).filter(|c| *c == PolicedCase::deep(c.variant, window));
    let groups: Vec<(V, PolicedGroup<'_>)> = all.map(|case| (case.variant, m.group(case))).collect();
    let few = groups.iter().map(|(_, group)| group).min_by_key(|g| g.len()).cloned().unwrap_or_default();
    let plural = if few.len() == 1 { "" } else { "s" };
    let mut table = Table::with(
        format!("Window of {window} packets, the same {} phase{plural} each", few.len()),
        "sender | time [mean, s] | goodput [Mbit/s] | timeouts [mean] | longest crawl [below 2 %, s] | \
         longest silence [s] | mostly in",
    );
    for (variant, group) in groups {
        let group = group.matching(&few);
        table.row(cells![
            variant.label(),
            (group.time().mean, 2),
            (group.goodput().mean, 1),
            (group.timeouts().mean, 1),
            group.crawl().map_or("none".into(), |s| TableCell::from((s, 1))),
            silence(&group),
            group.longest().map(|s| s.state_name()),
        ]);
    }
    table
}

fn silence(group: &PolicedGroup<'_>) -> TableCell {
    group.longest().map_or("none".into(), |s| (s.span().as_secs_f64(), 2).into())
}

fn compared(m: &Measured<'_, StopsPaper>) -> Figure {
    let rows = TABLE_2.map(|variant| {
        let paper = published(variant)
            .map(|p| ComparedEstimate { mean: p.time[0], range: Some((p.time[2], p.time[1])) });
        ComparisonRow { label: variant.label(), values: [paper, Some(m.main(variant).time().with_range())] }
    });
    let (size, min) = (m.of.size, m.of.min_seconds());
    let title = format!("Time for {size}, window of {} packets", m.of.main);
    comparison(&title, "completion time (s)", &rows).figure(
        "figures/comparison.svg",
        &format!(
            "Less is better. The policer lets {size} pass in {min:.1} s at best, so the fix leaves hardly \
             anything to gain."
        ),
    )
}

/// Figures of the typical transfer of 2.6.17.
fn typical(m: &Measured<'_, StopsPaper>, page: &mut Page) {
    let Some(closeup) = m.of.closeup.get() else { return };
    let run = m.main(V::Linux2617).0.get(&closeup.phase).copied();
    let bins = run.map(|m| (m.bandwidth(), m.crawls()));
    let series: Vec<BandwidthSeries<'_>> = bins
        .iter()
        .map(|(bins, silences)| BandwidthSeries { label: "linux-2.6.17", bins, silences })
        .collect();
    let longest = run.and_then(|m| m.longest).map_or_else(String::new, |s| {
        format!(" The longest stop took {:.1} s, in state {}.", s.span().as_secs_f64(), s.state_name())
    });
    page.figure(&bandwidth("A typical transfer with linux-2.6.17: it stops", &series, &LIMITS).figure(
        "figures/bandwidth-2.6.17.svg",
        &format!(
            "Frames that arrive at the receiver per 10 ms (the paper's Fig. 1), with their Ethernet headers, \
             which the policer does not count. Nothing is wrong with the path. In \
             the shaded stretches less than 2 % of the policed rate passes, in the longest of them one \
             packet per round trip.{longest}"
        ),
    ));
    page.figure(&window("Window of the same transfer of linux-2.6.17", &closeup.window).figure(
        "figures/window.svg",
        "What the sender allowed itself, in packets (the paper's Fig. 4). After a loss the congestion window \
         falls to one or a few packets and stays there for seconds: in Recovery, because nothing raises it \
         there, and after a timeout in Loss, because the byte counter that should raise it is not fed.",
    ));
    let records = closeup.recorder.clone().into_records();
    let origin = closeup.recorder.origin().unwrap_or_default();
    page.figure(&time_sequence("The first loss, packet by packet", &records, origin, None).figure(
        "figures/time-sequence.svg",
        "The beginning of the first stop (the paper's Fig. 5). The bucket has run dry and about half of a \
         window is dropped, twenty packets at a time. The receiver reports what came (SACK). The sender \
         retransmits what is missing, and part of this is dropped as well. It does not notice in time, and \
         from then on sends single packets, a round trip apart.",
    ));
    page.figure(&variables("What the sender believed meanwhile", &records, MSS, None).figure(
        "figures/variables.svg",
        "The sender's own variables at each ACK of the same moments (the paper's Fig. 6). Retransmissions \
         that were dropped stay in retrans_out: they count as in flight. When they are given up at last, all \
         at once, next to nothing is in flight. The window is not more than in_flight + 1, and in Recovery \
         nothing raises it: some packets per round trip, for hundreds of losses.",
    ));
}

fn repaired(m: &Measured<'_, StopsPaper>) -> Figure {
    let groups = [V::Linux2622, V::Fix].map(|v| (v.label(), m.main(v)));
    let slowest = |group: &PolicedGroup<'_>| {
        let run = group.0.values().max_by_key(|m| m.elapsed_ns);
        run.map(|m: &&PolicedTransfer| (m.bandwidth(), m.crawls()))
    };
    let runs = groups.each_ref().map(|(label, group)| (*label, slowest(group)));
    let series: Vec<BandwidthSeries<'_>> = runs
        .iter()
        .filter_map(|(label, run)| Some((label, run.as_ref()?)))
        .map(|(label, (bins, silences))| BandwidthSeries { label, bins, silences })
        .collect();
    bandwidth("The slowest transfers of linux-2.6.22 and of the fix", &series, &LIMITS).figure(
        "figures/bandwidth-cured.svg",
        "Frames that arrive, with two repairs (the paper's Fig. 8). 2.6.22 swings between nothing and the \
         line rate: it still overlooks lost retransmissions and waits 0.2 s for its timer, and where it \
         finds them late its window stays at 2 or 3 packets for seconds (shaded, if that happened). The fix \
         notices them at once and stays near the policed rate.",
    )
}

/// Assumptions and their effect.
fn open_points(m: &Measured<'_, StopsPaper>) -> Table {
    let mut table = Table::with("", "assumed | effect");
    let windows = &m.of.windows;
    let means = |variant: V| {
        let mean = |w: &u32| format!("{:.1} s at {w}", m.deep(variant, *w).time().mean);
        windows.iter().map(mean).collect::<Vec<_>>().join(", ")
    };
    let spread = |variant: V| {
        let time = m.main(variant).time();
        format!("{:.1} to {:.1} s", time.min, time.max)
    };
    let names = windows.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let effect = format!(
        "Large for the defects, small for the fix. 2.6.17: {}; fix: {}",
        means(V::Linux2617),
        means(V::Fix)
    );
    table.row(cells![format!("The receive window: {names} packets; not stated in the paper"), effect]);
    let effects = [
        "None.".to_owned(),
        format!(
            "The phase alone moves 2.6.17 from {} and the fix from {} (window {}). At window \
             {SMALL_WINDOW} it decides how many timeouts the fix has.",
            spread(V::Linux2617),
            spread(V::Fix),
            m.of.main
        ),
        "2.6.17 and 2.6.22 are faster here than they were; the paper's spread (26 to 103 s) is wider than \
         ours."
            .to_owned(),
    ];
    for (assumed, effect) in rows::assumptions(m.of).into_iter().zip(effects) {
        table.row(cells![assumed, effect]);
    }
    table
}
