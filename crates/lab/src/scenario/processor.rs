//! `processor` of a host: the time that frames take.

use farpace_path as path;
use farpace_path::QueueLimit;
use farpace_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The processor of a host: it works on one frame at a time, sent or received, in the order of arrival.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProcessorSpec {
    /// Time for each frame that is sent.
    #[serde(default)]
    pub send: Span,
    /// Time for each frame that is received.
    #[serde(default)]
    pub receive: Span,
    /// Time for each pure ACK that is received; omitted: as for other frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_ack: Option<Span>,
    /// Time for each byte of a frame, in addition.
    #[serde(default)]
    pub per_byte: Span,
    /// Time for each entry of the retransmission queue that recovery visits for an ACK, as in the linear
    /// searches of Linux 2.6.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub per_entry: Span,
    /// The queue before it, in each direction. A frame that finds it full is dropped.
    #[serde(default)]
    pub queue: QueueLimit,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
const fn is_zero(span: &Span) -> bool {
    span.is_zero()
}

impl ProcessorSpec {
    /// As an element is made from it.
    pub fn config(&self) -> path::ProcessorConfig {
        let ProcessorSpec { send, receive, receive_ack, per_byte, per_entry, queue } = *self;
        let receive_ack = receive_ack.unwrap_or(receive);
        path::ProcessorConfig { send, receive, receive_ack, per_byte, per_entry, queue }
    }
}
