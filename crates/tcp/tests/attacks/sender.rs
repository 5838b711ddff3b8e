//! Attacks on the sending side.

use super::harness::*;
use farpace_tcp::ConnectionState;
use farpace_tcp::config::{BufferSize, Congestion, Profile, Recovery, Settings};
use farpace_units::{ByteCount, Packets, RandomStream, Seq, Span};

/// In debug builds the queue is counted anew with every call, which costs more than all else.
const SEGMENTS: u32 = if cfg!(debug_assertions) { 3_000 } else { 80_000 };

/// A victim with `segments` of the smallest size outstanding.
fn in_flight(profile: Profile, mss: u16, segments: u32) -> Victim {
    let settings = Settings {
        // A pace would take time to send so much; what is attacked here is recovery.
        congestion: (profile == Profile::Farpace).then_some(Congestion::Cubic),
        initial_window: Some(Packets::new(segments)),
        // Net/2 had no windows as large as this.
        cwnd_clamp: Some(Packets::MAX),
        window_scale: Some(true),
        send_buffer: Some(ByteCount::new(u64::from(segments) * 1_460)),
        ..settings(profile)
    };
    let mut config = config(&settings);
    // What the application writes later has room as well.
    config.send_buffer = BufferSize::fixed(config.send_buffer.max + ByteCount::new(16_000_000));
    let mut v = Victim::connected(&config, offer(mss));
    let mss = u64::from(v.c.inspect().mss);
    v.write(u64::from(segments) * mss);
    assert_eq!(v.c.inspect().in_flight, Packets::new(segments));
    v
}

/// Breaks: SACK Panic (CVE-2019-11477, 11478): a tiny MSS and blocks that tear the queue into single
/// segments; each ACK costs more than the one before, or counters of 16 bits overflow.
#[test]
fn a_shredded_queue_is_bounded() {
    let _alone = alone();
    for profile in today().filter(|p| *p != Profile::NewReno) {
        for mss in [48, 88] {
            let mut v = in_flight(profile, mss, SEGMENTS);
            let (una, size) = (v.una, v.c.inspect().mss);
            let before = heap();
            let block = |n: u64| {
                let start = una + (2 * n as u32 + 1) % SEGMENTS * size;
                (start, start + size)
            };
            let what = format!("{profile:?}: every second segment, MSS {mss}");
            assert_flat(&what, u64::from(SEGMENTS) / 6, |n| {
                v.give(v.ack_with(una, 65_535, &[block(3 * n), block(3 * n + 1), block(3 * n + 2)]));
            });
            assert!(
                heap() < before + 64 * u64::from(SEGMENTS) + 100_000,
                "{what}: {} B more",
                heap() - before
            );
            assert!(v.is_open());
        }
    }
}

/// Breaks: the same from the other end, and with the same blocks again and again.
#[test]
fn blocks_downwards_and_again_are_bounded() {
    let _alone = alone();
    for profile in today().filter(|p| *p != Profile::NewReno) {
        let mut v = in_flight(profile, 88, SEGMENTS);
        let (una, size) = (v.una, v.c.inspect().mss);
        let what = format!("{profile:?}: downwards");
        assert_flat(&what, u64::from(SEGMENTS) / 2, |n| {
            let start = una + (SEGMENTS - 1 - 2 * n as u32) * size;
            v.give(v.ack_with(una, 65_535, &[(start, start + size)]));
        });
        let what = format!("{profile:?}: the same blocks again");
        let mut rng = RandomStream::new(7, "again");
        assert_flat(&what, u64::from(SEGMENTS), |_| {
            let mut block = || {
                let start = una + rng.below(u64::from(SEGMENTS)) as u32 * size;
                (start, start + size)
            };
            let blocks = [block(), block(), block()];
            v.give(v.ack_with(una, 65_535, &blocks));
        });
        assert!(v.is_open());
    }
}

