//! Estimated rates, and how fast they converge.

use super::*;

/// True if the estimated rate is within 5 % of `wanted` Mbit/s.
fn near(model: &Model, wanted: f64) -> bool {
    (model.rate(0) / wanted - 1.0).abs() < 0.05
}
/// Runs until `is` has held for 100 ms. Returns how long that took, without the 100 ms.
fn until(model: &mut Model, max: Span, is: impl Fn(&Model) -> bool) -> Span {
    let (begin, mut since) = (model.now, None);
    while model.now.since(begin) < max {
        model.run(ms(5));
        since = is(model).then(|| since.unwrap_or(model.now));
        if let Some(since) = since.filter(|since| model.now.since(*since) >= ms(100)) {
            return since.since(begin);
        }
    }
    Span::MAX
}

/// Breaks: the NICs of a healthy LAN keep their nominal rates.
#[test]
fn a_path_without_a_bottleneck_keeps_the_nominal_rate() {
    for (jitter, loss) in [(0, 0.0), (50, 0.0), (500, 0.0), (0, 0.01), (100, 0.001)] {
        let rates = [G, Rate::from_mbit(100), Rate::from_mbit(10)];
        let path = |rate| ModelPath {
            jitter: Span::from_micros(jitter),
            loss,
            ..ModelPath::new(rate, rate, Span::from_micros(20))
        };
        let mut model = Model::new(jitter, rates.map(path).into());
        model.run(ms(3_000));
        for (at, nominal) in rates.into_iter().enumerate() {
            assert!(model.up(at));
            let kept = model.history.iter().all(|(_, nic, e)| *nic != at || e.rate == nominal);
            assert!(kept, "{nominal} with jitter of {jitter} us and loss of {loss}");
        }
    }
}

/// Breaks: predicted delays on an idle LAN are exact, and the guard covers jitter.
#[test]
fn delays_are_those_of_the_links() {
    let m = Rate::from_mbit(100);
    for load in [0, 90] {
        let load = Some(Rate::from_mbit(load));
        let paths =
            [G, m].map(|rate| ModelPath { load, ..ModelPath::new(rate, rate, Span::from_micros(20)) });
        let mut model = Model::new(1, paths.into());
        model.run(ms(2_000));
        let [fast, slow] = [0, 1].map(|at| model.estimates[at].expect("the path is up"));
        let long = farpace_units::ByteCount::new(1_538);
        // Two store-and-forward links.
        let apart = m.time_for(long) * 2 - G.time_for(long) * 2;
        let found = slow.delay.of(long) - fast.delay.of(long);
        assert!(found.abs_diff(apart) < Span::from_micros(3), "{load:?}: {found}, not {apart}");
        assert!(slow.guard < Span::from_micros(130), "{load:?}: {}", slow.guard);
        assert!(slow.rtt > fast.rtt);
    }
}

/// Breaks: a modem behind a fast NIC is neither overloaded nor underused.
#[test]
fn a_bottleneck_behind_the_nic_is_found() {
    for (seed, one_way) in [(1, 1), (2, 10), (3, 45)] {
        let mut model = Model::new(seed, vec![modem(80, one_way)]);
        let took = until(&mut model, ms(3_000), |model| near(model, 80.0));
        assert!(took < ms(1_000), "{one_way} ms: {took}");
        model.run(ms(500));
        model.clear();
        model.run(ms(12_000));
        let off =
            model.history.iter().filter(|(_, _, e)| !(76.0..84.0).contains(&e.rate.as_mbit_f64())).count();
        assert!(off * 20 < model.history.len(), "{one_way} ms: {off} of {}", model.history.len());
        assert!(model.queued(0, 95) < ms(10), "{one_way} ms: {}", model.queued(0, 95));
        let carried = model.paths[0].delivered as f64 * 1_538.0 * 8.0 / 12.0;
        assert!(carried > 0.97 * 80e6, "{one_way} ms: {carried}");
    }
}

/// Breaks: the rate follows a path whose rate halves or doubles.
#[test]
fn the_rate_follows_a_changing_path() {
    for (seed, one_way) in [(1, 5), (2, 20), (3, 45)] {
        let mut model = Model::new(seed, vec![modem(80, one_way)]);
        model.run(ms(2_000));
        model.paths[0].set_rate(Rate::from_mbit(40));
        let took = until(&mut model, ms(3_000), |model| model.rate(0) < 42.0);
        assert!(took < ms(500), "halved, {one_way} ms: {took}");
        model.run(ms(2_000));
        assert!(near(&model, 40.0), "{}", model.rate(0));
        model.clear();
        model.paths[0].set_rate(Rate::from_mbit(80));
        let took = until(&mut model, ms(6_000), |model| near(model, 80.0));
        assert!(took < ms(3_000), "doubled, {one_way} ms: {took}");
        // The gain is at most an eighth, and the queue shows after a round trip.
        let max = ms(12) + ms(one_way) / 3;
        assert!(model.queued(0, 90) < max, "doubled, {one_way} ms: {}", model.queued(0, 90));
        // Back to the rate of the NIC.
        model.paths[0].set_rate(G);
        model.run(ms(6_000));
        assert_eq!(model.estimates[0].map(|e| e.rate), Some(G), "{one_way} ms");
    }
}

