//! A network namespace per test.

use nix::sched::{CloneFlags, unshare};
use std::io::Write;

/// Runs `test` in a thread with its own network namespace, which ends with it. Threads that it starts are in
/// the namespace too.
pub fn alone(test: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if let Err(error) = unshare(CloneFlags::CLONE_NEWNET) {
                assert!(std::env::var_os("CI").is_none(), "no network namespace: {error}");
                // Not `eprintln!`: the test runner hides it for passed tests.
                let line = format!("skipped, needs root: no network namespace: {error}\n");
                std::io::stderr().write_all(line.as_bytes()).unwrap();
                return;
            }
            test();
        });
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    });
}
