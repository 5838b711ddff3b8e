//! One TCP connection, from SYN to TIME-WAIT.

mod acceptance;
mod ack_requests;
mod acknowledgment;
mod arrival;
mod buffers;
mod cork;
mod details;
mod ecn;
mod emit;
mod keep_alive;
mod linux;
mod linux_queue;
mod linux_receive;
mod log;
mod orphan;
mod pacer;
mod path;
mod pressure;
mod resume;
mod statistics;
mod time_wait;
mod timers;
mod transmit;
mod tuning;
mod unsent;
mod urgent;
mod validation;
mod view;

use crate::ack::AckPolicy;
use crate::ack_request::{AckRequester, Answers, Mark};
use crate::cc::{self, CongestionControl};
use crate::config::{Config, DelayedAck};
use crate::receive::{LinuxMemory, ReceiveWindow, SackBlockList, StreamReassembly};
use crate::recovery::{self, Context, LossRecovery};
use crate::rto::{MinRtt, RtoEstimator, TcpClock, Timed};
use crate::segment::Segment;
use crate::segments::Segments;
use crate::send_buffer::SendBuffer;
use crate::time_wait::TimeWait;
use crate::window::Window;
use bytes::Bytes;
use farpace_events::{Cause, Record};
use farpace_units::{ByteCount, Instant, Packets, Seq, Span};
use std::collections::VecDeque;
use std::sync::Arc;

pub use details::Details;
pub use orphan::MIN_ORPHAN_RATE;
pub use path::{FLOOR_IPV4, FLOOR_IPV6, PathError};
pub use pressure::Pressure;
pub use resume::ResumedConnection;
pub use statistics::LimitTimes;
pub use timers::Reason;
pub use transmit::{Blocked, Transmit};
pub use view::{
    CauseCounts, CloseReason, ConnectionEvent, ConnectionInspection, ConnectionMemory, ConnectionState,
    Counters, Ports,
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
    // Send sequence space (RFC 9293 §3.3.1)
    iss: Seq,
    snd_una: Seq,
    snd_nxt: Seq,
    snd_wnd: u32,
    snd_wl1: Seq,
    max_window: u32,
    snd_wscale: u8,
    /// Payload of a full segment: what both ends and the path allow, less our options.
    mss: u32,
    path: path::PathMtu,
    /// The network has reported trouble since something was acknowledged.
    soft_error: Option<path::PathError>,
    /// Stream offset of SND.UNA.
    una_offset: u64,
    buffer: SendBuffer,
    /// Something was not taken because too much was unsent.
    unsent_refused: bool,
    fin_queued: bool,
    fin_seq: Option<Seq>,
    /// SYN or SYN-ACK is to be sent (again).
    syn_pending: Option<Cause>,
    syn_sent_at: Option<Instant>,
    syn_retransmitted: bool,
    /// The transmission that carried it last.
    syn_number: u32,
    /// Of a SYN that was sent once. Segments with data take longer on slow lines, so that it is not a sample of `min_rtt`.
    handshake_rtt: Option<Span>,
    /// The handshake was complete, but what the program waits for has not come.
    deferred: bool,
    reset_pending: Option<(Seq, Seq)>,
    // Loss recovery and congestion control
    segments: Segments,
    window: Window,
    recovery: Box<dyn LossRecovery>,
    cc: Box<dyn CongestionControl>,
    rto: RtoEstimator,
    min_rtt: MinRtt,
    timed: Timed,
    /// SND.NXT when the congestion window last held data back.
    limited_at: Option<Seq>,
    /// When at least half of the congestion window was in use.
    validated_at: Instant,
    rto_deadline: Option<Instant>,
    /// Timeouts since the last acknowledgment of something new.
    timeouts_in_row: u32,
    last_sent: Instant,
    persist: timers::Persist,
    hold: cork::Cork,
    linux: linux::LinuxOutput,
    pacer: pacer::ConnectionPacer,
    patience: keep_alive::KeepAlive,
    statistics: statistics::Statistics,
    ecn: ecn::EcnState,
    urgent: urgent::Urgent,
    /// The application reads no more.
    deaf: bool,
    /// It has shut the reading side.
    shut: bool,
    // Receive sequence space
    irs: Seq,
    rcv_nxt: Seq,
    /// Right edge of the window that was announced last.
    rcv_adv: Seq,
    rcv_wscale: u8,
    receive: ReceiveWindow,
    /// The receive buffer as Linux counts it, where it is autotuned.
    memory: Option<Box<LinuxMemory>>,
    /// What the program has read is told, not what is taken from here.
    reads_are_told: bool,
    shortage: pressure::Shortage,
    reassembly: StreamReassembly,
    islands: SackBlockList,
    /// Sequence number of the peer's FIN, once it is known.
    peer_fin: Option<Seq>,
    // Acknowledgments
    ack_policy: AckPolicy,
    ack_now: Option<Cause>,
    ack_by: Option<Instant>,
    // Acknowledgments that are asked for
    solicitor: AckRequester,
    /// How the segment that is being sent asks.
    mark: Option<Mark>,
    /// An old byte is to follow what was just sent.
    probe_due: bool,
    answering: Answers,
    /// When an unacceptable segment without data was last answered.
    challenged_at: Option<Instant>,
    /// Answers to unacceptable segments with data, and since when they are counted.
    answers: u32,
    answers_since: Instant,
    /// RCV.NXT of the last segment sent (Last.ACK.sent of RFC 7323).
    last_ack_sent: Seq,
    // Options in use
    sack: bool,
    timestamps: bool,
    ts_recent: u32,
    /// When TS.Recent was taken.
    ts_recent_at: Instant,
    /// Origin of our timestamp clock.
    ts_offset: u32,
    opened_at: Instant,
    /// In TIME-WAIT.
    time_wait: Option<Box<TimeWait>>,
    events: VecDeque<ConnectionEvent>,
    counters: Counters,
    /// Reductions and the like of the call under way, for the trace.
    causes: Vec<Cause>,
    log: Option<log::Log>,
}

