//! When and how this end acknowledges, and how it requests acknowledgments of the peer.

use crate::ack::{AckPolicy, Decision};
use crate::ack_request::{AckRequester, Answers, Mark};
use crate::config::Config;
use crate::receive::SackBlockList;
use farpace_events::Cause;
use farpace_units::{Instant, Seq, Span};

/// Least time between two answers to unacceptable segments without data (Linux: tcp_invalid_ratelimit).
const CHALLENGE_INTERVAL: Span = Span::from_millis(500);
/// Most answers in that time to unacceptable segments with data or FIN, which do ask for one.
const MAX_ANSWERS: u32 = 100;

/// Acknowledgments: those that are due, those that are requested, and answers to unacceptable segments.
pub(super) struct AckState {
    pub policy: AckPolicy,
    /// An ACK is to be sent now, for this reason.
    pub due: Option<Cause>,
    /// When the delayed ACK is to be sent.
    pub deadline: Option<Instant>,
    /// What an ACK that was held back is to tell before a further block takes its place.
    pub blocks_before: Option<Box<SackBlockList>>,
    /// Last.ACK.sent of RFC 7323: RCV.NXT of the last segment sent.
    pub last_sent: Seq,
    /// Of what is not acknowledged yet, segments have arrived as one.
    pub joined: bool,
    pub requester: AckRequester,
    /// How the segment that is being sent requests its ACK.
    pub mark: Option<Mark>,
    /// An old byte is to follow what was just sent.
    pub probe_due: bool,
    pub answering: Answers,
    /// When an unacceptable segment without data was last answered.
    pub challenged_at: Option<Instant>,
    /// Answers to unacceptable segments with data.
    pub answers: u32,
    /// Since when `answers` counts.
    pub answers_since: Instant,
}

impl AckState {
    /// Nothing is due, nothing is requested.
    pub fn new(now: Instant, config: &Config) -> Self {
        AckState {
            policy: AckPolicy::new(config.delayed_ack, config.ack_delay, config.ack_every),
            due: None,
            deadline: None,
            blocks_before: None,
            last_sent: Seq::default(),
            joined: false,
            requester: AckRequester::new(config.ack_requests),
            mark: None,
            probe_due: false,
            answering: Answers::default(),
            challenged_at: None,
            answers: 0,
            answers_since: now,
        }
    }

    /// Takes over what the policy has decided. An ACK is delayed no longer than an earlier decision allows.
    pub fn obey(&mut self, decision: Decision) {
        match decision {
            Decision::Now(cause) => self.due = Some(cause),
            Decision::Hold(until) => {
                self.deadline = Some(self.deadline.map_or(until, |by| by.min(until)));
            }
        }
    }

    /// It is long enough since the last answer to what asked for none.
    pub fn may_answer(&mut self, now: Instant) -> bool {
        if self.challenged_at.is_some_and(|at| now.since(at) < CHALLENGE_INTERVAL) {
            return false;
        }
        self.challenged_at = Some(now);
        true
    }

    /// The same for an unacceptable segment with data or FIN, which does ask for an answer.
    pub fn may_answer_data(&mut self, now: Instant) -> bool {
        if now.since(self.answers_since) >= CHALLENGE_INTERVAL {
            (self.answers_since, self.answers) = (now, 0);
        }
        self.answers += 1;
        self.answers <= MAX_ANSWERS
    }
}
