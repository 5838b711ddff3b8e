//! A campaign against `farpace recv`: random hostile peers, many at once, against the real command. They
//! leave at any point, stop reading, say nothing, lie. Meanwhile honest senders get through; afterwards every
//! place, thread, descriptor and partial file is gone, and the processor is idle.
//!
//! `FARPACE_SEED` repeats a campaign, `FARPACE_ATTACKS` makes it longer; `make soak` runs a long one.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "helpers of tests")]

use farpace_transfer::message::{EntryKind, FileEntry, FileTime, TransferMessage};
use farpace_transfer::{Code, ContentHasher, FrameWriter, RelPath, Role, Session, TransferFault, shake};
use farpace_units::RandomStream;
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const FARPACE: &str = env!("CARGO_BIN_EXE_farpace");
/// Attackers at once. More than there are places, and than there are places for those who have proved
/// nothing.
const AT_ONCE: u64 = 80;
/// What a receiver is told to bear: `--timeout`, `--keep-partial`.
const TIMEOUT: &str = "2";
const KEEP: &str = "2";
/// After the handshake's 10 s, the 2 s of silence and the 3 s of partial files all is gone; a busy machine
/// may need longer, a place that is held for ever would never be free.
const GONE: Duration = Duration::from_secs(120);
/// Kilobytes that a receiver with 4 transfers and 64 unproven connections may hold at its highest.
const MAX_MEMORY: u64 = 400_000;

struct Receiver {
    child: Child,
    port: u16,
}

