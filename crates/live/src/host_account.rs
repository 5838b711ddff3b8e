//! What a host has done: figures while it runs, and a summary.

use crate::{DeviceCounters, Driver};
use farpace_host::Host;
use farpace_path::DropReason;
use farpace_path::world::ElementId;
use farpace_units::{ByteCount, Instant, Span};
use serde::Serialize;
use std::collections::BTreeMap;

/// Counts at one time.
#[derive(Clone, Debug, Default, Serialize)]
pub struct HostAccount {
    /// Seconds since the host came up.
    pub seconds: f64,
    /// Connections that are open, half-open ones included.
    pub connections: usize,
    /// Of them, those whose handshake is not complete.
    pub half_open: usize,
    /// Connections in TIME-WAIT, of those.
    pub time_wait: usize,
    /// Bytes that connections hold.
    pub memory: u64,
    /// Most bytes that they held.
    pub memory_peak: u64,
    /// Bytes that they may hold.
    pub memory_limit: u64,
    /// How short of memory the host is, in words.
    pub memory_level: &'static str,
    /// Segments dropped unacknowledged for want of memory.
    pub memory_segments_refused: u64,
    /// Connections refused for want of memory.
    pub memory_connections_refused: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Segments received.
    pub packets_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Segments sent.
    pub packets_out: u64,
    /// The longest time for which it did not run, in seconds: it was suspended. Zero: it never was.
    pub longest_pause: f64,
    /// Packets dropped, by cause.
    pub dropped: BTreeMap<&'static str, u64>,
}

impl HostAccount {
    /// The present.
    pub fn of(driver: &Driver, host: ElementId, begun: Instant) -> Self {
        let stats = driver.stats();
        let device = stats.devices.first().copied().unwrap_or_default();
        let DeviceCounters { malformed, refused, overflowed, .. } = device;
        let world = driver.world();
        let mut dropped = BTreeMap::new();
        for ledger in world.ids().filter_map(|id| world.ledger(id)) {
            ledger.drops().for_each(|(reason, count)| *dropped.entry(words(reason)).or_default() += count);
        }
        let own = [
            ("malformed", malformed),
            ("refused by the system", refused),
            ("no room in the device", overflowed + stats.queue_full),
        ];
        own.into_iter()
            .filter(|(_, count)| *count > 0)
            .for_each(|(why, count)| *dropped.entry(why).or_default() += count);
        let state = world.element::<Host>(host);
        let memory = state.map(Host::memory).unwrap_or_default();
        HostAccount {
            time_wait: state.map_or(0, Host::time_waits),
            memory: memory.held.get(),
            memory_peak: memory.peak.get(),
            memory_limit: memory.limit.get(),
            memory_level: memory.level.name(),
            memory_segments_refused: memory.segments_refused,
            memory_connections_refused: memory.connections_refused,
            seconds: driver.now().since(begun).as_nanos() as f64 / 1e9,
            connections: state.map_or(0, Host::open_connections),
            half_open: state.map_or(0, Host::half_open_connections),
            bytes_in: device.bytes_received,
            packets_in: device.segments_received,
            bytes_out: device.bytes_sent,
            packets_out: device.segments_sent,
            longest_pause: stats.longest_pause.as_nanos() as f64 / 1e9,
            dropped,
        }
    }

    /// Three lines: what there is, and what has passed since `before`.
    pub fn lines(&self, before: &HostAccount) -> Vec<String> {
        let seconds = (self.seconds - before.seconds).max(1e-3);
        let rate = |now: u64, then: u64| bits((now - then.min(now)) as f64 * 8.0 / seconds);
        let packets = |now: u64, then: u64| (now - then.min(now)) as f64 / seconds;
        vec![
            format!(
                "{} connections ({} half open)   in {} ({:.0} packets/s)   out {} ({:.0} packets/s)",
                self.connections,
                self.half_open,
                rate(self.bytes_in, before.bytes_in),
                packets(self.packets_in, before.packets_in),
                rate(self.bytes_out, before.bytes_out),
                packets(self.packets_out, before.packets_out),
            ),
            format!("memory: {} of {}; {}", bytes(self.memory), bytes(self.memory_limit), self.memory_level),
            format!("dropped: {}", self.drops()),
        ]
    }

    fn drops(&self) -> String {
        let each: Vec<_> = self.dropped.iter().map(|(why, count)| format!("{why} {count}")).collect();
        if each.is_empty() { "none".to_owned() } else { each.join(", ") }
    }

    /// What to say at the end.
    pub fn text(&self) -> String {
        let lasted = Span::from_millis((self.seconds * 1e3) as u64);
        let HostAccount { packets_in, packets_out, .. } = self;
        let paused = match self.longest_pause {
            0.0 => String::new(),
            seconds => format!(" It was suspended for up to {seconds:.1} s."),
        };
        format!(
            "Up for {lasted}. In: {} B in {packets_in} packets. Out: {} B in {packets_out} packets. Dropped: \
             {}. Memory: at most {} of {}; {} segments and {} connections refused for want of it.{paused}\n",
            self.bytes_in,
            self.bytes_out,
            self.drops(),
            bytes(self.memory_peak),
            bytes(self.memory_limit),
            self.memory_segments_refused,
            self.memory_connections_refused,
        )
    }
}

fn bytes(count: u64) -> String {
    ByteCount::new(count).to_string()
}

fn bits(rate: f64) -> String {
    match rate {
        r if r >= 1e9 => format!("{:.2} Gbit/s", r / 1e9),
        r if r >= 1e6 => format!("{:.1} Mbit/s", r / 1e6),
        r => format!("{:.1} kbit/s", r / 1e3),
    }
}

fn words(reason: DropReason) -> &'static str {
    reason.name()
}
