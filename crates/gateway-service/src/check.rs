//! What keeps traffic from the gateway, or harms it, with the commands that mend it.

use super::check_firewall::{GatewaySides, firewall, firewall_of_pair, lan_nat, marks};
use super::check_legacy::legacy;
use super::check_policy::{earlier_rules, own_traffic_alone, own_traffic_of_pair};
use super::config::GatewayFile;
use super::control;
use super::filter_rules::FilterRules;
use super::interception::{protocols, side_mtu, tracks};
use super::pair;
use super::peer_file::PeerFile;
use super::snapshot::is_here;
use anyhow::Result;
use farpace_live::doctor::DoctorFinding;
use farpace_live::system::{
    IpFamily, Offload, SystemInterface, interface_facts, offload, packet_filter, routes_of, routing_rules,
    sysctl,
};
use farpace_path::Prefix;
use farpace_tunnel::Via;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Segments that a device joins at most when it joins none.
const SINGLE: u32 = 1;
/// Traffic without a single split connection in this time, in seconds, is a finding.
const LONG: f64 = 10.0;

/// Checks a gateway with the configuration `file` and these sides. What neither says is that of the first
/// gateway that runs.
///
/// # Errors
/// A bad configuration, or nothing to check.
pub fn check(
    mut file: GatewayFile,
    lan: &[String],
    wan: &[String],
    peer: Option<&Path>,
    via: &[String],
) -> Result<Vec<DoctorFinding>> {
    let running = control::status_of_all().map(|mut all| {
        all.retain(is_here);
        all
    });
    let names = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let first = running.as_ref().ok().and_then(|all| all.first()).cloned();
    if let Some(peer) = peer {
        file.peer = Some(peer.to_owned());
        file.via = via.to_owned();
    } else if let Some(peer) = first.as_ref().map(|first| &first["peer"]).filter(|peer| peer.is_object())
        && file.peer.is_none()
        && wan.is_empty()
    {
        file.peer = peer["file"].as_str().map(PathBuf::from);
        file.via = names(&first.as_ref().map(|first| first["via"].clone()).unwrap_or_default());
    }
    for (own, said, key) in [(&mut file.lan, lan, "lan"), (&mut file.wan, wan, "wan")] {
        if !said.is_empty() {
            *own = said.to_owned();
        } else if own.is_empty()
            && let Some(first) = &first
        {
            *own = names(&first[key]);
        }
    }
    file.check()?;
    let wanted = |status: &&Value| names(&status["lan"]) == file.lan && names(&status["wan"]) == file.wan;
    let running = match running {
        Ok(all) => Ok(all.iter().find(wanted).cloned()),
        Err(error) => Err(error),
    };
    // The rules are those of the gateway that runs, whatever a file says.
    if let Ok(Some(status)) = &running {
        for (own, key) in [(&mut file.rule_priority, "rule_priority"), (&mut file.table, "table")] {
            *own = status[key].as_u64().and_then(|number| u32::try_from(number).ok()).unwrap_or(*own);
        }
        let marks = status["pass_marks"].as_array().into_iter().flatten().filter_map(Value::as_u64);
        file.pass_marks = marks.filter_map(|mark| u32::try_from(mark).ok()).collect();
    }
    Ok(match &file.peer {
        Some(path) => look_at_pair(&file, PeerFile::read(path), running),
        None => look(&file, running),
    })
}

/// All findings, in the order in which a packet meets what they are about.
fn look(file: &GatewayFile, running: Result<Option<Value>>) -> Vec<DoctorFinding> {
    let mut findings = interfaces(file);
    findings.push(tun());
    findings.extend(forwarding());
    let running = match running {
        Ok(running) => running,
        Err(error) => {
            findings.push(DoctorFinding::problem(
                "gateway",
                format!("{error:#}"),
                "see its messages, and start it again",
            ));
            None
        }
    };
    findings.extend(gateway(file, running.as_ref()));
    findings.extend(rules(file, running.is_some()));
    findings.extend(earlier_rules(file, sides(file).map(|(_, name)| name), &[]));
    findings.extend(own_traffic_alone(file));
    findings.extend(routes(file));
    findings.extend(reverse_path(file));
    findings.extend(filter(file, running.as_ref()));
    findings.extend(legacy());
    findings.extend(mtu(file, running.as_ref()));
    findings.extend(offloads(file));
    findings
}

