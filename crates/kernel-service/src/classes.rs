//! The classes of a pacing configuration inside the kernel.

use crate::error::KernelServiceError;
use crate::setup::FOLDER;
use farpace_kernel::{
    ClassOrder, ClassSettings, HTB_MAJOR, KernelClass, KernelClasses, KernelShape, MAX_CLASS_RATE,
    MAX_KERNEL_CLASSES, MAX_KERNEL_SHAPES, bpf_folder,
};
use farpace_link::pacing::{
    ClassRate, ClassifierKey, ConfigError, Gaps, LinkClock, MIN_FRAME, PacingConfig, PacingPlan,
    SchedulerKind,
};
use farpace_live::system::{
    InterfaceFacts, RootQueue, Setup, SystemError, SystemInterface, interface_facts, line_rate, root_queue,
};
use farpace_path::QueueLimit;
use farpace_units::{ByteCount, Rate, Span};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The name of setups of classes.
pub const NAME: &str = "kernel-classes";
/// Of the filter: after those that others put there by default.
const PRIORITY: u16 = 0xfa2;
/// Timers are seldom later: what `htb` may make up for. It is that of `farpace pacing up`.
const USUAL_LATENESS: Span = Span::from_micros(100);
/// Most packets that `fq` holds. What may wait in classes is limited before.
const MAX_PACKETS: u64 = 10_000_000;
/// Rate of classes of `htb` that have none: as good as no limit.
const NO_RATE: Rate = Rate::from_mbit(1_000_000);

/// What was asked for.
#[derive(Clone, Copy, Debug)]
pub struct ClassesWanted<'a> {
    /// The file of the configuration, for messages.
    pub file: &'a Path,
    /// The devices.
    pub devices: &'a [String],
    /// Packets that would wait longer are dropped.
    pub horizon: Span,
    /// Super-segments stay as long as they are.
    pub super_segments: bool,
}

/// Classes of a device that hold.
#[derive(Debug)]
pub struct ClassesUp {
    /// The device.
    pub device: String,
    /// What holds its packets back.
    pub order: ClassOrder,
    /// Whether it is counted how late packets leave.
    pub counts_lateness: bool,
    // Before the programs go, nothing is led to them any more.
    setup: Setup,
    classes: KernelClasses,
}

/// What of a configuration only user space can do, a line for each. `text` is that of its file: a key that
/// was not written has a value, too.
///
/// # Errors
/// The text is no TOML.
pub fn refusals(config: &PacingConfig, text: &str) -> Result<Vec<String>, toml::de::Error> {
    let mut wrong = unfit(config);
    let written: toml::Table = toml::from_str(text)?;
    if written.contains_key("gaps") && config.gaps != Gaps::Timers {
        wrong.push("gaps: the kernel sends no gap frames; say `timers`, or take farpace pacing up".into());
    }
    if written.contains_key("gap_frame") {
        wrong.push("gap_frame: the kernel sends no gap frames: farpace pacing up does".into());
    }
    Ok(wrong)
}

/// What departure times in the kernel cannot express, a line for each.
fn unfit(config: &PacingConfig) -> Vec<String> {
    let mut wrong = Vec::new();
    if config.scheduler != SchedulerKind::Edf {
        wrong.push("scheduler: the kernel has `edf` alone; take farpace pacing up for others".to_owned());
    }
    if config.classes.len() > MAX_KERNEL_CLASSES - 1 {
        wrong.push(format!("classes: the kernel takes at most {}", MAX_KERNEL_CLASSES - 1));
    }
    for (place, class) in config.classes.iter().enumerate() {
        match class.rate {
            Some(ClassRate::Connection) => wrong.push(format!(
                "classes.{place}.rate: `connection` is what control farpace does by itself: farpace kernel \
                 up --default"
            )),
            Some(ClassRate::Fixed(rate)) if rate > MAX_CLASS_RATE => {
                wrong.push(format!("classes.{place}.rate: at most {MAX_CLASS_RATE}"));
            }
            None if class.limit.is_some() => wrong.push(format!(
                "classes.{place}.limit: a class without a rate has no queue here, its packets leave at once"
            )),
            _ => {}
        }
    }
    let shapes = config.classifier().table().count();
    if shapes > MAX_KERNEL_SHAPES {
        wrong.push(format!(
            "filters: they have {shapes} shapes (which keys they name, and how many bits of addresses); the \
             kernel takes at most {MAX_KERNEL_SHAPES}"
        ));
    }
    wrong
}

