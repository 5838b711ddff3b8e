//! What a scenario means, in words and numbers: what the path can carry, what the window allows, and where
//! trouble is to be expected.

use super::figures::{ETHERNET_HEADER, PathBottleneck, SegmentSizes, dry_after, narrowest, on_line, scale};
use super::impairments::BurstLossSpec;
use super::spec::{Direction, FlowSpec, LinkSpec, ResolvedDirection, Scenario};
use super::topology::Hop;
use farpace_path::BitErrorsDirection;
use farpace_path::QueueLimit;
use farpace_tcp::config::Profile;
use farpace_units::{ByteCount, Rate, Span};

mod line;
mod middlebox;
mod nics;
mod pacing;

/// Columns of the text.
const WIDTH: usize = 100;

/// The scenario in words, at most 100 columns wide.
pub fn explain(scenario: &Scenario) -> String {
    let mut page = ExplainPage { text: String::new() };
    page.item(0, &scenario.title);
    if !scenario.description.trim().is_empty() {
        page.gap();
        for paragraph in scenario.description.trim().split("\n\n") {
            page.item(0, paragraph);
        }
    }
    page.gap();
    page.item(
        0,
        &format!(
            "The run ends after {} of virtual time at the latest; seed {}.",
            scenario.duration, scenario.seed
        ),
    );
    page.gap();
    page.item(0, "Links");
    for link in &scenario.links {
        explain_link(&mut page, scenario, link);
    }
    nics::machines(&mut page, scenario);
    for (i, flow) in scenario.flows.iter().enumerate() {
        page.gap();
        FlowPage { s: scenario, flow, segment: scenario.segment(flow), rtt: scenario.base_rtt(flow) }
            .write(i, &mut page);
    }
    let bins = scenario.duration.as_nanos() / scenario.trace.bin.as_nanos().max(1);
    page.gap();
    page.item(0, "Recorded");
    page.item(
        1,
        &format!("Bandwidth and connection variables in bins of {} (at most {bins}).", scenario.trace.bin),
    );
    let taps: Vec<String> = scenario.taps().into_iter().map(|t| t.name).collect();
    match taps.len() {
        0 => page.item(1, "No captures."),
        _ => page
            .item(1, &format!("Captures at {}, {} of each frame.", taps.join(", "), scenario.trace.snaplen)),
    }
    page.text
}

fn explain_link(page: &mut ExplainPage, s: &Scenario, link: &LinkSpec) {
    let segments = s.flows.iter().map(|f| s.segment(f));
    let segment = segments.max_by_key(|g| g.frame);
    let (forward, backward) = (link.direction(Direction::Forward), link.direction(Direction::Backward));
    let alike = backward == ResolvedDirection { from: backward.from, to: backward.to, ..forward.clone() };
    let both = if alike { " and back" } else { "" };
    let directions = if alike { vec![forward] } else { vec![forward, backward] };
    for d in directions {
        let rate = d.fastest().map_or("infinitely fast".to_string(), |r| r.to_string());
        let mut text = format!(
            "{}, {} to {}{both}: {rate}, delay {}, {}",
            link.name,
            d.from,
            d.to,
            d.shortest(),
            if d.pacing.is_some() { "queues of classes".to_owned() } else { format!("queue {}", d.queue) }
        );
        if let (Some(r), Some(g)) = (d.fastest(), segment) {
            let (data, ack) = (on_line(&d, g.frame), on_line(&d, g.ack_frame));
            text.push_str(&format!(
                ". A full frame of {} takes {} on the line, an ACK of {} {}",
                d.framing().on_the_line(g.frame),
                time(data),
                d.framing().on_the_line(g.ack_frame),
                time(ack)
            ));
            if d.pacing.is_none() {
                let drain = r.time_for(d.queue.in_bytes(g.frame) + queue_overhead(&d, &g));
                text.push_str(&format!("; a full queue of full frames takes {}", time(drain)));
            }
        }
        text.push('.');
        page.item(1, &text);
        let boxes = [middlebox::middlebox(&d), middlebox::ack_thinning(&d)];
        for words in
            [line::schedule(&d), line::aqm(&d), pacing::pacing(&d)].into_iter().chain(boxes).flatten()
        {
            page.item(2, &words);
        }
        if let Some(p) = d.policer {
            let refill = match p.refill {
                r if r.is_zero() => "continuously".to_string(),
                r => format!("{} every {r}", size(p.rate.bytes_in(r))),
            };
            page.item(
                2,
                &format!(
                    "Before it a policer: {} after a burst of {}, refilled {refill}. It drops what exceeds this and \
                     never queues.",
                    p.rate, p.burst
                ),
            );
        }
        if let Some(words) = nics::interrupts(&d) {
            page.item(2, &words);
        }
        if d.has_troubles() {
            page.item(2, &format!("Troubles: {}.", troubles(&d)));
        }
    }
}

