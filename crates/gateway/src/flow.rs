//! A split connection: two legs and what goes between them.

use crate::budget;
use crate::comparison::Sample;
use crate::ledger::LedgerEntry;
use crate::leg::{Leg, segment_of};
use crate::offer::{LegLimits, Offer};
use crate::pipe::LegPipe;
use crate::record::FlowEnd;
use crate::view::{FlowView, GatewaySide};
use farpace_tcp::config::Config;
use farpace_tcp::{CloseReason, Connection, ConnectionState, OutgoingSegment, Ports, Pressure, Segment};
use farpace_units::{ByteCount, Instant, Seq, Span};
use farpace_wire::Packet;
use farpace_wire::tcp::TcpFlags;
use std::net::SocketAddr;
use std::sync::Arc;

/// The ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ends {
    pub opener: SocketAddr,
    pub acceptor: SocketAddr,
}

/// What becomes of a packet of a flow.
pub(crate) enum Verdict {
    /// A leg has taken it.
    Taken,
    /// It goes on unchanged, and the flow with it: the hosts go on with each other.
    HandOver,
    /// The same, because the answer of the acceptor did not pass here.
    Asymmetric,
    /// It goes on unchanged, as the flow is short.
    Short,
    /// The flow is over, and this packet opens another.
    Anew,
}

/// What waits for the answer of the far host.
struct SplitOpening {
    syn: Box<Segment>,
    config: Arc<Config>,
    limits: LegLimits,
    repeated: bool,
}

/// A split connection.
pub(crate) struct SplitFlow {
    pub ends: Ends,
    opener_side: GatewaySide,
    began: Instant,
    opening: Option<SplitOpening>,
    opener: Option<Leg>,
    acceptor: Leg,
    to_acceptor: LegPipe,
    to_opener: LegPipe,
    /// The round trip on the WAN side below which the connection passes; none once that is settled.
    min_rtt: Option<Span>,
    /// When the acceptor has answered, and so the opener was.
    answered_at: Instant,
    /// The answer of the acceptor, until the opener has acknowledged it: no host has to believe in another
    /// that may not exist.
    held: Option<Box<Segment>>,
    /// For the owner: what it counts for, and its timer.
    pub weight: u64,
    pub armed: Option<Instant>,
    pub is_touched: bool,
    pub is_in_ledger: bool,
    pub was_half_open: bool,
    /// It is one of a comparison.
    pub sample: Option<Sample>,
}

/// What a flow is made with.
pub(crate) struct FlowSetup<'a> {
    pub ends: Ends,
    pub opener_side: GatewaySide,
    pub limits: LegLimits,
    /// Of the leg to the opener, and to the acceptor.
    pub configs: [&'a Arc<Config>; 2],
    pub min_rtt: Option<Span>,
    pub rate: Option<farpace_units::Rate>,
}

impl SplitFlow {
    /// A SYN has come: the leg to the acceptor repeats it, with the same number. None: it cannot be split.
    pub fn open(now: Instant, setup: &FlowSetup<'_>, syn: &Packet) -> Option<SplitFlow> {
        let offer = Offer::read(&syn.tcp().ok()?)?;
        let segment = segment_of(syn)?;
        let config = offer.repeated(setup.configs[1], &setup.limits);
        let ports = Ports { local: segment.header.src_port, remote: segment.header.dst_port };
        let mut tcp = Connection::connect(now, &config, ports, segment.header.seq);
        if let Some(stamp) = offer.timestamp {
            tcp.mirror_timestamps(now, stamp);
        }
        if setup.opener_side == GatewaySide::Lan {
            tcp.set_rate_cap(setup.rate);
        }
        Some(SplitFlow {
            ends: setup.ends,
            opener_side: setup.opener_side,
            began: now,
            opening: Some(SplitOpening {
                syn: Box::new(segment),
                config: setup.configs[0].clone(),
                limits: setup.limits,
                repeated: false,
            }),
            opener: None,
            acceptor: Leg::new(now, tcp, syn)?,
            to_acceptor: LegPipe::default(),
            to_opener: LegPipe::default(),
            min_rtt: setup.min_rtt,
            answered_at: now,
            held: None,
            weight: 0,
            armed: None,
            is_touched: false,
            is_in_ledger: false,
            was_half_open: true,
            sample: None,
        })
    }