/// The same for a gateway with a peer.
fn look_at_pair(
    file: &GatewayFile,
    peer: Result<PeerFile>,
    running: Result<Option<Value>>,
) -> Vec<DoctorFinding> {
    let mut findings = interfaces(file);
    findings.push(tun());
    findings.extend(forwarding());
    let running = running.unwrap_or_else(|error| {
        let mend = "see its messages, and start it again";
        findings.push(DoctorFinding::problem("gateway", format!("{error:#}"), mend));
        None
    });
    findings.extend(gateway(file, running.as_ref()));
    let peer = match peer {
        Ok(peer) => peer,
        Err(error) => {
            let mend = "`farpace gateway keys` makes the files of both sites";
            findings.push(DoctorFinding::problem("peer file", format!("{error:#}"), mend));
            return findings;
        }
    };
    let value = format!("{} at {}, {} paths", peer.peer, peer.site, peer.paths.len());
    findings.push(DoctorFinding::ok("peer file", value));
    // While the peer does not answer, no rule leads to it.
    let caught = running.as_ref().filter(|status| status["peer"]["caught"] == true);
    findings.extend(pair_rules(file, &peer, caught.is_some()));
    findings.extend(earlier_rules(file, file.lan.iter(), &peer.peer_prefixes));
    if let Some(device) = caught.and_then(|status| status["devices"][0].as_str()) {
        let strict = !strict_filters(std::iter::once(&device.to_owned())).is_empty();
        findings.extend(own_traffic_of_pair(file, &peer, device, strict));
    }
    findings.extend(match &running {
        Some(status) => running_paths(file, status),
        None => probed_paths(file, &peer),
    });
    findings.extend(links_reverse_path(file));
    findings
        .extend(FilterRules::of_this_host().map(|rules| firewall_of_pair(&rules, file)).unwrap_or_default());
    findings.extend(legacy());
    findings.extend(offloads(file));
    findings
}

/// The rules that lead to the gateway, and networks of the site that have no route.
fn pair_rules(file: &GatewayFile, peer: &PeerFile, is_running: bool) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    for family in IpFamily::ALL {
        let is_v4 = family == IpFamily::V4;
        let of_family = |prefixes: &[Prefix]| -> Vec<Prefix> {
            prefixes.iter().copied().filter(|prefix| prefix.net().is_ipv4() == is_v4).collect()
        };
        let (theirs, ours) = (of_family(&peer.peer_prefixes), of_family(&peer.prefixes));
        let Ok(text) = routing_rules(family) else { continue };
        let what = format!("rules {family:?}");
        if is_running && !theirs.is_empty() {
            let is_there = |interface: &str, prefix: &Prefix| {
                let to = if prefix.bits() == 0 { String::new() } else { format!("to {prefix} ") };
                text.lines().any(|line| {
                    line.contains(&format!("{to}iif {interface} "))
                        && line.trim_end().ends_with(&format!("lookup {}", file.table))
                })
            };
            let missing: Vec<_> = file
                .lan
                .iter()
                .flat_map(|interface| theirs.iter().map(move |prefix| (interface, prefix)))
                .filter(|(interface, prefix)| !is_there(interface, prefix))
                .map(|(interface, prefix)| format!("{prefix} from {interface}"))
                .collect();
            findings.push(match missing.is_empty() {
                true => DoctorFinding::ok(what, "lead to the gateway"),
                false => DoctorFinding::problem(
                    what,
                    format!("gone: {}", missing.join(", ")),
                    "start the gateway again",
                ),
            });
        }
        // What comes from the peer is routed by the main table.
        let Ok(routes) = routes_of(family, "main") else { continue };
        for prefix in ours.iter().filter(|prefix| prefix.bits() > 0) {
            let covers = |line: &str| {
                let word = line.split_whitespace().next().unwrap_or_default();
                let is_wider = |route: Prefix| route.bits() <= prefix.bits() && route.contains(prefix.net());
                word == "default" || word.parse().is_ok_and(is_wider)
            };
            let is_inside = |line: &str| {
                let word = line.split_whitespace().next().unwrap_or_default();
                word.parse().is_ok_and(|route: Prefix| prefix.contains(route.net()))
            };
            if !routes.lines().any(|line| covers(line) || is_inside(line)) {
                findings.push(DoctorFinding::problem(
                    format!("routes {family:?}"),
                    format!("{prefix} is behind this site, and has no route"),
                    format!("ip route add {prefix} via ROUTER dev {}", file.lan.join(" or ")),
                ));
            }
        }
    }
    findings
}

