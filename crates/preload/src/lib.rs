//! The library that `farpace exec` preloads into a program. It intercepts libc's socket calls, passes those
//! for farpace's networks to farpace, and all others to the kernel.
//!
//! Start reading at `calls.rs`. A socket is first created in the kernel (`descriptors.rs`). When connect,
//! bind, listen or sendto shows its address, and the address belongs to a network of farpace (`plan.rs`), a
//! socket of farpace takes its number. The descriptors of farpace are real ones, so poll, select, epoll and
//! fcntl work without interception.
//!
//! The stack itself is in `libfarpace.so` (`crates/capi`), which is loaded when it is first needed
//! (`library.rs`). It is loaded with its own symbols, so that its calls reach libc and not this library. A
//! program without such networks pays one test of a bit per call.
//!
//! This library never knows another crate of farpace, only libc and `farpace.h`, and never touches a socket
//! that is not for one of its networks.

#![cfg_attr(test, allow(dead_code, reason = "the calls would be those of the test program"))]

#[cfg(not(test))]
mod calls;
mod descriptors;
mod library;
#[cfg(not(test))]
mod messages;
mod plan;
mod real;
#[cfg(not(test))]
mod rlimits;
