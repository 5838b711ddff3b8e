//! What the network reports about the path, and the segment size that the path carries (RFC 1191, 4821,
//! 8201).

use super::{CloseReason, Connection, ConnectionEvent, ConnectionState};
use crate::config::MtuProbing;
use crate::recovery::Resegmented;
use farpace_events::Cause;
use farpace_units::{Instant, Packets, Seq, Span};
use farpace_wire::Unreachable;
use farpace_wire::tcp::TCP_LEN;

/// An ICMP error about a packet of this connection, in TCP's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathError {
    /// The packet was too big to be forwarded (RFC 1191, RFC 8201).
    TooBig {
        /// Largest IP packet that the next link takes, in bytes, IP header included; 0: the router did not
        /// say.
        mtu: u32,
    },
    /// The destination cannot be reached.
    Unreachable {
        /// It will not get better by waiting: protocol or port unreachable, administratively prohibited.
        hard: bool,
        /// What the report says.
        why: Unreachable,
    },
    /// The packet was on its way for too long (time exceeded).
    Discarded,
    /// Something in its header was not understood (parameter problem).
    Malformed,
}

impl PathError {
    /// Linux gives up at once what it knows by its SYN alone.
    const fn ends_request(self) -> bool {
        !matches!(self, PathError::TooBig { .. } | PathError::Unreachable { hard: true, .. })
    }
}

/// No report makes packets smaller than this: the least MTU of RFC 1191's table that links still have. IPv6
/// has no link below 1280 (RFC 8200 §5), which [`FLOOR_IPV6`] says.
pub const FLOOR_IPV4: u32 = 296;
/// Least MTU of an IPv6 path.
pub const FLOOR_IPV6: u32 = 1280;
/// Sizes of IP packets to fall back to, one after another, when full-size segments vanish without a word.
const BLACK_HOLE_MTUS: [u32; 3] = [1280, 576, FLOOR_IPV4];
/// MTUs that links have, for routers that do not tell theirs (RFC 1191 §7.1).
const PLATEAUS: [u32; 8] = [32_000, 17_914, 8_166, 4_352, 2_002, 1_492, 1_006, 508];
/// Timeouts in a row of a full-size segment after which the path is suspected to swallow its size.
const BLACK_HOLE_TIMEOUTS: u32 = 3;
/// Reports that may lower the segment size until something new is acknowledged: each costs a walk over all
/// that is outstanding.
const MAX_REPORTS: u8 = 8;
/// The search upwards ends when so many bytes are left to be won.
const SEARCH_STEP: u32 = 32;
/// Probes of one size that may get lost before the size counts as too big.
const MAX_PROBES: u8 = 2;
/// Least window with which a probe is sent, so that its loss is found without a timeout (RFC 4821 §7.4).
const PROBE_WINDOW: Packets = Packets::new(8);
/// After so long a larger size is tried again (RFC 1191 §6.3: ten minutes).
const RAISE_AFTER: Span = Span::from_secs(600);

/// A segment that tries a larger size.
#[derive(Clone, Copy, Debug)]
struct PathMtuProbe {
    seq: Seq,
    len: u32,
}

/// What is known of the path's MTU, in bytes of payload.
#[derive(Clone, Debug, Default)]
pub(super) struct PathMtu {
    /// Largest that both ends allow.
    ceiling: u32,
    /// Largest that may still work.
    high: u32,
    /// `high` itself was in use once: it is tried before anything else.
    high_worked: bool,
    probe: Option<PathMtuProbe>,
    /// Probes of one size that got lost.
    lost_probes: u8,
    /// When `high` goes up to the ceiling again.
    raise_at: Option<Instant>,
    reports: u8,
    /// What is in use, whatever the peer's window is.
    size: u32,
    /// MTU of the path, as a router told it.
    reported: Option<u32>,
}

impl PathMtu {
    pub fn ceiling(&self) -> u32 {
        self.ceiling
    }
    /// What a router has told, in bytes of an IP packet.
    pub fn reported(&self) -> Option<u32> {
        self.reported
    }
    /// There is nothing to search for now at this size of segments.
    pub fn is_settled(&self, mss: u32) -> bool {
        mss >= self.ceiling || self.probe.is_some()
    }
}

