//! System calls for AF_XDP and BPF without a safe wrapper.
//!
//! Invariants of all blocks here: pointers passed to the system point to values that live until the call
//! returns, with their true lengths; the system keeps none of them, except the memory of [`register`], whose
//! pages it pins.

#![allow(unsafe_code, reason = "calls of the system without a safe wrapper; each block says why it is sound")]

use super::memory::XdpMemory;
use nix::errno::Errno;
use nix::libc;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{from_mut, from_ref, null, null_mut};

const BPF_MAP_CREATE: libc::c_int = 0;
const BPF_MAP_UPDATE_ELEM: libc::c_int = 2;
const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_LINK_CREATE: libc::c_int = 28;
const MAP_TYPE_XSKMAP: u32 = 17;
const PROGRAM_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;

/// An unbound socket.
pub(super) fn socket() -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    let fd = Errno::result(fd)?;
    // SAFETY: the system has just created it for this process, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Registers memory for frames, in chunks of `chunk` bytes.
pub(super) fn register(fd: BorrowedFd<'_>, memory: &XdpMemory, chunk: u32) -> io::Result<()> {
    // The older layout, which all systems accept.
    let request = libc::xdp_umem_reg_v1 {
        addr: memory.address() as u64,
        len: memory.len() as u64,
        chunk_size: chunk,
        headroom: 0,
    };
    set(fd, libc::XDP_UMEM_REG, &request)
}

/// Creates a ring with this number of entries.
pub(super) fn ring(fd: BorrowedFd<'_>, which: libc::c_int, entries: u32) -> io::Result<()> {
    set(fd, which, &entries)
}

fn set<T>(fd: BorrowedFd<'_>, option: libc::c_int, value: &T) -> io::Result<()> {
    let len = size_of::<T>() as libc::socklen_t;
    // SAFETY: the system reads `len` bytes from a value of that length.
    let done =
        unsafe { libc::setsockopt(fd.as_raw_fd(), libc::SOL_XDP, option, from_ref(value).cast(), len) };
    Ok(Errno::result(done).map(drop)?)
}

/// The offsets of the parts of the rings in their mappings.
pub(super) fn offsets(fd: BorrowedFd<'_>) -> io::Result<libc::xdp_mmap_offsets> {
    // SAFETY: all zeros is a valid value.
    let mut offsets: libc::xdp_mmap_offsets = unsafe { zeroed() };
    if get(fd, libc::XDP_MMAP_OFFSETS, &mut offsets)? != size_of::<libc::xdp_mmap_offsets>() {
        // Before Linux 5.4.
        return Err(io::Error::new(io::ErrorKind::Unsupported, "AF_XDP of this system is too old"));
    }
    Ok(offsets)
}

/// Frames that the system has dropped before the socket since its creation.
pub(super) fn dropped(fd: BorrowedFd<'_>) -> u64 {
    // SAFETY: all zeros is a valid value.
    let mut stats: libc::xdp_statistics = unsafe { zeroed() };
    match get(fd, libc::XDP_STATISTICS, &mut stats) {
        Ok(_) => stats.rx_dropped.saturating_add(stats.rx_ring_full),
        Err(_) => 0,
    }
}

/// True if frames are transferred between the NIC and the shared memory without a copy.
pub(super) fn is_zero_copy(fd: BorrowedFd<'_>) -> bool {
    let mut options = libc::xdp_options { flags: 0 };
    get(fd, libc::XDP_OPTIONS, &mut options).is_ok() && options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0
}

/// Returns the number of bytes written. `T` is a structure of integers without invalid bit patterns.
fn get<T>(fd: BorrowedFd<'_>, option: libc::c_int, value: &mut T) -> io::Result<usize> {
    let mut len = size_of::<T>() as libc::socklen_t;
    // SAFETY: the system writes at most `len` bytes into a value of that length.
    let done =
        unsafe { libc::getsockopt(fd.as_raw_fd(), libc::SOL_XDP, option, from_mut(value).cast(), &mut len) };
    Errno::result(done)?;
    Ok(len as usize)
}

