//! A TCP segment arrives at a host: it belongs to a connection, opens one, or gets a reset.

use crate::host::Host;
use crate::internet::fitted;
use crate::isn::{isn_above, timestamp_offset};
use crate::listener::ListenAdmission;
use crate::secret::{Purpose, Tuple};
use crate::time_wait::TimeWaitArrival;
use farpace_path::{Cx, DropReason};
use farpace_tcp::{Connection, ConnectionState, Ports, Segment};
use farpace_units::{ByteCount, Seq};
use farpace_wire::tcp::{TcpFlags, TcpHeader};
use farpace_wire::{Ecn, Packet};

/// Answers to segments that belong to nobody. Of more, the rest is dropped unanswered: a host is no mirror
/// for those who forge addresses.
pub const MAX_RESETS_PER_SECOND: u64 = 1_000;

impl Host {
    /// A TCP segment between an address of ours and an honest one.
    pub(crate) fn on_tcp(&mut self, tuple: Tuple, header: TcpHeader, packet: Packet, cx: &mut Cx<'_>) {
        let Some(slot) = self.connections.find(&tuple) else {
            return self.on_stranger(tuple, header, packet, cx);
        };
        let Some(entry) = self.connections.at(slot) else {
            // Its time has not come: nobody can know of it yet.
            return self.refuse(&tuple, &header, packet, cx);
        };
        if too_far(&packet, entry.connection.config().tuning.min_hops) {
            return cx.drop(packet, DropReason::TtlExpired);
        }
        if entry.half_open
            && ends_handshake(&header)
            && let Some(listener) = entry.accepted_by.and_then(|id| self.listeners.get(id))
            && listener.is_full()
        {
            return cx.drop(packet, DropReason::HostLimit);
        }
        if entry.connection.state() == ConnectionState::TimeWait && opens(&header) {
            let segment = segment_of(header.clone(), &packet);
            if entry.connection.may_be_reused_by(&segment) && self.listeners.has(&tuple) {
                let floor = entry.connection.next_iss_floor();
                self.end_time_wait(slot, cx);
                return self.on_syn(tuple, header, packet, Some(floor), cx);
            }
        }
        let (ecn, segment_size) = (ecn_of(&packet), packet.segment_size().unwrap_or(0));
        let paths = packet.multipath();
        let payload = cx.take(packet);
        if let Some(entry) = self.connections.at(slot) {
            let resolves = self.internet.resolves();
            let acknowledged =
                |c: &Connection| if resolves { c.inspect().acknowledged } else { ByteCount::ZERO };
            let before = acknowledged(&entry.connection);
            entry.note_departures();
            entry.connection.set_paths(paths);
            entry.connection.on_segment(cx.now(), Segment { header, payload, ecn, segment_size });
            if acknowledged(&entry.connection) > before {
                self.internet.confirm(cx.now(), tuple.remote);
            }
            // What ends a handshake fills the accept queue before the next segment asks for room in it.
            if let Some(touched) = &mut self.touched
                && !entry.half_open
                && entry.connection.may_wait()
            {
                if touched.last() != Some(&slot) {
                    touched.push(slot);
                }
                return;
            }
        }
        self.service(slot, cx);
    }

    /// A segment for a connection that does not exist, or is in TIME-WAIT.
    fn on_stranger(&mut self, tuple: Tuple, header: TcpHeader, packet: Packet, cx: &mut Cx<'_>) {
        if self.time_waits() > 0 {
            match self.on_time_wait(cx.now(), &tuple, &segment_of(header.clone(), &packet)) {
                TimeWaitArrival::Unknown => {}
                TimeWaitArrival::Reused(floor) => return self.on_syn(tuple, header, packet, Some(floor), cx),
                TimeWaitArrival::Answered(answer) => {
                    cx.consume(packet);
                    return self.answer(&tuple, &answer, cx);
                }
                TimeWaitArrival::Done => return cx.consume(packet),
            }
        }
        if !self.listeners.has(&tuple) {
            self.refuse(&tuple, &header, packet, cx);
        } else if opens(&header) {
            self.on_syn(tuple, header, packet, None, cx);
        } else {
            self.on_cookie(tuple, header, packet, cx);
        }
    }

    /// A SYN for a port that is listened on. `floor`: where the numbers of its SYN-ACK
    /// may begin, if it replaces a connection.
    fn on_syn(
        &mut self,
        tuple: Tuple,
        header: TcpHeader,
        packet: Packet,
        floor: Option<Seq>,
        cx: &mut Cx<'_>,
    ) {
        let Some(listener) = self.listeners.find(&self.secret, &tuple) else { return };
        match listener.admit(self.connections.has_room()) {
            _ if too_far(&packet, listener.settings.config.tuning.min_hops) => {
                cx.drop(packet, DropReason::TtlExpired)
            }
            // As by Linux: no program sends a SYN that also closes, and scanners do.
            _ if header.flags.contains(TcpFlags::FIN) => cx.drop(packet, DropReason::Malformed),
            ListenAdmission::Refuse => cx.drop(packet, DropReason::HostLimit),
            _ if self.budget.refuses_connection() => cx.drop(packet, DropReason::HostLimit),
            ListenAdmission::Cookie => {
                let answer = listener.cookie(&self.secret, &tuple, &header, self.internet.limits, cx.now());
                cx.consume(packet);
                if let Some(answer) = answer {
                    self.answer(&tuple, &answer, cx);
                }
            }
            ListenAdmission::Keep => {
                let iss = isn_above(&self.secret, &tuple, cx.now(), floor);
                let (config, log_as) = (
                    fitted(&listener.settings.config, &tuple, self.internet.limits),
                    listener.settings.log_as,
                );
                let syn = segment_of(header, &packet);
                let mut connection = Connection::accept(cx.now(), &config, ports(&tuple), iss, &syn);
                connection.set_timestamp_offset(timestamp_offset(&self.secret, &tuple));
                let (id, reuse_address) = (listener.id, listener.bind().reuse_address);
                listener.count_half_open();
                cx.consume(packet);
                let Some(mut entry) = self.entry(connection, tuple) else { return };
                (entry.accepted_by, entry.half_open) = (Some(id), true);
                entry.reuse_address = reuse_address;
                self.binds.enter(tuple.local_port, tuple.local, reuse_address);
                let slot = self.connections.add(entry);
                self.begin(slot, log_as, cx);
            }
        }
    }

