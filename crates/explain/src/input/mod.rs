//! Reading: captures of others and ours, whole or damaged, compressed or not.

mod compressed;
mod reading;
mod records;
pub mod ss;

pub use compressed::{Compression, open};
pub use reading::Reading;
pub use records::{RecordFollower, RecordsError, read_records, read_records_with};

use crate::flow::{Flow, FlowTable};
use crate::frame::{self, CapturedSegment, Found};
use farpace_trace::{CaptureReadError, CaptureReader};
use farpace_units::{ByteCount, Instant};
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
    time: Option<(Instant, Instant)>,
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

    /// Takes the next frame. Gives the segment, if it is one.
    pub fn frame(
        &mut self,
        link_type: u16,
        interface: u32,
        time: Instant,
        data: &[u8],
        original: ByteCount,
    ) -> Option<CapturedSegment> {
        self.frames += 1;
        self.captured += data.len() as u64;
        self.cut += u64::from((data.len() as u64) < original.get());
        let mut now = time;
        self.time = match self.time {
            None => Some((time, time)),
            Some((first, last)) => {
                if time < last {
                    self.backwards += 1;
                    // Several interfaces may be written a little out of order; time must not go back.
                    now = last;
                }
                Some((first, last.max(time)))
            }
        };
        match frame::read(link_type, data, original.get()) {
            Found::Tcp(mut segment) => {
                self.segments += 1;
                segment.frame = self.frames;
                segment.time = now;
                segment.interface = interface;
                self.table.take(&segment);
                return Some(segment);
            }
            Found::TooBig { src, dst, mtu } => self.table.too_big(src, dst, now, self.frames, mtu),
            Found::TooShort => self.too_short += 1,
            Found::Fragment => self.fragments += 1,
            Found::Other => {}
        }
        None
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
    pub fn finish(self) -> Capture {
        Capture {
            frames: self.frames,
            segments: self.segments,
            too_short: self.too_short,
            fragments: self.fragments,
            captured: ByteCount::new(self.captured),
            cut: self.cut,
            backwards: self.backwards,
            time: self.time,
            interfaces: 1,
            interface_names: Vec::new(),
            left_out: self.table.left_out,
            damaged: None,
            flows: self.table.into_flows(),
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
                    follower.frame(*link_type, at, time, packet.data, original).iter().for_each(&mut each);
                    continue;
                }
                // A new interface; its description cannot be read while the packet is borrowed.
                let data = packet.data.to_vec();
                let known = link_types.len();
                link_types.extend(reader.interfaces().iter().skip(known).map(|i| i.link_type));
                let link_type = link_types.get(at as usize).copied().unwrap_or_default();
                follower.frame(link_type, at, time, &data, original).iter().for_each(&mut each);
            }
            Err(error) => {
                damaged = Some(error.to_string());
                break;
            }
        }
    }
    let names: Vec<Option<String>> = reader.interfaces().iter().map(|i| i.name.clone()).collect();
    let mut capture = follower.finish();
    capture.damaged = damaged;
    capture.interfaces = names.len();
    capture.interface_names = names;
    Ok(capture)
}
