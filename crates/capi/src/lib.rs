//! Sockets for C programs, and a host that a C program drives in its own time.
//!
//! `include/farpace.h` is the interface. Start reading at `descriptor.rs`: how a descriptor that the system knows shows what
//! a socket of ours can do. Below it everything is [`farpace_live::socket::posix`], which never waits; whoever must wait does so
//! in poll(2) on that descriptor, so signals and timeouts work as everywhere.
//!
//! Other processes, children of fork(2) and what they run, use the sockets of a stack by asking the process that has it (`share/`).
//!
//! It never knows more of a connection than a socket shows, and never lets a panic reach C.

#![allow(clippy::disallowed_methods, reason = "threads and clocks, as in `farpace-live`")]

mod descriptor;
mod ffi;
mod home;
mod place;
mod share;
mod socket;
mod table;
