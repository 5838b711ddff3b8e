//! TCP alone: full-size segments sent, received, read and acknowledged per second, without a lab around it; beside it
//! smoltcp's loop-back, which makes and parses IP packets as well.

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use farpace_bench::Pair;
use farpace_tcp::config::{AckControl, AskFor, Profile};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Loopback, Medium};
use smoltcp::socket::tcp;
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use std::hint::black_box;
use std::time::Duration;

/// Segments of one measured step.
const SEGMENTS: u64 = 10_000;

/// A loop-back with the MTU of Ethernet: its own is 65,535 bytes.
struct Ethernet(Loopback);

impl Device for Ethernet {
    type RxToken<'a> = <Loopback as Device>::RxToken<'a>;
    type TxToken<'a> = <Loopback as Device>::TxToken<'a>;

    fn receive(&mut self, now: Instant) -> Option<(Self::RxToken<'_>, Self::TxToken<'_>)> {
        self.0.receive(now)
    }
    fn transmit(&mut self, now: Instant) -> Option<Self::TxToken<'_>> {
        self.0.transmit(now)
    }
    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = self.0.capabilities();
        capabilities.max_transmission_unit = 1500;
        capabilities
    }
}

/// Two sockets of smoltcp on one loop-back interface.
struct Smol {
    device: Ethernet,
    interface: Interface,
    sockets: SocketSet<'static>,
    server: SocketHandle,
    client: SocketHandle,
    clock: i64,
    chunk: Bytes,
}

impl Smol {
    fn new() -> Self {
        let mut device = Ethernet(Loopback::new(Medium::Ip));
        let mut interface = Interface::new(Config::new(HardwareAddress::Ip), &mut device, Instant::ZERO);
        interface.update_ip_addrs(|a| a.push(IpCidr::new(IpAddress::v4(127, 0, 0, 1), 8)).expect("room"));
        let buffer = || tcp::SocketBuffer::new(vec![0; 370_688]);
        let mut sockets = SocketSet::new(Vec::new());
        let mut server = tcp::Socket::new(buffer(), buffer());
        server.listen(80).expect("a port");
        let server = sockets.add(server);
        let client = sockets.add(tcp::Socket::new(buffer(), buffer()));
        let to = (IpAddress::v4(127, 0, 0, 1), 80);
        sockets.get_mut::<tcp::Socket<'_>>(client).connect(interface.context(), to, 50_000).expect("a route");
        let chunk = Bytes::from(vec![0x5a; 1 << 20]);
        Smol { device, interface, sockets, server, client, clock: 0, chunk }
    }

    /// One turn of the interface; how many bytes were read.
    fn turn(&mut self) -> usize {
        self.clock += 20;
        self.interface.poll(Instant::from_micros(self.clock), &mut self.device, &mut self.sockets);
        let client = self.sockets.get_mut::<tcp::Socket<'_>>(self.client);
        if client.can_send() {
            client.send_slice(&self.chunk).expect("it is open");
        }
        let mut read = 0;
        let server = self.sockets.get_mut::<tcp::Socket<'_>>(self.server);
        while server.can_recv() {
            read += server.recv(|data| (data.len(), black_box(data).len())).expect("it is open");
        }
        read
    }
}

fn pair(c: &mut Criterion) {
    let mut group = c.benchmark_group("back to back");
    group.sample_size(10).measurement_time(Duration::from_secs(5)).throughput(Throughput::Elements(SEGMENTS));
    let plain = [Profile::Modern, Profile::NewReno, Profile::AistFix];
    let plain = plain.map(|p| (p.name(), Pair::new(p, 256)));
    let asking = [("modern, asks auto", AskFor::Auto), ("modern, asks everything", AskFor::Everything)];
    let asking =
        asking.map(|(name, when)| (name, Pair::asking(Profile::Modern, 256, AckControl::Safe, when)));
    for (name, mut pair) in plain.into_iter().chain(asking) {
        group.bench_function(name, |b| {
            b.iter(|| {
                let until = pair.delivered + SEGMENTS;
                while pair.delivered < until {
                    pair.turn();
                }
            });
        });
    }
    let mut smol = Smol::new();
    group.bench_function("smoltcp (loop-back, 1460 bytes a segment)", |b| {
        b.iter(|| {
            let mut left = SEGMENTS as usize * 1460;
            while left > 0 {
                left = left.saturating_sub(smol.turn());
            }
        });
    });
    group.finish();
}

criterion_group!(benches, pair);
criterion_main!(benches);
