//! Reading SACK blocks into the scoreboard, with the historical order of work and its defects.

use super::{Linux26Recovery, MAX_REORDERING};
use crate::config::{DsackScope, Hint, LostRtx, SackSort};
use crate::recovery::{AckInput, Context};
use crate::segments::Tags;
use farpace_events::RecoveryState;
use farpace_units::Seq;
use farpace_wire::tcp::SackBlock;

/// What the blocks of one ACK told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckDelta26 {
    pub dsack: bool,
    pub data_sacked: bool,
    pub data_lost: bool,
}

/// A block, and its place on the wire.
#[derive(Clone, Copy, Debug)]
struct Block {
    start: Seq,
    end: Seq,
    origin: usize,
}

/// What the walks over the blocks of one ACK collect.
struct ScoreboardTally {
    news: AckDelta26,
    /// fackets_out before this ACK.
    prior_fack: u32,
    /// Lowest position at which reordering showed, counted from 1.
    reord: u32,
    /// Greatest block end that overtook a retransmission (event "C").
    lost_retrans: Option<Seq>,
    /// Highest end of a segment that this ACK SACKed.
    newly_sacked_end: Option<Seq>,
}

impl Linux26Recovery {
    /// The kernel's sacktag: tags what the blocks cover, finds reordering and lost retransmissions.
    pub(super) fn update_scoreboard(&mut self, ack: &AckInput<'_>, cx: &mut Context<'_>) -> AckDelta26 {
        cx.segments.reset_fackets_if_none_sacked();
        let mut tally = ScoreboardTally {
            news: AckDelta26 { dsack: is_dsack(ack.sack, ack.ack), ..AckDelta26::default() },
            prior_fack: cx.segments.fackets_out().get(),
            reord: cx.segments.packets_out().get(),
            lost_retrans: None,
            newly_sacked_end: None,
        };
        let previous = self.cache;
        let fast = self.remember(ack.sack);
        let dsack = tally.news.dsack;
        if let (true, Some(first), Some(marker)) = (dsack, ack.sack.first(), self.undo_marker)
            && !first.end.after(ack.prior_snd_una)
            && first.end.after(marker)
        {
            self.undo_retrans -= 1; // a D-SACK for data that is forgotten already
        }
        // An ACK from long ago tells nothing.
        if ack.ack.before(ack.prior_snd_una - ack.max_window) {
            return tally.news;
        }
        let (blocks, count) = if fast {
            (self.in_wire_order(ack.sack), 1)
        } else {
            self.hint = None;
            (self.sorted(ack.sack), ack.sack.len())
        };
        let mut carried = self.hint;
        for block in blocks.iter().take(count) {
            if block.end.after(self.high_seq) {
                tally.news.data_lost = true; // event "B"
            }
            let first_on_wire = block.origin == 0;
            let duplicate = dsack && (self.switches.dsack_scope == DsackScope::Ack || first_on_wire);
            // Remedy B: what the last ACK said needs no second walk. A D-SACK is always read.
            if self.switches.lost_rtx == LostRtx::NewBlocks
                && !duplicate
                && previous.contains(&SackBlock { start: block.start, end: block.end })
            {
                continue;
            }
            let from = if self.switches.hint == Hint::None { 0 } else { carried.unwrap_or(0) };
            let stopped = self.walk(block, from, duplicate, ack, cx, &mut tally);
            carried = Some(stopped);
            if self.switches.hint == Hint::EveryBlock
                || (self.switches.hint == Hint::FirstBlock && first_on_wire)
            {
                self.hint = carried;
            }
        }
        self.find_lost_retransmissions(ack, cx, &mut tally);
        if tally.reord < cx.segments.fackets_out().get() && self.state != RecoveryState::Loss {
            self.raise_reordering(cx.segments.fackets_out().get() + 1 - tally.reord);
        }
        tally.news
    }

    /// Stores the blocks; true if the only change is that the first one grew.
    fn remember(&mut self, sack: &[SackBlock]) -> bool {
        let mut fast = true;
        for (i, (block, kept)) in sack.iter().zip(self.cache.iter_mut()).enumerate() {
            fast &= block.start == kept.start && (i == 0 || block.end == kept.end);
            *kept = *block;
        }
        if self.switches.hint != Hint::EveryBlock {
            self.cache[sack.len()..].fill(SackBlock::default()); // since 2.6.21
        }
        fast
    }

