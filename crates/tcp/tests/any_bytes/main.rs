//! Every byte string of up to 120 bytes is a possible segment: none panics, none loops, in any state, in any
//! order, at any time, whatever profile the connection has.

#![allow(clippy::panic, reason = "this is how a law fails")]

mod driver;

use driver::{Driver, From, LONGEST, Op, Start, decode};
use farpace_tcp::ConnectionState;
use farpace_tcp::config::Profile;
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeSet;

fn start() -> impl Strategy<Value = Start> {
    let iss =
        prop_oneof![any::<u32>(), (0u32..3_000).prop_map(u32::wrapping_neg), 0x7fff_f000u32..0x8000_0010];
    (any::<u8>(), any::<u8>(), any::<u8>(), any::<bool>(), iss).prop_map(
        |(profile, switches, buffers, active, iss)| Start { profile, switches, buffers, active, iss },
    )
}

fn flags() -> impl Strategy<Value = u16> {
    prop_oneof![
        6 => Just(0x10u16),
        2 => Just(0x18),
        2 => Just(0x12),
        1 => Just(0x02),
        1 => Just(0x11),
        1 => Just(0x30),
        // Few resets: they end the game.
        2 => any::<u16>().prop_map(|f| f & 0xffb),
        1 => any::<u16>(),
    ]
}

/// Options: none, something well formed, or anything.
fn options() -> impl Strategy<Value = Vec<u8>> {
    let sack = prop::collection::vec(any::<[u8; 8]>(), 1..5).prop_map(|blocks| {
        let mut bytes = vec![5, 2 + 8 * blocks.len() as u8];
        bytes.extend(blocks.concat());
        bytes
    });
    let stamps = any::<[u8; 8]>().prop_map(|t| [vec![1, 1, 8, 10], t.to_vec()].concat());
    let syn = (any::<u16>(), any::<u8>()).prop_map(|(mss, scale)| {
        let [high, low] = mss.to_be_bytes();
        vec![2, 4, high, low, 1, 3, 3, scale, 4, 2]
    });
    prop_oneof![
        3 => Just(Vec::new()),
        2 => sack,
        2 => stamps,
        1 => syn,
        1 => prop::collection::vec(any::<u8>(), 0..41),
    ]
}

/// Near: at the edge, a little off, or a window away.
fn off() -> impl Strategy<Value = i32> {
    prop_oneof![5 => Just(0), 3 => -3i32..4, 2 => -3_000i32..3_000, 1 => -70_000i32..70_000, 1 => any::<i32>()]
}

fn op() -> impl Strategy<Value = Op> {
    let from = prop_oneof![6 => Just(From::Left), 2 => Just(From::Edge), 1 => Just(From::Zero)];
    let window = prop_oneof![Just(0u16), Just(1), Just(65_535), any::<u16>()];
    let near = (flags(), from, off(), off(), window, options(), 0u8..61).prop_map(
        |(flags, from, seq, ack, window, options, len)| Op::Near {
            flags,
            from,
            seq,
            ack,
            window,
            options,
            len,
        },
    );
    prop_oneof![
        12 => near,
        2 => prop::collection::vec(any::<u8>(), 0..=LONGEST).prop_map(Op::Raw),
        3 => Just(Op::Deadline),
        2 => any::<u16>().prop_map(Op::Wait),
        3 => any::<u16>().prop_map(Op::Write),
        2 => Just(Op::Read),
        1 => Just(Op::Close),
        1 => prop::bool::weighted(0.05).prop_map(|abort| if abort { Op::Abort } else { Op::Read }),
    ]
}

/// What the sequences have reached: a test that only ever sees dead connections would be none.
fn play(start: Start, ops: &[Op], seen: &RefCell<BTreeSet<ConnectionState>>) {
    let mut driver = Driver::new(start);
    for op in ops {
        driver.act(op);
        seen.borrow_mut().insert(driver.connection.state());
    }
}

