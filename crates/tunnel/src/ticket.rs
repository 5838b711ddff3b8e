//! What lets one end reach the other: where it is, its keys, and a secret, in one line.
//!
//! ```text
//! farpace:203.0.113.5:7077,[2001:db8::5]:7077#KEYS
//! ```
//! `KEYS` are 64 bytes in base64 for URLs: the public key of the tunnel (X25519), a fingerprint of the public
//! key of TLS (Ed25519), and the secret. Whoever has the line may use it; nobody else can open a way or read
//! what passes. The end that waits proves its keys, which cannot be worked out from the line.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use farpace_live::device::udp_tunnel::{PresharedKey, PublicKey, SecretKey};
use farpace_live::{PrivateFileError, read_private};
use farpace_transfer::kernel::{derive_key, random_key};
use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::str::FromStr;
use thiserror::Error;

/// How a ticket begins.
const BEGINNING: &str = "farpace:";
/// Places of a ticket at most.
pub const MAX_PLACES: usize = 16;
/// Longest ticket, in bytes.
pub const MAX_TICKET: usize = 4_096;
/// Longest key file, in bytes.
const MAX_KEY_FILE: u64 = 1_024;
const FINGERPRINT: usize = 16;
const SECRET: usize = 16;
const KEYS: usize = 32 + FINGERPRINT + SECRET;

/// A text that is not a ticket. It is not repeated: it may be most of one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("not a ticket: {0}; a ticket is the line that `farpace recv` prints: farpace:ADDRESS:PORT#KEYS")]
pub struct TicketError(&'static str);

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TicketPlace {
    /// A name or an address.
    pub host: String,
    /// UDP and TCP.
    pub port: u16,
}

/// What lets one end reach the other.
#[derive(Clone, PartialEq, Eq)]
pub struct Ticket {
    /// Where the end that waits may be.
    pub places: Vec<TicketPlace>,
    key: PublicKey,
    tls: [u8; FINGERPRINT],
    secret: [u8; SECRET],
}

/// The keys of an end that waits.
#[derive(Clone)]
pub struct TicketIdentity {
    seed: [u8; 32],
}

impl TicketIdentity {
    /// New keys, which only this process knows.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn generate() -> io::Result<Self> {
        Ok(TicketIdentity { seed: random_key()? })
    }

    /// The keys that are kept in a file, which is made if it is not there. Nobody else may be able to read
    /// it.
    ///
    /// # Errors
    /// It cannot be read or made, holds something else, or is open to others.
    pub fn kept(path: &Path) -> io::Result<Self> {
        let other = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        match read_private(path, MAX_KEY_FILE) {
            Err(PrivateFileError::Unreadable(error)) if error.kind() == io::ErrorKind::NotFound => {}
            Err(PrivateFileError::Unreadable(error)) => return Err(error),
            Err(error) => return Err(other(&error.to_string())),
            Ok(text) => {
                let mut seed = [0; 33];
                let len = URL_SAFE_NO_PAD.decode_slice(text.trim(), &mut seed);
                return match (len, seed.first_chunk()) {
                    (Ok(32), Some(seed)) => Ok(TicketIdentity { seed: *seed }),
                    _ => Err(other("it holds no key of farpace; remove it, and a new one is made")),
                };
            }
        }
        let new = TicketIdentity::generate()?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        file.write_all(format!("{}\n", URL_SAFE_NO_PAD.encode(new.seed)).as_bytes())?;
        file.sync_all()?;
        Ok(new)
    }

    /// The private key of the tunnel.
    pub fn tunnel(&self) -> SecretKey {
        SecretKey::from_bytes(derive_key("farpace ticket 1: X25519 key of the tunnel", &[&self.seed]))
    }
    /// The seed of the Ed25519 key of TLS.
    pub fn tls(&self) -> [u8; 32] {
        derive_key("farpace ticket 1: Ed25519 key of TLS", &[&self.seed])
    }
    /// The ticket to this end at `places`, whose public key of TLS is `tls`.
    pub fn ticket(&self, places: Vec<TicketPlace>, tls: &[u8]) -> Ticket {
        let secret = derive_key("farpace ticket 1: secret", &[&self.seed]);
        Ticket {
            places,
            key: self.tunnel().public(),
            tls: fingerprint(tls),
            secret: secret.first_chunk().copied().unwrap_or_default(),
        }
    }
}

/// What a ticket says of a public key.
fn fingerprint(key: &[u8]) -> [u8; FINGERPRINT] {
    let hash = derive_key("farpace ticket 1: fingerprint", &[key]);
    hash.first_chunk().copied().unwrap_or_default()
}

impl Ticket {
    /// The public key of the tunnel.
    pub const fn key(&self) -> PublicKey {
        self.key
    }
    /// What both ends mix into handshakes of the tunnel.
    pub fn preshared(&self) -> PresharedKey {
        PresharedKey::from_bytes(derive_key("farpace ticket 1: preshared key", &[&self.secret]))
    }
    /// The seed of the Ed25519 key by which whoever has this ticket shows it in TLS.
    pub fn bearer(&self) -> [u8; 32] {
        derive_key("farpace ticket 1: Ed25519 key of its bearer", &[&self.secret])
    }
    /// True if this is the public key of TLS of the end that waits.
    pub fn is_tls_key(&self, key: &[u8]) -> bool {
        fingerprint(key) == self.tls
    }
    /// Adds a place, unless it is there.
    pub fn add(&mut self, place: TicketPlace) {
        if !self.places.contains(&place) && self.places.len() < MAX_PLACES {
            self.places.push(place);
        }
    }
    /// The addresses of all places that have one.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let mut all = Vec::new();
        for TicketPlace { host, port } in &self.places {
            for at in (host.as_str(), *port).to_socket_addrs().into_iter().flatten() {
                if !all.contains(&at) {
                    all.push(at);
                }
            }
        }
        all
    }
}

