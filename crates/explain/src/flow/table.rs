//! All connections of a capture.

use super::{Flow, Side, TooBig};
use crate::frame::CapturedSegment;
use farpace_units::Instant;
use hashbrown::HashTable;
use siphasher::sip::SipHasher13;
use std::hash::Hasher;
use std::net::{IpAddr, SocketAddr};

/// Connections that are followed. Packets of further ones are counted.
pub const MAX_FLOWS: usize = 1_000_000;
/// Memory for all connections together, in bytes. Beyond it, connections that need more are followed no
/// further, and new ones are counted.
pub const MAX_MEMORY: usize = 2 << 30;

/// The connections, in the order of their first packets.
pub struct FlowTable {
    flows: Vec<Flow>,
    index: HashTable<u32>,
    /// The flow of the last packet: packets come in trains.
    last: Option<u32>,
    /// Packets of connections beyond [`MAX_FLOWS`], or without memory.
    pub left_out: u64,
    memory: usize,
    max_memory: usize,
}

impl Default for FlowTable {
    fn default() -> Self {
        FlowTable::with_memory(MAX_MEMORY)
    }
}

/// Both ends, the smaller first.
type Key = (SocketAddr, SocketAddr);

fn key(a: SocketAddr, b: SocketAddr) -> Key {
    if a <= b { (a, b) } else { (b, a) }
}

fn hash(key: &Key) -> u64 {
    // The same on every machine; who chooses ports to collide makes their own capture slow, in bounds.
    let mut hasher = SipHasher13::new_with_keys(0x6661_7270, 0x6163_6500);
    for end in [key.0, key.1] {
        match end.ip() {
            IpAddr::V4(ip) => hasher.write_u32(u32::from(ip)),
            IpAddr::V6(ip) => hasher.write_u128(u128::from(ip)),
        }
        hasher.write_u16(end.port());
    }
    hasher.finish()
}

impl FlowTable {
    /// A table for which so many bytes are enough.
    pub fn with_memory(max_memory: usize) -> Self {
        FlowTable {
            flows: Vec::new(),
            index: HashTable::new(),
            last: None,
            left_out: 0,
            memory: 0,
            max_memory,
        }
    }

    /// Memory of all connections, in bytes.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// All flows.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// All flows, taken out.
    pub fn into_flows(mut self) -> Vec<Flow> {
        self.flows.iter_mut().for_each(Flow::finish);
        self.flows
    }

    /// Takes a segment to its connection.
    pub fn take(&mut self, segment: &CapturedSegment) {
        let src = SocketAddr::new(segment.src, segment.src_port);
        let dst = SocketAddr::new(segment.dst, segment.dst_port);
        if let Some(at) = self.last
            && let Some(flow) = self.flows.get_mut(at as usize)
            && (flow.ends == [src, dst] || flow.ends == [dst, src])
            && segment.flags.0 & crate::frame::Flags::SYN == 0
        {
            self.left_out += give(flow, segment, &mut self.memory, self.max_memory);
            return;
        }
        let key = key(src, dst);
        let hash_of = hash(&key);
        let flows = &self.flows;
        let same = |at: &u32| flows.get(*at as usize).is_some_and(|f| self::key(f.ends[0], f.ends[1]) == key);
        let found = self.index.find(hash_of, same).copied();
        if let Some(at) = found
            && let Some(flow) = self.flows.get_mut(at as usize)
        {
            let side = if flow.ends[0] == src { Side::Client } else { Side::Server };
            if !flow.is_another(segment, side) {
                self.last = Some(at);
                self.left_out += give(flow, segment, &mut self.memory, self.max_memory);
                return;
            }
        }
        if self.flows.len() >= MAX_FLOWS || self.memory >= self.max_memory {
            self.left_out += 1;
            return;
        }
        let at = self.flows.len() as u32;
        let mut flow = Flow::new(segment);
        give(&mut flow, segment, &mut self.memory, self.max_memory);
        self.flows.push(flow);
        let flows = &self.flows;
        match self.index.find_mut(hash_of, |other| {
            flows.get(*other as usize).is_some_and(|f| self::key(f.ends[0], f.ends[1]) == key)
        }) {
            // The ports are used again: later packets belong to the new connection.
            Some(slot) => *slot = at,
            None => {
                self.index.insert_unique(hash_of, at, |other| {
                    flows.get(*other as usize).map_or(0, |f| hash(&self::key(f.ends[0], f.ends[1])))
                });
            }
        }
        self.last = Some(at);
    }

    /// A router says that a packet from `src` to `dst` was too big: it concerns all their connections.
    pub fn too_big(&mut self, src: IpAddr, dst: IpAddr, time: Instant, frame: u64, mtu: u32) {
        let note = TooBig { time, frame, mtu };
        // ICMP is rare, and a flood of it is bounded by the newest flows.
        let recent = self.flows.iter_mut().rev().take(1_024);
        for flow in recent {
            let ends = flow.ends.map(|end| end.ip());
            if ends == [src, dst] || ends == [dst, src] {
                flow.icmp(note);
            }
        }
    }
}

/// Gives a segment to its connection, if there is memory for it; how many were left out.
fn give(flow: &mut Flow, segment: &CapturedSegment, memory: &mut usize, max: usize) -> u64 {
    if flow.stopped.is_some() {
        return 1;
    }
    flow.take(segment);
    let mut size = flow.memory();
    if size > flow.counted && *memory + size - flow.counted > max {
        flow.stop();
        size = flow.memory();
    }
    *memory = *memory + size - flow.counted;
    flow.counted = size;
    0
}
