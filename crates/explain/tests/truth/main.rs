//! Verdicts on captures of the lab against what the lab knows.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod generator;
mod idle;
mod losses;
mod programs;
mod truth;
mod varying;
mod written;

use farpace_events::{Record, RecordDirection, RecordSink};
use farpace_explain::cause::{Cause, Kind};
use farpace_explain::flow::Side;
use farpace_explain::input::RecordFollower;
use farpace_explain::{Diagnosis, diagnose, input};
use farpace_lab::{Inputs, Run};
use farpace_units::{Instant, Span};
use std::collections::BTreeMap;
use std::path::Path;
use truth::Truth;

/// Places of captures.
const PLACES: [&str; 3] = ["a", "middle", "b"];

/// A case that was run, with the verdicts.
struct Judged {
    case: generator::Case,
    truth: Truth,
    verdicts: Vec<Diagnosis>,
    /// The verdict on the sender's own records.
    by_records: Diagnosis,
    /// Whether each capture has more than one SYN of a side.
    syns: Vec<bool>,
}

impl Judged {
    /// The verdict on the sender's own records names the dominant cause, or one that weighs nearly the same.
    fn is_right_by_records(&self) -> bool {
        let (expected, share) = self.truth.dominant();
        let found = self.by_records.dominant;
        // Records tell neither of the scale of windows nor of what happens below TCP.
        let alike = [
            (Cause::ReceiverApplication, Cause::ZeroWindow),
            (Cause::WindowScale, Cause::ReceiveWindow),
            (Cause::SenderProcessor, Cause::Congestion),
        ];
        let closed = alike.contains(&(expected, found));
        share >= 0.5
            && (found == expected || closed || self.truth.of(found) * 4 >= self.truth.of(expected) * 3)
    }

    /// No fault was put in, and none took a hundredth of the time.
    fn is_without_fault(&self) -> bool {
        let faults = self.truth.times.iter().filter(|(cause, _)| cause.info().kind == Kind::Fault);
        let time = faults.fold(Span::ZERO, |sum, (_, time)| sum + *time);
        self.case.causes.iter().all(|cause| cause.info().kind != Kind::Fault)
            && time * 100 <= self.truth.total
    }
}

/// What a run of a case shows.
struct Ran {
    truth: Truth,
    end: f64,
    by_records: Diagnosis,
}

fn run(case: &generator::Case, directory: &Path, completed: Option<f64>) -> Option<Ran> {
    let scenario = generator::scenario(case, completed);
    let mut run = Run::new(&scenario, Inputs { records: true, ..Inputs::default() }).unwrap();
    run.capture_into(directory).unwrap();
    let mut records: Vec<Record> = Vec::new();
    let mut queue: Vec<(Instant, Span)> = Vec::new();
    loop {
        let progress = run.advance(Some(&mut records)).unwrap();
        queue.push((run.now(), run.queueing_delay(0)));
        if progress.finished || run.is_done(0) {
            break;
        }
    }
    // What is under way still arrives.
    for _ in 0..200 {
        run.advance(Some(&mut records)).unwrap();
    }
    let outcome = run.finish().unwrap();
    let mut follower = RecordFollower::default();
    records.iter().for_each(|record| follower.record(record));
    records.retain(|r| r.connection == 0);
    let end = outcome.flows[0].completed.map(|t| t.as_secs_f64());
    if records.iter().all(|r| r.len.is_zero()) {
        return None;
    }
    let drops = truth::drops(&directory.join("drops.pcapng"));
    let sent = records.iter().filter(|r| r.direction == RecordDirection::Sent);
    let mss = sent.map(|r| r.len.get() as u32).max().unwrap();
    let window = records.iter().map(|r| r.rwnd.get()).max().unwrap();
    let seen = truth::Seen { window, case, records: &records, drops: &drops, queue: &queue, mss };
    let followed = follower.finish().flows;
    let first = followed.iter().find(|flow| RecordFollower::connection(flow) == Some(0))?;
    let by_records = diagnose(first, Side::Client);
    Some(Ran { truth: truth::truth(&seen), end: end.unwrap_or(300.0), by_records })
}

