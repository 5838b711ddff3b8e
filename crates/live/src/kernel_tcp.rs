//! What the kernel tells of one of its own TCP connections (`TCP_INFO`), for comparison and for explanations.

#![allow(unsafe_code, reason = "the option has no safe wrapper; see the one block below")]

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::sockopt::{SendTimeout, TcpCongestion};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrStorage, connect, setsockopt, socket};
use nix::sys::time::{TimeVal, TimeValLike};
use std::ffi::OsString;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// The part of the kernel's `struct tcp_info` that is there since Linux 4.19. Integers alone, so any bytes are a value.
#[repr(C)]
#[derive(Clone, Copy)]
struct Raw {
    state: [u8; 8],
    rto_ato: [u32; 2],
    mss: u32,
    rcv_mss_to_rcv_ssthresh: [u32; 12],
    rtt: u32,
    rttvar: u32,
    ssthresh: u32,
    cwnd: u32,
    advmss_to_rcv_space: [u32; 4],
    retransmitted: u32,
    pacing_to_bytes_received: [u64; 4],
    segments_notsent: [u32; 3],
    min_rtt: u32,
    data_in: u32,
    data_out: u32,
    delivery_rate: u64,
    busy: u64,
    receive_window: u64,
    send_buffer: u64,
    delivered: [u32; 2],
    bytes_sent_retransmitted: [u64; 2],
}
const _: () = assert!(size_of::<Raw>() == 216);

/// What the kernel has for a threshold while there is none.
const NO_THRESHOLD: u32 = 0x7fff_ffff;

/// A connection of the kernel at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelTcp {
    /// Segments sent again.
    pub retransmitted: u64,
    /// Data segments sent.
    pub sent: u64,
    /// Smallest round trip.
    pub min_rtt: Duration,
    /// Smoothed round trip.
    pub rtt: Duration,
    /// Congestion window, in segments.
    pub cwnd: u32,
    /// Slow-start threshold, in segments; none while there is none.
    pub ssthresh: Option<u32>,
    /// Largest segment, in bytes.
    pub mss: u32,
    /// Delivery rate, in byte/s.
    pub delivery_rate: u64,
    /// Time with something to send.
    pub busy: Duration,
    /// Of it, limited by the receive window.
    pub receive_window: Duration,
    /// Of it, limited by the send buffer.
    pub send_buffer: Duration,
}

impl KernelTcp {
    /// What the kernel says of this socket. None: it is no TCP socket, or the kernel is older than 4.19.
    pub fn of(socket: &impl AsFd) -> Option<Self> {
        let mut raw = MaybeUninit::<Raw>::zeroed();
        let mut len = libc::socklen_t::try_from(size_of::<Raw>()).ok()?;
        // SAFETY: the kernel writes `len` bytes at most, all of them within `raw`, whose bytes are all initialised (zeroed)
        // and any of which are valid integers; the descriptor is borrowed and so open.
        let raw = unsafe {
            let fd = socket.as_fd().as_raw_fd();
            let result = libc::getsockopt(
                fd,
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                raw.as_mut_ptr().cast(),
                &raw mut len,
            );
            if result != 0 || (len as usize) < size_of::<Raw>() {
                return None;
            }
            raw.assume_init()
        };
        Some(KernelTcp {
            retransmitted: raw.retransmitted.into(),
            sent: raw.data_out.into(),
            min_rtt: Duration::from_micros(raw.min_rtt.into()),
            rtt: Duration::from_micros(raw.rtt.into()),
            cwnd: raw.cwnd,
            ssthresh: (raw.ssthresh < NO_THRESHOLD).then_some(raw.ssthresh),
            mss: raw.mss,
            delivery_rate: raw.delivery_rate,
            busy: Duration::from_micros(raw.busy),
            receive_window: Duration::from_micros(raw.receive_window),
            send_buffer: Duration::from_micros(raw.send_buffer),
        })
    }
}

/// Connects a socket of the kernel that has this congestion control from its beginning. One that is given another later may
/// keep something of its first: what began with BBR stays paced.
///
/// # Errors
/// There is no such congestion control, no right to it, or no answer within `timeout`.
pub fn connect_kernel(to: SocketAddr, congestion: &str, timeout: Duration) -> io::Result<TcpStream> {
    let family = if to.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let socket = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&socket, TcpCongestion, &OsString::from(congestion))?;
    // It holds for connecting, too.
    let seconds = i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX);
    setsockopt(&socket, SendTimeout, &TimeVal::seconds(seconds))?;
    match connect(socket.as_raw_fd(), &SockaddrStorage::from(to)) {
        Ok(()) => {}
        Err(Errno::EINPROGRESS) => return Err(io::ErrorKind::TimedOut.into()),
        Err(error) => return Err(error.into()),
    }
    let stream = TcpStream::from(socket);
    stream.set_write_timeout(None)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::getsockopt;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// Breaks: what `--explain` says of the kernel's connections is read from wrong places.
    #[test]
    fn the_kernel_tells_of_its_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut out = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        out.write_all(&[7; 50_000]).unwrap();
        peer.read_exact(&mut [0; 50_000]).unwrap();
        let seen = KernelTcp::of(&out).unwrap();
        assert!(
            seen.mss > 500
                && seen.cwnd >= 2
                && seen.ssthresh.is_none()
                && seen.sent >= 1
                && seen.retransmitted <= seen.sent,
            "{seen:?}"
        );
        assert!(
            seen.rtt < Duration::from_secs(1) && seen.min_rtt <= seen.rtt && !seen.rtt.is_zero(),
            "{seen:?}"
        );
        assert_eq!(KernelTcp::of(&std::fs::File::open("/dev/null").unwrap()), None);
    }
    /// Breaks: comparisons with the kernel are made with whatever it does by default.
    #[test]
    fn a_connection_begins_with_its_congestion_control() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let stream = connect_kernel(at, "reno", Duration::from_secs(5)).unwrap();
        let name = getsockopt(&stream, TcpCongestion).unwrap();
        assert_eq!(name.to_string_lossy().trim_end_matches('\0'), "reno");
        assert_eq!(stream.write_timeout().unwrap(), None);
        assert!(connect_kernel(at, "nonesuch", Duration::from_secs(5)).is_err());
    }
}
