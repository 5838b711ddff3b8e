//! Studies from a plan to rows: what is made, kept, grown, stopped, divided and joined.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as tests do")]

use farpace_lab::scenario::Scenario;
use farpace_study::{
    Measurement, PlanSpec, QueueOptions, RunEnd, RunOptions, RunOrder, RunRecord, RunStatus, RunVerdict,
    ScenarioSource, Shard, StoredStudy, StudyEnd, StudyError, StudyPage, StudyPlan, StudyQueue, StudySink,
    csv_text, cut_note, json, merge, run, shard_folder, simulate, summarize,
};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

const SCENARIO: &str = r#"
title = "Small"
description = "words"
duration = "5 s"
seed = 3
[hosts.a]
[hosts.b]
[[links]]
name = "wan"
between = ["a", "b"]
rate = "20 Mbit/s"
delay = "5 ms"
queue = "30 kB"
forward = { loss = 0.001 }
[[flows]]
name = "bulk"
from = "a"
to = "b"
size = "200 kB"
"#;

/// Says stop once so many runs have begun.
struct Sink {
    begun: AtomicU64,
    limit: u64,
}

impl Sink {
    fn new() -> Self {
        Sink::stopping_after(u64::MAX)
    }
    fn stopping_after(limit: u64) -> Self {
        Sink { begun: AtomicU64::new(0), limit }
    }
}

impl StudySink for Sink {
    fn begin(&self, _: u64, _: u64) {}
    fn finished(&self, _: &RunRecord) {}
    fn spared(&self, _: u64) {}
    fn clock(&self) -> Box<dyn Fn() -> RunVerdict + '_> {
        let stop = self.begun.fetch_add(1, Ordering::Relaxed) >= self.limit;
        Box::new(move || if stop { RunVerdict::Stop } else { RunVerdict::GoOn })
    }
}

/// The delay of the only link, in ms.
fn delay(scenario: &Scenario) -> u64 {
    scenario.links[0].delay.as_nanos() / 1_000_000
}

fn plan(vary: &[&str], seeds: u64) -> StudyPlan {
    with(vary, seeds, |_| {}).unwrap_or_else(|e| panic!("{e}"))
}

fn with(vary: &[&str], seeds: u64, change: impl FnOnce(&mut PlanSpec)) -> Result<StudyPlan, StudyError> {
    let source = ScenarioSource {
        name: "small.toml".into(),
        text: SCENARIO.into(),
        folder: ".".into(),
        set: Vec::new(),
    };
    let mut spec =
        PlanSpec { vary: vary.iter().map(|v| (*v).to_owned()).collect(), seeds, ..PlanSpec::default() };
    change(&mut spec);
    StudyPlan::new(source, spec)
}

fn options(threads: usize) -> RunOptions<'static> {
    RunOptions { threads: Some(threads), shard: None, retry: false, simulate: &simulate, version: "test" }
}

fn make(plan: &StudyPlan, folder: &Path, threads: usize) -> StudyEnd {
    run(plan, folder, false, &options(threads), &Sink::new()).unwrap_or_else(|e| panic!("{e}"))
}

fn data(folder: &Path) -> Vec<u8> {
    std::fs::read(folder.join("runs.parquet")).unwrap()
}

const DELAYS: &str = "links.wan.delay=5ms,10ms,20ms";
const CONTROLS: &str = "flows.*.sender.congestion=cubic,reno";

/// Breaks: determinism: a data set that depends on threads, interruptions, or the order in which runs finish.
#[test]
fn the_same_study_is_the_same_file() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(&[DELAYS, CONTROLS], 2);
    let [one, three, broken] = ["one", "three", "broken"].map(|name| dir.path().join(name));
    assert_eq!(make(&plan, &one, 1).made, 12);
    assert_eq!(make(&plan, &three, 3).made, 12);
    assert_eq!(data(&one), data(&three));
    let end = run(&plan, &broken, false, &options(2), &Sink::stopping_after(5)).unwrap();
    assert!(end.interrupted && end.made == 5, "{end:?}");
    assert_eq!(StoredStudy::read(&broken).unwrap().records.len(), 5);
    let end = make(&plan, &broken, 2);
    assert_eq!((end.made, end.reused, end.interrupted), (7, 5, false));
    assert_eq!(data(&broken), data(&one));
    assert_eq!(
        StoredStudy::read(&one).unwrap().provenance.digest,
        StoredStudy::read(&broken).unwrap().provenance.digest
    );
    assert!(!broken.join("journal").exists());
}

