//! `farpace_host_*`: a host that the program drives.

#![allow(unsafe_code, reason = "names for C; what is done with its memory is in memory.rs")]

use super::driven_host::Driven;
use super::{answer, done, guarded, memory, stack};
use crate::home::{Home, Now, WaitFor};
use crate::place::ConfigRefusal;
use crate::reaper::reap;
use farpace_host::is_host_address;
use farpace_live::socket::Stack;
use farpace_units::{ByteCount, Instant};
use farpace_wire::MacAddr;
use nix::errno::Errno;
use nix::libc::{c_int, size_t, ssize_t};
use std::ffi::{c_char, c_short, c_void};
use std::net::IpAddr;
use std::sync::{Arc, PoisonError};

/// Minimum MTU of a link (RFC 791, RFC 8200 §5).
const MIN_MTU_V4: u16 = 68;
const MIN_MTU_V6: u16 = 1280;

/// A host, for C.
pub struct FarpaceHost {
    engine: Arc<Driven>,
    home: Arc<Home>,
}

/// What a program does while one of its calls waits: it advances the time and forwards packets. A result
/// other than 0 ends the wait.
pub type WaitCallback = extern "C" fn(user: *mut c_void, fd: c_int, events: c_short) -> c_int;

/// The user pointer of the program.
struct User(*mut c_void);

// SAFETY: the pointer is not dereferenced here; the header states that any calling thread may get it back.
unsafe impl Send for User {}
// SAFETY: as above.
unsafe impl Sync for User {}

impl User {
    fn get(&self) -> *mut c_void {
        self.0
    }
}

type Ethernet = Option<(MacAddr, u8, Option<IpAddr>)>;

fn create(
    address: *const c_char,
    seed: u64,
    profile: *const c_char,
    mtu: u16,
    ethernet: impl FnOnce(IpAddr) -> Result<Ethernet, ConfigRefusal>,
) -> *mut FarpaceHost {
    let made = guarded(|| -> Result<FarpaceHost, ConfigRefusal> {
        let plain = |error| ConfigRefusal(error, String::new());
        let wrong =
            |text: &str, wanted: &str| ConfigRefusal(Errno::EINVAL, format!("`{text}`: expected {wanted}"));
        let text = memory::text(address).map_err(plain)?.unwrap_or_default();
        let address: IpAddr = text.parse().map_err(|_| wrong(&text, "an address like 10.0.0.1"))?;
        if !is_host_address(address) {
            return Err(wrong(&text, "the address of a single host"));
        }
        let options = stack::options(memory::text(profile).map_err(plain)?.as_deref())?;
        let mtu = if mtu == 0 { 1500 } else { mtu };
        let least = if address.is_ipv4() { MIN_MTU_V4 } else { MIN_MTU_V6 };
        if mtu < least {
            return Err(wrong(&mtu.to_string(), &format!("an MTU of {least} or more")));
        }
        let engine = Arc::new(Driven::new(address, seed, mtu, ethernet(address)?).map_err(plain)?);
        let clock = engine.clone();
        let now: Now = Box::new(move || clock.now());
        let home = Home::new(Stack::over(engine.clone(), mtu), Some(now), options, "", Vec::new());
        let home = home.map_err(plain)?;
        Ok(FarpaceHost { engine, home })
    });
    match made.unwrap_or_else(|| Err(ConfigRefusal(Errno::EIO, "a bug of farpace".to_owned()))) {
        Ok(host) => memory::give(host),
        Err(refusal) => {
            stack::refuse(refusal);
            std::ptr::null_mut()
        }
    }
}

/// Creates a host with IP packets.
#[unsafe(no_mangle)]
pub extern "C" fn farpace_host_create(
    address: *const c_char,
    seed: u64,
    profile: *const c_char,
    mtu: u16,
) -> *mut FarpaceHost {
    create(address, seed, profile, mtu, |_| Ok(None))
}

/// Creates a host with Ethernet frames, which resolves its neighbours by ARP or neighbour discovery.
#[unsafe(no_mangle)]
pub extern "C" fn farpace_host_create_ethernet(
    address: *const c_char,
    seed: u64,
    profile: *const c_char,
    mtu: u16,
    mac: *const u8,
    prefix: u8,
    gateway: *const c_char,
) -> *mut FarpaceHost {
    create(address, seed, profile, mtu, |address| {
        let wrong = |what: &str| ConfigRefusal(Errno::EINVAL, what.to_owned());
        let mac: [u8; 6] = memory::bytes(mac, 6)
            .and_then(|bytes| bytes.try_into().map_err(|_| Errno::EINVAL))
            .map_err(|error| ConfigRefusal(error, "a MAC address has six bytes".to_owned()))?;
        if MacAddr(mac).is_multicast() || mac == [0; 6] {
            return Err(wrong("the MAC address is not that of a single host"));
        }
        if prefix > if address.is_ipv4() { 32 } else { 128 } {
            return Err(wrong("the prefix is longer than an address"));
        }
        let gateway = memory::text(gateway).map_err(|error| ConfigRefusal(error, String::new()))?;
        let gateway = gateway.map(|text| match text.parse::<IpAddr>() {
            Ok(router) if is_host_address(router) && router.is_ipv4() == address.is_ipv4() => Ok(router),
            _ => Err(wrong("the gateway is not the address of a single host of the same family")),
        });
        Ok(Some((MacAddr(mac), prefix, gateway.transpose()?)))
    })
}

