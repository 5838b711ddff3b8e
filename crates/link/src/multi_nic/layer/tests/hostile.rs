//! Forged frames during a transfer.

use super::bench::{Net, PROBES, ip, mac, ms};
use crate::multi_nic::arp::ArpRefusal;
use crate::multi_nic::probe::ProbeMessage;
use crate::multi_nic::repair::{MissingRange, RepairMessage};
use crate::multi_nic::{MultiNicConfig, MultiNicFlowKey};
use farpace_units::{Instant, Seq, Span};
use farpace_wire::{AddressPair, Arp, EtherType, Extension, MacAddr, NicFlags, NicKind, Packet};

const G: NicKind = NicKind(3);

/// A list of host 2 with these NICs, for the address of host `owner`.
fn list(owner: usize, nics: &[MacAddr], generation: u16) -> Packet {
    let nics: Vec<_> = nics.iter().map(|mac| (*mac, G)).collect();
    let extension = Extension::new(ip(owner).into(), &nics, NicFlags::ANSWERS_PROBES, generation);
    let arp = Arp::request(nics[0].0, ip(owner), ip(owner));
    Packet::from_link(nics[0].0, MacAddr::BROADCAST, EtherType::ARP, arp.encode_with(&extension).into())
}
fn with_byte(packet: &Packet, at: usize, byte: u8) -> Packet {
    let (from, to) = packet.macs();
    let mut payload = packet.payload().to_vec();
    payload[at] = byte;
    Packet::from_link(from, to, EtherType::ARP, payload.into())
}

/// Two hosts with a transfer, and an ordinary host for which host 0 has sent a request.
fn transfer(until: u64) -> (Net, u32) {
    let mut net = Net::new(&[2, 2, 1], &MultiNicConfig::default());
    net.request(ms(1), 0, 1);
    net.request(ms(2), 0, 2);
    let count = net.load((0, 1), 0, [ms(50), ms(until)], Span::from_micros(8));
    (net, count)
}

/// Breaks: a forged list neither diverts nor stops a transfer, and its refusal is counted with the reason.
#[test]
fn forged_lists_do_not_disturb_a_transfer() {
    let (mut net, count) = transfer(400);
    net.run(ms(90));
    let genuine = net.last[&(0, 0, EtherType::ARP.0)].clone();
    net.run(ms(100));
    // The NICs change for a while, so that the earlier list is old.
    net.set_carrier(1, 1, false);
    net.run(ms(110));
    net.set_carrier(1, 1, true);
    net.run(ms(160));
    let before = net.paths(0);
    assert_eq!(before.len(), 2);
    let own = mac(2, 0);
    let good = list(2, &[own, mac(2, 1)], 1);
    let many = with_byte(&good, 46, 200);
    let damaged = with_byte(&good, good.payload().len() - 1, good.payload()[good.payload().len() - 1] ^ 1);
    let forged = [
        list(2, &[own, mac(1, 1)], 1),
        list(2, &[own, mac(0, 1)], 1),
        list(2, &[own, MacAddr([3, 0, 0, 0, 0, 9])], 1),
        many,
        damaged,
        genuine,
        list(7, &[mac(7, 0), mac(7, 1)], 1),
    ];
    let mut at = ms(170);
    for _ in 0..20 {
        for packet in &forged {
            for nic in 0..2 {
                net.inject(at, (0, nic), packet.clone());
                at += Span::from_micros(100);
            }
        }
    }
    net.run(ms(500));
    // Frames in flight to the NIC when it lost its carrier.
    assert!(net.lost.iter().all(|at| *at < ms(101)) && net.lost.len() <= 2, "{:?}", net.lost);
    let received = net.numbers(0, 1).len() + net.lost.len();
    assert_eq!(received, count as usize, "the transfer lost frames");
    let after: Vec<_> = net.paths(0).iter().map(|(nic, path)| (*nic, path.to)).collect();
    assert_eq!(before.iter().map(|(nic, path)| (*nic, path.to)).collect::<Vec<_>>(), after);
    let stats = net.layer(0).announcer().unwrap().stats();
    for why in [ArpRefusal::NicOfOther, ArpRefusal::OwnNic, ArpRefusal::OlderGeneration] {
        assert!(stats.refused(why) >= 20, "{why}: {:?}", stats.refused);
    }
    let malformed = stats.refused.iter().filter(|(why, _)| matches!(why, ArpRefusal::Malformed(_)));
    let malformed: Vec<u64> = malformed.map(|(_, times)| *times).collect();
    assert!(malformed.len() >= 2 && malformed.iter().sum::<u64>() >= 120, "{:?}", stats.refused);
    assert!(
        stats.refused(ArpRefusal::Unsolicited) == 0,
        "lists in requests are pending: {:?}",
        stats.refused
    );
    assert_eq!((stats.learned, stats.evicted), (3, 0));
}