    /// The initial sequence number of the opener.
    fn iss(&self) -> Option<Seq> {
        self.opening.as_ref().map(|opening| opening.syn.header.seq)
    }

    /// A packet of the opener.
    pub fn on_opener(&mut self, now: Instant, packet: &Packet, freeze: bool) -> Verdict {
        let Some(mut segment) = segment_of(packet) else { return Verdict::Taken };
        if let Some(iss) = self.iss() {
            if is_syn(&segment) && segment.header.seq == iss {
                if let Some(opening) = &mut self.opening {
                    opening.repeated = true;
                }
                return Verdict::Taken; // the leg repeats its own
            }
            // The opener gives up, or begins anew, or speaks of something that was before.
            let ack = segment.header.flags.contains(TcpFlags::ACK) && segment.header.seq == iss + 1;
            return match () {
                () if is_syn(&segment) => Verdict::Anew,
                () if ack && !segment.header.flags.contains(TcpFlags::RST) => Verdict::Asymmetric,
                () => Verdict::HandOver,
            };
        }
        let Some(leg) = &mut self.opener else { return Verdict::HandOver };
        if is_syn(&segment) && leg.is_over() {
            return self.on_new_syn();
        }
        if self.held.is_some() {
            if segment.header.flags.contains(TcpFlags::RST) {
                return Verdict::HandOver;
            }
            // A connection from the WAN: its handshake there is complete.
            if self.min_rtt.take().is_some_and(|least| now.since(self.answered_at) < least) {
                return Verdict::Short;
            }
        }
        self.acceptor.imitate(packet);
        if freeze {
            withhold(&mut segment);
        }
        leg.tcp.set_paths(packet.multipath());
        leg.tcp.on_segment(now, segment);
        Verdict::Taken
    }

    /// One of the hosts is done, and opens another connection between the same ends. It has to wait until the
    /// other host has all of this one; its SYN is repeated.
    fn on_new_syn(&self) -> Verdict {
        let legs = [self.opener.as_ref(), Some(&self.acceptor)];
        let is_delivered = legs.into_iter().flatten().all(Leg::is_empty)
            && self.to_acceptor.is_empty()
            && self.to_opener.is_empty();
        if is_delivered { Verdict::Anew } else { Verdict::Taken }
    }

    /// A packet of the acceptor. `rate`: of the leg to the opener.
    pub fn on_acceptor(
        &mut self,
        now: Instant,
        packet: &Packet,
        rate: Option<farpace_units::Rate>,
        freeze: bool,
    ) -> Verdict {
        let Some(mut segment) = segment_of(packet) else { return Verdict::Taken };
        let Some(opening) = &self.opening else {
            if is_syn(&segment) && self.acceptor.is_over() {
                return self.on_new_syn();
            }
            if self.held.is_some() {
                let ends = segment.header.flags.contains(TcpFlags::RST);
                return if ends { Verdict::HandOver } else { Verdict::Taken };
            }
            if let Some(opener) = &mut self.opener {
                opener.imitate(packet);
            }
            if freeze {
                withhold(&mut segment);
            }
            self.acceptor.tcp.set_paths(packet.multipath());
            self.acceptor.tcp.on_segment(now, segment);
            return Verdict::Taken;
        };
        let (flags, ack) = (segment.header.flags, segment.header.ack);
        let iss = opening.syn.header.seq;
        let is_answer = flags.contains(TcpFlags::SYN.with(TcpFlags::ACK)) && ack == iss + 1;
        if !is_answer || flags.contains(TcpFlags::RST) {
            // Refused; opened from both sides at once; or of another connection between these ends, which may
            // be one that passes and lives, if the SYN was a late copy of its first. The opener has the same
            // numbers and answers itself.
            return Verdict::HandOver;
        }
        if self.opener_side == GatewaySide::Lan
            && let Some(least) = self.min_rtt.take()
            && !opening.repeated
            && now.since(self.began) < least
        {
            return Verdict::Short;
        }
        let Ok(tcp) = packet.tcp() else { return Verdict::Taken };
        let Some(offer) = Offer::read(&tcp) else { return Verdict::HandOver };
        let config = offer.repeated(&opening.config, &opening.limits);
        let ports = Ports { local: segment.header.src_port, remote: segment.header.dst_port };
        let mut near = Connection::accept(now, &config, ports, segment.header.seq, &opening.syn);
        if let Some(stamp) = offer.timestamp {
            near.mirror_timestamps(now, stamp);
        }
        if self.opener_side == GatewaySide::Wan {
            near.set_rate_cap(rate);
        }
        self.opener = Leg::new(now, near, packet);
        self.answered_at = now;
        self.opening = None;
        self.held = Some(Box::new(segment));
        Verdict::Taken
    }

