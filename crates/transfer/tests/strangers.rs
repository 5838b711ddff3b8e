//! What a peer can do to a receiver, with and without a token: each test is one attack, over a connection of
//! the kernel.

#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "helpers of tests")]

use farpace_transfer::message::{EntryKind, FileEntry, FileTime, FileVerdict, Hash, TransferMessage};
use farpace_transfer::{
    Code, ContentHasher, Destination, FrameReader, FrameWriter, IncomingFrame, MinFree, Peeked,
    ReceiveReport, RelPath, Role, SenderKey, Session, Timeouts, TransferError, WritePolicy, kernel, receive,
    send, shake, walk,
};
use farpace_units::ByteCount;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Long enough for a busy machine.
const TIMEOUTS: Timeouts = Timeouts { handshake: Duration::from_secs(60), idle: Duration::from_secs(60) };
/// What ends by itself has ended long before; what does not would never end.
const SOON: Duration = Duration::from_secs(40);

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (ours, listener.accept().unwrap().0)
}

fn policy() -> WritePolicy {
    WritePolicy { min_free: Some(MinFree::Bytes(ByteCount::ZERO)), ..WritePolicy::default() }
}

fn path(text: &str) -> RelPath {
    RelPath::new(text.as_bytes()).unwrap()
}

fn entry(at: &str, kind: EntryKind) -> FileEntry {
    FileEntry { path: path(at), kind, mode: 0o755, modified: FileTime { seconds: 1_000_000_000, nanos: 0 } }
}

fn file(at: &str, size: u64) -> FileEntry {
    entry(at, EntryKind::File { size })
}

fn directory(at: &str) -> FileEntry {
    entry(at, EntryKind::Directory)
}

fn link(at: &str, target: &str) -> FileEntry {
    entry(at, EntryKind::Link { target: target.as_bytes().to_vec() })
}

fn hash(bytes: &[u8]) -> Hash {
    let mut hasher = ContentHasher::default();
    hasher.update(bytes);
    hasher.result()
}

/// A sender that says what it likes.
struct Liar<'a> {
    reader: FrameReader<'a, Peeked<TcpStream>>,
    writer: FrameWriter<TcpStream>,
    next: u64,
}

impl Liar<'_> {
    fn say(&mut self, message: TransferMessage) {
        self.writer.message(&message).unwrap();
    }
    fn hear(&mut self) -> Result<TransferMessage, TransferError> {
        match self.reader.next(&mut Vec::new())? {
            IncomingFrame::Message(message) => Ok(message),
            IncomingFrame::Data(_) => panic!("a receiver sends no data"),
        }
    }
    fn offer(&mut self, entries: Vec<FileEntry>) -> Vec<FileVerdict> {
        let first = self.next;
        self.next += entries.len() as u64;
        self.say(TransferMessage::Offer { first, entries });
        match self.hear() {
            Ok(TransferMessage::Answers { verdicts, .. }) => verdicts,
            other => panic!("no answers: {other:?}"),
        }
    }
    fn offer_one(&mut self, entry: FileEntry) -> FileVerdict {
        self.offer(vec![entry]).remove(0)
    }
    fn data(&mut self, bytes: &[u8]) {
        self.writer.data_header(bytes.len()).unwrap();
        self.writer.raw(bytes).unwrap();
    }
    /// Sends a small file that was offered as this number.
    fn file(&mut self, index: u64, bytes: &[u8]) -> Option<Code> {
        self.say(TransferMessage::Begin { index, offset: 0 });
        if !bytes.is_empty() {
            self.data(bytes);
        }
        self.say(TransferMessage::End { hash: hash(bytes) });
        match self.hear() {
            Ok(TransferMessage::Done { fault, .. }) => fault.map(|fault| fault.code),
            other => panic!("not done: {other:?}"),
        }
    }
}

/// A receiver and a sender that lies; what came of receiving.
fn attack(
    place: &Destination,
    token: &[u8],
    sender: SenderKey,
    timeouts: Timeouts,
    lie: impl FnOnce(&mut Liar<'_>) + Send,
) -> Result<ReceiveReport, TransferError> {
    let (ours, theirs) = pair();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let moved = AtomicU64::new(0);
            let (reader, writer) = (theirs.try_clone().unwrap(), theirs.try_clone().unwrap());
            let session = Session { token, ..Session::default() };
            let (reader, writer) = shake(reader, writer, &session, Role::Sends, &moved).unwrap();
            let mut liar = Liar { reader, writer, next: 0 };
            liar.say(TransferMessage::Summary { entries: 1_000_000, bytes: 1, roots: 1, sender });
            lie(&mut liar);
        });
        let session = Session { token, connected: false, timeouts, ..Session::default() };
        receive(kernel::line_of(ours).unwrap(), &session, place)
    })
}

