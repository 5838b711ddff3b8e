//! What happens to packets in one direction of a link besides its queue, its rate and its delay.
//!
//! Each key of `forward` and `backward` that is an impairment has a file of its own, named after the key. The
//! file holds the value as it is in a scenario, what the key means ([`ImpairmentInfo`]), and what follows
//! from a value ([`Impairment`]): what is wrong with it, its words, its element. [`impairments!`] lists all
//! keys. Everything else is derived from this list: the fields of [`DirectionSpec`](super::DirectionSpec),
//! the schema, checks, explanations, and the chain of elements.
//!
//! To add a key, write its file and add it to the list (`docs/howto/element.md`).

pub(super) mod ack_thinning;
pub(super) mod bit_errors;
pub(super) mod burst_loss;
pub(super) mod clock_jumps;
pub(super) mod corrupt;
pub(super) mod duplicate;
pub(super) mod interrupts;
pub(super) mod jitter;
pub(super) mod loss;
pub(super) mod middlebox;
pub(super) mod mtu;
pub(super) mod outages;
pub(super) mod policer;
pub(super) mod reorder;

pub use ack_thinning::AckThinningSpec;
pub use bit_errors::BitErrorsSpec;
pub use burst_loss::BurstLossSpec;
pub use clock_jumps::{ClockJumpSpec, ClockJumpsSpec};
pub use corrupt::CorruptSpec;
pub use duplicate::DuplicateSpec;
pub use interrupts::InterruptsSpec;
pub use jitter::JitterSpec;
pub use loss::LossSpec;
pub use middlebox::{MiddleboxSpec, StripOnSpec, StripOptions};
pub use mtu::{MtuChangeSpec, MtuSpec};
pub use outages::OutagesSpec;
pub use policer::{PolicerCounts, PolicerSpec};
pub use reorder::ReorderSpec;

use super::check::Checker;
use super::document::DocumentStep;
use super::spec::{Direction, ResolvedDirection};
use farpace_path::{Duplex, Element, ElementDirection};
use farpace_units::{ByteCount, Span};

/// Calls the macro `$make` with all impairments, in the order in which packets meet them.
macro_rules! impairments {
    ($make:ident) => {
        $make! {
            before_queue {
                clock_jumps: ClockJumpsSpec,
                middlebox: Option<MiddleboxSpec>,
                ack_thinning: Option<AckThinningSpec>,
                policer: Option<PolicerSpec>,
                mtu: Option<MtuSpec>,
                outages: OutagesSpec,
                loss: LossSpec,
                burst_loss: Option<BurstLossSpec>,
                corrupt: CorruptSpec,
                duplicate: DuplicateSpec,
                jitter: JitterSpec,
                reorder: Option<ReorderSpec>,
            }
            after_delay {
                bit_errors: BitErrorsSpec,
                interrupts: Option<InterruptsSpec>,
            }
        }
    };
}
pub(super) use impairments;

/// What is known of a key whatever its value is.
#[derive(Clone, Copy, Debug)]
pub(super) struct ImpairmentInfo {
    /// What the key means: the schema and error messages quote it.
    pub description: &'static str,
    /// The last part of the name of its element. Reports show the name, and random numbers follow from it.
    pub element: &'static str,
}

/// Where a packet meets an impairment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImpairmentPosition {
    /// At the entrance of the direction.
    BeforeQueue,
    /// At the far end: the packet has taken its time on the link.
    AfterDelay,
}

