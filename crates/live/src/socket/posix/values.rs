//! The values of a socket's options, and their effect on a connection.

use super::table::{COUNT, OPTIONS, Opt};
use crate::socket::options::SocketOptions;
use farpace_tcp::config::{Config, FIN_TIMEOUT, KeepAlive, MIN_MSS, Tuning};
use farpace_units::{ByteCount, Rate, Span};
use nix::errno::Errno;
use std::time::Duration;

/// Maximum FIN-WAIT-2 of TCP_LINGER2 (TCP_FIN_TIMEOUT_MAX).
pub(super) const MAX_LINGER2: i32 = 120;
/// Retransmissions of a SYN-ACK: the first after a second, then with doubled intervals up to a maximum
/// (Linux).
const SYN_ACK_TIMEOUT: u32 = 1;
const MAX_SYN_ACK_TIMEOUT: u32 = 120;

/// Control messages with the time of reception.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stamps {
    #[default]
    None,
    Micros,
    Nanos,
}

/// The values of the options of a socket.
#[derive(Clone)]
pub(super) struct OptionValues {
    ints: [i32; COUNT],
    given: [bool; COUNT],
    /// The options of the stack or of FP_SETTINGS.
    pub options: SocketOptions,
    pub receive_timeout: Option<Duration>,
    pub send_timeout: Option<Duration>,
    pub linger: Option<Duration>,
    pub stamps: Stamps,
    /// The control messages have the new time format (SO_TIMESTAMP_NEW and others).
    pub stamps_new: bool,
    /// Flags of SO_TIMESTAMPING.
    pub timestamping: u32,
    /// SO_MAX_PACING_RATE in bytes per second; none: no limit.
    pub pacing: Option<u64>,
    /// Segments sent when an option made the route void; none: it is none of this connection.
    pub unrouted: Option<u64>,
    /// The seconds that SO_LINGER last had while it was on.
    pub linger_seconds: i32,
    /// The name by which the congestion control was chosen.
    pub congestion: Option<String>,
    /// SO_TXTIME.
    pub txtime: [u8; 8],
    pub multicast_if: [u8; 4],
}

impl OptionValues {
    pub fn new(options: SocketOptions) -> Self {
        let mut ints = [0; COUNT];
        OPTIONS.iter().for_each(|row| ints[row.option as usize] = row.default);
        let mut values = OptionValues {
            ints,
            given: [false; COUNT],
            receive_timeout: None,
            send_timeout: None,
            linger: options.linger,
            stamps: Stamps::None,
            stamps_new: false,
            timestamping: 0,
            pacing: None,
            unrouted: None,
            linger_seconds: 0,
            congestion: None,
            txtime: [0; 8],
            multicast_if: [0; 4],
            options,
        };
        values.follow_options();
        values
    }

