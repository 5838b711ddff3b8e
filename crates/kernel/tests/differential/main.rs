//! The congestion controls in C beside those of the engine: both are told the same, and their windows and
//! pacing rates are compared after each event.
//!
//! The tolerance: the C counts in fixed point (`bpf/fixed.h`), so that a window may be a segment off by
//! rounding. Where a decision stands on a knife's edge both may decide differently; so a few answers may be
//! farther off. Each test says how many.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod driver;
mod pair;
mod replay;

use farpace_kernel::KernelControl;
use farpace_tcp::RateSample;
use farpace_tcp::cc::{AckSample, Cut};

use farpace_units::{Instant, Packets, RandomStream, Rate, Span};
use pair::{Happening, MSS, Pair};

/// A window or a rate is near another if they differ by at most this part, and a segment.
const NEAR: f64 = 0.01;

/// The C counts windows up to this, segments (`bpf/fixed.h`).
const MAX_WINDOW: u64 = 1 << 22;

/// How near the answers were.
#[derive(Debug, Default)]
struct Nearness {
    answers: usize,
    /// Answers in which the window, the threshold or the pacing rate was not [`NEAR`].
    apart: usize,
    farthest: f64,
    largest_window: u64,
}

impl Nearness {
    fn part_apart(&self) -> f64 {
        self.apart as f64 / self.answers.max(1) as f64
    }
}

fn compare(control: KernelControl, all: &[(Instant, Happening)]) -> Nearness {
    let mut pair = Pair::new(control, 10);
    let mut nearness = Nearness::default();
    for (now, happening) in all {
        let (distance, rust) = pair.tell(*now, happening);
        // Beyond this the C counts no further.
        if rust.cwnd >= MAX_WINDOW {
            break;
        }
        let worst = distance.window.max(distance.threshold).max(distance.pacing);
        nearness.answers += 1;
        nearness.apart += usize::from(worst > NEAR);
        nearness.farthest = nearness.farthest.max(worst);
        nearness.largest_window = nearness.largest_window.max(rust.cwnd);
    }
    nearness
}

/// A transfer from `a` to `b` over a path with these keys.
fn transfer(path: &str, size: &str, congestion: &str) -> String {
    format!(
        "title = \"t\"\nduration = \"60 s\"\n[hosts.a]\n[hosts.b]\n[[links]]\nname = \"l\"\nbetween = \
         [\"a\", \"b\"]\n{path}\n\
         [[flows]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\nsize = \"{size}\"\nsender = {{ {congestion} }}\n\
         receiver = {{ profile = \"farpace\" }}\n"
    )
}

const PATHS: [(&str, &str, &str); 8] = [
    (
        "satellite",
        "rate = \"10 Mbit/s\"\ndelay = \"250 ms\"\nqueue = \"625 kB\"\nforward = { bit_errors = 1e-7 }\n\
         backward = { bit_errors = 1e-7 }",
        "20 MB",
    ),
    (
        "lossy",
        "rate = \"100 Mbit/s\"\ndelay = \"20 ms\"\nqueue = \"500 packets\"\nforward = { loss = 0.01 }",
        "40 MB",
    ),
    // Long enough for trains at half of the rate.
    ("fat", "rate = \"400 Mbit/s\"\ndelay = \"30 ms\"\nqueue = \"3 MB\"", "40 MB"),
    ("small queue", "rate = \"100 Mbit/s\"\ndelay = \"20 ms\"\nqueue = \"32 packets\"", "40 MB"),
    (
        "policed",
        "rate = \"100 Mbit/s\"\ndelay = \"10 ms\"\nforward = { policer = { rate = \"20 Mbit/s\", burst \
         = \"500 kB\" } }",
        "20 MB",
    ),
    (
        "low satellites",
        "rate = \"50 Mbit/s\"\ndelay = \"20 ms\"\nqueue = \"256 kB\"\nforward = { outages = [{ at = \"5 s\", \
         lasts = \"100 ms\" }] }\n\
         schedule = { period = \"20 s\", steps = [{ at = \"0 s\", rate = \"50 Mbit/s\", delay = \"20 ms\" }, \
         { at = \"5 s\", rate = \"20 Mbit/s\", delay = \"35 ms\" }, { at = \"10 s\", rate = \"40 Mbit/s\", \
         delay = \"15 ms\" }] }",
        "60 MB",
    ),
    // Jitter hides the steps, and the window that comes down shows them.
    (
        "longer",
        "rate = \"8 Mbit/s\"\ndelay = \"200 ms\"\nqueue = \"800 kB\"\nforward = { jitter = \"20 ms\" }\n\
         schedule = { period = \"20 s\", steps = [{ at = \"0 s\", rate = \"8 Mbit/s\", delay = \"200 ms\" }, \
         { at = \"11 s\", rate = \"8 Mbit/s\", delay = \"320 ms\" }] }",
        "60 MB",
    ),
    (
        "outage",
        "rate = \"20 Mbit/s\"\ndelay = \"40 ms\"\nforward = { outages = [{ at = \"3 s\", lasts = \"4 s\" }] \
         }",
        "20 MB",
    ),
];