fn judge(seed: u64) -> Option<Judged> {
    judge_without(generator::case(seed), number("FARPACE_CUT", 0))
}

/// The same network with a receiver that does not compress SACKs.
fn without_compression(case: generator::Case) -> generator::Case {
    const RECEIVER: &str = "[flows.receiver]\nprofile = \"linux\"\n";
    assert!(case.toml.contains(RECEIVER), "{}", case.toml);
    let toml = case.toml.replace(RECEIVER, &format!("{RECEIVER}delayed_ack = \"linux-4.17\"\n"));
    generator::Case { toml, ..case }
}

/// A pcapng capture without its first packets.
fn without_first(capture: &[u8], mut packets: u64) -> Vec<u8> {
    const PACKET: u32 = 6;
    let word = |at: usize| u32::from_le_bytes(capture[at..at + 4].try_into().unwrap());
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < capture.len() {
        let to = at + word(at + 4) as usize;
        if word(at) == PACKET && packets > 0 {
            packets -= 1;
        } else {
            kept.extend_from_slice(&capture[at..to]);
        }
        at = to;
    }
    kept
}

/// The same as if the first packets had been missed.
fn judge_without(case: generator::Case, without: u64) -> Option<Judged> {
    let directory = tempfile::tempdir().unwrap();
    let mut ran = run(&case, directory.path(), None)?;
    if case.causes.contains(&Cause::TailLoss) {
        ran = run(&case, directory.path(), Some(ran.end))?;
    }
    let mut syns = Vec::new();
    let verdicts = PLACES
        .iter()
        .map(|place| -> Option<Diagnosis> {
            let name = match *place {
                "middle" => format!("wan.{}.pcapng", case.middle),
                host => format!("{host}.pcapng"),
            };
            let all = std::fs::read(directory.path().join(name)).unwrap();
            let kept = without_first(&all, without);
            let (input, _) = input::open(kept.as_slice()).unwrap();
            let capture = input::read(input).unwrap();
            let flow = capture.flows.iter().find(|f| f.ends.iter().any(|end| end.port() == truth::PORT))?;
            syns.push(flow.hello.iter().any(|h| h.count > 1));
            let sender = if without == 0 { Side::Client } else { flow.sender() };
            Some(diagnose(flow, sender))
        })
        .collect::<Option<_>>()?;
    let Ran { truth, by_records, .. } = ran;
    Some(Judged { case, truth, verdicts, by_records, syns })
}

/// The dominant cause in a capture of one connection.
fn diagnosed(capture: &Path) -> Cause {
    let (input, _) = input::open(std::fs::File::open(capture).unwrap()).unwrap();
    let capture = input::read(input).unwrap();
    diagnose(&capture.flows[0], Side::Client).dominant
}

/// How many were right, of how many.
#[derive(Clone, Copy, Default)]
struct Score {
    right: u32,
    all: u32,
}

impl Score {
    fn add(&mut self, right: bool) {
        self.right += u32::from(right);
        self.all += 1;
    }

    fn share(self) -> f64 {
        f64::from(self.right) / f64::from(self.all.max(1))
    }
}

/// What came out of many cases.
#[derive(Default)]
struct Scores {
    places: [Score; 3],
    /// The same on the sender's own records.
    records: Score,
    causes: BTreeMap<Cause, [Score; 3]>,
    confusion: BTreeMap<(&'static str, Cause, Cause), u32>,
    /// Healthy transfers that were taken for such.
    healthy: Score,
    /// Times of the dominant cause within a tenth of the whole.
    times: Score,
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

/// Runs some cases and compares.
fn judged(cases: Vec<generator::Case>) -> Scores {
    let without = number("FARPACE_CUT", 0);
    let mut cases = cases;
    let rest = cases.split_off(cases.len() / 2);
    let judge = |half: Vec<generator::Case>| -> Vec<Judged> {
        half.into_iter().filter_map(|case| judge_without(case, without)).collect()
    };
    let mut scores = Scores::default();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| judge(rest));
        judge(cases).iter().for_each(|judged| scores.take(judged));
        other.join().unwrap().iter().for_each(|judged| scores.take(judged));
    });
    println!("{}", scores.table());
    scores
}

