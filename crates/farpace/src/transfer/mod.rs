//! Files from here to there: `farpace send`, `recv` and `copy`. The ways there are those of
//! [`carrier`](crate::carrier), or, where it is asked for by `--insecure`, connections in the clear
//! (`stack`).

mod by_scp;
mod control;
pub mod copy;
mod explain;
mod identity;
mod options;
mod outcome;
mod progress;
pub mod recv;
pub mod send;
mod server;
mod stack;
mod target;

pub use control::{Greeting, greet, hear, hear_word};
pub use explain::{PathFacts, TransferProbe, Watcher};
pub use options::{SendingOptions, bytes, rate, seconds, size, speed};
pub use progress::LinkRates;
pub use stack::{StackArgs, TransferStream, named_at};
