//! `farpace perf`: a throughput test between two machines that says what limited it, and by which numbers.
//!
//! A stream says `send SECONDS`, and what follows is counted; the answer is a line with bytes and
//! nanoseconds. Or it says `receive SECONDS`, and gets bytes for so long; a second stream says `report`, and
//! gets what the sender has seen, as JSON.

use crate::carrier::{ReachedEnd, SecureStream, Service, SshArgs, ViaArgs, hide_words, reach, ticket_of};
use crate::terminal;
use crate::transfer::{LinkRates, PathFacts, StackArgs, TransferStream, Watcher, rate, speed};
use anyhow::{Context, Result, bail, ensure};
use farpace_process::interrupt;
use farpace_process::stopwatch::Stopwatch;
use farpace_report::number;
use farpace_transfer::FramedStream;
use farpace_units::Rate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const AFTER_HELP: &str = "\
Examples:
  farpace perf me@server                        from here to there for 10 s, through ssh's login
  farpace perf me@server --reverse              from there to here
  farpace perf me@server --via eth0 --via wwan0 over both at once
  farpace perf me@server --stack kernel         the kernel's TCP under TLS, for comparison
  farpace perf me@server --json

At the end it says what limited the test: a processor, the receiver's window, or the path; and the numbers \
that this comes from.

Exit codes:
  0    measured
  1    the far end cannot be reached
  2    wrong usage
  130  interrupted";

/// Longest line of this.
const MAX_LINE: u64 = 4_096;
/// Longest test.
const MAX_SECONDS: u64 = 3_600;
/// Bytes that are written at once.
const ROOM: usize = 256 << 10;
/// Between two readings.
const LOOK: Duration = Duration::from_millis(100);
/// From this share of one core on a thread is what limits.
const BUSY: f64 = 0.85;

/// The arguments of `farpace perf`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The other machine, as ssh names it
    #[arg(value_name = "[USER@]HOST", required_unless_present = "stdio_control")]
    host: Option<String>,
    /// From there to here
    #[arg(long)]
    reverse: bool,
    /// For so many seconds
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

/// What the side that sends has seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct PerfState {
    /// Data segments sent, and of them sent again.
    segments: u64,
    retransmitted: u64,
    min_rtt_ms: f64,
    rtt_ms: f64,
    cwnd_bytes: u64,
    /// Share of the time in which the receive window was full.
    receive_window: f64,
    busiest_thread: ThreadLoad,
}

impl PerfState {
    fn of(path: Option<PathFacts>, busiest_thread: ThreadLoad) -> PerfState {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        path.map_or(PerfState { busiest_thread, ..PerfState::default() }, |path| PerfState {
            segments: path.segments,
            retransmitted: path.retransmitted,
            min_rtt_ms: ms(path.min_rtt),
            rtt_ms: ms(path.rtt),
            cwnd_bytes: path.cwnd.into_iter().map(u64::from).product(),
            receive_window: path.receive_window.min(1.0),
            busiest_thread,
        })
    }
}

/// A test.
#[derive(Clone, Debug, Serialize)]
struct PerfResult {
    bytes: u64,
    elapsed_s: f64,
    rate_bit_s: f64,
    /// `farpace` or `tls`.
    carrier: &'static str,
    /// By which way, and why.
    way: String,
    reverse: bool,
    /// `sender cpu`, `receiver cpu`, `receive window`, `cap` or `path`.
    limit: &'static str,
    sentence: String,
    sender: PerfState,
    receiver_busiest_thread: ThreadLoad,
    /// What each tunnel carried: its name, bytes, and the round trip of its last probe in ms.
    links: Vec<(String, u64, Option<f64>)>,
}

