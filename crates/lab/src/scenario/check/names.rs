//! Rules of names: their form, and that each is unique. Names that links and flows refer to.

use super::super::MAX_NAME;
use super::super::document::DocumentStep;
use super::super::nearest::list;
use super::{Checker, steps};
use std::collections::BTreeMap;

impl Checker<'_> {
    /// Names have the right form and are unique.
    pub(super) fn names(&mut self) {
        let s = self.s;
        let mut taken: BTreeMap<&str, &str> = BTreeMap::new();
        for (table, kind, name) in s.hosts.keys().map(|n| ("hosts", "host", n)).chain(s.forwarders()) {
            if let Some(why) = bad_name(name) {
                self.key(steps![table, name.as_str()], why).hint(NAME_RULE);
            }
            if let Some(other) = taken.insert(name, kind) {
                self.key(steps![table, name.as_str()], format!("`{name}` is the name of a {other} too"));
            }
        }
        let mut flows: BTreeMap<&str, &str> = BTreeMap::new();
        let links = s.links.iter().enumerate().map(|(i, l)| ("links", i, &l.name));
        let named = links.chain(s.flows.iter().enumerate().map(|(i, f)| ("flows", i, &f.name)));
        for (table, i, name) in named {
            if let Some(why) = bad_name(name) {
                self.value(steps![table, i, "name"], why).hint(NAME_RULE);
            }
            let (taken, kind) = if table == "links" { (&mut taken, "link") } else { (&mut flows, "flow") };
            if let Some(other) = taken.insert(name, kind) {
                self.value(steps![table, i, "name"], format!("`{name}` is the name of another {other}"))
                    .hint("every name must be unique");
            }
        }
    }

    /// The names that links and flows refer to.
    pub(super) fn references(&mut self) {
        let s = self.s;
        let hosts: Vec<&str> = s.hosts.keys().map(String::as_str).collect();
        let between = s.forwarders().map(|(.., name)| name.as_str());
        let nodes: Vec<&str> = hosts.iter().copied().chain(between).collect();
        for (i, link) in s.links.iter().enumerate() {
            for (end, name) in link.between.iter().enumerate() {
                if !nodes.contains(&name.as_str()) {
                    self.value(
                        steps!["links", i, "between", end],
                        format!("no host, router or switch is called `{name}`"),
                    )
                    .hint_nearest(name, &nodes);
                }
            }
            if link.between[0] == link.between[1] {
                let (link, node) = (&link.name, &link.between[0]);
                self.value(
                    steps!["links", i, "between"],
                    format!("link `{link}` goes from `{node}` to itself"),
                );
            }
        }
        for (i, flow) in s.flows.iter().enumerate() {
            for (key, name) in [("from", &flow.from), ("to", &flow.to)] {
                if let Some(kind) = s.forwarder_kind(name) {
                    self.value(
                        steps!["flows", i, key],
                        format!("`{name}` is a {kind}; flows are between hosts"),
                    )
                    .hint(format!("hosts: {}", list(&hosts)));
                } else if !hosts.contains(&name.as_str()) {
                    self.value(steps!["flows", i, key], format!("no host is called `{name}`"))
                        .hint_nearest(name, &hosts);
                }
            }
        }
    }
}

pub(super) const NAME_RULE: &str =
    "a name begins with a letter and has letters, digits, `-` and `_`, 32 at most";

/// What is wrong with a name.
pub(super) fn bad_name(name: &str) -> Option<String> {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() {
        return Some("the name is empty".to_string());
    }
    if name.chars().count() > MAX_NAME
        || !name.chars().all(legal)
        || !name.starts_with(|c: char| c.is_ascii_alphabetic())
    {
        let shown: String = name.chars().take(MAX_NAME).collect();
        return Some(format!("`{}` cannot be a name", shown.escape_debug()));
    }
    None
}