/// The paths of a gateway that runs.
fn running_paths(file: &GatewayFile, status: &Value) -> Vec<DoctorFinding> {
    let peer = &status["peer"];
    let mut findings = Vec::new();
    for (number, path) in (1..).zip(peer["paths"].as_array().into_iter().flatten()) {
        let what = format!("path {number} via {}", path["via"].as_str().unwrap_or("?"));
        let rtt = path["rtt_ms"].as_f64().map_or(String::new(), |rtt| format!(", round trip {rtt:.1} ms"));
        let mtu = path["mtu_bytes"].as_u64().unwrap_or(0);
        findings.push(match (path["up"] == true, path["proven"] == true) {
            (true, _) => DoctorFinding::ok(what, format!("up, packets of {mtu} B{rtt}")),
            (false, true) => DoctorFinding::problem(
                what,
                "the peer was heard, and does not answer now",
                "see the link: `ip -s link`, `ip route`; a firewall must let its UDP port pass",
            ),
            (false, false) => match path["endpoint_error"].as_str() {
                Some(error) => DoctorFinding::problem(
                    what,
                    error,
                    "it is looked for again and again; say an address as the endpoint, or mend the resolver",
                ),
                None => DoctorFinding::problem(what, "the peer was not heard yet", UNHEARD),
            },
        });
    }
    let foreign = peer["packets"]["foreign"].as_u64().unwrap_or(0);
    if foreign > 0 {
        findings.push(DoctorFinding::note(
            "addresses",
            format!(
                "{foreign} packets were not from a network of one site to one of the other, and were dropped"
            ),
            "name all networks of both sites in both files: prefixes and peer_prefixes",
        ));
    }
    let tunnel = status["mtu_bytes"]["wan"].as_u64().unwrap_or(0);
    if let Ok(lan) = side_mtu(&file.lan) {
        findings.push(DoctorFinding::ok("MTU", format!("{lan} B on the LAN, {tunnel} B inside the tunnel")));
    }
    findings
}

/// The paths, tried by a handshake.
fn probed_paths(file: &GatewayFile, peer: &PeerFile) -> Vec<DoctorFinding> {
    let found = match pair::probe(file, peer) {
        Ok(found) => found,
        Err(error) => {
            return vec![DoctorFinding::problem("via", format!("{error:#}"), "see --via and --peer")];
        }
    };
    let finding = |(what, found): (String, Result<String>)| match found {
        Ok(said) => DoctorFinding::ok(what, said),
        Err(error) => {
            let text = format!("{error:#}");
            let mend = match text.contains("no route") {
                true => {
                    "ip route add default via GATEWAY dev LINK metric 900: each link needs a route of its own"
                }
                false => UNHEARD,
            };
            DoctorFinding::problem(what, text, mend)
        }
    };
    found.into_iter().map(finding).collect()
}

/// What to do about a peer that does not answer.
const UNHEARD: &str = "start the gateway there; its firewall must let the UDP port pass; both files must be \
                       of one `farpace gateway keys`";

/// Answers of the peer come by links that are not those of the default route: a strict filter drops them.
fn links_reverse_path(file: &GatewayFile) -> Vec<DoctorFinding> {
    let links = file.links().unwrap_or_default();
    let names: Vec<_> = links
        .iter()
        .filter_map(|via| match via {
            Via::Interface(name) => Some(name.clone()),
            Via::Address(_) => via.bind().ok()?.interface,
        })
        .collect();
    if names.len() < 2 {
        return Vec::new();
    }
    let strict = strict_filters(names.iter());
    vec![match strict.first() {
        None => DoctorFinding::ok("rp_filter", "not strict on the links"),
        Some(name) => DoctorFinding::problem(
            "rp_filter",
            format!(
                "strict on {}: what comes by a link without the best route is dropped",
                strict.join(", ")
            ),
            format!("sysctl -w net.ipv4.conf.{name}.rp_filter=2"),
        ),
    }]
}

