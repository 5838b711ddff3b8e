//! What can be seen of a connection while it runs.

use farpace_events::Cause;
use farpace_tcp::config::Congestion;
use farpace_tcp::{Connection, ConnectionInspection, ConnectionMemory, ConnectionState, Counters, Details};
use farpace_units::{ByteCount, Instant, Packets};

/// What keeps a sender from sending more just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitedBy {
    /// The program has written nothing more.
    Program,
    /// The peer's receive window.
    ReceiveWindow,
    /// The congestion window, so the path.
    CongestionWindow,
    /// Neither: what there is is on its way out (pacing, Nagle, or the next turn of the station).
    Nothing,
}

impl LimitedBy {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            LimitedBy::Program => "program",
            LimitedBy::ReceiveWindow => "receive window",
            LimitedBy::CongestionWindow => "congestion window",
            LimitedBy::Nothing => "nothing",
        }
    }
}

/// A connection at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionSnapshot {
    /// State, windows, round trip, timeout.
    pub inspection: ConnectionInspection,
    /// What both ends agreed on, the scoreboard, clocks, pacing.
    pub details: Details,
    /// What happened so far.
    pub counters: Counters,
    /// What it holds.
    pub memory: ConnectionMemory,
    /// Congestion control.
    pub congestion: Congestion,
    /// Segments that are in flight, by the sender's own account.
    pub in_flight: ByteCount,
    /// Segments sent again so far.
    pub retransmitted: u64,
    /// What keeps it from sending more.
    pub limit: LimitedBy,
    /// Written by the program and not taken by the engine.
    pub waiting: ByteCount,
    /// Receive buffer of the engine.
    pub receive_buffer: ByteCount,
    /// Send buffer of the engine.
    pub send_buffer: ByteCount,
}

impl ConnectionSnapshot {
    pub(super) fn of(connection: &Connection, now: Instant, waiting: usize) -> Self {
        let (inspection, memory) = (connection.inspect(), connection.memory());
        let counters = connection.counters().clone();
        let sent = Cause::ALL.iter().zip(&counters.sent);
        let again = sent.filter(|(cause, _)| cause.is_retransmission()).map(|(_, n)| n).sum();
        let mss = u64::from(inspection.mss);
        let in_flight = ByteCount::new(u64::from(inspection.in_flight.get()).saturating_mul(mss));
        let (config, details) = (connection.config(), connection.details(now));
        ConnectionSnapshot {
            limit: limit(&inspection, &memory, in_flight),
            retransmitted: again,
            in_flight,
            congestion: config.congestion,
            waiting: ByteCount::of_len(waiting),
            receive_buffer: details.receive_buffer,
            send_buffer: details.send_buffer,
            inspection,
            details,
            counters,
            memory,
        }
    }
}

fn limit(inspection: &ConnectionInspection, memory: &ConnectionMemory, in_flight: ByteCount) -> LimitedBy {
    let full = ByteCount::new(u64::from(inspection.mss));
    if memory.send_bytes <= in_flight || inspection.state == ConnectionState::Closed {
        LimitedBy::Program
    } else if in_flight + full > inspection.rwnd {
        LimitedBy::ReceiveWindow
    } else if inspection.in_flight + Packets::new(1) > inspection.cwnd {
        LimitedBy::CongestionWindow
    } else {
        LimitedBy::Nothing
    }
}
