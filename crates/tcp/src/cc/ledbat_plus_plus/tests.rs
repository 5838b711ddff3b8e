use super::*;
use crate::cc::testing::window;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(ms)
}

/// An ACK for `acked` segments after so many ms, with this round trip.
fn ack(cc: &mut LedbatPlusPlus, w: &mut Window, ms: u64, acked: u32, rtt_ms: u64) -> u32 {
    let rtt = Span::from_millis(rtt_ms);
    let ack = AckSample { rtt: Some(rtt), srtt: rtt, ..AckSample::of(at(ms), Packets::new(acked)) };
    cc.on_acked(&ack);
    cc.on_ack(w, &ack);
    w.cwnd().get()
}

/// One with this least round trip, and the last four at `rtt_ms`; no slowdown is due.
fn ledbat(base_ms: u64, rtt_ms: u64) -> LedbatPlusPlus {
    let mut cc =
        LedbatPlusPlus { phase: SlowdownPhase::Steady { slowdown_at: at(1_000_000) }, ..Default::default() };
    cc.base.sample(at(0), Span::from_millis(base_ms));
    cc.current = [Span::from_millis(rtt_ms); 4];
    cc.samples = 4;
    cc
}

/// Breaks: GAIN: 1/16 to base = 7.5 ms, then 1/ceil(120 ms/base), and 1 from 120 ms on.
#[test]
fn gain_by_round_trip() {
    for (base, divisor) in
        [(1, 16.0), (7, 16.0), (8, 15.0), (50, 3.0), (60, 2.0), (119, 2.0), (120, 1.0), (600, 1.0)]
    {
        assert_eq!(ledbat(base, base).gain(), 1.0 / divisor, "{base} ms");
    }
    assert_eq!(LedbatPlusPlus::default().gain(), 1.0 / 16.0);
}

/// Breaks: the window for each round trip by the delay: base 60 ms, GAIN 1/2, W = 100.
#[test]
fn follows_the_delay() {
    // 66 ms of delay: 0.5 − 100·0.1 = −9.5; 120 ms: −99.5, but −50 at most.
    for (rtt, expected, fraction) in [(119, 100, 0.5), (120, 100, 0.5), (126, 91, -0.5), (180, 50, 0.0)] {
        let (mut cc, mut w) = (ledbat(60, rtt), window(100, 100));
        assert_eq!(ack(&mut cc, &mut w, 1, 100, rtt), expected, "{rtt} ms");
        assert!((cc.fraction - fraction).abs() < 1e-9, "{rtt} ms: {}", cc.fraction);
        assert!(w.ssthresh() <= w.cwnd());
    }
    let (mut cc, mut w) = (ledbat(60, 400), window(2, 2));
    assert_eq!(ack(&mut cc, &mut w, 1, 2, 400), 2);
}

/// Breaks: the delay of a longer path, beside the one that was measured before, is a queue.
#[test]
fn a_longer_path_is_no_queue() {
    let (mut cc, ms) = (ledbat(60, 60), Span::from_millis);
    for (rtt, delay) in [(130, 0), (130, 0), (130, 0), (160, 0), (160, 0), (160, 0), (160, 30)] {
        let ack =
            AckSample { rtt: Some(ms(rtt)), base_of_paths: ms(130), ..AckSample::of(at(1), Packets::new(1)) };
        cc.on_acked(&ack);
        assert_eq!(cc.delay(), ms(delay));
    }
    assert_eq!(cc.gain(), 1.0, "that of a base of 130 ms");
}

/// Breaks: the first slow start: GAIN for each segment, until more than 45 ms of delay.
#[test]
fn first_slow_start() {
    let (mut cc, mut w) = (ledbat(60, 60), window(10, u32::MAX));
    cc.phase = SlowdownPhase::Start;
    assert_eq!(ack(&mut cc, &mut w, 1, 10, 60), 15);
    for i in 0..4 {
        ack(&mut cc, &mut w, 2 + i, 0, 105);
    }
    assert_eq!(ack(&mut cc, &mut w, 6, 10, 105), 20, "45 ms are not more");
    for i in 0..4 {
        ack(&mut cc, &mut w, 7 + i, 0, 106);
    }
    assert_eq!(ack(&mut cc, &mut w, 11, 10, 106), 20);
    assert_eq!(w.ssthresh().get(), 20);
}

/// Breaks: the slowdown: two segments for two round trips, slow start to the window before, and the next one
/// after nine times as long.
#[test]
fn slowdown() {
    let (mut cc, mut w) = (ledbat(120, 120), window(32, 32));
    cc.phase = SlowdownPhase::Steady { slowdown_at: at(1000) };
    assert_eq!(ack(&mut cc, &mut w, 999, 1, 120), 32);
    assert_eq!(ack(&mut cc, &mut w, 1000, 1, 120), 2);
    assert_eq!(w.ssthresh().get(), 32);
    cc.round = SeqRounds::default();
    assert_eq!(ack(&mut cc, &mut w, 1001, 1, 120), 2);
    assert_eq!(ack(&mut cc, &mut w, 1120, 30, 120), 2, "the old window has arrived");
    assert_eq!(ack(&mut cc, &mut w, 1230, 2, 120), 2, "and the two segments");
    for (i, cwnd) in [4, 8, 16, 32].into_iter().enumerate() {
        let now = 1240 + 120 * i as u64;
        assert_eq!(ack(&mut cc, &mut w, now, cwnd / 2, 120), cwnd);
    }
    ack(&mut cc, &mut w, 1720, 1, 120);
    assert_eq!(cc.phase, SlowdownPhase::Steady { slowdown_at: at(1720 + 9 * 720) });
}

/// Breaks: the cut by half, of the window before if a slowdown is under way, which it ends; and the undo of
/// both.
#[test]
fn cuts_and_undo() {
    let mut cc = ledbat(60, 60);
    let cut = |cc: &mut LedbatPlusPlus, w: &Window, flight| {
        cc.ssthresh(at(1100), w, Packets::new(flight), Cut::FastRetransmit).get()
    };
    assert_eq!([100, 60, 1].map(|flight| cut(&mut cc, &window(80, 80), flight)), [40, 30, 2]);
    let frozen = SlowdownPhase::Frozen { since: at(1000), rounds: 1 };
    cc.phase = frozen;
    let mut w = window(2, 80);
    assert_eq!(cut(&mut cc, &w, 78), 39);
    assert_eq!(cc.phase, SlowdownPhase::Steady { slowdown_at: at(1100 + 9 * 100) });
    cc.on_event(at(1200), &mut w, CongestionEvent::Undo);
    assert_eq!((cc.phase, cc.undo_cwnd(&w).get()), (frozen, 2));
}
