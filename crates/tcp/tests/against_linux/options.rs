//! The options of profile `linux` and those of the kernel: the same bytes, but for what clocks and blocks
//! say.

use super::engine;
use super::peer::{encoded, form};
use super::script::{App, FULL, Script};
use super::{ensure, with_kernel};
use farpace_tcp::config::{Profile, Settings};
use farpace_tcp::{Connection, Ports};
use farpace_units::{Instant, Seq};

/// The receive buffer of the profile; newer kernels have a larger one by themselves.
const RMEM: &str = "4096 131072 6291456";

fn linux() -> Settings {
    Settings { profile: Some(Profile::Linux), ..Settings::default() }
}

/// Each form once, in the order of first appearance: how many ACKs there are is another test's business.
fn distinct(options: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut seen = Vec::new();
    for form in options {
        if !seen.contains(form) {
            seen.push(form.clone());
        }
    }
    seen
}

/// Breaks: the SYN of profile `linux` can be told from one of Linux.
#[test]
fn syn() {
    for switches in 0..8 {
        let [timestamps, sack, window_scale] = [1, 2, 4].map(|bit| switches & bit != 0);
        let on = |on: bool| if on { "1" } else { "0" };
        let settings = Settings {
            timestamps: Some(timestamps),
            sack: Some(sack),
            window_scale: Some(window_scale),
            ..linux()
        };
        let ports = Ports { local: 1, remote: 2 };
        let mut ours = Connection::connect(Instant::ZERO, &settings.resolve().unwrap(), ports, Seq::new(7));
        let mut out = Vec::new();
        ours.poll_transmit(Instant::ZERO, &mut out, 1);
        let ours = form(&encoded(&out[0].segment.header));
        with_kernel(|kernel| {
            kernel.set("tcp_rmem", RMEM);
            kernel.set("tcp_timestamps", on(timestamps));
            kernel.set("tcp_sack", on(sack));
            kernel.set("tcp_window_scaling", on(window_scale));
            let theirs = form(&kernel.syn());
            ensure(theirs == ours, || format!("kernel {theirs:?}, ours {ours:?}"))
        });
    }
}

/// Breaks: the SYN-ACK, ACKs, data and SACKs of profile `linux` can be told from those of Linux.
#[test]
fn answers() {
    for (timestamps, sack) in [(true, true), (true, false), (false, true), (false, false)] {
        let at = |n: i32| n * FULL as i32;
        let script = Script { timestamps, sack, ..Script::new(App::Answers(1)) }
            .segment(0, 0, FULL)
            .segment(20, at(2), FULL)
            .segment(40, at(4), FULL)
            .segment(60, at(6), FULL);
        with_kernel(|kernel| {
            kernel.set("tcp_rmem", RMEM);
            let theirs = kernel.run(&script);
            let ours = distinct(&engine::play(&script, &theirs.times, &linux()).options);
            let theirs = distinct(&theirs.options);
            ensure(theirs == ours, || format!("kernel {theirs:?}, ours {ours:?}"))?;
            // SYN-ACK, ACK; and one, two and three blocks.
            ensure(ours.len() == if sack { 5 } else { 2 }, || format!("{ours:?}"))
        });
    }
}
