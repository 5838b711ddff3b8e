//! The network of a scenario, running.

use crate::drive::{DriveObserver, LiveFigures, drive, lateness_line};
use crate::summary::RealtimeSummary;
use crate::watch::{Captures, RealtimeWatch};
use anyhow::{Result, bail};
use farpace_lab::BoundaryNetwork;
use farpace_lab::scenario::{Direction, Hop, Scenario};
use farpace_live::{Device, Driver, Wait};
use farpace_units::{Instant, Span};
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

/// A device in the place of a host.
pub struct Attachment {
    /// The host's name in the scenario.
    pub host: String,
    /// What its packets come by.
    pub device: Box<dyn Device>,
}

/// How a network runs.
#[derive(Clone, Debug)]
pub struct RealtimeOptions {
    /// How it waits.
    pub wait: Wait,
    /// Super-segments pass whole.
    pub whole: bool,
    /// Width of the bins of meters.
    pub bin: Span,
    /// Where captures go.
    pub captures: Option<Captures>,
}

/// A network between devices, to be run in this thread.
pub struct RealtimeNetwork {
    driver: Driver,
    boundaries: BoundaryNetwork,
    watch: Rc<RefCell<RealtimeWatch>>,
    begun: Instant,
}

impl RealtimeNetwork {
    /// The network of `scenario` with devices in the places of hosts. Its time begins with
    /// [`run`](RealtimeNetwork::run).
    ///
    /// # Errors
    /// A host without a device, or a capture that cannot be written.
    pub fn build(scenario: &Scenario, devices: Vec<Attachment>, options: &RealtimeOptions) -> Result<Self> {
        let (mut world, boundaries) = BoundaryNetwork::build(scenario, scenario.seed)?;
        let names: Vec<(String, String)> =
            devices.iter().map(|at| (at.host.clone(), at.device.info().name.clone())).collect();
        let mut watch = RealtimeWatch::new(options.bin);
        for (index, link) in scenario.links.iter().enumerate() {
            for way in [Direction::Forward, Direction::Backward] {
                let direction = link.direction(way);
                let hop = Hop { link: index, direction: way };
                if let Some([entered, left]) = boundaries.observe(&mut world, hop)? {
                    let name = format!("{} to {}", direction.from, direction.to);
                    watch.add(&link.name, &name, hop, entered, left);
                }
            }
        }
        if let Some(captures) = &options.captures {
            let elements = world.ids().map(|id| world.name(id).to_owned()).collect();
            watch.capture(captures, elements)?;
            for boundary in boundaries.ports() {
                let end = (boundary.port, farpace_path::Port(0));
                if let (Some(name), Some(peer)) = (capture_name(&names, &boundary.host), world.peer(end)) {
                    let wires = [world.observe(end)?, world.observe(peer)?];
                    watch.capture_at(captures, name, &wires)?;
                }
            }
        }
        let mut driver = Driver::new(world, options.wait)?;
        for Attachment { host, device } in devices {
            let Some(boundary) = boundaries.ports().iter().find(|boundary| boundary.host == host) else {
                bail!("the scenario has no host `{host}`");
            };
            match options.whole {
                true => driver.attach(boundary.port, device),
                false => driver.attach_splitting(boundary.port, device),
            }
        }
        if let Some(boundary) =
            boundaries.ports().iter().find(|boundary| !names.iter().any(|(host, _)| *host == boundary.host))
        {
            bail!("host `{}` of the scenario has no interface", boundary.host);
        }
        let watch = Rc::new(RefCell::new(watch));
        driver.set_observer(Box::new(crate::watch::WatchState(watch.clone())));
        Ok(RealtimeNetwork { driver, boundaries, watch, begun: Instant::ZERO })
    }

    /// The doors of its hosts.
    pub const fn boundaries(&self) -> &BoundaryNetwork {
        &self.boundaries
    }
    /// The station.
    pub const fn driver(&self) -> &Driver {
        &self.driver
    }

