//! Connections of a host that are in TIME-WAIT.

use super::Host;
use crate::secret::Tuple;
use crate::time_wait::TimeWaitArrival;
use farpace_tcp::{Segment, TimeWait};
use farpace_units::Instant;

impl Host {
    /// Connections in TIME-WAIT that are rows of the table. Those that something is to be read from, or that
    /// make records, are not.
    pub fn time_waits(&self) -> usize {
        self.time_waits.len()
    }

    /// Connections that ended without TIME-WAIT because there were [`MAX_TIME_WAIT`](crate::MAX_TIME_WAIT)
    /// already.
    pub const fn time_waits_ended_early(&self) -> u64 {
        self.time_waits.ended_early()
    }

    /// A connection has nothing left but its wait. True: it is in the table.
    pub(crate) fn keep_time_wait(&mut self, tuple: &Tuple, wait: TimeWait, reuse_address: bool) -> bool {
        self.time_waits.keep(&self.secret, tuple, wait, reuse_address)
    }

    /// Rows whose time has come end.
    pub(crate) fn end_time_waits(&mut self, now: Instant) {
        let binds = &mut self.binds;
        self.time_waits.expire(now, |tuple, reuse_address| {
            binds.leave(tuple.local_port, tuple.local, reuse_address);
        });
    }

    /// When the next rows end.
    pub(crate) fn time_wait_deadline(&self) -> Option<Instant> {
        self.time_waits.next()
    }

    /// A segment whose ends may be those of a row.
    pub(crate) fn on_time_wait(&mut self, now: Instant, tuple: &Tuple, segment: &Segment) -> TimeWaitArrival {
        let (listeners, binds) = (&self.listeners, &mut self.binds);
        let listens = || listeners.has(tuple);
        self.time_waits.on_segment(&self.secret, now, tuple, segment, listens, |tuple, reuse_address| {
            binds.leave(tuple.local_port, tuple.local, reuse_address);
        })
    }
}
