//! Columns of a trace, and the values in them.

use serde::{Serialize, Serializer};

/// One column of the table of [`Record`](farpace_events::Record)s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name in files, in snake_case.
    pub name: &'static str,
    /// The type of its values.
    pub kind: ColumnKind,
    /// True if values may be null.
    pub nullable: bool,
    /// The unit: `ns`, `bytes`, `packets`; empty if there is none.
    pub unit: &'static str,
    /// A description of one line.
    pub description: &'static str,
}

/// The type of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 64 bits.
    U64,
    /// One of a few names.
    Name,
}

impl ColumnKind {
    /// The name in documentation.
    pub const fn name(self) -> &'static str {
        match self {
            ColumnKind::U32 => "u32",
            ColumnKind::U64 => "u64",
            ColumnKind::Name => "name",
        }
    }
}

/// A value of a row. It is serialised as the bare value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceCell {
    /// Null.
    Null,
    /// Unsigned, 32 bits.
    U32(u32),
    /// Unsigned, 64 bits.
    U64(u64),
    /// One of a few names.
    Name(&'static str),
}

impl Serialize for TraceCell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            TraceCell::Null => serializer.serialize_none(),
            TraceCell::U32(n) => serializer.serialize_u32(n),
            TraceCell::U64(n) => serializer.serialize_u64(n),
            TraceCell::Name(name) => serializer.serialize_str(name),
        }
    }
}
