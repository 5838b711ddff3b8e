//! Loss recovery: which segments are lost, which to send again, and when congestion control is asked.

mod linux;
pub mod linux26;
mod newreno;
mod sack;

pub use linux::LinuxRecovery;
pub use linux26::Linux26Recovery;
pub use newreno::NewReno;
pub use sack::SackRecovery;

use crate::cc::{AckSample, CongestionControl, CongestionEvent, Cut};
use crate::config;
use crate::rto::{MinRtt, RtoEstimator, RttSample, RttSource};
use crate::segments::{Acknowledged, SegmentRow, Segments, Tags};
use crate::window::Window;
use farpace_events::{Cause, RecoveryState};
use farpace_units::{Instant, Packets, Seq, Span};
use farpace_wire::tcp::SackBlocks;

/// What an acknowledgment says, before anything has been done about it. SND.UNA is already moved; the
/// acknowledged rows are still in the queue, because the Linux 2.6 scoreboard reads them.
#[derive(Clone, Debug)]
pub struct AckInput<'a> {
    /// Arrival.
    pub now: Instant,
    /// SND.UNA before this ACK.
    pub prior_snd_una: Seq,
    /// SND.UNA now: SEG.ACK, unless that was old.
    pub snd_una: Seq,
    /// SEG.ACK.
    pub ack: Seq,
    /// SND.NXT.
    pub snd_nxt: Seq,
    /// SACK blocks, raw, in wire order.
    pub sack: &'a SackBlocks,
    /// TSecr, if the segment had timestamps.
    pub tsecr: Option<u32>,
    /// TSval, if the segment had timestamps.
    pub tsval: Option<u32>,
    /// Our timestamp clock less TSecr.
    pub rtt_by_timestamp: Option<Span>,
    /// When the timed segment was sent, if this ACK is the first to cover it.
    pub timed_at: Option<Instant>,
    /// Round trip of a segment that asked for an ACK at once and was answered with this one.
    pub undelayed: Option<Span>,
    /// It answers an old byte that was sent to get it, and is no duplicate.
    pub answers_probe: bool,
    /// The segment carried data.
    pub has_data: bool,
    /// The segment changed the send window.
    pub window_update: bool,
    /// ECN echo.
    pub ece: bool,
    /// Segments that it says were marked; [`Packets::MAX`] for all that it delivers.
    pub marked: Packets,
    /// New data could be sent if the congestion window allowed it.
    pub new_data_waiting: bool,
    /// Something is unsent, and the peer's window has room for some of it.
    pub unsent_in_window: bool,
    /// The greatest send window ever seen, in bytes.
    pub max_window: u32,
    /// The congestion window held data back during the round trip that this ACK ends.
    pub cwnd_limited: bool,
}

impl<'a> AckInput<'a> {
    /// An ACK with SACK blocks and nothing else, whose SEG.ACK is `snd_una`, while the window holds data
    /// back: for tests and benchmarks.
    pub const fn of(
        now: Instant,
        prior_snd_una: Seq,
        snd_una: Seq,
        snd_nxt: Seq,
        sack: &'a SackBlocks,
    ) -> Self {
        AckInput {
            now,
            prior_snd_una,
            snd_una,
            ack: snd_una,
            snd_nxt,
            sack,
            tsecr: None,
            tsval: None,
            rtt_by_timestamp: None,
            timed_at: None,
            undelayed: None,
            answers_probe: false,
            has_data: false,
            window_update: false,
            ece: false,
            marked: Packets::ZERO,
            new_data_waiting: false,
            unsent_in_window: false,
            max_window: 1 << 20,
            cwnd_limited: true,
        }
    }
}

/// What recovery may change: the connection owns it, recovery decides.
pub struct Context<'a> {
    /// The retransmission queue.
    pub segments: &'a mut Segments,
    /// The congestion window.
    pub window: &'a mut Window,
    /// The congestion control.
    pub cc: &'a mut dyn CongestionControl,
    /// Round-trip estimation and timeout.
    pub rto: &'a mut RtoEstimator,
    /// Least round trip of late.
    pub min_rtt: &'a mut MinRtt,
    /// Connection has SACK.
    pub sack: bool,
    /// Reductions, undos and the like, for the trace.
    pub causes: &'a mut Vec<Cause>,
}

