use super::*;
use proptest::prelude::*;

fn path() -> impl Strategy<Value = RelPath> {
    "[a-z]{1,8}(/[a-z.]{1,8}x){0,3}".prop_map(|text| RelPath::new(text.as_bytes()).unwrap())
}
fn fault() -> impl Strategy<Value = TransferFault> {
    (0..16_u8, "[ -~]{0,60}").prop_map(|(code, text)| TransferFault::new(Code::of(code), text))
}
fn time() -> impl Strategy<Value = FileTime> {
    (any::<i64>(), 0..1_000_000_000_u32).prop_map(|(seconds, nanos)| FileTime { seconds, nanos })
}
fn entry() -> impl Strategy<Value = FileEntry> {
    let kind = prop_oneof![
        (0..=MAX_SIZE).prop_map(|size| EntryKind::File { size }),
        Just(EntryKind::Directory),
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(|target| EntryKind::Link { target }),
    ];
    (path(), kind, 0..0o1000_u16, time()).prop_map(|(path, kind, mode, modified)| FileEntry {
        path,
        kind,
        mode,
        modified,
    })
}
fn verdict() -> impl Strategy<Value = FileVerdict> {
    prop_oneof![
        Just(FileVerdict::Send),
        (any::<u64>(), any::<Hash>()).prop_map(|(offset, hash)| FileVerdict::Resume { offset, hash }),
        (any::<Hash>(), any::<bool>()).prop_map(|(hash, replace)| FileVerdict::Have { hash, replace }),
        Just(FileVerdict::Made),
        Just(FileVerdict::There),
        fault().prop_map(FileVerdict::Refused),
    ]
}
fn message() -> impl Strategy<Value = TransferMessage> {
    prop_oneof![
        Just(TransferMessage::Ready),
        any::<u64>().prop_map(|missed| TransferMessage::Finish { missed }),
        ("[ -~]{0,60}", fault()).prop_map(|(path, fault)| TransferMessage::Missed { path, fault }),
        Just(TransferMessage::Busy),
        any::<u64>().prop_map(|index| TransferMessage::Ahead { index }),
        any::<u64>().prop_map(|index| TransferMessage::Same { index }),
        Just(TransferMessage::Withdraw),
        (0..MAX_ENTRIES, 0..MAX_SIZE, any::<u32>(), any::<Hash>()).prop_map(
            |(entries, bytes, roots, sender)| TransferMessage::Summary { entries, bytes, roots, sender }
        ),
        (any::<u64>(), proptest::collection::vec(entry(), 0..20))
            .prop_map(|(first, entries)| TransferMessage::Offer { first, entries }),
        (any::<u64>(), proptest::collection::vec(verdict(), 0..20))
            .prop_map(|(first, verdicts)| TransferMessage::Answers { first, verdicts }),
        any::<(u64, u64)>().prop_map(|(index, offset)| TransferMessage::Begin { index, offset }),
        any::<u64>().prop_map(|len| TransferMessage::Hole { len }),
        any::<Hash>().prop_map(|hash| TransferMessage::End { hash }),
        fault().prop_map(TransferMessage::Abandon),
        (any::<bool>(), path(), 0..0o1000_u16, time())
            .prop_map(|(whole, path, mode, modified)| TransferMessage::Seal { whole, path, mode, modified }),
        (any::<u64>(), proptest::option::of(fault()))
            .prop_map(|(index, fault)| TransferMessage::Done { index, fault }),
        any::<(u64, u64, u32, u64)>().prop_map(|(files, bytes, time, missed)| {
            let time = Duration::from_nanos(time.into());
            TransferMessage::Finished { files, bytes, disk: time, hash: time * 2, waited: time * 3, missed }
        }),
        fault().prop_map(TransferMessage::Failed),
    ]
}

proptest! {
    /// Breaks: a message means something else on the other side.
    #[test]
    fn messages_come_back(message in message()) {
        let (kind, payload) = message.encode();
        prop_assert_eq!(TransferMessage::decode(kind, &payload), Ok(message));
    }

    /// Breaks: a peer crashes us with a message, or gets one taken that is too short or too long.
    #[test]
    fn cut_and_longer_messages_are_refused(message in message(), cut in any::<proptest::sample::Index>()) {
        let (kind, mut payload) = message.encode();
        if !payload.is_empty() {
            let short = &payload[..cut.index(payload.len())];
            prop_assert!(TransferMessage::decode(kind, short).is_err());
        }
        payload.push(0);
        prop_assert!(TransferMessage::decode(kind, &payload).is_err());
    }

    /// Breaks: any bytes crash the decoder.
    #[test]
    fn any_bytes_are_read(kind in any::<u8>(), payload in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(message) = TransferMessage::decode(kind, &payload) {
            prop_assert!(TransferMessage::decode(kind, &message.encode().1).is_ok());
        }
    }
}

/// Breaks: a receiver prints what a sender wrote to trick its terminal.
#[test]
fn texts_have_no_control_characters() {
    let fault = TransferFault { code: Code::Other, text: "\u{1b}[2Jgone\n\u{202e}".to_owned() };
    let (kind, payload) = TransferMessage::Failed(fault).encode();
    let Ok(TransferMessage::Failed(read)) = TransferMessage::decode(kind, &payload) else {
        panic!("not read")
    };
    assert_eq!(read.text, "?[2Jgone??");
}

/// Breaks: an offer of too many entries costs a receiver memory without limit.
#[test]
fn too_many_entries_are_refused() {
    let verdicts = vec![FileVerdict::Made; MAX_OFFER + 1];
    let (kind, payload) = TransferMessage::Answers { first: 0, verdicts }.encode();
    assert_eq!(TransferMessage::decode(kind, &payload), Err("more entries at once than allowed"));
}

/// Breaks: permissions such as set-user-id travel.
#[test]
fn only_nine_bits_of_permissions_travel() {
    let path = RelPath::new(b"x").unwrap();
    let seal = TransferMessage::Seal { whole: true, path, mode: 0o4777, modified: FileTime::default() };
    let (kind, payload) = seal.encode();
    let Ok(TransferMessage::Seal { mode, .. }) = TransferMessage::decode(kind, &payload) else {
        panic!("not read")
    };
    assert_eq!(mode, 0o777);
}

/// Breaks: a peer makes us hold reasons of any length for what it has not transferred.
#[test]
fn what_was_missed_is_told_in_short() {
    let missed = |path: usize, text: usize| {
        let fault = TransferFault { code: Code::Other, text: "t".repeat(text) };
        let (kind, payload) = TransferMessage::Missed { path: "p".repeat(path), fault }.encode();
        TransferMessage::decode(kind, &payload)
    };
    let Ok(TransferMessage::Missed { path, fault }) = missed(MAX_PATH, MAX_TEXT) else { panic!("not read") };
    assert!(path.len() <= MAX_TEXT && fault.text.len() <= MAX_TEXT);
    assert!(missed(MAX_PATH + 1, 1).is_err() && missed(1, MAX_TEXT + 1).is_err());
}
