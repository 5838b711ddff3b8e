//! The laws of the house that no compiler checks: which crate may know which, where unsafe code and clocks may
//! be, and how long a file may get.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Every crate, from the bottom up, and which of the others it may depend on. ARCHITECTURE.md draws it.
///
/// A new crate gets its line here; one that would need a crate from further down in this table is in the wrong
/// place.
const HOUSE: [(&str, &[&str]); 19] = [
    ("farpace-units", &[]),
    ("farpace-wire", &["units"]),
    ("farpace-events", &["units", "wire"]),
    ("farpace-trace", &["units", "wire", "events"]),
    ("farpace-tcp", &["units", "wire", "events"]),
    ("farpace-path", &["units", "wire"]),
    ("farpace-link", &["units", "wire", "path"]),
    ("farpace-host", &["units", "wire", "events", "tcp", "path", "link"]),
    ("farpace-lab", &["units", "wire", "events", "trace", "tcp", "path", "link", "host"]),
    ("farpace-live", &["units", "wire", "events", "trace", "tcp", "path", "link", "host"]),
    ("farpace-capi", &["units", "wire", "tcp", "path", "host", "live"]),
    // It knows the C interface by its header, and loads it while the program runs.
    ("farpace-preload", &[]),
    ("farpace-transfer", &["units"]),
    // Its tests hold its congestion controls against those of the engine, in the lab.
    ("farpace-kernel", &["units", "wire", "events"]),
    ("farpace-report", &["units", "events"]),
    ("farpace-explain", &["units", "wire", "events", "trace"]),
    ("farpace-papers", &["units", "events", "tcp", "path", "link", "lab", "report"]),
    (
        "farpace",
        &[
            "units", "wire", "events", "trace", "tcp", "path", "link", "host", "lab", "live", "transfer",
            "report", "explain", "kernel", "papers",
        ],
    ),
    // It measures what it likes.
    (
        "farpace-bench",
        &[
            "units", "wire", "events", "trace", "tcp", "path", "link", "host", "lab", "live", "transfer",
            "report", "explain",
        ],
    ),
];

/// Crates with unsafe code, and the files that may have it. All other crates forbid it.
const UNSAFE: [(&str, &[&str]); 5] = [
    (
        "farpace-capi",
        &[
            "src/ffi/calls.rs",
            "src/ffi/fork.rs",
            "src/ffi/host.rs",
            "src/ffi/driven_host.rs",
            "src/ffi/memory.rs",
            "src/ffi/options.rs",
            "src/ffi/stack.rs",
            "src/ffi/transfer.rs",
            "tests/against_linux/calls.rs",
            "tests/against_linux/sys.rs",
        ],
    ),
    ("farpace-preload", &["src/calls.rs", "src/library.rs", "src/messages.rs", "src/real.rs"]),
    ("farpace-lab", &["src/payload/map.rs"]),
    ("farpace-link", &["src/pacing/prefetch.rs"]),
    (
        "farpace-live",
        &[
            "src/device/sys.rs",
            "src/device/xdp/memory.rs",
            "src/device/xdp/ring.rs",
            "src/device/xdp/sys.rs",
            "src/kernel_tcp.rs",
            "src/system/ethtool.rs",
        ],
    ),
];

/// Crates that may read clocks, wait, and open sockets.
const REAL_TIME: [&str; 6] =
    ["farpace", "farpace-live", "farpace-capi", "farpace-transfer", "farpace-kernel", "farpace-bench"];

/// Crates that may use several threads without a clock: the order of results does not depend on the threads.
const THREADS: [&str; 1] = ["farpace-papers"];

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

/// A file above this many lines says why at its top, in a line with [`REASON`].
const LONGEST_FILE: usize = 800;
const REASON: &str = "Long because";

