//! Shrinks a failure: removes knobs one by one, as long as the same law is broken.

use super::knobs::{Close, Knobs, Read, Wait};
use super::paced::{FarEnd, Paced};
use super::trial;
use farpace_link::pacing::{GapFrameKind, Gaps, SchedulerKind};
use farpace_tcp::config::Settings;
use farpace_units::{ByteCount, Packets, Rate, Span};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// Most trials for shrinking.
const MAX_TRIALS: usize = 400;

/// A broken law: the place of its definition, and its message.
#[derive(Clone, Debug)]
pub struct Failure {
    pub place: String,
    pub text: String,
}

thread_local!(static CAUGHT: RefCell<Option<Failure>> = const { RefCell::new(None) });
thread_local!(static CATCHING: RefCell<bool> = const { RefCell::new(false) });

/// A trial; its result is its panic.
pub fn attempt(knobs: &Knobs) -> Result<trial::Report, Failure> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !CATCHING.with_borrow(|c| *c) {
                return before(info);
            }
            let place = info.location().map_or(String::new(), |l| format!("{}:{}", l.file(), l.line()));
            let text = words(info.payload());
            CAUGHT.set(Some(Failure { place, text }));
        }));
    });
    CATCHING.set(true);
    let result = catch_unwind(AssertUnwindSafe(|| trial::run(knobs, false)));
    CATCHING.set(false);
    result.map_err(|_| CAUGHT.take().expect("the hook was called"))
}

/// The smallest trial found that breaks the same law as `knobs`.
pub fn shrink(knobs: &Knobs, failure: &Failure) -> (Knobs, Failure) {
    let (mut best, mut why) = (knobs.clone(), failure.clone());
    let mut trials = 0;
    loop {
        let mut smaller = false;
        for change in CHANGES {
            let mut candidate = best.clone();
            change(&mut candidate);
            if candidate == best {
                continue;
            }
            trials += 1;
            if let Err(f) = attempt(&candidate)
                && f.place == failure.place
            {
                (best, why, smaller) = (candidate, f, true);
            }
            if trials >= MAX_TRIALS {
                return (best, why);
            }
        }
        if !smaller {
            return (best, why);
        }
    }
}

type Change = fn(&mut Knobs);

