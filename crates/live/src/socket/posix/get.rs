//! getsockopt(2).

use super::info::TcpInfo;
use super::socket::{PosixSocket, SocketState};
use super::table::{self, FARPACE, Get, IP, IPV6, Opt, OptionRow, SOCKET};
use super::values::Stamps;
use super::{address, errno};
use farpace_tcp::ConnectionState as TcpState;
use farpace_tcp::config::MIN_MSS;
use nix::errno::Errno;
use nix::libc;
use std::time::Duration;

/// Length of the name of a congestion control, with zeros as padding (TCP_CA_NAME_MAX).
const NAME: usize = 16;
/// `struct tcp_bbr_info`.
const GAIN_ONE: u64 = 256;

impl PosixSocket {
    /// getsockopt(2): the value for a program with a buffer of `room` bytes.
    ///
    /// # Errors
    /// As in its manual page.
    pub fn option(&self, level: i32, number: i32, room: i32) -> nix::Result<Vec<u8>> {
        // Unknown levels end in ipv6_getsockopt or ip_getsockopt, which differ.
        let unknown = if level == SOCKET || self.v6 { Errno::ENOPROTOOPT } else { Errno::EOPNOTSUPP };
        if level == IPV6 && !self.v6 {
            return Err(unknown);
        }
        let known = table::OPTIONS.iter().any(|row| row.level == level);
        if level == table::IP && room < 0 {
            return Err(Errno::EINVAL);
        }
        let row = table::find(level, number, self.datagram);
        let Some(row) = row else {
            // Known levels report an unknown option.
            let own =
                known && (level != table::TCP || !self.datagram) && (level != table::UDP || self.datagram);
            return Err(if own { Errno::ENOPROTOOPT } else { unknown });
        };
        let room = match usize::try_from(room) {
            Ok(room) => room,
            // The length is unsigned there.
            Err(_) if level == IPV6 && row.get == Get::Stored => usize::MAX,
            Err(_) => return Err(Errno::EINVAL),
        };
        let mut bytes = match row.get {
            Get::Never => return Err(Errno::ENOPROTOOPT),
            Get::Fails(error) => return Err(error),
            // IPv6 sockets have it off by default.
            Get::Stored if row.option == Opt::MulticastAll && self.v6 => {
                let values = self.values();
                let on = values.is_given(row.option) && values.is_on(row.option);
                return Ok(self.cut(row, on.into(), room));
            }
            Get::Stored => return Ok(self.cut(row, self.values().get(row.option), room)),
            Get::Special => match self.special(row, room)? {
                Reported::Int(int) => return Ok(self.cut(row, int, room)),
                Reported::Bytes(bytes) => bytes,
            },
        };
        bytes.truncate(room);
        Ok(bytes)
    }

    /// Encodes an `int` for a buffer of this length: IP encodes a small value as a byte if the buffer is too
    /// short.
    fn cut(&self, row: &OptionRow, int: i32, room: usize) -> Vec<u8> {
        let byte = u8::try_from(int).ok().filter(|_| row.level == IP && (1..4).contains(&room));
        byte.map_or_else(|| int.to_ne_bytes()[..room.min(4)].to_vec(), |byte| vec![byte])
    }