fn stranger(place: &Destination, sender: SenderKey, lie: impl FnOnce(&mut Liar<'_>) + Send) {
    let _ = attack(place, b"", sender, TIMEOUTS, lie);
}

fn known(place: &Destination, lie: impl FnOnce(&mut Liar<'_>) + Send) {
    let _ = attack(place, b"t", [0; 32], TIMEOUTS, lie);
}

/// Leaves the beginning of a file.
fn interrupt(liar: &mut Liar<'_>, at: &str, size: u64, begin: &[u8]) {
    let index = liar.next;
    assert_eq!(liar.offer_one(file(at, size)), FileVerdict::Send);
    liar.say(TransferMessage::Begin { index, offset: 0 });
    liar.data(begin);
    // The receiver has taken it when it answers what comes after it.
    liar.say(TransferMessage::Abandon(farpace_transfer::TransferFault::new(Code::Changed, "enough")));
    assert!(matches!(liar.hear(), Ok(TransferMessage::Done { fault: Some(_), .. })));
}

/// Breaks: 60 bytes of a peer keep a receiver's processor busy for years, also when the peer has left.
#[test]
fn a_hole_costs_nothing_however_long_it_is() {
    let to = tempfile::tempdir().unwrap();
    let place = Destination::new(to.path(), policy()).unwrap();
    let begun = Instant::now();
    let size = i64::MAX as u64;
    let (names, leave) = (["a", "b", "c", "d"], [false, true]);
    for (name, leave) in names.iter().zip(leave.iter().cycle()) {
        let received = attack(&place, b"t", [0; 32], TIMEOUTS, |liar| {
            assert_eq!(liar.offer_one(file(name, size)), FileVerdict::Send);
            liar.say(TransferMessage::Begin { index: 0, offset: 0 });
            liar.say(TransferMessage::Hole { len: size });
            if *leave {
                return;
            }
            let mut hasher = ContentHasher::default();
            hasher.zeros(size);
            liar.say(TransferMessage::End { hash: hasher.result() });
            // Some file systems can have it, others not.
            assert!(matches!(liar.hear(), Ok(TransferMessage::Done { .. })));
            liar.say(TransferMessage::Finish { missed: 0 });
            assert!(matches!(liar.hear(), Ok(TransferMessage::Finished { .. })));
        });
        assert_eq!(received.is_ok(), !leave, "{received:?}");
    }
    assert!(begun.elapsed() < SOON);
}

/// Breaks: a hole or data beyond what was offered is taken.
#[test]
fn no_more_comes_than_was_offered() {
    for (hole, data) in [(11, 0), (u64::MAX, 0), (5, 6), (0, 11)] {
        let to = tempfile::tempdir().unwrap();
        let place = Destination::new(to.path(), policy()).unwrap();
        let received = attack(&place, b"t", [0; 32], TIMEOUTS, |liar| {
            liar.offer_one(file("a", 10));
            liar.say(TransferMessage::Begin { index: 0, offset: 0 });
            if hole > 0 {
                liar.say(TransferMessage::Hole { len: hole });
            }
            if data > 0 {
                liar.data(&vec![1; data]);
            }
            let _ = liar.hear();
        });
        assert!(matches!(received, Err(TransferError::Protocol("more data than the file has"))));
    }
}

/// Breaks: a peer has a receiver take useless bytes without end, or what came ahead of another verdict
/// becomes part of a file.
#[test]
fn what_comes_ahead_is_bounded_and_thrown_away() {
    let useless = vec![1; 1 << 16];
    let refused = |lie: &(dyn Fn(&mut Liar<'_>) + Sync)| {
        let to = tempfile::tempdir().unwrap();
        fs::write(to.path().join("a"), "ours").unwrap();
        let place = Destination::new(to.path(), policy()).unwrap();
        let received = attack(&place, b"t", [0; 32], TIMEOUTS, |liar| {
            assert!(matches!(liar.offer_one(file("a", 1 << 20)), FileVerdict::Refused(_)));
            lie(liar);
            let _ = liar.hear();
        });
        assert_eq!(fs::read_to_string(to.path().join("a")).unwrap(), "ours");
        assert_eq!(fs::read_dir(to.path()).unwrap().count(), 1, "nothing else is there");
        match received {
            Err(TransferError::Protocol(why)) => why,
            other => panic!("{other:?}"),
        }
    };
    let ahead = || TransferMessage::Ahead { index: 0 };
    let too_much = |liar: &mut Liar<'_>| {
        liar.say(ahead());
        (0..3).for_each(|_| liar.data(&useless));
    };
    assert_eq!(refused(&too_much), "more data than the file has");
    let again = |liar: &mut Liar<'_>| {
        for _ in 0..2 {
            liar.say(ahead());
            liar.data(&useless);
            liar.say(TransferMessage::Withdraw);
        }
    };
    assert_eq!(refused(&again), "what comes ahead is another file");
    let ended = |liar: &mut Liar<'_>| {
        liar.say(ahead());
        liar.data(&useless);
        liar.say(TransferMessage::End { hash: hash(&useless) });
    };
    assert_eq!(refused(&ended), "a file ends too early");
    let other = |liar: &mut Liar<'_>| liar.say(TransferMessage::Ahead { index: 1 });
    assert_eq!(refused(&other), "what comes ahead is another file");
    let nothing = |liar: &mut Liar<'_>| liar.say(TransferMessage::Withdraw);
    assert_eq!(refused(&nothing), "nothing to withdraw");
}

