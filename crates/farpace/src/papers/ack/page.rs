//! The report, for a reader who has not heard of farpace or of the thesis.

use super::cases::{Policy, Route, SCENARIO};
use super::plan::PAPER;
use super::results::Results;
use super::{Args, clocks, figures, rows, sensitivity, tables};
use crate::papers::Report;
use farpace_report::{Figure, Page, Reproduction};

/// The report.
pub fn report(args: &Args, results: &Results, reproduction: &Reproduction) -> Report {
    let figures = figures::all(results);
    Report {
        html: page(args, results, reproduction, &figures),
        figures,
        telling: &["figures/table-5-2.svg"],
        verdict: verdict(results, reproduction),
        table: tables::second(results, Route::Even),
    }
}

fn page(args: &Args, results: &Results, reproduction: &Reproduction, figures: &[Figure]) -> String {
    let mut page = Page::new("Cancel Delayed ACK on a line of 512 kbit/s");
    let claims = &reproduction.claims;
    page.verdict(&verdict(results, reproduction), reproduction.holds());
    page.paragraph(
        "A TCP receiver holds its ACKs back, in the hope of one ACK for two segments: in BSD until the next tick of 200 ms. \
         The sender pays for it. Its window opens more slowly, a lone segment waits for the tick, and the round trips it \
         measures have the wait in them. The thesis lets the sender decide: a segment with the CDL flag is acknowledged at \
         once, and the ACK says so, which makes it a round trip without the wait.",
    );
    page.paragraph(&format!(
        "Here the thesis' transfers of 10 s are made again in virtual time: {} runs. Every byte received was compared with the \
         byte sent.",
        results.runs()
    ));
    let mut drawn = figures.iter();
    let mut show = |page: &mut Page, count: usize| {
        for figure in drawn.by_ref().take(count) {
            page.figure(figure);
        }
    };
    page.heading("Gain and cost").table(&tables::costs(results));
    show(&mut page, 1);
    page.heading("CDL for the timed segment").table(&tables::first(results, Route::Even));
    show(&mut page, 4);
    page.heading("Policies").table(&tables::second(results, Route::Even));
    page.table(&tables::second(results, Route::Uneven));
    show(&mut page, 4);
    page.heading("Four segments in flight").paragraph(
        "The thesis prints a window of 8760 B: six segments, which take 140 ms for a round trip, because each is 23 ms on \
         the line. But its sender, which times one segment after another, timed 104 in 10 s: 96 ms each. That is a round trip \
         with four segments in flight. A send buffer that is filled in pieces of 2 kB would explain it. With four segments the \
         numbers come close to the thesis', both bytes and ACKs.",
    );
    page.table(&tables::four(results));
    show(&mut page, 1);
    page.heading("Claims").claims(claims);
    page.heading("Finer clocks").paragraph(
        "Chapter 6 proposes to measure round trips with the system's clock instead of a tick of 500 ms, and to time out by it. It \
         gives no numbers. In the table, SRTT is compared with the round trip that the path alone takes for the newest segment of each ACK: \
         all lines are first in, first out, so that it can be worked out. Without CDL the timeout is that of RFC 6298, with CDL the \
         thesis' SRTT + 4 RTTVAR of confirmed samples plus the longest delay seen of others. No least timeout is set.",
    );
    page.table(&clocks::table(results));
    show(&mut page, 1);
    if sensitivity::measured(results) {
        page.heading("What the thesis leaves open").table(&sensitivity::table(results));
    }
    page.heading("What the thesis' tables leave open").paragraph(
        "Bytes are 1460 times the segments sent in all rows without timestamps but the first of Table 5.1 (561 kB for 394 \
         segments), whose case is repeated in Table 5.2 (568 kB for 390). With timestamps a segment has 1448 B of payload: 417 of \
         them are 604 kB, not 616, and 390 are 565, not 570. The same case (RTT, timestamps) asked 116 times by Table 5.1 and \
         266 times by Table 5.2, all other numbers being equal. \"Dup ACK\" is the difference of segments and ACKs, but for one row: these are segments that share \
         an ACK, not duplicates. The text's \"10 to 20 %\" more ACKs are 17 to 62 % in the tables.",
    );
    page.heading("Assumptions");
    for assumption in rows::assumptions(results) {
        page.paragraph(&assumption);
    }
    page.heading("How to repeat this").command(&command(args)).paragraph(
        "The result does not depend on the machine or on the number of threads. A single run, with captures and a table \
         of every ACK:",
    );
    page.command("farpace run scenarios/papers/ack.toml --out cdl");
    page.details("The scenario", SCENARIO);
    page.paragraph(&format!("The thesis: {PAPER}."));
    page.render()
}

/// What came out, in a sentence or two.
fn verdict(results: &Results, reproduction: &Reproduction) -> String {
    let claims = &reproduction.claims;
    let failed = claims.iter().filter(|c| !c.holds).count();
    let delivered = |policy| results.delivered(Route::Even, policy).mean;
    let four = |policy| results.over(&sensitivity::four(Route::Even, policy, false), |m| m.sent_kb).mean;
    format!(
        "Of {} claims {} hold{}. In 10 s a sender that never asks delivers {:.0} kB, one that asks with the segment it times \
             {:.0} kB, one that asks with all segments of slow start {:.0} kB. The thesis sent 568, 581 and 626: as much as comes \
             out here with four segments in flight instead of the six of its window ({:.0}, {:.0}, {:.0}).",
        claims.len(),
        claims.len() - failed,
        if failed == 0 { "" } else { "; the evidence says why the others do not" },
        delivered(Policy::None),
        delivered(Policy::Rtt),
        delivered(Policy::SlowStart),
        four(Policy::None),
        four(Policy::Rtt),
        four(Policy::SlowStart),
    )
}

/// The command that was run, without where its output went.
fn command(args: &Args) -> String {
    let mut line = "farpace papers ack".to_owned();
    if args.quick {
        line.push_str(" --quick");
    }
    for (key, value) in &args.set {
        line.push_str(&format!(" --set {key}=\"{value}\""));
    }
    line
}
