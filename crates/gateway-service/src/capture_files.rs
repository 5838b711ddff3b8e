//! The files of one side of a capture: a ring within a limit.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file has at most this part of the limit, so that the rest of the ring holds what came before.
const PARTS: u64 = 4;
/// Files of a side at most: a gateway that is started again and again begins one each time.
const MAX_FILES: usize = 64;
/// What the names of captures end with.
const SUFFIX: &str = ".pcapng";

/// Numbered captures of one side: `lan-000001.pcapng`, `lan-000002.pcapng`, ...
///
/// Each is a whole capture. The oldest is removed when the next block would exceed the limit. Files of
/// earlier processes are part of the ring.
pub struct SideFiles {
    folder: PathBuf,
    name: &'static str,
    limit: u64,
    /// What each file begins with.
    start: Vec<u8>,
    /// Number and length of what was written before, the oldest first.
    old: VecDeque<(u64, u64)>,
    /// The file that is written, and its length.
    current: Option<(File, u64)>,
    /// The number of the current file, or of the next one.
    number: u64,
}

impl SideFiles {
    /// Looks for files of the side in a folder. The first file is made with the first packet.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn open(folder: &Path, name: &'static str, limit: u64, start: Vec<u8>) -> io::Result<Self> {
        let mut old = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            if let Some(number) = number_of(&entry.file_name().to_string_lossy(), name)
                && let Ok(about) = entry.metadata()
                && about.is_file()
            {
                old.push((number, about.len()));
            }
        }
        old.sort_unstable();
        let number = old.last().map_or(1, |(number, _)| number.saturating_add(1));
        Ok(SideFiles {
            folder: folder.to_owned(),
            name,
            limit,
            start,
            old: old.into(),
            current: None,
            number,
        })
    }

    /// Bytes of all files.
    pub fn len(&self) -> u64 {
        let current = self.current.as_ref().map_or(0, |(_, len)| *len);
        self.old.iter().fold(current, |sum, (_, len)| sum.saturating_add(*len))
    }

    /// Writes whole blocks. After an error the last file ends with the last block that is whole.
    ///
    /// # Errors
    /// The disk is full, or fails.
    pub fn write(&mut self, mut blocks: &[u8]) -> io::Result<()> {
        while !blocks.is_empty() {
            let begun = self.current.as_ref().map_or(self.start.len() as u64, |(_, len)| *len);
            let room = (self.limit / PARTS).saturating_sub(begun);
            let fits = whole_blocks(blocks, room);
            if fits == 0 {
                let Some((_, len)) = self.current.take() else {
                    return Err(io::Error::other("a packet is longer than a file may be"));
                };
                self.old.push_back((self.number, len));
                self.number += 1;
                continue;
            }
            let (now, later) = blocks.split_at(fits);
            self.append(now)?;
            blocks = later;
        }
        Ok(())
    }

    fn append(&mut self, blocks: &[u8]) -> io::Result<()> {
        let start = if self.current.is_none() { self.start.len() } else { 0 };
        self.make_room((start + blocks.len()) as u64)?;
        if self.current.is_none() {
            let path = self.path(self.number);
            let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            self.current = Some((file, 0));
            if let Err(error) = self.put_start() {
                // A file without its start is none.
                self.current = None;
                let _ = std::fs::remove_file(&path);
                return Err(error);
            }
        }
        let Some((file, len)) = &mut self.current else { return Ok(()) };
        put(file, len, blocks)
    }

    fn put_start(&mut self) -> io::Result<()> {
        let Some((file, len)) = &mut self.current else { return Ok(()) };
        put(file, len, &self.start)
    }

    /// Removes the oldest files until so many bytes more are within the limit.
    fn make_room(&mut self, bytes: u64) -> io::Result<()> {
        while self.len().saturating_add(bytes) > self.limit || self.old.len() >= MAX_FILES {
            let Some((number, _)) = self.old.pop_front() else { break };
            match std::fs::remove_file(self.path(number)) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{}-{number:06}{SUFFIX}", self.name))
    }
}

/// Appends whole blocks to a file, or nothing.
fn put(file: &mut File, len: &mut u64, blocks: &[u8]) -> io::Result<()> {
    if let Err(error) = file.write_all(blocks) {
        let _ = file.set_len(*len);
        return Err(error);
    }
    *len += blocks.len() as u64;
    Ok(())
}

/// The number in the name of a file of a side.
fn number_of(file: &str, name: &str) -> Option<u64> {
    let digits = file.strip_prefix(name)?.strip_prefix('-')?.strip_suffix(SUFFIX)?;
    let is_number = digits.len() >= 6 && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok())?
}