/// Overhead that a full queue of packets adds on the line.
fn queue_overhead(d: &ResolvedDirection<'_>, g: &SegmentSizes) -> ByteCount {
    let frames = match d.queue {
        QueueLimit::Packets(p) => u64::from(p.get()),
        QueueLimit::Bytes(b) => b.get() / g.frame.get().max(1),
        QueueLimit::Unlimited => u64::from(QueueLimit::CAP.get()),
    };
    ByteCount::new(frames.saturating_mul(d.overhead.get()))
}

/// The IP packet whose loss by bit errors is given as an example.
const FULL: ByteCount = ByteCount::new(1_500);

fn troubles(d: &ResolvedDirection<'_>) -> String {
    let mut parts = Vec::new();
    for (p, what) in [(d.loss, "lost"), (d.duplicate, "duplicated"), (d.corrupt, "corrupted")] {
        if p > 0.0 {
            parts.push(format!("{} of packets {what}", percent(p)));
        }
    }
    if let Some(burst) = d.burst_loss {
        parts.push(format!(
            "{} of packets lost in bursts of {:.1} in the mean",
            percent(burst.mean()),
            1.0 / burst.end.max(f64::MIN_POSITIVE)
        ));
    }
    if d.bit_errors > 0.0 {
        let loss = BitErrorsDirection::new(d.bit_errors).loss_of(FULL);
        parts.push(format!(
            "a bit error rate of {:e} ({} of packets of {FULL} lost)",
            d.bit_errors,
            percent(loss)
        ));
    }
    if let Some(r) = d.reorder {
        parts.push(format!("{} of packets held back by {}", percent(r.chance), r.extra));
    }
    if !d.jitter.is_zero() {
        parts.push(format!("up to {} of random delay", d.jitter));
    }
    if let Some(mtu) = d.mtu {
        let told = if mtu.silent { "dropped without a word" } else { "dropped, and their senders told" };
        let changes = match mtu.changes.len() {
            0 => String::new(),
            n => format!(" ({n} changes later)"),
        };
        parts.push(format!("packets of more than {}{changes} {told}", mtu.limit));
    }
    if !d.outages.is_empty() {
        let down: Span = d.outages.iter().fold(Span::ZERO, |t, o| t + o.lasts);
        let plural = if d.outages.len() == 1 { "outage" } else { "outages" };
        parts.push(format!("{} {plural} of {} in all", d.outages.len(), time(down)));
    }
    if !d.clock_jumps.is_empty() {
        parts.push(format!("{} jumps of the sender's timestamp clock", d.clock_jumps.len()));
    }
    parts.join(", ")
}

/// What is known of one flow while its part is written.
struct FlowPage<'a> {
    s: &'a Scenario,
    flow: &'a FlowSpec,
    segment: SegmentSizes,
    rtt: Span,
}