/// What a class may let wait, in bytes of layer 2. A number of packets counts as so many full frames.
fn limit(limit: QueueLimit, full_frame: ByteCount) -> Option<ByteCount> {
    match limit {
        QueueLimit::Bytes(bytes) => Some(bytes),
        QueueLimit::Packets(packets) => {
            Some(ByteCount::new(u64::from(packets.get()).saturating_mul(full_frame.get())))
        }
        QueueLimit::Unlimited => None,
    }
}

/// What a configuration means for a device.
fn settings(
    config: &PacingConfig,
    plan: &PacingPlan,
    device: &str,
    facts: &InterfaceFacts,
    order: ClassOrder,
    horizon: Span,
) -> Result<ClassSettings, KernelServiceError> {
    let classifier = config.classifier();
    let classes: Vec<_> = plan
        .classes
        .iter()
        .map(|class| KernelClass {
            name: class.name.clone(),
            rate: match class.rate {
                Some(ClassRate::Fixed(rate)) => Some(rate),
                Some(ClassRate::Connection) | None => None,
            },
            limit: limit(class.limit, plan.full_frame),
        })
        .collect();
    Ok(ClassSettings {
        device: device.to_owned(),
        index: facts.index,
        namespace: namespace()?,
        order,
        horizon,
        // Without a default, the plan has the class of the rest last.
        fallback: classifier.default_class().unwrap_or(classes.len().saturating_sub(1)),
        classes,
        shapes: classifier.table().map(shape).collect(),
    })
}

fn shape((mask, filters): (ClassifierKey, Vec<(ClassifierKey, u32, usize)>)) -> KernelShape {
    let filters = filters.iter().map(|(key, rank, class)| (key.words(), *rank, *class)).collect();
    KernelShape { mask: mask.words(), filters }
}

/// Lets the classes hold on each of the devices. What is worth a warning is told to `warn`, a line each.
///
/// # Errors
/// A configuration that cannot hold there, a device that cannot have it, no rights, or a kernel that refuses:
/// then nothing is left.
pub fn up(
    wanted: &ClassesWanted<'_>,
    config: &PacingConfig,
    warn: &mut dyn FnMut(&str),
) -> Result<Vec<ClassesUp>, KernelServiceError> {
    wanted.devices.iter().map(|device| on_device(wanted, config, device, warn)).collect()
}

/// The number of this thread's network namespace.
///
/// # Errors
/// There is no /proc.
pub fn namespace() -> io::Result<u32> {
    u32::try_from(fs::metadata("/proc/thread-self/ns/net")?.ino()).map_err(io::Error::other)
}

fn on_device(
    wanted: &ClassesWanted<'_>,
    config: &PacingConfig,
    device: &str,
    warn: &mut dyn FnMut(&str),
) -> Result<ClassesUp, KernelServiceError> {
    let interface = SystemInterface::here(device);
    let facts = interface_facts(&interface)?;
    if !["ether", "loopback"].contains(&facts.frames.as_str()) {
        return refuse(format!(
            "{device} has no Ethernet frames ({}): rates of classes count these. Name the interface below",
            facts.frames
        ));
    }
    if u64::from(facts.mtu) > config.mtu.get() && facts.frames == "ether" {
        warn(&format!(
            "warning: {device} takes packets of {} B, the configuration has mtu {}: full frames are longer \
             than it says",
            facts.mtu, config.mtu
        ));
    }
    let line = line_rate(device).unwrap_or(LinkClock::MAX_RATE);
    let plan = PacingPlan::new(config, config.effective_rate(line));
    let says =
        |error: &ConfigError| format!("{}: {}: {}", wanted.file.display(), error.at.join("."), error.problem);
    for warning in &plan.warnings {
        warn(&format!("warning: {}", says(warning)));
    }
    if !plan.errors.is_empty() {
        return refuse(plan.errors.iter().map(says).collect::<Vec<_>>().join("\n"));
    }
    let queue = root_queue(&interface)?;
    let setup = Setup::begin(NAME)?;
    let order = hold(&setup, &interface, queue.as_ref(), config, &plan, &facts, wanted.horizon)?;
    let settings = settings(config, &plan, device, &facts, order, wanted.horizon)?;
    let classes = KernelClasses::load(&settings)?;
    if !wanted.super_segments && facts.super_segment > 1 {
        setup.super_segment(&interface, 1)?;
    }
    setup.egress_filter(&interface, PRIORITY, || Ok::<_, KernelServiceError>(classes.attach(PRIORITY)?))?;
    let counts_lateness = classes.counts_lateness();
    Ok(ClassesUp { device: device.to_owned(), order, counts_lateness, setup, classes })
}

