//! The first pass: finds the flows and counts their frames.

use super::key::{ControlFrame, FlowKey, look};
use super::link_model::{LinkModel, MinDistance, assumed};
use super::{CapturedFrame, MAX_FLOWS, MAX_INTERFACES, MIN_PACKETS, ProofQuestion};
use crate::pacing::{layer_2, wire_len};
use farpace_units::{ByteCount, Instant, Rate, Span};
use farpace_wire::MacAddr;
use std::collections::BTreeMap;

/// Maximum number of senders per interface whose frames are used to determine the rate of the link.
const MAX_SENDERS: usize = 64;

/// Counters of frames with their time range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Frames.
    pub packets: u64,
    /// Bytes of layer 2: padded, with check sequences.
    pub bytes: ByteCount,
    /// Time of the first frame.
    pub first: Instant,
    /// The latest time.
    pub last: Instant,
    /// Number of frames with a time earlier than a previous one.
    pub backwards: u64,
    /// Maximum decrease of the time.
    pub furthest_back: Span,
}

impl Totals {
    fn record(&mut self, time: Instant, bytes: ByteCount) {
        if self.packets == 0 {
            (self.first, self.last) = (time, time);
        }
        self.packets += 1;
        self.bytes += bytes;
        if time < self.last {
            self.backwards += 1;
            self.furthest_back = self.furthest_back.max(self.last.since(time));
        }
        self.last = self.last.max(time);
    }
    /// From the start of the first frame to the start of the last.
    pub fn duration(&self) -> Span {
        self.last.since(self.first)
    }
}

/// Counters of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowTotals {
    /// The flow.
    pub key: FlowKey,
    /// Its frames.
    pub total: Totals,
    /// Bytes of IP packets; for other frames, bytes after the Ethernet header.
    pub network_bytes: ByteCount,
    /// The longest frame in memory.
    pub longest: ByteCount,
    /// The last frame: bytes of layer 2, and bytes after the Ethernet header.
    pub(super) final_bytes: (ByteCount, ByteCount),
    /// The longest Ethernet header.
    pub(super) link_header: ByteCount,
    /// Maximum length of options and payload in a TCP segment whose header was captured.
    pub(super) longest_segment: ByteCount,
    /// The MSS option in the SYN of its sender.
    pub(super) mss: Option<u16>,
}

/// Counters of MAC control frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GapFrameTotals {
    /// PAUSE frames with a time of zero: gap frames.
    pub frames: u64,
    /// Bytes of layer 2 of gap frames.
    pub bytes: ByteCount,
    /// Wire bytes of gap frames.
    pub line_bytes: ByteCount,
    /// Other MAC control frames: requests to pause.
    pub others: u64,
}

/// Counters of an interface.
#[derive(Clone, Debug, Default)]
pub struct InterfaceTotals {
    /// All frames, including gap frames.
    pub total: Totals,
    /// Their wire bytes.
    pub line_bytes: ByteCount,
    /// MAC control frames.
    pub gaps: GapFrameTotals,
    /// Resolution of its clock, according to the capture.
    pub(super) capture_tick: Span,
    /// True if all times are whole microseconds.
    whole_micros: bool,
    senders: BTreeMap<MacAddr, MinDistance>,
}

impl InterfaceTotals {
    /// The link, if its rate can be derived from frames.
    pub fn link(&self) -> Option<LinkModel> {
        assumed(self.senders.values().filter_map(MinDistance::max_rate).max()?)
    }
    /// Resolution of the clock: as the capture states, but a microsecond if all times are whole microseconds.
    pub fn tick(&self) -> Span {
        let coarser = self.whole_micros && self.total.packets >= MIN_PACKETS;
        self.capture_tick.max(if coarser { Span::from_micros(1) } else { Span::ZERO })
    }
}

/// The first pass over a capture.
#[derive(Clone, Debug)]
pub struct FirstPass {
    pub(super) question: ProofQuestion,
    pub(super) flows: Vec<FlowTotals>,
    pub(super) indices: BTreeMap<FlowKey, usize>,
    /// The flow of the previous frame, as a cache.
    recent: Option<(FlowKey, usize)>,
    pub(super) interfaces: BTreeMap<u32, InterfaceTotals>,
    pub(super) other: Totals,
    pub(super) unreadable: Totals,
    all: Totals,
}

impl FirstPass {
    /// A first pass without frames.
    pub fn new(question: ProofQuestion) -> Self {
        FirstPass {
            question,
            flows: Vec::new(),
            indices: BTreeMap::new(),
            recent: None,
            interfaces: BTreeMap::new(),
            other: Totals::default(),
            unreadable: Totals::default(),
            all: Totals::default(),
        }
    }

    /// Handles a frame.
    pub fn see(&mut self, frame: &CapturedFrame<'_>) {
        let bytes = layer_2(frame.len);
        self.all.record(frame.time, bytes);
        let Some(seen) = look(frame.interface, frame.bytes) else {
            self.unreadable.record(frame.time, bytes);
            return;
        };
        self.count_on_interface(frame, seen.control);
        if seen.control.is_some() {
            return;
        }
        let Some(index) = self.index(&seen.key) else {
            if self.is_selected(&seen.key) {
                self.other.record(frame.time, bytes);
            }
            return;
        };
        let Some(flow) = self.flows.get_mut(index) else { return };
        let link_header = ByteCount::of_len(seen.link_header);
        let network = frame.len - link_header;
        flow.total.record(frame.time, bytes);
        flow.network_bytes += network;
        flow.longest = flow.longest.max(frame.len);
        flow.link_header = flow.link_header.max(link_header);
        flow.mss = seen.mss.or(flow.mss);
        if let Some(headers) = seen.tcp_headers {
            let segment = frame.len - ByteCount::of_len(headers);
            flow.longest_segment = flow.longest_segment.max(segment);
        }
        flow.final_bytes = (bytes, network);
    }

