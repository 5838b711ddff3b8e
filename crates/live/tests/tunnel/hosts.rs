//! Hosts of ours at both ends.

use crate::pair::{client, client_at_once_by, client_by, options, server, server_with, until};
use crate::relay::Relay;
use farpace_live::socket::Stack;
use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown};
use std::time::{Duration, Instant};

/// Sends `bytes` from `from` to a listener on `to` at `inside`, and has them echoed. Returns how long it
/// took.
fn echo(from: &Stack, to: &Stack, inside: IpAddr, bytes: usize) -> Duration {
    let listener = to.listen((inside, 0), &options()).unwrap();
    let at = listener.local_addr();
    let data: Vec<u8> = (0..bytes as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let begun = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut room = vec![0; 256 << 10];
            loop {
                match stream.read(&mut room).unwrap() {
                    0 => break,
                    n => stream.write_all(&room[..n]).unwrap(),
                }
            }
            stream.shutdown(Shutdown::Write).unwrap();
        });
        let mut stream = from.connect(at, &options()).unwrap();
        let mut writer = stream.clone();
        let sent = data.clone();
        scope.spawn(move || {
            writer.write_all(&sent).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let mut back = Vec::new();
        stream.read_to_end(&mut back).unwrap();
        assert_eq!(back.len(), data.len());
        assert!(back == data, "other bytes came back");
    });
    begun.elapsed()
}

/// Breaks: no byte crosses a tunnel, or others do; or who is admitted cannot be told from who is not.
#[test]
fn streams_cross_a_tunnel_whole() {
    let server = server();
    let (stack, dialled, _) = client(&server);
    assert!(dialled.mtu > 9_000 && dialled.rtt.is_some(), "loopback takes large packets: {dialled:?}");
    echo(&stack, &server.stack, server.inside, 20_000_000);
    until("the peer is seen", || {
        server.status.peers().iter().any(|peer| peer.proven && peer.received > 20_000_000)
    });
    assert_eq!(server.status.rejected(), Default::default());
}

/// Breaks: packets of Ethernet's size are not cut and put together right, in batches of datagrams.
#[test]
fn streams_cross_in_packets_of_ethernets_size() {
    let server = server_with(Some(1_420));
    let relay = Relay::to(server.at);
    // Nothing longer than 1452 bytes passes: the client finds that out.
    relay.rule(|datagram| if datagram.len() <= 1_452 { vec![datagram.to_vec()] } else { vec![] });
    let (stack, dialled, _) = client_by(&server, relay.at);
    assert_eq!(dialled.mtu, 1_420, "of the sizes that are tried, the largest that passes: 1480 with IPv4");
    echo(&stack, &server.stack, server.inside, 3_000_000);
}

/// Breaks: a connection that is opened before it is known how long packets may be sends some that vanish, and
/// waits for its timers.
#[test]
fn a_tunnel_is_of_use_before_its_mtu_is_known() {
    // A busy machine can make a timer fire, but not each time.
    assert!((0..4).any(|_| timeouts_before_the_mtu_is_known() == 0), "a timer has to be waited for");
}

/// Retransmission timeouts of both ends of a connection that begins at once.
fn timeouts_before_the_mtu_is_known() -> u64 {
    let server = server();
    let relay = Relay::to(server.at);
    relay.rule(|datagram| if datagram.len() <= 1_452 { vec![datagram.to_vec()] } else { vec![] });
    let (stack, dialled, status) = client_at_once_by(&server, relay.at);
    assert!(dialled.mtu > 9_000, "what can leave this machine: {dialled:?}");
    let listener = server.stack.listen((server.inside, 0), &options()).unwrap();
    let mut here = stack.connect(listener.local_addr(), &options()).unwrap();
    let (mut there, _) = listener.accept().unwrap();
    let data = vec![7; 100_000];
    here.write_all(&data).unwrap();
    there.read_exact(&mut vec![0; data.len()]).unwrap();
    there.write_all(&data).unwrap();
    here.read_exact(&mut vec![0; data.len()]).unwrap();
    until("the length is known", || status.peers().iter().any(|peer| peer.mtu == 1_420));
    [&here, &there].map(|stream| stream.inspect().unwrap().counters.timeouts).iter().sum()
}

/// Breaks: two clients of one end take each other's packets.
#[test]
fn several_clients_share_one_end() {
    let server = server();
    let clients: Vec<_> = (0..4).map(|_| client(&server).0).collect();
    std::thread::scope(|scope| {
        for stack in &clients {
            scope.spawn(|| echo(stack, &server.stack, server.inside, 2_000_000));
        }
    });
    until("all are seen", || server.status.peers().iter().filter(|peer| peer.proven).count() == 4);
}

/// Breaks: a loss of datagrams is a loss of bytes, or every second handshake fails on a bad path.
#[test]
fn a_path_that_loses_reorders_and_repeats_harms_nothing() {
    let server = server_with(Some(1_420));
    let relay = Relay::to(server.at);
    let mut number = 0_u32;
    let mut held: Option<Vec<u8>> = None;
    relay.rule(move |datagram| {
        number += 1;
        match number % 20 {
            _ if datagram.len() > 1_452 => vec![],
            3 => vec![],
            7 => vec![datagram.to_vec(), datagram.to_vec()],
            11 => {
                let before = held.replace(datagram.to_vec());
                before.into_iter().collect()
            }
            13 => held.take().into_iter().chain([datagram.to_vec()]).collect(),
            _ => vec![datagram.to_vec()],
        }
    });
    let (stack, ..) = client_by(&server, relay.at);
    echo(&stack, &server.stack, server.inside, 1_000_000);
    until("repeated ones are seen", || server.status.rejected().replayed > 10);
}

/// Breaks: a translator that forgets the client, or a network that is changed, ends all connections.
#[test]
fn a_change_of_address_is_survived() {
    let server = server_with(Some(1_420));
    let relay = Relay::to(server.at);
    relay.rule(|datagram| if datagram.len() <= 1_452 { vec![datagram.to_vec()] } else { vec![] });
    let (stack, ..) = client_by(&server, relay.at);
    let moves = || server.status.peers().iter().map(|peer| peer.moves).max().unwrap_or(0);
    for _ in 0..4 {
        let before = moves();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(5));
                relay.rebind();
            });
            // The address changes somewhere in the middle.
            echo(&stack, &server.stack, server.inside, 2_000_000);
        });
        until("the move is seen", || {
            echo(&stack, &server.stack, server.inside, 1_000);
            moves() > before
        });
    }
}
