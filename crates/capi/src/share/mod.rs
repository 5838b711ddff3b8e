//! A host shared by several processes: the children of a process with a stack, and programs that they
//! execute.
//!
//! The stack is a thread of the process that created it, the owner. Threads do not survive fork(2). Every
//! other process sends requests to the owner (`remote.rs`) over a channel, which it gets through the
//! rendezvous socket, a descriptor that all of them inherit. A request carries the descriptor of its socket.
//! So every process with the descriptor can use the socket, and no other. The owner answers at once
//! (`server.rs`, `requests.rs`) and never waits. Waiting calls use poll(2) on their own copy of the
//! descriptor, whose state is the same in all processes. `frame.rs` is the encoding.

pub mod frame;
pub mod remote;
pub mod requests;
pub mod server;
