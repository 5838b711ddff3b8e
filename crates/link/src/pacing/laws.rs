//! The contract of all schedulers, tested with random operations on a model of a link.

mod boundaries;
mod extremes;

use super::*;
use farpace_path::QueueLimit;
use farpace_units::{Packets, Span};
use proptest::prelude::*;
use std::collections::{BTreeSet, VecDeque};

/// All schedulers. A new scheduler is one more line.
const SCHEDULERS: [(&str, NewScheduler); 8] = [
    ("fifo", |link_rate, mtu| Ok(Box::new(FifoScheduler::new(link_rate, mtu)?))),
    ("psp", |link_rate, mtu| Ok(Box::new(Psp::new(link_rate, mtu)?))),
    ("token bucket", |link_rate, mtu| Ok(Box::new(TokenBucket::new(link_rate, mtu, TICK, None)?))),
    ("small bucket", |link_rate, mtu| {
        Ok(Box::new(TokenBucket::new(link_rate, mtu, TICK, Some(ByteCount::new(1)))?))
    }),
    ("fq", |link_rate, mtu| Ok(Box::new(Fq::new(link_rate, mtu, SLACK, None)?))),
    ("edf", |link_rate, mtu| Ok(Box::new(Edf::new(link_rate, mtu, Gaps::Frames, SLACK)?))),
    ("edf, timers", |link_rate, mtu| Ok(Box::new(Edf::new(link_rate, mtu, Gaps::Timers, SLACK)?))),
    ("edf, hybrid", |link_rate, mtu| Ok(Box::new(Edf::new(link_rate, mtu, Gaps::Hybrid, SLACK)?))),
];

type NewScheduler = fn(Rate, ByteCount) -> Result<Box<dyn Scheduler<Numbered>>, PacingError>;

const TICK: Span = Span::from_millis(1);
const SLACK: Span = Span::from_micros(10);
const LINK_RATE: Rate = Rate::from_mbit(1_000);
const MTU: ByteCount = ByteCount::new(1_500);

/// A packet with a unique number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Numbered {
    number: usize,
    len: u64,
    hint: Option<Rate>,
}

impl PacedFrame for Numbered {
    fn len(&self) -> ByteCount {
        ByteCount::new(self.len)
    }
    fn rate_hint(&self) -> Option<Rate> {
        self.hint
    }
}

/// An operation on a scheduler. It names a class by number, whether the class exists or not.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Add(ClassSpec),
    SetRate(u32, Rate),
    Remove(u32),
    /// Class, length, number of packets, rate hint.
    Enqueue(u32, u64, u32, Option<Rate>),
    /// Ask the scheduler so many times, and do what it returns.
    Serve(u32),
    /// Let time pass while the link is idle, at most until the scheduler has a packet.
    Pass(Span),
}

fn operation() -> impl Strategy<Value = Operation> {
    let rate = || (0u64..=700).prop_map(|n| Rate::from_bits_per_sec(n * n * n));
    let hint = prop::option::of((5_000_000u64..=1_200_000_000).prop_map(Rate::from_bits_per_sec));
    let kind = prop_oneof![
        4 => rate().prop_map(ClassKind::Paced),
        1 => Just(ClassKind::Follows),
        1 => Just(ClassKind::Normal),
    ];
    let len = prop_oneof![1 => 14u64..1_526, 2 => Just(1_514)];
    let limit = (0u32..30).prop_map(|n| QueueLimit::Packets(Packets::new(n)));
    prop_oneof![
        2 => (kind, limit).prop_map(|(kind, limit)| Operation::Add(ClassSpec { kind, limit })),
        1 => (0u32..6, rate()).prop_map(|(class, rate)| Operation::SetRate(class, rate)),
        1 => (0u32..9).prop_map(Operation::Remove),
        12 => (0u32..6, len, 1u32..8, hint).prop_map(|(c, len, n, hint)| Operation::Enqueue(c, len, n, hint)),
        6 => (1u32..20).prop_map(Operation::Serve),
        1 => (0u64..5_000_000).prop_map(|ns| Operation::Pass(Span::from_nanos(ns))),
    ]
}

