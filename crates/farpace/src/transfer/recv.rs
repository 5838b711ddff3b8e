//! `farpace recv`: files from `farpace send`.

use super::control;
use super::options::{Token, patience, say};
use super::outcome;
use super::progress::Display;
use super::stack::{Call, StackArgs};
use super::target;
use crate::{interrupt, terminal};
use anyhow::{Context, Result};
use farpace_transfer::{Code, Fault, Place, Policy, Session, TransferError, receive, turn_away};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

/// Where it listens if nothing is said.
pub const PORT: u16 = 7077;

const AFTER_HELP: &str = "\
Examples:
  farpace recv                              into this directory, at port 7077, until Ctrl-C
  farpace recv --once --dir incoming        one transfer
  FARPACE_TOKEN=sesame farpace recv         only from those who know the token
  farpace recv --listen 10.0.0.5:9000 --allow-overwrite
  farpace recv --tun fp0 --addr 10.78.0.2/24 --listen 10.78.0.2:7077

Files that are there are not replaced unless --allow-overwrite is given, nothing is written outside of the directory,
and a file has its name only when it is whole and verified. Without a token everybody who reaches the port can write.

Exit codes:
  0    ended by --once, and everything was written and verified
  1    --once, and something was not
  2    wrong usage, or the port is taken
  130  interrupted";

/// The arguments of `farpace recv`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Address and port, or a port alone [default: 7077 at all addresses]
    #[arg(long, value_name = "ADDR:PORT", value_parser = listen)]
    listen: Option<SocketAddr>,
    /// Where files go; made if it is not there
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// End after one transfer
    #[arg(long)]
    once: bool,
    /// Replace files that are there and differ
    #[arg(long)]
    allow_overwrite: bool,
    /// Wait until each file is on the disk before it is acknowledged
    #[arg(long)]
    sync: bool,
    /// Transfers at once; more are turned away
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=256))]
    max_transfers: u64,
    /// One line of JSON for each transfer
    #[arg(long)]
    json: bool,
    /// Say nothing of transfers that go well
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    token: Token,
    #[command(flatten)]
    stack: StackArgs,
    /// Give up a transfer in which nothing moves for so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u64,
    /// The far end of `farpace copy`
    #[arg(long, hide = true)]
    stdio_control: bool,
    /// Where its files go, in the manner of cp
    #[arg(long, hide = true, value_name = "PATH")]
    target: Option<PathBuf>,
}

fn listen(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse().map(|port: u16| SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port));
    port.or_else(|_| text.parse()).map_err(|_| format!("`{text}` is neither ADDR:PORT nor a port"))
}

/// `farpace recv`.
///
/// # Errors
/// The directory cannot be written, the port is taken, or options make no sense.
pub fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install();
    let policy = Policy { overwrite: args.allow_overwrite, sync: args.sync, rename: None };
    if args.stdio_control {
        let place = target::place(args.target.as_deref().unwrap_or(&args.dir), policy)?;
        return control::serve(args.timeout, |call, session| {
            receive(call.line, session, &place)
                .map(|got| if got.failed == 0 { terminal::OK } else { terminal::FAILED })
        });
    }
    // A name that nobody has yet is as good as one that somebody has; its parents must be there.
    if let Err(error) = std::fs::create_dir(&args.dir)
        && error.kind() != std::io::ErrorKind::AlreadyExists
    {
        return Err(error).with_context(|| format!("cannot make the directory {}", args.dir.display()));
    }
    let place = target::directory(&args.dir, policy)?;
    let token = args.token.get()?;
    let net = args.stack.up(None, args.quiet)?;
    let all = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), PORT);
    let own = args
        .stack
        .addr
        .filter(|_| net.name() == "farpace")
        .map_or(all, |(address, _)| SocketAddr::new(address, PORT));
    let door = net.listen(args.listen.unwrap_or(own))?;
    if let Some(at) = door.address() {
        let guard = if token.is_empty() { "; without a token everybody can write here" } else { "" };
        say(args.quiet, &format!("Receiving at {at} into {}{guard}.", args.dir.display()));
    }
    let desk = Desk {
        args,
        place,
        token,
        busy: AtomicU64::new(0),
        done: AtomicBool::new(false),
        code: AtomicU8::new(terminal::OK),
    };
    std::thread::scope(|scope| {
        let stop = || interrupt::asked() || desk.done.load(Ordering::Relaxed);
        while let Some(call) = door.accept(stop)? {
            let before = desk.busy.fetch_add(1, Ordering::Relaxed);
            let desk = &desk;
            // Turning away needs a thread, too: who says nothing would hold up the others. Beyond that they are just closed.
            if before >= args.max_transfers.saturating_mul(2) {
                desk.busy.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            scope.spawn(move || {
                desk.serve(call, before >= args.max_transfers);
                desk.busy.fetch_sub(1, Ordering::Relaxed);
            });
        }
        anyhow::Ok(())
    })?;
    let code = if interrupt::asked() && !desk.done.load(Ordering::Relaxed) {
        terminal::INTERRUPTED
    } else {
        desk.code.load(Ordering::Relaxed)
    };
    Ok(ExitCode::from(code))
}

struct Desk<'a> {
    args: &'a Args,
    place: Place,
    token: Vec<u8>,
    busy: AtomicU64,
    done: AtomicBool,
    code: AtomicU8,
}

impl Desk<'_> {
    fn serve(&self, call: Call, full: bool) {
        let args = self.args;
        let Call { line, peer, .. } = call;
        let display = Display::new(args.quiet || !args.once);
        let session = Session {
            token: &self.token,
            connected: false,
            patience: patience(args.timeout),
            tick: &|progress| display.tick(progress),
        };
        if full {
            let fault = Fault::new(Code::Busy, "as many transfers as allowed are running; try again later");
            return turn_away(line, &session, fault);
        }
        let result = receive(line, &session, &self.place);
        display.clear();
        let good = match &result {
            Ok(received) => outcome::received(received, &peer, args.json, args.quiet)
                .is_ok_and(|code| code == ExitCode::SUCCESS),
            Err(error) => {
                outcome::failure(error, &peer);
                false
            }
        };
        // Strangers do not count as the one transfer.
        let stranger = matches!(
            &result,
            Err(TransferError::Protocol(_) | TransferError::Closed | TransferError::Silent(_))
        ) || matches!(&result, Err(TransferError::Own(fault)) if matches!(fault.code, Code::Token | Code::Version | Code::Role));
        if args.once && !stranger {
            let code = match &result {
                Err(TransferError::Interrupted) => terminal::INTERRUPTED,
                _ if good => terminal::OK,
                _ => terminal::FAILED,
            };
            self.code.store(code, Ordering::Relaxed);
            self.done.store(true, Ordering::Relaxed);
        }
    }
}
