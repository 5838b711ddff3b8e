//! A throughput test between two machines that says what limited it, and by which numbers.
//!
//! A stream says `send SECONDS`, and what follows is counted; the answer is a line with bytes and
//! nanoseconds. Or it says `receive SECONDS`, and gets bytes for so long; a second stream says `report`, and
//! gets what the sender has seen, as JSON.

use crate::{LinkRates, PathFacts, ReachedEnd, SecureStream, Service, TransferStream, Watcher};
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
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

/// Longest line of this.
const MAX_LINE: u64 = 4_096;
/// Longest test, in seconds.
pub const MAX_SECONDS: u64 = 3_600;
/// Bytes that are written at once.
const ROOM: usize = 256 << 10;
/// Between two readings.
const LOOK: Duration = Duration::from_millis(100);
/// A test during which nothing arrives for longer is given up.
const MAX_SILENCE: Duration = Duration::from_secs(60);
/// After the far end has ended, what is still on its way has so long without a byte.
const GONE: Duration = Duration::from_secs(2);
/// From this share of one core on a thread is what limits.
const BUSY: f64 = 0.85;

/// What the side that sends has seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PerfState {
    /// Data segments sent.
    pub segments: u64,
    /// Of them, sent again.
    pub retransmitted: u64,
    /// The smallest round trip, in ms.
    pub min_rtt_ms: f64,
    /// The last smoothed round trip, in ms.
    pub rtt_ms: f64,
    /// The last congestion window, in bytes.
    pub cwnd_bytes: u64,
    /// Share of the time in which the receive window was full.
    pub receive_window: f64,
    /// Time in which data was under way and nothing was acknowledged, in seconds.
    #[serde(default)]
    pub silent_s: f64,
    /// The thread that ran or wanted to run most.
    pub busiest_thread: ThreadLoad,
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
            silent_s: path.silent.as_secs_f64(),
            busiest_thread,
        })
    }
}

/// A test.
#[derive(Clone, Debug, Serialize)]
pub struct PerfResult {
    /// Payload that arrived.
    pub bytes: u64,
    /// In this time, in seconds.
    pub elapsed_s: f64,
    /// Both as a rate, in bit/s.
    pub rate_bit_s: f64,
    /// `farpace` or `tls`.
    pub carrier: &'static str,
    /// By which way, and why.
    pub way: String,
    /// From there to here.
    pub reverse: bool,
    /// `sender cpu`, `receiver cpu`, `receive window`, `cap` or `path`.
    pub limit: &'static str,
    /// What limited it, in a sentence.
    pub sentence: String,
    /// What the sending side has seen.
    pub sender: PerfState,
    /// The thread of the receiving side that ran or wanted to run most.
    pub receiver_busiest_thread: ThreadLoad,
    /// What each tunnel carried: its name, bytes, and the round trip of its last probe in ms.
    pub links: Vec<(String, u64, Option<f64>)>,
}

/// Takes the bytes so far and their time, what is known of the path, and the rates of the tunnels.
pub type PerfShow<'a> = dyn Fn(u64, Duration, Option<PathFacts>, &LinkRates) + Sync + 'a;

/// What is measured.
pub struct PerfTest<'a> {
    /// From there to here.
    pub reverse: bool,
    /// For so many seconds, at most [`MAX_SECONDS`].
    pub seconds: u64,
    /// Send at this rate at most.
    pub limit: Option<Rate>,
    /// Called now and then.
    pub show: &'a PerfShow<'a>,
    /// The far end is known to have ended.
    pub is_gone: &'a (dyn Fn() -> bool + Sync),
}

