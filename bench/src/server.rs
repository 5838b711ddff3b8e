//! One host with many connections, and segments for them: what it costs to find them, to keep their timers,
//! and to be flooded.

use bytes::Bytes;
use farpace_host::{Application, Host, ListenSettings, Secret};
use farpace_path::{Cx, Effects, Element, Port};
use farpace_tcp::config::Settings;
use farpace_tcp::{Connection, ConnectionEvent};
use farpace_units::{Instant, RandomStream, Seq, Span};
use farpace_wire::tcp::{TcpFlags, TcpHeader, TcpOptions, Timestamps};
use farpace_wire::{AddressPair, Below, MacAddr, Packet};
use std::net::{IpAddr, Ipv4Addr};

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const WORDS: &[u8] = b"a few words";

/// Reads and says nothing.
struct Listens;

impl Application for Listens {
    fn on_event(&mut self, _: Instant, connection: &mut Connection, event: ConnectionEvent) {
        if event == ConnectionEvent::Readable {
            connection.read(drop);
        }
    }
}

/// Answers with a few words and closes: its side waits in TIME-WAIT.
struct Answers;

impl Application for Answers {
    fn on_event(&mut self, _: Instant, connection: &mut Connection, event: ConnectionEvent) {
        if event == ConnectionEvent::Readable {
            connection.read(drop);
            connection.write(&mut Bytes::from_static(WORDS));
            connection.close();
        }
    }
}

/// A server, and all its clients.
pub struct Server {
    host: Host,
    effects: Effects,
    rng: RandomStream,
    now: Instant,
    /// Of each client: what it sends next, and what it acknowledges.
    clients: Vec<(Seq, Seq)>,
    turn: usize,
    forged: u32,
    opened: usize,
}

impl Server {
    /// A server with `clients` established connections.
    ///
    /// # Panics
    /// A connection was not made: figures without it would be worth nothing.
    #[allow(clippy::panic, reason = "a benchmark without its connections must stop")]
    pub fn new(clients: usize) -> Self {
        let mut rng = RandomStream::new(1, "server");
        let mut host = Host::new(IpAddr::V4(SERVER), Secret::from_stream(&mut rng));
        let config = Settings::default().resolve().unwrap_or_else(|e| panic!("{e}"));
        let closing = ListenSettings::new(config.clone());
        host.listen(80, ListenSettings::new(config), || Box::new(Listens)).unwrap_or_else(|e| panic!("{e}"));
        host.listen(81, closing, || Box::new(Answers)).unwrap_or_else(|e| panic!("{e}"));
        let mut server = Server {
            host,
            effects: Effects::default(),
            rng,
            now: Instant::ZERO + Span::from_secs(1),
            clients: Vec::new(),
            turn: 0,
            forged: 0,
            opened: 0,
        };
        for n in 0..clients {
            let answer = server.ask(n, 80, TcpFlags::SYN, Seq::new(100), Seq::default(), b"");
            let iss = answer.unwrap_or_else(|| panic!("no answer")).seq;
            server.ask(n, 80, TcpFlags::ACK, Seq::new(101), iss + 1, b"");
            server.clients.push((Seq::new(101), iss + 1));
        }
        assert_eq!((server.host.open_connections(), server.host.half_open_connections()), (clients, 0));
        server
    }

    /// The next client sends a segment; time passes, and timers run out.
    pub fn segment(&mut self) {
        let n = self.turn;
        self.turn = (n + 1) % self.clients.len();
        let (seq, ack) = self.clients[n];
        self.clients[n].0 = seq + WORDS.len() as u32;
        self.ask(n, 80, TcpFlags::ACK, seq, ack, WORDS);
        self.wake();
        self.effects.emitted.clear();
    }

    /// A new client connects, asks with a few words, is answered with as many, and both close, the server
    /// first. The connection waits in TIME-WAIT until its time has come, a minute later: as many as come in a
    /// minute are there at once.
    ///
    /// # Panics
    /// The server did not answer.
    #[allow(clippy::panic, reason = "a benchmark without its connections must stop")]
    pub fn connection(&mut self) {
        let n = 0x0010_0000 + self.opened;
        self.opened += 1;
        self.now += Span::from_millis(6);
        let answer = self.ask(n, 81, TcpFlags::SYN, Seq::new(100), Seq::default(), b"");
        let next = answer.unwrap_or_else(|| panic!("no answer")).seq + 1;
        self.ask(n, 81, TcpFlags::ACK, Seq::new(101), next, b"");
        self.ask(n, 81, TcpFlags::ACK, Seq::new(101), next, WORDS);
        let (said, heard) = (Seq::new(101) + WORDS.len() as u32, next + WORDS.len() as u32 + 1);
        self.ask(n, 81, TcpFlags::ACK.with(TcpFlags::FIN), said, heard, b"");
        self.wake();
        self.effects.emitted.clear();
    }

    fn wake(&mut self) {
        while self.host.deadline().is_some_and(|at| at <= self.now) {
            self.host.on_wake(&mut Cx::new(self.now, &mut self.effects, &mut self.rng));
        }
    }

    /// One more SYN from an address that nobody has.
    pub fn forged_syn(&mut self) {
        let n = self.forged as usize;
        self.forged = self.forged.wrapping_add(1) & 0x00ff_ffff;
        self.ask(0x0100_0000 + n, 80, TcpFlags::SYN, Seq::new(n as u32), Seq::default(), b"");
    }

    /// Handshakes under way.
    pub fn half_open(&self) -> usize {
        self.host.half_open_connections()
    }

    fn ask(
        &mut self,
        n: usize,
        port: u16,
        flags: TcpFlags,
        seq: Seq,
        ack: Seq,
        words: &'static [u8],
    ) -> Option<TcpHeader> {
        self.now += Span::from_nanos(100);
        self.effects.emitted.clear();
        let packet = packet((n, port), flags, seq, ack, words, (self.now.as_nanos() / 1_000_000) as u32);
        self.host.on_packet(Port(0), packet, &mut Cx::new(self.now, &mut self.effects, &mut self.rng));
        Some(self.effects.emitted.first()?.1.tcp().ok()?.header())
    }
}

fn packet(
    (n, port): (usize, u16),
    flags: TcpFlags,
    seq: Seq,
    ack: Seq,
    words: &'static [u8],
    clock: u32,
) -> Packet {
    let from = Ipv4Addr::from_bits(0x2000_0000 | n as u32 >> 3);
    let below = Below::new(MacAddr([2; 6]), MacAddr([4; 6]), AddressPair::V4(from, SERVER), 64);
    let syn = flags.contains(TcpFlags::SYN);
    let header = TcpHeader {
        src_port: 40_000 + (n & 7) as u16,
        dst_port: port,
        seq,
        ack,
        flags,
        window: 65_535,
        options: TcpOptions {
            mss: syn.then_some(1460),
            window_scale: syn.then_some(7),
            sack_permitted: syn,
            timestamps: Some(Timestamps { value: clock, echo: 0 }),
            ..TcpOptions::default()
        },
        ..TcpHeader::default()
    };
    below.tcp(1, &header, Bytes::from_static(words))
}
