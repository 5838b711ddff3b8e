//! Random scenarios with causes that are known.

use farpace_explain::cause::Cause;
use farpace_lab::scenario::Scenario;
use farpace_units::RandomStream;
use std::fmt::Write;

/// A transfer with something in its way.
pub struct Case {
    pub seed: u64,
    /// What was put in, in order of weight; none: a healthy path.
    pub causes: Vec<Cause>,
    pub toml: String,
    /// Round trip without queues.
    pub rtt_ms: f64,
    /// Place of the middle capture.
    pub middle: &'static str,
    /// Time of a full segment on the path, in seconds.
    pub segment: f64,
    /// What the line leaves for payload, in bytes per second, from a time in seconds on.
    pub line: Vec<(f64, f64)>,
    /// The sender's buffer, if it is fixed.
    pub send_buffer: Option<u32>,
    pub program: Program,
    /// Other flows have the same path.
    pub shared: bool,
}

/// When the sending program writes.
#[derive(Clone, Debug, PartialEq)]
pub enum Program {
    /// All of it, as soon as there is room.
    AtOnce,
    /// So many bytes every so many milliseconds.
    Writes { portion: f64, every_ms: f64 },
    /// Requests of so many bytes, each after an answer of so many bytes to the one before. From the last on
    /// it begins again.
    Exchanges(Vec<(f64, f64)>),
}

/// What can be put in.
pub const CAUSES: &[Cause] = &[
    Cause::SynLoss,
    Cause::SenderApplication,
    Cause::ReceiverApplication,
    Cause::ReceiveWindow,
    Cause::WindowScale,
    Cause::SendBuffer,
    Cause::SenderProcessor,
    Cause::SlowStart,
    Cause::Congestion,
    Cause::Policer,
    Cause::RandomLoss,
    Cause::BurstLoss,
    Cause::Outage,
    Cause::SmallQueue,
    Cause::Reordering,
    Cause::Linux2617,
    Cause::TailLoss,
    Cause::SpuriousTimeout,
    Cause::DelayedAck,
    Cause::MtuBlackHole,
];

/// What a second cause may be: those that leave the first one visible.
const SECOND: &[Cause] =
    &[Cause::SynLoss, Cause::SenderApplication, Cause::RandomLoss, Cause::Outage, Cause::SpuriousTimeout];

pub struct Draw {
    random: RandomStream,
}

impl Draw {
    pub fn new(seed: u64, name: &str) -> Self {
        Draw { random: RandomStream::new(seed, name) }
    }

    pub fn unit(&mut self) -> f64 {
        self.random.unit()
    }

    pub fn chance(&mut self, chance: f64) -> bool {
        self.random.chance(chance)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.random.below(n)
    }

    /// Evenly in the logarithm.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low * libm::pow(high / low, self.random.unit())
    }

    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.random.below(all.len() as u64) as usize]
    }
}

