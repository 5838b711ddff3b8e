//! One row per outstanding segment: when it was sent, and what is known of it (the scoreboard).
//!
//! Rows are numbered from the head of the retransmission queue (index 0 = SND.UNA). The tags stand in an
//! array of their own, one byte a row, because recovery asks for "the next row with these tags" far more
//! often than for anything else; [`Segments::find`] answers by 64 rows at a time.

mod rates;
mod runs;
mod split;

pub use rates::{LostSegment, RateSample};

use crate::trim::{start, trim};
use farpace_units::{Instant, Packets, Seq, Span};
use rates::DeliveryRates;
use std::collections::VecDeque;

/// What is known of a segment. Legal sets: none, S, L, R, L|R, S|R, each with or without EVER_R.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tags(u8);

impl Tags {
    /// No tag.
    pub const NONE: Tags = Tags(0);
    /// S: the receiver has it out of order (SACK).
    pub const SACKED: Tags = Tags(1);
    /// R: a retransmission is believed in flight.
    pub const RETRANSMITTED: Tags = Tags(2);
    /// L: believed lost.
    pub const LOST: Tags = Tags(4);
    /// It was retransmitted at least once.
    pub const EVER_RETRANSMITTED: Tags = Tags(8);
    /// It was sent with PSH, and will be again.
    pub const PUSHED: Tags = Tags(16);
    /// It left in one burst with the row before it, and has been neither sent again nor cut off since (Linux:
    /// one skb).
    pub const JOINED: Tags = Tags(32);
    /// S, R and L: the tags that count in `in_flight`.
    pub const COUNTED: Tags = Tags(7);

    /// Both sets.
    #[must_use]
    pub const fn with(self, other: Tags) -> Tags {
        Tags(self.0 | other.0)
    }
    /// True if any tag of `other` is set.
    pub const fn any(self, other: Tags) -> bool {
        self.0 & other.0 != 0
    }
}

/// What is kept of one outstanding segment besides its tags.
#[derive(Clone, Copy, Debug)]
pub struct SegmentRow {
    /// First sequence number.
    pub seq: Seq,
    /// Sequence length: payload, plus one for FIN.
    pub len: u32,
    /// Last time it was sent.
    pub sent_at: Instant,
    /// SND.NXT when it was last retransmitted (the paper's per-packet "high_seq"); meaningless without R.
    pub rtx_nxt: Seq,
    /// The number of the transmission that carried it last, above one bit that says whether its last
    /// retransmission was found lost: a row has 24 bytes, and there are many.
    last: u32,
}

impl SegmentRow {
    /// It was just sent for the first time.
    pub(crate) fn new(seq: Seq, len: u32, sent_at: Instant) -> Self {
        SegmentRow { seq, len, sent_at, rtx_nxt: seq, last: 0 }
    }
    /// Its last retransmission was found lost.
    pub fn lost_again(&self) -> bool {
        self.last & 1 != 0
    }
    /// First sequence number after it.
    pub fn end(&self) -> Seq {
        self.seq + self.len
    }
}

/// What [`Segments::acknowledge`] took off the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acknowledged {
    /// Segments dropped from the queue.
    pub packets: Packets,
    /// One of them had been retransmitted (Karn's rule: no RTT from it).
    pub retransmitted: bool,
    /// When the first of them that was never retransmitted was sent.
    pub first_sent_at: Option<Instant>,
}

/// The retransmission queue with its counters.
///
/// Invariants (checked by [`check`](Segments::check) in debug builds): the counters equal a recount, no row
/// is both lost and SACKed, rows are contiguous, `left_out <= packets_out`.
#[derive(Clone, Debug, Default)]
pub struct Segments {
    rows: VecDeque<SegmentRow>,
    tags: VecDeque<u8>,
    sacked_out: u32,
    lost_out: u32,
    retrans_out: u32,
    fackets_out: u32,
    /// Segments that duplicate ACKs say have left the network, on connections without SACK.
    assumed_out: u32,
    /// Rows with L and without R: lost, and waiting to be sent again.
    waiting: u32,
    /// No row before this index is waiting, so that the first one is found at once.
    waiting_floor: usize,
    /// Not greater than the least `rtx_nxt` of any row with R, so that most ACKs need not look.
    rtx_nxt_floor: Option<Seq>,
    /// Delivery-rate samples, if congestion control wants them.
    rates: Option<Box<DeliveryRates>>,
    /// Transmissions so far.
    transmissions: u32,
    /// The latest of them that has left the host; none: all have.
    departed: Option<u32>,
    #[cfg(debug_assertions)]
    turn: crate::check_turn::CheckTurn,
}

