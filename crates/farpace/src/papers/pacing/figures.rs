//! The paper's figures, drawn from the runs.

use super::pace::Pace;
use super::plan::{self, EXACT, FIG_6, FIG_8, LARGE_BUCKET, PAIRS, TABLE_5};
use super::printed::{FIFOS, FIVE, TABLE_2};
use super::results::Results;
use super::rows::table_5;
use super::sets::{PRECISE, Set};
use super::switching;
use super::transfers::Case;
use farpace_report::{ComparedEstimate, Curve, Figure, Level, TimeLine, curves, lines};

/// All figures, in the order of the page.
pub fn all(results: &Results) -> Vec<Figure> {
    let mut figures = vec![rates(results), classes(results), sets(results), fifos(results)];
    let [bucket, paced] = FIG_8.map(plan::slow_start);
    let large = format!("a token bucket of {LARGE_BUCKET}");
    figures.extend([
        slow_start(results, &bucket, "a token bucket of 62.5 kB", "a"),
        slow_start(results, &plan::large_bucket(), &large, "a-large"),
        slow_start(results, &paced, "PSPacer", "b"),
    ]);
    figures.extend(PAIRS.map(|(first, second)| pair(results, first, second)));
    figures
}

fn point(mean: f64) -> Option<ComparedEstimate> {
    mean.is_finite().then_some(ComparedEstimate { mean, range: None })
}

fn rates(results: &Results) -> Figure {
    let names = FIG_6.map(|rate| match rate {
        r if r < 1_000_000 => format!("{}K", r / 1_000),
        r => format!("{}M", r / 1_000_000),
    });
    let names = names.each_ref().map(String::as_str);
    let percent = |measured: f64, rate: u64| point((1.0 - measured / rate as f64) * 100.0);
    let mut all: Vec<Curve<'_>> = EXACT
        .iter()
        .map(|pace| {
            let mean = |rate: &u64| {
                let class = results.fig_6(*pace, *rate);
                class.and_then(|c| percent(c.bandwidth[0].mean, *rate))
            };
            Curve { label: pace.label(), points: FIG_6.iter().map(mean).collect() }
        })
        .collect();
    let paper = |rate: &u64| {
        let row = TABLE_2.iter().find(|row| row.rate == *rate)?;
        percent(row.numbers[2] * row.unit, *rate)
    };
    all.push(Curve { label: "paper (Table 2)", points: FIG_6.iter().map(paper).collect() });
    let title = "How much the effective rate is below the target";
    curves(title, "target (bit/s)", "below the target (%)", &names, &all).figure(
        "figures/fig06.svg",
        "What the paper's meter reads. It counts frames without their check sequence: 1514 of each 1518 B that rates count, 0.26 % less. The \
         paper draws the rates themselves (Fig. 6).",
    )
}

fn classes(results: &Results) -> Figure {
    let names = FIVE.map(|rate| format!("{} Mbit/s", rate / 1_000_000));
    let width = switching::BIN.as_secs_f64();
    let line = |class: usize| -> Vec<(f64, f64)> {
        let bins = results.switching(Pace::Psp).and_then(|bins| bins.get(class));
        let point = |(n, frames): (usize, &u32)| (n as f64 * width, switching::mbit(*frames));
        bins.map(|bins| bins.iter().enumerate().map(point).collect()).unwrap_or_default()
    };
    let all: Vec<TimeLine<'_>> = names
        .iter()
        .enumerate()
        .rev()
        .map(|(class, label)| TimeLine { label, points: line(class) })
        .collect();
    lines("Five classes that begin and end", "Mbit/s in bins of 10 ms", &all, None).figure(
        "figures/fig07.svg",
        "PSPacer; each class has packets for some time, all of them from 25 to 45 s (the paper's Fig. 7). What is thick is one frame \
         more or less in a bin.",
    )
}

/// Parts of the line by which [`sets`] groups sets: from half of it on.
const LOADS: [&str; 10] =
    ["50-55", "55-60", "60-65", "65-70", "70-75", "75-80", "80-85", "85-90", "90-95", "95-100"];