    fn special(&self, row: &OptionRow, room: usize) -> nix::Result<Reported> {
        let int = |int: i32| Ok(Reported::Int(int));
        let bytes = |bytes: Vec<u8>| Ok(Reported::Bytes(bytes));
        let state = self.state();
        match row.option {
            Opt::Type => int(if self.datagram { libc::SOCK_DGRAM } else { libc::SOCK_STREAM }),
            Opt::Domain => int(if self.v6 { libc::AF_INET6 } else { libc::AF_INET }),
            Opt::Protocol => int(if self.datagram { libc::IPPROTO_UDP } else { libc::IPPROTO_TCP }),
            Opt::Error => int(self.take_error()),
            Opt::AcceptConn => int(matches!(state, SocketState::Listening(_)).into()),
            Opt::SendBuffer | Opt::ReceiveBuffer => int(self.buffer(row.option)?),
            Opt::BufferLock => {
                let values = self.values();
                let locks = |option: Opt, bit: i32| if values.is_given(option) { bit } else { 0 };
                let asked = values.is_given(Opt::BufferLock).then(|| values.get(Opt::BufferLock));
                int(asked.unwrap_or(locks(Opt::SendBuffer, 1) | locks(Opt::ReceiveBuffer, 2)))
            }
            Opt::Linger => {
                let linger = self.values().linger;
                let kept = self.values().linger_seconds;
                let seconds = linger.map_or(kept, |time| i32::try_from(time.as_secs()).unwrap_or(i32::MAX));
                bytes([i32::from(linger.is_some()).to_ne_bytes(), seconds.to_ne_bytes()].concat())
            }
            Opt::PeerCred => bytes([0i32, -1, -1].map(i32::to_ne_bytes).concat()),
            Opt::ReceiveTimeout | Opt::ReceiveTimeoutNew => bytes(timeval(self.values().receive_timeout)),
            Opt::SendTimeout | Opt::SendTimeoutNew => bytes(timeval(self.values().send_timeout)),
            Opt::BindToDevice | Opt::AttachFilter | Opt::IpOptions | Opt::PacketOptions | Opt::SavedSyn => {
                bytes(Vec::new())
            }
            Opt::V6PktOptions2292
            | Opt::V6HopOpts
            | Opt::V6DstOpts
            | Opt::V6RtHdr
            | Opt::V6RtHdrDstOpts
            | Opt::Ulp
            | Opt::FastOpenKey => bytes(Vec::new()),
            Opt::PeerName => {
                // Unlike getpeername(2) it does not require an open connection.
                let peer = match &state {
                    SocketState::Stream(stream) => stream.peer_addr().map(|peer| self.outward(peer)).ok(),
                    _ => None,
                };
                let peer = address::encode(peer.map_or_else(|| self.peer(), Ok)?);
                if peer.len() < room { Err(Errno::EINVAL) } else { bytes(peer) }
            }
            Opt::Timestamp | Opt::TimestampNew | Opt::TimestampNs | Opt::TimestampNsNew => {
                let values = self.values();
                let wanted = match row.option {
                    Opt::Timestamp => (Stamps::Micros, false),
                    Opt::TimestampNew => (Stamps::Micros, true),
                    Opt::TimestampNs => (Stamps::Nanos, false),
                    _ => (Stamps::Nanos, true),
                };
                int(((values.stamps, values.stamps_new) == wanted).into())
            }
            Opt::Timestamping | Opt::TimestampingNew => {
                bytes([self.values().timestamping.to_ne_bytes(), [0; 4]].concat())
            }
            Opt::MaxPacingRate => {
                let rate = self.values().pacing.unwrap_or(u64::MAX);
                if room >= 8 {
                    bytes(rate.to_ne_bytes().to_vec())
                } else {
                    bytes(u32::try_from(rate).unwrap_or(u32::MAX).to_ne_bytes().to_vec())
                }
            }
            Opt::IncomingCpu => {
                let values = self.values();
                int(if values.is_given(row.option) || !matches!(state, SocketState::Stream(_)) {
                    values.get(row.option)
                } else {
                    0
                })
            }
            Opt::MemInfo => bytes(self.memory()?),
            Opt::Cookie | Opt::NetnsCookie => {
                let cookie = if row.option == Opt::Cookie { self.cookie } else { 1 };
                let exact = row.option == Opt::NetnsCookie && room != 8;
                if room < 8 || exact { Err(Errno::EINVAL) } else { bytes(cookie.to_ne_bytes().to_vec()) }
            }
            Opt::TxTime => bytes(self.values().txtime.to_vec()),
            Opt::MulticastIf => bytes(self.values().multicast_if.to_vec()),
            Opt::Mtu | Opt::V6Mtu => match self.path_mtu() {
                Some(mtu) => int(mtu),
                None => Err(Errno::ENOTCONN),
            },
            Opt::V6PathMtu if room < size_of::<libc::sockaddr_in6>() + 4 => Err(Errno::EINVAL),
            Opt::V6PathMtu => {
                let mtu = self.path_mtu().ok_or(Errno::ENOTCONN)?;
                let mut info = address::encode(self.peer().unwrap_or_else(|_| self.local()));
                info.resize(address::V6, 0);
                info.extend_from_slice(&mtu.to_ne_bytes());
                bytes(info)
            }
            Opt::V6PktInfo => Err(Errno::ENOPROTOOPT),
            Opt::AddrForm => match state {
                SocketState::Stream(stream) => match stream.inspect() {
                    Ok(seen) if seen.inspection.state == TcpState::Established => int(libc::AF_INET6),
                    _ => Err(Errno::ENOTCONN),
                },
                SocketState::Datagram(udp) if udp.peer_addr().is_some() => int(libc::AF_INET6),
                _ => Err(Errno::ENOTCONN),
            },
            Opt::IpProtocol => int(self.local().port().into()),
            Opt::MaxSeg => int(self.segment_size()?),
            Opt::WindowClamp => int(self.window_clamp()),
            Opt::QuickAck => match &state {
                SocketState::Stream(stream) => {
                    let quick = stream.inspect_with(|connection, _| connection.quick_ack());
                    int(quick.unwrap_or(true).into())
                }
                _ => int(self.values().get(row.option)),
            },
            Opt::Info => bytes(self.tcp_info().bytes()),
            Opt::CcInfo => bytes(self.congestion_info()),
            Opt::Congestion => {
                let own = self.values().congestion.clone();
                let name = match own {
                    Some(name) => name,
                    None => self.values().config(self.stack.mtu(), self.v6)?.congestion.name().to_owned(),
                };
                let mut name = name.into_bytes();
                name.resize(NAME, 0);
                bytes(name)
            }
            Opt::Stamp => int(self.stamp()),
            Opt::AoRepair => Err(Errno::EPERM),
            Opt::Settings => {
                let mut words = self.values().options.words().into_bytes();
                words.push(0);
                bytes(words)
            }
            Opt::Json => {
                let mut text = serde_json::to_vec(&self.tcp_info()).map_err(|_| Errno::EIO)?;
                text.push(0);
                bytes(text)
            }
            _ => {
                debug_assert!(false, "{} has no rule", row.name);
                let _ = FARPACE;
                Err(Errno::ENOPROTOOPT)
            }
        }
    }