/// The seeds of a test that has so many cases in `make test`.
fn seeds(cases: u64) -> std::ops::Range<u64> {
    let (cases, from) = (number("FARPACE_CASES", cases), number("FARPACE_FROM", 0));
    from..from + cases
}

/// Breaks: verdicts that can be trusted. Each case is a random network with causes that are known, captured
/// at the sender, between, and at the receiver; the lab's own records say where the time went.
#[test]
fn verdicts_agree_with_the_lab() {
    let scores = judged(seeds(200).map(generator::case).collect());
    let [sender, middle, receiver] = scores.places.map(Score::share);
    assert!(sender >= 0.88, "at the sender {:.1} % are right", sender * 100.0);
    assert!(middle >= 0.85, "between the ends {:.1} % are right", middle * 100.0);
    assert!(receiver >= 0.84, "at the receiver {:.1} % are right", receiver * 100.0);
    // Of thousands it is 98.7 %; these are some 160 captures.
    assert!(
        scores.healthy.share() >= 0.96,
        "{:.1} % of healthy ones are healthy",
        scores.healthy.share() * 100.0
    );
    assert!(scores.times.share() >= 0.6, "{:.1} % of the times are right", scores.times.share() * 100.0);
}

/// Breaks: verdicts on programs that ask, pause, pace or read slowly, on paths whose rate changes, and on
/// flows that share a queue or a policer.
#[test]
fn verdicts_on_programs_agree_with_the_lab() {
    let scores = judged(seeds(100).map(programs::case).collect());
    for (place, score) in PLACES.iter().zip(scores.places) {
        assert!(score.share() >= 0.85, "seen from {place}, {:.1} % are right", score.share() * 100.0);
    }
    assert!(scores.healthy.share() >= 0.95, "{:.1} % are healthy", scores.healthy.share() * 100.0);
}

/// Breaks: a path whose rate changes all the time counts as full only while it has its best rate, and what
/// its queues drop passes for a policer or for chance. The same with the sender's own records.
#[test]
fn verdicts_on_rates_that_vary_agree_with_the_lab() {
    let scores = judged(seeds(60).map(varying::case).collect());
    for (place, score) in PLACES.iter().zip(scores.places) {
        assert!(score.share() >= 0.9, "seen from {place}, {:.1} % are right", score.share() * 100.0);
    }
    assert!(scores.records.share() >= 0.9, "by records {:.1} % are right", scores.records.share() * 100.0);
    assert!(scores.healthy.share() >= 0.95, "{:.1} % are healthy", scores.healthy.share() * 100.0);
}

/// Breaks: a pause of the path while the receive window is full counts for the window.
#[test]
fn a_full_window_is_acknowledged_in_time() {
    let verdicts = judge(822343).unwrap().verdicts;
    assert_eq!(verdicts[1].dominant, Cause::SpuriousTimeout);
    assert_eq!(verdicts[2].dominant, Cause::SpuriousTimeout);
}

/// Breaks: without the handshake the first round trip, of which nothing is known then, is a pause of the
/// path, or a program that pauses is held back by a window of unknown scale.
#[test]
fn healthy_transfers_are_healthy_without_the_handshake() {
    for (seed, places) in [(710166, 0..3), (710054, 0..3), (710238, 0..3), (710010, 1..3)] {
        let verdicts = judge_without(programs::case(seed), 6).unwrap().verdicts;
        for place in places {
            assert!(verdicts[place].healthy, "seed {seed}, seen from {}", PLACES[place]);
        }
    }
}

/// Breaks: the segment before a run of losses has an ACK that the receiver would have delayed, and that comes
/// behind the run: its round trip passes for a queue, and the run for a full path.
#[test]
fn an_ack_that_waits_for_the_end_of_a_run_is_no_queue() {
    for (seed, place, cause) in [
        (800451, 0, Cause::BurstLoss),
        (801151, 0, Cause::BurstLoss),
        (800350, 1, Cause::RandomLoss),
        (801090, 1, Cause::RandomLoss),
    ] {
        assert_eq!(judge(seed).unwrap().verdicts[place].dominant, cause, "seed {seed}");
    }
}