/// Breaks: runs that are made elsewhere: an order that lacks something, here the contents of files; rows that
/// depend on the order in which they come back; records that nobody waits for.
#[test]
fn runs_may_be_made_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    for (name, rate) in [("slow.csv", "5 Mbit/s"), ("fast.csv", "15 Mbit/s")] {
        let text = format!("at,rate,delay\n0 s,20 Mbit/s,\n100 ms,{rate},\n");
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let (name, folder) = ("small.toml".into(), dir.path().to_owned());
    let source = ScenarioSource { name, text: SCENARIO.into(), folder, set: Vec::new() };
    let vary =
        vec![DELAYS.to_owned(), "links.wan.forward.schedule={file=\"slow.csv\"},{file=\"fast.csv\"}".into()];
    let plan = StudyPlan::new(source, PlanSpec { vary, seeds: 3, ..PlanSpec::default() }).unwrap();
    let [here, there] = ["here", "there"].map(|name| dir.path().join(name));
    assert_eq!(make(&plan, &here, 2).made, 18);
    std::fs::remove_file(dir.path().join("slow.csv")).unwrap();
    let queued = QueueOptions { version: "test", ..QueueOptions::default() };
    let mut queue = StudyQueue::open(&plan, &there, queued).unwrap();
    let order: RunOrder = serde_json::from_slice(&serde_json::to_vec(&queue.order()).unwrap()).unwrap();
    let mut batches = Vec::new();
    while queue.has_ready() {
        batches.push(queue.take(5));
    }
    assert_eq!((batches.len(), queue.outstanding()), (4, 18));
    let begin = || -> Option<Box<dyn Fn() -> RunVerdict>> { Some(Box::new(|| RunVerdict::GoOn)) };
    for batch in batches.iter().rev() {
        for record in order.make(batch, &simulate, &begin).into_iter().rev() {
            assert!(queue.add(record.clone()).unwrap());
            assert!(!queue.add(record).unwrap(), "twice");
        }
    }
    assert!(queue.take(1).is_empty() && queue.outstanding() == 0);
    assert_eq!(queue.commit().unwrap(), StudyEnd { made: 18, ..StudyEnd::default() });
    assert_eq!(data(&there), data(&here));
}

/// Breaks: a killed process loses its runs, or a half-written one passes for a whole.
#[test]
fn a_killed_study_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(&[DELAYS], 1);
    make(&plan, dir.path(), 1);
    let whole = data(dir.path());
    let runs = StoredStudy::read(dir.path()).unwrap().records;
    let lines: Vec<String> = runs.iter().map(|r| serde_json::to_string(r).unwrap()).collect();
    std::fs::remove_file(dir.path().join("runs.parquet")).unwrap();
    std::fs::write(dir.path().join("journal"), format!("{}\n{}", lines[0], &lines[1][..40])).unwrap();
    assert_eq!(StoredStudy::read(dir.path()).unwrap().records.len(), 1);
    assert_eq!(make(&plan, dir.path(), 1).made, 2);
    assert_eq!(data(dir.path()), whole);
}

