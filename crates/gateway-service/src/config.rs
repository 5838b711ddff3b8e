//! The configuration file of a gateway, and what the command line says in its place.

use super::capture::{CaptureConfig, DEFAULT_PCAP_LIMIT};
use super::shards::MAX_THREADS;
use anyhow::{Context, Result, anyhow, bail};
use farpace_gateway::limits::{
    DEFAULT_BUFFER, DEFAULT_MIN_RTT, MAX_BUFFER, MAX_CONNECTIONS, MAX_HALF_OPEN, MAX_RULES, MIN_BUFFER,
    MIN_MEMORY,
};
use farpace_gateway::{Action, GatewayConfig, MAX_CONTROL_GROUP, Policy, PolicyTable};
use farpace_live::device::is_interface_name;
use farpace_live::{MAX_TUNNEL_PATHS, default_memory};
use farpace_path::Prefix;
use farpace_tcp::config::{AckControlMode, Config, Congestion, Profile, Settings};
use farpace_tunnel::Via;
use farpace_units::{ByteCount, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Ended connections whose records are kept by default, and at most. Each takes less than 1 kB.
const DEFAULT_RECORDS: usize = 10_000;
const MAX_RECORDS: usize = 100_000;
/// Interfaces of one side at most.
const MAX_INTERFACES: usize = 32;
/// Marks of packets that pass by the kernel at most: each is a routing rule.
const MAX_PASS_MARKS: usize = 16;
/// Length of a file at most, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// What is done with connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ActionWord {
    /// Split, unless the round trip of the handshake is below min_rtt.
    #[default]
    Auto,
    /// Split, however short the path is.
    Split,
    /// Passed unchanged.
    Pass,
}

impl From<ActionWord> for Action {
    fn from(word: ActionWord) -> Action {
        match word {
            ActionWord::Auto => Action::Auto,
            ActionWord::Split => Action::Split,
            ActionWord::Pass => Action::Pass,
        }
    }
}

/// What becomes of traffic for the networks behind a peer that does not answer on any path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PeerDown {
    /// After 2 s it passes by the kernel, unencrypted, if the kernel has a route.
    #[default]
    Pass,
    /// It is dropped until the peer answers.
    Hold,
}

