//! ACK requests between live hosts, and to a kernel that does not support them.

use crate::kernel::{KERNEL, stack};
use crate::netns::alone;
use crate::pair::pair;
use farpace_live::socket::{SocketOptions, Stream};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

/// Short messages, each sent after the ACK of the previous one.
const MESSAGES: usize = 60;

fn options(words: &str) -> SocketOptions {
    let mut options = SocketOptions::default().nodelay(true);
    options.set(words).unwrap();
    options
}

/// Writes messages one at a time, each after the ACK of the previous one, and returns the mean RTT that the
/// sender measured.
fn one_by_one(stream: &mut Stream) -> f64 {
    for _ in 0..MESSAGES {
        stream.write_all(b"hello").unwrap();
        while !stream.inspect().unwrap().memory.send_bytes.is_zero() {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
    stream.inspect().unwrap().inspection.srtt.as_nanos() as f64 / 1e6
}

/// Breaks: the setting `ack_control` takes effect on live connections between two hosts, and its counters
/// show it.
#[test]
fn two_hosts_request_and_confirm() {
    let mut srtt = Vec::new();
    for (words, expected) in [("delayed_ack=rfc5681", false), ("delayed_ack=rfc5681 ack_control=safe", true)]
    {
        let mut pair = pair(&options(words));
        srtt.push(one_by_one(&mut pair.here));
        let (here, there) = (pair.here.inspect().unwrap().counters, pair.there.inspect().unwrap().counters);
        let counted = (here.asked > 0, here.confirmed > 0, there.requests > 0, there.confirmations > 0);
        assert_eq!(counted, (expected, expected, expected, expected), "{words}: {here:?} {there:?}");
        assert!(here.confirmed <= here.asked && there.confirmations <= there.requests, "{here:?} {there:?}");
        let mut got = vec![0; MESSAGES * 5];
        pair.there.read_exact(&mut got).unwrap();
        assert_eq!(got, b"hello".repeat(MESSAGES), "{words}");
    }
    println!("srtt of a sender of single segments: {:.2} ms, with requests {:.2} ms", srtt[0], srtt[1]);
}

/// Breaks: `ack_control=unilateral` makes a kernel send immediate ACKs, and its extra bytes do not reach the
/// program.
#[test]
fn ack_requests_to_a_kernel() {
    alone(|| {
        let stack = stack();
        let listener = TcpListener::bind((KERNEL, 7)).unwrap();
        for (words, expected) in [("", false), ("ack_control=unilateral", true)] {
            let mut here = stack.connect((KERNEL, 7), &options(words)).unwrap();
            let mut there = listener.accept().unwrap().0;
            // As many segments as the kernel acknowledges immediately at the beginning of a connection.
            one_by_one(&mut here);
            let srtt = one_by_one(&mut here);
            let counters = here.inspect().unwrap().counters;
            assert_eq!((counters.asked > 0, counters.confirmed > 0), (expected, expected), "{counters:?}");
            println!(
                "`{words}`: srtt {srtt:.2} ms, {} asked, {} answered",
                counters.asked, counters.confirmed
            );
            let mut got = vec![0; 2 * MESSAGES * 5];
            there.read_exact(&mut got).unwrap();
            assert_eq!(got, b"hello".repeat(2 * MESSAGES), "{words}");
        }
        stack.stop().unwrap();
    });
}