/// Length of the first blocks that have at most `room` bytes together.
fn whole_blocks(blocks: &[u8], room: u64) -> usize {
    let mut at = 0;
    while let Some(len) = blocks.get(at + 4..at + 8).and_then(|bytes| bytes.first_chunk()) {
        let len = u32::from_le_bytes(*len) as usize;
        if len == 0 || (at + len) as u64 > room || at + len > blocks.len() {
            break;
        }
        at += len;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_trace::{CaptureReader, PcapngWriter};
    use farpace_units::Instant;
    use farpace_wire::{EtherType, MacAddr, Packet};
    use std::io::BufReader;

    const LIMIT: u64 = 64 << 10;

    fn capture() -> PcapngWriter<Vec<u8>> {
        let mut capture = PcapngWriter::new(Vec::new(), "test").unwrap();
        capture.add_interface("lan", "", None).unwrap();
        capture
    }

    fn open(folder: &Path) -> SideFiles {
        SideFiles::open(folder, "lan", LIMIT, capture().finish().unwrap()).unwrap()
    }

    /// Blocks of so many packets, each with its number.
    fn blocks(numbers: std::ops::Range<u64>) -> Vec<u8> {
        let mut capture = capture();
        capture.get_mut().clear();
        for number in numbers {
            let payload = vec![number as u8; 100 + number as usize % 50].into();
            let packet =
                Packet::from_link(MacAddr::default(), MacAddr::default(), EtherType(0x88b5), payload);
            let at = Instant::from_nanos(number);
            capture.packet(farpace_trace::InterfaceId(0), at, &packet, None).unwrap();
        }
        capture.finish().unwrap()
    }

    fn files(folder: &Path) -> Vec<PathBuf> {
        let mut files: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    fn bytes(folder: &Path) -> u64 {
        own(folder).iter().map(|path| path.metadata().unwrap().len()).sum()
    }

    /// The files of the ring.
    fn own(folder: &Path) -> Vec<PathBuf> {
        let mut files = files(folder);
        files.retain(|path| number_of(path.file_name().unwrap().to_str().unwrap(), "lan").is_some());
        files
    }

    /// The numbers of the packets in a file.
    fn numbers(path: &Path) -> Vec<u64> {
        let mut reader = CaptureReader::new(BufReader::new(File::open(path).unwrap())).unwrap();
        let mut numbers = Vec::new();
        while let Some(packet) = reader.next_packet().unwrap() {
            numbers.push(packet.time.as_nanos());
        }
        assert_eq!(reader.interfaces().len(), 1);
        numbers
    }

    /// Breaks: captures exceed their limit and fill the disk, also by gateways that are started again and
    /// again; a file cannot be read; packets between two files are lost; the newest ones are removed, or
    /// files of others.
    #[test]
    fn the_files_are_a_ring_within_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let foreign = ["wan-000001.pcapng", "lan-1.pcapng", "lan-000001.pcap", "lan-x00001.pcapng"];
        foreign.iter().for_each(|name| std::fs::write(folder.path().join(name), "own").unwrap());
        let (mut at, mut next) = (open(folder.path()), 0);
        for round in 0..300_u64 {
            let some = 1 + round * 7 % 60;
            at.write(&blocks(next..next + some)).unwrap();
            next += some;
            assert!(bytes(folder.path()) <= LIMIT, "round {round}");
            assert_eq!(at.len(), bytes(folder.path()));
            if round % 50 == 49 {
                at = open(folder.path());
                assert_eq!(at.len(), bytes(folder.path()));
            }
        }
        let all: Vec<u64> = own(folder.path()).iter().flat_map(|path| numbers(path)).collect();
        assert!(all.windows(2).all(|two| two[1] == two[0] + 1), "{all:?}");
        assert_eq!(all.last(), Some(&(next - 1)));
        assert!(bytes(folder.path()) > LIMIT / 2, "too much was removed");
        assert!(foreign.iter().all(|name| folder.path().join(name).exists()));
        // Each start makes a file.
        for round in 0..2 * MAX_FILES as u64 {
            open(folder.path()).write(&blocks(round..round + 1)).unwrap();
        }
        assert!(files(folder.path()).len() <= MAX_FILES + 1 + foreign.len());
    }

    /// Breaks: the names of files lead out of the directory, or an existing file is overwritten.
    #[test]
    fn nothing_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let mut side = open(folder.path());
        let other = folder.path().join("other");
        std::fs::write(&other, "keep").unwrap();
        std::os::unix::fs::symlink(&other, folder.path().join("lan-000001.pcapng")).unwrap();
        assert_eq!(side.write(&blocks(0..3)).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "keep");
    }
}
