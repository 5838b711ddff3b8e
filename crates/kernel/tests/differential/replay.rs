//! ACKs as the lab has recorded them: a run's records, as what congestion control is told of them.

use crate::pair::{Happening, MSS};
use farpace_events::{Cause, Record, RecordDirection, RecoveryState};
use farpace_lab::scenario::Scenario;
use farpace_lab::{Inputs, Run};
use farpace_tcp::RateSample;
use farpace_tcp::cc::{AckSample, Cut};
use farpace_units::{Instant, Packets, Rate, Seq, Span};
use std::collections::VecDeque;

/// A segment that was sent.
#[derive(Clone, Copy)]
struct Sent {
    seq: Seq,
    end: Seq,
    at: Instant,
    again: bool,
    arrived: bool,
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
}

/// Rebuilds the delivery-rate samples of draft-ietf-ccwg-bbr §4.1 from records.
#[derive(Default)]
struct Replay {
    sent: VecDeque<Sent>,
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    una: Seq,
    lost_out: u32,
    in_flight: u32,
    cwnd: u32,
    min_rtt: Option<Span>,
    began: bool,
}

impl Replay {
    fn on_sent(&mut self, row: &Record) {
        let end = row.seq + u32::try_from(row.len.get()).unwrap();
        if self.sent.iter().all(|s| s.arrived) {
            (self.first_sent_at, self.delivered_at) = (row.time, row.time);
        }
        let (delivered, delivered_at, first_sent_at) =
            (self.delivered, self.delivered_at, self.first_sent_at);
        let fresh = Sent {
            seq: row.seq,
            end,
            at: row.time,
            again: false,
            arrived: false,
            delivered,
            delivered_at,
            first_sent_at,
        };
        match self.sent.iter_mut().find(|s| s.seq == row.seq) {
            Some(s) => *s = Sent { again: true, arrived: s.arrived, ..fresh },
            None => self.sent.push_back(fresh),
        }
    }

    fn on_ack(&mut self, row: &Record) -> AckSample {
        let advanced = row.snd_una.after(self.una);
        let before = self.in_flight;
        let mut newest: Option<Sent> = None;
        let (mut acked, mut delivered) = (0, 0);
        for s in &mut self.sent {
            let cumulative = row.snd_una.after_eq(s.end);
            let covered =
                cumulative || row.sack.iter().any(|b| s.seq.after_eq(b.start) && b.end.after_eq(s.end));
            acked += u32::from(cumulative);
            if covered && !s.arrived {
                s.arrived = true;
                delivered += 1;
                if newest.is_none_or(|n| s.at >= n.at) {
                    newest = Some(*s);
                }
            }
        }
        while self.sent.front().is_some_and(|s| row.snd_una.after_eq(s.end)) {
            self.sent.pop_front();
        }
        if delivered > 0 {
            self.delivered += u64::from(delivered);
            self.delivered_at = row.time;
        }
        let rtt = newest.filter(|n| !n.again).map(|n| row.time.since(n.at));
        if let Some(rtt) = rtt {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
        }
        let rate = newest.map(|n| {
            let interval = row.time.since(n.delivered_at).max(n.at.since(n.first_sent_at));
            self.first_sent_at = n.at;
            let segments = self.delivered - n.delivered;
            let believable = !interval.is_zero() && self.min_rtt.is_none_or(|min| interval >= min);
            let bytes = segments as f64 * f64::from(MSS);
            RateSample {
                newly_delivered: Packets::new(delivered),
                delivered: Packets::new(u32::try_from(segments).unwrap()),
                prior_delivered: n.delivered,
                total_delivered: self.delivered,
                interval,
                rate: believable.then(|| Rate::from_bytes_per_sec_f64(bytes / interval.as_secs_f64())),
                rtt,
                ..RateSample::default()
            }
        });
        let sample = AckSample {
            now: row.time,
            snd_una: row.snd_una,
            snd_nxt: row.snd_nxt,
            acked: if advanced { Packets::new(acked) } else { Packets::ZERO },
            delivered: Packets::new(delivered),
            lost: Packets::new(row.lost_out.get().saturating_sub(self.lost_out)),
            in_flight_before: Packets::new(before),
            in_flight: row.in_flight,
            rtt,
            min_rtt: self.min_rtt,
            srtt: row.srtt,
            mss: MSS,
            max_window: u32::try_from(row.rwnd.get()).unwrap_or(u32::MAX),
            cwnd_limited: before + 2 >= self.cwnd,
            state: row.state,
            rate,
            ..AckSample::of(row.time, Packets::ZERO)
        };
        self.una = row.snd_una;
        self.note(row);
        sample
    }

    fn note(&mut self, row: &Record) {
        self.lost_out = row.lost_out.get();
        self.in_flight = row.in_flight.get();
        self.cwnd = row.cwnd.get();
    }

    /// What a row tells congestion control.
    fn happenings(&mut self, row: &Record) -> Vec<Happening> {
        let mut all = Vec::new();
        match row.direction {
            RecordDirection::Sent => {
                if row.len.get() > 0 {
                    self.on_sent(row);
                }
                self.in_flight = row.in_flight.get();
            }
            RecordDirection::Received => {
                if !self.began {
                    self.began = true;
                    self.una = row.snd_una;
                    all.push(Happening::Established(row.srtt));
                    self.note(row);
                } else {
                    let raises = !matches!(row.state, RecoveryState::Recovery | RecoveryState::Cwr);
                    all.push(Happening::Ack(Box::new(self.on_ack(row)), raises));
                }
            }
            RecordDirection::Internal => match row.cause {
                Some(Cause::CutFastRetransmit) => all.push(Happening::Cut(Cut::FastRetransmit)),
                Some(Cause::CutEcn) => all.push(Happening::Cut(Cut::Ecn)),
                Some(Cause::CutTimeout) => all.extend([Happening::Cut(Cut::Timeout), Happening::Timeout]),
                Some(Cause::Undo | Cause::UndoTimestamp | Cause::UndoDsack | Cause::UndoFRto) => {
                    all.push(Happening::Undo);
                }
                _ => {}
            },
        }
        all
    }
}

/// Runs the scenario, and gives what congestion control of its first flow is told.
pub fn recorded(scenario: &str) -> Vec<(Instant, Happening)> {
    let scenario = Scenario::parse(scenario, "differential.toml").unwrap_or_else(|error| panic!("{error}"));
    let mut run = Run::new(&scenario, Inputs { records: true, ..Inputs::default() }).unwrap();
    let mut rows: Vec<Record> = Vec::new();
    while !run.advance(Some(&mut rows)).unwrap().finished {}
    let mut replay = Replay::default();
    let told = rows.iter().filter(|row| row.connection == 0);
    told.flat_map(|row| replay.happenings(row).into_iter().map(|h| (row.time, h)).collect::<Vec<_>>())
        .collect()
}