impl PerfTest<'_> {
    /// Measures.
    ///
    /// # Errors
    /// The far end breaks off.
    pub fn run(&self, reached: &ReachedEnd) -> Result<PerfResult> {
        if self.reverse { self.receive(reached) } else { self.send(reached) }
    }

    fn send(&self, reached: &ReachedEnd) -> Result<PerfResult> {
        let SecureStream { line: FramedStream { mut reader, mut writer, close }, finish, probe, .. } =
            reached.open(Service::Perf)?;
        writer.write_all(format!("send {}\n", self.seconds).as_bytes())?;
        let watcher = Watcher::new(probe);
        let busy = BusyThreads::start();
        let time = Duration::from_secs(self.seconds);
        let (answer, seen) = self.watched(reached, &*close, Some(&watcher), |sent| {
            pump(&mut writer, time, sent, &mut || interrupt::asked())?;
            writer.flush()?;
            finish();
            let seen = PerfState::of(watcher.path(), busy.busiest());
            let mut answer = String::new();
            BufReader::new(&mut reader).take(MAX_LINE).read_line(&mut answer)?;
            Ok((answer, seen))
        })?;
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
        writer.write_all(format!("receive {} {limit}\n", self.seconds).as_bytes())?;
        writer.flush()?;
        let busy = BusyThreads::start();
        let (bytes, elapsed) = self.watched(reached, &*close, None, |got| count(&mut reader, got))?;
        let receiver = busy.busiest();
        close();
        let SecureStream { line: FramedStream { mut reader, mut writer, close }, .. } =
            reached.open(Service::Perf)?;
        let answer = self.watched(reached, &*close, None, |_| {
            writer.write_all(b"report\n")?;
            writer.flush()?;
            let mut answer = String::new();
            BufReader::new(&mut reader).take(MAX_LINE).read_line(&mut answer)?;
            Ok(answer)
        })?;
        let seen = serde_json::from_str(&answer).context("the far end broke off")?;
        Ok(self.result(reached, bytes, elapsed.as_secs_f64(), seen, receiver))
    }

    /// Does `work`, which counts bytes, and shows how it goes. A connection that carries nothing, or that
    /// nobody wants any more, is closed: a read or a write that waits for the path sees neither.
    fn watched<T>(
        &self,
        reached: &ReachedEnd,
        close: &(dyn Fn() + Send + Sync),
        watcher: Option<&Watcher>,
        work: impl FnOnce(&AtomicU64) -> Result<T>,
    ) -> Result<T> {
        let (bytes, over) = (AtomicU64::new(0), AtomicBool::new(false));
        let (silent, gone) = (AtomicBool::new(false), AtomicBool::new(false));
        let (begun, rates) = (Stopwatch::start(), LinkRates::new(reached.statuses()));
        let watch = || {
            let (mut mark, mut since) = (0, Stopwatch::start());
            while !over.load(Ordering::Relaxed) {
                std::thread::park_timeout(LOOK);
                watcher.iter().for_each(|watcher| watcher.read_now());
                let bytes = bytes.load(Ordering::Relaxed);
                if bytes > 0 {
                    (self.show)(bytes, begun.elapsed(), watcher.and_then(Watcher::path), &rates);
                }
                let moved = bytes + watcher.map_or(0, Watcher::acknowledged);
                if moved != mark {
                    (mark, since) = (moved, Stopwatch::start());
                }
                let is_silent = since.elapsed() > MAX_SILENCE;
                silent.store(is_silent, Ordering::Relaxed);
                // What it has sent before may still be on its way.
                let is_gone = since.elapsed() > GONE && (self.is_gone)();
                gone.store(is_gone, Ordering::Relaxed);
                if is_silent || is_gone || interrupt::asked() {
                    return close();
                }
            }
        };
        let done = std::thread::scope(|scope| {
            let watch = Builder::new().spawn_scoped(scope, watch).context("cannot start a thread")?;
            let done = work(&bytes);
            over.store(true, Ordering::Relaxed);
            watch.thread().unpark();
            done
        });
        if interrupt::asked() {
            bail!("interrupted");
        }
        if gone.load(Ordering::Relaxed) {
            bail!("the far end is gone");
        }
        match silent.load(Ordering::Relaxed) {
            true => bail!("nothing came from the far end for {} s: the path is cut", MAX_SILENCE.as_secs()),
            false => done,
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
        let silent = match sender.silent_s {
            0.0 => String::new(),
            s => format!(", nothing was acknowledged for {} s", number(s)),
        };
        let sentence = format!(
            "Limited by {why}; round trip {} ms, {:.3} % of segments sent again{silent}.",
            number(sender.min_rtt_ms),
            loss * 100.0
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

/// Writes for so long, and counts in `sent`. `stop` is asked again and again.
fn pump(
    writer: &mut dyn Write,
    time: Duration,
    sent: &AtomicU64,
    stop: &mut dyn FnMut() -> bool,
) -> Result<()> {
    let (begun, data) = (Stopwatch::start(), vec![0x5a; ROOM]);
    while begun.elapsed() < time && !stop() {
        writer.write_all(&data)?;
        sent.fetch_add(data.len() as u64, Ordering::Relaxed);
    }
    Ok(())
}

/// Counts in `got` what comes until it ends: bytes, and the time from the first to the last.
fn count(reader: &mut dyn Read, got: &AtomicU64) -> Result<(u64, Duration)> {
    let mut room = vec![0; ROOM];
    let mut begun: Option<Stopwatch> = None;
    let mut last = Duration::ZERO;
    loop {
        match reader.read(&mut room) {
            Ok(0) => return Ok((got.load(Ordering::Relaxed), last)),
            Ok(n) => {
                last = begun.get_or_insert_with(Stopwatch::start).elapsed();
                got.fetch_add(n as u64, Ordering::Relaxed);
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
            let (bytes, time) = count(&mut reader, &AtomicU64::new(0))?;
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
            let mut look = Stopwatch::start();
            pump(&mut writer, Duration::from_secs(seconds), &AtomicU64::new(0), &mut || {
                if look.elapsed() >= LOOK {
                    watcher.read_now();
                    look = Stopwatch::start();
                }
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
pub struct ThreadLoad {
    /// It ran.
    pub ran: f64,
    /// It could have run, but others had the processor.
    pub waited: f64,
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
