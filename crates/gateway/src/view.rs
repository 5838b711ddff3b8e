//! What can be seen of a gateway from outside.

use farpace_tcp::ConnectionState;
use farpace_units::{ByteCount, Packets, Rate, Span};
use std::cmp::Reverse;
use std::net::SocketAddr;

/// The two sides of a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GatewaySide {
    /// Hosts whose TCP is not to suffer from the far link.
    Lan,
    /// The far link.
    Wan,
}

impl GatewaySide {
    /// The other one.
    #[must_use]
    pub const fn other(self) -> GatewaySide {
        match self {
            GatewaySide::Lan => GatewaySide::Wan,
            GatewaySide::Wan => GatewaySide::Lan,
        }
    }
    /// In a word.
    pub const fn name(self) -> &'static str {
        match self {
            GatewaySide::Lan => "lan",
            GatewaySide::Wan => "wan",
        }
    }
}

/// What limits a leg that sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LegLimit {
    /// Nothing waits, and all is acknowledged.
    Idle,
    /// All that has arrived is sent: the other host sends no more.
    Source,
    /// The congestion window.
    CongestionWindow,
    /// The window that the host announces.
    ReceiveWindow,
    /// The pacing rate of congestion control.
    Pacing,
    /// The rate of the policy.
    Policy,
    /// The leg is closed.
    Over,
}

impl LegLimit {
    /// How many there are.
    pub const COUNT: usize = 7;
    /// All of them, in their order.
    pub const ALL: [LegLimit; LegLimit::COUNT] = [
        LegLimit::Idle,
        LegLimit::Source,
        LegLimit::CongestionWindow,
        LegLimit::ReceiveWindow,
        LegLimit::Pacing,
        LegLimit::Policy,
        LegLimit::Over,
    ];
    /// As tables, JSON and metrics have it.
    pub const fn name(self) -> &'static str {
        match self {
            LegLimit::Idle => "idle",
            LegLimit::Source => "source",
            LegLimit::CongestionWindow => "congestion_window",
            LegLimit::ReceiveWindow => "receive_window",
            LegLimit::Pacing => "pacing",
            LegLimit::Policy => "policy",
            LegLimit::Over => "over",
        }
    }
}

/// One leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LegView {
    /// State of RFC 9293.
    pub state: ConnectionState,
    /// Smoothed round-trip time.
    pub srtt: Span,
    /// The least round-trip time lately.
    pub min_rtt: Option<Span>,
    /// Congestion window.
    pub cwnd: Packets,
    /// Segments in flight.
    pub in_flight: Packets,
    /// The window that the host announces.
    pub peer_window: ByteCount,
    /// Payload of a full segment, in bytes.
    pub mss: u32,
    /// Payload leaves at this rate at most.
    pub pacing: Option<Rate>,
    /// The bandwidth that congestion control has measured.
    pub bandwidth: Option<Rate>,
    /// Segments with payload sent to the host, retransmissions included.
    pub segments_sent: u64,
    /// Payload sent to the host, retransmissions included.
    pub bytes_sent: ByteCount,
    /// Of it, retransmissions.
    pub bytes_retransmitted: ByteCount,
    /// Payload received from the host in order.
    pub bytes_received: ByteCount,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Acknowledged to the host, and not yet given to the other leg.
    pub readable: ByteCount,
    /// Given to this leg, and not yet acknowledged by the host.
    pub unacknowledged: ByteCount,
    /// What limits it.
    pub limit: LegLimit,
    /// For how long each limit has limited it so far, in the order of [`LegLimit::ALL`].
    pub limit_times: [Span; LegLimit::COUNT],
}

/// A split connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowView {
    /// The host that opened it.
    pub opener: SocketAddr,
    /// The host that answered.
    pub acceptor: SocketAddr,
    /// The side of the host that opened it.
    pub opener_side: GatewaySide,
    /// Since its SYN.
    pub age: Span,
    /// The leg to the host that opened it; none while the other has not answered.
    pub to_opener: Option<LegView>,
    /// The leg to the host that answered.
    pub to_acceptor: LegView,
    /// Payload that has passed from opener to acceptor, and back.
    pub moved: [ByteCount; 2],
    /// Payload per second, from opener to acceptor, and back.
    pub rates: [Rate; 2],
    /// Acknowledged to one host and not yet by the other, from opener to acceptor, and back. This is lost
    /// if the gateway crashes.
    pub undelivered: [ByteCount; 2],
}

