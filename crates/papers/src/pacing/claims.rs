//! What the paper claims, and whether it came out. Nothing is tuned to hold.

use super::classes::{PRECISE, PacedClass, RandomSet};
use super::published::{FIFOS, FIVE, PSPACER, PublishedFifos, TABLE_2, TABLE_4, TOKEN_BUCKET, UNLIMITED};
use super::scheduler::PacingMethod;
use super::transfers::FifoCase;
use super::{EXACT, FIG_6, FIG_8, LARGE_BUCKET, MeasuredPacing, large_bucket, slow_start};
use crate::paper::ClaimList;

/// The paper's own: effective rates are within this part of the target (§4.4.1).
const EFFECTIVE: f64 = 0.005;
/// "Reaches": within this part of the paper's number.
const REACHES: f64 = 0.01;
/// "As in the paper", "about": within this part.
const ABOUT: f64 = 0.15;
/// A bin of Fig. 7 is undisturbed if it differs by so many frames at most: one that is cut by each end of the
/// bin, and one of delay by the others.
const UNDISTURBED: f64 = 3.0;
/// Payload that 200 Mbit/s of layer 2 carry, in Mbit/s.
const SHARE: f64 = 200.0 * 1_448.0 / 1_518.0;

/// All claims.
pub fn claims(m: &MeasuredPacing<'_>, claims: &mut ClaimList) {
    let text = "The paper's order is precise: the greatest burstiness is at most 2 MTU in every row of \
                Tables 2 to 4";
    precise(m, PacingMethod::Psp, text, claims);
    precise(m, PacingMethod::Edf, "So is the earliest deadline first", claims);
    rates(m, claims);
    undisturbed(m, claims);
    fifos(m, claims);
    in_slow_start(m, claims);
    pairs(m, claims);
    let sets = m.sets();
    let above = |of: fn(&RandomSet) -> f64| {
        let worst = sets.iter().map(of).fold(0.0, f64::max);
        (sets.iter().filter(|s| of(s) > PRECISE).count(), worst)
    };
    let (count, worst) = above(|s| s.psp);
    let says = format!("{count} of {} random sets above 2 MTU, the worst {worst:.2} MTU", sets.len());
    let text = "Not in the paper: its order, highest rate first, is not precise for every set of classes";
    claims.add("order-is-not-enough", text, count > 0, [says]);
    let (count, worst) = above(|s| s.edf);
    let says = format!("{count} of the same {} sets, the worst {worst:.2} MTU", sets.len());
    let text = "Not in the paper: earliest deadline first is precise for all of them";
    claims.add("deadlines-are", text, count == 0 && !sets.is_empty(), [says]);
}

fn precise(m: &MeasuredPacing<'_>, pacer: PacingMethod, text: &str, claims: &mut ClaimList) {
    let single =
        TABLE_2.iter().map(|row| (format!("{} alone", row.target), m.single(pacer, row.rate).cloned()));
    let five = TABLE_4.iter().filter(|row| row.n == 1);
    let five = five.map(|row| (format!("{} of five", row.target), m.five(pacer, row).cloned()));
    let all = single.chain([("96 of 10M".to_owned(), m.many(pacer))]).chain(five);
    let mut holds = true;
    let says = all.map(|(name, class): (String, Option<PacedClass>)| {
        let q = class.map_or(f64::NAN, |c| c.burstiness);
        holds &= q <= PRECISE;
        format!("{name} {q:.3} MTU")
    });
    let says: Vec<String> = says.collect();
    claims.add(format!("precise-{}", pacer.id()), text, holds, says);
}

/// What is furthest from zero; NaN if one is.
fn furthest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, |worst: f64, v| if v.abs() > worst.abs() || v.is_nan() { v } else { worst })
}

fn rates(m: &MeasuredPacing<'_>, claims: &mut ClaimList) {
    let mut worst: (f64, u64) = (0.0, 0);
    let mut holds = true;
    for rate in FIG_6 {
        let mean = m.fig_6(PacingMethod::Psp, rate).map_or(f64::NAN, |c| c.bandwidth[0].mean);
        let off = mean / rate as f64 - 1.0;
        holds &= off.abs() <= EFFECTIVE;
        if off.abs() >= worst.0.abs() {
            worst = (off, rate);
        }
    }
    let says = format!(
        "PSPacer, by the paper's meter: {:+.2} % at worst ({} bit/s); of that -0.26 % is the check sequence, \
         which the meter does not count",
        worst.0 * 100.0,
        worst.1
    );
    let text = "Target and effective rate agree from 8 kbit/s to 930 Mbit/s (within 0.5 %; Fig. 6)";
    claims.add("effective", text, holds, [says]);

    let error = |pacer, rate| m.fig_6(pacer, rate).map_or(f64::NAN, |c| c.error_ppm);
    let errors = EXACT.map(|pacer| (pacer, furthest(FIG_6.into_iter().map(|rate| error(pacer, rate)))));
    let mut says: Vec<String> =
        errors.iter().map(|(pacer, error)| format!("{pacer}: {error:+.1} ppm at worst")).collect();
    says.push("PSPacer cuts off the fraction of a byte at each packet".to_owned());
    let text = "Not in the paper: with edf the rate of layer 2 is the target to the byte (10 ppm: one byte \
                of each ten packets' time or less)";
    claims.add("exact", text, errors[1].1.abs() <= 10.0, says);

    let mut holds = true;
    let says =
        TABLE_2.iter().filter_map(|row| m.single(PacingMethod::Psp, row.rate).map(|class| (row, class)));
    let says = says.map(|(row, class)| {
        let above = class.bandwidth[0].max / class.rate as f64 - 1.0;
        // A tick of the clock is this part of the time between two packets.
        let ticks = 2.0 * class.rate as f64 / (8.0 * 1_514.0 * f64::from(1u32 << 24));
        holds &= above <= ticks;
        format!("{}: {:.4} of the target", row.target, above + 1.0)
    });
    let says: Vec<String> = says.collect();
    let text = "A single flow is never faster than its target, but for the clock (Table 2)";
    claims.add("never-above", text, holds && says.len() == TABLE_2.len(), says);
}

