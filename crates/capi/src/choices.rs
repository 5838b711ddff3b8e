//! Socket options: what setsockopt(2) may say, and what becomes of it.

use farpace_live::socket::{Options, Stream};
use farpace_tcp::config::{FIN_TIMEOUT, KeepAlive};
use farpace_units::{ByteCount, Rate, Span};
use nix::errno::Errno;
use nix::libc;
use std::time::Duration;

/// Linux's defaults for keep-alive.
const KEEP: KeepAlive = KeepAlive { idle: Span::from_secs(7200), interval: Span::from_secs(75), count: 9 };

/// The options of one socket.
#[derive(Clone)]
pub struct Choices {
    /// Those that the engine knows.
    pub options: Options,
    /// SO_RCVTIMEO.
    pub receive_timeout: Option<Duration>,
    /// SO_SNDTIMEO.
    pub send_timeout: Option<Duration>,
    /// IPV6_V6ONLY.
    pub v6_only: bool,
    keep: KeepAlive,
    keep_on: bool,
    reuse: bool,
}

/// The value of an option.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An `int`.
    Int(i32),
    /// A `struct timeval`; zero: none.
    Time(Option<Duration>),
    /// A `struct linger`.
    Linger(Option<Duration>),
    /// A string, without its end.
    Name(String),
}

/// What is to be done with a connection that is there already.
type Change = Box<dyn FnOnce(&mut farpace_tcp::Connection) + Send>;

impl Choices {
    /// With `options`.
    pub fn new(options: Options) -> Self {
        let (receive_timeout, send_timeout) = (None, None);
        Choices {
            options,
            receive_timeout,
            send_timeout,
            v6_only: false,
            keep: KEEP,
            keep_on: false,
            reuse: false,
        }
    }

    /// setsockopt(2).
    pub fn set(&mut self, level: i32, name: i32, value: &Value, stream: Option<&Stream>) -> nix::Result<()> {
        let change: Option<Change> = match (level, name, value) {
            (libc::SOL_SOCKET, libc::SO_RCVTIMEO, Value::Time(time)) => {
                self.receive_timeout = *time;
                None
            }
            (libc::SOL_SOCKET, libc::SO_SNDTIMEO, Value::Time(time)) => {
                self.send_timeout = *time;
                None
            }
            (libc::SOL_SOCKET, libc::SO_LINGER, Value::Linger(linger)) => {
                self.options.linger = *linger;
                if let Some(stream) = stream {
                    stream.set_linger(*linger);
                }
                None
            }
            (libc::IPPROTO_TCP, libc::TCP_CONGESTION, Value::Name(name)) => {
                if stream.is_some() {
                    return Err(Errno::EOPNOTSUPP); // the engine chooses at the beginning
                }
                self.options = self.options.clone().congestion(name).map_err(|_| Errno::ENOENT)?;
                None
            }
            (_, _, Value::Int(number)) => self.set_int(level, name, *number)?,
            _ => return Err(Errno::EINVAL),
        };
        match (stream, change) {
            (Some(stream), Some(change)) => stream.tune(change).map_err(|e| crate::socket::errno(&e)),
            _ => Ok(()),
        }
    }

