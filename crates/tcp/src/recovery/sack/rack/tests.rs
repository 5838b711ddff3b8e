use super::*;
use farpace_units::RandomStream;

/// RFC 8985 §6.2 as it is written: every segment is looked at for every ACK. Ties of the clock are broken by
/// the order in which the segments really left.
#[derive(Default)]
struct Literal {
    segments: Vec<Seg>,
    latest: Option<(Instant, u64)>,
    rtt: Span,
}

#[derive(Clone, Copy)]
struct Seg {
    sent: (Instant, u64),
    delivered: bool,
    lost: bool,
    in_flight: bool,
}

impl Literal {
    fn detect(&mut self, now: Instant, reo_wnd: Span) -> Vec<usize> {
        let Some(latest) = self.latest else { return Vec::new() };
        let mut found = Vec::new();
        for (i, s) in self.segments.iter_mut().enumerate() {
            if !s.delivered && s.in_flight && latest > s.sent && s.sent.0 + self.rtt + reo_wnd <= now {
                (s.lost, s.in_flight) = (true, false);
                found.push(i);
            }
        }
        found
    }
}

const MSS: u32 = 1000;

/// Breaks: RACK itself: the two queues must find what the RFC's walk over all segments finds, at the same
/// moment, retransmissions included, whatever is lost or reordered.
#[test]
fn equals_the_literal_algorithm() {
    for seed in 0..400 {
        let mut rng = RandomStream::new(seed, "rack");
        let (mut rack, mut segments, mut literal) =
            (Rack::default(), Segments::default(), Literal::default());
        let (mut now, mut sends) = (Instant::ZERO, 0);
        for step in 0..300 {
            now += Span::from_micros(1 + rng.below(3) * 400);
            // New segments, several at one instant.
            for _ in 0..rng.below(4) {
                let seq = Seq::new(literal.segments.len() as u32 * MSS);
                segments.push(seq, MSS, now);
                sends += 1;
                literal.segments.push(Seg {
                    sent: (now, sends),
                    delivered: false,
                    lost: false,
                    in_flight: true,
                });
            }
            let snd_nxt = Seq::new(literal.segments.len() as u32 * MSS);
            // Something that flies arrives, or nothing.
            let flying: Vec<usize> = (0..literal.segments.len())
                .filter(|&i| literal.segments[i].in_flight && !literal.segments[i].delivered)
                .collect();
            rack.on_ack(Seq::new(0), snd_nxt, false);
            if !flying.is_empty() && rng.chance(0.7) {
                let i = flying[rng.below(flying.len() as u64) as usize];
                let echo =
                    EchoedTimestamp { now, age: None, clock: TcpClock::default(), min_rtt: None, mss: MSS };
                let (row, tags) = (*segments.row(i).expect("a row"), segments.tags(i));
                rack.on_delivered(&row, tags, &echo);
                segments.sack(i);
                segments.clear_retransmitted(i);
                let s = &mut literal.segments[i];
                s.delivered = true;
                literal.rtt = now.since(s.sent.0);
                literal.latest = literal.latest.max(Some(s.sent));
            }
            let reo_wnd = Span::from_micros(rng.below(3) * 500);
            let expected = literal.detect(now, reo_wnd);
            let before: Vec<bool> = (0..segments.len()).map(|i| waiting(&segments, i)).collect();
            let lost = rack.detect(now, reo_wnd, &mut segments);
            let found: Vec<usize> =
                (0..segments.len()).filter(|&i| waiting(&segments, i) && !before[i]).collect();
            assert_eq!((&found, lost as usize), (&expected, expected.len()), "seed {seed}, step {step}");
            assert_eq!(segments.check(), Ok(()));
            // Some of the lost ones go again.
            while rng.chance(0.6)
                && let Some(i) = segments.first_waiting()
            {
                segments.mark_retransmitted(i, now, snd_nxt);
                rack.on_retransmit(now, segments.row(i).expect("a row").seq, &segments);
                sends += 1;
                let s = &mut literal.segments[i];
                (s.sent, s.lost, s.in_flight) = ((now, sends), false, true);
            }
        }
    }
}

fn waiting(segments: &Segments, i: usize) -> bool {
    segments.tags(i).any(Tags::LOST) && !segments.tags(i).any(Tags::RETRANSMITTED)
}

