//! Whether network namespaces can be made here, and names for them.

use farpace::live::Namespace;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A name that nobody else has.
pub fn unique(what: &str) -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    format!("t{}-{}-{what}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// True if namespaces can be made here.
pub fn has_rights() -> bool {
    let error = match Namespace::create(&unique("probe")) {
        Ok(_) => return true,
        Err(error) => error,
    };
    assert!(std::env::var_os("CI").is_none(), "{error}");
    // Not `eprintln!`: the test runner hides it for passed tests.
    let line = format!("skipped, needs root: {error}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    false
}