/// Bytes of the timestamps option in a header, with its padding.
const TIMESTAMP_BYTES: u32 = 12;
/// MSS to assume when the peer does not tell (RFC 9293 §3.7.1).
const DEFAULT_MSS: u16 = 536;
/// The same over IPv6.
const DEFAULT_MSS_IPV6: u16 = 1220;

impl Connection {
    /// Opens a connection actively: the first `poll_transmit` gives the SYN. `iss` is the initial sequence
    /// number, to be hard to guess outside of a lab (RFC 6528).
    pub fn connect(now: Instant, config: &Config, ports: Ports, iss: Seq) -> Self {
        let mut c = Self::new(now, config, ports, iss, ConnectionState::SynSent);
        c.syn_pending = Some(Cause::Syn);
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
        c.syn_pending = Some(Cause::Syn);
        c
    }

    fn new(now: Instant, config: &Config, ports: Ports, iss: Seq, state: ConnectionState) -> Self {
        let mss = u32::from(config.mss);
        let opens = config.delayed_ack == DelayedAck::Linux;
        let mut receive = ReceiveWindow::new(config.receive_buffer, config.window_growth, opens, mss);
        let rcv_wscale = if config.window_scale { window_shift(receive.max()) } else { 0 };
        if !config.window_scale {
            receive.limit(u32::from(u16::MAX));
        }
        let cc = cc::make(config, iss.get());
        let pacer = pacer::ConnectionPacer::new(cc.as_ref());
        Connection {
            state,
            ports,
            config: Arc::new(config.clone()),
            iss,
            snd_una: iss,
            snd_nxt: iss,
            snd_wnd: 0,
            snd_wl1: Seq::default(),
            max_window: 0,
            snd_wscale: 0,
            mss,
            path: path::PathMtu::default(),
            soft_error: None,
            una_offset: 0,
            buffer: SendBuffer::new(config.send_buffer.initial),
            unsent_refused: false,
            fin_queued: false,
            fin_seq: None,
            syn_pending: None,
            syn_sent_at: None,
            syn_retransmitted: false,
            syn_number: 0,
            handshake_rtt: None,
            deferred: false,
            reset_pending: None,
            segments: pacer::queue_for(cc.as_ref()),
            window: Window::new(
                Packets::new(1),
                config.initial_ssthresh,
                config.cwnd_clamp,
                config.byte_counting(),
                mss,
            ),
            recovery: recovery::make(config.recovery, config.sack),
            cc,
            rto: RtoEstimator::new(config.rto, config.min_rto, TcpClock::new(config.clock)),
            min_rtt: MinRtt::default(),
            timed: Timed::default(),
            limited_at: None,
            validated_at: now,
            rto_deadline: None,
            timeouts_in_row: 0,
            last_sent: now,
            persist: timers::Persist::default(),
            hold: cork::Cork::default(),
            linux: linux::LinuxOutput::default(),
            pacer,
            patience: keep_alive::KeepAlive::new(now),
            statistics: statistics::Statistics::default(),
            ecn: ecn::EcnState::new(config.ecn),
            urgent: urgent::Urgent::default(),
            deaf: false,
            shut: false,
            irs: Seq::default(),
            rcv_nxt: Seq::default(),
            rcv_adv: Seq::default(),
            rcv_wscale,
            reassembly: StreamReassembly::new(ByteCount::new(u64::from(receive.size()))),
            receive,
            memory: None,
            reads_are_told: false,
            shortage: pressure::Shortage::default(),
            islands: SackBlockList::default(),
            peer_fin: None,
            ack_policy: AckPolicy::new(config.delayed_ack, config.ack_delay, config.ack_every),
            ack_now: None,
            ack_by: None,
            solicitor: AckRequester::new(config.asking),
            mark: None,
            probe_due: false,
            answering: Answers::default(),
            challenged_at: None,
            answers: 0,
            answers_since: now,
            last_ack_sent: Seq::default(),
            sack: false,
            timestamps: false,
            ts_recent: 0,
            ts_recent_at: now,
            // Random as the sequence number is, and grows with it (RFC 7323 §5.4, RFC 6191 §2).
            ts_offset: iss.get(),
            opened_at: now,
            time_wait: None,
            events: VecDeque::new(),
            counters: Counters::default(),
            causes: Vec::new(),
            log: None,
        }
    }

