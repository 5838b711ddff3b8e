//! What happened at each place of the network: queues, drops, and the shares of NICs, as figures.

use farpace_lab::{DropMeter, DroppedSegment, NicRate, Run};
use farpace_path::{DropReason, QueueReading};
use farpace_report::{
    DropSeries, Figure, LinePanel, RecordedDrops, Reduced, StyledLine, Table, TableCell, TableColumn, Thing,
    drops, line_panels, styles,
};
use farpace_units::{Instant, Span, grouped};
use std::collections::VecDeque;

/// Queues with lines in the figure, those with the longest delay; the table has all.
const MAX_QUEUES: usize = 8;
/// Pairs of place and cause with marks of their own, those with most drops.
const MAX_CAUSES: usize = 8;
/// Dropped segments of a flow that are kept for the figure of its first loss.
const MAX_SEGMENTS: usize = 20_000;
/// Label of the time axes.
const X: &str = "time since start (s)";

/// One queue.
struct QueueHistory {
    name: String,
    /// Seconds.
    delay: Reduced,
    packets: Reduced,
}

/// What the places of a run showed.
#[derive(Default)]
pub struct PlacesWatch {
    queues: Vec<QueueHistory>,
    /// Place and what was dropped there.
    drops: Vec<(String, DropMeter)>,
    nics: Vec<NicRate>,
    end: Instant,
}

/// The dropped segments of one flow around its first loss.
#[derive(Clone, Debug, Default)]
pub struct FlowDrops {
    segments: VecDeque<(String, DroppedSegment)>,
}

impl FlowDrops {
    /// Adds one. `since`: earlier ones are not needed any more.
    pub fn add(&mut self, place: &str, segment: DroppedSegment, since: Instant) {
        while self.segments.front().is_some_and(|(_, first)| first.time < since) {
            self.segments.pop_front();
        }
        if self.segments.len() < MAX_SEGMENTS {
            self.segments.push_back((place.to_owned(), segment));
        }
    }

    /// By cause and place, in the order in which they began.
    pub fn by_cause(&self) -> Vec<RecordedDrops> {
        let mut causes: Vec<RecordedDrops> = Vec::new();
        for (place, s) in &self.segments {
            let label = label(s.reason, place);
            let segment = (s.time, s.seq, s.len);
            match causes.iter_mut().find(|cause| cause.label == label) {
                Some(cause) => cause.segments.push(segment),
                None => causes.push(RecordedDrops { label, thing: thing(s.reason), segments: vec![segment] }),
            }
        }
        causes
    }
}

/// The name of a cause at a place, as in the table of drops.
fn label(reason: DropReason, place: &str) -> String {
    format!("{} at {place}", reason.name().replace('_', " "))
}

/// What a drop is in figures.
const fn thing(reason: DropReason) -> Thing {
    match reason {
        DropReason::QueueFull => Thing::DropQueueFull,
        DropReason::Red | DropReason::CoDel => Thing::DropManaged,
        DropReason::Policed => Thing::DropPoliced,
        DropReason::Loss => Thing::DropRandom,
        DropReason::BurstLoss => Thing::DropBurst,
        DropReason::BitErrors | DropReason::BadChecksum => Thing::DropBitErrors,
        DropReason::Outage => Thing::DropOutage,
        DropReason::NoRoute
        | DropReason::TtlExpired
        | DropReason::Malformed
        | DropReason::NoListener
        | DropReason::HostLimit
        | DropReason::TooBig
        | DropReason::Martian
        | DropReason::Fragment
        | DropReason::Unresolved
        | DropReason::NoAck
        | DropReason::AckThinned => Thing::DropOther,
    }
}

