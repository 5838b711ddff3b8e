//! What the window of a flow allows, and how long slow start takes.

use super::super::figures::{PathBottleneck, narrowest};
use super::super::number::{percent, rate, size, time};
use super::flow::FlowPage;
use super::pacing;
use super::page::ExplainPage;
use farpace_units::{ByteCount, Rate};

impl FlowPage<'_> {
    /// The window, and whether it fills the path.
    pub(super) fn window(
        &self,
        window: ByteCount,
        why: &str,
        limits: &[PathBottleneck],
        page: &mut ExplainPage,
    ) {
        let allows = if self.rtt.is_zero() {
            "the round trip takes no time, so this is no limit".to_string()
        } else {
            format!("per round trip this allows {}", rate(Rate::of(window, self.rtt)))
        };
        let bdp = narrowest(limits).map(|b| self.bandwidth_delay_product(&b));
        let autotuned = self.s.is_autotuned(self.flow) && bdp.is_none_or(|bdp| bdp <= window);
        let text = if autotuned {
            "Window: autotuned at both ends. The congestion control alone limits what is in flight."
                .to_string()
        } else {
            format!("Window: {} ({} packets), set by {why}; {allows}.", size(window), self.packets(window))
        };
        page.item(1, &text);
        let (Some(b), Some(bdp)) = (narrowest(limits), bdp) else { return };
        if window < bdp {
            page.item(
                2,
                &format!(
                    "This is less than the bandwidth-delay product: the flow reaches {} of the ceiling. To \
                     fill the path, the window needs {} packets.",
                    percent(window.get() as f64 / bdp.get().max(1) as f64),
                    self.packets(bdp)
                ),
            );
            return;
        }
        self.standing_queue(window, autotuned, &b, limits, page);
    }

    /// What waits if the window is larger than the path needs: at the narrowest link, because a policer has
    /// no queue.
    fn standing_queue(
        &self,
        window: ByteCount,
        autotuned: bool,
        bottleneck: &PathBottleneck,
        limits: &[PathBottleneck],
        page: &mut ExplainPage,
    ) {
        let Some(link) = self.narrowest_link(limits) else { return };
        let excess = self.packets(window).saturating_sub(self.packets(self.bandwidth_delay_product(&link)));
        if excess == 0 {
            return;
        }
        let Some(d) = self.s.direction(link.hop) else { return };
        let more = if autotuned { "A window larger than" } else { "It is more than" };
        if link.paths > 1 {
            let (link, at) = (self.name_of(&link), &self.flow.from);
            page.item(2, &format!("{more} {link} keep in flight: the rest waits at the NICs of {at}."));
            return;
        }
        if d.aqm.is_some() {
            let (link, at) = (self.name_of(&link), d.from);
            let text = format!(
                "{more} {link} keeps in flight: the rest would stand in its queue at {at}, whose management \
                 tells the sender early."
            );
            page.item(2, &text);
            return;
        }
        if let Some(at) = limits.iter().find_map(|limit| pacing::pacing_node(&self.s.direction(limit.hop)?)) {
            let link = self.name_of(&link);
            let text = format!(
                "{more} {link} keeps in flight. The rest waits at {at}, where packets are paced, if the \
                 rate of their class is below what {link} carries."
            );
            page.item(2, &text);
            return;
        }
        let capacity = d.queue.in_bytes(self.segment.frame).get() / self.segment.frame.get().max(1);
        let standing = excess.min(capacity);
        let wait = link.goodput.time_for(ByteCount::new(standing.saturating_mul(self.segment.payload.get())));
        let until = if bottleneck.is_policer { " while the policer lets everything pass" } else { "" };
        page.item(
            2,
            &format!(
                "{more} {} keeps in flight: up to {standing} packets stand in its queue at {}{until}, and \
                 the round trip grows by {} to {}.",
                self.name_of(&link),
                d.from,
                time(wait),
                time(self.rtt + wait)
            ),
        );
        if excess > capacity && !autotuned {
            page.item(
                2,
                &format!(
                    "That queue holds {}: the window overflows it by {} packets, so there will be loss.",
                    d.queue,
                    excess - capacity
                ),
            );
        }
    }

    /// How long slow start takes.
    pub(super) fn slow_start(&self, window: ByteCount, limits: &[PathBottleneck], page: &mut ExplainPage) {
        let Ok(config) = self.flow.sender.resolve() else { return };
        let first = u64::from(config.first_window(u32::from(config.mss)).get());
        let threshold = config.initial_ssthresh.map_or(u64::MAX, |t| u64::from(t.get()));
        // A policer with a full bucket does not stop slow start: the narrowest link counts.
        let link = self.narrowest_link(limits);
        let ends = [
            (self.packets(window), "the window"),
            (threshold, "the slow-start threshold"),
            (
                link.map_or(u64::MAX, |b| self.packets(self.bandwidth_delay_product(&b))),
                "what the links keep in flight",
            ),
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
                "Slow start: from {first} packets to {target} ({why}) in {every} round trips ({}) if every \
                 segment is acknowledged, in {second} ({}) if every second one is.",
                time(self.rtt * every),
                time(self.rtt * second)
            ),
        );
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
