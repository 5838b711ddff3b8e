//! The verdict on one direction of a connection.

use crate::attributed_view::AttributedView;
use crate::cause::{Cause, Kind};
use crate::control::{self, Control};
use crate::evidence;
use crate::finding::Finding;
use crate::flow::{Flow, Side};
use crate::view::{Vantage, View};
use farpace_units::{ByteCount, Instant, Rate, Span};

/// A fault that takes less than this share of the time is told, but does not make a transfer unhealthy.
pub const MIN_SHARE: f64 = 0.05;

/// Time by cause.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// The cause.
    pub cause: Cause,
    /// Its time.
    pub time: Span,
}

/// The verdict on a transfer.
#[derive(Clone, Debug)]
pub struct Diagnosis {
    /// The end that sent.
    pub side: Side,
    /// Where the capture was taken.
    pub vantage: Vantage,
    /// First packet of the connection.
    pub start: Instant,
    /// ACK of the last byte.
    pub end: Instant,
    /// The ACKs of the data, or the data of the ACKs, are not in the capture: what limited it is not known.
    pub is_one_way: bool,
    /// Data is in the capture. Without its ACKs it is not known what arrived.
    pub has_data: bool,
    /// Payload acknowledged; of one direction alone, payload that was sent.
    pub bytes: ByteCount,
    /// Payload that was sent beyond it, and that nothing in the capture acknowledges. Zero where ACKs are not
    /// in the capture.
    pub unacknowledged: ByteCount,
    /// Payload per time.
    pub goodput: Rate,
    /// The least round trip; none if it cannot be known.
    pub base_rtt: Option<Span>,
    /// The rate of the path, as far as the transfer shows it.
    pub path_rate: Rate,
    /// Where the time went; adds up to the time from `start` to `end`. The largest first.
    pub shares: Vec<Share>,
    /// What mattered, the costliest first.
    pub findings: Vec<Finding>,
    /// The cause with the largest share.
    pub dominant: Cause,
    /// How sure that is, 0 to 1.
    pub confidence: f64,
    /// Nothing is wrong beyond what limits every transfer.
    pub healthy: bool,
    /// What this capture cannot tell.
    pub unknowable: Vec<String>,
    /// The congestion control of the sender.
    pub control: Control,
}

impl Diagnosis {
    /// How long the transfer took.
    pub fn duration(&self) -> Span {
        self.end.since(self.start)
    }

    /// The time of one cause.
    pub fn time_of(&self, cause: Cause) -> Span {
        self.shares.iter().find(|s| s.cause == cause).map_or(Span::ZERO, |s| s.time)
    }

    /// Its share of the time, 0 to 1.
    pub fn share_of(&self, cause: Cause) -> f64 {
        let whole = self.duration().as_secs_f64();
        if whole > 0.0 { self.time_of(cause).as_secs_f64() / whole } else { 0.0 }
    }
}

/// The most that is known where times are wrong.
const MISDATED: f64 = 0.5;

/// What one direction tells without ACKs.
const ONE_WAY: [Cause; 4] = [Cause::SynLoss, Cause::Reset, Cause::DuplicateCapture, Cause::Unknown];

