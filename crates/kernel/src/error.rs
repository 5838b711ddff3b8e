//! Why the kernel does not take something.

use std::io;
use thiserror::Error;

/// Why something does not work.
#[derive(Debug, Error)]
pub enum KernelError {
    /// No right to load programs.
    #[error(
        "no right to load BPF programs: run it as root, or with the capabilities CAP_BPF, CAP_NET_ADMIN and \
         CAP_PERFMON"
    )]
    NoRights,
    /// The kernel has no description of its types.
    #[error("this kernel has no BTF (no /sys/kernel/btf/vmlinux): it needs CONFIG_DEBUG_INFO_BTF=y")]
    NoBtf,
    /// The kernel cannot have congestion controls in BPF.
    #[error(
        "this kernel takes no congestion control from BPF: it needs Linux 6.0 or later with CONFIG_BPF_JIT=y"
    )]
    NoStructOps,
    /// A control with this name is there already.
    #[error(
        "the kernel has a congestion control `{0}` already: `farpace kernel down` takes away one that \
         farpace has loaded"
    )]
    InUse(&'static str),
    /// The kernel refuses a program or a map.
    #[error("the kernel refuses {what}: {why}{}", tail(log))]
    Refused {
        /// What.
        what: String,
        /// The error.
        why: String,
        /// The last lines of what libbpf and the verifier say.
        log: String,
    },
    /// No control groups.
    #[error("there are no control groups of version 2: mount -t cgroup2 none /sys/fs/cgroup/unified")]
    NoCgroups,
    /// More than a limit allows.
    #[error("at most {most} {what}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// The limit.
        most: usize,
    },
    /// No right to find what others have loaded.
    #[error("no right to find what is loaded: run it as root, or with the capability CAP_SYS_ADMIN")]
    CannotFind,
    /// Nothing is loaded.
    #[error("no control of farpace is loaded: `farpace kernel up` loads it")]
    NotLoaded,
    /// The system says no.
    #[error("cannot {what}: {error}")]
    System {
        /// What was tried.
        what: String,
        /// What it said.
        error: io::Error,
    },
}

impl KernelError {
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |error| KernelError::System { what, error }
    }
}

fn tail(log: &str) -> String {
    const LINES: usize = 12;
    let lines: Vec<_> = log.lines().collect();
    let from = lines.len().saturating_sub(LINES);
    lines.get(from..).unwrap_or_default().iter().map(|line| format!("\n  {line}")).collect()
}
