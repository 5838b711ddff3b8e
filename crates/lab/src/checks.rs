//! Checks of a run as a whole: that it repeats exactly, and that it makes progress. The world itself checks
//! conservation: [`World::check`](crate::World::check).

use farpace_path::DropReason;
use farpace_path::world::{ElementId, Observer, WireId};
use farpace_units::{Instant, Span};
use farpace_wire::Packet;
use thiserror::Error;

/// A 64-bit digest of a sequence of values, for telling whether two runs were the same. It is the same on
/// every machine. It does not resist an adversary who looks for collisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Adds one number. FNV-1a over words, with a rotation that carries high bits down.
    pub fn word(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(29) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    /// Adds bytes, with their number, so that no two sequences of slices have the same digest.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.word(u64::from_le_bytes(last));
    }
    /// The digest of what was added so far.
    pub const fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

/// Adds every packet that is observed, with its headers and payload, and every drop.
impl Observer for Digest {
    fn packet(&mut self, now: Instant, wire: WireId, packet: &Packet) {
        self.word(now.as_nanos());
        self.word(wire.index() as u64);
        self.bytes(packet.headers());
        self.bytes(packet.payload());
    }
    fn dropped(&mut self, now: Instant, element: ElementId, packet: &Packet, reason: DropReason) {
        self.word(now.as_nanos());
        self.word(element.index() as u64 | (reason.index() as u64) << 32);
        self.bytes(packet.headers());
    }
}

/// Progress stopped for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no progress for {silence} from {since} on; at most {max} is allowed")]
pub struct Stalled {
    /// The last progress before the silence.
    pub since: Instant,
    /// How long it was, or has been so far.
    pub silence: Span,
    /// The limit.
    pub max: Span,
}

/// Checks that something makes progress: a transfer, for example, after the end of all impairments on its
/// path.
#[derive(Clone, Copy, Debug)]
pub struct Liveness {
    max: Span,
    last: Instant,
    /// The longest silence that has ended, and where it began.
    longest: (Instant, Span),
}

impl Liveness {
    /// Silence of up to `max` is allowed from `start` on.
    pub const fn new(start: Instant, max: Span) -> Self {
        Liveness { max, last: start, longest: (start, Span::ZERO) }
    }
    /// Progress was made at `now`.
    pub fn progress(&mut self, now: Instant) {
        self.longest = self.longest_until(now);
        self.last = self.last.max(now);
    }
    /// Where the longest silence up to `now` began, and its length.
    pub fn longest_until(&self, now: Instant) -> (Instant, Span) {
        let silence = now.since(self.last);
        if silence > self.longest.1 { (self.last, silence) } else { self.longest }
    }
    /// Whether every silence up to `now` is within the limit.
    ///
    /// # Errors
    /// The longest one, if it is not.
    pub fn check(&self, now: Instant) -> Result<(), Stalled> {
        let (since, silence) = self.longest_until(now);
        if silence <= self.max { Ok(()) } else { Err(Stalled { since, silence, max: self.max }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: two different runs have the same digest.
    #[test]
    fn digests_tell_slices_and_order_apart() {
        let of = |slices: &[&[u8]]| {
            let mut digest = Digest::default();
            slices.iter().for_each(|s| digest.bytes(s));
            digest.finish()
        };
        let all = [of(&[b"ab", b"c"]), of(&[b"a", b"bc"]), of(&[b"c", b"ab"]), of(&[b"ab", b"c\0"]), of(&[])];
        for (n, digest) in all.iter().enumerate() {
            assert!(!all[..n].contains(digest));
        }
        assert_eq!(of(&[b"ab", b"c"]), all[0]);
    }

    /// Breaks: every recorded digest. The number is part of the format.
    #[test]
    fn the_digest_is_pinned() {
        let mut digest = Digest::default();
        digest.bytes(b"far paces");
        assert_eq!(digest.finish(), 10_477_029_793_787_585_100);
    }

    /// Breaks: a transfer that stopped passes for a live one, or the report names the wrong time.
    #[test]
    fn a_silence_is_found_while_it_lasts_and_afterwards() {
        let at = |s| Instant::ZERO + Span::from_secs(s);
        let mut live = Liveness::new(at(1), Span::from_secs(2));
        live.progress(at(3));
        assert_eq!(live.check(at(5)), Ok(()));
        let stalled = Stalled { since: at(3), silence: Span::from_secs(3), max: Span::from_secs(2) };
        assert_eq!(live.check(at(6)), Err(stalled));
        live.progress(at(6));
        live.progress(at(7));
        assert_eq!(live.check(at(7)), Err(stalled));
    }
}
