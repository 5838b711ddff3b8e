//! The kernel as the judge of profile `linux`: programs of calls and segments are played to the kernel, in a network
//! namespace, and to the library, in virtual time. Every segment sent, every result and errno, and TCP_INFO must agree.
//!
//! `FARPACE_SCRIPT=file` plays one program and prints both sides. `FARPACE_SEED=n` plays one random program, `FARPACE_SEEDS=n`
//! so many from `FARPACE_FROM` on, `FARPACE_THEME=name` those of one theme.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests in real time"
)]

mod calls;
mod info;
mod judge;
mod kernel;
mod ours;
mod peer;
mod program;
mod sys;
mod text;
mod wire;

#[path = "../shared/library.rs"]
mod library;

use calls::Library;
use judge::Difference;
use kernel::{Kernel, Record};
use ours::Race;
use program::Program;

/// Plays `program` to both.
fn play(kernel: &mut Kernel, library: Library, program: &Program) -> (Record, Record, Option<Difference>) {
    let theirs = kernel.run(program).unwrap();
    let mut best = None;
    for race in [Race::Fires, Race::Waits] {
        let ours = ours::run(library, program, &theirs, race);
        let difference = judge::compare(program, &theirs, &ours);
        if difference.is_none() {
            return (theirs, ours, None);
        }
        best.get_or_insert((ours, difference));
    }
    let (ours, difference) = best.unwrap();
    (theirs, ours, difference)
}

/// Plays one script, and prints both sides.
#[test]
fn one_script() {
    let Some(path) = std::env::var_os("FARPACE_SCRIPT") else { return };
    let program = text::parse(&std::fs::read_to_string(path).unwrap()).unwrap();
    let library = Library::load(&library::folder().join("libfarpace.so"));
    let mut kernel = Kernel::new().unwrap();
    let (theirs, ours, difference) = play(&mut kernel, library, &program);
    println!("{}", judge::columns(&program, &theirs, &ours));
    if let Some(Difference { kind, text }) = difference {
        panic!("{kind}: {text}");
    }
}