/// Breaks: "nothing that a peer sends makes it panic or loop": any segments near the windows, in any state,
/// mixed with calls and deadlines. The deadline law and the rules of polling are checked after every one.
#[test]
fn any_segments_in_any_order_are_survived() {
    let seen = RefCell::new(BTreeSet::new());
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        failure_persistence: None,
        // So many that chance reaches every kind of state.
        cases: 2_048,
        ..ProptestConfig::default()
    });
    let strategy = (start(), prop::collection::vec(op(), 1..80));
    let result = runner.run(&strategy, |(start, ops)| {
        play(start, &ops, &seen);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    assert!(seen.borrow().len() >= 8, "{:?}", seen.borrow());
}

proptest! {
    /// Breaks: the same for what the fuzzer feeds: any bytes are a list of things that happen.
    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let (start, ops) = decode(&bytes);
        play(start, &ops, &RefCell::default());
    }
}

/// How to get into each state, from the client's side.
fn ways() -> Vec<(ConnectionState, bool, Vec<Op>)> {
    let near = |flags: u16, ack: i32| Op::Near {
        flags,
        from: From::Left,
        seq: 0,
        ack,
        window: 9_000,
        options: vec![],
        len: 0,
    };
    let (syn_ack, ack, fin) = (near(0x12, 1), near(0x10, 1), near(0x11, 0));
    let open = |more: &[Op]| [vec![syn_ack.clone(), Op::Write(700)], more.to_vec()].concat();
    let all = near(0x10, 701);
    vec![
        (ConnectionState::SynSent, true, vec![]),
        (ConnectionState::SynReceived, false, vec![]),
        (ConnectionState::Established, false, vec![ack.clone()]),
        (ConnectionState::Established, true, open(&[])),
        (ConnectionState::FinWait1, true, open(&[Op::Close])),
        (ConnectionState::CloseWait, true, open(std::slice::from_ref(&fin))),
        (ConnectionState::LastAck, true, open(&[fin.clone(), Op::Close])),
        (ConnectionState::Closing, true, open(&[Op::Close, fin.clone()])),
        (ConnectionState::FinWait2, true, open(&[Op::Close, all.clone()])),
        (ConnectionState::TimeWait, true, open(&[Op::Close, all, fin])),
        (ConnectionState::Closed, true, vec![Op::Abort]),
    ]
}

/// Breaks: some single bit, or length, of a segment is one too many: every bit of a segment of 120 bytes is
/// turned, every shorter length is tried, in every state, for every profile.
#[test]
fn every_bit_and_every_length_in_every_state() {
    let options: Vec<u8> = [&[1, 1, 8, 10][..], &[0x5a; 8], &[1, 1, 5, 26], &[0x33; 24]].concat();
    for profile in 0..Profile::ALL.len() as u8 {
        for (state, active, ops) in ways() {
            let start = Start { profile, switches: 0b1010_1011, buffers: 10, active, iss: u32::MAX - 400 };
            let make = || {
                let mut driver = Driver::new(start);
                ops.iter().for_each(|op| driver.act(op));
                assert_eq!(driver.connection.state(), state, "{ops:?}");
                driver
            };
            let mut segment = vec![0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0xf0, 0x18, 0xff, 0xff, 0, 0, 0, 9];
            segment.extend(&options);
            segment.resize(LONGEST, 7);
            let mut tried = make();
            for bit in 0..LONGEST * 8 {
                let mut damaged = segment.clone();
                damaged[bit / 8] ^= 0x80 >> (bit % 8);
                tried.act(&Op::Raw(damaged));
                if tried.connection.state() != state {
                    tried = make();
                }
            }
            for len in 0..LONGEST {
                tried.act(&Op::Raw(segment[..len].to_vec()));
                tried.act(&Op::Deadline);
                if tried.connection.state() != state {
                    tried = make();
                }
            }
        }
    }
}
