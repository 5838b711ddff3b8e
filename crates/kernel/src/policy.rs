//! Which connections are under a control of ours, and what else holds for them, by the peer's address.

use crate::object::{self, CONNECTIONS};
use crate::rule::MAX_RULES;
use crate::{KernelDestination, KernelError};
use libbpf_rs::{Link, MapCore, MapFlags, MapType, Object};
use serde::Serialize;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

/// What a policy has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PolicyCounters {
    /// Connections that a rule was for.
    pub connections: u64,
    /// Settings that the kernel has refused.
    pub refused: u64,
    /// Connections whose ends have agreed on ACK requests.
    pub agreed: u64,
    /// Segments that asked for an ACK; one that the NIC cuts counts once.
    pub asked: u64,
    /// Segments that came and asked.
    pub answered: u64,
}

/// A policy that holds in control groups. When it is dropped it holds for no new connection; what was set
/// stays.
#[derive(Debug)]
pub struct KernelPolicy {
    links: Vec<Link>,
    _object: Object,
}

impl KernelPolicy {
    /// Lets `destinations` hold for connections that processes in `groups` (folders of the control group file
    /// system, version 2) begin or accept from now on. The longest prefix counts. A
    /// [session](crate::KernelSession) must be loaded.
    ///
    /// # Errors
    /// No rights, no such control group, a kernel that refuses, or more than [`MAX_RULES`].
    pub fn load(groups: &[PathBuf], destinations: &[KernelDestination]) -> Result<Self, KernelError> {
        let what = "the policy";
        if destinations.len() > MAX_RULES {
            return Err(KernelError::TooMany { what: "destinations", most: MAX_RULES });
        }
        // The session that was loaded last has the map with the highest number.
        let maps = object::maps(CONNECTIONS, MapType::SkStorage);
        let newest = maps.last().ok_or(KernelError::NotLoaded)?;
        let mut object = object::open(what, object::POLICY)?;
        for mut map in object.maps_mut().filter(|map| map.name() == CONNECTIONS) {
            map.reuse_fd(newest.as_fd()).map_err(|error| object::refused("to share a map", &error))?;
        }
        let object = object::load(what, object)?;
        let rules = object.maps().find(|map| map.name() == "fp_rules").ok_or(KernelError::NotLoaded)?;
        for destination in destinations {
            let (key, rule) = (destination.key(), destination.rule.bytes());
            let done = rules.update(&key, &rule, MapFlags::ANY);
            done.map_err(|error| object::refused("a rule", &error))?;
        }
        let program = object.progs_mut().find(|program| program.name() == "policy");
        let program = program.ok_or(KernelError::NotLoaded)?;
        let mut links = Vec::new();
        for group in groups {
            let open = || format!("open the control group {}", group.display());
            let folder = File::open(group).map_err(|error| KernelError::System { what: open(), error })?;
            let link = program.attach_cgroup(folder.as_fd().as_raw_fd());
            let what = format!("the policy in {} (is it a folder of cgroup2?)", group.display());
            links.push(link.map_err(|error| object::refused(&what, &error))?);
        }
        Ok(KernelPolicy { links, _object: object })
    }

    /// Pins it in `folder` in a BPF file system: then it stays when the process ends. Returns the files.
    ///
    /// # Errors
    /// No BPF file system there, or a file is there already.
    pub fn pin(&mut self, folder: &Path) -> Result<Vec<PathBuf>, KernelError> {
        let mut files = Vec::new();
        for (number, link) in self.links.iter_mut().enumerate() {
            let file = folder.join(format!("policy-{number}"));
            let what = format!("to pin {}", file.display());
            link.pin(&file).map_err(|error| object::refused(&what, &error))?;
            files.push(file);
        }
        Ok(files)
    }
}

/// What the policies that are loaded have done; none if there are none.
pub fn policy_counters() -> Option<PolicyCounters> {
    let mut sum: Option<PolicyCounters> = None;
    for map in object::maps("fp_policy", MapType::Array) {
        let bytes = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok().flatten().unwrap_or_default();
        let mut words = bytes.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_ne_bytes));
        let mut next = || words.next().unwrap_or(0);
        let sum = sum.get_or_insert_default();
        sum.connections += next();
        sum.refused += next();
        sum.agreed += next();
        sum.asked += next();
        sum.answered += next();
    }
    sum
}
