//! The report of a run: one HTML file with everything, and its figures.

use crate::RunInput;
use crate::summary::{FlowSummary, RunSummary};
use crate::watch::{MAX_SHOWN, Pictures, RunWatch};
use crate::{classes, datagrams, nics, pacing, tables, words};
use farpace_lab::scenario::explain;
use farpace_report::{
    BandwidthSeries, BinInterval, BinnedSeries, Figure, Page, RateLimit, bandwidth, time_sequence_with_drops,
    variables, window,
};
use farpace_units::{Rate, Seq, Span};

/// Adds to a page why the flow of this name took its time, if that is known; false: it is not. The last is
/// the file of the figure over the same time.
pub type ReasonSection<'a> = dyn Fn(&mut Page, &str, &str) -> bool + 'a;

/// The page as HTML, and the figures on it. `meters` are the receiving hosts, and what came in.
pub fn page(
    input: &RunInput,
    summary: &RunSummary,
    watch: &RunWatch,
    meters: &[(String, BinnedSeries)],
    reasons: &ReasonSection<'_>,
) -> (String, Vec<Figure>) {
    let mut page = Page::new(&summary.scenario.title);
    page.one_clock();
    let mut figures = Vec::new();
    page.verdict(&summary.verdict, words::is_good(summary));
    if !summary.scenario.set.is_empty() {
        page.paragraph(&format!(
            "The scenario was changed for this run: {}.",
            summary.scenario.set.join(", ")
        ));
    }
    if !input.scenario.description.trim().is_empty() {
        page.paragraph(input.scenario.description.trim());
    }
    page.heading("Summary").table(&tables::flows(summary));
    let tables = [
        classes::table(&summary.classes),
        classes::times(&summary.classes),
        tables::again(summary),
        datagrams::table(&summary.datagrams),
        pacing::table(&summary.pacing),
        nics::table(&summary.nics),
        tables::drops(summary),
    ];
    for table in tables.iter().filter(|t| !t.is_empty()) {
        page.table(table);
    }
    page.heading("Bandwidth at the receivers");
    let figure = receivers(summary, meters);
    page.figure(&figure);
    figures.push(figure);
    let places = watch.places().map_or_else(Vec::new, |places| places.figures());
    if let (Some(watched), false) = (watch.places(), places.is_empty()) {
        page.heading("Queues, drops and paths").table(&watched.table());
        for figure in places {
            page.figure(&figure);
            figures.push(figure);
        }
    }
    for (flow, pictures) in summary.flows.iter().zip(watch.pictures()) {
        let drawn = flow_section(&mut page, summary, flow, pictures, reasons);
        figures.extend(drawn);
    }
    if summary.flows.len() > MAX_SHOWN {
        page.paragraph(&format!(
            "There are figures of the first {MAX_SHOWN} flows; the summary has all {}.",
            summary.flows.len()
        ));
    }
    page.heading("How to repeat it").paragraph(&format!(
        "farpace {} with seed {}: the same version, scenario and seed give the same result to the last byte.",
        summary.farpace, summary.scenario.seed
    ));
    page.command(&input.command);
    page.details("What the scenario means", &explain(&input.scenario));
    if let Ok(toml) = input.effective() {
        page.details("The scenario as it was run, with all defaults", &toml);
    }
    (page.render(), figures)
}

/// The first names, and how many more there are.
fn listed(names: &[&str]) -> String {
    let first = names.get(..MAX_SHOWN).unwrap_or(names);
    let more = names.len() - first.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    first.join(", ") + &more
}

/// What came in at each receiving host.
fn receivers(summary: &RunSummary, meters: &[(String, BinnedSeries)]) -> Figure {
    let mut silences: Vec<Vec<BinInterval>> = Vec::new();
    let mut labels = Vec::new();
    let shown = &meters[..meters.len().min(MAX_SHOWN)];
    for (host, _) in shown {
        let flows: Vec<&FlowSummary> = summary.flows.iter().filter(|f| f.to == *host).collect();
        // The silence of one of several flows is none at the host.
        silences.push(if let [flow] = flows[..] { intervals(flow) } else { Vec::new() });
        let names: Vec<&str> = flows.iter().map(|f| f.name.as_str()).collect();
        labels.push(format!("into {host} ({})", listed(&names)));
    }
    let series: Vec<BandwidthSeries<'_>> = shown
        .iter()
        .zip(&silences)
        .zip(&labels)
        .map(|(((_, bins), silences), label)| BandwidthSeries { label, bins, silences })
        .collect();
    let limits = limits(&summary.flows);
    let mut caption =
        "Ethernet frames that came out of the network at each receiver, payload and headers, per \
        bin of time. A path that is full shows as a curve at the dashed line."
            .to_owned();
    if summary.flows.iter().any(|f| f.bottleneck.as_ref().is_some_and(|b| b.kind == "policer")) {
        caption.push_str(" A policer lets more pass for as long as its bucket lasts, then drops.");
    }
    if silences.iter().any(|s| !s.is_empty()) {
        caption.push_str(
            " Shaded: stretches in which the transfer stood still, at most one packet arriving per round \
             trip.",
        );
    }
    if summary.flows.iter().any(|f| !f.spent.crawling.is_zero()) {
        caption.push_str(" Flat but not shaded: it crawled, at less than 1 % of what the path can carry.");
    }
    let limits: Vec<RateLimit<'_>> =
        limits.iter().map(|(label, rate)| RateLimit { label, rate: *rate }).collect();
    bandwidth("Bandwidth over time", &series, &limits).figure("figures/bandwidth.svg", &caption)
}

