//! Limits of all ranges, for every scheduler.

use super::*;

fn paced(rate: Rate) -> ClassSpec {
    ClassSpec { kind: ClassKind::Paced(rate), limit: QueueLimit::Unlimited }
}

fn frame(number: usize, len: u64) -> Numbered {
    Numbered { number, len, hint: None }
}

/// Breaks: the sum of rates may be exactly what the link carries. Full frames use 1518 of 1538 B on the wire;
/// the scheduler of the paper admits the rate of the link itself. A refused rate leaves the current one
/// unchanged, and a removed class frees its share.
#[test]
fn the_link_is_allocated_to_the_bit() {
    for (name, new) in SCHEDULERS {
        let max = if name == "psp" { 1_000_000_000 } else { 1_000_000_000u64 * 1_518 / 1_538 };
        let [max, above] = [max, max + 1].map(Rate::from_bits_per_sec);
        let mut scheduler = new(LINK_RATE, MTU).unwrap();
        assert!(is_bad_rate(&scheduler.add_class(paced(above)).unwrap_err(), above), "{name}");
        let class = scheduler.add_class(paced(max)).unwrap();
        let one = Rate::from_bits_per_sec(1);
        assert!(is_bad_rate(&scheduler.add_class(paced(one)).unwrap_err(), one), "{name}");
        assert!(is_bad_rate(&scheduler.set_rate(class, above).unwrap_err(), above), "{name}");
        assert_eq!(scheduler.set_rate(class, Rate::default()), Err(PacingError::ZeroRate), "{name}");
        assert_eq!(scheduler.stats(class).unwrap().rate, max, "{name}");
        scheduler.set_rate(class, one).unwrap();
        assert_eq!(scheduler.stats(class).unwrap().rate, one, "{name}");
        scheduler.remove_class(class).unwrap();
        let all = scheduler.add_class(paced(max)).unwrap();
        scheduler.remove_class(all).unwrap();
        assert!(scheduler.add_class(paced(max)).is_ok(), "{name}: the share of a removed class");
    }
}

/// Breaks: rates and MTUs in range are accepted, and others are refused.
#[test]
fn link_rates_and_mtus_have_ranges() {
    for (name, new) in SCHEDULERS {
        for (mtu, good) in
            [(0, false), (67, false), (68, true), (9_000, true), (65_535, true), (65_536, false)]
        {
            assert_eq!(new(LINK_RATE, ByteCount::new(mtu)).is_ok(), good, "{name}: {mtu}");
        }
        let max = LinkClock::MAX_RATE.bits_per_sec();
        for (rate, good) in [(0, false), (1, true), (max, true), (max + 1, false), (u64::MAX, false)] {
            assert_eq!(new(Rate::from_bits_per_sec(rate), MTU).is_ok(), good, "{name}: {rate} bit/s");
        }
    }
}

/// Breaks: frames of all lengths pass, with up to two VLAN tags and for small and jumbo MTUs; longer ones are
/// refused.
#[test]
fn frames_of_all_lengths() {
    for (name, new) in SCHEDULERS {
        for mtu in [68, 1_500, 9_000, 65_535] {
            let mut scheduler = new(LINK_RATE, ByteCount::new(mtu)).unwrap();
            let class = scheduler.add_class(paced(Rate::from_mbit(100))).unwrap();
            let lengths = [0, 1, 14, 60, mtu + 14, mtu + 18, mtu + 22];
            for (number, len) in lengths.into_iter().enumerate() {
                let done = scheduler.enqueue(Instant::ZERO, class, frame(number, len));
                assert_eq!(done, Ok(()), "{name}: {len} of {mtu}");
            }
            for len in [mtu + 23, u64::from(u32::MAX) + 60, u64::MAX] {
                let refused = scheduler.enqueue(Instant::ZERO, class, frame(9, len)).unwrap_err();
                assert_eq!(refused.why, EnqueueRefusal::TooLong, "{name}: {len} of {mtu}");
            }
            let (mut now, mut out, mut steps) = (Instant::ZERO, Vec::new(), 0);
            while out.len() < lengths.len() {
                let full = mtu + 14 + 24;
                let bytes = match scheduler.dequeue(now) {
                    Next::Packet { packet, .. } => {
                        out.push(packet.len);
                        wire_len(packet.len())
                    }
                    Next::Gap(gap) => {
                        assert!((84..=full).contains(&gap.get()), "{name}: a gap of {gap} of {full}");
                        gap
                    }
                    Next::Wait(until) => {
                        assert!(until > now, "{name}");
                        now = until;
                        ByteCount::ZERO
                    }
                    Next::Empty => panic!("{name}: {out:?}"),
                };
                now += LINK_RATE.time_for(bytes);
                steps += 1;
                assert!(steps < 1_000, "{name}: no progress");
            }
            assert_eq!(out, lengths, "{name}");
        }
    }
}

/// Breaks: rates hold over the range of the paper, 8 kbit/s to 930 Mbit/s, as the mean from the start of a
/// frame to the start of a much later one. Token buckets and fq count frames without check sequences.
#[test]
fn rates_hold_over_the_whole_range() {
    let unpaced = ["fifo", "small bucket"];
    for (name, new) in SCHEDULERS.into_iter().filter(|(name, _)| !unpaced.contains(name)) {
        for (rate, frames) in
            [(8_000, 3), (64_000, 10), (10_000_000, 300), (500_000_000, 9_000), (930_000_000, 9_000)]
        {
            let mut scheduler = new(LINK_RATE, MTU).unwrap();
            let class = scheduler.add_class(paced(Rate::from_bits_per_sec(rate))).unwrap();
            let starts = starts(&mut *scheduler, class, frames + 12);
            // The initial burst is not part of the rate.
            let first = 11.min(starts.len() - 1);
            let bytes = (starts.len() - 1 - first) as u64 * if paces_layer_2(name) { 1_518 } else { 1_514 };
            let measured = bytes as f64 * 1e9 / (starts[starts.len() - 1] - starts[first]) as f64;
            let off = measured / rate as f64 - 1.0;
            let max = match name {
                // Intervals are truncated to whole bytes.
                "psp" => 5e-4,
                // Frames leave in bursts, and the first and last frame may have different positions in
                // theirs.
                "token bucket" | "fq" => 5e-3 + 2.0 / frames as f64,
                // A wait ends at a whole nanosecond.
                "edf, timers" => 1e-3,
                _ => 1e-6 + 1e-4 / frames as f64,
            };
            assert!(off.abs() <= max, "{name}: {measured} of {rate} bit/s, {off:e}");
        }
    }
}

fn paces_layer_2(name: &str) -> bool {
    name == "psp" || name.starts_with("edf")
}

/// The bytes on the wire at which `frames` full frames of an always backlogged class begin.
fn starts(scheduler: &mut dyn Scheduler<Numbered>, class: ClassId, frames: usize) -> Vec<u64> {
    let (mut clock, mut starts) = (LinkClock::new(LINK_RATE), Vec::new());
    for number in 0..2 {
        scheduler.enqueue(Instant::ZERO, class, frame(number, 1_514)).unwrap();
    }
    while starts.len() < frames {
        let now = clock.instant_of(clock.bytes());
        match scheduler.dequeue(now) {
            Next::Packet { packet, .. } => {
                starts.push(clock.bytes());
                scheduler.enqueue(now, class, packet).unwrap();
                clock.advance(wire_len(packet.len()));
            }
            Next::Gap(gap) => clock.advance(gap),
            Next::Wait(until) => clock.catch_up(until),
            Next::Empty => break,
        }
    }
    starts
}
