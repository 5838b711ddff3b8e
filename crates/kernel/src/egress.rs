//! Classes at the egress of a device: loading them, attaching them, reading what they have done.

use crate::classes::{ClassCounters, ClassDevice, ClassSettings, MAX_KERNEL_CLASSES, MAX_KERNEL_SHAPES};
use crate::object;
use crate::{KernelError, KernelShape};
use libbpf_rs::query::ProgInfoIter;
use libbpf_rs::query::ProgInfoQueryOptions;
use libbpf_rs::{
    Link, MapCore, MapFlags, MapHandle, MapType, Object, OpenObject, ProgramType, TC_EGRESS, TcHookBuilder,
};
use std::os::fd::AsFd;
use std::path::Path;

/// The map of classes; whoever reads them finds it by this name.
const CLASSES: &str = "fp_classes";
/// The program that tells packets when to leave.
const CLASSIFY: &str = "fp_classify";
/// The program that sees them leave.
const LEFT: &str = "fp_left";

/// Classes that are loaded. As long as they are [attached](KernelClasses::attach) the kernel keeps them; what
/// is not, is counted no more when this is dropped.
#[derive(Debug)]
pub struct KernelClasses {
    object: Object,
    /// None where the kernel cannot tell when packets leave.
    left: Option<Link>,
    index: u32,
}

fn what() -> &'static str {
    "the classes"
}

fn open(settings: &ClassSettings, with_left: bool) -> Result<OpenObject, KernelError> {
    let refused = |error: libbpf_rs::Error| object::refused(what(), &error);
    let mut object = object::open(what(), object::CLASSES)?;
    for mut map in object.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        let entries = match name.as_str() {
            CLASSES => Some(settings.classes.len()),
            "fp_filters" => Some(settings.shapes.iter().map(|shape| shape.filters.len()).sum()),
            _ => None,
        };
        if let Some(entries) = entries {
            map.set_max_entries(u32::try_from(entries.max(1)).unwrap_or(u32::MAX)).map_err(refused)?;
        }
        if name.ends_with(".rodata")
            && let Some(data) = map.initial_value_mut()
        {
            data.iter_mut().zip(settings.bytes()).for_each(|(slot, byte)| *slot = byte);
        }
    }
    for mut program in object.progs_mut().filter(|program| program.name() == LEFT) {
        program.set_autoload(with_left);
    }
    Ok(object)
}

fn filter_words(shape: u32, key: [u64; 5]) -> Vec<u8> {
    let key = key.iter().flat_map(|word| word.to_ne_bytes());
    key.chain(shape.to_ne_bytes()).chain([0; 4]).collect()
}

fn fill(object: &Object, settings: &ClassSettings) -> Result<(), KernelError> {
    let map = |name: &str| object.maps().find(|map| map.name() == name).ok_or(KernelError::NotLoaded);
    let refused = |error: libbpf_rs::Error| object::refused(what(), &error);
    let (classes, shapes, filters) = (map(CLASSES)?, map("fp_shapes")?, map("fp_filters")?);
    for (place, class) in settings.classes.iter().enumerate() {
        let key = u32::try_from(place).unwrap_or(u32::MAX).to_ne_bytes();
        classes.update(&key, &class.bytes(place, settings.order), MapFlags::ANY).map_err(refused)?;
    }
    for (place, KernelShape { mask, filters: these }) in (0u32..).zip(&settings.shapes) {
        let first = these.iter().map(|(_, rank, _)| *rank).min().unwrap_or(u32::MAX);
        let shape: Vec<u8> = mask.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let shape = [shape.as_slice(), &first.to_ne_bytes(), &[0; 4]].concat();
        shapes.update(&place.to_ne_bytes(), &shape, MapFlags::ANY).map_err(refused)?;
        for (key, rank, class) in these {
            let class = u32::try_from(*class).unwrap_or(u32::MAX);
            let value = [rank.to_ne_bytes(), class.to_ne_bytes()].concat();
            filters.update(&filter_words(place, *key), &value, MapFlags::ANY).map_err(refused)?;
        }
    }
    Ok(())
}

