//! How connections end, and what holds them up.

use crate::netns::alone;
use crate::peer_host::{KERNEL, Machine, OURS, PORT, Plan, config};
use crate::programs::{Deaf, Echo, Rude, Sink, Source};
use crate::stream::{read_all, write_all};
use farpace_host::Application;
use farpace_tcp::config::Settings;
use farpace_tcp::{CloseReason, Connection, ConnectionEvent};
use farpace_units::Instant;
use nix::sys::socket::{setsockopt, sockopt};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// Breaks: after one direction is closed the other carries nothing.
#[test]
fn half_closed_by_the_kernel() {
    alone(|| {
        let machine = Machine::up(Plan::new(|| Box::<Echo>::default()));
        let stream = TcpStream::connect((OURS, PORT)).unwrap();
        write_all(&stream, 10);
        assert_eq!(read_all(&stream), 10, "the echo comes after the FIN");
        machine.down();
    });
}

/// Breaks: a program of the kernel that dies leaves a connection with us for ever.
#[test]
fn reset_by_the_kernel() {
    alone(|| {
        let machine = Machine::up(Plan::new(|| Box::new(Sink)));
        let mut stream = TcpStream::connect((OURS, PORT)).unwrap();
        stream.write_all(b"something").unwrap();
        let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
        setsockopt(&stream, sockopt::Linger, &linger).unwrap();
        drop(stream);
        assert_eq!(open_connections(&machine), 0);
        machine.down();
    });
}

/// Waits until the host has no connections, or does not wait any more.
fn open_connections(machine: &Machine) -> usize {
    let mut open = usize::MAX;
    for _ in 0..200 {
        let (tell, hear) = channel();
        machine.handle.run(Box::new(move |host, _| tell.send(host.open_connections()).unwrap())).unwrap();
        open = hear.recv().unwrap();
        if open == 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    open
}

/// Breaks: our reset is not one for the kernel.
#[test]
fn reset_by_us() {
    alone(|| {
        let machine = Machine::up(Plan::new(|| Box::new(Rude)));
        let mut stream = TcpStream::connect((OURS, PORT)).unwrap();
        stream.write_all(b"something").unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
        machine.down();
    });
}

/// Breaks: a port at which nobody listens swallows connections.
#[test]
fn refused_by_us() {
    alone(|| {
        let machine = Machine::up(Plan::new(|| Box::new(Sink)));
        let error = TcpStream::connect((OURS, PORT + 1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        machine.down();
    });
}

/// Breaks: a kernel whose program does not read for a while never gets the rest.
#[test]
fn the_kernel_closes_its_window() {
    alone(|| {
        let all = 20_000_000;
        let machine = Machine::up(Plan::new(|| Box::new(Source::of(20_000_000))));
        let stream = TcpStream::connect((OURS, PORT)).unwrap();
        std::thread::sleep(Duration::from_secs(2));
        assert_eq!(read_all(&stream), all);
        machine.down();
    });
}

/// Breaks: a program of ours that does not read takes memory without end, or the kernel gives up.
#[test]
fn we_close_our_window() {
    alone(|| {
        let machine = Machine::up(Plan::new(|| Box::new(Deaf)));
        let mut stream = TcpStream::connect((OURS, PORT)).unwrap();
        stream.set_write_timeout(Some(Duration::from_millis(1500))).unwrap();
        let mut sent = 0;
        while let Ok(n) = stream.write(&[0; 100_000]) {
            sent += n;
        }
        assert!((4_000_000..20_000_000).contains(&sent), "{sent} bytes into two buffers");
        machine.down();
    });
}

/// Says what happens to a connection of ours.
struct Teller(Sender<ConnectionEvent>);

impl Application for Teller {
    fn on_event(&mut self, _: Instant, connection: &mut Connection, event: ConnectionEvent) {
        if event == ConnectionEvent::PeerClosed {
            connection.close();
        }
        self.0.send(event).unwrap();
    }
}

/// Breaks: we cannot open connections to a kernel, or do not learn that it refuses.
#[test]
fn opened_by_us() {
    alone(|| {
        let machine = Machine::up(Plan::new(|| Box::new(Sink)));
        let listener = TcpListener::bind((KERNEL, 6000)).unwrap();
        let (tell, hear) = channel();
        let open = |port: u16| {
            let tell = tell.clone();
            let job = move |host: &mut farpace_host::Host, cx: &mut farpace_path::Cx<'_>| {
                let config = config(&Settings::default());
                host.connect(cx.now(), KERNEL, port, config, None, Box::new(Teller(tell))).unwrap();
            };
            machine.handle.run(Box::new(job)).unwrap();
        };
        open(6000);
        let (stream, from) = listener.accept().unwrap();
        assert_eq!(from.ip(), OURS);
        assert_eq!(hear.recv().unwrap(), ConnectionEvent::Connected);
        drop(stream);
        let last = std::iter::from_fn(|| hear.recv_timeout(Duration::from_secs(5)).ok());
        let events: Vec<_> = last.take_while(|e| !matches!(e, ConnectionEvent::Closed(_))).collect();
        assert!(events.contains(&ConnectionEvent::PeerClosed), "{events:?}");
        open(6001);
        let refused = std::iter::from_fn(|| hear.recv_timeout(Duration::from_secs(5)).ok());
        let refused: Vec<_> = refused.take(1).collect();
        assert!(matches!(refused[..], [ConnectionEvent::Closed(CloseReason::Reset)]), "{refused:?}");
        machine.down();
    });
}
