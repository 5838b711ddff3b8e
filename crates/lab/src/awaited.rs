//! The flows that receiving hosts wait for, and which connection belongs to which flow.

use crate::payload::Verifier;
use crate::scenario::{ExchangeSpec, PortionsSpec};
use farpace_host::ConnectionId;
use farpace_path::world::ElementId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where a flow is waited for: a host, its port, and the port of the sender if several flows share that port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AwaitedAt {
    pub host: ElementId,
    pub port: u16,
    pub from_port: Option<u16>,
}

/// A flow that has not come yet.
pub(crate) struct AwaitedFlow {
    /// Its index.
    pub flow: usize,
    pub verifier: Verifier,
    pub reads: Option<PortionsSpec>,
    pub exchanges: Arc<[ExchangeSpec]>,
}

/// Known to a run and to the programs of its receiving hosts.
#[derive(Clone, Default)]
pub(crate) struct AwaitedFlows(Arc<Mutex<AwaitedTable>>);

#[derive(Default)]
struct AwaitedTable {
    awaited: BTreeMap<AwaitedAt, AwaitedFlow>,
    accepted: Vec<(usize, ConnectionId)>,
}

impl AwaitedFlows {
    fn table(&self) -> MutexGuard<'_, AwaitedTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on a flow is waited for.
    pub fn expect(&self, at: AwaitedAt, flow: AwaitedFlow) {
        self.table().awaited.insert(at, flow);
    }

    /// The flow is over, whether it has come or not.
    pub fn forget(&self, at: AwaitedAt) {
        self.table().awaited.remove(&at);
    }

    /// A connection has come. None: no flow is waited for there, or not any more.
    pub fn take(&self, at: AwaitedAt, id: ConnectionId) -> Option<AwaitedFlow> {
        let mut table = self.table();
        let any = AwaitedAt { from_port: None, ..at };
        let found = table.awaited.remove(&at).or_else(|| table.awaited.remove(&any))?;
        table.accepted.push((found.flow, id));
        Some(found)
    }

    /// The flows whose connections have come since the last call.
    pub fn accepted(&self) -> Vec<(usize, ConnectionId)> {
        std::mem::take(&mut self.table().accepted)
    }
}
