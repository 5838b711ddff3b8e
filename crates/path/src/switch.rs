//! What joins several lines into one Ethernet: a switch, which learns where stations are, or a hub, which does not.

use crate::{Cx, Element, Inspection, Port, PortFrames};
use farpace_units::{Instant, Span};
use farpace_wire::{MacAddr, Packet};
use std::collections::BTreeMap;

/// A learning switch (IEEE 802.1Q §8.6 to §8.8, without VLANs). It takes no time and has no queue: the links around it have.
///
/// A frame goes where its receiver was last heard; to all other ports if that is not known or it goes to a group. A frame
/// whose receiver is where it came from is kept back, and so are [frames of the line](PortFrames), PAUSE among them.
#[derive(Clone, Debug)]
pub struct Switch {
    ports: u16,
    /// Where each station was heard, and when last.
    stations: BTreeMap<MacAddr, (Port, Instant)>,
    frames: PortFrames,
    forwarded: u64,
    flooded: u64,
    kept_back: u64,
    not_learned: u64,
}

impl Switch {
    /// Most stations it remembers; of others it floods what they get.
    pub const MAX_STATIONS: usize = 8_192;
    /// A station that was silent for longer is forgotten (IEEE 802.1Q Table 8-6).
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
    /// `station` was heard at `port`. It is not learned if it is a group, or if too many are known already.
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
    /// Where `station` is; none if it is not known, or not any more.
    pub fn find(&self, now: Instant, station: MacAddr) -> Option<Port> {
        let (port, heard) = self.stations.get(&station)?;
        (now.since(*heard) <= Self::AGEING).then_some(*port)
    }
    /// Frames that ended at its ports.
    pub const fn port_frames(&self) -> &PortFrames {
        &self.frames
    }
    /// Frames kept back because their receiver was where they came from.
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

/// A repeater: whatever comes in goes out of all other ports, PAUSE and all other frames of the line too. Unlike one of
/// copper it has no collisions: the lines around it are full duplex and have queues.
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

/// Sends `packet` out of all ports but `from`; it ends here if there are no others.
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
