//! From the tree to typed values: a serde deserializer whose errors keep what was wrong and where, so that
//! messages can name the nearest valid word and the expected form.

use super::document::{DocumentEntry, DocumentNode, DocumentStep, DocumentValue};
use super::fault::{FaultKind, ScenarioFault};
use super::place::Origin;
use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, Expected, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use std::fmt::Display;

/// Reads a typed value from the tree.
pub(super) fn read<T: DeserializeOwned>(root: &DocumentNode) -> Result<T, ScenarioFault> {
    T::deserialize(root)
}

impl de::Error for ScenarioFault {
    fn custom<T: Display>(message: T) -> Self {
        ScenarioFault::new(FaultKind::Value(message.to_string()))
    }
    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        ScenarioFault::new(FaultKind::Type { expected: expected.to_string() })
    }
    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        ScenarioFault::new(FaultKind::Type { expected: expected.to_string() })
    }
    fn invalid_length(len: usize, expected: &dyn Expected) -> Self {
        ScenarioFault::new(FaultKind::Length { len, expected: expected.to_string() })
    }
    fn unknown_variant(word: &str, valid: &'static [&'static str]) -> Self {
        ScenarioFault::new(FaultKind::UnknownWord { word: word.to_string(), valid })
    }
    fn unknown_field(key: &str, valid: &'static [&'static str]) -> Self {
        ScenarioFault::new(FaultKind::UnknownKey { key: key.to_string(), valid })
    }
    fn missing_field(key: &'static str) -> Self {
        ScenarioFault::new(FaultKind::Missing { key })
    }
}

impl<'de> Deserializer<'de> for &'de DocumentNode {
    type Error = ScenarioFault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ScenarioFault> {
        let read = match &self.value {
            DocumentValue::String(s) => visitor.visit_borrowed_str(s),
            DocumentValue::Integer(i) => visitor.visit_i64(*i),
            DocumentValue::Float(x) => visitor.visit_f64(*x),
            DocumentValue::Boolean(b) => visitor.visit_bool(*b),
            DocumentValue::Date(_) => Err(de::Error::invalid_type(Unexpected::Other("date"), &visitor)),
            DocumentValue::Array(items) => {
                let mut access = Items { items, next: 0 };
                visitor.visit_seq(&mut access).and_then(|v| {
                    if access.next == items.len() {
                        Ok(v)
                    } else {
                        let expected = format!("a list of {}", access.next);
                        Err(ScenarioFault::new(FaultKind::Length { len: items.len(), expected }))
                    }
                })
            }
            DocumentValue::Table(entries) => {
                visitor.visit_map(Entries { entries: entries.iter(), current: None })
            }
        };
        read.map_err(|f| f.with_origin(&self.origin, || self.describe()))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ScenarioFault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ScenarioFault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        valid: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ScenarioFault> {
        match &self.value {
            DocumentValue::String(s) => {
                let word: StrDeserializer<'_, ScenarioFault> = s.as_str().into_deserializer();
                visitor.visit_enum(word)
            }
            _ => Err(ScenarioFault::new(FaultKind::Type {
                expected: format!("one of {}", super::nearest::list(valid)),
            })),
        }
        .map_err(|f| f.with_origin(&self.origin, || self.describe()))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Items<'de> {
    items: &'de [DocumentNode],
    next: usize,
}

impl<'de> SeqAccess<'de> for &mut Items<'de> {
    type Error = ScenarioFault;
    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ScenarioFault> {
        let Some(item) = self.items.get(self.next) else { return Ok(None) };
        let index = self.next;
        self.next += 1;
        // A type may refuse the value after it has been read, as quantities do. Then the place is added here.
        let read = seed
            .deserialize(item)
            .map_err(|f| f.with_origin(&item.origin, || item.describe()).under(DocumentStep::Index(index)));
        read.map(Some)
    }
    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len().saturating_sub(self.next))
    }
}

struct Entries<'de> {
    entries: std::slice::Iter<'de, DocumentEntry>,
    current: Option<&'de DocumentEntry>,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = ScenarioFault;
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ScenarioFault> {
        let Some(entry) = self.entries.next() else { return Ok(None) };
        self.current = Some(entry);
        let key: StrDeserializer<'_, ScenarioFault> = entry.key.as_str().into_deserializer();
        seed.deserialize(key).map(Some).map_err(|f| f.with_origin(&entry.key_origin, String::new))
    }
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ScenarioFault> {
        match self.current.take() {
            Some(DocumentEntry { key, node, .. }) => seed.deserialize(node).map_err(|f| {
                f.with_origin(&node.origin, || node.describe()).under(DocumentStep::Key(key.clone()))
            }),
            // serde reads a key first. Anything else is a defect of the reading type.
            None => Err(ScenarioFault::new(FaultKind::Value("a value was asked for before its key".into()))
                .with_origin(&Origin::File, String::new)),
        }
    }
}