/// Breaks: jitter, as on mobile paths, is not mistaken for a queue, and does not lower the rate.
#[test]
fn jitter_is_not_a_queue() {
    for (seed, jitter) in [(1, 500), (2, 2_000), (3, 8_000)] {
        let path = ModelPath { jitter: Span::from_micros(jitter), ..modem(80, 20) };
        let mut model = Model::new(seed, vec![path]);
        model.run(ms(3_000));
        model.clear();
        model.run(ms(10_000));
        let carried = model.paths[0].delivered as f64 * 1_538.0 * 8.0 / 10.0;
        assert!(carried > 0.93 * 80e6, "{jitter} us: {carried}");
        assert!(
            model.queued(0, 90) < ms(10) + Span::from_micros(jitter * 2),
            "{jitter} us: {}",
            model.queued(0, 90)
        );
    }
}

/// Breaks: random loss does not lower the rate.
#[test]
fn random_loss_does_not_lower_the_rate() {
    for (seed, loss) in [(1, 0.01), (2, 0.03), (3, 0.10)] {
        let mut model = Model::new(seed, vec![ModelPath { loss, ..modem(80, 20) }]);
        model.run(ms(3_000));
        model.clear();
        model.run(ms(10_000));
        let carried = model.paths[0].delivered as f64 * 1_538.0 * 8.0 / 10.0;
        assert!(carried > 0.90 * 80e6 * (1.0 - loss), "{loss}: {carried}");
    }
}

/// Breaks: a path with a short queue, which drops frames before it delays them, is not overloaded
/// permanently.
#[test]
fn a_short_queue_does_not_overflow() {
    let buffer = farpace_units::ByteCount::new(15_000);
    let mut model = Model::new(1, vec![ModelPath { buffer, ..modem(80, 20) }]);
    model.run(ms(3_000));
    model.clear();
    model.run(ms(10_000));
    let sent = model.paths[0].queued.len() as f64;
    let delivered = model.paths[0].delivered as f64;
    assert!(1.0 - delivered / sent < 0.02, "{delivered} of {sent}");
    assert!(delivered * 1_538.0 * 8.0 / 10.0 > 0.90 * 80e6, "{delivered}");
}

/// Breaks: a rarely used path is not mistaken for a slow one.
#[test]
fn an_unused_path_keeps_its_rate() {
    let load = Some(Rate::from_mbit(5));
    let mut model = Model::new(1, vec![ModelPath { load, ..modem(80, 20) }]);
    model.run(ms(5_000));
    assert!(near(&model, 80.0), "measured by the train: {}", model.rate(0));
    model.paths[0].load = None;
    model.run(ms(2_000));
    assert!(near(&model, 80.0));
    model.paths[0].load = load;
    model.run(ms(20_000));
    assert!(near(&model, 80.0), "{}", model.rate(0));
}

/// Breaks: the hand-over of a satellite or mobile network, after which the path is longer, passes for a queue
/// of its own, and the path is left idle for seconds.
#[test]
fn a_longer_path_is_not_a_queue() {
    let cases = [(0, 15), (300, 15), (1_000, 15), (3_000, 15), (300, 40), (1_000, 5)];
    for (seed, (jitter, longer)) in (1..).zip(cases) {
        for outage in [0, 100] {
            let path = ModelPath { jitter: Span::from_micros(jitter), ..modem(80, 20) };
            let mut model = Model::new(seed, vec![path]);
            // What the start overloads must not count as an outage before.
            model.run(ms(6_000));
            model.paths[0].alive = outage == 0;
            model.run(ms(outage));
            (model.paths[0].alive, model.paths[0].delay) = (true, ms(20 + longer));
            model.clear();
            let carried = [500, 500, 2_000].map(|millis| {
                let before = model.paths[0].delivered;
                model.run(ms(millis));
                (model.paths[0].delivered - before) as f64 * 1_538.0 * 8.0 / millis as f64 / 1e3
            });
            println!("{jitter} us, {longer} ms longer after {outage} ms: {carried:.0?} Mbit/s");
            let [_, second, later] = carried;
            assert!(
                second > 0.8 * 80.0 && later > 0.95 * 80.0,
                "{jitter} us, {longer} ms, {outage} ms: {carried:?}"
            );
            let most = ms(10) + Span::from_micros(jitter * 2);
            assert!(model.queued(0, 90) < most, "{jitter} us, {longer} ms: {}", model.queued(0, 90));
        }
    }
}
