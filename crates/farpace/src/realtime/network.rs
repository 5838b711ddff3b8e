//! The network of a scenario, running.

use super::figures::Figures;
use super::summary::Summary;
use super::watch::{Captures, Watch};
use crate::interrupt;
use anyhow::{Context, Result, bail};
use farpace_lab::Doors;
use farpace_lab::scenario::{Hop, Scenario, Way};
use farpace_live::{Device, Station, Wait};
use farpace_units::{Instant, Span};
use std::cell::RefCell;
use std::rc::Rc;

/// How a command waits for the next packet, as a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Patience {
    /// Sleeps: least work, packets are tens of microseconds late
    Sleep,
    /// Sleeps, but spins shortly before a packet is due
    #[default]
    Hybrid,
    /// Never sleeps: most precise, takes a core
    Spin,
}

impl Patience {
    /// So long before a deadline sleeping ends: a sleep is seldom longer by more than this.
    const MARGIN: Span = Span::from_micros(60);

    /// As the station takes it.
    pub const fn wait(self) -> Wait {
        match self {
            Patience::Sleep => Wait::Sleep,
            Patience::Hybrid => Wait::SpinBefore(Self::MARGIN),
            Patience::Spin => Wait::Spin,
        }
    }
}

/// A device in the place of a host.
pub struct Attachment {
    /// The host's name in the scenario.
    pub host: String,
    /// What its packets come by.
    pub device: Box<dyn Device>,
}

/// How a network runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// How it waits.
    pub patience: Patience,
    /// Super-segments pass whole.
    pub whole: bool,
    /// Width of the bins of meters.
    pub bin: Span,
    /// Where captures go.
    pub captures: Option<Captures>,
}

/// A network between devices, to be run in this thread.
pub struct Network {
    station: Station,
    doors: Doors,
    watch: Rc<RefCell<Watch>>,
    begun: Instant,
}

impl Network {
    /// The network of `scenario` with devices in the places of hosts. Its time begins with [`run`](Network::run).
    ///
    /// # Errors
    /// A host without a device, or a capture that cannot be written.
    pub fn build(scenario: &Scenario, devices: Vec<Attachment>, options: &Options) -> Result<Self> {
        let (mut world, doors) = Doors::build(scenario, scenario.seed)?;
        let names: Vec<(String, String)> =
            devices.iter().map(|at| (at.host.clone(), at.device.info().name.clone())).collect();
        let mut watch = Watch::new(options.bin);
        for (index, link) in scenario.links.iter().enumerate() {
            for way in [Way::Forward, Way::Backward] {
                let direction = link.direction(way);
                let hop = Hop { link: index, way };
                if let Some([entered, left]) = doors.observe(&mut world, hop)? {
                    let name = format!("{} to {}", direction.from, direction.to);
                    watch.add(&link.name, &name, hop, entered, left);
                }
            }
        }
        if let Some(captures) = &options.captures {
            let elements = world.ids().map(|id| world.name(id).to_owned()).collect();
            watch.capture(captures, elements)?;
            for door in doors.doors() {
                let device = names.iter().find(|(host, _)| *host == door.host).map(|(_, device)| device);
                let end = (door.door, farpace_path::Port(0));
                if let (Some(device), Some(peer)) = (device, world.peer(end)) {
                    let wires = [world.observe(end)?, world.observe(peer)?];
                    watch.capture_at(captures, device, &wires)?;
                }
            }
        }
        let mut station = Station::new(world, options.patience.wait())?;
        for Attachment { host, device } in devices {
            let Some(door) = doors.doors().iter().find(|door| door.host == host) else {
                bail!("the scenario has no host `{host}`");
            };
            match options.whole {
                true => station.attach(door.door, device),
                false => station.attach_cutting(door.door, device),
            }
        }
        if let Some(door) =
            doors.doors().iter().find(|door| !names.iter().any(|(host, _)| *host == door.host))
        {
            bail!("host `{}` of the scenario has no interface", door.host);
        }
        let watch = Rc::new(RefCell::new(watch));
        station.show_to(Box::new(super::watch::Shared(watch.clone())));
        Ok(Network { station, doors, watch, begun: Instant::ZERO })
    }

    /// The doors of its hosts.
    pub const fn doors(&self) -> &Doors {
        &self.doors
    }
    /// The station.
    pub const fn station(&self) -> &Station {
        &self.station
    }

    /// Runs until a signal comes, `lasts` is over, or `ended` says so; it is asked a few times a second at least.
    ///
    /// # Errors
    /// A device that is gone, or a capture that cannot be written.
    pub fn run(
        &mut self,
        lasts: Option<Span>,
        figures: &mut Figures,
        mut ended: impl FnMut() -> bool,
    ) -> Result<()> {
        const LOOK: Span = Span::from_millis(20);
        farpace_live::sharpen_timers();
        self.begun = self.station.now();
        let end = lasts.map_or(Instant::FAR_FUTURE, |lasts| self.begun + lasts);
        let mut look = self.begun;
        loop {
            if !self.station.turn().context("the network has stopped")? {
                break;
            }
            let now = self.station.now();
            if now < look {
                continue;
            }
            look = now + LOOK;
            if now >= end || interrupt::asked() || ended() {
                break;
            }
            self.watch.borrow_mut().check()?;
            if figures.is_due(now) {
                let lines = self.lines(now);
                figures.show(now, &lines);
            }
        }
        figures.clear();
        Ok(())
    }

    /// The figures since they were last asked for, a line for each direction of a link.
    fn lines(&mut self, now: Instant) -> Vec<String> {
        let hops: Vec<Hop> = self.watch.borrow().hops().collect();
        let doors = &self.doors;
        let world = self.station.world_mut();
        let queues: Vec<Span> = hops.iter().map(|hop| doors.queueing_delay(world, *hop, now)).collect();
        let mut lines = self.watch.borrow_mut().lines(now, &queues);
        let drops = super::summary::drops(self.station.world());
        let drops: Vec<String> =
            drops.iter().map(|drop| format!("{} {} {}", drop.place, drop.cause, drop.packets)).collect();
        lines.push(format!(
            "dropped: {}",
            if drops.is_empty() { "none".to_owned() } else { drops.join(", ") }
        ));
        let late = self.station.lateness();
        let us = |share| late.quantile(share).as_nanos() as f64 / 1e3;
        lines.push(format!(
            "packets leave late by: median {:.1} us, 99 % {:.1} us, most {:.0} us",
            us(0.5),
            us(0.99),
            late.most().as_nanos() as f64 / 1e3
        ));
        lines
    }

    /// What has come of it.
    ///
    /// # Errors
    /// A capture that cannot be written.
    pub fn finish(&mut self) -> Result<Summary> {
        let lasted = self.station.now().since(self.begun);
        let mut watch = self.watch.borrow_mut();
        let captures = watch.finish()?;
        Ok(Summary::new(&self.station, &watch, lasted, captures))
    }
    /// What has passed per bin, as a table of comma-separated values.
    pub fn csv(&self) -> String {
        self.watch.borrow().csv()
    }
}