    /// Something else than a SYN for a port that is listened on: perhaps an answer to a cookie.
    fn on_cookie(&mut self, tuple: Tuple, header: TcpHeader, packet: Packet, cx: &mut Cx<'_>) {
        if !header.flags.intersects(TcpFlags::ACK.with(TcpFlags::RST)) {
            // RFC 9293 §3.10.7.2: what neither opens nor acknowledges anything is dropped unanswered.
            return cx.drop(packet, DropReason::NoListener);
        }
        let ends = ends_handshake(&header);
        let room = self.connections.has_room();
        let Some(listener) = self.listeners.find(&self.secret, &tuple).filter(|_| ends) else {
            return self.refuse(&tuple, &header, packet, cx);
        };
        let Some(known) = listener.redeem(&self.secret, &tuple, &header, cx.now(), room) else {
            return self.refuse(&tuple, &header, packet, cx);
        };
        if self.budget.refuses_connection() || listener.is_full() {
            return cx.drop(packet, DropReason::HostLimit); // its peer sends again what it has to say
        }
        let (config, log_as) =
            (fitted(&listener.settings.config, &tuple, self.internet.limits), listener.settings.log_as);
        let ack = segment_of(header, &packet);
        let connection = Connection::resume(cx.now(), &config, ports(&tuple), &known, &ack);
        let (id, application) = (listener.id, listener.application());
        let reuse_address = listener.bind().reuse_address;
        listener.count_accepted();
        cx.consume(packet);
        let Some(mut entry) = self.entry(connection, tuple) else { return };
        (entry.accepted_by, entry.application) = (Some(id), Some(application));
        entry.reuse_address = reuse_address;
        self.binds.enter(tuple.local_port, tuple.local, reuse_address);
        let slot = self.connections.add(entry);
        self.introduce(slot);
        self.begin(slot, log_as, cx);
    }

    /// RFC 9293 §3.10.7.1: a segment for nobody is answered with a reset, unless it is one.
    fn refuse(&mut self, tuple: &Tuple, header: &TcpHeader, packet: Packet, cx: &mut Cx<'_>) {
        if !header.flags.contains(TcpFlags::RST) && self.resets.allows(cx.now()) {
            let reset = reset_for(header, packet.payload().len());
            self.answer(tuple, &reset, cx);
        }
        cx.drop(packet, DropReason::NoListener);
    }

    /// Sends a segment that belongs to no connection.
    fn answer(&mut self, tuple: &Tuple, header: &TcpHeader, cx: &mut Cx<'_>) {
        if let Some(below) = self.internet.below(tuple.local, tuple.remote) {
            // Numbered by a hash: a counter would tell others how much the host sends.
            let ident = self.secret.hash(Purpose::Ident, tuple, header.seq.get().into()) as u16;
            self.internet.send(below.tcp(ident, header, Default::default()), tuple.remote, cx);
        }
    }
}

fn ports(tuple: &Tuple) -> Ports {
    Ports { local: tuple.local_port, remote: tuple.remote_port }
}

fn opens(header: &TcpHeader) -> bool {
    header.flags.contains(TcpFlags::SYN) && !header.flags.intersects(TcpFlags::ACK.with(TcpFlags::RST))
}

/// It may be the last segment of a handshake.
fn ends_handshake(header: &TcpHeader) -> bool {
    header.flags.contains(TcpFlags::ACK) && !header.flags.intersects(TcpFlags::SYN.with(TcpFlags::RST))
}

/// The reset that answers a segment for nobody.
fn reset_for(header: &TcpHeader, payload: usize) -> TcpHeader {
    let mut reset = TcpHeader {
        src_port: header.dst_port,
        dst_port: header.src_port,
        flags: TcpFlags::RST,
        ..TcpHeader::default()
    };
    if header.flags.contains(TcpFlags::ACK) {
        reset.seq = header.ack;
    } else {
        let control =
            u32::from(header.flags.contains(TcpFlags::SYN)) + u32::from(header.flags.contains(TcpFlags::FIN));
        reset.ack = header.seq + (payload as u32 + control);
        reset.flags = TcpFlags::RST.with(TcpFlags::ACK);
    }
    reset
}

/// The packet has been forwarded more often than IP_MINTTL allows (RFC 5082). Most sockets set none, and read
/// no header for it.
fn too_far(packet: &Packet, min_hops: u8) -> bool {
    min_hops > 0 && packet.ip().is_some_and(|ip| ip.ttl() < min_hops)
}

fn segment_of(header: TcpHeader, packet: &Packet) -> Segment {
    let segment_size = packet.segment_size().unwrap_or(0);
    Segment { header, payload: packet.payload().clone(), ecn: ecn_of(packet), segment_size }
}

/// The congestion notification that a packet carries.
fn ecn_of(packet: &Packet) -> Ecn {
    packet.ip().map_or(Ecn::NotEct, |ip| ip.ecn())
}