/// The bottlenecks of the flows, each once.
fn limits(flows: &[FlowSummary]) -> Vec<(String, Rate)> {
    let mut limits: Vec<(String, Rate)> = Vec::new();
    for b in flows.iter().filter_map(|f| f.bottleneck.as_ref()) {
        let limit =
            (format!("{}: {}", words::place(b), words::rate(b.rate)), Rate::from_bits_per_sec(b.rate));
        if !limits.contains(&limit) && limits.len() < 3 {
            limits.push(limit);
        }
    }
    limits
}

fn intervals(flow: &FlowSummary) -> Vec<BinInterval> {
    flow.silence.all.iter().map(|s| BinInterval::new(s.start, s.end)).collect()
}

/// One flow: where its time went, its window, and its first loss.
fn flow_section(
    page: &mut Page,
    summary: &RunSummary,
    flow: &FlowSummary,
    pictures: &Pictures,
    reasons: &ReasonSection<'_>,
) -> Vec<Figure> {
    let mut figures = Vec::new();
    let several = summary.flows.len() > 1;
    page.heading(&format!("Flow {}: {} to {}, {}", flow.name, flow.from, flow.to, flow.profile));
    if several {
        page.paragraph(&words::flow_verdict(flow));
    }
    // One table of where the time went is enough.
    if !reasons(page, &flow.name, &format!("figures/{}-window.svg", flow.name)) {
        page.table(&tables::spent(flow));
    }
    places(page, flow, pictures);
    let name = |what: &str| format!("figures/{}-{what}.svg", flow.name);
    if several {
        let bytes = pictures.goodput.bins().iter().map(|bin| bin.bytes).collect();
        let bins = BinnedSeries::new(pictures.goodput.width(), bytes);
        let silences = intervals(flow);
        let series = [BandwidthSeries { label: &flow.name, bins: &bins, silences: &silences }];
        let caption = "Payload that reached the receiving program. After a loss it waits for the missing \
                       bytes, then comes at once: hence gaps and peaks above the line rate.";
        figures.push(bandwidth("Goodput over time", &series, &[]).figure(&name("goodput"), caption));
    }
    let caption = "How much the sender lets itself have in flight, read at the end of each bin. A loss cuts \
        ssthresh and with it the window; a window at one packet is a transfer that stands still.";
    figures.push(window("Congestion window", &pictures.window).figure(&name("window"), caption));
    figures.extend(first_loss(flow, pictures, &name));
    for figure in &figures {
        page.figure(figure);
    }
    if pictures.recorder.trigger().is_none() {
        page.paragraph("No data was sent again, so there is no loss to look at from near.");
    }
    figures
}

/// The ways to the first loss and the longest silence.
fn places(page: &mut Page, flow: &FlowSummary, pictures: &Pictures) {
    if let Some(at) = pictures.recorder.trigger().map(|at| at.as_secs_f64()) {
        let file = format!("figures/{}-first-loss.svg", flow.name);
        page.place(&format!("Show the first retransmission, at {at:.6} s"), &file, at, at, 0.0);
    }
    if let Some(longest) = intervals(flow).into_iter().max_by_key(BinInterval::span) {
        let (from, to) = (longest.start.as_secs_f64(), longest.end.as_secs_f64());
        let file = format!("figures/{}-window.svg", flow.name);
        let text = format!("Show the longest stop: {} from {from:.3} s", longest.span().rounded());
        page.place(&text, &file, from, to, 0.0);
    }
}

/// The figures around the first retransmission; none if there was no loss.
fn first_loss(flow: &FlowSummary, pictures: &Pictures, name: &dyn Fn(&str) -> String) -> Vec<Figure> {
    let recorder = &pictures.recorder;
    let Some(trigger) = recorder.trigger() else { return Vec::new() };
    let interval = recorder.interval();
    let origin = recorder.origin().unwrap_or(Seq::new(0));
    let records = recorder.clone().into_records();
    let around = format!(
        "From {} before the first retransmission at {:.3} s{}.",
        words::span(rounded(interval.map_or(Span::ZERO, |i| trigger.since(i.start)))),
        trigger.as_secs_f64(),
        interval.map_or(String::new(), |i| format!(
            " to {} after it ({} round trips)",
            words::span(rounded(i.end.since(trigger))),
            i.end.since(trigger).as_nanos() / flow.base_rtt.as_nanos().max(1)
        ))
    );
    let sequence = format!(
        "{around} Blue: data sent for the first time. Vermillion: sent again. The black line is what the \
         receiver has without a gap; where it is level, it waits for a lost segment. SACK blocks tell what \
         has arrived beyond the gap. Crosses: data that the network dropped, when and why."
    );
    let beliefs = format!(
        "{around} Above: what the sender believes. Segments that are neither acknowledged, SACKed nor marked \
         lost count as in flight; if retransmissions that were lost again are not noticed, in_flight stays \
         at cwnd and nothing may be sent. Below: the windows that follow from it."
    );
    vec![
        time_sequence_with_drops(
            "The first loss: data, ACKs and SACK blocks",
            &records,
            origin,
            interval,
            &pictures.drops.by_cause(),
        )
        .figure(&name("first-loss"), &sequence),
        variables("The first loss: the sender's variables after each ACK", &records, pictures.mss, interval)
            .figure(&name("variables"), &beliefs),
    ]
}

/// To a tenth of a millisecond, which is enough in sentences.
fn rounded(span: Span) -> Span {
    Span::from_micros((span.as_micros() + 50) / 100 * 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: the bandwidth of 60 flows is labelled as that of the first eight.
    #[test]
    fn a_label_counts_the_flows_that_it_does_not_name() {
        assert_eq!(listed(&["a", "b"]), "a, b");
        assert_eq!(listed(&["f"; MAX_SHOWN + 52]), ["f"; MAX_SHOWN].join(", ") + " and 52 more");
    }
}
