//! Control messages (cmsg(3)), source and destination of messages.

use nix::errno::Errno;
use std::net::SocketAddr;

/// Length of `struct cmsghdr`, and alignment of control messages.
const HEADER: usize = 16;
const ALIGN: usize = 8;
/// Maximum length of the control messages of a call, in bytes (net.core.optmem_max).
pub const MAX_CONTROL: usize = 131_072;

/// A control message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AncillaryMessage {
    /// Level, such as SOL_SOCKET or IPPROTO_IP.
    pub level: i32,
    /// Type.
    pub kind: i32,
    /// Data.
    pub data: Vec<u8>,
}

impl AncillaryMessage {
    pub(super) fn of(level: i32, kind: i32, data: impl Into<Vec<u8>>) -> Self {
        AncillaryMessage { level, kind, data: data.into() }
    }

    /// Parses the control messages of a buffer.
    ///
    /// # Errors
    /// `EINVAL`: an invalid length; `ENOBUFS`: too long.
    pub fn read_all(mut buffer: &[u8]) -> nix::Result<Vec<AncillaryMessage>> {
        let mut all = Vec::new();
        if buffer.len() > MAX_CONTROL {
            return Err(Errno::ENOBUFS);
        }
        while buffer.len() >= HEADER {
            let word = |at: usize| buffer.get(at..)?.first_chunk().map(|b| i32::from_ne_bytes(*b));
            let len = buffer.first_chunk().map_or(0, |b| usize::from_ne_bytes(*b));
            let (Some(level), Some(kind)) = (word(8), word(12)) else { break };
            let data = buffer.get(HEADER..len).ok_or(Errno::EINVAL)?;
            all.push(AncillaryMessage::of(level, kind, data));
            buffer = buffer.get(len.next_multiple_of(ALIGN)..).unwrap_or_default();
        }
        Ok(all)
    }

    /// Encodes as many messages as fit into `room` bytes, and returns whether some are missing (MSG_CTRUNC).
    pub fn write_all(all: &[AncillaryMessage], room: usize) -> (Vec<u8>, bool) {
        let mut out: Vec<u8> = Vec::new();
        for one in all {
            let left = room - out.len();
            if left < HEADER {
                return (out, true);
            }
            // As in put_cmsg: the last message may be truncated.
            let len = (HEADER + one.data.len()).min(left);
            out.extend_from_slice(&len.to_ne_bytes());
            out.extend_from_slice(&one.level.to_ne_bytes());
            out.extend_from_slice(&one.kind.to_ne_bytes());
            out.extend_from_slice(&one.data[..len - HEADER]);
            if len < HEADER + one.data.len() {
                return (out, true);
            }
            out.resize(out.len().next_multiple_of(ALIGN).min(room), 0);
        }
        (out, false)
    }

    /// Its data as an `int`, or as one byte where permitted.
    pub(super) fn int(&self) -> nix::Result<i32> {
        match self.data[..] {
            [byte] => Ok(byte.into()),
            _ => self.data.first_chunk().map(|b| i32::from_ne_bytes(*b)).ok_or(Errno::EINVAL),
        }
    }
}

/// Destination, control messages and flags of a sent message.
#[derive(Clone, Debug, Default)]
pub struct SendTo<'a> {
    /// A `struct sockaddr`; none: the connected peer.
    pub to: Option<&'a [u8]>,
    /// Control messages.
    pub control: Vec<AncillaryMessage>,
    /// Flags such as MSG_MORE and MSG_OOB.
    pub flags: i32,
}

/// A received message.
#[derive(Clone, Debug, Default)]
pub struct ReceivedMessage {
    /// The return value of the call: the number of copied bytes, or with MSG_TRUNC the length of the
    /// datagram.
    pub len: usize,
    /// Number of copied bytes.
    pub copied: usize,
    /// Source address of a datagram.
    pub from: Option<SocketAddr>,
    /// Control messages.
    pub control: Vec<AncillaryMessage>,
    /// Flags such as MSG_TRUNC and MSG_OOB.
    pub flags: i32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Breaks: control messages of programs are parsed exactly, and received ones are encoded exactly.
    #[test]
    fn control_messages_are_read_as_they_are_written() {
        let all = [
            AncillaryMessage::of(0, 8, [1; 12]),
            AncillaryMessage::of(41, 67, 5i32.to_ne_bytes()),
            AncillaryMessage::of(1, 2, []),
        ];
        let (bytes, cut) = AncillaryMessage::write_all(&all, 1000);
        assert_eq!((bytes.len(), cut), (32 + 24 + 16, false));
        assert_eq!(AncillaryMessage::read_all(&bytes).unwrap(), all);
        assert_eq!(AncillaryMessage::write_all(&all, 40), (bytes[..32].to_vec(), true));
        let (cut, missing) = AncillaryMessage::write_all(&all, 52);
        assert!(missing && cut.len() == 52 && cut[32..40] == 20usize.to_ne_bytes());
        assert_eq!(AncillaryMessage::read_all(&[0xff; 16]), Err(Errno::EINVAL));
        assert_eq!(AncillaryMessage::read_all(&[0; 16]), Err(Errno::EINVAL), "shorter than its header");
        assert_eq!(AncillaryMessage::read_all(&[0; 15]), Ok(vec![]));
        assert_eq!(AncillaryMessage::read_all(&vec![0; MAX_CONTROL + 1]), Err(Errno::ENOBUFS));
    }

    proptest! {
        /// Breaks: no control message causes a panic or an endless loop.
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = AncillaryMessage::read_all(&bytes);
        }
    }
}
