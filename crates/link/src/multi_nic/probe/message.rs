//! What a probe and its reply look like on the line.

use crate::multi_nic::{MAX_NICS, NicId};
use crc::{CRC_32_ISCSI, Crc};
use farpace_units::{ByteCount, Instant, Span};
use farpace_wire::{EtherType, MacAddr, Packet};
use thiserror::Error;

/// What two machines say to each other about the way between two of their cards.
///
/// It stands alone in a frame of the experimental EtherType, all numbers big-endian:
///
/// | bytes | what |
/// |---|---|
/// | 4 | `fpwy` |
/// | 1, 1 | version 1; 1 for a probe, 2 for a reply |
/// | 1, 1 | number of the card that sent the probe; zero |
/// | 4 | number of the probe |
/// | 8 | when it was sent, in ns of its sender's clock |
/// | 8, 8 | frames and bytes sent on this lane so far, this probe included |
/// | 4 | round trip of the lane in ns, as its sender knows it; zero: unknown |
/// | 8 | *reply:* when the probe came, in ns of the replier's clock |
/// | 8, 8 | *reply:* frames and bytes that have come by this lane, the probe included |
/// | 4, 4, 4 | *reply:* frames of the lane that came late, of these the harmful ones, and frames of others that it overtook |
/// | 4 | CRC-32C of all before |
///
/// Whatever follows is padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeMessage {
    /// A question.
    Probe(PathProbe),
    /// The answer to it.
    Reply(Reply),
}

/// Frames, and what they take of the line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeTraffic {
    /// Frames.
    pub frames: u64,
    /// Bytes of the line.
    pub bytes: ByteCount,
}

impl ProbeTraffic {
    /// One more frame.
    #[inline]
    pub fn add(&mut self, bytes: ByteCount) {
        self.frames = self.frames.saturating_add(1);
        self.bytes += bytes;
    }
    /// What has come since `earlier`; none if the count has begun anew.
    pub fn since(self, earlier: ProbeTraffic) -> Option<ProbeTraffic> {
        let frames = self.frames.checked_sub(earlier.frames)?;
        let bytes = self.bytes.get().checked_sub(earlier.bytes.get())?;
        Some(ProbeTraffic { frames, bytes: ByteCount::new(bytes) })
    }
}

/// Frames of one lane that did not keep their place among those of other lanes. The counts wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// They came after frames of other lanes that had been sent later.
    pub late: u32,
    /// Of these, those behind so many that a sender takes them for lost.
    pub harmful: u32,
    /// Frames of other lanes came late because of them.
    pub overtook: u32,
}

/// A probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathProbe {
    /// The card of its sender.
    pub lane: NicId,
    /// Its number.
    pub seq: u32,
    /// When it was sent, by its sender's clock.
    pub sent_at: Instant,
    /// What has been sent on this lane so far, the probe included.
    pub sent: ProbeTraffic,
    /// Round trip of the lane; zero: unknown. More than 4.29 s is said as that.
    pub rtt: Span,
}

/// The reply to a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The probe, as it came.
    pub probe: PathProbe,
    /// When it came, by the replier's clock, which is not the sender's.
    pub arrived_at: Instant,
    /// What has come by this lane so far, the probe included.
    pub received: ProbeTraffic,
    /// What came out of place.
    pub places: Places,
}

/// Why a frame of the experimental EtherType is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MessageError {
    /// It is somebody else's.
    #[error("not a probe")]
    Foreign,
    /// It ends too early.
    #[error("{have} bytes of a message of {need}")]
    Truncated {
        /// Bytes that it takes.
        need: usize,
        /// Bytes that are there.
        have: usize,
    },
    /// A version that is not known here.
    #[error("version {0} of probes")]
    Version(u8),
    /// Neither probe nor reply.
    #[error("kind {0} of probes")]
    Kind(u8),
    /// A card that no machine has.
    #[error("card {0}")]
    Lane(u8),
    /// A field that is to be zero is not.
    #[error("a reserved byte is {0}")]
    Reserved(u8),
    /// It was damaged.
    #[error("wrong check sequence")]
    Damaged,
}

const MAGIC: [u8; 4] = *b"fpwy";
const VERSION: u8 = 1;
const PROBE: u8 = 1;
const REPLY: u8 = 2;
const CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);
/// Bytes of a probe, and of a reply, with their check sequences.
const PROBE_LEN: usize = 44;
const REPLY_LEN: usize = 80;
/// The payload of the shortest frame that Ethernet has, and of the longest one.
const SHORTEST: usize = 46;
const LONGEST: usize = 1500;
const _: () = assert!(PROBE_LEN <= SHORTEST);

