//! Peers that know the token and lie: whatever they say, nothing is written outside of the directory, nothing panics, and
//! it ends.

use crate::fault::{Fault, TransferError};
use crate::frame::FrameWriter;
use crate::handshake::{Role, shake};
use crate::line::{Patience, Session};
use crate::message::{Entry, FileTime, Kind, Message, Verdict};
use crate::path::RelPath;
use crate::place::{Place, Policy};
use crate::receiver::receive;
use crate::sender::send;
use crate::walk::walk;
use crate::{Code, kernel};
use proptest::prelude::*;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (ours, listener.accept().unwrap().0)
}

fn session(connected: bool) -> Session<'static> {
    let patience = Patience { handshake: Duration::from_secs(2), idle: Duration::from_secs(2) };
    Session { token: b"t", connected, patience, tick: &|_| false }
}

/// Does the handshake, says what `speak` says, and hears on until the other side has enough.
fn lie(
    stream: TcpStream,
    role: Role,
    speak: impl FnOnce(&mut FrameWriter<TcpStream>) -> std::io::Result<()>,
) {
    let moved = AtomicU64::new(0);
    let frames = shake(stream.try_clone().unwrap(), stream.try_clone().unwrap(), b"t", true, role, &moved);
    let Ok((_, mut out)) = frames else { return };
    let _ = speak(&mut out).and_then(|()| out.flush());
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let _ = (&stream).read_to_end(&mut Vec::new());
}

#[derive(Clone, Debug)]
enum Said {
    Message(Message),
    Data(usize),
    Raw(Vec<u8>),
}

fn path() -> impl Strategy<Value = RelPath> {
    // Few names, so that files, directories and links meet.
    proptest::collection::vec(prop_oneof![Just("a"), Just("b"), Just("l")], 1..4)
        .prop_map(|names| RelPath::new(names.join("/").as_bytes()).unwrap())
}

fn entry() -> impl Strategy<Value = Entry> {
    let target = prop_oneof![Just("."), Just("a"), Just(".."), Just("/tmp"), Just("../.."), Just("b/../..")];
    let kind = prop_oneof![
        (0..40_u64).prop_map(|size| Kind::File { size }),
        Just(Kind::File { size: i64::MAX as u64 }),
        Just(Kind::Directory),
        target.prop_map(|target| Kind::Link { target: target.as_bytes().to_vec() }),
    ];
    (path(), kind, 0..0o1000_u16).prop_map(|(path, kind, mode)| {
        let modified = FileTime { seconds: i64::MIN, nanos: 1 };
        Entry { path, kind, mode: mode | 0o700, modified }
    })
}

fn said() -> impl Strategy<Value = Said> {
    let hash = any::<bool>().prop_map(|good| if good { *blake3::hash(&[0; 7]).as_bytes() } else { [3; 32] });
    let fault = || Fault::new(Code::Changed, "lie");
    prop_oneof![
        4 => (0..6_u64, proptest::collection::vec(entry(), 0..5))
            .prop_map(|(first, entries)| Said::Message(Message::Offer { first, entries })),
        4 => (0..6_u64, prop_oneof![Just(0), any::<u64>()])
            .prop_map(|(index, offset)| Said::Message(Message::Begin { index, offset })),
        4 => (1..40_usize).prop_map(Said::Data),
        4 => Just(Said::Data(7)),
        2 => prop_oneof![0..40_u64, any::<u64>()].prop_map(|len| Said::Message(Message::Hole { len: len & !(1 << 62 | 1 << 61) })),
        3 => hash.prop_map(|hash| Said::Message(Message::End { hash })),
        1 => Just(Said::Message(Message::Abandon(fault()))),
        1 => path().prop_map(|path| Said::Message(Message::Seal { path, mode: 0o700, modified: FileTime::default() })),
        1 => Just(Said::Message(Message::Finish)),
        1 => Just(Said::Message(Message::Busy)),
        1 => proptest::collection::vec(any::<u8>(), 0..30).prop_map(Said::Raw),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Breaks: a sender that knows the token writes where it must not, or crashes or hangs a receiver.
    #[test]
    fn a_lying_sender_stays_within_the_directory(said in proptest::collection::vec(said(), 0..14)) {
        let outside = tempfile::tempdir().unwrap();
        let inside = outside.path().join("in/side");
        fs::create_dir_all(&inside).unwrap();
        fs::write(outside.path().join("in/file"), "ours").unwrap();
        let place = Place::new(&inside, Policy { overwrite: true, ..Policy::default() }).unwrap();
        let (ours, theirs) = pair();
        std::thread::scope(|scope| {
            scope.spawn(move || lie(theirs, Role::Sends, |out| {
                out.message(&Message::Summary { entries: 5, bytes: 100, roots: 1 })?;
                for said in said {
                    match said {
                        Said::Message(message) => out.message(&message)?,
                        Said::Data(len) => {
                            out.data_header(len)?;
                            out.raw(&vec![0; len])?;
                        }
                        Said::Raw(bytes) => out.raw(&bytes)?,
                    }
                }
                Ok(())
            }));
            let _ = receive(kernel::line_of(ours).unwrap(), &session(false), &place);
        });
        let names = |dir: &std::path::Path| -> Vec<_> {
            fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect()
        };
        prop_assert_eq!(names(outside.path()), ["in"]);
        prop_assert_eq!(names(&outside.path().join("in")).len(), 2);
        prop_assert_eq!(fs::read_to_string(outside.path().join("in/file")).unwrap(), "ours");
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
            scope.spawn(move || lie(theirs, Role::Receives, |out| {
                for (first, count, offset, kind) in answers {
                    let hash = [1; 32];
                    let verdict = match kind {
                        0 => Verdict::Send,
                        1 => Verdict::Resume { offset, hash },
                        2 => Verdict::Have { hash, replace: offset % 2 == 0 },
                        3 => Verdict::Made,
                        _ => Verdict::Refused(Fault::new(Code::Path, "no")),
                    };
                    out.message(&Message::Answers { first, verdicts: vec![verdict; count] })?;
                }
                for index in done {
                    out.message(&Message::Done { index, fault: None })?;
                }
                Ok(())
            }));
            send(kernel::line_of(ours).unwrap(), &session(true), found, None)
        });
        prop_assert!(result.is_err(), "nobody has acknowledged the end: {:?}", result);
    }
}

/// Breaks: a stream of garbage of any length holds memory or hangs.
#[test]
fn garbage_ends_a_transfer() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::new(dir.path(), Policy::default()).unwrap();
    let (ours, mut theirs) = pair();
    let result = std::thread::scope(|scope| {
        scope.spawn(move || while theirs.write_all(&[0xa5; 10_000]).is_ok() {});
        receive(kernel::line_of(ours).unwrap(), &session(false), &place)
    });
    assert!(matches!(result, Err(TransferError::Protocol(_))), "{result:?}");
}
