//! Whole transfers over streams in memory's place: Unix socket pairs. Trees, resumption, tampering, peers
//! that lie.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "helpers of tests")]

use farpace_transfer::{
    Code, Destination, FramedStream, LineProgress, ReceiveReport, SendReport, Session, Timeouts,
    TransferError, WritePolicy, receive, send, walk,
};
use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

fn line(stream: UnixStream) -> FramedStream {
    let (reader, closer) = (stream.try_clone().unwrap(), stream.try_clone().unwrap());
    FramedStream {
        reader: Box::new(reader),
        writer: Box::new(stream),
        close: Box::new(move || drop(closer.shutdown(Shutdown::Both))),
    }
}

const TIMEOUTS: Timeouts = Timeouts { handshake: Duration::from_secs(5), idle: Duration::from_secs(20) };

struct Trial<'a> {
    tokens: (&'a str, &'a str),
    policy: WritePolicy,
    stop: &'a (dyn Fn(&LineProgress) -> bool + Sync),
    limit: Option<u64>,
}

impl Default for Trial<'_> {
    fn default() -> Self {
        Trial { tokens: ("t", "t"), policy: WritePolicy::default(), stop: &|_| false, limit: None }
    }
}

type Outcome = (Result<SendReport, TransferError>, Result<ReceiveReport, TransferError>);

impl Trial<'_> {
    fn run(&self, paths: &[PathBuf], to: &Path) -> Outcome {
        let (a, b) = UnixStream::pair().unwrap();
        self.over(line(a), line(b), paths, to)
    }
    fn over(&self, a: FramedStream, b: FramedStream, paths: &[PathBuf], to: &Path) -> Outcome {
        let place = Destination::new(to, self.policy.clone()).unwrap();
        let walk = walk(paths).unwrap();
        std::thread::scope(|scope| {
            let receiver = scope.spawn(|| {
                let token = self.tokens.1.as_bytes();
                let dry_run = self.policy.dry_run;
                let session =
                    Session { token, connected: false, dry_run, timeouts: TIMEOUTS, ..Session::default() };
                receive(b, &session, &place)
            });
            let token = self.tokens.0.as_bytes();
            let (timeouts, dry_run) = (TIMEOUTS, self.policy.dry_run);
            let session = Session { token, timeouts, dry_run, tick: self.stop, ..Session::default() };
            let sent = send(a, &session, walk, self.limit.map(farpace_units::Rate::from_mbit));
            (sent, receiver.join().unwrap())
        })
    }
}

/// Bytes that do not repeat.
fn noise(len: usize, seed: &str) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(seed.as_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

fn listing(dir: &Path) -> Vec<String> {
    let mut names = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            names.push(path.strip_prefix(dir).unwrap().display().to_string());
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            }
        }
    }
    names.sort();
    names
}

/// Breaks: trees arrive with other bytes, names, times, permissions or links.
#[test]
fn a_tree_arrives_as_it_was() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let tree = from.path().join("tree");
    fs::create_dir_all(tree.join("empty")).unwrap();
    fs::create_dir_all(tree.join("read only")).unwrap();
    for (name, len) in [("zero", 0), ("one", 1), ("read only/block", 1 << 20), ("long", (3 << 20) + 17)] {
        fs::write(tree.join(name), noise(len, name)).unwrap();
    }
    symlink("long", tree.join("link")).unwrap();
    fs::set_permissions(tree.join("one"), fs::Permissions::from_mode(0o711)).unwrap();
    fs::set_permissions(tree.join("read only"), fs::Permissions::from_mode(0o555)).unwrap();
    let (sent, received) = Trial::default().run(std::slice::from_ref(&tree), to.path());
    let (sent, received) = (sent.unwrap(), received.unwrap());
    assert_eq!((sent.files, sent.failed, received.files, received.failed), (4, 0, 4, 0));
    let copy = to.path().join("tree");
    assert_eq!(listing(&tree), listing(&copy));
    for name in ["zero", "one", "read only/block", "long"] {
        assert_eq!(fs::read(tree.join(name)).unwrap(), fs::read(copy.join(name)).unwrap(), "{name}");
    }
    assert_eq!(fs::read_link(copy.join("link")).unwrap(), Path::new("long"));
    for name in ["one", "read only", "long", "."] {
        let (a, b) = (fs::metadata(tree.join(name)).unwrap(), fs::metadata(copy.join(name)).unwrap());
        assert_eq!((a.mtime(), a.mtime_nsec(), a.mode()), (b.mtime(), b.mtime_nsec(), b.mode()), "{name}");
    }
}

