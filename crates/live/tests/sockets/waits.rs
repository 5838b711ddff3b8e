//! Waiting, non-blocking and interrupted calls.

use crate::pair::{B, pair, stacks, stacks_on_link};
use farpace_live::socket::{Interrupted, SocketOptions};
use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

/// Breaks: non-blocking streams never wait, for event loops.
#[test]
fn a_non_blocking_stream_never_waits() {
    let p = pair(&SocketOptions::default());
    p.there.set_nonblocking(true).unwrap();
    p.listener.set_nonblocking(true).unwrap();
    let mut byte = [0];
    assert_eq!((&p.there).read(&mut byte).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(p.there.peek(&mut byte).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(p.listener.accept().err().unwrap().kind(), ErrorKind::WouldBlock);
    assert!(!p.there.readiness().readable && p.there.readiness().writable);
    (&p.here).write_all(b"ab").unwrap();
    while !p.there.readiness().readable {
        std::thread::yield_now();
    }
    assert_eq!((&p.there).read(&mut byte).unwrap(), 1);
    assert!(p.there.readiness().readable, "one more byte");
    assert_eq!((&p.there).read(&mut byte).unwrap(), 1);
    assert!(!p.there.readiness().readable);
}

/// Breaks: peeking does not consume data.
#[test]
fn peeking_takes_nothing() {
    let p = pair(&SocketOptions::default());
    (&p.here).write_all(b"hello").unwrap();
    let mut buffer = [0; 9];
    while p.there.available() < 5 {
        std::thread::yield_now();
    }
    assert_eq!(p.there.peek(&mut buffer[..2]).unwrap(), 2);
    assert_eq!(p.there.peek(&mut buffer).unwrap(), 5);
    (&p.here).write_all(b" you").unwrap();
    while p.there.peek(&mut buffer).unwrap() < 9 {
        std::thread::yield_now();
    }
    assert_eq!(&buffer, b"hello you");
    let mut read = [0; 9];
    (&p.there).read_exact(&mut read).unwrap();
    assert_eq!(read, buffer);
    assert_eq!(p.there.available(), 0);
}

/// Breaks: waiting calls end at their timeout.
#[test]
fn timeouts_end_waits() {
    let p = pair(&SocketOptions::default());
    let time = Duration::from_millis(80);
    p.there.set_read_timeout(Some(time)).unwrap();
    p.listener.set_timeout(Some(time));
    assert_eq!(p.there.set_read_timeout(Some(Duration::ZERO)).unwrap_err().kind(), ErrorKind::InvalidInput);
    let begin = Instant::now();
    assert_eq!((&p.there).read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(p.listener.accept().err().unwrap().kind(), ErrorKind::WouldBlock);
    let took = begin.elapsed();
    assert!(took >= 2 * time && took < 20 * time, "{took:?}");
    let options = SocketOptions::default().connect_timeout(Some(time));
    let (a, b) = stacks();
    b.stop().unwrap();
    assert_eq!(a.connect((B, 80), &options).err().unwrap().kind(), ErrorKind::TimedOut);
}

/// Breaks: every waiting call can be interrupted, so that programs can exit.
#[test]
fn every_wait_can_be_interrupted() {
    let p = pair(&SocketOptions::default());
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| (&p.there).read(&mut [0]).unwrap_err());
        let acceptor = scope.spawn(|| p.listener.accept().err().unwrap());
        let writer = scope.spawn(|| (&p.there).write_all(&vec![0; 100_000_000]).unwrap_err());
        std::thread::sleep(Duration::from_millis(200));
        p.b.interrupt();
        for waiter in [reader, acceptor, writer] {
            let error = waiter.join().unwrap();
            assert!(Interrupted::is(&error), "{error}");
        }
        // A second time: an interruption does not persist.
        let reader = scope.spawn(|| (&p.there).read(&mut [0]));
        (&p.here).write_all(b"x").unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), 1);
    });
}

/// Breaks: after an outage a connection waits for a timeout that has doubled with it, although its device
/// knows that the path carries again.
#[test]
fn a_path_that_carries_again_is_used_at_once() {
    let waited = |tells: bool| {
        let (a, b, link) = stacks_on_link();
        let options = SocketOptions::default();
        let listener = b.listen((B, 80), &options).unwrap();
        let mut here = a.connect((B, 80), &options).unwrap();
        let (mut there, _) = listener.accept().unwrap();
        here.write_all(b"hello").unwrap();
        there.read_exact(&mut [0; 5]).unwrap();
        link.cut();
        here.write_all(b"again").unwrap();
        // Timeouts of 200 ms have doubled to 1.6 s, those of 1 s to 4 s.
        std::thread::sleep(Duration::from_millis(2_000));
        link.mend(tells);
        let begun = Instant::now();
        there.read_exact(&mut [0; 5]).unwrap();
        begun.elapsed()
    };
    let (told, alone) = (waited(true), waited(false));
    assert!(told < Duration::from_millis(300) && alone > Duration::from_millis(500), "{told:?}, {alone:?}");
}
