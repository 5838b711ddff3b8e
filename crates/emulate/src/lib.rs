//! The network of a scenario in real time: between devices, between network namespaces, and held against the
//! lab.
//!
//! Start reading at [`RealtimeNetwork`]: the elements of the lab between devices. [`Site`] has a network
//! namespace for each host, [`labs`] knows those that are up, [`compare`] runs a transfer in virtual and in
//! real time, [`grid`] does so over many paths. [`words`] reads quantities of command lines. [`below`] is a
//! layer below the kernel's own stack. This crate never prints: what changes on a terminal goes to
//! [`LiveFigures`].

#![forbid(unsafe_code)]

pub mod below;
pub mod compare;
mod drive;
pub mod grid;
pub mod labs;
mod network;
mod returning_nic;
mod site;
mod state;
mod summary;
mod watch;
pub mod words;

pub use drive::{DriveObserver, LiveFigures, NoFigures, drive, lateness_line};
pub use network::{Attachment, RealtimeNetwork, RealtimeOptions};
pub use returning_nic::ReturningNic;
pub use site::{INTERFACE, Residents, Site};
pub use summary::{Accuracy, DirectionSummary, Drops, RealtimeSummary};
pub use watch::{Captures, RealtimeWatch};
