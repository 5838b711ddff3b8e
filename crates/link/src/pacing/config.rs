//! The pacing configuration: a TOML table, in a file of its own or in a scenario.

use super::admission::PacingAdmission;
use super::{ClassFilter, Classifier, ConfigError, GapFrameKind, LinkClock, PacingError};
use farpace_path::QueueLimit;
use farpace_units::{ByteCount, Rate, Span};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// How packets leave a device: classes with rates, filters that assign packets to classes, and a scheduler.
///
/// A packet goes to the class of the first filter that matches it. If none matches, it goes to `default`, or
/// without a default to a normal class named `(rest)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PacingConfig {
    /// The scheduler: `edf`, `psp`, `token-bucket`, `fq` or `fifo`.
    pub scheduler: SchedulerKind,
    /// How `edf` spaces packets: with gap frames, timers, or both.
    pub gaps: Gaps,
    /// The format of gap frames.
    pub gap_frame: GapFrameKind,
    /// The maximum rate of the device, if a bus or a virtual machine makes it slower than the link. Omitted:
    /// the rate of the link. (`link_rate` is the old name of this key.)
    #[serde(alias = "line", skip_serializing_if = "Option::is_none")]
    pub device_rate: Option<Rate>,
    /// The longest IP packet.
    pub mtu: ByteCount,
    /// With `hybrid`, the maximum lateness of timers, which gap frames make up for.
    pub jitter: Span,
    /// With `token-bucket`, the time between two refills. The systems of the paper tick every 1 to 10 ms.
    pub tick: Span,
    /// With `token-bucket`, the depth of a bucket. Omitted: what its class sends in one `tick`, plus a frame.
    /// A bucket always holds the longest frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<ByteCount>,
    /// With `fq`, the granularity of timers, so that one timer serves several flows.
    pub slack: Span,
    /// With `fq`, what a flow may send in one burst. Omitted: two full frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantum: Option<ByteCount>,
    /// The queue limit of classes that do not set their own.
    pub limit: QueueLimit,
    /// The class of packets that no filter matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// The classes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ClassConfig>,
    /// The filters, evaluated in order of `priority` (lowest value first), then as written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<ClassFilter>,
}

impl Default for PacingConfig {
    fn default() -> Self {
        PacingConfig {
            scheduler: SchedulerKind::default(),
            gaps: Gaps::default(),
            gap_frame: GapFrameKind::default(),
            device_rate: None,
            mtu: ByteCount::new(1_500),
            jitter: Span::from_micros(10),
            tick: Span::from_millis(1),
            burst: None,
            slack: Span::from_micros(10),
            quantum: None,
            limit: QueueLimit::default(),
            default: None,
            classes: Vec::new(),
            filters: Vec::new(),
        }
    }
}

/// The algorithm that selects the next packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SchedulerKind {
    /// Eligible earliest deadline first: of the eligible classes, the one with the earliest deadline.
    #[default]
    Edf,
    /// Of the eligible classes, the one with the highest rate: PSPacer, as in the paper.
    Psp,
    /// A token bucket per class, refilled by a periodic timer.
    TokenBucket,
    /// A timer per flow, like Linux's fq.
    Fq,
    /// No pacing.
    Fifo,
}

/// How packets are spaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Gaps {
    /// Gap frames, which the next hop discards: exact to the byte, on Ethernet.
    #[default]
    Frames,
    /// Timers, for devices without a link of their own, such as tunnels. As exact as the timers.
    Timers,
    /// Timers, and gap frames for the last part of a gap.
    Hybrid,
}

/// A class of the configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClassConfig {
    /// Name, unique among classes.
    pub name: String,
    /// Layer 2 rate: frames with headers and check sequences. `connection`: each connection has a class of
    /// its own whose rate follows its congestion window. Omitted: not paced; the class uses capacity that
    /// paced classes leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<ClassRate>,
    /// The limit of its queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<QueueLimit>,
}

/// The rate of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassRate {
    /// A fixed rate.
    Fixed(Rate),
    /// The rate that each connection requests.
    Connection,
}

impl fmt::Display for ClassRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClassRate::Fixed(rate) => rate.fmt(f),
            ClassRate::Connection => f.write_str("connection"),
        }
    }
}

impl FromStr for ClassRate {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "connection" {
            return Ok(ClassRate::Connection);
        }
        text.parse().map(ClassRate::Fixed).map_err(|error| format!("{error}, or \"connection\""))
    }
}

impl Serialize for ClassRate {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ClassRate {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for ClassRate {
    fn schema_name() -> Cow<'static, str> {
        "ClassRate".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "a rate with its unit, like \"500 Mbit/s\", or \"connection\"",
        })
    }
}

/// Maximum number of class names in an error message.
const MAX_NAMED: usize = 20;

impl PacingConfig {
    /// The rate at which the scheduler may send, on a link of rate `link`.
    pub fn effective_rate(&self, link: Rate) -> Rate {
        self.device_rate.unwrap_or(link)
    }

    /// The classifier for these classes and filters.
    pub fn classifier(&self) -> Classifier {
        let names = self.classes.iter().map(|class| class.name.as_str());
        Classifier::new(names, &self.filters, self.default.as_deref())
    }

    /// True if a class takes its rate from connections. Then packets must carry a rate hint
    /// ([`Packet::pacing_rate`](farpace_wire::Packet::pacing_rate)).
    pub fn follows_connections(&self) -> bool {
        self.classes.iter().any(|class| class.rate == Some(ClassRate::Connection))
    }

