//! How often invariants are recounted in debug builds.

/// Rows that a recount may visit for each call that asks for one.
const ROWS: usize = 64;

/// Says when a recount is due whose cost grows with the number of rows: at each call for few rows, and the
/// more rarely the more rows there are, so that a call costs the same however long the queue is. Without it
/// an ACK of a full window takes a debug build a millisecond, and its peer takes it for a slow machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct CheckTurn {
    passed: u32,
}

impl CheckTurn {
    /// True if a recount of so many rows is due now.
    pub(crate) fn take(&mut self, rows: usize) -> bool {
        let due = self.is_due(rows);
        self.passed = if due { 0 } else { self.passed + 1 };
        due
    }

    /// True if the next [`take`](CheckTurn::take) will say so.
    pub(crate) fn is_due(&self, rows: usize) -> bool {
        (self.passed as usize + 1) * ROWS >= rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: invariants of short queues are not recounted at each ACK, those of long ones never, or a
    /// recount of a long queue costs each ACK more than that of a short one.
    #[test]
    fn long_queues_are_recounted_more_rarely() {
        for (rows, recounts) in [(0, 1_000), (64, 1_000), (65, 500), (6_400, 10)] {
            let mut turn = CheckTurn::default();
            assert_eq!((0..1_000).filter(|_| turn.take(rows)).count(), recounts, "{rows} rows");
        }
    }
}
