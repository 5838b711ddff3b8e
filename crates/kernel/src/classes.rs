//! Pacing classes of a device, as the programs have them (`bpf/classes/maps.h`).

use crate::rows::Fields;
use farpace_units::{ByteCount, Rate, Span};
use serde::Serialize;

/// Most classes of a device.
pub const MAX_KERNEL_CLASSES: usize = 4096;
/// Most shapes of filters (`bpf/classes/maps.h`): a packet costs a search for each.
pub const MAX_KERNEL_SHAPES: usize = 64;
/// Highest rate of a class: the numbers of the programs hold it.
pub const MAX_CLASS_RATE: Rate = Rate::from_mbit(1_000_000);

/// Bins of lateness (`bpf/classes/maps.h`).
const BINS: usize = 24;
/// Bytes of a class's name in the map, the zero at its end included.
const NAME: usize = 64;
/// Bytes of a device's name, likewise.
const DEVICE_NAME: usize = 16;

/// What holds packets back until they may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClassOrder {
    /// Their departure times, by queueing discipline `fq`.
    Fq,
    /// Classes of queueing discipline `htb`, where the kernel has no `fq`.
    Htb,
}

/// The major number of the `htb` whose classes hold packets: class n has minor number n + 1.
pub const HTB_MAJOR: u16 = 0xfa2;

/// A class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelClass {
    /// Its name; of long ones the beginning is kept.
    pub name: String,
    /// Its rate, of layer 2; none: its packets leave at once.
    pub rate: Option<Rate>,
    /// What may wait, of layer 2; none: as much as leaves within the horizon.
    pub limit: Option<ByteCount>,
}

impl KernelClass {
    /// As `struct class` has it, for the class at this place.
    #[cfg_attr(not(any(feature = "bpf", test)), expect(dead_code, reason = "who loads classes needs it"))]
    pub(crate) fn bytes(&self, place: usize, order: ClassOrder) -> [u8; ClassCounters::SIZE] {
        let rate = self.rate.map_or(0, |rate| rate.bits_per_sec().max(1));
        let limit = self.limit.filter(|_| rate > 0).map_or(u64::MAX, |limit| {
            let ns = u128::from(limit.get()) * 8_000_000_000 / u128::from(rate);
            u64::try_from(ns).unwrap_or(u64::MAX)
        });
        let handle = match order {
            ClassOrder::Fq => 0,
            ClassOrder::Htb => u32::from(HTB_MAJOR) << 16 | u32::try_from(place + 1).unwrap_or(0),
        };
        let mut bytes = [0; ClassCounters::SIZE];
        let words = [handle.to_ne_bytes().as_slice(), &rate.to_ne_bytes(), &limit.to_ne_bytes()].concat();
        bytes.iter_mut().skip(4).zip(words).for_each(|(slot, byte)| *slot = byte);
        let name = self.name.bytes().take(NAME - 1);
        bytes.iter_mut().skip(80).zip(name).for_each(|(slot, byte)| *slot = byte);
        bytes
    }
}

/// Filters that look at the same bits of packets, as crates/link has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelShape {
    /// The bits.
    pub mask: [u64; 5],
    /// For each filter what they must be, its rank, and the place of its class. The lowest rank of all shapes
    /// counts.
    pub filters: Vec<([u64; 5], u32, usize)>,
}

/// The classes of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassSettings {
    /// The name of the device.
    pub device: String,
    /// Its number.
    pub index: u32,
    /// The number of its network namespace.
    pub namespace: u32,
    /// What holds packets back.
    pub order: ClassOrder,
    /// Packets that would wait longer are dropped.
    pub horizon: Span,
    /// The classes.
    pub classes: Vec<KernelClass>,
    /// The place of the class of packets that no filter matches.
    pub fallback: usize,
    /// The filters, in the order of the first of each shape.
    pub shapes: Vec<KernelShape>,
}

