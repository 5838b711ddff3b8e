//! Which crates may read clocks, wait, and open sockets.

use crate::workspace::{code, crates, sources};

/// Crates that may read clocks, wait, and open sockets.
const REAL_TIME: &[&str] = &[
    "farpace",
    "farpace-live",
    "farpace-capi",
    "farpace-transfer",
    "farpace-kernel",
    "farpace-kernel-service",
    "farpace-http",
    "farpace-process",
    "farpace-cluster",
    "farpace-tunnel",
    "farpace-emulate",
    "farpace-gateway-service",
    "farpace-bench",
    "farpace-py",
];

/// Crates that may use several threads without a clock: the order of results does not depend on the threads.
const THREADS: [&str; 2] = ["farpace-papers", "farpace-study"];

/// What the crates below may not even name. Clippy bans the calls; this also finds the types.
const NOT_SANS_IO: [&str; 7] = [
    "std::time::Instant",
    "std::time::SystemTime",
    "std::thread",
    "std::net::Tcp",
    "std::net::Udp",
    "rayon::",
    "tokio::",
];

/// Breaks: determinism and virtual time: a crate that reads a clock, waits or has threads of its own does not
/// give the same bytes twice.
#[test]
fn nothing_below_the_command_knows_real_time() {
    let mut wrong = Vec::new();
    for c in crates().iter().filter(|c| !REAL_TIME.contains(&c.name.as_str())) {
        for (path, text) in sources(&c.folder.join("src")) {
            // Tests may: they are not what others build on.
            let (production, _) = text.split_once("#[cfg(test)]\nmod tests {").unwrap_or((&text, ""));
            let is_test = path.ends_with("tests.rs");
            for (number, line) in code(production).filter(|_| !is_test) {
                let may_thread = |banned: &str| banned == "rayon::" && THREADS.contains(&c.name.as_str());
                let found = NOT_SANS_IO.iter().filter(|b| line.contains(**b) && !may_thread(b));
                wrong.extend(found.map(|banned| format!("{}:{number}: {banned}", path.display())));
                let grouped = line.trim_start().starts_with("use std::time::") && !line.contains("Duration;");
                if grouped {
                    wrong.push(format!("{}:{number}: {}", path.display(), line.trim()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