/// Breaks: runs of losses that last longer than a bucket, or a full queue, takes to have room for a segment
/// again pass for a policer or a small queue.
#[test]
fn runs_that_outlast_a_bucket_are_bursts() {
    for seed in [801231, 801391] {
        assert_eq!(judge(seed).unwrap().verdicts[0].dominant, Cause::BurstLoss, "seed {seed}");
    }
}

/// Breaks: losses at the beginning of bursts, or while others wait longer, pass for those of a queue, because
/// they lie near the beginning of the transfer or beside a start that overflowed one.
#[test]
fn losses_while_others_wait_longer_are_no_queue() {
    for (seed, place) in [(801370, 0), (801290, 0), (800228, 0)] {
        assert_eq!(judge(seed).unwrap().verdicts[place].dominant, Cause::RandomLoss, "seed {seed}");
    }
}

/// Breaks: losses of a queue that delays the same at each of them, and most when it drops, fit a bucket.
#[test]
fn a_queue_that_is_full_at_each_loss_is_no_policer() {
    let verdicts = judge_without(programs::case(800424), 0).unwrap().verdicts;
    assert_eq!(verdicts[0].dominant, Cause::SmallQueue);
}

/// Breaks: after a loss all the rest counts for it, although the flight is soon as large again as the send
/// buffer allows, and no larger.
#[test]
fn a_send_buffer_bounds_again_after_losses() {
    for seed in [800105, 801065] {
        assert_eq!(judge(seed).unwrap().verdicts[0].dominant, Cause::SendBuffer, "seed {seed}");
    }
}

/// Breaks: behind a slow line, which spreads what an ACK released at once, a send buffer passes for a program
/// that has its own clock.
#[test]
fn what_a_slow_line_spreads_left_at_once() {
    for (seed, place) in [(800285, 2), (801185, 2), (801445, 1), (801445, 2)] {
        let verdict = &judge(seed).unwrap().verdicts[place];
        assert_eq!(verdict.dominant, Cause::SendBuffer, "seed {seed}, seen from {}", PLACES[place]);
    }
}

/// Breaks: a receive window that is about to grow, of which only the last ACKs may tell, is a small one.
#[test]
fn a_window_that_grows_at_the_end_is_a_part_of_the_start() {
    for (seed, place) in [(800041, 0), (800607, 2), (801201, 0), (801201, 2), (801421, 2)] {
        let verdict = &judge(seed).unwrap().verdicts[place];
        assert!(verdict.healthy, "seed {seed}, seen from {}", PLACES[place]);
    }
}

/// Breaks: before a round trip is known, each pause of a program is a timer's; or without the handshake the
/// ends of writes, behind which there is room, fill a window of unknown scale.
#[test]
fn programs_that_write_little_are_healthy_without_the_handshake() {
    for seed in [800106, 800314, 800362, 800176, 800240, 800264, 800322] {
        for (place, verdict) in PLACES.iter().zip(judge_without(programs::case(seed), 6).unwrap().verdicts) {
            assert!(verdict.healthy, "seed {seed}, seen from {place}");
        }
    }
}

/// Breaks: a program that stops again and again, and reads at once in between, counts for all the time in
/// which its window is full, although the window is small also while it reads.
#[test]
fn a_small_window_bounds_while_its_program_reads() {
    for seed in [300283, 300483, 300963, 301091] {
        for (place, verdict) in PLACES.iter().zip(judge_without(programs::case(seed), 0).unwrap().verdicts) {
            assert_eq!(verdict.dominant, Cause::ReceiveWindow, "seed {seed}, seen from {place}");
            assert!(!verdict.time_of(Cause::ReceiverApplication).is_zero(), "seed {seed}, seen from {place}");
        }
    }
}

/// Breaks: a receiver that reads at once, but a segment later than it acknowledges, is slow, although its
/// window stays as large as ever.
#[test]
fn a_window_that_stays_whole_has_been_read() {
    for seed in [862323, 862723, 864383, 865163, 865363, 865603] {
        for (place, verdict) in PLACES.iter().zip(&judge(seed).unwrap().verdicts) {
            assert_eq!(verdict.dominant, Cause::ReceiveWindow, "seed {seed}, seen from {place}");
        }
    }
}

