//! Asks the kernel (rtnetlink) which MTU the route of a forwarded packet has.
//!
//! `ip route get` would tell the same, but a process for each question takes milliseconds.

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, send, socket,
};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};

/// Types of messages: requests, and their answers.
const NEW_LINK: u16 = 16;
const GET_LINK: u16 = 18;
const NEW_ROUTE: u16 = 24;
const GET_ROUTE: u16 = 26;
/// A request that wants one answer (`NLM_F_REQUEST`).
const REQUEST: u16 = 1;
/// Bytes of the header of a message, of what follows it in one about a route or a link, and of the header of
/// an attribute.
const HEADER: usize = 16;
const ROUTE: usize = 12;
const LINK: usize = 16;
const ATTRIBUTE: usize = 4;
/// Attributes of a route: addresses, interfaces, metrics, protocol of the packet.
const DESTINATION: u16 = 1;
const SOURCE: u16 = 2;
const INPUT: u16 = 3;
const OUTPUT: u16 = 4;
const METRICS: u16 = 8;
const PROTOCOL: u16 = 27;
/// The MTU among the metrics (`RTAX_MTU`), and among the attributes of a link.
const METRIC_MTU: u16 = 2;
const LINK_MTU: u16 = 4;
/// Attributes of a link: what is left out of the answer (`RTEXT_FILTER_SKIP_STATS`).
const LEFT_OUT: u16 = 29;
const STATISTICS: u32 = 8;
/// The kernel ignores the two upper bits of the type of an attribute.
const TYPE: u16 = 0x3fff;
/// An answer about one route or link, at most.
const BUFFER: usize = 32 << 10;
/// Answers to questions that were given up are passed over.
const MAX_STALE: usize = 8;
/// Number of TCP.
const TCP: u8 = 6;

/// A packet of TCP that this host forwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForwardedRoute {
    /// Its source.
    pub from: IpAddr,
    /// Its destination.
    pub to: IpAddr,
    /// Index of the interface by which it comes in.
    pub input: u32,
}

/// A socket for questions about routes.
#[derive(Debug)]
pub struct RouteQuery {
    socket: OwnedFd,
    number: u32,
    buffer: Vec<u8>,
}

