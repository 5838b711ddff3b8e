//! Commands as lines of words, and errors at a word.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Maximum number of words of a command.
pub const MAX_WORDS: usize = 1_000;
/// An error shows the command if it is at most so long.
const MAX_SHOWN: usize = 400;

/// A command: its words, and the line of the text where it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TcLine {
    /// From 1; 0 if the command does not come from a text.
    pub number: usize,
    pub words: Vec<String>,
}

/// An error in a command, with the position of the wrong word and a correction.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct TcError {
    /// The line of the text at which the command begins, from 1; 0 for a single command.
    pub line: usize,
    /// The words of the command.
    pub words: Vec<String>,
    /// Index of the word, from 0; the number of words if something is missing at the end.
    pub at: usize,
    /// What is wrong, and what was expected.
    pub problem: String,
}

impl fmt::Display for TcError {
    /// The problem, then the command with the word underlined.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        f.write_str(&self.problem)?;
        let command = self.words.join(" ");
        if command.is_empty() || command.len() > MAX_SHOWN {
            return Ok(());
        }
        let before: usize = self.words.iter().take(self.at).map(|word| word.chars().count() + 1).sum();
        let long = self.words.get(self.at).map_or(1, |word| word.chars().count().max(1));
        write!(f, "\n  {command}\n  {}{}", " ".repeat(before), "^".repeat(long))
    }
}

/// Splits a text into commands: one per line, `\` at the end continues a line, `#` begins a comment.
pub(super) fn lines(text: &str) -> Vec<TcLine> {
    let mut lines = Vec::new();
    let mut open: Option<TcLine> = None;
    for (text, number) in text.lines().zip(1..) {
        let (text, goes_on) = match text.trim_end().strip_suffix('\\') {
            Some(text) => (text, true),
            None => (text, false),
        };
        let words = text.split_whitespace();
        let mut all = words.clone();
        let counted: Vec<String> =
            words.take_while(|word| !word.starts_with('#')).map(str::to_owned).collect();
        let comment = all.any(|word| word.starts_with('#'));
        let line = open.get_or_insert(TcLine { number, words: Vec::new() });
        if line.words.is_empty() {
            line.number = number;
        }
        line.words.extend(counted);
        // A `\` in a comment is part of the comment.
        if !goes_on || comment {
            lines.extend(open.take().filter(|line| !line.words.is_empty()));
        }
    }
    lines.extend(open.filter(|line| !line.words.is_empty()));
    lines
}

/// Reads the words of a command in order.
pub(super) struct Words<'a> {
    line: &'a TcLine,
    at: usize,
}

impl<'a> Words<'a> {
    pub fn new(line: &'a TcLine) -> Self {
        Words { line, at: 0 }
    }
    pub fn peek(&self) -> Option<&'a str> {
        self.line.words.get(self.at).map(String::as_str)
    }
    /// The next word; at the end, an error with what was `expected`.
    pub fn next(&mut self, expected: impl fmt::Display) -> Result<&'a str, TcError> {
        let Some(word) = self.peek() else {
            let after = self.at.checked_sub(1).and_then(|at| self.line.words.get(at));
            let after = after.map(|word| format!(" after `{word}`")).unwrap_or_default();
            return Err(self.error_at(self.at, format!("the command ends{after}: expected {expected}")));
        };
        self.at += 1;
        Ok(word)
    }
    /// Consumes the next word if it is `word`.
    pub fn take(&mut self, word: &str) -> bool {
        let found = self.peek() == Some(word);
        self.at += usize::from(found);
        found
    }
    /// The next word as a value.
    pub fn value<T>(
        &mut self,
        expected: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, TcError> {
        let word = self.next(expected)?;
        read(word).map_err(|problem| self.error(problem))
    }
    /// The next word, parsed.
    pub fn parse<T: FromStr<Err = String>>(&mut self, expected: &str) -> Result<T, TcError> {
        self.value(expected, str::parse)
    }
    /// Sets an option that may be given only once.
    pub fn once<T>(&self, option: &mut Option<T>, value: T, name: &str) -> Result<(), TcError> {
        match option.replace(value) {
            None => Ok(()),
            Some(_) => Err(self.error(format!("`{name}` is given twice"))),
        }
    }
    /// Requires the end of the command.
    pub fn end(&mut self, valid: &[&str]) -> Result<(), TcError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => {
                self.at += 1;
                Err(self.unknown(valid))
            }
        }
    }
    /// Error: the previous word is not one of the valid ones.
    pub fn unknown(&self, valid: &[&str]) -> TcError {
        let word = self.at.checked_sub(1).and_then(|at| self.line.words.get(at)).map_or("", String::as_str);
        let near = nearest(word, valid).map(|near| format!(": did you mean `{near}`?"));
        let expected = match valid {
            [] => ": expected the end of the command".to_owned(),
            [one] => format!(": expected `{one}`"),
            all => format!(": expected one of {}", all.join(", ")),
        };
        self.error(format!("unknown word `{word}`{}", near.unwrap_or(expected)))
    }
    /// Error: the previous word is valid in `tc`, but pacing does not support it.
    pub fn not_here(&self, why: &str) -> TcError {
        let word = self.at.checked_sub(1).and_then(|at| self.line.words.get(at)).map_or("", String::as_str);
        self.error(format!("`{word}` is a word of tc that pacing does not support: {why}"))
    }
    /// Error at the previous word.
    pub fn error(&self, problem: impl fmt::Display) -> TcError {
        self.error_at(self.at.saturating_sub(1), problem)
    }
    /// Index of the previous word.
    pub fn place(&self) -> usize {
        self.at.saturating_sub(1)
    }
    pub fn error_at(&self, at: usize, problem: impl fmt::Display) -> TcError {
        let TcLine { number, words } = self.line.clone();
        TcError { line: number, words, at, problem: problem.to_string() }
    }
}

/// The most similar candidate, if one is similar enough.
pub(super) fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    // Longer words match nothing.
    if word.len() > 40 {
        return None;
    }
    let lower = word.to_lowercase();
    let near = candidates.iter().map(|c| (strsim::osa_distance(&lower, &c.to_lowercase()), *c));
    near.filter(|(d, c)| *d < lower.len().min(c.len()) && *d <= lower.len().max(c.len()).div_ceil(3))
        .min_by_key(|(d, _)| *d)
        .map(|(_, c)| c)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: continuation lines, comments, and the line numbers in errors of batch files.
    #[test]
    fn lines_are_joined_and_numbered() {
        let text = "# head \\\nqdisc add \\\n  dev eth0 # why \\\n\n  class \\\n\\\n add\nlast \\";
        let lines: Vec<_> = lines(text).into_iter().map(|l| (l.number, l.words.join(" "))).collect();
        assert_eq!(lines, [(2, "qdisc add dev eth0".into()), (5, "class add".into()), (8, "last".into())]);
    }

    /// Breaks: an error underlines the wrong word.
    #[test]
    fn errors_point_at_the_word() {
        let line = TcLine { number: 3, words: ["one", "twö", "three"].map(String::from).to_vec() };
        let mut words = Words::new(&line);
        words.next("").unwrap();
        words.next("").unwrap();
        assert_eq!(
            words.unknown(&["two"]).to_string(),
            "line 3: unknown word `twö`: did you mean `two`?\n  one twö three\n      ^^^"
        );
        words.next("").unwrap();
        let missing = words.next("a number").unwrap_err().to_string();
        let end =
            "line 3: the command ends after `three`: expected a number\n  one twö three\n                ^";
        assert_eq!(missing, end);
    }
}
