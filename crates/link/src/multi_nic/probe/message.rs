//! Format of probes and replies.

use crate::multi_nic::{MAX_NICS, NicId};
use crc::{CRC_32_ISCSI, Crc};
use farpace_units::{ByteCount, Instant, Span};
use farpace_wire::{EtherType, MacAddr, Packet};
use thiserror::Error;

/// A message between two hosts about the path between two NICs.
///
/// It is the payload of a frame with the experimental EtherType. All numbers are big-endian:
///
/// | bytes | content |
/// |---|---|
/// | 4 | `fpwy` |
/// | 1, 1 | version 1; 1 for a probe, 2 for a reply |
/// | 1, 1 | number of the NIC that sent the probe; zero |
/// | 4 | sequence number of the probe |
/// | 8 | sending time, in ns of the sender's clock |
/// | 8, 8 | frames and wire bytes sent on this path so far, including this probe |
/// | 4 | round trip time of the path in ns, as its sender knows it; zero: unknown |
/// | 8 | *reply:* arrival time of the probe, in ns of the replier's clock |
/// | 8, 8 | *reply:* frames and wire bytes received on this path, including the probe |
/// | 4, 4, 4 | *reply:* late frames, the harmful ones among them, frames of other paths that it overtook |
/// | 4 | CRC-32C of all preceding bytes |
/// | 4 | *reply, may be missing:* how long the replier holds frames to put them in order, in us |
/// | 4 | *with it:* CRC-32C of all preceding bytes |
///
/// Whatever follows is padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeMessage {
    /// A probe.
    Probe(PathProbe),
    /// The reply to it.
    Reply(Reply),
}

/// A number of frames and their wire lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeTraffic {
    /// Frames.
    pub frames: u64,
    /// Bytes on the wire.
    pub bytes: ByteCount,
}

impl ProbeTraffic {
    /// Counts a frame.
    #[inline]
    pub fn add(&mut self, bytes: ByteCount) {
        self.frames = self.frames.saturating_add(1);
        self.bytes += bytes;
    }
    /// The difference to `earlier`; none if the counters have been reset.
    pub fn since(self, earlier: ProbeTraffic) -> Option<ProbeTraffic> {
        let frames = self.frames.checked_sub(earlier.frames)?;
        let bytes = self.bytes.get().checked_sub(earlier.bytes.get())?;
        Some(ProbeTraffic { frames, bytes: ByteCount::new(bytes) })
    }
}

/// Reordered frames of a path. The counters wrap around.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReorderCounts {
    /// Frames that arrived after frames of other paths that were sent later.
    pub late: u32,
    /// Late frames behind so many others that a sender assumes they are lost.
    pub harmful: u32,
    /// Frames of other paths that frames of this path made late.
    pub overtook: u32,
}

/// A probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathProbe {
    /// The NIC of the sender.
    pub nic: NicId,
    /// Sequence number.
    pub seq: u32,
    /// Sending time, by the sender's clock.
    pub sent_at: Instant,
    /// Traffic sent on this path so far, including the probe.
    pub sent: ProbeTraffic,
    /// Round trip time of the path; zero: unknown. Clamped to 4.29 s.
    pub rtt: Span,
}

/// The reply to a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The probe, as received.
    pub probe: PathProbe,
    /// Arrival time of the probe, by the replier's clock, which is not synchronised.
    pub arrived_at: Instant,
    /// Traffic received on this path so far, including the probe.
    pub received: ProbeTraffic,
    /// Reordered frames.
    pub reordered: ReorderCounts,
    /// How long the replier holds frames until earlier ones have come, at most; zero: unknown. In
    /// microseconds.
    pub resequence_time: Span,
}

/// Why a frame of the experimental EtherType is not a valid message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MessageError {
    /// It is of another protocol.
    #[error("not a probe")]
    Foreign,
    /// It is too short.
    #[error("{have} bytes of a message of {need}")]
    Truncated {
        /// Required bytes.
        need: usize,
        /// Available bytes.
        have: usize,
    },
    /// The version is unknown.
    #[error("version {0} of probes")]
    Version(u8),
    /// It is neither a probe nor a reply.
    #[error("kind {0} of probes")]
    Kind(u8),
    /// The number of the NIC is out of range.
    #[error("NIC {0}")]
    Nic(u8),
    /// A reserved byte is not zero.
    #[error("a reserved byte is {0}")]
    Reserved(u8),
    /// The CRC is wrong.
    #[error("wrong check sequence")]
    Damaged,
}

