//! Random programs, each from one number.
//!
//! The peer is drawn together with what it knows: what the stack may have written and sent by then. It is
//! mostly sensible, because a peer that never is learns little about a stack.

use super::program::*;
use farpace_units::RandomStream;

/// What programs are about.
pub const THEMES: [&str; 8] = ["open", "receive", "send", "loss", "close", "windows", "options", "any"];

/// The program of `seed`, of that theme or of the one that the seed says.
pub fn draw(seed: u64, theme: Option<&str>) -> Program {
    let mut rng = RandomStream::new(seed, "against_linux");
    let drawn = THEMES[rng.below(THEMES.len() as u64) as usize];
    let mut draw =
        Draw { rng, program: Program::default(), at: 0, rtt: 20, peer: Peer::default(), sack: false };
    draw.program.congestion = draw.one(&["cubic", "cubic", "reno"]).to_owned();
    draw.rtt = draw.one(&[2, 10, 20, 40, 60]);
    draw.program.quiet = draw.one(&[50, 120, 300, 500, 1200]);
    let theme = theme.unwrap_or(drawn);
    draw.sack = ["send", "loss", "windows", "any"].contains(&theme) && draw.chance(0.85);
    if draw.chance(0.2) {
        let names = ["tcp_timestamps", "tcp_window_scaling", "tcp_sack"];
        let name = draw.one(&names[..if draw.sack { 2 } else { 3 }]);
        draw.program.switches.insert(name.to_owned(), "0".to_owned());
    }
    match theme {
        "open" => draw.open(),
        "receive" => draw.receive(),
        "send" => draw.send(),
        "loss" => draw.loss(),
        "close" => draw.close(),
        "windows" => draw.windows(),
        "options" => draw.options(),
        _ => draw.any(),
    }
    draw.program
}

/// What the peer of connection 0 knows.
#[derive(Clone, Debug, Default)]
struct Peer {
    stamps: bool,
    sack: bool,
    shift: u8,
    mss: u32,
    /// Its next number.
    seq: i64,
    /// What it has acknowledged.
    ack: i64,
    /// Written by the program.
    written: i64,
    clock: u32,
}

struct Draw {
    rng: RandomStream,
    program: Program,
    at: u64,
    /// In ms.
    rtt: u64,
    peer: Peer,
    /// The peer has SACK, and no ECN.
    sack: bool,
}

/// The socket of the connection.
const IT: u8 = 1;
const LISTENER: u8 = 0;

