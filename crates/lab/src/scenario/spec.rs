//! The tables and keys of a scenario file, as plain structs. The descriptions here are what
//! `farpace scenario schema` prints and what error messages quote.

use super::aqm::Aqm;
use super::datagrams::DatagramFlow;
use super::host_model::{InterruptsSpec, ProcessorSpec};
use super::impairments::{BurstLossSpec, ClockJumpSpec};
use super::middlebox::{AckThinningSpec, MiddleboxSpec};
use super::schedule::ScheduleSpec;
use farpace_link::multi_nic::MultiNicConfig;
use farpace_link::pacing::PacingConfig;
use farpace_path::QueueLimit;
use farpace_tcp::config::Settings;
use farpace_units::{ByteCount, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

/// A network, the transfers through it, and what to record of them.
///
/// The network is a tree: hosts at its ends, routers and switches between, one path from each to each. Only hosts with
/// several cards have several links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// One line that says what this is; the heading of reports.
    pub title: String,
    /// What it shows and why, in as many lines as it takes.
    #[serde(default)]
    pub description: String,
    /// All dice of the run come from this number (0 to 2^63 - 1) and from the names of the elements.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Virtual time limit: the run ends here even if flows are not done.
    #[serde(default = "default_duration")]
    pub duration: Span,
    /// What to record.
    #[serde(default)]
    pub trace: Trace,
    /// The machines at the ends, by name. Each has one NIC, so one link, unless it has `multi_nic`.
    pub hosts: BTreeMap<String, HostSpec>,
    /// The machines between, by name. They forward along the only path there is.
    #[serde(default)]
    pub routers: BTreeMap<String, RouterSpec>,
    /// What joins lines into one Ethernet, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub switches: BTreeMap<String, SwitchSpec>,
    /// The links between hosts, routers and switches.
    pub links: Vec<LinkSpec>,
    /// The transfers.
    pub flows: Vec<FlowSpec>,
    /// Streams of UDP datagrams beside them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub datagrams: Vec<DatagramFlow>,
}

/// A machine that sends and receives.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HostSpec {
    /// IPv4 or IPv6 address; omitted: the first free one from 10.0.0.1 on, in the order of names.
    pub address: Option<IpAddr>,
    /// Each of the host's links belongs to a network card of its own, in the order of the links, and all cards together are
    /// used as one.
    pub multi_nic: Option<MultiNicConfig>,
    /// What its connections may hold; omitted: 16 GiB. Autotuned buffers reach a quarter of it.
    pub memory: Option<ByteCount>,
    /// What frames cost the host; omitted: nothing.
    pub processor: Option<ProcessorSpec>,
}

/// A machine that forwards. It takes no time and has no keys of its own: rates, queues and policers belong
/// to its links.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouterSpec {}

/// What joins lines into one Ethernet. It takes no time: rates and queues belong to its links.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SwitchSpec {
    /// A switch, which sends frames to where their receiver is, or a hub, which sends everything everywhere.
    pub kind: SwitchKind,
}

/// What joins lines into one Ethernet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchKind {
    /// Learns where stations are. Frames of the line, like the gap frames of pacing, end there. It knows all hosts at first, as if
    /// each had said a word; but not where a host has several cards.
    #[default]
    Switch,
    /// Repeats every frame to all other lines, gap frames too.
    Hub,
}

/// A full-duplex link. In each direction a packet meets the middlebox, the thinning of ACKs and the policer, then the
/// troubles (MTU, outage, loss, corruption, duplication, jitter, reordering), then the queue, the line with its rate, the
/// delay, bit errors, and the interrupts of the card that receives it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// Name, unique among hosts, routers, switches and links.
    pub name: String,
    /// The two ends, by name. Forward is from the first to the second.
    pub between: [String; 2],
    /// Rate of the line in both directions; omitted: infinitely fast.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Propagation time, one way.
    #[serde(default)]
    pub delay: Span,
    /// Queue in front of the line, one per direction, the frame on the line included. Packets that find it full
    /// are dropped.
    #[serde(default)]
    pub queue: QueueLimit,
    /// Active queue management: `red`, `codel` or `fq_codel`; omitted: a queue that drops only when it is full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aqm: Option<Aqm>,
    /// Rate and delay over time, in place of the constant ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleSpec>,
    /// Bytes that each frame takes on the line beyond its own: 24 B are Ethernet's checksum, preamble and gap.
    /// With 0 B, short frames are not padded to Ethernet's minimum either.
    #[serde(default = "default_overhead")]
    pub overhead: ByteCount,
    /// What is different or goes wrong from the first end to the second.
    #[serde(default, skip_serializing_if = "DirectionSpec::is_default")]
    pub forward: DirectionSpec,
    /// What is different or goes wrong from the second end to the first.
    #[serde(default, skip_serializing_if = "DirectionSpec::is_default")]
    pub backward: DirectionSpec,
}