impl PlacesWatch {
    /// For the queues with these names.
    pub fn new<'a>(queues: impl Iterator<Item = &'a str>) -> Self {
        let history = |name: &str| QueueHistory {
            name: name.to_owned(),
            delay: Reduced::default(),
            packets: Reduced::default(),
        };
        PlacesWatch { queues: queues.map(history).collect(), ..PlacesWatch::default() }
    }

    /// The readings of the queues for the bin from `start` to `end`, in the order of the names.
    pub fn readings(&mut self, start: Instant, end: Instant, readings: &[QueueReading]) {
        self.end = end;
        for (queue, reading) in self.queues.iter_mut().zip(readings) {
            queue.packets.push(start, reading.packets as f64);
            if let Some(wait) = reading.wait {
                queue.delay.push(start, wait.as_secs_f64());
            }
        }
    }

    /// The run is over.
    ///
    /// # Errors
    /// A defect of the network.
    pub fn finish(&mut self, run: &mut Run) -> Result<(), farpace_lab::RunError> {
        self.nics = run.nic_rates()?;
        let name = |m: &DropMeter| (run.place_name(m.element).to_owned(), m.clone());
        self.drops = run.drop_meters().iter().map(name).collect();
        Ok(())
    }

    /// The most that waited in each queue in which something did.
    pub fn table(&self) -> Table {
        let columns = vec![
            TableColumn::text("queue"),
            TableColumn::number("longest delay", "ms"),
            TableColumn::number("most", "packets"),
        ];
        let mut table = Table::new("Queues", columns);
        for queue in self.waiting() {
            table.row(vec![
                queue.name.as_str().into(),
                TableCell::Number(peak(&queue.delay) * 1e3, Some(3)),
                (peak(&queue.packets) as u64).into(),
            ]);
        }
        table
    }

    /// Queues in which packets have waited for others, those with the longest delay first.
    fn waiting(&self) -> Vec<&QueueHistory> {
        let mut waiting: Vec<&QueueHistory> =
            self.queues.iter().filter(|q| peak(&q.packets) > 1.0 && peak(&q.delay) > 0.0).collect();
        waiting.sort_by(|a, b| peak(&b.delay).total_cmp(&peak(&a.delay)));
        waiting
    }

    /// The figures of which there is something to see.
    pub fn figures(&self) -> Vec<Figure> {
        self.queue_figure().into_iter().chain(self.drop_figure()).chain(self.nic_figures()).collect()
    }

    /// The last value holds until the end of the run.
    fn held(&self, mut points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
        points.extend(points.last().map(|last| (self.end.as_secs_f64(), last.1)));
        points
    }

    fn queue_figure(&self) -> Option<Figure> {
        let waiting = self.waiting();
        let shown = waiting.get(..MAX_QUEUES).unwrap_or(&waiting);
        let first = shown.first()?;
        let (unit, scale) = time_unit(peak(&first.delay));
        let styles = styles(shown.iter().map(|q| q.name.as_str()));
        let panel = |y_label, of: &dyn Fn(&QueueHistory) -> Vec<(f64, f64)>| LinePanel {
            heading: "",
            y_label,
            lines: shown
                .iter()
                .zip(&styles)
                .map(|(q, style)| StyledLine { label: &q.name, style: *style, points: of(q) })
                .collect(),
            level: None,
        };
        let delay_label = format!("delay ({unit})");
        let panels = [
            panel(&delay_label, &|q| {
                self.held(q.delay.steps(self.end).map(|(at, delay)| (at, delay * scale)).collect())
            }),
            panel("packets in the queue", &|q| self.held(q.packets.steps(self.end).collect())),
        ];
        let mut caption = "The longest wait of a packet, and most packets, in each bin of time. The packet \
                           that is being sent counts as one in the queue; its own transmission is no wait."
            .to_owned();
        if waiting.len() > shown.len() {
            caption
                .push_str(&format!(" Of {} queues the {MAX_QUEUES} with the longest delay.", waiting.len()));
        }
        Some(line_panels("Queue and delay at each place", X, &panels).figure("figures/queues.svg", &caption))
    }

    fn drop_figure(&self) -> Option<Figure> {
        let mut by_count: Vec<&(String, DropMeter)> = self.drops.iter().collect();
        by_count.sort_by_key(|(_, m)| std::cmp::Reverse(m.meter.total().packets));
        let all = by_count.len();
        by_count.truncate(MAX_CAUSES);
        let widest = by_count.iter().map(|(_, m)| m.meter.width()).max()?;
        let series: Vec<DropSeries> = by_count
            .into_iter()
            .map(|(place, m)| {
                let counts = m.meter.bins().iter().enumerate().filter(|(_, bin)| bin.packets > 0);
                let at = |i: usize| (Instant::ZERO + m.meter.width() * i as u64).as_secs_f64();
                DropSeries {
                    label: format!("{}: {}", label(m.reason, place), grouped(m.meter.total().packets)),
                    thing: thing(m.reason),
                    counts: counts.map(|(i, bin)| (at(i), bin.packets as f64)).collect(),
                    first: Some(m.first.as_secs_f64()),
                }
            })
            .collect();
        let y_label = format!("packets dropped in bins of {widest}, logarithmic");
        let mut caption = "Packets that the network dropped, by cause and place, whatever they carried. The \
                           legend has their numbers."
            .to_owned();
        if all > MAX_CAUSES {
            caption
                .push_str(&format!(" Of {all} pairs of cause and place the {MAX_CAUSES} with most drops."));
        }
        let ends = (0.0, self.end.as_secs_f64());
        Some(drops("Drops by cause", (X, &y_label), ends, &series).figure("figures/drops.svg", &caption))
    }

    /// One for each host with several NICs.
    fn nic_figures(&self) -> Vec<Figure> {
        let mut hosts: Vec<&str> = self.nics.iter().map(|nic| nic.host.as_str()).collect();
        hosts.dedup();
        hosts.into_iter().filter_map(|host| self.nic_figure(host)).collect()
    }

    fn nic_figure(&self, host: &str) -> Option<Figure> {
        let nics: Vec<&NicRate> = self.nics.iter().filter(|nic| nic.host == host).collect();
        // A NIC that sent little may have finer bins; the widest are a multiple of them.
        let bin = nics.iter().map(|nic| nic.sent.width()).max()?;
        let bytes: Vec<Vec<u64>> = nics.iter().map(|nic| in_bins(nic, bin)).collect();
        let bins = bytes.iter().map(Vec::len).max().filter(|n| *n > 0)?;
        let all: Vec<u64> = (0..bins).map(|i| bytes.iter().filter_map(|b| b.get(i)).sum()).collect();
        let names: Vec<String> = nics.iter().map(|nic| format!("{} ({})", nic.name, nic.link)).collect();
        let styles = styles(names.iter().map(String::as_str));
        let line = |of: &dyn Fn(u64, u64) -> Option<f64>| {
            let each = bytes.iter().zip(&names).zip(&styles).map(|((bytes, name), style)| StyledLine {
                label: name,
                style: *style,
                points: self.held(
                    (0..bins)
                        .filter_map(|i| {
                            let at = (Instant::ZERO + bin * i as u64).as_secs_f64();
                            Some((at, of(bytes.get(i).copied().unwrap_or(0), *all.get(i)?)?))
                        })
                        .collect(),
                ),
            });
            each.collect::<Vec<_>>()
        };
        let seconds = bin.as_secs_f64();
        let rate_label = format!("Mbit/s in bins of {bin}");
        let panels = [
            LinePanel {
                heading: "",
                y_label: &rate_label,
                lines: line(&|bytes, _| Some(bytes as f64 * 8e-6 / seconds)),
                level: None,
            },
            LinePanel {
                heading: "",
                y_label: "share of the bytes (%)",
                // Nothing is shared while nothing is sent.
                lines: line(&|bytes, all| (all > 0).then(|| bytes as f64 * 100.0 / all as f64)),
                level: None,
            },
        ];
        let caption =
            "Ethernet frames that the host sent by each NIC: data, and ACKs of data that it received.";
        let title = format!("Shares of the NICs of {host}");
        Some(line_panels(&title, X, &panels).figure(&format!("figures/nics-{host}.svg"), caption))
    }
}