/// Breaks: blocks over all that is outstanding, which each ACK repeats: each costs as much as all segments
/// that it covers, so that a few hundred ACKs a second take a processor. Debug builds count the queue anew,
/// and cannot tell.
#[test]
fn wide_blocks_are_bounded() {
    let _alone = alone();
    for profile in today().filter(|p| *p != Profile::NewReno) {
        let mut v = in_flight(profile, 88, SEGMENTS);
        let (una, size) = (v.una, v.c.inspect().mss);
        assert_flat(&format!("{profile:?}: wide blocks"), u64::from(SEGMENTS) / 2, |n| {
            let end = una + (n as u32 + 5) * size;
            let blocks = [1, 2, 3].map(|from| (una + from * size, end));
            v.give(v.ack_with(una, 65_535, &blocks));
        });
        assert!(v.is_open());
    }
}

/// Breaks: garbage in SACK blocks: turned round, of length nothing, of half the circle, across what was never
/// sent.
#[test]
fn garbage_blocks_are_survived() {
    let _alone = alone();
    for profile in Profile::ALL {
        let mut v = in_flight(profile, 1460, 200);
        // It may send smaller ones, later.
        let size = u64::from(v.c.inspect().mss);
        let mut rng = RandomStream::new(8, "blocks");
        let before = heap();
        for _ in 0..5_000 {
            let mut edge = || match rng.below(4) {
                0 => Seq::new(rng.next_u64() as u32),
                1 => v.nxt + rng.below(1_000) as u32,
                2 => v.una - rng.below(100_000) as u32,
                _ => v.una + rng.below(300_000) as u32,
            };
            let blocks = [(edge(), edge()), (edge(), edge()), (edge(), edge())];
            v.give(v.ack_with(v.una, 65_535, &blocks));
            let i = v.c.inspect();
            assert!(i.in_flight.get() <= 600 && !i.cwnd.is_zero(), "{profile:?}: {i:?}");
            v.wait(Span::from_millis(1));
        }
        assert!(heap() < before + 500_000, "{profile:?}: {} B more", heap() - before);
        // An honest end.
        let ack = v.ack(v.nxt, 65_535);
        v.give(ack);
        assert_eq!(v.c.inspect().acknowledged.get(), 200 * size);
    }
}

/// Breaks: sockstress: a peer that keeps its window closed for ever costs more than its buffer and a probe
/// now and then.
#[test]
fn a_window_closed_for_ever_costs_little() {
    let _alone = alone();
    for profile in Profile::ALL {
        let mut v = Victim::connected(&config(&settings(profile)), offer(1460));
        let ack = v.ack(v.una, 0);
        v.give(ack);
        let before = heap();
        v.write(100_000);
        // Whatever went out before the window closed is acknowledged.
        let ack = v.ack(v.nxt, 0);
        v.una = v.nxt;
        v.give(ack);
        let sent = v.sent;
        const HOURS: u64 = 24;
        for _ in 0..HOURS * 60 {
            let probed = v.sent;
            v.wait(Span::from_secs(60));
            if v.sent > probed {
                v.clock = v.clock.wrapping_add(10_000);
                let ack = v.ack(v.una, 0);
                v.give(ack);
            }
        }
        let probes = v.sent - sent;
        // One every two minutes, when it has backed off.
        println!("{profile:?}: {probes} probes in {HOURS} h");
        assert!(probes <= HOURS * 30 + 40, "{profile:?}: {probes} probes in {HOURS} h");
        assert!(!v.is_open() || probes >= HOURS * 20, "{profile:?}: {probes} probes in {HOURS} h");
        assert!(heap() < before + 200_000, "{profile:?}");
    }
}

