//! Captures, read twice: first for totals, then for the queue at the exact mean rate.

use super::error::{CaptureCause, ProofInputError};
use crate::frame::to_ethernet;
use farpace_link::proof::{
    CapturedFrame, Doubt, FirstPass, FlowProof, ProofQuestion, ProofVerdict, SecondPass,
};
use farpace_trace::{CaptureInterface, CaptureReadError, CaptureReader};
use farpace_units::{ByteCount, Instant, Span};
use std::cell::Cell;
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Captures in one report.
const MAX_CAPTURES: usize = 256;
/// Packets between two looks at the time and at Ctrl-C.
const BREATH: u64 = 4_096;
/// A capture of drops stands beside those of a run; its packets were never on a wire.
const DROPS: &str = "drops.pcapng";

/// What came out of one capture.
pub struct ExaminedCapture {
    /// Its file.
    pub file: PathBuf,
    /// The flows, those with the most bytes first.
    pub flows: Vec<FlowProof>,
    /// The counts.
    pub first_pass: FirstPass,
    /// All that the file declares, by their numbers.
    pub interfaces: Vec<CaptureInterface>,
    /// The time of the file's first packet: times are told from here.
    pub start: Instant,
    /// Packets of the file before and after what was asked for.
    pub outside: u64,
    /// The file ends within a packet: what is wrong, in words.
    pub cut: Option<String>,
}

impl ExaminedCapture {
    /// The name of the file without its directories.
    pub fn name(&self) -> String {
        self.file.file_name().unwrap_or(self.file.as_os_str()).to_string_lossy().into_owned()
    }
    /// Seconds since the first packet.
    pub fn seconds(&self, time: Instant) -> f64 {
        time.since(self.start).as_secs_f64()
    }
    /// The name of an interface, if there are several or it has one.
    pub fn interface(&self, number: u32) -> String {
        let name = self.interfaces.get(number as usize).and_then(|i| i.name.clone());
        name.unwrap_or_else(|| format!("interface {number}"))
    }
}

/// The captures among `files`; of a directory, all in it.
///
/// # Errors
/// A file that is not there, or cannot be read twice; a directory without captures.
pub fn captures(files: &[PathBuf]) -> Result<Vec<PathBuf>, ProofInputError> {
    let mut captures = Vec::new();
    for file in files {
        if file.as_os_str() == "-" {
            return Err(ProofInputError::StandardInput);
        }
        let kind = fs::metadata(file).map_err(|error| ProofInputError::capture(file, error))?;
        if kind.is_dir() {
            let found = of_directory(file)?;
            if found.is_empty() {
                return Err(ProofInputError::NoCapture(file.clone()));
            }
            captures.extend(found);
        } else if kind.is_file() {
            captures.push(file.clone());
        } else {
            return Err(ProofInputError::NoFile(file.clone()));
        }
    }
    if captures.len() > MAX_CAPTURES {
        return Err(ProofInputError::TooMany { captures: captures.len(), max: MAX_CAPTURES });
    }
    Ok(captures)
}

fn of_directory(dir: &Path) -> Result<Vec<PathBuf>, ProofInputError> {
    let cannot = |source| ProofInputError::Directory { dir: dir.to_owned(), source };
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        let is_capture = path.extension().is_some_and(|e| e == "pcapng" || e == "pcap");
        if is_capture && path.is_file() && !path.ends_with(DROPS) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// What is asked of captures.
#[derive(Clone, Debug, Default)]
pub struct ProofRequest {
    /// Of their flows.
    pub question: ProofQuestion,
    /// Begin so long after the first packet.
    pub from: Option<Span>,
    /// End so long after the first packet.
    pub until: Option<Span>,
}

/// Takes how far the reading of a capture is.
pub trait ReadSink {
    /// `file`, of `size` bytes, is read for the first or the second time.
    fn begin(&mut self, file: &Path, pass: u32, size: u64);
    /// So many bytes and packets were read. True: nobody wants the rest.
    fn update(&mut self, bytes: u64, packets: u64) -> bool;
    /// The file was read.
    fn clear(&mut self);
}

/// Counts what is read.
struct CountingReader<R> {
    file: R,
    read: Rc<Cell<u64>>,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let bytes = self.file.read(buffer)?;
        self.read.set(self.read.get() + bytes as u64);
        Ok(bytes)
    }
}

/// Examines a capture; none if `sink` has stopped it.
///
/// # Errors
/// A file that cannot be read, is no capture, or is not the same when read again.
pub fn examine(
    file: &Path,
    request: &ProofRequest,
    sink: &mut dyn ReadSink,
) -> Result<Option<ExaminedCapture>, ProofInputError> {
    let cannot = |error| ProofInputError::capture(file, error);
    let mut first_pass = FirstPass::new(request.question.clone());
    let first = pass(file, request, 1, u64::MAX, sink, &mut |frame| first_pass.see(frame)).map_err(cannot)?;
    let Some(first) = first else { return Ok(None) };
    let mut second_pass = SecondPass::new(first_pass);
    // A capture may still grow.
    let again =
        pass(file, request, 2, first.packets, sink, &mut |frame| second_pass.see(frame)).map_err(cannot)?;
    let Some(again) = again else { return Ok(None) };
    if (again.packets, again.last) != (first.packets, first.last) {
        return Err(ProofInputError::Changed(file.to_owned()));
    }
    let (flows, first_pass) = second_pass.finish();
    let ReadPass { start, outside, cut, interfaces, .. } = first;
    Ok(Some(ExaminedCapture { file: file.to_owned(), flows, first_pass, interfaces, start, outside, cut }))
}