/// The value of a key.
pub(super) trait Impairment {
    /// False for a value without effect: it needs no element and no words.
    fn is_active(&self) -> bool;
    /// Adds what is wrong with the value to `checker`. `at` is the path of the key.
    fn check(&self, at: &[DocumentStep], checker: &mut Checker<'_>);
    /// What the value does in `direction`.
    fn explain(&self, direction: &ResolvedDirection<'_>) -> ImpairmentText;
    /// The element that does it to packets that travel in `direction`.
    ///
    /// # Errors
    /// What the element refuses. The elements take every value in which [`check`](Self::check) finds nothing.
    fn element(&self, direction: Direction) -> Result<Box<dyn Element>, ElementRefusal>;
    /// Probability that an IP packet of `ip` bytes is lost or damaged at random, 0 to 1.
    fn loss_probability(&self, _ip: ByteCount) -> f64 {
        0.0
    }
    /// The delay of a packet that arrives alone, without what is random.
    fn min_delay(&self) -> Span {
        Span::ZERO
    }
}

/// Why an element refuses a value.
pub(crate) type ElementRefusal = Box<dyn std::error::Error + Send + Sync>;

/// The words of an impairment.
pub(super) enum ImpairmentText {
    /// A part of the sentence that lists them.
    Clause(String),
    /// A sentence of its own.
    Sentence(String),
}

/// A key without a value does nothing.
impl<I: Impairment> Impairment for Option<I> {
    fn is_active(&self) -> bool {
        self.as_ref().is_some_and(I::is_active)
    }
    fn check(&self, at: &[DocumentStep], checker: &mut Checker<'_>) {
        if let Some(value) = self {
            value.check(at, checker);
        }
    }
    fn explain(&self, direction: &ResolvedDirection<'_>) -> ImpairmentText {
        self.as_ref().map_or(ImpairmentText::Clause(String::new()), |value| value.explain(direction))
    }
    fn element(&self, direction: Direction) -> Result<Box<dyn Element>, ElementRefusal> {
        match self {
            Some(value) => value.element(direction),
            None => Err("it is not given".into()),
        }
    }
    fn loss_probability(&self, ip: ByteCount) -> f64 {
        self.as_ref().map_or(0.0, |value| value.loss_probability(ip))
    }
    fn min_delay(&self) -> Span {
        self.as_ref().map_or(Span::ZERO, I::min_delay)
    }
}

/// A key of a direction with its value.
#[derive(Clone, Copy)]
pub(crate) struct ImpairmentEntry<'a> {
    /// The key.
    pub(super) key: &'static str,
    pub(super) info: ImpairmentInfo,
    /// Where packets meet it.
    pub(crate) position: ImpairmentPosition,
    pub(super) value: &'a dyn Impairment,
}

impl ImpairmentEntry<'_> {
    /// The last part of the element's name.
    pub(crate) const fn element_name(&self) -> &'static str {
        self.info.element
    }
    /// The element, for packets that travel in `direction`.
    ///
    /// # Errors
    /// What a checked scenario does not have: values that the element refuses.
    pub(crate) fn element(&self, direction: Direction) -> Result<Box<dyn Element>, ElementRefusal> {
        self.value.element(direction)
    }
}

/// The keys, with what is known of each.
macro_rules! infos {
    ($($position:ident { $($key:ident: $value:ty,)* })*) => {
        /// All keys of impairments, in the order in which packets meet them.
        pub(super) const INFOS: &[(&str, ImpairmentInfo)] = &[$($((stringify!($key), $key::INFO),)*)*];
    };
}
impairments!(infos);

/// Writes the descriptions of all keys into the schema of a direction.
pub(super) fn describe(schema: &mut schemars::Schema) {
    let properties = schema.get_mut("properties").and_then(serde_json::Value::as_object_mut);
    let Some(properties) = properties else { return };
    for (key, info) in INFOS {
        if let Some(property) = properties.get_mut(*key).and_then(serde_json::Value::as_object_mut) {
            property.insert("description".to_owned(), info.description.into());
        }
    }
}

/// An element that works on packets that travel in `direction` and lets the others pass.
fn in_direction<D: ElementDirection>(what: D, direction: Direction) -> Box<dyn Element> {
    Box::new(match direction {
        Direction::Forward => Duplex::new(Some(what), None),
        Direction::Backward => Duplex::new(None, Some(what)),
    })
}
