//! Attacks by asking for acknowledgments, and by answering who asks.

use super::harness::*;
use bytes::Bytes;
use farpace_tcp::config::{AckControlMode, DelayedAck, Profile, RequestRule, Rto, Settings};
use farpace_tcp::{Connection, OutgoingSegment, Ports, Segment, Transmit};
use farpace_units::{ByteCount, Instant, Packets, RandomStream, Seq, Span};
use farpace_wire::tcp::{self, AckDelay, CdlCapability, Tarr, TcpFlags, TcpOptions};

const BUFFER: u64 = 100_000;
const FULL: u32 = 1_000;
/// In a second.
const SEGMENTS: u32 = 5_000;
const RTT: Span = Span::from_millis(100);

/// A peer that can all there is: which of it counts is the victim's choice.
fn capable() -> TcpOptions {
    let ack_control = tcp::AckControl {
        cdl_allow: true,
        capability: Some(CdlCapability::from_bits(0xf)),
        tarr: Some(Tarr::Capable),
        ..tcp::AckControl::default()
    };
    TcpOptions { ack_control, ..offer(FULL as u16 + 12) }
}

fn settings_of(control: AckControlMode) -> Settings {
    Settings {
        ack_control: Some(control),
        ack_requests: (control != AckControlMode::Off).then(|| vec![RequestRule::Everything]),
        receive_buffer: Some(ByteCount::new(BUFFER)),
        ..settings(Profile::Modern)
    }
}

fn victim(settings: &Settings) -> Victim {
    Victim::connected_after(RTT, &config(settings), capable())
}

const BIT: TcpFlags = TcpFlags::RESERVED_4;

/// The segment asks in the way to which `control` answers.
fn ask(control: AckControlMode, segment: &mut Segment) {
    let h = &mut segment.header;
    match control {
        AckControlMode::Classic | AckControlMode::ClassicLiteral => h.flags = BIT,
        AckControlMode::Flag => h.flags = h.flags | BIT,
        AckControlMode::Tarr => h.options.ack_control.tarr = Some(Tarr::Rate(0)),
        AckControlMode::Off | AckControlMode::Safe | AckControlMode::Unilateral => {
            h.options.ack_control.request = true;
        }
    }
}

/// Where a segment begins that comes as number n, with so many bytes acknowledged behind it, and its length.
type Kind = fn(u32, Seq) -> (Seq, u32);

/// ACKs that go out within a second under a flood of a segment every 200 us.
fn acks_under(settings: &Settings, kind: Kind, asks: bool) -> u64 {
    let control = settings.ack_control.unwrap_or_default();
    let mut v = victim(settings);
    // The receiver knows its sender's segments, and there is something old.
    for _ in 0..10 {
        v.give(v.data(v.expected(), vec![1; FULL as usize]));
    }
    v.wait(Span::from_millis(500));
    v.c.read(|_| ());
    v.drain();
    let before = v.sent;
    for n in 0..SEGMENTS {
        v.wait(Span::from_micros(200));
        let (seq, len) = kind(n, v.expected());
        let mut segment = v.data(seq, vec![1; len as usize]);
        if asks {
            ask(control, &mut segment);
        }
        let back = v.give(segment);
        assert!(back.len() <= 1, "{control:?}: {} segments for one", back.len());
        // The reader keeps up, so that a segment in order is always taken.
        v.c.read(|_| ());
        v.drain();
    }
    let asked = if asks && !matches!(control, AckControlMode::Off | AckControlMode::Unilateral) {
        u64::from(SEGMENTS)
    } else {
        0
    };
    assert_eq!(v.c.counters().requests, asked, "{control:?}: the flood asks");
    assert!(v.is_open());
    v.sent - before
}

/// Breaks: the receiver's bound on ACKs that it can be made to send: what it sends without being asked, and
/// twice its window in a round trip; for old bytes, duplicates and segments out of order not one more than
/// for those that do not ask.
#[test]
fn a_flood_of_requests_earns_a_bounded_number_of_answers() {
    let _alone = alone();
    let in_order: [(&str, Kind); 2] = [("full", |_, next| (next, FULL)), ("a byte", |_, next| (next, 1))];
    let answered_anyway: [(&str, Kind); 4] = [
        ("old", |n, next| (next - 5_000 + n % 3_000, 1_000)),
        ("the last again", |_, next| (next - FULL, FULL)),
        ("out of order", |n, next| (next + 1 + n % 300 * 100, 50)),
        ("the same out of order", |_, next| (next + 1_000, FULL)),
    ];
    for control in AckControlMode::ALL {
        for delayed_ack in DelayedAck::ALL {
            let settings = Settings { delayed_ack: Some(delayed_ack), ..settings_of(control) };
            for (what, kind) in in_order {
                let (plain, asked) = (acks_under(&settings, kind, false), acks_under(&settings, kind, true));
                // Ten round trips in a second, and what was saved up before.
                let bound = 11 * 2 * BUFFER / u64::from(FULL);
                assert!(
                    asked <= plain + bound,
                    "{control:?} {delayed_ack:?}, {what}: {asked} ACKs, {plain} without"
                );
                let answers = !matches!(control, AckControlMode::Off | AckControlMode::Unilateral);
                let held = delayed_ack != DelayedAck::None && plain < bound / 2;
                assert!(
                    !(answers && held) || asked > plain,
                    "{control:?} {delayed_ack:?}, {what}: no answer"
                );
            }
            for (what, kind) in answered_anyway {
                let (plain, asked) = (acks_under(&settings, kind, false), acks_under(&settings, kind, true));
                assert!(
                    asked <= plain.max(1),
                    "{control:?} {delayed_ack:?}, {what}: {asked} ACKs, {plain} without"
                );
            }
        }
    }
}

