//! setsockopt(2).

use super::socket::{PosixSocket, SocketState};
use super::table::{self, IP, IPV6, Opt, OptionRow, SOCKET, SetOption, TCP};
use super::values::{MAX_LINGER2, Stamps, seconds_of, syn_acks_in};
use farpace_tcp::config::Congestion;
use nix::errno::Errno;
use std::time::Duration;

/// SO_SNDBUF and SO_RCVBUF: minimum and maximum, after doubling (SOCK_MIN_SNDBUF, SOCK_MIN_RCVBUF).
const MIN_SEND_BUFFER: i32 = 4608;
const MIN_RECEIVE_BUFFER: i32 = 2304;
const MAX_BUFFER: i32 = 1 << 30;
/// SO_RCVLOWAT of TCP: half of the maximum receive buffer.
const MAX_LOW_WATER: i32 = 1 << 24;
/// TCP_MAXSEG.
const MIN_SEG: i32 = 88;
const MAX_SEG: i32 = 32_767;
/// TCP_WINDOW_CLAMP is at least half of the minimum receive buffer.
const MIN_CLAMP: i32 = MIN_RECEIVE_BUFFER / 2;
/// Maximum number of pending Fast Open connections (net.core.somaxconn).
const MAX_FAST_OPEN: i32 = 4096;
/// Maximum length of the name of a congestion control or another module, with its terminator
/// (TCP_CA_NAME_MAX).
const MAX_NAME: usize = 16;
/// Maximum length of the name of a device, with its terminator (IFNAMSIZ).
const MAX_DEVICE: usize = 16;
/// Maximum length of FP_SETTINGS.
const MAX_WORDS: usize = 4096;
/// A tick of the kernel in microseconds, the unit of some times.
const TICK: i32 = 4000;
/// Flags of SO_TIMESTAMPING, and those that require another.
const TIMESTAMPING: u32 = (1 << 18) - 1;
const ID: u32 = 1 << 7;
const ID_TCP: u32 = 1 << 16;
const BIND_PHC: u32 = 1 << 15;

impl PosixSocket {
    /// setsockopt(2). `value` is none for a null pointer.
    ///
    /// # Errors
    /// As in its manual page.
    pub fn set_option(&self, level: i32, number: i32, value: Option<&[u8]>) -> nix::Result<()> {
        let row = table::find(level, number, self.datagram)
            .filter(|row| level != IPV6 || self.v6 || row.level != IPV6);
        match level {
            SOCKET => self.check_socket_value(number, value)?,
            IPV6 if !self.v6 => return Err(Errno::ENOPROTOOPT),
            _ => {}
        }
        let row = row.ok_or(Errno::ENOPROTOOPT)?;
        if let Some(done) = self.set_bytes(row, value) {
            done?;
            // What a listener hands on.
            return if row.inherited && self.is_listening() { self.follow_values() } else { Ok(()) };
        }
        // These are read-only for any value; those of IPv6 groups for TCP only.
        let of_groups = matches!(row.option, Opt::V6MulticastIf | Opt::V6MulticastHops);
        let only_read =
            matches!(row.option, Opt::Mtu | Opt::PacketOptions | Opt::IpProtocol | Opt::V6PathMtu);
        if only_read || of_groups && !self.datagram {
            return Err(Errno::ENOPROTOOPT);
        }
        let int = self.int(row, value)?;
        match row.set {
            SetOption::Never => return Err(Errno::ENOPROTOOPT),
            SetOption::Fails(error) => return Err(error),
            SetOption::Flag => self.values().put(row.option, (int != 0).into()),
            SetOption::Any => self.values().put(row.option, int),
            SetOption::Within(low, high) if (low..=high).contains(&int) => self.values().put(row.option, int),
            SetOption::Within(..) => return Err(Errno::EINVAL),
            SetOption::Special => self.set_special(row.option, int, value)?,
        }
        self.follow(row.option, int)?;
        if row.inherited && self.is_listening() { self.follow_values() } else { Ok(()) }
    }

