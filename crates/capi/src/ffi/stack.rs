//! Stacks on devices, and creation of sockets.

#![allow(unsafe_code, reason = "names for C; what is done with its memory is in memory.rs")]

use super::{answer, done, guarded, memory, watch_forks};
use crate::creation::{self, open_there};
use crate::home::Home;
use crate::place::{ConfigRefusal, InterfaceConfig};
use crate::reaper::is_used;
use crate::share::remote::{self, Remote};
use crate::share::server::{MIN_RENDEZVOUS_FD, rendezvous_name};
use crate::table;
use farpace_live::socket::{OptionsError, SocketOptions, posix};
use nix::errno::Errno;
use nix::libc::{c_int, size_t, ssize_t};
use nix::sys::socket::{SockFlag, UnixAddr, getpeername};
use std::ffi::c_char;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The bits of a socket's type without flags (SOCK_TYPE_MASK).
const KINDS: c_int = 0xf;

/// How many numbers from [`MIN_RENDEZVOUS_FD`] on a process checks for an inherited rendezvous socket.
const MAX_RENDEZVOUS_FDS: c_int = 16;

/// A stack, for C.
pub struct FpStack(Arc<Home>);

/// The stack of `fp_socket`: the last one.
static LAST: Mutex<Option<Arc<Home>>> = Mutex::new(None);

/// Why the last requested stack could not be created.
static REASON: Mutex<String> = Mutex::new(String::new());

fn last() -> MutexGuard<'static, Option<Arc<Home>>> {
    LAST.lock().unwrap_or_else(PoisonError::into_inner)
}
/// The last stack, under its lock.
pub fn lock_last() -> MutexGuard<'static, Option<Arc<Home>>> {
    last()
}
fn reason() -> MutexGuard<'static, String> {
    REASON.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The options of new sockets of a home, from text as in [`Options::set`].
pub fn options(words: Option<&str>) -> Result<SocketOptions, ConfigRefusal> {
    let mut options = SocketOptions::default();
    options.set(words.unwrap_or_default()).map_err(|error| {
        let code = match error {
            OptionsError::Profile(_) | OptionsError::Congestion(_) => Errno::ENOENT,
            OptionsError::Settings(_) | OptionsError::Word { .. } | OptionsError::Setting { .. } => {
                Errno::EINVAL
            }
        };
        ConfigRefusal(code, error.to_string())
    })?;
    Ok(options)
}

/// Starts a stack on a new TUN device `name`: the kernel has `kernel` (like "10.77.0.1/24") on it, the stack
/// `address`.
#[unsafe(no_mangle)]
pub extern "C" fn fp_stack_tun(
    name: *const c_char,
    kernel: *const c_char,
    address: *const c_char,
    profile: *const c_char,
) -> *mut FpStack {
    give(|| {
        let required = |at, what| {
            let text = memory::text(at).ok().flatten();
            text.ok_or_else(|| ConfigRefusal(Errno::EINVAL, format!("{what} is missing")))
        };
        let name = required(name, "the name")?;
        let kernel = required(kernel, "the kernel's address")?;
        let address = required(address, "the stack's address")?;
        let profile = memory::text(profile).map_err(|error| ConfigRefusal(error, String::new()))?;
        let profile = profile.map_or(String::new(), |profile| format!("profile={profile}"));
        let bits = if address.contains(':') { 128 } else { 32 };
        InterfaceConfig::parse(&format!("tun={name}\nkernel={kernel}\naddress={address}/{bits}\n{profile}"))
    })
}

/// Starts a stack from a configuration text.
#[unsafe(no_mangle)]
pub extern "C" fn fp_stack_open(words: *const c_char) -> *mut FpStack {
    give(|| {
        let words = memory::text(words).ok().flatten();
        InterfaceConfig::parse(&words.ok_or_else(|| ConfigRefusal(Errno::EINVAL, "no words".to_owned()))?)
    })
}

fn give(place: impl FnOnce() -> Result<InterfaceConfig, ConfigRefusal>) -> *mut FpStack {
    let made = guarded(|| {
        let home = place()?.open()?;
        watch_forks();
        Ok(home)
    });
    match made.unwrap_or_else(|| Err(ConfigRefusal(Errno::EIO, "a bug of farpace".to_owned()))) {
        Ok(home) => {
            *last() = Some(home.clone());
            memory::give(FpStack(home))
        }
        Err(refusal) => {
            refuse(refusal);
            std::ptr::null_mut()
        }
    }
}

/// Sets `errno`, and stores the reason for [`fp_stack_reason`].
pub fn refuse(ConfigRefusal(error, why): ConfigRefusal) {
    *reason() = why;
    error.set();
}

/// Why the last stack could not be created, as a string truncated to the buffer. Returns its length.
#[unsafe(no_mangle)]
pub extern "C" fn fp_stack_reason(buffer: *mut c_char, room: size_t) -> ssize_t {
    answer(|| {
        let why = reason().clone();
        if let Some(most) = room.checked_sub(1) {
            let len = why.len().min(most);
            let into = memory::bytes_mut(buffer.cast(), len + 1)?;
            into[..len].copy_from_slice(&why.as_bytes()[..len]);
            into[len] = 0;
        }
        Ok(ssize_t::try_from(why.len()).unwrap_or(ssize_t::MAX))
    })
}

/// Closes all sockets of a stack, waits until their peers have acknowledged the written data, at most this
/// time, and ends it.
#[unsafe(no_mangle)]
pub extern "C" fn fp_stack_finish(stack: *mut FpStack, milliseconds: c_int) -> c_int {
    done(|| {
        own_stack()?;
        let home = &memory::borrow(stack)?.0;
        table::leave_all(home);
        let most = Duration::from_millis(u64::try_from(milliseconds).unwrap_or(u64::MAX));
        let flushed = home.stack.flush(most);
        let stopped = fp_stack_stop(stack);
        if !flushed {
            return Err(Errno::ETIMEDOUT);
        }
        Errno::result(stopped).map(drop)
    })
}