/// The configuration of `farpace gateway`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GatewayFile {
    /// Interfaces to the hosts whose TCP is not to suffer from the far link.
    pub lan: Vec<String>,
    /// Interfaces to the far link; none for a gateway with a peer.
    pub wan: Vec<String>,
    /// File of the peer, which `farpace gateway keys` makes: the gateway is one of a pair, and what is for
    /// the networks behind the peer goes through the tunnel between both (default: no peer).
    pub peer: Option<PathBuf>,
    /// Links of the paths to the peer, as names or addresses of interfaces, in the order of the paths; one is
    /// for all of them (default: the routes decide).
    pub via: Vec<String>,
    /// What becomes of traffic for the networks behind the peer while it does not answer (default: pass).
    pub peer_down: PeerDown,
    /// What is done with connections that no policy names (default: auto).
    pub action: ActionWord,
    /// With action auto, connections with a shorter handshake pass (default: 5 ms).
    pub min_rtt: Span,
    /// Payload of each connection leaves on the WAN leg at this rate at most (default: no limit).
    pub rate: Option<Rate>,
    /// Bytes at most that a leg keeps in each direction (default: 64 MiB).
    pub buffer: ByteCount,
    /// Memory of all connections (default: a quarter of that of the host).
    pub memory: Option<ByteCount>,
    /// Threads that the connections are spread over, 1 to 64; 1 with a peer (default: one for each
    /// processor).
    pub threads: Option<usize>,
    /// Split connections at most; further ones pass (default: 262144).
    pub max_connections: usize,
    /// Connections at most whose handshake is not complete; further ones pass (default: 16384).
    pub max_half_open: usize,
    /// Share of the connections that could be split and pass unsplit, 0 to 0.5: the control group. As many of
    /// the split ones are compared with them, and `status` shows what splitting gains (default: 0).
    pub control_group: f64,
    /// Connections that have ended whose records are kept for `status --records`, 0 to 100000, the latest
    /// (default: 10000).
    pub records: usize,
    /// A line of JSON for each connection that has ended is appended to this file; SIGHUP opens it again
    /// (default: no log).
    pub log: Option<PathBuf>,
    /// TCP of the LAN leg (default: profile linux).
    pub lan_tcp: Settings,
    /// TCP of the WAN leg (default: profile farpace, ack_control safe).
    pub wan_tcp: Settings,
    /// Metrics in Prometheus' format are served at this address, at /metrics (default: not at all).
    pub metrics: Option<SocketAddr>,
    /// The dashboard for browsers is served at this address (default: not at all). At an address other than
    /// one of this host alone it asks for a token: see `farpace gateway up --help`.
    pub web: Option<SocketAddr>,
    /// Packets of both sides are captured to files in this directory (default: not at all).
    pub pcap: Option<PathBuf>,
    /// Bytes that captures keep of each packet, 96 to 65549 (default: its headers).
    pub snaplen: Option<u32>,
    /// Bytes of all captures in the directory at most; the oldest ones are removed (default: 1 GiB).
    pub pcap_limit: ByteCount,
    /// Priority of the routing rules of the LAN side; the WAN side has the next one (default: 100).
    pub rule_priority: u32,
    /// Routing table of the LAN side; the WAN side has the next one (default: 7710).
    pub table: u32,
    /// Firewall marks of packets that pass by the kernel, as if there were no gateway: they are not caught,
    /// and connection tracking sees them if they are marked before it (default: none).
    pub pass_marks: Vec<u32>,
    /// What differs for hosts of the WAN side with some prefix; the longest prefix decides.
    #[serde(rename = "policy")]
    pub policies: Vec<PolicyEntry>,
}

/// What differs for hosts with some prefix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyEntry {
    /// Addresses of hosts of the WAN side, as in "192.0.2.0/24".
    pub prefix: Prefix,
    /// What is done with their connections.
    pub action: Option<ActionWord>,
    /// With action auto, connections with a shorter handshake pass.
    pub min_rtt: Option<Span>,
    /// Payload of each connection leaves on the WAN leg at this rate at most.
    pub rate: Option<Rate>,
    /// Bytes at most that a leg keeps in each direction.
    pub buffer: Option<ByteCount>,
    /// Profile of the WAN leg.
    pub profile: Option<Profile>,
    /// Congestion control of the WAN leg.
    pub congestion: Option<Congestion>,
}

impl Default for GatewayFile {
    fn default() -> Self {
        GatewayFile {
            lan: Vec::new(),
            wan: Vec::new(),
            peer: None,
            via: Vec::new(),
            peer_down: PeerDown::default(),
            action: ActionWord::default(),
            min_rtt: DEFAULT_MIN_RTT,
            rate: None,
            buffer: DEFAULT_BUFFER,
            memory: None,
            threads: None,
            max_connections: MAX_CONNECTIONS,
            max_half_open: MAX_HALF_OPEN,
            control_group: 0.0,
            records: DEFAULT_RECORDS,
            log: None,
            lan_tcp: Settings::default(),
            wan_tcp: Settings::default(),
            metrics: None,
            web: None,
            pcap: None,
            snaplen: None,
            pcap_limit: DEFAULT_PCAP_LIMIT,
            rule_priority: 100,
            table: 7710,
            pass_marks: Vec::new(),
            policies: Vec::new(),
        }
    }
}

impl GatewayFile {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or says something that it cannot say, with the line.
    pub fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let len = std::fs::metadata(path).with_context(|| format!("cannot read {shown}"))?.len();
        if len > MAX_FILE {
            bail!("{shown} has {len} bytes; a configuration has at most {MAX_FILE}");
        }
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
        GatewayFile::parse(&text).with_context(|| format!("{shown}"))
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// As [`read`](GatewayFile::read).
    pub fn parse(text: &str) -> Result<Self> {
        Ok(toml::from_str(text)?)
    }

