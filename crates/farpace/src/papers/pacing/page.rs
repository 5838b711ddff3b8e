//! The report, for a reader who has not heard of farpace or of the paper.

use super::pace::Pace;
use super::plan::PAPER;
use super::results::Results;
use super::transfers::{self, Case};
use super::{Args, figures, rows, sensitivity, tables};
use crate::papers::Report;
use farpace_report::{Figure, Page, Reproduction};

/// The report.
pub fn report(args: &Args, results: &Results, reproduction: &Reproduction) -> Report {
    let figures = figures::all(results);
    Report {
        html: page(args, results, reproduction, &figures),
        figures,
        telling: &["figures/table5.svg"],
        verdict: verdict(results, reproduction),
        table: tables::fifos(results),
    }
}

fn page(args: &Args, results: &Results, reproduction: &Reproduction, figures: &[Figure]) -> String {
    let mut page = Page::new("Precise pacing by gap packets");
    let claims = &reproduction.claims;
    page.verdict(&verdict(results, reproduction), reproduction.holds());
    page.paragraph(
        "A network card sends as fast as it can: what TCP gives it in one go leaves in one burst, at twice the rate of a bottleneck that is half as \
         fast. The router before the bottleneck has to hold half of the burst. If its FIFO is small, packets are lost, TCP halves its window, \
         and over 200 ms it takes minutes to win it back. A timer cannot keep packets apart: one of them takes 12 us, a timer's \
         tick 1 ms. The paper fills the time between two packets with gap packets, PAUSE frames of Ethernet that the next switch throws away: \
         their bytes are the clock.",
    );
    page.paragraph(&format!(
        "Here its measurements are made again in virtual time: {} runs. Tables 2 to 4 drive the scheduler with classes that always have packets, \
         about {} packets a row (as many as 160 s of the line carry at 8 kbit/s: the paper's 250,000 would take four days); transfers of Table 5 \
         take {} and those beyond the paper {}. Every byte received was compared with the byte sent.",
        results.runs(),
        results.plan.packets,
        results.plan.time,
        results.plan.beyond,
    ));
    let mut drawn = figures.iter();
    let mut show = |page: &mut Page, count: usize| {
        for figure in drawn.by_ref().take(count) {
            page.figure(figure);
        }
    };
    page.heading("Rates and bursts").paragraph(
        "Burstiness is the queue Q that a flow makes before a line of exactly its mean rate. One packet is perfect; the paper calls pacing precise \
         if it is at most two, because another class's packet may be in the way.",
    );
    page.table(&tables::single(results)).table(&tables::many(results)).table(&tables::five(results)).paragraph(
        "\"Q by that clock\" is measured as in the paper: before a line of the mean rate of what was captured, by a clock of 2^-24 s, rounded up to \
         packets. A first frame that is early and a last one that is late make that mean too small and Q too large by up to a packet. \
         \"Q\" is before the rate that the class is to have, by the times of the line. \"Error\" is how far the rate of layer 2 is from the \
         target; with several classes it is mostly that first and last frame. The paper's mean of 33.1 Mbit/s in Table 4 (50M, n = 1) cannot be: a \
         mean of bandwidths is never less than the bandwidth of the mean time, 50 Mbit/s.",
    );
    show(&mut page, 2);
    page.table(&tables::others(results)).heading("Is the paper's order enough?").paragraph(
        "PSPacer lets the class with the highest rate go first. A slow class may then have to wait for several others. On random sets of classes this \
         is looked for; edf, farpace's default, lets that class go first whose next packet is due first.",
    );
    show(&mut page, 1);
    page.table(&tables::sets(results)).heading("TCP through a small FIFO").table(&tables::fifos(results));
    show(&mut page, 4);
    page.heading("Two flows").table(&tables::pairs(results));
    show(&mut page, figures.len());
    page.heading("Claims").claims(claims);
    if rows::sensitivity_measured(results) {
        page.heading("What the paper leaves open").paragraph(
            "The paper does not say what its token bucket held. Table 5 tells: a burst that leaves at 1 Gbit/s into 500 Mbit/s leaves half of it \
             in the FIFO. A FIFO of 1 MB overflowed in slow start, one of 4 MB did not: the bucket held more than 2 MB. The least that 1 ms needs, \
             62.5 kB, fills 31 kB, and overflows a FIFO of 16 kB alone.",
        );
        page.table(&sensitivity::buckets(results)).table(&sensitivity::table(results));
        page.heading("Beyond the paper").paragraph(
            "The same bottleneck with what a sender may have today: fq, a class that follows its connection, so that nobody has to know the rate, \
             and today's TCPs without pacing at the network card. A class that follows its connection has no bursts, but slow start goes on until \
             something is lost: only who knows the rate loses nothing.",
        );
        page.table(&sensitivity::today(results));
    }
    page.heading("Assumptions");
    let all = [rows::assumptions(), rows::of_lines(), rows::of_transfers()];
    for assumption in all.iter().flatten() {
        page.paragraph(assumption);
    }
    page.paragraph(rows::SCHEDULE).paragraph(rows::SETS);
    page.heading("What is not claimed").paragraph(
        "CPU load (15 % in the paper) is not measured here: hosts of the lab take no time. The paper's measurement over a commercial line cannot be \
         made again.",
    );
    page.heading("How to repeat this").command(&command(args)).paragraph(
        "The result does not depend on the machine or on the number of threads. A single transfer, with captures and a table of every ACK:",
    );
    page.command("farpace run scenarios/papers/pacing.toml --set links.line.queue=\"16 kB\" --out gap");
    page.details("The scenario of one flow", transfers::ONE);
    page.details("The scenario of two flows", transfers::TWO);
    page.paragraph(&format!("The paper: {PAPER}."));
    page.render()
}

/// What came out, in a sentence or two.
fn verdict(results: &Results, reproduction: &Reproduction) -> String {
    let claims = &reproduction.claims;
    let failed = claims.iter().filter(|c| !c.holds).count();
    let goodput = |pace| results.goodput(&Case::one(pace, 16));
    format!(
        "Of {} claims {} hold{}. Through a router's FIFO of 16 kB, 200 ms away, a paced sender gets {:.0} of 500 Mbit/s (paper: 474) and \
             loses nothing; an unpaced one gets {:.0} (paper: 29).",
        claims.len(),
        claims.len() - failed,
        if failed == 0 { "" } else { "; the evidence says why the others do not" },
        goodput(Pace::Psp),
        goodput(Pace::None),
    )
}

/// The command that was run, without where its output went.
fn command(args: &Args) -> String {
    let mut line = "farpace papers pacing".to_owned();
    for (flag, given) in [("--quick", args.quick), ("--full", args.full)] {
        if given {
            line.push_str(&format!(" {flag}"));
        }
    }
    if let Some(time) = args.time {
        line.push_str(&format!(" --time \"{time}\""));
    }
    if let Some(sets) = args.sets {
        line.push_str(&format!(" --sets {sets}"));
    }
    for (key, value) in &args.set {
        line.push_str(&format!(" --set {key}=\"{value}\""));
    }
    line
}
