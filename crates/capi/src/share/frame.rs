//! Encoding of requests and answers.

/// Maximum number of data bytes per frame: a stream continues in the next frame, and no datagram is longer.
pub const MAX_DATA: usize = 1 << 16;
/// Maximum length of an option's value in an answer.
pub const MAX_VALUE: usize = 1 << 14;
/// Maximum length of control messages.
pub const MAX_CONTROL: usize = 4096;
/// Maximum length of an address.
const MAX_NAME: usize = 128;
/// Length of the header: the operation, four numbers, two lengths.
const HEAD: usize = 4 + 4 * 8 + 4 + 4;
/// Maximum length of a frame.
pub const MAX_FRAME: usize = HEAD + MAX_NAME + MAX_CONTROL + MAX_DATA;
/// Length of an absent field.
const NONE: u32 = u32::MAX;

/// Operations that a process requests from the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// socket(2): a descriptor.
    Socket,
    /// The type of a descriptor's socket.
    Know,
    /// bind(2).
    Bind,
    /// listen(2).
    Listen,
    /// accept(2): a descriptor.
    Accept,
    /// connect(2), with a descriptor that replaces that of the request if necessary.
    Connect,
    /// shutdown(2).
    Shutdown,
    /// getsockname(2).
    Local,
    /// getpeername(2).
    Peer,
    /// FIONREAD.
    Available,
    /// SIOCOUTQ and SIOCOUTQNSD.
    Unacknowledged,
    /// SIOCATMARK.
    AtMark,
    /// recvmsg(2).
    Receive,
    /// sendmsg(2).
    Send,
    /// setsockopt(2).
    SetOption,
    /// getsockopt(2).
    Option,
    /// SO_ERROR.
    TakeError,
    /// The state that a waiting call needs.
    State,
    /// The program knows of the established connection.
    ReportOpen,
    /// The program knows of the failed connection.
    ForgetFailed,
}

impl Op {
    const ALL: [Op; 20] = [
        Op::Socket,
        Op::Know,
        Op::Bind,
        Op::Listen,
        Op::Accept,
        Op::Connect,
        Op::Shutdown,
        Op::Local,
        Op::Peer,
        Op::Available,
        Op::Unacknowledged,
        Op::AtMark,
        Op::Receive,
        Op::Send,
        Op::SetOption,
        Op::Option,
        Op::TakeError,
        Op::State,
        Op::ReportOpen,
        Op::ForgetFailed,
    ];
    /// Its code in a frame.
    pub fn word(self) -> u32 {
        self as u32
    }
    /// The operation of a code.
    pub fn of(word: u32) -> Option<Op> {
        Op::ALL.get(usize::try_from(word).ok()?).copied()
    }
}

/// A message between a process and the owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShareFrame<'a> {
    /// The [`Op`] of a request, or the error of an answer.
    pub word: u32,
    /// Arguments, or results.
    pub numbers: [i64; 4],
    /// A `struct sockaddr`.
    pub name: Option<&'a [u8]>,
    /// Control messages.
    pub control: &'a [u8],
    /// Data, or the value of an option.
    pub data: &'a [u8],
}

impl<'a> ShareFrame<'a> {
    /// Encodes everything but the data, which follow; none: it is too long.
    pub fn head(&self) -> Option<Vec<u8>> {
        let name = self.name.unwrap_or_default();
        if name.len() > MAX_NAME || self.control.len() > MAX_CONTROL {
            return None;
        }
        let mut out = Vec::with_capacity(HEAD + name.len() + self.control.len());
        out.extend_from_slice(&self.word.to_ne_bytes());
        self.numbers.iter().for_each(|number| out.extend_from_slice(&number.to_ne_bytes()));
        let name_len = self.name.map_or(NONE, |name| name.len() as u32);
        out.extend_from_slice(&name_len.to_ne_bytes());
        out.extend_from_slice(&(self.control.len() as u32).to_ne_bytes());
        out.extend_from_slice(name);
        out.extend_from_slice(self.control);
        Some(out)
    }

    /// Decodes a frame; none: it is invalid.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let (head, rest) = bytes.split_at_checked(HEAD)?;
        let short = |at: usize| Some(u32::from_ne_bytes(*head.get(at..)?.first_chunk()?));
        let mut numbers = [0; 4];
        for (number, bytes) in numbers.iter_mut().zip(head.get(4..)?.chunks_exact(8)) {
            *number = i64::from_ne_bytes(bytes.try_into().ok()?);
        }
        let name_len = short(36)?;
        let len = if name_len == NONE { 0 } else { usize::try_from(name_len).ok()? };
        let (name, rest) = rest.split_at_checked(len)?;
        let (control, data) = rest.split_at_checked(usize::try_from(short(40)?).ok()?)?;
        if name.len() > MAX_NAME || control.len() > MAX_CONTROL || data.len() > MAX_DATA {
            return None;
        }
        Some(ShareFrame { word: short(0)?, numbers, name: (name_len != NONE).then_some(name), control, data })
    }

    /// An argument as a C `int`.
    pub fn int(&self, at: usize) -> i32 {
        self.numbers.get(at).and_then(|number| i32::try_from(*number).ok()).unwrap_or(i32::MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Breaks: requests of a child are decoded as they were encoded.
    #[test]
    fn frames_are_read_as_they_are_written() {
        for (n, op) in Op::ALL.into_iter().enumerate() {
            assert_eq!((op.word() as usize, Op::of(op.word())), (n, Some(op)));
        }
        assert_eq!(Op::of(Op::ALL.len() as u32), None);
        let frame = ShareFrame {
            word: 7,
            numbers: [1, -2, i64::MAX, 0],
            name: Some(&[1, 2]),
            control: &[3],
            data: &[4, 5],
        };
        for frame in [
            frame.clone(),
            ShareFrame { name: None, ..frame.clone() },
            ShareFrame { name: Some(&[]), ..frame },
        ] {
            let bytes = [&frame.head().unwrap()[..], frame.data].concat();
            assert_eq!(ShareFrame::read(&bytes), Some(frame.clone()));
            assert_eq!(ShareFrame::read(&bytes[..HEAD - 1]), None);
        }
        let long = vec![0; MAX_DATA + 1];
        assert!(ShareFrame { control: &long, ..ShareFrame::default() }.head().is_none());
        assert!(ShareFrame { name: Some(&long), ..ShareFrame::default() }.head().is_none());
        assert_eq!(ShareFrame::read(&[&ShareFrame::default().head().unwrap()[..], &long].concat()), None);
    }

    proptest! {
        /// Breaks: no request of a child causes a panic.
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = ShareFrame::read(&bytes);
        }
    }
}