    /// Linux's `struct tcp_info` of its connection.
    pub fn tcp_info(&self) -> TcpInfo {
        match self.state() {
            SocketState::Stream(stream) => {
                stream.inspect().map_or_else(|_| TcpInfo::closed(), |seen| TcpInfo::of(&seen))
            }
            SocketState::Listening(listener) => {
                let small = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
                TcpInfo::listening(small(listener.waiting()), small(listener.how().backlog.saturating_sub(1)))
            }
            _ => TcpInfo::closed(),
        }
    }

    /// SO_SNDBUF or SO_RCVBUF: the requested or the current size.
    fn buffer(&self, option: Opt) -> nix::Result<i32> {
        /// Default of a UDP socket (net.core.rmem_default).
        const DATAGRAMS: i32 = 212_992;
        let values = self.values();
        if values.is_given(option) {
            return Ok(values.get(option));
        }
        drop(values);
        if self.datagram {
            return Ok(DATAGRAMS);
        }
        let bytes = match self.state() {
            SocketState::Stream(stream) => stream.inspect().ok().map(|seen| match option {
                Opt::SendBuffer => seen.send_buffer,
                _ => seen.receive_buffer,
            }),
            _ => None,
        };
        let bytes = match bytes {
            Some(bytes) => bytes,
            None => {
                let config = self.values().config(self.stack.mtu(), self.v6)?;
                let size = if option == Opt::SendBuffer { config.send_buffer } else { config.receive_buffer };
                size.initial
            }
        };
        Ok(i32::try_from(bytes.get()).unwrap_or(i32::MAX))
    }

    fn path_mtu(&self) -> Option<i32> {
        match self.state() {
            SocketState::Stream(stream) => {
                let seen = stream.inspect().ok();
                let sent = seen.as_ref().map(|seen| seen.details.segments_sent);
                if sent.is_some() && sent == self.values().unrouted {
                    return None;
                }
                if stream.is_connecting() {
                    return Some(self.stack.mtu().into());
                }
                Some(seen.map_or(i32::from(self.stack.mtu()), |seen| seen.details.path_mtu as i32))
            }
            SocketState::Datagram(udp) if udp.peer_addr().is_some() => Some(self.stack.mtu().into()),
            _ => None,
        }
    }

