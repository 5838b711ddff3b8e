//! All parameters of a trial, drawn from one number. They are printed when a trial fails, and removed one by
//! one to find which of them the failure needs.

use super::paced::{self, Paced};
use farpace_lab::scenario::{PeriodSpec, PolicerSpec};
use farpace_path::{BurstLossConfig, Jump, MiddleboxConfig, MtuChange, StripOn};
use farpace_tcp::FLOOR_IPV4;
use farpace_tcp::config::{
    AckControlMode, Congestion, DelayedAck, EcnMode, MtuProbing, Profile, RequestRule, Rto, Settings,
    TimeoutProcedure,
};
use farpace_units::{ByteCount, Instant, Packets, RandomStream, Rate, Span};
use farpace_wire::tcp::TcpFlags;
use std::fmt;

/// A trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Knobs {
    /// The seed of random numbers during the trial: losses, initial sequence numbers.
    pub seed: u64,
    /// The client (it connects) and the server.
    pub ends: [End; 2],
    /// Their programs.
    pub programs: [Program; 2],
    /// The number of connections, and the time from one to the next.
    pub connections: u32,
    pub every: Span,
    /// From the client to the server, and back.
    pub directions: [DirectionKnobs; 2],
    /// From here on there are no impairments.
    pub heal: Span,
}

/// TCP at one end.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    pub settings: Settings,
    /// Segments taken from the connection in one call.
    pub budget: usize,
    /// Jumps of the timestamp clock.
    pub jumps: Vec<Jump>,
}

/// The program at one end of a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Program {
    /// It sends this number of bytes in total,
    pub total: u64,
    /// this number in each turn,
    pub turn: u64,
    /// at most this number in each call,
    pub piece: usize,
    /// and begins each turn when this has arrived.
    pub wait: Wait,
    pub close: Close,
    pub read: Read,
    /// It aborts when it has sent and received this number of bytes together.
    pub abort: Option<u64>,
}

/// The condition for a turn of sending.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wait {
    Nothing,
    /// None for the first turn; for each later one another turn of the peer.
    Answer,
    /// For each turn, the first included, another turn of the peer.
    Request,
    /// The peer has closed: half-close.
    PeerClosed,
}

/// When it closes, after it has sent everything.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Close {
    AtOnce,
    AfterPeer,
}

/// How it reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Read {
    Eager,
    Every(Span),
    /// Not at all for a while, after it has read this much.
    Pause {
        after: u64,
        lasts: Span,
    },
}

/// One direction of the path. The impairments end when the network heals; rate, delay and queue stay.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectionKnobs {
    pub rate: Rate,
    pub delay: Span,
    pub queue: Packets,
    /// A NIC paces, with queues of its own.
    pub paced: Option<Paced>,
    pub policer: Option<PolicerSpec>,
    pub loss: f64,
    pub burst: Option<BurstLossConfig>,
    pub corrupt: f64,
    pub duplicate: f64,
    pub reorder: Option<(f64, Span)>,
    pub jitter: Span,
    pub outages: Vec<PeriodSpec>,
    pub mtu: Vec<MtuChange>,
    /// No ICMP messages for packets that are too big.
    pub mtu_silent: bool,
    /// The last MTU holds forever.
    pub mtu_stays: bool,
    /// Segments are cut in two.
    pub split: f64,
    /// Packets are marked CE, and marks are removed.
    pub marks: Option<(f64, f64)>,
    /// A middlebox that drops or changes ACK requests and their answers.
    pub middlebox: Option<MiddleboxConfig>,
    /// One of so many pure ACKs goes on, none later than this.
    pub thinning: Option<(u32, Span)>,
    /// These two stay forever.
    pub middleboxes_stay: bool,
}

/// A clock with at least this tick makes timers of different connections fire together.
const COARSE: Span = Span::from_millis(10);
/// Longest jump of a clock. Three of them must be less than half of the number space, or they would be a jump
/// backward.
const MAX_TICKS: u64 = 1 << 29;

pub fn pick<T: Clone>(rng: &mut RandomStream, from: &[T]) -> T {
    from[rng.below(from.len() as u64) as usize].clone()
}

