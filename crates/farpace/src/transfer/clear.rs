//! Arguments of transfers in the clear.

use super::options::say;
use crate::carrier::{StackArgs, StackChoice};
use anyhow::{Result, anyhow, bail};
use farpace_live::device::TunConfig;
use farpace_live::socket::Stack;
use farpace_tunnel::{Net, neighbour};
use farpace_units::Rate;
use std::net::IpAddr;

/// What is in the clear.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ClearArgs {
    /// Without encryption and ticket: everybody on the path can read and change what is sent
    #[arg(long)]
    pub insecure: bool,
    /// With --insecure: name of a TUN device to make for farpace's TCP; it is removed with the command
    #[arg(long, value_name = "NAME", requires = "addr", requires = "insecure")]
    pub tun: Option<String>,
    /// Address of farpace's TCP on that device, e.g. 10.77.0.2/24
    #[arg(long, value_name = "ADDR/LEN", value_parser = network)]
    pub addr: Option<(IpAddr, u8)>,
    /// Address of the kernel on that device [default: the first other one of the network]
    #[arg(long, value_name = "ADDR", requires = "tun")]
    pub kernel_addr: Option<IpAddr>,
}

/// An address and the bits of its network.
fn network(text: &str) -> Result<(IpAddr, u8), String> {
    let form = || format!("`{text}` is not an address with the bits of its network, like 10.77.0.2/24");
    let (address, bits) = text.split_once('/').ok_or_else(form)?;
    let address: IpAddr = address.parse().map_err(|_| form())?;
    let bits: u8 = bits.parse().map_err(|_| form())?;
    let most = if address.is_ipv4() { 30 } else { 126 };
    if (1..=most).contains(&bits) { Ok((address, bits)) } else { Err(form()) }
}

impl ClearArgs {
    /// Brings the TCP up that was asked for, in the clear; says if it is another one.
    ///
    /// # Errors
    /// farpace's TCP was demanded and cannot be had, or profile or congestion control are not known.
    pub fn up(&self, args: &StackArgs, cap: Option<Rate>, quiet: bool) -> Result<Net> {
        let options = args.options(cap)?;
        if args.stack == StackChoice::Kernel {
            return Ok(Net::Kernel);
        }
        let (Some(tun), Some((address, bits))) = (&self.tun, self.addr) else {
            if args.stack == StackChoice::Farpace {
                bail!("in the clear farpace's own TCP needs a device: --tun fp0 --addr 10.77.0.2/24");
            }
            if args.profile.is_some() || args.congestion.is_some() || !args.set.is_empty() {
                say(
                    quiet,
                    "The kernel's TCP is used, so --profile, --congestion and --set do nothing: add --tun \
                     fp0 --addr 10.77.0.2/24",
                );
            }
            return Ok(Net::Kernel);
        };
        let kernel = self.kernel_addr.unwrap_or_else(|| neighbour(address, bits));
        let config = TunConfig { addresses: vec![(kernel, bits)], ..TunConfig::new(tun) };
        match Stack::on_tun(config, &[address]) {
            Ok(stack) => {
                if let Err(error) = stack.offer_list("transfer") {
                    say(quiet, &format!("`farpace ss` will not show its connections: {error}"));
                }
                say(quiet, &format!("farpace's TCP is {address} on {tun}, the kernel there is {kernel}."));
                Ok(Net::Farpace(Box::new((stack, options))))
            }
            Err(error) if args.stack == StackChoice::Farpace => Err(anyhow!(error)
                .context("farpace's own TCP cannot be brought up; --stack kernel needs no privileges")),
            Err(error) => {
                say(
                    quiet,
                    &format!("The kernel's TCP is used, because farpace's cannot be brought up: {error}"),
                );
                Ok(Net::Kernel)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: an address without the bits of its network is taken, or one that leaves no room for the
    /// kernel.
    #[test]
    fn networks_have_room_for_two() {
        assert_eq!(network("10.77.0.2/24"), Ok(("10.77.0.2".parse().unwrap(), 24)));
        assert_eq!(network("fd00::2/64"), Ok(("fd00::2".parse().unwrap(), 64)));
        for text in ["10.77.0.2", "10.77.0.2/33", "10.77.0.2/0", "x/24", "10.77.0.2/32"] {
            assert!(network(text).is_err(), "{text}");
        }
    }
}
