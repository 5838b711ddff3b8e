//! Finds the class of a packet.
//!
//! A filter compares some bits of the key of a packet, under a mask. Filters with the same mask have the same
//! *shape*. One binary search per shape finds the first filter of that shape that matches. So ten thousand
//! filters on single addresses cost one search, and the cost grows only with the number of shapes.

mod key;

use super::{ClassFilter, ConfigError};
use farpace_wire::Packet;
pub use key::ClassifierKey;
use std::collections::BTreeMap;

/// Maximum number of filters of one device.
pub const MAX_FILTERS: usize = 1 << 16;
/// Maximum number of filter shapes: sets of keys and prefix lengths. A packet may cost one search for each.
pub const MAX_SHAPES: usize = 1 << 10;

/// The filters of a configuration in the order of evaluation: lowest priority value first, then in written
/// order.
///
/// For packets with VLAN tags, filters apply to the headers below the tags. A filter with ports matches only
/// unfragmented TCP segments and UDP datagrams: later fragments carry no ports, and all fragments of a
/// datagram must go to the same class. A packet that is not IP matches only a filter without conditions.
#[derive(Clone, Debug)]
pub struct Classifier {
    /// Sorted by the rank of their first filters.
    shapes: Vec<Shape>,
    /// Indexed by rank (the position of a filter in the order of evaluation): index of its class in the
    /// configuration.
    classes: Vec<u32>,
    default: Option<usize>,
}

/// Filters with the same mask.
#[derive(Clone, Debug)]
struct Shape {
    mask: ClassifierKey,
    /// The lowest rank.
    first: u32,
    /// The values under the mask, sorted, each with the lowest rank of its filters.
    keys: Vec<(ClassifierKey, u32)>,
}

impl Shape {
    /// The rank of the first filter of this shape that matches `key`.
    #[inline]
    fn find(&self, key: &ClassifierKey) -> Option<u32> {
        let masked = key.and(&self.mask);
        self.keys.binary_search_by(|(k, _)| k.cmp(&masked)).ok().map(|at| self.keys[at].1)
    }
}

impl Classifier {
    /// A classifier for `classes`, given by their names, with checked `filters`. `default` is the class of
    /// packets that no filter matches. Filters of classes that do not exist are ignored.
    pub fn new<'a>(
        classes: impl Iterator<Item = &'a str>,
        filters: &[ClassFilter],
        default: Option<&str>,
    ) -> Self {
        let mut indices = BTreeMap::new();
        for (index, name) in classes.enumerate() {
            indices.entry(name).or_insert(index);
        }
        let default = default.and_then(|name| indices.get(name).copied());
        let known = ordered(filters).into_iter().map(|at| &filters[at]);
        let known: Vec<_> =
            known.filter_map(|f| indices.get(f.class.as_str()).map(|at| (f, *at as u32))).collect();
        let classes = known.iter().map(|(_, class)| *class).collect();
        let ranked = (0..).zip(known.iter().map(|(filter, _)| ClassifierKey::of_filter(filter)));
        Classifier { shapes: shapes(ranked), classes, default }
    }

    /// The filters as a table, for searches outside of this crate: for each shape, sorted by the rank of its
    /// first filter, its mask, and for each filter its value, its rank, and the index of its class. Of all
    /// filters that match a packet the one with the lowest rank applies.
    pub fn table(&self) -> impl Iterator<Item = (ClassifierKey, Vec<(ClassifierKey, u32, usize)>)> {
        self.shapes.iter().map(|shape| {
            let class = |rank: u32| self.classes.get(rank as usize).map(|class| *class as usize);
            let keys = shape.keys.iter();
            (shape.mask, keys.filter_map(|(key, rank)| Some((*key, *rank, class(*rank)?))).collect())
        })
    }

    /// Index of the class of packets that no filter matches.
    pub const fn default_class(&self) -> Option<usize> {
        self.default
    }

    /// Index of the class of `packet` in the configuration; none if no filter matches and there is no
    /// default.
    #[inline]
    pub fn classify(&self, packet: &Packet) -> Option<usize> {
        if self.shapes.is_empty() {
            return self.default;
        }
        let key = ClassifierKey::of_packet(packet);
        let mut best = u32::MAX;
        for shape in &self.shapes {
            // All filters of the remaining shapes have higher ranks.
            if shape.first >= best {
                break;
            }
            if let Some(rank) = shape.find(&key) {
                best = best.min(rank);
            }
        }
        self.classes.get(best as usize).map_or(self.default, |class| Some(*class as usize))
    }
}

