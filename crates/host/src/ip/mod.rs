//! What a host does at the Internet layer besides carrying TCP: who is where on the link, putting fragments
//! together, ICMP, and UDP sockets.
//!
//! All of it is sans-IO values: time and packets come in as parameters, packets and deadlines go out. Nothing
//! here knows the host; the host calls it.

pub mod conflict;
pub mod discovery;
pub mod fragments;
pub mod icmp;
pub mod neighbours;
pub mod udp;
