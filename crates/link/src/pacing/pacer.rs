//! Pacing on one device: filters before a scheduler, made from a configuration.

use super::{
    ClassId, ClassKind, ClassRate, ClassSpec, ClassStats, Classifier, ConfigError, Edf, Fifo, Fq, Next,
    PacingConfig, PacingError, Psp, Refused, Scheduler, SchedulerKind, TokenBucket,
};
use farpace_path::Backlog;
use farpace_units::{Instant, Rate};
use farpace_wire::Packet;

/// The name of the class of packets that belong to no other.
const REST: &str = "(rest)";

/// A class with its name and counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedStats {
    /// The name.
    pub name: String,
    /// What was configured for it; none: not paced.
    pub rate: Option<ClassRate>,
    /// The counters.
    pub stats: ClassStats,
}

/// A device's pacing. It has the contract of [`Scheduler`], with packets that find their classes themselves.
pub struct Pacer {
    scheduler: Box<dyn Scheduler<Packet>>,
    classifier: Classifier,
    /// By the place of the class in the configuration; `(rest)` last, if there is one.
    classes: Vec<ClassId>,
    names: Vec<(String, Option<ClassRate>)>,
}

impl Pacer {
    /// Pacing as configured, on a line of `line`.
    ///
    /// # Errors
    /// The first thing that is wrong with the configuration.
    pub fn new(config: &PacingConfig, line: Rate) -> Result<Self, ConfigError> {
        if let Some(error) = config.check(line).into_iter().next() {
            return Err(error);
        }
        Pacer::with(config, scheduler(config, line).map_err(refuse)?)
    }

    /// The classes and filters of a checked configuration before `scheduler`, which has no classes yet.
    pub(crate) fn with(
        config: &PacingConfig,
        mut scheduler: Box<dyn Scheduler<Packet>>,
    ) -> Result<Self, ConfigError> {
        let (mut classes, mut names) = (Vec::new(), Vec::new());
        for class in &config.classes {
            let kind = match class.rate {
                Some(ClassRate::Fixed(rate)) => ClassKind::Paced(rate),
                Some(ClassRate::Connection) => ClassKind::Follows,
                None => ClassKind::Normal,
            };
            let limit = class.limit.unwrap_or(config.limit);
            classes.push(scheduler.add_class(ClassSpec { kind, limit }).map_err(refuse)?);
            names.push((class.name.clone(), class.rate));
        }
        if config.default.is_none() {
            let spec = ClassSpec { kind: ClassKind::Normal, limit: config.limit };
            classes.push(scheduler.add_class(spec).map_err(refuse)?);
            names.push((REST.to_owned(), None));
        }
        Ok(Pacer { scheduler, classifier: Classifier::new(config), classes, names })
    }

    /// Queues a packet in its class.
    ///
    /// # Errors
    /// The packet, with what was wrong.
    pub fn enqueue(&mut self, now: Instant, packet: Packet) -> Result<(), Refused<Packet>> {
        let place = self.classifier.classify(&packet).unwrap_or(self.classes.len() - 1);
        self.scheduler.enqueue(now, self.classes[place], packet)
    }

    /// What to do with the line, which is free now.
    pub fn dequeue(&mut self, now: Instant) -> Next<Packet> {
        self.scheduler.dequeue(now)
    }

    /// What waits.
    pub fn backlog(&self) -> Backlog {
        self.scheduler.backlog()
    }

    /// The counters of all classes, in the order of the configuration.
    pub fn stats(&self) -> Vec<NamedStats> {
        let stats = |id: &ClassId| self.scheduler.stats(*id).unwrap_or_default();
        let named = self.classes.iter().zip(&self.names);
        named
            .map(|(id, (name, rate))| NamedStats { name: name.clone(), rate: *rate, stats: stats(id) })
            .collect()
    }
}

fn refuse(error: PacingError) -> ConfigError {
    ConfigError { at: Vec::new(), problem: error.to_string() }
}

fn scheduler(config: &PacingConfig, line: Rate) -> Result<Box<dyn Scheduler<Packet>>, PacingError> {
    let line = config.line_rate(line);
    Ok(match config.scheduler {
        SchedulerKind::Fifo => Box::new(Fifo::new(line, config.mtu)?),
        SchedulerKind::Psp => Box::new(Psp::new(line, config.mtu)?),
        SchedulerKind::TokenBucket => {
            Box::new(TokenBucket::new(line, config.mtu, config.tick, config.burst)?)
        }
        SchedulerKind::Fq => Box::new(Fq::new(line, config.mtu, config.slack, config.quantum)?),
        SchedulerKind::Edf => Box::new(Edf::new(line, config.mtu, config.gaps, config.jitter)?),
    })
}
