//! Lists of exceptions that can only shrink.

use std::collections::BTreeSet;

/// Compares what breaks a law with the exceptions to it, and names both what is new and what is no longer
/// needed.
pub fn compare(law: &str, found: &BTreeSet<String>, exceptions: &[&str]) {
    let known: BTreeSet<String> = exceptions.iter().map(|&e| e.to_owned()).collect();
    let mut wrong: Vec<String> = found.difference(&known).map(|new| format!("{law}: {new}")).collect();
    wrong.extend(
        known.difference(found).map(|old| format!("remove the exception that is no longer needed: {old:?}")),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
