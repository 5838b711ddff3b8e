//! The example test cases of the draft's appendix A, by their numbers there.

use super::*;
use crate::cc::testing::{MSS, TestBottleneck};

type World = TestBottleneck<Bbr>;

const SEC: Span = Span::from_secs(1);

fn world(mbit: u64, rtt_ms: u64) -> World {
    TestBottleneck::new(Bbr::new(1), mbit, rtt_ms)
}

fn is(state: BbrState) -> impl FnMut(&mut World) -> bool {
    move |w| w.cc.state == state
}

/// A world that has come to `state` by itself; ProbeRTT is not due for five seconds.
fn in_state(state: BbrState) -> World {
    let mut w = world(20, 40);
    assert!(w.run_until(SEC * 30, is(state)), "never in {state:?}");
    w.cc.probe_rtt_min_stamp = w.now;
    w
}

/// The bandwidth that BBR believes in, as a part of the line's.
fn believed(w: &World, mbit: u64) -> f64 {
    w.cc.max_bw.get() * 8.0 / (mbit as f64 * 1e6)
}

/// Breaks: A.1: Startup finds the bandwidth, ends after three rounds without growth, and goes on to Drain.
#[test]
fn a1_startup_ends_on_a_plateau() {
    for (mbit, rtt) in [(1, 200), (20, 40), (100, 10), (50, 600)] {
        let mut w = world(mbit, rtt);
        w.buffer *= 4;
        assert!(w.run_until(SEC * 20, is(BbrState::Drain)), "{mbit} Mbit/s, {rtt} ms");
        assert!((0.98..1.02).contains(&believed(&w, mbit)), "{mbit} Mbit/s: {}", believed(&w, mbit));
        assert!(w.cc.full_bw_now && w.cc.full_bw_reached && w.cc.full_bw_count >= 3);
        let rounds = w.cc.rounds.count;
        assert!(rounds < 20, "{rounds} rounds for {} segments", w.bdp());
    }
}

/// Breaks: A.2: losses end Startup, also where the application limits the rate.
#[test]
fn a2_startup_ends_on_losses() {
    let mut w = world(100, 40);
    w.quota = 120;
    w.run(SEC);
    assert_eq!(w.cc.state, BbrState::Startup);
    w.lose_every = 12;
    assert!(w.run_until(SEC, |w| w.cc.full_bw_reached));
    assert!(w.cc.inflight_longterm.is_finite() && w.cc.undo.state == Some(BbrState::Startup));
    assert_ne!(w.cc.state, BbrState::Startup);
}

/// Breaks: A.3, A.4: Drain ends when the queue is gone, or after three rounds.
#[test]
fn a3_a4_drain_ends() {
    let mut w = in_state(BbrState::Drain);
    assert_eq!(w.cc.pacing_gain(), 0.5);
    let start = w.cc.rounds.count;
    assert!(w.run_until(SEC, |w| w.cc.is_in_probe_bw()));
    assert!(w.cc.in_flight <= w.cc.inflight(w.cc.bw, 1.0) && w.cc.rounds.count <= start + 3);
    // The path has become slower just before, so that what is in flight does not go down.
    let mut w = world(20, 40);
    w.buffer = 10_000;
    assert!(w.run_until(SEC * 4, |w| w.cc.full_bw_count == 1));
    w.set_rate(4);
    assert!(w.run_until(SEC * 4, is(BbrState::Drain)));
    let start = w.cc.rounds.count;
    assert!(w.run_until(SEC * 10, |w| w.cc.state != BbrState::Drain));
    assert_eq!(
        (w.cc.state, w.cc.rounds.count),
        (BbrState::ProbeBwDown, start + 4),
        "{} {}",
        w.cc.in_flight,
        w.drops
    );
    assert!(w.cc.in_flight > w.cc.inflight(w.cc.bw, 1.0));
}

/// Breaks: A.5, A.8, A.9: the cycle DOWN, CRUISE, REFILL, UP, with the gains and the reasons of each step.
#[test]
fn a5_a8_the_probing_cycle() {
    let mut w = in_state(BbrState::ProbeBwDown);
    assert_eq!(w.cc.pacing_gain(), 0.9);
    for next in [BbrState::ProbeBwCruise, BbrState::ProbeBwRefill, BbrState::ProbeBwUp, BbrState::ProbeBwDown]
    {
        let before = w.cc.state;
        assert!(w.run_until(SEC * 4, |w| w.cc.state != before));
        assert_eq!(w.cc.state, next);
        if next == BbrState::ProbeBwDown {
            assert!(w.cc.full_bw_now, "the plateau ended UP");
        }
    }
    // A.9: the path has become slower, so that DOWN never drains: probing comes when it is time.
    let mut w = in_state(BbrState::ProbeBwDown);
    w.set_rate(17);
    let before = w.cc.state;
    assert!(w.run_until(SEC * 4, |w| w.cc.state != before));
}

