//! A client and a server with a gateway between them: `client - lan - gateway - wan - server`.

use bytes::Bytes;
use farpace_gateway::{Gateway, GatewayConfig, GatewayTotals, Policy, PolicyTable};
use farpace_host::{Application, ConnectionId, Host, ListenSettings, Secret, SocketEnds};
use farpace_path::world::{ElementId, Observer, WireId, World};
use farpace_path::{
    Corrupt, CorruptDirection, Cx, Duplicate, DuplicateDirection, Framing, Link, LinkConfig, Loss,
    LossDirection, Port, QueueLimit, Reorder, ReorderDirection,
};
use farpace_tcp::config::{Config, Profile, Settings};
use farpace_tcp::{CloseReason, Connection, ConnectionEvent};
use farpace_units::{ByteCount, Instant, RandomStream, Rate, Span};
use farpace_wire::Packet;
use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;

pub const SERVER_PORT: u16 = 80;

/// The `n`th byte of a stream. Its period is no power of two, so that a shift by a segment or a buffer shows.
pub fn byte_at(seed: u8, n: usize) -> u8 {
    (n % 251) as u8 ^ (n / 251 % 241) as u8 ^ seed
}

/// What a program does and has seen.
#[derive(Default)]
pub struct Record {
    pub id: Option<ConnectionId>,
    pub connected: bool,
    pub received: usize,
    pub wrong: Option<usize>,
    pub peer_closed: bool,
    pub urgent_at: Option<u64>,
    pub ended: Option<CloseReason>,
}

/// Sends `all` bytes, and reads whatever comes, and compares it.
pub struct Program {
    pub sends: usize,
    pub sent: usize,
    pub seeds: [u8; 2],
    /// Closes behind what it sends.
    pub closes: bool,
    /// Sends only when the other has closed.
    pub after_fin: bool,
    /// Reads nothing.
    pub reads_nothing: bool,
    pub record: Rc<RefCell<Record>>,
}

impl Program {
    pub fn new(sends: usize, seeds: [u8; 2], record: &Rc<RefCell<Record>>) -> Self {
        Program {
            sends,
            sent: 0,
            seeds,
            closes: true,
            after_fin: false,
            reads_nothing: false,
            record: record.clone(),
        }
    }

    pub fn write(&mut self, connection: &mut Connection) {
        if self.after_fin && !self.record.borrow().peer_closed {
            return;
        }
        while self.sent < self.sends {
            let end = self.sends.min(self.sent + 10_000);
            let chunk: Vec<u8> = (self.sent..end).map(|n| byte_at(self.seeds[0], n)).collect();
            let taken = connection.write(&mut Bytes::from(chunk)).as_len();
            if taken == 0 {
                return;
            }
            self.sent += taken;
        }
        if self.closes {
            connection.close();
        }
    }
}

impl Application for Program {
    fn on_begin(&mut self, id: ConnectionId, _: SocketEnds) {
        self.record.borrow_mut().id = Some(id);
    }
    fn on_event(&mut self, _: Instant, connection: &mut Connection, event: ConnectionEvent) {
        match event {
            ConnectionEvent::Connected => self.record.borrow_mut().connected = true,
            ConnectionEvent::PeerClosed => self.record.borrow_mut().peer_closed = true,
            ConnectionEvent::Closed(reason) => self.record.borrow_mut().ended = Some(reason),
            ConnectionEvent::Urgent => {
                let mut record = self.record.borrow_mut();
                let ahead = connection.urgent_ahead().map(ByteCount::get);
                record.urgent_at = ahead.map(|ahead| record.received as u64 + ahead);
            }
            _ => {}
        }
        if !self.reads_nothing {
            let mut record = self.record.borrow_mut();
            connection.read(|bytes| {
                for byte in bytes {
                    if byte != byte_at(self.seeds[1], record.received) && record.wrong.is_none() {
                        record.wrong = Some(record.received);
                    }
                    record.received += 1;
                }
            });
        }
        self.write(connection);
    }
}

/// What passes the two links, as it leaves the client, the server and both ports of the gateway.
#[derive(Default)]
pub struct Tap {
    pub wires: [Option<WireId>; 4],
    pub seen: [Vec<Packet>; 4],
    pub on: bool,
}

impl Observer for Tap {
    fn packet(&mut self, _: Instant, wire: WireId, packet: &Packet) {
        if let Some(at) = self.wires.iter().position(|own| *own == Some(wire)).filter(|_| self.on) {
            self.seen[at].push(packet.clone());
        }
    }
}

pub const FROM_CLIENT: usize = 0;
pub const FROM_SERVER: usize = 1;
pub const TO_CLIENT: usize = 2;
pub const TO_SERVER: usize = 3;