    fn default_mss(&self) -> u16 {
        if self.config.network_header >= 40 { DEFAULT_MSS_IPV6 } else { DEFAULT_MSS }
    }

    /// The receive window, as far as the program allows (TCP_WINDOW_CLAMP), in whole segments in Linux.
    fn first_window(&self) -> u32 {
        let size = self.receive.size();
        let Some(clamp) = self.config.tuning.window_clamp.filter(|clamp| *clamp < size) else { return size };
        let unit = self.window_unit();
        if self.config.is_linux() && clamp > unit { clamp / unit * unit } else { clamp }
    }

    /// The receive window is counted in segments of this size: those that the peer may send in Linux, elsewhere those that we
    /// send.
    fn window_unit(&self) -> u32 {
        if self.config.is_linux() {
            u32::from(self.config.mss).saturating_sub(self.option_bytes()).max(1)
        } else {
            self.mss
        }
    }

    /// The MSS of a peer that tells none. Linux takes the program's own for it where the program opens the connection.
    fn untold_mss(&self) -> u16 {
        let chosen = self.config.is_linux() && self.config.tuning.link_mtu.is_some();
        if chosen && self.opened_actively() { self.config.mss } else { self.default_mss() }
    }

    /// Takes the options of the peer's SYN (or SYN-ACK), and sizes everything that depends on them.
    fn learn_from_syn(&mut self, now: Instant, syn: &Segment) {
        let options = &syn.header.options;
        self.irs = syn.header.seq;
        self.rcv_nxt = self.irs + 1;
        self.last_ack_sent = self.rcv_nxt;
        self.sack = self.config.sack && options.sack_permitted;
        if !self.sack || self.config.is_linux() {
            self.recovery = recovery::make(self.config.recovery, self.sack);
        }
        self.timestamps = self.config.timestamps && options.timestamps.is_some();
        self.ts_recent = options.timestamps.map_or(0, |t| t.value);
        self.solicitor.agree(&options.ack_control);
        self.ts_recent_at = now;
        match options.window_scale {
            // RFC 7323 §2.3: a shift above 14 counts as 14.
            Some(shift) if self.config.window_scale => self.snd_wscale = shift.min(14),
            _ => {
                self.linux.offered_scale = self.rcv_wscale;
                (self.snd_wscale, self.rcv_wscale) = (0, 0);
                self.receive.limit(u32::from(u16::MAX));
            }
        }
        self.size_segments(options.mss.unwrap_or(self.untold_mss()), options.mss.is_some());
        // Who opens the connection has told its window already.
        if !(self.config.is_linux() && self.opened_actively()) {
            self.receive.size_for(self.window_unit());
        }
        self.rcv_adv = self.rcv_nxt + self.first_window();
        let abc = self.window.abc();
        self.window = Window::new(
            self.config.first_window(self.mss),
            self.config.initial_ssthresh,
            self.config.cwnd_clamp,
            abc,
            self.mss,
        )
        .with_floor(self.config.cwnd_floor);
        // The window in a SYN is never scaled (RFC 7323 §2.2).
        self.snd_wnd = u32::from(syn.header.window);
        self.max_window = self.snd_wnd;
        self.snd_wl1 = syn.header.seq;
    }

