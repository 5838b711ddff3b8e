//! The stack in `libfarpace.so`.

#![allow(unsafe_code, reason = "a library that is loaded, and its functions by name")]

use crate::descriptors::{self, is_self, take_over_memory};
use crate::plan::plan;
use crate::real;
use nix::errno::Errno;
use nix::libc::{self, c_int, c_uint, iovec, mmsghdr, msghdr, size_t, socklen_t, ssize_t, timespec};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_long, c_ulong, c_void};
use std::io::Write;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// How long an exiting program waits until its data is acknowledged, in milliseconds. A kernel would continue
/// to send after the exit.
const FLUSH_TIMEOUT: c_int = 10_000;

macro_rules! library {
    ($($name:ident : fn($($ty:ty),*) -> $ret:ty,)*) => {
        /// The functions of `farpace.h`, without the prefix `fp_`.
        pub struct Library { $(#[doc = concat!("`fp_", stringify!($name), "`.")] pub $name: extern "C" fn($($ty),*) -> $ret,)* }

        impl Library {
            fn find(handle: *mut c_void) -> Option<Library> {
                Some(Library { $($name: {
                    let name = CString::new(concat!("fp_", stringify!($name))).ok()?;
                    // SAFETY: a handle of dlopen, and a name terminated with a zero byte.
                    let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
                    if found.is_null() {
                        return None;
                    }
                    // SAFETY: not null, and by farpace.h the function of this name has this type.
                    unsafe { std::mem::transmute::<*mut c_void, extern "C" fn($($ty),*) -> $ret>(found) }
                },)* })
            }
        }
    };
}

library! {
    stack_open: fn(*const c_char) -> *mut c_void,
    stack_reason: fn(*mut c_char, size_t) -> ssize_t,
    stack_finish: fn(*mut c_void, c_int) -> c_int,
    stack_share: fn(*const c_void) -> c_int,
    stack_join: fn(*const c_char) -> c_int,
    stack_wait: fn(*const c_void, c_int) -> c_int,
    socket_inherited: fn(c_int) -> c_int,
    socket_at: fn(c_int, c_int, c_int, c_int) -> c_int,
    bind: fn(c_int, *const c_void, socklen_t) -> c_int,
    listen: fn(c_int, c_int) -> c_int,
    accept4: fn(c_int, *mut c_void, *mut socklen_t, c_int) -> c_int,
    connect: fn(c_int, *const c_void, socklen_t) -> c_int,
    readv: fn(c_int, *const iovec, c_int) -> ssize_t,
    recv: fn(c_int, *mut c_void, size_t, c_int) -> ssize_t,
    recvfrom: fn(c_int, *mut c_void, size_t, c_int, *mut c_void, *mut socklen_t) -> ssize_t,
    writev: fn(c_int, *const iovec, c_int) -> ssize_t,
    send: fn(c_int, *const c_void, size_t, c_int) -> ssize_t,
    sendto: fn(c_int, *const c_void, size_t, c_int, *const c_void, socklen_t) -> ssize_t,
    shutdown: fn(c_int, c_int) -> c_int,
    close: fn(c_int) -> c_int,
    getsockname: fn(c_int, *mut c_void, *mut socklen_t) -> c_int,
    getpeername: fn(c_int, *mut c_void, *mut socklen_t) -> c_int,
    setsockopt: fn(c_int, c_int, c_int, *const c_void, socklen_t) -> c_int,
    getsockopt: fn(c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int,
    ioctl: fn(c_int, c_ulong, *mut c_int) -> c_int,
    fcntl: fn(c_int, c_int, c_long) -> c_int,
    dup3: fn(c_int, c_int, c_int) -> c_int,
    sendmsg: fn(c_int, *const msghdr, c_int) -> ssize_t,
    recvmsg: fn(c_int, *mut msghdr, c_int) -> ssize_t,
    sendmmsg: fn(c_int, *mut mmsghdr, c_uint, c_int) -> c_int,
    recvmmsg: fn(c_int, *mut mmsghdr, c_uint, c_int, *const timespec) -> c_int,
}

/// Lowest number of the rendezvous socket, through which children and executed programs reach the stack. As
/// many numbers from here are checked.
pub const MIN_RENDEZVOUS_FD: c_int = 900;
const MAX_RENDEZVOUS_FDS: c_int = 16;
/// Prefix of the name of its other end.
const RENDEZVOUS_PREFIX: &[u8] = b"\0farpace-stack-";

/// The stack of this process, for its exit.
static STACK: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static LIBRARY: OnceLock<Result<Library, Errno>> = OnceLock::new();
/// Held while the library is loaded, so that no child is created meanwhile.
static LOADING: Mutex<()> = Mutex::new(());
/// See [`rendezvous`].
static RENDEZVOUS: AtomicI32 = AtomicI32::new(-1);
/// True if there are children.
static FORKED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// This thread loads the library, and may create children for it.
    static IS_LOADING: Cell<bool> = const { Cell::new(false) };
    /// The locks held while this thread forks.
    static FORK_GUARD: RefCell<Option<LibraryGuard>> = const { RefCell::new(None) };
}
type LibraryGuard =
    (Option<MutexGuard<'static, ()>>, MutexGuard<'static, BTreeMap<RawFd, descriptors::SharedTable>>);

/// The descriptor through which other processes reach the stack; -1: there is none.
pub fn rendezvous() -> c_int {
    RENDEZVOUS.load(Ordering::Acquire)
}

/// Prints a message for the user.
fn print(text: &str) {
    // An error cannot be reported.
    let _ = std::io::stderr().write_all(format!("farpace exec: {text}\n").as_bytes());
}

/// The library with its stack; it is loaded on the first call. An error is printed once.
pub fn library() -> nix::Result<&'static Library> {
    if !is_self() {
        // A child of vfork(2) may only execute a program.
        return Err(Errno::ENETDOWN);
    }
    let begun = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
    let result = LIBRARY.get_or_init(|| bring_up(begin));
    drop(begun);
    result.as_ref().map_err(|error| *error)
}

fn bring_up(work: impl FnOnce() -> Result<Library, (Errno, String)>) -> Result<Library, Errno> {
    IS_LOADING.set(true);
    // Signals are handled by the threads of the program.
    let before = nix::sys::signal::SigSet::all().thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_SETMASK);
    let begun = work();
    if let Ok(before) = before {
        let _ = before.thread_set_mask();
    }
    IS_LOADING.set(false);
    begun.map_err(|(error, why)| {
        print(&format!("cannot bring the host up: {why}"));
        error
    })
}

