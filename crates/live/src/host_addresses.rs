//! The addresses of a host on a device: how they are written, and which make no sense.

use crate::device::own_interface_of;
use farpace_host::is_host_address;
use std::net::IpAddr;
use thiserror::Error;

/// An address and the length of the prefix of its network, in bits.
pub type InterfacePrefix = (IpAddr, u8);

/// The minimum MTU of IPv6 (RFC 8200 §5), in bytes.
const MIN_IPV6_MTU: u16 = 1280;

/// Why a host cannot have its addresses.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AddressError {
    /// The same address twice.
    #[error("the address {0} is given twice")]
    Twice(IpAddr),
    /// The kernel and the host have the same address.
    #[error("{0} is the address of the host itself: give the kernel another one (--peer-addr)")]
    KernelsIsOurs(IpAddr),
    /// An address of the kernel or a router that the host cannot reach.
    #[error("{0} is in no network of the host: its networks are those of --addr")]
    NotInNetwork(IpAddr),
    /// An address of this machine.
    #[error("{0} is this machine's own, on {1}: give the host one that nobody has")]
    Own(IpAddr, String),
    /// A router with the host's address.
    #[error("the router {0} has the address of the host itself")]
    RouterIsOurs(IpAddr),
    /// The network consists of one address.
    #[error("the network {0}/{1} has no room for the kernel: give --peer-addr")]
    NoRoom(IpAddr, u8),
    /// Too small for IPv6.
    #[error("IPv6 needs an MTU of at least {MIN_IPV6_MTU} B, not {0} B: give --mtu {MIN_IPV6_MTU}")]
    Mtu(u16),
}

const fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn value(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_bits().into(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// The bits of the host in its network, and whether all of them are set.
fn host_part((address, bits): InterfacePrefix) -> (u128, bool) {
    let host = width(address).saturating_sub(bits.into());
    let mask = 1u128.checked_shl(host).map_or(u128::MAX, |bit| bit - 1);
    (value(address) & mask, value(address) & mask == mask)
}

fn contains((network, bits): InterfacePrefix, address: IpAddr) -> bool {
    let host = width(network).saturating_sub(bits.into());
    let part = |address| value(address).checked_shr(host).unwrap_or(0);
    network.is_ipv4() == address.is_ipv4() && part(network) == part(address)
}

/// The broadcast address of an IPv4 network; none: it has none, as one of one or two addresses (RFC 3021).
pub fn broadcast_of((address, bits): InterfacePrefix) -> Option<IpAddr> {
    let IpAddr::V4(v4) = address else { return None };
    let host = u32::MAX.checked_shr(bits.into()).filter(|host| *host > 1)?;
    Some(IpAddr::from((v4.to_bits() | host).to_be_bytes()))
}

/// Parses the address of a host with its network: `10.77.0.2/24`.
///
/// # Errors
/// Anything else, and addresses that no single host can have.
pub fn prefix(text: &str) -> Result<InterfacePrefix, String> {
    let wrong = || {
        format!(
            "`{text}` is not an address with a prefix: expected something like 10.77.0.2/24 or fd77::2/64"
        )
    };
    let (address, bits) = text.split_once('/').ok_or_else(wrong)?;
    let (address, bits): InterfacePrefix =
        (address.parse().map_err(|_| wrong())?, bits.parse().map_err(|_| wrong())?);
    if u32::from(bits) > width(address) {
        return Err(wrong());
    }
    check_host((address, bits)).map_err(|why| format!("`{text}`: {why}"))?;
    Ok((address, bits))
}

/// Refuses addresses that no single host can have.
fn check_host((address, bits): InterfacePrefix) -> Result<(), &'static str> {
    if address.is_loopback() {
        return Err("a loopback address: choose one that other machines can reach, like 10.77.0.2/24");
    }
    if !is_host_address(address) {
        return Err("not the address of a single host");
    }
    // A network of one or two addresses has no others (RFC 3021, RFC 6164).
    if u32::from(bits) + 1 >= width(address) {
        return Ok(());
    }
    match host_part((address, bits)) {
        (0, _) if address.is_ipv4() => Err("the address of the network, not of a host in it"),
        (0, _) => Err("the anycast address of the routers (RFC 4291), not of a host"),
        (_, true) if address.is_ipv4() => Err("the broadcast address of the network, not of a host in it"),
        _ => Ok(()),
    }
}

/// The first address of the network of `ours` that is not `ours`.
fn neighbour((ours, bits): InterfacePrefix) -> Result<InterfacePrefix, AddressError> {
    let host = width(ours) - u32::from(bits);
    if host == 0 {
        return Err(AddressError::NoRoom(ours, bits));
    }
    let network = value(ours).checked_shr(host).unwrap_or(0).checked_shl(host).unwrap_or(0);
    let other = if network + 1 == value(ours) { network + 2 } else { network + 1 };
    let other = match ours {
        IpAddr::V4(_) => IpAddr::from((other as u32).to_be_bytes()),
        IpAddr::V6(_) => IpAddr::from(other.to_be_bytes()),
    };
    Ok((other, bits))
}

/// The kernel's addresses on a device of the host: those that are given, or the first of each network.
///
/// # Errors
/// A network has no room, or addresses contradict each other.
pub fn kernel_addresses(
    ours: &[InterfacePrefix],
    given: &[IpAddr],
) -> Result<Vec<InterfacePrefix>, AddressError> {
    let families = |peer: &&IpAddr| !ours.iter().any(|(own, _)| own.is_ipv4() == peer.is_ipv4());
    if let Some(stray) = given.iter().find(families) {
        return Err(AddressError::NotInNetwork(*stray));
    }
    let given = |ours: &InterfacePrefix| given.iter().find(|peer| peer.is_ipv4() == ours.0.is_ipv4());
    let peer =
        |ours: &InterfacePrefix| given(ours).map_or_else(|| neighbour(*ours), |peer| Ok((*peer, ours.1)));
    let mut kernels = ours.iter().map(peer).collect::<Result<Vec<_>, _>>()?;
    kernels.dedup();
    Ok(kernels)
}

/// Checks the addresses of a host, of the kernel at the other end of its device, and of its routers, before
/// anything is set up. `mtu`: of the device, if it is to be set.
///
/// # Errors
/// See [`AddressError`].
pub fn check_addresses(
    ours: &[InterfacePrefix],
    kernels: &[InterfacePrefix],
    gateways: &[IpAddr],
    mtu: Option<u16>,
) -> Result<(), AddressError> {
    let is_ours = |address: IpAddr| ours.iter().any(|(own, _)| *own == address);
    // A host that is alone in its network reaches all others directly.
    let reaches = |address: IpAddr, bits: Option<u8>| {
        ours.iter().any(|(own, own_bits)| {
            contains((*own, *own_bits), address)
                || bits.is_some_and(|bits| contains((address, bits), *own))
                || (own.is_ipv4() == address.is_ipv4() && u32::from(*own_bits) == width(*own))
        })
    };
    for (at, (own, _)) in ours.iter().enumerate() {
        if ours[..at].iter().any(|(other, _)| other == own) {
            return Err(AddressError::Twice(*own));
        }
    }
    for (kernel, bits) in kernels {
        if is_ours(*kernel) {
            return Err(AddressError::KernelsIsOurs(*kernel));
        }
        if !reaches(*kernel, Some(*bits)) {
            return Err(AddressError::NotInNetwork(*kernel));
        }
    }
    for gateway in gateways {
        let local = matches!(gateway, IpAddr::V6(v6) if v6.is_unicast_link_local());
        if is_ours(*gateway) {
            return Err(AddressError::RouterIsOurs(*gateway));
        }
        if !local && !reaches(*gateway, None) {
            return Err(AddressError::NotInNetwork(*gateway));
        }
    }
    let six = ours.iter().chain(kernels).any(|(address, _)| address.is_ipv6());
    mtu.filter(|mtu| six && *mtu < MIN_IPV6_MTU).map_or(Ok(()), |mtu| Err(AddressError::Mtu(mtu)))
}

/// Refuses addresses of this machine, in the network namespace of this thread.
///
/// # Errors
/// [`AddressError::Own`].
pub fn check_not_own(ours: &[InterfacePrefix]) -> Result<(), AddressError> {
    let own = |(address, _): &InterfacePrefix| Some((*address, own_interface_of(*address)?));
    match ours.iter().find_map(own) {
        Some((address, interface)) => Err(AddressError::Own(address, interface)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> InterfacePrefix {
        prefix(text).unwrap()
    }

    /// Breaks: the kernel gets our own address, or one of another network.
    #[test]
    fn the_kernel_gets_an_address_beside_ours() {
        for (ours, kernels) in [
            ("10.77.0.2/24", "10.77.0.1/24"),
            ("10.77.0.1/24", "10.77.0.2/24"),
            ("fd77::2/64", "fd77::1/64"),
            ("10.0.0.6/30", "10.0.0.5/30"),
            ("200.1.2.3/1", "128.0.0.1/1"),
        ] {
            let (address, bits) = neighbour(of(ours)).unwrap();
            assert_eq!(format!("{address}/{bits}"), kernels);
        }
        assert!(neighbour(of("10.0.0.1/32")).is_err());
    }

    /// Breaks: a host gets an address that no host can have, and nobody reaches it, without a word.
    #[test]
    fn addresses_of_no_host_are_refused() {
        for bad in [
            "10.77.0.2",
            "10.77.0.2/33",
            "fd77::/129",
            "0.0.0.0/0",
            "224.0.0.1/24",
            "x/8",
            "127.0.0.1/8",
            "::1/64",
            "10.77.0.0/24",
            "10.77.0.255/24",
            "255.255.255.255/32",
            "fd77::/64",
            "::ffff:10.0.0.1/96",
        ] {
            assert!(prefix(bad).is_err(), "{bad}");
        }
        for good in
            ["10.77.0.0/31", "10.77.0.1/31", "10.77.0.0/32", "fd77::/127", "fd77::ffff/64", "fe80::2/64"]
        {
            assert!(prefix(good).is_ok(), "{good}");
        }
    }

    /// Breaks: datagrams to everybody on the network leave without SO_BROADCAST, or those to one host do not.
    #[test]
    fn networks_have_a_broadcast_address() {
        let of = |text: &str| broadcast_of(of(text)).map(|address| address.to_string());
        assert_eq!(of("10.77.0.2/24").as_deref(), Some("10.77.0.255"));
        assert_eq!(of("10.77.0.1/30").as_deref(), Some("10.77.0.3"));
        assert_eq!((of("10.77.0.2/31"), of("10.77.0.2/32"), of("fd77::2/64")), (None, None, None));
    }

    /// Breaks: addresses that contradict each other are accepted, and the host is up and reaches nobody.
    #[test]
    fn contradictions_are_refused() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let ours = [of("10.77.0.2/24"), of("fd77::2/64")];
        let check = |peers: &[&str], gateways: &[&str], mtu| {
            let peers: Vec<_> = peers.iter().map(|peer| ip(peer)).collect();
            let gateways: Vec<_> = gateways.iter().map(|gateway| ip(gateway)).collect();
            check_addresses(&ours, &kernel_addresses(&ours, &peers)?, &gateways, mtu)
        };
        assert_eq!(check(&[], &[], None), Ok(()));
        assert_eq!(check(&["10.77.0.9", "fd77::9"], &["10.77.0.1", "fe80::1"], Some(1280)), Ok(()));
        assert_eq!(check(&["10.77.0.2"], &[], None), Err(AddressError::KernelsIsOurs(ip("10.77.0.2"))));
        assert_eq!(check(&["10.78.0.1"], &[], None), Err(AddressError::NotInNetwork(ip("10.78.0.1"))));
        assert_eq!(check(&[], &["10.78.0.1"], None), Err(AddressError::NotInNetwork(ip("10.78.0.1"))));
        assert_eq!(check(&[], &["fd77::2"], None), Err(AddressError::RouterIsOurs(ip("fd77::2"))));
        assert_eq!(check(&[], &[], Some(600)), Err(AddressError::Mtu(600)));
        let twice = [of("10.77.0.2/24"), of("10.77.0.2/16")];
        assert_eq!(check_addresses(&twice, &[], &[], None), Err(AddressError::Twice(ip("10.77.0.2"))));
        let four = [of("10.77.0.2/24")];
        assert_eq!(kernel_addresses(&four, &[ip("fd77::1")]), Err(AddressError::NotInNetwork(ip("fd77::1"))));
        // Alone in its network, as behind a point-to-point link.
        let alone = [of("10.77.0.2/32")];
        let kernels = kernel_addresses(&alone, &[ip("10.99.0.1")]).unwrap();
        assert_eq!(check_addresses(&alone, &kernels, &[ip("10.99.0.1")], Some(600)), Ok(()));
        assert_eq!(
            check_not_own(&[(ip("127.0.0.1"), 8)]).is_err(),
            own_interface_of(ip("127.0.0.1")).is_some()
        );
    }
}
