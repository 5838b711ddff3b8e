//! The programs of datagram flows: one that sends at a constant rate, one that counts.

use bytes::Bytes;
use farpace_host::{DatagramProgram, UdpSocket};
use farpace_units::{ByteCount, Instant, Rate, Serialiser};
use std::net::SocketAddr;

/// Sends numbered datagrams at a constant rate.
pub(crate) struct ConstantRate {
    to: SocketAddr,
    payload: usize,
    /// Computes the time of the next datagram, without drift.
    clock: Serialiser,
    next: Option<Instant>,
    end: Instant,
    pub sent: u64,
}

impl ConstantRate {
    pub fn new(to: SocketAddr, payload: ByteCount, rate: Rate, start: Instant, end: Instant) -> Self {
        let next = Some(start).filter(|start| *start < end);
        ConstantRate { to, payload: payload.as_len(), clock: Serialiser::new(rate), next, end, sent: 0 }
    }
}

impl DatagramProgram for ConstantRate {
    fn run(&mut self, now: Instant, socket: &mut UdpSocket<'_>) {
        while socket.receive().is_some() {}
        while let Some(at) = self.next.filter(|at| *at <= now) {
            let mut payload = vec![0; self.payload];
            if let Some(number) = payload.first_chunk_mut() {
                *number = self.sent.to_be_bytes();
            }
            // A busy host refuses it: it is lost like any other.
            _ = socket.send_to(self.to, Bytes::from(payload));
            self.sent += 1;
            let next = self.clock.send(at, ByteCount::of_len(self.payload));
            self.next = Some(next).filter(|next| *next < self.end);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.next
    }
}

/// Counts numbered datagrams.
#[derive(Default)]
pub(crate) struct Counter {
    pub received: u64,
    pub bytes: ByteCount,
    /// Arrived after one that was sent later, or for the second time.
    pub late: u64,
    next: u64,
}

impl DatagramProgram for Counter {
    fn run(&mut self, _: Instant, socket: &mut UdpSocket<'_>) {
        while let Some(datagram) = socket.receive() {
            self.received += 1;
            self.bytes += ByteCount::of_len(datagram.payload.len());
            let Some(number) = datagram.payload.first_chunk().map(|n| u64::from_be_bytes(*n)) else {
                continue;
            };
            if number < self.next {
                self.late += 1;
            } else {
                self.next = number.saturating_add(1);
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}
