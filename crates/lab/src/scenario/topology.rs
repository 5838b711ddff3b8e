//! The shape of the network: paths, routes, and where taps are.

use super::spec::{Flow, LinkSpec, Scenario, Way};
use std::collections::{BTreeMap, VecDeque};

/// One step of a path: over a link, in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hop {
    /// Index of the link in [`Scenario::links`].
    pub link: usize,
    /// Which way over it.
    pub way: Way,
}

/// A place where packets are captured: one end of a link. It sees what the node there puts into the link,
/// before policer, loss and queue, and what comes out of the link there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tap {
    /// What the capture is called: the host's name, or `link.node`.
    pub name: String,
    /// Index of the link.
    pub link: usize,
    /// Which end: 0 for the first of `between`, 1 for the second.
    pub end: usize,
}

/// Nodes and the links that lead away from each, in the order of their addition.
#[derive(Default)]
pub(super) struct Graph<'a> {
    edges: BTreeMap<&'a str, Vec<(Hop, &'a str)>>,
}

impl<'a> Graph<'a> {
    pub fn of(scenario: &'a Scenario) -> Self {
        let mut graph = Graph::default();
        for (i, link) in scenario.links.iter().enumerate() {
            graph.add(i, link);
        }
        graph
    }

    pub fn add(&mut self, index: usize, link: &'a LinkSpec) {
        let [first, second] = &link.between;
        let (forward, backward) =
            (Hop { link: index, way: Way::Forward }, Hop { link: index, way: Way::Backward });
        self.edges.entry(first).or_default().push((forward, second));
        self.edges.entry(second).or_default().push((backward, first));
    }

    /// How many links a node has.
    pub fn degree(&self, node: &str) -> usize {
        self.edges.get(node).map_or(0, Vec::len)
    }

    /// For every other node that reaches `target`: the first hop of its shortest way there, and the node
    /// which that hop leads to.
    pub fn toward(&self, target: &str) -> BTreeMap<&'a str, (Hop, &'a str)> {
        let mut routes = BTreeMap::new();
        let Some((&target, _)) = self.edges.get_key_value(target) else { return routes };
        let mut queue = VecDeque::from([target]);
        while let Some(node) = queue.pop_front() {
            for &(hop, neighbour) in self.edges.get(node).into_iter().flatten() {
                if neighbour == target || routes.contains_key(neighbour) {
                    continue;
                }
                let back = match hop.way {
                    Way::Forward => Way::Backward,
                    Way::Backward => Way::Forward,
                };
                routes.insert(neighbour, (Hop { link: hop.link, way: back }, node));
                queue.push_back(neighbour);
            }
        }
        routes
    }

    /// The way between two nodes, as hops and the nodes they lead to.
    pub fn path(&self, from: &str, to: &str) -> Option<Vec<(Hop, &'a str)>> {
        let routes = self.toward(to);
        let mut path = Vec::new();
        let mut node = from;
        while node != to {
            // Each step is nearer to the target, so this ends.
            let step = *routes.get(node)?;
            path.push(step);
            node = step.1;
        }
        Some(path)
    }
}

impl Scenario {
    /// The way of a flow's data, in order. Its ACKs take the same links back. Never empty in a scenario
    /// that has been checked.
    pub fn path(&self, flow: &Flow) -> Vec<Hop> {
        let path = Graph::of(self).path(&flow.from, &flow.to).unwrap_or_default();
        path.into_iter().map(|(hop, _)| hop).collect()
    }

    /// The routing towards one host: for every other node the hop by which it forwards. The shortest way
    /// by number of links; as there are no loops, the only one.
    pub fn routes_to(&self, host: &str) -> BTreeMap<&str, Hop> {
        Graph::of(self).toward(host).into_iter().map(|(node, (hop, _))| (node, hop)).collect()
    }

    /// Where to capture, from [`Trace::taps`](super::Trace), each place once, in the order given.
    pub fn taps(&self) -> Vec<Tap> {
        let mut taps: Vec<Tap> = Vec::new();
        for name in &self.trace.taps {
            for (i, link) in self.links.iter().enumerate() {
                for (end, node) in link.between.iter().enumerate() {
                    let seen = taps.iter().any(|t| (t.link, t.end) == (i, end));
                    if !seen && (link.name == *name || node == name) {
                        let is_host = self.hosts.contains_key(node);
                        let called = if is_host { node.clone() } else { format!("{}.{node}", link.name) };
                        taps.push(Tap { name: called, link: i, end });
                    }
                }
            }
        }
        taps
    }
}
