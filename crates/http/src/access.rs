//! Who may ask: names of hosts, and secrets.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::net::IpAddr;

/// Bytes of a secret.
const SECRET: usize = 16;

/// Which `Host` of requests is answered. A page of another name that leads to this host is of a stranger
/// (DNS rebinding).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostRule {
    /// Any, or none.
    Any,
    /// Names of the loopback interface: `localhost`, 127.0.0.0/8 and `[::1]`, with any port.
    Local,
    /// Any address, `localhost`, and this name, with any port, or none (HTTP/1.0): a browser always says one,
    /// and a page of a stranger has another name.
    AddressOr(String),
    /// This host and port.
    Exactly(String),
}

impl HostRule {
    /// What a request with this `Host` is told in place of an answer; none if it is answered.
    pub(crate) fn refusal(&self, host: Option<&str>) -> Option<&'static str> {
        match self {
            HostRule::Any => None,
            HostRule::Local if host.is_some_and(is_local_name) => None,
            HostRule::Local => Some("ask by a name of this host: localhost\n"),
            HostRule::AddressOr(own) if host.is_none_or(|host| is_address_or(host, own)) => None,
            HostRule::AddressOr(_) => Some("ask by an address of this host, or by its own name (hostname)\n"),
            HostRule::Exactly(own) if host == Some(own.as_str()) => None,
            HostRule::Exactly(_) => Some("wrong host\n"),
        }
    }
}

/// The name of this host, as `hostname` prints it; empty if it has none.
pub fn own_name() -> String {
    nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok()).unwrap_or_default()
}

/// A host without its port.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// The address that a name is, if it is one; of IPv6 with brackets.
fn address_of(name: &str) -> Option<IpAddr> {
    name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name).parse().ok()
}

/// True for names of the loopback interface, with or without a port.
fn is_local_name(host: &str) -> bool {
    let name = without_port(host);
    name.eq_ignore_ascii_case("localhost") || address_of(name).is_some_and(|ip| ip.is_loopback())
}

/// True for any address, `localhost` and `own`, with or without a port.
fn is_address_or(host: &str, own: &str) -> bool {
    let name = without_port(host);
    let is_own = !own.is_empty() && name.eq_ignore_ascii_case(own);
    is_own || is_local_name(host) || address_of(name).is_some()
}

/// A new secret: 128 random bits, as 32 hexadecimal digits.
///
/// # Errors
/// The system has no random numbers.
pub fn secret() -> io::Result<String> {
    let mut bytes = [0; SECRET];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let mut text = String::new();
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

/// Compares in a time that does not tell how much is right.
pub fn is_same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

/// What follows the secret at the beginning of `text`; none if it is not there. The time does not tell how
/// much of it is right.
pub fn without_secret<'a>(text: &'a str, secret: &str) -> Option<&'a str> {
    let (head, rest) = text.split_at_checked(secret.len())?;
    is_same(head, secret).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a page of a stranger reads the status through the browser of a user of this host.
    #[test]
    fn only_names_of_this_host_are_local() {
        let local = [
            "localhost",
            "localhost:8080",
            "LocalHost",
            "127.0.0.1:1",
            "127.0.0.2:8080",
            "127.255.0.1",
            "[::1]:8080",
            "[::1]",
        ];
        for host in local {
            assert_eq!(HostRule::Local.refusal(Some(host)), None, "{host}");
        }
        let foreign = [
            "",
            "evil.example",
            "localhost.evil.example:80",
            "127.0.0.1.evil.example",
            "10.0.0.1:80",
            "[::]:80",
            "0.0.0.0",
            "127.0.0.1:80:80",
            "[[::1]]",
            "[localhost]",
            "localhost:80@evil.example",
        ];
        for host in foreign {
            assert!(HostRule::Local.refusal(Some(host)).is_some(), "{host}");
        }
        assert!(HostRule::Local.refusal(None).is_some());
        let own = HostRule::Exactly("127.0.0.1:8080".to_owned());
        assert_eq!(own.refusal(Some("127.0.0.1:8080")), None);
        assert!(own.refusal(Some("127.0.0.1:8081")).is_some() && own.refusal(None).is_some());
        assert_eq!(HostRule::Any.refusal(None), None);
    }

    /// Breaks: a monitor cannot ask by an address, or a page of a stranger reads metrics through the browser
    /// of somebody in this network.
    #[test]
    fn addresses_and_the_own_name_are_answered() {
        let rule = HostRule::AddressOr("router.example".to_owned());
        let own =
            ["192.0.2.1:9745", "[2001:db8::1]:9745", "localhost", "router.example:9745", "Router.Example"];
        for host in own {
            assert_eq!(rule.refusal(Some(host)), None, "{host}");
        }
        for host in ["evil.example", "router.example.evil.example", "192.0.2.1.evil.example:9745", ""] {
            assert!(rule.refusal(Some(host)).is_some(), "{host}");
        }
        // Simple monitors speak HTTP/1.0.
        assert_eq!(rule.refusal(None), None);
        // A host without a name has none that is empty.
        assert!(HostRule::AddressOr(String::new()).refusal(Some("")).is_some());
    }

    /// Breaks: a secret can be left out, or guessed by another one.
    #[test]
    fn secrets_are_long_and_compared_whole() {
        assert!(
            is_same("abc", "abc") && !is_same("abc", "abd") && !is_same("abc", "abcd") && !is_same("", "a")
        );
        assert_eq!(secret().unwrap().len(), 2 * SECRET);
        assert_ne!(secret().unwrap(), secret().unwrap());
        assert_eq!(without_secret("/ab/c", "/ab/"), Some("c"));
        for wrong in ["/ac/c", "/ab", "", "/aß/"] {
            assert_eq!(without_secret(wrong, "/ab/"), None, "{wrong}");
        }
    }
}
