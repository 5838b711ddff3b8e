//! What classes in the kernel do.

use farpace_kernel::{ClassCounters, ClassDevice, class_devices};
use farpace_process::stopwatch::Stopwatch;
use farpace_report::{Table, TableCell, TableColumn};
use farpace_units::{ByteCount, Rate, Span};
use serde_json::{Value, json};
use std::fmt::Write;

/// The last look at all devices with classes, and the one before, for rates.
#[derive(Debug, Default)]
pub struct ClassLooks {
    devices: Vec<ClassDevice>,
    before: Vec<ClassDevice>,
    clock: Option<Stopwatch>,
    /// Between the two.
    passed: Option<Span>,
}

impl ClassLooks {
    /// Looks again.
    pub fn look(&mut self) {
        let before = self.clock.replace(Stopwatch::start());
        let nanos = |clock: Stopwatch| u64::try_from(clock.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.passed = before.map(|clock| Span::from_nanos(nanos(clock)));
        self.before = std::mem::replace(&mut self.devices, class_devices());
    }

    /// The devices, as they were at the last look.
    pub fn devices(&self) -> &[ClassDevice] {
        &self.devices
    }

    /// Every class, with its device and its rate since the look before.
    fn classes(&self) -> impl Iterator<Item = (&ClassDevice, &ClassCounters, Option<Rate>)> {
        self.devices.iter().flat_map(move |device| {
            let before = self.before.iter().find(|other| {
                (other.namespace, &other.device) == (device.namespace, &device.device)
                    && other.classes.len() == device.classes.len()
            });
            device.classes.iter().enumerate().map(move |(place, class)| {
                let before = before.and_then(|device| device.classes.get(place)).map(|class| class.bytes);
                (device, class, before.and_then(|before| self.rate(before, class.bytes)))
            })
        })
    }

    fn rate(&self, before: ByteCount, after: ByteCount) -> Option<Rate> {
        let (passed, bytes) = (self.passed?, after.get().checked_sub(before.get())?);
        let bits = u128::from(bytes) * 8_000_000_000;
        let rate = bits.checked_div(passed.as_nanos().into())?;
        Some(Rate::from_bits_per_sec(u64::try_from(rate).ok()?))
    }

    /// A table for a terminal with `width` columns; nothing without devices.
    pub fn text(&self, width: Option<usize>) -> String {
        if self.devices.is_empty() {
            return String::new();
        }
        let columns = vec![
            TableColumn::text("device"),
            TableColumn::text("class"),
            TableColumn::number("rate", "Mbit/s"),
            TableColumn::number("now", "Mbit/s"),
            TableColumn::number("packets", ""),
            TableColumn::number("bytes", "kB"),
            TableColumn::number("dropped", "full"),
            TableColumn::number("dropped", "horizon"),
            TableColumn::number("super-segments", ""),
            TableColumn::number("late, mean", "us"),
            TableColumn::number("99 %", "us"),
            TableColumn::number("most", "us"),
        ];
        let us = |span: Option<Span>| {
            span.map_or(TableCell::Missing, |span| TableCell::Number(span.as_nanos() as f64 / 1e3, None))
        };
        let mbit = |rate: Option<Rate>| {
            rate.map_or(TableCell::Missing, |rate| TableCell::Number(rate.as_mbit_f64(), None))
        };
        let mut table = Table::new("", columns);
        for (device, class, now) in self.classes() {
            table.row(vec![
                device.device.as_str().into(),
                class.class.as_str().into(),
                mbit(class.rate),
                mbit(now),
                class.packets.into(),
                TableCell::Number(class.bytes.get() as f64 / 1e3, Some(0)),
                class.limit_drops.into(),
                class.horizon_drops.into(),
                class.super_segments.into(),
                us(class.late.mean()),
                us(class.late.quantile(990)),
                us((class.left > 0).then_some(class.late.most)),
            ]);
        }
        table.to_text_for(width)
    }

    /// For JSON: a device each.
    pub fn json(&self) -> Vec<Value> {
        let seconds = |span: Option<Span>| span.map(Span::as_secs_f64);
        let class = |class: &ClassCounters, now: Option<Rate>| {
            let ClassCounters {
                class: name,
                rate,
                packets,
                bytes,
                limit_drops,
                horizon_drops,
                super_segments,
                left,
                late,
            } = class;
            json!({
                "class": name,
                "rate_bit_s": rate.map(Rate::bits_per_sec),
                "now_bit_s": now.map(Rate::bits_per_sec),
                "packets": packets,
                "bytes": bytes.get(),
                "limit_drops": limit_drops,
                "horizon_drops": horizon_drops,
                "super_segments": super_segments,
                "left_frames": left,
                "late_mean_s": seconds(late.mean()),
                "late_p99_s": seconds(late.quantile(990)),
                "late_most_s": seconds((*left > 0).then_some(late.most)),
                "late_bins": late.bins,
            })
        };
        let device = |device: &ClassDevice| {
            let of_it = self.classes().filter(|(other, ..)| std::ptr::eq(*other, device));
            json!({
                "device": device.device,
                "namespace": device.namespace,
                "horizon_s": device.horizon.as_secs_f64(),
                "classes": of_it.map(|(_, it, now)| class(it, now)).collect::<Vec<_>>(),
            })
        };
        self.devices.iter().map(device).collect()
    }

    /// The text format of Prometheus; nothing without devices.
    pub fn metrics(&self) -> String {
        let mut text = String::new();
        if self.devices.is_empty() {
            return text;
        }
        let mut metric = |name: &str, kind: &str, help: &str, value: fn(&ClassCounters) -> Option<f64>| {
            let _ = writeln!(
                text,
                "# HELP farpace_kernel_class_{name} {help}\n# TYPE farpace_kernel_class_{name} {kind}"
            );
            for (device, class, _) in self.classes() {
                let Some(value) = value(class) else { continue };
                let label = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
                let _ = writeln!(
                    text,
                    "farpace_kernel_class_{name}{{device=\"{}\",namespace=\"{}\",class=\"{}\"}} {value}",
                    label(&device.device),
                    device.namespace,
                    label(&class.class)
                );
            }
        };
        metric("rate_bits_per_second", "gauge", "Rate of the class, of layer 2", |class| {
            class.rate.map(|rate| rate.bits_per_sec() as f64)
        });
        metric("packets_total", "counter", "Packets that were let through", |class| {
            Some(class.packets as f64)
        });
        metric("bytes_total", "counter", "Their bytes of layer 2", |class| Some(class.bytes.get() as f64));
        metric("limit_drops_total", "counter", "Packets that found the queue of the class full", |class| {
            Some(class.limit_drops as f64)
        });
        metric("horizon_drops_total", "counter", "Packets that would have waited too long", |class| {
            Some(class.horizon_drops as f64)
        });
        metric("super_segments_total", "counter", "Packets of several frames", |class| {
            Some(class.super_segments as f64)
        });
        metric("late_seconds_total", "counter", "How late frames left, all together", |class| {
            Some(class.late.sum.as_secs_f64())
        });
        metric("left_frames_total", "counter", "Frames that have left", |class| Some(class.left as f64));
        text
    }
}
