//! Intervals, gaps and reserved capacity that follow from a configuration.

use super::pacer::REST;
use super::{ClassRate, ConfigError, PacingConfig, PacingInterval, SchedulerKind, layer_2, wire_len};
use farpace_path::QueueLimit;
use farpace_units::{ByteCount, Rate, Span};
use farpace_wire::ethernet::ETHERNET_LEN;
use std::collections::BTreeMap;

/// What a configuration means on a given link, computed before anything is sent.
#[derive(Clone, Debug, PartialEq)]
pub struct PacingPlan {
    /// The rate at which the scheduler sends.
    pub link_rate: Rate,
    /// Layer 2 length of a frame of the MTU.
    pub full_frame: ByteCount,
    /// Its wire length.
    pub full_frame_wire_len: ByteCount,
    /// The sum of all rates, of layer 2.
    pub reserved: Rate,
    /// The sum of all rates on the wire, for full frames.
    pub reserved_on_wire: Rate,
    /// Maximum layer 2 rate of one more class of full frames; zero if nothing is left.
    pub available: Rate,
    /// The classes in order; `(rest)` is last, if it exists.
    pub classes: Vec<ClassPlan>,
    /// Indices of the filters in the order of evaluation.
    pub order: Vec<usize>,
    /// Errors of the configuration; empty if it is valid.
    pub errors: Vec<ConfigError>,
    /// Warnings about the configuration.
    pub warnings: Vec<ConfigError>,
}

/// What one class of the configuration means.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassPlan {
    /// The name.
    pub name: String,
    /// The rate; none: the class uses remaining capacity.
    pub rate: Option<ClassRate>,
    /// The limit of its queue.
    pub limit: QueueLimit,
    /// Number of filters that select it.
    pub filters: usize,
    /// True if it takes packets that no filter matches.
    pub is_default: bool,
    /// Of classes with a fixed rate, unless the scheduler ignores rates.
    pub spacing: Option<PlannedRate>,
}

/// The spacing of full frames of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedRate {
    /// Bytes on the wire from the start of a full frame to the start of the next, rounded down.
    pub interval: ByteCount,
    /// The interval as time.
    pub interval_time: Span,
    /// Bytes on the wire between the end of a full frame with its inter-frame gap and the next: capacity for
    /// other classes, or for gap frames.
    pub gap: ByteCount,
    /// The gap as time.
    pub gap_time: Span,
    /// Millionths of the link that full frames occupy, rounded up.
    pub share: u64,
}

impl PacingPlan {
    /// What `config` means on a link of `link_rate`.
    pub fn new(config: &PacingConfig, link_rate: Rate) -> Self {
        let (errors, mut warnings) = (config.check(link_rate), config.warnings());
        let link_rate = config.effective_rate(link_rate);
        let (full_frame, wire) = full_frame(config.mtu);
        let rates = config.classes.iter().filter_map(|class| match class.rate {
            Some(ClassRate::Fixed(rate)) => Some(u128::from(rate.bits_per_sec())),
            Some(ClassRate::Connection) | None => None,
        });
        let sum: u128 = rates.sum();
        let taken = (sum * u128::from(wire.get())).div_ceil(full_frame.get().into());
        let max =
            u128::from(link_rate.bits_per_sec()) * u128::from(full_frame.get()) / u128::from(wire.get());
        let rate = |bits: u128| Rate::from_bits_per_sec(u64::try_from(bits).unwrap_or(u64::MAX));
        if errors.is_empty() && rate(taken) > link_rate && config.scheduler != SchedulerKind::Fifo {
            let problem = format!(
                "full frames at all rates need {} of a link of {link_rate}: packets will be later and later",
                rate(taken)
            );
            warnings.push(ConfigError::new(&["classes"], problem));
        }
        PacingPlan {
            link_rate,
            full_frame,
            full_frame_wire_len: wire,
            reserved: rate(sum),
            reserved_on_wire: rate(taken),
            available: rate(max.saturating_sub(sum)),
            classes: classes(config, link_rate),
            order: super::classifier::ordered(&config.filters),
            errors,
            warnings,
        }
    }
}

/// Layer 2 length and wire length of a frame of `mtu`.
fn full_frame(mtu: ByteCount) -> (ByteCount, ByteCount) {
    let frame = mtu + ByteCount::of_len(ETHERNET_LEN);
    (layer_2(frame), wire_len(frame))
}