impl ProbeMessage {
    /// The message in a frame; none if the frame is of another EtherType, or ends at the port.
    pub fn of(packet: &Packet) -> Option<Result<ProbeMessage, MessageError>> {
        let carries = packet.ethernet().is_ok_and(|header| header.ether_type == EtherType::EXPERIMENTAL);
        (carries && !farpace_path::ends_at_port(packet)).then(|| ProbeMessage::parse(packet.payload()))
    }
    /// Reads it.
    ///
    /// # Errors
    /// See [`MessageError`]: nothing is believed of a message with any fault.
    pub fn parse(bytes: &[u8]) -> Result<ProbeMessage, MessageError> {
        let have = bytes.len();
        let mut fields = Fields(bytes);
        if fields.take::<4>().is_none_or(|magic| magic != MAGIC) {
            return Err(MessageError::Foreign);
        }
        let truncated = MessageError::Truncated { need: PROBE_LEN, have };
        let [version, kind, lane, reserved] = fields.take().ok_or(truncated)?;
        if version != VERSION {
            return Err(MessageError::Version(version));
        }
        let need = match kind {
            PROBE => PROBE_LEN,
            REPLY => REPLY_LEN,
            other => return Err(MessageError::Kind(other)),
        };
        let truncated = MessageError::Truncated { need, have };
        let (covered, check) = bytes.get(..need).and_then(<[u8]>::split_last_chunk::<4>).ok_or(truncated)?;
        if CRC.checksum(covered) != u32::from_be_bytes(*check) {
            return Err(MessageError::Damaged);
        }
        if usize::from(lane) >= MAX_NICS {
            return Err(MessageError::Lane(lane));
        }
        if reserved != 0 {
            return Err(MessageError::Reserved(reserved));
        }
        let probe = fields.probe(NicId(lane)).ok_or(truncated)?;
        match kind {
            PROBE => Ok(ProbeMessage::Probe(probe)),
            _ => fields.reply(probe).map(ProbeMessage::Reply).ok_or(truncated),
        }
    }
}

impl PathProbe {
    /// The frame that carries it, the shortest there is.
    pub fn frame(&self, from: MacAddr, to: MacAddr) -> Packet {
        packed(from, to, self.fields(PROBE), SHORTEST)
    }
    /// The frame that carries it, as long as those of data are.
    pub fn long_frame(&self, from: MacAddr, to: MacAddr) -> Packet {
        packed(from, to, self.fields(PROBE), LONGEST)
    }

    fn fields(&self, kind: u8) -> Vec<u8> {
        let mut out = Vec::with_capacity(REPLY_LEN);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[VERSION, kind, self.lane.0, 0]);
        out.extend_from_slice(&self.seq.to_be_bytes());
        out.extend_from_slice(&self.sent_at.as_nanos().to_be_bytes());
        out.extend_from_slice(&self.sent.frames.to_be_bytes());
        out.extend_from_slice(&self.sent.bytes.get().to_be_bytes());
        let rtt = u32::try_from(self.rtt.as_nanos()).unwrap_or(u32::MAX);
        out.extend_from_slice(&rtt.to_be_bytes());
        out
    }
}

impl Reply {
    /// The frame that carries it.
    pub fn frame(&self, from: MacAddr, to: MacAddr) -> Packet {
        let mut out = self.probe.fields(REPLY);
        for number in [self.arrived_at.as_nanos(), self.received.frames, self.received.bytes.get()] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        for number in [self.places.late, self.places.harmful, self.places.overtook] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        packed(from, to, out, SHORTEST)
    }
}

/// Checked and padded.
fn packed(from: MacAddr, to: MacAddr, mut fields: Vec<u8>, len: usize) -> Packet {
    let check = CRC.checksum(&fields);
    fields.extend_from_slice(&check.to_be_bytes());
    let len = len.max(fields.len());
    fields.resize(len, 0);
    Packet::from_link(from, to, EtherType::EXPERIMENTAL, fields.into())
}

