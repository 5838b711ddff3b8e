//! Two hosts back to back in memory, with super-segments between them or without: all that a host does for
//! bulk data, but for the device.

use bytes::Bytes;
use farpace_host::{Application, Host, ListenSettings, Secret};
use farpace_path::{Cx, Effects, Element};
use farpace_tcp::config::Settings;
use farpace_tcp::{Connection, ConnectionEvent};
use farpace_units::{ByteCount, Instant, Packets, RandomStream, Span};
use farpace_wire::Packet;
use std::net::{IpAddr, Ipv4Addr};

/// What the application writes at a time.
const CHUNK: usize = 4 << 20;
/// The clock between two turns.
const TURN: Span = Span::from_micros(20);
/// The congestion window in segments: about 1.5 MB, as a fast device nearby needs it.
const WINDOW: u32 = 1_024;

/// Writes for ever.
struct Source(Bytes);

impl Application for Source {
    fn on_event(&mut self, _: Instant, connection: &mut Connection, event: ConnectionEvent) {
        if matches!(event, ConnectionEvent::Connected | ConnectionEvent::Writable) {
            while connection.write_room().get() >= CHUNK as u64 {
                connection.write(&mut self.0.clone());
            }
        }
    }
}

/// Reads all there is.
struct Sink;

impl Application for Sink {
    fn on_event(&mut self, _: Instant, connection: &mut Connection, event: ConnectionEvent) {
        if event == ConnectionEvent::Readable {
            connection.read(drop);
        }
    }
}

/// One host and what it does.
struct End {
    host: Host,
    rng: RandomStream,
    effects: Effects,
}

impl End {
    fn new(address: IpAddr, most: u32) -> Self {
        let mut rng = RandomStream::new(1, &address.to_string());
        let mut host = Host::new(address, Secret::from_stream(&mut rng));
        host.set_super_segments(most);
        End { host, rng, effects: Effects::default() }
    }

    fn turn(&mut self, now: Instant, inbox: &mut Vec<Packet>, outbox: &mut Vec<Packet>) {
        let mut cx = Cx::new(now, &mut self.effects, &mut self.rng);
        self.host.on_burst(inbox.drain(..), &mut cx);
        if self.host.deadline().is_some_and(|at| at <= now) {
            self.host.on_wake(&mut cx);
        }
        outbox.extend(self.effects.emitted.drain(..).map(|(_, packet)| packet));
    }
}

/// A sender and a receiver that are connected.
pub struct Supers {
    now: Instant,
    ends: [End; 2],
    /// What is on its way to each.
    inboxes: [Vec<Packet>; 2],
    /// Payload bytes that have reached the receiver.
    pub delivered: u64,
}

impl Supers {
    /// Hosts whose devices take this much payload in a packet (zero: one segment), past slow start.
    ///
    /// # Panics
    /// Nothing arrives: a figure of such a pair would be worth nothing.
    #[allow(clippy::expect_used, reason = "a benchmark without a valid run must stop")]
    pub fn new(most: u32) -> Self {
        let addresses = [1, 2].map(|n| IpAddr::V4(Ipv4Addr::new(10, 0, 0, n)));
        let settings = Settings {
            cwnd_clamp: Some(Packets::new(WINDOW)),
            send_buffer: Some(ByteCount::new(4 * CHUNK as u64)),
            receive_buffer: Some(ByteCount::new(16 << 20)),
            ..Settings::default()
        };
        let config = settings.resolve().expect("settings");
        let mut ends = addresses.map(|address| End::new(address, most));
        let now = Instant::from_nanos(1_000_000_000);
        ends[1].host.listen(80, ListenSettings::new(config.clone()), || Box::new(Sink)).expect("a free port");
        let source = Box::new(Source(Bytes::from(vec![0x5a; CHUNK])));
        ends[0].host.connect(now, addresses[1], 80, config, None, source).expect("a free port");
        let mut supers = Supers { now, ends, inboxes: Default::default(), delivered: 0 };
        for _ in 0..1_000 {
            supers.send();
            supers.receive();
        }
        assert!(supers.delivered > 100_000_000, "nothing arrives");
        supers
    }

    /// The sender hears what was acknowledged, and sends what it may.
    pub fn send(&mut self) {
        let (inboxes, rest) = self.inboxes.split_at_mut(1);
        self.now += TURN;
        self.ends[0].turn(self.now, &mut inboxes[0], &mut rest[0]);
        self.delivered += rest[0].iter().map(|p| p.payload().len() as u64).sum::<u64>();
    }

    /// The receiver reads and acknowledges it, burst by burst.
    pub fn receive(&mut self) {
        /// Packets that a device hands up together.
        const BURST: usize = 16;
        let (inboxes, rest) = self.inboxes.split_at_mut(1);
        self.now += TURN;
        let mut burst = Vec::with_capacity(BURST);
        let mut packets = rest[0].drain(..);
        loop {
            burst.extend(packets.by_ref().take(BURST));
            if burst.is_empty() {
                return;
            }
            self.ends[1].turn(self.now, &mut burst, &mut inboxes[0]);
        }
    }
}
