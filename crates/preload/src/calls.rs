//! The libc calls that the program makes.

#![allow(unsafe_code, reason = "names for C, and memory of the program as the manual of each call says")]

use crate::descriptors::{
    DescriptorOwner, UndecidedSocket, add, add_copy, assign_to_farpace, assign_to_kernel, copies_of,
    farpace_descriptors, is_self, note, owner, undecided,
};
use crate::library::{Library, MIN_RENDEZVOUS_FD, finish_for_children, library, loaded, rendezvous};
use crate::plan::{ExecPlan, address, everywhere, plan};
use crate::real;
use crate::rlimits::{is_exhausted, within_limit};
use nix::errno::Errno;
use nix::libc::{self, c_int, c_uint, c_ulong, iovec, off_t, size_t, sockaddr, socklen_t, ssize_t};
use std::ffi::{c_long, c_void};

/// Length of `struct sockaddr_in6`: the maximum that is read of any address.
const LONGEST_ADDRESS: usize = size_of::<libc::sockaddr_in6>();

pub(crate) fn fail<T: From<i8>>(error: Errno) -> T {
    error.set();
    T::from(-1)
}

/// The library, if a call on `fd` belongs to farpace; none: it belongs to the kernel.
pub(crate) fn library_for(fd: c_int) -> Option<&'static Library> {
    match owner(fd) {
        DescriptorOwner::Farpace => loaded(),
        DescriptorOwner::Kernel | DescriptorOwner::Undecided | DescriptorOwner::Parent => None,
    }
}

/// Passes a call to farpace or to the kernel. A descriptor that farpace does not know may have been closed by
/// a call that is not intercepted, and belong to a file now.
macro_rules! given {
    ($fd:ident, $library:ident => $farpace:expr, $kernels:expr) => {{
        if let Some($library) = library_for($fd) {
            let result = $farpace;
            if result != -1 || Errno::last() != Errno::EBADF || !is_something_else($fd) {
                return result;
            }
            assign_to_kernel($fd);
        }
        $kernels
    }};
}
pub(crate) use given;

/// True if the number of a farpace socket belongs to a file now. False if another thread has closed the
/// socket meanwhile.
pub(crate) fn is_something_else(fd: c_int) -> bool {
    let something_else = owner(fd) == DescriptorOwner::Farpace && !real::is_socket(fd);
    Errno::EBADF.set();
    something_else
}

/// The bytes of an address of the program.
pub(crate) fn bytes<'a>(at: *const sockaddr, len: socklen_t) -> &'a [u8] {
    if at.is_null() {
        return &[];
    }
    // SAFETY: not null; by the manual of the call `len` bytes are present for its duration.
    unsafe { std::slice::from_raw_parts(at.cast(), (len as usize).min(LONGEST_ADDRESS)) }
}

/// The port that the kernel has assigned.
fn port_of(fd: c_int) -> u16 {
    let mut room = [0u8; LONGEST_ADDRESS];
    let mut len = room.len() as socklen_t;
    let got = real::getsockname(fd, room.as_mut_ptr().cast(), &mut len);
    if got == 0 { address(&room).map_or(0, |(_, port)| port) } else { 0 }
}

