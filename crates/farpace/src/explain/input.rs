//! Opening captures, traces and logs, and choosing what is explained.

use super::{Args, Transfer, figures};
use anyhow::{Context, Result, bail};
use farpace_explain::diagnose;
use farpace_explain::flow::{Flow, Side};
use farpace_explain::frame::CapturedSegment;
use farpace_explain::input::{self, Capture, Compression, ss};
use farpace_explain::pair::{self, PacketsSeen, Pair};
use std::fs::File;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// A direction with less payload than this is told only if it is the connection's larger one.
const MIN_OTHER_BYTES: u64 = 10_000;
/// Longest log of ss.
const MAX_LOG: u64 = 256 << 20;

/// What a file was.
pub(crate) enum Source {
    /// A capture.
    Capture { capture: Capture, compression: Compression },
    /// farpace's own trace.
    Trace(Capture),
    /// A log of ss.
    Log(Vec<ss::Logged>),
}

/// A file and its verdicts.
pub(crate) struct Examined {
    pub file: PathBuf,
    pub source: Source,
    /// Those that were asked for, with most data first.
    pub transfers: Vec<Transfer>,
    /// Connections that match but are not among the first.
    pub others: usize,
}

impl Examined {
    /// The connections, if it is no log.
    pub fn capture(&self) -> Option<&Capture> {
        match &self.source {
            Source::Capture { capture, .. } | Source::Trace(capture) => Some(capture),
            Source::Log(_) => None,
        }
    }

    /// The connection of a transfer.
    pub fn flow(&self, transfer: &Transfer) -> Option<&Flow> {
        self.capture()?.flows.get(transfer.flow?)
    }
}

/// Reads a file whole.
pub(crate) fn examine(file: &Path, args: &Args) -> Result<Examined> {
    Ok(judge(file.to_owned(), read(file)?, args))
}

fn read(file: &Path) -> Result<Source> {
    let reading = || format!("cannot read `{}`", file.display());
    if file.as_os_str() == "-" {
        let (source, compression) = input::open(io::stdin().lock()).with_context(reading)?;
        let capture = input::read(source).with_context(reading)?;
        return Ok(Source::Capture { capture, compression });
    }
    let open = || File::open(file).with_context(reading);
    let mut start = [0u8; 4_096];
    let read = open()?.read(&mut start).with_context(reading)?;
    let start = &start[..read];
    if start.starts_with(b"PAR1") {
        return Ok(Source::Trace(input::read_records(open()?).with_context(reading)?));
    }
    if std::str::from_utf8(start).is_ok_and(ss::is_log) {
        if open()?.metadata().with_context(reading)?.len() > MAX_LOG {
            bail!("`{}` is a log of ss of more than {} MiB: split it", file.display(), MAX_LOG >> 20);
        }
        let text = std::fs::read_to_string(file).with_context(reading)?;
        return Ok(Source::Log(ss::read(&text)));
    }
    let (source, compression) = input::open(open()?).with_context(reading)?;
    let capture = input::read(source).with_context(reading)?;
    Ok(Source::Capture { capture, compression })
}

/// Gives verdicts on what was asked for.
pub(crate) fn judge(file: PathBuf, source: Source, args: &Args) -> Examined {
    let (transfers, others) = match &source {
        Source::Capture { capture, .. } | Source::Trace(capture) => choose(&capture.flows, args),
        Source::Log(logged) => logged_ones(logged, args),
    };
    Examined { file, source, transfers, others }
}

/// The connections that are explained.
fn choose(flows: &[Flow], args: &Args) -> (Vec<Transfer>, usize) {
    let wanted = |flow: &Flow| args.flows.is_empty() || args.flows.iter().any(|f| f.matches(flow.ends));
    let mut chosen: Vec<usize> = (0..flows.len()).filter(|at| wanted(&flows[*at])).collect();
    let bytes = |at: &usize| flows[*at].halves.iter().map(|h| h.counts.bytes).sum::<u64>();
    chosen.sort_by_key(|at| (std::cmp::Reverse(bytes(at)), *at));
    let others = chosen.len().saturating_sub(args.top);
    chosen.truncate(args.top);
    let mut transfers = Vec::new();
    for at in chosen {
        let flow = &flows[at];
        let first = flow.sender();
        transfers.push(Transfer::of(flow, at, first));
        let other: Side = first.other();
        if flow.half(other).counts.bytes >= MIN_OTHER_BYTES {
            transfers.push(Transfer::of(flow, at, other));
        }
    }
    (transfers, others)
}

