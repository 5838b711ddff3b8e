//! What several NICs say to each other: lists of NICs behind address resolution, probes, and what is missing.

use crate::nics_heard::{list_json, nic_list};
use farpace_link::multi_nic::probe::{PathProbe, ProbeMessage, ProbeTraffic};
use farpace_link::multi_nic::repair::RepairMessage;
use farpace_wire::icmp::neighbour_nics;
use farpace_wire::{Extension, Packet};
use serde_json::{Value, json};
use std::net::SocketAddr;

/// What is said, in words that follow those for the packet, and as a key of JSON with its value. None for any
/// other packet.
pub fn said(packet: &Packet) -> Option<(String, &'static str, Value)> {
    if let Some(message) = RepairMessage::of(packet) {
        return Some(match message {
            Ok(message) => missing(&message),
            Err(why) => (format!("({why})"), "missing", Value::Null),
        });
    }
    if let Some(message) = ProbeMessage::of(packet) {
        return Some(match message {
            Ok(message) => probe(&message),
            // Somebody else's, perhaps: the EtherType is for experiments of all kinds.
            Err(why) => (format!("({why})"), "probe", Value::Null),
        });
    }
    let list =
        if packet.arp().is_ok() { Extension::parse_arp(packet.payload()) } else { neighbour_nics(packet) };
    match list {
        Ok(list) => list.map(|list| {
            let targets = if list.targets.is_empty() {
                String::new()
            } else {
                format!(", knows {}", list.targets.len())
            };
            let text =
                format!("NICs: {}{targets}, generation {}, {}", nic_list(&list), list.generation, list.flags);
            (text, "nics", list_json(&list))
        }),
        Err(why) => Some((format!("bad list of NICs: {why}"), "bad_nics", json!(why.to_string()))),
    }
}

fn missing(message: &RepairMessage) -> (String, &'static str, Value) {
    let (addresses, ports) = message.flow.parts();
    let flow = format!(
        "{} > {}",
        SocketAddr::new(addresses.src(), (ports >> 16) as u16),
        SocketAddr::new(addresses.dst(), ports as u16)
    );
    let holes: Vec<[u32; 2]> = message.holes.iter().map(|hole| [hole.start.get(), hole.end.get()]).collect();
    let list: Vec<String> = holes.iter().map(|[start, end]| format!("{start}-{end}")).collect();
    let what = if message.refused { "cannot send again" } else { "asks for" };
    let value = json!({
        "kind": if message.refused { "gone" } else { "asked" },
        "flow": flow, "holes": holes, "told_up_to": message.upto.get(),
    });
    (format!("{what} {} of {flow}", list.join(", ")), "missing", value)
}

fn probe(message: &ProbeMessage) -> (String, &'static str, Value) {
    let traffic =
        |ProbeTraffic { frames, bytes }: ProbeTraffic| json!({ "frames": frames, "line_bytes": bytes.get() });
    let common = |kind: &str, PathProbe { nic, seq, sent_at, sent, rtt }: &PathProbe| {
        json!({
            "kind": kind, "nic": nic.0, "number": seq,
            "sent_at_ns": sent_at.as_nanos(), "sent": traffic(*sent),
            "rtt_ns": (!rtt.is_zero()).then_some(rtt.as_nanos()),
        })
    };
    match message {
        ProbeMessage::Probe(probe) => {
            let text =
                format!("probe {} of NIC {}, {} frames sent", probe.seq, probe.nic.0, probe.sent.frames);
            (text, "probe", common("probe", probe))
        }
        ProbeMessage::Reply(reply) => {
            let (probe, places) = (&reply.probe, &reply.reordered);
            let text = format!(
                "answer to probe {} of NIC {}, {} frames sent, {} received, {} late",
                probe.seq, probe.nic.0, probe.sent.frames, reply.received.frames, places.late
            );
            let mut value = common("reply", probe);
            value["arrived_at_ns"] = json!(reply.arrived_at.as_nanos());
            value["received"] = traffic(reply.received);
            value["late"] = json!(places.late);
            value["harmful"] = json!(places.harmful);
            value["overtook"] = json!(places.overtook);
            (text, "probe", value)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_link::multi_nic::MultiNicFlowKey;
    use farpace_link::multi_nic::repair::MissingRange;
    use farpace_units::Seq;
    use farpace_wire::{AddressPair, MacAddr};

    /// Breaks: whoever looks at a capture does not see which frames a host misses, or that another has none
    /// of them.
    #[test]
    fn what_is_missing_is_told_by_flow_and_numbers() {
        let flow =
            MultiNicFlowKey::new(AddressPair::V4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()), 0x1388_0050);
        let hole = MissingRange { start: Seq::new(7), end: Seq::new(1_455) };
        let mut message = RepairMessage {
            refused: false,
            flow,
            upto: Seq::new(2_903),
            holes: [hole].into_iter().collect(),
        };
        let frame = |message: &RepairMessage| message.frame(MacAddr([2; 6]), MacAddr([4; 6]));
        let (text, key, value) = said(&frame(&message)).expect("it is one of ours");
        assert_eq!((text.as_str(), key), ("asks for 7-1455 of 10.0.0.1:5000 > 10.0.0.2:80", "missing"));
        assert_eq!(value["holes"], json!([[7, 1_455]]));
        message.refused = true;
        assert_eq!(
            said(&frame(&message)).map(|(text, ..)| text.starts_with("cannot send again 7-1455")),
            Some(true)
        );
    }
}