/// Breaks: a grown grid makes old runs again, or loses those that it no longer has.
#[test]
fn a_grown_grid_makes_only_what_is_new() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(make(&plan(&["links.wan.delay=5ms,10ms"], 2), dir.path(), 2).made, 4);
    let end = make(&plan(&[DELAYS], 3), dir.path(), 2);
    assert_eq!((end.made, end.reused), (5, 4));
    // Another axis: what stands in the scenario already is the same run.
    let more = plan(&[DELAYS, "links.wan.queue=30 kB,60 kB"], 3);
    let end = make(&more, dir.path(), 2);
    assert_eq!((end.made, end.reused), (9, 9));
    let stored = StoredStudy::read(dir.path()).unwrap();
    assert_eq!((stored.records.len(), stored.planned), (18, 18));
    assert!(stored.records.iter().all(|run| run.values.len() == 2));
    // A smaller one.
    assert_eq!(make(&plan(&["links.wan.delay=20ms"], 1), dir.path(), 2).made, 0);
    let stored = StoredStudy::read(dir.path()).unwrap();
    assert_eq!((stored.records.len(), stored.planned), (18, 1));
    assert_eq!(summarize(&stored, None).len(), 1);
}

/// Breaks: runs with the old contents of a file that a value names count in the mean of the new ones.
#[test]
fn runs_of_other_contents_are_superseded() {
    let dir = tempfile::tempdir().unwrap();
    let (name, folder) = ("small.toml".into(), dir.path().to_owned());
    let source = ScenarioSource { name, text: SCENARIO.into(), folder, set: Vec::new() };
    let vary = vec!["links.wan.forward.schedule={file=\"rate.csv\"}".to_owned()];
    let spec = PlanSpec { vary, seeds: 2, ..PlanSpec::default() };
    let plan_at = |rate: &str| {
        let text = format!("at,rate,delay\n0 s,20 Mbit/s,\n10 ms,{rate},\n");
        std::fs::write(dir.path().join("rate.csv"), text).unwrap();
        StudyPlan::new(source.clone(), spec.clone()).unwrap()
    };
    let [study, fresh] = ["study", "fresh"].map(|name| dir.path().join(name));
    make(&plan_at("15 Mbit/s"), &study, 1);
    let changed = plan_at("1 Mbit/s");
    assert_eq!(make(&changed, &study, 1).made, 2);
    make(&changed, &fresh, 1);
    assert_eq!(data(&study), data(&fresh));
    let older = dir.path().join("older");
    make(&plan_at("15 Mbit/s"), &older, 1);
    let error = merge(&[older, study], &dir.path().join("both")).unwrap_err().to_string();
    assert!(error.contains("with different controls or files"), "{error}");
}

/// Breaks: one run that panics, fails, takes too long or is impossible ends the study, or leaves no row.
#[test]
fn whatever_a_run_does_it_is_a_row() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(&["links.wan.delay=1ms,2ms,3ms,4ms"], 1);
    let behave = |scenario: &Scenario, seed: u64, verdict: &dyn Fn() -> RunVerdict| match delay(scenario) {
        1 => panic!("index {seed} out of bounds"),
        2 => Err(RunEnd::Failed("a packet is missing".into())),
        3 => simulate(scenario, seed, &|| RunVerdict::Overdue),
        _ => simulate(scenario, seed, verdict),
    };
    let bad = RunOptions { simulate: &behave, ..options(2) };
    let end = run(&plan, dir.path(), false, &bad, &Sink::new()).unwrap();
    assert_eq!(end.made, 4);
    let stored = StoredStudy::read(dir.path()).unwrap();
    let all: Vec<_> =
        stored.records.iter().map(|r| (r.status, r.reason.clone().unwrap_or_default())).collect();
    assert_eq!(all[0], (RunStatus::Crashed, "index 3 out of bounds".into()));
    assert_eq!(all[1], (RunStatus::Failed, "a packet is missing".into()));
    assert_eq!(all[2].0, RunStatus::Overdue);
    assert!(all[2].1.contains("of at most 5 s of virtual time"), "{all:?}");
    assert_eq!(all[3].0, RunStatus::Complete);
    // They are not made again, unless asked.
    assert_eq!(run(&plan, dir.path(), false, &options(1), &Sink::new()).unwrap().made, 0);
    let end = run(&plan, dir.path(), false, &RunOptions { retry: true, ..options(1) }, &Sink::new()).unwrap();
    assert_eq!((end.made, end.reused), (3, 1));
    assert!(StoredStudy::read(dir.path()).unwrap().records.iter().all(|r| r.status == RunStatus::Complete));
}

