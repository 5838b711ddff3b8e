//! The calls of both stacks: those of libc, and those of the library under their names in `farpace.h`.

#![allow(unsafe_code, reason = "C functions, called with memory of this file")]

use super::peer::{FIRST_PORT, byte};
use super::program::{Flags, Form, How, Ioctl, Op, SocketOption, Value};
use nix::errno::Errno;
use nix::libc::{self, c_int, c_void, size_t, sockaddr_in, socklen_t, ssize_t};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Mutex;

type Address = *const c_void;

/// What a call gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub ret: i64,
    pub errno: i32,
    /// What it wrote, by name.
    pub values: Vec<(String, i64)>,
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "= {}", self.ret)?;
        if self.errno != 0 {
            write!(f, " {:?}", Errno::from_raw(self.errno))?;
        }
        self.values.iter().try_for_each(|(name, value)| write!(f, " {name} {value}"))
    }
}

/// A host that the library drives.
#[derive(Clone, Copy)]
pub struct HostPtr(pub *mut c_void);
// SAFETY: the library puts calls from several threads in order.
unsafe impl Send for HostPtr {}
// SAFETY: as above.
unsafe impl Sync for HostPtr {}

/// The functions for sockets.
#[derive(Clone, Copy)]
pub struct Table {
    bind: unsafe extern "C" fn(c_int, Address, socklen_t) -> c_int,
    listen: unsafe extern "C" fn(c_int, c_int) -> c_int,
    accept4: unsafe extern "C" fn(c_int, *mut c_void, *mut socklen_t, c_int) -> c_int,
    connect: unsafe extern "C" fn(c_int, Address, socklen_t) -> c_int,
    send: unsafe extern "C" fn(c_int, *const c_void, size_t, c_int) -> ssize_t,
    recv: unsafe extern "C" fn(c_int, *mut c_void, size_t, c_int) -> ssize_t,
    shutdown: unsafe extern "C" fn(c_int, c_int) -> c_int,
    close: unsafe extern "C" fn(c_int) -> c_int,
    getsockname: unsafe extern "C" fn(c_int, *mut c_void, *mut socklen_t) -> c_int,
    getpeername: unsafe extern "C" fn(c_int, *mut c_void, *mut socklen_t) -> c_int,
    setsockopt: unsafe extern "C" fn(c_int, c_int, c_int, *const c_void, socklen_t) -> c_int,
    getsockopt: unsafe extern "C" fn(c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int,
    ioctl: unsafe extern "C" fn(c_int, libc::c_ulong, *mut c_int) -> c_int,
    /// The library's: where sockets are made. None: libc.
    host: Option<(unsafe extern "C" fn(*const c_void, c_int, c_int, c_int) -> c_int, HostPtr)>,
}

mod libc_calls {
    use super::*;
    pub unsafe extern "C" fn bind(fd: c_int, at: Address, len: socklen_t) -> c_int {
        unsafe { libc::bind(fd, at.cast(), len) }
    }
    pub unsafe extern "C" fn accept4(fd: c_int, at: *mut c_void, len: *mut socklen_t, flags: c_int) -> c_int {
        unsafe { libc::accept4(fd, at.cast(), len, flags) }
    }
    pub unsafe extern "C" fn connect(fd: c_int, at: Address, len: socklen_t) -> c_int {
        unsafe { libc::connect(fd, at.cast(), len) }
    }
    pub unsafe extern "C" fn getsockname(fd: c_int, at: *mut c_void, len: *mut socklen_t) -> c_int {
        unsafe { libc::getsockname(fd, at.cast(), len) }
    }
    pub unsafe extern "C" fn getpeername(fd: c_int, at: *mut c_void, len: *mut socklen_t) -> c_int {
        unsafe { libc::getpeername(fd, at.cast(), len) }
    }
    pub unsafe extern "C" fn ioctl(fd: c_int, request: libc::c_ulong, value: *mut c_int) -> c_int {
        unsafe { libc::ioctl(fd, request, value) }
    }
}

impl Table {
    /// The kernel's.
    pub fn of_kernel() -> Self {
        Table {
            bind: libc_calls::bind,
            listen: libc::listen,
            accept4: libc_calls::accept4,
            connect: libc_calls::connect,
            send: libc::send,
            recv: libc::recv,
            shutdown: libc::shutdown,
            close: libc::close,
            getsockname: libc_calls::getsockname,
            getpeername: libc_calls::getpeername,
            setsockopt: libc::setsockopt,
            getsockopt: libc::getsockopt,
            ioctl: libc_calls::ioctl,
            host: None,
        }
    }
}

type Wait = extern "C" fn(*mut c_void, c_int, libc::c_short) -> c_int;

/// The library.
#[derive(Clone, Copy)]
pub struct Library {
    create: unsafe extern "C" fn(*const libc::c_char, u64, *const libc::c_char, u16) -> *mut c_void,
    destroy: unsafe extern "C" fn(*mut c_void),
    input: unsafe extern "C" fn(*const c_void, *const c_void, size_t, u64) -> c_int,
    output: unsafe extern "C" fn(*const c_void, *mut c_void, size_t, u64, *mut u64) -> ssize_t,
    oversleep: unsafe extern "C" fn(*const c_void, u64) -> c_int,
    deadline: unsafe extern "C" fn(*const c_void) -> u64,
    set_wait: unsafe extern "C" fn(*const c_void, Option<Wait>, *mut c_void) -> c_int,
    socket: unsafe extern "C" fn(*const c_void, c_int, c_int, c_int) -> c_int,
    table: Table,
}

impl Library {
    /// Loads it.
    pub fn load(path: &Path) -> Self {
        let name = CString::new(path.to_str().expect("a name in UTF-8")).expect("no zero in it");
        // SAFETY: a library of this workspace, whose functions have the types that `farpace.h` says.
        unsafe {
            let library = libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
            assert!(!library.is_null(), "{} cannot be loaded", path.display());
            macro_rules! function {
                ($name:literal) => {{
                    let symbol = libc::dlsym(library, concat!($name, "\0").as_ptr().cast());
                    assert!(!symbol.is_null(), concat!($name, " is missing"));
                    std::mem::transmute_copy(&symbol)
                }};
            }
            Library {
                create: function!("farpace_host_create"),
                destroy: function!("farpace_host_destroy"),
                input: function!("farpace_host_input"),
                output: function!("farpace_host_output_at"),
                oversleep: function!("farpace_host_oversleep"),
                deadline: function!("farpace_host_deadline"),
                set_wait: function!("farpace_host_set_wait"),
                socket: function!("farpace_host_socket"),
                table: Table {
                    bind: function!("fp_bind"),
                    listen: function!("fp_listen"),
                    accept4: function!("fp_accept4"),
                    connect: function!("fp_connect"),
                    send: function!("fp_send"),
                    recv: function!("fp_recv"),
                    shutdown: function!("fp_shutdown"),
                    close: function!("fp_close"),
                    getsockname: function!("fp_getsockname"),
                    getpeername: function!("fp_getpeername"),
                    setsockopt: function!("fp_setsockopt"),
                    getsockopt: function!("fp_getsockopt"),
                    ioctl: function!("fp_ioctl"),
                    host: None,
                },
            }
        }
    }