impl ClassSettings {
    /// As `struct device` has it.
    #[cfg_attr(not(any(feature = "bpf", test)), expect(dead_code, reason = "who loads classes needs it"))]
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let number = |n: usize| u32::try_from(n).unwrap_or(0).to_ne_bytes();
        let mut bytes = self.horizon.as_nanos().to_ne_bytes().to_vec();
        bytes.extend(self.namespace.to_ne_bytes());
        bytes.extend(self.index.to_ne_bytes());
        bytes.extend(number(self.shapes.len()));
        bytes.extend(number(self.fallback));
        let name = self.device.bytes().take(DEVICE_NAME - 1);
        bytes.extend(name.chain(std::iter::repeat(0)).take(DEVICE_NAME));
        bytes
    }
}

/// What a class has done.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ClassCounters {
    /// Its name.
    pub class: String,
    /// Its rate; none: its packets leave at once.
    pub rate: Option<Rate>,
    /// Packets that were let through, super-segments counted once.
    pub packets: u64,
    /// Their bytes of layer 2, each frame of a super-segment with its headers.
    pub bytes: ByteCount,
    /// Packets that were dropped because its queue was full.
    pub limit_drops: u64,
    /// Packets that were dropped because they would have left beyond the horizon.
    pub horizon_drops: u64,
    /// Packets of several frames, which leave back to back.
    pub super_segments: u64,
    /// Frames that were given to the driver.
    pub left: u64,
    /// By how much they were late.
    pub late: ClassLateness,
}

/// By how much frames left after their departure time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClassLateness {
    /// All together.
    pub sum: Span,
    /// The most.
    pub most: Span,
    /// How many in each bin: below 1 us, below 2 us, below 4 us, and so on; the last has no end.
    pub bins: Vec<u64>,
}

impl ClassLateness {
    /// The mean; none without any frame.
    pub fn mean(&self) -> Option<Span> {
        let count: u64 = self.bins.iter().sum();
        Some(Span::from_nanos(self.sum.as_nanos().checked_div(count)?))
    }

    /// No more than this part of frames, of a thousand, was later: the end of a bin, or the most that any
    /// was.
    pub fn quantile(&self, of_a_thousand: u64) -> Option<Span> {
        let count: u64 = self.bins.iter().sum();
        let wanted = count.checked_mul(of_a_thousand)?.div_ceil(1_000);
        let mut seen = 0;
        for (place, n) in (0..).zip(&self.bins) {
            seen += n;
            if seen >= wanted && count > 0 {
                return Some(Span::from_micros(1 << place).min(self.most));
            }
        }
        None
    }
}

impl ClassCounters {
    /// Bytes of `struct class`.
    pub const SIZE: usize = 168 + 8 * BINS;

    /// Reads a class; none if the bytes are too few.
    #[cfg_attr(not(any(feature = "bpf", test)), expect(dead_code, reason = "who reads classes needs it"))]
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields::of(bytes, Self::SIZE)?;
        let (_lock, _handle, rate) = (fields.u32(), fields.u32(), fields.u64());
        let (_limit, _next, _rest) = (fields.u64(), fields.u64(), fields.u64());
        let (packets, bytes) = (fields.u64(), ByteCount::new(fields.u64()));
        let (limit_drops, horizon_drops, super_segments) = (fields.u64(), fields.u64(), fields.u64());
        let name: [u8; NAME] = fields.take();
        let (left, sum, most) = (fields.u64(), fields.u64(), fields.u64());
        Some(ClassCounters {
            class: text(&name),
            rate: (rate > 0).then_some(Rate::from_bits_per_sec(rate)),
            packets,
            bytes,
            limit_drops,
            horizon_drops,
            super_segments,
            left,
            late: ClassLateness {
                sum: Span::from_nanos(sum),
                most: Span::from_nanos(most),
                bins: (0..BINS).map(|_| fields.u64()).collect(),
            },
        })
    }
}

/// A text of C.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
}

/// A device with classes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ClassDevice {
    /// Its name.
    pub device: String,
    /// The number of its network namespace, as `lsns` shows it.
    pub namespace: u32,
    /// Packets that would wait longer are dropped.
    pub horizon: Span,
    /// Its classes, in their order.
    pub classes: Vec<ClassCounters>,
}

