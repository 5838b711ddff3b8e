//! `policer`: a token bucket that drops.

use super::super::check::Checker;
use super::super::document::{DocumentStep, below};
use super::super::figures::ETHERNET_HEADER;
use super::super::number::size;
use super::super::spec::{Direction, ResolvedDirection};
use super::{ElementRefusal, Impairment, ImpairmentInfo, ImpairmentText, in_direction};
use farpace_path::{Element, PolicedBytes, PolicerConfig, PolicerDirection};
use farpace_units::{ByteCount, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(in super::super) const INFO: ImpairmentInfo = ImpairmentInfo {
    description: "A token bucket at the entrance. It drops what exceeds its rate and never queues.",
    element: "policer",
};

/// A token bucket that drops. A packet passes if the bucket holds its length; the bucket begins full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicerSpec {
    /// Rate at which tokens come in.
    pub rate: Rate,
    /// Depth of the bucket: what passes at once after a pause.
    pub burst: ByteCount,
    /// Tokens come once per this time (hardware does it so); 0 s: continuously.
    #[serde(default)]
    pub refill: Span,
    /// Time of the first refill, less than `refill`.
    #[serde(default)]
    pub phase: Span,
    /// Which bytes of a packet cost tokens.
    #[serde(default)]
    pub counts: PolicerCounts,
}

/// Which bytes of a packet cost tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PolicerCounts {
    /// The IP packet.
    #[default]
    Ip,
    /// The Ethernet frame: the IP packet and 14 bytes of header.
    Frame,
}

impl PolicerSpec {
    /// As an element is made from it.
    pub fn config(&self) -> PolicerConfig {
        let PolicerSpec { rate, burst, refill, phase, counts } = *self;
        PolicerConfig {
            rate,
            burst,
            refill: (!refill.is_zero()).then_some(refill),
            phase,
            counted: match counts {
                PolicerCounts::Ip => PolicedBytes::Ip,
                PolicerCounts::Frame => PolicedBytes::Ethernet,
            },
        }
    }
}

impl Impairment for PolicerSpec {
    fn is_active(&self) -> bool {
        true
    }
    fn check(&self, at: &[DocumentStep], checker: &mut Checker<'_>) {
        let PolicerSpec { rate, burst, refill, phase, counts } = *self;
        if rate.bits_per_sec() == 0 {
            checker
                .value(below(at, &["rate"]), "a rate of 0 lets nothing pass")
                .hint("leave `policer` out for none");
        }
        let frame = checker.largest_frame();
        let packet = match counts {
            PolicerCounts::Ip => frame - ETHERNET_HEADER,
            PolicerCounts::Frame => frame,
        };
        let quantum = rate.bytes_in(refill);
        if burst < packet {
            checker.value(
                below(at, &["burst"]),
                format!("a bucket of {burst} never lets a full-size packet of {packet} pass"),
            );
        } else if !quantum.is_zero() && quantum > burst {
            checker
                .value(
                    below(at, &["refill"]),
                    format!("each refill brings {quantum}, more than the bucket of {burst} holds"),
                )
                .hint(format!("at {rate}, refill more often than every {}", rate.time_for(burst)));
        }
        if phase >= refill && !phase.is_zero() {
            checker
                .value(
                    below(at, &["phase"]),
                    format!("a phase of {phase} is not less than the refill time of {refill}"),
                )
                .hint("the phase is the time of the first refill: less than `refill`");
        }
    }
    fn explain(&self, _: &ResolvedDirection<'_>) -> ImpairmentText {
        let PolicerSpec { rate, burst, refill, .. } = self;
        let refill = match refill.is_zero() {
            true => "continuously".to_owned(),
            false => format!("with {} every {refill}", size(rate.bytes_in(*refill))),
        };
        ImpairmentText::Sentence(format!(
            "A policer at the entrance: {rate} after a burst of {burst}, refilled {refill}. It drops what \
             exceeds this and never queues."
        ))
    }
    fn element(&self, direction: Direction) -> Result<Box<dyn Element>, ElementRefusal> {
        Ok(in_direction(PolicerDirection::new(self.config())?, direction))
    }
}
