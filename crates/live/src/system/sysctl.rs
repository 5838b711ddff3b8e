//! Kernel parameters, by their names with dots.

use super::SystemError;
use std::path::{Path, PathBuf};

fn path(name: &str) -> PathBuf {
    // As in sysctl(8): a slash in the name represents a dot, for interfaces with a dot in their name.
    let swap = |c| match c {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    Path::new("/proc/sys").join(name.chars().map(swap).collect::<String>())
}

/// Reads a parameter in the namespace of this thread.
///
/// # Errors
/// There is no such parameter.
pub fn read(name: &str) -> Result<String, SystemError> {
    let value = std::fs::read_to_string(path(name));
    let failed = |error| SystemError::System { what: format!("read {name}"), error };
    value.map(|value| value.trim().to_owned()).map_err(failed)
}

/// Sets a parameter in the namespace of this thread.
///
/// # Errors
/// There is no such parameter, the privilege is missing, or the value is invalid.
pub fn write(name: &str, value: &str) -> Result<(), SystemError> {
    let done = std::fs::write(path(name), value);
    done.map_err(|error| SystemError::System { what: format!("set {name} to {value}"), error })
}
