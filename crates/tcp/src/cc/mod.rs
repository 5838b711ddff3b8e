//! Congestion control: one algorithm a file, behind one contract.

mod abe;
mod bbr;
mod bbr1;
mod bic;
mod cubic;
mod dctcp;
mod extra_acked;
mod farpace;
mod fast_start;
mod filters;
mod fraction;
mod highspeed;
mod htcp;
mod hybla;
mod hystart;
mod illinois;
mod ledbat_plus_plus;
mod linux;
#[cfg(test)]
mod operations;
mod per_ack_reno;
mod reno;
mod rounds;
mod scalable;
mod slow_start;
mod split_mix;
mod star;
mod tcp_j;
#[cfg(test)]
mod testing;
mod vegas;
mod veno;
mod westwood;
mod westwood_plus;
mod windowed_max;

pub use abe::Abe;
pub use bbr::Bbr;
pub use bbr1::Bbr1;
pub use bic::Bic;
pub use cubic::Cubic;
pub use dctcp::Dctcp;
pub use farpace::Farpace;
pub use fast_start::{FastStart, SHORT_RTT, StartPace};
pub use highspeed::HighSpeed;
pub use htcp::HTcp;
pub use hybla::Hybla;
pub use hystart::HyStart;
pub use illinois::Illinois;
pub use ledbat_plus_plus::LedbatPlusPlus;
pub use linux::{LinuxCubic, LinuxReno};
pub use per_ack_reno::PerAckReno;
pub use reno::Reno;
pub use scalable::Scalable;
pub use slow_start::SlowStart;
pub use star::Star;
pub use tcp_j::TcpJ;
pub use vegas::Vegas;
pub use veno::Veno;
pub use westwood::Westwood;
pub use westwood_plus::WestwoodPlus;

use crate::config::{Config, Congestion, Pacing};
use crate::segments::{LostSegment, RateSample};
use crate::window::Window;
use farpace_events::RecoveryState;
use farpace_units::{Instant, Packets, Rate, Seq, Span};

/// Why the window has to come down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Loss found by duplicate ACKs or SACK.
    FastRetransmit,
    /// The network marked a packet (RFC 3168).
    Ecn,
    /// The retransmission timer fired.
    Timeout,
}

/// What an ACK brought.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// Arrival of the ACK.
    pub now: Instant,
    /// SND.UNA after it.
    pub snd_una: Seq,
    /// SND.NXT.
    pub snd_nxt: Seq,
    /// Segments newly acknowledged (cumulatively).
    pub acked: Packets,
    /// Segments that are newly known to have arrived: acknowledged or SACKed.
    pub delivered: Packets,
    /// Segments that this ACK shows to be lost.
    pub lost: Packets,
    /// Segments in flight before this ACK was processed.
    pub in_flight_before: Packets,
    /// Segments in flight now.
    pub in_flight: Packets,
    /// Round trip of the latest segment that arrived, if it was sent only once.
    pub rtt: Option<Span>,
    /// Least round trip of the last minutes; none before the first sample.
    pub min_rtt: Option<Span>,
    /// The empty path's round trip is no shorter, because packets go over several paths; zero: there is one
    /// path. `rtt`, `min_rtt` and that in `rate` are at least as long; `srtt` is as measured.
    pub base_of_paths: Span,
    /// Packets go over more than one path.
    pub several_paths: bool,
    /// Smoothed round trip; zero before the first sample.
    pub srtt: Span,
    /// Bytes of a full segment.
    pub mss: u32,
    /// The largest window that the peer has had, in bytes.
    pub max_window: u32,
    /// The window held data back during the round trip that this ACK ends: it may grow (RFC 7661 §4.1).
    pub cwnd_limited: bool,
    /// The ACK echoes a congestion mark.
    pub ece: bool,
    /// Of the delivered segments, those that it says were marked.
    pub marked: Packets,
    /// Congestion state after this ACK.
    pub state: RecoveryState,
    /// The connection has SACK, so that more than one loss is found in a round trip.
    pub sack: bool,
    /// The peer's clock when it sent the ACK: TSval (RFC 7323), if there are timestamps.
    pub peer_clock: Option<u32>,
    /// Delivery rate, if something arrived and the algorithm
    /// [asks for it](CongestionControl::wants_rates).
    pub rate: Option<RateSample>,
}

