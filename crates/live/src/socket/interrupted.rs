//! The error of waiting calls that were interrupted.

use std::io;
use thiserror::Error;

/// A waiting call was interrupted by [`Stack::interrupt`](super::Stack::interrupt) or
/// [`Stream::interrupt`](super::Stream::interrupt).
///
/// It is contained in an [`io::Error`] of kind `Other`: functions of the standard library retry after kind
/// `Interrupted`, and would wait forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the call was interrupted")]
pub struct Interrupted;

impl Interrupted {
    /// True if `error` contains it.
    pub fn is(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Interrupted>())
    }
}

impl From<Interrupted> for io::Error {
    fn from(interrupted: Interrupted) -> Self {
        io::Error::other(interrupted)
    }
}
