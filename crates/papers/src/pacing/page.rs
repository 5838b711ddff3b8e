//! The report: text, tables and figures.

use super::classes::{self, PRECISE, PacedClass, RandomSet};
use super::published::{FIFOS, FIVE, FLOWS, PublishedBandwidth, TABLE_2, TABLE_3, TABLE_4, table_5};
use super::scheduler::PacingMethod;
use super::transfers::FifoCase;
use super::{
    EXACT, FIG_6, FIG_8, HALF, LARGE_BUCKET, M, MeasuredPacing, PAIRS, TABLE_5, large_bucket, sensitivity,
    slow_start,
};
use crate::observe::means;
use crate::statistics::point;
use farpace_report::{
    Curve, Figure, Level, Page, ReproductionClaim, Table, TableCell, TimeLine, cells, curves, lines, number,
};

/// Sets that the table of sets lists at most.
const LISTED: usize = 20;
/// Parts of the line by which random sets are grouped, in percent.
const LOADS: [&str; 10] =
    ["50-55", "55-60", "60-65", "65-70", "70-75", "75-80", "80-85", "85-90", "90-95", "95-100"];

/// The page between verdict and assumptions.
pub fn body(m: &MeasuredPacing<'_>, claims: &[ReproductionClaim], page: &mut Page) {
    page.paragraph(
        "A NIC sends as fast as it can. What TCP gives it in one go leaves in one burst, at twice the rate \
         of a bottleneck that is half as fast. The router before the bottleneck has to hold half of the \
         burst. If its FIFO is small, packets are lost, TCP halves its window, and over 200 ms it takes \
         minutes to grow it again. A timer cannot keep packets apart: one of them takes 12 us, a timer's \
         tick 1 ms. The paper fills the time between two packets with gap packets, PAUSE frames of Ethernet \
         that the next switch drops: their bytes are the clock.",
    );
    page.paragraph(&format!(
        "Here its measurements are made again in virtual time: {} runs. Tables 2 to 4 drive the scheduler \
         with classes that always have packets, about {} packets a row (as many as 160 s of the line carry \
         at 8 kbit/s: the paper's 250,000 would take four days); transfers of Table 5 take {} and those \
         beyond the paper {}. Every byte received was compared with the byte sent.",
        m.count(),
        m.of.packets(),
        m.of.time,
        m.of.extension_time,
    ));
    page.heading("Rates and bursts").paragraph(
        "Burstiness is the queue Q that a flow makes before a line of exactly its mean rate. One packet is \
         perfect; the paper \
         calls pacing precise if it is at most two, because another class's packet may be in the way.",
    );
    bandwidth_tables(m, page);
    page.paragraph(
        "\"Q by that clock\" is measured as in the paper: before a line of the mean rate of what was \
         captured, by a clock of 2^-24 s, rounded up to packets. A first frame that is early and a last one \
         that is late make that mean too small and Q too large by up to a packet. \"Q\" is before the rate \
         that the class is to have, by the times of the line. \"Error\" is how far the rate of layer 2 is \
         from the target; with several classes it is mostly that first and last frame. The paper's mean of \
         33.1 Mbit/s in Table 4 (50M, n = 1) cannot be: a mean of bandwidths is never less than the \
         bandwidth of the mean time, 50 Mbit/s.",
    );
    page.figure(&rates(m)).figure(&begin_and_end(m)).table(&others(m));
    page.heading("Is the paper's order enough?").paragraph(
        "PSPacer lets the class with the highest rate go first. A slow class may then have to wait for \
         several others. Random sets of classes are searched for that. edf, farpace's default, lets that \
         class go first whose next packet is due first.",
    );
    page.figure(&sets(m)).wide_table(&set_table(m));
    page.heading("TCP through a small FIFO").table(&fifos(m)).figure(&fifo_curves(m));
    let [bucket, paced] = FIG_8.map(slow_start);
    page.figure(&slow_start_curve(m, &bucket, "a token bucket of 62.5 kB", "a"));
    page.figure(&slow_start_curve(
        m,
        &large_bucket(),
        &format!("a token bucket of {LARGE_BUCKET}"),
        "a-large",
    ));
    page.figure(&slow_start_curve(m, &paced, "PSPacer", "b"));
    page.heading("Two flows").table(&pairs(m));
    (0..PAIRS.len()).for_each(|n| {
        page.figure(&pair(m, n));
    });
    page.heading("Claims").claims(claims);
    if !m.of.quick {
        sensitivity::sections(m, page);
    }
    page.heading("What is not claimed").paragraph(
        "CPU load (15 % in the paper) is not measured here: hosts of the lab take no time. The paper's \
         measurement over a commercial line cannot be made again.",
    );
}

