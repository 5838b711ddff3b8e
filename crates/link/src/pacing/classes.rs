//! Classes: queues with limits and counters. All schedulers share them, and each adds its own state.

use super::admission::PacingAdmission;
use super::prefetch::prefetch;
use super::{EnqueueRefusal, PacedFrame, PacingError, PacingInterval, Refused};
use farpace_path::{Backlog, QueueLimit};
use farpace_units::{ByteCount, Rate};

/// Maximum number of classes of one device.
pub const MAX_CLASSES: usize = 1 << 22;

/// Identifies a class of one scheduler. A number is reused after its class was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub(crate) u32);

impl ClassId {
    /// The number, from 0.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// How a class is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassKind {
    /// At this layer 2 rate, guaranteed: admission control checks that all paced classes fit the link.
    Paced(Rate),
    /// At most at the [`PacedFrame::rate_hint`] of the latest packet. It uses only capacity that paced
    /// classes leave, like a normal class. Without a hint it is a normal class.
    Follows,
    /// Uses capacity that paced classes leave, in round robin with other normal classes.
    Normal,
}

/// What a new class is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassSpec {
    /// How it is served.
    pub kind: ClassKind,
    /// The limit of its queue.
    pub limit: QueueLimit,
}

/// Counters of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassStats {
    /// Packets sent.
    pub packets: u64,
    /// Bytes sent, as frame lengths in memory.
    pub bytes: ByteCount,
    /// Packets refused because the queue was full.
    pub dropped: u64,
    /// The queued packets.
    pub backlog: Backlog,
    /// Maximum lateness of a packet in bytes on the wire; zero for classes without a rate.
    pub latest: ByteCount,
    /// The current rate; zero for a class without one.
    pub rate: Rate,
}

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    Free,
    Paced,
    Follows,
    Normal,
}

/// A class. It occupies two cache lines, so a million idle classes take 128 MB.
#[derive(Clone, Debug)]
#[repr(align(128))]
pub(crate) struct ClassState<S> {
    /// State of the scheduler.
    pub state: S,
    /// Valid for paced classes, and for following classes that have a hint.
    pub interval: PacingInterval,
    /// See [`ClassStats::latest`].
    pub latest: u32,
    pub tag: Tag,
    first: u32,
    last: u32,
    /// Length of the first packet.
    first_len: u32,
    queued: u32,
    queued_bytes: u64,
    sent: u64,
    sent_bytes: u64,
    dropped: u64,
    max_packets: u32,
    max_bytes: u64,
}

impl<S> ClassState<S> {
    /// Position of the first queued packet.
    #[inline]
    pub fn first_packet(&self) -> PacketAt {
        PacketAt(self.first)
    }
    /// Length in memory of the first queued packet; none if the queue is empty.
    #[inline]
    pub fn head(&self) -> Option<ByteCount> {
        (self.queued > 0).then(|| ByteCount::new(u64::from(self.first_len)))
    }
    /// Records that a packet leaves `by` bytes on the wire after its time.
    #[inline]
    pub fn was_late(&mut self, by: ByteCount) {
        self.latest = self.latest.max(u32::try_from(by.get()).unwrap_or(u32::MAX));
    }
}

/// Position of a queued packet in memory. Only [`Classes::prefetch`] uses it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PacketAt(u32);

/// A queued packet. It stores the length of the next one, so that dequeuing touches one packet only.
#[derive(Debug)]
struct ClassNode<P> {
    packet: Option<P>,
    next: u32,
    next_len: u32,
}

/// All classes of a scheduler, their packets, and the capacity that is reserved for them.
#[derive(Debug)]
pub(crate) struct Classes<P, S> {
    admission: PacingAdmission,
    classes: Vec<ClassState<S>>,
    free: Vec<u32>,
    nodes: Vec<ClassNode<P>>,
    /// Head of the list of unused nodes.
    free_node: u32,
    backlog: Backlog,
}

