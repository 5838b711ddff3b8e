//! Peers that lie, with and without a token: whatever they say, nothing is written outside of the directory,
//! nothing panics, and it ends.

use crate::content::ContentHasher;
use crate::fault::{TransferError, TransferFault};
use crate::frame::FrameWriter;
use crate::handshake::{Role, shake};
use crate::limits::MAX_PROBLEMS;
use crate::line::{Session, Timeouts};
use crate::message::{EntryKind, FileEntry, FileTime, FileVerdict, TransferMessage};
use crate::min_free::MinFree;
use crate::path::RelPath;
use crate::place::{Destination, WritePolicy};
use crate::receiver::receive;
use crate::sender::send;
use crate::walk::walk;
use crate::{Code, kernel};
use farpace_units::ByteCount;
use proptest::prelude::*;
use std::cmp::Ordering;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (ours, listener.accept().unwrap().0)
}

fn session(token: &[u8], connected: bool) -> Session<'_> {
    let timeouts = Timeouts { handshake: Duration::from_secs(20), idle: Duration::from_secs(20) };
    Session { token, connected, timeouts, sender: [5; 32], ..Session::default() }
}

/// Does the handshake, says what `speak` says, and hears on until the other side has enough.
fn lie(
    stream: TcpStream,
    token: &[u8],
    role: Role,
    speak: impl FnOnce(&mut FrameWriter<TcpStream>) -> std::io::Result<()>,
) {
    let moved = AtomicU64::new(0);
    let (reader, writer) = (stream.try_clone().unwrap(), stream.try_clone().unwrap());
    let frames = shake(reader, writer, &session(token, true), role, &moved);
    let Ok((_, mut out)) = frames else { return };
    let _ = speak(&mut out).and_then(|()| out.flush());
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let _ = (&stream).read_to_end(&mut Vec::new());
}

/// What a liar says: whole files and offers that may be right, so that it gets far, and anything at any time.
#[derive(Clone, Debug)]
enum Said {
    /// Entries, in the order of a walk or not.
    Offer(Vec<FileEntry>, bool),
    /// One of the files that were offered: what comes of it, and how it ends.
    File(usize, Vec<Piece>, Ending),
    Message(TransferMessage),
    Data(usize),
    Raw(Vec<u8>),
}

#[derive(Clone, Debug)]
enum Piece {
    Data(usize),
    /// So many bytes.
    Hole(u64),
    /// All that is left of the file.
    Rest,
}

#[derive(Clone, Debug)]
enum Ending {
    Right,
    Wrong,
    Abandon,
    None,
}

fn path() -> impl Strategy<Value = RelPath> {
    // Few names, so that files, directories and links meet.
    let name = prop_oneof![Just("a"), Just("b"), Just("l"), Just(".h")];
    proptest::collection::vec(name, 1..4).prop_map(|names| RelPath::new(names.join("/").as_bytes()).unwrap())
}

fn entry() -> impl Strategy<Value = FileEntry> {
    let targets = vec![".", "a", "..", "/tmp", "../..", "b/../..", "l/..", "a/b/../..", "l/../../x", "a/l"];
    let target = proptest::sample::select(targets);
    let kind = prop_oneof![
        2 => (0..40_u64).prop_map(|size| EntryKind::File { size }),
        1 => (1..63_u32).prop_map(|bits| EntryKind::File { size: 1 << bits }),
        1 => Just(EntryKind::File { size: i64::MAX as u64 }),
        2 => Just(EntryKind::Directory),
        2 => target.prop_map(|target| EntryKind::Link { target: target.as_bytes().to_vec() }),
    ];
    (path(), kind, 0..0o1000_u16).prop_map(|(path, kind, mode)| {
        let modified = FileTime { seconds: i64::MIN, nanos: 1 };
        FileEntry { path, kind, mode: mode | 0o700, modified }
    })
}