/// What one reading of a file has found beside packets.
struct ReadPass {
    packets: u64,
    start: Instant,
    last: Instant,
    outside: u64,
    cut: Option<String>,
    interfaces: Vec<CaptureInterface>,
}

/// Reads at most `most` packets; `see` gets those of the time that was asked for. None if it was stopped.
fn pass(
    file: &Path,
    request: &ProofRequest,
    number: u32,
    most: u64,
    sink: &mut dyn ReadSink,
    see: &mut dyn FnMut(&CapturedFrame<'_>),
) -> Result<Option<ReadPass>, CaptureCause> {
    let opened = File::open(file)?;
    sink.begin(file, number, opened.metadata()?.len());
    let read = Rc::new(Cell::new(0));
    let counting = CountingReader { file: opened, read: Rc::clone(&read) };
    let mut reader = CaptureReader::new(BufReader::with_capacity(1 << 16, counting))?;
    let (mut packets, mut outside, mut last) = (0, 0, Instant::ZERO);
    let (mut start, mut cut) = (None, None);
    let until = request.until.unwrap_or(Span::MAX);
    let mut scratch = Vec::new();
    let mut formats: Vec<InterfaceFormat> = Vec::new();
    while packets < most {
        let captured = match reader.next_packet() {
            Ok(Some(captured)) => captured,
            Ok(None) => break,
            Err(error @ CaptureReadError::Truncated { .. }) => {
                cut = Some(error.to_string());
                break;
            }
            Err(error) => return Err(error.into()),
        };
        packets += 1;
        last = captured.time;
        let since = captured.time.since(*start.get_or_insert(captured.time));
        let (id, time, original) = (captured.interface, captured.time, captured.original_len);
        if since < request.from.unwrap_or_default() || since > until {
            outside += 1;
            continue;
        }
        scratch.clear();
        scratch.extend_from_slice(captured.data);
        // What is needed of an interface, kept by its number.
        while formats.len() <= id.0 as usize {
            let next = farpace_trace::InterfaceId(formats.len() as u32);
            formats.push(reader.interface(next).map_or(InterfaceFormat::default(), InterfaceFormat::of));
        }
        let format = formats.get(id.0 as usize).copied().unwrap_or_default();
        let before = scratch.len();
        if format.link_type != ETHERNET && !to_ethernet(format.link_type, &mut scratch) {
            scratch.clear();
        }
        let longer = ByteCount::of_len(scratch.len().saturating_sub(before));
        let shorter = ByteCount::of_len(before.saturating_sub(scratch.len()));
        see(&CapturedFrame {
            number: packets,
            interface: id.0,
            time,
            tick: format.tick,
            bytes: &scratch,
            len: original + longer - shorter - format.fcs,
        });
        if packets.is_multiple_of(BREATH) && sink.update(read.get(), packets) {
            return Ok(None);
        }
    }
    let start = start.unwrap_or_default();
    let interfaces = reader.interfaces().to_vec();
    sink.clear();
    Ok(Some(ReadPass { packets, start, last, outside, cut, interfaces }))
}

/// Refuses filters that leave no flow: a mistake in one would pass for a capture without a fault.
///
/// # Errors
/// Flows were asked for by name, and none is there.
pub fn refuse_nothing(examined: &[ExaminedCapture], request: &ProofRequest) -> Result<(), ProofInputError> {
    let filters = &request.question.flows;
    if filters.is_empty() || examined.iter().any(|capture| !capture.flows.is_empty()) {
        return Ok(());
    }
    let named: Vec<String> = filters.iter().map(|filter| format!("`{filter}`")).collect();
    Err(ProofInputError::NoFlow(named.join(" or ")))
}

/// Whether all flows are precise that have enough packets, and there is one.
pub fn all_precise(examined: &[ExaminedCapture]) -> bool {
    let verdicts = examined.iter().flat_map(|e| &e.flows).map(|flow| flow.verdict);
    let counting = verdicts.filter(|v| !matches!(v, ProofVerdict::CannotTell(Doubt::FewPackets(_))));
    let mut any = false;
    let all = counting.inspect(|_| any = true).all(|verdict| verdict == ProofVerdict::Precise);
    all && any
}

const ETHERNET: u16 = 1;

/// What is needed of an interface for each packet.
#[derive(Clone, Copy, Default)]
struct InterfaceFormat {
    link_type: u16,
    tick: Span,
    fcs: ByteCount,
}

impl InterfaceFormat {
    fn of(interface: &CaptureInterface) -> Self {
        let fcs = ByteCount::new(u64::from(interface.fcs_bytes));
        InterfaceFormat { link_type: interface.link_type, tick: interface.tick(), fcs }
    }
}
