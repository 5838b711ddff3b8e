//! How connections end.

use crate::harness::*;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
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
    for by_client in [true, false] {
        let (near, far) = net.connect(&listener);
        exchange(&near, &far, 0, 1000);
        let (own, mut other) = if by_client { (near, far) } else { (far, near) };
        nix::sys::socket::setsockopt(
            &own,
            nix::sys::socket::sockopt::Linger,
            &nix::libc::linger { l_onoff: 1, l_linger: 0 },
        )
        .unwrap();
        drop(own);
        let ended = other.read(&mut [0; 10]).unwrap_err();
        assert_eq!(ended.kind(), ErrorKind::ConnectionReset, "by the client: {by_client}");
    }
    // Half-closed: the other direction goes on.
    for by_client in [true, false] {
        let (near, far) = net.connect(&listener);
        let (mut own, mut other) = if by_client { (near, far) } else { (far, near) };
        own.write_all(b"question").unwrap();
        own.shutdown(Shutdown::Write).unwrap();
        let mut text = String::new();
        other.read_to_string(&mut text).unwrap();
        assert_eq!(text, "question");
        let sender = send(other.try_clone().unwrap(), 0, 3_000_000, true);
        receive(&mut own, 0, 3_000_000);
        assert_eq!(own.read(&mut [0; 10]).unwrap(), 0);
        sender.join().unwrap();
    }
    let since = std::time::Instant::now();
    while net.status()["totals"]["connections"] != 0 {
        assert!(since.elapsed() < Duration::from_secs(3), "{}", net.status());
        std::thread::sleep(Duration::from_millis(50));
    }
    gateway.end();
}
