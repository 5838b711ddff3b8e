//! CUBIC against its closed form.

use super::*;
use crate::cc::testing::{TestLink, window};

fn cubic() -> Cubic {
    Cubic::new(SlowStart::new(None, None))
}

/// A CUBIC that was cut at `cwnd`, and its window after the cut.
fn after_cut(cwnd: u32) -> (Cubic, Window) {
    let mut cubic = cubic();
    let mut w = window(cwnd, 2);
    cut(&mut cubic, &mut w, Cut::FastRetransmit);
    (cubic, w)
}

fn cut(cubic: &mut Cubic, w: &mut Window, cut: Cut) {
    let flight = w.cwnd();
    let ssthresh = cubic.ssthresh(Instant::ZERO, w, flight, cut);
    w.set_ssthresh(ssthresh);
    w.set_cwnd(ssthresh);
}

/// Breaks: the shape of CUBIC: concave up to the old maximum, flat there, convex beyond; within 2 % of the
/// closed form of RFC 9438 figure 1 at each round trip.
#[test]
fn follows_the_closed_form() {
    for rtt in [20, 100, 300] {
        let (mut cubic, mut w) = after_cut(2000);
        let mut link = TestLink { rtt: Span::from_millis(rtt), ..TestLink::new(2) };
        let start = link.now;
        let k = libm::cbrt(600.0 / C);
        while link.now.since(start) < Span::from_secs(20) {
            link.rounds(&mut cubic, &mut w, 1);
            let d = link.now.since(start).as_secs_f64() - k;
            let form = C * d * d * d + 2000.0;
            let got = f64::from(w.cwnd().get());
            assert!((got / form - 1.0).abs() < 0.02, "rtt {rtt} ms at {}: {got}, not {form}", link.now);
        }
        assert!(w.cwnd().get() > 2200);
    }
}

/// Breaks: growth that depends on how many segments an ACK covers.
#[test]
fn the_ack_ratio_does_not_matter() {
    let grown = |ratio| {
        let (mut cubic, mut w) = after_cut(500);
        TestLink::new(ratio).rounds(&mut cubic, &mut w, 150);
        f64::from(w.cwnd().get())
    };
    let one = grown(1);
    assert!(one > 550.0);
    for ratio in [2, 8, 40] {
        let got = grown(ratio);
        assert!((got / one - 1.0).abs() < 0.03, "ratio {ratio}: {got} against {one}");
    }
}

/// Breaks: fairness to Reno on short paths (RFC 9438 §4.3): growth at 0.53 segments a round trip up to the
/// old window, then at one.
#[test]
fn is_reno_where_cubic_is_slower() {
    let (mut cubic, mut w) = after_cut(40);
    let mut link = TestLink { rtt: Span::from_millis(5), ..TestLink::new(2) };
    // 12 segments at 0.53 need 22.7 round trips.
    link.rounds(&mut cubic, &mut w, 22);
    assert!((38..=40).contains(&w.cwnd().get()), "{}", w.cwnd());
    link.rounds(&mut cubic, &mut w, 21);
    assert!((58..=60).contains(&w.cwnd().get()), "{}", w.cwnd());
}

/// Breaks: how deep CUBIC cuts, and the plateau it aims at (RFC 9438 §4.6, §4.7).
#[test]
fn reduction_and_fast_convergence() {
    let (mut cubic, mut w) = after_cut(1000);
    assert_eq!((w.cwnd().get(), cubic.w_max), (700, Some(1000.0)));
    w.set_cwnd(Packets::new(900));
    cut(&mut cubic, &mut w, Cut::FastRetransmit);
    assert_eq!((w.cwnd().get(), cubic.w_max), (630, Some(765.0)));
    let w = window(1000, 2);
    assert_eq!(cubic.ssthresh(Instant::ZERO, &w, Packets::new(100), Cut::FastRetransmit).get(), 70);
    assert_eq!(cubic.ssthresh(Instant::ZERO, &w, Packets::new(1), Cut::FastRetransmit).get(), 2);
}

/// Breaks: RFC 9438 §4.8: after a timeout the curve begins flat where slow start ends.
#[test]
fn after_a_timeout_the_curve_begins_at_the_threshold() {
    let (mut cubic, mut w) = after_cut(1000);
    w.set_cwnd(Packets::new(1000));
    cut(&mut cubic, &mut w, Cut::Timeout);
    w.set_cwnd(Packets::new(1));
    let mut link = TestLink::new(2);
    link.rounds(&mut cubic, &mut w, 12);
    assert!((700..720).contains(&w.cwnd().get()), "{}", w.cwnd());
    assert_eq!(cubic.epoch.unwrap().k, 0.0);
    assert!(cubic.w_max.unwrap() < 701.0);
}

/// Breaks: RFC 9438 §5.8: time without use of the window must not let it jump.
#[test]
fn unused_time_does_not_count() {
    let run = |pause: Option<bool>| {
        let (mut cubic, mut w) = after_cut(1000);
        let mut link = TestLink::new(2);
        link.rounds(&mut cubic, &mut w, 20);
        if let Some(idle) = pause {
            let before = w.cwnd();
            link.now += Span::from_secs(300);
            if idle {
                cubic.on_event(link.now, &mut w, CongestionEvent::Restart(Span::from_secs(300)));
            } else {
                let ack = AckSample { cwnd_limited: false, ..AckSample::of(link.now, Packets::new(2)) };
                cubic.on_ack(&mut w, &ack);
            }
            assert_eq!(w.cwnd(), before);
        }
        link.rounds(&mut cubic, &mut w, 20);
        w.cwnd().get()
    };
    let steady = run(None);
    assert!(run(Some(true)).abs_diff(steady) <= 1, "idle");
    assert!(run(Some(false)).abs_diff(steady) <= 1, "limited by the program");
}

/// Breaks: a reduction that was a mistake costs nothing (RFC 9438 §4.9.2).
#[test]
fn undo_restores_the_curve() {
    let (mut cubic, mut w) = after_cut(1000);
    let mut link = TestLink::new(2);
    link.rounds(&mut cubic, &mut w, 30);
    let (epoch, w_max, cwnd, ssthresh) = (cubic.epoch, cubic.w_max, w.cwnd(), w.ssthresh());
    cut(&mut cubic, &mut w, Cut::FastRetransmit);
    assert_ne!((cubic.epoch, cubic.w_max), (epoch, w_max));
    w.set_cwnd(cubic.undo_cwnd(&w));
    w.set_ssthresh(ssthresh);
    cubic.on_event(link.now, &mut w, CongestionEvent::Undo);
    assert_eq!((cubic.epoch, cubic.w_max, w.cwnd()), (epoch, w_max, cwnd));
}

/// Breaks: RFC 9438 §4.2: whatever the curve says, not more than half a window a round trip.
#[test]
fn growth_is_bounded() {
    let (mut cubic, mut w) = after_cut(100);
    let mut link = TestLink::new(1);
    link.ack(&mut cubic, &mut w);
    link.now += Span::from_secs(100_000);
    let before = w.cwnd().get();
    link.rounds(&mut cubic, &mut w, 1);
    let after = w.cwnd().get();
    assert!(after > before * 14 / 10 && after < before * 5 / 3, "{before} to {after}");
}
