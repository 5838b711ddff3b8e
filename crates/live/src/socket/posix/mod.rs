//! Sockets as Linux has them: every call, option and `errno` of its manual pages, without descriptors and without waiting.
//!
//! Start reading at [`PosixSocket`]. Whoever gives a program descriptors (`farpace-capi`) or runs programs as they are (`farpace exec`)
//! uses this and adds only how a descriptor shows what a socket can do, and how one waits for it. The options are a table
//! (`table.rs`), from which all else about them derives.

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

/// What an error of the sockets is in C.
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
