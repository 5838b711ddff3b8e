//! Thousands of simultaneous connections to the kernel.

use crate::kernel::{KERNEL, OURS, stack};
use crate::netns::alone;
use crate::pair::pattern;
use farpace_live::socket::{SocketOptions, Stack, Stream};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{Backlog, listen};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Bytes that each client sends and receives, in each of two rounds.
const TALK: usize = 3_000;
/// Maximum memory of this process per connection: the engine, the socket and the test. Measured: 9,300 bytes,
/// without other tests in the process.
const MAX_EACH: u64 = 25_000;

/// Memory of this process, in bytes.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// The data of client `number` in `round`.
fn words(text: &[u8], number: usize, round: usize) -> &[u8] {
    let at = (number * 7 + round * 13) % (text.len() - TALK);
    &text[at..at + TALK]
}

fn echo(stream: &mut (impl Read + Write)) {
    let mut buffer = [0; TALK];
    stream.read_exact(&mut buffer).unwrap();
    stream.write_all(&buffer).unwrap();
}

fn open_connections(stack: &Stack) -> usize {
    stack.call(|host, _| host.open_connections()).unwrap()
}

/// Waits until the stack has no sockets.
fn empties(stack: &Stack) {
    let end = Instant::now() + Duration::from_secs(20);
    while (open_connections(stack), stack.sockets()) != (0, 0) {
        assert!(Instant::now() < end, "{} connections, {} sockets", open_connections(stack), stack.sockets());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(stack.call(|host, _| (host.orphans(), host.half_open_connections())).unwrap(), (0, 0));
}

/// All clients exchange data in two rounds over open connections, and then close.
fn talk<C: Read + Write, S: Read + Write>(clients: &mut [C], servers: &mut [S], text: &[u8]) {
    let mut got = [0; TALK];
    for round in 0..2 {
        for (number, client) in clients.iter_mut().enumerate() {
            client.write_all(words(text, number, round)).unwrap();
        }
        servers.iter_mut().for_each(echo);
        for (number, client) in clients.iter_mut().enumerate() {
            client.read_exact(&mut got).unwrap();
            assert!(got == words(text, number, round), "client {number} gets what is not its own");
        }
    }
}

fn crowd(count: usize) {
    std::fs::write("/proc/sys/net/ipv4/ip_local_port_range", "1024 65535").unwrap();
    std::fs::write("/proc/sys/net/core/somaxconn", "20000").unwrap();
    let stack = stack();
    let text = pattern(64 << 10);
    let options = SocketOptions::default().backlog(count);

    let ours = stack.listen((OURS, 7), &options).unwrap();
    let (begin, before) = (Instant::now(), resident());
    let mut clients: Vec<_> = (0..count).map(|_| TcpStream::connect((OURS, 7)).unwrap()).collect();
    let mut servers: Vec<_> = (0..count).map(|_| ours.accept().unwrap().0).collect();
    let opened = begin.elapsed();
    talk(&mut clients, &mut servers, &text);
    assert_eq!(open_connections(&stack), count);
    let each = resident().saturating_sub(before) / count as u64;
    println!(
        "{count} from the kernel: open after {opened:?}, {each} bytes each, talked at {:?}",
        begin.elapsed()
    );
    assert!(count < 10_000 || each < MAX_EACH, "{each} bytes each");
    clients.iter().for_each(|client| client.shutdown(Shutdown::Write).unwrap());
    servers.iter_mut().for_each(|server| assert_eq!(server.read(&mut [0]).unwrap(), 0));
    drop((clients, servers, ours));
    empties(&stack);
    println!("gone at {:?}", begin.elapsed());

    let theirs = TcpListener::bind((KERNEL, 7)).unwrap();
    listen(&theirs, Backlog::new(-1).unwrap()).unwrap();
    let begin = Instant::now();
    let mut clients: Vec<Stream> =
        (0..count).map(|_| stack.begin_connect((KERNEL, 7), &options).unwrap()).collect();
    clients.iter().for_each(|client| client.finish_connect(Some(Duration::from_secs(20))).unwrap());
    let mut servers: Vec<_> = (0..count).map(|_| theirs.accept().unwrap().0).collect();
    let opened = begin.elapsed();
    // The order of accepted connections may differ from that of the clients.
    let port = |at: std::net::SocketAddr| at.port();
    clients.sort_by_key(|client| port(client.local_addr().unwrap()));
    servers.sort_by_key(|server| port(server.peer_addr().unwrap()));
    talk(&mut clients, &mut servers, &text);
    assert_eq!(open_connections(&stack), count);
    println!("{count} to the kernel: open after {opened:?}, talked at {:?}", begin.elapsed());
    // The kernel closes first, so that it has the TIME-WAIT.
    servers.iter().for_each(|server| server.shutdown(Shutdown::Write).unwrap());
    clients.iter_mut().for_each(|client| assert_eq!(client.read(&mut [0]).unwrap(), 0));
    drop((servers, clients));
    empties(&stack);
    println!("gone at {:?}", begin.elapsed());
    stack.stop().unwrap();
}

/// Breaks: ten thousand connections get their own bytes, use bounded memory, and leave nothing behind.
#[test]
fn ten_thousand_at_once() {
    alone(|| {
        let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard).unwrap();
        // The kernel's ends have descriptors, and so have other tests of this process.
        crowd(hard.saturating_sub(2_000).clamp(500, 10_000) as usize);
    });
}
