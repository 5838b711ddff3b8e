//! Shares of the NICs for each neighbour: configured ones, or the rates of the paths.

use crate::multi_nic::{MAX_NICS, NeighbourId, NicId, NicPaths, Ratio, Slots};

/// A cycle of slots for each neighbour.
#[derive(Clone, Debug)]
pub(super) struct Shares {
    fixed: Option<Ratio>,
    /// By neighbour; none before the first frame, and while no path works.
    slots: Vec<Option<Slots>>,
}

impl Shares {
    /// With configured shares, or the rates of the paths.
    pub const fn new(fixed: Option<Ratio>) -> Self {
        Shares { fixed, slots: Vec::new() }
    }
    /// The cycle of `neighbour`. None if no path to it works.
    pub fn of(&mut self, neighbour: NeighbourId, paths: &NicPaths) -> Option<&mut Slots> {
        let at = neighbour.0 as usize;
        if self.slots.len() <= at {
            self.slots.resize(at + 1, None);
        }
        let slots = &mut self.slots[at];
        if slots.is_none() {
            *slots = weights(self.fixed.as_ref(), neighbour, paths).map(|ratio| Slots::new(&ratio));
        }
        slots.as_mut()
    }
    /// Consumes a slot: the NIC for the next frame to `neighbour`.
    pub fn take(&mut self, neighbour: NeighbourId, paths: &NicPaths) -> Option<NicId> {
        let slots = self.of(neighbour, paths)?;
        let nic = slots.next();
        slots.advance();
        Some(nic)
    }
    /// Handles a change of paths: cycles with other shares start over.
    pub fn on_change(&mut self, paths: &NicPaths) {
        for (at, slots) in self.slots.iter_mut().enumerate() {
            match weights(self.fixed.as_ref(), NeighbourId(at as u32), paths) {
                Some(ratio) => {
                    if let Some(slots) = slots {
                        slots.set(&ratio);
                    }
                }
                None => *slots = None,
            }
        }
    }
}

/// The shares of the working paths: the configured ones, or if all of these are zero, the rates.
fn weights(fixed: Option<&Ratio>, neighbour: NeighbourId, paths: &NicPaths) -> Option<Ratio> {
    let (mut given, mut rates) = ([0; MAX_NICS], [0; MAX_NICS]);
    for (nic, path) in paths.working(neighbour) {
        given[nic.index()] = fixed.and_then(|r| r.weights().get(nic.index())).copied().unwrap_or(0);
        rates[nic.index()] = (path.rate.bits_per_sec() / 1_000).max(1);
    }
    let n = paths.nics().len();
    Ratio::of(&given[..n]).or_else(|| Ratio::of(&rates[..n]))
}