/// A number from `min` to `max`, with equal probability for each power of two.
pub fn spread(rng: &mut RandomStream, min: u64, max: u64) -> u64 {
    let octaves = u64::from(max.max(1).ilog2() - min.max(1).ilog2()) + 1;
    let floor = min << rng.below(octaves).min(40);
    (floor + rng.below(floor.max(1))).clamp(min, max)
}

fn span(rng: &mut RandomStream, min: Span, max: Span) -> Span {
    Span::from_micros(spread(rng, min.as_micros(), max.as_micros()))
}

/// With a probability; nothing otherwise.
pub fn sometimes<T>(rng: &mut RandomStream, p: f64, some: impl FnOnce(&mut RandomStream) -> T) -> Option<T> {
    // Drawn in any case, so that one knob does not change all later ones.
    let mut own = RandomStream::new(rng.next_u64(), "knob");
    rng.chance(p).then(|| some(&mut own))
}

/// The knobs that are not at their defaults, a line for each part.
impl fmt::Display for Knobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |text: String| {
            let off = ["None", "[]", "0.0", "0 s"].map(|value| format!(": {value}"));
            let on = |part: &&str| !off.iter().any(|o| part.trim_end_matches([' ', '}']).ends_with(o));
            text.split(", ").filter(on).collect::<Vec<_>>().join(", ")
        };
        writeln!(f, "  seed {}, the network heals at {}", self.seed, self.heal)?;
        writeln!(f, "  {} connections, one every {}", self.connections, self.every)?;
        for (i, name) in ["client", "server"].into_iter().enumerate() {
            writeln!(f, "  {name}: {}", plain(format!("{:?}", self.programs[i])))?;
            writeln!(f, "    {}", plain(format!("{:?}", self.ends[i])))?;
            writeln!(f, "    sends over {}", plain(format!("{:?}", self.directions[i])))?;
        }
        Ok(())
    }
}

impl Knobs {
    /// The trial of a seed.
    pub fn draw(seed: u64) -> Knobs {
        let mut rng = RandomStream::new(seed, "knobs");
        let heal = span(&mut rng, Span::from_secs(1), Span::from_secs(150));
        let ends = [end(&mut rng, heal), end(&mut rng, heal)];
        // Net/2 backs off to 64 timeouts at most, so it may give up after R2, 100 s (RFC 9293 §3.8.3).
        let net2 = ends.iter().any(|e| e.settings.resolve().is_ok_and(|c| c.rto == Rto::Net2));
        let heal = if net2 { heal.min(Span::from_secs(90)) } else { heal };
        let directions = directions(&mut rng, heal);
        let connections = sometimes(&mut rng, 0.25, |r| spread(r, 2, 40) as u32).unwrap_or(1);
        let every =
            span(&mut rng, Span::from_micros(1), Span::from_secs(2)) * (connections as u64 - 1).min(1);
        let mut directions = directions;
        for i in 0..2 {
            // Without messages and without probing no sender finds the MTU.
            let probing = ends[i].settings.resolve().map(|c| c.mtu_probing);
            let not_reading = probing == Ok(MtuProbing::Off) && directions[i].mtu_silent;
            let floor = directions[i].mtu.last().is_none_or(|c| c.mtu.get() < u64::from(FLOOR_IPV4));
            directions[i].mtu_stays &= !not_reading && !floor;
            // Timers that count ticks fire together, and a queue of two packets would pass the same two
            // connections each time, until the others have given up.
            let coarse = ends[i].settings.resolve().is_ok_and(|c| c.clock.is_some_and(|t| t >= COARSE));
            if coarse {
                directions[i].queue = directions[i].queue.max(Packets::new(connections));
            }
        }
        let mut programs = programs(&mut rng);
        for (i, p) in programs.iter_mut().enumerate() {
            let max = max(&ends, &directions, i) / u64::from(connections);
            // A turn has at least about a segment, or a trial of many round trips takes virtual days.
            p.turn = p.turn.min(max);
            p.total = p.total.min(max).min(p.turn.saturating_mul(100));
        }
        // A random stream of its own: trials without NICs are the same as before NICs existed.
        let mut rng = RandomStream::new(seed, "nics");
        for (i, direction) in directions.iter_mut().enumerate() {
            direction.paced = paced::draw(&mut rng, direction, &ends, i, connections);
        }
        Knobs { seed, ends, programs, connections, every, directions, heal }
    }
}

