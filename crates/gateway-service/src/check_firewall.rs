//! What the packet filter of this router does with what passes the gateway.
//!
//! The kernel forwards each packet twice: from its interface to a device of the gateway, and from the other
//! device to the interface by which it leaves. So rules that name both interfaces match neither time.

use super::check_legacy::legacy;
use super::config::GatewayFile;
use super::filter_rules::{FilterOutcome, FilterPacket, FilterRules, MetRules, RuleId, TrackedState};
use super::interception::tracks;
use farpace_live::doctor::{DoctorFinding, Judgement};
use farpace_live::system::{IpFamily, packet_filter, routing_rules};
use std::collections::{BTreeMap, BTreeSet};

use TrackedState::{Established, New, Untracked};

/// Types of chains whose rules judge or change packets; and those that rewrite addresses.
const FILTERS: [&str; 2] = ["filter", "route"];
/// Problems that are told at the start at most.
const MAX_NOTES: usize = 5;
/// The devices of the first gateway of a host.
const DEVICES: [&str; 2] = ["fplan0", "fpwan0"];
/// The same in rules, with any number.
const ANY_DEVICE: [&str; 2] = ["fplan*", "fpwan*"];

/// What a filter is judged for.
pub struct GatewaySides<'a> {
    pub file: &'a GatewayFile,
    /// The gateway keeps tracking of connections off the LAN side.
    pub exempts: bool,
}

/// A way through the router, and the two times that a packet is forwarded on it.
struct Way<'a> {
    input: &'a str,
    output: &'a str,
    from_lan: bool,
}

impl Way<'_> {
    /// Which of the devices the packet is written to, and read from.
    fn devices(&self) -> [usize; 2] {
        if self.from_lan { [0, 1] } else { [1, 0] }
    }

    fn unsplit(&self, state: TrackedState) -> FilterPacket<'_> {
        FilterPacket { input: self.input, output: Some(self.output), state }
    }

    fn crossings(&self, state: TrackedState, exempts: bool) -> [FilterPacket<'_>; 2] {
        let [to, from] = self.devices();
        let on_lan = if exempts { Untracked } else { state };
        let states = if self.from_lan { [on_lan, state] } else { [state, on_lan] };
        [
            FilterPacket { input: self.input, output: Some(DEVICES[to]), state: states[0] },
            FilterPacket { input: DEVICES[from], output: Some(self.output), state: states[1] },
        ]
    }

    fn shown(&self) -> String {
        format!("from {} to {}", self.input, self.output)
    }

    /// What matches the first time, in place of the interface by which packets leave.
    fn entry(&self) -> &'static str {
        ANY_DEVICE[self.devices()[0]]
    }

    fn exit(&self) -> &'static str {
        ANY_DEVICE[self.devices()[1]]
    }
}

/// Findings about the packet filter, for a gateway without a peer.
pub fn firewall(rules: &FilterRules, sides: &GatewaySides<'_>) -> Vec<DoctorFinding> {
    let GatewaySides { file, exempts } = sides;
    let mut outputs = rules.outputs();
    outputs.extend(file.lan.iter().chain(&file.wan).cloned());
    outputs.retain(|name| !DEVICES.contains(&name.as_str()));
    let mut findings = Vec::new();
    let inputs = file.lan.iter().map(|name| (name, true)).chain(file.wan.iter().map(|name| (name, false)));
    let mut reported = BTreeSet::new();
    for (input, from_lan) in inputs {
        for output in outputs.iter().filter(|output| *output != input) {
            let way = Way { input, output, from_lan };
            let lost = lost_rules(rules, &way, *exempts);
            let is_bypassed = !lost.is_empty();
            for id in lost {
                if reported.insert((id.clone(), from_lan)) {
                    findings.push(lost_finding(rules, &way, &id, *exempts));
                }
            }
            if !is_bypassed {
                findings.extend(opened(rules, &way, *exempts));
            }
            findings.extend(blocked(rules, &way, *exempts));
        }
    }
    findings.dedup();
    if findings.is_empty() {
        findings.push(DoctorFinding::ok("forward filter", "does with the gateway what it does without"));
    }
    findings
}

fn none() -> BTreeMap<RuleId, Option<RuleId>> {
    BTreeMap::new()
}

