//! The errors of a world.

use super::Ledger;
use farpace_units::Instant;
use thiserror::Error;

/// Why a world cannot be built, or had to stop. Elements are named; ports are numbers.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WorldError {
    /// Names determine the random streams, so they must differ.
    #[error("there are two elements named `{0}`")]
    DuplicateName(String),
    /// More than [`World::MAX_ELEMENTS`](super::World::MAX_ELEMENTS).
    #[error("a world holds at most {max} elements", max = super::World::MAX_ELEMENTS)]
    TooManyElements,
    /// The number belongs to another world, or to no element.
    #[error("there is no element number {0}")]
    NoSuchElement(u32),
    /// A port that the element does not have.
    #[error("`{element}` has no port {port}: it has {ports}")]
    NoSuchPort {
        /// The element.
        element: String,
        /// The port in question.
        port: u16,
        /// The number of its ports.
        ports: u16,
    },
    /// A second wire at a port.
    #[error("port {port} of `{element}` is already connected to port {peer_port} of `{peer}`")]
    PortTaken {
        /// The element.
        element: String,
        /// Its port.
        port: u16,
        /// What is at the other end.
        peer: String,
        /// Its port.
        peer_port: u16,
    },
    /// A wire from a port to itself.
    #[error("port {port} of `{element}` cannot be connected to itself")]
    SelfConnected {
        /// The element.
        element: String,
        /// Its port.
        port: u16,
    },
    /// A port without a wire.
    #[error("port {port} of `{element}` is not connected")]
    Dangling {
        /// The element.
        element: String,
        /// Its port.
        port: u16,
    },
    /// Not the type that was asked for.
    #[error("`{element}` is not a {expected}")]
    NotA {
        /// The element.
        element: String,
        /// The type's name.
        expected: &'static str,
    },
    /// Packets were lost or created without a count.
    #[error("packets are not conserved in `{element}` at {at}: {ledger} + held {held}")]
    NotConserved {
        /// The element.
        element: String,
        /// The time of the check.
        at: Instant,
        /// Its account.
        ledger: Box<Ledger>,
        /// The packets that it says are inside.
        held: u64,
    },
    /// The same of the wires between the elements.
    #[error(
        "packets are not conserved on the wires: {emitted} emitted, {received} received, {waiting} between"
    )]
    WiresNotConserved {
        /// All that left elements.
        emitted: u64,
        /// All that arrived at elements.
        received: u64,
        /// Packets on the wires.
        waiting: u64,
    },
    /// An element would be woken again and again without time passing.
    #[error("`{element}` was woken at {at} and wants to be woken at {deadline}, which is not later")]
    DeadlineLaw {
        /// The element.
        element: String,
        /// The present.
        at: Instant,
        /// Its next deadline.
        deadline: Instant,
    },
    /// A loop in which no time passes.
    #[error(
        "more than {max} events at the one instant {at}: packets circle without time passing, through \
         {through}",
        max = super::World::MAX_EVENTS_AT_ONCE
    )]
    Loop {
        /// The instant.
        at: Instant,
        /// The elements of the loop.
        through: String,
    },
}