impl Receiver {
    fn start(dir: &Path, args: &[&str]) -> Receiver {
        let mut command = Command::new(FARPACE);
        command.args(["recv", "--insecure", "--listen", "127.0.0.1:0", "--dir"]).arg(dir);
        command.args([
            "--timeout",
            TIMEOUT,
            "--keep-partial",
            KEEP,
            "--max-transfers",
            "4",
            "--min-free",
            "0",
        ]);
        command.args(args).env_remove("FARPACE_TOKEN").stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        errors.read_line(&mut line).unwrap();
        // It must not wait for somebody to read what it says.
        std::thread::spawn(move || errors.read_to_end(&mut Vec::new()));
        let at = line.split_whitespace().nth(2).expect(&line).to_owned();
        Receiver { child, port: at.rsplit_once(':').unwrap().1.parse().unwrap() }
    }
    fn proc(&self, name: &str) -> std::path::PathBuf {
        Path::new("/proc").join(self.child.id().to_string()).join(name)
    }
    /// Descriptors and threads.
    fn holds(&self) -> (usize, usize) {
        let count = |name| fs::read_dir(self.proc(name)).unwrap().count();
        (count("fd"), count("task"))
    }
    /// Hundredths of a second of processor time.
    fn worked(&self) -> u64 {
        let stat = fs::read_to_string(self.proc("stat")).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }
    fn highest_memory(&self) -> u64 {
        let status = fs::read_to_string(self.proc("status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection from one of many addresses of this machine.
fn connection(rng: &mut RandomStream, port: u16) -> Option<TcpStream> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).ok()?;
    let from = Ipv4Addr::new(127, 0, 1 + rng.below(3) as u8, 1 + rng.below(20) as u8);
    bind(&socket, &SocketAddrV4::new(from, 0)).ok()?;
    connect(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).ok()?;
    let stream = TcpStream::from(socket);
    // A receiver that does not read must not hold up the campaign.
    let timeout = Some(Duration::from_secs(3));
    stream.set_write_timeout(timeout).ok()?;
    stream.set_read_timeout(timeout).ok()?;
    Some(stream)
}

fn path(rng: &mut RandomStream) -> RelPath {
    let names = ["a", "b", "l", "dir", "film", ".h"];
    let names: Vec<_> = (0..=rng.below(3)).map(|_| names[rng.below(names.len() as u64) as usize]).collect();
    RelPath::new(names.join("/").as_bytes()).unwrap()
}

fn entries(rng: &mut RandomStream) -> Vec<FileEntry> {
    let mut entries: Vec<_> = (0..rng.below(12))
        .map(|_| {
            let targets = ["..", "a/..", "l/../..", "/etc", ".", "dir/x", "a/b/../../.."];
            let kind = match rng.below(8) {
                0 => EntryKind::Directory,
                1 => {
                    let target = targets[rng.below(targets.len() as u64) as usize];
                    EntryKind::Link { target: target.as_bytes().to_vec() }
                }
                2 => EntryKind::File { size: i64::MAX as u64 },
                3 => EntryKind::File { size: 1 << rng.below(63) },
                _ => EntryKind::File { size: rng.below(100_000) },
            };
            let mode = rng.below(0o1000) as u16;
            FileEntry {
                path: path(rng),
                kind,
                mode,
                modified: FileTime { seconds: rng.next_u64() as i64, nanos: 0 },
            }
        })
        .collect();
    if rng.chance(0.9) {
        entries.sort_by(|a, b| {
            if a.path.comes_after(&b.path) { std::cmp::Ordering::Greater } else { std::cmp::Ordering::Less }
        });
        entries.dedup_by(|a, b| a.path == b.path);
    }
    entries
}

/// Messages that get far, and some that do not.
fn lie(rng: &mut RandomStream, out: &mut FrameWriter<TcpStream>) -> std::io::Result<()> {
    let mut next = 0;
    let mut files = Vec::new();
    for _ in 0..rng.below(30) {
        match rng.below(12) {
            0..3 => {
                let entries = entries(rng);
                let sizes = entries.iter().map(|entry| match entry.kind {
                    EntryKind::File { size } => Some(size),
                    _ => None,
                });
                files.extend((next..).zip(sizes).filter_map(|(index, size)| Some((index, size?))));
                let first = next;
                next += entries.len() as u64;
                out.message(&TransferMessage::Offer { first, entries })?;
            }
            3..7 if !files.is_empty() => {
                let (index, mut left) = files.remove(rng.below(files.len() as u64) as usize);
                out.message(&TransferMessage::Begin { index, offset: 0 })?;
                let mut hasher = ContentHasher::default();
                while left > 0 && rng.chance(0.8) {
                    if rng.chance(0.5) {
                        let len = if rng.chance(0.5) { left } else { 1 + rng.below(left) };
                        out.message(&TransferMessage::Hole { len })?;
                        hasher.zeros(len);
                        left -= len;
                    } else {
                        let bytes = vec![rng.below(3) as u8; 1 + rng.below(left.min(200_000)) as usize];
                        out.data_header(bytes.len())?;
                        out.raw(&bytes)?;
                        hasher.update(&bytes);
                        left -= bytes.len() as u64;
                    }
                }
                match rng.below(6) {
                    0 => out.message(&TransferMessage::Abandon(TransferFault::new(Code::Changed, "lie")))?,
                    1 => out.message(&TransferMessage::End { hash: [0; 32] })?,
                    2 => {}
                    _ => out.message(&TransferMessage::End { hash: hasher.result() })?,
                }
            }
            7 => out.message(&TransferMessage::Hole { len: rng.next_u64() })?,
            8 => out.message(&TransferMessage::Seal {
                whole: rng.chance(0.5),
                path: path(rng),
                mode: 0,
                modified: FileTime::default(),
            })?,
            9 => out.message(&TransferMessage::Busy)?,
            10 if rng.chance(0.3) => out.message(&TransferMessage::Finish { missed: rng.below(3) })?,
            11 if rng.chance(0.3) => {
                let mut bytes = vec![0; rng.below(50) as usize];
                rng.fill(&mut bytes);
                out.raw(&bytes)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Goes on until the receiver has had enough, or this long.
fn for_long(rng: &mut RandomStream, mut what: impl FnMut() -> std::io::Result<()>) {
    let until = Instant::now() + Duration::from_millis(rng.below(6_000));
    while Instant::now() < until && what().is_ok() {
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn attack(seed: u64, port: u16, token: &[u8]) -> Option<()> {
    let rng = &mut RandomStream::new(seed, "attack");
    let mut stream = connection(rng, port)?;
    let kind = rng.below(10);
    let hello = [&b"farpace\n"[..], &[2, 2, 1, 0], &[9; 32]].concat();
    match kind {
        0 => for_long(rng, || Ok(())),
        1 => {
            let mut bytes = vec![0; rng.below(100_000) as usize];
            rng.fill(&mut bytes);
            let _ = stream.write_all(&bytes);
        }
        2 => {
            let _ = stream.write_all(&hello[..rng.below(44) as usize]);
            for_long(rng, || Ok(()));
        }
        3 => {
            // A frame of a megabyte that never comes, byte by byte.
            let _ = stream.write_all(&hello);
            for_long(rng, || stream.write_all(&[1]));
        }
        _ => {
            let moved = AtomicU64::new(0);
            let token = if rng.chance(0.1) { b"wrong" } else { token };
            let (reader, writer) = (stream.try_clone().ok()?, stream.try_clone().ok()?);
            let session = Session { token, ..Session::default() };
            let (mut reader, mut out) = shake(reader, writer, &session, Role::Sends, &moved).ok()?;
            let mut sender = [0; 32];
            sender[0] = rng.below(3) as u8;
            out.message(&TransferMessage::Summary { entries: 1_000, bytes: 1 << 40, roots: 1, sender })
                .ok()?;
            match kind {
                4 => for_long(rng, || Ok(())),
                5 => for_long(rng, || out.message(&TransferMessage::Busy)),
                6 => {
                    let entry = FileEntry {
                        path: RelPath::new(b"slow").unwrap(),
                        kind: EntryKind::File { size: 1 << 40 },
                        mode: 0o644,
                        modified: FileTime::default(),
                    };
                    out.message(&TransferMessage::Offer { first: 0, entries: vec![entry] }).ok()?;
                    out.message(&TransferMessage::Begin { index: 0, offset: 0 }).ok()?;
                    for_long(rng, || out.data_header(1).and_then(|()| out.raw(b"x")));
                }
                _ => {
                    let _ = lie(rng, &mut out);
                    match rng.below(3) {
                        // Reads what comes, for a while.
                        0 => for_long(rng, || match reader.next(&mut Vec::new()) {
                            Ok(_) => Ok(()),
                            Err(_) => Err(std::io::ErrorKind::Other.into()),
                        }),
                        // Reads nothing.
                        1 => for_long(rng, || Ok(())),
                        // Is gone.
                        _ => {}
                    }
                }
            }
        }
    }
    if rng.chance(0.5) {
        // A reset in place of an end.
        let _ = rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
    }
    Some(())
}

/// Sends a file as people do. What it says if it does not arrive.
fn honest(receiver: &Receiver, from: &Path, name: &str, token: &str) -> Result<(), String> {
    fs::write(from.join(name), name.repeat(1_000)).unwrap();
    let mut command = Command::new(FARPACE);
    command
        .args(["send", "--insecure"])
        .arg(from.join(name))
        .arg(format!("127.0.0.1:{}", receiver.port))
        .arg("--quiet");
    command.env_remove("FARPACE_TOKEN").env("XDG_STATE_HOME", from.join("state"));
    if !token.is_empty() {
        command.args(["--token", token]);
    }
    let output = command.output().unwrap();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// Honest senders that come one after the other while the others attack: each gets through in the end.
fn honest_ones(receiver: &Receiver, from: &Path, token: &str, attacking: impl Fn() -> bool) -> u32 {
    let mut sent = 0;
    while attacking() || sent < 3 {
        let due = Instant::now() + GONE;
        while let Err(why) = honest(receiver, from, &format!("honest{sent}"), token) {
            // What somebody else has sent under this name would be a fault of the campaign.
            assert!(
                why.contains("try again later") || why.contains("closed") || why.contains("broke"),
                "{why}"
            );
            assert!(Instant::now() < due, "an honest sender does not get through: {why}");
            std::thread::sleep(Duration::from_millis(200));
        }
        sent += 1;
    }
    sent
}

fn everything(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(everything(&path));
        }
        found.push(path);
    }
    found
}

fn campaign(seed: u64, attacks: u64, server_token: &str, attackers_token: &str) {
    println!("FARPACE_SEED={seed}");
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("in/side");
    fs::create_dir_all(&dir).unwrap();
    fs::write(folder.path().join("in/file"), "ours").unwrap();
    let args: &[&str] = if server_token.is_empty() { &[] } else { &["--token", server_token] };
    let receiver = Receiver::start(&dir, args);
    // One transfer, so that what is made once is there.
    honest(&receiver, folder.path(), "first", server_token).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let (descriptors, threads) = receiver.holds();
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let attackers: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        let n = next.fetch_add(1, Ordering::Relaxed);
                        if n >= attacks {
                            break;
                        }
                        attack(seed.wrapping_add(n), receiver.port, attackers_token.as_bytes());
                    }
                })
            })
            .collect();
        let attacking = || attackers.iter().any(|attacker| !attacker.is_finished());
        let sent = honest_ones(&receiver, folder.path(), server_token, attacking);
        println!("{attacks} attacks, {sent} honest transfers");
    });
    let due = Instant::now() + GONE;
    let left = || {
        let partial = |path: &std::path::PathBuf| path.to_string_lossy().contains(".strangers.farpace-part");
        let partials = everything(&dir).iter().filter(|path| partial(path)).count();
        let before = receiver.worked();
        std::thread::sleep(Duration::from_millis(500));
        (receiver.holds(), partials, receiver.worked() - before)
    };
    loop {
        let now @ ((fds, tasks), partials, work) = left();
        if fds <= descriptors && tasks <= threads && partials == 0 && work < 25 {
            break;
        }
        assert!(
            Instant::now() < due,
            "descriptors and threads, partial files, processor time: {now:?}, and at first {descriptors}, \
             {threads}"
        );
    }
    let highest = receiver.highest_memory();
    assert!(highest < MAX_MEMORY, "{highest} kB");
    let root = dir.canonicalize().unwrap();
    for path in everything(&dir) {
        let leads_to = path.canonicalize().unwrap_or(root.clone());
        assert!(leads_to.starts_with(&root), "{path:?} leads to {leads_to:?}");
    }
    assert_eq!(fs::read_dir(folder.path().join("in")).unwrap().count(), 2);
    assert_eq!(fs::read_to_string(folder.path().join("in/file")).unwrap(), "ours");
}

fn seed() -> u64 {
    std::env::var("FARPACE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

fn attacks() -> u64 {
    std::env::var("FARPACE_ATTACKS").ok().and_then(|attacks| attacks.parse().ok()).unwrap_or(400)
}

/// Breaks: strangers stop a receiver that everybody may send to, or leave something of themselves in it.
#[test]
fn strangers_leave_nothing_behind() {
    campaign(seed(), attacks(), "", "");
}

/// Breaks: those who do not know the token keep those out who do.
#[test]
fn who_does_not_know_the_token_keeps_nobody_out() {
    campaign(seed(), attacks(), "sesame", "guess");
}

/// Breaks: somebody who knows the token and lies stops a receiver for good.
#[test]
fn who_knows_the_token_leaves_nothing_behind() {
    campaign(seed(), attacks(), "sesame", "sesame");
}
