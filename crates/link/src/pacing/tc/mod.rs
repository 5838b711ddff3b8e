//! The pacing configuration as `tc` commands: those of PSPacer (§3.6 of the paper), and those of Linux's
//! queueing disciplines as far as pacing has the same function.
//!
//! ```
//! use farpace_link::pacing::tc::Tc;
//!
//! let mut tc = Tc::new(None);
//! tc.apply_text(
//!     "tc qdisc add dev eth0 root handle 1: psp default 3
//!      tc class add dev eth0 parent 1: classid 1:1 psp rate 500mbit
//!      tc class add dev eth0 parent 1: classid 1:3 psp mode normal
//!      tc filter add dev eth0 parent 1: protocol ip pref 1 u32 \\
//!          match ip dst 192.168.2.0/24 classid 1:1",
//! )?;
//! let config = tc.config().ok_or("no root")?;
//! assert_eq!((config.classes.len(), config.default.as_deref()), (2, Some("1:3")));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | concept | file |
//! |---|---|
//! | lines, words, errors with positions | `words` |
//! | rates, sizes, times, identifiers | `units` |
//! | `tc qdisc` of the device | `root` |
//! | `tc class`, and `tc qdisc` below a class | `class` |
//! | `tc filter` | `filter`, `selector` |
//! | a configuration as commands | `write` |

mod class;
mod filter;
mod root;
mod selector;
mod units;
mod words;
mod write;

pub use words::{MAX_WORDS, TcError};
pub use write::{ToTcError, to_tc};

use super::{PacingConfig, SchedulerKind};
use std::collections::BTreeMap;
use words::{TcLine, Words};

/// The pacing configuration of one device, changed by commands.
///
/// Classes have the identifiers of `tc`, like `1:3`, as names. Commands also accept other names of existing
/// classes. If a text has an error, the commands before it have taken effect.
#[derive(Clone, Debug, Default)]
pub struct Tc {
    config: Option<PacingConfig>,
    device: Option<String>,
    /// The handle of the root.
    major: Option<u16>,
    /// Indices of classes by name.
    indices: BTreeMap<String, usize>,
    /// The lowest priority that was assigned to a filter without one.
    lowest_assigned: Option<u16>,
    notes: Vec<String>,
}

/// The operation of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Add,
    Change,
    Replace,
    Delete,
}

impl Tc {
    /// Starts from `config`; none: the device has no pacing yet.
    pub fn new(config: Option<PacingConfig>) -> Self {
        let mut tc = Tc { config, ..Tc::default() };
        tc.index();
        tc
    }
    /// The resulting configuration; none: no pacing.
    pub const fn config(&self) -> Option<&PacingConfig> {
        self.config.as_ref()
    }
    /// Notes about commands that may not mean what the user intended.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Runs one command, with or without a leading `tc`.
    ///
    /// # Errors
    /// The error and the word at which it is. The configuration is unchanged.
    pub fn apply(&mut self, words: &[String]) -> Result<(), TcError> {
        self.run(&TcLine { number: 0, words: words.to_vec() })
    }

    /// Runs the commands of a text, one per line, up to the first error. `\` at the end of a line continues
    /// it, `#` begins a comment. Returns the number of commands.
    ///
    /// # Errors
    /// Like [`apply`](Self::apply), with the line number.
    pub fn apply_text(&mut self, text: &str) -> Result<usize, TcError> {
        let lines = words::lines(text);
        for line in &lines {
            self.run(line)?;
        }
        Ok(lines.len())
    }

    fn run(&mut self, line: &TcLine) -> Result<(), TcError> {
        let before = (self.device.clone(), self.major);
        let done = self.command(line);
        if done.is_err() {
            (self.device, self.major) = before;
        }
        done
    }

    fn command(&mut self, line: &TcLine) -> Result<(), TcError> {
        let mut words = Words::new(line);
        if line.words.len() > MAX_WORDS {
            return Err(words.error_at(MAX_WORDS, format!("a command has at most {MAX_WORDS} words")));
        }
        words.take("tc");
        let object = words.next("qdisc, class or filter")?;
        let object = match abbreviated(object, &["qdisc", "class", "filter"]) {
            Some(object) => object,
            None if object.starts_with('-') => {
                let problem = "pacing has no options of tc here; `farpace pacing tc --batch FILE` reads many \
                               commands, \
                           `farpace pacing show` shows the configuration, and with -s its counters";
                return Err(words.error(problem));
            }
            None if matches!(object, "action" | "actions" | "chain" | "monitor" | "exec") => {
                return Err(words.not_here("the objects are qdisc, class and filter"));
            }
            None => return Err(words.unknown(&["qdisc", "class", "filter"])),
        };
        let verb = verb(&mut words)?;
        match object {
            "qdisc" => self.qdisc(verb, &mut words),
            "class" => self.class(verb, &mut words),
            _ => self.filter(verb, &mut words),
        }
    }

