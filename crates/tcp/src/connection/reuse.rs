//! TIME-WAIT: when a new connection may take the place of an old one (RFC 9293 §3.6.1, RFC 6191).

use super::{Connection, State};
use crate::segment::Segment;
use farpace_units::Seq;
use farpace_wire::tcp::TcpFlags;

/// Distance that a new connection keeps from the numbers of the old one: the largest window without scaling.
const ISS_DISTANCE: u32 = 1 << 16;

impl Connection {
    /// True if `syn` may begin a new connection between the same ports although this one is in TIME-WAIT: none of what
    /// it sends can be mistaken for something old. The numbers are those of RFC 6191 §2: a newer timestamp, or, where
    /// timestamps cannot tell, a sequence number beyond RCV.NXT. In other states it is always false.
    pub fn may_be_reused_by(&self, syn: &Segment) -> bool {
        let h = &syn.header;
        let opens = h.flags.contains(TcpFlags::SYN)
            && !h.flags.intersects(TcpFlags::ACK.with(TcpFlags::RST).with(TcpFlags::FIN));
        if self.state != State::TimeWait || !opens {
            return false;
        }
        let beyond = h.seq.after(self.rcv_nxt);
        match (self.timestamps, h.options.timestamps) {
            (true, Some(t)) => match t.value.wrapping_sub(self.ts_recent) as i32 {
                0 => beyond,
                newer => newer > 0,
            },
            // Timestamps are new: whatever is still under way from the old connection has none.
            (false, Some(_)) => true,
            (_, None) => beyond,
        }
    }

    /// The least initial sequence number that a connection in the place of this one should take, so that the peer
    /// cannot mistake its segments for old ones.
    pub fn next_iss_floor(&self) -> Seq {
        self.snd_nxt + ISS_DISTANCE
    }
}
