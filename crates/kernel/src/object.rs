//! The compiled programs, which are part of this library, and how they are loaded.

use crate::KernelError;
use libbpf_rs::btf::{Btf, types};
use libbpf_rs::query::MapInfoIter;
use libbpf_rs::{
    ErrorKind, MapHandle, MapType, Object, ObjectBuilder, OpenObject, PrintLevel, ReferencesType, set_print,
};
use std::path::Path;
use std::sync::{Mutex, Once, PoisonError};

macro_rules! object {
    ($name:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o"))
    };
}

/// The controls, their maps and the trace.
pub(crate) const CONTROL: &[u8] = object!("control");
/// Who is under which control.
pub(crate) const POLICY: &[u8] = object!("policy");
/// Lists connections.
pub(crate) const LIST: &[u8] = object!("list");
/// Pacing classes of a device.
pub(crate) const CLASSES: &[u8] = object!("classes");
/// Gives connections to another control.
pub(crate) const HAND_BACK: &[u8] = object!("hand_back");

/// Map of the state of connections; loaders of other objects find it by this name.
pub(crate) const CONNECTIONS: &str = "fp_connections";
/// Map of the switches.
pub(crate) const CONFIG: &str = "fp_config";
/// Map of the counters.
pub(crate) const COUNTERS: &str = "fp_counters";
/// The rows of the trace.
pub(crate) const TRACE: &str = "fp_trace";

/// What libbpf and the verifier have said since the last call of [`capture`]. libbpf has one log for the
/// process.
static LOG: Mutex<String> = Mutex::new(String::new());
static CAPTURE: Once = Once::new();
/// Longest log that is kept, in bytes.
const MAX_LOG: usize = 1 << 20;

/// Keeps what libbpf says for error messages; it would go to standard error otherwise.
fn capture() {
    CAPTURE.call_once(|| {
        set_print(Some((PrintLevel::Info, |_, text| {
            let mut log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
            if log.len() + text.len() <= MAX_LOG {
                log.push_str(&text);
            }
        })));
    });
    LOG.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

/// What the kernel said to `what`, with what libbpf knows of it.
pub(crate) fn refused(what: &str, error: &libbpf_rs::Error) -> KernelError {
    if error.kind() == ErrorKind::PermissionDenied {
        // The verifier refuses with EACCES too, but only those whom it has let in.
        let log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
        if !log.contains("processed ") && !has_rights() {
            return KernelError::NoRights;
        }
    }
    let log = LOG.lock().unwrap_or_else(PoisonError::into_inner).clone();
    KernelError::Refused { what: what.to_owned(), why: format!("{error:#}"), log }
}

const NET_ADMIN: u64 = 1 << 12;
const SYS_ADMIN: u64 = 1 << 21;
const PERFMON: u64 = 1 << 38;
const BPF: u64 = 1 << 39;

/// Whether this process has all of these capabilities in its effective set.
fn has(wanted: u64) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & wanted == wanted
}

/// Whether this process may load programs.
pub(crate) fn has_rights() -> bool {
    has(NET_ADMIN | SYS_ADMIN) || has(NET_ADMIN | BPF | PERFMON)
}

/// Whether it may find what others have loaded: the kernel gives the numbers of maps and programs to nobody
/// else.
pub(crate) fn may_find() -> bool {
    has(SYS_ADMIN)
}

/// What the kernel's types tell of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Abilities {
    /// Parameters of `cong_control`; none: no congestion control in BPF.
    pub cong_control: Option<usize>,
    /// A registration is a link, which ends with its owner (Linux 6.4).
    pub links: bool,
}

/// Asks the kernel's BTF.
pub(crate) fn abilities() -> Result<Abilities, KernelError> {
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return Err(KernelError::NoBtf);
    }
    capture();
    let btf = Btf::from_vmlinux().map_err(|error| refused("to show its types", &error))?;
    let ops = btf.type_by_name::<types::Struct<'_>>("tcp_congestion_ops");
    let cong_control = ops.and_then(|ops| {
        let member = ops.iter().find(|m| m.name.is_some_and(|name| name == "cong_control"))?;
        let pointer = btf.type_by_id::<types::Ptr<'_>>(member.ty)?;
        Some(btf.type_by_id::<types::FuncProto<'_>>(pointer.referenced_type_id())?.len())
    });
    let links = btf.type_by_name::<types::Struct<'_>>("bpf_struct_ops_link").is_some();
    Ok(Abilities { cong_control, links })
}

/// Opens an object, so that it can be adapted before it is loaded.
pub(crate) fn open(name: &str, object: &[u8]) -> Result<OpenObject, KernelError> {
    capture();
    let mut builder = ObjectBuilder::default();
    let opened = builder.name(name).and_then(|builder| builder.open_memory(object));
    opened.map_err(|error| refused(name, &error))
}

/// Loads it.
pub(crate) fn load(name: &str, object: OpenObject) -> Result<Object, KernelError> {
    object.load().map_err(|error| refused(name, &error))
}

/// Maps of ours that are in the kernel: those of the session that runs, and those of former ones as long as
/// connections are under their programs.
pub(crate) fn maps(name: &str, kind: MapType) -> Vec<MapHandle> {
    let ours = MapInfoIter::default().filter(|map| map.ty == kind && map.name == name);
    // One that has gone meanwhile is not missed.
    ours.filter_map(|map| MapHandle::from_map_id(map.id).ok()).collect()
}
