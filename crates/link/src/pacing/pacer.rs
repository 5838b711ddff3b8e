//! Pacing on one device: filters before a scheduler, made from a configuration.

use super::flows::Flows;
use super::{
    ClassId, ClassKind, ClassRate, ClassSpec, ClassStats, Classifier, ConfigError, Edf, FifoScheduler, Fq,
    Next, PacingConfig, PacingError, Psp, Refused, Scheduler, SchedulerKind, TokenBucket,
};
use farpace_path::Backlog;
use farpace_units::{Instant, Rate};
use farpace_wire::Packet;

/// The name of the class of packets that belong to no other.
pub(crate) const REST: &str = "(rest)";

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
    /// By the same place: the connections of a class whose rate is theirs.
    flows: Vec<Option<Flows>>,
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
        let (mut classes, mut names, mut flows) = (Vec::new(), Vec::new(), Vec::new());
        for class in &config.classes {
            let kind = match class.rate {
                Some(ClassRate::Fixed(rate)) => ClassKind::Paced(rate),
                Some(ClassRate::Connection) => ClassKind::Follows,
                None => ClassKind::Normal,
            };
            let limit = class.limit.unwrap_or(config.limit);
            classes.push(scheduler.add_class(ClassSpec { kind, limit }).map_err(refuse)?);
            names.push((class.name.clone(), class.rate));
            flows.push((kind == ClassKind::Follows).then(|| Flows::new(limit)));
        }
        if config.default.is_none() {
            let spec = ClassSpec { kind: ClassKind::Normal, limit: config.limit };
            classes.push(scheduler.add_class(spec).map_err(refuse)?);
            names.push((REST.to_owned(), None));
            flows.push(None);
        }
        Ok(Pacer { scheduler, classifier: Classifier::new(config), classes, names, flows })
    }

    /// Queues a packet in its class.
    ///
    /// # Errors
    /// The packet, with what was wrong.
    pub fn enqueue(&mut self, now: Instant, packet: Packet) -> Result<(), Refused<Packet>> {
        let place = self.classifier.classify(&packet).unwrap_or(self.classes.len() - 1);
        let own = match &mut self.flows[place] {
            Some(flows) => flows.class(now, &packet, &mut *self.scheduler),
            None => None,
        };
        self.scheduler.enqueue(now, own.unwrap_or(self.classes[place]), packet)
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
        let places = self.classes.iter().zip(&self.names).zip(&self.flows);
        let named = places.map(|((id, (name, rate)), flows)| {
            let mut stats = self.scheduler.stats(*id).unwrap_or_default();
            if let Some(flows) = flows {
                flows.add_to(&mut stats, &*self.scheduler);
            }
            NamedStats { name: name.clone(), rate: *rate, stats }
        });
        named.collect()
    }
}

fn refuse(error: PacingError) -> ConfigError {
    ConfigError { at: Vec::new(), problem: error.to_string() }
}

fn scheduler(config: &PacingConfig, line: Rate) -> Result<Box<dyn Scheduler<Packet>>, PacingError> {
    let line = config.line_rate(line);
    Ok(match config.scheduler {
        SchedulerKind::Fifo => Box::new(FifoScheduler::new(line, config.mtu)?),
        SchedulerKind::Psp => Box::new(Psp::new(line, config.mtu)?),
        SchedulerKind::TokenBucket => {
            Box::new(TokenBucket::new(line, config.mtu, config.tick, config.burst)?)
        }
        SchedulerKind::Fq => Box::new(Fq::new(line, config.mtu, config.slack, config.quantum)?),
        SchedulerKind::Edf => Box::new(Edf::new(line, config.mtu, config.gaps, config.jitter)?),
    })
}

#[cfg(test)]
mod tests {
    use super::super::ClassConfig;
    use super::*;

    /// Breaks: a scheduler cannot be configured, or is another one: the paper's alone takes classes of all of the line.
    #[test]
    fn every_scheduler_can_be_configured() {
        use SchedulerKind::{Edf, Fifo, Fq, Psp, TokenBucket};
        for scheduler in [Edf, Psp, TokenBucket, Fq, Fifo] {
            let rate = Some(ClassRate::Fixed(Rate::from_mbit(1_000)));
            let classes = vec![ClassConfig { name: "all".to_owned(), rate, limit: None }];
            let most = PacingConfig { scheduler, classes, ..PacingConfig::default() };
            let taken = Pacer::new(&most, Rate::from_mbit(1_000));
            assert_eq!(taken.is_ok(), scheduler == Psp, "{scheduler:?}");
            let none = PacingConfig { scheduler, ..PacingConfig::default() };
            let mut pacer = Pacer::new(&none, Rate::from_mbit(1_000)).ok().unwrap();
            assert!(matches!(pacer.dequeue(Instant::ZERO), Next::Empty), "{scheduler:?}");
        }
    }
}
