//! What the receiver tells it has: SACK blocks and D-SACK on the queue; and, without SACK, what duplicates
//! stand for.

use super::ack_flags::AckFlags;
use super::*;
use farpace_wire::tcp::SackBlock;

/// What the blocks of one acknowledgment told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BoardMarks {
    /// When the first and the last segment newly SACKed were sent, of those sent once.
    pub first_sent: Option<Instant>,
    pub last_sent: Option<Instant>,
    /// Round trip for congestion control: of the newest segment that arrived.
    pub rtt: Option<Span>,
}

impl LinuxRecovery {
    /// Goes through the blocks.
    pub(super) fn take_blocks(
        &mut self,
        ack: &AckInput<'_>,
        flags: &mut AckFlags,
        marks: &mut BoardMarks,
        cx: &mut Context<'_>,
    ) {
        let dsack = self.take_dsack(ack, flags, cx);
        if ack.ack.before(ack.prior_snd_una - ack.max_window) || cx.segments.is_empty() {
            return;
        }
        let mut reord = ack.snd_nxt;
        let mut blocks: arrayvec::ArrayVec<(SackBlock, bool), 4> = arrayvec::ArrayVec::new();
        for (n, block) in ack.sack.iter().enumerate() {
            let is_dsack = n == 0 && dsack;
            if self.is_valid(block, is_dsack, ack) && block.end.after(ack.prior_snd_una) {
                _ = blocks.try_push((*block, is_dsack));
            }
        }
        blocks.sort_by(|(a, _), (b, _)| a.start.distance(b.start).cmp(&0));
        for (block, is_dsack) in &blocks {
            self.take_block(block, *is_dsack, ack, flags, marks, &mut reord, cx);
        }
        if self.state != RecoveryState::Loss || self.undo.marker.is_some() {
            let fack = self.highest_sacked(cx.segments, ack.snd_una);
            self.see_reordering(reord, fack, cx);
        }
    }

    #[allow(clippy::too_many_arguments, reason = "a block, its ACK, and what both change")]
    fn take_block(
        &mut self,
        block: &SackBlock,
        is_dsack: bool,
        ack: &AckInput<'_>,
        flags: &mut AckFlags,
        marks: &mut BoardMarks,
        reord: &mut Seq,
        cx: &mut Context<'_>,
    ) {
        let min_rtt = cx.min_rtt.get();
        let mut index = cx.segments.index_at_or_after(block.start);
        loop {
            if !is_dsack {
                // What was SACKED before tells nothing new, and a hostile block may cover all of it.
                let Some(next) = cx.segments.find(index, usize::MAX, Tags::SACKED, Tags::NONE) else { break };
                index = next;
            }
            let row = cx.segments.row(index).copied().filter(|r| !r.end().after(block.end));
            let Some(row) = row else { break };
            let tags = cx.segments.tags(index);
            if is_dsack && tags.any(Tags::EVER_RETRANSMITTED.with(Tags::RETRANSMITTED)) {
                if self.undo.marker.is_some_and(|m| row.end().after(m)) && self.undo.open > 0 {
                    self.undo.open -= 1;
                }
                if tags.any(Tags::SACKED) && row.seq.before(*reord) {
                    *reord = row.seq;
                }
            }
            if row.end().after(ack.snd_una) {
                if !tags.any(Tags::SACKED) {
                    self.rack.advance(ack.now, &row, tags, min_rtt);
                    if !tags.any(Tags::EVER_RETRANSMITTED.with(Tags::RETRANSMITTED)) {
                        let fack = self.highest_sacked(cx.segments, ack.snd_una);
                        if row.seq.before(fack) && row.seq.before(*reord) {
                            *reord = row.seq; // it was in a hole and never sent again
                        }
                        flags.original |= !row.end().after(self.high_seq);
                        marks.first_sent.get_or_insert(row.sent_at);
                        marks.last_sent = Some(row.sent_at);
                    }
                    cx.segments.sack(index);
                    cx.segments.merge_sacked(index);
                    flags.sacked = true;
                    self.tallies.delivered += 1;
                }
                if is_dsack && cx.segments.tags(index).any(Tags::RETRANSMITTED) {
                    cx.segments.clear_retransmitted(index);
                }
            }
            index += 1;
        }
    }

