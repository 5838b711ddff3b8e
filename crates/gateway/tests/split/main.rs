//! The gateway between hosts, in virtual time.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod any_input;
mod bytes;
mod comparison;
mod crash;
mod endings;
mod faults;
mod fragments;
mod handshake;
mod harness;
mod hours;
mod limits;
mod pair;
mod pair_hours;
mod passing;
mod records;
mod routes;
mod shards;
mod survival;