/// Breaks: a second run sends all again, or replaces files that differ without being told to.
#[test]
fn what_is_there_is_neither_sent_nor_replaced() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let paths: Vec<_> = ["a", "b"].iter().map(|name| from.path().join(name)).collect();
    paths.iter().for_each(|path| fs::write(path, noise(100_000, "x")).unwrap());
    let trial = Trial::default();
    trial.run(&paths, to.path()).0.unwrap();
    fs::write(to.path().join("b"), noise(100_000, "y")).unwrap();
    let (sent, received) = trial.run(&paths, to.path());
    let (again, received) = (sent.unwrap(), received.unwrap());
    assert_eq!((again.files, again.unchanged, again.bytes, again.failed), (0, 1, 0, 1));
    assert_eq!(again.problems[0].fault.code, Code::Exists);
    // The sender alone can tell, and the receiver hears of it.
    assert_eq!((received.failed, &received.problems), (1, &again.problems));
    assert_eq!(fs::read(to.path().join("b")).unwrap(), noise(100_000, "y"));
    let replacing =
        Trial { policy: WritePolicy { overwrite: true, ..WritePolicy::default() }, ..Trial::default() };
    let third = replacing.run(&paths, to.path()).0.unwrap();
    assert_eq!((third.files, third.unchanged, third.failed), (1, 1, 0));
    assert_eq!(fs::read(to.path().join("b")).unwrap(), noise(100_000, "x"));
}

/// Breaks: a sender over an encrypted line waits for round trips that it does not need. On a satellite link
/// each is half a second.
#[test]
fn the_first_flight_has_the_beginning_of_the_content() {
    let from = tempfile::tempdir().unwrap();
    let path = from.path().join("note");
    let content = noise(10_000, "note");
    fs::write(&path, &content).unwrap();
    let (a, mut b) = UnixStream::pair().unwrap();
    b.set_read_timeout(Some(TIMEOUTS.idle)).unwrap();
    let walk = walk(&[path]).unwrap();
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let session = Session { secured: true, timeouts: TIMEOUTS, ..Session::default() };
            send(line(a), &session, walk, None)
        });
        // Nothing has been said to it.
        let mut heard = Vec::new();
        let mut room = [0; 4096];
        while !heard.ends_with(&content) {
            let n = b.read(&mut room).expect("it says more before it is answered");
            assert!(n > 0);
            heard.extend_from_slice(&room[..n]);
        }
        assert!(heard.starts_with(b"farpace\n"));
        drop(b);
        assert!(matches!(sender.join().unwrap(), Err(TransferError::Unanswered)));
    });
}

/// Breaks: what was sent before the verdict stays in a file that is resumed, replaced, or sent from the
/// beginning, or counts as sent.
#[test]
fn what_was_sent_ahead_counts_only_where_it_was_of_use() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // Shorter and longer than what is sent ahead, and one with a hole where that ends.
    for (name, len) in [("a", 1_000), ("b", 128 << 10), ("c", 1 << 20)] {
        fs::write(from.path().join(name), noise(len, name)).unwrap();
    }
    let holes = fs::File::create(from.path().join("d")).unwrap();
    holes.write_all_at(&noise(50_000, "d"), 0).unwrap();
    holes.write_all_at(&noise(50_000, "e"), 400_000).unwrap();
    for name in ["a", "b", "c", "d"] {
        let (path, there) = ([from.path().join(name)], to.path().join(name));
        let content = fs::read(&path[0]).unwrap();
        let first = Trial::default().run(&path, to.path()).0.unwrap();
        assert_eq!((first.files, first.bytes + first.spared), (1, content.len() as u64), "{name}");
        assert_eq!(fs::read(&there).unwrap(), content);
        let again = Trial::default().run(&path, to.path()).0.unwrap();
        assert_eq!((again.unchanged, again.bytes, again.spared), (1, 0, content.len() as u64), "{name}");
        fs::write(&there, noise(content.len(), "other")).unwrap();
        let policy = WritePolicy { overwrite: true, ..WritePolicy::default() };
        let replaced = Trial { policy, ..Trial::default() }.run(&path, to.path()).0.unwrap();
        assert_eq!((replaced.files, replaced.bytes + replaced.spared), (1, content.len() as u64), "{name}");
        assert_eq!(fs::read(&there).unwrap(), content);
    }
}

