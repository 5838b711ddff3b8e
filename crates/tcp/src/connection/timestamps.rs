//! The timestamps option of a connection (RFC 7323 §3 to §5).

use crate::segment::Segment;
use farpace_units::{Instant, Seq, Span};

/// Bytes of the timestamps option in a header, with its padding.
const OPTION_BYTES: u32 = 12;
/// Age in ticks at which TS.Recent tells nothing any more: half of the number space, less a bit (RFC 7323
/// §5.5: 24 days of 1 ms).
const RECENT_LIFE: u64 = 24 * 86_400_000;

/// What is known of the peer's timestamps, and the origin of our own.
pub(super) struct TimestampState {
    /// Both ends have sent the option in their SYN.
    pub enabled: bool,
    /// TS.Recent.
    pub recent: u32,
    /// When TS.Recent was taken.
    pub recent_at: Instant,
    /// Origin of our timestamp clock.
    pub offset: u32,
    /// The last TSecr; 0: none has come.
    pub echo: u32,
}

impl TimestampState {
    /// Not in use yet. The origin is random as `iss` is, and grows with it (RFC 7323 §5.4, RFC 6191 §2).
    pub fn new(now: Instant, iss: Seq) -> Self {
        TimestampState { enabled: false, recent: 0, recent_at: now, offset: iss.get(), echo: 0 }
    }

    /// A segment has come.
    pub fn note_echo(&mut self, segment: &Segment) {
        if let Some(times) = segment.header.options.timestamps.filter(|_| self.enabled) {
            self.echo = times.echo;
        }
    }

    /// PAWS (RFC 7323 §5.3), unless TS.Recent itself has expired (§5.5). `tick` is that of our clock.
    pub fn is_old(&self, now: Instant, tick: Span, segment: &Segment) -> bool {
        let older = |value: u32| (value.wrapping_sub(self.recent) as i32) < 0;
        self.enabled
            && !self.recent_expired(now, tick)
            && segment.header.options.timestamps.is_some_and(|t| older(t.value))
    }

    /// TS.Recent is so old that it tells nothing (RFC 7323 §5.5). The peer's tick is not known: ours is taken
    /// for it if it is finer than 1 ms.
    pub fn recent_expired(&self, now: Instant, tick: Span) -> bool {
        now.since(self.recent_at) >= tick.min(Span::from_millis(1)) * RECENT_LIFE
    }

    /// Takes TS.Recent from a segment that covers `last_ack_sent` (RFC 7323 §4.3).
    pub fn update(&mut self, now: Instant, last_ack_sent: Seq, segment: &Segment) {
        if let (true, Some(t)) = (self.enabled, segment.header.options.timestamps)
            && segment.header.seq.before_eq(last_ack_sent)
        {
            // What is older came through PAWS only because TS.Recent has expired.
            self.recent = t.value;
            self.recent_at = now;
        }
    }

    /// Bytes that the option takes of every segment (RFC 6691: they come off the MSS).
    pub fn option_bytes(&self) -> u32 {
        if self.enabled { OPTION_BYTES } else { 0 }
    }
}