fn classes(config: &PacingConfig, link_rate: Rate) -> Vec<ClassPlan> {
    let mut filters: BTreeMap<&str, usize> = BTreeMap::new();
    for filter in &config.filters {
        *filters.entry(&filter.class).or_default() += 1;
    }
    let has_paces = config.scheduler != SchedulerKind::Fifo;
    let named = config.classes.iter().map(|class| ClassPlan {
        name: class.name.clone(),
        rate: class.rate,
        limit: class.limit.unwrap_or(config.limit),
        filters: filters.get(class.name.as_str()).copied().unwrap_or(0),
        is_default: config.default.as_ref() == Some(&class.name),
        spacing: match class.rate {
            Some(ClassRate::Fixed(rate)) if has_paces => Some(PlannedRate::new(rate, link_rate, config.mtu)),
            _ => None,
        },
    });
    let rest = config.default.is_none().then(|| ClassPlan {
        name: REST.to_owned(),
        rate: None,
        limit: config.limit,
        filters: 0,
        is_default: true,
        spacing: None,
    });
    named.chain(rest).collect()
}

impl PlannedRate {
    /// The spacing of a class of `rate` on a link of `link_rate` with full frames of `mtu` (eq. (2) of the
    /// paper, with framing overhead).
    pub fn new(rate: Rate, link_rate: Rate, mtu: ByteCount) -> Self {
        let (full, wire) = full_frame(mtu);
        let interval = ByteCount::new(PacingInterval::new(rate, link_rate).after(full, &mut 0));
        let gap = interval - wire;
        let of_a_million = u128::from(rate.bits_per_sec()) * u128::from(wire.get()) * 1_000_000;
        let whole = u128::from(link_rate.bits_per_sec().max(1)) * u128::from(full.get());
        PlannedRate {
            interval,
            interval_time: link_rate.time_for(interval),
            gap,
            gap_time: link_rate.time_for(gap),
            share: u64::try_from(of_a_million.div_ceil(whole)).unwrap_or(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> PacingPlan {
        PacingPlan::new(&toml::from_str(text).unwrap(), Rate::from_mbit(1_000))
    }

    /// Breaks: reported intervals, gaps and capacity are those of eq. (2), with full frames of 1518 B that
    /// take 1538 B on the wire.
    #[test]
    fn the_worked_example() {
        let plan = plan(
            "classes = [{ name = \"a\", rate = \"500 Mbit/s\" }, { name = \"b\", rate = \"8 kbit/s\", limit \
             = \"5 packets\" }]\n\
             filters = [{ class = \"a\", priority = 2 }, { class = \"b\", dscp = 1 }, { class = \"a\", dscp \
             = 2 }]",
        );
        let [a, b] = [0, 1].map(|i| plan.classes[i].spacing.unwrap());
        assert_eq!((a.interval.get(), a.gap.get(), a.share), (3_036, 3_036 - 1_538, 506_588));
        assert_eq!((a.interval_time.as_nanos(), a.gap_time.as_nanos()), (24_288, 11_984));
        assert_eq!((b.interval.get(), b.interval_time), (189_750_000, Span::from_millis(1_518)));
        assert_eq!(plan.classes[1].limit.to_string(), "5 packets");
        assert_eq!((plan.classes[0].filters, plan.classes[1].filters), (2, 1));
        let rest = &plan.classes[2];
        assert_eq!((rest.name.as_str(), rest.is_default, rest.spacing), ("(rest)", true, None));
        assert_eq!(plan.order, [1, 2, 0]);
        assert_eq!(plan.reserved, Rate::from_bits_per_sec(500_008_000));
        assert_eq!(plan.reserved_on_wire, Rate::from_bits_per_sec((500_008_000 * 1_538u64).div_ceil(1_518)));
        assert!(plan.errors.is_empty());
    }

    /// Breaks: the capacity that is reported as left can be reserved, and 1 bit/s more cannot.
    #[test]
    fn the_rate_left_fits_to_the_bit() {
        let with = |more: u64| {
            plan(&format!(
                "classes = [{{ name = \"a\", rate = \"500 Mbit/s\" }}, {{ name = \"b\", rate = \"{more} \
                 bit/s\" }}]"
            ))
        };
        let left = plan("classes = [{ name = \"a\", rate = \"500 Mbit/s\" }]").available.bits_per_sec();
        assert_eq!(left, 1_000_000_000 * 1_518 / 1_538 - 500_000_000);
        assert_eq!((with(left).errors.len(), with(left).available), (0, Rate::default()));
        assert_eq!(with(left + 1).errors.len(), 1);
    }

    /// Breaks: link rates and MTUs out of range yield errors instead of a panic.
    #[test]
    fn values_out_of_range_are_errors() {
        for (link_rate, mtu) in [(0, 1_500), (u64::MAX, u64::MAX), (1, 0)] {
            let config = PacingConfig {
                mtu: ByteCount::new(mtu),
                ..toml::from_str("classes = [{ name = \"a\", rate = \"1 bit/s\" }]").unwrap()
            };
            assert!(!PacingPlan::new(&config, Rate::from_bits_per_sec(link_rate)).errors.is_empty());
        }
    }
}