/// Breaks: control `farpace` in the kernel is not that of the engine: on the ACKs of each of these paths its
/// window or its pacing rate would be another.
#[test]
fn farpace_on_acks_of_the_lab() {
    for (name, path, size) in PATHS {
        let all = replay::recorded(&transfer(path, size, "profile = \"farpace\""));
        let nearness = compare(KernelControl::Farpace, &all);
        println!("{name}: {nearness:?}");
        assert!(nearness.answers > 5_000 && nearness.largest_window > 40, "{name}: {nearness:?}");
        assert_eq!(nearness.apart, 0, "{name}: {nearness:?}");
    }
}

/// Breaks: in the kernel windows of less than four segments are another, or are paced at another rate, than
/// in the engine.
#[test]
fn farpace_below_four_segments() {
    let policer = "forward = { policer = { rate = \"1.4 Mbit/s\", burst = \"7 kB\" } }";
    let path = &format!("rate = \"6 Mbit/s\"\ndelay = \"4 ms\"\n{policer}");
    let all = replay::recorded(&transfer(path, "8 MB", "profile = \"farpace\""));
    let nearness = compare(KernelControl::Farpace, &all);
    println!("{nearness:?}");
    assert!(nearness.answers > 5_000, "{nearness:?}");
    assert_eq!(nearness.apart, 0, "{nearness:?}");
}

/// Breaks: TCP-STAR in the kernel is not that of the engine.
#[test]
fn star_on_acks_of_the_lab() {
    for (name, path, size) in PATHS {
        let all = replay::recorded(&transfer(path, size, "congestion = \"star-robust\""));
        let nearness = compare(KernelControl::Star, &all);
        println!("{name}: {nearness:?}");
        assert!(nearness.answers > 5_000 && nearness.largest_window > 40, "{name}: {nearness:?}");
        // Slow start ends at the threshold, which rounding moves by a segment: then one ACK for forty counts
        // in one of them alone.
        assert!(nearness.part_apart() < 0.05 && nearness.farthest < 0.1, "{name}: {nearness:?}");
    }
}

