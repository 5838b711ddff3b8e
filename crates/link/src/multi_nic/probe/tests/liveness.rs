//! Paths that fail and return.

use super::*;
use crate::multi_nic::probe::{
    MAX_PROBED, PathProbe, PathTo, ProbeMessage, ProbeTraffic, Prober, Probing, ReorderCounts, Reply,
};
use crate::multi_nic::{NeighbourId, NicId};
use farpace_units::ByteCount;
use farpace_units::Instant;

/// Breaks: the failure of a path is detected within a tenth of a second, and its return too.
#[test]
fn a_failure_is_detected_within_a_tenth_of_a_second() {
    let lan = || ModelPath::new(G, G, Span::from_micros(20));
    for (seed, at_ms) in [(1, 1_000), (2, 1_013), (3, 1_024)] {
        let mut model = Model::new(seed, vec![lan(), lan(), modem(80, 20)]);
        model.run(ms(at_ms));
        for at in [0, 2] {
            model.paths[at].alive = false;
            let failed = model.now;
            model.clear();
            model.run(ms(if at == 0 { 100 } else { 160 }));
            assert!(!model.up(at), "{at} at {at_ms}");
            let when = model.history.iter().find(|(_, nic, e)| *nic == at && !e.up).expect("it is down").0;
            // Not before three consecutive probes could have been answered.
            assert!(when.since(failed) >= ms(50), "{at} at {at_ms}: {}", when.since(failed));
            assert!(model.up(1), "the other path works");
        }
        model.run(ms(400));
        for at in [0, 2] {
            model.paths[at].alive = true;
            model.run(ms(if at == 0 { 50 } else { 120 }));
            assert!(model.up(at), "{at} has returned");
        }
    }
}

/// Breaks: a path that failed after some very late replies stays up: while the next reply may be late, more
/// probes leave than are remembered.
#[test]
fn late_replies_do_not_hide_a_failure() {
    const LONG: Span = Span::from_secs(6);
    // How many replies come late before the path fails, and when that must be found.
    for (late, limit) in [(3, 1_500), (12, 6_000), (600, 200)] {
        // The delay of the reply to a probe; none: it is lost.
        let delay = |n| (n < 100 + late).then_some(if n < 100 { ms(1) } else { LONG });
        let mut prober = Prober::new(Probing { interval: ms(25), starts_up: true, hops: 2 });
        let (from, to) = (model::ours(0), model::theirs(0));
        let path_to = PathTo { neighbour: NeighbourId(1), nic: NicId(0), from, to, nominal: G };
        prober.add(Instant::ZERO, path_to).expect("within the limit");
        let mut replies = std::collections::BTreeMap::new();
        let (mut now, mut last, mut up, mut probes) = (Instant::ZERO, Instant::ZERO, true, 0);
        while delay(probes).is_some() || !replies.is_empty() || up && now.since(last) < ms(60_000) {
            prober.on_sent(now, NeighbourId(1), NicId(0), ByteCount::new(100));
            if let Some(packet) = prober.poll(now, NicId(0), ByteCount::ZERO) {
                if let Some(delay) = delay(probes)
                    && let Some(Ok(ProbeMessage::Probe(probe))) = ProbeMessage::of(&packet)
                {
                    let (arrived_at, received) = (now, probe.sent);
                    let (reordered, resequence_time) = (ReorderCounts::default(), Span::ZERO);
                    let reply = Reply { probe, arrived_at, received, reordered, resequence_time };
                    last = last.max(now + delay);
                    replies.insert((now + delay, probes), reply);
                }
                probes += 1;
            }
            now = prober.deadline().into_iter().chain(replies.keys().map(|(at, _)| *at)).min().expect("one");
            while let Some(reply) = replies.first_entry().filter(|entry| entry.key().0 <= now) {
                prober.on_reply(now, NicId(0), to, &reply.remove());
            }
            prober.on_deadline(now);
            up = prober.take_changes().last().map_or(up, |(_, _, estimate)| estimate.up);
        }
        let took = now.since(last);
        assert!(!up && took < ms(limit), "{late} late replies: {took}");
    }
}

/// Breaks: random losses of probes are not mistaken for a failure.
#[test]
fn random_loss_is_not_a_failure() {
    for (seed, loss) in [(1, 0.01), (2, 0.05), (3, 0.1)] {
        let mut model = Model::new(seed, vec![ModelPath { loss, ..modem(80, 20) }]);
        model.run(ms(2_000));
        model.clear();
        model.run(ms(20_000));
        assert!(model.history.iter().all(|(_, _, e)| e.up), "{loss}");
    }
}

/// Breaks: unused paths are probed at a low rate, and their failures are still detected.
#[test]
fn unused_paths_are_probed_rarely() {
    let idle = |_| ModelPath { load: Some(Rate::default()), ..ModelPath::new(G, G, Span::from_micros(20)) };
    let mut model = Model::new(1, (0..2).map(idle).collect());
    model.run(ms(10_000));
    let probes = |model: &Model| model.paths[0].delivered;
    assert!((9..=14).contains(&probes(&model)), "{}", probes(&model));
    assert!(model.up(0) && model.up(1));
    model.paths[0].alive = false;
    model.run(ms(1_200));
    assert!(!model.up(0) && model.up(1));
    // Both paths are probed when one of them is used; one by which nothing is sent rarely, unless much is.
    model.clear();
    model.paths[0].alive = true;
    for (load, some) in [(None, 38..=60), (Some(Rate::from_bytes_per_sec_f64(40_000.0)), 3..=6)] {
        model.paths[1].load = load;
        model.run(ms(500));
        assert!(model.up(0));
        model.clear();
        model.run(ms(1_000));
        assert!(some.contains(&probes(&model)), "{}", probes(&model));
    }
}

