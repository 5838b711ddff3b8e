//! Every figure and a page, from synthetic data:
//! `cargo run -p farpace-report --example gallery -- DIRECTORY`.

use farpace_events::{Cause, Record, RecordDirection, RecordSink, RecoveryState};
use farpace_report::{
    BandwidthSeries, Bar, BinInterval, BinnedSeries, ComparedEstimate, ComparisonRow, Curve, Dot, Drawing,
    Figure, Page, RateLimit, Reproduction, ReproductionClaim, ReproductionRow, Table, TableColumn,
    WindowHistory, bandwidth, comparison, curves, histogram, scatter, time_sequence, variables, window,
};
use farpace_units::{ByteCount, Instant, Packets, RandomStream, Rate, Seq, Span};
use farpace_wire::tcp::SackBlock;
use std::path::Path;

fn at(us: u64) -> Instant {
    Instant::ZERO + Span::from_micros(us)
}

/// A transfer of `seconds` with stops in these intervals, in units of 1 s.
fn stopping(seconds: u64, stops: &[(u64, u64)], jitter: u64) -> BinnedSeries {
    let mut rng = RandomStream::new(1, "gallery");
    let bin = |i: u64| {
        let silent = stops.iter().any(|(from, to)| (from * 100..to * 100).contains(&i));
        let mbit = match () {
            () if silent => 1,
            () if i % 180 < 12 => 900 - 30 * (i % 12),
            () => 500 - rng.below(jitter),
        };
        ByteCount::new(mbit * 1_250)
    };
    BinnedSeries::new(Span::from_millis(10), (0..seconds * 100).map(bin).collect())
}

fn row(time: Instant) -> Record {
    Record {
        time,
        connection: 0,
        direction: RecordDirection::Received,
        seq: Seq::new(1),
        len: ByteCount::ZERO,
        ack: Seq::new(1),
        sack: Default::default(),
        snd_una: Seq::new(1),
        snd_nxt: Seq::new(1),
        cwnd: Packets::new(2),
        ssthresh: Packets::new(1000),
        in_flight: Packets::ZERO,
        packets_out: Packets::ZERO,
        lost_out: Packets::ZERO,
        sacked_out: Packets::ZERO,
        fackets_out: Packets::ZERO,
        retrans_out: Packets::ZERO,
        state: RecoveryState::Open,
        srtt: Span::from_millis(10),
        rttvar: Span::from_millis(1),
        rto: Span::from_millis(210),
        rwnd: ByteCount::new(3_000_000),
        bandwidth: Default::default(),
        cause: None,
    }
}

/// Windows of 70 s: growth, recovery down to one packet, a stop, occasional timeouts.
fn windows() -> WindowHistory {
    let mut history = WindowHistory::new(0);
    let mut cwnd = 2.0f64;
    let mut ssthresh = 1000.0f64;
    for ms in 0..70_000u64 {
        let phase = ms % 7_000;
        let mut r = row(at(ms * 1_000));
        match phase {
            0..1_500 => cwnd = if cwnd < ssthresh { cwnd * 1.06 } else { (cwnd + 1.2).min(2_071.0) },
            1_500..1_560 => {
                if phase == 1_500 {
                    ssthresh = cwnd * 0.8;
                }
                cwnd = (cwnd * 0.88).max(1.0);
                r.state = RecoveryState::Recovery;
            }
            1_560..4_800 => {
                cwnd = 1.0;
                let late = (ms / 7_000) % 3 == 1 && phase > 2_000;
                r.state = if late { RecoveryState::Loss } else { RecoveryState::Recovery };
                r.cause = (late && phase == 2_001).then_some(Cause::TimerRto);
            }
            _ => cwnd = if cwnd < ssthresh { cwnd * 1.02 } else { cwnd + 0.5 },
        }
        r.cwnd = Packets::new(cwnd as u32);
        r.ssthresh = Packets::new(ssthresh as u32);
        history.record(&r);
    }
    history
}

const MSS: u32 = 1448;
const ORIGIN: Seq = Seq::new(u32::MAX - 20_000 * MSS);

