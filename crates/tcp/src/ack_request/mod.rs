//! Asking the peer for acknowledgments that are not held back (CDL), and what is asked of us.
//!
//! [`agreement`]: what both ends can, by the options of their SYNs. [`policy`]: which segments ask.
//! [`requests`]: which ACK answers which of them. [`guard`]: a path or a peer that does not bear being asked.
//! [`worth`]: whether it pays. [`answers`]: the receiver's half. The connection's `soliciting` puts all this
//! into headers and reads it out of them.

mod agreement;
mod answers;
mod guard;
mod policy;
mod requests;
mod worth;

pub(crate) use agreement::RequestForm;
pub(crate) use answers::Answers;
pub(crate) use policy::Moment;
pub(crate) use requests::Mark;

use crate::config::AckRequests;
use agreement::Agreement;
use farpace_units::{Instant, Seq, Span};
use farpace_wire::tcp::{self, TcpFlags};
use guard::Guard;
use policy::RequestPolicy;
use requests::{Covered, Request, Requests};
use worth::Worth;

/// What an ACK says of requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestAnswer {
    /// Arrival.
    pub now: Instant,
    /// SEG.ACK, which is beyond SND.UNA.
    pub ack: Seq,
    /// It says that it was sent because it was asked for, and how long it was held back.
    pub confirms: Option<Span>,
    /// TSecr.
    pub echo: Option<u32>,
}

/// An old byte that was sent to get an ACK, and is not answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckRequestProbe {
    /// Its number.
    pub seq: Seq,
    /// First number after the data for which it was sent.
    pub end: Seq,
    sent_at: Instant,
    /// An ACK has told its round trip.
    measured: bool,
}

/// The sender's half: asks, and knows the answers.
#[derive(Clone, Debug)]
pub(crate) struct AckRequester {
    ack_requests: AckRequests,
    agreement: Agreement,
    policy: RequestPolicy,
    requests: Requests,
    guard: Guard,
    worth: Worth,
    probe: Option<AckRequestProbe>,
    probed_at: Option<Instant>,
}

impl AckRequester {
    /// With nothing agreed on.
    pub fn new(ack_requests: AckRequests) -> Self {
        AckRequester {
            ack_requests,
            agreement: Agreement::before(ack_requests.control),
            policy: RequestPolicy::new(ack_requests.when, ack_requests.every),
            requests: Requests::default(),
            guard: Guard::new(ack_requests.control),
            worth: Worth::default(),
            probe: None,
            probed_at: None,
        }
    }

    /// The header bit of the classic form and of `flag`.
    pub fn bit(&self) -> TcpFlags {
        TcpFlags::reserved(self.ack_requests.bit).unwrap_or_default()
    }

    /// Options of our SYN.
    pub fn offer(&self) -> tcp::AckControl {
        agreement::offer(self.ack_requests.control)
    }

    /// Options of our SYN-ACK.
    pub fn reply(&self) -> tcp::AckControl {
        self.agreement.reply(self.ack_requests.control)
    }

    /// The peer's SYN or SYN-ACK has come with these options.
    pub fn agree(&mut self, peer: &tcp::AckControl) {
        self.agreement = Agreement::of(self.ack_requests.control, peer);
    }

    /// Asking was agreed on. It may have been given up since.
    #[inline]
    pub fn asks(&self) -> bool {
        self.agreement.ask != RequestForm::None
    }

    /// How this end asks now.
    pub fn form(&self) -> RequestForm {
        if self.guard.forbids() { RequestForm::None } else { self.guard.adapt(self.agreement.ask) }
    }

    /// How the peer may ask.
    pub fn answers(&self) -> RequestForm {
        self.agreement.answer
    }

    /// How the next new segment asks; none: it does not.
    pub fn mark(&self, now: Instant, moment: &Moment, srtt: Span) -> Option<Mark> {
        let form = self.form();
        if form == RequestForm::None || self.requests.is_full() {
            return None;
        }
        if !self.policy.wants(moment) || !self.worth.may_ask(self.policy.is_auto(moment)) {
            return None;
        }
        match form {
            RequestForm::None => None,
            // What is missing is found by what has ACK set.
            RequestForm::Classic if self.guard.is_proven() => {
                (moment.calm && !moment.fin).then_some(Mark::Bare)
            }
            RequestForm::Classic | RequestForm::Unilateral => {
                // Each is a segment of its own: one a round trip, and one in two if none answers.
                let wait = if self.probe.is_some() { srtt * 2 } else { srtt };
                self.probed_at.is_none_or(|at| now.since(at) >= wait).then_some(Mark::Probe)
            }
            RequestForm::Flag => Some(Mark::Flag),
            RequestForm::Safe => Some(Mark::Option(tcp::AckControl { request: true, ..Default::default() })),
            RequestForm::Tarr => {
                let tarr = Some(tcp::Tarr::Rate(0));
                Some(Mark::Option(tcp::AckControl { tarr, ..Default::default() }))
            }
        }
    }