impl Args {
    /// The port and the stack of a far end that ssh has started; none: this is the near end.
    pub fn far_end(&self) -> Option<(u16, &StackArgs)> {
        self.host.is_none().then(|| (self.ssh.port.unwrap_or(0), &self.stack))
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
            let mut end = args.ssh.start(host, &format!("perf --stdio-control{port}"))?;
            if end.greeting.is_none() {
                let code = end.child.wait().ok().and_then(|status| status.code());
                terminal::note(&format!("error: {}", args.ssh.why_not(host, code)));
                return Ok(ExitCode::from(terminal::FAILED));
            }
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
    let result = if args.reverse { args.receive(&reached) } else { args.send(&reached) };
    if let Some(end) = end {
        end.end();
    }
    if interrupt::asked() {
        return Ok(ExitCode::from(terminal::INTERRUPTED));
    }
    let result = result?;
    if args.json {
        terminal::print_json(&serde_json::to_value(&result)?)?;
    } else {
        terminal::print(&text(&result))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(result: &PerfResult) -> String {
    let PerfState { segments, retransmitted, min_rtt_ms, rtt_ms, cwnd_bytes, receive_window, busiest_thread } =
        result.sender;
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let mut text = format!(
        "{} in {:.2} s ({})\n{}\n",
        crate::transfer::size(result.bytes),
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
        text += &format!("  {name}  {}{rtt}\n", crate::transfer::size(*bytes));
    }
    text
}

impl Args {
    fn send(&self, reached: &ReachedEnd) -> Result<PerfResult> {
        let SecureStream { line: FramedStream { mut reader, mut writer, close }, finish, probe, .. } =
            reached.open(Service::Perf)?;
        writer.write_all(format!("send {}\n", self.time).as_bytes())?;
        let watcher = Watcher::new(probe);
        let busy = BusyThreads::start();
        let rates = LinkRates::new(reached.statuses());
        let time = Duration::from_secs(self.time);
        pump(&mut writer, time, &mut |sent, elapsed| {
            watcher.read_now();
            self.show(sent, elapsed, watcher.path(), &rates);
            interrupt::asked()
        })?;
        writer.flush()?;
        finish();
        let seen = PerfState::of(watcher.path(), busy.busiest());
        let mut answer = String::new();
        BufReader::new(&mut reader).take(MAX_LINE).read_line(&mut answer)?;
        close();
        let mut words = answer.split_whitespace();
        let mut next =
            || words.next().and_then(|word| word.parse::<f64>().ok()).context("the far end broke off");
        let (bytes, nanos) = (next()? as u64, next()?);
        let receiver = ThreadLoad { ran: next()?, waited: next()? };
        Ok(self.result(reached, bytes, nanos / 1e9, seen, receiver))
    }

    fn receive(&self, reached: &ReachedEnd) -> Result<PerfResult> {
        let SecureStream { line: FramedStream { mut reader, mut writer, close }, .. } =
            reached.open(Service::Perf)?;
        let limit = self.limit.map_or(0, Rate::bits_per_sec);
        writer.write_all(format!("receive {} {limit}\n", self.time).as_bytes())?;
        writer.flush()?;
        let busy = BusyThreads::start();
        let rates = LinkRates::new(reached.statuses());
        let (bytes, elapsed) = count(&mut reader, &mut |got, elapsed| {
            self.show(got, elapsed, None, &rates);
            interrupt::asked()
        })?;
        let receiver = busy.busiest();
        close();
        let SecureStream { line: FramedStream { mut reader, mut writer, .. }, .. } =
            reached.open(Service::Perf)?;
        writer.write_all(b"report\n")?;
        writer.flush()?;
        let mut answer = String::new();
        BufReader::new(&mut reader).take(MAX_LINE).read_line(&mut answer)?;
        let seen = serde_json::from_str(&answer).context("the far end broke off")?;
        Ok(self.result(reached, bytes, elapsed.as_secs_f64(), seen, receiver))
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

    fn result(
        &self,
        reached: &ReachedEnd,
        bytes: u64,
        elapsed_s: f64,
        sender: PerfState,
        receiver: ThreadLoad,
    ) -> PerfResult {
        let rate_bit_s = bytes as f64 * 8.0 / elapsed_s.max(1e-9);
        let cap = self.limit.map(|cap| cap.bits_per_sec() as f64);
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let loss = sender.retransmitted as f64 / sender.segments.max(1) as f64;
        let (limit, why) = match () {
            () if cap.is_some_and(|cap| rate_bit_s > cap * 0.9) => {
                ("cap", "the cap that was given".to_owned())
            }
            () if sender.busiest_thread.all() > BUSY && sender.busiest_thread.all() >= receiver.all() => (
                "sender cpu",
                format!("the sender's processor: its busiest thread {}", sender.busiest_thread),
            ),
            () if receiver.all() > BUSY => {
                ("receiver cpu", format!("the receiver's processor: its busiest thread {receiver}"))
            }
            () if sender.receive_window > 0.5 => (
                "receive window",
                format!("the receive window: it was full for {} of the time", percent(sender.receive_window)),
            ),
            () => ("path", "the path: processors and windows had room".to_owned()),
        };
        let sentence = format!(
            "Limited by {why}; round trip {} ms, {} of segments sent again.",
            number(sender.min_rtt_ms),
            format_args!("{:.3} %", loss * 100.0)
        );
        let links = reached.statuses().iter().map(|(name, status)| {
            let peers = status.peers();
            let bytes = peers.iter().map(|peer| if self.reverse { peer.received } else { peer.sent }).sum();
            let rtt = peers.first().and_then(|peer| peer.rtt).map(|rtt| rtt.as_secs_f64() * 1e3);
            (name.clone(), bytes, rtt)
        });
        PerfResult {
            bytes,
            elapsed_s,
            rate_bit_s,
            carrier: reached.name(),
            way: reached.why.clone(),
            reverse: self.reverse,
            limit,
            sentence,
            sender,
            receiver_busiest_thread: receiver,
            links: links.collect(),
        }
    }
}

/// Writes for so long. `look` is called again and again; true: it is to stop.
fn pump(writer: &mut dyn Write, time: Duration, look: &mut dyn FnMut(u64, Duration) -> bool) -> Result<u64> {
    let (begun, data) = (Stopwatch::start(), vec![0x5a; ROOM]);
    let (mut sent, mut next) = (0, LOOK);
    while begun.elapsed() < time {
        writer.write_all(&data)?;
        sent += data.len() as u64;
        if begun.elapsed() >= next {
            next = begun.elapsed() + LOOK;
            if look(sent, begun.elapsed()) {
                break;
            }
        }
    }
    Ok(sent)
}

/// Counts what comes until it ends: bytes, and the time from the first to the last.
fn count(reader: &mut dyn Read, look: &mut dyn FnMut(u64, Duration) -> bool) -> Result<(u64, Duration)> {
    let mut room = vec![0; ROOM];
    let mut begun: Option<Stopwatch> = None;
    let (mut bytes, mut last, mut next) = (0_u64, Duration::ZERO, LOOK);
    loop {
        match reader.read(&mut room) {
            Ok(0) => return Ok((bytes, last)),
            Ok(n) => {
                let begun = begun.get_or_insert_with(Stopwatch::start);
                bytes += n as u64;
                last = begun.elapsed();
                if last >= next {
                    next = last + LOOK;
                    if look(bytes, last) {
                        return Ok((bytes, last));
                    }
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// What the last test that was sent from here has seen.
static LAST: Mutex<Option<PerfState>> = Mutex::new(None);

/// The far end of one stream.
///
/// # Errors
/// The near end says nothing that makes sense, or breaks off.
pub fn serve(stream: TransferStream) -> Result<()> {
    let TransferStream { line: FramedStream { reader, mut writer, close }, probe, finish, .. } = stream;
    let mut reader = BufReader::with_capacity(ROOM, reader);
    let mut order = String::new();
    reader.by_ref().take(MAX_LINE).read_line(&mut order)?;
    let words: Vec<&str> = order.split_whitespace().collect();
    let seconds =
        words.get(1).and_then(|word| word.parse().ok()).filter(|seconds| (1..=MAX_SECONDS).contains(seconds));
    match (words.first().copied(), seconds) {
        (Some("send"), Some(_)) => {
            let busy = BusyThreads::start();
            let (bytes, time) = count(&mut reader, &mut |_, _| false)?;
            let ThreadLoad { ran, waited } = busy.busiest();
            writer.write_all(format!("{bytes} {} {ran} {waited}\n", time.as_nanos()).as_bytes())?;
            writer.flush()?;
            finish();
        }
        (Some("receive"), Some(seconds)) => {
            let (watcher, busy) = (Watcher::new(probe), BusyThreads::start());
            let cap = words.get(2).and_then(|word| word.parse().ok()).filter(|cap| *cap > 0);
            if let Some(cap) = cap {
                watcher.cap(Rate::from_bits_per_sec(cap));
            }
            pump(&mut writer, Duration::from_secs(seconds), &mut |_, _| {
                watcher.read_now();
                false
            })?;
            writer.flush()?;
            finish();
            let seen = PerfState::of(watcher.path(), busy.busiest());
            *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen);
            // Until the near end has all of it.
            let _ = reader.read(&mut [0]);
        }
        (Some("report"), None) => {
            let seen = LAST.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default();
            writer.write_all(format!("{}\n", serde_json::to_string(&seen)?).as_bytes())?;
            writer.flush()?;
            finish();
            let _ = reader.read(&mut [0]);
        }
        _ => bail!("that is not understood"),
    }
    close();
    ensure!(order.ends_with('\n'), "the near end broke off");
    Ok(())
}

/// How one thread spends its time, as shares of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct ThreadLoad {
    /// It ran.
    ran: f64,
    /// It could have run, but others had the processor.
    waited: f64,
}

impl ThreadLoad {
    fn all(self) -> f64 {
        self.ran + self.waited
    }
}

impl fmt::Display for ThreadLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ran for {:.0} % of the time", self.ran * 100.0)?;
        if self.waited >= 0.01 {
            write!(f, " and waited for a core for {:.0} %", self.waited * 100.0)?;
        }
        Ok(())
    }
}

/// How busy the threads of this process are.
struct BusyThreads {
    begun: Stopwatch,
    before: BTreeMap<String, (u64, u64)>,
}

impl BusyThreads {
    fn start() -> Self {
        BusyThreads { begun: Stopwatch::start(), before: thread_times() }
    }
    /// The load of the thread that ran or wanted to run most since the start.
    fn busiest(&self) -> ThreadLoad {
        let elapsed = self.begun.elapsed().as_nanos().max(1) as f64;
        let loads = thread_times().into_iter().map(|(thread, now)| {
            let before = self.before.get(&thread).copied().unwrap_or_default();
            let share = |now: u64, before: u64| (now.saturating_sub(before) as f64 / elapsed).min(1.0);
            let ran = share(now.0, before.0);
            ThreadLoad { ran, waited: share(now.1, before.1).min(1.0 - ran) }
        });
        loads.max_by(|a, b| a.all().total_cmp(&b.all())).unwrap_or_default()
    }
}

/// The threads of this process: how long they ran, and how long they waited for a core, in ns (`schedstat`).
fn thread_times() -> BTreeMap<String, (u64, u64)> {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    threads
        .filter_map(|thread| {
            let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
            let mut times = text.split_whitespace().map(|word| word.parse().ok());
            let times = (times.next()??, times.next()??);
            Some((thread.file_name().to_string_lossy().into_owned(), times))
        })
        .collect()
}