/// Breaks: an interrupted transfer begins anew, or is put together wrongly.
#[test]
fn an_interrupted_transfer_is_resumed() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = from.path().join("film");
    let bytes = noise(12 << 20, "film");
    fs::write(&path, &bytes).unwrap();
    let stop = |progress: &LineProgress| progress.bytes > 4 << 20;
    let first = Trial { stop: &stop, limit: Some(100), ..Trial::default() };
    let (sent, received) = first.run(std::slice::from_ref(&path), to.path());
    assert!(matches!(sent, Err(TransferError::Interrupted)), "{sent:?}");
    assert!(matches!(received, Err(TransferError::Peer(fault)) if fault.code == Code::Interrupted));
    assert!(!to.path().join("film").exists(), "a file has its name only when it is whole");
    let [partial] = &listing(to.path())[..] else { panic!("one partial file") };
    assert!(partial.starts_with(".film."), "{partial}");
    let second = Trial::default().run(std::slice::from_ref(&path), to.path()).0.unwrap();
    assert!(second.spared >= 3 << 20 && second.bytes + second.spared == 12 << 20, "{second:?}");
    assert_eq!(fs::read(to.path().join("film")).unwrap(), bytes);
    assert_eq!(listing(to.path()), ["film"]);
}

/// Breaks: a partial file with other bytes becomes the beginning of a new file.
#[test]
fn a_partial_file_of_something_else_is_not_resumed() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = from.path().join("film");
    fs::write(&path, noise(3 << 20, "film")).unwrap();
    let name = farpace_transfer::RelPath::new(b"film").unwrap().partial_name();
    fs::write(to.path().join(name), noise(2 << 20, "other")).unwrap();
    let sent = Trial::default().run(std::slice::from_ref(&path), to.path()).0.unwrap();
    assert_eq!((sent.files, sent.bytes, sent.spared), (1, 3 << 20, 0));
    assert_eq!(fs::read(to.path().join("film")).unwrap(), noise(3 << 20, "film"));
}

/// Breaks: files with holes take as long and as much disk as if they were full, or are cut at 4 GB; when they
/// are sent again, or resumed, they are read from end to end.
#[test]
fn holes_stay_holes() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = from.path().join("image");
    let file = fs::File::create(&path).unwrap();
    file.set_len(1 << 40).unwrap();
    file.write_all_at(b"in the middle", (4 << 30) + 12_345).unwrap();
    // Zeros that are on the disk at one side and a hole at the other are the same bytes.
    file.write_all_at(&[0; 100_000], 1 << 35).unwrap();
    let sent = Trial::default().run(std::slice::from_ref(&path), to.path()).0.unwrap();
    assert_eq!(sent.files, 1);
    assert!(sent.bytes < 1 << 20, "{}", sent.bytes);
    let there = fs::File::open(to.path().join("image")).unwrap();
    let metadata = there.metadata().unwrap();
    assert!(metadata.len() == 1 << 40 && metadata.blocks() * 512 < 1 << 20);
    let mut bytes = [0; 13];
    there.read_exact_at(&mut bytes, (4 << 30) + 12_345).unwrap();
    assert_eq!(&bytes, b"in the middle");
    let again = Trial::default().run(std::slice::from_ref(&path), to.path()).0.unwrap();
    assert_eq!((again.unchanged, again.bytes), (1, 0));
    // As if it had been interrupted.
    let partial = farpace_transfer::RelPath::new(b"image").unwrap().partial_name();
    fs::rename(to.path().join("image"), to.path().join(&partial)).unwrap();
    fs::OpenOptions::new().write(true).open(to.path().join(&partial)).unwrap().set_len(1 << 39).unwrap();
    let resumed = Trial::default().run(std::slice::from_ref(&path), to.path()).0.unwrap();
    assert_eq!((resumed.files, resumed.bytes, resumed.spared), (1, 0, 1 << 40));
    for times in [sent.times, again.times, resumed.times] {
        // A terabyte of zeros takes minutes; judged by the time in hashing, which waits for nobody.
        assert!(times.hash < Duration::from_secs(20), "{times:?}");
    }
}

