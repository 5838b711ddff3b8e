//! Memory and descriptors of the C program. The contract is that of system calls: a pointer that is not null
//! points to as many bytes as the call states, for the duration of the call, and nothing else changes them
//! meanwhile.

#![allow(unsafe_code, reason = "pointers from C")]

use farpace_live::socket::posix::{LONGEST_ADDRESS, encode_address};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::libc::{iovec, socklen_t};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::socket::SockFlag;
use std::ffi::{CStr, c_char, c_void};
use std::io::{IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

/// `len` bytes to read.
pub fn bytes<'a>(at: *const u8, len: usize) -> nix::Result<&'a [u8]> {
    match (at.is_null(), len) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Errno::EFAULT),
        _ if is_impossible(len) => Err(Errno::EFAULT),
        // SAFETY: not null, and by the contract of this module `len` bytes that nothing changes during the
        // call. The length is below the limit of the system.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(at, limited(len)) }),
    }
}

/// `len` bytes to write.
pub fn bytes_mut<'a>(at: *mut u8, len: usize) -> nix::Result<&'a mut [u8]> {
    match (at.is_null(), len) {
        (_, 0) => Ok(&mut []),
        (true, _) => Err(Errno::EFAULT),
        _ if is_impossible(len) => Err(Errno::EFAULT),
        // SAFETY: as in `bytes`, and nothing else accesses them during the call.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts_mut(at, limited(len)) }),
    }
}

/// True if no memory is so long: a negative number that was converted.
const fn is_impossible(len: usize) -> bool {
    len > isize::MAX as usize
}

/// Maximum number of bytes per call, as in Linux.
fn limited(len: usize) -> usize {
    len.min(0x7fff_f000)
}

/// Several values to read.
pub fn values<'a, T>(at: *const T, len: usize) -> nix::Result<&'a [T]> {
    match (at.is_null(), len) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Errno::EFAULT),
        // SAFETY: not null, and by the contract `len` values of the type in the header.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(at, len) }),
    }
}

/// Several values to write.
pub fn values_mut<'a, T>(at: *mut T, len: usize) -> nix::Result<&'a mut [T]> {
    match (at.is_null(), len) {
        (_, 0) => Ok(&mut []),
        (true, _) => Err(Errno::EFAULT),
        // SAFETY: not null, and by the contract `len` values of the type in the header, which nothing else
        // accesses during the call.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts_mut(at, len) }),
    }
}

/// Maximum number of buffers per call (IOV_MAX).
pub const MAX_PARTS: usize = 1024;

/// Buffers to write from. As in Linux, their total length is limited to that of one call.
pub fn parts<'a>(at: *const iovec, count: usize) -> nix::Result<Vec<IoSlice<'a>>> {
    let mut left = limited(usize::MAX);
    values(at, count)?
        .iter()
        .map(|part| {
            let len = part_len(part)?.min(left);
            left -= len;
            Ok(IoSlice::new(bytes(part.iov_base.cast(), len)?))
        })
        .collect()
}

/// Buffers to read into.
pub fn parts_mut<'a>(at: *const iovec, count: usize) -> nix::Result<Vec<IoSliceMut<'a>>> {
    let mut left = limited(usize::MAX);
    values(at, count)?
        .iter()
        .map(|part| {
            let len = part_len(part)?.min(left);
            left -= len;
            Ok(IoSliceMut::new(bytes_mut(part.iov_base.cast(), len)?))
        })
        .collect()
}

fn part_len(part: &iovec) -> nix::Result<usize> {
    isize::try_from(part.iov_len).map_err(|_| Errno::EINVAL)?;
    Ok(part.iov_len)
}

/// The address of a program, unparsed (move_addr_to_kernel).
pub fn address<'a>(at: *const c_void, len: socklen_t) -> nix::Result<&'a [u8]> {
    let len = usize::try_from(len.cast_signed()).map_err(|_| Errno::EINVAL)?;
    if len > LONGEST_ADDRESS { Err(Errno::EINVAL) } else { bytes(at.cast(), len) }
}

/// Writes an address to the program, truncated to its buffer, with the full length (move_addr_to_user).
pub fn write_address(address: Option<SocketAddr>, at: *mut c_void, len: *mut socklen_t) -> nix::Result<()> {
    let bytes = address.map(encode_address).unwrap_or_default();
    let room = usize::try_from(read(len)?.cast_signed()).map_err(|_| Errno::EINVAL)?;
    let room = room.min(bytes.len());
    bytes_mut(at.cast(), room)?.copy_from_slice(&bytes[..room]);
    write(len, bytes.len() as socklen_t)
}

/// The value behind a pointer.
pub fn read<T: Copy>(at: *const T) -> nix::Result<T> {
    if at.is_null() {
        return Err(Errno::EFAULT);
    }
    // SAFETY: not null, and by the contract a value of this type; it may be unaligned.
    Ok(unsafe { at.read_unaligned() })
}

/// Writes a value through a pointer.
pub fn write<T>(at: *mut T, value: T) -> nix::Result<()> {
    if at.is_null() {
        return Err(Errno::EFAULT);
    }
    // SAFETY: as in `read`, and the program permits writing.
    unsafe { at.write_unaligned(value) };
    Ok(())
}

