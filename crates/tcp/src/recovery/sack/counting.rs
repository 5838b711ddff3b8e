//! Loss detection by counting (RFC 6675): what has three runs, or more than two segments, SACKed above it is
//! lost; and the last two rules of NextSeg.

use super::scoreboard::Scoreboard;
use crate::segments::{Segments, Tags};
use farpace_units::Seq;

/// RFC 6675 DupThresh.
pub const DUP_THRESH: u32 = 3;

/// Variables of RFC 6675 besides scoreboard and pipe.
#[derive(Clone, Debug, Default)]
pub struct Counting {
    /// Everything not SACKed before this is marked.
    marked: Option<Seq>,
    dup_acks: u32,
    rescued: bool,
}

impl Counting {
    /// An ACK that SACKs something new without acknowledging anything is a duplicate (§2); any that
    /// acknowledges begins the count anew (§5).
    pub fn on_ack(&mut self, advanced: bool, sacked: bool) {
        self.dup_acks = match (advanced, sacked) {
            (true, _) => 0,
            (false, true) => self.dup_acks.saturating_add(1),
            (false, false) => self.dup_acks,
        };
    }

    /// Marks what is lost (§4 IsLost, §5 steps 1 and 2), and says how many segments that were.
    pub fn detect(&mut self, scoreboard: &Scoreboard, mss: u32, segments: &mut Segments) -> u32 {
        // What was marked before SND.UNA says nothing more: numbers come round again.
        let head = segments.row(0).map(|row| row.seq);
        self.marked = self.marked.filter(|marked| head.is_some_and(|head| marked.after(head)));
        let mut lost = 0;
        if self.dup_acks >= DUP_THRESH && segments.find(0, 1, LOST_OR_SACKED, Tags::NONE).is_some() {
            segments.mark_lost(0);
            lost += 1;
        }
        let bytes = u64::from(DUP_THRESH - 1) * u64::from(mss);
        let Some(below) = scoreboard.lost_below(DUP_THRESH as usize, bytes) else { return lost };
        let end = segments.index_at_or_after(below);
        let mut at = self.marked.map_or(0, |seq| segments.index_at_or_after(seq));
        while let Some(index) = segments.find(at, end, LOST_OR_SACKED, Tags::NONE) {
            segments.mark_lost(index);
            lost += 1;
            at = index + 1;
        }
        self.marked = Some(self.marked.map_or(below, |m| m.later(below)));
        lost
    }

    /// A recovery begins: one rescue retransmission is allowed.
    pub fn on_recovery(&mut self) {
        self.rescued = false;
    }

    /// NextSeg (3): below the highest SACK, not lost, not sent again yet.
    pub fn forward(&self, scoreboard: &Scoreboard, segments: &Segments) -> Option<usize> {
        let end = segments.index_at_or_after(scoreboard.highest()?);
        segments.find(0, end, Tags::COUNTED, Tags::NONE)
    }

    /// NextSeg (4): the highest segment that is not SACKed, once per recovery.
    pub fn rescue(&self, segments: &Segments) -> Option<usize> {
        let last = segments.len().checked_sub(1).filter(|_| !self.rescued)?;
        let open = |index: &usize| !segments.tags(*index).any(Tags::SACKED.with(Tags::RETRANSMITTED));
        Some(last).filter(open)
    }

    /// The rescue retransmission was sent.
    pub fn on_rescue(&mut self) {
        self.rescued = true;
    }

    /// Tags were taken back or rewritten.
    pub fn reset(&mut self) {
        *self = Counting { rescued: self.rescued, ..Counting::default() };
    }
}

const LOST_OR_SACKED: Tags = Tags::LOST.with(Tags::SACKED);
