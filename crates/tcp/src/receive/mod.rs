//! The receiving half: reassembly, and what is told of it.

mod linux_memory;
mod opening;
mod reassembly;
mod round_trip;
mod sack_block_list;
mod window;

pub use linux_memory::{Incoming, LinuxMemory};
pub use reassembly::{ArrivedData, SMALLEST_MEAN_CHUNK, StreamReassembly};
pub use sack_block_list::SackBlockList;
pub use window::{LINUX_INITIAL_WINDOW, ReceiveWindow};