    /// Reads the name of the device, after `dev`. It must be the same in all commands.
    fn device(&mut self, words: &mut Words<'_>) -> Result<(), TcError> {
        let name = words.next("the name of a device, like eth0")?;
        match &self.device {
            Some(known) if known != name => Err(words.error(format!(
                "these commands are for `{known}`: a configuration is for one device; use another file for \
                 `{name}`"
            ))),
            _ => {
                self.device = Some(name.to_owned());
                Ok(())
            }
        }
    }

    /// The configuration, if the device has a root.
    fn rooted(&mut self, words: &Words<'_>) -> Result<&mut PacingConfig, TcError> {
        let problem = "there is no root yet: begin with `tc qdisc add dev eth0 root handle 1: edf`";
        self.config.as_mut().ok_or_else(|| words.error_at(0, problem))
    }

    /// Reads the handle of the root.
    fn parent_root(&mut self, words: &mut Words<'_>) -> Result<(), TcError> {
        let major = words.value("the root's handle, like 1:", units::handle)?;
        match self.major {
            Some(known) if known != major => {
                Err(words.error(format!("there is no qdisc {major:x}: (the root is {known:x}:)")))
            }
            _ => {
                self.major = Some(major);
                Ok(())
            }
        }
    }

    /// Reads the identifier of an existing class, and returns its index.
    fn known_class(&self, words: &mut Words<'_>) -> Result<usize, TcError> {
        let word = words.next("a class, like 1:3")?;
        if let Some(index) = self.indices.get(word) {
            return Ok(*index);
        }
        let name = units::class(word).map(units::name).map_err(|problem| words.error(problem))?;
        self.indices.get(&name).copied().ok_or_else(|| {
            let first: Vec<&str> = self.indices.keys().take(20).map(String::as_str).collect();
            let known = if first.is_empty() { "none yet".to_owned() } else { first.join(", ") };
            words.error(format!("there is no class {name}; classes: {known}"))
        })
    }

    /// Derives the other fields from the configuration.
    fn index(&mut self) {
        self.indices.clear();
        self.lowest_assigned = None;
        let Some(config) = &self.config else {
            self.major = None;
            return;
        };
        self.indices =
            config.classes.iter().enumerate().map(|(at, class)| (class.name.clone(), at)).collect();
        let mut names = config.classes.iter().map(|class| &class.name).chain(&config.default);
        self.major = self.major.or_else(|| names.find_map(|name| units::class(name).ok()).map(|id| id.0));
        let priorities = config.filters.iter().map(|filter| filter.priority);
        self.lowest_assigned = priorities.filter(|priority| *priority >= filter::MIN_ASSIGNED).min();
    }
}

/// The `tc` kind of a scheduler, for its root and its classes.
const fn kind(scheduler: SchedulerKind) -> &'static str {
    match scheduler {
        SchedulerKind::Edf => "edf",
        SchedulerKind::Psp => "psp",
        SchedulerKind::TokenBucket => "htb",
        SchedulerKind::Fq => "fq",
        SchedulerKind::Fifo => "pfifo",
    }
}

fn verb(words: &mut Words<'_>) -> Result<Verb, TcError> {
    let word = words.next("add, change, replace or delete")?;
    match abbreviated(word, &["add", "delete", "change", "replace", "show", "list"]) {
        Some("add") => Ok(Verb::Add),
        Some("change") => Ok(Verb::Change),
        Some("replace") => Ok(Verb::Replace),
        Some("delete") => Ok(Verb::Delete),
        Some(_) => {
            Err(words.error("`farpace pacing show` shows the configuration, and with -s its counters"))
        }
        None if word == "chg" => Ok(Verb::Change),
        None if matches!(word, "ls" | "get" | "link") => Err(words.not_here(
            "the verbs are add, change, replace and delete; `farpace pacing show` shows the configuration",
        )),
        None => Err(words.unknown(&["add", "change", "replace", "delete"])),
    }
}

/// The name that `word` abbreviates.
fn abbreviated<'a>(word: &str, names: &[&'a str]) -> Option<&'a str> {
    names.iter().find(|name| !word.is_empty() && name.starts_with(word)).copied()
}

#[cfg(test)]
mod tests;