    /// New data that ends before `end` leaves; `mark` is what [`mark`](Self::mark) said of it.
    pub fn on_sent(&mut self, now: Instant, end: Seq, timestamp: u32, moment: &Moment, mark: Option<Mark>) {
        let candidate = self.policy.is_auto(moment) && self.policy.wants(moment);
        if mark.is_some() || candidate {
            self.requests.push(Request { end, sent_at: now, timestamp, mark });
        }
        if candidate {
            self.worth.on_candidate(mark.is_some());
        }
        self.policy.on_sent();
    }

    /// A probe with the byte at `seq` is to leave, behind data that ends before `end`. False: too many were
    /// not answered.
    pub fn on_probe_sent(&mut self, now: Instant, seq: Seq, end: Seq) -> bool {
        if self.probe.is_some_and(|p| !p.measured) {
            self.guard.on_unanswered(false);
            if self.guard.forbids() {
                return false;
            }
        }
        self.probe = Some(AckRequestProbe { seq, end, sent_at: now, measured: false });
        self.probed_at = Some(now);
        true
    }

    /// The probe that is under way.
    pub fn probe(&self) -> Option<AckRequestProbe> {
        self.probe
    }

    /// An ACK tells that the probe has arrived, and its round trip. `last`: nothing more will come of it.
    pub fn on_probe_answered(&mut self, now: Instant, last: bool) -> Option<Span> {
        let probe = self.probe.as_mut()?;
        let first = !std::mem::replace(&mut probe.measured, true);
        let rtt = first.then(|| now.since(probe.sent_at));
        if last {
            self.probe = None;
        }
        if let Some(rtt) = rtt {
            self.guard.on_answered();
            self.worth.on_answered(rtt);
        }
        rtt
    }

    /// Something was acknowledged: the round trip of a segment that had asked, if this ACK answers it.
    pub fn on_ack(&mut self, a: &RequestAnswer) -> Option<Span> {
        let Covered { newest, silent } = self.requests.on_ack(a.ack);
        if let Some(silent) = silent {
            self.worth.on_silent(a.now.since(silent.sent_at));
        }
        let newest = newest?;
        let held = match newest.mark? {
            Mark::Probe => return None,
            Mark::Option(tcp::AckControl { tarr: Some(_), .. }) => {
                // Nothing says so: the ACK is for this segment, and for no earlier one that waited.
                let own = newest.end == a.ack && a.echo.is_none_or(|echo| echo == newest.timestamp);
                own.then_some(Span::ZERO)
            }
            _ => a.confirms,
        };
        let Some(held) = held else {
            self.guard.on_unanswered(newest.mark == Some(Mark::Flag));
            return None;
        };
        self.guard.on_answered();
        let rtt = a.now.since(newest.sent_at);
        let undelayed = if held < rtt { rtt - held } else { rtt };
        self.worth.on_answered(undelayed);
        Some(undelayed)
    }

    /// The segment that ends before `end` asked without ACK.
    pub fn is_bare(&self, end: Seq) -> bool {
        self.requests.get(end).is_some_and(|r| r.mark == Some(Mark::Bare))
    }

    /// A segment that ends before `end` is sent again. `alone`: no neighbour that had ACK set is missing.
    pub fn on_retransmit(&mut self, now: Instant, end: Seq, alone: bool) {
        // Which of the two copies an ACK would answer cannot be told (Karn).
        if let Some(request) = self.requests.forget(end)
            && request.mark == Some(Mark::Bare)
            && alone
        {
            self.guard.on_bare_lost(now, request.sent_at);
        }
    }

    /// The retransmission timer has fired.
    pub fn on_timeout(&mut self, now: Instant) {
        if let Some(last) = self.requests.last_bare() {
            self.guard.on_bare_lost(now, last.sent_at);
        }
        self.forget_all();
    }

    /// Outstanding segments were cut anew.
    pub fn forget_all(&mut self) {
        self.requests.clear();
        self.probe = None;
    }

    /// Outstanding segments that asked.
    pub fn outstanding(&self) -> usize {
        self.requests.asked()
    }
}
