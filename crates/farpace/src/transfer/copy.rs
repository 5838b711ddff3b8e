//! `farpace copy`: files to or from another machine, in scp's form. ssh starts the far end; the files take a
//! connection of their own, or go through ssh.

use super::by_scp::ScpJob;
use super::options::{self, ExcludeArgs, SendingOptions, say, timeouts};
use super::outcome;
use super::progress::Display;
use super::send;
use crate::carrier::{SshArgs, StackArgs, ViaArgs};
use crate::terminal;
use anyhow::{Context, Result, anyhow, bail};
use farpace_process::interrupt;
use farpace_transfer::{Session, WritePolicy, kernel, receive, walk_with};
use farpace_tunnel::shell_words::{is_contents, quoted, quoted_path, quoted_pattern, remote};
use farpace_tunnel::{NoFarEnd, ReachedEnd, Service, TransferProbe, TransferStream, beside_ssh, target};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Examples:
  farpace copy film.mp4 anna@far.example:films/        to the far end
  farpace copy anna@far.example:films/film.mp4 .       from the far end
  farpace copy photos/ far.example:photos --explain    what is in photos goes into photos there; and what \
  limited it
  farpace copy site/ far.example:www --delete --exclude '*.bak' --allow-overwrite   as rsync: the \
  same tree there; -n only reports
  farpace copy film.mp4 far.example: --via eth0 --via wwan0   over both links at once
  farpace copy film.mp4 far.example: --port 9000       the firewall there admits UDP port 9000
  farpace copy film.mp4 far.example: --through-ssh     through ssh's own channel, nothing else
  farpace copy film.mp4 far.example: --ssh-command \"ssh -p 2222 -i key\"
  farpace copy film.mp4 far.example: --remote-command /opt/farpace/farpace
  farpace copy film.mp4 far.example: --or-scp          by scp, if farpace is not installed there

ssh starts farpace at the far end, which must be installed there; neither end needs privileges. Keys are \
exchanged over ssh. Then UDP and TCP are tried at once. If UDP works, farpace's own TCP carries the files \
in a WireGuard tunnel; otherwise the kernel's TCP does under TLS 1.3; otherwise ssh does. All transports \
are encrypted. The command reports which one it uses, and why.

Exit codes:
  0    all is written and verified at the other end
  1    something was not transferred, or the other end cannot be reached
  2    wrong usage
  130  interrupted; run the same command again to go on from there";

/// The arguments of `farpace copy`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Files and directories, here or all at one [user@]host:PATH
    #[arg(required = true, value_name = "SRC")]
    sources: Vec<OsString>,
    /// Directory or new name, [user@]host:PATH or here
    #[arg(value_name = "DST")]
    target: OsString,
    /// Send everything through ssh: often slower
    #[arg(long)]
    through_ssh: bool,
    /// Replace existing files that differ
    #[arg(long)]
    allow_overwrite: bool,
    /// Delete files in copied directories that the source does not have; --exclude protects
    #[arg(long)]
    delete: bool,
    /// Only report what would be sent and deleted
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Compare existing files by content: always done, accepted for compatibility with rsync
    #[arg(long)]
    checksum: bool,
    #[command(flatten)]
    excludes: ExcludeArgs,
    /// Copy by scp if farpace is not installed there: through ssh, not resumed, not verified, existing files
    /// are replaced
    #[arg(long)]
    or_scp: bool,
    #[command(flatten)]
    ssh: SshArgs,
    #[command(flatten)]
    sending: SendingOptions,
    #[command(flatten)]
    stack: StackArgs,
    #[command(flatten)]
    links: ViaArgs,
    /// Give up after this many seconds without a byte in either direction
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = options::seconds)]
    timeout: u64,
}