impl RouteQuery {
    /// Opens it. It needs no privileges.
    ///
    /// # Errors
    /// The system refuses.
    pub fn open() -> io::Result<Self> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let made = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)?;
        bind(made.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
        Ok(RouteQuery { socket: made, number: 0, buffer: vec![0; BUFFER] })
    }

    /// The longest packet that the kernel would forward there, in bytes: the MTU of the route (`ip route ...
    /// mtu`) or of the interface, whichever is less. None: it would not forward it.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn mtu(&mut self, of: &ForwardedRoute) -> io::Result<Option<u32>> {
        let Some(request) = route_request(of) else { return Ok(None) };
        let Some(answer) = self.ask(GET_ROUTE, NEW_ROUTE, &request)? else { return Ok(None) };
        let attributes = answer.get(ROUTE..).unwrap_or_default();
        let metrics = attribute(attributes, METRICS).unwrap_or_default();
        let of_route = attribute(metrics, METRIC_MTU).and_then(number).filter(|mtu| *mtu > 0);
        let of_link = match attribute(attributes, OUTPUT).and_then(number) {
            Some(index) => self.link_mtu(index)?,
            None => None,
        };
        Ok(of_route.into_iter().chain(of_link).min())
    }

    fn link_mtu(&mut self, index: u32) -> io::Result<Option<u32>> {
        let mut request = vec![0; LINK];
        request[4..8].copy_from_slice(&index.to_ne_bytes());
        put(&mut request, LEFT_OUT, &STATISTICS.to_ne_bytes());
        let answer = self.ask(GET_LINK, NEW_LINK, &request)?;
        let mtu = |answer: &[u8]| attribute(answer.get(LINK..)?, LINK_MTU).and_then(number);
        Ok(answer.and_then(mtu))
    }

    /// What is behind the header of the answer; none if the kernel answers with an error: no route, no link.
    fn ask(&mut self, kind: u16, answer: u16, request: &[u8]) -> io::Result<Option<&[u8]>> {
        self.number = self.number.wrapping_add(1);
        let fd = self.socket.as_raw_fd();
        let message = message(kind, self.number, request);
        let sent = again(|| send(fd, &message, MsgFlags::empty()))?;
        debug_assert_eq!(sent, message.len());
        for _ in 0..MAX_STALE {
            // The kernel has answered when `send` returns.
            let read = again(|| recv(fd, &mut self.buffer, MsgFlags::empty()))?.min(BUFFER);
            let header = self.buffer.get(..HEADER.min(read)).and_then(<[u8]>::first_chunk::<HEADER>);
            let Some(header) = header else { continue };
            let word = |at: usize| [header[at], header[at + 1], header[at + 2], header[at + 3]];
            let length = u32::from_ne_bytes(word(0)) as usize;
            if u32::from_ne_bytes(word(8)) == self.number {
                let is_answer = u16::from_ne_bytes([header[4], header[5]]) == answer;
                let end = length.clamp(HEADER, read);
                return Ok(is_answer.then(|| &self.buffer[HEADER..end]));
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

fn again<T>(mut call: impl FnMut() -> Result<T, Errno>) -> io::Result<T> {
    loop {
        match call() {
            Err(Errno::EINTR) => {}
            other => return Ok(other?),
        }
    }
}

/// None: the addresses are of different families.
fn route_request(of: &ForwardedRoute) -> Option<Vec<u8>> {
    let bytes = |address: IpAddr| match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    };
    let (from, to) = (bytes(of.from), bytes(of.to));
    if from.len() != to.len() {
        return None;
    }
    let family = if of.to.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let bits = (to.len() * 8) as u8;
    let mut request = vec![0; ROUTE];
    request[..3].copy_from_slice(&[family as u8, bits, bits]);
    put(&mut request, DESTINATION, &to);
    put(&mut request, SOURCE, &from);
    put(&mut request, INPUT, &of.input.to_ne_bytes());
    put(&mut request, PROTOCOL, &[TCP]);
    Some(request)
}

fn message(kind: u16, number: u32, request: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(HEADER + request.len());
    message.extend(((HEADER + request.len()) as u32).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(REQUEST.to_ne_bytes());
    message.extend(number.to_ne_bytes());
    message.extend([0; 4]);
    message.extend(request);
    message
}

/// Appends an attribute.
fn put(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
    message.extend(((ATTRIBUTE + value.len()) as u16).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(value);
    message.resize(message.len().next_multiple_of(4), 0);
}

/// The value of the first attribute of a kind.
fn attribute(mut attributes: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let header = attributes.first_chunk::<ATTRIBUTE>()?;
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let value = attributes.get(ATTRIBUTE..length)?;
        if u16::from_ne_bytes([header[2], header[3]]) & TYPE == kind {
            return Some(value);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

fn number(value: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(*value.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: an answer of the kernel with odd lengths ends the program, or the MTU behind other attributes
    /// is not found.
    #[test]
    fn attributes_are_read() {
        let mut inner = Vec::new();
        put(&mut inner, 1, &[1, 2, 3]);
        put(&mut inner, METRIC_MTU, &1300_u32.to_ne_bytes());
        let mut all = Vec::new();
        put(&mut all, OUTPUT, &7_u32.to_ne_bytes());
        put(&mut all, METRICS | 0x8000, &inner);
        let metrics = attribute(&all, METRICS).unwrap();
        assert_eq!(attribute(metrics, METRIC_MTU).and_then(number), Some(1300));
        assert_eq!(attribute(&all, OUTPUT).and_then(number), Some(7));
        assert_eq!(attribute(&all, SOURCE), None);
        for length in [0_u16, 1, 3, 5, 9, u16::MAX] {
            let mut odd = all.clone();
            odd[..2].copy_from_slice(&length.to_ne_bytes());
            let _ = attribute(&odd, METRICS);
            for end in 0..odd.len() {
                let _ = attribute(&odd[..end], METRICS);
            }
        }
    }

    /// Breaks: the kernel does not understand the questions, or its answers are not read.
    #[test]
    fn the_kernel_answers() {
        let mut query = RouteQuery::open().unwrap();
        let loopback = query.link_mtu(1).unwrap();
        let text = std::fs::read_to_string("/sys/class/net/lo/mtu").unwrap();
        assert_eq!(loopback, Some(text.trim().parse().unwrap()));
        assert_eq!(query.link_mtu(u32::MAX >> 1).unwrap(), None);
        // Nothing is forwarded from a loopback address.
        let (from, to) = ("127.0.0.1".parse().unwrap(), "127.0.0.2".parse().unwrap());
        assert_eq!(query.mtu(&ForwardedRoute { from, to, input: u32::MAX >> 1 }).unwrap(), None);
        let to = "::1".parse().unwrap();
        assert_eq!(query.mtu(&ForwardedRoute { from, to, input: 1 }).unwrap(), None);
    }
}
