//! Limits of the clock, late callers, and rates that change abruptly.

use super::*;

/// Breaks: packets still leave, and in order, when the clock reaches its last byte (1 Tbit/s: after 4.7
/// years).
#[test]
fn packets_leave_at_the_end_of_the_clock() {
    let link_rate = LinkClock::MAX_RATE;
    let end = LinkClock::new(link_rate).instant_of(u64::MAX);
    for before in [Span::from_secs(600), Span::from_nanos(20), Span::ZERO] {
        for gaps in [Gaps::Frames, Gaps::Timers, Gaps::Hybrid] {
            let mut edf: Edf<SaturatingFrame> =
                Edf::new(link_rate, MTU, gaps, Span::from_micros(10)).unwrap();
            let classes = [
                ClassKind::Paced(Rate::from_mbit(500_000)),
                ClassKind::Paced(Rate::from_mbit(100)),
                ClassKind::Normal,
            ];
            let classes = classes.map(|kind| class(&mut edf, kind));
            let mut now = Instant::from_nanos(end.as_nanos() - before.as_nanos());
            for id in classes.into_iter().cycle().take(30) {
                edf.enqueue(now, id, SaturatingFrame(FULL)).unwrap();
            }
            let mut sent = 0;
            for _ in 0..1_000_000 {
                match edf.dequeue(now) {
                    Next::Packet { .. } => sent += 1,
                    Next::Gap(_) => {}
                    Next::Wait(until) => now = now.max(until),
                    Next::Empty => break,
                }
            }
            assert_eq!(sent, 30, "{before} before the end, {gaps:?}");
        }
    }
}

/// Breaks: a jitter longer than the range of time does not stop the scheduler.
#[test]
fn timers_may_be_useless() {
    let mut edf: Edf<SaturatingFrame> = Edf::new(LinkClock::MAX_RATE, MTU, Gaps::Hybrid, Span::MAX).unwrap();
    let id = paced(&mut edf, Rate::from_mbit(100_000));
    queue(&mut edf, 0, id, 3);
    let mut at = 0;
    let starts: Vec<u64> = drain(&mut edf, &mut at, u64::MAX).into_iter().map(|(_, at)| at).collect();
    assert_eq!(starts, [0, 15_180, 30_360], "only gap frames");
}

/// Breaks: with timers, a late caller never gets a wait for a past time, and a class makes up for two
/// frames at most.
#[test]
fn late_callers_do_not_wait_for_the_past() {
    for gaps in [Gaps::Timers, Gaps::Hybrid] {
        let mut edf = edf(gaps);
        let id = paced(&mut edf, Rate::from_mbit(50));
        queue(&mut edf, 0, id, 200);
        let (mut now, mut sent, mut in_a_row) = (Instant::ZERO, 0, 0);
        loop {
            match edf.dequeue(now) {
                Next::Packet { .. } => {
                    sent += 1;
                    in_a_row += 1;
                    assert!(in_a_row <= 3, "{gaps:?}: {in_a_row} frames without a pause");
                    now += Span::from_nanos(12_304);
                }
                Next::Gap(gap) => {
                    in_a_row = 0;
                    now += LINK_RATE.time_for(gap);
                }
                Next::Wait(until) => {
                    in_a_row = 0;
                    assert!(until > now, "{gaps:?}: at {now} until {until}");
                    now = until + Span::from_micros(700 * (sent % 3));
                }
                Next::Empty => break,
            }
        }
        assert_eq!(sent, 200);
    }
    // Late after a frame instead of after a wait.
    let mut edf = edf(Gaps::Timers);
    let id = paced(&mut edf, Rate::from_mbit(50));
    queue(&mut edf, 0, id, 2);
    assert!(matches!(edf.dequeue(Instant::ZERO), Next::Packet { .. }));
    assert!(matches!(edf.dequeue(Instant::from_nanos(1_000_000)), Next::Packet { .. }));
}

