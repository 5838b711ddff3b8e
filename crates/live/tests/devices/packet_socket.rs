//! AF_PACKET on a veth pair with the kernel at the other end.

use crate::bytes_both_ways::{MAC, bring, driver, fetch};
use crate::netns::alone;
use farpace_live::Device;
use farpace_live::device::{DeviceError, PacketConfig, PacketSocket};
use farpace_live::{DriverError, Stats};
use farpace_wire::Packet;
use std::collections::VecDeque;
use std::process::Command;

const KERNEL: &str = "10.77.0.1/24";
const OURS: &str = "10.77.0.2";
const KERNEL6: &str = "fd77::1/64";
const OURS6: &str = "fd77::2";

fn ip(link: &str) {
    let done = Command::new("ip").args(link.split_whitespace()).status().unwrap();
    assert!(done.success(), "ip {link}");
}

/// `k` is the kernel's end, `f` the host's.
fn veth() {
    ip("link add k type veth peer name f");
    ip(&format!("addr add {KERNEL} dev k"));
    ip(&format!("addr add {KERNEL6} dev k nodad"));
    ip("link set k up");
    ip("link set f up");
}

fn config(super_segments: bool) -> PacketConfig {
    PacketConfig { mac: Some(MAC), super_segments, ..PacketConfig::new("f") }
}

fn both_ways(config: PacketConfig, address: &'static str) -> Stats {
    veth();
    let (handle, thread) = driver(&[OURS, OURS6], move || PacketSocket::open(&config).unwrap());
    let begin = std::time::Instant::now();
    fetch(address);
    let out = begin.elapsed();
    bring(address);
    let back = begin.elapsed() - out;
    handle.stop();
    let stats = thread.join().unwrap().unwrap();
    eprintln!("out {out:?}, in {back:?}, {:?}", stats.devices[0]);
    stats
}

/// Breaks: transfers over Ethernet interfaces use super-segments.
#[test]
fn super_segments_cross_both_ways() {
    alone(|| {
        let stats = both_ways(config(true), OURS);
        let device = &stats.devices[0];
        assert!(device.segments_received > 2 * device.received, "the kernel's super-segments come whole");
        assert_eq!((device.malformed, device.refused), (0, 0));
    });
}

/// Breaks: elements that handle single packets, such as an emulator, get no super-segments.
#[test]
fn single_packets_cross_both_ways() {
    alone(|| {
        let stats = both_ways(config(false), OURS);
        let device = &stats.devices[0];
        assert_eq!(device.segments_sent, device.sent, "no super-segment goes out");
        assert_eq!((device.malformed, device.refused), (0, 0));
    });
}

/// Breaks: IPv6 works on Ethernet interfaces.
#[test]
fn ipv6_crosses_both_ways() {
    alone(|| {
        both_ways(config(true), OURS6);
    });
}

/// Breaks: a driver ends with an error when its interface is removed.
#[test]
fn a_removed_interface_ends_the_driver() {
    alone(|| {
        veth();
        let (handle, thread) = driver(&[OURS], || PacketSocket::open(&config(true)).unwrap());
        let _stream = std::net::TcpStream::connect((OURS, 5001)).unwrap();
        ip("link del k");
        let error = thread.join().unwrap().unwrap_err();
        assert!(handle.has_ended());
        assert!(matches!(&error, DriverError::Device { device, .. } if device == "f"), "{error}");
        assert_eq!(error.to_string(), "device `f`: the interface has been removed");
    });
}

/// Breaks: a driver continues after its interface was down.
#[test]
fn an_interface_may_go_down_for_a_while() {
    alone(|| {
        veth();
        let (handle, thread) = driver(&[OURS], || PacketSocket::open(&config(true)).unwrap());
        ip("link set f down");
        std::thread::sleep(std::time::Duration::from_millis(700));
        ip("link set f up");
        fetch(OURS);
        handle.stop();
        thread.join().unwrap().unwrap();
    });
}

/// Breaks: VLAN tags survive a packet socket.
#[test]
fn tags_stay_in_their_frames() {
    alone(|| {
        veth();
        let mut other = PacketSocket::open(&PacketConfig::new("k")).unwrap();
        let mut device = PacketSocket::open(&config(true)).unwrap();
        let frame = [&[2; 12][..], &[0x81, 0, 0, 7, 0x88, 0xb5], &[9; 50]].concat();
        let (mut came, begin) = (Vec::new(), std::time::Instant::now());
        let (mut sent, pause) = (0, std::time::Duration::from_millis(50));
        while came.is_empty() && begin.elapsed().as_secs() < 10 {
            // An interface that has just come up may drop packets.
            if begin.elapsed() >= pause * sent {
                other.send(&mut VecDeque::from([Packet::from_frame(&frame).unwrap()])).unwrap();
                sent += 1;
                assert_eq!(other.counters().sent, u64::from(sent));
            }
            let mut packets = Vec::new();
            device.receive(32, &mut packets).unwrap();
            let ours = packets.iter().find(|packet| packet.macs().0.0 == [2; 6]);
            ours.inspect(|packet| packet.write_frame(&mut came));
        }
        assert_eq!(came, frame);
        assert!(other.counters().sent > 0);
    });
}

/// Breaks: the error of a missing interface names it.
#[test]
fn a_missing_interface_is_named() {
    alone(|| {
        let error = PacketSocket::open(&PacketConfig::new("nowhere0")).err().unwrap();
        assert_eq!(error.to_string(), "cannot find the interface `nowhere0`: No such device (os error 19)");
        veth();
        ip("tuntap add t mode tun");
        let error = PacketSocket::open(&PacketConfig::new("t")).err().unwrap();
        assert!(matches!(error, DeviceError::NotEthernet(_)), "{error}");
        assert!(PacketSocket::open(&PacketConfig::new("f")).is_ok());
    });
}