/// The network of a test.
pub struct Net {
    pub world: World,
    pub client: ElementId,
    pub server: ElementId,
    pub gateway: ElementId,
    pub tap: Tap,
    pub addresses: [IpAddr; 2],
}

/// What a test chooses.
pub struct Plan {
    pub config: GatewayConfig,
    pub addresses: [IpAddr; 2],
    pub loss: f64,
    pub rate: Rate,
    pub delay: Span,
    pub seed: u64,
    pub faults: Option<Faults>,
}

/// Shares of packets that are harmed on the WAN, in each direction.
#[derive(Clone, Copy)]
pub struct Faults {
    pub duplicate: f64,
    pub reorder: f64,
    pub corrupt: f64,
}

impl Plan {
    pub fn new() -> Self {
        Plan {
            config: GatewayConfig::new(PolicyTable::new(vec![], policy())),
            addresses: ["10.0.0.1".parse().unwrap(), "192.0.2.1".parse().unwrap()],
            loss: 0.0,
            rate: Rate::from_mbit(50),
            delay: Span::from_millis(280),
            seed: 1,
            faults: None,
        }
    }
}

pub fn linux() -> Config {
    Settings { profile: Some(Profile::Linux), ..Settings::default() }.resolve().unwrap()
}

pub fn policy() -> Policy {
    let wan = Settings { profile: Some(Profile::Farpace), ..Settings::default() }.resolve().unwrap();
    Policy::new(linux(), wan)
}

fn link(rate: Option<Rate>, delay: Span) -> Box<Link> {
    let queue = QueueLimit::Bytes(ByteCount::new(1 << 20));
    Box::new(Link::symmetric(LinkConfig { rate, delay, queue, framing: Framing::ETHERNET }).unwrap())
}

impl Net {
    pub fn new(plan: Plan) -> Self {
        let config = plan.config.clone();
        let (mut net, [lan, wan]) = Net::without_gateway(plan);
        let gateway = net.world.add("gateway", Box::new(Gateway::new(config))).unwrap();
        net.world.connect((lan, Port(1)), (gateway, Gateway::LAN)).unwrap();
        net.world.connect((gateway, Gateway::WAN), (wan, Port(0))).unwrap();
        let ends = [(gateway, Gateway::LAN), (gateway, Gateway::WAN)];
        for (wire, end) in net.tap.wires[TO_CLIENT..].iter_mut().zip(ends) {
            *wire = Some(net.world.observe(end).unwrap());
        }
        Net { gateway, ..net }
    }

    /// Hosts and links, and the two elements between which a gateway belongs: [`Port(1)`](Port) of the first
    /// and [`Port(0)`](Port) of the second are free. `gateway` is the first of these until there is one.
    pub fn without_gateway(plan: Plan) -> (Self, [ElementId; 2]) {
        let mut world = World::new(plan.seed);
        let host = |name: &str, address| {
            Box::new(Host::new(address, Secret::from_stream(&mut RandomStream::new(plan.seed, name))))
        };
        let [a, b] = plan.addresses;
        let client = world.add("client", host("client", a)).unwrap();
        let lan = world.add("lan", link(Some(Rate::from_mbit(1000)), Span::from_micros(50))).unwrap();
        let lossy = Loss::new(LossDirection::new(plan.loss), LossDirection::new(plan.loss));
        let loss = world.add("loss", Box::new(lossy)).unwrap();
        let faults = plan.faults.unwrap_or(Faults { duplicate: 0.0, reorder: 0.0, corrupt: 0.0 });
        let duplicate = || DuplicateDirection::new(faults.duplicate);
        let duplicate = world.add("duplicate", Box::new(Duplicate::new(duplicate(), duplicate()))).unwrap();
        let reorder = || ReorderDirection::new(faults.reorder, Span::from_millis(30));
        let reorder = world.add("reorder", Box::new(Reorder::new(reorder(), reorder()))).unwrap();
        let corrupt = || CorruptDirection::new(faults.corrupt);
        let corrupt = world.add("corrupt", Box::new(Corrupt::new(corrupt(), corrupt()))).unwrap();
        let wan = world.add("wan", link(Some(plan.rate), plan.delay)).unwrap();
        let server = world.add("server", host("server", b)).unwrap();
        let port = |n| Port(n);
        for (near, far) in [
            ((client, port(0)), (lan, port(0))),
            ((loss, port(1)), (duplicate, port(0))),
            ((duplicate, port(1)), (reorder, port(0))),
            ((reorder, port(1)), (corrupt, port(0))),
            ((corrupt, port(1)), (wan, port(0))),
            ((wan, port(1)), (server, port(0))),
        ] {
            world.connect(near, far).unwrap();
        }
        let mut tap = Tap::default();
        for (wire, end) in tap.wires.iter_mut().zip([(client, port(0)), (server, port(0))]) {
            *wire = Some(world.observe(end).unwrap());
        }
        let addresses = plan.addresses;
        (Net { world, client, server, gateway: lan, tap, addresses }, [lan, loss])
    }

