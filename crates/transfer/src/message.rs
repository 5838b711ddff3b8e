//! The messages of the protocol, and their encoding. Numbers are big endian; docs/transfer.md has the table.

use crate::fault::{Code, TransferFault, clean};
use crate::limits::{MAX_CONTROL, MAX_ENTRIES, MAX_OFFER, MAX_PATH, MAX_SIZE, MAX_TEXT};
use crate::line::SenderKey;
use crate::path::RelPath;
use std::time::Duration;

/// The hash of a content, as [`ContentHasher`](crate::ContentHasher) defines it.
pub type Hash = [u8; 32];

/// The type of data frames.
pub const DATA: u8 = 7;
/// The type of a refusal, the only control frame without a tag.
pub const REFUSE: u8 = 2;

/// The type of messages that only signal work in progress.
pub const BUSY: u8 = 16;

/// The kind of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A file.
    File {
        /// Its size in bytes.
        size: u64,
    },
    /// A directory.
    Directory,
    /// A symbolic link.
    Link {
        /// Its target.
        target: Vec<u8>,
    },
}

/// A time of a file: seconds since 1970, negative before, and nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileTime {
    /// Seconds.
    pub seconds: i64,
    /// Nanoseconds within the second, below 1,000,000,000.
    pub nanos: u32,
}

/// A file, directory or link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// Its path within the transfer.
    pub path: RelPath,
    /// Its kind.
    pub kind: EntryKind,
    /// Permissions of owner, group and others; no other bits.
    pub mode: u16,
    /// Time of the last change of its content.
    pub modified: FileTime,
}

/// The answer of the receiver to an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileVerdict {
    /// Send it from the beginning.
    Send,
    /// This many bytes exist, with this hash.
    Resume {
        /// Bytes from the beginning.
        offset: u64,
        /// Their hash.
        hash: Hash,
    },
    /// A complete file of this size exists, with this hash.
    Have {
        /// Its hash.
        hash: Hash,
        /// Send it from the beginning if the sender's hash differs.
        replace: bool,
    },
    /// It is a directory or a link and was created.
    Made,
    /// In a dry run: the directory, or a link with this target, is there.
    There,
    /// It is refused.
    Refused(TransferFault),
}

/// A control message. `S`: sent by the sender of files; `R`: by their receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransferMessage {
    /// Both, first: proves the token.
    Ready,
    /// S, first: a summary of the transfer.
    Summary {
        /// Files, directories and links.
        entries: u64,
        /// Bytes in all files.
        bytes: u64,
        /// Number of names at the top level.
        roots: u32,
        /// Key by which the receiver recognises a sender without token; zeros: none.
        sender: SenderKey,
    },
    /// S: the next entries.
    Offer {
        /// Index of the first entry, counted from 0 over the whole transfer.
        first: u64,
        /// The entries.
        entries: Vec<FileEntry>,
    },
    /// R: the verdicts, one per entry.
    Answers {
        /// Index of the first entry.
        first: u64,
        /// The verdicts.
        verdicts: Vec<FileVerdict>,
    },
    /// S: the content of this file follows, from this offset.
    Begin {
        /// Index of the entry.
        index: u64,
        /// 0, or the offset of the verdict to resume.
        offset: u64,
    },
    /// S, once, after the first offer: the content of its first file follows from the beginning, before the
    /// verdict is known. With verdict [`Send`](FileVerdict::Send) this is as [`Begin`](Self::Begin).
    Ahead {
        /// Index of the entry.
        index: u64,
    },
    /// S: the verdict is another one. What came since [`Ahead`](Self::Ahead) is of no use.
    Withdraw,
    /// S: zeros of the file, which need not be stored.
    Hole {
        /// Bytes.
        len: u64,
    },
    /// S: end of the file, with the hash of the whole file.
    End {
        /// The hash.
        hash: Hash,
    },
    /// S: the current file will not be completed.
    Abandon(TransferFault),
    /// S: the directory is complete; its permissions and time can be set.
    Seal {
        /// All of it was offered: what the receiver has besides may be deleted.
        whole: bool,
        /// Its path.
        path: RelPath,
        /// Permissions.
        mode: u16,
        /// Time of the last change.
        modified: FileTime,
    },
    /// R: the file was written and verified (no fault), or not.
    Done {
        /// Index of the entry.
        index: u64,
        /// The fault.
        fault: Option<TransferFault>,
    },
    /// Both: something was not transferred, for a reason that the other side does not know yet.
    Missed {
        /// Its path, for people.
        path: String,
        /// Why.
        fault: TransferFault,
    },
    /// S: the file that may be replaced has the same content. It gets its permissions and time.
    Same {
        /// Index of the entry.
        index: u64,
    },
    /// S: the end of the transfer.
    Finish {
        /// How much was not sent for reasons of the sender, with what [`Missed`](Self::Missed) has told.
        missed: u64,
    },
    /// R, last: everything received was written.
    Finished {
        /// Files written.
        files: u64,
        /// Bytes received for them.
        bytes: u64,
        /// Time in disk writes.
        disk: Duration,
        /// Time in hashing.
        hash: Duration,
        /// Time waiting for the network.
        waited: Duration,
        /// How much failed that the sender does not know, with what [`Missed`](Self::Missed) has told.
        missed: u64,
    },
    /// Both: the transfer cannot continue.
    Failed(TransferFault),
    /// Both: work is in progress.
    Busy,
}

