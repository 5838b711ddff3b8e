//! Loading the controls, and taking them away.

use crate::object::{self, Abilities};
use crate::{KernelControl, KernelError};
use libbpf_rs::{ErrorKind, Link, MapCore, MapType, Object};
use std::path::{Path, PathBuf};

/// A control that the kernel has.
#[derive(Debug)]
pub struct Registered {
    /// Which.
    pub control: KernelControl,
    link: Link,
    /// Its registration is a link, which ends with its owner. Before Linux 6.4 it stays until somebody takes
    /// it away.
    pub ends_with_owner: bool,
}

/// Programs that are loaded. When it is dropped the kernel offers the controls no more; connections that have
/// one keep it, and its programs, until they end or [change](crate::hand_back()).
#[derive(Debug)]
pub struct KernelSession {
    registered: Vec<Registered>,
    /// Controls that the kernel has refused, and why.
    refused: Vec<(KernelControl, KernelError)>,
    // Last: the registrations go before the programs.
    _object: Object,
}

/// The map of the control that fits the kernel.
fn map_of(control: KernelControl, abilities: Abilities) -> &'static str {
    match (control, abilities.cong_control) {
        (KernelControl::Farpace, Some(4)) => "farpace",
        (KernelControl::Farpace, _) => "farpace2",
        (KernelControl::Star, _) => "star",
    }
}

const BPF_F_LINK: u32 = 1 << 13;

fn load(controls: &[KernelControl], abilities: Abilities) -> Result<Object, KernelError> {
    let names: Vec<_> = controls.iter().map(|control| map_of(*control, abilities)).collect();
    let what = format!("control {}", controls.iter().map(|c| c.name()).collect::<Vec<_>>().join(" and "));
    let mut object = object::open(&what, object::CONTROL)?;
    for mut map in object.maps_mut().filter(|map| map.map_type() == MapType::StructOps) {
        let wanted = names.iter().any(|name| map.name() == *name);
        let flags = map.map_flags();
        let adapted = map.set_autocreate(wanted).and_then(|()| {
            if wanted && !abilities.links { map.set_map_flags(flags & !BPF_F_LINK) } else { Ok(()) }
        });
        adapted.map_err(|error| object::refused(&what, &error))?;
    }
    object::load(&what, object)
}

/// Lets the verifier look at a control, and lets it go.
pub(crate) fn try_load(control: KernelControl) -> Result<(), KernelError> {
    let abilities = object::abilities()?;
    if abilities.cong_control.is_none() {
        return Err(KernelError::NoStructOps);
    }
    load(&[control], abilities).map(drop)
}

impl KernelSession {
    /// Loads the programs and registers `controls`. One that the kernel refuses is left out if another is
    /// taken.
    ///
    /// # Errors
    /// None is taken; see [`KernelError`].
    pub fn load(controls: &[KernelControl]) -> Result<Self, KernelError> {
        if !object::has_rights() {
            return Err(KernelError::NoRights);
        }
        let abilities = object::abilities()?;
        if abilities.cong_control.is_none() {
            return Err(KernelError::NoStructOps);
        }
        let mut refused = Vec::new();
        let mut object = match load(controls, abilities) {
            Ok(object) => object,
            Err(error) if controls.len() < 2 => return Err(error),
            Err(_) => {
                let each = controls.iter().map(|control| (*control, load(&[*control], abilities)));
                let (good, bad): (Vec<_>, Vec<_>) = each.partition(|(_, loaded)| loaded.is_ok());
                refused
                    .extend(bad.into_iter().filter_map(|(control, loaded)| Some((control, loaded.err()?))));
                let Some((_, Ok(object))) = good.into_iter().next() else {
                    return Err(refused.pop().map_or(KernelError::NoStructOps, |(_, error)| error));
                };
                object
            }
        };
        let mut registered = Vec::new();
        for control in controls {
            let name = map_of(*control, abilities);
            let Some(mut map) = object.maps_mut().find(|map| map.name() == name && map.autocreate()) else {
                continue;
            };
            let link = map.attach_struct_ops().map_err(|error| match error.kind() {
                ErrorKind::AlreadyExists => KernelError::InUse(control.name()),
                _ => object::refused(&format!("to register {control}"), &error),
            })?;
            registered.push(Registered { control: *control, link, ends_with_owner: abilities.links });
        }
        Ok(KernelSession { registered, refused, _object: object })
    }

    /// The controls that the kernel has taken.
    pub fn registered(&self) -> &[Registered] {
        &self.registered
    }

    /// The controls that the kernel has refused, and why.
    pub fn refused(&self) -> &[(KernelControl, KernelError)] {
        &self.refused
    }

    /// Pins the registrations in `folder`, in a BPF file system: then they stay when the process ends.
    /// Returns the files. Registrations of kernels before Linux 6.4 stay without.
    ///
    /// # Errors
    /// No BPF file system there, or a file is there already.
    pub fn pin(&mut self, folder: &Path) -> Result<Vec<PathBuf>, KernelError> {
        let mut files = Vec::new();
        for one in &mut self.registered {
            if one.ends_with_owner {
                let file = folder.join(one.control.name());
                let what = format!("to pin {}", file.display());
                one.link.pin(&file).map_err(|error| object::refused(&what, &error))?;
                files.push(file);
            } else {
                one.link.disconnect();
            }
        }
        Ok(files)
    }
}

/// Takes away registrations that outlive their owner, as those of kernels before Linux 6.4 do. Returns the
/// controls.
///
/// # Errors
/// No rights.
pub fn unregister() -> Result<Vec<KernelControl>, KernelError> {
    let mut gone = Vec::new();
    for control in KernelControl::ALL {
        for name in [control.name().to_owned(), format!("{control}2")] {
            for map in object::maps(&name, MapType::StructOps) {
                match map.delete(&0u32.to_ne_bytes()) {
                    Ok(()) => gone.push(control),
                    // A link, or not registered any more.
                    Err(error) if error.kind() != ErrorKind::PermissionDenied => {}
                    Err(_) => return Err(KernelError::NoRights),
                }
            }
        }
    }
    Ok(gone)
}

/// Controls of ours that the kernel offers, whoever has loaded them: in this thread's network namespace, as
/// in all.
pub fn registered() -> Vec<KernelControl> {
    let names =
        std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    KernelControl::ALL.into_iter().filter(|c| names.split_whitespace().any(|name| name == c.name())).collect()
}

/// Whether a registration ends with its owner: before Linux 6.4, and where that cannot be known, it does not.
pub fn ends_with_owner() -> bool {
    object::abilities().is_ok_and(|abilities| abilities.links)
}

/// Sets of programs of ours in the kernel: one for the session that runs, and one for each former session as
/// long as connections are under it.
pub fn sets_loaded() -> usize {
    object::maps(object::CONNECTIONS, MapType::SkStorage).len()
}
