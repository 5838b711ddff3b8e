//! Hosts with several NICs: their links, their Ethernets, and the paths of a flow.

use super::figures::{PathBottleneck, narrowest};
use super::spec::{Direction, FlowSpec, Scenario};
use super::topology::{Graph, Hop};
use farpace_link::multi_nic::{MultiNicConfig, pair};
use farpace_units::Rate;
use farpace_wire::NicKind;
use std::collections::{BTreeMap, BTreeSet};

impl Scenario {
    /// How a host uses several NICs; none for a node that has one NIC or is no host.
    pub fn multi_nic(&self, host: &str) -> Option<&MultiNicConfig> {
        self.hosts.get(host)?.multi_nic.as_ref()
    }
    /// The links of a node in the order of the file, each in the direction away from it: the NICs of a host.
    pub fn nics(&self, node: &str) -> Vec<Hop> {
        let away = |(link, spec): (usize, &super::LinkSpec)| match &spec.between {
            [first, _] if first == node => Some(Hop { link, direction: Direction::Forward }),
            [_, second] if second == node => Some(Hop { link, direction: Direction::Backward }),
            _ => None,
        };
        self.links.iter().enumerate().filter_map(away).collect()
    }
    /// The rate of a NIC: the highest rate of its link away from it. None if that is infinitely fast.
    pub fn nic_rate(&self, nic: Hop) -> Option<Rate> {
        self.direction(nic)?.max_rate()
    }
    /// The highest rate at which a NIC sends: its rate, or less if it is paced.
    pub fn nic_max_rate(&self, nic: Hop) -> Option<Rate> {
        let rate = self.nic_rate(nic)?;
        Some(self.direction(nic)?.pacing.map_or(rate, |config| config.max_wire_rate(rate)))
    }
    /// What neighbours learn of the NICs of a host.
    pub fn nic_kinds(&self, nics: &[Hop]) -> Vec<NicKind> {
        nics.iter().map(|nic| NicKind::of_rate(self.nic_rate(*nic).unwrap_or_default())).collect()
    }

    /// For each link the number of its Ethernet. Links that a switch or a hub joins are one Ethernet; a link
    /// between two other nodes is one of its own.
    pub fn ethernets(&self) -> Vec<usize> {
        let mut of: Vec<usize> = (0..self.links.len()).collect();
        for switch in self.switches.keys() {
            let joined: BTreeSet<usize> = self.nics(switch).iter().map(|hop| of[hop.link]).collect();
            let Some(&first) = joined.first() else { continue };
            of.iter_mut().filter(|ethernet| joined.contains(ethernet)).for_each(|e| *e = first);
        }
        of
    }
    /// The Ethernets with a NIC of a host that has several. There all hosts resolve MAC addresses.
    pub fn shared_ethernets(&self) -> BTreeSet<usize> {
        let of = self.ethernets();
        let hosts = self.hosts.iter().filter(|(_, host)| host.multi_nic.is_some());
        hosts.flat_map(|(name, _)| self.nics(name)).filter_map(|nic| of.get(nic.link).copied()).collect()
    }

    /// All paths of a flow's data, in the order of the sender's NICs. More than one only between two hosts
    /// that announce several NICs to each other.
    pub fn paths(&self, flow: &FlowSpec) -> Vec<Vec<Hop>> {
        let graph = Graph::of(self);
        let hops = |path: Vec<(Hop, &str)>| path.into_iter().map(|(hop, _)| hop).collect::<Vec<_>>();
        let tells = |host: &str| self.multi_nic(host).is_some_and(|config| config.extended_arp);
        if !(tells(&flow.from) && tells(&flow.to)) {
            return graph.path_between(&flow.from, &flow.to).map(hops).into_iter().collect();
        }
        let (ours, theirs) = (self.nics(&flow.from), self.nics(&flow.to));
        let pairs = pair(&self.nic_kinds(&ours), &self.nic_kinds(&theirs));
        let path = |(nic, to): (&Hop, Option<usize>)| {
            // A frame comes in by a NIC that the path leads to, whatever its destination address.
            let to = to.and_then(|to| theirs.get(to)).into_iter().chain(&theirs);
            let from = graph.node(&flow.from, nic.link);
            to.into_iter().find_map(|to| graph.path(from, graph.node(&flow.to, to.link))).map(hops)
        };
        ours.iter().zip(pairs).filter_map(path).collect()
    }

    /// The links whose rates limit a flow, by name: one for each of its paths.
    pub fn bottleneck_links(&self, flow: &FlowSpec) -> Vec<&str> {
        let narrow = self.paths(flow).into_iter().filter_map(|hops| self.narrowest_on(flow, &hops));
        let mut names: Vec<&str> =
            narrow.filter_map(|b| self.links.get(b.hop.link)).map(|link| link.name.as_str()).collect();
        names.dedup();
        names
    }

    /// The lowest limit on one path.
    pub(super) fn narrowest_on(&self, flow: &FlowSpec, hops: &[Hop]) -> Option<PathBottleneck> {
        narrowest(&self.limits_on(flow, hops))
    }

    /// What several paths carry together, and the share of each. Where paths share a link, the wider path
    /// takes what it can and the others the rest. None if a path has no limit.
    pub(super) fn combined_limit(
        &self,
        flow: &FlowSpec,
        paths: &[Vec<Hop>],
    ) -> Option<(PathBottleneck, Vec<Rate>)> {
        let limits: Vec<Vec<PathBottleneck>> = paths.iter().map(|hops| self.limits_on(flow, hops)).collect();
        let narrow: Vec<PathBottleneck> = limits.iter().map(|l| narrowest(l)).collect::<Option<_>>()?;
        let mut order: Vec<usize> = (0..paths.len()).collect();
        order.sort_by_key(|i| (std::cmp::Reverse(narrow[*i].goodput), *i));
        let mut used: BTreeMap<(Hop, bool), u64> = BTreeMap::new();
        let mut shares = vec![Rate::from_bits_per_sec(0); paths.len()];
        let mut total = PathBottleneck { is_policer: false, paths: 0, ..*narrow.get(*order.first()?)? };
        let (mut rate, mut goodput) = (0_u64, 0_u64);
        for i in order {
            let left = |l: &PathBottleneck| {
                let all = l.goodput.bits_per_sec();
                all.saturating_sub(used.get(&(l.hop, l.is_policer)).copied().unwrap_or(0))
            };
            let Some(tight) = limits[i].iter().min_by_key(|l| left(l)).copied() else { continue };
            let share = left(&tight);
            for l in &limits[i] {
                *used.entry((l.hop, l.is_policer)).or_default() += share;
            }
            let whole = u128::from(tight.goodput.bits_per_sec().max(1));
            let part = u128::from(tight.rate.bits_per_sec()) * u128::from(share) / whole;
            rate = rate.saturating_add(u64::try_from(part).unwrap_or(u64::MAX));
            goodput = goodput.saturating_add(share);
            total.paths += u32::from(share > 0);
            shares[i] = Rate::from_bits_per_sec(share);
        }
        (total.rate, total.goodput) = (Rate::from_bits_per_sec(rate), Rate::from_bits_per_sec(goodput));
        Some((total, shares))
    }
}