/// `farpace copy`.
///
/// # Errors
/// Neither or both ends are here, files are not there, or ssh cannot be started.
pub fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install();
    if args.or_scp
        && (args.dry_run || args.delete || args.wants_contents() || !args.excludes.exclude.is_empty())
    {
        bail!("scp has no --dry-run, --delete, --exclude and no `SRC/`: leave --or-scp out, or these");
    }
    let from: Vec<_> = args.sources.iter().map(|source| remote(source)).collect();
    match (remote(&args.target), from.iter().flatten().next()) {
        (Some(_), Some(_)) => bail!("both ends are on other machines: run farpace copy on one of them"),
        (None, None) => bail!("both ends are here: use cp, or write host:PATH for the other machine"),
        (Some((host, path)), None) => {
            let paths: Vec<_> = args.sources.iter().map(PathBuf::from).collect();
            let patterns = args.excludes.patterns()?;
            let found = walk_with(&paths, &patterns).map_err(|fault| anyhow!(fault))?;
            let overwrite = if args.allow_overwrite { " --allow-overwrite" } else { "" };
            let command = format!(
                "recv --stdio-control{overwrite}{}{}{} --timeout {} --target {}",
                if args.wants_contents() { " --contents" } else { "" },
                args.far_stack("--listen"),
                args.far_sync(true),
                args.timeout,
                quoted_path(path)
            );
            let far = match args.call(host, &command)? {
                Ok(far) => far,
                Err(code) => return Ok(code),
            };
            let (dry_run, timeouts) = (args.dry_run, timeouts(args.timeout));
            let session = Session { secured: true, dry_run, timeouts, ..Session::default() };
            let links = far.reached.as_ref().map_or(&[][..], ReachedEnd::statuses);
            send::over(
                far.call,
                found,
                &SendingOptions { dry_run, ..args.sending.clone() },
                &session,
                far.way,
                links,
            )
        }
        (None, Some((host, _))) => {
            let mut paths = String::new();
            for place in &from {
                match place {
                    Some((other, path)) if other == host => paths += &format!(" {}", quoted_path(path)),
                    _ => bail!("all sources must be at {host}, or all here"),
                }
            }
            let policy = WritePolicy {
                overwrite: args.allow_overwrite,
                delete: args.delete,
                dry_run: args.dry_run,
                protect: args.excludes.patterns()?,
                ..WritePolicy::default()
            };
            let target = Path::new(&args.target);
            if args.sources.len() > 1 && !target.is_dir() {
                bail!("{} must be a directory for several sources", target.display());
            }
            let place = target::place(target, args.wants_contents(), policy)?;
            let limit = args.sending.limit;
            let limit =
                limit.map_or(String::new(), |limit| format!(" --limit '{} bit/s'", limit.bits_per_sec()));
            let stack = args.far_stack("--port");
            let command = format!(
                "send --stdio-control{limit}{stack}{} --timeout {} --{paths}",
                args.far_sync(false),
                args.timeout
            );
            let Far { call: TransferStream { line, peer, .. }, reached: _reached, .. } =
                match args.call(host, &command)? {
                    Ok(far) => far,
                    Err(code) => return Ok(code),
                };
            if args.sending.explain {
                say(args.sending.quiet, "--explain has no effect from a host: its sender is not here.");
            }
            let display = Display::new(args.sending.quiet);
            let tick = |progress: &farpace_transfer::LineProgress| display.tick(progress);
            let session = Session {
                secured: true,
                dry_run: args.dry_run,
                timeouts: timeouts(args.timeout),
                tick: &tick,
                ..Session::default()
            };
            let result = receive(line, &session, &place);
            display.clear();
            match result {
                Ok(received) => {
                    outcome::received(&received, &peer, args.sending.json, args.sending.quiet, args.dry_run)
                }
                Err(error) => Ok(outcome::failure(&error, &peer, args.sending.json)),
            }
        }
    }
}

