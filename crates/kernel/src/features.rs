//! What this kernel allows, feature by feature: each is tried, not guessed from a version.

use crate::mounts::mounted;
use crate::{KernelControl, KernelError, object};
use serde::Serialize;
use std::fs;
use std::path::Path;

/// A feature, and whether it is here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Feature {
    /// A short name.
    pub name: &'static str,
    /// What it is for.
    pub purpose: &'static str,
    /// It is here.
    pub works: bool,
    /// Nothing works without it.
    pub required: bool,
    /// What was found, or what is missing.
    pub found: String,
}

impl Feature {
    fn new(name: &'static str, purpose: &'static str, found: Result<String, String>) -> Self {
        let works = found.is_ok();
        Feature { name, purpose, works, required: false, found: found.unwrap_or_else(|why| why) }
    }
    fn required(self) -> Self {
        Feature { required: true, ..self }
    }
}

fn first_line(error: &KernelError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// Looks at everything that the commands need. Loads programs into the kernel to see whether it takes them,
/// and lets them go.
pub fn features() -> Vec<Feature> {
    let mut all = vec![rights(), btf(), jit()];
    let abilities = object::abilities();
    let known = abilities.as_ref().ok().copied();
    all.push(
        Feature::new(
            "struct_ops",
            "congestion controls in BPF",
            match known.and_then(|known| known.cong_control) {
                Some(n) => Ok(format!("tcp_congestion_ops, cong_control with {n} parameters")),
                None => {
                    Err("no tcp_congestion_ops in the kernel's types: Linux 6.0 or later is needed".into())
                }
            },
        )
        .required(),
    );
    all.push(Feature::new(
        "struct_ops link",
        "a control that goes when its owner is killed",
        match known.filter(|known| known.links) {
            Some(_) => Ok("yes".into()),
            None => {
                Err("not before Linux 6.4: `farpace kernel down` takes away what a killed process left"
                    .into())
            }
        },
    ));
    for control in KernelControl::ALL {
        let name = match control {
            KernelControl::Farpace => "control farpace",
            KernelControl::Star => "control star",
        };
        let tried = crate::session::try_load(control).map_err(|error| first_line(&error));
        all.push(Feature::new(name, "the verifier takes the program", tried.map(|()| "taken".into())));
    }
    let tried = |name: &str, bytes: &[u8]| {
        let loaded = object::open(name, bytes).and_then(|opened| object::load(name, opened));
        loaded.map(|_| "taken".to_owned()).map_err(|error| first_line(&error))
    };
    all.push(Feature::new(
        "policy",
        "`up --default`, `--cgroup` and `--to`",
        tried("the policy", object::POLICY),
    ));
    all.push(Feature::new("classes", "`up --classes`", tried("the classes", object::CLASSES)));
    all.push(Feature::new("list", "`farpace kernel status`", tried("the list of connections", object::LIST)));
    all.push(Feature::new(
        "hand back",
        "`farpace kernel down` gives connections to another control at once",
        tried("to give connections back", object::HAND_BACK),
    ));
    all.extend([bpffs(), cgroup(), fair_queue()]);
    all
}

fn rights() -> Feature {
    let found =
        if object::has_rights() { Ok("yes".to_owned()) } else { Err(KernelError::NoRights.to_string()) };
    Feature::new("rights", "loading programs", found).required()
}

fn btf() -> Feature {
    let there = Path::new("/sys/kernel/btf/vmlinux").exists();
    let found =
        if there { Ok("/sys/kernel/btf/vmlinux".into()) } else { Err(KernelError::NoBtf.to_string()) };
    Feature::new("BTF", "programs that fit the kernel's types", found).required()
}

fn jit() -> Feature {
    let on = fs::read_to_string("/proc/sys/net/core/bpf_jit_enable").unwrap_or_default();
    let found = match on.trim() {
        "" | "0" => Err("off: sysctl net.core.bpf_jit_enable=1".to_owned()),
        _ => Ok("on".to_owned()),
    };
    Feature::new("JIT", "congestion controls in BPF", found).required()
}

fn bpffs() -> Feature {
    let found = mounted("bpf").map_or_else(
        || "none; `farpace kernel up --stay` mounts it at /sys/fs/bpf".to_owned(),
        |path| path.display().to_string(),
    );
    Feature::new("bpffs", "`up --stay`", Ok(found))
}

fn cgroup() -> Feature {
    let missing = "no control group file system of version 2: mount -t cgroup2 none /sys/fs/cgroup/unified";
    Feature::new(
        "cgroup2",
        "`up --default` and `--cgroup`",
        mounted("cgroup2").map(|path| path.display().to_string()).ok_or_else(|| missing.to_owned()),
    )
}

fn fair_queue() -> Feature {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let listed = |file: &str| {
        let path = format!("/lib/modules/{}/{file}", release.trim());
        fs::read_to_string(path).unwrap_or_default().contains("/sch_fq.ko")
    };
    let loaded = || fs::read_to_string("/proc/modules").unwrap_or_default().contains("sch_fq ");
    let found = if listed("modules.builtin") || listed("modules.dep") || loaded() {
        Ok("fq is here".to_owned())
    } else {
        Err("no fq: TCP paces by its own timers, and htb holds the packets of classes".to_owned())
    };
    Feature::new("fq", "departure times of classes", found)
}
