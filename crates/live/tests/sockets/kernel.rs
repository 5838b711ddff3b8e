//! The kernel's sockets as peers.

use crate::netns::alone;
use crate::pair::pattern;
use farpace_live::device::TunConfig;
use farpace_live::socket::{SocketOptions, Stack};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::UdpGsoSegment;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

pub const KERNEL: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1));
pub const OURS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 2));

pub fn stack() -> Stack {
    let tun = TunConfig { addresses: vec![(KERNEL, 24)], ..TunConfig::new("fp0") };
    Stack::on_tun(tun, &[OURS]).unwrap()
}

/// Breaks: clients and servers interoperate with ordinary systems.
#[test]
fn a_hundred_megabytes_there_and_back() {
    alone(|| {
        let stack = stack();
        let ours = stack.listen((OURS, 7), &SocketOptions::default()).unwrap();
        let theirs = TcpListener::bind((KERNEL, 7)).unwrap();
        let data = pattern(1 << 20);
        let begin = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| echo(&mut ours.accept().unwrap().0));
            scope.spawn(|| echo(&mut theirs.accept().unwrap().0));
            let client = stack.connect((KERNEL, 7), &SocketOptions::default()).unwrap();
            scope.spawn({
                let (mut client, data) = (client.clone(), &data);
                move || {
                    for _ in 0..100 {
                        client.write_all(data).unwrap();
                    }
                    client.shutdown(Shutdown::Write).unwrap();
                }
            });
            let mut got = vec![0; data.len()];
            for _ in 0..100 {
                (&client).read_exact(&mut got).unwrap();
                assert!(got == data);
            }
            assert_eq!((&client).read(&mut got).unwrap(), 0);

            let client = TcpStream::connect((OURS, 7)).unwrap();
            scope.spawn({
                let mut client = client.try_clone().unwrap();
                let data = &data;
                move || {
                    for _ in 0..100 {
                        client.write_all(data).unwrap();
                    }
                    client.shutdown(Shutdown::Write).unwrap();
                }
            });
            for _ in 0..100 {
                (&client).read_exact(&mut got).unwrap();
                assert!(got == data);
            }
            assert_eq!((&client).read(&mut got).unwrap(), 0);
        });
        let took = begin.elapsed().as_secs_f64();
        eprintln!("{:.2} Gbit/s there and back", 4.0 * 100.0 * 8.0 * (1 << 20) as f64 * 1e-9 / took);
        stack.stop().unwrap();
    });
}

fn echo<S: Read + Write>(stream: &mut S) {
    let mut buffer = vec![0; 256 << 10];
    loop {
        match stream.read(&mut buffer).unwrap() {
            0 => return,
            n => stream.write_all(&buffer[..n]).unwrap(),
        }
    }
}

/// Breaks: refusals and resets of the kernel are reported.
#[test]
fn the_kernel_refuses_and_resets() {
    alone(|| {
        let stack = stack();
        let refused = stack.connect((KERNEL, 9), &SocketOptions::default()).err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        assert_eq!(TcpStream::connect((OURS, 9)).unwrap_err().kind(), ErrorKind::ConnectionRefused);
        let theirs = TcpListener::bind((KERNEL, 7)).unwrap();
        let mut stream = stack.connect((KERNEL, 7), &SocketOptions::default()).unwrap();
        let accepted = theirs.accept().unwrap().0;
        stream.write_all(b"never read").unwrap();
        accepted.peek(&mut [0]).unwrap();
        drop(accepted);
        assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
        stack.stop().unwrap();
    });
}

/// Breaks: UDP interoperates with ordinary systems.
#[test]
fn datagrams_with_the_kernel() {
    alone(|| {
        let stack = stack();
        let ours = stack.bind_udp((OURS, 53)).unwrap();
        let theirs = UdpSocket::bind((KERNEL, 0)).unwrap();
        theirs.send_to(b"question", (OURS, 53)).unwrap();
        let mut buffer = [0; 3000];
        let (len, from) = ours.recv_from(&mut buffer).unwrap();
        assert_eq!((&buffer[..len], from), (&b"question"[..], theirs.local_addr().unwrap()));
        ours.send_to(&[3; 2500], from).unwrap();
        let (len, from) = theirs.recv_from(&mut buffer).unwrap();
        assert_eq!((len, from), (2500, (OURS, 53).into()));
        stack.stop().unwrap();
    });
}

/// Breaks: UDP datagrams of programs that use `UDP_SEGMENT` (as QUIC servers do) arrive as single datagrams;
/// and long datagrams are fragmented for a device with another MTU than 1500.
#[test]
fn datagrams_in_bulk_and_long_ones() {
    alone(|| {
        for mtu in [1500, 600, 9000] {
            let tun = TunConfig { addresses: vec![(KERNEL, 24)], mtu, ..TunConfig::new("fp0") };
            let stack = Stack::on_tun(tun, &[OURS]).unwrap();
            let ours = stack.bind_udp((OURS, 9)).unwrap();
            ours.set_timeout(Some(Duration::from_secs(5)));
            let theirs = UdpSocket::bind((KERNEL, 9)).unwrap();
            theirs.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            setsockopt(&theirs, UdpGsoSegment, &500).unwrap();
            let data = pattern(5_300);
            theirs.send_to(&data, (OURS, 9)).unwrap();
            let mut got = Vec::new();
            for _ in 0..11 {
                let (payload, from) = ours.recv_bytes().unwrap();
                assert_eq!(from, theirs.local_addr().unwrap());
                assert_eq!(payload.len(), (data.len() - got.len()).min(500));
                got.extend_from_slice(&payload);
            }
            assert!(got == data);
            assert_eq!(ours.send_to(&data, theirs.local_addr().unwrap()).unwrap(), data.len());
            let mut buffer = vec![0; 10_000];
            assert_eq!(theirs.recv_from(&mut buffer).unwrap().0, data.len());
            assert!(buffer[..data.len()] == data);
            let stats = stack.stop().unwrap();
            let device = &stats.devices[0];
            // As many fragments as the MTU requires, with a header of 20 bytes each.
            let room = u64::from(mtu - 20) / 8 * 8;
            assert_eq!(device.sent, (data.len() as u64 + 8).div_ceil(room), "MTU {mtu}");
        }
    });
}
