//! ICMP errors "too big" about TCP, as they leave an interface: those that the kernel makes when it forwards
//! a packet do not pass any device that a program could read.

use super::{is_interface_name, sys};
use bytes::Bytes;
use farpace_wire::{MacAddr, Packet};
use nix::errno::Errno;
use nix::libc;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::sockopt::RcvBuf;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, setsockopt, socket};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// The longest error: routers quote as much as fits into 576 bytes over IPv4, and 1280 over IPv6.
const LONGEST: usize = 2_048;
/// Memory for errors that wait: about a hundred.
const MEMORY: usize = 128 << 10;

/// Instructions of classic BPF: loads of 1, 2 and 4 bytes, relative to X, of the length of an IPv4 header;
/// jumps; the end.
const LOAD_1: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16;
const LOAD_4: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const LOAD_1_AT_X: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_IND) as u16;
const LOAD_2_AT_X: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_IND) as u16;
const X_IS_HEADER: u16 = (libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH) as u16;
const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// The errors that leave an interface.
#[derive(Debug)]
pub struct TooBigErrors {
    socket: OwnedFd,
    interface: String,
    /// The interface with this name when the socket was bound; 0: there was none.
    index: u32,
}

impl TooBigErrors {
    /// Listens at an interface, which may be made later. Requires CAP_NET_RAW.
    ///
    /// # Errors
    /// The system refuses.
    pub fn open(interface: &str) -> io::Result<Self> {
        if !is_interface_name(interface) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        // Without a protocol it receives nothing before it has a filter and an interface. Packets come
        // without the header of the link.
        let made = socket(AddressFamily::Packet, SockType::Datagram, flags, None::<SockProtocol>)?;
        sys::attach_filter(made.as_fd(), &program())?;
        setsockopt(&made, RcvBuf, &MEMORY)?;
        let mut errors = TooBigErrors { socket: made, interface: interface.to_owned(), index: 0 };
        errors.follow()?;
        Ok(errors)
    }

    /// Listens at the interface that has the name now.
    ///
    /// # Errors
    /// The system refuses.
    pub fn follow(&mut self) -> io::Result<()> {
        let now = if_nametoindex(self.interface.as_str()).unwrap_or(0);
        if now != self.index && now != 0 {
            sys::bind(self.socket.as_fd(), now)?;
            self.index = now;
        }
        Ok(())
    }

    /// The next error; none if none waits.
    pub fn next(&self) -> Option<Packet> {
        let mut buffer = [0; LONGEST];
        loop {
            match recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
                Ok(read) => {
                    // What is no packet of IP was not made by the kernel.
                    let bytes = Bytes::copy_from_slice(&buffer[..read.min(LONGEST)]);
                    let nobody = MacAddr::default();
                    if let Ok(packet) = Packet::from_shared_ip(nobody, nobody, bytes) {
                        return Some(packet);
                    }
                }
                // The interface is down, or was: the socket goes on.
                Err(Errno::EINTR | Errno::ENETDOWN) => {}
                Err(_) => return None,
            }
        }
    }

    /// Readable when an error waits.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Accepts what leaves, and is ICMP that says "too big" about a packet of TCP.
fn program() -> Vec<libc::sock_filter> {
    /// A jump to the end, whose distance is not known yet.
    const OUT: u8 = u8::MAX;
    let step = |code, k| libc::sock_filter { code, jt: 0, jf: 0, k };
    let demand = |k| libc::sock_filter { code: JUMP_IF_EQUAL, jt: 0, jf: OUT, k };
    let ancillary = |which: i32| (libc::SKF_AD_OFF + which) as u32;
    let v4 = [
        step(LOAD_1, 9), // protocol
        demand(libc::IPPROTO_ICMP as u32),
        step(X_IS_HEADER, 0),
        step(LOAD_2_AT_X, 0), // type and code: fragmentation needed
        demand(0x0304),
        step(LOAD_1_AT_X, 8 + 9), // protocol of the quoted packet
        demand(libc::IPPROTO_TCP as u32),
        step(RETURN, LONGEST as u32),
    ];
    let v6 = [
        step(LOAD_1, 6), // next header
        demand(libc::IPPROTO_ICMPV6 as u32),
        step(LOAD_1, 40), // type: packet too big
        demand(2),
        step(LOAD_1, 40 + 8 + 6), // next header of the quoted packet
        demand(libc::IPPROTO_TCP as u32),
        step(RETURN, LONGEST as u32),
    ];
    let is_v4 = libc::sock_filter {
        code: JUMP_IF_EQUAL,
        jt: 0,
        // Past the next instruction's block: over IPv4's to the question about IPv6.
        jf: v4.len() as u8,
        k: libc::ETH_P_IP as u32,
    };
    let mut all = vec![
        step(LOAD_4, ancillary(libc::SKF_AD_PKTTYPE)),
        demand(u32::from(libc::PACKET_OUTGOING)),
        step(LOAD_4, ancillary(libc::SKF_AD_PROTOCOL)),
        is_v4,
    ];
    all.extend(v4);
    // A packet of another protocol comes here with it still loaded.
    all.push(demand(libc::ETH_P_IPV6 as u32));
    all.extend(v6);
    all.push(step(RETURN, 0));
    let end = all.len() - 1;
    for (at, step) in all.iter_mut().enumerate().filter(|(_, step)| step.jf == OUT) {
        step.jf = (end - at - 1) as u8;
    }
    all
}
