//! What the far peer sends, and when.

use farpace_units::{Instant, Span};
use farpace_wire::tcp::{AckControl, TcpFlags};

/// Payload of a full segment beside timestamps, at 1500 bytes a packet.
pub const FULL: u32 = 1448;

/// What the program at the receiver does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum App {
    /// It reads at once.
    Reads,
    /// It never reads.
    Sleeps,
    /// It answers the first so many reads with 100 bytes each, at once.
    Answers(u32),
}

impl App {
    pub fn answers(self) -> u32 {
        if let App::Answers(n) = self { n } else { 0 }
    }
}

/// What it answers.
pub const ANSWER: [u8; 100] = [b'y'; 100];

/// A segment from the peer.
#[derive(Clone, Copy)]
pub struct Step {
    /// Milliseconds after the handshake.
    pub at: u64,
    /// Its first byte; the stream begins with 0.
    pub from: i32,
    pub len: u32,
    pub flags: TcpFlags,
    pub control: AckControl,
}

/// A connection from the peer to the receiver.
pub struct Script {
    pub app: App,
    /// From SYN-ACK to ACK, in milliseconds: the round trip that the receiver knows of.
    pub rtt: u64,
    pub sack: bool,
    pub timestamps: bool,
    /// Besides SYN, and what the SYN says of the control of ACKs.
    pub syn_flags: TcpFlags,
    pub syn_control: AckControl,
    pub steps: Vec<Step>,
}

impl Script {
    /// On a short path, with SACK and timestamps.
    pub fn new(app: App) -> Self {
        Script {
            app,
            rtt: 1,
            sack: true,
            timestamps: true,
            syn_flags: TcpFlags::NONE,
            syn_control: AckControl::default(),
            steps: Vec::new(),
        }
    }

    /// One segment at `at` ms.
    pub fn segment(mut self, at: u64, from: i32, len: u32) -> Self {
        let (flags, control) = (TcpFlags::ACK, AckControl::default());
        self.steps.push(Step { at, from, len, flags, control });
        self
    }

    /// Full segments until the ACKs of a new connection are held back; then 100 ms of silence. What follows
    /// begins at [`PRIMED`](Self::PRIMED).
    pub fn primed(self) -> Self {
        self.stream(0, 1, 60, FULL)
    }
    pub const PRIMED: u64 = 160;

    /// Changes the segment added last.
    pub fn with(mut self, change: impl FnMut(&mut Step)) -> Self {
        self.steps.last_mut().into_iter().for_each(change);
        self
    }

    /// PSH on all segments so far that are not full.
    pub fn push(mut self) -> Self {
        self.steps.iter_mut().filter(|s| s.len < FULL).for_each(|s| s.flags = s.flags | TcpFlags::PSH);
        self
    }

    /// `n` segments in order, `gap` ms apart, where the stream is.
    pub fn stream(mut self, at: u64, gap: u64, n: u64, len: u32) -> Self {
        for i in 0..n {
            let from = self.end();
            self = self.segment(at + i * gap, from, len);
        }
        self
    }

    /// The first byte that has not been sent.
    pub fn end(&self) -> i32 {
        self.steps.iter().map(|s| s.from + s.len as i32).max().unwrap_or(0)
    }

    /// When the steps are due, if the SYN leaves at zero.
    pub fn due(&self) -> impl Iterator<Item = (Instant, Step)> + '_ {
        self.steps.iter().map(|s| (Instant::ZERO + Span::from_millis(self.rtt + s.at), *s))
    }

    /// Long enough for the last ACK to come.
    pub fn until(&self) -> Instant {
        let last = self.steps.iter().map(|s| s.at).max().unwrap_or(0);
        Instant::ZERO + Span::from_millis(self.rtt + last + 260)
    }
}
