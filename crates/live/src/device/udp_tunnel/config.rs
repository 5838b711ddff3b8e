//! A WireGuard configuration file, as `wg` and `wg-quick` read it.

use super::keys::{KeyError, PublicKey, SecretKey};
use super::{PeerConfig, TunnelConfig};
use crate::{PrivateFileError, read_private};
use std::net::{IpAddr, ToSocketAddrs};
use std::path::Path;
use std::str::FromStr;
use thiserror::Error;

/// Longest file, in bytes.
pub const MAX_FILE: usize = 1 << 20;
/// Most peers.
pub const MAX_FILE_PEERS: usize = 256;
/// The keys of `wg-quick` that are about the kernel's device, routes and names: a tunnel without privileges
/// has none of them.
const ABOUT_THE_SYSTEM: [&str; 8] =
    ["dns", "table", "preup", "postup", "predown", "postdown", "saveconfig", "fwmark"];

/// What stands in a file.
#[derive(Clone, Debug)]
pub struct WireguardFile {
    /// The tunnel.
    pub config: TunnelConfig,
    /// Keys that mean nothing to a tunnel without privileges, as they are written.
    pub ignored: Vec<String>,
}

/// A file that cannot be used. Keys are never repeated in it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WireguardError {
    /// A line that is none.
    #[error("line {line}: {what}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong, and what is expected.
        what: String,
    },
    /// Something must be there.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// It is longer than [`MAX_FILE`].
    #[error("longer than {MAX_FILE} B")]
    TooLong,
    /// The system does not let it be read.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// Other users may read the keys in it.
    #[error("other users may read its keys (mode {mode:o}); run chmod 600")]
    Exposed {
        /// Its permissions.
        mode: u32,
    },
}

#[derive(Default)]
struct PeerSection {
    key: Option<PublicKey>,
    preshared: Option<super::PresharedKey>,
    endpoints: Vec<std::net::SocketAddr>,
    allowed: Vec<(IpAddr, u8)>,
    keepalive: Option<u16>,
}

impl WireguardFile {
    /// Reads a file. Other users must not be able to read it.
    ///
    /// # Errors
    /// See [`WireguardError`].
    pub fn read(path: &Path) -> Result<Self, WireguardError> {
        let text = read_private(path, MAX_FILE as u64).map_err(|error| match error {
            PrivateFileError::Unreadable(error) => WireguardError::Unreadable(error.to_string()),
            PrivateFileError::Exposed { mode } => WireguardError::Exposed { mode },
            PrivateFileError::TooLong(_) => WireguardError::TooLong,
        })?;
        text.parse()
    }

    /// Networks that lie behind the peers (AllowedIPs).
    pub fn routes(&self) -> Vec<(IpAddr, u8)> {
        self.config.peers.iter().flat_map(|peer| peer.allowed.iter().copied()).collect()
    }

    /// True if a peer has an endpoint, so that this end can begin.
    pub fn dials(&self) -> bool {
        self.config.peers.iter().any(|peer| !peer.endpoints.is_empty())
    }
}

impl FromStr for WireguardFile {
    type Err = WireguardError;

    fn from_str(text: &str) -> Result<Self, WireguardError> {
        if text.len() > MAX_FILE {
            return Err(WireguardError::TooLong);
        }
        let mut own: Option<SecretKey> = None;
        let mut addresses = Vec::new();
        let (mut port, mut mtu) = (0, None);
        let mut peers: Vec<PeerSection> = Vec::new();
        let mut ignored = Vec::new();
        let mut section = "";
        for (number, raw) in text.lines().enumerate() {
            let wrong = |what: String| WireguardError::Line { line: number + 1, what };
            let line = raw.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            if line.eq_ignore_ascii_case("[interface]") {
                section = "interface";
                continue;
            }
            if line.eq_ignore_ascii_case("[peer]") {
                if peers.len() >= MAX_FILE_PEERS {
                    return Err(wrong(format!("more than {MAX_FILE_PEERS} peers")));
                }
                section = "peer";
                peers.push(PeerSection::default());
                continue;
            }
            let (name, value) =
                line.split_once('=').ok_or_else(|| wrong("not `Key = value` and not a section".into()))?;
            let (name, value) = (name.trim(), value.trim());
            let key = |_: KeyError| wrong(format!("{name}: {KeyError}"));
            let bad = |what: &str| wrong(format!("{name}: `{value}` is not {what}"));
            let word = name.to_ascii_lowercase();
            match (section, word.as_str(), peers.last_mut()) {
                ("interface", "privatekey", _) => own = Some(value.parse().map_err(key)?),
                ("interface", "listenport", _) => port = value.parse().map_err(|_| bad("a port"))?,
                ("interface", "mtu", _) => {
                    let bytes = value.parse().ok().filter(|mtu| (576..=65_475).contains(mtu));
                    mtu = Some(bytes.ok_or_else(|| bad("a number of bytes from 576 to 65475"))?);
                }
                ("interface", "address", _) => {
                    for one in value.split(',') {
                        addresses.push(
                            network(one).ok_or_else(|| bad("an address with the bits of its network"))?.0,
                        );
                    }
                }
                ("peer", "publickey", Some(peer)) => peer.key = Some(value.parse().map_err(key)?),
                ("peer", "presharedkey", Some(peer)) => peer.preshared = Some(value.parse().map_err(key)?),
                ("peer", "allowedips", Some(peer)) => {
                    for one in value.split(',').filter(|one| !one.trim().is_empty()) {
                        peer.allowed.push(network(one).ok_or_else(|| bad("a network like 10.0.0.0/24"))?);
                    }
                }
                ("peer", "endpoint", Some(peer)) => {
                    peer.endpoints =
                        value.to_socket_addrs().map_err(|_| bad("a HOST:PORT that is found"))?.collect();
                }
                ("peer", "persistentkeepalive", Some(peer)) => {
                    let seconds = if value.eq_ignore_ascii_case("off") { Ok(0) } else { value.parse() };
                    let seconds = seconds.map_err(|_| bad("a number of seconds"))?;
                    peer.keepalive = (seconds > 0).then_some(seconds);
                }
                ("interface", word, _) if ABOUT_THE_SYSTEM.contains(&word) => ignored.push(name.to_owned()),
                ("", ..) => return Err(wrong("a key before the first section".into())),
                _ => return Err(wrong(format!("`{name}` is not known in this section"))),
            }
        }
        let peers: Result<Vec<_>, _> = peers
            .into_iter()
            .map(|peer| {
                let PeerSection { key, preshared, endpoints, allowed, keepalive } = peer;
                let key = key.ok_or(WireguardError::Missing("PublicKey of a [Peer]"))?;
                Ok(PeerConfig { key, preshared, endpoints, allowed, keepalive })
            })
            .collect();
        let mut config = TunnelConfig::new(own.ok_or(WireguardError::Missing("PrivateKey of [Interface]"))?);
        config.bind.port = port;
        config.peers = peers?;
        (config.addresses, config.mtu) = (addresses, mtu);
        Ok(WireguardFile { config, ignored })
    }
}

