//! Receivers, requests and stacks by name, with the settings that make them.

use crate::observe::{Setting, set};

/// A name, and settings as a scenario writes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedSettings {
    /// What tables and `--json` call it.
    pub name: &'static str,
    /// Keys of `sender` or `receiver` and their values.
    keys: &'static [(&'static str, &'static str)],
}

const fn named(name: &'static str, keys: &'static [(&'static str, &'static str)]) -> NamedSettings {
    NamedSettings { name, keys }
}

/// Receivers that delay ACKs.
pub const LINUX: NamedSettings = named("linux", &[("delayed_ack", "linux")]);
pub const RFC5681: NamedSettings = named("rfc5681", &[("delayed_ack", "rfc5681")]);
pub const STRETCH: NamedSettings =
    named("stretch 8", &[("delayed_ack", "stretch"), ("ack_every", "8 packets")]);
pub const BSD: NamedSettings = named("bsd 200 ms", &[("delayed_ack", "bsd"), ("ack_delay", "200 ms")]);
pub const LINUX26: NamedSettings = named("linux-2.6", &[("delayed_ack", "linux-2.6")]);
/// A modern one behind a box that lets one of eight ACKs pass.
pub const THINNED: NamedSettings = named("thinned 8", &[("delayed_ack", "linux")]);
/// One that never does.
pub const NO_DELAY: NamedSettings = named("none", &[("delayed_ack", "none")]);

const SAFE: (&str, &str) = ("ack_control", "safe");

/// No requests: what all others are compared with.
pub const OFF: NamedSettings = named("off", &[]);
/// The segment whose round trip is timed.
pub const RTT: NamedSettings = named("rtt", &[SAFE, ("ack_requests", "[\"rtt\"]")]);
/// All segments of slow start.
pub const SLOW_START: NamedSettings = named("slow-start", &[SAFE, ("ack_requests", "[\"slow-start\"]")]);
/// The last segment of a flight.
pub const FLIGHT_END: NamedSettings = named("flight-end", &[SAFE, ("ack_requests", "[\"flight-end\"]")]);
/// farpace's default.
pub const AUTO: NamedSettings = named("auto", &[SAFE, ("ack_requests", "[\"auto\"]")]);
/// Every segment.
pub const EVERYTHING: NamedSettings = named("everything", &[SAFE, ("ack_requests", "[\"everything\"]")]);
/// No requests to a receiver that acknowledges everything at once: the most that requests could gain.
pub const NEVER_DELAYED: NamedSettings = named("(never held)", &[("delayed_ack", "none")]);
/// Every segment of BBR's ProbeRTT, by CDL.
pub const PROBE_RTT: NamedSettings = named("safe, probe-rtt", &[SAFE, ("ack_requests", "[\"probe-rtt\"]")]);
/// The same as the draft of TARR suggests it.
pub const TARR: NamedSettings =
    named("tarr, probe-rtt", &[("ack_control", "tarr"), ("ack_requests", "[\"probe-rtt\"]")]);

/// The window alone says what leaves, so that an ACK that comes sooner lets something leave sooner.
const UNPACED: (&str, &str) = ("pacing", "false");

/// How the window grows.
pub const BY_BYTES: NamedSettings = named("by bytes", &[("profile", "modern"), UNPACED]);
pub const PER_ACK: NamedSettings =
    named("per ACK", &[("profile", "modern"), UNPACED, ("slow_start_limit", "1 packet")]);
pub const RENO_PER_ACK: NamedSettings =
    named("Reno per ACK", &[("profile", "newreno"), ("initial_window", "10 packets")]);

/// The settings for one end of `flow`.
pub fn overrides(flow: &str, end: &str, of: NamedSettings) -> impl Iterator<Item = Setting> {
    let prefix = format!("flows.{flow}.{end}");
    of.keys.iter().map(move |(key, value)| set(format!("{prefix}.{key}"), *value))
}

/// Requests, at both ends: one asks, the other answers.
pub fn requests(flow: &str, asked: NamedSettings) -> impl Iterator<Item = Setting> {
    overrides(flow, "sender", asked).chain(overrides(flow, "receiver", asked))
}
