//! Attacks on the receiving side.

use super::harness::*;
use farpace_tcp::ConnectionState;
use farpace_tcp::config::{Profile, Settings};
use farpace_units::{ByteCount, Packets, RandomStream, Seq, Span};
use farpace_wire::tcp::{TcpFlags, TcpOptions, Timestamps};

/// Which place comes at step n.
type Order = fn(u64, &mut RandomStream) -> u64;
type Plan = fn(u64) -> u64;

/// What tiny out-of-order segments may cost: the receive buffer once more for the books, and some.
fn assert_memory(what: &str, before: u64, buffer: u64) {
    let grown = heap().saturating_sub(before);
    println!("{what}: {grown} B on the heap for a buffer of {buffer} B");
    assert!(grown <= 2 * buffer + (1 << 20), "{what}: {grown} B on the heap for a buffer of {buffer} B");
}

/// Breaks: SegmentSmack (CVE-2018-5390): a peer sends single bytes with holes between, in the order that
/// hurts most, and each one costs more than the one before, or memory grows beyond the buffer that was
/// granted.
#[test]
fn tiny_segments_out_of_order_are_bounded() {
    let _alone = alone();
    const BUFFER: u64 = 4_000_000;
    const STEPS: u64 = 200_000;
    let settings = Settings { receive_buffer: Some(ByteCount::new(BUFFER)), ..settings(Profile::Modern) };
    let orders: [(&str, Order); 4] = [
        ("upwards", |n, _| n),
        ("downwards", |n, _| STEPS - n),
        ("anyhow", |_, rng| rng.below(STEPS)),
        ("from both ends", |n, _| if n % 2 == 0 { n } else { STEPS - n }),
    ];
    for (order, place) in orders {
        let mut v = Victim::connected(&config(&settings), offer(1460));
        let (start, before, mut rng) = (v.acked, heap(), RandomStream::new(1, order));
        let what = format!("single bytes {order}");
        assert_flat(&what, STEPS, |n| {
            // Never the first byte: nothing can be delivered.
            let at = start + 2 + 2 * place(n, &mut rng) as u32;
            v.give(v.data(at, vec![1]));
        });
        assert_memory(&what, before, BUFFER);
        assert!(v.is_open());
        // What fills the holes still works, and gives the memory back.
        let before_fill = heap();
        let mut at = start;
        while at.before(start + 500_000) {
            v.give(v.data(at, vec![1; 1_000]));
            v.c.read(drop);
            at += 1_000;
        }
        assert!(heap() < before_fill, "holes that are filled give their memory back");
        assert!(v.c.counters().bytes_received.get() >= 500_000);
    }
}

/// Breaks: the same with pieces that touch: out-of-order ranges that grow at one end, at the other, or are
/// joined again and again.
#[test]
fn out_of_order_ranges_that_grow_and_join_are_bounded() {
    let _alone = alone();
    const BUFFER: u64 = 4_000_000;
    const STEPS: u64 = 100_000;
    let settings = Settings { receive_buffer: Some(ByteCount::new(BUFFER)), ..settings(Profile::Modern) };
    let plans: [(&str, Plan); 3] = [
        ("growing to the left", |n| STEPS - n),
        // Blocks of 16 whose last byte joins two out-of-order ranges.
        ("every second, then those between", |n| if n < STEPS / 2 { 2 * n } else { 2 * (n - STEPS / 2) + 1 }),
        ("in blocks", |n| (n % 300) * 300 + n / 300),
    ];
    for (plan, place) in plans {
        let mut v = Victim::connected(&config(&settings), offer(1460));
        let (start, before) = (v.acked, heap());
        assert_flat(plan, STEPS, |n| {
            v.give(v.data(start + 5 + place(n) as u32, vec![2]));
        });
        assert_memory(plan, before, BUFFER);
    }
}

/// Breaks: a segment that covers many out-of-order ranges costs more than its bytes, or doubles what is kept.
#[test]
fn segments_across_many_out_of_order_ranges_are_bounded() {
    let _alone = alone();
    const BUFFER: u64 = 1_000_000;
    let settings = Settings { receive_buffer: Some(ByteCount::new(BUFFER)), ..settings(Profile::Modern) };
    let mut v = Victim::connected(&config(&settings), offer(1460));
    let (start, before) = (v.acked, heap());
    for n in 0..4_000 {
        v.give(v.data(start + 2 + 2 * n, vec![3]));
    }
    let mut rng = RandomStream::new(3, "covers");
    assert_flat("segments of 1400 B over all of them", 20_000, |_| {
        let at = start + 1 + rng.below(8_000) as u32;
        v.give(v.data(at, vec![3; 1_400]));
    });
    assert_memory("segments over islands", before, BUFFER);
}

/// Breaks: blind data injection (RFC 5961 §5): who knows neither sequence nor acknowledgment number must not
/// get data in with a guess in the window; an acknowledgment that fits no window of ours gives him away.
#[test]
fn blind_data_needs_an_acknowledgment_that_fits() {
    let _alone = alone();
    let mut v = Victim::connected(&config(&settings(Profile::Modern)), offer(1460));
    let mut rng = RandomStream::new(4, "blind");
    let window = 65_535u64 << 14;
    let mut taken = 0;
    const GUESSES: u64 = 20_000;
    for _ in 0..GUESSES {
        let ack = Seq::new(rng.next_u64() as u32);
        let before = v.c.counters().out_of_order + v.c.counters().duplicates;
        let mut segment = v.data(v.acked + 1 + rng.below(3_000_000) as u32, vec![6; 10]);
        segment.header.ack = ack;
        v.give(segment);
        taken += u64::from(v.c.counters().out_of_order + v.c.counters().duplicates > before);
    }
    // SND.UNA - MAX.SND.WND to SND.NXT of 2^32 numbers: a quarter for the largest of all windows.
    let share = taken as f64 / GUESSES as f64;
    let most = window as f64 / (1u64 << 32) as f64 * 1.1;
    println!("{share} of blind data with random acknowledgments was taken, at most {most} may be");
    assert!(v.is_open());
    assert!(share <= most, "{share} of all guesses were taken, {most} at most should be");
}

