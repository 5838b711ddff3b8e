//! Which runs are made.

use anyhow::{Result, anyhow, bail, ensure};
use clap::Parser;
use farpace_tcp::config::Profile;
use farpace_units::{Amount, ByteCount, Rate, Span};
use std::fmt;
use std::path::PathBuf;

/// Payload of a full segment with timestamps.
pub const SEGMENT: u64 = 1_448;
/// What such a segment takes on an Ethernet line.
const ON_THE_LINE: u64 = 1_538;
/// The largest window of RFC 7323: 65,535 with a shift of 14.
pub const MAX_WINDOW: u64 = 65_535 << 14;
/// A queue of one bandwidth-delay product has so many packets at least.
const MIN_QUEUE: u64 = 10;

const AFTER_HELP: &str = "\
The path: a host, a router, a line with a queue, a host. The line to the router has no rate, so
that bursts reach the queue as they leave the host. RTT is the delay there and back.

The ceiling is what the line carries of payload in the time of the run, the handshake included. A
window of 1 GiB (RFC 7323) bounds it: one window a round trip without losses; with losses, one
window in two round trips, because the window stands still until a hole is filled. Such cells have
a w.

Columns of --table:
  reached  payload that arrived, in percent of the ceiling
  start    what was missed until nine tenths of the ceiling came in one round trip
  memory   most bytes held by the sending and the receiving connection together, in bandwidth-delay
           products of the payload that the line carries; and the part of the sender
  lost     segments dropped by the full queue, in percent of those sent

Exit codes: 0 done; 1 --check found a cell that misses what it must reach; 2 an error.

Examples:
  far --profile farpace,modern
  far --profile modern --rates 1G --rtts 150,300 --losses 0 --table
  far --profile modern --set hystart=false --set pacing=false --rates 1G
  far --profile farpace --rates 10M,100M --rtts 1,20 --size \"100 kB\" --queue \"32 kB\" --seeds 5
  far --profile modern --flows 2 --rates 100M --rtts 20,100 --table
  far --profile modern,farpace --against linux --rates 100M --rtts 20 --table
  far --profile farpace,modern --json far.json --svg far.svg --check
  far --from slow.json,fast.json --svg far.svg";

/// Transfers over far paths: percent of the ceiling, what the start costs, and memory.
#[derive(Clone, Debug, Parser)]
#[command(name = "far", after_help = AFTER_HELP)]
pub struct Args {
    /// Profiles, separated by commas; a name may be followed by its own settings, as in modern+pacing=false
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "farpace,modern")]
    pub profile: Vec<String>,
    /// Rates of the line, as in 1M or 10G
    #[arg(long, value_name = "RATES", value_delimiter = ',', default_value = "1M,10M,100M,1G,10G")]
    pub rates: Vec<String>,
    /// Round trips of the empty path in milliseconds
    #[arg(long, value_name = "MS", value_delimiter = ',', default_value = "1,10,40,150,300,600,900")]
    pub rtts: Vec<u64>,
    /// Probabilities that a data packet is lost on the line
    #[arg(long, value_name = "P", value_delimiter = ',', default_value = "0,1e-4")]
    pub losses: Vec<f64>,
    /// Queue of the line: packets, bytes, or bdp for one bandwidth-delay product
    #[arg(long, value_name = "QUEUE", default_value = "1000 packets")]
    pub queue: String,
    /// Virtual time of each run; with --size, the longest
    #[arg(long, value_name = "TIME", default_value = "40 s")]
    pub time: Span,
    /// Transfers of this size: the time until the last byte is printed in place of percent
    #[arg(long, value_name = "SIZE")]
    pub size: Option<ByteCount>,
    /// Connections at the same time, the second half a second after the first, and so on
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=16))]
    pub flows: u64,
    /// A second connection of this profile beside the first, half a second later; separated by commas.
    /// --table shows the shares
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "flows")]
    pub against: Vec<String>,
    /// Runs of each cell with different random numbers; the median is printed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=101))]
    pub seeds: u64,
    /// A setting of the sender, as in initial_window="32 packets"; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// One row for each cell instead of a grid
    #[arg(long)]
    pub table: bool,
    /// Judge the cells of the profiles farpace and modern by what they must reach, and by the memory of both
    /// ends
    #[arg(long)]
    pub check: bool,
    /// Show what earlier runs have written by --json, in place of running; separated by commas
    #[arg(long, value_name = "FILES", value_delimiter = ',')]
    pub from: Vec<PathBuf>,
    /// A file for the results
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// A file for a picture of the grid
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// Who sends: the word on the command line, and the settings that it means.
#[derive(Clone, Debug, PartialEq)]
pub struct Sender {
    /// As it was asked for.
    pub name: String,
    /// Keys of a flow's `sender`.
    pub settings: Vec<(String, String)>,
}

/// The path and the sender of some runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Who sends.
    pub sender: Sender,
    /// Who sends beside it.
    pub rival: Option<Sender>,
    /// Of the line.
    pub rate: Rate,
    /// Of the empty path.
    pub rtt: Span,
    /// Probability per packet.
    pub loss: f64,
    /// Of the line, as a scenario has it.
    pub queue: String,
}