    pub fn host(self, address: Ipv4Addr, seed: u64, settings: &str, wait: Wait) -> Host {
        let address = CString::new(address.to_string()).expect("digits");
        let settings = CString::new(settings).expect("words");
        // SAFETY: strings that end with a zero.
        let host = unsafe { (self.create)(address.as_ptr(), seed, settings.as_ptr(), 1500) };
        assert!(!host.is_null(), "a host: {}", Errno::last());
        // SAFETY: the host was just made.
        unsafe { (self.set_wait)(host, Some(wait), std::ptr::null_mut()) };
        Host { library: self, host: HostPtr(host) }
    }
}

/// A host of the library.
pub struct Host {
    library: Library,
    host: HostPtr,
}

impl Drop for Host {
    fn drop(&mut self) {
        // SAFETY: nobody else has it.
        unsafe { (self.library.destroy)(self.host.0) }
    }
}

impl Host {
    pub fn table(&self) -> Table {
        Table { host: Some((self.library.socket, self.host)), ..self.library.table }
    }
    pub fn input(&self, packet: &[u8], now: u64) {
        // SAFETY: as many bytes as it says.
        unsafe { (self.library.input)(self.host.0, packet.as_ptr().cast(), packet.len(), now) };
    }
    /// It is `now`, whatever timers say.
    pub fn oversleep(&self, now: u64) {
        // SAFETY: the host lives.
        unsafe { (self.library.oversleep)(self.host.0, now) };
    }
    /// The next packet, and when it left.
    pub fn output(&self, now: u64) -> Option<(Vec<u8>, u64)> {
        let (mut buffer, mut left) = (vec![0u8; 2048], 0);
        let at = buffer.as_mut_ptr().cast();
        // SAFETY: as many bytes as it says.
        let len = unsafe { (self.library.output)(self.host.0, at, buffer.len(), now, &mut left) };
        buffer.truncate(usize::try_from(len).ok().filter(|len| *len > 0)?);
        Some((buffer, left))
    }
    pub fn deadline(&self) -> u64 {
        // SAFETY: the host lives.
        unsafe { (self.library.deadline)(self.host.0) }
    }
}

/// The sockets of a run, shared with the threads whose calls wait.
#[derive(Default)]
pub struct Sockets {
    fds: Mutex<BTreeMap<u8, Slot>>,
}

#[derive(Clone, Copy)]
struct Slot {
    fd: c_int,
    /// Bytes sent so far: the payload is a pattern.
    sent: i64,
    received: i64,
}

impl Sockets {
    fn slot(&self, slot: u8) -> Slot {
        let none = Slot { fd: -1, sent: 0, received: 0 };
        self.fds.lock().expect("no panic").get(&slot).copied().unwrap_or(none)
    }
    fn put(&self, slot: u8, fd: c_int) {
        self.fds.lock().expect("no panic").insert(slot, Slot { fd, sent: 1, received: 1 });
    }
    fn moved(&self, slot: u8, sent: i64, received: i64) {
        if let Some(s) = self.fds.lock().expect("no panic").get_mut(&slot) {
            s.sent += sent;
            s.received += received;
        }
    }
    /// The descriptor of a slot.
    pub fn fd(&self, slot: u8) -> c_int {
        self.slot(slot).fd
    }
    /// Ends all of them without a word, or with a reset.
    pub fn abort_all(&self, table: &Table) {
        for (_, slot) in std::mem::take(&mut *self.fds.lock().expect("no panic")) {
            let linger = libc::linger { l_onoff: 1, l_linger: 0 };
            // SAFETY: memory of this function.
            unsafe {
                let value = (&raw const linger).cast();
                (table.setsockopt)(slot.fd, libc::SOL_SOCKET, libc::SO_LINGER, value, 8);
                (table.close)(slot.fd);
            }
        }
    }
    /// Ends the waits in all of them.
    pub fn shut_all(&self, table: &Table) {
        for slot in self.fds.lock().expect("no panic").values() {
            // SAFETY: numbers.
            unsafe { (table.shutdown)(slot.fd, libc::SHUT_RDWR) };
        }
    }
}

/// Where the program's addresses lie in this run.
#[derive(Clone, Copy)]
pub struct Place {
    pub remote: Ipv4Addr,
    /// Added to the local ports.
    pub shift: u16,
    /// Congestion control of all sockets.
    pub congestion: Congestion,
}

/// The name of a congestion control.
#[derive(Clone, Copy, Debug, Default)]
pub struct Congestion([u8; 16]);

impl Congestion {
    pub fn named(name: &str) -> Self {
        let mut bytes = [0; 16];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        Congestion(bytes)
    }
}

fn address(ip: Ipv4Addr, port: u16) -> sockaddr_in {
    sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(ip.octets()) },
        sin_zero: [0; 8],
    }
}

