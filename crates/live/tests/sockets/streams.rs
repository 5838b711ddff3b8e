//! Streams deliver all bytes, within bounded memory.

use crate::pair::{B, pair, pattern, stacks, stacks_on_link};
use bytes::Bytes;
use farpace_live::socket::{LimitedBy, SocketOptions};
use farpace_tcp::ConnectionState;
use farpace_units::{ByteCount, Rate};
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

/// Breaks: streams are exact in both directions, alone and simultaneously, for all sizes of reads and writes.
#[test]
fn both_directions_at_once_are_exact() {
    let p = pair(&SocketOptions::default());
    let data = pattern(3_000_001);
    std::thread::scope(|scope| {
        for (stream, steps) in [(&p.here, [1, 7000, 100_000]), (&p.there, [70_000, 3, 9000])] {
            let data = &data;
            scope.spawn(move || {
                let (mut stream, mut at) = (stream, 0);
                for step in steps.iter().cycle() {
                    let piece = &data[at..(at + step).min(data.len())];
                    stream.write_all(piece).unwrap();
                    at += piece.len();
                    if piece.is_empty() {
                        break;
                    }
                }
                stream.shutdown(Shutdown::Write).unwrap();
            });
            scope.spawn(move || {
                let mut got = Vec::new();
                (&*stream).read_to_end(&mut got).unwrap();
                assert!(got == *data, "{} bytes", got.len());
            });
        }
    });
}

/// Breaks: programs can send from their own memory without a copy.
#[test]
fn pieces_go_without_copying() {
    let p = pair(&SocketOptions::default());
    let data = Bytes::from(pattern(2_000_000));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            p.here.write_bytes(data.clone()).unwrap();
            p.here.shutdown(Shutdown::Write).unwrap();
        });
        let mut got = Vec::new();
        while let Some(piece) = p.there.read_bytes(50_000).unwrap() {
            assert!(!piece.is_empty() && piece.len() <= 50_000);
            got.extend_from_slice(&piece);
        }
        assert!(got == data);
    });
}

