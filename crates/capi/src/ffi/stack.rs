//! Stacks on devices, and sockets to begin with.

#![allow(unsafe_code, reason = "names for C; what is done with its memory is in memory.rs")]

use super::{answer, done, guarded, memory};
use crate::choices::Choices;
use crate::home::Home;
use crate::socket::{Socket, State};
use farpace_live::device::TunConfig;
use farpace_live::socket::{Options, Stack, StackError};
use nix::errno::Errno;
use nix::libc::{self, c_int};
use nix::sys::socket::SockFlag;
use std::ffi::c_char;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// A stack, for C.
pub struct FpStack(Arc<Home>);

/// Where `fp_socket` makes sockets: the stack that was made last.
static LAST: Mutex<Option<Arc<Home>>> = Mutex::new(None);

fn last() -> std::sync::MutexGuard<'static, Option<Arc<Home>>> {
    LAST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `10.77.0.1/24`.
fn network(text: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = text.split_once('/')?;
    Some((address.parse().ok()?, bits.parse().ok()?))
}

/// The options of new sockets of a home.
pub fn options(profile: Option<&str>) -> nix::Result<Options> {
    profile.map_or(Ok(Options::default()), |name| Options::profile(name).map_err(|_| Errno::ENOENT))
}

/// Brings a stack up on a new TUN device `name`: the kernel has `kernel` (like "10.77.0.1/24") on it, the stack `address`.
#[unsafe(no_mangle)]
pub extern "C" fn fp_stack_tun(
    name: *const c_char,
    kernel: *const c_char,
    address: *const c_char,
    profile: *const c_char,
) -> *mut FpStack {
    let made = guarded(|| -> nix::Result<FpStack> {
        let required = |text| memory::text(text)?.ok_or(Errno::EINVAL);
        let (name, profile) = (required(name)?, memory::text(profile)?);
        let kernel = network(&required(kernel)?).ok_or(Errno::EINVAL)?;
        let address = required(address)?.parse().map_err(|_| Errno::EINVAL)?;
        options(profile.as_deref())?;
        let config = TunConfig { addresses: vec![kernel], ..TunConfig::new(&name) };
        let stack = Stack::on_tun(config, &[address]).map_err(|error| match &error {
            StackError::Device(farpace_live::DeviceError::System { error, .. }) => {
                error.raw_os_error().map_or(Errno::EPERM, Errno::from_raw)
            }
            _ => Errno::EINVAL,
        })?;
        let home = Home::new(stack, false, profile)?;
        *last() = Some(home.clone());
        Ok(FpStack(home))
    });
    match made.unwrap_or(Err(Errno::EIO)) {
        Ok(stack) => memory::give(stack),
        Err(error) => {
            error.set();
            std::ptr::null_mut()
        }
    }
}

/// Ends a stack: its sockets fail with ENETDOWN, its device is gone.
#[unsafe(no_mangle)]
pub extern "C" fn fp_stack_stop(stack: *mut FpStack) -> c_int {
    done(|| {
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
    answer(|| open(last().clone().ok_or(Errno::ENETDOWN)?, domain, kind, protocol))
}

/// socket(2) on a stack.
#[unsafe(no_mangle)]
pub extern "C" fn fp_stack_socket(
    stack: *const FpStack,
    domain: c_int,
    kind: c_int,
    protocol: c_int,
) -> c_int {
    answer(|| open(memory::borrow(stack)?.0.clone(), domain, kind, protocol))
}

/// A new socket of a home.
pub fn open(home: Arc<Home>, domain: c_int, kind: c_int, protocol: c_int) -> nix::Result<c_int> {
    let v6 = match domain {
        libc::AF_INET => false,
        libc::AF_INET6 => true,
        _ => return Err(Errno::EAFNOSUPPORT),
    };
    let flags = SockFlag::from_bits_truncate(kind);
    let state = match (kind & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC), protocol) {
        (libc::SOCK_STREAM, 0 | libc::IPPROTO_TCP) => State::Fresh(None),
        (libc::SOCK_DGRAM, 0 | libc::IPPROTO_UDP) => State::Unbound,
        _ => return Err(Errno::EPROTONOSUPPORT),
    };
    let choices = Choices::new(options(home.profile.as_deref())?);
    Socket::open(home, v6, state, choices, flags)
}