    /// Checks what no single value says.
    ///
    /// # Errors
    /// What is wrong, and what to do about it.
    pub fn check(&self) -> Result<()> {
        if self.peer.is_some() && !self.wan.is_empty() {
            bail!("a gateway with a peer has no wan: name its links with --via IF, or via = [\"IF\"]");
        }
        if self.peer.is_none() && !self.via.is_empty() {
            bail!("via is for a gateway with a peer: say --peer FILE, too, or --wan for one that is alone");
        }
        if self.via.len() > MAX_TUNNEL_PATHS {
            bail!("{} links in via: at most {MAX_TUNNEL_PATHS}", self.via.len());
        }
        self.links()?;
        for (side, names) in [("lan", &self.lan), ("wan", &self.wan)] {
            if side == "wan" && self.peer.is_some() {
                continue;
            }
            if names.is_empty() {
                bail!("no interface of the {side} side: say --{side} IF, or {side} = [\"IF\"] in a file");
            }
            if names.len() > MAX_INTERFACES {
                bail!("{} interfaces of the {side} side: at most {MAX_INTERFACES}", names.len());
            }
            for name in names {
                if !is_interface_name(name) {
                    bail!("`{name}` cannot be the name of an interface");
                }
                if names.iter().filter(|other| *other == name).count() > 1 {
                    bail!("`{name}` is named twice on the {side} side");
                }
            }
        }
        if let Some(both) = self.lan.iter().find(|name| self.wan.contains(name)) {
            bail!(
                "`{both}` is on both sides: a connection enters a gateway by one and leaves it by the other"
            );
        }
        let buffers =
            std::iter::once(self.buffer).chain(self.policies.iter().filter_map(|entry| entry.buffer));
        for buffer in buffers {
            if buffer < MIN_BUFFER || buffer > MAX_BUFFER {
                bail!("buffer is {buffer}: at least {MIN_BUFFER}, at most {MAX_BUFFER}");
            }
        }
        if self.memory.is_some_and(|memory| memory < MIN_MEMORY) {
            bail!("memory must be at least {MIN_MEMORY}");
        }
        if self.threads.is_some_and(|threads| !(1..=MAX_THREADS).contains(&threads)) {
            bail!("threads must be 1 to {MAX_THREADS}");
        }
        if self.peer.is_some() && self.threads.is_some_and(|threads| threads > 1) {
            bail!("a gateway with a peer has one thread: all paths are in one order; leave threads out");
        }
        if self.pass_marks.len() > MAX_PASS_MARKS || self.pass_marks.contains(&0) {
            bail!("pass_marks must be at most {MAX_PASS_MARKS} marks, none of them 0");
        }
        if self.peer.is_some() && !self.pass_marks.is_empty() {
            bail!(
                "pass_marks is for a gateway without a peer: give rules of your own a lower priority number"
            );
        }
        for (at, entry) in self.policies.iter().enumerate() {
            if self.policies[..at].iter().any(|other| other.prefix == entry.prefix) {
                bail!("two [[policy]] are for {}: put what they say into one", entry.prefix);
            }
        }
        if self.policies.len() > MAX_RULES {
            bail!("{} policies: at most {MAX_RULES}", self.policies.len());
        }
        if self.max_connections == 0 || self.max_connections > MAX_CONNECTIONS {
            bail!("max_connections must be 1 to {MAX_CONNECTIONS}");
        }
        if self.max_half_open == 0 || self.max_half_open > MAX_HALF_OPEN {
            bail!("max_half_open must be 1 to {MAX_HALF_OPEN}");
        }
        if !(0.0..=MAX_CONTROL_GROUP).contains(&self.control_group) {
            bail!("control_group must be 0 to {MAX_CONTROL_GROUP}: a share of the connections, as in 0.05");
        }
        if self.peer.is_some() && self.control_group > 0.0 {
            bail!("control_group is for a gateway without a peer: the peer would split what this one passes");
        }
        if self.records > MAX_RECORDS {
            bail!("records must be 0 to {MAX_RECORDS}");
        }
        let zero = |rate: &Option<Rate>| rate.is_some_and(|rate| rate.bits_per_sec() == 0);
        if zero(&self.rate) || self.policies.iter().any(|entry| zero(&entry.rate)) {
            bail!("rate must be above 0 bit/s");
        }
        if self.pcap.is_none() && self.snaplen.is_some() {
            bail!("snaplen is for captures: say --pcap DIR, too, or pcap = \"DIR\" in a file");
        }
        self.capture().map_or(Ok(()), |capture| capture.check())?;
        if !(1..=32_000).contains(&self.rule_priority) {
            bail!("rule_priority must be 1 to 32000: before the table `main`, behind `local`");
        }
        if !(1..=250).contains(&self.table) && !(256..=4_000_000_000).contains(&self.table) {
            bail!("table must be 1 to 250, or at least 256: others belong to the system");
        }
        Ok(())
    }

