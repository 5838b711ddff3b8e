//! A connection in any state, with sequence numbers anywhere, and what it does with one segment.

use super::model::Model;
use bytes::Bytes;
use farpace_tcp::config::{Config, Profile, Settings};
use farpace_tcp::{Connection, ConnectionState, OutgoingSegment, Ports, Reason, Segment};
use farpace_units::{ByteCount, Instant, Seq, Span};
use farpace_wire::tcp::{TcpFlags, TcpHeader, TcpOptions, Timestamps};

/// The window that the peer announces.
pub const PEER_WINDOW: u16 = 9_000;
/// What stays unacknowledged where something does.
pub const FLIGHT: usize = 300;

/// A connection and what the model knows of it.
pub struct Subject {
    pub connection: Connection,
    pub model: Model,
    pub now: Instant,
    /// The value of the peer's timestamps.
    clock: u32,
}

fn config(timestamps: bool) -> Config {
    let settings = Settings {
        profile: Some(Profile::NewReno),
        mss: Some(1000),
        timestamps: Some(timestamps),
        window_scale: Some(false),
        receive_buffer: Some(ByteCount::new(8_000)),
        ..Settings::default()
    };
    settings.resolve().expect("settings")
}

impl Subject {
    /// A connection in `state`, with unacknowledged data if `flight`, where the state allows it.
    pub fn new(state: ConnectionState, flight: bool, timestamps: bool, iss: Seq, irs: Seq) -> Subject {
        let ports = Ports { local: 1, remote: 2 };
        let config = config(timestamps);
        let clock = irs.get().rotate_left(7);
        let start = Instant::ZERO + Span::from_secs(5);
        let model = Model {
            state: ConnectionState::SynSent,
            iss,
            snd_una: iss,
            snd_nxt: iss,
            max_snd_wnd: u32::from(PEER_WINDOW),
            irs,
            rcv_nxt: Seq::default(),
            edge: Seq::default(),
            ts_recent: None,
        };
        let mut s = if state == ConnectionState::SynReceived {
            let options = options(timestamps, clock);
            let header = TcpHeader {
                seq: irs,
                flags: TcpFlags::SYN,
                window: PEER_WINDOW,
                options,
                ..TcpHeader::default()
            };
            let syn = Segment { header, ..Segment::default() };
            let connection = Connection::accept(start, &config, ports, iss, &syn);
            Subject { connection, model: Model { rcv_nxt: irs + 1, ..model }, now: start, clock }
        } else {
            let connection = Connection::connect(start, &config, ports, iss);
            Subject { connection, model, now: start, clock }
        };
        s.model.ts_recent = (timestamps && state != ConnectionState::SynSent).then_some(clock);
        s.drain();
        if !matches!(state, ConnectionState::SynSent | ConnectionState::SynReceived) {
            s.walk(state, flight);
        }
        assert_eq!(s.connection.state(), state);
        s.model.state = state;
        s.now += Span::from_millis(50);
        s
    }

    /// From SYN-SENT to where it is wanted.
    fn walk(&mut self, state: ConnectionState, flight: bool) {
        self.take(TcpFlags::SYN | TcpFlags::ACK, true);
        if flight {
            self.connection.write(&mut Bytes::from(vec![1; FLIGHT]));
            self.drain();
        }
        let fin = TcpFlags::FIN | TcpFlags::ACK;
        let close = |s: &mut Subject| {
            s.connection.close();
            s.drain();
        };
        match state {
            ConnectionState::FinWait1 => close(self),
            ConnectionState::FinWait2 => {
                close(self);
                self.take(TcpFlags::ACK, true);
            }
            ConnectionState::CloseWait => self.take(fin, false),
            ConnectionState::Closing => {
                close(self);
                self.take(fin, false);
            }
            ConnectionState::LastAck => {
                self.take(fin, false);
                close(self);
            }
            ConnectionState::TimeWait => {
                close(self);
                self.take(fin, true);
            }
            ConnectionState::Closed => {
                self.connection.abort();
                self.drain();
            }
            _ => {}
        }
    }

    /// The next segment of the peer.
    fn take(&mut self, flags: TcpFlags, all: bool) {
        let syn = flags.contains(TcpFlags::SYN);
        let seq = if syn { self.model.irs } else { self.model.rcv_nxt };
        if all {
            self.model.snd_una = self.model.snd_nxt;
        }
        let header = TcpHeader {
            seq,
            ack: self.model.snd_una,
            flags,
            window: PEER_WINDOW,
            options: options(self.model.ts_recent.is_some(), self.clock),
            ..TcpHeader::default()
        };
        self.now += Span::from_millis(1);
        let segment = Segment { header, ..Segment::default() };
        self.model.rcv_nxt = seq + segment.sequence_length();
        self.connection.on_segment(self.now, segment);
        self.drain();
    }

    /// Takes what the connection sends, and what the model can learn of it.
    pub fn drain(&mut self) -> Vec<OutgoingSegment> {
        let mut out = Vec::new();
        while self.connection.poll_transmit(self.now, &mut out, 8) == farpace_tcp::Transmit::Sent(8) {}
        for OutgoingSegment { segment, .. } in &out {
            let h = &segment.header;
            if h.flags.contains(TcpFlags::RST) {
                continue;
            }
            self.model.snd_nxt = self.model.snd_nxt.later(h.seq + segment.sequence_length());
            if h.flags.contains(TcpFlags::ACK) {
                self.model.edge = h.ack + u32::from(h.window);
            }
        }
        out
    }

    /// True if an acknowledgment is held back.
    pub fn owes_ack(&self) -> bool {
        self.connection.deadline().is_some_and(|(_, why)| why == Reason::DelayedAck)
    }
}

/// Timestamps, if there are any; in a SYN no MSS, which makes it 536.
pub fn options(timestamps: bool, value: u32) -> TcpOptions {
    let timestamps = timestamps.then_some(Timestamps { value, echo: 0 });
    TcpOptions { timestamps, ..TcpOptions::default() }
}
