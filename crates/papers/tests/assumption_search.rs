//! A search over what a paper leaves open, on transfers of a megabyte.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use farpace_papers::assumption_search::{KeyValue, SearchedKey, SearchedPaper, TriedPoint};
use farpace_papers::stops::StopsPaper;
use farpace_papers::{CHOICE, Paper, ProgressSink, Runner, SCENARIO};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts runs.
#[derive(Default)]
struct Counter(AtomicUsize);

impl ProgressSink for Counter {
    fn begin(&self, _: usize, _: usize) {}
    fn started(&self, _: &str) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    fn finished(&self) {}
    fn end(&self) {}
}

fn paper() -> StopsPaper {
    StopsPaper::new(true, Some(1), &[("flows.bulk.size".into(), "1 MB".into())]).unwrap()
}

fn keys() -> Vec<SearchedKey> {
    [(CHOICE, "window"), (SCENARIO, "links.wan.forward.loss")]
        .map(|(part, key)| SearchedKey {
            part: part.into(),
            key: key.into(),
            range: String::new(),
            reason: None,
        })
        .into()
}

fn points() -> Vec<Vec<KeyValue>> {
    [("1500", "0"), ("1500", "1"), ("2000", "0.001")]
        .map(|(window, loss)| {
            [window, loss].map(|text| KeyValue { text: text.into(), level: text.parse().ok() }).into()
        })
        .into()
}

/// Makes the search; `begin` points begin, and so many runs of points are made.
fn searched(threads: u16, begin: usize, kept: Option<&Path>) -> (Vec<TriedPoint>, usize) {
    let (paper, counter) = (paper(), Counter::default());
    let runner = Runner {
        threads: Some(threads),
        stop: &|| false,
        progress: &counter,
        kept: kept.map(Into::into),
        program: "test".into(),
    };
    let reference = runner.reference(&paper).unwrap();
    let (before, begun) = (counter.0.load(Ordering::Relaxed), AtomicUsize::new(0));
    let enough = || begun.fetch_add(1, Ordering::Relaxed) >= begin;
    let tried = runner.try_points(&paper, &reference, &keys(), &points(), &enough).unwrap();
    (tried, counter.0.load(Ordering::Relaxed) - before)
}

/// Breaks: a search gives something else with more threads, a point that cannot come to an end ends the
/// search, or rows of points with another window are not those of the others.
#[test]
fn points_have_results_whatever_the_number_of_threads() {
    let (one, _) = searched(1, 9, None);
    assert_eq!(one, searched(3, 9, None).0);
    let ids = |point: &TriedPoint| -> Vec<String> {
        point.outcome.as_ref().unwrap().rows.iter().map(|row| row.id.clone()).collect()
    };
    assert_eq!(ids(&one[0]), ids(&one[2]));
    assert!(ids(&one[0]).contains(&"table2/window/linux-2.6.22/time-mean".to_owned()), "{:?}", ids(&one[0]));
    let failed = one[1].outcome.as_ref().unwrap_err();
    assert!(failed.contains("linux-2.6"), "it does not say which run: {failed}");
}

/// Breaks: a point begins after the time is over, or what is finished is made again.
#[test]
fn finished_points_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("kept");
    let (first, made) = searched(2, 1, Some(&kept));
    let (all, rest) = searched(2, 9, Some(&kept));
    assert_eq!((first.len(), all.len()), (1, 3));
    assert_eq!(first[0], all[0]);
    assert_eq!(rest, 2 * made);
    assert_eq!(searched(2, 9, Some(&kept)), (all, 0));
}

/// Breaks: a number that chooses points counts as one that judges, or a name that stands for nothing is
/// taken.
#[test]
fn the_numbers_of_the_fit_are_marked() {
    let (paper, counter) = (paper(), Counter::default());
    let runner =
        Runner { threads: None, stop: &|| false, progress: &counter, kept: None, program: "test".into() };
    let reference = runner.reference(&paper).unwrap().reproduction;
    let (keys, tried) = (keys(), searched(2, 9, None).0);
    let fitted = |fit: &[String]| {
        let searched = SearchedPaper {
            about: StopsPaper::ABOUT,
            world: None,
            keys: &keys,
            reference: &reference,
            points: &tried,
            planned: 3,
            sampling: "three points".into(),
            fit,
        };
        let json = serde_json::to_value(searched.report("").json).unwrap();
        let numbers = json["trade_offs"]["numbers"].as_array().unwrap().clone();
        let marked = numbers.iter().filter(|n| n["fitted"] == true).count();
        (marked, numbers.len(), searched.unknown_fit().map(str::to_owned))
    };
    let (half, all, unknown) = fitted(&[]);
    assert_eq!((half, unknown), (all.div_ceil(2), None));
    // The window is no part of the name.
    let one = fitted(&["table2/window-2500/aist-fix/goodput".into()]);
    assert_eq!(one, (1, all, None));
    let (several, _, unknown) = fitted(&["table2/window-2500/aist-fix/".into(), "table9/".into()]);
    assert!(several > 1 && several < all, "{several} of {all}");
    assert_eq!(unknown.as_deref(), Some("table9/"));
}