impl<P: PacedFrame, S: Default> Classes<P, S> {
    /// No classes, on a link that carries IP packets of up to `mtu` bytes.
    pub fn new(link_rate: Rate, mtu: ByteCount) -> Result<Self, PacingError> {
        Ok(Self::admitted_by(PacingAdmission::new(link_rate, mtu)?))
    }
    /// No classes, with this admission control.
    pub fn admitted_by(admission: PacingAdmission) -> Self {
        Classes {
            admission,
            classes: Vec::new(),
            free: Vec::new(),
            nodes: Vec::new(),
            free_node: NONE,
            backlog: Backlog::default(),
        }
    }
    pub fn link_rate(&self) -> Rate {
        self.admission.link_rate()
    }
    /// Wire length of a frame of the MTU.
    pub fn full_frame(&self) -> ByteCount {
        self.admission.full_frame()
    }
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }
    /// All existing classes, in order.
    pub fn ids(&self) -> impl Iterator<Item = ClassId> {
        let all = self.classes.iter().zip(0u32..);
        all.filter(|(class, _)| class.tag != Tag::Free).map(|(_, id)| ClassId(id))
    }

    pub fn add(&mut self, spec: ClassSpec) -> Result<ClassId, PacingError> {
        if spec.limit.is_zero() {
            return Err(PacingError::ZeroLimit);
        }
        if self.classes.len() - self.free.len() >= MAX_CLASSES {
            return Err(PacingError::TooManyClasses);
        }
        let (tag, rate) = match spec.kind {
            ClassKind::Paced(rate) => {
                self.admission.replace(Rate::default(), rate)?;
                (Tag::Paced, rate)
            }
            // The rate of the link is no limit.
            ClassKind::Follows => (Tag::Follows, self.link_rate()),
            ClassKind::Normal => (Tag::Normal, self.link_rate()),
        };
        let (max_bytes, max_packets) = spec.limit.bounds();
        let class = ClassState {
            state: S::default(),
            interval: PacingInterval::new(rate, self.link_rate()),
            latest: 0,
            tag,
            first: NONE,
            last: NONE,
            first_len: 0,
            queued: 0,
            queued_bytes: 0,
            sent: 0,
            sent_bytes: 0,
            dropped: 0,
            max_packets: u32::try_from(max_packets).unwrap_or(u32::MAX),
            max_bytes,
        };
        Ok(ClassId(match self.free.pop() {
            Some(id) => {
                self.classes[id as usize] = class;
                id
            }
            None => {
                self.classes.push(class);
                (self.classes.len() - 1) as u32
            }
        }))
    }

    #[inline]
    pub fn get(&self, id: ClassId) -> Option<&ClassState<S>> {
        self.classes.get(id.index()).filter(|class| class.tag != Tag::Free)
    }
    #[inline]
    pub fn get_mut(&mut self, id: ClassId) -> Option<&mut ClassState<S>> {
        self.classes.get_mut(id.index()).filter(|class| class.tag != Tag::Free)
    }

    /// Prefetches the memory of a class and of its first packet, which will be needed soon. With very many
    /// classes, cache misses are most of the cost per packet.
    #[inline]
    pub fn prefetch(&self, id: ClassId, packet: PacketAt) {
        prefetch(&self.classes, id.index());
        prefetch(&self.nodes, packet.0 as usize);
    }

    /// Changes the rate of a paced class. Returns the previous interval.
    pub fn set_rate(&mut self, id: ClassId, rate: Rate) -> Result<PacingInterval, PacingError> {
        let link_rate = self.link_rate();
        let class = self.classes.get_mut(id.index()).filter(|class| class.tag != Tag::Free);
        let class = class.ok_or(PacingError::UnknownClass(id))?;
        if class.tag != Tag::Paced {
            return Err(PacingError::NotPaced(id));
        }
        self.admission.replace(class.interval.rate(), rate)?;
        Ok(std::mem::replace(&mut class.interval, PacingInterval::new(rate, link_rate)))
    }

    /// Removes a class and returns its packets.
    pub fn remove(&mut self, id: ClassId) -> Result<Vec<P>, PacingError> {
        let class = self.get(id).ok_or(PacingError::UnknownClass(id))?;
        let (paced, rate) = (class.tag == Tag::Paced, class.interval.rate());
        let packets = std::iter::from_fn(|| self.pop(id)).collect();
        if paced {
            self.admission.release(rate);
        }
        self.classes[id.index()].tag = Tag::Free;
        self.free.push(id.0);
        Ok(packets)
    }

    /// Queues a packet. True if its class was empty before.
    #[inline]
    pub fn push(&mut self, id: ClassId, packet: P) -> Result<bool, Refused<P>> {
        let Some(class) = self.classes.get_mut(id.index()).filter(|class| class.tag != Tag::Free) else {
            return Err(Refused { packet, why: EnqueueRefusal::UnknownClass });
        };
        let bytes = packet.len();
        if bytes > self.admission.longest() {
            return Err(Refused { packet, why: EnqueueRefusal::TooLong });
        }
        let len = bytes.get() as u32;
        if class.queued >= class.max_packets || class.queued_bytes + bytes.get() > class.max_bytes {
            class.dropped += 1;
            return Err(Refused { packet, why: EnqueueRefusal::Full });
        }
        let node = ClassNode { packet: Some(packet), next: NONE, next_len: 0 };
        let at = match self.nodes.get_mut(self.free_node as usize) {
            Some(free) => {
                let at = std::mem::replace(&mut self.free_node, free.next);
                *free = node;
                at
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        };
        let alone = class.queued == 0;
        if alone {
            (class.first, class.first_len) = (at, len);
        } else {
            let last = &mut self.nodes[class.last as usize];
            (last.next, last.next_len) = (at, len);
        }
        class.last = at;
        class.queued += 1;
        class.queued_bytes += bytes.get();
        self.backlog.packets += 1;
        self.backlog.bytes += bytes;
        Ok(alone)
    }

    /// Dequeues the first packet of a class without counting it as sent.
    #[inline]
    pub fn pop(&mut self, id: ClassId) -> Option<P> {
        let class = self.classes.get_mut(id.index()).filter(|class| class.queued > 0)?;
        let (packet, len) = take_first(&mut self.nodes, &mut self.free_node, class)?;
        self.backlog.packets -= 1;
        self.backlog.bytes -= len;
        Some(packet)
    }

    /// Dequeues the first packet of a class and counts it as sent.
    #[inline]
    pub fn pop_to_send(&mut self, id: ClassId) -> Option<P> {
        self.send_if(id, |_| true).map(|(packet, ..)| packet)
    }

    /// Dequeues the first packet of a class and counts it as sent, if the state of the class `agrees`.
    /// Returns the packet, its length and its class.
    #[inline]
    pub fn send_if(
        &mut self,
        id: ClassId,
        agrees: impl FnOnce(&S) -> bool,
    ) -> Option<(P, ByteCount, &mut ClassState<S>)> {
        let class =
            self.classes.get_mut(id.index()).filter(|class| class.queued > 0 && agrees(&class.state))?;
        let packet = take_first(&mut self.nodes, &mut self.free_node, class)?;
        let len = packet.1;
        class.sent += 1;
        class.sent_bytes += len.get();
        self.backlog.packets -= 1;
        self.backlog.bytes -= len;
        Some((packet.0, len, class))
    }

    /// Sets the rate of a class that [follows](ClassKind::Follows) to this hint. Without a hint the rate
    /// stays. Other classes are unaffected. Returns the previous interval if it has changed.
    pub fn follow(&mut self, id: ClassId, hint: Option<Rate>) -> Option<PacingInterval> {
        let (link_rate, hint) = (self.link_rate(), hint?);
        let class = self.get_mut(id).filter(|class| class.tag == Tag::Follows)?;
        let rate = hint.clamp(Rate::from_bits_per_sec(1), link_rate);
        let changed = rate != class.interval.rate();
        changed.then(|| std::mem::replace(&mut class.interval, PacingInterval::new(rate, link_rate)))
    }

    /// The current rate limit of a class; none if only the link limits it.
    #[inline]
    pub fn rate(&self, id: ClassId) -> Option<Rate> {
        let class = self.get(id)?;
        let rate = class.interval.rate();
        let limited = match class.tag {
            Tag::Paced => true,
            Tag::Follows => rate < self.link_rate(),
            Tag::Normal | Tag::Free => false,
        };
        limited.then_some(rate)
    }

    pub fn stats(&self, id: ClassId) -> Option<ClassStats> {
        let class = self.get(id)?;
        Some(ClassStats {
            packets: class.sent,
            bytes: ByteCount::new(class.sent_bytes),
            dropped: class.dropped,
            backlog: Backlog { packets: u64::from(class.queued), bytes: ByteCount::new(class.queued_bytes) },
            latest: ByteCount::new(u64::from(class.latest)),
            rate: self.rate(id).unwrap_or_default(),
        })
    }
}

