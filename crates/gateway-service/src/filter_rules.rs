//! The rules of the packet filter of this host, and what they do with packets of which an interface, and what
//! connection tracking says, are known, and nothing else.
//!
//! A rule matches for sure, not at all, or perhaps: where it asks for what is not known here, such as ports.

use farpace_live::system::packet_filter_rules;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Rules that are looked at for a packet at most: a filter has loops in no other way.
const MAX_LOOKS: usize = 200_000;
/// Chains within chains at most; the kernel allows 16.
const MAX_DEPTH: usize = 32;
/// Families whose chains see packets of IPv4 or IPv6.
const FAMILIES: [&str; 3] = ["inet", "ip", "ip6"];

/// What connection tracking says of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrackedState {
    New,
    Established,
    Untracked,
}

impl TrackedState {
    const fn name(self) -> &'static str {
        match self {
            TrackedState::New => "new",
            TrackedState::Established => "established",
            TrackedState::Untracked => "untracked",
        }
    }
}

/// A TCP packet that passes a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterPacket<'a> {
    pub input: &'a str,
    /// None before it is routed.
    pub output: Option<&'a str>,
    pub state: TrackedState,
}

/// A rule; of a map of verdicts one element.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuleId {
    chain: usize,
    rule: usize,
    element: Option<usize>,
}

/// What may become of a packet in a chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilterOutcome {
    pub accept: bool,
    pub drop: bool,
    /// It may go on behind the chain.
    pub next: bool,
}

/// Rules that packets have met.
#[derive(Debug, Default)]
pub struct MetRules {
    /// With the rule whose jump led there.
    pub rules: BTreeMap<RuleId, Option<RuleId>>,
    /// Those that accept all that comes to them.
    pub accepting: BTreeSet<RuleId>,
    looks: usize,
}

struct FilterChain {
    family: String,
    table: String,
    name: String,
    /// Type and hook; none: it is jumped to.
    hook: Option<(String, String)>,
    drops: bool,
    rules: Vec<FilterRule>,
}

struct FilterRule {
    expr: Vec<Value>,
    text: String,
}

/// The packet filter.
#[derive(Default)]
pub struct FilterRules {
    chains: Vec<FilterChain>,
    /// Elements of sets, by family, table and name.
    sets: BTreeMap<[String; 3], Vec<Value>>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Matches {
    No,
    Perhaps,
    Yes,
}

impl Matches {
    const fn of(yes: bool) -> Self {
        if yes { Matches::Yes } else { Matches::No }
    }
}

impl FilterRules {
    /// Those of this host. None: they cannot be read, or there is no `nft`.
    pub fn of_this_host() -> Option<Self> {
        let (json, text) = packet_filter_rules().ok()??;
        FilterRules::parse(&json, &text)
    }

    /// From `nft -j list ruleset` and `nft -a list ruleset`.
    pub fn parse(json: &str, text: &str) -> Option<Self> {
        let all: Value = serde_json::from_str(json).ok()?;
        let texts = texts_by_handle(text);
        let mut rules = FilterRules::default();
        let word = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
        for item in all["nftables"].as_array()? {
            let (chain, rule, set) = (&item["chain"], &item["rule"], &item["set"]);
            if chain.is_object() && FAMILIES.contains(&word(chain, "family").as_str()) {
                let hook = chain["hook"].as_str().map(|hook| (word(chain, "type"), hook.to_owned()));
                rules.chains.push(FilterChain {
                    family: word(chain, "family"),
                    table: word(chain, "table"),
                    name: word(chain, "name"),
                    hook,
                    drops: chain["policy"] == "drop",
                    rules: Vec::new(),
                });
            } else if rule.is_object() {
                let (family, table) = (word(rule, "family"), word(rule, "table"));
                let expr = rule["expr"].as_array().cloned().unwrap_or_default();
                let handle = rule["handle"].as_u64().unwrap_or(0);
                let text = texts.get(&(family.clone(), table.clone(), handle)).cloned();
                let text = text.unwrap_or_else(|| format!("rule {handle}"));
                if let Some(at) = rules.find(&family, &table, &word(rule, "chain")) {
                    rules.chains[at].rules.push(FilterRule { expr, text });
                }
            } else if set.is_object() {
                let key = [word(set, "family"), word(set, "table"), word(set, "name")];
                rules.sets.insert(key, set["elem"].as_array().cloned().unwrap_or_default());
            }
        }
        Some(rules)
    }

