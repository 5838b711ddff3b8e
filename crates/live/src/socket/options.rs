//! Options of sockets.

use farpace_tcp::config::{Config, Congestion, KeepAlive, Profile, Settings, SettingsError};
use farpace_units::{ByteCount, Rate, Span};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as NameError, StrDeserializer};
use std::time::Duration;
use thiserror::Error;

/// Default backlog of a listener. The peers of further connections try again.
pub const DEFAULT_BACKLOG: usize = 1024;
/// Length of TCP and IPv4 headers without options.
const HEADERS: u16 = 40;

/// The behaviour of a socket, and its TCP configuration. The default is that of [`Settings`].
///
/// ```
/// # use farpace_live::socket::SocketOptions;
/// let options = SocketOptions::profile("modern")?.congestion("bbr3")?.nodelay(true);
/// # Ok::<(), farpace_live::socket::OptionsError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SocketOptions {
    /// TCP: profile, congestion control, buffers, keep-alive and others. Without `mss`, that of the device
    /// applies.
    pub settings: Settings,
    /// Maximum rate of sent payload.
    pub rate_cap: Option<Rate>,
    /// Local port of an outgoing connection; 0: selected by the host.
    pub local_port: u16,
    /// Backlog of a listener; none: [`DEFAULT_BACKLOG`].
    pub backlog: Option<usize>,
    /// Of a listener: SYNs beyond its half-open connections are answered with SYN cookies (RFC 4987);
    /// otherwise they are dropped.
    pub cookies: bool,
    /// How long closing waits for the peer to acknowledge everything; zero: closing resets the connection;
    /// none: closing does not wait.
    pub linger: Option<Duration>,
    /// Maximum time to open a connection; none: as long as TCP retries, about three minutes.
    pub connect_timeout: Option<Duration>,
}

/// Invalid options.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OptionsError {
    /// No profile has this name.
    #[error("there is no profile `{0}`: `farpace profiles` lists them")]
    Profile(String),
    /// No congestion control has this name.
    #[error("there is no congestion control `{0}`: `farpace profiles` lists them")]
    Congestion(String),
    /// Settings are contradictory or out of range.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// An unknown word.
    #[error("`{word}`: expected {expected}")]
    Word {
        /// The word.
        word: String,
        /// The expected values.
        expected: &'static str,
    },
    /// A setting does not exist, or has an invalid value.
    #[error("`{word}`: {why}")]
    Setting {
        /// The word.
        word: String,
        /// The problem.
        why: String,
    },
}

impl Default for SocketOptions {
    fn default() -> Self {
        SocketOptions {
            settings: Settings::default(),
            rate_cap: None,
            local_port: 0,
            backlog: None,
            cookies: true,
            linger: None,
            connect_timeout: None,
        }
    }
}

fn named<T: for<'de> Deserialize<'de>>(name: &str) -> Option<T> {
    let name: StrDeserializer<'_, NameError> = name.into_deserializer();
    T::deserialize(name).ok()
}

impl SocketOptions {
    /// Uses this profile.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn profile(name: &str) -> Result<Self, OptionsError> {
        let profile: Profile = named(name).ok_or_else(|| OptionsError::Profile(name.to_owned()))?;
        let settings = Settings { profile: Some(profile), ..Settings::default() };
        Ok(SocketOptions { settings, ..SocketOptions::default() })
    }
    /// Uses these settings.
    pub fn of(settings: Settings) -> Self {
        SocketOptions { settings, ..SocketOptions::default() }
    }
    /// Uses this congestion control.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn congestion(mut self, name: &str) -> Result<Self, OptionsError> {
        let congestion: Congestion = named(name).ok_or_else(|| OptionsError::Congestion(name.to_owned()))?;
        self.settings.congestion = Some(congestion);
        Ok(self)
    }
    /// Short segments are sent at once (`TCP_NODELAY`), or wait for ACKs (Nagle).
    pub fn nodelay(mut self, nodelay: bool) -> Self {
        self.settings.nagle = Some(!nodelay);
        self
    }
    /// Keep-alive of idle connections; none: off.
    pub fn keep_alive(mut self, keep_alive: Option<KeepAlive>) -> Self {
        self.settings.keep_alive = keep_alive.map(|k| k.idle);
        self.settings.keep_alive_interval = keep_alive.map(|k| k.interval);
        self.settings.keep_alive_count = keep_alive.map(|k| k.count);
        self
    }
    /// User timeout: the connection is aborted if written data makes no progress for this time.
    pub fn user_timeout(mut self, timeout: Option<Span>) -> Self {
        self.settings.user_timeout = timeout;
        self
    }
    /// Buffers of the engine, in bytes. In addition, up to 512 KiB per direction are buffered between program
    /// and engine.
    pub fn buffers(mut self, receive: ByteCount, send: ByteCount) -> Self {
        self.settings.receive_buffer = Some(receive);
        self.settings.send_buffer = Some(send);
        self
    }
    /// Maximum rate of sent payload.
    pub fn rate_cap(mut self, cap: Option<Rate>) -> Self {
        self.rate_cap = cap;
        self
    }
    /// Local port of outgoing connections; 0: selected by the host.
    pub fn local_port(mut self, port: u16) -> Self {
        self.local_port = port;
        self
    }
    /// Maximum number of connections that wait to be accepted.
    pub fn backlog(mut self, backlog: usize) -> Self {
        self.backlog = Some(backlog);
        self
    }
    /// See [`linger`](SocketOptions::linger).
    pub fn linger(mut self, linger: Option<Duration>) -> Self {
        self.linger = linger;
        self
    }
    /// See [`connect_timeout`](SocketOptions::connect_timeout).
    pub fn connect_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// The configuration on a device with this MTU.
    ///
    /// # Errors
    /// Contradictory settings.
    pub fn resolve(&self, mtu: u16) -> Result<Config, OptionsError> {
        let mut settings = self.settings.clone();
        settings.mss.get_or_insert(
            mtu.saturating_sub(HEADERS).clamp(farpace_tcp::config::MIN_MSS, farpace_tcp::config::MAX_MSS),
        );
        Ok(settings.resolve()?)
    }
}
