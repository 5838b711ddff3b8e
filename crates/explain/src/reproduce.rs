//! The path of a capture as a scenario for the lab, and the same with a cure.

use crate::attributed_view::AttributedView;
use crate::cause::Cause;
use crate::flow::{Stall, Wait};
use crate::losses;
use crate::view::View;
use farpace_units::Span;
use std::fmt::Write;

/// Data that a reproduction sends at most; longer transfers are shortened to it.
pub const MAX_BYTES: u64 = 40_000_000;
/// Outages and delay spikes that are put into a scenario.
const MAX_EVENTS: usize = 50;

/// A scenario that behaves like the capture, and one with a cure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReproducedFlow {
    /// As it was.
    pub as_measured: String,
    /// With the cure.
    pub cured: String,
    /// What was changed, in words.
    pub change: String,
    /// The cause that it is against.
    pub cause: Cause,
    /// Of all data, this much is sent.
    pub bytes: u64,
}

/// What was measured.
struct MeasuredPath {
    rate: f64,
    rtt: Span,
    bytes: u64,
    queue: u64,
    sender: String,
    receiver: String,
    forward: String,
    backward: String,
    access: String,
}

/// What differs with the cure: lines in place of others.
struct Cure {
    change: &'static str,
    sender: Option<String>,
    receiver: Option<String>,
    access: Option<String>,
}

/// Makes the scenarios. None if the lab has no cure for the cause, or the path is not known.
pub fn reproduce(transfer: &AttributedView<'_>, cause: Cause) -> Option<ReproducedFlow> {
    let measured = measure(transfer, cause)?;
    let cure = cure(transfer, cause, &measured)?;
    let as_measured = write(&measured, None, &transfer.view);
    let cured = write(&measured, Some(&cure), &transfer.view);
    Some(ReproducedFlow { as_measured, cured, change: cure.change.to_owned(), cause, bytes: measured.bytes })
}

fn measure(transfer: &AttributedView<'_>, cause: Cause) -> Option<MeasuredPath> {
    let AttributedView { view, time } = transfer;
    let bytes = view.half.acknowledged();
    if view.base.is_zero() || bytes < 10 * u64::from(view.mss) || view.capacity <= 0.0 {
        return None;
    }
    let wire = f64::from(view.mss + 90) / f64::from(view.mss);
    let seen = view.capacity * wire * 8.0;
    // What held back below the path's rate hides how much more it could carry; ten times what was seen
    // stands for it.
    let hidden =
        !matches!(cause, Cause::Congestion | Cause::Outage | Cause::SpuriousTimeout | Cause::TailLoss)
            && time.of(Cause::Congestion) * 10 < view.duration();
    let rate = if hidden { line_rate(view).unwrap_or(seen * 4.0).max(seen) } else { seen };
    let queue = match cause {
        Cause::SmallQueue => (view.deep.as_secs_f64() * rate / 8.0).max(5.0 * 1514.0) as u64,
        _ => {
            ((view.deep.as_secs_f64() * rate / 8.0) as u64).max((rate / 8.0 * view.base.as_secs_f64()) as u64)
        }
    };
    let mut m = MeasuredPath {
        rate,
        rtt: view.base,
        bytes: bytes.min(MAX_BYTES),
        queue: queue.clamp(15_000, 100_000_000),
        sender: sender(view),
        receiver: "profile = \"linux\"\n".to_owned(),
        forward: String::new(),
        backward: String::new(),
        access: String::new(),
    };
    impair(transfer, cause, &mut m);
    Some(m)
}

/// The rate at which the bottleneck lets packets through, by the densest ACKs.
fn line_rate(view: &View<'_>) -> Option<f64> {
    view.half.line_rate().map(|bytes| bytes * 8.0 * 1.06)
}

/// Round trips that data waits for a repair whose retransmission is lost as well.
const REPAIRS: f64 = 3.0;
/// A sender with farpace's own control.
const FARPACE: &str = "profile = \"farpace\"\n";

fn sender(view: &View<'_>) -> String {
    let control = crate::control::identify(view);
    let congestion = match control.name {
        "reno" => "reno",
        "bbr" => "bbr1",
        _ => "cubic",
    };
    if losses::crawls(view) {
        return "profile = \"linux-2.6.17\"\ncongestion = \"bic\"\ninitial_ssthresh = \"1000 packets\"\n"
            .to_owned();
    }
    if control.name == "farpace" {
        return FARPACE.to_owned();
    }
    let [client, server] = &view.flow.hello;
    let mut text = format!("profile = \"linux\"\ncongestion = \"{congestion}\"\n");
    if view.flow.saw_syn() && !(client.sack && server.sack) {
        text.push_str("sack = false\n");
    }
    text
}