fn interfaces(file: &GatewayFile) -> Vec<DoctorFinding> {
    let look = |(side, name): (&str, &String)| {
        let what = format!("{side} {name}");
        match interface_facts(&SystemInterface::here(name)) {
            Err(_) => DoctorFinding::problem(what, "there is no such interface", "`ip link` lists them"),
            Ok(facts) if !is_up(name) => DoctorFinding::problem(
                what,
                format!("down, MTU {} B", facts.mtu),
                format!("ip link set {name} up"),
            ),
            Ok(facts) => DoctorFinding::ok(what, format!("up, MTU {} B", facts.mtu)),
        }
    };
    sides(file).map(look).collect()
}

fn sides(file: &GatewayFile) -> impl Iterator<Item = (&'static str, &String)> + Clone {
    file.lan.iter().map(|name| ("lan", name)).chain(file.wan.iter().map(|name| ("wan", name)))
}

fn is_up(name: &str) -> bool {
    let flags = std::fs::read_to_string(format!("/sys/class/net/{name}/flags")).unwrap_or_default();
    let flags = flags.trim().trim_start_matches("0x");
    // sysfs may show another namespace than that of this process; what it does not know counts as up.
    u32::from_str_radix(flags, 16).map_or(true, |flags| flags & 1 == 1)
}

fn tun() -> DoctorFinding {
    match std::fs::metadata("/dev/net/tun") {
        Ok(_) => DoctorFinding::ok("TUN", "/dev/net/tun"),
        Err(error) => DoctorFinding::problem("TUN", format!("/dev/net/tun: {error}"), "modprobe tun"),
    }
}

fn forwarding() -> Vec<DoctorFinding> {
    let names = [("IPv4", "net.ipv4.ip_forward"), ("IPv6", "net.ipv6.conf.all.forwarding")];
    names
        .into_iter()
        .map(|(family, name)| {
            let what = format!("{family} forwarding");
            match sysctl::read(name).as_deref() {
                Ok("0") if family == "IPv4" => {
                    DoctorFinding::problem(what, "off: this host is no router", format!("sysctl -w {name}=1"))
                }
                Ok("0") => {
                    DoctorFinding::note(what, "off: IPv6 does not pass", format!("sysctl -w {name}=1"))
                }
                Ok(_) => DoctorFinding::ok(what, "on"),
                Err(_) => DoctorFinding::ok(what, "this host has none"),
            }
        })
        .collect()
}

/// The gateway itself: whether it runs, and what comes to it.
fn gateway(file: &GatewayFile, running: Option<&Value>) -> Vec<DoctorFinding> {
    let far = match &file.peer {
        Some(peer) => {
            let via: String = file.via.iter().map(|link| format!(" --via {link}")).collect();
            format!("--peer {}{via}", peer.display())
        }
        None => format!("--wan {}", file.wan.join(" --wan ")),
    };
    let start = format!("farpace gateway up --lan {} {far}", file.lan.join(" --lan "));
    let Some(status) = running else {
        return vec![DoctorFinding::note("gateway", "none runs between these interfaces", start)];
    };
    let (totals, uptime) = (&status["totals"], status["uptime_s"].as_f64().unwrap_or(0.0));
    let count = |value: &Value| value.as_u64().unwrap_or(0);
    let passed: u64 = totals["passed"].as_object().into_iter().flatten().map(|(_, n)| count(n)).sum();
    let (split, packets) = (count(&totals["split"]), count(&totals["packets"]["passed"]));
    let mut findings = vec![DoctorFinding::ok(
        "gateway",
        format!("process {}, {uptime:.0} s, {split} connections split, {passed} passed", status["pid"]),
    )];
    if split + passed == 0 && uptime > LONG {
        let value = match packets {
            0 => "nothing was caught so far",
            _ => "packets were caught, but no connection was opened",
        };
        let mend =
            "open a connection through this router, and look again; if nothing comes, it does not pass here";
        findings.push(DoctorFinding::note("caught", value, mend));
    } else if split + passed > 0 {
        findings.push(DoctorFinding::ok("caught", "connections are caught"));
    }
    let asymmetric = count(&totals["asymmetric"]);
    if asymmetric > 0 {
        findings.push(DoctorFinding::problem(
            "asymmetric routes",
            format!(
                "{asymmetric} connections: answers reach the LAN by another router, and nothing is split"
            ),
            "route both directions through this host, or name all interfaces of the link with --wan",
        ));
    }
    if count(&totals["passed"]["limit"]) > 0 {
        findings.push(DoctorFinding::note(
            "limits",
            format!("{} connections passed because a limit was reached", totals["passed"]["limit"]),
            "raise memory, max_connections or max_half_open in the configuration",
        ));
    }
    findings
}

