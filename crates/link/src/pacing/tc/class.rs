//! `tc class`, and `tc qdisc` below a class.

use super::root::{default_bytes, is_kind_of};
use super::words::{TcError, Words};
use super::{Tc, Verb, kind as kind_of, units};
use crate::pacing::{ClassConfig, ClassRate};
use farpace_path::QueueLimit;

impl Tc {
    /// `tc class`, after the verb.
    pub(super) fn class(&mut self, verb: Verb, words: &mut Words<'_>) -> Result<(), TcError> {
        let (mut name, mut place, mut below) = (None, 0, false);
        let kind = loop {
            if words.peek().is_none() && verb == Verb::Delete && name.is_some() {
                break None;
            }
            match words.next("parent, classid, and what the class is, like edf")? {
                "dev" => self.device(words)?,
                "root" => below = true,
                "parent" => {
                    let word = words.peek().unwrap_or_default();
                    if self.indices.contains_key(word) || units::class(word).is_ok() {
                        words.next("")?;
                        let root = self.major.unwrap_or(1);
                        return Err(
                            words.error(format!("classes have the root as parent: expected `{root:x}:`"))
                        );
                    }
                    self.parent_root(words)?;
                    below = true;
                }
                "classid" => {
                    let id = words.next("a class, like 1:3")?;
                    place = words.place();
                    words.once(&mut name, self.class_name(id, words)?, "classid")?;
                }
                "estimator" => return Err(words.not_here("`farpace pacing show -s` has counters")),
                kind => break Some(kind),
            }
        };
        let Some(name) = name else {
            return Err(words.error("expected `classid`, like `classid 1:3`, before this word"));
        };
        let scheduler = self.rooted(words)?.scheduler;
        let at = self.indices.get(&name).copied();
        if verb == Verb::Delete {
            let at = at.ok_or_else(|| words.error_at(place, format!("there is no class {name}")))?;
            return self.delete_class(at, words, place);
        }
        if !below && at.is_none() && verb != Verb::Change {
            return Err(words.error_at(place, "expected `parent` with the root's handle, like `parent 1:`"));
        }
        if kind.is_some_and(|word| !is_kind_of(word, scheduler)) {
            let kind = kind_of(scheduler);
            return Err(
                words.error(format!("the root is `{kind}`, and so are its classes: expected `{kind}`"))
            );
        }
        match (verb, at) {
            (Verb::Add, Some(_)) => {
                return Err(
                    words.error_at(place, format!("there is a class {name} already: `change` changes it"))
                );
            }
            (Verb::Change, None) => {
                return Err(words.error_at(place, format!("there is no class {name}: `add` makes one")));
            }
            _ => {}
        }
        let rate = self.rate(words)?;
        let classes = &mut self.rooted(words)?.classes;
        match at.and_then(|at| classes.get_mut(at)) {
            Some(class) => class.rate = rate,
            None => {
                classes.push(ClassConfig { name: name.clone(), rate, limit: None });
                let at = classes.len() - 1;
                self.indices.insert(name, at);
            }
        }
        Ok(())
    }

    /// The name of a class, which may be new.
    fn class_name(&mut self, word: &str, words: &Words<'_>) -> Result<String, TcError> {
        if self.indices.contains_key(word) {
            return Ok(word.to_owned());
        }
        let id = units::class(word).map_err(|problem| words.error(problem))?;
        match self.major {
            Some(root) if root != id.0 => {
                Err(words
                    .error(format!("the root is {root:x}:, so this would be {}", units::name((root, id.1)))))
            }
            _ => {
                self.major = Some(id.0);
                Ok(units::name(id))
            }
        }
    }