    /// What is captured from the start on.
    pub fn capture(&self) -> Option<CaptureConfig> {
        let (snaplen, limit) = (self.snaplen, self.pcap_limit);
        self.pcap.clone().map(|folder| CaptureConfig { folder, snaplen, limit })
    }

    /// Threads of the gateway: without a word one for each processor that this process may use.
    pub fn threads(&self) -> usize {
        let processors = || std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        match self.peer {
            Some(_) => 1,
            None => self.threads.unwrap_or_else(processors),
        }
    }

    /// The links of the paths to the peer.
    ///
    /// # Errors
    /// A word that is neither an interface nor an address.
    pub fn links(&self) -> Result<Vec<Via>> {
        self.via.iter().map(|word| word.parse().map_err(|error: String| anyhow!("via: {error}"))).collect()
    }

    /// The gateway that this means, between sides with these MTUs.
    ///
    /// # Errors
    /// TCP settings that contradict each other.
    pub fn gateway(&self, mtus: [u16; 2]) -> Result<GatewayConfig> {
        let lan = Arc::new(self.lan_config()?);
        let wan = Arc::new(self.wan_config(None)?);
        let default = Policy {
            action: self.action.into(),
            wan,
            lan,
            rate: self.rate,
            min_rtt: self.min_rtt,
            buffer: self.buffer,
        };
        let rules = self.policies.iter().map(|entry| {
            let wan = match (entry.profile, entry.congestion) {
                (None, None) => default.wan.clone(),
                _ => Arc::new(
                    self.wan_config(Some(entry)).with_context(|| format!("policy for {}", entry.prefix))?,
                ),
            };
            let policy = Policy {
                action: entry.action.unwrap_or(self.action).into(),
                wan,
                lan: default.lan.clone(),
                rate: entry.rate.or(self.rate),
                min_rtt: entry.min_rtt.unwrap_or(self.min_rtt),
                buffer: entry.buffer.unwrap_or(self.buffer),
            };
            Ok((entry.prefix, policy))
        });
        let rules = rules.collect::<Result<Vec<_>>>()?;
        Ok(GatewayConfig {
            policies: PolicyTable::new(rules, default),
            lan_mtu: mtus[0],
            wan_mtu: mtus[1],
            super_segment: 65_535,
            memory: self.memory.unwrap_or_else(default_memory),
            max_connections: self.max_connections,
            max_half_open: self.max_half_open,
            control_group: self.control_group,
            keep_ended: self.records > 0 || self.log.is_some(),
        })
    }

    fn lan_config(&self) -> Result<Config> {
        let settings =
            Settings { profile: self.lan_tcp.profile.or(Some(Profile::Linux)), ..self.lan_tcp.clone() };
        settings.resolve().context("lan_tcp")
    }

