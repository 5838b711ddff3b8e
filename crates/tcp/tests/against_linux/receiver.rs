//! The policy `linux` and the kernel under the same arrivals: the same ACKs, at the same times.

use super::engine;
use super::kernel::Outcome;
use super::peer::Heard;
use super::script::{App, FULL, Script};
use super::{ensure, with_kernel};
use farpace_tcp::config::{Profile, Settings};
use farpace_units::{Instant, Span};
use farpace_wire::tcp::TcpFlags;

/// How late an ACK may be that is sent at once, and one that a timer sends: ticks of 4 ms, and one more.
const AT_ONCE: Span = Span::from_millis(5);
const TIMER: Span = Span::from_millis(14);

fn same(script: &Script) {
    same_as(script, &engine::acks());
}

fn same_as(script: &Script, settings: &Settings) {
    with_kernel(|kernel| {
        let Outcome { times, heard, .. } = kernel.run(script);
        let ours = engine::play(script, &times, settings).heard;
        if std::env::var_os("FARPACE_TRACE").is_some() {
            println!("kernel {heard:#?}\nours {ours:#?}");
        }
        compare(&heard, &ours, &times)
    });
}

fn compare(kernel: &[Heard], ours: &[Heard], times: &[Instant]) -> Result<(), String> {
    for (n, (k, o)) in kernel.iter().zip(ours).enumerate() {
        let at_once = times.iter().any(|t| o.at.since(*t) < Span::from_millis(1) && *t <= o.at);
        let may = if at_once { AT_ONCE } else { TIMER };
        let late = k.at.since(o.at).max(o.at.since(k.at));
        let equal = (k.ack, k.len, &k.sack) == (o.ack, o.len, &o.sack);
        ensure(equal && late <= may, || format!("segment {n}: kernel {k:?}, ours {o:?}"))?;
    }
    let (k, o) = (kernel.len(), ours.len());
    ensure(k == o && k > 0, || format!("kernel {k} segments, ours {o}"))
}

fn reads() -> Script {
    Script::new(App::Reads)
}

fn far(app: App) -> Script {
    Script { rtt: 300, ..Script::new(app) }
}

/// Breaks: how many of the first segments are acknowledged singly (16, and as many as open the window), then
/// every second.
#[test]
fn start() {
    same(&reads().stream(0, 5, 50, FULL));
}

/// Breaks: slow start: while the window opens for a sender that doubles its rate, each segment is
/// acknowledged. When exactly the kernel makes room depends on when the program reads, so this counts: of 310
/// segments 253 to 277 by the kernel, 278 to 299 by the engine, which does not know the program's pauses; 155
/// would be every second.
///
/// Five rounds, because the rounds of the script are as long as the kernel's own measure of a round trip:
/// whether it measures in front of the sixth or in its middle is chance (Linux 6.18.44 acknowledged 138 to
/// 263 of its 320 segments, and 413 to 638 of the 640 of the seventh, in five runs in a row).
#[test]
fn window_opens() {
    let rounds = (0..5).flat_map(|round| {
        let n = 10 << round;
        (0..n).map(move |i| 50 * round + 50 * i / n)
    });
    let s = rounds.fold(Script { rtt: 50, ..reads() }, |s, at| s.stream(at, 0, 1, FULL));
    with_kernel(|kernel| {
        let Outcome { times, heard, .. } = kernel.run(&s);
        let (k, o) = (heard.len(), engine::play(&s, &times, &engine::acks()).heard.len());
        println!("of {} segments {k} are acknowledged by the kernel, {o} by the engine", s.steps.len());
        ensure(k * 10 > s.steps.len() * 8, || format!("the kernel acknowledges {k} of {}", s.steps.len()))?;
        ensure(k.abs_diff(o) * 6 <= k, || format!("kernel {k} segments, ours {o}"))
    });
}

/// Breaks: the segments after a pause that is longer than the timeout: one, or many; and after a shorter one.
#[test]
fn pause() {
    same(&reads().stream(0, 3, 40, FULL).stream(1100, 1, 1, FULL));
    same(&reads().stream(0, 3, 40, FULL).stream(420, 5, 25, FULL));
    same(&reads().stream(0, 3, 40, FULL).stream(240, 5, 6, FULL));
}

