//! The connections under our controls.

use crate::object::{self, CONNECTIONS, COUNTERS};
use crate::{KernelConnection, KernelError, namespaces};
use libbpf_rs::{Iter, IterOpts, MapCore, MapFlags, MapHandle, MapType, Object};
use std::io::{BufReader, Read};
use std::os::fd::AsFd;

/// Most connections that are listed. More are counted.
const MAX_ROWS: usize = 1 << 20;

/// Bytes that one call asks for; the kernel gives at most 32 kB.
const CHUNK: usize = 1 << 16;

/// Connections, and what was counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelConnections {
    /// Those that are there, by their addresses.
    pub rows: Vec<KernelConnection>,
    /// Connections that began under our control.
    pub begun: u64,
    /// Of them, those without memory for their state: their window stays as it was.
    pub without_state: u64,
    /// Rows of the trace that were lost, because nobody read them in time.
    pub trace_lost: u64,
    /// Connections that are not in `rows`, because there are too many or because they belong to another
    /// version.
    pub left_out: u64,
    /// Processes whose network namespace could not be known: `rows` may lack connections there.
    pub hidden_processes: usize,
}

/// Lists the connections of all network namespaces that are under a control of ours.
///
/// # Errors
/// [`KernelError::NotLoaded`], no rights, or a kernel that refuses to list.
pub fn connections() -> Result<KernelConnections, KernelError> {
    let maps = object::maps(CONNECTIONS, MapType::SkStorage);
    if maps.is_empty() {
        // The kernel hides the maps of others from those who may only load programs.
        return Err(match object::may_find() {
            true => KernelError::NotLoaded,
            false => KernelError::CannotFind,
        });
    }
    let mut found = KernelConnections::default();
    for map in &maps {
        let mut object = load(map)?;
        let visited = namespaces::visit(|| list(&mut object, &mut found))?;
        found.hidden_processes = visited.hidden_processes;
    }
    for map in object::maps(COUNTERS, MapType::Array) {
        let counters = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok().flatten().unwrap_or_default();
        let mut words = counters.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_ne_bytes));
        found.begun += words.next().unwrap_or(0);
        found.without_state += words.next().unwrap_or(0);
        found.trace_lost += words.next().unwrap_or(0);
    }
    if found.rows.is_empty() && found.left_out == 0 && crate::session::registered().is_empty() {
        // Maps go a moment after their programs.
        return Err(KernelError::NotLoaded);
    }
    found.rows.sort_by_key(|row| (row.addresses, row.id));
    // A connection that moves in the kernel's table while it is read can come twice.
    found.rows.dedup_by_key(|row| (row.addresses, row.id));
    Ok(found)
}

/// Loads the program that lists connections whose state is in `map`.
fn load(map: &MapHandle) -> Result<Object, KernelError> {
    let mut object = object::open("the list of connections", object::LIST)?;
    for mut own in object.maps_mut() {
        // The program's map is the one that is there; its other maps are not needed.
        let done = if own.name() == CONNECTIONS { own.reuse_fd(map.as_fd()) } else { Ok(()) };
        done.map_err(|error| object::refused("to share a map", &error))?;
    }
    object::load("the list of connections", object)
}

/// Lists those of this thread's network namespace.
fn list(object: &mut Object, found: &mut KernelConnections) -> Result<(), KernelError> {
    let program = object.progs_mut().find(|program| program.name() == "list_connections");
    let program = program.ok_or(KernelError::NotLoaded)?;
    let failed = |error: libbpf_rs::Error| object::refused("to list connections", &error);
    let link = program.attach_iter_with_opts(IterOpts::None).map_err(failed)?;
    let mut iter = BufReader::with_capacity(CHUNK, Iter::new(&link).map_err(failed)?);
    read(&mut iter, found).map_err(KernelError::system("read the list of connections"))
}

fn read(from: &mut impl Read, found: &mut KernelConnections) -> std::io::Result<()> {
    let mut row = [0; KernelConnection::SIZE];
    loop {
        let mut filled = 0;
        while let Some(rest) = row.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match from.read(rest) {
                Ok(0) => return Ok(()),
                Ok(n) => filled += n,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        match KernelConnection::parse(&row) {
            Some(status) if found.rows.len() < MAX_ROWS => found.rows.push(status),
            _ => found.left_out += 1,
        }
    }
}