    fn wan_config(&self, entry: Option<&PolicyEntry>) -> Result<Config> {
        let own = &self.wan_tcp;
        let said = entry.and_then(|entry| entry.profile).or(own.profile);
        let profile = said.or(Some(Profile::Farpace));
        let congestion = entry.and_then(|entry| entry.congestion).or(own.congestion);
        let ack_control = own.ack_control.or(Some(AckControlMode::Safe));
        Settings { profile, congestion, ack_control, ..own.clone() }.resolve().context("wan_tcp")
    }
}

/// The JSON schema of the file.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(GatewayFile).to_value()
}

/// What `farpace gateway install` writes, and the manual shows.
pub fn example(lan: &[String], wan: &[String], peer: Option<&Path>, via: &[String]) -> String {
    let list =
        |names: &[String]| names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    let far = match peer {
        Some(path) => format!("peer = {:?}\nvia = [{}]", path.to_string_lossy(), list(via)),
        None => format!("wan = [{}]", list(wan)),
    };
    format!(
        "\
# The configuration of `farpace gateway`; docs/gateway.md, and `farpace gateway schema` for editors.
# `systemctl reload farpace-gateway` takes it over; connections that are split keep what they began with.
lan = [{}]
{far}
# action = \"auto\"       # auto: split, but for short paths; split; pass
# min_rtt = \"5 ms\"      # what auto takes for short
# buffer = \"64 MiB\"     # kept by a leg at most, in each direction
# memory = \"1 GiB\"      # of all connections; default: a quarter of the host's
# threads = 2           # default: one for each processor; 1 with a peer
# control_group = 0.05  # so many pass unsplit, and `status` shows what splitting gains; default: 0
# records = 10000       # connections that have ended, kept for `status --records`
# log = \"/var/log/farpace/connections.jsonl\"  # a line for each connection that has ended
# metrics = \"127.0.0.1:9745\"
# web = \"127.0.0.1:9746\"   # the dashboard
# pcap = \"/var/log/farpace\"  # captures of both sides: headers alone, 1 GiB at most
# snaplen = 128         # bytes kept of each packet, in place of the headers
# pcap_limit = \"1 GiB\"

# [wan_tcp]             # any TCP setting of scenarios
# profile = \"farpace\"

# [[policy]]
# prefix = \"192.0.2.0/24\"
# action = \"pass\"
# [[policy]]
# prefix = \"198.51.100.0/24\"
# rate = \"20 Mbit/s\"
",
        list(lan)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    // Breaks: what `install` writes is refused by `up`.
    #[test]
    fn the_example_is_a_configuration() {
        let text = example(&names("eth0"), &[], Some(Path::new("/etc/farpace/a b.conf")), &names("l0 l1"));
        let file = GatewayFile::parse(&text).unwrap();
        assert_eq!(file.peer, Some(PathBuf::from("/etc/farpace/a b.conf")));
        assert_eq!(file.via, ["l0", "l1"]);
        file.check().unwrap();
        let text = example(&names("eth0"), &names("eth1 eth2"), None, &[]);
        let file = GatewayFile::parse(&text).unwrap();
        assert_eq!((file.lan.len(), file.wan.len()), (1, 2));
        file.check().unwrap();
        // With what stands in comments, too.
        let all: String =
            text.lines().map(|line| line.strip_prefix("# ").unwrap_or(line).to_owned() + "\n").collect();
        let all = all.lines().skip(2).collect::<Vec<_>>().join("\n");
        let file = GatewayFile::parse(&all).unwrap();
        file.check().unwrap();
        assert_eq!(file.policies.len(), 2);
        file.gateway([1500, 1500]).unwrap();
    }

    // Breaks: a mistake in a configuration is taken for something else, or told without its line.
    #[test]
    fn mistakes_are_told_with_their_line() {
        let error = GatewayFile::parse("lan = [\"a\"]\nwann = [\"b\"]\n").unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("wann"), "{error}");
        let parsed = |text: &str| {
            let file = GatewayFile::parse(text).unwrap();
            file.check()
                .and_then(|()| file.gateway([1500, 1500]).map(drop))
                .map_err(|error| format!("{error:#}"))
        };
        for (text, says) in [
            ("lan = [\"a\"]", "no interface of the wan side"),
            ("lan = [\"a\"]\nwan = [\"a\"]", "on both sides"),
            ("lan = [\"a\", \"a\"]\nwan = [\"b\"]", "twice"),
            ("lan = [\"a/b\"]\nwan = [\"b\"]", "name of an interface"),
            ("lan = [\"a\"]\nwan = [\"b\"]\nbuffer = \"1 kB\"", "at least"),
            ("lan = [\"a\"]\nwan = [\"b\"]\nmemory = \"1 kB\"", "at least"),
            ("lan = [\"a\"]\nwan = [\"b\"]\nrate = \"0 bit/s\"", "above 0"),
            ("lan = [\"a\"]\nwan = [\"b\"]\npeer = \"p.conf\"", "has no wan"),
            ("lan = [\"a\"]\nwan = [\"b\"]\nvia = [\"c\"]", "--peer FILE"),
            ("lan = [\"a\"]\npeer = \"p.conf\"\nvia = [\"a/b\"]", "neither an interface"),
            ("lan = [\"a\"]\nwan = [\"b\"]\nsnaplen = 200", "--pcap DIR"),
            ("lan = [\"a\"]\nwan = [\"b\"]\npcap = \"d\"\nsnaplen = 95", "96 to 65549"),
            ("lan = [\"a\"]\nwan = [\"b\"]\npcap = \"d\"\nsnaplen = 65550", "96 to 65549"),
            ("lan = [\"a\"]\nwan = [\"b\"]\npcap = \"d\"\npcap_limit = \"1 kB\"", "at least 1"),
            ("lan = [\"a\"]\nwan = [\"b\"]\ntable = 254", "table"),
            ("lan = [\"a\"]\nwan = [\"b\"]\nrule_priority = 0", "rule_priority"),
            ("lan = [\"a\"]\nwan = [\"b\"]\ncontrol_group = 5", "as in 0.05"),
            ("lan = [\"a\"]\nwan = [\"b\"]\ncontrol_group = nan", "as in 0.05"),
            ("lan = [\"a\"]\nwan = [\"b\"]\nrecords = 100001", "0 to 100000"),
            ("lan = [\"a\"]\nwan = [\"b\"]\nthreads = 0", "1 to 64"),
            ("lan = [\"a\"]\nwan = [\"b\"]\nthreads = 65", "1 to 64"),
            ("lan = [\"a\"]\npeer = \"p.conf\"\nthreads = 2", "one thread"),
            ("lan = [\"a\"]\npeer = \"p.conf\"\ncontrol_group = 0.1", "without a peer"),
            ("lan = [\"a\"]\nwan = [\"b\"]\nmax_connections = 0", "max_connections"),
            ("lan = [\"a\"]\nwan = [\"b\"]\nmax_half_open = 99999", "max_half_open"),
            (
                "lan = [\"a\"]\nwan = [\"b\"]\n[wan_tcp]\nprofile = \"newreno\"\nlost_rtx = \"per-block\"",
                "wan_tcp",
            ),
        ] {
            let error = parsed(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
        parsed("lan = [\"a\"]\nwan = [\"b\"]").unwrap();
        parsed("lan = [\"a\"]\npeer = \"p.conf\"\nvia = [\"b\", \"192.0.2.1\"]").unwrap();
    }

    // Breaks: editors complete keys that do not exist.
    #[test]
    fn the_schema_names_the_keys() {
        let schema = schema();
        let keys = schema["properties"].as_object().unwrap();
        assert!(keys.contains_key("policy") && keys.contains_key("wan_tcp"));
        assert_eq!(schema["additionalProperties"], false);
    }
}
