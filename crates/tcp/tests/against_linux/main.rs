//! The kernel of this machine as a judge: what the policy `linux` claims, and what the control of
//! acknowledgments takes for granted about receivers that know nothing of it.
//!
//! Needs root, a TUN device and Linux 6.8 or later. Elsewhere these tests pass with a line on stderr that
//! says what is missing; where `CI` is set that is a failure, unless the kernel is older: no package can be
//! installed that would give another.
//!
//! `FARPACE_TRACE=1` prints what was heard.

#![cfg(target_os = "linux")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests")]

mod ack_requests;
#[path = "../common/mod.rs"]
mod common;
mod engine;
mod kernel;
mod options;
mod peer;
mod receiver;
mod script;

use kernel::Kernel;
use std::io::Write;
use std::sync::Once;

/// A script is noise's victim if it fails once, not if it fails so often.
const ATTEMPTS: usize = 5;
/// One line says it for all.
static SAID: Once = Once::new();

/// Runs `test` until it holds, in a thread whose namespace goes with it.
fn with_kernel(test: impl Fn(&mut Kernel) -> Result<(), String> + Sync) {
    let attempts = || {
        let mut kernel = match Kernel::new() {
            Ok(kernel) => kernel,
            Err(why) => {
                let must = std::env::var_os("CI").is_some() && kernel::too_old().is_none();
                assert!(!must, "the kernel cannot be asked: {why}");
                // Not `eprintln!`: the harness hides it for tests that pass.
                let line = format!("skipped: the kernel cannot be asked: {why}\n");
                SAID.call_once(|| std::io::stderr().write_all(line.as_bytes()).unwrap());
                return Ok(());
            }
        };
        let mut last = Ok(());
        for _ in 0..ATTEMPTS {
            last = test(&mut kernel);
            if last.is_ok() {
                break;
            }
        }
        last
    };
    let result = std::thread::scope(|s| s.spawn(attempts).join());
    if let Err(why) = result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
        panic!("{ATTEMPTS} times in a row: {why}");
    }
}

/// The law of a test that can be tried again.
fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}