/// Breaks: whoever offers the same name with sizes 1, 2, 3 ... reads what somebody else has sent, from its
/// hashes.
#[test]
fn a_partial_file_is_told_only_to_who_sent_it() {
    let to = tempfile::tempdir().unwrap();
    let place = Destination::new(to.path(), policy()).unwrap();
    stranger(&place, [1; 32], |liar| interrupt(liar, "film", 100, b"secret"));
    for other in [[2; 32], [0; 32]] {
        stranger(&place, other, |liar| {
            for size in [1, 2, 3, 6, 100] {
                let verdict = liar.offer_one(file(&format!("film{size:03}"), size));
                assert_eq!(verdict, FileVerdict::Send);
            }
        });
        stranger(&place, other, |liar| assert_eq!(liar.offer_one(file("film", 3)), FileVerdict::Send));
    }
    stranger(&place, [1; 32], |liar| {
        let verdict = liar.offer_one(file("film", 100));
        assert_eq!(verdict, FileVerdict::Resume { offset: 6, hash: hash(b"secret") });
    });
    // Nor is one of those who know the token told to others, or the other way round.
    known(&place, |liar| interrupt(liar, "book", 100, b"secret"));
    stranger(&place, [1; 32], |liar| assert_eq!(liar.offer_one(file("book", 100)), FileVerdict::Send));
    known(&place, |liar| {
        assert_eq!(
            liar.offer_one(file("book", 100)),
            FileVerdict::Resume { offset: 6, hash: hash(b"secret") }
        );
        assert_eq!(liar.offer_one(file("film", 100)), FileVerdict::Send);
    });
}