/// Breaks: everybody can write, or a wrong token is told as something else.
#[test]
fn a_wrong_token_is_told() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = from.path().join("a");
    fs::write(&path, "a").unwrap();
    let trial = Trial { tokens: ("sesam", "sesame"), ..Trial::default() };
    let (sent, received) = trial.run(&[path], to.path());
    assert!(matches!(sent, Err(TransferError::Peer(fault)) if fault.code == Code::Token));
    assert!(matches!(received, Err(TransferError::Own(fault)) if fault.code == Code::Token));
    assert!(listing(to.path()).is_empty());
}

/// Carries bytes from one stream to another and changes the one with this number.
fn tamper(mut from: UnixStream, mut to: UnixStream, at: Option<usize>) {
    std::thread::spawn(move || {
        let (mut block, mut seen) = (vec![0; 65_536], 0);
        while let Ok(n @ 1..) = from.read(&mut block) {
            if let Some(at) = at
                && (seen..seen + n).contains(&at)
            {
                block[at - seen] ^= 4;
            }
            seen += n;
            if to.write_all(&block[..n]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
        let _ = from.shutdown(Shutdown::Read);
    });
}

/// Breaks: whoever sits on the path can change files or messages.
#[test]
fn tampering_is_noticed_wherever_it_is() {
    let from = tempfile::tempdir().unwrap();
    let path = from.path().join("file");
    fs::write(&path, noise(300_000, "file")).unwrap();
    // Hello, ready, summary, offer, begin; the header of the data; its beginning, middle, end; the end's
    // hash.
    for at in [20, 46, 70, 120, 150, 180, 212, 237, 1_000, 200_000, 300_200, 300_245, 300_270] {
        let to = tempfile::tempdir().unwrap();
        let (a, a2) = UnixStream::pair().unwrap();
        let (b, b2) = UnixStream::pair().unwrap();
        tamper(a2.try_clone().unwrap(), b2.try_clone().unwrap(), Some(at));
        tamper(b2, a2, None);
        let trial = Trial { tokens: ("t", "t"), ..Trial::default() };
        let (sent, received) = trial.over(line(a), line(b), std::slice::from_ref(&path), to.path());
        let good = |sent: &SendReport| sent.files == 1 && sent.failed == 0;
        assert!(!sent.as_ref().is_ok_and(good), "{at}: {sent:?}");
        assert!(!received.as_ref().is_ok_and(|r| r.files > 0), "{at}: {received:?}");
        assert!(!to.path().join("file").exists(), "{at}");
    }
}

/// Breaks: a file that was put together from two states gets its name.
#[test]
fn a_file_that_changes_is_told_and_not_kept() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (path, other) = (from.path().join("a"), from.path().join("b"));
    fs::write(&path, noise(8 << 20, "a")).unwrap();
    fs::write(&other, "b").unwrap();
    let change = |progress: &LineProgress| {
        if progress.bytes > 1 << 20 {
            let file = fs::OpenOptions::new().append(true).open(&path);
            let _ = file.and_then(|mut file| file.write_all(b"more"));
        }
        false
    };
    let trial = Trial { stop: &change, limit: Some(100), ..Trial::default() };
    let sent = trial.run(&[path.clone(), other], to.path()).0.unwrap();
    assert_eq!((sent.files, sent.failed), (1, 1));
    assert_eq!(sent.problems[0].fault.code, Code::Changed);
    assert!(!to.path().join("a").exists() && to.path().join("b").exists());
}

/// Breaks: a file that vanished ends the whole transfer.
#[test]
fn a_file_that_vanishes_is_told_and_the_rest_goes() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let paths: Vec<_> = ["a", "b", "c"].iter().map(|name| from.path().join(name)).collect();
    paths.iter().for_each(|path| fs::write(path, noise(1_000, "x")).unwrap());
    let found = walk(&paths).unwrap();
    fs::remove_file(&paths[1]).unwrap();
    let (a, b) = UnixStream::pair().unwrap();
    let place = Destination::new(to.path(), WritePolicy::default()).unwrap();
    let session = |connected| Session { token: b"t", connected, timeouts: TIMEOUTS, ..Session::default() };
    let sent = std::thread::scope(|scope| {
        scope.spawn(|| receive(line(b), &session(false), &place).unwrap());
        send(line(a), &session(true), found, None).unwrap()
    });
    assert_eq!((sent.files, sent.failed), (2, 1));
    assert_eq!(sent.problems[0].fault.code, Code::Vanished);
    assert_eq!(listing(to.path()), ["a", "c"]);
}

