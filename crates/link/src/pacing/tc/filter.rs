//! `tc filter`.

use super::selector::{Family, Selector};
use super::words::{TcError, Words};
use super::{Tc, Verb, units};
use crate::pacing::{ClassFilter, MAX_FILTERS};
use farpace_path::Prefix;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Priorities that Linux assigns to filters without one: descending, so that the latest of these filters is
/// evaluated first, after all filters with lower values.
pub(super) const MIN_ASSIGNED: u16 = 0x8000;
const MAX_ASSIGNED: u16 = 0xc000;

/// Classifiers of Linux that are not supported.
const OTHERS: [&str; 8] = ["basic", "bpf", "cgroup", "flow", "fw", "route", "rsvp", "tcindex"];
const KINDS: [&str; 3] = ["u32", "flower", "matchall"];

impl Tc {
    /// `tc filter`, after the verb.
    pub(super) fn filter(&mut self, verb: Verb, words: &mut Words<'_>) -> Result<(), TcError> {
        let (mut family, mut priority) = (None, None);
        let kind = loop {
            if words.peek().is_none() && verb == Verb::Delete {
                break None;
            }
            match words.next("parent, protocol, pref, and what the filter is, like u32")? {
                "dev" => self.device(words)?,
                "root" => {}
                "parent" => {
                    if self.indices.contains_key(words.peek().unwrap_or_default()) {
                        words.next("")?;
                        return Err(
                            words.error("filters have the root as parent: expected its handle, like 1:")
                        );
                    }
                    self.parent_root(words)?;
                }
                "protocol" | "proto" => {
                    let value = protocol(words)?;
                    words.once(&mut family, value, "protocol")?;
                }
                "pref" | "prio" | "preference" | "priority" => {
                    let value =
                        words.value("a number from 1 to 65535", |text| units::number(text, u16::MAX))?;
                    words.once(&mut priority, value, "pref")?;
                }
                "handle" => {
                    return Err(words.not_here("filters are identified by `pref` and their match"));
                }
                "ingress" | "egress" | "block" | "chain" | "estimator" => {
                    return Err(words.not_here("only what leaves a device is paced"));
                }
                kind => break Some(kind),
            }
        };
        self.rooted(words)?;
        let Some(kind) = kind else { return self.delete_filters(priority, words) };
        let family = family.unwrap_or(Family::All);
        let mut selector = Selector::new(family);
        let class = match kind {
            "u32" => self.u32(&mut selector, words)?,
            "flower" => self.flower(&mut selector, words)?,
            "matchall" => self.class_of(words, |_, words| Err(words.unknown(&["classid"])))?,
            other if OTHERS.contains(&other) => {
                return Err(words.not_here(&format!("the kinds of filters are {}", KINDS.join(", "))));
            }
            _ => return Err(words.unknown(&KINDS)),
        };
        let mut filter = selector.filter();
        filter.priority = priority.unwrap_or(0);
        // A family without an address.
        match selector.family {
            Family::V4 if filter.src.or(filter.dst).is_none() => {
                filter.src = whole(Ipv4Addr::UNSPECIFIED.into())
            }
            Family::V6 if filter.src.or(filter.dst).is_none() => {
                filter.src = whole(Ipv6Addr::UNSPECIFIED.into())
            }
            _ => {}
        }
        self.put_filter(verb, filter, priority.is_some(), class, words)
    }

