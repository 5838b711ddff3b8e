//! Sockets as in Linux: the calls, options and `errno` values of its manual pages, without descriptors and
//! without waiting.
//!
//! Start reading at [`PosixSocket`]. `farpace-capi` and `farpace exec` use it, and add descriptors with their
//! readiness, and waiting. The options are a table (`table.rs`), from which everything else about them is
//! derived.

mod address;
mod get;
mod info;
mod io;
mod message;
mod set;
mod socket;
mod table;
mod values;

pub use address::{LONGEST as LONGEST_ADDRESS, encode as encode_address};
pub use info::TcpInfo;
pub(super) use io::wall_now;
pub use message::{AncillaryMessage, ReceivedMessage, SendTo};
pub use socket::PosixSocket;
pub use table::{FARPACE, Get, OPTIONS, Of, OptionEffect, OptionRow, SetOption};

use nix::errno::Errno;
use std::io::{Error, ErrorKind};

/// The `errno` of an error of the sockets.
pub fn errno(error: &Error) -> Errno {
    if let Some(code) = error.raw_os_error() {
        return Errno::from_raw(code);
    }
    match error.kind() {
        ErrorKind::WouldBlock => Errno::EAGAIN,
        ErrorKind::TimedOut => Errno::ETIMEDOUT,
        ErrorKind::InvalidInput => Errno::EINVAL,
        ErrorKind::BrokenPipe => Errno::EPIPE,
        _ if super::Interrupted::is(error) => Errno::EINTR,
        _ => Errno::EIO,
    }
}
