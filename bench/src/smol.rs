//! smoltcp's loop-back: a yardstick that nobody here wrote, and whose version Cargo.lock fixes.

use bytes::Bytes;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Loopback, Medium};
use smoltcp::socket::tcp;
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use std::hint::black_box;

/// Payload of a segment of [`Smol`], in bytes.
pub const SMOL_SEGMENT: usize = 1460;

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

/// Two sockets of smoltcp on one loop-back interface: one sends all it can, the other reads. Unlike
/// [`Pair`](crate::Pair), they make and parse IP packets.
#[allow(missing_debug_implementations, reason = "smoltcp's parts have none")]
pub struct Smol {
    device: Ethernet,
    interface: Interface,
    sockets: SocketSet<'static>,
    server: SocketHandle,
    client: SocketHandle,
    clock: i64,
    chunk: Bytes,
}

impl Smol {
    /// Connected as soon as it is turned.
    ///
    /// # Panics
    /// smoltcp refuses what it takes today.
    #[allow(clippy::expect_used, reason = "a benchmark without its yardstick must stop")]
    #[allow(clippy::new_without_default, reason = "it may panic")]
    pub fn new() -> Self {
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

    /// One turn of the interface, 20 us after the last; how many bytes were read.
    ///
    /// # Panics
    /// The connection is no longer open.
    #[allow(clippy::expect_used, reason = "a benchmark without its yardstick must stop")]
    pub fn turn(&mut self) -> usize {
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
