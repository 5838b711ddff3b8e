//! The scenario that the points of a study are made from, in a form that another process can take.

use crate::error::StudyError;
use crate::keys::point_key;
use farpace_lab::scenario::{ReadBeside, Scenario};
use farpace_tcp::config::ExternalControl;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// A scenario and the paths of it that are varied. It names no file: contents are part of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScenarioTemplate {
    /// The name in messages: that of the scenario's file.
    name: String,
    /// The scenario as text, with all defaults.
    base: String,
    /// The paths, in the order of a point's values.
    paths: Vec<String>,
    /// Contents of the files that varied values name.
    files: BTreeMap<String, String>,
    /// Congestion controls of the program's own. They do not travel.
    #[serde(skip)]
    controls: Vec<ExternalControl>,
}

impl ScenarioTemplate {
    /// A template whose files are known after [`check`](Self::check).
    pub(crate) fn new(name: &str, base: String, paths: Vec<String>, controls: Vec<ExternalControl>) -> Self {
        ScenarioTemplate { name: name.to_owned(), base, paths, files: BTreeMap::new(), controls }
    }

    /// Makes the scenario of each of these points, and keeps what their files contain. Returns the keys of
    /// the points' contents.
    ///
    /// # Errors
    /// The first point that is impossible.
    pub(crate) fn check(
        &mut self,
        points: impl Iterator<Item = Vec<String>>,
        beside: ReadBeside<'_>,
    ) -> Result<Vec<String>, StudyError> {
        let files = RefCell::new(std::mem::take(&mut self.files));
        let reading = |name: &str| -> Result<String, String> {
            if let Some(known) = files.borrow().get(name) {
                return Ok(known.clone());
            }
            let text = beside(name)?;
            files.borrow_mut().insert(name.to_owned(), text.clone());
            Ok(text)
        };
        let key = |point: Vec<String>| point_key("", &self.made(&point, &reading)?);
        let keys = points.map(key).collect::<Result<_, _>>().map_err(StudyError::Scenario)?;
        self.files = files.into_inner();
        Ok(keys)
    }

    /// The scenario with these values.
    ///
    /// # Errors
    /// Values that are impossible together; the text says why.
    pub fn scenario(&self, point: &[String]) -> Result<Scenario, String> {
        let kept =
            |name: &str| self.files.get(name).cloned().ok_or_else(|| "the study has no such file".to_owned());
        self.made(point, &kept)
    }

    fn made(&self, point: &[String], beside: ReadBeside<'_>) -> Result<Scenario, String> {
        let set: Vec<(String, String)> = self.paths.iter().cloned().zip(point.iter().cloned()).collect();
        Scenario::parse_controlled(&self.base, &self.name, &set, beside, &self.controls)
            .map_err(|error| error.to_string().replace("in --set ", "in --vary "))
    }

    /// The scenario as text, with all defaults.
    pub fn base(&self) -> &str {
        &self.base
    }
}