impl FlowPage<'_> {
    fn write(&self, index: usize, page: &mut ExplainPage) {
        let (s, flow) = (self.s, self.flow);
        let profile = |p: Option<Profile>| p.unwrap_or_default().name();
        page.item(
            0,
            &format!(
                "Flow {}: {} from {} to {} (port {}), starting at {}",
                flow.name,
                flow.size,
                flow.from,
                flow.to,
                s.port(index),
                flow.start
            ),
        );
        page.item(
            1,
            &format!(
                "TCP: sender {}, receiver {}.",
                profile(flow.sender.profile),
                profile(flow.receiver.profile)
            ),
        );
        let paths = s.paths(flow);
        let ways: Vec<String> = paths.iter().map(|hops| self.way(hops)).collect();
        let (many, widest) = if ways.len() > 1 { ("s", " by the widest") } else { ("", "") };
        let ways = ways.join(" and ");
        page.item(
            1,
            &format!("Path{many}: {ways}. With empty queues a round trip takes {}{widest}.", time(self.rtt)),
        );

        let limits = s.limits(flow);
        let window = s.window(flow);
        let bottleneck = narrowest(&limits);
        match bottleneck {
            None => page.item(1, "Nothing on the path has a rate: only the window limits this flow."),
            Some(b) => self.capacity(&b, page),
        }
        if let Some((bytes, why)) = window {
            self.window(bytes, why, &limits, page);
            self.slow_start(bytes, &limits, page);
            self.policers(bytes, &limits, page);
        }
        self.losses(page);
    }

    fn way(&self, hops: &[Hop]) -> String {
        let mut way = self.flow.from.clone();
        for hop in hops {
            if let (Some(link), Some(d)) = (self.s.links.get(hop.link), self.s.direction(*hop)) {
                way.push_str(&format!(" -{}-> {}", link.name, d.to));
            }
        }
        way
    }

    fn name_of(&self, b: &PathBottleneck) -> String {
        if b.ways > 1 {
            return format!("{} together", self.s.bottleneck_links(self.flow).join(" and "));
        }
        let link = self.s.links.get(b.hop.link).map_or("?", |l| l.name.as_str());
        if b.is_policer { format!("the policer of {link}") } else { format!("link {link}") }
    }

    fn narrowest_line(&self, limits: &[PathBottleneck]) -> Option<PathBottleneck> {
        let lines: Vec<PathBottleneck> = limits.iter().filter(|l| !l.is_policer).copied().collect();
        narrowest(&lines)
    }

    /// Payload that fits into a round trip.
    fn pipe(&self, b: &PathBottleneck) -> ByteCount {
        b.goodput.bytes_in(self.rtt)
    }

    fn packets(&self, bytes: ByteCount) -> u64 {
        bytes.get().div_ceil(self.segment.payload.get().max(1))
    }

    fn capacity(&self, b: &PathBottleneck, page: &mut ExplainPage) {
        let share = b.goodput.bits_per_sec() as f64 / b.rate.bits_per_sec().max(1) as f64;
        let policer = if b.is_policer { self.s.direction(b.hop).and_then(|d| d.policer) } else { None };
        let counted = match (policer, self.s.direction(b.hop)) {
            (Some(p), _) => self.segment.counted(p.counts),
            (None, Some(d)) => d.framing().on_the_line(self.segment.frame),
            (None, None) => self.segment.frame,
        };
        let pipe = self.pipe(b);
        page.item(
            1,
            &format!(
                "Bottleneck: {}, {}. Of each {} it counts, {} are payload: the ceiling is {} of goodput, an efficiency \
                 of {}.",
                self.name_of(b),
                b.rate,
                counted,
                self.segment.payload,
                rate(b.goodput),
                percent(share)
            ),
        );
        page.item(
            1,
            &format!(
                "Bandwidth-delay product: {} of payload, {} packets of {}. So much in flight fills the path.",
                size(pipe),
                self.packets(pipe),
                self.segment.payload
            ),
        );
        // What a full bucket lets pass at first is not paid for in time.
        let total = scale_bytes(self.flow.size, counted, self.segment.payload);
        let paid = total - policer.map_or(ByteCount::ZERO, |p| p.burst);
        page.item(
            1,
            &format!("At the ceiling, {} take at least {}.", self.flow.size, time(b.rate.time_for(paid))),
        );
    }

    fn window(&self, window: ByteCount, why: &str, limits: &[PathBottleneck], page: &mut ExplainPage) {
        let allows = if self.rtt.is_zero() {
            "the round trip takes no time, so this is no limit".to_string()
        } else {
            format!("per round trip this allows {}", rate(Rate::of(window, self.rtt)))
        };
        let pipe = narrowest(limits).map(|b| self.pipe(&b));
        let autotuned = self.s.is_autotuned(self.flow) && pipe.is_none_or(|pipe| pipe <= window);
        let text = if autotuned {
            "Window: autotuned at both ends. The congestion control alone limits what is in flight."
                .to_string()
        } else {
            format!("Window: {} ({} packets), set by {why}; {allows}.", size(window), self.packets(window))
        };
        page.item(1, &text);
        let (Some(b), Some(pipe)) = (narrowest(limits), pipe) else { return };
        if window < pipe {
            page.item(
                2,
                &format!(
                    "This is less than the bandwidth-delay product: the flow reaches {} of the ceiling. To fill the \
                     path, the window needs {} packets.",
                    percent(window.get() as f64 / pipe.get().max(1) as f64),
                    self.packets(pipe)
                ),
            );
            return;
        }
        // A policer holds nothing back, so packets wait at the narrowest line.
        let Some(line) = self.narrowest_line(limits) else { return };
        let excess = self.packets(window).saturating_sub(self.packets(self.pipe(&line)));
        if excess == 0 {
            return;
        }
        let Some(d) = self.s.direction(line.hop) else { return };
        let more = if autotuned { "A window larger than" } else { "It is more than" };
        if line.ways > 1 {
            let (line, at) = (self.name_of(&line), &self.flow.from);
            page.item(2, &format!("{more} {line} keep under way: the rest waits at the cards of {at}."));
            return;
        }
        if d.aqm.is_some() {
            let (line, at) = (self.name_of(&line), d.from);
            let text = format!(
                "{more} {line} keeps under way: the rest would stand in its queue at {at}, whose management \
                 tells the sender early."
            );
            page.item(2, &text);
            return;
        }
        if let Some(at) = limits.iter().find_map(|limit| pacing::paces(&self.s.direction(limit.hop)?)) {
            let line = self.name_of(&line);
            let text = format!(
                "{more} {line} keeps under way. The rest waits at {at}, where packets are paced, if the rate of \
                 their class is below what {line} carries."
            );
            page.item(2, &text);
            return;
        }
        let room = d.queue.in_bytes(self.segment.frame).get() / self.segment.frame.get().max(1);
        let standing = excess.min(room);
        let wait = line.goodput.time_for(ByteCount::new(standing.saturating_mul(self.segment.payload.get())));
        let until = if b.is_policer { " while the policer lets everything pass" } else { "" };
        page.item(
            2,
            &format!(
                "{more} {} keeps under way: up to {standing} packets stand in its queue at {}{until}, and \
                 the round trip grows by {} to {}.",
                self.name_of(&line),
                d.from,
                time(wait),
                time(self.rtt + wait)
            ),
        );
        if excess > room && !autotuned {
            page.item(
                2,
                &format!(
                    "That queue holds {}: the window overflows it by {} packets, so there will be loss.",
                    d.queue,
                    excess - room
                ),
            );
        }
    }

    fn slow_start(&self, window: ByteCount, limits: &[PathBottleneck], page: &mut ExplainPage) {
        let Ok(config) = self.flow.sender.resolve() else { return };
        let first = u64::from(config.first_window(u32::from(config.mss)).get());
        let threshold = config.initial_ssthresh.map_or(u64::MAX, |t| u64::from(t.get()));
        // A policer with a full bucket does not stop slow start: what counts is the narrowest line.
        let line = self.narrowest_line(limits);
        let ends = [
            (self.packets(window), "the window"),
            (threshold, "the slow-start threshold"),
            (line.map_or(u64::MAX, |b| self.packets(self.pipe(&b))), "what the lines keep under way"),
        ];
        let Some((target, why)) = ends.into_iter().min_by_key(|(n, _)| *n) else { return };
        if target <= first {
            page.item(1, &format!("Slow start: the first window of {first} packets is {why} already."));
            return;
        }
        let (every, second) = (rounds(first, target, 2.0), rounds(first, target, 1.5));
        page.item(
            1,
            &format!(
                "Slow start: from {first} packets to {target} ({why}) in {every} round trips ({}) if every segment is \
                 acknowledged, in {second} ({}) if every second one is.",
                time(self.rtt * every),
                time(self.rtt * second)
            ),
        );
    }

    /// For each policer: whether and when its bucket runs dry at full speed.
    fn policers(&self, window: ByteCount, limits: &[PathBottleneck], page: &mut ExplainPage) {
        for (i, limit) in limits.iter().enumerate().filter(|(_, l)| l.is_policer) {
            let Some(policer) = self.s.direction(limit.hop).and_then(|d| d.policer) else { continue };
            let counted = self.segment.counted(policer.counts);
            let before = limits.get(..i).and_then(narrowest).map(|b| b.goodput);
            let allowed = (!self.rtt.is_zero()).then(|| Rate::of(window, self.rtt));
            let name = self.name_of(limit);
            let Some(goodput) = before.into_iter().chain(allowed).min() else {
                page.item(
                    1,
                    &format!("Bucket of {name}: nothing before it limits a burst, so it empties at once."),
                );
                continue;
            };
            let arriving = scale(goodput, counted, self.segment.payload);
            match dry_after(policer, arriving) {
                None => page.item(
                    1,
                    &format!("Bucket of {name}: at most {} arrive, so it never runs dry.", rate(arriving)),
                ),
                Some(dry) => {
                    let sent = arriving.bytes_in(dry);
                    let payload = scale_bytes(sent, self.segment.payload, counted);
                    let lost =
                        1.0 - policer.rate.bits_per_sec() as f64 / arriving.bits_per_sec().max(1) as f64;
                    let never = if payload > self.flow.size { " (more than this flow sends)" } else { "" };
                    page.item(
                        1,
                        &format!(
                            "Bucket of {name}: up to {} arrive, {} more than it lets pass. Full at first, it runs dry \
                             after {} at that speed, when {} of payload have been sent{never}. From then on {} of the \
                             packets are dropped until the sender slows down.",
                            rate(arriving),
                            rate(Rate::from_bits_per_sec(
                                arriving.bits_per_sec().saturating_sub(policer.rate.bits_per_sec())
                            )),
                            time(dry),
                            size(payload),
                            percent(lost)
                        ),
                    );
                }
            }
        }
    }

    fn losses(&self, page: &mut ExplainPage) {
        let survive = |hops: &mut dyn Iterator<Item = ResolvedDirection<'_>>, ip: ByteCount| {
            hops.fold(1.0, |p, d| {
                let errors = BitErrorsDirection::new(d.bit_errors).loss_of(ip);
                let bursts = d.burst_loss.map_or(0.0, BurstLossSpec::mean);
                p * (1.0 - d.loss) * (1.0 - d.corrupt) * (1.0 - errors) * (1.0 - bursts)
            })
        };
        let paths = self.s.paths(self.flow);
        // Of several ways, each counts by what it carries.
        let shares = if paths.len() > 1 { self.s.together(self.flow, &paths) } else { None };
        let shares = shares.map_or(vec![1.0; paths.len()], |(_, shares)| {
            shares.iter().map(|rate| rate.bits_per_sec() as f64).collect::<Vec<_>>()
        });
        let all: f64 = shares.iter().sum();
        let lost = |ip: ByteCount, turn: fn(Hop) -> Hop| {
            let of = |hops: &Vec<Hop>| {
                1.0 - survive(&mut hops.iter().filter_map(|hop| self.s.direction(turn(*hop))), ip)
            };
            paths.iter().zip(&shares).map(|(hops, share)| of(hops) * share / all).sum::<f64>()
        };
        let p = lost(self.segment.ip, |hop| hop);
        if p > 0.0 {
            let packets = self.packets(self.flow.size) as f64;
            let per_gb = self.packets(ByteCount::new(1_000_000_000)) as f64;
            page.item(
                1,
                &format!(
                    "Random loss and corruption: {} of the data packets, about {} of this flow's {} ({} per GB).",
                    percent(p),
                    count(p * packets),
                    count(packets),
                    count(p * per_gb)
                ),
            );
            if !self.rtt.is_zero() {
                // Mathis et al. 1997: rate = MSS / RTT * sqrt(3/2) / sqrt(p).
                let bits = self.segment.payload.bits() as f64 / self.rtt.as_secs_f64() * (1.5 / p).sqrt();
                page.item(
                    2,
                    &format!(
                        "Reno sustains about {} at this loss and round trip (Mathis' formula).",
                        rate(Rate::from_bits_per_sec(bits as u64))
                    ),
                );
            }
        }
        let p = lost(self.segment.ack_frame - ETHERNET_HEADER, Hop::back);
        if p > 0.0 {
            page.item(
                1,
                &format!("Of the ACKs, {} are lost; later ones make up for most of them.", percent(p)),
            );
        }
    }
}

