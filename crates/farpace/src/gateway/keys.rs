//! `farpace gateway keys`: the two files of a pair.

use crate::terminal;
use anyhow::Result;
use farpace_gateway_service::keys::{FIRST_PORT, PairPlan, SiteEndpoint, SiteWords, write_pair};
use std::path::PathBuf;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
It makes two files with new keys, each named after the site that it describes: with --peer hq.conf the \
gateway of `branch` reaches `hq`. Each file is for root alone (mode 0600). Copy the other one to the other \
gateway over an encrypted connection (scp), and delete it here. Each path has keys and a UDP port of its \
own: 51820, 51821, ...

At least one site needs --endpoint: an address or a name at which the other reaches it. A single \
--endpoint applies to all paths. With several, the first applies to the first path, and so on.

Examples:
  farpace gateway keys branch=10.1.0.0/16 hq=10.2.0.0/16 --endpoint hq=198.51.100.7 --paths 2
  farpace gateway keys ship=10.1.0.0/16 shore=0.0.0.0/0 --endpoint shore=shore.example.net --out /etc/farpace
  farpace gateway keys a=10.1.0.0/16,fd01::/64 b=10.2.0.0/16,fd02::/64 --endpoint a=192.0.2.1 \\
      --endpoint b=198.51.100.7 --port 4500

Exit codes: 0 written, 2 a file is there already, or cannot be written.";

/// The arguments of `farpace gateway keys`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct KeysArgs {
    /// A site, and the networks behind its gateway
    #[arg(value_name = "SITE=PREFIX,...")]
    site: SiteWords,
    /// The other one
    #[arg(value_name = "PEER=PREFIX,...")]
    peer: SiteWords,
    /// Endpoint at which the other gateway reaches that of a site: SITE=ADDRESS or SITE=NAME; may be repeated
    #[arg(long = "endpoint", value_name = "SITE=HOST", required = true)]
    endpoints: Vec<SiteEndpoint>,
    /// Paths between both, one for each link of the site that has more of them
    #[arg(long, default_value_t = 1)]
    paths: u8,
    /// UDP port of the first path; the others have the next ones
    #[arg(long, default_value_t = FIRST_PORT)]
    port: u16,
    /// Directory of both files
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Replace existing files
    #[arg(long)]
    force: bool,
}

/// `farpace gateway keys`.
///
/// # Errors
/// Words that contradict each other, or a file that cannot be written.
pub fn run(args: &KeysArgs) -> Result<ExitCode> {
    let plan = PairPlan {
        site: args.site.clone(),
        peer: args.peer.clone(),
        endpoints: args.endpoints.clone(),
        paths: args.paths,
        port: args.port,
    };
    for (at, file) in write_pair(&plan, &args.out, args.force)? {
        let file = file.display();
        terminal::print(&format!(
            "{file}: for the gateway of {at}\n  farpace gateway up --lan IF --peer {file} --via IF ...\n"
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}
