//! Random scenarios with programs as people run them, rates that change, and flows that share what is scarce.

use crate::generator::{Case, Draw, Program};
use farpace_explain::cause::Cause;
use std::fmt::Write;

/// What a case is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Requests one by one.
    Exchanges,
    /// Chunks at a period.
    Chunks,
    /// A constant rate in small steps.
    Constant,
    /// A reader that stops for a time again and again.
    Stops,
    /// A reader with a rate.
    Reads,
    /// The rate of the path changes in mid-transfer.
    Steps,
    /// Several flows in one queue.
    SharedQueue,
    /// Several flows through one policer.
    SharedPolicer,
}

/// All of them, in the order of the seeds.
pub const FAMILIES: [Family; 8] = [
    Family::Exchanges,
    Family::Chunks,
    Family::Constant,
    Family::Stops,
    Family::Reads,
    Family::Steps,
    Family::SharedQueue,
    Family::SharedPolicer,
];

/// The family of a seed.
pub fn family(seed: u64) -> Family {
    FAMILIES[(seed % FAMILIES.len() as u64) as usize]
}

/// What stands in the way besides the program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Besides {
    Nothing,
    Loss,
    SmallQueue,
    Policer,
}

/// The texts of a scenario that a family fills in.
struct Texts {
    flow: String,
    sender: String,
    receiver: String,
    forward: String,
    line: String,
    others: String,
}

