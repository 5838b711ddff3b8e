//! `farpace send`: files to a `farpace recv`.

use super::clear::ClearArgs;
use super::control;
use super::options::{self, ExcludeArgs, SendingOptions, Token, say, timeouts};
use super::outcome;
use super::progress::Display;
use crate::carrier::{StackArgs, ViaArgs};
use crate::terminal;
use anyhow::{Context, Result, anyhow, bail};
use farpace_live::device::udp_tunnel::TunnelStatus;
use farpace_process::interrupt;
use farpace_transfer::{SenderKey, Session, Walk, send, walk_with};
use farpace_tunnel::{
    LinkRates, Service, Ticket, TransferStream, Watcher, hide_words, host_and_port, identity, named_at,
    reach, ticket_of,
};
use std::path::PathBuf;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Examples:
  farpace send film.mp4 farpace:203.0.113.5:7077#KEYS        to a `farpace recv`, which has printed this \
  ticket
  farpace send photos/ notes.txt @ticket --explain           trees, too; the ticket is in a file; and what \
  limited it
  FARPACE_TICKET=... farpace send film.mp4 --limit 50mbit    the ticket is in the environment
  farpace send film.mp4 @ticket --stack kernel               the kernel's TCP under TLS, not the tunnel over \
  UDP
  farpace send film.mp4 far.example --insecure               unencrypted, to a `farpace recv --insecure`, \
  at port 7077
  farpace send film.mp4 10.78.0.2:7077 --insecure --tun fp0 --addr 10.77.0.2/24 --congestion bbr3

A ticket contains the receiver's addresses and its keys. UDP and TCP are tried at once. If UDP works, \
farpace's own TCP carries the data in a WireGuard tunnel; otherwise the kernel's TCP does under TLS 1.3. \
Neither needs privileges. Other users may see a ticket in the list of processes for a moment; @FILE, - \
(standard input) and FARPACE_TICKET avoid that. After an interruption, run the same command again: \
received data is verified and not retransmitted.

Exit codes:
  0    the receiver has written and verified everything
  1    something was not transferred; which and why is on standard error
  2    wrong usage
  130  interrupted";

/// The arguments of `farpace send`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Files and directories, and then the ticket; with --insecure where `farpace recv` listens [default
    /// port: 7077]
    #[arg(required = true, value_name = "FILE... TICKET")]
    words: Vec<PathBuf>,
    #[command(flatten)]
    sending: SendingOptions,
    #[command(flatten)]
    token: Token,
    #[command(flatten)]
    stack: StackArgs,
    #[command(flatten)]
    links: ViaArgs,
    #[command(flatten)]
    clear: ClearArgs,
    /// Give up after this many seconds without a byte in either direction
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = options::seconds)]
    timeout: u64,
    #[command(flatten)]
    excludes: ExcludeArgs,
    /// The far end of `farpace copy`
    #[arg(long, hide = true)]
    stdio_control: bool,
    /// As it was told
    #[arg(long, hide = true)]
    dry_run: bool,
    /// Where it waits
    #[arg(long, hide = true, default_value_t = 0)]
    port: u16,
}

const NO_TICKET: &str = "the last word is not a ticket: `farpace recv` prints one at the other end (or give \
                         it as @FILE, - or in FARPACE_TICKET); HOST:PORT needs --insecure";

/// `farpace send`.
///
/// # Errors
/// Files that are not there, or options that make no sense.
pub fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install();
    if args.stdio_control {
        let found = args.walk(&args.words)?;
        let options = args.stack.options(args.sending.limit)?;
        return control::serve(args.timeout, args.port, &options, &|call, session| {
            let session = Session { dry_run: args.dry_run, ..*session };
            let result = send(call.line, &session, found.clone(), args.sending.limit);
            result.map(|sent| sent.failed == 0)
        });
    }
    hide_words();
    if !args.clear.insecure {
        args.token.refuse()?;
        // One word alone is the file, and the ticket is elsewhere.
        let by_word = match args.words.split_last() {
            Some((last, files @ [_, ..])) => {
                ticket_of(Some(&last.to_string_lossy()))?.map(|own| (own, files))
            }
            Some((only, [])) if only.to_string_lossy().parse::<Ticket>().is_ok() && !only.exists() => {
                bail!("this is a ticket, and there is no file to send: farpace send FILE... TICKET")
            }
            _ => None,
        };
        let (ticket, files) = match by_word {
            Some(found) => found,
            None => (ticket_of(None)?.context(NO_TICKET)?, &args.words[..]),
        };
        return args.by_ticket(&ticket, files);
    }
    if !args.links.via.is_empty() {
        bail!("--via needs a ticket: in the clear there are no tunnels");
    }
    let (to, files) = match args.words.split_last() {
        Some((to, files)) if !files.is_empty() => (to, files),
        _ => bail!("give one file at least, and then HOST or HOST:PORT of a `farpace recv --insecure`"),
    };
    let (host, port) = host_and_port(&to.to_string_lossy())?;
    let found = args.walk(files)?;
    let token = args.token.get()?;
    let sender =
        if token.is_empty() { known_by(&named_at(&host, port), args.sending.quiet) } else { [0; 32] };
    let net = args.clear.up(&args.stack, args.sending.limit, args.sending.quiet)?;
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
    let session = Session { token: &token, timeouts: timeouts(args.timeout), sender, ..Session::default() };
    over(call, found, &args.sending, &session, net.name(), &[])
}

impl Args {
    /// What there is to send.
    fn walk(&self, files: &[PathBuf]) -> Result<Walk> {
        walk_with(files, &self.excludes.patterns()?).map_err(|fault| anyhow!(fault))
    }

    /// Sends to the end that has printed a ticket.
    fn by_ticket(&self, ticket: &Ticket, files: &[PathBuf]) -> Result<ExitCode> {
        let found = self.walk(files)?;
        let options = self.stack.options(self.sending.limit)?;
        let reached = reach(ticket, Service::Transfer, self.stack.ways(), &options, &self.links.via)
            .and_then(|reached| Ok((reached.open(Service::Transfer)?, reached)));
        let (channel, reached) = match reached {
            Ok(reached) => reached,
            Err(_) if interrupt::asked() => return Ok(ExitCode::from(terminal::INTERRUPTED)),
            Err(error) => {
                let error = error.context("the receiver cannot be reached; is `farpace recv` running there?");
                terminal::complain(&error);
                return Ok(ExitCode::from(terminal::FAILED));
            }
        };
        say(self.sending.quiet || self.sending.json, &format!("By {}.", reached.why));
        let session = Session { secured: true, timeouts: timeouts(self.timeout), ..Session::default() };
        over(channel.into(), found, &self.sending, &session, reached.name(), reached.statuses())
    }
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
    links: &[(String, TunnelStatus)],
) -> Result<ExitCode> {
    let TransferStream { line, peer, probe, .. } = call;
    let display = Display::new(how.quiet);
    let (watcher, rates) = (Watcher::new(probe), LinkRates::new(links));
    let tick = |progress: &farpace_transfer::LineProgress| {
        watcher.look(progress);
        let path = || watcher.path().map_or(String::new(), |path| format!(", {}", path.text()));
        display.tick_with(progress, &|| path() + &rates.text(progress.elapsed))
    };
    let session = Session { tick: &tick, acknowledged: &|| watcher.acknowledged(), ..*session };
    let result = send(line, &session, found, how.limit);
    display.clear();
    match result {
        Ok(sent) => {
            watcher.delivered();
            outcome::sent(&sent, how, stack, how.limit, watcher.path())
        }
        Err(error) => Ok(outcome::failure(&error, &peer, how.json)),
    }
}
