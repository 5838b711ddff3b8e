//! What a gateway of a pair knows of its peer: keys, places, and the prefixes behind both.
//!
//! `farpace gateway keys` makes two such files. Whoever has one can be its site, so a file is for one user
//! alone, and no error repeats a line of it.

use anyhow::{Context, Result, anyhow, bail, ensure};
use farpace_gateway::limits::MAX_SITE_PREFIXES;
use farpace_live::device::udp_tunnel::{KEEPALIVE, PresharedKey, PublicKey, SecretKey};
use farpace_live::{MAX_TUNNEL_PATHS, PrivateFileError, read_private};
use farpace_path::Prefix;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::str::FromStr;

/// Length of a file at most, in bytes.
const MAX_FILE: u64 = 1 << 16;
/// Bounds of the MTU of the tunnel, in bytes: IPv6 needs the first (RFC 8200 §5).
const MTUS: std::ops::RangeInclusive<u16> = 1_280..=9_000;

/// The file of a peer.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PeerFile {
    /// What this site is called.
    pub site: String,
    /// What the site of the peer is called.
    pub peer: String,
    /// Networks behind this gateway, as in "10.1.0.0/16".
    pub prefixes: Vec<Prefix>,
    /// Networks behind the peer: what is for them goes through the tunnel.
    pub peer_prefixes: Vec<Prefix>,
    /// A secret of both, 32 bytes in base64.
    #[serde(deserialize_with = "key")]
    #[schemars(with = "String")]
    pub preshared_key: PresharedKey,
    /// The longest packet inside, in bytes (default: what the paths bear, found out at the start).
    pub mtu: Option<u16>,
    /// The paths between both, in the same order in both files: one for each pair of links.
    #[serde(rename = "path")]
    pub paths: Vec<PeerPath>,
}

/// One path: a tunnel of WireGuard with keys of its own.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PeerPath {
    /// The private key of this end, in base64.
    #[serde(deserialize_with = "key")]
    #[schemars(with = "String")]
    pub private_key: SecretKey,
    /// The public key of the peer, in base64.
    #[serde(deserialize_with = "key")]
    #[schemars(with = "String")]
    pub peer_public_key: PublicKey,
    /// The UDP port of this end (default: the system chooses one).
    pub listen_port: Option<u16>,
    /// Where the peer is, as in "192.0.2.1:51820" (default: the peer comes to us).
    pub endpoint: Option<String>,
    /// Seconds after which an empty packet is sent in silence; 0: never (default: 25 where there is an
    /// endpoint).
    pub keepalive: Option<u16>,
}