    /// TCP_MAXSEG: the maximum size of sent segments; before a connection, the requested one.
    fn segment_size(&self) -> nix::Result<i32> {
        if let SocketState::Stream(stream) = self.state()
            && !stream.is_connecting()
            && let Ok(seen) = stream.inspect()
        {
            let asked = self.values().requested_mss().filter(|_| stream.has_ended());
            return Ok(asked.map_or(seen.inspection.mss as i32, i32::from));
        }
        let values = self.values();
        Ok(values.requested_mss().map_or(Opt::MaxSeg.row().default, |mss| i32::from(mss.max(MIN_MSS))))
    }

    fn window_clamp(&self) -> i32 {
        let seen = match self.state() {
            SocketState::Stream(stream) if !stream.is_connecting() => stream.inspect().ok(),
            _ => None,
        };
        if let Some(clamp) = seen.as_ref().and_then(|seen| seen.details.window_clamp) {
            return i32::try_from(clamp).unwrap_or(i32::MAX);
        }
        let asked = self.values().get(Opt::WindowClamp);
        if asked != 0 {
            return asked;
        }
        seen.map_or(0, |seen| i32::try_from(seen.receive_buffer.get()).unwrap_or(i32::MAX))
    }

    /// TCP_TIMESTAMP: the clock of the sent timestamps.
    fn stamp(&self) -> i32 {
        match self.state() {
            SocketState::Stream(stream) => stream
                .inspect_with(|connection, now| connection.timestamp_clock(now))
                .map_or(0, |stamp| stamp as i32),
            _ => (super::io::wall_now().as_millis() & 0x7fff_ffff) as i32,
        }
    }

    /// SO_MEMINFO: nine memory counters (SK_MEMINFO_VARS).
    fn memory(&self) -> nix::Result<Vec<u8>> {
        let mut counts = [0u32; 9];
        let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        counts[1] = u32::try_from(self.buffer(Opt::ReceiveBuffer)?).unwrap_or(0);
        counts[3] = u32::try_from(self.buffer(Opt::SendBuffer)?).unwrap_or(0);
        match self.state() {
            SocketState::Stream(stream) => {
                counts[0] = small(stream.available() as u64);
                if let Ok(seen) = stream.inspect() {
                    counts[0] = small(stream.available() as u64 + seen.memory.waiting_bytes.get());
                    counts[5] = small((seen.memory.send_bytes + seen.waiting).get());
                }
            }
            SocketState::Datagram(udp) => {
                let (incoming, outgoing) = udp.waiting();
                (counts[0], counts[2]) = (small(incoming as u64), small(outgoing as u64));
            }
            SocketState::Idle | SocketState::Listening(_) | SocketState::Unbound | SocketState::Closed => {}
        }
        Ok(counts.iter().flat_map(|count| count.to_ne_bytes()).collect())
    }

    /// TCP_CC_INFO: for congestion controls with a path model, the values of Linux's BBR; empty for others.
    fn congestion_info(&self) -> Vec<u8> {
        let SocketState::Stream(stream) = self.state() else { return Vec::new() };
        let Ok(seen) = stream.inspect() else { return Vec::new() };
        if !seen.congestion.is_model_based() {
            return Vec::new();
        }
        let rate = seen.inspection.bandwidth.map_or(0, |rate| rate.bits_per_sec() / 8);
        let min = seen.inspection.min_rtt.or(seen.details.min_rtt);
        let min_rtt = min.map_or(0, |rtt| u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX));
        let gain = |have: u64, of: u64| {
            u32::try_from((have * GAIN_ONE).checked_div(of).unwrap_or(0)).unwrap_or(u32::MAX)
        };
        let paced = seen.details.pacing.map_or(0, |rate| rate.bits_per_sec() / 8);
        let product = rate.saturating_mul(min_rtt.into()) / 1_000_000;
        let window = u64::from(seen.inspection.cwnd.get()) * u64::from(seen.inspection.mss);
        let words = [rate as u32, (rate >> 32) as u32, min_rtt, gain(paced, rate), gain(window, product)];
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }
}

/// The value of an option.
enum Reported {
    Int(i32),
    Bytes(Vec<u8>),
}

fn timeval(time: Option<Duration>) -> Vec<u8> {
    let time = time.unwrap_or_default();
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    [seconds.to_ne_bytes(), i64::from(time.subsec_micros()).to_ne_bytes()].concat()
}

const _: fn(&std::io::Error) -> Errno = errno;
