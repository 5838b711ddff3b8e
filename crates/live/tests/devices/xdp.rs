//! AF_XDP on a veth pair with the kernel or a packet socket at the other end.

use crate::bytes_both_ways::{MAC, bring, driver, fetch};
use crate::netns::alone;
use farpace_live::Device;
use farpace_live::DriverError;
use farpace_live::device::{DeviceError, PacketConfig, PacketSocket, XdpConfig, XdpMode, XdpSocket};
use farpace_wire::Packet;
use std::collections::VecDeque;
use std::process::Command;
use std::time::{Duration, Instant};

const OURS: &str = "10.77.0.2";

fn ip(link: &str) {
    let done = Command::new("ip").args(link.split_whitespace()).status().unwrap();
    assert!(done.success(), "ip {link}");
}

/// `k` is the kernel's end, `f` the host's, with this number of queues.
fn veth(queues: u32) {
    let words = format!("numrxqueues {queues} numtxqueues {queues}");
    ip(&format!("link add k {words} type veth peer name f {words}"));
    ip("addr add 10.77.0.1/24 dev k");
    ip("link set k up");
    ip("link set f up");
}

fn config(mode: Option<XdpMode>) -> XdpConfig {
    XdpConfig { mac: Some(MAC), promiscuous: true, mode, ..XdpConfig::new("f") }
}

fn both_ways(mode: Option<XdpMode>, queues: u32, expected: XdpMode) {
    veth(queues);
    let (handle, thread) = driver(&[OURS], move || {
        let device = XdpSocket::open(&config(mode)).unwrap();
        assert_eq!((device.mode(), device.queues()), (expected, queues as usize));
        device
    });
    let begin = Instant::now();
    fetch(OURS);
    let out = begin.elapsed();
    bring(OURS);
    let back = begin.elapsed() - out;
    handle.stop();
    let stats = thread.join().unwrap().unwrap();
    let device = &stats.devices[0];
    eprintln!("out {out:?}, in {back:?}, {device:?}");
    assert_eq!((device.malformed, device.refused), (0, 0));
    assert_eq!(device.segments_sent, device.sent, "frames alone go out");
}

/// Breaks: transfers over AF_XDP work with a kernel that leaves checksums and segmentation to the interface.
#[test]
fn a_transfer_crosses_both_ways() {
    alone(|| both_ways(None, 1, XdpMode::Copy));
}

/// Breaks: flows that a driver distributes over several queues work.
#[test]
fn a_transfer_crosses_several_queues() {
    alone(|| both_ways(None, 3, XdpMode::Copy));
}

/// Frames of all lengths pass from `from` to `to` unchanged, and are counted.
fn cross(from: &mut dyn Device, to: &mut dyn Device) {
    let frame = |len: usize| {
        let mut frame = [&MAC.0[..], &[2, 0, 0, 0, 0, 9], &[0x88, 0xb5]].concat();
        frame.extend((0..len).map(|at| (at * 31 + len) as u8));
        frame
    };
    let sent: Vec<_> = (46..=1500).map(frame).collect();
    let before = (from.counters().sent, to.counters().received);
    let (mut came, begin) = (Vec::new(), Instant::now());
    for some in sent.chunks(100) {
        let mut packets: VecDeque<_> = some.iter().map(|bytes| Packet::from_frame(bytes).unwrap()).collect();
        let until = came.len() + some.len();
        while came.len() < until && begin.elapsed() < Duration::from_secs(10) {
            from.send(&mut packets).unwrap();
            let mut packets = Vec::new();
            to.receive(32, &mut packets).unwrap();
            for packet in &packets {
                let mut bytes = Vec::new();
                packet.write_frame(&mut bytes);
                // Ignore frames that the kernel sends on its own.
                if bytes[12..14] == [0x88, 0xb5] {
                    came.push(bytes);
                }
            }
        }
    }
    assert!(came == sent, "{} of {} frames came as they were", came.len(), sent.len());
    assert_eq!(from.counters().sent - before.0, sent.len() as u64);
    assert!(to.counters().received - before.1 >= sent.len() as u64);
}