/// Ends a host; its sockets fail with ENETDOWN or are reset.
#[unsafe(no_mangle)]
pub extern "C" fn farpace_host_destroy(host: *mut FarpaceHost) {
    guarded(|| {
        if let Some(host) = memory::take(host) {
            host.engine.end();
        }
    });
}

/// Sets the memory limit of the connections of a host. 0, or -1: ENETDOWN.
#[unsafe(no_mangle)]
pub extern "C" fn farpace_host_set_memory(host: *const FarpaceHost, bytes: u64) -> c_int {
    done(|| memory::borrow(host)?.engine.memory(Some(ByteCount::new(bytes))).map(drop))
}

/// Memory of the connections of a host. -1: ENETDOWN.
#[unsafe(no_mangle)]
pub extern "C" fn farpace_host_memory(host: *const FarpaceHost) -> i64 {
    answer(|| Ok(i64::try_from(memory::borrow(host)?.engine.memory(None)?.get()).unwrap_or(i64::MAX)))
}

/// Handles a received packet. 0, or -1: EINVAL: malformed.
#[unsafe(no_mangle)]
pub extern "C" fn farpace_host_input(
    host: *const FarpaceHost,
    packet: *const c_void,
    len: size_t,
    now_ns: u64,
) -> c_int {
    done(|| {
        let host = memory::borrow(host)?;
        host.engine.input(memory::bytes(packet.cast(), len)?, Instant::from_nanos(now_ns))
    })
}

/// The next packet to send, with its departure time; 0: none.
#[unsafe(no_mangle)]
pub extern "C" fn farpace_host_output_at(
    host: *const FarpaceHost,
    buffer: *mut c_void,
    cap: size_t,
    now_ns: u64,
    sent_ns: *mut u64,
) -> ssize_t {
    answer(|| {
        let host = memory::borrow(host)?;
        reap(&host.home, 0);
        let into = memory::bytes_mut(buffer.cast(), cap)?;
        let (len, at) = host.engine.output(into, Instant::from_nanos(now_ns))?;
        if !sent_ns.is_null() && len > 0 {
            memory::write(sent_ns, at.as_nanos())?;
        }
        Ok(len as ssize_t)
    })
}

/// The next packet to send; 0: none.
#[unsafe(no_mangle)]
pub extern "C" fn farpace_host_output(
    host: *const FarpaceHost,
    buffer: *mut c_void,
    cap: size_t,
    now_ns: u64,
) -> ssize_t {
    farpace_host_output_at(host, buffer, cap, now_ns, std::ptr::null_mut())
}

/// Sets the time to `now_ns`. Expired timers fire now, not at their deadline.
#[unsafe(no_mangle)]
pub extern "C" fn farpace_host_oversleep(host: *const FarpaceHost, now_ns: u64) -> c_int {
    done(|| memory::borrow(host)?.engine.oversleep(Instant::from_nanos(now_ns)))
}

/// When to call `farpace_host_output` again; UINT64_MAX: after a received packet or a call on a socket.
#[unsafe(no_mangle)]
pub extern "C" fn farpace_host_deadline(host: *const FarpaceHost) -> u64 {
    let deadline = guarded(|| memory::borrow(host).ok().and_then(|host| host.engine.deadline()));
    deadline.flatten().map_or(u64::MAX, Instant::as_nanos)
}

/// socket(2) on a host.
#[unsafe(no_mangle)]
pub extern "C" fn farpace_host_socket(
    host: *const FarpaceHost,
    domain: c_int,
    kind: c_int,
    protocol: c_int,
) -> c_int {
    answer(|| stack::open(memory::borrow(host)?.home.clone(), domain, kind, protocol))
}

/// Sets how calls on blocking sockets of the host wait; null: they fail with EAGAIN.
#[unsafe(no_mangle)]
pub extern "C" fn farpace_host_set_wait(
    host: *const FarpaceHost,
    wait: Option<WaitCallback>,
    user: *mut c_void,
) -> c_int {
    done(|| {
        let host = memory::borrow(host)?;
        let user = User(user);
        let wait = wait.map(|wait| -> Arc<WaitFor> {
            Arc::new(Box::new(move |fd, events| wait(user.get(), fd, events)))
        });
        *host.home.wait.lock().unwrap_or_else(PoisonError::into_inner) = wait;
        Ok(())
    })
}
