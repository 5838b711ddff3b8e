use super::*;
use farpace_wire::{AddressPair, Below, MacAddr, Quoted, UdpHeader, Unreachable};
use proptest::prelude::*;

fn now() -> Instant {
    Instant::from_nanos(7)
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// Alone at an address and a port; `::` is IPv6 only.
fn at(text: &str) -> Bind {
    let address = address(text);
    Bind::alone(address.ip(), address.port())
}

fn packet(from: &str, to: &str, len: usize) -> Packet {
    let (from, to) = (address(from), address(to));
    let addresses = AddressPair::new(from.ip(), to.ip()).unwrap();
    let below = Below { tos: 1, ..Below::new(MacAddr([2; 6]), MacAddr([4; 6]), addresses, 9) };
    let header = UdpHeader { src_port: from.port(), dst_port: to.port() };
    below.udp(1, header, vec![5; len].into()).unwrap()
}

/// Breaks: datagrams reach nobody, or somebody else.
#[test]
fn a_datagram_finds_its_socket() {
    let mut udp = UdpSockets::default();
    let one = udp.bind(at("10.0.0.2:53")).unwrap();
    let all = udp.bind(at("0.0.0.0:54")).unwrap();
    let all6 = udp.bind(at("[::]:54")).unwrap();
    assert_eq!(udp.on_packet(now(), &packet("10.0.0.1:9", "10.0.0.2:53", 3)), Delivery::Queued(one));
    assert_eq!(udp.on_packet(now(), &packet("10.0.0.1:9", "10.0.0.3:53", 3)), Delivery::NoSocket);
    assert_eq!(udp.on_packet(now(), &packet("10.0.0.1:9", "10.0.0.3:54", 4)), Delivery::Queued(all));
    assert_eq!(udp.on_packet(now(), &packet("[fd00::1]:9", "[fd00::2]:54", 5)), Delivery::Queued(all6));
    assert_eq!(udp.on_packet(now(), &packet("10.0.0.1:9", "10.0.0.2:55", 3)), Delivery::NoSocket);
    assert_eq!((udp.no_socket(), udp.received(one)), (2, 1));
    let ready: Vec<_> = std::iter::from_fn(|| udp.poll_ready()).collect();
    assert_eq!(ready, [one, all, all6]);
    let expected = UdpDatagram {
        at: now(),
        from: address("10.0.0.1:9"),
        to: address("10.0.0.2:53"),
        ecn: Ecn::Ect1,
        ip: IpFields { dscp: 0, hops: Some(9), whole: false },
        payload: vec![5; 3].into(),
    };
    assert_eq!((udp.receive(one), udp.receive(one)), (Some(expected), None));
    let arp =
        farpace_wire::Arp::request(MacAddr([2; 6]), [1; 4].into(), [2; 4].into()).packet(MacAddr([4; 6]));
    assert_eq!(udp.on_packet(now(), &arp), Delivery::Malformed);
    udp.close(one);
    assert_eq!(udp.on_packet(now(), &packet("10.0.0.1:9", "10.0.0.2:53", 3)), Delivery::NoSocket);
    assert_eq!((udp.receive(one), udp.len()), (None, 2));
}

/// Breaks: two programs get one port, or a port is lost when its socket is closed.
#[test]
fn a_port_belongs_to_one() {
    let mut udp = UdpSockets::default();
    let taken = Err(BindError::Taken(53));
    let first = udp.bind(at("10.0.0.2:53")).unwrap();
    assert_eq!(udp.bind(at("10.0.0.2:53")), taken);
    assert_eq!(udp.bind(at("0.0.0.0:53")), taken);
    assert!(udp.bind(at("10.0.0.3:53")).is_ok(), "another address");
    assert!(udp.bind(at("[::]:53")).is_ok(), "another family");
    assert_eq!(udp.bind(at("[fd00::1]:53")), taken);
    assert_eq!(udp.bind(at("10.0.0.2:0")), Err(BindError::Zero));
    udp.close(first);
    let again = udp.bind(at("10.0.0.2:53")).unwrap();
    assert_ne!(again, first);
    assert_eq!(udp.local(first), None);
}

/// Breaks: a program that asks for any port gets one that is taken, or always the same; or the search has no
/// end.
#[test]
fn any_port() {
    let mut udp = UdpSockets::default();
    let any: IpAddr = [0; 4].into();
    let port = |udp: &mut UdpSockets, rng| {
        let id = udp.bind_any(Bind::alone(any, 0), rng)?;
        Ok(udp.local(id).map_or(0, |local| local.port()))
    };
    assert_eq!(port(&mut udp, 5), Ok(FIRST_EPHEMERAL + 5));
    assert_eq!(port(&mut udp, 5), Ok(FIRST_EPHEMERAL + 6));
    let count = u64::from(u16::MAX - FIRST_EPHEMERAL) + 1;
    assert_eq!(port(&mut udp, 3 * count - 1), Ok(u16::MAX));
    assert_eq!(port(&mut udp, 3 * count - 1), Ok(FIRST_EPHEMERAL));
    for n in 4..count {
        assert!(port(&mut udp, n).is_ok());
    }
    assert_eq!(port(&mut udp, 5), Err(BindError::NoneLeft));
}

/// Breaks: a connected socket hears strangers, or does not learn that nobody is there.
#[test]
fn a_connected_socket_hears_one_peer() {
    let mut udp = UdpSockets::default();
    let id = udp.bind(at("0.0.0.0:5000")).unwrap();
    assert_eq!(udp.send(now(), id, Bytes::new()), Err(SendError::NoDestination));
    udp.connect(id, address("10.0.0.1:53")).unwrap();
    assert_eq!(udp.on_packet(now(), &packet("10.0.0.1:54", "10.0.0.2:5000", 1)), Delivery::NoSocket);
    assert_eq!(udp.on_packet(now(), &packet("10.0.0.1:53", "10.0.0.2:5000", 1)), Delivery::Queued(id));
    assert_eq!(udp.poll_ready(), Some(id));
    udp.send(now(), id, "query".into()).unwrap();
    let sent = udp.poll_transmit().unwrap();
    assert_eq!((sent.from, sent.to), (address("0.0.0.0:5000"), address("10.0.0.1:53")));
    let error = |to: u16| PathMessage {
        soft_error: SoftError::Unreachable { why: Unreachable::Port, hard: true },
        quoted: Quoted {
            addresses: AddressPair::V4([10, 0, 0, 2].into(), [10, 0, 0, 1].into()),
            protocol: PROTOCOL_UDP,
            ports: Some((5000, to)),
            seq: None,
            total_len: 33,
        },
    };
    udp.on_path_message(&error(99));
    assert_eq!((udp.poll_ready(), udp.take_soft_error(id)), (None, None), "not ours");
    udp.on_path_message(&error(53));
    assert_eq!(udp.poll_ready(), Some(id));
    assert_eq!((udp.take_soft_error(id), udp.take_soft_error(id)), (Some(error(53).soft_error), None));
}

/// Breaks: servers that connect a socket to each client and open another at the same port, as iperf3's does:
/// the next client is not heard, or by the wrong socket; or a port that is in use is given to a client.
#[test]
fn a_port_is_shared_by_those_who_bear_it() {
    let mut udp = UdpSockets::default();
    let server = Bind { reuse_address: true, ..at("0.0.0.0:5201") };
    let first = udp.bind(server).unwrap();
    udp.connect(first, address("10.0.0.1:9")).unwrap();
    assert_eq!(udp.bind(at("0.0.0.0:5201")), Err(BindError::Taken(5201)), "it bears nobody");
    let second = udp.bind(server).unwrap();
    let from = |udp: &mut UdpSockets, who: &str| udp.on_packet(now(), &packet(who, "10.0.0.2:5201", 1));
    assert_eq!(from(&mut udp, "10.0.0.1:9"), Delivery::Queued(first));
    assert_eq!(from(&mut udp, "10.0.0.1:10"), Delivery::Queued(second));
    udp.connect(second, address("10.0.0.1:10")).unwrap();
    let third = udp.bind(server).unwrap();
    // Back to everybody: the last one hears.
    udp.disconnect(first);
    assert_eq!(from(&mut udp, "10.0.0.1:9"), Delivery::Queued(first));
    udp.close(first);
    assert_eq!(from(&mut udp, "10.0.0.1:9"), Delivery::Queued(third));
    udp.close(third);
    assert_eq!(from(&mut udp, "10.0.0.1:9"), Delivery::NoSocket);
    udp.disconnect(second);
    assert_eq!(from(&mut udp, "10.0.0.1:9"), Delivery::Queued(second));
    udp.close(second);
    assert!(udp.is_empty() && udp.by_local.is_empty() && udp.by_pair.is_empty() && udp.by_port.is_empty());
    // Nobody is given the port of another without having asked for it.
    let client = udp.bind_any(at("0.0.0.0:0"), 7).unwrap();
    let port = udp.local(client).unwrap().port();
    udp.connect(client, address("10.0.0.1:53")).unwrap();
    let other = udp.bind_any(at("0.0.0.0:0"), 7).unwrap();
    assert_ne!(udp.local(other).unwrap().port(), port);
}

/// Breaks: servers at `::` do not hear IPv4, or hear what another is there for; and workers that share a
/// port.
#[test]
fn one_socket_hears_both_families() {
    let mut udp = UdpSockets::default();
    let both = Bind { both_families: true, ..at("[::]:53") };
    let all = udp.bind(both).unwrap();
    let v4 = |udp: &mut UdpSockets, who: &str| udp.on_packet(now(), &packet(who, "10.0.0.2:53", 1));
    assert_eq!(v4(&mut udp, "10.0.0.1:9"), Delivery::Queued(all));
    assert_eq!(udp.on_packet(now(), &packet("[fd00::1]:9", "[fd00::2]:53", 1)), Delivery::Queued(all));
    assert_eq!(udp.bind(at("0.0.0.0:53")), Err(BindError::Taken(53)));
    for to in ["10.0.0.1:9", "[fd00::1]:9"] {
        assert_eq!(udp.send_to(now(), all, address(to), Bytes::new()), Ok(()));
    }
    udp.connect(all, address("10.0.0.1:9")).unwrap();
    assert_eq!(v4(&mut udp, "10.0.0.1:9"), Delivery::Queued(all));
    assert_eq!(v4(&mut udp, "10.0.0.1:10"), Delivery::NoSocket);
    udp.close(all);
    let workers = [(); 3].map(|()| udp.bind(Bind { reuse_port: true, ..both }).unwrap());
    let mut heard = BTreeSet::new();
    for port in 1000..1100 {
        let who = format!("10.0.0.1:{port}");
        let first = v4(&mut udp, &who);
        assert_eq!(v4(&mut udp, &who), first, "{who} goes to one of them");
        if let Delivery::Queued(id) = first {
            heard.insert(id);
        }
    }
    assert_eq!(heard, workers.into());
}

/// Breaks: a program that does not read, or one that only sends, fills the memory.
#[test]
fn queues_are_limited() {
    let mut udp = UdpSockets::default();
    let id = udp.bind(at("0.0.0.0:5000")).unwrap();
    udp.set_receive_buffer(id, ByteCount::new(10 * (256 + 100) - 1));
    let came = packet("10.0.0.1:53", "10.0.0.2:5000", 100);
    for _ in 0..9 {
        assert_eq!(udp.on_packet(now(), &came), Delivery::Queued(id));
    }
    assert_eq!(udp.on_packet(now(), &came), Delivery::Full(id));
    assert_eq!((udp.received(id), udp.dropped(id)), (9, 1));
    assert!(udp.receive(id).is_some());
    assert_eq!(udp.on_packet(now(), &came), Delivery::Queued(id));
    let to = address("10.0.0.1:53");
    for _ in 0..MAX_OUTGOING {
        assert_eq!(udp.send_to(now(), id, to, Bytes::new()), Ok(()));
    }
    assert_eq!(udp.send_to(now(), id, to, Bytes::new()), Err(SendError::Full));
    assert_eq!(std::iter::from_fn(|| udp.poll_transmit()).count(), MAX_OUTGOING);
    let big = Bytes::from(vec![0; MAX_PAYLOAD + 1]);
    assert_eq!(udp.send_to(now(), id, to, big.clone()), Err(SendError::TooLong(MAX_PAYLOAD + 1)));
    assert_eq!(udp.send_to(now(), id, to, big.slice(1..)), Ok(()));
    for bad in ["[fd00::1]:53", "10.0.0.1:0", "0.0.0.0:53"] {
        let bad = address(bad);
        assert_eq!(udp.send_to(now(), id, bad, Bytes::new()), Err(SendError::Destination(bad)));
    }
    udp.close(id);
    assert_eq!(udp.send_to(now(), id, to, Bytes::new()), Err(SendError::Closed));
}

proptest! {
    /// Breaks: the account of what waits in a socket: it would refuse datagrams for ever, or take any number.
    #[test]
    fn what_waits_is_counted_right(steps in prop::collection::vec(prop::option::of(0usize..2000), 0..200)) {
        let mut udp = UdpSockets::default();
        let id = udp.bind(at("0.0.0.0:5000")).unwrap();
        let buffer = 20_000;
        udp.set_receive_buffer(id, ByteCount::new(buffer));
        let mut waits: VecDeque<usize> = VecDeque::new();
        for step in steps {
            match step {
                None => prop_assert_eq!(udp.receive(id).map(|d| d.payload.len()), waits.pop_front()),
                Some(len) => {
                    let used: usize = waits.iter().map(|len| len + 256).sum();
                    let fits = used + len + 256 <= buffer as usize;
                    let expected = if fits { Delivery::Queued(id) } else { Delivery::Full(id) };
                    prop_assert_eq!(udp.on_packet(now(), &packet("10.0.0.1:53", "10.0.0.2:5000", len)), expected);
                    waits.extend(fits.then_some(len));
                }
            }
        }
    }
}
