//! Two connections driven by hand, without a host, a network or a clock: who reads this knows how to embed
//! the engine.
//!
//! `cargo run -p farpace-tcp --example by_hand` prints every segment. The network is a queue: each segment
//! takes 20 ms, and the third one with data gets lost on its first way.

use bytes::Bytes;
use farpace_tcp::config::{Config, Settings};
use farpace_tcp::{Connection, ConnectionEvent, ConnectionState, OutgoingSegment, Ports, Segment};
use farpace_units::{Instant, Seq, Span};
use std::collections::BTreeMap;

const DELAY: Span = Span::from_millis(20);

/// One end, and what its application has done.
struct End {
    name: &'static str,
    connection: Connection,
    received: usize,
}

/// The wire: segments in the order of their arrival, with the end they go to.
#[derive(Default)]
struct Wire {
    under_way: BTreeMap<(Instant, usize), (usize, Segment)>,
    sent: usize,
    with_data: usize,
}

impl Wire {
    fn take(&mut self, now: Instant, from: usize, name: &str, out: OutgoingSegment) {
        let OutgoingSegment { segment, cause, .. } = out;
        let h = &segment.header;
        let fresh = !segment.payload.is_empty() && !cause.is_retransmission();
        self.with_data += usize::from(fresh);
        let lost = fresh && self.with_data == 3;
        println!(
            "{now} {name} > {} seq {} len {} ack {} ({}){}",
            h.flags,
            h.seq,
            segment.payload.len(),
            h.ack,
            cause.name(),
            if lost { " lost" } else { "" }
        );
        self.sent += 1;
        if !lost {
            self.under_way.insert((now + DELAY, self.sent), (1 - from, segment));
        }
    }
}

/// After each call into a connection: hear its events, then send what it has to send.
fn service(now: Instant, ends: &mut [End; 2], which: usize, wire: &mut Wire) {
    let end = &mut ends[which];
    while let Some(event) = end.connection.poll_event() {
        match event {
            ConnectionEvent::Readable => end.received += end.connection.read(drop).as_len(),
            ConnectionEvent::PeerClosed => end.connection.close(),
            other => println!("{now} {}: {other:?}", end.name),
        }
    }
    let mut batch = Vec::new();
    while let farpace_tcp::Transmit::Sent(_) = end.connection.poll_transmit(now, &mut batch, 16) {}
    for out in batch {
        wire.take(now, which, end.name, out);
    }
}

/// A listener, as far as this example needs one: the first SYN makes the connection.
fn first_syn(
    config: &Config,
    now: Instant,
    client: &mut End,
    wire: &mut Wire,
) -> Option<(Instant, Connection)> {
    let mut batch = Vec::new();
    client.connection.poll_transmit(now, &mut batch, 1);
    batch.into_iter().for_each(|out| wire.take(now, 0, client.name, out));
    let ((at, _), (_, syn)) = wire.under_way.pop_first()?;
    Some((at, Connection::accept(at, config, Ports { local: 80, remote: 50_000 }, Seq::new(7_000), &syn)))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = Settings::default().resolve()?;
    let mut wire = Wire::default();
    let mut now = Instant::ZERO;
    let ports = Ports { local: 50_000, remote: 80 };
    // Outside of an example initial sequence numbers must be hard to guess (RFC 6528).
    let connection = Connection::connect(now, &config, ports, Seq::new(1_000));
    let mut client = End { name: "client", connection, received: 0 };
    let (at, connection) = first_syn(&config, now, &mut client, &mut wire).ok_or("no SYN")?;
    now = at;
    let mut ends = [client, End { name: "server", connection, received: 0 }];
    let mut data = Bytes::from(vec![0; 20_000]);
    ends[0].connection.write(&mut data);
    ends[0].connection.close();
    service(now, &mut ends, 1, &mut wire);
    // Whatever comes first: a segment arrives, or a deadline of one of the two.
    loop {
        let arrival = wire.under_way.keys().next().map(|(at, _)| (*at, None));
        let deadline = |i: usize| ends[i].connection.deadline().map(|(at, _)| (at, Some(i)));
        let next = [arrival, deadline(0), deadline(1)].into_iter().flatten().min_by_key(|(at, _)| *at);
        let Some((at, whose)) = next else { break };
        now = at;
        match whose {
            Some(i) => {
                ends[i].connection.on_deadline(now);
                service(now, &mut ends, i, &mut wire);
            }
            None => {
                let Some((_, (to, segment))) = wire.under_way.pop_first() else { break };
                ends[to].connection.on_segment(now, segment);
                service(now, &mut ends, to, &mut wire);
            }
        }
    }
    println!("{} bytes arrived in {} segments", ends[1].received, wire.sent);
    let closed = ends.iter().all(|e| e.connection.state() == ConnectionState::Closed);
    if ends[1].received != 20_000 || !closed {
        return Err("the transfer is not complete".into());
    }
    Ok(())
}