/// Indices of filters in the order of evaluation.
pub(crate) fn ordered(filters: &[ClassFilter]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..filters.len()).collect();
    order.sort_by_key(|at| filters[*at].priority);
    order
}

/// Groups filters by mask. Each filter comes with its rank.
fn shapes(filters: impl Iterator<Item = (u32, (ClassifierKey, ClassifierKey))>) -> Vec<Shape> {
    let mut by_mask: BTreeMap<ClassifierKey, BTreeMap<ClassifierKey, u32>> = BTreeMap::new();
    for (rank, (mask, value)) in filters {
        let first = by_mask.entry(mask).or_default().entry(value).or_insert(rank);
        *first = rank.min(*first);
    }
    let shape = |(mask, keys): (ClassifierKey, BTreeMap<ClassifierKey, u32>)| {
        let first = keys.values().min().copied().unwrap_or(u32::MAX);
        Shape { mask, first, keys: keys.into_iter().collect() }
    };
    let mut shapes: Vec<Shape> = by_mask.into_iter().map(shape).collect();
    shapes.sort_by_key(|shape| shape.first);
    shapes
}

impl ClassFilter {
    /// True if `packet` matches the filter. For many filters, [`Classifier`] is faster.
    pub fn matches(&self, packet: &Packet) -> bool {
        let (mask, value) = ClassifierKey::of_filter(self);
        ClassifierKey::of_packet(packet).and(&mask) == value
    }
}

/// Checks filters, except for the names of their classes.
pub(crate) fn check(filters: &[ClassFilter], errors: &mut Vec<ConfigError>) {
    if filters.len() > MAX_FILTERS {
        let problem = format!("{} filters: a device has at most {MAX_FILTERS}", filters.len());
        errors.push(ConfigError::new(&["filters"], problem));
        return;
    }
    for (i, filter) in filters.iter().enumerate() {
        let mut wrong = |key: &str, problem: String| {
            errors.push(ConfigError::new(&["filters", &i.to_string(), key], problem));
        };
        if filter.dscp.is_some_and(|dscp| dscp > 63) {
            wrong("dscp", "a DSCP is a number from 0 to 63".to_owned());
        }
        if let (Some(src), Some(dst)) = (filter.src, filter.dst)
            && src.net().is_ipv4() != dst.net().is_ipv4()
        {
            wrong("dst", format!("no packet goes from {src} to {dst}: one is IPv4, the other IPv6"));
        }
        if let Some(protocol) = filter.protocol.filter(|p| !p.has_ports())
            && (filter.src_port.is_some() || filter.dst_port.is_some())
        {
            wrong("protocol", format!("packets of {protocol} have no ports: only TCP and UDP packets have"));
        }
    }
    let shapes = shapes(filters.iter().map(|filter| (0, ClassifierKey::of_filter(filter)))).len();
    if shapes > MAX_SHAPES {
        let problem = format!(
            "the filters have {shapes} shapes (sets of keys and prefix lengths): at most {MAX_SHAPES} are \
             allowed, because a packet may cost one search for each"
        );
        errors.push(ConfigError::new(&["filters"], problem));
    }
}

/// Warns of filters that never match because an earlier filter matches all of their packets. It returns no
/// warning for filters that [`check`] refuses.
pub(crate) fn covered(filters: &[ClassFilter], warnings: &mut Vec<ConfigError>) {
    let order = ordered(filters);
    let keys: Vec<_> = order.iter().map(|at| ClassifierKey::of_filter(&filters[*at])).collect();
    let shapes = shapes((0..).zip(keys.iter().copied()));
    if filters.len() > MAX_FILTERS || shapes.len() > MAX_SHAPES {
        return;
    }
    for ((rank, at), (mask, value)) in (0..).zip(&order).zip(&keys) {
        // Earlier filters whose conditions are a subset of this filter's.
        let wider =
            shapes.iter().take_while(|shape| shape.first < rank).filter(|s| s.mask.and(mask) == s.mask);
        let Some(by) = wider.filter_map(|shape| shape.find(value)).filter(|found| *found < rank).min() else {
            continue;
        };
        let by = order[by as usize];
        let (class, same) = (&filters[by].class, filters[by].class == filters[*at].class);
        let problem = format!(
            "never matches: filter {by}, which precedes it, takes all of its packets to {}class `{class}`",
            if same { "the same " } else { "" }
        );
        warnings.push(ConfigError::new(&["filters", &at.to_string()], problem));
    }
}

#[cfg(test)]
mod tests;