/// From the most to the least important.
const CHANGES: &[Change] = &[
    |k| k.connections = 1,
    |k| k.connections = (k.connections / 2).max(1),
    |k| k.programs.iter_mut().for_each(|p| p.total /= 2),
    |k| k.programs[0].total /= 2,
    |k| k.programs[1].total /= 2,
    |k| k.programs[0].total = k.programs[0].total * 7 / 8,
    |k| k.programs[1].total = k.programs[1].total * 7 / 8,
    |k| k.programs[0].abort = None,
    |k| k.programs[1].abort = None,
    |k| k.programs[0].read = Read::Eager,
    |k| k.programs[1].read = Read::Eager,
    |k| k.programs.iter_mut().for_each(|p| (p.wait, p.turn) = (Wait::Nothing, u64::MAX)),
    |k| k.programs.iter_mut().for_each(|p| p.close = Close::AtOnce),
    |k| k.programs.iter_mut().for_each(|p| p.piece = 1 << 18),
    |k| k.ends[0].jumps.clear(),
    |k| k.ends[1].jumps.clear(),
    |k| k.directions[0].outages.clear(),
    |k| k.directions[1].outages.clear(),
    |k| _ = k.directions[0].outages.pop(),
    |k| _ = k.directions[1].outages.pop(),
    |k| k.directions[0].mtu.clear(),
    |k| k.directions[1].mtu.clear(),
    |k| k.directions[0].split = 0.0,
    |k| k.directions[1].split = 0.0,
    |k| k.directions[0].marks = None,
    |k| k.directions[1].marks = None,
    |k| k.directions[0].middlebox = None,
    |k| k.directions[1].middlebox = None,
    |k| k.directions[0].thinning = None,
    |k| k.directions[1].thinning = None,
    |k| k.directions.iter_mut().for_each(|w| w.middleboxes_stay = false),
    |k| k.directions[0].paced = None,
    |k| k.directions[1].paced = None,
    |k| paced(k, |p| p.far_end = FarEnd::Host),
    |k| paced(k, |p| p.config.scheduler = SchedulerKind::Fifo),
    |k| paced(k, |p| p.config.scheduler = SchedulerKind::Edf),
    |k| paced(k, |p| p.config.gaps = Gaps::Frames),
    |k| paced(k, |p| p.config.gap_frame = GapFrameKind::Pause),
    |k| paced(k, |p| p.config.device_rate = None),
    |k| paced(k, |p| p.config.mtu = p.config.mtu.min(ByteCount::new(9_000))),
    |k| paced(k, |p| p.config.default = None),
    |k| paced(k, |p| _ = p.config.filters.pop()),
    |k| paced(k, drop_class),
    |k| paced(k, |p| p.config.classes.iter_mut().for_each(|c| c.limit = None)),
    |k| k.directions[0].policer = None,
    |k| k.directions[1].policer = None,
    |k| k.directions[0].burst = None,
    |k| k.directions[1].burst = None,
    |k| k.directions[0].loss = 0.0,
    |k| k.directions[1].loss = 0.0,
    |k| k.directions[0].corrupt = 0.0,
    |k| k.directions[1].corrupt = 0.0,
    |k| k.directions[0].duplicate = 0.0,
    |k| k.directions[1].duplicate = 0.0,
    |k| k.directions[0].reorder = None,
    |k| k.directions[1].reorder = None,
    |k| k.directions[0].jitter = Span::ZERO,
    |k| k.directions[1].jitter = Span::ZERO,
    |k| k.directions.iter_mut().for_each(|w| w.queue = Packets::new(1_000)),
    |k| k.directions.iter_mut().for_each(|w| w.rate = Rate::from_mbit(1_000)),
    |k| k.directions.iter_mut().for_each(|w| w.delay = Span::from_millis(10)),
    |k| k.heal = Span::from_nanos(k.heal.as_nanos() / 2),
    |k| k.ends.iter_mut().for_each(|e| e.budget = 64),
    |k| settings(k, |s| s.congestion = None),
    |k| settings(k, |s| s.rto = None),
    |k| settings(k, |s| s.min_rto = None),
    |k| settings(k, |s| s.delayed_ack = None),
    |k| settings(k, |s| s.sack = None),
    |k| settings(k, |s| s.timestamps = None),
    |k| settings(k, |s| s.window_scale = None),
    |k| settings(k, |s| s.initial_window = None),
    |k| settings(k, |s| s.initial_ssthresh = None),
    |k| settings(k, |s| s.cwnd_clamp = None),
    |k| settings(k, |s| s.cwnd_floor = None),
    |k| settings(k, |s| s.receive_buffer = None),
    |k| settings(k, |s| s.send_buffer = None),
    |k| settings(k, |s| s.mss = None),
    |k| settings(k, |s| s.nagle = None),
    |k| settings(k, |s| s.ecn = None),
    |k| settings(k, |s| s.mtu_probing = None),
    |k| settings(k, |s| s.keep_alive = None),
    |k| settings(k, |s| s.user_timeout = None),
    |k| settings(k, |s| s.tail_loss_probe = None),
    |k| settings(k, |s| s.timeout = None),
    |k| settings(k, |s| s.undo = None),
    |k| settings(k, |s| s.pacing = None),
    |k| settings(k, |s| (s.ack_control, s.ack_requests) = (None, None)),
    |k| settings(k, |s| s.ack_requests = None),
    |k| settings(k, |s| s.clock = None),
    |k| settings(k, |s| s.profile = None),
];

/// Changes both NICs, if the result is a valid configuration.
fn paced(knobs: &mut Knobs, change: fn(&mut Paced)) {
    for direction in &mut knobs.directions {
        let mut changed = direction.paced.clone();
        changed.iter_mut().for_each(change);
        if changed.as_ref().is_some_and(|paced| paced.config.check(direction.rate).is_empty()) {
            direction.paced = changed;
        }
    }
}

/// Removes the last class, and the filters that lead to it.
fn drop_class(paced: &mut Paced) {
    let config = &mut paced.config;
    if let Some(last) = config.classes.pop() {
        config.filters.retain(|filter| filter.class != last.name);
        config.default = config.default.take().filter(|name| *name != last.name);
    }
}

/// Changes both ends, if the result is a valid configuration.
fn settings(knobs: &mut Knobs, change: fn(&mut Settings)) {
    for end in &mut knobs.ends {
        let mut changed = end.settings.clone();
        change(&mut changed);
        if changed.resolve().is_ok() {
            end.settings = changed;
        }
    }
}

/// What a panic says.
fn words(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or("a panic without words".to_owned())
}
