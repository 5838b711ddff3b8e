//! The report, for a reader who has not heard of farpace or of the paper.

use super::plan::PAPER;
use super::results::Results;
use super::{Args, figures, rows, sensitivity, tables};
use crate::grid::{Queue, satellite};
use crate::papers::Report;
use farpace_report::{Figure, Page, Reproduction};

/// The report.
pub fn report(args: &Args, results: &Results, reproduction: &Reproduction) -> Report {
    let figures = figures::all(results);
    Report {
        html: page(args, results, reproduction, &figures),
        figures,
        telling: &["figures/fig06.svg"],
        verdict: verdict(results, reproduction),
        table: tables::gains(results),
    }
}

fn page(args: &Args, results: &Results, reproduction: &Reproduction, figures: &[Figure]) -> String {
    let mut page = Page::new("TCP-STAR over a satellite link");
    let claims = &reproduction.claims;
    page.verdict(&verdict(results, reproduction), reproduction.holds());
    page.paragraph(
        "A geostationary satellite link: 10 Mbit/s, half a second for a round trip, and bit errors that lose data though \
         nothing is congested. TCP takes every loss for congestion, halves its window, and needs minutes to win it back. \
         TCP-STAR measures the bandwidth from the ACKs and sets its window by that: it opens at once (LWC), falls no \
         lower than what it measured (CWS), and asks after a timeout whether data or only ACKs were lost (AEN).",
    );
    page.paragraph(&format!(
        "Here the paper's runs are made again in virtual time: {} of them, {} each. Every byte received was compared with \
         the byte sent.",
        results.runs(),
        results.time
    ));
    let mut drawn = figures.iter();
    let mut show = |page: &mut Page, count: usize| {
        for figure in drawn.by_ref().take(count) {
            page.figure(figure);
        }
    };
    page.heading("A single flow").table(&tables::gains(results)).table(&tables::single(results));
    show(&mut page, 3);
    page.heading("Lost ACKs").table(&tables::times(results));
    show(&mut page, 1);
    page.heading("Two flows in one router");
    page.table(&tables::totals(results, Queue::Large)).table(&tables::totals(results, Queue::Small));
    show(&mut page, 2);
    page.heading("Fairness").table(&tables::shares(results, Queue::Large));
    show(&mut page, 4);
    page.table(&tables::shares(results, Queue::Small));
    show(&mut page, figures.len());
    page.heading("Claims").claims(claims);
    if sensitivity::measured(results) {
        page.heading("What the paper leaves open about STAR").paragraph(
            "The paper prints no smoothing formula, changes the interval taken for the first ACK from 1 us to 1 ms by \
             experiment, and bounds the window by the sockets alone. How much each of these matters:",
        );
        page.table(&sensitivity::filters(results)).paragraph(
            "The filter matters most, and to TCP-J more than to STAR. When a segment is lost, the next one makes the \
             receiver send the ACK that it was delaying, for one segment after the time of three: a sample of a third \
             of the rate, the last one before the loss asks for the estimate. With any filter TCP-J keeps its window, \
             and STAR's gain over it is close to the paper's. So the paper's estimator must have had one.",
        );
        page.table(&sensitivity::table(results)).paragraph(
            "Nor does it print the rate of the links to the router. STAR opens its window at once, so that hundreds of \
             segments leave together: in a queue of 15 kB all but ten of them are lost, and after the timeout the same \
             happens again. Slower access links, or pacing, spread them out.",
        );
        page.table(&sensitivity::bursts(results));
    }
    page.heading("Assumptions");
    for assumption in rows::assumptions(results) {
        page.paragraph(&assumption);
    }
    page.heading("How to repeat this").command(&command(args)).paragraph(
        "The result does not depend on the machine or on the number of threads. A single run, with captures and a table \
         of every ACK:",
    );
    page.command(
        "farpace run scenarios/papers/satellite.toml --set links.satellite.forward.bit_errors=1e-7 --out star",
    );
    page.details("The scenario of single flows", satellite::ONE);
    page.details("The scenario of two flows", satellite::TWO);
    page.paragraph(&format!("The paper: {PAPER}."));
    page.render()
}

/// What came out, in a sentence or two.
fn verdict(results: &Results, reproduction: &Reproduction) -> String {
    let claims = &reproduction.claims;
    let failed = claims.iter().filter(|c| !c.holds).count();
    format!(
        "Of {} claims {} hold{}. At a bit error rate of 1e-8 STAR is {:+.0} % faster than NewReno, {:+.0} % than HSTCP, \
             {:+.0} % than Scalable, {:+.0} % than TCP-J (paper: +152, +96, +42, +14 %).",
        claims.len(),
        claims.len() - failed,
        if failed == 0 { "" } else { "; the evidence says why the others do not" },
        results.gain("reno"),
        results.gain("highspeed"),
        results.gain("scalable"),
        results.gain("tcp-j"),
    )
}

/// The command that was run, without where its output went.
pub fn command(args: &Args) -> String {
    let mut line = "farpace papers satellite".to_owned();
    for (flag, given) in [("--frontier", args.frontier), ("--quick", args.quick)] {
        if given {
            line.push_str(&format!(" {flag}"));
        }
    }
    if let Some(seeds) = args.seeds {
        line.push_str(&format!(" --seeds {seeds}"));
    }
    if args.time != farpace_units::Span::from_secs(60) {
        line.push_str(&format!(" --time \"{}\"", args.time));
    }
    if !args.only.is_empty() {
        line.push_str(&format!(" --only {}", args.only.join(",")));
    }
    for (key, value) in &args.set {
        line.push_str(&format!(" --set {key}=\"{value}\""));
    }
    line
}
