//! One host for several processes: the children of a process that has a stack, and what they run.
//!
//! The stack is a thread of the process that made it, the owner; threads do not survive fork(2). Every other process asks the owner
//! (`remote.rs`), by a channel that it gets through the door, a descriptor that all of them inherit. A request carries the
//! descriptor of the socket that it is about, so whoever has the descriptor, by whatever way, may use the socket, and nobody
//! else. The owner answers at once (`server.rs`): nothing waits there. Who must wait does so in poll(2) on its own copy of the
//! descriptor, which shows the same in all processes. `frame.rs` is what passes.

pub mod frame;
pub mod remote;
pub mod server;
