//! One TCP connection, from SYN to TIME-WAIT.

mod acceptance;
mod ack_parts;
mod ack_requests;
mod ack_state;
mod acknowledgment;
mod arrival;
mod buffers;
mod compressed;
mod cork;
mod details;
mod ecn;
mod emit;
mod flight;
mod handshake;
mod keep_alive;
mod linux;
mod linux_pacing;
mod linux_queue;
mod linux_receive;
mod log;
mod mirror;
mod orphan;
mod pacer;
mod path;
mod pressure;
mod receive_space;
mod resume;
mod send_space;
mod statistics;
mod time_wait;
mod timers;
mod timestamps;
mod transmit;
mod transmit_queue;
mod tuning;
mod unsent;
mod urgent;
mod validation;
mod view;

use crate::cc;
use crate::config::Config;
use crate::ports::Ports;
use crate::recovery;
use crate::segment::Segment;
use crate::segments::Segments;
use crate::time_wait::TimeWait;
use crate::window::Window;
use bytes::Bytes;
use farpace_events::{Cause, Record};
use farpace_units::{ByteCount, Instant, Seq};
use farpace_wire::MultipathInfo;
use std::collections::VecDeque;
use std::sync::Arc;

use ack_state::AckState;
use flight::FlightState;
use handshake::Handshake;
use receive_space::ReceiveSpace;
use send_space::SendSpace;
use timestamps::TimestampState;

pub use details::Details;
pub use orphan::MIN_ORPHAN_RATE;
pub use pacer::slowest_pacing_rate;
pub use path::{FLOOR_IPV4, FLOOR_IPV6, PathError};
pub use pressure::Pressure;
pub use resume::ResumedConnection;
pub use statistics::LimitTimes;
pub use timers::Reason;
pub use transmit::{Blocked, Transmit};
pub use transmit_queue::TransmitRoom;
pub use view::{
    CauseCounts, CloseReason, ConnectionEvent, ConnectionInspection, ConnectionMemory, ConnectionState,
    Counters,
};

/// One TCP connection, sans-IO.
///
/// The contract:
/// * Segments that arrive go to [`on_segment`](Connection::on_segment) with their arrival time. Time never
///   goes backwards between calls.
/// * After any call that takes `now`, and after [`write`](Connection::write), [`read`](Connection::read),
///   [`close`](Connection::close) or [`abort`](Connection::abort), call
///   [`poll_transmit`](Connection::poll_transmit) until it returns something else than `Sent`, and drain
///   [`poll_event`](Connection::poll_event).
/// * When [`deadline`](Connection::deadline) has come, call [`on_deadline`](Connection::on_deadline) with a
///   `now` not before it. `deadline` is pure. After that call and a drained `poll_transmit` the next deadline
///   is later than `now`, or none.
/// * Nothing that a peer sends makes it panic or grow beyond its buffers.
///
/// ```
/// use bytes::Bytes;
/// use farpace_tcp::config::Settings;
/// use farpace_tcp::{Connection, Ports};
/// use farpace_units::{Instant, Seq, Span};
///
/// let config = Settings::default().resolve()?;
/// let (mut now, mut wire) = (Instant::ZERO, Vec::new());
/// let mut a = Connection::connect(now, &config, Ports { local: 1, remote: 2 }, Seq::new(100));
/// a.poll_transmit(now, &mut wire, 64);
/// let syn = wire.remove(0).segment;
/// let mut b = Connection::accept(now, &config, Ports { local: 2, remote: 1 }, Seq::new(900), &syn);
/// a.write(&mut Bytes::from_static(b"hello"));
/// let mut got = Vec::new();
/// while got.len() < 5 {
///     now += Span::from_millis(1);
///     b.poll_transmit(now, &mut wire, 64);
///     wire.drain(..).for_each(|o| a.on_segment(now, o.segment));
///     a.poll_transmit(now, &mut wire, 64);
///     wire.drain(..).for_each(|o| b.on_segment(now, o.segment));
///     b.read(|bytes| got.extend_from_slice(&bytes));
/// }
/// assert_eq!(got, b"hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Connection {
    state: ConnectionState,
    ports: Ports,
    config: Arc<Config>,
    snd: SendSpace,
    rcv: ReceiveSpace,
    handshake: Handshake,
    flight: FlightState,
    ack: AckState,
    ts: TimestampState,
    /// Both ends permit SACK (RFC 2018).
    sack: bool,
    ecn: ecn::EcnState,
    urgent: urgent::Urgent,
    path: path::PathMtu,
    /// The network has reported an error since something was acknowledged.
    soft_error: Option<path::PathError>,
    /// A reset that is to be sent: its sequence number and its acknowledgment number.
    reset_pending: Option<(Seq, Seq)>,
    persist: timers::Persist,
    cork: cork::Cork,
    pacer: pacer::ConnectionPacer,
    transmit_queue: transmit_queue::KnownTransmitQueue,
    linux: linux::LinuxOutput,
    keep_alive: keep_alive::KeepAliveState,
    opened_at: Instant,
    /// In TIME-WAIT.
    time_wait: Option<Box<TimeWait>>,
    events: VecDeque<ConnectionEvent>,
    statistics: statistics::Statistics,
    counters: Counters,
    log: Option<log::Log>,
}

