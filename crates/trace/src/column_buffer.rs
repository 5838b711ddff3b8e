//! Values of many rows by column, in the form that Parquet requires.

use crate::column::{Column, ColumnKind, TraceCell};

/// The values of one column.
pub(crate) struct ColumnBuffer {
    /// The values that are not null.
    pub(crate) values: ColumnValues,
    /// Definition levels of Parquet: 1 for a value and 0 for null. Unused in a column without nulls.
    pub(crate) levels: Vec<i16>,
    pub(crate) nullable: bool,
}

pub(crate) enum ColumnValues {
    // Parquet stores unsigned integers as signed ones with an annotation.
    U32(Vec<i32>),
    U64(Vec<i64>),
    Name(Vec<&'static str>),
}

impl ColumnBuffer {
    pub(crate) fn new(column: &Column) -> ColumnBuffer {
        let values = match column.kind {
            ColumnKind::U32 => ColumnValues::U32(Vec::new()),
            ColumnKind::U64 => ColumnValues::U64(Vec::new()),
            ColumnKind::Name => ColumnValues::Name(Vec::new()),
        };
        ColumnBuffer { values, levels: Vec::new(), nullable: column.nullable }
    }

    /// Appends cells of this column. A cell of another kind becomes null; the schema creates none.
    #[inline]
    pub(crate) fn extend(&mut self, cells: impl ExactSizeIterator<Item = TraceCell> + Clone) {
        if self.nullable {
            self.levels.extend(cells.clone().map(|cell| i16::from(cell != TraceCell::Null)));
            match &mut self.values {
                ColumnValues::U32(values) => values.extend(cells.filter_map(u32_bits)),
                ColumnValues::U64(values) => values.extend(cells.filter_map(u64_bits)),
                ColumnValues::Name(values) => values.extend(cells.filter_map(name)),
            }
        } else {
            // The iterators have a known length, which is faster.
            match &mut self.values {
                ColumnValues::U32(values) => {
                    values.extend(cells.map(|cell| u32_bits(cell).unwrap_or_default()))
                }
                ColumnValues::U64(values) => {
                    values.extend(cells.map(|cell| u64_bits(cell).unwrap_or_default()))
                }
                ColumnValues::Name(values) => values.extend(cells.map(|cell| name(cell).unwrap_or_default())),
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        self.levels.clear();
        match &mut self.values {
            ColumnValues::U32(values) => values.clear(),
            ColumnValues::U64(values) => values.clear(),
            ColumnValues::Name(values) => values.clear(),
        }
    }
}

fn u32_bits(cell: TraceCell) -> Option<i32> {
    if let TraceCell::U32(n) = cell { Some(n.cast_signed()) } else { None }
}

fn u64_bits(cell: TraceCell) -> Option<i64> {
    if let TraceCell::U64(n) = cell { Some(n.cast_signed()) } else { None }
}

fn name(cell: TraceCell) -> Option<&'static str> {
    if let TraceCell::Name(name) = cell { Some(name) } else { None }
}