impl TransferMessage {
    /// Its type and payload.
    pub fn encode(&self) -> (u8, Vec<u8>) {
        let mut to = Vec::new();
        let kind = match self {
            TransferMessage::Ready => 1,
            TransferMessage::Summary { entries, bytes, roots, sender } => {
                put64(&mut to, *entries);
                put64(&mut to, *bytes);
                to.extend(roots.to_be_bytes());
                to.extend(sender);
                3
            }
            TransferMessage::Offer { first, entries } => {
                put64(&mut to, *first);
                put16(&mut to, entries.len());
                entries.iter().for_each(|entry| put_entry(&mut to, entry));
                4
            }
            TransferMessage::Answers { first, verdicts } => {
                put64(&mut to, *first);
                put16(&mut to, verdicts.len());
                verdicts.iter().for_each(|verdict| put_verdict(&mut to, verdict));
                5
            }
            TransferMessage::Begin { index, offset } => {
                put64(&mut to, *index);
                put64(&mut to, *offset);
                6
            }
            TransferMessage::Hole { len } => {
                put64(&mut to, *len);
                8
            }
            TransferMessage::End { hash } => {
                to.extend(hash);
                9
            }
            TransferMessage::Abandon(fault) => {
                put_fault(&mut to, fault);
                10
            }
            TransferMessage::Seal { whole, path, mode, modified } => {
                to.push(u8::from(*whole));
                put_bytes(&mut to, path.as_bytes());
                to.extend(mode.to_be_bytes());
                put_time(&mut to, *modified);
                11
            }
            TransferMessage::Done { index, fault } => {
                put64(&mut to, *index);
                to.push(u8::from(fault.is_some()));
                if let Some(fault) = fault {
                    put_fault(&mut to, fault);
                }
                12
            }
            TransferMessage::Finish { missed } => {
                put64(&mut to, *missed);
                13
            }
            TransferMessage::Finished { files, bytes, disk, hash, waited, missed } => {
                put64(&mut to, *files);
                put64(&mut to, *bytes);
                for time in [disk, hash, waited] {
                    put64(&mut to, u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
                }
                put64(&mut to, *missed);
                14
            }
            TransferMessage::Failed(fault) => {
                put_fault(&mut to, fault);
                15
            }
            TransferMessage::Busy => BUSY,
            TransferMessage::Ahead { index } => {
                put64(&mut to, *index);
                17
            }
            TransferMessage::Withdraw => 18,
            TransferMessage::Same { index } => {
                put64(&mut to, *index);
                20
            }
            TransferMessage::Missed { path, fault } => {
                put_bytes(&mut to, path.as_bytes());
                put_fault(&mut to, fault);
                19
            }
        };
        (kind, to)
    }

    /// Decodes a message of this type.
    ///
    /// # Errors
    /// What is invalid: an unknown type, too few or too many bytes, a value beyond its limit.
    pub fn decode(kind: u8, payload: &[u8]) -> Result<TransferMessage, &'static str> {
        let mut from = FieldReader(payload);
        let message = match kind {
            1 => TransferMessage::Ready,
            3 => {
                let (entries, bytes) = (from.u64()?, from.u64()?);
                let roots = u32::from_be_bytes(from.array()?);
                if entries > MAX_ENTRIES || bytes > MAX_SIZE {
                    return Err("more than a transfer may have");
                }
                TransferMessage::Summary { entries, bytes, roots, sender: from.array()? }
            }
            4 => TransferMessage::Offer { first: from.u64()?, entries: from.list(FieldReader::entry)? },
            5 => TransferMessage::Answers { first: from.u64()?, verdicts: from.list(FieldReader::verdict)? },
            6 => TransferMessage::Begin { index: from.u64()?, offset: from.u64()? },
            8 => TransferMessage::Hole { len: from.u64()? },
            9 => TransferMessage::End { hash: from.array()? },
            10 => TransferMessage::Abandon(from.fault()?),
            11 => TransferMessage::Seal {
                whole: from.u8()? != 0,
                path: from.path()?,
                mode: from.mode()?,
                modified: from.time()?,
            },
            12 => TransferMessage::Done {
                index: from.u64()?,
                fault: if from.u8()? == 0 { None } else { Some(from.fault()?) },
            },
            13 => TransferMessage::Finish { missed: from.u64()? },
            14 => TransferMessage::Finished {
                files: from.u64()?,
                bytes: from.u64()?,
                disk: Duration::from_nanos(from.u64()?),
                hash: Duration::from_nanos(from.u64()?),
                waited: Duration::from_nanos(from.u64()?),
                missed: from.u64()?,
            },
            15 => TransferMessage::Failed(from.fault()?),
            BUSY => TransferMessage::Busy,
            17 => TransferMessage::Ahead { index: from.u64()? },
            18 => TransferMessage::Withdraw,
            20 => TransferMessage::Same { index: from.u64()? },
            19 => TransferMessage::Missed { path: from.text(MAX_PATH)?, fault: from.fault()? },
            _ => return Err("a message of a type that is not known"),
        };
        if from.0.is_empty() { Ok(message) } else { Err("a message is longer than it should be") }
    }
}