/// Moves an undecided socket to farpace, with its local address and options.
pub(crate) fn adopt(fd: c_int) -> nix::Result<&'static Library> {
    let library = library()?;
    let UndecidedSocket { domain, kind, protocol, options, bound } = undecided(fd).ok_or(Errno::EBADF)?;
    let port = if bound { port_of(fd) } else { 0 };
    let mut flags = kind;
    if real::fcntl(fd, libc::F_GETFL, 0) & libc::O_NONBLOCK != 0 {
        flags |= libc::SOCK_NONBLOCK;
    }
    if real::fcntl(fd, libc::F_GETFD, 0) & libc::FD_CLOEXEC != 0 {
        flags |= libc::SOCK_CLOEXEC;
    }
    let copies = copies_of(fd);
    Errno::result((library.socket_at)(fd, domain, flags, protocol))?;
    assign_to_farpace(fd);
    for copy in copies {
        let cloexec = real::fcntl(copy, libc::F_GETFD, 0) & libc::FD_CLOEXEC != 0;
        Errno::result((library.dup3)(fd, copy, if cloexec { libc::O_CLOEXEC } else { 0 }))?;
        assign_to_farpace(copy);
    }
    for (level, name, value) in options {
        // Unknown options are ignored.
        (library.setsockopt)(fd, level, name, value.as_ptr().cast(), value.len() as socklen_t);
    }
    if port != 0 {
        let at = everywhere(domain, port);
        Errno::result((library.bind)(fd, at.as_ptr().cast(), at.len() as socklen_t))?;
    }
    Ok(library)
}

/// The plan, if `fd` is undecided.
fn plan_for(fd: c_int) -> Option<&'static ExecPlan> {
    plan().filter(|_| owner(fd) == DescriptorOwner::Undecided)
}
/// True if `fd` is undecided, and the destination `to` belongs to farpace.
pub(crate) fn is_for_us(fd: c_int, to: &[u8]) -> bool {
    plan_for(fd).is_some_and(|plan| address(to).is_some_and(|(ip, _)| plan.is_destination(ip)))
}

/// socket(2).
#[unsafe(no_mangle)]
pub extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    let fd = within_limit(real::socket(domain, kind, protocol));
    if fd >= 0 && is_self() {
        let bare = kind & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC);
        let known = matches!(domain, libc::AF_INET | libc::AF_INET6)
            && matches!(
                (bare, protocol),
                (libc::SOCK_STREAM, 0 | libc::IPPROTO_TCP) | (libc::SOCK_DGRAM, 0 | libc::IPPROTO_UDP)
            );
        match known && plan().is_some() {
            true => add(fd, UndecidedSocket { domain, kind: bare, protocol, ..UndecidedSocket::default() }),
            false => assign_to_kernel(fd),
        }
    }
    fd
}

/// bind(2).
#[unsafe(no_mangle)]
pub extern "C" fn bind(fd: c_int, at: *const sockaddr, len: socklen_t) -> c_int {
    given!(fd, library => (library.bind)(fd, at.cast(), len), bind_open(fd, at, len))
}

fn bind_open(fd: c_int, at: *const sockaddr, len: socklen_t) -> c_int {
    let (Some(plan), Some((ip, port)), Some(undecided)) =
        (plan_for(fd), address(bytes(at, len)), undecided(fd))
    else {
        return real::bind(fd, at, len);
    };
    let now = || match adopt(fd) {
        Ok(library) => (library.bind)(fd, at.cast(), len),
        Err(error) => fail(error),
    };
    if plan.has(ip) {
        return now();
    }
    if !ip.is_unspecified() {
        assign_to_kernel(fd);
        return real::bind(fd, at, len);
    }
    // Datagrams may arrive without another call that decides.
    if undecided.kind == libc::SOCK_DGRAM && port != 0 {
        return now();
    }
    match real::bind(fd, at, len) {
        0 => {
            note(fd, |undecided| undecided.bound = true);
            0
        }
        // Another program of the kernel uses the port, or only root may: this does not concern farpace.
        _ if matches!(Errno::last(), Errno::EADDRINUSE | Errno::EACCES) && port != 0 => now(),
        other => other,
    }
}

/// listen(2).
#[unsafe(no_mangle)]
pub extern "C" fn listen(fd: c_int, backlog: c_int) -> c_int {
    given!(fd, library => (library.listen)(fd, backlog), listen_open(fd, backlog))
}