/// Breaks: forged, modified and replayed replies to probes do not move traffic.
#[test]
fn forged_probe_replies_change_no_path() {
    let (mut net, count) = transfer(300);
    net.run(ms(150));
    let genuine = net.last[&(0, 1, PROBES)].clone();
    let Some(Ok(ProbeMessage::Reply(reply))) = ProbeMessage::of(&genuine) else {
        unreachable!("host 1 sends no frames of its own: {genuine:?}")
    };
    let run = |forge: bool| {
        let (mut net, _) = transfer(300);
        net.run(ms(150));
        let mut at = ms(150);
        for n in 0..2_000_u32 {
            let mut other = reply;
            other.probe.seq = reply.probe.seq.wrapping_add(n % 8);
            other.arrived_at = Instant::from_nanos(u64::from(n) << 30);
            other.reordered.late = n * 1_000;
            other.reordered.harmful = n * 1_000;
            let from = [mac(1, 1), mac(2, 0)][n as usize % 2];
            let frame = if n % 5 == 0 { genuine.clone() } else { other.frame(from, mac(0, 1)) };
            if forge {
                net.inject(at, (0, 1), frame);
            }
            at += Span::from_micros(50);
        }
        net.run(ms(280));
        (net.paths(0), net.layer(0).stats().path_failures)
    };
    assert_eq!(run(true), run(false));
    net.run(ms(400));
    assert_eq!(net.numbers(0, 1).len(), count as usize);
}

/// Breaks: repair requests for frames that were never sent cause no work, and those of unknown hosts no
/// answer.
#[test]
fn repair_requests_of_unknown_hosts_are_ignored() {
    let (mut net, count) = transfer(200);
    net.run(ms(100));
    let flow = MultiNicFlowKey::new(AddressPair::V4(ip(0), ip(1)), 7 << 16 | 9);
    let hole = MissingRange { start: Seq::new(5), end: Seq::new(1_000_000_000) };
    let missing = RepairMessage { refused: false, flow, upto: hole.end, holes: [hole].into_iter().collect() };
    let own = |net: &Net| net.layer(0).stats().own;
    let (before, mut at) = (own(&net), ms(110));
    for n in 0..1_000_u32 {
        let damaged =
            Packet::from_link(mac(2, 0), mac(0, 0), EtherType::EXPERIMENTAL, b"fpms\x01\x01".to_vec().into());
        let packet = if n % 2 == 0 { missing.frame(mac(2, 0), mac(0, 0)) } else { damaged };
        net.inject(at, (0, 0), packet);
        at += Span::from_micros(50);
    }
    net.run(ms(400));
    let stats = net.layer(0).stats();
    assert_eq!((stats.retransmitted, stats.bad_repair_messages), (0, 500));
    // Probes and replies continue meanwhile: 40 per second on each of two NICs.
    assert!(own(&net) - before < 200, "{} frames of its own", own(&net) - before);
    assert_eq!(net.numbers(0, 1).len(), count as usize);
}
