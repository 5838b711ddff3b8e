//! Faults of a scenario, as readers and checks find them. `error.rs` makes messages of them.

use super::place::{DocumentStep, Origin};
use std::fmt;

/// What is wrong, before there is a message.
#[derive(Clone, Debug)]
pub(super) enum FaultKind {
    /// A complete message.
    Message(String),
    /// A value that its type refuses, with the type's message.
    Value(String),
    /// A value of another type.
    Type { expected: String },
    /// A list of another length.
    Length { len: usize, expected: String },
    /// Not one of the words that are valid here.
    UnknownWord { word: String, valid: &'static [&'static str] },
    /// Not one of the keys that are valid here.
    UnknownKey { key: String, valid: &'static [&'static str] },
    /// A required key is absent.
    Missing { key: &'static str },
}

/// A problem with its place in the tree, as readers and checks report it.
#[derive(Clone, Debug)]
pub(super) struct ScenarioFault(Box<FaultBody>);

/// The parts of a fault.
#[derive(Clone, Debug)]
pub(super) struct FaultBody {
    pub kind: FaultKind,
    pub origin: Option<Origin>,
    /// The path from the root, reversed: it grows while the error is passed up.
    pub path: Vec<DocumentStep>,
    /// What is there.
    pub found: String,
    pub hint: Option<String>,
}

impl ScenarioFault {
    pub fn new(kind: FaultKind) -> Self {
        ScenarioFault(Box::new(FaultBody {
            kind,
            origin: None,
            path: Vec::new(),
            found: String::new(),
            hint: None,
        }))
    }
    pub fn syntax(message: String, origin: Origin) -> Self {
        ScenarioFault::new(FaultKind::Message(message)).with_origin(&origin, String::new)
    }
    pub fn of_file(message: String) -> Self {
        ScenarioFault::syntax(message, Origin::File)
    }
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }
    /// Gives it a place and a description of what is there, unless it has one already: the innermost is the
    /// right one.
    pub fn with_origin(mut self, origin: &Origin, found: impl FnOnce() -> String) -> Self {
        if self.0.origin.is_none() {
            self.0.origin = Some(origin.clone());
            self.0.found = found();
        }
        self
    }
    /// Its parts.
    pub fn into_body(self) -> FaultBody {
        *self.0
    }
    /// It happened below this step.
    pub fn under(mut self, step: DocumentStep) -> Self {
        self.0.path.push(step);
        self
    }
}

impl fmt::Display for ScenarioFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0.kind)
    }
}
impl std::error::Error for ScenarioFault {}
