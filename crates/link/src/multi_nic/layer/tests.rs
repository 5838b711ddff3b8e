//! Several layers on a switched LAN.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod bench;
mod failures;
mod hostile;
mod kinds;
mod priority;