/// Breaks: asking a mirror: a connection that is answered with its own segments asks and answers itself for
/// ever.
#[test]
fn a_mirror_that_asks_gets_no_storm() {
    let _alone = alone();
    for control in AckControlMode::ALL {
        let mut now = Instant::ZERO;
        let config = config(&settings_of(control));
        let mut c = Connection::connect(now, &config, Ports { local: 7, remote: 7 }, ISS);
        c.write(&mut Bytes::from(vec![1; 50_000]));
        let (mut mirrored, mut out): (u64, Vec<OutgoingSegment>) = (0, Vec::new());
        let end = now + Span::from_secs(60);
        while now < end {
            while let Transmit::Sent(_) = c.poll_transmit(now, &mut out, 64) {}
            mirrored += out.len() as u64;
            now += Span::from_millis(1);
            for o in std::mem::take(&mut out) {
                c.on_segment(now, o.segment);
            }
            if c.deadline().is_some_and(|(at, _)| at <= now) {
                c.on_deadline(now);
            }
            while c.poll_event().is_some() {}
        }
        assert!(mirrored <= 1_500, "{control:?}: {mirrored} segments in a minute, then {:?}", c.state());
    }
}

/// Whatever an answer can say, in all forms at once.
fn forge(segment: &mut Segment, rng: &mut RandomStream) {
    let delays = [0, 1, 100, 2_499, 2_500, 12_499, 60_000, 0xfffe, 0xffff];
    let delay = delays.get(rng.below(delays.len() as u64) as usize).copied().unwrap_or_default();
    let h = &mut segment.header;
    h.options.ack_control.confirmation = rng.chance(0.8).then(|| AckDelay::from_wire(delay));
    if rng.chance(0.5) {
        h.flags = h.flags | BIT;
    }
    if rng.chance(0.2)
        && let Some(t) = &mut h.options.timestamps
    {
        t.echo = rng.next_u64() as u32;
    }
}

/// Breaks: forged confirmations: for data never sent, for segments that did not ask, again, with delays
/// longer than the round trip; they make a round trip of nothing, push the timeout below its least value, or
/// count twice.
#[test]
fn forged_confirmations_earn_nothing() {
    let _alone = alone();
    const MIN_RTO: Span = Span::from_millis(200);
    for control in AckControlMode::ALL {
        for rto in [Rto::Rfc6298, Rto::Net2, Rto::Cdl, Rto::Linux26] {
            let settings = Settings { rto: Some(rto), min_rto: Some(MIN_RTO), ..settings_of(control) };
            let mut v = victim(&settings);
            let mut rng = RandomStream::new(14, "forged");
            for step in 0..2_000u32 {
                if v.c.inspect().in_flight.is_zero() {
                    v.write(20_000);
                }
                v.wait(Span::from_micros(1 + rng.below(40_000)));
                let out = u64::from(v.nxt.bytes_since(v.una));
                let ack = match rng.below(5) {
                    0 => v.nxt + 1 + rng.below(100_000) as u32,
                    1 => v.una - rng.below(3_000) as u32,
                    2 => v.una,
                    3 => v.una + rng.below(out + 1) as u32,
                    _ => v.una + (rng.below(out + 1) as u32).next_multiple_of(FULL).min(out as u32),
                };
                let mut segment = v.ack(ack, 65_535);
                if rng.chance(0.1) {
                    let old = v.una - 1;
                    segment.header.options.sack.push(tcp::SackBlock { start: old, end: old + 1 });
                }
                forge(&mut segment, &mut rng);
                if !ack.after(v.nxt) {
                    v.una = v.una.later(ack);
                }
                v.give(segment);
                let (i, c) = (v.c.inspect(), v.c.counters());
                assert!(v.is_open(), "{control:?} {rto:?}, step {step}");
                assert!(i.rto >= MIN_RTO, "{control:?} {rto:?}, step {step}: {}", i.rto);
                assert!(i.rto <= Span::from_secs(120), "{control:?} {rto:?}, step {step}: {}", i.rto);
                assert!(
                    !i.srtt.is_zero() && i.srtt <= Span::from_secs(60),
                    "{control:?} {rto:?}: {}",
                    i.srtt
                );
                let undelayed = i.undelayed_srtt;
                assert!(undelayed.is_none_or(|u| !u.is_zero()), "{control:?} {rto:?}: {undelayed:?}");
                assert!(c.confirmed <= c.asked, "{control:?} {rto:?}: {} of {}", c.confirmed, c.asked);
            }
            if control == AckControlMode::Off {
                assert_eq!((v.c.counters().asked, v.c.counters().confirmed), (0, 0));
            }
        }
    }
}