/// Bytes that an end may send so that a trial stays short: a number of segments and a number of buffers.
fn max(ends: &[End; 2], directions: &[DirectionKnobs; 2], i: usize) -> u64 {
    let mss = |e: &End| u64::from(e.settings.mss.unwrap_or(1460));
    let segment = mss(&ends[0]).min(mss(&ends[1]));
    let buffer = |b: Option<ByteCount>| b.map_or(u64::MAX, ByteCount::get);
    let link = directions[i].rate.bytes_in(Span::from_secs(60)).get();
    (segment * 1_500)
        .min(buffer(ends[i].settings.send_buffer).saturating_mul(150))
        .min(buffer(ends[1 - i].settings.receive_buffer).saturating_mul(150))
        .min(link)
        .max(1)
}

/// Effects of a timeout.
const TIMEOUTS: [TimeoutProcedure; 4] = [
    TimeoutProcedure::Conventional,
    TimeoutProcedure::FRto,
    TimeoutProcedure::Aen,
    TimeoutProcedure::AenLiteral,
];

/// Any configuration that a scenario can express.
fn end(rng: &mut RandomStream, heal: Span) -> End {
    let mss = pick(rng, &[88, 88, 536, 1000, 1460, 1460, 8960]);
    let segment = u64::from(mss);
    let receive = [segment, 2 * segment + 1, 10_000, 65_535, 70_001, 4_000_000, 4_000_000, 1 << 30];
    let settings = Settings {
        profile: Some(pick(rng, &Profile::ALL)),
        congestion: sometimes(rng, 0.3, |r| pick(r, &Congestion::ALL)),
        rto: sometimes(rng, 0.3, |r| pick(r, &[Rto::Rfc6298, Rto::Linux26, Rto::Net2, Rto::Cdl])),
        min_rto: sometimes(rng, 0.2, |r| span(r, Span::from_millis(10), Span::from_secs(1))),
        delayed_ack: sometimes(rng, 0.5, |r| pick(r, &DelayedAck::ALL)),
        mss: Some(mss),
        sack: sometimes(rng, 0.5, |r| r.chance(0.6)),
        timestamps: sometimes(rng, 0.5, |r| r.chance(0.6)),
        window_scale: sometimes(rng, 0.3, |r| r.chance(0.5)),
        receive_buffer: Some(ByteCount::new(pick(rng, &receive))),
        send_buffer: Some(ByteCount::new(pick(rng, &[1, 100, 5_000, 100_000, 16_000_000, 16_000_000]))),
        initial_window: sometimes(rng, 0.3, |r| Packets::new(pick(r, &[1, 10, 1000]))),
        initial_ssthresh: sometimes(rng, 0.2, |r| Packets::new(pick(r, &[2, 100]))),
        cwnd_clamp: sometimes(rng, 0.2, |r| Packets::new(pick(r, &[1, 2, 7, 100]))),
        cwnd_floor: sometimes(rng, 0.05, |r| Packets::new(pick(r, &[1, 2, 9]))),
        nagle: sometimes(rng, 0.2, |r| r.chance(0.5)),
        ecn: sometimes(rng, 0.4, |r| {
            pick(r, &[EcnMode::Off, EcnMode::On, EcnMode::Accurate, EcnMode::Dctcp])
        }),
        mtu_probing: sometimes(rng, 0.3, |r| {
            pick(r, &[MtuProbing::Off, MtuProbing::BlackHole, MtuProbing::Always])
        }),
        // Longer than every impairment: these timeouts must have no effect.
        keep_alive: sometimes(rng, 0.2, |_| Span::from_secs(400)),
        user_timeout: sometimes(rng, 0.2, |_| Span::from_secs(7_200)),
        tail_loss_probe: sometimes(rng, 0.1, |r| r.chance(0.5)),
        timeout: sometimes(rng, 0.2, |r| pick(r, &TIMEOUTS)),
        undo: sometimes(rng, 0.1, |r| r.chance(0.5)),
        pacing: sometimes(rng, 0.2, |r| r.chance(0.5)),
        ack_control: sometimes(rng, 0.5, |r| pick(r, &AckControlMode::ALL)),
        clock: sometimes(rng, 0.2, |r| Span::from_micros(pick(r, &[1, 1_000, 10_000, 500_000]))),
        ..Settings::default()
    };
    let rules = RequestRule::ALL.into_iter().filter(|_| rng.chance(0.3)).collect();
    let asks = settings.ack_control.is_some_and(|control| control != AckControlMode::Off);
    let settings = Settings { ack_requests: asks.then_some(rules), ..settings };
    // A floor above the clamp is refused.
    let cwnd_floor =
        settings.cwnd_floor.filter(|floor| settings.cwnd_clamp.is_none_or(|clamp| *floor <= clamp));
    let settings = Settings { cwnd_floor, ..settings };
    // Settings that a profile does not have stay at its defaults.
    let historical = Settings { tail_loss_probe: None, timeout: None, undo: None, ..settings.clone() };
    let settings = [settings, historical].into_iter().find(|s| s.resolve().is_ok()).unwrap_or_default();
    let jumps = sometimes(rng, 0.1, |r| {
        let jump = |r: &mut RandomStream| Jump {
            at: Instant::ZERO + Span::from_nanos(r.below(heal.as_nanos())),
            ticks: spread(r, 1, MAX_TICKS) as u32,
        };
        (0..=r.below(2)).map(|_| jump(r)).collect()
    });
    End { settings, budget: 1 + rng.below(70) as usize, jumps: jumps.unwrap_or_default() }
}

