//! Changes to the machine are reverted, however the process ends.

use crate::netns::alone;
use farpace_live::system::{
    Journal, Offload, Setup, SystemError, SystemInterface, clean, in_namespace, journals, offload,
    state_folder, sysctl,
};
use std::io::ErrorKind;
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// The state of this thread's namespace: interfaces with states, MTUs and addresses, and routes.
fn everything() -> String {
    let run = |link: &str| {
        let output = Command::new("ip").args(link.split_whitespace()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    // Without values that change by themselves: indices, link-local addresses, and the queue that appears
    // when an interface first comes up.
    let shown =
        run("-o link show") + &run("-o addr show scope global") + &run("route show table all type unicast");
    let shown = shown.replace("qdisc noqueue", "qdisc noop");
    shown
        .lines()
        .filter(|link| !link.contains("fe80"))
        .map(|link| link.split(": ").skip(1).collect::<String>() + "\n")
        .collect()
}

fn names(what: &str) -> (String, String) {
    let pid = std::process::id();
    (format!("h{pid}{what}a"), format!("h{pid}{what}b"))
}

/// Makes changes of all kinds; returns the names of the two namespaces it creates.
fn set_all(setup: &Setup, what: &str) -> (String, String) {
    let (left, right) = names(what);
    setup.namespace(&left).unwrap();
    setup.namespace(&right).unwrap();
    let (a, b) = (SystemInterface::within(&left, "a"), SystemInterface::within(&right, "b"));
    setup.veth(&a, &b).unwrap();
    let (c, d) = (SystemInterface::here("c"), SystemInterface::within(&left, "d"));
    setup.veth(&c, &d).unwrap();
    for (end, address) in [(&a, "10.9.0.1"), (&b, "10.9.0.2"), (&c, "fd09::1")] {
        setup.mtu(end, 1400).unwrap();
        setup.up(end).unwrap();
        setup.address(end, address.parse().unwrap(), 24).unwrap();
    }
    setup.up(&d).unwrap();
    setup.route(&a, "default", Some("10.9.0.2".parse().unwrap())).unwrap();
    setup.route(&c, "fd10::/64", None).unwrap();
    setup.qdisc(&a, "tbf rate 100mbit burst 32k limit 1m").unwrap();
    setup.bridge(&SystemInterface::within(&left, "br"), &["d"]).unwrap();
    setup.sysctl(Some(&right), "net.ipv4.ip_forward", "1").unwrap();
    assert!(setup.offload_off(&a).unwrap().contains(&Offload::Tso));
    (left, right)
}

/// Breaks: a program that ends leaves no interface, address or namespace behind.
#[test]
fn changes_are_reverted() {
    alone(|| {
        let before = everything();
        let setup = Setup::begin("test").unwrap();
        let (left, right) = set_all(&setup, "x");
        let look = || Ok((sysctl::read("net.ipv4.ip_forward")?, offload("b", Offload::Tso).unwrap()));
        assert_eq!(in_namespace(Some(&right), look).unwrap(), ("1".to_owned(), true));
        assert!(!in_namespace(Some(&left), || Ok(offload("a", Offload::Tso).unwrap())).unwrap());
        // A refused connection means that the host was reached.
        let reach = || Ok(TcpStream::connect("10.9.0.2:9").unwrap_err().kind());
        assert_eq!(in_namespace(Some(&left), reach).unwrap(), ErrorKind::ConnectionRefused);
        assert_ne!(everything(), before);
        setup.undo().unwrap();
        assert_eq!(everything(), before);
        assert!(
            !SystemInterface::within(&left, "lo").exists() && !SystemInterface::within(&right, "lo").exists()
        );
    });
}

/// Breaks: the journal of an interface that has vanished can never be cleaned; or a later interface of the
/// same name gets the settings of the former one.
#[test]
fn a_vanished_interface_needs_no_reversal() {
    alone(|| {
        let outer = Setup::begin("outer").unwrap();
        let (e, f) = (SystemInterface::here("e"), SystemInterface::here("f"));
        outer.veth(&e, &f).unwrap();
        let setup = Setup::begin("test").unwrap();
        setup.sysctl(None, "net.ipv4.conf.e.arp_ignore", "8").unwrap();
        setup.sysctl(None, "net.ipv4.conf.f.arp_ignore", "8").unwrap();
        setup.mtu(&e, 1400).unwrap();
        outer.undo().unwrap();
        let other = Setup::begin("other").unwrap();
        other.veth(&e, &SystemInterface::here("g")).unwrap();
        std::fs::write("/proc/sys/net/ipv4/conf/e/arp_ignore", "3").unwrap();
        other.mtu(&e, 1300).unwrap();
        setup.undo().unwrap();
        assert_eq!(sysctl::read("net.ipv4.conf.e.arp_ignore").unwrap(), "3");
        assert!(everything().contains("mtu 1300"), "{}", everything());
        other.undo().unwrap();
    });
}

/// Breaks: an existing interface is restored to its former state.
#[test]
fn existing_interfaces_are_restored() {
    alone(|| {
        let outer = Setup::begin("outer").unwrap();
        let (e, f) = (SystemInterface::here("e"), SystemInterface::here("f"));
        outer.veth(&e, &f).unwrap();
        outer.address(&e, "10.8.0.1".parse().unwrap(), 24).unwrap();
        let state = || {
            (
                everything(),
                sysctl::read("net.ipv4.ip_forward").unwrap(),
                Offload::ALL.map(|o| offload("e", o).unwrap()),
            )
        };
        let before = state();
        {
            let setup = Setup::begin("inner").unwrap();
            setup.offload_off(&e).unwrap();
            setup.mtu(&e, 9000).unwrap();
            setup.up(&e).unwrap();
            setup.up(&f).unwrap();
            setup.address(&e, "10.8.0.7".parse().unwrap(), 24).unwrap();
            setup.sysctl(None, "net.ipv4.ip_forward", "1").unwrap();
            setup.qdisc(&e, "pfifo limit 10").unwrap();
            assert_ne!(state(), before);
        }
        assert_eq!(state(), before);
    });
}

/// Breaks: the changes of a killed process can be reverted, without those that others have made since.
#[test]
fn changes_of_a_killed_process_are_reverted() {
    alone(|| {
        let before = everything();
        let setup = Setup::begin("dead").unwrap();
        let (left, _) = set_all(&setup, "y");
        // As after a kill: the file names a process that has ended.
        let mut journal = journals().into_iter().find(|journal| journal.steps == setup.steps()).unwrap();
        assert!(journal.is_alive() && !journal.is_left_over());
        std::mem::forget(setup);
        let mut dead = Command::new("true").spawn().unwrap();
        dead.wait().unwrap();
        journal.pid = dead.id();
        std::fs::write(&journal.path, serde_json::to_vec(&journal).unwrap()).unwrap();
        let mut journal = journals().into_iter().find(|other| other.path == journal.path).unwrap();
        assert!(journal.is_left_over());
        clean(&mut journal).unwrap();
        // The kernel removes a namespace and its veth peers asynchronously.
        let begin = Instant::now();
        while everything() != before && begin.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(everything(), before);
        assert!(!SystemInterface::within(&left, "lo").exists() && !journal.path.exists());
        // A second run is harmless.
        clean(&mut journal).unwrap();

        let living = Setup::begin("living").unwrap();
        living.veth(&SystemInterface::here("c"), &SystemInterface::here("d")).unwrap();
        let stale = state_folder().join(format!("{}-stale.json", dead.id()));
        let mut stale = Journal { name: "stale".into(), steps: living.steps(), path: stale, ..journal };
        clean(&mut stale).unwrap();
        assert!(SystemInterface::here("c").exists(), "a living process has one of that name now");
    });
}

/// Breaks: the changes of a killed process are reverted though a running process has an interface of the same
/// name in another network namespace.
#[test]
fn the_same_name_elsewhere_is_another_interface() {
    alone(|| {
        let c = SystemInterface::here("c");
        let setup = Setup::begin("dead").unwrap();
        setup.veth(&c, &SystemInterface::here("d")).unwrap();
        // The other test with this name may run now.
        let home = std::fs::metadata("/proc/thread-self/ns/net").unwrap().ino();
        let mut journal = journals().into_iter().find(|journal| journal.home == home).unwrap();
        std::mem::forget(setup);
        let (ready, end) = (Barrier::new(2), Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                alone(|| {
                    let namesake = Setup::begin("namesake").unwrap();
                    namesake.veth(&c, &SystemInterface::here("d")).unwrap();
                    ready.wait();
                    end.wait();
                    assert!(c.exists());
                });
            });
            ready.wait();
            clean(&mut journal).unwrap();
            assert!(!c.exists());
            end.wait();
        });
    });
}

/// Breaks: a name in use is refused, so that no program removes the interface of another.
#[test]
fn names_in_use_are_refused() {
    alone(|| {
        let setup = Setup::begin("test").unwrap();
        let (c, d, e) = (SystemInterface::here("c"), SystemInterface::here("d"), SystemInterface::here("e"));
        setup.veth(&c, &d).unwrap();
        let second = Setup::begin("test").unwrap();
        let error = second.veth(&e, &c).unwrap_err();
        assert_eq!(error.to_string(), "there is already an interface `c`: choose another name, or remove it");
        let again = setup
            .address(&c, "10.1.0.1".parse().unwrap(), 24)
            .and_then(|()| second.address(&c, "10.1.0.1".parse().unwrap(), 24));
        assert!(matches!(again, Err(SystemError::Tool { .. })), "{again:?}");
        assert!(second.steps().is_empty());
        assert!(matches!(second.namespace("a/b"), Err(SystemError::BadName(_))));
        drop(second);
        assert!(c.exists() && everything().contains("10.1.0.1/24"));
    });
}