/// The expected state of a class.
#[derive(Debug)]
struct Model {
    spec: ClassSpec,
    queue: VecDeque<Numbered>,
    stats: ClassStats,
}

/// A scheduler on a link, with the expected state.
struct SchedulerUnderTest {
    scheduler: Box<dyn Scheduler<Numbered>>,
    clock: LinkClock,
    now: Instant,
    /// Set if the scheduler has asked to wait until then.
    waits: Option<Instant>,
    classes: Vec<Option<Model>>,
    /// Everything that the scheduler has returned.
    returned: Vec<Next<Numbered>>,
}

impl SchedulerUnderTest {
    fn new(scheduler: Box<dyn Scheduler<Numbered>>) -> Self {
        let clock = LinkClock::new(LINK_RATE);
        SchedulerUnderTest {
            scheduler,
            clock,
            now: Instant::ZERO,
            waits: None,
            classes: Vec::new(),
            returned: Vec::new(),
        }
    }

    fn model(&mut self, class: u32) -> Option<&mut Model> {
        self.classes.get_mut(class as usize)?.as_mut()
    }

    fn queued(&self) -> usize {
        self.classes.iter().flatten().map(|class| class.queue.len()).sum()
    }

    /// Performs an operation. False if the scheduler refused it.
    fn operate(&mut self, number: usize, operation: Operation) -> Result<bool, TestCaseError> {
        match operation {
            Operation::Add(spec) => self.add(spec),
            Operation::SetRate(class, rate) => self.set_rate(class, rate),
            Operation::Remove(class) => {
                let removed = self.scheduler.remove_class(ClassId(class));
                let model = self.classes.get_mut(class as usize).and_then(Option::take);
                match model {
                    Some(model) => prop_assert_eq!(removed, Ok(Vec::from(model.queue))),
                    None => {
                        prop_assert_eq!(removed, Err(PacingError::UnknownClass(ClassId(class))));
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Operation::Enqueue(class, len, packets, hint) => {
                let mut accepted = 0;
                for i in 0..packets as usize {
                    accepted +=
                        u32::from(self.enqueue(class, Numbered { number: 8 * number + i, len, hint })?);
                }
                // The operation counts as refused only if no packet was accepted.
                Ok(accepted > 0)
            }
            Operation::Serve(times) => {
                for _ in 0..times {
                    self.serve()?;
                }
                Ok(true)
            }
            Operation::Pass(span) => {
                // A link that has become idle asks immediately.
                if self.waits.is_none() {
                    self.serve()?;
                }
                let until = self.now + span;
                match self.waits {
                    Some(at) => self.now = until.min(at),
                    None if self.queued() == 0 && self.returned.last() == Some(&Next::Empty) => {
                        self.now = until
                    }
                    None => {}
                }
                Ok(true)
            }
        }
    }

    fn add(&mut self, spec: ClassSpec) -> Result<bool, TestCaseError> {
        match self.scheduler.add_class(spec) {
            Ok(id) => {
                prop_assert!(!spec.limit.is_zero());
                let rate = if let ClassKind::Paced(rate) = spec.kind { rate } else { Rate::default() };
                if self.classes.len() <= id.index() {
                    self.classes.resize_with(id.index() + 1, || None);
                }
                let entry = &mut self.classes[id.index()];
                prop_assert!(entry.is_none(), "two classes have one number");
                let stats = ClassStats { rate, ..ClassStats::default() };
                *entry = Some(Model { spec, queue: VecDeque::new(), stats });
                Ok(true)
            }
            Err(why) => {
                let bad = match spec.kind {
                    _ if spec.limit.is_zero() => why == PacingError::ZeroLimit,
                    ClassKind::Paced(rate) => is_bad_rate(&why, rate),
                    _ => false,
                };
                prop_assert!(bad, "{spec:?}: {why:?}");
                Ok(false)
            }
        }
    }

    fn set_rate(&mut self, class: u32, rate: Rate) -> Result<bool, TestCaseError> {
        let done = self.scheduler.set_rate(ClassId(class), rate);
        match (self.model(class), done) {
            (Some(model), Ok(())) if matches!(model.spec.kind, ClassKind::Paced(_)) => {
                model.stats.rate = rate;
                return Ok(true);
            }
            (Some(model), Err(PacingError::NotPaced(_))) => {
                prop_assert!(!matches!(model.spec.kind, ClassKind::Paced(_)));
            }
            (Some(_), Err(why)) => prop_assert!(is_bad_rate(&why, rate), "{why:?}"),
            (None, Err(PacingError::UnknownClass(_))) => {}
            (model, done) => prop_assert!(false, "{model:?} {done:?}"),
        }
        Ok(false)
    }

    fn enqueue(&mut self, class: u32, packet: Numbered) -> Result<bool, TestCaseError> {
        let done = self.scheduler.enqueue(self.now, ClassId(class), packet);
        let Some(model) = self.model(class) else {
            prop_assert_eq!(done, Err(Refused { packet, why: EnqueueRefusal::UnknownClass }));
            return Ok(false);
        };
        let full = (model.queue.len() as u64) >= model.spec.limit.bounds().1;
        if packet.len > 1_522 {
            prop_assert_eq!(done, Err(Refused { packet, why: EnqueueRefusal::TooLong }));
        } else if full {
            model.stats.dropped += 1;
            prop_assert_eq!(done, Err(Refused { packet, why: EnqueueRefusal::Full }));
        } else {
            prop_assert_eq!(done, Ok(()));
            model.queue.push_back(packet);
            model.stats.backlog.packets += 1;
            model.stats.backlog.bytes += packet.len();
            if let (ClassKind::Follows, Some(rate)) = (model.spec.kind, packet.hint) {
                model.stats.rate = if rate < LINK_RATE { rate } else { Rate::default() };
            }
            self.waits = None;
            return Ok(true);
        }
        Ok(false)
    }

    /// Asks the scheduler when the link is idle, and does what it returns. False if nothing is queued.
    fn serve(&mut self) -> Result<bool, TestCaseError> {
        let free = self.clock.instant_of(self.clock.bytes());
        self.now = self.now.max(free).max(self.waits.take().unwrap_or(free));
        if self.now > free {
            self.clock.catch_up(self.now);
        }
        let next = self.scheduler.dequeue(self.now);
        self.returned.push(next.clone());
        prop_assert_eq!(self.queued() == 0, next == Next::Empty, "{:?} with {} queued", next, self.queued());
        match next {
            Next::Packet { class, packet } => {
                self.clock.advance(wire_len(packet.len()));
                let Some(model) = self.model(class.0) else {
                    return Err(TestCaseError::fail("a packet of an unknown class"));
                };
                prop_assert_eq!(Some(packet), model.queue.pop_front());
                let stats = &mut model.stats;
                stats.packets += 1;
                stats.bytes += packet.len();
                stats.backlog.packets -= 1;
                stats.backlog.bytes -= packet.len();
            }
            Next::Gap(gap) => {
                prop_assert!((MIN_GAP.get()..=1_538).contains(&gap.get()), "a gap of {}", gap);
                self.clock.advance(gap);
            }
            Next::Wait(until) => {
                prop_assert!(until > self.now, "at {:?} it waits until {:?}", self.now, until);
                self.waits = Some(until);
            }
            Next::Empty => return Ok(false),
        }
        Ok(true)
    }

    /// Compares all counters with the model.
    fn check(&self) -> Result<(), TestCaseError> {
        let bytes: u64 = self.classes.iter().flatten().flat_map(|c| &c.queue).map(|packet| packet.len).sum();
        let backlog = Backlog { packets: self.queued() as u64, bytes: ByteCount::new(bytes) };
        prop_assert_eq!(self.scheduler.backlog(), backlog);
        for (class, model) in (0..).zip(&self.classes) {
            let stats = self.scheduler.stats(ClassId(class));
            let latest = stats.map(|stats| stats.latest).unwrap_or_default();
            prop_assert_eq!(stats, model.as_ref().map(|model| ClassStats { latest, ..model.stats }));
        }
        Ok(())
    }

    /// Empties all queues, in no more steps than the slowest rate needs.
    fn drain(&mut self) -> Result<(), TestCaseError> {
        let slowest = |model: &Model| match model.spec.kind {
            ClassKind::Normal => LINK_RATE,
            _ if model.stats.rate == Rate::default() => LINK_RATE,
            _ => model.stats.rate,
        };
        let bytes = |model: &Model| {
            let frames = (model.queue.len() + 2) as u64;
            frames * 1_546 * (1 + LINK_RATE.bits_per_sec() / slowest(model).bits_per_sec().max(1))
        };
        let all: u64 = self.classes.iter().flatten().map(bytes).sum();
        let budget = all / 500 + 1_000;
        for _ in 0..budget {
            if !self.serve()? {
                return Ok(());
            }
        }
        Err(TestCaseError::fail(format!("{} packets left after {budget} steps", self.queued())))
    }
}

fn is_bad_rate(why: &PacingError, rate: Rate) -> bool {
    match why {
        PacingError::ZeroRate => rate == Rate::default(),
        PacingError::AboveLinkRate { .. } | PacingError::RatesAboveLinkRate { .. } => rate > Rate::default(),
        _ => false,
    }
}

/// Runs all operations except those in `skip`. Returns what the scheduler returned, and the refused
/// operations.
fn run(
    new: NewScheduler,
    operations: &[Operation],
    skip: &BTreeSet<usize>,
) -> Result<(Vec<Next<Numbered>>, BTreeSet<usize>), TestCaseError> {
    let mut link = SchedulerUnderTest::new(new(LINK_RATE, MTU).unwrap());
    let mut refused = BTreeSet::new();
    for kind in
        [ClassKind::Paced(Rate::from_mbit(20)), ClassKind::Paced(Rate::from_mbit(300)), ClassKind::Normal]
    {
        link.operate(0, Operation::Add(ClassSpec { kind, limit: QueueLimit::default() }))?;
    }
    for (number, operation) in operations.iter().enumerate().filter(|(number, _)| !skip.contains(number)) {
        if !link.operate(number, *operation)? {
            refused.insert(number);
        }
        link.check()?;
    }
    // Slow classes would only lengthen the test.
    for class in 0..link.classes.len() as u32 {
        let slow = |model: &mut Model| {
            matches!(model.spec.kind, ClassKind::Paced(_)) && model.stats.rate < Rate::from_mbit(2)
        };
        if link.model(class).is_some_and(slow) {
            link.operate(usize::MAX, Operation::Remove(class))?;
        }
    }
    link.drain()?;
    link.check()?;
    Ok((link.returned, refused))
}

proptest! {
    /// Breaks: a scheduler neither loses, duplicates nor reorders packets, is empty exactly if nothing is
    /// queued, returns only gaps that a frame can fill and only future times, makes progress, and counts
    /// correctly. A refused operation has no effect.
    #[test]
    fn every_scheduler_keeps_its_contract(operations in prop::collection::vec(operation(), 1..150)) {
        for (name, new) in SCHEDULERS {
            let named = |error| match error {
                TestCaseError::Fail(why) => TestCaseError::fail(format!("{name}: {why}")),
                other => other,
            };
            let (returned, refused) = run(new, &operations, &BTreeSet::new()).map_err(named)?;
            let (without, none) = run(new, &operations, &refused).map_err(named)?;
            prop_assert_eq!(none, BTreeSet::new(), "{}", name);
            prop_assert_eq!(returned, without, "{}: a refused operation had an effect", name);
        }
    }
}
