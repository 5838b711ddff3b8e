//! Any bytes as frames of a capture: the analysis of pacing takes them, and loses none.

#![no_main]

use farpace_link::proof::{CapturedFrame, FirstPass, ProofQuestion, SecondPass};
use farpace_units::{ByteCount, Instant, Rate, Span};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (Option<u64>, u64, Vec<(u64, u8, u32, Vec<u8>)>)| {
    let (rate, tick, frames) = input;
    let question = ProofQuestion { rate: rate.map(Rate::from_bits_per_sec), ..ProofQuestion::default() };
    let each = |see: &mut dyn FnMut(&CapturedFrame<'_>)| {
        for ((time, interface, len, bytes), number) in frames.iter().zip(1..) {
            let interface = u32::from(*interface);
            let (time, len) = (Instant::from_nanos(*time), ByteCount::new(u64::from(*len)));
            see(&CapturedFrame { number, interface, time, tick: Span::from_nanos(tick), bytes, len });
        }
    };
    let mut first_pass = FirstPass::new(question);
    each(&mut |frame| first_pass.see(frame));
    let mut second_pass = SecondPass::new(first_pass);
    each(&mut |frame| second_pass.see(frame));
    let (flows, first_pass) = second_pass.finish();
    let in_flows: u64 = flows.iter().map(|flow| flow.totals.total.packets).sum();
    let control: u64 = first_pass.interfaces().map(|(_, i)| i.gaps.frames + i.gaps.others).sum();
    assert_eq!(in_flows + control + first_pass.unreadable().packets, frames.len() as u64);
    for flow in &flows {
        assert_eq!(flow.intervals.bins().map(|bin| bin.2).sum::<u64>(), flow.totals.total.packets - 1);
        let curve = flow.queue_over_time.as_ref().and_then(|curve| curve.bins().iter().max().copied());
        assert!(curve.is_none_or(|max| max == flow.peak().map_or(0, |peak| peak.queue.get())));
    }
});
