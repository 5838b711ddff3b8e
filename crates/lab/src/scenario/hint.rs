//! Texts of errors: the nearest valid word, the expected form, and the meaning of a key, from the schema.

use super::fault::FaultKind;
use super::impairment::INFOS;
use super::nearest::{list, nearest};
use super::place::DocumentStep;
use serde_json::Value;

/// Message and hint for what is wrong at `path`; `found` describes what is there.
pub(super) fn describe(kind: &FaultKind, path: &[DocumentStep], found: &str) -> (String, Option<String>) {
    match kind {
        FaultKind::Message(message) => (message.clone(), None),
        FaultKind::Value(message) => {
            let advice = unit_advice(message).or_else(|| about(path));
            (message.clone(), advice)
        }
        FaultKind::Type { expected } => {
            let form = at(path).and_then(|s| s.form()).unwrap_or_else(|| expected.clone());
            (format!("expected {form}, found {found}"), about(path))
        }
        FaultKind::Length { len, expected } => {
            let expected = expected.replace("an array of length", "a list of");
            (format!("expected {expected}, found {len}"), about(path))
        }
        FaultKind::UnknownWord { word, valid } => {
            let near = nearest(word, valid).map(|n| format!("did you mean \"{n}\"?\n"));
            (
                format!("unknown word \"{word}\""),
                Some(format!("{}valid here: {}", near.unwrap_or_default(), list(valid))),
            )
        }
        FaultKind::UnknownKey { key, valid } => {
            (format!("unknown key `{key}`"), Some(key_advice(key, valid)))
        }
        FaultKind::Missing { key } => {
            let mut child = path.to_vec();
            child.push(DocumentStep::from(*key));
            let table = match path.last() {
                None => "the scenario".to_string(),
                Some(DocumentStep::Key(k)) => format!("`{k}`"),
                Some(DocumentStep::Index(_)) => "this entry".to_string(),
            };
            let form = at(&child).and_then(|s| s.form()).map(|f| format!("\nwrite {f}")).unwrap_or_default();
            (format!("{table} has no `{key}`"), about(&child).map(|a| format!("{a}{form}")))
        }
    }
}

fn key_advice(key: &str, valid: &[&str]) -> String {
    if let Some(near) = nearest(key, valid) {
        return format!("did you mean `{near}`?");
    }
    let tables = tables_with(key);
    let elsewhere = if tables.is_empty() {
        String::new()
    } else {
        format!("`{key}` belongs to {}\n", tables.join(" or "))
    };
    if valid.is_empty() {
        return format!("{elsewhere}this table takes no keys");
    }
    format!("{elsewhere}valid here: {}", list(valid))
}

/// The tables of a scenario by an example of their path, and as messages call them. Impairments are not here:
/// they have their own list.
const TABLES: [(&str, &str); 19] = [
    ("", "the top of the file"),
    ("hosts.a", "a host"),
    ("hosts.a.multi_nic", "`multi_nic` of a host"),
    ("hosts.a.processor", "`processor` of a host"),
    ("hosts.a.stalls.0", "`stalls` of a host"),
    ("switches.a", "a switch"),
    ("links.0", "a link"),
    ("links.0.forward", "`forward` or `backward` of a link"),
    ("links.0.aqm", "`aqm` of a link, or of its `forward` or `backward`"),
    ("links.0.aqm.red", "`red` in `aqm` of a link"),
    ("links.0.aqm.codel", "`codel` in `aqm` of a link"),
    ("links.0.aqm.fq_codel", "`fq_codel` in `aqm` of a link"),
    ("links.0.schedule", "`schedule` of a link, or of its `forward` or `backward`"),
    ("links.0.schedule.steps.0", "`steps` in `schedule` of a link"),
    ("links.0.forward.pacing", "`pacing` in `forward` or `backward` of a link"),
    ("links.0.forward.pacing.classes.0", "`classes` in `pacing`"),
    ("links.0.forward.pacing.filters.0", "`filters` in `pacing`"),
    ("flows.0", "a flow"),
    ("trace", "`trace`"),
];

/// The tables that have `key`, as messages call them.
fn tables_with(key: &str) -> Vec<String> {
    let tables = TABLES.iter().map(|(path, words)| ((*path).to_owned(), (*words).to_owned()));
    let impairments = INFOS.iter().map(|(impairment, _)| {
        let words = format!("`{impairment}` in `forward` or `backward` of a link");
        (format!("links.0.forward.{impairment}"), words)
    });
    let settings = ("flows.0.sender".to_owned(), "`sender` or `receiver` of a flow".to_owned());
    let all = tables.chain(impairments).chain([settings]);
    all.filter(|(path, _)| has_key(path, key)).map(|(_, words)| words).collect()
}