impl Connection {
    /// The network reports `error` about the segment that began with `quoted_seq`. Reports about anything
    /// that is not outstanding are ignored: nobody who cannot see the connection should be able to disturb it
    /// (RFC 5927 §4.1).
    ///
    /// * [`TooBig`](PathError::TooBig) makes segments smaller, but not below [`FLOOR_IPV4`] or
    ///   [`FLOOR_IPV6`], and sends what was too big again.
    /// * [`Unreachable`](PathError::Unreachable) ends a connection that is still being opened if it is hard;
    ///   every other report is remembered, told as [`ConnectionEvent::SoftError`], and becomes the reason if
    ///   the connection times out.
    pub fn on_path_error(&mut self, now: Instant, error: PathError, quoted_seq: Seq) {
        // Linux also takes what stands right behind that: an ACK of our own.
        let behind = self.config.is_linux() && quoted_seq == self.snd.nxt;
        let outstanding = quoted_seq.after_eq(self.snd.una) && (quoted_seq.before(self.snd.nxt) || behind);
        if !outstanding || matches!(self.state, ConnectionState::Closed | ConnectionState::TimeWait) {
            return;
        }
        let opening = matches!(self.state, ConnectionState::SynSent | ConnectionState::SynReceived);
        self.linux.may_stay_idle();
        match error {
            PathError::TooBig { mtu } => self.on_too_big(now, mtu),
            _ if self.is_request() => {
                if error.ends_request() {
                    self.finish(CloseReason::Unreachable);
                }
            }
            // RFC 5927 §4.2: what is hard for a connection that is being opened is soft for one that works.
            // Linux gives up whatever is being opened.
            PathError::Unreachable { hard, .. } if opening && (hard || self.config.is_linux()) => {
                self.soft_error = Some(error);
                self.finish(CloseReason::Unreachable);
            }
            PathError::Discarded if opening && self.config.is_linux() => {
                self.soft_error = Some(error);
                self.finish(CloseReason::Unreachable);
            }
            PathError::Unreachable { .. } | PathError::Discarded | PathError::Malformed => {
                self.soft_error = Some(error);
                self.tell(ConnectionEvent::SoftError);
            }
        }
        #[cfg(debug_assertions)]
        debug_assert_eq!(self.flight.segments.check_in_turn(), Ok(()));
    }

    /// A connection that nobody answers ends; what the network said of it is the reason.
    pub(super) fn time_out(&mut self) {
        self.finish(if self.soft_error.is_some() { CloseReason::Unreachable } else { CloseReason::TimedOut });
    }

    /// What the network last reported of the path since something was acknowledged.
    pub fn soft_error(&self) -> Option<PathError> {
        self.soft_error
    }

    /// The same, once (SO_ERROR).
    pub fn take_soft_error(&mut self) -> Option<PathError> {
        self.soft_error.take()
    }

    /// Payload of the largest segment in an IP packet of `mtu` bytes.
    fn payload_of(&self, mtu: u32) -> u32 {
        let headers = u32::from(self.config.network_header) + TCP_LEN as u32 + self.ts.option_bytes();
        mtu.saturating_sub(headers)
    }

    /// What a report makes of the path's MTU at least.
    fn least_packet(&self) -> u32 {
        if self.config.network_header >= 40 { FLOOR_IPV6 } else { FLOOR_IPV4 }
    }

    fn floor(&self) -> u32 {
        self.payload_of(if self.config.network_header >= 40 { FLOOR_IPV6 } else { FLOOR_IPV4 })
    }

