//! Which farpace this is: `farpace --version`.

/// Version, target and commit, each on a line of its own. `farpace -V` prints the first line alone.
pub const LONG: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ntarget ",
    env!("FARPACE_TARGET"),
    "\ncommit ",
    env!("FARPACE_COMMIT")
);