/// MSS to assume when the peer does not tell (RFC 9293 §3.7.1).
const DEFAULT_MSS: u16 = 536;
/// The same over IPv6.
const DEFAULT_MSS_IPV6: u16 = 1220;

impl Connection {
    /// Opens a connection actively: the first `poll_transmit` gives the SYN. `iss` is the initial sequence
    /// number, to be hard to guess outside of a lab (RFC 6528).
    pub fn connect(now: Instant, config: &Config, ports: Ports, iss: Seq) -> Self {
        let mut c = Self::new(now, config, ports, iss, ConnectionState::SynSent);
        c.handshake.syn_pending = Some(Cause::Syn);
        c.statistics.open_actively();
        c
    }

    /// Opens a connection passively, for a SYN that arrived at a listener: the first `poll_transmit` gives
    /// the SYN-ACK.
    pub fn accept(now: Instant, config: &Config, ports: Ports, iss: Seq, syn: &Segment) -> Self {
        let mut c = Self::new(now, config, ports, iss, ConnectionState::SynReceived);
        c.counters.segments_received += 1;
        c.ecn.on_syn(syn.header.flags, syn.ecn);
        c.learn_from_syn(now, syn);
        c.handshake.syn_pending = Some(Cause::Syn);
        c
    }

    fn new(now: Instant, config: &Config, ports: Ports, iss: Seq, state: ConnectionState) -> Self {
        let cc = cc::make(config, iss.get());
        let pacer = pacer::ConnectionPacer::new(cc.as_ref());
        Connection {
            state,
            ports,
            config: Arc::new(config.clone()),
            snd: SendSpace::new(now, config, iss),
            rcv: ReceiveSpace::new(config),
            handshake: Handshake::default(),
            flight: FlightState::new(now, config, cc),
            ack: AckState::new(now, config),
            ts: TimestampState::new(now, iss),
            sack: false,
            ecn: ecn::EcnState::new(config.ecn),
            urgent: urgent::Urgent::default(),
            path: path::PathMtu::default(),
            soft_error: None,
            reset_pending: None,
            persist: timers::Persist::default(),
            cork: cork::Cork::default(),
            pacer,
            transmit_queue: None,
            linux: linux::LinuxOutput::default(),
            keep_alive: keep_alive::KeepAliveState::new(now),
            opened_at: now,
            time_wait: None,
            events: VecDeque::new(),
            statistics: statistics::Statistics::default(),
            counters: Counters::default(),
            log: None,
        }
    }

    fn default_mss(&self) -> u16 {
        if self.config.network_header >= 40 { DEFAULT_MSS_IPV6 } else { DEFAULT_MSS }
    }

    /// The receive window, as far as the program allows (TCP_WINDOW_CLAMP), in whole segments in Linux.
    fn first_window(&self) -> u32 {
        let size = self.rcv.window.size();
        let Some(clamp) = self.config.tuning.window_clamp.filter(|clamp| *clamp < size) else { return size };
        let unit = self.window_unit();
        if self.config.is_linux() && clamp > unit { clamp / unit * unit } else { clamp }
    }

