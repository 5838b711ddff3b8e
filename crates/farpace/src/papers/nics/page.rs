//! The report, for a reader who has not heard of farpace or of the paper.

use super::case::{Case, FILE, TESTBED};
use super::host::IDLE;
use super::plan::{PAPER, at_90};
use super::results::Results;
use super::sets::Receiver;
use super::{Args, beyond, claims, figures, rows, tables, turns};
use crate::papers::Report;
use farpace_report::{Figure, Page, Reproduction};

/// The report.
pub fn report(args: &Args, results: &Results, reproduction: &Reproduction) -> Report {
    let figures = figures::all(results);
    Report {
        html: page(args, results, reproduction, &figures),
        figures,
        telling: &["figures/fig09-goodput.svg"],
        verdict: verdict(results, reproduction),
        table: tables::printed(results),
    }
}

fn page(args: &Args, results: &Results, reproduction: &Reproduction, figures: &[Figure]) -> String {
    let mut page = Page::new("One connection over several unequal network cards");
    let all = &reproduction.claims;
    page.verdict(&verdict(results, reproduction), reproduction.holds());
    page.paragraph(
        "Two hosts with a fast and a slow network card each, one IP address, one switch. If the frames of a connection go by both cards in turn, those by \
         the slow one arrive late: the receiver acknowledges what came before them again and again, the sender takes them for lost, sends them once \
         more and halves its window. The paper sends a frame for the slow card ahead of its turn, by a skip number S, so that it arrives in its turn.",
    );
    page.paragraph(&format!(
        "Here its measurements are made again in virtual time, {} runs, {} each. Every byte received was compared with the byte sent.",
        results.runs(),
        results.plan.time,
    ));
    let mut drawn = figures.iter();
    let mut show = |page: &mut Page, count: usize| {
        for figure in drawn.by_ref().take(count) {
            page.figure(figure);
        }
    };
    page.heading("What the paper printed").table(&tables::printed(results)).paragraph(&machine(results));
    show(&mut page, 2);
    page.paragraph(&format!("Mean window: {}.", tables::window(results)));
    show(&mut page, 1);
    page.heading("Claims").claims(all);
    if turns::measured(results) {
        page.heading("What the paper leaves open").paragraph(
            "One assumption is turned at a time; each line is measured at ten skip numbers. The last two columns are without an observer.",
        );
        page.table(&turns::table(results)).paragraph(
            "The floor of S + 1 segments below the window is not enough: with S frames held back, a single segment has arrived, and a receiver that \
             acknowledges every second one waits for the other. Both wait until the 10 ms are over. With S + 2 nobody waits.",
        );
    }
    page.heading("Other cards, other orders").paragraph(
        "Nothing but the order in which frames leave, and by which card: \"earliest\" (farpace's default) gives a card that falls idle the frame that would \
         arrive in its turn; \"skip\" works S out from rates and hops; \"round-robin\" is what Linux calls balance-rr, by shares; \"flow-hash\" keeps a connection to one \
         card, as 802.3ad does; \"min-rtt\", \"blest\" and \"ecf\" are schedulers of Multipath TCP. TCP is as it is.",
    );
    show(&mut page, 1);
    for receiver in Receiver::BOTH {
        page.table(&beyond::orders(results, receiver));
    }
    page.table(&beyond::earliest(results)).paragraph(
        "Delay is the smoothed round trip above its least: most of it is data that waits before the cards, because TCP sends as much as its buffers allow.",
    );
    let tcps = beyond::tcps(results);
    if !tcps.is_empty() {
        page.paragraph(
            "Profile modern finds losses by time (RACK): once it has seen reordering, what is later than a quarter of the least round trip is lost to it, \
             12 us on a switch, the time of one full frame at 1 Gbit/s. It takes some tenths of a second until it has learned to wait. TCPs that count three duplicate \
             ACKs are not deceived by a frame that is one place late.",
        );
        page.table(&tcps).table(&beyond::others(results));
    }
    page.heading("A card dies");
    show(&mut page, figures.len());
    page.heading("Skip numbers").table(&tables::skips(results));
    page.heading("Assumptions");
    for assumption in rows::assumptions(results) {
        page.paragraph(&assumption);
    }
    page.paragraph(rows::OBSERVER).paragraph(rows::WIRES);
    page.heading("How to repeat this").command(&command(args)).paragraph(
        "The result does not depend on the machine or on the number of threads. A single transfer, with captures and a table of every ACK:",
    );
    page.command(&format!("farpace run {FILE} --set hosts.a.multi_nic.skip=0 --out turns"));
    page.details("The scenario of the paper", TESTBED);
    for set in &results.plan.sets {
        page.details(&format!("The scenario of {}", set.name), set.case("earliest", Receiver::Stock).text());
    }
    page.paragraph(&format!("The paper: {PAPER}."));
    page.render()
}

/// What came out, in a sentence or two.
fn verdict(results: &Results, reproduction: &Reproduction) -> String {
    let all = &reproduction.claims;
    let failed = all.iter().filter(|c| !c.holds).count();
    let (skip, best) = results.best(at_90);
    format!(
        "Of {} claims {} hold{}. By cards of 1 Gbit/s and 100 Mbit/s, on the paper's machine, one TCP connection gets {:.0} Mbit/s if the cards \
             just take turns (paper: 143) and {best:.0} if frames for the narrow card are sent {skip} ahead (paper: 373 with 8).",
        all.len(),
        all.len() - failed,
        if failed == 0 { "" } else { "; the evidence says why the others do not" },
        results.goodput(&at_90(0)),
    )
}

/// What the machine is, and what it gives.
fn machine(results: &Results) -> String {
    format!(
        "The machine is not described. Two of its speeds are: UDP over both cards and TCP over the wide card alone. They give what a frame and an ACK \
         cost, 12.9 and 7.8 us; {} here, which is no result, but a check. What the program cost that observed retransmissions is worked out from the \
         best speed with it, in the same way: 9.5 us for each frame and ACK. The rest of this page follows. At 99.6/0.4 there is no observer. UDP and the card alone: {:.0} and {:.0} \
         Mbit/s.",
        if claims::calibrated(results) { "both speeds come out" } else { "the speeds do NOT come out" },
        claims::udp(results, "90/10"),
        results.goodput(&Case::alone(IDLE)),
    )
}

/// The command that was run, without where its output went.
fn command(args: &Args) -> String {
    let mut line = "farpace papers nics".to_owned();
    if args.quick {
        line.push_str(" --quick");
    }
    if let Some(time) = args.time {
        line.push_str(&format!(" --time \"{time}\""));
    }
    for (key, value) in &args.set {
        line.push_str(&format!(" --set {key}=\"{value}\""));
    }
    line
}