    fn in_wire_order(&self, sack: &[SackBlock]) -> [Block; 4] {
        std::array::from_fn(|origin| {
            let b = sack.get(origin).copied().unwrap_or_default();
            Block { start: b.start, end: b.end, origin }
        })
    }

    /// Ascending by start, as a right or as the kernel's wrong bubble sort.
    fn sorted(&self, sack: &[SackBlock]) -> [Block; 4] {
        let received = self.in_wire_order(sack);
        let mut blocks = received;
        for last in (1..sack.len()).rev() {
            for j in 0..last {
                if blocks[j].start.after(blocks[j + 1].start) {
                    match self.switches.sack_sort {
                        SackSort::Ok => blocks.swap(j, j + 1),
                        // The second defect: the copy comes from the received order, which never moves.
                        SackSort::Buggy => (blocks[j], blocks[j + 1]) = (received[j + 1], received[j]),
                    }
                }
            }
        }
        blocks
    }

    /// Walks the queue from `from` to the end of `block`; returns the index at which it stops.
    ///
    /// The kernel visits each segment in between. Visits that cannot change anything are skipped here: below
    /// the block only retransmitted segments matter, inside it only those that are not SACKed yet.
    fn walk(
        &mut self,
        block: &Block,
        from: usize,
        duplicate: bool,
        ack: &AckInput<'_>,
        cx: &mut Context<'_>,
        tally: &mut ScoreboardTally,
    ) -> usize {
        let queued = cx.segments.len();
        let stop = cx.segments.index_at_or_after(block.end).clamp(from.min(queued), queued);
        self.visited += (stop - from.min(stop)) as u64;
        let covered = self.covered(block, from, stop, cx);
        if duplicate && let Some(marker) = self.undo_marker {
            let retransmitted = |i: &usize| {
                cx.segments.tags(*i).any(Tags::RETRANSMITTED.with(Tags::EVER_RETRANSMITTED))
                    && cx.segments.row(*i).is_some_and(|r| r.end().after(marker))
            };
            self.undo_retrans -= covered.clone().filter(retransmitted).count() as i64;
        }
        let live = from.max(self.first_unacknowledged(ack.snd_una, cx)).min(stop);
        for i in from..live {
            let (tags, position) = (cx.segments.tags(i), i as u32 + 1);
            let sacked = tags.any(Tags::SACKED);
            let reordered = if tags.any(Tags::RETRANSMITTED.with(Tags::EVER_RETRANSMITTED)) {
                duplicate && covered.contains(&i) && sacked
            } else {
                position < tally.prior_fack && !sacked // a hole that was never sent again
            };
            if reordered {
                tally.reord = tally.reord.min(position);
            }
        }
        let per_block = matches!(self.switches.lost_rtx, LostRtx::PerBlock | LostRtx::NewBlocks);
        if per_block && cx.segments.retransmission_older_than(live, stop, block.end) {
            tally.lost_retrans = Some(tally.lost_retrans.map_or(block.end, |l| l.later(block.end)));
        }
        let covered = covered.start.max(live)..covered.end;
        if duplicate {
            covered.for_each(|i| self.tag_duplicate(i, cx, tally));
        } else {
            let mut at = covered.start;
            while let Some(i) = cx.segments.find(at, covered.end, Tags::SACKED, Tags::NONE) {
                self.tag(i, cx, tally);
                at = i + 1;
            }
        }
        stop.min(queued.saturating_sub(1))
    }

    /// Rows in `from..stop` that lie inside the block.
    fn covered(&self, block: &Block, from: usize, stop: usize, cx: &Context<'_>) -> std::ops::Range<usize> {
        let start = cx.segments.index_at_or_after(block.start).max(from);
        let cut_off = stop > 0 && cx.segments.row(stop - 1).is_some_and(|r| r.end().after(block.end));
        start..(stop - usize::from(cut_off)).max(start)
    }

