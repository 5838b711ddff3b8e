//! The first bytes: who speaks which version in which role, and whether both know the same token.
//!
//! The side that connected says hello first, so that a scan of ports learns nothing. Hello is 44 bytes:
//! ```text
//! magic 8 | lowest version 1 | highest version 1 | role 1 (1 sends, 2 receives) | 1 if secured below, or 0 |
//! nonce 32 ```
//! Over a line that is encrypted, and whose ends have proved their keys, there are neither token nor tags.
//!
//! The keys of both directions come from the token and both hellos; each side proves its own with a tagged
//! `Ready`, the one that connected first. Over a secured line that side waits for nothing: what it says
//! depends on nothing that the other says, and the first messages follow at once.

use crate::fault::{Code, TransferError, TransferFault};
use crate::frame::{FrameKey, FrameReader, FrameWriter, HEADER, IncomingFrame, read_all, refusal};
use crate::limits::MAX_TEXT;
use crate::line::Session;
use crate::message::{REFUSE, TransferMessage};
use std::io::{self, Read, Write};
use std::sync::atomic::AtomicU64;

const MAGIC: &[u8; 8] = b"farpace\n";
const VERSION: u8 = 3;
const HELLO: usize = 44;
const TO_LISTENER: &str = "farpace transfer 2: from the side that connected";
const TO_CONNECTOR: &str = "farpace transfer 2: from the side that listened";

/// What a side does with files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It sends them.
    Sends = 1,
    /// It receives them.
    Receives = 2,
}

/// Frames in both directions, once both sides have proved the token.
pub type Frames<'a, R, W> = (FrameReader<'a, Peeked<R>>, FrameWriter<W>);

/// What the other side says, once the handshake is over.
pub(crate) enum AwaitedFrames<'a, R> {
    /// It is over.
    Ready(FrameReader<'a, Peeked<R>>),
    /// The other side has not answered yet.
    Hello {
        /// What it says.
        reader: R,
        /// What this side does.
        role: Role,
        /// Counts bytes that come.
        moved: &'a AtomicU64,
    },
}

impl<'a, R: Read> AwaitedFrames<'a, R> {
    /// Waits for the end of the handshake.
    ///
    /// # Errors
    /// As [`shake`].
    pub fn wait(self, session: &Session<'_>) -> Result<FrameReader<'a, Peeked<R>>, TransferError> {
        let (mut reader, role, moved) = match self {
            AwaitedFrames::Ready(frames) => return Ok(frames),
            AwaitedFrames::Hello { reader, role, moved } => (reader, role, moved),
        };
        let theirs = read_hello(&mut reader, moved)?;
        // The other side finds the same by itself.
        check(&theirs, role, session.secured).map_err(TransferError::Own)?;
        let mut frames = ready(reader, None, moved)?;
        expect_ready(&mut frames)?;
        (session.admit)().map_err(TransferError::Own)?;
        Ok(frames)
    }
}

/// Does the handshake over a fresh line. `session` has the token, which side this is, and whether the other
/// is admitted. `moved` counts bytes that come.
///
/// # Errors
/// The line breaks, the other side says what makes no sense, does not know the token, or is not admitted.
pub fn shake<'a, R: Read, W: Write>(
    reader: R,
    writer: W,
    session: &Session<'_>,
    role: Role,
    moved: &'a AtomicU64,
) -> Result<Frames<'a, R, W>, TransferError> {
    let (awaited, frames) = greet(reader, writer, session, role, moved)?;
    Ok((awaited.wait(session)?, frames))
}

/// As [`shake`], but does not wait for the other side where what this side says next does not depend on it.
pub(crate) fn greet<'a, R: Read, W: Write>(
    mut reader: R,
    mut writer: W,
    session: &Session<'_>,
    role: Role,
    moved: &'a AtomicU64,
) -> Result<(AwaitedFrames<'a, R>, FrameWriter<W>), TransferError> {
    let Session { token, connected, secured, .. } = *session;
    let mut nonce = [0; 32];
    rustix::rand::getrandom(&mut nonce, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| TransferFault::of(&error.into(), "no random numbers"))
        .map_err(TransferError::Own)?;
    let mut own = [0; HELLO];
    for (to, from) in own
        .iter_mut()
        .zip(MAGIC.iter().chain(&[VERSION, VERSION, role as u8, u8::from(secured)]).chain(&nonce))
    {
        *to = *from;
    }
    if connected {
        writer.write_all(&own)?;
        if secured {
            let mut frames = FrameWriter::new(writer, None);
            frames.message(&TransferMessage::Ready)?;
            frames.flush()?;
            return Ok((AwaitedFrames::Hello { reader, role, moved }, frames));
        }
        writer.flush()?;
    }
    let theirs = read_hello(&mut reader, moved)?;
    if !connected {
        writer.write_all(&own)?;
        writer.flush()?;
    }
    check(&theirs, role, secured).map_err(|fault| refuse(&mut writer, fault))?;
    let (first, second) = if connected { (&own, &theirs) } else { (&theirs, &own) };
    let material = [&(token.len() as u64).to_be_bytes(), token, first, second].concat();
    let to_listener = FrameKey(blake3::derive_key(TO_LISTENER, &material));
    let to_connector = FrameKey(blake3::derive_key(TO_CONNECTOR, &material));
    let (our_key, their_key) =
        if connected { (to_listener, to_connector) } else { (to_connector, to_listener) };
    let (our_key, their_key) = if secured { (None, None) } else { (Some(our_key), Some(their_key)) };
    if connected {
        let mut frames = FrameWriter::new(writer, our_key);
        frames.message(&TransferMessage::Ready)?;
        frames.flush()?;
        let mut reader = ready(reader, their_key, moved)?;
        expect_ready(&mut reader)?;
        (session.admit)().map_err(TransferError::Own)?;
        return Ok((AwaitedFrames::Ready(reader), frames));
    }
    let mut reader = ready(reader, their_key, moved)?;
    match expect_ready(&mut reader) {
        Err(TransferError::Protocol(_)) => {
            let text = "the tokens differ: give both sides the same --token";
            return Err(refuse(&mut writer, TransferFault::new(Code::Token, text)));
        }
        other => other?,
    }
    (session.admit)().map_err(|fault| refuse(&mut writer, fault))?;
    let mut frames = FrameWriter::new(writer, our_key);
    frames.message(&TransferMessage::Ready)?;
    frames.flush()?;
    Ok((AwaitedFrames::Ready(reader), frames))
}