impl AckSample {
    /// An ACK for `acked` segments of 1448 bytes that tells nothing else, on a connection that fills its
    /// window.
    pub fn of(now: Instant, acked: Packets) -> Self {
        AckSample {
            now,
            snd_una: Seq::default(),
            snd_nxt: Seq::default(),
            acked,
            delivered: acked,
            lost: Packets::ZERO,
            in_flight_before: Packets::MAX,
            in_flight: Packets::MAX,
            rtt: None,
            min_rtt: None,
            base_of_paths: Span::ZERO,
            several_paths: false,
            srtt: Span::ZERO,
            mss: 1448,
            max_window: u32::MAX,
            cwnd_limited: true,
            ece: false,
            marked: Packets::ZERO,
            state: RecoveryState::Open,
            sack: true,
            peer_clock: None,
            rate: None,
        }
    }
}

/// Something congestion control should know besides ACKs and cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionEvent {
    /// Fast recovery begins; the cut has been asked for.
    EnterRecovery,
    /// Fast recovery is over.
    ExitRecovery,
    /// A retransmission timeout has been handled (Linux: the state becomes Loss).
    EnterLoss {
        /// Segments found lost over the whole connection, if the algorithm
        /// [asks for rates](CongestionControl::wants_rates); 0 otherwise.
        total_lost: u64,
    },
    /// The last cut was a mistake: window and threshold have been put back.
    Undo,
    /// The connection sends again after it was idle for this long.
    Restart(Span),
    /// The handshake is over, and took this long; zero if its segments were sent again.
    Established(Span),
}

/// A segment that was just sent.
#[derive(Clone, Copy, Debug)]
pub struct SentSample {
    /// When.
    pub now: Instant,
    /// Segments in flight, this one included.
    pub in_flight: Packets,
    /// It was sent before.
    pub retransmission: bool,
    /// Smoothed round trip; zero before the first sample.
    pub srtt: Span,
}

/// How a connection sizes its congestion window.
///
/// The contract: recovery decides when each method is called, because the order is part of the algorithm.
/// `on_acked` comes for every ACK that acknowledges or SACKs data; `on_ack` after it, but only for those that
/// may raise the window (never in fast recovery), unless the algorithm
/// [`owns_window`](CongestionControl::owns_window): then for every ACK, last of all. `ssthresh` is asked once
/// per reduction and changes nothing in the window itself.
pub trait CongestionControl: Send {
    /// Data has arrived, in whatever state; only measures.
    fn on_acked(&mut self, _ack: &AckSample) {}
    /// The same, where slow start may end by what was measured. The recovery of profile `linux` calls this
    /// one.
    fn on_measured(&mut self, _window: &mut Window, ack: &AckSample) {
        self.on_acked(ack);
    }
    /// Raises the window.
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample);
    /// The new slow-start threshold for a reduction at `now`, in segments, at least 2. `flight` is FlightSize
    /// (RFC 5681 §2): what was sent and is not acknowledged.
    fn ssthresh(&mut self, now: Instant, window: &Window, flight: Packets, cut: Cut) -> Packets;
    /// Lower bound of a gradual reduction (rate halving).
    fn min_cwnd(&self, window: &Window) -> Packets;
    /// The window to return to when a reduction proves to be a mistake.
    fn undo_cwnd(&self, window: &Window) -> Packets;
    /// The round trips of now are those of the path without a queue, and worth an ACK that is not held back
    /// (draft-ietf-tcpm-ack-rate-request: R = 0).
    fn measures_empty_path(&self) -> bool {
        false
    }
    /// Something happened.
    fn on_event(&mut self, _now: Instant, _window: &mut Window, _event: CongestionEvent) {}
    /// A segment was sent, or several at once, of which it may be told the first and the last alone.
    fn on_sent(&mut self, _window: &mut Window, _sent: &SentSample) {}
    /// A segment was found lost. Comes after the event that this causes and before the `on_ack` of the same
    /// ACK; only to algorithms that [ask for rates](CongestionControl::wants_rates).
    fn on_lost(&mut self, _now: Instant, _window: &mut Window, _lost: &LostSegment) {}
    /// The algorithm follows a model of the path: it sets the window itself in every state, and recovery only
    /// tells it what happens.
    fn owns_window(&self) -> bool {
        false
    }
    /// It needs delivery rates and single losses: [`AckSample::rate`] and
    /// [`on_lost`](CongestionControl::on_lost).
    fn wants_rates(&self) -> bool {
        false
    }
    /// It sends slowly on purpose at the moment, so that rates measured now say nothing of the path.
    fn hides_rate(&self) -> bool {
        false
    }
    /// It does not take each loss for congestion: losses of a path as such hardly slow it down.
    fn loss_tolerant(&self) -> bool {
        false
    }
    /// Windows that an autotuned send buffer holds in Linux (sndbuf_expand): what is outstanding behind a
    /// hole, and what leaves until the program has written on.
    fn send_buffer_windows(&self) -> u32 {
        2
    }
    /// The rate at which it wants segments to leave; none: as the window allows.
    fn pacing(&self) -> Option<Rate> {
        None
    }
    /// How fast segments leave where they are paced by growth.
    fn pace(&self, window: &Window) -> StartPace {
        if window.cwnd() < window.ssthresh() { StartPace::DOUBLES } else { StartPace::STEADY }
    }
    /// The bandwidth that it has estimated, if it estimates one; for the trace.
    fn bandwidth(&self) -> Option<Rate> {
        None
    }
    /// The round trip of the empty path that it goes by, if it has a filter of its own for it.
    fn min_rtt(&self) -> Option<Span> {
        None
    }
    /// The algorithm's name, as scenarios write it.
    fn name(&self) -> &'static str;
}

