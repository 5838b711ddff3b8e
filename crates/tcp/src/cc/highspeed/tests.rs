//! HighSpeed TCP against the two tables that were made of its functions.

use super::*;
use crate::cc::testing::{TestLink, window};

/// (w, 100 b(w) as RFC 3649 appendix B prints it, 256 b(w) as Linux has it); a(w) is the number of the row,
/// counted from one. Linux has one row less.
const TABLE: [(u32, u32, u32); 73] = [
    (38, 50, 128),
    (118, 44, 112),
    (221, 41, 104),
    (347, 38, 98),
    (495, 37, 93),
    (663, 35, 89),
    (851, 34, 86),
    (1058, 33, 83),
    (1284, 32, 81),
    (1529, 31, 78),
    (1793, 30, 76),
    (2076, 29, 74),
    (2378, 28, 72),
    (2699, 28, 71),
    (3039, 27, 69),
    (3399, 27, 68),
    (3778, 26, 66),
    (4177, 26, 65),
    (4596, 25, 64),
    (5036, 25, 62),
    (5497, 24, 61),
    (5979, 24, 60),
    (6483, 23, 59),
    (7009, 23, 58),
    (7558, 22, 57),
    (8130, 22, 56),
    (8726, 22, 55),
    (9346, 21, 54),
    (9991, 21, 53),
    (10661, 21, 52),
    (11358, 20, 52),
    (12082, 20, 51),
    (12834, 20, 50),
    (13614, 19, 49),
    (14424, 19, 48),
    (15265, 19, 48),
    (16137, 19, 47),
    (17042, 18, 46),
    (17981, 18, 45),
    (18955, 18, 45),
    (19965, 17, 44),
    (21013, 17, 43),
    (22101, 17, 43),
    (23230, 17, 42),
    (24402, 16, 41),
    (25618, 16, 41),
    (26881, 16, 40),
    (28193, 16, 39),
    (29557, 15, 39),
    (30975, 15, 38),
    (32450, 15, 38),
    (33986, 15, 37),
    (35586, 14, 36),
    (37253, 14, 36),
    (38992, 14, 35),
    (40808, 14, 35),
    (42707, 13, 34),
    (44694, 13, 33),
    (46776, 13, 33),
    (48961, 13, 32),
    (51258, 13, 32),
    (53677, 12, 31),
    (56230, 12, 30),
    (58932, 12, 30),
    (61799, 12, 29),
    (64851, 11, 28),
    (68113, 11, 28),
    (71617, 11, 27),
    (75401, 10, 26),
    (79517, 10, 26),
    (84035, 10, 25),
    (89053, 10, 24),
    (94717, 9, 0),
];

/// Breaks: a(w) and b(w): each row of appendix B to its printed digits, each row of Linux's table exactly.
#[test]
fn functions_against_tables() {
    for (i, (w, percent, of_256)) in TABLE.into_iter().enumerate() {
        let (a, b) = (increase(f64::from(w)), decrease(f64::from(w)));
        // The table steps where a passes a whole number more than at the step before, so it drifts a little.
        assert!((a - (i as f64 + 1.0)).abs() < 0.05, "a({w}) = {a}");
        assert_eq!((b * 100.0).round() as u32, percent, "b({w}) = {b}");
        if of_256 > 0 {
            assert_eq!((b * 256.0) as u32, of_256, "b({w}) = {b}");
        }
    }
}

/// Breaks: windows outside of the tables: Reno below, and growth that goes on above.
#[test]
fn beyond_the_tables() {
    assert_eq!([increase(1.0), increase(38.0), increase(39.0), decrease(10.0)], [1.0, 1.0, 1.0, 0.5]);
    // 10 Gbit/s and 600 ms: 0.078 * 518 000^0.8 * 2 * 0.0931 / 1.9069.
    assert!((increase(518_000.0) - 284.2).abs() < 0.5, "{}", increase(518_000.0));
    assert_eq!(decrease(4e9), decrease(LAST_WINDOW));
}

/// Breaks: growth by a(w) a round trip, whatever the ACK ratio; the cut by b(w); the way back.
#[test]
fn growth_and_cut() {
    for ratio in [1, 2, 8] {
        let mut cc = HighSpeed::new(SlowStart::new(None, None));
        let mut w = window(9_991, 2);
        // a = 29.007 at the start, and little more ten round trips later.
        TestLink::new(ratio).rounds(&mut cc, &mut w, 10);
        assert!((10_279..=10_287).contains(&w.cwnd().get()), "ratio {ratio}: {}", w.cwnd());
    }
    let mut cc = HighSpeed::new(SlowStart::new(None, None));
    let mut cut = |cwnd: u32, flight: u32| {
        cc.ssthresh(Instant::ZERO, &window(cwnd, 2), Packets::new(flight), Cut::FastRetransmit).get()
    };
    // b(118) = 0.4411, b(83 000) = 0.1.
    assert_eq!([cut(30, 30), cut(118, 118), cut(83_000, 90_000), cut(83_000, 118)], [15, 65, 74_700, 65]);
    assert_eq!(cc.undo_cwnd(&window(65, 65)).get(), 83_000);
}
