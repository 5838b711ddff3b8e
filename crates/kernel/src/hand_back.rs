//! Giving connections back to a control of the kernel, so that our programs can go at once instead of with
//! the last of the connections.

use crate::{KernelControl, KernelError, namespaces, object};
use libbpf_rs::{Iter, IterOpts, MapCore, MapFlags};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HandedBack {
    /// Connections that now are under the other control.
    pub given: u32,
    /// Connections that keep ours until they end.
    pub kept: u32,
    /// The other control.
    pub to: String,
    /// The default of the namespace was ours, and now is the other one.
    pub default_changed: bool,
}

const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// A control of the kernel for this network namespace: its default, unless that is ours.
fn heir() -> Result<(String, bool), KernelError> {
    let read = |path: &str| fs::read_to_string(path).map_err(KernelError::system(format!("read {path}")));
    let default = read(DEFAULT)?.trim().to_owned();
    if !KernelControl::ALL.iter().any(|control| control.name() == default) {
        return Ok((default, false));
    }
    let available = read(AVAILABLE)?;
    let cubic = available.split_whitespace().any(|name| name == "cubic");
    Ok((if cubic { "cubic" } else { "reno" }.to_owned(), true))
}

/// Gives the connections of this thread's network namespace that are under a control of ours to the default
/// of the namespace. Where that is ours, it becomes `cubic`, or `reno` where there is no `cubic`.
///
/// # Errors
/// No rights, or a kernel that refuses.
pub fn hand_back() -> Result<HandedBack, KernelError> {
    let (to, default_changed) = heir()?;
    if default_changed {
        fs::write(DEFAULT, &to).map_err(KernelError::system(format!("write {to} to {DEFAULT}")))?;
    }
    let what = "to give connections back";
    let mut object = object::open(what, object::HAND_BACK)?;
    for mut map in object.maps_mut().filter(|map| map.name().to_string_lossy().ends_with(".rodata")) {
        if let Some(name) = map.initial_value_mut().and_then(|data| data.get_mut(..16)) {
            name.fill(0);
            name.iter_mut().zip(to.bytes().take(15)).for_each(|(slot, byte)| *slot = byte);
        }
    }
    let object = object::load(what, object)?;
    let failed = |error: libbpf_rs::Error| object::refused(what, &error);
    let program = object.progs_mut().find(|program| program.name() == "hand_back");
    let program = program.ok_or(KernelError::NotLoaded)?;
    let link = program.attach_iter_with_opts(IterOpts::None).map_err(failed)?;
    let mut text = Vec::new();
    let mut iter = Iter::new(&link).map_err(failed)?;
    iter.read_to_end(&mut text).map_err(KernelError::system(what))?;
    let results = object.maps().find(|map| map.name().to_string_lossy().ends_with(".bss"));
    let results = results.and_then(|map| map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok().flatten());
    let results = results.unwrap_or_default();
    let mut words = results.chunks_exact(4).map(|word| word.try_into().map_or(0, u32::from_ne_bytes));
    let (given, kept) = (words.next().unwrap_or(0), words.next().unwrap_or(0));
    Ok(HandedBack { given, kept, to, default_changed })
}

/// What came of it in all network namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HandedBackEverywhere {
    /// By the number of the namespace, where there was something to do.
    pub namespaces: BTreeMap<u64, HandedBack>,
    /// Processes whose namespace could not be known: connections there may keep our control.
    pub hidden_processes: usize,
}

/// [`hand_back`] in every network namespace that can be found.
///
/// # Errors
/// No rights, or a kernel that refuses.
pub fn hand_back_everywhere() -> Result<HandedBackEverywhere, KernelError> {
    let mut visited = namespaces::visit(hand_back)?;
    visited.results.retain(|_, done| done.given + done.kept > 0 || done.default_changed);
    Ok(HandedBackEverywhere { namespaces: visited.results, hidden_processes: visited.hidden_processes })
}