    /// The opener has acknowledged the answer of the acceptor: the leg there hears of it.
    fn release_answer(&mut self) {
        let is_open = |state| !matches!(state, ConnectionState::SynReceived | ConnectionState::Closed);
        let opened = self.opener.as_ref().is_some_and(|opener| is_open(opener.tcp.state()));
        if let Some(answer) = self.held.take_if(|_| opened) {
            // As of when it came, for the round trip.
            self.acceptor.tcp.on_segment(self.answered_at, *answer);
        }
    }

    /// The leg whose packets go to the acceptor, or to the opener.
    pub fn leg(&mut self, to_acceptor: bool) -> Option<&mut Connection> {
        if to_acceptor { Some(&mut self.acceptor.tcp) } else { self.opener.as_mut().map(|leg| &mut leg.tcp) }
    }

    /// What waits on either leg may wait until other packets that have arrived were taken.
    pub fn may_wait(&self) -> bool {
        self.opener.as_ref().is_some_and(|opener| opener.tcp.may_wait()) && self.acceptor.tcp.may_wait()
    }

    /// The deadline has come.
    ///
    /// While the answer of the acceptor is held, the timers of the leg there rest: it has answered, and must
    /// not be given up because an opener beyond a link that is cut says nothing for a while. The leg to the
    /// opener repeats the answer, and ends both if that is in vain.
    pub fn on_deadline(&mut self, now: Instant) {
        let due = |tcp: &Connection| tcp.deadline().is_some_and(|(at, _)| at <= now);
        if self.held.is_none() && due(&self.acceptor.tcp) {
            self.acceptor.tcp.on_deadline(now);
        }
        if let Some(opener) = self.opener.as_mut().filter(|opener| due(&opener.tcp)) {
            opener.tcp.on_deadline(now);
        }
    }

    /// When the flow wants to be woken.
    pub fn deadline(&self) -> Option<Instant> {
        let of = |tcp: &Connection| tcp.deadline().map(|(at, _)| at);
        let acceptor = Some(&self.acceptor.tcp).filter(|_| self.held.is_none());
        let opener = self.opener.as_ref().map(|leg| &leg.tcp);
        acceptor.into_iter().chain(opener).filter_map(of).min()
    }

    /// Moves what can be moved, closes what is closed on the other side, and sends what may be sent, until
    /// nothing happens any more.
    pub fn run(
        &mut self,
        now: Instant,
        pressure: Pressure,
        batch: &mut Vec<OutgoingSegment>,
        mut send: impl FnMut(GatewaySide, Packet),
    ) {
        let side = self.opener_side;
        self.acceptor.tcp.set_pressure(pressure);
        self.release_answer();
        loop {
            self.acceptor.hear();
            let mut busy = false;
            if let Some(opener) = &mut self.opener {
                opener.tcp.set_pressure(pressure);
                opener.hear();
                busy |= self.to_acceptor.run(now, &mut opener.tcp, &mut self.acceptor.tcp);
                busy |= self.to_opener.run(now, &mut self.acceptor.tcp, &mut opener.tcp);
                close(opener, &mut self.acceptor, &self.to_acceptor);
                close(&mut self.acceptor, opener, &self.to_opener);
                busy |= opener.transmit(now, batch, |packet| send(side, packet));
            }
            busy |= self.acceptor.transmit(now, batch, |packet| send(side.other(), packet));
            let heard = self.acceptor.tcp.has_events()
                || self.opener.as_ref().is_some_and(|opener| opener.tcp.has_events());
            if !busy && !heard {
                return;
            }
        }
    }