    fn put_filter(
        &mut self,
        verb: Verb,
        mut filter: ClassFilter,
        has_priority: bool,
        class: Option<usize>,
        words: &Words<'_>,
    ) -> Result<(), TcError> {
        let same = |other: &ClassFilter| {
            let class = filter.class.clone();
            let priority = if has_priority { filter.priority } else { other.priority };
            ClassFilter { class, priority, ..other.clone() } == ClassFilter { priority, ..filter.clone() }
        };
        let lowest = self.lowest_assigned;
        let config = self.rooted(words)?;
        let found = match verb {
            Verb::Add => None,
            _ => config.filters.iter().position(same),
        };
        if verb == Verb::Delete {
            let at = found.ok_or_else(|| words.error("there is no such filter"))?;
            config.filters.remove(at);
            self.index();
            return Ok(());
        }
        let class = class.and_then(|at| config.classes.get(at)).map(|class| class.name.clone());
        let Some(class) = class else {
            return Err(
                words.error("the filter has no class: expected `classid`, like `classid 1:3`, after this")
            );
        };
        if let Some(filter) = found.and_then(|at| config.filters.get_mut(at)) {
            filter.class = class;
            return Ok(());
        }
        if verb == Verb::Change {
            return Err(words.error("there is no such filter: `add` makes one"));
        }
        if config.filters.len() >= MAX_FILTERS {
            return Err(words.error(format!("a device has at most {MAX_FILTERS} filters")));
        }
        filter.class = class;
        if !has_priority {
            filter.priority = lowest.map_or(MAX_ASSIGNED, |lowest| (lowest - 1).max(MIN_ASSIGNED));
        }
        let priority = filter.priority;
        config.filters.push(filter);
        if priority >= MIN_ASSIGNED {
            self.lowest_assigned = Some(lowest.map_or(priority, |lowest| lowest.min(priority)));
        }
        Ok(())
    }

    /// Deletes all filters, or those of a priority.
    fn delete_filters(&mut self, priority: Option<u16>, words: &Words<'_>) -> Result<(), TcError> {
        let filters = &mut self.rooted(words)?.filters;
        let before = filters.len();
        filters.retain(|filter| priority.is_some_and(|priority| filter.priority != priority));
        if let Some(priority) = priority.filter(|_| filters.len() == before) {
            return Err(words.error(format!("there is no filter of pref {priority}")));
        }
        self.index();
        Ok(())
    }

    /// Parses the match of a filter with `one`, up to the class and the end.
    fn class_of(
        &mut self,
        words: &mut Words<'_>,
        mut one: impl FnMut(&str, &mut Words<'_>) -> Result<(), TcError>,
    ) -> Result<Option<usize>, TcError> {
        let mut class = None;
        while words.peek().is_some() {
            match words.next("classid")? {
                "classid" | "flowid" => {
                    let index = self.known_class(words)?;
                    words.once(&mut class, index, "classid")?;
                }
                "action" | "police" | "indev" | "skip_hw" | "skip_sw" => {
                    return Err(words.not_here("a filter selects a class and does nothing else"));
                }
                word => one(word, words)?,
            }
        }
        Ok(class)
    }

    fn u32(&mut self, selector: &mut Selector, words: &mut Words<'_>) -> Result<Option<usize>, TcError> {
        let mut any = false;
        let class = self.class_of(words, |word, words| match word {
            "match" => {
                any = true;
                selector.match_u32(words)
            }
            "divisor" | "ht" | "hashkey" | "link" | "offset" | "order" | "sample" => {
                Err(words.not_here("filters need no hash tables"))
            }
            _ => Err(words.unknown(&["match", "classid", "flowid"])),
        })?;
        match any {
            true => Ok(class),
            false => {
                Err(words
                    .error("the filter matches nothing: expected `match`, like `match ip dst 10.0.0.0/8`"))
            }
        }
    }

    fn flower(&mut self, selector: &mut Selector, words: &mut Words<'_>) -> Result<Option<usize>, TcError> {
        self.class_of(words, |word, words| selector.match_flower(word, words))
    }
}

/// The family after `protocol`.
fn protocol(words: &mut Words<'_>) -> Result<Family, TcError> {
    match words.next("ip, ipv6 or all")? {
        "ip" | "ipv4" | "0x800" | "0x0800" => Ok(Family::V4),
        "ipv6" | "ip6" | "0x86dd" => Ok(Family::V6),
        "all" => Ok(Family::All),
        "arp" | "802.1q" | "802.1Q" | "802.1ad" | "mpls_uc" => {
            Err(words.not_here("filters match IP, also below VLAN tags: expected ip, ipv6 or all"))
        }
        _ => Err(words.unknown(&["ip", "ipv6", "all"])),
    }
}

fn whole(address: IpAddr) -> Option<Prefix> {
    Prefix::new(address, 0).ok()
}