    /// Checks of SOL_SOCKET that precede the check of the option.
    fn check_socket_value(&self, number: i32, value: Option<&[u8]>) -> nix::Result<()> {
        if number == Opt::BindToDevice.row().number {
            return Ok(());
        }
        match value {
            Some(bytes) if bytes.len() < 4 => Err(Errno::EINVAL),
            None => Err(Errno::EFAULT),
            Some(_) => Ok(()),
        }
    }

    /// The `int` of a program; some levels accept less than four bytes.
    fn int(&self, row: &OptionRow, value: Option<&[u8]>) -> nix::Result<i32> {
        let bytes = match (row.level, value) {
            // IPv6 treats a null pointer as zero.
            (IPV6, None) => &[0; 4],
            (_, None) => return Err(Errno::EFAULT),
            (_, Some(bytes)) => bytes,
        };
        if let Some(int) = bytes.first_chunk() {
            return Ok(i32::from_ne_bytes(*int));
        }
        let needs_one = matches!(
            row.option,
            Opt::Ttl
                | Opt::FreeBind
                | Opt::Transparent
                | Opt::MinTtl
                | Opt::MulticastAll
                | Opt::MulticastTtl
                | Opt::MulticastLoop
        );
        let needs_four = matches!(
            row.option,
            Opt::RouterAlert
                | Opt::UnicastIf
                | Opt::LocalPortRange
                | Opt::AddMembership
                | Opt::DropMembership
        );
        match (row.level, bytes.first()) {
            (IP, _) if matches!(row.option, Opt::IpsecPolicy | Opt::XfrmPolicy) && bytes.is_empty() => {
                Err(Errno::EMSGSIZE)
            }
            (IP, _) if needs_four => Err(Errno::EINVAL),
            (IP, Some(byte)) => Ok(i32::from(*byte)),
            (IP, None) if needs_one => Err(Errno::EINVAL),
            (IP, None) => Ok(0),
            (IPV6, _)
                if matches!(row.option, Opt::V6DontFrag | Opt::V6AutoFlowLabel | Opt::V6ReceiveFragSize) =>
            {
                Ok(0)
            }
            _ => Err(Errno::EINVAL),
        }
    }