    /// Takes as much of the front of `data` as the send buffer has room for; `data` keeps the rest.
    /// Nothing is taken once the sending side is closed.
    pub fn write(&mut self, data: &mut Bytes) -> ByteCount {
        if self.fin_queued || matches!(self.state, ConnectionState::Closed | ConnectionState::TimeWait) {
            return ByteCount::ZERO;
        }
        let taken = self.write_limited(data);
        self.note_room(!data.is_empty());
        self.push_written();
        taken
    }

    /// Bytes that [`write`](Connection::write) would take now.
    pub fn write_room(&self) -> ByteCount {
        if self.fin_queued { ByteCount::ZERO } else { self.writable_share() }
    }

    /// Hands everything that has arrived in order to `take`.
    pub fn read(&mut self, take: impl FnMut(Bytes)) -> ByteCount {
        self.read_up_to(ByteCount::MAX, take)
    }

    /// Hands at most `limit` bytes of what has arrived in order to `take`. What stays keeps the window closed by as much.
    pub fn read_up_to(&mut self, limit: ByteCount, take: impl FnMut(Bytes)) -> ByteCount {
        let bytes = self.reassembly.read_up_to(limit, take);
        self.receive.on_read(bytes);
        self.reopen();
        if self.memory.is_some() {
            if !self.reads_are_told && !bytes.is_zero() {
                let read = self.reassembly.next() - self.reassembly.readable().get();
                self.program_has_read(self.linux.clock, read);
            }
            return bytes;
        }
        if !bytes.is_zero() && self.window_opened() {
            self.ack_now.get_or_insert(Cause::AckWindow);
        }
        if self.ack_by.is_some() && self.reassembly.readable().is_zero() && self.ack_policy.on_all_read() {
            self.ack_now.get_or_insert(Cause::AckNow);
        }
        bytes
    }

    /// Closes the sending side: a FIN follows what was written.
    pub fn close(&mut self) {
        self.fin_queued = true;
        self.linux.looks_again();
        if self.state == ConnectionState::SynSent && self.buffer.len().is_zero() {
            self.finish(CloseReason::Finished);
        }
    }

    /// The same, with the last of what was written. It is taken whole, beyond [`Config::send_buffer`] if need be: who closes
    /// may be about to leave, and from here on the connection needs nobody to end ([`is_orphan`](Connection::is_orphan)).
    pub fn close_after(&mut self, last: impl IntoIterator<Item = Bytes>) {
        if !self.fin_queued && !matches!(self.state, ConnectionState::Closed | ConnectionState::TimeWait) {
            for data in last {
                self.buffer.write_last(data);
                self.push_written();
            }
        }
        self.close();
    }