    /// The host on `side` is told that the connection has ended.
    pub fn reset(
        &mut self,
        now: Instant,
        side: GatewaySide,
        batch: &mut Vec<OutgoingSegment>,
        send: impl FnMut(Packet),
    ) {
        let leg = if self.opener_side == side { self.opener.as_mut() } else { Some(&mut self.acceptor) };
        if let Some(leg) = leg {
            leg.tcp.abort();
            leg.transmit(now, batch, send);
        }
    }

    /// The handshake is not complete.
    pub fn is_half_open(&self) -> bool {
        self.opener.as_ref().is_none_or(|opener| opener.tcp.state() == ConnectionState::SynReceived)
    }

    /// Nothing is left for the legs to do. Segments that come late go to the hosts.
    pub fn is_over(&self) -> bool {
        self.acceptor.is_over() && self.opener.as_ref().is_none_or(Leg::is_over)
    }

    /// How it has ended, when it is over.
    pub fn end(&self) -> FlowEnd {
        if self.opener.is_none() || self.held.is_some() {
            return FlowEnd::NotOpened; // one of the hosts was silent, and was given up
        }
        let legs =
            [(self.opener_side, self.opener.as_ref()), (self.opener_side.other(), Some(&self.acceptor))];
        let failed = |(side, leg): (GatewaySide, Option<&Leg>)| {
            let reason = leg?.closed.filter(|reason| *reason != CloseReason::Finished)?;
            Some((reason == CloseReason::Aborted, side, reason))
        };
        // The other leg was aborted because of it.
        let failed = legs.into_iter().filter_map(failed).min_by_key(|(aborted, ..)| *aborted);
        failed.map_or(FlowEnd::Finished, |(_, side, reason)| FlowEnd::Failed(side, reason))
    }

    /// The hosts can go on with each other: all that was acknowledged to one was acknowledged by the other,
    /// and so was each FIN.
    pub fn can_be_handed_over(&self) -> bool {
        let Some(opener) = self.opener.as_ref().filter(|_| self.held.is_none()) else {
            return true; // what the hosts have still to say of the handshake they say to each other
        };
        let delivered = opener.is_empty() && self.acceptor.is_empty();
        let settled = match (opener.tcp.state(), self.acceptor.tcp.state()) {
            (ConnectionState::Established, ConnectionState::Established) => true,
            // A FIN of one of them, which the other has acknowledged.
            (ConnectionState::CloseWait, ConnectionState::FinWait2) => true,
            (ConnectionState::FinWait2, ConnectionState::CloseWait) => true,
            _ => false,
        };
        settled && delivered && self.to_acceptor.is_empty() && self.to_opener.is_empty()
    }

    /// What the hosts would need to hear if the gateway died now; none: they could go on with each other.
    pub fn ledger_entry(&self) -> Option<LedgerEntry> {
        let opener = self.opener.as_ref().filter(|_| !self.can_be_handed_over())?;
        let (hosts, legs) =
            ([self.ends.opener, self.ends.acceptor], [opener.numbers(), self.acceptor.numbers()]);
        Some(match self.opener_side {
            GatewaySide::Lan => LedgerEntry { hosts, legs },
            GatewaySide::Wan => LedgerEntry { hosts: [hosts[1], hosts[0]], legs: [legs[1], legs[0]] },
        })
    }

    /// The host on the WAN side is asked whether it is there.
    pub fn probe_wan(&mut self, now: Instant, batch: &mut Vec<OutgoingSegment>, send: impl FnMut(Packet)) {
        let leg = if self.opener_side == GatewaySide::Wan {
            self.opener.as_mut()
        } else {
            Some(&mut self.acceptor)
        };
        if let Some(leg) = leg.filter(|_| self.held.is_none()) {
            leg.tcp.probe_peer();
            leg.transmit(now, batch, send);
        }
    }

    /// What it counts for.
    pub fn weigh(&self) -> u64 {
        let opener = self.opener.as_ref().map_or(0, |leg| budget::weight(&leg.tcp.memory()));
        budget::weight(&self.acceptor.tcp.memory()) + opener
    }