/// Encoded length of `entry` in an offer.
pub(crate) fn entry_len(entry: &FileEntry) -> usize {
    let target = if let EntryKind::Link { target } = &entry.kind { target.len() } else { 0 };
    entry.path.as_bytes().len() + target + 32
}
/// A whole offer can be refused with texts of maximum length.
const _: () = assert!(10 + MAX_OFFER * (MAX_TEXT + 4) <= MAX_CONTROL);

fn put64(to: &mut Vec<u8>, n: u64) {
    to.extend(n.to_be_bytes());
}
fn put16(to: &mut Vec<u8>, n: usize) {
    to.extend(u16::try_from(n).unwrap_or(u16::MAX).to_be_bytes());
}
fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    put16(to, bytes.len());
    to.extend(bytes);
}
fn put_time(to: &mut Vec<u8>, time: FileTime) {
    to.extend(time.seconds.to_be_bytes());
    to.extend(time.nanos.to_be_bytes());
}
fn put_fault(to: &mut Vec<u8>, fault: &TransferFault) {
    to.push(fault.code as u8);
    put_bytes(to, fault.text.as_bytes());
}
fn put_entry(to: &mut Vec<u8>, entry: &FileEntry) {
    put_bytes(to, entry.path.as_bytes());
    to.extend(entry.mode.to_be_bytes());
    put_time(to, entry.modified);
    match &entry.kind {
        EntryKind::File { size } => {
            to.push(0);
            put64(to, *size);
        }
        EntryKind::Directory => to.push(1),
        EntryKind::Link { target } => {
            to.push(2);
            put_bytes(to, target);
        }
    }
}
fn put_verdict(to: &mut Vec<u8>, verdict: &FileVerdict) {
    match verdict {
        FileVerdict::Send => to.push(0),
        FileVerdict::Resume { offset, hash } => {
            to.push(1);
            put64(to, *offset);
            to.extend(hash);
        }
        FileVerdict::Have { hash, replace } => {
            to.push(2);
            to.push(u8::from(*replace));
            to.extend(hash);
        }
        FileVerdict::Made => to.push(3),
        FileVerdict::Refused(fault) => {
            to.push(4);
            put_fault(to, fault);
        }
        FileVerdict::There => to.push(5),
    }
}

