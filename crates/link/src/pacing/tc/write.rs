//! Writes a configuration as `tc` commands.

use super::selector::Family;
use super::{kind, units};
use crate::pacing::{ClassConfig, ClassFilter, ClassRate, GapFrameKind, Gaps, PacingConfig, SchedulerKind};
use farpace_path::QueueLimit;
use std::collections::BTreeMap;
use thiserror::Error;

/// Maximum number of classes below one handle.
const MAX_MINORS: usize = 0xffff;

/// Why a configuration cannot be written as `tc` commands.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ToTcError {
    /// The minor number of a class has 16 bits.
    #[error("tc supports at most {MAX_MINORS} classes of a device, and there are {0}")]
    TooManyClasses(usize),
    /// The configuration has not been checked.
    #[error("there is no class `{0}`")]
    UnknownClass(String),
}

/// The commands that configure `device` like `config`, one per element, without line breaks.
///
/// [`Tc`](super::Tc) reads them back as the same configuration if its classes have names like `1:3`. Other
/// classes get such names, with a comment. Keys without a counterpart in Linux (such as `gaps`) become
/// options of the root that the `tc` of Linux does not know.
///
/// # Errors
/// More classes than `tc` supports, or names of classes that do not exist.
pub fn to_tc(config: &PacingConfig, device: &str) -> Result<Vec<String>, ToTcError> {
    let names = Names::new(config)?;
    let (major, kind_word) = (names.major, kind(config.scheduler));
    let mut lines = vec![root(config, device, &names)?];
    for class in &config.classes {
        let ClassConfig { name, rate, limit } = class;
        let id = names.of(name)?;
        if id != *name {
            lines.push(format!("# {id} is {name:?}"));
        }
        let rate = match rate {
            Some(ClassRate::Fixed(rate)) => format!("rate {}", units::write_rate(*rate)),
            Some(ClassRate::Connection) => "mode connection".to_owned(),
            None => "mode normal".to_owned(),
        };
        lines.push(format!("tc class add dev {device} parent {major:x}: classid {id} {kind_word} {rate}"));
        if let Some(limit) = limit {
            let (fifo, limit) = (fifo(*limit), units::write_limit(*limit));
            lines.push(format!("tc qdisc add dev {device} parent {id} {fifo} limit {limit}"));
        }
    }
    for filter in &config.filters {
        let (words, family) = selector(filter);
        let protocol = match family {
            Family::All => "all",
            Family::V4 => "ip",
            Family::V6 => "ipv6",
        };
        let (priority, id) = (filter.priority, names.of(&filter.class)?);
        lines.push(format!(
            "tc filter add dev {device} parent {major:x}: protocol {protocol} pref {priority} u32 {words} \
             classid {id}"
        ));
    }
    Ok(lines)
}

/// Identifiers of classes in `tc`.
struct Names<'a> {
    major: u16,
    /// None: the names of the configuration.
    assigned: Option<BTreeMap<&'a str, String>>,
}

impl<'a> Names<'a> {
    fn new(config: &'a PacingConfig) -> Result<Self, ToTcError> {
        let all = || config.classes.iter().map(|class| class.name.as_str());
        let id = |name: &str| units::class(name).ok().filter(|id| units::name(*id) == name);
        let first = all().chain(config.default.as_deref()).find_map(id);
        let major = first.map_or(1, |(major, _)| major);
        let fits = |name: &str| id(name).is_some_and(|id| id.0 == major);
        if all().chain(config.default.as_deref()).all(fits) {
            return Ok(Names { major, assigned: None });
        }
        if config.classes.len() > MAX_MINORS {
            return Err(ToTcError::TooManyClasses(config.classes.len()));
        }
        let assigned = all().zip(1..).map(|(name, minor)| (name, units::name((1, minor)))).collect();
        Ok(Names { major: 1, assigned: Some(assigned) })
    }
    fn of(&self, name: &str) -> Result<String, ToTcError> {
        match &self.assigned {
            None => Ok(name.to_owned()),
            Some(all) => all.get(name).cloned().ok_or_else(|| ToTcError::UnknownClass(name.to_owned())),
        }
    }
}

