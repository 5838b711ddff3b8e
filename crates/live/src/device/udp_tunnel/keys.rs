//! Keys of WireGuard: 32 bytes, written in base64 as `wg` writes them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use boringtun::x25519;
use std::fmt;
use std::io::{self, Read};
use std::net::Ipv4Addr;
use std::str::FromStr;
use thiserror::Error;

/// The first address of 100.64.0.0/10 (RFC 6598), in which tunnels have their addresses, and its bits.
const INSIDE: u32 = 0x6440_0000;
const INSIDE_MASK: u32 = 0x003f_ffff;

/// A text that is not a key. The text is not repeated: it may be most of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a key: 32 bytes in base64, 44 characters, as `wg genkey` prints them")]
pub struct KeyError;

/// A private key (X25519). It is erased from memory when it is dropped, and never printed.
#[derive(Clone)]
pub struct SecretKey(x25519::StaticSecret);

/// A public key (X25519).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; 32]);

/// A secret that both ends of a tunnel mix into their handshakes. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct PresharedKey([u8; 32]);

/// Bytes that nobody can guess.
///
/// # Errors
/// The system gives none.
pub(crate) fn random_bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn decode(text: &str) -> Result<[u8; 32], KeyError> {
    let mut bytes = [0; 33];
    match STANDARD.decode_slice(text.trim(), &mut bytes) {
        Ok(32) => bytes.first_chunk().copied().ok_or(KeyError),
        _ => Err(KeyError),
    }
}

impl SecretKey {
    /// A new one.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn generate() -> io::Result<Self> {
        Ok(SecretKey::from_bytes(random_bytes()?))
    }
    /// From its bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        SecretKey(x25519::StaticSecret::from(bytes))
    }
    /// Its bytes, to be stored where nobody else can read them.
    pub fn to_bytes(&self) -> [u8; 32] {
        self.0.to_bytes()
    }
    /// Its public key.
    pub fn public(&self) -> PublicKey {
        PublicKey(x25519::PublicKey::from(&self.0).to_bytes())
    }
    pub(super) fn secret(&self) -> &x25519::StaticSecret {
        &self.0
    }
}

impl PublicKey {
    /// From its bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        PublicKey(bytes)
    }
    /// Its bytes.
    pub const fn to_bytes(self) -> [u8; 32] {
        self.0
    }
    /// The address inside a tunnel of whoever has this key and was given no other: 22 bits of the key in
    /// 100.64.0.0/10. An end whose own and other address are equal takes another key.
    pub fn inner_address(self) -> Ipv4Addr {
        let [a, b, c, d, ..] = self.0;
        let host = u32::from_be_bytes([a, b, c, d]) & INSIDE_MASK;
        // Neither the first nor the last one of the network.
        Ipv4Addr::from(INSIDE | host.clamp(1, INSIDE_MASK - 1))
    }
    pub(super) fn point(self) -> x25519::PublicKey {
        x25519::PublicKey::from(self.0)
    }
}

impl PresharedKey {
    /// From its bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        PresharedKey(bytes)
    }
    pub(super) const fn to_bytes(&self) -> [u8; 32] {
        self.0
    }
}

impl FromStr for SecretKey {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<Self, KeyError> {
        decode(text).map(SecretKey::from_bytes)
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<Self, KeyError> {
        decode(text).map(PublicKey)
    }
}

impl FromStr for PresharedKey {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<Self, KeyError> {
        decode(text).map(PresharedKey)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(..)")
    }
}

impl fmt::Debug for PresharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PresharedKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: keys that `wg` prints are not understood, or a key is printed with an error or a debug line.
    #[test]
    fn keys_are_read_as_wg_writes_them_and_secrets_are_never_shown() {
        // RFC 7748 §6.1: Alice's key pair.
        let alice = "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=";
        let key: SecretKey = alice.parse().unwrap();
        let public = key.public();
        assert_eq!(public.to_string(), "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=");
        assert_eq!(public.to_string().parse(), Ok(public));
        assert_eq!(format!("{key:?} {:?}", PresharedKey([7; 32])), "SecretKey(..) PresharedKey(..)");
        for text in ["", "abc", &alice[1..], &format!("{alice}A"), &alice.replace('=', "*")] {
            let error = text.parse::<SecretKey>().unwrap_err();
            assert!(text.is_empty() || !error.to_string().contains(text));
        }
        assert_ne!(SecretKey::generate().unwrap().public(), SecretKey::generate().unwrap().public());
    }

    /// Breaks: ends of tunnels have addresses outside of the range that is set aside for them.
    #[test]
    fn inner_addresses_are_of_the_shared_range() {
        for first in [0_u8, 1, 127, 255] {
            let address = PublicKey([first; 32]).inner_address();
            let [a, b, ..] = address.octets();
            assert!(a == 100 && b & 0xc0 == 64, "{address}");
            assert!(address != Ipv4Addr::new(100, 64, 0, 0) && address != Ipv4Addr::new(100, 127, 255, 255));
        }
    }
}
