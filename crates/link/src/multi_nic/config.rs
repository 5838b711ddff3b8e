//! What people write about several cards: a TOML table, which is also a scenario's.

use crate::multi_nic::Ratio;
use farpace_path::QueueLimit;
use farpace_units::{ByteCount, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How one machine uses several network cards as one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MultiNicConfig {
    /// Which frame leaves next, and by which card: `earliest`, `skip`, `round-robin`, `flow-hash`, `min-rtt`, `blest`, `ecf`.
    pub order: OrderKind,
    /// With `skip`: the skip number S, by how many frames a frame for a narrow card is sent ahead; omitted: worked out from rates
    /// and hops.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip: Option<u16>,
    /// With `skip`: for how long a frame waits for others at most.
    pub hold: Span,
    /// With `skip` and `round-robin`: the share of frames that each card sends, in the order of cards, as in "90/10"; omitted: it
    /// follows what each way carries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Ratio>,
    /// What waits here at most: per card, or of all cards together with `earliest`, `min-rtt`, `blest` and `ecf`; omitted: 1000
    /// packets, and with `earliest` three times what fast ways bring while a frame is on the slowest one, and half of what is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueLimit>,
    /// Neighbours are told of all cards by extended ARP. Without it a machine uses its first card alone.
    pub extended_arp: bool,
    /// The address is probed for before it is used, announced and defended (RFC 5227).
    pub claim: bool,
    /// Every way is probed: only those that answer are used, and what they carry, how long they take and which frames come too
    /// late is measured. Without it all ways are taken for what their cards say.
    pub probe: bool,
    /// From one probe to the next on a way that is used. A way is given up after three without an answer.
    pub probe_interval: Span,
    /// Lines that a frame passes one after the other, each of which sends it when it has it whole: 2 with one switch. What is
    /// measured by probes replaces it.
    pub hops: u8,
    /// Received frames are put in order before the stack sees them; omitted: it sees them as they come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resequence: Option<Resequence>,
    /// So much of what was sent last is kept, to be sent again if a neighbour that puts frames in order asks for it, and neighbours are
    /// asked for what is missing here; "0 B": neither.
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
            claim: false,
            probe: true,
            probe_interval: Span::from_millis(25),
            hops: 2,
            resequence: None,
            repair: ByteCount::new(64_000_000),
        }
    }
}

impl MultiNicConfig {
    /// Frames are sent again for neighbours, and they are asked. Without probes nobody would know when something has been lost.
    pub const fn repairs(&self) -> bool {
        self.probe && self.extended_arp && !self.repair.is_zero()
    }
}

/// Which frame leaves next, and by which card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OrderKind {
    /// A card that falls idle takes the frame that would arrive in its turn.
    #[default]
    Earliest,
    /// Frames for narrow cards are sent ahead by a fixed number: the paper's.
    Skip,
    /// Cards take turns, by their shares: the paper's conventional method, and Linux's balance-rr.
    RoundRobin,
    /// Each flow has a card: Linux's balance-xor and 802.3ad.
    FlowHash,
    /// The way with the shortest round trip that has room.
    MinRtt,
    /// Like `min-rtt`, but a slow way is left alone if it would block the window of the fast one (BLEST).
    Blest,
    /// Like `min-rtt`, but waits for the fast way if that ends earlier (ECF).
    Ecf,
}

impl OrderKind {
    /// All of them.
    pub const ALL: [OrderKind; 7] = [
        OrderKind::Earliest,
        OrderKind::Skip,
        OrderKind::RoundRobin,
        OrderKind::FlowHash,
        OrderKind::MinRtt,
        OrderKind::Blest,
        OrderKind::Ecf,
    ];
    /// As it is written.
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
    /// For how long a frame waits for those before it at most.
    pub time: Span,
    /// How much waits at most, of all flows together.
    pub bytes: ByteCount,
}

impl Default for Resequence {
    fn default() -> Self {
        Resequence { time: Span::from_millis(10), bytes: ByteCount::new(16_000_000) }
    }
}
