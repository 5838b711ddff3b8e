//! A driver whose process stands still for longer than a retransmission timeout, while an ACK waits for it.

use crate::memory_link::{LinkEnd, Queue, STALL, Stalls};
use bytes::Bytes;
use farpace_host::{Application, ConnectionId, Host, ListenSettings, Secret};
use farpace_live::{Driver, Wait};
use farpace_path::world::ElementId;
use farpace_tcp::config::Settings;
use farpace_tcp::{Connection, ConnectionEvent, ConnectionState};
use farpace_units::{ByteCount, Instant, RandomStream, Span};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::Ordering;

const A: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 1, 0, 1));
const B: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 1, 0, 2));
const PORT: u16 = 80;
const ROUNDS: usize = 10_000;
const PAUSE: Span = Span::from_millis(1_700);

/// Reads what comes.
struct Reader;

impl Application for Reader {
    fn on_event(&mut self, _: Instant, connection: &mut Connection, _: ConnectionEvent) {
        connection.read(|_| ());
    }
}

/// A driver of a host on one end, and its host.
fn end(host: Host, from: &Queue, to: &Queue, stalls: &Stalls) -> (Driver, ElementId) {
    let driver = Driver::of_host(host, Box::new(LinkEnd::new(from, to, stalls)), Wait::Spin).unwrap();
    let id = driver.world().ids().find(|id| driver.world().element::<Host>(*id).is_some()).unwrap();
    (driver, id)
}

fn connection(driver: &Driver, host: ElementId, id: ConnectionId) -> &Connection {
    driver.world().element::<Host>(host).unwrap().connection(id).unwrap()
}

/// Breaks: a process that was suspended sends again what has arrived, and takes the window back to one
/// segment, although the ACK was there all the time; or a suspension between two steps of a round is not
/// counted. A slow machine lengthens the stall, and changes nothing.
#[test]
fn an_ack_that_waits_stops_the_timer() {
    for in_mid_round in [false, true] {
        check_stall(in_mid_round);
    }
}

fn check_stall(in_mid_round: bool) {
    let stalls = Stalls::default();
    let (there, back) = (Queue::default(), Queue::default());
    let host = |address, seed| Host::new(address, Secret::from_stream(&mut RandomStream::new(seed, "test")));
    let mut listener = host(B, 2);
    let settings = ListenSettings::new(Settings::default().resolve().unwrap());
    listener.listen(PORT, settings, || Box::new(Reader)).unwrap();
    let mut client = host(A, 1);
    let config = Settings::default().resolve().unwrap();
    let id = client.connect(Instant::ZERO, B, PORT, config, None, Box::new(Reader)).unwrap();
    let (mut near, host) = end(client, &back, &there, &stalls);
    let (mut far, _) = end(listener, &there, &back, &Stalls::default());
    let is_open = |near: &Driver| connection(near, host, id).state() == ConnectionState::Established;
    for _ in 0..ROUNDS {
        near.run_round().unwrap();
        far.run_round().unwrap();
        if is_open(&near) {
            break;
        }
    }
    assert!(is_open(&near));
    let write = |connection: &mut Connection| connection.write(&mut Bytes::from(vec![7; 20_000]));
    near.call(host, |host: &mut Host, cx| host.with_connection(id, cx, write)).unwrap().unwrap();
    near.run_round().unwrap();
    assert!(!there.lock().unwrap().is_empty() && back.lock().unwrap().is_empty(), "a flight is under way");
    far.run_round().unwrap();
    assert!(!back.lock().unwrap().is_empty(), "its ACK is");
    match in_mid_round {
        true => stalls.store(true, Ordering::Relaxed),
        false => std::thread::sleep(STALL),
    }
    near.run_round().unwrap();
    near.run_round().unwrap();
    assert!(near.stats().longest_pause >= PAUSE, "{:?}", near.stats());
    let inspection = connection(&near, host, id).inspect();
    let counters = connection(&near, host, id).counters();
    assert!(inspection.acknowledged > ByteCount::ZERO);
    assert_eq!((counters.timeouts, counters.bytes_sent_again), (0, ByteCount::ZERO));
}
