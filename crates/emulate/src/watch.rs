//! What an observer of a network in real time sees: meters at both ends of each direction, and captures.

use anyhow::{Context, Result};
use farpace_lab::scenario::Hop;
use farpace_path::world::{ElementId, Observer, WireId};
use farpace_path::{DropReason, Meter, ends_at_port};
use farpace_report::number;
use farpace_trace::{InterfaceId, PcapngWriter};
use farpace_units::{ByteCount, Instant, Rate, Span};
use farpace_wire::Packet;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::PathBuf;
use std::rc::Rc;

/// Bytes kept of each captured frame: all headers.
const SNAPLEN: u32 = 128;

/// Where captures go.
#[derive(Clone, Debug)]
pub struct Captures {
    /// The directory.
    pub directory: PathBuf,
    /// The time since 1970 at the start of the network.
    pub epoch: Span,
}

/// One direction of a link.
#[derive(Debug)]
pub struct Metered {
    /// The link.
    pub link: String,
    /// From where to where.
    pub name: String,
    /// Its place in the scenario.
    pub hop: Hop,
    /// What went in.
    pub entered: Meter,
    /// What came out.
    pub left: Meter,
    /// Totals when lines were last made.
    seen: [ByteCount; 2],
}

struct RealtimeCapture {
    path: PathBuf,
    writer: PcapngWriter<BufWriter<File>>,
    interfaces: BTreeMap<u32, InterfaceId>,
}

/// What one wire is watched for.
#[derive(Clone, Copy, Default)]
struct RealtimeTaps {
    /// A direction, and whether it begins here.
    meter: Option<(usize, bool)>,
    capture: Option<usize>,
}

/// Meters and captures.
pub struct RealtimeWatch {
    bin: Span,
    wires: Vec<RealtimeTaps>,
    directions: Vec<Metered>,
    captures: Vec<RealtimeCapture>,
    drops: Option<RealtimeCapture>,
    elements: Vec<String>,
    seen: Instant,
    failed: Option<(PathBuf, io::Error)>,
}

/// The same, shared with whoever reads it between two packets.
pub(super) struct WatchState(pub Rc<RefCell<RealtimeWatch>>);

impl RealtimeWatch {
    /// Nothing is watched yet. Bins of meters are as wide as `bin`.
    pub fn new(bin: Span) -> Self {
        RealtimeWatch {
            bin,
            wires: Vec::new(),
            directions: Vec::new(),
            captures: Vec::new(),
            drops: None,
            elements: Vec::new(),
            seen: Instant::ZERO,
            failed: None,
        }
    }
    fn eyes(&mut self, wire: WireId) -> &mut RealtimeTaps {
        if self.wires.len() <= wire.index() {
            self.wires.resize(wire.index() + 1, RealtimeTaps::default());
        }
        &mut self.wires[wire.index()]
    }
    /// Meters a direction of a link at both ends.
    pub fn add(&mut self, link: &str, name: &str, hop: Hop, entered: WireId, left: WireId) {
        let at = self.directions.len();
        self.eyes(entered).meter = Some((at, true));
        self.eyes(left).meter = Some((at, false));
        let meter = || Meter::new(self.bin);
        let (entered, left) = (meter(), meter());
        let (link, name) = (link.to_owned(), name.to_owned());
        self.directions.push(Metered { link, name, hop, entered, left, seen: [ByteCount::ZERO; 2] });
    }
    /// Captures what is dropped, by these elements.
    ///
    /// # Errors
    /// A file that cannot be made.
    pub fn capture(&mut self, to: &Captures, elements: Vec<String>) -> Result<()> {
        std::fs::create_dir_all(&to.directory)
            .with_context(|| format!("cannot make the directory `{}`", to.directory.display()))?;
        self.drops = Some(open(to, "drops")?);
        self.elements = elements;
        Ok(())
    }
    /// Captures what is on these wires, in one file.
    ///
    /// # Errors
    /// A file that cannot be made.
    pub fn capture_at(&mut self, to: &Captures, name: &str, wires: &[WireId]) -> Result<()> {
        let mut capture = open(to, name)?;
        let cannot = || format!("cannot write the capture `{}`", capture.path.display());
        let interface =
            capture.writer.add_interface(name, "both directions", Some(SNAPLEN)).with_context(cannot)?;
        capture.interfaces.insert(0, interface);
        for wire in wires {
            self.eyes(*wire).capture = Some(self.captures.len());
        }
        self.captures.push(capture);
        Ok(())
    }