/// Breaks: all pauses of a program that writes at a period are pauses of the path because it paused in one of
/// them.
#[test]
fn a_pause_of_the_path_does_not_spread_over_periods() {
    for seed in [864761, 865657] {
        assert_eq!(judge(seed).unwrap().verdicts[0].dominant, Cause::SenderApplication, "seed {seed}");
    }
}

/// Breaks: a congestion window that grows slowly, as after a start that ended early, passes for a send
/// buffer.
#[test]
fn a_flight_that_grows_slowly_is_no_buffer() {
    for seed in [300277, 300421, 300768, 300821, 301073] {
        for (place, verdict) in PLACES.iter().zip(judge_without(programs::case(seed), 0).unwrap().verdicts) {
            assert!(verdict.healthy, "seed {seed}, seen from {place}");
        }
    }
}

/// Breaks: BBR takes a small window for what the path holds, and fills it only when it probes for more: the
/// rest of the time counts for the sender's program.
#[test]
fn a_window_that_bbr_fills_now_and_then_bounds_it() {
    let verdicts = judge_without(programs::case(300251), 0).unwrap().verdicts;
    assert_eq!(verdicts[2].dominant, Cause::ReceiveWindow);
}

/// Breaks: the losses of a queue fit a deep bucket once the path has another rate.
#[test]
fn a_full_path_whose_rate_steps_is_no_policer() {
    for seed in [60109, 60221, 60445] {
        for (place, verdict) in PLACES.iter().zip(judge_without(programs::case(seed), 0).unwrap().verdicts) {
            assert_eq!(verdict.dominant, Cause::Congestion, "seed {seed}, seen from {place}");
        }
    }
}

/// Breaks: small writes at a period that divides the round trip keep the flight constant, and pass for a send
/// buffer.
#[test]
fn small_writes_in_step_with_acks_are_a_program() {
    for seed in [60050, 60322, 60506] {
        for (place, verdict) in PLACES.iter().zip(judge_without(programs::case(seed), 0).unwrap().verdicts) {
            assert_eq!(verdict.dominant, Cause::SenderApplication, "seed {seed}, seen from {place}");
        }
    }
}

/// Breaks: an outage of both directions is taken for bursts of losses, because the beginning of the flight
/// had arrived.
#[test]
fn outages_of_both_directions_are_found() {
    for seed in [60312, 60993, 61503, 62352] {
        let judged = judge(seed).unwrap();
        assert!(judged.case.causes.contains(&Cause::Outage), "seed {seed}");
        assert_eq!(judged.verdicts[0].dominant, Cause::Outage, "seed {seed}");
    }
}

/// Breaks: behind an outage, where no retransmission is seen that was lost in it, the silence counts for the
/// full queue before it.
#[test]
fn outages_are_found_at_the_receiver() {
    for seed in [60072, 61172] {
        let judged = judge(seed).unwrap();
        assert!(judged.case.causes.contains(&Cause::Outage), "seed {seed}");
        assert_eq!(judged.verdicts[2].dominant, Cause::Outage, "seed {seed}");
    }
}

/// Breaks: a silence in which the copies of several timers were lost, and ends with one that was not needed
/// because ACKs were lost as well, passes for a pause of the path.
#[test]
fn an_outage_of_both_directions_may_end_with_a_needless_copy() {
    for seed in [840792, 841052] {
        let judged = judge(seed).unwrap();
        assert!(judged.case.causes.contains(&Cause::Outage), "seed {seed}");
        for (place, verdict) in PLACES.iter().zip(&judged.verdicts) {
            assert_eq!(verdict.dominant, Cause::Outage, "seed {seed}, seen from {place}");
        }
    }
}