    /// The receive window is counted in segments of this size: those that the peer may send in Linux,
    /// elsewhere those that we send.
    fn window_unit(&self) -> u32 {
        if self.config.is_linux() {
            u32::from(self.config.mss).saturating_sub(self.ts.option_bytes()).max(1)
        } else {
            self.snd.mss
        }
    }

    /// The MSS of a peer that tells none. Linux takes the program's own for it where the program opens the
    /// connection.
    fn untold_mss(&self) -> u16 {
        let chosen = self.config.is_linux() && self.config.tuning.link_mtu.is_some();
        if chosen && self.opened_actively() { self.config.mss } else { self.default_mss() }
    }

    /// Takes the options of the peer's SYN (or SYN-ACK), and sizes everything that depends on them.
    fn learn_from_syn(&mut self, now: Instant, syn: &Segment) {
        let options = &syn.header.options;
        self.rcv.irs = syn.header.seq;
        self.rcv.nxt = self.rcv.irs + 1;
        self.ack.last_sent = self.rcv.nxt;
        self.sack = self.config.sack && options.sack_permitted;
        if !self.sack || self.config.is_linux() {
            self.flight.recovery = recovery::make(self.config.recovery, self.sack);
        }
        self.ts.enabled = self.config.timestamps && options.timestamps.is_some();
        self.ts.recent = options.timestamps.map_or(0, |t| t.value);
        self.ack.requester.agree(&options.ack_control);
        self.ts.recent_at = now;
        match options.window_scale {
            // RFC 7323 §2.3: a shift above 14 counts as 14.
            Some(shift) if self.config.window_scale => self.snd.wscale = shift.min(14),
            _ => {
                self.linux.offered_scale = self.rcv.wscale;
                (self.snd.wscale, self.rcv.wscale) = (0, 0);
                self.rcv.window.limit(u32::from(u16::MAX));
            }
        }
        let told = options.mss.filter(|mss| *mss > 0);
        self.size_segments(told.unwrap_or(self.untold_mss()), told.is_some());
        // Who opens the connection has told its window already.
        if !(self.config.is_linux() && self.opened_actively()) {
            self.rcv.window.size_for(self.window_unit());
        }
        self.rcv.adv = self.rcv.nxt + self.first_window();
        let abc = self.flight.window.abc();
        self.flight.window = Window::new(
            self.config.first_window(self.snd.mss),
            self.config.initial_ssthresh,
            self.config.cwnd_clamp,
            abc,
            self.snd.mss,
        )
        .with_floor(self.config.cwnd_floor);
        // The window in a SYN is never scaled (RFC 7323 §2.2).
        self.snd.wnd = u32::from(syn.header.window);
        self.snd.max_wnd = self.snd.wnd;
        self.snd.wl1 = syn.header.seq;
    }

    /// Takes as much of the front of `data` as the send buffer has room for; `data` keeps the rest.
    /// Nothing is taken once the sending side is closed.
    pub fn write(&mut self, data: &mut Bytes) -> ByteCount {
        if self.snd.fin_queued || matches!(self.state, ConnectionState::Closed | ConnectionState::TimeWait) {
            return ByteCount::ZERO;
        }
        let taken = self.write_limited(data);
        self.note_room(!data.is_empty());
        self.push_written();
        taken
    }

    /// Bytes that [`write`](Connection::write) would take now.
    pub fn write_room(&self) -> ByteCount {
        if self.snd.fin_queued { ByteCount::ZERO } else { self.writable_share() }
    }

    /// Hands everything that has arrived in order to `take`.
    pub fn read(&mut self, take: impl FnMut(Bytes)) -> ByteCount {
        self.read_up_to(ByteCount::MAX, take)
    }

