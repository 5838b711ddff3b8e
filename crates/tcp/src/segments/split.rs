//! Rows cut in pieces: a smaller segment size also holds for what is outstanding.

use super::{SegmentRow, Segments, Tags, is_waiting};
use farpace_units::Seq;

impl Segments {
    /// Splits the row at `index` so that its first part has `len` sequence numbers; both parts keep the tags.
    /// Nothing happens unless `len` lies within the row. Rows after it get new indices.
    pub fn split(&mut self, index: usize, len: u32) {
        let (Some(row), Some(&tag)) = (self.rows.get_mut(index), self.tags.get(index)) else { return };
        if len == 0 || len >= row.len {
            return;
        }
        let rest = SegmentRow { seq: row.seq + len, len: row.len - len, ..*row };
        row.len = len;
        self.rows.insert(index + 1, rest);
        self.tags.insert(index + 1, tag);
        self.tags[index] = tag & !Tags::PUSHED.0;
        if let Some(rates) = &mut self.rates {
            rates.split(index);
        }
        self.sacked_out += u32::from(tag & Tags::SACKED.0 != 0);
        self.lost_out += u32::from(tag & Tags::LOST.0 != 0);
        self.retrans_out += u32::from(tag & Tags::RETRANSMITTED.0 != 0);
        self.waiting += u32::from(is_waiting(tag));
        self.fackets_out += u32::from((index as u32) < self.fackets_out);
        self.waiting_floor += usize::from(index < self.waiting_floor);
    }

    /// Puts the row at `index` and the one behind it together, which is sent as one from now on.
    pub fn join(&mut self, index: usize) {
        let (Some(&next), Some(&tag)) = (self.rows.get(index + 1), self.tags.get(index + 1)) else { return };
        if self.rates.is_some() {
            return; // each row has a snapshot
        }
        self.rows.remove(index + 1);
        self.tags.remove(index + 1);
        self.rows[index].len += next.len;
        self.tags[index] |= tag & (Tags::PUSHED.0 | Tags::EVER_RETRANSMITTED.0);
        self.recount();
    }

    /// The row at `index` was SACKed just now. The kernel puts it together with SACKed neighbours of its
    /// length: what was sent again of one was of all.
    pub fn merge_sacked(&mut self, index: usize) {
        let Some(len) = self.rows.get(index).map(|row| row.len) else { return };
        let ever = |i: usize| self.tags(i).any(Tags::EVER_RETRANSMITTED);
        let alike =
            |i: usize| self.counted(i) == Tags::SACKED && self.rows.get(i).is_some_and(|r| r.len == len);
        if !alike(index) {
            return;
        }
        let before = index.checked_sub(1).filter(|i| alike(*i) && ever(*i) != ever(index));
        let behind = Some(index + 1).filter(|i| alike(*i) && ever(*i) != ever(index));
        if before.is_none() && behind.is_none() {
            return;
        }
        let start = (0..index).rev().take_while(|i| alike(*i)).last().unwrap_or(index);
        let end = (index..self.rows.len()).take_while(|i| alike(*i)).last().unwrap_or(index);
        for tag in self.tags.range_mut(start..=end) {
            *tag |= Tags::EVER_RETRANSMITTED.0;
        }
    }

    /// First index behind `index` whose row did not leave in one burst with it, or has fared otherwise.
    pub fn burst_end(&self, index: usize) -> usize {
        let how = |index| self.tags(index).0 & (Tags::COUNTED.0 | Tags::EVER_RETRANSMITTED.0);
        let belongs = |i: &usize| self.tags(*i).any(Tags::JOINED) && how(*i) == how(index);
        index + 1 + (index + 1..self.rows.len()).take_while(belongs).count()
    }

    /// First index of the burst that the row at `index` belongs to.
    pub fn burst_start(&self, index: usize) -> usize {
        let mut start = index;
        while start > 0 && self.tags(start).any(Tags::JOINED) && self.burst_end(start - 1) > start {
            start -= 1;
        }
        start
    }

    /// The row at `index` begins a burst of its own.
    pub fn cut_burst(&mut self, index: usize) {
        if let Some(tag) = self.tags.get_mut(index) {
            *tag &= !Tags::JOINED.0;
        }
    }

