use super::*;
use farpace_units::{Instant, Packets};
use farpace_wire::tcp::SackBlocks;
use proptest::prelude::*;

const MSS: u32 = 100;
const ISS: Seq = Seq::new(u32::MAX - 1500); // the numbers wrap on the way

fn ack<'a>(sack: &'a SackBlocks, una: Seq, nxt: Seq) -> AckInput<'a> {
    AckInput::of(Instant::ZERO, una, una, nxt, sack)
}

fn block(from: u32, to: u32) -> SackBlock {
    SackBlock { start: ISS + from, end: ISS + to }
}

proptest! {
    /// Breaks: which segments count as arrived: a row is tagged exactly when some valid block covers all of
    /// it, and each is shown once; IsLost by runs and bytes agrees with a recount.
    #[test]
    fn tags_equal_the_blocks(steps in prop::collection::vec((0u32..4000, 0u32..1200, 0u32..3, any::<bool>()), 1..60)) {
        let (rows, mut segments) = (40, Segments::default());
        for i in 0..rows {
            segments.push(ISS + i * MSS, MSS, Instant::ZERO);
        }
        let nxt = ISS + rows * MSS;
        let mut board = Scoreboard::default();
        board.advance(ISS);
        let mut held = vec![false; rows as usize];
        let mut una = 0;
        for (from, len, step, aligned) in steps {
            let (from, to) = if aligned { (from / MSS * MSS, (from + len) / MSS * MSS) } else { (from, from + len) };
            una = (una + step * MSS).min((rows - 1) * MSS);
            segments.acknowledge(ISS + una);
            board.advance(ISS + una);
            let blocks: SackBlocks = [block(from, to)].into_iter().collect();
            let mut seen = Vec::new();
            board.take(&ack(&blocks, ISS + una, nxt), &mut segments, |row, _| seen.push(row.seq));
            let mut expected = Vec::new();
            for i in 0..rows {
                let valid = from < to && to <= rows * MSS;
                if valid && i * MSS >= una && i * MSS >= from && (i + 1) * MSS <= to && !held[i as usize] {
                    held[i as usize] = true;
                    expected.push(ISS + i * MSS);
                }
            }
            prop_assert_eq!(seen, expected);
            prop_assert_eq!(board.check(&segments), Ok(()));
            let live: Vec<bool> = held[(una / MSS) as usize..].to_vec();
            prop_assert_eq!(segments.sacked_out(), Packets::new(live.iter().filter(|h| **h).count() as u32));
            // IsLost, literally: count runs and bytes above each hole.
            let below = board.lost_below(3, 2 * u64::from(MSS));
            for (i, _) in live.iter().enumerate().filter(|(_, held)| !**held) {
                let above = &live[i..];
                let runs = above.windows(2).filter(|w| !w[0] && w[1]).count();
                let bytes = above.iter().filter(|h| **h).count() as u64 * u64::from(MSS);
                let lost = runs >= 3 || bytes > 2 * u64::from(MSS);
                let seq = ISS + una + i as u32 * MSS;
                prop_assert_eq!(below.is_some_and(|b| seq.before(b)), lost, "hole at {}", i);
            }
        }
    }
}

/// Breaks: which first blocks are D-SACKs (RFC 2883 §4).
#[test]
fn d_sacks_are_told_apart() {
    let table: [(&[(u32, u32)], bool); 6] = [
        (&[(100, 200)], true),                // below the acknowledgment
        (&[(1000, 1100)], false),             // the usual
        (&[(1000, 1100), (900, 1300)], true), // inside the second
        (&[(900, 1300), (1000, 1100)], false),
        (&[(1300, 1200)], false), // nonsense
        (&[], false),
    ];
    for (blocks, expected) in table {
        let blocks: SackBlocks = blocks.iter().map(|&(a, b)| block(a, b)).collect();
        let input = ack(&blocks, ISS + 500, ISS + 2000);
        assert_eq!(dsack(&input).is_some(), expected, "{blocks:?}");
    }
}

/// Breaks: the work an ACK causes: a block that tells nothing new, however long, must not be walked.
#[test]
fn known_blocks_cost_nothing() {
    let mut segments = Segments::default();
    let rows = 20_000;
    for i in 0..rows {
        segments.push(ISS + i * MSS, MSS, Instant::ZERO);
    }
    let mut board = Scoreboard::default();
    board.advance(ISS);
    let nxt = ISS + rows * MSS;
    let mut shown = 0;
    for i in 2..rows {
        let blocks: SackBlocks = [block(MSS, i * MSS)].into_iter().collect();
        board.take(&ack(&blocks, ISS, nxt), &mut segments, |_, _| shown += 1);
    }
    assert_eq!((shown, board.runs.len()), (rows - 2, 1));
}

/// Breaks: the pipe: what has arrived does not fly any more, even if a copy of it was sent that nobody called
/// lost.
#[test]
fn an_arrived_copy_does_not_fly() {
    let mut segments = Segments::default();
    for i in 0..4 {
        segments.push(ISS + i * MSS, MSS, Instant::ZERO);
    }
    segments.mark_retransmitted(2, Instant::ZERO, ISS + 4 * MSS);
    assert_eq!(segments.in_flight(), Packets::new(5));
    let mut board = Scoreboard::default();
    board.advance(ISS);
    let blocks: SackBlocks = [block(2 * MSS, 3 * MSS)].into_iter().collect();
    board.take(&ack(&blocks, ISS, ISS + 4 * MSS), &mut segments, |_, _| ());
    assert_eq!((segments.in_flight(), segments.retrans_out()), (Packets::new(3), Packets::new(0)));
}
