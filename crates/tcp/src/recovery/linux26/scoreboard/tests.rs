//! The block sort, and a second writing of the scoreboard update that visits every segment, one by one, as
//! the kernel does. The two must agree on every tag, counter and position.

use super::*;
use crate::cc::PerAckReno;
use crate::config::{self, Abc, Linux26, Reduction};
use crate::rto::{MinRtt, RtoEstimator, TcpClock};
use crate::segments::Segments;
use crate::window::Window;
use farpace_units::{Instant, Packets, RandomStream, Span};
use farpace_wire::tcp::SackBlocks;
use proptest::prelude::*;

const MSS: u32 = 1000;
const KINDS: [LostRtx; 4] = [LostRtx::PerBlock, LostRtx::MaxEnd, LostRtx::NewBlocks, LostRtx::NewlySacked];

fn switches(sack_sort: SackSort, hint: Hint, dsack_scope: DsackScope, lost_rtx: LostRtx) -> Linux26 {
    let (abc, reordering, reduction) = (Abc::Off, Packets::new(3), Reduction::RateHalving);
    Linux26 { abc, sack_sort, hint, dsack_scope, lost_rtx, reordering, reduction }
}

/// All 48 ways to set the switches that the scoreboard looks at.
fn combinations() -> impl Iterator<Item = Linux26> {
    [SackSort::Buggy, SackSort::Ok].into_iter().flat_map(|sort| {
        [Hint::EveryBlock, Hint::FirstBlock, Hint::None].into_iter().flat_map(move |hint| {
            [DsackScope::Ack, DsackScope::FirstBlock].into_iter().flat_map(move |scope| {
                KINDS.into_iter().map(move |lost_rtx| switches(sort, hint, scope, lost_rtx))
            })
        })
    })
}

/// Start ranks of the blocks after sorting.
fn sorted_ranks(sort: SackSort, ranks: &[u32]) -> Vec<u32> {
    let blocks: Vec<SackBlock> =
        ranks.iter().map(|r| SackBlock { start: Seq::new(r * 10), end: Seq::new(r * 10 + 5) }).collect();
    let recovery = Linux26Recovery::new(switches(sort, Hint::None, DsackScope::Ack, LostRtx::PerBlock));
    recovery.sorted(&blocks)[..ranks.len()].iter().map(|b| b.start.get() / 10).collect()
}

/// Breaks: the second defect, exactly as the kernel had it (V3): which blocks get lost for which order of
/// three.
#[test]
fn v3_sort_of_three_blocks() {
    let table = [
        ([1, 2, 3], [1, 2, 3]),
        ([1, 3, 2], [1, 2, 3]),
        ([2, 1, 3], [1, 2, 3]),
        ([2, 3, 1], [3, 2, 3]),
        ([3, 1, 2], [1, 2, 1]),
        ([3, 2, 1], [2, 3, 2]),
    ];
    for (wire, buggy) in table {
        assert_eq!(sorted_ranks(SackSort::Buggy, &wire), buggy, "{wire:?}");
        assert_eq!(sorted_ranks(SackSort::Ok, &wire), [1, 2, 3], "{wire:?}");
    }
    for wire in [[1, 2], [2, 1]] {
        assert_eq!(sorted_ranks(SackSort::Buggy, &wire), [1, 2], "two blocks are always right");
    }
}

/// Breaks: how often the wrong sort hurts connections without timestamps, which have four blocks (V3).
#[test]
fn v3_nineteen_of_twenty_four_orders_are_wrong() {
    let mut wrong = 0;
    for code in 0..256u32 {
        let order: Vec<u32> = (0..4).map(|i| 1 + (code >> (2 * i)) % 4).collect();
        if (1..=4).any(|r| !order.contains(&r)) {
            continue;
        }
        assert_eq!(sorted_ranks(SackSort::Ok, &order), [1, 2, 3, 4]);
        wrong += u32::from(sorted_ranks(SackSort::Buggy, &order) != [1, 2, 3, 4]);
    }
    assert_eq!(wrong, 19);
}

