//! The receiving half: reassembly, and what is told of it.

mod islands;
mod reassembly;

pub use islands::Islands;
pub use reassembly::{Arrival, Reassembly, SMALLEST_MEAN_CHUNK};
