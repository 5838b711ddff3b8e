use super::*;
use farpace_transfer::kernel;
use std::io::ErrorKind::ConnectionReset;
use std::net::TcpListener;
use std::thread::JoinHandle;

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (near, listener.accept().unwrap().0)
}

fn stream(tcp: TcpStream) -> SecureStream {
    let (probe, finisher) = (TransferProbe::Kernel(tcp.try_clone().unwrap()), tcp.try_clone().unwrap());
    let finish = Box::new(move || drop(finisher.shutdown(Shutdown::Write)));
    SecureStream { line: kernel::line_of(tcp).unwrap(), finish, peer: String::new(), probe }
}

/// A client, a server, and the two relays between them.
struct Forwarded {
    client: TcpStream,
    server: TcpStream,
    /// One end of the stream between the relays, to cut it.
    between: TcpStream,
    relays: [JoinHandle<Result<RelayEnd>>; 2],
}

fn forwarded() -> Forwarded {
    let ((client, near), (far, server), (a, b)) = (pair(), pair(), pair());
    let between = a.try_clone().unwrap();
    let start = |tcp, end| Builder::new().spawn(move || relay(tcp, stream(end), |_| Ok(()))).unwrap();
    for end in [&client, &server] {
        end.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    }
    Forwarded { client, server, between, relays: [start(near, a), start(far, b)] }
}

impl Forwarded {
    fn ends(relays: [JoinHandle<Result<RelayEnd>>; 2]) -> [RelayEnd; 2] {
        relays.map(|relay| relay.join().unwrap().unwrap())
    }
}

fn reset(tcp: TcpStream) {
    reset_at_end(&tcp).unwrap();
    drop(tcp);
}

/// All that can be read, and how it ended.
fn read_all(mut tcp: &TcpStream) -> (usize, Option<io::ErrorKind>) {
    let mut all = Vec::new();
    let end = tcp.read_to_end(&mut all).err().map(|error| error.kind());
    (all.len(), end)
}

/// Breaks: a reset by one program arrives at the other as an orderly end, or discards the data before it.
#[test]
fn a_reset_arrives_behind_the_data_before_it() {
    for by_server in [false, true] {
        let Forwarded { client, server, relays, between: _between } = forwarded();
        let (mut from, to) = if by_server { (server, client) } else { (client, server) };
        from.write_all(&vec![7; 3_000_000]).unwrap_or_default();
        // The relay has taken what was written: a reset discards what its kernel has not.
        while KernelTcp::of(&from).is_some_and(|seen| seen.unacknowledged + seen.unsent > 0) {}
        reset(from);
        assert_eq!(read_all(&to), (3_000_000, Some(ConnectionReset)), "by the server: {by_server}");
        drop(to);
        assert_eq!(Forwarded::ends(relays), [RelayEnd::Reset; 2]);
    }
}

/// Breaks: a program that has ended its direction does not get the answer, or its reset after that is lost.
#[test]
fn a_direction_ends_alone() {
    let Forwarded { client, mut server, relays, between: _between } = forwarded();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_all(&server), (0, None));
    server.write_all(&[7; 100_000]).unwrap();
    drop(server);
    assert_eq!(read_all(&client), (100_000, None));
    drop(client);
    assert_eq!(Forwarded::ends(relays), [RelayEnd::Closed; 2]);

    let Forwarded { client, mut server, relays, between: _between } = forwarded();
    server.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_all(&client), (0, None));
    reset(client);
    assert_eq!(read_all(&server).1, Some(ConnectionReset));
    assert!(server.write_all(b"late").is_err());
    assert_eq!(Forwarded::ends(relays), [RelayEnd::Reset; 2]);
}

/// Breaks: when the far end or the tunnel is gone, programs take the part that they got for all of it.
#[test]
fn a_stream_that_is_cut_resets_both_ends() {
    let Forwarded { mut client, server, relays, between } = forwarded();
    client.write_all(&[7; 1_000]).unwrap();
    let mut got = [0; 1_000];
    (&server).read_exact(&mut got).unwrap();
    between.shutdown(Shutdown::Both).unwrap();
    assert_eq!(read_all(&client), (0, Some(ConnectionReset)));
    assert_eq!(read_all(&server), (0, Some(ConnectionReset)));
    assert_eq!(Forwarded::ends(relays), [RelayEnd::Cut; 2]);
}

/// Breaks: a client that gives up while the server takes nothing holds its connection, and one of the places,
/// for ever.
#[test]
fn a_reset_passes_a_program_that_takes_nothing() {
    let Forwarded { client, server, relays, between } = forwarded();
    drop(between);
    client.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    // Until all buffers are full.
    while (&client).write(&[7; 65_536]).is_ok() {}
    let begun = Stopwatch::start();
    reset(client);
    let ends = Forwarded::ends(relays);
    assert!(ends[0] == RelayEnd::Reset && begun.elapsed() < 4 * GRACE, "{ends:?} in {:?}", begun.elapsed());
    assert_eq!(read_all(&server).1, Some(ConnectionReset));
}

/// Breaks: a client that was too early, or comes where nothing answers, sees an orderly end.
#[test]
fn what_cannot_begin_is_reset() {
    let ((mut client, near), (a, b)) = (pair(), pair());
    client.write_all(b"GET /").unwrap();
    let refused = relay(near, stream(a), |_| anyhow::bail!("refused"));
    assert!(refused.is_err());
    assert_eq!(read_all(&client), (0, Some(ConnectionReset)));
    drop(b);
}
