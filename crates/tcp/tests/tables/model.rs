//! What a segment must bring about, as rules: a small model written from RFC 9293 §3.10.7, RFC 5961 and RFC 7323. It
//! knows nothing of the engine.

use farpace_tcp::{ConnectionState, Segment};
use farpace_units::Seq;
use farpace_wire::tcp::TcpFlags;

/// What comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    Nothing,
    /// An acknowledgment of everything up to here, at once.
    Ack(Seq),
    /// The same, at once or a little later.
    AckInTime(Seq),
    /// A SYN-ACK.
    SynAck,
    /// A reset with this sequence number.
    Reset(Seq),
}

/// What may come of a segment: any of the replies, any of the states, and so many bytes for the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    pub replies: Vec<Reply>,
    pub states: Vec<ConnectionState>,
    pub delivered: u32,
    /// The rule that decided, for the report.
    pub rule: &'static str,
}

/// A connection as RFC 9293 §3.3.1 describes it.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    pub state: ConnectionState,
    pub iss: Seq,
    pub snd_una: Seq,
    pub snd_nxt: Seq,
    /// The largest window that the peer ever announced (RFC 5961 §5.2: MAX.SND.WND).
    pub max_snd_wnd: u32,
    pub irs: Seq,
    pub rcv_nxt: Seq,
    /// RCV.NXT + RCV.WND as announced.
    pub edge: Seq,
    /// TS.Recent, where timestamps are in use.
    pub ts_recent: Option<u32>,
}

impl Model {
    fn stay(&self, rule: &'static str, replies: &[Reply]) -> Expected {
        Expected { replies: replies.to_vec(), states: vec![self.state], delivered: 0, rule }
    }
    fn go(&self, rule: &'static str, reply: Reply, state: ConnectionState) -> Expected {
        Expected { replies: vec![reply], states: vec![state], delivered: 0, rule }
    }

    /// The answer to `segment`.
    pub fn answer(&self, segment: &Segment) -> Expected {
        match self.state {
            // §3.10.7.1 is the host's: a connection that is over says nothing.
            ConnectionState::Closed => self.stay("CLOSED", &[Reply::Nothing]),
            ConnectionState::SynSent => self.syn_sent(segment),
            _ => self.synchronized(segment),
        }
    }

    /// §3.10.7.3
    fn syn_sent(&self, segment: &Segment) -> Expected {
        let h = &segment.header;
        let (ack, syn) = (h.flags.contains(TcpFlags::ACK), h.flags.contains(TcpFlags::SYN));
        let reset = h.flags.contains(TcpFlags::RST);
        let fits = h.ack.after(self.iss) && h.ack.before_eq(self.snd_nxt);
        match () {
            () if ack && !fits && reset => self.stay("SYN-SENT 1: bad ACK with RST", &[Reply::Nothing]),
            () if ack && !fits => self.stay("SYN-SENT 1: bad ACK", &[Reply::Reset(h.ack)]),
            () if reset && ack => self.go("SYN-SENT 2: RST", Reply::Nothing, ConnectionState::Closed),
            () if reset => self.stay("SYN-SENT 2: RST without ACK", &[Reply::Nothing]),
            () if syn && ack => Expected {
                // Text that comes with it may be kept or left to come again.
                replies: vec![Reply::Ack(h.seq + 1), Reply::Ack(h.seq + segment.sequence_length())],
                states: vec![ConnectionState::Established],
                delivered: 0,
                rule: "SYN-SENT 4: SYN-ACK",
            },
            () if syn => self.go("SYN-SENT 4: SYN", Reply::SynAck, ConnectionState::SynReceived),
            () => self.stay("SYN-SENT 5", &[Reply::Nothing]),
        }
    }

    /// Table 6. One leniency, which real stacks share: a segment without length may stand at the right edge,
    /// because a peer that has filled the window acknowledges from there.
    fn acceptable(&self, segment: &Segment) -> Fit {
        let (seq, len) = (segment.header.seq, segment.sequence_length());
        let window = self.edge.bytes_since(self.rcv_nxt);
        let inside = |s: Seq| s.bytes_since(self.rcv_nxt) < window && s.after_eq(self.rcv_nxt);
        let fits = match (len, window) {
            (0, 0) => seq == self.rcv_nxt,
            (0, _) => inside(seq),
            (_, 0) => false,
            _ => inside(seq) || inside(seq + (len - 1)),
        };
        match fits {
            true => Fit::Yes,
            false if len == 0 && seq == self.edge => Fit::Edge,
            false => Fit::No,
        }
    }