fn undisturbed(m: &MeasuredPacing<'_>, claims: &mut ClaimList) {
    let mut holds = true;
    let says = EXACT.map(|pacer| {
        let all = [0, 1, 2, 3, 4].map(|class: usize| {
            let worst = m.worst_bin(pacer, class);
            holds &= worst < UNDISTURBED;
            format!("{worst:.2}")
        });
        debug_assert_eq!(all.len(), FIVE.len());
        format!("{pacer}: {} frames for 20, 50, 100, 300, 500 Mbit/s", all.join(", "))
    });
    let text = "Classes that begin and end disturb nobody: every bin of 10 ms is within 3 frames of its \
                class's rate (Fig. 7)";
    claims.add("undisturbed", text, holds, says);
}

/// Mbit/s and packets lost of each FIFO, paper | measured.
fn by_fifo(m: &MeasuredPacing<'_>, pacer: PacingMethod, paper: Option<&PublishedFifos>) -> Vec<String> {
    let one = |(i, fifo): (usize, &u32)| {
        let case = FifoCase::table_5(pacer, *fifo);
        let mut ours = format!("{:.1}/{}", m.goodput(&case), m.lost(&case));
        let own = m.dropped_at_sender(&case);
        if own > 0.0 {
            ours += &format!(" and {own} in the queue of its own NIC");
        }
        match paper.and_then(|p| p.get(i)) {
            Some((goodput, lost)) => format!("{fifo} kB {goodput}/{lost} | {ours}"),
            None => format!("{fifo} kB {ours}"),
        }
    };
    FIFOS.iter().enumerate().map(one).collect()
}

fn fifos(m: &MeasuredPacing<'_>, claims: &mut ClaimList) {
    let goodput = |pacer| FIFOS.map(|fifo| m.goodput(&FifoCase::table_5(pacer, fifo)));
    let lost = |pacer| FIFOS.map(|fifo| m.lost(&FifoCase::table_5(pacer, fifo)));
    // What the sender's own NIC drops is lost as well.
    let own = |pacer| FIFOS.map(|fifo| m.dropped_at_sender(&FifoCase::table_5(pacer, fifo)));
    let none = |pacer| lost(pacer).iter().chain(&own(pacer)).all(|lost| *lost == 0.0);
    let mut says = by_fifo(m, PacingMethod::Psp, Some(&PSPACER));
    says.push(format!("edf: {}", by_fifo(m, PacingMethod::Edf, None).join(", ")));
    let text = "A paced sender loses nothing, whatever the FIFO (Table 5; Mbit/s / lost, paper | measured)";
    claims.add("no-loss", text, none(PacingMethod::Psp) && none(PacingMethod::Edf), says);

    let near = |pacer| {
        goodput(pacer).iter().zip(PSPACER).all(|(ours, (paper, _))| (ours / paper - 1.0).abs() <= REACHES)
    };
    let says = EXACT.map(|pacer| format!("{pacer} {:.1} Mbit/s with 16 kB", goodput(pacer)[0]));
    let text = "It reaches 474 of 500 Mbit/s in 5 minutes, whatever the FIFO (within 1 %; Table 5)";
    claims.add("reaches", text, near(PacingMethod::Psp) && near(PacingMethod::Edf), says);

    let rises = |pacer| {
        let all = goodput(pacer);
        all.windows(2).all(|w| matches!(w, [a, b] if *b >= *a * (1.0 - REACHES)))
    };
    let lossy = lost(PacingMethod::None).iter().all(|lost| *lost > 0.0);
    let slow = goodput(PacingMethod::None).iter().zip(PSPACER).all(|(ours, paced)| *ours < paced.0);
    let text =
        "Without a limit it loses at every FIFO size, and the smaller the FIFO, the slower it is (Table 5)";
    let holds = lossy && slow && rises(PacingMethod::None);
    claims.add("unlimited", text, holds, by_fifo(m, PacingMethod::None, Some(&UNLIMITED)));

    let loses = lost(PacingMethod::TokenBucket).map(|lost| lost > 0.0);
    let holds = loses == [true, true, true, true, false] && rises(PacingMethod::TokenBucket);
    let text = "The token bucket loses with every FIFO up to 1 MB, not with 4 MB, and the smaller the FIFO, \
                the slower it is (Table 5)";
    claims.add("token-bucket", text, holds, by_fifo(m, PacingMethod::TokenBucket, Some(&TOKEN_BUCKET)));
}

