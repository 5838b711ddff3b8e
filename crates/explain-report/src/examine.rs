//! Opening captures, traces and logs, and choosing what is explained.

use crate::cure::{self, CureError};
use crate::error::ExamineError;
use crate::figures;
use crate::transfer::Transfer;
use farpace_explain::FlowFilter;
use farpace_explain::cause::Cause;
use farpace_explain::flow::{Flow, Side};
use farpace_explain::frame::CapturedSegment;
use farpace_explain::input::{self, Capture, Compression, ss};
use farpace_explain::pair::{self, PacketsSeen, Pair};
use farpace_units::Span;
use std::fs::File;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// A direction with less payload than this is told only if it is the connection's larger one.
const MIN_OTHER_BYTES: u64 = 10_000;
/// Longest log of ss.
const MAX_LOG: u64 = 256 << 20;

/// What a file was.
#[derive(Debug)]
pub enum FileSource {
    /// A capture.
    Capture {
        /// What was read.
        capture: Capture,
        /// How the file was compressed.
        compression: Compression,
    },
    /// farpace's own trace.
    Trace(Capture),
    /// A log of ss.
    Log(Vec<ss::Logged>),
}

/// Which connections are explained.
#[derive(Clone, Debug)]
pub struct FlowSelection {
    /// Only those that match one of these; all without any.
    pub flows: Vec<FlowFilter>,
    /// So many at most, those with most data first.
    pub top: usize,
}

/// The connection that two captures have in common.
#[derive(Debug)]
pub struct CapturePair {
    /// Who opened it.
    pub client: SocketAddr,
    /// Who accepted it.
    pub server: SocketAddr,
    /// What both captures tell together.
    pub pair: Pair,
}

/// A file and its verdicts.
#[derive(Debug)]
pub struct ExaminedFile {
    /// The file, or the name of an interface.
    pub file: PathBuf,
    /// What was in it.
    pub source: FileSource,
    /// Those that were asked for, with most data first.
    pub transfers: Vec<Transfer>,
    /// Connections that match but are not among the first.
    pub others: usize,
}

impl ExaminedFile {
    /// The connections, if it is no log.
    pub fn capture(&self) -> Option<&Capture> {
        match &self.source {
            FileSource::Capture { capture, .. } | FileSource::Trace(capture) => Some(capture),
            FileSource::Log(_) => None,
        }
    }

    /// The connection of a transfer.
    pub fn flow(&self, transfer: &Transfer) -> Option<&Flow> {
        self.capture()?.flows.get(transfer.flow?)
    }
}

/// Reads a file whole; `-` is standard input.
///
/// # Errors
/// A file that cannot be read.
pub fn examine(file: &Path, selection: &FlowSelection) -> Result<ExaminedFile, ExamineError> {
    Ok(judge(file.to_owned(), read(file)?, selection))
}

fn read(file: &Path) -> Result<FileSource, ExamineError> {
    if file.as_os_str() == "-" {
        let (source, compression) = input::open(io::stdin().lock()).map_err(ExamineError::read(file))?;
        let capture = input::read(source).map_err(ExamineError::read(file))?;
        return Ok(FileSource::Capture { capture, compression });
    }
    let open = || File::open(file).map_err(ExamineError::read(file));
    let mut start = [0u8; 4_096];
    let read = open()?.read(&mut start).map_err(ExamineError::read(file))?;
    let start = &start[..read];
    if start.starts_with(b"PAR1") {
        return Ok(FileSource::Trace(input::read_records(open()?).map_err(ExamineError::read(file))?));
    }
    if std::str::from_utf8(start).is_ok_and(ss::is_log) {
        if open()?.metadata().map_err(ExamineError::read(file))?.len() > MAX_LOG {
            return Err(ExamineError::LongLog { file: file.to_owned(), max: MAX_LOG });
        }
        let text = std::fs::read_to_string(file).map_err(ExamineError::read(file))?;
        return Ok(FileSource::Log(ss::read(&text)));
    }
    let (source, compression) = input::open(open()?).map_err(ExamineError::read(file))?;
    let capture = input::read(source).map_err(ExamineError::read(file))?;
    Ok(FileSource::Capture { capture, compression })
}

/// Gives verdicts on what was asked for.
pub fn judge(file: PathBuf, source: FileSource, selection: &FlowSelection) -> ExaminedFile {
    let (transfers, others) = match &source {
        FileSource::Capture { capture, .. } | FileSource::Trace(capture) => choose(&capture.flows, selection),
        FileSource::Log(logged) => logged_ones(logged, selection),
    };
    ExaminedFile { file, source, transfers, others }
}

