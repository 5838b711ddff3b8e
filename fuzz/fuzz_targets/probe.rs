//! Any bytes as probes, replies and questions for what is missing, in any order: nothing is believed that was
//! not asked, and nothing crashes.

#![no_main]

use bytes::Bytes;
use farpace_link::multi_nic::probe::{PathTo, ProbeMessage, Prober, Probing, Reply, Responder};
use farpace_link::multi_nic::repair::RepairMessage;
use farpace_link::multi_nic::{NeighbourId, NicId};
use farpace_units::{ByteCount, Instant, Rate, Span};
use farpace_wire::{EtherType, MacAddr, Packet};
use libfuzzer_sys::fuzz_target;

const OURS: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const THEIRS: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
const NIC: NicId = NicId(0);

fuzz_target!(|steps: Vec<(u32, u8, Vec<u8>)>| {
    let nominal = Rate::from_mbit(1_000);
    let mut prober = Prober::new(Probing { interval: Span::from_millis(25), starts_up: false, hops: 2 });
    let path = PathTo { neighbour: NeighbourId(1), nic: NIC, from: OURS, to: THEIRS, nominal };
    prober.add(Instant::ZERO, path).expect("there is room");
    let mut responder = Responder::new();
    let mut now = Instant::ZERO;
    let mut request = None;
    for (us, nic, bytes) in steps {
        now += Span::from_micros(us.into());
        prober.on_deadline(now);
        assert!(prober.deadline().is_none_or(|at| at > now));
        if let Some(packet) = prober.poll(now, NIC, ByteCount::new(1_538)) {
            request = ProbeMessage::of(&packet);
        }
        prober.on_sent(now, NeighbourId(1), NIC, ByteCount::new(u64::from(us % 1_600)));
        if let (Some(Ok(ProbeMessage::Probe(probe))), Some(&[a, b, c, d, ..])) =
            (&request, bytes.first_chunk::<4>())
        {
            // An answer to what was asked, with numbers of its own.
            let number = u64::from(u32::from_be_bytes([a, b, c, d])) << (nic % 33);
            let received = farpace_link::multi_nic::probe::ProbeTraffic {
                frames: number,
                bytes: ByteCount::new(number),
            };
            let arrived_at = Instant::from_nanos(number);
            prober.on_reply(
                now,
                NIC,
                THEIRS,
                &Reply {
                    probe: *probe,
                    arrived_at,
                    received,
                    reordered: Default::default(),
                    resequence_time: Span::from_nanos(number),
                },
            );
        }
        if let Ok(ProbeMessage::Probe(probe)) = ProbeMessage::parse(&bytes) {
            let packet = Packet::from_link(THEIRS, OURS, EtherType::EXPERIMENTAL, Bytes::from(bytes.clone()));
            if let Some(reply) = responder.on_probe(now, NicId(nic), &packet, probe) {
                assert!(
                    matches!(ProbeMessage::of(&reply), Some(Ok(ProbeMessage::Reply(reply))) if reply.probe == probe)
                );
            }
        }
        if let Ok(missing) = RepairMessage::parse(&bytes) {
            assert_eq!(RepairMessage::of(&missing.frame(OURS, THEIRS)), Some(Ok(missing)));
        }
        if let Ok(packet) = Packet::from_frame(&bytes) {
            responder.on_packet(now, NicId(nic), &packet);
            prober.on_packet(now, NicId(nic), &packet);
        }
        for (_, _, estimate) in prober.take_changes() {
            assert!(estimate.rate <= nominal && !estimate.rate.eq(&Rate::default()));
        }
    }
});