fn listen_open(fd: c_int, backlog: c_int) -> c_int {
    let (Some(_), Some(undecided)) = (plan_for(fd), undecided(fd)) else { return real::listen(fd, backlog) };
    if !undecided.bound {
        let any = everywhere(undecided.domain, 0);
        if real::bind(fd, any.as_ptr().cast(), any.len() as socklen_t) != 0 {
            return -1;
        }
        note(fd, |undecided| undecided.bound = true);
    }
    match adopt(fd) {
        Ok(library) => (library.listen)(fd, backlog),
        Err(error) => fail(error),
    }
}

/// accept4(2).
#[unsafe(no_mangle)]
pub extern "C" fn accept4(fd: c_int, at: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int {
    given!(fd, library => accept_here(library, fd, at, len, flags), {
        let fd = real::accept4(fd, at, len, flags);
        from_kernel(fd)
    })
}

/// accept(2).
#[unsafe(no_mangle)]
pub extern "C" fn accept(fd: c_int, at: *mut sockaddr, len: *mut socklen_t) -> c_int {
    given!(fd, library => accept_here(library, fd, at, len, 0), from_kernel(real::accept(fd, at, len)))
}

fn accept_here(library: &Library, fd: c_int, at: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int {
    if is_exhausted(fd) {
        return fail(Errno::EMFILE);
    }
    accepted((library.accept4)(fd, at.cast(), len, flags))
}

fn accepted(fd: c_int) -> c_int {
    if fd >= 0 {
        assign_to_farpace(fd);
    }
    fd
}
/// Records a number that the kernel has just assigned.
fn from_kernel(fd: c_int) -> c_int {
    if fd >= 0 && matches!(owner(fd), DescriptorOwner::Farpace | DescriptorOwner::Undecided) {
        assign_to_kernel(fd);
    }
    fd
}

/// connect(2).
#[unsafe(no_mangle)]
pub extern "C" fn connect(fd: c_int, to: *const sockaddr, len: socklen_t) -> c_int {
    given!(fd, library => (library.connect)(fd, to.cast(), len), {
        if !is_for_us(fd, bytes(to, len)) {
            return real::connect(fd, to, len);
        }
        match adopt(fd) {
            Ok(library) => (library.connect)(fd, to.cast(), len),
            Err(error) => fail(error),
        }
    })
}

/// shutdown(2).
#[unsafe(no_mangle)]
pub extern "C" fn shutdown(fd: c_int, how: c_int) -> c_int {
    given!(fd, library => (library.shutdown)(fd, how), real::shutdown(fd, how))
}

/// close(2). Unsafe, as Rust's own declaration of it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    close_descriptor(fd)
}

/// What `close` does.
fn close_descriptor(fd: c_int) -> c_int {
    if fd >= MIN_RENDEZVOUS_FD && fd == rendezvous() {
        // The connection to the stack for executed programs: some programs close all descriptors that they do
        // not know.
        return fail(Errno::EBADF);
    }
    match owner(fd) {
        DescriptorOwner::Kernel | DescriptorOwner::Parent => real::close(fd),
        DescriptorOwner::Undecided => {
            assign_to_kernel(fd);
            real::close(fd)
        }
        DescriptorOwner::Farpace => {
            // Before its number can be reused.
            assign_to_kernel(fd);
            match loaded().map(|library| (library.close)(fd)) {
                Some(-1) if Errno::last() == Errno::EBADF => real::close(fd),
                Some(result) => result,
                None => real::close(fd),
            }
        }
    }
}

/// close_range(2): farpace's descriptors are closed one by one, and the connection to the stack stays.
#[unsafe(no_mangle)]
pub extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    let (low, high) =
        (c_int::try_from(first).unwrap_or(c_int::MAX), c_int::try_from(last).unwrap_or(c_int::MAX));
    if flags == 0 {
        farpace_descriptors(low, high)
            .into_iter()
            .filter(|fd| owner(*fd) != DescriptorOwner::Parent)
            .for_each(|fd| {
                close_descriptor(fd);
            });
    }
    let rendezvous = rendezvous();
    if rendezvous < low || rendezvous > high {
        return real::close_range(first, last, flags);
    }
    let rendezvous = rendezvous.cast_unsigned();
    let below = if first < rendezvous { real::close_range(first, rendezvous - 1, flags) } else { 0 };
    if below == 0 && last > rendezvous { real::close_range(rendezvous + 1, last, flags) } else { below }
}

