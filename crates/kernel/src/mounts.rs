//! The file systems that programs and control groups are in.

use crate::KernelError;
use rustix::mount::{MountFlags, mount};
use std::fs;
use std::path::{Path, PathBuf};

/// Where the BPF file system belongs.
const BPF: &str = "/sys/fs/bpf";

/// Where a file system of this type is.
pub(crate) fn mounted(kind: &str) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut found = mounts.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (_, path, its) = (words.next()?, words.next()?, words.next()?);
        (its == kind).then(|| PathBuf::from(path))
    });
    found.next()
}

/// The BPF file system, which is mounted if it is not.
///
/// # Errors
/// It cannot be mounted.
pub fn bpf_folder() -> Result<PathBuf, KernelError> {
    if let Some(found) = mounted("bpf") {
        return Ok(found);
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let done = mount("bpf", BPF, "bpf", flags, None);
    done.map_err(|error| KernelError::System {
        what: format!("mount a BPF file system at {BPF}"),
        error: error.into(),
    })?;
    Ok(Path::new(BPF).to_owned())
}

/// The root of the control groups, version 2: a policy there holds for all processes, also those in
/// containers.
///
/// # Errors
/// There is none.
pub fn cgroup_root() -> Result<PathBuf, KernelError> {
    mounted("cgroup2").ok_or(KernelError::NoCgroups)
}
