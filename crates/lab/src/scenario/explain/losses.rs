//! Where a flow loses packets: policers whose bucket is empty, and random loss.

use super::super::figures::{ETHERNET_HEADER, PathBottleneck, empty_after, narrowest, scale};
use super::super::number::{count, percent, rate, size, time};
use super::super::spec::ResolvedDirection;
use super::super::topology::Hop;
use super::flow::{FlowPage, scale_bytes};
use super::page::ExplainPage;
use farpace_units::{ByteCount, Rate};

/// Mathis' formula knows no timeouts, which are the rule above such a loss.
const MAX_MATHIS: f64 = 0.1;

impl FlowPage<'_> {
    /// For each policer: whether and when its bucket becomes empty at full speed.
    pub(super) fn policers(&self, window: ByteCount, limits: &[PathBottleneck], page: &mut ExplainPage) {
        for (i, limit) in limits.iter().enumerate().filter(|(_, l)| l.is_policer) {
            let Some(policer) = self.s.direction(limit.hop).and_then(|d| d.spec.policer.as_ref()) else {
                continue;
            };
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
            match empty_after(policer, arriving) {
                None => page.item(
                    1,
                    &format!(
                        "Bucket of {name}: at most {} arrive, so it never becomes empty.",
                        rate(arriving)
                    ),
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
                            "Bucket of {name}: up to {} arrive, {} more than it lets pass. Full at first, \
                             it is empty after {} at that speed, when {} of payload have been sent{never}. \
                             From then on {} of the packets are dropped until the sender slows down.",
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

    pub(super) fn losses(&self, page: &mut ExplainPage) {
        let survive = |hops: &mut dyn Iterator<Item = ResolvedDirection<'_>>, ip: ByteCount| {
            hops.fold(1.0, |p, d| {
                d.impairments().fold(p, |p, impairment| p * (1.0 - impairment.value.loss_probability(ip)))
            })
        };
        let paths = self.s.paths(self.flow);
        // Of several paths, each counts by its share.
        let shares = if paths.len() > 1 { self.s.combined_limit(self.flow, &paths) } else { None };
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
                    "Random loss and corruption: {} of the data packets, about {} of this flow's {} ({} \
                     per GB).",
                    percent(p),
                    count(p * packets),
                    count(packets),
                    count(p * per_gb)
                ),
            );
            if p >= 1.0 {
                page.item(2, "Nothing passes.");
            } else if !self.rtt.is_zero() && p <= MAX_MATHIS {
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
        let p = lost(self.segment.ack_frame - ETHERNET_HEADER, Hop::reverse);
        if p > 0.0 {
            page.item(1, &format!("Of the ACKs, {} are lost; later ACKs replace most of them.", percent(p)));
        }
    }
}