/// Says why what `side` sent took the time it took.
pub fn diagnose(flow: &Flow, side: Side) -> Diagnosis {
    let transfer = AttributedView::new(flow, side);
    let AttributedView { view, time } = &transfer;
    let mut shares: Vec<Share> = Cause::ALL
        .iter()
        .map(|cause| Share { cause: *cause, time: time.of(*cause) })
        .filter(|s| !s.time.is_zero())
        .collect();
    shares.sort_by(|a, b| b.time.cmp(&a.time).then(a.cause.cmp(&b.cause)));
    let mut findings: Vec<Finding> =
        Cause::ALL.iter().filter_map(|cause| evidence::find(*cause, &transfer)).collect();
    if view.is_one_way() {
        findings.retain(|f| ONE_WAY.contains(&f.cause));
    }
    findings.sort_by(|a, b| b.time.cmp(&a.time).then(a.cause.cmp(&b.cause)));
    let dominant = shares.first().map_or(Cause::Unknown, |s| s.cause);
    if flow.is_misdated {
        findings.iter_mut().for_each(|f| f.confidence = f.confidence.min(MISDATED));
    }
    let confidence = findings.iter().find(|f| f.cause == dominant).map_or(0.5, |f| f.confidence);
    let whole = view.duration().as_secs_f64();
    let share = |time: Span| if whole > 0.0 { time.as_secs_f64() / whole } else { 0.0 };
    let healthy = !findings.iter().any(|f| match f.cause.info().kind {
        Kind::Fault => share(f.time) >= MIN_SHARE || matches!(f.cause, Cause::Reset | Cause::MtuBlackHole),
        _ => false,
    });
    let known = view.half.base_rtt();
    let unheard = view.is_one_way() && view.has_data();
    Diagnosis {
        side,
        vantage: view.vantage,
        start: view.start,
        end: view.end,
        is_one_way: view.is_one_way(),
        has_data: view.has_data(),
        bytes: ByteCount::new(if unheard { view.half.payload() } else { view.half.acknowledged() }),
        unacknowledged: ByteCount::new(if unheard {
            0
        } else {
            view.half.payload().saturating_sub(view.half.acknowledged())
        }),
        goodput: Rate::from_bytes_per_sec_f64(view.goodput()),
        base_rtt: known,
        path_rate: Rate::from_bytes_per_sec_f64(view.capacity),
        dominant,
        confidence,
        healthy,
        unknowable: unknowable(view),
        control: control::identify(view),
        shares,
        findings,
    }
}

/// What cannot be known from this capture, in sentences.
fn unknowable(view: &View<'_>) -> Vec<String> {
    let mut all = Vec::new();
    let mut say = |text: &str| all.push(text.to_owned());
    match view.vantage {
        Vantage::Sender => {
            say(
                "Whether a segment was lost on the way there or its ACK on the way back is told only by what \
                 came after it. A capture at the receiver would tell.",
            );
        }
        Vantage::Receiver => {
            say("The capture was taken at the receiver. Whether the sender's program, its processor or its \
                 send buffer kept data back cannot be told apart with certainty, and packets lost before the \
                 capture are known only as gaps.");
        }
        Vantage::Middle => {
            say(
                "The capture was taken between the ends. Windows and waits of the sender are estimated from \
                 the round trip between the sender and the capture point.",
            );
        }
        Vantage::Unknown => {
            say(
                "The capture shows one direction only, or too little of the other, so it does not tell where \
                 on the path it was taken.",
            );
        }
    }
    if !matches!(view.vantage, Vantage::Sender | Vantage::Unknown) && !view.sees_near_queues() {
        say("Without TCP timestamps, queues between the sender and the capture point are not seen. A full \
             path and a slow sender look alike there.");
    }
    if !view.flow.saw_syn() {
        say("The handshake is not in the capture: window scale, segment size and the options agreed on are \
             not known, and neither is what came before.");
    }
    if view.flow.lacks_options() {
        say("The snap length cut TCP options off: what is missing (SACK blocks, timestamps, what the SYNs \
             offer) is not known. 96 bytes hold all headers over IPv4, 128 those over IPv6.");
    }
    if view.flow.is_misdated {
        say(
            "More than one in a hundred packets has a time that does not fit its place in the file, so that \
             waits and round trips are not certain. reordercap puts packets in order.",
        );
    }
    if view.half.overflow() > 0 {
        say("More was outstanding than this analysis follows; some retransmissions were not matched.");
    }
    if view.flow.stopped.is_some() {
        say("The capture has more connections than there is memory for. This one was not followed to its \
             end: read it alone (editcap, or tcpdump with a filter).");
    }
    all
}
