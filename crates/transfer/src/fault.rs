//! What can go wrong, in a form that a peer understands and a person can mend.

use crate::limits::MAX_TEXT;
use std::fmt;
use std::io;
use std::time::Duration;
use thiserror::Error;

/// Kinds of faults, as they go over the line. Numbers that are not known are [`Code::Other`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Code {
    /// Anything else.
    Other = 0,
    /// The two sides do not have the same token.
    Token = 1,
    /// The two sides have no version of the protocol in common.
    Version = 2,
    /// Both sides send, or both receive.
    Role = 3,
    /// No more transfers at once.
    Busy = 4,
    /// What came makes no sense.
    Protocol = 5,
    /// A name that must not be written: it leads out of the directory, or through a link.
    Path = 6,
    /// There is such a file already.
    Exists = 7,
    /// The disk, or what the user may have of it, is full.
    NoSpace = 8,
    /// Not allowed to read or write it.
    Permission = 9,
    /// The file changed while it was being sent.
    Changed = 10,
    /// The file is not there (any more).
    Vanished = 11,
    /// What was received is not what was sent.
    Mismatch = 12,
    /// Somebody stopped it.
    Interrupted = 13,
    /// More than a limit allows.
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
    /// The kind with this number.
    pub fn of(number: u8) -> Code {
        Code::ALL.get(usize::from(number)).copied().unwrap_or(Code::Other)
    }
}

/// Something went wrong, and why.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text}")]
pub struct TransferFault {
    /// Its kind.
    pub code: Code,
    /// For people. No control characters.
    pub text: String,
}

impl TransferFault {
    /// A fault told in these words.
    pub fn new(code: Code, text: impl fmt::Display) -> Self {
        TransferFault { code, text: clean(&text.to_string()) }
    }
    /// What the system said about doing `what`.
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
    /// True when it is about more than one file: going on would only fail again.
    pub fn is_fatal(&self) -> bool {
        matches!(self.code, Code::NoSpace | Code::Interrupted | Code::Protocol | Code::Limit)
    }
}

/// A file that was not transferred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferProblem {
    /// Its path. No control characters.
    pub path: String,
    /// What is wrong with it.
    pub fault: TransferFault,
}

/// Why a transfer ended before its end.
#[derive(Debug, Error)]
pub enum TransferError {
    /// The stream failed.
    #[error("the connection broke: {0}")]
    Line(#[from] io::Error),
    /// The stream ended in the middle.
    #[error("the other side closed the connection before the transfer was complete")]
    Closed,
    /// The other side told what was wrong.
    #[error("the other side says: {0}")]
    Peer(TransferFault),
    /// Something is wrong here, and the other side was told.
    #[error("{0}")]
    Own(TransferFault),
    /// What came is not what farpace sends.
    #[error("the other side does not speak farpace's transfer protocol: {0}")]
    Protocol(&'static str),
    /// Nothing moved for too long.
    #[error("nothing came from the other side for {} s", .0.as_secs())]
    Silent(Duration),
    /// Stopped here.
    #[error("interrupted")]
    Interrupted,
}

/// `text` in a form that can be shown: control characters, which could play tricks with a terminal, are replaced, and
/// what is too long is cut.
pub fn clean(text: &str) -> String {
    let mut clean = String::new();
    for c in text.chars() {
        // Marks that turn the direction of writing could make one name look like another.
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
