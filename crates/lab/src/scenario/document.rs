//! The TOML text as a tree in which every key and value remembers where it came from.

use super::error::{Fault, Origin};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value and its place.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub origin: Origin,
    pub value: Value,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    String(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Date(String),
    Array(Vec<Node>),
    Table(Vec<Entry>),
}

/// A key of a table and what it stands for; tables keep the order of the file.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub key: String,
    pub key_origin: Origin,
    pub node: Node,
}

/// One step from a table or an array to a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Key(String),
    Index(usize),
}

impl From<&str> for Step {
    fn from(key: &str) -> Step {
        Step::Key(key.to_string())
    }
}

impl From<usize> for Step {
    fn from(index: usize) -> Step {
        Step::Index(index)
    }
}

impl Node {
    /// The child a step leads to.
    pub fn child(&self, step: &Step) -> Option<&Node> {
        match (&self.value, step) {
            (Value::Table(entries), Step::Key(k)) => entries.iter().find(|e| e.key == *k).map(|e| &e.node),
            (Value::Array(items), Step::Index(i)) => items.get(*i),
            _ => None,
        }
    }

    /// Where the value at `path` stands; if it is not written, the nearest table around it.
    pub fn value_origin(&self, path: &[Step]) -> Origin {
        match path.split_first() {
            Some((step, rest)) => self.child(step).map_or(self.origin.clone(), |c| c.value_origin(rest)),
            None => self.origin.clone(),
        }
    }

    /// Where the key at the end of `path` stands; if it is not written, the nearest value around it.
    pub fn key_origin(&self, path: &[Step]) -> Origin {
        match path {
            [Step::Key(k)] => match &self.value {
                Value::Table(entries) => {
                    entries.iter().find(|e| e.key == *k).map_or(self.origin.clone(), |e| e.key_origin.clone())
                }
                _ => self.origin.clone(),
            },
            [step, rest @ ..] => self.child(step).map_or(self.origin.clone(), |c| c.key_origin(rest)),
            [] => self.origin.clone(),
        }
    }

    /// What it is, in words for messages.
    pub fn describe(&self) -> String {
        match &self.value {
            Value::String(s) => format!("the string {s:?}"),
            Value::Integer(i) => format!("the number {i}"),
            Value::Float(x) => format!("the number {x}"),
            Value::Boolean(b) => format!("the truth value {b}"),
            Value::Date(d) => format!("the date or time {d}"),
            Value::Array(a) if a.is_empty() => "an empty list".to_string(),
            Value::Array(_) => "a list".to_string(),
            Value::Table(_) => "a table".to_string(),
        }
    }
}

/// Reads a whole TOML text.
pub(super) fn parse(text: &str) -> Result<Node, Fault> {
    let table = DeTable::parse(text).map_err(|e| {
        let origin = e.span().map_or(Origin::File, Origin::Text);
        Fault::syntax(format!("this is not TOML: {}", e.message()), origin)
    })?;
    let span = table.span();
    from_table(table.into_inner(), span, &Origin::Text)
}

/// Reads one TOML value; none if `text` is not one. All its parts get the place `origin`.
pub(super) fn parse_value(text: &str, origin: &Origin) -> Option<Node> {
    let value = DeValue::parse(text).ok()?;
    let span = value.span();
    from_value(value.into_inner(), span, &|_| origin.clone()).ok()
}

type Locate<'a> = &'a dyn Fn(Range<usize>) -> Origin;

fn from_table(table: DeTable<'_>, span: Range<usize>, at: Locate<'_>) -> Result<Node, Fault> {
    let mut entries: Vec<(Spanned<_>, Spanned<DeValue<'_>>)> = table.into_iter().collect();
    entries.sort_by_key(|(k, _)| k.span().start);
    let mut read = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        let (key_origin, value_span) = (at(key.span()), value.span());
        let node = from_value(value.into_inner(), value_span, at)?;
        read.push(Entry { key: key.into_inner().into_owned(), key_origin, node });
    }
    Ok(Node { origin: at(span), value: Value::Table(read) })
}

fn from_value(value: DeValue<'_>, span: Range<usize>, at: Locate<'_>) -> Result<Node, Fault> {
    let origin = at(span.clone());
    let value = match value {
        DeValue::String(s) => Value::String(s.into_owned()),
        DeValue::Integer(i) => match i64::from_str_radix(i.as_str(), i.radix()) {
            Ok(n) => Value::Integer(n),
            Err(_) => return Err(Fault::syntax(format!("the number {i} is beyond 2^63"), origin)),
        },
        DeValue::Float(x) => match x.as_str().parse() {
            Ok(n) => Value::Float(n),
            Err(_) => return Err(Fault::syntax(format!("{x} is not a number"), origin)),
        },
        DeValue::Boolean(b) => Value::Boolean(b),
        DeValue::Datetime(d) => Value::Date(d.to_string()),
        DeValue::Array(items) => Value::Array(
            items
                .into_iter()
                .map(|item| {
                    let span = item.span();
                    from_value(item.into_inner(), span, at)
                })
                .collect::<Result<_, _>>()?,
        ),
        DeValue::Table(t) => return from_table(t, span, at),
    };
    Ok(Node { origin, value })
}