/// Breaks: sockstress at its cheapest: a peer that acknowledges one byte before every deadline keeps the
/// whole buffer of a program that has left, for as many minutes as there are bytes. It has 100 s, and 1 s for
/// each KiB; a peer that keeps pace has longer than 100 s.
#[test]
fn acknowledgments_that_trickle_on_an_orphan() {
    let _alone = alone();
    for profile in Profile::ALL {
        let left = |bytes: u64| {
            let mut v = Victim::connected(&config(&settings(profile)), offer(1460));
            v.write(bytes);
            v.c.stop_reading();
            v.c.close();
            v.drain();
            v
        };
        let mut v = left(102_400);
        let begin = v.now;
        while v.c.state() != ConnectionState::Closed {
            v.wait(Span::from_secs(50));
            let ack = v.una + 1;
            v.una = ack;
            v.give(v.ack(ack, 65_535));
        }
        let took = v.now.since(begin);
        assert_eq!(took.as_secs_f64(), 200.0, "{profile:?}");
        // 2 KiB/s.
        let mut v = left(409_600);
        for n in 1..=200u32 {
            v.wait(Span::from_secs(1));
            assert!(v.c.is_orphan(), "{profile:?} after {n} s");
            let ack = v.una + 2_048.min(v.nxt.bytes_since(v.una));
            v.una = ack;
            v.give(v.ack(ack, 65_535));
        }
    }
}

/// Breaks: windows that shrink to nothing and come back: the sender overruns them, panics, or never goes on.
#[test]
fn windows_that_shrink_and_grow_are_respected() {
    let _alone = alone();
    for profile in Profile::ALL {
        let settings = Settings { window_scale: Some(false), ..settings(profile) };
        let mut v = Victim::connected(&config(&settings), offer(1460));
        let mut rng = RandomStream::new(9, "windows");
        let before = heap();
        v.write(2_000_000);
        let mut edge = v.una + 65_535;
        for n in 0..20_000 {
            let out = u64::from(v.nxt.bytes_since(v.una));
            let ack = v.una + rng.below(out + 1) as u32;
            let window = [0, 0, 1, 100, 1_448, 65_535][rng.below(6) as usize];
            let segment = v.ack(ack, window);
            v.una = ack;
            edge = edge.later(ack + u32::from(window));
            for o in v.give(segment) {
                let h = &o.segment.header;
                let end = h.seq + o.segment.payload.len() as u32;
                let probe = o.cause == farpace_events::Cause::WindowProbe;
                assert!(probe || !end.after(edge), "{profile:?}, step {n}: {end} beyond {edge}");
            }
            v.wait(Span::from_millis(rng.below(300)));
            assert!(v.is_open(), "{profile:?}, step {n}");
        }
        assert!(heap() < before + 3_000_000);
        assert!(v.c.inspect().acknowledged.get() > 100_000, "{profile:?}: {:?}", v.c.inspect());
    }
}

/// Breaks: ACKs for what was never sent open the window (RFC 9293 §3.10.7.4), or are answered one by one.
#[test]
fn acknowledgments_of_the_future_do_nothing() {
    let _alone = alone();
    for profile in Profile::ALL {
        let mut v = in_flight(profile, 1460, 10);
        v.write(1_000_000);
        let (before, sent) = (v.c.inspect(), v.sent);
        for n in 0..10_000u32 {
            v.now += Span::from_micros(10);
            let ack = v.ack(v.nxt + 1 + n * 17, 65_535);
            v.give(ack);
        }
        let after = v.c.inspect();
        assert_eq!((after.cwnd, after.acknowledged), (before.cwnd, before.acknowledged), "{profile:?}");
        // They took a tenth of a second.
        assert!(v.sent - sent <= 10, "{profile:?}: {} answers", v.sent - sent);
    }
}