    /// Runs until a signal comes, `lasts` is over, or `ended` says so; it is asked a few times a second at
    /// least.
    ///
    /// # Errors
    /// A device that is gone, or a capture that cannot be written.
    pub fn run(
        &mut self,
        lasts: Option<Span>,
        figures: &mut dyn LiveFigures,
        ended: impl FnMut() -> bool,
    ) -> Result<()> {
        self.begun = self.driver.now();
        let mut looks = NetworkWatch { boundaries: &self.boundaries, watch: &self.watch, ended };
        drive(&mut self.driver, lasts, figures, &mut looks)
    }

    /// From now on the times are kept in which it stood still for at least `min`, because the machine did
    /// not run it.
    pub fn log_stalls(&mut self, min: Span) {
        self.driver.log_stalls(min);
    }
    /// These times since the start of the run, in order and without overlap. None if they were not asked for,
    /// or were too many.
    pub fn logged_stalls(&self) -> Option<Vec<Range<Span>>> {
        let since = |at: Instant| at.since(self.begun);
        let range = |stall: &Range<Instant>| since(stall.start)..since(stall.end);
        let stalls = self.driver.logged_stalls()?.iter().map(range);
        Some(stalls.filter(|stall| !stall.is_empty()).collect())
    }

    /// What has come of it.
    ///
    /// # Errors
    /// A capture that cannot be written.
    pub fn finish(&mut self) -> Result<RealtimeSummary> {
        let lasted = self.driver.now().since(self.begun);
        let mut watch = self.watch.borrow_mut();
        let captures = watch.finish()?;
        Ok(RealtimeSummary::new(&self.driver, &watch, lasted, captures))
    }
    /// What has passed per bin, as a table of comma-separated values.
    pub fn csv(&self) -> String {
        self.watch.borrow().csv()
    }
}

/// What the capture at a host is called: as its device, or as the host where devices in several namespaces
/// have one name. `names`: hosts and their devices.
fn capture_name<'a>(names: &'a [(String, String)], host: &str) -> Option<&'a str> {
    let (host, device) = names.iter().find(|(of, _)| of == host)?;
    let alone = names.iter().filter(|(_, other)| other == device).count() == 1;
    Some(if alone { device } else { host })
}

/// Looks on while a network runs.
struct NetworkWatch<'a, E> {
    boundaries: &'a BoundaryNetwork,
    watch: &'a RefCell<RealtimeWatch>,
    ended: E,
}

impl<E: FnMut() -> bool> DriveObserver for NetworkWatch<'_, E> {
    fn look(&mut self, _: &mut Driver) -> Result<bool> {
        self.watch.borrow_mut().check()?;
        Ok((self.ended)())
    }
    /// The figures since they were last asked for, a line for each direction of a link.
    fn lines(&mut self, driver: &mut Driver, now: Instant) -> Vec<String> {
        let hops: Vec<Hop> = self.watch.borrow().hops().collect();
        let world = driver.world_mut();
        let queues: Vec<Span> =
            hops.iter().map(|hop| self.boundaries.queueing_delay(world, *hop, now)).collect();
        let mut lines = self.watch.borrow_mut().lines(now, &queues);
        let drops = crate::summary::drops(driver.world());
        let drops: Vec<String> =
            drops.iter().map(|drop| format!("{} {} {}", drop.place, drop.cause, drop.packets)).collect();
        lines.push(format!(
            "dropped: {}",
            if drops.is_empty() { "none".to_owned() } else { drops.join(", ") }
        ));
        lines.push(lateness_line(driver));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: the captures of two hosts are written into one file, which no program can read.
    #[test]
    fn every_host_has_a_capture_of_its_own() {
        let names = |devices: [&str; 2]| {
            let names =
                ["a", "b"].iter().zip(devices).map(|(host, device)| (host.to_string(), device.to_owned()));
            let names: Vec<_> = names.collect();
            ["a", "b", "c"].map(|host| capture_name(&names, host).map(str::to_owned))
        };
        assert_eq!(names(["eth1", "eth2"]), [Some("eth1".to_owned()), Some("eth2".to_owned()), None]);
        assert_eq!(names(["far0", "far0"]), [Some("a".to_owned()), Some("b".to_owned()), None]);
    }
}
