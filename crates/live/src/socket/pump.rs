//! Moves data between a connection and the state that it shares with its program.

use super::duplex::{CloseMode, StreamDuplex};
use farpace_tcp::{Connection, ConnectionState};
use farpace_units::{ByteCount, Instant};

/// Minimum buffer between connection and program, even if the host is short of memory, so that a reading
/// program makes progress.
const MIN_BETWEEN: usize = 16 << 10;

/// Moves what can be moved, both ways.
pub(super) fn pump(duplex: &mut StreamDuplex, connection: &mut Connection, now: Instant) {
    duplex.kicked = false;
    duplex.wants_reads = connection.told_of_reads(now, duplex.read());
    if duplex.close_mode == Some(CloseMode::Abort) {
        return connection.abort();
    }
    if duplex.fin && !duplex.fin_sent {
        duplex.fin_sent = true;
        // All data: a program that has closed the stream cannot wait for space, and no limit of the host
        // covers data that waits here.
        connection.close_after(duplex.take_outgoing());
    }
    if let Some(more) = duplex.more_coming.take() {
        connection.set_more(more);
    }
    let empty = duplex.drain(|piece| {
        connection.write(piece);
    });
    duplex.stuck = !empty;
    if let Some(behind) = duplex.take_urgent() {
        connection.mark_urgent(ByteCount::new(behind));
    }
    duplex.flushed = empty && connection.unacknowledged().is_zero() && fin_is_known(connection.state());
    if duplex.read_shutdown {
        connection.shut_reading();
    }
    match duplex.close_mode {
        Some(_) => connection.stop_reading(),
        None => {
            let share = connection.share().as_len().max(MIN_BETWEEN).saturating_sub(duplex.incoming_bytes);
            take_in(duplex, connection, duplex.incoming_room().min(share));
        }
    }
}

/// The peer has acknowledged the FIN.
fn fin_is_known(state: ConnectionState) -> bool {
    matches!(state, ConnectionState::FinWait2 | ConnectionState::TimeWait | ConnectionState::Closed)
}

/// Moves received data to the program's side, at most `limit` bytes.
pub(super) fn take_in(duplex: &mut StreamDuplex, connection: &mut Connection, limit: usize) {
    if let Some(ahead) = connection.urgent_ahead() {
        let mark = (duplex.came + ahead.get()).saturating_sub(1);
        if duplex.urgent_mark != Some(mark) {
            (duplex.urgent_mark, duplex.urgent_byte, duplex.urgent_read) = (Some(mark), None, false);
        }
    }
    let incoming = &mut duplex.incoming;
    let read = connection.read_up_to(ByteCount::of_len(limit), |piece| incoming.push_back(piece));
    duplex.incoming_bytes += read.as_len();
    duplex.note_arrival(read.as_len());
    duplex.more = !connection.readable().is_zero();
}
