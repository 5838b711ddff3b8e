//! Attacks with names, each with bounded memory and bounded work. Memory is what the allocator counts; work
//! is the time of a step late in an attack against that of a step at its beginning.

#![allow(clippy::panic, reason = "this is how a bound fails")]

mod ack_requests;
mod control;
mod harness;
mod receiver;
mod sender;