/// The first stop: bursts of twenty lost packets, half of the retransmissions lost too, then one packet per
/// round trip.
fn first_stop() -> Vec<Record> {
    const BEGIN: u64 = 1_420_000;
    let seq = |n: u64| ORIGIN + (24_000 + n as u32) * MSS;
    let mut rows: Vec<Record> = Vec::new();
    let sent = |us: u64, n: u64, cause| {
        let mut r = row(at(us));
        (r.direction, r.seq, r.len, r.cause) =
            (RecordDirection::Sent, seq(n), ByteCount::new(1448), Some(cause));
        r
    };
    // Packets 0..2000 arrive. Of 2000..4000 the policer drops every other burst of twenty.
    for n in 0..4_000 {
        rows.push(sent(BEGIN + n * 12, n, Cause::NewData));
    }
    let (mut sacked, mut lost, mut retrans, mut cwnd) = (0u32, 0u32, 0u32, 2_000u32);
    let vars = |us, una: u64, counts: (u32, u32, u32, u32), state| {
        let mut r = row(at(us));
        (r.snd_una, r.snd_nxt, r.state) = (seq(una), seq(4_000), state);
        let (sacked, lost, retrans, cwnd) = counts;
        r.sacked_out = Packets::new(sacked);
        r.lost_out = Packets::new(lost);
        r.retrans_out = Packets::new(retrans);
        r.fackets_out = Packets::new(sacked + lost);
        r.cwnd = Packets::new(cwnd);
        r.in_flight = Packets::new(cwnd.saturating_sub(1));
        r
    };
    for n in 0..4_000u64 {
        let us = BEGIN + 10_000 + n * 12;
        let hole = n >= 2_000 && (n / 20) % 2 == 0;
        if hole {
            lost += 1;
            continue;
        }
        if n >= 2_000 {
            sacked += 1;
            retrans += 1;
            cwnd = (cwnd - 1).max(700);
            let again = 2_000 + (u64::from(retrans - 1) / 20) * 40 + u64::from(retrans - 1) % 20;
            rows.push(sent(us, again, Cause::FastRetransmit));
        }
        let state = if n < 2_000 { RecoveryState::Open } else { RecoveryState::Recovery };
        let mut r = vars(us, n.min(2_000), (sacked, lost, retrans, cwnd), state);
        if n < 2_000 {
            r.snd_nxt = seq((n + 830).min(4_000));
        } else {
            r.sack.push(SackBlock { start: seq(n / 20 * 20), end: seq(n + 1) });
        }
        rows.push(r);
    }
    // Every other burst of twenty retransmissions arrives.
    for i in 0..1_000u64 {
        if (i / 20) % 2 == 1 {
            continue;
        }
        let n = 2_000 + (i / 20) * 40 + i % 20;
        sacked += 1;
        lost -= 1;
        retrans = retrans.saturating_sub(1);
        cwnd = (cwnd - 1).max(300);
        let mut r =
            vars(BEGIN + 58_000 + i * 24, 2_020, (sacked, lost, retrans, cwnd), RecoveryState::Recovery);
        r.sack.push(SackBlock { start: seq(n / 20 * 20), end: seq(n + 1) });
        rows.push(r);
    }
    for i in 0..12u64 {
        let us = 1_570_000 + i * 10_000;
        let counts = (sacked, lost.saturating_sub(i as u32), 1, 1);
        rows.push(vars(us - 10, 2_020 + i, counts, RecoveryState::Recovery));
        rows.push(sent(us, 2_060 + i, Cause::LostRetransmission));
    }
    let mut timer = vars(1_650_000, 2_030, (sacked, lost, 1, 1), RecoveryState::Loss);
    (timer.direction, timer.cause) = (RecordDirection::Internal, Some(Cause::TimerRto));
    rows.push(timer);
    rows.sort_by_key(|r| r.time);
    rows
}

const CASES: [&str; 4] = ["0", "1e-8", "1e-7", "1e-6"];

fn measured_curves() -> Vec<Curve<'static>> {
    let curve = |label, means: [f64; 4], spread: f64| Curve {
        label,
        points: means
            .into_iter()
            .map(|mean| Some(ComparedEstimate { mean, range: Some((mean - spread, mean + 0.75 * spread)) }))
            .collect(),
    };
    vec![curve("star", [9.4, 8.8, 6.4, 3.6], 0.4), curve("reno", [8.6, 4.2, 1.0, 0.3], 0.2)]
}

