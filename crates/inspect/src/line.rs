//! One packet of a capture, as a line of text or of JSON.

use crate::below;
use crate::segment::ShownSegment;
use farpace_units::{ByteCount, Instant};
use farpace_wire::Packet;
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt;

/// A packet and what the capture says about it.
pub struct PacketLine<'a> {
    /// Counted from 1.
    pub number: u64,
    /// Since the epoch of the file.
    pub time: Instant,
    /// Name of the interface, if the file gives one.
    pub interface: Option<&'a str>,
    /// Bytes of the frame as it was.
    pub original_len: ByteCount,
    /// Bytes of it in the file.
    pub captured: ByteCount,
    /// The packet.
    pub what: What,
    /// The comment in the file: in captures of drops, where and why.
    pub comment: Option<String>,
}

/// The packet itself.
#[derive(Serialize)]
#[serde(untagged)]
pub enum What {
    /// TCP, all of whose header is there.
    Segment(ShownSegment),
    /// Anything else, or what is wrong with it.
    Other {
        /// In words.
        text: String,
        /// What it says of NICs, if anything.
        #[serde(flatten)]
        said: Map<String, Value>,
    },
}

impl What {
    /// A packet that is no TCP.
    pub fn other(packet: &Packet) -> What {
        match below::said(packet) {
            Some((words, key, value)) => What::Other {
                text: format!("{packet:?}, {words}"),
                said: Map::from_iter([(key.to_owned(), value)]),
            },
            None => What::Other { text: format!("{packet:?}"), said: Map::new() },
        }
    }
}

impl Serialize for PacketLine<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct LineForm<'a> {
            number: u64,
            time_ns: u64,
            interface: Option<&'a str>,
            frame_bytes: u64,
            captured_bytes: u64,
            #[serde(flatten)]
            what: &'a What,
            comment: Option<&'a str>,
        }
        let form = LineForm {
            number: self.number,
            time_ns: self.time.as_nanos(),
            interface: self.interface,
            frame_bytes: self.original_len.get(),
            captured_bytes: self.captured.get(),
            what: &self.what,
            comment: self.comment.as_deref(),
        };
        form.serialize(serializer)
    }
}

impl fmt::Display for PacketLine<'_> {
    /// The time is the time of day in UTC, to the microsecond.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.time.as_micros();
        let seconds = micros / 1_000_000;
        let (hours, minutes) = (seconds / 3600 % 24, seconds / 60 % 60);
        write!(f, "{hours:02}:{minutes:02}:{:02}.{:06} ", seconds % 60, micros % 1_000_000)?;
        match &self.what {
            What::Segment(segment) => segment.fmt(f)?,
            What::Other { text, .. } => f.write_str(text)?,
        }
        match &self.comment {
            // Whoever wrote the file may have put line breaks and worse into it.
            Some(comment) => write!(f, " # {}", comment.escape_debug()),
            None => Ok(()),
        }
    }
}