/// Stacks can be changed only by the process that created them.
fn own_stack() -> nix::Result<()> {
    if remote::is_remote() { Err(Errno::EPERM) } else { Ok(()) }
}

/// Allows programs that children of this process execute to use the stack.
#[unsafe(no_mangle)]
pub extern "C" fn fp_stack_share(stack: *const FpStack) -> c_int {
    done(|| {
        own_stack()?;
        memory::borrow(stack)?.0.share().map(drop)
    })
}

/// Closes the sockets of this process, and waits until no other process uses the stack.
#[unsafe(no_mangle)]
pub extern "C" fn fp_stack_wait(stack: *const FpStack, milliseconds: c_int) -> c_int {
    done(|| {
        own_stack()?;
        let home = &memory::borrow(stack)?.0;
        for (fd, socket) in table::descriptors_of(home) {
            table::strike(fd, &socket);
            let _ = nix::unistd::close(fd);
            table::lose(fd, &socket);
        }
        let until = u64::try_from(milliseconds).ok().map(|n| Instant::now() + Duration::from_millis(n));
        while is_used(home) {
            if until.is_some_and(|until| until <= Instant::now()) {
                return Err(Errno::ETIMEDOUT);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    })
}

/// Uses the stack that was created with `words`, in a program that a child of its owner executes: if it has
/// inherited the rendezvous socket.
#[unsafe(no_mangle)]
pub extern "C" fn fp_stack_join(words: *const c_char) -> c_int {
    done(|| {
        let words = memory::text(words)?.ok_or(Errno::EINVAL)?;
        let wanted = rendezvous_name(&words);
        let is_it = |fd: &c_int| {
            let name = getpeername::<UnixAddr>(*fd);
            let is_named = |name: UnixAddr| name.as_abstract().is_some_and(|name| name.starts_with(&wanted));
            name.is_ok_and(is_named) && !memory::has_hung_up(*fd)
        };
        let rendezvous =
            (MIN_RENDEZVOUS_FD..MIN_RENDEZVOUS_FD + MAX_RENDEZVOUS_FDS).find(is_it).ok_or(Errno::ENOENT)?;
        watch_forks();
        remote::begin(rendezvous);
        Ok(())
    })
}

/// Registers an inherited descriptor, if it is a socket of the stack.
#[unsafe(no_mangle)]
pub extern "C" fn fp_socket_inherited(fd: c_int) -> c_int {
    done(|| {
        open_there(Remote::know(fd)?);
        Ok(())
    })
}

/// Ends a stack: its sockets fail with ENETDOWN, and its device is closed.
#[unsafe(no_mangle)]
pub extern "C" fn fp_stack_stop(stack: *mut FpStack) -> c_int {
    done(|| {
        own_stack()?;
        let FpStack(home) = memory::take(stack).ok_or(Errno::EINVAL)?;
        let mut last = last();
        if last.as_ref().is_some_and(|last| Arc::ptr_eq(last, &home)) {
            *last = None;
        }
        drop(last);
        home.stack.stop().map(drop).map_err(|_| Errno::EIO)
    })
}

/// All waiting calls in sockets of a stack fail with EINTR, in every thread.
#[unsafe(no_mangle)]
pub extern "C" fn fp_stack_interrupt(stack: *const FpStack) -> c_int {
    done(|| {
        memory::borrow(stack)?.0.stack.interrupt();
        Ok(())
    })
}

/// socket(2) on the last stack.
#[unsafe(no_mangle)]
pub extern "C" fn fp_socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    answer(|| open_at(None, None, domain, kind, protocol))
}

/// socket(2) on a stack.
#[unsafe(no_mangle)]
pub extern "C" fn fp_stack_socket(
    stack: *const FpStack,
    domain: c_int,
    kind: c_int,
    protocol: c_int,
) -> c_int {
    answer(|| {
        let home = if remote::is_remote() { None } else { Some(memory::borrow(stack)?.0.clone()) };
        open_at(home, None, domain, kind, protocol)
    })
}

/// socket(2) on the last stack, with the descriptor `fd`, whose former file is closed.
#[unsafe(no_mangle)]
pub extern "C" fn fp_socket_at(fd: c_int, domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    answer(|| {
        memory::borrowed(fd)?;
        open_at(None, Some(fd), domain, kind, protocol)
    })
}

/// Creates a socket of a home.
pub fn open(home: Arc<Home>, domain: c_int, kind: c_int, protocol: c_int) -> nix::Result<c_int> {
    open_at(Some(home), None, domain, kind, protocol)
}

/// Without a home: on the last stack, or on the stack of another process.
fn open_at(
    home: Option<Arc<Home>>,
    at: Option<c_int>,
    domain: c_int,
    kind: c_int,
    protocol: c_int,
) -> nix::Result<c_int> {
    let flags = SockFlag::from_bits(kind & !KINDS).ok_or(Errno::EINVAL)?;
    let kind = kind & KINDS;
    let home = match home {
        None if remote::is_remote() => {
            return Ok(open_there(Remote::socket(at, domain, kind, protocol, flags)?));
        }
        None => last().clone().ok_or(Errno::ENETDOWN)?,
        Some(home) => home,
    };
    let inner = posix::PosixSocket::new(home.stack.clone(), domain, kind, protocol, home.options.clone())?;
    creation::open(home, inner, flags, at)
}