/// Breaks: a link in the receiver's directory leads a transfer out of it.
#[test]
fn links_that_are_there_are_not_followed() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let outside = tempfile::tempdir().unwrap();
    fs::create_dir(from.path().join("tree")).unwrap();
    fs::write(from.path().join("tree/file"), "new").unwrap();
    fs::write(from.path().join("single"), "new").unwrap();
    symlink(outside.path(), to.path().join("tree")).unwrap();
    symlink(outside.path().join("single"), to.path().join("single")).unwrap();
    let policy = WritePolicy { overwrite: true, ..WritePolicy::default() };
    let paths = [from.path().join("tree"), from.path().join("single")];
    let sent = Trial { policy, ..Trial::default() }.run(&paths, to.path()).0.unwrap();
    assert_eq!(sent.failed, 2, "{sent:?}");
    assert!(listing(outside.path()).is_empty());
    // The link itself may be replaced.
    assert_eq!(fs::read_to_string(to.path().join("single")).unwrap(), "new");
    assert!(!to.path().join("single").is_symlink());
}

/// Breaks: somebody who connects and says nothing, or other things, holds a receiver for ever.
#[test]
fn silence_and_garbage_end_soon() {
    let to = tempfile::tempdir().unwrap();
    let place = Destination::new(to.path(), WritePolicy::default()).unwrap();
    let timeouts = Timeouts { handshake: Duration::from_millis(300), idle: Duration::from_secs(20) };
    let session = Session { token: b"", connected: false, timeouts, ..Session::default() };
    let begun = Instant::now();
    let (_silent, b) = UnixStream::pair().unwrap();
    assert!(matches!(receive(line(b), &session, &place), Err(TransferError::Silent(_))));
    // A byte now and then is not enough.
    let (mut slow, b) = UnixStream::pair().unwrap();
    let dripping = std::thread::spawn(move || {
        for byte in b"farpace\n\x01\x01\x01\x00aaaaaaaaaaaaaaaaaaaaaaaaaaa" {
            std::thread::sleep(Duration::from_millis(50));
            if slow.write_all(&[*byte]).is_err() {
                return;
            }
        }
    });
    assert!(matches!(receive(line(b), &session, &place), Err(TransferError::Silent(_))));
    dripping.join().unwrap();
    let (mut wrong, b) = UnixStream::pair().unwrap();
    wrong.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert!(matches!(receive(line(b), &session, &place), Err(TransferError::Protocol(_))));
    assert!(begun.elapsed() < Duration::from_secs(10));
}

/// Breaks: what is neither file nor directory is sent (a pipe would block for ever), or ends the transfer.
#[test]
fn pipes_are_not_sent() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let tree = from.path().join("tree");
    fs::create_dir(&tree).unwrap();
    let status = std::process::Command::new("mkfifo").arg(tree.join("pipe")).status().unwrap();
    assert!(status.success());
    fs::write(tree.join("file"), "x").unwrap();
    let sent = Trial::default().run(&[tree], to.path()).0.unwrap();
    assert_eq!((sent.files, sent.failed, sent.problems[0].fault.code), (1, 1, Code::Special));
}

/// Breaks: a limit on the rate is not kept.
#[test]
fn a_cap_is_kept() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = from.path().join("a");
    fs::write(&path, noise(2_500_000, "a")).unwrap();
    let sent = Trial { limit: Some(20), ..Trial::default() }.run(&[path], to.path()).0.unwrap();
    let seconds = sent.elapsed.as_secs_f64();
    assert!((0.9..2.5).contains(&seconds), "2.5 MB at 20 Mbit/s take 1 s, it took {seconds}");
    assert!(sent.times.cap.as_secs_f64() > 0.5);
}

/// Breaks: with many small files each one waits for an answer, or an offer is lost.
#[test]
fn thousands_of_files_go() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let tree = from.path().join("tree");
    fs::create_dir(&tree).unwrap();
    for n in 0..3_000 {
        fs::write(tree.join(format!("file{n:05}")), format!("{n}")).unwrap();
    }
    let sent = Trial::default().run(&[tree], to.path()).0.unwrap();
    assert_eq!((sent.files, sent.failed), (3_000, 0));
    assert_eq!(fs::read_to_string(to.path().join("tree/file02999")).unwrap(), "2999");
}

