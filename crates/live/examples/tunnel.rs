//! How fast one connection is through a tunnel over loopback, both ends in this process: a thread each.
//!
//! ```text
//! cargo run --release -p farpace-live --example tunnel -- [SECONDS] [MTU]
//! ```

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "an example")]

use farpace_live::Wait;
use farpace_live::device::udp_tunnel::{PeerConfig, PresharedKey, SecretKey, UdpBind};
use farpace_live::device::{TunnelConfig, UdpTunnel};
use farpace_live::socket::{SocketOptions, Stack};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let seconds: u64 = words.next().map_or(Ok(3), |word| word.parse())?;
    let mtu: Option<u16> = words.next().map(|word| word.parse()).transpose()?;
    let secret = PresharedKey::from_bytes([1; 32]);
    let localhost = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let bind = UdpBind { address: Some(localhost), ..UdpBind::default() };
    let key = SecretKey::generate()?;
    let far = TunnelConfig {
        bind: bind.clone(),
        admit: Some(secret.clone()),
        mtu,
        ..TunnelConfig::new(key.clone())
    };
    let far = UdpTunnel::open(&far)?;
    let (at, inside) = (far.local_addr()?, far.addresses()[0]);
    let far = Stack::on_device(Box::new(far), &[inside], Wait::Sleep)?;
    let options = SocketOptions::profile("farpace")?;
    let listener = far.listen((inside, 1), &options)?;
    let reader = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut room = vec![0; 1 << 20];
        let mut all = 0_u64;
        while let Ok(n @ 1..) = stream.read(&mut room) {
            all += n as u64;
        }
        all
    });
    let peer = PeerConfig::at(key.public(), Some(secret), vec![at]);
    let near = TunnelConfig { bind, peers: vec![peer], mtu, ..TunnelConfig::new(SecretKey::generate()?) };
    let mut near = UdpTunnel::open(&near)?;
    let dialled = near.dial(Duration::from_secs(5), &|| false)?;
    let own = near.addresses()[0];
    let near = Stack::on_device(Box::new(near), &[own], Wait::Sleep)?;
    let mut stream = near.connect((inside, 1), &options)?;
    let (begun, data) = (Instant::now(), vec![7; 1 << 20]);
    while begun.elapsed() < Duration::from_secs(seconds) {
        stream.write_all(&data)?;
    }
    stream.shutdown(std::net::Shutdown::Write)?;
    let all = reader.join().unwrap();
    let rate = all as f64 * 8.0 / begun.elapsed().as_secs_f64() / 1e9;
    println!("{rate:.2} Gbit/s, packets of {} B inside, {all} B", dialled.mtu);
    Ok(())
}
