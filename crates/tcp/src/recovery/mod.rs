//! Loss recovery: which segments are lost, which to send again, and when congestion control is asked.

pub mod linux26;
mod newreno;

pub use linux26::Linux26Recovery;
pub use newreno::NewReno;

use crate::cc::{CongestionControl, Cut};
use crate::config;
use crate::rto::RtoEstimator;
use crate::segments::{Acknowledged, Segments};
use crate::window::Window;
use farpace_trace::{Cause, RecoveryState};
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
    /// Our timestamp clock less TSecr.
    pub rtt_by_timestamp: Option<Span>,
    /// The segment carried data.
    pub has_data: bool,
    /// The segment changed the send window.
    pub window_update: bool,
    /// ECN echo.
    pub ece: bool,
    /// New data could be sent if the congestion window allowed it.
    pub new_data_waiting: bool,
    /// The greatest send window ever seen, in bytes.
    pub max_window: u32,
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
    /// Connection has SACK.
    pub sack: bool,
    /// Reductions, undos and the like, for the trace.
    pub causes: &'a mut Vec<Cause>,
}

impl Context<'_> {
    /// Takes the acknowledged rows off the queue and the round-trip sample they give.
    pub(crate) fn drop_acknowledged(&mut self, ack: &AckInput<'_>) -> Acknowledged {
        let done = self.segments.acknowledge(ack.snd_una);
        if !done.packets.is_zero() {
            // A timestamp is valid even for retransmissions (RFC 7323 §4); without one Karn's rule holds.
            let measured = done.first_sent_at.filter(|_| !done.retransmitted).map(|t| ack.now.since(t));
            let sample = if self.rto.prefers_timestamps() {
                ack.rtt_by_timestamp.or(measured)
            } else {
                measured.or(ack.rtt_by_timestamp)
            };
            if let Some(rtt) = sample {
                self.rto.sample(rtt, ack.snd_una, ack.snd_nxt);
            }
        }
        done
    }

    /// Asks congestion control for a new `ssthresh`, and notes why.
    pub(crate) fn cut(&mut self, cut: Cut) {
        let ssthresh = self.cc.ssthresh(self.window, cut);
        self.window.set_ssthresh(ssthresh);
        self.causes.push(match cut {
            Cut::FastRetransmit => Cause::CutFastRetransmit,
            Cut::Ecn => Cause::CutEcn,
            Cut::Timeout => Cause::CutTimeout,
        });
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

/// How a connection finds and repairs losses.
///
/// The contract: `on_ack` is called once for every acceptable ACK, with the acknowledged rows still queued;
/// it drops them (with [`Segments::acknowledge`]) and asks congestion control in its own order. After it,
/// and after `on_timeout`, `next_segment` is asked until it grants nothing; each grant is followed by
/// `on_retransmit`, after the row was marked.
pub trait LossRecovery: Send {
    /// An acknowledgment has arrived.
    fn on_ack(&mut self, ack: &AckInput<'_>, cx: &mut Context<'_>) -> AckOutcome;
    /// A segment to send again now, if one may be.
    fn next_segment(&self, view: &SendView<'_>) -> Option<Grant>;
    /// The granted segment was sent; `timestamp` is the TSval it carries.
    fn on_retransmit(&mut self, timestamp: u32);
    /// The retransmission timer fired. Afterwards the head of the queue is sent again.
    fn on_timeout(&mut self, snd_una: Seq, snd_nxt: Seq, cx: &mut Context<'_>);
    /// Congestion state.
    fn state(&self) -> RecoveryState;
    /// New data may be sent while this is below the congestion window.
    fn in_flight(&self, segments: &Segments) -> Packets {
        segments.in_flight()
    }
}

/// Makes the recovery that was chosen.
pub(crate) fn make(kind: config::Recovery) -> Box<dyn LossRecovery> {
    match kind {
        config::Recovery::Linux26(switches) => Box::new(Linux26Recovery::new(switches)),
        config::Recovery::NewReno => Box::new(NewReno::default()),
    }
}
