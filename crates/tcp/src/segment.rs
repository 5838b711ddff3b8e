//! A segment as the engine sees it: a header in host form and a payload by reference.

use bytes::Bytes;
use farpace_trace::Cause;
use farpace_wire::Ecn;
use farpace_wire::tcp::{TcpFlags, TcpHeader};

/// One TCP segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// The header.
    pub header: TcpHeader,
    /// The payload.
    pub payload: Bytes,
    /// The ECN field of the IP packet that carries it: the host writes and reads it (RFC 3168 §5).
    pub ecn: Ecn,
}

impl Segment {
    /// SEG.LEN: payload, and one each for SYN and FIN (RFC 9293 §3.4).
    pub fn sequence_length(&self) -> u32 {
        let control = u32::from(self.header.flags.contains(TcpFlags::SYN))
            + u32::from(self.header.flags.contains(TcpFlags::FIN));
        (self.payload.len() as u32).saturating_add(control)
    }
}

/// A segment on its way out, with the reason why it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The segment.
    pub segment: Segment,
    /// Why.
    pub cause: Cause,
}
