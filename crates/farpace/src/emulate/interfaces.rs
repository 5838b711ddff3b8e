//! Interfaces that are named on the command line.

use crate::realtime::Attachment;
use crate::terminal;
use crate::up::place::{Mode, advise};
use anyhow::{Context, Result, bail};
use farpace_lab::scenario::Scenario;
use farpace_live::Device;
use farpace_live::device::{PacketConfig, PacketSocket, Tun, TunConfig, XdpConfig, XdpSocket};
use farpace_live::system::{Setup, SystemInterface};
use farpace_wire::MacAddr;

/// Opens all, each for its host: `HOST=INTERFACE`, or the hosts of the scenario in the order of names.
///
/// # Errors
/// More or fewer interfaces than hosts, or one that cannot be opened.
pub fn attach(
    words: &[String],
    scenario: &Scenario,
    how: How,
    setup: Option<&Setup>,
) -> Result<Vec<Attachment>> {
    let mut free: Vec<&String> = scenario.hosts.keys().collect();
    if words.len() != free.len() {
        bail!("there are {} interfaces for {} hosts", words.len(), free.len());
    }
    let mut named = Vec::new();
    for word in words {
        named.push(match word.split_once('=') {
            Some((host, interface)) => {
                let Some(at) = free.iter().position(|name| *name == host) else {
                    let hosts: Vec<&str> = scenario.hosts.keys().map(String::as_str).collect();
                    bail!(
                        "`{word}`: the scenario has no host `{host}` that is free; there are {}",
                        hosts.join(", ")
                    );
                };
                free.remove(at);
                (Some(host.to_owned()), interface)
            }
            None => (None, word.as_str()),
        });
    }
    let mut free = free.into_iter();
    let open = |(host, interface): (Option<String>, &str)| {
        let host = host.or_else(|| free.next().cloned()).context("an interface has no host")?;
        Ok(Attachment { host, device: open(interface, how, setup)? })
    };
    named.into_iter().map(open).collect()
}

/// How interfaces are opened.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// Super-segments pass.
    pub whole: bool,
    /// What those that are there already are opened as.
    pub mode: Mode,
}

/// Opens an interface, or makes a TAP device. What must be set for AF_XDP is written down in `setup`.
///
/// # Errors
/// It is not there, or there is no right to use it.
fn open(interface: &str, how: How, setup: Option<&Setup>) -> Result<Box<dyn Device>> {
    if let Some(name) = interface.strip_prefix("tap:") {
        return Ok(Box::new(Tun::open(&TunConfig { tap: true, ..TunConfig::new(name) })?));
    }
    if let (Mode::AfXdp, Some(setup)) = (how.mode, setup) {
        let device = take(interface, None, setup)?;
        terminal::note(&format!("{interface}: AF_XDP, {}", device.mode()));
        return Ok(Box::new(device));
    }
    let config = PacketConfig {
        promiscuous: true,
        // The elements have decided when a frame leaves: a queue behind them would decide again.
        bypass_queue: true,
        super_segments: how.whole,
        ..PacketConfig::new(interface)
    };
    Ok(Box::new(PacketSocket::open(&config)?))
}

/// Takes an interface by AF_XDP. First it is told to leave packets as they are, since one that was put together fits no
/// frame: so is the other end of a veth where it is in sight. A veth whose driver takes XDP tells its other end itself.
///
/// # Errors
/// It is not there, there is no right to take it, or it cannot be taken.
pub fn take(name: &str, mac: Option<MacAddr>, setup: &Setup) -> Result<XdpSocket> {
    setup.offload_off(&SystemInterface::here(name))?;
    if let Some(other) = other_end(name) {
        setup.offload_off(&SystemInterface::here(&other))?;
    }
    let config = XdpConfig { mac, promiscuous: true, ..XdpConfig::new(name) };
    XdpSocket::open(&config).map_err(|error| advise(error, name))
}

/// The other end of a veth, if it is in this network namespace.
fn other_end(name: &str) -> Option<String> {
    let read = |name: &str, what: &str| std::fs::read_to_string(format!("/sys/class/net/{name}/{what}")).ok();
    let (own, other) = (read(name, "ifindex")?, read(name, "iflink")?);
    let names = std::fs::read_dir("/sys/class/net").ok()?;
    let mut names = names.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    // Numbers are those of a namespace: only if each names the other they are two ends.
    let is_it = |candidate: &String| {
        own != other
            && read(candidate, "ifindex").as_ref() == Some(&other)
            && read(candidate, "iflink").as_ref() == Some(&own)
    };
    names.find(is_it)
}