/// Breaks: a backup that its receiver has fetched is incomplete, and the receiver is not told.
#[test]
fn the_receiver_hears_of_all_that_was_not_sent() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let tree = from.path().join("tree");
    fs::create_dir(&tree).unwrap();
    // More than are told by name.
    for n in 0..1_100 {
        fs::write(tree.join(format!("{n}.farpace-part")), "x").unwrap();
    }
    fs::write(tree.join("file"), "x").unwrap();
    let (sent, received) = Trial::default().run(&[tree], to.path());
    let (sent, received) = (sent.unwrap(), received.unwrap());
    assert_eq!((sent.failed, sent.problems.len(), sent.files), (1_100, 1_000, 1));
    assert_eq!((received.failed, received.problems.len(), received.files), (1_100, 1_000, 1));
    assert_eq!(received.problems, sent.problems);
    assert!(
        received.problems.iter().all(|p| p.path.starts_with("tree/")),
        "no path of the sender's machine is told"
    );
}

/// Breaks: of several sources that go to one new name all but one are lost, or replace each other.
#[test]
fn one_name_takes_one_source() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let paths: Vec<_> = ["a", "b"].iter().map(|name| from.path().join(name)).collect();
    paths.iter().for_each(|path| fs::write(path, "x").unwrap());
    let policy = WritePolicy { rename: Some("new".into()), overwrite: true, ..WritePolicy::default() };
    let trial = Trial { policy, ..Trial::default() };
    let (sent, received) = trial.run(&paths, to.path());
    assert!(matches!(sent, Err(TransferError::Peer(fault)) if fault.text.contains("need a directory")));
    assert!(matches!(received, Err(TransferError::Own(_))));
    assert_eq!(listing(to.path()), Vec::<String>::new());
    assert_eq!(trial.run(&paths[..1], to.path()).0.unwrap().files, 1);
}

/// Breaks: a directory that others share loses its set-group-ID or sticky bit.
#[test]
fn shared_directories_stay_shared() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let tree = from.path().join("tree");
    fs::create_dir(&tree).unwrap();
    fs::create_dir(to.path().join("tree")).unwrap();
    let there = to.path().join("tree");
    fs::set_permissions(&there, fs::Permissions::from_mode(0o3777)).unwrap();
    fs::set_permissions(&tree, fs::Permissions::from_mode(0o755)).unwrap();
    Trial::default().run(&[tree], to.path()).0.unwrap();
    assert_eq!(fs::metadata(&there).unwrap().permissions().mode() & 0o7777, 0o3755);
}

/// Breaks: a pattern that fits the directory that is sent leaves out all of it.
#[test]
fn patterns_do_not_apply_to_what_was_named() {
    let from = tempfile::tempdir().unwrap();
    let dir = from.path().join(".config");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join(".hidden"), "x").unwrap();
    fs::write(dir.join("shown"), "x").unwrap();
    let patterns = farpace_transfer::ExcludePatterns::new(&[".*".to_owned()]).unwrap();
    assert_eq!(farpace_transfer::walk_with(&[dir], &patterns).unwrap().entries, 2);
}