    /// Both ends have told their limits. `told`: the peer has told its limit. Where it has not, Linux does
    /// not look at the program's for a connection that the peer opens.
    pub(super) fn size_segments(&mut self, announced: u16, told: bool) {
        let own = match self.config.tuning.link_mtu {
            Some(mtu) if !told && self.config.is_linux() => {
                mtu.saturating_sub(self.config.network_header + TCP_LEN as u16).max(self.config.mss)
            }
            _ => self.config.mss,
        };
        let ceiling = u32::from(announced.max(crate::config::MIN_SEND_MSS).min(own));
        let ceiling = ceiling - self.ts.option_bytes();
        self.path = PathMtu { ceiling, high: ceiling, ..PathMtu::default() };
        self.snd.mss = match self.config.mtu_probing {
            MtuProbing::Always => ceiling.min(self.payload_of(FLOOR_IPV6)),
            MtuProbing::Off | MtuProbing::BlackHole => ceiling,
        };
        self.path.size = self.snd.mss;
    }

    fn on_too_big(&mut self, now: Instant, mtu: u32) {
        if matches!(self.state, ConnectionState::SynSent | ConnectionState::SynReceived)
            || self.path.reports >= MAX_REPORTS
        {
            return;
        }
        let known = match mtu {
            0 => PLATEAUS.into_iter().map(|m| self.payload_of(m)).find(|p| *p < self.snd.mss),
            mtu => Some(self.payload_of(mtu)),
        };
        let size = known.unwrap_or(0).max(self.floor());
        if mtu > 0 {
            self.path.reported =
                Some(self.path.reported.map_or(mtu, |before| before.min(mtu)).max(self.least_packet()));
        }
        if size < self.snd.mss {
            self.path.reports += 1;
            // What goes again at once is all that Linux does about it.
            self.linux.stale = self.config.is_linux();
            self.shrink(now, size, size);
        } else if let Some(probe) = self.path.probe
            && size < probe.len
        {
            self.path.high = size;
            self.probe_failed(now, false);
        }
    }

    /// From now on segments carry `size` bytes; `high` may be found to work later.
    fn shrink(&mut self, now: Instant, size: u32, high: u32) {
        self.path.high = high;
        self.path.high_worked = high > size;
        self.path.probe = None;
        self.path.lost_probes = 0;
        self.path.raise_at = Some(now + RAISE_AFTER);
        self.size_to(size);
        self.resegment(now, Resegmented::PathShrank);
    }

    /// The path carries `size` bytes. Linux also looks at the peer's window.
    fn size_to(&mut self, size: u32) {
        self.path.size = size;
        self.set_mss(if self.config.is_linux() { self.half_window(size) } else { size });
    }

    /// The largest window of the peer has grown.
    pub(super) fn size_anew(&mut self) {
        self.size_to(self.path.size);
    }

    fn set_mss(&mut self, size: u32) {
        self.snd.mss = size;
        self.flight.window.set_mss(size);
    }

    /// Cuts what is outstanding to the size in use; what was too long counts as lost.
    fn resegment(&mut self, now: Instant, why: Resegmented) {
        self.ack.requester.forget_all();
        self.flight.timed.cancel();
        // Of a row that was acknowledged in part only the rest counts: no piece may lie below SND.UNA.
        if let Some(head) = self.flight.segments.row(0)
            && head.seq.before(self.snd.una)
        {
            self.flight.segments.split(0, self.snd.una.bytes_since(head.seq));
            self.flight.segments.acknowledge(self.snd.una);
        }
        let too_long = if self.config.is_linux() && !self.flight.cc.wants_rates() {
            self.flight.segments.lose_longer(self.snd.mss, self.snd.fin_seq)
        } else {
            self.flight.segments.split_longer(self.snd.mss, self.snd.fin_seq)
        };
        if too_long {
            let expiry = self.expiry(now);
            let (recovery, mut cx) = self.flight.recovery(self.sack);
            recovery.on_resegmented(why, &expiry, &mut cx);
        }
    }