    /// Options whose values are not an `int`; none: this one's is.
    fn set_bytes(&self, row: &OptionRow, value: Option<&[u8]>) -> Option<nix::Result<()>> {
        let text = |max: usize| {
            let bytes = value.ok_or(Errno::EFAULT)?;
            let bytes = &bytes[..bytes.len().min(max)];
            Ok(String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default())
                .into_owned())
        };
        let bytes = value.unwrap_or_default();
        Some(match row.option {
            Opt::ReceiveTimeout | Opt::ReceiveTimeoutNew => {
                timeout(bytes).map(|time| self.values().receive_timeout = time)
            }
            Opt::SendTimeout | Opt::SendTimeoutNew => {
                timeout(bytes).map(|time| self.values().send_timeout = time)
            }
            Opt::Linger => self.set_linger(bytes),
            Opt::BindToDevice => match value {
                None => Err(Errno::EFAULT),
                Some(_) => match text(MAX_DEVICE - 1) {
                    Ok(name) if name.is_empty() => Ok(()),
                    // No device of the system belongs to the host.
                    Ok(_) => Err(Errno::ENODEV),
                    Err(error) => Err(error),
                },
            },
            Opt::AttachFilter if bytes.len() != 16 => Err(Errno::EINVAL),
            Opt::AttachFilter => Err(Errno::EOPNOTSUPP),
            Opt::TxTime if bytes.len() != 8 => Err(Errno::EINVAL),
            Opt::TxTime => self.set_txtime(bytes),
            Opt::MaxPacingRate => {
                let rate = match bytes.first_chunk::<8>() {
                    Some(long) => u64::from_ne_bytes(*long),
                    None => {
                        let short = bytes.first_chunk().map_or(u32::MAX, |int| u32::from_ne_bytes(*int));
                        if short == u32::MAX { u64::MAX } else { short.into() }
                    }
                };
                self.values().pacing = (rate != u64::MAX).then_some(rate);
                self.follow(Opt::MaxPacingRate, 0)
            }
            Opt::Congestion => match value {
                Some([]) => Err(Errno::EINVAL),
                _ => text(MAX_NAME - 1).and_then(|name| self.set_congestion(&name)),
            },
            Opt::Ulp => match value {
                Some([]) => Err(Errno::EINVAL),
                _ => text(MAX_NAME - 1).and(Err(Errno::ENOENT)),
            },
            Opt::FastOpenKey => match value {
                None => Err(Errno::EINVAL),
                Some(key) if matches!(key.len(), 16 | 32) => Ok(()),
                Some(_) => Err(Errno::EINVAL),
            },
            Opt::Settings => text(MAX_WORDS).and_then(|words| self.set_words(&words)),
            Opt::IpOptions => match value {
                None => Err(Errno::EFAULT),
                // Empty, or padding.
                Some(bytes) if bytes.iter().all(|byte| *byte <= 1) => Ok(()),
                Some(_) => Err(Errno::EINVAL),
            },
            Opt::V6HopOpts | Opt::V6DstOpts | Opt::V6RtHdr | Opt::V6RtHdrDstOpts => {
                if value == Some(&[]) {
                    Ok(())
                } else {
                    Err(Errno::EINVAL)
                }
            }
            Opt::V6PktOptions2292 => value.map_or(Err(Errno::EFAULT), |_| Ok(())),
            Opt::MulticastIf if self.datagram && value.is_none() => Err(Errno::EFAULT),
            Opt::MulticastIf if self.datagram => match bytes.len() {
                4 | 8 | 12 => self.set_multicast_if(bytes),
                _ => Err(Errno::EINVAL),
            },
            Opt::MulticastIf => Err(Errno::EINVAL),
            Opt::AddMembership | Opt::DropMembership if !self.datagram => Err(Errno::EPROTO),
            Opt::AddMembership | Opt::DropMembership | Opt::V6AddMembership | Opt::V6DropMembership => {
                let min = if row.level == IP { 8 } else { 20 };
                let adds = matches!(row.option, Opt::AddMembership | Opt::V6AddMembership);
                match bytes.len() < min || !self.datagram {
                    true => Err(Errno::EINVAL),
                    false => Err(if adds { Errno::ENODEV } else { Errno::EADDRNOTAVAIL }),
                }
            }
            _ => return None,
        })
    }

    fn set_linger(&self, bytes: &[u8]) -> nix::Result<()> {
        let word = |at: usize| bytes.get(at..)?.first_chunk().map(|int| i32::from_ne_bytes(*int));
        let (Some(on), Some(seconds)) = (word(0), word(4)) else { return Err(Errno::EINVAL) };
        // Linux treats the seconds as unsigned.
        let linger = (on != 0).then(|| Duration::from_secs((seconds as u32).into()));
        {
            let mut values = self.values();
            values.linger = linger;
            if on != 0 {
                values.linger_seconds = seconds;
            }
        }
        if let SocketState::Stream(stream) = self.state() {
            stream.set_linger(linger);
        }
        Ok(())
    }

    fn set_txtime(&self, bytes: &[u8]) -> nix::Result<()> {
        let flags = bytes.get(4..8).and_then(|b| b.try_into().ok()).map_or(0, u32::from_ne_bytes);
        if flags & !3 != 0 {
            return Err(Errno::EINVAL);
        }
        if let Ok(value) = bytes.try_into() {
            self.values().txtime = value;
        }
        Ok(())
    }

    fn set_multicast_if(&self, bytes: &[u8]) -> nix::Result<()> {
        let at = if bytes.len() == 4 { 0 } else { 4 };
        let octets: [u8; 4] = bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).ok_or(Errno::EINVAL)?;
        let ours = self
            .stack
            .call(move |host, _| host.addresses().contains(&octets.into()))
            .map_err(|e| super::errno(&e))?;
        if octets != [0; 4] && !ours {
            return Err(Errno::EADDRNOTAVAIL);
        }
        self.values().multicast_if = octets;
        Ok(())
    }

    /// TCP_CONGESTION, with the names of `farpace profiles` and those of Linux.
    fn set_congestion(&self, name: &str) -> nix::Result<()> {
        let own = if name == "bbr" { Congestion::Bbr3.name() } else { name };
        let mut values = self.values().clone();
        values.options = values.options.congestion(own).map_err(|_| Errno::ENOENT)?;
        values.congestion = Some(name.to_owned());
        // Some require a loss recovery that the profile does not have.
        let config = values.config(self.stack.mtu(), self.v6)?;
        *self.values() = values;
        match self.state() {
            SocketState::Stream(stream) => {
                let _ = stream.tune_later(move |connection, now| connection.set_congestion(now, &config));
                Ok(())
            }
            _ => self.follow_values(),
        }
    }

    /// FP_SETTINGS.
    fn set_words(&self, words: &str) -> nix::Result<()> {
        if matches!(self.state(), SocketState::Stream(_)) {
            return Err(Errno::EISCONN);
        }
        let mut values = self.values().clone();
        values.options.set(words).map_err(|_| Errno::EINVAL)?;
        values.congestion = None;
        values.follow_options();
        values.config(self.stack.mtu(), self.v6)?;
        *self.values() = values;
        self.follow_values()
    }

    /// Options with their own rules.
    fn set_special(&self, option: Opt, int: i32, value: Option<&[u8]>) -> nix::Result<()> {
        let put = |int| self.values().put(option, int);
        let within =
            |low: i32, high: i32| if (low..=high).contains(&int) { Ok(()) } else { Err(Errno::EINVAL) };
        let idle = matches!(self.state(), SocketState::Idle);
        let listens = self.is_listening();
        // Negative sizes are large, as in Linux.
        let doubled = |min: i32| {
            let bytes = (int as u32).min(u32::try_from(MAX_BUFFER / 2).unwrap_or(0)) as i32;
            (2 * bytes).max(min)
        };
        match option {
            Opt::SendBuffer | Opt::SendBufferForce => {
                self.values().put(Opt::SendBuffer, doubled(MIN_SEND_BUFFER));
            }
            Opt::ReceiveBuffer | Opt::ReceiveBufferForce => {
                self.values().put(Opt::ReceiveBuffer, doubled(MIN_RECEIVE_BUFFER));
            }
            Opt::BufferLock => {
                within(0, 3)?;
                put(int);
            }
            Opt::BsdCompat | Opt::CnxAdvice => {}
            Opt::ReceiveLow => {
                let max = if self.datagram { i32::MAX } else { MAX_LOW_WATER };
                put(if int < 0 { max } else { int.clamp(1, max) });
            }
            Opt::Timestamp | Opt::TimestampNew | Opt::TimestampNs | Opt::TimestampNsNew => {
                let nanos = matches!(option, Opt::TimestampNs | Opt::TimestampNsNew);
                let mut values = self.values();
                values.stamps = match (int != 0, nanos) {
                    (false, _) => Stamps::None,
                    (true, false) => Stamps::Micros,
                    (true, true) => Stamps::Nanos,
                };
                values.stamps_new = matches!(option, Opt::TimestampNew | Opt::TimestampNsNew) && int != 0;
            }
            Opt::Timestamping | Opt::TimestampingNew => self.set_timestamping(option, int)?,
            Opt::AttachBpf | Opt::AttachReusePortEbpf => {
                // Descriptors of programs are unknown here.
                return Err(if int == 0 { Errno::EINVAL } else { Errno::EBADF });
            }
            Opt::ZeroCopy => match int {
                0 => put(0),
                1 => return Err(Errno::EOPNOTSUPP),
                _ => return Err(Errno::EINVAL),
            },
            Opt::ReserveMemory => return Err(if int < 0 { Errno::EINVAL } else { Errno::EOPNOTSUPP }),
            Opt::TxRehash => {
                within(-1, 1)?;
                put(int.abs());
            }
            Opt::Tos => {
                // TCP controls the ECN bits.
                let keeps = if self.datagram { 0xff } else { 0xfc };
                let tos = i32::from(int as u8) & keeps;
                let asked = int & if self.datagram { !0 } else { !3 };
                let changes = self.values().get(option) != asked;
                put(tos);
                if changes && let SocketState::Stream(stream) = self.state() {
                    // Linux looks for the route anew with the next segment.
                    let sent = stream.inspect().ok().map(|seen| seen.details.segments_sent);
                    self.values().unrouted = sent;
                }
            }
            Opt::Ttl | Opt::V6Hops => match int {
                -1 => {
                    let mut values = self.values();
                    values.put(option, option.row().default);
                    values.take_back(option);
                }
                0 if option == Opt::V6Hops => put(0),
                1..=255 => put(int),
                _ => return Err(Errno::EINVAL),
            },
            Opt::FreeBind => put((int != 0).into()),
            Opt::Transparent | Opt::V6Transparent if int != 0 => return Err(Errno::EPERM),
            Opt::Transparent | Opt::V6Transparent => put(0),
            Opt::MinTtl => {
                within(0, 255)?;
                put(int);
            }
            Opt::ReceiveFragSize if !self.datagram => return Err(Errno::EINVAL),
            Opt::ReceiveFragSize | Opt::MulticastLoop => put((int != 0).into()),
            Opt::MulticastTtl if !self.datagram => return Err(Errno::EINVAL),
            Opt::MulticastTtl | Opt::V6MulticastHops => {
                within(-1, 255)?;
                put(if int == -1 { 1 } else { int });
            }
            Opt::V6MulticastIf => put(int),
            Opt::MulticastAll => {
                within(0, 1)?;
                put(int);
            }
            Opt::UnicastIf | Opt::V6UnicastIf if int != 0 => return Err(Errno::EADDRNOTAVAIL),
            Opt::UnicastIf | Opt::V6UnicastIf => put(0),
            Opt::LocalPortRange => {
                let (low, high) = (int as u32 & 0xffff, int as u32 >> 16);
                if low != 0 && high != 0 && low > high {
                    return Err(Errno::EINVAL);
                }
                put(int);
            }
            Opt::AddrForm => {
                let connected = self.option(IPV6, option.row().number, 4).is_ok();
                return Err(match int == i32::from(super::address::INET) {
                    // None of these is an IPv4-mapped address that is available without IPv6.
                    true if connected => Errno::EADDRNOTAVAIL,
                    true => Errno::ENOTCONN,
                    false => Errno::EINVAL,
                });
            }
            Opt::V6Mtu => {
                if int != 0 && int < 1280 {
                    return Err(Errno::EINVAL);
                }
            }
            Opt::V6Only => match idle || matches!(self.state(), SocketState::Unbound) {
                true if self.local().port() == 0 => put((int != 0).into()),
                _ => return Err(Errno::EINVAL),
            },
            Opt::V6TClass => {
                within(-1, 255)?;
                put(int.max(0) & if self.datagram { 0xff } else { 0xfc });
            }
            Opt::V6AddrPreferences => self.values().put(option, address_preferences(int)?),
            Opt::MaxSeg => {
                if int != 0 && !(MIN_SEG..=MAX_SEG).contains(&int) {
                    return Err(Errno::EINVAL);
                }
                put(int);
            }
            Opt::Linger2 => put(match int {
                ..0 => -1,
                0 => option.row().default,
                seconds => seconds.min(MAX_LINGER2),
            }),
            Opt::DeferAccept => {
                let seconds = seconds_of(syn_acks_in(u32::try_from(int).unwrap_or(0)));
                put(i32::try_from(seconds).unwrap_or(i32::MAX));
            }
            Opt::WindowClamp => match int {
                0 if !idle && !self.is_over() => return Err(Errno::EINVAL),
                0 => put(0),
                // Also unsigned.
                _ => put(if int < 0 { MIN_CLAMP } else { int.max(MIN_CLAMP) }),
            },
            Opt::QuickAck => {
                if let SocketState::Stream(stream) = self.state() {
                    let quick = int & 1 == 1 || int != 0;
                    let _ = stream.tune_later(move |connection, _| connection.set_quick_ack(quick));
                }
                put((int != 0).into());
            }
            Opt::ThinDupAck => {
                within(0, 1)?;
            }
            Opt::QueueSeq => {
                let closed = idle || self.is_over();
                return Err(if closed { Errno::EINVAL } else { Errno::EPERM });
            }
            Opt::FastOpen => {
                if int < 0 || !(idle || listens || self.is_over()) {
                    return Err(Errno::EINVAL);
                }
                put(int.min(MAX_FAST_OPEN));
            }
            Opt::FastOpenConnect => match int {
                0 | 1 => return Err(Errno::EOPNOTSUPP),
                _ => return Err(Errno::EINVAL),
            },
            Opt::FastOpenNoCookie => {
                within(0, 1)?;
                if !(idle || listens || self.is_over()) {
                    return Err(Errno::EINVAL);
                }
                put(int);
            }
            Opt::TxDelay => {
                within(0, 1 << 29)?;
                put(int);
            }
            Opt::AoRepair => return Err(Errno::EPERM),
            Opt::RtoMax => {
                within(1000, 120_000)?;
                put(ticks(int, TICK / 1000));
            }
            Opt::RtoMin | Opt::DelAckMax => {
                within(5000, 200_000)?;
                put(ticks(int, TICK));
            }
            Opt::UdpEncap => match int {
                0 => put(0),
                _ => return Err(Errno::ENOPROTOOPT),
            },
            // The values of the others are not an `int`, and were set before.
            _ => {
                let _ = value;
                return Err(Errno::ENOPROTOOPT);
            }
        }
        Ok(())
    }

    fn set_timestamping(&self, option: Opt, int: i32) -> nix::Result<()> {
        let flags = int as u32;
        if flags & !TIMESTAMPING != 0 || (flags & ID_TCP != 0 && flags & ID == 0) {
            return Err(Errno::EINVAL);
        }
        if flags & ID != 0
            && !self.datagram
            && matches!(self.state(), SocketState::Idle | SocketState::Listening(_))
        {
            return Err(Errno::EINVAL);
        }
        if flags & BIND_PHC != 0 {
            // There is no hardware clock.
            return Err(Errno::EOPNOTSUPP);
        }
        let mut values = self.values();
        values.timestamping = flags;
        values.stamps_new = option == Opt::TimestampingNew;
        Ok(())
    }

    /// Passes a changed option on to the connection or listener.
    fn follow(&self, option: Opt, int: i32) -> nix::Result<()> {
        match option {
            Opt::NoDelay
            | Opt::Cork
            | Opt::KeepAlive
            | Opt::KeepIdle
            | Opt::KeepInterval
            | Opt::KeepCount
            | Opt::UserTimeout
            | Opt::Linger2
            | Opt::SynCount
            | Opt::DeferAccept
            | Opt::WindowClamp
            | Opt::NotSentLow
            | Opt::MaxSeg
            | Opt::Tos
            | Opt::Ttl
            | Opt::MinTtl
            | Opt::MtuDiscover
            | Opt::ReceiveErrors
            | Opt::V6ReceiveErrors
            | Opt::V6TClass
            | Opt::V6Hops
            | Opt::V6MinHopCount
            | Opt::RtoMin
            | Opt::ReuseAddress
            | Opt::ReusePort => {
                if let (SocketState::Datagram(udp), true) =
                    (self.state(), matches!(option, Opt::ReuseAddress | Opt::ReusePort))
                {
                    let values = self.values();
                    udp.set_reuse(values.is_on(Opt::ReuseAddress), values.is_on(Opt::ReusePort));
                }
                self.follow_values()
            }
            Opt::ReceiveBuffer | Opt::SendBuffer | Opt::ReceiveBufferForce | Opt::SendBufferForce => {
                self.follow_buffers();
                self.follow_values()
            }
            Opt::MaxPacingRate => {
                let cap = self.values().rate_cap();
                if let SocketState::Stream(stream) = self.state() {
                    let _ = stream.tune_later(move |connection, _| connection.set_rate_cap(cap));
                }
                self.follow_values()
            }
            Opt::ReceiveLow => {
                if let SocketState::Stream(stream) = self.state() {
                    stream.set_low_water(usize::try_from(self.values().get(option)).unwrap_or(1));
                }
                Ok(())
            }
            Opt::OobInline => {
                if let SocketState::Stream(stream) = self.state() {
                    stream.set_urgent_inline(int != 0);
                }
                Ok(())
            }
            // All other options are read where they are used; listeners pass them on to accepted sockets.
            _ if self.is_listening() => self.follow_values(),
            _ => Ok(()),
        }
    }

    fn follow_buffers(&self) {
        if let (SocketState::Datagram(udp), Some(bytes)) =
            (self.state(), self.values().buffer(Opt::ReceiveBuffer))
        {
            udp.set_receive_buffer(bytes);
        }
    }
}

