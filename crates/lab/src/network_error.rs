//! The errors of building a network.

use farpace_path as path;
use farpace_path::world::WorldError;
use thiserror::Error;

/// Why a scenario cannot become a world. A checked scenario does not cause these; a scenario made by a
/// program may.
#[derive(Debug, Error)]
pub enum NetworkError {
    /// The world refuses an element or a wire.
    #[error(transparent)]
    World(#[from] WorldError),
    /// An element refuses its parameters.
    #[error("link `{link}`: {error}")]
    Element {
        /// The link.
        link: String,
        /// What the element says.
        error: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The stalls of a host are no periods in order.
    #[error("the stalls of host `{host}`: {error}")]
    Stalls {
        /// The host.
        host: String,
        /// Why they are refused.
        error: path::PeriodError,
    },
    /// An end of a link is no node.
    #[error("link `{link}` leads to `{node}`, which is no host, router or switch")]
    NoNode {
        /// The link.
        link: String,
        /// The name of its end.
        node: String,
    },
    /// A router refuses its routes.
    #[error("router `{router}`: {error}")]
    Router {
        /// The router.
        router: String,
        /// Why.
        error: path::RouterError,
    },
}