/// Breaks: values that are fine alone and impossible together end the study.
#[test]
fn impossible_combinations_are_refused_rows() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(&["duration=5 s,2 s", "flows.bulk.start=0 s,3 s"], 1);
    assert_eq!(make(&plan, dir.path(), 1).made, 4);
    let stored = StoredStudy::read(dir.path()).unwrap();
    let refused: Vec<_> = stored.records.iter().filter(|r| r.status == RunStatus::Refused).collect();
    assert_eq!(refused.len(), 1);
    assert!(refused[0].reason.as_ref().unwrap().contains("before this flow starts"), "{refused:?}");
}

/// Breaks: shards that leave runs out or share some, and a merged study that differs from one made at once.
#[test]
fn shards_make_the_whole() {
    let dir = tempfile::tempdir().unwrap();
    let (plan, study, whole) =
        (plan(&[DELAYS, CONTROLS], 3), dir.path().join("study"), dir.path().join("whole"));
    let mut made = 0;
    for number in 1..=3 {
        let shard = Shard { number, of: 3 };
        let folder = shard_folder(&study, shard);
        let options = RunOptions { shard: Some(shard), ..options(2) };
        made += run(&plan, &folder, false, &options, &Sink::new()).unwrap().made;
    }
    assert_eq!(made, 18);
    let first = StoredStudy::read(&shard_folder(&study, Shard { number: 1, of: 3 })).unwrap();
    assert_eq!((first.lacks(), first.missing_runs() > 0), (None, true));
    let merged = merge(std::slice::from_ref(&study), &study).unwrap();
    assert_eq!((merged.records.len(), merged.planned), (18, 18));
    assert_eq!((merged.planned_runs(), merged.missing_runs()), (18, 0));
    let one = shard_folder(&study, Shard { number: 1, of: 3 });
    let part = merge(std::slice::from_ref(&one), &dir.path().join("part")).unwrap();
    assert_eq!(part.missing_runs(), 18 - part.records.len() as u64);
    assert!(part.lacks().is_some());
    assert_eq!(json(&part, &summarize(&part, None))["missing_runs"], part.missing_runs());
    make(&plan, &whole, 2);
    assert_eq!(data(&study), data(&whole));
    // A merged study is one like any other.
    assert_eq!(make(&plan, &study, 1).made, 0);
    // Twice the same is no harm, another plan is.
    merge(&[study.clone(), whole.clone()], &dir.path().join("both")).unwrap();
    let other = dir.path().join("other");
    make(&crate::plan(&[DELAYS], 1), &other, 1);
    let error = merge(&[whole, other], &dir.path().join("never")).unwrap_err().to_string();
    assert!(error.contains("from another plan"), "{error}");
    assert!(!dir.path().join("never").exists());
}

/// Breaks: early stopping: points with little noise get all seeds, or noisy ones too few; or what is run
/// depends on threads.
#[test]
fn exact_points_get_no_more_seeds() {
    let dir = tempfile::tempdir().unwrap();
    let noisy = |scenario: &Scenario, seed: u64, _: &dyn Fn() -> RunVerdict| {
        let mut measured = simulate(scenario, seed, &|| RunVerdict::GoOn)?;
        let is_calm = delay(scenario) == 5;
        for flow in &mut measured.flows {
            flow.goodput_bit_s = if is_calm { 1_000_000 + seed } else { 1_000_000 * (1 + seed % 5) };
        }
        Ok::<Measurement, RunEnd>(measured)
    };
    let plan = with(&["links.wan.delay=5ms,10ms"], 20, |spec| spec.stop_at = Some(0.02)).unwrap();
    let [one, two] = ["one", "two"].map(|name| dir.path().join(name));
    let noisy = |threads| RunOptions { simulate: &noisy, ..options(threads) };
    let end = run(&plan, &one, false, &noisy(1), &Sink::new()).unwrap();
    assert_eq!((end.made, end.spared), (23, 17));
    run(&plan, &two, false, &noisy(3), &Sink::new()).unwrap();
    assert_eq!(data(&one), data(&two));
    let points = summarize(&StoredStudy::read(&one).unwrap(), None);
    assert_eq!((points[0].runs, points[1].runs), (3, 20));
    assert_eq!(StoredStudy::read(&one).unwrap().missing_runs(), 0, "spared runs are not missing");
}

