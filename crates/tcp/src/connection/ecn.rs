//! Explicit congestion notification: the classic form (RFC 3168), the accurate one (RFC 9768), and that of
//! DCTCP (RFC 8257 §3.2).

use super::{Connection, ConnectionState};
use crate::config::EcnMode;
use crate::segment::{OutgoingSegment, Segment};
use bytes::Bytes;
use farpace_events::Cause;
use farpace_units::{Instant, Packets, Seq};
use farpace_wire::Ecn;
use farpace_wire::tcp::TcpFlags;

/// AE, CWR and ECE: the three bits that RFC 9768 calls ACE, and its values in the order of the bits.
const ACE: TcpFlags = TcpFlags::AE.with(TcpFlags::CWR).with(TcpFlags::ECE);
/// First value of the counters of marks (RFC 9768 §3.2.1).
const FIRST_COUNT: u32 = 5;
/// Marks that are told at once (RFC 9768 §3.2.2.5.1: two, at most seven).
const TELL_AT: u32 = 2;

/// What both ends agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Agreed {
    #[default]
    Nothing,
    Classic,
    Accurate,
    Dctcp,
}

/// State of both halves: what we tell of marks that arrive, and what we are told of ours.
#[derive(Clone, Debug)]
pub(super) struct EcnState {
    mode: EcnMode,
    agreed: Agreed,
    /// The last SYN we sent offered it; of the accurate form: any of them, as its answer tells by itself that
    /// the peer has it (RFC 9768 §3.1.4.1).
    offered: bool,
    /// What we send may be marked.
    marks: bool,
    /// Classic receiver: a mark came, and the peer has not said that it has reduced its window. DCTCP
    /// receiver: the last data was marked (DCTCP.CE).
    echo: bool,
    /// DCTCP receiver: the data below this number came before `echo` changed, and is not acknowledged.
    before_change: Option<Seq>,
    /// Classic sender: the next new data says that the window was reduced.
    reduced: bool,
    /// Accurate receiver: marks that came (r.cep).
    received: u32,
    /// Of them, how many no acknowledgment has told.
    untold: u32,
    /// The segment before was marked.
    last_marked: bool,
    /// Accurate sender: marks we were told of (s.cep).
    told: u32,
    heard: bool,
    /// A segment came with a codepoint of ECN.
    heard_ect: bool,
    /// The codepoint that the peer's SYN arrived with: our SYN-ACK reflects it.
    syn: Ecn,
    /// The one that the peer's SYN-ACK arrived with, until our first acknowledgment reflects it.
    syn_ack: Option<Ecn>,
}

/// The ACE field that reflects a codepoint of the handshake (RFC 9768 tables 2 and 3).
const fn reflection(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0b010,
        Ecn::Ect1 => 0b011,
        Ecn::Ect0 => 0b100,
        Ecn::Ce => 0b110,
    }
}

const fn ace(flags: TcpFlags) -> u8 {
    (flags.bits() >> 6 & 7) as u8
}

const fn flags_of(ace: u8) -> TcpFlags {
    TcpFlags::from_bits((ace as u16 & 7) << 6)
}

impl EcnState {
    pub fn new(mode: EcnMode) -> Self {
        EcnState {
            mode,
            agreed: Agreed::Nothing,
            offered: false,
            marks: false,
            echo: false,
            before_change: None,
            reduced: false,
            received: FIRST_COUNT,
            untold: 0,
            last_marked: false,
            told: FIRST_COUNT,
            heard: false,
            heard_ect: false,
            syn: Ecn::NotEct,
            syn_ack: None,
        }
    }

    /// Agreed on; and a segment came that could be marked.
    pub fn seen(&self) -> (bool, bool) {
        (self.agreed != Agreed::Nothing, self.heard_ect)
    }

    /// Flags of our SYN. A SYN that has to be repeated does not offer: something on the way may drop those
    /// that do (RFC 3168 §6.1.1.1, RFC 9768 §3.1.4).
    pub fn offer(&mut self, again: bool) -> TcpFlags {
        let offers = !again && !matches!(self.mode, EcnMode::Off | EcnMode::Passive);
        self.offered = offers || (self.offered && self.mode == EcnMode::Accurate);
        match self.mode {
            _ if !offers => TcpFlags::NONE,
            EcnMode::Accurate => ACE,
            EcnMode::On | EcnMode::Dctcp | EcnMode::Off | EcnMode::Passive => {
                TcpFlags::ECE.with(TcpFlags::CWR)
            }
        }
    }