impl Context<'_> {
    /// Takes the acknowledged rows off the queue and the round-trip sample they give.
    pub(crate) fn drop_acknowledged(&mut self, ack: &AckInput<'_>) -> Acknowledged {
        self.drop_acknowledged_each(ack, |_, _, _| {})
    }

    /// The same; rows that go are shown to `see` first, as in [`Segments::acknowledge_each`].
    pub(crate) fn drop_acknowledged_each(
        &mut self,
        ack: &AckInput<'_>,
        see: impl FnMut(&SegmentRow, Tags, u32),
    ) -> Acknowledged {
        let done = self.segments.acknowledge_each(ack.snd_una, see);
        if !done.packets.is_zero() {
            // A timestamp is valid even for retransmissions (RFC 7323 §4); without one Karn's rule holds.
            let measured = done.first_sent_at.filter(|_| !done.retransmitted).map(|t| ack.now.since(t));
            let sample = match self.rto.source() {
                RttSource::Segment => measured.or(ack.rtt_by_timestamp),
                RttSource::Timestamp => ack.rtt_by_timestamp.or(measured),
                RttSource::Timed => ack.rtt_by_timestamp.or(ack.timed_at.map(|at| ack.now.since(at))),
            };
            // Of the least round trip timestamps say too little: within a tick of theirs it is zero.
            self.sample_rtt(ack, sample, measured);
        }
        done
    }

    /// Takes a round trip in that a SACK told of a segment sent once.
    pub(crate) fn sample_sacked(&mut self, ack: &AckInput<'_>, rtt: Span) {
        let timed = self.rto.source() == RttSource::Timed;
        self.sample_rtt(ack, (!timed).then_some(rtt), Some(rtt));
    }

    /// `rtt` is for the timeout, `least` for all that reckons with the least round trip.
    fn sample_rtt(&mut self, ack: &AckInput<'_>, rtt: Option<Span>, least: Option<Span>) {
        let AckInput { now, undelayed, snd_una, snd_nxt, .. } = *ack;
        if let Some(rtt) = rtt {
            self.rto.sample(&RttSample { now, rtt, undelayed, snd_una, snd_nxt });
        }
        if let Some(least) = least {
            self.min_rtt.sample(now, undelayed.map_or(least, |u| u.min(least)));
        }
    }

    /// A round trip as one of all paths, if there are several: where packets are few, they take the shortest
    /// path only. That is no reason to take a round trip of the longest one for a queue, or for a loss.
    pub(crate) fn of_all_paths(&self, rtt: Span) -> Span {
        rtt.max(self.min_rtt.base_of_paths())
    }

    /// What congestion control is told of an ACK that took `done` off the queue, with `before` segments in
    /// flight when it arrived. Call it when losses are marked: it tells congestion control of them.
    pub(crate) fn sample(&mut self, ack: &AckInput<'_>, done: &Acknowledged, before: Packets) -> AckSample {
        self.tell_losses(ack.now);
        let mut rate = self.segments.take_rate_sample(ack.now, self.min_rtt.get());
        if let Some(rate) = &mut rate {
            rate.rtt = rate.rtt.map(|rtt| self.of_all_paths(rtt));
        }
        let measured = ack
            .undelayed
            .or_else(|| done.first_sent_at.filter(|_| !done.retransmitted).map(|at| ack.now.since(at)));
        AckSample {
            snd_una: ack.snd_una,
            snd_nxt: ack.snd_nxt,
            rtt: measured.map(|rtt| self.of_all_paths(rtt)),
            in_flight_before: before,
            in_flight: self.segments.in_flight(),
            min_rtt: self.min_rtt.get().map(|rtt| self.of_all_paths(rtt)),
            base_of_paths: self.min_rtt.base_of_paths(),
            several_paths: self.min_rtt.is_several(),
            srtt: self.rto.srtt(),
            mss: self.window.mss(),
            max_window: ack.max_window,
            cwnd_limited: ack.cwnd_limited,
            ece: ack.ece,
            marked: ack.marked.min(done.packets),
            sack: self.sack,
            peer_clock: ack.tsval,
            rate,
            ..AckSample::of(ack.now, done.packets)
        }
    }

    /// Lets congestion control measure.
    pub(crate) fn measure(&mut self, sample: &AckSample) {
        if !sample.delivered.is_zero() {
            self.cc.on_acked(sample);
        }
    }

    /// Sets the window in recovery, unless congestion control sizes it by a model of its own.
    pub(crate) fn reduce_to(&mut self, cwnd: Packets) {
        if !self.cc.owns_window() {
            self.window.set_cwnd(cwnd);
        }
    }

    /// Lets congestion control raise the window. One that sizes it by a model is asked at the end of every
    /// ACK.
    pub(crate) fn grow(&mut self, sample: &AckSample) {
        if !self.cc.owns_window() {
            self.cc.on_ack(self.window, sample);
        }
    }

    /// Tells congestion control of the segments found lost since the last call, if it wants to know.
    pub(crate) fn tell_losses(&mut self, now: Instant) {
        let Context { segments, cc, window, .. } = self;
        segments.take_losses(|lost| cc.on_lost(now, window, &lost));
    }

    /// Tells congestion control that a timeout has been handled.
    pub(crate) fn enter_loss(&mut self, now: Instant) {
        let total_lost = self.segments.total_lost();
        self.cc.on_event(now, self.window, CongestionEvent::EnterLoss { total_lost });
    }

    /// Asks congestion control for a new `ssthresh`, and notes why.
    pub(crate) fn cut(&mut self, now: Instant, cut: Cut) {
        let cause = match cut {
            Cut::FastRetransmit => Cause::CutFastRetransmit,
            Cut::Ecn => Cause::CutEcn,
            Cut::Timeout => Cause::CutTimeout,
        };
        self.cut_because(now, cut, cause);
    }

    /// The same, under another cause.
    pub(crate) fn cut_because(&mut self, now: Instant, cut: Cut, cause: Cause) {
        let ssthresh = self.cc.ssthresh(now, self.window, self.segments.packets_out(), cut);
        self.window.set_ssthresh(ssthresh);
        self.causes.push(cause);
    }
}