/// One queued segment of the literal form.
#[derive(Clone, Copy, Debug)]
struct Skb {
    seq: Seq,
    end: Seq,
    s: bool,
    r: bool,
    l: bool,
    ever: bool,
    rtx_nxt: Seq,
}

/// The literal form: the kernel's variables, and a queue that is always walked segment by segment.
struct Literal {
    switches: Linux26,
    queue: Vec<Skb>,
    fackets_out: u32,
    reordering: u32,
    fack: bool,
    undo_marker: Option<Seq>,
    undo_retrans: i64,
    high_seq: Seq,
    state: RecoveryState,
    cache: [SackBlock; 4],
    hint: Option<usize>,
}

impl Literal {
    fn sacked_out(&self) -> u32 {
        self.queue.iter().filter(|k| k.s).count() as u32
    }

    /// Returns DATA_SACKED and DATA_LOST.
    fn sacktag(&mut self, ack: &AckInput<'_>) -> (bool, bool) {
        let (mut data_sacked, mut data_lost) = (false, false);
        let wire: Vec<SackBlock> = ack.sack.to_vec();
        if self.sacked_out() == 0 {
            self.fackets_out = 0;
        }
        let prior_fack = self.fackets_out;
        let mut reord = self.queue.len() as u32;
        // Is it the fast path? And remember the blocks.
        let previous = self.cache;
        let mut fast = true;
        for i in 0..wire.len() {
            if i == 0 {
                fast &= wire[0].start == self.cache[0].start;
            } else {
                fast &= wire[i] == self.cache[i];
            }
            self.cache[i] = wire[i];
        }
        if self.switches.hint != Hint::EveryBlock {
            for i in wire.len()..4 {
                self.cache[i] = SackBlock::default();
            }
        }
        // Is the first block a D-SACK?
        let mut dsack = wire[0].start.before(ack.ack);
        if !dsack && wire.len() > 1 {
            dsack = !wire[0].end.after(wire[1].end) && !wire[0].start.before(wire[1].start);
        }
        let forgotten = dsack && !wire[0].end.after(ack.prior_snd_una);
        if forgotten && self.undo_marker.is_some_and(|marker| wire[0].end.after(marker)) {
            self.undo_retrans -= 1;
        }
        if ack.ack.before(ack.prior_snd_una - ack.max_window) {
            return (false, false);
        }
        // Order the blocks: (block, place on the wire).
        let received: Vec<(SackBlock, usize)> = wire.iter().copied().zip(0..).collect();
        let mut order = received.clone();
        if fast {
            order.truncate(1);
        } else {
            self.hint = None;
            let mut i = wire.len() - 1;
            while i > 0 {
                for j in 0..i {
                    if order[j].0.start.after(order[j + 1].0.start) {
                        if self.switches.sack_sort == SackSort::Buggy {
                            order[j] = received[j + 1];
                            order[j + 1] = received[j];
                        } else {
                            order.swap(j, j + 1);
                        }
                    }
                }
                i -= 1;
            }
        }
        let mut lost_retrans: Option<Seq> = None;
        let mut newly_sacked: Option<Seq> = None;
        let mut position = self.hint;
        for (block, place) in order {
            if block.end.after(self.high_seq) {
                data_lost = true;
            }
            let dup = dsack && (self.switches.dsack_scope == DsackScope::Ack || place == 0);
            if self.switches.lost_rtx == LostRtx::NewBlocks && !dup && previous.contains(&block) {
                continue;
            }
            if self.switches.hint == Hint::None {
                position = None;
            }
            let mut i = position.unwrap_or(0);
            while i < self.queue.len() {
                position = Some(i);
                let moves_hint = match self.switches.hint {
                    Hint::EveryBlock => true,
                    Hint::FirstBlock => place == 0,
                    Hint::None => false,
                };
                if moves_hint {
                    self.hint = Some(i);
                }
                let k = self.queue[i];
                if !k.seq.before(block.end) {
                    break;
                }
                let fack_count = i as u32 + 1;
                let inside = !block.start.after(k.seq) && !block.end.before(k.end);
                i += 1;
                let ever = k.ever || k.r;
                if dup && inside && ever && self.undo_marker.is_some_and(|m| k.end.after(m)) {
                    self.undo_retrans -= 1;
                }
                if !k.end.after(ack.snd_una) {
                    if ever {
                        if dup && inside && k.s {
                            reord = reord.min(fack_count);
                        }
                    } else if fack_count < prior_fack && !k.s {
                        reord = reord.min(fack_count);
                    }
                    continue;
                }
                if k.r && block.end.after(k.rtx_nxt) && lost_retrans.is_none_or(|l| block.end.after(l)) {
                    lost_retrans = Some(block.end);
                }
                if !inside {
                    continue;
                }
                let k = &mut self.queue[i - 1];
                if !k.s {
                    if k.r {
                        if k.l {
                            (k.l, k.r) = (false, false);
                        }
                    } else {
                        if !ever && fack_count < prior_fack {
                            reord = reord.min(fack_count);
                        }
                        k.l = false;
                    }
                    k.s = true;
                    data_sacked = true;
                    self.fackets_out = self.fackets_out.max(fack_count);
                    if newly_sacked.is_none_or(|e| k.end.after(e)) {
                        newly_sacked = Some(k.end);
                    }
                } else if dup && ever {
                    reord = reord.min(fack_count);
                }
                if dup && k.r {
                    k.r = false;
                }
            }
        }
        // Event C.
        let received_upto = match self.switches.lost_rtx {
            LostRtx::PerBlock | LostRtx::NewBlocks => lost_retrans,
            LostRtx::NewlySacked => newly_sacked,
            LostRtx::MaxEnd => {
                let mut most = wire[0].end;
                for b in &wire {
                    if b.end.after(most) {
                        most = b.end;
                    }
                }
                Some(most)
            }
        };
        if let (RecoveryState::Recovery, Some(upto)) = (self.state, received_upto) {
            for k in &mut self.queue {
                if k.seq.after(upto) || !k.end.after(ack.snd_una) {
                    continue;
                }
                let patient = k.rtx_nxt + self.reordering * MSS;
                if k.r && upto.after(k.rtx_nxt) && (self.fack || !upto.before(patient)) {
                    k.r = false;
                    if !k.s {
                        k.l = true;
                        data_sacked = true;
                    }
                }
            }
        }
        if reord < self.fackets_out && self.state != RecoveryState::Loss {
            let metric = self.fackets_out + 1 - reord;
            if metric > self.reordering {
                self.reordering = metric.min(127);
                self.fack = false;
            }
        }
        (data_sacked, data_lost)
    }
}

