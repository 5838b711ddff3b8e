//! A gateway of several threads.

use crate::harness::*;
use std::path::Path;

/// Nanoseconds that each worker thread of a process has run.
fn worker_times(pid: u32) -> Vec<u64> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let read = |path: &Path, name: &str| std::fs::read_to_string(path.join(name)).unwrap_or_default();
    let workers = tasks.filter(|task| read(&task.path(), "comm").starts_with("gateway-"));
    let time = |text: String| text.split(' ').next().unwrap().parse().unwrap();
    workers.map(|task| time(read(&task.path(), "schedstat"))).collect()
}

/// Breaks: the kernel gives the packets of a connection to several threads, so that most are handed over; all
/// connections are in one thread; or bytes, counters, captures or the end of one of the threads are lost.
#[test]
fn connections_are_spread_over_threads() {
    if !has_rights() {
        return;
    }
    const EACH: usize = 500_000;
    let net = Net::new();
    let folder = tempfile::tempdir().unwrap();
    let gateway = net.gateway(&["--threads", "4", "--pcap", folder.path().to_str().unwrap()]);
    assert_eq!(gateway.up["up"]["threads"], 4);
    let mut open = Vec::new();
    for address in [SERVER, SERVER6] {
        let listener = net.listen(address);
        open.extend((0..16).map(|_| net.connect(&listener)));
    }
    std::thread::scope(|scope| {
        for (near, far) in &open {
            scope.spawn(|| exchange(near, far, 0, EACH));
        }
    });
    let status = net.status();
    assert_eq!(status["threads"], 4);
    let totals = &status["totals"];
    assert_eq!((&totals["split"], &totals["connections"]), (&32.into(), &32.into()), "{totals}");
    assert_eq!(status["connections"].as_array().unwrap().len(), 32);
    for way in ["to_wan", "to_lan"] {
        assert_eq!(totals["payload_bytes"][way], 32 * EACH, "{totals}");
    }
    let packets = |what: &str| totals["packets"][what].as_u64().unwrap();
    assert!(packets("handed_over") * 100 <= packets("split"), "{totals}");
    let times = worker_times(gateway.pid());
    assert_eq!(times.len(), 3);
    assert!(times.iter().filter(|time| **time > 5_000_000).count() >= 2, "{times:?}");
    // In the middle of connections.
    let end = gateway.end();
    assert_eq!((&end["handed_over"], &end["connections"]), (&32.into(), &0.into()), "{end}");
    for (near, far) in &open {
        exchange(near, far, EACH, 10_000);
    }
    net.assert_clean();
    // Each side has all connections, and packets in the order of their times.
    for side in ["lan", "wan"] {
        let file = folder.path().join(format!("{side}-000001.pcapng"));
        let explained = net.farpace(&["explain", "--json", file.to_str().unwrap()]);
        let explained: serde_json::Value = serde_json::from_slice(&explained.stdout).unwrap();
        let capture = &explained["captures"][0];
        assert_eq!((&capture["connections"], &capture["damaged"]), (&32.into(), &serde_json::Value::Null));
        assert_eq!(capture["backwards"], 0);
    }
}