fn said() -> impl Strategy<Value = Said> {
    let fault = || TransferFault::new(Code::Changed, "lie");
    let piece = prop_oneof![
        (1..9_000_usize).prop_map(Piece::Data),
        prop_oneof![0..9_000_u64, any::<u64>()].prop_map(Piece::Hole),
        Just(Piece::Rest),
    ];
    let ending = prop_oneof![
        4 => Just(Ending::Right),
        1 => Just(Ending::Wrong),
        1 => Just(Ending::Abandon),
        1 => Just(Ending::None)
    ];
    let message = prop_oneof![
        (0..6_u64, prop_oneof![Just(0), any::<u64>()])
            .prop_map(|(index, offset)| TransferMessage::Begin { index, offset }),
        any::<u64>().prop_map(|len| TransferMessage::Hole { len }),
        Just(TransferMessage::End { hash: [3; 32] }),
        Just(TransferMessage::Abandon(fault())),
        path().prop_map(|path| TransferMessage::Seal {
            whole: true,
            path,
            mode: 0o700,
            modified: FileTime::default()
        }),
        any::<u64>().prop_map(|missed| TransferMessage::Finish { missed }),
        any::<u8>().prop_map(|n| TransferMessage::Missed {
            path: "x".repeat(n.into()),
            fault: TransferFault::new(Code::Changed, "gone"),
        }),
        Just(TransferMessage::Busy),
        (0..6_u64).prop_map(|index| TransferMessage::Ahead { index }),
        (0..6_u64).prop_map(|index| TransferMessage::Same { index }),
        Just(TransferMessage::Withdraw),
        Just(TransferMessage::Failed(fault())),
        Just(TransferMessage::Summary { entries: 9, bytes: 9, roots: 9, sender: [5; 32] }),
    ];
    prop_oneof![
        6 => (proptest::collection::vec(entry(), 0..6), any::<bool>())
            .prop_map(|(entries, sorted)| Said::Offer(entries, sorted)),
        6 => (any::<usize>(), proptest::collection::vec(piece, 0..4), ending)
            .prop_map(|(file, pieces, ending)| Said::File(file, pieces, ending)),
        3 => message.prop_map(Said::Message),
        1 => (1..40_usize).prop_map(Said::Data),
        1 => proptest::collection::vec(any::<u8>(), 0..30).prop_map(Said::Raw),
    ]
}

/// Says it all.
fn speak(said: Vec<Said>, out: &mut FrameWriter<TcpStream>) -> std::io::Result<()> {
    out.message(&TransferMessage::Summary { entries: 40, bytes: 100, roots: 1, sender: [5; 32] })?;
    let mut next = 0;
    let mut files = Vec::new();
    for said in said {
        match said {
            Said::Offer(mut entries, sorted) => {
                if sorted {
                    entries.sort_by(|a, b| {
                        if a.path.comes_after(&b.path) { Ordering::Greater } else { Ordering::Less }
                    });
                    entries.dedup_by(|a, b| a.path == b.path);
                }
                let first = next;
                for entry in &entries {
                    if let EntryKind::File { size } = entry.kind {
                        files.push((next, size));
                    }
                    next += 1;
                }
                out.message(&TransferMessage::Offer { first, entries })?;
            }
            Said::File(file, pieces, ending) => {
                if files.is_empty() {
                    continue;
                }
                let (index, mut left) = files.remove(file % files.len());
                out.message(&TransferMessage::Begin { index, offset: 0 })?;
                let mut hasher = ContentHasher::default();
                for piece in pieces {
                    match piece {
                        Piece::Data(len) => {
                            let len = len.min(usize::try_from(left).unwrap_or(len)).max(1);
                            out.data_header(len)?;
                            out.raw(&vec![7; len])?;
                            hasher.update(&vec![7; len]);
                            left = left.saturating_sub(len as u64);
                        }
                        Piece::Hole(len) => {
                            out.message(&TransferMessage::Hole { len })?;
                            hasher.zeros(len);
                            left = left.saturating_sub(len);
                        }
                        Piece::Rest => {
                            out.message(&TransferMessage::Hole { len: left })?;
                            hasher.zeros(left);
                            left = 0;
                        }
                    }
                }
                match ending {
                    Ending::Right => out.message(&TransferMessage::End { hash: hasher.result() })?,
                    Ending::Wrong => out.message(&TransferMessage::End { hash: [3; 32] })?,
                    Ending::Abandon => {
                        out.message(&TransferMessage::Abandon(TransferFault::new(Code::Changed, "lie")))?
                    }
                    Ending::None => {}
                }
            }
            Said::Message(message) => out.message(&message)?,
            Said::Data(len) => {
                out.data_header(len)?;
                out.raw(&vec![0; len])?;
            }
            Said::Raw(bytes) => out.raw(&bytes)?,
        }
    }
    Ok(())
}