/// closefrom(3).
#[unsafe(no_mangle)]
pub extern "C" fn closefrom(first: c_int) {
    close_range(first.max(0).cast_unsigned(), c_uint::MAX, 0);
}

/// _exit(2): children may use the stack of this process.
#[unsafe(no_mangle)]
pub extern "C" fn _exit(code: c_int) -> ! {
    finish_for_children();
    // SAFETY: a call without memory, which does not return.
    unsafe {
        libc::syscall(libc::SYS_exit_group, code);
    }
    std::process::abort()
}

/// daemon(3), whose parent exits through the intercepted `_exit`.
#[unsafe(no_mangle)]
pub extern "C" fn daemon(stay: c_int, keep: c_int) -> c_int {
    // SAFETY: a call without memory.
    match unsafe { libc::fork() } {
        0 => {}
        -1 => return -1,
        _ => _exit(0),
    }
    // SAFETY: a call without memory.
    if unsafe { libc::setsid() } == -1 {
        return -1;
    }
    if stay == 0 {
        // SAFETY: a string terminated with a zero byte. An error is ignored, as in libc.
        unsafe { libc::chdir(c"/".as_ptr()) };
    }
    if keep == 0 {
        // SAFETY: a string terminated with a zero byte.
        let null = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) };
        if null == -1 {
            return -1;
        }
        for fd in 0..3 {
            dup2(null, fd);
        }
        if null > 2 {
            close_descriptor(null);
        }
    }
    0
}

/// _Exit(3).
#[unsafe(no_mangle)]
pub extern "C" fn _Exit(code: c_int) -> ! {
    _exit(code)
}

/// getsockname(2).
#[unsafe(no_mangle)]
pub extern "C" fn getsockname(fd: c_int, at: *mut sockaddr, len: *mut socklen_t) -> c_int {
    given!(fd, library => (library.getsockname)(fd, at.cast(), len), real::getsockname(fd, at, len))
}

/// getpeername(2).
#[unsafe(no_mangle)]
pub extern "C" fn getpeername(fd: c_int, at: *mut sockaddr, len: *mut socklen_t) -> c_int {
    given!(fd, library => (library.getpeername)(fd, at.cast(), len), real::getpeername(fd, at, len))
}

/// getsockopt(2).
#[unsafe(no_mangle)]
pub extern "C" fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    given!(fd, library => (library.getsockopt)(fd, level, name, value, len), {
        real::getsockopt(fd, level, name, value, len)
    })
}

/// setsockopt(2). Options of an undecided socket apply to the stack that gets it.
#[unsafe(no_mangle)]
pub extern "C" fn setsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    given!(fd, library => (library.setsockopt)(fd, level, name, value, len), {
        let set = real::setsockopt(fd, level, name, value, len);
        if set == 0 && plan_for(fd).is_some() && !value.is_null() {
            // SAFETY: not null, and the kernel has just read this many bytes there.
            let value = unsafe { std::slice::from_raw_parts(value.cast::<u8>(), len as usize) };
            note(fd, |undecided| undecided.options.push((level, name, value.to_vec())));
        }
        set
    })
}

/// read(2). Unsafe, as Rust's own declaration of it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn read(fd: c_int, buffer: *mut c_void, len: size_t) -> ssize_t {
    read_into(fd, buffer, len)
}

/// What `read` does.
fn read_into(fd: c_int, buffer: *mut c_void, len: size_t) -> ssize_t {
    given!(fd, library => (library.recv)(fd, buffer, len, 0), real::read(fd, buffer, len))
}

/// readv(2).
#[unsafe(no_mangle)]
pub extern "C" fn readv(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    given!(fd, library => (library.readv)(fd, parts, count), real::readv(fd, parts, count))
}