struct Crate {
    name: String,
    folder: PathBuf,
    /// Roots of its library and programs.
    roots: Vec<PathBuf>,
    /// Names of crates of the workspace that it needs to be built.
    needs: BTreeSet<String>,
    /// The same, for its tests and examples alone.
    test_needs: BTreeSet<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn crates() -> Vec<Crate> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--offline", "--no-deps", "--format-version", "1"]).current_dir(root());
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let list = |value: &Value| value.as_array().unwrap().clone();
    let packages = list(&metadata["packages"]);
    let ours: BTreeSet<_> = packages.iter().map(|p| text(&p["name"])).collect();
    let read = |package: &Value| {
        let needs = |test: bool| {
            let all = list(&package["dependencies"]);
            let these = all.iter().filter(|d| (d["kind"] == "dev") == test).map(|d| text(&d["name"]));
            these.filter(|name| ours.contains(name)).collect()
        };
        let is_root = |target: &&Value| {
            list(&target["kind"])
                .iter()
                .any(|k| matches!(k.as_str(), Some("lib" | "bin" | "proc-macro" | "cdylib")))
        };
        Crate {
            name: text(&package["name"]),
            folder: Path::new(&text(&package["manifest_path"])).parent().unwrap().to_owned(),
            roots: list(&package["targets"])
                .iter()
                .filter(is_root)
                .map(|t| text(&t["src_path"]).into())
                .collect(),
            needs: needs(false),
            test_needs: needs(true),
        }
    };
    let crates: Vec<_> = packages.iter().map(read).collect();
    assert!(crates.len() >= 10 && crates.iter().all(|c| !c.roots.is_empty()), "the metadata was misread");
    crates
}

/// All Rust files below `folder`, with their text, in order.
fn sources(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                files.insert(path, text);
            }
        }
    }
    files
}

/// The lines of `text` that are not comments, with their numbers.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(n, line)| (n + 1, line))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// Breaks: the house. A crate that knows one above it, or `lab` and `live` each other, can no longer be used or
/// understood without it.
#[test]
fn dependencies_point_downwards_only() {
    let rank = |name: &str| HOUSE.iter().position(|(n, _)| *n == name);
    let mut wrong = Vec::new();
    for c in crates() {
        let Some(own) = rank(&c.name) else {
            wrong.push(format!("{} has no place in HOUSE yet", c.name));
            continue;
        };
        let allowed: BTreeSet<_> = HOUSE[own].1.iter().map(|short| format!("farpace-{short}")).collect();
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
            let rank = HOUSE.iter().position(|(n, _)| n.strip_prefix("farpace-") == Some(below));
            assert!(rank.is_some_and(|r| r < own), "{name} over {below}");
        }
    }
    let may = |upper: &str, lower: &str| HOUSE.iter().any(|(n, all)| *n == upper && all.contains(&lower));
    assert!(!may("farpace-lab", "live") && !may("farpace-live", "lab"));
}

/// Breaks: the promise that no unsafe code is outside of the few files that state their invariants.
#[test]
fn unsafe_code_is_forbidden_but_in_the_files_that_state_why() {
    let mut wrong = Vec::new();
    for c in crates().iter().filter(|c| c.name != "farpace-bench") {
        let excepted = UNSAFE.iter().find(|(name, _)| *name == c.name).map(|(_, files)| *files);
        for path in &c.roots {
            let forbids = std::fs::read_to_string(path).unwrap().contains("#![forbid(unsafe_code)]");
            if forbids == excepted.is_some() {
                let verb = if forbids { "need not be excepted" } else { "does not forbid unsafe code" };
                wrong.push(format!("{} {verb}", path.display()));
            }
        }
        for (path, text) in sources(&c.folder) {
            // Put together here, so that this file does not find itself.
            let lifted = code(&text).any(|(_, line)| line.contains(&format!("allow({}", "unsafe_code")));
            let may = excepted.is_some_and(|files| files.iter().any(|f| path == c.folder.join(f)));
            if lifted && !may {
                wrong.push(format!("{} allows unsafe code", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Breaks: the way into a crate for somebody who opens it for the first time.
#[test]
fn front_pages_say_where_to_start_and_what_is_never_done() {
    for c in crates() {
        let text = std::fs::read_to_string(c.folder.join("src/lib.rs")).unwrap();
        let front: Vec<_> = text.lines().map_while(|line| line.strip_prefix("//!")).collect();
        let front = front.concat().to_lowercase();
        assert!(front.contains("start reading at"), "{}: where does one start reading?", c.name);
        assert!(front.contains(" never "), "{}: what does it never do?", c.name);
    }
}

/// Breaks: files that can be read from top to bottom in one sitting.
#[test]
fn long_files_say_why() {
    let root = root();
    let folders = ["crates", "bench", "fuzz/fuzz_targets"];
    let files: Vec<_> = folders.iter().flat_map(|folder| sources(&root.join(folder))).collect();
    assert!(files.len() > 100, "only {} files were found", files.len());
    for (path, text) in files {
        let reason = text.lines().take(15).any(|line| line.contains(REASON));
        let lines = text.lines().count();
        assert!(lines <= LONGEST_FILE || reason, "{}: {lines} lines, and no \"{REASON}\"", path.display());
    }
}

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
