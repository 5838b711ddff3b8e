//! What `farpace exec` loads into a program before everything else: libc's calls for sockets, which give those to farpace that
//! are for its networks, and all others to the kernel.
//!
//! Start reading at `calls.rs`. A socket begins as the kernel's (`descriptors.rs`); when the program says by connect, bind,
//! listen or sendto where it is to be, and that is one of farpace's networks (`plan.rs`), a socket of farpace takes its number.
//! Descriptors of farpace are real ones, so poll, select, epoll and fcntl need no help.
//!
//! The stack itself is in `libfarpace.so` (`crates/capi`), which is loaded when it is first needed (`library.rs`): with names of
//! its own, so that what it calls is libc's and not what is here. A program that talks to no such network pays one look at a
//! bit for each call.
//!
//! It never knows any other crate of farpace, only libc and `farpace.h`, and never touches a
//! socket that is not for one of its networks.

#![cfg_attr(test, allow(dead_code, reason = "the calls would be those of the test program"))]

#[cfg(not(test))]
mod calls;
mod descriptors;
mod library;
#[cfg(not(test))]
mod messages;
mod plan;
mod real;