/// What is still to be read.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*field)
    }
    fn long(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }
    fn word(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }
    fn traffic(&mut self) -> Option<ProbeTraffic> {
        Some(ProbeTraffic { frames: self.long()?, bytes: ByteCount::new(self.long()?) })
    }
    fn probe(&mut self, lane: NicId) -> Option<PathProbe> {
        Some(PathProbe {
            lane,
            seq: self.word()?,
            sent_at: Instant::from_nanos(self.long()?),
            sent: self.traffic()?,
            rtt: Span::from_nanos(self.word()?.into()),
        })
    }
    fn reply(&mut self, probe: PathProbe) -> Option<Reply> {
        Some(Reply {
            probe,
            arrived_at: Instant::from_nanos(self.long()?),
            received: self.traffic()?,
            places: Places { late: self.word()?, harmful: self.word()?, overtook: self.word()? },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    const B: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

    fn probe() -> PathProbe {
        let sent = ProbeTraffic { frames: 7, bytes: ByteCount::new(9_000) };
        let rtt = Span::from_micros(250);
        PathProbe { lane: NicId(3), seq: 0xdead_beef, sent_at: Instant::from_nanos(12_345), sent, rtt }
    }
    fn reply() -> Reply {
        let received = ProbeTraffic { frames: 6, bytes: ByteCount::new(8_000) };
        let places = Places { late: 3, harmful: 2, overtook: 1 };
        Reply { probe: probe(), arrived_at: Instant::from_nanos(99), received, places }
    }

    /// Breaks: a machine does not understand the probes of another of the same version.
    #[test]
    fn messages_have_the_bytes_that_the_table_says() {
        let frame = probe().frame(A, B);
        assert_eq!(frame.len(), ByteCount::new(60));
        let bytes = frame.payload();
        assert_eq!(&bytes[..12], b"fpwy\x01\x01\x03\x00\xde\xad\xbe\xef");
        assert_eq!(&bytes[12..20], &12_345_u64.to_be_bytes());
        assert_eq!(&bytes[36..40], &250_000_u32.to_be_bytes());
        assert_eq!(ProbeMessage::of(&frame), Some(Ok(ProbeMessage::Probe(probe()))));
        let long = probe().long_frame(A, B);
        assert_eq!(long.len(), ByteCount::new(1_514));
        assert_eq!(ProbeMessage::of(&long), Some(Ok(ProbeMessage::Probe(probe()))));
        let answer = reply().frame(B, A);
        assert_eq!(answer.macs(), (B, A));
        assert_eq!(ProbeMessage::of(&answer), Some(Ok(ProbeMessage::Reply(reply()))));
    }

    /// Breaks: gap frames, which share the EtherType, are taken for probes that are damaged.
    #[test]
    fn frames_that_end_at_the_port_are_nobodys_message() {
        assert_eq!(ProbeMessage::of(&probe().frame(A, A)), None);
        assert_eq!(ProbeMessage::of(&probe().frame(A, MacAddr::NEAREST_BRIDGE)), None);
        let ip = Packet::from_link(A, B, EtherType::ARP, probe().frame(A, B).into_payload());
        assert_eq!(ProbeMessage::of(&ip), None);
    }

    /// Breaks: a message that was cut, damaged, or made up moves traffic from one way to another.
    #[test]
    fn faulty_messages_are_refused() {
        let good = reply().frame(A, B).into_payload();
        for len in 0..REPLY_LEN {
            assert!(ProbeMessage::parse(&good[..len]).is_err(), "{len} bytes");
        }
        for bit in 0..REPLY_LEN * 8 {
            let mut bad = good.to_vec();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(ProbeMessage::parse(&bad).is_err(), "bit {bit}");
        }
        let with = |at: usize, value: u8| {
            let mut bytes = good[..REPLY_LEN - 4].to_vec();
            bytes[at] = value;
            bytes.extend_from_slice(&CRC.checksum(&bytes).to_be_bytes());
            ProbeMessage::parse(&bytes)
        };
        assert_eq!(with(0, b'g'), Err(MessageError::Foreign));
        assert_eq!(with(4, 2), Err(MessageError::Version(2)));
        assert_eq!(with(5, 3), Err(MessageError::Kind(3)));
        assert_eq!(with(6, 16), Err(MessageError::Lane(16)));
        assert_eq!(with(7, 1), Err(MessageError::Reserved(1)));
        assert_eq!(ProbeMessage::parse(b"fpwy"), Err(MessageError::Truncated { need: PROBE_LEN, have: 4 }));
    }

    proptest! {
        /// Breaks: bytes from the line crash the machine, or a message says something else after a round trip.
        #[test]
        fn any_bytes_are_refused_or_read_without_loss(bytes in prop::collection::vec(any::<u8>(), 0..120), valid in any::<bool>()) {
            let mut bytes = bytes;
            if valid && bytes.len() >= REPLY_LEN {
                let lane = bytes[6] % 16;
                bytes[..8].copy_from_slice(&[b'f', b'p', b'w', b'y', VERSION, REPLY, lane, 0]);
                let check = CRC.checksum(&bytes[..REPLY_LEN - 4]);
                bytes[REPLY_LEN - 4..REPLY_LEN].copy_from_slice(&check.to_be_bytes());
            }
            match ProbeMessage::parse(&bytes) {
                Ok(ProbeMessage::Reply(reply)) => {
                    let frame = reply.frame(A, B);
                    prop_assert_eq!(&frame.payload()[..REPLY_LEN], &bytes[..REPLY_LEN]);
                }
                Ok(ProbeMessage::Probe(probe)) => {
                    let frame = probe.frame(A, B);
                    prop_assert_eq!(&frame.payload()[..PROBE_LEN], &bytes[..PROBE_LEN]);
                }
                Err(_) => prop_assert!(!valid || bytes.len() < REPLY_LEN),
            }
        }
    }
}
