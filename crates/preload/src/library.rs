//! The stack, in `libfarpace.so`.

#![allow(unsafe_code, reason = "a library that is loaded, and its functions by name")]

use crate::descriptors::{has_other_owner, own};
use crate::plan::plan;
use nix::errno::Errno;
use nix::libc::{self, c_int, c_uint, iovec, mmsghdr, msghdr, size_t, socklen_t, ssize_t, timespec};
use std::ffi::{CStr, CString, c_char, c_long, c_ulong, c_void};
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// How long the end of a program waits for what it has sent, in milliseconds. The kernel would send on after it; here nobody does.
const PATIENCE: c_int = 10_000;

macro_rules! library {
    ($($name:ident : fn($($ty:ty),*) -> $ret:ty,)*) => {
        /// Functions of `farpace.h`, without their `fp_`.
        pub struct Library { $(#[doc = concat!("`fp_", stringify!($name), "`.")] pub $name: extern "C" fn($($ty),*) -> $ret,)* }

        impl Library {
            fn find(handle: *mut c_void) -> Option<Library> {
                Some(Library { $($name: {
                    let name = CString::new(concat!("fp_", stringify!($name))).ok()?;
                    // SAFETY: a handle of dlopen, and a name that ends with a zero byte.
                    let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
                    if found.is_null() {
                        return None;
                    }
                    // SAFETY: not null, and farpace.h says that the function of this name has this type.
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

/// The stack of this process; for the end.
static STACK: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static LIBRARY: OnceLock<Result<Library, Errno>> = OnceLock::new();

/// Says something to whoever looks, each thing once.
pub fn say(said: &OnceLock<()>, text: &str) {
    said.get_or_init(|| tell(text));
}
fn tell(text: &str) {
    // If nobody can read it there, nothing can be done.
    let _ = std::io::stderr().write_all(format!("farpace exec: {text}\n").as_bytes());
}

/// The library with its stack, which is brought up if it was not. What is wrong is said, once.
pub fn library() -> nix::Result<&'static Library> {
    static FORKED: OnceLock<()> = OnceLock::new();
    if has_other_owner() {
        say(
            &FORKED,
            "a process and its children cannot share a host: this child cannot reach farpace's networks",
        );
        return Err(Errno::ENETDOWN);
    }
    LIBRARY
        .get_or_init(|| {
            // Signals are for the threads of the program.
            let before =
                nix::sys::signal::SigSet::all().thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_SETMASK);
            let begun = begin();
            if let Ok(before) = before {
                let _ = before.thread_set_mask();
            }
            begun.map_err(|(error, why)| {
                tell(&format!("cannot bring the host up: {why}"));
                error
            })
        })
        .as_ref()
        .map_err(|error| *error)
}

/// The library, if it is there.
pub fn loaded() -> Option<&'static Library> {
    LIBRARY.get()?.as_ref().ok()
}

fn begin() -> Result<Library, (Errno, String)> {
    let plan = plan().ok_or((Errno::ENETDOWN, "nobody has said where".to_owned()))?;
    let bad = |_| (Errno::EINVAL, "a zero byte in its words".to_owned());
    let file = CString::new(plan.library.as_str()).map_err(bad)?;
    let words = CString::new(plan.words.as_str()).map_err(bad)?;
    // Its own names first: what it calls must be libc's, not what this library has put before it.
    // SAFETY: a string that ends with a zero byte; what the library does when it is loaded is what Rust's libraries do.
    let handle =
        unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_DEEPBIND) };
    if handle.is_null() {
        // SAFETY: dlerror returns null, or a string that lasts until the next call of this thread.
        let why = unsafe { libc::dlerror() };
        let why = match why.is_null() {
            true => plan.library.clone(),
            // SAFETY: as above, and not null.
            false => unsafe { CStr::from_ptr(why) }.to_string_lossy().into_owned(),
        };
        return Err((Errno::ENETDOWN, why));
    }
    let library = Library::find(handle)
        .ok_or_else(|| (Errno::ENETDOWN, format!("`{}` is of another version", plan.library)))?;
    let stack = (library.stack_open)(words.as_ptr());
    if stack.is_null() {
        let error = Errno::last();
        let mut why = [0; 512];
        (library.stack_reason)(why.as_mut_ptr().cast(), why.len());
        let why = CStr::from_bytes_until_nul(&why).unwrap_or_default().to_string_lossy();
        return Err((error, format!("{why} ({})", error.desc())));
    }
    STACK.store(stack, Ordering::Release);
    own();
    // SAFETY: a function without arguments.
    unsafe { libc::atexit(finish) };
    Ok(library)
}

/// The program ends: its connections get what they are still to get.
extern "C" fn finish() {
    if crate::descriptors::is_owner()
        && let Some(library) = loaded()
    {
        let stack = STACK.swap(std::ptr::null_mut(), Ordering::AcqRel);
        if !stack.is_null() && (library.stack_finish)(stack, PATIENCE) != 0 {
            tell(&format!("a peer has not taken everything within {} s", PATIENCE / 1000));
        }
    }
}
