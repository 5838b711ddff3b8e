//! Extremes: link rates from 1 bit/s to 1 Tbit/s, centuries of time, every MTU, rates that change at every
//! step, reused class numbers, and callers that are early or late.

use super::*;
use farpace_units::RandomStream;

/// A random scenario, derived from a seed.
struct ExtremeScenario {
    rng: RandomStream,
    scheduler: Box<dyn Scheduler<Numbered>>,
    link_rate: Rate,
    mtu: u64,
    now: Instant,
    /// The end of the wait that the scheduler asked for. A caller that asks earlier must get a wait
    /// again.
    waits: Instant,
    /// Packet numbers queued per class; none if the class does not exist.
    queues: Vec<Option<VecDeque<usize>>>,
    number: usize,
}

/// Log-uniform from 1 to `max`.
fn spread(rng: &mut RandomStream, max: u64) -> u64 {
    let bits = rng.below(u64::from(max.max(1).ilog2()) + 1);
    ((1 << bits) + rng.below(1 << bits)).min(max.max(1))
}

impl ExtremeScenario {
    fn new(seed: u64, new: NewScheduler) -> Self {
        let mut rng = RandomStream::new(seed, "extremes");
        let max = LinkClock::MAX_RATE.bits_per_sec();
        let link_rate = Rate::from_bits_per_sec(if rng.chance(0.2) { max } else { spread(&mut rng, max) });
        let mtu = [68, 1_500, 9_000, 65_535][rng.below(4) as usize];
        // The clock of a link of 16 Gbit/s ends after half of the range of time.
        let now = Instant::from_nanos(spread(&mut rng, u64::MAX / 2));
        let scheduler = new(link_rate, ByteCount::new(mtu)).unwrap();
        ExtremeScenario { rng, scheduler, link_rate, mtu, now, waits: now, queues: Vec::new(), number: 0 }
    }

    fn rate(&mut self) -> Rate {
        Rate::from_bits_per_sec(spread(&mut self.rng, self.link_rate.bits_per_sec()))
    }

    /// The number of a class that exists, existed, or never existed.
    fn any_class(&mut self) -> u32 {
        self.rng.below(self.queues.len() as u64 + 1) as u32
    }

    fn step(&mut self) {
        match self.rng.below(20) {
            0 | 1 => {
                let kinds = [ClassKind::Paced(self.rate()), ClassKind::Follows, ClassKind::Normal];
                let limit = QueueLimit::Packets(Packets::new(1 + self.rng.below(40) as u32));
                let kind = kinds[self.rng.below(3) as usize];
                if let Ok(id) = self.scheduler.add_class(ClassSpec { kind, limit }) {
                    if self.queues.len() == id.index() {
                        self.queues.push(None);
                    }
                    assert!(self.queues[id.index()].is_none(), "two classes have one number");
                    self.queues[id.index()] = Some(VecDeque::new());
                }
            }
            2 => {
                let class = self.any_class();
                self.remove(class);
            }
            3..=5 => {
                let (class, rate) = (ClassId(self.any_class()), self.rate());
                for n in 0..self.rng.below(4) {
                    // It may be refused.
                    _ = self.scheduler.set_rate(class, Rate::from_bits_per_sec(rate.bits_per_sec() >> n));
                }
            }
            6..=12 => {
                let class = self.any_class();
                for _ in 0..1 + self.rng.below(6) {
                    self.enqueue(class);
                }
            }
            13 => self.now += Span::from_nanos(spread(&mut self.rng, 1 << 50)),
            _ => {
                for _ in 0..1 + self.rng.below(10) {
                    self.serve(true);
                }
            }
        }
        assert_eq!(self.scheduler.backlog().packets, self.queued() as u64);
    }

    fn remove(&mut self, class: u32) {
        let queued = self.queues.get_mut(class as usize).and_then(Option::take);
        let packets = self.scheduler.remove_class(ClassId(class)).ok();
        let numbers = packets.map(|packets| packets.iter().map(|p| p.number).collect::<VecDeque<_>>());
        assert_eq!(numbers, queued);
    }

    fn enqueue(&mut self, class: u32) {
        self.number += 1;
        let len = if self.rng.chance(0.5) { self.mtu + 14 } else { spread(&mut self.rng, self.mtu) };
        // Rates that jump between the ends of the range.
        let hint = [None, Some(Rate::from_bits_per_sec(1)), Some(self.link_rate), Some(self.rate())];
        let packet = Numbered { number: self.number, len, hint: hint[self.rng.below(4) as usize] };
        if self.scheduler.enqueue(self.now, ClassId(class), packet).is_ok() {
            self.waits = self.now;
            self.queues[class as usize].as_mut().unwrap().push_back(self.number);
        }
    }

    fn queued(&self) -> usize {
        self.queues.iter().flatten().map(VecDeque::len).sum()
    }

    /// Asks the scheduler when the link is idle, and does what it returns. If `loosely`, it may ask before a
    /// wait is over, or late. False if nothing is queued.
    fn serve(&mut self, loosely: bool) -> bool {
        if !loosely || self.rng.chance(0.7) {
            self.now = self.now.max(self.waits);
        }
        if loosely && self.rng.chance(0.3) {
            self.now += Span::from_nanos(spread(&mut self.rng, 1 << 40));
        }
        let next = self.scheduler.dequeue(self.now);
        assert_eq!(self.queued() == 0, next == Next::Empty, "{next:?} with {} queued", self.queued());
        let bytes = match next {
            Next::Packet { class, packet } => {
                let queue = self.queues[class.index()].as_mut().unwrap();
                assert_eq!(queue.pop_front(), Some(packet.number), "wrong order or class");
                wire_len(packet.len())
            }
            Next::Gap(gap) => {
                let full = self.mtu + 14 + 24;
                assert!((84..=full).contains(&gap.get()), "a gap of {gap}");
                gap
            }
            Next::Wait(until) => {
                assert!(until > self.now, "at {:?} it asked to wait until {until:?}", self.now);
                self.waits = until;
                return true;
            }
            Next::Empty => return false,
        };
        self.now += self.link_rate.time_for(bytes);
        self.waits = self.now;
        true
    }

    /// Empties all queues except those of very slow classes, within a bounded number of steps.
    fn drain(&mut self) {
        for class in 0..self.queues.len() as u32 {
            let rate = self.scheduler.stats(ClassId(class)).unwrap_or_default().rate.bits_per_sec();
            if rate > 0 && rate < self.link_rate.bits_per_sec() / 1_000 {
                self.remove(class);
            }
        }
        let budget = 1_000 + self.queued() * 5_000;
        for _ in 0..budget {
            if !self.serve(false) {
                return;
            }
        }
        panic!("{} packets left after {budget} steps", self.queued());
    }
}

/// Breaks: at the ends of all ranges, a scheduler makes progress, loses no packet, does not overflow, and
/// never waits for a past time.
#[test]
fn schedulers_work_at_the_ends_of_all_ranges() {
    let seeds = std::env::var("FARPACE_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(200);
    for (name, new) in SCHEDULERS {
        for seed in 0..seeds {
            let done = std::panic::catch_unwind(|| {
                let mut scenario = ExtremeScenario::new(seed, new);
                for _ in 0..100 {
                    scenario.step();
                }
                scenario.drain();
            });
            assert!(done.is_ok(), "{name}, seed {seed}");
        }
    }
}