/// One direction of a link: values that replace the link's, and troubles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DirectionSpec {
    /// Rate in this direction, in place of the link's.
    pub rate: Option<Rate>,
    /// Delay in this direction, in place of the link's.
    pub delay: Option<Span>,
    /// Queue in this direction, in place of the link's.
    pub queue: Option<QueueLimit>,
    /// Active queue management in this direction, in place of the link's.
    pub aqm: Option<Aqm>,
    /// Rate and delay over time in this direction, in place of the link's.
    pub schedule: Option<ScheduleSpec>,
    /// How packets leave the first machine of this direction: evenly, each class at its rate. The line needs a `rate`; `queue`
    /// does not apply, as each class has a limit.
    pub pacing: Option<PacingConfig>,
    /// A firewall at the entrance, which strips options, clears bits and drops segments without ACK.
    pub middlebox: Option<MiddleboxSpec>,
    /// At the entrance, of several pure ACKs only the newest goes on.
    pub ack_thinning: Option<AckThinningSpec>,
    /// A token bucket at the entrance: it drops what exceeds its rate, and never queues.
    pub policer: Option<PolicerSpec>,
    /// The longest IP packet that passes; omitted: any.
    pub mtu: Option<MtuSpec>,
    /// Probability that a packet is lost.
    #[schemars(range(min = 0, max = 1))]
    pub loss: f64,
    /// Loss in bursts (Gilbert-Elliott).
    pub burst_loss: Option<BurstLossSpec>,
    /// Probability that a bit is wrong when it arrives: an IP packet of n bytes is lost with 1 - (1 - this)^(8 n).
    #[schemars(range(min = 0, max = 1))]
    pub bit_errors: f64,
    /// Probability that a packet arrives twice.
    #[schemars(range(min = 0, max = 1))]
    pub duplicate: f64,
    /// Probability that one bit of a packet is flipped.
    #[schemars(range(min = 0, max = 1))]
    pub corrupt: f64,
    /// Some packets are held back, so that later ones overtake them.
    pub reorder: Option<ReorderSpec>,
    /// Each packet is delayed by a random time up to this; the order is kept.
    pub jitter: Span,
    /// Times when the link is down and drops everything, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<OutageSpec>,
    /// Jumps of the TCP timestamp clocks of whatever sends into this direction; their echoes are moved back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clock_jumps: Vec<ClockJumpSpec>,
    /// Receive interrupts of the card at the end of this direction.
    pub interrupts: Option<InterruptsSpec>,
}

impl DirectionSpec {
    fn is_default(&self) -> bool {
        *self == DirectionSpec::default()
    }
}

/// A token bucket that drops. A packet passes if the bucket holds its length; the bucket begins full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicerSpec {
    /// Rate at which tokens come in.
    pub rate: Rate,
    /// Most tokens the bucket holds: what may pass at once after a rest.
    pub burst: ByteCount,
    /// Tokens come once per this time (hardware does it so); 0 s: continuously.
    #[serde(default)]
    pub refill: Span,
    /// Time of the first refill, less than `refill`.
    #[serde(default)]
    pub phase: Span,
    /// Which bytes of a packet cost tokens.
    #[serde(default)]
    pub counts: PolicerCounts,
}

/// An MTU: what is longer is dropped, or taken apart where IPv4 allows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MtuSpec {
    /// Length of the longest IP packet that passes, header included, from 68 B.
    pub limit: ByteCount,
    /// The sender of what is dropped is not told by ICMP: a black hole.
    #[serde(default)]
    pub silent: bool,
    /// Later limits, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<MtuChangeSpec>,
}

/// Another MTU from a time on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MtuChangeSpec {
    /// When it begins to hold.
    pub at: Span,
    /// Length of the longest IP packet that passes then.
    pub limit: ByteCount,
}

/// Which bytes of a packet cost tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PolicerCounts {
    /// The IP packet.
    #[default]
    Ip,
    /// The Ethernet frame: the IP packet and 14 bytes of header.
    Frame,
}

