//! Stacks on devices, and sockets to begin with.

#![allow(unsafe_code, reason = "names for C; what is done with its memory is in memory.rs")]

use super::{answer, done, guarded, memory, watch_forks};
use crate::home::Home;
use crate::place::{ConfigRefusal, InterfaceConfig};
use crate::share::remote::{self, Remote};
use crate::share::server::{DOORS, door_name};
use crate::socket::CapiSocket;
use crate::table;
use farpace_live::socket::{OptionsError, SocketOptions, posix};
use nix::errno::Errno;
use nix::libc::{c_int, size_t, ssize_t};
use nix::sys::socket::{SockFlag, UnixAddr, getpeername};
use std::ffi::c_char;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The bits of a socket's type that name its kind (SOCK_TYPE_MASK); the others are flags.
const KINDS: c_int = 0xf;

/// Where a process looks for the door that it may have inherited, from [`DOORS`] on.
const MAX_DOORS: c_int = 16;

/// A stack, for C.
pub struct FpStack(Arc<Home>);

/// Where `fp_socket` makes sockets: the stack that was made last.
static LAST: Mutex<Option<Arc<Home>>> = Mutex::new(None);

/// Why the last one that was asked for could not be had.
static REASON: Mutex<String> = Mutex::new(String::new());

fn last() -> MutexGuard<'static, Option<Arc<Home>>> {
    LAST.lock().unwrap_or_else(PoisonError::into_inner)
}
/// The stack that was made last, while nobody makes another.
pub fn hold_last() -> MutexGuard<'static, Option<Arc<Home>>> {
    last()
}
fn reason() -> MutexGuard<'static, String> {
    REASON.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The options of new sockets of a home, from words as [`Options::set`] takes them.
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

/// Brings a stack up on a new TUN device `name`: the kernel has `kernel` (like "10.77.0.1/24") on it, the stack `address`.
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

/// Brings a stack up where words say.
#[unsafe(no_mangle)]
pub extern "C" fn fp_stack_open(words: *const c_char) -> *mut FpStack {
    give(|| {
        let words = memory::text(words).ok().flatten();
        InterfaceConfig::parse(&words.ok_or_else(|| ConfigRefusal(Errno::EINVAL, "no words".to_owned()))?)
    })
}

fn give(place: impl FnOnce() -> Result<InterfaceConfig, ConfigRefusal>) -> *mut FpStack {
    let made = guarded(|| place()?.open());
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

/// Sets `errno`, and keeps the reason for [`fp_stack_reason`].
pub fn refuse(ConfigRefusal(error, why): ConfigRefusal) {
    *reason() = why;
    error.set();
}

/// Why the last stack could not be had, as a string: as much as there is room for. Its length.
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

/// Closes all sockets of a stack, waits until their peers have what was written, at most so long, and ends it.
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

/// Stacks are the business of the process that made them.
fn own_stack() -> nix::Result<()> {
    if remote::asks() { Err(Errno::EPERM) } else { Ok(()) }
}

/// From now on programs that children of this process run can use the stack.
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
        while home.is_used() {
            if until.is_some_and(|until| until <= Instant::now()) {
                return Err(Errno::ETIMEDOUT);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    })
}

/// This process, which a child of the owner runs, uses the stack that was made by `words`: if it has inherited the way to it.
#[unsafe(no_mangle)]
pub extern "C" fn fp_stack_join(words: *const c_char) -> c_int {
    done(|| {
        let words = memory::text(words)?.ok_or(Errno::EINVAL)?;
        let wanted = door_name(&words);
        let is_it = |fd: &c_int| {
            let name = getpeername::<UnixAddr>(*fd);
            let is_named = |name: UnixAddr| name.as_abstract().is_some_and(|name| name.starts_with(&wanted));
            name.is_ok_and(is_named) && !memory::has_hung_up(*fd)
        };
        let door = (DOORS..DOORS + MAX_DOORS).find(is_it).ok_or(Errno::ENOENT)?;
        watch_forks();
        remote::begin(door);
        Ok(())
    })
}

/// Takes a descriptor that was inherited, if it is a socket of the stack.
#[unsafe(no_mangle)]
pub extern "C" fn fp_socket_inherited(fd: c_int) -> c_int {
    done(|| {
        CapiSocket::open_there(Remote::know(fd)?);
        Ok(())
    })
}

/// Ends a stack: its sockets fail with ENETDOWN, its device is gone.
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

/// Calls that wait in sockets of a stack now, in any thread, fail with EINTR.
#[unsafe(no_mangle)]
pub extern "C" fn fp_stack_interrupt(stack: *const FpStack) -> c_int {
    done(|| {
        memory::borrow(stack)?.0.stack.interrupt();
        Ok(())
    })
}

/// socket(2) on the stack that was made last.
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
        let home = if remote::asks() { None } else { Some(memory::borrow(stack)?.0.clone()) };
        open_at(home, None, domain, kind, protocol)
    })
}

/// socket(2) on the stack that was made last, with the descriptor `fd`: what that was before is closed.
#[unsafe(no_mangle)]
pub extern "C" fn fp_socket_at(fd: c_int, domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    answer(|| {
        memory::borrowed(fd)?;
        open_at(None, Some(fd), domain, kind, protocol)
    })
}

/// A new socket of a home.
pub fn open(home: Arc<Home>, domain: c_int, kind: c_int, protocol: c_int) -> nix::Result<c_int> {
    open_at(Some(home), None, domain, kind, protocol)
}

/// Of no home: that of the stack that was made last, or of the stack of another process.
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
        None if remote::asks() => {
            return Ok(CapiSocket::open_there(Remote::socket(at, domain, kind, protocol, flags)?));
        }
        None => last().clone().ok_or(Errno::ENETDOWN)?,
        Some(home) => home,
    };
    let inner = posix::PosixSocket::new(home.stack.clone(), domain, kind, protocol, home.options.clone())?;
    CapiSocket::open(home, inner, flags, at)
}
