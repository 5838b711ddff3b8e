//! Files and trees of files over any stream: named, resumed, verified and acknowledged.
//!
//! Start reading at [`send()`] and [`receive()`]: one side each, over a [`FramedStream`]. What goes over the
//! line is described in `docs/transfer.md` and, message by message, in [`message`]. [`walk()`] turns
//! arguments into [`SourceTree`]s; [`Destination`] is the only way by which what a peer sends reaches a disk.
//!
//! This crate knows streams and files, never the engine of farpace, and never writes outside of the directory
//! it is given. It reads clocks and has threads: disk, hashing and network work at the same time.

#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "disk, hashing and network are threads, and patience needs a clock"
)]

pub mod admission;
mod content;
mod exclude;
mod fault;
mod frame;
mod handshake;
#[cfg(test)]
mod hostile;
pub mod kernel;
pub mod limits;
mod line;
pub mod message;
mod min_free;
mod path;
mod pipeline;
mod place;
mod receiver;
mod sender;
mod throttle;
mod walk;

pub use content::ContentHasher;
pub use exclude::{ExcludeError, ExcludePatterns, MAX_EXCLUDES};
pub use fault::{Code, TransferError, TransferFault, TransferProblem, clean};
pub use frame::{FrameKey, FrameReader, FrameWriter, IncomingFrame};
pub use handshake::{Frames, Peeked, Role, shake};
pub use line::{FramedStream, LineProgress, LineTimes, SenderKey, Session, Timeouts};
pub use min_free::MinFree;
pub use path::RelPath;
pub use place::{Destination, WritePolicy};
pub use receiver::{ReceiveReport, receive};
pub use sender::{SendReport, send};
pub use walk::{SourceTree, Walk, walk, walk_with};
