//! Loss recovery of the modern profiles, as segment scripts: RFC 6675, RFC 8985, RFC 9937, RFC 5682, RFC
//! 3522, RFC 2883. See `script/mod.rs` for the notation.

#[path = "../common/mod.rs"]
mod common;
#[path = "../script/mod.rs"]
mod script;

mod aen;
mod counting;
mod rack;
mod spurious;
mod tail_loss_probe;
mod timeout;

use farpace_tcp::config::{Congestion, Profile, Settings};
use farpace_units::Packets;
use script::{Script, plain};

/// A profile with Reno, 1000-byte segments, a first window of ten and a round trip of 10 ms.
fn settings(profile: Profile) -> Settings {
    Settings {
        profile: Some(profile),
        congestion: Some(Congestion::Reno),
        initial_window: Some(Packets::new(10)),
        ..plain()
    }
}

/// A connection with timestamps that has just sent three segments (at 10 ms).
fn timestamped(settings: &Settings) -> Script {
    let settings = Settings { timestamps: Some(true), mss: Some(1012), ..settings.clone() };
    let mut s = Script::connect(&settings);
    s.run(
        "0   > S 0 sackok ts 0/0
         10         < S. 0 ack 1 win 60000 mss 1012 sackok ts 5000/0
         10  > . 1 ack 1
         10         < . 1 ack 1 win 60000 ts 5000/10
         10  ! write 3000
         10  > . 1+1000 ack 1
         10  > . 1001+1000 ack 1
         10  > . 2001+1000 ack 1",
    );
    s
}

/// A connection that has just sent `n` segments (at 10 ms) of `bytes` bytes written.
fn sending(settings: &Settings, bytes: u32, n: u32) -> Script {
    let mut s = Script::established(settings, 60_000);
    s.run(&format!("10 ! write {bytes}"));
    for i in 0..n {
        s.run(&format!("10 > . {}+1000 ack 1", 1 + i * 1000));
    }
    s
}
