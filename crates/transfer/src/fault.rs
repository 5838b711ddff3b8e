//! Errors of transfers, in a form for the peer and for users.

use crate::limits::MAX_TEXT;
use std::fmt;
use std::io;
use std::time::Duration;
use thiserror::Error;

/// Kinds of faults, as encoded in messages. Unknown numbers are [`Code::Other`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Code {
    /// Anything else.
    Other = 0,
    /// The peers do not have the same token.
    Token = 1,
    /// The peers have no protocol version in common.
    Version = 2,
    /// Both sides send, or both receive.
    Role = 3,
    /// The maximum number of transfers is running.
    Busy = 4,
    /// An invalid message.
    Protocol = 5,
    /// A path that must not be written: it leads out of the directory, or through a link.
    Path = 6,
    /// A file of this name exists.
    Exists = 7,
    /// The disk or the quota is full.
    NoSpace = 8,
    /// Missing permission to read or write it.
    Permission = 9,
    /// The file changed while it was being sent.
    Changed = 10,
    /// The file does not exist (any more).
    Vanished = 11,
    /// The received content differs from the sent one.
    Mismatch = 12,
    /// It was interrupted.
    Interrupted = 13,
    /// A limit is exceeded.
    Limit = 14,
    /// Neither file nor directory nor symbolic link.
    Special = 15,
}

impl Code {
    const ALL: [Code; 16] = [
        Code::Other,
        Code::Token,
        Code::Version,
        Code::Role,
        Code::Busy,
        Code::Protocol,
        Code::Path,
        Code::Exists,
        Code::NoSpace,
        Code::Permission,
        Code::Changed,
        Code::Vanished,
        Code::Mismatch,
        Code::Interrupted,
        Code::Limit,
        Code::Special,
    ];
    /// The kind of a number.
    pub fn of(number: u8) -> Code {
        Code::ALL.get(usize::from(number)).copied().unwrap_or(Code::Other)
    }
}

/// An error with its kind and text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text}")]
pub struct TransferFault {
    /// Its kind.
    pub code: Code,
    /// For users. Contains no control characters.
    pub text: String,
}

impl TransferFault {
    /// A fault with this text.
    pub fn new(code: Code, text: impl fmt::Display) -> Self {
        TransferFault { code, text: clean(&text.to_string()) }
    }
    /// The fault of a system error during `what`.
    pub fn of(error: &io::Error, what: &str) -> Self {
        let code = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Code::NoSpace,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Code::Permission,
            io::ErrorKind::NotFound => Code::Vanished,
            io::ErrorKind::AlreadyExists => Code::Exists,
            _ => Code::Other,
        };
        TransferFault::new(code, format_args!("{what}: {error}"))
    }
    /// True if it concerns more than one file, so that continuing would fail again.
    pub fn is_fatal(&self) -> bool {
        matches!(self.code, Code::NoSpace | Code::Interrupted | Code::Protocol | Code::Limit)
    }
}

/// A file that was not transferred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferProblem {
    /// Its path. Contains no control characters.
    pub path: String,
    /// The fault.
    pub fault: TransferFault,
}

/// Why a transfer ended early.
#[derive(Debug, Error)]
pub enum TransferError {
    /// The stream failed.
    #[error("the connection broke: {0}")]
    Line(#[from] io::Error),
    /// The stream ended within the transfer.
    #[error("the other side closed the connection before the transfer was complete")]
    Closed,
    /// A secured stream that was made from here ended before the peer said anything.
    #[error(
        "the connection ended before the other side answered: the ticket is another one's or old, or the \
         network broke"
    )]
    Unanswered,
    /// The peer reported a fault.
    #[error("the other side says: {0}")]
    Peer(TransferFault),
    /// A fault on this side; the peer was informed.
    #[error("{0}")]
    Own(TransferFault),
    /// The peer does not speak the protocol.
    #[error("the other side does not speak farpace's transfer protocol: {0}")]
    Protocol(&'static str),
    /// No progress for too long.
    #[error("nothing came from the other side for {} s", .0.as_secs())]
    Silent(Duration),
    /// Interrupted on this side.
    #[error("interrupted")]
    Interrupted,
}

/// Makes `text` safe to show: control characters, which could manipulate a terminal, are replaced, and long
/// texts are truncated.
pub fn clean(text: &str) -> String {
    let mut clean = String::new();
    for c in text.chars() {
        // Marks of writing direction could make one name look like another.
        let tricky = c.is_control()
            || matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        let c = if tricky { '?' } else { c };
        if clean.len() + c.len_utf8() > MAX_TEXT {
            break;
        }
        clean.push(c);
    }
    clean
}
