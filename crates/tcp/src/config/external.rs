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

struct ExternalParts {
    name: String,
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
            flow: String::new(),
            make: Arc::new(make),
        }))
    }

    /// The same for the connections of one flow.
    #[must_use]
    pub fn for_flow(&self, flow: &str) -> Self {
        ExternalControl(Arc::new(ExternalParts {
            name: self.0.name.clone(),
            flow: flow.to_owned(),
            make: Arc::clone(&self.0.make),
        }))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
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
