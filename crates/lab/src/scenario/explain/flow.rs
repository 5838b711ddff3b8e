//! What a flow meets: its paths and their capacity.

use super::super::figures::{PathBottleneck, SegmentSizes, narrowest};
use super::super::number::{percent, rate, size, time};
use super::super::spec::{FlowSpec, Scenario};
use super::super::topology::Hop;
use super::page::ExplainPage;
use farpace_tcp::config::Profile;
use farpace_units::{ByteCount, Span};

/// A flow, and what is known of it.
pub(super) struct FlowPage<'a> {
    pub s: &'a Scenario,
    pub flow: &'a FlowSpec,
    pub segment: SegmentSizes,
    pub rtt: Span,
}

impl FlowPage<'_> {
    pub(super) fn write(&self, index: usize, page: &mut ExplainPage) {
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
        let paths: Vec<String> = paths.iter().map(|hops| self.path_text(hops)).collect();
        let (many, widest) = if paths.len() > 1 { ("s", " by the widest") } else { ("", "") };
        let paths = paths.join(" and ");
        page.item(
            1,
            &format!("Path{many}: {paths}. With empty queues a round trip takes {}{widest}.", time(self.rtt)),
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

    fn path_text(&self, hops: &[Hop]) -> String {
        let mut path = self.flow.from.clone();
        for hop in hops {
            if let (Some(link), Some(d)) = (self.s.links.get(hop.link), self.s.direction(*hop)) {
                path.push_str(&format!(" -{}-> {}", link.name, d.to));
            }
        }
        path
    }

    pub(super) fn name_of(&self, b: &PathBottleneck) -> String {
        if b.paths > 1 {
            return format!("{} together", self.s.bottleneck_links(self.flow).join(" and "));
        }
        let link = self.s.links.get(b.hop.link).map_or("?", |l| l.name.as_str());
        if b.is_policer { format!("the policer of {link}") } else { format!("link {link}") }
    }

    pub(super) fn narrowest_link(&self, limits: &[PathBottleneck]) -> Option<PathBottleneck> {
        let links: Vec<PathBottleneck> = limits.iter().filter(|l| !l.is_policer).copied().collect();
        narrowest(&links)
    }

    /// Payload that fits into a round trip.
    pub(super) fn bandwidth_delay_product(&self, b: &PathBottleneck) -> ByteCount {
        b.goodput.bytes_in(self.rtt)
    }

    pub(super) fn packets(&self, bytes: ByteCount) -> u64 {
        bytes.get().div_ceil(self.segment.payload.get().max(1))
    }

    fn capacity(&self, b: &PathBottleneck, page: &mut ExplainPage) {
        let share = b.goodput.bits_per_sec() as f64 / b.rate.bits_per_sec().max(1) as f64;
        let policer =
            if b.is_policer { self.s.direction(b.hop).and_then(|d| d.spec.policer.as_ref()) } else { None };
        let counted = match (policer, self.s.direction(b.hop)) {
            (Some(p), _) => self.segment.counted(p.counts),
            (None, Some(d)) => d.counted(self.segment.frame),
            (None, None) => self.segment.frame,
        };
        let bdp = self.bandwidth_delay_product(b);
        page.item(
            1,
            &format!(
                "Bottleneck: {}, {}. Of each {} it counts, {} are payload: the ceiling is {} of goodput, \
                 an efficiency of {}.",
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
                size(bdp),
                self.packets(bdp),
                self.segment.payload
            ),
        );
        // Packets that the full bucket lets pass at the beginning take no time.
        let total = scale_bytes(self.flow.size, counted, self.segment.payload);
        let paid = total - policer.map_or(ByteCount::ZERO, |p| p.burst);
        page.item(
            1,
            &format!("At the ceiling, {} take at least {}.", self.flow.size, time(b.rate.time_for(paid))),
        );
    }
}

pub(super) fn scale_bytes(bytes: ByteCount, part: ByteCount, whole: ByteCount) -> ByteCount {
    let scaled = u128::from(bytes.get()) * u128::from(part.get()) / u128::from(whole.get().max(1));
    ByteCount::new(u64::try_from(scaled).unwrap_or(u64::MAX))
}