/// Reordering: some packets are held back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReorderSpec {
    /// Probability that a packet is held back.
    #[schemars(range(min = 0, max = 1))]
    pub chance: f64,
    /// For how long.
    pub extra: Span,
}

/// A time when a link is down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutageSpec {
    /// When it begins.
    pub at: Span,
    /// How long it lasts.
    pub lasts: Span,
}

/// A transfer from one host to another over one TCP connection. The sender opens it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowSpec {
    /// Name, unique among flows.
    pub name: String,
    /// The host that sends.
    pub from: String,
    /// The host that receives.
    pub to: String,
    /// Port the receiver listens on; omitted: 5001 for the first flow, 5002 for the second, ...
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// When the sender connects.
    #[serde(default)]
    pub start: Span,
    /// How much is sent: a pattern made from the seed, or, for the first flow, the file given as --payload.
    pub size: ByteCount,
    /// TCP of the sending host for this flow.
    #[serde(default)]
    pub sender: Settings,
    /// TCP of the receiving host for this flow.
    #[serde(default)]
    pub receiver: Settings,
}

/// What to record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Trace {
    /// Width of the bins of bandwidth and of the samples of connection variables.
    pub bin: Span,
    /// Where packets are captured. A host's name: at its NIC; if it has several, above them and at each, one capture for each
    /// place. A link's name: at both its ends, two captures.
    /// A capture holds what goes into the link at that end (before policer, loss and queue) and what comes
    /// out of it there.
    pub taps: Vec<String>,
    /// Bytes kept of each captured frame, from 96 B; 128 B hold all headers.
    pub snaplen: ByteCount,
    /// How fine the times in captures are: `exact`, or as coarse as a measuring device had them.
    pub clock: CaptureClock,
}

/// How fine the times in captures are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CaptureClock {
    /// To the nanosecond, as the lab has them.
    #[default]
    Exact,
    /// Multiples of 2^-24 s (59.6 ns), rounded down, as GtrcNET-1 stamps packets.
    Gtrcnet,
}

impl Default for Trace {
    fn default() -> Self {
        Trace {
            bin: Span::from_millis(10),
            taps: Vec::new(),
            snaplen: ByteCount::new(128),
            clock: CaptureClock::Exact,
        }
    }
}

fn default_seed() -> u64 {
    1
}
fn default_duration() -> Span {
    Span::from_secs(600)
}
fn default_overhead() -> ByteCount {
    ByteCount::new(24)
}

/// A direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From the first end to the second.
    Forward,
    /// From the second end to the first.
    Backward,
}

/// Everything that happens to a packet in one direction of a link, with all defaults filled in. In the
/// order of a packet's way: middlebox, thinning of ACKs, policer, troubles, queue, line, delay, interrupts.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedDirection<'a> {
    /// The node that packets come from.
    pub from: &'a str,
    /// The node that they go to.
    pub to: &'a str,
    /// The firewall at the entrance.
    pub middlebox: Option<&'a MiddleboxSpec>,
    /// How ACKs are thinned at the entrance.
    pub ack_thinning: Option<&'a AckThinningSpec>,
    /// The policer at the entrance.
    pub policer: Option<&'a PolicerSpec>,
    /// The longest packet that passes.
    pub mtu: Option<&'a MtuSpec>,
    /// Probability of loss, 0 to 1.
    pub loss: f64,
    /// Loss in bursts.
    pub burst_loss: Option<&'a BurstLossSpec>,
    /// Probability of a wrong bit on the line, 0 to 1.
    pub bit_errors: f64,
    /// Probability of arriving twice, 0 to 1.
    pub duplicate: f64,
    /// Probability of a flipped bit, 0 to 1.
    pub corrupt: f64,
    /// Reordering.
    pub reorder: Option<&'a ReorderSpec>,
    /// Greatest random delay that keeps the order.
    pub jitter: Span,
    /// Times without service, ordered and apart.
    pub outages: &'a [OutageSpec],
    /// Jumps of the senders' timestamp clocks.
    pub clock_jumps: &'a [ClockJumpSpec],
    /// Receive interrupts at the end.
    pub interrupts: Option<&'a InterruptsSpec>,
    /// The queue in front of the line.
    pub queue: QueueLimit,
    /// What manages it.
    pub aqm: Option<&'a Aqm>,
    /// Steps of rate and delay; before the first one `rate` and `delay` hold.
    pub schedule: Option<&'a ScheduleSpec>,
    /// How packets are paced; then `queue` does not hold.
    pub pacing: Option<&'a PacingConfig>,
    /// The line's rate; none: infinitely fast.
    pub rate: Option<Rate>,
    /// Bytes on the line beyond each frame's own.
    pub overhead: ByteCount,
    /// Propagation time.
    pub delay: Span,
}