/// Events at random: round trips, rates and losses that wander, with cuts, timeouts and undone cuts.
fn at_random(seed: u64, events: usize) -> Vec<(Instant, Happening)> {
    let mut random = RandomStream::new(seed, "differential");
    let base = 1_000 + random.below(600_000);
    // How often the queue grows, and by what part of the round trip at most.
    let (grows, by) = (random.unit() * 0.7, 50 + random.below(1_000));
    let mut now = Instant::ZERO + Span::from_secs(1);
    let (mut delivered, mut queue, mut rate) = (0u64, 0, 100_000 + random.below(50_000_000));
    let mut all = vec![(now, Happening::Established(Span::from_micros(base)))];
    for _ in 0..events {
        now += Span::from_micros(1 + random.below(base / 10 + 1));
        let happening = match random.below(1_000) {
            0 => Happening::Timeout,
            1 => Happening::Undo,
            2..6 => Happening::Cut(if random.chance(0.5) { Cut::FastRetransmit } else { Cut::Ecn }),
            _ => {
                queue =
                    if random.chance(grows) { queue + random.below(base / by + 1) } else { queue * 9 / 10 };
                rate = (rate * (95 + random.below(11)) / 100).clamp(10_000, 1_000_000_000);
                let newly = 1 + random.below(4);
                let flight = 1 + random.below(200);
                let prior = delivered.saturating_sub(flight);
                delivered += newly;
                let rtt = Some(Span::from_micros(base + queue)).filter(|_| random.chance(0.9));
                let sample = RateSample {
                    prior_delivered: prior,
                    total_delivered: delivered,
                    rate: random.chance(0.9).then(|| Rate::from_bits_per_sec(rate * 8)),
                    rtt,
                    ..RateSample::default()
                };
                let ack = AckSample {
                    lost: Packets::new(if random.chance(0.02) { 1 } else { 0 }),
                    in_flight: Packets::new(u32::try_from(flight).unwrap()),
                    rtt,
                    min_rtt: Some(Span::from_micros(base)),
                    srtt: Span::from_micros(base + queue / 2),
                    mss: MSS,
                    cwnd_limited: random.chance(0.9),
                    ece: random.chance(0.002),
                    rate: Some(sample),
                    ..AckSample::of(now, Packets::new(u32::try_from(newly).unwrap()))
                };
                Happening::Ack(Box::new(ack), random.chance(0.9))
            }
        };
        all.push((now, happening));
    }
    all
}

/// Breaks: what no run of the lab has come to: both controls on events at random, from many seeds.
#[test]
fn both_on_events_at_random() {
    for control in KernelControl::ALL {
        let mut all = Nearness::default();
        for seed in 0..40 {
            let one = compare(control, &at_random(seed, 2_000));
            all = Nearness {
                answers: all.answers + one.answers,
                apart: all.apart + one.apart,
                farthest: all.farthest.max(one.farthest),
                largest_window: all.largest_window.max(one.largest_window),
            };
        }
        println!("{control}: {all:?}");
        assert!(all.answers > 50_000 && all.largest_window > 1_000, "{control}: {all:?}");
        // A probe's verdict on a knife's edge holds for some round trips, and random events have many edges.
        assert!(all.part_apart() < 0.03, "{control}: {all:?}");
    }
}

/// A start whose first flight tells far too high a rate: ACKs of ten segments at once. Then the receiver's
/// window, or the program, lets `flight` segments through in each round trip.
fn cut_short(flight: u64, app_limited: bool) -> Vec<(Instant, Happening)> {
    const RTT: Span = Span::from_millis(560);
    let mut all = vec![(Instant::ZERO + Span::from_secs(1), Happening::Established(RTT))];
    let (mut began, mut prior, mut total) = (Instant::ZERO + Span::from_secs(1), 0, 0);
    for round in 0..20 {
        let first = round == 0;
        let (acks, told, apart) = if first { (5, 2, 144) } else { (flight, 1, 1_200) };
        began += RTT;
        for n in 1..=acks {
            total += told;
            let now = began + Span::from_micros(apart * n);
            let sample = RateSample {
                prior_delivered: prior,
                total_delivered: total,
                rate: Some(Rate::from_bits_per_sec(1_130_000)),
                rtt: Some(RTT),
                app_limited,
                ..RateSample::default()
            };
            let ack = AckSample {
                in_flight: Packets::new(u32::try_from(acks + 1 - n).unwrap()),
                rtt: Some(RTT),
                min_rtt: Some(RTT),
                srtt: RTT,
                mss: MSS,
                cwnd_limited: first,
                rate: Some(sample),
                ..AckSample::of(now, Packets::new(u32::try_from(told).unwrap()))
            };
            all.push((now, Happening::Ack(Box::new(ack), true)));
        }
        prior = total;
    }
    all
}

/// Breaks: in the kernel a train that the receiver's window or the program has cut short ends the start, or
/// tells another rate than in the engine.
#[test]
fn farpace_after_trains_that_were_cut_short() {
    for (flight, app_limited) in [(55, false), (55, true), (5, false), (140, false)] {
        let nearness = compare(KernelControl::Farpace, &cut_short(flight, app_limited));
        println!("{flight} {app_limited}: {nearness:?}");
        assert!(nearness.apart == 0 && nearness.largest_window >= 160, "{flight}: {nearness:?}");
    }
}