    /// RFC 2883: is the first block a duplicate that may be believed?
    fn take_dsack(&mut self, ack: &AckInput<'_>, flags: &mut AckFlags, cx: &Context<'_>) -> bool {
        let Some(&first) = ack.sack.first() else { return false };
        let inside = |b: &SackBlock| !first.end.after(b.end) && !first.start.before(b.start);
        if !(first.start.before(ack.ack) || ack.sack.get(1).is_some_and(inside)) {
            return false;
        }
        let len = first.end.distance(first.start);
        if len <= 0 || len as u32 > ack.max_window {
            return false;
        }
        let mss = cx.window.mss().max(1);
        let segments = (len as u32).div_ceil(mss).max(1);
        if len as u32 <= mss && self.probe.is_some_and(|(end, _)| end == first.end) {
            flags.dsack_of_probe = true;
        }
        self.tallies.dsack_dups += u64::from(segments);
        if self.tallies.dsack_dups > self.tallies.retransmitted {
            return false; // of more than was sent twice
        }
        if self.tallies.reord_seen > 0 && !flags.dsack_of_probe {
            self.rack.dsack_seen = true;
        }
        flags.dsack = true;
        self.tallies.delivered += u64::from(segments);
        let forgotten = !first.end.after(ack.prior_snd_una);
        if self.undo.marker.is_some_and(|m| first.end.after(m)) && self.undo.open > 0 && forgotten {
            self.undo.open = (self.undo.open - i64::from(segments)).max(0);
        }
        true
    }

    fn is_valid(&self, block: &SackBlock, is_dsack: bool, ack: &AckInput<'_>) -> bool {
        let (start, end) = (block.start, block.end);
        if end.after(ack.snd_nxt) || !start.before(end) || !start.before(ack.snd_nxt) {
            return false;
        }
        if start.after(ack.snd_una) {
            return true;
        }
        let Some(marker) = self.undo.marker.filter(|_| is_dsack) else { return false };
        if end.after(ack.snd_una) {
            return false;
        }
        !start.before(marker) || (end.after(marker) && !start.before(end - ack.max_window))
    }

    /// What lay at `low` has arrived after what ends at `fack`.
    pub(super) fn see_reordering(&mut self, low: Seq, fack: Seq, cx: &Context<'_>) {
        if !low.before(fack) {
            return;
        }
        let (metric, mss) = (fack.bytes_since(low), cx.window.mss().max(1));
        if metric > self.reordering.saturating_mul(mss) {
            self.reordering = metric.div_ceil(mss).min(self.switches.max_reordering.get());
        }
        self.tallies.reord_seen += 1;
        self.rack.reordering_seen = true;
    }

    /// Without SACK: so many duplicates came.
    pub(super) fn add_assumed(&mut self, duplicates: u32, cx: &mut Context<'_>) {
        if duplicates == 0 {
            return;
        }
        let before = cx.segments.assumed_out().get();
        self.set_assumed(before + duplicates, 0, cx);
        let more = cx.segments.assumed_out().get().saturating_sub(before);
        self.tallies.delivered += u64::from(more);
    }

    /// Without SACK: `acked` segments are acknowledged; all but the hole were there before, as far as
    /// `assumed`.
    pub(super) fn remove_assumed(&mut self, assumed: u32, acked: u32, cx: &mut Context<'_>) {
        self.tallies.delivered += u64::from(acked.saturating_sub(assumed).max(1));
        let left = assumed.saturating_sub(acked - 1);
        self.set_assumed(left, acked, cx);
    }

    /// No more can be there than is out; more says that segments were reordered. `taken`: acknowledged just
    /// now.
    fn set_assumed(&mut self, wanted: u32, taken: u32, cx: &mut Context<'_>) {
        let out = cx.segments.packets_out().get();
        let holes = cx.segments.lost_out().get().max(1).min(out);
        let most = out - holes;
        if wanted > most {
            self.reordering = (out + taken).min(self.switches.max_reordering.get());
            self.tallies.reord_seen += 1;
            self.rack.reordering_seen = true;
        }
        cx.segments.set_assumed_out(Packets::new(wanted.min(most)));
    }
}
