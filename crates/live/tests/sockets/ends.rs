//! The end of connections, and failures to open them.

use crate::pair::{A, B, pair, pattern, stacks};
use farpace_live::socket::SocketOptions;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown};
use std::time::{Duration, Instant};

fn read(stream: &farpace_live::socket::Stream) -> std::io::Result<usize> {
    (&*stream).read(&mut [0; 100])
}

/// Breaks: clients of a closed port get an error at once.
#[test]
fn a_closed_port_refuses() {
    let (a, _b) = stacks();
    let refused = a.connect((B, 81), &SocketOptions::default()).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}

/// Breaks: invalid addresses are refused.
#[test]
fn addresses_that_cannot_be() {
    let (a, b) = stacks();
    for to in
        [A, IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V4(Ipv4Addr::BROADCAST), "fd00::1".parse().unwrap()]
    {
        let error = a.connect((to, 80), &SocketOptions::default()).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::NetworkUnreachable, "{to}");
    }
    assert_eq!(
        b.listen((A, 80), &SocketOptions::default()).err().unwrap().kind(),
        ErrorKind::AddrNotAvailable
    );
    let any = b.listen((B, 0), &SocketOptions::default()).unwrap();
    assert_ne!(any.local_addr().port(), 0);
    assert!(a.connect(any.local_addr(), &SocketOptions::default()).is_ok());
    let listener = b.listen((B, 80), &SocketOptions::default()).unwrap();
    assert_eq!(b.listen((B, 80), &SocketOptions::default()).err().unwrap().kind(), ErrorKind::AddrInUse);
    drop(listener);
    b.listen((B, 80), &SocketOptions::default()).unwrap();
}

/// Breaks: programs can choose a local port, and cannot use it twice.
#[test]
fn a_local_port_of_ones_own() {
    let (a, b) = stacks();
    let _listener = b.listen((B, 80), &SocketOptions::default()).unwrap();
    let options = SocketOptions::default().local_port(4000);
    let stream = a.connect((B, 80), &options).unwrap();
    assert_eq!(stream.local_addr().unwrap().port(), 4000);
    assert_eq!(a.connect((B, 80), &options).err().unwrap().kind(), ErrorKind::AddrNotAvailable);
}

