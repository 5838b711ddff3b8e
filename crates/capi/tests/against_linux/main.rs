//! The kernel as the judge of profile `linux`: programs of calls and segments are played to the kernel, in a
//! network namespace, and to the library, in virtual time. Every segment sent, every result and errno, and
//! TCP_INFO must agree.
//!
//! `FARPACE_PROGRAM=file` plays one program and prints both sides. `FARPACE_SEED=n` plays one random program,
//! `FARPACE_SEEDS=n` so many from `FARPACE_FROM` on, `FARPACE_MINUTES=n` as many as there is time for,
//! `FARPACE_THEME=name` those of one theme, `FARPACE_NAMESPACES=n` so many at once. `known.rs` says what is
//! known to differ.
//!
//! Needs root, TUN and Linux 6.18. Elsewhere it says so on stderr and passes; where `CI` is set that is a
//! failure, unless the kernel is older.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests in real time"
)]

mod calls;
mod campaign;
mod draw;
mod info;
mod judge;
mod kernel;
mod known;
mod ours;
mod peer;
mod program;
mod sys;
mod text;
mod wire;

#[path = "../shared/library.rs"]
mod library;

use calls::Library;
use campaign::{Plan, Verdict};
use judge::Difference;
use kernel::Kernel;
use known::Known;
use std::io::Write;
use std::time::Duration;

/// Programs in a run that nobody asked for more of.
const PROGRAMS: u64 = 480;
/// Where they begin.
const FROM: u64 = 1;
/// Namespaces at once: programs mostly wait.
const NAMESPACES: usize = 40;
/// Of programs that were never played before, so many in a hundred agree at least.
const MIN_AGREEMENT: u64 = 70;

fn number(key: &str) -> Option<u64> {
    std::env::var(key).ok().and_then(|v| v.parse().ok())
}

fn library() -> Library {
    Library::load(&library::folder().join("libfarpace.so"))
}

/// Not `eprintln!`: the harness hides it for tests that pass.
fn cannot(why: &str) {
    let must = std::env::var_os("CI").is_some() && kernel::too_old().is_none();
    assert!(!must, "the kernel cannot be asked: {why}");
    let line = format!("NOT TESTED: profile linux against the kernel: {why}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

/// Breaks: profile `linux` differs from the kernel in a segment, in the result of a call, or in TCP_INFO.
#[test]
fn agrees_with_the_kernel_in_real_time() {
    if let Some(program) = one_program() {
        let mut kernel = Kernel::new().unwrap();
        let Verdict { kernel, ours, difference } = campaign::play(&mut kernel, library(), &program).unwrap();
        println!("{program}{}", judge::columns(&program, &kernel, &ours));
        if let Some(Difference { kind, text, .. }) = difference {
            panic!("{kind}: {text}");
        }
        return;
    }
    let bless = std::env::var_os("FARPACE_BLESS").is_some();
    let mut known = Known::read();
    let minutes = number("FARPACE_MINUTES").map(|m| Duration::from_secs(m * 60));
    let (from, seeds) = (number("FARPACE_FROM"), number("FARPACE_SEEDS"));
    let theme = std::env::var("FARPACE_THEME").ok();
    // Programs that nobody has chosen are always the same, so it is known of each whether it differs.
    let usual = minutes.is_none() && from.is_none() && seeds.is_none() && theme.is_none();
    let from = from.unwrap_or(FROM);
    let programs = seeds.unwrap_or(if minutes.is_some() { u64::MAX } else { PROGRAMS });
    let plan = Plan {
        seeds: Box::new((0..programs).map(move |n| from.wrapping_add(n))),
        time: minutes,
        theme,
        namespaces: number("FARPACE_NAMESPACES").map_or(NAMESPACES, |n| n as usize),
        shrinks: number("FARPACE_SHRINK") != Some(0) && !bless,
    };
    let plan = if usual {
        let known: Vec<u64> = (FROM..FROM + PROGRAMS).filter(|seed| !known.has(*seed)).collect();
        Plan { seeds: Box::new(known.into_iter()), ..plan }
    } else {
        plan
    };
    let mut report = match campaign::run(plan, library()) {
        Ok(report) => report,
        Err(why) => return cannot(&why),
    };
    println!("{report}");
    if usual && !bless && !report.differences.is_empty() {
        // So many namespaces at once are a load of their own: what differs is judged alone.
        let differing = std::mem::take(&mut report.differences);
        let seeds: Vec<u64> = differing.into_values().flat_map(|(seeds, _)| seeds).collect();
        let seeds = Box::new(seeds.into_iter());
        let alone = Plan { seeds, time: None, theme: None, namespaces: 1, shrinks: true };
        let again = campaign::run(alone, library()).unwrap();
        println!("alone: {again}");
        report.agreed += again.agreed;
        report.late.extend(again.late);
        report.differences = again.differences;
    }
    if bless {
        for (kind, (seeds, _)) in &report.differences {
            seeds.iter().for_each(|seed| known.add(*seed, kind));
        }
        return known.write();
    }
    let kinds = known.kinds();
    let unknown: Vec<_> =
        report.differences.keys().filter(|kind| usual || !kinds.contains(kind.as_str())).collect();
    assert!(unknown.is_empty(), "the kernel and profile linux differ: see above: {unknown:?}");
    let enough = report.played() * MIN_AGREEMENT / 100;
    assert!(report.agreed + report.late.len() as u64 >= enough, "too few programs agree");
    assert!(
        report.late.len() as u64 * 2 < report.played().max(1),
        "the machine was late in too many programs"
    );
}

/// Breaks: what a script of `scripts` is about, each a line at its beginning: profile `linux` does not do in
/// it as the kernel does.
#[test]
fn the_scripts_agree_in_real_time() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/against_linux/scripts");
    let mut kernel = match Kernel::new() {
        Ok(kernel) => kernel,
        Err(why) => return cannot(&why),
    };
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 20, "scripts are missing");
    let mut differ = Vec::new();
    for path in paths {
        let program = text::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        if let Some(text) = campaign::differs(&mut kernel, library(), &program) {
            differ.push(format!("{}: {text}", path.display()));
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

fn one_program() -> Option<program::Program> {
    if let Some(path) = std::env::var_os("FARPACE_PROGRAM") {
        return Some(text::parse(&std::fs::read_to_string(path).unwrap()).unwrap());
    }
    number("FARPACE_SEED").map(|seed| draw::draw(seed, std::env::var("FARPACE_THEME").ok().as_deref()))
}
