//! Whole layers against each other, over a switch.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod bench;
mod failures;
mod hostile;
mod kinds;
