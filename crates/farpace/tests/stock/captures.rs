//! tshark on captures of live hosts.

use crate::harness::*;
use farpace::live::Namespace;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;

/// What is wrong in somebody else's eyes.
const COMPLAINTS: &str = "_ws.malformed || _ws.expert.severity == \"Error\" || tcp.checksum.status == \
                          \"Bad\" || ip.checksum.status == \"Bad\" || udp.checksum.status == \"Bad\"";
const BYTES: usize = 3_000_000;

/// Sends to an echo and compares.
fn echoes(on: &Namespace, address: &str) {
    let mut stream = on.within(|| TcpStream::connect(address).unwrap()).unwrap();
    let sent = noise(BYTES);
    let mut reading = stream.try_clone().unwrap();
    let reader = std::thread::spawn(move || {
        let mut got = Vec::new();
        reading.read_to_end(&mut got).unwrap();
        got
    });
    stream.write_all(&sent).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert!(reader.join().unwrap() == sent, "{address}: not what was sent");
}

/// The capture is sound, has all bytes of both directions of so many echoes, and no packet that is longer
/// than the MTU.
fn is_sound(capture: &Path, what: &str, echoes: usize) {
    // Linux writes a checksum of 0 as 0xffff where it works it out late (`skb_checksum_help`), as only UDP
    // must: one of its packets in 65,536.
    let complaints = format!("({COMPLAINTS}) && !(tcp.dstport == 7 && tcp.checksum == 0xffff)");
    let fields = ["frame.number", "frame.time_relative", "_ws.col.Info", "_ws.expert.message"];
    assert_eq!(tshark_says(capture, &complaints, &fields), "", "{what}");
    assert_eq!(tshark(capture, "frame.len > 1514"), 0, "{what}: longer than the MTU");
    let data = tshark(capture, "tcp.len > 0");
    let least = (echoes * 2 * BYTES).div_ceil(1460) as u64;
    assert!(data >= least, "{what}: {data} segments of at least {least}");
    for way in ["tcp.srcport == 7 && tcp.len > 0", "tcp.dstport == 7 && tcp.len > 0", "tcp.flags.fin == 1"] {
        assert!(tshark(capture, way) > 0, "{what}: {way}");
    }
}

/// `farpace up` on a machine with this capture, once it is up.
fn up(on: &Namespace, options: &[&str], capture: &Path) -> Running {
    let all = [&[FARPACE, "up", "--pcap", capture.to_str().unwrap()], options].concat();
    Running::saying(on, &all, Path::new("/"), "Ctrl-C ends it")
}

/// Breaks: whoever looks into a capture of a host on TUN sees bad checksums and giants that never were on a
/// line.
#[test]
fn a_capture_on_tun_is_readable() {
    if !has(&["tshark"]) {
        return;
    }
    let Some(machine) = machine("cap") else { return };
    let folder = tempfile::tempdir().unwrap();
    for (what, more) in [("super-segments", None), ("single packets", Some("--no-offload"))] {
        let file = folder.path().join("up.pcapng");
        let options = ["--tun", "st0", "--addr", "10.77.0.2/24", "--addr", "fd77::2/64"];
        let host = up(&machine, &[&options[..], more.as_slice()].concat(), &file);
        echoes(&machine, "10.77.0.2:7");
        echoes(&machine, "[fd77::2]:7");
        host.signal("-INT");
        assert_eq!(host.ends(), Some(0));
        is_sound(&file, what, 2);
        assert!(tshark(&file, "ipv6 && tcp") > 1000, "{what}");
    }
}

/// Breaks: the same on Ethernet, where loss makes both sides send again.
#[test]
fn a_capture_behind_a_bad_line_is_readable() {
    if !has(&["tshark"]) {
        return;
    }
    let Some((a, b, between)) = machine("a").and_then(|a| Some((a, machine("b")?, machine("m")?))) else {
        return;
    };
    for (host, near) in [(&a, "ea"), (&b, "eb")] {
        let line =
            format!("link add {near} type veth peer name far0 netns {}\nlink set {near} up\n", host.name());
        between.configure(&line).unwrap();
        host.configure("link set far0 up\n").unwrap();
    }
    a.configure("addr add 10.77.1.1/24 dev far0\naddr add fd78::1/64 dev far0 nodad\n").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let line =
        ["emulate", "ea", "eb", "--loss", "0.5%", "--duplicate", "0.2%", "--delay", "200us", "--seed", "4"];
    let _line = Running::start(&between, &[&[FARPACE], &line[..]].concat(), folder.path());
    for (what, more) in [("super-segments", None), ("single packets", Some("--no-offload"))] {
        let file = folder.path().join("up.pcapng");
        let options = ["--iface", "far0", "--addr", "10.77.1.2/24", "--addr", "fd78::2/64"];
        let host = up(&b, &[&options[..], more.as_slice()].concat(), &file);
        listening(&a, "10.77.1.2:7");
        listening(&a, "[fd78::2]:7");
        echoes(&a, "10.77.1.2:7");
        echoes(&a, "[fd78::2]:7");
        host.signal("-INT");
        assert_eq!(host.ends(), Some(0));
        is_sound(&file, what, 2);
        let again =
            "tcp.analysis.retransmission || tcp.analysis.fast_retransmission || tcp.analysis.out_of_order";
        assert!(tshark(&file, again) > 0, "{what}: nothing was lost");
    }
}
