//! The programs of datagram flows: one that sends at a rate, one that counts.

use bytes::Bytes;
use farpace_host::{DatagramProgram, UdpSocket};
use farpace_units::{ByteCount, Instant, RandomStream, Rate, Serialiser, Span};
use std::net::SocketAddr;

/// Sends numbered datagrams at a rate, at equal or at random distances.
pub(crate) struct ConstantRate {
    to: SocketAddr,
    payload: usize,
    /// Computes the time of the next datagram, without drift.
    clock: Serialiser,
    /// The distances are exponential with this mean, in nanoseconds.
    random: Option<(RandomStream, f64)>,
    next: Option<Instant>,
    end: Instant,
    pub sent: u64,
}

impl ConstantRate {
    pub fn new(to: SocketAddr, payload: ByteCount, rate: Rate, start: Instant, end: Instant) -> Self {
        let next = Some(start).filter(|start| *start < end);
        let (payload, clock) = (payload.as_len(), Serialiser::new(rate));
        ConstantRate { to, payload, clock, random: None, next, end, sent: 0 }
    }

    /// The same rate as a Poisson process.
    pub fn poisson(mut self, rate: Rate, random: RandomStream) -> Self {
        let mean = self.payload as f64 * 8e9 / rate.bits_per_sec().max(1) as f64;
        self.random = Some((random, mean));
        self
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
            let next = match &mut self.random {
                Some((random, mean)) => {
                    let nanos = -libm::log(1.0 - random.unit()) * *mean;
                    at + Span::from_nanos((nanos.round() as u64).max(1))
                }
                None => self.clock.send(at, ByteCount::of_len(self.payload)),
            };
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
