//! Whoever sends to the port what he likes: strangers, eavesdroppers who repeat what they heard, and men in
//! the middle.

use crate::pair::{
    LOCALHOST, Server, bind, client, client_by, client_config, options, preshared, server, until,
};
use crate::relay::Relay;
use farpace_live::device::udp_tunnel::{
    DialError, MAX_HANDSHAKES, MAX_UNPROVEN, PeerConfig, PresharedKey, RejectedDatagrams, SecretKey,
};
use farpace_live::device::{Device, TunnelConfig, UdpTunnel};
use farpace_live::socket::Stack;
use std::io::{Read, Write};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

fn stranger() -> UdpSocket {
    UdpSocket::bind((LOCALHOST, 0)).unwrap()
}

/// A byte goes there and back.
fn works(stack: &Stack, server: &Server) {
    let listener = server.stack.listen((server.inside, 0), &options()).unwrap();
    let at = listener.local_addr();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut byte = [0; 4];
            stream.read_exact(&mut byte).unwrap();
            stream.write_all(&byte).unwrap();
        });
        let mut stream = stack.connect(at, &options()).unwrap();
        stream.write_all(b"ping").unwrap();
        let mut byte = [0; 4];
        stream.read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"ping");
    });
}

fn rejected(server: &Server) -> RejectedDatagrams {
    server.status.rejected()
}

