//! Bulk transfers in both directions.

use crate::netns::alone;
use crate::peer_host::{HostPlan, LiveHost, OURS, PORT};
use crate::programs::{Sink, Source};
use crate::stream::{read_all, write_all};
use std::io::Read;
use std::net::TcpStream;

const MUCH: usize = 1_000_000_000;

/// Breaks: a kernel can read a large amount of data from a host.
#[test]
fn the_kernel_reads_all_that_we_send() {
    alone(|| {
        let host = LiveHost::up(HostPlan::new(|| Box::new(Source::of(MUCH))));
        assert_eq!(read_all(&TcpStream::connect((OURS, PORT)).unwrap()), MUCH);
        let stats = host.down();
        assert_eq!((stats.queue_full, stats.devices[0].refused, stats.devices[0].malformed), (0, 0, 0));
    });
}

/// Breaks: a kernel can send a large amount of data to a host.
#[test]
fn we_read_all_that_the_kernel_sends() {
    alone(|| {
        let host = LiveHost::up(HostPlan::new(|| Box::new(Sink)));
        let mut stream = TcpStream::connect((OURS, PORT)).unwrap();
        write_all(&stream, MUCH);
        assert_eq!(stream.read(&mut [0]).unwrap(), 0, "our FIN follows that of the kernel");
        let stats = host.down();
        assert!(stats.devices[0].bytes_received as usize > MUCH);
    });
}