/// Breaks: short segments, with PSH and without, to a program that reads.
#[test]
fn short_segments() {
    same(&reads().stream(0, 10, 30, 100).push());
    same(&reads().stream(0, 10, 30, 100));
    same(&reads().stream(0, 2, 40, FULL).stream(100, 7, 20, 600).push());
    same(&reads().stream(0, 2, 40, FULL).stream(100, 7, 20, 600));
}

/// Breaks: the timer that follows the sender's pace: bounded by a short round trip; growing on a long one.
#[test]
fn timer() {
    same(&Script::new(App::Sleeps).stream(0, 11, 40, 100).push());
    same(&far(App::Sleeps).stream(0, 5, 16, 100).stream(110, 33, 5, 100).push());
    same(&far(App::Reads).stream(0, 2, 40, FULL).stream(120, 60, 12, FULL));
}

/// Breaks: holes: each segment behind one is acknowledged, and so is what fills it.
#[test]
fn disorder() {
    let at = |n: i32| n * FULL as i32;
    let holes = reads().stream(0, 2, 40, FULL).segment(100, at(41), FULL).segment(102, at(42), FULL);
    let holes = holes.segment(104, at(44), FULL).segment(106, at(45), FULL).segment(108, at(47), FULL);
    let filled = holes.segment(120, at(40), FULL).segment(130, at(43), FULL).segment(140, at(46), FULL);
    same(&filled.stream(150, 5, 10, FULL));
}

/// Breaks: compressed SACKs: from the fourth ACK of a number on, one ACK stands for all that come within a
/// millisecond, but no block is left out because three others have changed since.
#[test]
fn compressed() {
    let at = |n: i32| n * FULL as i32;
    // A window that opens has ACKs at once: a program that does not read keeps it from that.
    let primed = || Script { rtt: 60, ..Script::new(App::Sleeps) }.stream(0, 1, 30, FULL);
    let burst =
        |s: Script, when: u64, numbers: &[i32]| numbers.iter().fold(s, |s, n| s.segment(when, at(*n), FULL));
    let one_hole = burst(primed(), 160, &[31, 32, 33, 34, 35, 36, 37, 38, 39]);
    let again = burst(one_hole, 180, &[40, 41, 42]).segment(200, at(30), FULL);
    let linux = Settings { profile: Some(Profile::Linux), ..Settings::default() };
    same_as(&again.stream(220, 0, 4, FULL), &linux);
    let holes = burst(primed(), 160, &[31, 33, 35, 37, 39, 41, 43]);
    let filled = burst(holes, 180, &[30, 32, 34]);
    same_as(&burst(filled, 200, &[44, 45, 46, 47, 36, 38]), &linux);
}

/// Breaks: duplicates: told of at once (D-SACK), and quick ACKs after them.
#[test]
fn duplicates() {
    let last = 39 * FULL as i32;
    let twice = reads().stream(0, 2, 40, FULL).segment(200, 0, FULL).segment(210, last, FULL);
    same(&twice.stream(215, 5, 25, FULL));
}

/// Breaks: a conversation: the answers carry the ACKs; and when no answer comes.
#[test]
fn conversation() {
    same(&Script::new(App::Answers(u32::MAX)).stream(0, 10, 10, 100).push());
    same(&Script::new(App::Answers(u32::MAX)).stream(0, 100, 6, 100).push());
    same(&Script::new(App::Answers(3)).stream(0, 60, 10, 100).push());
}

/// Breaks: the ACK of a FIN, alone or with data: it waits for the program to close.
#[test]
fn fin() {
    let end = |s: Script, at, len| {
        let from = s.end();
        s.segment(at, from, len).with(|s| s.flags = s.flags | TcpFlags::FIN)
    };
    same(&end(reads().stream(0, 2, 40, FULL), 150, 0));
    same(&end(reads().stream(0, 2, 40, FULL), 150, 100));
    same(&end(reads().stream(0, 2, 41, FULL), 85, 100).push());
    same(&end(reads().stream(0, 2, 3, FULL), 10, 100));
}
