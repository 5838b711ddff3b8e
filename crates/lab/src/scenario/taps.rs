//! Where packets are captured.

use super::spec::Scenario;

/// A place where packets are captured, and the name of the capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tap {
    /// `host`; of a host with several NICs, `host` above them and `host.nic0`, `host.nic1`, ... for each NIC;
    /// `link.node` for the end of a link that is not at a host.
    pub name: String,
    /// Where.
    pub place: TapPlace,
}

/// A place where packets are captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TapPlace {
    /// One end of a link: packets that the node sends into the link, before pacing and impairments, and
    /// packets that come out of the link.
    End {
        /// Index of the link.
        link: usize,
        /// Which end: 0 for the first of `between`, 1 for the second.
        end: usize,
    },
    /// Above all NICs of a host with several: frames as its stack sends and receives them.
    Stack {
        /// The host.
        host: String,
    },
}

impl Scenario {
    /// The taps of [`Trace::taps`](super::Trace), each place once, in the order given.
    pub fn taps(&self) -> Vec<Tap> {
        let mut taps: Vec<Tap> = Vec::new();
        let mut add = |name: String, place: TapPlace| {
            if !taps.iter().any(|tap| tap.place == place) {
                taps.push(Tap { name, place });
            }
        };
        for name in &self.trace.taps {
            if self.multi_nic(name).is_some() {
                add(name.clone(), TapPlace::Stack { host: name.clone() });
            }
            for (link, spec) in self.links.iter().enumerate() {
                for (end, node) in spec.between.iter().enumerate() {
                    if spec.name == *name || node == name {
                        add(self.end_name(link, node), TapPlace::End { link, end });
                    }
                }
            }
        }
        taps
    }

    /// The name of the end of a link at `node`.
    fn end_name(&self, link: usize, node: &str) -> String {
        let nic = self.nics(node).iter().position(|nic| nic.link == link);
        match (self.multi_nic(node), nic) {
            (Some(_), Some(nic)) => format!("{node}.nic{nic}"),
            _ if self.hosts.contains_key(node) => node.to_owned(),
            _ => format!("{}.{node}", self.links.get(link).map_or("", |spec| &spec.name)),
        }
    }
}
