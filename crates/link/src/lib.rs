//! The data-link layer of a host: when frames leave, and through which NIC.
//!
//! All code is sans-IO. Packets and the time are inputs; packets, gaps and deadlines are outputs. The lab
//! runs the code as a path element, and a live event loop runs it on a device.
//!
//! Start reading at [`pacing`]. [`nic`] is a NIC that paces. [`multi_nic`] combines several NICs into one.
//! [`proof`] measures from a capture how evenly flows are paced.
//!
//! The crate never sees a connection: it reads packet headers and the rate that a packet requests. It never
//! opens a file.

#![deny(unsafe_code)]

pub mod multi_nic;
pub mod nic;
pub mod pacing;
pub mod proof;
