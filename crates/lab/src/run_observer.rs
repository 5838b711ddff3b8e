//! The observer of a run: meters, captures, and the file of drops.

use crate::drop_log::DropLog;
use crate::scenario::{CaptureClock, Trace};
use farpace_path::world::{ElementId, Observer, WireId};
use farpace_path::{DropReason, Meter, WaitMeter, ends_at_port};
use farpace_trace::{InterfaceId, PcapngWriter, Resolution};
use farpace_units::{ByteCount, Instant, Packets, Span};
use farpace_wire::Packet;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A capture that could not be written.
#[derive(Debug, Error)]
#[error("cannot write the capture `{}`: {error}", path.display())]
pub struct CaptureOpenError {
    /// The file.
    pub path: PathBuf,
    /// The error of the system.
    #[source]
    pub error: io::Error,
}

/// A capture that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureFile {
    /// The file.
    pub path: PathBuf,
    /// Packets that were left out because the file had reached its size limit.
    pub skipped: Packets,
}

struct PointCapture {
    path: PathBuf,
    writer: PcapngWriter<BufWriter<File>>,
    /// The interface of the tap; in the file of drops, one for each element, created at its first drop.
    interfaces: BTreeMap<u32, InterfaceId>,
    snaplen: u32,
}

/// What is recorded of one wire.
#[derive(Clone, Copy, Default)]
struct RunTaps {
    meter: Option<usize>,
    capture: Option<usize>,
    count: Option<usize>,
    /// An index into `rates`, of a wire whose frames are counted over time.
    rate: Option<usize>,
}

/// Frames on a wire.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Count {
    pub frames: u64,
    pub bytes: ByteCount,
}

/// The observer of a run.
#[derive(Default)]
pub(crate) struct RunObserver {
    /// By [`WireId`].
    wires: Vec<RunTaps>,
    meters: Vec<(String, Meter)>,
    /// Of each meter: how long the data for each TCP port has waited, by source port if `by_source`.
    waits: Vec<BTreeMap<(u16, Option<u16>), WaitMeter>>,
    /// Flows share ports of receivers: the ports of senders tell them apart.
    by_source: bool,
    counts: Vec<Count>,
    rates: Vec<Meter>,
    drop_log: Option<DropLog>,
    captures: Vec<PointCapture>,
    drops: Option<PointCapture>,
    elements: Vec<String>,
    failed: Option<CaptureOpenError>,
}

impl RunObserver {
    fn taps(&mut self, wire: WireId) -> &mut RunTaps {
        if self.wires.len() <= wire.index() {
            self.wires.resize(wire.index() + 1, RunTaps::default());
        }
        &mut self.wires[wire.index()]
    }

    pub fn meter(&mut self, wire: WireId, name: &str, bin: Span) {
        self.taps(wire).meter = Some(self.meters.len());
        self.meters.push((name.to_owned(), Meter::new(bin)));
        self.waits.push(BTreeMap::new());
    }

    /// The data of flows is told apart by their source ports too.
    pub fn tell_sources(&mut self) {
        self.by_source = true;
    }

    /// How long data for TCP port `port` of the metered host `name` has waited in queues, if sources are told
    /// apart that from `from_port`. It is told once.
    pub fn take_waits(&mut self, name: &str, port: u16, from_port: Option<u16>) -> Option<WaitMeter> {
        let meter = self.meters.iter().position(|(metered, _)| metered == name)?;
        self.waits.get_mut(meter)?.remove(&(port, from_port))
    }

    /// From now on the frames of `wire` are counted.
    pub fn count(&mut self, wire: WireId) {
        self.taps(wire).count = Some(self.counts.len());
        self.counts.push(Count::default());
    }

    /// The frames counted so far.
    pub fn counted(&self, wire: WireId) -> Count {
        let at = self.wires.get(wire.index()).and_then(|taps| taps.count);
        at.and_then(|at| self.counts.get(at)).copied().unwrap_or_default()
    }

    /// From now on the frames of `wire` are counted over time.
    pub fn count_rate(&mut self, wire: WireId, bin: Span) {
        self.taps(wire).rate = Some(self.rates.len());
        self.rates.push(Meter::new(bin));
    }

    /// The frames of `wire` over time, if they are counted.
    pub fn counted_rate(&self, wire: WireId) -> Option<&Meter> {
        self.rates.get(self.wires.get(wire.index())?.rate?)
    }

    /// From now on drops are counted over time.
    pub fn log_drops(&mut self, bin: Span) {
        self.drop_log = Some(DropLog::new(bin));
    }

    /// The drops, if they are counted over time.
    pub fn drop_log(&self) -> Option<&DropLog> {
        self.drop_log.as_ref()
    }

    /// The same, to fetch segments.
    pub fn drop_log_mut(&mut self) -> Option<&mut DropLog> {
        self.drop_log.as_mut()
    }

    pub fn meters(&self) -> impl Iterator<Item = (&str, &Meter)> {
        self.meters.iter().map(|(n, m)| (n.as_str(), m))
    }