    /// The application reads no more. With [`close`](Connection::close) this is the full close of RFC 9293 §3.6.1:
    /// data that waits to be read, or comes later, is lost, so the peer gets a reset.
    pub fn stop_reading(&mut self) {
        self.deaf = true;
        // Of what waits behind a hole Linux knows nothing yet.
        let waits = self.reassembly.has_hole() && !self.config.is_linux();
        if !self.reassembly.readable().is_zero() || waits {
            self.abort();
        }
    }

    /// The application has shut the reading side (`SHUT_RD`): where it has shut the other, too, more data is an error, in Linux.
    pub fn shut_reading(&mut self) {
        self.shut = true;
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
            self.reset_pending = Some((self.snd_nxt, self.rcv_nxt));
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

    /// Of what it has sent, this number ([`OutgoingSegment::number`](crate::OutgoingSegment::number)) and those before it have left the
    /// queues of the host. From the first call on, others count as waiting there: they are not sent again, and the
    /// retransmission timer does not take them for lost (as in Linux, which asks whether a packet's memory is still in use). Call
    /// it before the other calls if numbers have left meanwhile. Without this, all leaves at once.
    #[inline]
    pub fn set_departed(&mut self, number: u32) {
        self.segments.set_departed(number);
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

    /// The recovery, and what it may change.
    fn recovery(&mut self) -> (&mut dyn LossRecovery, Context<'_>) {
        let cx = Context {
            segments: &mut self.segments,
            window: &mut self.window,
            cc: self.cc.as_mut(),
            rto: &mut self.rto,
            min_rtt: &mut self.min_rtt,
            sack: self.sack,
            causes: &mut self.causes,
        };
        (self.recovery.as_mut(), cx)
    }

    /// Everything ends here.
    fn finish(&mut self, reason: CloseReason) {
        if self.state == ConnectionState::Closed {
            return;
        }
        let opening = matches!(self.state, ConnectionState::SynSent | ConnectionState::SynReceived);
        self.statistics.leave(self.outstanding_bytes() + u64::from(opening));
        self.state = ConnectionState::Closed;
        self.rto_deadline = None;
        self.ack_now = None;
        self.ack_by = None;
        self.persist = timers::Persist::default();
        self.hold = cork::Cork::default();
        self.pacer.stop();
        self.time_wait = None;
        self.syn_pending = None;
        self.segments = Segments::default();
        self.buffer.clear();
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

    /// What happened so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// A snapshot for samplers, reports and people.
    pub fn inspect(&self) -> ConnectionInspection {
        ConnectionInspection {
            state: self.state,
            recovery: self.recovery.state(),
            cwnd: self.window.cwnd(),
            ssthresh: self.window.ssthresh(),
            in_flight: self.segments.in_flight(),
            acknowledged: ByteCount::new(self.una_offset.min(self.buffer.end())),
            timeouts: self.counters.timeouts,
            srtt: self.rto.srtt(),
            undelayed_srtt: self.rto.undelayed_srtt(),
            rto: self.rto.rto(),
            rwnd: ByteCount::new(u64::from(self.snd_wnd)),
            mss: self.mss,
            largest_mss: self.path.ceiling(),
            bandwidth: self.cc.bandwidth(),
            min_rtt: self.cc.min_rtt(),
        }
    }

    /// What it holds, for tests of its limits and for people who have many.
    pub fn memory(&self) -> ConnectionMemory {
        ConnectionMemory {
            rows: self.segments.len(),
            send_bytes: self.buffer.len(),
            send_chunks: self.buffer.chunks(),
            readable_bytes: self.reassembly.readable(),
            readable_chunks: self.reassembly.readable_chunks(),
            waiting_bytes: self.reassembly.waiting(),
            waiting_chunks: self.reassembly.waiting_chunks(),
            islands: self.reassembly.islands(),
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
        self.rto.clock().timestamp(now).wrapping_add(self.ts_offset)
    }
}

/// The least shift that lets 16 bits tell `buffer`.
fn window_shift(buffer: u32) -> u8 {
    (0..14).find(|s| buffer >> s <= u32::from(u16::MAX)).unwrap_or(14)
}
