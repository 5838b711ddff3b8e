//! How connections end.

use crate::harness::*;
use std::io::ErrorKind;
use std::time::Duration;

// Breaks: a refused connection looks accepted, or a reset or a FIN of one host does not reach the other.
#[test]
fn resets_and_fins_pass() {
    if !has_rights() {
        return;
    }
    let net = Net::new();
    let gateway = net.gateway(&[]);
    let refused = net.try_connect(SERVER).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    let listener = net.listen(SERVER);
    assert_endings_pass(|| net.connect(&listener));
    let since = std::time::Instant::now();
    while net.status()["totals"]["connections"] != 0 {
        assert!(since.elapsed() < Duration::from_secs(3), "{}", net.status());
        std::thread::sleep(Duration::from_millis(50));
    }
    gateway.end();
}