    /// The directions.
    pub fn directions(&self) -> &[Metered] {
        &self.directions
    }
    /// Their places in the scenario.
    pub fn hops(&self) -> impl Iterator<Item = Hop> + '_ {
        self.directions.iter().map(|direction| direction.hop)
    }

    /// Rates since the last call, a line for each direction; `queues` is what waits in each.
    pub fn lines(&mut self, now: Instant, queues: &[Span]) -> Vec<String> {
        let passed = now.since(self.seen);
        self.seen = now;
        let line = |(direction, queue): (&mut Metered, &Span)| {
            let totals = [direction.entered.total().bytes, direction.left.total().bytes];
            let [entered, left] =
                [0, 1].map(|i| Rate::of(totals[i] - direction.seen[i], passed).as_mbit_f64());
            direction.seen = totals;
            format!(
                "{}, {}: in {} Mbit/s, out {} Mbit/s, queue {:.2} ms",
                direction.link,
                direction.name,
                number(entered),
                number(left),
                queue.as_secs_f64() * 1e3
            )
        };
        self.directions.iter_mut().zip(queues).map(line).collect()
    }

    /// What has passed per bin.
    pub fn csv(&self) -> String {
        let mut text = String::from("time_s,link,direction,in_bytes,in_packets,out_bytes,out_packets\n");
        for direction in &self.directions {
            let width = direction.entered.width().max(direction.left.width());
            let (entered, left) = (direction.entered.bins(), direction.left.bins());
            for at in 0..entered.len().max(left.len()) {
                let [entered, left] = [entered, left].map(|bins| bins.get(at).copied().unwrap_or_default());
                let _ = writeln!(
                    text,
                    "{},{},{},{},{},{},{}",
                    (width * at as u64).as_secs_f64(),
                    direction.link,
                    direction.name,
                    entered.bytes.get(),
                    entered.packets,
                    left.bytes.get(),
                    left.packets
                );
            }
        }
        text
    }

    /// Says whether a capture could not be written.
    ///
    /// # Errors
    /// It could not.
    pub fn check(&mut self) -> Result<()> {
        match self.failed.take() {
            Some((path, error)) => {
                Err(error).with_context(|| format!("cannot write the capture `{}`", path.display()))
            }
            None => Ok(()),
        }
    }
    /// Ends the captures, and says which there are.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn finish(&mut self) -> Result<Vec<PathBuf>> {
        self.check()?;
        let captures = std::mem::take(&mut self.captures).into_iter().chain(self.drops.take());
        let finish = |capture: RealtimeCapture| {
            let cannot = || format!("cannot write the capture `{}`", capture.path.display());
            capture.writer.finish().with_context(cannot)?;
            Ok(capture.path)
        };
        captures.map(finish).collect()
    }
}

fn open(to: &Captures, name: &str) -> Result<RealtimeCapture> {
    let path = to.directory.join(format!("{name}.pcapng"));
    let cannot = || format!("cannot write the capture `{}`", path.display());
    let file = File::create(&path).with_context(cannot)?;
    let writer = PcapngWriter::new(BufWriter::new(file), "farpace, in real time").with_context(cannot)?;
    let writer = writer.with_epoch(to.epoch);
    Ok(RealtimeCapture { path, writer, interfaces: BTreeMap::new() })
}

impl Observer for WatchState {
    fn packet(&mut self, now: Instant, wire: WireId, packet: &Packet) {
        self.0.borrow_mut().packet(now, wire, packet);
    }
    fn dropped(&mut self, now: Instant, element: ElementId, packet: &Packet, reason: DropReason) {
        self.0.borrow_mut().dropped(now, element, packet, reason);
    }
}

impl Observer for RealtimeWatch {
    fn packet(&mut self, now: Instant, wire: WireId, packet: &Packet) {
        let Some(eyes) = self.wires.get(wire.index()) else { return };
        if let Some((at, entered)) = eyes.meter
            && let Some(direction) = self.directions.get_mut(at)
            && !ends_at_port(packet)
        {
            let meter = if entered { &mut direction.entered } else { &mut direction.left };
            meter.record(now, packet.len());
        }
        if let Some(capture) = eyes.capture.and_then(|i| self.captures.get_mut(i))
            && let Some(interface) = capture.interfaces.get(&0)
            && let Err(error) = capture.writer.packet(*interface, now, packet, None)
        {
            self.failed.get_or_insert((capture.path.clone(), error));
        }
    }

    fn dropped(&mut self, now: Instant, element: ElementId, packet: &Packet, reason: DropReason) {
        let Some(capture) = &mut self.drops else { return };
        let key = element.index() as u32;
        let name = self.elements.get(element.index()).map_or("", String::as_str);
        let known = capture.interfaces.get(&key).copied();
        let interface = match known {
            Some(interface) => Ok(interface),
            None => capture.writer.add_interface(name, "packets dropped here", Some(SNAPLEN)),
        };
        let written = interface.and_then(|interface| {
            capture.interfaces.insert(key, interface);
            let comment = format!("dropped at {name}: {}", reason.name());
            capture.writer.packet(interface, now, packet, Some(&comment))
        });
        if let Err(error) = written {
            self.failed.get_or_insert((capture.path.clone(), error));
        }
    }
}
