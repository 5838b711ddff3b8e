//! What the control of acknowledgments takes for granted about a receiver that has never heard of it.

use super::kernel::{Kernel, Outcome};
use super::peer::Heard;
use super::script::{App, FULL, Script, Step};
use super::{ensure, with_kernel};
use farpace_units::{Instant, Span};
use farpace_wire::tcp::{AckControl, CdlCapability, Tarr, TcpFlags};

const AT: u64 = Script::PRIMED;
const RESERVED: TcpFlags = TcpFlags::RESERVED_4.with(TcpFlags::RESERVED_5).with(TcpFlags::RESERVED_6);

fn reads() -> Script {
    Script::new(App::Reads)
}

/// Plays `script` and gives what came of it, and what was heard after the silence, with its delay in ms from
/// `AT` on.
fn heard(kernel: &mut Kernel, script: &Script) -> (Outcome, Vec<(u64, Heard)>) {
    let outcome = kernel.run(script);
    let begin = Instant::ZERO + Span::from_millis(script.rtt + AT);
    let after = outcome.heard.iter().filter(|h| h.at >= begin);
    let after = after.map(|h| (h.at.since(begin).as_millis(), h.clone())).collect();
    (outcome, after)
}

fn request() -> AckControl {
    AckControl { request: true, ..AckControl::default() }
}

/// An ACK of `ack` within 5 ms.
fn at_once(after: &[(u64, Heard)], ack: i32) -> Result<(), String> {
    let found = after.first().is_some_and(|(ms, h)| *ms < 5 && h.ack == ack);
    ensure(found, || format!("no ACK of {ack} at once: {after:?}"))
}

/// Breaks: opening to anybody: a SYN that offers all forms and has reserved bits set is answered as any
/// other, and nothing of it comes back.
#[test]
fn syn_with_offers() {
    with_kernel(|kernel| {
        let syn_control = AckControl {
            cdl_allow: true,
            capability: Some(CdlCapability::REQUESTS.with(CdlCapability::CONFIRMS)),
            tarr: Some(Tarr::Capable),
            ..AckControl::default()
        };
        let script = Script { syn_flags: RESERVED, syn_control, ..reads() }.stream(0, 1, 1, FULL);
        let Outcome { syn_ack, delivered, .. } = kernel.run(&script);
        let o = &syn_ack.options;
        assert_eq!(syn_ack.flags, TcpFlags::SYN | TcpFlags::ACK);
        assert!(o.ack_control.is_empty(), "{o:?}");
        assert!(o.sack_permitted && o.timestamps.is_some() && o.window_scale.is_some(), "{o:?}");
        ensure(delivered == u64::from(FULL), || format!("{delivered} bytes arrived"))
    });
}

/// Breaks: `flag` and `safe`: data with reserved bits or an unknown option is taken as any other, and its ACK
/// is held back as any other; so is that of a TARR request.
#[test]
fn requests_are_not_understood() {
    let tarr = AckControl { tarr: Some(Tarr::Rate(0)), ..AckControl::default() };
    for (flags, control) in
        [(RESERVED, AckControl::default()), (TcpFlags::NONE, request()), (TcpFlags::NONE, tarr)]
    {
        with_kernel(|kernel| {
            let script = reads().primed();
            let end = script.end() + FULL as i32;
            let script = script.stream(AT, 1, 1, FULL);
            let script = script.with(|s| (s.flags, s.control) = (s.flags | flags, control));
            let (outcome, after) = heard(kernel, &script);
            let held = matches!(&after[..], [(35..60, h)] if h.ack == end);
            ensure(held, || format!("{flags:?} {control:?}: {after:?}"))?;
            ensure(outcome.delivered == end as u64, || format!("{} bytes arrived", outcome.delivered))
        });
    }
}

/// Breaks: the reason why `classic` needs both ends: data without the ACK flag is thrown away in silence.
#[test]
fn data_without_ack_is_dropped() {
    with_kernel(|kernel| {
        let script = reads().primed();
        let delivered = script.end() as u64;
        let script = script.stream(AT, 1, 1, FULL).with(|s| s.flags = TcpFlags::RESERVED_4);
        let (outcome, after) = heard(kernel, &script);
        ensure(after.is_empty(), || format!("{after:?}"))?;
        ensure(outcome.delivered == delivered, || format!("{} bytes arrived", outcome.delivered))
    });
}

/// A full segment, and with it the old byte before it, again every 10 ms, so often.
fn probed(script: Script, n: u64, old: u32) -> Script {
    let script = script.primed();
    let before = script.end() - 1;
    let script = script.stream(AT, 1, 1, FULL);
    (0..n).fold(script, |script, i| script.segment(AT + i * 10, before, old))
}

/// Breaks: `unilateral`: an old byte behind data brings the data's ACK at once, with SACK as D-SACK.
#[test]
fn old_byte_is_answered_at_once() {
    for sack in [true, false] {
        with_kernel(|kernel| {
            let script = probed(Script { sack, ..reads() }, 1, 1);
            let end = script.end();
            let (_, after) = heard(kernel, &script);
            at_once(&after, end)?;
            let before = end - FULL as i32;
            let blocks = if sack { vec![(before - 1, before)] } else { vec![] };
            ensure(after.len() == 1 && after[0].1.sack == blocks, || format!("{after:?}"))
        });
    }
}

/// Breaks: how often `unilateral` may ask: each of 20 old bytes in 200 ms is answered. The limit of 2/s is
/// for probes without data.
#[test]
fn old_bytes_are_not_rate_limited() {
    with_kernel(|kernel| {
        let (_, after) = heard(kernel, &probed(reads(), 20, 1));
        ensure(after.len() == 20, || format!("{} ACKs: {after:?}", after.len()))
    });
}

/// Breaks: why `unilateral` does not ask in the shape of a keep-alive: without data one is answered, the next
/// ones not within 500 ms.
#[test]
fn keep_alives_are_rate_limited() {
    with_kernel(|kernel| {
        let script = probed(reads(), 20, 0);
        let end = script.end();
        let (_, after) = heard(kernel, &script);
        at_once(&after, end)?;
        ensure(after.len() == 1, || format!("{} ACKs: {after:?}", after.len()))
    });
}

/// Breaks: what `unilateral` costs and gains beside the ACK: a duplicate makes Linux acknowledge the next 15
/// segments at once.
#[test]
fn an_old_byte_makes_quick() {
    with_kernel(|kernel| {
        let script = probed(reads(), 1, 1);
        let next: fn(Script) -> Script = |s| s.stream(AT + 10, 5, 20, FULL);
        let script = next(script);
        let (_, after) = heard(kernel, &script);
        let steps: Vec<&Step> = script.steps.iter().filter(|s| s.at >= AT + 10).collect();
        let ends: Vec<i32> = steps.iter().map(|s| s.from + s.len as i32).collect();
        let single = after.iter().skip(1).zip(&ends).take_while(|((_, h), end)| h.ack == **end).count();
        ensure(single == 15, || format!("{single} were acknowledged singly: {after:?}"))
    });
}