    /// `rate R`, `mode normal` or `mode connection`.
    fn rate(&mut self, words: &mut Words<'_>) -> Result<Option<ClassRate>, TcError> {
        const VALID: [&str; 2] = ["rate", "mode"];
        let (mut rate, mut mode, mut ceil) = (None, None, None);
        while words.peek().is_some() {
            match words.next("an option")? {
                "rate" => {
                    let text = words.peek().unwrap_or_default().to_owned();
                    let value = words.value("a rate, like 500mbit", units::rate)?;
                    words.once(&mut rate, value, "rate")?;
                    if units::counts_bytes(&text) && self.notes.is_empty() {
                        self.notes.push(format!("tc counts bytes in `{text}`: that is {value}"));
                    }
                }
                "mode" => {
                    let value = match words.next("normal or connection")? {
                        "normal" => None,
                        "connection" => Some(ClassRate::Connection),
                        _ => return Err(words.unknown(&["normal", "connection"])),
                    };
                    words.once(&mut mode, value, "mode")?;
                }
                "ceil" => {
                    let value = words.value("a rate, like 500mbit", units::rate)?;
                    words.once(&mut ceil, (value, words.place()), "ceil")?;
                }
                "burst" | "buffer" | "maxburst" => {
                    return Err(
                        words.not_here("all buckets of a device have one size: set `burst` of the root")
                    );
                }
                "cburst" | "cbuffer" | "cmaxburst" | "prio" | "quantum" | "mpu" | "overhead"
                | "linklayer" => {
                    return Err(words.not_here("a class has `rate` or `mode`"));
                }
                _ => return Err(words.unknown(&VALID)),
            }
        }
        match (ceil, rate) {
            (Some((ceil, _)), Some(rate)) if ceil == rate => {}
            (Some((_, at)), _) => {
                return Err(
                    words.error_at(at, "classes do not borrow from each other: `ceil` must equal the rate")
                );
            }
            (None, _) => {}
        }
        match (rate, mode) {
            (Some(rate), None) => Ok(Some(ClassRate::Fixed(rate))),
            (None, Some(mode)) => Ok(mode),
            (Some(_), Some(_)) => Err(words.error("a class has `rate` or `mode`, not both")),
            (None, None) => {
                Err(words.error("expected `rate` with a rate, `mode normal` or `mode connection` after this"))
            }
        }
    }

    fn delete_class(&mut self, at: usize, words: &mut Words<'_>, place: usize) -> Result<(), TcError> {
        words.end(&[])?;
        let config = self.rooted(words)?;
        let Some(class) = config.classes.get(at) else { return Ok(()) };
        let filters = config.filters.iter().filter(|filter| filter.class == class.name).count();
        if filters > 0 {
            let name = &class.name;
            return Err(
                words.error_at(place, format!("{filters} filters select class {name}: delete them first"))
            );
        }
        if config.default.as_deref() == Some(class.name.as_str()) {
            return Err(words.error_at(place, format!("class {} is the default of the root", class.name)));
        }
        config.classes.remove(at);
        self.index();
        Ok(())
    }

    /// `tc qdisc` below a class: the limit of its queue.
    pub(super) fn leaf(
        &mut self,
        verb: Verb,
        at: usize,
        kind: Option<&'static str>,
        words: &mut Words<'_>,
    ) -> Result<(), TcError> {
        let place = words.place();
        let mut limit = None;
        if let Some(kind) = kind {
            if !matches!(kind, "pfifo" | "bfifo") {
                return Err(
                    words.error("the queue of a class is `pfifo` or `bfifo`: its packets stay in order")
                );
            }
            while words.peek().is_some() {
                match words.next("limit")? {
                    "limit" if kind == "bfifo" => {
                        limit = Some(QueueLimit::Bytes(words.value("a size, like 64kb", units::size)?));
                    }
                    "limit" => limit = Some(words.value("packets, like 1000", units::pfifo_limit)?),
                    _ => return Err(words.unknown(&["limit"])),
                }
            }
        }
        let config = self.rooted(words)?;
        let mtu = config.mtu;
        let Some(class) = config.classes.get_mut(at) else { return Ok(()) };
        if verb == Verb::Add && class.limit.is_some() {
            let problem = format!("class {} has a queue already: `replace` makes another", class.name);
            return Err(words.error_at(place, problem));
        }
        class.limit = match kind {
            _ if verb == Verb::Delete => None,
            Some("bfifo") => limit.or_else(|| Some(default_bytes(mtu))),
            _ => limit,
        };
        Ok(())
    }
}