/// Breaks: a stranger learns what is in files that are there; or who has sent a file has to send it again,
/// and is told of it what was not his.
#[test]
fn existing_files_are_no_oracle() {
    let to = tempfile::tempdir().unwrap();
    fs::write(to.path().join("ours"), "pin 4711").unwrap();
    let place = Destination::new(to.path(), policy()).unwrap();
    let refusals = |sender| {
        let mut told = Vec::new();
        stranger(&place, sender, |liar| {
            for name in ["ours", "theirs"] {
                match liar.offer_one(file(name, 8)) {
                    FileVerdict::Refused(fault) => told.push(fault),
                    other => panic!("{other:?}"),
                }
            }
        });
        told
    };
    stranger(&place, [1; 32], |liar| {
        assert_eq!(liar.offer_one(file("theirs", 8)), FileVerdict::Send);
        assert_eq!(liar.file(0, b"pin 1234"), None);
    });
    let told = refusals([2; 32]);
    assert!(told[0].code == Code::Exists && told[0] == told[1], "{told:?}");
    let attributes = {
        let mut seen = false;
        stranger(&place, [1; 32], |liar| match liar.offer_one(file("theirs", 8)) {
            FileVerdict::Have { hash: told, replace: false } => {
                assert_eq!(told, hash(b"pin 1234"));
                seen = true;
            }
            other => assert!(matches!(other, FileVerdict::Refused(_)), "{other:?}"),
        });
        seen
    };
    // A file system without attributes forgets who has sent a file; then it is not told at all.
    if !attributes {
        let mut err = std::io::stderr();
        err.write_all(b"this file system has no extended attributes: part of a test is skipped\n").unwrap();
        assert!(std::env::var_os("CI").is_none(), "CI needs a file system with extended attributes");
    }
    // Nor is a file read for somebody who has not sent it.
    let received = attack(&place, b"", [2; 32], TIMEOUTS, |liar| {
        liar.offer(vec![file("ours", 8), file("theirs", 8)]);
        liar.say(TransferMessage::Finish { missed: 0 });
        let _ = liar.hear();
    });
    assert_eq!(received.unwrap().times.hash, Duration::ZERO);
    // Changed here since.
    fs::write(to.path().join("theirs"), "pin 9999").unwrap();
    assert_eq!(refusals([1; 32]), told);
    // With overwriting, a stranger's file is taken without a look at what is there.
    let place = Destination::new(to.path(), WritePolicy { overwrite: true, ..policy() }).unwrap();
    stranger(&place, [2; 32], |liar| assert_eq!(liar.offer_one(file("ours", 8)), FileVerdict::Send));
}

/// Breaks: a link made by a peer leads out, by way of others that it, or a second connection, has made.
#[test]
fn links_made_one_after_the_other_stay_within() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "x").unwrap();
    let root = outside.path().join("root");
    fs::create_dir(&root).unwrap();
    symlink("/etc", root.join("ours")).unwrap();
    let place = Destination::new(&root, policy()).unwrap();
    let refused =
        |verdict: FileVerdict| matches!(verdict, FileVerdict::Refused(fault) if fault.code == Code::Path);
    stranger(&place, [1; 32], |liar| {
        let up = vec![directory("a"), directory("a/b"), directory("a/b/c"), link("a/b/c/up", "../../..")];
        assert!(liar.offer(up).iter().all(|verdict| *verdict == FileVerdict::Made));
        assert!(refused(liar.offer_one(link("b", "a/b/c/up/../secret"))));
        assert!(refused(liar.offer_one(link("c", "d/../secret"))), "`d` may become a link to the root");
        assert_eq!(liar.offer_one(link("d", ".")), FileVerdict::Made);
        assert!(refused(liar.offer_one(link("e", "d/../secret"))));
        assert!(refused(liar.offer_one(link("f", "ours/passwd"))));
        assert!(refused(liar.offer_one(link("g", ".."))));
        // Nor does a file or a directory go through one.
        assert!(refused(liar.offer_one(file("ours/passwd", 1))));
        assert!(refused(liar.offer_one(directory("ours/x"))));
    });
    stranger(&place, [2; 32], |liar| {
        assert!(refused(liar.offer_one(file("d/x", 1))));
        assert!(refused(liar.offer_one(link("z", "a/b/c/up/../secret"))));
    });
    for entry in fs::read_dir(&root).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_owned();
        assert!(name == "ours" || path.canonicalize().unwrap().starts_with(&root), "{name:?}");
    }
}

/// Breaks: in a directory where others may write, a file of somebody else is put in place of a partial file,
/// and is written.
#[test]
fn a_partial_file_with_a_second_name_is_not_written() {
    let to = tempfile::tempdir().unwrap();
    let place = Destination::new(to.path(), policy()).unwrap();
    fs::write(to.path().join("theirs"), "theirs").unwrap();
    fs::hard_link(to.path().join("theirs"), to.path().join(path("film").partial_name())).unwrap();
    known(&place, |liar| {
        assert_eq!(liar.offer_one(file("film", 8)), FileVerdict::Send);
        assert_eq!(liar.file(0, b"new film"), None);
    });
    assert_eq!(fs::read_to_string(to.path().join("theirs")).unwrap(), "theirs");
    assert_eq!(fs::read_to_string(to.path().join("film")).unwrap(), "new film");
}

