//! What a machine itself costs: its processor, and the interrupts of its network cards.

use farpace_path as path;
use farpace_path::QueueLimit;
use farpace_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The processor of a host: it works on one frame at a time, sent or received, in the order in which they come.
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
    /// Time for each byte of a frame, on top of these.
    #[serde(default)]
    pub per_byte: Span,
    /// What waits for it at most, in each direction; the rest is dropped.
    #[serde(default)]
    pub queue: QueueLimit,
}

impl ProcessorSpec {
    /// As an element is made from it.
    pub fn config(&self) -> path::ProcessorConfig {
        // Every field is named, so that a new one cannot be forgotten.
        let ProcessorSpec { send, receive, receive_ack, per_byte, queue } = *self;
        let receive_ack = receive_ack.unwrap_or(receive);
        path::ProcessorConfig { send, receive, receive_ack, per_byte, queue }
    }
}

/// Receive interrupts at the far end of a direction: frames wait until the machine there is told of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InterruptsSpec {
    /// From the first frame that waits to the interrupt.
    #[serde(default)]
    pub delay: Span,
    /// An interrupt comes earlier if so many frames wait; omitted: it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub frames: Option<u32>,
    /// From an interrupt until the machine takes the frames: random, up to this.
    #[serde(default)]
    pub jitter: Span,
}

impl InterruptsSpec {
    /// As an element is made from it.
    pub fn config(&self) -> path::InterruptsConfig {
        let InterruptsSpec { delay, frames, jitter } = *self;
        path::InterruptsConfig { delay, frames: frames.unwrap_or(0), jitter }
    }
    /// How long a frame waits that comes alone, without the jitter.
    pub fn alone(&self) -> Span {
        if self.frames == Some(1) { Span::ZERO } else { self.delay }
    }
}