/// recv(2).
#[unsafe(no_mangle)]
pub extern "C" fn recv(fd: c_int, buffer: *mut c_void, len: size_t, flags: c_int) -> ssize_t {
    given!(fd, library => (library.recv)(fd, buffer, len, flags), real::recv(fd, buffer, len, flags))
}

/// recvfrom(2).
#[unsafe(no_mangle)]
pub extern "C" fn recvfrom(
    fd: c_int,
    buffer: *mut c_void,
    len: size_t,
    flags: c_int,
    at: *mut sockaddr,
    at_len: *mut socklen_t,
) -> ssize_t {
    given!(fd, library => (library.recvfrom)(fd, buffer, len, flags, at.cast(), at_len), {
        real::recvfrom(fd, buffer, len, flags, at, at_len)
    })
}

/// read(2) of programs compiled with _FORTIFY_SOURCE.
#[unsafe(no_mangle)]
pub extern "C" fn __read_chk(fd: c_int, buffer: *mut c_void, len: size_t, room: size_t) -> ssize_t {
    if len <= room && library_for(fd).is_some() {
        return read_into(fd, buffer, len);
    }
    real::__read_chk(fd, buffer, len, room)
}

/// recv(2) of programs compiled with _FORTIFY_SOURCE.
#[unsafe(no_mangle)]
pub extern "C" fn __recv_chk(
    fd: c_int,
    buffer: *mut c_void,
    len: size_t,
    room: size_t,
    flags: c_int,
) -> ssize_t {
    if len <= room && library_for(fd).is_some() {
        return recv(fd, buffer, len, flags);
    }
    real::__recv_chk(fd, buffer, len, room, flags)
}

/// recvfrom(2) of programs compiled with _FORTIFY_SOURCE.
#[unsafe(no_mangle)]
pub extern "C" fn __recvfrom_chk(
    fd: c_int,
    buffer: *mut c_void,
    len: size_t,
    room: size_t,
    flags: c_int,
    at: *mut sockaddr,
    at_len: *mut socklen_t,
) -> ssize_t {
    if len <= room && library_for(fd).is_some() {
        return recvfrom(fd, buffer, len, flags, at, at_len);
    }
    real::__recvfrom_chk(fd, buffer, len, room, flags, at, at_len)
}

/// Raises SIGPIPE in this thread if a stream cannot send any more, as the kernel does.
pub(crate) fn sent<T: Copy + PartialEq + From<i8>>(
    library: &Library,
    fd: c_int,
    flags: c_int,
    result: T,
) -> T {
    if result != T::from(-1) || Errno::last() != Errno::EPIPE || flags & libc::MSG_NOSIGNAL != 0 {
        return result;
    }
    let (mut kind, mut len) = (0, size_of::<c_int>() as socklen_t);
    let got = (library.getsockopt)(fd, libc::SOL_SOCKET, libc::SO_TYPE, (&raw mut kind).cast(), &mut len);
    if got == 0 && kind == libc::SOCK_STREAM {
        // SAFETY: a call without memory. The handler of the program runs before it returns.
        unsafe { libc::raise(libc::SIGPIPE) };
    }
    Errno::EPIPE.set();
    result
}

/// write(2). Unsafe, as Rust's own declaration of it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: c_int, buffer: *const c_void, len: size_t) -> ssize_t {
    given!(fd, library => sent(library, fd, 0, (library.send)(fd, buffer, len, 0)), {
        real::write(fd, buffer, len)
    })
}

/// writev(2).
#[unsafe(no_mangle)]
pub extern "C" fn writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    given!(fd, library => sent(library, fd, 0, (library.writev)(fd, parts, count)), {
        real::writev(fd, parts, count)
    })
}

/// send(2).
#[unsafe(no_mangle)]
pub extern "C" fn send(fd: c_int, buffer: *const c_void, len: size_t, flags: c_int) -> ssize_t {
    given!(fd, library => sent(library, fd, flags, (library.send)(fd, buffer, len, flags)), {
        real::send(fd, buffer, len, flags)
    })
}