/// The connections that are explained.
fn choose(flows: &[Flow], selection: &FlowSelection) -> (Vec<Transfer>, usize) {
    let wanted =
        |flow: &Flow| selection.flows.is_empty() || selection.flows.iter().any(|f| f.matches(flow.ends));
    let mut chosen: Vec<usize> = (0..flows.len()).filter(|at| wanted(&flows[*at])).collect();
    let bytes = |at: &usize| flows[*at].halves.iter().map(|h| h.counts.bytes).sum::<u64>();
    chosen.sort_by_key(|at| (std::cmp::Reverse(bytes(at)), *at));
    let others = chosen.len().saturating_sub(selection.top);
    chosen.truncate(selection.top);
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

fn logged_ones(logged: &[ss::Logged], selection: &FlowSelection) -> (Vec<Transfer>, usize) {
    let wanted = |l: &&ss::Logged| {
        selection.flows.is_empty() || selection.flows.iter().any(|f| f.matches([l.local, l.peer]))
    };
    let mut chosen: Vec<&ss::Logged> = logged.iter().filter(wanted).collect();
    chosen.sort_by_key(|l| std::cmp::Reverse(l.diagnosis.bytes));
    let others = chosen.len().saturating_sub(selection.top);
    let of = |l: &ss::Logged| Transfer {
        flow: None,
        from: l.local,
        to: l.peer,
        diagnosis: l.diagnosis.clone(),
        cured: None,
        cure_asked: false,
        packets: None,
        paths: None,
    };
    (chosen.into_iter().take(selection.top).map(of).collect(), others)
}

/// Reads a capture once more for the packets of the transfers that its page shows. What cannot be read twice
/// has none.
///
/// # Errors
/// A file that cannot be read.
pub fn collect_packets(examined: &mut ExaminedFile, limit: usize) -> Result<(), ExamineError> {
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
    let mut each = |segment: &CapturedSegment| {
        collected.iter_mut().flatten().for_each(|(_, _, packets)| packets.take(segment))
    };
    let file = File::open(&examined.file).map_err(ExamineError::read_again(&examined.file))?;
    if matches!(examined.source, FileSource::Trace(_)) {
        input::read_records_with(file, &mut each).map_err(ExamineError::read_again(&examined.file))?;
    } else {
        let (source, _) = input::open(file).map_err(ExamineError::read_again(&examined.file))?;
        input::read_with(source, &mut each).map_err(ExamineError::read_again(&examined.file))?;
    }
    let finished: Vec<_> = collected
        .into_iter()
        .map(|found| {
            found.map(|(flow, side, packets)| {
                let timeouts = figures::timeouts(flow.half(side), zero);
                packets.finish(flow.start, flow.end, timeouts, &capture.interface_names)
            })
        })
        .collect();
    for (transfer, packets) in examined.transfers.iter_mut().zip(finished) {
        let (packets, paths) = packets.unzip();
        transfer.packets = packets;
        // The same packets at two places are no two paths.
        let copies = transfer.diagnosis.findings.iter().any(|f| f.cause == Cause::DuplicateCapture);
        transfer.paths = paths.filter(|_| !copies);
    }
    Ok(())
}

/// The connection that two captures have in common, the largest of those explained, and what both tell
/// together.
///
/// # Errors
/// A file that cannot be read a second time.
pub fn pair(all: &[ExaminedFile]) -> Result<Option<CapturePair>, ExamineError> {
    let [first, second] = all else { return Ok(None) };
    let (FileSource::Capture { capture: a, .. }, FileSource::Capture { capture: b, .. }) =
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
    // A path may take less than what was agreed on: super-segments are cut into what arrives.
    let other = b.flows.iter().find(|f| f.ends == flow.ends || f.ends == [flow.ends[1], flow.ends[0]]);
    let size = |f: &Flow| f.halves.iter().map(|h| h.mss.min(h.counts.largest)).max().unwrap_or_default();
    let mss =
        [Some(flow), other].into_iter().flatten().map(size).filter(|n| *n > 0).min().unwrap_or_default();
    let mut packets = [PacketsSeen::default(), PacketsSeen::default()];
    for (examined, packets) in [first, second].into_iter().zip(&mut packets) {
        let (source, _) =
            input::open(File::open(&examined.file).map_err(ExamineError::read_again(&examined.file))?)
                .map_err(ExamineError::read_again(&examined.file))?;
        input::read_with(source, |segment| packets.take(segment, flow.ends, mss))
            .map_err(ExamineError::read_again(&examined.file))?;
    }
    let [one, two] = &packets;
    Ok(pair::align(flow, one, two).map(|pair| CapturePair {
        client: flow.ends[0],
        server: flow.ends[1],
        pair,
    }))
}

/// Between files of a rotated capture at most.
const MAX_BETWEEN: Span = Span::from_secs(60);

/// Files of which the second has a transfer that goes on from the first: parts of one capture.
pub(crate) fn continued(all: &[ExaminedFile]) -> Vec<(&Path, &Path)> {
    let mut found: Vec<(&Path, &Path)> = Vec::new();
    let goes_on = |before: &Capture, after: &ExaminedFile| {
        after.transfers.iter().filter_map(|t| after.flow(t)).filter(|flow| !flow.saw_syn()).any(|flow| {
            let same = |f: &&Flow| f.ends == flow.ends || f.ends == [flow.ends[1], flow.ends[0]];
            before
                .flows
                .iter()
                .filter(same)
                .any(|f| !f.is_closed() && f.end <= flow.start && flow.start.since(f.end) <= MAX_BETWEEN)
        })
    };
    for after in all {
        let before = all.iter().find(|before| before.capture().is_some_and(|before| goes_on(before, after)));
        if let Some(before) = before {
            found.push((&before.file, &after.file));
        }
    }
    found
}

/// Runs the lab for each transfer that is not healthy. A run ends early when `stop` says so.
///
/// # Errors
/// A scenario that the lab refuses: a defect.
pub fn try_cures(examined: &mut [ExaminedFile], stop: &dyn Fn() -> bool) -> Result<(), CureError> {
    let mut number = 0;
    for examined in examined {
        let mut transfers = std::mem::take(&mut examined.transfers);
        for transfer in &mut transfers {
            if let Some(flow) = examined.flow(transfer) {
                number += 1;
                transfer.cure_asked = true;
                transfer.cured = cure::run(flow, &transfer.diagnosis, number, stop)?;
            }
        }
        examined.transfers = transfers;
    }
    Ok(())
}