/// Round trips until `first` packets, growing by `factor` each, are `target`.
fn rounds(first: u64, target: u64, factor: f64) -> u64 {
    let (mut window, mut n) = (first as f64, 0);
    while window < target as f64 {
        window *= factor;
        n += 1;
    }
    n
}

fn scale_bytes(bytes: ByteCount, part: ByteCount, whole: ByteCount) -> ByteCount {
    let scaled = u128::from(bytes.get()) * u128::from(part.get()) / u128::from(whole.get().max(1));
    ByteCount::new(u64::try_from(scaled).unwrap_or(u64::MAX))
}

// Numbers for people: four digits and the unit that fits.

fn digits(x: f64) -> String {
    match x {
        x if x >= 1_000.0 => format!("{x:.0}"),
        x if x >= 100.0 => format!("{x:.1}"),
        x if x >= 10.0 => format!("{x:.2}"),
        x => format!("{x:.3}"),
    }
}

/// `x` in the largest of the units (ascending) that leaves at least 1.
fn in_units(x: u64, units: &[(u64, &str)]) -> String {
    match units.iter().rev().find(|(size, _)| x >= *size) {
        Some((1, unit)) => format!("{x} {unit}"),
        Some((size, unit)) => format!("{} {unit}", digits(x as f64 / *size as f64)),
        None => format!("0 {}", units.first().map_or("", |u| u.1)),
    }
}

