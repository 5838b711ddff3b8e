//! `farpace recv`: files from `farpace send`.

use super::clear::ClearArgs;
use super::control;
use super::options::{self, Token, say, timeouts};
use super::outcome;
use super::progress::Display;
use crate::carrier::StackArgs;
use crate::terminal;
use anyhow::{Context, Result, bail};
use farpace_process::interrupt;
use farpace_process::stopwatch::Stopwatch;
use farpace_transfer::{ExcludePatterns, LineProgress, MinFree, Session, WritePolicy, receive};
use farpace_tunnel::server::{RecvServer, TransferEnd, serve};
use farpace_tunnel::{
    DEFAULT_PORT, Gate, GateArgs, Net, Service, TicketIdentity, TransferListener, TransferStream, target,
};
use farpace_units::ByteCount;
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Between two looks for partial files whose time is over; sooner if they are kept for less.
const EXPIRE: Duration = Duration::from_secs(60);

const AFTER_HELP: &str = "\
Examples:
  farpace recv --dir incoming               prints a ticket for `farpace send`; UDP and TCP port 7077
  farpace recv --once                       one transfer, then the ticket is invalid
  farpace recv --key-file key               the same ticket each time
  farpace recv --listen 9000 --advertise gw.example:9000   behind an address translator that passes port \
  9000 on
  farpace recv --insecure --token-file secret              unencrypted, from holders of the token
  farpace recv --insecure --open --max-bytes 10GB          unencrypted, from everybody who reaches the port

Only holders of the ticket may send, and nobody else can read the traffic. It is valid until this command \
ends, or with --key-file as long as the file exists. One port must be reachable: UDP, or TCP without UDP. \
Existing files are not replaced unless --allow-overwrite is given, nothing is written outside of the \
directory, and a file gets its name only when it is complete and verified. With --insecure and without a \
token senders are strangers: they get no hidden names, no hash of a file that they have not sent \
themselves, half of the transfers for one address, and none of the last 5 % of the disk (at most 1 GB).

Exit codes:
  0    ended by --once, and everything was written and verified
  1    --once, and something was not
  2    wrong usage, or the port is taken
  130  interrupted";

/// The arguments of `farpace recv`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Address, port, or both [default: 7077 at all addresses; with --insecure and without a token at
    /// 127.0.0.1]
    #[arg(long, value_name = "ADDR:PORT", value_parser = listen)]
    listen: Option<Listen>,
    /// The name or address that the ticket gives, with a port if that is another; may be repeated [default:
    /// this machine's]
    #[arg(long, value_name = "HOST[:PORT]")]
    advertise: Vec<String>,
    /// Keep the keys in this file, so that the ticket stays the same; made if it does not exist
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    key_file: Option<PathBuf>,
    /// With --insecure, without a token: admit everybody who reaches the port
    #[arg(long, requires = "insecure")]
    open: bool,
    /// Directory for received files; made if it does not exist
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// End after one transfer
    #[arg(long)]
    once: bool,
    /// Replace existing files that differ
    #[arg(long)]
    allow_overwrite: bool,
    /// Without a token: accept names that begin with a dot
    #[arg(long)]
    allow_hidden: bool,
    /// Bytes that all transfers together may store, e.g. 10GB
    #[arg(long, value_name = "SIZE", value_parser = options::bytes)]
    max_bytes: Option<ByteCount>,
    /// Space that stays free on the disk, e.g. 20GB or 10% [default: 5% without a token, at most 1GB;
    /// otherwise nothing]
    #[arg(long, value_name = "SIZE", value_parser = options::min_free)]
    min_free: Option<MinFree>,
    /// Without a token: how many seconds a partial file is kept
    #[arg(long, value_name = "SECONDS", default_value_t = 86_400, value_parser = options::seconds)]
    keep_partial: u64,
    /// Wait until each file is on the disk before it is acknowledged
    #[arg(long)]
    sync: bool,
    /// Transfers at once; more are refused
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = transfers)]
    max_transfers: usize,
    /// One line of JSON for each transfer
    #[arg(long)]
    json: bool,
    /// Do not report transfers that succeed
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    token: Token,
    #[command(flatten)]
    stack: StackArgs,
    #[command(flatten)]
    clear: ClearArgs,
    /// Give up a transfer after this many seconds without a byte in either direction
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = options::seconds)]
    timeout: u64,
    /// The far end of `farpace copy`
    #[arg(long, hide = true)]
    stdio_control: bool,
    /// As it was told
    #[arg(long, hide = true)]
    dry_run: bool,
    /// The same
    #[arg(long, hide = true)]
    delete: bool,
    /// The same
    #[arg(long, hide = true)]
    exclude: Vec<String>,
    /// Where its files go, in the manner of cp
    #[arg(long, hide = true, value_name = "PATH")]
    target: Option<PathBuf>,
    /// The contents of a directory go there, in the manner of rsync
    #[arg(long, hide = true)]
    contents: bool,
}