/// A queueing discipline that holds packets back: `fq`, or `htb` where there is none.
fn hold(
    setup: &Setup,
    interface: &SystemInterface,
    queue: Option<&RootQueue>,
    config: &PacingConfig,
    plan: &PacingPlan,
    facts: &InterfaceFacts,
    horizon: Span,
) -> Result<ClassOrder, KernelServiceError> {
    match queue {
        Some(queue) if queue.kind == "fq" => return Ok(ClassOrder::Fq),
        Some(queue) if !queue.is_default() => {
            return refuse(format!(
                "{} has a queueing discipline already ({} {}): take it away first \
                 (tc qdisc delete dev {} root)",
                interface.name, queue.kind, queue.handle, interface.name
            ));
        }
        _ => {}
    }
    let mq = queue.is_some_and(|queue| queue.kind == "mq");
    let fair = fair_queue(plan, horizon);
    let done = if mq {
        setup.qdisc(interface, &format!("handle {HTB_MAJOR:x}: mq")).and_then(|()| {
            let each = (1..=facts.queues).map(|queue| {
                format!("qdisc add dev {} parent {HTB_MAJOR:x}:{queue:x} {fair}", interface.name)
            });
            setup.tc_lines(interface, &each.collect::<Vec<_>>())
        })
    } else {
        setup.qdisc(interface, &format!("handle {HTB_MAJOR:x}: {fair}"))
    };
    match done {
        Ok(()) => Ok(ClassOrder::Fq),
        Err(SystemError::Tool { message, .. }) if no_such_kind(&message) => {
            if mq {
                return refuse(format!(
                    "the kernel has no fq, and {} several queues: its classes need fq (modprobe sch_fq)",
                    interface.name
                ));
            }
            setup
                .qdisc(interface, &format!("handle {HTB_MAJOR:x}: htb default 0"))
                .or_else(|error| refuse(format!("the kernel has no fq, and no htb in its place: {error}")))?;
            setup.tc_lines(interface, &buckets(interface, config, plan))?;
            Ok(ClassOrder::Htb)
        }
        Err(error) => Err(error.into()),
    }
}

fn refuse<T>(why: String) -> Result<T, KernelServiceError> {
    Err(KernelServiceError::Refused(why))
}

/// What `tc` says of a queueing discipline that the kernel does not have.
fn no_such_kind(said: &str) -> bool {
    said.contains("kind is unknown") || said.contains("No such file")
}

/// `fq` that does nothing but hold packets until their departure times. TCP keeps its own pacing: a socket
/// that had left it to `fq` would have none when `fq` is taken away.
fn fair_queue(plan: &PacingPlan, horizon: Span) -> String {
    let all = plan.classes.iter().map(|class| {
        limit(class.limit, plan.full_frame).map_or(MAX_PACKETS, |bytes| bytes.get().div_ceil(MIN_FRAME.get()))
    });
    let packets = all.fold(10_000, u64::saturating_add).min(MAX_PACKETS);
    // Whatever is beyond the horizon never comes here.
    let horizon = (horizon + Span::from_secs(1)).as_nanos() / 1_000;
    format!(
        "fq limit {packets} flow_limit {packets} nopacing timer_slack 1000 horizon {horizon}us horizon_drop"
    )
}

/// A bucket for each class. `htb` lets a packet go as long as its bucket is not overdrawn, so that an empty
/// one would space packets evenly; what it holds makes up for timers that are late: a full frame, or what
/// leaves in that time if it is more. So no more than that and a frame leaves at once.
fn buckets(interface: &SystemInterface, config: &PacingConfig, plan: &PacingPlan) -> Vec<String> {
    let lateness = config.jitter.max(USUAL_LATENESS);
    let each = plan.classes.iter().enumerate().flat_map(|(place, class)| {
        let rate = match class.rate {
            Some(ClassRate::Fixed(rate)) => rate,
            Some(ClassRate::Connection) | None => NO_RATE,
        };
        let bits = rate.bits_per_sec();
        let late = u128::from(bits) * u128::from(lateness.as_nanos()) / 8_000_000_000;
        let burst = u128::from(plan.full_frame.get()).max(late);
        let (name, minor) = (&interface.name, place + 1);
        let packets = match class.limit {
            QueueLimit::Packets(packets) => u64::from(packets.get()),
            other => limit(other, plan.full_frame)
                .map_or(MAX_PACKETS, |bytes| bytes.get().div_ceil(MIN_FRAME.get())),
        };
        // The filter drops what does not fit. Behind it the queue is longer, since a bucket may be slower
        // than its class is.
        let packets = packets.saturating_mul(2).min(MAX_PACKETS);
        [
            format!(
                "class add dev {name} parent {HTB_MAJOR:x}: classid {HTB_MAJOR:x}:{minor:x} htb rate \
                 {bits}bit ceil {bits}bit burst {burst}b cburst {burst}b overhead 4 mpu 64 quantum {}",
                plan.full_frame.get()
            ),
            format!("qdisc add dev {name} parent {HTB_MAJOR:x}:{minor:x} pfifo limit {packets}"),
        ]
    });
    each.collect()
}