/// Breaks: timers that are late by the configured jitter do not delay frames, because gap frames fill the
/// rest.
#[test]
fn timers_may_be_late_by_the_jitter() {
    let mut edf = edf(Gaps::Hybrid);
    let id = paced(&mut edf, Rate::from_mbit(150));
    queue(&mut edf, 0, id, 20);
    let (mut at, mut waits, mut starts) = (0, 0, vec![]);
    let late = LINK_RATE.bytes_in(Span::from_micros(10)).get();
    loop {
        match edf.dequeue(edf.clock.instant_of(at)) {
            Next::Packet { packet, .. } => {
                starts.push(at);
                at += wire_len(packet.len()).get();
            }
            Next::Gap(gap) => at += gap.get(),
            Next::Wait(until) => {
                waits += 1;
                at = edf.clock.bytes_at(until) + late;
            }
            Next::Empty => break,
        }
    }
    assert_eq!(waits, 19);
    assert_eq!(starts, (0..20).map(|n| n * 10_120).collect::<Vec<_>>());
}

/// Breaks: every gap is filled to the byte, with frames of valid lengths.
#[test]
fn gaps_are_filled_to_the_byte() {
    for full in [168, 1_538, 9_038] {
        for gap in (84..=full).chain(full + 84..30_000) {
            let mut left = gap;
            while left > 0 {
                let frame = gap_frame(left, ByteCount::new(full)).get();
                assert!(
                    (84..=full).contains(&frame) && frame <= left,
                    "{frame} of {left}, full frames {full}"
                );
                left -= frame;
            }
        }
    }
}

/// Breaks: with late timers, a slow class that could use timers does not delay a fast class that cannot.
#[test]
fn slow_classes_do_not_delay_fast_ones() {
    let jitter = Span::from_micros(50);
    let mut edf: Edf<SaturatingFrame> = Edf::new(LINK_RATE, MTU, Gaps::Hybrid, jitter).unwrap();
    let fast = paced(&mut edf, Rate::from_mbit(300));
    let slow: Vec<_> =
        (0..20).map(|n| paced(&mut edf, Rate::from_bits_per_sec(2_000_000 + n * 17_777))).collect();
    let classes: Vec<_> = slow.into_iter().chain([fast]).collect();
    let (mut at, late) = (0, LINK_RATE.bytes_in(jitter).get());
    for id in &classes {
        queue(&mut edf, at, *id, 2);
    }
    let mut q = Burstiness::new(ByteCount::new(300), 1_000);
    let mut waits = 0;
    while at < 50_000_000 {
        match edf.dequeue(edf.clock.instant_of(at)) {
            Next::Packet { class, packet } => {
                if class == fast {
                    q.arrive(at, layer_2(packet.len()));
                }
                at += wire_len(packet.len()).get();
                queue(&mut edf, at, class, 1);
            }
            Next::Gap(gap) => at += gap.get(),
            Next::Wait(until) => {
                waits += 1;
                at = edf.clock.bytes_at(until) + late;
            }
            Next::Empty => unreachable!(),
        }
    }
    assert!(q.peak().get() <= 2 * 1_518, "{} with {waits} waits", q.peak());
}

/// Breaks: a waiting frame follows a rate that grows in many small steps.
#[test]
fn a_rate_that_grows_slowly_applies() {
    let mut edf: Edf<HintedFrame> = Edf::new(LINK_RATE, MTU, Gaps::Timers, Span::ZERO).unwrap();
    let id = edf.add_class(ClassSpec { kind: ClassKind::Follows, limit: QueueLimit::Unlimited }).unwrap();
    let mut rate = 8_000;
    for _ in 0..2 {
        edf.enqueue(Instant::ZERO, id, HintedFrame(Rate::from_bits_per_sec(rate))).unwrap();
    }
    assert!(matches!(edf.dequeue(Instant::ZERO), Next::Packet { .. }));
    let now = Instant::from_nanos(12_304);
    while rate < 800_000_000 {
        rate += rate / 2;
        edf.enqueue(now, id, HintedFrame(Rate::from_bits_per_sec(rate))).unwrap();
    }
    let Next::Wait(until) = edf.dequeue(now) else { unreachable!() };
    assert!(until < Instant::from_nanos(60_000), "{until:?}");
}

