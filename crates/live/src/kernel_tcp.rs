//! `TCP_INFO` of a TCP connection of the kernel, for comparisons and explanations.

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

/// The part of the kernel's `struct tcp_info` that exists since Linux 4.19. All fields are integers, so any
/// bytes are valid.
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

/// The kernel's value of ssthresh before the first reduction.
const NO_THRESHOLD: u32 = 0x7fff_ffff;

/// The state of a kernel connection at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelTcp {
    /// Retransmitted segments.
    pub retransmitted: u64,
    /// Data segments sent.
    pub sent: u64,
    /// Minimum round trip time.
    pub min_rtt: Duration,
    /// Smoothed round trip time.
    pub rtt: Duration,
    /// Congestion window, in segments.
    pub cwnd: u32,
    /// Slow-start threshold, in segments; none before the first reduction.
    pub ssthresh: Option<u32>,
    /// Maximum segment size, in bytes.
    pub mss: u32,
    /// Delivery rate, in byte/s.
    pub delivery_rate: u64,
    /// Segments that were sent and not acknowledged.
    pub unacknowledged: u32,
    /// Bytes that were not sent yet.
    pub unsent: u32,
    /// Bytes that the peer has acknowledged.
    pub acknowledged: u64,
    /// Time with data to send.
    pub busy: Duration,
    /// The part of `busy` that was limited by the receive window.
    pub receive_window: Duration,
    /// The part of `busy` that was limited by the send buffer.
    pub send_buffer: Duration,
}

impl KernelTcp {
    /// Reads the state of this socket. None: it is not a TCP socket, or the kernel is older than 4.19.
    pub fn of(socket: &impl AsFd) -> Option<Self> {
        let mut raw = MaybeUninit::<Raw>::zeroed();
        let mut len = libc::socklen_t::try_from(size_of::<Raw>()).ok()?;
        // SAFETY: the kernel writes at most `len` bytes, all of them within `raw`, whose bytes are all
        // initialised (zeroed) and valid for any value; the descriptor is borrowed and so open.
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
        let [_, unacknowledged, ..] = raw.rcv_mss_to_rcv_ssthresh;
        let [_, _, acknowledged, _] = raw.pacing_to_bytes_received;
        let [_, _, unsent] = raw.segments_notsent;
        Some(KernelTcp {
            unacknowledged,
            unsent,
            acknowledged,
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

/// Connects a kernel socket that uses this congestion control from the start. A socket that changes its
/// congestion control later may keep some state of the first: one that began with BBR stays paced.
///
/// # Errors
/// The congestion control does not exist or is not permitted, or there is no answer within `timeout`.
pub fn connect_kernel(to: SocketAddr, congestion: &str, timeout: Duration) -> io::Result<TcpStream> {
    let family = if to.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let socket = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&socket, TcpCongestion, &OsString::from(congestion))?;
    // The timeout applies to connecting too.
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

    /// Breaks: the values of kernel connections in `--explain` come from the right fields.
    #[test]
    fn values_of_a_kernel_connection_are_read() {
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
    /// Breaks: comparisons with the kernel use the requested congestion control.
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
