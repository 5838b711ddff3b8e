//! `farpace forward`: TCP ports of this machine that lead to hosts which another machine reaches, as `ssh
//! -L`, with farpace's TCP between.

use crate::carrier::{SshArgs, StackArgs, ViaArgs};
use crate::terminal;
use anyhow::{Context, Result};
use farpace_process::interrupt;
use farpace_process::stopwatch::Stopwatch;
use farpace_transfer::kernel;
use farpace_tunnel::forward::{ForwardRule, carry, outage, refuse};
use farpace_tunnel::{OutageWatch, ReachedEnd, Service, named_at};
use std::net::TcpListener;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Builder;

const AFTER_HELP: &str = "\
Examples:
  farpace forward -L 8080:intranet:80 me@server           http://127.0.0.1:8080 is intranet:80 as server \
  reaches it
  farpace forward -L 0.0.0.0:5432:localhost:5432 server    for other hosts, too: a port of server itself
  farpace forward -L 8080:intranet:80 -L 2222:nas:22 server --via eth0 --via wwan0

ssh starts farpace at the far end; it needs no privileges and ends with this command. Connections go \
through farpace's own TCP in a WireGuard tunnel over UDP. If UDP does not work, they go through TLS 1.3. \
If that does not work either, ssh itself forwards.

Exit codes:
  1    the far end cannot be reached, or is gone
  2    wrong usage, or a port is taken
  130  interrupted";

/// Connections at once, of all ports; more are reset at once.
const MAX_CONNECTIONS: usize = 256;

/// The arguments of `farpace forward`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// A local port, and its destination at the far end; may be repeated
    #[arg(short = 'L', long = "local", value_name = "[ADDR:]PORT:HOST:PORT", required = true)]
    rules: Vec<ForwardRule>,
    /// The other host, as ssh names it
    #[arg(value_name = "[USER@]HOST")]
    host: String,
    /// Report only errors
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    ssh: SshArgs,
    #[command(flatten)]
    stack: StackArgs,
    #[command(flatten)]
    links: ViaArgs,
}

/// `farpace forward`.
///
/// # Errors
/// A port is taken, ssh cannot be started, or the far end cannot be reached.
pub fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install();
    let open = |rule: &ForwardRule| {
        let listener = TcpListener::bind(rule.at);
        listener.with_context(|| format!("cannot listen at {}; choose another port", rule.at))
    };
    let mut listeners = args.rules.iter().map(open).collect::<Result<Vec<_>>>()?;
    let options = args.stack.options(None)?;
    let port = args.ssh.port.map_or(String::new(), |port| format!(" --port {port}"));
    let mut end = match args.ssh.program().start(&args.host, &format!("perf --stdio-control{port}"))? {
        Ok(end) => end,
        Err(why) => return Ok(args.ssh.without(&args.host, why)),
    };
    let reached = match end.reach(Service::Forward, args.stack.ways(), &options, &args.links.via) {
        Ok(reached) => reached,
        Err(error) => {
            end.end();
            if interrupt::asked() {
                return Ok(ExitCode::from(terminal::INTERRUPTED));
            }
            terminal::note(&format!("Through ssh itself, because no other way leads there: {error:#}."));
            drop(listeners);
            return args.by_ssh();
        }
    };
    if !args.quiet {
        terminal::note(&format!("By {}.", reached.why));
        for rule in &args.rules {
            terminal::note(&format!(
                "{} leads to {} from {}.",
                rule.at,
                named_at(&rule.host, rule.port),
                args.host
            ));
        }
    }
    let forwarding =
        Arc::new(Forwarding { reached, connections: AtomicUsize::new(0), gone: AtomicBool::new(false) });
    for (listener, rule) in listeners.drain(..).zip(&args.rules) {
        let (forwarding, rule) = (forwarding.clone(), rule.clone());
        Builder::new().spawn(move || forwarding.accept(&listener, &rule))?;
    }
    let mut outages = OutageWatch::default();
    while !forwarding.is_over() {
        if let Some(news) = outages.look(forwarding.reached.unanswered()) {
            terminal::note(&outage(&args.host, news));
        }
        // ssh ends when the far end does.
        if !matches!(end.child.try_wait(), Ok(None)) {
            forwarding.gone.store(true, Ordering::Relaxed);
            terminal::note("error: the far end is gone");
        }
        Stopwatch::start().wait_until(200_000_000, || forwarding.is_over());
    }
    let code = if interrupt::asked() { terminal::INTERRUPTED } else { terminal::FAILED };
    let _ = end.child.kill();
    // Connections that are still open end with the process.
    Ok(ExitCode::from(code))
}

/// What the threads of all ports share. No thread keeps the command from its end.
struct Forwarding {
    reached: ReachedEnd,
    /// Connections that are open.
    connections: AtomicUsize,
    /// The far end is gone.
    gone: AtomicBool,
}

impl Forwarding {
    fn is_over(&self) -> bool {
        interrupt::asked() || self.gone.load(Ordering::Relaxed)
    }

    /// Takes the connections of a port, each in a thread of its own.
    fn accept(self: Arc<Self>, listener: &TcpListener, rule: &ForwardRule) {
        while let Ok(Some(tcp)) = kernel::accept(listener, || self.is_over()) {
            if self.connections.load(Ordering::Relaxed) >= MAX_CONNECTIONS {
                terminal::note(&format!("{}: {MAX_CONNECTIONS} connections are open, no more", rule.at));
                refuse(tcp);
                continue;
            }
            self.connections.fetch_add(1, Ordering::Relaxed);
            let (shared, rule) = (self.clone(), rule.clone());
            let carry = move || {
                if let Err(error) = carry(tcp, &shared.reached, &rule) {
                    terminal::note(&format!("{}: {error:#}", named_at(&rule.host, rule.port)));
                }
                shared.connections.fetch_sub(1, Ordering::Relaxed);
            };
            if Builder::new().spawn(carry).is_err() {
                self.connections.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}

impl Args {
    /// ssh forwards.
    fn by_ssh(&self) -> Result<ExitCode> {
        let mut words = self.ssh.ssh_command.split_whitespace();
        let program = words.next().context("--ssh-command is empty")?;
        let mut command = Command::new(program);
        command.args(words).arg("-N");
        for ForwardRule { at, host, port } in &self.rules {
            command.args([
                "-L",
                &format!("{}:{}", named_at(&at.ip().to_string(), at.port()), named_at(host, *port)),
            ]);
        }
        let status = command.arg(&self.host).status().with_context(|| format!("cannot start `{program}`"))?;
        Ok(ExitCode::from(if interrupt::asked() {
            terminal::INTERRUPTED
        } else {
            status.code().map_or(terminal::FAILED, |code| code as u8)
        }))
    }
}