impl KernelClasses {
    /// Loads the programs for a device. Nothing passes them yet.
    ///
    /// # Errors
    /// No rights, a kernel that refuses, or more classes or shapes than there may be.
    pub fn load(settings: &ClassSettings) -> Result<Self, KernelError> {
        if !object::has_rights() {
            return Err(KernelError::NoRights);
        }
        if settings.classes.len() > MAX_KERNEL_CLASSES {
            return Err(KernelError::TooMany { what: "classes", most: MAX_KERNEL_CLASSES });
        }
        if settings.shapes.len() > MAX_KERNEL_SHAPES {
            return Err(KernelError::TooMany { what: "shapes of filters", most: MAX_KERNEL_SHAPES });
        }
        // A kernel without the tracepoint still has classes, and nobody knows how late packets are.
        let loaded = open(settings, true).and_then(|object| object::load(what(), object));
        let object = match loaded {
            Ok(object) => object,
            Err(_) => object::load(what(), open(settings, false)?)?,
        };
        fill(&object, settings)?;
        let program = object.progs_mut().find(|program| program.name() == LEFT && program.autoload());
        let left = program.and_then(|program| program.attach_trace().ok());
        Ok(KernelClasses { object, left, index: settings.index })
    }

    /// Whether it is counted how late packets leave.
    pub fn counts_lateness(&self) -> bool {
        self.left.is_some()
    }

    /// Lets all packets that leave by the device pass them, after filters of a lower `priority`. Its egress
    /// must have a hook (`tc qdisc add dev DEVICE clsact`). Taking the hook or the filter away ends it.
    ///
    /// # Errors
    /// There is no hook, a filter of this priority is there, or the kernel refuses.
    pub fn attach(&self, priority: u16) -> Result<(), KernelError> {
        let program = self.object.progs().find(|program| program.name() == CLASSIFY);
        let program = program.ok_or(KernelError::NotLoaded)?;
        let mut hook = TcHookBuilder::new(program.as_fd());
        hook.ifindex(i32::try_from(self.index).unwrap_or(i32::MAX)).replace(false).handle(1);
        let done = hook.priority(priority.into()).hook(TC_EGRESS).attach();
        done.map(drop).map_err(|error| object::refused("classes at the egress", &error))
    }

    /// Lets the counting of lateness stay when the process ends: pinned at `file`, in a BPF file system.
    ///
    /// # Errors
    /// No BPF file system there, or the file is there already.
    pub fn pin(&mut self, file: &Path) -> Result<(), KernelError> {
        let Some(left) = &mut self.left else { return Ok(()) };
        left.pin(file).map_err(|error| object::refused(&format!("to pin {}", file.display()), &error))
    }
}

/// Devices with classes, in every network namespace, and what their classes have done.
pub fn class_devices() -> Vec<ClassDevice> {
    let options = ProgInfoQueryOptions::default().include_map_ids(true);
    let programs = ProgInfoIter::with_query_opts(options);
    let ours = programs.filter(|program| program.ty == ProgramType::SchedCls && program.name == CLASSIFY);
    let mut all: Vec<_> = ours.filter_map(|program| device_of(&program.map_ids)).collect();
    all.sort_by(|a, b| (a.namespace, &a.device).cmp(&(b.namespace, &b.device)));
    all
}

/// What the maps of one program tell.
fn device_of(maps: &[u32]) -> Option<ClassDevice> {
    let maps: Vec<_> = maps.iter().filter_map(|id| MapHandle::from_map_id(*id).ok()).collect();
    let named = |fits: fn(&str) -> bool| {
        maps.iter().find(|map| map.map_type() == MapType::Array && fits(&map.name().to_string_lossy()))
    };
    let (settings, classes) = (named(|name| name.ends_with(".rodata"))?, named(|name| name == CLASSES)?);
    let mut device = ClassDevice::parse(&settings.lookup(&[0; 4], MapFlags::ANY).ok().flatten()?)?;
    for place in 0..classes.max_entries() {
        // Between two packets.
        let class = classes.lookup(&place.to_ne_bytes(), MapFlags::LOCK).ok().flatten()?;
        device.classes.push(ClassCounters::parse(&class)?);
    }
    Some(device)
}