/// Breaks: a sender that keeps the path full with hardly a queue, as control `farpace` does, passes for one
/// that its send buffer holds back; a window that is autotuned passes for a program that reads slowly; or
/// the control is not recognised by its start.
#[test]
fn a_path_that_is_kept_full_without_a_queue_is_healthy() {
    for seed in [60028, 60292, 60329, 60400, 60407] {
        let judged = judge(seed).unwrap();
        assert!(judged.case.toml.contains("profile = \"farpace\""), "seed {seed}");
        for (place, verdict) in PLACES.iter().zip(&judged.verdicts) {
            assert_eq!(verdict.dominant, Cause::Congestion, "seed {seed}, seen from {place}");
            assert!(verdict.healthy, "seed {seed}, seen from {place}");
            assert_eq!(verdict.control.name, "farpace", "seed {seed}, seen from {place}");
        }
    }
}

/// Breaks: behind a black hole, the silence after the ends of segments that were cut, and are still too long,
/// counts for short queues.
#[test]
fn a_black_hole_is_found_behind_the_path() {
    for seed in [60079, 60219, 60459, 60519] {
        let judged = judge(seed).unwrap();
        assert!(judged.case.causes.contains(&Cause::MtuBlackHole), "seed {seed}");
        for (place, verdict) in PLACES.iter().zip(&judged.verdicts) {
            assert_eq!(verdict.dominant, Cause::MtuBlackHole, "seed {seed}, seen from {place}");
        }
    }
}

/// Breaks: a capture that begins in the middle of a connection tells nothing, because windows of unknown
/// scale are taken for tiny. What only the handshake shows is left out.
#[test]
fn captures_without_the_handshake_are_understood() {
    const SYNS_AND_FIRST_DATA: u64 = 6;
    let hidden = [Cause::WindowScale, Cause::MtuBlackHole, Cause::SynLoss];
    let mut scores = Scores::default();
    for seed in 60000..60120 {
        let case = generator::case(seed);
        if !case.causes.iter().any(|cause| hidden.contains(cause)) {
            judge_without(case, SYNS_AND_FIRST_DATA).iter().for_each(|judged| scores.take(judged));
        }
    }
    println!("{}", scores.table());
    for (place, score) in PLACES.iter().zip(scores.places) {
        assert!(score.share() >= 0.85, "seen from {place}, {:.1} % are right", score.share() * 100.0);
    }
    assert!(scores.healthy.share() >= 0.95, "{:.1} % are healthy", scores.healthy.share() * 100.0);
}

/// Breaks: without the handshake, messages of one size count as full segments, and windows of unknown scale
/// as full: a program that writes little passes for a window or a send buffer.
#[test]
fn messages_are_a_program_without_the_handshake() {
    for seed in [70026, 70122, 70154, 70226] {
        let verdicts = judge_without(programs::case(seed), 6).unwrap().verdicts;
        for (place, verdict) in PLACES.iter().zip(&verdicts) {
            assert_eq!(verdict.dominant, Cause::SenderApplication, "seed {seed}, seen from {place}");
        }
    }
}

/// Breaks: an ACK that was delayed, and is still on its way to the sender, passes for what released a
/// segment; or a queue behind which the capture was taken passes for a short one.
#[test]
fn healthy_transfers_are_healthy_behind_the_path() {
    for seed in [60302, 60583, 60134, 61198] {
        let judged = judge(seed).unwrap();
        assert!(judged.case.causes.is_empty(), "seed {seed}");
        assert!(judged.verdicts.iter().all(|verdict| verdict.healthy), "seed {seed}");
    }
}

/// Breaks: all losses after a black hole was found and avoided count as its losses.
#[test]
fn a_black_hole_ends() {
    for seed in [60659, 60879] {
        let judged = judge(seed).unwrap();
        assert!(judged.case.causes.contains(&Cause::MtuBlackHole), "seed {seed}");
        for verdict in &judged.verdicts {
            assert_eq!(verdict.dominant, Cause::RandomLoss, "seed {seed}");
            assert!(!verdict.time_of(Cause::MtuBlackHole).is_zero(), "seed {seed}");
        }
    }
}