/// Breaks: while a directory's name is being exchanged for a link and back, a file or a link gets out in
/// between.
#[test]
fn a_name_that_changes_all_the_time_leads_nowhere() {
    let outside = tempfile::tempdir().unwrap();
    let root = outside.path().join("root");
    fs::create_dir_all(root.join("real/deep")).unwrap();
    fs::create_dir_all(outside.path().join("away/deep")).unwrap();
    symlink(outside.path().join("away"), root.join("link")).unwrap();
    let place = Destination::new(&root, policy()).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let flags = rustix::fs::RenameFlags::EXCHANGE;
            let here = fs::File::open(&root).unwrap();
            while !stop.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(&here, "real", &here, "link", flags).unwrap();
            }
        });
        known(&place, |liar| {
            for n in 0..300 {
                let at = |name: &str| format!("real/deep/{name}{n:04}");
                liar.offer_one(directory(&at("a")));
            }
            for n in 0..300 {
                let name = format!("real/deep/f{n:04}");
                let index = liar.next;
                if liar.offer_one(file(&name, 1)) == FileVerdict::Send {
                    liar.file(index, b"x");
                }
            }
        });
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(fs::read_dir(outside.path().join("away/deep")).unwrap().count(), 0);
}

/// Breaks: who sends changes permissions and times of directories that it never offered, or that a stranger
/// has not made.
#[test]
fn only_directories_of_the_transfer_are_sealed() {
    let to = tempfile::tempdir().unwrap();
    fs::create_dir(to.path().join("ours")).unwrap();
    fs::set_permissions(to.path().join("ours"), fs::Permissions::from_mode(0o750)).unwrap();
    let mode = |name: &str| fs::metadata(to.path().join(name)).unwrap().mode() & 0o777;
    let seal = |at: &str| TransferMessage::Seal {
        whole: true,
        path: path(at),
        mode: 0o700,
        modified: FileTime::default(),
    };
    let place = Destination::new(to.path(), policy()).unwrap();
    for token in [&b""[..], b"t"] {
        let received = attack(&place, token, [1; 32], TIMEOUTS, |liar| {
            liar.say(seal("ours"));
            let _ = liar.hear();
        });
        assert!(matches!(received, Err(TransferError::Protocol("a directory that was not offered"))));
    }
    let offered = |token: &[u8], name: &str| {
        attack(&place, token, [1; 32], TIMEOUTS, |liar| {
            assert_eq!(liar.offer_one(directory(name)), FileVerdict::Made);
            liar.say(seal(name));
            liar.say(TransferMessage::Finish { missed: 0 });
            let _ = liar.hear();
        })
        .unwrap();
    };
    offered(b"", "ours");
    assert_eq!(mode("ours"), 0o750, "a stranger has offered it, but not made it");
    offered(b"", "theirs");
    assert_eq!(mode("theirs"), 0o700);
    offered(b"t", "ours");
    assert_eq!(mode("ours"), 0o700);
}

/// Breaks: a stranger plants `.bashrc` or `.ssh/authorized_keys`; or nobody can send hidden files.
#[test]
fn strangers_bring_no_hidden_names() {
    let to = tempfile::tempdir().unwrap();
    let entries =
        || vec![file(".bashrc", 0), directory(".ssh"), directory("a"), file("a/.b", 0), link("a/.c", "d")];
    let place = Destination::new(to.path(), policy()).unwrap();
    stranger(&place, [1; 32], |liar| {
        let verdicts = liar.offer(entries());
        let refused = verdicts
            .iter()
            .filter(|v| matches!(v, FileVerdict::Refused(f) if f.text.contains("--allow-hidden")));
        assert_eq!(refused.count(), 4, "{verdicts:?}");
    });
    let all = |verdicts: Vec<FileVerdict>| {
        verdicts.iter().all(|v| matches!(v, FileVerdict::Send | FileVerdict::Made))
    };
    known(&place, |liar| assert!(all(liar.offer(entries()))));
    let to = tempfile::tempdir().unwrap();
    let place = Destination::new(to.path(), WritePolicy { hidden: true, ..policy() }).unwrap();
    stranger(&place, [1; 32], |liar| assert!(all(liar.offer(entries()))));
}