/// The two forms side by side, fed the same.
struct Pair {
    literal: Literal,
    ours: Linux26Recovery,
    segments: Segments,
    window: Window,
    rng: RandomStream,
    now: Instant,
    una: Seq,
    next: Seq,
}

impl Pair {
    fn new(switches: Linux26, seed: u64) -> Self {
        let mut rng = RandomStream::new(seed, "scoreboard");
        // Near the wrap in half of the runs.
        let start = if rng.chance(0.5) { Seq::new(u32::MAX - rng.below(20_000) as u32) } else { Seq::new(1) };
        let mut pair = Pair {
            literal: Literal {
                switches,
                queue: Vec::new(),
                fackets_out: 0,
                reordering: switches.reordering.get(),
                fack: true,
                undo_marker: None,
                undo_retrans: 0,
                high_seq: start,
                state: RecoveryState::Open,
                cache: [SackBlock::default(); 4],
                hint: None,
            },
            ours: Linux26Recovery::new(switches),
            segments: Segments::default(),
            window: Window::new(Packets::new(10), None, Packets::MAX, Abc::Off, MSS),
            rng,
            now: Instant::ZERO,
            una: start,
            next: start,
        };
        pair.ours.high_seq = start;
        for _ in 0..pair.rng.below(30) + 2 {
            pair.push();
        }
        pair
    }