/// Breaks: A.6, A.21: losses end UP, and bound what is in flight.
#[test]
fn a6_a21_losses_end_up() {
    let mut w = in_state(BbrState::ProbeBwUp);
    w.run_until(SEC, |w| w.cc.ack_phase == AckPhase::ProbeFeedback);
    w.lose_every = 5;
    assert!(w.run_until(SEC, is(BbrState::ProbeBwDown)));
    assert!(w.cc.prev_probe_too_high && w.cc.inflight_longterm.is_finite());
    let bound = w.cc.inflight_longterm;
    assert!(bound >= w.cc.target_inflight() * BETA * 0.99 && bound < 2.25 * w.bdp());
    assert_eq!(w.cc.undo.state, Some(BbrState::ProbeBwUp));
    w.lose_every = 0;
    // §5.3.3.6: the next probe stops where the last one was too high, and the one after it goes on.
    assert!(w.run_until(SEC * 5, is(BbrState::ProbeBwUp)));
    assert!(w.run_until(SEC * 5, |w| w.cc.prev_probe_precautionary && w.cc.state == BbrState::ProbeBwDown));
    assert!(w.run_until(SEC, is(BbrState::ProbeBwRefill)), "at once, without cruising");
}

/// Breaks: A.7: an application that sends little must not end a probe: its rate says nothing.
#[test]
fn a7_application_limits_do_not_end_probes() {
    let mut w = world(100, 40);
    w.quota = 8;
    w.run(SEC * 4);
    assert_eq!(w.cc.state, BbrState::Startup);
    let mut w = in_state(BbrState::ProbeBwUp);
    w.quota = 8;
    w.run(SEC * 2);
    assert_eq!(w.cc.state, BbrState::ProbeBwUp);
}

/// Breaks: A.10: ProbeRTT comes after five seconds, lasts 200 ms and a round, and the window comes back.
#[test]
fn a10_probe_rtt() {
    let mut w = in_state(BbrState::ProbeBwCruise);
    assert!(w.run_until(SEC * 6, is(BbrState::ProbeRtt)));
    let (begin, before) = (w.now, w.cc.prior_cwnd);
    assert!(w.run_until(SEC, |w| w.cc.state != BbrState::ProbeRtt));
    assert!(w.now.since(begin) >= Span::from_millis(200) && w.now.since(begin) < Span::from_millis(400));
    assert_eq!(w.cc.state, BbrState::ProbeBwCruise);
    w.run(Span::from_millis(200));
    assert!(w.cc.cwnd >= before * 0.9, "{} of {before}", w.cc.cwnd);
    assert!((0.98..1.02).contains(&believed(&w, 20)), "samples of ProbeRTT do not count");
}

/// Breaks: A.11: a pause is as good as ProbeRTT.
#[test]
fn a11_idle_instead_of_probe_rtt() {
    let mut w = in_state(BbrState::ProbeBwCruise);
    w.quota = 0;
    w.run(SEC * 6);
    w.quota = u32::MAX;
    w.run_until(SEC, |w| w.cc.idle_restart);
    assert!(w.cc.idle_restart);
    assert!(!w.run_until(SEC * 3, is(BbrState::ProbeRtt)));
}

/// Breaks: A.12, A.13: a path that hands over ACKs in bunches is used fully all the same.
#[test]
fn a12_a13_aggregation() {
    let mut w = world(20, 40);
    w.bunch = Span::from_millis(30);
    w.run(SEC * 5);
    assert!(w.cc.extra_acked.get() > 10.0, "{}", w.cc.extra_acked.get());
    let before = w.cc.delivered;
    w.run(SEC * 4);
    let used = (w.cc.delivered - before) as f64 * f64::from(MSS) * 8.0 / 4.0 / 20e6;
    assert!(used > 0.9, "{used}");
}

/// Breaks: A.14: paths that hold less than a segment.
#[test]
fn a14_sub_packet_paths() {
    let mut w = world(1, 1);
    w.buffer = 20;
    w.run(SEC * 5);
    assert!((0.95..1.05).contains(&believed(&w, 1)), "{}", believed(&w, 1));
    assert!(w.cc.cwnd >= MIN_PIPE_CWND && w.cc.cwnd < 20.0, "{}", w.cc.cwnd);
}