/// A string; none for null.
pub fn text(at: *const c_char) -> nix::Result<Option<String>> {
    if at.is_null() {
        return Ok(None);
    }
    // SAFETY: not null, and by the contract terminated with a zero byte.
    let text = unsafe { CStr::from_ptr(at) };
    text.to_str().map(|text| Some(text.to_owned())).map_err(|_| Errno::EINVAL)
}

/// A descriptor of the program for the duration of the call.
pub fn borrowed<'a>(fd: RawFd) -> nix::Result<BorrowedFd<'a>> {
    if fd < 0 {
        return Err(Errno::EBADF);
    }
    // SAFETY: not -1. The program keeps it open during the call; otherwise the system returns EBADF without
    // another effect.
    Ok(unsafe { BorrowedFd::borrow_raw(fd) })
}

/// A new descriptor, from the system or a message.
pub fn owned(fd: RawFd) -> OwnedFd {
    // SAFETY: the system has just returned this descriptor, and nothing else owns it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// The library's own descriptors begin at this number; 0: in the upper half of what the process may have.
static OWN_NUMBERS: AtomicI32 = AtomicI32::new(0);
/// They begin at a number in this range, unless somebody says otherwise: a larger table costs memory.
const USUAL_NUMBERS: RangeInclusive<u64> = 512..=65_536;

/// From now on the library's own descriptors begin at this number, if the limit of the process permits.
pub fn set_own_numbers(first: RawFd) {
    OWN_NUMBERS.store(first, Ordering::Release);
}

/// Moves a descriptor to a number that programs do not expect to be theirs. Programs that close a descriptor
/// twice must not close it: without this library the number would be unused.
pub fn aside(fd: OwnedFd) -> OwnedFd {
    let (soft, _) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or_default();
    let usual = |part: u64| part.clamp(*USUAL_NUMBERS.start(), *USUAL_NUMBERS.end()) as RawFd;
    // Whoever gives a number has raised the limit to three times that, and may raise both later.
    let given = Some(OWN_NUMBERS.load(Ordering::Acquire)).filter(|first| *first > 0);
    let given = given.map(|first| first.max(usual(soft / 3)));
    let mut firsts = given.into_iter().chain([usual(soft / 2)]);
    match firsts.find_map(|first| fcntl(&fd, FcntlArg::F_DUPFD_CLOEXEC(first)).ok()) {
        Some(other) => owned(other),
        None => fd,
    }
}

/// Moves a descriptor to the number `at`, whose file is closed.
pub fn put_at(fd: OwnedFd, at: RawFd, cloexec: bool) -> nix::Result<OwnedFd> {
    let flags = if cloexec { OFlag::O_CLOEXEC } else { OFlag::empty() };
    // SAFETY: the program passes this number with its call, so nothing else uses its former file.
    unsafe { nix::unistd::dup3_raw(fd, at, flags) }
}

/// dup3(2).
pub fn copy_to(fd: RawFd, at: RawFd, flags: i32) -> nix::Result<RawFd> {
    // SAFETY: a call without memory. The program passes the number `at` with its call, so nothing else uses
    // its former file.
    Errno::result(unsafe { nix::libc::dup3(fd, at, flags) })
}

/// SOCK_NONBLOCK and SOCK_CLOEXEC, as currently set on a descriptor.
pub fn flags_of(fd: RawFd) -> nix::Result<SockFlag> {
    let file = OFlag::from_bits_truncate(fcntl(borrowed(fd)?, FcntlArg::F_GETFL)?);
    let own = FdFlag::from_bits_truncate(fcntl(borrowed(fd)?, FcntlArg::F_GETFD)?);
    let mut flags = SockFlag::empty();
    flags.set(SockFlag::SOCK_NONBLOCK, file.contains(OFlag::O_NONBLOCK));
    flags.set(SockFlag::SOCK_CLOEXEC, own.contains(FdFlag::FD_CLOEXEC));
    Ok(flags)
}

/// The inode number of a descriptor; none: it is closed.
pub fn identity(fd: RawFd) -> Option<u64> {
    nix::sys::stat::fstat(borrowed(fd).ok()?).ok().map(|stat| stat.st_ino)
}

/// True if no process has the other end of a local socket.
pub fn has_hung_up(fd: RawFd) -> bool {
    let Ok(fd) = borrowed(fd) else { return true };
    let mut one = [PollFd::new(fd, PollFlags::empty())];
    poll(&mut one, PollTimeout::ZERO).is_ok()
        && one[0].revents().is_some_and(|seen| seen.intersects(PollFlags::POLLHUP | PollFlags::POLLERR))
}

/// A pointer to `value` for C.
pub fn give<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

/// The value of a pointer from [`give`].
pub fn borrow<'a, T>(at: *const T) -> nix::Result<&'a T> {
    if at.is_null() {
        return Err(Errno::EINVAL);
    }
    // SAFETY: not null, so by the contract of the header it came from `give` and was not released.
    Ok(unsafe { &*at })
}

/// Releases the value of a pointer from [`give`].
pub fn take<T>(at: *mut T) -> Option<T> {
    if at.is_null() {
        return None;
    }
    // SAFETY: not null, so by the contract of the header it came from `give`, and is released once.
    Some(*unsafe { Box::from_raw(at) })
}
