//! The configuration of several NICs: a TOML table, in a file of its own or in a scenario.

use crate::multi_nic::Ratio;
use farpace_path::QueueLimit;
use farpace_units::{ByteCount, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a host combines several NICs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MultiNicConfig {
    /// The scheduler: `earliest`, `skip`, `round-robin`, `flow-hash`, `min-rtt`, `blest`, `ecf`.
    pub order: OrderKind,
    /// With `skip`: the skip number S, by how many frames a frame for a slow NIC is sent ahead. Omitted:
    /// derived from rates and hops.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip: Option<u16>,
    /// With `skip`: the maximum time that a frame waits for others.
    pub hold: Span,
    /// With `skip` and `round-robin`: the share of frames of each NIC, in order, as in "90/10". Omitted:
    /// proportional to the rates of the paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Ratio>,
    /// The queue limit, per NIC, or of all NICs together with `earliest`, `min-rtt`, `blest` and `ecf`.
    /// Omitted: 1000 packets; with `earliest`, three times what fast paths carry during the delay of the
    /// slowest, and half of the data in flight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueLimit>,
    /// Announce all NICs to neighbours by extended ARP. Otherwise the host uses its first NIC only.
    pub extended_arp: bool,
    /// Probe for the address before its use, announce and defend it (RFC 5227). (`claim` is the old name of
    /// this key.)
    #[serde(alias = "claim")]
    pub conflict_detection: bool,
    /// Probe every path: use only paths that answer, and measure rate, delay and late frames. Otherwise all
    /// paths have the nominal rates of their NICs.
    pub probe: bool,
    /// Interval between probes of a path in use. A path fails after three probes without a reply.
    pub probe_interval: Span,
    /// Number of store-and-forward links of a path: 2 with one switch. Measurements by probes replace it.
    pub hops: u8,
    /// Put received frames in order before the stack gets them. Omitted: the stack gets them in order of
    /// arrival.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resequence: Option<Resequence>,
    /// Size of the retransmit cache, from which frames are retransmitted at the request of a neighbour that
    /// puts frames in order. The host also requests missing frames itself. "0 B" disables both.
    pub repair: ByteCount,
}

impl Default for MultiNicConfig {
    fn default() -> Self {
        MultiNicConfig {
            order: OrderKind::default(),
            skip: None,
            hold: Span::from_millis(10),
            ratio: None,
            queue: None,
            extended_arp: true,
            conflict_detection: false,
            probe: true,
            probe_interval: Span::from_millis(25),
            hops: 2,
            resequence: None,
            repair: ByteCount::new(64_000_000),
        }
    }
}

impl MultiNicConfig {
    /// True if frames are retransmitted on request, and missing frames are requested. Without probes, losses
    /// cannot be detected.
    pub const fn repairs(&self) -> bool {
        self.probe && self.extended_arp && !self.repair.is_zero()
    }
}

/// The algorithm that selects the next frame and its NIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OrderKind {
    /// An idle NIC takes the frame that would arrive in order.
    #[default]
    Earliest,
    /// Frames for slow NICs are sent ahead by a fixed number: the method of the paper.
    Skip,
    /// Weighted round robin: the conventional method in the paper, and balance-rr in Linux.
    RoundRobin,
    /// One NIC per flow: balance-xor and 802.3ad in Linux.
    FlowHash,
    /// The path with the shortest round trip that has capacity.
    MinRtt,
    /// Like `min-rtt`, but a slow path is not used if it would block the window of the fast one (BLEST).
    Blest,
    /// Like `min-rtt`, but waits for the fast path if that completes earlier (ECF).
    Ecf,
}

impl OrderKind {
    /// All kinds.
    pub const ALL: [OrderKind; 7] = [
        OrderKind::Earliest,
        OrderKind::Skip,
        OrderKind::RoundRobin,
        OrderKind::FlowHash,
        OrderKind::MinRtt,
        OrderKind::Blest,
        OrderKind::Ecf,
    ];
    /// True if it sends by delays of paths, so that it is decided [which of them it
    /// uses](crate::multi_nic::NicPaths::select).
    pub const fn considers_delays(self) -> bool {
        matches!(self, OrderKind::Earliest | OrderKind::MinRtt | OrderKind::Blest | OrderKind::Ecf)
    }
    /// The name in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            OrderKind::Earliest => "earliest",
            OrderKind::Skip => "skip",
            OrderKind::RoundRobin => "round-robin",
            OrderKind::FlowHash => "flow-hash",
            OrderKind::MinRtt => "min-rtt",
            OrderKind::Blest => "blest",
            OrderKind::Ecf => "ecf",
        }
    }
}

/// How received frames are put in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Resequence {
    /// Maximum time that a frame waits for earlier frames. Omitted: a round trip and a half of the slowest
    /// path, in which a lost frame is requested and retransmitted, and 10 ms; at most 500 ms. Without probes
    /// 10 ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Span>,
    /// Maximum size of all waiting frames.
    pub bytes: ByteCount,
}

impl Default for Resequence {
    fn default() -> Self {
        Resequence { time: None, bytes: ByteCount::new(16_000_000) }
    }
}

impl Resequence {
    /// The maximum time of a frame if paths are not probed, and the margin if they are.
    const MARGIN: Span = Span::from_millis(10);
    /// The maximum of computed times, and the time before the first reply to a probe.
    const MAX_COMPUTED: Span = Span::from_millis(500);

    /// The time for which a frame waits before any path was measured. `probe`: paths are probed.
    pub fn initial_time(&self, probe: bool) -> Span {
        self.time.unwrap_or(if probe { Resequence::MAX_COMPUTED } else { Resequence::MARGIN })
    }
    /// The time for which a frame waits if the slowest path has this round trip.
    pub fn time_at(&self, rtt: Span) -> Span {
        self.time.unwrap_or_else(|| (rtt + rtt / 2 + Resequence::MARGIN).min(Resequence::MAX_COMPUTED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: scenarios with the former name of a key stay valid for one release.
    #[test]
    fn the_former_name_of_a_key_is_accepted() {
        let parse =
            |text: &str| toml::from_str::<MultiNicConfig>(text).map(|config| config.conflict_detection);
        assert_eq!(parse("claim = true"), Ok(true));
        assert_eq!(parse("conflict_detection = true"), Ok(true));
        assert!(parse("claims = true").is_err());
    }
}
