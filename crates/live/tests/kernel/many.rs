//! Many connections.

use crate::netns::alone;
use crate::peer_host::{HostPlan, LiveHost, OURS, OURS6, PORT, sysctl};
use crate::programs::Echo;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::channel;
use std::time::Duration;

fn exchange(stream: &mut TcpStream, number: u32) {
    let mut back = [0; 4];
    stream.write_all(&number.to_le_bytes()).unwrap();
    stream.read_exact(&mut back).unwrap();
    assert_eq!(back, number.to_le_bytes());
}

/// Number of connections of the host a moment later.
fn open_connections(host: &LiveHost) -> usize {
    std::thread::sleep(Duration::from_millis(300));
    let (sender, receiver) = channel();
    host.handle.run(Box::new(move |host, _| sender.send(host.open_connections()).unwrap())).unwrap();
    receiver.recv().unwrap()
}

/// Breaks: short connections leave nothing behind, and each gets its own bytes.
#[test]
fn thousands_of_short_ones() {
    alone(|| {
        let host = LiveHost::up(HostPlan::new(|| Box::<Echo>::default()));
        for number in 0..3_000 {
            let mut stream = TcpStream::connect((OURS, PORT)).unwrap();
            exchange(&mut stream, number);
            stream.shutdown(Shutdown::Write).unwrap();
            assert_eq!(stream.read(&mut [0]).unwrap(), 0);
        }
        assert_eq!(open_connections(&host), 0, "the kernel closed first, so it has the TIME-WAIT");
        host.down();
    });
}

/// Breaks: a thousand simultaneous connections work.
#[test]
fn a_thousand_at_once() {
    alone(|| {
        // Other tests share the descriptors of the process.
        let host = LiveHost::up(HostPlan::new(|| Box::<Echo>::default()));
        let mut streams: Vec<_> = (0..700).map(|_| TcpStream::connect((OURS, PORT)).unwrap()).collect();
        for round in 0..3 {
            for (number, stream) in streams.iter_mut().enumerate() {
                exchange(stream, number as u32 + round);
            }
        }
        host.down();
    });
}

/// Breaks: a thousand connections per second for a minute leave no memory or descriptors behind. Slow, so run
/// on request: `cargo test -p farpace-live --test kernel -- --ignored`.
#[test]
#[ignore = "takes a minute"]
fn a_minute_of_connections() {
    alone(|| {
        // The kernel closes first, so each connection is in TIME-WAIT for a minute and needs a port.
        sysctl("ip_local_port_range", "1024 65535");
        let host = LiveHost::up(HostPlan::new(|| Box::<Echo>::default()));
        let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        let memory = || {
            let text = std::fs::read_to_string("/proc/self/statm").unwrap();
            text.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
        };
        let second = |from: u32| {
            let begin = std::time::Instant::now();
            for number in from..from + 1_000 {
                // To both addresses: with most ports in use, the kernel searches long for a free one.
                let to = if number % 2 == 0 { OURS } else { OURS6 };
                let mut stream = TcpStream::connect((to, PORT)).unwrap();
                exchange(&mut stream, number);
            }
            std::thread::sleep(Duration::from_secs(1).saturating_sub(begin.elapsed()));
            begin.elapsed()
        };
        // The host keeps closed connections for a while, up to a limit, which is reached after five seconds.
        (0..6).for_each(|n| _ = second(n * 1_000));
        let (memory_before, descriptors_before) = (memory(), descriptors());
        let slowest = (6..60).map(|n| second(n * 1_000)).max().unwrap();
        let grown = memory().saturating_sub(memory_before);
        eprintln!("slowest thousand {slowest:?}; memory {memory_before} B, then {grown} B more");
        assert_eq!(descriptors(), descriptors_before);
        assert_eq!(open_connections(&host), 0);
        assert!(grown < 10_000_000, "{grown} bytes more");
        host.down();
    });
}