    /// All errors for a link of rate `link`; empty if the configuration is valid.
    pub fn check(&self, link: Rate) -> Vec<ConfigError> {
        let mut errors = Vec::new();
        let effective = self.effective_rate(link);
        if let Some(device) = self.device_rate
            && device > link
        {
            let problem = format!("the link has {link}, less than {device}");
            errors.push(ConfigError::new(&["device_rate"], problem));
        }
        if effective.bits_per_sec() == 0 || effective > LinkClock::MAX_RATE {
            errors.push(ConfigError::new(&["device_rate"], PacingError::LinkRate));
        }
        self.check_constants(&mut errors);
        let admission = match self.scheduler {
            SchedulerKind::Psp => PacingAdmission::of_rates(effective, self.mtu),
            _ => PacingAdmission::new(effective, self.mtu),
        };
        match admission {
            Err(PacingError::LinkRate) => {}
            Err(error) => errors.push(ConfigError::new(&["mtu"], error)),
            Ok(mut admission) => {
                for (i, class) in self.classes.iter().enumerate() {
                    if let Some(ClassRate::Fixed(rate)) = class.rate
                        && let Err(error) = admission.replace(Rate::default(), rate)
                    {
                        errors.push(ConfigError::new(&["classes", &i.to_string(), "rate"], error));
                    }
                }
            }
        }
        self.check_names(&mut errors);
        super::classifier::check(&self.filters, &mut errors);
        errors
    }

    /// Warnings about valid configurations: filters that never match, classes that no packet reaches, keys
    /// that the scheduler ignores.
    pub fn warnings(&self) -> Vec<ConfigError> {
        let mut warnings = Vec::new();
        super::classifier::covered(&self.filters, &mut warnings);
        let reached: BTreeSet<_> = self.filters.iter().map(|f| &f.class).chain(&self.default).collect();
        for (i, class) in self.classes.iter().enumerate().filter(|(_, class)| !reached.contains(&class.name))
        {
            let problem = format!("no filter selects class `{}`, and it is not the default", class.name);
            warnings.push(ConfigError::new(&["classes", &i.to_string()], problem));
        }
        let fixed = |class: &ClassConfig| matches!(class.rate, Some(ClassRate::Fixed(_)));
        if self.scheduler == SchedulerKind::Fifo && self.classes.iter().any(fixed) {
            let problem = "`fifo` does not pace: it ignores the rates of classes";
            warnings.push(ConfigError::new(&["scheduler"], problem));
        }
        let mut ignored = |key: &str, ignored: bool, only: &str| {
            if ignored {
                let problem = format!("`{key}` is ignored: only scheduler `{only}` uses it");
                warnings.push(ConfigError::new(&[key], problem));
            }
        };
        ignored("gaps", self.gaps != Gaps::default() && self.scheduler != SchedulerKind::Edf, "edf");
        let token_bucket = self.scheduler == SchedulerKind::TokenBucket;
        ignored("burst", self.burst.is_some() && !token_bucket, "token-bucket");
        ignored("quantum", self.quantum.is_some() && self.scheduler != SchedulerKind::Fq, "fq");
        warnings
    }

    fn check_constants(&self, errors: &mut Vec<ConfigError>) {
        let mut positive = |key: &str, fine: bool, of: &str| {
            if !fine {
                errors.push(ConfigError::new(&[key], format!("`{key}` must be above 0{of}")));
            }
        };
        positive("tick", !self.tick.is_zero(), " s");
        positive("burst", self.burst != Some(ByteCount::ZERO), " B");
        positive("quantum", self.quantum != Some(ByteCount::ZERO), " B");
        positive("limit", !self.limit.is_zero(), "");
    }

    fn check_names(&self, errors: &mut Vec<ConfigError>) {
        let mut names = BTreeSet::new();
        for (i, class) in self.classes.iter().enumerate() {
            let at = ["classes", &i.to_string(), "name"];
            if class.name.is_empty() || class.name.starts_with('(') {
                errors.push(ConfigError::new(&at, "a class needs a name that does not begin with `(`"));
            } else if !names.insert(class.name.as_str()) {
                errors.push(ConfigError::new(&at, format!("there is a class `{}` already", class.name)));
            }
            if class.limit.is_some_and(QueueLimit::is_zero) {
                errors.push(ConfigError::new(
                    &["classes", &i.to_string(), "limit"],
                    "the queue of a class must hold at least one packet",
                ));
            }
        }
        let known = |name: &str| {
            let some: Vec<_> = names.iter().take(MAX_NAMED).map(|n| format!("`{n}`")).collect();
            let more = if names.len() > some.len() { ", ..." } else { "" };
            match names.is_empty() {
                true => format!("there is no class `{name}`: there are no classes"),
                false => format!("there is no class `{name}`; there are {}{more}", some.join(", ")),
            }
        };
        if let Some(default) = self.default.as_deref().filter(|name| !names.contains(name)) {
            errors.push(ConfigError::new(&["default"], known(default)));
        }
        for (i, filter) in self.filters.iter().enumerate() {
            let i = i.to_string();
            if !names.contains(filter.class.as_str()) {
                errors.push(ConfigError::new(&["filters", &i, "class"], known(&filter.class)));
            }
        }
    }
}
