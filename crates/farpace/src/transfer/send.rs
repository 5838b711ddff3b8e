//! `farpace send`: files to a `farpace recv`.

use super::control;
use super::explain::Watcher;
use super::identity;
use super::options::{self, SendingOptions, Token, patience, say};
use super::outcome;
use super::progress::Display;
use super::stack::{StackArgs, TransferStream, host_and_port, named_at};
use crate::{interrupt, terminal};
use anyhow::{Result, anyhow, bail};
use farpace_transfer::{SenderKey, Session, Walk, send, walk};
use std::path::PathBuf;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Examples:
  farpace send film.mp4 far.example                          to a `farpace recv` there, at port 7077
  farpace send photos/ notes.txt far.example:9000 --explain  trees, too; and what limited it
  farpace send film.mp4 far.example --limit 50mbit
  farpace send film.mp4 10.78.0.2:7077 --tun fp0 --addr 10.77.0.2/24 --congestion bbr3
  farpace send film.mp4 10.77.0.1:7077 --tun fp0 --addr 10.77.0.2/24 --set ack_control=unilateral
  FARPACE_TOKEN=sesame farpace send film.mp4 far.example

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
    /// Files and directories, and then where `farpace recv` listens [default port: 7077]
    #[arg(required = true, value_name = "FILE... HOST[:PORT]")]
    words: Vec<PathBuf>,
    #[command(flatten)]
    sending: SendingOptions,
    #[command(flatten)]
    token: Token,
    #[command(flatten)]
    stack: StackArgs,
    /// Give up when nothing moves for so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = options::seconds)]
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
        return control::serve(args.timeout, &|call, session| {
            let result = send(call.line, session, found.clone(), args.sending.limit);
            result.map(|sent| if sent.failed == 0 { terminal::OK } else { terminal::FAILED })
        });
    }
    let (to, files) = match args.words.split_last() {
        Some((to, files)) if !files.is_empty() => (to, files),
        _ => bail!("give one file at least, and then HOST or HOST:PORT of a `farpace recv`"),
    };
    let (host, port) = host_and_port(&to.to_string_lossy())?;
    let found = walk(files).map_err(|fault| anyhow!(fault))?;
    let token = args.token.get()?;
    let sender =
        if token.is_empty() { known_by(&named_at(&host, port), args.sending.quiet) } else { [0; 32] };
    let net = args.stack.up(args.sending.limit, args.sending.quiet)?;
    let call = match net.connect(&host, port) {
        Ok(call) => call,
        Err(_) if interrupt::asked() => return Ok(ExitCode::from(terminal::INTERRUPTED)),
        Err(error) => {
            let error = if to.exists() {
                error.context(format!("`{}` is a file here; the last word is where to send to", to.display()))
            } else {
                error
            };
            terminal::complain(&error);
            return Ok(ExitCode::from(terminal::FAILED));
        }
    };
    let session = Session { token: &token, patience: patience(args.timeout), sender, ..Session::default() };
    over(call, found, &args.sending, &session, net.name())
}

/// By what the receiver knows this sender again; says it if it will not.
fn known_by(to: &str, quiet: bool) -> SenderKey {
    identity::at(to).unwrap_or_else(|error| {
        say(quiet, &format!("Without a token an interrupted transfer will begin anew: {error:#}"));
        [0; 32]
    })
}

/// Sends over a connection and tells what came of it.
///
/// # Errors
/// Standard output cannot be written.
pub(super) fn over(
    call: TransferStream,
    found: Walk,
    how: &SendingOptions,
    session: &Session<'_>,
    stack: &str,
) -> Result<ExitCode> {
    let TransferStream { line, peer, probe, .. } = call;
    let display = Display::new(how.quiet);
    let watcher = Watcher::new(probe);
    let tick = |progress: &farpace_transfer::LineProgress| {
        watcher.look(progress);
        display.tick(progress)
    };
    let session = Session { tick: &tick, ..*session };
    let result = send(line, &session, found, how.limit);
    display.clear();
    match result {
        Ok(sent) => outcome::sent(&sent, how, stack, how.limit, watcher.path()),
        Err(error) => Ok(outcome::failure(&error, &peer)),
    }
}
