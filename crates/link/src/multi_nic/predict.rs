//! Simulates an order: frames that are all queued at once leave and arrive.

use super::order::{self, FlowId, QueuedFrame};
use super::{MultiNicConfig, NeighbourId, NicId, NicPaths};
use farpace_path::QueueLimit;
use farpace_units::{ByteCount, Instant};
use std::collections::BTreeSet;

/// One frame of a [prediction](predict).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PredictedDeparture {
    /// Index in the order of the stack, from 0.
    pub frame: u64,
    /// The NIC that sends it.
    pub nic: NicId,
    /// When its first bit leaves.
    pub leaves: Instant,
    /// When its last bit arrives.
    pub arrives: Instant,
}

impl PredictedDeparture {
    /// All departures in order of arrival, each with the number of later frames that arrive before it. From 3
    /// on, a TCP that counts duplicate ACKs retransmits it.
    pub fn in_order_of_arrival(departures: &[PredictedDeparture]) -> Vec<(PredictedDeparture, usize)> {
        let mut arrived = departures.to_vec();
        arrived.sort_by_key(|d| (d.arrives, d.frame));
        let mut seen = BTreeSet::new();
        let mut out = Vec::with_capacity(arrived.len());
        for departure in arrived {
            out.push((departure, seen.range(departure.frame..).count()));
            seen.insert(departure.frame);
        }
        out
    }
}

/// How the NICs of `paths` send `frames` frames with a wire length of `bytes`, of one flow to `neighbour`,
/// all queued at once. In order of departure.
pub fn predict(
    config: &MultiNicConfig,
    mut paths: NicPaths,
    neighbour: NeighbourId,
    frames: u64,
    bytes: ByteCount,
) -> Vec<PredictedDeparture> {
    let config = MultiNicConfig { queue: Some(QueueLimit::Unlimited), ..config.clone() };
    let mut order = order::make::<u64>(&config, &paths);
    let (mut now, mut refused, mut out) = (Instant::ZERO, Vec::new(), Vec::new());
    for frame in 0..frames {
        order.enqueue(
            now,
            QueuedFrame { frame, bytes, flow: FlowId(0), neighbour, cached: None },
            &paths,
            &mut refused,
        );
    }
    loop {
        let mut sent = true;
        while std::mem::take(&mut sent) {
            for nic in paths.ids() {
                if paths.is_idle(nic, now)
                    && let Some(item) = order.dequeue(now, nic, &paths)
                {
                    let delay = paths.path(neighbour, nic).map(|path| path.delay).unwrap_or_default();
                    let arrives = now + delay.of(item.bytes);
                    out.push(PredictedDeparture { frame: item.frame, nic, leaves: now, arrives });
                    paths.send(now, nic, neighbour, item.bytes);
                    sent = true;
                }
            }
        }
        let busy = paths.working(neighbour).map(|(nic, path)| paths.begins(nic, path, now));
        let wakes = busy.filter(|at| *at > now && order.held() > 0).chain(order.deadline());
        let Some(at) = wakes.min() else { return out };
        now = now.max(at);
        order.on_deadline(now, &paths, &mut refused);
    }
}
