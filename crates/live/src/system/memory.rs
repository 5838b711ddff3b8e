//! The default memory limit of a host's connections.

use farpace_units::ByteCount;
use nix::sys::sysinfo::sysinfo;
use std::fs;

/// The default limit is this part of the memory.
const PART: u64 = 4;
/// The memory limit of this process's control group (cgroup v2).
const GROUP: &str = "/sys/fs/cgroup/memory.max";

/// A quarter of the machine's memory, or of the limit of the control group of this process.
pub fn default_memory() -> ByteCount {
    let machine = sysinfo().map_or(u64::MAX, |system| system.ram_total());
    let group = fs::read_to_string(GROUP).ok().and_then(|text| text.trim().parse::<u64>().ok());
    ByteCount::new(machine.min(group.unwrap_or(u64::MAX)) / PART)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: the default memory limit is positive and less than all memory.
    #[test]
    fn a_quarter_is_less_than_all() {
        let text = fs::read_to_string("/proc/meminfo").unwrap();
        let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:")).unwrap();
        let total: u64 = total.trim().trim_end_matches(" kB").parse().unwrap();
        let ours = default_memory().get();
        assert!(ours > 1 << 20 && ours <= total * 1024 / 4 + (1 << 20), "{ours} of {total} kB");
    }
}