/// The rules that lead to the gateway, and others before them.
fn rules(file: &GatewayFile, is_running: bool) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    for family in IpFamily::ALL {
        let what = format!("rules {family:?}");
        let Ok(text) = routing_rules(family) else { continue };
        if is_running {
            let missing: Vec<_> = sides(file)
                .flat_map(|(side, name)| protocols(family).map(|protocol| (side, name, protocol)))
                .filter(|(side, name, protocol)| {
                    let table = file.table + u32::from(*side == "wan");
                    let is_ours = |line: &str| {
                        line.contains(&format!("iif {name} "))
                            && line.contains(&format!("ipproto {protocol} "))
                            && line.trim_end().ends_with(&format!("lookup {table}"))
                    };
                    !text.lines().any(is_ours)
                })
                .map(|(_, name, protocol)| format!("{protocol} of {name}"))
                .collect();
            let has_no_route = |table: &u32| {
                routes_of(family, &table.to_string()).is_ok_and(|text| !text.contains("dev fp"))
            };
            let tables = [file.table, file.table + 1];
            let routeless: Vec<_> = tables.iter().filter(|table| has_no_route(table)).collect();
            if let Some(table) = routeless.first() {
                findings.push(DoctorFinding::problem(
                    what.clone(),
                    format!("table {table} has no route to the gateway: nothing is caught"),
                    "set its devices up (`ip link set fplan0 up`, and fpwan0); if that does not help, start \
                     the gateway again",
                ));
            } else if missing.is_empty() {
                findings.push(DoctorFinding::ok(what.clone(), "lead to the gateway"));
            } else {
                let value = format!("gone: {}", missing.join(", "));
                findings.push(DoctorFinding::problem(what.clone(), value, "start the gateway again"));
            }
        }
        // Rules of others that look at the interfaces of the gateway see its devices instead, behind it.
        for (_, name) in sides(file) {
            let of_others = text.lines().find(|line| {
                let table = |table: u32| line.contains(&format!("lookup {table}"));
                line.contains(&format!("iif {name} ")) && !table(file.table) && !table(file.table + 1)
            });
            if let Some(line) = of_others {
                findings.push(DoctorFinding::note(
                    what.clone(),
                    format!("`{}` does not match what the gateway sends", line.trim()),
                    "add the same rule for fpwan0 in place of a LAN interface, for fplan0 of a WAN interface",
                ));
            }
        }
    }
    findings
}

/// Default routes that lead past the WAN side.
fn routes(file: &GatewayFile) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    for family in IpFamily::ALL {
        let what = format!("routes {family:?}");
        let Ok(text) = routes_of(family, "main") else { continue };
        let defaults: Vec<_> = text.lines().filter(|line| line.starts_with("default")).collect();
        let device =
            |line: &str| line.split_whitespace().skip_while(|word| *word != "dev").nth(1).map(str::to_owned);
        let others: Vec<_> =
            defaults.iter().filter_map(|line| device(line)).filter(|name| !file.wan.contains(name)).collect();
        if let Some(other) = others.first() {
            let value = format!("the default route leaves by {other}, which is not of the WAN side");
            findings.push(DoctorFinding::note(what, value, format!("name it, too: --wan {other}")));
        } else if !defaults.is_empty() {
            findings.push(DoctorFinding::ok(what, "the default route is on the WAN side"));
        }
    }
    findings
}

/// Strict reverse-path filters work with the rules of both sides.
fn reverse_path(file: &GatewayFile) -> Vec<DoctorFinding> {
    let named = strict_filters(sides(file).map(|(_, name)| name));
    let value = match named.is_empty() {
        true => "not strict".to_owned(),
        false => format!("strict on {}: works, as both sides have rules", named.join(", ")),
    };
    vec![DoctorFinding::ok("rp_filter", value)]
}