impl Cell {
    /// Who sends, as tables show it.
    pub fn name(&self) -> String {
        match &self.rival {
            Some(rival) => format!("{} beside {}", self.sender.name, rival.name),
            None => self.sender.name.clone(),
        }
    }

    /// Payload that the line carries.
    pub fn payload_rate(&self) -> Rate {
        Rate::from_bits_per_sec(
            (u128::from(self.rate.bits_per_sec()) * u128::from(SEGMENT) / u128::from(ON_THE_LINE)) as u64,
        )
    }

    /// What the path holds of payload.
    pub fn bdp(&self) -> ByteCount {
        self.payload_rate().bytes_in(self.rtt)
    }

    /// What its queue holds of payload.
    pub fn queue_bytes(&self) -> ByteCount {
        match self.queue.parse() {
            Ok(Amount::Packets(packets)) => ByteCount::new(u64::from(packets.get()) * SEGMENT),
            Ok(Amount::Bytes(bytes)) => ByteCount::new(bytes.get() * SEGMENT / ON_THE_LINE),
            Err(_) => ByteCount::ZERO,
        }
    }

    /// Round trips for which a window stands still.
    fn still(&self) -> u64 {
        let lost = self.loss * self.bdp().get() as f64 / SEGMENT as f64;
        if lost >= 1.0 { 2 } else { 1 }
    }

    /// Most payload that can arrive in `time`, and whether it is the window that bounds it.
    pub fn ceiling(&self, time: Span) -> (ByteCount, bool) {
        let line = self.payload_rate().bytes_in(time);
        let turn = self.rtt * self.still();
        let window = Rate::of(ByteCount::new(MAX_WINDOW), turn).bytes_in(time);
        if turn.is_zero() || line <= window { (line, false) } else { (window, true) }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}, {}, loss {}", self.name(), self.rate, self.rtt, self.loss)
    }
}

/// All cells: by sender, then loss, rate and round trip.
///
/// # Errors
/// A profile, a rate or a setting that cannot be read.
pub fn cells(args: &Args) -> Result<Vec<Cell>> {
    ensure!(args.time >= Span::from_secs(1), "--time must be at least 1 s");
    ensure!(args.losses.iter().all(|p| (0.0..1.0).contains(p)), "--losses must be from 0 to below 1");
    ensure!(args.rtts.iter().all(|ms| (1..=10_000).contains(ms)), "--rtts must be from 1 to 10000");
    let rates: Vec<Rate> = args.rates.iter().map(|text| rate(text)).collect::<Result<_>>()?;
    let mut all = Vec::new();
    for (sender, rival) in senders(args)? {
        for &loss in &args.losses {
            for &rate in &rates {
                for &ms in &args.rtts {
                    let rtt = Span::from_millis(ms);
                    let queue = queue(&args.queue, rate, rtt)?;
                    let (sender, rival) = (sender.clone(), rival.clone());
                    all.push(Cell { sender, rival, rate, rtt, loss, queue });
                }
            }
        }
    }
    Ok(all)
}

/// Each profile, and whom it has beside it.
fn senders(args: &Args) -> Result<Vec<(Sender, Option<Sender>)>> {
    let mut all = Vec::new();
    for word in &args.profile {
        let sender = sender(word, &args.set)?;
        if args.against.is_empty() {
            all.push((sender.clone(), None));
        }
        for rival in &args.against {
            all.push((sender.clone(), Some(self::sender(rival, &[])?)));
        }
    }
    Ok(all)
}

fn sender(word: &str, set: &[String]) -> Result<Sender> {
    let mut parts = word.split('+');
    let name = parts.next().unwrap_or_default();
    if !Profile::ALL.iter().any(|p| p.name() == name) {
        let names: Vec<&str> = Profile::ALL.iter().map(|p| p.name()).collect();
        bail!("there is no profile `{name}`: one of {}", names.join(", "));
    }
    let mut settings = vec![("profile".to_owned(), name.to_owned())];
    for text in parts.chain(set.iter().map(String::as_str)) {
        let pair = text.split_once('=').ok_or_else(|| anyhow!("`{text}` is not KEY=VALUE"))?;
        settings.push((pair.0.to_owned(), pair.1.trim_matches('"').to_owned()));
    }
    Ok(Sender { name: word.to_owned(), settings })
}

/// `10G`, or as scenarios write it.
fn rate(text: &str) -> Result<Rate> {
    let unit = match text.chars().last() {
        Some('k') => "kbit/s",
        Some('M') => "Mbit/s",
        Some('G') => "Gbit/s",
        _ => return text.parse().map_err(|e| anyhow!("{e}")),
    };
    let number = &text[..text.len() - 1];
    format!("{number} {unit}").parse().map_err(|_| anyhow!("`{text}` is not a rate: expected one like 10G"))
}

fn queue(text: &str, rate: Rate, rtt: Span) -> Result<String> {
    if text == "bdp" {
        let packets = (rate.bytes_in(rtt).get() / ON_THE_LINE).max(MIN_QUEUE);
        return Ok(format!("{packets} packets"));
    }
    text.parse::<Amount>().map_err(|e| anyhow!("--queue: {e}; or bdp"))?;
    Ok(text.to_owned())
}
