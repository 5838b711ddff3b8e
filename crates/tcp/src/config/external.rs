//! Congestion controls that a program supplies.

use crate::cc::CongestionControl;
use std::fmt;
use std::sync::Arc;

/// What an external control is told when it is made.
#[derive(Clone, Copy, Debug)]
pub struct ExternalOpening<'a> {
    /// The connection, as [`for_flow`](ExternalControl::for_flow) calls it; empty if it has no name.
    pub flow: &'a str,
    /// Tells apart what connections do at random.
    pub seed: u32,
}

type MakeControl = dyn Fn(ExternalOpening<'_>) -> Box<dyn CongestionControl> + Send + Sync;

/// A congestion control that a program supplies, in place of one of [`Congestion`](super::Congestion).
///
/// It makes a control for each connection, which has to keep the contract of [`CongestionControl`], and to
/// own its window ([`owns_window`](CongestionControl::owns_window)). Two are equal if they are clones of one.
#[derive(Clone)]
pub struct ExternalControl(Arc<ExternalParts>);

#[derive(Clone)]
struct ExternalParts {
    name: String,
    /// Identifies what makes it.
    version: String,
    flow: String,
    make: Arc<MakeControl>,
}

impl ExternalControl {
    /// A control with a name, for `congestion`, and what makes it.
    pub fn new(
        name: &str,
        make: impl Fn(ExternalOpening<'_>) -> Box<dyn CongestionControl> + Send + Sync + 'static,
    ) -> Self {
        ExternalControl(Arc::new(ExternalParts {
            name: name.to_owned(),
            version: String::new(),
            flow: String::new(),
            make: Arc::new(make),
        }))
    }

    /// The same with words that are others when it behaves in another way: by them, results that are kept are
    /// told from results of another version.
    #[must_use]
    pub fn with_version(&self, version: &str) -> Self {
        ExternalControl(Arc::new(ExternalParts { version: version.to_owned(), ..(*self.0).clone() }))
    }

    /// The same for the connections of one flow.
    #[must_use]
    pub fn for_flow(&self, flow: &str) -> Self {
        ExternalControl(Arc::new(ExternalParts { flow: flow.to_owned(), ..(*self.0).clone() }))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// What [`with_version`](Self::with_version) has said; empty at first.
    pub fn version(&self) -> &str {
        &self.0.version
    }

    pub(crate) fn make(&self, seed: u32) -> Box<dyn CongestionControl> {
        (self.0.make)(ExternalOpening { flow: &self.0.flow, seed })
    }
}

impl fmt::Debug for ExternalControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExternalControl({})", self.0.name)
    }
}

impl PartialEq for ExternalControl {
    fn eq(&self, other: &Self) -> bool {
        let (own, other) = (&self.0, &other.0);
        Arc::ptr_eq(&own.make, &other.make) && own.name == other.name && own.flow == other.flow
    }
}
