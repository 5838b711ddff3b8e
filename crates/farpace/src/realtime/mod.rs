//! Networks of scenarios in real time, between devices: what the commands that do so share.

pub mod below;
mod drive;
mod figures;
mod network;
mod summary;
mod watch;

pub use drive::{DriveObserver, drive, lateness_line};
pub use figures::RealtimeFigures;
pub use network::{Attachment, LateTolerance, RealtimeNetwork, RealtimeOptions};
pub use summary::{Accuracy, DirectionSummary, Drops, RealtimeSummary};
pub use watch::{Captures, RealtimeWatch};
