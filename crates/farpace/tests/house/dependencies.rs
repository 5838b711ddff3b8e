//! Which crate may depend on which.

use crate::workspace::crates;
use std::collections::BTreeSet;

/// Every crate, from the bottom up, and which of the others it may depend on. ARCHITECTURE.md draws it.
///
/// A new crate gets its line here; one that would need a crate from further down in this table is in the
/// wrong place.
const HOUSE: &[(&str, &[&str])] = &[
    ("farpace-units", &[]),
    ("farpace-wire", &["units"]),
    ("farpace-events", &["units", "wire"]),
    ("farpace-trace", &["units", "wire", "events"]),
    ("farpace-tcp", &["units", "wire", "events"]),
    ("farpace-path", &["units", "wire"]),
    ("farpace-link", &["units", "wire", "path"]),
    ("farpace-host", &["units", "wire", "events", "tcp", "path", "link"]),
    ("farpace-gateway", &["units", "wire", "tcp", "path", "host"]),
    ("farpace-lab", &["units", "wire", "events", "trace", "tcp", "path", "link", "host"]),
    ("farpace-live", &["units", "wire", "events", "trace", "tcp", "path", "link", "host"]),
    ("farpace-capi", &["units", "wire", "tcp", "path", "host", "live"]),
    // It knows the C interface by its header, and loads it while the program runs.
    ("farpace-preload", &[]),
    ("farpace-transfer", &["units"]),
    // It has no engine and no network: only sockets of the kernel.
    ("farpace-http", &[]),
    // What the process has changed of the system is undone when it is interrupted.
    ("farpace-process", &["units", "live"]),
    // Its tests hold its congestion controls against those of the engine, in the lab.
    ("farpace-kernel", &["units", "wire", "events"]),
    ("farpace-report", &["units", "events"]),
    ("farpace-explain", &["units", "wire", "events", "trace"]),
    // It puts what `kernel` loads on devices.
    ("farpace-kernel-service", &["units", "path", "link", "live", "process", "kernel", "report"]),
    // Its cure is a run of the lab.
    ("farpace-explain-report", &["units", "trace", "lab", "report", "explain", "http"]),
    ("farpace-inspect", &["units", "wire", "trace", "link", "report"]),
    ("farpace-papers", &["units", "events", "tcp", "path", "link", "lab", "report"]),
    ("farpace-run", &["units", "events", "tcp", "path", "link", "lab", "report", "papers"]),
    ("farpace-study", &["units", "tcp", "trace", "lab", "report", "papers"]),
    ("farpace-cluster", &["process", "study"]),
    ("farpace-tunnel", &["units", "transfer", "report", "explain", "live", "process"]),
    (
        "farpace-gateway-service",
        &[
            "units", "wire", "tcp", "path", "link", "trace", "gateway", "report", "live", "http", "process",
            "tunnel",
        ],
    ),
    // Beside the command, the one place where `lab` and `live` meet.
    (
        "farpace-emulate",
        &[
            "units", "wire", "events", "trace", "tcp", "path", "host", "lab", "live", "report", "explain",
            "papers", "process",
        ],
    ),
    (
        "farpace",
        &[
            "units",
            "wire",
            "events",
            "trace",
            "tcp",
            "path",
            "link",
            "host",
            "gateway",
            "lab",
            "live",
            "transfer",
            "report",
            "explain",
            "explain-report",
            "kernel",
            "kernel-service",
            "papers",
            "study",
            "cluster",
            "process",
            "tunnel",
            "gateway-service",
            "run",
            "inspect",
            "emulate",
        ],
    ),
    // A module of Python, above the command, whose functions it gives to Python.
    (
        "farpace-py",
        &[
            "units",
            "events",
            "trace",
            "tcp",
            "lab",
            "explain-report",
            "papers",
            "study",
            "cluster",
            "run",
            "",
        ],
    ),
    // It measures what it likes.
    (
        "farpace-bench",
        &[
            "units", "wire", "events", "trace", "tcp", "path", "link", "host", "lab", "live", "transfer",
            "report", "explain", "papers",
        ],
    ),
];

/// The crate with this short name; that of the command is empty.
fn full(short: &str) -> String {
    if short.is_empty() { "farpace".to_owned() } else { format!("farpace-{short}") }
}

/// Breaks: the house. A crate that knows one above it, or `lab` and `live` each other, can no longer be used
/// or understood without it.
#[test]
fn dependencies_point_downwards_only() {
    let rank = |name: &str| HOUSE.iter().position(|(n, _)| *n == name);
    let mut wrong = Vec::new();
    for c in crates() {
        let Some(own) = rank(&c.name) else {
            wrong.push(format!("{} has no place in HOUSE yet", c.name));
            continue;
        };
        let allowed: BTreeSet<_> = HOUSE[own].1.iter().map(|short| full(short)).collect();
        let extra = c.needs.difference(&allowed);
        wrong.extend(extra.map(|n| format!("{} may not depend on {n}", c.name)));
        // Tests may look at more, but not upwards: Cargo itself would let them.
        let upwards = c.test_needs.iter().filter(|n| rank(n) >= Some(own));
        wrong.extend(upwards.map(|n| format!("the tests of {} may not depend on {n}", c.name)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Breaks: the table above, if it allows an upward or a sideways step.
#[test]
fn the_table_itself_points_downwards() {
    for (own, (name, allowed)) in HOUSE.iter().enumerate() {
        for below in *allowed {
            let rank = HOUSE.iter().position(|(n, _)| *n == full(below));
            assert!(rank.is_some_and(|r| r < own), "{name} over {below}");
        }
    }
    let may = |upper: &str, lower: &str| HOUSE.iter().any(|(n, all)| *n == upper && all.contains(&lower));
    assert!(!may("farpace-lab", "live") && !may("farpace-live", "lab"));
}
