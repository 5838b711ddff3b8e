//! Interfaces that are named on the command line.

use crate::realtime::Attachment;
use anyhow::{Context, Result, bail};
use farpace_lab::scenario::Scenario;
use farpace_live::Device;
use farpace_live::device::{Tun, TunConfig};

/// Opens all, each for its host: `HOST=INTERFACE`, or the hosts of the scenario in the order of names.
///
/// # Errors
/// More or fewer interfaces than hosts, or one that cannot be opened.
pub fn attach(words: &[String], scenario: &Scenario) -> Result<Vec<Attachment>> {
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
        Ok(Attachment { host, device: open(interface)? })
    };
    named.into_iter().map(open).collect()
}

/// Opens an interface, or makes a TAP device.
///
/// # Errors
/// It is not there, or there is no right to use it.
pub fn open(interface: &str) -> Result<Box<dyn Device>> {
    match interface.strip_prefix("tap:") {
        Some(name) => Ok(Box::new(Tun::open(&TunConfig { tap: true, ..TunConfig::new(name) })?)),
        None => bail!("interface `{interface}`: only TAP devices so far"),
    }
}