/// What stands in the way.
fn impair(transfer: &AttributedView<'_>, cause: Cause, m: &mut MeasuredPath) {
    let AttributedView { view, time } = transfer;
    let rate = view.loss_rate();
    match cause {
        Cause::Policer | Cause::Linux2617 | Cause::LostRetransmission if time.policing.is_some() => {
            if let Some(p) = &time.policing {
                let ip =
                    p.share * p.rate.bits_per_sec() as f64 * f64::from(view.mss + 52) / f64::from(view.mss);
                let _ = writeln!(
                    m.forward,
                    "policer = {{ rate = \"{:.0} kbit/s\", burst = \"{} B\" }}",
                    ip / 1e3,
                    p.burst.max(6_000)
                );
                m.rate = m.rate.max(ip * 2.0);
                m.queue = m.queue.max(200_000);
            }
        }
        Cause::BurstLoss => {
            let run = time.pattern.run.max(1.5);
            let end = (1.0 / run).clamp(0.02, 1.0);
            let begin = (rate / run).clamp(1e-6, 0.2);
            let _ = writeln!(m.forward, "burst_loss = {{ begin = {begin:.7}, end = {end:.4} }}");
        }
        // A bucket whose rate is not known is one that others keep empty: what it drops is nearly chance.
        Cause::RandomLoss | Cause::BitErrors | Cause::Policer => {
            let _ = writeln!(m.forward, "loss = {:.7}", rate.clamp(0.0, 0.5));
        }
        Cause::Reordering => {
            let late = view.half.counts.reordered.max(view.half.counts.spurious) as f64;
            let chance = (late / view.segments()).clamp(1e-5, 0.5);
            let extra = view.half.lateness.1.max(view.base / 4).as_secs_f64() * 1e3;
            let _ = writeln!(m.forward, "reorder = {{ chance = {chance:.6}, extra = \"{extra:.2} ms\" }}");
        }
        Cause::Outage | Cause::SpuriousTimeout => m.forward.push_str(&events(transfer, cause)),
        _ => {}
    }
    let counts = &view.half.counts;
    let missing = counts.missing_acks as f64 / (counts.missing_acks + counts.numbered_acks).max(1) as f64;
    if cause == Cause::AckLoss && missing > 0.0 {
        let _ = writeln!(m.backward, "loss = {:.5}", missing.min(0.9));
    }
    match cause {
        Cause::ReceiveWindow | Cause::ReceiverApplication => {
            let _ = writeln!(
                m.receiver,
                "window = \"{} B\"",
                view.half.largest_window.max(2 * u64::from(view.mss))
            );
        }
        Cause::WindowScale => m.receiver.push_str("window_scale = false\n"),
        Cause::SendBuffer => {
            let flight = view.stretches.iter().map(|s| s.slice.flight).max().unwrap_or_default();
            let _ = writeln!(m.sender, "send_buffer = \"{} B\"", flight.max(2 * u64::from(view.mss)));
        }
        _ => {}
    }
}

/// The stalls of a cause as outages.
fn events(transfer: &AttributedView<'_>, cause: Cause) -> String {
    let mut stalls: Vec<&Stall> =
        transfer.stalls_of(cause).filter(|s| s.wait == Wait::Timer || s.wait == Wait::Ack).collect();
    stalls.sort_by_key(|s| s.start);
    let mut texts: Vec<String> = Vec::new();
    let mut free = 0.0f64;
    for stall in stalls.iter().take(MAX_EVENTS) {
        let at = (stall.start.since(transfer.view.start).as_secs_f64() * 1e3).max(free);
        // A timer of twice the last is what ended it; on average half of its time was the outage.
        let lasts = (stall.duration().as_secs_f64() * 1e3 * 0.7).max(1.0);
        free = at + lasts + 1.0;
        texts.push(format!("{{ at = \"{at:.0} ms\", lasts = \"{lasts:.0} ms\" }}"));
    }
    if texts.is_empty() { String::new() } else { format!("outages = [{}]\n", texts.join(", ")) }
}

