//! Much data, in both directions.

use crate::netns::alone;
use bytes::Bytes;
use farpace_host::{Application, Host, ListenSettings, Secret};
use farpace_live::device::{Tun, TunConfig};
use farpace_live::{Station, StationError, Wait};
use farpace_tcp::config::Settings;
use farpace_tcp::{Connection, Event};
use farpace_units::{Instant, Stream};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::time::Instant as WallClock;

const KERNEL: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1));
const OURS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 2));
const PORT: u16 = 5001;

/// Sends so many bytes, counted up in steps of a prime, and reads everything.
struct Source {
    left: usize,
    chunk: Bytes,
}

impl Application for Source {
    fn on_event(&mut self, _: Instant, connection: &mut Connection, event: Event) {
        if matches!(event, Event::Connected | Event::Writable) {
            while self.left > 0 {
                let mut chunk = self.chunk.slice(..self.chunk.len().min(self.left));
                let taken = connection.write(&mut chunk).as_len();
                self.left -= taken;
                if taken == 0 {
                    break;
                }
            }
            if self.left == 0 {
                connection.close();
            }
        }
    }
}

struct Sink;

impl Application for Sink {
    fn on_event(&mut self, _: Instant, connection: &mut Connection, event: Event) {
        match event {
            Event::Readable => {
                connection.read(drop);
            }
            Event::PeerClosed => {
                connection.read(drop);
                connection.close();
            }
            _ => {}
        }
    }
}

fn settings() -> ListenSettings {
    ListenSettings::new(Settings::default().resolve().unwrap())
}

fn station(listen: impl FnOnce(&mut Host) + Send + 'static) -> farpace_live::Handle {
    let (handle, _) = Station::spawn("station", move || -> Result<_, StationError> {
        let config = TunConfig { addresses: vec![(KERNEL, 24)], ..TunConfig::new("fp0") };
        let tun = Tun::open(&config).unwrap();
        let mut host = Host::new(OURS, Secret::from_stream(&mut Stream::new(1, "test")));
        listen(&mut host);
        Station::of_host(host, Box::new(tun), Wait::Sleep)
    })
    .unwrap();
    handle
}

/// Breaks: no kernel can fetch anything from us.
#[test]
fn the_kernel_reads_all_that_we_send() {
    alone(|| {
        let bytes = 1_000_000_000;
        let handle = station(move |host| {
            let chunk = Bytes::from(vec![7; 1 << 20]);
            let make =
                move || -> Box<dyn Application> { Box::new(Source { left: bytes, chunk: chunk.clone() }) };
            host.listen(PORT, settings(), make).unwrap();
        });
        let mut stream = TcpStream::connect((OURS, PORT)).unwrap();
        let begin = WallClock::now();
        let (mut buffer, mut read) = (vec![0; 1 << 20], 0);
        loop {
            match stream.read(&mut buffer).unwrap() {
                0 => break,
                n => {
                    assert!(buffer[..n].iter().all(|byte| *byte == 7));
                    read += n
                }
            }
        }
        let took = begin.elapsed().as_secs_f64();
        eprintln!("out: {:.2} Gbit/s", read as f64 * 8e-9 / took);
        assert_eq!(read, bytes);
        handle.stop();
    });
}

/// Breaks: no kernel can bring anything to us.
#[test]
fn we_read_all_that_the_kernel_sends() {
    alone(|| {
        let handle = station(|host| host.listen(PORT, settings(), || Box::new(Sink)).unwrap());
        let mut stream = TcpStream::connect((OURS, PORT)).unwrap();
        let begin = WallClock::now();
        let (chunk, mut sent) = (vec![7; 1 << 20], 0);
        for _ in 0..1000 {
            stream.write_all(&chunk).unwrap();
            sent += chunk.len();
        }
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap(), 0, "our FIN");
        let took = begin.elapsed().as_secs_f64();
        eprintln!("in: {:.2} Gbit/s", sent as f64 * 8e-9 / took);
        handle.stop();
    });
}
