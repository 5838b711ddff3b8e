//! Receivers and ways of asking: what tables call them, and the settings that make them.

/// A name and the settings it stands for, as a scenario writes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Choice {
    /// What tables and `--json` call it.
    pub name: &'static str,
    /// Keys of `sender` or `receiver` and their values.
    pub keys: &'static [(&'static str, &'static str)],
}

const fn choice(name: &'static str, keys: &'static [(&'static str, &'static str)]) -> Choice {
    Choice { name, keys }
}

/// Receivers that hold ACKs back.
pub const RECEIVERS: [Choice; 4] = [
    choice("linux", &[("delayed_ack", "linux")]),
    choice("rfc5681", &[("delayed_ack", "rfc5681")]),
    choice("stretch 8", &[("delayed_ack", "stretch"), ("ack_every", "8 packets")]),
    choice("bsd 200 ms", &[("delayed_ack", "bsd"), ("ack_delay", "200 ms")]),
];
/// One of today behind a box that lets one of eight ACKs pass.
pub const THINNED: Choice = choice("thinned 8", &[("delayed_ack", "linux")]);
/// The one that never does, and that of Linux 2.6.
pub const OTHER_RECEIVERS: [Choice; 2] =
    [choice("none", &[("delayed_ack", "none")]), choice("linux-2.6", &[("delayed_ack", "linux-2.6")])];

const SAFE: (&str, &str) = ("ack_control", "safe");

/// Nothing is asked: what all others are compared with.
pub const OFF: Choice = choice("off", &[]);
/// The segment whose round trip is timed.
pub const RTT: Choice = choice("rtt", &[SAFE, ("ask_for", "[\"rtt\"]")]);
/// All segments of slow start.
pub const SLOW_START: Choice = choice("slow-start", &[SAFE, ("ask_for", "[\"slow-start\"]")]);
/// The last segment of a flight.
pub const FLIGHT_END: Choice = choice("flight-end", &[SAFE, ("ask_for", "[\"flight-end\"]")]);
/// What farpace takes by itself.
pub const AUTO: Choice = choice("auto", &[SAFE, ("ask_for", "[\"auto\"]")]);
/// Every segment.
pub const EVERYTHING: Choice = choice("everything", &[SAFE, ("ask_for", "[\"everything\"]")]);

/// Nothing is asked, but the receiver acknowledges everything at once: what asking could gain at most.
pub const NEVER_HELD: Choice = choice("(never held)", &[("delayed_ack", "none")]);

/// Every segment of ProbeRTT, by CDL.
pub const PROBE_RTT: Choice = choice("safe, probe-rtt", &[SAFE, ("ask_for", "[\"probe-rtt\"]")]);
/// The same as the draft of TARR suggests it.
pub const TARR: Choice =
    choice("tarr, probe-rtt", &[("ack_control", "tarr"), ("ask_for", "[\"probe-rtt\"]")]);

/// The window alone says what leaves, so that an ACK that comes sooner lets something leave sooner.
const UNPACED: (&str, &str) = ("pacing", "false");

/// How the window grows.
pub const GROWTHS: [Choice; 3] = [
    choice("by bytes", &[("profile", "modern"), UNPACED]),
    choice("per ACK", &[("profile", "modern"), UNPACED, ("slow_start_limit", "1 packet")]),
    choice("Reno per ACK", &[("profile", "newreno"), ("initial_window", "10 packets")]),
];

/// The settings as overrides for one end of `flow`.
pub fn overrides(flow: &str, end: &str, choice: Choice) -> impl Iterator<Item = (String, String)> {
    let prefix = format!("flows.{flow}.{end}");
    choice.keys.iter().map(move |(key, value)| (format!("{prefix}.{key}"), (*value).to_owned()))
}

/// Asking, at both ends: one asks, the other answers.
pub fn asking(flow: &str, asked: Choice) -> impl Iterator<Item = (String, String)> {
    overrides(flow, "sender", asked).chain(overrides(flow, "receiver", asked))
}
