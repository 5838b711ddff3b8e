//! H-TCP against its formulas.

use super::*;
use crate::cc::testing::{TestLink, window};

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(ms)
}

fn htcp() -> HTcp {
    HTcp::new(SlowStart::new(None, None))
}

/// ACKs for ten round trips at this SRTT in milliseconds, `rate` segments a second, least round trip 100 ms.
fn feed(cc: &mut HTcp, from: u64, srtt: u64, rate: u64) {
    for i in 0..=10 {
        let delivered = Packets::new((rate * srtt / 1000) as u32);
        let (min_rtt, srtt_) = (Some(Span::from_millis(100)), Span::from_millis(srtt));
        cc.on_acked(&AckSample { min_rtt, srtt: srtt_, ..AckSample::of(at(from + i * srtt), delivered) });
    }
}

fn cut(cc: &mut HTcp, ms: u64) -> u32 {
    cc.ssthresh(at(ms), &window(1000, 2), Packets::new(1000), Cut::FastRetransmit).get()
}

/// Breaks: alpha by the time since the last cut, by the round trip, and by beta.
#[test]
fn increase_by_formula() {
    // (D in ms, RTTmin in ms, beta) -> alpha
    let table = [
        ((0, 100, 0.5), 1.0),
        ((1000, 100, 0.5), 1.0),
        ((2000, 100, 0.5), 11.25), // 1 + 10 + 0.25
        ((5000, 100, 0.5), 45.0),  // 1 + 40 + 4
        ((5000, 100, 0.8), 18.0),  // 2 * 45 * 0.2
        ((5000, 50, 0.5), 22.5),   // scale 2
        ((5000, 1, 0.5), 4.5),     // scale 100, at most 10
        ((5000, 600, 0.5), 90.0),  // scale 1/6, at least 0.5
        ((500, 600, 0.5), 2.0),
        ((500, 10, 0.5), 1.0),  // never below Reno
        ((5000, 0, 0.5), 45.0), // nothing measured
    ];
    for ((d, rtt, beta), alpha) in table {
        let got = increase(Span::from_millis(d), Span::from_millis(rtt), beta);
        assert!((got - alpha).abs() < 1e-9, "{d} {rtt} {beta}: {got}, not {alpha}");
    }
}

/// Breaks: beta: half at first and after the throughput changed, else by how full the queue was, within its
/// bounds.
#[test]
fn cut_by_queue_and_throughput() {
    // (SRTT in ms, segments/s) of each epoch -> the cut at its end
    let epochs = [
        ((150, 1000), 500), // nothing to compare with
        ((150, 1000), 666), // 100 / 150
        ((150, 1190), 666), // 19 % more
        ((150, 900), 500),  // 24 % less
        ((110, 900), 800),  // 100 / 110 > 0.8
        ((300, 900), 500),  // 100 / 300 < 0.5
    ];
    let (mut cc, mut now) = (htcp(), 1000);
    for (i, ((srtt, rate), expected)) in epochs.into_iter().enumerate() {
        // Rates that are whole numbers of segments a round trip only by and large.
        feed(&mut cc, now, srtt, rate);
        now += 11 * srtt;
        assert_eq!(cut(&mut cc, now), expected, "epoch {i}");
    }
    assert_eq!(cut(&mut cc, now), 500, "nothing was measured since");
    feed(&mut cc, now, 125, 900);
    assert_eq!(cut(&mut cc, now + 2000), 800, "compared with the last epoch that was measured");
}

/// Breaks: a recovery's throughput and round trips, which are no measure of the path.
#[test]
fn measures_out_of_recovery_only() {
    let mut cc = htcp();
    let state = RecoveryState::Recovery;
    for i in 0..10 {
        cc.on_acked(&AckSample { state, ..AckSample::of(at(i * 100), Packets::new(50)) });
    }
    assert_eq!((cc.epoch.best, cc.epoch.rtt_max), (0.0, Span::ZERO));
}

/// Breaks: the window over time: slow for a second, then faster and faster, whatever the ACK ratio.
#[test]
fn growth() {
    for ratio in [1, 2, 8] {
        let (mut cc, mut w) = (htcp(), window(1000, 2));
        let mut link = TestLink::new(ratio);
        cc.ssthresh(link.now, &w, Packets::new(1000), Cut::FastRetransmit);
        link.rounds(&mut cc, &mut w, 10);
        assert!((1009..=1011).contains(&w.cwnd().get()), "ratio {ratio}: {}", w.cwnd());
        link.rounds(&mut cc, &mut w, 20);
        // The integral of f from 1 s to 3 s, ten round trips a second: 10 (2 + 5 * 4 + 8 / 12) = 226.7.
        assert!((1233..=1241).contains(&w.cwnd().get()), "ratio {ratio}: {}", w.cwnd());
    }
}

/// Breaks: a pause, or an application with little to send, after which growth would be that of minutes
/// without loss.
#[test]
fn unused_time_does_not_count() {
    let (mut cc, mut w) = (htcp(), window(1000, 2));
    cut(&mut cc, 0);
    let ack = |ms, cwnd_limited| AckSample { cwnd_limited, ..AckSample::of(at(ms), Packets::new(1000)) };
    cc.on_ack(&mut w, &ack(2000, true)); // 11.25
    assert_eq!(w.cwnd().get(), 1011);
    cc.on_ack(&mut w, &ack(60_000, false));
    cc.on_event(at(90_000), &mut w, CongestionEvent::Restart(Span::from_secs(30)));
    cc.on_ack(&mut w, &ack(90_000, true)); // 11.25 * 1000 / 1011.25
    assert!((cc.fraction.cwnd(&w) - 1022.375).abs() < 0.01, "{}", cc.fraction.cwnd(&w));
}

/// Breaks: an undo, which must give back the epoch with the window.
#[test]
fn undo() {
    let (mut cc, mut w) = (htcp(), window(1000, 2));
    feed(&mut cc, 0, 150, 1000);
    cut(&mut cc, 2000);
    feed(&mut cc, 2000, 150, 1000);
    let before = cc.epoch;
    assert_eq!(cut(&mut cc, 9000), 666);
    assert_eq!(cc.undo_cwnd(&window(666, 666)).get(), 1000);
    cc.on_event(at(9100), &mut w, CongestionEvent::Undo);
    let after = cc.epoch;
    assert_eq!((after.start, after.beta, after.rtt_max), (before.start, before.beta, before.rtt_max));
    assert_eq!((after.best, after.best_before), (before.best, before.best_before));
    assert_eq!(cut(&mut cc, 9200), 666, "the throughput of the epoch that goes on");
}
