//! Pacing on one device: filters and a scheduler, built from a configuration.

use super::flows::Flows;
use super::{
    ClassId, ClassKind, ClassRate, ClassSpec, ClassStats, Classifier, ConfigError, Edf, FifoScheduler, Fq,
    Next, PacingConfig, PacingError, Psp, Refused, Scheduler, SchedulerKind, TokenBucket,
};
use farpace_path::Backlog;
use farpace_units::{Instant, Rate};
use farpace_wire::Packet;

/// Name of the class of packets that belong to no other class.
pub(crate) const REST: &str = "(rest)";

/// A class with its name and counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedStats {
    /// The name.
    pub name: String,
    /// The configured rate; none: not paced.
    pub rate: Option<ClassRate>,
    /// The counters.
    pub stats: ClassStats,
}

/// Pacing on one device. It has the contract of [`Scheduler`], but finds the class of each packet itself.
pub struct Pacer {
    scheduler: Box<dyn Scheduler<Packet>>,
    classifier: Classifier,
    /// By index of the class in the configuration; `(rest)` is last, if it exists.
    classes: Vec<ClassId>,
    names: Vec<(String, Option<ClassRate>)>,
    /// By the same index: the connections of a class with `rate = "connection"`.
    flows: Vec<Option<Flows>>,
}

impl Pacer {
    /// Pacing as configured, on a link of `link_rate`.
    ///
    /// # Errors
    /// The first error in the configuration.
    pub fn new(config: &PacingConfig, link_rate: Rate) -> Result<Self, ConfigError> {
        if let Some(error) = config.check(link_rate).into_iter().next() {
            return Err(error);
        }
        Pacer::with(config, scheduler(config, link_rate).map_err(refuse)?)
    }

    /// The classes and filters of a checked configuration, with a `scheduler` that has no classes yet.
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
        Ok(Pacer { scheduler, classifier: config.classifier(), classes, names, flows })
    }

    /// Classifies and queues a packet.
    ///
    /// # Errors
    /// The packet and the reason for the refusal.
    pub fn enqueue(&mut self, now: Instant, packet: Packet) -> Result<(), Refused<Packet>> {
        let index = self.classifier.classify(&packet).unwrap_or(self.classes.len() - 1);
        let own = match &mut self.flows[index] {
            Some(flows) => flows.class(now, &packet, &mut *self.scheduler),
            None => None,
        };
        self.scheduler.enqueue(now, own.unwrap_or(self.classes[index]), packet)
    }

    /// What to send now. The link must be idle.
    pub fn dequeue(&mut self, now: Instant) -> Next<Packet> {
        self.scheduler.dequeue(now)
    }

    /// The queued packets.
    pub fn backlog(&self) -> Backlog {
        self.scheduler.backlog()
    }

    /// The counters of all classes, in the order of the configuration.
    pub fn stats(&self) -> Vec<NamedStats> {
        let classes = self.classes.iter().zip(&self.names).zip(&self.flows);
        let named = classes.map(|((id, (name, rate)), flows)| {
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

fn scheduler(config: &PacingConfig, link_rate: Rate) -> Result<Box<dyn Scheduler<Packet>>, PacingError> {
    let link_rate = config.effective_rate(link_rate);
    Ok(match config.scheduler {
        SchedulerKind::Fifo => Box::new(FifoScheduler::new(link_rate, config.mtu)?),
        SchedulerKind::Psp => Box::new(Psp::new(link_rate, config.mtu)?),
        SchedulerKind::TokenBucket => {
            Box::new(TokenBucket::new(link_rate, config.mtu, config.tick, config.burst)?)
        }
        SchedulerKind::Fq => Box::new(Fq::new(link_rate, config.mtu, config.slack, config.quantum)?),
        SchedulerKind::Edf => Box::new(Edf::new(link_rate, config.mtu, config.gaps, config.jitter)?),
    })
}

#[cfg(test)]
mod tests {
    use super::super::ClassConfig;
    use super::*;

    /// Breaks: every scheduler can be configured by name. Only the paper's admits a class of the rate of the
    /// link.
    #[test]
    fn every_scheduler_can_be_configured() {
        use SchedulerKind::{Edf, Fifo, Fq, Psp, TokenBucket};
        for scheduler in [Edf, Psp, TokenBucket, Fq, Fifo] {
            let rate = Some(ClassRate::Fixed(Rate::from_mbit(1_000)));
            let classes = vec![ClassConfig { name: "all".to_owned(), rate, limit: None }];
            let full = PacingConfig { scheduler, classes, ..PacingConfig::default() };
            let accepted = Pacer::new(&full, Rate::from_mbit(1_000));
            assert_eq!(accepted.is_ok(), scheduler == Psp, "{scheduler:?}");
            let none = PacingConfig { scheduler, ..PacingConfig::default() };
            let mut pacer = Pacer::new(&none, Rate::from_mbit(1_000)).ok().unwrap();
            assert!(matches!(pacer.dequeue(Instant::ZERO), Next::Empty), "{scheduler:?}");
        }
    }
}
