//! A host that sends and verifies bytes that depend on their position, and the kernel's end of the
//! connection.

use bytes::Bytes;
use farpace_host::{Application, Host, ListenSettings, LocalLink, Secret};
use farpace_live::{Device, Driver, DriverError, Handle, Stats, Wait};
use farpace_tcp::config::Settings;
use farpace_tcp::{Connection, ConnectionEvent};
use farpace_units::{Instant, RandomStream};
use farpace_wire::MacAddr;
use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::thread::JoinHandle;

/// Sends [`LENGTH`] bytes on each connection.
const SOURCE: u16 = 5001;
/// Reads, and answers with one byte: 1 if all bytes were correct.
const SINK: u16 = 5002;
/// Bytes in each direction.
pub const LENGTH: usize = 100_000_000;
/// Period of the pattern: a prime, so that no two buffers or segments begin at the same position of it.
const PERIOD: usize = 999_983;
/// Ethernet address of the host.
pub const MAC: MacAddr = MacAddr([2, 0xfa, 0, 0, 0, 2]);

/// At least this many bytes, from which any [`PERIOD`] of the stream can be sliced.
fn pattern() -> Bytes {
    let byte = |at: usize| ((at % PERIOD).wrapping_mul(0x9e37_79b1) >> 13) as u8;
    (0..2 * PERIOD).map(byte).collect::<Vec<_>>().into()
}

struct Source {
    sent: usize,
    pattern: Bytes,
}

impl Application for Source {
    fn on_event(&mut self, _: Instant, connection: &mut Connection, event: ConnectionEvent) {
        if matches!(event, ConnectionEvent::Connected | ConnectionEvent::Writable) {
            while self.sent < LENGTH {
                let from = self.sent % PERIOD;
                let mut chunk = self.pattern.slice(from..from + PERIOD.min(LENGTH - self.sent));
                let taken = connection.write(&mut chunk).as_len();
                self.sent += taken;
                if taken == 0 {
                    return;
                }
            }
            connection.close();
        }
    }
}

struct Sink {
    read: usize,
    right: bool,
    pattern: Bytes,
}

impl Application for Sink {
    fn on_event(&mut self, _: Instant, connection: &mut Connection, event: ConnectionEvent) {
        if matches!(event, ConnectionEvent::Readable | ConnectionEvent::PeerClosed) {
            connection.read(|bytes| {
                for part in bytes.chunks(PERIOD) {
                    let from = self.read % PERIOD;
                    self.right &= part == &self.pattern[from..from + part.len()];
                    self.read += part.len();
                }
            });
        }
        if event == ConnectionEvent::PeerClosed {
            let right = self.right && self.read == LENGTH;
            connection.write(&mut Bytes::from(vec![u8::from(right)]));
            connection.close();
        }
    }
}

/// A driver with a host of these addresses on a device.
pub fn driver<D: Device + 'static>(
    addresses: &[&str],
    open: impl FnOnce() -> D + Send + 'static,
) -> (Handle, JoinHandle<Result<Stats, DriverError>>) {
    let addresses: Vec<IpAddr> = addresses.iter().map(|address| address.parse().unwrap()).collect();
    Driver::spawn("driver", move || -> Result<_, DriverError> {
        let device = open();
        let mut host = Host::new(addresses[0], Secret::from_stream(&mut RandomStream::new(1, "test")));
        addresses[1..].iter().for_each(|address| host.add_address(*address));
        if let Some(mac) = device.info().mac {
            host.join_link(mac, LocalLink::default());
        }
        let pattern = pattern();
        let settings = || ListenSettings::new(Settings::default().resolve().unwrap());
        let bytes = pattern.clone();
        let source = move || -> Box<dyn Application> { Box::new(Source { sent: 0, pattern: bytes.clone() }) };
        host.listen(SOURCE, settings(), source).unwrap();
        let sink = move || -> Box<dyn Application> {
            Box::new(Sink { read: 0, right: true, pattern: pattern.clone() })
        };
        host.listen(SINK, settings(), sink).unwrap();
        Driver::of_host(host, Box::new(device), Wait::Sleep)
    })
    .unwrap()
}

/// The kernel reads everything from the host at `address`.
pub fn fetch(address: &str) {
    let address: IpAddr = address.parse().unwrap();
    let pattern = pattern();
    let mut stream = TcpStream::connect((address, SOURCE)).unwrap();
    let (mut buffer, mut read) = (vec![0; PERIOD], 0);
    loop {
        let count = stream.read(&mut buffer).unwrap();
        if count == 0 {
            break;
        }
        let from = read % PERIOD;
        assert!(buffer[..count] == pattern[from..from + count], "wrong bytes from {read} on");
        read += count;
    }
    assert_eq!(read, LENGTH);
}

/// The kernel sends everything to the host at `address`.
pub fn bring(address: &str) {
    let address: IpAddr = address.parse().unwrap();
    let pattern = pattern();
    let mut stream = TcpStream::connect((address, SINK)).unwrap();
    let mut sent = 0;
    while sent < LENGTH {
        let from = sent % PERIOD;
        let count = PERIOD.min(LENGTH - sent);
        stream.write_all(&pattern[from..from + count]).unwrap();
        sent += count;
    }
    stream.shutdown(Shutdown::Write).unwrap();
    let mut verdict = Vec::new();
    stream.read_to_end(&mut verdict).unwrap();
    assert_eq!(verdict, [1], "the bytes were not the same");
}
