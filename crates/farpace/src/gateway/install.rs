//! `farpace gateway install`: a systemd unit with a watchdog, and a configuration.

use crate::terminal;
use anyhow::{Context, Result, bail};
use farpace_gateway_service::install::{InstallFile, files};
use std::path::PathBuf;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
It writes /etc/farpace/gateway.toml and /etc/systemd/system/farpace-gateway.service, and starts nothing. \
The unit keeps CAP_NET_ADMIN and CAP_NET_RAW alone, and systemd kills and restarts a gateway that hangs \
for 2 s.

Examples:
  farpace gateway install --lan eth0 --wan eth1 --dry-run
  sudo farpace gateway install --lan eth0 --wan eth1
  sudo farpace gateway install --lan eth0 --peer /etc/farpace/hq.conf --via wan0 --via lte0

Exit codes: 0 written, 2 a file is there already, or cannot be written.";

/// The arguments of `farpace gateway install`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct InstallArgs {
    /// Interface to the hosts of the LAN; may be repeated
    #[arg(long, value_name = "IF", required = true)]
    lan: Vec<String>,
    /// Interface to the far link; may be repeated
    #[arg(long, value_name = "IF", required_unless_present = "peer", conflicts_with_all = ["peer", "via"])]
    wan: Vec<String>,
    /// File of the peer, for a gateway of a pair
    #[arg(long, value_name = "FILE")]
    peer: Option<PathBuf>,
    /// Link of a path to the peer; may be repeated
    #[arg(long, value_name = "IF|ADDR", requires = "peer")]
    via: Vec<String>,
    /// Install below this directory rather than in the running system
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
    /// Replace existing files
    #[arg(long)]
    force: bool,
    /// Print the files, and write nothing
    #[arg(long)]
    dry_run: bool,
}

/// `farpace gateway install`.
///
/// # Errors
/// A file is there already, or cannot be written.
pub fn run(args: &InstallArgs) -> Result<ExitCode> {
    let peer =
        args.peer.as_ref().map(std::path::absolute).transpose().context("the path of the peer's file")?;
    let program = std::env::current_exe().context("cannot find this program")?;
    let files = files(&args.root, &program, &args.lan, &args.wan, peer.as_deref(), &args.via)?;
    if args.dry_run {
        for InstallFile { path, text, .. } in &files {
            terminal::print(&format!("# {}\n{text}\n", path.display()))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(InstallFile { path, .. }) = files.iter().find(|file| file.path.exists() && !args.force) {
        bail!("{} is there already: --force replaces it, --dry-run shows what with", path.display());
    }
    for file in &files {
        file.write()?;
        terminal::print(&format!("written: {}\n", file.path.display()))?;
    }
    terminal::print("Then: systemctl daemon-reload && systemctl enable --now farpace-gateway\n")?;
    Ok(ExitCode::SUCCESS)
}