fn network(text: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = text.trim().split_once('/').map_or((text.trim(), None), |(a, b)| (a, Some(b)));
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Some(most), |bits| bits.parse().ok())?;
    (bits <= most).then_some((address, bits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const FILE: &str = "\
[Interface]
PrivateKey = dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=
Address = 10.9.0.2/24, fd00::2/64
ListenPort = 51820   # ours
DNS = 1.1.1.1
MTU = 1400

[Peer]
PublicKey = hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=
PresharedKey = dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=
AllowedIPs = 10.9.0.1/32, fd00::/64
Endpoint = 127.0.0.1:51821
PersistentKeepalive = 25
";

    /// Breaks: a configuration that `wg-quick` takes is not understood.
    #[test]
    fn a_file_of_wg_quick_is_understood() {
        let file: WireguardFile = FILE.parse().unwrap();
        let config = file.config;
        assert_eq!(config.addresses, ["10.9.0.2".parse::<IpAddr>().unwrap(), "fd00::2".parse().unwrap()]);
        assert_eq!((config.bind.port, config.mtu), (51_820, Some(1_400)));
        let peer = &config.peers[0];
        assert_eq!(peer.allowed, [("10.9.0.1".parse().unwrap(), 32), ("fd00::".parse().unwrap(), 64)]);
        assert_eq!((peer.endpoints.len(), peer.keepalive, peer.preshared.is_some()), (1, Some(25), true));
        assert_eq!(file.ignored, ["DNS"]);
    }

    /// Breaks: a wrong file is used in part, its error does not say where, or it repeats a key.
    #[test]
    fn errors_say_where_and_repeat_no_key() {
        let secret = "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LC";
        for (text, said) in [
            (FILE.replace("LCo=\nAddress", "LC\nAddress"), "line 2: PrivateKey"),
            (FILE.replace("/24", "/33"), "line 3"),
            (FILE.replace("51820", "x"), "line 4"),
            (FILE.replace("MTU = 1400", "MTU = 100000"), "line 6"),
            (FILE.replace("AllowedIPs", "Allowed"), "line 11"),
            (FILE.replace("[Interface]\n", ""), "line 1: a key before"),
            (FILE.replace("PublicKey", "#"), "PublicKey of a [Peer] is missing"),
            (FILE.replace("PrivateKey", "#"), "PrivateKey of [Interface] is missing"),
            (" ".repeat(MAX_FILE + 1), "longer than"),
        ] {
            let error = text.parse::<WireguardFile>().unwrap_err().to_string();
            assert!(error.contains(said) && !error.contains(secret), "{said}: {error}");
        }
    }

    /// Breaks: keys that other users can read are used, a file that is not there is taken for an empty one,
    /// or a long one is read whole.
    #[test]
    fn files_are_for_one_user() {
        let path = std::env::temp_dir().join(format!("farpace-wireguard-{}.conf", std::process::id()));
        let missing = WireguardFile::read(&path).err();
        assert!(matches!(missing, Some(WireguardError::Unreadable(_))), "{missing:?}");
        std::fs::write(&path, FILE).unwrap();
        let allow = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        allow(0o640);
        assert_eq!(WireguardFile::read(&path).err(), Some(WireguardError::Exposed { mode: 0o640 }));
        allow(0o600);
        let file = WireguardFile::read(&path).unwrap();
        assert!(file.dials() && file.routes().contains(&("10.9.0.1".parse().unwrap(), 32)));
        std::fs::write(&path, vec![b'#'; MAX_FILE + 1]).unwrap();
        assert_eq!(WireguardFile::read(&path).err(), Some(WireguardError::TooLong));
        std::fs::remove_file(&path).unwrap();
    }
}