/// What the lab can do about it.
fn cure(transfer: &AttributedView<'_>, cause: Cause, m: &MeasuredPath) -> Option<Cure> {
    let AttributedView { view, time } = transfer;
    let none = Cure { change: "", sender: None, receiver: None, access: None };
    let plain = "profile = \"linux\"\n".to_owned();
    let farpace = FARPACE.to_owned();
    let ours = m.sender.starts_with(FARPACE);
    Some(match cause {
        Cause::ReceiveWindow | Cause::ReceiverApplication | Cause::WindowScale => {
            Cure { change: "a receive window that is autotuned", receiver: Some(plain), ..none }
        }
        Cause::SendBuffer => {
            let sender = m
                .sender
                .lines()
                .filter(|l| !l.starts_with("send_buffer"))
                .map(|l| format!("{l}\n"))
                .collect();
            Cure { change: "a send buffer that is autotuned", sender: Some(sender), ..none }
        }
        Cause::Policer => {
            let policed = time.policing.as_ref().filter(|policed| !policed.is_used_up(view))?;
            // Frames with their check sequences, as pacing counts, two per cent below the policed rate.
            let frame = f64::from(view.mss + 70) / f64::from(view.mss);
            let rate = policed.share * policed.rate.bits_per_sec() as f64 * frame * 0.98 / 1e3;
            let access = format!(
                "[links.forward.pacing]\nclasses = [{{ name = \"all\", rate = \"{rate:.0} kbit/s\", limit \
                 = \"20 MB\" }}]\ndefault = \"all\"\n"
            );
            Cure { change: "pacing two per cent below the policed rate", access: Some(access), ..none }
        }
        // Such a sender is held back by the window in which data waits for repairs, or not at all.
        Cause::RandomLoss | Cause::BitErrors | Cause::BurstLoss if ours => {
            let holds = m.rate / 8.0 * m.rtt.as_secs_f64();
            if view.half.largest_window as f64 >= REPAIRS * holds {
                return None;
            }
            let receiver = format!("{plain}receive_buffer = \"{:.0} B\"\n", 4.0 * REPAIRS * holds);
            Cure { change: "a receive window of some round trips", receiver: Some(receiver), ..none }
        }
        Cause::RandomLoss | Cause::BitErrors | Cause::BurstLoss => Cure {
            change: "farpace's congestion control, which does not take each loss for congestion",
            sender: Some(farpace),
            ..none
        },
        Cause::SmallQueue => Cure {
            change: "pacing at the sender",
            sender: Some(format!("{}pacing = true\n", m.sender)),
            ..none
        },
        Cause::Reordering | Cause::LostRetransmission | Cause::Linux2617 => {
            Cure { change: "a sender with RACK and undo (profile linux)", sender: Some(plain), ..none }
        }
        Cause::Outage | Cause::SpuriousTimeout | Cause::TailLoss | Cause::AckLoss if ours => return None,
        Cause::Outage | Cause::SpuriousTimeout | Cause::TailLoss | Cause::AckLoss => {
            Cure { change: "farpace as the sender (AEN, tail loss probes)", sender: Some(farpace), ..none }
        }
        Cause::SlowStart => Cure {
            change: "an initial window of 100 segments",
            sender: Some(format!("{}initial_window = \"100 packets\"\n", m.sender)),
            ..none
        },
        _ => return None,
    })
}

fn write(m: &MeasuredPath, cure: Option<&Cure>, view: &View<'_>) -> String {
    let sender = cure.and_then(|c| c.sender.as_ref()).unwrap_or(&m.sender);
    let receiver = cure.and_then(|c| c.receiver.as_ref()).unwrap_or(&m.receiver);
    let access = cure.and_then(|c| c.access.as_ref()).unwrap_or(&m.access);
    let title = match cure {
        None => "As captured",
        Some(_) => "With the cure",
    };
    let access_rate = (m.rate * 10.0).clamp(100e6, 100e9);
    format!(
        r#"title = "{title}"
description = "The path of {} to {}, as a capture shows it."
seed = 1
duration = "3600 s"

[hosts.sender]
[hosts.receiver]
[routers.router]

[[links]]
name = "access"
between = ["sender", "router"]
rate = "{:.0} kbit/s"
{access}
[[links]]
name = "path"
between = ["router", "receiver"]
rate = "{:.0} kbit/s"
delay = "{} us"
queue = "{} B"
[links.forward]
{}[links.backward]
{}
[[flows]]
name = "transfer"
from = "sender"
to = "receiver"
size = "{} B"
[flows.sender]
{sender}[flows.receiver]
{receiver}"#,
        view.flow.address(view.side),
        view.flow.address(view.side.other()),
        access_rate / 1e3,
        m.rate / 1e3,
        m.rtt.as_micros() / 2,
        m.queue,
        m.forward,
        m.backward,
        m.bytes,
    )
}