/// True if the table at the dotted `path` has `key`. The path of a list stands for its entries.
fn has_key(path: &str, key: &str) -> bool {
    let mut steps: Vec<DocumentStep> = path
        .split('.')
        .filter(|step| !step.is_empty())
        .map(|step| step.parse::<usize>().map_or_else(|_| DocumentStep::from(step), DocumentStep::from))
        .collect();
    if at(&steps).is_some_and(|value| value.schema.get("items").is_some()) {
        steps.push(DocumentStep::from(0));
    }
    let properties = at(&steps).and_then(|value| value.schema.get("properties").cloned());
    properties.is_some_and(|properties| properties.get(key).is_some())
}

/// Common other spellings of units, and ours.
const UNITS: [(&str, &str); 24] = [
    ("bps", "bit/s"),
    ("kbps", "kbit/s"),
    ("mbps", "Mbit/s"),
    ("gbps", "Gbit/s"),
    ("kb/s", "kbit/s"),
    ("mb/s", "Mbit/s"),
    ("gb/s", "Gbit/s"),
    ("kbit", "kbit/s"),
    ("mbit", "Mbit/s"),
    ("gbit", "Gbit/s"),
    ("mbit/s", "Mbit/s"),
    ("gbit/s", "Gbit/s"),
    ("bytes", "B"),
    ("kb", "kB"),
    ("mb", "MB"),
    ("gb", "GB"),
    ("usec", "us"),
    ("\u{b5}s", "us"),
    ("msec", "ms"),
    ("sec", "s"),
    ("seconds", "s"),
    ("minutes", "min"),
    ("pkts", "packets"),
    ("segments", "packets"),
];

/// The hint for a unit that a quantity does not have: the message contains the unit and the valid ones.
fn unit_advice(message: &str) -> Option<String> {
    let unit = message.strip_prefix("unknown unit `")?.split('`').next()?.to_lowercase();
    let (_, takes) = message.split_once(" takes one of ")?;
    let known: Vec<&str> = takes.split(", ").collect();
    let ours = UNITS.iter().find(|(theirs, ours)| *theirs == unit && known.contains(ours))?;
    Some(format!("did you mean `{}`?", ours.1))
}

/// The meaning of the key at the end of `path`.
fn about(path: &[DocumentStep]) -> Option<String> {
    let doc = at(path)?.doc?;
    let key = path.iter().rev().find_map(|s| match s {
        DocumentStep::Key(k) => Some(k),
        DocumentStep::Index(_) => None,
    })?;
    Some(format!("`{key}`: {}", doc.split_whitespace().collect::<Vec<_>>().join(" ")))
}

/// The schema of a value.
struct Described {
    doc: Option<String>,
    schema: Value,
}

fn at(path: &[DocumentStep]) -> Option<Described> {
    let root = super::schema();
    let mut here = &root;
    let mut doc = None;
    for step in path {
        let table = resolve(&root, here)?;
        here = match step {
            DocumentStep::Key(k) => table
                .get("properties")
                .and_then(|p| p.get(k))
                .or_else(|| table.get("additionalProperties"))?,
            DocumentStep::Index(_) => table.get("items")?,
        };
        // An element of a list is described by its list.
        doc = here.get("description").and_then(Value::as_str).map(str::to_string).or(doc);
    }
    Some(Described { doc, schema: resolve(&root, here)?.clone() })
}

/// Follows references, and `anyOf` to the alternative that is not null.
fn resolve<'a>(root: &'a Value, mut here: &'a Value) -> Option<&'a Value> {
    // The schema nests references at most twice.
    for _ in 0..8 {
        if let Some(target) = here.get("$ref").and_then(Value::as_str) {
            here = root.pointer(target.strip_prefix('#')?)?;
        } else if let Some(any) = here.get("anyOf").and_then(Value::as_array) {
            here = any.iter().find(|a| a.get("type").and_then(Value::as_str) != Some("null"))?;
        } else {
            return Some(here);
        }
    }
    None
}

impl Described {
    /// The form of such a value.
    fn form(&self) -> Option<String> {
        let get = |key: &str| self.schema.get(key);
        if get("pattern").is_some() {
            return get("description").and_then(Value::as_str).map(str::to_string);
        }
        if get("format").and_then(Value::as_str) == Some("ip") {
            return Some("an IP address, like \"10.0.0.1\" or \"2001:db8::1\"".to_string());
        }
        if let Some(one_of) = get("oneOf").and_then(Value::as_array) {
            let words: Vec<&str> =
                one_of.iter().filter_map(|w| w.get("const").and_then(Value::as_str)).collect();
            return Some(format!("one of {}", list(&words)));
        }
        let kind = match get("type")? {
            Value::Array(kinds) => kinds.first()?.as_str()?,
            kind => kind.as_str()?,
        };
        let range = match (get("minimum"), get("maximum")) {
            (Some(low), Some(high)) => format!(" from {low} to {high}"),
            (Some(low), None) => format!(" from {low}"),
            _ => String::new(),
        };
        Some(match kind {
            "string" => "a text in quotes".to_string(),
            "integer" => format!("a whole number{range}"),
            "number" => format!("a number{range}"),
            "boolean" => "true or false".to_string(),
            "array" => "a list".to_string(),
            "object" => "a table".to_string(),
            _ => return None,
        })
    }
}
