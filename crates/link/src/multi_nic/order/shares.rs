//! Whose turn it is, for each neighbour: shares that were given, or those that the lanes carry.

use crate::multi_nic::{MAX_NICS, NeighbourId, NicId, NicPaths, Ratio, Slots};

/// A cycle of slots for each neighbour.
#[derive(Clone, Debug)]
pub(super) struct Shares {
    fixed: Option<Ratio>,
    /// By the number of the neighbour; none until it is sent to, and after lanes have changed.
    slots: Vec<Option<Slots>>,
}

impl Shares {
    /// With the shares of `fixed`, or what lanes carry.
    pub const fn new(fixed: Option<Ratio>) -> Self {
        Shares { fixed, slots: Vec::new() }
    }
    /// The cycle for `neighbour`. None if no lane to it works.
    pub fn of(&mut self, neighbour: NeighbourId, lanes: &NicPaths) -> Option<&mut Slots> {
        let at = neighbour.0 as usize;
        if self.slots.len() <= at {
            self.slots.resize(at + 1, None);
        }
        let slots = &mut self.slots[at];
        if slots.is_none() {
            *slots = weights(self.fixed.as_ref(), neighbour, lanes).map(|ratio| Slots::new(&ratio));
        }
        slots.as_mut()
    }
    /// Who sends the next frame for `neighbour`; the slot is used up.
    pub fn take(&mut self, neighbour: NeighbourId, lanes: &NicPaths) -> Option<NicId> {
        let slots = self.of(neighbour, lanes)?;
        let nic = slots.next();
        slots.advance();
        Some(nic)
    }
    /// Lanes have changed: cycles whose shares are others now begin anew.
    pub fn on_change(&mut self, lanes: &NicPaths) {
        for (at, slots) in self.slots.iter_mut().enumerate() {
            match weights(self.fixed.as_ref(), NeighbourId(at as u32), lanes) {
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

/// The shares of the lanes that work: those given, or if these have none, what each carries.
fn weights(fixed: Option<&Ratio>, neighbour: NeighbourId, lanes: &NicPaths) -> Option<Ratio> {
    let (mut given, mut carried) = ([0; MAX_NICS], [0; MAX_NICS]);
    for (nic, lane) in lanes.working(neighbour) {
        given[nic.index()] = fixed.and_then(|r| r.weights().get(nic.index())).copied().unwrap_or(0);
        carried[nic.index()] = (lane.rate.bits_per_sec() / 1_000).max(1);
    }
    let n = lanes.nics().len();
    Ratio::of(&given[..n]).or_else(|| Ratio::of(&carried[..n]))
}