    /// Of a burst that was acknowledged up to `ack`, and not to its end, the rest is cut anew from there. How
    /// many rows that took away.
    pub fn trim_burst(&mut self, ack: Seq) -> Option<u32> {
        let head = *self.rows.front()?;
        let end = self.burst_end(0);
        if self.rates.is_some() || !(self.tags(0).any(Tags::JOINED) || end > 1) {
            return None;
        }
        if !head.seq.before(ack) {
            if end == 1 {
                self.cut_burst(0); // a segment of its own from now on
            }
            return None;
        }
        let before = self.rows.len();
        let longest = self.rows.range(..end).map(|row| row.len).max()?;
        let rest = head.end().bytes_since(ack);
        let row = self.rows.front_mut()?;
        (row.seq, row.len) = (ack, rest);
        self.retile(0, end, longest, None, None);
        Some(before.saturating_sub(self.rows.len()) as u32)
    }

    /// The rows from `index` to `end`, which are all alike, hold `mss` bytes of payload each from now on, but
    /// for the last; the first `count` of them, if that is told, and one behind them the rest. `fin` is the
    /// number of our FIN.
    pub fn retile(&mut self, index: usize, end: usize, mss: u32, count: Option<usize>, fin: Option<Seq>) {
        let (Some(&first), Some(&last)) = (self.rows.get(index), self.rows.get(end.wrapping_sub(1))) else {
            return;
        };
        if self.rates.is_some() || mss == 0 || end <= index {
            return; // each row has a snapshot
        }
        let (tag, pushed) = (self.tags[index], self.tags[end - 1] & Tags::PUSHED.0);
        let fin = u32::from(fin.is_some_and(|f| last.end() == f + 1));
        let payload = last.end().bytes_since(first.seq) - fin;
        let whole = payload.div_ceil(mss).max(1) as usize;
        let tiles = count.map_or(whole, |count| whole.min(count + 1));
        let tail: Vec<_> = self.rows.drain(index..).zip(self.tags.drain(index..)).skip(end - index).collect();
        for n in 0..tiles {
            let seq = first.seq + n as u32 * mss;
            let len = if n + 1 == tiles { last.end().bytes_since(seq) } else { mss };
            let mut tag = tag & !Tags::PUSHED.0;
            if n > 0 {
                tag |= Tags::JOINED.0;
            }
            if n + 1 == tiles {
                tag |= pushed;
            }
            self.rows.push_back(SegmentRow { seq, len, ..first });
            self.tags.push_back(tag);
        }
        for (row, tag) in tail {
            self.rows.push_back(row);
            self.tags.push_back(tag);
        }
        self.recount();
    }

    /// Bursts with a segment of more than `most` payload bytes are lost; so were their retransmissions. They
    /// keep their length until they are sent again. True: there was one.
    pub fn lose_longer(&mut self, most: u32, fin: Option<Seq>) -> bool {
        let payload = |r: &SegmentRow| r.len - u32::from(fin.is_some_and(|f| r.end() == f + 1));
        let (mut any, mut at) = (false, 0);
        while at < self.rows.len() {
            let end = self.burst_end(at);
            if self.rows.range(at..end).any(|row| payload(row) > most) {
                any = true;
                for index in at..end {
                    match self.tags(index) {
                        tags if tags.any(Tags::SACKED) => {}
                        tags if tags.any(Tags::RETRANSMITTED) => self.mark_retransmission_lost(index),
                        _ => self.mark_lost(index),
                    }
                }
            }
            at = end;
        }
        any
    }

    /// Splits all rows with more than `most` payload bytes into rows of at most that many, and marks the
    /// parts lost; a retransmission of such a row was lost as well. Parts of rows with S have arrived, and
    /// keep S. `fin` is the number of our FIN, which counts no byte. True if there was such a row: then
    /// indices have changed.
    pub fn split_longer(&mut self, most: u32, fin: Option<Seq>) -> bool {
        let most = most.max(1);
        let payload = |r: &SegmentRow| r.len - u32::from(fin.is_some_and(|f| r.end() == f + 1));
        if !self.rows.iter().any(|r| payload(r) > most) {
            return false;
        }
        let (rows, tags) = (std::mem::take(&mut self.rows), std::mem::take(&mut self.tags));
        let mut parts = Vec::with_capacity(rows.len());
        for (mut row, mut tag) in rows.into_iter().zip(tags) {
            let first = self.rows.len();
            if payload(&row) > most && tag & Tags::SACKED.0 == 0 {
                row.last |= u32::from(tag & Tags::RETRANSMITTED.0 != 0);
                tag = (tag & !Tags::RETRANSMITTED.0) | Tags::LOST.0;
            }
            while payload(&row) > most {
                self.rows.push_back(SegmentRow { len: most, ..row });
                self.tags.push_back(tag & !Tags::PUSHED.0);
                row = SegmentRow { seq: row.seq + most, len: row.len - most, ..row };
            }
            self.rows.push_back(row);
            self.tags.push_back(tag);
            parts.push(self.rows.len() - first);
        }
        if let Some(rates) = &mut self.rates {
            rates.split_each(&parts);
        }
        self.recount();
        true
    }

