//! send(2) and recv(2) with flags and control messages.

use super::address;
use super::errno;
use super::message::{AncillaryMessage, ReceivedMessage, SendTo};
use super::socket::{PosixSocket, SocketState};
use super::table::{IP, IPV6, Opt, SOCKET, TCP, UDP};
use super::values::Stamps;
use crate::socket::duplex::WriteFlags;
use crate::socket::{OutgoingDatagram, Stream};
use bytes::Bytes;
use farpace_host::ip::udp::{IpFields, MAX_PAYLOAD, UdpDatagram};
use farpace_host::is_host_address;
use farpace_units::ByteCount;
use nix::errno::Errno;
use nix::libc;
use std::io::{IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Maximum number of bytes per call, as in Linux.
const MAX_BYTES: usize = 0x7fff_f000;
/// Maximum number of datagrams of a call with UDP_SEGMENT (UDP_MAX_SEGMENTS).
const MAX_SEGMENTS: usize = 128;
/// Types of control messages that libc does not define.
const SCM_TXTIME: i32 = 61;
const UDP_SEGMENT: i32 = 103;
const TCP_CM_INQ: i32 = 36;
/// Length of the IP and UDP headers.
const UDP_OVER_V4: usize = 28;
const UDP_OVER_V6: usize = 48;

fn wanted(parts: usize) -> usize {
    parts.min(MAX_BYTES)
}

impl PosixSocket {
    /// send(2), sendto(2), sendmsg(2): as much as possible without waiting.
    ///
    /// # Errors
    /// As in their manual pages; `EAGAIN`: nothing was sent.
    pub fn send(&self, parts: &[IoSlice<'_>], message: &SendTo<'_>) -> nix::Result<usize> {
        if self.datagram { self.send_datagram(parts, message) } else { self.send_stream(parts, message) }
    }

    fn send_stream(&self, parts: &[IoSlice<'_>], message: &SendTo<'_>) -> nix::Result<usize> {
        let flags = message.flags;
        if flags & libc::MSG_FASTOPEN != 0 {
            return Err(Errno::EOPNOTSUPP);
        }
        let stream = match self.state() {
            SocketState::Stream(stream) => stream,
            SocketState::Closed => return Err(Errno::EBADF),
            _ => return Err(Errno::EPIPE),
        };
        for control in message.control.iter().filter(|control| control.level == SOCKET) {
            check_socket_control(control)?;
        }
        let write_flags =
            WriteFlags { more: flags & libc::MSG_MORE != 0, urgent: flags & libc::MSG_OOB != 0 };
        let whole: usize = parts.iter().map(|part| part.len()).sum();
        if whole == 0 {
            // There is nothing to send, but a connection that is not established reports its error.
            return if stream.is_connecting() {
                Err(Errno::EAGAIN)
            } else {
                stream_error(&stream).map(|()| 0)
            };
        }
        if whole <= MAX_BYTES {
            return stream.pipe().try_write_parts(parts, write_flags).map_err(|e| errno(&e));
        }
        let first = parts.first().map_or(&[][..], |part| &part[..part.len().min(MAX_BYTES)]);
        stream.pipe().try_write_parts(&[IoSlice::new(first)], write_flags).map_err(|e| errno(&e))
    }

    fn send_datagram(&self, parts: &[IoSlice<'_>], message: &SendTo<'_>) -> nix::Result<usize> {
        if message.flags & libc::MSG_OOB != 0 && !self.v6 {
            return Err(Errno::EOPNOTSUPP);
        }
        let len: usize = parts.iter().map(|part| part.len()).fold(0, usize::saturating_add);
        if len > usize::from(u16::MAX) {
            return Err(Errno::EMSGSIZE);
        }
        let given = message.to.map(|to| self.destination(to)).transpose()?;
        let udp = self.udp()?;
        let to = match given.or_else(|| udp.peer_addr()) {
            Some(to) => to,
            None => return Err(Errno::EDESTADDRREQ),
        };
        let mut outgoing =
            OutgoingDatagram { to, from: None, ip: self.fields(to.is_ipv6()), payload: Bytes::new() };
        let mut segment = usize::try_from(self.values().get(Opt::UdpSegment)).unwrap_or(0);
        for control in &message.control {
            self.obey(control, &mut outgoing, &mut segment)?;
        }
        let payload: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        let headers = if to.is_ipv6() { UDP_OVER_V6 } else { UDP_OVER_V4 };
        let longest = usize::from(self.stack.mtu()) - headers;
        if payload.len() > MAX_PAYLOAD {
            return Err(Errno::EMSGSIZE);
        }
        if segment == 0 || payload.len() <= segment {
            // A datagram that must not be fragmented must fit; others that fit are not fragmented on the way
            // either.
            if outgoing.ip.whole && payload.len() > longest {
                return Err(Errno::EMSGSIZE);
            }
            outgoing.payload = payload.into();
            udp.send_with(outgoing).map_err(|e| errno(&e))?;
            return Ok(len);
        }
        if segment > longest || payload.len().div_ceil(segment) > MAX_SEGMENTS {
            return Err(Errno::EINVAL);
        }
        let payload = Bytes::from(payload);
        for (number, at) in (0..payload.len()).step_by(segment).enumerate() {
            let part = payload.slice(at..(at + segment).min(payload.len()));
            match udp.send_with(OutgoingDatagram { payload: part, ..outgoing.clone() }) {
                // Like a full queue of the device.
                Err(_) if number > 0 => break,
                other => other.map_err(|e| errno(&e))?,
            }
        }
        Ok(len)
    }

    /// The destination of a datagram.
    fn destination(&self, to: &[u8]) -> nix::Result<SocketAddr> {
        let to = match address::family(to) {
            // Old programs do not set the family.
            Some(address::UNSPECIFIED) if !self.v6 && to.len() >= address::V4 => {
                let mut inet = to.to_vec();
                inet[..2].copy_from_slice(&address::INET.to_ne_bytes());
                address::decode(&inet, false)?
            }
            // An IPv6 socket that uses IPv4 accepts IPv4 addresses.
            Some(address::INET) if self.v6 => address::decode(to, false)?,
            _ => address::decode(to, self.v6)?,
        };
        let to = self.inward(to)?;
        if to.port() == 0 {
            return Err(Errno::EINVAL);
        }
        if self.stack.is_broadcast(to.ip()) && !self.values().is_on(Opt::Broadcast) {
            return Err(Errno::EACCES);
        }
        if !is_host_address(to.ip()) && !to.ip().is_multicast() {
            return Err(Errno::ENETUNREACH);
        }
        Ok(to)
    }

    /// The IP header fields of a datagram from the socket's options.
    fn fields(&self, over_v6: bool) -> IpFields {
        let values = self.values();
        let (class, hops, discover) = match over_v6 {
            true => (Opt::V6TClass, Opt::V6Hops, Opt::V6MtuDiscover),
            false => (Opt::Tos, Opt::Ttl, Opt::MtuDiscover),
        };
        IpFields {
            dscp: values.get(class) as u8 & !3,
            hops: u8::try_from(values.get(hops)).ok().filter(|_| values.is_given(hops)),
            whole: matches!(values.get(discover), 2 | 3) || (over_v6 && values.is_on(Opt::V6DontFrag)),
        }
    }

    /// Applies a control message to a datagram.
    fn obey(
        &self,
        control: &AncillaryMessage,
        outgoing: &mut OutgoingDatagram,
        segment: &mut usize,
    ) -> nix::Result<()> {
        let within = |low: i32, high: i32| {
            let n = control.int()?;
            if (low..=high).contains(&n) { Ok(n) } else { Err(Errno::EINVAL) }
        };
        match (control.level, control.kind) {
            (SOCKET, _) => check_socket_control(control)?,
            (IP, libc::IP_TTL) => outgoing.ip.hops = Some(within(1, 255)? as u8),
            (IP, libc::IP_TOS) => outgoing.ip.dscp = within(0, 255)? as u8 & !3,
            (IP, libc::IP_PKTINFO) => {
                let octets: [u8; 4] =
                    control.data.get(4..8).and_then(|b| b.try_into().ok()).ok_or(Errno::EINVAL)?;
                outgoing.from = self.own_address(IpAddr::from(octets))?;
            }
            (IPV6, libc::IPV6_HOPLIMIT) => match within(-1, 255)? {
                -1 => outgoing.ip.hops = None,
                hops => outgoing.ip.hops = Some(hops as u8),
            },
            (IPV6, libc::IPV6_TCLASS) => outgoing.ip.dscp = within(-1, 255)?.max(0) as u8 & !3,
            (IPV6, libc::IPV6_DONTFRAG) => outgoing.ip.whole = within(0, 1)? == 1,
            (IPV6, libc::IPV6_PKTINFO) => {
                let octets: [u8; 16] =
                    control.data.get(..16).and_then(|b| b.try_into().ok()).ok_or(Errno::EINVAL)?;
                outgoing.from = self.own_address(IpAddr::from(octets).to_canonical())?;
            }
            (UDP, UDP_SEGMENT) => {
                let size: [u8; 2] = control.data[..].try_into().map_err(|_| Errno::EINVAL)?;
                *segment = u16::from_ne_bytes(size).into();
            }
            (IP | IPV6 | UDP, _) => return Err(Errno::EINVAL),
            _ => {}
        }
        Ok(())
    }
    fn own_address(&self, ip: IpAddr) -> nix::Result<Option<IpAddr>> {
        if ip.is_unspecified() {
            return Ok(None);
        }
        let ours = self.stack.call(move |host, _| host.addresses().contains(&ip)).map_err(|e| errno(&e))?;
        if ours { Ok(Some(ip)) } else { Err(Errno::EINVAL) }
    }

    /// recv(2), recvfrom(2), recvmsg(2): the available data. Zero bytes of a stream: its end, or an empty
    /// buffer.
    ///
    /// # Errors
    /// As in their manual pages; `EAGAIN`: nothing is available.
    pub fn receive(&self, buffers: &mut [IoSliceMut<'_>], flags: i32) -> nix::Result<ReceivedMessage> {
        if flags & libc::MSG_ERRQUEUE != 0 {
            // Errors are reported by SO_ERROR and the calls themselves; the error queue is always empty.
            return Err(Errno::EAGAIN);
        }
        if self.datagram {
            self.receive_datagram(buffers, flags)
        } else {
            self.receive_stream(buffers, flags)
        }
    }

    fn receive_stream(&self, buffers: &mut [IoSliceMut<'_>], flags: i32) -> nix::Result<ReceivedMessage> {
        let urgent = flags & libc::MSG_OOB != 0;
        // Without urgent data, MSG_OOB fails in any state (tcp_recv_urg).
        let stream = match self.stream() {
            Err(Errno::ENOTCONN) if urgent && !self.is_listening() => return Err(Errno::EINVAL),
            Ok(stream) if urgent && stream.is_connecting() => return Err(Errno::EINVAL),
            other => other?,
        };
        let room = wanted(buffers.iter().map(|buffer| buffer.len()).fold(0, usize::saturating_add));
        let peek = flags & libc::MSG_PEEK != 0;
        if stream.is_connecting() {
            return Err(Errno::EAGAIN);
        }
        if urgent {
            return receive_urgent(&stream, buffers, peek);
        }
        let pipe = stream.pipe();
        let skip = usize::try_from(self.values().get(Opt::PeekOffset)).ok().filter(|_| peek);
        let read = if room == 0 {
            let readiness = stream.readiness();
            if stream.available() == 0
                && let Some(error) = stream.take_error()
            {
                return Err(errno(&error));
            }
            if readiness.readable { Ok(0) } else { Err(Errno::EAGAIN) }
        } else if peek && flags & libc::MSG_TRUNC != 0 {
            // The number of available bytes, at most the length of the buffer.
            peeked(&stream, buffers, skip.unwrap_or(0))
        } else if peek {
            peeked(&stream, buffers, skip.unwrap_or(0))
        } else if flags & libc::MSG_TRUNC != 0 {
            pipe.try_discard(room).map_err(|e| errno(&e))
        } else {
            pipe.try_read(buffers).map_err(|e| errno(&e))
        }?;
        if let Some(skip) = skip {
            self.values().put(Opt::PeekOffset, i32::try_from(skip + read).unwrap_or(i32::MAX));
        } else if !peek {
            let mut values = self.values();
            let offset = values.get(Opt::PeekOffset);
            if offset > 0 {
                values.put(Opt::PeekOffset, (offset - i32::try_from(read).unwrap_or(i32::MAX)).max(0));
            }
        }
        let mut control = Vec::new();
        if self.values().is_on(Opt::Inq) {
            let inq = i32::try_from(stream.available()).unwrap_or(i32::MAX);
            control.push(AncillaryMessage::of(TCP, TCP_CM_INQ, inq.to_ne_bytes()));
        }
        Ok(ReceivedMessage { len: read, copied: read, control, ..ReceivedMessage::default() })
    }

    fn receive_datagram(&self, buffers: &mut [IoSliceMut<'_>], flags: i32) -> nix::Result<ReceivedMessage> {
        let udp = self.udp()?;
        if udp.is_read_shutdown() && !udp.readiness().readable {
            return Ok(ReceivedMessage::default());
        }
        let peek = flags & libc::MSG_PEEK != 0;
        let datagram = if peek { udp.peek() } else { udp.recv() }.map_err(|e| errno(&e))?;
        let skip = usize::try_from(self.values().get(Opt::PeekOffset)).ok().filter(|_| peek).unwrap_or(0);
        let mut rest = datagram.payload.get(skip..).unwrap_or_default();
        let mut copied = 0;
        for buffer in buffers.iter_mut() {
            let n = rest.len().min(buffer.len());
            buffer[..n].copy_from_slice(&rest[..n]);
            (rest, copied) = (&rest[n..], copied + n);
        }
        let cut = !rest.is_empty();
        Ok(ReceivedMessage {
            len: if flags & libc::MSG_TRUNC != 0 { datagram.payload.len() } else { copied },
            copied,
            from: Some(self.outward(datagram.from)),
            control: self.ancillary_data(&datagram),
            flags: if cut { libc::MSG_TRUNC } else { 0 },
        })
    }

    /// The control messages that the socket's options request for a datagram.
    fn ancillary_data(&self, datagram: &UdpDatagram) -> Vec<AncillaryMessage> {
        let values = self.values();
        let mut all = Vec::new();
        let class = datagram.ip.dscp | datagram.ecn.bits();
        let hops = i32::from(datagram.ip.hops.unwrap_or(0));
        self.put_stamps(&values, datagram, &mut all);
        if self.v6 {
            if values.is_on(Opt::V6ReceivePktInfo) {
                let ip = match datagram.to.ip() {
                    IpAddr::V4(v4) => v4.to_ipv6_mapped(),
                    IpAddr::V6(v6) => v6,
                };
                let info = [&ip.octets()[..], &1i32.to_ne_bytes()].concat();
                all.push(AncillaryMessage::of(IPV6, libc::IPV6_PKTINFO, info));
            }
            if values.is_on(Opt::V6ReceiveHopLimit) && datagram.to.is_ipv6() {
                all.push(AncillaryMessage::of(IPV6, libc::IPV6_HOPLIMIT, hops.to_ne_bytes()));
            }
            if values.is_on(Opt::V6ReceiveTClass) && datagram.to.is_ipv6() {
                all.push(AncillaryMessage::of(IPV6, libc::IPV6_TCLASS, i32::from(class).to_ne_bytes()));
            }
            if values.is_on(Opt::V6OrigDstAddr) {
                all.push(AncillaryMessage::of(
                    IPV6,
                    libc::IPV6_RECVORIGDSTADDR,
                    address::encode(self.outward(datagram.to)),
                ));
            }
        }
        if let IpAddr::V4(to) = datagram.to.ip() {
            if values.is_on(Opt::PacketInfo) {
                let info = [&1i32.to_ne_bytes()[..], &to.octets(), &to.octets()].concat();
                all.push(AncillaryMessage::of(IP, libc::IP_PKTINFO, info));
            }
            if values.is_on(Opt::ReceiveTtl) {
                all.push(AncillaryMessage::of(IP, libc::IP_TTL, hops.to_ne_bytes()));
            }
            if values.is_on(Opt::ReceiveTos) {
                all.push(AncillaryMessage::of(IP, libc::IP_TOS, [class]));
            }
            if values.is_on(Opt::OrigDstAddr) {
                all.push(AncillaryMessage::of(IP, libc::IP_ORIGDSTADDR, address::encode(datagram.to)));
            }
        }
        all
    }

    /// Adds the time of reception.
    fn put_stamps(
        &self,
        values: &super::values::OptionValues,
        datagram: &UdpDatagram,
        all: &mut Vec<AncillaryMessage>,
    ) {
        const RX_SOFTWARE: u32 = 1 << 3;
        const SOFTWARE: u32 = 1 << 4;
        let wants = values.timestamping & (RX_SOFTWARE | SOFTWARE) == RX_SOFTWARE | SOFTWARE;
        if values.stamps == Stamps::None && !wants {
            return;
        }
        let at = self.stack.wall_time(datagram.at);
        let seconds = i64::try_from(at.as_secs()).unwrap_or(i64::MAX).to_ne_bytes();
        let nanos = i64::from(at.subsec_nanos()).to_ne_bytes();
        match values.stamps {
            Stamps::None => {}
            Stamps::Micros => {
                let kind = if values.stamps_new { 63 } else { libc::SO_TIMESTAMP };
                let micros = i64::from(at.subsec_micros()).to_ne_bytes();
                all.push(AncillaryMessage::of(SOCKET, kind, [seconds, micros].concat()));
            }
            Stamps::Nanos => {
                let kind = if values.stamps_new { 64 } else { libc::SO_TIMESTAMPNS };
                all.push(AncillaryMessage::of(SOCKET, kind, [seconds, nanos].concat()));
            }
        }
        if wants {
            let kind = if values.stamps_new { 65 } else { libc::SO_TIMESTAMPING };
            all.push(AncillaryMessage::of(SOCKET, kind, [&seconds[..], &nanos, &[0; 32]].concat()));
        }
    }

    /// Number of bytes that can be read without waiting (FIONREAD).
    ///
    /// # Errors
    /// `EINVAL`: it listens.
    pub fn available(&self) -> nix::Result<usize> {
        match self.state() {
            SocketState::Listening(_) => Err(Errno::EINVAL),
            SocketState::Stream(stream) => Ok(stream.available()),
            SocketState::Datagram(udp) => Ok(udp.available()),
            SocketState::Closed => Err(Errno::EBADF),
            SocketState::Idle | SocketState::Unbound => Ok(0),
        }
    }
    /// Number of written bytes that the peer has not acknowledged (SIOCOUTQ), and of those not sent
    /// (SIOCOUTQNSD).
    ///
    /// # Errors
    /// `EINVAL`: it listens.
    pub fn unacknowledged(&self) -> nix::Result<(usize, usize)> {
        match self.state() {
            SocketState::Listening(_) => Err(Errno::EINVAL),
            SocketState::Stream(stream) => {
                let Ok(seen) = stream.inspect() else { return Ok((0, 0)) };
                let all = ByteCount::new(seen.details.unacknowledged) + seen.waiting;
                Ok((all.as_len(), (seen.details.unsent + seen.waiting).as_len()))
            }
            SocketState::Datagram(udp) => Ok((udp.waiting().1, 0)),
            SocketState::Closed => Err(Errno::EBADF),
            SocketState::Idle | SocketState::Unbound => Ok((0, 0)),
        }
    }
    /// The urgent byte is next (SIOCATMARK).
    pub fn is_at_mark(&self) -> bool {
        matches!(self.state(), SocketState::Stream(stream) if stream.pipe().is_at_mark())
    }
}

/// The result of an empty write.
fn stream_error(stream: &Stream) -> nix::Result<()> {
    stream.pipe().check_writable().map_err(|e| errno(&e))
}

fn peeked(stream: &Stream, buffers: &mut [IoSliceMut<'_>], mut skip: usize) -> nix::Result<usize> {
    let mut all = 0;
    for buffer in buffers.iter_mut().filter(|buffer| !buffer.is_empty()) {
        match stream.pipe().try_peek(buffer, skip) {
            Ok(n) => {
                (all, skip) = (all + n, skip + n);
                if n < buffer.len() {
                    break;
                }
            }
            Err(_) if all > 0 => break,
            Err(error) => return Err(errno(&error)),
        }
    }
    Ok(all)
}

fn receive_urgent(
    stream: &Stream,
    buffers: &mut [IoSliceMut<'_>],
    peek: bool,
) -> nix::Result<ReceivedMessage> {
    let Some(byte) = stream.pipe().try_urgent(peek).map_err(|e| errno(&e))? else {
        let ended = stream.readiness().read_ended;
        return if ended { Ok(ReceivedMessage::default()) } else { Err(Errno::EAGAIN) };
    };
    match buffers.iter_mut().find_map(|buffer| buffer.first_mut()) {
        Some(first) => {
            *first = byte;
            Ok(ReceivedMessage { len: 1, copied: 1, flags: libc::MSG_OOB, ..ReceivedMessage::default() })
        }
        None => Ok(ReceivedMessage { flags: libc::MSG_OOB | libc::MSG_TRUNC, ..ReceivedMessage::default() }),
    }
}

/// Checks a control message of SOL_SOCKET.
fn check_socket_control(control: &AncillaryMessage) -> nix::Result<()> {
    match control.kind {
        libc::SO_MARK => Err(Errno::EPERM),
        libc::SCM_RIGHTS | libc::SCM_CREDENTIALS => Ok(()),
        libc::SO_TIMESTAMPING if control.data.len() == 4 => Ok(()),
        libc::SO_PRIORITY if control.data.len() == 4 => Ok(()),
        // It requires SO_TXTIME first, and no clock for it exists.
        SCM_TXTIME if control.data.len() == 8 => Ok(()),
        _ => Err(Errno::EINVAL),
    }
}

/// The time of day.
pub(in crate::socket) fn wall_now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
