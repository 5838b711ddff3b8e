//! The end of connections, and zero windows.

use crate::netns::alone;
use crate::peer_host::{HostPlan, KERNEL, LiveHost, OURS, PORT, config};
use crate::programs::{Echo, NeverReads, ResetsOnData, Sink, Source};
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

/// Breaks: a half-closed connection still carries data in the other direction.
#[test]
fn half_closed_by_the_kernel() {
    alone(|| {
        let host = LiveHost::up(HostPlan::new(|| Box::<Echo>::default()));
        let stream = TcpStream::connect((OURS, PORT)).unwrap();
        write_all(&stream, 10);
        assert_eq!(read_all(&stream), 10, "the echo comes after the FIN");
        host.down();
    });
}

/// Breaks: a connection ends when the program on the kernel's side dies.
#[test]
fn reset_by_the_kernel() {
    alone(|| {
        let host = LiveHost::up(HostPlan::new(|| Box::new(Sink)));
        let mut stream = TcpStream::connect((OURS, PORT)).unwrap();
        stream.write_all(b"something").unwrap();
        let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
        setsockopt(&stream, sockopt::Linger, &linger).unwrap();
        drop(stream);
        assert_eq!(open_connections(&host), 0);
        host.down();
    });
}

/// Waits until the host has no connections, and returns their number.
fn open_connections(host: &LiveHost) -> usize {
    let mut open = usize::MAX;
    for _ in 0..200 {
        let (sender, receiver) = channel();
        host.handle.run(Box::new(move |host, _| sender.send(host.open_connections()).unwrap())).unwrap();
        open = receiver.recv().unwrap();
        if open == 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    open
}

/// Breaks: the kernel accepts resets.
#[test]
fn reset_by_us() {
    alone(|| {
        let host = LiveHost::up(HostPlan::new(|| Box::new(ResetsOnData)));
        let mut stream = TcpStream::connect((OURS, PORT)).unwrap();
        stream.write_all(b"something").unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
        host.down();
    });
}

/// Breaks: connections to a closed port are refused.
#[test]
fn refused_by_us() {
    alone(|| {
        let host = LiveHost::up(HostPlan::new(|| Box::new(Sink)));
        let error = TcpStream::connect((OURS, PORT + 1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        host.down();
    });
}

/// Breaks: data waits for a kernel whose program does not read for a while.
#[test]
fn the_kernel_closes_its_window() {
    alone(|| {
        let all = 20_000_000;
        let host = LiveHost::up(HostPlan::new(|| Box::new(Source::of(20_000_000))));
        let stream = TcpStream::connect((OURS, PORT)).unwrap();
        std::thread::sleep(Duration::from_secs(2));
        assert_eq!(read_all(&stream), all);
        host.down();
    });
}

/// Breaks: a program that does not read causes a zero window, within bounded memory.
#[test]
fn we_close_our_window() {
    alone(|| {
        let host = LiveHost::up(HostPlan::new(|| Box::new(NeverReads)));
        let mut stream = TcpStream::connect((OURS, PORT)).unwrap();
        stream.set_write_timeout(Some(Duration::from_millis(1500))).unwrap();
        let mut sent = 0;
        while let Ok(n) = stream.write(&[0; 100_000]) {
            sent += n;
        }
        assert!((4_000_000..20_000_000).contains(&sent), "{sent} bytes into two buffers");
        host.down();
    });
}

/// Forwards the events of a connection.
struct EventSender(Sender<ConnectionEvent>);

impl Application for EventSender {
    fn on_event(&mut self, _: Instant, connection: &mut Connection, event: ConnectionEvent) {
        if event == ConnectionEvent::PeerClosed {
            connection.close();
        }
        self.0.send(event).unwrap();
    }
}

/// Breaks: hosts can connect to a kernel, and report a refusal.
#[test]
fn opened_by_us() {
    alone(|| {
        let host = LiveHost::up(HostPlan::new(|| Box::new(Sink)));
        let listener = TcpListener::bind((KERNEL, 6000)).unwrap();
        let (sender, receiver) = channel();
        let open = |port: u16| {
            let sender = sender.clone();
            let job = move |host: &mut farpace_host::Host, cx: &mut farpace_path::Cx<'_>| {
                let config = config(&Settings::default());
                host.connect(cx.now(), KERNEL, port, config, None, Box::new(EventSender(sender))).unwrap();
            };
            host.handle.run(Box::new(job)).unwrap();
        };
        open(6000);
        let (stream, from) = listener.accept().unwrap();
        assert_eq!(from.ip(), OURS);
        assert_eq!(receiver.recv().unwrap(), ConnectionEvent::Connected);
        drop(stream);
        let last = std::iter::from_fn(|| receiver.recv_timeout(Duration::from_secs(5)).ok());
        let events: Vec<_> = last.take_while(|e| !matches!(e, ConnectionEvent::Closed(_))).collect();
        assert!(events.contains(&ConnectionEvent::PeerClosed), "{events:?}");
        open(6001);
        let refused = std::iter::from_fn(|| receiver.recv_timeout(Duration::from_secs(5)).ok());
        let refused: Vec<_> = refused.take(1).collect();
        assert!(matches!(refused[..], [ConnectionEvent::Closed(CloseReason::Reset)]), "{refused:?}");
        host.down();
    });
}
