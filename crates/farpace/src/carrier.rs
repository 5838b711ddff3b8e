//! Arguments that say how the other end is reached: by which ssh, over which links, and by whose TCP.

use crate::terminal;
use anyhow::{Context, Result};
use clap::ValueEnum;
use farpace_live::socket::SocketOptions;
use farpace_tunnel::{CONNECT_TIME, CarrierChoice, NoFarEnd, SshProgram, Via};
use farpace_units::Rate;
use std::process::ExitCode;

/// How the far end is started.
#[derive(Clone, Debug, clap::Args)]
pub struct SshArgs {
    /// Command that starts a program on another host, with its options
    #[arg(long, value_name = "COMMAND", default_value = "ssh")]
    pub ssh_command: String,
    /// farpace on the other host
    #[arg(long, value_name = "COMMAND", default_value = "farpace")]
    pub remote_command: String,
    /// Port of the far end, UDP and TCP [default: any]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
}

impl SshArgs {
    /// The two programs.
    pub fn program(&self) -> SshProgram<'_> {
        SshProgram { ssh_command: &self.ssh_command, remote_command: &self.remote_command }
    }
    /// Says why there is no far end.
    pub fn without(&self, host: &str, why: NoFarEnd) -> ExitCode {
        if why == NoFarEnd::Interrupted {
            return ExitCode::from(terminal::INTERRUPTED);
        }
        terminal::note(&format!("error: {}", self.program().why_not(host, why)));
        ExitCode::from(terminal::FAILED)
    }
}

/// Over which links.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ViaArgs {
    /// Over this interface, or the one with this address, in a tunnel of its own; repeated for several at
    /// once
    #[arg(long, value_name = "IFACE|ADDR")]
    pub via: Vec<Via>,
}

/// Which TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum StackChoice {
    /// farpace's in a tunnel over UDP; if UDP does not work, the kernel's under TLS
    #[default]
    Auto,
    /// farpace's own: in a tunnel over UDP, or on the device of --tun
    Farpace,
    /// The kernel's: under TLS, or unencrypted with --insecure
    Kernel,
}

/// Which TCP, and on what.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct StackArgs {
    /// The TCP that carries the data
    #[arg(long, value_enum, default_value_t)]
    pub stack: StackChoice,
    /// TCP profile of farpace's TCP (farpace profiles)
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Congestion control of farpace's TCP (farpace profiles)
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<String>,
    /// A setting of farpace's TCP, as in scenarios: ack_control=safe; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

impl StackArgs {
    /// Which encrypted ways may be taken.
    pub const fn ways(&self) -> CarrierChoice {
        match self.stack {
            StackChoice::Auto => CarrierChoice { udp: true, tcp: true },
            StackChoice::Farpace => CarrierChoice { udp: true, tcp: false },
            StackChoice::Kernel => CarrierChoice { udp: false, tcp: true },
        }
    }

    /// How connections of farpace's TCP are to be, at `cap` at most: profile `farpace`, if nothing else is
    /// said.
    ///
    /// # Errors
    /// Profile, congestion control or a setting are not known.
    pub fn options(&self, cap: Option<Rate>) -> Result<SocketOptions> {
        let mut options = SocketOptions::profile(self.profile.as_deref().unwrap_or("farpace"))?;
        if let Some(name) = &self.congestion {
            options = options.congestion(name)?;
        }
        options.set(&self.set.join(" ")).context("--set")?;
        options.rate_cap = cap.or(options.rate_cap);
        options.connect_timeout = Some(CONNECT_TIME);
        Ok(options.nodelay(true))
    }
}