fn rate(r: Rate) -> String {
    in_units(
        r.bits_per_sec(),
        &[(1, "bit/s"), (1_000, "kbit/s"), (1_000_000, "Mbit/s"), (1_000_000_000, "Gbit/s")],
    )
}

fn size(b: ByteCount) -> String {
    in_units(b.get(), &[(1, "B"), (1_000, "kB"), (1_000_000, "MB"), (1_000_000_000, "GB")])
}

fn time(t: Span) -> String {
    in_units(t.as_nanos(), &[(1, "ns"), (1_000, "us"), (1_000_000, "ms"), (1_000_000_000, "s")])
}

fn percent(p: f64) -> String {
    if p > 0.0 && p < 0.001 { format!("{:.5} %", p * 100.0) } else { format!("{:.1} %", p * 100.0) }
}

fn count(x: f64) -> String {
    if x < 10.0 { format!("{x:.1}") } else { format!("{x:.0}") }
}

/// The words of a text, with numbers and their units kept together.
fn phrases(text: &str) -> Vec<String> {
    const UNITS: [&str; 14] =
        ["ns", "us", "ms", "s", "B", "kB", "MB", "GB", "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "packets", "%"];
    let mut phrases: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let is_unit = UNITS.contains(&word.trim_end_matches(['.', ',', ';', ':', ')']));
        match phrases.last_mut() {
            Some(last) if is_unit && last.ends_with(|c: char| c.is_ascii_digit()) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => phrases.push(word.to_string()),
        }
    }
    phrases
}

/// Text that is wrapped as it is written.
struct ExplainPage {
    text: String,
}

impl ExplainPage {
    /// A blank line.
    fn gap(&mut self) {
        self.text.push('\n');
    }
    /// A paragraph; what runs over is indented further.
    fn item(&mut self, depth: usize, text: &str) {
        let indent = "  ".repeat(depth);
        let hang = if depth == 0 { String::new() } else { "  ".repeat(depth + 1) };
        let (mut line, mut empty) = (indent, true);
        for word in phrases(text) {
            let word = word.as_str();
            let fits = line.chars().count() + usize::from(!empty) + word.chars().count() <= WIDTH;
            if !empty && !fits {
                self.text.push_str(line.trim_end());
                self.text.push('\n');
                (line, empty) = (hang.clone(), true);
            }
            if !empty {
                line.push(' ');
            }
            line.push_str(word);
            empty = false;
        }
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }
}