/// sendto(2).
#[unsafe(no_mangle)]
pub extern "C" fn sendto(
    fd: c_int,
    buffer: *const c_void,
    len: size_t,
    flags: c_int,
    to: *const sockaddr,
    to_len: socklen_t,
) -> ssize_t {
    given!(fd, library => {
        sent(library, fd, flags, (library.sendto)(fd, buffer, len, flags, to.cast(), to_len))
    }, {
        if !is_for_us(fd, bytes(to, to_len)) {
            return real::sendto(fd, buffer, len, flags, to, to_len);
        }
        match adopt(fd) {
            Ok(library) => (library.sendto)(fd, buffer, len, flags, to.cast(), to_len),
            Err(error) => fail(error),
        }
    })
}

/// splice(2): refused; programs fall back to other calls.
#[unsafe(no_mangle)]
pub extern "C" fn splice(
    from: c_int,
    from_offset: *mut off_t,
    to: c_int,
    to_offset: *mut off_t,
    len: size_t,
    flags: c_uint,
) -> ssize_t {
    if library_for(from).is_some() || library_for(to).is_some() {
        return fail(Errno::EINVAL);
    }
    real::splice(from, from_offset, to, to_offset, len, flags)
}

/// Records a new descriptor of the same file as `fd`.
fn copied(fd: c_int, copy: c_int) -> c_int {
    if copy >= 0 && copy != fd {
        from_kernel(copy);
        if owner(fd) == DescriptorOwner::Undecided {
            add_copy(fd, copy);
        }
    }
    copy
}

/// dup(2).
#[unsafe(no_mangle)]
pub extern "C" fn dup(fd: c_int) -> c_int {
    given!(fd, library => accepted((library.fcntl)(fd, libc::F_DUPFD, 0)), copied(fd, real::dup(fd)))
}

/// dup2(2).
#[unsafe(no_mangle)]
pub extern "C" fn dup2(fd: c_int, at: c_int) -> c_int {
    dup_to(fd, at, 0, || real::dup2(fd, at))
}

/// dup3(2).
#[unsafe(no_mangle)]
pub extern "C" fn dup3(fd: c_int, at: c_int, flags: c_int) -> c_int {
    dup_to(fd, at, flags, || real::dup3(fd, at, flags))
}

fn dup_to(fd: c_int, at: c_int, flags: c_int, real: impl FnOnce() -> c_int) -> c_int {
    if fd == at {
        return real();
    }
    given!(fd, library => accepted((library.dup3)(fd, at, flags)), {
        if owner(at) == DescriptorOwner::Farpace && real::fcntl(fd, libc::F_GETFD, 0) >= 0 {
            close_descriptor(at);
        }
        copied(fd, real())
    })
}

/// fcntl(2).
#[unsafe(no_mangle)]
pub extern "C" fn fcntl(fd: c_int, command: c_int, value: c_long) -> c_int {
    if !matches!(command, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) {
        return real::fcntl(fd, command, value);
    }
    given!(fd, library => accepted((library.fcntl)(fd, command, value)), {
        copied(fd, real::fcntl(fd, command, value))
    })
}

/// fcntl(2) of programs compiled with large file support.
#[unsafe(no_mangle)]
pub extern "C" fn fcntl64(fd: c_int, command: c_int, value: c_long) -> c_int {
    fcntl(fd, command, value)
}

/// ioctl(2).
#[unsafe(no_mangle)]
pub extern "C" fn ioctl(fd: c_int, request: c_ulong, value: *mut c_void) -> c_int {
    if !matches!(request, libc::FIONREAD | libc::TIOCOUTQ) {
        return real::ioctl(fd, request, value);
    }
    given!(fd, library => (library.ioctl)(fd, request, value.cast()), real::ioctl(fd, request, value))
}
