//! Networks of scenarios in real time, between devices: what the commands that do so share.

mod figures;
mod network;
mod summary;
mod watch;

pub use figures::Figures;
pub use network::{Attachment, Network, Options, Patience};
pub use summary::{Accuracy, Direction, Drops, Summary};
pub use watch::{Captures, Watch};