/// Breaks: A.15, A.16: following a path that becomes ten times faster, or slower.
#[test]
fn a15_a16_ten_times_faster_and_slower() {
    let mut w = in_state(BbrState::ProbeBwCruise);
    w.set_rate(200);
    w.buffer *= 10;
    assert!(w.run_until(SEC * 12, |w| believed(w, 200) > 0.95), "{}", believed(&w, 200));
    w.run(SEC);
    w.set_rate(20);
    w.buffer /= 10;
    assert!(w.run_until(SEC * 12, |w| believed(w, 20) < 1.05), "{}", believed(&w, 20));
}

/// Breaks: A.18, A.19: losses that were none cost neither bounds nor the probe they ended.
#[test]
fn a18_a19_undo() {
    let mut w = in_state(BbrState::ProbeBwUp);
    w.run_until(SEC, |w| w.cc.ack_phase == AckPhase::ProbeFeedback);
    w.lose_every = 5;
    let longterm = w.cc.inflight_longterm;
    assert!(w.run_until(SEC, is(BbrState::ProbeBwDown)));
    let prior = w.cc.prior_cwnd;
    w.cc.on_event(w.now, &mut w.window, CongestionEvent::Undo);
    assert_eq!(w.cc.state, BbrState::ProbeBwRefill);
    assert_eq!((w.cc.inflight_longterm, w.cc.bw_shortterm), (longterm, f64::INFINITY));
    assert!(w.cc.cwnd >= prior && !w.cc.in_loss_recovery);

    let mut w = in_state(BbrState::ProbeBwCruise);
    let before = w.cc.cwnd;
    w.cc.on_event(w.now, &mut w.window, CongestionEvent::EnterLoss { total_lost: 0 });
    assert_eq!(w.window.cwnd().get(), 1);
    w.cc.on_event(w.now, &mut w.window, CongestionEvent::Undo);
    assert!(f64::from(w.window.cwnd().get()) >= before && w.cc.state == BbrState::ProbeBwCruise);
}

/// Breaks: A.20: ProbeRTT before the pipe was full goes back to Startup.
#[test]
fn a20_probe_rtt_in_startup() {
    let mut w = world(100, 40);
    w.quota = 8;
    assert!(w.run_until(SEC * 7, is(BbrState::ProbeRtt)));
    assert!(w.run_until(SEC, |w| w.cc.state != BbrState::ProbeRtt));
    assert_eq!(w.cc.state, BbrState::Startup);
}

/// Breaks: A.22: low rates of an application do not lower the bandwidth.
#[test]
fn a22_application_limited_refill() {
    let mut w = in_state(BbrState::ProbeBwRefill);
    let bw = w.cc.max_bw.get();
    w.quota = 2;
    w.run(SEC);
    assert_eq!(w.cc.max_bw.get(), bw);
    assert_eq!(w.cc.state, BbrState::ProbeBwUp);
}

/// Breaks: §5.5.10.3: losses outside of a probe bring the short-term bounds down, and the next probe forgets
/// them.
#[test]
fn losses_while_cruising_bound_the_short_term() {
    let mut w = in_state(BbrState::ProbeBwCruise);
    w.lose_every = 40;
    assert!(w.run_until(SEC, |w| w.cc.bw_shortterm.is_finite()));
    let (bw, volume) = (w.cc.bw_shortterm, w.cc.inflight_shortterm);
    assert!(bw >= BETA * w.cc.max_bw.get() && bw <= w.cc.max_bw.get() && volume.is_finite());
    assert!(w.run_until(SEC * 4, is(BbrState::ProbeBwRefill)));
    assert!(w.cc.bw_shortterm.is_infinite() && w.cc.inflight_shortterm.is_infinite());
}

/// Breaks: what people choose BBR for: the line is used, and the queue is short.
#[test]
fn full_line_short_queue() {
    let mut w = world(20, 40);
    w.run(SEC * 3);
    let (begin, before) = (w.now, w.cc.delivered);
    let (mut sum, mut looks, mut most) = (0.0, 0u32, 0.0f64);
    w.run_until(SEC * 20, |w| {
        sum += w.queue();
        looks += 1;
        most = most.max(w.queue());
        false
    });
    let time = w.now.since(begin).as_secs_f64();
    let used = (w.cc.delivered - before) as f64 * f64::from(MSS) * 8.0 / time / 20e6;
    assert!(used > 0.93, "{used}");
    assert!(sum / f64::from(looks) < 0.3 * w.bdp() && most < 1.25 * w.bdp(), "{most} of {}", w.bdp());
}