impl ClassDevice {
    /// Reads `struct device`; none if the bytes are too few.
    #[cfg_attr(not(any(feature = "bpf", test)), expect(dead_code, reason = "who reads classes needs it"))]
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields::of(bytes, 24 + DEVICE_NAME)?;
        let (horizon, namespace) = (Span::from_nanos(fields.u64()), fields.u32());
        let (_index, _shapes, _fallback) = (fields.u32(), fields.u32(), fields.u32());
        let name: [u8; DEVICE_NAME] = fields.take();
        Some(ClassDevice { device: text(&name), namespace, horizon, classes: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(rate: Option<Rate>, limit: Option<ByteCount>) -> KernelClass {
        KernelClass { name: "film".into(), rate, limit }
    }

    /// Breaks: a class is another in the kernel, or its counters are read from other places than they stand.
    #[test]
    fn classes_come_back() {
        let film = class(Some(Rate::from_mbit(8)), Some(ByteCount::new(1_000_000)));
        let mut bytes = film.bytes(4, ClassOrder::Htb);
        let word = |bytes: &[u8], at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
        assert_eq!(bytes[4..8], (u32::from(HTB_MAJOR) << 16 | 5).to_ne_bytes());
        assert_eq!((word(&bytes, 8), word(&bytes, 16)), (8_000_000, 1_000_000_000));
        for (place, slot) in (0u64..).zip(bytes[40..80].chunks_exact_mut(8)) {
            slot.copy_from_slice(&(place + 1).to_ne_bytes());
        }
        for (place, slot) in (0u64..).zip(bytes[144..].chunks_exact_mut(8)) {
            slot.copy_from_slice(&(place + 10).to_ne_bytes());
        }
        let read = ClassCounters::parse(&bytes).unwrap();
        assert_eq!((read.class.as_str(), read.rate), ("film", Some(Rate::from_mbit(8))));
        let counters =
            [read.packets, read.bytes.get(), read.limit_drops, read.horizon_drops, read.super_segments];
        assert_eq!((counters, read.left), ([1, 2, 3, 4, 5], 10));
        assert_eq!((read.late.sum.as_nanos(), read.late.most.as_nanos(), read.late.bins[0]), (11, 12, 13));
        assert_eq!(ClassCounters::parse(&bytes[1..]), None);
        let free = class(None, Some(ByteCount::new(1))).bytes(0, ClassOrder::Fq);
        assert_eq!((word(&free, 8), word(&free, 16), &free[4..8]), (0, u64::MAX, &[0; 4][..]));
    }

    /// Breaks: a device has another name, or another horizon.
    #[test]
    fn devices_come_back() {
        let settings = ClassSettings {
            device: "a-name-of-far-too-many".into(),
            index: 7,
            namespace: 9,
            order: ClassOrder::Fq,
            horizon: Span::from_secs(2),
            classes: Vec::new(),
            fallback: 3,
            shapes: Vec::new(),
        };
        let bytes = settings.bytes();
        assert_eq!(bytes[12..24], [[7, 0, 0, 0], [0; 4], [3, 0, 0, 0]].concat());
        let read = ClassDevice::parse(&bytes).unwrap();
        assert_eq!((read.device.as_str(), read.namespace), ("a-name-of-far-t", 9));
        assert_eq!(read.horizon, Span::from_secs(2));
    }

    /// Breaks: lateness is told as less than it was.
    #[test]
    fn lateness() {
        let mut late =
            ClassLateness { sum: Span::from_micros(40), most: Span::from_micros(33), bins: vec![0; BINS] };
        assert_eq!((late.mean(), late.quantile(500)), (None, None));
        (late.bins[0], late.bins[3], late.bins[6]) = (7, 2, 1);
        assert_eq!(late.mean(), Some(Span::from_micros(4)));
        let at = |part| late.quantile(part).unwrap().as_nanos() / 1_000;
        assert_eq!([at(0), at(700), at(701), at(900), at(1_000)], [1, 1, 8, 8, 33]);
    }
}