/// Breaks: a rebuild without stale entries keeps the place of each class without a rate in the round robin,
/// exactly once; and a class that reuses a number does not inherit entries.
#[test]
fn a_rebuild_keeps_the_round_robin() {
    let mut edf = edf(Gaps::Frames);
    let jumpy = paced(&mut edf, Rate::from_mbit(1));
    let old = class(&mut edf, ClassKind::Normal);
    queue(&mut edf, 0, jumpy, 2);
    queue(&mut edf, 0, old, 400);
    assert!(matches!(edf.dequeue(Instant::ZERO), Next::Packet { .. }));
    for n in 0..5_000 {
        edf.set_rate(jumpy, Rate::from_bits_per_sec(1_000_000 + n % 2)).unwrap();
    }
    let removed = class(&mut edf, ClassKind::Normal);
    queue(&mut edf, 0, removed, 3);
    edf.remove_class(removed).unwrap();
    let new = class(&mut edf, ClassKind::Normal);
    assert_eq!(new, removed);
    queue(&mut edf, 0, new, 400);
    let mut at = 1_538;
    let sent = drain(&mut edf, &mut at, 1_538 * 101);
    let count = |id| sent.iter().filter(|(class, _)| *class == id).count();
    assert!(count(old).abs_diff(count(new)) <= 1 && count(old) >= 49, "{} and {}", count(old), count(new));
}

/// Breaks: many following classes whose rates exceed the link delay a guaranteed class by at most the frame
/// in transmission.
#[test]
fn following_classes_do_not_delay_guaranteed_ones() {
    let mut edf: Edf<HintedFrame> = Edf::new(LINK_RATE, MTU, Gaps::Frames, Span::ZERO).unwrap();
    let mut add = |kind| edf.add_class(ClassSpec { kind, limit: QueueLimit::Unlimited }).unwrap();
    let guaranteed = add(ClassKind::Paced(Rate::from_mbit(600)));
    let followers: Vec<_> = (0..12).map(|_| add(ClassKind::Follows)).collect();
    for class in followers.into_iter().chain([guaranteed]) {
        for _ in 0..2 {
            edf.enqueue(Instant::ZERO, class, HintedFrame(Rate::from_mbit(70))).unwrap();
        }
    }
    for _ in 0..20_000 {
        if let Next::Packet { class, packet } = edf.dequeue(Instant::ZERO) {
            edf.enqueue(Instant::ZERO, class, packet).unwrap();
        }
    }
    let latest = edf.stats(guaranteed).unwrap().latest;
    assert!(latest.get() < 1_538, "{latest} late");
}

/// Breaks: rates that change with every packet leave a bounded number of stale entries, and no connection
/// sends more than its highest rate allows.
#[test]
fn changing_rates_leave_few_stale_entries() {
    let mut edf: Edf<HintedFrame> = Edf::new(LINK_RATE, MTU, Gaps::Timers, Span::ZERO).unwrap();
    let ids: Vec<_> = (0..8)
        .map(|_| edf.add_class(ClassSpec { kind: ClassKind::Follows, limit: QueueLimit::Unlimited }).unwrap())
        .collect();
    let mut at = 0;
    for n in 0..200_000u64 {
        let rate = if n / 8 % 2 == 0 { Rate::from_bits_per_sec(1) } else { Rate::from_mbit(10) };
        edf.enqueue(edf.clock.instant_of(at), ids[(n % 8) as usize], HintedFrame(rate)).unwrap();
        if n % 16 == 15
            && let Next::Packet { packet, .. } = edf.dequeue(edf.clock.instant_of(at))
        {
            at += wire_len(packet.len()).get();
        }
        at += 500;
        let entries = edf.calendar.len() + edf.deadlines.len() + edf.round_robin.len();
        assert!(entries < 2_000, "{entries} entries for 8 classes");
    }
    let max = at / 100 / 1_518 + 2;
    let sent: Vec<u64> = ids.iter().map(|id| edf.stats(*id).unwrap().packets).collect();
    assert!(sent.iter().all(|sent| (max / 3..=max).contains(sent)), "{sent:?} of {max}");
}
