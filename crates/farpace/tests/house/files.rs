//! How files look: their length, their width, and the front page of a crate.

use crate::exceptions::compare;
use crate::workspace::{crates, root, sources};
use std::collections::BTreeMap;

/// A file above this many lines says why at its top, in a line with [`REASON`].
const LONGEST_FILE: usize = 800;
/// Columns of a line, comments included.
const WIDEST_LINE: usize = 110;

/// Lines that are wider still, by crate.
const WIDE_LINES: &[&str] = &[
    "bench/src: 2",
    "crates/farpace: 40",
    "crates/host: 12",
    "crates/link: 35",
    "crates/live: 5",
    "crates/preload: 7",
    "crates/report: 3",
    "crates/tcp: 14",
    "crates/trace: 3",
    "crates/transfer: 4",
    "crates/units: 1",
    "crates/wire: 28",
    "fuzz/fuzz_targets: 2",
];

const REASON: &str = "Long because";

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

/// Breaks: reading sources in a terminal of usual width, side by side with another file.
#[test]
fn lines_are_not_wide() {
    let mut wide: BTreeMap<String, usize> = BTreeMap::new();
    for folder in ["crates", "bench", "fuzz/fuzz_targets"] {
        for (path, text) in sources(&root().join(folder)) {
            let place = path.strip_prefix(root()).unwrap().iter().take(2).map(|p| p.to_string_lossy());
            let lines = text.lines().filter(|line| line.chars().count() > WIDEST_LINE).count();
            *wide.entry(place.collect::<Vec<_>>().join("/")).or_default() += lines;
        }
    }
    let found =
        wide.into_iter().filter(|(_, lines)| *lines > 0).map(|(place, lines)| format!("{place}: {lines}"));
    compare("lines of more than 110 columns", &found.collect(), WIDE_LINES);
}