/// Breaks: one direction continues after the end of the other.
#[test]
fn one_direction_goes_on_after_the_other_has_ended() {
    let mut p = pair(&SocketOptions::default());
    p.here.shutdown(Shutdown::Write).unwrap();
    assert_eq!(p.there.read(&mut [0; 9]).unwrap(), 0);
    assert_eq!((&p.here).write(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
    p.there.write_all(b"answer").unwrap();
    let mut got = [0; 6];
    p.here.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"answer");
    drop(p.there);
    assert_eq!(p.here.read(&mut got).unwrap(), 0);
    // The connection may have ended by now, and cannot be shut down then.
    let over = p.here.shutdown(Shutdown::Read).map_err(|error| error.kind());
    assert!(matches!(over, Ok(()) | Err(ErrorKind::NotConnected)), "{over:?}");
    assert_eq!(p.here.read(&mut got).unwrap(), 0);
}

/// Breaks: memory is bounded: a writer whose peer does not read waits when all buffers are full.
#[test]
fn writes_wait_when_the_peer_does_not_read() {
    let options = SocketOptions::default().buffers(ByteCount::new(200_000), ByteCount::new(300_000));
    let p = pair(&options);
    p.here.set_nonblocking(true).unwrap();
    let data = pattern(100_000);
    let (mut written, end) = (0, Instant::now() + Duration::from_millis(700));
    while Instant::now() < end {
        match (&p.here).write(&data) {
            Ok(n) => written += n,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
    // Send and receive buffers, and as much again between program and engine.
    assert!((500_000..=1_000_000).contains(&written), "{written}");
    assert!(!p.here.readiness().writable);
    let seen = p.here.inspect().unwrap();
    assert_eq!((seen.limit, seen.inspection.rwnd.get()), (LimitedBy::ReceiveWindow, 0));
    let (mut got, mut buffer) = (0, vec![0; 70_000]);
    while got < written {
        got += (&p.there).read(&mut buffer).unwrap();
    }
    assert_eq!(got, written);
}

/// Breaks: a server accepts many simultaneous clients.
#[test]
fn a_thousand_connections_at_once() {
    const MANY: u32 = 1000;
    let (a, b) = stacks();
    let listener = b.listen((B, 7), &SocketOptions::default()).unwrap();
    let clients: Vec<_> =
        (0..MANY).map(|_| a.begin_connect((B, 7), &SocketOptions::default()).unwrap()).collect();
    let servers: Vec<_> = listener.incoming().take(MANY as usize).map(Result::unwrap).collect();
    for (n, client) in clients.iter().enumerate() {
        client.finish_connect(Some(Duration::from_secs(20))).unwrap();
        (&*client).write_all(&(n as u32).to_be_bytes()).unwrap();
    }
    let mut seen = vec![false; MANY as usize];
    for server in &servers {
        let mut number = [0; 4];
        (&*server).read_exact(&mut number).unwrap();
        assert!(!std::mem::replace(&mut seen[u32::from_be_bytes(number) as usize], true));
    }
    assert_eq!(listener.overflows(), 0);
    assert_eq!((a.sockets(), b.sockets()), (MANY as usize, MANY as usize + 1));
    drop((clients, servers, listener));
    assert_eq!(b.call(|host, _| host.half_open_connections()).unwrap(), 0);
}

/// Breaks: snapshots of a connection are correct.
#[test]
fn snapshots_are_correct() {
    let p = pair(&SocketOptions::profile("modern").unwrap().congestion("reno").unwrap());
    (&p.here).write_all(&pattern(500_000)).unwrap();
    let mut got = vec![0; 500_000];
    (&p.there).read_exact(&mut got).unwrap();
    let end = Instant::now() + Duration::from_secs(5);
    let seen = loop {
        let seen = p.here.inspect().unwrap();
        if seen.memory.send_bytes.is_zero() || Instant::now() > end {
            break seen;
        }
    };
    assert_eq!(seen.inspection.state, ConnectionState::Established);
    assert_eq!(seen.inspection.acknowledged.get(), 500_000);
    assert_eq!(seen.congestion, farpace_tcp::config::Congestion::Reno);
    assert_eq!(seen.limit, LimitedBy::Program);
    assert!(!seen.inspection.srtt.is_zero() && seen.inspection.mss == 1448);
}

/// Breaks: a rate cap limits a stream.
#[test]
fn a_rate_cap_limits() {
    let p = pair(&SocketOptions::default().rate_cap(Some(Rate::from_bits_per_sec(40_000_000))));
    let begin = Instant::now();
    (&p.here).write_all(&pattern(1_000_000)).unwrap();
    let mut got = vec![0; 1_000_000];
    (&p.there).read_exact(&mut got).unwrap();
    // 1 MB at 40 Mbit/s are 200 ms, less a quantum.
    assert!(begin.elapsed() >= Duration::from_millis(180), "{:?}", begin.elapsed());
}

/// Breaks: segments that wait for a full device are not retransmitted into the same queue.
#[test]
fn segments_that_wait_for_the_device_are_not_retransmitted() {
    let (a, b, link) = stacks_on_link();
    let listener = b.listen((B, 80), &SocketOptions::default()).unwrap();
    let mut here = a.connect((B, 80), &SocketOptions::default()).unwrap();
    let (mut there, _) = listener.accept().unwrap();
    here.write_all(b"a round trip").unwrap();
    there.read_exact(&mut [0; 12]).unwrap();
    let before = link.data();
    link.shut(true);
    here.write_all(&[1; 5_000]).unwrap();
    // Timeouts of 200, 400, 800 ms, and tail loss probes before them.
    let inside = || here.inspect().unwrap().counters.found_inside;
    while inside() < 3 {
        std::thread::sleep(Duration::from_millis(10));
    }
    let seen = here.inspect().unwrap();
    assert_eq!((seen.counters.timeouts, seen.retransmitted), (0, 0));
    link.shut(false);
    there.read_exact(&mut [0; 5_000]).unwrap();
    assert_eq!(link.data() - before, 4, "each segment once");
}
