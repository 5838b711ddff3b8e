//! The worst paths that searches have found for control `farpace`: what it brings there is not given up
//! again. Each is run in virtual time and repeats exactly.

#![allow(clippy::unwrap_used, reason = "a test")]

use farpace_lab::scenario::Scenario;
use farpace_lab::{Inputs, Run};
use farpace_papers::search::{ListedPath, PathPoint};
use farpace_papers::statistics::jain;
use farpace_tcp::config::Congestion;

/// Paths as `bin control --path` takes them, and the least goodput in Mbit/s: about a tenth below what it
/// was when the path was added. Beside it what it was before bursts of loss were told from a policer, and
/// the better one of `bbr3` and `cubic`.
const PATHS: [(&str, f64); 16] = [
    // 2.8, 38
    (
        "rate_mbit_s=71.1 rtt_ms=38.5 queue_bdp=0.217 loss_percent=0.028 burst_loss_percent=2.40 \
         ack_thinning=2",
        50.0,
    ),
    // 1.5, 15: bursts of ten packets are longer than the window, and end by packets that are sent, one for
    // each timeout
    (
        "rate_mbit_s=19.5 rtt_ms=8.76 queue_bdp=3.13 burst_loss_percent=0.479 rate_step=0.661 step_s=0.528",
        1.3,
    ),
    // 4.6, 23
    (
        "rate_mbit_s=32.5 rtt_ms=106 queue_bdp=2.54 bit_errors=8.87e-7 jitter_of_rtt=0.032 \
         delay_step_of_rtt=0.817 step_s=8.55 policer_ms=160",
        20.0,
    ),
    // 2.1, 5.4
    ("rate_mbit_s=7.55 rtt_ms=226 queue_bdp=2.16 burst_loss_percent=2.94", 5.7),
    // 32, 40
    ("rate_mbit_s=50 rtt_ms=40 queue_bdp=1 loss_percent=1", 42.0),
    // 14, 62
    ("rate_mbit_s=103 rtt_ms=24.5 queue_bdp=0.135 loss_percent=1.57 ack_delay_ms=190", 85.0),
    // 1.7, 22
    ("rate_mbit_s=27.3 rtt_ms=41.1 queue_bdp=2.42 burst_loss_percent=1.38 outage_ms=211", 19.0),
    // 14, 32
    (
        "rate_mbit_s=46.3 rtt_ms=27.4 queue_bdp=2.82 burst_loss_percent=0.878 delay_step_of_rtt=0.543 \
         step_s=1.32 outage_ms=719",
        24.0,
    ),
    // 2.3, 3.9
    (
        "rate_mbit_s=6.27 rtt_ms=242 queue_bdp=3.97 burst_loss_percent=1.05 rate_step=0.466 step_s=0.969 \
         ack_every=3",
        2.5,
    ),
    // 12, 45: jitter of 44 ms, and one ACK for 22 segments
    ("rate_mbit_s=52.8 rtt_ms=239 queue_bdp=1.12 jitter_of_rtt=0.184 ack_thinning=11", 10.5),
    // 2.2, 4.4: the window after a loss did not count the segments that wait for the next ACK
    ("rate_mbit_s=5 rtt_ms=40 queue_bdp=1 ack_every=16 ack_delay_ms=200", 3.7),
    // 3.2, 9.7: a queue of ACKs after a loss passed for jitter
    (
        "rate_mbit_s=13 rtt_ms=50.5 queue_bdp=0.108 back_slower=65.4 back_queue_packets=600 ack_thinning=3 \
         ack_delay_ms=41.5",
        5.3,
    ),
    // 4.9, 10: the tick of the peer's clock passed for a queue of data while ACKs waited
    ("rate_mbit_s=20 rtt_ms=60 queue_bdp=1 back_slower=135 back_queue_packets=100", 9.9),
    // 10.2, 53: beside CUBIC, whose slow start passed for a longer path
    ("rate_mbit_s=71.6 rtt_ms=150 queue_bdp=1.76 neighbour=cubic neighbour_start_s=2 neighbour_rtt=1", 21.5),
    // 1.19, 1.33: a policer that lets less than a segment pass in a round trip
    ("rate_mbit_s=1.39 rtt_ms=7 policer_ms=40", 1.23),
    // 1.01, 1.19: the same, with one ACK for ten segments
    ("rate_mbit_s=1.39 rtt_ms=6.79 queue_bdp=0.28 policer_ms=8.19 ack_every=10", 1.1),
];

/// Breaks: goodput of `farpace` on the worst paths that were found, most of them with bursts of loss
/// that passed for a policer.
#[test]
fn worst_paths_do_not_come_back() {
    for (text, least) in PATHS {
        let point: PathPoint = text.parse().unwrap();
        let path = ListedPath { group: "found", point };
        let numbers = path.measure(Congestion::Farpace, &|| false).unwrap();
        assert!(numbers.goodput_mbit_s >= least, "{text}: {:.2} Mbit/s", numbers.goodput_mbit_s);
    }
}

/// Breaks: two flows behind a queue of ten packets, a fortieth of what the path holds: 8.94 and 0.38 Mbit/s
/// after the first minute, because the first learned the other's losses as the path's, and the other took
/// the queue for a policer.
#[test]
fn two_flows_share_a_very_short_queue() {
    let text = include_str!("../../../scenarios/gallery/shared.toml");
    let overrides = [
        ("links.trunk.rate", "10 Mbit/s"),
        ("links.trunk.delay", "250 ms"),
        ("links.trunk.queue", "15 kB"),
        ("duration", "180 s"),
        ("trace.bin", "500 ms"),
        ("flows.*.size", "1 GB"),
        ("flows.*.sender.profile", "farpace"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()));
    let scenario = Scenario::parse_with(text, "shared.toml", &overrides).unwrap();
    let mut run = Run::new(&scenario, Inputs::default()).unwrap();
    let mut late = [0.0; 2];
    loop {
        let finished = run.advance(None).unwrap().finished;
        for sample in run.samples().iter().filter(|sample| sample.time.as_nanos() > 60_000_000_000) {
            late[sample.flow] += sample.delivered.get() as f64;
        }
        if finished {
            break;
        }
    }
    assert!(jain(&late) >= 0.9, "{late:?}");
    assert!(late.iter().sum::<f64>() * 8.0 / 120.0 >= 8.5e6, "{late:?}");
}
