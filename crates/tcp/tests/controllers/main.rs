//! Whole connections over a bottleneck, for each congestion control: what throughput, and what queue.

#[path = "../common/mod.rs"]
mod common;
mod path;

use farpace_tcp::config::{Congestion, EcnMode, Profile, Settings};
use farpace_tcp::{Blocked, Reason, Transmit};
use farpace_units::{ByteCount, Packets, Span};
use path::{Path, World};

const SEC: Span = Span::from_secs(1);

fn settings(congestion: Congestion) -> Settings {
    Settings {
        profile: Some(Profile::Modern),
        congestion: Some(congestion),
        send_buffer: Some(ByteCount::new(1 << 22)),
        initial_window: Some(Packets::new(10)),
        ..Settings::default()
    }
}

fn run(path: Path, settings: &Settings, time: Span) -> World {
    let mut world = World::new(path, settings);
    world.run(time);
    world
}

/// 10 Mbit/s and 40 ms: 33 segments, and as many in the queue.
fn short() -> Path {
    Path::new(10, 40)
}

/// The largest and the mean queue from `from` on, as parts of the bandwidth-delay product.
fn queue(world: &World, from: Span) -> (f64, f64) {
    let bdp = world.path.bdp() as f64;
    let queues: Vec<_> = world.since(from).map(|l| l.queue as f64 / bdp).collect();
    (queues.iter().copied().fold(0.0, f64::max), queues.iter().sum::<f64>() / queues.len() as f64)
}

/// What part of the line an algorithm must use at least. The unfiltered estimate of the literal TCP-J and
/// TCP-STAR now and then sets the window far too low, and paced, it measures its own pace.
fn least(congestion: Congestion, others: f64) -> f64 {
    match congestion {
        Congestion::TcpJ | Congestion::Star => 0.65,
        _ => others,
    }
}

/// Breaks: what TCP is for. A queue of one bandwidth-delay product is enough for every algorithm.
#[test]
fn each_fills_the_line() {
    for congestion in Congestion::ALL {
        for pacing in [false, true] {
            let s = Settings { pacing: pacing.then_some(true), ..settings(congestion) };
            let world = run(short(), &s, SEC * 15);
            let used = world.utilisation(SEC * 3);
            assert!(used > least(congestion, 0.94), "{congestion:?}, pacing {pacing}: {used}");
            assert_eq!(world.sender.inspect().timeouts, 0, "{congestion:?}, pacing {pacing}");
        }
    }
}

/// Breaks: BBR's promise: nearly all of the line, with a queue that is nearly empty.
#[test]
fn bbr_keeps_the_queue_short() {
    let paths = [short(), Path { buffer: short().bdp() * 8, ..short() }, Path::new(20, 100)];
    for (bbr, path) in [Congestion::Bbr1, Congestion::Bbr3].into_iter().flat_map(|c| paths.map(|p| (c, p))) {
        let world = run(path, &settings(bbr), SEC * 15);
        let used = world.utilisation(SEC * 3);
        let (most, mean) = queue(&world, SEC * 3);
        assert!(used > 0.9, "{bbr:?}, {path:?}: {used}");
        // While it probes, the window is 2.25 BDP and what ACKs bunch; a queue of one BDP cannot grow longer.
        let bound = if path.buffer > path.bdp() { 1.5 } else { 1.25 };
        assert!(most < bound && mean < 0.3, "{bbr:?}, {path:?}: queue {most}, mean {mean}");
    }
    let cubic = run(Path { buffer: short().bdp() * 8, ..short() }, &settings(Congestion::Cubic), SEC * 15);
    assert!(queue(&cubic, SEC * 3).1 > 2.0, "the queue is there to be filled");
}

/// Breaks: throughput where segments are lost by chance, for which losses mean congestion to others; BBRv1
/// bears ten times as much.
#[test]
fn bbr_bears_random_loss() {
    let used = |c, loss| run(Path { loss, ..short() }, &settings(c), SEC * 20).utilisation(SEC * 3);
    for (bbr, loss) in [(Congestion::Bbr3, 0.01), (Congestion::Bbr1, 0.01), (Congestion::Bbr1, 0.1)] {
        let used = used(bbr, loss);
        assert!(used > 0.8, "{bbr:?}, {loss}: {used}");
    }
    let cubic = used(Congestion::Cubic, 0.01);
    assert!(cubic < 0.5, "{cubic}");
}

