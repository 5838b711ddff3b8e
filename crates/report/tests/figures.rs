//! Properties of all figures, and of a page with all of them.

use farpace_events::{Cause, Record, RecordDirection, RecordSink, RecoveryState};
use farpace_report::{
    BandwidthSeries, BinInterval, BinnedSeries, ComparedEstimate, ComparisonRow, Curve, Dot, Drawing,
    DropSeries, FlightRecorder, Level, LinePanel, Page, RateLimit, RecordedDrops, SeriesKind, StyledLine,
    Thing, TimeLine, WindowHistory, bandwidth, comparison, curves, drops, line_panels, lines, scatter,
    time_sequence, time_sequence_with_drops, variables, window,
};
use farpace_units::{ByteCount, Instant, Packets, Rate, Seq, Span};
use farpace_wire::tcp::SackBlock;

/// Asserts that `svg` is well-formed: tags match, attributes are quoted, and special characters are escaped.
fn assert_well_formed(svg: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = svg.trim_end();
    assert!(rest.starts_with("<svg "), "{}", rest.get(..80).unwrap_or(rest));
    while let Some(start) = rest.find('<') {
        let text = &rest[..start];
        assert!(!text.contains('>'), "stray > in {text}");
        assert!(text.trim().is_empty() || !open.is_empty(), "text outside of elements: {text}");
        for entity in text.split('&').skip(1) {
            assert!(
                ["amp;", "lt;", "gt;", "quot;", "#39;"].iter().any(|e| entity.starts_with(e)),
                "{entity}"
            );
        }
        let end = start + rest[start..].find('>').expect("the end of a tag");
        let tag = &rest[start + 1..end];
        assert!(!tag.contains('<'), "{tag}");
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "a closing tag matches the open one");
        } else if !tag.ends_with('/') {
            open.push(tag.split([' ', '\n']).next().unwrap_or(tag));
        }
        rest = &rest[end + 1..];
        assert!(!open.is_empty() || rest.is_empty(), "one root element");
    }
    assert!(open.is_empty() && rest.is_empty(), "{open:?} {rest}");
}

fn check(drawing: &Drawing) {
    for svg in [&drawing.wide, &drawing.narrow] {
        assert_well_formed(svg);
        for bad in ["NaN", "inf", "<script"] {
            assert!(!svg.contains(bad), "{bad}");
        }
    }
}

fn row(us: u64, n: u32) -> Record {
    Record {
        time: Instant::ZERO + Span::from_micros(us),
        connection: 0,
        direction: if n.is_multiple_of(2) { RecordDirection::Sent } else { RecordDirection::Received },
        seq: Seq::new(n.wrapping_mul(1448)),
        len: ByteCount::new(1448),
        ack: Seq::new(1),
        sack: [SackBlock { start: Seq::new(n ^ 0x8000_0000), end: Seq::new(n.wrapping_mul(1448)) }]
            .into_iter()
            .collect(),
        snd_una: Seq::new(n.wrapping_mul(1448)),
        snd_nxt: Seq::new(n.wrapping_mul(1448)) + 3_000_000,
        cwnd: Packets::new(n % 2_000),
        ssthresh: if n < 10 { Packets::MAX } else { Packets::new(1_000) },
        in_flight: Packets::new(n % 1_999),
        packets_out: Packets::new(1),
        lost_out: Packets::new(n % 7),
        sacked_out: Packets::MAX,
        fackets_out: Packets::ZERO,
        retrans_out: Packets::ZERO,
        state: if n.is_multiple_of(3) { RecoveryState::Recovery } else { RecoveryState::Loss },
        srtt: Span::ZERO,
        rttvar: Span::ZERO,
        rto: Span::ZERO,
        rwnd: ByteCount::ZERO,
        bandwidth: Default::default(),
        cause: match n % 5 {
            0 => Some(Cause::TimerRto),
            1 => Some(Cause::FastRetransmit),
            _ => None,
        },
    }
}

const TITLE: &str =
    "<script>alert(\"1\")</script> & a title long enough to need more than one line on a phone";

