//! Networks of scenarios in real time, between devices: what the commands that do so share.

pub mod below;
mod drive;
mod figures;
mod network;
mod summary;
mod watch;

pub use drive::{RunObserver, drive, lateness_line};
pub use figures::Figures;
pub use network::{Attachment, LateTolerance, Network, Options};
pub use summary::{Accuracy, Direction, Drops, Summary};
pub use watch::{Captures, Watch};
