//! The TOML text as a tree in which every key and value knows its place in the text.

pub(super) use super::place::{DocumentStep, below};

use super::fault::ScenarioFault;
use super::place::Origin;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value and its place.
#[derive(Clone, Debug)]
pub(super) struct DocumentNode {
    pub origin: Origin,
    pub value: DocumentValue,
}

#[derive(Clone, Debug)]
pub(super) enum DocumentValue {
    String(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Date(String),
    Array(Vec<DocumentNode>),
    Table(Vec<DocumentEntry>),
}

/// A key of a table and its value; tables keep the order of the file.
#[derive(Clone, Debug)]
pub(super) struct DocumentEntry {
    pub key: String,
    pub key_origin: Origin,
    pub node: DocumentNode,
}

impl DocumentNode {
    /// The child a step leads to.
    pub fn child(&self, step: &DocumentStep) -> Option<&DocumentNode> {
        match (&self.value, step) {
            (DocumentValue::Table(entries), DocumentStep::Key(k)) => {
                entries.iter().find(|e| e.key == *k).map(|e| &e.node)
            }
            (DocumentValue::Array(items), DocumentStep::Index(i)) => items.get(*i),
            _ => None,
        }
    }

    /// Where the value at `path` stands; if it is not written, the nearest table around it.
    pub fn value_origin(&self, path: &[DocumentStep]) -> Origin {
        match path.split_first() {
            Some((step, rest)) => self.child(step).map_or(self.origin.clone(), |c| c.value_origin(rest)),
            None => self.origin.clone(),
        }
    }

    /// Where the key at the end of `path` stands; if it is not written, the nearest value around it.
    pub fn key_origin(&self, path: &[DocumentStep]) -> Origin {
        match path {
            [DocumentStep::Key(k)] => match &self.value {
                DocumentValue::Table(entries) => {
                    entries.iter().find(|e| e.key == *k).map_or(self.origin.clone(), |e| e.key_origin.clone())
                }
                _ => self.origin.clone(),
            },
            [step, rest @ ..] => self.child(step).map_or(self.origin.clone(), |c| c.key_origin(rest)),
            [] => self.origin.clone(),
        }
    }

    /// What it is, for messages.
    pub fn describe(&self) -> String {
        match &self.value {
            DocumentValue::String(s) => format!("the string {s:?}"),
            DocumentValue::Integer(i) => format!("the number {i}"),
            DocumentValue::Float(x) => format!("the number {x:?}"),
            DocumentValue::Boolean(b) => format!("the truth value {b}"),
            DocumentValue::Date(d) => format!("the date or time {d}"),
            DocumentValue::Array(a) if a.is_empty() => "an empty list".to_string(),
            DocumentValue::Array(_) => "a list".to_string(),
            DocumentValue::Table(_) => "a table".to_string(),
        }
    }
}

/// Reads a whole TOML text.
pub(super) fn parse(text: &str) -> Result<DocumentNode, ScenarioFault> {
    let table = DeTable::parse(text).map_err(|e| {
        let origin = e.span().map_or(Origin::File, Origin::Text);
        ScenarioFault::syntax(format!("this is not TOML: {}", e.message()), origin)
    })?;
    let span = table.span();
    from_table(table.into_inner(), span, &Origin::Text)
}

/// Reads one TOML value; none if `text` is not one. All its parts get the place `origin`.
pub(super) fn parse_value(text: &str, origin: &Origin) -> Option<DocumentNode> {
    let value = DeValue::parse(text).ok()?;
    let span = value.span();
    from_value(value.into_inner(), span, &|_| origin.clone()).ok()
}

type Locate<'a> = &'a dyn Fn(Range<usize>) -> Origin;

fn from_table(table: DeTable<'_>, span: Range<usize>, at: Locate<'_>) -> Result<DocumentNode, ScenarioFault> {
    let mut entries: Vec<(Spanned<_>, Spanned<DeValue<'_>>)> = table.into_iter().collect();
    entries.sort_by_key(|(k, _)| k.span().start);
    let mut read = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        let (key_origin, value_span) = (at(key.span()), value.span());
        let node = from_value(value.into_inner(), value_span, at)?;
        read.push(DocumentEntry { key: key.into_inner().into_owned(), key_origin, node });
    }
    Ok(DocumentNode { origin: at(span), value: DocumentValue::Table(read) })
}

fn from_value(value: DeValue<'_>, span: Range<usize>, at: Locate<'_>) -> Result<DocumentNode, ScenarioFault> {
    let origin = at(span.clone());
    let value = match value {
        DeValue::String(s) => DocumentValue::String(s.into_owned()),
        DeValue::Integer(i) => match i64::from_str_radix(i.as_str(), i.radix()) {
            Ok(n) => DocumentValue::Integer(n),
            Err(_) => return Err(ScenarioFault::syntax(format!("the number {i} is beyond 2^63"), origin)),
        },
        DeValue::Float(x) => match x.as_str().parse() {
            Ok(n) => DocumentValue::Float(n),
            Err(_) => return Err(ScenarioFault::syntax(format!("{x} is not a number"), origin)),
        },
        DeValue::Boolean(b) => DocumentValue::Boolean(b),
        DeValue::Datetime(d) => DocumentValue::Date(d.to_string()),
        DeValue::Array(items) => DocumentValue::Array(
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
    Ok(DocumentNode { origin, value })
}