const MAGIC: [u8; 4] = *b"fpwy";
const VERSION: u8 = 1;
const PROBE: u8 = 1;
const REPLY: u8 = 2;
const CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);
/// Lengths of a probe and of a reply, including the CRC.
const PROBE_LEN: usize = 44;
const REPLY_LEN: usize = 80;
/// A reply that tells how long frames are held.
const LONG_REPLY_LEN: usize = 88;
/// Payload lengths of the minimum and the maximum Ethernet frame.
const MIN_PAYLOAD: usize = 46;
const MAX_PAYLOAD: usize = 1500;
const _: () = assert!(PROBE_LEN <= MIN_PAYLOAD);

impl ProbeMessage {
    /// The message in a frame; none if the frame has another EtherType, or ends at the port.
    pub fn of(packet: &Packet) -> Option<Result<ProbeMessage, MessageError>> {
        let carries = packet.ethernet().is_ok_and(|header| header.ether_type == EtherType::EXPERIMENTAL);
        (carries && !farpace_path::ends_at_port(packet)).then(|| ProbeMessage::parse(packet.payload()))
    }
    /// Parses a message.
    ///
    /// # Errors
    /// See [`MessageError`]. An invalid message has no effect.
    pub fn parse(bytes: &[u8]) -> Result<ProbeMessage, MessageError> {
        let have = bytes.len();
        let mut fields = MessageReader(bytes);
        if fields.take::<4>().is_none_or(|magic| magic != MAGIC) {
            return Err(MessageError::Foreign);
        }
        let truncated = MessageError::Truncated { need: PROBE_LEN, have };
        let [version, kind, nic, reserved] = fields.take().ok_or(truncated)?;
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
        if usize::from(nic) >= MAX_NICS {
            return Err(MessageError::Nic(nic));
        }
        if reserved != 0 {
            return Err(MessageError::Reserved(reserved));
        }
        let probe = fields.probe(NicId(nic)).ok_or(truncated)?;
        match kind {
            PROBE => Ok(ProbeMessage::Probe(probe)),
            _ => {
                let reply = fields.reply(probe).ok_or(truncated)?;
                Ok(ProbeMessage::Reply(Reply {
                    resequence_time: resequence_time(bytes).unwrap_or_default(),
                    ..reply
                }))
            }
        }
    }
}

impl PathProbe {
    /// The probe in a frame of minimum length.
    pub fn frame(&self, from: MacAddr, to: MacAddr) -> Packet {
        packed(from, to, self.fields(PROBE), MIN_PAYLOAD)
    }
    /// The probe in a frame of maximum length.
    pub fn long_frame(&self, from: MacAddr, to: MacAddr) -> Packet {
        packed(from, to, self.fields(PROBE), MAX_PAYLOAD)
    }

    fn fields(&self, kind: u8) -> Vec<u8> {
        let mut out = Vec::with_capacity(LONG_REPLY_LEN);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[VERSION, kind, self.nic.0, 0]);
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
    /// The reply in a frame.
    pub fn frame(&self, from: MacAddr, to: MacAddr) -> Packet {
        let mut out = self.probe.fields(REPLY);
        for number in [self.arrived_at.as_nanos(), self.received.frames, self.received.bytes.get()] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        for number in [self.reordered.late, self.reordered.harmful, self.reordered.overtook] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        if let Ok(micros @ 1..) = u32::try_from(self.resequence_time.as_micros()) {
            let check = CRC.checksum(&out);
            out.extend_from_slice(&check.to_be_bytes());
            out.extend_from_slice(&micros.to_be_bytes());
        }
        packed(from, to, out, MIN_PAYLOAD)
    }
}

/// How long frames are held, behind a reply; none: it is not told.
fn resequence_time(bytes: &[u8]) -> Option<Span> {
    let (covered, check) = bytes.get(..LONG_REPLY_LEN)?.split_last_chunk::<4>()?;
    let (_, micros) = covered.split_last_chunk::<4>()?;
    let right = CRC.checksum(covered) == u32::from_be_bytes(*check);
    right.then(|| Span::from_micros(u32::from_be_bytes(*micros).into()))
}

