//! The orders, compared with the paper and with models.

use super::*;
use crate::multi_nic::{MAX_NICS, NicPath, NicSpec, PathDelay, PredictedDeparture, Sends, predict};
use farpace_units::{Rate, Span};
use farpace_wire::{MacAddr, NicKind};
use proptest::prelude::*;

const FULL: ByteCount = ByteCount::new(1_538);

/// NICs of these rates, and a neighbour with the same NICs behind one switch.
fn lan(mbit: &[u64]) -> (NicPaths, NeighbourId) {
    paths_of(&mbit.iter().map(|mbit| (Rate::from_mbit(*mbit), Span::ZERO)).collect::<Vec<_>>())
}

/// Paths of these rates and additional delays.
fn paths_of(specs: &[(Rate, Span)]) -> (NicPaths, NeighbourId) {
    let spec = |(i, (rate, _)): (usize, &(Rate, Span))| NicSpec {
        mac: MacAddr([2, 0, 0, 0, 0, i as u8]),
        rate: *rate,
        kind: NicKind::of_rate(*rate),
    };
    let mut paths = NicPaths::new(&specs.iter().enumerate().map(spec).collect::<Vec<_>>());
    let mut to = [None; MAX_NICS];
    for ((i, (rate, fixed)), slot) in specs.iter().enumerate().zip(&mut to) {
        let delay = PathDelay { fixed: *fixed, ..PathDelay::of_links(2, *rate) };
        *slot = Some(NicPath::new(Some(MacAddr([2, 0, 0, 0, 1, i as u8])), *rate, delay));
    }
    let id = paths.set_neighbour(None, to);
    (paths, id)
}

fn config(order: OrderKind) -> MultiNicConfig {
    MultiNicConfig { order, ..MultiNicConfig::default() }
}

fn skip(s: u16, ratio: &str) -> MultiNicConfig {
    MultiNicConfig { skip: Some(s), ratio: ratio.parse().ok(), ..config(OrderKind::Skip) }
}

/// The order in which frames 1, 2, ... are given to infinitely fast NICs, with the NICs.
fn dequeued(s: u16, frames: u64) -> Vec<(u64, u8)> {
    let (paths, neighbour) = lan(&[1_000, 100]);
    let mut order = make::<u64>(&skip(s, "75/25"), &paths);
    let (mut out, mut refused) = (Vec::new(), Vec::new());
    for frame in 1..=frames {
        let item = QueuedFrame { frame, bytes: FULL, flow: FlowId(7), neighbour, cached: None };
        order.enqueue(Instant::ZERO, item, &paths, &mut refused);
        for nic in [NicId(1), NicId(0)] {
            while let Some(item) = order.dequeue(Instant::ZERO, nic, &paths) {
                out.push((item.frame, nic.0));
            }
        }
    }
    assert!(refused.is_empty());
    out
}

/// Breaks: Fig. 6 of the paper, where the fast NIC sends fewer frames in a row than S: the slow one sends the
/// fifth frame first.
#[test]
fn with_skip_4_and_three_fast_slots_the_fifth_frame_is_first() {
    assert_eq!(dequeued(4, 8)[..4], [(5, 1), (1, 0), (2, 0), (3, 0)]);
}

/// Breaks: Fig. 7 of the paper, where the fast NIC sends more frames in a row than S.
#[test]
fn with_skip_2_and_three_fast_slots_frames_leave_as_in_figure_7() {
    let frames: Vec<u64> = dequeued(2, 8).into_iter().map(|(frame, _)| frame).collect();
    assert_eq!(frames, [3, 1, 2, 4, 7, 5, 6, 8]);
    let slow: Vec<u64> = dequeued(2, 8).into_iter().filter(|(_, nic)| *nic == 1).map(|(f, _)| f).collect();
    assert_eq!(slow, [3, 7]);
}

/// Breaks: S = 0 is the conventional method, round robin.
#[test]
fn with_skip_0_frames_leave_in_round_robin() {
    let frames: Vec<u64> = dequeued(0, 8).into_iter().map(|(frame, _)| frame).collect();
    assert_eq!(frames, [1, 2, 3, 4, 5, 6, 7, 8]);
}