impl ResolvedDirection<'_> {
    /// True if anything random, an outage or an MTU befalls packets here; false: no trouble element is needed.
    pub fn has_troubles(&self) -> bool {
        self.loss > 0.0
            || self.burst_loss.is_some()
            || self.bit_errors > 0.0
            || self.duplicate > 0.0
            || self.corrupt > 0.0
            || self.reorder.is_some()
            || !self.jitter.is_zero()
            || !self.outages.is_empty()
            || !self.clock_jumps.is_empty()
            || self.mtu.is_some()
    }
}

impl LinkSpec {
    /// What holds in one direction: the link's values, and that direction's own in their place.
    pub fn direction(&self, way: Direction) -> ResolvedDirection<'_> {
        let [first, second] = &self.between;
        let (from, to, d) = match way {
            Direction::Forward => (first, second, &self.forward),
            Direction::Backward => (second, first, &self.backward),
        };
        // Every field is named, so that a new one cannot be forgotten.
        let DirectionSpec {
            rate,
            delay,
            queue,
            aqm,
            schedule,
            pacing,
            middlebox,
            ack_thinning,
            policer,
            mtu,
            loss,
            burst_loss,
            bit_errors,
            duplicate,
            corrupt,
            reorder,
            jitter,
            outages,
            clock_jumps,
            interrupts,
        } = d;
        ResolvedDirection {
            from,
            to,
            middlebox: middlebox.as_ref(),
            ack_thinning: ack_thinning.as_ref(),
            policer: policer.as_ref(),
            mtu: mtu.as_ref(),
            loss: *loss,
            burst_loss: burst_loss.as_ref(),
            bit_errors: *bit_errors,
            duplicate: *duplicate,
            corrupt: *corrupt,
            reorder: reorder.as_ref(),
            jitter: *jitter,
            outages,
            clock_jumps,
            interrupts: interrupts.as_ref(),
            queue: queue.unwrap_or(self.queue),
            aqm: aqm.as_ref().or(self.aqm.as_ref()),
            schedule: schedule.as_ref().or(self.schedule.as_ref()),
            pacing: pacing.as_ref(),
            rate: rate.or(self.rate),
            overhead: self.overhead,
            delay: delay.unwrap_or(self.delay),
        }
    }
}

impl Scenario {
    /// All machines that are no hosts: their table, what they are called, and their names.
    pub(super) fn between(&self) -> impl Iterator<Item = (&'static str, &'static str, &String)> {
        let routers = self.routers.keys().map(|name| ("routers", "router", name));
        routers.chain(self.switches.iter().map(|(name, switch)| match switch.kind {
            SwitchKind::Switch => ("switches", "switch", name),
            SwitchKind::Hub => ("switches", "hub", name),
        }))
    }
    /// What a machine that is no host is called; none: there is no such machine.
    pub(super) fn kind_between(&self, name: &str) -> Option<&'static str> {
        self.between().find(|(.., other)| *other == name).map(|(_, kind, _)| kind)
    }

    /// The port the receiver of flow `index` listens on.
    pub fn port(&self, index: usize) -> u16 {
        let automatic = u16::try_from(index).unwrap_or(u16::MAX).saturating_add(5_001);
        self.flows.get(index).and_then(|f| f.port).unwrap_or(automatic)
    }

    /// The address of every host: the one given, or the first free one from 10.0.0.1 on, in the order of
    /// names.
    pub fn addresses(&self) -> BTreeMap<&str, IpAddr> {
        let mut taken: std::collections::BTreeSet<IpAddr> =
            self.hosts.values().filter_map(|h| h.address).collect();
        let mut next = u32::from(Ipv4Addr::new(10, 0, 0, 1));
        let mut addresses = BTreeMap::new();
        for (name, host) in &self.hosts {
            let address = host.address.unwrap_or_else(|| {
                while taken.contains(&IpAddr::from(Ipv4Addr::from(next))) {
                    next += 1;
                }
                Ipv4Addr::from(next).into()
            });
            taken.insert(address);
            addresses.insert(name.as_str(), address);
        }
        addresses
    }
}