const ADDRESS_LEN: socklen_t = size_of::<sockaddr_in>() as socklen_t;

/// Does a call. `blocking`: it may wait.
pub fn call(table: &Table, sockets: &Sockets, place: Place, slot: u8, blocking: bool, op: &Op) -> Outcome {
    let Slot { fd, sent, received } = sockets.slot(slot);
    let mut values = Vec::new();
    let dont = if blocking { 0 } else { libc::MSG_DONTWAIT };
    Errno::clear();
    // SAFETY: every pointer is to memory of this function, with its length.
    let ret: i64 = unsafe {
        match op {
            Op::Socket => {
                let kind =
                    libc::SOCK_STREAM | libc::SOCK_CLOEXEC | if blocking { 0 } else { libc::SOCK_NONBLOCK };
                let fd = match table.host {
                    Some((socket, host)) => socket(host.0, libc::AF_INET, kind, 0),
                    None => libc::socket(libc::AF_INET, kind, 0),
                };
                sockets.put(slot, fd);
                // Of itself a namespace has no choice, so sockets are told.
                let name = place.congestion.0;
                let at = name.as_ptr().cast();
                let told = (table.setsockopt)(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, at, 16);
                assert_eq!(told, 0, "TCP_CONGESTION: {}", Errno::last());
                i64::from(fd.min(0))
            }
            Op::Bind(port) => {
                let port = if *port == 0 { 0 } else { port + place.shift };
                let at = address(Ipv4Addr::UNSPECIFIED, port);
                (table.bind)(fd, (&raw const at).cast(), ADDRESS_LEN).into()
            }
            Op::Listen(backlog) => (table.listen)(fd, *backlog).into(),
            Op::Accept(from) => {
                let kind = if blocking { 0 } else { libc::SOCK_NONBLOCK };
                let (mut at, mut len) = (address(Ipv4Addr::UNSPECIFIED, 0), ADDRESS_LEN);
                let listener = sockets.fd(*from);
                let fd = (table.accept4)(listener, (&raw mut at).cast(), &mut len, kind | libc::SOCK_CLOEXEC);
                if fd >= 0 {
                    sockets.put(slot, fd);
                    values.push(("from".into(), i64::from(u16::from_be(at.sin_port))));
                }
                i64::from(fd.min(0))
            }
            Op::Connect(conn) => {
                let at = address(place.remote, FIRST_PORT + u16::from(*conn));
                (table.connect)(fd, (&raw const at).cast(), ADDRESS_LEN).into()
            }
            Op::Send(len, Flags(flags)) => {
                let bytes: Vec<u8> = (0..i64::from(*len)).map(|n| byte(sent + n)).collect();
                let flags = flags | dont | libc::MSG_NOSIGNAL;
                let n = (table.send)(fd, bytes.as_ptr().cast(), bytes.len(), flags) as i64;
                sockets.moved(slot, n.max(0), 0);
                n
            }
            Op::Recv(len, Flags(flags)) => {
                let mut bytes = vec![0u8; *len as usize];
                let n = (table.recv)(fd, bytes.as_mut_ptr().cast(), bytes.len(), flags | dont) as i64;
                let got = n.clamp(0, i64::from(*len));
                let plain = flags & (libc::MSG_OOB | libc::MSG_TRUNC) == 0;
                if plain && n > 0 && !bytes[..got as usize].iter().zip(received..).all(|(b, n)| *b == byte(n))
                {
                    values.push(("damaged".into(), 1));
                }
                if flags & (libc::MSG_PEEK | libc::MSG_OOB) == 0 {
                    sockets.moved(slot, 0, n.max(0));
                }
                n
            }
            Op::Shutdown(how) => {
                let how = match how {
                    How::Read => libc::SHUT_RD,
                    How::Write => libc::SHUT_WR,
                    How::Both => libc::SHUT_RDWR,
                };
                (table.shutdown)(fd, how).into()
            }
            Op::Close => {
                let ret = (table.close)(fd);
                sockets.fds.lock().expect("no panic").remove(&slot);
                ret.into()
            }
            Op::Set(option, value) => set(table, fd, option, value).into(),
            Op::Get(option) => get(table, fd, option, &mut values).into(),
            Op::Poll => {
                let mut poll = libc::pollfd {
                    fd,
                    events: libc::POLLIN | libc::POLLOUT | libc::POLLRDHUP | libc::POLLPRI,
                    revents: 0,
                };
                let n = libc::poll(&mut poll, 1, 0);
                for (bit, name) in [
                    (libc::POLLIN, "in"),
                    (libc::POLLOUT, "out"),
                    (libc::POLLRDHUP, "rdhup"),
                    (libc::POLLHUP, "hup"),
                    (libc::POLLERR, "err"),
                    (libc::POLLPRI, "pri"),
                ] {
                    if poll.revents & bit != 0 {
                        values.push((name.into(), 1));
                    }
                }
                n.into()
            }
            Op::Info => {
                let mut bytes = [0u8; 256];
                let mut len = bytes.len() as socklen_t;
                let at = bytes.as_mut_ptr().cast();
                let ret = (table.getsockopt)(fd, libc::IPPROTO_TCP, libc::TCP_INFO, at, &mut len);
                if ret == 0 {
                    values = super::info::decode(&bytes[..len as usize]);
                }
                ret.into()
            }
            Op::Ioctl(what) => {
                let request = match what {
                    Ioctl::InQueue => libc::FIONREAD,
                    Ioctl::OutQueue => libc::TIOCOUTQ,
                    Ioctl::OutQueueUnsent => 0x894b, // SIOCOUTQNSD
                };
                let mut value = 0;
                let ret = (table.ioctl)(fd, request, &mut value);
                if ret == 0 {
                    values.push(("is".into(), value.into()));
                }
                ret.into()
            }
            Op::LocalName | Op::PeerName => {
                let (mut at, mut len) = (address(Ipv4Addr::UNSPECIFIED, 0), ADDRESS_LEN);
                let name = if *op == Op::LocalName { table.getsockname } else { table.getpeername };
                let ret = name(fd, (&raw mut at).cast(), &mut len);
                if ret == 0 {
                    let port = u16::from_be(at.sin_port);
                    let shift = if *op == Op::LocalName && port != 0 { place.shift } else { 0 };
                    values.push(("port".into(), i64::from(port.wrapping_sub(shift))));
                }
                ret.into()
            }
        }
    };
    let errno = if ret < 0 { Errno::last_raw() } else { 0 };
    Outcome { ret, errno, values }
}