fn in_slow_start(m: &MeasuredPacing<'_>, claims: &mut ClaimList) {
    let first_lost = |case: &FifoCase| m.transfer(case).and_then(|t| t.first_lost);
    let lost = FIG_8.map(|pacer| first_lost(&slow_start(pacer)));
    let says = FIG_8.iter().zip(lost).map(|(pacer, at)| match at {
        Some(at) => format!("{pacer} loses first at {at:.2} s"),
        None => format!("{pacer} loses nothing in 5 s"),
    });
    let large = first_lost(&large_bucket());
    let large = large.map_or("does not".to_owned(), |at| format!("does at {at:.2} s"));
    let says: Vec<String> = says.chain([format!("a bucket of {LARGE_BUCKET} {large}")]).collect();
    let near = lost[0].is_some_and(|at| (at / 2.5 - 1.0).abs() <= ABOUT);
    let text = "In slow start the token bucket overflows a FIFO of 1 MB near 2.5 s (within 15 %), PSPacer \
                does not (Fig. 8)";
    claims.add("slow-start", text, near && lost[1].is_none(), says);
}

fn pairs(m: &MeasuredPacing<'_>, claims: &mut ClaimList) {
    let pair = |first, second| {
        let case = FifoCase::pair(first, second);
        let goodput = m.transfer(&case).map(|t| t.goodput.clone()).unwrap_or_default();
        let each: Vec<String> = goodput.iter().map(|g| format!("{g:.1}")).collect();
        let lost = m.lost(&case);
        let own = m.dropped_at_sender(&case);
        let text = format!(
            "{first} + {second}: {} Mbit/s, {lost} lost, {own} dropped by queues of the senders' own NICs",
            each.join(" + ")
        );
        (goodput, [lost, own], text)
    };
    let mut holds = true;
    let says = EXACT.map(|pacer| {
        let (goodput, lost, text) = pair(pacer, pacer);
        // Slow start takes some seconds of each.
        holds &= lost == [0.0, 0.0] && goodput.len() == 2 && goodput.iter().all(|g| *g >= SHARE * 0.95);
        text
    });
    let text = "Two paced flows of 200 Mbit/s stay there through a FIFO of 32 kB, 400 in all, and lose \
                nothing (Fig. 9a; at least 95 % of the 190.8 Mbit/s of payload each, slow start included)";
    claims.add("paced-pair", text, holds, says);

    let (of_buckets, [lost, _], says) = pair(PacingMethod::TokenBucket, PacingMethod::TokenBucket);
    let both = later_frames(m, &FifoCase::pair(PacingMethod::TokenBucket, PacingMethod::TokenBucket));
    let says = [says, format!("frames behind the FIFO {both:.1} Mbit/s in all")];
    let text = "Two token buckets of 200 Mbit/s lose, and do not have 200 Mbit/s in all (Fig. 9b)";
    claims.add("bucket-pair", text, lost > 0.0 && both < 200.0, says);

    let mixed = [
        pair(PacingMethod::Psp, PacingMethod::TokenBucket),
        pair(PacingMethod::TokenBucket, PacingMethod::Psp),
    ];
    let of_buckets = of_buckets.iter().sum::<f64>();
    let holds = mixed.iter().enumerate().all(|(paced, (goodput, ..))| {
        let held = goodput.get(paced).is_some_and(|g| *g >= SHARE * (1.0 - ABOUT));
        held && goodput.iter().sum::<f64>() > of_buckets
    });
    let text = "A paced flow beside a token bucket keeps about its 200 Mbit/s (at least 85 % of its \
                payload), and both together have more than two token buckets (Fig. 9c, d)";
    claims.add("mixed-pairs", text, holds, mixed.map(|p| p.2));
}

/// Frames of both flows of a pair behind the FIFO from the beginning of the second one on, in Mbit/s.
fn later_frames(m: &MeasuredPacing<'_>, case: &FifoCase) -> f64 {
    let curves = m.transfer(case).map(|t| t.curves.as_slice()).unwrap_or_default();
    let later = |curve: &Vec<(f64, f64)>| curve.iter().filter(|(at, _)| *at >= 5.0).count();
    let bins = curves.iter().map(later).max().unwrap_or(0);
    let frames = curves.iter().flatten().filter(|(at, _)| *at >= 5.0);
    frames.map(|(_, mbit)| mbit).sum::<f64>() / bins as f64
}
