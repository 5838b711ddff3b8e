//! The data-link layer of a machine: when frames leave, and by which card.
//!
//! Everything is sans-IO: packets and time come in, packets, gaps and deadlines come out. The lab drives it through an
//! element, a live event loop through a device.
//!
//! Start reading at [`pacing`]; [`nic`] is a network card that paces; [`multi_nic`] makes one of several cards; [`proof`] tells from a
//! capture how evenly its flows are paced.
//!
//! It never has a connection: it reads headers, and the rate that a packet asks for. And it never opens a file.

#![deny(unsafe_code)]

pub mod multi_nic;
pub mod nic;
pub mod pacing;
pub mod proof;