/// Appends the CRC and padding.
fn packed(from: MacAddr, to: MacAddr, mut fields: Vec<u8>, len: usize) -> Packet {
    let check = CRC.checksum(&fields);
    fields.extend_from_slice(&check.to_be_bytes());
    let len = len.max(fields.len());
    fields.resize(len, 0);
    Packet::from_link(from, to, EtherType::EXPERIMENTAL, fields.into())
}

/// The rest of a message that is being parsed.
struct MessageReader<'a>(&'a [u8]);

impl MessageReader<'_> {
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
    fn probe(&mut self, nic: NicId) -> Option<PathProbe> {
        Some(PathProbe {
            nic,
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
            reordered: ReorderCounts { late: self.word()?, harmful: self.word()?, overtook: self.word()? },
            resequence_time: Span::ZERO,
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
        PathProbe { nic: NicId(3), seq: 0xdead_beef, sent_at: Instant::from_nanos(12_345), sent, rtt }
    }
    fn reply() -> Reply {
        let received = ProbeTraffic { frames: 6, bytes: ByteCount::new(8_000) };
        let reordered = ReorderCounts { late: 3, harmful: 2, overtook: 1 };
        Reply {
            probe: probe(),
            arrived_at: Instant::from_nanos(99),
            received,
            reordered,
            resequence_time: Span::ZERO,
        }
    }

    /// Breaks: messages have the documented format, so that hosts of the same version understand each other.
    #[test]
    fn messages_have_the_documented_format() {
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
        assert_eq!(answer.len(), ByteCount::new(94));
        assert_eq!(ProbeMessage::of(&answer), Some(Ok(ProbeMessage::Reply(reply()))));
        let holds = Reply { resequence_time: Span::from_millis(60), ..reply() };
        let told = holds.frame(B, A);
        assert_eq!(told.len(), ByteCount::new(102));
        let bytes = told.payload();
        assert_eq!(&bytes[..80], answer.payload(), "an older version reads this much");
        assert_eq!(&bytes[80..84], &60_000_u32.to_be_bytes());
        assert_eq!(&bytes[84..88], &CRC.checksum(&bytes[..84]).to_be_bytes());
        assert_eq!(ProbeMessage::of(&told), Some(Ok(ProbeMessage::Reply(holds))));
    }

    /// Breaks: a damaged or missing hold time is believed, or makes the rest of the reply unreadable.
    #[test]
    fn a_damaged_hold_time_is_not_told() {
        let good = Reply { resequence_time: Span::from_millis(60), ..reply() }.frame(A, B).into_payload();
        assert_eq!(good.len(), LONG_REPLY_LEN);
        for len in REPLY_LEN..LONG_REPLY_LEN {
            assert_eq!(ProbeMessage::parse(&good[..len]), Ok(ProbeMessage::Reply(reply())), "{len} bytes");
        }
        for bit in REPLY_LEN * 8..LONG_REPLY_LEN * 8 {
            let mut bad = good.to_vec();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(ProbeMessage::parse(&bad), Ok(ProbeMessage::Reply(reply())), "bit {bit}");
        }
    }

    /// Breaks: gap frames, which share the EtherType, are not mistaken for damaged probes.
    #[test]
    fn frames_that_end_at_the_port_are_no_messages() {
        assert_eq!(ProbeMessage::of(&probe().frame(A, A)), None);
        assert_eq!(ProbeMessage::of(&probe().frame(A, MacAddr::NEAREST_BRIDGE)), None);
        let ip = Packet::from_link(A, B, EtherType::ARP, probe().frame(A, B).into_payload());
        assert_eq!(ProbeMessage::of(&ip), None);
    }

    /// Breaks: truncated, damaged and forged messages have no effect.
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
        assert_eq!(with(6, 16), Err(MessageError::Nic(16)));
        assert_eq!(with(7, 1), Err(MessageError::Reserved(1)));
        assert_eq!(ProbeMessage::parse(b"fpwy"), Err(MessageError::Truncated { need: PROBE_LEN, have: 4 }));
    }

    proptest! {
        /// Breaks: no input causes a panic, and valid messages read back unchanged.
        #[test]
        fn any_bytes_are_refused_or_read_without_loss(bytes in prop::collection::vec(any::<u8>(), 0..120), valid in any::<bool>()) {
            let mut bytes = bytes;
            if valid && bytes.len() >= REPLY_LEN {
                let nic = bytes[6] % 16;
                bytes[..8].copy_from_slice(&[b'f', b'p', b'w', b'y', VERSION, REPLY, nic, 0]);
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
