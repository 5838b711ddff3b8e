//! Packets with real headers: Ethernet, PAUSE, ARP, IP, ICMP, UDP and TCP, and lossless views of them.
//!
//! This crate parses and encodes, and makes no decisions. Malformed headers yield a [`WireError`], never a
//! panic. All twelve TCP flag bits and unknown options are kept.
//!
//! A packet of the lab is the frame that a NIC would send:
//!
//! ```
//! use bytes::Bytes;
//! use farpace_wire::{AddressPair, Below, MacAddr, Packet, TcpFlags, TcpHeader};
//!
//! let (here, there) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
//! let addresses = AddressPair::V4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()); // or V6
//! let below = Below::new(here, there, addresses, 64);
//! let header = TcpHeader { src_port: 40000, dst_port: 80, flags: TcpFlags::ACK, ..TcpHeader::default() };
//! let packet = below.tcp(1, &header, Bytes::from_static(b"hello"));
//!
//! let mut frame = Vec::new();
//! packet.write_frame(&mut frame); // with valid checksums
//! let same = Packet::from_frame(&frame)?;
//! same.verify_checksums()?;
//! assert_eq!(same.tcp()?.header(), header);
//! assert_eq!(same.payload(), "hello");
//! # Ok::<(), farpace_wire::WireError>(())
//! ```
//!
//! Start reading at [`Packet`].

#![forbid(unsafe_code)]

pub mod arp;
mod below;
pub mod checksum;
mod departure;
mod error;
pub mod ethernet;
mod fragment;
mod fragment_position;
pub mod icmp;
pub mod ip;
pub mod ipv4;
pub mod ipv6;
mod multipath;
mod nic_kind;
mod packet;
mod pause;
mod quoted;
pub mod tcp;
pub mod udp;

pub use arp::{Arp, ArpOperation, Extension, ExtensionError, MAX_LISTED_NICS, NicFlags, NicList};
pub use below::Below;
pub use departure::{Departure, Departures};
pub use error::{Layer, WireError};
pub use ethernet::{EtherType, EthernetHeader, MacAddr};
pub use fragment::{fragment, join};
pub use fragment_position::Fragment;
pub use icmp::{Icmp, IpVersion, NeighbourDiscovery, Unreachable};
pub use ip::{AddressPair, Ecn, IpView};
pub use ipv4::{Ipv4Header, Ipv4View};
pub use ipv6::{Ipv6Header, Ipv6View};
pub use multipath::MultipathInfo;
pub use nic_kind::NicKind;
pub use packet::device::PartialSum;
pub use packet::{Checksum, Packet};
pub use pause::PauseFrame;
pub use quoted::Quoted;
pub use tcp::{SackBlock, SackBlocks, TcpFlags, TcpHeader, TcpOptions, TcpView, Timestamps};
pub use udp::{UdpHeader, UdpView};
