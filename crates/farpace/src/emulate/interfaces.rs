//! Interfaces that are named on the command line.

use crate::device::{InterfaceMode, advise, open_xdp};
use crate::terminal;
use anyhow::{Context, Result, bail};
use farpace_emulate::{Attachment, words::different};
use farpace_lab::scenario::Scenario;
use farpace_live::Device;
use farpace_live::device::{PacketConfig, PacketSocket, Tun, TunConfig};
use farpace_live::system::Setup;

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
    different(named.iter().map(|(_, interface)| *interface)).map_err(anyhow::Error::msg)?;
    let mut free = free.into_iter();
    let open = |(host, interface): (Option<String>, &str)| {
        let host = host.or_else(|| free.next().cloned()).context("an interface has no host")?;
        Ok(Attachment { host, device: open(interface, how, setup)? })
    };
    named.into_iter().map(open).collect()
}

/// The interfaces among these words that are there already.
pub fn real(words: &[String]) -> impl Iterator<Item = &str> {
    let names = words.iter().map(|word| word.split_once('=').map_or(word.as_str(), |(_, name)| name));
    names.filter(|name| !name.starts_with("tap:"))
}

/// How interfaces are opened.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// Super-segments pass.
    pub whole: bool,
    /// What those that are there already are opened as.
    pub mode: InterfaceMode,
}

/// Opens an interface, or makes a TAP device. What must be set for AF_XDP is written down in `setup`.
///
/// # Errors
/// It is not there, or there is no right to use it.
fn open(interface: &str, how: How, setup: Option<&Setup>) -> Result<Box<dyn Device>> {
    if let Some(name) = interface.strip_prefix("tap:") {
        let config = TunConfig { tap: true, ..TunConfig::new(name) };
        return Ok(Box::new(Tun::open(&config).map_err(|error| advise(error, name))?));
    }
    if let (InterfaceMode::AfXdp, Some(setup)) = (how.mode, setup) {
        let device = open_xdp(interface, None, setup)?;
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
    Ok(Box::new(PacketSocket::open(&config).map_err(|error| advise(error, interface))?))
}
