//! Load for pacing schedulers: very many classes of random rates, all with packets or few of them.

use farpace_link::pacing::{
    ClassId, ClassKind, ClassSpec, Next, PacingError, SaturatingFrame, Scheduler, wire_len,
};
use farpace_path::QueueLimit;
use farpace_units::{ByteCount, Instant, RandomStream, Rate};

/// The line that a [`PacingLoad`] is for.
pub const LINE: Rate = Rate::from_mbit(100_000);
/// And its MTU.
pub const MTU: ByteCount = ByteCount::new(1_500);
const FULL: SaturatingFrame = SaturatingFrame(1_514);

/// A scheduler on a line of 100 Gbit/s that is promised to 99 % to classes whose rates differ up to a
/// thousandfold. The classes with packets have two full frames each, and get one for each that leaves.
pub struct PacingLoad<S> {
    scheduler: S,
    /// Bytes of the line so far, gaps included.
    pub line: ByteCount,
    /// Gap frames so far.
    pub gaps: u64,
}

impl<S: Scheduler<SaturatingFrame>> PacingLoad<S> {
    /// `classes` for a `scheduler` without any on [`LINE`], of which every `one_in`th has packets.
    ///
    /// # Errors
    /// None, unless the arithmetic here is wrong.
    pub fn new(mut scheduler: S, classes: u32, one_in: u32) -> Result<Self, PacingError> {
        let mut rng = RandomStream::new(1, "rates");
        let weights: Vec<f64> =
            (0..classes).map(|_| (1 << rng.below(10)) as f64 * (1.0 + rng.unit())).collect();
        let all: f64 = weights.iter().sum();
        let mut active: Vec<ClassId> = Vec::new();
        for (weight, number) in weights.iter().zip(0u32..) {
            let share = weight / all * 0.99 * 1_518.0 / 1_538.0;
            let rate = Rate::from_bits_per_sec((LINE.bits_per_sec() as f64 * share) as u64);
            let spec = ClassSpec { kind: ClassKind::Paced(rate), limit: QueueLimit::Unlimited };
            let id = scheduler.add_class(spec)?;
            if number % one_in == 0 {
                active.push(id);
            }
        }
        for id in active.iter().chain(&active) {
            // Its queue has no limit.
            _ = scheduler.enqueue(Instant::ZERO, *id, FULL);
        }
        let mut load = PacingLoad { scheduler, line: ByteCount::ZERO, gaps: 0 };
        // Away from the start, where all classes begin at once.
        for _ in 0..4 * active.len() {
            load.step();
        }
        Ok(load)
    }

    /// One packet leaves, with the gaps before it, and another comes.
    #[inline]
    pub fn step(&mut self) {
        loop {
            match self.scheduler.dequeue(Instant::ZERO) {
                Next::Packet { class, packet } => {
                    self.line += wire_len(ByteCount::new(u64::from(packet.0)));
                    _ = self.scheduler.enqueue(Instant::ZERO, class, packet);
                    return;
                }
                Next::Gap(gap) => {
                    self.line += gap;
                    self.gaps += 1;
                }
                Next::Wait(_) | Next::Empty => return,
            }
        }
    }
}
