//! Any bytes as frames and messages of a transfer: nothing crashes, and what is read means the same when it
//! is written.

#![no_main]

use farpace_transfer::message::TransferMessage;
use farpace_transfer::{FrameKey, FrameReader};
use libfuzzer_sys::fuzz_target;
use std::sync::atomic::AtomicU64;

fuzz_target!(|input: (u8, Vec<u8>)| {
    let (kind, bytes) = input;
    if let Ok(message) = TransferMessage::decode(kind, &bytes) {
        let (kind, again) = message.encode();
        assert_eq!(TransferMessage::decode(kind, &again).as_ref(), Ok(&message));
    }
    // With tags, and without them as on an encrypted stream.
    for key in [Some(FrameKey::of_bytes([7; 32])), None] {
        let moved = AtomicU64::new(0);
        let mut reader = FrameReader::new(&bytes[..], key, &moved);
        let mut block = Vec::new();
        while reader.next(&mut block).is_ok() {}
    }
});