unsafe fn set(table: &Table, fd: c_int, option: &SocketOption, value: &Value) -> c_int {
    let mut linger = libc::linger { l_onoff: 0, l_linger: 0 };
    let mut time = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let (at, len): (*const c_void, usize) = match value {
        Value::Int(n) => ((&raw const *n).cast(), 4),
        Value::Linger(on, seconds) => {
            (linger.l_onoff, linger.l_linger) = (*on, *seconds);
            ((&raw const linger).cast(), size_of_val(&linger))
        }
        Value::Millis(ms) => {
            time.tv_sec = i64::from(ms / 1000);
            time.tv_usec = i64::from(ms % 1000 * 1000);
            ((&raw const time).cast(), size_of_val(&time))
        }
        Value::Name(name) => (name.as_ptr().cast(), name.len()),
    };
    unsafe { (table.setsockopt)(fd, option.level, option.number, at, len as socklen_t) }
}

unsafe fn get(table: &Table, fd: c_int, option: &SocketOption, values: &mut Vec<(String, i64)>) -> c_int {
    let mut bytes = [0u8; 16];
    let mut len: socklen_t = match option.form {
        Form::Int => 4,
        Form::Linger => 8,
        Form::Timeval | Form::Name => 16,
    };
    let at = bytes.as_mut_ptr().cast();
    let ret = unsafe { (table.getsockopt)(fd, option.level, option.number, at, &mut len) };
    if ret == 0 {
        let int = |at: usize| {
            i64::from(i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]))
        };
        match option.form {
            Form::Int => values.push(("is".into(), int(0))),
            Form::Linger => values.extend([("on".into(), int(0)), ("seconds".into(), int(4))]),
            Form::Timeval => values.extend([("seconds".into(), int(0)), ("us".into(), int(8))]),
            Form::Name => {
                let name = bytes.split(|b| *b == 0).next().unwrap_or_default();
                values.push((String::from_utf8_lossy(name).into_owned(), 1));
            }
        }
    }
    ret
}
