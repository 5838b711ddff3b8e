//! Which class a packet belongs to.

use super::config::{Filter, PacingConfig};
use farpace_wire::Packet;

/// The filters of a configuration, in the order in which they are tried.
#[derive(Clone, Debug)]
pub struct Classifier {
    /// Each with the place of its class in the configuration.
    filters: Vec<(Filter, usize)>,
    default: Option<usize>,
}

impl Classifier {
    /// The filters of a checked configuration; those of classes that do not exist are left out.
    pub fn new(config: &PacingConfig) -> Self {
        let place = |name: &str| config.classes.iter().position(|class| class.name == name);
        let mut filters: Vec<_> =
            config.filters.iter().filter_map(|f| place(&f.class).map(|at| (f.clone(), at))).collect();
        filters.sort_by_key(|(filter, _)| filter.priority);
        Classifier { filters, default: config.default.as_deref().and_then(place) }
    }

    /// The place of the class of `packet` in the configuration; none: no filter matches, and there is no default.
    pub fn classify(&self, packet: &Packet) -> Option<usize> {
        let found = self.filters.iter().find(|(filter, _)| filter.matches(packet));
        found.map(|(_, class)| *class).or(self.default)
    }
}

impl Filter {
    /// True if `packet` is one that the filter means.
    pub fn matches(&self, packet: &Packet) -> bool {
        let Filter { class: _, priority: _, protocol, src, dst, src_port, dst_port, dscp } = self;
        let Some(ip) = packet.ip() else {
            return protocol.is_none()
                && src.is_none()
                && dst.is_none()
                && src_port.is_none()
                && dst_port.is_none()
                && dscp.is_none();
        };
        if protocol.is_some_and(|p| p.number() != ip.protocol())
            || src.is_some_and(|net| !net.contains(ip.src()))
            || dst.is_some_and(|net| !net.contains(ip.dst()))
        {
            return false;
        }
        if src_port.is_none() && dst_port.is_none() {
            return true;
        }
        let ports = packet.tcp().map(|tcp| (tcp.src_port(), tcp.dst_port()));
        let ports = ports.or_else(|_| packet.udp().map(|udp| (udp.src_port(), udp.dst_port())));
        ports.is_ok_and(|(from, to)| src_port.is_none_or(|p| p == from) && dst_port.is_none_or(|p| p == to))
    }
}
