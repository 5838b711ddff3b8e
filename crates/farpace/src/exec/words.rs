//! What the library is told, in the words of `fp_stack_open`.

use super::Args;
use crate::device::advise;
use crate::terminal;
use crate::up::place;
use anyhow::{Context, Result, bail};
use farpace_live::device::udp_tunnel::WireguardFile;
use farpace_live::device::{PacketConfig, PacketSocket, Tun, TunConfig};
use farpace_live::socket::SocketOptions;
use farpace_live::system::InterfaceLock;
use farpace_live::{
    DeviceError, InterfacePrefix, check_addresses, check_not_own, control_folder, kernel_addresses,
    make_room_for_descriptors,
};
use farpace_tcp::config::Profile;
use std::fmt::Write;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::Path;

/// `0.0.0.0/0`.
///
/// # Errors
/// Anything that is no network.
pub fn network(text: &str) -> Result<InterfacePrefix, String> {
    let wrong =
        || format!("`{text}` is no network: expected something like 10.0.0.0/8, 0.0.0.0/0 or fd00::/8");
    let (address, bits) = text.split_once('/').ok_or_else(wrong)?;
    let (address, bits): InterfacePrefix =
        (address.parse().map_err(|_| wrong())?, bits.parse().map_err(|_| wrong())?);
    if bits <= if address.is_ipv4() { 32 } else { 128 } { Ok((address, bits)) } else { Err(wrong()) }
}

fn ours(args: &Args, tunnel: Option<&WireguardFile>) -> Vec<InterfacePrefix> {
    let alone = |own: &IpAddr| (*own, if own.is_ipv4() { 32 } else { 128 });
    match tunnel {
        Some(file) => file.config.addresses.iter().map(alone).collect(),
        None if args.addr.is_empty() => vec![(IpAddr::from([10, 77, 0, 2]), 24)],
        None => args.addr.clone(),
    }
}
fn tun(args: &Args) -> &str {
    args.tun.as_deref().unwrap_or("fp0")
}

/// All that there is to say.
///
/// # Errors
/// Something that cannot be.
pub fn of(args: &Args, stack: &Path) -> Result<String> {
    if !Profile::ALL.iter().any(|profile| profile.name() == args.profile) {
        bail!("`{}` is no profile: `farpace profiles` lists them", args.profile);
    }
    let tunnel = args.wireguard.as_deref().map(place::wireguard).transpose()?;
    let ours = ours(args, tunnel.as_ref());
    let mut options = SocketOptions::profile(&args.profile)?;
    options.set(&args.set.join(" ")).context("--set")?;
    let mut text = format!("library={}\nprofile={}\n", stack.display(), options.words());
    let mut say = |name: &str, value: String| {
        // Into a string: it cannot fail.
        let _ = writeln!(text, "{name}={value}");
    };
    if let Some(memory) = args.memory {
        say("memory", memory.to_string());
    }
    let kernels = match (&args.iface, &tunnel) {
        (Some(_), _) | (_, Some(_)) => Vec::new(),
        (None, None) => kernel_addresses(&ours, &args.peer_addr)?,
    };
    if tunnel.is_none() {
        check_addresses(&ours, &kernels, &args.gateway, args.mtu)?;
        check_not_own(&ours)?;
    }
    match (&args.tap, &args.iface) {
        _ if args.wireguard.is_some() => {
            // The library reads the file itself: no key is in the environment.
            let path =
                args.wireguard.as_ref().map(|path| path.canonicalize()).transpose()?.unwrap_or_default();
            say(
                "wireguard",
                path.to_str().context("the name of the WireGuard file is not UTF-8")?.to_owned(),
            );
        }
        (Some(name), _) => {
            say("tap", name.clone());
            say("mac", place::own_mac(name, &ours).to_string());
        }
        (_, Some(name)) => {
            say("iface", name.clone());
            say("mac", place::own_mac(name, &ours).to_string());
        }
        (None, None) => say("tun", tun(args).to_owned()),
    }
    ours.iter().for_each(|(address, bits)| say("address", format!("{address}/{bits}")));
    kernels.iter().for_each(|(address, bits)| say("kernel", format!("{address}/{bits}")));
    let routers = match args.gateway.is_empty() {
        true => kernels.iter().map(|kernel| kernel.0).collect(),
        false => args.gateway.clone(),
    };
    routers.iter().for_each(|gateway| say("gateway", gateway.to_string()));
    for gateway in &args.gateway {
        say("route", if gateway.is_ipv4() { "0.0.0.0/0" } else { "::/0" }.to_owned());
    }
    let behind = tunnel.as_ref().map(WireguardFile::routes).unwrap_or_default();
    args.route.iter().chain(&behind).for_each(|(address, bits)| say("route", format!("{address}/{bits}")));
    args.mtu.iter().for_each(|mtu| say("mtu", mtu.to_string()));
    let name = args.command.first().map(|name| Path::new(name).file_name().unwrap_or(name).to_string_lossy());
    let name = name.unwrap_or_default().replace(|c: char| c.is_control(), "-");
    match control_folder() {
        Ok(_) => say("control", name),
        Err(error) => terminal::note(&format!("`farpace ss` will not show this program: {error}")),
    }
    let limit = make_room_for_descriptors().context("cannot raise the limit of descriptors")?;
    if let Some(limit) = limit {
        say("descriptors", limit.to_string());
    }
    if let Some(path) = &args.pcap {
        // The program may go to another folder before its first socket; and who cannot write there learns it
        // now.
        let file = std::fs::File::create(path).and_then(|_| path.canonicalize());
        let file = file.with_context(|| format!("cannot write `{}`", path.display()))?;
        say("pcap", file.to_str().context("the name of the capture is not UTF-8")?.to_owned());
    }
    Ok(text)
}

/// Opens the device and lets it go again: what is missing is said before the program begins.
///
/// # Errors
/// It cannot be opened, with how to mend it.
pub fn try_device(args: &Args) -> Result<()> {
    if let Some(path) = &args.wireguard {
        return place::dial(&WireguardFile::read(path)?).map(drop);
    }
    let refused = |error: DeviceError, name: &str| match &error {
        DeviceError::System { error: why, .. } if why.kind() == ErrorKind::PermissionDenied => {
            let advice = "run it as root; rights of the file `farpace` would not pass to the program";
            anyhow::Error::new(error).context(advice)
        }
        _ => advise(error, name),
    };
    if let Some(name) = &args.iface {
        InterfaceLock::share(name)?;
        let mac = Some(place::own_mac(name, &args.addr));
        let tried = PacketSocket::open(&PacketConfig { mac, ..PacketConfig::new(name) });
        return tried.map(drop).map_err(|error| refused(error, name));
    }
    let (name, tap) = args.tap.as_deref().map_or((tun(args), false), |name| (name, true));
    InterfaceLock::take_addresses(ours(args, None).iter().map(|own| own.0), name)?;
    let tried = Tun::open(&TunConfig { tap, ..TunConfig::new(name) });
    tried.map(drop).map_err(|error| refused(error, name))
}
