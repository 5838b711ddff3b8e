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
//! | which flow a frame belongs to | `flow` |
//! | cards, lanes, and when a frame would arrive | `lanes` |
//! | what neighbours tell each other | [`arp`] |
//! | what the ways are worth | [`probe`] |
//! | which card sends to which | `pairing` |
//! | shares of the cards as a cycle of slots | `ratio` |
//! | segments of TCP and their places | `segment` |
//! | which frames came too late, and by which lane | `observer` |
//! | received frames in order again | `resequencer` |
//! | what was lost on one way sent again | [`repair`] |
//! | which frame leaves next, by which card | `order` and its rooms, one an order |
//! | what an order would do | `predict` |
//! | all of it as one element | `layer` |

pub mod arp;
mod config;
mod flow;
mod layer;
mod nic_paths;
mod observer;
mod order;
mod pairing;
mod predict;
pub mod probe;
mod ratio;
pub mod repair;
mod resequencer;
mod segment;

pub use config::{MultiNicConfig, OrderKind, Resequence};
use flow::flow_of;
pub use layer::{MultiNic, MultiNicStats};
pub use nic_paths::{NeighbourId, Nic, NicId, NicPath, NicPaths, NicSpec, PathDelay, PerByte};
pub use observer::{Late, ReorderObserver};
pub use order::{
    Earliest, FlowHash, FlowId, MAX_SKIPPED, QueuedFrame, Restraint, RoundRobin, SendOrder, Skip,
    WorkConserving, make, skip_number,
};
pub use pairing::pair;
pub use predict::{PredictedDeparture, predict};
pub use ratio::{Ratio, Slots};
pub use resequencer::{RepairRequestTime, Resequencer};
pub use segment::MultiNicFlowKey;

/// Most cards of one machine: what a list of an extended ARP message may hold.
pub const MAX_NICS: usize = 16;