impl fmt::Display for TicketPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl FromStr for TicketPlace {
    type Err = TicketError;
    fn from_str(text: &str) -> Result<Self, TicketError> {
        let (host, port) = text.rsplit_once(':').ok_or(TicketError("a place without a port"))?;
        let port = port.parse().ok().filter(|port| *port > 0).ok_or(TicketError("a port that is none"))?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_name = |host: &str| {
            let of_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
            !host.is_empty() && host.len() < 254 && host.chars().all(of_name)
        };
        let host = match bare {
            Some(bare) if bare.parse::<IpAddr>().is_ok() => bare,
            None if is_name(host) => host,
            _ => return Err(TicketError("a place that is none")),
        };
        Ok(TicketPlace { host: host.to_owned(), port })
    }
}

/// All of it, secret included.
impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places: Vec<_> = self.places.iter().map(TicketPlace::to_string).collect();
        let keys = [&self.key.to_bytes()[..], &self.tls, &self.secret].concat();
        write!(f, "{BEGINNING}{}#{}", places.join(","), URL_SAFE_NO_PAD.encode(keys))
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("places", &self.places).finish_non_exhaustive()
    }
}

impl FromStr for Ticket {
    type Err = TicketError;
    fn from_str(text: &str) -> Result<Self, TicketError> {
        if text.len() > MAX_TICKET {
            return Err(TicketError("it is too long"));
        }
        let rest =
            text.trim().strip_prefix(BEGINNING).ok_or(TicketError("it does not begin with `farpace:`"))?;
        let (places, keys) = rest.split_once('#').ok_or(TicketError("it has no `#`"))?;
        let places: Vec<TicketPlace> = places.split(',').map(str::parse).collect::<Result<_, _>>()?;
        if places.len() > MAX_PLACES {
            return Err(TicketError("it has too many places"));
        }
        let mut bytes = [0; KEYS + 2];
        let len = URL_SAFE_NO_PAD.decode_slice(keys, &mut bytes);
        if len != Ok(KEYS) {
            return Err(TicketError("its keys are not whole"));
        }
        let short = TicketError("its keys are not whole");
        let (key, rest) = bytes.split_first_chunk().ok_or(short.clone())?;
        let (tls, rest) = rest.split_first_chunk().ok_or(short.clone())?;
        let (secret, _) = rest.split_first_chunk().ok_or(short)?;
        Ok(Ticket { places, key: PublicKey::from_bytes(*key), tls: *tls, secret: *secret })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket() -> Ticket {
        let places = ["203.0.113.5:7077", "[2001:db8::5]:7077", "far.example:9000"];
        let places = places.iter().map(|place| place.parse().unwrap()).collect();
        TicketIdentity { seed: [3; 32] }.ticket(places, b"public key")
    }

    /// Breaks: a ticket that was printed is not understood at the other end, or other keys come out of it.
    #[test]
    fn a_ticket_is_read_as_it_was_printed() {
        let ticket = ticket();
        let text = ticket.to_string();
        assert!(text.starts_with("farpace:203.0.113.5:7077,[2001:db8::5]:7077,far.example:9000#"), "{text}");
        let again: Ticket = text.parse().unwrap();
        assert_eq!(again, ticket);
        assert_eq!((again.key(), again.bearer()), (ticket.key(), ticket.bearer()));
        assert!(again.is_tls_key(b"public key") && !again.is_tls_key(b"public kez"));
        assert!(!text.contains('\'') && !text.contains(' '), "it is one word of a shell");
        let other = TicketIdentity { seed: [4; 32] }.ticket(ticket.places.clone(), b"public key");
        assert_ne!(other.bearer(), ticket.bearer());
    }

    /// Breaks: half a ticket is used, or its secret stands in an error or a debug line.
    #[test]
    fn what_is_no_ticket_is_refused_and_not_repeated() {
        let text = ticket().to_string();
        let secret = text.split_once('#').unwrap().1;
        for wrong in [
            "",
            "far.example:7077",
            &text[1..],
            &text[..text.len() - 2],
            &format!("{text}A"),
            &text.replace('#', "/"),
            &text.replace(":7077,", ":0,"),
            &text.replace("203.0.113.5", "a b"),
            &text.replace("[2001:db8::5]", "[2001:db8::g]"),
            &text.replace("far.example", "-oProxyCommand=x;y"),
            &format!("farpace:{}#{secret}", vec!["a:1"; MAX_PLACES + 1].join(",")),
            &"farpace:".repeat(1_000),
        ] {
            let error = wrong.parse::<Ticket>().unwrap_err().to_string();
            assert!(!error.contains(&secret[..20]), "{error}");
        }
        assert!(!format!("{:?}", ticket()).contains(&secret[60..]));
    }

    /// Breaks: others may read a receiver's keys, or a receiver gets new ones each time.
    #[test]
    fn keys_are_kept_for_one_user() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let first = TicketIdentity::kept(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(TicketIdentity::kept(&path).unwrap().seed, first.seed);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let error = TicketIdentity::kept(&path).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("chmod 600"), "{error}");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "something else").unwrap();
        assert!(TicketIdentity::kept(&path).is_err());
    }
}