/// Numbers that look random, the same each time.
fn noise(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

/// Breaks: a datagram of whatever bytes and length reaches the host, ends the device, or keeps peers out.
#[test]
fn random_datagrams_of_all_lengths_are_refused() {
    let server = server();
    let (stack, ..) = client(&server);
    let stranger = stranger();
    let mut seed = 26;
    let mut sent = 0_u64;
    for round in 0..4_000_usize {
        let len = match round % 4 {
            0 => round % 200,
            1 => [0, 1, 3, 4, 5, 31, 32, 33, 63, 64, 91, 92, 93, 147, 148, 149][round / 4 % 16],
            2 => noise(&mut seed) as usize % 1_500,
            _ => noise(&mut seed) as usize % 65_507,
        };
        let mut bytes: Vec<u8> = (0..len).map(|_| noise(&mut seed) as u8).collect();
        // Most of them say that they are a message.
        if round % 3 > 0 && len >= 4 {
            bytes[..4].copy_from_slice(&[(round % 6) as u8, 0, 0, 0]);
        }
        sent += u64::from(stranger.send_to(&bytes, server.at).is_ok());
        if round % 64 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    works(&stack, &server);
    assert!(sent > 3_900);
    until("most are counted", || {
        let all = rejected(&server);
        // What the system had no room for was lost before.
        all.malformed + all.unknown + all.forged > 2_000
    });
    assert_eq!(server.status.peers().len(), 1, "nobody was admitted");
}

/// Breaks: what somebody has heard and sends again reaches the host a second time, from the same or another
/// place.
#[test]
fn what_was_heard_is_worth_nothing() {
    let server = server();
    let relay = Relay::to(server.at);
    let (stack, ..) = client_by(&server, relay.at);
    works(&stack, &server);
    let heard = relay.seen.lock().unwrap().clone();
    until("it is seen", || server.status.peers().len() == 1);
    let endpoint = server.status.peers().first().and_then(|peer| peer.endpoint);
    let (before, stranger) = (rejected(&server), stranger());
    for datagram in &heard {
        stranger.send_to(datagram, server.at).unwrap();
    }
    until("all are refused", || {
        let (now, handshakes) = (rejected(&server), 1);
        now.replayed - before.replayed + now.forged - before.forged + handshakes >= heard.len() as u64
    });
    works(&stack, &server);
    let after = server.status.peers().first().and_then(|peer| peer.endpoint);
    assert_eq!(
        (after, server.status.peers().len()),
        (endpoint, 1),
        "the tunnel has not moved to the stranger"
    );
}

/// Breaks: a man in the middle changes what passes, and the host gets it; or he can end the connection.
#[test]
fn what_is_changed_on_the_way_is_refused() {
    let server = server();
    let relay = Relay::to(server.at);
    let (stack, ..) = client_by(&server, relay.at);
    let mut seed = 7;
    relay.rule(move |datagram| {
        let mut changed = datagram.to_vec();
        let at = noise(&mut seed) as usize % changed.len();
        let mut cut = datagram.to_vec();
        cut.truncate(at);
        let mut longer = datagram.to_vec();
        longer.push(0);
        changed[at] ^= 1 << (noise(&mut seed) % 8);
        vec![changed, cut, longer, datagram.to_vec()]
    });
    for _ in 0..20 {
        works(&stack, &server);
    }
    until("they are counted", || {
        let all = rejected(&server);
        all.forged > 50 && all.malformed > 10
    });
}

/// Breaks: whoever has another key, or knows the public key alone but not the secret, is let in, or is left
/// in doubt for long.
#[test]
fn a_wrong_key_opens_nothing() {
    let server = server();
    let right = client_config(&server, server.at);
    let other_server = SecretKey::generate().unwrap().public();
    let mut wrong_server = right.clone();
    wrong_server.peers[0].key = other_server;
    let mut wrong_secret = right.clone();
    wrong_secret.peers[0].preshared = Some(PresharedKey::from_bytes([1; 32]));
    let mut no_secret = right;
    no_secret.peers[0].preshared = None;
    for config in [wrong_server, wrong_secret, no_secret] {
        let mut device = UdpTunnel::open(&config).unwrap();
        let begun = Instant::now();
        let error = device.dial(Duration::from_millis(700), &|| false).unwrap_err();
        assert!(matches!(error, DialError::NoAnswer { sent: 2.., .. }), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(3));
    }
    assert!(server.status.peers().iter().all(|peer| !peer.proven));
    let (stack, ..) = client(&server);
    works(&stack, &server);
}

/// Breaks: who was let in uses the address inside of somebody else.
#[test]
fn nobody_speaks_with_the_address_of_another() {
    let server = server();
    let (stack, ..) = client(&server);
    let mut config = client_config(&server, server.at);
    config.addresses = vec![[100, 64, 7, 7].into()];
    let mut device = UdpTunnel::open(&config).unwrap();
    // Its probes are refused, too, so that its packets stay small.
    device.dial(Duration::from_secs(1), &|| false).unwrap();
    let liar = Stack::on_device(Box::new(device), &config.addresses, farpace_live::Wait::Sleep).unwrap();
    let mut quick = options();
    quick.connect_timeout = Some(Duration::from_millis(500));
    assert!(liar.connect((server.inside, 7), &quick).is_err());
    until("it is counted", || rejected(&server).foreign > 0);
    works(&stack, &server);
}

/// Breaks: a flood of handshakes by whoever knows the public key alone takes the processor, the memory, or
/// the places of peers.
#[test]
fn a_flood_of_handshakes_is_bounded() {
    let server = server();
    let (stack, ..) = client(&server);
    let stranger = stranger();
    let begun = Instant::now();
    let mut sent = 0_u64;
    // Each as another, as fast as they can be made.
    while begun.elapsed() < Duration::from_millis(1_500) {
        let config = TunnelConfig { bind: bind(), ..TunnelConfig::new(SecretKey::generate().unwrap()) };
        for message in initiations(&server, config.key) {
            sent += u64::from(stranger.send_to(&message, server.at).is_ok());
        }
    }
    assert!(sent > 2 * u64::from(MAX_HANDSHAKES), "too few to be a flood: {sent}");
    until("it is noticed", || rejected(&server).flooded > sent / 2);
    let unproven = server.status.peers().iter().filter(|peer| !peer.proven).count();
    assert!(unproven <= MAX_UNPROVEN, "{unproven}");
    works(&stack, &server);
    // Somebody who has all keys shows that his address is his own, and is let in.
    let (late, ..) = client(&server);
    works(&late, &server);
}

/// First messages of a handshake with `server` by somebody who knows no secret.
fn initiations(server: &Server, key: SecretKey) -> Vec<Vec<u8>> {
    use boringtun::noise::{Tunn, TunnResult};
    use boringtun::x25519::{PublicKey, StaticSecret};
    let (own, theirs) = (StaticSecret::from(key.to_bytes()), PublicKey::from(server.key.to_bytes()));
    let mut tunn = Tunn::new(own, theirs, None, None, 1, None);
    let mut room = [0; 256];
    let mut messages = Vec::new();
    for _ in 0..8 {
        if let TunnResult::WriteToNetwork(message) = tunn.format_handshake_initiation(&mut room, true) {
            messages.push(message.to_vec());
        }
    }
    messages
}

/// Breaks: those who prove nothing are remembered for ever.
#[test]
fn who_proves_nothing_is_forgotten() {
    let server = server();
    for message in initiations(&server, SecretKey::generate().unwrap()).iter().take(1) {
        stranger().send_to(message, server.at).unwrap();
    }
    until("it has a place", || server.status.peers().len() == 1);
    let begun = Instant::now();
    while !server.status.peers().is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(15));
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Breaks: two senders with the same key, or one that begins anew, keep each other out for ever.
#[test]
fn the_same_key_may_come_again() {
    let server = server();
    let config = client_config(&server, server.at);
    for _ in 0..2 {
        let mut device = UdpTunnel::open(&config).unwrap();
        device.dial(Duration::from_secs(10), &|| false).unwrap();
        let inside = device.addresses()[0];
        let stack = Stack::on_device(Box::new(device), &[inside], farpace_live::Wait::Sleep).unwrap();
        works(&stack, &server);
    }
    until("there is one of them", || server.status.peers().len() == 1);
}

/// Breaks: a tunnel to nowhere is waited for longer than was said, or without end.
#[test]
fn nobody_there_is_told_in_time() {
    let nobody = stranger();
    let peer = PeerConfig::at(
        SecretKey::generate().unwrap().public(),
        Some(preshared()),
        vec![nobody.local_addr().unwrap()],
    );
    let config =
        TunnelConfig { bind: bind(), peers: vec![peer], ..TunnelConfig::new(SecretKey::generate().unwrap()) };
    let mut device = UdpTunnel::open(&config).unwrap();
    let begun = Instant::now();
    let error = device.dial(Duration::from_millis(400), &|| false).unwrap_err();
    assert!(error.to_string().contains("no answer to a WireGuard handshake from 127.0.0.1"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(2));
    assert!(device.counters().sent == 0);
    assert!(matches!(device.dial(Duration::from_secs(9), &|| true), Err(DialError::Interrupted)));
}