/// The library, if it is loaded.
pub fn loaded() -> Option<&'static Library> {
    LIBRARY.get()?.as_ref().ok()
}

fn load() -> Result<(Library, CString), (Errno, String)> {
    let plan = plan().ok_or((Errno::ENETDOWN, "nobody has said where".to_owned()))?;
    let bad = |_| (Errno::EINVAL, "a zero byte in its words".to_owned());
    let file = CString::new(plan.library.as_str()).map_err(bad)?;
    let words = CString::new(plan.words.as_str()).map_err(bad)?;
    // With its own symbols first: its calls must reach libc, not the functions of this library. SAFETY: a
    // string terminated with a zero byte; the initialisation of the library is that of Rust libraries.
    let handle =
        unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_DEEPBIND) };
    if handle.is_null() {
        // SAFETY: dlerror returns null, or a string that is valid until the next call in this thread.
        let why = unsafe { libc::dlerror() };
        let why = match why.is_null() {
            true => plan.library.clone(),
            // SAFETY: as above, and not null.
            false => unsafe { CStr::from_ptr(why) }.to_string_lossy().into_owned(),
        };
        return Err((Errno::ENETDOWN, why));
    }
    let library = Library::find(handle);
    let library =
        library.ok_or_else(|| (Errno::ENETDOWN, format!("`{}` is of another version", plan.library)))?;
    Ok((library, words))
}