/// Of these interfaces, those that drop packets from where they would not send to.
fn strict_filters<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    let all = sysctl::read("net.ipv4.conf.all.rp_filter").unwrap_or_default();
    let is_strict = |name: &&String| {
        let own = sysctl::read(&format!("net.ipv4.conf.{}.rp_filter", name.replace('.', "/")));
        own.is_ok_and(|own| own == "1" || (all == "1" && own != "2"))
    };
    names.filter(is_strict).cloned().collect()
}

/// NAT, connection tracking, and filters that know interfaces by name.
fn filter(file: &GatewayFile, running: Option<&Value>) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    let text = match packet_filter() {
        Ok(Some(text)) => text,
        Ok(None) => {
            let mend = "apt install nftables";
            if tracks("") {
                findings.push(DoctorFinding::problem(
                    "NAT",
                    "this host tracks connections, and nft is missing",
                    mend,
                ));
            } else {
                findings.push(DoctorFinding::note("NAT", "cannot tell: nft is missing", mend));
            }
            return findings;
        }
        Err(error) => {
            findings.push(DoctorFinding::note("NAT", format!("cannot tell: {error}"), "run it as root"));
            return findings;
        }
    };
    let exempt = text.contains("table inet farpace_");
    match (tracks(&text), exempt, running.is_some()) {
        (false, ..) => findings.push(DoctorFinding::ok("NAT", "none, and no tracking of connections")),
        (true, true, _) => {
            findings.push(DoctorFinding::ok("NAT", "tracks connections on the WAN side alone (notrack)"))
        }
        (true, false, false) => {
            findings.push(DoctorFinding::ok("NAT", "tracks connections; the gateway exempts the LAN side"));
        }
        (true, false, true) => findings.push(DoctorFinding::problem(
            "NAT",
            "connections are tracked on both sides: addresses are not rewritten",
            "start the gateway again: the filter was loaded after it",
        )),
    }
    let rules = FilterRules::of_this_host();
    match &rules {
        Some(rules) => {
            let sides = GatewaySides { file, exempts: tracks(&text) };
            findings.extend(firewall(rules, &sides));
            findings.extend(lan_nat(rules, &sides));
        }
        None => findings.push(DoctorFinding::note(
            "forward filter",
            "cannot tell: this nft does not write JSON",
            "see \"Firewalls\" in docs/gateway.md",
        )),
    }
    findings.extend(marks(rules.as_ref(), file));
    findings
}

fn mtu(file: &GatewayFile, running: Option<&Value>) -> Vec<DoctorFinding> {
    let used = running.map(|status| &status["mtu_bytes"]);
    if let Some((lan, wan)) = used.and_then(|used| used["lan"].as_u64().zip(used["wan"].as_u64())) {
        let least = lan.min(wan);
        let value =
            format!("{lan} B and {wan} B in the gateway: segments of split connections fit {least} B");
        return vec![DoctorFinding::ok("MTU", value)];
    }
    let (Ok(lan), Ok(wan)) = (side_mtu(&file.lan), side_mtu(&file.wan)) else { return Vec::new() };
    vec![if lan == wan {
        DoctorFinding::ok("MTU", format!("{lan} B on both sides"))
    } else {
        let least = lan.min(wan);
        DoctorFinding::ok("MTU", format!("{lan} B and {wan} B: segments of split connections fit {least} B"))
    }]
}

/// Receive offload joins segments before they come to the gateway: without it each costs a call.
fn offloads(file: &GatewayFile) -> Vec<DoctorFinding> {
    let look = |(_, name): (&str, &String)| {
        let what = format!("offloads {name}");
        let facts = interface_facts(&SystemInterface::here(name)).ok()?;
        if !offload(name, Offload::Gro).ok()? {
            let value = "GRO is off: each segment is read alone";
            return Some(DoctorFinding::note(what, value, format!("ethtool -K {name} gro on")));
        }
        if facts.super_segment <= SINGLE || !offload(name, Offload::Gso).ok()? {
            let value = "GSO is off: each segment is sent alone";
            return Some(DoctorFinding::note(what, value, format!("ethtool -K {name} gso on tso on")));
        }
        Some(DoctorFinding::ok(what, "GRO and GSO"))
    };
    sides(file).filter_map(look).collect()
}