/// The hello of the other side.
fn read_hello(mut reader: impl Read, moved: &AtomicU64) -> Result<[u8; HELLO], TransferError> {
    let mut theirs = [0; HELLO];
    // The magic first: who says something else is not kept waiting for the rest.
    let (magic, rest) = theirs.split_at_mut(MAGIC.len());
    read_all(&mut reader, magic, moved)?;
    if magic != MAGIC {
        return Err(TransferError::Protocol("the first bytes are others"));
    }
    read_all(&mut reader, rest, moved)?;
    Ok(theirs)
}

/// Whether a side that says this hello is one for this one.
fn check(theirs: &[u8; HELLO], role: Role, secured: bool) -> Result<(), TransferFault> {
    let [_, _, _, _, _, _, _, _, lowest, highest, their_role, their_line, ..] = *theirs;
    if lowest > VERSION || highest < VERSION {
        let text = format!(
            "its versions of the protocol are {lowest} to {highest}, ours is {VERSION}: update the older \
             farpace"
        );
        return Err(TransferFault::new(Code::Version, text));
    }
    if their_role == role as u8 {
        let text = if role == Role::Sends { "both sides send" } else { "both sides receive" };
        return Err(TransferFault::new(Code::Role, text));
    }
    if (their_line == 1) != secured {
        let text = "one side takes the line for encrypted and the other does not: give both a ticket, or \
                    both --insecure";
        return Err(TransferFault::new(Code::Token, text));
    }
    Ok(())
}

fn refuse(writer: &mut impl Write, fault: TransferFault) -> TransferError {
    let (_, payload) = TransferMessage::Failed(fault.clone()).encode();
    // If it cannot be told, it cannot be helped.
    let _ = writer.write_all(&refusal(&payload)).and_then(|()| writer.flush());
    TransferError::Own(fault)
}

/// A reader of which a few bytes have been looked at.
pub struct Peeked<R> {
    head: Vec<u8>,
    rest: R,
}

impl<R: Read> Read for Peeked<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.head.is_empty() {
            return self.rest.read(into);
        }
        let n = self.head.len().min(into.len());
        for (to, from) in into.iter_mut().zip(self.head.drain(..n)) {
            *to = from;
        }
        Ok(n)
    }
}

/// Looks at the first frame: a refusal is told, and what proves the token is left to be read as a frame. Who
/// has proved nothing yet cannot make us hold anything else.
fn ready<R: Read>(
    mut reader: R,
    key: Option<FrameKey>,
    moved: &AtomicU64,
) -> Result<FrameReader<'_, Peeked<R>>, TransferError> {
    let mut head = [0; HEADER];
    read_all(&mut reader, &mut head, moved)?;
    let [kind, a, b, c, d] = head;
    if kind == REFUSE {
        let len = u32::from_be_bytes([a, b, c, d]) as usize;
        if len > MAX_TEXT + 3 {
            return Err(TransferError::Protocol("a refusal that is too long"));
        }
        let mut payload = vec![0; len];
        read_all(&mut reader, &mut payload, moved)?;
        return Err(match TransferMessage::decode(15, &payload) {
            Ok(TransferMessage::Failed(fault)) => TransferError::Peer(fault),
            _ => TransferError::Protocol("a refusal that makes no sense"),
        });
    }
    if head != [1, 0, 0, 0, 0] {
        return Err(TransferError::Protocol("its first message is another"));
    }
    Ok(FrameReader::new(Peeked { head: head.to_vec(), rest: reader }, key, moved))
}

fn expect_ready<R: Read>(reader: &mut FrameReader<'_, R>) -> Result<(), TransferError> {
    match reader.next(&mut Vec::new())? {
        IncomingFrame::Message(TransferMessage::Ready) => Ok(()),
        _ => Err(TransferError::Protocol("its first message is another")),
    }
}
