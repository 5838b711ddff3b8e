//! One direction of a link: as it is in a scenario, and with all defaults filled in.

use super::super::aqm::Aqm;
use super::super::impairment::{self, *};
use super::super::schedule::ScheduleSpec;
use super::LinkSpec;
use farpace_link::pacing::PacingConfig;
use farpace_path::{Framing, LinkConfig, QueueLimit};
use farpace_units::{ByteCount, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From the first end to the second.
    Forward,
    /// From the second end to the first.
    Backward,
}

impl Direction {
    /// Both, forward first.
    pub const BOTH: [Direction; 2] = [Direction::Forward, Direction::Backward];

    /// The key of this direction in a link: `forward` or `backward`.
    pub const fn key(self) -> &'static str {
        match self {
            Direction::Forward => "forward",
            Direction::Backward => "backward",
        }
    }
    /// The other one.
    #[must_use]
    pub const fn reverse(self) -> Direction {
        match self {
            Direction::Forward => Direction::Backward,
            Direction::Backward => Direction::Forward,
        }
    }
    /// The end of a link at which packets of this direction enter: 0 for the first of `between`, 1 for the
    /// second.
    pub const fn entrance(self) -> usize {
        match self {
            Direction::Forward => 0,
            Direction::Backward => 1,
        }
    }
}

/// The fields of all impairments come from their list.
macro_rules! direction_spec {
    (
        before_queue { $($before:ident: $before_value:ty,)* }
        after_delay { $($after:ident: $after_value:ty,)* }
    ) => {
        /// One direction of a link: values that replace the link's, and impairments.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        #[schemars(transform = describe)]
        pub struct DirectionSpec {
            /// Rate in this direction, in place of the link's.
            pub rate: Option<Rate>,
            /// Delay in this direction, in place of the link's.
            pub delay: Option<Span>,
            /// Queue in this direction, in place of the link's.
            pub queue: Option<QueueLimit>,
            /// Active queue management in this direction, in place of the link's.
            pub aqm: Option<Aqm>,
            /// Rate and delay over time in this direction, in place of the link's.
            pub schedule: Option<ScheduleSpec>,
            /// How the NIC that sends in this direction paces packets: evenly, each class at its rate. It
            /// needs a `rate`. `queue` does not apply, as each class has a limit.
            pub pacing: Option<PacingConfig>,
            $(
                /// An impairment before the queue.
                #[serde(skip_serializing_if = "is_default")]
                pub $before: $before_value,
            )*
            $(
                /// An impairment after the delay.
                #[serde(skip_serializing_if = "is_default")]
                pub $after: $after_value,
            )*
        }

        impl DirectionSpec {
            /// All impairments with their values, in the order in which packets meet them.
            pub(in super::super) fn all_impairments(&self) -> impl Iterator<Item = ImpairmentEntry<'_>> {
                let before: Vec<ImpairmentEntry<'_>> = vec![$(ImpairmentEntry {
                    key: stringify!($before),
                    info: impairment::$before::INFO,
                    position: ImpairmentPosition::BeforeQueue,
                    value: &self.$before,
                },)*];
                let after: Vec<ImpairmentEntry<'_>> = vec![$(ImpairmentEntry {
                    key: stringify!($after),
                    info: impairment::$after::INFO,
                    position: ImpairmentPosition::AfterDelay,
                    value: &self.$after,
                },)*];
                before.into_iter().chain(after)
            }
        }
    };
}
impairments!(direction_spec);

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl DirectionSpec {
    pub(super) fn is_default(&self) -> bool {
        *self == DirectionSpec::default()
    }
}

/// Everything that happens to a packet in one direction of a link, with all defaults filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedDirection<'a> {
    /// Which direction.
    pub direction: Direction,
    /// The node that sends in this direction.
    pub from: &'a str,
    /// The node that receives in this direction.
    pub to: &'a str,
    /// The table of this direction, with its impairments.
    pub spec: &'a DirectionSpec,
    /// The queue before the link.
    pub queue: QueueLimit,
    /// What manages the queue.
    pub aqm: Option<&'a Aqm>,
    /// Steps of rate and delay. Before the first step `rate` and `delay` hold.
    pub schedule: Option<&'a ScheduleSpec>,
    /// How the NIC of `from` paces packets. Then `queue` does not hold.
    pub pacing: Option<&'a PacingConfig>,
    /// Rate; none: infinitely fast.
    pub rate: Option<Rate>,
    /// Bytes of each frame on the link beyond its own.
    pub overhead: ByteCount,
    /// Propagation time.
    pub delay: Span,
}

impl LinkSpec {
    /// What holds in one direction: the link's values, and that direction's own in their place.
    pub fn direction(&self, direction: Direction) -> ResolvedDirection<'_> {
        let [first, second] = &self.between;
        let (from, to, spec) = match direction {
            Direction::Forward => (first, second, &self.forward),
            Direction::Backward => (second, first, &self.backward),
        };
        ResolvedDirection {
            direction,
            from,
            to,
            spec,
            queue: spec.queue.unwrap_or(self.queue),
            aqm: spec.aqm.as_ref().or(self.aqm.as_ref()),
            schedule: spec.schedule.as_ref().or(self.schedule.as_ref()),
            pacing: spec.pacing.as_ref(),
            rate: spec.rate.or(self.rate),
            overhead: self.overhead,
            delay: spec.delay.unwrap_or(self.delay),
        }
    }
}

impl<'a> ResolvedDirection<'a> {
    /// The impairments that do something here, in the order in which packets meet them.
    pub(crate) fn impairments(&self) -> impl Iterator<Item = ImpairmentEntry<'a>> + use<'a> {
        self.spec.all_impairments().filter(|impairment| impairment.value.is_active())
    }
    /// True if any impairment does something here.
    pub fn is_impaired(&self) -> bool {
        self.impairments().next().is_some()
    }
    /// True if `other` does the same between other nodes.
    pub(in super::super) fn is_like(&self, other: &ResolvedDirection<'_>) -> bool {
        let other =
            ResolvedDirection { direction: self.direction, from: self.from, to: self.to, ..other.clone() };
        *self == other
    }

    /// Queue, rate and delay, as an element is made from them. A NIC that paces has the queue and the rate
    /// itself: then the link has only the delay.
    pub fn link(&self) -> LinkConfig {
        let (rate, queue) = match self.pacing {
            None => (self.rate, self.queue),
            Some(_) => (None, QueueLimit::Unlimited),
        };
        LinkConfig { rate, delay: self.delay, queue, framing: self.framing() }
    }
    /// What a frame takes on the link: padded as on Ethernet, unless the overhead is 0.
    pub fn framing(&self) -> Framing {
        if self.overhead == ByteCount::ZERO {
            return Framing::NONE;
        }
        Framing { overhead: self.overhead, ..Framing::ETHERNET }
    }
}