/// Breaks: one file is hashed again and again because it is offered again and again.
#[test]
fn nothing_is_offered_twice() {
    for paths in [["a", "a"], ["b", "a"], ["a-b", "a/b"]] {
        let to = tempfile::tempdir().unwrap();
        let place = Destination::new(to.path(), policy()).unwrap();
        let received = attack(&place, b"t", [0; 32], TIMEOUTS, |liar| {
            let first = liar.next;
            liar.say(TransferMessage::Offer { first, entries: paths.map(|at| file(at, 1)).to_vec() });
            let _ = liar.hear();
        });
        assert!(matches!(received, Err(TransferError::Protocol(why)) if why.contains("comes twice")));
    }
}

/// Breaks: a disk is filled beyond what was allowed: by large files, many small ones, or single bytes far
/// apart.
#[test]
fn no_more_is_stored_than_allowed() {
    let to = tempfile::tempdir().unwrap();
    let max_bytes = Some(ByteCount::new(1 << 20));
    let place = Destination::new(to.path(), WritePolicy { max_bytes, ..policy() }).unwrap();
    let limit =
        |verdict: FileVerdict| matches!(verdict, FileVerdict::Refused(fault) if fault.code == Code::Limit);
    stranger(&place, [1; 32], |liar| assert!(limit(liar.offer_one(file("a", (1 << 20) + 1)))));
    let received = attack(&place, b"", [1; 32], TIMEOUTS, |liar| {
        liar.offer_one(file("a", 1 << 20));
        liar.say(TransferMessage::Begin { index: 0, offset: 0 });
        for _ in 0..255 {
            liar.data(&[1]);
            liar.say(TransferMessage::Hole { len: 4_095 });
        }
        liar.data(&[1]);
        assert!(matches!(liar.hear(), Ok(TransferMessage::Failed(fault)) if fault.code == Code::Limit));
    });
    assert!(matches!(received, Err(TransferError::Own(fault)) if fault.code == Code::Limit));
    // The partial file is still there; nothing else fits.
    let mut made = 0;
    stranger(&place, [1; 32], |liar| {
        for n in 0..1_000 {
            match liar.offer_one(directory(&format!("d{n:04}"))) {
                FileVerdict::Made => made += 1,
                verdict => return assert!(limit(verdict)),
            }
        }
        panic!("directories without end");
    });
    assert!(made <= 2, "{made}");
    let all = Some(MinFree::Percent(100));
    let place = Destination::new(to.path(), WritePolicy { min_free: all, ..policy() }).unwrap();
    for token in [&b""[..], b"t"] {
        let received = attack(&place, token, [1; 32], TIMEOUTS, |liar| {
            let verdict = liar.offer_one(directory("x"));
            assert!(matches!(verdict, FileVerdict::Refused(fault) if fault.code == Code::NoSpace));
            liar.offer_one(file("y", 1));
            liar.say(TransferMessage::Begin { index: 1, offset: 0 });
            liar.data(b"y");
            assert!(matches!(liar.hear(), Ok(TransferMessage::Failed(_))));
        });
        assert!(matches!(received, Err(TransferError::Own(fault)) if fault.code == Code::NoSpace));
    }
}

/// Breaks: partial files of strangers stay for ever, or those of an interrupted sender go too early.
#[test]
fn partial_files_of_strangers_have_an_end() {
    let to = tempfile::tempdir().unwrap();
    let folder = to.path().join(".strangers.farpace-part");
    let count = || fs::read_dir(&folder).map_or(0, Iterator::count);
    let place = Destination::new(to.path(), policy()).unwrap();
    for sender in [[1; 32], [2; 32]] {
        stranger(&place, sender, |liar| interrupt(liar, "film", 100, b"begin"));
    }
    assert_eq!(count(), 2);
    assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
    place.expire();
    drop(place);
    assert_eq!(count(), 2, "they are kept for a day");
    let place =
        Destination::new(to.path(), WritePolicy { keep_partial: Duration::ZERO, ..policy() }).unwrap();
    assert_eq!(count(), 0);
    // One that is being written has no end.
    stranger(&place, [1; 32], |liar| {
        liar.offer(vec![file("film", 100), file("g", 0)]);
        liar.say(TransferMessage::Begin { index: 0, offset: 0 });
        liar.data(b"begin");
        let due = Instant::now() + SOON;
        while count() == 0 && Instant::now() < due {
            std::thread::sleep(Duration::from_millis(5));
        }
        place.expire();
        assert_eq!(count(), 1);
        liar.data(&[0; 95]);
        let mut bytes = b"begin".to_vec();
        bytes.resize(100, 0);
        liar.say(TransferMessage::End { hash: hash(&bytes) });
        assert!(matches!(liar.hear(), Ok(TransferMessage::Done { fault: None, .. })));
    });
    assert!(to.path().join("film").exists());
    drop(place);
    assert!(!folder.exists());
    // A directory in its place that somebody else could write to is not used.
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    let place = Destination::new(to.path(), policy()).unwrap();
    stranger(&place, [1; 32], |liar| {
        assert!(
            matches!(liar.offer_one(file("x", 1)), FileVerdict::Refused(fault) if fault.code == Code::Permission)
        );
    });
}