/// How much each end sends, when, and which end closes.
fn programs(rng: &mut RandomStream) -> [Program; 2] {
    let total = spread(rng, 1, 3_000_000);
    let silent = Program {
        total: 0,
        turn: u64::MAX,
        piece: spread(rng, 1, 1 << 18) as usize,
        wait: Wait::Nothing,
        close: Close::AfterPeer,
        read: Read::Eager,
        abort: None,
    };
    let all = Program { total, close: Close::AtOnce, ..silent };
    let mut programs = match rng.below(8) {
        0 | 1 => [all, silent],
        // The server sends first, and only the server.
        2 => [silent, all],
        3 => [all, all],
        // No data: both close at once.
        4 => [Program { total: 0, ..all }, Program { total: rng.below(2), ..all }],
        // The answer comes when the request is complete.
        5 => [all, Program { wait: Wait::PeerClosed, ..all }],
        _ => {
            let (request, answer) = (spread(rng, 1, 20_000), spread(rng, 1, 60_000));
            let turns = spread(rng, 1, 60);
            let client = Program { total: request * turns, turn: request, wait: Wait::Answer, ..all };
            let server = Program { total: answer * turns, turn: answer, wait: Wait::Request, ..silent };
            [client, server]
        }
    };
    for p in &mut programs {
        let after = rng.below(total);
        p.read = sometimes(rng, 0.3, |r| match r.chance(0.6) {
            true => Read::Every(span(r, Span::from_millis(1), Span::from_millis(500))),
            false => Read::Pause { after, lasts: span(r, Span::from_secs(1), Span::from_secs(90)) },
        })
        .unwrap_or(Read::Eager);
        p.abort = sometimes(rng, 0.06, |r| r.below(total));
    }
    programs
}

fn directions(rng: &mut RandomStream, heal: Span) -> [DirectionKnobs; 2] {
    let rate = spread(rng, 20_000, 10_000_000_000);
    let asymmetry = sometimes(rng, 0.3, |r| spread(r, 2, 1_000)).unwrap_or(1);
    let delay = span(rng, Span::from_micros(10), Span::from_secs(1));
    let rates = [rate, (rate / asymmetry).max(10_000)];
    let order = rng.below(2) as usize;
    [direction(rng, rates[order], delay, heal), direction(rng, rates[1 - order], delay, heal)]
}

