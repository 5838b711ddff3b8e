//! What splitting gains, beside a control group of unsplit connections.

use crate::dashboard::{ask, get};
use crate::harness::*;
use std::net::{TcpListener, TcpStream};

/// Connections with 300 kB to the WAN and 100 kB back, until one of them is split and stays open.
pub fn carry(net: &Net, listener: &TcpListener) -> (TcpStream, TcpStream) {
    for _ in 0..60 {
        let (near, far) = net.connect(listener);
        let sender = send(near.try_clone().unwrap(), 0, 300_000, true);
        receive(&mut far.try_clone().unwrap(), 0, 300_000);
        sender.join().unwrap();
        let sender = send(far, 0, 100_000, true);
        receive(&mut near.try_clone().unwrap(), 0, 100_000);
        sender.join().unwrap();
    }
    loop {
        let before = net.split();
        let both = net.connect(listener);
        exchange(&both.0, &both.1, 0, 50_000);
        if net.split() > before {
            return both;
        }
    }
}

/// Breaks: a share of connections passes that nobody has allowed, or the gain is not shown, in whole or for a
/// group, in the status, its JSON or the metrics.
#[test]
fn what_splitting_gains_is_measured() {
    if !has_rights() {
        return;
    }
    let net = Net::new();
    net.router.configure("link set lo up\n").unwrap();
    for words in [vec!["--control-group", "0.6"], vec!["--control-group", "nan"]] {
        let up = net.farpace(&[&["gateway", "up", "--lan", "lan0", "--wan", "wan0"][..], &words].concat());
        assert_eq!(up.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&up.stderr).contains("0 to 0.5"), "{up:?}");
    }
    for threads in ["1", "3"] {
        let gateway =
            net.gateway(&["--control-group", "0.5", "--threads", threads, "--metrics", "127.0.0.1:9745"]);
        let listener = net.listen(SERVER);
        let both = carry(&net, &listener);
        // Results are taken once a second.
        std::thread::sleep(std::time::Duration::from_millis(2_500));
        let status = net.status();
        assert_eq!(status["control_group"], 0.5);
        let rows = status["gain"].as_array().unwrap();
        let row = rows.iter().find(|row| row["size"] == "100 kB to 1 MB").unwrap();
        assert_eq!(row["direction"], "to_wan");
        let [split, unsplit] = ["split", "unsplit"].map(|group| row[group]["connections"].as_u64().unwrap());
        assert_eq!(split + unsplit, 60, "{row}");
        assert!(unsplit >= 15 && unsplit <= status["totals"]["passed"]["control_group"].as_u64().unwrap());
        let [low, high] = [0, 1].map(|at| row["gain_interval"][at].as_f64().unwrap());
        let gain = row["gain"].as_f64().unwrap();
        assert!(low > 0.0 && low <= gain && gain <= high, "{row}");
        let text = net.farpace(&["gateway", "status"]);
        let text = String::from_utf8_lossy(&text.stdout).into_owned();
        assert!(text.contains("as the control group (50.0 %)") && text.contains(" times ("), "{text}");
        let metrics = ask(&net, "127.0.0.1:9745", &get("localhost", "/metrics", ""));
        let labels = "{direction=\"to_wan\",size=\"100 kB to 1 MB\",group=\"split\"}";
        let line = format!("farpace_gateway_compared_connections{labels} {split}");
        assert!(metrics.contains(&line) && metrics.contains("gain_ratio{"), "{metrics}");
        drop(both);
        gateway.end();
    }
}