    pub fn capture(
        &mut self,
        wires: &[WireId],
        directory: &Path,
        tap: &str,
        trace: &Trace,
    ) -> Result<(), CaptureOpenError> {
        let mut capture = open(directory, tap, trace)?;
        let added = capture.writer.add_interface(tap, "both directions", Some(capture.snaplen));
        let interface = added.map_err(|error| CaptureOpenError { path: capture.path.clone(), error })?;
        capture.interfaces.insert(0, interface);
        for wire in wires {
            self.taps(*wire).capture = Some(self.captures.len());
        }
        self.captures.push(capture);
        Ok(())
    }

    pub fn capture_drops(
        &mut self,
        directory: &Path,
        elements: Vec<String>,
        trace: &Trace,
    ) -> Result<(), CaptureOpenError> {
        self.drops = Some(open(directory, "drops", trace)?);
        self.elements = elements;
        Ok(())
    }

    pub fn files(&self) -> Vec<PathBuf> {
        self.captures.iter().chain(&self.drops).map(|c| c.path.clone()).collect()
    }

    /// The first write that failed, if any did.
    pub fn check(&mut self) -> Result<(), CaptureOpenError> {
        self.failed.take().map_or(Ok(()), Err)
    }

    pub fn finish(&mut self) -> Result<Vec<CaptureFile>, CaptureOpenError> {
        self.check()?;
        let captures = std::mem::take(&mut self.captures).into_iter().chain(self.drops.take());
        captures
            .map(|c| {
                let (path, skipped) = (c.path, c.writer.skipped());
                match c.writer.finish() {
                    Ok(_) => Ok(CaptureFile { path, skipped }),
                    Err(error) => Err(CaptureOpenError { path, error }),
                }
            })
            .collect()
    }
}

fn open(directory: &Path, name: &str, trace: &Trace) -> Result<PointCapture, CaptureOpenError> {
    let resolution = match trace.clock {
        CaptureClock::Exact => Resolution::Nanoseconds,
        CaptureClock::Gtrcnet => Resolution::Gtrcnet,
    };
    let path = directory.join(format!("{name}.pcapng"));
    let made = File::create(&path).and_then(|f| PcapngWriter::new(BufWriter::new(f), "farpace lab"));
    match made {
        Ok(writer) => {
            let writer = writer.with_resolution(resolution);
            let snaplen = u32::try_from(trace.snaplen.get()).unwrap_or(u32::MAX);
            Ok(PointCapture { path, writer, interfaces: BTreeMap::new(), snaplen })
        }
        Err(error) => Err(CaptureOpenError { path, error }),
    }
}

impl Observer for RunObserver {
    fn packet(&mut self, now: Instant, wire: WireId, packet: &Packet) {
        let Some(taps) = self.wires.get(wire.index()) else { return };
        // A link-local frame, like a gap frame, is not received.
        if let Some((_, meter)) = taps.meter.and_then(|i| self.meters.get_mut(i))
            && !ends_at_port(packet)
        {
            meter.record(now, packet.len());
        }
        if let Some(waits) = taps.meter.and_then(|i| self.waits.get_mut(i))
            && !packet.payload().is_empty()
            && let Ok(segment) = packet.tcp()
        {
            let header = segment.header();
            let ports = (header.dst_port, self.by_source.then_some(header.src_port));
            waits.entry(ports).or_default().record(packet.queued());
        }
        if let Some(count) = taps.count.and_then(|i| self.counts.get_mut(i)) {
            count.frames += 1;
            count.bytes += packet.len();
        }
        if let Some(rate) = taps.rate.and_then(|i| self.rates.get_mut(i)) {
            rate.record(now, packet.len());
        }
        if let Some(c) = taps.capture.and_then(|i| self.captures.get_mut(i))
            && let Some(interface) = c.interfaces.get(&0)
            && let Err(error) = c.writer.packet(*interface, now, packet, None)
        {
            self.failed.get_or_insert(CaptureOpenError { path: c.path.clone(), error });
        }
    }

    fn dropped(&mut self, now: Instant, element: ElementId, packet: &Packet, reason: DropReason) {
        if let Some(log) = &mut self.drop_log {
            log.dropped(now, element, packet, reason);
        }
        let Some(c) = &mut self.drops else { return };
        let key = element.index() as u32;
        let name = self.elements.get(element.index()).map_or("", String::as_str);
        let written = match c.interfaces.get(&key) {
            Some(interface) => Ok(*interface),
            None => c.writer.add_interface(name, "packets dropped here", Some(c.snaplen)),
        }
        .and_then(|interface| {
            c.interfaces.insert(key, interface);
            let comment = format!("dropped at {name}: {}", reason.name());
            c.writer.packet(interface, now, packet, Some(&comment))
        });
        if let Err(error) = written {
            self.failed.get_or_insert(CaptureOpenError { path: c.path.clone(), error });
        }
    }
}