/// Rounded up to a multiple of ticks.
fn ticks(value: i32, tick: i32) -> i32 {
    value.saturating_add(tick - 1) / tick * tick
}

/// A `struct timeval`; zero, or a negative time: none.
fn timeout(bytes: &[u8]) -> nix::Result<Option<Duration>> {
    let word = |at: usize| bytes.get(at..)?.first_chunk().map(|long| i64::from_ne_bytes(*long));
    let (Some(seconds), Some(micros)) = (word(0), word(8)) else { return Err(Errno::EINVAL) };
    let micros = u64::try_from(micros).ok().filter(|n| *n < 1_000_000).ok_or(Errno::EDOM)?;
    let Ok(seconds) = u64::try_from(seconds) else {
        // As in Linux: an operation that would have to wait fails at once.
        return Ok(Some(Duration::ZERO));
    };
    let time = Duration::from_secs(seconds) + Duration::from_micros(micros);
    Ok((!time.is_zero()).then_some(time))
}

/// IPV6_ADDR_PREFERENCES: at most one of each group; returns the value to be read.
fn address_preferences(value: i32) -> nix::Result<i32> {
    const GROUPS: [[i32; 3]; 3] = [[0x1, 0x2, 0x100], [0x4, 0x400, 0], [0x8, 0x800, 0]];
    const DEFAULTS: [i32; 3] = [0x100, 0x400, 0];
    let mut all = 0;
    for (group, default) in GROUPS.iter().zip(DEFAULTS) {
        let chosen: Vec<i32> = group.iter().copied().filter(|bit| *bit != 0 && value & bit != 0).collect();
        match chosen[..] {
            [] => all |= default,
            // They are not stored.
            [0x8 | 0x800] => {}
            [one] => all |= one,
            _ => return Err(Errno::EINVAL),
        }
    }
    // Default preferences are always reported, the others only if chosen.
    Ok(all)
}

const _: i32 = TCP;
