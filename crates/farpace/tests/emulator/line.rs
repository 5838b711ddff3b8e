//! A line between two machines.

use crate::harness::*;
use std::net::UdpSocket;
use std::time::Duration;

/// Breaks: the emulator is another line than was asked for: its rate, its delay.
#[test]
fn a_line_has_its_rate_and_delay_in_real_time() {
    let _alone = alone();
    if !has_rights() {
        return;
    }
    let harness = Harness::new();
    let emulator = harness.emulate(&["--rate", "100mbit", "--delay", "5ms", "--queue", "50ms"]);
    let rtt = round_trip(&harness.a, &harness.b).as_secs_f64();
    assert!((0.010..0.0125).contains(&rtt), "a round trip of {rtt} s");
    let bytes = 25_000_000;
    // The best of three: others may be at work on this machine.
    let took = (0..3).map(|_| transfer(&harness.a, &harness.b, B, bytes)).min().unwrap().as_secs_f64();
    let rate = bytes as f64 * 8.0 / took / 1e6;
    // 1448 of 1538 bytes are payload.
    assert!((85.0..94.2).contains(&rate), "{rate} Mbit/s");
    let summary = summary(emulator);
    let forward = &summary["directions"][0];
    assert!(forward["bytes_out"].as_u64().unwrap() > bytes as u64, "{summary}");
    assert!(summary["accuracy"]["packets"].as_u64().unwrap() > 17_000, "{summary}");
}

/// Breaks: an outage later than ten minutes is refused, because the flags become a scenario with a duration.
#[test]
fn an_outage_may_be_late() {
    let flags = ["emulate", "in0", "out0", "--outage", "15s-15.1s", "--outage", "3540s-3600s", "--print"];
    let scenario = good(farpace(&flags));
    assert!(scenario.contains("duration = \"3600 s\""), "{scenario}");
    assert!(scenario.contains("at = \"3540 s\""), "{scenario}");
}

/// Breaks: bytes are changed, lost or repeated on the way to programs when the line misbehaves; or drops are
/// not counted.
#[test]
fn a_bad_line_spoils_no_byte() {
    let _alone = alone();
    if !has_rights() {
        return;
    }
    let harness = Harness::new();
    let flags = ["--loss", "0.02%", "--reorder", "0.5%", "--reorder-by", "1ms", "--duplicate", "0.5%"];
    let emulator =
        harness.emulate(&[&flags[..], &["--corrupt", "0.02%", "--delay", "200us", "--seed", "3"]].concat());
    transfer(&harness.a, &harness.b, B, 100_000_000);
    transfer(&harness.b, &harness.a, A, 10_000_000);
    let summary = summary(emulator);
    let drops = summary["drops"].as_array().unwrap();
    let lost = drops.iter().find(|drop| drop["place"] == "line.forward.loss").unwrap();
    assert!(lost["packets"].as_u64().unwrap() > 3, "{summary}");
    assert_eq!(lost["cause"], "loss");
    let forward = &summary["directions"][0];
    assert!(
        forward["packets_out"].as_u64() > forward["packets_in"].as_u64(),
        "more are doubled than lost: {summary}"
    );
}

/// Breaks: a second emulator on the same interfaces, by which each frame arrives twice; or an emulator whose
/// interface goes says nothing of what it has measured.
#[test]
fn an_interface_has_one_emulator_and_its_end_is_told() {
    let _alone = alone();
    if !has_rights() {
        return;
    }
    let harness = Harness::new();
    let emulator = harness.emulate(&["--delay", "1ms"]);
    for words in [
        &["emulate", "eb", "tap:other"][..],
        &["pacing", "up", "--iface", "ea", "--rate", "1mbit"],
        &["nics", "up", "--addr", "10.9.0.1/24", "--nic", "ea"],
    ] {
        let second = command(&harness.between, words).output().unwrap();
        let said = String::from_utf8_lossy(&second.stderr);
        assert!(second.status.code() == Some(2) && said.contains("is in use by process"), "{said}");
        assert!(said.contains("emulate ea eb"), "{said}");
    }
    transfer(&harness.a, &harness.b, B, 1_000_000);
    harness.between.configure("link del ea\n").unwrap();
    let output = emulator.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("the network has stopped"), "{said}");
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(summary["directions"][0]["bytes_out"].as_u64().unwrap() > 1_000_000, "{summary}");
}

/// Breaks: packets vanish in the emulator, or it counts others than there were.
#[test]
fn every_datagram_is_delivered_or_counted() {
    let _alone = alone();
    if !has_rights() {
        return;
    }
    let harness = Harness::new();
    let emulator = harness.emulate(&["--loss", "10%"]);
    let far = harness.b.within(|| UdpSocket::bind((B, PORT)).unwrap()).unwrap();
    far.set_read_timeout(Some(Duration::from_millis(1_000))).unwrap();
    let reader = std::thread::spawn(move || {
        let mut received = 0;
        while far.recv(&mut [0; 128]).is_ok() {
            received += 1;
        }
        received
    });
    let near = harness.a.within(|| UdpSocket::bind((A, 0)).unwrap()).unwrap();
    let sent = 5_000;
    for n in 0..sent {
        near.send_to(&[0; 100], (B, PORT)).unwrap();
        if n % 20 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let received = reader.join().unwrap();
    let summary = summary(emulator);
    let drops = summary["drops"].as_array().unwrap();
    let lost =
        drops.iter().find(|drop| drop["place"] == "line.forward.loss").unwrap()["packets"].as_u64().unwrap();
    assert!((400..600).contains(&lost), "{summary}");
    // What the kernel says of itself over IPv6 may be lost, too.
    assert!((sent..sent + 10).contains(&(received + lost)), "{received} received, {lost} lost: {summary}");
}
