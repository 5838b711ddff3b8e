//! What the receiver is known to hold: SACK blocks become runs of whole segments (RFC 2018, RFC 6675 §4
//! Update).
//!
//! The tags of [`Segments`] say it for each row. The runs say it for ranges, so that the work an ACK causes
//! depends on what it tells that is new, not on how much its blocks cover: a block that grows by one segment
//! costs one search, however long it is, and so does a block that tells nothing.

use crate::recovery::AckInput;
use crate::segments::{SegmentRow, Segments, Tags};
use farpace_units::Seq;
use farpace_wire::tcp::{SackBlock, SackBlocks};
use std::collections::BTreeMap;

/// Runs of SACKed segments, disjoint and not adjacent. There are never more of them than rows.
#[derive(Clone, Debug, Default)]
pub struct Scoreboard {
    /// Stream offset of the first byte of a run, and of the first byte after it. Offsets, because sequence
    /// numbers have no order beyond half their circle.
    runs: BTreeMap<u64, u64>,
    /// Stream offset that stands for `origin`.
    offset: u64,
    origin: Seq,
    /// The blocks of the last ACK.
    last: SackBlocks,
}

/// A duplicate that the receiver reports (RFC 2883).
pub fn dsack(ack: &AckInput<'_>) -> Option<SackBlock> {
    let first = *ack.sack.first()?;
    if !first.start.before(first.end) {
        return None;
    }
    // Below the cumulative acknowledgment, or inside the second block.
    let below = first.start.before(ack.ack);
    let inside = ack
        .sack
        .get(1)
        .is_some_and(|second| second.start.before_eq(first.start) && first.end.before_eq(second.end));
    // Older than any data that could still be in flight: not to be believed (RFC 2883 says nothing; Linux).
    let recent = first.end.after(ack.prior_snd_una - ack.max_window);
    ((below || inside) && recent && first.end.before_eq(ack.snd_nxt)).then_some(first)
}

impl Scoreboard {
    fn at(&self, seq: Seq) -> u64 {
        self.offset.saturating_add_signed(i64::from(seq.distance(self.origin)))
    }

    fn seq(&self, at: u64) -> Seq {
        self.origin + (at.wrapping_sub(self.offset) as u32)
    }

    /// Everything before `snd_una` is acknowledged.
    pub fn advance(&mut self, snd_una: Seq) {
        self.offset = self.at(snd_una);
        self.origin = snd_una;
        while let Some(first) = self.runs.first_entry() {
            if *first.get() > self.offset {
                break;
            }
            first.remove();
            if self.runs.is_empty() {
                self.runs = BTreeMap::new(); // an empty map keeps its last node
            }
        }
    }

    /// The receiver may hold nothing of all this any more (reneging).
    pub fn forget(&mut self) {
        self.runs.clear();
        self.last.clear();
    }

    /// Takes in the blocks of an ACK: rows that are covered for the first time are tagged and shown to `see`,
    /// with the tags they had. Blocks that make no sense, reach beyond SND.NXT or lie below SND.UNA tell
    /// nothing. The rows that `ack` acknowledges are gone already.
    pub fn take(
        &mut self,
        ack: &AckInput<'_>,
        segments: &mut Segments,
        mut see: impl FnMut(&SegmentRow, Tags),
    ) {
        for block in ack.sack {
            // The second and the third block mostly repeat what the last ACK said.
            if self.last.contains(block) {
                continue;
            }
            let sane = block.start.before(block.end)
                && block.end.before_eq(ack.snd_nxt)
                && block.end.after(ack.snd_una);
            if sane {
                self.take_block(block.start.later(ack.snd_una), block.end, segments, &mut see);
            }
        }
        self.last.clone_from(ack.sack);
    }

    fn take_block(
        &mut self,
        start: Seq,
        end: Seq,
        segments: &mut Segments,
        see: &mut impl FnMut(&SegmentRow, Tags),
    ) {
        let (mut from, to) = (self.at(start), self.at(end));
        // What a run holds already is passed over as a whole.
        if let Some((_, &run_end)) = self.runs.range(..=from).next_back() {
            from = from.max(run_end);
        }
        while from < to {
            let mut index = segments.index_at_or_after(self.seq(from));
            let Some(first) = segments.row(index).copied().filter(|row| row.end().before_eq(end)) else {
                break;
            };
            if segments.tags(index).any(Tags::SACKED) {
                // The block began inside the segment before a run.
                from = self.runs.get(&self.at(first.seq)).copied().unwrap_or(to);
                continue;
            }
            // Rows up to the next run, or up to the end of the block.
            let mut last = first;
            while let Some(&row) = segments.row(index).filter(|row| row.end().before_eq(end))
                && !segments.tags(index).any(Tags::SACKED)
            {
                see(&row, segments.tags(index));
                segments.sack_for_good(index);
                last = row;
                index += 1;
            }
            let joins = segments.tags(index).any(Tags::SACKED);
            from = self.add(self.at(first.seq), self.at(last.end()), joins);
        }
    }

    /// Adds a run that overlaps no other; says where it ends, together with the run that begins at its end if
    /// it `joins` one.
    fn add(&mut self, from: u64, mut to: u64, joins: bool) -> u64 {
        if joins && let Some(end) = self.runs.remove(&to) {
            to = end;
        }
        match self.runs.range_mut(..from).next_back() {
            Some((_, end)) if *end == from => *end = to,
            _ => _ = self.runs.insert(from, to),
        }
        to
    }

    /// Everything not SACKed below this has `count` runs, or more than `bytes` SACKed bytes, above it
    /// (RFC 6675 §4 IsLost).
    pub fn lost_below(&self, count: usize, bytes: u64) -> Option<Seq> {
        let mut above = 0;
        for (n, (&from, &to)) in self.runs.iter().rev().enumerate() {
            above += to - from;
            if n + 1 >= count || above > bytes {
                return Some(self.seq(from));
            }
        }
        None
    }

    /// End of the highest run.
    pub fn highest(&self) -> Option<Seq> {
        self.runs.last_key_value().map(|(_, &end)| self.seq(end))
    }

    /// [Compares](Scoreboard::check) the runs with the tags when the rows are recounted, too.
    ///
    /// # Errors
    /// As [`check`](Scoreboard::check).
    #[cfg(debug_assertions)]
    pub fn check_in_turn(&self, segments: &Segments) -> Result<(), String> {
        if segments.is_check_due() { self.check(segments) } else { Ok(()) }
    }

    /// Compares all runs with the tags.
    ///
    /// # Errors
    /// The first row they disagree about.
    #[cfg(debug_assertions)]
    pub fn check(&self, segments: &Segments) -> Result<(), String> {
        for (i, row) in (0..).map_while(|i| Some((i, segments.row(i)?))) {
            let at = self.at(row.seq);
            let held = self.runs.range(..=at).next_back().is_some_and(|(_, &end)| end >= self.at(row.end()));
            if held != segments.tags(i).any(Tags::SACKED) {
                return Err(format!("row {i} is in a run: {held}, tags {:?}", segments.tags(i)));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