/// Breaks: pacing. With it at most a quantum leaves at once; without it the first window does.
#[test]
fn pacing_bounds_bursts() {
    let burst = |congestion, pacing: bool| {
        let s = Settings { pacing: pacing.then_some(true), ..settings(congestion) };
        run(short(), &s, SEC * 5).largest_burst
    };
    for congestion in Congestion::ALL {
        let paced = burst(congestion, true);
        // What leaves in a millisecond at twice the rate of the line, at least two segments. Hybla's slow
        // start triples the window each round trip of 40 ms, and the pace follows the window. The first
        // flight of farpace, and of cubic in profile modern, is a burst on purpose.
        let most = match congestion {
            Congestion::Hybla => 6,
            Congestion::Farpace | Congestion::Cubic => 10,
            _ => 4,
        };
        assert!(paced <= most, "{congestion:?}: {paced}");
        let unpaced = burst(congestion, false);
        let always = matches!(congestion, Congestion::Bbr1 | Congestion::Bbr3 | Congestion::StarRobust);
        assert_eq!(unpaced >= 10, !always, "{congestion:?}: {unpaced}");
    }
}

/// Breaks: the way back from an outage of two seconds, in which everything is lost.
#[test]
fn each_comes_back_from_an_outage() {
    for congestion in Congestion::ALL {
        let mut world = run(short(), &settings(congestion), SEC * 4);
        world.path.loss = 1.0;
        world.run(SEC * 2);
        assert!(world.sender.inspect().timeouts > 0);
        world.path.loss = 0.0;
        world.run(SEC * 10);
        let used = world.utilisation(SEC * 11);
        // LEDBAT++ gives a tenth of the rate for its slowdowns.
        let others = if congestion == Congestion::LedbatPlusPlus { 0.85 } else { 0.9 };
        assert!(used > least(congestion, others), "{congestion:?}: {used}");
    }
}

/// Breaks: applications that pause: what they send in between must not make the path look slow or fast.
#[test]
fn pauses_cost_nothing_afterwards() {
    for congestion in Congestion::ALL {
        let mut world = run(short(), &settings(congestion), SEC * 5);
        world.set_greedy(false);
        world.run(SEC * 5);
        for _ in 0..40 {
            world.write(3000);
            world.run(Span::from_millis(100));
        }
        let drops = world.drops;
        world.set_greedy(true);
        world.run(SEC * 5);
        let used = world.utilisation(SEC * 15);
        assert!(used > least(congestion, 0.9), "{congestion:?}: {used}");
        // The literal TCP-STAR answers the first ACK of each burst with the whole estimate of a moment.
        let most = if congestion == Congestion::Star { 1_000 } else { 40 };
        assert!(world.drops - drops < most, "{congestion:?}: {} drops after a pause", world.drops - drops);
    }
}

/// Breaks: HyStart++: fewer segments lost when slow start meets the end of the line, and no slower a start.
#[test]
fn hystart_ends_slow_start_before_the_queue_overflows() {
    let path = Path { buffer: 4 * short().bdp(), ..Path::new(20, 50) };
    let start = |hystart| {
        let s = Settings { hystart: Some(hystart), ..settings(Congestion::Cubic) };
        run(path, &s, SEC * 4)
    };
    let (with, without) = (start(true), start(false));
    assert!(with.drops * 2 < without.drops, "{} against {}", with.drops, without.drops);
}

/// Breaks: the fast start: a long path is full in fewer round trips, and less is lost at its end, where the
/// queue is short.
#[test]
fn fast_start_fills_a_long_path() {
    let long = Path::new(100, 300);
    let path = Path { buffer: long.bdp() / 20, ..long };
    let start = |fast| {
        let s = Settings { fast_start: Some(fast), ..settings(Congestion::Cubic) };
        let world = run(path, &s, SEC * 6);
        (world.utilisation(Span::ZERO), world.drops)
    };
    let ((with, lost), (without, lost_without)) = (start(true), start(false));
    assert!(with > 0.5 && with > 1.15 * without, "{with} against {without}");
    assert!(lost * 4 < lost_without, "{lost} against {lost_without}");
}