/// Breaks: a dry run promises what fails, or is silent about links. What is refused, made and replaced must
/// be the same in the run itself.
#[test]
fn a_dry_run_foretells_the_run() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (tree, there) = (from.path().join("tree"), to.path().join("tree"));
    for dir in ["blocked/deep", "new", "there"] {
        fs::create_dir_all(tree.join(dir)).unwrap();
    }
    fs::create_dir_all(there.join("there")).unwrap();
    fs::create_dir(there.join("dir")).unwrap();
    for file in ["blocked/deep/file", "new/file", "there/file"] {
        fs::write(tree.join(file), "x").unwrap();
    }
    fs::write(there.join("blocked"), "a file").unwrap();
    let links = [("up", "new/../new/file"), ("same", "new"), ("other", "new"), ("dir", "new")];
    links.iter().for_each(|(name, target)| symlink(target, tree.join(name)).unwrap());
    symlink("new", there.join("same")).unwrap();
    symlink("there", there.join("other")).unwrap();
    for (name, target) in [("out", "/etc"), ("new/out", "../../../etc")] {
        symlink(target, tree.join(name)).unwrap();
    }
    let before = listing(to.path());
    let run = |dry_run| {
        let policy = WritePolicy { overwrite: true, dry_run, ..WritePolicy::default() };
        let (sent, received) =
            Trial { policy, ..Trial::default() }.run(std::slice::from_ref(&tree), to.path());
        (sent.unwrap(), received.unwrap())
    };
    let refused = |report: &SendReport| -> Vec<_> {
        let mut refused: Vec<_> = report.problems.iter().map(|p| p.path.clone()).collect();
        refused.sort();
        refused
    };
    let (sent, received) = run(true);
    assert_eq!(listing(to.path()), before);
    let names = |planned: &[(String, u64)]| {
        let mut names: Vec<_> = planned.iter().map(|(name, _)| name.clone()).collect();
        names.sort();
        names
    };
    let planned = ["tree/new/file", "tree/other", "tree/there/file", "tree/up"];
    assert_eq!(
        (names(&sent.planned), names(&received.planned)),
        (planned.map(str::to_owned).into(), planned.map(str::to_owned).into())
    );
    let no = [
        "tree/blocked",
        "tree/blocked/deep",
        "tree/blocked/deep/file",
        "tree/dir",
        "tree/new/out",
        "tree/out",
    ];
    assert_eq!(refused(&sent), no);
    let text = |path: &str| {
        let problem = sent.problems.iter().find(|problem| problem.path == path).unwrap();
        problem.fault.text.clone()
    };
    assert_eq!(text("tree/blocked"), "there is something of this name that is no directory");
    assert_eq!(text("tree/dir"), "there is a directory of this name");
    let (real, _) = run(false);
    assert_eq!(refused(&real), no);
    assert_eq!(fs::read_link(there.join("other")).unwrap(), Path::new("new"));
}

/// Breaks: what is in a directory cannot be copied to `/`, or what else is there goes, or the directory
/// itself changes.
#[test]
fn contents_go_into_a_place_without_a_name() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let tree = from.path().join("tree");
    fs::create_dir_all(tree.join("sub")).unwrap();
    for path in ["a", "sub/b"] {
        fs::write(tree.join(path), path).unwrap();
    }
    fs::write(to.path().join("other"), "x").unwrap();
    fs::set_permissions(to.path(), fs::Permissions::from_mode(0o1711)).unwrap();
    let run = |paths: &[PathBuf], delete| {
        let policy = WritePolicy { inside: true, delete, ..WritePolicy::default() };
        Trial { policy, ..Trial::default() }.run(paths, to.path())
    };
    let sent = run(std::slice::from_ref(&tree), false).0.unwrap();
    assert_eq!((sent.files, sent.failed), (2, 0), "{sent:?}");
    assert_eq!(listing(to.path()), ["a", "other", "sub", "sub/b"]);
    assert_eq!(fs::metadata(to.path()).unwrap().mode() & 0o7777, 0o1711);
    let received = run(std::slice::from_ref(&tree), true).1.unwrap();
    assert_eq!(received.deleted, ["tree/other"]);
    assert_eq!(listing(to.path()), ["a", "sub", "sub/b"]);
    let sent = run(&[tree.join("a")], false).0.unwrap();
    assert_eq!(sent.problems[0].fault.text, "only what is in a directory can go there");
    let two = run(&[tree.join("a"), tree.join("sub")], false).0;
    assert!(matches!(two, Err(TransferError::Peer(_))), "{two:?}");
}

/// Breaks: permissions and times that change without the content never arrive; or they change where nothing
/// may be replaced.
#[test]
fn permissions_and_time_follow_where_files_may_be_replaced() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let paths: Vec<_> = ["a", "b"].iter().map(|name| from.path().join(name)).collect();
    for path in &paths {
        fs::write(path, noise(200_000, "x")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    }
    Trial::default().run(&paths, to.path()).0.unwrap();
    let time = std::time::SystemTime::UNIX_EPOCH + Duration::new(1_000_000, 5);
    for path in &paths {
        fs::set_permissions(path, fs::Permissions::from_mode(0o711)).unwrap();
        fs::File::open(path).unwrap().set_modified(time).unwrap();
    }
    let there = |name: &str| fs::metadata(to.path().join(name)).unwrap();
    for (overwrite, dry_run) in [(false, false), (true, true), (true, false)] {
        let policy = WritePolicy { overwrite, dry_run, ..WritePolicy::default() };
        let sent = Trial { policy, ..Trial::default() }.run(&paths, to.path()).0.unwrap();
        assert_eq!((sent.files, sent.unchanged, sent.failed, sent.bytes), (0, 2, 0, 0));
        for name in ["a", "b"] {
            let is_set = there(name).mode() & 0o777 == 0o711 && there(name).modified().unwrap() == time;
            assert_eq!(is_set, overwrite && !dry_run, "{name} {overwrite} {dry_run}");
        }
    }
}

