//! The gateway on a host: what brings the traffic of a router to [`farpace_gateway`], whose core never reads
//! a clock, and what it tells.
//!
//! Start reading at [`GatewayService`]: devices, rules, the loop, and its end. This crate never prints: lines
//! about what happens go to a [`Note`].
//!
//! | concept | file |
//! |---|---|
//! | configuration | `config`, and `install` for systemd |
//! | what leads traffic to the gateway | `interception` |
//! | changes of interfaces and routes | `link_watch` |
//! | the MTU of routes, and ICMP errors of the router itself | `route_cache`, `router_errors` |
//! | a pair: keys, files, tunnels over several links | `keys`, `peer_file`, `pair`, `endpoint_name` |
//! | when a peer is down | `peer_watch` |
//! | the threads, and what they share | `shards` |
//! | captures of both sides | `capture`, `capture_files`, `capture_order` |
//! | what it tells: snapshot, control socket, metrics, dashboard | `snapshot`, `control`, `status`, `web` |
//! | what is told of a connection | `connection_view` |
//! | connections that have ended: records, log | `records`, `log` |
//! | what splitting gains | `gain` |
//! | what keeps traffic from it | `check`; of routing rules `check_policy` |
//! | what a packet filter does with it | `check_firewall`, `filter_rules`; `check_legacy` |
//! | a process that ends it when it hangs | `watchdog` |
//! | resets for hosts of connections that a dead gateway has left | `shared_ledger`, `host_resets` |

#![forbid(unsafe_code)]

mod capture;
mod capture_files;
mod capture_order;
pub mod check;
mod check_firewall;
mod check_legacy;
mod check_policy;
mod config;
mod connection_view;
mod control;
mod endpoint_name;
mod filter_rules;
mod gain;
mod host_resets;
pub mod install;
mod interception;
pub mod keys;
mod link_watch;
mod log;
mod pair;
mod peer_file;
mod peer_watch;
mod records;
mod route_cache;
mod router_errors;
mod service;
mod shards;
mod shared_ledger;
mod snapshot;
pub mod status;
pub mod watchdog;
mod web;

pub use capture::{CaptureConfig, DEFAULT_PCAP_LIMIT, MIN_PCAP_LIMIT, SNAPLENS};
pub use config::{ActionWord, GatewayFile, PeerDown, PolicyEntry, example, schema};
pub use control::{switch_capture, write_records};
pub use peer_file::schema as peer_schema;
pub use service::{GatewayEnd, GatewayService};
pub use web::address as web_address;

/// Takes a line for people.
pub type Note = fn(&str);