/// What an ACK did, for the connection's timers.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckOutcome {
    /// What the cumulative acknowledgment took off the queue.
    pub acknowledged: Acknowledged,
    /// The peer dropped data that it had SACKed; the retransmission timer must be restarted.
    pub reneged: bool,
}

/// What recovery sees when it is asked for a segment to send again.
#[derive(Clone, Copy, Debug)]
pub struct SendView<'a> {
    /// The retransmission queue.
    pub segments: &'a Segments,
    /// The congestion window.
    pub cwnd: Packets,
    /// New data could be sent now.
    pub can_send_new: bool,
}

/// Permission to send the segment at `index` again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Index in the retransmission queue.
    pub index: usize,
    /// Why.
    pub cause: Cause,
}

/// A segment that was just sent.
#[derive(Clone, Copy, Debug)]
pub struct SentKind {
    /// When.
    pub now: Instant,
    /// Index in the retransmission queue.
    pub index: usize,
    /// It was never sent before.
    pub fresh: bool,
    /// The TSval it carries.
    pub timestamp: u32,
    /// SND.NXT, this segment included.
    pub snd_nxt: Seq,
    /// Smoothed round trip; zero before the first sample.
    pub srtt: Span,
    /// When the retransmission timer will fire.
    pub rto_deadline: Option<Instant>,
    /// The retransmission timeout.
    pub rto: Span,
}

/// The retransmission timer, or one of recovery's own, has fired.
#[derive(Clone, Copy, Debug)]
pub struct Expiry {
    /// When.
    pub now: Instant,
    /// SND.UNA.
    pub snd_una: Seq,
    /// SND.NXT.
    pub snd_nxt: Seq,
    /// New data could be sent if the congestion window allowed it.
    pub new_data_waiting: bool,
    /// The last segment that was sent has not left the host: nobody can have answered it.
    pub tail_inside: bool,
    /// The same, whatever Nagle's algorithm says.
    pub unsent_in_window: bool,
    /// The peer's window is shut.
    pub window_shut: bool,
}