/// Breaks: one frame a second costs as many probes as a transfer; or a failure costs more than a tenth of a
/// second of the data that follow, because probes were rare before.
#[test]
fn few_data_cost_few_probes() {
    const SECONDS: u64 = 20;
    let lan = |load| ModelPath { load, ..ModelPath::new(G, G, Span::from_micros(20)) };
    let frame_a_second = Rate::from_bytes_per_sec_f64(1_538.0);
    let mut model = Model::new(1, vec![lan(Some(frame_a_second)), lan(Some(Rate::default()))]);
    model.run(ms(2_000));
    model.clear();
    model.run(ms(SECONDS * 1_000));
    let probes = model.paths[0].delivered - SECONDS;
    assert!(probes <= 11 * SECONDS, "{probes}");
    // Just before the next frame.
    let next = model.paths[0].free;
    model.run(next.since(model.now) - ms(5));
    model.paths[0].alive = false;
    model.run(ms(105));
    assert!(!model.up(0) && model.up(1));
}

/// Breaks: replies that match no outstanding probe have no effect, so that forged ones do not keep dead paths
/// alive.
#[test]
fn unsolicited_replies_are_refused() {
    let mut prober = Prober::new(Probing { interval: ms(25), starts_up: true, hops: 2 });
    let (from, to) = (model::ours(0), model::theirs(0));
    let path_to = PathTo { neighbour: NeighbourId(1), nic: NicId(0), from, to, nominal: G };
    prober.add(Instant::ZERO, path_to).expect("within the limit");
    let over_limit = PathTo { neighbour: NeighbourId(MAX_PROBED as u32), ..path_to };
    assert!(prober.add(Instant::ZERO, over_limit).is_err());
    assert!(prober.add(Instant::ZERO, PathTo { nic: NicId(16), ..path_to }).is_err());
    prober.on_deadline(Instant::ZERO);
    assert!(prober.wants(NicId(0)) && !prober.wants(NicId(1)));
    let packet = prober.poll(Instant::ZERO, NicId(0), ByteCount::ZERO).expect("a probe");
    let Some(Ok(ProbeMessage::Probe(probe))) = ProbeMessage::of(&packet) else {
        panic!("not a probe");
    };
    let good = Reply {
        probe,
        arrived_at: Instant::ZERO,
        received: probe.sent,
        reordered: Default::default(),
        resequence_time: Span::ZERO,
    };
    let now = Instant::from_nanos(1_000_000);
    let other_seq = Reply { probe: PathProbe { seq: 9, ..probe }, ..good };
    let other_time = Reply { probe: PathProbe { sent_at: now, ..probe }, ..good };
    let other_nic = Reply { probe: PathProbe { nic: NicId(1), ..probe }, ..good };
    for (bad, nic, by) in [
        (other_seq, 0, to),
        (other_time, 0, to),
        (other_nic, 0, to),
        (good, 1, to),
        (good, 0, from),
        (good, 0, model::theirs(1)),
        (good, 200, to),
    ] {
        assert!(!prober.on_reply(now, NicId(nic), by, &bad), "{bad:?} by {nic} from {by}");
    }
    assert_eq!(prober.refused(), 7);
    assert!(prober.on_reply(now, NicId(0), to, &good));
    assert!(!prober.on_reply(now, NicId(0), to, &good), "only the first reply counts");
    prober.remove(NeighbourId(1), NicId(0));
    assert_eq!(prober.deadline(), None);
    assert!(!prober.wants(NicId(0)) && prober.poll(now, NicId(0), ByteCount::ZERO).is_none());
}

/// Breaks: replies with absurd times and counters cause no panic and leave the estimates in range.
#[test]
fn absurd_replies_do_no_harm() {
    use farpace_units::{ByteCount, RandomStream};
    let mut rng = RandomStream::new(7, "absurd");
    let mut prober = Prober::new(Probing { interval: ms(25), starts_up: true, hops: 2 });
    let path_to = PathTo {
        neighbour: NeighbourId(1),
        nic: NicId(0),
        from: model::ours(0),
        to: model::theirs(0),
        nominal: G,
    };
    prober.add(Instant::ZERO, path_to).expect("within the limit");
    let mut now = Instant::ZERO;
    for _ in 0..5_000 {
        now = now.max(prober.deadline().unwrap_or(now));
        prober.on_deadline(now);
        let Some(packet) = prober.poll(now, NicId(0), ByteCount::ZERO) else { continue };
        let Some(Ok(ProbeMessage::Probe(probe))) = ProbeMessage::of(&packet) else {
            panic!("not a probe");
        };
        let mut any = || rng.next_u64() >> rng.below(64);
        let received = ProbeTraffic { frames: any(), bytes: ByteCount::new(any()) };
        let arrived_at = Instant::from_nanos(any());
        prober.on_sent(now, NeighbourId(1), NicId(0), ByteCount::new(1_538));
        let resequence_time = Span::from_nanos(any());
        let reordered = ReorderCounts { late: 0, harmful: any() as u32, overtook: 0 };
        prober.on_reply(
            now,
            NicId(0),
            path_to.to,
            &Reply { probe, arrived_at, received, reordered, resequence_time },
        );
        for (_, _, estimate) in prober.take_changes() {
            assert!(estimate.rate <= G && estimate.rate > Rate::default(), "{estimate:?}");
            assert!((0.0..=1.0).contains(&estimate.loss), "{estimate:?}");
            assert!(estimate.resequence_time <= Span::from_secs(2), "{estimate:?}");
            assert!(estimate.longest_rtt.is_zero(), "the own clock measures nothing: {estimate:?}");
        }
    }
}