/// Bytes of a NIC in bins of `width`, a multiple of its own.
fn in_bins(nic: &NicRate, width: Span) -> Vec<u64> {
    let each = usize::try_from(width.as_nanos() / nic.sent.width().as_nanos().max(1)).unwrap_or(1).max(1);
    nic.sent.bins().chunks(each).map(|bins| bins.iter().map(|bin| bin.bytes.get()).sum()).collect()
}

fn peak(series: &Reduced) -> f64 {
    series.range().map_or(0.0, |r| r.1)
}

/// A unit in which `most` seconds are a handy number, and its number in a second.
fn time_unit(most: f64) -> (&'static str, f64) {
    match most {
        s if s >= 10.0 => ("s", 1.0),
        s if s >= 1e-3 => ("ms", 1e3),
        _ => ("\u{b5}s", 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_lab::Inputs;
    use farpace_lab::scenario::Scenario;
    use farpace_report::SeriesKind;

    /// Breaks: a figure of the places is missing from a run that has something to show, names the wrong
    /// place or cause, or is there although there is nothing to see.
    #[test]
    fn figures_show_what_a_run_has() {
        let scenario = |queue: &str, size: &str| {
            let text = format!(
                r#"
                title = "t"
                hosts = {{ a = {{}}, b = {{}} }}
                [[links]]
                name = "w"
                between = ["a", "b"]
                rate = "50 Mbit/s"
                delay = "5 ms"
                queue = "{queue}"
                [[flows]]
                name = "f"
                from = "a"
                to = "b"
                size = "{size}"
                "#
            );
            Scenario::parse(&text, "t").unwrap()
        };
        let run = |scenario: &Scenario| {
            let mut run = Run::new(scenario, Inputs::default()).unwrap();
            run.watch_places().unwrap();
            let mut watch = PlacesWatch::new(run.queue_names());
            let mut finished = false;
            while !finished {
                let start = run.now();
                finished = run.advance(None).unwrap().finished;
                watch.readings(start, run.now(), &run.queue_readings());
            }
            watch.finish(&mut run).unwrap();
            watch
        };
        let full = run(&scenario("10 packets", "2 MB"));
        let figures = full.figures();
        let files: Vec<&str> = figures.iter().map(|f| f.file_name.as_str()).collect();
        assert_eq!(files, ["figures/queues.svg", "figures/drops.svg"]);
        let queues = figures[0].explore.as_ref().unwrap();
        assert_eq!(queues.panels.len(), 2);
        assert!(queues.panels.iter().all(|p| p.series[0].name == "w, a to b"));
        let most = queues.panels[1].series[0].y.iter().copied().fold(0.0, f64::max);
        assert_eq!(most, 10.0, "the queue's limit");
        let drops = figures[1].explore.as_ref().unwrap();
        let series = &drops.panels[0].series[0];
        assert!(series.kind == SeriesKind::Stems && series.name.starts_with("queue full at w: "));
        assert!(full.table().to_text().contains("w, a to b"));
        let idle = run(&scenario("1000 packets", "1 kB"));
        assert!(idle.figures().is_empty() && idle.table().is_empty());
    }

    /// Breaks: a flow's figure lacks the drops of its loss, or keeps all drops of a long run.
    #[test]
    fn drops_around_the_first_loss_are_kept() {
        let scenario = Scenario::parse(
            "title = \"t\"\nhosts = { a = {}, b = {} }\n\
             links = [{ name = \"w\", between = [\"a\", \"b\"], rate = \"50 Mbit/s\", delay = \"5 ms\", \
             queue = \"20 packets\" }]\n\
             flows = [{ name = \"f\", from = \"a\", to = \"b\", size = \"8 MB\" }]",
            "t",
        )
        .unwrap();
        let mut run = Run::new(&scenario, Inputs::default()).unwrap();
        run.watch_places().unwrap();
        let (mut all, mut finished) = (Vec::new(), false);
        while !finished {
            finished = run.advance(None).unwrap().finished;
            all.extend(run.take_dropped().into_iter().map(|(_, segment)| segment));
        }
        assert!(all.len() > 20);
        let mut kept = FlowDrops::default();
        let since = all[10].time;
        for segment in &all {
            kept.add("w", *segment, since);
        }
        let causes = kept.by_cause();
        assert_eq!(causes.len(), 1);
        assert_eq!((causes[0].label.as_str(), causes[0].thing), ("queue full at w", Thing::DropQueueFull));
        assert!(causes[0].segments.iter().all(|s| s.0 >= since) && causes[0].segments.len() < all.len());
    }
}
