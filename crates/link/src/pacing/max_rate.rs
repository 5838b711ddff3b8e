//! The maximum rate of a paced NIC.

use super::config::{ClassConfig, ClassRate, PacingConfig, SchedulerKind};
use super::{layer_2, wire_len};
use farpace_units::{ByteCount, Rate};
use farpace_wire::ethernet::ETHERNET_LEN;

impl PacingConfig {
    /// The maximum rate of a link of `link_rate` with this configuration, on the wire with full frames. It is
    /// less than the rate of the link if no class may use remaining capacity. Striping over several NICs
    /// needs it: a NIC whose rate is overestimated queues frames while other NICs are idle.
    pub fn max_wire_rate(&self, link_rate: Rate) -> Rate {
        let link_rate = self.effective_rate(link_rate);
        let Some(default) = self.default.as_ref().filter(|_| self.scheduler != SchedulerKind::Fifo) else {
            return link_rate;
        };
        let reached = |class: &&ClassConfig| {
            class.name == *default || self.filters.iter().any(|filter| filter.class == class.name)
        };
        let mut sum = 0_u64;
        for class in self.classes.iter().filter(reached) {
            let Some(ClassRate::Fixed(rate)) = class.rate else { return link_rate };
            sum = sum.saturating_add(rate.bits_per_sec());
        }
        let full = self.mtu + ByteCount::of_len(ETHERNET_LEN);
        let bits = u128::from(sum) * u128::from(wire_len(full).get()) / u128::from(layer_2(full).get());
        link_rate.min(Rate::from_bits_per_sec(u64::try_from(bits).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: striping knows the real rate of a paced NIC: lower if every class is limited, otherwise that
    /// of the link.
    #[test]
    fn only_limits_on_all_classes_lower_the_rate() {
        let gigabit = Rate::from_bits_per_sec(1_000_000_000);
        let max = |toml: &str| PacingConfig::parse(toml).expect(toml).max_wire_rate(gigabit).bits_per_sec();
        let a = r#"{ name = "a", rate = "15180 kbit/s" }"#;
        let b = r#"{ name = "b", rate = "30360 kbit/s" }"#;
        let to = |class: &str| format!("filters = [{{ class = \"{class}\", dst_port = 80 }}]");
        let cases = [
            (format!("default = 'a'\nclasses = [{a}]"), 15_380_000),
            (format!("default = 'a'\nclasses = [{a}, {b}]\n{}", to("b")), 46_140_000),
            (format!("default = 'a'\nclasses = [{a}, {b}]"), 15_380_000),
            (format!("default = 'a'\nclasses = [{a}, {{ name = 'open' }}]\n{}", to("open")), 1_000_000_000),
            (format!("classes = [{a}]\n{}", to("a")), 1_000_000_000),
            (format!("default = 'a'\nscheduler = 'fifo'\nclasses = [{a}]"), 1_000_000_000),
            ("device_rate = '474 Mbit/s'".to_owned(), 474_000_000),
            ("line = '474 Mbit/s'".to_owned(), 474_000_000),
            ("default = 'c'\nclasses = [{ name = 'c', rate = 'connection' }]".to_owned(), 1_000_000_000),
            ("default = 'c'\nclasses = [{ name = 'c', rate = '2 Gbit/s' }]".to_owned(), 1_000_000_000),
        ];
        for (toml, expected) in cases {
            assert_eq!(max(&toml), expected, "{toml}");
        }
    }
}