/// Breaks: goodput above the rate of the line, as the sum of the rates of flows that send one after the
/// other.
#[test]
fn rates_of_different_times_do_not_add_up() {
    let dir = tempfile::tempdir().unwrap();
    let twice = |scenario: &Scenario, seed: u64, _: &dyn Fn() -> RunVerdict| {
        let mut measured = simulate(scenario, seed, &|| RunVerdict::GoOn)?;
        let mut later = measured.flows[0].clone();
        later.start_s += 2.0 * later.elapsed_s;
        measured.flows.push(later);
        Ok::<Measurement, RunEnd>(measured)
    };
    let plan = plan(&["links.wan.delay=5ms"], 1);
    let options = RunOptions { simulate: &twice, ..options(1) };
    run(&plan, dir.path(), false, &options, &Sink::new()).unwrap();
    let stored = StoredStudy::read(dir.path()).unwrap();
    let alone = stored.records[0].measured.flows[0].goodput_bit_s as f64 / 1e6;
    let goodput = json(&stored, &summarize(&stored, None))["points"][0]["goodput_mbit_s"]["mean"].as_f64();
    let share = goodput.unwrap() / alone;
    assert!((share - 2.0 / 3.0).abs() < 1e-3, "{share}");
}

/// Breaks: the mean completion time of the runs that completed passes for that of all.
#[test]
fn cut_runs_leave_no_completion_time() {
    let dir = tempfile::tempdir().unwrap();
    // Seeds 3 to 5, in two flows: the first one does not complete with seed 4, the second one with seed 5.
    let cut = |scenario: &Scenario, seed: u64, _: &dyn Fn() -> RunVerdict| {
        let mut measured = simulate(scenario, seed, &|| RunVerdict::GoOn)?;
        let mut second = measured.flows[0].clone();
        "second".clone_into(&mut second.flow);
        measured.flows.push(second);
        if let Some(flow) = seed.checked_sub(4).filter(|_| delay(scenario) == 5) {
            let flow = &mut measured.flows[flow as usize];
            (flow.completion_s, flow.intact) = (None, false);
        }
        Ok::<Measurement, RunEnd>(measured)
    };
    let plan = plan(&["links.wan.delay=5ms,10ms"], 3);
    run(&plan, dir.path(), false, &RunOptions { simulate: &cut, ..options(1) }, &Sink::new()).unwrap();
    let stored = StoredStudy::read(dir.path()).unwrap();
    let points = summarize(&stored, None);
    let counts: Vec<_> = points.iter().map(|p| (p.runs, p.complete)).collect();
    assert_eq!(counts, [(3, 1), (3, 3)]);
    let json = json(&stored, &points);
    let completion = |point: usize| &json["points"][point]["completion_s"];
    assert!(completion(0)["mean"].is_null() && completion(0)["ci95"].is_null(), "{json}");
    assert!(completion(1)["mean"].as_f64() > Some(0.0), "{json}");
    assert_eq!(json["points"][0]["complete_runs"], 1);
    assert!(json["points"][0]["goodput_mbit_s"]["mean"].is_number());
    let csv = csv_text(&stored, &points).unwrap();
    assert!(
        csv.lines().nth(1).is_some_and(|row| row.starts_with("5ms,3,1,0,") && row.contains(",,,")),
        "{csv}"
    );
    let note = cut_note(&points).unwrap();
    assert!(note.starts_with("2 of 6 runs did not deliver all data, at 1 of 2 points."), "{note}");
    let page = StudyPage::default().page(&stored, &points).unwrap().render();
    assert!(page.contains("2 of 6 runs did not deliver all data"));
    // Of one flow alone.
    let second = summarize(&stored, Some("second"));
    assert_eq!((second[0].runs, second[0].complete), (3, 2));
    assert_eq!(cut_note(&points[1..]), None);
}