    /// §3.10.7.4
    fn synchronized(&self, segment: &Segment) -> Expected {
        let h = &segment.header;
        let has = |flag| h.flags.contains(flag);
        let (syn, ack) = (has(TcpFlags::SYN), has(TcpFlags::ACK));
        let answer = Reply::Ack(self.rcv_nxt);
        let fit = self.acceptable(segment);

        if has(TcpFlags::RST) {
            if syn {
                // Nobody sends both; whoever drops it loses nothing.
                let states = vec![self.state, ConnectionState::Closed];
                let replies = vec![answer, Reply::Nothing];
                return Expected { replies, states, delivered: 0, rule: "2: RST with SYN" };
            }
            // RFC 5961 §3.2
            return match fit {
                Fit::No => self.stay("2: RST outside of the window", &[Reply::Nothing]),
                Fit::Edge => self.stay("2: RST at the right edge", &[Reply::Nothing]),
                Fit::Yes if h.seq == self.rcv_nxt => {
                    self.go("2: RST with the exact number", Reply::Nothing, ConnectionState::Closed)
                }
                Fit::Yes => self.stay("2: RST in the window", &[answer]),
            };
        }
        if self.state == ConnectionState::SynReceived && syn {
            // The SYN itself again: our answer was lost. Any other: RFC 9293 lets a passive open go back to
            // LISTEN, RFC 5961 §4.2 answers.
            return if h.seq == self.irs && !ack {
                self.stay("SYN again", &[Reply::SynAck, answer])
            } else if h.seq == self.irs && h.ack == self.snd_nxt {
                // Simultaneous open: the peer's SYN-ACK acknowledges our SYN.
                self.go("SYN-ACK after SYN", answer, ConnectionState::Established)
            } else {
                let replies = vec![answer, Reply::Nothing, Reply::Reset(h.ack)];
                let states = vec![self.state, ConnectionState::Closed];
                Expected { replies, states, delivered: 0, rule: "SYN-RECEIVED: another SYN" }
            };
        }
        // RFC 7323 §5.3, R1: before anything but RST.
        if let (Some(recent), Some(t)) = (self.ts_recent, h.options.timestamps)
            && (t.value.wrapping_sub(recent) as i32) < 0
        {
            return self.stay("PAWS", &[answer]);
        }
        // RFC 7323 §3.2: silently, or as if nothing were missing.
        if self.ts_recent.is_some() && h.options.timestamps.is_none() {
            let mut any = self.text(segment);
            any.replies.push(Reply::Nothing);
            any.states.push(self.state);
            return any;
        }
        if syn {
            return self.stay("4: SYN, RFC 5961 §4.2", &[answer]);
        }
        match fit {
            Fit::No => return self.stay("1: not acceptable", &[answer]),
            // Either way, if it changes nothing.
            Fit::Edge if !ack || h.ack == self.snd_una && self.state != ConnectionState::SynReceived => {
                return self.stay("1: at the right edge", &[answer, Reply::Nothing]);
            }
            Fit::Edge | Fit::Yes => {}
        }
        if !ack {
            return self.stay("5: no ACK", &[Reply::Nothing]);
        }
        let mut expected = self.text(segment);
        if fit == Fit::Edge {
            expected.replies.push(answer);
            expected.states.push(self.state);
        }
        expected
    }

    /// From the fifth check on: the acknowledgment, the text, the FIN.
    fn text(&self, segment: &Segment) -> Expected {
        let h = &segment.header;
        let answer = Reply::Ack(self.rcv_nxt);
        let acks_all = h.ack == self.snd_nxt;
        let mut state = self.state;
        if state == ConnectionState::SynReceived {
            if h.ack.before_eq(self.snd_una) || h.ack.after(self.snd_nxt) {
                return self.stay("5: SYN-RECEIVED, bad ACK", &[Reply::Reset(h.ack)]);
            }
            state = ConnectionState::Established;
        } else if h.ack.after(self.snd_nxt) {
            return self.stay("5: ACK of what was not sent", &[answer]);
        } else if h.ack.before(self.snd_una - self.max_snd_wnd) && self.state == ConnectionState::TimeWait {
            // Nothing is left that an old acknowledgment could harm.
            return self.stay("5: old ACK in TIME-WAIT", &[answer, Reply::Nothing]);
        } else if h.ack.before(self.snd_una - self.max_snd_wnd) {
            return self.stay("5: ACK older than any window, RFC 5961 §5.2", &[answer]);
        }
        if acks_all {
            state = match state {
                ConnectionState::FinWait1 => ConnectionState::FinWait2,
                ConnectionState::Closing => ConnectionState::TimeWait,
                ConnectionState::LastAck => {
                    return self.go("5: LAST-ACK", Reply::Nothing, ConnectionState::Closed);
                }
                other => other,
            };
        }
        let (fin, len) = (h.flags.contains(TcpFlags::FIN), segment.payload.len() as u32);
        if len == 0 && !fin && self.state == ConnectionState::TimeWait && h.seq != self.rcv_nxt {
            // Not the peer's last ACK: whoever sends this has another idea of the connection.
            return self.stay("5: an acknowledgment in the window of TIME-WAIT", &[answer]);
        }
        if len == 0 && !fin {
            return Expected {
                replies: vec![Reply::Nothing],
                states: vec![state],
                delivered: 0,
                rule: "5: an acknowledgment",
            };
        }
        if !matches!(
            state,
            ConnectionState::Established | ConnectionState::FinWait1 | ConnectionState::FinWait2
        ) {
            // Nothing can come after the peer's FIN; it is ignored, or answered.
            return Expected {
                replies: vec![answer, Reply::Nothing],
                states: vec![state],
                delivered: 0,
                rule: "7: text after FIN",
            };
        }
        // What lies to the left was there before; what lies to the right is cut, and with it a FIN.
        let end = h.seq + len;
        let (cut, fin) = if end.after(self.edge) { (self.edge, false) } else { (end, fin) };
        if h.seq.after(self.rcv_nxt) {
            return Expected {
                replies: vec![answer],
                states: vec![state],
                delivered: 0,
                rule: "7: text beyond a hole",
            };
        }
        let delivered = if cut.after(self.rcv_nxt) { cut.bytes_since(self.rcv_nxt) } else { 0 };
        if fin {
            let next = match state {
                ConnectionState::Established => ConnectionState::CloseWait,
                ConnectionState::FinWait1 => ConnectionState::Closing,
                _ => ConnectionState::TimeWait,
            };
            let reply = Reply::Ack(self.rcv_nxt + delivered + 1);
            return Expected { delivered, ..self.go("8: FIN", reply, next) };
        }
        let reply = Reply::AckInTime(self.rcv_nxt + delivered);
        Expected { delivered, ..self.go("7: text in order", reply, state) }
    }
}

/// How a segment lies to the window.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fit {
    Yes,
    /// Without length, at the right edge.
    Edge,
    No,
}