/// Breaks: the last frames of a transfer leave after the hold time, in the order of the paper: the fast NIC
/// takes the first, and before n slow slots the n-th from the end leaves on them.
#[test]
fn waiting_frames_leave_after_the_hold_time() {
    let (paths, neighbour) = lan(&[1_000, 100]);
    let mut order = make::<u64>(&skip(4, "75/25"), &paths);
    let mut refused = Vec::new();
    let ms = |n| Instant::ZERO + Span::from_millis(n);
    for frame in 1..=3 {
        let item = QueuedFrame { frame, bytes: FULL, flow: FlowId(7), neighbour, cached: None };
        order.enqueue(ms(frame), item, &paths, &mut refused);
    }
    // 10 ms after the third frame, not after the first.
    let mut wakes = Vec::new();
    while let Some(at) = order.deadline() {
        wakes.push(at);
        order.on_deadline(at, &paths, &mut refused);
        assert!(order.deadline().is_none_or(|next| next > at));
        assert!(at == ms(13) || order.dequeue(at, NicId(1), &paths).is_none());
    }
    assert_eq!(wakes.last(), Some(&ms(13)));
    let mut out =
        |nic| std::iter::from_fn(|| order.dequeue(ms(13), nic, &paths)).map(|i| i.frame).collect::<Vec<_>>();
    assert_eq!((out(NicId(1)), out(NicId(0))), (vec![3], vec![1, 2]));
    assert!(refused.is_empty() && order.held() == 0);
}

/// Breaks: S is the value that the paper found best for one switch and a rate ratio of ten.
#[test]
fn the_skip_number_follows_from_rates_and_hops() {
    let (paths, neighbour) = lan(&[1_000, 100]);
    assert_eq!(skip_number(neighbour, NicId(1), &paths), 18);
    assert_eq!(skip_number(neighbour, NicId(0), &paths), 0);
    let (paths, neighbour) = lan(&[1_000, 1_000]);
    assert_eq!(skip_number(neighbour, NicId(1), &paths), 0);
    // A path with a delay of 1 ms more: 81 frames of a gigabit more.
    let gigabit = Rate::from_mbit(1_000);
    let (paths, neighbour) = paths_of(&[(gigabit, Span::ZERO), (gigabit, Span::from_millis(1))]);
    assert_eq!(skip_number(neighbour, NicId(1), &paths), 81);
}

/// The fraction of frames that at least three later ones overtake, and the mean wire rate in Mbit/s.
fn reordering_and_rate(departures: &[PredictedDeparture], bytes: ByteCount) -> (f64, f64) {
    let late = PredictedDeparture::in_order_of_arrival(departures).iter().filter(|(_, n)| *n >= 3).count();
    let last = departures.iter().map(|d| d.leaves).max().unwrap_or_default();
    let rate = Rate::of(ByteCount::new(bytes.get() * departures.len() as u64), last.since(Instant::ZERO));
    (late as f64 / departures.len() as f64, rate.as_mbit_f64())
}

/// Breaks: `earliest` reaches the sum of the rates of all NICs, in order.
#[test]
fn earliest_carries_the_sum_in_order() {
    for mbit in [
        &[1_000, 100][..],
        &[1_000, 1_000],
        &[1_000, 100, 10],
        &[10_000, 1_000],
        &[2_500, 1_000, 100],
        &[100, 1_000],
    ] {
        let (paths, neighbour) = lan(mbit);
        let sent = predict(&config(OrderKind::Earliest), paths, neighbour, 20_000, FULL);
        let (late, rate) = reordering_and_rate(&sent, FULL);
        let sum = mbit.iter().sum::<u64>() as f64;
        assert_eq!((sent.len(), late), (20_000, 0.0), "{mbit:?}");
        assert!(rate > 0.995 * sum, "{mbit:?}: {rate:.1} of {sum} Mbit/s");
    }
}

/// Breaks: the baseline of the comparison: in round robin, one frame in eleven is overtaken.
#[test]
fn round_robin_reorders_the_share_of_the_slow_nic() {
    let (paths, neighbour) = lan(&[1_000, 100]);
    let sent = predict(&config(OrderKind::RoundRobin), paths, neighbour, 20_000, FULL);
    let (late, _) = reordering_and_rate(&sent, FULL);
    assert!((late - 1.0 / 11.0).abs() < 0.001, "{late}");
}

