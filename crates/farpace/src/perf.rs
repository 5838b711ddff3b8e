//! `farpace perf`: a throughput test between two machines that says what limited it, and by which numbers.

use crate::carrier::{SshArgs, StackArgs, ViaArgs};
use crate::terminal;
use crate::transfer::rate;
use anyhow::{Context, Result};
use farpace_process::interrupt;
use farpace_report::number;
use farpace_tunnel::perf::{MAX_SECONDS, PerfResult, PerfState, PerfTest};
use farpace_tunnel::{LinkRates, PathFacts, Service, SshEnd, hide_words, reach, size, speed, ticket_of};
use farpace_units::Rate;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const AFTER_HELP: &str = "\
Examples:
  farpace perf me@server                        to the far end for 10 s; ssh starts farpace there
  farpace perf me@server --reverse              from the far end
  farpace perf me@server --via eth0 --via wwan0 over both at once
  farpace perf me@server --stack kernel         the kernel's TCP under TLS, for comparison
  farpace perf me@server --json

At the end it reports what limited the test (a processor, the receiver's window, or the path), with the \
measurements.

Exit codes:
  0    measured
  1    the far end cannot be reached, or is gone
  2    wrong usage
  130  interrupted";

/// The arguments of `farpace perf`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The other host, as ssh names it
    #[arg(value_name = "[USER@]HOST", required_unless_present = "stdio_control")]
    host: Option<String>,
    /// Send from the far end to the local host
    #[arg(long)]
    reverse: bool,
    /// Duration in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=MAX_SECONDS))]
    time: u64,
    /// Send at this rate at most
    #[arg(long, value_name = "RATE", value_parser = rate)]
    limit: Option<Rate>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
    /// The far end of this and of `farpace forward`
    #[arg(long, hide = true)]
    stdio_control: bool,
    #[command(flatten)]
    ssh: SshArgs,
    #[command(flatten)]
    stack: StackArgs,
    #[command(flatten)]
    links: ViaArgs,
}

impl Args {
    /// The port and the stack of a far end that ssh has started; none: this is the near end.
    pub fn far_end(&self) -> Option<(u16, &StackArgs)> {
        self.host.is_none().then(|| (self.ssh.port.unwrap_or(0), &self.stack))
    }

    fn show(&self, bytes: u64, elapsed: Duration, path: Option<PathFacts>, rates: &LinkRates) {
        if !self.quiet && !self.json {
            let links = rates.text(elapsed);
            let path = path.map_or(String::new(), |path| format!(", {}", path.text()));
            terminal::show_over(&format!(
                "{:.0} s, {}{path}{links}",
                elapsed.as_secs_f64(),
                speed(bytes, elapsed)
            ));
        }
    }
}

/// `farpace perf`.
///
/// # Errors
/// ssh cannot be started, or the far end breaks off.
pub fn run(args: &Args) -> Result<ExitCode> {
    let host = args.host.as_ref().context("no host to measure to")?;
    interrupt::install();
    hide_words();
    let options = args.stack.options(args.limit.filter(|_| !args.reverse))?;
    let (reached, end) = match ticket_of(Some(host))? {
        // A far end that was started by hand.
        Some(ticket) => (reach(&ticket, Service::Perf, args.stack.ways(), &options, &args.links.via), None),
        None => {
            let port = args.ssh.port.map_or(String::new(), |port| format!(" --port {port}"));
            let mut end = match args.ssh.program().start(host, &format!("perf --stdio-control{port}"))? {
                Ok(end) => end,
                Err(why) => return Ok(args.ssh.without(host, why)),
            };
            (end.reach(Service::Perf, args.stack.ways(), &options, &args.links.via), Some(end))
        }
    };
    let reached = match reached {
        Ok(reached) => reached,
        Err(_) if interrupt::asked() => return Ok(ExitCode::from(terminal::INTERRUPTED)),
        Err(error) => {
            terminal::complain(&error);
            return Ok(ExitCode::from(terminal::FAILED));
        }
    };
    if !args.quiet && !args.json {
        terminal::note(&format!("By {}.", reached.why));
    }
    let show = |bytes, elapsed, path, rates: &LinkRates| args.show(bytes, elapsed, path, rates);
    let end = Mutex::new(end);
    let is_gone = || SshEnd::is_gone(&end);
    let (reverse, seconds, limit) = (args.reverse, args.time, args.limit);
    let test = PerfTest { reverse, seconds, limit, show: &show, is_gone: &is_gone };
    let result = test.run(&reached);
    if let Some(end) = end.into_inner().unwrap_or_else(PoisonError::into_inner) {
        end.end();
    }
    if interrupt::asked() {
        return Ok(ExitCode::from(terminal::INTERRUPTED));
    }
    let result = match result {
        Ok(result) => result,
        Err(error) => {
            terminal::complain(&error);
            return Ok(ExitCode::from(terminal::FAILED));
        }
    };
    if args.json {
        terminal::print_json(&serde_json::to_value(&result)?)?;
    } else {
        terminal::print(&text(&result))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(result: &PerfResult) -> String {
    let PerfState {
        segments,
        retransmitted,
        min_rtt_ms,
        rtt_ms,
        cwnd_bytes,
        receive_window,
        busiest_thread,
        ..
    } = result.sender;
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let mut text = format!(
        "{} in {:.2} s ({})\n{}\n",
        size(result.bytes),
        result.elapsed_s,
        speed(result.bytes, Duration::from_secs_f64(result.elapsed_s)),
        result.sentence
    );
    text += &format!(
        "  path       round trip {} ms at least, {} ms at last, window {cwnd_bytes} B, receive window full \
         {}, {retransmitted} of {segments} segments sent again\n",
        number(min_rtt_ms),
        number(rtt_ms),
        percent(receive_window)
    );
    text +=
        &format!("  busiest thread  sender {busiest_thread}; receiver {}\n", result.receiver_busiest_thread);
    for (name, bytes, rtt) in &result.links {
        let rtt = rtt.map_or(String::new(), |rtt| format!(", round trip {} ms", number(rtt)));
        text += &format!("  {name}  {}{rtt}\n", size(*bytes));
    }
    text
}