/// Everything below a directory, and where the links among it lead to.
fn everything(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(everything(&path));
        }
        found.push(path);
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Breaks: a sender, with or without a token, writes where it must not or makes a link that leads there,
    /// leaves something open, or crashes or hangs a receiver.
    #[test]
    fn a_lying_sender_stays_within_the_directory(
        said in proptest::collection::vec(said(), 0..14),
        again in proptest::collection::vec(said(), 0..14),
        proved in any::<bool>(),
    ) {
        let token: &[u8] = if proved { b"t" } else { b"" };
        let outside = tempfile::tempdir().unwrap();
        let inside = outside.path().join("in/side");
        fs::create_dir_all(&inside).unwrap();
        fs::write(outside.path().join("in/file"), "ours").unwrap();
        std::os::unix::fs::symlink("../..", inside.join("ours")).unwrap();
        let min_free = Some(MinFree::Bytes(ByteCount::ZERO));
        let policy = WritePolicy { overwrite: true, hidden: true, min_free, ..WritePolicy::default() };
        let place = Destination::new(&inside, policy).unwrap();
        // The second connection finds what the first has left.
        for said in [said, again] {
            let (ours, theirs) = pair();
            std::thread::scope(|scope| {
                scope.spawn(move || lie(theirs, token, Role::Sends, |out| speak(said, out)));
                let result = receive(kernel::line_of(ours).unwrap(), &session(token, false), &place);
                assert!(!matches!(result, Err(TransferError::Silent(_))), "it ends when the sender has left");
            });
        }
        let names = |dir: &Path| -> Vec<_> {
            fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect()
        };
        prop_assert_eq!(names(outside.path()), ["in"]);
        prop_assert_eq!(names(&outside.path().join("in")).len(), 2);
        prop_assert_eq!(fs::read_to_string(outside.path().join("in/file")).unwrap(), "ours");
        let root = inside.canonicalize().unwrap();
        for path in everything(&inside) {
            let leads_to = path.canonicalize().unwrap_or(root.clone());
            prop_assert!(path.ends_with("ours") || leads_to.starts_with(&root), "{:?} leads to \
                                                                                 {:?}", path, leads_to);
        }
    }

    /// Breaks: a receiver that knows the token crashes or hangs a sender.
    #[test]
    fn a_lying_receiver_ends_the_transfer(
        answers in proptest::collection::vec((0..3_u64, 0..4_usize, any::<u64>(), 0..5_u8), 0..5),
        done in proptest::collection::vec(0..4_u64, 0..4),
    ) {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("x"), [1; 100]).unwrap();
        let found = walk(&[dir.path().join("x")]).unwrap();
        let (ours, theirs) = pair();
        let result = std::thread::scope(|scope| {
            scope.spawn(move || lie(theirs, b"t", Role::Receives, |out| {
                for (first, count, offset, kind) in answers {
                    let hash = [1; 32];
                    let verdict = match kind {
                        0 => FileVerdict::Send,
                        1 => FileVerdict::Resume { offset, hash },
                        2 => FileVerdict::Have { hash, replace: offset % 2 == 0 },
                        3 => FileVerdict::Made,
                        _ => FileVerdict::Refused(TransferFault::new(Code::Path, "no")),
                    };
                    out.message(&TransferMessage::Answers { first, verdicts: vec![verdict; count] })?;
                }
                for index in done {
                    out.message(&TransferMessage::Done { index, fault: None })?;
                }
                Ok(())
            }));
            send(kernel::line_of(ours).unwrap(), &session(b"t", false), found, None)
        });
        prop_assert!(result.is_err(), "nobody has acknowledged the end: {:?}", result);
    }
}