    /// Hands at most `limit` bytes of what has arrived in order to `take`. What stays keeps the window closed
    /// by as much.
    pub fn read_up_to(&mut self, limit: ByteCount, take: impl FnMut(Bytes)) -> ByteCount {
        let bytes = self.rcv.reassembly.read_up_to(limit, take);
        self.rcv.window.on_read(bytes);
        self.reopen();
        if self.rcv.memory.is_some() {
            if !self.rcv.reads_are_reported && !bytes.is_zero() {
                let read = self.rcv.reassembly.next() - self.rcv.reassembly.readable().get();
                self.program_has_read(self.linux.clock, read);
            }
            return bytes;
        }
        if !bytes.is_zero() && self.window_opened() {
            self.ack.due.get_or_insert(Cause::AckWindow);
        }
        if self.ack.deadline.is_some()
            && self.rcv.reassembly.readable().is_zero()
            && self.ack.policy.on_all_read()
        {
            self.ack.due.get_or_insert(Cause::AckNow);
        }
        bytes
    }

    /// Closes the sending side: a FIN follows what was written.
    pub fn close(&mut self) {
        self.snd.fin_queued = true;
        self.linux.looks_again();
        if self.state == ConnectionState::SynSent && self.snd.buffer.len().is_zero() {
            self.finish(CloseReason::Finished);
        }
    }

    /// The same, with the last of what was written. It is taken whole, beyond [`Config::send_buffer`] if need
    /// be: who closes may be about to leave, and from here on the connection needs nobody to end
    /// ([`is_orphan`](Connection::is_orphan)).
    pub fn close_after(&mut self, last: impl IntoIterator<Item = Bytes>) {
        if !self.snd.fin_queued && !matches!(self.state, ConnectionState::Closed | ConnectionState::TimeWait)
        {
            for data in last {
                self.snd.buffer.write_last(data);
                self.push_written();
            }
        }
        self.close();
    }

    /// The application reads no more. With [`close`](Connection::close) this is the full close of RFC 9293
    /// §3.6.1: data that waits to be read, or comes later, is lost, so the peer gets a reset.
    pub fn stop_reading(&mut self) {
        self.rcv.read_shutdown = true;
        // Of what waits behind a hole Linux knows nothing yet.
        let waits = self.rcv.reassembly.has_hole() && !self.config.is_linux();
        if !self.rcv.reassembly.readable().is_zero() || waits {
            self.abort();
        }
    }

    /// The application has shut the reading side (`SHUT_RD`): where it has shut the other, too, more data is
    /// an error, in Linux.
    pub fn shut_reading(&mut self) {
        self.rcv.shut = true;
    }

    /// Ends the connection at once; the peer gets a reset.
    pub fn abort(&mut self) {
        // RFC 9293 §3.10.5: whoever has both closed needs no reset.
        if !matches!(
            self.state,
            ConnectionState::Closed
                | ConnectionState::SynSent
                | ConnectionState::Closing
                | ConnectionState::LastAck
                | ConnectionState::TimeWait
        ) {
            self.reset_pending = Some((self.snd.nxt, self.rcv.nxt));
        }
        self.finish(CloseReason::Aborted);
    }

    /// Ends the connection at once, and tells the peer nothing.
    pub fn forget(&mut self) {
        self.finish(CloseReason::Aborted);
    }

    /// There is something that the application should hear.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Of what it has sent, this number ([`OutgoingSegment::number`](crate::OutgoingSegment::number)) and
    /// those before it have left the queues of the host. From the first call on, others count as waiting
    /// there: they are not sent again, and the retransmission timer does not take them for lost (as in Linux,
    /// which asks whether a packet's memory is still in use). Call it before the other calls if numbers have
    /// left meanwhile. Without this, all leaves at once.
    #[inline]
    pub fn set_departed(&mut self, number: u32) {
        self.flight.segments.set_departed(number);
    }

    /// What a layer with several paths knows of those to the peer, with the segment that comes next. None:
    /// there is one path.
    #[inline]
    pub fn set_paths(&mut self, info: Option<MultipathInfo>) {
        let window = u64::from(self.flight.window.cwnd().get()) * u64::from(self.flight.window.mss());
        self.flight.min_rtt.set_paths(info, window);
    }

    /// The congestion control does not take each loss for congestion.
    #[inline]
    pub fn loss_tolerant(&self) -> bool {
        self.flight.cc.loss_tolerant()
    }