    /// Connections with the same configuration have one copy of it.
    pub fn share_configs(&mut self, last: &mut [Option<Arc<Config>>; 2]) {
        let [of_opener, of_acceptor] = last;
        self.acceptor.tcp.share_config(of_acceptor);
        if let Some(opener) = &mut self.opener {
            opener.tcp.share_config(of_opener);
        }
    }

    /// Payload moved to the acceptor, and to the opener, by the side of the destination: WAN, LAN.
    pub fn moved(&self) -> [ByteCount; 2] {
        let (to_acceptor, to_opener) = (self.to_acceptor.moved(), self.to_opener.moved());
        match self.opener_side {
            GatewaySide::Lan => [to_acceptor, to_opener],
            GatewaySide::Wan => [to_opener, to_acceptor],
        }
    }

    /// Payload per second, from opener to acceptor, and back.
    pub fn rates(&self, now: Instant) -> [farpace_units::Rate; 2] {
        [self.to_acceptor.rate(now), self.to_opener.rate(now)]
    }

    fn wan_leg(&self) -> Option<&Leg> {
        match self.opener_side {
            GatewaySide::Lan => Some(&self.acceptor),
            GatewaySide::Wan => self.opener.as_ref(),
        }
    }

    /// For the comparison, if it is in one: what is acknowledged on the WAN leg by now.
    pub fn measure(&mut self, now: Instant) {
        let Some(mut sample) = self.sample else { return };
        if let Some(leg) = self.wan_leg() {
            let acknowledged = leg.tcp.inspect().acknowledged;
            sample.see(now, [acknowledged, leg.tcp.counters().bytes_received]);
            self.sample = Some(sample);
        }
    }

    /// Payload sent on the WAN leg, and of it retransmissions.
    pub fn wan_sent(&self) -> [ByteCount; 2] {
        let counters = self.wan_leg().map(|leg| leg.tcp.counters());
        counters.map_or([ByteCount::ZERO; 2], |counters| [counters.bytes_sent, counters.bytes_sent_again])
    }

    /// The side of the opener.
    pub fn opener_side(&self) -> GatewaySide {
        self.opener_side
    }

    /// For people and metrics.
    pub fn view(&self, now: Instant) -> FlowView {
        let to_opener = self.opener.as_ref().map(|leg| leg.view(now));
        let to_acceptor = self.acceptor.view(now);
        let from_opener = to_opener.map_or(ByteCount::ZERO, |leg| leg.readable);
        let at_opener = to_opener.map_or(ByteCount::ZERO, |leg| leg.unacknowledged);
        FlowView {
            opener: self.ends.opener,
            acceptor: self.ends.acceptor,
            opener_side: self.opener_side,
            age: now.since(self.began),
            undelivered: [from_opener + to_acceptor.unacknowledged, to_acceptor.readable + at_opener],
            to_opener,
            to_acceptor,
            moved: [self.to_acceptor.moved(), self.to_opener.moved()],
            rates: self.rates(now),
        }
    }
}

/// What `from` has heard of its host goes on to `to`: a FIN behind all data, or the end.
fn close(from: &mut Leg, to: &mut Leg, pipe: &LegPipe) {
    let is_delivered = from.tcp.readable().is_zero() && pipe.is_empty();
    match from.closed {
        Some(CloseReason::Finished) | None => {
            if from.peer_closed && is_delivered {
                to.tcp.close();
            }
        }
        // The host has closed behind all that it has sent, which is acknowledged to it: the other gets all of
        // it, and then learns that nothing reaches the first one any more.
        Some(_) if from.peer_closed && !to.is_over() => {
            if is_delivered && to.tcp.unacknowledged().is_zero() {
                to.tcp.abort();
            }
        }
        // What was not delivered is lost with the connection, as without a gateway.
        Some(_) => to.tcp.abort(),
    }
}

fn is_syn(segment: &Segment) -> bool {
    let flags = segment.header.flags;
    flags.contains(TcpFlags::SYN) && !flags.contains(TcpFlags::ACK)
}

/// Leaves of a segment what it acknowledges. What it brings is not acknowledged: its host sends it again.
fn withhold(segment: &mut Segment) {
    segment.payload.clear();
    segment.segment_size = 0;
    segment.header.flags = segment.header.flags.without(TcpFlags::FIN).without(TcpFlags::URG);
}