/// The case of a seed.
pub fn case(seed: u64) -> Case {
    let mut draw = Draw::new(seed, "explain-programs");
    let family = family(seed);
    let rate = draw.between(4.0, 120.0);
    let rtt = draw.between(8.0, 200.0);
    let bytes_per_s = rate * 1e6 / 8.0;
    let bdp = bytes_per_s * rtt / 1e3;
    let seconds = draw.between(3.0, 10.0).max(rtt / 1e3 * 30.0);
    let size = (bytes_per_s * seconds).clamp(200e3, 7e6);
    let congestion = draw.one_of(&["cubic", "cubic", "cubic", "reno", "bbr1", "bbr3"]);
    let alone = matches!(family, Family::Exchanges | Family::Chunks | Family::Constant | Family::Reads);
    let besides = match draw.below(10) {
        0 if alone => Besides::Loss,
        1 if alone => Besides::SmallQueue,
        2 if alone => Besides::Policer,
        _ => Besides::Nothing,
    };
    let mut causes = Vec::new();
    let mut queue = format!("{:.0} B", (bdp * draw.between(0.6, 1.5)).max(60e3));
    let mut texts = Texts {
        flow: String::new(),
        sender: sender(&mut draw, congestion),
        receiver: "profile = \"linux\"\n".to_owned(),
        forward: String::new(),
        line: String::new(),
        others: String::new(),
    };
    match besides {
        Besides::Nothing => {}
        Besides::Loss => {
            causes.push(Cause::RandomLoss);
            writeln!(texts.forward, "loss = {:.6}", draw.between(0.0005, 0.02)).unwrap();
        }
        Besides::SmallQueue => {
            causes.push(Cause::SmallQueue);
            queue = format!("{:.0} packets", draw.between(4.0, 14.0));
        }
        Besides::Policer => {
            causes.push(Cause::Policer);
            let burst = draw.between(0.1, 1.0) * bdp.clamp(60e3, 400e3);
            let policed = rate * draw.between(0.15, 0.7);
            let kbit = policed * 1e3;
            writeln!(texts.forward, "policer = {{ rate = \"{kbit:.0} kbit/s\", burst = \"{burst:.0} B\" }}")
                .unwrap();
        }
    }
    let mut steps = vec![(0.0, rate)];
    let (size, program) = match family {
        Family::Exchanges => exchanges(&mut draw, &mut texts, bytes_per_s),
        Family::Chunks => {
            let every = draw.between(300.0, 4000.0);
            let share = draw.between(0.05, 0.8);
            let chunk = (bytes_per_s * share * every / 1e3).clamp(20e3, 2e6);
            (chunk * draw.between(4.0, 12.0), writes(&mut texts, chunk, every))
        }
        Family::Constant => {
            // As voice, games, logs and encoders of video write.
            let portion = draw.between(100.0, 8000.0);
            let share = draw.between(0.02, 0.85);
            let every = (portion / (bytes_per_s * share) * 1e3).clamp(0.5, 100.0);
            if draw.chance(0.5) {
                texts.sender.push_str("nagle = false\n");
            }
            let lasts = draw.between(3.0, 12.0);
            ((portion / every * 1e3 * lasts).min(5e6), writes(&mut texts, portion, every))
        }
        Family::Stops => {
            causes.push(Cause::ReceiverApplication);
            let every = draw.between(400.0, 3000.0);
            let buffer = draw.between(40e3, 400e3);
            let portion = (bytes_per_s * draw.between(0.1, 0.9) * every / 1e3).clamp(buffer * 1.2, 3e6);
            reads(&mut texts, portion, every, Some(buffer));
            (portion * draw.between(3.0, 7.0), Program::AtOnce)
        }
        Family::Reads => {
            causes.push(Cause::ReceiverApplication);
            let every = draw.between(4.0, 120.0);
            let share = draw.between(0.05, 0.7);
            let portion = (bytes_per_s * share * every / 1e3).max(1000.0);
            let buffer = draw.chance(0.6).then(|| draw.between(40e3, 400e3).max(portion * 1.5));
            reads(&mut texts, portion, every, buffer);
            let filled = buffer.unwrap_or(1e6);
            ((size * share).max(filled * 4.0).min(7e6), Program::AtOnce)
        }
        Family::Steps => {
            let n = 1 + draw.below(3);
            let lasts = size / bytes_per_s;
            let mut now = rate;
            for i in 0..n {
                let by = if draw.chance(0.6) { draw.between(0.15, 0.8) } else { draw.between(1.3, 4.0) };
                now = (now * by).clamp(1.0, 200.0);
                steps.push((lasts * (0.15 + 0.7 * (i as f64 + draw.unit()) / n as f64), now));
            }
            let text: Vec<String> = steps[1..]
                .iter()
                .map(|(at, mbit)| {
                    let (ms, kbit) = (at * 1e3, mbit * 1e3);
                    format!("{{ at = \"{ms:.0} ms\", rate = \"{kbit:.0} kbit/s\" }}")
                })
                .collect();
            writeln!(texts.line, "schedule = {{ steps = [{}] }}", text.join(", ")).unwrap();
            (size, Program::AtOnce)
        }
        Family::SharedQueue => {
            if draw.chance(0.25) {
                causes.push(Cause::SmallQueue);
                queue = format!("{:.0} packets", draw.between(4.0, 14.0));
            }
            let n = others(&mut draw, &mut texts, size, seconds);
            (size / n, Program::AtOnce)
        }
        Family::SharedPolicer => {
            causes.push(Cause::Policer);
            let share = draw.between(0.2, 0.8);
            let burst = draw.between(0.1, 1.0) * bdp.clamp(60e3, 400e3);
            let kbit = rate * share * 1e3;
            writeln!(texts.forward, "policer = {{ rate = \"{kbit:.0} kbit/s\", burst = \"{burst:.0} B\" }}")
                .unwrap();
            let n = others(&mut draw, &mut texts, size * share, seconds);
            ((size * share / n).max(burst * 3.0).clamp(400e3, 7e6), Program::AtOnce)
        }
    };
    let middle = draw.one_of(&["r1", "r2"]);
    let Texts { flow, sender, receiver, forward, line, others } = texts;
    let toml = format!(
        r#"title = "programs {seed}"
seed = {seed}
duration = "300 s"
[hosts.a]
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
delay = "{beside:.0} us"
[[links]]
name = "wan"
between = ["r1", "r2"]
rate = "{kbit:.0} kbit/s"
delay = "{delay:.0} us"
queue = "{queue}"
{line}
[links.forward]
{forward}
[[links]]
name = "home"
between = ["r2", "b"]
rate = "1 Gbit/s"
delay = "20 us"
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
{others}
[trace]
bin = "10 ms"
taps = ["a", "wan", "b"]
snaplen = "128 B"
"#,
        beside = draw.between(20.0, 20_000.0),
        kbit = rate * 1e3,
        delay = rtt / 2.0 * 1e3,
    );
    Case {
        seed,
        causes,
        toml,
        rtt_ms: rtt,
        middle,
        segment: 1538.0 * 8.0 / (rate * 1e6),
        line: steps.into_iter().map(|(at, mbit)| (at, mbit * 1e6 / 8.0 * 1448.0 / 1538.0)).collect(),
        send_buffer: None,
        program,
        shared: matches!(family, Family::SharedQueue | Family::SharedPolicer),
    }
}