/// All figures, from `n` points of data.
fn all(n: u32) -> Vec<Drawing> {
    let bins = BinnedSeries::new(
        Span::from_millis(10),
        (0..n).map(|i| ByteCount::new(u64::from(i) * 997 % 1_250_000)).collect(),
    );
    let silences = bins.silences(ByteCount::new(500_000), Span::ZERO);
    let limits = [RateLimit { label: TITLE, rate: Rate::from_mbit(500) }];
    let series = BandwidthSeries { label: TITLE, bins: &bins, silences: &silences };
    let records: Vec<Record> = (0..n).map(|i| row(u64::from(i) * 13, i)).collect();
    let mut history = WindowHistory::new(0);
    records.iter().for_each(|r| history.record(r));
    let estimate = ComparedEstimate { mean: f64::from(n), range: Some((0.0, f64::INFINITY)) };
    let invalid = ComparedEstimate { mean: f64::NAN, range: None };
    let rows: Vec<ComparisonRow<'_>> =
        (0..n).map(|_| ComparisonRow { label: TITLE, values: [Some(estimate), Some(invalid)] }).collect();
    let style = Thing::Queue.style();
    let points = (0..n).map(|i| (f64::from(i), f64::from(i % 7))).collect();
    let line = StyledLine { label: TITLE, style, points };
    let plain = TimeLine { label: TITLE, points: vec![(1.0, 2.0)] };
    let empty_line = StyledLine { label: "", style, points: Vec::new() };
    let level = Level { label: TITLE, value: 3.0 };
    let panel = LinePanel {
        heading: TITLE,
        y_label: TITLE,
        lines: vec![line, empty_line],
        level: Some(level.clone()),
    };
    let lost = DropSeries {
        label: TITLE.to_owned(),
        thing: Thing::DropPoliced,
        counts: (0..n).map(|i| (f64::from(i), f64::from(i % 9 + 1))).collect(),
        first: Some(0.0),
    };
    let segments = records.iter().map(|r| (r.time, r.seq, r.len)).chain([(
        Instant::FAR_FUTURE,
        Seq::new(1),
        ByteCount::MAX,
    )]);
    let dropped =
        [RecordedDrops { label: TITLE.to_owned(), thing: Thing::DropPoliced, segments: segments.collect() }];
    let cases: Vec<&str> = (0..n).map(|_| TITLE).collect();
    let curve =
        Curve { label: TITLE, points: (0..n).map(|_| Some(estimate)).chain([None, Some(invalid)]).collect() };
    let dots: Vec<Dot<'_>> = (0..n)
        .map(|i| Dot::new(TITLE, if i == 1 { f64::NAN } else { f64::from(i) }, f64::from(i % 5)))
        .collect();
    let empty = BinInterval::new(Instant::FAR_FUTURE, Instant::ZERO);
    vec![
        bandwidth(TITLE, std::slice::from_ref(&series), &limits),
        bandwidth(TITLE, &[series.clone(), series], &[]),
        window(TITLE, &history),
        time_sequence(TITLE, &records, Seq::new(77), None),
        time_sequence(TITLE, &records, Seq::new(77), Some(empty)),
        variables(TITLE, &records, ByteCount::ZERO, None),
        variables(TITLE, &records, ByteCount::new(1448), Some(empty)),
        comparison(TITLE, TITLE, &rows),
        lines(TITLE, TITLE, &[plain], Some(&level)),
        line_panels(TITLE, TITLE, &[panel.clone(), panel]),
        drops(TITLE, (TITLE, TITLE), (0.0, f64::from(n)), &[lost.clone(), lost]),
        time_sequence_with_drops(TITLE, &records, Seq::new(77), None, &dropped),
        curves(TITLE, TITLE, TITLE, &cases, &[curve.clone(), curve]),
        scatter(TITLE, TITLE, TITLE, &dots),
    ]
}

/// Breaks: a line that is in two panels has two entries in the legend, or panels of one figure differ in
/// time.
#[test]
fn panels_share_their_legend_and_their_time() {
    let line = |from: f64, to: f64| StyledLine {
        label: "wan, a to b",
        style: Thing::Queue.style(),
        points: vec![(from, 1.0), (to, 2.0)],
    };
    let panel = |y_label, line| LinePanel { heading: "", y_label, lines: vec![line], level: None };
    let drawing = line_panels(
        "Queues",
        "time (s)",
        &[panel("delay (ms)", line(1.0, 2.0)), panel("packets", line(3.0, 9.0))],
    );
    assert_eq!(drawing.wide.matches("wan, a to b").count(), 1);
    let exploration = drawing.explore.unwrap();
    assert_eq!(exploration.panels.len(), 2);
    assert_eq!(exploration.x, farpace_report::ExploreAxis::Time(1.0, 9.0));
}

