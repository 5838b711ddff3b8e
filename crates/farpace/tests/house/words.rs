//! Words that another word has replaced.

use crate::exceptions::compare;
use crate::syntax::identifiers;
use crate::workspace::{root, sources};
use std::collections::BTreeSet;

/// Words that no identifier contains, and what stands in their place.
const REPLACED: &[(&str, &str)] = &[
    ("trouble", "impairment"),
    ("troubles", "impairments"),
    ("lane", "path"),
    ("lanes", "paths"),
    ("card", "nic"),
    ("cards", "nics"),
    ("patience", "keep_alive or timeout"),
    ("hopeless", "retries_exhausted"),
    ("door", "boundary_port"),
    ("doors", "boundary_ports"),
    ("dice", "rng or seed"),
    ("island", "sack_block"),
    ("islands", "sack_blocks"),
    ("deaf", "read_shutdown"),
    ("bed", "harness"),
    ("soliciting", "ack_requests"),
    ("solicitor", "requester"),
    ("netlab", "lab_namespaces"),
    ("reality", "lab_compare"),
    ("thesis", "published"),
    ("census", "first_pass"),
    ("onlooker", "observer"),
    ("speaker", "announcer"),
];

/// Beginnings of constants that MAX_ and MIN_ have replaced.
const REPLACED_LIMITS: [&str; 2] = ["MOST_", "LEAST_"];

/// Identifiers that contain one of the words still, by crate.
const EXCEPTIONS: &[&str] = &[];

/// Breaks: reading the code with the words of RFCs, man pages and the kernel alone.
#[test]
fn identifiers_use_the_words_of_the_field() {
    let mut found = BTreeSet::new();
    for folder in ["crates", "bench", "fuzz/fuzz_targets"] {
        for (path, text) in sources(&root().join(folder)) {
            let place = path.strip_prefix(root()).unwrap().iter().take(2).map(|p| p.to_string_lossy());
            let place = place.collect::<Vec<_>>().join("/");
            for name in identifiers(text.parse().unwrap()) {
                let parts = parts(&name);
                let word = REPLACED.iter().find(|(word, _)| parts.iter().any(|part| part == word));
                if let Some((_, instead)) = word {
                    found.insert(format!("{place}: {name} (say {instead})"));
                }
                if REPLACED_LIMITS.iter().any(|begin| name.starts_with(begin)) {
                    found.insert(format!("{place}: {name} (say MAX_ or MIN_)"));
                }
            }
        }
    }
    compare("an identifier of another dialect", &found, EXCEPTIONS);
}

/// Breaks: the check above, if it does not see a word inside of an identifier.
#[test]
fn words_are_found_inside_of_identifiers() {
    assert_eq!(parts("MAX_NicPaths2"), ["max", "nic", "paths2"]);
    assert_eq!(parts("has_troubles"), ["has", "troubles"]);
    assert_eq!(parts("TCPDoor"), ["tcp", "door"]);
}

/// The words of an identifier in lower case.
fn parts(name: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let letters: Vec<char> = name.chars().collect();
    for (n, &letter) in letters.iter().enumerate() {
        let before = n.checked_sub(1).map(|n| letters[n]);
        let after = letters.get(n + 1);
        let begins = letter.is_uppercase()
            && (before.is_some_and(|b| b.is_lowercase() || b.is_ascii_digit())
                || before.is_some_and(char::is_uppercase) && after.is_some_and(|a| a.is_lowercase()));
        if letter == '_' || before.is_none() || begins {
            parts.push(String::new());
        }
        if letter != '_' {
            parts.last_mut().unwrap().extend(letter.to_lowercase());
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}