    fn set_int(&mut self, level: i32, name: i32, value: i32) -> nix::Result<Option<Change>> {
        let positive = || u64::try_from(value).ok().filter(|n| *n > 0).ok_or(Errno::EINVAL);
        // As Linux does: bookkeeping is included in what is asked for.
        let bytes = || u64::try_from(value).map(|n| ByteCount::new((2 * n).clamp(4608, 1 << 30)));
        Ok(match (level, name) {
            (libc::SOL_SOCKET, libc::SO_REUSEADDR) => {
                self.reuse = value != 0; // and always so here
                None
            }
            (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY) => {
                self.v6_only = value != 0;
                None
            }
            (libc::SOL_SOCKET, libc::SO_RCVBUF) => {
                self.options.settings.receive_buffer = Some(bytes().map_err(|_| Errno::EINVAL)?);
                None
            }
            (libc::SOL_SOCKET, libc::SO_SNDBUF) => {
                self.options.settings.send_buffer = Some(bytes().map_err(|_| Errno::EINVAL)?);
                None
            }
            (libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE) => {
                // -1: none, as in Linux.
                let rate = u64::try_from(value).ok().map(|n| Rate::from_bits_per_sec(n.saturating_mul(8)));
                self.options.rate_cap = rate;
                Some(Box::new(move |c| c.set_rate_cap(rate)))
            }
            (libc::SOL_SOCKET, libc::SO_KEEPALIVE) => {
                self.keep_on = value != 0;
                Some(self.keep_alive())
            }
            (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE) => {
                self.keep.idle = Span::from_secs(positive()?);
                Some(self.keep_alive())
            }
            (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL) => {
                self.keep.interval = Span::from_secs(positive()?);
                Some(self.keep_alive())
            }
            (libc::IPPROTO_TCP, libc::TCP_KEEPCNT) => {
                self.keep.count = positive()? as u32;
                Some(self.keep_alive())
            }
            (libc::IPPROTO_TCP, libc::TCP_NODELAY) => {
                self.options.settings.nagle = Some(value == 0);
                Some(Box::new(move |c| c.set_nagle(value == 0)))
            }
            (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT) => {
                let time = u64::try_from(value).map_err(|_| Errno::EINVAL)?;
                let time = (time > 0).then(|| Span::from_millis(time));
                self.options.settings.user_timeout = time;
                Some(Box::new(move |c| c.set_user_timeout(time)))
            }
            (libc::IPPROTO_TCP, libc::TCP_LINGER2) => {
                let seconds = u64::try_from(value).map_err(|_| Errno::EINVAL)?;
                let time = if seconds > 0 { Span::from_secs(seconds) } else { FIN_TIMEOUT };
                self.options.settings.fin_timeout = Some(time);
                Some(Box::new(move |c| c.set_fin_timeout(time)))
            }
            (libc::IPPROTO_TCP, libc::TCP_MAXSEG) => {
                let mss = u16::try_from(value).ok().filter(|mss| (88..=65_495).contains(mss));
                self.options.settings.mss = Some(mss.ok_or(Errno::EINVAL)?);
                None
            }
            _ => return Err(Errno::ENOPROTOOPT),
        })
    }

    fn keep_alive(&mut self) -> Change {
        let keep = self.keep_on.then_some(self.keep);
        self.options = self.options.clone().keep_alive(keep);
        Box::new(move |c| c.set_keep_alive(keep))
    }

    /// getsockopt(2), but for what only the socket knows.
    pub fn get(&self, level: i32, name: i32, stream: Option<&Stream>) -> nix::Result<Value> {
        let settings = &self.options.settings;
        let seconds = |span: Span| Value::Int((span.as_millis() / 1000).try_into().unwrap_or(i32::MAX));
        let int = |n: u64| Value::Int(n.try_into().unwrap_or(i32::MAX));
        let config = || self.options.resolve(1500).map_err(|_| Errno::EINVAL);
        Ok(match (level, name) {
            (libc::SOL_SOCKET, libc::SO_RCVTIMEO) => Value::Time(self.receive_timeout),
            (libc::SOL_SOCKET, libc::SO_SNDTIMEO) => Value::Time(self.send_timeout),
            (libc::SOL_SOCKET, libc::SO_LINGER) => Value::Linger(self.options.linger),
            (libc::SOL_SOCKET, libc::SO_REUSEADDR) => Value::Int(self.reuse.into()),
            (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY) => Value::Int(self.v6_only.into()),
            (libc::SOL_SOCKET, libc::SO_KEEPALIVE) => Value::Int(self.keep_on.into()),
            (libc::SOL_SOCKET, libc::SO_RCVBUF) => int(config()?.receive_buffer.get()),
            (libc::SOL_SOCKET, libc::SO_SNDBUF) => int(config()?.send_buffer.get()),
            (libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE) => {
                self.options.rate_cap.map_or(Value::Int(-1), |rate| int(rate.bits_per_sec() / 8))
            }
            (libc::IPPROTO_TCP, libc::TCP_NODELAY) => Value::Int((settings.nagle == Some(false)).into()),
            (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE) => seconds(self.keep.idle),
            (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL) => seconds(self.keep.interval),
            (libc::IPPROTO_TCP, libc::TCP_KEEPCNT) => int(self.keep.count.into()),
            (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT) => {
                int(settings.user_timeout.map_or(0, Span::as_millis))
            }
            (libc::IPPROTO_TCP, libc::TCP_LINGER2) => seconds(settings.fin_timeout.unwrap_or(FIN_TIMEOUT)),
            (libc::IPPROTO_TCP, libc::TCP_MAXSEG) => match stream.map(Stream::inspect) {
                Some(Ok(seen)) => int(seen.inspection.mss.into()),
                _ => int(config()?.mss.into()),
            },
            (libc::IPPROTO_TCP, libc::TCP_CONGESTION) => Value::Name(config()?.congestion.name().to_owned()),
            _ => return Err(Errno::ENOPROTOOPT),
        })
    }
}