/// Makes the algorithm that was chosen.
///
/// `seed` tells apart what connections do at random.
pub(crate) fn make(config: &Config, seed: u32) -> Box<dyn CongestionControl> {
    let slow_start = || {
        let hystart = config.hystart.then(|| HyStart::new(config.pacing != Pacing::Off));
        SlowStart::new(config.slow_start_limit, hystart).with_fast_start(config.fast_start)
    };
    let quirks = config.quirks;
    if let Some(external) = &config.external {
        return external.make(seed);
    }
    match config.congestion {
        Congestion::Reno if quirks.linux => Box::new(LinuxReno::default()),
        Congestion::Cubic if quirks.linux => Box::new(LinuxCubic::new(config.hystart)),
        Congestion::Reno if quirks.reno_per_ack => Box::new(PerAckReno),
        Congestion::Reno => Box::new(Reno::new(slow_start())),
        Congestion::Bic => Box::new(Bic::default()),
        Congestion::Cubic => Box::new(Cubic::new(slow_start())),
        Congestion::HighSpeed => Box::new(HighSpeed::new(slow_start())),
        Congestion::Scalable => Box::new(Scalable::new(slow_start())),
        Congestion::Westwood => Box::new(Westwood::new(slow_start())),
        Congestion::WestwoodPlus => Box::new(WestwoodPlus::new(slow_start())),
        Congestion::Hybla => Box::new(Hybla::new(slow_start())),
        Congestion::HTcp => Box::new(HTcp::new(slow_start())),
        Congestion::Vegas => Box::new(Vegas::new(slow_start())),
        Congestion::Veno => Box::new(Veno::new(slow_start())),
        Congestion::Illinois => Box::new(Illinois::new(slow_start())),
        Congestion::Dctcp => Box::new(Dctcp::new(slow_start())),
        Congestion::LedbatPlusPlus => Box::new(LedbatPlusPlus::default()),
        Congestion::TcpJ => Box::new(TcpJ::new(slow_start(), config.abe)),
        Congestion::Star => Box::new(Star::literal(config.abe)),
        Congestion::StarRobust => Box::new(Star::robust(config.abe)),
        Congestion::Bbr1 => Box::new(Bbr1::new(seed)),
        Congestion::Farpace => Box::new(Farpace::default()),
        Congestion::Bbr3 => Box::new(Bbr::new(seed)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Profile, Settings};

    /// Breaks: which algorithm, and which form of it, a profile gets; BBR where nothing could feed it.
    #[test]
    fn choice() {
        let with = |profile, congestion, pacing| {
            let settings = Settings { profile: Some(profile), congestion, pacing, ..Settings::default() };
            settings.resolve().map(|config| (make(&config, 1).name(), config.hystart)).ok()
        };
        assert_eq!(with(Profile::Modern, None, None), Some(("cubic", true)));
        assert_eq!(with(Profile::RackTlp, None, None), Some(("reno", false)));
        assert_eq!(with(Profile::Linux2617, None, None), Some(("bic", false)));
        assert_eq!(with(Profile::NewReno, None, None), Some(("reno", false)));
        assert_eq!(with(Profile::NewReno, Some(Congestion::Cubic), None), Some(("cubic", false)));
        assert_eq!(with(Profile::Prr, Some(Congestion::Bbr3), None), Some(("bbr3", false)));
        assert_eq!(with(Profile::NewReno, Some(Congestion::Bbr3), None), None);
        assert_eq!(with(Profile::Modern, Some(Congestion::Bbr3), Some(false)), None);
        assert_eq!(with(Profile::AistFix, None, Some(true)), None);
        let hystart =
            Settings { congestion: Some(Congestion::Bic), hystart: Some(true), ..Settings::default() };
        assert!(hystart.resolve().is_err());
    }
}