/// Breaks: a single drop is invisible beside thousands, a rare cause is hidden behind a frequent one, or the
/// first drop of a cause cannot be found.
#[test]
fn every_cause_of_drops_shows() {
    let series = |label: &str, thing, n: f64, at: f64| DropSeries {
        label: label.to_owned(),
        thing,
        counts: vec![(at, n)],
        first: Some(at),
    };
    let both = [
        series("loss at wan: 1", Thing::DropRandom, 1.0, 5.0),
        series("queue full at wan: 4,000", Thing::DropQueueFull, 4_000.0, 5.0),
    ];
    let drawing = drops("Drops", ("time (s)", "packets"), (0.0, 10.0), &both);
    assert!(drawing.wide.contains("loss at wan: 1") && drawing.wide.contains("queue full at wan: 4,000"));
    let exploration = drawing.explore.unwrap();
    let panel = &exploration.panels[0];
    let drawn: Vec<&str> = panel.series.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(drawn, ["queue full at wan: 4,000", "loss at wan: 1"], "the smaller one in front");
    assert!(panel.log && panel.y.0 < 1.0, "one drop has a height");
    assert_eq!(exploration.events.len(), 2);
}

/// Breaks: a dropped segment is not at its place in the stream, or one outside of the figure's time is drawn.
#[test]
fn drops_are_marked_where_they_were_in_the_stream() {
    let records: Vec<Record> = (0..20).map(|i| row(u64::from(i) * 1_000, i * 2)).collect();
    let at = |us| Instant::ZERO + Span::from_micros(us);
    let segments = vec![
        (at(5_500), Seq::new(10 * 1_448), ByteCount::new(1_448)),
        (at(90_000), Seq::new(0), ByteCount::ZERO),
    ];
    let cause = RecordedDrops { label: "policed at wan".to_owned(), thing: Thing::DropPoliced, segments };
    let drawing = time_sequence_with_drops("t", &records, Seq::new(0), None, &[cause]);
    assert!(drawing.narrow.contains("policed at wan"));
    let exploration = drawing.explore.unwrap();
    let crosses = exploration.panels[0].series.iter().find(|s| s.kind == SeriesKind::Crosses).unwrap();
    assert_eq!((crosses.x.as_slice(), crosses.y.as_slice()), (&[0.0055][..], &[0.01448][..]));
    assert_eq!(crosses.until, [0.015_928]);
}

/// Breaks: figures of runs with no events or a single one are well-formed.
#[test]
fn figures_of_little_data_are_well_formed() {
    for n in [0, 1, 2] {
        all(n).iter().for_each(check);
    }
    check(&bandwidth("", &[], &[]));
}

/// Breaks: figures of long runs are well-formed and of bounded size.
#[test]
fn the_size_of_figures_is_bounded() {
    for drawing in all(200_000) {
        check(&drawing);
        assert!(drawing.wide.len() < 1_000_000, "{}", drawing.wide.len());
    }
}

/// Breaks: a peak or a dip of a single bin among many is visible in Figs. 1 and 8.
#[test]
fn single_bins_are_visible() {
    let figure_with = |bytes_of_one: u64| {
        let bytes = (0..100_000).map(|i| ByteCount::new(if i == 51_234 { bytes_of_one } else { 600_000 }));
        let bins = BinnedSeries::new(Span::from_millis(10), bytes.collect());
        let limits = [RateLimit { label: "link", rate: Rate::from_mbit(1_000) }];
        bandwidth("t", &[BandwidthSeries { label: "s", bins: &bins, silences: &[] }], &limits).wide
    };
    let (flat, peak, dip) = (figure_with(600_000), figure_with(1_200_000), figure_with(0));
    // The axis is drawn as "M48 <top>V<bottom>H<right>".
    let axis =
        flat.split("d=\"M48 ").find(|d| d.contains("H880\"/>") && !d.contains("H880M")).expect("the axis");
    let (top, rest) = axis.split_once('V').expect("the vertical part");
    let bottom = rest.split_once('H').expect("the horizontal part").0;
    let (top, bottom): (f64, f64) = (top.parse().expect("a number"), bottom.parse().expect("a number"));
    let visits = |svg: &str, mbit: f64| {
        // The scale ends 8 % above the link rate.
        let y = top + (bottom - top) * (1.0 - mbit / 1_080.0);
        svg.matches(&format!("V{}H", (y * 10.0).round() / 10.0)).count()
    };
    assert!(visits(&peak, 960.0) > visits(&flat, 960.0), "the peak is drawn");
    assert!(visits(&dip, 0.0) > visits(&flat, 0.0), "the dip is drawn");
}

