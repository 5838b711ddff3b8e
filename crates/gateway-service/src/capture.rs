//! Captures of both sides of a gateway.
//!
//! The tap is at one place: the wires between the gateway and its two sides. So it sees what the gateway
//! receives and sends, split or passed, in a pair as well. It puts packets into blocks of pcapng, in memory.
//! A thread of its own writes them: a slow disk delays no packet, and an error of the disk ends the capture
//! alone. Each thread of the gateway has a tap; all of them write to the same files.
//!
//! A side has files of its own. Both legs of a connection have the same addresses, ports and sequence
//! numbers, so that in one file a segment of one leg would be a retransmission of the other.

use crate::Note;
use crate::capture_files::SideFiles;
use crate::capture_order::{OrderedBlocks, TakenBlocks};
use anyhow::{Context, Result, bail};
use farpace_gateway::Gateway;
use farpace_live::Driver;
use farpace_path::Port;
use farpace_path::world::{ElementId, Observer, WireId};
use farpace_trace::PcapngWriter;
use farpace_units::{ByteCount, Instant, Span};
use farpace_wire::Packet;
use farpace_wire::icmp::Icmp;
use nix::fcntl::{Flock, FlockArg};
use serde_json::{Value, json};
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Default of [`CaptureConfig::limit`].
pub const DEFAULT_PCAP_LIMIT: ByteCount = ByteCount::new(1 << 30);
/// Least [`CaptureConfig::limit`].
pub const MIN_PCAP_LIMIT: ByteCount = ByteCount::new(1 << 20);
/// Least and greatest [`CaptureConfig::snaplen`]: all headers of TCP, and the longest packet of IP.
pub const SNAPLENS: [u32; 2] = [96, 65_549];

/// The sides, as files and interfaces are named.
const SIDES: [(&str, Port, &str); 2] = [
    ("lan", Gateway::LAN, "the LAN side of the gateway"),
    ("wan", Gateway::WAN, "the WAN side of the gateway"),
];
/// Chunks that wait for the disk at most. Packets of further ones are dropped from the capture, and counted.
const MAX_CHUNKS: usize = 256;
/// For so long the end of a capture waits for the disk.
const MAX_END: Duration = Duration::from_secs(1);
/// What is kept of an ICMP message without its data, and of a packet behind the IP header that it quotes.
const ICMP_HEADER: usize = 8;
const QUOTED: usize = 8;

/// What is captured, and where to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureConfig {
    /// The directory of the files.
    pub folder: PathBuf,
    /// Bytes kept of each packet; none: its headers.
    pub snaplen: Option<u32>,
    /// Bytes of all files together at most.
    pub limit: ByteCount,
}

impl CaptureConfig {
    /// Checks what a single value says.
    ///
    /// # Errors
    /// A number is out of its range, or a name cannot be told.
    pub fn check(&self) -> Result<()> {
        let [least, most] = SNAPLENS;
        if let Some(snaplen) = self.snaplen.filter(|n| !(least..=most).contains(n)) {
            bail!("snaplen is {snaplen}: {least} to {most} B; without it the headers are kept");
        }
        if self.folder.to_str().is_none() {
            bail!("the name of the directory of captures is not UTF-8");
        }
        if self.limit < MIN_PCAP_LIMIT {
            bail!("pcap_limit is {}: at least {MIN_PCAP_LIMIT}", self.limit);
        }
        Ok(())
    }

    /// For [`from_json`](CaptureConfig::from_json).
    pub fn json(&self) -> Value {
        let CaptureConfig { folder, snaplen, limit } = self;
        json!({ "dir": folder.to_string_lossy(), "snaplen_bytes": snaplen, "limit_bytes": limit.get() })
    }

    /// What [`json`](CaptureConfig::json) has made, in another process.
    ///
    /// # Errors
    /// A part is missing, or a number is out of its range.
    pub fn from_json(value: &Value) -> Result<Self> {
        let snaplen = match &value["snaplen_bytes"] {
            Value::Null => None,
            number => Some(number.as_u64().and_then(|n| u32::try_from(n).ok()).context("no snaplen")?),
        };
        let folder = PathBuf::from(value["dir"].as_str().context("no directory")?);
        let limit = ByteCount::new(value["limit_bytes"].as_u64().context("no limit")?);
        let config = CaptureConfig { folder, snaplen, limit };
        config.check()?;
        Ok(config)
    }
}

