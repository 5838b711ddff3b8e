//! One type name, one meaning.

use crate::exceptions::compare;
use crate::syntax::types;
use crate::workspace::{is_test_file, root, sources};
use std::collections::{BTreeMap, BTreeSet};

/// Names that stand for the same thing in each place: the arguments of a command (clap).
const SHARED: [&str; 2] = ["Args", "Command"];

/// Names that have more than one meaning still.
const EXCEPTIONS: &[&str] = &[];

/// Breaks: searching for a type by its name, if two types of the workspace have the same.
#[test]
fn a_type_name_has_one_meaning() {
    let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in sources(&root().join("crates")) {
        let short = path.strip_prefix(root()).unwrap().display().to_string();
        if is_test_file(&path) || !short.contains("/src/") {
            continue;
        }
        for name in types(&syn::parse_file(&text).unwrap()) {
            places.entry(name).or_default().insert(short.clone());
        }
    }
    assert!(places.len() > 500, "only {} types were found", places.len());
    let shared = places.iter().filter(|(name, files)| files.len() > 1 && !SHARED.contains(&name.as_str()));
    let found = shared.map(|(name, files)| {
        let files: Vec<_> = files.iter().map(String::as_str).collect();
        format!("{name}: {}", files.join(" "))
    });
    compare("a type name with more than one meaning", &found.collect(), EXCEPTIONS);
}
