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

/// The interface whose parameter this is, such as `eth0` of `net.ipv4.conf.eth0.rp_filter`.
pub(super) fn interface_of(name: &str) -> Option<String> {
    let words: Vec<&str> = name.split('.').collect();
    let ["net", "ipv4" | "ipv6", "conf" | "neigh", interface, _] = words[..] else { return None };
    (!matches!(interface, "all" | "default")).then(|| interface.replace('/', "."))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: the parameter of an interface is taken for one of the machine, and is set again on another
    /// interface of the same name.
    #[test]
    fn parameters_of_interfaces_name_them() {
        assert_eq!(interface_of("net.ipv4.conf.eth0/5.arp_ignore").as_deref(), Some("eth0.5"));
        assert_eq!(interface_of("net.ipv6.neigh.p2.retrans_time_ms").as_deref(), Some("p2"));
        for other in
            ["net.ipv4.conf.all.rp_filter", "net.ipv6.conf.default.forwarding", "net.ipv4.ip_forward"]
        {
            assert_eq!(interface_of(other), None, "{other}");
        }
    }
}
