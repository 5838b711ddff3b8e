//! Captures of every kind that people have, and damaged ones.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod control;
mod hostile;
mod make;

use farpace_explain::cause::Cause;
use farpace_explain::flow::Side;
use farpace_explain::input::{Compression, open, read};
use farpace_explain::{Diagnosis, diagnose};
use make::{Transfer, pcap};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use std::io::Write;

fn verdict(link_type: u32, frames: &[(u64, Vec<u8>)]) -> (farpace_explain::input::Capture, Diagnosis) {
    let capture = read(pcap(link_type, frames, 65_535).as_slice()).unwrap();
    let flow = capture.flows.iter().max_by_key(|f| f.packets).unwrap();
    let d = diagnose(flow, flow.sender());
    (capture, d)
}

/// Breaks: tunnels and link types that people capture on; the transfer in them would not be seen.
#[test]
fn the_same_transfer_is_found_in_every_carrier() {
    let packets = Transfer::default().packets();
    let plain = verdict(101, &packets).1;
    assert_eq!(plain.bytes.get(), Transfer::default().bytes());
    for (name, link_type, wrap) in make::CARRIERS {
        let wrapped: Vec<_> = packets.iter().map(|(time, packet)| (*time, wrap(packet))).collect();
        println!("{name}");
        let (capture, d) = verdict(*link_type, &wrapped);
        assert_eq!(capture.flows.len(), 1, "{name}");
        assert_eq!(d.bytes, plain.bytes, "{name}");
        assert_eq!(d.shares.len(), plain.shares.len(), "{name}");
        assert_eq!(d.duration(), plain.duration(), "{name}");
    }
}

/// Breaks: headers alone, as captures with a snap length have them, in a file that is compressed.
#[test]
fn a_snap_length_and_compression_change_nothing() {
    let packets = Transfer::default().packets();
    let whole = pcap(101, &packets, 65_535);
    let cut = pcap(101, &packets, 96);
    assert!(cut.len() * 4 < whole.len());
    let expected = verdict(101, &packets).1;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&cut).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = ruzstd::encoding::compress_to_vec(cut.as_slice(), ruzstd::encoding::CompressionLevel::Fastest);
    for (bytes, compression) in
        [(cut, Compression::None), (gzip, Compression::Gzip), (zstd, Compression::Zstd)]
    {
        let (source, found) = open(bytes.as_slice()).unwrap();
        assert_eq!(found, compression);
        let capture = read(source).unwrap();
        let d = diagnose(&capture.flows[0], Side::Client);
        assert_eq!(
            (d.bytes, d.duration(), d.dominant),
            (expected.bytes, expected.duration(), expected.dominant)
        );
    }
}

/// Breaks: a capture on two interfaces, or before and after a router: every packet would be a retransmission.
#[test]
fn packets_that_were_captured_twice_are_told_and_left_out() {
    let packets = Transfer::default().packets();
    let mut twice = Vec::new();
    for (time, packet) in &packets {
        twice.push((*time, packet.clone()));
        let mut copy = packet.clone();
        copy[8] -= 1; // a router has counted it down
        twice.push((time + 20_000, copy));
    }
    twice.sort_by_key(|(time, _)| *time);
    let (capture, d) = verdict(101, &twice);
    let (_, once) = verdict(101, &packets);
    assert_eq!(capture.flows[0].half(Side::Client).counts.retransmissions, 0);
    assert!(d.findings.iter().any(|f| f.cause == Cause::DuplicateCapture));
    assert_eq!(d.dominant, once.dominant);
    assert_eq!(d.healthy, once.healthy);
}

