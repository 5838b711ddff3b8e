//! Ethernet, IP and TCP as bytes: packets that carry real headers, and lossless views over them.
//!
//! This crate parses and writes; it never decides anything. Bytes that are not a well-formed header give a
//! [`WireError`], never a panic. All twelve TCP flag bits and unknown options survive.
//!
//! A packet of the lab is the frame a network card would send:
//!
//! ```
//! use bytes::Bytes;
//! use farpace_wire::{Ipv4Tcp, MacAddr, Packet, TcpFlags, TcpHeader};
//!
//! let lower = Ipv4Tcp {
//!     src_mac: MacAddr([2, 0, 0, 0, 0, 1]),
//!     dst_mac: MacAddr([2, 0, 0, 0, 0, 2]),
//!     src: [10, 0, 0, 1].into(),
//!     dst: [10, 0, 0, 2].into(),
//!     ttl: 64,
//!     tos: 0,
//! };
//! let header = TcpHeader { src_port: 40000, dst_port: 80, flags: TcpFlags::ACK, ..TcpHeader::default() };
//! let packet = lower.build(1, &header, Bytes::from_static(b"hello"));
//!
//! let mut frame = Vec::new();
//! packet.write_frame(&mut frame); // with the right checksums
//! let same = Packet::from_frame(&frame)?;
//! same.verify_checksums()?;
//! assert_eq!(same.tcp()?.header(), header);
//! assert_eq!(same.payload(), "hello");
//! # Ok::<(), farpace_wire::WireError>(())
//! ```
//!
//! Start reading at [`Packet`].

#![forbid(unsafe_code)]

pub mod checksum;
mod error;
pub mod ethernet;
pub mod ipv4;
mod ipv4_tcp;
pub mod ipv6;
mod packet;
pub mod tcp;

pub use error::{Layer, WireError};
pub use ethernet::{EtherType, EthernetHeader, MacAddr};
pub use ipv4::{Ipv4Header, Ipv4View};
pub use ipv4_tcp::Ipv4Tcp;
pub use ipv6::{Ipv6Header, Ipv6View};
pub use packet::{Checksum, Packet};
pub use tcp::{SackBlock, SackBlocks, TcpFlags, TcpHeader, TcpOptions, TcpView, Timestamps};