/// Where to listen, as far as it is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listen {
    address: Option<IpAddr>,
    port: u16,
}

fn listen(text: &str) -> Result<Listen, String> {
    if let Ok(port) = text.parse() {
        return Ok(Listen { address: None, port });
    }
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = bare.parse() {
        return Ok(Listen { address: Some(address), port: DEFAULT_PORT });
    }
    let at: Result<SocketAddr, _> = text.parse();
    let at = at.map_err(|_| format!("`{text}` is neither ADDR:PORT nor an address nor a port"))?;
    Ok(Listen { address: Some(at.ip()), port: at.port() })
}

fn transfers(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=256).contains(number));
    number.ok_or_else(|| format!("`{text}` is not a number from 1 to 256"))
}

/// `farpace recv`.
///
/// # Errors
/// The directory cannot be written, the port is taken, or options make no sense.
pub fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install();
    let policy = WritePolicy {
        overwrite: args.allow_overwrite,
        sync: args.sync,
        hidden: args.allow_hidden,
        max_bytes: args.max_bytes,
        min_free: args.min_free,
        keep_partial: Duration::from_secs(args.keep_partial),
        delete: args.delete,
        dry_run: args.dry_run,
        protect: ExcludePatterns::new(&args.exclude)?,
        ..WritePolicy::default()
    };
    if args.stdio_control {
        let place = target::place(args.target.as_deref().unwrap_or(&args.dir), args.contents, policy)?;
        let (port, options) = (args.listen.map_or(0, |listen| listen.port), args.stack.options(None)?);
        return control::serve(args.timeout, port, &options, &|call, session| {
            let session = Session { dry_run: args.dry_run, ..*session };
            receive(call.line, &session, &place).map(|got| {
                outcome::deleted(&got.deleted, args.dry_run);
                got.failed == 0
            })
        });
    }
    let secured = !args.clear.insecure;
    let token = if secured { args.token.refuse().map(|()| Vec::new())? } else { args.token.get()? };
    if args.open && !token.is_empty() {
        bail!("--open lets everybody send, and a token only those who know it: give one of them");
    }
    // A name that nobody has yet is as good as one that somebody has; its parents must be there.
    if let Err(error) = std::fs::create_dir(&args.dir)
        && error.kind() != std::io::ErrorKind::AlreadyExists
    {
        return Err(error).with_context(|| format!("cannot make the directory {}", args.dir.display()));
    }
    let place = target::directory(&args.dir, policy)?;
    let listener = if secured {
        TransferListener::Gate(args.gate()?)
    } else {
        let net = args.clear.up(&args.stack, None, args.quiet)?;
        args.listener(&net, &token)?
    };
    if let TransferListener::Gate(gate) = &listener {
        if let Some(note) = gate.note() {
            say(args.quiet, note);
        }
        let at = gate.address();
        say(
            args.quiet,
            &format!("Receiving at {at} into {}; whoever has this ticket may send:", args.dir.display()),
        );
        let text = gate.ticket().to_string();
        let line = if args.json { format!("{}\n", json!({ "ticket": text })) } else { format!("{text}\n") };
        terminal::print(&line)?;
    } else if let Some(at) = listener.address() {
        let guard = match (token.is_empty(), at.ip().to_canonical().is_loopback()) {
            (false, _) => "",
            (true, true) => "; without a token, from this machine alone",
            (true, false) => "; without a token, from everybody",
        };
        say(args.quiet, &format!("Receiving at {at} into {}{guard}.", args.dir.display()));
    }
    raise_descriptors();
    let expired = Mutex::new(Stopwatch::start());
    let every = place_looks(args.keep_partial);
    let idle = || {
        let mut expired = expired.lock().unwrap_or_else(PoisonError::into_inner);
        if expired.elapsed() > every {
            *expired = Stopwatch::start();
            place.expire();
        }
        false
    };
    let timeouts = timeouts(args.timeout);
    let server = RecvServer {
        token: &token,
        secured,
        transfers: args.max_transfers,
        timeouts,
        idle: &idle,
        one_sender: false,
        complain: &terminal::note,
    };
    let end = serve(&listener, &server, args.once, &|TransferStream { line, peer, .. }, session| {
        let display = Display::new(args.quiet || !args.once);
        let tick = |progress: &LineProgress| (session.tick)(progress) | display.tick(progress);
        let came = AtomicBool::new(false);
        let admit = || (session.admit)().inspect(|()| came.store(true, Ordering::Relaxed));
        let session = Session { tick: &tick, admit: &admit, ..*session };
        let received = receive(line, &session, &place);
        display.clear();
        let received = received.inspect_err(|error| {
            // Scans of the port, and the ways that a sender tries and does not take, are no transfers.
            if args.json && came.load(Ordering::Relaxed) {
                outcome::ended_early(error, &listener.name_of(&peer));
            }
        })?;
        let told =
            outcome::received(&received, &listener.name_of(&peer), args.json, args.quiet, args.dry_run);
        Ok(told.is_ok() && received.failed == 0)
    })?;
    Ok(outcome::code(end.unwrap_or(TransferEnd::Interrupted)))
}