/// Breaks: a capture merged of two points, at one of which segmentation offload makes one packet of many: all
/// segments of the other would be retransmissions; also where the handshake is missing.
#[test]
fn of_two_points_one_is_followed() {
    let many = Transfer { segments_each: 10, ..Transfer::default() };
    let far = 5_000_000;
    let mut merged = Vec::new();
    let is_back = |packet: &[u8]| packet[12..16] == [10, 0, 0, 2];
    for (time, mut packet) in many.packets() {
        packet[8] = if is_back(&packet) { 63 } else { 64 };
        merged.push((time, packet));
    }
    let near = merged.clone();
    for (time, mut packet) in Transfer::default().packets() {
        packet[8] = if is_back(&packet) { 64 } else { 63 };
        merged.push((if is_back(&packet) { time - far } else { time + far }, packet));
    }
    merged.sort_by_key(|(time, _)| *time);
    let (one, alone) = verdict(101, &near);
    let (both, d) = verdict(101, &merged);
    let [one, both] = [&one, &both].map(|c| c.flows[0].half(Side::Client).counts);
    assert_eq!((both.retransmissions, both.data_segments), (0, one.data_segments));
    assert_eq!((d.dominant, d.healthy, d.duration()), (alone.dominant, alone.healthy, alone.duration()));
    let found = d.findings.iter().find(|f| f.cause == Cause::DuplicateCapture).unwrap();
    assert!(found.evidence.contains("nearest to the client"), "{}", found.evidence);
    let (rest, _) = verdict(101, &merged[500..]);
    let counts = rest.flows[0].half(rest.flows[0].sender()).counts;
    // Of the first flight the other point was followed.
    assert!(counts.retransmissions <= 20 && counts.data_segments > 60, "{counts:?}");
}

/// Breaks: a capture that misses packets: they would be taken for losses.
#[test]
fn packets_that_the_capture_misses_are_no_losses() {
    let packets = Transfer::default().packets();
    let data = |packet: &[u8]| packet.len() > 1_000;
    let mut n = 0;
    let kept: Vec<_> = packets
        .iter()
        .filter(|(_, packet)| {
            n += usize::from(data(packet));
            !data(packet) || !n.is_multiple_of(20)
        })
        .cloned()
        .collect();
    assert!(kept.len() < packets.len());
    let (capture, d) = verdict(101, &kept);
    let counts = &capture.flows[0].half(Side::Client).counts;
    assert_eq!((counts.retransmissions, counts.unseen), (0, (packets.len() - kept.len()) as u64));
    assert!(d.findings.iter().any(|f| f.cause == Cause::CaptureDrops));
    assert!(d.healthy);
}

/// Breaks: segmentation offload: super-segments of 64 kB at the sender are the same transfer.
#[test]
fn super_segments_are_the_segments_that_they_become() {
    let one = Transfer::default();
    let many = Transfer { segments_each: 10, ..Transfer::default() };
    let (a, b) = (verdict(101, &one.packets()).1, verdict(101, &many.packets()).1);
    assert_eq!(a.bytes, b.bytes);
    assert_eq!((a.dominant, a.healthy), (b.dominant, b.healthy));
}

/// Breaks: a capture that begins in the middle of a connection, or has one direction only.
#[test]
fn parts_of_a_connection_are_enough_to_say_what_is_not_known() {
    let packets = Transfer::default().packets();
    let (capture, d) = verdict(101, &packets[200..]);
    assert!(!capture.flows[0].saw_syn() && d.unknowable.iter().any(|u| u.contains("handshake")));
    let forward: Vec<_> = packets.iter().filter(|(_, p)| p[12..16] == [10, 0, 0, 1]).cloned().collect();
    let (_, d) = verdict(101, &forward);
    assert!(d.unknowable.iter().any(|u| u.contains("one direction")), "{:?}", d.unknowable);
    assert!(d.is_one_way && d.bytes.get() == Transfer::default().bytes());
    assert_eq!((d.dominant, d.shares.len(), d.findings.len()), (Cause::Unknown, 1, 1));
}

/// Breaks: a capture that begins while data is under way counts that data as missing, or as lost: ACKs of it
/// come first, or the repetition of a part of it.
#[test]
fn what_was_under_way_at_the_beginning_is_not_missing() {
    let packets = Transfer::default().packets();
    // The data of the first flight was sent before; the second is full.
    let begin = packets.iter().position(|(_, p)| p[12..16] == [10, 0, 0, 2] && p[33] == 16).unwrap();
    let repeated = packets[begin - 20].1.clone();
    let late = [vec![(packets[begin - 1].0 + 400_000, repeated)], packets[begin..].to_vec()].concat();
    for (what, packets) in [("ACKs", packets[begin..].to_vec()), ("data again", late)] {
        let (capture, d) = verdict(101, &packets);
        let counts = capture.flows[0].half(capture.flows[0].sender()).counts;
        assert_eq!((counts.holes, counts.unseen), (0, 0), "{what}");
        assert!(d.healthy && !d.findings.iter().any(|f| f.cause == Cause::CaptureDrops), "{what}");
    }
}