/// Breaks: closing with unread data resets the connection, so that the peer learns of it (RFC 2525 §2.17).
#[test]
fn leaving_with_something_unread_resets() {
    let mut p = pair(&SocketOptions::default());
    p.here.write_all(b"nobody will read this").unwrap();
    while !p.there.readiness().readable {
        std::thread::yield_now();
    }
    drop(p.there);
    assert_eq!(read(&p.here).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(read(&p.here).unwrap(), 0, "the error is told once");
    assert_eq!(p.here.write(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
    assert!(p.here.readiness().over);
}

/// Breaks: written data is sent after the program has closed.
#[test]
fn what_was_written_arrives_after_the_program_has_left() {
    let p = pair(&SocketOptions::default());
    let data = pattern(400_000);
    (&p.here).write_all(&data).unwrap();
    drop(p.here);
    let mut got = Vec::new();
    (&p.there).read_to_end(&mut got).unwrap();
    assert!(got == data);
}

/// Breaks: data received before a reset can be read.
#[test]
fn what_came_before_a_reset_can_be_read() {
    let p = pair(&SocketOptions::default());
    (&p.here).write_all(b"last words").unwrap();
    while !p.there.readiness().readable {
        std::thread::yield_now();
    }
    p.here.abort();
    while !p.there.readiness().failed {
        std::thread::yield_now();
    }
    assert_eq!(read(&p.there).unwrap(), 10);
    assert_eq!(read(&p.there).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

/// Breaks: SO_LINGER: closing waits for the peer's ACK, or avoids TIME-WAIT.
#[test]
fn lingering_waits_for_the_peer() {
    let p = pair(&SocketOptions::default());
    (&p.here).write_all(&pattern(300_000)).unwrap();
    p.here.set_linger(Some(Duration::from_secs(10)));
    p.here.close().unwrap();
    assert_eq!(
        p.b.call(|host, _| host.connections().map(|(_, c)| c.counters().bytes_received.get()).sum::<u64>())
            .unwrap(),
        300_000
    );

    let p = pair(&SocketOptions::default().linger(Some(Duration::ZERO)));
    drop(p.here);
    assert_eq!(read(&p.there).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(p.a.call(|host, _| host.open_connections()).unwrap(), 0, "no TIME-WAIT");
}

/// Breaks: a program whose peer has said that it has everything waits a round trip more, or leaves before the
/// peer's FIN is acknowledged, which the peer then sends again and again.
#[test]
fn after_delivery_the_peers_fin_is_enough() {
    let p = pair(&SocketOptions::default());
    (&p.here).write_all(b"all").unwrap();
    assert_eq!(read(&p.there).unwrap(), 3);
    p.here.set_linger(Some(Duration::from_secs(20)));
    p.here.set_delivered();
    p.there.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read(&p.here).unwrap(), 0);
    // Nothing is acknowledged any more.
    p.b.stop().unwrap();
    p.here.close().expect("it does not wait for an ACK of its FIN");
}

/// Breaks: a connection to a silent peer ends after the user timeout.
#[test]
fn a_silent_peer_times_out() {
    let options = SocketOptions::default().user_timeout(Some(farpace_units::Span::from_millis(600)));
    let p = pair(&options);
    p.b.stop().unwrap();
    let begin = Instant::now();
    (&p.here).write_all(b"hello?").unwrap();
    assert_eq!(read(&p.here).unwrap_err().kind(), ErrorKind::TimedOut);
    assert!(begin.elapsed() < Duration::from_secs(5));
}

/// Breaks: waiting calls return when their stack ends.
#[test]
fn a_stack_that_has_ended() {
    let p = pair(&SocketOptions::default());
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| read(&p.here));
        let acceptor = scope.spawn(|| p.listener.accept().err());
        std::thread::sleep(Duration::from_millis(30));
        p.a.stop().unwrap();
        p.b.stop().unwrap();
        assert_eq!(reader.join().unwrap().unwrap_err().kind(), ErrorKind::NetworkDown);
        assert_eq!(acceptor.join().unwrap().unwrap().kind(), ErrorKind::NetworkDown);
    });
    assert_eq!((&p.there).write(b"x").unwrap_err().kind(), ErrorKind::NetworkDown);
    assert_eq!(p.a.connect((B, 80), &SocketOptions::default()).err().unwrap().kind(), ErrorKind::NetworkDown);
    assert_eq!(p.a.bind_udp((A, 9)).err().unwrap().kind(), ErrorKind::NetworkDown);
}

/// Breaks: clients that find the accept queue full get a reset, rather than their connections as soon as the
/// program accepts; or the queue has no limit.
#[test]
fn more_than_the_backlog_wait_their_turn() {
    let (a, b) = stacks();
    let listener = b.listen((B, 80), &SocketOptions::default().backlog(2)).unwrap();
    let clients: Vec<_> =
        (0..5).map(|_| a.begin_connect((B, 80), &SocketOptions::default()).unwrap()).collect();
    let end = Instant::now() + Duration::from_secs(5);
    while listener.overflows() < 3 && Instant::now() < end {
        std::thread::yield_now();
    }
    assert!(listener.overflows() >= 3, "{}", listener.overflows());
    assert_eq!(listener.waiting(), 2);
    for client in &clients {
        client.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        assert_eq!(read(client).unwrap_err().kind(), ErrorKind::WouldBlock);
    }
    listener.set_timeout(Some(Duration::from_secs(20)));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for (number, client) in clients.iter().enumerate() {
                client.finish_connect(Some(Duration::from_secs(20))).unwrap();
                (&*client).write_all(&[number as u8]).unwrap();
            }
        });
        let mut seen = [false; 5];
        for _ in &clients {
            let (server, _) = listener.accept().unwrap();
            let mut number = [0];
            (&server).read_exact(&mut number).unwrap();
            assert!(!std::mem::replace(&mut seen[usize::from(number[0])], true));
        }
    });
    drop(listener);
}