const DOTS: [Dot<'static>; 3] =
    [Dot::new("cubic", 80.0, 90.0), Dot::new("reno", 60.0, 70.0), Dot::new("bbr", 100.0, 95.0)];

fn intervals() -> Vec<Bar> {
    (0..40u32)
        .map(|i| Bar {
            from: f64::from(i + 10),
            to: f64::from(i + 11),
            count: if i == 39 { 1 } else { u64::from(40 - i).pow(3) },
        })
        .collect()
}

fn figures() -> Vec<Figure> {
    let stops = [(1, 5), (8, 12), (15, 24), (30, 31), (38, 47), (52, 60)];
    let old = stopping(70, &stops, 60);
    let silences = old.silences(ByteCount::new(3_000), Span::from_secs(1));
    let limits = [
        RateLimit { label: "policed rate 500 Mbit/s", rate: Rate::from_mbit(500) },
        RateLimit { label: "link rate 1 Gbit/s", rate: Rate::from_mbit(1_000) },
    ];
    let one = [BandwidthSeries { label: "linux-2.6.17", bins: &old, silences: &silences }];
    let newer = stopping(21, &[], 480);
    let fixed = stopping(17, &[], 100);
    let several = [
        BandwidthSeries { label: "linux-2.6.22", bins: &newer, silences: &[] },
        BandwidthSeries { label: "aist-fix", bins: &fixed, silences: &[] },
    ];
    let rows = first_stop();
    let estimate = |mean, min, max| Some(ComparedEstimate { mean, range: Some((min, max)) });
    let table2 = [
        ComparisonRow {
            label: "linux-2.6.17",
            values: [estimate(52.4, 26.3, 103.3), estimate(48.1, 24.9, 91.0)],
        },
        ComparisonRow {
            label: "linux-2.6.22",
            values: [estimate(21.3, 20.7, 22.2), estimate(20.2, 19.8, 21.0)],
        },
        ComparisonRow { label: "aist-fix", values: [estimate(16.6, 16.5, 16.8), estimate(16.6, 16.6, 16.7)] },
        ComparisonRow {
            label: "linux-2.6.17 with only the sort repaired",
            values: [None, estimate(33.0, 20.0, 60.0)],
        },
    ];
    let zoom = Some(BinInterval::new(at(1_420_000), at(1_600_000)));
    vec![
        bandwidth("Bandwidth of linux-2.6.17 behind the policer", &one, &limits).figure(
            "bandwidth.svg",
            "Rate of the data that leaves the router, in bins of 10 ms. Without stops it would stay at the \
             dashed policed rate. In the shaded intervals hardly any packet is sent, for seconds at a time.",
        ),
        bandwidth("Bandwidth without and with correct recovery", &several, &limits[..1])
            .figure("bandwidth-cure.svg", "The same transfer with two later recovery algorithms."),
        window("Congestion window of linux-2.6.17", &windows()).figure(
            "window.svg",
            "Number of packets that the sender may have in flight. After each burst of losses it falls to \
             one packet and stays there for seconds.",
        ),
        time_sequence("The first stop, packet by packet", &rows, ORIGIN, zoom).figure(
            "time-sequence.svg",
            "Each mark is a packet; its height is its sequence number. The black line is the cumulative ACK. \
             Blue marks are new data. Orange marks are retransmissions, which fill each gap once; those that \
             are lost again are retransmitted much later, one every 10 ms.",
        ),
        variables("Variables of the sender during the first stop", &rows, ByteCount::new(1448), zoom).figure(
            "variables.svg",
            "Counters of the sender after each ACK. retrans_out should decrease when a lost retransmission \
             is detected. It \
             does not, so in_flight stays too high until the window is reduced to one packet.",
        ),
        comparison("Completion time of 1 GB", "completion time (s)", &table2)
            .figure("comparison.svg", "Table 2 of the paper as a figure: shorter is better."),
        curves("Goodput", "bit error rate", "goodput (Mbit/s)", &CASES, &measured_curves())
            .figure("curves.svg", "Means, and the range over seeds."),
        scatter("Goodput over delay", "mean delay (ms)", "goodput (Mbit/s)", &DOTS)
            .figure("scatter.svg", "An algorithm is a point: best is above and left."),
        histogram("Intervals between frames", "interval (us)", "frames", &intervals(), None)
            .figure("histogram.svg", "Both axes are logarithmic: one among thousands is visible."),
    ]
}

fn reproduction() -> Reproduction {
    let row =
        |profile: &str, quantity: &str, unit: &str, paper, measured, assumes: &[&str]| ReproductionRow {
            id: format!("table2/{profile}/{quantity}"),
            quantity: format!("{profile}: {quantity}"),
            unit: unit.to_owned(),
            paper: Some(paper),
            measured: Some(measured),
            assumptions: assumes.iter().map(|a| (*a).to_owned()).collect(),
        };
    let window = "The paper does not state the window; 1554, 2071 and 2500 packets were run.";
    let phase = "Ten policer phases represent the ten trials.";
    let claim = |id: &str, text: &str, holds, evidence: &str| ReproductionClaim {
        id: id.to_owned(),
        text: text.to_owned(),
        holds,
        evidence: evidence.to_owned(),
    };
    Reproduction {
        paper: "Analysis and improvement of communication stops".to_owned(),
        rows: vec![
            row("linux-2.6.17", "mean completion time", "s", 52.4, 48.1, &[window, phase]),
            row("linux-2.6.17", "minimum efficiency", "%", 15.0, 17.6, &[window]),
            row("linux-2.6.22", "mean goodput", "Mbit/s", 376.0, 396.0, &[phase]),
            row("aist-fix", "mean goodput", "Mbit/s", 483.0, 482.3, &[phase]),
        ],
        claims: vec![
            claim(
                "order",
                "Goodput: linux-2.6.17 < linux-2.6.22 <= aist-fix.",
                true,
                "187 < 396 <= 482 Mbit/s (means of 30 runs)",
            ),
            claim(
                "silent",
                "Only linux-2.6.17 stops for seconds.",
                false,
                "linux-2.6.22 stopped for 1.2 s at 8.4 s in run 7",
            ),
        ],
        assumed: None,
        comparison: None,
    }
}

fn page(figures: &[Figure]) -> String {
    let mut summary = Table::new(
        "Thirty runs of 1 GB",
        vec![
            TableColumn::text("profile"),
            TableColumn::number("time, mean", "s"),
            TableColumn::number("maximum", "s"),
            TableColumn::number("goodput", "Mbit/s"),
            TableColumn::number("timeouts", ""),
            TableColumn::number("longest stop", "s"),
        ],
    );
    summary.row(vec!["linux-2.6.17".into(), 48.1.into(), 91.0.into(), 187.0.into(), 5.6.into(), 9.04.into()]);
    summary.row(vec![
        "linux-2.6.22".into(),
        20.2.into(),
        21.0.into(),
        396.0.into(),
        28.3.into(),
        0.21.into(),
    ]);
    summary.row(vec!["aist-fix".into(), 16.6.into(), 16.7.into(), 482.3.into(), 0u64.into(), 0.01.into()]);
    let mut page = Page::new("Why linux-2.6.17 stops behind a policer");
    page.verdict("One of two claims fails. (Synthetic data.)", false);
    page.paragraph(
        "A transfer of 1 GB over a path of 10 ms with a policer of 500 Mbit/s, with three recovery \
         algorithms.",
    );
    page.table(&summary);
    page.place("The stop that lasts longest", "bandwidth.svg", 38.0, 47.0, 0.0);
    page.heading("Figures");
    for figure in figures {
        page.figure(figure);
    }
    page.reproduction(&reproduction());
    page.heading("How to repeat it").command("farpace papers stops --out report");
    page.details("Scenario", "[[link]]\nrate = \"500 Mbit/s\"   # <- the policer\nburst = \"16 MB\"\n");
    page.render()
}

fn main() -> std::io::Result<()> {
    let Some(directory) = std::env::args().nth(1) else {
        eprintln!("usage: gallery DIRECTORY");
        std::process::exit(2);
    };
    let directory = Path::new(&directory);
    std::fs::create_dir_all(directory)?;
    let mut figures = figures();
    for f in &figures {
        println!("{:24} {:7} bytes", f.file_name, f.svg.len());
        std::fs::write(directory.join(&f.file_name), &f.svg)?;
    }
    let empty: [(Drawing, &str); 3] = [
        (bandwidth("No bandwidth", &[], &[]), "empty-bandwidth.svg"),
        (window("No window", &WindowHistory::new(0)), "empty-window.svg"),
        (variables("No rows", &[], ByteCount::new(1448), None), "empty-variables.svg"),
    ];
    figures.extend(empty.into_iter().map(|(d, name)| d.figure(name, "A run without events.")));
    std::fs::write(directory.join("index.html"), page(&figures))?;
    print!("\n{}", reproduction().to_text());
    Ok(())
}
