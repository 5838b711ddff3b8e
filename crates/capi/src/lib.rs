//! Sockets for C programs, and a host that a C program drives in its own time.
//!
//! `include/farpace.h` is the interface. Start reading at `descriptor.rs`: how a descriptor of the system
//! represents the readiness of a socket. Everything below it is [`farpace_live::socket::posix`], which never
//! waits. Waiting calls use poll(2) on that descriptor, so signals and timeouts work as usual.
//!
//! Other processes (children of fork(2), and programs that they execute) use the sockets of a stack through
//! requests to the process that owns it (`share/`).
//!
//! This crate never knows more of a connection than a socket shows, and never lets a panic reach C.

#![allow(clippy::disallowed_methods, reason = "threads and clocks, as in `farpace-live`")]

mod creation;
mod descriptor;
mod ffi;
mod home;
mod links;
mod place;
mod reaper;
mod share;
mod socket;
mod spare;
mod table;