/// Breaks: the table of RFC 8985 §6.2 step 4. `(reordering seen, in recovery, SACKed, D-SACK rounds, window
/// in ms)` at a least round trip of 40 ms and a smoothed one of 50 ms.
#[test]
fn the_reordering_window() {
    let table = [
        (false, false, 0, 0, 10),
        (false, false, 2, 0, 10),
        (false, false, 3, 0, 0),
        (false, true, 0, 0, 0),
        (true, true, 9, 0, 10),
        (true, false, 3, 2, 30),
        (true, false, 3, 9, 50),
    ];
    for (seen, recovery, sacked, rounds, ms) in table {
        let mut segments = Segments::default();
        for i in 0..10 {
            segments.push(Seq::new(i * MSS), MSS, Instant::ZERO);
        }
        (1..=sacked).for_each(|i| segments.sack(i));
        let mut rack = Rack { reordering_seen: seen, ..Rack::default() };
        for round in 0..rounds {
            rack.on_ack(Seq::new(round), Seq::new(round + 1), true);
        }
        let window = rack.reo_wnd(recovery, Some(Span::from_millis(40)), Span::from_millis(50), &segments);
        assert_eq!(window, Span::from_millis(ms), "{:?}", (seen, recovery, sacked, rounds));
    }
}

/// Breaks: the widened window lasts for sixteen recoveries without a D-SACK, then it shrinks; and several
/// D-SACKs of one round trip count once.
#[test]
fn the_window_shrinks_after_sixteen_recoveries() {
    let mut rack = Rack::default();
    let segments = Segments::default();
    let window =
        |rack: &Rack| rack.reo_wnd(false, Some(Span::from_millis(40)), Span::from_secs(1), &segments);
    rack.on_ack(Seq::new(0), Seq::new(100), true);
    rack.on_ack(Seq::new(50), Seq::new(120), true);
    assert_eq!(window(&rack), Span::from_millis(20));
    for _ in 0..15 {
        rack.on_recovered();
    }
    assert_eq!(window(&rack), Span::from_millis(20));
    rack.on_recovered();
    assert_eq!(window(&rack), Span::from_millis(10));
}

/// Breaks: a copy that was answered by an older timestamp, or faster than the path can be, must not set
/// RACK's clock (RFC 8985 §6.2 step 2).
#[test]
fn ambiguous_answers_are_ignored() {
    let at = |ms| Instant::ZERO + Span::from_millis(ms);
    let (ms, coarse) = (None, Some(Span::from_millis(500)));
    for (tick, age, min_rtt, len, counts) in [
        (ms, Some(4), None, MSS, true),
        (ms, Some(30), None, MSS, false),
        (ms, None, Some(20), MSS, false),
        (ms, None, Some(5), MSS, true),
        // A short segment is faster than full ones.
        (ms, None, Some(11), MSS, false),
        (ms, None, Some(11), MSS / 4, true),
        (ms, None, Some(50), MSS / 4, false),
        // No tick since the copy: the echo may be of either. One tick: it is of the original.
        (coarse, Some(0), None, MSS, true),
        (coarse, Some(500), None, MSS, false),
    ] {
        let mut segments = Segments::default();
        segments.push(Seq::new(0), len, at(0));
        segments.mark_lost(0);
        segments.mark_retransmitted(0, at(600), Seq::new(len));
        let mut rack = Rack::default();
        let echo = EchoedTimestamp {
            now: at(610),
            age: age.map(Span::from_millis),
            clock: TcpClock::new(tick),
            min_rtt: min_rtt.map(Span::from_millis),
            mss: MSS,
        };
        rack.on_delivered(&segments.row(0).copied().expect("a row"), segments.tags(0), &echo);
        assert_eq!(rack.latest.is_some(), counts, "{tick:?} {age:?} {min_rtt:?} {len}");
    }
}

/// Breaks: an ACK of a whole super-segment, of which RACK is shown the first and the last segment, leaves
/// other variables behind than one of as many single ones: reordering is seen where there is none, or losses
/// are found too early.
#[test]
fn the_first_and_the_last_of_many_say_what_all_say() {
    let mut rng = RandomStream::new(1, "runs");
    for case in 0..2_000 {
        let mut at = Seq::new(u32::MAX - 3 * MSS);
        let mut rows = Vec::new();
        for _ in 0..1 + rng.below(20) {
            let sent_at = rows.last().map_or(0, |row: &SegmentRow| row.sent_at.as_nanos()) + rng.below(2);
            let sent_at = Instant::from_nanos(sent_at);
            rows.push(SegmentRow::new(at, MSS, sent_at));
            at += MSS;
        }
        let echo = EchoedTimestamp {
            now: Instant::from_nanos(100),
            age: None,
            clock: TcpClock::default(),
            min_rtt: None,
            mss: MSS,
        };
        let mut each = Rack::default();
        // Something of them, or beyond them, was SACKed before.
        for _ in 0..rng.below(3) {
            let mut row = rows[rng.below(rows.len() as u64) as usize];
            row.seq += MSS * rng.below(20) as u32;
            each.on_delivered(&row, Tags::NONE, &echo);
        }
        each.on_ack(at, at, false);
        let mut run = each.clone();
        rows.iter().for_each(|row| each.on_delivered(row, Tags::NONE, &echo));
        run.on_delivered(&rows[0], Tags::NONE, &echo);
        run.on_delivered(&rows[rows.len() - 1], Tags::NONE, &echo);
        assert_eq!(format!("{run:?}"), format!("{each:?}"), "case {case}");
    }
}
