//! The command line: which commands there are.

use crate::{
    cc, completions, doctor, emulate, exec, explain, far_end, forward, gateway, kernel, lab_namespaces, man,
    nics, notices, pacing, papers, perf, profiles, run, scenario, show, ss, sweep, terminal, together,
    transfer, up, version, view,
};
use clap::{Arg, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::any::TypeId;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Examples for operators of far links:
  farpace doctor                                     what this host allows, and what would falsify results
  farpace emulate eth1 eth2 --rate 100mbit --delay 20ms    a link between two interfaces, in real time
  farpace explain slow.pcapng                        where the time of transfers in a capture went
  farpace pacing show                                the effect of a pacing configuration on a link
  farpace pacing report trace.pcap                   how evenly the flows of a capture are paced
  farpace gateway up --lan eth0 --wan eth1           TCP of a whole site split on its router
  farpace kernel up --default                        its congestion control for every program of this host
  farpace nics order --paths 1G,100M                 in which order frames leave by two NICs

Examples for data transfer:
  farpace copy film.mp4 far.example:films/           over ssh, verified and resumed
  farpace recv --dir films                           receives files that are sent with the printed ticket
  farpace send film.mp4 TICKET                       to a farpace recv there

Examples for research:
  farpace run scenarios/gallery/lossy.toml           a transfer over a lossy path, and a report
  farpace run wan.toml --payload film.mp4 --received copy.mp4
  farpace sweep wan.toml --vary links.wan.delay=5ms..300ms*7 --seeds 20    one table of many runs
  farpace scenario explain wan.toml                  what the path can carry, before running it
  farpace show out/a.pcapng                          the packets of a capture, one a line
  farpace cc compare --path satellite                every congestion control on one path
  farpace papers stops                               a paper's numbers beside the measured ones
  farpace together                                   all methods on one path, each alone, and all but one

Examples for developers:
  farpace lab up wan.toml                            a scenario's network for any programs
  farpace exec -- curl http://10.77.0.1/             any program over farpace's TCP
  farpace up --tun fp0 --addr 10.77.0.2/24           a host of farpace's own on a device
  farpace ss                                         the connections of running hosts
  farpace scenario schema > scenario.schema.json     for completion in editors

Exit codes of all commands:
  0    success
  1    a flow did not complete, received bytes differ, or a claim does not hold
  2    wrong usage, a bad scenario, or a file that cannot be read or written
  130  interrupted; results up to then have been written";

/// TCP over far networks: move data, run whole networks in virtual time or on real devices, explain stalled
/// transfers, reproduce papers.
#[derive(Clone, Debug, Parser)]
#[command(name = "farpace", version, long_version = version::LONG, after_help = AFTER_HELP, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Clone, Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is one of it in a process")]
pub enum Command {
    /// Run a scenario: transfers through a network in virtual time, with a summary and a report
    Run(run::Args),
    /// Run a scenario many times with varied values and seeds, into one table
    Sweep(Box<sweep::Args>),
    /// Check scenario files, describe them in words, print their schema
    Scenario(scenario::Args),
    /// Explain where the time of transfers in a capture went, and what would help
    Explain(explain::Args),
    /// Show a large capture, trace or results in a browser
    View(view::Args),
    /// Print a capture as text, in the style of tcpdump, or as JSON
    Show(show::Args),
    /// Precise pacing: configurations in the syntax of tc, their effect, and proof from captures
    #[command(visible_alias = "pace")]
    Pacing(pacing::Args),
    /// Several NICs as one: which NIC sends to which, and in which order frames leave and arrive
    Nics(nics::Args),
    /// Emulate a network: a bridge between two interfaces with a rate, a delay, loss and other impairments
    Emulate(emulate::Args),
    /// Start a host on a device: it answers ping, and offers echo, discard and chargen
    Up(up::Args),
    /// Split the TCP connections of a site on its router, for unmodified hosts
    Gateway(Box<gateway::Args>),
    /// farpace's congestion control inside the running kernel, through BPF
    Kernel(Box<kernel::Args>),
    /// Run an unmodified program on a farpace host
    Exec(exec::Args),
    /// List the sockets of running farpace hosts, as ss(8) does those of the kernel
    Ss(ss::Args),
    /// Report what this host allows and what would falsify results; clean up after killed processes
    Doctor(doctor::Args),
    /// Run the network of a scenario between network namespaces, in real time, for any programs
    Lab(lab_namespaces::Args),
    /// Send files and trees to a `farpace recv`: resumed, verified, acknowledged
    Send(Box<transfer::send::Args>),
    /// Receive files from `farpace send`
    Recv(Box<transfer::recv::Args>),
    /// Copy files to or from another host, with the syntax of scp, over ssh
    Copy(Box<transfer::copy::Args>),
    /// Forward TCP ports to hosts that another host reaches, as ssh -L, over farpace's TCP
    Forward(Box<forward::Args>),
    /// Measure the throughput to another host, and report what limits it
    Perf(Box<perf::Args>),
    /// Reproduce a paper: its numbers and claims beside the measured ones
    Papers(papers::Args),
    /// The methods of all papers on one path: none, each alone, all but one, all; and other TCPs
    Together(together::Args),
    /// Congestion controls: the use of each, and a comparison on one path
    Cc(cc::Args),
    /// List the TCP profiles and congestion controls that scenarios can name
    Profiles(profiles::Args),
    /// Print the completions of these commands for a shell
    Completions(completions::Args),
    /// Print manual pages, or write them all to a directory
    Man(man::Args),
    /// Print the licences of the crates in this program
    Notices(notices::Args),
}

/// The command line with options that take what follows them for their value also if it begins with a dash
/// and is a number, or if the value is no text: so their own words say what is wrong with `--limit -5mbit`.
fn command_line() -> clap::Command {
    fn option(arg: Arg) -> Arg {
        let takes_one =
            arg.get_action().takes_values() && arg.get_num_args().is_none_or(|n| n.max_values() == 1);
        if arg.is_positional() || !takes_one {
            return arg;
        }
        let value = arg.get_value_parser().type_id();
        let is_text = [TypeId::of::<String>(), TypeId::of::<PathBuf>(), TypeId::of::<OsString>()]
            .iter()
            .any(|text| value == *text);
        if is_text { arg.allow_negative_numbers(true) } else { arg.allow_hyphen_values(true) }
    }
    fn all(command: clap::Command) -> clap::Command {
        command.mut_args(option).mut_subcommands(all)
    }
    all(Cli::command())
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let cli = Cli::from_arg_matches(&command_line().get_matches()).unwrap_or_else(|error| error.exit());
    let result = match &cli.command {
        Command::Run(args) => run::run(args),
        Command::Sweep(args) => sweep::run(args),
        Command::Scenario(args) => scenario::run(args),
        Command::Explain(args) => explain::run(args),
        Command::View(args) => view::run(args),
        Command::Show(args) => show::run(args),
        Command::Pacing(args) => pacing::run(args),
        Command::Nics(args) => nics::run(args),
        Command::Emulate(args) => emulate::run(args),
        Command::Up(args) => up::run(args),
        Command::Gateway(args) => gateway::run(args),
        Command::Kernel(args) => kernel::run(args),
        Command::Exec(args) => exec::run(args),
        Command::Ss(args) => ss::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Lab(args) => lab_namespaces::run(args),
        Command::Send(args) => transfer::send::run(args),
        Command::Recv(args) => transfer::recv::run(args),
        Command::Copy(args) => transfer::copy::run(args),
        Command::Forward(args) => forward::run(args),
        Command::Perf(args) => match args.far_end() {
            Some((port, stack)) => far_end::run(port, stack),
            None => perf::run(args),
        },
        Command::Papers(args) => papers::run(args),
        Command::Together(args) => together::run(args),
        Command::Cc(args) => cc::run(args),
        Command::Profiles(args) => profiles::run(args),
        Command::Completions(args) => completions::run(args, Cli::command()),
        Command::Man(args) => man::run(args, Cli::command()),
        Command::Notices(args) => notices::run(args),
    };
    result.unwrap_or_else(|error| {
        terminal::complain(&error);
        ExitCode::from(terminal::USAGE)
    })
}