impl FlowView {
    /// Orders connections: the least has the highest rate, then the most bytes.
    pub(crate) fn rank(rates: [Rate; 2], moved: [ByteCount; 2]) -> Reverse<(u64, ByteCount)> {
        let [a, b] = rates.map(Rate::bits_per_sec);
        Reverse((a.saturating_add(b), moved[0] + moved[1]))
    }

    /// Of connections of several gateways the busiest ones, in the order of
    /// [`Gateway::busiest`](crate::Gateway::busiest).
    pub fn keep_busiest(flows: &mut Vec<FlowView>, most: usize) {
        flows.sort_by_key(|flow| FlowView::rank(flow.rates, flow.moved));
        flows.truncate(most);
    }
}

/// Counters of a gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GatewayTotals {
    /// Connections that are split now.
    pub connections: usize,
    /// Of them, those whose handshake is not complete.
    pub half_open: usize,
    /// Connections split so far.
    pub split: u64,
    /// Connections passed by policy.
    pub passed_by_policy: u64,
    /// Connections passed because their round trip is short.
    pub passed_short: u64,
    /// Connections passed because of options that both hosts need to see.
    pub passed_options: u64,
    /// Connections passed because a limit was reached.
    pub passed_limit: u64,
    /// Connections passed because the gateway drains.
    pub passed_draining: u64,
    /// Connections passed as the control group of a comparison.
    pub passed_control: u64,
    /// Packets passed unchanged: not TCP, fragments, and connections that are not split.
    pub packets_passed: u64,
    /// Packets of split connections received.
    pub packets_split: u64,
    /// Packets dropped: wrong checksums, and groups.
    pub packets_dropped: u64,
    /// Packets that came to a gateway of another thread first.
    pub packets_handed_over: u64,
    /// Connections handed over to their hosts, with nothing undelivered.
    pub handed_over: u64,
    /// Connections that the gateway has reset, with undelivered payload, because it ended.
    pub cut: u64,
    /// Connections that ended with a reset or a timeout.
    pub ended_by_error: u64,
    /// Connections whose opener was answered though the answer did not pass here: one direction takes
    /// another route.
    pub asymmetric: u64,
    /// Payload sent to hosts of the WAN side, retransmissions included.
    pub wan_bytes_sent: ByteCount,
    /// Of it, retransmissions.
    pub wan_bytes_retransmitted: ByteCount,
    /// Payload moved to the WAN side, and to the LAN side.
    pub moved: [ByteCount; 2],
    /// Memory of connections now.
    pub memory: ByteCount,
    /// Most that it was.
    pub memory_peak: ByteCount,
    /// What it may be.
    pub memory_limit: ByteCount,
    /// It drains: new connections pass.
    pub draining: bool,
}

impl GatewayTotals {
    /// Those of two gateways that share connections, and so the account of memory.
    #[must_use]
    pub fn with(self, other: GatewayTotals) -> GatewayTotals {
        let both = |of: fn(&GatewayTotals) -> u64| of(&self) + of(&other);
        let bytes = |of: fn(&GatewayTotals) -> ByteCount| of(&self) + of(&other);
        GatewayTotals {
            connections: self.connections + other.connections,
            half_open: self.half_open + other.half_open,
            split: both(|totals| totals.split),
            passed_by_policy: both(|totals| totals.passed_by_policy),
            passed_short: both(|totals| totals.passed_short),
            passed_options: both(|totals| totals.passed_options),
            passed_limit: both(|totals| totals.passed_limit),
            passed_draining: both(|totals| totals.passed_draining),
            passed_control: both(|totals| totals.passed_control),
            packets_passed: both(|totals| totals.packets_passed),
            packets_split: both(|totals| totals.packets_split),
            packets_dropped: both(|totals| totals.packets_dropped),
            packets_handed_over: both(|totals| totals.packets_handed_over),
            handed_over: both(|totals| totals.handed_over),
            cut: both(|totals| totals.cut),
            ended_by_error: both(|totals| totals.ended_by_error),
            asymmetric: both(|totals| totals.asymmetric),
            wan_bytes_sent: bytes(|totals| totals.wan_bytes_sent),
            wan_bytes_retransmitted: bytes(|totals| totals.wan_bytes_retransmitted),
            moved: [bytes(|totals| totals.moved[0]), bytes(|totals| totals.moved[1])],
            memory: self.memory.max(other.memory),
            memory_peak: self.memory_peak.max(other.memory_peak),
            memory_limit: self.memory_limit.max(other.memory_limit),
            draining: self.draining && other.draining,
        }
    }
}