/// Binds the socket to a queue of an interface.
pub(super) fn bind(fd: BorrowedFd<'_>, index: u32, queue: u32, flags: u16) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: flags,
        sxdp_ifindex: index,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: 0,
    };
    let len = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
    // SAFETY: the system reads `len` bytes from a value of that length.
    let done = unsafe { libc::bind(fd.as_raw_fd(), from_ref(&address).cast(), len) };
    Ok(Errno::result(done).map(drop)?)
}

/// Signals to the system that frames can be sent.
pub(super) fn kick(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: no bytes are read from the null pointer: the length is zero.
    let done = unsafe { libc::sendto(fd.as_raw_fd(), null(), 0, libc::MSG_DONTWAIT, null(), 0) };
    Errno::result(done).map(drop)
}

/// Signals to the system that chunks for received frames are available, and checks whether the interface
/// still exists.
pub(super) fn wake(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: no bytes are written to the null pointers: the length is zero.
    let done =
        unsafe { libc::recvfrom(fd.as_raw_fd(), null_mut(), 0, libc::MSG_DONTWAIT, null_mut(), null_mut()) };
    Errno::result(done).map(drop)
}

#[repr(C)]
struct MapCreate {
    kind: u32,
    key_size: u32,
    value_size: u32,
    entries: u32,
}

/// Creates a map from queues to sockets.
pub(super) fn create_map(entries: u32) -> io::Result<OwnedFd> {
    let request = MapCreate { kind: MAP_TYPE_XSKMAP, key_size: 4, value_size: 4, entries };
    bpf_fd(BPF_MAP_CREATE, &request)
}

#[repr(C)]
struct MapUpdate {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// Directs the frames of `queue` to `socket`.
pub(super) fn enter(map: BorrowedFd<'_>, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
    let value = socket.as_raw_fd();
    let request = MapUpdate {
        map: map.as_raw_fd() as u32,
        padding: 0,
        key: from_ref(&queue) as u64,
        value: from_ref(&value) as u64,
        flags: 0,
    };
    bpf(BPF_MAP_UPDATE_ELEM, &request).map(drop)
}

#[repr(C)]
struct ProgramLoad {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach: u32,
}

/// Loads an XDP program.
pub(super) fn load(instructions: &[u64]) -> io::Result<OwnedFd> {
    let license = c"Dual MIT/GPL";
    let mut name = [0; 16];
    name[..7].copy_from_slice(b"farpace");
    let request = ProgramLoad {
        kind: PROGRAM_TYPE_XDP,
        count: instructions.len() as u32,
        instructions: instructions.as_ptr() as u64,
        license: license.as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel: 0,
        flags: 0,
        name,
        interface: 0,
        attach: ATTACH_XDP,
    };
    bpf_fd(BPF_PROG_LOAD, &request)
}

#[repr(C)]
struct LinkCreate {
    program: u32,
    interface: u32,
    attach: u32,
    flags: u32,
}

/// Attaches a program to an interface for the lifetime of the returned descriptor.
pub(super) fn link(program: BorrowedFd<'_>, index: u32, flags: u32) -> io::Result<OwnedFd> {
    let program = program.as_raw_fd() as u32;
    bpf_fd(BPF_LINK_CREATE, &LinkCreate { program, interface: index, attach: ATTACH_XDP, flags })
}

fn bpf_fd<T>(command: libc::c_int, request: &T) -> io::Result<OwnedFd> {
    let fd = bpf(command, request)?;
    // SAFETY: these commands return a descriptor that the system has just created for this process, and
    // nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// `request` is a prefix of the part of `union bpf_attr` for `command`; the system treats the rest as zero.
fn bpf<T>(command: libc::c_int, request: &T) -> io::Result<i32> {
    // SAFETY: the system reads as many bytes as the value has, and the targets of its pointers, which the
    // callers borrow.
    let done = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            libc::c_long::from(command),
            from_ref(request),
            size_of::<T>() as libc::c_long,
        )
    };
    Ok(Errno::result(done as i32)?)
}