/// Breaks: ACK division (Savage 1999): 1448 ACKs of one byte each open the window like 1448 segments. The
/// historical profiles count ACKs, as their kernels did.
#[test]
fn split_acknowledgments_open_no_more_than_their_bytes() {
    let _alone = alone();
    for profile in today() {
        let mut v = in_flight(profile, 1460, 10);
        v.write(4_000_000);
        let (size, before) = (v.c.inspect().mss, v.c.inspect().cwnd.get());
        // Two segments, byte by byte.
        for n in 1..=2 * size {
            v.now += Span::from_micros(20);
            let ack = v.ack(v.una + n, 65_535);
            v.give(ack);
        }
        let grown = v.c.inspect().cwnd.get() - before;
        println!("{profile:?}: two segments in {} ACKs open the window by {grown}", 2 * size);
        // RFC 3465: at most twice what was acknowledged.
        assert!(grown <= 4, "{profile:?}: the window grew by {grown} segments for two");
    }
}

/// Breaks: optimistic ACKs: a receiver that acknowledges what it has not got makes the window grow faster
/// than doubling for each round trip, or the sender believe in round trips of no time.
#[test]
fn optimistic_acknowledgments_earn_no_more_than_honest_ones() {
    let _alone = alone();
    for profile in Profile::ALL {
        let mut v = in_flight(profile, 1460, 10);
        v.write(12_000_000);
        let first = v.c.inspect().cwnd.get();
        let mut total = 0;
        for _ in 0..200 {
            v.now += Span::from_micros(1);
            let ack = v.ack(v.nxt, 65_535);
            total += u64::from(v.nxt.bytes_since(v.una));
            v.una = v.nxt;
            v.give(ack);
            if v.c.inspect().acknowledged.get() > 10_000_000 {
                break;
            }
        }
        let i = v.c.inspect();
        let earned = u64::from(first) + 2 * (total / u64::from(i.mss) + 1);
        assert!(u64::from(i.cwnd.get()) <= earned, "{profile:?}: {} of {earned}", i.cwnd);
        assert!(i.rto >= Span::from_millis(10), "{profile:?}: {}", i.rto);
    }
}

/// Breaks: D-SACK storms: each ACK reports a duplicate, and the sender undoes again and again, takes the path
/// for one that reorders without bound, or never finds a loss any more.
#[test]
fn reports_of_duplicates_are_bounded() {
    let _alone = alone();
    for profile in Profile::ALL {
        let mut v = in_flight(profile, 1460, 100);
        v.write(3_000_000);
        let most = v.c.inspect().cwnd.get();
        let before = heap();
        let mut rng = RandomStream::new(10, "duplicates");
        for n in 0..5_000u32 {
            let size = v.c.inspect().mss;
            let old = v.una - size * (1 + rng.below(20) as u32);
            let hole = v.una + size * (1 + rng.below(50) as u32);
            let ack = if n % 10 == 9 && v.una != v.nxt { v.una + size } else { v.una };
            let segment = v.ack_with(ack, 65_535, &[(old, old + size), (hole, hole + size)]);
            v.una = ack;
            v.give(segment);
            v.wait(Span::from_micros(500));
        }
        let i = v.c.inspect();
        assert!(v.is_open() && heap() < before + 500_000, "{profile:?}");
        assert!(i.cwnd.get() <= 2 * most + 2 * 500, "{profile:?}: {i:?}");
        // A loss is still found: ten segments after a hole arrive, and the first is sent again in a second.
        let (una, size) = (v.una, i.mss);
        for n in 1..=10 {
            v.wait(Span::from_millis(5));
            v.give(v.ack_with(una, 65_535, &[(una + size, una + size * (1 + n))]));
        }
        let sent = v.sent;
        v.wait(Span::from_secs(3));
        let ever = v.c.counters().timeouts + v.sent - sent;
        assert!(ever > 0, "{profile:?}: nothing was sent again: {:?}", v.c.inspect());
    }
}

/// Breaks: what "of today" means here: the recovery that the tests above hold to their bounds.
#[test]
fn the_profiles_of_today_are_among_all() {
    assert!(today().any(|p| p == Profile::Modern) && today().count() >= 3);
    for profile in today() {
        assert!(!matches!(config(&settings(profile)).recovery, Recovery::Linux26(_)), "{profile:?}");
    }
}