/// Three digits, as the paper prints; more where the paper has more.
fn digits(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

fn bandwidth(title: &str, heads: &str) -> Table {
    let ours = EXACT.map(|pacer| {
        format!("{pacer}: least, greatest, mean [bit/s] | Q by that clock [MTU] | Q [MTU] | error [ppm]")
    });
    let heads = format!("{heads} | paper: least, greatest, mean [bit/s] | Q [MTU] | {}", ours.join(" | "));
    Table::with(title, &heads)
}

fn bandwidth_row(
    table: &mut Table,
    head: Vec<TableCell>,
    row: &PublishedBandwidth,
    classes: [Option<&PacedClass>; 2],
) {
    let sign = if row.unit < 1e6 { "K" } else { "M" };
    let three = |numbers: [f64; 3]| numbers.map(|n| format!("{}{sign}", digits(n))).join(", ");
    let mut cells = head;
    cells.extend(cells![three(row.numbers), (row.burstiness, 0)]);
    for class in classes {
        let spread = class.map(|c| c.bandwidth[row.n - 1]);
        cells.extend(cells![
            spread.map(|s| three([s.min, s.max, s.mean].map(|n| n / row.unit))),
            class.map(|c| (c.counted, 0)),
            class.map(|c| (c.burstiness, 3)),
            class.map(|c| format!("{:+.1}", c.error_ppm)),
        ]);
    }
    table.row(cells);
}

/// Tables 2 to 4.
fn bandwidth_tables(m: &MeasuredPacing<'_>, page: &mut Page) {
    let mut table = bandwidth("Table 2: one flow, bandwidth per packet and burstiness Q", "target");
    for row in &TABLE_2 {
        let classes = EXACT.map(|pacer| m.single(pacer, row.rate));
        bandwidth_row(&mut table, cells![row.target], row, classes);
    }
    page.table(&table);
    let mut table = bandwidth(&format!("Table 3: {FLOWS} flows of 10 Mbit/s"), "target");
    let classes = EXACT.map(|pacer| m.many(pacer));
    bandwidth_row(&mut table, cells![TABLE_3.target], &TABLE_3, classes.each_ref().map(Option::as_ref));
    page.table(&table);
    let mut table = bandwidth("Table 4: five flows at once, bandwidth per n packets", "n | target");
    for row in &TABLE_4 {
        let classes = EXACT.map(|pacer| m.five(pacer, row));
        bandwidth_row(&mut table, cells![row.n as u64, row.target], row, classes);
    }
    page.table(&table);
}

/// What else may pace 500 Mbit/s.
fn others(m: &MeasuredPacing<'_>) -> Table {
    let mut table =
        Table::with("Burstiness of what paces by timers", "one flow of 500 Mbit/s | Q [MTU] | error [ppm]");
    for pacer in [PacingMethod::Psp, PacingMethod::Edf, PacingMethod::Fq, PacingMethod::TokenBucket] {
        let class = m.single(pacer, HALF);
        let error = class.map(|c| format!("{:+.0}", c.error_ppm));
        table.row(cells![pacer.label(), class.map(|c| (c.burstiness, 2)), error]);
    }
    table
}

/// Table 5.
pub fn fifos(m: &MeasuredPacing<'_>) -> Table {
    let title = format!("Table 5: TCP through a FIFO, goodput and packets lost, transfers of {}", m.of.time);
    let mut table = Table::with(title, "FIFO");
    for pacer in TABLE_5 {
        if table_5(pacer).is_some() {
            table.column(&format!("{pacer}: paper"), "Mbit/s / lost");
        }
        table.column(pacer.label(), "Mbit/s / lost");
    }
    for (i, fifo) in FIFOS.into_iter().enumerate() {
        let mut row = cells![format!("{fifo} kB")];
        for pacer in TABLE_5 {
            let paper = table_5(pacer).and_then(|t| t.get(i));
            row.extend(paper.map(|(goodput, lost)| format!("{} / {lost}", number(*goodput)).into()));
            row.push(sensitivity::cell(m, &FifoCase::table_5(pacer, fifo)));
        }
        table.row(row);
    }
    table
}

/// Fig. 9.
fn pairs(m: &MeasuredPacing<'_>) -> Table {
    let mut table = Table::with(
        "Fig. 9: two flows held to 200 Mbit/s each, FIFO of 32 kB, goodput",
        "flow A + flow B | A [Mbit/s] | B [Mbit/s] | lost [packets] | dropped by own NICs [packets] | \
         timeouts []",
    );
    for [first, second] in PAIRS {
        let transfer = m.transfer(&FifoCase::pair(first, second));
        let [a, b] = [0, 1].map(|flow| transfer.and_then(|t| t.goodput.get(flow)).map(|g| (*g, 1)));
        let (lost, timeouts) = (transfer.map(|t| t.lost), transfer.map(|t| t.timeouts));
        let own = transfer.map(|t| t.dropped_at_sender);
        table.row(cells![format!("{first} + {second}"), a, b, lost, own, timeouts]);
    }
    table
}

/// The sets on which the paper's order is not precise, the worst first.
fn set_table(m: &MeasuredPacing<'_>) -> Table {
    let mut bad: Vec<&RandomSet> = m.sets().iter().filter(|s| s.psp > PRECISE).collect();
    bad.sort_by(|a, b| b.psp.total_cmp(&a.psp));
    let listed = if bad.len() > LISTED { format!("; the worst {LISTED}") } else { String::new() };
    let mut table = Table::with(
        format!(
            "{} of {} random sets of classes are not precise with the paper's order{listed}",
            bad.len(),
            m.sets().len()
        ),
        "set | line [% used] | PSPacer [MTU] | edf [MTU] | classes [] | Mbit/s (x B, if not full frames)",
    );
    for set in bad.into_iter().take(LISTED) {
        let class = |(rate, len): &(u64, u32)| {
            let rate = digits(*rate as f64 / 1e6);
            if *len == 1_514 { rate } else { format!("{rate} x {len}") }
        };
        let classes: Vec<String> = set.classes.iter().map(class).collect();
        table.row(cells![
            set.number.to_string(),
            (set.load * 100.0, 1),
            (set.psp, 2),
            (set.edf, 2),
            set.classes.len() as u64,
            classes.join(", "),
        ]);
    }
    table
}

fn rates(m: &MeasuredPacing<'_>) -> Figure {
    let names =
        FIG_6.map(|rate| if rate < M { format!("{}K", rate / 1_000) } else { format!("{}M", rate / M) });
    let percent = |measured: f64, rate: u64| point((1.0 - measured / rate as f64) * 100.0);
    let curve = |pacer: PacingMethod| {
        let mean = |rate| m.fig_6(pacer, rate).and_then(|c| percent(c.bandwidth[0].mean, rate));
        Curve { label: pacer.label(), points: FIG_6.map(mean).into() }
    };
    let paper = |rate| {
        let row = TABLE_2.iter().find(|row| row.rate == rate)?;
        percent(row.numbers[2] * row.unit, rate)
    };
    let paper = Curve { label: "paper (Table 2)", points: FIG_6.map(paper).into() };
    let [psp, edf] = EXACT.map(curve);
    let title = "How much the effective rate is below the target";
    let names = names.each_ref().map(String::as_str);
    curves(title, "target (bit/s)", "below the target (%)", &names, &[psp, edf, paper]).figure(
        "figures/fig06.svg",
        "What the paper's meter reads. It counts frames without their check sequence: 1514 of each 1518 B \
         that rates count, 0.26 % less. The paper draws the rates themselves (Fig. 6).",
    )
}

fn begin_and_end(m: &MeasuredPacing<'_>) -> Figure {
    let names = FIVE.map(|rate| format!("{} Mbit/s", rate / M));
    let width = classes::BIN.as_secs_f64();
    let line = |class: usize| -> Vec<(f64, f64)> {
        let bins = m.switching(PacingMethod::Psp).and_then(|bins| bins.get(class));
        let point = |(n, frames): (usize, &u32)| (n as f64 * width, classes::bin_mbit(*frames));
        bins.map(|bins| bins.iter().enumerate().map(point).collect()).unwrap_or_default()
    };
    let all = names.iter().enumerate().rev();
    let all: Vec<_> = all.map(|(class, label)| TimeLine { label, points: line(class) }).collect();
    lines("Five classes that begin and end", "Mbit/s in bins of 10 ms", &all, None).figure(
        "figures/fig07.svg",
        "PSPacer; each class has packets for some time, all of them from 25 to 45 s (the paper's Fig. 7). \
         What is thick is one frame more or less in a bin.",
    )
}

fn sets(m: &MeasuredPacing<'_>) -> Figure {
    let group = |set: &RandomSet| (((set.load - 0.5) * 20.0).max(0.0) as usize).min(LOADS.len() - 1);
    let curve = |label, of: fn(&RandomSet) -> f64| {
        let worst = |n: usize| {
            let values = m.sets().iter().filter(|s| group(s) == n).map(of);
            point(values.fold(f64::NAN, f64::max))
        };
        Curve { label, points: (0..LOADS.len()).map(worst).collect() }
    };
    let all = [
        curve("PSPacer: highest rate first", |s| s.psp),
        curve("edf: earliest deadline first", |s| s.edf),
        curve("precise: 2 MTU", |_| PRECISE),
    ];
    let title = "Burstiness of random sets of classes";
    curves(title, "line in use (%)", "greatest Q of all sets (MTU)", &LOADS, &all).figure(
        "figures/sets.svg",
        "The most bursty class of all sets that use this part of the line. The more of it is in use, the \
         longer a slow class must wait for fast ones, if these come first.",
    )
}

fn fifo_curves(m: &MeasuredPacing<'_>) -> Figure {
    let names = FIFOS.map(|fifo| format!("{fifo} kB"));
    let papers = ["paper, no limit", "paper, token bucket", "paper, PSPacer"];
    let mut all: Vec<Curve<'_>> = Vec::new();
    for (pacer, label) in TABLE_5.into_iter().zip(papers) {
        let points = table_5(pacer).map(|t| t.map(|(goodput, _)| point(goodput)).into());
        all.push(Curve { label, points: points.unwrap_or_default() });
    }
    // edf has what PSPacer has.
    for pacer in TABLE_5.into_iter().filter(|pacer| *pacer != PacingMethod::Edf) {
        let points = FIFOS.map(|fifo| point(m.goodput(&FifoCase::table_5(pacer, fifo))));
        all.push(Curve { label: pacer.label(), points: points.into() });
    }
    let names = names.each_ref().map(String::as_str);
    curves("TCP through a small FIFO", "FIFO", "goodput (Mbit/s)", &names, &all).figure(
        "figures/table5.svg",
        "500 Mbit/s, 200 ms, BIC: the paper's Table 5 and the same here. A paced sender needs no FIFO.",
    )
}

fn slow_start_curve(m: &MeasuredPacing<'_>, case: &FifoCase, who: &str, which: &str) -> Figure {
    let transfer = m.transfer(case);
    let fine = transfer.and_then(|t| t.curves.first()).cloned().unwrap_or_default();
    let coarse = means(&fine, 400);
    let all = [
        TimeLine { label: "bins of 500 us", points: fine },
        TimeLine { label: "means of 200 ms", points: coarse },
    ];
    let lost = match transfer.and_then(|t| t.first_lost) {
        Some(at) => format!("the FIFO overflows first at {at:.2} s"),
        None => "nothing is lost".to_owned(),
    };
    lines(&format!("Slow start with {who}, FIFO of 1 MB"), "Mbit/s behind the FIFO", &all, None).figure(
        &format!("figures/fig08{which}.svg"),
        &format!("The first 5 s of a transfer; {lost} (the paper's Fig. 8{}).", &which[..1]),
    )
}

/// The pair with this place in [`PAIRS`].
fn pair(m: &MeasuredPacing<'_>, n: usize) -> Figure {
    let [first, second] = PAIRS[n];
    let transfer = m.transfer(&FifoCase::pair(first, second));
    let [a, b] = [0, 1].map(|flow| transfer.and_then(|t| t.curves.get(flow)).cloned().unwrap_or_default());
    let value = |curve: &[(f64, f64)], n: usize| curve.get(n).map_or(0.0, |p| p.1);
    let sum = (0..a.len().max(b.len())).map(|n| (n as f64, value(&a, n) + value(&b, n))).collect();
    let names = [format!("A: {first}"), format!("B: {second}")];
    let all = [
        TimeLine { label: "both", points: sum },
        TimeLine { label: &names[0], points: a },
        TimeLine { label: &names[1], points: b },
    ];
    let level = Level { label: "400 Mbit/s", value: 400.0 };
    let caption = match ["a", "b", "c", "d"].get(n) {
        Some(letter) => format!("Two flows, a FIFO of 32 kB (the paper's Fig. 9{letter})."),
        None => "The same with farpace's default; not in the paper.".to_owned(),
    };
    lines(&format!("{first} + {second}"), "Mbit/s in bins of 1 s", &all, Some(&level))
        .figure(&format!("figures/fig09-{}-{}.svg", first.id(), second.id()), &caption)
}