fn sets(results: &Results) -> Figure {
    let group = |set: &Set| (((set.load - 0.5) * 20.0).max(0.0) as usize).min(LOADS.len() - 1);
    let worst = |n: usize, of: fn(&Set) -> f64| {
        let values = results.sets.iter().filter(|s| group(s) == n).map(of);
        point(values.fold(f64::NAN, f64::max))
    };
    let all: Vec<Curve<'_>> = [
        ("PSPacer: highest rate first", (|s| s.psp) as fn(&Set) -> f64),
        ("edf: earliest deadline first", |s| s.edf),
        ("precise: 2 MTU", |_| PRECISE),
    ]
    .into_iter()
    .map(|(label, of)| Curve { label, points: (0..LOADS.len()).map(|n| worst(n, of)).collect() })
    .collect();
    let title = "Burstiness of random sets of classes";
    curves(title, "line in use (%)", "greatest Q of all sets (MTU)", &LOADS, &all).figure(
        "figures/sets.svg",
        "The most bursty class of all sets that use so much of the line. The more of it is in use, the longer a slow class must wait for          fast ones, if these come first.",
    )
}

fn fifos(results: &Results) -> Figure {
    let names = FIFOS.map(|fifo| format!("{fifo} kB"));
    let names = names.each_ref().map(String::as_str);
    let papers = ["paper, no limit", "paper, token bucket", "paper, PSPacer"];
    let mut all = Vec::new();
    for (pace, label) in TABLE_5.into_iter().zip(papers) {
        let numbers = table_5(pace).map(|t| t.map(|(goodput, _)| point(goodput)));
        all.push(Curve { label, points: numbers.map(Vec::from).unwrap_or_default() });
    }
    // edf has what PSPacer has.
    for pace in TABLE_5.into_iter().filter(|pace| *pace != Pace::Edf) {
        let points = FIFOS.map(|fifo| point(results.goodput(&Case::one(pace, fifo))));
        all.push(Curve { label: pace.label(), points: points.into() });
    }
    curves("TCP through a small FIFO", "FIFO", "goodput (Mbit/s)", &names, &all).figure(
        "figures/table5.svg",
        "500 Mbit/s, 200 ms, BIC: the paper's Table 5 and the same here. A paced sender needs no FIFO.",
    )
}

fn slow_start(results: &Results, case: &Case, who: &str, which: &str) -> Figure {
    let transfer = results.transfer(case);
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

/// Means over so many points each, at the first one's time.
fn means(points: &[(f64, f64)], of: usize) -> Vec<(f64, f64)> {
    let mean = |chunk: &[(f64, f64)]| {
        let sum: f64 = chunk.iter().map(|p| p.1).sum();
        (chunk.first().map_or(0.0, |p| p.0), sum / chunk.len().max(1) as f64)
    };
    points.chunks(of).map(mean).collect()
}

fn pair(results: &Results, first: Pace, second: Pace) -> Figure {
    let transfer = results.transfer(&Case::two(first, second));
    let of = |flow: usize| transfer.and_then(|t| t.curves.get(flow)).cloned().unwrap_or_default();
    let (a, b) = (of(0), of(1));
    let sum = (0..a.len().max(b.len()))
        .map(|n| {
            let value = |curve: &[(f64, f64)]| curve.get(n).map_or(0.0, |p| p.1);
            (n as f64, value(&a) + value(&b))
        })
        .collect();
    let names = [format!("A: {first}"), format!("B: {second}")];
    let all = [
        TimeLine { label: "both", points: sum },
        TimeLine { label: &names[0], points: a },
        TimeLine { label: &names[1], points: b },
    ];
    let level = Level { label: "400 Mbit/s", value: 400.0 };
    let caption = match PAIRS.iter().position(|p| *p == (first, second)) {
        Some(n @ 0..=3) => {
            format!("Two flows, a FIFO of 32 kB (the paper's Fig. 9{}).", ["a", "b", "c", "d"][n])
        }
        _ => "The same with farpace's default; not in the paper.".to_owned(),
    };
    lines(&format!("{first} + {second}"), "Mbit/s in bins of 1 s", &all, Some(&level))
        .figure(&format!("figures/fig09-{}-{}.svg", first.id(), second.id()), &caption)
}
