//! The shape of the network: paths and routes.

use super::spec::{Direction, FlowSpec, LinkSpec, Scenario};
use std::collections::{BTreeMap, VecDeque};

/// One step of a path: over a link, in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hop {
    /// Index of the link in [`Scenario::links`].
    pub link: usize,
    /// In which direction.
    pub direction: Direction,
}

impl Hop {
    /// The reverse hop.
    #[must_use]
    pub const fn reverse(self) -> Hop {
        Hop { link: self.link, direction: self.direction.reverse() }
    }
}

/// A node; of a host with several NICs, one of them, by its link. NICs are ends of the network: nothing comes
/// in by one and goes out by another. So parallel paths from host to host are no loops, and there is one path
/// between two graph nodes.
pub(super) type GraphNode<'a> = (&'a str, usize);

/// Graph nodes and the links that lead away from each, in the order in which they were added.
pub(super) struct Graph<'a> {
    scenario: &'a Scenario,
    edges: BTreeMap<GraphNode<'a>, Vec<(Hop, GraphNode<'a>)>>,
}

impl<'a> Graph<'a> {
    /// Without any links.
    pub const fn new(scenario: &'a Scenario) -> Self {
        Graph { scenario, edges: BTreeMap::new() }
    }
    /// With all links.
    pub fn of(scenario: &'a Scenario) -> Self {
        let mut graph = Graph::new(scenario);
        for (i, link) in scenario.links.iter().enumerate() {
            graph.add(i, link);
        }
        graph
    }

    pub fn add(&mut self, index: usize, link: &'a LinkSpec) {
        let [first, second] = link.between.each_ref().map(|node| self.node(node, index));
        let (forward, backward) = (
            Hop { link: index, direction: Direction::Forward },
            Hop { link: index, direction: Direction::Backward },
        );
        self.edges.entry(first).or_default().push((forward, second));
        self.edges.entry(second).or_default().push((backward, first));
    }

    /// The graph node at which `link` begins or ends at `node`.
    pub fn node<'n>(&self, node: &'n str, link: usize) -> GraphNode<'n> {
        (node, if self.scenario.multi_nic(node).is_some() { link } else { 0 })
    }
    /// A node, by its first NIC.
    fn first_node<'n>(&self, node: &'n str) -> GraphNode<'n> {
        (node, self.scenario.nics(node).first().map_or(0, |nic| self.node(node, nic.link).1))
    }

    /// For every other graph node that reaches `target`: the first hop of its path there, and the graph node
    /// after that hop.
    pub fn routes_toward(&self, target: GraphNode<'_>) -> BTreeMap<GraphNode<'a>, (Hop, GraphNode<'a>)> {
        let mut routes = BTreeMap::new();
        let Some(&target) = self.edges.keys().find(|place| **place == target) else { return routes };
        let mut queue = VecDeque::from([target]);
        while let Some(place) = queue.pop_front() {
            for &(hop, neighbour) in self.edges.get(&place).into_iter().flatten() {
                if neighbour == target || routes.contains_key(&neighbour) {
                    continue;
                }
                routes.insert(neighbour, (hop.reverse(), place));
                queue.push_back(neighbour);
            }
        }
        routes
    }

    /// The path between two graph nodes, as hops and the nodes they lead to.
    pub fn path(&self, from: GraphNode<'_>, to: GraphNode<'_>) -> Option<Vec<(Hop, &'a str)>> {
        let routes = self.routes_toward(to);
        let mut path = Vec::new();
        let mut place = from;
        while place != to {
            // Each step is nearer to the target, so this ends.
            let (hop, next) = *routes.get(&place)?;
            path.push((hop, next.0));
            place = next;
        }
        Some(path)
    }
    /// The path between two nodes, by their first NICs.
    pub fn path_between(&self, from: &str, to: &str) -> Option<Vec<(Hop, &'a str)>> {
        self.path(self.first_node(from), self.first_node(to))
    }
}

impl Scenario {
    /// The path of a flow's data, in order. Its ACKs take the same links back. Between hosts with several
    /// NICs, the widest of [all](Scenario::paths). Never empty in a checked scenario.
    pub fn path(&self, flow: &FlowSpec) -> Vec<Hop> {
        let mut paths = self.paths(flow);
        if paths.len() > 1 {
            let widest = |hops: &Vec<Hop>| self.narrowest_on(flow, hops).map(|b| b.goodput);
            let at = (0..paths.len()).rev().max_by_key(|i| widest(&paths[*i])).unwrap_or(0);
            return paths.swap_remove(at);
        }
        paths.pop().unwrap_or_default()
    }

    /// The routes to one host, by its first NIC: for every other node the hop by which it forwards.
    pub fn routes_to(&self, host: &str) -> BTreeMap<&str, Hop> {
        let graph = Graph::of(self);
        let mut routes = BTreeMap::new();
        for ((node, _), (hop, _)) in graph.routes_toward(graph.first_node(host)) {
            routes.entry(node).or_insert(hop);
        }
        routes
    }

    /// True if the other end of `link` than `node` is a switch or a hub: `node` sees frames for other hosts
    /// there.
    pub(crate) fn leads_to_switch(&self, link: &LinkSpec, node: &str) -> bool {
        let [first, second] = &link.between;
        (first == node && self.switches.contains_key(second))
            || (second == node && self.switches.contains_key(first))
    }
}