    fn count_on_interface(&mut self, frame: &CapturedFrame<'_>, control: Option<ControlFrame>) {
        if self.interfaces.len() >= MAX_INTERFACES && !self.interfaces.contains_key(&frame.interface) {
            return;
        }
        let interface = self
            .interfaces
            .entry(frame.interface)
            .or_insert_with(|| InterfaceTotals { whole_micros: true, ..InterfaceTotals::default() });
        let (bytes, line_bytes) = (layer_2(frame.len), wire_len(frame.len));
        interface.total.record(frame.time, bytes);
        interface.line_bytes += line_bytes;
        interface.capture_tick = interface.capture_tick.max(frame.tick);
        interface.whole_micros &= frame.time.as_nanos().is_multiple_of(1_000);
        match control {
            Some(ControlFrame::Gap) => {
                interface.gaps.frames += 1;
                interface.gaps.bytes += bytes;
                interface.gaps.line_bytes += line_bytes;
            }
            Some(ControlFrame::Other) => interface.gaps.others += 1,
            None => {}
        }
        // An address of zeros: a loopback interface or a synthetic header. There is no link.
        let sender = frame.bytes.get(6..12).and_then(<[u8]>::first_chunk).map(|bytes| MacAddr(*bytes));
        let Some(sender) = sender.filter(|sender| *sender != MacAddr::default()) else { return };
        if interface.senders.len() < MAX_SENDERS || interface.senders.contains_key(&sender) {
            interface.senders.entry(sender).or_default().frame(frame.time, line_bytes, frame.tick);
        }
    }

    /// The index of a flow. A new flow gets one if it is selected and there is room.
    fn index(&mut self, key: &FlowKey) -> Option<usize> {
        if let Some((recent, index)) = &self.recent
            && recent == key
        {
            return Some(*index);
        }
        let index = match self.indices.get(key) {
            Some(index) => *index,
            None if self.flows.len() >= MAX_FLOWS || !self.is_selected(key) => return None,
            None => {
                self.flows.push(FlowTotals {
                    key: *key,
                    total: Totals::default(),
                    network_bytes: ByteCount::ZERO,
                    longest: ByteCount::ZERO,
                    final_bytes: (ByteCount::ZERO, ByteCount::ZERO),
                    link_header: ByteCount::ZERO,
                    longest_segment: ByteCount::ZERO,
                    mss: None,
                });
                self.indices.insert(*key, self.flows.len() - 1);
                self.flows.len() - 1
            }
        };
        self.recent = Some((*key, index));
        Some(index)
    }

    fn is_selected(&self, key: &FlowKey) -> bool {
        self.question.flows.is_empty() || self.question.flows.iter().any(|filter| filter.matches(key))
    }

    /// The index of the flow of a frame, in the second pass.
    pub(super) fn known(&mut self, frame: &CapturedFrame<'_>) -> Option<usize> {
        let seen = look(frame.interface, frame.bytes).filter(|seen| seen.control.is_none())?;
        match &self.recent {
            Some((recent, index)) if *recent == seen.key => Some(*index),
            _ => {
                let index = *self.indices.get(&seen.key)?;
                self.recent = Some((seen.key, index));
                Some(index)
            }
        }
    }

    /// All frames.
    pub fn all(&self) -> &Totals {
        &self.all
    }
    /// The flows, in order of their first frames.
    pub fn flows(&self) -> &[FlowTotals] {
        &self.flows
    }
    /// The interfaces with their numbers.
    pub fn interfaces(&self) -> impl Iterator<Item = (u32, &InterfaceTotals)> {
        self.interfaces.iter().map(|(number, interface)| (*number, interface))
    }
    /// Frames of flows beyond [`MAX_FLOWS`].
    pub fn other(&self) -> &Totals {
        &self.other
    }
    /// Frames whose Ethernet header was not captured.
    pub fn unreadable(&self) -> &Totals {
        &self.unreadable
    }
    /// The link of an interface: as configured, or as derived from frames.
    pub fn link(&self, interface: u32) -> Option<LinkModel> {
        let configured = self.question.link_rate.map(|rate| LinkModel { rate, assumed: false });
        configured.or_else(|| self.interfaces.get(&interface)?.link())
    }
    /// Resolution of the clock of an interface: the coarser of the configured one and that of the capture.
    pub fn tick(&self, interface: u32) -> Span {
        let seen = self.interfaces.get(&interface).map_or(Span::ZERO, InterfaceTotals::tick);
        seen.max(self.question.tick)
    }
    /// Mean rates of a flow, of layer 2 and of IP: bytes of all frames but the last over the time from the
    /// first to the last. None without duration.
    pub(super) fn means(flow: &FlowTotals) -> Option<(Rate, Rate)> {
        let duration = flow.total.duration();
        let (bytes, network) = flow.final_bytes;
        (!duration.is_zero()).then(|| {
            let rate = |all: ByteCount, last| Rate::of(all - last, duration);
            (rate(flow.total.bytes, bytes), rate(flow.network_bytes, network))
        })
    }
}
