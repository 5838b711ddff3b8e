//! Nodes that join several links into one Ethernet: a switch, which learns where stations are, and a hub,
//! which does not.

use crate::{Cx, Element, Inspection, Port, PortFrames};
use farpace_units::{Instant, Span};
use farpace_wire::{MacAddr, Packet};
use std::collections::BTreeMap;

/// A learning switch (IEEE 802.1Q §8.6 to §8.8, without VLANs). It takes no time and has no queue: its links
/// have.
///
/// A frame goes to the port of its receiver; to all other ports if that is not known or the receiver is a
/// group. A frame whose receiver is at the port where it came in is filtered, and so are [link-local
/// frames](PortFrames) like PAUSE.
#[derive(Clone, Debug)]
pub struct Switch {
    ports: u16,
    /// The port of each station, and when it last sent.
    stations: BTreeMap<MacAddr, (Port, Instant)>,
    frames: PortFrames,
    forwarded: u64,
    flooded: u64,
    kept_back: u64,
    not_learned: u64,
}

impl Switch {
    /// Most stations that it learns. Frames for further ones are flooded.
    pub const MAX_STATIONS: usize = 8_192;
    /// A station that sends nothing for longer is forgotten (IEEE 802.1Q Table 8-6).
    pub const AGEING: Span = Span::from_secs(300);

    /// A switch with so many ports.
    pub fn new(ports: u16) -> Self {
        Switch {
            ports,
            stations: BTreeMap::new(),
            frames: PortFrames::default(),
            forwarded: 0,
            flooded: 0,
            kept_back: 0,
            not_learned: 0,
        }
    }
    /// `station` has sent at `port`. It is not learned if it is a group, or if the table is full.
    pub fn learn(&mut self, now: Instant, station: MacAddr, port: Port) {
        if station.is_multicast() {
            return;
        }
        if self.stations.len() >= Self::MAX_STATIONS && !self.stations.contains_key(&station) {
            self.stations.retain(|_, (_, heard)| now.since(*heard) <= Self::AGEING);
            if self.stations.len() >= Self::MAX_STATIONS {
                self.not_learned += 1;
                return;
            }
        }
        self.stations.insert(station, (port, now));
    }
    /// The port of `station`; none if it is not known, or no longer.
    pub fn find(&self, now: Instant, station: MacAddr) -> Option<Port> {
        let (port, heard) = self.stations.get(&station)?;
        (now.since(*heard) <= Self::AGEING).then_some(*port)
    }
    /// Frames that ended at its ports.
    pub const fn port_frames(&self) -> &PortFrames {
        &self.frames
    }
    /// Frames filtered because their receiver was at the port where they came in.
    pub const fn kept_back(&self) -> u64 {
        self.kept_back
    }
    /// Frames that went to all other ports.
    pub const fn flooded(&self) -> u64 {
        self.flooded
    }
}

impl Element for Switch {
    fn ports(&self) -> u16 {
        self.ports
    }
    fn is_passive(&self) -> bool {
        true
    }
    fn on_packet(&mut self, port: Port, packet: Packet, cx: &mut Cx<'_>) {
        let (src, dst) = packet.macs();
        self.learn(cx.now(), src, port);
        let Some(packet) = self.frames.take(packet, cx) else { return };
        match self.find(cx.now(), dst) {
            Some(out) if out == port => {
                self.kept_back += 1;
                cx.consume(packet);
            }
            Some(out) => {
                self.forwarded += 1;
                cx.emit(out, packet);
            }
            None => {
                self.flooded += 1;
                repeat(port, self.ports, packet, cx);
            }
        }
    }
    fn on_wake(&mut self, _cx: &mut Cx<'_>) {}
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn held(&self) -> u64 {
        0
    }
    fn inspect(&self) -> Inspection {
        let mut readings = vec![
            ("stations", self.stations.len().to_string()),
            ("forwarded", self.forwarded.to_string()),
            ("flooded", self.flooded.to_string()),
            ("kept back", self.kept_back.to_string()),
            ("not learned", self.not_learned.to_string()),
        ];
        readings.extend(self.frames.inspect());
        readings
    }
}

/// A repeater: a frame that comes in goes out of all other ports, link-local frames like PAUSE too. Unlike a
/// real hub it has no collisions: its links are full duplex and have queues.
#[derive(Clone, Debug)]
pub struct Hub {
    ports: u16,
    repeated: u64,
}

impl Hub {
    /// A hub with so many ports.
    pub const fn new(ports: u16) -> Self {
        Hub { ports, repeated: 0 }
    }
}

impl Element for Hub {
    fn ports(&self) -> u16 {
        self.ports
    }
    fn is_passive(&self) -> bool {
        true
    }
    fn on_packet(&mut self, port: Port, packet: Packet, cx: &mut Cx<'_>) {
        self.repeated += 1;
        repeat(port, self.ports, packet, cx);
    }
    fn on_wake(&mut self, _cx: &mut Cx<'_>) {}
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn held(&self) -> u64 {
        0
    }
    fn inspect(&self) -> Inspection {
        vec![("repeated", self.repeated.to_string())]
    }
}

/// Sends `packet` out of all ports but `from`. It ends here if there are no others.
fn repeat(from: Port, ports: u16, packet: Packet, cx: &mut Cx<'_>) {
    let mut others = (0..ports).map(Port).filter(|port| *port != from);
    let Some(last) = others.next_back() else {
        cx.consume(packet);
        return;
    };
    for port in others {
        cx.made();
        cx.emit(port, packet.clone());
    }
    cx.emit(last, packet);
}

#[cfg(test)]
mod tests;