    /// The peer's SYN, without ACK (RFC 9768 table 2, read by the server).
    pub fn on_syn(&mut self, flags: TcpFlags, ecn: Ecn) {
        self.agreed = match (self.mode, ace(flags)) {
            (EcnMode::Off, _) => Agreed::Nothing,
            (EcnMode::Accurate, 0b111) => Agreed::Accurate,
            (EcnMode::Dctcp, 0b011 | 0b111) => Agreed::Dctcp,
            (_, 0b011 | 0b111) => Agreed::Classic,
            // RFC 9768 §3.1.3: combinations of the future get the answer that this form gives.
            (EcnMode::Accurate, 1..=6) => Agreed::Accurate,
            _ => Agreed::Nothing,
        };
        self.syn = ecn; // reflected, but not counted
        self.marks = self.agreed != Agreed::Nothing;
    }

    /// The peer's SYN again, before the handshake is complete. The form of the first one stays. False: it
    /// offers the other form, and the connection must be reset (RFC 9768 §3.1.5).
    pub fn on_syn_again(&mut self, flags: TcpFlags, ecn: Ecn) -> bool {
        self.syn = ecn;
        match (self.agreed, ace(flags)) {
            // The peer may not know what was agreed on (RFC 3168 §6.1.1, RFC 9768 §3.1.5).
            (_, 0) => self.marks = false,
            (Agreed::Accurate, 0b011) => return false,
            (Agreed::Classic, 0b111) if self.mode == EcnMode::Accurate => return false,
            _ => {}
        }
        true
    }

    /// The peer's SYN-ACK, again and after the handshake, is acknowledged: as the first one was, with the
    /// codepoint that it arrived with (RFC 9768 §3.2.2.1).
    pub fn on_syn_ack_again(&mut self, flags: TcpFlags, ecn: Ecn) {
        if self.agreed == Agreed::Accurate && ace(flags) != 0 {
            self.syn_ack = Some(ecn);
        }
    }

    /// The peer's SYN-ACK, to our SYN (RFC 9768 table 2, read by the client).
    pub fn on_syn_ack(&mut self, flags: TcpFlags, ecn: Ecn) {
        self.agreed = match (self.mode, ace(flags)) {
            _ if !self.offered => Agreed::Nothing,
            (EcnMode::Accurate, 0b010 | 0b011 | 0b100 | 0b110) => Agreed::Accurate,
            (EcnMode::Accurate, 0b001 | 0b101) => Agreed::Classic,
            // Both flags back are a peer that reflects what it does not know (RFC 3168 §6.1.1).
            (EcnMode::On, a) if a & 0b011 == 0b001 => Agreed::Classic,
            (EcnMode::Dctcp, a) if a & 0b011 == 0b001 => Agreed::Dctcp,
            _ => Agreed::Nothing,
        };
        self.marks = self.agreed != Agreed::Nothing;
        if self.agreed == Agreed::Accurate {
            self.syn_ack = Some(ecn);
            self.received = if ecn == Ecn::Ce { FIRST_COUNT + 1 } else { FIRST_COUNT };
            self.told = if ace(flags) == 0b110 { FIRST_COUNT + 1 } else { FIRST_COUNT };
        }
    }

    /// Flags of our SYN-ACK.
    pub fn answer(&self) -> TcpFlags {
        match self.agreed {
            Agreed::Nothing => TcpFlags::NONE,
            Agreed::Classic | Agreed::Dctcp => TcpFlags::ECE,
            Agreed::Accurate => flags_of(reflection(self.syn)),
        }
    }

    /// Flags of a segment without SYN. `fresh`: it carries data for the first time; `plain`: it is an
    /// acknowledgment without data and SACK blocks.
    #[inline]
    pub fn flags(&mut self, fresh: bool, plain: bool) -> TcpFlags {
        match self.agreed {
            Agreed::Nothing => TcpFlags::NONE,
            Agreed::Classic | Agreed::Dctcp => {
                let cwr = fresh && std::mem::take(&mut self.reduced);
                let echo = if self.echo { TcpFlags::ECE } else { TcpFlags::NONE };
                if cwr { echo.with(TcpFlags::CWR) } else { echo }
            }
            Agreed::Accurate => {
                self.untold = 0;
                match self.syn_ack.take() {
                    Some(ecn) if plain => flags_of(reflection(ecn)),
                    _ => flags_of((self.received & 7) as u8),
                }
            }
        }
    }