    /// Index of the first row that `snd_una` does not cover.
    fn first_unacknowledged(&self, snd_una: Seq, cx: &Context<'_>) -> usize {
        let i = cx.segments.index_at_or_after(snd_una);
        let partial = i > 0 && cx.segments.row(i - 1).is_some_and(|r| r.end().after(snd_una));
        i - usize::from(partial)
    }

    /// The receiver has segment `i`, which was not SACKed so far.
    fn tag(&mut self, i: usize, cx: &mut Context<'_>, tally: &mut ScoreboardTally) {
        let position = i as u32 + 1;
        let ever = Tags::RETRANSMITTED.with(Tags::EVER_RETRANSMITTED);
        if !cx.segments.tags(i).any(ever) && position < tally.prior_fack {
            tally.reord = tally.reord.min(position);
        }
        cx.segments.sack(i);
        tally.news.data_sacked = true;
        if let Some(end) = cx.segments.row(i).map(|r| r.end()) {
            tally.newly_sacked_end = Some(tally.newly_sacked_end.map_or(end, |e| e.later(end)));
        }
    }

    /// The receiver got segment `i` twice.
    fn tag_duplicate(&mut self, i: usize, cx: &mut Context<'_>, tally: &mut ScoreboardTally) {
        let tags = cx.segments.tags(i);
        if !tags.any(Tags::SACKED) {
            self.tag(i, cx, tally);
        } else if tags.any(Tags::RETRANSMITTED.with(Tags::EVER_RETRANSMITTED)) {
            tally.reord = tally.reord.min(i as u32 + 1);
        }
        if cx.segments.tags(i).any(Tags::RETRANSMITTED) {
            cx.segments.clear_retransmitted(i);
        }
    }

    /// Event "C": data sent after a retransmission has arrived, so the retransmission has not.
    fn find_lost_retransmissions(
        &mut self,
        ack: &AckInput<'_>,
        cx: &mut Context<'_>,
        tally: &mut ScoreboardTally,
    ) {
        let queued = cx.segments.len();
        let received = match self.switches.lost_rtx {
            LostRtx::PerBlock | LostRtx::NewBlocks => tally.lost_retrans,
            LostRtx::MaxEnd => ack.sack.iter().map(|b| b.end).reduce(Seq::later),
            LostRtx::NewlySacked => tally.newly_sacked_end,
        };
        let Some(received) = received else { return };
        if self.state == RecoveryState::Recovery {
            // The kernel looks at each entry up to there.
            self.visited += cx.segments.index_at_or_after(received) as u64;
        }
        if self.state != RecoveryState::Recovery
            || !cx.segments.retransmission_older_than(0, queued, received)
        {
            return;
        }
        let from = self.first_unacknowledged(ack.snd_una, cx);
        let slack = self.reordering.saturating_mul(cx.window.mss());
        let mut at = from;
        while let Some(i) = cx.segments.find(at, queued, Tags::RETRANSMITTED, Tags::RETRANSMITTED) {
            at = i + 1;
            let Some(row) = cx.segments.row(i) else { break };
            if row.seq.after(received) {
                break;
            }
            let overtaken =
                received.after(row.rtx_nxt) && (self.fack || !received.before(row.rtx_nxt + slack));
            if overtaken {
                if cx.segments.tags(i).any(Tags::SACKED) {
                    cx.segments.clear_retransmitted(i);
                } else {
                    cx.segments.mark_retransmission_lost(i);
                    tally.news.data_sacked = true;
                }
            }
        }
        cx.segments.refresh_rtx_nxt_floor();
    }

    /// A later segment overtook an earlier one by `metric` positions: be patient, and stop using FACK.
    pub(super) fn raise_reordering(&mut self, metric: u32) {
        if metric > self.reordering {
            self.reordering = metric.min(MAX_REORDERING);
            self.fack = false;
        }
    }
}

/// RFC 2883: the first block tells a duplicate if it lies below the ACK or inside the second block.
fn is_dsack(sack: &[SackBlock], ack: Seq) -> bool {
    let Some(first) = sack.first() else { return false };
    first.start.before(ack)
        || sack.get(1).is_some_and(|s| !first.end.after(s.end) && !first.start.before(s.start))
}

#[cfg(test)]
mod tests;