/// All that could leave has left.
#[derive(Clone, Copy, Debug)]
pub struct Pushed {
    /// When.
    pub now: Instant,
    /// SND.UNA.
    pub snd_una: Seq,
    /// SND.NXT.
    pub snd_nxt: Seq,
    /// New segments that left.
    pub sent: u32,
    /// There was something to send, and it was looked at.
    pub tried: bool,
    /// The congestion window made a burst wait.
    pub limited: bool,
    /// The window that a connection begins with.
    pub initial_window: Packets,
}

/// What recovery counts for people, with Linux's meaning (tcp(7), TCP_INFO).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tallies {
    /// Segments known to have arrived, retransmissions in vain included.
    pub delivered: u64,
    /// Of them, those that were acknowledged with a congestion mark.
    pub delivered_ce: u64,
    /// Segments that D-SACKs reported.
    pub dsack_dups: u64,
    /// Times that reordering was seen.
    pub reord_seen: u64,
    /// Segments sent again.
    pub retransmitted: u64,
    /// Degree of reordering.
    pub reordering: Packets,
}

/// Why outstanding segments were cut into smaller ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resegmented {
    /// The path carries smaller segments only; what was longer is marked lost, without any congestion.
    PathShrank,
    /// A probe of a larger size was lost, and is marked lost in pieces.
    ProbeLost {
        /// It is the only loss: a reduction that began with this ACK is to be taken back (RFC 4821 §7.6.2).
        alone: bool,
    },
}

/// The timers that recovery has besides the retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryTimer {
    /// A segment will count as lost (RFC 8985 §6.2 step 5).
    Reordering,
    /// Nothing was heard for two round trips: probe the tail (RFC 8985 §7).
    TailLossProbe,
    /// The retransmission timeout, of a recovery that [has one timer](LossRecovery::owns_timer).
    Retransmission,
}

