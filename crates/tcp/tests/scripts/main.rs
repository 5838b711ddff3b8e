//! Segment scripts with times: what a connection sends, and when. See `script/mod.rs` for the notation.

#[path = "../common/mod.rs"]
mod common;
#[path = "../script/mod.rs"]
mod script;

mod ack_request_limits;
mod ack_requests;
mod as_linux;
mod closing;
mod conformance;
mod congestion_marks;
mod delayed_acks;
mod departures;
mod keep_alive;
mod limits;
mod long_lived;
mod net2;
mod opening;
mod orphans;
mod path;
mod receiving;
mod resuming;
mod sending;
mod transmit_queue;
mod urgent;

use farpace_tcp::config::Settings;
use script::linux;

/// All options on.
fn full() -> Settings {
    Settings { timestamps: Some(true), window_scale: Some(true), ..linux() }
}