    fn find(&self, family: &str, table: &str, name: &str) -> Option<usize> {
        let is_it =
            |chain: &FilterChain| chain.family == family && chain.table == table && chain.name == name;
        self.chains.iter().position(is_it)
    }

    /// The chains at a hook, of these types.
    pub fn at_hook<'a>(&'a self, hook: &'a str, types: &'a [&'a str]) -> impl Iterator<Item = usize> + 'a {
        let is_there = move |chain: &FilterChain| {
            chain.hook.as_ref().is_some_and(|(of, at)| at == hook && types.contains(&of.as_str()))
        };
        (0..self.chains.len()).filter(move |at| is_there(&self.chains[*at]))
    }

    /// Names of interfaces by which packets leave, as rules name them.
    pub fn outputs(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        let all = self.chains.iter().flat_map(|chain| &chain.rules).flat_map(|rule| &rule.expr);
        all.for_each(|statement| {
            let matched = &statement["match"];
            if matches!(interface_key(&matched["left"]), Some(false)) {
                texts_in(&matched["right"], &mut names);
            }
            if let Some(parts) = statement["vmap"]["key"]["concat"].as_array()
                && let Some(at) = parts.iter().position(|part| interface_key(part) == Some(false))
            {
                let elements = statement["vmap"]["data"]["set"].as_array().into_iter().flatten();
                elements.for_each(|element| texts_in(&element[0]["concat"][at], &mut names));
            }
        });
        names.retain(|name| !name.contains('*') && !name.starts_with('@') && name != "lo");
        names
    }

    /// The chain of a rule, as `nft` is told it.
    pub fn chain_of(&self, id: &RuleId) -> String {
        self.chain_name(id.chain)
    }

    /// The same of a chain.
    pub fn chain_name(&self, chain: usize) -> String {
        let FilterChain { family, table, name, .. } = &self.chains[chain];
        format!("{family} {table} {name}")
    }

    /// True for a chain of connection tracking's rewriting of addresses.
    pub fn is_nat(&self, id: &RuleId) -> bool {
        self.chains[id.chain].hook.as_ref().is_some_and(|(of, _)| of == "nat")
    }

    /// A rule as `nft` shows it.
    pub fn text(&self, id: &RuleId) -> &str {
        &self.chains[id.chain].rules[id.rule].text
    }

    /// True if a rule asks what connection tracking says.
    pub fn asks_state(&self, id: &RuleId) -> bool {
        let mut asks = false;
        let expr = &self.chains[id.chain].rules[id.rule].expr;
        expr.iter().for_each(|part| walk_values(part, &mut |value| asks |= value["ct"].is_object()));
        asks
    }

    /// What a rule asks and does, besides interfaces and counters: two that have the same do the same with
    /// packets of other interfaces.
    pub fn signature(&self, id: &RuleId) -> String {
        let mut parts = Vec::new();
        for statement in &self.chains[id.chain].rules[id.rule].expr {
            let is_interface = interface_key(&statement["match"]["left"]).is_some();
            if is_interface || statement["counter"].is_object() || statement.get("counter").is_some() {
                continue;
            }
            match id.element.and_then(|at| statement["vmap"]["data"]["set"].get(at)) {
                Some(element) => parts.push(format!("vmap {}", element[1])),
                None => parts.push(statement.to_string()),
            }
        }
        parts.join(" ")
    }

    /// True if a rule does more than accept or count.
    pub fn has_effect(&self, id: &RuleId) -> bool {
        self.effect(id.chain, id.rule, id.element, 0)
    }

    fn effect(&self, chain: usize, rule: usize, element: Option<usize>, depth: usize) -> bool {
        let verdict = |statement: &Value| -> bool {
            let Some(target) = target_of(statement) else {
                let quiet = ["accept", "return", "match", "counter", "log", "limit", "continue", "comment"];
                let name = statement.as_object().and_then(|object| object.keys().next());
                return !name.is_some_and(|name| quiet.contains(&name.as_str()));
            };
            let FilterChain { family, table, .. } = &self.chains[chain];
            let Some(at) = self.find(family, table, target).filter(|_| depth < MAX_DEPTH) else {
                return true;
            };
            (0..self.chains[at].rules.len()).any(|rule| self.effect(at, rule, None, depth + 1))
        };
        self.chains[chain].rules[rule].expr.iter().any(|statement| {
            let Some(elements) = statement["vmap"]["data"]["set"].as_array() else {
                return verdict(statement);
            };
            let all = elements.iter().enumerate();
            all.filter(|(at, _)| element.is_none_or(|own| own == *at))
                .any(|(_, element)| verdict(&element[1]))
        })
    }

    /// What a base chain may do with a packet. Rules of `skip` that perhaps drop it do not.
    pub fn outcome(
        &self,
        chain: usize,
        packet: &FilterPacket<'_>,
        skip: &BTreeMap<RuleId, Option<RuleId>>,
        met: &mut MetRules,
    ) -> FilterOutcome {
        let mut outcome = self.run(chain, packet, skip, met, None, true, 0);
        outcome.drop |= outcome.next && self.chains[chain].drops;
        outcome.accept |= outcome.next && !self.chains[chain].drops;
        outcome
    }

    #[allow(clippy::too_many_arguments, reason = "a recursion over what is known")]
    fn run(
        &self,
        chain: usize,
        packet: &FilterPacket<'_>,
        skip: &BTreeMap<RuleId, Option<RuleId>>,
        met: &mut MetRules,
        parent: Option<&RuleId>,
        certain: bool,
        depth: usize,
    ) -> FilterOutcome {
        let mut outcome = FilterOutcome::default();
        for at in 0..self.chains[chain].rules.len() {
            met.looks += 1;
            if met.looks > MAX_LOOKS || depth > MAX_DEPTH {
                return FilterOutcome { accept: true, drop: true, next: true };
            }
            let mut matched = Matches::Yes;
            for statement in &self.chains[chain].rules[at].expr {
                matched = matched.min(self.condition(chain, statement, packet));
            }
            if matched == Matches::No {
                continue;
            }
            // A map of verdicts is a rule for each element.
            let mut verdicts: Vec<(Option<usize>, Matches, &Value)> = Vec::new();
            for statement in &self.chains[chain].rules[at].expr {
                let (map, key) = (&statement["vmap"]["data"]["set"], &statement["vmap"]["key"]);
                match map.as_array() {
                    Some(elements) => {
                        for (n, element) in elements.iter().enumerate() {
                            let of = self.value(chain, key, &element[0], packet).min(matched);
                            verdicts.push((Some(n), of, &element[1]));
                        }
                    }
                    None => verdicts.push((None, matched, statement)),
                }
            }
            let mut ended = false;
            for (element, matched, statement) in verdicts {
                if matched == Matches::No {
                    continue;
                }
                let id = RuleId { chain, rule: at, element };
                met.rules.entry(id.clone()).or_insert_with(|| parent.cloned());
                let sure = matched == Matches::Yes;
                ended |= self.verdict(&id, statement, packet, skip, met, sure, certain, depth, &mut outcome);
                if ended {
                    break;
                }
            }
            if ended {
                return outcome;
            }
        }
        outcome.next = true;
        outcome
    }

    /// Does what a statement says; true if the chain ends there for sure.
    #[allow(clippy::too_many_arguments, reason = "a recursion over what is known")]
    fn verdict(
        &self,
        id: &RuleId,
        statement: &Value,
        packet: &FilterPacket<'_>,
        skip: &BTreeMap<RuleId, Option<RuleId>>,
        met: &mut MetRules,
        sure: bool,
        certain: bool,
        depth: usize,
        outcome: &mut FilterOutcome,
    ) -> bool {
        let is = |name: &str| statement.get(name).is_some();
        let target = &statement["xt"]["name"];
        if is("accept") {
            outcome.accept = true;
            if sure && certain {
                met.accepting.insert(id.clone());
            }
            return sure;
        }
        if is("drop") || is("reject") || target == "REJECT" || target == "DROP" {
            outcome.drop |= sure || !skip.contains_key(id);
            return sure;
        }
        if is("queue") {
            (outcome.accept, outcome.drop) = (true, true);
            return sure;
        }
        if is("return") {
            outcome.next = true;
            return sure;
        }
        let Some(name) = target_of(statement) else { return false };
        let FilterChain { family, table, .. } = &self.chains[id.chain];
        let Some(to) = self.find(family, table, name) else { return false };
        let inner = self.run(to, packet, skip, met, Some(id), certain && sure, depth + 1);
        outcome.accept |= inner.accept;
        outcome.drop |= inner.drop;
        if is("goto") && sure {
            outcome.next |= inner.next;
            return true;
        }
        sure && !inner.next
    }

    /// Whether a statement lets a packet through to the next one.
    fn condition(&self, chain: usize, statement: &Value, packet: &FilterPacket<'_>) -> Matches {
        let matched = &statement["match"];
        if !matched.is_object() {
            let asks = ["limit", "xt", "fib", "quota", "ct count", "osf", "socket"];
            // A target of iptables is what a rule does, and a match is what it asks.
            let is_target = statement["xt"]["type"] == "target";
            let unknown = !is_target && asks.iter().any(|name| statement.get(name).is_some());
            return if unknown { Matches::Perhaps } else { Matches::Yes };
        }
        let found = self.value(chain, &matched["left"], &matched["right"], packet);
        match matched["op"].as_str() {
            Some("==" | "in") => found,
            Some("!=") => match found {
                Matches::No => Matches::Yes,
                Matches::Perhaps => Matches::Perhaps,
                Matches::Yes => Matches::No,
            },
            _ => Matches::Perhaps,
        }
    }

    /// Whether what is asked of a packet has one of these values.
    fn value(&self, chain: usize, key: &Value, values: &Value, packet: &FilterPacket<'_>) -> Matches {
        if let Some(name) = values.as_str().and_then(|text| text.strip_prefix('@')) {
            let FilterChain { family, table, .. } = &self.chains[chain];
            let set = self.sets.get(&[family.clone(), table.clone(), name.to_owned()]);
            return set.map_or(Matches::Perhaps, |set| self.any(chain, key, set, packet));
        }
        if let Some(all) = values["set"].as_array().or_else(|| values.as_array()) {
            return self.any(chain, key, all, packet);
        }
        if let Some(inner) = values["elem"].get("val") {
            return self.value(chain, key, inner, packet);
        }
        if let Some(keys) = key["concat"].as_array() {
            let Some(parts) = values["concat"].as_array().filter(|parts| parts.len() == keys.len()) else {
                return Matches::Perhaps;
            };
            let all = keys.iter().zip(parts).map(|(key, part)| self.value(chain, key, part, packet));
            return all.min().unwrap_or(Matches::Perhaps);
        }
        let known = match () {
            () if interface_key(key) == Some(true) => Some(packet.input),
            () if interface_key(key) == Some(false) => packet.output,
            () if key["ct"]["key"] == "state" => Some(packet.state.name()),
            () if is_protocol_key(key) => Some("tcp"),
            () if matches!(key["payload"]["protocol"].as_str(), Some("udp" | "icmp" | "icmpv6" | "sctp")) => {
                return Matches::No;
            }
            () => None,
        };
        match (known, values.as_str()) {
            (Some(known), Some(value)) => Matches::of(match value.strip_suffix('*') {
                Some(start) => known.starts_with(start),
                None => known == value,
            }),
            (Some(_), None) if is_protocol_key(key) => Matches::of(values.as_u64() == Some(6)),
            _ => Matches::Perhaps,
        }
    }

    fn any(&self, chain: usize, key: &Value, all: &[Value], packet: &FilterPacket<'_>) -> Matches {
        all.iter().map(|one| self.value(chain, key, one, packet)).max().unwrap_or(Matches::No)
    }

    /// Rules met at a hook before routing that rewrite the destination, or that set marks.
    pub fn before_routing(&self, interface: &str) -> (Vec<RuleId>, Vec<RuleId>) {
        let packet = FilterPacket { input: interface, output: None, state: TrackedState::New };
        let mut met = MetRules::default();
        for chain in self.at_hook("prerouting", &["nat", "filter"]) {
            self.outcome(chain, &packet, &BTreeMap::new(), &mut met);
        }
        let does = |id: &RuleId, what: fn(&Value) -> bool| {
            self.chains[id.chain].rules[id.rule].expr.iter().any(what)
        };
        let rewrites = |statement: &Value| {
            let target = statement["xt"]["name"].as_str().unwrap_or_default();
            ["dnat", "redirect"].iter().any(|name| statement.get(name).is_some())
                || ["DNAT", "REDIRECT", "NETMAP"].contains(&target)
        };
        let marks = |statement: &Value| {
            let target = statement["xt"]["name"].as_str().unwrap_or_default();
            statement["mangle"]["key"]["meta"]["key"] == "mark" || ["MARK", "CONNMARK"].contains(&target)
        };
        let of = |what: fn(&Value) -> bool| met.rules.keys().filter(|id| does(id, what)).cloned().collect();
        (of(rewrites), of(marks))
    }
}

/// True for the interface by which a packet has come, false for that by which it leaves.
fn interface_key(key: &Value) -> Option<bool> {
    match key["meta"]["key"].as_str() {
        Some("iif" | "iifname") => Some(true),
        Some("oif" | "oifname") => Some(false),
        _ => None,
    }
}

fn is_protocol_key(key: &Value) -> bool {
    let payload = &key["payload"];
    key["meta"]["key"] == "l4proto"
        || (payload["protocol"] == "ip" && payload["field"] == "protocol")
        || (payload["protocol"] == "ip6" && payload["field"] == "nexthdr")
}

fn target_of(statement: &Value) -> Option<&str> {
    statement["jump"]["target"].as_str().or_else(|| statement["goto"]["target"].as_str())
}

fn walk_values(value: &Value, see: &mut impl FnMut(&Value)) {
    see(value);
    match value {
        Value::Array(all) => all.iter().for_each(|one| walk_values(one, see)),
        Value::Object(all) => all.values().for_each(|one| walk_values(one, see)),
        _ => {}
    }
}

fn texts_in(value: &Value, names: &mut BTreeSet<String>) {
    walk_values(value, &mut |one| names.extend(one.as_str().map(str::to_owned)));
}

/// The text of rules, by family, table and handle.
fn texts_by_handle(text: &str) -> BTreeMap<(String, String, u64), String> {
    let mut found = BTreeMap::new();
    let mut table = (String::new(), String::new());
    for line in text.lines() {
        let Some((text, handle)) = line.rsplit_once(" # handle ") else { continue };
        let words: Vec<_> = text.split_whitespace().collect();
        if let ["table", family, name, ..] = words[..]
            && !line.starts_with('\t')
        {
            table = (family.to_owned(), name.to_owned());
        } else if let Ok(handle) = handle.trim().parse() {
            let (family, name) = table.clone();
            found.insert((family, name, handle), text.trim().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TEXT: &str =
        "table inet fw { # handle 2\n\tchain f { # handle 1\n\t\toifname @far drop # handle 9\n";

    fn filter(policy: &str, rules: &[Value]) -> FilterRules {
        let chain = |name: &str| json!({ "chain": { "family": "inet", "table": "fw", "name": name } });
        let mut base = chain("f");
        for (key, value) in [("type", "filter"), ("hook", "forward"), ("policy", policy)] {
            base["chain"][key] = value.into();
        }
        let set =
            json!({ "set": { "family": "inet", "table": "fw", "name": "far", "elem": ["wan", "ppp*"] } });
        let mut all = vec![json!({ "metainfo": {} }), set, base, chain("inner")];
        all.push(json!({ "rule": { "family": "inet", "table": "fw", "chain": "inner", "handle": 1,
                                   "expr": [{ "drop": null }] } }));
        all.extend(rules.iter().zip(9..).map(|(expr, handle)| {
            let mut rule = json!({ "rule": { "family": "inet", "table": "fw", "chain": "f", "expr": expr } });
            rule["rule"]["handle"] = handle.into();
            rule
        }));
        FilterRules::parse(&json!({ "nftables": all }).to_string(), TEXT).unwrap()
    }

    fn name(key: &str, op: &str, value: &Value) -> Value {
        json!({ "match": { "op": op, "left": { "meta": { "key": key } }, "right": value } })
    }

    /// May it be accepted, or dropped?
    fn fate(policy: &str, rules: &[Value], state: TrackedState) -> (bool, bool) {
        let filter = filter(policy, rules);
        let packet = FilterPacket { input: "lan", output: Some("ppp0"), state };
        let chain = filter.at_hook("forward", &["filter"]).next().unwrap();
        let outcome = filter.outcome(chain, &packet, &BTreeMap::new(), &mut MetRules::default());
        (outcome.accept, outcome.drop)
    }

    /// Breaks: sets, maps, jumps or wildcards of a filter are misread, and `check` says the opposite of
    /// what it does.
    #[test]
    fn rules_do_what_nft_means() {
        use TrackedState::{Established, New, Untracked};
        let far = name("oifname", "==", &"@far".into());
        let drop = json!({ "drop": null });
        assert_eq!(fate("accept", &[json!([far, drop])], New), (false, true));
        assert_eq!(
            fate("accept", &[json!([name("oifname", "!=", &"@far".into()), drop])], New),
            (true, false)
        );
        let field = json!({ "payload": { "protocol": "tcp", "field": "dport" } });
        let port = json!({ "match": { "op": "==", "left": field, "right": 25 } });
        assert_eq!(fate("accept", &[json!([far, port, drop])], New), (true, true));
        let udp =
            json!({ "match": { "op": "==", "left": { "meta": { "key": "l4proto" } }, "right": "udp" } });
        assert_eq!(fate("accept", &[json!([udp, drop])], New), (true, false));
        let inner = json!({ "jump": { "target": "inner" } });
        let jumps = json!([name("iifname", "==", &json!({ "set": ["lan"] })), inner]);
        assert_eq!(fate("accept", &[jumps], New), (false, true));
        let key = json!({ "concat": [{ "meta": { "key": "iifname" } }, { "meta": { "key": "oifname" } }] });
        let map = json!([[{ "concat": ["lan", "wan"] }, { "accept": null }],
                         [{ "concat": ["lan", "ppp*"] }, { "goto": { "target": "inner" } }]]);
        let vmap = json!([{ "vmap": { "key": key, "data": { "set": map } } }]);
        assert_eq!(fate("accept", &[vmap], New), (false, true));
        let known = json!({ "match": { "op": "in", "left": { "ct": { "key": "state" } },
                                       "right": ["established", "related"] } });
        let rule = json!([known, { "accept": null }]);
        for (state, accepts) in [(New, false), (Established, true), (Untracked, false)] {
            assert_eq!(fate("drop", std::slice::from_ref(&rule), state), (accepts, !accepts));
        }
        let target = json!([{ "xt": { "type": "target", "name": "REJECT" } }]);
        assert_eq!(fate("accept", &[target], New), (false, true));
        let asks = json!([{ "xt": { "type": "match", "name": "owner" } }, { "accept": null }]);
        assert_eq!(fate("drop", &[asks], New), (true, true));
    }

    /// Breaks: a rule is shown with the text of another, or interfaces that rules name are not looked at.
    #[test]
    fn rules_have_their_text() {
        let filter = filter("accept", &[json!([name("oifname", "==", &"guest".into()), { "drop": null }])]);
        let id = RuleId { chain: 0, rule: 0, element: None };
        assert_eq!((filter.text(&id), filter.chain_of(&id).as_str()), ("oifname @far drop", "inet fw f"));
        assert_eq!(filter.outputs().into_iter().collect::<Vec<_>>(), ["guest"]);
        assert!(FilterRules::parse("garbage", "").is_none());
    }
}