/// How a connection finds and repairs losses.
///
/// The contract: `on_ack` is called once for every acceptable ACK, with the acknowledged rows still queued;
/// it drops them (with [`Segments::acknowledge`]) and asks congestion control in its own order. After it,
/// and after `on_timeout` and `on_timer`, `next_segment` is asked until it grants nothing; then new segments
/// are sent while `may_send_new`. Each segment sent is followed by `on_sent`, after its row was marked.
pub trait LossRecovery: Send {
    /// An acknowledgment has arrived.
    fn on_ack(&mut self, ack: &AckInput<'_>, cx: &mut Context<'_>) -> AckOutcome;
    /// Entries of the retransmission queue that ACKs have made it visit since the last call, of a
    /// recovery that searches a list as its kernel does; others report none.
    fn take_visited(&mut self) -> u64 {
        0
    }
    /// A segment to send again now, if one may be.
    fn next_segment(&self, view: &SendView<'_>) -> Option<Grant>;
    /// A segment was sent.
    fn on_sent(&mut self, sent: &SentKind, segments: &Segments);
    /// The transmit queue of the host had no room for a segment: the window comes down as for a congestion
    /// mark, once a round trip.
    fn on_transmit_queue_full(&mut self, now: Instant, snd_una: Seq, snd_nxt: Seq, cx: &mut Context<'_>);
    /// The retransmission timer fired. Afterwards the head of the queue is sent again.
    fn on_timeout(&mut self, expiry: &Expiry, cx: &mut Context<'_>);
    /// Recovery's own next deadline, and which timer it is. Pure.
    fn deadline(&self) -> Option<(Instant, RecoveryTimer)> {
        None
    }
    /// It has one timer for everything: the connection sets none for the retransmission of data. When
    /// [`on_timer`](Self::on_timer) says so, that has come, and [`on_timeout`](Self::on_timeout) follows.
    fn owns_timer(&self) -> bool {
        false
    }
    /// That timer, at this time, or not at all.
    fn set_timer(&mut self, _at: Option<Instant>) {}
    /// The segment that is about to be sent again counts as a retransmission in flight.
    fn counts_as_retransmission(&self) -> bool {
        true
    }
    /// New data goes before retransmissions.
    fn new_data_first(&self) -> bool {
        false
    }
    /// The pacing timer has expired: segments may leave.
    fn on_pacing_timer(&mut self) {}
    /// [`next_segment`](Self::next_segment) has granted all it would, and what goes before it has left; asked
    /// before and after new data.
    fn pass_is_over(&mut self, _snd_nxt: Seq) {}
    /// A probe of new data is due: one segment, whatever the window says.
    fn probes_new(&self) -> bool {
        false
    }
    /// All that could leave has left.
    fn pushed(&mut self, _pushed: &Pushed, _cx: &mut Context<'_>) {}
    /// What it has counted.
    fn tallies(&self) -> Tallies {
        Tallies::default()
    }
    /// That deadline has come. Afterwards it is later, or none. True: the retransmission timer starts anew.
    fn on_timer(&mut self, _expiry: &Expiry, _cx: &mut Context<'_>) -> bool {
        false
    }
    /// Outstanding segments were cut into smaller ones: every index and row number that was kept is void. The
    /// pieces are marked lost and wait to be sent again, which is no sign of congestion.
    fn on_resegmented(&mut self, _why: Resegmented, _at: &Expiry, _cx: &mut Context<'_>) {}
    /// Congestion state.
    fn state(&self) -> RecoveryState;
    /// Segments that count against the congestion window.
    fn in_flight(&self, segments: &Segments) -> Packets {
        segments.in_flight()
    }
    /// A new segment may be sent, as far as the congestion window is concerned.
    fn may_send_new(&self, segments: &Segments, cwnd: Packets) -> bool {
        self.in_flight(segments) < cwnd
    }
    /// So many new segments may be sent one after the other at this instant, of which
    /// [`on_sent`](Self::on_sent) needs to be told the last alone. Zero: each has to be asked for.
    fn may_send_run(&self, _segments: &Segments, _cwnd: Packets) -> u32 {
        0
    }
}

/// Makes the recovery that was chosen; without SACK the modern one cannot do its work, and NewReno takes
/// over.
pub(crate) fn make(kind: config::Recovery, sack: bool) -> Box<dyn LossRecovery> {
    match kind {
        config::Recovery::Modern(_) if !sack => Box::new(NewReno::default()),
        config::Recovery::Linux(switches) => Box::new(LinuxRecovery::new(switches, sack)),
        config::Recovery::Linux26(switches) => Box::new(Linux26Recovery::new(switches)),
        config::Recovery::Modern(switches) => Box::new(SackRecovery::new(switches)),
        config::Recovery::NewReno => Box::new(NewReno::default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::PerAckReno;
    use crate::rto::TcpClock;

    fn us(n: u64) -> Instant {
        Instant::ZERO + Span::from_micros(n)
    }

    /// Breaks: a paced sender has no delivery rate where ACKs tell of two segments: the least round trip is
    /// that of a first segment, and the interval of a sample that of a second one, which is shorter.
    #[test]
    fn samples_over_pairs_of_paced_segments_have_a_rate() {
        const MSS: u32 = 1_000;
        let seq = |n: u64| Seq::new(n as u32 * MSS);
        let mut segments = Segments::default();
        segments.measure_rates();
        let mut window = Window::new(Packets::new(100), None, Packets::MAX, config::Abc::Off, MSS);
        let mut min_rtt = MinRtt::default();
        let mut rto = RtoEstimator::new(config::Rto::Linux26, Span::ZERO, TcpClock::default());
        // A segment each 100 us; the ACK of a pair comes 10 ms after its second one.
        for n in 0..400 {
            let now = us(n * 100);
            if let Some(second) = n.checked_sub(100)
                && second % 2 == 1
            {
                let sack = SackBlocks::default();
                let input = AckInput::of(now, seq(second - 1), seq(second + 1), seq(n), &sack);
                let mut cx = Context {
                    segments: &mut segments,
                    window: &mut window,
                    cc: &mut PerAckReno,
                    rto: &mut rto,
                    min_rtt: &mut min_rtt,
                    sack: true,
                    causes: &mut Vec::new(),
                };
                let done = cx.drop_acknowledged(&input);
                let rate = cx.sample(&input, &done, Packets::new(100)).rate.unwrap();
                assert!(rate.rate.is_some(), "{rate:?}");
            }
            segments.push(seq(n), MSS, now);
        }
    }
}
