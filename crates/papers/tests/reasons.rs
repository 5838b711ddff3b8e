//! Claims that fail, held against the documents of the papers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use farpace_papers::ack::AckPaper;
use farpace_papers::nics::NicsPaper;
use farpace_papers::pacing::PacingPaper;
use farpace_papers::satellite::SatellitePaper;
use farpace_papers::stops::StopsPaper;
use farpace_papers::{
    ExperimentReport, FailsIn, Measured, Paper, ProgressSink, Runner, reasons, reasons_in_world,
};
use farpace_units::Span;
use std::collections::BTreeSet;

struct Silent;

impl ProgressSink for Silent {
    fn begin(&self, _: usize, _: usize) {}
    fn started(&self, _: &str) {}
    fn finished(&self) {}
    fn end(&self) {}
}

fn stops(quick: bool) -> StopsPaper {
    StopsPaper::new(quick, None, &[]).unwrap()
}
fn satellite(quick: bool) -> SatellitePaper {
    SatellitePaper::new(quick, None, Span::from_secs(60), &[]).unwrap()
}
fn ack(quick: bool) -> AckPaper {
    AckPaper::new(quick, &[])
}
fn pacing(quick: bool) -> PacingPaper {
    PacingPaper::new([quick, false], None, None, &[]).unwrap()
}
fn nics(quick: bool) -> NicsPaper {
    NicsPaper::new(quick, None, &[]).unwrap()
}

/// The claims of a report: all of them, and those that fail.
fn claims(report: &ExperimentReport) -> [BTreeSet<String>; 2] {
    let all = &report.reproduction().unwrap().claims;
    let fail = all.iter().filter(|claim| !claim.holds);
    [all.iter().map(|claim| claim.id.clone()).collect(), fail.map(|claim| claim.id.clone()).collect()]
}

/// Measures literally and in the best world, and compares the claims that fail with those of the document.
fn check<P: Paper>(paper: fn(bool) -> P, quick: bool) {
    let paper = paper(quick);
    let literal = check_one(&paper, quick, &reasons(P::ABOUT.document));
    let Some(world) = P::ABOUT.worlds.first() else { return };
    let entries = reasons_in_world(P::ABOUT.document, world.name);
    let fail = check_one(&paper.in_world(world, true).unwrap(), quick, &entries);
    let (name, worse) = (P::ABOUT.name, fail.len() > literal.len());
    assert!(!worse, "{name}: more claims fail in `{}` than literally: it is not the best world", world.name);
    for (id, _, reason) in entries.iter().filter(|(id, ..)| literal.contains(id) && fail.contains(id)) {
        let decided = reason.starts_with("Inconsistent: ") || reason.starts_with("Open: ");
        assert!(decided, "docs/papers/{}.md: `{id}` fails everywhere: {reason}", P::ABOUT.name);
    }
}

/// Measures, compares the claims that fail with those that are listed, and returns them.
fn check_one<P: Paper>(paper: &P, quick: bool, entries: &[(String, FailsIn, String)]) -> BTreeSet<String> {
    let name = P::ABOUT.name;
    let runner =
        Runner { threads: None, stop: &|| false, progress: &Silent, kept: None, program: String::new() };
    let report = runner.run(paper, Runner::plan(paper).unwrap(), "").unwrap();
    let [_, fail] = claims(&report);
    let listed = |of: &[FailsIn]| -> BTreeSet<String> {
        let all = entries.iter().filter(|(_, fails, _)| of.contains(fails));
        all.map(|(id, ..)| id.clone()).collect()
    };
    // What is listed for the quick measurement also covers shorter ones, so it need not fail.
    let (may, must) = match quick {
        true => (listed(&[FailsIn::Always, FailsIn::Quick]), listed(&[FailsIn::Always])),
        false => (listed(&[FailsIn::Always, FailsIn::Full]), listed(&[FailsIn::Always, FailsIn::Full])),
    };
    let world = paper.world().map_or("literal", |world| world.name);
    let document = format!("docs/papers/{name}.md, {world}, quick: {quick}");
    assert!(fail.is_subset(&may), "{document}: no reason for {:?}", fail.difference(&may));
    assert!(must.is_subset(&fail), "{document}: these hold: {:?}", must.difference(&fail));
    for claim in report.reproduction().unwrap().claims.iter().filter(|claim| !claim.holds) {
        assert!(claim.evidence.contains(". Why: "), "{name}: the reason does not fit: {claim:?}");
    }
    fail
}

/// Breaks: a document has a reason for a claim that no longer exists, so that no report prints it.
#[test]
fn documents_name_claims_that_exist() {
    fn check<P: Paper>(paper: fn(bool) -> P) {
        let paper = paper(false);
        let [all, _] = claims(&paper.report(&Measured::new(&paper, []), ""));
        for (id, ..) in reasons(P::ABOUT.document) {
            assert!(all.contains(&id), "docs/papers/{}.md: there is no claim `{id}`", P::ABOUT.name);
        }
        for world in P::ABOUT.worlds {
            let paper = paper.in_world(world, true).unwrap();
            let [all, _] = claims(&paper.report(&Measured::new(&paper, []), ""));
            let entries = reasons_in_world(P::ABOUT.document, world.name);
            for (id, ..) in &entries {
                assert!(
                    all.contains(id),
                    "docs/papers/{}.md, {}: no claim `{id}`",
                    P::ABOUT.name,
                    world.name
                );
            }
        }
    }
    /// A world has no setting that the scenario reader refuses in the middle of a long measurement.
    fn can_be_run<P: Paper>(paper: fn(bool) -> P) {
        for (world, brief) in P::ABOUT.worlds.iter().flat_map(|world| [(world, true), (world, false)]) {
            let plan = Runner::plan(&paper(false).in_world(world, brief).unwrap());
            assert!(plan.is_ok(), "{} in {}: {:?}", P::ABOUT.name, world.name, plan.err());
        }
    }
    can_be_run(stops);
    can_be_run(satellite);
    can_be_run(ack);
    can_be_run(pacing);
    can_be_run(nics);
    check(stops);
    check(satellite);
    check(ack);
    check(pacing);
    check(nics);
}

/// Breaks: a reader learns that a claim fails, and not why.
#[test]
fn each_claim_of_a_short_measurement_that_fails_has_its_reason() {
    check(ack, true);
}

/// Breaks: the same for all papers. It takes minutes in a release build: `make soak` runs it.
#[test]
#[ignore = "takes minutes"]
fn each_claim_that_fails_has_its_reason() {
    for quick in [true, false] {
        check(stops, quick);
        check(satellite, quick);
        check(ack, quick);
        check(pacing, quick);
        check(nics, quick);
    }
}
