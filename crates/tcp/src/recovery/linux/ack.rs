//! What an acknowledgment goes through, in the kernel's order: SACK blocks, the queue, RACK's window, the
//! answer to a probe, the congestion states, the window.

use super::ack_flags::AckFlags;
use super::board::BoardMarks;
use super::*;
use crate::cc::AckSample;
use crate::rto::RttSample;

impl LinuxRecovery {
    pub(super) fn process(&mut self, ack: &AckInput<'_>, cx: &mut Context<'_>) -> AckOutcome {
        let delivered_before = self.tallies.delivered;
        let lost_before = self.lost;
        let mut flags = AckFlags {
            advanced: ack.snd_una.after(ack.prior_snd_una),
            data_or_window: ack.has_data || ack.window_update,
            ece: ack.ece,
            ..AckFlags::default()
        };
        let old = ack.ack.before(ack.prior_snd_una);
        if old && ack.sack.is_empty() {
            return AckOutcome::default();
        }
        if flags.advanced {
            self.timeouts = 0;
        }
        let before = cx.segments.in_flight();
        let prior_fack =
            if self.sack { self.highest_sacked(cx.segments, ack.prior_snd_una) } else { ack.snd_una };
        let mut marks = BoardMarks::default();
        if !ack.sack.is_empty() {
            self.take_blocks(ack, &mut flags, &mut marks, cx);
        }
        if old {
            self.alert(ack, &mut flags, 0, cx);
            return AckOutcome::default();
        }
        if cx.segments.is_empty() {
            if flags.dsack {
                self.alert(ack, &mut flags, 0, cx);
            }
            self.answer_probe(ack, &flags, cx);
            return AckOutcome::default();
        }
        let acknowledged = self.clean(ack, prior_fack, &mut flags, &mut marks, cx);
        if !cx.cc.owns_window() {
            let delivered = Packets::new((self.tallies.delivered - delivered_before) as u32);
            let sample = AckSample {
                snd_una: ack.snd_una,
                snd_nxt: ack.snd_nxt,
                rtt: marks.rtt,
                min_rtt: cx.min_rtt.get().map(|rtt| cx.of_all_paths(rtt)),
                base_of_paths: cx.min_rtt.base_of_paths(),
                several_paths: cx.min_rtt.is_several(),
                srtt: cx.rto.srtt(),
                mss: cx.window.mss(),
                state: self.state,
                ..AckSample::of(ack.now, delivered)
            };
            cx.cc.on_measured(cx.window, &sample);
        }
        if ack.ece {
            let all = (self.tallies.delivered - delivered_before) as u32;
            self.tallies.delivered_ce += u64::from(ack.marked.get().min(all));
        }
        self.rack.adapt(ack.now, &self.switches);
        self.answer_probe(ack, &flags, cx);
        let dubious = !flags.not_duplicate()
            || flags.sacked
            || flags.ece
            || flags.dsack
            || self.state != RecoveryState::Open;
        if dubious {
            let duplicates = u32::from(!(flags.advanced || flags.not_duplicate() || flags.dsack));
            self.alert(ack, &mut flags, duplicates, cx);
        }
        if flags.set_timer && !self.schedule_probe(ack.now, true, cx) {
            self.timer.rearm(ack.now, cx.rto.rto(), cx.segments);
        }
        let delivered = Packets::new((self.tallies.delivered - delivered_before) as u32);
        let lost = (self.lost - lost_before) as u32;
        self.control(ack, before, delivered, lost, &flags, &marks, cx);
        AckOutcome { acknowledged, reneged: false }
    }