    pub fn run_for(&mut self, span: Span) {
        let until = self.world.now() + span;
        self.world.run_until(until, &mut self.tap).unwrap();
        self.world.check().unwrap();
    }

    /// The server makes a program for each connection.
    pub fn listen(&mut self, config: Config, make: impl Fn() -> Program + 'static) {
        let server = self.world.element_mut::<Host>(self.server).unwrap();
        server.listen(SERVER_PORT, ListenSettings::new(config), move || Box::new(make())).unwrap();
    }

    /// The client opens a connection now.
    pub fn connect(&mut self, config: Config, program: Program) {
        let (now, to) = (self.world.now(), self.addresses[1]);
        let client = self.world.element_mut::<Host>(self.client).unwrap();
        client.connect(now, to, SERVER_PORT, config, None, Box::new(program)).unwrap();
    }

    /// Works on a connection of a host.
    pub fn with<R>(
        &mut self,
        host: ElementId,
        record: &Rc<RefCell<Record>>,
        work: impl FnOnce(&mut Program, &mut Connection) -> R,
    ) -> R {
        let id = record.borrow().id.unwrap();
        let act = |host: &mut Host, cx: &mut Cx<'_>| host.with_application(id, cx, work);
        self.world.call(host, &mut self.tap, act).unwrap().unwrap()
    }

    pub fn gateway(&self) -> &Gateway {
        self.world.element::<Gateway>(self.gateway).unwrap()
    }

    pub fn totals(&self) -> GatewayTotals {
        self.gateway().totals()
    }

    pub fn drain(&mut self) {
        self.world.call(self.gateway, &mut self.tap, |gateway: &mut Gateway, cx| gateway.drain(cx)).unwrap();
    }

    /// Nothing comes to the gateway any more.
    pub fn abandon(&mut self) {
        self.world
            .call(self.gateway, &mut self.tap, |gateway: &mut Gateway, cx| gateway.abandon(cx))
            .unwrap();
    }

    /// The gateway ends.
    pub fn cut(&mut self) {
        self.world.call(self.gateway, &mut self.tap, |gateway: &mut Gateway, cx| gateway.cut(cx)).unwrap();
    }

    /// The gateway is killed, and another takes its place.
    pub fn restart(&mut self, config: GatewayConfig) {
        *self.world.element_mut::<Gateway>(self.gateway).unwrap() = Gateway::new(config);
    }

    /// A packet comes to the gateway by hand.
    pub fn inject(&mut self, port: Port, packet: Packet) {
        use farpace_path::Element;
        let act = |gateway: &mut Gateway, cx: &mut Cx<'_>| {
            cx.made();
            gateway.on_packet(port, packet, cx);
        };
        self.world.call(self.gateway, &mut self.tap, act).unwrap();
    }
}

pub fn record() -> Rc<RefCell<Record>> {
    Rc::default()
}

/// A server that sends `sends` bytes; the record is that of its latest connection.
pub fn serve(net: &mut Net, config: Config, sends: usize) -> Rc<RefCell<Record>> {
    let kept = record();
    let made = kept.clone();
    net.listen(config, move || Program::new(sends, [2, 1], &made));
    kept
}

/// The records of all connections of a server.
pub type Records = Rc<RefCell<Vec<Rc<RefCell<Record>>>>>;

/// A server that sends `sends` bytes, with a record for each connection.
pub fn serve_each(net: &mut Net, config: Config, sends: usize) -> Records {
    let all: Records = Rc::default();
    let made = all.clone();
    net.listen(config, move || {
        let record = record();
        made.borrow_mut().push(record.clone());
        Program::new(sends, [2, 1], &record)
    });
    all
}

/// A client that sends `sends` bytes.
pub fn call(net: &mut Net, config: Config, sends: usize) -> Rc<RefCell<Record>> {
    let kept = record();
    net.connect(config, Program::new(sends, [1, 2], &kept));
    kept
}

/// All has arrived, unchanged, and both have closed in order.
pub fn assert_done(record: &Rc<RefCell<Record>>, received: usize) {
    let record = record.borrow();
    assert_eq!(record.wrong, None, "a byte differs");
    assert_eq!(record.received, received);
    assert!(record.peer_closed);
}