/// Blocks of packets of a side.
struct Chunk {
    side: usize,
    blocks: Vec<u8>,
    packets: u64,
}

/// What both threads count.
#[derive(Default)]
struct CaptureCounts {
    packets: AtomicU64,
    bytes: AtomicU64,
    dropped: AtomicU64,
    ended: Mutex<Option<String>>,
}

impl CaptureCounts {
    fn view(&self, config: &CaptureConfig) -> CaptureView {
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        CaptureView {
            config: config.clone(),
            packets: count(&self.packets),
            bytes: count(&self.bytes),
            dropped: count(&self.dropped),
            ended: self.ended.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

/// The files of a capture. They can be opened in any thread.
pub struct CaptureFiles {
    feed: CaptureFeed,
    done: Receiver<()>,
}

/// The way of packets to the files. Each thread of the gateway has one; clones are the same.
#[derive(Clone)]
pub struct CaptureFeed(Arc<CaptureInput>);

struct CaptureInput {
    config: CaptureConfig,
    sides: Vec<Mutex<OrderedBlocks>>,
    sender: SyncSender<Chunk>,
    counts: Arc<CaptureCounts>,
    /// The thread has ended.
    is_over: AtomicBool,
}

impl CaptureFiles {
    /// Makes the directory, if it is not there, and starts the thread that writes. A line about its end goes
    /// to `note` if the disk is the reason.
    ///
    /// # Errors
    /// The directory cannot be used, or another gateway uses it.
    pub fn open(config: CaptureConfig, note: Note) -> Result<Self> {
        config.check()?;
        let shown = config.folder.display().to_string();
        let lock = lock(&config.folder).with_context(|| format!("cannot write captures to {shown}"))?;
        // Both sides share the limit.
        let limit = config.limit.get() / SIDES.len() as u64;
        let (mut sides, mut buffers) = (Vec::new(), Vec::new());
        for (side, (name, ..)) in SIDES.into_iter().enumerate() {
            let start = writer(side).and_then(PcapngWriter::finish);
            let files = start.and_then(|start| SideFiles::open(&config.folder, name, limit, start));
            sides.push(files.with_context(|| format!("cannot write captures to {shown}"))?);
            buffers.push(Mutex::new(OrderedBlocks::new(writer(side)?)));
        }
        let (sender, receiver) = sync_channel::<Chunk>(MAX_CHUNKS);
        let counts = Arc::new(CaptureCounts::default());
        let (end, done) = channel();
        let kept = counts.clone();
        let write = move || {
            // The lock goes first: who sees the end may begin again.
            let (_end, _lock) = (end, lock);
            let ended = write_all(&receiver, &mut sides, &kept);
            if let Err(error) = ended {
                let text = format!("the capture to {shown} has ended: {error}");
                note(&format!("{text}; the gateway goes on without it"));
                *kept.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
            }
        };
        std::thread::Builder::new()
            .name("capture".to_owned())
            .spawn(write)
            .context("cannot start a thread")?;
        let is_over = AtomicBool::new(false);
        let input = CaptureInput { config, sides: buffers, sender, counts, is_over };
        Ok(CaptureFiles { feed: CaptureFeed(Arc::new(input)), done })
    }

    /// For a [`GatewayCapture`].
    pub fn feed(&self) -> CaptureFeed {
        self.feed.clone()
    }

    /// The disk is full, or fails.
    pub fn have_failed(&self) -> bool {
        self.feed.0.counts.ended.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// What it does.
    pub fn view(&self) -> CaptureView {
        let CaptureInput { config, counts, .. } = &*self.feed.0;
        counts.view(config)
    }

    /// What was captured so far, but for the latest packets, goes to the files.
    pub fn flush(&self) {
        self.feed.0.flush(false);
    }

    /// Ends the capture, whose [`GatewayCapture`]s have ended, and waits a moment for the disk.
    pub fn end(self) -> CaptureView {
        self.feed.0.flush(true);
        let CaptureInput { config, counts, .. } = &*self.feed.0;
        let (config, counts) = (config.clone(), counts.clone());
        // The thread ends when nobody can send to it.
        drop(self.feed);
        // An error means that it has ended.
        let _ = self.done.recv_timeout(MAX_END);
        counts.view(&config)
    }
}

/// Makes the directory for this user alone, if it is not there, and keeps other gateways from it.
fn lock(folder: &Path) -> io::Result<Flock<File>> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    Flock::lock(File::open(folder)?, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| match error {
        nix::errno::Errno::EWOULDBLOCK => {
            io::Error::other("a capture runs there already: name another directory")
        }
        other => other.into(),
    })
}

fn write_all(receiver: &Receiver<Chunk>, sides: &mut [SideFiles], counts: &CaptureCounts) -> io::Result<()> {
    for Chunk { side, blocks, packets } in receiver {
        let Some(files) = sides.get_mut(side) else { continue };
        files.write(&blocks)?;
        counts.packets.fetch_add(packets, Ordering::Relaxed);
        counts.bytes.store(sides.iter().map(SideFiles::len).sum(), Ordering::Relaxed);
    }
    Ok(())
}

/// A file of a side, whose packets' times count from 1970-01-01.
fn writer(side: usize) -> io::Result<PcapngWriter<Vec<u8>>> {
    let (name, _, description) = SIDES[side];
    let writer = PcapngWriter::new(Vec::new(), "farpace gateway")?;
    // The files bound themselves.
    let mut writer = writer.with_limit(ByteCount::MAX);
    writer.add_interface(name, description, None)?;
    Ok(writer)
}

/// A capture as others see it.
#[derive(Clone, Debug)]
pub struct CaptureView {
    config: CaptureConfig,
    packets: u64,
    bytes: u64,
    dropped: u64,
    ended: Option<String>,
}

impl CaptureView {
    /// For programs.
    pub fn json(&self) -> Value {
        let mut value = self.config.json();
        if let Some(object) = value.as_object_mut() {
            let more = [
                ("packets", json!(self.packets)),
                ("bytes", json!(self.bytes)),
                ("dropped_packets", json!(self.dropped)),
                ("ended", json!(self.ended)),
            ];
            object.extend(more.map(|(key, value)| (key.to_owned(), value)));
        }
        value
    }
}

/// What captures in one thread of the gateway: the observer of its driver.
pub struct GatewayCapture {
    feed: CaptureFeed,
    /// When the time of the driver began, since 1970-01-01.
    epoch: Span,
    /// The side of each wire.
    wires: Vec<(WireId, usize)>,
}

impl GatewayCapture {
    /// Captures from now on what the gateway receives and sends, until the driver gets another observer.
    ///
    /// # Errors
    /// The gateway is not there.
    pub fn begin(feed: CaptureFeed, driver: &mut Driver, gateway: ElementId) -> Result<()> {
        let epoch = driver.epoch();
        let mut wires = Vec::new();
        for (side, (_, port, _)) in SIDES.into_iter().enumerate() {
            let world = driver.world_mut();
            let near = (gateway, port);
            let far = world.peer(near).context("a side of the gateway is not connected")?;
            for end in [near, far] {
                wires.push((world.observe(end)?, side));
            }
        }
        driver.set_observer(Box::new(GatewayCapture { feed, epoch, wires }));
        Ok(())
    }
}

impl CaptureInput {
    fn write(&self, time: Instant, side: usize, packet: &Packet) {
        let keep = match self.config.snaplen {
            Some(snaplen) => snaplen as usize,
            None => headers_of(packet),
        };
        let Some(blocks) = self.sides.get(side) else { return };
        // Under the lock, so that the chunks of a side stay in order.
        let mut blocks = blocks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(taken) = blocks.put(time, packet, keep) {
            self.hand_over(side, taken);
        }
    }

    fn flush(&self, all: bool) {
        for (side, blocks) in self.sides.iter().enumerate() {
            let mut blocks = blocks.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(taken) = blocks.take(all) {
                self.hand_over(side, taken);
            }
        }
    }

    /// Gives the thread a chunk. If it does not keep up, the packets are dropped.
    fn hand_over(&self, side: usize, (blocks, packets): TakenBlocks) {
        match self.sender.try_send(Chunk { side, blocks, packets }) {
            Ok(()) => {}
            Err(TrySendError::Full(chunk)) => {
                self.counts.dropped.fetch_add(chunk.packets, Ordering::Relaxed);
            }
            Err(TrySendError::Disconnected(_)) => self.is_over.store(true, Ordering::Relaxed),
        }
    }
}

/// Bytes of the headers of a packet. Of an error of ICMP they include the addresses and ports of the packet
/// that it quotes.
fn headers_of(packet: &Packet) -> usize {
    let headers = packet.headers().len();
    match packet.icmp() {
        Ok(Icmp::EchoRequest { .. } | Icmp::EchoReply { .. }) => headers + ICMP_HEADER,
        Ok(_) => {
            let ip = if packet.ipv6().is_some() { 40 } else { 20 };
            headers + ICMP_HEADER + ip + QUOTED
        }
        Err(_) => headers,
    }
}

impl Observer for GatewayCapture {
    fn packet(&mut self, now: Instant, wire: WireId, packet: &Packet) {
        let Some(side) = self.wires.iter().find(|(own, _)| *own == wire).map(|(_, side)| *side) else {
            return;
        };
        let (time, input) = (now + self.epoch, &self.feed.0);
        match packet.segment_size() {
            _ if input.is_over.load(Ordering::Relaxed) => {}
            None => input.write(time, side, packet),
            Some(_) => packet.clone().split_segments(|part| input.write(time, side, &part)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_wire::{EtherType, MacAddr};

    fn config(folder: &Path) -> CaptureConfig {
        CaptureConfig { folder: folder.to_owned(), snaplen: Some(SNAPLENS[1]), limit: MIN_PCAP_LIMIT }
    }

    /// Breaks: a disk that does not keep up takes the memory of the gateway, or packets are left out and not
    /// counted.
    #[test]
    fn what_waits_for_the_disk_is_bounded() {
        let (sender, receiver) = sync_channel(MAX_CHUNKS);
        let counts = Arc::new(CaptureCounts::default());
        let input = CaptureInput {
            config: config(Path::new("/")),
            sides: vec![Mutex::new(OrderedBlocks::new(writer(0).unwrap()))],
            sender,
            counts: counts.clone(),
            is_over: AtomicBool::new(false),
        };
        let payload = vec![7; 60_000].into();
        let packet = Packet::from_link(MacAddr::default(), MacAddr::default(), EtherType(0x88b5), payload);
        for n in 0..2_000 {
            input.write(Instant::ZERO + Span::from_secs(n), 0, &packet);
        }
        input.flush(true);
        let waits: Vec<_> = receiver.try_iter().collect();
        assert_eq!(waits.len(), MAX_CHUNKS);
        assert!(waits.iter().map(|chunk| chunk.blocks.len()).sum::<usize>() <= 32 << 20);
        let dropped = counts.dropped.load(Ordering::Relaxed);
        assert_eq!(waits.iter().map(|chunk| chunk.packets).sum::<u64>() + dropped, 2_000);
        assert!(dropped > 0);
        // The thread has ended.
        drop(receiver);
        input.write(Instant::ZERO, 0, &packet);
        input.flush(true);
        assert!(input.is_over.load(Ordering::Relaxed));
    }

    /// Breaks: two gateways write to one directory, or a directory stays locked after the end of a capture.
    #[test]
    fn a_directory_has_one_capture() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("a/b");
        let first = CaptureFiles::open(config(&folder), |_| {}).unwrap();
        let error = CaptureFiles::open(config(&folder), |_| {}).err().unwrap();
        assert!(format!("{error:#}").contains("a capture runs there already"), "{error:#}");
        let CaptureFiles { feed, done } = first;
        drop(feed);
        let _ = done.recv_timeout(Duration::from_secs(10));
        CaptureFiles::open(config(&folder), |_| {}).unwrap();
        assert!(
            CaptureFiles::open(CaptureConfig { limit: ByteCount::new(1), ..config(&folder) }, |_| {})
                .is_err()
        );
    }

    /// Breaks: a configuration that another process has sent is taken for another one.
    #[test]
    fn a_configuration_passes_the_control_socket() {
        for snaplen in [None, Some(96)] {
            let config = CaptureConfig { snaplen, ..config(Path::new("/a \"b\"\n")) };
            let text = config.json().to_string();
            assert!(!text.contains('\n'), "a request is a line");
            assert_eq!(CaptureConfig::from_json(&serde_json::from_str(&text).unwrap()).unwrap(), config);
        }
        for text in ["{}", "{\"dir\":\"/\"}", "{\"dir\":\"/\",\"limit_bytes\":1}", "[]"] {
            assert!(CaptureConfig::from_json(&serde_json::from_str(text).unwrap()).is_err(), "{text}");
        }
    }
}
