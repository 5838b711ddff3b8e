//! Sockets in virtual time: a world of the path crate in its own thread, and a stack with this thread as
//! engine. Minutes pass as fast as their events are processed, and always in the same order.

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
    /// Advances time; the answer is the time of the next event.
    Pass(Span, Sender<Option<Instant>>),
}

/// The engine of a stack.
struct Clockwork(Mutex<Sender<Order>>);

impl Engine for Clockwork {
    fn run(&self, job: HostJob) -> Result<(), Ended> {
        self.0.lock().unwrap().send(Order::Job(job)).map_err(|_| Ended)
    }
}

/// A host whose neighbour is an element of the test, in virtual time.
pub struct Virtual {
    pub stack: Stack,
    sender: Sender<Order>,
    thread: Option<JoinHandle<()>>,
}

impl Virtual {
    /// A host with the address [`OURS`], connected to the result of `peer`.
    pub fn opposite<E: Element + 'static>(peer: impl FnOnce() -> E + Send + 'static) -> Self {
        let (sender, receiver) = channel();
        let thread = std::thread::spawn(move || run(peer(), &receiver));
        let engine = Arc::new(Clockwork(Mutex::new(sender.clone())));
        Virtual { stack: Stack::over(engine, 1500), sender, thread: Some(thread) }
    }
    /// Advances time. Returns the time of the next event.
    pub fn pass(&self, span: Span) -> Option<Instant> {
        let (sender, receiver) = channel();
        self.sender.send(Order::Pass(span, sender)).unwrap();
        receiver.recv().unwrap()
    }
    /// Accesses the host.
    pub fn host<R: Send + 'static>(&self, look: impl FnOnce(&mut Host) -> R + Send + 'static) -> R {
        self.stack.call(|host, _| look(host)).unwrap()
    }
}

fn run(peer: impl Element + 'static, sender: &Receiver<Order>) {
    let mut world = World::new(1);
    let host = Host::new(OURS, Secret::from_stream(&mut RandomStream::new(1, "secret")));
    let host: ElementId = world.add("host", Box::new(host)).unwrap();
    let peer = world.add("peer", Box::new(peer)).unwrap();
    world.connect((host, Port(0)), (peer, Port(0))).unwrap();
    let mut now = Instant::ZERO;
    while let Ok(order) = sender.recv() {
        match order {
            Order::Job(job) => world.call(host, &mut (), |host: &mut Host, cx| job(host, cx)).unwrap(),
            Order::Pass(span, sender) => {
                now += span;
                world.run_until(now, &mut ()).unwrap();
                sender.send(world.next_event_time()).unwrap();
            }
        }
        world.run_until(now, &mut ()).unwrap();
        world.check().unwrap();
    }
}

impl Drop for Virtual {
    fn drop(&mut self) {
        // The thread ends with the last sender, which the stack and every socket hold.
        self.thread.take();
    }
}