impl Draw {
    fn one<T: Clone>(&mut self, choice: &[T]) -> T {
        choice[self.rng.below(choice.len() as u64) as usize].clone()
    }
    fn chance(&mut self, p: f64) -> bool {
        self.rng.chance(p)
    }
    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.rng.below(most - least + 1)
    }

    /// So many ms pass.
    fn wait(&mut self, ms: u64) {
        self.at += ms * 1000;
    }
    /// Some time passes, mostly less than a round trip.
    fn pause(&mut self) {
        let rtt = self.rtt;
        let ms = match self.rng.below(10) {
            0..4 => self.between(1, 3),
            4..7 => self.between(1, rtt),
            7..9 => rtt,
            _ => self.between(rtt, 5 * rtt),
        };
        self.wait(ms);
    }
    fn step(&mut self, what: Action) {
        self.program.steps.push(Step { at: self.at, what });
        self.at += 300;
    }
    fn call(&mut self, slot: u8, op: Op) {
        self.step(Action::Call(Call { slot, blocking: false, op }));
    }
    fn set(&mut self, slot: u8, name: &str, value: i32) {
        let option = named(name).expect("an option of the table");
        self.call(slot, Op::Set(option, Value::Int(value)));
    }

    /// A segment of the peer, as it should be.
    fn plain(&mut self, flags: u16, len: u32) -> Segment {
        let clock = (self.at / 1000) as u32 + self.peer.clock;
        Segment {
            conn: 0,
            flags,
            seq: self.peer.seq,
            ack: self.peer.ack,
            len,
            window: (65_536u32 >> self.peer.shift).min(65_535) as u16,
            ts: self.peer.stamps.then_some((clock, Echo::Off(0))),
            ..Segment::default()
        }
    }
    fn inject(&mut self, segment: Segment) {
        self.step(Action::Segment(segment));
    }
    /// The peer acknowledges up to there, echoing the first copy of the segment before.
    fn acknowledge(&mut self, to: i64, sack: Vec<(i64, i64)>) {
        let mss = i64::from(self.data());
        let newest = sack.first().map_or(to, |b| b.1);
        self.peer.ack = self.peer.ack.max(to);
        let mut segment = self.plain(ACK, 0);
        segment.ack = to;
        if let Some((_, echo)) = &mut segment.ts {
            let start = 1 + (newest - 2).max(0) / mss * mss;
            *echo = Echo::Of(start, 0);
        }
        segment.sack = if self.peer.sack { sack } else { Vec::new() };
        let room = if self.peer.stamps { 3 } else { 4 };
        segment.sack.truncate(room);
        self.inject(segment);
    }
    /// Payload of a full segment of the stack.
    fn data(&self) -> u32 {
        self.peer.mss - if self.peer.stamps { 12 } else { 0 }
    }

    /// Options of the peer's SYN.
    fn syn(&mut self) -> Segment {
        let switch = |name: &str, p: &Program| !p.switches.contains_key(name);
        let mss = self.one(&[Some(1460), Some(1460), Some(1460), Some(1000), Some(536), Some(100), None]);
        let (stamps, sack) = (self.chance(0.7), self.sack || self.chance(0.8));
        let wscale = self.one(&[None, Some(0), Some(7), Some(7), Some(14)]);
        self.peer = Peer {
            stamps: stamps && switch("tcp_timestamps", &self.program),
            sack: sack && switch("tcp_sack", &self.program),
            shift: wscale.filter(|_| switch("tcp_window_scaling", &self.program)).unwrap_or(0),
            mss: u32::from(mss.unwrap_or(536)),
            seq: 0,
            ack: 0,
            written: 0,
            clock: 1000,
        };
        let mut syn = self.plain(SYN, 0);
        syn.ts = stamps.then_some((self.peer.clock, Echo::Raw(0)));
        syn.window = self.one(&[65_535, 65_535, 29_200]);
        (syn.mss, syn.wscale, syn.sackok) = (mss, wscale, sack);
        if !self.sack && self.chance(0.1) {
            syn.flags |= ECE | CWR;
        }
        syn
    }

    /// A connection that is established, or nearly so.
    fn establish(&mut self) {
        let passive = self.chance(0.6);
        let slot = if passive { LISTENER } else { IT };
        self.call(slot, Op::Socket);
        if self.chance(0.15) {
            self.set(slot, "TCP_NODELAY", 1);
        }
        if self.chance(0.05) {
            let mss = self.one(&[88, 536, 1000, 1400]);
            self.set(slot, "TCP_MAXSEG", mss);
        }
        if passive {
            self.call(LISTENER, Op::Bind(5001));
            self.call(LISTENER, Op::Listen(8));
            self.wait(2);
            let syn = self.syn();
            self.inject(syn);
            self.wait(self.rtt);
            (self.peer.seq, self.peer.ack) = (1, 1);
            let ack = self.plain(ACK, 0);
            self.inject(ack);
            self.wait(1);
            self.call(IT, Op::Accept(LISTENER));
        } else {
            self.call(IT, Op::Connect(0));
            self.wait(self.rtt);
            let mut syn = self.syn();
            syn.flags |= ACK;
            syn.flags &= !CWR;
            syn.ack = 1;
            if let Some((_, echo)) = &mut syn.ts {
                *echo = Echo::Off(0);
            }
            self.inject(syn);
            (self.peer.seq, self.peer.ack) = (1, 1);
        }
        self.peer.stamps &= !self.program.switches.contains_key("tcp_timestamps");
        self.wait(1);
    }

    fn write(&mut self, len: u32, flags: i32) {
        self.call(IT, Op::Send(len, Flags(flags)));
        self.peer.written += i64::from(len);
    }

    /// The program looks at something.
    fn look(&mut self) {
        let op = match self.rng.below(10) {
            0..4 => Op::Info,
            4 => Op::Poll,
            5 => Op::Ioctl(Ioctl::InQueue),
            6 => Op::Ioctl(Ioctl::OutQueue),
            7 => Op::Ioctl(Ioctl::OutQueueUnsent),
            _ => Op::Get(named("SO_ERROR").expect("an option")),
        };
        self.call(IT, op);
    }

    fn open(&mut self) {
        match self.rng.below(4) {
            0 => self.establish(),
            1 => {
                // SYNs and what follows go astray.
                self.call(LISTENER, Op::Socket);
                self.call(LISTENER, Op::Bind(5001));
                let backlog = self.one(&[0, 1, 8]);
                self.call(LISTENER, Op::Listen(backlog));
                self.wait(2);
                let syn = self.syn();
                for _ in 0..self.between(1, 3) {
                    self.inject(syn.clone());
                    self.pause();
                }
                (self.peer.seq, self.peer.ack) = (1, 1);
                if self.chance(0.4) {
                    self.wait(1500);
                }
                for _ in 0..self.between(1, 3) {
                    let mut segment = self.plain(ACK, 0);
                    self.distort(&mut segment, 0.4);
                    self.inject(segment);
                    self.pause();
                }
                self.call(IT, Op::Accept(LISTENER));
            }
            2 => {
                // An active open, and odd answers.
                self.call(IT, Op::Socket);
                self.call(IT, Op::Connect(0));
                self.wait(self.rtt);
                if self.chance(0.3) {
                    self.wait(1200);
                }
                for _ in 0..self.between(1, 3) {
                    let mut syn = self.syn();
                    syn.flags =
                        self.one(&[SYN | ACK, SYN | ACK, SYN, ACK, RST | ACK, RST, FIN | ACK, SYN | RST]);
                    syn.ack = if syn.flags & ACK == 0 { 0 } else { self.one(&[1, 1, 1, 0, 2, 1000]) };
                    if let Some((_, echo)) = &mut syn.ts {
                        *echo = Echo::Off(0);
                    }
                    self.inject(syn);
                    self.pause();
                    if self.chance(0.3) {
                        self.look();
                    }
                }
                (self.peer.seq, self.peer.ack) = (1, 1);
            }
            _ => {
                // Segments out of the blue.
                self.call(LISTENER, Op::Socket);
                self.call(LISTENER, Op::Bind(5001));
                if self.chance(0.8) {
                    self.call(LISTENER, Op::Listen(8));
                }
                self.wait(2);
                for _ in 0..self.between(1, 4) {
                    let mut segment = self.syn();
                    segment.flags = self.flags();
                    segment.ack = self.one(&[0, 0, 1, 5000]);
                    segment.len = self.one(&[0, 0, 10]);
                    self.inject(segment);
                    self.pause();
                }
                self.call(IT, Op::Accept(LISTENER));
                return;
            }
        }
        self.look();
        if self.chance(0.5) {
            let len = self.one(&[1, 100, 5000]);
            self.write(len, 0);
        }
        self.pause();
        let mut segment = self.plain(ACK | PSH, 100);
        self.distort(&mut segment, 0.2);
        self.inject(segment);
        self.wait(1);
        self.call(IT, Op::Recv(1000, Flags(0)));
        self.look();
    }

    fn flags(&mut self) -> u16 {
        match self.rng.below(4) {
            0 => self.rng.below(0x40) as u16,
            1 => ACK | self.rng.below(0x10) as u16,
            2 => self.one(&[SYN, SYN | ACK, RST, RST | ACK, FIN, 0]),
            _ => ACK,
        }
    }

    /// With that chance something about it is not as it should be.
    fn distort(&mut self, segment: &mut Segment, p: f64) {
        if !self.chance(p) {
            return;
        }
        let near = self.one(&[-70_000i64, -1500, -100, -1, 1, 2, 100, 1500, 20_000, 70_000, 1 << 30]);
        match self.rng.below(10) {
            0 | 1 => segment.flags = self.flags(),
            2 | 3 => segment.seq += near,
            4 | 5 => segment.ack += near,
            6 => segment.window = self.one(&[0, 1, 10, 65_535]),
            7 => segment.len = self.one(&[0, 1, 1400]),
            8 => {
                if let Some((value, echo)) = &mut segment.ts {
                    match self.rng.below(4) {
                        0 => *value = value.wrapping_sub(1000),
                        1 => *echo = Echo::Raw(0),
                        2 => *echo = Echo::Off(5000),
                        _ => segment.ts = None,
                    }
                }
            }
            _ => {
                let base = segment.ack + self.one(&[-3000, 0, 1000, 3000]);
                let len = self.one(&[-100, 1, 1000, 5000]);
                segment.sack = vec![(base, base + len)];
            }
        }
    }

    /// Data from the peer in all kinds of order, and a program that reads it or does not.
    fn receive(&mut self) {
        self.establish();
        let len = self.one(&[100, 1448]);
        let count = self.between(3, 14);
        let mut order: Vec<i64> = (0..count as i64).collect();
        if self.chance(0.7) {
            for _ in 0..self.between(1, 4) {
                let (a, b) = (self.rng.below(count) as usize, self.rng.below(count) as usize);
                match self.rng.below(3) {
                    0 => order.swap(a, b),
                    1 => order.insert(a, order[b]),
                    _ => {
                        let late = order.remove(a);
                        order.push(late);
                    }
                }
            }
        }
        for n in order {
            let push = if self.chance(0.3) { PSH } else { 0 };
            let mut segment = self.plain(ACK | push, len);
            segment.seq = 1 + n * i64::from(len);
            if self.chance(0.05) {
                segment.seq -= i64::from(len) / 2;
            }
            self.distort(&mut segment, 0.04);
            self.inject(segment);
            if self.chance(0.4) {
                self.pause();
            }
            // The kernel's window depends on the memory of what is unread, and its ACKs on the window.
            self.call(IT, Op::Recv(100_000, Flags(0)));
            if self.chance(0.1) {
                self.look();
            }
            if self.chance(0.06) {
                let len = self.one(&[1, 100, 3000]);
                self.write(len, 0);
            }
        }
        self.peer.seq = 1 + count as i64 * i64::from(len);
        self.wait(self.rtt);
        self.look();
        self.call(IT, Op::Info);
        self.call(IT, Op::Recv(100_000, Flags(0)));
    }

    /// Writes of all sizes, and a peer that acknowledges.
    fn send(&mut self) {
        self.establish();
        let mss = i64::from(self.data());
        for _ in 0..self.between(2, 10) {
            match self.rng.below(10) {
                0..5 => {
                    let len = self.one(&[1, 10, 100, 1000, 1448, 2000, 5000, 14_480, 20_000]);
                    let flags = match self.rng.below(20) {
                        0 | 1 => nix::libc::MSG_MORE,
                        2 => nix::libc::MSG_OOB,
                        _ => 0,
                    };
                    self.write(len, flags);
                }
                5..8 => {
                    // Up to what may be there.
                    let sent = self.peer.written.min(self.peer.ack - 1 + 10 * mss);
                    let to = match self.rng.below(4) {
                        0 => 1 + sent,
                        1 => (1 + sent).min(self.peer.ack + mss),
                        _ => (1 + sent).min(self.peer.ack + mss * self.rng.below(10) as i64),
                    };
                    self.acknowledge(to, Vec::new());
                }
                8 => self.look(),
                _ => {
                    let on = self.rng.below(2) as i32;
                    self.set(IT, "TCP_NODELAY", on);
                }
            }
            if self.chance(0.5) {
                self.pause();
            }
        }
        self.wait(self.rtt);
        self.acknowledge(1 + self.peer.written.min(self.peer.ack - 1 + 10 * mss), Vec::new());
        self.call(IT, Op::Info);
    }

    /// Segments that are lost, late, or come twice, as a receiver tells of them.
    fn loss(&mut self) {
        self.establish();
        let mss = i64::from(self.data());
        let flight = self.between(2, 10) as i64;
        let extra = self.one(&[0, 0, 1, 500, 5000]);
        let len = (flight * mss + extra).min(60_000);
        self.write(len as u32, 0);
        self.wait(self.rtt);
        let mut order: Vec<i64> = (0..flight).collect();
        let mut missing = Vec::new();
        for _ in 0..self.between(1, 3) {
            let at = self.rng.below(order.len() as u64) as usize;
            let n = order[at];
            match self.rng.below(4) {
                0 | 1 if order.len() > 1 => missing.push(order.remove(at)),
                2 => order.insert(at, n),
                _ => {
                    let n = order.remove(at);
                    let to = self.rng.below(order.len() as u64 + 1) as usize;
                    order.insert(to, n);
                }
            }
        }
        let mut receiver = Receiver::default();
        let thin = self.one(&[1.0, 1.0, 0.5]);
        let gap = self.one(&[0, 0, 1, 3]);
        for n in order {
            let (ack, sack) = receiver.gets(n);
            if self.chance(thin) {
                self.tell(ack, &sack, mss);
            }
            self.wait(gap);
            if self.chance(0.06) {
                self.look();
            }
        }
        // What was lost comes again, after a while.
        let wait = self.one(&[self.rtt, self.rtt, 2 * self.rtt, 300]);
        self.wait(wait);
        for n in missing {
            if self.chance(0.85) {
                let (ack, sack) = receiver.gets(n);
                self.tell(ack, &sack, mss);
                if self.chance(0.15) {
                    let (ack, sack) = receiver.gets(n);
                    self.tell(ack, &sack, mss);
                }
            }
            if self.chance(0.3) {
                self.pause();
            }
        }
        self.call(IT, Op::Info);
        if self.chance(0.5) {
            self.wait(self.rtt);
            self.write(3000, 0);
            self.wait(self.rtt);
            self.acknowledge(1 + self.peer.written, Vec::new());
            self.call(IT, Op::Info);
        }
    }

    fn tell(&mut self, ack: i64, sack: &[(i64, i64)], mss: i64) {
        let limit = 1 + self.peer.written;
        let byte = |n: i64| (1 + n * mss).min(limit);
        let blocks = sack.iter().map(|(a, b)| (byte(*a), byte(*b))).filter(|(a, b)| a < b).collect();
        self.acknowledge(byte(ack), blocks);
    }

    /// All ways to end.
    fn close(&mut self) {
        self.establish();
        if self.chance(0.5) {
            let len = self.one(&[1, 100, 5000, 30_000]);
            self.write(len, 0);
        }
        let mut fin = false;
        for _ in 0..self.between(3, 8) {
            match self.rng.below(12) {
                0 => self.call(IT, Op::Shutdown(How::Write)),
                1 => {
                    let how = self.one(&[How::Read, How::Both, How::Write]);
                    self.call(IT, Op::Shutdown(how));
                }
                2 | 3 => {
                    if self.chance(0.15) {
                        let option = named("SO_LINGER").expect("an option");
                        self.call(IT, Op::Set(option, Value::Linger(1, 0)));
                    }
                    self.call(IT, Op::Close);
                }
                4 | 5 => {
                    let len = 0;
                    let mut segment = self.plain(FIN | ACK, len);
                    segment.seq -= i64::from(fin);
                    self.distort(&mut segment, 0.1);
                    self.inject(segment);
                    if !fin {
                        self.peer.seq += i64::from(len) + 1;
                    }
                    fin = true;
                }
                6 | 7 => {
                    let extra = self.one(&[0, 1, 1]);
                    let to = 1 + self.peer.written + extra;
                    self.acknowledge(to, Vec::new());
                }
                8 => {
                    let mut segment = self.plain(ACK | PSH, 100);
                    self.distort(&mut segment, 0.2);
                    self.inject(segment);
                }
                9 => {
                    let flags = self.one(&[RST, RST | ACK, ACK, SYN, SYN | ACK]);
                    let mut segment = self.plain(flags, 0);
                    self.distort(&mut segment, 0.3);
                    self.inject(segment);
                }
                10 => self.call(IT, Op::Recv(1000, Flags(0))),
                _ => self.look(),
            }
            self.pause();
        }
        self.look();
        let len = self.one(&[1, 100]);
        self.call(IT, Op::Send(len, Flags(0)));
        self.call(IT, Op::Recv(1000, Flags(0)));
    }

    /// Windows that shut, open and shrink.
    fn windows(&mut self) {
        self.establish();
        let mss = i64::from(self.data());
        for _ in 0..self.between(3, 10) {
            if self.chance(0.5) {
                let len = self.one(&[10, 1000, 5000, 20_000, 60_000]);
                self.write(len, 0);
            }
            self.pause();
            let sent = self.peer.written.min(self.peer.ack - 1 + 10 * mss);
            let to = (1 + sent).min(self.peer.ack + mss * self.rng.below(10) as i64);
            self.peer.ack = self.peer.ack.max(to);
            let mut segment = self.plain(ACK, 0);
            let bytes = self.one(&[0, 0, 65_535, 200_000]);
            segment.window = (bytes >> self.peer.shift).min(65_535) as u16;
            self.inject(segment);
            if self.chance(0.2) {
                self.wait(300);
            }
            if self.chance(0.2) {
                self.look();
            }
        }
        self.call(IT, Op::Info);
    }

    /// Options, set and read at all times.
    fn options(&mut self) {
        if self.chance(0.5) {
            self.call(IT, Op::Socket);
        } else {
            self.establish();
        }
        for _ in 0..self.between(4, 14) {
            let option = &OPTIONS[self.rng.below(OPTIONS.len() as u64) as usize];
            if matches!(option.name, "SO_SNDBUF" | "SO_RCVBUF" | "TCP_WINDOW_CLAMP") {
                continue; // the kernel counts memory, not bytes
            }
            if self.chance(0.6) {
                let value = match option.form {
                    Form::Int => Value::Int(self.one(&[
                        -1,
                        0,
                        1,
                        1,
                        2,
                        5,
                        64,
                        100,
                        536,
                        1000,
                        1460,
                        5000,
                        40_000,
                        1 << 20,
                    ])),
                    Form::Linger => Value::Linger(self.one(&[0, 1]), self.one(&[0, 1, 5])),
                    Form::Timeval => Value::Millis(self.one(&[0, 4, 100, 1500])),
                    Form::Name => Value::Name(self.one(&["reno", "cubic", "nothing"]).to_owned()),
                };
                self.call(IT, Op::Set(option, value));
            }
            self.call(IT, Op::Get(option));
            if self.chance(0.1) {
                self.write(100, 0);
            }
            if self.chance(0.1) {
                self.pause();
            }
        }
    }

    /// Anything at any time.
    fn any(&mut self) {
        if self.chance(0.9) {
            self.establish();
        }
        for _ in 0..self.between(3, 16) {
            match self.rng.below(12) {
                0..3 => {
                    let len = self.one(&[0, 0, 1, 100, 1000]);
                    let mut segment = self.plain(ACK, len);
                    self.distort(&mut segment, 0.4);
                    if segment.flags & (SYN | FIN | RST) == 0 && segment.seq == self.peer.seq {
                        self.peer.seq += i64::from(segment.len);
                    }
                    self.inject(segment);
                    self.call(IT, Op::Recv(100_000, Flags(0)));
                }
                3 | 4 => {
                    let len = self.one(&[1, 100, 1448, 5000]);
                    let flags = self.one(&[0, 0, 0, 0, nix::libc::MSG_MORE, nix::libc::MSG_OOB]);
                    self.write(len, flags);
                }
                5 | 6 => {
                    let len = self.one(&[1, 100, 1000, 10_000]);
                    let flags = self.one(&[0, 0, nix::libc::MSG_PEEK, nix::libc::MSG_TRUNC]);
                    self.call(IT, Op::Recv(len, Flags(flags)));
                }
                7 => {
                    let sent = self.peer.written;
                    self.acknowledge(1 + sent, Vec::new());
                }
                8 => {
                    let (kind, code, mtu) = self.one(&[(3, 4, 1200), (3, 4, 600), (3, 0, 0), (3, 1, 0)]);
                    let (kind, code) = if mtu == 0 {
                        self.one(&[(kind, code), (3, 2), (3, 3), (3, 7), (3, 13), (11, 0), (12, 0)])
                    } else {
                        (kind, code)
                    };
                    let seq = self.peer.ack;
                    self.step(Action::Icmp(Icmp { conn: 0, kind, code, mtu, seq }));
                    if mtu == 0 {
                        self.look();
                    }
                }
                9 => self.look(),
                10 if self.chance(0.3) => {
                    let how = self.one(&[How::Read, How::Both, How::Write]);
                    self.call(IT, Op::Shutdown(how));
                }
                11 if self.chance(0.2) => self.call(IT, Op::Close),
                _ => self.pause(),
            }
            if self.chance(0.5) {
                self.pause();
            }
        }
        self.call(IT, Op::Info);
    }
}

/// A receiver of numbered segments.
#[derive(Clone, Debug, Default)]
struct Receiver {
    next: i64,
    /// What came out of order, the newest first.
    sacked: Vec<(i64, i64)>,
}

impl Receiver {
    /// Segment `n` comes: the acknowledgment, and the SACK blocks with D-SACK first.
    fn gets(&mut self, n: i64) -> (i64, Vec<(i64, i64)>) {
        let known = n < self.next || self.sacked.iter().any(|(a, b)| (*a..*b).contains(&n));
        let mut sack = Vec::new();
        if known {
            sack.push((n, n + 1));
        } else if n == self.next {
            self.next += 1;
            while let Some(at) = self.sacked.iter().position(|i| i.0 == self.next) {
                self.next = self.sacked.remove(at).1;
            }
        } else {
            let mut range = (n, n + 1);
            self.sacked.retain(|other| {
                let touches = other.0 == range.1 || other.1 == range.0;
                if touches {
                    range = (range.0.min(other.0), range.1.max(other.1));
                }
                !touches
            });
            self.sacked.insert(0, range);
        }
        sack.extend(&self.sacked);
        (self.next, sack)
    }
}
