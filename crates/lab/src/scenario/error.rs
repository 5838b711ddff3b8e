//! The errors of a scenario: what is wrong, where, and what would be right.

use super::fault::{FaultBody, ScenarioFault};
use super::hint;
use super::place::Origin;
use std::fmt;

/// Why a text is not a scenario: one or more problems, in the order of the file. Printed, each shows its
/// place with the source line and a mark under the offending key or value:
///
/// ```text
/// error: unknown key `rte`
///   --> wan.toml:7:1
///    |
///  7 | rte = "100 Mbit/s"
///    | ^^^
///    = did you mean `rate`?
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// The name of the text.
    pub file: String,
    /// At least one problem; at most [`MAX_PROBLEMS`].
    pub problems: Vec<ScenarioProblem>,
    /// Further problems that were found but left out.
    pub more: usize,
}

/// Most problems in one error.
pub const MAX_PROBLEMS: usize = 8;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioProblem {
    /// What is wrong, in one sentence.
    pub message: String,
    /// Where.
    pub place: ErrorPlace,
    /// What would be right.
    pub hint: Option<String>,
}

/// Where a problem is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorPlace {
    /// In the text.
    Text {
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// How many characters are marked, at least 1.
        width: usize,
        /// The source line.
        source: String,
    },
    /// In an override given beside the text.
    Set {
        /// Its path.
        path: String,
        /// Its value.
        value: String,
    },
    /// In the text as a whole.
    File,
}

impl ScenarioProblem {
    /// Line and column, from 1, if it is in the text.
    pub fn position(&self) -> Option<(usize, usize)> {
        match self.place {
            ErrorPlace::Text { line, column, .. } => Some((line, column)),
            _ => None,
        }
    }
}

impl std::error::Error for ScenarioError {}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.problems.iter().enumerate() {
            if i > 0 {
                f.write_str("\n\n")?;
            }
            problem.write(&self.file, f)?;
        }
        match self.more {
            0 => Ok(()),
            n => write!(f, "\n\nand {n} more"),
        }
    }
}

/// Widest part of a source line that is shown, in characters.
const MAX_SHOWN: usize = 100;

impl ScenarioProblem {
    fn write(&self, file: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        let margin = match &self.place {
            ErrorPlace::Text { line, column, width, source } => {
                let number = line.to_string();
                let pad = " ".repeat(number.len());
                // A long line is cut so that the mark stays visible. Control characters become dots.
                let skip = if *column > MAX_SHOWN * 3 / 4 { column - MAX_SHOWN / 2 } else { 0 };
                let shown: String = source
                    .chars()
                    .skip(skip)
                    .take(MAX_SHOWN)
                    .map(|c| match c {
                        '\t' => ' ',
                        c if c.is_control() => '.',
                        c => c,
                    })
                    .collect();
                let before = column.saturating_sub(1 + skip);
                let marks = (*width).clamp(1, MAX_SHOWN.saturating_sub(before).max(1));
                write!(f, "\n {pad}--> {file}:{line}:{column}\n {pad} |\n {number} | {shown}")?;
                write!(f, "\n {pad} | {}{}", " ".repeat(before), "^".repeat(marks))?;
                pad
            }
            ErrorPlace::Set { path, value } => {
                write!(f, "\n  --> in --set {path}={value}")?;
                " ".to_string()
            }
            ErrorPlace::File => {
                write!(f, "\n  --> {file}")?;
                " ".to_string()
            }
        };
        for line in self.hint.iter().flat_map(|h| h.lines()) {
            write!(f, "\n {margin} = {line}")?;
        }
        Ok(())
    }
}

/// The text and the overrides, from which faults become problems.
pub(super) struct ScenarioText<'a> {
    pub name: &'a str,
    pub text: &'a str,
    pub overrides: &'a [(String, String)],
}

impl ScenarioText<'_> {
    pub fn explain(&self, faults: Vec<ScenarioFault>) -> ScenarioError {
        let mut problems: Vec<ScenarioProblem> = faults.into_iter().map(|f| self.problem(f)).collect();
        problems.sort_by_key(ScenarioProblem::position);
        let more = problems.len().saturating_sub(MAX_PROBLEMS);
        problems.truncate(MAX_PROBLEMS);
        ScenarioError { file: self.name.to_string(), problems, more }
    }

    fn problem(&self, fault: ScenarioFault) -> ScenarioProblem {
        let FaultBody { kind, origin, mut path, found, hint } = fault.into_body();
        path.reverse();
        let (message, advice) = hint::describe(&kind, &path, &found);
        ScenarioProblem { message, place: self.place(origin.unwrap_or(Origin::File)), hint: hint.or(advice) }
    }

    fn place(&self, origin: Origin) -> ErrorPlace {
        match origin {
            Origin::File => ErrorPlace::File,
            Origin::Set(i) => match self.overrides.get(i) {
                Some((path, value)) => ErrorPlace::Set { path: path.clone(), value: value.clone() },
                None => ErrorPlace::File,
            },
            Origin::Text(range) => {
                let mut start = range.start.min(self.text.len());
                while !self.text.is_char_boundary(start) {
                    start -= 1;
                }
                let before = self.text.get(..start).unwrap_or_default();
                let line_start = before.rfind('\n').map_or(0, |i| i + 1);
                let rest = self.text.get(line_start..).unwrap_or_default();
                let source = rest.lines().next().unwrap_or_default();
                let column = before.get(line_start..).unwrap_or_default().chars().count() + 1;
                let marked = self.text.get(start..range.end.max(start)).unwrap_or_default();
                ErrorPlace::Text {
                    line: before.matches('\n').count() + 1,
                    column,
                    width: marked.lines().next().map_or(1, |l| l.trim_end().chars().count().max(1)),
                    source: source.to_string(),
                }
            }
        }
    }
}
