//! Pages from traces and captures too large for one file, served to a browser on this host.
//!
//! `library` knows what there is to see and opens it, `server` answers the browser.

mod error;
mod library;
mod server;

pub use error::ViewError;
pub use library::ViewLibrary;
pub use server::serve;
