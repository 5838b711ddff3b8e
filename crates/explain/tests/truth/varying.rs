//! Random scenarios on paths whose rate changes all the time: schedules in steps and ramps, and recorded
//! delivery opportunities. Nothing else is in the way.

use crate::generator::{Case, Draw, Program};
use std::fmt::Write;

/// What the rate does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Course {
    /// One rate, and then another, again and again.
    Alternates,
    /// Steps to any rate.
    Steps,
    /// Up and down in small steps.
    Ramps,
    /// Delivery opportunities, as Mahimahi records them.
    Recorded,
}

/// The share that is payload of what a frame takes on a line, and of a recorded opportunity.
const OF_FRAME: f64 = 1448.0 / 1538.0;
const OF_OPPORTUNITY: f64 = 1448.0 / 1500.0;
/// Bytes of an opportunity, and steps of a ramp in one direction.
const OPPORTUNITY: f64 = 1500.0;
const RAMP: u64 = 12;

/// The case of a seed.
pub fn case(seed: u64) -> Case {
    let mut draw = Draw::new(seed, "explain-varying");
    let course = [Course::Alternates, Course::Steps, Course::Ramps, Course::Recorded][(seed % 4) as usize];
    let rate = draw.between(3.0, 60.0);
    let rtt = draw.between(8.0, 150.0);
    let lowest = rate * draw.between(0.12, 0.6);
    let mut level = || draw.between(lowest, rate);
    // From a time in seconds on, Mbit/s.
    let mut levels: Vec<(f64, f64)> = Vec::new();
    let mut period = 0.0;
    match course {
        Course::Alternates => levels.extend([(0.0, rate), (0.5, lowest)]),
        Course::Steps | Course::Recorded => levels.extend((0..8).map(|n| (f64::from(n) / 8.0, level()))),
        Course::Ramps => levels.extend((0..2 * RAMP).map(|n| {
            let up = n.min(2 * RAMP - n) as f64 / RAMP as f64;
            (n as f64 / (2 * RAMP) as f64, lowest + (rate - lowest) * up)
        })),
    }
    let lasts = draw.between(0.15, 2.5).max(rtt / 1e3 * 8.0);
    let steps = if course == Course::Ramps { 4.0 } else { levels.len() as f64 };
    for (at, _) in &mut levels {
        *at = libm::round(*at * lasts * steps * 1e3) / 1e3;
    }
    period += libm::round(lasts * steps * 1e3) / 1e3;
    let mean = levels.iter().map(|(_, rate)| rate).sum::<f64>() / levels.len() as f64;
    let (schedule, payload) = if course == Course::Recorded {
        (recorded(&mut draw, &levels, period), OF_OPPORTUNITY)
    } else {
        let step = |(at, rate): &(f64, f64)| {
            format!("{{ at = \"{:.0} ms\", rate = \"{:.0} kbit/s\" }}", at * 1e3, rate * 1e3)
        };
        let steps: Vec<String> = levels.iter().map(step).collect();
        (format!("period = \"{:.0} ms\", steps = [{}]", period * 1e3, steps.join(", ")), OF_FRAME)
    };
    let bytes_per_s = rate * 1e6 / 8.0;
    let queue = (bytes_per_s * rtt / 1e3 * draw.between(0.6, 3.0)).max(60e3);
    let seconds = draw.between(6.0, 20.0).max(period * 1.5);
    let size = (mean * 1e6 / 8.0 * seconds).clamp(400e3, 12e6);
    let controls = ["cubic", "reno", "bbr1", "bbr3", "farpace", "farpace"];
    let sender = |draw: &mut Draw| match draw.one_of(&controls) {
        "farpace" => "profile = \"farpace\"\n".to_owned(),
        control => format!("profile = \"linux\"\ncongestion = \"{control}\"\n"),
    };
    let own = sender(&mut draw);
    let shared = draw.chance(0.25);
    let mut others = String::new();
    if shared {
        write!(
            others,
            "[[flows]]\nname = \"other\"\nfrom = \"c\"\nto = \"b\"\nstart = \"{:.0} ms\"\n\
             size = \"{:.0} B\"\n\
             [flows.sender]\n{}[flows.receiver]\nprofile = \"linux\"\n",
            draw.between(1.0, seconds * 500.0),
            size * 4.0,
            sender(&mut draw),
        )
        .unwrap();
    }
    let middle = draw.one_of(&["r1", "r2"]);
    let toml = format!(
        r#"title = "varying {seed}"
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
queue = "{queue:.0} B"
[links.forward]
schedule = {{ {schedule} }}
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
[flows.sender]
{own}
[flows.receiver]
profile = "linux"
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
    // Until the transfer has ended, at the latest.
    let periods = (0..libm::ceil(300.0 / period) as u32).map(|n| f64::from(n) * period);
    let line = periods
        .flat_map(|from| levels.iter().map(move |(at, mbit)| (from + at, mbit * 1e6 / 8.0 * payload)))
        .collect();
    Case {
        seed,
        causes: Vec::new(),
        toml,
        rtt_ms: rtt,
        middle,
        segment: 1538.0 * 8.0 / (rate * 1e6),
        line,
        send_buffer: None,
        program: Program::AtOnce,
        shared,
    }
}

/// Opportunities that come at the rates of `levels`, each by chance within its millisecond.
fn recorded(draw: &mut Draw, levels: &[(f64, f64)], period: f64) -> String {
    let mut all: Vec<String> = Vec::new();
    let whole = libm::round(period * 1e3) as u64;
    for ms in 0..whole {
        let at = levels.partition_point(|(from, _)| from * 1e3 <= ms as f64);
        let rate = levels.get(at.saturating_sub(1)).map_or(1.0, |(_, mbit)| *mbit);
        let mean = rate * 1e3 / 8.0 / OPPORTUNITY;
        let n = libm::floor(mean) as usize + usize::from(draw.chance(mean - libm::floor(mean)));
        all.extend(std::iter::repeat_n(ms.to_string(), n));
    }
    all.push(whole.to_string());
    format!("opportunities = [{}]", all.join(", "))
}