    /// The codepoint of a segment: only data that is sent for the first time may be marked (RFC 3168 §6.1.4
    /// to 6.1.6).
    #[inline]
    pub fn codepoint(&self, fresh: bool) -> Ecn {
        if fresh && self.marks { Ecn::Ect0 } else { Ecn::NotEct }
    }

    /// An acceptable segment has arrived; all below `unacknowledged` waits for an acknowledgment. True: what
    /// the segment told us should be acknowledged at once.
    #[inline]
    pub fn on_segment(
        &mut self,
        flags: TcpFlags,
        ecn: Ecn,
        has_data: bool,
        unacknowledged: Option<Seq>,
    ) -> bool {
        self.heard_ect |= has_data && ecn != Ecn::NotEct;
        match self.agreed {
            Agreed::Nothing => false,
            Agreed::Classic => {
                if has_data && flags.contains(TcpFlags::CWR) {
                    self.echo = false;
                }
                self.echo |= has_data && ecn == Ecn::Ce;
                false
            }
            Agreed::Dctcp => {
                // Acknowledgments are never marked: only data tells.
                let changed = has_data && self.echo != (ecn == Ecn::Ce);
                if changed {
                    self.echo = !self.echo;
                    self.before_change = unacknowledged;
                }
                changed
            }
            Agreed::Accurate => {
                let marked = ecn == Ecn::Ce;
                self.received = self.received.wrapping_add(u32::from(marked));
                self.untold += u32::from(marked);
                // §3.2.2.5.1: after a change, and not later than every second mark; only data is answered.
                let changed = marked && !self.last_marked;
                self.last_marked = marked;
                has_data && (changed || self.untold >= TELL_AT)
            }
        }
    }

    /// How many segments the acknowledgment that arrived says were marked: [`Packets::MAX`] for all that it
    /// tells of, where there is only a flag (RFC 8257 §3.3 step 3).
    #[inline]
    pub fn echoed(&mut self, flags: TcpFlags, opening: bool, plain: bool) -> Packets {
        match self.agreed {
            Agreed::Nothing => Packets::ZERO,
            Agreed::Classic | Agreed::Dctcp if flags.contains(TcpFlags::ECE) => Packets::MAX,
            Agreed::Classic | Agreed::Dctcp => Packets::ZERO,
            Agreed::Accurate => {
                let first = !std::mem::replace(&mut self.heard, true);
                if first && ace(flags) == 0 {
                    // RFC 9768 §3.2.2.4: something on the way erases the field.
                    self.marks = false;
                }
                if opening && plain {
                    // The last segment of the handshake reflects our SYN-ACK's codepoint (table 4).
                    self.told = if ace(flags) == 0b110 { FIRST_COUNT + 1 } else { FIRST_COUNT };
                    return Packets::ZERO;
                }
                let more = u32::from(ace(flags)).wrapping_sub(self.told) & 7;
                self.told = self.told.wrapping_add(more);
                if self.marks { Packets::new(more) } else { Packets::ZERO }
            }
        }
    }

    /// Segments without anything to say of them alone may leave as one, to be cut by a device: it takes CWR
    /// from all but the first, and is not asked to (RFC 9768's counters have a bit there).
    pub fn may_be_cut(&self) -> bool {
        self.agreed != Agreed::Accurate && !self.reduced
    }

    /// With the segment that [`on_segment`](Self::on_segment) was told of, so many others came that had the
    /// same mark. True: they should be acknowledged at once.
    pub fn on_coalesced(&mut self, others: u32, ecn: Ecn) -> bool {
        if self.agreed != Agreed::Accurate || ecn != Ecn::Ce {
            return false;
        }
        self.received = self.received.wrapping_add(others);
        self.untold = self.untold.saturating_add(others);
        self.untold >= TELL_AT
    }

    /// DCTCP: what came before the mark changed is to be acknowledged on its own.
    pub fn change_pending(&self) -> bool {
        self.before_change.is_some()
    }

    /// The window was reduced: the peer is told with the next new data (RFC 3168 §6.1.2).
    pub fn on_cut(&mut self) {
        self.reduced = matches!(self.agreed, Agreed::Classic | Agreed::Dctcp);
    }
}