    fn push(&mut self) {
        // Mostly full segments, now and then a shorter one.
        let len = if self.rng.chance(0.8) { MSS } else { 1 + self.rng.below(u64::from(MSS)) as u32 };
        let (seq, end) = (self.next, self.next + len);
        self.segments.push(seq, len, self.now);
        self.literal.queue.push(Skb { seq, end, s: false, r: false, l: false, ever: false, rtx_nxt: seq });
        self.next = end;
    }

    /// Sends, retransmits, marks and changes state at random, in both forms alike.
    fn shake(&mut self) {
        for _ in 0..self.rng.below(4) {
            self.push();
        }
        for i in 0..self.literal.queue.len() {
            let k = &mut self.literal.queue[i];
            if !k.s && !k.l && self.rng.chance(0.15) {
                k.l = true;
                self.segments.mark_lost(i);
            }
            if !k.s && !k.r && self.rng.chance(if k.l { 0.5 } else { 0.05 }) {
                (k.r, k.ever, k.rtx_nxt) = (true, true, self.next);
                self.segments.mark_retransmitted(i, self.now, self.next);
            }
        }
        let states =
            [RecoveryState::Recovery, RecoveryState::Disorder, RecoveryState::Loss, RecoveryState::Open];
        if self.rng.chance(0.3) {
            let state = states[self.rng.below(4) as usize];
            let marker = self.rng.chance(0.7).then_some(self.una);
            let undo_retrans = self.rng.below(4) as i64;
            (self.literal.state, self.ours.state) = (state, state);
            (self.literal.high_seq, self.ours.high_seq) = (self.next, self.next);
            (self.literal.undo_marker, self.ours.undo_marker) = (marker, marker);
            (self.literal.undo_retrans, self.ours.undo_retrans) = (undo_retrans, undo_retrans);
        }
    }

    fn edge(&mut self) -> Seq {
        let n = self.literal.queue.len() as u64;
        let seq = match self.rng.below(n + 1) {
            i if i == n => self.next,
            i => self.literal.queue[i as usize].seq,
        };
        // Most edges are segment edges; some lie inside, below the queue or above it.
        match self.rng.below(20) {
            0 => seq + self.rng.below(u64::from(MSS)) as u32,
            1 => self.una - self.rng.below(5000) as u32,
            2 => self.next + self.rng.below(5000) as u32,
            _ => seq,
        }
    }

    fn block(&mut self) -> SackBlock {
        let (a, b) = (self.edge(), self.edge());
        // One in fifty has its ends the wrong way round.
        let (start, end) =
            if self.rng.chance(0.02) { (a.later(b), a.earlier(b)) } else { (a.earlier(b), a.later(b)) };
        SackBlock { start, end }
    }

    /// Blocks as a receiver makes them, from those of the last ACK: the first grows, another comes to the
    /// front, a new one appears, a D-SACK precedes; and sometimes anything at all.
    fn blocks(&mut self) -> SackBlocks {
        let known = self.literal.cache.iter().take_while(|b| **b != SackBlock::default()).count();
        let mut blocks: Vec<SackBlock> = self.literal.cache[..known].to_vec();
        match self.rng.below(5) {
            0 if known > 0 => blocks[0].end += MSS,
            1 if known > 0 => {
                let chosen = blocks.remove(self.rng.below(known as u64) as usize);
                blocks.insert(0, chosen);
            }
            2 => blocks = (0..self.rng.below(4) + 1).map(|_| self.block()).collect(),
            3 if known > 1 => blocks.truncate(1 + self.rng.below(known as u64) as usize),
            _ => {
                let new = self.block();
                blocks.insert(0, new);
            }
        }
        if blocks.is_empty() {
            blocks.push(self.block());
        }
        blocks.into_iter().take(4).collect()
    }

