//! What can be changed while a connection lives.

use super::{Connection, ConnectionState};
use crate::cc;
use crate::config::{Config, KeepAlive};
use crate::rto::{PathMove, RttSample};
use farpace_events::{Cause, RecoveryState};
use farpace_units::{ByteCount, Instant, Packets, Rate, Seq, Span};
use std::sync::Arc;

impl Connection {
    /// A layer below has moved packets to another path. If that holds more than the window, what congestion
    /// control knows of the path before is of no use: it begins again, with the window of now. (RFC 9000
    /// section 9.4 begins with the initial window; here the layer has measured the path.)
    pub(super) fn follow_path(&mut self, now: Instant) {
        if self.flight.recovery.state() != RecoveryState::Open {
            return;
        }
        let Some(PathMove { holds_more }) = self.flight.min_rtt.take_move() else { return };
        let rtt = self.flight.min_rtt.base_of_paths();
        if rtt.is_zero() {
            return;
        }
        let (snd_una, snd_nxt) = (self.snd.una, self.snd.nxt);
        self.flight.rto.sample(&RttSample { now, rtt, undelayed: None, snd_una, snd_nxt });
        self.flight.min_rtt.raise(rtt);
        if holds_more {
            self.begin_congestion_control(now);
            self.flight.window.set_ssthresh(Packets::MAX);
        }
    }

    /// Its configuration, to change it: no other connection's changes with it.
    fn own_config(&mut self) -> &mut Config {
        Arc::make_mut(&mut self.config)
    }

    /// Connections with the same configuration have one copy of it: this one takes that of `last`, or leaves
    /// its own there.
    pub fn share_config(&mut self, last: &mut Option<Arc<Config>>) {
        match last {
            Some(shared) if **shared == *self.config => self.config = shared.clone(),
            _ => *last = Some(self.config.clone()),
        }
    }

    /// Takes over what `config` says of things that can change while a connection lives: Nagle's algorithm,
    /// keep-alive, timeouts, and all of [`Tuning`](crate::config::Tuning). Nagle's algorithm or cork that are
    /// taken away let go what they held.
    pub fn retune(&mut self, config: &Config) {
        let releases =
            (self.config.nagle && !config.nagle) || (self.config.tuning.cork && !config.tuning.cork);
        let own = self.own_config();
        own.nagle = config.nagle;
        own.keep_alive = config.keep_alive;
        own.user_timeout = config.user_timeout;
        own.fin_timeout = config.fin_timeout;
        let clamp =
            config.tuning.window_clamp.filter(|_| own.tuning.window_clamp != config.tuning.window_clamp);
        own.tuning = config.tuning;
        own.min_rto = config.min_rto;
        self.flight.rto.set_least(config.min_rto);
        if let (Some(clamp), Some(memory)) = (clamp, &mut self.rcv.memory) {
            memory.limit(clamp);
        }
        if releases {
            self.push();
            self.linux.looks_again();
        }
        self.snd.unsent_refused |= config.tuning.unsent_limit.is_some();
    }
    /// From now on the window follows the congestion control of `config`, beginning with what it is
    /// (TCP_CONGESTION).
    pub fn set_congestion(&mut self, now: Instant, config: &Config) {
        let own = self.own_config();
        own.congestion = config.congestion;
        own.external.clone_from(&config.external);
        own.fast_start = config.fast_start;
        own.pacing = config.pacing;
        own.hystart = config.hystart;
        own.slow_start_limit = config.slow_start_limit;
        own.abe = config.abe;
        self.begin_congestion_control(now);
    }
    /// A congestion control that knows nothing yet, with the window of now.
    fn begin_congestion_control(&mut self, now: Instant) {
        self.flight.cc = cc::make(&self.config, self.snd.iss.get());
        if self.flight.cc.wants_rates() {
            self.flight.segments.measure_rates();
        }
        self.pacer.follow(self.flight.cc.as_ref());
        if !matches!(
            self.state,
            ConnectionState::SynSent | ConnectionState::SynReceived | ConnectionState::Closed
        ) {
            let rtt = self.flight.rto.srtt();
            self.flight.cc.on_event(now, &mut self.flight.window, cc::CongestionEvent::Established(rtt));
        }
        self.set_pace();
    }
    /// Acknowledges at once for a while, beginning with what waits, or as in a conversation (TCP_QUICKACK).
    pub fn set_quick_ack(&mut self, quick: bool) {
        self.ack.policy.set_quick(quick);
        if quick && self.ack.deadline.is_some() {
            self.ack.due.get_or_insert(Cause::AckNow);
        }
    }
    /// True unless acknowledgments wait because data goes both ways.
    pub fn quick_ack(&self) -> bool {
        self.ack.policy.is_quick()
    }
    /// What it was made with, and what was changed since.
    pub fn config(&self) -> &Config {
        &self.config
    }
    /// What the clock of our timestamps shows (RFC 7323 §5.4).
    pub fn timestamp_clock(&self, now: Instant) -> u32 {
        self.timestamp(now)
    }
    /// The clock of our timestamps begins at `offset`, which a host gives to all connections between two
    /// addresses, so that its peer sees one clock (Linux). To be called before anything is sent; profiles
    /// that are not Linux's keep their own.
    pub fn set_timestamp_offset(&mut self, offset: u32) {
        if self.config.is_linux() {
            self.ts.offset = offset;
        }
    }
    /// Bytes in order that wait to be read.
    pub fn readable(&self) -> ByteCount {
        self.rcv.reassembly.readable()
    }
    /// The oldest number that the peer has not acknowledged, the next one to send, and the next one that is
    /// expected from the peer (SND.UNA, SND.NXT and RCV.NXT of RFC 9293).
    pub fn numbers(&self) -> [Seq; 3] {
        [self.snd.una, self.snd.nxt, self.rcv.nxt]
    }
    /// Bytes written and not acknowledged.
    pub fn unacknowledged(&self) -> ByteCount {
        self.snd.buffer.len()
    }
    /// Less than a full segment waits while anything is outstanding (RFC 9293 §3.7.4), or not.
    pub fn set_nagle(&mut self, nagle: bool) {
        self.own_config().nagle = nagle;
        self.linux.looks_again();
    }
    /// Probing of an idle connection (RFC 9293 §3.8.4), from now on.
    pub fn set_keep_alive(&mut self, keep_alive: Option<KeepAlive>) {
        self.own_config().keep_alive = keep_alive;
    }
    /// How long what was written may go without progress (RFC 5482), from now on.
    pub fn set_user_timeout(&mut self, user_timeout: Option<Span>) {
        self.own_config().user_timeout = user_timeout;
    }
    /// How long FIN-WAIT-2 lasts once the program has closed both directions, from now on.
    pub fn set_fin_timeout(&mut self, fin_timeout: Span) {
        self.own_config().fin_timeout = fin_timeout;
    }
    /// Payload leaves at this rate at most, whatever congestion control says.
    pub fn set_rate_cap(&mut self, cap: Option<Rate>) {
        self.pacer.set_cap(cap);
        self.set_pace();
    }

    /// Segments are paced at the [cap](Connection::set_rate_cap), and not at a lower rate.
    pub fn is_paced_by_cap(&self) -> bool {
        self.pacer.cap().is_some() && self.pacer.rate() == self.pacer.cap()
    }
}