/// Breaks: whoever copies a tree with --delete believes that it is the same, although the other end could not
/// delete something.
#[test]
fn what_could_not_be_deleted_is_told_to_the_sender() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let tree = from.path().join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("file"), "x").unwrap();
    // Deeper than a path may be, so that nobody, not even root, is allowed to remove it.
    let deep = to.path().join("tree").join(["d"; 130].join("/"));
    fs::create_dir_all(deep).unwrap();
    for name in ["d/z", "d/.x.farpace-part", "e/.y.farpace-part/full"] {
        let path = to.path().join("tree").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    }
    let policy = WritePolicy { delete: true, ..WritePolicy::default() };
    let (sent, received) = Trial { policy, ..Trial::default() }.run(&[tree], to.path());
    let (sent, received) = (sent.unwrap(), received.unwrap());
    assert_eq!((sent.files, sent.failed, received.failed), (1, 1, 1), "{sent:?}");
    assert_eq!(sent.problems, received.problems);
    assert_eq!(sent.problems[0].path, "tree");
    assert_eq!(received.deleted, ["tree/d/z"], "the rest is still tried");
    assert!(to.path().join("tree/e/.y.farpace-part/full").exists(), "and no partial file is looked into");
}

/// Breaks: the far end of a copy through ssh waits for ever for a near end that says nothing more, or takes
/// nothing more.
#[test]
fn pipes_that_stand_still_end_a_transfer_in_time() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = from.path().join("file");
    fs::write(&path, noise(4 << 20, "file")).unwrap();
    let timeouts = Timeouts { handshake: Duration::from_millis(500), idle: Duration::from_millis(500) };
    let session = |connected| Session { secured: true, connected, timeouts, ..Session::default() };
    let begun = Instant::now();
    // Nothing comes.
    let (reader, _silent) = std::io::pipe().unwrap();
    let (_unread, writer) = std::io::pipe().unwrap();
    let line = farpace_transfer::kernel::line_of_pipes(reader.into(), writer.into());
    let place = Destination::new(to.path(), WritePolicy::default()).unwrap();
    let received = receive(line, &session(false), &place);
    assert!(matches!(received, Err(TransferError::Silent(_))), "{received:?}");
    // Nothing is taken: the file is longer than a pipe.
    let (reader, mut to_sender) = std::io::pipe().unwrap();
    let (_unread, writer) = std::io::pipe().unwrap();
    let hello = [&b"farpace\n"[..], &[3, 3, 2, 1], &[9; 32], &[1, 0, 0, 0, 0]].concat();
    to_sender.write_all(&hello).unwrap();
    // The verdict on the one file: it is to be sent.
    to_sender.write_all(&[&[5, 0, 0, 0, 11][..], &[0; 9], &[1, 0]].concat()).unwrap();
    let line = farpace_transfer::kernel::line_of_pipes(reader.into(), writer.into());
    let sent = send(line, &session(true), walk(&[path]).unwrap(), None);
    assert!(matches!(sent, Err(TransferError::Silent(_))), "{sent:?}");
    assert!(begun.elapsed() < Duration::from_secs(10));
}

/// Breaks: whoever has a wrong ticket is told that a transfer broke and what arrived is kept.
#[test]
fn a_stream_that_ends_before_an_answer_is_told_as_such() {
    let from = tempfile::tempdir().unwrap();
    let path = from.path().join("a");
    fs::write(&path, "a").unwrap();
    let hello = [&b"farpace\n"[..], &[3, 3, 2, 1], &[9; 32], &[1, 0, 0, 0, 0]].concat();
    for answer in [&[][..], &hello] {
        let (a, mut b) = UnixStream::pair().unwrap();
        b.write_all(answer).unwrap();
        b.shutdown(Shutdown::Write).unwrap();
        let session = Session { secured: true, timeouts: TIMEOUTS, ..Session::default() };
        let sent = send(line(a), &session, walk(std::slice::from_ref(&path)).unwrap(), None);
        match sent {
            Err(TransferError::Unanswered) => assert!(answer.is_empty()),
            Err(TransferError::Closed | TransferError::Line(_)) => assert!(!answer.is_empty()),
            other => panic!("{other:?}"),
        }
    }
}
