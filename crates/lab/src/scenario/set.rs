//! `--set path=value`: replaces values in the tree before it is read.

use super::document::{DocumentEntry, DocumentNode, DocumentValue, parse_value};
use super::fault::ScenarioFault;
use super::nearest::{list, nearest};
use super::place::Origin;

/// Puts `value` at the dotted `path`. Missing tables of the path are made; reading refuses them afterwards if
/// they are not known. `index` is the number of the override, for messages.
pub(super) fn apply(
    root: &mut DocumentNode,
    index: usize,
    path: &str,
    value: &str,
) -> Result<(), ScenarioFault> {
    let origin = Origin::Set(index);
    let node = parse_value(value, &origin);
    let digits = value.trim().trim_start_matches(['+', '-']);
    let is_long = digits.len() >= 19 && digits.bytes().all(|byte| byte.is_ascii_digit());
    if node.is_none() && is_long {
        return Err(ScenarioFault::syntax(format!("the number {value} is beyond 2^63"), origin));
    }
    let node = node.unwrap_or_else(|| DocumentNode {
        origin: origin.clone(),
        value: DocumentValue::String(value.to_string()),
    });
    let steps: Vec<&str> = path.split('.').map(str::trim).collect();
    if steps.iter().any(|s| s.is_empty()) || steps.len() > MAX_STEPS {
        return Err(ScenarioFault::syntax(format!("`{path}` is not a path"), origin)
            .with_hint("a path is words with dots between, like `links.wan.delay` or `flows.0.size`"));
    }
    put(root, &steps, &[], &node, &origin)
}

/// Deepest path. The deepest key of a scenario has six steps.
const MAX_STEPS: usize = 16;

fn put(
    at: &mut DocumentNode,
    steps: &[&str],
    done: &[&str],
    node: &DocumentNode,
    origin: &Origin,
) -> Result<(), ScenarioFault> {
    let Some((step, rest)) = steps.split_first() else {
        *at = node.clone();
        return Ok(());
    };
    let walked = [done, &[*step]].concat();
    let here = if done.is_empty() { "the scenario".to_string() } else { format!("`{}`", done.join(".")) };
    let kind = at.describe();
    match &mut at.value {
        DocumentValue::Array(items) => {
            if *step == "*" {
                return items.iter_mut().try_for_each(|item| put(item, rest, &walked, node, origin));
            }
            let names: Vec<String> =
                items.iter().map(|i| name_of(i).unwrap_or_default().to_string()).collect();
            let by_name = names.iter().position(|n| n == step);
            let found = by_name.or_else(|| step.parse().ok().filter(|i| *i < items.len()));
            match found.and_then(|i| items.get_mut(i)) {
                Some(item) => put(item, rest, &walked, node, origin),
                None => {
                    let fault =
                        ScenarioFault::syntax(format!("{here} has no element `{step}`"), origin.clone());
                    let known: Vec<&str> =
                        names.iter().map(String::as_str).filter(|n| !n.is_empty()).collect();
                    Err(fault.with_hint(match (nearest(step, &known), items.len()) {
                        (Some(n), _) => format!("did you mean `{n}`?"),
                        (None, 0) => "the list is empty".to_string(),
                        (None, n) if known.is_empty() => format!("elements are numbered 0 to {}", n - 1),
                        (None, n) => format!("there are {}, or 0 to {}, or `*` for all", list(&known), n - 1),
                    }))
                }
            }
        }
        DocumentValue::Table(entries) => {
            if *step == "*" {
                return entries.iter_mut().try_for_each(|e| put(&mut e.node, rest, &walked, node, origin));
            }
            if let Some(entry) = entries.iter_mut().find(|e| e.key == *step) {
                return put(&mut entry.node, rest, &walked, node, origin);
            }
            // Nodes cannot be added here: a node without a link is of no use.
            if let ["hosts" | "routers" | "switches"] = done {
                let known: Vec<&str> = entries.iter().map(|e| e.key.as_str()).collect();
                let fault = ScenarioFault::syntax(format!("{here} has no `{step}`"), origin.clone());
                return Err(match nearest(step, &known) {
                    Some(n) => fault.with_hint(format!("did you mean `{n}`?")),
                    None => fault.with_hint(format!("there are {}", list(&known))),
                });
            }
            let mut made = DocumentNode { origin: origin.clone(), value: DocumentValue::Table(Vec::new()) };
            put(&mut made, rest, &walked, node, origin)?;
            entries.push(DocumentEntry { key: step.to_string(), key_origin: origin.clone(), node: made });
            Ok(())
        }
        _ => Err(ScenarioFault::syntax(format!("{here} is {kind}: it has no `{step}`"), origin.clone())),
    }
}

/// The places of the tree that a path stands for, with the numbers of elements in place of their names.
pub(super) fn places(root: &DocumentNode, path: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let steps: Vec<&str> = path.split('.').map(str::trim).collect();
    if steps.len() <= MAX_STEPS {
        walk(Some(root), &steps, &mut Vec::new(), &mut found);
    }
    found
}

fn walk(at: Option<&DocumentNode>, steps: &[&str], done: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    let Some((step, rest)) = steps.split_first() else {
        found.push(done.clone());
        return;
    };
    let mut below: Vec<(String, Option<&DocumentNode>)> = match at.map(|node| &node.value) {
        Some(DocumentValue::Array(items)) => {
            let named = items.iter().position(|item| name_of(item) == Some(step));
            let is_meant = |i: usize| match named {
                Some(named) => i == named,
                None => *step == "*" || step.parse() == Ok(i),
            };
            let items = items.iter().enumerate().filter(|(i, _)| is_meant(*i));
            items.map(|(i, item)| (i.to_string(), Some(item))).collect()
        }
        Some(DocumentValue::Table(entries)) => {
            let meant = entries.iter().filter(|entry| *step == "*" || entry.key == *step);
            meant.map(|entry| (entry.key.clone(), Some(&entry.node))).collect()
        }
        _ => Vec::new(),
    };
    if below.is_empty() {
        below.push(((*step).to_owned(), None));
    }
    for (name, node) in below {
        done.push(name);
        walk(node, rest, done, found);
        done.pop();
    }
}

fn name_of(node: &DocumentNode) -> Option<&str> {
    match &node.child(&"name".into())?.value {
        DocumentValue::String(s) => Some(s),
        _ => None,
    }
}