fn sender(draw: &mut Draw, congestion: &str) -> String {
    if draw.chance(0.15) {
        return "profile = \"farpace\"\n".to_owned();
    }
    format!("profile = \"linux\"\ncongestion = \"{congestion}\"\n")
}

fn writes(texts: &mut Texts, portion: f64, every_ms: f64) -> Program {
    let (portion, every_us) = (libm::round(portion), libm::round(every_ms * 1e3));
    writeln!(texts.flow, "writes = {{ size = \"{portion:.0} B\", every = \"{every_us:.0} us\" }}").unwrap();
    Program::Writes { portion, every_ms: every_us / 1e3 }
}

fn reads(texts: &mut Texts, portion: f64, every_ms: f64, buffer: Option<f64>) {
    writeln!(texts.flow, "reads = {{ size = \"{portion:.0} B\", every = \"{every_ms:.0} ms\" }}").unwrap();
    if let Some(buffer) = buffer {
        writeln!(texts.receiver, "receive_buffer = \"{buffer:.0} B\"").unwrap();
    }
}

/// Requests of some sizes with answers, and the times of both programs.
fn exchanges(draw: &mut Draw, texts: &mut Texts, bytes_per_s: f64) -> (f64, Program) {
    let most = (bytes_per_s * 0.5).min(1e6);
    let typical = draw.between(200.0, most);
    let slow = [draw.chance(0.6), draw.chance(0.6)];
    let n = 1 + draw.below(6);
    let mut all = Vec::new();
    for _ in 0..n {
        let request = libm::round((typical * draw.between(0.3, 3.0)).max(50.0));
        let answer = libm::round(draw.between(20.0, 4000.0));
        let [work, think] = slow.map(|slow| if slow { libm::round(draw.between(1.0, 800.0)) } else { 0.0 });
        all.push((request, answer, work, think));
    }
    let text: Vec<String> = all
        .iter()
        .map(|(request, answer, work, think)| {
            format!(
                "{{ request = \"{request:.0} B\", answer = \"{answer:.0} B\", work = \"{work:.0} ms\", \
                 think = \"{think:.0} ms\" }}"
            )
        })
        .collect();
    writeln!(texts.flow, "exchanges = [{}]", text.join(", ")).unwrap();
    let mean = all.iter().map(|e| e.0).sum::<f64>() / n as f64;
    let all = all.into_iter().map(|(request, answer, ..)| (request, answer)).collect();
    ((mean * draw.between(8.0, 60.0)).min(7e6), Program::Exchanges(all))
}

/// Other flows on the same path, which outlast the first. Returns how many flows there are.
fn others(draw: &mut Draw, texts: &mut Texts, size: f64, seconds: f64) -> f64 {
    let n = 1 + draw.below(4);
    for i in 0..n {
        let from = draw.one_of(&["a", "c", "c"]);
        let start = draw.between(1.0, seconds * 500.0);
        let congestion = draw.one_of(&["cubic", "cubic", "reno", "bbr1"]);
        write!(
            texts.others,
            "[[flows]]\nname = \"other-{i}\"\nfrom = \"{from}\"\nto = \"b\"\nstart = \"{start:.0} ms\"\n\
             size = \"{:.0} B\"\n[flows.sender]\nprofile = \"linux\"\ncongestion = \"{congestion}\"\n\
             [flows.receiver]\nprofile = \"linux\"\n",
            size * 4.0,
        )
        .unwrap();
    }
    (n + 1) as f64
}