/// Breaks: a caller must be told that pacing holds data back, and until when; the first window is paced too.
#[test]
fn blocked_by_pacing() {
    for (congestion, pacing) in [(Congestion::HTcp, Some(true)), (Congestion::Bbr3, None)] {
        let mut world = World::new(short(), &Settings { pacing, ..settings(congestion) });
        world.run(Span::from_millis(22));
        let mut out = Vec::new();
        let result = world.sender.poll_transmit(world.now, &mut out, 64);
        assert_eq!(result, Transmit::Blocked(Blocked::Pacing), "{congestion:?}");
        let (at, why) = world.sender.deadline().unwrap();
        assert!(why == Reason::Pacing && at > world.now, "{congestion:?}: {why:?} at {at}");
        assert!(world.sender.inspect().in_flight.get() <= 4, "{congestion:?}");
    }
}

/// Breaks: DCTCP on whole connections: the marked part comes back over delayed ACKs, and α and the window
/// follow it.
#[test]
fn dctcp_follows_the_marked_part() {
    for ecn in [EcnMode::Dctcp, EcnMode::Accurate] {
        for every in [1, 2, 4, 8] {
            let clamp = Some(Packets::new(200));
            let s = Settings { ecn: Some(ecn), cwnd_clamp: clamp, ..settings(Congestion::Dctcp) };
            // So long without marks that α is nearly zero; then one cut each round trip.
            let mut world = run(Path::new(1000, 40), &s, SEC * 10);
            world.path.mark_every = every;
            let mut before = 200.0;
            for cuts in 0u32..12 {
                let ssthresh = world.sender.inspect().ssthresh;
                while world.sender.inspect().ssthresh == ssthresh {
                    world.run(Span::from_millis(1));
                }
                let after = f64::from(world.sender.inspect().ssthresh.get());
                let alpha = 2.0 * (1.0 - after / before);
                // α after so many round trips; the first marks came in the middle of one. A segment is
                // rounded away.
                let after_rounds = |n: u32| (1.0 - libm::pow(15.0 / 16.0, f64::from(n))) / every as f64;
                let (least, most) =
                    (after_rounds(cuts.saturating_sub(1)), after_rounds(cuts) + 2.01 / before);
                let place = format!("{ecn:?}, 1 of {every}, {before} to {after}: {least} {alpha} {most}");
                assert!((least..=most).contains(&alpha), "{place}");
                before = after;
            }
        }
    }
}

/// Breaks: what DCTCP is for: a queue that marks early is enough for a full line, and remains as short as
/// that.
#[test]
fn dctcp_fills_the_line_with_a_short_queue() {
    // RFC 8257 §3.1: more than a seventh of the bandwidth-delay product.
    let path = Path { mark_above: Path::new(100, 20).bdp() / 5, ..Path::new(100, 20) };
    let settings = |ecn, congestion| Settings { ecn, ..settings(congestion) };
    for ecn in [None, Some(EcnMode::Accurate)] {
        let world = run(path, &settings(ecn, Congestion::Dctcp), SEC * 10);
        let (most, _) = queue(&world, SEC * 2);
        let used = world.utilisation(SEC * 2);
        assert!(used > 0.98 && most < 0.25 && world.drops == 0, "{ecn:?}: {used}, queue {most}");
    }
    let reno = run(path, &settings(Some(EcnMode::On), Congestion::Reno), SEC * 10).utilisation(SEC * 2);
    assert!(reno < 0.8, "one that halves empties such a queue: {reno}");
}

/// Breaks: what Vegas and LEDBAT++ are for: a full line without a full queue. Four segments are an eighth of
/// the 33 of the path; 60 ms are one and a half times its round trip, and a tenth of the time goes to
/// slowdowns.
#[test]
fn delay_based_ones_keep_the_queue_short() {
    let deep = Path { buffer: 8 * short().bdp(), ..short() };
    for (congestion, least, most) in
        [(Congestion::Vegas, 0.98, 0.25), (Congestion::LedbatPlusPlus, 0.9, 1.55)]
    {
        let world = run(deep, &settings(congestion), SEC * 30);
        let (_, mean) = queue(&world, SEC * 5);
        let used = world.utilisation(SEC * 5);
        assert!(used > least && mean < most && world.drops == 0, "{congestion:?}: {used}, queue {mean}");
    }
}
