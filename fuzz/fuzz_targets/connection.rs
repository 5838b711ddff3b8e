//! Any bytes as what happens to a connection: segments, deadlines, calls. Nothing panics, loops or breaks the
//! contract.

#![no_main]

#[path = "../../crates/tcp/tests/any_bytes/driver.rs"]
mod driver;

use driver::{Driver, decode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (start, ops) = decode(bytes);
    let mut driver = Driver::new(start);
    for op in &ops {
        driver.act(op);
    }
});