struct FieldReader<'a>(&'a [u8]);

impl FieldReader<'_> {
    fn bytes(&mut self, len: usize) -> Result<&[u8], &'static str> {
        let (bytes, rest) = self.0.split_at_checked(len).ok_or("a message ends too early")?;
        self.0 = rest;
        Ok(bytes)
    }
    fn array<const N: usize>(&mut self) -> Result<[u8; N], &'static str> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or("a message ends too early")?;
        self.0 = rest;
        Ok(*bytes)
    }
    fn u8(&mut self) -> Result<u8, &'static str> {
        self.array().map(u8::from_be_bytes)
    }
    fn u16(&mut self) -> Result<usize, &'static str> {
        self.array().map(|bytes| usize::from(u16::from_be_bytes(bytes)))
    }
    fn u64(&mut self) -> Result<u64, &'static str> {
        self.array().map(u64::from_be_bytes)
    }
    fn list<T>(&mut self, item: fn(&mut Self) -> Result<T, &'static str>) -> Result<Vec<T>, &'static str> {
        let count = self.u16()?;
        if count > MAX_OFFER {
            return Err("more entries at once than allowed");
        }
        (0..count).map(|_| item(self)).collect()
    }
    fn path(&mut self) -> Result<RelPath, &'static str> {
        let len = self.u16()?;
        RelPath::new(self.bytes(len)?)
    }
    fn mode(&mut self) -> Result<u16, &'static str> {
        Ok(u16::from_be_bytes(self.array()?) & 0o777)
    }
    fn time(&mut self) -> Result<FileTime, &'static str> {
        let seconds = i64::from_be_bytes(self.array()?);
        let nanos = u32::from_be_bytes(self.array()?);
        if nanos >= 1_000_000_000 { Err("a time that is none") } else { Ok(FileTime { seconds, nanos }) }
    }
    fn fault(&mut self) -> Result<TransferFault, &'static str> {
        Ok(TransferFault { code: Code::of(self.u8()?), text: self.text(MAX_TEXT)? })
    }
    /// A text of at most `most` bytes, for people.
    fn text(&mut self, most: usize) -> Result<String, &'static str> {
        let len = self.u16()?;
        if len > most {
            return Err("a text that is too long");
        }
        Ok(clean(&String::from_utf8_lossy(self.bytes(len)?)))
    }
    fn entry(&mut self) -> Result<FileEntry, &'static str> {
        let (path, mode, modified) = (self.path()?, self.mode()?, self.time()?);
        let kind = match self.u8()? {
            0 => EntryKind::File { size: self.u64()? },
            1 => EntryKind::Directory,
            2 => {
                let len = self.u16()?;
                if len > MAX_PATH {
                    return Err("the target of a link is too long");
                }
                EntryKind::Link { target: self.bytes(len)?.to_owned() }
            }
            _ => return Err("an entry of a kind that is not known"),
        };
        if matches!(kind, EntryKind::File { size } if size > MAX_SIZE) {
            return Err("a file that is too large");
        }
        Ok(FileEntry { path, kind, mode, modified })
    }
    fn verdict(&mut self) -> Result<FileVerdict, &'static str> {
        Ok(match self.u8()? {
            0 => FileVerdict::Send,
            1 => FileVerdict::Resume { offset: self.u64()?, hash: self.array()? },
            2 => FileVerdict::Have { replace: self.u8()? != 0, hash: self.array()? },
            3 => FileVerdict::Made,
            4 => FileVerdict::Refused(self.fault()?),
            5 => FileVerdict::There,
            _ => return Err("a verdict that is not known"),
        })
    }
}

#[cfg(test)]
mod tests;