impl Connection {
    /// Reductions of the call under way make the next data carry CWR.
    pub(super) fn tell_reductions(&mut self) {
        let cut = |c: &Cause| {
            matches!(
                c,
                Cause::CutFastRetransmit
                    | Cause::CutTimeout
                    | Cause::CutEcn
                    | Cause::CutTailLoss
                    | Cause::CutTransmitQueue
            )
        };
        if self.flight.causes.iter().any(cut) {
            self.ecn.on_cut();
        }
    }

    /// RFC 8257 §3.2: the mark of the latest data was another than that of the data before it. What came
    /// before is acknowledged on its own, with the mark that it had.
    pub(super) fn send_before_change(&mut self, now: Instant, out: &mut Vec<OutgoingSegment>) {
        let Some(until) = self.ecn.before_change.take().filter(|_| self.state != ConnectionState::Closed)
        else {
            return;
        };
        let (next, due) = (std::mem::replace(&mut self.rcv.nxt, until), self.ack.due);
        self.ecn.echo = !self.ecn.echo;
        self.emit(now, out, self.snd.nxt, TcpFlags::ACK, Bytes::new(), Cause::AckNow);
        self.ecn.echo = !self.ecn.echo;
        (self.rcv.nxt, self.ack.due) = (next, due);
    }

