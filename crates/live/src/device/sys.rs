//! System calls for packets without a safe wrapper: options of packet sockets, and several packets per call.
//!
//! Invariants of all blocks here: pointers passed to the system point into values that are borrowed until the
//! call returns, with their true lengths; the system keeps none of them; all returned numbers are checked
//! before their use as lengths.

#![allow(unsafe_code, reason = "calls of the system without a safe wrapper; each block says why it is sound")]

use nix::errno::Errno;
use nix::libc;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Maximum number of packets per call.
pub(super) const MAX: usize = 64;

/// Metadata of a received packet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReceivedFrame {
    /// Bytes read into all slices together.
    pub len: usize,
    /// The packet was longer than the slices.
    pub truncated: bool,
    /// The VLAN tag after the addresses: protocol and control information.
    pub tag: Option<(u16, u16)>,
}

/// A buffer for a control message with [`libc::tpacket_auxdata`], aligned as the system requires.
#[repr(C, align(8))]
struct ControlBuffer([u8; 64]);

/// Sends packets. The bytes of a packet are those of its slices in order. Returns the number of accepted
/// packets; an error refers to the first packet.
pub(super) fn send_many<const N: usize>(
    fd: BorrowedFd<'_>,
    packets: &[[IoSlice<'_>; N]],
) -> Result<usize, Errno> {
    // SAFETY: all zeros is a valid value: lengths of zero and null pointers.
    let mut headers: [libc::mmsghdr; MAX] = unsafe { zeroed() };
    for (header, slices) in headers.iter_mut().zip(packets) {
        // `IoSlice` has the layout of `iovec`, as its documentation guarantees.
        header.msg_hdr.msg_iov = slices.as_ptr().cast_mut().cast();
        header.msg_hdr.msg_iovlen = N as _;
    }
    let count = packets.len().min(MAX);
    // SAFETY: the first `count` headers point to slices in `packets`; the system only reads them.
    let sent =
        unsafe { libc::sendmmsg(fd.as_raw_fd(), headers.as_mut_ptr(), count as _, libc::MSG_DONTWAIT as _) };
    Errno::result(sent).map(|sent| usize::try_from(sent).unwrap_or(0).min(count))
}

/// Receives packets into their slices, with the metadata of each in `about`. Returns the number of packets.
pub(super) fn receive_many<const N: usize>(
    fd: BorrowedFd<'_>,
    packets: &mut [[IoSliceMut<'_>; N]],
    about: &mut [ReceivedFrame; MAX],
) -> Result<usize, Errno> {
    const NO_CONTROL: ControlBuffer = ControlBuffer([0; 64]);
    let mut controls = [NO_CONTROL; MAX];
    // SAFETY: as in `send_many`.
    let mut headers: [libc::mmsghdr; MAX] = unsafe { zeroed() };
    for ((header, slices), control) in headers.iter_mut().zip(packets.iter_mut()).zip(&mut controls) {
        header.msg_hdr.msg_iov = slices.as_mut_ptr().cast();
        header.msg_hdr.msg_iovlen = N as _;
        header.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
        header.msg_hdr.msg_controllen = control.0.len() as _;
    }
    let count = packets.len().min(MAX);
    let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    // SAFETY: the first `count` headers point to slices that `packets` borrows mutably, and to control
    // buffers of this function; the timeout is null.
    let received = unsafe {
        libc::recvmmsg(fd.as_raw_fd(), headers.as_mut_ptr(), count as _, flags as _, std::ptr::null_mut())
    };
    let received =
        Errno::result(received).map(|received| usize::try_from(received).unwrap_or(0).min(count))?;
    for (about, header) in about.iter_mut().zip(&headers[..received]) {
        let room = packets.first().map_or(0, |slices| slices.iter().map(|slice| slice.len()).sum());
        let len = header.msg_len as usize;
        *about = ReceivedFrame { len: len.min(room), truncated: len > room, tag: tag(&header.msg_hdr) };
    }
    Ok(received)
}

/// The VLAN tag in the control message of a packet.
fn tag(header: &libc::msghdr) -> Option<(u16, u16)> {
    // SAFETY: `msg_control` and `msg_controllen` are as the system left them after it wrote to a live buffer;
    // `CMSG_FIRSTHDR` returns null or a whole header in it.
    let control = unsafe { libc::CMSG_FIRSTHDR(header).as_ref() }?;
    let enough = size_of::<libc::tpacket_auxdata>() + size_of::<libc::cmsghdr>();
    let ours = control.cmsg_level == libc::SOL_PACKET && control.cmsg_type == libc::PACKET_AUXDATA;
    if !ours || (control.cmsg_len as usize) < enough {
        return None;
    }
    // SAFETY: the message is long enough for the structure, which has no invalid bit patterns; alignment is
    // not assumed.
    let data = unsafe { libc::CMSG_DATA(control).cast::<libc::tpacket_auxdata>().read_unaligned() };
    let valid = |bit| data.tp_status & bit != 0;
    let protocol = if valid(libc::TP_STATUS_VLAN_TPID_VALID) { data.tp_vlan_tpid } else { 0x8100 };
    valid(libc::TP_STATUS_VLAN_VALID).then_some((protocol, data.tp_vlan_tci))
}

/// Sets an integer option of packet sockets.
pub(super) fn set(fd: BorrowedFd<'_>, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    set_raw(fd, option, &value)
}

/// Receive frames for other MAC addresses until the socket is closed.
pub(super) fn be_promiscuous(fd: BorrowedFd<'_>, index: libc::c_int) -> io::Result<()> {
    let request = libc::packet_mreq {
        mr_ifindex: index,
        mr_type: libc::PACKET_MR_PROMISC as _,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_raw(fd, libc::PACKET_ADD_MEMBERSHIP, &request)
}

fn set_raw<T>(fd: BorrowedFd<'_>, option: libc::c_int, value: &T) -> io::Result<()> {
    let len = size_of::<T>() as libc::socklen_t;
    // SAFETY: the system reads `len` bytes from a borrowed value of that length.
    let done = unsafe {
        libc::setsockopt(fd.as_raw_fd(), libc::SOL_PACKET, option, std::ptr::from_ref(value).cast(), len)
    };
    Ok(Errno::result(done).map(drop)?)
}

/// From now on only packets that a program of classic BPF accepts reach the socket.
pub(super) fn attach_filter(fd: BorrowedFd<'_>, program: &[libc::sock_filter]) -> io::Result<()> {
    let len = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let about = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    let size = size_of::<libc::sock_fprog>() as libc::socklen_t;
    // SAFETY: the system reads `size` bytes from a value of that length, and `len` instructions from
    // `program`, which is borrowed; it copies them.
    let done = unsafe {
        let value = std::ptr::from_ref(&about).cast();
        libc::setsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, value, size)
    };
    Ok(Errno::result(done).map(drop)?)
}

/// Packets dropped for lack of buffer space since the last call.
pub(super) fn take_drops(fd: BorrowedFd<'_>) -> u64 {
    let mut stats = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut len = size_of::<libc::tpacket_stats>() as libc::socklen_t;
    // SAFETY: the system writes at most `len` bytes into a structure of that length.
    let done = unsafe {
        let into = std::ptr::from_mut(&mut stats).cast();
        libc::getsockopt(fd.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, into, &mut len)
    };
    if done == 0 { u64::from(stats.tp_drops) } else { 0 }
}

/// Binds to the interface with this index, for all protocols.
pub(super) fn bind(fd: BorrowedFd<'_>, index: u32) -> io::Result<()> {
    // SAFETY: all zeros is a valid value.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as _;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = i32::try_from(index).unwrap_or(0);
    let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the system reads `len` bytes from a value of that length.
    let done = unsafe { libc::bind(fd.as_raw_fd(), std::ptr::from_ref(&address).cast(), len) };
    Ok(Errno::result(done).map(drop)?)
}

/// The MTU of an interface, in bytes.
pub(super) fn mtu(fd: BorrowedFd<'_>, name: &str) -> io::Result<u16> {
    let answer = interface_request(fd, name, libc::SIOCGIFMTU as _)?;
    // SAFETY: the request succeeded, so this member of the union was written.
    let mtu = unsafe { answer.ifr_ifru.ifru_mtu };
    Ok(u16::try_from(mtu).unwrap_or(u16::MAX))
}

/// The link type of an interface (`ARPHRD_`), and the first bytes of its address.
pub(super) fn address(fd: BorrowedFd<'_>, name: &str) -> io::Result<(u16, [u8; 6])> {
    let answer = interface_request(fd, name, libc::SIOCGIFHWADDR as _)?;
    // SAFETY: as in `mtu`.
    let address = unsafe { answer.ifr_ifru.ifru_hwaddr };
    let mut bytes = [0; 6];
    bytes.iter_mut().zip(address.sa_data).for_each(|(to, from)| *to = from as u8);
    Ok((address.sa_family, bytes))
}

/// A request about an interface that reads its name and writes the union after it.
fn interface_request(fd: BorrowedFd<'_>, name: &str, request: libc::Ioctl) -> io::Result<libc::ifreq> {
    // SAFETY: all zeros is a valid value.
    let mut about: libc::ifreq = unsafe { zeroed() };
    // The last byte stays zero, so the name is terminated.
    let room = about.ifr_name.len() - 1;
    for (to, from) in about.ifr_name[..room].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: both requests read and write within the structure.
    let done = unsafe { libc::ioctl(fd.as_raw_fd(), request, &mut about) };
    Errno::result(done)?;
    Ok(about)
}

/// The longest packet towards where a socket is connected, its IP header included, as far as the system
/// knows: in bytes.
pub(super) fn path_mtu(fd: BorrowedFd<'_>, v6: bool) -> io::Result<u16> {
    let (level, option) =
        if v6 { (libc::IPPROTO_IPV6, libc::IPV6_MTU) } else { (libc::IPPROTO_IP, libc::IP_MTU) };
    let mut mtu: libc::c_int = 0;
    let mut len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the system writes at most `len` bytes into a number that is so long.
    let done = unsafe {
        let into = std::ptr::from_mut(&mut mtu).cast();
        libc::getsockopt(fd.as_raw_fd(), level, option, into, &mut len)
    };
    Errno::result(done)?;
    // Loopback has 65,536.
    Ok(u16::try_from(mtu).unwrap_or(u16::MAX))
}
