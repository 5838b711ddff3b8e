//! Bytes that identify their position.

use bytes::Bytes;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::OnceLock;

/// Not a multiple of the length of any segment or buffer.
const LEN: usize = 1_048_573;

/// The period of all streams.
pub fn pattern() -> Bytes {
    static PATTERN: OnceLock<Bytes> = OnceLock::new();
    let make = || {
        let mut state = 1u64;
        (0..LEN).map(move |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
    };
    PATTERN.get_or_init(|| make().collect()).clone()
}

/// Reads to the end, and verifies the pattern.
pub fn read_all(mut stream: &TcpStream) -> usize {
    let (pattern, mut buffer, mut read) = (pattern(), vec![0; 1 << 18], 0);
    loop {
        let n = stream.read(&mut buffer).unwrap();
        if n == 0 {
            return read;
        }
        let mut rest = &buffer[..n];
        while !rest.is_empty() {
            let at = read % pattern.len();
            let (part, after) = rest.split_at(rest.len().min(pattern.len() - at));
            assert!(part == &pattern[at..at + part.len()], "other bytes than were sent, from {read} on");
            read += part.len();
            rest = after;
        }
    }
}

/// Writes this many bytes of the pattern, then closes this direction.
pub fn write_all(mut stream: &TcpStream, all: usize) {
    let (pattern, mut sent) = (pattern(), 0);
    while sent < all {
        let at = sent % pattern.len();
        let end = pattern.len().min(at + all - sent);
        stream.write_all(&pattern[at..end]).unwrap();
        sent += end - at;
    }
    stream.shutdown(Shutdown::Write).unwrap();
}

/// Writes this many bytes, and reads them back at the same time.
pub fn there_and_back(stream: &TcpStream, all: usize) {
    std::thread::scope(|scope| {
        scope.spawn(|| write_all(stream, all));
        assert_eq!(read_all(stream), all);
    });
}
