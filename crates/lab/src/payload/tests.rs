//! Payloads and the verifier.

use super::*;
use proptest::prelude::*;
use std::fs;

fn file(contents: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("payload");
    fs::write(&path, contents).unwrap();
    (dir, path)
}

/// Breaks: the error about a file that cannot be sent is missing or wrong.
#[test]
fn unusable_payloads_are_refused_by_name() {
    let (dir, empty) = file(b"");
    let message = |path: &Path| Payload::file(path).unwrap_err().to_string();
    assert!(message(&empty).ends_with("payload` is empty"));
    assert!(message(dir.path()).contains("is a directory, not a file"));
    assert!(message(&dir.path().join("none")).contains("No such file"));
    assert!(message(Path::new("/dev/null")).contains("is a pipe, socket or device"));
}

/// Breaks: slices of a file are not its bytes, or reading past the end fails.
#[test]
fn a_file_is_its_bytes() {
    let contents: Vec<u8> = (0..100_000u32).map(|n| ((n * 7) >> 3) as u8).collect();
    let (_dir, path) = file(&contents);
    let payload = Payload::file(&path).unwrap();
    assert_eq!(payload.len(), ByteCount::new(100_000));
    assert_eq!(payload.slice(0, 1_448), contents[..1_448]);
    assert_eq!(payload.slice(99_000, 1_448), contents[99_000..]);
    assert!(payload.slice(100_000, 1).is_empty() && payload.slice(u64::MAX, usize::MAX).is_empty());
    let slice = payload.slice(5_000, 10);
    payload.release(0, u64::MAX);
    assert_eq!(slice, contents[5_000..5_010], "released memory comes back from the file");
    drop(payload);
    assert_eq!(slice, contents[5_000..5_010], "a slice outlives its payload");
}

/// Breaks: received files end early or not at all, or a full disk is not noticed.
#[test]
fn received_bytes_are_written_and_errors_kept() {
    let payload = Payload::pattern(1, ByteCount::new(3_000_000));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("received");
    let mut verifier = Verifier::new(payload.clone());
    verifier.write_to(&path).unwrap();
    for at in (0..3_000_000).step_by(1_448) {
        verifier.receive(&payload.slice(at, 1_448));
    }
    assert!(verifier.is_complete());
    assert_eq!(verifier.finish().unwrap(), payload.len());
    let received = fs::read(&path).unwrap();
    assert_eq!(received.len(), 3_000_000);
    assert_eq!(received[2_999_000..], payload.slice(2_999_000, 1_000));
    if Path::new("/dev/full").exists() {
        let mut verifier = Verifier::new(payload.clone());
        verifier.write_to(Path::new("/dev/full")).unwrap();
        verifier.receive(&payload.slice(0, 1_000_000));
        verifier.receive(&payload.slice(1_000_000, 1_000_000));
        verifier.receive(&payload.slice(2_000_000, 1_000_000));
        assert!(matches!(verifier.finish(), Err(VerifyError::Write { .. })));
    }
    assert!(Verifier::new(payload).write_to(&dir.path().join("no/such/dir")).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Breaks: slices of the pattern disagree where it repeats, so that a retransmission with other bounds
    /// carries other bytes.
    #[test]
    fn the_pattern_is_one_stream(offset in 0u64..5_000_000, len in 0usize..3_000, cut in 0usize..3_000) {
        let payload = Payload::pattern(7, ByteCount::new(4_000_000));
        let cut = cut.min(len);
        let whole = payload.slice(offset, len);
        prop_assert_eq!(whole.len() as u64, (len as u64).min(4_000_000u64.saturating_sub(offset)));
        let (a, b) = (payload.slice(offset, cut), payload.slice(offset + cut as u64, len - cut));
        prop_assert_eq!([a, b].concat(), &whole[..]);
    }

    /// Breaks: the verifier does not find a wrong, missing or additional byte, or reports it at another
    /// place.
    #[test]
    fn any_difference_is_found_where_it_is(at in 0u64..2_000_000, chunk in 1usize..1_500_000) {
        let len = 2_000_000u64;
        let payload = Payload::pattern(7, ByteCount::new(len));
        let mut sent = [payload.slice(0, 1_000_000), payload.slice(1_000_000, 1_000_000)].concat();
        let feed = |bytes: &[u8]| {
            let mut verifier = Verifier::new(payload.clone());
            bytes.chunks(chunk).for_each(|c| verifier.receive(c));
            verifier
        };
        prop_assert_eq!(feed(&sent).finish().unwrap(), ByteCount::new(len));
        let short = feed(&sent[..at as usize]);
        prop_assert!(!short.is_complete());
        let Err(VerifyError::Short { received, .. }) = short.finish() else {
            panic!("a stream that ends at {at} passes");
        };
        prop_assert_eq!(received.get(), at);
        let expected = sent[at as usize];
        sent[at as usize] ^= 1;
        let found = Mismatch { offset: at, received: expected ^ 1, expected: Some(expected) };
        prop_assert_eq!(feed(&sent).mismatch(), Some(found));
        sent[at as usize] ^= 1;
        sent.push(1);
        let found = Mismatch { offset: len, received: 1, expected: None };
        prop_assert_eq!(feed(&sent).mismatch(), Some(found));
    }
}
