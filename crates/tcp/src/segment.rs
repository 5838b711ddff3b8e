//! A segment as the engine sees it: a header in host form and a payload by reference.

use bytes::Bytes;
use farpace_events::Cause;
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
    /// Payload bytes of each segment, where this is a super-segment: several in a row under one header, to be
    /// cut by a device or put together by one. The last may be shorter. Zero: it is one segment.
    pub segment_size: u16,
}

impl Segment {
    /// SEG.LEN: payload, and one each for SYN and FIN (RFC 9293 §3.4).
    pub fn sequence_length(&self) -> u32 {
        let control = u32::from(self.header.flags.contains(TcpFlags::SYN))
            + u32::from(self.header.flags.contains(TcpFlags::FIN));
        (self.payload.len() as u32).saturating_add(control)
    }

    /// Segments it counts for: one, but for a super-segment.
    pub fn segments(&self) -> u32 {
        match self.segment_size {
            0 => 1,
            size => (self.payload.len() as u32).div_ceil(u32::from(size)).max(1),
        }
    }
}

/// A segment on its way out, with the reason why it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingSegment {
    /// The segment.
    pub segment: Segment,
    /// Why.
    pub cause: Cause,
    /// Its number among those that are sent again until they are acknowledged, for
    /// [`Connection::set_departed`](crate::Connection::set_departed); none for others. It has 31 bits.
    pub number: Option<u32>,
}
