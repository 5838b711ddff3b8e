//! A TUN device, and a tap on it that tells when each packet passed.

#![allow(unsafe_code, reason = "ioctls and control messages that no library wraps")]

use nix::errno::Errno;
use nix::libc::{self, c_int, c_void};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
const IFF_TUN: i16 = 1;
const IFF_NO_PI: i16 = 0x1000;
const PACKET_OUTGOING: u8 = 4;
const ETH_P_ALL: u16 = 3;

fn checked(ret: c_int) -> Result<c_int, String> {
    Errno::result(ret).map_err(|e| e.desc().to_owned())
}

/// A request of netdevice(7) with a name and 24 bytes of zeros.
fn request(name: &str) -> [u8; 40] {
    let mut request = [0; 40];
    request[..name.len()].copy_from_slice(name.as_bytes());
    request
}

/// A new device that carries IP packets.
///
/// # Errors
/// There is none to be had.
pub fn tun(name: &str) -> Result<OwnedFd, String> {
    // SAFETY: a path that ends with zero, and a request as long as the kernel reads.
    unsafe {
        let fd =
            checked(libc::open(c"/dev/net/tun".as_ptr(), libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC))
                .map_err(|e| format!("/dev/net/tun: {e}"))?;
        let fd = OwnedFd::from_raw_fd(fd);
        let mut wanted = request(name);
        wanted[16..18].copy_from_slice(&(IFF_TUN | IFF_NO_PI).to_ne_bytes());
        checked(libc::ioctl(fd.as_raw_fd(), TUNSETIFF, wanted.as_mut_ptr()))
            .map_err(|e| format!("TUN: {e}"))?;
        Ok(fd)
    }
}

/// Sees all that passes the device, with the time.
///
/// # Errors
/// What is missing.
pub fn tap(name: &str) -> Result<OwnedFd, String> {
    // SAFETY: structures of this function, with their lengths.
    unsafe {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        let fd =
            checked(libc::socket(libc::AF_PACKET, kind, 0)).map_err(|e| format!("packet socket: {e}"))?;
        let fd = OwnedFd::from_raw_fd(fd);
        let one: c_int = 1;
        let buffer: c_int = 8 << 20;
        for (option, value) in [(libc::SO_TIMESTAMPNS, &one), (libc::SO_RCVBUFFORCE, &buffer)] {
            let at = (&raw const *value).cast::<c_void>();
            checked(libc::setsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, option, at, 4))?;
        }
        let index = libc::if_nametoindex(std::ffi::CString::new(name).map_err(|e| e.to_string())?.as_ptr());
        let mut address: libc::sockaddr_ll = std::mem::zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = ETH_P_ALL.to_be();
        address.sll_ifindex = index as c_int;
        let len = size_of_val(&address) as u32;
        checked(libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len))?;
        Ok(fd)
    }
}

/// A packet that has passed.
pub struct Passed {
    pub bytes: Vec<u8>,
    /// CLOCK_REALTIME in nanoseconds.
    pub at: i64,
    pub outgoing: bool,
}

/// The next packet that the tap saw.
pub fn passed(tap: RawFd) -> Option<Passed> {
    let mut bytes = vec![0u8; 2048];
    let mut control = [0u64; 16];
    // SAFETY: buffers of this function, with their lengths; the kernel says how much of them it has filled.
    unsafe {
        let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        let mut from: libc::sockaddr_ll = std::mem::zeroed();
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_name = (&raw mut from).cast();
        message.msg_namelen = size_of_val(&from) as u32;
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control);
        let len = libc::recvmsg(tap, &raw mut message, libc::MSG_DONTWAIT);
        bytes.truncate(usize::try_from(len).ok()?);
        let mut at = 0;
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while !header.is_null() {
            if ((*header).cmsg_level, (*header).cmsg_type) == (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS) {
                let time: libc::timespec = libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned();
                at = time.tv_sec * 1_000_000_000 + time.tv_nsec;
            }
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
        Some(Passed { bytes, at, outgoing: from.sll_pkttype == PACKET_OUTGOING })
    }
}

/// Timers of this thread are exact, and it runs as soon as it may.
pub fn hurry() {
    // SAFETY: numbers.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
        libc::setpriority(libc::PRIO_PROCESS, 0, -19);
    }
}
