//! What goes beside the bytes of a message: control messages (cmsg(3)), where to and where from.

use nix::errno::Errno;
use std::net::SocketAddr;

/// Bytes of `struct cmsghdr`, and what all control messages begin at a multiple of.
const HEADER: usize = 16;
const ALIGN: usize = 8;
/// Bytes of control messages that are taken at most (net.core.optmem_max).
pub const MAX_CONTROL: usize = 131_072;

/// A control message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AncillaryMessage {
    /// SOL_SOCKET, IPPROTO_IP and the like.
    pub level: i32,
    /// Its kind.
    pub kind: i32,
    /// What it says.
    pub data: Vec<u8>,
}

impl AncillaryMessage {
    pub(super) fn of(level: i32, kind: i32, data: impl Into<Vec<u8>>) -> Self {
        AncillaryMessage { level, kind, data: data.into() }
    }

    /// The messages of a buffer.
    ///
    /// # Errors
    /// `EINVAL`: a length that cannot be; `ENOBUFS`: too long.
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

    /// As many of them as `room` bytes hold, and whether something is missing (MSG_CTRUNC).
    pub fn write_all(all: &[AncillaryMessage], room: usize) -> (Vec<u8>, bool) {
        let mut out: Vec<u8> = Vec::new();
        for one in all {
            let left = room - out.len();
            if left < HEADER {
                return (out, true);
            }
            // As put_cmsg does: the last one may be cut.
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

    /// Its data as an `int`, or as one byte where that is allowed.
    pub(super) fn int(&self) -> nix::Result<i32> {
        match self.data[..] {
            [byte] => Ok(byte.into()),
            _ => self.data.first_chunk().map(|b| i32::from_ne_bytes(*b)).ok_or(Errno::EINVAL),
        }
    }
}

/// Where a message goes, and what goes with it.
#[derive(Clone, Debug, Default)]
pub struct SendTo<'a> {
    /// A `struct sockaddr`; none: where the socket is connected to.
    pub to: Option<&'a [u8]>,
    /// Control messages.
    pub control: Vec<AncillaryMessage>,
    /// MSG_MORE, MSG_OOB and the like.
    pub flags: i32,
}

/// What has come.
#[derive(Clone, Debug, Default)]
pub struct ReceivedMessage {
    /// What the call returns: bytes that were copied, or with MSG_TRUNC how long the datagram is.
    pub len: usize,
    /// Bytes that were copied.
    pub copied: usize,
    /// Who it is from, of a datagram.
    pub from: Option<SocketAddr>,
    /// Control messages.
    pub control: Vec<AncillaryMessage>,
    /// MSG_TRUNC, MSG_OOB and the like.
    pub flags: i32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Breaks: what programs say beside their bytes is read wrong, or what they are told.
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
        /// Breaks: a program crashes the stack, or makes it go on for ever, by what stands beside its bytes.
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = AncillaryMessage::read_all(&bytes);
        }
    }
}
