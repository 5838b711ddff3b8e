//! Sockets in virtual time: a world of the path crate in a thread of its own, and a stack whose engine is that thread. Minutes
//! pass as quickly as their events are worked off, and always in the same order.

use farpace_host::{Host, Secret};
use farpace_live::socket::{Engine, Stack};
use farpace_live::{Ended, HostJob};
use farpace_path::world::{ElementId, World};
use farpace_path::{Element, Port};
use farpace_units::{Instant, RandomStream, Span};
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

pub const OURS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 3, 0, 1));

enum Order {
    Job(HostJob),
    /// Time passes; the answer is how long the world can do without being called.
    Pass(Span, Sender<Option<Instant>>),
}

/// The engine of a stack.
struct Clockwork(Mutex<Sender<Order>>);

impl Engine for Clockwork {
    fn run(&self, job: HostJob) -> Result<(), Ended> {
        self.0.lock().unwrap().send(Order::Job(job)).map_err(|_| Ended)
    }
}

/// A host whose neighbour is an element of the test, and the time of both.
pub struct Virtual {
    pub stack: Stack,
    orders: Sender<Order>,
    thread: Option<JoinHandle<()>>,
}

impl Virtual {
    /// A host with the address [`OURS`] opposite of what `peer` makes.
    pub fn opposite<E: Element + 'static>(peer: impl FnOnce() -> E + Send + 'static) -> Self {
        let (orders, heard) = channel();
        let thread = std::thread::spawn(move || run(peer(), &heard));
        let engine = Arc::new(Clockwork(Mutex::new(orders.clone())));
        Virtual { stack: Stack::over(engine, 1500), orders, thread: Some(thread) }
    }
    /// Time passes. When anything happens next, if nobody calls.
    pub fn pass(&self, span: Span) -> Option<Instant> {
        let (tell, hear) = channel();
        self.orders.send(Order::Pass(span, tell)).unwrap();
        hear.recv().unwrap()
    }
    /// Looks at the host.
    pub fn host<R: Send + 'static>(&self, look: impl FnOnce(&mut Host) -> R + Send + 'static) -> R {
        self.stack.call(|host, _| look(host)).unwrap()
    }
}

fn run(peer: impl Element + 'static, orders: &Receiver<Order>) {
    let mut world = World::new(1);
    let host = Host::new(OURS, Secret::from_stream(&mut RandomStream::new(1, "secret")));
    let host: ElementId = world.add("host", Box::new(host)).unwrap();
    let peer = world.add("peer", Box::new(peer)).unwrap();
    world.connect((host, Port(0)), (peer, Port(0))).unwrap();
    let mut now = Instant::ZERO;
    while let Ok(order) = orders.recv() {
        match order {
            Order::Job(job) => world.call(host, &mut (), |host: &mut Host, cx| job(host, cx)).unwrap(),
            Order::Pass(span, tell) => {
                now += span;
                world.run_until(now, &mut ()).unwrap();
                tell.send(world.next_event_time()).unwrap();
            }
        }
        world.run_until(now, &mut ()).unwrap();
        world.check().unwrap();
    }
}

impl Drop for Virtual {
    fn drop(&mut self) {
        // The thread ends with the last sender, which the stack has, and every socket.
        self.thread.take();
    }
}
