//! Many connections.

use crate::netns::alone;
use crate::peer_host::{Machine, OURS, OURS6, PORT, Plan, sysctl};
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

/// Connections that our machine has a moment later.
fn open_connections(machine: &Machine) -> usize {
    std::thread::sleep(Duration::from_millis(300));
    let (tell, hear) = channel();
    machine.handle.run(Box::new(move |host, _| tell.send(host.open_connections()).unwrap())).unwrap();
    hear.recv().unwrap()
}

/// Breaks: connections leak, or one gets the bytes of another.
#[test]
fn thousands_of_short_ones() {
    alone(|| {
        let machine = Machine::up(Plan::new(|| Box::<Echo>::default()));
        for number in 0..3_000 {
            let mut stream = TcpStream::connect((OURS, PORT)).unwrap();
            exchange(&mut stream, number);
            stream.shutdown(Shutdown::Write).unwrap();
            assert_eq!(stream.read(&mut [0]).unwrap(), 0);
        }
        assert_eq!(open_connections(&machine), 0, "the kernel closed first, so it has the TIME-WAIT");
        machine.down();
    });
}

/// Breaks: a thousand connections at once.
#[test]
fn a_thousand_at_once() {
    alone(|| {
        // Descriptors of the process are shared with other tests.
        let machine = Machine::up(Plan::new(|| Box::<Echo>::default()));
        let mut streams: Vec<_> = (0..700).map(|_| TcpStream::connect((OURS, PORT)).unwrap()).collect();
        for round in 0..3 {
            for (number, stream) in streams.iter_mut().enumerate() {
                exchange(stream, number as u32 + round);
            }
        }
        machine.down();
    });
}

/// Breaks: a server that runs for long: a thousand connections a second for a minute leave memory or descriptors behind. Slow,
/// so to be asked for: `cargo test -p farpace-live --test kernel -- --ignored`.
#[test]
#[ignore = "takes a minute"]
fn a_minute_of_connections() {
    alone(|| {
        // Each of them waits for a minute in the kernel, which closes first, and needs a port until then.
        sysctl("ip_local_port_range", "1024 65535");
        let machine = Machine::up(Plan::new(|| Box::<Echo>::default()));
        let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        let memory = || {
            let text = std::fs::read_to_string("/proc/self/statm").unwrap();
            text.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
        };
        let second = |from: u32| {
            let begin = std::time::Instant::now();
            for number in from..from + 1_000 {
                // To both addresses: where most ports are taken, the kernel looks long for a free one.
                let to = if number % 2 == 0 { OURS } else { OURS6 };
                let mut stream = TcpStream::connect((to, PORT)).unwrap();
                exchange(&mut stream, number);
            }
            std::thread::sleep(Duration::from_secs(1).saturating_sub(begin.elapsed()));
            begin.elapsed()
        };
        // Those that have closed are kept for a while, up to a limit: it is full after five seconds.
        (0..6).for_each(|n| _ = second(n * 1_000));
        let (memory_before, descriptors_before) = (memory(), descriptors());
        let slowest = (6..60).map(|n| second(n * 1_000)).max().unwrap();
        let grown = memory().saturating_sub(memory_before);
        eprintln!("slowest thousand {slowest:?}; memory {memory_before} B, then {grown} B more");
        assert_eq!(descriptors(), descriptors_before);
        assert_eq!(open_connections(&machine), 0);
        assert!(grown < 10_000_000, "{grown} bytes more");
        machine.down();
    });
}
