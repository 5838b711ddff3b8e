//! The receiving half: reassembly, and what is told of it.

mod islands;
mod opening;
mod reassembly;
mod round_trip;
mod window;

pub use islands::Islands;
pub use reassembly::{Arrival, Reassembly, SMALLEST_MEAN_CHUNK};
pub use window::{LINUX_INITIAL_WINDOW, ReceiveWindow};