/// Breaks: answers to requests that the ACK does not cover: they measure something, or take requests off that
/// are still to be answered.
#[test]
fn confirmations_of_the_past_do_nothing() {
    let _alone = alone();
    for control in AckControlMode::ALL {
        let mut v = victim(&settings_of(control));
        v.write(10_000);
        let before = v.c.inspect();
        let mut rng = RandomStream::new(15, "past");
        for n in 0..1_000u32 {
            v.now += Span::from_micros(10);
            let mut segment = v.ack(v.una - 1 - n % 2_000, 65_535);
            forge(&mut segment, &mut rng);
            v.give(segment);
        }
        let after = v.c.inspect();
        assert_eq!((after.srtt, after.rto), (before.srtt, before.rto), "{control:?}");
        assert_eq!(v.c.counters().confirmed, 0, "{control:?}");
    }
}

/// Breaks: the limit on requests that are remembered: with a huge window in which everything asks they cost
/// memory for each segment.
#[test]
fn requests_are_remembered_up_to_a_limit() {
    let _alone = alone();
    const SEGMENTS: u32 = 6_000;
    let cost = |control| {
        let settings = Settings {
            initial_window: Some(Packets::new(SEGMENTS)),
            send_buffer: Some(ByteCount::new(16_000_000)),
            ..settings_of(control)
        };
        let mut v = Victim::connected(&config(&settings), TcpOptions { mss: Some(112), ..capable() });
        let before = heap();
        v.write(u64::from(SEGMENTS) * 100);
        assert!(v.c.inspect().in_flight.get() >= SEGMENTS - 10, "{control:?}: {}", v.c.inspect().in_flight);
        (heap() - before, v.c.counters().asked)
    };
    let (plain, _) = cost(AckControlMode::Off);
    for control in AckControlMode::ALL {
        let (bytes, asked) = cost(control);
        println!("{control:?}: {asked} requests, {bytes} B on the heap, {plain} B without");
        assert!(asked <= 4_096 + 1, "{control:?}: {asked} requests");
        assert!(bytes < plain + 4_096 * 128 + 100_000, "{control:?}: {bytes} B, {plain} B without");
        let every = matches!(control, AckControlMode::Safe | AckControlMode::Flag | AckControlMode::Tarr);
        assert!(!every || asked == 4_096, "{control:?}: {asked} requests");
    }
}

fn with_rate(v: &Victim, seq: Seq, len: u32, rate: u8) -> Segment {
    let mut segment = v.data(seq, vec![1; len as usize]);
    segment.header.options.ack_control.tarr = Some(Tarr::Rate(rate));
    segment
}

/// Breaks: a peer that asks for an ACK for 127 segments gets none when the rest does not come, or one that
/// changes its mind all the time gets more ACKs than segments.
#[test]
fn rates_hold_back_no_longer_than_the_hold_time() {
    let _alone = alone();
    for delayed_ack in DelayedAck::ALL {
        let mut v = victim(&Settings { delayed_ack: Some(delayed_ack), ..settings_of(AckControlMode::Tarr) });
        let mut rng = RandomStream::new(16, "rates");
        for n in 0..2_000u32 {
            let rate = [127, 1, 0, 127, 2][rng.below(5) as usize];
            let rate = if n < 100 { 127 } else { rate };
            let len = 1 + rng.below(u64::from(FULL)) as u32;
            let segment = with_rate(&v, v.expected(), len, rate);
            let back = v.give(segment);
            assert!(back.len() <= 1, "{delayed_ack:?}: {} for one", back.len());
            v.c.read(|_| ());
            if rng.chance(0.3) {
                v.wait(Span::from_millis(40));
                assert_eq!(v.acked, v.expected(), "{delayed_ack:?}, step {n}: held back for more than 40 ms");
            } else {
                v.wait(Span::from_micros(rng.below(1_000)));
            }
        }
    }
}

/// Breaks: somebody who knows the ports, and no sequence number, sets how often the receiver acknowledges.
#[test]
fn nobody_from_outside_sets_the_rate() {
    let _alone = alone();
    let mut v =
        victim(&Settings { delayed_ack: Some(DelayedAck::None), ..settings_of(AckControlMode::Tarr) });
    let blind = [
        with_rate(&v, v.acked + 0x4000_0000, 100, 127),
        with_rate(&v, v.acked - 100_000, 100, 127),
        // The number is right, the acknowledgment is not.
        {
            let mut segment = with_rate(&v, v.acked, 100, 127);
            segment.header.ack = v.nxt + 0x1000_0000;
            segment
        },
    ];
    for segment in blind {
        v.give(segment);
        let back = v.give(v.data(v.expected(), vec![1; 100]));
        assert_eq!(back.len(), 1, "every segment is still answered");
    }
}