/// Breaks: two sweeps write to one folder, or a folder of another version, another scenario or somebody else
/// is written to.
#[test]
fn foreign_folders_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let study = dir.path().join("study");
    let plan = plan(&[DELAYS], 1);
    make(&plan, &study, 1);
    let before = data(&study);
    let fails = |options: &RunOptions<'_>, plan: &StudyPlan, words: &str| {
        let error = run(plan, &study, false, options, &Sink::new()).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        assert_eq!(data(&study), before);
    };
    fails(
        &RunOptions { version: "other", ..options(1) },
        &plan,
        "was made by farpace test, and this is other",
    );
    let source =
        ScenarioSource { set: vec![("links.wan.rate".into(), "1 Mbit/s".into())], ..plan.source.clone() };
    let other = StudyPlan::new(source, plan.spec.clone()).unwrap();
    fails(&options(1), &other, "another scenario");
    let lock = std::fs::File::create(study.join(".lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
    fails(&options(1), &plan, "another sweep is writing");
    drop(lock);
    // --restart is the way out.
    let end = run(&other, &study, true, &options(1), &Sink::new()).unwrap();
    assert_eq!((end.made, StoredStudy::read(&study).unwrap().records.len()), (3, 3));
    let mine = dir.path().join("mine");
    std::fs::create_dir(&mine).unwrap();
    std::fs::write(mine.join("scenario.toml"), "x").unwrap();
    let error = run(&plan, &mine, false, &options(1), &Sink::new()).unwrap_err().to_string();
    assert!(error.contains("holds other files"), "{error}");
    assert_eq!(std::fs::read_dir(&mine).unwrap().count(), 1);
    assert_eq!(std::fs::read_to_string(mine.join("scenario.toml")).unwrap(), "x");
    assert!(StoredStudy::read(&mine).unwrap_err().to_string().contains("there is no study"));
    std::fs::write(study.join("study.json"), r#"{"format": "farpace-study/9"}"#).unwrap();
    assert!(StoredStudy::read(&study).unwrap_err().to_string().contains("this version reads"));
}

/// Breaks: words and comments of a scenario make all runs anew.
#[test]
fn words_change_no_run() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(&[DELAYS], 1);
    make(&plan, dir.path(), 1);
    let text = SCENARIO.replace("\"words\"", "\"other words\" # and a comment");
    let again = StudyPlan::new(ScenarioSource { text, ..plan.source.clone() }, plan.spec.clone()).unwrap();
    assert_eq!(make(&again, dir.path(), 1).made, 0);
}

/// Breaks: mistakes in a plan are found after hours, or not named.
#[test]
fn plans_are_checked_first() {
    let error = |vary: &[&str]| with(vary, 1, |_| {}).unwrap_err().to_string();
    let unknown = error(&["links.wan.dealy=1ms,2ms"]);
    assert!(
        unknown.contains("did you mean `delay`?") && unknown.contains("--vary links.wan.dealy=1ms"),
        "{unknown}"
    );
    assert!(error(&["flows.bluk.size=1 MB"]).contains("did you mean `bulk`?"));
    let late = error(&["links.wan.delay=1ms,2ms,3 parsecs"]);
    assert!(late.contains("parsecs"), "{late}");
    for (equals, said) in [
        ("links.wan.delay=25ms,5ms..45ms*3", "25ms and 25 ms are the same value"),
        ("links.wan.delay=5ms,0.005s", "5ms and 0.005s are the same value"),
        ("links.wan.forward.loss=0,0.0", "0 and 0.0 are the same value"),
        ("flows.bulk.sender.congestion=cubic,reno,\"cubic\"", "cubic and \"cubic\" are the same value"),
        ("links.wan.forward={loss=0.1},{ loss = 1e-1 }", "are the same value"),
    ] {
        assert!(
            error(&[CONTROLS, equals][usize::from(equals.starts_with("flows"))..]).contains(said),
            "{said}"
        );
    }
    let sampled = with(&["links.wan.delay=5ms,0.005s"], 1, |s| s.samples = Some("sobol:8".into()));
    assert!(sampled.unwrap_err().to_string().contains("the same value"));
    assert!(error(&["links.wan.delay=1ms..5ms*0"]).contains("0 values"));
    for second in ["links.wan.delay=3ms", "links.*.delay=3ms"] {
        let twice = error(&["links.0.delay=1ms,2ms", second]);
        assert!(twice.contains("the same key under two names"), "{twice}");
    }
    assert!(error(&["flows.0.sender.congestion=reno", "flows.0.sender={}"]).contains("the same key"));
    assert!(with(&[], 0, |_| {}).unwrap_err().to_string().contains("--seeds"));
    assert!(with(&[], 1, |s| s.stop_at = Some(1.5)).unwrap_err().to_string().contains("--stop-at"));
    let huge = plan(&["duration=1..1000 s*1000", "links.wan.delay=1..1000 us*1000"], 1000);
    assert_eq!(huge.runs(), 1_000_000_000);
    let dir = tempfile::tempdir().unwrap();
    let error = run(&huge, &dir.path().join("x"), false, &options(1), &Sink::new()).unwrap_err().to_string();
    assert!(error.contains("1000000000 runs; the limit is 1000000"), "{error}");
}

/// Breaks: samples of a study, their figures, and tables for other programs.
#[test]
fn samples_and_tables() {
    let dir = tempfile::tempdir().unwrap();
    let vary = &["links.wan.delay=1ms..50ms*log", "links.wan.rate=5..50 Mbit/s"];
    let sampled = with(vary, 1, |spec| spec.samples = Some("sobol:6".into())).unwrap();
    assert_eq!(make(&sampled, dir.path(), 2).made, 6);
    let stored = StoredStudy::read(dir.path()).unwrap();
    let points = summarize(&stored, None);
    assert_eq!((stored.planned, points.len()), (6, 6));
    let page = StudyPage::default().page(&stored, &points).unwrap();
    assert!(page.figures().count() >= 4);
    let csv = csv_text(&stored, &points).unwrap();
    assert!(
        csv.starts_with(
            "links.wan.delay,links.wan.rate,runs,complete_runs,bad,goodput_mbit_s,goodput_mbit_s_ci95,"
        ),
        "{csv}"
    );
    assert_eq!(csv.lines().count(), 7);
    let json = json(&stored, &points);
    assert_eq!(json["points"][0]["runs"], 1);
    assert_eq!(json["status"]["complete"], 6);
    // Six more make six, not twelve.
    let more = with(vary, 1, |spec| spec.samples = Some("sobol:12".into())).unwrap();
    let end = make(&more, dir.path(), 2);
    assert_eq!((end.made, end.reused), (6, 6));
}

/// Breaks: the figures of samples: algorithms have no colour of their own, logarithmic ranges are drawn on a
/// linear axis, points beyond the 200th are missing, or `x` is ignored.
#[test]
fn figures_of_samples_show_every_point_and_word() {
    let dir = tempfile::tempdir().unwrap();
    let vary = &["links.wan.delay=1ms..50ms*log", "links.wan.rate=5..50 Mbit/s", CONTROLS];
    let sampled = with(vary, 1, |spec| spec.samples = Some("lhs:220".into())).unwrap();
    make(&sampled, dir.path(), 2);
    let stored = StoredStudy::read(dir.path()).unwrap();
    let points = summarize(&stored, None);
    let x = Some("links.wan.delay".to_owned());
    let metrics = vec![farpace_study::Metric::Goodput];
    let page = StudyPage { x, metrics: metrics.clone(), series: None }.page(&stored, &points).unwrap();
    let figures: Vec<_> = page.figures().collect();
    assert_eq!(figures.len(), 1, "only the chosen axis");
    let svg = &figures[0].svg;
    assert_eq!(svg.matches("<circle ").count(), 220);
    assert!(svg.contains(">cubic<") && svg.contains(">reno<"), "a legend of the words");
    assert!(svg.contains(">0.002<") && svg.contains(">0.02<"), "ticks of a logarithmic axis");
    assert!(page.render().contains("Each colour is a value of flows.*.sender.congestion."));
}

/// Breaks: a field of a map has the value of another point, or a point that was not run has one.
#[test]
fn fields_of_a_map_are_those_of_their_points() {
    let dir = tempfile::tempdir().unwrap();
    make(&plan(&[DELAYS, "links.wan.queue=30 kB,60 kB", "links.wan.rate=5Mbit/s,9Mbit/s"], 1), dir.path(), 2);
    let stored = StoredStudy::read(dir.path()).unwrap();
    let mut points = summarize(&stored, None);
    points.iter_mut().zip(1u32..).for_each(|(point, n)| point.metrics[0].mean = f64::from(n) * 100.0);
    points.remove(3);
    let layout = StudyPage {
        x: Some("links.wan.rate".into()),
        series: Some("links.wan.queue".into()),
        metrics: vec![farpace_study::Metric::Goodput],
    };
    let page = layout.page(&stored, &points).unwrap();
    let map = |name: &str| page.figures().find(|f| f.file_name.contains(name)).unwrap().svg.clone();
    // Rows are delays; the maps are those of the two queues. The last axis changes fastest.
    for (text, first, second) in [
        ("5ms, 5Mbit/s: ", "100", "300"),
        ("5ms, 9Mbit/s: ", "200", ""),
        ("20ms, 9Mbit/s: ", "1,000", "1,200"),
    ] {
        for (name, value) in [("goodput-map-1.svg", first), ("goodput-map-2.svg", second)] {
            let svg = map(name);
            let found = svg.split_once(text).and_then(|(_, rest)| rest.split('<').next()).unwrap_or_default();
            assert_eq!(found.replace(',', ""), value.replace(',', ""), "{text} in {name}");
        }
    }
}

/// Breaks: a figure leaves values of an axis out and does not say so.
#[test]
fn captions_name_what_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    make(&plan(&["links.wan.delay=1ms..45ms*45"], 1), dir.path(), 2);
    let stored = StoredStudy::read(dir.path()).unwrap();
    let page = StudyPage::default().page(&stored, &summarize(&stored, None)).unwrap().render();
    assert!(page.contains("These are the first 40 of 45 values of links.wan.delay."), "{page}");
    assert!(page.contains("45 runs at 45 points"), "{page}");
}

