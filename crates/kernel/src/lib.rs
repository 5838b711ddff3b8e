//! farpace inside an unmodified Linux: its congestion controls as BPF programs of the kernel
//! (`tcp_congestion_ops`), for connections of any program.
//!
//! * `bpf/` has the programs in C. `bpf/farpace` and `bpf/star` are the controls in integer arithmetic,
//!   function by function as in `farpace-tcp`; they compile for user space too, where `tests/differential.rs`
//!   holds both against each other.
//! * With the feature `bpf`, `KernelSession` loads them, `KernelPolicy` says who is under them, `connections`
//!   lists the connections under them, `KernelTrace` reads a row for each ACK, and `hand_back` gives
//!   connections back to another control. `KernelClasses` paces what leaves by a device, class by class.
//! * Without it, only what the rows mean ([`KernelConnection`], [`TraceRow`]) is here, and nothing needs
//!   clang.
//!
//! Start reading at [`KernelControl`], then at `session.rs`. It never decides where things are pinned or who
//! is under a control: `kernel-service` and the command do.

#![forbid(unsafe_code)]

mod classes;
mod control;
mod rows;
mod rule;

#[cfg(feature = "bpf")]
mod egress;
#[cfg(feature = "bpf")]
mod error;
#[cfg(feature = "bpf")]
mod features;
#[cfg(feature = "bpf")]
mod hand_back;
#[cfg(feature = "bpf")]
mod list;
#[cfg(feature = "bpf")]
mod mounts;
#[cfg(feature = "bpf")]
mod namespaces;
#[cfg(feature = "bpf")]
mod object;
#[cfg(feature = "bpf")]
mod policy;
#[cfg(feature = "bpf")]
mod session;
#[cfg(feature = "bpf")]
mod trace;

pub use classes::{
    ClassCounters, ClassDevice, ClassLateness, ClassOrder, ClassSettings, HTB_MAJOR, KernelClass,
    KernelShape, MAX_CLASS_RATE, MAX_KERNEL_CLASSES, MAX_KERNEL_SHAPES,
};
pub use control::KernelControl;
pub use rows::{Addresses, KernelConnection, Phase, TraceRow};
pub use rule::{KernelDestination, MAX_RULES, Rule};

#[cfg(feature = "bpf")]
pub use {
    egress::{KernelClasses, class_devices},
    error::KernelError,
    features::{Feature, features},
    hand_back::{HandedBack, HandedBackEverywhere, hand_back, hand_back_everywhere},
    list::{KernelConnections, connections},
    mounts::{bpf_folder, cgroup_root},
    policy::{KernelPolicy, PolicyCounters, policy_counters},
    session::{KernelSession, Registered, ends_with_owner, registered, sets_loaded, unregister},
    trace::KernelTrace,
};