/// Breaks: `earliest` reaches the sum of the rates in order on paths with different delays (DSL, satellites,
/// 5G).
#[test]
fn earliest_reaches_the_sum_on_paths_with_different_delays() {
    let path = |mbit, ms| (Rate::from_mbit(mbit), Span::from_millis(ms));
    let (paths, neighbour) = paths_of(&[path(80, 20), path(180, 45), path(150, 30)]);
    let sent = predict(&config(OrderKind::Earliest), paths, neighbour, 40_000, FULL);
    let (late, rate) = reordering_and_rate(&sent, FULL);
    assert_eq!(late, 0.0);
    assert!(rate > 0.97 * 410.0, "{rate:.1} Mbit/s");
}

/// Breaks: a connection with a small window does not stay on a path with a low delay and a low rate.
#[test]
fn a_slow_path_with_a_low_delay_is_disabled() {
    let path = |mbit, ms| (Rate::from_mbit(mbit), Span::from_millis(ms));
    for (set, used) in [
        (vec![path(13, 5), path(500, 50), path(400, 10)], vec![1, 2]),
        (vec![path(80, 20), path(180, 45), path(150, 30)], vec![0, 1, 2]),
        // A low rate without a low delay takes nothing from the others.
        (vec![path(1_000, 0), path(10, 0)], vec![0, 1]),
    ] {
        let (mut paths, neighbour) = paths_of(&set);
        paths.select(neighbour, None, Sends::LossTolerant, Rate::default());
        assert_eq!(paths.working(neighbour).map(|(nic, _)| nic.0).collect::<Vec<_>>(), used, "{set:?}");
    }
    let (mut paths, neighbour) = paths_of(&[path(13, 5), path(500, 50)]);
    paths.select(neighbour, None, Sends::LossTolerant, Rate::default());
    paths.set_carrier(NicId(1), false);
    paths.select(neighbour, None, Sends::LossTolerant, Rate::default());
    assert_eq!(paths.working(neighbour).count(), 1, "it is the only path left");
}

/// Breaks: a single frame leaves immediately, on the NIC on which it arrives first.
#[test]
fn a_single_frame_leaves_at_once_on_the_fastest_path() {
    for order in OrderKind::ALL
        .into_iter()
        .filter(|o| !matches!(o, OrderKind::Skip | OrderKind::RoundRobin | OrderKind::FlowHash))
    {
        for guard in [0, 500] {
            let (mut paths, neighbour) = lan(&[100, 1_000, 1_000]);
            for nic in paths.ids() {
                paths.path_mut(neighbour, nic).expect("a path").guard = Span::from_micros(guard);
            }
            let sent = predict(&config(order), paths, neighbour, 1, FULL);
            assert_eq!(sent.len(), 1, "{order:?}");
            assert_eq!((sent[0].nic, sent[0].leaves), (NicId(1), Instant::ZERO), "{order:?}");
        }
    }
}

/// NICs fail and return while frames arrive, and then all work. Every frame must be returned once, for a
/// usable path.
fn fail_and_return(kind: OrderKind, mbit: &[u64], steps: &[(u8, bool, u8)]) -> Result<(), TestCaseError> {
    let (mut paths, neighbour) = lan(mbit);
    let mut order = make::<u64>(&MultiNicConfig { skip: Some(3), ..config(kind) }, &paths);
    let (mut now, mut given, mut refused, mut sent) = (Instant::ZERO, 0, Vec::new(), Vec::new());
    let drain =
        |order: &mut Box<dyn SendOrder<u64>>, paths: &mut NicPaths, now: Instant, sent: &mut Vec<u64>| {
            let mut more = true;
            while std::mem::take(&mut more) {
                for nic in paths.ids() {
                    if paths.is_idle(nic, now)
                        && let Some(item) = order.dequeue(now, nic, paths)
                    {
                        assert!(
                            paths.path(neighbour, nic).is_some_and(|path| path.free <= now),
                            "a usable and idle path"
                        );
                        paths.send(now, nic, neighbour, item.bytes);
                        sent.push(item.frame);
                        more = true;
                    }
                }
            }
        };
    for &(nic, up, frames) in steps {
        paths.set_carrier(NicId(nic % mbit.len() as u8), up);
        order.on_change(now, &paths, &mut refused);
        for _ in 0..frames {
            let item =
                QueuedFrame { frame: given, bytes: FULL, flow: FlowId(given % 3), neighbour, cached: None };
            given += 1;
            order.enqueue(now, item, &paths, &mut refused);
            drain(&mut order, &mut paths, now, &mut sent);
        }
        now += Span::from_micros(100);
        order.on_deadline(now, &paths, &mut refused);
        drain(&mut order, &mut paths, now, &mut sent);
        prop_assert_eq!(order.held() + sent.len() as u64 + refused.len() as u64, given);
        prop_assert_eq!(order.backlog(), ByteCount::new(FULL.get() * order.held()));
    }
    for nic in paths.ids() {
        paths.set_carrier(nic, true);
    }
    order.on_change(now, &paths, &mut refused);
    for _ in 0..20_000 {
        drain(&mut order, &mut paths, now, &mut sent);
        let Some(at) = paths.next_free(now).into_iter().chain(order.deadline()).min() else { break };
        now = now.max(at);
        order.on_deadline(now, &paths, &mut refused);
    }
    sent.extend(refused.iter().map(|item| item.frame));
    sent.sort_unstable();
    prop_assert_eq!(order.held(), 0, "{:?} keeps frames although all NICs work", kind);
    prop_assert_eq!(sent, (0..given).collect::<Vec<_>>());
    Ok(())
}