/// Breaks: PAWS turned against its owner (RFC 7323 §5.3): an injected segment with a timestamp of the far
/// future makes all honest ones look old. It must hit the left edge exactly to be believed.
#[test]
fn injected_timestamps_do_not_poison() {
    let _alone = alone();
    let far = CLOCK.wrapping_add((1 << 31) - 1);
    let poison = |v: &mut Victim, seq: Seq, ack: Seq| {
        let mut segment = v.data(seq, vec![]);
        segment.header.ack = ack;
        segment.header.options.timestamps = Some(Timestamps { value: far, echo: 0 });
        v.give(segment);
    };
    for profile in today() {
        let mut v = Victim::connected(&config(&settings(profile)), offer(1460));
        let mut rng = RandomStream::new(5, "poison");
        for _ in 0..10_000 {
            // Anywhere in the window but at its left edge, and anywhere out of it.
            let at = match rng.chance(0.7) {
                true => v.acked + 1 + rng.below(3_000_000) as u32,
                false => v.acked - 1 - rng.below(1 << 31) as u32,
            };
            let ack = v.una;
            poison(&mut v, at, ack);
        }
        // The left edge, but with an acknowledgment of what was never sent.
        let (at, ack) = (v.acked, v.nxt + 1);
        poison(&mut v, at, ack);
        let before = v.c.counters().bytes_received;
        v.give(v.data(v.acked, vec![9; 100]));
        let got = v.c.counters().bytes_received - before;
        assert!(got == ByteCount::new(100), "{profile:?}: honest data is taken for old");
    }
}

/// Breaks: the stream, under urgent pointers that point anywhere (RFC 9293 §3.8.5: data is data).
#[test]
fn urgent_garbage_changes_nothing() {
    let _alone = alone();
    let mut v = Victim::connected(&config(&settings(Profile::Modern)), offer(1460));
    let (mut rng, before, mut got) = (RandomStream::new(6, "urgent"), heap(), 0u64);
    for n in 0..20_000u64 {
        let mut segment = v.data(v.acked, vec![n as u8; 10]);
        segment.header.flags = TcpFlags::ACK | TcpFlags::URG;
        segment.header.urgent = rng.next_u64() as u16;
        v.give(segment);
        v.wait(Span::from_millis(50));
        v.c.read(|bytes| {
            assert!(bytes.iter().all(|b| *b == n as u8));
            got += bytes.len() as u64;
        });
    }
    assert_eq!(got, 200_000);
    assert!(heap() < before + (1 << 20));
}

/// Breaks: a peer that overruns the window, or sends after its FIN, gets more than its buffer.
#[test]
fn nothing_beyond_the_window_is_kept() {
    let _alone = alone();
    const BUFFER: u64 = 100_000;
    let settings = Settings { receive_buffer: Some(ByteCount::new(BUFFER)), ..settings(Profile::Modern) };
    let mut v = Victim::connected(&config(&settings), offer(1460));
    let (start, before) = (v.acked, heap());
    // The application never reads.
    for n in 0..5_000u32 {
        v.give(v.data(start + n * 1_000, vec![1; 1_000]));
    }
    assert_memory("data beyond the window", before, BUFFER);
    assert!(v.c.counters().bytes_received.get() <= BUFFER.next_multiple_of(1 << 14));
    let mut n = 0;
    v.c.read(|bytes| n += bytes.len() as u64);
    assert_eq!(ByteCount::new(n), v.c.counters().bytes_received);
    v.drain();
    let fin = v.segment(TcpFlags::FIN | TcpFlags::ACK, v.acked, v.una, 1);
    v.give(fin);
    assert_eq!(v.c.state(), ConnectionState::CloseWait);
    let before = heap();
    for n in 0..5_000u32 {
        v.give(v.data(v.acked + n % 50_000, vec![1; 1_000]));
    }
    assert!(heap() < before + 10_000, "data after FIN is not kept");
}

/// Breaks: MSS and window options that divide by nothing, or make segments without bytes or longer than
/// announced.
#[test]
fn absurd_offers_are_survived() {
    let _alone = alone();
    for profile in Profile::ALL {
        for mss in [0, 1, 11, 12, 48, 87, 88, 89, 65_535] {
            for scale in [None, Some(0), Some(14), Some(15), Some(255)] {
                let options = TcpOptions { mss: Some(mss), window_scale: scale, ..offer(mss) };
                let settings = Settings { initial_window: Some(Packets::new(1_000)), ..settings(profile) };
                let mut v = Victim::connected(&config(&settings), options);
                v.write(5_000);
                // An announcement of zero tells nothing, and the least that counts is 48.
                let most = if mss == 0 { 536 } else { u32::from(mss.max(48)) };
                assert!((36..=most).contains(&v.c.inspect().mss), "{profile:?} {mss}: {}", v.c.inspect().mss);
                assert!(v.sent <= 2 + 5_000_u64.div_ceil(36), "{profile:?} {mss}: {}", v.sent);
                let ack = v.ack(v.nxt, 65_535);
                v.give(ack);
                assert!(v.is_open());
            }
        }
    }
}
