//! Any bytes as a capture, and any segments of one connection: the analysis of transfers takes them, and
//! every time adds up.

#![no_main]

use farpace_explain::flow::Side;
use farpace_explain::input::{Follower, open, read};
use farpace_explain::{FlowFilter, diagnose};
use farpace_units::{ByteCount, Instant};
use libfuzzer_sys::fuzz_target;

/// A segment of a connection between two hosts: nanoseconds since the last one, direction, and the header's
/// fields.
type Step = (u32, bool, u32, u32, u8, u16, u16, Vec<u8>);

fuzz_target!(|input: (Vec<u8>, u16, Vec<Step>)| {
    let (file, link_type, steps) = input;
    if let Ok((source, _)) = open(file.as_slice())
        && let Ok(capture) = read(source)
    {
        capture.flows.iter().for_each(check);
    }
    let _ = String::from_utf8_lossy(&file).parse::<FlowFilter>();
    let mut follower = Follower::default();
    let mut now = Instant::ZERO;
    follower.frame((link_type, 0), now, &file, ByteCount::of_len(file.len()), &mut |_| {});
    for (gap, back, seq, ack, flags, window, len, options) in steps {
        now = Instant::from_nanos(now.as_nanos().saturating_add(u64::from(gap)));
        let options = &options[..options.len().min(40) / 4 * 4];
        let (a, b) = ([10, 0, 0, 1], [10, 0, 0, 2]);
        let (src, dst) = if back { (b, a) } else { (a, b) };
        let total = 40 + options.len() as u16 + len % 1500;
        let ports: [u8; 4] = if back { [0, 80, 4, 0] } else { [4, 0, 0, 80] };
        let header = [0x45, 0, (total >> 8) as u8, total as u8, seq as u8, ack as u8, 0, 0, 64, 6, 0, 0];
        let offset = ((20 + options.len()) / 4 << 4) as u8;
        let tcp = [&ports[..], &seq.to_be_bytes(), &ack.to_be_bytes(), &[offset, flags], &window.to_be_bytes(), &[0; 4]];
        let frame = [&header[..], &src, &dst, &tcp.concat(), options].concat();
        follower.frame((101, 0), now, &frame, ByteCount::new(u64::from(total)), &mut |_| {});
    }
    follower.finish().flows.iter().for_each(check);
});

fn check(flow: &farpace_explain::flow::Flow) {
    for side in [Side::Client, Side::Server] {
        let diagnosis = diagnose(flow, side);
        let sum: u64 = diagnosis.shares.iter().map(|s| s.time.as_nanos()).sum();
        assert_eq!(sum, diagnosis.duration().as_nanos(), "the times do not add up");
        assert!(diagnosis.findings.iter().all(|f| (0.0..=1.0).contains(&f.confidence)));
    }
}