fn direction(rng: &mut RandomStream, rate: u64, delay: Span, heal: Span) -> DirectionKnobs {
    // A queue of more than some seconds would be an impairment that the bound of a trial does not allow for.
    let longest = (rate * 4 / (8 * 1_500)).clamp(2, 1_000);
    let within = |r: &mut RandomStream| Span::from_nanos(r.below(heal.as_nanos()));
    let chance = |r: &mut RandomStream, max: f64| {
        let unit = r.unit();
        unit * unit * max
    };
    let mut outages: Vec<PeriodSpec> = sometimes(rng, 0.3, |r| {
        let outage = |r: &mut RandomStream| PeriodSpec {
            at: within(r),
            lasts: span(r, Span::from_millis(10), Span::from_secs(60)),
        };
        (0..1 + r.below(4)).map(|_| outage(r)).collect()
    })
    .unwrap_or_default();
    outages.sort_by_key(|o| o.at);
    let mut up = Span::ZERO;
    outages.retain(|o| {
        let apart = o.at >= up;
        up = if apart { o.at + o.lasts } else { up };
        apart
    });
    let mut mtu: Vec<MtuChange> = sometimes(rng, 0.2, |r| {
        let change = |r: &mut RandomStream| MtuChange {
            at: Instant::ZERO + within(r),
            mtu: ByteCount::new(pick(r, &[68, 140, 296, 576, 1_280, 1_400, 1_500, 9_000])),
        };
        (0..1 + r.below(3)).map(|_| change(r)).collect()
    })
    .unwrap_or_default();
    mtu.sort_by_key(|c| c.at);
    mtu.dedup_by_key(|c| c.at);
    DirectionKnobs {
        rate: Rate::from_bits_per_sec(rate),
        delay,
        queue: Packets::new(spread(rng, 2, longest) as u32),
        paced: None,
        policer: sometimes(rng, 0.15, |r| PolicerSpec {
            rate: Rate::from_bits_per_sec((rate as f64 * (0.2 + 0.8 * r.unit())) as u64),
            burst: ByteCount::new(spread(r, 9_100, 200_000)),
            refill: Span::from_micros(r.below(3) * 1_000),
            phase: Span::ZERO,
            counts: Default::default(),
        }),
        loss: sometimes(rng, 0.4, |r| chance(r, 0.3)).unwrap_or(0.0),
        burst: sometimes(rng, 0.2, |r| BurstLossConfig {
            begin: chance(r, 0.1),
            end: 0.02 + chance(r, 0.9),
            good: 0.0,
            bad: 0.5 + 0.5 * r.unit(),
        }),
        corrupt: sometimes(rng, 0.25, |r| chance(r, 0.2)).unwrap_or(0.0),
        duplicate: sometimes(rng, 0.25, |r| chance(r, 0.3)).unwrap_or(0.0),
        reorder: sometimes(rng, 0.3, |r| {
            (chance(r, 0.5), span(r, Span::from_micros(10), Span::from_secs(5)))
        }),
        jitter: sometimes(rng, 0.2, |r| span(r, Span::from_micros(1), Span::from_millis(500)))
            .unwrap_or(Span::ZERO),
        outages,
        mtu,
        mtu_silent: rng.chance(0.5),
        mtu_stays: rng.chance(0.6),
        split: sometimes(rng, 0.15, |r| chance(r, 0.5)).unwrap_or(0.0),
        marks: sometimes(rng, 0.3, |r| (chance(r, 1.0), if r.chance(0.3) { chance(r, 1.0) } else { 0.0 })),
        middlebox: sometimes(rng, 0.25, middlebox),
        thinning: sometimes(rng, 0.2, |r| {
            (spread(r, 2, 64) as u32, span(r, Span::from_micros(10), Span::from_millis(200)))
        }),
        middleboxes_stay: rng.chance(0.5),
    }
}

/// It removes only what ACK requests need. A box that removes window scaling or timestamps from one SYN of
/// two leaves ends that disagree, and they cannot repair that.
fn middlebox(rng: &mut RandomStream) -> MiddleboxConfig {
    let experimental = rng.chance(0.5).then_some([253, 254]);
    MiddleboxConfig {
        strip: experimental.into_iter().flatten().collect(),
        strip_on: pick(rng, &[StripOn::Syn, StripOn::Data, StripOn::All]),
        clear: if rng.chance(0.5) { MiddleboxConfig::RESERVED } else { TcpFlags::NONE },
        drop_without_ack: rng.chance(0.5),
    }
}
