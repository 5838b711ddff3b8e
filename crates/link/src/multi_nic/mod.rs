//! One connection over several unequal network cards (Kato and Higaki, *Reduction of TCP Retransmission for Higher
//! Throughput with Multiple-Route Transmission in Ethernet LAN*).
//!
//! A [`MultiNic`] stands between one IP stack, which knows nothing of it, and several cards. To the stack it is one card
//! with one MAC address, the first one's. It tells neighbours of the other cards by an extended ARP, learns of theirs, finds a
//! *lane* from each card to a card of the neighbour, and spreads the frames over the lanes in an order that brings them to the
//! other end as the stack sent them.
//!
//! | concept | file |
//! |---|---|
//! | what people write | `config` |
//! | cards, lanes, and when a frame would arrive | `lanes` |
//! | which card sends to which | `pairing` |
//! | shares of the cards as a cycle of slots | `ratio` |
//! | what the ways between two machines are worth | `probe` and its rooms |
//! | segments of TCP and their flows | `flow` |
//! | which frames came too late, and by which lane | `observer` |
//! | received frames in order again | `resequencer` |
//! | which frame leaves next, by which card | `order` and its rooms, one an order |
//! | all of it as one element | `layer` |

mod config;
mod flow;
mod lanes;
mod layer;
mod observer;
mod order;
mod pairing;
pub mod probe;
mod ratio;
mod resequencer;

pub use config::{MultiNicConfig, OrderKind, Resequence};
pub use flow::FlowKey;
pub use lanes::{Delay, Lane, Lanes, NeighbourId, Nic, NicId, NicSpec, PerByte};
pub use layer::MultiNic;
pub use observer::{Late, Observer};
pub use order::{FlowId, Item, SendOrder};
pub use pairing::pair;
pub use ratio::{Ratio, Slots};
pub use resequencer::Resequencer;

/// Most cards of one machine: what a list of an extended ARP message may hold.
pub const MOST_NICS: usize = 16;