impl Args {
    /// One source that stands for its contents: they go into the target.
    fn wants_contents(&self) -> bool {
        matches!(self.sources.as_slice(), [source] if is_contents(source))
    }
    /// What the far end is to know of what is left out, deleted, or not done at all, as words of a shell.
    fn far_sync(&self, receives: bool) -> String {
        let mut words = String::new();
        for (is, word) in [(self.delete && receives, " --delete"), (self.dry_run, " --dry-run")] {
            words += if is { word } else { "" };
        }
        for pattern in &self.excludes.exclude {
            words += &format!(" --exclude={}", quoted_pattern(pattern));
        }
        words
    }

    /// What the far end is to know of its TCP and its port, as words of a shell.
    fn far_stack(&self, port: &str) -> String {
        let StackArgs { profile, congestion, set, .. } = &self.stack;
        let mut words = self.ssh.port.map_or(String::new(), |number| format!(" {port} {number}"));
        let named = [("--profile", profile), ("--congestion", congestion)];
        for (option, value) in named.into_iter().filter_map(|(option, value)| Some((option, value.as_ref()?)))
        {
            words += &format!(" {option} {}", quoted(value));
        }
        for value in set {
            words += &format!(" --set {}", quoted(value));
        }
        words
    }
}

struct Far {
    call: TransferStream,
    way: &'static str,
    /// What it goes through lives as long as this.
    reached: Option<ReachedEnd>,
}

impl Args {
    /// Starts the far end and finds a way to it. Otherwise the exit code: it cannot be had, which has been
    /// said, or scp has done it.
    fn call(&self, host: &str, command: &str) -> Result<Result<Far, ExitCode>> {
        let mut end = match self.ssh.program().start(host, command)? {
            Ok(end) => end,
            Err(why) => return Ok(Err(self.without(host, why)?)),
        };
        let quiet = self.sending.quiet || self.sending.json;
        if !self.through_ssh {
            let found = end.reach(
                Service::Transfer,
                self.stack.ways(),
                &self.stack.options(self.sending.limit)?,
                &self.links.via,
            );
            match found.and_then(|reached| Ok((reached.open(Service::Transfer)?, reached))) {
                Ok((stream, reached)) => {
                    say(quiet, &format!("By {}.", reached.why));
                    let call = beside_ssh(stream.into(), end.input, end.child);
                    let way = reached.name();
                    return Ok(Ok(Far { call, way, reached: Some(reached) }));
                }
                Err(_) if interrupt::asked() => return Ok(Err(ExitCode::from(terminal::INTERRUPTED))),
                Err(error) => {
                    say(quiet, &format!("Through ssh, because no other way leads there: {error:#}."))
                }
            }
        }
        end.input.write_all(b"through\n").context("the connection of ssh broke")?;
        let line = kernel::line_of_parts(end.output, end.input, end.child);
        let call = TransferStream {
            line,
            peer: host.to_owned(),
            address: None,
            probe: TransferProbe::Through,
            finish: Box::new(|| ()),
        };
        Ok(Ok(Far { call, way: "ssh", reached: None }))
    }

    /// There is no far end: says why and what helps, or has scp do it.
    fn without(&self, host: &str, why: NoFarEnd) -> Result<ExitCode> {
        if why != NoFarEnd::Ended(Some(127)) {
            return Ok(self.ssh.without(host, why));
        }
        let program = &self.ssh.remote_command;
        if !self.or_scp {
            terminal::note(&format!(
                "error: `{program}` is not there on {host}: install it, name it with --remote-command, or \
                 let scp do it: --or-scp"
            ));
            return Ok(ExitCode::from(terminal::FAILED));
        }
        let text = format!(
            "`{program}` is not there on {host}: scp copies; nothing is verified, and what is there is \
             replaced"
        );
        say(self.sending.quiet, &text);
        let job = ScpJob {
            ssh: &self.ssh.ssh_command,
            sources: &self.sources,
            target: &self.target,
            limit: self.sending.limit,
            quiet: self.sending.quiet || self.sending.json,
        };
        job.run(self.sending.json)
    }
}