    /// Updates the options that the settings of the stack or FP_SETTINGS have changed.
    pub fn follow_options(&mut self) {
        let settings = self.options.settings.clone();
        let seconds = |span: Span| i32::try_from(span.as_millis().div_ceil(1000)).unwrap_or(i32::MAX);
        if let Some(nagle) = settings.nagle {
            self.put(Opt::NoDelay, (!nagle).into());
        }
        if let Some(idle) = settings.keep_alive {
            self.put(Opt::KeepAlive, 1);
            self.put(Opt::KeepIdle, seconds(idle));
        }
        if let Some(interval) = settings.keep_alive_interval {
            self.put(Opt::KeepInterval, seconds(interval));
        }
        if let Some(count) = settings.keep_alive_count {
            self.put(Opt::KeepCount, i32::try_from(count).unwrap_or(i32::MAX));
        }
        if let Some(timeout) = settings.user_timeout {
            self.put(Opt::UserTimeout, i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX));
        }
        if let Some(timeout) = settings.fin_timeout {
            self.put(Opt::Linger2, seconds(timeout));
        }
        if let Some(cap) = self.options.rate_cap {
            self.pacing = Some(cap.bits_per_sec() / 8);
        }
    }

    pub fn get(&self, option: Opt) -> i32 {
        self.ints[option as usize]
    }
    pub fn is_on(&self, option: Opt) -> bool {
        self.get(option) != 0
    }
    pub fn put(&mut self, option: Opt, value: i32) {
        (self.ints[option as usize], self.given[option as usize]) = (value, true);
    }
    /// Resets an option to its default.
    pub fn take_back(&mut self, option: Opt) {
        self.given[option as usize] = false;
    }
    /// True if the program has set the option.
    pub fn is_given(&self, option: Opt) -> bool {
        self.given[option as usize]
    }

    /// The initial values of an accepted socket.
    pub fn child(&self) -> Self {
        let mut child = self.clone();
        for row in OPTIONS.iter().filter(|row| !row.inherited) {
            (child.ints[row.option as usize], child.given[row.option as usize]) = (row.default, false);
        }
        child
    }

    /// The buffer requested by SO_SNDBUF or SO_RCVBUF, in bytes after doubling.
    pub fn buffer(&self, option: Opt) -> Option<u64> {
        self.is_given(option).then(|| u64::try_from(self.get(option)).unwrap_or(0))
    }

    /// Maximum rate of sent payload.
    pub fn rate_cap(&self) -> Option<Rate> {
        self.pacing.map(|bytes| Rate::from_bits_per_sec(bytes.saturating_mul(8)))
    }

    /// The configuration of a connection over IPv6 or IPv4, on a device with this MTU.
    pub fn config(&self, mtu: u16, over_v6: bool) -> nix::Result<Config> {
        let mut options = self.options.clone();
        let settings = &mut options.settings;
        if let Some(bytes) = self.buffer(Opt::ReceiveBuffer) {
            settings.receive_buffer = Some(ByteCount::new(bytes));
            settings.window = None;
        }
        if let Some(bytes) = self.buffer(Opt::SendBuffer) {
            settings.send_buffer = Some(ByteCount::new(bytes));
        }
        // Settings assume IPv4: subtract the difference of the IPv6 header (RFC 6691 §3). Without the keys of
        // keep-alive no contradiction is possible.
        (settings.keep_alive, settings.keep_alive_interval, settings.keep_alive_count) = (None, None, None);
        if let Some(mss) = self.requested_mss() {
            let mss = mss + if over_v6 { 20 } else { 0 };
            settings.mss = Some(settings.mss.unwrap_or(u16::MAX).min(mss).max(MIN_MSS));
        }
        if self.is_given(Opt::RtoMin) {
            settings.min_rto = Some(Span::from_micros(u64::try_from(self.get(Opt::RtoMin)).unwrap_or(0)));
        }
        let mut config = options.resolve(mtu).map_err(|_| Errno::EINVAL)?;
        let millis = u64::try_from(self.get(Opt::UserTimeout)).unwrap_or(0);
        config.nagle = !self.is_on(Opt::NoDelay);
        config.keep_alive = self.is_on(Opt::KeepAlive).then(|| self.keep_alive());
        config.user_timeout = (millis > 0).then(|| Span::from_millis(millis));
        config.fin_timeout = match self.get(Opt::Linger2) {
            _ if !self.is_given(Opt::Linger2) => config.fin_timeout,
            0 => FIN_TIMEOUT,
            seconds => u64::try_from(seconds).map_or(Span::from_millis(1), Span::from_secs),
        };
        config.tuning = self.tuning(mtu, over_v6);
        Ok(config)
    }

    /// TCP_MAXSEG.
    pub fn requested_mss(&self) -> Option<u16> {
        u16::try_from(self.get(Opt::MaxSeg)).ok().filter(|mss| self.is_given(Opt::MaxSeg) && *mss > 0)
    }

    fn keep_alive(&self) -> KeepAlive {
        let seconds = |option| Span::from_secs(u64::try_from(self.get(option)).unwrap_or(0).max(1));
        let count = u32::try_from(self.get(Opt::KeepCount)).unwrap_or(1);
        KeepAlive { idle: seconds(Opt::KeepIdle), interval: seconds(Opt::KeepInterval), count }
    }

    fn tuning(&self, mtu: u16, over_v6: bool) -> Tuning {
        let positive = |option| u32::try_from(self.get(option)).ok().filter(|n| *n > 0);
        let (class, hops, min, discover) = match over_v6 {
            true => (Opt::V6TClass, Opt::V6Hops, Opt::V6MinHopCount, Opt::V6MtuDiscover),
            false => (Opt::Tos, Opt::Ttl, Opt::MinTtl, Opt::MtuDiscover),
        };
        Tuning {
            cork: self.is_on(Opt::Cork),
            syn_retries: positive(Opt::SynCount).filter(|_| self.is_given(Opt::SynCount)),
            defer_accept: positive(Opt::DeferAccept).map_or(0, syn_acks_in),
            // As in Linux the option is unsigned: -1 means no limit.
            unsent_limit: Some(self.get(Opt::NotSentLow) as u32)
                .filter(|n| *n > 0 && *n < u32::MAX)
                .map(|n| ByteCount::new(n.into())),
            window_clamp: positive(Opt::WindowClamp),
            dscp: self.get(class) as u8 & !3,
            hops: u8::try_from(self.get(hops)).ok().filter(|_| self.is_given(hops)),
            min_hops: u8::try_from(self.get(min)).unwrap_or(u8::MAX),
            link_mtu: self.requested_mss().map(|_| mtu),
            reports_errors: self.is_on(if over_v6 { Opt::V6ReceiveErrors } else { Opt::ReceiveErrors }),
            may_be_cut: !over_v6 && !matches!(self.get(discover), 1 | 2),
        }
    }
}

