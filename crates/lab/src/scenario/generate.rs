//! Scenarios of common topologies, as text to begin with.

use farpace_units::{ByteCount, Rate, Span};
use std::fmt::Write;

/// Most pairs, hops or hosts of a generated topology.
pub const MAX_GENERATED: u16 = 200;

/// A common topology of `size` parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// `size` senders and receivers with one link between two routers.
    Dumbbell,
    /// `size` links in a row: one flow over all, and one over each.
    ParkingLot,
    /// `size` hosts around a switch: all others send to the first.
    Star,
}

impl Topology {
    /// All of them.
    pub const ALL: [Topology; 3] = [Topology::Dumbbell, Topology::ParkingLot, Topology::Star];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Topology::Dumbbell => "dumbbell",
            Topology::ParkingLot => "parking-lot",
            Topology::Star => "star",
        }
    }
}

/// The numbers of a generated topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopologyFigures {
    /// Pairs, hops or hosts: from 1 to [`MAX_GENERATED`].
    pub size: u16,
    /// Rate of the links that are to be the bottleneck. All others have ten times as much.
    pub rate: Rate,
    /// One-way delay of these links.
    pub delay: Span,
    /// Payload of each flow.
    pub flow: ByteCount,
}

/// One-way delay of the links between hosts and routers.
const ACCESS_DELAY: Span = Span::from_micros(100);

/// The scenario as TOML. Queues of the bottleneck hold one bandwidth-delay product of a round trip, 30 kB at
/// least.
///
/// # Errors
/// A size that is out of range, in words.
pub fn generate(topology: Topology, f: TopologyFigures) -> Result<String, String> {
    let least = if topology == Topology::Star { 2 } else { 1 };
    if !(least..=MAX_GENERATED).contains(&f.size) {
        return Err(format!("a {} has from {least} to {MAX_GENERATED} parts", topology.name()));
    }
    let queue = f.rate.bytes_in(f.delay * 2).max(ByteCount::new(30_000));
    let access = Rate::from_bits_per_sec(f.rate.bits_per_sec().saturating_mul(10));
    let mut net = TopologyText::default();
    let narrow = |a: &str, b: &str| TopologyLink {
        ends: [a.into(), b.into()],
        rate: f.rate,
        delay: f.delay,
        queue: Some(queue),
    };
    let wide = |a: &str, b: &str| TopologyLink {
        ends: [a.into(), b.into()],
        rate: access,
        delay: ACCESS_DELAY,
        queue: None,
    };
    match topology {
        Topology::Dumbbell => {
            net.nodes("routers", &["left".into(), "right".into()]);
            net.link("bottleneck", &narrow("left", "right"));
            for n in 1..=f.size {
                let (from, to) = (format!("s{n}"), format!("r{n}"));
                net.nodes("hosts", &[from.clone(), to.clone()]);
                net.link(&format!("in{n}"), &wide(&from, "left"));
                net.link(&format!("out{n}"), &wide("right", &to));
                net.flow(&format!("flow{n}"), &from, &to, f.flow);
            }
        }
        Topology::ParkingLot => {
            net.nodes("routers", &(0..=f.size).map(|n| format!("p{n}")).collect::<Vec<_>>());
            net.nodes("hosts", &["s0".into(), "r0".into()]);
            net.link("in0", &wide("s0", "p0"));
            net.link("out0", &wide(&format!("p{}", f.size), "r0"));
            net.flow("long", "s0", "r0", f.flow);
            for n in 1..=f.size {
                let (from, to) = (format!("s{n}"), format!("r{n}"));
                let (before, behind) = (format!("p{}", n - 1), format!("p{n}"));
                net.nodes("hosts", &[from.clone(), to.clone()]);
                net.link(&format!("hop{n}"), &narrow(&before, &behind));
                net.link(&format!("in{n}"), &wide(&from, &before));
                net.link(&format!("out{n}"), &wide(&behind, &to));
                net.flow(&format!("cross{n}"), &from, &to, f.flow);
            }
        }
        Topology::Star => {
            net.nodes("switches", &["middle".into()]);
            for n in 1..=f.size {
                let host = format!("h{n}");
                net.nodes("hosts", std::slice::from_ref(&host));
                net.link(&format!("port{n}"), &narrow(&host, "middle"));
                if n > 1 {
                    net.flow(&format!("flow{n}"), &host, "h1", f.flow);
                }
            }
        }
    }
    let title = format!("title = \"A {} of {}\"\nduration = \"60 s\"\n", topology.name(), f.size);
    Ok(title + &net.nodes + &net.links + &net.flows)
}

/// A link.
struct TopologyLink {
    ends: [String; 2],
    rate: Rate,
    delay: Span,
    queue: Option<ByteCount>,
}

/// The tables of a scenario, by kind.
#[derive(Default)]
struct TopologyText {
    nodes: String,
    links: String,
    flows: String,
}

impl TopologyText {
    fn nodes(&mut self, table: &str, names: &[String]) {
        for name in names {
            let _ = writeln!(self.nodes, "[{table}.{name}]");
        }
    }
    fn link(&mut self, name: &str, line: &TopologyLink) {
        let TopologyLink { ends: [a, b], rate, delay, queue } = line;
        let _ = write!(
            self.links,
            "\n[[links]]\nname = \"{name}\"\nbetween = [\"{a}\", \"{b}\"]\n\
             rate = \"{rate}\"\ndelay = \"{delay}\"\n"
        );
        if let Some(queue) = queue {
            let _ = writeln!(self.links, "queue = \"{queue}\"");
        }
    }
    fn flow(&mut self, name: &str, from: &str, to: &str, size: ByteCount) {
        let _ = write!(
            self.flows,
            "\n[[flows]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\nsize = \"{size}\"\n"
        );
    }
}