impl ClassesUp {
    /// Leaves them there when the process ends.
    ///
    /// # Errors
    /// No BPF file system, or the journal cannot be written; the classes have gone then.
    pub fn keep(mut self) -> Result<(), KernelServiceError> {
        let namespace = namespace()?;
        // That file system has no names with points.
        let device = self.device.replace('.', "-");
        let folder = bpf_folder()?.join(format!("{FOLDER}-classes-{namespace}-{device}"));
        self.setup.pins(&folder)?;
        self.classes.pin(&folder.join("left"))?;
        Ok(self.setup.keep()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> String {
        unfit(&PacingConfig::parse(text).unwrap()).join("\n")
    }

    /// Breaks: what the kernel cannot do is taken and done otherwise, or a configuration that it can do is
    /// refused.
    #[test]
    fn what_cannot_be_had_is_refused() {
        let class = |keys: &str| lines(&format!("default = \"a\"\nclasses = [{{ name = \"a\"{keys} }}]"));
        assert_eq!(class(", rate = \"5 Mbit/s\", limit = \"20 packets\""), "");
        assert_eq!(class(""), "");
        assert!(class(", rate = \"connection\"").contains("classes.0.rate"));
        assert!(class(", limit = \"20 packets\"").contains("classes.0.limit"));
        assert!(lines("scheduler = \"psp\"").contains("scheduler"));
        let filter = |bits: u32| format!("{{ class = \"a\", dst = \"2001:db8::/{bits}\" }}");
        let filters = |n: u32| (32..32 + n).map(filter).collect::<Vec<_>>().join(", ");
        let shapes = |n| lines(&format!("classes = [{{ name = \"a\" }}]\nfilters = [{}]", filters(n)));
        assert_eq!(shapes(64), "");
        assert!(shapes(65).contains("65 shapes"));
    }

    /// Breaks: a bucket holds more than a frame and what timers are late by, or counts other bytes than
    /// classes do.
    #[test]
    fn buckets_are_small() {
        let text =
            "classes = [{ name = \"a\", rate = \"160 Mbit/s\", limit = \"7 packets\" }, { name = \"b\" }]";
        let config = PacingConfig::parse(text).unwrap();
        let plan = PacingPlan::new(&config, Rate::from_mbit(1_000));
        let lines = buckets(&SystemInterface::here("v"), &config, &plan);
        assert_eq!(
            lines[0],
            "class add dev v parent fa2: classid fa2:1 htb rate 160000000bit ceil 160000000bit burst 2000b \
             cburst 2000b overhead 4 mpu 64 quantum 1518"
        );
        assert_eq!(lines[1], "qdisc add dev v parent fa2:1 pfifo limit 14");
        assert_eq!(lines.len(), 6);
    }

    /// Breaks: fq drops what a class may let wait, or holds packets by other rules than their departure
    /// times.
    #[test]
    fn fq_holds_what_classes_let_wait() {
        let with = |limit: &str| {
            let text = format!("default = \"a\"\nclasses = [{{ name = \"a\", rate = \"1 Mbit/s\"{limit} }}]");
            let plan = PacingPlan::new(&PacingConfig::parse(&text).unwrap(), Rate::from_mbit(10));
            fair_queue(&plan, Span::from_secs(10))
        };
        let words = with(", limit = \"64 kB\"");
        assert_eq!(
            words,
            "fq limit 11000 flow_limit 11000 nopacing timer_slack 1000 horizon 11000000us horizon_drop"
        );
        assert!(with(", limit = \"unlimited\"").starts_with("fq limit 10000000 "));
    }
}
