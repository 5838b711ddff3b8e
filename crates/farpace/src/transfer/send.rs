//! `farpace send`: files to a `farpace recv`.

use super::control;
use super::explain::Watcher;
use super::options::{Sending, Token, patience};
use super::outcome;
use super::progress::Display;
use super::stack::{Call, StackArgs};
use crate::{interrupt, terminal};
use anyhow::{Result, anyhow, bail};
use farpace_transfer::{Session, Walk, send, walk};
use std::path::PathBuf;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Examples:
  farpace send film.mp4 far.example:7077                     to a `farpace recv` there
  farpace send photos/ notes.txt far.example:7077 --explain  trees, too; and what limited it
  farpace send film.mp4 far.example:7077 --limit 50mbit
  farpace send film.mp4 10.78.0.2:7077 --tun fp0 --addr 10.77.0.2/24 --congestion bbr3
  FARPACE_TOKEN=sesame farpace send film.mp4 far.example:7077

Run the same command again after an interruption: what has arrived is verified and not sent again.
Nothing is encrypted; `farpace copy --through-ssh` does.

Exit codes:
  0    the receiver has written and verified everything
  1    something was not transferred; which and why is on standard error
  2    wrong usage
  130  interrupted";

/// The arguments of `farpace send`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Files and directories, and then where `farpace recv` listens
    #[arg(required = true, value_name = "FILE... HOST:PORT")]
    words: Vec<PathBuf>,
    #[command(flatten)]
    sending: Sending,
    #[command(flatten)]
    token: Token,
    #[command(flatten)]
    stack: StackArgs,
    /// Give up when nothing moves for so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u64,
    /// The far end of `farpace copy`
    #[arg(long, hide = true)]
    stdio_control: bool,
}

/// `farpace send`.
///
/// # Errors
/// Files that are not there, or options that make no sense.
pub fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install();
    if args.stdio_control {
        let found = control::walk_or_tell(&args.words)?;
        return control::serve(args.timeout, |call, session| {
            let result = send(call.line, session, found.clone(), args.sending.limit);
            result.map(|sent| if sent.failed == 0 { terminal::OK } else { terminal::FAILED })
        });
    }
    let (to, files) = match args.words.split_last() {
        Some((to, files)) if !files.is_empty() => (to.to_string_lossy(), files),
        _ => bail!("give one file at least, and then HOST:PORT of a `farpace recv`"),
    };
    let found = walk(files).map_err(|fault| anyhow!(fault))?;
    let token = args.token.get()?;
    let net = args.stack.up(args.sending.limit, args.sending.quiet)?;
    let call = match net.connect(&to) {
        Ok(call) => call,
        Err(_) if interrupt::asked() => return Ok(ExitCode::from(terminal::INTERRUPTED)),
        Err(error) => {
            terminal::complain(&error);
            return Ok(ExitCode::from(terminal::FAILED));
        }
    };
    over(call, found, &args.sending, &token, args.timeout, net.name())
}

/// Sends over a connection and tells what came of it.
///
/// # Errors
/// Standard output cannot be written.
pub(super) fn over(
    call: Call,
    found: Walk,
    how: &Sending,
    token: &[u8],
    timeout: u64,
    stack: &str,
) -> Result<ExitCode> {
    let Call { line, peer, probe } = call;
    let display = Display::new(how.quiet);
    let watcher = Watcher::new(probe);
    let tick = |progress: &farpace_transfer::Progress| {
        watcher.look(progress);
        display.tick(progress)
    };
    let session = Session { token, connected: true, patience: patience(timeout), tick: &tick };
    let result = send(line, &session, found, how.limit);
    display.clear();
    match result {
        Ok(sent) => outcome::sent(&sent, how, stack, how.limit, watcher.path()),
        Err(error) => Ok(outcome::failure(&error, &peer)),
    }
}