/// Breaks: a peer that says again and again that it is busy, or sends a byte now and then, holds a place for
/// ever.
#[test]
fn endless_busy_and_drops_of_data_end() {
    let to = tempfile::tempdir().unwrap();
    let place = Destination::new(to.path(), policy()).unwrap();
    let timeouts = Timeouts { idle: Duration::from_secs(2), ..TIMEOUTS };
    let until_closed = |liar: &mut Liar<'_>, mut say: Box<dyn FnMut(&mut Liar<'_>) -> bool>| {
        let due = Instant::now() + SOON;
        while say(liar) {
            assert!(Instant::now() < due, "it goes on for ever");
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    for token in [&b""[..], b"t"] {
        let received = attack(&place, token, [1; 32], timeouts, |liar| {
            until_closed(liar, Box::new(|liar| liar.writer.message(&TransferMessage::Busy).is_ok()));
        });
        assert!(matches!(received, Err(TransferError::Silent(_))), "{received:?}");
    }
    let received = attack(&place, b"", [1; 32], timeouts, |liar| {
        liar.offer_one(file("a", 1 << 40));
        liar.say(TransferMessage::Begin { index: 0, offset: 0 });
        until_closed(
            liar,
            Box::new(|liar| liar.writer.data_header(1).and_then(|()| liar.writer.raw(b"x")).is_ok()),
        );
    });
    assert!(matches!(received, Err(TransferError::Silent(_))), "{received:?}");
}

/// Breaks: a sender that has to hash what it has sent before, and says so, is taken for silent.
#[test]
fn who_has_something_to_hash_may_take_its_time() {
    let to = tempfile::tempdir().unwrap();
    let place = Destination::new(to.path(), policy()).unwrap();
    // 50 MB at 10 MB/s: 5 s of Busy are believed, more than twice as long as silence would be.
    let there = vec![7; 50_000_000];
    fs::write(to.path().join(path("film").partial_name()), &there).unwrap();
    let timeouts = Timeouts { idle: Duration::from_secs(2), ..TIMEOUTS };
    let received = attack(&place, b"t", [0; 32], timeouts, |liar| {
        let size = there.len() as u64;
        let verdict = liar.offer_one(file("film", size + 1));
        assert!(matches!(verdict, FileVerdict::Resume { offset, .. } if offset == size));
        for _ in 0..6 {
            std::thread::sleep(Duration::from_millis(500));
            liar.say(TransferMessage::Busy);
        }
        liar.say(TransferMessage::Begin { index: 0, offset: size });
        liar.data(b"!");
        let mut hasher = ContentHasher::default();
        hasher.update(&there);
        hasher.update(b"!");
        liar.say(TransferMessage::End { hash: hasher.result() });
        assert!(matches!(liar.hear(), Ok(TransferMessage::Done { fault: None, .. })));
        liar.say(TransferMessage::Finish { missed: 0 });
        let _ = liar.hear();
    });
    assert_eq!(received.unwrap().files, 1);
}

/// Breaks: a peer that does not read keeps a receiver from ending when it is told to.
#[test]
fn who_does_not_read_does_not_keep_a_receiver() {
    let to = tempfile::tempdir().unwrap();
    let place = Destination::new(to.path(), policy()).unwrap();
    let offers = AtomicU64::new(0);
    let (ours, theirs) = pair();
    let received = std::thread::scope(|scope| {
        scope.spawn(|| {
            let moved = AtomicU64::new(0);
            let (reader, writer) = (theirs.try_clone().unwrap(), theirs.try_clone().unwrap());
            let (_, mut writer) = shake(reader, writer, &Session::default(), Role::Sends, &moved).unwrap();
            let summary =
                TransferMessage::Summary { entries: 1_000_000, bytes: 1, roots: 1, sender: [0; 32] };
            writer.message(&summary).unwrap();
            // Refusals are longer than what they answer: in the end the receiver waits to be read, and then
            // this does.
            for first in (0..1_000_000).step_by(1_000) {
                let entries = (first..first + 1_000).map(|n| file(&format!(".{n:07}"), 1)).collect();
                if writer.message(&TransferMessage::Offer { first, entries }).is_err() {
                    return;
                }
                offers.fetch_add(1, Ordering::Relaxed);
            }
            panic!("a receiver has read on though nobody has heard it");
        });
        // It is told to end when nothing has moved for a second.
        let seen = std::sync::Mutex::new((0, Instant::now()));
        let tick = |_: &_| {
            let (last, since) = &mut *seen.lock().unwrap();
            let now = offers.load(Ordering::Relaxed);
            if now != *last {
                (*last, *since) = (now, Instant::now());
            }
            now > 0 && since.elapsed() > Duration::from_secs(1)
        };
        let session = Session { connected: false, timeouts: TIMEOUTS, tick: &tick, ..Session::default() };
        receive(kernel::line_of(ours).unwrap(), &session, &place)
    });
    assert!(matches!(received, Err(TransferError::Interrupted)), "{received:?}");
}

/// Breaks: who has proved nothing makes a receiver hold a megabyte, or is told that its token is wrong when
/// it has none.
#[test]
fn before_the_token_nothing_is_held() {
    let to = tempfile::tempdir().unwrap();
    let place = Destination::new(to.path(), policy()).unwrap();
    let (ours, mut theirs) = pair();
    let received = std::thread::scope(|scope| {
        scope.spawn(move || {
            let hello = [&b"farpace\n"[..], &[3, 3, 1, 0], &[9; 32]].concat();
            theirs.write_all(&hello).unwrap();
            // An offer of a megabyte that never comes.
            theirs.write_all(&[4, 0, 15, 255, 255]).unwrap();
            let _ = theirs.read_to_end(&mut Vec::new());
        });
        let session = Session { token: b"t", connected: false, timeouts: TIMEOUTS, ..Session::default() };
        receive(kernel::line_of(ours).unwrap(), &session, &place)
    });
    assert!(matches!(received, Err(TransferError::Protocol(_))), "{received:?}");
}

/// Breaks: without a token an interrupted transfer begins anew, or what is there is sent again.
#[test]
fn a_sender_without_token_goes_on_with_its_own() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let place = Destination::new(to.path(), policy()).unwrap();
    fs::create_dir(from.path().join("tree")).unwrap();
    for (name, len) in [("tree/a", 100_usize), ("tree/b", 3_000_000)] {
        fs::write(from.path().join(name), vec![7; len]).unwrap();
    }
    let run = |sender: SenderKey, stop_at: u64| {
        let (ours, theirs) = pair();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let session = Session { connected: false, timeouts: TIMEOUTS, ..Session::default() };
                receive(kernel::line_of(ours).unwrap(), &session, &place)
            });
            let stop = |progress: &farpace_transfer::LineProgress| progress.bytes >= stop_at;
            let session = Session { timeouts: TIMEOUTS, tick: &stop, sender, ..Session::default() };
            let found = walk(&[from.path().join("tree")]).unwrap();
            let limit = Some(farpace_units::Rate::from_mbit(40));
            send(kernel::line_of(theirs).unwrap(), &session, found, limit)
        })
    };
    assert!(matches!(run([1; 32], 1_000_000), Err(TransferError::Interrupted)));
    let other = run([2; 32], u64::MAX).unwrap();
    assert_eq!((other.spared, other.failed), (0, 1), "another one begins anew, and may not touch `a`");
    fs::remove_file(to.path().join("tree/b")).unwrap();
    let again = run([1; 32], u64::MAX).unwrap();
    assert!(again.spared > 500_000, "{again:?}");
    if again.failed == 0 {
        assert_eq!((again.files, again.unchanged), (1, 1));
    }
    assert_eq!(fs::read(to.path().join("tree/b")).unwrap().len(), 3_000_000);
    let modified = |dir: &Path| fs::metadata(dir.join("tree")).unwrap().mtime();
    assert_eq!(modified(from.path()), modified(to.path()), "the directory is sealed by who has made it");
}