proptest! {
    /// Breaks: failures of NICs neither lose nor duplicate frames, use no failed path, and leave no frame
    /// behind.
    #[test]
    fn no_frame_is_lost_when_nics_fail_and_return(
        kind in prop::sample::select(OrderKind::ALL.to_vec()),
        mbit in prop::collection::vec(prop::sample::select(vec![10_u64, 100, 1_000, 10_000]), 1..5),
        steps in prop::collection::vec((0..5_u8, any::<bool>(), 0..40_u8), 1..40),
    ) {
        fail_and_return(kind, &mbit, &steps)?;
    }

    /// Breaks: on any set of paths, `earliest` delivers frames in order, and not later than the best single
    /// NIC.
    #[test]
    fn earliest_is_in_order_and_as_fast_as_the_best_nic(
        set in prop::collection::vec((1_u64..2_000, 0_u64..3_000), 1..6),
        len in 84_u64..1_538,
    ) {
        let set: Vec<_> = set.into_iter().map(|(mbit, us)| (Rate::from_mbit(mbit), Span::from_micros(us))).collect();
        let bytes = ByteCount::new(len);
        let ends = |sent: &[PredictedDeparture]| sent.iter().map(|d| d.arrives).max().unwrap_or_default().since(Instant::ZERO);
        let alone = set.iter().map(|path| {
            let (paths, neighbour) = paths_of(&[*path]);
            ends(&predict(&config(OrderKind::Earliest), paths, neighbour, 2_000, bytes))
        });
        let best = alone.min().unwrap_or_default();
        let (paths, neighbour) = paths_of(&set);
        let sent = predict(&config(OrderKind::Earliest), paths, neighbour, 2_000, bytes);
        prop_assert_eq!(sent.len(), 2_000);
        let late = PredictedDeparture::in_order_of_arrival(&sent).iter().filter(|(_, n)| *n >= 3).count();
        // With three NICs or more, one may wait for a moment though the others rely on its rate.
        prop_assert!(late <= 10, "{} late frames", late);
        prop_assert!(ends(&sent) <= best + Span::from_nanos(2_000), "{} after {}", ends(&sent), best);
    }
}

/// Breaks: what TCP sends again over a cut link waits behind a thousand frames on slow paths, or fast paths
/// have no room.
#[test]
fn the_queue_may_be_bounded_by_time() {
    let usual = 1_000..=1_200;
    for (mbit, time, limits) in [
        (10, None, usual.clone()),
        (10, Some(Span::from_millis(10)), 32..=64),
        (1_000, Some(Span::from_millis(10)), usual),
    ] {
        let (paths, neighbour) = lan(&[mbit, mbit]);
        let (mut order, mut refused) = (Earliest::new(None), Vec::new());
        if let Some(time) = time {
            order.limit_time(time);
        }
        order.on_change(Instant::ZERO, &paths, &mut refused);
        for frame in 0..3_000_u64 {
            let item = QueuedFrame { frame, bytes: FULL, flow: FlowId(7), neighbour, cached: None };
            order.enqueue(Instant::ZERO, item, &paths, &mut refused);
        }
        assert!(limits.contains(&order.held()), "{mbit} Mbit/s, {time:?}: {}", order.held());
    }
}
