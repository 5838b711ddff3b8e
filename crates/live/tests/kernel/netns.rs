//! A network namespace for one test.

use nix::sched::{CloneFlags, unshare};
use std::io::Write;

/// Runs `test` in a thread whose network namespace is its own and goes with it. Threads that it makes are in the namespace, too.
pub fn alone(test: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if let Err(error) = unshare(CloneFlags::CLONE_NEWNET) {
                assert!(std::env::var_os("CI").is_none(), "no network namespace: {error}");
                // Not `eprintln!`: the harness hides it for tests that pass.
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
