//! Reading: captures of others and ours, whole or damaged, compressed or not.

mod compressed;
mod order;
mod reading;
mod records;
pub mod ss;

pub use compressed::{Compression, open};
pub use reading::Reading;
pub use records::{RecordFollower, RecordsError, read_records, read_records_with};

use crate::flow::{Flow, FlowTable};
use crate::frame::{self, CapturedSegment, Found};
use crate::policing::mark_shared;
use farpace_trace::{CaptureReadError, CaptureReader};
use farpace_units::{ByteCount, Instant};
use order::InOrder;
use std::io::Read;

/// What was read from a capture.
#[derive(Debug)]
pub struct Capture {
    /// The connections, in the order of their first packets.
    pub flows: Vec<Flow>,
    /// Frames in the file.
    pub frames: u64,
    /// TCP segments among them.
    pub segments: u64,
    /// Frames too short to see whether they are TCP.
    pub too_short: u64,
    /// Fragments without a TCP header.
    pub fragments: u64,
    /// Bytes of frames as captured.
    pub captured: ByteCount,
    /// Frames of which not all was captured.
    pub cut: u64,
    /// Frames that are earlier than the one before.
    pub backwards: u64,
    /// Segments whose times are too far from those of their neighbours to be put in order.
    pub misdated: u64,
    /// Frames of link types that are not known, and the last such type.
    pub foreign: (u64, u16),
    /// First and last time.
    pub time: Option<(Instant, Instant)>,
    /// Interfaces.
    pub interfaces: usize,
    /// Their names, in order, where the file has them.
    pub interface_names: Vec<Option<String>>,
    /// Segments of connections beyond the limits ([`MAX_FLOWS`](crate::flow::MAX_FLOWS),
    /// [`MAX_MEMORY`](crate::flow::MAX_MEMORY)).
    pub left_out: u64,
    /// Why reading ended before the end of the file; what came before was used.
    pub damaged: Option<String>,
}

/// One wrong time in so many segments, from which on times say little.
const MANY_MISDATED: u64 = 100;

/// Follows packets as they come, from a file or an interface.
#[derive(Default)]
pub struct Follower {
    table: FlowTable,
    frames: u64,
    segments: u64,
    too_short: u64,
    fragments: u64,
    captured: u64,
    cut: u64,
    backwards: u64,
    foreign: (u64, u16),
    time: Option<(Instant, Instant)>,
    /// The time of the frame before.
    newest: Instant,
    order: InOrder,
}

impl Follower {
    /// A follower for whose connections so many bytes are enough.
    pub fn with_memory(max_memory: usize) -> Self {
        Follower { table: FlowTable::with_memory(max_memory), ..Follower::default() }
    }

    /// Memory of all connections, in bytes.
    pub fn memory(&self) -> usize {
        self.table.memory()
    }

    /// Takes the next frame. `each` sees the segments as they are put in order, soon afterwards.
    pub fn frame(
        &mut self,
        (link_type, interface): (u16, u32),
        time: Instant,
        data: &[u8],
        original: ByteCount,
        each: &mut impl FnMut(&CapturedSegment),
    ) {
        self.frames += 1;
        self.captured += data.len() as u64;
        self.cut += u64::from((data.len() as u64) < original.get());
        self.backwards += u64::from(time < self.newest);
        self.newest = time;
        self.time = Some(self.time.map_or((time, time), |(first, last)| (first, last.max(time))));
        match frame::read(link_type, data, original.get()) {
            Found::Tcp(mut segment) => {
                self.segments += 1;
                segment.frame = self.frames;
                segment.time = time;
                segment.interface = interface;
                self.order.put(segment);
                while let Some(segment) = self.order.take() {
                    self.give(&segment, each);
                }
            }
            Found::TooBig { src, dst, mtu } => {
                self.table.too_big(src, dst, time, self.frames, mtu);
            }
            Found::TooShort => self.too_short += 1,
            Found::Fragment => self.fragments += 1,
            Found::Foreign => self.foreign = (self.foreign.0 + 1, link_type),
            Found::Other => {}
        }
    }

    fn give(&mut self, segment: &CapturedSegment, each: &mut impl FnMut(&CapturedSegment)) {
        self.table.take(segment);
        each(segment);
    }

    /// Nothing follows: `each` sees the rest.
    fn flush(&mut self, each: &mut impl FnMut(&CapturedSegment)) {
        while let Some(segment) = self.order.take_rest() {
            self.give(&segment, each);
        }
    }

    /// Takes a segment that was no frame.
    pub(crate) fn segment(&mut self, segment: &CapturedSegment) {
        self.frames += 1;
        self.segments += 1;
        let first = self.time.map_or(segment.time, |(first, _)| first);
        self.time = Some((first, segment.time));
        self.table.take(segment);
    }

    /// The connections so far.
    pub fn flows(&self) -> &[Flow] {
        self.table.flows()
    }

    /// Ends, and gives what came of it.
    pub fn finish(mut self) -> Capture {
        self.flush(&mut |_| {});
        let misdated = self.order.misdated;
        let left_out = self.table.left_out;
        let mut flows = self.table.into_flows();
        if misdated * MANY_MISDATED > self.segments {
            flows.iter_mut().for_each(|flow| flow.is_misdated = true);
        }
        mark_shared(&mut flows);
        Capture {
            frames: self.frames,
            segments: self.segments,
            too_short: self.too_short,
            fragments: self.fragments,
            captured: ByteCount::new(self.captured),
            cut: self.cut,
            backwards: self.backwards,
            misdated,
            foreign: self.foreign,
            time: self.time,
            interfaces: 1,
            interface_names: Vec::new(),
            left_out,
            damaged: None,
            flows,
        }
    }
}

/// Reads a whole capture. Memory does not depend on its length, but on how many connections it has.
///
/// # Errors
/// A file that is no capture. Damage further on ends the reading and is told in [`Capture::damaged`].
pub fn read(input: impl Read) -> Result<Capture, CaptureReadError> {
    read_with(input, |_| {})
}

/// The same, and shows each segment.
///
/// # Errors
/// As [`read`].
pub fn read_with(
    input: impl Read,
    mut each: impl FnMut(&CapturedSegment),
) -> Result<Capture, CaptureReadError> {
    let mut reader = CaptureReader::new(input)?;
    let mut follower = Follower::default();
    let mut damaged = None;
    let mut link_types: Vec<u16> = reader.interfaces().iter().map(|i| i.link_type).collect();
    loop {
        match reader.next_packet() {
            Ok(None) => break,
            Ok(Some(packet)) => {
                let at = packet.interface.0;
                let (time, original) = (packet.time, packet.original_len);
                if let Some(link_type) = link_types.get(at as usize) {
                    follower.frame((*link_type, at), time, packet.data, original, &mut each);
                    continue;
                }
                // A new interface; its description cannot be read while the packet is borrowed.
                let data = packet.data.to_vec();
                let known = link_types.len();
                link_types.extend(reader.interfaces().iter().skip(known).map(|i| i.link_type));
                let link_type = link_types.get(at as usize).copied().unwrap_or_default();
                follower.frame((link_type, at), time, &data, original, &mut each);
            }
            Err(error) => {
                damaged = Some(error.to_string());
                break;
            }
        }
    }
    let names: Vec<Option<String>> = reader.interfaces().iter().map(|i| i.name.clone()).collect();
    follower.flush(&mut each);
    let mut capture = follower.finish();
    capture.damaged = damaged;
    capture.interfaces = names.len();
    capture.interface_names = names;
    Ok(capture)
}