/// The rules that packets meet at a hook.
fn met(rules: &FilterRules, hook: &str, types: &[&str], packets: &[FilterPacket<'_>]) -> MetRules {
    let mut met = MetRules::default();
    for packet in packets {
        for chain in rules.at_hook(hook, types) {
            rules.outcome(chain, packet, &none(), &mut met);
        }
    }
    met
}

/// Rules that match without a gateway, and with it do not.
fn lost_rules(rules: &FilterRules, way: &Way<'_>, exempts: bool) -> Vec<RuleId> {
    let plain = [way.unsplit(New), way.unsplit(Established)];
    let crossings: Vec<_> =
        [New, Established].into_iter().flat_map(|state| way.crossings(state, exempts)).collect();
    let tracked: Vec<_> = crossings.iter().filter(|packet| packet.state != Untracked).cloned().collect();
    let places: [(&str, &[&str], &[FilterPacket<'_>]); 3] = [
        ("forward", &FILTERS, &crossings),
        ("postrouting", &FILTERS, &crossings),
        // Addresses are rewritten where connections are tracked.
        ("postrouting", &["nat"], &tracked),
    ];
    let mut lost = Vec::new();
    for (hook, types, crossings) in places {
        let (plain, split) = (met(rules, hook, types, &plain), met(rules, hook, types, crossings));
        let known: BTreeSet<_> = split
            .rules
            .keys()
            .filter(|id| !plain.rules.contains_key(id))
            .map(|id| (rules.chain_of(id), rules.signature(id)))
            .collect();
        let is_lost = |id: &RuleId| {
            !split.rules.contains_key(id)
                && rules.has_effect(id)
                && !known.contains(&(rules.chain_of(id), rules.signature(id)))
        };
        let all = plain.rules.iter();
        // What a rule leads to is lost with it.
        let is_root = |parent: &Option<RuleId>| {
            parent.as_ref().is_none_or(|parent| split.rules.contains_key(parent) && !is_lost(parent))
        };
        lost.extend(all.filter(|(id, parent)| is_lost(id) && is_root(parent)).map(|(id, _)| id.clone()));
    }
    lost
}

fn lost_finding(rules: &FilterRules, way: &Way<'_>, id: &RuleId, exempts: bool) -> DoctorFinding {
    let (text, chain) = (rules.text(id), rules.chain_of(id));
    let asks = (rules.asks_state(id) || rules.is_nat(id)) && exempts;
    // Connections are tracked on the WAN side alone.
    let (word, old, new) = match asks && way.from_lan {
        true => ("iifname", way.input, way.exit()),
        false => ("oifname", way.output, way.entry()),
    };
    let mend = match with_interface(text, word, new) {
        Some(own) => format!("nft insert rule {chain} '{own}'"),
        None => format!("add the same rule with {word} \"{new}\" in place of {old}"),
    };
    DoctorFinding::problem(
        "forward filter",
        format!("`{text}` ({chain}) does not match what passes the gateway {}", way.shown()),
        mend,
    )
}

/// A rule with another interface.
fn with_interface(text: &str, word: &str, name: &str) -> Option<String> {
    let (before, after) = text.split_once(&format!("{word} "))?;
    if text.contains(" vmap ") || after.starts_with('.') || before.ends_with(". ") {
        return None;
    }
    let rest = match after.chars().next()? {
        '"' => after.get(1..)?.split_once('"')?.1,
        '{' => after.split_once('}')?.1,
        _ => return None,
    };
    Some(format!("{before}{word} \"{name}\"{rest}"))
}

/// What all chains at the forward hook do with a packet.
fn forward(
    rules: &FilterRules,
    packet: &FilterPacket<'_>,
    skip: &BTreeMap<RuleId, Option<RuleId>>,
    met: &mut MetRules,
) -> FilterOutcome {
    let mut sum = FilterOutcome { accept: true, ..FilterOutcome::default() };
    for chain in rules.at_hook("forward", &FILTERS) {
        let outcome = rules.outcome(chain, packet, skip, met);
        sum.accept &= outcome.accept;
        sum.drop |= outcome.drop;
    }
    sum
}

/// Connections that the filter would drop without a gateway, or some of them, are admitted to it and by it.
fn opened(rules: &FilterRules, way: &Way<'_>, exempts: bool) -> Option<DoctorFinding> {
    let (plain, crossings) = (way.unsplit(New), way.crossings(New, exempts));
    let (mut of_plain, mut of_split) = (MetRules::default(), MetRules::default());
    forward(rules, &plain, &none(), &mut of_plain);
    for packet in &crossings {
        forward(rules, packet, &none(), &mut of_split);
    }
    // Rules that perhaps drop a packet either way make no difference.
    let without = forward(rules, &plain, &of_split.rules, &mut MetRules::default());
    let mut entered = MetRules::default();
    let enters = forward(rules, &crossings[0], &of_plain.rules, &mut entered);
    let leaves = forward(rules, &crossings[1], &of_plain.rules, &mut MetRules::default());
    if !without.drop || enters.drop || leaves.drop {
        return None;
    }
    let opener = entered.accepting.iter().find(|id| !of_plain.rules.contains_key(id));
    let value = match opener {
        Some(id) => format!(
            "`{}` ({}) admits connections {} that the filter drops without the gateway",
            rules.text(id),
            rules.chain_of(id),
            way.shown()
        ),
        None => {
            format!("connections {} are admitted that the filter drops without the gateway", way.shown())
        }
    };
    let mend = format!(
        "delete it: what the gateway sends on needs iifname \"{}\" oifname \"{}\" accept; write what you \
         admit {} with iifname \"{}\" oifname \"{}\"",
        way.exit(),
        way.output,
        way.shown(),
        way.input,
        way.entry()
    );
    Some(DoctorFinding::problem("forward filter", value, mend))
}

/// What the filter admits without a gateway, and drops with it.
fn blocked(rules: &FilterRules, way: &Way<'_>, exempts: bool) -> Vec<DoctorFinding> {
    let mut findings: Vec<DoctorFinding> = Vec::new();
    for state in [New, Established] {
        let plain = forward(rules, &way.unsplit(state), &none(), &mut MetRules::default());
        if !plain.accept {
            continue;
        }
        for (at, packet) in way.crossings(state, exempts).iter().enumerate() {
            let dropping = rules
                .at_hook("forward", &FILTERS)
                .find(|chain| !rules.outcome(*chain, packet, &none(), &mut MetRules::default()).accept);
            let Some(chain) = dropping else { continue };
            let chain = rules.chain_name(chain);
            let output = packet.output.unwrap_or_default();
            let value = format!(
                "{chain} drops what passes the gateway {}: iifname {}, oifname {output}",
                way.shown(),
                packet.input
            );
            let mend = match (at, state, plain.drop) {
                // New connections that are admitted come first above: here the filter admits none this way.
                (1, Established, _) if packet.state == Established => format!(
                    "nft insert rule {chain} 'iifname \"{}\" oifname \"{}\" ct state established,related \
                     accept'",
                    way.exit(),
                    way.output
                ),
                (1, ..) => format!(
                    "nft insert rule {chain} 'iifname \"{}\" oifname \"{}\" accept'",
                    way.exit(),
                    way.output
                ),
                (_, New, true) => format!(
                    "add the rules that accept {} with oifname \"{}\" in place of {}",
                    way.shown(),
                    way.entry(),
                    way.output
                ),
                (_, New, false) => format!(
                    "nft insert rule {chain} 'iifname \"{}\" oifname \"{}\" accept'",
                    way.input,
                    way.entry()
                ),
                // What belongs to connections that were admitted.
                (_, _, _) if packet.state == Untracked => format!(
                    "nft insert rule {chain} 'iifname \"{}\" oifname \"{}\" accept'",
                    way.input,
                    way.entry()
                ),
                (..) => format!(
                    "nft insert rule {chain} 'iifname \"{}\" oifname \"{}\" ct state established,related \
                     accept'",
                    way.input,
                    way.entry()
                ),
            };
            let finding = DoctorFinding::problem("forward filter", value, mend);
            if findings.iter().all(|other| other.value != finding.value) {
                findings.push(finding);
            }
        }
    }
    findings
}

/// The same for a gateway with a peer: packets are forwarded once, between the LAN and its device.
pub fn firewall_of_pair(rules: &FilterRules, file: &GatewayFile) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    for lan in &file.lan {
        for (input, output, state) in [(lan.as_str(), DEVICES[0], New), (DEVICES[0], lan, Established)] {
            let packet = FilterPacket { input, output: Some(output), state };
            let dropping = rules
                .at_hook("forward", &FILTERS)
                .find(|chain| !rules.outcome(*chain, &packet, &none(), &mut MetRules::default()).accept);
            let Some(chain) = dropping else { continue };
            let chain = rules.chain_name(chain);
            let any = |name: &str| name.replace(DEVICES[0], ANY_DEVICE[0]);
            findings.push(DoctorFinding::problem(
                "forward filter",
                format!(
                    "{chain} drops what is for the peer or comes from it: iifname {input}, oifname {output}"
                ),
                format!(
                    "nft insert rule {chain} 'iifname \"{}\" oifname \"{}\" accept'",
                    any(input),
                    any(output)
                ),
            ));
        }
    }
    if findings.is_empty() {
        findings.push(DoctorFinding::ok("forward filter", "lets pass what is for the peer"));
    }
    findings
}

/// Rules that rewrite the destination of what comes from the LAN: the kernel does not track it.
pub fn lan_nat(rules: &FilterRules, sides: &GatewaySides<'_>) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    if !sides.exempts || !sides.file.pass_marks.is_empty() {
        return findings;
    }
    for interface in &sides.file.lan {
        let (rewriting, _) = rules.before_routing(interface);
        for id in rewriting {
            findings.push(DoctorFinding::problem(
                "NAT of the LAN",
                format!(
                    "`{}` ({}) does nothing for TCP from {interface}: the gateway exempts it from tracking \
                     (notrack)",
                    rules.text(&id),
                    rules.chain_of(&id)
                ),
                PASS_MARKS,
            ));
        }
    }
    findings
}

/// What there is to say at the start: problems, the first ones of many.
pub fn firewall_notes(file: &GatewayFile) -> Vec<String> {
    let exempts = packet_filter().is_ok_and(|text| text.is_some_and(|text| tracks(&text)));
    let rules = FilterRules::of_this_host();
    let sides = GatewaySides { file, exempts };
    let mut findings = marks(rules.as_ref(), file);
    if let Some(rules) = &rules {
        findings.extend(firewall(rules, &sides));
        findings.extend(lan_nat(rules, &sides));
    }
    findings.retain(|finding| finding.judgement == Judgement::Problem);
    let mut notes: Vec<_> = findings.iter().take(MAX_NOTES).map(|finding| finding.value.clone()).collect();
    if !notes.is_empty() {
        let more = match findings.len().saturating_sub(MAX_NOTES) {
            0 => String::new(),
            more => format!("there are {more} more problems; "),
        };
        notes.push(format!("{more}`farpace gateway check` says what mends this"));
    }
    notes.extend(legacy().into_iter().map(|finding| finding.value));
    notes
}

/// What mends both.
const PASS_MARKS: &str = "mark such packets before priority raw, and set pass_marks: see \"Traffic that has \
                          to pass by the kernel\" in docs/gateway.md";

/// Rules of the routing policy that choose by marks, and come too late.
pub fn marks(rules: Option<&FilterRules>, file: &GatewayFile) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    let marking: Option<BTreeSet<RuleId>> = rules.map(|rules| {
        file.lan.iter().chain(&file.wan).flat_map(|name| rules.before_routing(name).1).collect()
    });
    for family in IpFamily::ALL {
        let Ok(text) = routing_rules(family) else { continue };
        for line in text.lines() {
            let Some((pref, rest)) = line.split_once(':') else { continue };
            let words: Vec<_> = rest.split_whitespace().collect();
            let value = |key: &str| {
                words.iter().position(|word| *word == key).and_then(|at| words.get(at + 1)).copied()
            };
            let Some(mark) = value("fwmark") else { continue };
            let is_late = pref.trim().parse::<u32>().is_ok_and(|pref| pref >= file.rule_priority);
            let skips = value("goto").is_some() || words.contains(&"not");
            let is_passed = parse_mark(mark).is_some_and(|mark| file.pass_marks.contains(&mark));
            let is_side = value("iif").is_none_or(|own| file.lan.iter().chain(&file.wan).any(|n| n == own));
            if !is_late || skips || is_passed || !is_side {
                continue;
            }
            let what = format!("rules {family:?}");
            let shown = format!("{}: {}", pref.trim(), words.join(" "));
            let said = format!(
                "`{shown}` does not see what passes the gateway: it comes behind the gateway's rules, and \
                 the gateway sends packets without marks"
            );
            findings.push(match &marking {
                Some(marking) if marking.is_empty() => DoctorFinding::note(
                    what,
                    format!("{said}; no rule of nft marks packets of these interfaces"),
                    format!("if something marks them, set pass_marks = [{mark}] in the configuration"),
                ),
                _ => DoctorFinding::problem(
                    what,
                    said,
                    format!(
                        "set pass_marks = [{mark}] in the configuration, and start the gateway again; \
                         docs/gateway.md says what NAT needs besides"
                    ),
                ),
            });
        }
    }
    findings
}

