//! A split-TCP gateway: hosts on its LAN side speak with it, and it speaks with the hosts beyond a far
//! link, under their own addresses and numbers.
//!
//! Sans-IO: a [`Gateway`] is an element of a world. The lab can run it in virtual time, a driver of
//! `farpace-live` on two devices.
//!
//! It never reads a clock, and never holds a packet back that it does not split.
//!
//! Two gateways are a pair if a [`PeerLink`] is between the WAN side of each and the paths to the other. Both
//! split: the leg between them is farpace's at both ends.
//!
//! Several gateways, each in a thread, share the connections of a router by [`SharedFlows`].
//!
//! Start reading at [`Gateway`]; then `flow.rs` (two legs and what goes between them), `offer.rs` (what
//! each leg offers) and [`limits`].

#![forbid(unsafe_code)]

mod budget;
mod comparison;
mod drain;
mod far_probes;
mod flow;
mod gateway;
mod ledger;
mod leg;
pub mod limits;
mod offer;
mod peer_end;
mod peer_link;
mod pipe;
mod policy;
mod record;
mod route_mtus;
mod shared_flows;
mod view;

pub use comparison::{ComparisonGroup, ComparisonResult, MAX_CONTROL_GROUP, MAX_RESULTS, MAX_WATCHED};
pub use drain::Drain;
pub use far_probes::MAX_FAR_PROBES;
pub use gateway::{Gateway, GatewayConfig};
pub use ledger::{FlowLedger, LedgerEntry, LegNumbers};
pub use peer_link::{LinkEnd, PeerLink, PeerLinkStats};
pub use policy::{Action, Policy, PolicyTable};
pub use record::{EndedFlow, FlowEnd, MAX_ENDED};
pub use route_mtus::RouteMtus;
pub use shared_flows::{MAX_HANDED_OVER, SharedFlows};
pub use view::{FlowView, GatewaySide, GatewayTotals, LegLimit, LegView};
