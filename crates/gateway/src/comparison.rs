//! What splitting gains, as a randomised comparison: a share of the connections that could be split passes
//! unsplit, and as many of the split ones are measured in the same way.
//!
//! Both are measured on the WAN side: from the SYN to the last acknowledgment of payload. Connections that
//! are short, or that pass for another reason, are in neither group.

use crate::shared_flows::ConnectionKey;
use crate::view::GatewaySide;
use farpace_units::{ByteCount, Instant, RandomStream, Seq, Span};
use farpace_wire::tcp::{TcpFlags, TcpHeader};
use std::collections::BTreeMap;

/// Largest share of connections that may pass unsplit for a comparison.
pub const MAX_CONTROL_GROUP: f64 = 0.5;
/// Connections of the control group that are followed at most; without room a connection is in neither group.
pub const MAX_WATCHED: usize = 16_384;
/// Results that wait for [`Gateway::take_results`](crate::Gateway::take_results) at most. Further ones are
/// not kept.
pub const MAX_RESULTS: usize = 65_536;
/// A connection of the control group that is silent for so long is followed no more.
const IDLE: Span = Span::from_secs(600);
/// Draws are whole numbers below this.
const DRAWS: u64 = 1 << 32;

/// A group of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ComparisonGroup {
    /// Split, and measured.
    Split,
    /// Passed unsplit: the control group.
    Unsplit,
}

/// What a connection of the comparison has done, from its SYN to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComparisonResult {
    /// Its group.
    pub group: ComparisonGroup,
    /// Payload acknowledged by the host on the WAN side, and by that on the LAN side (if split: by the
    /// gateway).
    pub payload: [ByteCount; 2],
    /// From the SYN to the last acknowledgment of payload.
    pub time: Span,
}

/// The comparison of one gateway.
#[derive(Default)]
pub(crate) struct Comparison {
    watched: BTreeMap<ConnectionKey, WatchedFlow>,
    results: Vec<ComparisonResult>,
}

/// A split connection of the comparison.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    began: Instant,
    payload: [ByteCount; 2],
    last: Instant,
}

/// A connection of the control group.
struct WatchedFlow {
    began: Instant,
    opener_side: GatewaySide,
    /// The round trip on the WAN side below which it is in neither group; none once that is settled.
    min_rtt: Option<Span>,
    answered_at: Option<Instant>,
    /// Of the opener, and of the acceptor.
    directions: [WatchedDirection; 2],
    last: Instant,
    last_progress: Instant,
}

#[derive(Default)]
struct WatchedDirection {
    /// The number that is acknowledged next; none before the SYN.
    next: Option<Seq>,
    acknowledged: u64,
    /// The number behind what was sent, and behind its FIN.
    sent: Option<Seq>,
    end: Option<Seq>,
}

impl Comparison {
    /// The group of a connection that can be split, if it is in one. `share` is that of the control group.
    pub fn draw(&self, share: f64, random: &mut RandomStream) -> Option<ComparisonGroup> {
        if share <= 0.0 || self.watched.len() >= MAX_WATCHED {
            return None;
        }
        let draw = random.below(DRAWS) as f64 / DRAWS as f64;
        match draw / share {
            at if at < 1.0 => Some(ComparisonGroup::Unsplit),
            at if at < 2.0 => Some(ComparisonGroup::Split),
            _ => None,
        }
    }

    /// A connection of the control group begins with its SYN.
    pub fn watch(
        &mut self,
        now: Instant,
        key: ConnectionKey,
        opener_side: GatewaySide,
        min_rtt: Option<Span>,
        syn: &TcpHeader,
    ) {
        let mut directions: [WatchedDirection; 2] = Default::default();
        directions[0].next = Some(syn.seq + 1);
        let flow = WatchedFlow {
            began: now,
            opener_side,
            min_rtt,
            answered_at: None,
            directions,
            last: now,
            last_progress: now,
        };
        self.watched.insert(key, flow);
    }

    /// There is a connection of the control group.
    pub fn is_running(&self) -> bool {
        !self.watched.is_empty()
    }

    /// A packet passes unsplit. True if it belongs to the control group.
    pub fn on_passing(
        &mut self,
        now: Instant,
        key: &ConnectionKey,
        side: GatewaySide,
        header: &TcpHeader,
        payload: usize,
    ) -> bool {
        let Some(flow) = self.watched.get_mut(key) else { return false };
        if flow.is_followed_by(side, header) {
            self.watched.remove(key);
            return false;
        }
        match flow.on_segment(now, side, header, payload) {
            Watch::GoesOn => {}
            Watch::Short => drop(self.watched.remove(key)),
            Watch::Over(result) => {
                self.watched.remove(key);
                self.finish(result);
            }
        }
        true
    }