    /// The retransmission timer has fired `timeouts_in_row` times: perhaps the path swallows segments of this
    /// size.
    pub(super) fn suspect_black_hole(&mut self, now: Instant) {
        let n = self.flight.timeouts_in_row;
        let due = n >= BLACK_HOLE_TIMEOUTS && (n - BLACK_HOLE_TIMEOUTS).is_multiple_of(2);
        // Behind a closed window nothing is said of sizes.
        if !due || self.snd.wnd == 0 || self.config.mtu_probing == MtuProbing::Off {
            return;
        }
        // Two timeouts for each size, from the largest one below what is in use.
        let head = self.flight.segments.row(0).map_or(0, |row| row.end().bytes_since(self.snd.una));
        let (floor, most) = (self.floor(), head.min(self.snd.mss));
        let sizes = BLACK_HOLE_MTUS.into_iter().map(|m| self.payload_of(m).max(floor));
        if let Some(size) = sizes.into_iter().find(|s| *s < most) {
            let high = self.path.high.max(self.snd.mss);
            self.shrink(now, size, high);
            self.path.raise_at = None;
        }
    }

    /// Something new was acknowledged.
    pub(super) fn path_works(&mut self) {
        self.path.reports = 0;
        self.soft_error = None;
    }

    /// Length of the next new segment if it is to try a larger size. `unsent` bytes and `usable` of the
    /// peer's window are there.
    pub(super) fn probe_len(&mut self, now: Instant, unsent: u64, usable: u32) -> Option<u32> {
        let PathMtu { ceiling, high, raise_at, .. } = self.path;
        if self.path.is_settled(self.snd.mss) {
            return None;
        }
        if high <= self.snd.mss + SEARCH_STEP {
            // The search is over: for ten minutes.
            match raise_at {
                Some(at) if at <= now => {
                    self.path.raise_at = None;
                    self.path.high = ceiling;
                    if self.config.mtu_probing == MtuProbing::Off {
                        self.size_to(ceiling); // as before the report; if it comes again, it is believed again
                    }
                }
                Some(_) => {}
                None => self.path.raise_at = Some(now + RAISE_AFTER),
            }
            return None;
        }
        if self.config.mtu_probing == MtuProbing::Off {
            return None;
        }
        let open = self.flight.recovery.state() == farpace_events::RecoveryState::Open;
        if !open || self.flight.timeouts_in_row > 0 || self.flight.window.cwnd() < PROBE_WINDOW {
            return None;
        }
        let len = if self.path.high_worked { high } else { (self.snd.mss + high).div_ceil(2) };
        // What follows it shows whether it was lost (RFC 4821 §7.4).
        let after = 4 * self.snd.mss;
        let fits = unsent >= u64::from(len) + u64::from(after) && usable >= len.saturating_add(after);
        fits.then_some(len)
    }

    /// The segment that was just sent is a probe.
    pub(super) fn probe_sent(&mut self, seq: Seq, len: u32) {
        self.path.probe = Some(PathMtuProbe { seq, len });
    }

    /// An acknowledgment was processed while a probe was under way. `calm`: before it no loss was being
    /// repaired.
    #[cold]
    pub(super) fn judge_probe(&mut self, now: Instant, calm: bool) {
        let Some(probe) = self.path.probe else { return };
        let index = self.flight.segments.index_at_or_after(probe.seq);
        let tags = self.flight.segments.tags(index);
        let gone = self.snd.una.after_eq(probe.seq + probe.len);
        if gone || tags.any(crate::segments::Tags::SACKED) {
            self.path.probe = None;
            self.path.lost_probes = 0;
            self.path.high_worked = false;
            self.size_to(probe.len);
        } else if tags.any(crate::segments::Tags::LOST) {
            let alone = calm && self.flight.segments.lost_out() == Packets::new(1);
            self.probe_failed(now, alone);
        }
    }

    /// True while a probe is under way.
    pub(super) fn is_probing(&self) -> bool {
        self.path.probe.is_some()
    }

    pub(super) fn probe_failed(&mut self, now: Instant, alone: bool) {
        let Some(probe) = self.path.probe.take() else { return };
        self.path.high_worked = false;
        self.path.lost_probes += 1;
        if self.path.high < probe.len || self.path.lost_probes >= MAX_PROBES {
            self.path.lost_probes = 0;
            self.path.high = self.path.high.min(probe.len - 1);
        }
        self.flight.causes.push(Cause::MtuProbeLost);
        self.resegment(now, Resegmented::ProbeLost { alone });
    }
}