    /// The segment acknowledges, without data and SACK blocks.
    pub(super) fn is_plain_ack(segment: &Segment) -> bool {
        segment.payload.is_empty() && segment.header.options.sack.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODES: [EcnMode; 4] = [EcnMode::Off, EcnMode::On, EcnMode::Accurate, EcnMode::Dctcp];

    fn agree(client: EcnMode, server: EcnMode) -> (EcnState, EcnState) {
        let (mut c, mut s) = (EcnState::new(client), EcnState::new(server));
        s.on_syn(c.offer(false), Ecn::NotEct);
        c.on_syn_ack(s.answer(), Ecn::NotEct);
        (c, s)
    }

    /// Breaks: both ends must come to the same agreement, whatever each of them knows (RFC 3168 §6.1.1, RFC
    /// 9768 §3.1).
    #[test]
    fn both_ends_agree() {
        for client in MODES {
            for server in MODES {
                let (c, s) = agree(client, server);
                // DCTCP is agreed on outside of the connection; on it, it is the classic form.
                let form = |mode| if mode == EcnMode::Dctcp { Agreed::Dctcp } else { Agreed::Classic };
                let expected = match (client, server) {
                    (EcnMode::Off, _) | (_, EcnMode::Off) => (Agreed::Nothing, Agreed::Nothing),
                    (EcnMode::Accurate, EcnMode::Accurate) => (Agreed::Accurate, Agreed::Accurate),
                    _ => (form(client), form(server)),
                };
                assert_eq!((c.agreed, s.agreed), expected, "{client:?} with {server:?}");
            }
        }
    }

    /// Breaks: RFC 9768 table 2, as the client reads it: all eight answers.
    #[test]
    fn every_answer_to_an_accurate_offer() {
        use Agreed::{Accurate, Classic, Nothing};
        let expected = [Nothing, Classic, Accurate, Accurate, Accurate, Classic, Accurate, Nothing];
        for (bits, expected) in expected.into_iter().enumerate() {
            let mut c = EcnState::new(EcnMode::Accurate);
            c.offer(false);
            c.on_syn_ack(flags_of(bits as u8), Ecn::NotEct);
            assert_eq!(c.agreed, expected, "{bits:#05b}");
            assert_eq!(c.codepoint(true) == Ecn::Ect0, expected != Nothing);
        }
    }

    /// Breaks: a client that repeats its SYN without an offer, and so never tells of marks, is sent packets
    /// that may be marked; or one whose two SYNs offer different forms is served by either (RFC 9768 §3.1.5).
    #[test]
    fn a_second_syn_may_take_the_offer_back() {
        let (offer, classic) = (ACE, TcpFlags::ECE.with(TcpFlags::CWR));
        for (first, then, goes_on, marks) in [
            (offer, TcpFlags::NONE, true, false),
            (classic, TcpFlags::NONE, true, false),
            (offer, offer, true, true),
            (classic, classic, true, true),
            (offer, classic, false, true),
            (classic, offer, false, true),
            (TcpFlags::NONE, offer, true, false),
        ] {
            let mut s = EcnState::new(EcnMode::Accurate);
            s.on_syn(first, Ecn::NotEct);
            let agreed = s.agreed;
            assert_eq!(s.on_syn_again(then, Ecn::Ce), goes_on, "{first:?} {then:?}");
            assert_eq!((s.agreed, s.codepoint(true) == Ecn::Ect0), (agreed, marks), "{first:?} {then:?}");
            if agreed == Agreed::Accurate {
                assert_eq!(ace(s.answer()), reflection(Ecn::Ce), "the latest SYN is reflected");
            }
        }
    }

    /// Breaks: an answer to the first of two SYNs, of which the second offered nothing, is not understood; or
    /// a SYN-ACK that comes again is answered with the counter, which the server takes for a reflection.
    #[test]
    fn a_client_that_repeats_itself_understands_the_answer() {
        let (mut c, mut s) = (EcnState::new(EcnMode::Accurate), EcnState::new(EcnMode::Accurate));
        s.on_syn(c.offer(false), Ecn::NotEct);
        assert!(c.offer(true).is_empty());
        c.on_syn_ack(s.answer(), Ecn::NotEct);
        assert_eq!(c.agreed, Agreed::Accurate);
        assert_eq!(ace(c.flags(false, true)), 0b010);
        c.on_syn_ack_again(s.answer(), Ecn::Ce);
        assert_eq!((ace(c.flags(false, true)), ace(c.flags(false, true))), (0b110, 5));
        let mut c = EcnState::new(EcnMode::On);
        c.offer(false);
        c.offer(true);
        c.on_syn_ack(TcpFlags::ECE, Ecn::NotEct);
        assert_eq!(c.agreed, Agreed::Nothing, "RFC 3168 §6.1.1");
    }

    /// Breaks: RFC 9768 table 3: the codepoint of the SYN-ACK comes back in the first acknowledgment, then
    /// the counter.
    #[test]
    fn the_handshake_is_reflected() {
        for (ecn, field, count) in
            [(Ecn::NotEct, 2, 5), (Ecn::Ect1, 3, 5), (Ecn::Ect0, 4, 5), (Ecn::Ce, 6, 6)]
        {
            let (mut c, mut s) = (EcnState::new(EcnMode::Accurate), EcnState::new(EcnMode::Accurate));
            s.on_syn(c.offer(false), Ecn::NotEct);
            c.on_syn_ack(s.answer(), ecn);
            let first = c.flags(false, true);
            assert_eq!((ace(first), ace(c.flags(false, true))), (field, count), "{ecn:?}");
            assert!(s.echoed(first, true, true).is_zero());
            assert_eq!(s.told, u32::from(count));
        }
    }

    /// Breaks: the count of marks, over its wrap at eight, and what the sender makes of it.
    #[test]
    fn marks_are_counted() {
        let (mut c, mut s) = agree(EcnMode::Accurate, EcnMode::Accurate);
        c.flags(false, true);
        let mut told = 0;
        for i in 0..40 {
            let ecn = if i % 3 == 0 { Ecn::Ce } else { Ecn::Ect0 };
            s.on_segment(TcpFlags::ACK, ecn, true, None);
            let before = c.told;
            let marked = c.echoed(s.flags(false, true), false, true).get();
            assert_eq!(marked, u32::from(ecn == Ecn::Ce), "segment {i}");
            told += c.told - before;
        }
        assert_eq!(told, 14, "the first reflection of the server is on its SYN-ACK");
    }

    /// Breaks: RFC 3168 §6.1.3: ECE stands in every acknowledgment until CWR comes, and a mark on that
    /// segment counts.
    #[test]
    fn the_echo_lasts_until_it_is_heard() {
        let (_, mut s) = agree(EcnMode::On, EcnMode::On);
        assert!(s.flags(false, true).is_empty());
        s.on_segment(TcpFlags::ACK, Ecn::Ce, true, None);
        s.on_segment(TcpFlags::ACK, Ecn::Ect0, true, None);
        assert_eq!((s.flags(false, true), s.flags(false, true)), (TcpFlags::ECE, TcpFlags::ECE));
        s.on_segment(TcpFlags::ACK | TcpFlags::CWR, Ecn::Ce, true, None);
        assert_eq!(s.flags(false, true), TcpFlags::ECE);
        s.on_segment(TcpFlags::ACK | TcpFlags::CWR, Ecn::Ect0, true, None);
        assert!(s.flags(false, true).is_empty());
    }
}
