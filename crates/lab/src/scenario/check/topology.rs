//! Rules of the network as a whole: no loops, one link for a host with one NIC, a path for every flow.

use super::super::document::DocumentStep;
use super::super::nearest::list;
use super::super::topology::Graph;
use super::{Checker, steps};

impl Checker<'_> {
    /// No loops, one link for each host unless it has several NICs, a path for every flow.
    pub(super) fn topology(&mut self) {
        let s = self.s;
        let mut graph = Graph::new(s);
        for (i, link) in s.links.iter().enumerate() {
            let [first, second] = &link.between;
            if let Some(path) = graph.path(graph.node(first, i), graph.node(second, i)) {
                let nodes: Vec<&str> = path.iter().map(|(_, node)| *node).collect();
                let links: Vec<&str> =
                    path.iter().filter_map(|(h, _)| Some(s.links.get(h.link)?.name.as_str())).collect();
                let hosts =
                    nodes.iter().copied().chain([first.as_str()]).filter(|n| s.hosts.contains_key(*n));
                let nics = hosts.min().map_or(String::new(), |host| {
                    format!("; or give `{host}` several NICs: [hosts.{host}.multi_nic]")
                });
                self.value(
                    steps!["links", i, "between"],
                    format!("link `{}` closes a loop: {first} - {} - {first}", link.name, nodes.join(" - ")),
                )
                .hint(format!(
                    "there must be only one path between two nodes: remove one of the links {}, {}{nics}",
                    list(&links),
                    link.name
                ));
                return; // all further findings would follow from this one
            }
            graph.add(i, link);
        }
        for (i, link) in s.links.iter().enumerate() {
            for (end, name) in link.between.iter().enumerate() {
                let first = s.links.iter().position(|l| l.between.contains(name));
                let has_one_nic = s.hosts.contains_key(name) && s.multi_nic(name).is_none();
                if has_one_nic && first != Some(i) {
                    self.value(
                        steps!["links", i, "between", end],
                        format!("host `{name}` has more than one link"),
                    )
                    .hint(format!(
                        "a host has one NIC: put a router between, make it a router, or give it several \
                         NICs: [hosts.{name}.multi_nic]"
                    ));
                }
            }
        }
        let is_linked = |name: &str| s.links.iter().any(|link| link.between.iter().any(|node| node == name));
        for (table, _, name) in s.hosts.keys().map(|n| ("hosts", "host", n)).chain(s.forwarders()) {
            if !is_linked(name) {
                self.key(steps![table, name.as_str()], format!("`{name}` has no link"))
                    .hint("connect it with [[links]], or remove it");
            }
        }
        for (i, flow) in s.flows.iter().enumerate() {
            let linked = is_linked(&flow.from) && is_linked(&flow.to);
            if linked && graph.path_between(&flow.from, &flow.to).is_none() {
                self.value(
                    steps!["flows", i, "to"],
                    format!("there is no path from `{}` to `{}`", flow.from, flow.to),
                )
                .hint("the network is in pieces: a link is missing");
            }
        }
    }
}