    fn acknowledge(&mut self) {
        self.now += Span::from_millis(1);
        let prior = self.una;
        if self.rng.chance(0.25) {
            let i = self.rng.below(self.literal.queue.len() as u64) as usize;
            let k = self.literal.queue[i];
            self.una = if self.rng.chance(0.1) { k.seq + (k.end.bytes_since(k.seq) / 2) } else { k.seq };
            self.una = self.una.later(prior);
        }
        let old = self.rng.chance(0.05);
        let ack = if old { prior - self.rng.below(200_000) as u32 } else { self.una };
        let sack = self.blocks();
        let una = if old { prior } else { self.una };
        let input = AckInput { ack, ..AckInput::of(self.now, prior, una, self.next, &sack) };
        self.una = input.snd_una;
        let literal = self.literal.sacktag(&input);
        let news = self.ours.update_scoreboard(
            &input,
            &mut Context {
                segments: &mut self.segments,
                window: &mut self.window,
                cc: &mut PerAckReno,
                rto: &mut RtoEstimator::new(config::Rto::Linux26, Span::ZERO, TcpClock::default()),
                min_rtt: &mut MinRtt::default(),
                sack: true,
                causes: &mut Vec::new(),
            },
        );
        assert_eq!((news.data_sacked, news.data_lost), literal, "flags after {sack:?}");
        self.compare(&sack);
        // Drop what is acknowledged.
        let done = self.literal.queue.iter().take_while(|k| !k.end.after(self.una)).count();
        assert_eq!(self.segments.acknowledge(self.una).packets.get() as usize, done);
        self.literal.queue.drain(..done);
        self.literal.fackets_out = self.literal.fackets_out.saturating_sub(done as u32);
        if done > 0 {
            (self.literal.hint, self.ours.hint) = (None, None);
        }
        if self.literal.queue.is_empty() {
            self.push();
        }
    }

    fn compare(&self, sack: &SackBlocks) {
        let (l, o) = (&self.literal, &self.ours);
        for (i, k) in l.queue.iter().enumerate() {
            let tags = self.segments.tags(i);
            let ours = [Tags::SACKED, Tags::RETRANSMITTED, Tags::LOST, Tags::EVER_RETRANSMITTED]
                .map(|t| tags.any(t));
            assert_eq!(ours, [k.s, k.r, k.l, k.ever], "S, R, L, ever of segment {i} after {sack:?}");
        }
        let s = &self.segments;
        let count = |f: fn(&Skb) -> bool| l.queue.iter().filter(|k| f(k)).count() as u32;
        assert_eq!(
            [s.sacked_out(), s.lost_out(), s.retrans_out(), s.fackets_out()].map(Packets::get),
            [count(|k| k.s), count(|k| k.l), count(|k| k.r), l.fackets_out],
            "sacked, lost, retrans, fackets after {sack:?}"
        );
        assert_eq!(
            (o.hint.unwrap_or(0), o.reordering, o.fack, o.undo_retrans),
            (l.hint.unwrap_or(0), l.reordering, l.fack, l.undo_retrans),
            "hint, reordering, fack, undo_retrans after {sack:?}"
        );
        assert_eq!(o.cache, l.cache);
        assert_eq!(s.check(), Ok(()));
    }
}

/// Prints the line that replays a failure.
struct Replay(u64);

impl Drop for Replay {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("replay: FARPACE_SEED={} cargo test -p farpace-tcp --lib literal_form", self.0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]
    /// Breaks: "visits that cannot change anything are skipped": the fast scoreboard must do what a walk over
    /// every segment does, for every combination of switches.
    #[test]
    fn the_walk_equals_the_literal_form(random in any::<u64>()) {
        let given = std::env::var("FARPACE_SEED").ok().and_then(|s| s.parse().ok());
        let seed = given.unwrap_or(random);
        let _replay = Replay(seed);
        for switches in combinations() {
            let mut pair = Pair::new(switches, seed);
            for _ in 0..12 {
                pair.shake();
                pair.acknowledge();
            }
        }
    }
}
