//! Many rows at once. A super-segment is dozens of rows, and one acknowledgment takes as many away: most of
//! them have the same to say, which is nothing.

use super::{Acknowledged, SegmentRow, Segments, Tags};
use farpace_units::{Instant, Packets, Seq};

impl Segments {
    /// Adds `count` segments of `len` that were just sent for the first time, as so many calls of
    /// [`push`](Self::push).
    pub fn push_run(&mut self, seq: Seq, len: u32, count: u32, now: Instant) {
        if self.rates.is_some() {
            return (0..count).for_each(|n| self.push(seq + n * len, len, now));
        }
        debug_assert!(self.end().is_none_or(|e| e == seq), "segments are contiguous");
        let last = self.transmissions << 1;
        let row = |n| {
            let seq = seq + n * len;
            SegmentRow { last, ..SegmentRow::new(seq, len, now) }
        };
        self.rows.extend((0..count).map(row));
        self.tags.extend(std::iter::repeat_n(0, count as usize));
    }

    /// Drops the rows without tags at the head that end at or before `ack`. Of them `see` is shown the first,
    /// and the last for all others.
    pub(super) fn acknowledge_run(
        &mut self,
        ack: Seq,
        see: &mut impl FnMut(&SegmentRow, Tags, u32),
    ) -> Acknowledged {
        let mut done = Acknowledged::default();
        if self.rates.is_some() {
            return done; // each row has a snapshot
        }
        let mut count = self.index_at_or_after(ack);
        if count > 0 && self.rows.get(count - 1).is_some_and(|row| row.end().after(ack)) {
            count -= 1; // acknowledged in part
        }
        let (a, b) = self.tags.as_slices();
        let first = plain(&a[..count.min(a.len())]);
        let count = if first < a.len() { first } else { first + plain(&b[..count - first]) };
        let Some(last) = count.checked_sub(1) else { return done };
        if let (Some(first), Some(row)) = (self.rows.front(), self.rows.get(last)) {
            done.first_sent_at = Some(first.sent_at);
            see(first, Tags::NONE, 1);
            if last > 0 {
                see(row, Tags::NONE, last as u32);
            }
        }
        self.rows.drain(..count);
        self.tags.drain(..count);
        done.packets = Packets::new(count as u32);
        done
    }
}

/// How many are without tags at the beginning.
fn plain(tags: &[u8]) -> usize {
    // Without an early exit these are vector instructions.
    let chunks =
        tags.chunks_exact(32).take_while(|chunk| is_plain(&chunk.iter().fold(0, |all, tag| all | tag)));
    let at = chunks.count() * 32;
    at + tags.iter().skip(at).take_while(|tag| is_plain(tag)).count()
}

/// Nothing happened to it.
const fn is_plain(tag: &u8) -> bool {
    *tag & !Tags::JOINED.0 == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What `see` was shown, and what is left.
    fn acknowledged(segments: &mut Segments, acks: &[Seq]) -> (u32, Vec<Seq>, Acknowledged) {
        let (mut rows, mut ends, mut all) = (0, Vec::new(), Acknowledged::default());
        for ack in acks {
            let done = segments.acknowledge_each(*ack, |row, tags, count| {
                rows += count;
                if tags != Tags::NONE || count == 1 {
                    ends.push(row.end());
                }
            });
            all.packets += done.packets;
            all.retransmitted |= done.retransmitted;
            all.first_sent_at = all.first_sent_at.or(done.first_sent_at);
        }
        (rows, ends, all)
    }

    proptest! {
        /// Breaks: an ACK of many segments is taken for something else than as many ACKs of one: counters of
        /// the window that are wrong for the rest of the connection, or a round trip measured by a
        /// retransmission.
        #[test]
        fn one_ack_of_many_is_as_many_acks_of_one(
            counts in prop::collection::vec(1u32..100, 1..6),
            tagged in prop::collection::vec((0usize..300, 0u8..4), 0..6),
            before in 0u32..80_000,
            ack in 0u32..120_000,
        ) {
            let (mut at, mut segments) = (Seq::new(u32::MAX - 5_000), Segments::default());
            for (n, count) in counts.iter().enumerate() {
                segments.push_run(at, 1_000, *count, Instant::from_nanos(n as u64));
                at += 1_000 * count;
                segments.push(at, 77, Instant::from_nanos(n as u64));
                at += 77;
            }
            let start = segments.row(0).unwrap().seq;
            // Where the columns begin in memory must not matter.
            segments.acknowledge(start + before);
            for (index, what) in tagged {
                if index < segments.len() {
                    match what {
                        0 => segments.mark_retransmitted(index, Instant::from_nanos(9), at),
                        1 => segments.mark_lost(index),
                        2 => segments.sack(index),
                        _ => segments.clear_retransmitted(index),
                    }
                }
            }
            segments.check().unwrap();
            let mut single = segments.clone();
            let ends = (0..segments.len()).filter_map(|i| single.row(i)).map(SegmentRow::end);
            let ack = start + ack;
            let acks: Vec<Seq> = ends.filter(|end| !end.after(ack)).chain([ack]).collect();
            let one = acknowledged(&mut segments, &[ack]);
            let many = acknowledged(&mut single, &acks);
            prop_assert_eq!((one.0, one.2), (many.0, many.2));
            prop_assert_eq!(one.0, one.2.packets.get());
            prop_assert!(one.1.iter().all(|end| many.1.contains(end)));
            prop_assert_eq!(one.1.first(), many.1.first());
            segments.check().unwrap();
            prop_assert_eq!(format!("{segments:?}"), format!("{single:?}"));
        }
    }
}
