//! Labs that are up: looked at, used, taken down.

use crate::terminal;
use anyhow::{Context, Result, bail};
use farpace_emulate::labs::{SiteState, lost, named, take_down};
use farpace_report::{Table, TableColumn};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// The arguments of `farpace lab down`.
#[derive(Clone, Debug, clap::Args)]
pub struct DownArgs {
    /// The lab; may be left out if there is one alone
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// All labs
    #[arg(long, conflicts_with = "name")]
    all: bool,
}

/// The arguments of `farpace lab list`.
#[derive(Clone, Debug, clap::Args)]
pub struct ListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The arguments of `farpace lab exec`.
#[derive(Clone, Debug, clap::Args)]
pub struct ExecArgs {
    /// The lab
    #[arg(value_name = "NAME")]
    name: String,
    /// One of its hosts
    #[arg(value_name = "HOST")]
    host: String,
    /// The program and its arguments
    #[arg(value_name = "COMMAND", last = true, required = true, num_args = 1..)]
    command: Vec<String>,
}

/// `farpace lab down`.
///
/// # Errors
/// No such lab, or one that does not go.
pub fn down(args: &DownArgs) -> Result<ExitCode> {
    let labs = match &args.name {
        Some(name) => vec![named(name)?],
        None => SiteState::all()?,
    };
    if labs.len() > 1 && !args.all {
        let names: Vec<&str> = labs.iter().map(|lab| lab.name.as_str()).collect();
        bail!("which one? There are {}; or use --all", names.join(", "));
    }
    if labs.is_empty() && !args.all {
        bail!("there is no lab");
    }
    for lab in labs {
        take_down(&lab)?;
        terminal::note(&format!("Lab `{}` is down.", lab.name));
    }
    Ok(ExitCode::SUCCESS)
}

/// `farpace lab list`.
///
/// # Errors
/// Files that are not ours.
pub fn list(args: &ListArgs) -> Result<ExitCode> {
    let labs = SiteState::all()?;
    if args.json {
        terminal::print_json(&labs)?;
        return Ok(ExitCode::SUCCESS);
    }
    let columns = vec![
        TableColumn::text("lab"),
        TableColumn::text("state"),
        TableColumn::text("host"),
        TableColumn::text("address"),
        TableColumn::text("namespace"),
        TableColumn::text("scenario"),
    ];
    let mut table = Table::new("Labs", columns);
    for lab in &labs {
        let state = match (lab.process().is_alive(), lab.ready) {
            (true, true) => "up",
            (true, false) => "being made",
            (false, _) => "left behind",
        };
        for host in &lab.hosts {
            table.row(vec![
                lab.name.as_str().into(),
                state.into(),
                host.host.as_str().into(),
                host.address.as_str().into(),
                host.namespace.as_str().into(),
                lab.scenario.as_str().into(),
            ]);
        }
    }
    match labs.is_empty() {
        true => terminal::print("There is no lab.\n")?,
        false => terminal::print(&terminal::table(&table))?,
    }
    for (name, log) in lost()? {
        terminal::note(&format!("Lab `{name}` has ended by itself; see {}.", log.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// `farpace lab exec`: becomes the program.
///
/// # Errors
/// No such lab or host, or a program that cannot be run.
pub fn exec(args: &ExecArgs) -> Result<ExitCode> {
    let lab = named(&args.name)?;
    let Some(host) = lab.hosts.iter().find(|host| host.host == args.host) else {
        let hosts: Vec<&str> = lab.hosts.iter().map(|host| host.host.as_str()).collect();
        bail!("lab `{}` has no host `{}`; there are {}", lab.name, args.host, hosts.join(", "));
    };
    let error = Command::new("ip").args(["netns", "exec", &host.namespace]).args(&args.command).exec();
    Err(error).context("cannot run `ip`, which is of iproute2")
}
