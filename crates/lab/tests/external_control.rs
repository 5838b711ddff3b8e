//! Congestion controls that the program supplies, and runs that stop within bins.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use farpace_lab::scenario::Scenario;
use farpace_lab::{Inputs, Run};
use farpace_tcp::Window;
use farpace_tcp::cc::{AckSample, CongestionControl, Cut};
use farpace_tcp::config::ExternalControl;
use farpace_units::{Instant, Packets, Span};
use std::sync::{Arc, Mutex};

/// Keeps a window of 20 segments, and counts what arrives.
struct TwentySegments {
    flow: String,
    delivered: Arc<Mutex<Vec<(String, u32)>>>,
}

impl CongestionControl for TwentySegments {
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        window.set_cwnd(Packets::new(20));
        self.delivered.lock().unwrap().push((self.flow.clone(), ack.delivered.get()));
    }
    fn ssthresh(&mut self, _: Instant, window: &Window, _: Packets, _: Cut) -> Packets {
        window.ssthresh()
    }
    fn min_cwnd(&self, _: &Window) -> Packets {
        Packets::new(1)
    }
    fn undo_cwnd(&self, window: &Window) -> Packets {
        window.cwnd()
    }
    fn owns_window(&self) -> bool {
        true
    }
    fn wants_rates(&self) -> bool {
        true
    }
    fn name(&self) -> &'static str {
        "external"
    }
}

type Delivered = Arc<Mutex<Vec<(String, u32)>>>;

fn twenty() -> (ExternalControl, Delivered) {
    let delivered = Delivered::default();
    let seen = delivered.clone();
    let control = ExternalControl::new("twenty", move |opening| {
        Box::new(TwentySegments { flow: opening.flow.to_owned(), delivered: seen.clone() })
    });
    (control, delivered)
}

const SCENARIO: &str = r#"
title = "Two hosts"
duration = "5 s"
[hosts.a]
[hosts.b]
[[links]]
name = "wan"
between = ["a", "b"]
rate = "10 Mbit/s"
delay = "20 ms"
[[flows]]
name = "bulk"
from = "a"
to = "b"
size = "1 MB"
sender = { congestion = "twenty" }
[[flows]]
name = "mixed"
from = "a"
to = "b"
size = "1 MB"
count = 2
mix = [{ name = "one", share = 1.0, sender = { congestion = "twenty" } }]
"#;

fn parse(text: &str, controls: &[ExternalControl]) -> Result<Scenario, String> {
    let none = |_: &str| Err("no files".to_owned());
    Scenario::parse_controlled(text, "test.toml", &[], &none, controls).map_err(|error| error.to_string())
}

/// Breaks: the control that a flow names is not the one that sizes its window, or does not know its flow; a
/// run that stops within bins differs from one that does not.
#[test]
fn external_controls_size_windows() {
    let mut all = Vec::new();
    for step in [None, Some(Span::from_micros(3_700)), Some(Span::from_millis(25))] {
        let (control, delivered) = twenty();
        let scenario = parse(SCENARIO, &[control]).unwrap();
        let mut run = Run::new(&scenario, Inputs::default()).unwrap();
        let mut at = Instant::ZERO;
        loop {
            if let Some(step) = step {
                at += step;
                while run.bin_end() <= at && !run.progress().finished {
                    run.advance(None).unwrap();
                }
                if !run.progress().finished {
                    run.advance_within_bin(at).unwrap();
                }
            } else {
                run.advance(None).unwrap();
            }
            if run.progress().finished {
                break;
            }
            let windows: Vec<u32> = run.samples().iter().map(|s| s.sender.cwnd.get()).collect();
            // Before the handshake, after it, and after the first ACK.
            assert!(windows.iter().all(|cwnd| [1, 10, 20].contains(cwnd)), "{windows:?}");
        }
        assert!((0..3).all(|flow| run.is_done(flow)) && !run.is_done(3));
        let seen = delivered.lock().unwrap().clone();
        for flow in ["bulk", "mixed-1", "mixed-2"] {
            let segments: u32 = seen.iter().filter(|(name, _)| name == flow).map(|(_, n)| n).sum();
            assert!((660..=691).contains(&segments), "{flow}: {segments}");
        }
        all.push((seen, run.finish().unwrap().events));
    }
    assert_eq!(all[0].0, all[1].0);
    assert_eq!(all[0], all[2]);
}

/// Breaks: a study, which writes its scenario, runs CUBIC where the scenario names a control of the program's
/// own.
#[test]
fn a_written_scenario_names_its_controls() {
    let (control, _) = twenty();
    let receiver = SCENARIO.replace("share = 1.0,", "share = 1.0, receiver = { congestion = \"twenty\" },");
    for text in [SCENARIO, &receiver] {
        let scenario = parse(text, std::slice::from_ref(&control)).unwrap();
        let written = scenario.to_toml().unwrap();
        assert_eq!(written.matches("\"twenty\"").count(), text.matches("\"twenty\"").count(), "{written}");
        assert!(parse(&written, std::slice::from_ref(&control)).unwrap() == scenario);
    }
}

/// Breaks: names that no control has, without what would be right; profiles that cannot have one.
#[test]
fn unknown_names_are_refused() {
    let (control, _) = twenty();
    let error =
        parse(&SCENARIO.replace("\"twenty\"", "\"twentj\""), std::slice::from_ref(&control)).unwrap_err();
    assert!(error.contains("did you mean \"twenty\"?") && error.contains("cubic"), "{error}");
    let error = parse(SCENARIO, &[]).unwrap_err();
    assert!(error.contains("unknown word \"twenty\""), "{error}");
    let old = SCENARIO.replace("{ congestion", "{ profile = \"newreno\", congestion");
    let error = parse(&old, &[control]).unwrap_err();
    assert!(error.contains("one of the program's own") && error.contains("modern"), "{error}");
}