/// Dequeues the first packet of a class. The queue must not be empty.
#[inline]
fn take_first<P, S>(
    nodes: &mut [ClassNode<P>],
    free: &mut u32,
    class: &mut ClassState<S>,
) -> Option<(P, ByteCount)> {
    let at = class.first;
    let node = nodes.get_mut(at as usize)?;
    let packet = node.packet.take()?;
    let len = u64::from(class.first_len);
    (class.first, class.first_len) = (node.next, node.next_len);
    node.next = std::mem::replace(free, at);
    class.queued -= 1;
    class.queued_bytes -= len;
    Some((packet, ByteCount::new(len)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_units::Packets;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    impl PacedFrame for (u32, u64) {
        fn len(&self) -> ByteCount {
            ByteCount::new(self.1)
        }
    }

    fn normal(packets: u32) -> ClassSpec {
        ClassSpec { kind: ClassKind::Normal, limit: QueueLimit::Packets(Packets::new(packets)) }
    }

    proptest! {
        /// Breaks: each class is a FIFO queue with a limit, and no packet changes its class or is lost.
        #[test]
        fn queues_are_queues(steps in prop::collection::vec((0u32..4, any::<bool>(), 60u64..1_514), 1..300)) {
            let mut classes = Classes::<(u32, u64), ()>::new(Rate::from_mbit(1_000), ByteCount::new(1_500)).unwrap();
            let ids: Vec<_> = (0..4).map(|_| classes.add(normal(5)).unwrap()).collect();
            let mut model: Vec<VecDeque<(u32, u64)>> = vec![VecDeque::new(); 4];
            for (number, (class, push, len)) in (0..).zip(steps) {
                let (id, queue) = (ids[class as usize], &mut model[class as usize]);
                if push {
                    let result = classes.push(id, (number, len));
                    if queue.len() == 5 {
                        prop_assert_eq!(result, Err(Refused { packet: (number, len), why: EnqueueRefusal::Full }));
                    } else {
                        prop_assert_eq!(result, Ok(queue.is_empty()));
                        queue.push_back((number, len));
                    }
                } else {
                    prop_assert_eq!(classes.pop_to_send(id), queue.pop_front());
                }
                prop_assert_eq!(classes.get(id).unwrap().head().map(ByteCount::get), queue.front().map(|(_, len)| *len));
                let backlog = classes.stats(id).unwrap().backlog;
                prop_assert_eq!(backlog.bytes.get(), queue.iter().map(|(_, len)| len).sum::<u64>());
                let packets: u64 = model.iter().map(|q| q.len() as u64).sum();
                prop_assert_eq!(classes.backlog().packets, packets);
            }
            for (id, queue) in ids.into_iter().zip(model) {
                prop_assert_eq!(classes.remove(id).unwrap(), Vec::from(queue));
                prop_assert!(classes.remove(id).is_err());
            }
            prop_assert_eq!(classes.backlog(), Backlog::default());
        }
    }

    /// Breaks: a limit in bytes admits exactly as many bytes.
    #[test]
    fn limits_in_bytes_are_limits() {
        let mut classes =
            Classes::<(u32, u64), ()>::new(Rate::from_mbit(1_000), ByteCount::new(1_500)).unwrap();
        let limit = QueueLimit::Bytes(ByteCount::new(1_000));
        let id = classes.add(ClassSpec { kind: ClassKind::Normal, limit }).unwrap();
        assert_eq!(classes.push(id, (0, 600)), Ok(true));
        assert_eq!(classes.push(id, (1, 401)).unwrap_err().why, EnqueueRefusal::Full);
        assert_eq!(classes.push(id, (2, 400)), Ok(false));
        assert_eq!(classes.stats(id).unwrap().dropped, 1);
    }

    /// Breaks: invalid classes and packets are refused, and valid ones at the limit are accepted.
    #[test]
    fn invalid_classes_and_packets_are_refused() {
        let mut classes =
            Classes::<(u32, u64), ()>::new(Rate::from_mbit(1_000), ByteCount::new(1_500)).unwrap();
        assert_eq!(classes.add(normal(0)), Err(PacingError::ZeroLimit));
        let id = classes.add(normal(1)).unwrap();
        let why = |refused: Result<bool, Refused<(u32, u64)>>| refused.unwrap_err().why;
        assert_eq!(why(classes.push(ClassId(7), (0, 60))), EnqueueRefusal::UnknownClass);
        assert_eq!(why(classes.push(id, (0, 1_523))), EnqueueRefusal::TooLong);
        assert_eq!(classes.push(id, (0, 1_522)), Ok(true), "a full frame with two VLAN tags");
        assert_eq!(classes.set_rate(id, Rate::from_mbit(1)), Err(PacingError::NotPaced(id)));
        assert!(Classes::<(u32, u64), ()>::new(Rate::default(), ByteCount::new(1_500)).is_err());
        assert!(Classes::<(u32, u64), ()>::new(Rate::from_mbit(1), ByteCount::new(0)).is_err());
    }
}