/// Breaks: a stream of garbage of any length holds memory or hangs.
#[test]
fn garbage_ends_a_transfer() {
    let dir = tempfile::tempdir().unwrap();
    let place = Destination::new(dir.path(), WritePolicy::default()).unwrap();
    let (ours, mut theirs) = pair();
    let result = std::thread::scope(|scope| {
        scope.spawn(move || while theirs.write_all(&[0xa5; 10_000]).is_ok() {});
        receive(kernel::line_of(ours).unwrap(), &session(b"t", false), &place)
    });
    assert!(matches!(result, Err(TransferError::Protocol(_))), "{result:?}");
}

/// Breaks: of two sources that are to get one name the second replaces the first, if the sender lies about
/// their number.
#[test]
fn two_sources_do_not_get_one_name() {
    let dir = tempfile::tempdir().unwrap();
    let policy = WritePolicy { overwrite: true, rename: Some("name".into()), ..WritePolicy::default() };
    let place = Destination::new(dir.path(), policy).unwrap();
    let (ours, theirs) = pair();
    let result = std::thread::scope(|scope| {
        scope.spawn(move || {
            lie(theirs, b"t", Role::Sends, |out| {
                out.message(&TransferMessage::Summary { entries: 2, bytes: 0, roots: 1, sender: [0; 32] })?;
                let entries = ["a", "b"].map(|name| FileEntry {
                    path: RelPath::new(name.as_bytes()).unwrap(),
                    kind: EntryKind::Directory,
                    mode: 0o755,
                    modified: FileTime::default(),
                });
                out.message(&TransferMessage::Offer { first: 0, entries: entries.into() })
            });
        });
        receive(kernel::line_of(ours).unwrap(), &session(b"t", false), &place)
    });
    assert!(matches!(result, Err(TransferError::Protocol(_))), "{result:?}");
}

/// Breaks: a sender makes a receiver hold any number of reasons, or the other way round.
#[test]
fn so_many_reasons_are_told_and_no_more() {
    let missed = |n: usize| TransferMessage::Missed {
        path: n.to_string(),
        fault: TransferFault::new(Code::Other, "lie"),
    };
    for (told, is_taken) in [(MAX_PROBLEMS, true), (MAX_PROBLEMS + 1, false)] {
        let dir = tempfile::tempdir().unwrap();
        let place = Destination::new(dir.path(), WritePolicy::default()).unwrap();
        let (ours, theirs) = pair();
        let received = std::thread::scope(|scope| {
            scope.spawn(move || {
                lie(theirs, b"t", Role::Sends, |out| {
                    let (entries, bytes, roots, sender) = (0, 0, 0, [0; 32]);
                    out.message(&TransferMessage::Summary { entries, bytes, roots, sender })?;
                    (0..told).try_for_each(|n| out.message(&missed(n)))?;
                    out.message(&TransferMessage::Finish { missed: u64::MAX })
                });
            });
            receive(kernel::line_of(ours).unwrap(), &session(b"t", false), &place)
        });
        let (ours, theirs) = pair();
        let sent = std::thread::scope(|scope| {
            scope.spawn(move || {
                lie(theirs, b"t", Role::Receives, |out| {
                    (0..told).try_for_each(|n| out.message(&missed(n)))?;
                    let (files, bytes, disk) = (0, 0, Duration::ZERO);
                    let (hash, waited, missed) = (disk, disk, u64::MAX);
                    out.message(&TransferMessage::Finished { files, bytes, disk, hash, waited, missed })
                });
            });
            send(kernel::line_of(ours).unwrap(), &session(b"t", false), walk(&[]).unwrap(), None)
        });
        if is_taken {
            let (received, sent) = (received.unwrap(), sent.unwrap());
            assert_eq!((received.failed, received.problems.len()), (u64::MAX, MAX_PROBLEMS));
            assert_eq!((sent.failed, sent.problems.len()), (u64::MAX, MAX_PROBLEMS));
        } else {
            assert!(matches!(received, Err(TransferError::Protocol(_))), "{received:?}");
            assert!(matches!(sent, Err(TransferError::Protocol(_))), "{sent:?}");
        }
    }
}
