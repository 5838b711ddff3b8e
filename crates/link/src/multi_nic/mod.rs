//! One connection over several unequal NICs (Kato and Higaki, *Reduction of TCP Retransmission for Higher
//! Throughput with Multiple-Route Transmission in Ethernet LAN*).
//!
//! A [`MultiNic`] is between an unmodified IP stack and several NICs. To the stack it is one NIC with the
//! MAC address of the first. It announces the other NICs to neighbours by extended ARP, learns those of
//! neighbours, and pairs each NIC with one of the neighbour: this is a *path*. It spreads frames over the
//! paths in an order that lets them arrive as the stack sent them.
//!
//! | concept | file |
//! |---|---|
//! | the configuration | `config` |
//! | the flow of a frame | `flow` |
//! | NICs, paths, arrival times | `nic_paths` |
//! | extended ARP | [`arp`] |
//! | measuring paths | [`probe`] |
//! | which NIC sends to which | `pairing` |
//! | shares of NICs as a cycle of slots | `ratio` |
//! | TCP segments and their sequence numbers | `segment` |
//! | reordering between paths | `observer` |
//! | putting received frames in order | `resequencer` |
//! | retransmission of losses | [`repair`] |
//! | scheduling of frames and NICs | `order` |
//! | simulation of an order | `predict` |
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
pub use layer::{MAX_PRIORITY_FRAMES, MultiNic, MultiNicStats};
pub use nic_paths::{NeighbourId, Nic, NicId, NicPath, NicPaths, NicSpec, PathDelay, PerByte, Sends};
pub use observer::{Late, ReorderObserver};
pub use order::{
    Earliest, FlowHash, FlowId, MAX_SKIPPED, QueuedFrame, Restraint, RoundRobin, SendOrder, Skip,
    WorkConserving, make, skip_number,
};
pub use pairing::pair;
pub use predict::{PredictedDeparture, predict};
pub use ratio::{Ratio, Slots};
pub use resequencer::{RepairRequestPath, Resequencer};
pub use segment::MultiNicFlowKey;

/// Maximum number of NICs of a host: the capacity of the list in an extended ARP message.
pub const MAX_NICS: usize = 16;