    /// All counters anew.
    fn recount(&mut self) {
        let count = |t: Tags| self.tags.iter().filter(|x| *x & t.0 != 0).count() as u32;
        (self.sacked_out, self.lost_out, self.retrans_out) =
            (count(Tags::SACKED), count(Tags::LOST), count(Tags::RETRANSMITTED));
        self.waiting = self.tags.iter().filter(|t| is_waiting(**t)).count() as u32;
        self.waiting_floor = 0;
        let highest = self.tags.iter().rposition(|t| t & Tags::SACKED.0 != 0);
        self.fackets_out = highest.map_or(0, |i| i as u32 + 1);
        self.bound_assumed_out();
        self.refresh_rtx_nxt_floor();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_units::Instant;
    use proptest::prelude::*;

    fn queue(lens: &[u32]) -> Segments {
        let mut s = Segments::default();
        s.measure_rates();
        let mut seq = Seq::new(u32::MAX - 3000);
        for len in lens {
            s.push(seq, *len, Instant::ZERO);
            seq += *len;
        }
        s
    }

    fn tag(s: &mut Segments, index: usize, how: u8) {
        match how {
            1 => s.sack(index),
            2 => s.mark_lost(index),
            3 => s.mark_retransmitted(index, Instant::ZERO, Seq::new(9)),
            4 => s.mark_retransmission_lost(index),
            _ => {}
        }
    }

    proptest! {
        /// Breaks: the counters, or the sequence numbers that rows stand for, when rows are cut; and no row
        /// that is too long may be left, or a path that lost its size swallows it for ever.
        #[test]
        fn the_counters_survive_a_cut(
            rows in prop::collection::vec((1u32..3000, 0u8..5), 1..40),
            at in 0usize..40,
            len in 1u32..3000,
            most in 1u32..1500,
            fin in any::<bool>(),
        ) {
            let mut s = queue(&rows.iter().map(|r| r.0).collect::<Vec<_>>());
            for (i, (_, how)) in rows.iter().enumerate() {
                tag(&mut s, i, *how);
            }
            let (start, end) = (s.row(0).map(|r| r.seq), s.end());
            let arrived = |s: &Segments| -> u32 {
                (0..s.len()).filter(|i| s.tags(*i).any(Tags::SACKED)).filter_map(|i| s.row(i)).map(|r| r.len).sum()
            };
            let bytes = arrived(&s);
            s.split(at, len);
            prop_assert_eq!(s.check(), Ok(()));
            let fin = end.filter(|_| fin).map(|e| e - 1);
            let longest = (0..s.len()).filter_map(|i| s.row(i)).map(|r| r.len).max().unwrap_or(0);
            let cut = s.split_longer(most, fin);
            prop_assert_eq!(s.check(), Ok(()));
            prop_assert!(cut || longest <= most + 1);
            prop_assert_eq!((s.row(0).map(|r| r.seq), s.end(), arrived(&s)), (start, end, bytes));
            for r in (0..s.len()).filter_map(|i| s.row(i)) {
                let payload = r.len - u32::from(fin.is_some_and(|f| r.end() == f + 1));
                prop_assert!(payload <= most && r.len > 0);
            }
        }
    }

    /// Breaks: what was cut must be sent again, in order, and what has arrived must not.
    #[test]
    fn parts_are_lost_unless_they_have_arrived() {
        let mut s = queue(&[1000, 1000, 400, 1000]);
        s.sack(1);
        s.mark_retransmitted(0, Instant::ZERO, Seq::new(5));
        assert!(s.split_longer(500, None));
        let tags: Vec<_> =
            (0..s.len()).map(|i| (s.tags(i).any(Tags::LOST), s.tags(i).any(Tags::SACKED))).collect();
        let (lost, arrived, flying) = ((true, false), (false, true), (false, false));
        assert_eq!(tags, [lost, lost, arrived, arrived, flying, lost, lost]);
        assert_eq!((s.first_waiting(), s.row(0).map(|r| r.lost_again())), (Some(0), Some(true)));
        assert!(!s.split_longer(500, None), "nothing is left to cut");
    }
}