/// A page without its scripts and their data: its policy allows those that are published and ours.
fn without_scripts(html: &str) -> String {
    let mut parts = html.split("<script");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once("</script>").map_or("", |(_, rest)| rest))
}

/// Breaks: a page with all figures works without network access and scripts.
#[test]
fn a_page_is_self_contained() {
    let mut page = Page::new(TITLE);
    for (i, drawing) in all(1_000).into_iter().enumerate() {
        page.figure(&drawing.figure(&format!("{i}.svg"), "caption"));
    }
    let html = without_scripts(&page.render());
    for bad in [
        "http:",
        "https:",
        "<script",
        "<link",
        "<img",
        "<iframe",
        "src=",
        "href=",
        "url(",
        "@import",
        "@font-face",
    ] {
        assert!(!html.contains(bad), "{bad}");
    }
    assert_eq!(html.matches("<svg ").count(), 28);
    assert!(html.contains("Figure 14."));
}

/// Breaks: the rows of the flight recorder can be drawn.
#[test]
fn recorded_rows_are_drawn() {
    let mut recorder = FlightRecorder::new(0, Span::from_millis(30), Span::from_millis(200));
    (0..50_000).for_each(|i| recorder.record(&row(u64::from(i) * 13, i)));
    assert!(recorder.done());
    let (origin, interval) = (recorder.origin().unwrap_or_default(), recorder.interval());
    let rows = recorder.into_records();
    check(&time_sequence("t", &rows, origin, interval));
    check(&variables("t", &rows, ByteCount::new(1448), interval));
}

/// Breaks: an algorithm has another colour as a point than as a line, or the spread of its runs is not drawn.
#[test]
fn a_dot_has_its_colour_and_whiskers() {
    let cubic = Dot::new("cubic", 10.0, 5.0).with_ranges(Some((8.0, 12.0)), Some((4.0, 6.0)));
    let plain = scatter("t", "x", "y", &[Dot::new("mine", 10.0, 5.0)]);
    let drawn = scatter("t", "x", "y", &[cubic]);
    check(&drawn);
    let circle = |drawing: &farpace_report::Drawing| {
        let (_, circle) = drawing.wide.split_once("<circle ").expect("a circle");
        circle.split_once(" cx=").expect("its place").0.to_owned()
    };
    assert_ne!(circle(&plain), circle(&drawn));
    assert_eq!(drawn.wide.matches("<path ").count(), plain.wide.matches("<path ").count() + 1, "whiskers");
}

/// Breaks: labels of close points do not overlap.
#[test]
fn labels_do_not_overlap() {
    let dots: Vec<Dot<'_>> = (0..12).map(|i| Dot::new("highspeed", f64::from(i) * 1e-3, 9.0)).collect();
    let drawing = scatter("t", "x", "y", &[&dots[..], &[Dot::new("far", 100.0, 1.0)]].concat());
    check(&drawing);
    let attribute = |text: &str, name: &str| -> f64 {
        let (_, rest) = text.split_once(&format!("{name}=\"")).expect("an attribute");
        rest.split_once('"').expect("the end of the attribute").0.parse().expect("a number")
    };
    let names = drawing.wide.split("<text ").filter(|t| t.contains(">highspeed<") && !t.contains("halo"));
    let positions: Vec<(f64, f64)> = names.map(|t| (attribute(t, " x"), attribute(t, " y"))).collect();
    assert_eq!(positions.len(), 12);
    for (i, a) in positions.iter().enumerate() {
        for b in &positions[i + 1..] {
            assert!((a.0 - b.0).abs() > 50.0 || (a.1 - b.1).abs() >= 12.0, "{a:?} {b:?}");
        }
    }
}

/// Breaks: the cases of curves are labelled on the axis, and missing points are not drawn.
#[test]
fn curves_are_drawn_over_labelled_cases() {
    let at = |mean| Some(ComparedEstimate { mean, range: Some((mean - 1.0, mean + 1.0)) });
    let curve = Curve { label: "a", points: vec![at(10.0), None, at(5.0)] };
    let svg = curves("t", "BER", "Mbit/s", &["0", "1e-8", "1e-7"], &[curve]).wide;
    for case in ["0", "1e-8", "1e-7"] {
        assert!(svg.contains(&format!(">{case}</text>")), "{case}");
    }
    assert_eq!(svg.matches("<circle").count(), 2);
}