impl Segments {
    /// Outstanding segments.
    pub fn packets_out(&self) -> Packets {
        Packets::new(self.rows.len() as u32)
    }
    /// SACKed segments; without SACK, those that duplicate ACKs stand for.
    pub fn sacked_out(&self) -> Packets {
        Packets::new(self.sacked_out + self.assumed_out)
    }
    /// Segments believed lost.
    pub fn lost_out(&self) -> Packets {
        Packets::new(self.lost_out)
    }
    /// Retransmissions believed in flight.
    pub fn retrans_out(&self) -> Packets {
        Packets::new(self.retrans_out)
    }
    /// Segments from SND.UNA up to and including the highest SACKed one.
    pub fn fackets_out(&self) -> Packets {
        Packets::new(self.fackets_out)
    }
    /// sacked_out + lost_out: segments that have left the network.
    pub fn left_out(&self) -> Packets {
        self.sacked_out() + self.lost_out()
    }
    /// packets_out - left_out + retrans_out (the paper's FACK formula).
    pub fn in_flight(&self) -> Packets {
        let out = self.rows.len() as u32 + self.retrans_out;
        Packets::new(out.saturating_sub(self.sacked_out + self.assumed_out + self.lost_out))
    }
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }
    /// True when nothing is outstanding.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
    /// The row at `index`.
    pub fn row(&self, index: usize) -> Option<&SegmentRow> {
        self.rows.get(index)
    }
    /// The tags at `index`; none beyond the end.
    pub fn tags(&self, index: usize) -> Tags {
        Tags(self.tags.get(index).copied().unwrap_or(0))
    }
    /// The last row's end, if there is one.
    pub fn end(&self) -> Option<Seq> {
        self.rows.back().map(SegmentRow::end)
    }

    /// Index of the first row with `row.seq >= seq`; `len()` if there is none.
    pub fn index_at_or_after(&self, seq: Seq) -> usize {
        let (Some(head), Some(last)) = (self.rows.front(), self.rows.back()) else { return 0 };
        if !head.seq.before(seq) {
            return 0;
        }
        if last.seq.before(seq) {
            return self.rows.len();
        }
        // Nearly all segments have the length of the first one: look there before searching.
        let guess = (seq.bytes_since(head.seq) / head.len.max(1)) as usize;
        if let (Some(r), Some(p)) = (self.rows.get(guess), self.rows.get(guess.wrapping_sub(1)))
            && !r.seq.before(seq)
            && p.seq.before(seq)
        {
            return guess;
        }
        self.rows.partition_point(|r| r.seq.before(seq))
    }

    /// The first index in `from..to` whose tags, masked with `mask`, equal `want`.
    pub fn find(&self, from: usize, to: usize, mask: Tags, want: Tags) -> Option<usize> {
        let to = to.min(self.tags.len());
        if from >= to {
            return None;
        }
        let (a, b) = self.tags.as_slices();
        let hit = |s: &[u8], at: usize| find_tag(s, mask.0, want.0).map(|i| i + at);
        if from < a.len() {
            hit(&a[from..to.min(a.len())], from)
                .or_else(|| if to > a.len() { hit(&b[..to - a.len()], a.len()) } else { None })
        } else {
            hit(&b[from - a.len()..to - a.len()], from)
        }
    }

    /// The first row that is lost and not sent again yet.
    pub fn first_waiting(&self) -> Option<usize> {
        if self.waiting == 0 {
            return None;
        }
        self.find(self.waiting_floor, self.tags.len(), Tags::COUNTED, Tags::LOST)
    }

    /// A packet is about to be sent; the rows that are added or sent again until the next call are in it. Its
    /// number.
    pub fn begin_transmission(&mut self) -> u32 {
        // A bit of the number is lost in rows.
        self.transmissions = (self.transmissions + 1) & (u32::MAX >> 1);
        self.transmissions
    }

    /// The transmission with this number, and those before it, have left the host. From the first call on,
    /// others are taken to wait there.
    pub fn set_departed(&mut self, number: u32) {
        self.departed = Some(number);
    }

    /// True if transmission `number` has not left the host.
    pub fn is_inside(&self, number: u32) -> bool {
        self.departed.is_some_and(|departed| (number << 1).wrapping_sub(departed << 1) as i32 > 0)
    }

    /// True if the last copy of the row at `index` has not left the host: it cannot be lost, and need not be
    /// sent again.
    pub fn waits_inside(&self, index: usize) -> bool {
        self.departed.is_some() && self.rows.get(index).is_some_and(|row| self.is_inside(row.last >> 1))
    }

    /// Adds a segment that was just sent for the first time; it must follow the last one.
    pub fn push(&mut self, seq: Seq, len: u32, now: Instant) {
        debug_assert!(self.end().is_none_or(|e| e == seq), "segments are contiguous");
        if self.rows.is_empty() {
            start(&mut self.rows);
            start(&mut self.tags);
        }
        self.rows.push_back(SegmentRow { last: self.transmissions << 1, ..SegmentRow::new(seq, len, now) });
        self.tags.push_back(0);
        if self.rates.is_some() {
            self.push_rate(now);
        }
    }

    fn push_rate(&mut self, now: Instant) {
        let in_flight = self.in_flight();
        if let Some(rates) = &mut self.rates {
            rates.push(now, in_flight);
        }
    }

    /// The segment that was added last has PSH, each time that it is sent.
    pub fn mark_pushed(&mut self) {
        if let Some(tag) = self.tags.back_mut() {
            *tag |= Tags::PUSHED.0;
        }
    }

    /// The segment that was added last left in one burst with the one before.
    pub fn mark_joined(&mut self) {
        if let Some(tag) = self.tags.back_mut() {
            *tag |= Tags::JOINED.0;
        }
    }

    /// Drops every row that ends at or before `ack`, and settles the counters.
    pub fn acknowledge(&mut self, ack: Seq) -> Acknowledged {
        self.acknowledge_each(ack, |_, _, _| {})
    }

    /// The same; rows that go are shown to `see` first, in order, with how many they stand for: of rows
    /// without tags that follow each other the last may stand for all but the first.
    pub fn acknowledge_each(
        &mut self,
        ack: Seq,
        mut see: impl FnMut(&SegmentRow, Tags, u32),
    ) -> Acknowledged {
        let mut done = self.acknowledge_run(ack, &mut see);
        while let (Some(row), Some(&tag)) = (self.rows.front(), self.tags.front()) {
            if row.end().after(ack) {
                break;
            }
            if tag & RETRANSMITTED_EVER != 0 {
                done.retransmitted = true;
            } else {
                done.first_sent_at = done.first_sent_at.or(Some(row.sent_at));
            }
            see(row, Tags(tag), 1);
            if let Some(rates) = &mut self.rates {
                rates.on_delivered(0, row, tag & RETRANSMITTED_EVER == 0);
                rates.pop();
            }
            self.uncount(tag);
            self.rows.pop_front();
            self.tags.pop_front();
            done.packets += Packets::new(1);
        }
        self.fackets_out = self.fackets_out.saturating_sub(done.packets.get());
        self.waiting_floor = self.waiting_floor.saturating_sub(done.packets.get() as usize);
        self.bound_assumed_out();
        if self.retrans_out == 0 {
            self.rtx_nxt_floor = None;
        }
        done
    }

    /// Gives memory back that nothing outstanding needs. To be called when what was acknowledged has let
    /// nothing leave: one window that follows the other would grow anew otherwise.
    pub fn trim(&mut self) {
        if self.rows.is_empty() {
            trim(&mut self.rows);
            trim(&mut self.tags);
            if let Some(rates) = &mut self.rates {
                rates.trim();
            }
        }
    }

    fn uncount(&mut self, tag: u8) {
        self.sacked_out -= u32::from(tag & Tags::SACKED.0 != 0);
        self.lost_out -= u32::from(tag & Tags::LOST.0 != 0);
        self.retrans_out -= u32::from(tag & Tags::RETRANSMITTED.0 != 0);
        self.waiting -= u32::from(is_waiting(tag));
    }

    /// Replaces the counted tags (S, R, L) of a row and settles the counters. L|S is not a legal set.
    fn retag(&mut self, index: usize, counted: Tags) {
        debug_assert!(!(counted.any(Tags::LOST) && counted.any(Tags::SACKED)), "L|S is illegal");
        let Some(tag) = self.tags.get_mut(index) else { return };
        let old = *tag;
        *tag = (old & !Tags::COUNTED.0) | counted.0;
        if let (Some(rates), Some(row)) = (&mut self.rates, self.rows.get(index)) {
            if counted.any(Tags::SACKED) {
                rates.on_delivered(index, row, old & RETRANSMITTED_EVER == 0);
            } else if is_waiting(counted.0) && !is_waiting(old) {
                rates.on_lost(index, row);
            }
        }
        self.uncount(old);
        self.sacked_out += u32::from(counted.any(Tags::SACKED));
        self.lost_out += u32::from(counted.any(Tags::LOST));
        self.retrans_out += u32::from(counted.any(Tags::RETRANSMITTED));
        if is_waiting(counted.0) {
            self.waiting += 1;
            self.waiting_floor = self.waiting_floor.min(index);
        }
        self.bound_assumed_out();
    }

    fn counted(&self, index: usize) -> Tags {
        Tags(self.tags(index).0 & Tags::COUNTED.0)
    }

    /// The receiver holds this segment. L and L|R become S; a row with R alone keeps R, because the kernel
    /// believes that the original arrived and the copy still flies.
    pub fn sack(&mut self, index: usize) {
        let t = self.counted(index);
        let keep =
            if t.any(Tags::RETRANSMITTED) && !t.any(Tags::LOST) { Tags::RETRANSMITTED } else { Tags::NONE };
        self.retag(index, Tags::SACKED.with(keep));
        self.fackets_out = self.fackets_out.max(index as u32 + 1);
    }

    /// The receiver holds this segment, and no copy of it counts as flying any more: S alone.
    pub fn sack_for_good(&mut self, index: usize) {
        self.retag(index, Tags::SACKED);
        self.fackets_out = self.fackets_out.max(index as u32 + 1);
        if self.retrans_out == 0 {
            self.rtx_nxt_floor = None;
        }
    }

    /// The segment is believed lost. A row with S is left alone.
    pub fn mark_lost(&mut self, index: usize) {
        let t = self.counted(index);
        if !t.any(Tags::SACKED) {
            self.retag(index, t.with(Tags::LOST));
        }
    }

    /// The retransmission that was in flight is not any more.
    pub fn clear_retransmitted(&mut self, index: usize) {
        let t = self.counted(index);
        self.retag(index, Tags(t.0 & !Tags::RETRANSMITTED.0));
        if self.retrans_out == 0 {
            self.rtx_nxt_floor = None;
        }
    }

    /// The retransmission itself was lost: R goes, and the row is lost (again).
    pub fn mark_retransmission_lost(&mut self, index: usize) {
        self.clear_retransmitted(index);
        self.mark_lost(index);
        if let Some(r) = self.rows.get_mut(index) {
            r.last |= 1;
        }
    }

    /// The segment was just sent again, with SND.NXT at `snd_nxt`.
    pub fn mark_retransmitted(&mut self, index: usize, now: Instant, snd_nxt: Seq) {
        if self.first_waiting() == Some(index) {
            self.waiting_floor = index + 1;
        }
        let t = self.counted(index);
        self.retag(index, t.with(Tags::RETRANSMITTED));
        if let Some(tag) = self.tags.get_mut(index) {
            *tag |= Tags::EVER_RETRANSMITTED.0;
        }
        if let Some(r) = self.rows.get_mut(index) {
            r.sent_at = now;
            r.rtx_nxt = snd_nxt;
            r.last = self.transmissions << 1;
        }
        let in_flight = self.in_flight();
        if let Some(rates) = &mut self.rates {
            rates.on_sent(index, now, in_flight);
        }
        self.rtx_nxt_floor = Some(self.rtx_nxt_floor.map_or(snd_nxt, |f| f.earlier(snd_nxt)));
    }

    /// True if some row in `from..to` has R and was retransmitted before SND.NXT reached `end`: then data
    /// sent after the retransmission has arrived.
    pub fn retransmission_older_than(&self, from: usize, to: usize, end: Seq) -> bool {
        if self.rtx_nxt_floor.is_none_or(|floor| !end.after(floor)) {
            return false;
        }
        self.retransmitted(from, to).any(|i| self.rows.get(i).is_some_and(|r| end.after(r.rtx_nxt)))
    }

    /// The rows in `from..to` that have R.
    pub fn retransmitted(&self, from: usize, to: usize) -> impl Iterator<Item = usize> + '_ {
        let mut at = from;
        std::iter::from_fn(move || {
            let i = self.find(at, to, Tags::RETRANSMITTED, Tags::RETRANSMITTED)?;
            at = i + 1;
            Some(i)
        })
    }

    /// Makes the floor of `rtx_nxt` exact again; call it after a scan that cleared old retransmissions.
    pub fn refresh_rtx_nxt_floor(&mut self) {
        let floor = self.retransmitted(0, self.len()).filter_map(|i| self.rows.get(i)).map(|r| r.rtx_nxt);
        self.rtx_nxt_floor = floor.reduce(Seq::earlier);
    }

    /// After a retransmission timeout: R and L go, what is not SACKed is lost; with `forget_sacks` nothing
    /// counts as SACKed any more. Returns true if some segment had ever been retransmitted.
    pub fn lose_all(&mut self, forget_sacks: bool) -> bool {
        let mut ever = false;
        let mut highest = 0;
        (self.sacked_out, self.lost_out, self.retrans_out, self.assumed_out) = (0, 0, 0, 0);
        self.waiting_floor = 0;
        for (i, tag) in self.tags.iter_mut().enumerate() {
            ever |= *tag & RETRANSMITTED_EVER != 0;
            if let (Some(rates), Some(row)) = (&mut self.rates, self.rows.get(i))
                && *tag & Tags::SACKED.0 == 0
                && !is_waiting(*tag)
            {
                rates.on_lost(i, row);
            }
            let sacked = *tag & Tags::SACKED.0 != 0 && !forget_sacks;
            *tag = (*tag & Tags::EVER_RETRANSMITTED.0) | if sacked { Tags::SACKED.0 } else { Tags::LOST.0 };
            self.sacked_out += u32::from(sacked);
            self.lost_out += u32::from(!sacked);
            if sacked {
                highest = i as u32 + 1;
            }
        }
        self.waiting = self.lost_out;
        self.fackets_out = highest;
        self.rtx_nxt_floor = None;
        ever
    }

    /// The segment was just sent again, but does not count as a retransmission in flight: a probe.
    pub fn mark_probed(&mut self, index: usize, now: Instant) {
        if let Some(tag) = self.tags.get_mut(index) {
            *tag |= Tags::EVER_RETRANSMITTED.0;
        }
        if let Some(r) = self.rows.get_mut(index) {
            r.sent_at = now;
            r.last = self.transmissions << 1;
        }
        let in_flight = self.in_flight();
        if let Some(rates) = &mut self.rates {
            rates.on_sent(index, now, in_flight);
        }
    }

    /// The receiver may hold nothing of what it had SACKed any more.
    pub fn forget_sacks(&mut self) {
        for tag in &mut self.tags {
            *tag &= !Tags::SACKED.0;
        }
        (self.sacked_out, self.fackets_out) = (0, 0);
    }

    /// No segment is lost after all.
    pub fn clear_lost(&mut self) {
        for tag in &mut self.tags {
            *tag &= !Tags::LOST.0;
        }
        self.lost_out = 0;
        self.waiting = 0;
    }

    /// With nothing SACKed there is no highest SACKed segment.
    pub fn reset_fackets_if_none_sacked(&mut self) {
        if self.sacked_out == 0 {
            self.fackets_out = 0;
        }
    }

    /// Without SACK: how many segments duplicate ACKs stand for. Never more than can have arrived.
    pub fn set_assumed_out(&mut self, n: Packets) {
        // At least the head is missing, or it would have been acknowledged.
        let most = (self.rows.len() as u32).saturating_sub(self.sacked_out + self.lost_out.max(1));
        self.assumed_out = n.get().min(most);
    }

    /// From now on delivery rates are measured.
    pub fn measure_rates(&mut self) {
        if self.rates.is_none() {
            self.rates = Some(Box::new(DeliveryRates::new(self.rows.len())));
        }
    }

    /// What has arrived since the last call says this of the path; none if nothing has, or if rates are not
    /// measured. `min_rtt` is the least round trip of the connection: a shorter interval is an artefact.
    pub fn take_rate_sample(&mut self, now: Instant, min_rtt: Option<Span>) -> Option<RateSample> {
        self.rates.as_mut()?.take_sample(now, min_rtt)
    }

    /// Segments found lost over the whole connection; 0 without [`measure_rates`](Self::measure_rates).
    pub fn total_lost(&self) -> u64 {
        self.rates.as_ref().map_or(0, |rates| rates.total_lost())
    }

    /// Hands the segments found lost since the last call to `take`, if rates are measured.
    pub fn take_losses(&mut self, take: impl FnMut(LostSegment)) {
        if let Some(rates) = &mut self.rates {
            rates.take_losses(take);
        }
    }

    /// What is sent from here on, until all of it has left the network, is held back by the application: its
    /// rate is not the path's.
    pub fn mark_app_limited(&mut self) {
        let in_flight = self.in_flight();
        if let Some(rates) = &mut self.rates {
            rates.mark_app_limited(in_flight);
        }
    }

    /// Fewer segments, or more that are lost: the assumption has to give way.
    fn bound_assumed_out(&mut self) {
        let most = (self.rows.len() as u32).saturating_sub(self.sacked_out + self.lost_out);
        self.assumed_out = self.assumed_out.min(most);
    }

    /// Segments that duplicate ACKs stand for, on connections without SACK.
    pub fn assumed_out(&self) -> Packets {
        Packets::new(self.assumed_out)
    }

    /// [Recounts](Segments::check) long queues more rarely than short ones.
    ///
    /// # Errors
    /// As [`check`](Segments::check).
    #[cfg(debug_assertions)]
    pub fn check_in_turn(&mut self) -> Result<(), String> {
        if self.turn.take(self.rows.len()) { self.check() } else { Ok(()) }
    }

    /// True if [`check_in_turn`](Segments::check_in_turn) will recount next time.
    #[cfg(debug_assertions)]
    pub fn is_check_due(&self) -> bool {
        self.turn.is_due(self.rows.len())
    }

    /// Recounts everything; the error names what does not agree.
    ///
    /// # Errors
    /// A counter that differs from the rows, an illegal tag set, or a hole between rows.
    pub fn check(&self) -> Result<(), String> {
        let count = |t: Tags| self.tags.iter().filter(|&&x| x & t.0 != 0).count() as u32;
        let pairs = [
            ("sacked_out", self.sacked_out, count(Tags::SACKED)),
            ("lost_out", self.lost_out, count(Tags::LOST)),
            ("retrans_out", self.retrans_out, count(Tags::RETRANSMITTED)),
        ];
        for (name, kept, counted) in pairs {
            if kept != counted {
                return Err(format!("{name} is {kept}, a recount gives {counted}"));
            }
        }
        let waiting = self.tags.iter().filter(|t| is_waiting(**t)).count() as u32;
        let first = self.tags.iter().position(|t| is_waiting(*t));
        if self.waiting != waiting || self.first_waiting() != first {
            return Err(format!("{} rows wait to be sent again, a recount gives {waiting}", self.waiting));
        }
        let both = Tags::LOST.0 | Tags::SACKED.0;
        if self.tags.iter().any(|t| t & both == both) {
            return Err("a row is lost and SACKed".into());
        }
        if self.tags.len() != self.rows.len() || self.left_out() > self.packets_out() {
            return Err(format!("left_out {} of {} rows", self.left_out(), self.rows.len()));
        }
        if self.rows.iter().zip(self.rows.iter().skip(1)).any(|(a, b)| a.end() != b.seq) {
            return Err("rows are not contiguous".into());
        }
        if self.rates.as_ref().is_some_and(|r| r.len() != self.rows.len()) {
            return Err("rows and rates do not agree".into());
        }
        let highest = self.tags.iter().rposition(|t| t & Tags::SACKED.0 != 0).map_or(0, |i| i as u32 + 1);
        if self.fackets_out < highest || self.fackets_out > self.rows.len() as u32 {
            return Err(format!("fackets_out is {}, highest SACKed is {highest}", self.fackets_out));
        }
        Ok(())
    }
}

/// It was sent more than once.
const RETRANSMITTED_EVER: u8 = Tags::EVER_RETRANSMITTED.0 | Tags::RETRANSMITTED.0;

/// L without R. (L|S does not occur.)
const fn is_waiting(tag: u8) -> bool {
    tag & (Tags::LOST.0 | Tags::RETRANSMITTED.0) == Tags::LOST.0
}

/// First byte of `tags` with `tag & mask == want`, 64 at a time.
fn find_tag(tags: &[u8], mask: u8, want: u8) -> Option<usize> {
    let mut chunks = tags.chunks_exact(64);
    let mut at = 0;
    for c in &mut chunks {
        // A sum without early exit becomes vector instructions; 64 ones fit into a byte.
        if c.iter().map(|t| u8::from(t & mask == want)).sum::<u8>() != 0 {
            return c.iter().position(|t| t & mask == want).map(|i| i + at);
        }
        at += 64;
    }
    chunks.remainder().iter().position(|t| t & mask == want).map(|i| i + at)
}