/// The text of a key. What is wrong is told without the text.
fn key<'de, D: Deserializer<'de>, T: FromStr>(deserializer: D) -> Result<T, D::Error>
where
    T::Err: std::fmt::Display,
{
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

impl PeerFile {
    /// Reads a file that no other user may read.
    ///
    /// # Errors
    /// It cannot be read, or says something that it cannot say, with the line.
    pub fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let text = read_private(path, MAX_FILE).map_err(|error| match error {
            PrivateFileError::Unreadable(error) => {
                anyhow!("cannot read {shown}: `farpace gateway keys` makes it, for both sites: {error}")
            }
            PrivateFileError::Exposed { mode } => {
                anyhow!("{shown} has keys that other users may read (mode {mode:o}): chmod 600 {shown}")
            }
            PrivateFileError::TooLong(limit) => anyhow!("{shown} is longer than {limit} bytes"),
        })?;
        PeerFile::parse(&text).with_context(|| format!("{shown}"))
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// What is wrong, with the line, but without its text.
    pub fn parse(text: &str) -> Result<Self> {
        let file: PeerFile = toml::from_str(text).map_err(|error| {
            let line =
                error.span().map_or(0, |span| text.get(..span.start).unwrap_or("").matches('\n').count() + 1);
            anyhow::anyhow!("line {line}: {}", without_values(error.message()))
        })?;
        file.check()?;
        Ok(file)
    }

    /// Checks what no single value says.
    fn check(&self) -> Result<()> {
        for (what, prefixes) in [("prefixes", &self.prefixes), ("peer_prefixes", &self.peer_prefixes)] {
            ensure!(
                !prefixes.is_empty(),
                "{what} is empty: name the networks behind it, as in [\"10.1.0.0/16\"]"
            );
            ensure!(
                prefixes.len() <= MAX_SITE_PREFIXES,
                "{what} has {}: at most {MAX_SITE_PREFIXES}",
                prefixes.len()
            );
        }
        if let Some(both) = self.prefixes.iter().find(|prefix| self.peer_prefixes.contains(prefix)) {
            bail!("{both} is behind both sites: a packet for it would have two ways");
        }
        ensure!(
            !self.paths.is_empty(),
            "there is no [[path]]: `farpace gateway keys` makes one for each link"
        );
        ensure!(
            self.paths.len() <= MAX_TUNNEL_PATHS,
            "{} paths: at most {MAX_TUNNEL_PATHS}",
            self.paths.len()
        );
        if let Some(mtu) = self.mtu.filter(|mtu| !MTUS.contains(mtu)) {
            bail!("mtu is {mtu}: {} to {} bytes", MTUS.start(), MTUS.end());
        }
        for (number, path) in (1..).zip(&self.paths) {
            let keys = |other: &PeerPath| {
                other.private_key.public() == path.private_key.public()
                    || other.peer_public_key == path.peer_public_key
            };
            ensure!(
                self.paths.iter().filter(|other| keys(other)).count() == 1,
                "path {number} has a key of another path: each path has keys of its own"
            );
            ensure!(
                path.private_key.public() != path.peer_public_key,
                "path {number}: peer_public_key is that of this end; the files of both sites were mixed up"
            );
            ensure!(
                path.endpoint.is_some() || path.listen_port.is_some_and(|port| port > 0),
                "path {number} has neither endpoint nor listen_port: one end must know where the other is"
            );
        }
        ensure!(
            self.addresses().is_some_and(|[own, peer]| own != peer),
            "both ends have the same address inside: make other keys with `farpace gateway keys`"
        );
        Ok(())
    }

    /// The addresses of both ends inside the tunnels, which follow from the keys of the first path.
    pub fn addresses(&self) -> Option<[std::net::Ipv4Addr; 2]> {
        let first = self.paths.first()?;
        Some([first.private_key.public().inner_address(), first.peer_public_key.inner_address()])
    }
}

/// The message, without the value of a wrong type: it may be a key.
fn without_values(message: &str) -> String {
    match message.split_once(", expected ") {
        Some((what, expected)) if what.starts_with("invalid") => format!("expected {expected}"),
        _ => message.to_owned(),
    }
}

impl PeerPath {
    /// Where the peer may be.
    ///
    /// # Errors
    /// The name is not found.
    pub fn endpoints(&self) -> Result<Vec<SocketAddr>> {
        let Some(endpoint) = &self.endpoint else { return Ok(Vec::new()) };
        let found = endpoint
            .to_socket_addrs()
            .with_context(|| format!("endpoint `{endpoint}` is not a HOST:PORT that is found"))?;
        Ok(found.collect())
    }
    /// Seconds of silence after which an empty packet is sent.
    pub fn keepalive(&self) -> Option<u16> {
        match self.keepalive {
            Some(seconds) => (seconds > 0).then_some(seconds),
            None => self.endpoint.is_some().then_some(KEEPALIVE),
        }
    }
}

/// What the peer may send from inside the tunnel: its own address first, then its networks.
pub fn allowed(own: std::net::Ipv4Addr, prefixes: &[Prefix]) -> Vec<(IpAddr, u8)> {
    let networks = prefixes.iter().map(|prefix| (prefix.net(), prefix.bits()));
    std::iter::once((IpAddr::V4(own), 32)).chain(networks).collect()
}

/// The JSON schema of the file.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(PeerFile).to_value()
}
