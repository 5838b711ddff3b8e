//! The addresses of farpace, from the environment that `farpace exec` sets.

use nix::libc;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::OnceLock;

/// The environment variable. Lines of `name=value`: `library`, `route`, and those of `fp_stack_open`.
const VARIABLE: &str = "FARPACE_EXEC";

/// What belongs to farpace.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ExecPlan {
    /// Path of the library with the stack.
    pub library: String,
    /// Configuration text of the stack.
    pub words: String,
    /// Number of descriptors that the program may have, if the system's limit was raised.
    pub descriptors: Option<u64>,
    ours: Vec<IpAddr>,
    routes: Vec<(IpAddr, u8)>,
}

/// The plan of this process; none: everything belongs to the kernel.
pub fn plan() -> Option<&'static ExecPlan> {
    static PLAN: OnceLock<Option<ExecPlan>> = OnceLock::new();
    PLAN.get_or_init(|| std::env::var(VARIABLE).ok().map(|text| ExecPlan::parse(&text))).as_ref()
}

impl ExecPlan {
    fn parse(text: &str) -> ExecPlan {
        let mut plan = ExecPlan::default();
        for line in text.lines() {
            let (name, value) = line.split_once('=').unwrap_or((line, ""));
            match name {
                "library" => plan.library = value.to_owned(),
                "route" => plan.routes.extend(network(value)),
                _ => {
                    plan.words += &format!("{line}\n");
                    if name == "descriptors" {
                        plan.descriptors = value.parse().ok();
                    }
                    if let Some((address, bits)) = network(value).filter(|_| name == "address") {
                        plan.ours.push(address);
                        plan.routes.push((address, bits));
                    }
                }
            }
        }
        plan
    }
    /// True if packets to this address are sent by farpace.
    pub fn is_destination(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        let never = ip.is_loopback() || ip.is_unspecified() || ip.is_multicast();
        !never && self.routes.iter().any(|(net, bits)| within(ip, *net, *bits))
    }
    /// True if it is a local address of farpace.
    pub fn has(&self, ip: IpAddr) -> bool {
        self.ours.contains(&ip.to_canonical())
    }
}

fn network(text: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = text.split_once('/')?;
    Some((address.parse().ok()?, bits.parse().ok()?))
}

fn within(ip: IpAddr, net: IpAddr, bits: u8) -> bool {
    let (a, b, width) = match (ip, net) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits().into(), b.to_bits().into(), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits(), b.to_bits(), 128u32),
        _ => return false,
    };
    let differ: u128 = a ^ b;
    differ.checked_shr(width.saturating_sub(bits.into())).unwrap_or(0) == 0
}

/// The address in a `struct sockaddr_in` or `sockaddr_in6`; none: another family, or too short.
pub fn address(bytes: &[u8]) -> Option<(IpAddr, u16)> {
    let family = i32::from(u16::from_ne_bytes(*bytes.first_chunk::<2>()?));
    let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk::<2>()?);
    let ip = match family {
        libc::AF_INET => IpAddr::from(*bytes.get(4..)?.first_chunk::<4>()?),
        libc::AF_INET6 => IpAddr::from(*bytes.get(8..)?.first_chunk::<16>()?),
        _ => return None,
    };
    Some((ip, port))
}

/// The unspecified address of a family with a port: a `struct sockaddr_in` or `sockaddr_in6`.
pub fn everywhere(domain: i32, port: u16) -> Vec<u8> {
    let (family, rest) = match domain {
        libc::AF_INET6 => (libc::AF_INET6, [&[0; 4], &Ipv6Addr::UNSPECIFIED.octets()[..], &[0; 4]].concat()),
        _ => (libc::AF_INET, [&Ipv4Addr::UNSPECIFIED.octets()[..], &[0; 8]].concat()),
    };
    [&(family as u16).to_ne_bytes()[..], &port.to_be_bytes(), &rest].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: addresses of farpace's networks are recognised, and loopback and all other networks stay with
    /// the kernel.
    #[test]
    fn networks_of_farpace_are_recognised() {
        let plan = ExecPlan::parse(
            "library=/l.so\ntun=fp0\naddress=10.77.0.2/24\naddress=fd77::2/64\nroute=1.2.0.0/16\nroute=3.0.0.0/0",
        );
        let goes = |text: &str| plan.is_destination(text.parse().unwrap());
        for ours in ["10.77.0.1", "10.77.0.2", "fd77::1", "1.2.3.4", "8.8.8.8", "::ffff:10.77.0.1"] {
            assert!(goes(ours), "{ours}");
        }
        for kernels in ["127.0.0.1", "::1", "::ffff:127.0.0.1", "0.0.0.0", "224.0.0.1", "fd78::1"] {
            assert!(!goes(kernels), "{kernels}");
        }
        let narrow = ExecPlan::parse("address=10.77.0.2/24");
        assert!(
            narrow.is_destination([10, 77, 0, 9].into()) && !narrow.is_destination([10, 77, 1, 9].into())
        );
        assert!(plan.has("::ffff:10.77.0.2".parse().unwrap()) && !plan.has("10.77.0.1".parse().unwrap()));
        assert_eq!((plan.library.as_str(), plan.words.contains("route")), ("/l.so", false));
        assert_eq!(plan.words, "tun=fp0\naddress=10.77.0.2/24\naddress=fd77::2/64\n");
    }

    /// Breaks: addresses of programs are parsed exactly.
    #[test]
    fn addresses_are_read_as_they_are_written() {
        for domain in [libc::AF_INET, libc::AF_INET6] {
            let bytes = everywhere(domain, 80);
            let (ip, port) = address(&bytes).unwrap();
            assert!(ip.is_unspecified() && port == 80 && ip.is_ipv6() == (domain == libc::AF_INET6));
            let len =
                if ip.is_ipv6() { size_of::<libc::sockaddr_in6>() } else { size_of::<libc::sockaddr_in>() };
            assert_eq!(bytes.len(), len);
            assert_eq!(address(&bytes[..6]), None);
        }
        assert_eq!(address(&[1, 0, 0, 0, 0, 0, 0, 0]), None);
    }
}
