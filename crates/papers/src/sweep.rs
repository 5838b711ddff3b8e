//! Parameter sweeps: tables in which each cell is a case.

use farpace_report::{Table, TableCell};

/// The rows of a table: words at the beginning, then cases.
pub(crate) struct Sweep<C>(Vec<(Vec<String>, Vec<C>)>);

impl<C: Clone> Sweep<C> {
    pub fn new() -> Self {
        Sweep(Vec::new())
    }
    /// Adds a row.
    pub fn row<const N: usize>(&mut self, words: [&str; N], cases: impl IntoIterator<Item = C>) {
        self.0.push((words.map(str::to_owned).into(), cases.into_iter().collect()));
    }
    /// All cases, for the plan.
    pub fn cases(&self) -> impl Iterator<Item = C> {
        self.0.iter().flat_map(|(_, cases)| cases.iter().cloned())
    }
    /// Adds the rows to `table`.
    pub fn fill(&self, mut table: Table, cell: impl Fn(&C) -> TableCell) -> Table {
        for (words, cases) in &self.0 {
            table.row(words.iter().map(|word| word.as_str().into()).chain(cases.iter().map(&cell)));
        }
        table
    }
}