/// The inherited stack of a parent process, or a new one.
fn begin() -> Result<Library, (Errno, String)> {
    let (library, words) = load()?;
    if (library.stack_join)(words.as_ptr()) == 0 {
        find_rendezvous();
        return Ok(library);
    }
    let stack = (library.stack_open)(words.as_ptr());
    if stack.is_null() {
        let error = Errno::last();
        let mut why = [0; 512];
        (library.stack_reason)(why.as_mut_ptr().cast(), why.len());
        let why = CStr::from_bytes_until_nul(&why).unwrap_or_default().to_string_lossy();
        return Err((error, format!("{why} ({})", error.desc())));
    }
    // If this fails, executed programs cannot reach the stack.
    (library.stack_share)(stack);
    find_rendezvous();
    STACK.store(stack, Ordering::Release);
    // SAFETY: a function without arguments.
    unsafe { libc::atexit(finish) };
    Ok(library)
}

fn find_rendezvous() {
    let is_rendezvous =
        |fd: &c_int| real::peer_name(*fd).is_some_and(|name| name.starts_with(RENDEZVOUS_PREFIX));
    if let Some(rendezvous) = (MIN_RENDEZVOUS_FD..MIN_RENDEZVOUS_FD + MAX_RENDEZVOUS_FDS).find(is_rendezvous)
    {
        RENDEZVOUS.store(rendezvous, Ordering::Release);
    }
}

/// At exit: sends the remaining data of connections, and keeps the stack until all children have ended.
extern "C" fn finish() {
    if !is_self() {
        return;
    }
    let Some(library) = loaded() else { return };
    let stack = STACK.swap(std::ptr::null_mut(), Ordering::AcqRel);
    if stack.is_null() {
        return;
    }
    if (library.stack_wait)(stack, 0) != 0 {
        print("other processes use the host of this one: it waits until they end");
        (library.stack_wait)(stack, -1);
    }
    if (library.stack_finish)(stack, FLUSH_TIMEOUT) != 0 {
        print(&format!("a peer has not taken everything within {} s", FLUSH_TIMEOUT / 1000));
    }
}

/// For programs that end without exit(3): keeps the stack while there are children.
pub fn finish_for_children() {
    if FORKED.load(Ordering::Acquire) {
        finish();
    }
}

/// At load time: installs fork handlers, and registers inherited sockets.
#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static INIT: extern "C" fn() = init;

#[cfg_attr(test, allow(dead_code, reason = "not in the test program"))]
extern "C" fn init() {
    if plan().is_none() {
        return;
    }
    take_over_memory();
    // SAFETY: three functions without arguments, which exist as long as this library.
    unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
    find_rendezvous();
    if rendezvous() < 0 {
        return;
    }
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let all: Vec<c_int> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let all: Vec<_> =
        all.into_iter().filter(|fd| *fd < MIN_RENDEZVOUS_FD && real::is_local_stream(*fd)).collect();
    if all.is_empty() {
        return;
    }
    let joined = || {
        let (library, words) = load()?;
        match (library.stack_join)(words.as_ptr()) {
            0 => Ok(library),
            _ => Err((Errno::ENETDOWN, "the process that had it has ended".to_owned())),
        }
    };
    if let Ok(library) = LIBRARY.get_or_init(|| bring_up(joined)) {
        all.into_iter()
            .filter(|fd| (library.socket_inherited)(*fd) == 0)
            .for_each(descriptors::assign_to_farpace);
    }
}

extern "C" fn prepare() {
    let begun = (!IS_LOADING.get()).then(|| LOADING.lock().unwrap_or_else(PoisonError::into_inner));
    let held = (begun, descriptors::hold());
    FORK_GUARD.with(|place| *place.borrow_mut() = Some(held));
}

extern "C" fn parent() {
    FORKED.store(true, Ordering::Release);
    drop(FORK_GUARD.with(|place| place.borrow_mut().take()));
}

extern "C" fn child() {
    take_over_memory();
    // The stack belongs to the parent.
    STACK.store(std::ptr::null_mut(), Ordering::Release);
    FORKED.store(false, Ordering::Release);
    drop(FORK_GUARD.with(|place| place.borrow_mut().take()));
}