/// The case of a seed.
pub fn case(seed: u64) -> Case {
    let mut draw = Draw::new(seed, "explain");
    let healthy = draw.chance(0.12);
    let mut causes = Vec::new();
    if !healthy {
        causes.push(CAUSES[(seed % CAUSES.len() as u64) as usize]);
        if draw.chance(0.25) {
            let second = draw.one_of(SECOND);
            if !causes.contains(&second) {
                causes.push(second);
            }
        }
    }
    let has = |c: Cause| causes.contains(&c);

    // Path: rate in Mbit/s, round trip in ms.
    let mut rate = draw.between(4.0, 150.0);
    let mut rtt = draw.between(8.0, 250.0);
    if has(Cause::Linux2617) {
        (rate, rtt) = (draw.between(80.0, 200.0), draw.between(10.0, 40.0));
    }
    if has(Cause::SenderProcessor) {
        (rate, rtt) = (draw.between(40.0, 200.0), draw.between(15.0, 150.0));
    }
    if has(Cause::SlowStart) || has(Cause::SmallQueue) || has(Cause::WindowScale) {
        (rate, rtt) = (draw.between(40.0, 200.0), draw.between(60.0, 300.0));
    }
    let bdp = rate * 1e6 / 8.0 * rtt / 1e3;
    // A transfer of some seconds and at least forty round trips, in bounds.
    let seconds = draw.between(2.0, 8.0).max(rtt / 1e3 * 30.0);
    let mut size = (rate * 1e6 / 8.0 * seconds).clamp(200e3, 7e6);
    if has(Cause::SlowStart) {
        size = draw.between(0.3, 1.2) * bdp;
    }
    // A window-limited transfer needs less.
    let queue = (bdp * draw.between(0.6, 1.5)).max(60e3);
    let mut queue_text = format!("{:.0} B", queue);
    let congestion = draw.one_of(&["cubic", "cubic", "cubic", "reno", "bbr1", "bbr3"]);
    let mut sender = format!("profile = \"linux\"\ncongestion = \"{congestion}\"\n");
    let mut receiver = String::from("profile = \"linux\"\n");
    let mut flow = String::new();
    let mut forward = String::new();
    let mut backward = String::new();
    let mut host_a = String::new();
    let mut extra = String::new();
    let mut send_buffer = None;
    let mut program = Program::AtOnce;
    let mut line = rate;
    let mut outages: Vec<(f64, f64)> = Vec::new();
    let mut outages_back: Vec<(f64, f64)> = Vec::new();
    let expected = size * 8.0 / (rate * 1e6) + rtt / 1e3 * 10.0;

    for cause in &causes {
        match cause {
            Cause::SynLoss => {
                let lasts = draw.between(300.0, 3000.0);
                outages.push((0.0, lasts));
            }
            Cause::SenderApplication => {
                let share = draw.between(0.08, 0.5);
                let every = draw.between(10.0, 600.0);
                let portion = (rate * 1e6 / 8.0 * share * every / 1e3).max(3000.0);
                size = size.min(portion * draw.between(15.0, 60.0)).max(portion * 6.0);
                program = Program::Writes { portion: libm::round(portion), every_ms: libm::round(every) };
                writeln!(flow, "writes = {{ size = \"{portion:.0} B\", every = \"{every:.0} ms\" }}")
                    .unwrap();
            }
            Cause::ReceiverApplication => {
                let share = draw.between(0.08, 0.4);
                let every = draw.between(5.0, 300.0);
                let portion = (rate * 1e6 / 8.0 * share * every / 1e3).max(3000.0);
                let buffer = draw.between(40e3, 300e3).max(portion * 1.5);
                size = (size * share * 2.0).max(buffer * 5.0).min(7e6);
                writeln!(flow, "reads = {{ size = \"{portion:.0} B\", every = \"{every:.0} ms\" }}").unwrap();
                writeln!(receiver, "receive_buffer = \"{buffer:.0} B\"").unwrap();
            }
            Cause::ReceiveWindow => {
                let window = (bdp * draw.between(0.08, 0.6)).max(6000.0);
                size = size.min(window * draw.between(30.0, 100.0));
                writeln!(receiver, "window = \"{window:.0} B\"").unwrap();
            }
            Cause::WindowScale => {
                size = size.min(3e6);
                if draw.chance(0.5) {
                    receiver.push_str("window_scale = false\n");
                } else {
                    sender.push_str("window_scale = false\n");
                }
            }
            Cause::SendBuffer => {
                let buffer = (bdp * draw.between(0.08, 0.5)).max(12000.0);
                size = size.min(buffer * draw.between(30.0, 100.0));
                writeln!(sender, "send_buffer = \"{buffer:.0} B\"").unwrap();
                send_buffer = Some(buffer as u32);
            }
            Cause::SenderProcessor => {
                let share = draw.between(0.1, 0.6);
                let per_frame = 1514.0 * 8.0 / (rate * share);
                writeln!(
                    host_a,
                    "processor = {{ send = \"{per_frame:.0} us\", receive = \"1 us\", \
                     queue = \"20000 packets\" }}"
                )
                .unwrap();
                size *= share;
            }
            Cause::Congestion => {
                let share = draw.between(0.3, 0.8);
                let load = rate * share;
                writeln!(
                    extra,
                    "[[datagrams]]\nname = \"load\"\nfrom = \"c\"\nto = \"b\"\nrate = \"{:.0} kbit/s\"",
                    load * 1e3
                )
                .unwrap();
                size *= 1.0 - share;
                line = rate - load * 1.05;
            }
            Cause::Policer => {
                let share = draw.between(0.15, 0.7);
                let burst = draw.between(0.1, 1.0) * bdp.clamp(60e3, 400e3);
                let policed = rate * share;
                writeln!(
                    forward,
                    "policer = {{ rate = \"{:.0} kbit/s\", burst = \"{burst:.0} B\" }}",
                    policed * 1e3
                )
                .unwrap();
                size = (size * share).max(burst * 6.0).clamp(800e3, 7e6);
            }
            Cause::RandomLoss => {
                // Enough that the window stays below what the path holds.
                let segments = bdp / 1448.0;
                let most = 1.5 / (segments * segments);
                let p = (most * draw.between(8.0, 80.0)).clamp(0.002, 0.04);
                writeln!(forward, "loss = {p:.6}").unwrap();
                if causes.len() == 1 {
                    sender = sender.replace("\"bbr1\"", "\"cubic\"").replace("\"bbr3\"", "\"cubic\"");
                }
            }
            Cause::BurstLoss => {
                let begin = draw.between(0.0006, 0.004);
                let end = draw.between(0.1, 0.35);
                writeln!(forward, "burst_loss = {{ begin = {begin:.6}, end = {end:.4} }}").unwrap();
                sender = sender.replace("\"bbr1\"", "\"cubic\"").replace("\"bbr3\"", "\"cubic\"");
            }
            Cause::Outage => {
                let n = 1 + draw.below(3);
                for i in 0..n {
                    let at = expected * (0.2 + 0.6 * (i as f64 + draw.unit()) / n as f64) + i as f64 * 2.0;
                    let lasts = draw.between(0.4, 2.5);
                    outages.push((at * 1e3, lasts * 1e3));
                    outages_back.push((at * 1e3, lasts * 1e3));
                }
            }
            Cause::SmallQueue => {
                let packets = draw.between(4.0, 14.0);
                queue_text = format!("{packets:.0} packets");
                sender = sender.replace("\"bbr1\"", "\"cubic\"").replace("\"bbr3\"", "\"cubic\"");
            }
            Cause::Reordering => {
                let chance = draw.between(0.01, 0.1);
                let extra_ms = draw.between(0.3, 1.0) * rtt.max(15.0);
                writeln!(forward, "reorder = {{ chance = {chance:.4}, extra = \"{extra_ms:.1} ms\" }}")
                    .unwrap();
                // A sender that neither waits nor takes back.
                sender = "profile = \"rfc6675\"\ncongestion = \"reno\"\n".to_owned();
            }
            Cause::Linux2617 => {
                let share = draw.between(0.3, 0.6);
                writeln!(
                    forward,
                    "policer = {{ rate = \"{:.0} kbit/s\", burst = \"{:.0} kB\", refill = \"490 us\" }}",
                    rate * share * 1e3,
                    draw.between(400.0, 1500.0)
                )
                .unwrap();
                sender = "profile = \"linux-2.6.17\"\ncongestion = \"bic\"\ninitial_ssthresh = \"1000 \
                     packets\"\n"
                    .to_owned();
                receiver = "profile = \"linux-2.6.17\"\nwindow = \"1500 packets\"\n".to_owned();
                size = 7e6;
            }
            Cause::TailLoss => {
                // The outage is put at the end once it is known when that is.
                size = size.min(400e3);
                extra.push_str("# tail\n");
            }
            Cause::SpuriousTimeout => {
                let n = 1 + draw.below(4);
                let mut steps = Vec::new();
                let mut free = 0.0f64;
                for i in 0..n {
                    let at = 0.3 + expected * (0.9 * (i as f64 + draw.unit()) / n as f64) + i as f64 * 1.5;
                    let spike = draw.between(0.3, 1.5) + rtt / 1e3 * 2.0;
                    let at = (at * 1e3).max(free).ceil();
                    free = at + 60.0;
                    steps.push(format!(
                        "{{ at = \"{at:.0} ms\", delay = \"{:.1} ms\" }}",
                        rtt / 2.0 + spike * 1e3
                    ));
                    steps.push(format!(
                        "{{ at = \"{:.0} ms\", delay = \"{:.1} ms\" }}",
                        at + 40.0,
                        rtt / 2.0
                    ));
                }
                writeln!(forward, "schedule = {{ steps = [{}] }}", steps.join(", ")).unwrap();
            }
            Cause::DelayedAck => {
                sender = "profile = \"linux\"\ncwnd_clamp = \"1 packet\"\n".to_owned();
                let delay = draw.between(60.0, 400.0);
                receiver = format!(
                    "profile = \"modern\"\ndelayed_ack = \"rfc5681\"\nack_delay = \"{delay:.0} ms\"\n"
                );
                size = draw.between(20.0, 60.0) * 1448.0;
            }
            Cause::MtuBlackHole => {
                let limit = draw.between(900.0, 1450.0);
                writeln!(forward, "mtu = {{ limit = \"{limit:.0} B\", silent = true }}").unwrap();
                sender.push_str("mtu_probing = \"black-hole\"\n");
                size = size.min(1e6);
            }
            _ => {}
        }
    }
    for (all, text) in [(outages, &mut forward), (outages_back, &mut backward)] {
        let apart = apart(all);
        if !apart.is_empty() {
            writeln!(text, "outages = [{}]", apart.join(", ")).unwrap();
        }
    }
    let bounded = [Cause::ReceiveWindow, Cause::WindowScale, Cause::SendBuffer, Cause::SenderProcessor];
    if bounded.iter().any(|c| causes.contains(c)) {
        // BBR models such a limit as the path's.
        sender = sender.replace("\"bbr1\"", "\"cubic\"").replace("\"bbr3\"", "\"cubic\"");
    }
    let middle = draw.one_of(&["r1", "r2"]);
    // Like BBR, it does not take every loss for congestion, and models a limit of an end as the path's.
    let blurs = [Cause::RandomLoss, Cause::BurstLoss, Cause::SmallQueue];
    if draw.chance(0.2) && !bounded.iter().chain(&blurs).any(|c| causes.contains(c)) {
        let linux = format!("profile = \"linux\"\ncongestion = \"{congestion}\"\n");
        sender = sender.replace(&linux, "profile = \"farpace\"\n");
    }
    let toml = format!(
        r#"title = "case {seed}"
seed = {seed}
duration = "300 s"
[hosts.a]
{host_a}
[hosts.b]
[hosts.c]
[routers.r1]
[routers.r2]
[[links]]
name = "access"
between = ["a", "r1"]
rate = "1 Gbit/s"
delay = "20 us"
[[links]]
name = "load"
between = ["c", "r1"]
rate = "1 Gbit/s"
[[links]]
name = "wan"
between = ["r1", "r2"]
rate = "{rate:.0} kbit/s"
delay = "{delay:.0} us"
queue = "{queue_text}"
[links.forward]
{forward}
[links.backward]
{backward}
[[links]]
name = "home"
between = ["r2", "b"]
rate = "1 Gbit/s"
delay = "20 us"
# the end
[[flows]]
name = "bulk"
from = "a"
to = "b"
size = "{size:.0} B"
{flow}
[flows.sender]
{sender}
[flows.receiver]
{receiver}
{extra}
[trace]
bin = "10 ms"
taps = ["a", "wan", "b"]
snaplen = "128 B"
"#,
        rate = rate * 1e3,
        delay = rtt / 2.0 * 1e3,
    );
    Case {
        seed,
        causes,
        toml,
        rtt_ms: rtt,
        middle,
        segment: 1538.0 * 8.0 / (rate * 1e6),
        line: vec![(0.0, line * 1e6 / 8.0 * 1448.0 / 1538.0)],
        send_buffer,
        program,
        shared: false,
    }
}

/// Outages in order, none of which begins before the last has ended.
fn apart(mut outages: Vec<(f64, f64)>) -> Vec<String> {
    outages.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut free = 0.0f64;
    let mut texts = Vec::new();
    for (at, lasts) in outages {
        let at = at.max(free).ceil();
        free = at + lasts.ceil() + 1.0;
        texts.push(format!("{{ at = \"{at:.0} ms\", lasts = \"{lasts:.0} ms\" }}"));
    }
    texts
}

/// The scenario, with the outage of a tail loss at the end of the transfer.
pub fn scenario(case: &Case, completed: Option<f64>) -> Scenario {
    let mut toml = case.toml.clone();
    if let Some(end) = completed {
        // The last three segments.
        let at = end - 3.2 * case.segment - 0.0001;
        let outage = format!(
            "forward = {{ outages = [{{ at = \"{:.0} us\", lasts = \"20 ms\" }}] }}\n",
            at.max(0.001) * 1e6
        );
        toml = toml.replacen("# the end\n", &outage, 1);
    }
    Scenario::parse(&toml, "case.toml").unwrap_or_else(|e| panic!("case {}: {e}\n{toml}", case.seed))
}