/// Breaks: options that a short snap length cut count as refused or as removed by a box, and super-segments
/// of that size as short ones; or the report does not tell.
#[test]
fn options_that_were_cut_are_not_known() {
    let packets = Transfer { segments_each: 10, ..Transfer::default() }.packets();
    let whole = verdict(101, &packets).1;
    for snaplen in [40, 54] {
        let capture = read(pcap(101, &packets, snaplen).as_slice()).unwrap();
        let d = diagnose(&capture.flows[0], Side::Client);
        assert_eq!(capture.flows[0].half(Side::Client).counts.short_segments, 0, "{snaplen}");
        assert_eq!(
            (d.bytes, d.dominant, d.healthy),
            (whole.bytes, whole.dominant, whole.healthy),
            "{snaplen}"
        );
        assert!(!d.findings.iter().any(|f| f.cause == Cause::OptionsStripped), "{snaplen}");
        assert!(d.unknowable.iter().any(|text| text.contains("snap length")), "{snaplen}");
    }
    assert!(!whole.unknowable.iter().any(|text| text.contains("snap length")));
}

/// Breaks: zstd files of several frames (pzstd, `cat a.zst b.zst`) end with the first one, frames to be
/// skipped are refused, or nothing is used of a file that is cut.
#[test]
fn zstd_files_have_many_frames() {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    let whole = pcap(101, &Transfer::default().packets(), 96);
    let half = |part: &[u8]| compress_to_vec(part, CompressionLevel::Fastest);
    let skipped = [0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    let (first, second) = whole.split_at(whole.len() / 2);
    let file = [&skipped[..], &half(first), &skipped, &half(second), &skipped].concat();
    let (source, found) = open(file.as_slice()).unwrap();
    assert_eq!(found, Compression::Zstd);
    let capture = read(source).unwrap();
    assert_eq!((capture.frames, capture.damaged), (Transfer::default().packets().len() as u64, None));
    let random: Vec<u8> = (0..3_000u64).flat_map(|n| n.wrapping_mul(n * n + 77).to_le_bytes()).collect();
    let long = [whole.clone(), random].concat();
    let cut = half(&long);
    let (source, _) = open(&cut[..cut.len() - 2_000]).unwrap();
    let capture = read(source).unwrap();
    assert!(capture.frames > 0 && capture.damaged.is_some(), "{capture:?}");
}

/// Breaks: a single wrong time, or the order of two interfaces, destroys the verdict; or a capture out of
/// order gets a verdict that seems sure.
#[test]
fn wrong_times_are_put_right_or_told() {
    let packets = Transfer::default().packets();
    let (_, right) = verdict(101, &packets);
    const HOUR: u64 = 3_600_000_000_000;
    for change in [|time: u64| time + HOUR, |_| 5] {
        let mut wrong = packets.clone();
        wrong[300].0 = change(wrong[300].0);
        let (capture, d) = verdict(101, &wrong);
        assert_eq!((capture.backwards, capture.misdated), (1, 1));
        assert_eq!((d.dominant, d.bytes, d.duration()), (right.dominant, right.bytes, right.duration()));
        assert!(d.confidence == right.confidence && !d.unknowable.iter().any(|u| u.contains("reordercap")));
    }
    let mut mixed = packets.clone();
    mixed[1..].chunks_mut(8).for_each(<[_]>::reverse);
    let (capture, d) = verdict(101, &mixed);
    assert!(capture.backwards > 100 && capture.misdated == 0);
    assert_eq!(
        (d.dominant, d.duration(), &d.shares.len()),
        (right.dominant, right.duration(), &right.shares.len())
    );
    let (forward, back): (Vec<_>, Vec<_>) =
        packets.into_iter().partition(|(_, p)| p[12..16] == [10, 0, 0, 1]);
    let (_, d) = verdict(101, &[forward, back].concat());
    assert!(d.confidence <= 0.5 && d.unknowable.iter().any(|u| u.contains("reordercap")));
}

/// Breaks: a connection that is refused is a slow handshake, with the advice to keep connections open.
#[test]
fn a_refused_connection_is_refused() {
    let syn = make::segment(false, 1_000, 0, 2, 0, 0, 0, 1);
    let reset = make::segment(true, 0, 1_001, 20, 0, 0, 0, 1);
    let (_, d) = verdict(101, &[(1_000_000_000, syn), (1_020_000_000, reset)]);
    assert_eq!((d.dominant, d.healthy), (Cause::Reset, false));
    assert!(d.findings[0].cure.contains("listens"), "{:?}", d.findings);
}

/// Breaks: the reset of a box one hop away passes for that of the host, or a program that closes by a reset
/// once all was acknowledged for a fault.
#[test]
fn resets_are_of_boxes_of_hosts_or_no_fault() {
    const SECOND: u64 = 1_000_000_000;
    let end = 1_001 + Transfer::default().bytes() as u32;
    // From the server while data is outstanding, with this time to live; or from the client after all.
    let reset = |after: u64, back: bool, ttl: u8| {
        let mut packets = Transfer::default().packets();
        packets.iter_mut().filter(|(_, p)| p[12..16] == [10, 0, 0, 2]).for_each(|(_, p)| p[8] = 63);
        let cut = if back {
            packets.iter().rposition(|(_, p)| p.len() > 1_000).unwrap() + 1
        } else {
            packets.len()
        };
        packets.truncate(cut);
        let (seq, ack) = if back { (9_001, end) } else { (end, 9_001) };
        let mut segment = make::segment(back, seq, ack, 20, 0, 0, 0, 0);
        segment[8] = ttl;
        packets.push((packets[cut - 1].0 + after, segment));
        verdict(101, &packets).1
    };
    let evidence =
        |d: &Diagnosis| d.findings.iter().find(|f| f.cause == Cause::Reset).map(|f| f.evidence.clone());
    assert!(evidence(&reset(1_000, true, 64)).unwrap().contains("larger by 1"));
    assert!(evidence(&reset(1_000, true, 63)).unwrap().contains("while it was in use"));
    assert!(evidence(&reset(1_000, false, 64)).is_some());
    let idle = reset(3 * SECOND, false, 64);
    assert!(evidence(&idle).is_none() && idle.healthy);
    // A box that lost its state resets what is idle, too.
    assert!(evidence(&reset(3 * SECOND, true, 64)).unwrap().contains("something between"));
}

/// Breaks: SYNs without any answer are said to have had answers that were lost.
#[test]
fn without_an_answer_none_was_lost() {
    let syn = |n: u64| (n * 1_000_000_000, make::segment(false, 1_000, 0, 2, 0, n as u32, 0, n as u16));
    let (_, d) = verdict(101, &[syn(1), syn(2), syn(4)]);
    let found = d.findings.iter().find(|f| f.cause == Cause::SynLoss).unwrap();
    assert_eq!(found.evidence, "the SYN was sent 3 times within 3.00 s; no answer was seen");
}

/// Requests and answers, twenty of them; each answer is acknowledged alone, and so many packets of the side
/// that asks are missing before that.
fn requests(missing: u16) -> Vec<(u64, Vec<u8>)> {
    let (iss, irs, start) = (1_000u32, 9_000u32, 1_000_000_000u64);
    let mut packets = vec![
        (start, make::segment(false, iss, 0, 2, 0, 0, 0, 1)),
        (start + 20_000_000, make::segment(true, irs, iss + 1, 18, 0, 0, 0, 1)),
        (start + 20_010_000, make::segment(false, iss + 1, irs + 1, 16, 0, 20, 20, 2)),
    ];
    let (mut seq, mut ack, mut id) = (iss + 1, irs + 1, 3);
    for n in 1..=20u64 {
        let (at, ts) = (start + n * 100_000_000, (n * 100) as u32);
        packets.push((at, make::segment(false, seq, ack, 24, 50, ts, ts - 80, id)));
        packets.push((at + 20_000_000, make::segment(true, ack, seq + 50, 24, 2_000, ts + 20, ts, 9)));
        (seq, ack) = (seq + 50, ack + 2_000);
        packets.push((at + 20_010_000, make::segment(false, seq, ack, 16, 0, ts + 20, ts + 20, id + 1)));
        packets.push((
            at + 20_020_000,
            make::segment(false, seq, ack, 16, 0, ts + 20, ts + 20, id + 2 + missing),
        ));
        id += 3 + missing;
    }
    packets
}

/// Breaks: requests between the ACKs of their answers count as ACKs that were lost; or lost ACKs are not
/// seen.
#[test]
fn requests_between_acks_are_no_lost_acks() {
    for missing in [0, 2] {
        let capture = read(make::pcap(101, &requests(missing), 96).as_slice()).unwrap();
        let [a, b] = [Side::Client, Side::Server].map(|side| diagnose(&capture.flows[0], side));
        let lost = |d: &Diagnosis| d.findings.iter().any(|f| f.cause == Cause::AckLoss);
        assert_eq!((lost(&a), lost(&b)), (false, missing > 0), "{missing}");
    }
}

/// Breaks: a transfer ends with the ACK of the FIN, so that a client that keeps the connection open for a
/// while makes the transfer slow, and a cause that is none takes most of the time.
#[test]
fn a_transfer_ends_with_its_data() {
    let mut packets = Transfer::default().packets();
    let (whole, before) = verdict(101, &packets);
    let (last, seq) = (packets.last().unwrap().0, 1_001 + Transfer::default().bytes() as u32);
    for (after, back, seq, ack) in [(3_000_000_000, false, seq, 9_001), (3_020_000_000, true, 9_001, seq + 1)]
    {
        packets.push((last + after, make::segment(back, seq, ack, 17, 0, 5_000, 5_000, 900)));
    }
    let (_, after) = verdict(101, &packets);
    assert_eq!(whole.flows.len(), 1);
    assert_eq!((after.dominant, after.healthy), (before.dominant, before.healthy));
    assert_eq!(after.duration(), before.duration());
}

/// A program that sends a request when the answer to the last one has come, over a round trip of 20 ms; each
/// packet acknowledges what came before it.
fn one_request_at_a_time() -> Vec<(u64, Vec<u8>)> {
    let (mut seq, mut ack, start) = (1_001u32, 9_001u32, 1_000_000_000u64);
    let mut packets = vec![
        (start, make::segment(false, seq - 1, 0, 2, 0, 0, 0, 1)),
        (start + 20_000_000, make::segment(true, ack - 1, seq, 18, 0, 0, 0, 1)),
        (start + 20_010_000, make::segment(false, seq, ack, 16, 0, 20, 20, 2)),
    ];
    for n in 1..=100u16 {
        let (at, ts) = (start + u64::from(n) * 20_100_000, u32::from(n) * 20);
        packets.push((at, make::segment(false, seq, ack, 24, 1_448, ts, ts - 20, 2 + n)));
        seq += 1_448;
        packets.push((at + 20_000_000, make::segment(true, ack, seq, 24, 1_448, ts, ts, 1 + n)));
        ack += 1_448;
    }
    packets
}

/// Breaks: requests one by one, whose answers bring the ACKs, pass for a send buffer that is too small.
#[test]
fn one_request_at_a_time_waits_for_the_other_side() {
    let capture = read(pcap(101, &one_request_at_a_time(), 96).as_slice()).unwrap();
    for side in [Side::Client, Side::Server] {
        let d = diagnose(&capture.flows[0], side);
        assert_eq!((d.dominant, d.healthy), (Cause::PeerApplication, true), "{side:?}: {:?}", d.shares);
    }
    let d = diagnose(&capture.flows[0], Side::Client);
    let told = &d.findings.iter().find(|f| f.cause == Cause::PeerApplication).unwrap().evidence;
    assert!(told.contains("in 99 exchanges"), "{told}");
}

/// A flight that never grows, over a round trip of 20 ms. Its segments leave so long behind the ACKs that
/// make room for them, in nanoseconds.
fn constant_flight(behind_ack: u64) -> Vec<(u64, Vec<u8>)> {
    let (mut seq, irs, start) = (1_001u32, 9_001u32, 1_000_000_000u64);
    let mut packets = vec![
        (start, make::segment(false, seq - 1, 0, 2, 0, 0, 0, 1)),
        (start + 20_000_000, make::segment(true, irs - 1, seq, 18, 0, 0, 0, 1)),
        (start + 20_010_000, make::segment(false, seq, irs, 16, 0, 20, 20, 2)),
    ];
    let (flight, round) = (12u64, 20_000_000 + behind_ack);
    for n in 0..1_200u64 {
        let at = start + 20_020_000 + n / flight * round + n % flight * 50_000;
        let [ts, echo] = [at, at - behind_ack].map(|at| (at / 1_000_000) as u32);
        packets.push((at, make::segment(false, seq, irs, 16, 1_448, ts, echo, 3 + n as u16)));
        seq += 1_448;
        let ts = ((at + 20_000_000) / 1_000_000) as u32;
        packets.push((
            at + 20_000_000,
            make::segment(true, irs, seq, 16, 0, ts, ts.wrapping_sub(20), 2 + n as u16),
        ));
    }
    packets.sort_by_key(|(time, _)| *time);
    packets
}

/// Breaks: a program that paces itself passes for a send buffer that is too small, or such a buffer for a
/// program. What a buffer holds leaves as soon as an ACK makes room.
#[test]
fn a_buffer_is_refilled_when_acks_come() {
    for (behind_ack, expected) in [(20_000, Cause::SendBuffer), (1_100_000, Cause::SenderApplication)] {
        let (_, d) = verdict(101, &constant_flight(behind_ack));
        assert_eq!(d.dominant, expected, "{behind_ack} ns behind the ACKs: {:?}", d.shares);
    }
}

/// Breaks: a capture of the ACKs alone makes a handshake of the whole transfer, in good health.
#[test]
fn acks_alone_do_not_tell_what_limited() {
    let packets: Vec<_> =
        Transfer::default().packets().into_iter().filter(|(_, p)| p[12..16] == [10, 0, 0, 2]).collect();
    let (_, d) = verdict(101, &packets);
    assert_eq!((d.dominant, d.is_one_way, d.has_data), (Cause::Unknown, true, false));
    assert_eq!(d.bytes.get(), Transfer::default().bytes());
}

/// Breaks: a capture of a link type that is not read gives no reason why nothing is found in it.
#[test]
fn link_types_that_are_not_read_are_told() {
    let packets = Transfer::default().packets();
    let capture = read(pcap(127, &packets, 96).as_slice()).unwrap();
    assert_eq!((capture.foreign, capture.segments), ((packets.len() as u64, 127), 0));
}

/// Breaks: memory that grows with the length of a capture.
#[test]
fn a_long_transfer_keeps_a_bounded_number_of_slices_and_points() {
    let long = Transfer { rounds: 6_000, ..Transfer::default() };
    let (capture, _) = verdict(101, &long.packets());
    let half = capture.flows[0].half(Side::Client);
    assert!(half.timeline.slices().len() <= farpace_explain::flow::MAX_SLICES && half.timeline.halvings > 0);
    assert!(half.passes.kept().len() <= farpace_explain::flow::MAX_PASSES);
}

proptest! {
    /// Breaks: a hostile or damaged capture crashes the program, or the times no longer add up.
    #[test]
    fn no_damage_panics(
        changes in vec((any::<Index>(), any::<u8>()), 0..40),
        swaps in vec((any::<Index>(), any::<Index>()), 0..10),
        cut in any::<Index>(),
        link_type in prop_oneof![Just(101u32), Just(1), Just(113), Just(276), any::<u32>()],
    ) {
        let mut packets = Transfer { rounds: 12, ..Transfer::default() }.packets();
        for (a, b) in swaps {
            let (a, b) = (a.index(packets.len()), b.index(packets.len()));
            packets.swap(a, b);
        }
        let mut bytes = pcap(link_type, &packets, 200);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        if let Ok(capture) = read(bytes.as_slice()) {
            for flow in &capture.flows {
                for side in [Side::Client, Side::Server] {
                    let d = diagnose(flow, side);
                    let sum: u64 = d.shares.iter().map(|s| s.time.as_nanos()).sum();
                    prop_assert_eq!(sum, d.duration().as_nanos());
                }
            }
        }
    }
}
