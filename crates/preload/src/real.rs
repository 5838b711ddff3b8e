//! The calls of the next library, which is libc unless there are more preloaded ones.

#![allow(unsafe_code, reason = "calls by names that are looked up")]

use nix::errno::Errno;
use nix::libc::{
    self, c_int, c_uint, c_ulong, iovec, mmsghdr, msghdr, off_t, pid_t, rlimit, size_t, sockaddr, socklen_t,
    ssize_t,
};
use std::ffi::{CStr, c_long, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// The next function of this name.
fn next(name: &CStr) -> *mut c_void {
    // SAFETY: the name is terminated with a zero byte; RTLD_NEXT is a valid handle.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

/// True if a descriptor is a socket of any kind.
pub fn is_socket(fd: c_int) -> bool {
    let mut about = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the buffer has the length of the structure.
    if unsafe { libc::fstat(fd, about.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: it has been written.
    let about = unsafe { about.assume_init() };
    about.st_mode & libc::S_IFMT == libc::S_IFSOCK
}

/// True if a descriptor is a connected local socket of type SOCK_STREAM, like those of farpace.
pub fn is_local_stream(fd: c_int) -> bool {
    let mut kind = 0;
    let mut len = size_of::<c_int>() as socklen_t;
    let got = getsockopt(fd, libc::SOL_SOCKET, libc::SO_TYPE, (&raw mut kind).cast(), &mut len);
    got == 0 && kind == libc::SOCK_STREAM && peer_name(fd).is_some()
}

/// The name of the peer of a local socket, without its family; none: it is not a local socket.
pub fn peer_name(fd: c_int) -> Option<Vec<u8>> {
    let mut room = [0u8; size_of::<libc::sockaddr_un>()];
    let mut len = room.len() as socklen_t;
    if getpeername(fd, room.as_mut_ptr().cast(), &mut len) != 0 {
        return None;
    }
    let name = room.get(..len as usize)?;
    let family = u16::from_ne_bytes(*name.first_chunk()?);
    (i32::from(family) == libc::AF_UNIX).then(|| name[2..].to_vec())
}

macro_rules! real {
    ($($name:ident ( $($arg:ident : $ty:ty),* ) -> $ret:ty;)*) => { $(
        #[doc = concat!("The real `", stringify!($name), "`.")]
        #[allow(clippy::too_many_arguments, reason = "libc's")]
        pub fn $name($($arg: $ty),*) -> $ret {
            static FOUND: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
            const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            };
            let mut found = FOUND.load(Ordering::Acquire);
            if found.is_null() {
                found = next(NAME);
                FOUND.store(found, Ordering::Release);
            }
            if found.is_null() {
                Errno::ENOSYS.set();
                return -1;
            }
            // SAFETY: not null, and libc's function of this name has this type. The caller is responsible for
            // the arguments.
            unsafe {
                let call: unsafe extern "C" fn($($ty),*) -> $ret = std::mem::transmute(found);
                call($($arg),*)
            }
        }
    )* };
}

real! {
    socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
    bind(fd: c_int, at: *const sockaddr, len: socklen_t) -> c_int;
    listen(fd: c_int, backlog: c_int) -> c_int;
    accept(fd: c_int, at: *mut sockaddr, len: *mut socklen_t) -> c_int;
    accept4(fd: c_int, at: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int;
    connect(fd: c_int, to: *const sockaddr, len: socklen_t) -> c_int;
    shutdown(fd: c_int, how: c_int) -> c_int;
    close(fd: c_int) -> c_int;
    close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int;
    getsockname(fd: c_int, at: *mut sockaddr, len: *mut socklen_t) -> c_int;
    getpeername(fd: c_int, at: *mut sockaddr, len: *mut socklen_t) -> c_int;
    getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void, len: *mut socklen_t) -> c_int;
    setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, len: socklen_t) -> c_int;
    read(fd: c_int, buffer: *mut c_void, len: size_t) -> ssize_t;
    readv(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t;
    recv(fd: c_int, buffer: *mut c_void, len: size_t, flags: c_int) -> ssize_t;
    recvfrom(fd: c_int, buffer: *mut c_void, len: size_t, flags: c_int, at: *mut sockaddr, at_len: *mut socklen_t) -> ssize_t;
    recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t;
    recvmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int, timeout: *mut libc::timespec) -> c_int;
    __read_chk(fd: c_int, buffer: *mut c_void, len: size_t, room: size_t) -> ssize_t;
    __recv_chk(fd: c_int, buffer: *mut c_void, len: size_t, room: size_t, flags: c_int) -> ssize_t;
    __recvfrom_chk(fd: c_int, buffer: *mut c_void, len: size_t, room: size_t, flags: c_int, at: *mut sockaddr, at_len: *mut socklen_t) -> ssize_t;
    write(fd: c_int, buffer: *const c_void, len: size_t) -> ssize_t;
    writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t;
    send(fd: c_int, buffer: *const c_void, len: size_t, flags: c_int) -> ssize_t;
    sendto(fd: c_int, buffer: *const c_void, len: size_t, flags: c_int, to: *const sockaddr, to_len: socklen_t) -> ssize_t;
    sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t;
    sendmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int;
    sendfile(to: c_int, from: c_int, offset: *mut off_t, count: size_t) -> ssize_t;
    splice(from: c_int, from_offset: *mut off_t, to: c_int, to_offset: *mut off_t, len: size_t, flags: c_uint) -> ssize_t;
    getrlimit(resource: c_uint, at: *mut rlimit) -> c_int;
    setrlimit(resource: c_uint, new: *const rlimit) -> c_int;
    prlimit(pid: pid_t, resource: c_uint, new: *const rlimit, old: *mut rlimit) -> c_int;
    sysconf(name: c_int) -> c_long;
    getdtablesize() -> c_int;
    dup(fd: c_int) -> c_int;
    dup2(fd: c_int, at: c_int) -> c_int;
    dup3(fd: c_int, at: c_int, flags: c_int) -> c_int;
    // Their third argument is passed in a register, whether they are declared with `...` or not.
    fcntl(fd: c_int, command: c_int, value: c_long) -> c_int;
    ioctl(fd: c_int, request: c_ulong, value: *mut c_void) -> c_int;
}
