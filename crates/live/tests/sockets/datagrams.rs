//! UDP.

use crate::pair::{A, B, stacks};
use farpace_host::Bind;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

/// Breaks: UDP datagrams arrive with their content, source and boundaries.
#[test]
fn datagrams_arrive_whole() {
    let (a, b) = stacks();
    let server = b.bind_udp((B, 53)).unwrap();
    let client = a.bind_udp((A, 0)).unwrap();
    let to = SocketAddr::new(B, 53);
    for len in [1, 0, 1400, 9000] {
        assert_eq!(client.send_to(&vec![len as u8; len], to).unwrap(), len);
        let mut buffer = [9; 10_000];
        let (got, from) = server.recv_from(&mut buffer).unwrap();
        assert_eq!((got, from), (len, client.local_addr()));
        assert!(buffer[..len].iter().all(|byte| *byte == len as u8));
    }
    assert_eq!(
        client.send_to(&[0; 65_508], to).unwrap_err().kind(),
        std::io::Error::from_raw_os_error(90).kind()
    );
    assert_eq!(b.bind_udp((B, 53)).err().unwrap().kind(), ErrorKind::AddrInUse);
}

/// Breaks: servers can have a connected socket per client on one port, as in iperf3.
#[test]
fn a_server_has_a_socket_for_each_client() {
    let (a, b) = stacks();
    let shared = Bind { reuse_address: true, ..Bind::alone(B, 5201) };
    let mut listening = b.bind_udp_at(shared).unwrap();
    let mut pairs = Vec::new();
    for n in 0..3u8 {
        let client = a.bind_udp((A, 0)).unwrap();
        client.connect(Some(SocketAddr::new(B, 5201)));
        client.send(&[n]).unwrap();
        let mut buffer = [9; 10];
        let (_, from) = listening.recv_from(&mut buffer).unwrap();
        assert_eq!((from, buffer[0]), (client.local_addr(), n));
        listening.connect(Some(from));
        pairs.push((client, std::mem::replace(&mut listening, b.bind_udp_at(shared).unwrap())));
    }
    for (n, (client, server)) in pairs.iter().enumerate() {
        client.send(&[n as u8; 5]).unwrap();
        assert_eq!(server.recv_bytes().unwrap().0[..], [n as u8; 5]);
        server.send(b"answer").unwrap();
        assert_eq!(client.recv_bytes().unwrap().0[..], b"answer"[..]);
    }
}

/// Breaks: the memory of UDP sockets is bounded, and waiting calls end.
#[test]
fn limits_and_waits() {
    let (a, b) = stacks();
    let server = b.bind_udp((B, 53)).unwrap();
    let client = a.bind_udp((A, 1234)).unwrap();
    server.set_timeout(Some(Duration::from_millis(100)));
    assert_eq!(server.recv_from(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    client.connect(Some(SocketAddr::new(B, 53)));
    for n in 0..5000u32 {
        client.send(&n.to_be_bytes()).unwrap();
    }
    std::thread::sleep(Duration::from_millis(200));
    let (mut last, mut count) = (None, 0);
    while let Ok((payload, _)) = server.recv_bytes() {
        let n = u32::from_be_bytes(payload[..].try_into().unwrap());
        assert!(last < Some(n), "in order");
        (last, count) = (Some(n), count + 1);
    }
    assert!((256..3000).contains(&count), "{count}: more than nothing waited, and not all");
    let other = b.bind_udp((B, 54)).unwrap();
    other.send_to(b"stranger", client.local_addr()).unwrap();
    server.send_to(b"friend", client.local_addr()).unwrap();
    let mut buffer = [0; 20];
    let (len, from) = client.recv_from(&mut buffer).unwrap();
    assert_eq!((&buffer[..len], from), (&b"friend"[..], SocketAddr::new(B, 53)));
}