fn logged_ones(logged: &[ss::Logged], args: &Args) -> (Vec<Transfer>, usize) {
    let wanted =
        |l: &&ss::Logged| args.flows.is_empty() || args.flows.iter().any(|f| f.matches([l.local, l.peer]));
    let mut chosen: Vec<&ss::Logged> = logged.iter().filter(wanted).collect();
    chosen.sort_by_key(|l| std::cmp::Reverse(l.diagnosis.bytes));
    let others = chosen.len().saturating_sub(args.top);
    let of = |l: &ss::Logged| Transfer {
        flow: None,
        from: l.local,
        to: l.peer,
        diagnosis: l.diagnosis.clone(),
        cured: None,
        packets: None,
    };
    (chosen.into_iter().take(args.top).map(of).collect(), others)
}

impl Transfer {
    fn of(flow: &Flow, at: usize, side: Side) -> Self {
        Transfer {
            flow: Some(at),
            from: flow.address(side),
            to: flow.address(side.other()),
            diagnosis: diagnose(flow, side),
            cured: None,
            packets: None,
        }
    }
}

/// Reads a capture once more for the packets of the transfers that its page shows. What cannot be read twice
/// has none.
///
/// # Errors
/// A file that cannot be read.
pub(crate) fn collect_packets(examined: &mut Examined, limit: usize) -> Result<()> {
    let Some(capture) = examined.capture() else { return Ok(()) };
    let Some((zero, _)) = capture.time else { return Ok(()) };
    let shown = examined.transfers.iter().take(figures::MAX_SHOWN);
    let mut collected: Vec<_> = shown
        .map(|t| Some((capture.flows.get(t.flow?)?, t)))
        .map(|found| found.map(|(flow, t)| (flow, t.diagnosis.side, figures::packets(flow, t, zero, limit))))
        .collect();
    // An interface or standard input.
    if collected.is_empty() || !examined.file.is_file() {
        return Ok(());
    }
    let reading = || format!("cannot read `{}` again", examined.file.display());
    let mut each = |segment: &CapturedSegment| {
        collected.iter_mut().flatten().for_each(|(_, _, packets)| packets.take(segment))
    };
    let file = File::open(&examined.file).with_context(reading)?;
    if matches!(examined.source, Source::Trace(_)) {
        input::read_records_with(file, &mut each).with_context(reading)?;
    } else {
        let (source, _) = input::open(file).with_context(reading)?;
        input::read_with(source, &mut each).with_context(reading)?;
    }
    let finished: Vec<_> = collected
        .into_iter()
        .map(|found| {
            found.map(|(flow, side, packets)| {
                packets.finish(flow.start, flow.end, figures::timeouts(flow.half(side), zero))
            })
        })
        .collect();
    for (transfer, packets) in examined.transfers.iter_mut().zip(finished) {
        transfer.packets = packets;
    }
    Ok(())
}

/// The connection that two captures have in common, the largest of those explained, and what both tell
/// together.
pub(crate) fn pair(all: &[Examined]) -> Result<Option<(SocketAddr, SocketAddr, Pair)>> {
    let [first, second] = all else { return Ok(None) };
    let (Source::Capture { capture: a, .. }, Source::Capture { capture: b, .. }) =
        (&first.source, &second.source)
    else {
        return Ok(None);
    };
    if [first, second].iter().any(|e| e.file.as_os_str() == "-") {
        return Ok(None);
    }
    let common = first.transfers.iter().find_map(|t| {
        let flow = a.flows.get(t.flow?)?;
        let same = |f: &&Flow| f.ends == flow.ends || f.ends == [flow.ends[1], flow.ends[0]];
        b.flows.iter().find(same).map(|_| flow)
    });
    let Some(flow) = common else { return Ok(None) };
    let mss = flow.halves.iter().map(|h| h.mss).max().unwrap_or_default();
    let mut packets = [PacketsSeen::default(), PacketsSeen::default()];
    for (examined, packets) in [first, second].into_iter().zip(&mut packets) {
        let reading = || format!("cannot read `{}` again", examined.file.display());
        let (source, _) =
            input::open(File::open(&examined.file).with_context(reading)?).with_context(reading)?;
        input::read_with(source, |segment| packets.take(segment, flow.ends, mss)).with_context(reading)?;
    }
    let [one, two] = &packets;
    Ok(pair::align(flow, one, two).map(|pair| (flow.ends[0], flow.ends[1], pair)))
}
