//! Much data, in both directions.

use crate::netns::alone;
use crate::peer_host::{Machine, OURS, PORT, Plan};
use crate::programs::{Sink, Source};
use crate::stream::{read_all, write_all};
use std::io::Read;
use std::net::TcpStream;

const MUCH: usize = 1_000_000_000;

/// Breaks: no kernel can fetch anything from us.
#[test]
fn the_kernel_reads_all_that_we_send() {
    alone(|| {
        let machine = Machine::up(Plan::new(|| Box::new(Source::of(MUCH))));
        assert_eq!(read_all(&TcpStream::connect((OURS, PORT)).unwrap()), MUCH);
        let stats = machine.down();
        assert_eq!((stats.queue_full, stats.devices[0].refused, stats.devices[0].malformed), (0, 0, 0));
    });
}

/// Breaks: no kernel can bring anything to us.
#[test]
fn we_read_all_that_the_kernel_sends() {
    alone(|| {
        let machine = Machine::up(Plan::new(|| Box::new(Sink)));
        let mut stream = TcpStream::connect((OURS, PORT)).unwrap();
        write_all(&stream, MUCH);
        assert_eq!(stream.read(&mut [0]).unwrap(), 0, "our FIN follows that of the kernel");
        let stats = machine.down();
        assert!(stats.devices[0].bytes_received as usize > MUCH);
    });
}
