//! Where unsafe code may be.

use crate::workspace::{code, crates, sources};

/// Crates with unsafe code, and the files that may have it. All other crates forbid it.
const UNSAFE: [(&str, &[&str]); 6] = [
    // The macros of pyo3 make unsafe code, which cannot be forbidden then.
    ("farpace-py", &[]),
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
    (
        "farpace-preload",
        &["src/calls.rs", "src/library.rs", "src/messages.rs", "src/real.rs", "src/rlimits.rs"],
    ),
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
            "src/shared_words.rs",
            "src/system/ethtool.rs",
        ],
    ),
];

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
