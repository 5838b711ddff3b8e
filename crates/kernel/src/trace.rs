//! A row for each ACK of the connections under our controls.

use crate::object::{self, CONFIG, TRACE};
use crate::{KernelError, TraceRow};
use farpace_units::Span;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, RingBufferBuilder};
use std::time::Duration;

/// The rows, as they come. While it lives the programs write them; one process at a time can read.
#[derive(Debug)]
pub struct KernelTrace {
    rows: Vec<MapHandle>,
    switches: Vec<MapHandle>,
}

impl KernelTrace {
    /// Lets the programs write rows from now on.
    ///
    /// # Errors
    /// [`KernelError::NotLoaded`], or no rights.
    pub fn start() -> Result<Self, KernelError> {
        let trace = KernelTrace {
            rows: object::maps(TRACE, MapType::RingBuf),
            switches: object::maps(CONFIG, MapType::Array),
        };
        if trace.rows.is_empty() || trace.switches.is_empty() {
            return Err(if object::has_rights() { KernelError::NotLoaded } else { KernelError::NoRights });
        }
        trace.switch(1).map_err(|error| object::refused("to switch the trace on", &error))?;
        Ok(trace)
    }

    fn switch(&self, on: u32) -> libbpf_rs::Result<()> {
        let mut value = [0; 8];
        let (word, _) = value.split_at_mut(4);
        word.copy_from_slice(&on.to_ne_bytes());
        self.switches.iter().try_for_each(|map| map.update(&0u32.to_ne_bytes(), &value, MapFlags::ANY))
    }

    /// Gives what has come to `take`, and waits up to `wait` if nothing has. Returns how many rows were not
    /// understood.
    ///
    /// # Errors
    /// The kernel does not let it read.
    pub fn read(&mut self, wait: Duration, mut take: impl FnMut(TraceRow)) -> Result<u64, KernelError> {
        let mut foreign = 0;
        for map in &self.rows {
            let (take, foreign) = (&mut take, &mut foreign);
            let mut builder = RingBufferBuilder::new();
            let added = builder.add(map, move |bytes| {
                TraceRow::parse(bytes).map_or_else(|| *foreign += 1, &mut *take);
                0
            });
            let failed = |error: libbpf_rs::Error| object::refused("to read the trace", &error);
            added.map_err(failed)?;
            let buffer = builder.build().map_err(failed)?;
            match buffer.poll(wait) {
                Err(error) if error.kind() != libbpf_rs::ErrorKind::Interrupted => return Err(failed(error)),
                _ => {}
            }
        }
        Ok(foreign)
    }

    /// A tick of the kernel's timers, in which rows give the retransmission timeout.
    pub fn tick() -> Span {
        let tick = rustix::time::clock_getres(rustix::time::ClockId::MonotonicCoarse);
        Span::from_nanos(u64::try_from(tick.tv_nsec).unwrap_or(4_000_000))
    }
}

impl Drop for KernelTrace {
    fn drop(&mut self) {
        // The rows would only go unread.
        let _ = self.switch(0);
    }
}