fn root(config: &PacingConfig, device: &str, names: &Names<'_>) -> Result<String, ToTcError> {
    let PacingConfig {
        scheduler,
        gaps,
        gap_frame,
        device_rate,
        mtu,
        jitter,
        tick,
        burst,
        slack,
        quantum,
        limit,
        default,
        classes: _,
        filters: _,
    } = config;
    let usual = PacingConfig::default();
    let kind = match (scheduler, limit) {
        (SchedulerKind::Fifo, limit) => fifo(*limit),
        (scheduler, _) => kind(*scheduler),
    };
    let mut words = format!("tc qdisc add dev {device} root handle {:x}: {kind}", names.major);
    let mut option = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            words += &format!(" {name} {value}");
        }
    };
    let default = default.as_deref().map(|name| names.of(name)).transpose()?;
    let minor = default.as_deref().and_then(|name| name.split_once(':')).map(|(_, minor)| minor.to_owned());
    // `default 0` is explicit, because fq without a default gets a class of its own.
    option("default", minor.or_else(|| (*scheduler == SchedulerKind::Fq).then(|| "0".to_owned())));
    let gaps_word = match gaps {
        Gaps::Frames => "frames",
        Gaps::Timers => "timers",
        Gaps::Hybrid => "hybrid",
    };
    option("gaps", (*gaps != usual.gaps).then(|| gaps_word.to_owned()));
    let frame = match gap_frame {
        GapFrameKind::Pause => "pause",
        GapFrameKind::Experimental => "experimental",
        GapFrameKind::ToSelf => "self",
    };
    option("gap_frame", (*gap_frame != usual.gap_frame).then(|| frame.to_owned()));
    option("device_rate", device_rate.map(units::write_rate));
    option("mtu", (*mtu != usual.mtu).then(|| units::write_size(*mtu)));
    option("jitter", (*jitter != usual.jitter).then(|| units::write_time(*jitter)));
    option("tick", (*tick != usual.tick).then(|| units::write_time(*tick)));
    option("burst", burst.map(units::write_size));
    option("slack", (*slack != usual.slack).then(|| units::write_time(*slack)));
    option("quantum", quantum.map(units::write_size));
    let name = if *scheduler == SchedulerKind::Fq { "flow_limit" } else { "limit" };
    option(name, (*limit != usual.limit || kind == "bfifo").then(|| units::write_limit(*limit)));
    Ok(words)
}

fn fifo(limit: QueueLimit) -> &'static str {
    match limit {
        QueueLimit::Bytes(_) => "bfifo",
        QueueLimit::Packets(_) | QueueLimit::Unlimited => "pfifo",
    }
}

/// The u32 selectors of a filter, and its family.
fn selector(filter: &ClassFilter) -> (String, Family) {
    let ClassFilter { class: _, priority: _, protocol, src, dst, src_port, dst_port, dscp } = filter;
    let family = match src.or(*dst) {
        None => Family::All,
        Some(net) if net.net().is_ipv4() => Family::V4,
        Some(_) => Family::V6,
    };
    let (ip, tos) = if family == Family::V6 { ("ip6", "priority") } else { ("ip", "dsfield") };
    let mut words = Vec::new();
    let mut add =
        |key: &str, value: Option<String>| words.extend(value.map(|v| format!("match {ip} {key} {v}")));
    add("src", src.map(|net| format!("{}/{}", net.net(), net.bits())));
    add("dst", dst.map(|net| format!("{}/{}", net.net(), net.bits())));
    add("protocol", protocol.map(|p| format!("{} 0xff", p.number())));
    add("sport", src_port.map(|port| format!("{port} 0xffff")));
    add("dport", dst_port.map(|port| format!("{port} 0xffff")));
    add(tos, dscp.map(|dscp| format!("{:#x} 0xfc", u16::from(dscp) << 2)));
    match words.is_empty() {
        true => ("match u32 0 0".to_owned(), family),
        false => (words.join(" "), family),
    }
}