fn parse_mark(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// A filter that drops what no rule accepts.
    fn closed_filter(rules: &[Value]) -> FilterRules {
        let chain = json!({ "chain": { "family": "inet", "table": "fw", "name": "f", "type": "filter",
                                       "hook": "forward", "policy": "drop" } });
        let rule = |expr: &Value| {
            let mut rule = json!({ "rule": { "family": "inet", "table": "fw", "chain": "f", "handle": 1 } });
            rule["rule"]["expr"] = expr.clone();
            rule
        };
        let all: Vec<_> = std::iter::once(chain).chain(rules.iter().map(rule)).collect();
        FilterRules::parse(&json!({ "nftables": all }).to_string(), "").unwrap()
    }

    fn meta(key: &str, name: &str) -> Value {
        json!({ "match": { "op": "==", "left": { "meta": { "key": key } }, "right": name } })
    }

    fn established() -> Value {
        json!({ "match": { "op": "in", "left": { "ct": { "key": "state" } },
                           "right": ["established", "related"] } })
    }

    fn mends(rules: &[Value], exempts: bool) -> Vec<String> {
        let file =
            GatewayFile { lan: vec!["lan0".into()], wan: vec!["wan0".into()], ..GatewayFile::default() };
        let findings = firewall(&closed_filter(rules), &GatewaySides { file: &file, exempts });
        findings.into_iter().filter_map(|finding| finding.mend).collect()
    }

    /// Breaks: the advice for a filter that lets the LAN open connections, and the WAN none, accepts all that
    /// the gateway sends on to the LAN, though only what belongs to connections was admitted.
    #[test]
    fn answers_alone_are_admitted_where_no_others_are() {
        let accept = json!({ "accept": null });
        // From the LAN whatever it is; from the WAN what belongs to connections.
        let lan = json!([meta("iifname", "lan0"), meta("oifname", "wan0"), accept]);
        let wan = json!([meta("iifname", "wan0"), meta("oifname", "lan0"), established(), accept]);
        let advice = mends(&[lan.clone(), wan], false);
        let insert = |words: &str| format!("nft insert rule inet fw f '{words} accept'");
        let answers = "ct state established,related";
        assert!(
            advice.contains(&insert(&format!("iifname \"fplan*\" oifname \"lan0\" {answers}"))),
            "{advice:?}"
        );
        assert!(
            advice.contains(&insert(&format!("iifname \"wan0\" oifname \"fpwan*\" {answers}"))),
            "{advice:?}"
        );
        for open in ["iifname \"fplan*\" oifname \"lan0\"", "iifname \"wan0\" oifname \"fpwan*\""] {
            assert!(!advice.contains(&insert(open)), "{advice:?}");
        }
        // What the LAN sends is admitted in both states.
        assert!(advice.contains(&insert("iifname \"fpwan*\" oifname \"wan0\"")), "{advice:?}");
        // Where both may open connections, both are admitted.
        let wan = json!([meta("iifname", "wan0"), meta("oifname", "lan0"), accept]);
        let advice = mends(&[lan, wan], false);
        assert!(advice.contains(&insert("iifname \"fplan*\" oifname \"lan0\"")), "{advice:?}");
    }
}