impl Scores {
    fn take(&mut self, judged: &Judged) {
        let verbose = std::env::var_os("FARPACE_VERBOSE").is_some();
        let seed = judged.case.seed;
        self.records.all += u32::from(judged.truth.dominant().1 >= 0.5);
        self.records.right += u32::from(judged.is_right_by_records());
        if verbose && judged.truth.dominant().1 >= 0.5 && !judged.is_right_by_records() {
            let found = &judged.by_records.shares;
            println!("{seed} records: truth {:?}, found {found:?}", judged.truth.times);
        }
        for (place, v) in judged.verdicts.iter().enumerate() {
            if judged.is_without_fault() {
                self.healthy.add(v.healthy);
                if verbose && !v.healthy {
                    let found: Vec<_> = v.findings.iter().map(|f| (f.cause.id(), f.time)).collect();
                    println!("{seed} {}: healthy, taken for {found:?}", PLACES[place]);
                }
            }
            // What was lost before the capture leaves no trace in it: there the transfer begins later.
            let mut truth = judged.truth.clone();
            if !judged.syns[place] {
                truth.remove(Cause::SynLoss);
            }
            let (expected, share) = truth.dominant();
            if share < 0.5 {
                continue;
            }
            // Behind the sender, a queue in its host looks like one on the path.
            let host = place > 0 && expected == Cause::SenderProcessor && v.dominant == Cause::Congestion;
            // A program that stops reading closes the window.
            let closed = expected == Cause::ReceiverApplication && v.dominant == Cause::ZeroWindow;
            let alike = host || closed;
            // Where two causes weigh nearly the same, either is right.
            let close = truth.of(v.dominant) * 4 >= truth.of(expected) * 3;
            let good = v.dominant == expected || alike || close;
            self.places[place].add(good);
            self.causes.entry(expected).or_default()[place].add(good);
            let own = v.time_of(expected) + if alike { v.time_of(v.dominant) } else { Span::ZERO };
            let error =
                (own.as_secs_f64() - truth.of(expected).as_secs_f64()).abs() / truth.total.as_secs_f64();
            self.times.add(error <= 0.1);
            if !good {
                *self.confusion.entry((PLACES[place], expected, v.dominant)).or_default() += 1;
                if verbose {
                    println!(
                        "{seed} {}: {} ({:.0} %), taken for {}",
                        PLACES[place],
                        expected.id(),
                        share * 100.0,
                        v.dominant.id()
                    );
                    println!("  put in {:?}; truth {:?}", judged.case.causes, truth.times);
                    let found: Vec<_> =
                        Cause::ALL.iter().map(|c| (c, v.time_of(*c))).filter(|t| !t.1.is_zero()).collect();
                    println!("  found {found:?}");
                    if number("FARPACE_CASES", 300) == 1 {
                        println!("{}", judged.case.toml);
                    }
                }
            }
        }
    }

    /// In Markdown, for docs/explain.md.
    fn table(&self) -> String {
        let mut text = String::from(
            "| dominant cause | sender | between | receiver | taken for |\n|---|---|---|---|---|\n",
        );
        for (cause, places) in &self.causes {
            let shares: Vec<String> =
                places.iter().map(|s| format!("{:.0} % of {}", s.share() * 100.0, s.all)).collect();
            let mut wrong: BTreeMap<Cause, u32> = BTreeMap::new();
            for ((_, expected, got), n) in &self.confusion {
                if expected == cause {
                    *wrong.entry(*got).or_default() += n;
                }
            }
            let mut wrong: Vec<(Cause, u32)> = wrong.into_iter().collect();
            wrong.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
            let wrong: Vec<String> = wrong.iter().take(4).map(|(c, n)| format!("`{}` {n}", c.id())).collect();
            text += &format!("| `{}` | {} | {} |\n", cause.id(), shares.join(" | "), wrong.join(", "));
        }
        let all: Vec<String> =
            self.places.iter().map(|s| format!("{:.1} % of {}", s.share() * 100.0, s.all)).collect();
        text += &format!("| all | {} | |\n", all.join(" | "));
        text + &format!(
            "\nHealthy: {} of {} taken for healthy. By the sender's records {} of {} are right. Time of the \
             dominant cause within 10 %: {:.0} %.\n",
            self.healthy.right,
            self.healthy.all,
            self.records.right,
            self.records.all,
            self.times.share() * 100.0
        )
    }
}