    /// Takes what is acknowledged off the queue, and measures.
    fn clean(
        &mut self,
        ack: &AckInput<'_>,
        prior_fack: Seq,
        flags: &mut AckFlags,
        marks: &mut BoardMarks,
        cx: &mut Context<'_>,
    ) -> crate::segments::Acknowledged {
        let sack = self.sack;
        let tick = cx.rto.clock();
        let min_rtt = cx.min_rtt.get();
        let (mut first, mut last) = (None, None);
        let (mut reord, mut acked, mut fresh) = (ack.snd_nxt, 0u32, 0u32);
        let assumed = cx.segments.assumed_out().get();
        let high_seq = self.high_seq;
        let rack = &mut self.rack;
        let acknowledged = cx.segments.acknowledge_each(ack.snd_una, |row, tags, rows| {
            acked += rows;
            if tags.any(Tags::EVER_RETRANSMITTED.with(Tags::RETRANSMITTED)) {
                flags.resent_acked = true;
            } else if !tags.any(Tags::SACKED) {
                first.get_or_insert(row.sent_at);
                last = Some(row.sent_at);
                // Of a run the first is shown, too.
                if row.seq.before(reord) {
                    reord = row.seq;
                }
                flags.original |= !row.end().after(high_seq);
            }
            if !tags.any(Tags::SACKED) {
                fresh += rows;
                if sack && !rack::is_spurious(row, tags, ack, tick) {
                    rack.advance(ack.now, row, tags, min_rtt);
                }
            }
        });
        if let Some(gone) = cx.segments.trim_burst(ack.snd_una) {
            acked += gone;
            fresh += if cx.segments.tags(0).any(Tags::SACKED) { 0 } else { gone };
        }
        flags.acked = acked > 0;
        flags.reneging = cx.segments.tags(0).any(Tags::SACKED);
        if sack {
            self.tallies.delivered += u64::from(fresh);
        }
        let since = |at: Option<Instant>| at.map(|at| ack.now.since(at));
        let by_segment = since(first).filter(|_| !flags.resent_acked);
        let by_sack = since(marks.first_sent);
        marks.rtt = since(marks.last_sent).or(since(last).filter(|_| !flags.resent_acked));
        let by_timestamp = ack.rtt_by_timestamp.filter(|_| flags.acked && ack.tsecr != Some(0));
        // Less than a tick of the clock counts as one.
        let by_timestamp = by_timestamp.map(|rtt| rtt.max(tick.tick()));
        let rtt = match by_segment.or(by_sack) {
            Some(rtt) => Some(rtt),
            None => {
                marks.rtt = by_timestamp;
                by_timestamp
            }
        };
        if let Some(rtt) = rtt {
            let (now, snd_una, snd_nxt) = (ack.now, ack.snd_una, ack.snd_nxt);
            cx.min_rtt.sample(now, marks.rtt.unwrap_or(rtt));
            marks.rtt = marks.rtt.map(|rtt| cx.of_all_paths(rtt));
            cx.rto.sample(&RttSample { now, rtt, undelayed: ack.undelayed, snd_una, snd_nxt });
        }
        if flags.acked {
            flags.set_timer = true;
            if !sack {
                self.remove_assumed(assumed, acked, cx);
                flags.original &= !flags.resent_acked;
            } else if reord.before(prior_fack) {
                // A hole was filled that was never sent again.
                let fack = self.highest_sacked(cx.segments, ack.snd_una);
                self.see_reordering(reord, fack, cx);
            }
        } else if rtt.is_some()
            && let (Some(rtt), Some(head)) = (by_sack, cx.segments.row(0))
            && rtt > ack.now.since(head.sent_at)
        {
            // Measured by data sent before the head was sent last: the timeout must not be put off for ever.
            flags.set_timer = true;
        }
        acknowledged
    }

    /// RFC 8985 §7.4: what the answer to a loss probe tells.
    fn answer_probe(&mut self, ack: &AckInput<'_>, flags: &AckFlags, cx: &mut Context<'_>) {
        let Some((end, repeated)) = self.probe.filter(|(end, _)| !ack.ack.before(*end)) else { return };
        if !repeated || flags.dsack_of_probe {
            self.probe = None;
        } else if ack.ack.after(end) {
            // The probe has repaired a loss.
            self.begin_reduction(
                ack.now,
                ack.snd_nxt,
                crate::cc::Cut::FastRetransmit,
                Cause::CutTailLoss,
                cx,
            );
            self.state = RecoveryState::Cwr;
            self.end_reduction(ack.now, cx);
            self.try_keep_open(ack.snd_nxt, cx);
        } else if !(flags.advanced || flags.not_duplicate() || flags.sacked) {
            self.probe = None; // both copies have arrived
        }
    }

    /// The window after an acknowledgment.
    #[allow(clippy::too_many_arguments, reason = "what the ACK brought, in its parts")]
    fn control(
        &mut self,
        ack: &AckInput<'_>,
        before: Packets,
        delivered: Packets,
        lost: u32,
        flags: &AckFlags,
        marks: &BoardMarks,
        cx: &mut Context<'_>,
    ) {
        let mut sample = cx.sample(ack, &Default::default(), before);
        (sample.acked, sample.delivered) = (delivered, delivered);
        sample.marked = ack.marked.min(delivered);
        sample.lost = Packets::new(lost);
        sample.rtt = marks.rtt;
        sample.state = self.state;
        sample.cwnd_limited = self.usage.is_limited(cx.window);
        if cx.cc.owns_window() {
            cx.measure(&sample);
            cx.cc.on_ack(cx.window, &sample);
        } else if self.in_reduction() {
            self.reduce(delivered.get(), lost, flags.advanced, cx);
        } else {
            let raises = if self.reordering > self.switches.reordering.get() {
                flags.acked || flags.sacked
            } else {
                flags.acked
            };
            if raises {
                cx.cc.on_ack(cx.window, &sample);
            }
        }
    }
}
