//! What a transparent proxy needs: a connection whose segments continue those of another host.

use super::Connection;
use farpace_units::Instant;

impl Connection {
    /// The clock of our timestamps (RFC 7323 §5.4) shows `value` at `now`, and runs on at its own tick. To
    /// be called before anything is sent.
    ///
    /// A proxy that stands in for a host calls this with the value of the host's SYN. Its segments are then
    /// never newer than those of the host, so that the peer accepts the host's own segments afterwards (RFC
    /// 7323 §5.3, PAWS).
    pub fn mirror_timestamps(&mut self, now: Instant, value: u32) {
        self.ts.offset = value.wrapping_sub(self.timestamp_clock(now).wrapping_sub(self.ts.offset));
    }
}