    /// The next thing the application should hear.
    pub fn poll_event(&mut self) -> Option<ConnectionEvent> {
        self.events.pop_front()
    }

    fn tell(&mut self, event: ConnectionEvent) {
        if !self.events.contains(&event) {
            self.events.push_back(event);
        }
    }

    /// Everything ends here.
    fn finish(&mut self, reason: CloseReason) {
        if self.state == ConnectionState::Closed {
            return;
        }
        let opening = matches!(self.state, ConnectionState::SynSent | ConnectionState::SynReceived);
        self.statistics.leave(self.snd.outstanding_bytes() + u64::from(opening));
        self.state = ConnectionState::Closed;
        self.flight.rto_deadline = None;
        self.ack.due = None;
        self.ack.deadline = None;
        self.persist = timers::Persist::default();
        self.cork = cork::Cork::default();
        self.pacer.stop();
        self.time_wait = None;
        self.handshake.syn_pending = None;
        self.flight.segments = Segments::default();
        self.snd.buffer.clear();
        self.tell(ConnectionEvent::Closed(reason));
    }

    /// State of RFC 9293.
    pub fn state(&self) -> ConnectionState {
        self.state
    }

    /// Ports of this end and the other.
    pub fn ports(&self) -> Ports {
        self.ports
    }

    /// Entries of the retransmission queue that recovery has visited for ACKs since the last call: what a
    /// processor has to do besides taking the segment.
    pub fn take_visited(&mut self) -> u64 {
        self.flight.recovery.take_visited()
    }

    /// What happened so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// A snapshot for samplers, reports and people.
    pub fn inspect(&self) -> ConnectionInspection {
        ConnectionInspection {
            state: self.state,
            recovery: self.flight.recovery.state(),
            cwnd: self.flight.window.cwnd(),
            ssthresh: self.flight.window.ssthresh(),
            in_flight: self.flight.segments.in_flight(),
            acknowledged: ByteCount::new(self.snd.una_offset.min(self.snd.buffer.end())),
            timeouts: self.counters.timeouts,
            srtt: self.flight.rto.srtt(),
            undelayed_srtt: self.flight.rto.undelayed_srtt(),
            rto: self.flight.rto.rto(),
            rwnd: ByteCount::new(u64::from(self.snd.wnd)),
            mss: self.snd.mss,
            largest_mss: self.path.ceiling(),
            unsent: ByteCount::new(self.snd.unsent()),
            bandwidth: self.flight.cc.bandwidth(),
            min_rtt: self.flight.cc.min_rtt(),
        }
    }

    /// What it holds, for tests of its limits and for people who have many.
    pub fn memory(&self) -> ConnectionMemory {
        ConnectionMemory {
            rows: self.flight.segments.len(),
            send_bytes: self.snd.buffer.len(),
            send_chunks: self.snd.buffer.chunks(),
            readable_bytes: self.rcv.reassembly.readable(),
            readable_chunks: self.rcv.reassembly.readable_chunks(),
            waiting_bytes: self.rcv.reassembly.waiting(),
            waiting_chunks: self.rcv.reassembly.waiting_chunks(),
            out_of_order_ranges: self.rcv.reassembly.out_of_order_ranges(),
            events: self.events.len(),
        }
    }

    /// From now on a [`Record`] is made of every segment sent and every ACK processed, under the number
    /// `connection`. Fetch them with [`take_records`](Connection::take_records).
    pub fn start_log(&mut self, connection: u32) {
        self.log = Some(log::Log::new(connection));
    }

    /// Stops making records.
    pub fn stop_log(&mut self) {
        self.log = None;
    }

    /// Hands the records made since the last call to `take`.
    pub fn take_records(&mut self, take: impl FnMut(Record)) {
        if let Some(log) = &mut self.log {
            log.drain(take);
        }
    }

    /// Our timestamp clock (RFC 7323 §5.4): 1 ms or the tick that was chosen, from an arbitrary origin.
    fn timestamp(&self, now: Instant) -> u32 {
        self.flight.rto.clock().timestamp(now).wrapping_add(self.ts.offset)
    }
}
