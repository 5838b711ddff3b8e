//! Several tunnels as one path.

use crate::pair::{bind, options, preshared, until};
use crate::relay::Relay;
use farpace_live::device::udp_tunnel::{PeerConfig, SecretKey, TunnelStatus};
use farpace_live::device::{TunnelConfig, UdpTunnel};
use farpace_live::socket::Stack;
use farpace_live::{Wait, path_framing, stack_over_paths};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const NEAR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(100, 70, 0, 1));
const FAR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(100, 70, 0, 2));

struct Ends {
    near: Stack,
    far: Stack,
    status: Vec<TunnelStatus>,
    /// The far end's socket, and the device that reads it.
    _front: Stack,
    relays: Vec<Relay>,
}

/// Two hosts with as many paths, one relay each, to one socket.
fn ends(paths: usize) -> Ends {
    let far_key = SecretKey::generate().unwrap();
    let front = TunnelConfig { bind: bind(), admit: Some(preshared()), ..TunnelConfig::new(far_key.clone()) };
    let front = UdpTunnel::open(&front).unwrap();
    let (port, at) = (front.port(), front.local_addr().unwrap());
    let inside = front.addresses()[0];
    let front = Stack::on_device(Box::new(front), &[inside], Wait::Sleep).unwrap();
    let near_keys: Vec<_> = (0..paths).map(|_| SecretKey::generate().unwrap()).collect();
    let far_devices = near_keys.iter().zip(0..).map(|(key, number)| {
        let peer = PeerConfig {
            allowed: vec![(NEAR, 32)],
            ..PeerConfig::at(key.public(), Some(preshared()), vec![])
        };
        let framing = Some(path_framing(far_key.public(), near_keys[0].public(), number));
        let addresses = vec![FAR];
        let config = TunnelConfig {
            addresses,
            peers: vec![peer],
            framing,
            mtu: Some(1_420),
            ..TunnelConfig::new(far_key.clone())
        };
        port.open(&config).unwrap()
    });
    let (far, _) = stack_over_paths(FAR, far_devices.collect()).unwrap();
    let relays: Vec<_> = (0..paths).map(|_| Relay::to(at)).collect();
    let near_devices = near_keys.iter().zip(&relays).zip(0..).map(|((key, relay), number)| {
        let mut device =
            UdpTunnel::open(&near_config(key, &near_keys[0], &far_key, relay.at, number)).unwrap();
        device.dial(Duration::from_secs(10), &|| false).unwrap();
        device
    });
    let (near, status) = stack_over_paths(NEAR, near_devices.collect()).unwrap();
    Ends { near, far, status, _front: front, relays }
}

fn near_config(
    key: &SecretKey,
    first: &SecretKey,
    far: &SecretKey,
    at: SocketAddr,
    number: u8,
) -> TunnelConfig {
    let peer =
        PeerConfig { allowed: vec![(FAR, 32)], ..PeerConfig::at(far.public(), Some(preshared()), vec![at]) };
    let framing = Some(path_framing(first.public(), far.public(), number));
    TunnelConfig {
        addresses: vec![NEAR],
        bind: bind(),
        peers: vec![peer],
        framing,
        mtu: Some(1_420),
        ..TunnelConfig::new(key.clone())
    }
}

/// What passes at `mbit` at most, and waits `delay_ms`, with a queue of 100 ms.
fn line(relay: &Relay, mbit: f64) -> Arc<AtomicBool> {
    let cut = Arc::new(AtomicBool::new(false));
    let is_cut = cut.clone();
    let mut budget = 0.0;
    let mut last = Instant::now();
    relay.rule(move |datagram| {
        let now = Instant::now();
        // A token bucket: what is above it is lost.
        budget =
            (budget + now.duration_since(last).as_secs_f64() * mbit * 1e6 / 8.0).min(mbit * 1e6 / 8.0 * 0.05);
        last = now;
        if is_cut.load(Ordering::Relaxed) || budget < datagram.len() as f64 {
            return vec![];
        }
        budget -= datagram.len() as f64;
        vec![datagram.to_vec()]
    });
    cut
}

/// Sends for `time` and returns how much came, and the longest time in which nothing came.
fn pump(ends: &Ends, time: Duration) -> (u64, Duration) {
    let listener = ends.far.listen((FAR, 0), &options()).unwrap();
    let at = listener.local_addr();
    let (bytes, gap) = (AtomicU64::new(0), Mutex::new(Duration::ZERO));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut room = vec![0; 64 << 10];
            let mut last = Instant::now();
            while let Ok(n @ 1..) = stream.read(&mut room) {
                bytes.fetch_add(n as u64, Ordering::Relaxed);
                let mut gap = gap.lock().unwrap();
                *gap = (*gap).max(last.elapsed());
                last = Instant::now();
            }
        });
        let mut stream = ends.near.connect(at, &options()).unwrap();
        let begun = Instant::now();
        let data = vec![7; 64 << 10];
        while begun.elapsed() < time {
            stream.write_all(&data).unwrap();
        }
        stream.abort();
    });
    (bytes.into_inner(), gap.into_inner().unwrap())
}

/// Breaks: with several paths nothing arrives, or one of them is never used.
#[test]
fn both_paths_carry() {
    let ends = ends(2);
    let (bytes, _) = pump(&ends, Duration::from_secs(2));
    assert!(bytes > 2_000_000, "{bytes}");
    until("both are used", || {
        ends.status.iter().all(|status| status.peers().first().is_some_and(|peer| peer.sent > 200_000))
    });
}

/// Breaks: a path that vanishes stops the connection, or it is not used again when it is back.
#[test]
fn a_path_that_vanishes_and_comes_back_hardly_stops_the_stream_in_real_time() {
    let ends = ends(2);
    let cuts: Vec<_> = ends.relays.iter().map(|relay| line(relay, 40.0)).collect();
    let sent = |path: usize| ends.status[path].peers().first().map_or(0, |peer| peer.sent);
    std::thread::scope(|scope| {
        let flow = scope.spawn(|| pump(&ends, Duration::from_secs(6)));
        std::thread::sleep(Duration::from_secs(2));
        cuts[0].store(true, Ordering::Relaxed);
        std::thread::sleep(Duration::from_secs(2));
        let before = sent(0);
        cuts[0].store(false, Ordering::Relaxed);
        let (bytes, gap) = flow.join().unwrap();
        assert!(bytes > 10_000_000, "{bytes}");
        assert!(gap < Duration::from_millis(400), "{gap:?}");
        assert!(sent(0) > before + 1_000_000, "it is not used again");
    });
}