    /// A connection of either group is over. Without payload it says nothing.
    pub fn finish(&mut self, result: ComparisonResult) {
        let any = result.payload.iter().any(|bytes| !bytes.is_zero());
        if any && self.results.len() < MAX_RESULTS {
            self.results.push(result);
        }
    }

    /// The results since the last call. Connections that are silent for long are forgotten.
    pub fn take(&mut self, now: Instant) -> Vec<ComparisonResult> {
        self.watched.retain(|_, flow| now.since(flow.last) < IDLE);
        std::mem::take(&mut self.results)
    }
}

impl Sample {
    /// The connection has begun with its SYN.
    pub const fn begin(now: Instant) -> Self {
        Sample { began: now, payload: [ByteCount::ZERO; 2], last: now }
    }
    /// So much is acknowledged by now.
    pub fn see(&mut self, now: Instant, payload: [ByteCount; 2]) {
        if payload != self.payload {
            (self.payload, self.last) = (payload, now);
        }
    }
    /// What has become of it.
    pub fn result(&self) -> ComparisonResult {
        let time = self.last.since(self.began);
        ComparisonResult { group: ComparisonGroup::Split, payload: self.payload, time }
    }
}

enum Watch {
    GoesOn,
    /// It is in neither group.
    Short,
    Over(ComparisonResult),
}

impl WatchedFlow {
    fn on_segment(&mut self, now: Instant, side: GatewaySide, header: &TcpHeader, payload: usize) -> Watch {
        self.last = now;
        let from = usize::from(side != self.opener_side);
        let flags = header.flags;
        if flags.contains(TcpFlags::RST) {
            return Watch::Over(self.result());
        }
        if flags.contains(TcpFlags::SYN) {
            if from == 1 && self.answered_at.is_none() {
                self.directions[1].next = Some(header.seq + 1);
                self.answered_at = Some(now);
                return self.judge_rtt(GatewaySide::Lan, now.since(self.began));
            }
            return Watch::GoesOn;
        }
        if let (0, Some(answered)) = (from, self.answered_at)
            && let Watch::Short = self.judge_rtt(GatewaySide::Wan, now.since(answered))
        {
            return Watch::Short;
        }
        let length = payload as u32 + u32::from(flags.contains(TcpFlags::FIN));
        self.directions[from].on_sent(header.seq + length);
        if flags.contains(TcpFlags::FIN) {
            self.directions[from].end = Some(header.seq + length);
        }
        if flags.contains(TcpFlags::ACK) && self.directions[1 - from].on_ack(header.ack) {
            self.last_progress = now;
        }
        match self.directions.iter().all(WatchedDirection::is_over) {
            true => Watch::Over(self.result()),
            false => Watch::GoesOn,
        }
    }

    /// This is the SYN of another connection between the same ends.
    fn is_followed_by(&self, side: GatewaySide, header: &TcpHeader) -> bool {
        let is_syn = header.flags.contains(TcpFlags::SYN) && !header.flags.contains(TcpFlags::ACK);
        is_syn && (side != self.opener_side || self.directions[0].next != Some(header.seq + 1))
    }

    /// The handshake on the WAN side took so long, if the opener is on `side`.
    fn judge_rtt(&mut self, side: GatewaySide, rtt: Span) -> Watch {
        if self.opener_side == side && self.min_rtt.take().is_some_and(|least| rtt < least) {
            return Watch::Short;
        }
        Watch::GoesOn
    }

    fn result(&self) -> ComparisonResult {
        let [opener, acceptor] = &self.directions;
        let [of_opener, of_acceptor] = [opener, acceptor].map(WatchedDirection::payload);
        let payload = match self.opener_side {
            GatewaySide::Lan => [of_opener, of_acceptor],
            GatewaySide::Wan => [of_acceptor, of_opener],
        };
        let time = self.last_progress.since(self.began);
        ComparisonResult { group: ComparisonGroup::Unsplit, payload, time }
    }
}

impl WatchedDirection {
    fn on_sent(&mut self, end: Seq) {
        self.sent = Some(self.sent.map_or(end, |sent| sent.later(end)));
    }

    /// True if payload was acknowledged. What was not sent cannot be.
    fn on_ack(&mut self, ack: Seq) -> bool {
        let was_sent = self.sent.is_some_and(|sent| sent.after_eq(ack));
        let Some(next) = self.next.filter(|next| ack.after(*next) && was_sent) else { return false };
        let before = self.payload();
        self.acknowledged += u64::from(ack.bytes_since(next));
        self.next = Some(ack);
        self.payload() > before
    }

    fn is_over(&self) -> bool {
        self.end.zip(self.next).is_some_and(|(end, next)| !end.after(next))
    }

    /// Without the FIN.
    fn payload(&self) -> ByteCount {
        ByteCount::new(self.acknowledged - u64::from(self.is_over() && self.acknowledged > 0))
    }
}
