//! smoltcp on a TUN device.

use crate::ends;
use crate::kernel::{own_namespace, tool};
use crate::meter::{Measure, Way};
use anyhow::Context;
use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::phy::{Medium, TunTapInterface, wait};
use smoltcp::socket::tcp;
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const BUFFER: usize = 4 << 20;

pub fn plain(way: Way, seconds: f64) -> anyhow::Result<Measure> {
    run(way, seconds, 1500)
}

pub fn large(way: Way, seconds: f64) -> anyhow::Result<Measure> {
    run(way, seconds, 65_535)
}

fn run(way: Way, seconds: f64, mtu: usize) -> anyhow::Result<Measure> {
    own_namespace()?;
    tool("ip tuntap add dev smol0 mode tun")?;
    tool(&format!("ip link set dev smol0 mtu {mtu} txqueuelen 10000"))?;
    tool("ip address add 10.79.0.1/24 dev smol0")?;
    tool("ip link set dev smol0 up")?;
    let stop = Arc::new(AtomicBool::new(false));
    let until = stop.clone();
    let thread = std::thread::spawn(move || serve(way, &until));
    // It listens when it has begun; the kernel tries again.
    let stream = ends::connect(Ipv4Addr::new(10, 79, 0, 2)).context("no connection to smoltcp")?;
    let measure = match way {
        Way::Out => ends::read(stream, seconds),
        Way::In => ends::write(stream, seconds),
    };
    stop.store(true, Ordering::Relaxed);
    thread.join().map_err(|_| anyhow::anyhow!("smoltcp has panicked"))??;
    measure
}

fn serve(way: Way, stop: &AtomicBool) -> anyhow::Result<()> {
    let mut device = TunTapInterface::new("smol0", Medium::Ip)?;
    let mut interface = Interface::new(Config::new(HardwareAddress::Ip), &mut device, Instant::now());
    interface.update_ip_addrs(|all| {
        let _ = all.push(IpCidr::new(IpAddress::v4(10, 79, 0, 2), 24));
    });
    let buffer = || tcp::SocketBuffer::new(vec![0; BUFFER]);
    let mut socket = tcp::Socket::new(buffer(), buffer());
    socket.set_nagle_enabled(false);
    socket.listen(5001).map_err(|error| anyhow::anyhow!("{error}"))?;
    let mut sockets = SocketSet::new(vec![]);
    let id = sockets.add(socket);
    let fd = device.as_raw_fd();
    while !stop.load(Ordering::Relaxed) {
        interface.poll(Instant::now(), &mut device, &mut sockets);
        let socket = sockets.get_mut::<tcp::Socket<'_>>(id);
        let mut moved = 0;
        if way == Way::Out && socket.can_send() {
            moved += socket.send(|room| (room.len(), room.len())).unwrap_or(0);
        }
        if socket.can_recv() {
            moved += socket.recv(|data| (data.len(), data.len())).unwrap_or(0);
        }
        if moved == 0 {
            let delay = interface.poll_delay(Instant::now(), &sockets);
            wait(fd, delay.map(|d| d.min(smoltcp::time::Duration::from_millis(10))))?;
        }
    }
    Ok(())
}
