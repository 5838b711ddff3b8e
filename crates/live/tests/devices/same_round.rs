//! What a packet calls for leaves the driver in the round that has received it.

use crate::memory_link::{LinkEnd, Queue, Stalls};
use bytes::Bytes;
use farpace_live::{Driver, Wait};
use farpace_path::world::World;
use farpace_path::{BoundaryPort, Framing, Link, LinkConfig, Port, QueueLimit};
use farpace_units::{ByteCount, Span};
use farpace_wire::{EtherType, MacAddr, Packet};

/// Elements that take packets of one burst together answer a nanosecond later, as the gateway does.
const TOGETHER: Span = Span::from_nanos(1);

/// Breaks: the answer to a packet waits until the driver has read all devices once more: at a gateway,
/// three system calls more before each answer.
#[test]
fn an_answer_leaves_in_the_round_of_its_packet() {
    let queues: [Queue; 4] = Default::default();
    let mut world = World::new(0);
    let config = LinkConfig {
        rate: None,
        delay: TOGETHER,
        queue: QueueLimit::Bytes(ByteCount::new(1 << 20)),
        framing: Framing::ETHERNET,
    };
    let link = world.add("link", Box::new(Link::symmetric(config).unwrap())).unwrap();
    let ports = [("a", Port(0)), ("b", Port(1))].map(|(name, port)| {
        let boundary = world.add(name, Box::new(BoundaryPort::default())).unwrap();
        world.connect((link, port), (boundary, Port(0))).unwrap();
        boundary
    });
    let mut driver = Driver::new(world, Wait::Spin).unwrap();
    for (side, port) in ports.into_iter().enumerate() {
        let end = LinkEnd::new(&queues[2 * side], &queues[2 * side + 1], &Stalls::default());
        driver.attach(port, Box::new(end));
    }
    let (a, b) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
    let packet = Packet::from_link(a, b, EtherType(0x88b5), Bytes::from_static(&[1; 60]));
    queues[0].lock().unwrap().push_back(packet);
    driver.run_round().unwrap();
    assert_eq!(queues[3].lock().unwrap().len(), 1);
}
