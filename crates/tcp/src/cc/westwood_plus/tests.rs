//! Westwood+ against its formulas.

use super::*;
use crate::cc::testing::window;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(ms)
}

fn ack(cc: &mut WestwoodPlus, ms: u64, delivered: u32, rtt_ms: u64) {
    let rtt = Some(Span::from_millis(rtt_ms));
    cc.on_acked(&AckSample { rtt, ..AckSample::of(at(ms), Packets::new(delivered)) });
}

/// A Westwood+ that got 500 segments/s at a round trip of 100 ms for a second: 50 segments.
fn steady() -> WestwoodPlus {
    let mut cc = WestwoodPlus::new(SlowStart::new(None, None));
    cc.on_event(at(0), &mut window(10, 1000), CongestionEvent::Established(Span::from_millis(100)));
    for i in 1..=10 {
        ack(&mut cc, i * 100, 50, 100);
    }
    cc
}

/// Breaks: the two low-passes, the length of a measurement, and its independence of bursts.
#[test]
fn filter() {
    // (ms, segments, RTT) -> b afterwards
    let acks = [
        (0, 9, 100, 0.0),       // the first one only starts the clock
        (10, 2, 100, 0.0),      // too short: counted on
        (100, 18, 100, 200.0),  // 20 in 100 ms seed both
        (200, 100, 100, 212.5), // s = 1000: n = 300, b = (1400 + 300) / 8
        (220, 5, 10, 212.5),    // 50 ms at least, however short the round trip
        (260, 1, 10, 220.3125), // s = 100: n = 275, b = (1487.5 + 275) / 8 = 220.3125
    ];
    let mut cc = WestwoodPlus::new(SlowStart::new(None, None));
    for (i, (ms, delivered, rtt, b)) in acks.into_iter().enumerate() {
        ack(&mut cc, ms, delivered, rtt);
        let got = cc.filter.b.get().unwrap_or_default();
        assert!((got - b).abs() < 1e-9, "ACK {i}: {got}, not {b}");
    }
}

/// Breaks: the round trip of the shortest of several paths counts as that of all, so that the window after a
/// loss is too small for them.
#[test]
fn a_longer_path_raises_the_least_round_trip() {
    let (mut cc, ms) = (steady(), Span::from_millis);
    for (rtt, base, least) in [(150, 0, 100), (200, 200, 200), (250, 200, 200), (120, 0, 120)] {
        let ack = AckSample {
            rtt: Some(ms(rtt)),
            base_of_paths: ms(base),
            ..AckSample::of(at(1_000), Packets::new(1))
        };
        cc.on_acked(&ack);
        assert_eq!(cc.rtt_min, Some(ms(least)));
    }
}

/// Breaks: threshold and window by the measured bandwidth: not above the window in recovery, in full at its
/// end; after a timeout slow start goes on; half of the window before anything is measured.
#[test]
fn threshold() {
    let cut = |cwnd: u32, cut| {
        let (mut cc, mut w) = (steady(), window(cwnd, 1000));
        let ssthresh = cc.ssthresh(at(1000), &w, Packets::new(cwnd), cut);
        w.set_ssthresh(ssthresh);
        w.set_cwnd(ssthresh.min(w.cwnd()));
        assert_eq!((cc.undo_cwnd(&w).get(), cc.min_cwnd(&w).get()), (cwnd, 50));
        cc.on_event(at(1100), &mut w, CongestionEvent::ExitRecovery);
        [ssthresh, w.cwnd(), w.ssthresh()].map(Packets::get)
    };
    assert_eq!(cut(80, Cut::FastRetransmit), [50, 50, 50]);
    assert_eq!(cut(80, Cut::Ecn), [50, 50, 50]);
    assert_eq!(cut(30, Cut::FastRetransmit), [30, 50, 50]);
    assert_eq!(cut(30, Cut::Timeout), [50, 30, 50]);
    let mut new = WestwoodPlus::new(SlowStart::new(None, None));
    let mut w = window(30, 1000);
    assert_eq!(new.ssthresh(at(0), &w, Packets::new(30), Cut::FastRetransmit).get(), 15);
    new.on_event(at(0), &mut w, CongestionEvent::ExitRecovery);
    assert_eq!(w.cwnd().get(), 30);
}

/// Breaks: a path that changed during an outage, whose round trip is another one; a false timeout, after
/// which it is not.
#[test]
fn least_round_trip_after_a_timeout() {
    let rtt_min = |undo, later| {
        let (mut cc, mut w) = (steady(), window(50, 1000));
        cc.on_event(at(2000), &mut w, CongestionEvent::EnterLoss { total_lost: 0 });
        ack(&mut cc, 3000, 1, 600);
        if undo {
            cc.on_event(at(3000), &mut w, CongestionEvent::Undo);
        }
        ack(&mut cc, 3100, 1, later);
        cc.rtt_min.map(Span::as_millis)
    };
    assert_eq!([rtt_min(false, 700), rtt_min(false, 500)], [Some(600), Some(500)]);
    assert_eq!([rtt_min(true, 700), rtt_min(true, 90)], [Some(100), Some(90)]);
}

/// Breaks: the end of a recovery that a timeout or an undo has broken off, which would set the window.
#[test]
fn forgets_a_broken_recovery() {
    for event in [CongestionEvent::EnterLoss { total_lost: 0 }, CongestionEvent::Undo] {
        let (mut cc, mut w) = (steady(), window(80, 70));
        cc.ssthresh(at(1000), &w, Packets::new(80), Cut::FastRetransmit);
        cc.on_event(at(1000), &mut w, event);
        cc.on_event(at(1000), &mut w, CongestionEvent::ExitRecovery);
        assert_eq!([w.cwnd().get(), w.ssthresh().get()], [80, 70], "{event:?}");
    }
}