/// Breaks: AF_XDP does not change frames, and its counters are exact.
#[test]
fn frames_of_all_lengths_cross_as_they_are() {
    for mode in [XdpMode::Copy, XdpMode::Generic] {
        alone(|| {
            veth(1);
            let mut ours = XdpSocket::open(&config(Some(mode))).unwrap();
            assert_eq!(ours.mode(), mode);
            let mut other = PacketSocket::open(&PacketConfig {
                promiscuous: true,
                bypass_queue: true,
                ..PacketConfig::new("k")
            })
            .unwrap();
            cross(&mut ours, &mut other);
            cross(&mut other, &mut ours);
            assert_eq!(ours.counters().overflowed, 0);
        });
    }
}

/// Breaks: losses for lack of memory are counted.
#[test]
fn what_the_system_drops_is_counted() {
    alone(|| {
        veth(1);
        let ours = XdpSocket::open(&config(None)).unwrap();
        let mut other = PacketSocket::open(&PacketConfig::new("k")).unwrap();
        let frame = [&MAC.0[..], &[2, 0, 0, 0, 0, 9], &[0x88, 0xb5], &[7; 100]].concat();
        let packet = Packet::from_frame(&frame).unwrap();
        let begin = Instant::now();
        while ours.counters().overflowed == 0 && begin.elapsed() < Duration::from_secs(10) {
            let mut packets: VecDeque<_> = std::iter::repeat_n(packet.clone(), 500).collect();
            other.send(&mut packets).unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(ours.counters().overflowed > 0);
    });
}

/// Breaks: a driver ends with an error when its interface is removed.
#[test]
fn a_removed_interface_ends_the_driver() {
    alone(|| {
        veth(1);
        let (handle, thread) = driver(&[OURS], || XdpSocket::open(&config(None)).unwrap());
        let _stream = std::net::TcpStream::connect((OURS, 5001)).unwrap();
        ip("link del k");
        let error = thread.join().unwrap().unwrap_err();
        assert!(handle.has_ended());
        assert!(matches!(&error, DriverError::Device { device, .. } if device == "f"), "{error}");
        assert_eq!(error.to_string(), "device `f`: the interface has been removed");
    });
}

/// Breaks: the system receives frames again after the program has ended, and two programs cannot take the
/// same interface.
#[test]
fn an_interface_is_taken_and_released() {
    alone(|| {
        veth(1);
        let program = || {
            let shown = Command::new("ip").args(["link", "show", "f"]).output().unwrap();
            String::from_utf8(shown.stdout).unwrap().contains("prog/xdp")
        };
        let first = XdpSocket::open(&config(None)).unwrap();
        assert!(program());
        let error = XdpSocket::open(&config(None)).err().unwrap();
        assert!(error.to_string().starts_with("cannot attach an XDP program to `f`: "), "{error}");
        drop(first);
        assert!(!program());
        let again = Instant::now();
        // The system detaches the old socket from its queue asynchronously.
        while let Err(error) = XdpSocket::open(&config(None)) {
            assert!(again.elapsed() < Duration::from_secs(5), "{error}");
            std::thread::sleep(Duration::from_millis(10));
        }
    });
}

/// Breaks: the error names the reason why AF_XDP is not available.
#[test]
fn reasons_for_failure_are_reported() {
    alone(|| {
        let error = XdpSocket::open(&XdpConfig::new("nowhere0")).err().unwrap();
        assert_eq!(error.to_string(), "cannot find the interface `nowhere0`: No such device (os error 19)");
        veth(1);
        ip("tuntap add t mode tun");
        let error = XdpSocket::open(&XdpConfig::new("t")).err().unwrap();
        assert!(matches!(error, DeviceError::NotEthernet(_)), "{error}");
        ip("link set f mtu 9000");
        let error = XdpSocket::open(&config(None)).err().unwrap();
        assert_eq!(
            error.to_string(),
            "AF_XDP takes packets of up to 3818 B, but `f` has an MTU of 9000 B: `ip link set dev f mtu 3818`"
        );
        ip("link set f mtu 1500");
        assert!(XdpSocket::open(&config(Some(XdpMode::ZeroCopy))).is_err(), "a veth has none");
    });
}