/// The number of SYN-ACK retransmissions within this number of seconds.
pub(super) fn syn_acks_in(seconds: u32) -> u32 {
    let (mut count, mut timeout) = (u32::from(seconds > 0), SYN_ACK_TIMEOUT);
    let mut period = timeout;
    while seconds > period && count < 255 {
        count += 1;
        timeout = (2 * timeout).min(MAX_SYN_ACK_TIMEOUT);
        period += timeout;
    }
    count
}

/// The number of seconds that these SYN-ACK retransmissions take.
pub(super) fn seconds_of(syn_acks: u32) -> u32 {
    let (mut timeout, mut period) = (SYN_ACK_TIMEOUT, if syn_acks > 0 { SYN_ACK_TIMEOUT } else { 0 });
    for _ in 1..syn_acks.max(1) {
        timeout = (2 * timeout).min(MAX_SYN_ACK_TIMEOUT);
        period += timeout;
    }
    period
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: the seconds of TCP_DEFER_ACCEPT are rounded up to SYN-ACK retransmissions as in Linux.
    #[test]
    fn seconds_are_repetitions() {
        // As measured with getsockopt(2) of Linux 6.18.
        for (set, got) in
            [(0, 0), (1, 1), (2, 3), (4, 7), (8, 15), (63, 63), (128, 247), (255, 367), (1000, 1087)]
        {
            assert_eq!(seconds_of(syn_acks_in(set)), got, "{set}");
        }
        assert_eq!(seconds_of(syn_acks_in(32_767)), 29_887);
    }

    /// Breaks: accepted sockets inherit exactly the options that Linux passes on.
    #[test]
    fn children_inherit() {
        let mut values = OptionValues::new(SocketOptions::default());
        values.put(Opt::NoDelay, 1);
        values.put(Opt::KeepIdle, 33);
        values.put(Opt::DeferAccept, 7);
        let child = values.child();
        assert!(
            child.is_on(Opt::NoDelay) && child.get(Opt::KeepIdle) == 33 && !child.is_on(Opt::DeferAccept)
        );
    }

    /// Breaks: every option with an effect changes the connection.
    #[test]
    fn options_change_the_connection() {
        let mut values = OptionValues::new(SocketOptions::default());
        for (option, value) in [
            (Opt::NoDelay, 1),
            (Opt::Cork, 1),
            (Opt::MaxSeg, 1000),
            (Opt::SynCount, 3),
            (Opt::UserTimeout, 1500),
            (Opt::Linger2, 7),
            (Opt::Tos, 0xb8),
            (Opt::Ttl, 9),
            (Opt::MinTtl, 255),
            (Opt::MtuDiscover, 0),
            (Opt::NotSentLow, 4096),
            (Opt::ReceiveBuffer, 50_000),
            (Opt::KeepAlive, 1),
            (Opt::KeepIdle, 5),
        ] {
            values.put(option, value);
        }
        let config = values.config(1500, false).unwrap();
        let tuning = Tuning {
            cork: true,
            syn_retries: Some(3),
            unsent_limit: Some(ByteCount::new(4096)),
            dscp: 0xb8,
            hops: Some(9),
            min_hops: 255,
            may_be_cut: true,
            link_mtu: Some(1500),
            ..Tuning::default()
        };
        assert_eq!((config.nagle, config.mss, config.tuning), (false, 1000, tuning));
        assert_eq!(config.user_timeout, Some(Span::from_millis(1500)));
        assert_eq!(config.fin_timeout, Span::from_secs(7));
        assert_eq!(config.receive_buffer.max, ByteCount::new(50_000));
        assert_eq!(config.keep_alive.map(|keep| (keep.idle, keep.count)), Some((Span::from_secs(5), 9)));
        let over_v6 = values.config(1500, true).unwrap();
        assert_eq!((over_v6.mss, over_v6.tuning.hops, over_v6.tuning.dscp), (1020, None, 0), "20 come off");
    }
}
