//! What a TCP counts about one of its own connections, without a capture.

use crate::cause::Cause;
use crate::control::Control;
use crate::diagnosis::{Diagnosis, Share};
use crate::finding::Finding;
use crate::flow::Side;
use crate::view::Vantage;
use crate::words::seconds;
use farpace_units::{ByteCount, Instant, Rate, Span};

/// The counters of a connection, as the kernel's TCP_INFO has them.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Time with data to send.
    pub busy: Span,
    /// Of this, limited by the receive window.
    pub receive_window: Span,
    /// Of this, limited by the send buffer.
    pub send_buffer: Span,
    /// Of this, without an answer: nothing was acknowledged although data was under way.
    pub silent: Span,
    /// Segments sent again.
    pub retransmitted: f64,
    /// Segments sent.
    pub sent: f64,
    /// The smoothed round trip, in milliseconds.
    pub rtt_ms: f64,
    /// The least round trip, in milliseconds.
    pub min_rtt_ms: f64,
    /// Segments that came out of order.
    pub reordered: f64,
    /// The congestion window, in segments.
    pub cwnd: f64,
    /// The window has been cut at least once.
    pub reduced: bool,
    /// The congestion control does not take a loss for congestion, so that random loss costs what is lost.
    pub ignores_loss: bool,
    /// Bytes acknowledged.
    pub acknowledged: f64,
    /// The congestion control.
    pub control: Option<&'static str>,
}

impl Reading {
    /// The verdict that the counters allow.
    pub fn diagnosis(&self) -> Diagnosis {
        diagnosis(self)
    }
}

fn diagnosis(v: &Reading) -> Diagnosis {
    let busy = v.busy;
    let window = v.receive_window.min(busy);
    let buffer = v.send_buffer.min(busy - window);
    let silent = v.silent.min(busy - window - buffer);
    let rest = busy - window - buffer - silent;
    let (lost, sent, reordered) = (v.retransmitted, v.sent, v.reordered);
    let rate = lost / sent.max(1.0);
    let (rtt, least) = (v.rtt_ms, v.min_rtt_ms);
    let other = match () {
        () if lost > 0.0 && rtt < 1.3 * least.max(0.001) && reordered * 2.0 > lost => Cause::Reordering,
        () if lost > 0.0 && rate > 0.0005 && rtt < 1.3 * least.max(0.001) => match v.ignores_loss {
            true => Cause::Congestion,
            false => Cause::RandomLoss,
        },
        () if v.reduced || rtt > 1.3 * least => Cause::Congestion,
        () => Cause::SlowStart,
    };
    let parts =
        [(Cause::ReceiveWindow, window), (Cause::SendBuffer, buffer), (Cause::Outage, silent), (other, rest)];
    let mut shares: Vec<Share> = parts
        .into_iter()
        .filter(|(_, time)| !time.is_zero())
        .map(|(cause, time)| Share { cause, time })
        .collect();
    shares.sort_by_key(|s| std::cmp::Reverse(s.time));
    let dominant = shares.first().map_or(Cause::SenderApplication, |s| s.cause);
    let evidence = |cause: Cause, time: Span| match cause {
        Cause::ReceiveWindow => {
            format!("the kernel counts {} in which the receive window held it back", seconds(time))
        }
        Cause::SendBuffer => {
            format!("the kernel counts {} in which the send buffer held it back", seconds(time))
        }
        Cause::Outage => format!("nothing was acknowledged for {}", seconds(time)),
        Cause::SenderApplication => "the kernel counts no time in which it was busy".to_owned(),
        _ => format!(
            "{} at the congestion window of {:.0} segments; {lost:.0} retransmissions of {sent:.0} segments; \
             round trip {rtt} ms, at least {least} ms",
            seconds(time),
            v.cwnd
        ),
    };
    let finding = |cause: Cause, time: Span| Finding {
        cause,
        time,
        confidence: if matches!(cause, Cause::ReceiveWindow | Cause::SendBuffer) { 0.9 } else { 0.5 },
        evidence: evidence(cause, time),
        frames: Vec::new(),
        filter: String::new(),
        cure: cause.info().cure.to_owned(),
        first: None,
    };
    let mut findings: Vec<Finding> = shares.iter().map(|s| finding(s.cause, s.time)).collect();
    if findings.is_empty() {
        findings.push(finding(Cause::SenderApplication, Span::ZERO));
    }
    let acked = v.acknowledged;
    let healthy = !shares.iter().any(|s| {
        s.cause.info().kind == crate::cause::Kind::Fault && s.time.as_secs_f64() >= 0.05 * busy.as_secs_f64()
    });
    Diagnosis {
        side: Side::Client,
        vantage: Vantage::Sender,
        start: Instant::ZERO,
        end: Instant::ZERO + busy,
        is_one_way: false,
        has_data: true,
        bytes: ByteCount::new(acked as u64),
        unacknowledged: ByteCount::ZERO,
        goodput: Rate::of(ByteCount::new(acked as u64), busy),
        base_rtt: (least > 0.0).then(|| Span::from_nanos((least * 1e6) as u64)),
        path_rate: Rate::from_bits_per_sec(0),
        dominant,
        confidence: findings.first().map_or(0.0, |f| f.confidence),
        healthy,
        unknowable: vec![
            "A log of ss counts only the time in which the sender was busy, and says little about losses: \
             a capture tells their causes."
                .to_owned(),
        ],
        control: match v.control {
            Some(name) => Control { name, confidence: 1.0, evidence: "ss says so".to_owned() },
            None => Control { name: "unknown", confidence: 0.0, evidence: "ss does not say".to_owned() },
        },
        shares,
        findings,
    }
}