/// Breaks: the figures of a study: a panel for each combination, a curve for each word, a map for two axes of
/// numbers.
#[test]
fn figures_follow_the_axes() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(&[DELAYS, CONTROLS, "links.wan.queue=30 kB,60 kB"], 2);
    make(&plan, dir.path(), 2);
    let stored = StoredStudy::read(dir.path()).unwrap();
    let points = summarize(&stored, Some("bulk"));
    let goodput = StudyPage { metrics: vec![farpace_study::Metric::Goodput], ..StudyPage::default() };
    let page = goodput.page(&stored, &points).unwrap();
    let titles: Vec<String> = page.figures().map(|f| f.file_name.clone()).collect();
    let maps = titles.iter().filter(|name| name.contains("map") && !name.contains("interval")).count();
    assert_eq!(titles.iter().filter(|name| !name.contains("map")).count(), 2, "two queues: {titles:?}");
    assert_eq!(maps, 2, "two controls: {titles:?}");
    assert!(page.figures().next().unwrap().svg.contains("reno"));
    let wrong = StudyPage { x: Some("links.wan.rate".into()), ..StudyPage::default() };
    assert!(wrong.page(&stored, &points).unwrap_err().to_string().contains("is not varied"));
    let delay = Some("links.wan.delay".to_owned());
    let twice = StudyPage { x: delay.clone(), series: delay, ..StudyPage::default() };
    assert!(twice.page(&stored, &points).unwrap_err().to_string().contains("--x and --series are both"));
    assert!(summarize(&stored, Some("nobody"))[0].metrics[0].mean.is_nan());
}