/// How often to look for partial files that are kept for so many seconds.
fn place_looks(keep: u64) -> Duration {
    EXPIRE.min(Duration::from_secs(keep) / 4)
}

/// A transfer has up to 64 partial files open, and many shells allow 1,024 descriptors where the system
/// allows more.
fn raise_descriptors() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    // If it cannot be done, there are as many transfers as descriptors allow.
    let _ = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard.min(1 << 20), hard));
}

impl Args {
    /// Opens the encrypted ways.
    fn gate(&self) -> Result<Gate> {
        let identity = match &self.key_file {
            Some(path) => {
                TicketIdentity::kept(path).with_context(|| format!("the key file {}", path.display()))?
            }
            None => TicketIdentity::generate().context("no random numbers")?,
        };
        let args = GateArgs {
            address: self.listen.and_then(|listen| listen.address),
            port: self.listen.map_or(DEFAULT_PORT, |listen| listen.port),
            advertise: self.advertise.clone(),
            ways: self.stack.ways(),
            // Strangers are for whoever serves transfers.
            shakes_early: false,
        };
        Gate::open(&identity, &args, &[Service::Transfer], &self.stack.options(None)?)
    }

    /// Listens where it was asked for, or where it is safe.
    fn listener(&self, net: &Net, token: &[u8]) -> Result<TransferListener> {
        let may_all = self.open || !token.is_empty();
        let own = self.clear.addr.filter(|_| matches!(net, Net::Farpace(_))).map(|(address, _)| address);
        let port = self.listen.map_or(DEFAULT_PORT, |listen| listen.port);
        let address = self.listen.and_then(|listen| listen.address).or(own);
        let address = match address {
            Some(address) => address,
            None if may_all => {
                // A system without IPv6 has all addresses of IPv4 left.
                let all = net.listen(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port));
                return all.or_else(|_| net.listen(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port)));
            }
            None => Ipv4Addr::LOCALHOST.into(),
        };
        let at = SocketAddr::new(address, port);
        if !may_all && !address.to_canonical().is_loopback() {
            bail!(
                "at {at} others can reach it: give a token (FARPACE_TOKEN, --token-file), or --open to let \
                 everybody send"
            );
        }
        net.listen(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: an address alone, a port alone or both are not understood.
    #[test]
    fn where_to_listen_is_understood() {
        let at = |address: &str, port| Ok(Listen { address: Some(address.parse().unwrap()), port });
        assert_eq!(listen("9000"), Ok(Listen { address: None, port: 9000 }));
        assert_eq!(listen("10.0.0.5"), at("10.0.0.5", DEFAULT_PORT));
        assert_eq!(listen("10.0.0.5:9000"), at("10.0.0.5", 9000));
        assert_eq!(listen("[fd00::1]:9000"), at("fd00::1", 9000));
        assert_eq!(listen("fd00::1"), at("fd00::1", DEFAULT_PORT));
        assert_eq!(listen("[fd00::1]"), at("fd00::1", DEFAULT_PORT));
        for text in ["", "-5", "99999", "far.example", "10.0.0.5:"] {
            assert!(listen(text).is_err(), "{text}");
        }
    }
}
