//! Snapshots of a connection.

use farpace_events::Cause;
use farpace_tcp::config::Congestion;
use farpace_tcp::{Connection, ConnectionInspection, ConnectionMemory, ConnectionState, Counters, Details};
use farpace_units::{ByteCount, Instant, Packets};

/// What limits a sender at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitedBy {
    /// The program has written nothing more.
    Program,
    /// The peer's receive window.
    ReceiveWindow,
    /// The congestion window, that is, the path.
    CongestionWindow,
    /// None of these: the data is about to be sent (pacing, Nagle, or the next round of the driver).
    Nothing,
}

impl LimitedBy {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            LimitedBy::Program => "program",
            LimitedBy::ReceiveWindow => "receive window",
            LimitedBy::CongestionWindow => "congestion window",
            LimitedBy::Nothing => "nothing",
        }
    }
}

/// The state of a connection at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionSnapshot {
    /// State, windows, round trip time, timeout.
    pub inspection: ConnectionInspection,
    /// Negotiated features, scoreboard, clocks, pacing.
    pub details: Details,
    /// Counters of events.
    pub counters: Counters,
    /// Its memory.
    pub memory: ConnectionMemory,
    /// Congestion control.
    pub congestion: Congestion,
    /// Bytes in flight, by the sender's estimate.
    pub in_flight: ByteCount,
    /// Retransmitted segments.
    pub retransmitted: u64,
    /// What limits the sender.
    pub limit: LimitedBy,
    /// Bytes written by the program and not taken by the engine.
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
