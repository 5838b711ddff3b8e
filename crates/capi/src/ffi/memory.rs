//! Memory and descriptors of the C program. The contract is that of the system's calls: a pointer that is not null points to
//! as many bytes as the call says, for as long as the call lasts, and nobody else changes them meanwhile.

#![allow(unsafe_code, reason = "pointers from C")]

use nix::errno::Errno;
use nix::fcntl::OFlag;
use std::ffi::{CStr, c_char};
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

/// `len` bytes to read.
pub fn bytes<'a>(at: *const u8, len: usize) -> nix::Result<&'a [u8]> {
    match (at.is_null(), len) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Errno::EFAULT),
        // SAFETY: not null, and by the contract of this module `len` bytes that nobody changes during the call. The
        // system's limit on lengths is kept below.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(at, limited(len)) }),
    }
}

/// `len` bytes to write.
pub fn bytes_mut<'a>(at: *mut u8, len: usize) -> nix::Result<&'a mut [u8]> {
    match (at.is_null(), len) {
        (_, 0) => Ok(&mut []),
        (true, _) => Err(Errno::EFAULT),
        // SAFETY: as in `bytes`, and nobody else looks at them during the call.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts_mut(at, limited(len)) }),
    }
}

/// What one call moves at most, as in Linux.
fn limited(len: usize) -> usize {
    len.min(0x7fff_f000)
}

/// Several values to read.
pub fn values<'a, T>(at: *const T, len: usize) -> nix::Result<&'a [T]> {
    match (at.is_null(), len) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Errno::EFAULT),
        // SAFETY: not null, and by the contract `len` values of the type that the header names.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(at, len) }),
    }
}

/// The value behind a pointer.
pub fn read<T: Copy>(at: *const T) -> nix::Result<T> {
    if at.is_null() {
        return Err(Errno::EFAULT);
    }
    // SAFETY: not null, and by the contract a value of this type; C may have aligned it otherwise.
    Ok(unsafe { at.read_unaligned() })
}

/// Puts a value behind a pointer.
pub fn write<T>(at: *mut T, value: T) -> nix::Result<()> {
    if at.is_null() {
        return Err(Errno::EFAULT);
    }
    // SAFETY: as in `read`, and the program lets us write there.
    unsafe { at.write_unaligned(value) };
    Ok(())
}

/// The bytes of a plain C structure.
pub fn raw<T: Copy>(value: &T) -> &[u8] {
    // SAFETY: `T` is a structure of integers without padding, made by us; its bytes live as long as it does.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// A string; none for null.
pub fn text(at: *const c_char) -> nix::Result<Option<String>> {
    if at.is_null() {
        return Ok(None);
    }
    // SAFETY: not null, and by the contract it ends with a zero byte.
    let text = unsafe { CStr::from_ptr(at) };
    text.to_str().map(|text| Some(text.to_owned())).map_err(|_| Errno::EINVAL)
}

/// A descriptor that the program has given for the time of the call.
pub fn borrowed<'a>(fd: RawFd) -> nix::Result<BorrowedFd<'a>> {
    if fd < 0 {
        return Err(Errno::EBADF);
    }
    // SAFETY: not -1. The program has it open during the call; if not, the system says EBADF, and nothing else happens.
    Ok(unsafe { BorrowedFd::borrow_raw(fd) })
}

/// Moves a descriptor to the number `at`, whose file is closed.
pub fn put_at(fd: OwnedFd, at: RawFd, cloexec: bool) -> nix::Result<OwnedFd> {
    let flags = if cloexec { OFlag::O_CLOEXEC } else { OFlag::empty() };
    // SAFETY: the program gives this number away with its call, so that nobody else uses what it meant before.
    unsafe { nix::unistd::dup3_raw(fd, at, flags) }
}

/// The number of the file behind a descriptor; none: it is closed.
pub fn identity(fd: RawFd) -> Option<u64> {
    nix::sys::stat::fstat(borrowed(fd).ok()?).ok().map(|stat| stat.st_ino)
}

/// A pointer for C that means `value`.
pub fn give<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

/// What a pointer of [`give`] means.
pub fn borrow<'a, T>(at: *const T) -> nix::Result<&'a T> {
    if at.is_null() {
        return Err(Errno::EINVAL);
    }
    // SAFETY: not null, so by the contract of the header it came from `give` and was not taken back.
    Ok(unsafe { &*at })
}

/// Takes back what [`give`] gave.
pub fn take<T>(at: *mut T) -> Option<T> {
    if at.is_null() {
        return None;
    }
    // SAFETY: not null, so by the contract of the header it came from `give`, and it is given back once.
    Some(*unsafe { Box::from_raw(at) })
}
